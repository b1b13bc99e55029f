/* SPDX-License-Identifier: MIT */
#include "sim/peer.h"
#include "sim/nic.h"

#include <string.h>

/* TCP_DELACK_MIN of the kernel, and an assumed gro_flush_timeout. */
#define DELACK_PS    (40 * SIM_PS_PER_MS)
#define GRO_FLUSH_PS (20 * SIM_PS_PER_US)

void peer_init(struct peer *peer, enum peer_policy policy, u32 k, u32 seq)
{
	BUG_ON(!k || policy >= PEER_POLICY_NR);
	memset(peer, 0, sizeof(*peer));
	peer->rcv_nxt = seq;
	peer->deadline_ps = ~0ull;
	peer->segs = policy == PEER_LAST ? 0 : k;
	peer->on_push = policy != PEER_DELAYED;
	if (policy == PEER_DELAYED)
		peer->timeout_ps = DELACK_PS;
	else if (policy == PEER_STRETCH)
		peer->timeout_ps = GRO_FLUSH_PS;
}

static bool send_ack(struct peer *peer)
{
	peer->pending = 0;
	peer->deadline_ps = ~0ull;
	return true;
}

bool peer_segment(struct peer *peer, u64 now_ps, u32 end_seq, bool push)
{
	BUG_ON((s32)(end_seq - peer->rcv_nxt) <= 0);
	peer->rcv_nxt = end_seq;
	if (!peer->pending++ && peer->timeout_ps)
		peer->deadline_ps = now_ps + peer->timeout_ps;
	if ((peer->segs && peer->pending >= peer->segs) || (push && peer->on_push))
		return send_ack(peer);
	return false;
}

bool peer_timer(struct peer *peer, u64 now_ps)
{
	return now_ps >= peer->deadline_ps && send_ack(peer);
}

const char *peer_policy_name(enum peer_policy policy)
{
	static const char *const names[PEER_POLICY_NR] = { "every", "delayed", "stretch", "last" };

	return names[policy];
}
