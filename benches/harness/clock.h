/* SPDX-License-Identifier: MIT */
/* The clocks of the harness: a wall clock for windows, the thread's CPU time beside it, ticks for waits. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include "benches/harness/bench.h"

static inline u64 bench_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

#define bench_wall_ns() bench_clock_ns(CLOCK_MONOTONIC_RAW)
/* A system call, 600 ns: never inside a window. */
#define bench_cpu_ns() bench_clock_ns(CLOCK_THREAD_CPUTIME_ID)

/* Notes where ticks stand; bench_tick_ns() then has its base and seldom has to wait. Once, at the program's start. */
void bench_tick_start(void);

#endif
