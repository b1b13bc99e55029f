/* SPDX-License-Identifier: MIT */
/* Probes for a larger MTU: when one goes, what it is made of, and what comes of it. */
#include "tcp/tcp_mtu_probe.h"
#include "tests/tcp/tcp_test.h"

#define HEADER 52 /* IPv4, TCP, timestamps */

/* A socket that looks for an MTU between 1500 and HIGH, with COUNT segments to send. */
static void open_probing(enum skb_era era, u32 high, u32 count)
{
	open_sock(SKB_FRAG_PAGE_ORDER);
	assert_int_equal(tcp_mtup_init(&sk, HEADER, 1500, high), 0);
	assert_int_equal(sk.mss_cache, MSS);
	assert_int_equal(tcp_sendmsg(era, &sk, data, count * MSS), count * MSS);
}

static u32 probe_bytes(enum skb_era era)
{
	return era < ERA_6_1 ? 2 * MSS : (9000 + 1500) / 2 - HEADER;
}

static void arguments(void **state)
{
	(void)state;
	open_sock(0);
	assert_int_equal(tcp_mtup_init(&sk, HEADER, HEADER, 9000), -EINVAL);
	assert_int_equal(tcp_mtup_init(&sk, HEADER, 1501, 1500), -EINVAL);
	assert_false(sk.mtup.enabled);
	assert_int_equal(tcp_mtup_init(&sk, HEADER, 1400, 1400), 0);
	assert_int_equal(sk.mss_cache, 1348);
	close_sock(ERA_6_12);
}

/* One probe out of a queue: its bytes, what is left, the charges, and what its ACK changes. */
static void arrives(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			u32 len = probe_bytes(era);
			struct sk_buff *probe;

			open_probing(era, 9000, 135);
			sk.snd_cwnd = 40;
			assert_int_equal(tcp_mtu_probe(era, trim, &sk), 1);
			check(era, trim);
			probe = oldest();
			assert_int_equal(sk.tcp_rtx_queue.qlen, 1);
			assert_int_equal(probe->len, len);
			assert_int_equal(tcp_skb_pcount(era, probe), 1);
			assert_int_equal(tcp_skb_mss(era, probe), 0);
			assert_int_equal(skb_headlen(probe), era < ERA_6_12 ? len : 0);
			assert_int_equal(TCP_SKB_CB(probe)->tcp_flags, TCPHDR_ACK);
			check_bytes(probe);
			check_bytes(skb_peek(&sk.sk_write_queue));
			assert_int_equal(skb_peek(&sk.sk_write_queue)->len, BYTES - len);
			assert_int_equal(tcp_skb_pcount(era, skb_peek(&sk.sk_write_queue)),
					 DIV_ROUND_UP(BYTES - len, MSS));
			assert_int_equal(wire_seq(last_sent()), 1);
			assert_int_equal(sk.packets_out, 1);
			assert_int_equal(sk.snd_cwnd, 39);
			assert_int_equal(sk.mtup.probe_size, len + HEADER);

			assert_int_equal(tcp_mtu_probe(era, trim, &sk), -1); /* one at a time */
			tcp_write_xmit(era, trim, &sk);
			assert_int_equal(sk.packets_out, 39);
			tx_ring_complete(era, &ring, 64);
			assert_int_equal(tcp_ack(era, trim, &sk, len), 0);
			assert_int_equal(sk.mss_cache, MSS);
			assert_int_equal(tcp_ack(era, trim, &sk, 1 + len), 1);
			assert_int_equal(sk.mss_cache, len);
			assert_int_equal(sk.mtup.search_low, len + HEADER);
			assert_int_equal(sk.mtup.probe_size, 0);
			assert_int_equal(sk.snd_cwnd, 39 * 1500 / (len + HEADER));
			check(era, trim);

			/* What was counted in small segments and waits is counted in larger ones. */
			sk.snd_cwnd = TCP_INFINITE_CWND;
			tcp_write_xmit(era, trim, &sk);
			assert_int_equal(sk.snd_nxt, sk.write_seq);
			assert_int_equal(tcp_skb_mss(era, skb_peek_tail(&sk.tcp_rtx_queue)), len);
			check(era, trim);
			close_sock(era);
		}
}

/* The search ends within 8 bytes of what the path takes, whatever that is. */
static void search(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		for (u32 mtu = 1500; mtu <= 9000; mtu += 833) {
			int probes = 0;

			open_probing(era, 9000, 0);
			while (true) {
				u32 need = 9000 + 4 * sk.mss_cache, at = (sk.write_seq - 1) % BYTES;

				assert_true(tcp_sendmsg(era, &sk, data + at, need) == (int)need);
				if (tcp_mtu_probe(era, TRIM_EAGER, &sk) < 0)
					break;
				tx_ring_complete(era, &ring, 64);
				probes++;
				if (sk.mtup.probe_size > mtu)
					tcp_mtup_probe_failed(&sk);
				sk.mtup.enabled = false; /* the rest of the queue without another */
				tcp_write_xmit(era, TRIM_EAGER, &sk);
				sk.mtup.enabled = true;
				tx_ring_complete(era, &ring, 64);
				assert_true(tcp_ack(era, TRIM_EAGER, &sk, sk.snd_nxt) > 0);
				check(era, TRIM_EAGER);
			}
			assert_true(sk.mtup.search_low <= mtu && mtu - sk.mtup.search_low < 8);
			assert_true(probes >= 9 && probes <= 26);
			close_sock(era);
		}
	}
}

