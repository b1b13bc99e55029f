/* SPDX-License-Identifier: MIT */
/*
 * What the contention benchmarks share: keys, handing from one CPU to another, roles.
 *
 * In all of them `threads` is how many CPUs do the operation at once, and one of a span's n is one operation of each;
 * where others serve them (flushers, a reader, those who free), these come on top. A case that needs more CPUs than
 * there are is refused by the harness (--skb_oversubscribe lets roles take turns, and the sample is marked).
 */
#ifndef BENCH_CONTEND_H
#define BENCH_CONTEND_H

#include "benches/harness/quota.h"

#include "skb/page_alloc.h"
#include "skb/skbuff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Words of the key `era`; the index is an enum skb_era. */
extern const char *const contend_era_words[];

#define CONTEND_KEY_ERA                                         \
	{                                                       \
		"era", contend_era_words, 0, 0, "6.12", "6.12", \
			"the kernel version whose rules hold"   \
	}
/* DEF threads, and GRID in the default listing; MOST leaves room for those who serve them. */
#define CONTEND_KEY_THREADS(most, def, grid, help)        \
	{                                                 \
		"threads", NULL, 1, most, def, grid, help \
	}

/*
 * Hands pointers from one CPU to one other. A slot holds NULL until something is in it, so that neither side reads the
 * other's index. Both wait by spinning, and book it.
 */
#define HAND_SLOTS 128
struct hand {
	void *slot[HAND_SLOTS];
	u32 given ____cacheline_aligned; /* the giver's */
	u32 taken ____cacheline_aligned; /* the taker's */
} ____cacheline_aligned;

static __always_inline void hand_give(struct hand *h, void *p)
{
	void **slot = &h->slot[h->given++ % HAND_SLOTS];

	bench_wait_until(!skb_load(slot, SKB_C_RING));
	/* What P points to was written before. Pairs with hand_take(). */
	smp_store_release(slot, p, SKB_C_RING);
}

static __always_inline void *hand_take(struct hand *h)
{
	void **slot = &h->slot[h->taken++ % HAND_SLOTS], *p;

	bench_wait_until(skb_load(slot, SKB_C_RING));
	p = smp_load_acquire(slot, SKB_C_RING);
	/* The slot is the giver's again: pairs with nothing, since only the slot itself is at stake. */
	skb_store(slot, NULL, SKB_C_RING);
	return p;
}

/* Waits until all that was given has been taken, so that giver and taker end their spans together. */
static __always_inline void hand_settle(struct hand *h)
{
	bench_wait_until(!skb_load(&h->slot[(h->given - 1) % HAND_SLOTS], SKB_C_RING));
}

/* The giver's last one in a span, for a taker that does not know how many there are. */
#define HAND_END ((void *)1UL)

static __always_inline void hand_finish(struct hand *h)
{
	hand_give(h, HAND_END);
	hand_settle(h);
}

/* BYTES of zeroed memory that begins a cache line, for free(); NULL with a sentence in ERR. */
void *contend_zalloc(size_t bytes, char *err, size_t errlen);

/* Roles FIRST to FIRST + NR - 1 of OUT run SPAN, which tells them apart by smp_processor_id(). */
void contend_roles(struct bench_case *out, unsigned int first, unsigned int nr, const char *name,
		   void (*span)(void *ctx, u64 n));

/* Each registers the operations of one file. */
void bench_contend_page(void);
void bench_contend_skb(void);
void bench_contend_mem(void);
void bench_contend_list(void);
void bench_contend_sock(void);
void bench_contend_charge(void);

#endif
