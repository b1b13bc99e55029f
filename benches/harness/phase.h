/* SPDX-License-Identifier: MIT */
#ifndef BENCH_PHASE_H
#define BENCH_PHASE_H

#include "benches/harness/bench.h"

/* A function whose name callgrind must find: neither inlined nor cloned. */
#ifdef __clang__
#define own_symbol __attribute__((noinline, used))
#else
#define own_symbol __attribute__((noinline, noclone, used))
#endif

#ifndef SKB_TRACED
extern const char *bench_counted_phase; /* the phase that callgrind counts; NULL: none */
extern u64 bench_counted_runs; /* how often it ran there */
#endif

#endif
