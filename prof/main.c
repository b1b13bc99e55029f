/* SPDX-License-Identifier: MIT */
/*
 * skb-prof: counts events of a program, whole or only while the program says that it is timed.
 *
 * The sources here are MIT. libperf, which this program is linked with, says GPL-2.0 in its sources: as a program
 * skb-prof is GPL-2.0, and it is never linked with Google Benchmark, whose Apache-2.0 does not go with that.
 *
 *   skb-prof -- COMMAND                        what COMMAND and all its threads do, from its exec on
 *   skb-prof --control CTL,ACK -- COMMAND      what the threads do that COMMAND has when it first says "enable",
 *                                              each thread for itself, between "enable" and "disable"
 */
#include "benches/harness/json.h"
#include "prof/count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PROF_VERSION
#define PROF_VERSION "unknown"
#endif
#ifndef PROF_LIBPERF
#define PROF_LIBPERF "unknown"
#endif

enum { EXIT_USAGE = 2, EXIT_IMPOSSIBLE = 4, EXIT_BROKEN = 5 };

struct options {
	const char *events; /* NULL: the default list */
	const char *control; /* CTL,ACK; NULL: the whole command */
	const char *json; /* NULL: a table on stderr */
	const char *root;
	bool probe;
};

struct run {
	const struct options *o;
	const struct prof_machine *m;
	struct prof_list list;
	struct prof_session *session;
	pid_t pid;
	pid_t tid[PROF_MAX_THREADS];
	char comm[PROF_MAX_THREADS][16];
	unsigned int nr_threads, unseen; /* unseen: threads that came later */
	u64 switches, switch_ns; /* pairs of enable and disable, and what they took */
	double user_s, system_s; /* CPU time of the process over the part that was counted */
	int status; /* of the command, as waitpid() tells */
};

