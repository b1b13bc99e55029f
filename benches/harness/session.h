/* SPDX-License-Identifier: MIT */
/* One case made ready on this process's memory and CPUs: what every mode but the listing begins with. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "benches/harness/cpus.h"
#include "benches/harness/names.h"
#include "benches/harness/nodes.h"
#include "benches/harness/options.h"

/* 32 MB of page memory: touching it takes a few ms of each process's start. */
#define BENCH_DEFAULT_PAGES 8192

/*
 * Where the roles run, and where their memory lies. Roles whose node is the same share a node of the model, their home;
 * where objects are placed each by itself, a role's node is that of its CPU, and only what is asked for as local lies
 * there.
 */
struct bench_place {
	struct bench_cpus cpus; /* one for each role, or fewer if oversubscribed */
	struct bench_cpus nodes; /* the machine's, likewise; one alone is every role's */
	bool oversubscribe;
	bool by_object;
	struct bench_object object[NR_MEM_KINDS]; /* if by_object */
	unsigned int home[SKB_NR_NODES]; /* node I of the model is this one of the machine */
	struct mem_places mem; /* and its memory lies there */
};

struct bench_session {
	struct bench_args args;
	char name[BENCH_NAME_MAX];
	struct bench_case c;
	struct bench_place place;
	bool shared; /* roles share CPUs */
	bool named; /* each thread bears its role's name, for a profiler to show */
};

/*
 * Reads --skb_cpus, --skb_nodes and --skb_huge, or this machine's defaults. BENCH_OK, or the status after one line on
 * stderr: BENCH_IMPOSSIBLE for a CPU or a node that is not there, or not for this process.
 */
enum bench_status bench_place_init(const struct bench_options *o, struct bench_place *out);

unsigned int bench_place_cpu(const struct bench_place *place, unsigned int role);
unsigned int bench_place_node(const struct bench_place *place, unsigned int role);

/* The node of the model that is ROLE's. */
unsigned int bench_place_home(const struct bench_place *place, unsigned int role);

/* BENCH_OK if NR_ROLES find their places, else BENCH_IMPOSSIBLE with a sentence in ERR. */
enum bench_status bench_place_fits(const struct bench_place *place, unsigned int nr_roles,
				   char *err, size_t errlen);

/*
 * BENCH_OK if there is room for PAGES in each zone and for ALLOC's objects; else BENCH_IMPOSSIBLE after one line on stderr.
 * Nothing is allocated.
 */
enum bench_status bench_memory_room(const char *name, const char *alloc,
				    const struct bench_place *place, size_t pages);

/* Allocators and zones, once a process, before any attach, if there is room. NAME is for the message. */
enum bench_status bench_memory_init(const char *name, const char *alloc,
				    const struct bench_place *place, size_t pages);

/* Pages that ARGS needs. */
size_t bench_args_pages(const struct bench_args *args);

/* Pins the calling thread to ROLE's CPU and makes it CPU slot ROLE: BENCH_OK, or a sentence in ERR. */
enum bench_status bench_role_enter(const struct bench_place *place, unsigned int role, char *err,
				   size_t errlen);

/*
 * Calls the operation's prepare() and checks what it returned. BENCH_OK; else the status that its errno means
 * (BENCH_USAGE, BENCH_IMPOSSIBLE, BENCH_FAILED), a sentence in ERR and nothing prepared.
 */
enum bench_status bench_case_prepare(const struct bench_args *args, struct bench_case *out,
				     char *err, size_t errlen);

/*
 * Everything from the name in O to a prepared and checked case, the calling thread being role 0. BENCH_OK, or the exit
 * status after one line on stderr; then the process is to end. To be called once.
 */
enum bench_status bench_session_open(struct bench_session *s, const struct bench_options *o);

/*
 * check() once more if all went well SO_FAR, then teardown. SO_FAR, or BENCH_FAILED after one line on stderr.
 */
enum bench_status bench_session_close(struct bench_session *s, enum bench_status so_far);

#endif
