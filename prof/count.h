/* SPDX-License-Identifier: MIT */
/*
 * Counting: the events of a list on the threads of one process, by libperf.
 *
 * Part of skb-prof, which is GPL-2.0 as a program (prof/machine.h).
 */
#ifndef PROF_COUNT_H
#define PROF_COUNT_H

#include "prof/events.h"

#include <sys/types.h>

#define PROF_MAX_THREADS 64

/* One event on one thread, or summed over them; times in ns. */
struct prof_count {
	u64 raw;
	u64 enabled; /* while the thread ran and the event was switched on */
	u64 running; /* while a counter was there for it; on a hybrid CPU over both kinds of core */
};

struct prof_result {
	struct prof_count all;
	struct prof_count thread[PROF_MAX_THREADS];
	double value; /* raw scaled to the time that it was not counted in, in the kernel's unit */
	bool scaled; /* it shared its counter with others */
	bool user_only;
	char reason[PROF_REASON_MAX]; /* why there is no value; "": there is one */
};

struct prof_session;

/*
 * Opens the events of LIST, switched off, on the NR threads TID. INHERIT: on TID[0] alone, with what it starts, from
 * its next exec on. Events that cannot be opened are refused in LIST, each with its sentence. NULL: out of memory.
 */
struct prof_session *prof_open(const struct prof_machine *m, struct prof_list *list,
			       const pid_t *tid, unsigned int nr, bool inherit);

/* How many events are open, and whether they had to leave out the kernel for lack of rights. */
unsigned int prof_nr_open(const struct prof_session *s);
bool prof_user_only(const struct prof_session *s);

void prof_enable(struct prof_session *s);
void prof_disable(struct prof_session *s);

/* The counts of event I of the list; to be called while it is switched off, or after the process has ended. */
void prof_result(struct prof_session *s, unsigned int i, struct prof_result *out);

void prof_close(struct prof_session *s);

/* The value of C: its raw count over the share of its time in which it ran; 0 if it never did. */
double prof_scaled(const struct prof_count *c);

/* A sentence for ERR (an errno) of an attempt to open E. OUT has room for PROF_REASON_MAX bytes. */
void prof_why(const struct prof_machine *m, const struct prof_event *e, bool user_only, int err,
	      char *out);

/* Whether events can be sampled here, for perf record. */
struct prof_sampling {
	const char *event; /* as perf names it: "cycles:pp" to "cpu-clock"; NULL: none */
	bool user_only;
	unsigned int mmap_kb; /* of each buffer; 0: none could be mapped */
	char cycles_reason[PROF_REASON_MAX]; /* why cycles cannot be sampled; "": they can */
	char reason[PROF_REASON_MAX]; /* why nothing can; "": something can */
};

void prof_sampling_probe(const struct prof_machine *m, struct prof_sampling *out);

#endif
