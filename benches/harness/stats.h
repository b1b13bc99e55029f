/* SPDX-License-Identifier: MIT */
/* What one batch says, and which batches count. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include "skb/compiler.h"

/* One role in one batch. */
struct role_time {
	u64 start_ns, stop_ns; /* of its span, on one wall clock */
	u64 cpu_ns; /* of its thread, read just outside that window */
	u64 waited; /* ticks booked by bench_wait_until() */
};

/*
 * True if the roles were shown to run together: each had its CPU for at least 97 % of its window, which is not asked of
 * roles that sleep (SLEEPS), and the windows
 * overlap for at least 90 % of their union. Threads that take turns read a contended operation ten times too fast.
 */
bool batch_counts(const struct role_time *role, unsigned int nr_roles, bool sleeps);

/* From the first start to the last stop. */
u64 batch_wall_ns(const struct role_time *role, unsigned int nr_roles);

/* Sorts V ascending. */
void sort_values(double *v, unsigned int nr);

/* The Q quantile (0 to 1) of the NR > 0 sorted values at V, linear between neighbours. */
double quantile(const double *v, unsigned int nr, double q);

#endif
