/* SPDX-License-Identifier: MIT */
/*
 * Letting go of sk_buffs: kfree_skb() and what stands behind it.
 *
 * Kernel: net/core/skbuff.c, 6.12 skb_data_unref(), skb_release_data(), kfree_skbmem(). What the
 * eras differ in is how the last owner is found: up to 6.1 a cloned sk_buff always pays its RMW on
 * dataref; later, reading that one's own share is all that is left is enough. 3.4 pays an RMW on
 * fclone_ref at both frees of a pair, later kernels only where the other one may still live. A pool
 * gets its pages back from the last owner (page_pool.h), in 6.1 and later. Left out: bulk freeing of
 * list members.
 */
#include "skb/skb_head.h"

/* True if SKB's share of the head was the last. */
static __always_inline bool skb_data_unref(const struct sk_buff *skb,
					   struct skb_shared_info *shinfo, const enum skb_era era)
{
	int bias;

	if (!skb->cloned)
		return true;
	bias = skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1;
	/* Acquire: whoever dropped the other shares has used the head. Pairs with the sub_return.
	 */
	if (era >= ERA_6_12 && atomic_read_acquire(&shinfo->dataref, SKB_C_DATAREF) == bias)
		return true;
	return atomic_sub_return(bias, &shinfo->dataref, SKB_C_DATAREF) == 0;
}

static __always_inline void do_skb_release_data(struct sk_buff *skb, const enum skb_era era)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	bool recycle = skb->pp_recycle;

	if (!skb_data_unref(skb, shinfo, era))
		goto not_last;
	if (unlikely(skb_zcopy(skb))) {
		bool managed = skb_zcopy_managed(skb);

		/* Its owner may take the pages back from here on. */
		skb_zcopy_clear(skb, true);
		if (managed)
			goto free_head;
	}
	for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
		__skb_frag_unref(era, &shinfo->frags[i], recycle);
free_head:
	if (skb_has_frag_list(skb))
		kfree_skb_list(era, shinfo->frag_list);
	skb_free_head(skb, era);
not_last:
	/* What SKB may get now is not of a pool's kind: the last sharer alone gives pages back. */
	if (era >= ERA_6_1)
		skb->pp_recycle = 0;
}

/* The memory of the shell, or of the pair with the second of the two. */
static __always_inline void kfree_skbmem(struct sk_buff *skb, const enum skb_era era)
{
	struct sk_buff_fclones *f;

	switch (skb->fclone) {
	case SKB_FCLONE_UNAVAILABLE:
		shell_free(skb, sizeof(struct sk_buff_shell),
			   container_of(skb, struct sk_buff_shell, skb)->nid);
		return;
	case SKB_FCLONE_ORIG:
		f = container_of(skb, struct sk_buff_fclones, skb1);
		/* Acquire, since the companion's owner has let go of it. Pairs with the
		 * dec_and_test. */
		if (era >= ERA_6_1 && atomic_read_acquire(&f->fclone_ref.refs, SKB_C_FCLONE) == 1)
			break;
		if (!refcount_dec_and_test(&f->fclone_ref, SKB_C_FCLONE))
			return;
		break;
	default:
		f = container_of(skb, struct sk_buff_fclones, skb2);
		if (!refcount_dec_and_test(&f->fclone_ref, SKB_C_FCLONE))
			return;
	}
	shell_free(f, sizeof(*f), f->nid);
}

static __always_inline void do_free_skb(struct sk_buff *skb, const enum skb_era era)
{
	skb_release_head_state(skb);
	do_skb_release_data(skb, era);
	kfree_skbmem(skb, era);
}

/* The shell of an sk_buff whose head somebody else has now. */
static __always_inline void do_free_skb_partial(struct sk_buff *skb, bool head_stolen,
						const enum skb_era era)
{
	if (!head_stolen) {
		do_free_skb(skb, era);
		return;
	}
	skb_release_head_state(skb);
	kfree_skbmem(skb, era);
}

#define INSTANTIATE(suffix, era)                                               \
	void skb_release_data_##suffix(struct sk_buff *skb)                    \
	{                                                                      \
		do_skb_release_data(skb, era);                                 \
	}                                                                      \
	void __kfree_skb_##suffix(struct sk_buff *skb)                         \
	{                                                                      \
		do_free_skb(skb, era);                                         \
	}                                                                      \
	void kfree_skb_##suffix(struct sk_buff *skb)                           \
	{                                                                      \
		if (skb_unref(skb))                                            \
			do_free_skb(skb, era);                                 \
	}                                                                      \
	void kfree_skb_partial_##suffix(struct sk_buff *skb, bool head_stolen) \
	{                                                                      \
		do_free_skb_partial(skb, head_stolen, era);                    \
	}                                                                      \
	void kfree_skb_list_##suffix(struct sk_buff *segs)                     \
	{                                                                      \
		while (segs) {                                                 \
			struct sk_buff *next = segs->next;                     \
                                                                               \
			if (skb_unref(segs))                                   \
				do_free_skb(segs, era);                        \
			segs = next;                                           \
		}                                                              \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
