/* SPDX-License-Identifier: MIT */
/*
 * One sample: one process, about a hundred batches of one case, and the low-middle quantiles of those batches in which
 * the roles were shown to run together.
 *
 * What is left to the caller: the pairing and the judgement. Repetitions inside one process are no samples.
 */
#include "benches/harness/clock.h"
#include "benches/harness/control.h"
#include "benches/harness/crew.h"
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/placed.h"
#include "benches/harness/report.h"

#include "skb/page_alloc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MIN_NS 150000
#define BATCH_AIM_NS 200000
#define BATCH_MAX_NS 300000
#define MAX_N	     ((u64)100000000000) /* 0.002 ns an operation */
#define MIN_KEPT     20 /* batches; and half of all */

/* Each kept batch in ns per operation: of the whole, then two rows for each role. */
enum row {
	WALL,
	BUSY,
	CPU,
	ROLE_BUSY,
	ROLE_WAIT = ROLE_BUSY + BENCH_MAX_ROLES,
	NR_ROWS = ROLE_WAIT + BENCH_MAX_ROLES
};

struct sample {
	struct bench_session session;
	struct crew crew;
	u64 n; /* operations that a batch stands for */
	u64 run_n; /* and those that it does: more with --skb_inject */
	unsigned int batches;
	unsigned int kept; /* batches in which the roles ran together */
	unsigned int
		told; /* batches that the rows hold: the kept ones, or all if roles share a CPU */
	double *row[NR_ROWS]; /* room for all batches */
	double whole
		[ROLE_BUSY]; /* WALL, BUSY and CPU of all batches together, kept or not, ns an operation */
	struct bench_report report;
	struct bench_placed placed;
	double kept_wall; /* WALL of the kept batches together */
	struct control control; /* only if listened to */
	bool listened;
	double startup_ms;
};

static u64 shortest_batch(struct crew *crew, u64 n, unsigned int times)
{
	struct role_time t[BENCH_MAX_ROLES];
	u64 best = ~0ull;

	while (times--) {
		crew_batch(crew, n, t);
		best = min(best, batch_wall_ns(t, crew->session->c.nr_roles));
	}
	return best;
}

/*
 * The count that takes 200 us, or the case's least if that takes longer; 0 if even MAX_N operations are over before: then the
 * span does not do what it is told.
 */
static u64 calibrate(struct crew *crew)
{
	u64 least = max(crew->session->c.least_n, (u64)1), n = least;

	for (int round = 0; round < 40; round++) {
		u64 ns = max(shortest_batch(crew, n, 3), (u64)1);
		double scale;

		/* A role that had to wait for its CPU looks like a long operation: make sure before believing it. */
		if (n == least && ns > BATCH_MAX_NS)
			ns = min(ns, max(shortest_batch(crew, n, 20), (u64)1));
		scale = (double)BATCH_AIM_NS / (double)ns;

		if (ns >= BATCH_MIN_NS && (ns <= BATCH_MAX_NS || n == least))
			break;
		if (n == MAX_N && ns < BATCH_MIN_NS)
			return 0;
		/* Short batches say little: approach in steps. */
		n = (u64)((double)n * min(scale, 16.0) + 0.5);
		n = min(max(n, least), MAX_N);
	}
	return n;
}

static enum bench_status no_count(const struct bench_session *s)
{
	return bench_fail(
		BENCH_FAILED, s->name,
		"cannot be calibrated: %llu operations take no time, so its span does not do them",
		(unsigned long long)MAX_N);
}

/* One batch in ns per operation, into ROW. */
static void measure(const struct sample *s, const struct role_time *t, double row[NR_ROWS])
{
	unsigned int nr = s->session.c.nr_roles;
	double tick = bench_tick_ns(), n = (double)s->n;

	row[WALL] = (double)batch_wall_ns(t, nr) / n;
	row[BUSY] = row[CPU] = 0;
	for (unsigned int r = 0; r < nr; r++) {
		double wait = (double)t[r].waited * tick / n;
		/* Never below 0: a role that only waits is told by two clocks that differ by millionths. */
		double busy = fmax((double)(t[r].stop_ns - t[r].start_ns) / n - wait, 0);

		row[ROLE_BUSY + r] = busy;
		row[ROLE_WAIT + r] = wait;
		row[BUSY] += busy;
		row[CPU] += (double)t[r].cpu_ns / n;
	}
}

static void tell(struct sample *s, const double row[NR_ROWS])
{
	unsigned int nr = s->session.c.nr_roles, b = s->told++;

	for (unsigned int i = 0; i < ROLE_BUSY; i++)
		s->row[i][b] = row[i];
	for (unsigned int r = 0; r < nr; r++) {
		s->row[ROLE_BUSY + r][b] = row[ROLE_BUSY + r];
		s->row[ROLE_WAIT + r][b] = row[ROLE_WAIT + r];
	}
}

