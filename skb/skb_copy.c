/* SPDX-License-Identifier: MIT */
/*
 * skb_copy(): all bytes once more. pskb_copy(): a private head, shared pages.
 *
 * Kernel: net/core/skbuff.c, skb_copy() and __pskb_copy_fclone(). With n frags, a frag_list of L
 * members and z = 1 for a ubuf_info:
 *
 *   skb_copy    no RMW; 2 objects; headroom + len bytes, all linear then
 *   pskb_copy   n gets, L holds, z; 2 objects; the linear bytes. TCP's way to send what is still
 *               in flight
 */
#include "skb/skb_head.h"

static u32 copy_piece(void *to, const void *from, u32 have, u32 *off, u32 want)
{
	u32 n;

	if (*off >= have) {
		*off -= have;
		return 0;
	}
	n = min(have - *off, want);
	skb_memcpy(to, (const char *)from + *off, n, SKB_C_HEAD);
	*off = 0;
	return n;
}

void __skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 len)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 done = copy_piece(to, skb->data, skb_headlen(skb), &off, len);

	for (int i = 0; done < len && i < shinfo_read(skb, nr_frags); i++)
		done += copy_piece((char *)to + done, skb_frag_address(&shinfo->frags[i]),
				   shinfo->frags[i].len, &off, len - done);
	for (const struct sk_buff *s = shinfo_read(skb, frag_list); done < len; s = s->next) {
		BUG_ON(!s);
		if (off >= s->len) {
			off -= s->len;
		} else {
			u32 n = min(s->len - off, len - done);

			__skb_copy_bits(s, off, (char *)to + done, n);
			off = 0;
			done += n;
		}
	}
}

static __always_inline struct sk_buff *do_skb_copy(struct sk_buff *skb, const enum skb_era era)
{
	unsigned int headroom = skb_headroom(skb);
	struct sk_buff *n = alloc_skb(era, skb_end_offset(skb) + skb->data_len, NUMA_NO_NODE);

	if (!n)
		return NULL;
	skb_reserve(n, headroom);
	skb_memcpy(n->head, skb->head, headroom, SKB_C_HEAD);
	__skb_copy_bits(skb, 0, skb_put(n, skb->len), skb->len);
	skb_copy_header(n, skb);
	return n;
}

static __always_inline struct sk_buff *do_pskb_copy(struct sk_buff *skb, unsigned int headroom,
						    const enum skb_era era)
{
	unsigned int headlen = skb_headlen(skb);
	const struct skb_shared_info *from = skb_shinfo(skb);
	struct sk_buff *n = alloc_skb(era, headroom + headlen, NUMA_NO_NODE);
	struct skb_shared_info *to;

	if (!n)
		return NULL;
	skb_reserve(n, headroom);
	skb_put(n, headlen);
	skb_memcpy(n->data, skb->data, headlen, SKB_C_HEAD);

	n->truesize += skb->data_len;
	n->data_len = skb->data_len;
	n->len = skb->len;
	if (shinfo_read(skb, nr_frags)) {
		unsigned int nr_frags;

		if (skb_orphan_frags(era, skb)) {
			kfree_skb(era, n);
			return NULL;
		}
		/* Looked at only now: the frags may be others, and in another head. */
		from = skb_shinfo(skb);
		to = skb_shinfo(n);
		nr_frags = shinfo_read(skb, nr_frags);
		skb_zerocopy_clone(n, skb);
		skb_trace(SKB_RANGE_READ, SKB_C_SHINFO, from->frags, nr_frags * sizeof(skb_frag_t));
		skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, to->frags, nr_frags * sizeof(skb_frag_t));
		for (unsigned int i = 0; i < nr_frags; i++) {
			to->frags[i] = from->frags[i];
			skb_frag_ref(skb, i);
		}
		shinfo_write(n, nr_frags, (u8)nr_frags);
		to->flags |= shinfo_read(skb, flags) & SKBFL_SHARED_FRAG;
	}
	if (skb_has_frag_list(skb)) {
		skb_shinfo(n)->frag_list = from->frag_list;
		skb_clone_fraglist(from->frag_list);
	}
	skb_copy_header(n, skb);
	return n;
}

#define INSTANTIATE(suffix, era)                                                         \
	struct sk_buff *skb_copy_##suffix(struct sk_buff *skb)                           \
	{                                                                                \
		return do_skb_copy(skb, era);                                            \
	}                                                                                \
	struct sk_buff *__pskb_copy_##suffix(struct sk_buff *skb, unsigned int headroom) \
	{                                                                                \
		return do_pskb_copy(skb, headroom, era);                                 \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
