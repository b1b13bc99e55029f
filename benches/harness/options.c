/* SPDX-License-Identifier: MIT */
#include "benches/harness/options.h"
#include "benches/harness/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *bench_program = "bench";

enum bench_status bench_fail(enum bench_status status, const char *name, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (name)
		fprintf(stderr, "%s: %s: %s\n", bench_program, name, why);
	else
		fprintf(stderr, "%s: %s\n", bench_program, why);
	return status;
}

#define M(mode)	    (1u << MODE_##mode)
#define TIMED	    (M(SAMPLE) | M(CALIBRATE) | M(GBENCH))
#define CASE	    (TIMED | M(CHECK) | M(INSTRUCTIONS) | M(LEDGER) | M(LINES))
#define NO_MODE	    MODE_NR
#define MAX_BATCHES 1000000
#define MAX_N	    1000000000000L /* operations: 1000 s of the shortest one */
#define MAX_PAGES   (1L << 24)

enum value { NONE, TEXT, NUMBER, PERCENT };

/* One flag; MODES says where it means anything, so that one without effect is refused. */
struct flag {
	const char *name;
	enum value value;
	enum bench_mode mode; /* the mode that it selects, or NO_MODE */
	unsigned int modes;
	long lo, hi;
	const char *shape, *help;
};

static const struct flag flags[] = {
	{ "skb_list", NONE, MODE_LIST, 0, 0, 0, "", "operations, keys and default cases, as JSON" },
	{ "skb_sample", TEXT, MODE_SAMPLE, 0, 0, 0, "NAME", "time one case: one JSON line" },
	{ "skb_calibrate", TEXT, MODE_CALIBRATE, 0, 0, 0, "NAME",
	  "operations a batch that take 150 to 300 us" },
	{ "skb_check", TEXT, MODE_CHECK, 0, 0, 0, "NAME",
	  "prepare and validate one case, no timing" },
	{ "skb_instructions", TEXT, MODE_INSTRUCTIONS, 0, 0, 0, "NAME",
	  "n operations inside skb_bench_counted_span(), for callgrind" },
	{ "skb_ledger", TEXT, MODE_LEDGER, 0, 0, 0, "NAME",
	  "exact counts of one operation (the _traced program)" },
	{ "skb_lines", TEXT, MODE_LINES, 0, 0, 0, "NAME",
	  "cache lines that more than one role writes (the _traced program)" },
	{ "skb_machine", NONE, MODE_MACHINE, 0, 0, 0, "",
	  "core-to-core latency, copy bandwidth, clock" },
	{ "skb_latency", NONE, MODE_LATENCY, 0, 0, 0, "",
	  "core-to-core latency of every pair of CPUs" },
	{ "skb_context", NONE, MODE_CONTEXT, 0, 0, 0, "", "how this program was built" },
	{ "skb_where", NONE, MODE_WHERE, 0, 0, 0, "",
	  "where roles and objects would lie, as JSON, or why they cannot" },
	{ "help", NONE, MODE_HELP, 0, 0, 0, "", "this text" },
	{ "skb_n", NUMBER, NO_MODE, M(SAMPLE) | M(INSTRUCTIONS), 1, MAX_N, "N",
	  "operations a batch (default: calibrated; skb_instructions needs it)" },
	{ "skb_batches", NUMBER, NO_MODE, M(SAMPLE), 1, MAX_BATCHES, "N", "batches (default 100)" },
	{ "skb_warmup", NUMBER, NO_MODE, M(SAMPLE), 0, MAX_BATCHES, "N",
	  "batches thrown away first (default 5)" },
	{ "skb_inject", PERCENT, NO_MODE, M(SAMPLE), 0, 0, "PCT",
	  "do PCT % more operations than are told: a known slowdown" },
	{ "skb_cpus", TEXT, NO_MODE, CASE | M(MACHINE) | M(LATENCY) | M(WHERE), 0, 0, "LIST",
	  "CPU of each role, as 0,2-3 (default: the allowed ones in order)" },
	{ "skb_nodes", TEXT, NO_MODE, CASE | M(WHERE), 0, 0, "LIST",
	  "memory node of each role (default: 0 for all), or OBJECT=WHERE[,...] of shells, heads, "
	  "pages, pool, socket on local, remote, interleave or a node (default: local)" },
	{ "skb_huge", NONE, NO_MODE, CASE | M(WHERE), 0, 0, "",
	  "page memory in huge pages, or not at all (default: if there are some)" },
	{ "skb_pages", NUMBER, NO_MODE, CASE | M(WHERE), 1, MAX_PAGES, "N",
	  "pages of each node's zone, rounded up to 1024 (default: what the case needs)" },
	{ "skb_control", TEXT, NO_MODE, M(SAMPLE), 0, 0, "CTL,ACK",
	  "tell a profiler when batches begin and end: perf's --control fifo:CTL,ACK" },
	{ "skb_oversubscribe", NONE, NO_MODE, TIMED, 0, 0, "",
	  "let roles share a CPU; such a result is marked" },
	{ "skb_alloc", TEXT, NO_MODE, M(GBENCH), 0, 0, "WORD",
	  "the allocator of all cases (default: their own)" },
};

void bench_help(void)
{
	printf("%s: without a flag of ours, a Google Benchmark program: every --benchmark_ flag "
	       "works "
	       "(a quick look, not a sample).\n\n",
	       bench_program);
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", flags[i].name, *flags[i].shape ? "=" : "",
			 flags[i].shape);
		printf("  %-26s %s\n", left, flags[i].help);
	}
	printf("\nExit status: 0 done, 2 wrong input, 4 not possible on this machine, 5 a case "
	       "failed "
	       "its check.\n");
}

