/* SPDX-License-Identifier: MIT */
/*
 * The receive ring and its softirq: every frame of the ring once and in its order, in the shapes of
 * the drivers, to the socket that it is for; pages that stay in the ring as long as it is; what
 * merges and what ends a packet; nothing left.
 */
#include "skb/page_pool.h"
#include "skb/skb_defer.h"
#include "skb/skb_napi.h"
#include "tcp/rx_ring.h"
#include "tcp/tcp.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define for_each_rx_era(era) for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
#define for_each_driver(d)   for (enum rx_driver d = 0; d < RX_DRIVER_NR; d++)

static struct net net;
static struct sock sk;
static struct proto_memory prot;
static struct tx_ring tx;
static struct rx_napi napi;
static struct rx_flow flow, stranger;
static size_t pages_before;

static const u16 mss_of[RX_DRIVER_NR] = { 1448, 4096, 1448 };
static const unsigned int segs_of[RX_DRIVER_NR] = { 45, 15, 45 };

static void start_from(enum skb_era era, enum rx_driver driver, const struct rx_pages *from)
{
	pages_before = model_pages_in_use();
	memset(&prot, 0, sizeof(prot));
	assert_int_equal(net_init(&net), 0);
	assert_int_equal(tx_ring_init(&tx, 64), 0);
	tcp_sock_init(&sk, &prot, &tx, 0);
	tcp_rx_init(era, SOCK_WAIT_SPIN, &sk, &net, 64 << 20);
	flow = (struct rx_flow){
		.tuple = { .saddr = 0x0100000a, .daddr = 0x0200000a, .sport = 1, .dport = 2 },
		.seq = 1,
		.mss = mss_of[driver],
	};
	stranger = flow;
	stranger.tuple.sport = 0x1234;
	assert_int_equal(inet_hash(&net, &sk, &flow.tuple), 0);
	rx_pages_prime(driver, &flow, NUMA_NO_NODE); /* before a pool holds some */
	assert_int_equal(
		rx_napi_init(era, &napi, &net, driver, RX_RING_MIN, from, GRO_LEGACY_MAX_SIZE), 0);
	rx_ring_prime(&napi, &flow);
}

static void start_all(enum skb_era era, enum rx_driver driver)
{
	start_from(era, driver, NULL);
}

static void end_all(enum skb_era era)
{
	char err[200] = "";

	if (tcp_rx_check_quiet(&sk, err, sizeof(err)))
		fail_msg("%s", err);
	inet_unhash(&sk);
	inet_rcu_synchronize();
	tcp_rx_destroy(era, &sk);
	tcp_sock_destroy(era, &sk);
	rx_napi_exit(era, &napi);
	net_exit(&net);
	tx_ring_exit(&tx);
	napi_cache_drain();
	assert_int_equal(model_pages_in_use(), pages_before);
}

/* A NIC's write: bytes that tell where in the stream they are. */
static void dma(u32 segs)
{
	u32 seq = flow.seq;

	for (u32 i = 0; i < segs; i++) {
		u8 *to =
			(u8 *)page_address(rx_ring_page(&napi, i)) + rx_payload_offset(napi.driver);

		for (u32 b = 0; b < flow.mss; b++, seq++)
			to[b] = (u8)(seq + (seq >> 8) * 3);
	}
}

/* All that is there, which is BYTES, and right. */
static void read_all(enum skb_era era, u32 bytes)
{
	static u8 to[1 << 20];
	u32 seq = sk.copied_seq;

	assert_true(bytes <= sizeof(to));
	assert_int_equal(tcp_recvmsg(era, TCP_DEFER_INLINE, SOCK_WAIT_SPIN, &sk, to, sizeof(to),
				     MSG_DONTWAIT),
			 bytes);
	for (u32 i = 0; i < bytes; i++, seq++)
		if (to[i] != (u8)(seq + (seq >> 8) * 3))
			fail_msg("byte %u of the stream is %u", seq, to[i]);
}

static unsigned int queued(void)
{
	return sk.sk_receive_queue.qlen;
}

/* 45 or 15 segments are one sk_buff, three rounds of the ring long. */
static void packets(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		for_each_driver(d)
		{
			u32 rounds = 3 * RX_RING_MIN / segs_of[d] + 1;

			start_all(era, d);
			for (u32 i = 0; i < rounds; i++) {
				dma(segs_of[d]);
				rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, segs_of[d], true);
#if MAX_SKB_FRAGS == 17
				assert_int_equal(queued(), 1);
#endif
				read_all(era, segs_of[d] * mss_of[d]);
			}
			assert_int_equal(napi.packets, rounds);
			assert_int_equal(napi.segs, rounds * segs_of[d]);
			assert_int_equal(napi.refused, 0);
			end_all(era);
		}
	}
}

/* Without a PSH a packet is held until the next segment would be too much. */
static void held_until_full(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		start_all(era, RX_HEADER);
		dma(45);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 45, false);
		assert_int_equal(queued(), 0);
		dma(1);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 1, false);
		assert_int_equal(napi.packets, 1);
		read_all(era, 45 * 1448);
		dma(1);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 1, true);
		assert_int_equal(napi.packets, 2);
		read_all(era, 2 * 1448);
		end_all(era);
	}
}

