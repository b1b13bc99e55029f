/* SPDX-License-Identifier: MIT */
/*
 * skb_try_coalesce(): what one sk_buff holds becomes the end of another, on the way to a reader.
 *
 * Kernel: net/core/skbuff.c, 6.1 and 6.12; the function is of 3.5, whose rules era 3.4 has. Bytes
 * are copied only into tailroom that is there anyway; else descriptors move, and the references
 * that come with them:
 *
 *   the bytes fit behind the tail    they are copied; no RMW, delta 0
 *   no linear bytes                  n descriptors; delta is what the pages were charged for
 *   linear bytes in a page fragment  the head is stolen: its reference becomes that of a frag more.
 *                                    delta is all but the shell
 *   the source is cloned             n gets, since the clone's shared info keeps its own
 *
 * A page_pool's pages and others seldom meet in one sk_buff, as the pool is told at release by a
 * flag of the whole: both have it, or neither. Of a cloned source that has it, 6.1 takes nothing
 * (frags could not be held as the pool's), 6.12 takes references of the pool's kind.
 */
#include "skb/skb_head.h"

/* True if HEAD bytes must stay in FROM's head: it is no page fragment, or others look at it. */
static __always_inline bool skb_head_is_locked(const struct sk_buff *skb)
{
	return !skb->head_frag || skb_cloned(skb);
}

static __always_inline bool do_skb_try_coalesce(struct sk_buff *to, struct sk_buff *from,
						bool *fragstolen, int *delta_truesize,
						const enum skb_era era)
{
	unsigned int nr_to, nr_from, len = from->len;
	int delta;

	*fragstolen = false;
	*delta_truesize = 0;
	if (skb_cloned(to) || to->pp_recycle != from->pp_recycle)
		return false;
	/* Until pool references could be taken (6.8): the clone's put would be a pool's, TO's not. */
	if (era == ERA_6_1 && from->pp_recycle && skb_cloned(from))
		return false;

	if (len <= skb_tailroom(to)) {
		if (len)
			__skb_copy_bits(from, 0, skb_put(to, len), len);
		return true;
	}
	if (skb_has_frag_list(to) || skb_has_frag_list(from))
		return false;
	if (skb_zcopy(to) || skb_zcopy(from))
		return false;

	nr_to = shinfo_read(to, nr_frags);
	nr_from = shinfo_read(from, nr_frags);
	if (skb_headlen(from)) {
		struct page *page;

		if (nr_to + nr_from >= MAX_SKB_FRAGS || skb_head_is_locked(from))
			return false;
		delta = (int)(from->truesize - SKB_DATA_ALIGN(sizeof(struct sk_buff)));
		page = virt_to_head_page(from->head);
		skb_fill_page_desc(to, (int)nr_to++, page,
				   from->data - (unsigned char *)page_address(page),
				   skb_headlen(from));
		*fragstolen = true;
	} else {
		if (nr_to + nr_from > MAX_SKB_FRAGS)
			return false;
		delta = (int)(from->truesize - SKB_TRUESIZE(skb_end_offset(from)));
	}

	skb_copy_descs(to, nr_to, from, 0, nr_from);
	/* A stolen head is nobody else's to write; the mark is of the frags. */
	if (nr_from)
		skb_shinfo(to)->flags |= shinfo_read(from, flags) & SKBFL_SHARED_FRAG;
	/* A clone's shared info keeps the references that it has. */
	if (skb_cloned(from))
		for (unsigned int i = 0; i < nr_from; i++)
			skb_pp_frag_ref(&skb_shinfo(from)->frags[i],
					era >= ERA_6_12 && from->pp_recycle);
	else
		shinfo_write(from, nr_frags, 0);

	to->truesize += delta;
	to->len += len;
	to->data_len += len;
	*delta_truesize = delta;
	return true;
}

#define INSTANTIATE(suffix, era)                                                                   \
	bool skb_try_coalesce_##suffix(struct sk_buff *to, struct sk_buff *from, bool *fragstolen, \
				       int *delta_truesize)                                        \
	{                                                                                          \
		return do_skb_try_coalesce(to, from, fragstolen, delta_truesize, era);             \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
