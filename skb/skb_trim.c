/* SPDX-License-Identifier: MIT */
/*
 * Cutting bytes off the tail, and making bytes linear: pskb_trim(), __pskb_pull_tail(),
 * skb_condense().
 *
 * Kernel: net/core/skbuff.c, 3.4 and 6.12. A head that is shared becomes private first
 * (skb_expand.c); what is dropped costs one put a frag; __pskb_pull_tail() copies DELTA bytes. A
 * member of a frag_list that others hold is changed in a clone that takes its place. Left out: the
 * mark on a GSO packet whose members were pulled apart. One thing more than the kernel does: a
 * shared sk_buff is refused here and not only where a head is made.
 */
#include "skb/skb_head.h"

/* Lets go of the members from *LIST on. */
static __always_inline void skb_drop_list(struct sk_buff **list, const enum skb_era era)
{
	if (*list) {
		kfree_skb_list(era, *list);
		*list = NULL;
	}
}

/* Frags from FIRST on are let go of. */
static __always_inline void skb_drop_frags(struct sk_buff *skb, int first, const enum skb_era era)
{
	int nr_frags = shinfo_read(skb, nr_frags);

	shinfo_write(skb, nr_frags, (u8)first);
	for (int i = first; i < nr_frags; i++)
		skb_frag_unref(era, skb, i);
}

/* The frag_list from its first byte on, OFFSET of the whole, ends at byte LEN of the whole. */
static __always_inline int trim_frag_list(struct sk_buff *skb, u32 offset, u32 len,
					  const enum skb_era era)
{
	for (struct sk_buff **p = &skb_shinfo(skb)->frag_list, *member; (member = *p);
	     p = &member->next) {
		if (skb_shared(member)) {
			struct sk_buff *own = skb_clone(era, member);
			int err = own ? 0 : -ENOMEM;

			if (unlikely(err))
				return err;
			own->next = member->next;
			kfree_skb(era, member);
			member = *p = own;
		}
		if (offset + member->len < len) {
			offset += member->len;
			continue;
		}
		if (pskb_trim(era, member, len - offset))
			return -ENOMEM;
		skb_drop_list(&member->next, era);
		break;
	}
	return 0;
}

static __always_inline int do_pskb_trim(struct sk_buff *skb, u32 len, const enum skb_era era)
{
	u32 offset = skb_headlen(skb);
	int keep = 0, nr_frags, err;

	BUG_ON(skb_shared(skb));
	err = skb_unclone(era, skb);
	if (unlikely(err))
		return err;

	nr_frags = shinfo_read(skb, nr_frags);
	while (offset < len && keep < nr_frags) {
		skb_frag_t *frag = &skb_shinfo(skb)->frags[keep++];

		if (offset + frag->len >= len)
			frag->len = len - offset;
		offset += frag->len;
	}
	if (offset >= len) {
		skb_drop_frags(skb, keep, era);
		skb_drop_list(&skb_shinfo(skb)->frag_list, era);
	} else {
		err = trim_frag_list(skb, offset, len, era);
		if (unlikely(err))
			return err;
	}

	if (len > skb_headlen(skb)) {
		skb->data_len -= skb->len - len;
		skb->len = len;
	} else {
		skb->len = len;
		skb->data_len = 0;
		skb->tail = skb->data - skb->head + len;
	}
	if (!skb->sk)
		skb_condense(era, skb);
	return 0;
}

/*
 * EAT bytes of the frag_list were copied: members without any left go, the next one is cut in
 * front. 0, or -ENOMEM and the list is as before.
 */
static __always_inline int pull_frag_list(struct sk_buff *skb, u32 eat, const enum skb_era era)
{
	struct sk_buff *first = skb_shinfo(skb)->frag_list, *own = NULL, *gone;

	while (eat) {
		BUG_ON(!first);
		if (first->len <= eat) {
			eat -= first->len;
			first = first->next;
			continue;
		}
		/* The first that stays: not cut while others hold it. */
		if (skb_shared(first)) {
			own = skb_clone(era, first);
			if (!own)
				return -ENOMEM;
		}
		if (!pskb_pull(era, own ? own : first, eat)) {
			kfree_skb(era, own);
			return -ENOMEM;
		}
		if (own)
			first = own->next = first->next;
		break;
	}
	while ((gone = skb_shinfo(skb)->frag_list) != first) {
		skb_shinfo(skb)->frag_list = gone->next;
		kfree_skb(era, gone);
	}
	if (own)
		skb_shinfo(skb)->frag_list = own;
	return 0;
}

/* EAT bytes of the frags were copied: frags without any left go, the next one is cut in front. */
static __always_inline void pull_frags(struct sk_buff *skb, u32 eat, const enum skb_era era)
{
	skb_frag_t *frags = skb_shinfo(skb)->frags;
	int nr_frags = shinfo_read(skb, nr_frags), kept = 0;

	for (int i = 0; i < nr_frags; i++) {
		if (frags[i].len <= eat) {
			eat -= frags[i].len;
			skb_frag_unref(era, skb, i);
			continue;
		}
		frags[i].offset += eat;
		frags[i].len -= eat;
		if (!i)
			return; /* none moves */
		eat = 0;
		frags[kept++] = frags[i];
	}
	shinfo_write(skb, nr_frags, (u8)kept);
}

static __always_inline void *do_pskb_pull_tail(struct sk_buff *skb, u32 delta,
					       const enum skb_era era)
{
	int eat = skb->tail + delta - skb->end;

	BUG_ON(delta > skb->data_len);
	BUG_ON(skb_shared(skb));
	/* 128 more, since the next header is likely to be pulled, too. */
	if (eat > 0 || skb_cloned(skb)) {
		if (pskb_expand_head(era, skb, 0, eat > 0 ? eat + 128 : 0))
			return NULL;
	}
	__skb_copy_bits(skb, skb_headlen(skb), skb_tail_pointer(skb), delta);

	if (skb_has_frag_list(skb)) {
		u32 in_frags = 0;

		for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
			in_frags += skb_shinfo(skb)->frags[i].len;
		if (delta > in_frags && pull_frag_list(skb, delta - in_frags, era))
			return NULL;
	}
	pull_frags(skb, delta, era);
	skb->tail += delta;
	skb->data_len -= delta;
	if (era >= ERA_6_1 && !skb->data_len)
		skb_zcopy_clear(skb, false);
	return skb_tail_pointer(skb);
}

static __always_inline void do_skb_condense(struct sk_buff *skb, const enum skb_era era)
{
	if (era < ERA_6_1)
		return;
	if (skb->data_len) {
		if (skb->data_len > skb->end - skb->tail || skb_cloned(skb))
			return;
		__pskb_pull_tail(era, skb, skb->data_len);
	}
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb));
}

#define INSTANTIATE(suffix, era)                                        \
	int ___pskb_trim_##suffix(struct sk_buff *skb, u32 len)         \
	{                                                               \
		return do_pskb_trim(skb, len, era);                     \
	}                                                               \
	void *__pskb_pull_tail_##suffix(struct sk_buff *skb, u32 delta) \
	{                                                               \
		return do_pskb_pull_tail(skb, delta, era);              \
	}                                                               \
	void skb_condense_##suffix(struct sk_buff *skb)                 \
	{                                                               \
		do_skb_condense(skb, era);                              \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
