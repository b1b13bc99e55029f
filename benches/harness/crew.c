/* SPDX-License-Identifier: MIT */
#include "benches/harness/crew.h"
#include "benches/harness/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

__thread u64 bench_waited;

/* Spins until W reaches N. An acquire: pairs with the atomic_add_return() or store-release that made it so. */
static void await(const struct crew *crew, struct crew_word *w, int n)
{
	while (atomic_read_acquire(&w->v, SKB_C_OTHER) != n) {
		if (crew->session->shared)
			sched_yield();
		else
			cpu_relax();
	}
}

/*
 * Not inlined: what is below it in a call chain is the timed span, and a profile tells the span from its surroundings
 * by that.
 *
 * The CPU clock is read between the start line and the window: before the line it would book the wait for the others
 * as work, and hide as much lost time later.
 */
__attribute__((noinline)) static void run_role(struct crew_member *m, int batch)
{
	struct crew *crew = m->crew;
	const struct bench_session *s = crew->session;
	const struct bench_role *role = &s->c.role[m->role];
	int nr = (int)s->c.nr_roles;
	u64 cpu;

	bench_waited = 0;
	atomic_add_return(1, &crew->ready.v, SKB_C_OTHER);
	await(crew, &crew->ready, batch * nr);
	cpu = bench_cpu_ns();
	m->time.start_ns = bench_wall_ns();
	role->span(s->c.ctx, crew->n);
	m->time.stop_ns = bench_wall_ns();
	m->time.cpu_ns = bench_cpu_ns() - cpu;
	m->time.waited = bench_waited;
	atomic_add_return(1, &crew->done.v, SKB_C_OTHER);
}

static void take_name(const struct bench_session *s, unsigned int role)
{
	char name[16]; /* as long as a thread's name may be */

	if (!s->named)
		return;
	snprintf(name, sizeof(name), "%.15s", s->c.role[role].name);
	pthread_setname_np(pthread_self(), name);
}

static void *member_main(void *arg)
{
	struct crew_member *m = arg;
	struct crew *crew = m->crew;

	m->status = bench_role_enter(&crew->session->place, m->role, m->err, sizeof(m->err));
	take_name(crew->session, m->role);
	atomic_add_return(1, &crew->done.v, SKB_C_OTHER);
	if (m->status)
		return NULL;
	for (int batch = 1;; batch++) {
		await(crew, &crew->go, batch);
		if (crew->stop)
			break;
		run_role(m, batch);
	}
	skb_cpu_detach();
	return NULL;
}

void crew_batch(struct crew *crew, u64 n, struct role_time *out)
{
	unsigned int nr = crew->session->c.nr_roles;
	int batch = atomic_read(&crew->go.v, SKB_C_OTHER) + 1;

	crew->n = n;
	/* Pairs with await() in member_main(). */
	smp_store_release(&crew->go.v.counter, batch, SKB_C_OTHER);
	run_role(&crew->member[0], batch);
	await(crew, &crew->done, batch * (int)nr);
	for (unsigned int r = 0; r < nr; r++)
		out[r] = crew->member[r].time;
}

/* Ends and joins roles 1 to NR - 1, those of them that run. */
static void end_members(struct crew *crew, unsigned int nr)
{
	int go = atomic_read(&crew->go.v, SKB_C_OTHER);

	crew->stop = true;
	smp_store_release(&crew->go.v.counter, go + 1, SKB_C_OTHER);
	for (unsigned int r = 1; r < nr; r++)
		pthread_join(crew->member[r].thread, NULL);
}

enum bench_status crew_start(struct crew *crew, const struct bench_session *s)
{
	unsigned int nr = s->c.nr_roles, started = 1;
	enum bench_status status;
	char err[512];
	int ret = 0;

	memset(crew, 0, sizeof(*crew));
	crew->session = s;
	status = bench_place_fits(&s->place, nr, err, sizeof(err));
	if (status)
		return bench_fail(status, s->name, "%s", err);
	take_name(s, 0);
	for (unsigned int r = 0; r < nr; r++)
		crew->member[r] = (struct crew_member){ .crew = crew, .role = r };
	for (; started < nr && !ret; started += !ret)
		ret = pthread_create(&crew->member[started].thread, NULL, member_main,
				     &crew->member[started]);
	await(crew, &crew->done, (int)started - 1);
	if (ret)
		status = bench_fail(BENCH_IMPOSSIBLE, s->name, "no thread for role %u: %s", started,
				    strerror(ret));
	for (unsigned int r = 1; r < started && !status; r++)
		if (crew->member[r].status)
			status = bench_fail(crew->member[r].status, s->name, "%s",
					    crew->member[r].err);
	if (status) {
		end_members(crew, started);
		return status;
	}
	atomic_set(&crew->done.v, 0, SKB_C_OTHER);
	return BENCH_OK;
}

void crew_stop(struct crew *crew)
{
	end_members(crew, crew->session->c.nr_roles);
}
