/* SPDX-License-Identifier: MIT */
/*
 * Ping-pong: a line goes to the other CPU and back. And --skb_latency, the matrix of all pairs. On a
 * virtual machine these figures change by the hour.
 */
#include "benches/harness/latency.h"

#include "benches/harness/clock.h"
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/session.h"
#include "benches/harness/stats.h"

#include <pthread.h>
#include <string.h>

#define TRIPS 500 /* there and back, a round */

struct pong {
	struct {
		int v;
	} ball ____cacheline_aligned; /* odd: the other CPU's turn */
	unsigned int cpu ____cacheline_aligned;
	int pinned; /* bench_cpu_pin()'s answer, released by the first pong */
};

static void *pong_main(void *arg)
{
	struct pong *p = arg;

	p->pinned = bench_cpu_pin(p->cpu);
	for (int i = 0; i < LATENCY_ROUNDS * TRIPS; i++) {
		while (smp_load_acquire(&p->ball.v, SKB_C_OTHER) != 2 * i + 1)
			cpu_relax();
		smp_store_release(&p->ball.v, 2 * i + 2, SKB_C_OTHER);
	}
	return NULL;
}

static void ping(struct pong *p, int i)
{
	smp_store_release(&p->ball.v, 2 * i + 1, SKB_C_OTHER);
	while (smp_load_acquire(&p->ball.v, SKB_C_OTHER) != 2 * i + 2)
		cpu_relax();
}

int latency_core_to_core(unsigned int a, unsigned int b, double *ns)
{
	struct pong p = { .cpu = b };
	pthread_t thread;
	int ret = -bench_cpu_pin(a);

	if (!ret)
		ret = pthread_create(&thread, NULL, pong_main, &p);
	if (ret)
		return ret;
	for (int round = 0, i = 0; round < LATENCY_ROUNDS; round++) {
		u64 start = bench_wall_ns();

		for (int trip = 0; trip < TRIPS; trip++)
			ping(&p, i++);
		ns[round] = (double)(bench_wall_ns() - start) / (2 * TRIPS);
	}
	pthread_join(thread, NULL);
	sort_values(ns, LATENCY_ROUNDS);
	return -p.pinned;
}

enum bench_status bench_latency(const struct bench_options *o)
{
	struct json j = { .f = stdout };
	struct bench_place place;
	enum bench_status status = bench_place_init(o, &place);
	double ns[LATENCY_ROUNDS];

	if (status)
		return status;
	if (place.cpus.nr < 2)
		return bench_fail(
			BENCH_IMPOSSIBLE, NULL,
			"one CPU: there is no other to pass a line to; allow this process two");
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-latency-1");
	json_open(&j, "pairs", '[');
	for (unsigned int a = 0; a < place.cpus.nr; a++)
		for (unsigned int b = a + 1; b < place.cpus.nr; b++) {
			int ret = latency_core_to_core(place.cpus.cpu[a], place.cpus.cpu[b], ns);

			if (ret)
				return bench_fail(BENCH_IMPOSSIBLE, NULL, "CPUs %u and %u: %s",
						  place.cpus.cpu[a], place.cpus.cpu[b],
						  strerror(ret));
			json_open(&j, NULL, '{');
			json_long(&j, "a", place.cpus.cpu[a]);
			json_long(&j, "b", place.cpus.cpu[b]);
			json_fixed(&j, "p10", quantile(ns, LATENCY_ROUNDS, .10), 3);
			json_fixed(&j, "p50", quantile(ns, LATENCY_ROUNDS, .50), 3);
			json_fixed(&j, "p90", quantile(ns, LATENCY_ROUNDS, .90), 3);
			json_close(&j, '{');
		}
	json_close(&j, '[');
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
