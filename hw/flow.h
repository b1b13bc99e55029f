/* SPDX-License-Identifier: MIT */
/*
 * One TCP connection's frames: what lies below TCP in a packet that tcp/ has built, ACKs, and
 * reading frames again.
 *
 * tcp/ leaves Ethernet and IPv4 headers empty (66 bytes in front of the payload: 14, 20, and TCP
 * with 12 bytes of options). For any thread.
 */
#ifndef HW_FLOW_H
#define HW_FLOW_H

#include "skb/compiler.h"

#define FLOW_MAC_BYTES	  14
#define FLOW_IP_BYTES	  20
#define FLOW_TCP_BYTES	  32
#define FLOW_HEADER_BYTES 66

#define FLOW_PSH 0x08
#define FLOW_ACK 0x10

struct flow {
	u8 src_mac[6], dst_mac[6];
	u32 saddr, daddr; /* host order */
	u16 sport, dport;
};

/* Addresses of a connection on a bench: 10.0.0.1 to 10.0.0.2, ports 5001, to DST_MAC. */
void flow_init(struct flow *f, const u8 src_mac[6], const u8 dst_mac[6]);

/* The same connection as the other end sends. */
struct flow flow_reverse(const struct flow *f);

/* A TCP header with options at its place in FRAME, as tcp/ would write it. */
void flow_tcp_header(const struct flow *f, u8 *frame, u32 seq, u32 ack, u16 flags);

/*
 * Fills the Ethernet and IPv4 headers of FRAME, whose TCP header stands, for a packet of PAYLOAD
 * bytes, and TCP's checksum field with the sum that a NIC starts from: without the length for TSO.
 */
void flow_finish(const struct flow *f, u8 *frame, u32 payload, bool tso);

/* An ACK of ACK without payload, all sums right, in FRAME. Returns its length. */
u32 flow_ack_frame(const struct flow *f, u8 *frame, u32 seq, u32 ack);

/* A segment whose PAYLOAD bytes stand behind the headers, all sums right. Returns its length. */
u32 flow_data_frame(const struct flow *f, u8 *frame, u32 seq, u32 ack, u16 flags, u32 payload);

/*
 * The connection of a frame and its sequence number, no checksum looked at; false for one that is
 * no TCP over IPv4.
 */
bool flow_learn(const u8 *frame, u32 len, struct flow *out, u32 *seq);

struct flow_segment {
	u32 seq, ack, payload, payload_at;
	u16 flags;
};

/* What flow_parse() says of frames that are not for it: compare the pointer. */
extern const char flow_no_tcp[], flow_other[];

/*
 * Reads a frame of F; NULL, or what is wrong with it. Every checksum is looked at, of a frame that
 * may be another connection's after that.
 */
const char *flow_parse(const struct flow *f, const u8 *frame, u32 len, struct flow_segment *out);

#endif