static int fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("skb-prof: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* --- the command --------------------------------------------------------------------------------------------- */

/* Starts ARGV in a child that waits until GO is closed. Its pid, or -1. */
static pid_t start(char **argv, int *go)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		char byte;

		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		execvp(argv[0], argv);
		fprintf(stderr, "skb-prof: %s cannot be run: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The threads that PID has, oldest first; at most PROF_MAX_THREADS are kept of the number returned. */
static unsigned int threads_of(pid_t pid, pid_t *out)
{
	char path[64];
	struct dirent *entry;
	unsigned int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (out && nr < PROF_MAX_THREADS)
			out[nr] = tid;
		nr++;
	}
	if (dir)
		closedir(dir);
	if (out)
		qsort(out, min(nr, (unsigned int)PROF_MAX_THREADS), sizeof(*out), by_number);
	return nr;
}

static void read_line(const char *path, char *out, size_t len)
{
	FILE *f = fopen(path, "re");

	*out = '\0';
	if (!f)
		return;
	if (fgets(out, (int)len, f))
		out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

static void find_threads(struct run *r)
{
	unsigned int nr = threads_of(r->pid, r->tid);

	r->nr_threads = min(nr, (unsigned int)PROF_MAX_THREADS);
	r->unseen = nr - r->nr_threads;
	for (unsigned int t = 0; t < r->nr_threads; t++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", r->pid, r->tid[t]);
		read_line(path, r->comm[t], sizeof(r->comm[t]));
	}
}

/* User and system seconds of the process so far, by its stat file: in steps of a clock tick. */
static void cpu_time_of(pid_t pid, double *user, double *system)
{
	char path[64], line[1024];
	unsigned long u = 0, s = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_line(path, line, sizeof(line));
	at = strrchr(line, ')'); /* the name before may hold anything */
	if (at &&
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &u, &s) == 2) {
		*user = (double)u / (double)sysconf(_SC_CLK_TCK);
		*system = (double)s / (double)sysconf(_SC_CLK_TCK);
	}
}

/* --- perf's control protocol, from the profiler's side ------------------------------------------------------- */

struct control {
	int ctl, ack;
	double user_s, system_s; /* at the first "enable" */
};

static int control_open(const char *paths, struct control *c)
{
	const char *comma = strchr(paths, ',');
	char ctl[PATH_MAX];

	if (!comma || comma == paths || !comma[1] || comma - paths >= (long)sizeof(ctl))
		return fail(EXIT_USAGE, "--control needs the names of two FIFOs, CTL,ACK");
	snprintf(ctl, sizeof(ctl), "%.*s", (int)(comma - paths), paths);
	/* Both ends of both: neither side waits for the other, and no writer that ends is the end of it. */
	c->ctl = open(ctl, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->ctl < 0)
		return fail(EXIT_USAGE, "%s: %s", ctl, strerror(errno));
	c->ack = open(comma + 1, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->ack < 0)
		return fail(EXIT_USAGE, "%s: %s", comma + 1, strerror(errno));
	return 0;
}

/* One word of the command, without its newline; false if none has come yet. */
static bool next_word(int fd, char *out, size_t len)
{
	size_t have = 0;
	char byte;

	while (read(fd, &byte, 1) == 1) {
		if (byte == '\n') {
			out[have] = '\0';
			return true;
		}
		if (have < len - 1)
			out[have++] = byte;
	}
	return false;
}

static int first_enable(struct run *r, struct control *c)
{
	find_threads(r);
	cpu_time_of(r->pid, &c->user_s, &c->system_s);
	r->session = prof_open(r->m, &r->list, r->tid, r->nr_threads, false);
	return r->session ? 0 : fail(EXIT_IMPOSSIBLE, "no memory for the events");
}

static int obey(struct run *r, struct control *c, const char *word)
{
	bool on = !strcmp(word, "enable");
	unsigned int threads;
	u64 begin;

	if (!on && strcmp(word, "disable"))
		return fail(EXIT_BROKEN, "the command says '%s' instead of enable or disable",
			    word);
	if (on && !r->session && first_enable(r, c))
		return EXIT_IMPOSSIBLE;
	begin = now_ns();
	if (r->session && on)
		prof_enable(r->session);
	else if (r->session)
		prof_disable(r->session);
	r->switch_ns += now_ns() - begin;
	r->switches += on;
	if (!on && r->session) {
		threads = threads_of(r->pid, NULL);
		if (threads > r->nr_threads)
			r->unseen = max(r->unseen, threads - r->nr_threads);
		cpu_time_of(r->pid, &r->user_s, &r->system_s);
	}
	if (write(c->ack, "ack\n", 5) != 5)
		return fail(EXIT_BROKEN, "the answer to '%s' cannot be written", word);
	return 0;
}

/* Does what the command says until it ends. */
static int serve(struct run *r, struct control *c)
{
	struct pollfd p = { .fd = c->ctl, .events = POLLIN };
	char word[32];
	int ret = 0;

	while (waitpid(r->pid, &r->status, WNOHANG) == 0) {
		if (poll(&p, 1, 20) <= 0 || !next_word(c->ctl, word, sizeof(word)))
			continue;
		ret = obey(r, c, word);
		if (ret) {
			kill(r->pid, SIGKILL);
			waitpid(r->pid, &r->status, 0);
			break;
		}
	}
	r->user_s -= c->user_s;
	r->system_s -= c->system_s;
	return ret;
}

static int count_controlled(struct run *r, char **argv)
{
	struct control c;
	int go, ret = control_open(r->o->control, &c);

	if (ret)
		return ret;
	r->pid = start(argv, &go);
	if (r->pid < 0)
		return fail(EXIT_IMPOSSIBLE, "no process: %s", strerror(errno));
	close(go);
	ret = serve(r, &c);
	if (!ret && !r->session && WIFEXITED(r->status) && !WEXITSTATUS(r->status))
		return fail(EXIT_BROKEN, "the command never said when it was timed");
	return ret;
}

static int count_whole(struct run *r, char **argv)
{
	struct rusage used;
	int go;

	r->pid = start(argv, &go);
	if (r->pid < 0)
		return fail(EXIT_IMPOSSIBLE, "no process: %s", strerror(errno));
	r->tid[0] = r->pid;
	r->nr_threads = 1;
	snprintf(r->comm[0], sizeof(r->comm[0]), "all");
	r->session = prof_open(r->m, &r->list, r->tid, 1, true);
	if (!r->session) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, &r->status, 0);
		return fail(EXIT_IMPOSSIBLE, "no memory for the events");
	}
	close(go);
	while (wait4(r->pid, &r->status, 0, &used) < 0 && errno == EINTR)
		;
	r->user_s = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
	r->system_s = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
	return 0;
}

