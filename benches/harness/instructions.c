/* SPDX-License-Identifier: MIT */
/*
 * What callgrind counts: n operations from the warm state, inside one function with a name of its
 * own (--collect-atstart=no --toggle-collect=skb_bench_counted_span). The program's own preparation
 * is outside.
 *
 * NAME counts whole operations, NAME#PHASE the part of each that the operation's ledger calls
 * PHASE.
 */
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/phase.h"
#include "benches/harness/session.h"

#include <string.h>

static enum bench_status count_spans(struct bench_session *s, u64 n)
{
	if (s->c.nr_roles > 1)
		return bench_fail(
			BENCH_IMPOSSIBLE, s->name,
			"has %u roles that wait for each other by spinning, and spins are not "
			"the same number twice: count its phases, or a case with one role",
			s->c.nr_roles);
	s->c.role[0].span(s->c.ctx, BENCH_WARM_OPS);
	skb_bench_counted_span(s->c.role[0].span, s->c.ctx, n);
	return BENCH_OK;
}

static enum bench_status count_phase(struct bench_session *s, const char *phase, u64 n)
{
	if (!s->c.ledger)
		return bench_fail(BENCH_USAGE, s->name, "has no phases: leave out #%s", phase);
	for (int i = 0; i < BENCH_WARM_OPS; i++)
		s->c.ledger(s->c.ctx);
	bench_count_phase(phase);
	while (n--)
		s->c.ledger(s->c.ctx);
	bench_count_phase(NULL); /* the check that follows may run phases too */
	if (!bench_phase_runs())
		return bench_fail(BENCH_USAGE, s->name, "has no phase %s: its ledger names them",
				  phase);
	return BENCH_OK;
}

enum bench_status bench_instructions(const struct bench_options *given)
{
	static struct bench_session s;
	struct bench_options o = *given;
	struct json j = { .f = stdout };
	char name[BENCH_NAME_MAX];
	char *phase;
	enum bench_status status;

	if (strlen(o.name) >= sizeof(name))
		return bench_fail(BENCH_USAGE, o.name, "is longer than any name");
	strcpy(name, o.name);
	phase = strchr(name, '#');
	if (phase)
		*phase++ = '\0';
	o.name = name;
	status = bench_session_open(&s, &o);
	if (status)
		return status;
	status =
		bench_session_close(&s, phase ? count_phase(&s, phase, o.n) : count_spans(&s, o.n));
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "name", s.name);
	if (phase)
		json_str(&j, "phase", phase);
	json_long(&j, "n", (long long)o.n);
	json_long(&j, "warm_ops", BENCH_WARM_OPS);
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
