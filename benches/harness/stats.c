/* SPDX-License-Identifier: MIT */
#include "benches/harness/stats.h"

#include <stdlib.h>

#define MIN_CPU_PERCENT	    97
#define MIN_OVERLAP_PERCENT 90

u64 batch_wall_ns(const struct role_time *role, unsigned int nr_roles)
{
	u64 lo = role[0].start_ns, hi = role[0].stop_ns;

	for (unsigned int r = 1; r < nr_roles; r++) {
		lo = min(lo, role[r].start_ns);
		hi = max(hi, role[r].stop_ns);
	}
	return hi - lo;
}

bool batch_counts(const struct role_time *role, unsigned int nr_roles, bool sleeps)
{
	u64 last_start = role[0].start_ns, first_stop = role[0].stop_ns;
	u64 together;

	for (unsigned int r = 0; r < nr_roles; r++) {
		u64 window = role[r].stop_ns - role[r].start_ns;

		if (!sleeps && role[r].cpu_ns * 100 < window * MIN_CPU_PERCENT)
			return false;
		last_start = max(last_start, role[r].start_ns);
		first_stop = min(first_stop, role[r].stop_ns);
	}
	if (nr_roles == 1)
		return true;
	together = first_stop > last_start ? first_stop - last_start : 0;
	return together * 100 >= batch_wall_ns(role, nr_roles) * MIN_OVERLAP_PERCENT;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sort_values(double *v, unsigned int nr)
{
	qsort(v, nr, sizeof(*v), ascending);
}

double quantile(const double *v, unsigned int nr, double q)
{
	double at = q * (nr - 1);
	unsigned int i = (unsigned int)at;

	if (i + 1 >= nr)
		return v[nr - 1];
	return v[i] + (at - i) * (v[i + 1] - v[i]);
}
