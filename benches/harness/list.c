/* SPDX-License-Identifier: MIT */
/* Every operation with its keys and the cases of its default grid, refused combinations among them. */
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/names.h"

static void print_value(struct json *j, const char *name, const struct bench_key *key, long value)
{
	if (key->words)
		json_str(j, name, key->words[value]);
	else
		json_long(j, name, value);
}

static void print_key(struct json *j, const struct bench_key *key, long def)
{
	long v;

	json_open(j, NULL, '{');
	json_str(j, "name", key->name);
	if (key->words) {
		json_open(j, "words", '[');
		for (unsigned int i = 0; key->words[i]; i++)
			json_str(j, NULL, key->words[i]);
		json_close(j, '[');
	} else {
		json_long(j, "lo", key->lo);
		json_long(j, "hi", key->hi);
	}
	print_value(j, "default", key, def);
	json_open(j, "grid", '[');
	for (unsigned int i = 0; bench_grid_value(key, i, &v); i++)
		print_value(j, NULL, key, v);
	json_close(j, '[');
	json_str(j, "help", key->help);
	json_close(j, '{');
}

static void print_op(struct json *j, const struct bench_op *op)
{
	char name[BENCH_NAME_MAX];
	struct bench_grid grid;

	bench_args_default(op, &grid.args);
	json_open(j, NULL, '{');
	json_str(j, "name", op->name);
	json_str(j, "summary", op->summary);
	json_open(j, "keys", '[');
	for (unsigned int i = 0; i < grid.args.nr; i++)
		print_key(j, grid.args.key[i], grid.args.value[i]);
	json_close(j, '[');
	json_open(j, "cases", '[');
	bench_grid_first(op, &grid);
	do {
		bench_args_name(&grid.args, name, sizeof(name));
		json_str(j, NULL, name);
	} while (bench_grid_next(&grid));
	json_close(j, '[');
	json_close(j, '{');
}

enum bench_status bench_list(void)
{
	struct json j = { .f = stdout };

	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-list-1");
	json_open(&j, "ops", '[');
	for (unsigned int i = 0; i < bench_nr_ops(); i++)
		print_op(&j, bench_op_at(i));
	json_close(&j, '[');
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
