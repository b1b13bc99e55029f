/* SPDX-License-Identifier: MIT */
/* The flags of a bench binary, and how it says that something went wrong. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "skb/compiler.h"

enum bench_status {
	BENCH_OK = 0,
	BENCH_USAGE = 2, /* wrong input */
	BENCH_IMPOSSIBLE = 4, /* not on this machine */
	BENCH_FAILED = 5, /* a case failed its check */
};

enum bench_mode {
	MODE_GBENCH, /* no mode flag: Google Benchmark's face */
	MODE_LIST,
	MODE_SAMPLE,
	MODE_CALIBRATE,
	MODE_CHECK,
	MODE_INSTRUCTIONS,
	MODE_LEDGER,
	MODE_LINES,
	MODE_MACHINE,
	MODE_LATENCY,
	MODE_CONTEXT,
	MODE_WHERE,
	MODE_HELP,
	MODE_NR
};

struct bench_options {
	enum bench_mode mode;
	const char *name; /* of the case, if the mode takes one */
	u64 n; /* operations a batch; 0: not given */
	unsigned int batches;
	unsigned int warmup;
	u64 inject_milli; /* thousandths of a percent of operations more than told */
	const char *cpus; /* NULL: the allowed ones */
	const char *nodes; /* NULL: one node for every role and object */
	bool huge; /* page memory in huge pages or not at all */
	const char
		*alloc; /* Google Benchmark's face: another allocator than the default; or NULL */
	size_t pages; /* of each zone; 0: what the case asks for */
	const char *control; /* FIFOs of a profiler that wants to know when it is timed; or NULL */
	bool oversubscribe;
	char **gbench; /* argv[0] and what is Google Benchmark's, NULL-terminated */
	int nr_gbench;
};

/* Fills OUT. BENCH_OK, or BENCH_USAGE after one line on stderr. ARGV must outlive OUT; its order is changed. */
enum bench_status bench_options_parse(int argc, char **argv, struct bench_options *out);

void bench_help(void);

/* The program's name, without its directories. */
extern const char *bench_program;

/* Writes "PROGRAM: NAME: reason" to stderr (NAME may be NULL) and returns STATUS. */
__attribute__((format(printf, 3, 4))) enum bench_status
bench_fail(enum bench_status status, const char *name, const char *fmt, ...);

#endif
