/* SPDX-License-Identifier: MIT */
#include "mptcp/mptcp_peer.h"

#include "skb/skb_check.h"
#include "skb/skb_head.h"
#include "tcp/tcp_cb.h"
#include "tcp/tcp_wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static int bad(struct mptcp_peer *peer, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(peer->err, sizeof(peer->err), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

void mptcp_peer_init(struct mptcp_peer *peer, u32 isn, u64 idsn)
{
	memset(peer, 0, sizeof(*peer));
	peer->isn = isn;
	peer->subflow.next = (u64)isn + 1;
	peer->data.next = idsn;
}

/*
 * --- what is there
 * ------------------------------------------------------------------------------
 */

/* [START, END) came. False: too many gaps to remember it. */
static bool ranges_add(struct mptcp_ranges *r, u64 start, u64 end)
{
	unsigned int i, last;

	if ((s64)(end - r->next) <= 0)
		return true;
	if ((s64)(start - r->next) < 0)
		start = r->next;
	/* Those from i to last touch it. */
	for (i = 0; i < r->nr && (s64)(r->range[i].end - start) < 0; i++)
		;
	for (last = i; last < r->nr && (s64)(r->range[last].start - end) <= 0; last++) {
		if ((s64)(r->range[last].start - start) < 0)
			start = r->range[last].start;
		if ((s64)(r->range[last].end - end) > 0)
			end = r->range[last].end;
	}
	if (start == r->next) {
		r->next = end;
		memmove(r->range, r->range + last, (r->nr - last) * sizeof(r->range[0]));
		r->nr -= last;
		return true;
	}
	if (last == i && r->nr == MPTCP_PEER_RANGES)
		return false;
	memmove(r->range + i + 1, r->range + last, (r->nr - last) * sizeof(r->range[0]));
	r->nr = r->nr - (last - i) + 1;
	r->range[i].start = start;
	r->range[i].end = end;
	return true;
}

/*
 * --- a packet
 * -----------------------------------------------------------------------------------
 */

struct arrived {
	u32 seq; /* of the subflow */
	u32 payload; /* where it begins */
	u32 len;
	bool fin;
	const struct mptcp_ext *map; /* NULL: none came with it */
};

static const struct mptcp_dss *find_dss(const u8 *option, const u8 *end)
{
	while (option < end) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (option + 2 > end || option[1] < 2 || option + option[1] > end)
			return NULL;
		if (*option == TCPOPT_MPTCP && option[2] >> 4 == MPTCPOPT_DSS)
			return (const struct mptcp_dss *)option;
		option += option[1];
	}
	return NULL;
}

/* The map of PACKET, from its option, as its own extension. 0 or -ENOMEM. */
static __always_inline int take_map(struct sk_buff *packet, const struct mptcp_dss *dss,
				    const struct mptcp_ext **map)
{
	struct mptcp_ext *ext = skb_ext_add(packet, SKB_EXT_MPTCP);

	if (unlikely(!ext))
		return -ENOMEM;
	memset(ext, 0, sizeof(*ext));
	ext->data_ack = __builtin_bswap64(dss->data_ack);
	ext->use_ack = ext->ack64 = 1;
	ext->use_map = ext->dsn64 = 1;
	ext->data_fin = !!(dss->flags & MPTCP_DSS_DATA_FIN);
	ext->data_seq = __builtin_bswap64(dss->data_seq);
	ext->subflow_seq = __builtin_bswap32(dss->subflow_seq);
	ext->data_len = __builtin_bswap16(dss->data_len);
	*map = ext;
	return 0;
}

static __always_inline int parse(struct mptcp_peer *peer, struct sk_buff *packet, struct arrived *a)
{
	const u8 *tcp = packet->data + ETH_HLEN + sizeof(struct iphdr);
	const struct tcphdr *th = (const struct tcphdr *)tcp;
	const struct mptcp_dss *dss;
	u32 hdrlen = __tcp_hdrlen(th);

	if (skb_headlen(packet) < ETH_HLEN + sizeof(struct iphdr) + hdrlen)
		return bad(peer, "a packet of %u linear bytes", skb_headlen(packet));
	a->payload = ETH_HLEN + sizeof(struct iphdr) + hdrlen;
	a->len = packet->len - a->payload;
	a->seq = __builtin_bswap32(th->seq);
	a->fin = th->flags & TCPHDR_FIN;
	a->map = NULL;
	dss = find_dss(tcp + TCP_WIRE_TCP_BYTES, tcp + hdrlen);
	return dss ? take_map(packet, dss, &a->map) : 0;
}

