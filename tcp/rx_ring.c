/* SPDX-License-Identifier: MIT */
#include "tcp/rx_ring.h"
#include "skb/skb_defer.h"
#include "skb/skb_head.h"
#include "skb/skb_napi.h"

#include <stdlib.h>
#include <string.h>

#define TCP_AT (ETH_HLEN + sizeof(struct iphdr)) /* of a frame */

/* --- pages
 * ----------------------------------------------------------------------------------------------- */

static struct page *get_plain(void *ctx)
{
	(void)ctx;
	return alloc_pages(0);
}

static void put_plain(void *ctx, struct page *page)
{
	(void)ctx;
	put_page(page);
}

static const struct rx_pages plain_pages = { get_plain, put_plain, NULL, false };

/* Posts what is missing; false if memory is short. */
static bool rx_ring_fill(struct rx_ring *r)
{
	while (r->posted - r->next <= r->mask) {
		struct page *page = r->from.get(r->from.ctx);

		if (unlikely(!page))
			return false;
		r->page[r->posted++ & r->mask] = page;
	}
	return true;
}

static __always_inline struct page *rx_ring_take(struct rx_ring *r, u32 *index)
{
	BUG_ON(r->posted == r->next);
	*index = r->next++ & r->mask;
	return r->page[*index];
}

struct page *rx_ring_page(const struct rx_napi *n, u32 ahead)
{
	const struct rx_ring *r = &n->ring;

	BUG_ON(ahead >= r->posted - r->next);
	return r->page[(r->next + ahead) & r->mask];
}

unsigned int rx_payload_offset(enum rx_driver driver)
{
	switch (driver) {
	case RX_HEADER:
		return TCP_WIRE_BYTES;
	case RX_HEAD_FRAG:
		return NET_SKB_PAD + TCP_WIRE_BYTES;
	default:
		return 0;
	}
}

/* --- drivers: a page becomes an sk_buff whose data is at the IP header
 * ------------------------------------------------ */

/* What a NIC would have written. */
static __always_inline void frame_comes(u8 *frame, const struct rx_flow *f, u8 flags)
{
	struct tcphdr *th = (struct tcphdr *)(frame + TCP_AT);

	th->source = f->tuple.sport;
	th->seq = __builtin_bswap32(f->seq);
	th->flags = flags;
}

/* eth_type_trans() and what the driver knows of the checksum. */
static __always_inline void rx_skb_ready(struct rx_napi *n, struct sk_buff *skb)
{
	unsigned int data = skb_headroom(skb);

	skb->headers.mac_header = data;
	skb->headers.network_header = data + ETH_HLEN;
	skb->headers.transport_header = data + TCP_AT;
	skb->headers.ip_summed = CHECKSUM_UNNECESSARY;
	skb->pp_recycle = n->ring.from.recycle;
	__skb_pull(skb, ETH_HLEN);
}

/* net_prefetch(): the headers are looked at as soon as there is an sk_buff for them. */
static __always_inline void prefetch_frame(const void *frame)
{
	__builtin_prefetch(frame);
	__builtin_prefetch((const u8 *)frame + SMP_CACHE_BYTES);
}

static __always_inline struct sk_buff *build_with_copy(struct rx_napi *n, const struct rx_flow *f,
						       u8 flags, const enum skb_era era,
						       const bool split)
{
	u32 index, at = split ? 0 : TCP_WIRE_BYTES;
	struct page *page = rx_ring_take(&n->ring, &index);
	const void *header = split ? (void *)n->ring.header[index] : page_address(page);
	struct sk_buff *skb;
	u8 *frame;

	prefetch_frame(header);
	skb = napi_alloc_skb(era, RX_HDR_BYTES);
	BUG_ON(!skb);
	frame = skb_put(skb, TCP_WIRE_BYTES);
	skb_memcpy(frame, header, TCP_WIRE_BYTES, SKB_C_HEAD);
	frame_comes(frame, f, flags);
	skb_add_rx_frag(skb, 0, page, at, f->mss, PAGE_SIZE);
	rx_skb_ready(n, skb);
	return skb;
}

static __always_inline struct sk_buff *build_around(struct rx_napi *n, const struct rx_flow *f,
						    u8 flags, const enum skb_era era)
{
	u32 index;
	struct page *page = rx_ring_take(&n->ring, &index);
	struct sk_buff *skb;

	prefetch_frame((u8 *)page_address(page) + NET_SKB_PAD);
	skb = napi_build_skb(era, page_address(page), PAGE_SIZE);
	BUG_ON(!skb);
	skb_reserve(skb, NET_SKB_PAD);
	frame_comes(skb_put(skb, TCP_WIRE_BYTES + f->mss), f, flags);
	rx_skb_ready(n, skb);
	return skb;
}

