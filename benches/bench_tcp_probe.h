/* SPDX-License-Identifier: MIT */
/*
 * What only the probe tells: bench_tcp_probe is bench_tcp, linked so that a clock stands around
 * copying, letting go and reading. Nothing is compared by its times; bench_tcp has no trace of it.
 */
#ifndef BENCH_TCP_PROBE_H
#define BENCH_TCP_PROBE_H

#include "benches/harness/bench.h"

/* The two are NULL in bench_tcp. */

/*
 * A span of the calling CPU is over, which dealt with PACKETS packets; 0: somebody took the CPU away
 * meanwhile, and what the probe saw is forgotten.
 */
__attribute__((weak)) void bench_probe_span(u64 packets);

/* Adds a packet's part of it to R, in us. On role 0's thread, while no role runs. */
__attribute__((weak)) void bench_probe_report(struct bench_report *r);

#endif