/* Another flow in another bucket does not end the packet, and finds no socket. */
static void two_flows(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		start_all(era, RX_HEAD_FRAG);
		dma(20);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 20, false);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &stranger, 20, true);
		assert_int_equal(napi.packets, 1);
		assert_int_equal(napi.refused, 1);
		dma(10);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 10, true);
		assert_int_equal(napi.packets, 2);
		read_all(era, 30 * 1448);
		end_all(era);
	}
}

/* A gap in the sequence ends the packet; what comes behind it is not the next and is dropped. */
static void gap(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		start_all(era, RX_HEADER);
		dma(3);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 3, false);
		flow.seq += 1448;
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 2, true);
		assert_int_equal(napi.packets, 2);
		assert_int_equal(net_stats(&net, TCP_MIB_OFODROP), 1);
		flow.seq = 1 + 3 * 1448;
		dma(2);
		rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, 2, true);
		read_all(era, 5 * 1448);
		end_all(era);
	}
}

/* What one CPU deferred to the other is freed by the next round, and counted. */
static void flushes_home(void **state)
{
	static u8 to[65160];

	(void)state;
	for_each_rx_era(era)
	{
		for (enum tcp_defer defer = TCP_DEFER_CPU_LIST; defer < TCP_DEFER_NR; defer++) {
			start_all(era, RX_HEADER);
			softnet_init();
			rx_poll(era, defer, &napi, &flow, 45, true);
			assert_int_equal(skb_cpu_attach(1, 0), 0);
			assert_int_equal(tcp_recvmsg(era, defer, SOCK_WAIT_SPIN, &sk, to,
						     sizeof(to), MSG_DONTWAIT),
					 65160);
			assert_int_equal(skb_cpu_attach(0, 0), 0);
			assert_int_equal(softnet_deferred(0), 1);
			rx_poll(era, defer, &napi, &stranger, 1, true);
			assert_int_equal(napi.flushed, 1);
			assert_int_equal(softnet_deferred(0), 0);
			end_all(era);
		}
	}
}

/* A page comes back to the CPU no earlier than the ring is long. */
static void as_deep_as_the_ring(void **state)
{
	(void)state;
	start_all(ERA_6_12, RX_HEADER);
	for (u32 i = 0; i < RX_RING_MIN; i++) {
		struct page *page = rx_ring_page(&napi, 0);

		for (u32 j = 1; j < RX_RING_MIN; j += 101)
			assert_ptr_not_equal(rx_ring_page(&napi, j), page);
		rx_poll(ERA_6_12, TCP_DEFER_INLINE, &napi, &stranger, 1, true);
		/* What was posted last is the last to come. */
		assert_int_equal(napi.ring.posted - napi.ring.next, RX_RING_MIN);
	}
	end_all(ERA_6_12);
}

static struct page *pool_get(void *pool)
{
	return page_pool_alloc_pages(pool);
}

static void pool_put(void *pool, struct page *page)
{
	page_pool_put_page(pool, page, false);
}

/* What was read goes back into the pool, which asks for no page more once as many are on their way. */
static void a_pools_pages_come_back(void **state)
{
	const struct page_pool_params params = { .nid = NUMA_NO_NODE };

	(void)state;
	for_each_rx_era(era)
	{
		for_each_driver(d)
		{
			struct rx_pages from = { pool_get, pool_put, NULL, true };
			struct page_pool *pool;
			u64 slow = 0;

			assert_int_equal(page_pool_create(&params, &pool), 0);
			from.ctx = pool;
			start_from(era, d, &from);
			for (u32 i = 0; i < 100; i++) {
				page_pool_poll_begin(pool);
				dma(segs_of[d]);
				rx_poll(era, TCP_DEFER_INLINE, &napi, &flow, segs_of[d], true);
				page_pool_poll_end(pool);
				read_all(era, segs_of[d] * mss_of[d]);
				if (i == 3)
					slow = pool->alloc_stats.slow;
			}
			assert_int_equal(pool->alloc_stats.slow, slow);
			assert_int_equal(page_pool_recycled(pool).ring, 100 * segs_of[d]);
			rx_napi_exit(era, &napi);
			assert_int_equal(page_pool_destroy(pool), 0);
			end_all(era);
		}
	}
}

static void refused_sizes(void **state)
{
	(void)state;
	assert_int_equal(net_init(&net), 0);
	assert_int_equal(rx_napi_init(ERA_6_12, &napi, &net, RX_HEADER, 512, NULL, 65536), -EINVAL);
	assert_int_equal(rx_napi_init(ERA_6_12, &napi, &net, RX_HEADER, 1025, NULL, 65536),
			 -EINVAL);
	assert_int_equal(rx_napi_init(ERA_3_4, &napi, &net, RX_HEADER, 1024, NULL, 65536), -EINVAL);
	/* More than there is. */
	assert_int_equal(rx_napi_init(ERA_6_12, &napi, &net, RX_HEADER, 1 << 15, NULL, 65536),
			 -ENOMEM);
	assert_int_equal(model_pages_in_use(), 0);
	net_exit(&net);
}

static int start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 8192);
	inet_rcu_attach();
	return 0;
}

static int end(void **state)
{
	(void)state;
	inet_rcu_detach();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(held_until_full),
		cmocka_unit_test(two_flows),
		cmocka_unit_test(gap),
		cmocka_unit_test(flushes_home),
		cmocka_unit_test(as_deep_as_the_ring),
		cmocka_unit_test(a_pools_pages_come_back),
		cmocka_unit_test(refused_sizes),
	};

	return cmocka_run_group_tests(tests, start, end);
}
