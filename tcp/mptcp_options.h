/* SPDX-License-Identifier: MIT */
/*
 * MPTCP's option in TCP's header: the DSS, which tells the peer what the payload is.
 *
 * Kernel: mptcp_established_options() and mptcp_write_options() in net/mptcp/options.c; RFC 8684,
 * 3.3. It is made from the map of what is sent at the moment of sending, so that a map that changes
 * while a clone is below TCP changes nothing on the wire, but the next transmission does. Bytes of
 * the option, of which TCP's header holds 40 beside the 12 of timestamps:
 *
 *   4 + 8 (data_ack) + 14 (a map with 8 bytes of data_seq), filled up to 28
 *
 * Left out: an acknowledgment of 4 bytes (24 in all), checksums, every other MPTCP option.
 */
#ifndef TCP_MPTCP_OPTIONS_H
#define TCP_MPTCP_OPTIONS_H

#include "skb/mptcp_ext.h"
#include "tcp/sock.h"

#define TCPOPT_NOP   1
#define TCPOPT_MPTCP 30
#define MPTCPOPT_DSS 2 /* high half of the third byte */

#define MPTCP_DSS_HAS_ACK  0x01
#define MPTCP_DSS_ACK64	   0x02
#define MPTCP_DSS_HAS_MAP  0x04
#define MPTCP_DSS_DSN64	   0x08
#define MPTCP_DSS_DATA_FIN 0x10

struct mptcp_dss {
	u8 kind, len, subtype, flags;
	u64 data_ack;
	u64 data_seq;
	u32 subflow_seq;
	u16 data_len;
	u8 nop[2];
} __attribute__((packed));

_Static_assert(sizeof(struct mptcp_dss) == 28, "26 bytes and two NOPs");

/*
 * Adds the end of the stream to EXT, a copy of the map of SKB. The DATA_FIN takes one number: with
 * the last bytes it makes their map one longer; without payload it has a map of its own, of length
 * 1 and subflow sequence 0, whatever map was there. Kernel: mptcp_write_data_fin().
 */
static __always_inline void mptcp_write_data_fin(const struct sock *sk, const struct sk_buff *skb,
						 struct mptcp_ext *ext)
{
	if (!ext->use_map || !skb->len) {
		ext->data_fin = 1;
		ext->use_map = 1;
		ext->dsn64 = 1;
		ext->data_seq = sk->mptcp.data_fin_seq;
		ext->subflow_seq = 0;
		ext->data_len = 1;
	} else if (ext->data_seq + ext->data_len == sk->mptcp.data_fin_seq &&
		   ext->data_len < MPTCP_MAX_MAP) {
		ext->data_fin = 1;
		ext->data_len++;
	}
}

/*
 * The option for PACKET, which SK, a subflow, sends: pushed in front of its payload. Returns its
 * bytes; 0: there is nothing to say.
 */
static __always_inline u32 mptcp_write_options(const struct sock *sk, struct sk_buff *packet)
{
	const struct mptcp_ext *map = mptcp_get_ext(packet);
	struct mptcp_ext ext = map ? *map : (struct mptcp_ext){ 0 };
	struct mptcp_dss *dss;

	if (unlikely(sk->mptcp.data_fin))
		mptcp_write_data_fin(sk, packet, &ext);
	if (unlikely(!ext.use_map))
		return 0;
	dss = skb_push(packet, sizeof(*dss));
	dss->kind = TCPOPT_MPTCP;
	dss->len = sizeof(*dss) - sizeof(dss->nop);
	dss->subtype = MPTCPOPT_DSS << 4;
	dss->flags = MPTCP_DSS_HAS_ACK | MPTCP_DSS_ACK64 | MPTCP_DSS_HAS_MAP | MPTCP_DSS_DSN64 |
		     (ext.data_fin ? MPTCP_DSS_DATA_FIN : 0);
	dss->data_ack = __builtin_bswap64(sk->mptcp.data_ack);
	dss->data_seq = __builtin_bswap64(ext.data_seq);
	dss->subflow_seq = __builtin_bswap32(ext.subflow_seq);
	dss->data_len = __builtin_bswap16(ext.data_len);
	memset(dss->nop, TCPOPT_NOP, sizeof(dss->nop));
	return sizeof(*dss);
}

#endif
