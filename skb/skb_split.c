/* SPDX-License-Identifier: MIT */
/*
 * skb_split(): cut an sk_buff in two.
 *
 * Kernel: net/core/skbuff.c, 6.12. Frag descriptors move; only a frag that the cut goes through
 * gets a reference more, and a ubuf_info is held by both halves. A reference on a page_pool's page is
 * the pool's own, if both halves give pages back: the kernel, which splits what TCP sends, never has
 * such a one. The flag that says "others may
 * write these pages" is both halves' then.
 */
#include "skb/skb_head.h"

static void split_inside_header(struct sk_buff *skb, struct sk_buff *skb1, u32 len)
{
	u32 moved = skb_headlen(skb) - len;

	skb_memcpy(skb_put(skb1, moved), skb->data + len, moved, SKB_C_HEAD);
	if (shinfo_read(skb, nr_frags)) {
		skb_copy_descs(skb1, 0, skb, 0, skb_shinfo(skb)->nr_frags);
		shinfo_write(skb, nr_frags, 0);
	}
	skb1->data_len = skb->data_len;
	skb1->len += skb1->data_len;
	skb->data_len = 0;
	skb->len = len;
	skb->tail = skb->data - skb->head + len;
}

static void split_no_header(struct sk_buff *skb, struct sk_buff *skb1, u32 len)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	int nr_frags = shinfo_read(skb, nr_frags), i;
	u32 pos = skb_headlen(skb), cut = 0;

	/* The first frag that ends behind the cut. */
	for (i = 0; i < nr_frags && pos + shinfo->frags[i].len <= len; i++)
		pos += shinfo->frags[i].len;
	if (i < nr_frags && pos < len)
		cut = len - pos;

	skb_copy_descs(skb1, 0, skb, i, nr_frags - i);
	if (cut) {
		skb_frag_t *b = &skb_shinfo(skb1)->frags[0];

		skb_pp_frag_ref(&shinfo->frags[i], skb->pp_recycle);
		b->offset += cut;
		b->len -= cut;
		shinfo->frags[i].len = cut;
		i++;
	}
	shinfo_write(skb, nr_frags, (u8)i);
	skb1->len = skb1->data_len = skb->len - len;
	skb->data_len -= skb->len - len;
	skb->len = len;
}

void skb_split(struct sk_buff *skb, struct sk_buff *skb1, u32 len)
{
	BUG_ON(len > skb->len);
	BUG_ON(skb_is_nonlinear(skb) &&
	       skb_cloned(skb)); /* the shared info would change under the clone */
	BUG_ON(skb_has_frag_list(skb));
	BUG_ON(skb1->len || skb1->pp_recycle != skb->pp_recycle);
	skb_zcopy_downgrade_managed(skb);
	skb_shinfo(skb1)->flags |=
		shinfo_read(skb, flags) & (SKBFL_SHARED_FRAG | SKBFL_PURE_ZEROCOPY);
	skb_zerocopy_clone(skb1, skb);
	if (len < skb_headlen(skb))
		split_inside_header(skb, skb1, len);
	else
		split_no_header(skb, skb1, len);
}
