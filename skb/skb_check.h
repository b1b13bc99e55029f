/* SPDX-License-Identifier: MIT */
/*
 * What must hold for an sk_buff between any two operations. For tests and for the checks that stand
 * before a timing; never part of a timed span.
 */
#ifndef SKB_SKB_CHECK_H
#define SKB_SKB_CHECK_H

#include "skb/skbuff.h"

/*
 * Geometry: head <= data <= tail <= end, an aligned end, lengths that add up over linear part,
 * frags and frag_list (each member checked too), frags within their page block, a truesize that
 * covers the bytes, reference counts that can be. 0, or -1 with a sentence in ERR that holds the
 * numbers.
 */
int skb_check(const struct sk_buff *skb, char *err, size_t errlen);

/* Calls FN for each piece of payload of SKB in order: linear, frags, members of the frag_list. */
void skb_for_each_piece(const struct sk_buff *skb,
			void (*fn)(void *arg, const void *bytes, size_t len), void *arg);

/* Copies LEN bytes from offset OFF of SKB's payload to TO. SKB holds that many. */
void skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 len);

#endif
