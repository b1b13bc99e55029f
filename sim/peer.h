/* SPDX-License-Identifier: MIT */
/*
 * What the receiver acknowledges, and when.
 *
 *   every     each K segments, and the last of a packet (its PSH), so that none is left waiting
 *   delayed   each K segments (2 in the kernel), or after 40 ms
 *   stretch   each GRO batch of K segments; a batch also ends at a PSH, or 20 us after it began
 *   last      the last segment of a packet only
 *
 * The peer has no window limit and loses nothing. Only decisions are made here; the link adds
 * times. For one thread.
 */
#ifndef SIM_PEER_H
#define SIM_PEER_H

#include "skb/compiler.h"

enum peer_policy { PEER_EVERY, PEER_DELAYED, PEER_STRETCH, PEER_LAST, PEER_POLICY_NR };

struct peer {
	u32 segs; /* to an ACK; 0: no number of segments makes one */
	bool on_push; /* a PSH makes one */
	u64 timeout_ps; /* so does this time after the first segment that has none; 0: never */
	u32 rcv_nxt;
	u32 pending; /* segments that no ACK covers */
	u64 deadline_ps; /* of the oldest of them; ~0: none */
};

/* A peer that has everything up to SEQ. K is at least 1. */
void peer_init(struct peer *peer, enum peer_policy policy, u32 k, u32 seq);

/*
 * The segment up to END_SEQ arrives, in order, at NOW_PS. True if it makes an ACK (of rcv_nxt); if
 * not, and deadline_ps is not ~0, call peer_timer() then.
 */
bool peer_segment(struct peer *peer, u64 now_ps, u32 end_seq, bool push);

/* True if the deadline has come and makes an ACK. */
bool peer_timer(struct peer *peer, u64 now_ps);

const char *peer_policy_name(enum peer_policy policy);

#endif
