/* SPDX-License-Identifier: MIT */
/*
 * The machine's memory nodes, and where on them an object of a role lies that is asked for as `local`, `remote`, a
 * number or `interleave`.
 *
 *   local        the node of the role's CPU; where that has no memory the nearest one that has, as the kernel's
 *                numa_mem_id()
 *   remote       of the others the farthest from the CPU's node by distance, the lowest of several
 *   N            node N
 *   interleave   page by page on each node with memory that this process may use
 */
#ifndef BENCH_NODES_H
#define BENCH_NODES_H

#include "benches/harness/options.h"

#include "skb/node_mem.h"

#include <sched.h>

#define BENCH_MAX_NODES 64

/* A bit a node. */
struct bench_topology {
	u64 online;
	u64 memory; /* those that have some */
	u64 allowed; /* those whose memory this process may use (a cpuset) */
	cpu_set_t cpus[BENCH_MAX_NODES];
	u8 distance[BENCH_MAX_NODES][BENCH_MAX_NODES]; /* 10: the same node; 0: not told */
};

/* What the kernel's files below ROOT tell ("": those of this machine); one node where they tell of none. */
void bench_topology_read(const char *root, struct bench_topology *out);

/* The node of CPU; -1: no node has it. */
int bench_node_of_cpu(const struct bench_topology *t, unsigned int cpu);

/* BENCH_OK if memory may be had on NODE; BENCH_IMPOSSIBLE with a sentence in ERR. */
enum bench_status bench_node_usable(const struct bench_topology *t, unsigned int node, char *err,
				    size_t errlen);

enum bench_where { BENCH_LOCAL, BENCH_REMOTE, BENCH_INTERLEAVE, BENCH_ON_NODE };

struct bench_object {
	enum bench_where where;
	unsigned int node; /* of BENCH_ON_NODE */
};

/* shells, heads, pages, pool, socket: by enum mem_kind. */
extern const char *const bench_object_words[NR_MEM_KINDS];

/* True if TEXT is meant to be such a list, rather than one of nodes. */
bool bench_objects_look_like(const char *text);

/*
 * Parses "shells=remote,pages=1" into OBJECT, an array by enum mem_kind, in which what is not told of becomes local. 0, or
 * -EINVAL for other text, or an object that stands there twice.
 */
int bench_objects_parse(const char *text, struct bench_object *object);

/* What was asked for, in its words. */
void bench_object_text(const struct bench_object *object, char *out, size_t len);

/*
 * Where OBJECT of a role whose CPU is on node HOME lies, into *NODEMASK. BENCH_OK; BENCH_IMPOSSIBLE with a sentence in ERR
 * where the machine has no such place, or this process may not use it.
 */
enum bench_status bench_object_place(const struct bench_topology *t,
				     const struct bench_object *object, unsigned int home,
				     u64 *nodemask, char *err, size_t errlen);

#endif