/* What has to be there for a probe, each alone missing. */
static void conditions(void **state)
{
	(void)state;
	for_each_era (era) {
		u32 needed = probe_bytes(era) + 4 * MSS;

		open_probing(era, 9000, 9000 / MSS);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk),
				 needed <= sk.write_seq - 1 ? 1 : -1);
		close_sock(era);

		open_probing(era, 9000, 90);
		sk.snd_cwnd = 10;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), -1);
		sk.snd_cwnd = 11;
		sk.snd_wnd = needed - 1;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), -1);
		sk.snd_wnd = needed;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 1);
		close_sock(era);

		/* All waits while window or congestion window will take it soon. */
		open_probing(era, 9000, 90);
		sk.snd_cwnd = 20;
		sk.mtup.enabled = false;
		tcp_write_xmit(era, TRIM_EAGER, &sk);
		sk.mtup.enabled = true;
		assert_int_equal(sk.packets_out, 20);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 0);
		sk.snd_cwnd = 21;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 0);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 0);
		sk.snd_cwnd = 22;
		sk.snd_wnd = 20 * MSS + needed - 1;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 0);
		sk.snd_wnd++;
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk),
				 1); /* and nothing fits behind */
		assert_int_equal(sk.mtup.probe_size, probe_bytes(era) + HEADER);
		check(era, TRIM_EAGER);
		close_sock(era);

		/* The peer misses something. */
		open_probing(era, 9000, 90);
		sk.snd_cwnd = 20;
		sk.mtup.enabled = false;
		tcp_write_xmit(era, TRIM_EAGER, &sk);
		sk.mtup.enabled = true;
		sk.snd_cwnd = 40;
		tx_ring_complete(era, &ring, 64);
		tcp_mark_skb_lost(era, &sk, oldest());
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), -1);
		close_sock(era);

		/* The interval is narrow; for 3.4: twice the MSS is beyond it. */
		open_probing(era, 1507, 90);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), -1);
		close_sock(era);
		open_probing(era, 1508, 90);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), era < ERA_6_1 ? -1 : 1);
		close_sock(era);
	}
}

/* Records are not joined by a probe; one that it eats whole keeps its end. */
static void records(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb;
		u32 len = probe_bytes(era);

		open_probing(era, 9000, 0);
		assert_int_equal(tcp_sendmsg(era, &sk, data, 1000), 1000);
		skb = skb_peek(&sk.sk_write_queue);
		TCP_SKB_CB(skb)->eor = 1;
		assert_int_equal(tcp_sendmsg(era, &sk, data + 1000, 30000), 30000);
		assert_int_equal(sk.sk_write_queue.qlen, 2);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), -1);
		check(era, TRIM_EAGER);
		TCP_SKB_CB(skb)->eor = 0;
		TCP_SKB_CB(skb)->tcp_flags |= TCPHDR_PSH;
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 1);
		assert_int_equal(sk.sk_write_queue.qlen, 1);
		assert_int_equal(TCP_SKB_CB(oldest())->tcp_flags, TCPHDR_ACK | TCPHDR_PSH);
		check_bytes(oldest());
		/* The two lie one behind the other in their page: one frag. */
		assert_int_equal(skb_shinfo(oldest())->nr_frags, era == ERA_6_12);
		check(era, TRIM_EAGER);
		close_sock(era);

		open_probing(era, 9000, 0);
		assert_int_equal(tcp_sendmsg(era, &sk, data, len), (int)len);
		TCP_SKB_CB(skb_peek(&sk.sk_write_queue))->eor = 1;
		assert_int_equal(tcp_sendmsg(era, &sk, data + len, 30000), 30000);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 1);
		assert_int_equal(TCP_SKB_CB(oldest())->eor, 1);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
}

/* A lost probe goes again in segments of the MSS that is known to get through. */
static void lost(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			u32 len = probe_bytes(era), high;

			open_probing(era, 9000, 90);
			tcp_mtup_probe_failed(&sk); /* none is on its way */
			assert_int_equal(sk.mtup.search_high, 9000);
			assert_true(tcp_write_xmit(era, trim, &sk) > 1);
			tx_ring_complete(era, &ring, 64);
			high = sk.mtup.probe_size - 1;
			tcp_mtup_probe_failed(&sk);
			assert_int_equal(sk.mtup.search_high, high);
			assert_int_equal(sk.mtup.probe_size, 0);
			tcp_mark_skb_lost(era, &sk, oldest());
			assert_int_equal(tcp_retransmit_skb(era, trim, &sk, oldest(), 1), 0);
			check(era, trim);
			assert_int_equal(oldest()->len, MSS);
			check_bytes(oldest());
			assert_int_equal(oldest()->next->len, len - MSS);
			check_bytes(oldest()->next);
			tx_ring_complete(era, &ring, 64);
			assert_true(tcp_ack(era, trim, &sk, sk.snd_nxt) > 0);
			assert_int_equal(sk.mss_cache, MSS);
			check(era, trim);
			close_sock(era);
		}
}

