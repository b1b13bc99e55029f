/* SPDX-License-Identifier: MIT */
/* Which CPUs the roles run on. */
#ifndef BENCH_CPUS_H
#define BENCH_CPUS_H

#include "skb/cpu.h"

#include <sched.h>

struct bench_cpus {
	unsigned int nr;
	unsigned int cpu[SKB_NR_CPUS];
};

/*
 * Parses "0,2-3" into OUT, in the order given: 0, or -EINVAL for other text, numbers from MAX on, more than
 * SKB_NR_CPUS of them, or one that comes twice where REPEATS is false.
 */
int bench_cpus_parse(const char *text, unsigned int max, bool repeats, struct bench_cpus *out);

/* The CPUs that the calling thread may run on, ascending: 0 or a negative errno. At most SKB_NR_CPUS of them. */
int bench_cpus_allowed(struct bench_cpus *out);

/* Pins the calling thread: 0 or a negative errno, and then it may still run where it could. */
int bench_cpu_pin(unsigned int cpu);

#endif
