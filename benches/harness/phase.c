/* SPDX-License-Identifier: MIT */
/* One phase of an operation: counted into the ledger, counted by callgrind, or only run. */
#include "benches/harness/phase.h"

#include <string.h>

#ifndef SKB_TRACED
const char *bench_counted_phase;
u64 bench_counted_runs;

/*
 * The function that callgrind toggles on. Not static, so that no compiler gives it another name: callgrind would count 0
 * and say nothing.
 */
void skb_bench_counted_phase(void (*fn)(void *ctx), void *ctx);

own_symbol void skb_bench_counted_phase(void (*fn)(void *ctx), void *ctx)
{
	fn(ctx);
	bench_clobber(); /* no tail call: the toggle is this function's return */
}
#endif

void bench_phase(const char *name, void (*fn)(void *ctx), void *ctx)
{
#ifdef SKB_TRACED
	bench_ledger_begin();
	fn(ctx);
	bench_ledger_end(name);
#else
	if (bench_counted_phase && !strcmp(name, bench_counted_phase)) {
		bench_counted_runs++;
		skb_bench_counted_phase(fn, ctx);
	} else {
		fn(ctx);
	}
#endif
}
