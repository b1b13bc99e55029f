/* SPDX-License-Identifier: MIT */
/* What the tests of MPTCP share: one connection over one subflow and its loopback. */
#ifndef TESTS_MPTCP_HARNESS_H
#define TESTS_MPTCP_HARNESS_H

#include "mptcp/mptcp.h"
#include "mptcp/mptcp_peer.h"
#include "skb/skb_check.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <errno.h>

#define for_each_variant(v)	for (enum mptcp_variant v = MPTCP_BEFORE; v < MPTCP_VARIANT_NR; v++)
#define for_each_mptcp_era(era) for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)

/* Those that keep every byte under its number whatever is cut. */
static inline bool claims_right(enum mptcp_variant v)
{
	return v != MPTCP_SPLIT && v != MPTCP_POSTED;
}

#define RING 1024
#define IDSN 0x1000

static struct sock sk;
static struct mptcp_sock msk;
static struct proto_memory prot;
static struct tx_ring ring;
static struct mptcp_peer peer;
static enum skb_era era;
static enum mptcp_variant variant;

static u8 pattern(u64 data_seq)
{
	return (data_seq ^ data_seq >> 17) * 0x9e3779b97f4a7c15u >> 56;
}

static inline void open_conn(enum skb_era e, enum mptcp_variant v, u32 isn, u64 idsn, u32 mtu)
{
	era = e;
	variant = v;
	memset(&prot, 0, sizeof(prot));
	assert_int_equal(tx_ring_init(&ring, RING), 0);
	tcp_sock_init(&sk, &prot, &ring, SKB_FRAG_PAGE_ORDER);
	sk.write_seq = sk.snd_nxt = sk.snd_una = isn + 1;
	assert_int_equal(mptcp_init(&msk, &sk, idsn, mtu), 0);
	mptcp_peer_init(&peer, isn, idsn);
	peer.pattern = pattern;
}

static inline void close_conn(void)
{
	tx_ring_complete(era, &ring, RING);
	sk.snd_wnd = 0; /* what a completion asks for sends nothing more */
	tcp_tsq_handler(era, mptcp_tcp(variant), &sk);
	mptcp_destroy(era, &msk);
	tx_ring_exit(&ring);
	assert_int_equal(proto_memory_bytes(&prot), 0);
	assert_int_equal(refcount_read(&sk.sk_wmem_alloc, SKB_C_WMEM), 1);
	assert_int_equal(model_pages_in_use(), 0);
}

static inline void check(void)
{
	char err[200] = "";

	if (mptcp_check(era, variant, &msk, pattern, err, sizeof(err)))
		fail_msg("%s, %s: %s", skb_era_name(era), mptcp_variant_name(variant), err);
}

/* The next LEN bytes of the stream are written. Returns how many were. */
static inline int write_stream(u32 len)
{
	static u8 buf[1 << 20];

	assert_true(len <= sizeof(buf));
	for (u32 i = 0; i < len; i++)
		buf[i] = pattern(msk.write_seq + i);
	return mptcp_sendmsg(era, variant, &msk, buf, len);
}

static inline int push(void)
{
	return mptcp_push_pending(era, variant, &msk);
}

static inline void acked(void)
{
	assert_true(tcp_ack(era, mptcp_tcp(variant), &sk, mptcp_peer_ack(&peer)) >= 0);
	assert_true(mptcp_data_acked(&msk, mptcp_peer_data_ack(&peer)) >= 0);
}

/* The oldest packet in the ring: to the peer, or lost. */
static inline void arrive(bool lost)
{
	struct sk_buff *packet = ring.slot[ring.head & ring.mask];
	int err = lost ? 0 : mptcp_peer_rcv_check(&peer, packet);

	if (err == -EPROTO)
		fail_msg("%s, %s: %s", skb_era_name(era), mptcp_variant_name(variant), peer.err);
	assert_int_equal(tx_ring_complete(era, &ring, 1), 1);
}

static inline void arrive_all(void)
{
	while (tx_ring_count(&ring))
		arrive(false);
	tcp_tsq_handler(era, mptcp_tcp(variant), &sk);
}

static inline struct sk_buff *nth(struct sk_buff_head *q, int n)
{
	struct sk_buff *skb = q->next;

	while (n--)
		skb = skb->next;
	assert_false(skb_queue_is_end(q, skb));
	return skb;
}

static inline int ext_refs(const struct sk_buff *skb)
{
	return skb->extensions->refcnt.refs.counter;
}

/* SKB's map says LEN bytes, those from DSN and SSN on. */
static inline void map_is(const struct sk_buff *skb, u64 dsn, u32 ssn, u32 len, bool frozen)
{
	const struct mptcp_ext *map = mptcp_get_ext(skb);

	assert_non_null(map);
	assert_int_equal(map->data_seq, dsn);
	assert_int_equal(map->subflow_seq, ssn);
	assert_int_equal(map->data_len, len);
	assert_int_equal(map->frozen, frozen);
}

static inline int mptcp_start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 16384);
	return 0;
}

#endif
