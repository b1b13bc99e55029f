/* SPDX-License-Identifier: MIT */
/*
 * Lock-free list: any CPUs add, some CPU takes all.
 *
 * Kernel: include/linux/llist.h and lib/llist.c, 6.12. An add is a load and one
 * compare-and-exchange for each try, taking all is one exchange. What is taken is in reverse order
 * of the adds and nobody else's: it is walked without atomics.
 *
 *                  llist_add   llist_del_all   llist_empty
 * llist_add            -             -              -       -: safe on any CPUs at once, however many add and
 * llist_del_all        -             -              -          take; none waits for another
 *
 * What they promise each other:
 *
 *   who           promise                                                          made by
 *   any taker     each entry is in exactly one take                                the exchange of FIRST
 *   any taker     what was written before the add of an entry that it took         llist_add()'s compare-and-exchange, a
 *                 is seen                                                          full barrier, and the taker's exchange
 *   one taker     of one producer's entries, those of a take come in the           one FIRST: an add puts its entry before
 *                 reverse order of their adds, and those of a later take were      all that are there, a take leaves none
 *                 added later
 *   a producer    llist_add() is true for exactly one add before each take that    the value that was exchanged
 *                 finds something: who got it tells the taker
 *   nobody        llist_empty(): stale at once
 *
 * tests/skb/llist_stress_test.c checks each of them. An entry must not be touched after it was added: another CPU may
 * have freed it. Left out: llist_del_first(), which needs a single taker. liburcu's lfstack and wfstack do the same job
 * with the opposite answer: their push says 0 (false) if the list was empty, llist_add() says true.
 */
#ifndef SKB_LLIST_H
#define SKB_LLIST_H

#include "skb/atomic.h"

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

/* Makes HEAD empty; nobody else may look at it yet. */
static __always_inline void init_llist_head(struct llist_head *head)
{
	head->first = NULL;
}

/* A hint: entries may come and go at any time. */
static __always_inline bool llist_empty(const struct llist_head *head)
{
	return skb_load(&head->first, SKB_C_LLIST) == NULL;
}

/*
 * Adds the chain from NEW_FIRST to NEW_LAST, linked by next. True if the list was empty. One RMW,
 * and one more for each other CPU that came in between.
 */
static __always_inline bool llist_add_batch(struct llist_node *new_first,
					    struct llist_node *new_last, struct llist_head *head)
{
	struct llist_node *first = skb_load(&head->first, SKB_C_LLIST), *found;

	for (;;) {
		skb_store(&new_last->next, first, SKB_C_LLIST);
		/* Full barrier: entries are written before they are seen. Pairs with xchg(). */
		found = cmpxchg(&head->first, first, new_first, SKB_C_LLIST);
		if (likely(found == first))
			return !first;
		first = found;
	}
}

/* Adds NEW. True if the list was empty. */
static __always_inline bool llist_add(struct llist_node *new, struct llist_head *head)
{
	return llist_add_batch(new, new, head);
}

/* Takes all entries, the last one added first; NULL: there were none. One RMW. */
static __always_inline struct llist_node *llist_del_all(struct llist_head *head)
{
	return xchg(&head->first, NULL, SKB_C_LLIST);
}

/* Turns round a list that the caller has taken; returns the entry that was added first. */
static __always_inline struct llist_node *llist_reverse_order(struct llist_node *head)
{
	struct llist_node *new_head = NULL;

	while (head) {
		struct llist_node *next = head->next;

		head->next = new_head;
		new_head = head;
		head = next;
	}
	return new_head;
}

#endif
