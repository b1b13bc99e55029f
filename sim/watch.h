/* SPDX-License-Identifier: MIT */
/*
 * What an onlooker sees of a socket's calls: what went into the ring, and which ACKs found a clone
 * alive. The simulation and the check of its replay count with this same code.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "tcp/tcp.h"

#define WATCH_HEADER_BYTES 66 /* Ethernet 14, IPv4 20, TCP with timestamps 32 */
#define WATCH_FRAME_BYTES  (WATCH_HEADER_BYTES + 24) /* and FCS, preamble, gap */

struct link_counts {
	u32 skbs, segs;
	u32 acks; /* processed */
	u32 partial_acks; /* of them, those that end inside an sk_buff */
	u32 races; /* sk_buffs whose first partial ACK found their clone alive */
	u64 payload_bytes, wire_bytes;
	u64 wire_hash; /* of sequence number, length and segments of each packet */
};

struct link_watch {
	struct link_counts n;
	u32 base; /* sequence number of the schedule's first byte */
	u32 ring_seen; /* up to this slot */
	u32 partial_end; /* the end of the last sk_buff that was acknowledged in part */
};

/* Begins with SK, all of whose data is acknowledged, and its ring as it stands. */
void link_watch_init(struct link_watch *w, const struct sock *sk);

/* A packet in the ring as a NIC reads it. */
struct link_packet {
	u32 seq; /* of its first byte, relative to the schedule's first */
	u32 bytes; /* of payload */
	u32 segs, mss;
	u32 nr_desc; /* one context, one for the header, one for each frag */
};

/* The next packet that W has not seen yet in *OUT; false if there is none. */
bool link_watch_sent(struct link_watch *w, const struct sock *sk, struct link_packet *out);

/*
 * The ACK is about to be processed. True if it is the first to end inside an sk_buff whose clone
 * lives (skb_cloned(), which is what decides in the code too): that costs the eager variant its
 * expansion.
 */
bool link_watch_ack(struct link_watch *w, const enum skb_era era, const struct sock *sk, u32 ack);

#endif
