/* SPDX-License-Identifier: MIT */
/*
 * The threads of a case: role 0 is the caller, the others each a thread of their own, pinned and attached, alive from
 * start to stop so that no batch sees a cold thread.
 *
 * All functions are role 0's; between batches the others spin, and so does nobody else's work on their CPUs.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include "benches/harness/session.h"
#include "benches/harness/stats.h"

#include <pthread.h>

/* What a role has to know, on lines that it does not share with what the roles write. */
struct crew_word {
	atomic_t v;
} ____cacheline_aligned;

struct crew;
struct crew_member {
	struct crew *crew;
	unsigned int role;
	pthread_t thread;
	enum bench_status status; /* of its start */
	char err[256];
	struct role_time time; /* of the last batch */
} ____cacheline_aligned;

struct crew {
	const struct bench_session *session;
	u64 n; /* operations of the coming batch */
	bool stop; /* instead of a batch */
	struct crew_word go; /* number of the coming batch: releases n and stop */
	struct crew_word ready; /* roles at the start line, over all batches */
	struct crew_word done; /* roles past the end: releases their times */
	struct crew_member member[BENCH_MAX_ROLES];
};

/* Starts the roles of S, which is open and outlives CREW. BENCH_OK, or the status after one line on stderr. */
enum bench_status crew_start(struct crew *crew, const struct bench_session *s);

/* One batch: every role's span with N operations, started together. OUT gets each role's times. */
void crew_batch(struct crew *crew, u64 n, struct role_time *out);

void crew_stop(struct crew *crew);

#endif
