/* SPDX-License-Identifier: MIT */
#include "benches/harness/cpus.h"
#include "benches/harness/names.h"

#include <errno.h>
#include <string.h>

static bool holds(const struct bench_cpus *cpus, unsigned int cpu)
{
	for (unsigned int i = 0; i < cpus->nr; i++)
		if (cpus->cpu[i] == cpu)
			return true;
	return false;
}

int bench_cpus_parse(const char *text, unsigned int max, bool repeats, struct bench_cpus *out)
{
	out->nr = 0;
	for (;;) {
		size_t len = strcspn(text, ","), left = strcspn(text, "-,");
		long lo, hi;

		if (bench_parse_long(text, left, &lo))
			return -EINVAL;
		hi = lo;
		if (left < len && bench_parse_long(text + left + 1, len - left - 1, &hi))
			return -EINVAL;
		if (lo < 0 || hi < lo || hi >= (long)max)
			return -EINVAL;
		for (; lo <= hi; lo++) {
			if (out->nr == SKB_NR_CPUS || (!repeats && holds(out, (unsigned int)lo)))
				return -EINVAL;
			out->cpu[out->nr++] = (unsigned int)lo;
		}
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

int bench_cpus_allowed(struct bench_cpus *out)
{
	cpu_set_t set;

	out->nr = 0;
	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && out->nr < SKB_NR_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			out->cpu[out->nr++] = cpu;
	return 0;
}

int bench_cpu_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}
