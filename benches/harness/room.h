/* SPDX-License-Identifier: MIT */
/*
 * Whether the memory that a case is about to take is to be had: asked before any of it is touched, since what comes
 * instead of an answer afterwards is a killed process.
 */
#ifndef BENCH_ROOM_H
#define BENCH_ROOM_H

#include "benches/harness/nodes.h"

/* Bytes. */
struct bench_need {
	u64 address_space; /* reserved, most of it never touched */
	u64 zones
		[BENCH_MAX_NODES]; /* page memory by node, in huge pages if there are enough of them */
	u64 rest[BENCH_MAX_NODES]; /* what is never in huge pages */
	bool hugetlb; /* page memory in huge pages or not at all */
};

/* Adds BYTES that lie on the nodes in NODEMASK, evenly, to TO, an array by node. */
void bench_need_add(u64 *to, u64 nodemask, u64 bytes);

/*
 * BENCH_OK if NEED fits RLIMIT_AS, the memory limits of the process's cgroups, what is free on each node or can be
 * reclaimed there from the page cache, and the free huge pages if they are demanded; else BENCH_IMPOSSIBLE with a sentence
 * in ERR. ROOT as in sysfile.h. A limit that the kernel does not tell is none.
 */
enum bench_status bench_room(const char *root, const struct bench_need *need, char *err,
			     size_t errlen);

#endif
