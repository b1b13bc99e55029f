/* SPDX-License-Identifier: MIT */
#include "benches/harness/face.h"
#include "benches/harness/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct face_case {
	struct bench_args args;
	char name[BENCH_NAME_MAX];
	enum bench_status status; /* why it cannot run, known from the start or met while it ran */
	char reason[512];
	unsigned int nr_roles;
};

static struct face_case *cases;
static size_t nr_cases;
static struct bench_place place;
static cpu_set_t allowed; /* role 0's thread before it was pinned */
static struct bench_case active; /* the case that runs: role 0 makes it before the start barrier */
static bool active_prepared;
static __thread bool entered;
static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* status and reason, which any role may set */

/* The first reason is told, the worst status counts. */
static enum bench_status fail_case(size_t i, enum bench_status status, const char *reason)
{
	struct face_case *c = &cases[i];

	pthread_mutex_lock(&lock);
	if (!c->status)
		snprintf(c->reason, sizeof(c->reason), "%s", reason);
	c->status = max(c->status, status);
	pthread_mutex_unlock(&lock);
	return status;
}

static bool add_case(const struct bench_args *args)
{
	struct face_case *more = realloc(cases, (nr_cases + 1) * sizeof(*cases));

	if (!more)
		return false;
	cases = more;
	memset(&cases[nr_cases], 0, sizeof(*cases));
	cases[nr_cases].args = *args;
	bench_args_name(args, cases[nr_cases].name, sizeof(cases[nr_cases].name));
	nr_cases++;
	return true;
}

static enum bench_status collect(const struct bench_options *o, size_t *pages)
{
	struct bench_grid grid;
	char err[512];

	*pages = 0;
	for (unsigned int op = 0; op < bench_nr_ops(); op++) {
		bench_grid_first(bench_op_at(op), &grid);
		do {
			if (o->alloc &&
			    bench_args_set_alloc(&grid.args, o->alloc, err, sizeof(err)))
				return bench_fail(BENCH_USAGE, NULL, "--skb_alloc: %s", err);
			if (!add_case(&grid.args))
				return bench_fail(BENCH_IMPOSSIBLE, NULL, "no memory for the list");
			*pages = max(*pages, bench_args_pages(&grid.args));
		} while (bench_grid_next(&grid));
	}
	if (o->pages)
		*pages = o->pages;
	return nr_cases ? BENCH_OK : bench_fail(BENCH_USAGE, NULL, "holds no case");
}

/* How many roles a case has is known once it is prepared. What does not go together leaves the list. */
static void probe(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr_cases; i++) {
		struct face_case *c = &cases[i];
		struct bench_case made;

		c->nr_roles = 1;
		c->status = bench_case_prepare(&c->args, &made, c->reason, sizeof(c->reason));
		if (c->status == BENCH_USAGE)
			continue;
		if (!c->status) {
			c->status = bench_place_fits(&place, made.nr_roles, c->reason,
						     sizeof(c->reason));
			if (!c->status)
				c->nr_roles = made.nr_roles;
			made.teardown(made.ctx);
		}
		if (kept != i)
			cases[kept] = *c;
		kept++;
	}
	nr_cases = kept;
}

int face_open(const struct bench_options *o)
{
	enum bench_status status;
	size_t pages;
	char err[512];

	status = bench_place_init(o, &place);
	if (!status)
		status = collect(o, &pages);
	if (!status)
		status = bench_memory_init(NULL, bench_args_alloc(&cases[0].args), &place, pages);
	if (status)
		return status;
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return bench_fail(BENCH_IMPOSSIBLE, NULL,
				  "the CPUs of this process cannot be read: %s", strerror(errno));
	status = bench_role_enter(&place, 0, err, sizeof(err));
	if (status)
		return bench_fail(status, NULL, "%s", err);
	probe();
	skb_cpu_detach();
	sched_setaffinity(0, sizeof(allowed), &allowed);
	return BENCH_OK;
}

size_t face_nr_cases(void)
{
	return nr_cases;
}

const char *face_name(size_t i)
{
	return cases[i].name;
}

unsigned int face_nr_roles(size_t i)
{
	return cases[i].nr_roles;
}

const char *face_reason(size_t i)
{
	return cases[i].reason;
}

int face_failed(size_t i)
{
	int status;

	pthread_mutex_lock(&lock);
	status = cases[i].status;
	pthread_mutex_unlock(&lock);
	return status;
}

static enum bench_status check_active(size_t i, const char *when)
{
	char err[400] = "(no reason given)", why[512];

	if (!active.check(active.ctx, err, sizeof(err)))
		return BENCH_OK;
	snprintf(why, sizeof(why), "fails its check %s: %s", when, err);
	return fail_case(i, BENCH_FAILED, why);
}

int face_enter(size_t i, unsigned int role)
{
	enum bench_status status;
	char err[512];

	if (role == 0 && cases[i].status)
		return cases[i].status; /* refused from the start, with its one thread */
	status = bench_role_enter(&place, role, err, sizeof(err));
	if (status)
		return fail_case(i, status, err);
	entered = true;
	if (role)
		return BENCH_OK;
	status = bench_case_prepare(&cases[i].args, &active, err, sizeof(err));
	if (status)
		return fail_case(i, status, err);
	active_prepared = true;
	return check_active(i, "beforehand");
}

void face_span(size_t i, unsigned int role, uint64_t n)
{
	(void)i;
	bench_waited = 0;
	active.role[role].span(active.ctx, n);
}

int face_leave(size_t i, unsigned int role)
{
	enum bench_status status = BENCH_OK;

	if (role == 0 && active_prepared) {
		if (!face_failed(i))
			status = check_active(i, "afterwards");
		active.teardown(active.ctx);
		active_prepared = false;
	}
	if (entered)
		skb_cpu_detach();
	entered = false;
	/* The library keeps this thread for the next case. */
	if (role == 0)
		sched_setaffinity(0, sizeof(allowed), &allowed);
	return status;
}
