/* SPDX-License-Identifier: MIT */
/*
 * What this machine can do today, printed beside every run: how long a line takes between two CPUs, and how fast
 * packets are copied from cache and from memory. On a virtual machine the first of these changes by the hour.
 */
#include "benches/harness/clock.h"
#include "benches/harness/json.h"
#include "benches/harness/latency.h"
#include "benches/harness/modes.h"
#include "benches/harness/room.h"
#include "benches/harness/session.h"
#include "benches/harness/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS LATENCY_ROUNDS

/* The copy of a receive path: 45 packets of 1448 bytes, about 64 KB, out of a set of SET bytes into one buffer. */
#define PIECE  1448
#define PIECES 45
#define ROW    (PIECE * PIECES)
#define COPIES 32 /* rows a round: 2 MB */

#define CACHE_SET ((size_t)256 << 10)

/*
 * More than all rounds read, so that no byte is read a second time: memory is read whatever size the caches have, which
 * a guest is often told wrongly.
 */
#define MEMORY_SET ((size_t)128 << 20)
#define REST	   ((size_t)4 << 20) /* of this process besides */
_Static_assert((size_t)ROUNDS *COPIES *ROW < MEMORY_SET, "no byte is read a second time");

/* GB/s a round, sorted: 0 or an errno. */
static int copy_speed(size_t set, double *gb_per_s)
{
	char *src = mmap(NULL, set, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *dst = malloc(ROW);
	size_t at = 0;

	if (src == MAP_FAILED || !dst) {
		free(dst);
		if (src != MAP_FAILED)
			munmap(src, set);
		return ENOMEM;
	}
	memset(src, 1, set);
	memset(dst, 1, ROW);
	for (int round = 0; round < ROUNDS; round++) {
		u64 start = bench_wall_ns();

		for (int copy = 0; copy < COPIES; copy++) {
			for (int piece = 0; piece < PIECES; piece++) {
				memcpy(dst + piece * PIECE, src + at, PIECE);
				at += PIECE;
				if (at + PIECE > set)
					at = 0;
			}
			bench_use(dst);
		}
		gb_per_s[round] = (double)COPIES * ROW / (double)(bench_wall_ns() - start);
	}
	free(dst);
	munmap(src, set);
	sort_values(gb_per_s, ROUNDS);
	return 0;
}

static void print_rounds(struct json *j, const char *key, const double *v)
{
	json_open(j, key, '{');
	json_fixed(j, "p10", quantile(v, ROUNDS, .10), 3);
	json_fixed(j, "p50", quantile(v, ROUNDS, .50), 3);
	json_fixed(j, "p90", quantile(v, ROUNDS, .90), 3);
	json_close(j, '{');
}

/* True if SET bytes and what goes with them may be taken; else a sentence in WHY. */
static bool has_room(size_t set, char *why, size_t len)
{
	struct bench_need need = { .address_space = set + REST };
	struct bench_topology t;

	bench_topology_read("", &t);
	bench_need_add(need.rest, t.memory, set + REST);
	return !bench_room("", &need, why, len);
}

static void print_copy(struct json *j, const char *key, size_t set)
{
	char name[64], why[512];
	bool room = has_room(set, why, sizeof(why));
	double v[ROUNDS];
	int ret = room ? copy_speed(set, v) : 0;

	if (!room || ret) {
		json_null(j, key);
		snprintf(name, sizeof(name), "%s_reason", key);
		json_str(j, name, room ? strerror(ret) : why);
		return;
	}
	print_rounds(j, key, v);
	snprintf(name, sizeof(name), "%s_set_bytes", key);
	json_long(j, name, (long long)set);
}

static void print_core_to_core(struct json *j, const struct bench_cpus *cpus)
{
	double v[ROUNDS];
	int ret;

	if (cpus->nr < 2) {
		json_null(j, "core_to_core_ns");
		json_str(j, "core_to_core_ns_reason",
			 "one CPU: there is no other to pass a line to");
		return;
	}
	ret = latency_core_to_core(cpus->cpu[0], cpus->cpu[1], v);
	if (ret) {
		json_null(j, "core_to_core_ns");
		json_str(j, "core_to_core_ns_reason", strerror(ret));
		return;
	}
	print_rounds(j, "core_to_core_ns", v);
}

enum bench_status bench_machine(const struct bench_options *o)
{
	struct json j = { .f = stdout };
	struct bench_place place;
	enum bench_status status = bench_place_init(o, &place);
	int ret;

	if (status)
		return status;
	ret = bench_cpu_pin(place.cpus.cpu[0]);
	if (ret)
		return bench_fail(BENCH_IMPOSSIBLE, NULL, "cannot be pinned to CPU %u: %s",
				  place.cpus.cpu[0], strerror(-ret));
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-machine-1");
	json_open(&j, "cpus", '[');
	for (unsigned int i = 0; i < min(place.cpus.nr, 2u); i++)
		json_long(&j, NULL, place.cpus.cpu[i]);
	json_close(&j, '[');
	print_core_to_core(&j, &place.cpus);
	print_copy(&j, "copy_cache_gb_per_s", CACHE_SET);
	print_copy(&j, "copy_memory_gb_per_s", MEMORY_SET);
	json_fixed(&j, "tick_ns", bench_tick_ns(), 6);
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
