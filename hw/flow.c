/* SPDX-License-Identifier: MIT */
#include "hw/flow.h"

#include <string.h>

#define IP_AT  FLOW_MAC_BYTES
#define TCP_AT (FLOW_MAC_BYTES + FLOW_IP_BYTES)

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static u32 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
	return (u32)get16(p) << 16 | get16(p + 2);
}

static u32 csum(const u8 *p, u32 len, u64 sum)
{
	for (; len > 1; p += 2, len -= 2)
		sum += get16(p);
	if (len)
		sum += p[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

void flow_init(struct flow *f, const u8 src_mac[6], const u8 dst_mac[6])
{
	memcpy(f->src_mac, src_mac, 6);
	memcpy(f->dst_mac, dst_mac, 6);
	f->saddr = 0x0a000001;
	f->daddr = 0x0a000002;
	f->sport = f->dport = 5001;
}

struct flow flow_reverse(const struct flow *f)
{
	struct flow r = {
		.saddr = f->daddr, .daddr = f->saddr, .sport = f->dport, .dport = f->sport
	};

	memcpy(r.src_mac, f->dst_mac, 6);
	memcpy(r.dst_mac, f->src_mac, 6);
	return r;
}

void flow_tcp_header(const struct flow *f, u8 *frame, u32 seq, u32 ack, u16 flags)
{
	u8 *tcp = frame + TCP_AT;

	put16(tcp, f->sport);
	put16(tcp + 2, f->dport);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	put16(tcp + 12, (FLOW_TCP_BYTES / 4) << 12 | flags);
	put16(tcp + 14, 512);
	put32(tcp + 16, 0);
	memset(tcp + 20, 1, FLOW_TCP_BYTES - 20); /* no-operation options */
}

void flow_finish(const struct flow *f, u8 *frame, u32 payload, bool tso)
{
	u8 *ip = frame + IP_AT;
	u32 l4 = FLOW_TCP_BYTES + payload;

	memcpy(frame, f->dst_mac, 6);
	memcpy(frame + 6, f->src_mac, 6);
	put16(frame + 12, 0x0800);
	memset(ip, 0, FLOW_IP_BYTES);
	ip[0] = 0x45;
	put16(ip + 2, tso ? 0 : FLOW_IP_BYTES + l4);
	ip[6] = 0x40; /* do not fragment */
	ip[8] = 64;
	ip[9] = 6;
	put32(ip + 12, f->saddr);
	put32(ip + 16, f->daddr);
	put16(frame + TCP_AT + 16, csum(ip + 12, 8, 6 + (tso ? 0 : l4)));
}

u32 flow_ack_frame(const struct flow *f, u8 *frame, u32 seq, u32 ack)
{
	return flow_data_frame(f, frame, seq, ack, FLOW_ACK, 0);
}

u32 flow_data_frame(const struct flow *f, u8 *frame, u32 seq, u32 ack, u16 flags, u32 payload)
{
	u8 *ip = frame + IP_AT, *tcp = frame + TCP_AT;

	flow_tcp_header(f, frame, seq, ack, flags);
	flow_finish(f, frame, payload, false);
	put16(ip + 10, ~csum(ip, FLOW_IP_BYTES, 0));
	put16(tcp + 16, ~csum(tcp, FLOW_TCP_BYTES + payload, 0));
	return FLOW_HEADER_BYTES + payload;
}

bool flow_learn(const u8 *frame, u32 len, struct flow *out, u32 *seq)
{
	const u8 *ip = frame + IP_AT, *tcp = frame + TCP_AT;

	if (len < FLOW_HEADER_BYTES || get16(frame + 12) != 0x0800 || ip[0] != 0x45 || ip[9] != 6)
		return false;
	memcpy(out->dst_mac, frame, 6);
	memcpy(out->src_mac, frame + 6, 6);
	out->saddr = get32(ip + 12);
	out->daddr = get32(ip + 16);
	out->sport = get16(tcp);
	out->dport = get16(tcp + 2);
	*seq = get32(tcp + 4);
	return true;
}

const char flow_no_tcp[] = "no TCP over IPv4", flow_other[] = "another connection";

const char *flow_parse(const struct flow *f, const u8 *frame, u32 len, struct flow_segment *out)
{
	const u8 *ip = frame + IP_AT, *tcp = frame + TCP_AT;
	u32 total, l4, header;

	if (len < FLOW_HEADER_BYTES || get16(frame + 12) != 0x0800 || ip[0] != 0x45 || ip[9] != 6)
		return flow_no_tcp;
	total = get16(ip + 2);
	if (total < FLOW_IP_BYTES + FLOW_TCP_BYTES || FLOW_MAC_BYTES + total > len)
		return "IPv4 says another length";
	if (csum(ip, FLOW_IP_BYTES, 0) != 0xffff)
		return "IPv4 header checksum";
	l4 = total - FLOW_IP_BYTES;
	header = 4 * (tcp[12] >> 4);
	if (csum(tcp, l4, csum(ip + 12, 8, 6 + l4)) != 0xffff)
		return "TCP checksum";
	if (get32(ip + 12) != f->saddr || get32(ip + 16) != f->daddr || get16(tcp) != f->sport ||
	    get16(tcp + 2) != f->dport || header > l4)
		return flow_other;
	*out = (struct flow_segment){ .seq = get32(tcp + 4),
				      .ack = get32(tcp + 8),
				      .payload = l4 - header,
				      .payload_at = TCP_AT + header,
				      .flags = get16(tcp + 12) & 0xfff };
	return NULL;
}
