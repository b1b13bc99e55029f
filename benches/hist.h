/* SPDX-License-Identifier: MIT */
/* A histogram of times: 64 slots to each doubling, so that a quantile is right to 1.6 %. */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include "skb/compiler.h"

#define HIST_BITS  6
#define HIST_SLOTS (40 << HIST_BITS) /* values up to 2^44 */

/* All zeros: empty. One writer. */
struct hist {
	u64 nr[HIST_SLOTS];
	u64 max;
};

static __always_inline void hist_add(struct hist *h, u64 v)
{
	unsigned int shift = 0, slot;

	if (v > h->max)
		h->max = v;
	if (v >> (HIST_BITS + 1))
		shift = 63 - (unsigned int)__builtin_clzll(v) - HIST_BITS;
	slot = (shift << HIST_BITS) + (unsigned int)(v >> shift);
	h->nr[min(slot, (unsigned int)HIST_SLOTS - 1)]++;
}

/* The lower end of the slot in which the share Q (0 to 1) of all values is reached; 0 if empty. */
static inline double hist_quantile(const struct hist *h, double q)
{
	u64 total = 0, seen = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		total += h->nr[i];
	for (unsigned int i = 0; total && i < HIST_SLOTS; i++) {
		unsigned int shift = i >> (HIST_BITS + 1) ? (i >> HIST_BITS) - 1 : 0;

		seen += h->nr[i];
		if ((double)seen >= q * (double)total)
			return (double)((u64)(i - (shift << HIST_BITS)) << shift);
	}
	return 0;
}

#endif
