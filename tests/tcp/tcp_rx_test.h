/* SPDX-License-Identifier: MIT */
/*
 * What the tests of TCP's receive side share: one namespace, one socket, and packets whose bytes
 * tell where in the stream they are.
 */
#ifndef TESTS_TCP_RX_TEST_H
#define TESTS_TCP_RX_TEST_H

#include "skb/skb_check.h"
#include "skb/skb_defer.h"
#include "skb/skb_zcopy.h"
#include "tcp/tcp.h"
#include "tcp/tcp_rx.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <string.h>

#define for_each_rx_era(era) for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
#define for_each_defer(d)    for (enum tcp_defer d = TCP_DEFER_INLINE; d < TCP_DEFER_NR; d++)

#define MSS 1448

static struct net *net;
static struct sock sk;
static struct proto_memory prot;
static struct tx_ring ring;

/* The peer is 10.0.0.2:40000, the socket 10.0.0.1:5001. */
static const struct inet_tuple tuple = {
	.saddr = 0x0200000a, .daddr = 0x0100000a, .sport = 0x409c, .dport = 0x8913
};

static inline u8 byte_at(u32 seq)
{
	return (u8)(seq * 2654435761u >> 24);
}

/* The stream's bytes at SEQ are what P holds. */
static inline void check_stream(const u8 *p, u32 seq, u32 len)
{
	for (u32 i = 0; i < len; i++)
		if (p[i] != byte_at(seq + i))
			fail_msg("byte %u of %u at %u is wrong", i, len, seq);
}

enum shape {
	SHAPE_LINEAR, /* payload behind the header in one head, up to 1024 bytes */
	SHAPE_PAGES, /* header in the head, payload in pages of their own */
	SHAPE_LIST, /* a member in the frag_list for each MSS bytes after the first */
	SHAPE_NR
};

static inline void fill(u8 *p, u32 seq, u32 len)
{
	for (u32 i = 0; i < len; i++)
		p[i] = byte_at(seq + i);
}

/* LEN bytes from SEQ on in frags of SKB, each in a page of its own. */
static inline void add_pages(struct sk_buff *skb, u32 seq, u32 len, u32 each)
{
	while (len) {
		u32 n = min(len, each);
		struct page *page = alloc_pages(0);

		assert_non_null(page);
		fill(page_address(page), seq, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, n, PAGE_SIZE);
		seq += n;
		len -= n;
	}
}

/* What a packet says besides its bytes. */
struct packet {
	u32 seq, len, ack_seq;
	enum shape shape;
	u8 flags; /* besides ACK */
	u8 tos;
	u32 tsval;
	u16 window;
	bool no_ack;
};

/* A packet as a driver and GRO make it, data at its TCP header. */
static inline struct sk_buff *make_packet(const enum skb_era era, const struct packet *p)
{
	u32 linear = p->shape == SHAPE_LINEAR ? p->len : 0;
	struct sk_buff *skb = alloc_skb(era, NET_SKB_PAD + TCP_WIRE_BYTES + linear, NUMA_NO_NODE);
	struct tcp_segment seg = { .saddr = tuple.saddr,
				   .daddr = tuple.daddr,
				   .sport = tuple.sport,
				   .dport = tuple.dport,
				   .seq = p->seq,
				   .ack_seq = p->ack_seq ? p->ack_seq : 1,
				   .tsval = p->tsval,
				   .window = p->window ? p->window : 512,
				   .len = (u16)p->len,
				   .flags = p->flags | (p->no_ack ? 0 : TCPHDR_ACK) };

	assert_non_null(skb);
	skb_reserve(skb, NET_SKB_PAD);
	tcp_build_frame(skb_put(skb, TCP_WIRE_BYTES), &seg);
	if (linear)
		fill(skb_put(skb, linear), p->seq, linear);
	skb->headers.ip_summed = CHECKSUM_UNNECESSARY;
	tcp_pull_to_header(skb);
	ip_hdr(skb)->tos = p->tos;
	if (p->shape == SHAPE_PAGES) {
		add_pages(skb, p->seq, p->len, MSS);
	} else if (p->shape == SHAPE_LIST) {
		u32 at = min(p->len, (u32)MSS);
		struct sk_buff **link = &skb_shinfo(skb)->frag_list;

		add_pages(skb, p->seq, at, MSS);
		while (at < p->len) {
			u32 n = min(p->len - at, (u32)MSS);
			struct sk_buff *m = alloc_skb(era, 64, NUMA_NO_NODE);

			assert_non_null(m);
			add_pages(m, p->seq + at, n, 700);
			__skb_header_release(m);
			*link = m;
			link = &m->next;
			m->next = NULL;
			skb->len += n;
			skb->data_len += n;
			skb->truesize += m->truesize;
			at += n;
		}
	}
	if (p->len > MSS) {
		skb_shinfo(skb)->gso_size = MSS;
		skb_shinfo(skb)->gso_segs = (u16)DIV_ROUND_UP(p->len, MSS);
	}
	return skb;
}

