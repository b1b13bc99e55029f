/* SPDX-License-Identifier: MIT */
/*
 * The race of a TSO packet's ACK with its transmit completion: real sk_buffs from tcp/ through the
 * driver, clones in the ring until the device reports and the reclaim has run.
 *
 *   t_db   doorbell        t_dd   the descriptor reads as done      t_rec  the clone is freed
 *   a_1    its first ACK is processed
 *
 * A race is a packet whose first partial ACK is processed while its clone lives (a_1 < t_rec):
 *
 *   R1     a_1 < t_dd      the device still has the packet
 *   R2     t_dd <= a_1     it has reported it, the reclaim has not run
 *
 * Three CPUs of the model work on the socket: the sender's, the one that processes ACKs, the one
 * that reclaims. On the model device time is virtual: a call takes none, and a poll loop looks after
 * each event of the device, completions before ACKs.
 */
#ifndef HW_RACE_H
#define HW_RACE_H

#include "sim/nic.h"
#include "sim/peer.h"
#include "tcp/tcp.h"

#include <stdio.h>

#define RACE_MAX_SKBS	  4096
#define RACE_MAX_INFLIGHT 32

/* How software learns that a ring has moved. */
enum race_mode {
	RACE_POLL, /* looks at once */
	RACE_IRQ, /* a vector each for receive and transmit */
	RACE_IRQ_SHARED, /* one vector: the transmit ring is cleaned before ACKs are processed */
	RACE_MODE_NR
};

struct race_params {
	const struct nic_params *nic;
	u64 rtt_ps, jitter_ps, reclaim_ps;
	u64 seed;
	enum peer_policy ack;
	u32 k; /* segments to an ACK */
	u32 nr_skbs, inflight;
	u32 skb_bytes; /* payload of each, whole segments if several are in flight */
	enum race_mode mode;
	u32 wthresh, itr_us;
	u32 threshold_kb; /* TXPBTHRESH; 0: what nic says */
	enum skb_era era;
	u16 device; /* PCI device ID of the model; 0: an 82599's */
	FILE *pcapng; /* NULL: none */
};

/* The defaults: RTT 50 us, an ACK every 2 segments, 32 sk_buffs of 65160 bytes, one at a time. */
extern const struct race_params race_defaults;

struct race_spread {
	double min_us, p50_us, p99_us, max_us;
};

#define RACE_BINS 16

/* How many values lie in each of RACE_BINS equal parts from first_us on, the last one's end included. */
struct race_histogram {
	double first_us, step_us;
	u32 count[RACE_BINS]; /* all 0: no values */
};

struct race_result {
	u32 skbs, segments, acks, partial_acks;
	u32 races, before_dd, before_reclaim; /* races = R1 + R2 */
	u32 trims; /* partial ACKs that were processed while their packet's clone lived */
	u32 segments_on_wire;
	struct race_spread dd_after_doorbell, ack_after_doorbell, reclaim_after_dd;
	struct race_spread dd_after_ack; /* a_1 to t_dd: positive for R1 */
	struct race_histogram dd_after_ack_bins;
	double window_us; /* of a lone packet, computed (sim/nic.h): DD - departure of segment k */
	/* On a port alone: */
	struct race_spread wire_after_doorbell; /* of markers, by the device's clock; 0: none */
	u32 foreign_frames; /* that came in and belong to no connection of ours */
	bool stopped; /* by the caller's wish: skbs are those that had finished */
	u64 end_ps;
};

struct race_op {
	u8 what; /* 0 send, 1 ACK, 2 complete */
	u32 arg;
};

/* The calls of tcp/ in order, to be timed without the device. */
struct race_log {
	struct race_op *op;
	u32 nr, room;
};

/*
 * Runs P with the model as device and TRIM as tcp's variant, from a thread that is CPU 0, with page
 * memory and an object allocator set up. 0; -EINVAL, -ENOMEM, -EIO (a violation, a wrong frame, a
 * halt) with a sentence in ERR. LOG may be NULL; race_log_exit() frees it.
 */
int race_model(const struct race_params *p, enum tcp_trim trim, struct race_log *log,
	       struct race_result *res, char *err, size_t errlen);

/* Calls LOG's list once on a fresh socket without a device. Returns ns per 65160 bytes. */
double race_replay_ns(const struct race_params *p, enum tcp_trim trim, const struct race_log *log);

void race_log_exit(struct race_log *log);

const char *race_mode_name(enum race_mode mode);

#endif
