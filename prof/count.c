/* SPDX-License-Identifier: MIT */
#include "prof/count.h"

#include <errno.h>
#include <perf/core.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An open counter: one event on one PMU, on every thread. */
struct open_counter {
	struct perf_evsel *evsel;
	struct perf_evlist *list; /* its group, which it may be alone in */
	bool leads;
	bool user_only;
};

struct prof_session {
	const struct prof_machine *m;
	struct prof_list *list;
	struct perf_thread_map *threads;
	unsigned int nr_threads, nr_open;
	bool inherit;
	bool user_only; /* for lack of rights */
	struct open_counter counter[PROF_MAX_EVENTS][PROF_MAX_CPU_PMUS];
};

static int say_nothing(enum libperf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* --- reasons ------------------------------------------------------------------------------------------------- */

static bool is_software(const struct prof_event *e)
{
	return e->nr_counters && e->counter[0].type == PERF_TYPE_SOFTWARE;
}

static void why_not_here(const struct prof_machine *m, const struct prof_event *e, char *out)
{
	if (is_software(e))
		snprintf(out, PROF_REASON_MAX, "not on this machine: its kernel has no such event");
	else if (m->nr_cpu_pmus)
		snprintf(out, PROF_REASON_MAX,
			 "not on this machine: this CPU's PMU%s has no such event",
			 m->hypervisor ? ", as the hypervisor passes it on," : "");
	else if (m->hypervisor)
		snprintf(out, PROF_REASON_MAX,
			 "not on this machine: its hypervisor passes no PMU on; use bare metal, or "
			 "have the hypervisor give this guest a virtual PMU");
	else
		snprintf(out, PROF_REASON_MAX,
			 "not on this machine: the kernel knows no PMU of this CPU");
}

/* Rights come from three places; the sentence names the one that is missing. */
static void why_not_allowed(const struct prof_machine *m, char *out)
{
	if (m->perfmon || (m->paranoid != PROF_UNKNOWN && m->paranoid <= 1))
		snprintf(out, PROF_REASON_MAX,
			 "not allowed although %s: a container's seccomp profile or a security "
			 "module forbids perf_event_open; start the container with --cap-add "
			 "PERFMON and --security-opt seccomp=unconfined",
			 m->perfmon ? "this process has CAP_PERFMON"
				    : "kernel.perf_event_paranoid allows it");
	else if (m->paranoid == PROF_UNKNOWN)
		snprintf(out, PROF_REASON_MAX,
			 "not allowed: this process lacks CAP_PERFMON; run as root");
	else
		snprintf(out, PROF_REASON_MAX,
			 "not allowed: kernel.perf_event_paranoid is %ld and this process lacks "
			 "CAP_PERFMON; as root, sysctl kernel.perf_event_paranoid=1",
			 m->paranoid);
}

void prof_why(const struct prof_machine *m, const struct prof_event *e, bool user_only, int err,
	      char *out)
{
	struct rlimit files = { 0 };

	switch (err) {
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
	case ENXIO:
		why_not_here(m, e, out);
		break;
	case EACCES:
	case EPERM:
		why_not_allowed(m, out);
		break;
	case ENOSYS:
		snprintf(out, PROF_REASON_MAX,
			 "not allowed: the system call perf_event_open is not there; a container's "
			 "seccomp profile hides it (--security-opt seccomp=unconfined), or the "
			 "kernel has no CONFIG_PERF_EVENTS");
		break;
	case EINVAL:
		if (user_only)
			snprintf(out, PROF_REASON_MAX,
				 "it cannot leave out the kernel, and this process may count user "
				 "space only (kernel.perf_event_paranoid %ld); run as root",
				 m->paranoid);
		else
			snprintf(out, PROF_REASON_MAX,
				 "not on this machine: the PMU refuses this combination of event "
				 "and settings");
		break;
	case ENOSPC:
		snprintf(out, PROF_REASON_MAX,
			 "too many for the PMU: no counter is left that could hold it");
		break;
	case EBUSY:
		snprintf(out, PROF_REASON_MAX,
			 "the PMU is in use by somebody else: end other profilers, and as root, "
			 "sysctl kernel.nmi_watchdog=0");
		break;
	case EMFILE:
	case ENFILE:
		getrlimit(RLIMIT_NOFILE, &files);
		snprintf(out, PROF_REASON_MAX,
			 "too many open files: ask for fewer events, or raise ulimit -n, which is "
			 "%llu",
			 (unsigned long long)files.rlim_cur);
		break;
	case ESRCH:
		snprintf(out, PROF_REASON_MAX, "the thread ended before it could be counted");
		break;
	case ENOMEM:
		snprintf(out, PROF_REASON_MAX, "the kernel has no memory for it");
		break;
	case E2BIG:
		snprintf(out, PROF_REASON_MAX,
			 "this kernel is too old for the way in which it is asked for");
		break;
	default:
		snprintf(out, PROF_REASON_MAX, "the kernel refuses it: %s", strerror(err));
	}
}

/* --- opening ------------------------------------------------------------------------------------------------- */

static struct perf_event_attr attr_of(const struct prof_session *s, const struct prof_event *e,
				      const struct prof_counter *c, bool leads, bool user_only)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = c->type,
		.config = c->config,
		.config1 = c->config1,
		.config2 = c->config2,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		/* A group follows its leader. */
		.disabled = leads,
		.inherit = s->inherit,
		.enable_on_exec = s->inherit && leads,
		.exclude_kernel = e->user || user_only,
		.exclude_hv = e->user || user_only,
		.exclude_user = e->kernel,
	};
}

