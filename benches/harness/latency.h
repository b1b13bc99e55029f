/* SPDX-License-Identifier: MIT */
/* How long a cache line takes from one CPU to another. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#define LATENCY_ROUNDS 51

/*
 * One way between CPUs A and B, in ns, in each of LATENCY_ROUNDS rounds, sorted into NS. The calling
 * thread is pinned to A by it and stays there. Takes some 10 ms. 0, or an errno.
 */
int latency_core_to_core(unsigned int a, unsigned int b, double *ns);

#endif
