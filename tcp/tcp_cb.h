/* SPDX-License-Identifier: MIT */
/*
 * struct tcp_skb_cb: what TCP notes in an sk_buff while it is in one of its queues.
 *
 * Kernel: include/net/tcp.h; the offsets are 6.18's in every era. Up to 3.17 the number of segments
 * and their size lived in the shared info instead, on dataref's cache line, where a live clone sees
 * them: tcp_skb_pcount() and tcp_skb_mss() follow the era.
 *
 * offset_ack is the 2012 patch's: bytes from seq that are acknowledged but not trimmed. The patch
 * put it into a union with the IP control block, room that later kernels use for rate samples; here
 * it shares ack_seq, which only the receive side uses.
 */
#ifndef TCP_TCP_CB_H
#define TCP_TCP_CB_H

#include "skb/skbuff.h"

/*
 * Trimming on partial ACKs: eager, as every kernel does it, or as the patch of 2012 has it, which
 * only notes how far the ACK reached.
 *
 * What a cut does with MPTCP's map is a constant that varies with eager trimming only, and in the
 * eras that have MPTCP, so that both are in one: both halves share the map, frozen, as every kernel
 * since 5.11 does; or each gets a map of its own, as the patch of 2020 had it, or without its
 * faults (skb/mptcp_split.h).
 */
enum tcp_trim {
	TRIM_EAGER,
	TRIM_OFFSET_ACK,
	TCP_TRIM_NR,
	TRIM_EAGER_SPLIT_POSTED = TCP_TRIM_NR,
	TRIM_EAGER_SPLIT_FIXED,
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u16 tcp_gso_segs;
	u16 tcp_gso_size;
	u16 tcp_flags;
	u8 sacked;
	u8 ip_dsfield;
	u8 txstamp_ack : 2, eor : 1, has_rxtstamp : 1, unused : 4;
	u8 pad[3];
	union {
		u32 ack_seq;
		u32 offset_ack;
	};
	struct {
		u32 in_flight;
		u32 delivered;
		u64 first_tx_mstamp;
		u64 delivered_mstamp;
	} tx;
};

_Static_assert(offsetof(struct tcp_skb_cb, end_seq) == 4, "end_seq at 4");
_Static_assert(offsetof(struct tcp_skb_cb, tcp_gso_segs) == 8, "tcp_gso_segs at 8");
_Static_assert(offsetof(struct tcp_skb_cb, tcp_flags) == 12, "tcp_flags at 12");
_Static_assert(offsetof(struct tcp_skb_cb, sacked) == 14, "sacked at 14");
_Static_assert(offsetof(struct tcp_skb_cb, ack_seq) == 20, "ack_seq at 20");
_Static_assert(offsetof(struct tcp_skb_cb, tx) == 24, "tx at 24");
_Static_assert(sizeof(struct tcp_skb_cb) == 48, "the whole of cb");

#define TCP_SKB_CB(skb) ((struct tcp_skb_cb *)&(skb)->cb[0])

#define TCPHDR_FIN 0x01
#define TCPHDR_SYN 0x02
#define TCPHDR_RST 0x04
#define TCPHDR_PSH 0x08
#define TCPHDR_ACK 0x10
#define TCPHDR_URG 0x20
#define TCPHDR_ECE 0x40
#define TCPHDR_CWR 0x80

#define TCPCB_SACKED_ACKED   0x01
#define TCPCB_SACKED_RETRANS 0x02
#define TCPCB_LOST	     0x04
#define TCPCB_TAGBITS	     0x07
#define TCPCB_REPAIRED	     0x10 /* 3.5 and later: no sample of the round trip is to be had of it */
#define TCPCB_EVER_RETRANS   0x80
#define TCPCB_RETRANS	     (TCPCB_SACKED_RETRANS | TCPCB_EVER_RETRANS)

#define SKB_GSO_TCPV4 1

static __always_inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)

/* Segments that SKB stands for; 0: not worked out yet. */
static __always_inline int tcp_skb_pcount(const enum skb_era era, const struct sk_buff *skb)
{
	return era >= ERA_6_1 ? TCP_SKB_CB(skb)->tcp_gso_segs : shinfo_read(skb, gso_segs);
}

/* The payload of one of them; 0 for a single segment. */
static __always_inline int tcp_skb_mss(const enum skb_era era, const struct sk_buff *skb)
{
	return era >= ERA_6_1 ? TCP_SKB_CB(skb)->tcp_gso_size : shinfo_read(skb, gso_size);
}

/* Forgets the number of segments, since bytes were added. */
static __always_inline void tcp_skb_pcount_clear(const enum skb_era era, struct sk_buff *skb)
{
	if (era >= ERA_6_1)
		TCP_SKB_CB(skb)->tcp_gso_segs = 0;
	else
		shinfo_write(skb, gso_segs, 0);
}

/* N segments more, or fewer, for SKB, which nobody shares. */
static __always_inline void tcp_skb_pcount_add(const enum skb_era era, struct sk_buff *skb, int n)
{
	if (era >= ERA_6_1)
		TCP_SKB_CB(skb)->tcp_gso_segs += n;
	else
		shinfo_write(skb, gso_segs, (u16)(shinfo_read(skb, gso_segs) + n));
}

/* The payload of one segment of SKB, when segments were added to it or went; 0: a single one. */
static __always_inline void tcp_skb_mss_set(const enum skb_era era, struct sk_buff *skb, u16 mss)
{
	if (era >= ERA_6_1) {
		TCP_SKB_CB(skb)->tcp_gso_size = mss;
	} else {
		shinfo_write(skb, gso_size, mss);
		shinfo_write(skb, gso_type, mss ? SKB_GSO_TCPV4 : 0);
	}
}

/* The payload of one segment of SKB, of its only one too. */
static __always_inline u32 tcp_skb_seglen(const enum skb_era era, const struct sk_buff *skb)
{
	return tcp_skb_pcount(era, skb) == 1 ? skb->len : (u32)tcp_skb_mss(era, skb);
}

/* Bytes of SKB that the peer has not acknowledged: all of them, unless trimming is lazy. */
static __always_inline u32 tcp_skb_unacked(const enum tcp_trim trim, const struct sk_buff *skb)
{
	return trim == TRIM_OFFSET_ACK ? skb->len - TCP_SKB_CB(skb)->offset_ack : skb->len;
}

/*
 * Works out in how many segments of MSS bytes the unacknowledged bytes of SKB go. Under 3.4 the
 * result lies in the shared info: while a clone lives, these are stores that the clone's CPU sees.
 * Kernel: tcp_set_skb_tso_segs(), net/ipv4/tcp_output.c.
 */
static __always_inline void tcp_set_skb_tso_segs(const enum skb_era era, const enum tcp_trim trim,
						 struct sk_buff *skb, unsigned int mss)
{
	u32 len = tcp_skb_unacked(trim, skb);
	u16 segs = 1, size = 0;

	if (len > mss) {
		segs = DIV_ROUND_UP(len, mss);
		size = mss;
	}
	if (era >= ERA_6_1) {
		TCP_SKB_CB(skb)->tcp_gso_segs = segs;
		TCP_SKB_CB(skb)->tcp_gso_size = size;
	} else {
		shinfo_write(skb, gso_segs, segs);
		shinfo_write(skb, gso_size, size);
		shinfo_write(skb, gso_type, size ? SKB_GSO_TCPV4 : 0);
	}
}

#endif
