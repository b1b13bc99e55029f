/* SPDX-License-Identifier: MIT */
/*
 * tcp_trim_head(): remove acknowledged bytes from the front of an sk_buff.
 *
 * Kernel: net/ipv4/tcp_output.c, 3.4, 6.1 and 6.12. This is what the 2012 patch makes rare: while
 * the clone is still below TCP, the head must become private first, which costs a reference on
 * every page. What is uncharged: 3.4 every trimmed byte, even linear ones, which free no memory;
 * 6.1 the bytes that came out of frags; 6.12 has no linear bytes any more. An sk_buff of zerocopy
 * alone was not charged for its bytes.
 */
#include "tcp/tcp.h"

#include <errno.h>

u32 __pskb_trim_head(struct sk_buff *skb, u32 len)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 linear = min(len, skb_headlen(skb)), eat;
	int nr_frags = shinfo_read(skb, nr_frags), kept = 0;

	BUG_ON(shinfo_read(skb, frag_list) != NULL); /* its bytes would be left behind */
	if (linear) {
		__skb_pull(skb, linear);
		len -= linear;
		if (!len)
			return 0;
	}
	eat = len;
	for (int i = 0; i < nr_frags; i++) {
		skb_frag_t *frag = &shinfo->frags[i];

		/* Also drops an empty frag that stands in front. */
		if (eat && frag->len <= eat) {
			eat -= frag->len;
			put_page(frag->page); /* never of a page_pool: TCP's own */
			continue;
		}
		shinfo->frags[kept] = *frag;
		shinfo->frags[kept].offset += eat;
		shinfo->frags[kept].len -= eat;
		eat = 0;
		kept++;
	}
	shinfo_write(skb, nr_frags, (u8)kept);
	skb->data_len -= len;
	skb->len = skb->data_len;
	skb_reset_tail_pointer(skb);
	return len;
}

static __always_inline int do_tcp_trim_head(struct sock *sk, struct sk_buff *skb, u32 len,
					    const enum skb_era era, const enum tcp_trim trim)
{
	u32 paged, delta;
	int err;

	err = era < ERA_6_1 ? skb_unclone(era, skb) : skb_unclone_keeptruesize(era, skb);
	if (unlikely(err))
		return -ENOMEM;
	paged = __pskb_trim_head(skb, len);
	TCP_SKB_CB(skb)->seq += len;

	delta = era == ERA_6_1 ? paged : len;
	skb->truesize -= delta;
	sk_wmem_queued_add(sk, -(int)delta);
	if (era < ERA_6_1 || !skb_zcopy_pure(skb))
		sk_mem_uncharge(era, sk, delta);

	if (trim == TRIM_OFFSET_ACK) {
		/* What was noted is gone with the bytes. */
		u32 *noted = &TCP_SKB_CB(skb)->offset_ack;

		*noted -= min(*noted, len);
	}
	if (tcp_skb_pcount(era, skb) > 1)
		tcp_set_skb_tso_segs(era, trim, skb, tcp_skb_mss(era, skb));
	return 0;
}

#define INSTANTIATE(suffix, era, trim)                                            \
	int tcp_trim_head_##suffix(struct sock *sk, struct sk_buff *skb, u32 len) \
	{                                                                         \
		return do_tcp_trim_head(sk, skb, len, era, trim);                 \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)

const char *tcp_trim_name(enum tcp_trim trim)
{
	return trim == TRIM_OFFSET_ACK ? "offset_ack" : "eager";
}