/* --- what it says -------------------------------------------------------------------------------------------- */

static void print_kernel_names(struct json *j, const struct prof_machine *m)
{
	char why[PROF_REASON_MAX];

	json_open(j, "kernel_names", '{');
	json_bool(j, "available", m->kernel_names);
	if (m->kernel_names) {
		json_null(j, "reason");
	} else {
		snprintf(why, sizeof(why),
			 "kernel names not available (kptr_restrict=%ld, perf_event_paranoid=%ld): "
			 "as root, sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
			 m->kptr_restrict, m->paranoid);
		json_str(j, "reason", why);
	}
	json_close(j, '{');
}

static void print_number_or_null(struct json *j, const char *key, long value)
{
	if (value == PROF_UNKNOWN)
		json_null(j, key);
	else
		json_long(j, key, value);
}

static void print_machine(struct json *j, const struct prof_machine *m)
{
	json_open(j, "machine", '{');
	print_number_or_null(j, "perf_event_paranoid", m->paranoid);
	print_number_or_null(j, "kptr_restrict", m->kptr_restrict);
	print_number_or_null(j, "perf_event_mlock_kb", m->mlock_kb);
	json_bool(j, "cap_perfmon", m->perfmon);
	json_bool(j, "hypervisor", m->hypervisor);
	json_open(j, "cpu_pmus", '[');
	for (unsigned int i = 0; i < m->nr_cpu_pmus; i++)
		json_str(j, NULL, m->cpu_pmu[i].name);
	json_close(j, '[');
	json_close(j, '{');
	print_kernel_names(j, m);
}

static void print_count(struct json *j, const struct prof_count *c)
{
	json_long(j, "raw", (long long)c->raw);
	json_long(j, "enabled_ns", (long long)c->enabled);
	json_long(j, "running_ns", (long long)c->running);
}

static void event_label(const struct prof_event *e, const struct prof_result *res, char *out,
			size_t len)
{
	snprintf(out, len, "%s%s", e->name, res->user_only ? ":u" : e->kernel ? ":k" : "");
}

static void print_event(struct json *j, struct run *r, unsigned int i,
			const struct prof_result *res)
{
	const struct prof_event *e = &r->list.event[i];
	char label[128];

	event_label(e, res, label, sizeof(label));
	json_open(j, NULL, '{');
	json_str(j, "name", e->name);
	json_str(j, "label", label);
	json_str(j, "meaning", *e->meaning ? e->meaning : NULL);
	json_bool(j, "user_only", res->user_only);
	if (*res->reason) {
		json_str(j, "status", "refused");
		json_str(j, "reason", res->reason);
		json_null(j, "value");
	} else {
		json_str(j, "status", res->scaled ? "scaled" : "ok");
		json_null(j, "reason");
		json_fixed(j, "value", res->value, 1);
		json_fixed(j, "scale", e->scale, 6);
		print_count(j, &res->all);
		json_open(j, "threads", '[');
		for (unsigned int t = 0; t < r->nr_threads; t++) {
			json_open(j, NULL, '{');
			json_long(j, "tid", r->tid[t]);
			json_str(j, "name", r->comm[t]);
			json_fixed(j, "value", prof_scaled(&res->thread[t]) * e->scale, 1);
			print_count(j, &res->thread[t]);
			json_close(j, '{');
		}
		json_close(j, '[');
	}
	json_close(j, '{');
}

