/* SPDX-License-Identifier: MIT */
/* Which phase callgrind counts: instructions.c chooses, bench_phase() runs it there. */
#ifndef BENCH_PHASE_H
#define BENCH_PHASE_H

#include "benches/harness/bench.h"

/* Chooses NAME for callgrind; NULL: none. */
void bench_count_phase(const char *name);

/* How often the chosen phase has run. */
u64 bench_phase_runs(void);

/*
 * Calls SPAN(CTX, N) inside the function that callgrind toggles on. Never inlined or cloned, so
 * that it keeps its name: callgrind would count 0 and say nothing.
 */
void skb_bench_counted_span(void (*span)(void *ctx, u64 n), void *ctx, u64 n);

#endif
