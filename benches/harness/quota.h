/* SPDX-License-Identifier: MIT */
/*
 * Work that several roles share, so that they end together.
 *
 * CPUs that meet on one line do not get it equally often. With as many operations for each, the lucky ones are done while
 * the others go on alone, which is no contention any more, and the harness rightly drops the batch (batch_counts()). So
 * the roles take their operations from a common pile, in parts that become smaller towards its end: some 20 parts a role
 * and batch, well below a percent of its time. Which role did how many is not told; together they did all of them.
 *
 *                 quota_begin   quota_take   quota_over
 *   who           each role     each role    anyone         all safe on any CPUs at once; a role's own calls in order
 *
 * A quota is zeroed before its first span, and all roles that share it run the same n in each batch.
 */
#ifndef BENCH_QUOTA_H
#define BENCH_QUOTA_H

#include "benches/harness/bench.h"

#include "skb/cpu.h"

struct bench_quota {
	atomic_long_t next; /* operations given out, over all batches */
	struct {
		long end; /* of the pile of the last batch */
	} ____cacheline_aligned of[BENCH_MAX_ROLES];
} ____cacheline_aligned;

/* The present batch, as one role sees it. */
struct bench_share {
	long end, parts, least;
};

/* For the calling role: N operations for each of ROLES roles lie on the pile. */
static __always_inline struct bench_share quota_begin(struct bench_quota *q, u64 n,
						      unsigned int roles)
{
	long *end = &q->of[smp_processor_id()].end;

	*end += (long)(n * roles);
	return (struct bench_share){ *end, 4 * (long)roles, max((long)(n / 128), 1L) };
}

/* How many operations the caller is to do next; 0: none is left. */
static __always_inline u64 quota_take(struct bench_quota *q, const struct bench_share *s)
{
	long at = atomic_long_read(&q->next, SKB_C_OTHER);

	for (;;) {
		long left = s->end - at, part, found;

		if (left <= 0)
			return 0;
		part = min(max(left / s->parts, s->least), left);
		found = cmpxchg(&q->next.counter, at, at + part, SKB_C_OTHER);
		if (likely(found == at))
			return (u64)part;
		at = found;
	}
}

/* True once all operations have been taken: for roles that serve the others until then. */
static __always_inline bool quota_over(struct bench_quota *q, const struct bench_share *s)
{
	return atomic_long_read(&q->next, SKB_C_OTHER) >= s->end;
}

#endif
