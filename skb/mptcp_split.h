/* SPDX-License-Identifier: MIT */
/*
 * Two ways to give each half of a cut sk_buff a map of its own, which the second half's owner may
 * then go on filling. Neither is in any kernel: since 5.11 both halves share one frozen map
 * (mptcp_skb_ext_copy()).
 *
 *                         mptcp_skb_split, as posted in 2020   mptcp_skb_split_fixed
 *   called                behind skb_split()                   before it, where it may still fail
 *   RMW, objects, bytes   0, 1, 32                             0 (1 more if shared), 1 (2), 32 (72)
 *   a clone shares it     the clone's map changes, too         the first half gets a copy
 *   map and sk_buff do    second map begins too early by       second map begins where its bytes do
 *   not begin together    what was trimmed
 *   the map is frozen     second half's is not, or is, as      both share it, 1 RMW: others may cover
 *                         it was before                        bytes of it, an MTU probe, and none
 *                                                              is added to either half
 *   no memory             second half has no map, the first    -ENOMEM, nothing has changed
 *                         claims all bytes
 *   more than 16 bits     cut off                              -EINVAL, nothing has changed
 *   DATA_FIN in the map   in both halves, its number is lost   goes with the second half
 */
#ifndef SKB_MPTCP_SPLIT_H
#define SKB_MPTCP_SPLIT_H

#include "skb/mptcp_ext.h"

/* FROM was cut, TO got the rest and has no map. Faults and all, as posted. */
static __always_inline void mptcp_skb_split(struct sk_buff *from, struct sk_buff *to)
{
	struct mptcp_ext *from_ext = mptcp_get_ext(from), *to_ext;

	if (likely(!from_ext))
		return;
	to_ext = skb_ext_add(to, SKB_EXT_MPTCP);
	if (unlikely(!to_ext))
		return;
	skb_memcpy(to_ext, from_ext, sizeof(*to_ext), SKB_C_EXT);
	mptcp_ext_freeze(from_ext);
	skb_store(&from_ext->data_len, (u16)(from_ext->data_len - to->len), SKB_C_EXT);
	to_ext->data_len = to->len;
	to_ext->data_seq += from->len;
	to_ext->subflow_seq += from->len;
}

/*
 * FROM is about to be cut: TO, new and empty, will hold TO_LEN bytes, which are those from SSN of
 * the subflow. 0; -ENOMEM; -EINVAL if FROM's map does not cover them. After an error both are as
 * before.
 */
static __always_inline int mptcp_skb_split_fixed(struct sk_buff *from, struct sk_buff *to, u32 ssn,
						 u32 to_len)
{
	struct mptcp_ext *from_ext = mptcp_get_ext(from), *to_ext;
	u32 off, payload;

	if (likely(!from_ext))
		return 0;
	off = ssn - from_ext->subflow_seq;
	payload = from_ext->data_len - from_ext->data_fin;
	if (unlikely(off > payload || payload - off < to_len))
		return -EINVAL;
	if (unlikely(from_ext->frozen)) {
		skb_ext_copy(to, from);
		return 0;
	}
	to_ext = skb_ext_add(to, SKB_EXT_MPTCP);
	if (unlikely(!to_ext))
		return -ENOMEM;
	from_ext = skb_ext_add(from, SKB_EXT_MPTCP);
	if (unlikely(!from_ext)) {
		skb_ext_reset(to);
		return -ENOMEM;
	}
	skb_memcpy(to_ext, from_ext, sizeof(*to_ext), SKB_C_EXT);
	to_ext->data_len -= off;
	to_ext->data_seq += off;
	to_ext->subflow_seq += off;
	from_ext->data_len = off;
	from_ext->data_fin = 0;
	mptcp_ext_freeze(from_ext);
	return 0;
}

#endif
