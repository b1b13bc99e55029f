/* SPDX-License-Identifier: MIT */
/*
 * The other end of a model's wire: receives segments, acknowledges them by a policy of sim/peer.h.
 *
 *   last bit of a segment leaves -> out -> peer -> ACK on the wire -> back -> ACK in host memory
 *
 * All of it is rtt_ps for a segment that is acknowledged at once. For one thread.
 */
#ifndef HW_RESPONDER_H
#define HW_RESPONDER_H

#include "hw/flow.h"
#include "hw/model_82599/model.h"
#include "sim/peer.h"

#define RESPONDER_WINDOW 8192 /* segments on their way at a time */

struct responder_params {
	u64 rtt_ps;
	u64 jitter_ps; /* a segment comes later by 0 to this, in order still */
	u64 seed;
	enum peer_policy policy;
	u32 k; /* segments to an ACK */
	u32 queue; /* receive queue of the ACKs */
	bool again; /* a segment like the first begins the connection anew */
};

struct responder {
	struct model_82599 *m;
	struct responder_params p;
	struct flow from; /* what it receives */
	struct peer peer;
	u64 out_ps, back_ps, ack_wire_ps, last_in_ps, ack_free_ps, timer_ps, rng;
	struct flow_segment *way; /* segments on their way, a ring */
	u32 head, tail;
	u32 first_seq, segments, acks;
	char wrong[160]; /* the first frame that was not as it should be; "" */
};

/*
 * A peer of FLOW's connection on M, whose partner function is responder_partner() with R; it has
 * everything before sequence number SEQ. 0; -EINVAL for an RTT that does not hold an ACK's wire and
 * DMA time; -ENOMEM; with a sentence in ERR.
 */
int responder_init(struct responder *r, struct model_82599 *m, const struct responder_params *p,
		   const struct flow *flow, u32 seq, const struct nic_params *timing, u64 rx_dma_ps,
		   char *err, size_t errlen);
void responder_exit(struct responder *r);

/* The model's partner: CTX is the responder. */
void responder_partner(void *ctx, const struct model_frame *frame);

#endif
