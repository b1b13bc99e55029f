/* SPDX-License-Identifier: MIT */
/*
 * MPTCP's receiver, at the other end of a loopback: takes what was sent, puts it together by the
 * maps in the options, and says what to acknowledge.
 *
 * Kernel: mptcp_incoming_options() and get_mapping_status() in net/mptcp/. Each packet gets its map
 * from the option as an extension of its own; on a loopback that copies the one that it still
 * shares with the sender. A packet without one goes by the last map, if that covers it. Left out:
 * receive queues and windows, checksums, subflows other than the one.
 *
 * A peer belongs to one CPU, and so do the packets that it is given.
 */
#ifndef MPTCP_MPTCP_PEER_H
#define MPTCP_MPTCP_PEER_H

#include "tcp/mptcp_options.h"

#define MPTCP_PEER_RANGES 64

/* Sequence numbers [start, end), beyond the first gap, in order and apart. */
struct mptcp_ranges {
	u64 next; /* all before is there */
	unsigned int nr;
	struct {
		u64 start, end;
	} range[MPTCP_PEER_RANGES];
};

struct mptcp_peer {
	struct mptcp_ranges subflow; /* low 32 bits of next: what to acknowledge to TCP */
	struct mptcp_ranges data; /* next: the DATA_ACK */
	u32 isn;
	struct mptcp_ext map; /* the last one that came */
	bool data_fin, fin; /* one was seen */
	u64 data_fin_seq;

	u8 (*pattern)(u64 data_seq); /* the byte that belongs at DATA_SEQ */
	char *sink; /* where mptcp_peer_rcv() copies payload to: MPTCP_MAX_MAP bytes */

	u64 skbs, segs, bytes, maps; /* that came; maps: those that differ from the one before */
	char err[160];
};

/* A peer of a subflow with initial sequence ISN and a stream that begins at IDSN. */
void mptcp_peer_init(struct mptcp_peer *peer, u32 isn, u64 idsn);

/*
 * PACKET has come: notes what it holds and copies its payload to the sink. It stays the caller's.
 * 0; -ENOMEM: it counts as lost; -EPROTO with a sentence in peer->err for one that says what cannot
 * be.
 */
int mptcp_peer_rcv(struct mptcp_peer *peer, struct sk_buff *packet);

/* The same, and each byte of payload is compared with the pattern in place of the copy. */
int mptcp_peer_rcv_check(struct mptcp_peer *peer, struct sk_buff *packet);

static __always_inline u32 mptcp_peer_ack(const struct mptcp_peer *peer)
{
	return (u32)peer->subflow.next;
}

static __always_inline u64 mptcp_peer_data_ack(const struct mptcp_peer *peer)
{
	return peer->data.next;
}

#endif
