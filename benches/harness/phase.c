/* SPDX-License-Identifier: MIT */
/* One phase of an operation: counted into the ledger, counted by callgrind, or only run. */
#include "benches/harness/phase.h"

#include <string.h>

#ifdef __clang__
#define own_symbol __attribute__((noinline, used))
#else
#define own_symbol __attribute__((noinline, noclone, used))
#endif

struct phase {
	void (*fn)(void *ctx);
	void *ctx;
};

static const char *chosen;
static u64 runs;

own_symbol void skb_bench_counted_span(void (*span)(void *ctx, u64 n), void *ctx, u64 n)
{
	span(ctx, n);
	bench_clobber(); /* no tail call: the toggle is this function's return */
}

void bench_count_phase(const char *name)
{
	chosen = name;
	if (name)
		runs = 0;
}

u64 bench_phase_runs(void)
{
	return runs;
}

static void run_phase(void *arg, u64 n)
{
	struct phase *p = arg;

	(void)n;
	p->fn(p->ctx);
}

void bench_phase(const char *name, void (*fn)(void *ctx), void *ctx)
{
	bench_ledger_begin();
	if (chosen && !strcmp(name, chosen)) {
		runs++;
		skb_bench_counted_span(run_phase, &(struct phase){ fn, ctx }, 1);
	} else {
		fn(ctx);
	}
	bench_ledger_end(name);
}
