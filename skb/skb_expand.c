/* SPDX-License-Identifier: MIT */
/*
 * pskb_expand_head(): give an sk_buff a private head while its pages stay shared. And
 * skb_unclone_keeptruesize().
 *
 * Kernel: net/core/skbuff.c, 3.4 and 6.12. With n frags, a frag_list of L members and H bytes from
 * head to tail:
 *
 *   not cloned   no RMW; a head made and one freed; H + 48 + 16 n bytes copied, headroom included
 *   cloned       n gets, L holds and one RMW on dataref; a head made, none freed; the other owner,
 *                when it lets go, puts the n pages and the L members and frees the head that both
 *                had. They are put as ordinary pages, also those of a page_pool, to which SKB
 *                gives nothing back any more. One RMW more if there is a ubuf_info, which both hold then.
 *   cloned, and the other owner lets go in between: the puts and the free happen here. Gets come
 *                before the release, or the pages would be freed under the new head.
 *   managed      n gets more, first of all: no frag may be shared without its reference. They stay
 *                if no head is to be had.
 *
 * 3.4 slides the bytes inside the head it has if nobody shares it and the bucket has the room, and
 * never adjusts truesize; it knows no reference on a ubuf_info. Left out: copying of zerocopy frags
 * that must not be shared, since they were copied when the clone was made.
 */
#include "skb/skb_head.h"

#include <string.h>

static __always_inline bool skb_owns_head(const struct sk_buff *skb)
{
	int bias = skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1;

	return !skb->cloned ||
	       atomic_read_acquire(&skb_shinfo(skb)->dataref, SKB_C_DATAREF) == bias;
}

/* What every way through an expansion ends with: SKB looks at HEAD, NHEAD bytes further in. */
static __always_inline void skb_take_head(struct sk_buff *skb, unsigned char *head,
					  unsigned int end, int nhead)
{
	unsigned int headroom = skb_headroom(skb);

	skb->head = head;
	skb->data = head + headroom + nhead;
	skb->end = end;
	skb->tail += nhead;
	skb->headers.transport_header += nhead;
	skb->headers.network_header += nhead;
	if (skb->headers.mac_header != (u16)~0U) /* it may not be set yet */
		skb->headers.mac_header += nhead;
	if (skb->headers.ip_summed == CHECKSUM_PARTIAL)
		skb->headers.csum += nhead;
	skb->cloned = 0;
	skb->hdr_len = 0;
	skb->nohdr = 0;
	atomic_set(&skb_shinfo(skb)->dataref, 1, SKB_C_DATAREF);
}

/* 3.4: the head stays, its bytes move. */
static __always_inline bool skb_slide_head(struct sk_buff *skb, int nhead, unsigned int size)
{
	size_t used = skb_shinfo_used(skb);

	if (skb->head_frag || size + sizeof(struct skb_shared_info) > skb->headers.head_size)
		return false;
	skb_trace(SKB_RANGE_WRITE, SKB_C_HEAD, skb->head + size, used);
	memmove(skb->head + size, skb_end_pointer(skb), used);
	skb_trace(SKB_RANGE_WRITE, SKB_C_HEAD, skb->head + nhead, skb->tail);
	memmove(skb->head + nhead, skb->head, skb->tail);
	skb_take_head(skb, skb->head, size, nhead);
	return true;
}

static __always_inline int do_pskb_expand_head(struct sk_buff *skb, int nhead, int ntail,
					       const enum skb_era era)
{
	unsigned int osize = skb_end_offset(skb);
	unsigned int size = osize + nhead + ntail;
	unsigned int nid = numa_node_id();
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned char *data;
	u32 object;

	BUG_ON(nhead < 0);
	BUG_ON(skb_shared(skb));

	if (era >= ERA_6_1)
		skb_zcopy_downgrade_managed(skb);
	if (era < ERA_6_1) {
		size = SKB_DATA_ALIGN(size);
		if (skb_owns_head(skb) && skb_slide_head(skb, nhead, size))
			return 0;
	}

	data = kmalloc_reserve(&size, &object, nid, era);
	if (unlikely(!data))
		return -ENOMEM;
	skb_memcpy(data + nhead, skb->head, skb->tail, SKB_C_HEAD);
	skb_copy_shinfo(data + size, skb);

	if (era < ERA_6_1 ? !skb_owns_head(skb) : skb_cloned(skb)) {
		if (unlikely(skb_zcopy(skb)))
			net_zcopy_get(skb_zcopy(skb));
		for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
			skb_frag_ref(skb, i);
		if (skb_has_frag_list(skb))
			skb_clone_fraglist(shinfo->frag_list);
		skb_release_data(era, skb);
	} else {
		skb_free_head(skb, era);
	}

	skb_take_head(skb, data, size, nhead);
	skb->head_frag = 0;
	skb->headers.head_size = object;
	skb->headers.head_nid = nid;
	/* An owned sk_buff was charged what it was charged. */
	if (era >= ERA_6_1 && !skb->sk)
		skb->truesize += size - osize;
	return 0;
}

static __always_inline int do_skb_unclone_keeptruesize(struct sk_buff *skb, const enum skb_era era)
{
	unsigned int truesize = skb->truesize;
	unsigned int end = skb_end_offset(skb);
	int err = pskb_expand_head(era, skb, 0, 0);

	if (unlikely(err))
		return err;
	skb->truesize = truesize;
	if (unlikely(skb_end_offset(skb) != end)) {
		/* A larger bucket than before: the room that nobody paid for is closed again. */
		size_t used = skb_shinfo_used(skb);

		skb_trace(SKB_RANGE_WRITE, SKB_C_HEAD, skb->head + end, used);
		memmove(skb->head + end, skb_shinfo(skb), used);
		skb_set_end_offset(skb, end);
	}
	return 0;
}

#define INSTANTIATE(suffix, era)                                                 \
	int pskb_expand_head_##suffix(struct sk_buff *skb, int nhead, int ntail) \
	{                                                                        \
		return do_pskb_expand_head(skb, nhead, ntail, era);              \
	}                                                                        \
	int skb_unclone_keeptruesize_##suffix(struct sk_buff *skb)               \
	{                                                                        \
		return do_skb_unclone_keeptruesize(skb, era);                    \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
