/* SPDX-License-Identifier: MIT */
/*
 * pskb_copy(): a private head, shared pages.
 *
 * Kernel: net/core/skbuff.c, __pskb_copy_fclone(). TCP's way to send what is still in flight: n
 * gets, two objects, the linear bytes copied.
 */
#include "skb/skb_head.h"

#include <string.h>

static __always_inline struct sk_buff *do_pskb_copy(struct sk_buff *skb, const enum skb_era era)
{
	unsigned int headroom = skb_headroom(skb);
	unsigned int headlen = skb_headlen(skb);
	struct skb_shared_info *from = skb_shinfo(skb), *to;
	unsigned int nr_frags = shinfo_read(skb, nr_frags);
	struct sk_buff *n = alloc_skb(era, headroom + headlen, NUMA_NO_NODE);
	u32 object;
	u16 nid, alloc_cpu;

	if (!n)
		return NULL;
	skb_reserve(n, headroom);
	skb_put(n, headlen);
	skb_memcpy(n->data, skb->data, headlen, SKB_C_HEAD);

	to = skb_shinfo(n);
	n->truesize += skb->data_len;
	n->data_len = skb->data_len;
	n->len = skb->len;
	if (nr_frags) {
		skb_trace(SKB_RANGE_READ, SKB_C_SHINFO, from->frags, nr_frags * sizeof(skb_frag_t));
		skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, to->frags, nr_frags * sizeof(skb_frag_t));
		for (unsigned int i = 0; i < nr_frags; i++) {
			to->frags[i] = from->frags[i];
			skb_frag_ref(skb, i);
		}
		shinfo_write(n, nr_frags, (u8)nr_frags);
		to->flags |= from->flags & SKBFL_SHARED_FRAG;
	}
	if (shinfo_read(skb, frag_list)) {
		to->frag_list = from->frag_list;
		skb_clone_fraglist(to->frag_list);
	}

	object = n->headers.head_size;
	nid = n->headers.head_nid;
	alloc_cpu = n->headers.alloc_cpu;
	n->tstamp = skb->tstamp;
	n->dev = skb->dev;
	memcpy(n->cb, skb->cb, sizeof(n->cb));
	n->queue_mapping = skb->queue_mapping;
	memcpy(&n->headers, &skb->headers, sizeof(n->headers));
	n->headers.head_size = object;
	n->headers.head_nid = nid;
	n->headers.alloc_cpu = alloc_cpu;
	to->gso_size = from->gso_size;
	to->gso_segs = from->gso_segs;
	to->gso_type = from->gso_type;
	return n;
}

#define INSTANTIATE(suffix, era)                                \
	struct sk_buff *pskb_copy_##suffix(struct sk_buff *skb) \
	{                                                       \
		return do_pskb_copy(skb, era);                  \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