#define BUILD(suffix, era)                                                                       \
	static struct sk_buff *build_header_##suffix(struct rx_napi *n, const struct rx_flow *f, \
						     u8 flags)                                   \
	{                                                                                        \
		return build_with_copy(n, f, flags, era, false);                                 \
	}                                                                                        \
	static struct sk_buff *build_split_##suffix(struct rx_napi *n, const struct rx_flow *f,  \
						    u8 flags)                                    \
	{                                                                                        \
		return build_with_copy(n, f, flags, era, true);                                  \
	}                                                                                        \
	static struct sk_buff *build_head_frag_##suffix(struct rx_napi *n,                       \
							const struct rx_flow *f, u8 flags)       \
	{                                                                                        \
		return build_around(n, f, flags, era);                                           \
	}
TCP_RX_FOR_EACH_ERA(BUILD)

typedef struct sk_buff *(*build_fn)(struct rx_napi *n, const struct rx_flow *f, u8 flags);

/* [6.12 or not][driver] */
static const build_fn builders[2][RX_DRIVER_NR] = {
	{ build_header_6_1, build_split_6_1, build_head_frag_6_1 },
	{ build_header_6_12, build_split_6_12, build_head_frag_6_12 },
};

/* --- GRO
 * ------------------------------------------------------------------------------------------------- */

static __always_inline struct sk_buff **gro_bucket(struct rx_napi *n, const struct tcphdr *th)
{
	return &n->held[(th->source ^ th->dest) % RX_HASH];
}

/* inet_gro_receive(), tcp_gro_receive(): P's next segment is SKB, and nothing but that differs. */
static __always_inline bool gro_continues(const struct sk_buff *p, const struct sk_buff *skb)
{
	const struct iphdr *iph = ip_hdr(skb), *iph2 = ip_hdr(p);
	const struct tcphdr *th = tcp_hdr(skb), *th2 = tcp_hdr(p);
	u32 held = p->len - NAPI_GRO_CB(p)->data_offset, mss = shinfo_read(p, gso_size);

	if (((iph->saddr ^ iph2->saddr) | (iph->daddr ^ iph2->daddr)) ||
	    ((th->source ^ th2->source) | (th->dest ^ th2->dest)))
		return false;
	if ((iph->ttl ^ iph2->ttl) | (iph->tos ^ iph2->tos) | (th->doff_res ^ th2->doff_res) |
	    (th->ack_seq ^ th2->ack_seq) | ((th->flags ^ th2->flags) & ~TCPHDR_PSH))
		return false;
	if (memcmp(th + 1, th2 + 1, TCPOLEN_TSTAMP_ALIGNED))
		return false;
	return __builtin_bswap32(th2->seq) + held == __builtin_bswap32(th->seq) &&
	       skb_gro_len(skb) <= mss;
}

/* tcp_gro_complete(), ip_rcv(), and up. */
static __always_inline void gro_deliver(struct rx_napi *n, struct sk_buff *p,
					const enum skb_era era, const enum tcp_defer defer)
{
	shinfo_write(p, gso_segs, NAPI_GRO_CB(p)->count);
	shinfo_write(p, gso_type, SKB_GSO_TCPV4);
	__skb_pull(p, sizeof(struct iphdr));
	n->packets++;
	if (tcp_v4_rcv(era, defer, n->net, p))
		n->refused++;
}

static __always_inline void gro_complete(struct rx_napi *n, struct sk_buff **bucket,
					 const enum skb_era era, const enum tcp_defer defer)
{
	struct sk_buff *p = *bucket;

	*bucket = NULL;
	gro_deliver(n, p, era, defer);
}

static __always_inline void napi_gro_receive(struct rx_napi *n, struct sk_buff *skb,
					     const enum skb_era era, const enum tcp_defer defer)
{
	struct tcphdr *th = tcp_hdr(skb);
	struct sk_buff **bucket = gro_bucket(n, th), *p = *bucket;
	bool last = th->flags & TCPHDR_PSH;

	skb_gro_init(skb, sizeof(struct iphdr) + TCP_WIRE_TCP_BYTES);
	if (p && gro_continues(p, skb) && !skb_gro_receive(p, skb, n->gro_max_size)) {
		if (last)
			tcp_hdr(p)->flags |= TCPHDR_PSH;
		napi_gro_free(era, skb);
	} else {
		if (p)
			gro_complete(n, bucket, era, defer);
		shinfo_write(skb, gso_size, (u16)skb_gro_len(skb));
		*bucket = skb;
	}
	if (last)
		gro_complete(n, bucket, era, defer);
}

/* --- the softirq
 * ----------------------------------------------------------------------------------------- */

/* net_rx_action(): what other CPUs have sent home. */
static __always_inline void flush_home(struct rx_napi *n, const enum skb_era era,
				       const enum tcp_defer defer)
{
	const enum skb_defer how =
		defer == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST : SKB_DEFER_NODE_LLIST;
	struct softnet_data *sd = this_softnet();
	u64 nr;

	if (softnet_kicked(sd))
		softnet_ack_kick(sd);
	nr = skb_defer_free_flush(era, how, sd);
	n->flushed += nr;
	n->most_flushed = max(n->most_flushed, nr);
}

