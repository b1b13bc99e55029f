/* SPDX-License-Identifier: MIT */
#include "benches/harness/names.h"

#include <stdlib.h>
#include <string.h>

static const struct bench_op *ops[BENCH_MAX_OPS];
static unsigned int nr_ops;

unsigned int bench_nr_ops(void)
{
	return nr_ops;
}

const struct bench_op *bench_op_at(unsigned int i)
{
	return ops[i];
}

/* A table with a mistake in it is the program's, not the user's: it ends the program at once, before any timing. */
static void broken(const struct bench_op *op, const char *key, const char *why)
{
	fprintf(stderr, "skbench: operation %s, key %s: %s\n", op->name ? op->name : "(none)",
		key ? key : "(none)", why);
	abort();
}

static bool is_word(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(s);
}

/* Two operations may share a name if no word of the first key, the form, is a word of both. */
static bool are_forms(const struct bench_op *a, const struct bench_op *b)
{
	const struct bench_key *ka = a->keys, *kb = b->keys;

	if (!ka || !kb || !ka->name || !kb->name || strcmp(ka->name, kb->name) || !ka->words ||
	    !kb->words)
		return false;
	for (unsigned int i = 0; ka->words[i]; i++)
		for (unsigned int k = 0; kb->words[k]; k++)
			if (!strcmp(ka->words[i], kb->words[k]))
				return false;
	return true;
}

static void check_name(const struct bench_op *op)
{
	char buf[BENCH_NAME_MAX / 4], *save, *part;
	unsigned int parts = 0;

	if (!op->name || strlen(op->name) >= sizeof(buf))
		broken(op, NULL, "no name, or too long a one");
	strcpy(buf, op->name);
	for (part = strtok_r(buf, "/", &save); part; part = strtok_r(NULL, "/", &save), parts++)
		if (!is_word(part))
			broken(op, NULL, "the name is family/operation in a-z, 0-9 and _");
	if (parts < 2 || strstr(op->name, "//"))
		broken(op, NULL, "the name is family/operation");
	for (unsigned int i = 0; i < nr_ops; i++)
		if (!strcmp(ops[i]->name, op->name) && !are_forms(ops[i], op))
			broken(op, NULL, "registered twice");
	if (!op->summary || !op->prepare)
		broken(op, NULL, "summary and prepare are not optional");
}

static void check_key(const struct bench_op *op, const struct bench_key *key)
{
	long v;

	if (!is_word(key->name) || !key->def || !key->grid || !key->help)
		broken(op, key->name, "name, def, grid and help are not optional");
	if (!key->words && key->lo > key->hi)
		broken(op, key->name, "lo is above hi");
	if (!bench_grid_value(key, 0, &v))
		broken(op, key->name, "the grid is empty");
	for (const struct bench_key *k = op->keys; k != key; k++)
		if (!strcmp(k->name, key->name))
			broken(op, key->name, "given twice");
}

static void check_values(const struct bench_op *op)
{
	struct bench_grid grid;
	long v;

	bench_args_default(
		op, &grid.args); /* ends the program on a bad default, the rest on a bad grid */
	for (unsigned int k = 0; k < grid.args.nr; k++)
		for (unsigned int i = 0; bench_grid_value(grid.args.key[k], i, &v); i++)
			;
}

void bench_register(const struct bench_op *op)
{
	unsigned int nr = 1; /* `alloc` */

	BUG_ON(nr_ops == BENCH_MAX_OPS);
	check_name(op);
	for (const struct bench_key *key = op->keys; key && key->name; key++) {
		check_key(op, key);
		if (!strcmp(key->name, "alloc") && (key->words != bench_alloc_words || key[1].name))
			broken(op, key->name, "is the harness's own key");
		if (++nr > BENCH_MAX_KEYS)
			broken(op, key->name, "too many keys");
	}
	check_values(op);
	ops[nr_ops++] = op;
}
