/* SPDX-License-Identifier: MIT */
/*
 * What Google Benchmark's face (gbench.cc) needs of the harness: the default cases in numbers, in C and C++ alike.
 *
 * face_enter, face_span, face_leave are each role's, on the role's thread. The library's own barriers stand between
 * enter and span, and between span and leave; role 0 prepares and checks the case in enter, checks it again and tears
 * it down in leave.
 */
#ifndef BENCH_FACE_H
#define BENCH_FACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench_options;

/* Brings up memory and probes every default case. An exit status, 0 if there is something to run. */
int face_open(const struct bench_options *o);

size_t face_nr_cases(void);
const char *face_name(size_t i);
unsigned int face_nr_roles(size_t i); /* threads to run it with: 1 if it is refused */

/* 0, or the exit status that the failure means; then face_reason() tells it and face_span() is not to be called. */
int face_enter(size_t i, unsigned int role);
void face_span(size_t i, unsigned int role, uint64_t n);
int face_leave(size_t i, unsigned int role);
const char *face_reason(size_t i);

/*
 * The exit status that case I has earned: after the start barrier not 0, on any thread, if a role could not enter.
 */
int face_failed(size_t i);

/* gbench.cc: the whole run. ARGV as Google Benchmark takes it. Returns the exit status. */
int gbench_run(int argc, char **argv, const struct bench_options *o);

#ifdef __cplusplus
}
#endif

#endif
