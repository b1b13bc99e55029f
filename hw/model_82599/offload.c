/* SPDX-License-Identifier: MIT */
/*
 * Checksums and segmentation (7.2.4, 7.2.5): what the chip relies on in a packet's header, and what
 * it makes of it for each segment.
 *
 *   IPv4   total length, identification + 1 for each segment, header checksum
 *   IPv6   payload length
 *   TCP    sequence number, flags through the mask of first, middle or last segment, checksum; the
 *          prototype holds the pseudo header's sum, without the length for TSO
 *   UDP    checksum
 */
#include "hw/model_82599/internal.h"

#include <string.h>

#define ETH_P_IP   0x0800
#define ETH_P_IPV6 0x86dd
#define PROTO_TCP  6
#define PROTO_UDP  17
#define TCP_MIN	   20
#define UDP_MIN	   8

static u32 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static u32 get32(const u8 *p)
{
	return (u32)get16(p) << 16 | get16(p + 2);
}

static void put32(u8 *p, u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* The ones' complement sum of LEN bytes, on top of SUM, folded. */
static u32 csum(const u8 *p, u32 len, u32 sum)
{
	u64 s = sum;

	for (; len > 1; p += 2, len -= 2)
		s += get16(p);
	if (len)
		s += p[0] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

/* What a frame says of itself; L4 0: nothing that is understood. */
struct parts {
	bool ipv4;
	u32 l4, proto;
};

static u32 pseudo_header(const struct parts *p, const u8 *ip, u32 len)
{
	return p->ipv4 ? csum(ip + 12, 8, p->proto + len) : csum(ip + 8, 32, p->proto + len);
}

static struct parts find_parts(const u8 *frame, u32 maclen, u32 bytes)
{
	const u8 *ip = frame + maclen;
	u32 next, at;

	if (maclen < 14 || bytes < maclen + 20)
		return (struct parts){ 0 };
	switch (get16(frame + maclen - 2)) {
	case ETH_P_IP:
		if (ip[0] >> 4 != 4)
			return (struct parts){ 0 };
		return (struct parts){ true, maclen + 4 * (ip[0] & 15), ip[9] };
	case ETH_P_IPV6:
		if (ip[0] >> 4 != 6 || bytes < maclen + 40)
			return (struct parts){ 0 };
		next = ip[6];
		/* Hop-by-hop, routing and destination options. */
		for (at = maclen + 40; next == 0 || next == 43 || next == 60;) {
			if (at + 8 > bytes)
				return (struct parts){ 0 };
			next = frame[at];
			at += 8 * (frame[at + 1] + 1);
		}
		return (struct parts){ false, at, next };
	default:
		return (struct parts){ 0 };
	}
}

/*
 * TUCMD.IPV4 is for TSE and IXSM: a checksum of TCP or UDP alone begins where MACLEN and IPLEN say,
 * and its seed is in the frame.
 */
static bool header_good(const struct tx_packet *pkt, const u8 *frame, const struct parts *p)
{
	const struct tx_context *c = &pkt->ctx;

	if (!p->l4 || p->l4 != c->maclen + c->iplen)
		return false;
	if ((pkt->tse || pkt->ixsm) && p->ipv4 != c->ipv4)
		return false;
	if (!pkt->tse && !pkt->txsm)
		return true;
	if (c->udp)
		return !pkt->tse && p->proto == PROTO_UDP && p->l4 + UDP_MIN <= pkt->bytes;
	return c->tcp && p->proto == PROTO_TCP && p->l4 + TCP_MIN <= pkt->bytes &&
	       (!pkt->tse || 4u * (frame[p->l4 + 12] >> 4) == c->l4len);
}

/* Where the checksum of TCP or UDP lies behind its header's begin. */
static u32 sum_at(const struct tx_context *c)
{
	return c->udp ? 6 : 16;
}

bool offload_check(struct model_82599 *m, u32 queue, const struct tx_packet *pkt, const u8 *frame)
{
	const struct tx_context *c = &pkt->ctx;
	const u8 *ip = frame + c->maclen;
	struct parts p;
	u32 seed, want;

	if (!pkt->tse && !pkt->txsm && !pkt->ixsm)
		return true;
	p = find_parts(frame, c->maclen, pkt->bytes);
	if (!header_good(pkt, frame, &p)) {
		model_violate(m, V_HDR_MISMATCH,
			      "queue %u: MACLEN %u IPLEN %u L4LEN %u IPv%u %s, the frame has "
			      "IPv%u and protocol %u at %u",
			      queue, c->maclen, c->iplen, c->l4len, c->ipv4 ? 4 : 6,
			      c->tcp   ? "TCP"
			      : c->udp ? "UDP"
				       : "SCTP",
			      p.ipv4 ? 4 : 6, p.proto, p.l4);
		return false;
	}
	if ((pkt->tse && !pkt->txsm) || (pkt->ixsm && !p.ipv4) ||
	    (pkt->tse && p.ipv4 && !pkt->ixsm))
		model_violate(m, V_POPTS, "queue %u: TSE %u TXSM %u IXSM %u IPv%u", queue, pkt->tse,
			      pkt->txsm, pkt->ixsm, p.ipv4 ? 4 : 6);
	if (pkt->ixsm && p.ipv4 && get16(ip + 10))
		model_violate(m, V_IP_CSUM, "queue %u: 0x%04x", queue, get16(ip + 10));
	if (pkt->txsm) {
		seed = get16(ip + c->iplen + sum_at(c));
		want = pseudo_header(&p, ip, pkt->tse ? 0 : pkt->bytes - c->maclen - c->iplen);
		if (seed % 0xffff != want % 0xffff) /* 0 has two forms */
			model_violate(m, V_TCP_SEED, "queue %u: 0x%04x, should be 0x%04x", queue,
				      seed, want);
	}
	return true;
}

static u32 flag_mask(const struct model_82599 *m, const struct tx_packet *pkt)
{
	u32 l = m->reg[IXGBE_DTXTCPFLGL / 4], h = m->reg[IXGBE_DTXTCPFLGH / 4];

	if (pkt->nr_segments == 1)
		return 0xfff;
	if (!pkt->segment)
		return l & 0xfff;
	return pkt->segment == pkt->nr_segments - 1 ? h & 0xfff : l >> 16 & 0xfff;
}

static void segment_header(const struct model_82599 *m, const struct tx_packet *pkt, u8 *frame,
			   u32 payload)
{
	const struct tx_context *c = &pkt->ctx;
	u8 *ip = frame + c->maclen, *tcp = ip + c->iplen;
	u32 flags = get16(tcp + 12);

	if (c->ipv4) {
		put16(ip + 2, c->iplen + c->l4len + payload);
		put16(ip + 4, get16(ip + 4) + pkt->segment);
	} else {
		put16(ip + 4, c->iplen - 40 + c->l4len + payload);
	}
	put32(tcp + 4, get32(tcp + 4) + pkt->segment * c->mss);
	put16(tcp + 12, (flags & 0xf000) | (flags & 0xfff & flag_mask(m, pkt)));
}

void offload_segment(const struct model_82599 *m, const struct tx_packet *pkt, u8 *frame, u32 len)
{
	const struct tx_context *c = &pkt->ctx;
	u8 *ip = frame + c->maclen, *tcp = ip + c->iplen;
	u32 l4 = len - c->maclen - c->iplen;

	if (!pkt->tse && !pkt->txsm && !pkt->ixsm)
		return;
	if (pkt->tse)
		segment_header(m, pkt, frame, len - pkt->header);
	if (pkt->ixsm)
		put16(ip + 10, ~csum(ip, c->iplen, 0));
	if (pkt->txsm) { /* the seed stands in the field; TSO adds the length */
		u32 sum = ~csum(tcp, l4, pkt->tse ? l4 : 0) & 0xffff;

		put16(tcp + sum_at(c), !sum && c->udp ? 0xffff : sum); /* UDP's 0 means none */
	}
}
