/* SPDX-License-Identifier: MIT */
/* Where the memory of a case lies, seen from the kernel after the timing, for every node that its roles have. */
#ifndef BENCH_PLACED_H
#define BENCH_PLACED_H

#include "benches/harness/json.h"
#include "benches/harness/session.h"

/* Counts are of 4 KB; negative: the kernel does not tell. */
struct bench_placed_object {
	struct node_mem_count count;
	int err; /* negative errno, and then COUNT means nothing */
};

struct bench_placed_home {
	unsigned int home; /* of the model */
	long pages_elsewhere; /* of the zone */
	int shell_on, head_on; /* the node of an object that was just allocated */
	struct bench_placed_object
		object[NR_MEM_KINDS]; /* where objects are placed each by itself */
};

struct bench_placed {
	unsigned int nr;
	struct bench_placed_home of[SKB_NR_NODES];
};

/* On role 0's thread, attached, before the case is torn down; no span runs. Some ms. */
void bench_placed_look(const struct bench_session *s, struct bench_placed *out);

/* As "placed". */
void bench_placed_print(struct json *j, const struct bench_session *s,
			const struct bench_placed *placed);

/* What OBJECT of HOME was asked for, and the node or nodes that it has to lie on, into the open object of J. */
void bench_asked_print(struct json *j, const struct bench_place *place, enum mem_kind object,
		       unsigned int home);

#endif
