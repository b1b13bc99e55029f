/* SPDX-License-Identifier: MIT */
/*
 * sk_buffs on a transmit queue: from TCP's ring of clones into descriptors, and back by completion.
 *
 *   tcp_transmit_skb() -> tx_ring -> skb_tx_push() -> descriptors ... DD -> skb_tx_complete()
 *                                                                        -> tx_ring_complete()
 *
 *                   skb_tx_push   skb_tx_complete
 * skb_tx_push            X               -           X: the caller serialises
 * skb_tx_complete        -               X           -: may run on two CPUs
 *
 * Frags are read by the device where they lie. A clone's linear part is copied into the header slot
 * of its descriptors, since heads are not mapped for the device; a kernel driver maps them instead
 * (dma_map_single). Kernel: ixgbe_xmit_frame_ring() and ixgbe_clean_tx_irq().
 */
#ifndef HW_IXGBE_SKB_TX_H
#define HW_IXGBE_SKB_TX_H

#include "hw/flow.h"
#include "hw/ixgbe/ixgbe.h"
#include "tcp/tx_ring.h"

struct skb_tx {
	struct ixgbe_txq *q;
	struct tx_ring *ring;
	struct flow flow;
	u32 seen; /* slots of the ring that are posted */
	u64 pages_iova;
};

/*
 * Q sends what comes into RING, with FLOW's addresses; all page memory is mapped for the device. 0,
 * or what nicdev_dma_map() returns, with a sentence in ERR.
 */
int skb_tx_init(struct skb_tx *t, struct ixgbe_txq *q, struct tx_ring *ring,
		const struct flow *flow, char *err, size_t errlen);

/* Unmaps the pages. The queue is stopped. */
void skb_tx_exit(struct skb_tx *t);

/*
 * Posts the packets of the ring that are not yet, and rings the doorbell. How many they were; fewer
 * than there are if the descriptor ring is full, the rest by a later call. -EINVAL, -E2BIG for a
 * packet that the device must not be given, with a sentence in ERR: it stays in the ring.
 */
int skb_tx_push(struct skb_tx *t, char *err, size_t errlen);

/* Frees the N oldest clones of the ring, which ixgbe_tx_clean() said are done. */
static __always_inline void skb_tx_complete(const enum skb_era era, struct skb_tx *t, u32 n)
{
	BUG_ON(tx_ring_complete(era, t->ring, n) != n);
}

#endif
