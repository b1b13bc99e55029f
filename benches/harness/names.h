/* SPDX-License-Identifier: MIT */
/*
 * The registry of operations, and the names of their cases.
 *
 * A name is the operation's, then key:value for each key that is not at its default, in any order; the canonical name
 * gives every key, in the order of the table, and `alloc` last. Operations whose first keys have one name and no word
 * in common may share their name: they are forms of one operation, each with keys of its own, and the word tells which
 * is meant (the first registered, if it is not given). Single-threaded: the registry is filled before
 * bench_main() and only read from then on.
 */
#ifndef BENCH_NAMES_H
#define BENCH_NAMES_H

#include "benches/harness/bench.h"

#define BENCH_MAX_OPS  256
#define BENCH_NAME_MAX 512

struct bench_args {
	const struct bench_op *op;
	unsigned int nr; /* keys, `alloc` included */
	const struct bench_key *key[BENCH_MAX_KEYS];
	long value[BENCH_MAX_KEYS];
};

unsigned int bench_nr_ops(void);
const struct bench_op *bench_op_at(unsigned int i);

/* OP with every key at its default. */
void bench_args_default(const struct bench_op *op, struct bench_args *out);

/* Parses NAME. 0, or -EINVAL with a sentence in ERR that says what is wrong and what would be right. */
int bench_args_parse(const char *name, struct bench_args *out, char *err, size_t errlen);

/* The canonical name, at most LEN bytes with its NUL (BENCH_NAME_MAX holds any). */
void bench_args_name(const struct bench_args *args, char *buf, size_t len);

/* The value of KEY as a name spells it; BUF holds an integer. */
const char *bench_value_text(const struct bench_key *key, long value, char *buf, size_t len);

/* The word that the key `alloc` has. */
const char *bench_args_alloc(const struct bench_args *args);

/* Sets it: 0, or -EINVAL for another word with a sentence in ERR. */
int bench_args_set_alloc(struct bench_args *args, const char *word, char *err, size_t errlen);

/* Walks the default grid of an operation: the product of its keys' grids, the last key fastest. */
struct bench_grid {
	struct bench_args args; /* the present case */
	unsigned int at[BENCH_MAX_KEYS];
};
void bench_grid_first(const struct bench_op *op, struct bench_grid *grid);
bool bench_grid_next(struct bench_grid *grid);

/* The I-th value of KEY's grid in *OUT; false past its end. */
bool bench_grid_value(const struct bench_key *key, unsigned int i, long *out);

/* A decimal integer and nothing else: 0, -EINVAL for other text, -ERANGE beyond a long. */
int bench_parse_long(const char *text, size_t len, long *out);

#endif
