/* SPDX-License-Identifier: MIT */
/*
 * GRO: segments that continue each other become one sk_buff, without a copy.
 *
 * Kernel: skb_gro_receive() in net/core/gro.c, 6.12. P holds the first segment; what happens to the
 * next one depends on where its payload lies:
 *
 *   in frags alone (headers linear)    the frags move to the last sk_buff of P; shell and head are
 *                                      free again
 *   in a head that is a page fragment  the head's page becomes a frag in front of the others; the
 *                                      shell is free again
 *   elsewhere, or the frags are full   the sk_buff itself becomes the last of P's frag_list, and
 *                                      what follows fills its frags
 *
 * So 45 segments of 1448 bytes and 17 frags an sk_buff make 17 + 17 + 11 frags in three shells, or
 * with heads 18 + 18 + 9 pieces; 15 segments of 4096 bytes fit into one. No reference is taken or
 * dropped.
 *
 * A held sk_buff is its softirq's alone: nothing here may run on one from two CPUs. Left out:
 * segments with a frag_list of their own, checksums, the list of 3.4, whose P was an empty sk_buff
 * in front.
 */
#ifndef SKB_SKB_GRO_H
#define SKB_SKB_GRO_H

#include "skb/skbuff.h"

#define GRO_LEGACY_MAX_SIZE 65536 /* bytes with headers, not reached: what every stack takes */
#define GRO_MAX_SIZE	    524280 /* the most that a device may set: BIG TCP, 5.19 */

/* What is left of a segment that was merged. */
enum napi_gro_free {
	NAPI_GRO_KEPT, /* it is in P's frag_list */
	NAPI_GRO_FREE, /* shell and head */
	NAPI_GRO_FREE_STOLEN_HEAD, /* the shell */
};

/* In sk_buff::cb while GRO has it. */
struct napi_gro_cb {
	struct sk_buff *last; /* of the chain: P itself, or the last of its frag_list */
	u32 data_offset; /* where the payload begins, counted from data */
	u16 count; /* segments */
	u8 free; /* enum napi_gro_free, once it is merged */
};
_Static_assert(sizeof(struct napi_gro_cb) <= 48, "fits into cb");

#define NAPI_GRO_CB(skb) ((struct napi_gro_cb *)(skb)->cb)

/* SKB is one segment, whose first OFFSET bytes, counted from data, are headers. */
static __always_inline void skb_gro_init(struct sk_buff *skb, u32 offset)
{
	*NAPI_GRO_CB(skb) = (struct napi_gro_cb){ .last = skb, .data_offset = offset, .count = 1 };
}

/* Bytes of payload of a segment that is not merged yet. */
static __always_inline u32 skb_gro_len(const struct sk_buff *skb)
{
	return skb->len - NAPI_GRO_CB(skb)->data_offset;
}

/*
 * SKB's payload becomes the end of P's. The caller is the only holder of both, nobody shares their
 * heads, and it knows that the one continues the other. 0: SKB is P's, or to be let go of by
 * napi_gro_free(). -E2BIG: P would reach MAX_SIZE bytes, its headers counted; -ETOOMANYREFS: one of
 * them is a page_pool's and the other not. On an error nothing has changed.
 */
int skb_gro_receive(struct sk_buff *p, struct sk_buff *skb, unsigned int max_size);

/* Lets go of what is left of a merged SKB; the shell goes to the CPU's cache. */
void napi_gro_free(const enum skb_era era, struct sk_buff *skb);

#endif