/* Opens C as a member of the group LIST, or as the first: 0 or -errno. */
static int open_in(struct prof_session *s, const struct prof_event *e, const struct prof_counter *c,
		   struct perf_evlist *list, bool user_only, struct open_counter *out)
{
	bool leads = !perf_evlist__next(list, NULL);
	struct perf_event_attr attr = attr_of(s, e, c, leads, user_only);
	struct perf_evsel *evsel = perf_evsel__new(&attr);
	int ret;

	if (!evsel)
		return -ENOMEM;
	perf_evlist__add(list, evsel);
	perf_evlist__set_leader(list);
	ret = perf_evsel__open(evsel, NULL, s->threads);
	if (ret) {
		perf_evlist__remove(list, evsel);
		perf_evsel__delete(evsel);
		return ret;
	}
	*out = (struct open_counter){ evsel, list, leads, user_only };
	return 0;
}

static int open_alone(struct prof_session *s, const struct prof_event *e,
		      const struct prof_counter *c, bool user_only, struct open_counter *out)
{
	struct perf_evlist *list = perf_evlist__new();
	int ret = list ? open_in(s, e, c, list, user_only, out) : -ENOMEM;

	if (ret && list)
		perf_evlist__delete(list);
	return ret;
}

/* The open group that counter J of event I belongs in, or NULL: it becomes the first of one. */
static struct perf_evlist *group_of(const struct prof_session *s, unsigned int i, unsigned int j)
{
	const struct prof_event *e = &s->list->event[i];

	if (e->group == PROF_ALONE)
		return NULL;
	for (unsigned int k = 0; k < i; k++) {
		const struct prof_event *o = &s->list->event[k];

		/* Those of a group count the same part of the program. */
		if (o->group != e->group || o->user != e->user || o->kernel != e->kernel)
			continue;
		for (unsigned int l = 0; l < o->nr_counters; l++)
			if (s->counter[k][l].evsel && s->counter[k][l].leads &&
			    !strcmp(o->counter[l].pmu, e->counter[j].pmu))
				return s->counter[k][l].list;
	}
	return NULL;
}

/* A group may be too large for the PMU, whose error is the same as for an event that it does not know: try both. */
static int open_counter(struct prof_session *s, unsigned int i, unsigned int j, bool user_only)
{
	const struct prof_event *e = &s->list->event[i];
	struct perf_evlist *group = group_of(s, i, j);
	int ret = group ? open_in(s, e, &e->counter[j], group, user_only, &s->counter[i][j])
			: -EINVAL;

	if (ret == -EINVAL || ret == -ENOSPC)
		ret = open_alone(s, e, &e->counter[j], user_only, &s->counter[i][j]);
	return ret;
}

