/* SPDX-License-Identifier: MIT */
/* What the tests of TCP's transmit side share: one socket, its ring, what a step counted. */
#ifndef TESTS_TCP_TEST_H
#define TESTS_TCP_TEST_H

#include "skb/skb_check.h"
#include "tcp/tcp.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define for_each_era(era)   for (enum skb_era era = ERA_3_4; era < SKB_ERA_NR; era++)
#define for_each_trim(trim) for (enum tcp_trim trim = TRIM_EAGER; trim < TCP_TRIM_NR; trim++)

#define MSS   TCP_MSS_ETHERNET
#define BYTES (45 * MSS)

/* Numbers that tests spell out are those of 17 frags and pages of 4 KB. */
#define GOLDEN (MAX_SKB_FRAGS == 17 && PAGE_SHIFT == 12)

/* At the start of a test whose sk_buffs must lie in as many frags as with pages of 4 KB. */
#define need_4k_pages()               \
	do {                          \
		if (PAGE_SHIFT != 12) \
			skip();       \
	} while (0)

static struct sock sk;
static struct proto_memory prot;
static struct tx_ring ring;
static char data[4 * BYTES];

static inline void open_sock(unsigned int order)
{
	memset(&prot, 0, sizeof(prot));
	assert_int_equal(tx_ring_init(&ring, 64), 0);
	tcp_sock_init(&sk, &prot, &ring, order);
}

static inline void close_sock(enum skb_era era)
{
	tx_ring_complete(era, &ring, 64);
	tcp_sock_destroy(era, &sk);
	tx_ring_exit(&ring);
	assert_int_equal(proto_memory_bytes(&prot), 0);
	assert_int_equal(refcount_read(&sk.sk_wmem_alloc, SKB_C_WMEM), 1);
	assert_int_equal(model_pages_in_use(), 0);
}

static inline void check(enum skb_era era, enum tcp_trim trim)
{
	char err[200] = "";

	if (tcp_check_sock(era, trim, &sk, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline struct sk_buff *oldest(void)
{
	return skb_peek(&sk.tcp_rtx_queue);
}

/* One sk_buff of 65160 bytes, sent. */
static inline struct sk_buff *send_one(enum skb_era era, enum tcp_trim trim)
{
	assert_int_equal(tcp_sendmsg(era, &sk, data, BYTES), BYTES);
	assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
	check(era, trim);
	return oldest();
}

/* LEN bytes of the stream, sent as an sk_buff of their own. Returns it. */
static inline struct sk_buff *send_record(enum skb_era era, enum tcp_trim trim, u32 len)
{
	struct sk_buff *skb;

	assert_int_equal(tcp_sendmsg(era, &sk, data + (sk.write_seq - 1) % BYTES, len), len);
	assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
	skb = skb_peek_tail(&sk.tcp_rtx_queue);
	assert_int_equal(skb->len, len);
	return skb;
}

/* Everything that was sent has left the machine. */
static inline void complete_all(enum skb_era era)
{
	tx_ring_complete(era, &ring, 64);
}

/* The payload of SKB is what was written at its sequence numbers. */
static inline void check_bytes(const struct sk_buff *skb)
{
	char *back = malloc(skb->len + 1);
	u32 seq = TCP_SKB_CB(skb)->seq;

	skb_copy_bits(skb, 0, back, skb->len);
	for (u32 i = 0; i < skb->len; i++)
		if (back[i] != (char)((seq - 1 + i) % BYTES * 2654435761u >> 24))
			fail_msg("byte %u of an sk_buff at %u is wrong", i, seq);
	free(back);
}

static inline u32 wire_seq(const struct sk_buff *clone)
{
	u32 seq;

	skb_copy_bits(clone, 14 + 20 + 4, &seq, sizeof(seq));
	return __builtin_bswap32(seq);
}

static inline struct sk_buff *last_sent(void)
{
	return ring.slot[(ring.tail - 1) & ring.mask];
}

/*
 * --- the ledger of a step
 * -----------------------------------------------------------------------------------
 */

#ifdef SKB_TRACED
struct step {
	u64 rmw, gets, puts, page_frees, allocs, frees, bytes, shared_stores;
};

static inline struct step since(void)
{
	struct step s = {
		.rmw = counts_rmw(),
		.gets = counted.event[SKB_EV_PAGE_GET],
		.puts = counted.event[SKB_EV_PAGE_PUT],
		.page_frees = counted.event[SKB_EV_PAGE_FREE],
		.allocs = counted.event[SKB_EV_OBJ_ALLOC],
		.frees = counted.event[SKB_EV_OBJ_FREE],
		.bytes = counted.written[SKB_C_HEAD] + counted.written[SKB_C_PAYLOAD],
		.shared_stores = counted.store[SKB_C_SHINFO_SH],
	};

	counts_start();
	return s;
}

static inline void equal(const struct step *got, const struct step *want)
{
	assert_int_equal(got->rmw, want->rmw);
	assert_int_equal(got->gets, want->gets);
	assert_int_equal(got->puts, want->puts);
	assert_int_equal(got->page_frees, want->page_frees);
	assert_int_equal(got->allocs, want->allocs);
	assert_int_equal(got->frees, want->frees);
	assert_int_equal(got->bytes, want->bytes);
	assert_int_equal(got->shared_stores, want->shared_stores);
}

/*
 * --- a failed allocation
 * ------------------------------------------------------------------------------------
 */

static int fail_in;

static inline bool fail_nth(enum skb_site site)
{
	(void)site;
	return --fail_in == 0;
}

#endif

static inline int start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 4096);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i % BYTES * 2654435761u >> 24;
	return 0;
}

#endif
