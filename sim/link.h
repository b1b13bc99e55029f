/* SPDX-License-Identifier: MIT */
/*
 * One TCP socket, its NIC, a link and a peer, in virtual time.
 *
 * Three virtual CPUs work on the socket: the sender's, that of the softirq which processes ACKs,
 * and the one that reclaims the transmit ring. Each makes calls of the real tcp/ code at the
 * moments that the models of the NIC and of the peer give; a call takes no virtual time. So whether
 * an ACK finds a packet's clone alive is found out, not given.
 *
 *   doorbell -> fetch, wire (sim/nic.h) -> rtt/2 -> peer (sim/peer.h) -> rtt/2 -> ACK processed
 *            -> DD visible -> reclaim_ps -> clone freed
 *
 * rtt is all that lies between the last bit of a segment leaving and the processing of an ACK that
 * the peer sends at once: both ways, the peer, the ACK's wire time, interrupt and receive DMA. What
 * happens at one moment is ordered as on one interrupt vector: completions before ACKs.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "sim/nic.h"
#include "sim/peer.h"
#include "sim/watch.h"

#define LINK_MAX_SKBS	  4096
#define LINK_MAX_INFLIGHT 64

struct link_params {
	const struct nic_params *nic;
	u64 rtt_ps;
	u64 reclaim_ps; /* from DD visible to the clones freed: NAPI, interrupt moderation */
	u64 jitter_ps; /* a packet's segments come later by 0 to this, in order still */
	u64 seed; /* of the draws */
	enum peer_policy ack;
	u32 k; /* segments to an ACK */
	u32 nr_skbs;
	u32 skb_bytes; /* of each; a multiple of the MSS if there are several in flight */
	u32 inflight; /* sk_buffs that are not both acknowledged and completed, at most */
	enum skb_era era; /* for what is read, not for what is called */
};

/*
 * What the schedule consists of, and what ARG is:
 *   SEND      1: an sk_buff is to be built and sent
 *   ACK       bytes from the schedule's start that are acknowledged
 *   COMPLETE  packets that are to be completed
 *   DONE      1: an sk_buff is both acknowledged and completed
 */
enum link_call { LINK_SEND, LINK_ACK, LINK_COMPLETE, LINK_DONE, LINK_CALL_NR };

struct link_calls {
	void (*fn[LINK_CALL_NR])(void *ctx, u32 arg); /* LINK_DONE may be NULL: not a call then */
	void *ctx;
};

struct link_op {
	enum link_call call;
	u32 arg;
};

struct link_log {
	struct link_op *op; /* in the order in which they happened */
	u32 nr_ops, room;
	u32 *done; /* for each sk_buff in order: operations up to the moment when it was done */
	u32 nr_done;
};

struct link_result {
	struct link_counts n;
	u32 races_before_dd; /* the NIC still had the packet */
	u32 races_before_reclaim; /* DD was visible, the clone not freed yet */
	u64 end_ps;
};

/*
 * Runs P to its end on SK, all of whose data is acknowledged and whose ring is empty, by CALLS,
 * from a thread that is a CPU; the softirq and the completion get the two slots after its own. The
 * calls in order go into LOG, which link_log_exit() frees. 0; -EINVAL for parameters that do not go
 * together; -ENOMEM; -EIO if a call did not do what it is there for or the schedule came to a halt;
 * each with a sentence in ERR, LOG empty, and SK as the calls so far have left it.
 */
int link_simulate(const struct link_params *p, struct sock *sk, const struct link_calls *calls,
		  struct link_log *log, struct link_result *res, char *err, size_t errlen);

void link_log_exit(struct link_log *log);

#endif
