/* SPDX-License-Identifier: MIT */
/* A case prepared, validated and torn down; nothing is timed. */
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/report.h"
#include "benches/harness/session.h"

enum bench_status bench_check(const struct bench_options *o)
{
	static struct bench_session s;
	struct json j = { .f = stdout };
	enum bench_status status = bench_session_open(&s, o);
	struct bench_report report;

	if (status)
		return status;
	bench_report_take(&report, &s.c);
	status = bench_session_close(&s, BENCH_OK);
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "name", s.name);
	json_str(&j, "check", "ok");
	bench_report_print(&j, &report);
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
