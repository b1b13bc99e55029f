/* SPDX-License-Identifier: MIT */
#include "tcp/tx_ring.h"

#include <errno.h>
#include <stdlib.h>

int tx_ring_init(struct tx_ring *ring, u32 size)
{
	if (!size || size & (size - 1))
		return -EINVAL;
	ring->slot = calloc(size, sizeof(*ring->slot));
	if (!ring->slot)
		return -ENOMEM;
	ring->mask = size - 1;
	ring->head = ring->tail = 0;
	return 0;
}

void tx_ring_exit(struct tx_ring *ring)
{
	BUG_ON(ring->head != ring->tail);
	free(ring->slot);
	ring->slot = NULL;
}

static __always_inline u32 do_complete(struct tx_ring *ring, u32 budget, const enum skb_era era)
{
	u32 head = ring->head;
	u32 n = min(smp_load_acquire(&ring->tail, SKB_C_RING) - head, budget);

	for (u32 i = 0; i < n; i++)
		consume_skb(era, ring->slot[(head + i) & ring->mask]);
	smp_store_release(&ring->head, head + n,
			  SKB_C_RING); /* pairs with the producer's acquire */
	return n;
}

#define INSTANTIATE(suffix, era)                                        \
	u32 tx_ring_complete_##suffix(struct tx_ring *ring, u32 budget) \
	{                                                               \
		return do_complete(ring, budget, era);                  \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
