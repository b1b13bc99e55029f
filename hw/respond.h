/* SPDX-License-Identifier: MIT */
/*
 * The race's peer on another machine: takes the segments of `hw race --peer external` from a packet
 * socket and acknowledges them by a policy of sim/peer.h, in real time.
 *
 * As hw/responder.h, which is on a model's wire in virtual time. It answers the connection of
 * flow_init() and no other, with the addresses that the frames came with turned round, so that the
 * interface needs no address and the host's own TCP no part in it. For one thread.
 */
#ifndef HW_RESPOND_H
#define HW_RESPOND_H

#include "hw/flow.h"
#include "sim/peer.h"

struct respond {
	enum peer_policy policy;
	u32 k; /* segments to an ACK */
	bool begun;
	struct flow from; /* what it receives */
	struct peer peer;
	u32 first_seq;
	u64 seen_ps; /* when the last segment came */
	u64 connections, segments, acks;
	u64 foreign; /* frames of other connections and protocols, which nobody answers */
	u64 faults; /* frames that were not as they should be */
	char wrong[200]; /* the first of those; "" */
};

/* A peer that has not seen anything yet; K is at least 1. */
void respond_init(struct respond *r, enum peer_policy policy, u32 k);

/*
 * FRAME came in at NOW_PS of any clock that does not go back. The length of the ACK that is to be
 * sent now, which stands in ACK (FLOW_HEADER_BYTES of room); 0: none.
 *
 * A connection begins with its first segment, anew with the same sequence number, and with any
 * other after a second of silence: a race that was stopped in the middle leaves no trace. A segment
 * that does not continue it is a fault, and not acknowledged.
 */
u32 respond_frame(struct respond *r, u64 now_ps, const u8 *frame, u32 len, u8 *ack);

/* The same for the peer's timer; to be called when r->peer.deadline_ps has come. */
u32 respond_timer(struct respond *r, u64 now_ps, u8 *ack);

/*
 * A packet socket on interface IFNAME, promiscuous as long as it is open. The descriptor, or a
 * negative errno with a sentence in ERR: -ENODEV, none of that name; -EINVAL, no Ethernet; -ENETDOWN;
 * -EBUSY, it merges segments (GRO or LRO); -EPERM, this process may not.
 */
int respond_open(const char *ifname, char *err, size_t errlen);

/*
 * Answers what comes on FD, a socket of datagrams that are frames, until *STOP is set or SECONDS
 * have passed (0: for ever). 0; a negative errno with a sentence in ERR if the socket fails, or loses
 * frames for lack of room.
 */
int respond_run(struct respond *r, int fd, const volatile int *stop, u64 seconds, char *err,
		size_t errlen);

#endif
