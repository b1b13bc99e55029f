/* SPDX-License-Identifier: MIT */
/*
 * What lies on the wire in front of the payload, as a receiver finds it in an sk_buff's head.
 *
 * Kernel: include/uapi/linux/tcp.h and ip.h, include/linux/skbuff.h. All fields of more than a byte
 * are big-endian. A packet comes to tcp_v4_rcv() with data at its TCP header; the IP header lies in
 * front of it, where headers.network_header says.
 */
#ifndef TCP_TCP_WIRE_H
#define TCP_TCP_WIRE_H

#include "skb/skbuff.h"

#define ETH_HLEN 14

struct iphdr {
	u8 version_ihl; /* 0x45: version 4, 5 words */
	u8 tos;
	u16 tot_len;
	u16 id, frag_off;
	u8 ttl, protocol;
	u16 check;
	u32 saddr, daddr;
} __attribute__((packed, aligned(2))); /* Ethernet's 14 bytes in front of it */

struct tcphdr {
	u16 source, dest;
	u32 seq, ack_seq;
	u8 doff_res; /* high half: words of header */
	u8 flags; /* TCPHDR_* */
	u16 window, check, urg_ptr;
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct iphdr) == 20 && sizeof(struct tcphdr) == 20, "without options");

#define TCPOLEN_TSTAMP_ALIGNED 12 /* two NOPs and the timestamps: on every segment */
#define TCP_WIRE_TCP_BYTES     (sizeof(struct tcphdr) + TCPOLEN_TSTAMP_ALIGNED)
#define TCP_WIRE_BYTES	       (ETH_HLEN + sizeof(struct iphdr) + TCP_WIRE_TCP_BYTES) /* 66 */

static __always_inline struct iphdr *ip_hdr(const struct sk_buff *skb)
{
	return (struct iphdr *)(skb->head + skb->headers.network_header);
}

/* Of a packet whose data is at it. */
static __always_inline struct tcphdr *tcp_hdr(const struct sk_buff *skb)
{
	return (struct tcphdr *)(skb->head + skb->headers.transport_header);
}

static __always_inline unsigned int __tcp_hdrlen(const struct tcphdr *th)
{
	return th->doff_res >> 4 << 2;
}

/* The word of length, flags and window that the fast path compares, in host byte order. */
static __always_inline u32 tcp_flag_word(const struct tcphdr *th)
{
	return (u32)th->doff_res << 24 | (u32)th->flags << 16 | __builtin_bswap16(th->window);
}

/* One segment as its sender describes it; host byte order but for the addresses and ports. */
struct tcp_segment {
	u32 saddr, daddr;
	u16 sport, dport;
	u32 seq, ack_seq;
	u32 tsval, tsecr;
	u16 window;
	u16 len; /* payload */
	u8 flags;
};

/*
 * Writes the TCP_WIRE_BYTES in front of a payload: Ethernet, IPv4, TCP with timestamps. Checksums
 * are 0: the NIC says that it has looked (CHECKSUM_UNNECESSARY). TO is the caller's and holds that
 * many bytes.
 */
void tcp_build_frame(void *to, const struct tcp_segment *seg);

/*
 * SKB's linear part begins with a frame's headers: notes where they are and pulls data to TCP's, as
 * the layers below TCP do. BUG if they are not all linear.
 */
static __always_inline void tcp_pull_to_header(struct sk_buff *skb)
{
	unsigned int data = skb_headroom(skb);

	skb->headers.mac_header = data;
	skb->headers.network_header = data + ETH_HLEN;
	skb->headers.transport_header = data + ETH_HLEN + sizeof(struct iphdr);
	__skb_pull(skb, ETH_HLEN + sizeof(struct iphdr));
}

#endif
