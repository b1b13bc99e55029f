/* SPDX-License-Identifier: MIT */
/*
 * struct mptcp_ext: which bytes of the MPTCP stream an sk_buff carries.
 *
 * Kernel: include/net/mptcp.h, 6.1 and 6.12 (5.11 lacks the reset and checksum bits). A map says
 * that the data_len bytes of the subflow from subflow_seq (counted from its initial sequence
 * number) are the bytes of the stream from data_seq; a DATA_FIN takes one number more behind them.
 * TCP looks at maps only where it joins or cuts sk_buffs; the sender fills them (mptcp/).
 *
 * data_len has 16 bits: what does not fit is refused where it would be stored.
 */
#ifndef SKB_MPTCP_EXT_H
#define SKB_MPTCP_EXT_H

#include "skb/skb_ext.h"

#include <string.h>

struct mptcp_ext {
	union {
		u64 data_ack;
		u32 data_ack32;
	};
	u64 data_seq;
	u32 subflow_seq;
	u16 data_len;
	u16 csum;
	union {
		struct {
			u8 use_map : 1, dsn64 : 1, data_fin : 1, use_ack : 1, ack64 : 1,
				mpc_map : 1, frozen : 1, reset_transient : 1;
		};
		u8 flags; /* the same, to be read and written whole while others look */
	};
	u8 reset_reason : 4, csum_reqd : 1, infinite_map : 1, unused : 2;
	u8 pad[6]; /* compared with the rest: always cleared */
};

_Static_assert(sizeof(struct mptcp_ext) == SKB_EXT_MPTCP_SIZE, "32 bytes in 6.1");
_Static_assert(offsetof(struct mptcp_ext, data_seq) == 8, "data_seq at 8");
_Static_assert(offsetof(struct mptcp_ext, subflow_seq) == 16, "subflow_seq at 16");
_Static_assert(offsetof(struct mptcp_ext, data_len) == 20, "data_len at 20");
_Static_assert(offsetof(struct mptcp_ext, flags) == 24, "the flags at 24");

#define MPTCP_EXT_FROZEN (1u << 6) /* in flags; little endian's place of the bit */
#define MPTCP_MAX_MAP	 65535 /* bytes that one map can cover */

static __always_inline struct mptcp_ext *mptcp_get_ext(const struct sk_buff *skb)
{
	return skb_ext_find(skb, SKB_EXT_MPTCP);
}

/* No bytes are added to this map any more. In place: whoever shares it sees it, and may. */
static __always_inline void mptcp_ext_freeze(struct mptcp_ext *ext)
{
	u8 flags = skb_load(&ext->flags, SKB_C_EXT);

	skb_store(&ext->flags, (u8)(flags | MPTCP_EXT_FROZEN), SKB_C_EXT);
}

/*
 * True if bytes under FROM may follow those under TO in one sk_buff: both maps are the same in all
 * 32 bytes, or FROM is none (its bytes are then covered by TO's). Kernel: mptcp_ext_matches().
 */
static __always_inline bool mptcp_ext_matches(const struct mptcp_ext *to,
					      const struct mptcp_ext *from)
{
	return !from || (to && !memcmp(from, to, sizeof(*from)));
}

/*
 * The same for two sk_buffs; part of tcp_skb_can_collapse(). Without extensions, which is nearly
 * always, two bytes are read.
 */
static __always_inline bool mptcp_skb_can_collapse(const struct sk_buff *to,
						   const struct sk_buff *from)
{
	return mptcp_ext_matches(mptcp_get_ext(to), mptcp_get_ext(from));
}

/* TO, which has no extensions, takes over those of FROM. No RMW. */
static __always_inline void mptcp_skb_ext_move(struct sk_buff *to, struct sk_buff *from)
{
	if (!skb_ext_exist(from, SKB_EXT_MPTCP))
		return;
	BUG_ON(to->active_extensions);
	to->active_extensions = from->active_extensions;
	to->extensions = from->extensions;
	from->active_extensions = 0;
}

/*
 * TO, new, gets the map of FROM, from which it will get bytes: both share it, and it is frozen,
 * which every other sharer sees as well. 1 RMW. Kernel: mptcp_skb_ext_copy(), 5.11 and later.
 */
static __always_inline void mptcp_skb_ext_copy(struct sk_buff *to, const struct sk_buff *from)
{
	struct mptcp_ext *ext = mptcp_get_ext(from);

	if (likely(!ext))
		return;
	mptcp_ext_freeze(ext);
	skb_ext_copy(to, from);
}

#endif