/* Counts that are made in the kernel are 0 for a process that may not look there, which would be a lie. */
static bool kernel_only(const struct prof_event *e)
{
	return is_software(e) && (e->counter[0].config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
				  e->counter[0].config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

/* The last of a group to be opened, or all of it with its leader at the end. */
static void close_counter(struct open_counter *c)
{
	perf_evsel__close(c->evsel);
	perf_evlist__remove(c->list, c->evsel);
	perf_evsel__delete(c->evsel);
	if (c->leads)
		perf_evlist__delete(c->list);
	c->evsel = NULL;
}

static void close_event(struct prof_session *s, unsigned int i)
{
	for (unsigned int j = 0; j < s->list->event[i].nr_counters; j++)
		if (s->counter[i][j].evsel)
			close_counter(&s->counter[i][j]);
}

/* All counters of an event, or none: on a hybrid CPU half of them would be a wrong number. 0 or -errno. */
static int open_event(struct prof_session *s, unsigned int i, bool user_only)
{
	const struct prof_event *e = &s->list->event[i];
	int ret = 0;

	for (unsigned int j = 0; j < e->nr_counters && !ret; j++)
		ret = open_counter(s, i, j, user_only);
	if (ret)
		close_event(s, i);
	return ret;
}

static void try_event(struct prof_session *s, unsigned int i)
{
	struct prof_event *e = &s->list->event[i];
	bool user_only = s->user_only && !e->kernel;
	int ret = open_event(s, i, user_only);

	/* Without the right to look into the kernel, user space may still be allowed: then for all that follow. */
	if ((ret == -EACCES || ret == -EPERM) && !user_only && !e->user && !e->kernel) {
		int again = open_event(s, i, true);

		if (!again || again == -EINVAL) {
			s->user_only = user_only = true;
			ret = again;
		}
	}
	if (ret) {
		prof_why(s->m, e, user_only, -ret, e->refused);
		return;
	}
	if (kernel_only(e) && (user_only || e->user)) {
		close_event(s, i);
		snprintf(e->refused, sizeof(e->refused),
			 "it happens in the kernel, and user space alone is counted%s",
			 user_only ? ": as root, sysctl kernel.perf_event_paranoid=1" : "");
		return;
	}
	s->nr_open++;
}

struct prof_session *prof_open(const struct prof_machine *m, struct prof_list *list,
			       const pid_t *tid, unsigned int nr, bool inherit)
{
	struct prof_session *s = calloc(1, sizeof(*s));
	pid_t map[PROF_MAX_THREADS];

	if (!s)
		return NULL;
	libperf_init(say_nothing);
	s->m = m;
	s->list = list;
	s->nr_threads = min(nr, (unsigned int)PROF_MAX_THREADS);
	s->inherit = inherit;
	memcpy(map, tid, s->nr_threads * sizeof(*map));
	s->threads = perf_thread_map__new_array((int)s->nr_threads, map);
	if (!s->threads) {
		free(s);
		return NULL;
	}
	for (unsigned int i = 0; i < list->nr; i++)
		if (!*list->event[i].refused)
			try_event(s, i);
	return s;
}

unsigned int prof_nr_open(const struct prof_session *s)
{
	return s->nr_open;
}

bool prof_user_only(const struct prof_session *s)
{
	return s->user_only;
}

/* Through its leader a whole group goes on and off at once. */
static void switch_all(struct prof_session *s, int (*how)(struct perf_evsel *evsel))
{
	for (unsigned int i = 0; i < s->list->nr; i++)
		for (unsigned int j = 0; j < s->list->event[i].nr_counters; j++)
			if (s->counter[i][j].evsel && s->counter[i][j].leads)
				how(s->counter[i][j].evsel);
}

void prof_enable(struct prof_session *s)
{
	switch_all(s, perf_evsel__enable);
}

void prof_disable(struct prof_session *s)
{
	switch_all(s, perf_evsel__disable);
}

/* --- results ------------------------------------------------------------------------------------------------- */

double prof_scaled(const struct prof_count *c)
{
	if (!c->running)
		return 0;
	if (c->running >= c->enabled)
		return (double)c->raw;
	return (double)c->raw * (double)c->enabled / (double)c->running;
}

/*
 * Adds what counter J of event I has on thread T. On a hybrid CPU each kind of core is on while its own CPUs run the
 * thread, and enabled all the time: raw counts and running times add up, the enabled time is the same.
 */
static int add_thread(struct prof_session *s, unsigned int i, unsigned int j, unsigned int t,
		      struct prof_count *to)
{
	struct perf_counts_values v;
	int ret = perf_evsel__read(s->counter[i][j].evsel, 0, (int)t, &v);

	if (ret)
		return ret;
	to->raw += v.val;
	to->running += v.run;
	to->enabled = max(to->enabled, (u64)v.ena);
	return 0;
}

void prof_result(struct prof_session *s, unsigned int i, struct prof_result *out)
{
	const struct prof_event *e = &s->list->event[i];

	memset(out, 0, sizeof(*out));
	if (*e->refused) {
		snprintf(out->reason, sizeof(out->reason), "%s", e->refused);
		return;
	}
	out->user_only = e->user || s->counter[i][0].user_only;
	for (unsigned int t = 0; t < s->nr_threads; t++) {
		struct prof_count *c = &out->thread[t];

		for (unsigned int j = 0; j < e->nr_counters; j++) {
			errno = 0;
			if (!add_thread(s, i, j, t, c))
				continue;
			snprintf(out->reason, sizeof(out->reason), "its count cannot be read: %s",
				 errno ? strerror(errno) : "the kernel gave the event up");
			return;
		}
		out->all.raw += c->raw;
		out->all.enabled += c->enabled;
		out->all.running += c->running;
		/* Each thread by its own times: one thread's share says nothing of another's. */
		out->value += prof_scaled(c) * e->scale;
		out->scaled |= c->running && c->running < c->enabled;
		if (c->enabled && !c->running)
			snprintf(out->reason, sizeof(out->reason),
				 "too many for the PMU: it never got a counter; ask for fewer "
				 "events, and as root, sysctl kernel.nmi_watchdog=0");
	}
	if (!*out->reason && !out->all.enabled)
		snprintf(out->reason, sizeof(out->reason), "it was never switched on");
}

void prof_close(struct prof_session *s)
{
	for (int leads = 0; leads < 2; leads++)
		for (unsigned int i = 0; i < s->list->nr; i++)
			for (unsigned int j = 0; j < s->list->event[i].nr_counters; j++)
				if (s->counter[i][j].evsel && s->counter[i][j].leads == leads)
					close_counter(&s->counter[i][j]);
	perf_thread_map__put(s->threads);
	free(s);
}

/* --- sampling ------------------------------------------------------------------------------------------------ */

static const struct candidate {
	const char *event;
	u32 type;
	u64 config;
	unsigned int precise;
} candidates[] = {
	{ "cycles:ppp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 3 },
	{ "cycles:pp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 2 },
	{ "cycles:p", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1 },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0 },
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0 },
};

#define SAMPLING_PAGES	   128 /* 512 KB a buffer, what perf record asks for as a user */
#define SAMPLING_PAGES_MIN 8

/* A buffer of PAGES for EVSEL, and no more than tried: 0 or -errno. */
static int try_mmap(struct perf_evsel *evsel, int pages)
{
	int ret = perf_evsel__mmap(evsel, pages);

	if (!ret)
		perf_evsel__munmap(evsel);
	else if (ret == -1)
		ret = -errno; /* what libperf 6.1 returns for mmap() itself */
	return ret;
}

static void why_no_buffer(const struct prof_machine *m, int err, char *out)
{
	if (err == EPERM || err == EAGAIN || err == ENOMEM)
		snprintf(out, PROF_REASON_MAX,
			 "a buffer of %ld KB for each CPU cannot be mapped: the allowance "
			 "kernel.perf_event_mlock_kb is %ld KB for each CPU; end other profilers, "
			 "or as root, sysctl kernel.perf_event_mlock_kb=%ld",
			 SAMPLING_PAGES_MIN * sysconf(_SC_PAGESIZE) / 1024, m->mlock_kb,
			 max(m->mlock_kb, 0L) + SAMPLING_PAGES * sysconf(_SC_PAGESIZE) / 1024 + 4);
	else
		snprintf(out, PROF_REASON_MAX, "its buffer cannot be mapped: %s", strerror(err));
}

static int open_sampling(const struct candidate *c, bool user_only, struct perf_evsel **out)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = c->type,
		.config = c->config,
		.precise_ip = c->precise,
		.freq = 1,
		.sample_freq = 999,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.exclude_kernel = user_only,
		.exclude_hv = user_only,
	};
	struct perf_thread_map *self = perf_thread_map__new_dummy();
	struct perf_evsel *evsel = perf_evsel__new(&attr);
	int ret = -ENOMEM;

	if (self && evsel) {
		perf_thread_map__set_pid(self, 0, 0);
		ret = perf_evsel__open(evsel, NULL, self);
	}
	perf_thread_map__put(self);
	if (ret && evsel)
		perf_evsel__delete(evsel);
	*out = ret ? NULL : evsel;
	return ret;
}

