/* SPDX-License-Identifier: MIT */
/*
 * Checksums and segmentation (7.2.4, 7.2.5): what the chip relies on in a packet's header, and what
 * it makes of it for each segment.
 *
 *   IPv4   total length, identification + 1 for each segment, header checksum
 *   IPv6   payload length
 *   TCP    sequence number, flags through the mask of first, middle or last segment, checksum; the
 *          prototype holds the pseudo header's sum, without the length for TSO
 */
#include "hw/model_82599/internal.h"

#include <string.h>

#define ETH_P_IP   0x0800
#define ETH_P_IPV6 0x86dd
#define PROTO_TCP  6
#define TCP_MIN	   20

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

static u32 pseudo_header(const struct tx_context *c, const u8 *ip, u32 len)
{
	return c->ipv4 ? csum(ip + 12, 8, PROTO_TCP + len) : csum(ip + 8, 32, PROTO_TCP + len);
}

/* Where TCP's header begins by the frame's own words; 0: there is none that is understood. */
static u32 find_tcp(const u8 *frame, u32 maclen, u32 bytes, bool *ipv4)
{
	const u8 *ip = frame + maclen;
	u32 next, at;

	if (maclen < 14 || bytes < maclen + 40)
		return 0;
	switch (get16(frame + maclen - 2)) {
	case ETH_P_IP:
		*ipv4 = true;
		return ip[0] >> 4 == 4 && ip[9] == PROTO_TCP ? maclen + 4 * (ip[0] & 15) : 0;
	case ETH_P_IPV6:
		*ipv4 = false;
		if (ip[0] >> 4 != 6)
			return 0;
		next = ip[6];
		/* Hop-by-hop, routing and destination options. */
		for (at = maclen + 40; next == 0 || next == 43 || next == 60;) {
			if (at + 8 > bytes)
				return 0;
			next = frame[at];
			at += 8 * (frame[at + 1] + 1);
		}
		return next == PROTO_TCP ? at : 0;
	default:
		return 0;
	}
}

static bool check_header(struct model_82599 *m, u32 queue, const struct tx_packet *pkt,
			 const u8 *frame)
{
	const struct tx_context *c = &pkt->ctx;
	bool ipv4 = false;
	u32 tcp = find_tcp(frame, c->maclen, pkt->bytes, &ipv4);

	if (tcp && tcp == c->maclen + c->iplen && ipv4 == c->ipv4 && c->tcp &&
	    tcp + TCP_MIN <= pkt->bytes && (!pkt->tse || 4u * (frame[tcp + 12] >> 4) == c->l4len))
		return true;
	model_violate(m, V_HDR_MISMATCH,
		      "queue %u: MACLEN %u IPLEN %u L4LEN %u IPv%u, the frame has TCP at %u", queue,
		      c->maclen, c->iplen, c->l4len, c->ipv4 ? 4 : 6, tcp);
	return false;
}

bool offload_check(struct model_82599 *m, u32 queue, const struct tx_packet *pkt, const u8 *frame)
{
	const struct tx_context *c = &pkt->ctx;
	const u8 *ip = frame + c->maclen;
	u32 seed, want;

	if (!pkt->tse && !pkt->txsm && !pkt->ixsm)
		return true;
	if (!check_header(m, queue, pkt, frame))
		return false;
	if ((pkt->tse && !pkt->txsm) || (pkt->ixsm && !c->ipv4) ||
	    (pkt->tse && c->ipv4 && !pkt->ixsm))
		model_violate(m, V_POPTS, "queue %u: TSE %u TXSM %u IXSM %u IPv%u", queue, pkt->tse,
			      pkt->txsm, pkt->ixsm, c->ipv4 ? 4 : 6);
	if (c->ipv4 && pkt->ixsm && get16(ip + 10))
		model_violate(m, V_IP_CSUM, "queue %u: 0x%04x", queue, get16(ip + 10));
	if (pkt->txsm) {
		seed = get16(ip + c->iplen + 16);
		want = pseudo_header(c, ip, pkt->tse ? 0 : pkt->bytes - c->maclen - c->iplen);
		if (seed != want)
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
	if (pkt->txsm) /* the seed stands in the field; TSO adds the length */
		put16(tcp + 16, ~csum(tcp, l4, pkt->tse ? l4 : 0));
}