static __always_inline void do_poll(struct rx_napi *n, struct rx_flow *f, unsigned int segs,
				    bool push, const enum skb_era era, const enum tcp_defer defer)
{
	n->segs += segs;
	while (segs--) {
		u8 flags = TCPHDR_ACK | (push && !segs ? TCPHDR_PSH : 0);
		struct sk_buff *skb = n->build(n, f, flags);

		f->seq += f->mss;
		napi_gro_receive(n, skb, era, defer);
	}
	if (defer == TCP_DEFER_CPU_LIST || defer == TCP_DEFER_NODE_LLIST)
		flush_home(n, era, defer);
	BUG_ON(!rx_ring_fill(&n->ring));
	inet_rcu_quiescent();
}

#define INSTANTIATE(suffix, era, defer)                                                           \
	void rx_poll_##suffix(struct rx_napi *n, struct rx_flow *f, unsigned int segs, bool push) \
	{                                                                                         \
		do_poll(n, f, segs, push, era, defer);                                            \
	}
TCP_RX_FOR_EACH(INSTANTIATE)

/* --- start and end
 * --------------------------------------------------------------------------------------- */

int rx_napi_init(enum skb_era era, struct rx_napi *n, struct net *net, enum rx_driver driver,
		 u32 size, const struct rx_pages *from, unsigned int gro_max_size)
{
	struct rx_ring *r = &n->ring;

	if (size < RX_RING_MIN || size & (size - 1) || driver >= RX_DRIVER_NR || era < ERA_6_1)
		return -EINVAL;
	memset(n, 0, sizeof(*n));
	n->net = net;
	n->driver = driver;
	n->build = builders[era >= ERA_6_12][driver];
	n->gro_max_size = gro_max_size;
	r->mask = size - 1;
	r->from = from ? *from : plain_pages;
	r->page = calloc(size, sizeof(*r->page));
	if (driver == RX_HEADER_SPLIT)
		r->header = aligned_alloc(SMP_CACHE_BYTES, size * sizeof(*r->header));
	if (!r->page || (driver == RX_HEADER_SPLIT && !r->header) || !rx_ring_fill(r)) {
		rx_napi_exit(era, n);
		return -ENOMEM;
	}
	return 0;
}

void rx_napi_exit(enum skb_era era, struct rx_napi *n)
{
	struct rx_ring *r = &n->ring;

	for (unsigned int i = 0; i < RX_HASH; i++) {
		if (n->held[i])
			kfree_skb(era, n->held[i]);
		n->held[i] = NULL;
	}
	for (; r->page && r->next != r->posted; r->next++)
		r->from.put(r->from.ctx, r->page[r->next & r->mask]);
	free(r->page);
	free(r->header);
	r->page = NULL;
	r->header = NULL;
}

static void prime_page(const struct page *page, const u8 *frame, enum rx_driver driver)
{
	if (driver != RX_HEADER_SPLIT)
		memcpy((u8 *)page_address(page) + rx_payload_offset(driver) - TCP_WIRE_BYTES, frame,
		       TCP_WIRE_BYTES);
}

/* What a NIC would have written before the payload of every frame of FLOW's. */
static void first_frame(u8 frame[TCP_WIRE_BYTES], const struct rx_flow *flow)
{
	struct tcp_segment seg = {
		.saddr = flow->tuple.saddr,
		.daddr = flow->tuple.daddr,
		.sport = flow->tuple.sport,
		.dport = flow->tuple.dport,
		.seq = flow->seq,
		.ack_seq = 1,
		.window = 65535,
		.len = flow->mss,
		.flags = TCPHDR_ACK,
	};

	tcp_build_frame(frame, &seg);
}

void rx_pages_prime(enum rx_driver driver, const struct rx_flow *flow, int nid)
{
	struct page *all = NULL, *page, *next;
	u8 frame[TCP_WIRE_BYTES];

	first_frame(frame, flow);
	/* A page that is in nobody's hands: its first word links it. */
	while ((page = alloc_pages_node(nid, 0))) {
		prime_page(page, frame, driver);
		page->pp_pad = (unsigned long)all;
		all = page;
	}
	for (page = all; page; page = next) {
		next = (struct page *)page->pp_pad;
		put_page(page);
	}
}

void rx_ring_prime(struct rx_napi *n, const struct rx_flow *flow)
{
	u8 frame[TCP_WIRE_BYTES];

	first_frame(frame, flow);
	for (u32 i = n->ring.next; i != n->ring.posted; i++)
		prime_page(n->ring.page[i & n->ring.mask], frame, n->driver);
	for (u32 i = 0; n->ring.header && i <= n->ring.mask; i++)
		memcpy(n->ring.header[i], frame, TCP_WIRE_BYTES);
	rx_pages_prime(n->driver, flow, NUMA_NO_NODE);
}
