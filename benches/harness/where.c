/* SPDX-License-Identifier: MIT */
/*
 * Where roles and objects would lie, asked before anything is measured: the refusals that belong to the machine and not to
 * a case are one line then.
 */
#include "benches/harness/modes.h"
#include "benches/harness/placed.h"

enum bench_status bench_where(const struct bench_options *o)
{
	struct json j = { .f = stdout };
	struct bench_place place;
	enum bench_status status = bench_place_init(o, &place);

	if (!status)
		status = bench_memory_room(NULL, BENCH_DEFAULT_ALLOC, &place,
					   o->pages ? o->pages : BENCH_DEFAULT_PAGES);
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-where-1");
	json_open(&j, "cpus", '[');
	for (unsigned int i = 0; i < place.cpus.nr; i++)
		json_long(&j, NULL, place.cpus.cpu[i]);
	json_close(&j, '[');
	json_open(&j, "nodes", '[');
	for (unsigned int i = 0; i < place.nodes.nr; i++)
		json_long(&j, NULL, place.nodes.cpu[i]);
	json_close(&j, '[');
	json_open(&j, "homes", '[');
	for (unsigned int i = 0; i < place.mem.nr; i++) {
		json_open(&j, NULL, '{');
		json_long(&j, "node", place.home[i]);
		if (place.by_object) {
			json_open(&j, "objects", '{');
			for (unsigned int k = 0; k < NR_MEM_KINDS; k++) {
				json_open(&j, bench_object_words[k], '{');
				bench_asked_print(&j, &place, (enum mem_kind)k, i);
				json_close(&j, '{');
			}
			json_close(&j, '{');
		}
		json_close(&j, '{');
	}
	json_close(&j, '[');
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