/* Pieces that do not lie one behind the other need a slot each: more than there are, no probe. */
static void slots(void **state)
{
	struct page *page[2] = { alloc_pages(1), alloc_pages(1) };

	(void)state;
	for (int most = 5; most <= 6; most++) {
		struct sk_buff *skb;

		open_probing(ERA_6_12, 9000, 0);
		for (u32 i = 0; i < 20; i++) { /* 1000 bytes of each page in turn */
			u32 size = 1000;

			skb = tcp_build_frag(ERA_6_12, &sk, 3000, page[i & 1], i / 2 * 1000 % 7000,
					     &size);
			assert_non_null(skb);
			assert_int_equal(size, 1000);
		}
		sk.max_skb_frags = most;
		assert_int_equal(tcp_mtu_probe(ERA_6_12, TRIM_EAGER, &sk), most == 6 ? 1 : -1);
		check(ERA_6_12, TRIM_EAGER);
		if (most == 6) {
			assert_int_equal(skb_shinfo(oldest())->nr_frags, 6);
			assert_int_equal(skb_shinfo(oldest())->frags[5].len, 198);
			skb = skb_peek(&sk.sk_write_queue);
			assert_int_equal(skb->len, 802);
		}
		tx_ring_complete(ERA_6_12, &ring, 64);
		tcp_sock_destroy(ERA_6_12, &sk);
		tx_ring_exit(&ring);
		assert_int_equal(page_count(page[0]), 1);
		assert_int_equal(page_count(page[1]), 1);
	}
	put_page(page[0]);
	put_page(page[1]);
}

#ifdef SKB_TRACED
/* Without memory nothing has changed; if only the clone is missing, the probe goes in segments. */
static void no_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_era (era) {
		for (int k = 1; k <= 4; k++) {
			int probed;

			open_probing(era, 9000, 90);
			fail_in = k;
			model_fail = fail_nth;
			probed = tcp_mtu_probe(era, TRIM_EAGER, &sk);
			model_fail = NULL;
			check(era, TRIM_EAGER);
			assert_int_equal(sk.mtup.probe_size,
					 probed > 0 ? probe_bytes(era) + HEADER : 0);
			/* A pair and a head; the clone is the pair's other half. */
			assert_int_equal(probed, k <= 2 ? -1 : 1);
			if (k <= 2)
				assert_int_equal(skb_peek(&sk.sk_write_queue)->len, BYTES);
			close_sock(era);
		}
	}
}

/* References on 6.12's frags, a copy of the bytes before. */
static void ledger(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_era (era) {
		struct step got;
		u32 len = probe_bytes(era);

		open_probing(era, 9000, 90);
		sk.snd_cwnd = 40;
		counts_start();
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 1);
		got = since();
		assert_int_equal(got.allocs, 2);
		assert_int_equal(got.gets, era == ERA_6_12);
		assert_int_equal(got.puts, 0);
		assert_int_equal(got.bytes, era == ERA_6_12 ? 0 : len);
		close_sock(era);
	}
}
#endif

/* The clone cannot be had: the head of the queue is the probe, and leaves as segments. */
static void not_sent(void **state)
{
	(void)state;
	for_each_era (era) {
		u32 len = probe_bytes(era);
		struct sk_buff *skb;

		open_probing(era, 9000, 90);
		assert_int_equal(tcp_mtu_probe(era, TRIM_EAGER, &sk), 1);
		/* As tcp_transmit_skb() would have left it. */
		skb = oldest();
		__skb_unlink(skb, &sk.tcp_rtx_queue);
		__skb_queue_after(&sk.sk_write_queue, (struct sk_buff *)&sk.sk_write_queue, skb);
		sk.packets_out = 0;
		sk.snd_nxt = 1;
		sk.mtup.probe_size = 0;
		sk.mtup.enabled = false;
		check(era, TRIM_EAGER);
		tx_ring_complete(era, &ring, 64);
		assert_true(tcp_write_xmit(era, TRIM_EAGER, &sk) > 2);
		check(era, TRIM_EAGER);
		assert_int_equal(oldest()->len, MSS);
		assert_int_equal(oldest()->next->len, len - MSS);
		assert_int_equal(tcp_skb_pcount(era, oldest()->next), DIV_ROUND_UP(len - MSS, MSS));
		close_sock(era);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments),  cmocka_unit_test(arrives),  cmocka_unit_test(search),
		cmocka_unit_test(conditions), cmocka_unit_test(records),  cmocka_unit_test(lost),
		cmocka_unit_test(slots),      cmocka_unit_test(not_sent),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),  cmocka_unit_test(ledger),
#endif
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