/* A batch that a profiler is told of, if there is one. */
static enum bench_status timed_batch(struct sample *s, struct role_time *t)
{
	enum bench_status status = s->listened ? control_enable(&s->control) : BENCH_OK;

	if (status)
		return status;
	crew_batch(&s->crew, s->run_n, t);
	return s->listened ? control_disable(&s->control) : BENCH_OK;
}

static enum bench_status run_batches(struct sample *s, unsigned int warmup)
{
	struct role_time t[BENCH_MAX_ROLES];

	/* One more than asked for: the first touches the case's working set. */
	for (unsigned int b = 0; b <= warmup; b++)
		crew_batch(&s->crew, s->run_n, t);
	for (unsigned int b = 0; b < s->batches; b++) {
		double row[NR_ROWS];
		enum bench_status status = timed_batch(s, t);
		bool counts;

		if (status)
			return status;
		measure(s, t, row);
		for (unsigned int i = 0; i < ROLE_BUSY; i++)
			s->whole[i] += row[i] / s->batches;
		counts = batch_counts(t, s->session.c.nr_roles, s->session.c.sleeps);
		s->kept += counts;
		s->kept_wall += counts ? row[WALL] : 0;
		/* Roles on one CPU cannot run together: every batch is told then, and the sample marked. */
		if (counts || s->session.shared)
			tell(s, row);
	}
	for (unsigned int i = 0; i < NR_ROWS; i++)
		sort_values(s->row[i], s->told);
	return BENCH_OK;
}

static void print_quantiles(struct json *j, const char *key, const double *v, unsigned int nr)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {
		{ "p10", .10 }, { "p20", .20 }, { "p33", .33 }, { "p50", .50 }, { "p90", .90 }
	};

	if (!nr) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	for (unsigned int i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_fixed(j, quantiles[i].name, quantile(v, nr, quantiles[i].q), 4);
	json_close(j, '{');
}

/*
 * The whole run, whose every batch stands for the same count: what a pipeline is judged by, since quantiles of short
 * batches hide lumps of deferred work.
 */
static void print_whole(struct json *j, const struct sample *s)
{
	json_open(j, "whole", '{');
	json_fixed(j, "wall", s->whole[WALL], 4);
	json_fixed(j, "cpu", s->whole[CPU], 4);
	json_fixed(j, "busy", s->whole[BUSY], 4);
	json_close(j, '{');
	if (!s->session.c.by_wall)
		return;
	json_open(j, "kept_run", '{');
	if (s->kept)
		json_fixed(j, "wall", s->kept_wall / s->kept, 4);
	else
		json_null(j, "wall");
	json_close(j, '{');
}

static void print_place(struct json *j, const struct sample *s)
{
	const struct bench_session *ses = &s->session;
	unsigned int used = min(ses->place.cpus.nr, ses->c.nr_roles);

	json_str(j, "allocator", bench_args_alloc(&ses->args));
	json_str(j, "backing", page_alloc_backing());
	json_bool(j, "bound", page_alloc_bound());
	json_open(j, "cpus", '[');
	for (unsigned int i = 0; i < used; i++)
		json_long(j, NULL, ses->place.cpus.cpu[i]);
	json_close(j, '[');
	json_bool(j, "oversubscribed", ses->shared);
	bench_placed_print(j, ses, &s->placed);
}

static void print_roles(struct json *j, const struct sample *s, unsigned int nr_values)
{
	const struct bench_session *ses = &s->session;

	json_open(j, "roles", '[');
	for (unsigned int r = 0; r < ses->c.nr_roles; r++) {
		json_open(j, NULL, '{');
		json_str(j, "name", ses->c.role[r].name);
		json_long(j, "cpu", bench_place_cpu(&ses->place, r));
		json_long(j, "node", bench_place_node(&ses->place, r));
		if (nr_values) {
			json_fixed(j, "busy_p33", quantile(s->row[ROLE_BUSY + r], nr_values, .33),
				   4);
			json_fixed(j, "wait_p33", quantile(s->row[ROLE_WAIT + r], nr_values, .33),
				   4);
		} else {
			json_null(j, "busy_p33");
			json_null(j, "wait_p33");
		}
		json_close(j, '{');
	}
	json_close(j, '[');
}

