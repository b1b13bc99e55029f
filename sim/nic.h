/* SPDX-License-Identifier: MIT */
/*
 * The transmit timing of a NIC: when each segment of a TSO packet is on the wire, and when its
 * descriptors read as done.
 *
 * "Done" does not mean sent. On the 82599 and its kin the DD bit says that the packet was fetched
 * into the transmit buffer (datasheet 7.2.3; 160 KB, which is 128 us of wire at 10 Gbit/s). So how
 * long a clone lives follows from three things that are apart here:
 *
 *   fetch        PCIe brings one segment after the other, its header read again for each, at
 *                pcie_mbps with an overhead for each TLP; not before the buffer has room
 *                (fifo_threshold_bytes)
 *   wire         a fetched segment leaves when the wire is free; its room is free when its last bit
 *                has left
 *   write-back   WTHRESH 0: after writeback_ps. Else in lots of wthresh descriptors, the rest when
 *                the interrupt moderation (itr_ps) has run out, counted from the fetch: the longest
 *                that it takes
 *
 * Event-exact, in integer picoseconds. Left out: the limit on outstanding reads, descriptor
 * fetches, several queues that share a port (backlog_bytes stands for them).
 *
 * A struct nic belongs to one simulation; no function here is for two threads at once.
 */
#ifndef SIM_NIC_H
#define SIM_NIC_H

#include "skb/compiler.h"

#define SIM_PS_PER_NS 1000ull
#define SIM_PS_PER_US 1000000ull
#define SIM_PS_PER_MS 1000000000ull

typedef int64_t s64;

struct nic_params {
	const char *name;
	u32 wire_mbps;
	u32 pcie_mbps; /* raw: after the line code, before TLP overhead */
	u32 tlp_bytes; /* overhead of one TLP */
	u32 mps_bytes; /* payload of one TLP at most */
	u32 header_bytes; /* Ethernet, IP, TCP: read again for each segment */
	u32 framing_bytes; /* FCS 4, preamble 8, gap 12 */
	u32 min_wire_bytes; /* a frame of 60 bytes and its framing */
	u32 fifo_bytes; /* the transmit buffer (TXPBSIZE) */
	u32 fifo_threshold_bytes; /* how full fetching may make it (TXPBTHRESH) */
	u32 backlog_bytes; /* of other queues in it when a packet is posted to an idle one */
	u32 wthresh; /* descriptors to a write-back; 0: each packet's at once */
	u64 start_ps; /* doorbell to first byte, of an idle queue */
	u64 writeback_ps;
	u64 itr_ps; /* with wthresh: the rest is written back after this */
	u32 gso_bytes; /* payload of the packets that this point is about */
};

/*
 * The named points, and other speeds; nic_presets.c tells where each comes from. NULL for a name
 * that is none.
 */
extern const struct nic_params nic_presets[];
extern const unsigned int nr_nic_presets;
const struct nic_params *nic_preset(const char *name);

#define NIC_MAX_PACKETS 256 /* fetched and not reported at a time */

struct nic_segment {
	u64 depart_ps;
	u32 bytes;
};

struct nic {
	struct nic_params p;
	u64 fetch_free_ps; /* the fetch before has ended */
	u64 wire_free_ps;
	u64 backlog_end_ps; /* the last bit of others' traffic leaves */
	struct nic_segment *fifo; /* own segments in the buffer, oldest first */
	u32 fifo_mask, fifo_head, fifo_tail;
	u32 fifo_level; /* bytes of them */
	u32 desc_fetched, desc_written; /* descriptors, all ever, modulo 2^32 */
	u32 last_desc[NIC_MAX_PACKETS]; /* of each packet that is fetched and not reported */
	u32 wb_head, wb_tail;
};

/*
 * An idle NIC with the timing of P, which is copied. 0; -EINVAL with a sentence in ERR for timing
 * that no NIC could have (a rate of 0, a threshold below one frame or above the buffer); -ENOMEM.
 */
int nic_init(struct nic *nic, const struct nic_params *p, char *err, size_t errlen);
void nic_exit(struct nic *nic);

/* How long BYTES take at RATE_MBPS, to the nearest ps. */
u64 nic_time_ps(u64 bytes, u32 rate_mbps);

/* Wire time of one segment with PAYLOAD bytes of payload, framing included. */
u64 nic_wire_ps(const struct nic_params *p, u32 payload);

/*
 * A packet of BYTES of payload in segments of MSS, posted at NOW_PS (never before the one before
 * it): the time at which the last bit of each segment has left in DEPART_PS (room for
 * DIV_ROUND_UP(BYTES, MSS)), and as the result the time at which all of it is fetched. BYTES and
 * MSS are at least 1, a frame fits the threshold.
 */
u64 nic_xmit(struct nic *nic, u64 now_ps, u32 bytes, u32 mss, u64 *depart_ps);

/*
 * The two steps of nic_xmit(), for a caller that looks at each segment. A packet is posted at
 * NOW_PS; and one frame, HEADER and PAYLOAD bytes, is fetched from FROM_PS on, not before it has
 * room: the time when it is, and in *DEPART_PS when its last bit has left. A frame that fits the
 * threshold.
 */
void nic_post(struct nic *nic, u64 now_ps);
u64 nic_fetch(struct nic *nic, u64 from_ps, u32 header, u32 payload, u64 *depart_ps);

/*
 * The next packet in order is fetched, NR_DESC descriptors of it. Returns how many of the oldest
 * packets that are not reported get written back now (visible after writeback_ps).
 */
u32 nic_fetched(struct nic *nic, u32 nr_desc);

/* The moderation has run out: all fetched packets are written back. Returns how many. */
u32 nic_flush(struct nic *nic);

/* One packet on an idle NIC, posted at 0. */
struct nic_lone {
	u64 first_ps; /* its first segment has left */
	u64 kth_ps; /* its segment K has */
	u64 last_ps;
	u64 fetched_ps;
	u64 dd_ps; /* its descriptors read as done */
	s64 window_ps; /* dd_ps - kth_ps: an ACK that is back sooner finds the clone alive */
};

/* 0, or what nic_init() returns; -EINVAL also for a K that is no segment of the packet. */
int nic_lone(const struct nic_params *p, u32 bytes, u32 mss, u32 nr_desc, u32 k,
	     struct nic_lone *out, char *err, size_t errlen);

#endif
