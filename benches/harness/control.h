/* SPDX-License-Identifier: MIT */
/*
 * Telling a profiler when the timed batches begin and end: perf's control protocol over two FIFOs (perf-stat(1),
 * --control fifo:CTL,ACK). "enable" and "disable" go out, each is answered by "ack", and nothing is counted or
 * sampled in between.
 *
 * All functions are role 0's, between batches: the other roles spin at their start line meanwhile.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include "benches/harness/options.h"

#include <sys/types.h>

struct control {
	int ctl, ack; /* file descriptors */
	const char *name; /* of the case, for messages */
	u64 pairs; /* times that it was switched on and off again */
	u64 ns; /* and what all of them took */
};

/*
 * Opens PATHS ("CTL,ACK"), whose other ends a profiler holds open. NAME is the case's, and outlives C. BENCH_OK, or
 * the status after one line on stderr with nothing open.
 */
enum bench_status control_open(struct control *c, const char *paths, const char *name);

/*
 * Return when the profiler has done it: BENCH_OK, or BENCH_FAILED after one line on stderr if it has gone, or does not
 * answer within 10 s.
 */
enum bench_status control_enable(struct control *c);
enum bench_status control_disable(struct control *c);

void control_close(struct control *c);

#endif