/* Notes the end of the stream as MAP tells it. */
static int take_data_fin(struct mptcp_peer *peer, const struct arrived *a)
{
	u64 at = a->map->data_seq + a->map->data_len - 1;

	if (!a->map->data_len)
		return bad(peer, "a DATA_FIN without a number");
	if (!a->len && (a->map->data_len != 1 || a->map->subflow_seq))
		return bad(peer, "a DATA_FIN without payload says %u bytes from %u",
			   a->map->data_len, a->map->subflow_seq);
	if (peer->data_fin && peer->data_fin_seq != at)
		return bad(peer, "DATA_FIN at %#llx, and before at %#llx", (unsigned long long)at,
			   (unsigned long long)peer->data_fin_seq);
	peer->data_fin = true;
	peer->data_fin_seq = at;
	return 0;
}

struct compare {
	struct mptcp_peer *peer;
	u64 data_seq;
	u32 skip;
	u64 old; /* before it bytes have no meaning any more: window probes carry some */
	bool wrong;
};

static void compare_piece(void *arg, const void *bytes, size_t len)
{
	struct compare *c = arg;
	const u8 *p = bytes;

	for (; len && c->skip; len--, p++)
		c->skip--;
	for (; len; len--, p++, c->data_seq++) {
		if (c->wrong || (s64)(c->data_seq - c->old) < 0 ||
		    *p == c->peer->pattern(c->data_seq))
			continue;
		c->wrong = true;
		bad(c->peer, "the byte at data sequence %#llx is wrong",
		    (unsigned long long)c->data_seq);
	}
}

static __always_inline int rcv(struct mptcp_peer *peer, struct sk_buff *packet, const bool check)
{
	const struct mptcp_ext *map = &peer->map;
	struct arrived a = { 0 };
	u64 data_seq, seq;
	u32 off;
	int err = parse(peer, packet, &a);

	if (unlikely(err))
		return err;
	peer->skbs++;
	peer->segs += max((u16)1, shinfo_read(packet, gso_segs));
	if (a.map) {
		if (a.map->data_fin && take_data_fin(peer, &a))
			return -EPROTO;
		if (a.len && memcmp(map, a.map, sizeof(*map))) {
			peer->map = *a.map;
			peer->maps++;
		}
	}
	/* Which data its payload is. */
	off = a.seq - peer->isn - map->subflow_seq;
	if (a.len && (u64)off + a.len > (u32)map->data_len - map->data_fin)
		return bad(peer, "bytes %u to %u of the subflow, and the map is of %u from %u",
			   a.seq - peer->isn, a.seq - peer->isn + a.len, map->data_len,
			   map->subflow_seq);
	data_seq = map->data_seq + off;
	if (check) {
		struct compare c = { peer, data_seq, a.payload, peer->data.next, false };

		skb_for_each_piece(packet, compare_piece, &c);
		if (c.wrong)
			return -EPROTO;
	} else {
		__skb_copy_bits(packet, a.payload, peer->sink, a.len);
	}
	peer->bytes += a.len;
	seq = peer->subflow.next + (u64)(s64)(s32)(a.seq - (u32)peer->subflow.next);
	if (!ranges_add(&peer->subflow, seq, seq + a.len + a.fin))
		return -ENOMEM;
	if (a.len)
		ranges_add(&peer->data, data_seq, data_seq + a.len);
	peer->fin |= a.fin;
	if (peer->data_fin && peer->data.next == peer->data_fin_seq)
		peer->data.next++;
	return 0;
}

int mptcp_peer_rcv(struct mptcp_peer *peer, struct sk_buff *packet)
{
	return rcv(peer, packet, false);
}

int mptcp_peer_rcv_check(struct mptcp_peer *peer, struct sk_buff *packet)
{
	return rcv(peer, packet, true);
}
