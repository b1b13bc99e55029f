/* SPDX-License-Identifier: MIT */
/*
 * A transmit ring between TCP and a completion: what sits in it is a real clone, and freeing it is
 * the completion.
 *
 *                     tx_ring_xmit   tx_ring_complete
 * tx_ring_xmit             X                -           X: one producer, one consumer; the two may run on two CPUs
 * tx_ring_complete         -                X
 *
 * Stands for the driver's ring and the queue above it. A NIC lies between the two ends on real
 * machines; when it is done with a packet is the caller's to say, by completing that many.
 */
#ifndef TCP_TX_RING_H
#define TCP_TX_RING_H

#include "skb/skbuff.h"

struct tx_ring {
	struct sk_buff **slot;
	u32 mask;
	u32 tail ____cacheline_aligned; /* the producer's: next free slot */
	u32 head ____cacheline_aligned; /* the consumer's: oldest packet */
};

/* An empty ring of SIZE slots (a power of two). 0 or -ENOMEM, -EINVAL. */
int tx_ring_init(struct tx_ring *ring, u32 size);

/* The slots' memory. The ring is empty. */
void tx_ring_exit(struct tx_ring *ring);

/*
 * Packets in the ring: exact for the producer if it may only shrink, for the consumer if it may
 * only grow.
 */
static __always_inline u32 tx_ring_count(const struct tx_ring *ring)
{
	return smp_load_acquire(&ring->tail, SKB_C_RING) -
	       smp_load_acquire(&ring->head, SKB_C_RING);
}

/* Hands SKB over. False if the ring is full: SKB stays the caller's. */
static __always_inline bool tx_ring_xmit(struct tx_ring *ring, struct sk_buff *skb)
{
	u32 tail = ring->tail;

	if (unlikely(tail - smp_load_acquire(&ring->head, SKB_C_RING) > ring->mask))
		return false;
	ring->slot[tail & ring->mask] = skb;
	smp_store_release(&ring->tail, tail + 1,
			  SKB_C_RING); /* pairs with the consumer's acquire */
	return true;
}

SKB_ERA_DECLARE(u32, tx_ring_complete, struct tx_ring *ring, u32 budget);

/*
 * Completes up to BUDGET packets, oldest first: frees each on the calling CPU and returns how many
 * there were. Kernel: a driver's clean_tx_irq() and napi_consume_skb().
 */
static __always_inline u32 tx_ring_complete(const enum skb_era era, struct tx_ring *ring,
					    u32 budget)
{
	return SKB_ERA_CALL(era, tx_ring_complete, ring, budget);
}

#endif
