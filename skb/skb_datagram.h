/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an sk_buff for a reader: linear part, frags, frag_list, in this order.
 *
 * Kernel: skb_copy_datagram_iter(), net/core/datagram.c, and skb_splice_bits(), net/core/skbuff.c.
 */
#ifndef SKB_SKB_DATAGRAM_H
#define SKB_SKB_DATAGRAM_H

#include "skb/skbuff.h"

/*
 * Copies LEN bytes from offset OFF of SKB's payload to TO, memory of the reader. SKB holds that
 * many. The kernel may stop at a page that the reader does not have; here all of TO is there.
 */
void skb_copy_datagram(const struct sk_buff *skb, u32 off, void *to, u32 len);

/*
 * Calls FN(ARG, PAGE, OFFSET, LEN) for the pieces of LEN bytes from offset OFF on that lie in pages,
 * in order, and FN(ARG, NULL, ...) with BYTES for linear ones, until it returns false. Returns the
 * bytes of all pieces for which it returned true.
 */
struct skb_piece {
	struct page *page; /* NULL: bytes of a head */
	const void *bytes; /* where they lie, in either case */
	u32 offset, len; /* in the page */
};
u32 skb_walk_pieces(const struct sk_buff *skb, u32 off, u32 len,
		    bool (*fn)(void *arg, const struct skb_piece *piece), void *arg);

#endif
