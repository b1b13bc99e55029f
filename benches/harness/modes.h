/* SPDX-License-Identifier: MIT */
/* What a bench binary can do, one function a mode; each prints its JSON line and returns the exit status. */
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#include "benches/harness/options.h"

enum bench_status bench_list(void);
enum bench_status bench_context(void);
enum bench_status bench_where(const struct bench_options *o);
enum bench_status bench_machine(const struct bench_options *o);
enum bench_status bench_latency(const struct bench_options *o);
enum bench_status bench_check(const struct bench_options *o);
enum bench_status bench_sample(const struct bench_options *o);
enum bench_status bench_calibrate(const struct bench_options *o);
enum bench_status bench_instructions(const struct bench_options *o);
enum bench_status bench_ledger(const struct bench_options *o);
enum bench_status bench_lines(const struct bench_options *o);

/* Ends the line that J wrote: STATUS, or a failure if it could not be written. */
struct json;
enum bench_status bench_printed(struct json *j, enum bench_status status);

/* Operations of one batch that take a case to its warm state where nothing is timed. */
#define BENCH_WARM_OPS 300

#endif
