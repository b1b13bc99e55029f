/* SPDX-License-Identifier: MIT */
/* The numbers that a case adds to a sample: taken before its teardown, printed after it. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "benches/harness/bench.h"
#include "benches/harness/json.h"

struct bench_report {
	const char *name[BENCH_MAX_REPORT];
	double value[BENCH_MAX_REPORT];
	unsigned int nr;
};

/* Asks C for its numbers; none if it has no report(). On role 0's thread, before the teardown. */
void bench_report_take(struct bench_report *report, const struct bench_case *c);

/* The key "report" with the numbers in their order; nothing if there are none. */
void bench_report_print(struct json *j, const struct bench_report *report);

#endif
