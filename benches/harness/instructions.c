/* SPDX-License-Identifier: MIT */
/*
 * What callgrind counts: n operations from the warm state, inside one function with a name of its own
 * (--collect-atstart=no --toggle-collect=skb_bench_counted_span). The program's own preparation is outside.
 */
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/phase.h"
#include "benches/harness/session.h"

/* Not static, so that no compiler gives it another name: callgrind would count 0 and say nothing. */
void skb_bench_counted_span(void (*span)(void *ctx, u64 n), void *ctx, u64 n);

own_symbol void skb_bench_counted_span(void (*span)(void *ctx, u64 n), void *ctx, u64 n)
{
	span(ctx, n);
	bench_clobber(); /* no tail call: the toggle is this function's return */
}

enum bench_status bench_instructions(const struct bench_options *o)
{
	static struct bench_session s;
	struct json j = { .f = stdout };
	enum bench_status status = bench_session_open(&s, o);

	if (status)
		return status;
	if (s.c.nr_roles > 1) {
		status = bench_fail(
			BENCH_IMPOSSIBLE, s.name,
			"has %u roles that wait for each other by spinning, and spins are not "
			"the same number twice: count a case with one role",
			s.c.nr_roles);
	} else {
		s.c.role[0].span(s.c.ctx, BENCH_WARM_OPS);
		skb_bench_counted_span(s.c.role[0].span, s.c.ctx, o->n);
	}
	status = bench_session_close(&s, status);
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "name", s.name);
	json_long(&j, "n", (long long)o->n);
	json_long(&j, "warm_ops", BENCH_WARM_OPS);
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
