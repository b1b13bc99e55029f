/* SPDX-License-Identifier: MIT */
/* What the congestion window lets out of the write queue, beside the peer's. */
#include "tests/tcp/tcp_test.h"

/* A socket with COUNT segments to send and a congestion window of CWND. */
static void open_full(enum skb_era era, u32 count, u32 cwnd)
{
	open_sock(SKB_FRAG_PAGE_ORDER);
	sk.snd_cwnd = cwnd;
	assert_int_equal(tcp_sendmsg(era, &sk, data, count * MSS), count * MSS);
}

/* The segments of the I-th sk_buff that was sent. */
static int sent_segs(enum skb_era era, int i)
{
	struct sk_buff *skb = sk.tcp_rtx_queue.next;

	while (i--)
		skb = skb->next;
	return tcp_skb_pcount(era, skb);
}

/* 45 segments are one sk_buff: 3.4 fills the window with one cut, later eras take halves of it. */
static void cuts(void **state)
{
	static const struct {
		u32 cwnd;
		int early, late; /* sk_buffs sent by 3.4, and since 3.18 */
		int segs[3]; /* of those sent since 3.18 */
	} cases[] = {
		{ 1, 1, 1, { 1 } },	     { 2, 1, 2, { 1, 1 } },
		{ 10, 1, 2, { 5, 5 } },	     { 11, 1, 3, { 5, 5, 1 } },
		{ 45, 1, 3, { 22, 22, 1 } }, { 60, 1, 2, { 30, 15 } },
		{ 90, 1, 1, { 45 } },	     { TCP_INFINITE_CWND, 1, 1, { 45 } },
	};

	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		{
			u32 out = min(cases[i].cwnd, 45u);
			int sent = era < ERA_6_1 ? cases[i].early : cases[i].late;

			open_full(era, 45, cases[i].cwnd);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), sent);
			assert_int_equal(sk.packets_out, out);
			assert_int_equal(tcp_packets_in_flight(&sk), out);
			assert_int_equal(sk.snd_nxt, 1 + out * MSS);
			for (int s = 0; s < sent && era >= ERA_6_1; s++)
				assert_int_equal(sent_segs(era, s), cases[i].segs[s]);
			assert_int_equal(sk.sk_write_queue.qlen, out < 45);
			check(era, trim);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 0);
			close_sock(era);
		}
}

/* Each ACK lets as many segments follow; the rest is the backlog. */
static void acks_clock(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			u32 acked = 0;

			open_full(era, 135, 10);
			tcp_write_xmit(era, trim, &sk);
			while (acked < 135) {
				u32 step = min(3u, 135 - acked);

				tx_ring_complete(era, &ring, 64);
				acked += step;
				assert_true(tcp_ack(era, trim, &sk, 1 + acked * MSS) >= 0);
				tcp_write_xmit(era, trim, &sk);
				check(era, trim);
				assert_int_equal(sk.packets_out, min(10u, 135 - acked));
				assert_int_equal(sk.write_seq - sk.snd_nxt,
						 (135 - acked - sk.packets_out) * MSS);
			}
			assert_int_equal(sk.sk_wmem_queued, 0);
			close_sock(era);
		}
}

/* What the peer has, or what is lost, is not on its way; what was sent again is. */
static void in_flight(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		open_full(era, 45, 20);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 2);
		tx_ring_complete(era, &ring, 64);
		assert_int_equal(tcp_sack(era, TRIM_EAGER, &sk, 1 + 10 * MSS, 1 + 16 * MSS), 6);
		assert_int_equal(tcp_packets_in_flight(&sk), 14);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		assert_int_equal(tcp_packets_in_flight(&sk), 20);
		assert_int_equal(sk.packets_out, 26);
		tcp_mark_skb_lost(era, &sk, oldest());
		assert_int_equal(tcp_packets_in_flight(&sk), 10);
		assert_int_equal(tcp_retransmit_skb(era, TRIM_EAGER, &sk, oldest(), 45), 0);
		assert_int_equal(tcp_packets_in_flight(&sk), 20);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 0);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
}

/* The smaller of the two windows decides, to the segment. */
static void both_windows(void **state)
{
	static const struct {
		u32 wnd, cwnd, bytes;
	} cases[] = {
		{ 7 * MSS, 90, 7 * MSS },     { 7 * MSS + 100, 90, 7 * MSS },
		{ 7 * MSS - 1, 90, 6 * MSS }, { 7 * MSS, 12, 7 * MSS },
		{ 7 * MSS, 3, 3 * MSS },      { MSS - 1, 3, 0 },
		{ 45 * MSS, 0, 0 },
	};

	(void)state;
	for_each_era (era)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			open_full(era, 45, cases[i].cwnd);
			sk.snd_wnd = cases[i].wnd;
			tcp_write_xmit(era, TRIM_EAGER, &sk);
			assert_int_equal(sk.snd_nxt - 1, cases[i].bytes);
			check(era, TRIM_EAGER);
			close_sock(era);
		}
}

/* Up to 6.10 a FIN alone does not wait. */
static void fin(void **state)
{
	(void)state;
	for_each_era (era) {
		open_full(era, 2, 2);
		tcp_write_xmit(era, TRIM_EAGER, &sk);
		assert_int_equal(sk.packets_out, 2);
		assert_int_equal(tcp_send_fin(era, &sk), 0);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), era < ERA_6_12);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
}

#ifdef SKB_TRACED
static bool fail_all(enum skb_site site)
{
	(void)site;
	return true;
}

/* Without memory for the cut all of it waits, and goes later. */
static void no_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_era (era) {
		open_full(era, 45, 10);
		model_fail = fail_all;
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 0);
		model_fail = NULL;
		assert_int_equal(sk.packets_out, 0);
		assert_int_equal(sk.sk_write_queue.qlen, 1);
		check(era, TRIM_EAGER);
		assert_true(tcp_write_xmit(era, TRIM_EAGER, &sk) > 0);
		assert_int_equal(sk.packets_out, 10);
		close_sock(era);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),	     cmocka_unit_test(acks_clock),
		cmocka_unit_test(in_flight), cmocka_unit_test(both_windows),
		cmocka_unit_test(fin),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),
#endif
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