static inline void deliver_packet(const enum skb_era era, const enum tcp_defer d,
				  const struct packet *p)
{
	assert_int_equal(tcp_v4_rcv(era, d, net, make_packet(era, p)), 0);
}

/* LEN bytes from SEQ on in pages. */
static inline void deliver(const enum skb_era era, const enum tcp_defer d, u32 seq, u32 len)
{
	deliver_packet(era, d, &(struct packet){ .seq = seq, .len = len, .shape = SHAPE_PAGES });
}

static inline void check(void)
{
	char err[200] = "";

	if (tcp_rx_check(&sk, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline u64 stats(enum tcp_mib_item item)
{
	return net_stats(net, item);
}

static inline void open_rx(const enum skb_era era, const enum sock_wait wait, int rcvbuf)
{
	memset(&prot, 0, sizeof(prot));
	memset(net->mib, 0, sizeof(net->mib));
	assert_int_equal(tx_ring_init(&ring, 64), 0);
	tcp_sock_init(&sk, &prot, &ring, 0);
	tcp_rx_init(era, wait, &sk, net, rcvbuf);
	assert_int_equal(inet_hash(net, &sk, &tuple), 0);
}

/* What other CPUs were asked to free, they free. */
static inline void flush_all_cpus(const enum skb_era era, const enum tcp_defer d)
{
	unsigned int cpu = smp_processor_id();

	if (d != TCP_DEFER_CPU_LIST && d != TCP_DEFER_NODE_LLIST)
		return;
	for (unsigned int c = 0; c < 4; c++) {
		assert_int_equal(skb_cpu_attach(c, 0), 0);
		skb_defer_free_flush(
			era, d == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST : SKB_DEFER_NODE_LLIST,
			this_softnet());
	}
	assert_int_equal(skb_cpu_attach(cpu, 0), 0);
}

/* Nothing is left of the socket. */
static inline void close_rx(const enum skb_era era, const enum tcp_defer d)
{
	inet_unhash(&sk);
	inet_rcu_synchronize();
	tcp_rx_destroy(era, &sk);
	tcp_sock_destroy(era, &sk);
	tx_ring_exit(&ring);
	flush_all_cpus(era, d);
	assert_int_equal(proto_memory_bytes(&prot), 0);
	assert_int_equal(model_pages_in_use(), 0);
}

static inline int rx_start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 16384);
	inet_rcu_attach();
	net = aligned_alloc(SMP_CACHE_BYTES, sizeof(*net));
	assert_non_null(net);
	assert_int_equal(net_init(net), 0);
	return 0;
}

static inline int rx_stop(void **state)
{
	(void)state;
	net_exit(net);
	free(net);
	inet_rcu_detach();
	return 0;
}

#endif
