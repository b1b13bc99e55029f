/* SPDX-License-Identifier: MIT */
#include "benches/harness/report.h"

void bench_report_add(struct bench_report *report, const char *name, double value)
{
	BUG_ON(report->nr == BENCH_MAX_REPORT);
	report->name[report->nr] = name;
	report->value[report->nr++] = value;
}

void bench_report_take(struct bench_report *report, const struct bench_case *c)
{
	report->nr = 0;
	if (c->report)
		c->report(c->ctx, report);
}

void bench_report_print(struct json *j, const struct bench_report *report)
{
	if (!report->nr)
		return;
	json_open(j, "report", '{');
	for (unsigned int i = 0; i < report->nr; i++)
		json_fixed(j, report->name[i], report->value[i], 4);
	json_close(j, '{');
}
