/* SPDX-License-Identifier: MIT */
/*
 * ptr_ring: a bounded queue of pointers from any CPU to one at a time.
 *
 * Kernel: include/linux/ptr_ring.h, 6.12. An empty slot holds NULL, so that each side knows from
 * the slot alone whether it may go on, and neither reads the other's index: the producers' and the
 * consumer's lines never meet but in the slots. The consumer clears what it took a batch of two
 * cache lines at a time, from behind, so that a producer does not write into the line from which it
 * reads.
 *
 *                     ptr_ring_produce   __ptr_ring_consume   ptr_ring_consume
 * ptr_ring_produce           -                   -                    -
 * __ptr_ring_consume         -                   X                    X
 * ptr_ring_consume           -                   X                    -
 *
 *   -: safe on two CPUs at once.  X: the caller serialises.
 *
 * Left out: resizing, consuming in batches, locks that disable interrupts.
 */
#ifndef SKB_PTR_RING_H
#define SKB_PTR_RING_H

#include "skb/atomic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ptr_ring {
	int producer ____cacheline_aligned; /* the slot that is written next; under the lock */
	spinlock_t producer_lock;
	int consumer_head ____cacheline_aligned; /* the slot that is taken next */
	int consumer_tail; /* the first one that is taken and not yet cleared */
	spinlock_t consumer_lock;
	int size ____cacheline_aligned; /* these three never change */
	int batch;
	void **queue;
};

/* An empty ring on the SIZE zeroed slots at QUEUE, at least one, which stay the caller's. */
static inline void ptr_ring_init_at(struct ptr_ring *r, void **queue, int size)
{
	memset(r, 0, sizeof(*r));
	r->queue = queue;
	r->size = size;
	r->batch = 2 * SMP_CACHE_BYTES / (int)sizeof(void *);
	/* A small ring would be full of what is taken already. */
	if (r->batch > size / 2 || !r->batch)
		r->batch = 1;
}

/* An empty ring of SIZE slots, at least one. 0 or -ENOMEM. */
static inline int ptr_ring_init(struct ptr_ring *r, int size)
{
	size_t bytes = ALIGN((size_t)size * sizeof(void *), SMP_CACHE_BYTES);
	void **queue = aligned_alloc(SMP_CACHE_BYTES, bytes);

	if (!queue)
		return -ENOMEM;
	memset(queue, 0, bytes);
	ptr_ring_init_at(r, queue, size);
	return 0;
}

/* R's memory, if ptr_ring_init() got it. What is in it is the caller's. */
static inline void ptr_ring_cleanup(struct ptr_ring *r)
{
	free(r->queue);
	r->queue = NULL;
}

/* PTR (not NULL) becomes the last; false if there is no slot. One lock RMW. Any CPU. */
static __always_inline bool ptr_ring_produce(struct ptr_ring *r, void *ptr)
{
	bool fits;

	spin_lock(&r->producer_lock, SKB_C_LOCK);
	fits = !skb_load(&r->queue[r->producer], SKB_C_RING);
	if (likely(fits)) {
		/* What PTR points to was written before. Pairs with the consumer's acquire. */
		smp_store_release(&r->queue[r->producer], ptr, SKB_C_RING);
		if (unlikely(++r->producer == r->size))
			r->producer = 0;
	}
	spin_unlock(&r->producer_lock, SKB_C_LOCK);
	return fits;
}

/* True if nothing is in it at this moment. For the consumer. */
static __always_inline bool __ptr_ring_empty(const struct ptr_ring *r)
{
	return !skb_load(&r->queue[r->consumer_head], SKB_C_RING);
}

static __always_inline void __ptr_ring_discard_one(struct ptr_ring *r)
{
	int head = r->consumer_head, next = head + 1;

	/* At the end of the ring, too, so that a batch never wraps. */
	if (unlikely(next - r->consumer_tail >= r->batch || next == r->size)) {
		for (; head >= r->consumer_tail; head--)
			skb_store(&r->queue[head], NULL, SKB_C_RING);
		r->consumer_tail = next;
	}
	if (unlikely(next == r->size))
		next = r->consumer_tail = 0;
	r->consumer_head = next;
}

/* The first one, or NULL. No RMW; the caller is the only consumer. */
static __always_inline void *__ptr_ring_consume(struct ptr_ring *r)
{
	void *ptr = smp_load_acquire(&r->queue[r->consumer_head], SKB_C_RING);

	if (ptr)
		__ptr_ring_discard_one(r);
	return ptr;
}

/* The same against other consumers that take the lock, too. One lock RMW. */
static __always_inline void *ptr_ring_consume(struct ptr_ring *r)
{
	void *ptr;

	spin_lock(&r->consumer_lock, SKB_C_LOCK);
	ptr = __ptr_ring_consume(r);
	spin_unlock(&r->consumer_lock, SKB_C_LOCK);
	return ptr;
}

#endif
