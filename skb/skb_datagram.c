/* SPDX-License-Identifier: MIT */
#include "skb/skb_datagram.h"

/*
 * The part of a piece of HAVE bytes at position AT of the payload that lies in [OFF, END): true if
 * there is one, *SKIP bytes into the piece and *LEN long.
 */
static __always_inline bool overlap(u32 at, u32 have, u32 off, u32 end, u32 *skip, u32 *len)
{
	u32 from = max(at, off), to = min(at + have, end);

	*skip = from - at;
	*len = to - from;
	return from < to;
}

void skb_copy_datagram(const struct sk_buff *skb, u32 off, void *to, u32 len)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 at = skb_headlen(skb), end = off + len, skip, n;
	unsigned int nr = shinfo_read(skb, nr_frags);
	u8 *p = to;

	BUG_ON((u64)off + len > skb->len);
	if (overlap(0, at, off, end, &skip, &n)) {
		skb_memcpy(p, skb->data + skip, n, SKB_C_PAYLOAD);
		p += n;
	}
	for (unsigned int i = 0; i < nr && at < end; i++) {
		const skb_frag_t *frag = &shinfo->frags[i];

		if (overlap(at, frag->len, off, end, &skip, &n)) {
			skb_memcpy(p, (u8 *)skb_frag_address(frag) + skip, n, SKB_C_PAYLOAD);
			p += n;
		}
		at += frag->len;
	}
	for (const struct sk_buff *s = at < end ? shinfo->frag_list : NULL; s && at < end;
	     s = s->next) {
		if (overlap(at, s->len, off, end, &skip, &n)) {
			skb_copy_datagram(s, skip, p, n);
			p += n;
		}
		at += s->len;
	}
}

u32 skb_walk_pieces(const struct sk_buff *skb, u32 off, u32 len,
		    bool (*fn)(void *arg, const struct skb_piece *piece), void *arg)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 at = skb_headlen(skb), end = off + len, skip, n, done = 0;

	BUG_ON((u64)off + len > skb->len);
	if (overlap(0, at, off, end, &skip, &n)) {
		struct skb_piece piece = { .bytes = skb->data + skip, .len = n };

		if (!fn(arg, &piece))
			return done;
		done += n;
	}
	for (int i = 0; i < shinfo->nr_frags && at < end; i++) {
		const skb_frag_t *frag = &shinfo->frags[i];

		if (overlap(at, frag->len, off, end, &skip, &n)) {
			struct skb_piece piece = { .page = frag->page,
						   .bytes = (u8 *)skb_frag_address(frag) + skip,
						   .offset = frag->offset + skip,
						   .len = n };

			if (!fn(arg, &piece))
				return done;
			done += n;
		}
		at += frag->len;
	}
	for (const struct sk_buff *s = shinfo->frag_list; s && at < end; s = s->next) {
		if (overlap(at, s->len, off, end, &skip, &n)) {
			u32 got = skb_walk_pieces(s, skip, n, fn, arg);

			done += got;
			if (got < n)
				return done;
		}
		at += s->len;
	}
	return done;
}
