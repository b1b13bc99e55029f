/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The interpreter of buffer programs: one source, compiled over the library and into a kernel module. */
#ifndef TESTS_ORACLE_INTERP_H
#define TESTS_ORACLE_INTERP_H

#include "prog.h"

/* Where states go: always into a hash; in words into TEXT too, unless it is NULL. */
struct oracle_out {
	unsigned long long hash;
	char *text;
	unsigned long len, room;
	bool full; /* TEXT was too short: what it holds is the beginning */
};

/*
 * Runs REQ's operations, which follow it in memory, and frees all that they made. After each one
 * the whole state goes to OUT, which is zeroed but for TEXT and ROOM. One program at a time.
 * 0; -1 for a request that is no program (OUT->text, if there is one, says why).
 */
int oracle_run(const struct oracle_request *req, struct oracle_out *out);

#endif
