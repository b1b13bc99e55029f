/* SPDX-License-Identifier: MIT */
#include "skb/skb_gro.h"
#include "skb/skb_head.h"
#include "skb/skb_napi.h"

/* N bytes of FRAG are headers, which P has already. */
static __always_inline void frag_skip_header(skb_frag_t *frag, u32 n)
{
	frag->offset += n;
	frag->len -= n;
}

/* SKB's frags go behind those of LP; the first SKIP bytes stay behind. What LP's truesize grows. */
static unsigned int take_frags(struct sk_buff *lp, struct sk_buff *skb, u32 skip)
{
	unsigned int at = shinfo_read(lp, nr_frags), nr = shinfo_read(skb, nr_frags);
	unsigned int shell = SKB_TRUESIZE(skb_end_offset(skb)), delta = skb->truesize - shell;
	skb_frag_t *to = &skb_shinfo(lp)->frags[at], *from = skb_shinfo(skb)->frags;

	skb_trace(SKB_RANGE_READ, SKB_C_SHINFO, from, nr * sizeof(*from));
	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, to, nr * sizeof(*to));
	for (unsigned int i = 0; i < nr; i++)
		to[i] = from[i];
	frag_skip_header(&to[0], skip);
	shinfo_write(lp, nr_frags, (u8)(at + nr));
	shinfo_write(skb, nr_frags, 0);
	skb->truesize = shell;
	skb->len -= skb->data_len;
	skb->data_len = 0;
	NAPI_GRO_CB(skb)->free = NAPI_GRO_FREE;
	return delta;
}

/* SKB's head, of which LINEAR bytes at OFFSET from data are payload, becomes a frag, too. */
static unsigned int take_head(struct sk_buff *lp, struct sk_buff *skb, u32 offset, u32 linear)
{
	unsigned int at = shinfo_read(lp, nr_frags), nr = shinfo_read(skb, nr_frags);
	struct page *page = virt_to_head_page(skb->head);
	skb_frag_t *to = &skb_shinfo(lp)->frags[at], *from = skb_shinfo(skb)->frags;
	u32 first = skb->data - (unsigned char *)page_address(page) + offset;

	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, to, (1 + nr) * sizeof(*to));
	*to = (skb_frag_t){ .page = page, .offset = first, .len = linear };
	for (unsigned int i = 0; i < nr; i++)
		to[1 + i] = from[i];
	shinfo_write(lp, nr_frags, (u8)(at + 1 + nr));
	NAPI_GRO_CB(skb)->free = NAPI_GRO_FREE_STOLEN_HEAD;
	return skb->truesize - SKB_DATA_ALIGN(sizeof(struct sk_buff));
}

/* SKB, payload only, becomes the last of P's frag_list. */
static unsigned int link_segment(struct sk_buff *p, struct sk_buff *skb, u32 offset, u32 headlen)
{
	struct sk_buff *last = NAPI_GRO_CB(p)->last;

	if (offset > headlen) {
		u32 eat = offset - headlen;

		frag_skip_header(&skb_shinfo(skb)->frags[0], eat);
		skb->data_len -= eat;
		skb->len -= eat;
		offset = headlen;
	}
	__skb_pull(skb, offset);
	if (last == p)
		shinfo_write(p, frag_list, skb);
	else
		last->next = skb;
	skb->next = NULL;
	NAPI_GRO_CB(p)->last = skb;
	__skb_header_release(skb);
	NAPI_GRO_CB(skb)->free = NAPI_GRO_KEPT;
	return skb->truesize;
}

static __always_inline void grow(struct sk_buff *skb, u32 len, unsigned int truesize)
{
	skb->len += len;
	skb->data_len += len;
	skb->truesize += truesize;
}

int skb_gro_receive(struct sk_buff *p, struct sk_buff *skb, unsigned int max_size)
{
	u32 offset = NAPI_GRO_CB(skb)->data_offset, headlen = skb_headlen(skb);
	u32 len = skb_gro_len(skb);
	struct sk_buff *lp = NAPI_GRO_CB(p)->last;
	unsigned int room = MAX_SKB_FRAGS - shinfo_read(lp, nr_frags), delta;
	unsigned int nr = shinfo_read(skb, nr_frags);

	if (unlikely(p->pp_recycle != skb->pp_recycle))
		return -ETOOMANYREFS;
	if (unlikely(p->len + len >= max_size))
		return -E2BIG;
	BUG_ON(!len || p->cloned || skb->cloned);

	if (headlen <= offset && nr <= room) {
		delta = take_frags(lp, skb, offset - headlen);
	} else if (headlen > offset && skb->head_frag && 1 + nr <= room) {
		delta = take_head(lp, skb, offset, headlen - offset);
	} else {
		delta = link_segment(p, skb, offset, headlen);
		lp = p; /* its lengths are right as they are */
	}
	NAPI_GRO_CB(p)->count += NAPI_GRO_CB(skb)->count;
	grow(p, len, delta);
	if (lp != p)
		grow(lp, len, delta);
	return 0;
}

void napi_gro_free(const enum skb_era era, struct sk_buff *skb)
{
	switch (NAPI_GRO_CB(skb)->free) {
	case NAPI_GRO_FREE:
		kfree_skb_napi_cache(era, skb);
		break;
	case NAPI_GRO_FREE_STOLEN_HEAD:
		napi_skb_free_stolen_head(era, skb);
		break;
	}
}