static const struct flag *find_flag(const char *arg, const char **value)
{
	size_t len = strcspn(arg, "=");

	if (strncmp(arg, "--", 2))
		return NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strlen(flags[i].name) == len - 2 && !memcmp(flags[i].name, arg + 2, len - 2)) {
			*value = arg[len] ? arg + len + 1 : NULL;
			return &flags[i];
		}
	}
	return NULL;
}

/* Digits with at most three decimals, up to 1000, in thousandths; by hand, since strtod() follows the locale. */
static bool parse_milli(const char *s, u64 *out)
{
	unsigned int decimals = 0;
	u64 v = 0;

	if (!(*s >= '0' && *s <= '9'))
		return false;
	for (; *s >= '0' && *s <= '9' && v <= 1000; s++)
		v = v * 10 + (u64)(*s - '0');
	if (*s == '.') {
		for (s++; *s >= '0' && *s <= '9' && decimals < 3; s++, decimals++)
			v = v * 10 + (u64)(*s - '0');
		if (!decimals)
			return false;
	}
	for (; decimals < 3; decimals++)
		v *= 10;
	*out = v;
	return !*s && v <= 1000 * 1000;
}

static enum bench_status take(const struct flag *flag, const char *value, struct bench_options *o)
{
	long number = 0;

	if (flag->value == NONE && value)
		return bench_fail(BENCH_USAGE, NULL, "--%s takes no value", flag->name);
	if (flag->value != NONE && (!value || !*value))
		return bench_fail(BENCH_USAGE, NULL, "--%s=%s needs its value", flag->name,
				  flag->shape);
	if (flag->value == PERCENT && !parse_milli(value, &o->inject_milli))
		return bench_fail(BENCH_USAGE, NULL,
				  "--%s=%s: a percentage from 0 to 1000, with at most 3 decimals",
				  flag->name, value);
	if (flag->value == NUMBER && (bench_parse_long(value, strlen(value), &number) ||
				      number < flag->lo || number > flag->hi))
		return bench_fail(BENCH_USAGE, NULL, "--%s=%s: an integer from %ld to %ld",
				  flag->name, value, flag->lo, flag->hi);
	if (flag->mode != NO_MODE) {
		if (o->mode != MODE_GBENCH)
			return bench_fail(BENCH_USAGE, NULL, "--%s: only one thing to do at a time",
					  flag->name);
		o->mode = flag->mode;
		o->name = value;
	} else if (!strcmp(flag->name, "skb_n")) {
		o->n = (u64)number;
	} else if (!strcmp(flag->name, "skb_batches")) {
		o->batches = (unsigned int)number;
	} else if (!strcmp(flag->name, "skb_warmup")) {
		o->warmup = (unsigned int)number;
	} else if (!strcmp(flag->name, "skb_cpus")) {
		o->cpus = value;
	} else if (!strcmp(flag->name, "skb_nodes")) {
		o->nodes = value;
	} else if (!strcmp(flag->name, "skb_huge")) {
		o->huge = true;
	} else if (!strcmp(flag->name, "skb_pages")) {
		o->pages = ALIGN((size_t)number, (size_t)1024);
	} else if (!strcmp(flag->name, "skb_control")) {
		o->control = value;
	} else if (!strcmp(flag->name, "skb_oversubscribe")) {
		o->oversubscribe = true;
	} else if (!strcmp(flag->name, "skb_alloc")) {
		o->alloc = value;
	}
	return BENCH_OK;
}

/* Each flag once, and only where it means something. */
static enum bench_status check_use(const bool *given, const struct bench_options *o)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++)
		if (given[i] && flags[i].mode == NO_MODE && !(flags[i].modes & (1u << o->mode)))
			return bench_fail(BENCH_USAGE, NULL, "--%s has no effect here: see --help",
					  flags[i].name);
	if (o->mode != MODE_GBENCH && o->nr_gbench > 1)
		return bench_fail(BENCH_USAGE, NULL,
				  "%s: not together with a --skb_ flag: see --help", o->gbench[1]);
	if (o->mode == MODE_INSTRUCTIONS && !o->n)
		return bench_fail(BENCH_USAGE, NULL,
				  "--skb_instructions needs --skb_n: a calibrated count is not the "
				  "same twice");
	return BENCH_OK;
}

enum bench_status bench_options_parse(int argc, char **argv, struct bench_options *out)
{
	bool given[ARRAY_SIZE(flags)] = { false };
	int kept = 1;

	*out = (struct bench_options){ .mode = MODE_GBENCH, .batches = 100, .warmup = 5 };
	for (int i = 1; i < argc; i++) {
		const char *value;
		const struct flag *flag = find_flag(argv[i], &value);
		enum bench_status status;

		if (!flag && !strncmp(argv[i], "--skb_", 6))
			return bench_fail(BENCH_USAGE, NULL, "no flag %s: see --help", argv[i]);
		if (!flag) {
			argv[kept++] = argv[i];
			continue;
		}
		if (given[flag - flags])
			return bench_fail(BENCH_USAGE, NULL, "--%s is given twice", flag->name);
		given[flag - flags] = true;
		status = take(flag, value, out);
		if (status)
			return status;
	}
	argv[kept] = NULL;
	out->gbench = argv;
	out->nr_gbench = kept;
	return check_use(given, out);
}
