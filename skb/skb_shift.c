/* SPDX-License-Identifier: MIT */
/*
 * skb_shift(): leading frags of one sk_buff become the last ones of the sk_buff before it.
 *
 * Kernel: net/core/skbuff.c, 3.4 to 6.12; TCP joins what a SACK covers with it. Nothing but
 * descriptors moves:
 *
 *   the first frag continues the target's last one   that one grows; 1 put, unless bytes are left
 *   the last frag that is touched moves in part      it lies in both; 1 get
 *   either is cloned                                 it gets a private head first (skb_expand.c)
 *
 * 5.16 and later keep truesize and the end of the head while they unclone.
 *
 * Of an sk_buff that gives its pages back to a page_pool, the put is the pool's and the get is not:
 * a page that was shifted in part leaves the pool with the first of its holders, and one that is cut
 * into fragments never comes back. What TCP sends does not recycle, so that neither shows. Commit a580ea994fd3
 * made both the pool's, and was reverted before 6.10: skb_shift_mirrored().
 */
#include "skb/skb_head.h"

/* 0, or -ENOMEM and SKB is as before. */
static __always_inline int skb_prepare_for_shift(struct sk_buff *skb, const enum skb_era era)
{
	return era >= ERA_6_1 ? skb_unclone_keeptruesize(era, skb) : skb_unclone(era, skb);
}

/* Private heads for both. Which takes from one of them, alone, that its pages are a pool's: then no
 * frag may move either. 0 or a negative error, and both are as before but for their heads. */
static __always_inline int skb_prepare_both(struct sk_buff *tgt, struct sk_buff *skb,
					    const enum skb_era era)
{
	if (skb_prepare_for_shift(skb, era) || skb_prepare_for_shift(tgt, era))
		return -ENOMEM;
	return era >= ERA_6_1 && unlikely(tgt->pp_recycle != skb->pp_recycle) ? -EINVAL : 0;
}

static __always_inline void skb_len_add(struct sk_buff *skb, int delta)
{
	skb->len += delta;
	skb->data_len += delta;
	skb->truesize += delta;
}

/* What was shifted belongs to TGT now: lengths, and whose pages others may write. */
static __always_inline int shifted(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen)
{
	skb_shinfo(tgt)->flags |= skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG;
	/* The sums over the payload hold no longer. */
	tgt->headers.ip_summed = CHECKSUM_PARTIAL;
	skb->headers.ip_summed = CHECKSUM_PARTIAL;
	skb_len_add(skb, -shiftlen);
	skb_len_add(tgt, shiftlen);
	return shiftlen;
}

static __always_inline void frag_skip(skb_frag_t *frag, u32 n)
{
	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, frag, sizeof(*frag));
	frag->offset += n;
	frag->len -= n;
}

static __always_inline void frag_copy(skb_frag_t *to, const skb_frag_t *from)
{
	skb_trace(SKB_RANGE_READ, SKB_C_SHINFO, from, sizeof(*from));
	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, to, sizeof(*to));
	*to = *from;
}

static __always_inline void frag_grow(skb_frag_t *frag, u32 n)
{
	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, frag, sizeof(*frag));
	frag->len += n;
}

/* SKB drops its first N descriptors; their references are elsewhere. */
static __always_inline void skb_drop_descs(struct sk_buff *skb, unsigned int n)
{
	skb_frag_t *frags = skb_shinfo(skb)->frags;
	unsigned int left = shinfo_read(skb, nr_frags) - n;

	for (unsigned int i = 0; n && i < left; i++)
		frag_copy(&frags[i], &frags[i + n]);
	shinfo_write(skb, nr_frags, (u8)left);
}

static __always_inline int do_skb_shift(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen,
					const enum skb_era era, const bool mirrored)
{
	unsigned int to = shinfo_read(tgt, nr_frags), nr = shinfo_read(skb, nr_frags), from = 0;
	const skb_frag_t *first = &skb_shinfo(skb)->frags[0];
	int todo = shiftlen;
	bool merge;

	BUG_ON(shiftlen < 0 || (unsigned int)shiftlen > skb->len);
	BUG_ON(skb_has_frag_list(tgt) || skb_has_frag_list(skb));
	BUG_ON(tgt->pp_recycle != skb->pp_recycle);
	if (skb_headlen(skb) || !shiftlen)
		return 0;
	if (skb_zcopy(tgt) || skb_zcopy(skb))
		return 0;

	merge = skb_can_coalesce(tgt, to, first->page, first->offset);
	if (merge && (u32)todo < first->len) {
		if (skb_prepare_both(tgt, skb, era))
			return 0;
		frag_grow(&skb_shinfo(tgt)->frags[to - 1], todo);
		frag_skip(&skb_shinfo(skb)->frags[0], todo);
		return shifted(tgt, skb, shiftlen);
	}
	if (merge) {
		todo -= first->len;
		from++;
	}
	/* All of it, and it does not fit: not worth two private heads to find out. */
	if ((unsigned int)shiftlen == skb->len && nr - from > MAX_SKB_FRAGS - to)
		return 0;
	if (skb_prepare_both(tgt, skb, era))
		return 0;

	/*
	 * Behind the target's last frag, where nobody looks before nr_frags says so: to give up in
	 * between leaves nothing behind, as the only reference is taken with the last one.
	 */
	while (todo > 0) {
		skb_frag_t *f = &skb_shinfo(skb)->frags[from], *t;

		if (to == MAX_SKB_FRAGS)
			return 0;
		t = &skb_shinfo(tgt)->frags[to++];
		frag_copy(t, f);
		if ((u32)todo < f->len) {
			skb_pp_frag_ref(f, mirrored && skb->pp_recycle);
			t->len = todo;
			frag_skip(f, todo);
			break;
		}
		todo -= f->len;
		from++;
	}
	if (merge) {
		skb_frag_t *f = &skb_shinfo(skb)->frags[0];

		frag_grow(&skb_shinfo(tgt)->frags[shinfo_read(tgt, nr_frags) - 1], f->len);
		__skb_frag_unref(era, f, skb->pp_recycle);
	}
	shinfo_write(tgt, nr_frags, (u8)to);
	skb_drop_descs(skb, from);
	return shifted(tgt, skb, shiftlen);
}

#define INSTANTIATE(suffix, era)                                                       \
	int skb_shift_##suffix(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen) \
	{                                                                              \
		return do_skb_shift(tgt, skb, shiftlen, era, false);                   \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)

int skb_shift_mirrored(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen)
{
	return do_skb_shift(tgt, skb, shiftlen, ERA_6_12, true);
}