static double system_share(const struct run *r)
{
	double all = r->user_s + r->system_s;

	return all > 0 ? r->system_s / all : 0;
}

static void print_json(FILE *f, struct run *r, const struct prof_result *res)
{
	struct json j = { .f = f };

	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skb-prof-1");
	json_str(&j, "program", "skb-prof " PROF_VERSION " (GPL-2.0), libperf of " PROF_LIBPERF);
	json_str(&j, "region", r->o->control ? "what the command says" : "the whole command");
	json_bool(&j, "user_only", prof_user_only(r->session));
	json_fixed(&j, "system_share", system_share(r), 4);
	print_machine(&j, r->m);
	json_str(&j, "note", *r->list.note ? r->list.note : NULL);
	json_long(&j, "threads_not_counted", r->unseen);
	json_open(&j, "switching", '{');
	json_long(&j, "pairs", (long long)r->switches);
	json_fixed(&j, "ns_per_pair", r->switches ? (double)r->switch_ns / (double)r->switches : 0,
		   0);
	json_close(&j, '{');
	json_open(&j, "events", '[');
	for (unsigned int i = 0; i < r->list.nr; i++)
		print_event(&j, r, i, &res[i]);
	json_close(&j, '[');
	json_close(&j, '{');
	if (json_end(&j))
		fail(EXIT_IMPOSSIBLE, "the output could not be written: %s", strerror(errno));
}

/* Events with one reason on one line. */
static void print_refused(struct run *r, const struct prof_result *res)
{
	bool told[PROF_MAX_EVENTS] = { false };

	for (unsigned int i = 0; i < r->list.nr; i++) {
		if (!*res[i].reason || told[i])
			continue;
		fputs("not counted: ", stderr);
		for (unsigned int k = i; k < r->list.nr; k++) {
			char label[128];

			if (strcmp(res[i].reason, res[k].reason))
				continue;
			told[k] = true;
			event_label(&r->list.event[k], &res[k], label, sizeof(label));
			fprintf(stderr, "%s%s", k > i ? ", " : "", label);
		}
		fprintf(stderr, "\n  %s\n", res[i].reason);
	}
}

static void print_text(struct run *r, const struct prof_result *res)
{
	for (unsigned int i = 0; i < r->list.nr; i++) {
		char label[128];

		if (*res[i].reason)
			continue;
		event_label(&r->list.event[i], &res[i], label, sizeof(label));
		fprintf(stderr, "%18.0f  %s", res[i].value, label);
		if (res[i].scaled)
			fprintf(stderr, "  (scaled: counted for %.1f %% of the time)",
				100.0 * (double)res[i].all.running / (double)res[i].all.enabled);
		fputc('\n', stderr);
	}
	print_refused(r, res);
	if (*r->list.note)
		fprintf(stderr, "note: %s\n", r->list.note);
	if (prof_user_only(r->session))
		fprintf(stderr,
			"user space only (:u): %.1f %% of the CPU time was spent in the kernel and "
			"is not covered\n",
			100 * system_share(r));
	if (r->unseen)
		fprintf(stderr, "%u threads were started later and are not counted\n", r->unseen);
}

static int tell(struct run *r)
{
	static struct prof_result res[PROF_MAX_EVENTS];
	unsigned int counted = 0;
	FILE *f;

	for (unsigned int i = 0; i < r->list.nr; i++) {
		prof_result(r->session, i, &res[i]);
		counted += !*res[i].reason;
	}
	if (!r->o->json) {
		print_text(r, res);
	} else {
		f = strcmp(r->o->json, "-") ? fopen(r->o->json, "we") : stdout;
		if (!f)
			return fail(EXIT_USAGE, "%s: %s", r->o->json, strerror(errno));
		print_json(f, r, res);
		if (f != stdout)
			fclose(f);
	}
	return counted || !r->list.nr ? 0 : EXIT_IMPOSSIBLE;
}

