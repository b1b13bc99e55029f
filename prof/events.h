/* SPDX-License-Identifier: MIT */
/*
 * The events that skb-prof knows by name, and lists of them: "cycles,instructions:u,cpu/event=0xd2,umask=0x4/,r4d2".
 *
 * Part of skb-prof, which is GPL-2.0 as a program (prof/machine.h).
 */
#ifndef PROF_EVENTS_H
#define PROF_EVENTS_H

#include "prof/machine.h"

#define PROF_MAX_EVENTS 64
#define PROF_REASON_MAX 384

/* Events that say something only together are opened together, so that they count over the same time. */
enum prof_group {
	PROF_ALONE,
	PROF_SOFTWARE,
	PROF_CORE,
	PROF_L1,
	PROF_LLC,
	PROF_TLB,
	PROF_COHERENCE,
	PROF_TOPDOWN,
};

/* What is asked of one PMU; on a hybrid CPU an event is one of these for each kind of core. */
struct prof_counter {
	u32 type;
	u64 config, config1, config2;
	const char *pmu; /* "" if the kernel chooses; else part of struct prof_machine */
};

struct prof_event {
	char name[96];
	const char *meaning; /* one line; "" for what only its owner knows */
	enum prof_group group;
	bool user, kernel; /* given as :u or :k; neither: both */
	double scale; /* of the unit that the kernel tells, 1 for most */
	unsigned int nr_counters;
	struct prof_counter counter[PROF_MAX_CPU_PMUS];
	char refused[PROF_REASON_MAX]; /* why it cannot be counted; "": it may be */
};

struct prof_list {
	unsigned int nr;
	struct prof_event event[PROF_MAX_EVENTS];
	char note[PROF_REASON_MAX]; /* of what was left out; "": nothing was */
};

/*
 * Adds the events of TEXT to OUT, which starts out zeroed. A name that nobody knows becomes an event that is refused,
 * with the nearest names; empty entries are none; an event given twice is one, with a note. 0, or -E2BIG if there are
 * more than PROF_MAX_EVENTS.
 */
int prof_list_parse(const struct prof_machine *m, const char *text, struct prof_list *out);

/* What is counted if nothing is asked for: all that tells something of a buffer operation. */
extern const char prof_default_list[];

/* Prints each known name with its meaning. */
void prof_list_known(void);

#endif
