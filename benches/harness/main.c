/* SPDX-License-Identifier: MIT */
#include "benches/harness/bench.h"
#include "benches/harness/clock.h"
#include "benches/harness/face.h"
#include "benches/harness/json.h"
#include "benches/harness/modes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SKB_TRACED
#define TRACED true
#else
#define TRACED false
#endif

enum bench_status bench_printed(struct json *j, enum bench_status status)
{
	if (json_end(j))
		return bench_fail(BENCH_IMPOSSIBLE, NULL, "the output could not be written: %s",
				  strerror(errno));
	return status;
}

/*
 * MALLOC_CONF would change the private jemalloc too, which has read it by now: start again without it. Not under
 * callgrind, which does not follow.
 */
static enum bench_status drop_malloc_conf(char **argv, const struct bench_options *o)
{
	char self[PATH_MAX];
	ssize_t len;

	if (!getenv("MALLOC_CONF"))
		return BENCH_OK;
	if (o->mode == MODE_INSTRUCTIONS)
		return bench_fail(BENCH_USAGE, o->name,
				  "MALLOC_CONF is set and would change the counts: unset it");
	unsetenv("MALLOC_CONF");
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len > 0) {
		self[len] = '\0';
		execv(self, argv);
	}
	return bench_fail(BENCH_IMPOSSIBLE, NULL,
			  "cannot start again without MALLOC_CONF (%s): unset it", strerror(errno));
}

static bool lists_only(const struct bench_options *o)
{
	for (int i = 1; i < o->nr_gbench; i++)
		if (!strcmp(o->gbench[i], "--benchmark_list_tests") ||
		    !strcmp(o->gbench[i], "--benchmark_list_tests=true"))
			return true;
	return false;
}

static enum bench_status refuse_timing(const struct bench_options *o)
{
	int plain = (int)strlen(bench_program) - (int)strlen("_traced");

	return bench_fail(BENCH_USAGE, o->name, "this program counts and is not timed: use %.*s",
			  max(plain, 0), bench_program);
}

static enum bench_status dispatch(const struct bench_options *o)
{
	switch (o->mode) {
	case MODE_LIST:
		return bench_list();
	case MODE_CONTEXT:
		return bench_context();
	case MODE_WHERE:
		return bench_where(o);
	case MODE_CHECK:
		return bench_check(o);
	case MODE_LEDGER:
		return bench_ledger(o);
	case MODE_LINES:
		return bench_lines(o);
	case MODE_HELP:
		bench_help();
		return BENCH_OK;
	case MODE_GBENCH:
		if (TRACED && !lists_only(o))
			return refuse_timing(o);
		return (enum bench_status)gbench_run(o->nr_gbench, o->gbench, o);
	default:
		break;
	}
	if (TRACED)
		return refuse_timing(o);
	switch (o->mode) {
	case MODE_SAMPLE:
		return bench_sample(o);
	case MODE_CALIBRATE:
		return bench_calibrate(o);
	case MODE_INSTRUCTIONS:
		return bench_instructions(o);
	case MODE_LATENCY:
		return bench_latency(o);
	default:
		return bench_machine(o);
	}
}

int bench_main(int argc, char **argv)
{
	/* The parser moves what it takes: start again with what was given. */
	char **given = calloc((size_t)argc + 1, sizeof(*given));
	struct bench_options o;
	enum bench_status status;

	bench_tick_start();
	bench_program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	if (!given)
		return bench_fail(BENCH_IMPOSSIBLE, NULL, "no memory for the arguments");
	memcpy(given, argv, (size_t)argc * sizeof(*given));
	status = bench_options_parse(argc, argv, &o);
	if (!status)
		status = drop_malloc_conf(given, &o);
	if (!status)
		status = dispatch(&o);
	free(given);
	return status;
}