void prof_sampling_probe(const struct prof_machine *m, struct prof_sampling *out)
{
	*out = (struct prof_sampling){ .event = NULL };
	libperf_init(say_nothing);
	for (unsigned int i = 0; i < ARRAY_SIZE(candidates) && !out->event; i++) {
		const struct candidate *c = &candidates[i];
		const struct prof_event like = { .nr_counters = 1,
						 .counter = { { .type = c->type } } };
		bool user_only = false;
		struct perf_evsel *evsel;
		int ret = open_sampling(c, false, &evsel);

		if (ret == -EACCES || ret == -EPERM) {
			user_only = true;
			ret = open_sampling(c, true, &evsel);
		}
		if (ret) {
			prof_why(m, &like, user_only, -ret, out->reason);
		} else {
			for (int pages = SAMPLING_PAGES; pages >= SAMPLING_PAGES_MIN && !out->event;
			     pages /= 2) {
				ret = try_mmap(evsel, pages);
				if (ret)
					continue;
				out->event = c->event;
				out->user_only = user_only;
				out->mmap_kb = (unsigned int)(pages * sysconf(_SC_PAGESIZE) / 1024);
				*out->reason = '\0';
			}
			if (!out->event)
				why_no_buffer(m, -ret, out->reason);
			perf_evsel__close(evsel);
			perf_evsel__delete(evsel);
		}
		if (!out->event && c->type == PERF_TYPE_HARDWARE)
			memcpy(out->cycles_reason, out->reason, sizeof(out->reason));
	}
}