static enum bench_status print_sample(const struct sample *s, const struct bench_options *o)
{
	bool measured = s->kept >= MIN_KEPT && s->kept * 2 >= s->batches;
	unsigned int nr = s->session.shared || measured ? s->told : 0;
	const char *pad = getenv("SKB_PAD");
	struct json j = { .f = stdout };
	char reason[256];

	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-sample-1");
	json_str(&j, "name", s->session.name);
	json_long(&j, "n", (long long)s->n);
	json_long(&j, "batches", s->batches);
	json_long(&j, "kept", s->kept);
	if (s->session.shared) {
		snprintf(reason, sizeof(reason), "%u roles took turns on %u CPU%s",
			 s->session.c.nr_roles, s->session.place.cpus.nr,
			 s->session.place.cpus.nr > 1 ? "s" : "");
		json_str(&j, "status", "oversubscribed");
		json_str(&j, "reason", reason);
	} else if (!measured) {
		snprintf(reason, sizeof(reason),
			 "the roles had their CPUs and ran together in %u of %u batches; half of "
			 "them and at least %u are needed",
			 s->kept, s->batches, MIN_KEPT);
		json_str(&j, "status", "unmeasured");
		json_str(&j, "reason", reason);
	} else {
		json_str(&j, "status", "ok");
		json_null(&j, "reason");
	}
	json_str(&j, "unit", "ns");
	json_str(&j, "value",
		 !s->session.c.pipeline ? "busy.p33"
		 : s->session.c.by_wall ? "kept_run.wall"
					: "whole.cpu");
	print_quantiles(&j, "wall", s->row[WALL], nr);
	print_quantiles(&j, "busy", s->row[BUSY], nr);
	print_quantiles(&j, "cpu", s->row[CPU], nr);
	print_whole(&j, s);
	print_roles(&j, s, nr);
	json_long(&j, "bytes_per_op", (long long)s->session.c.bytes_per_op);
	json_long(&j, "ops", (long long)max(s->session.c.ops, (u64)1));
	print_place(&j, s);
	json_fixed(&j, "inject", (double)o->inject_milli / 1000, 3);
	json_fixed(&j, "tick_ns", bench_tick_ns(), 6);
	json_fixed(&j, "startup_ms", s->startup_ms, 3);
	if (pad)
		json_long(&j, "env_pad", (long long)strlen(pad));
	else
		json_null(&j, "env_pad");
	bench_report_print(&j, &s->report);
	if (s->listened) {
		json_open(&j, "control", '{');
		json_long(&j, "pairs", (long long)s->control.pairs);
		json_fixed(&j, "ns_per_pair",
			   (double)s->control.ns / (double)max(s->control.pairs, (u64)1), 0);
		json_close(&j, '{');
	}
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}

static bool alloc_rows(struct sample *s)
{
	double *all = calloc((size_t)NR_ROWS * s->batches, sizeof(*all));

	for (unsigned int i = 0; all && i < NR_ROWS; i++)
		s->row[i] = all + (size_t)i * s->batches;
	return all;
}

static enum bench_status take_sample(struct sample *s, const struct bench_options *o, u64 start_ns)
{
	enum bench_status status = crew_start(&s->crew, &s->session);

	if (status)
		return status;
	s->startup_ms = (double)(bench_wall_ns() - start_ns) / 1e6;
	s->n = o->n ? o->n : calibrate(&s->crew);
	if (s->n) {
		s->run_n =
			s->n + (u64)(((unsigned __int128)s->n * o->inject_milli + 99999) / 100000);
		status = run_batches(s, o->warmup);
	} else {
		status = no_count(&s->session);
	}
	crew_stop(&s->crew);
	return status;
}

enum bench_status bench_sample(const struct bench_options *o)
{
	static struct sample s; /* its crew is shared with other threads: not on this stack */
	u64 start_ns = bench_wall_ns();
	enum bench_status status;

	s.batches = o->batches;
	if (!alloc_rows(&s))
		return bench_fail(BENCH_IMPOSSIBLE, o->name, "no memory for %u batches", s.batches);
	if (o->control) {
		status = control_open(&s.control, o->control, o->name);
		if (status)
			goto out;
		s.listened = true;
	}
	status = bench_session_open(&s.session, o);
	if (!status) {
		s.session.named = s.listened;
		status = take_sample(&s, o, start_ns);
		bench_report_take(&s.report, &s.session.c);
		bench_placed_look(&s.session, &s.placed);
		status = bench_session_close(&s.session, status);
	}
	if (!status)
		status = print_sample(&s, o);
	if (s.listened)
		control_close(&s.control);
out:
	free(s.row[0]);
	return status;
}

enum bench_status bench_calibrate(const struct bench_options *o)
{
	static struct bench_session s;
	static struct crew crew;
	struct json j = { .f = stdout };
	enum bench_status status = bench_session_open(&s, o);
	u64 n = 0;

	if (status)
		return status;
	status = crew_start(&crew, &s);
	if (!status) {
		n = calibrate(&crew);
		crew_stop(&crew);
		if (!n)
			status = no_count(&s);
	}
	status = bench_session_close(&s, status);
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "name", s.name);
	json_long(&j, "n", (long long)n);
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
