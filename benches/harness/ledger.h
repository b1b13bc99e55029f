/* SPDX-License-Identifier: MIT */
/*
 * The op ledger: exact counts of what one operation does to memory that CPUs share, taken by a sink of the traced build
 * between bench_ledger_begin() and bench_ledger_end().
 *
 * A phase that is ended more than once is one row, its counts summed. Phases do not nest. Whatever thread an access
 * comes from, it is counted; begin and end are role 0's.
 */
#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include "benches/harness/bench.h"

#define LEDGER_MAX_ROWS 32

struct ledger_row {
	char phase[64];
	u64 rmw[SKB_C_NR]; /* atomic read-modify-writes by class */
	u64 store[SKB_C_NR]; /* plain stores */
	u64 written[SKB_C_NR]; /* bytes that copies wrote */
	u64 event[SKB_EV_NR]; /* events, whatever their n */
	u64 lock[SKB_C_NR]; /* locks taken, by class */
};

#ifdef SKB_TRACED
/* Sets the sink; before any CPU runs. */
void ledger_install(void);

/* Forgets all rows, and counts from here on. */
void ledger_clear(void);

/* Keeps the rows: what runs from here on is not counted. */
void ledger_freeze(void);

/* The rows so far, in the order in which their phases were first ended. */
unsigned int ledger_rows(const struct ledger_row **rows);
#endif

#endif