static int command_status(int status)
{
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static int count(struct run *r, char **argv)
{
	int ret = r->o->control ? count_controlled(r, argv) : count_whole(r, argv);
	int command = command_status(r->status);

	/* Counts of a command that failed are counts of something else. */
	if (!ret && command)
		ret = command;
	if (!ret)
		ret = tell(r);
	if (r->session)
		prof_close(r->session);
	return ret;
}

static int probe(const struct prof_machine *m)
{
	struct prof_sampling s;
	struct json j = { .f = stdout };

	prof_sampling_probe(m, &s);
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skb-prof-probe-1");
	json_str(&j, "event", s.event);
	json_bool(&j, "user_only", s.user_only);
	json_long(&j, "mmap_kb", s.mmap_kb);
	json_str(&j, "reason", *s.reason ? s.reason : NULL);
	json_str(&j, "cycles_reason", *s.cycles_reason ? s.cycles_reason : NULL);
	print_machine(&j, m);
	json_close(&j, '{');
	return json_end(&j) ? EXIT_IMPOSSIBLE : 0;
}

/* --- the command line ---------------------------------------------------------------------------------------- */

static void help(void)
{
	printf("skb-prof [FLAG...] -- COMMAND [ARGUMENT...]\n"
	       "Counts events of COMMAND. Exit status: that of COMMAND if it is not 0; 4 if "
	       "nothing could be counted.\n\n"
	       "  -e, --events=LIST     events, separated by commas (--list; default: all that "
	       "tell something)\n"
	       "  --control=CTL,ACK     count only between \"enable\" and \"disable\", which "
	       "COMMAND writes to the FIFO\n"
	       "                        CTL, and each thread for itself; perf's protocol\n"
	       "  --json=FILE           one JSON object, to FILE or (-) standard output, instead "
	       "of the table on stderr\n"
	       "  --probe               what can be sampled here, for perf record, as JSON; no "
	       "COMMAND\n"
	       "  --list                the events that have names\n"
	       "  --root=DIR            read sys and proc below DIR, for tests\n"
	       "  --version, --help\n");
}

static void version(void)
{
	printf("skb-prof " PROF_VERSION ", libperf of " PROF_LIBPERF "\n"
	       "As a program this is GPL-2.0, by libperf, which it is linked with; its own sources "
	       "are MIT.\n");
}

int main(int argc, char **argv)
{
	static const struct option flags[] = {
		{ "events", required_argument, NULL, 'e' },
		{ "control", required_argument, NULL, 'c' },
		{ "json", required_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "probe", no_argument, NULL, 'p' },
		{ "list", no_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct prof_machine m;
	static struct run r;
	struct options o = { .root = "" };
	int flag;

	while ((flag = getopt_long(argc, argv, "+e:h", flags, NULL)) >= 0) {
		switch (flag) {
		case 'e':
			o.events = optarg;
			break;
		case 'c':
			o.control = optarg;
			break;
		case 'j':
			o.json = optarg;
			break;
		case 'r':
			o.root = optarg;
			break;
		case 'p':
			o.probe = true;
			break;
		case 'l':
			prof_list_known();
			return 0;
		case 'v':
			version();
			return 0;
		case 'h':
			help();
			return 0;
		default:
			return EXIT_USAGE;
		}
	}
	if (!o.probe && optind == argc)
		return fail(EXIT_USAGE, "a command is needed: see --help");
	if (o.probe && optind != argc)
		return fail(EXIT_USAGE, "--probe takes no command");
	prof_machine_read(&m, o.root);
	if (o.probe)
		return probe(&m);
	r.o = &o;
	r.m = &m;
	if (prof_list_parse(&m, o.events ? o.events : prof_default_list, &r.list))
		return fail(EXIT_USAGE, "more than %d events", PROF_MAX_EVENTS);
	return count(&r, argv + optind);
}
