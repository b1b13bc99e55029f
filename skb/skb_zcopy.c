/* SPDX-License-Identifier: MIT */
/*
 * Zerocopy: copying a user's pages after all, and telling the user.
 *
 * Kernel: skb_copy_ubufs() in net/core/skbuff.c, 6.12, the completion of MSG_ZEROCOPY, and the way
 * of a user's pages into an sk_buff (__zerocopy_sg_from_iter() in net/core/datagram.c). Left out: the error queue that carries notifications, merging them, charging the user's pages.
 */
#include "skb/skb_head.h"

static u32 skb_pagelen(const struct sk_buff *skb)
{
	u32 len = 0;

	for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
		len += skb_shinfo(skb)->frags[i].len;
	return len;
}

/* The bytes of all frags into blocks of SIZE bytes each. */
static void copy_frags(const struct sk_buff *skb, struct page *const *pages, u32 size)
{
	u32 at = 0, block = 0;

	for (int i = 0; i < shinfo_read(skb, nr_frags); i++) {
		const skb_frag_t *f = &skb_shinfo(skb)->frags[i];

		for (u32 done = 0, n; done < f->len; done += n) {
			if (at == size) {
				at = 0;
				block++;
			}
			n = min(f->len - done, size - at);
			skb_memcpy((char *)page_address(pages[block]) + at,
				   (const char *)skb_frag_address(f) + done, n, SKB_C_PAYLOAD);
			at += n;
		}
	}
}

static __always_inline int do_skb_copy_ubufs(struct sk_buff *skb, const enum skb_era era)
{
	struct page *pages[MAX_SKB_FRAGS];
	unsigned int order = 0, nr;
	u32 left, size;
	int err;

	if (skb_shared(skb))
		return -EINVAL;
	err = skb_unclone(era, skb);
	if (err)
		return err;

	left = skb_pagelen(skb);
	while ((PAGE_SIZE << order) * MAX_SKB_FRAGS < left)
		order++;
	size = PAGE_SIZE << order;
	for (nr = 0; nr < DIV_ROUND_UP(left, size); nr++) {
		pages[nr] = alloc_pages(order);
		if (!pages[nr]) {
			while (nr)
				put_page(pages[--nr]);
			return -ENOMEM;
		}
	}
	copy_frags(skb, pages, size);
	for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
		skb_frag_unref(era, skb, i);
	for (unsigned int i = 0; i < nr; i++) {
		skb_fill_page_desc(skb, i, pages[i], 0, min(left, size));
		left -= min(left, size);
	}
	skb_zcopy_clear(skb, false);
	return 0;
}

#define INSTANTIATE(suffix, era)                         \
	int skb_copy_ubufs_##suffix(struct sk_buff *skb) \
	{                                                \
		return do_skb_copy_ubufs(skb, era);      \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)

/* COPIED bytes from START of PAGE[0] on, one frag a page or less. The pages are held. */
static void fill_user_frags(struct sk_buff *skb, struct page *const *page, u32 start, u32 copied)
{
	struct page *merged = NULL;
	int extra = 0; /* references on MERGED that no frag needs */

	while (copied) {
		unsigned int nr = shinfo_read(skb, nr_frags);
		struct page *head = compound_head(*page);
		skb_frag_t *last = nr ? &skb_shinfo(skb)->frags[nr - 1] : NULL;
		u32 off = start + ((u32)(*page - head) << PAGE_SHIFT);
		u32 n = min(copied, (u32)PAGE_SIZE - start);

		if (last && last->page == head && last->offset + last->len == off) {
			last->len += n;
			merged = head;
			extra++;
		} else {
			/* A block's references are dropped at once: its count is shared by many. */
			if (extra)
				BUG_ON(page_ref_sub_and_test(merged, extra));
			extra = 0;
			skb_fill_page_desc(skb, (int)nr, head, off, n);
		}
		copied -= n;
		start = 0;
		page++;
	}
	if (extra)
		BUG_ON(page_ref_sub_and_test(merged, extra));
}

u32 skb_zerocopy_from_user(struct sk_buff *skb, const struct skb_user_pages *from, u32 at, u32 len,
			   u32 *truesize)
{
	u32 done = 0;

	*truesize = 0;
	while (done < len) {
		unsigned int room = MAX_SKB_FRAGS - shinfo_read(skb, nr_frags);
		u32 first = from->offset + at + done, start = first % PAGE_SIZE;
		struct page *const *page = &from->page[first / PAGE_SIZE];
		u32 copied =
			min(len - done, room * (u32)PAGE_SIZE - min(start, room * (u32)PAGE_SIZE));

		if (!copied)
			break;
		for (u32 i = 0; i < DIV_ROUND_UP(start + copied, PAGE_SIZE); i++)
			get_page(page[i]);
		fill_user_frags(skb, page, start, copied);
		*truesize += ALIGN(start + copied, (u32)PAGE_SIZE);
		done += copied;
	}
	skb->len += done;
	skb->data_len += done;
	skb->truesize += *truesize;
	return done;
}

void msg_zerocopy_init(struct ubuf_info_msgzc *uarg, u8 flags,
		       void (*notify)(struct ubuf_info_msgzc *uarg))
{
	uarg->ubuf.complete = msg_zerocopy_complete;
	uarg->ubuf.flags = flags;
	uarg->zerocopy = true;
	uarg->notify = notify;
	refcount_set(&uarg->ubuf.refcnt, 1, SKB_C_UARG);
}

void msg_zerocopy_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	struct ubuf_info_msgzc *u = container_of(uarg, struct ubuf_info_msgzc, ubuf);

	(void)skb;
	/* Read by whoever drops the last reference. Pairs with the dec_and_test. */
	if (!success)
		skb_store(&u->zerocopy, false, SKB_C_UARG);
	if (refcount_dec_and_test(&uarg->refcnt, SKB_C_UARG))
		u->notify(u);
}
