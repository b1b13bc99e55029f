/* SPDX-License-Identifier: MIT */
/*
 * What a machine says about its counters: the kernel's settings, this process's rights, the CPU and its PMUs, all from
 * /sys and /proc, or from copies of them below another directory.
 *
 * This file is ours and MIT; the program skb-prof that it becomes part of is linked with libperf, whose sources say
 * GPL-2.0, and is therefore distributed under GPL-2.0. Nothing here is linked with Google Benchmark.
 */
#ifndef PROF_MACHINE_H
#define PROF_MACHINE_H

#include "skb/compiler.h"

#include <linux/perf_event.h>

#define PROF_MAX_CPU_PMUS 4
#define PROF_UNKNOWN	  (-100L)

struct prof_pmu {
	char name[64];
	u32 type;
};

struct prof_machine {
	const char *root; /* "" for this machine, or the directory that holds sys and proc */
	long paranoid; /* kernel.perf_event_paranoid, or PROF_UNKNOWN */
	long kptr_restrict;
	long mlock_kb; /* kernel.perf_event_mlock_kb: for each CPU and user */
	bool perfmon; /* this process may count whatever it likes: CAP_PERFMON or CAP_SYS_ADMIN */
	bool hypervisor;
	bool kernel_names; /* /proc/kallsyms shows addresses */
	char vendor[32];
	unsigned int family, model;
	/* Of the CPUs' cores: one, or on a hybrid CPU one for each kind; 0: there is no PMU. */
	unsigned int nr_cpu_pmus;
	struct prof_pmu cpu_pmu[PROF_MAX_CPU_PMUS];
};

/* Reads what is there; what is not stays unknown. ROOT must outlive M. */
void prof_machine_read(struct prof_machine *m, const char *root);

static inline bool prof_hybrid(const struct prof_machine *m)
{
	return m->nr_cpu_pmus > 1;
}

/* The beginning of the file PATH below M's root, without a newline at its end. 0 or -errno. */
int prof_read_text(const struct prof_machine *m, const char *path, char *out, size_t len);

/*
 * Turns the terms of PMU ("event=0x3c,umask=1", or the name of one of its events) into TYPE, CONFIG and SCALE in ATTR.
 * 0; -ENODEV: no such PMU; -ENOENT: no such event or term; -EINVAL: a value that is no number or does not fit.
 */
int prof_pmu_event(const struct prof_machine *m, const char *pmu, const char *terms,
		   struct perf_event_attr *attr, double *scale);

#endif
