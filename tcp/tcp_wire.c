/* SPDX-License-Identifier: MIT */
#include "tcp/tcp_wire.h"

#include <string.h>

#define IPPROTO_TCP_NUMBER 6

void tcp_build_frame(void *to, const struct tcp_segment *seg)
{
	struct iphdr *iph = (struct iphdr *)((u8 *)to + ETH_HLEN);
	struct tcphdr *th = (struct tcphdr *)(iph + 1);
	u32 stamps[3] = {
		__builtin_bswap32(0x0101080a), /* NOP, NOP, timestamps, 10 bytes */
		__builtin_bswap32(seg->tsval),
		__builtin_bswap32(seg->tsecr),
	};

	memset(to, 0, TCP_WIRE_BYTES);
	((u8 *)to)[12] = 0x08; /* EtherType IPv4 */
	iph->version_ihl = 0x45;
	iph->tot_len = __builtin_bswap16((u16)(sizeof(*iph) + TCP_WIRE_TCP_BYTES + seg->len));
	iph->ttl = 64;
	iph->protocol = IPPROTO_TCP_NUMBER;
	iph->saddr = seg->saddr;
	iph->daddr = seg->daddr;
	th->source = seg->sport;
	th->dest = seg->dport;
	th->seq = __builtin_bswap32(seg->seq);
	th->ack_seq = __builtin_bswap32(seg->ack_seq);
	th->doff_res = (u8)(TCP_WIRE_TCP_BYTES / 4 << 4);
	th->flags = seg->flags;
	th->window = __builtin_bswap16(seg->window);
	memcpy(th + 1, stamps, sizeof(stamps));
}
