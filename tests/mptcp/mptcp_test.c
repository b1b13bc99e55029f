/* SPDX-License-Identifier: MIT */
/*
 * The sender: sizes, what one sk_buff gets in each variant, windows, acknowledgments, the end of
 * the stream, losses, and what a failed allocation leaves.
 */
#include "tests/mptcp/mptcp_harness.h"

#define DFRAG_BYTES (32768 - 40) /* one data frag alone in its block */

static void open_default(enum mptcp_variant v)
{
	open_conn(ERA_6_12, v, 0, IDSN, 1500);
}

/* Payload of a segment and of an sk_buff, as they follow from link and options. */
static void sizes(void **state)
{
	(void)state;
	assert_int_equal(mptcp_mss(1500, 28), 1420);
	assert_int_equal(mptcp_mss(1500, 24), 1424);
	assert_int_equal(mptcp_mss(65536, 0), 65483);
	assert_int_equal(mptcp_mss(65536, 28), 65455);
	assert_int_equal(mptcp_mss(65536, 24), 65459);
	assert_int_equal(mptcp_mss(80, 28), 0);
	assert_int_equal(mptcp_size_goal(1500, 28), 45 * 1420);
	assert_int_equal(mptcp_size_goal(1500, 28), 63900);
	assert_int_equal(mptcp_size_goal(1500, 24), 64080);
	assert_int_equal(mptcp_size_goal(9000, 28), 7 * 8920);
	assert_int_equal(mptcp_size_goal(9000, 24), 7 * 8924);
	assert_int_equal(mptcp_size_goal(65536, 28), 65455);
	assert_int_equal(mptcp_size_goal(65536, 24), 65459);
	assert_int_equal(mptcp_size_goal(1500, 0), 65160);
	assert_int_equal(mptcp_size_goal(80, 28), 0);
	for (u32 mtu = 1; mtu <= 65536; mtu++)
		assert_true(mptcp_size_goal(mtu, 28) <= MPTCP_MAX_MAP);
	open_default(MPTCP_MERGED);
	assert_int_equal(msk.size_goal, 63900);
	assert_int_equal(sk.mss_cache, 1420);
	close_conn();
	assert_int_equal(mptcp_init(&msk, &sk, 0, 80), -EINVAL);
}

/* Where the bytes of a write lie, what a frag costs, when it grows. */
static void data_frags(void **state)
{
	const struct mptcp_data_frag *df;

	(void)state;
	open_default(MPTCP_MERGED);
	msk.push_per_write = false;
	assert_int_equal(write_stream(100), 100);
	df = msk.rtx_queue.next;
	assert_int_equal(df->offset, 40);
	assert_int_equal(df->overhead, 40);
	assert_int_equal(df->data_len, 100);
	assert_int_equal(msk.wmem_queued, 140);
	assert_int_equal(page_count(df->page), 2);
	assert_int_equal(write_stream(5), 5); /* it waits: the next bytes are its own */
	assert_int_equal(df->data_len, 105);
	assert_int_equal(msk.wmem_queued, 145);
	check();
	assert_int_equal(push(), 105);
	assert_null(msk.first_pending);
	assert_int_equal(write_stream(10), 10); /* nothing waits: another frag, aligned to 8 */
	df = msk.rtx_queue.prev;
	assert_int_equal(df->overhead, 7 + 40);
	assert_int_equal(df->offset, 145 + 47);
	assert_int_equal(df->data_len, 10);
	check();
	assert_int_equal(write_stream(40000),
			 40000); /* to the end of the block, and into another */
	assert_int_equal(df->data_len, 32768 - df->offset);
	df = msk.rtx_queue.prev;
	assert_int_equal(df->offset, 40);
	check();
	close_conn();

	/* Data that waits is in frags of a block each. */
	open_default(MPTCP_MERGED);
	msk.push_per_write = false;
	for (int i = 0; i < 4; i++)
		assert_int_equal(write_stream(16384), 16384);
	for (df = msk.rtx_queue.next; df != msk.rtx_queue.prev; df = df->next)
		assert_int_equal(df->data_len, DFRAG_BYTES);
	check();
	close_conn();
}

/* DATA_ACKs of parts: what is let go of, what is charged. */
static void data_acks(void **state)
{
	const struct mptcp_data_frag *df;
	struct page *page;

	(void)state;
	open_default(MPTCP_MERGED);
	assert_int_equal(write_stream(1000), 1000);
	assert_int_equal(write_stream(500), 500);
	df = msk.rtx_queue.next;
	page = df->page;
	assert_int_equal(mptcp_data_acked(&msk, IDSN - 1), 0);
	assert_int_equal(mptcp_data_acked(&msk, IDSN + 1501), -EINVAL);
	assert_int_equal(mptcp_data_acked(&msk, IDSN + 400), 400);
	assert_int_equal(df->data_seq, IDSN + 400);
	assert_int_equal(df->offset, 440);
	assert_int_equal(df->data_len, 600);
	assert_int_equal(df->already_sent, 600);
	assert_int_equal(msk.wmem_queued, 600 + 40 + 500 + 40);
	assert_int_equal(mptcp_data_acked(&msk, IDSN + 400), 0);
	check();
	assert_int_equal(page_count(page), 1 + 2 + 1 + 1); /* pfrag, two frags, two sk_buffs */
	assert_int_equal(mptcp_data_acked(&msk, IDSN + 1000), 600);
	assert_int_equal(msk.wmem_queued, 500 + 40);
	assert_int_equal(page_count(page), 1 + 1 + 1 + 1);
	assert_int_equal(mptcp_data_acked(&msk, IDSN + 1500), 500);
	assert_int_equal(msk.wmem_queued, 0);
	check();
	close_conn();
}

/*
 * Endless data in frags of 32728 bytes, a goal of 65160, a subflow that sends nothing meanwhile:
 * what each sk_buff gets.
 */
static void fills(void **state)
{
	const u32 whole = 10 * DFRAG_BYTES;

	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			u32 lens[12] = { 0 }, n = 0, want = mptcp_has_size_bias(v) ? 65160 : 32728;

			open_conn(e, v, 0, IDSN, 1500);
			msk.size_goal = 65160;
			msk.push_per_write = false;
			sk.snd_wnd = 0;
			assert_int_equal(write_stream(whole), whole);
			assert_int_equal(push(), whole);
			check();
			for (struct sk_buff *skb = sk.sk_write_queue.next;
			     !skb_queue_is_end(&sk.sk_write_queue, skb); skb = skb->next)
				lens[n++] = skb->len;
			assert_int_equal(n, mptcp_has_size_bias(v) ? 6 : 10);
			for (u32 i = 0; i + 1 < n; i++)
				assert_int_equal(lens[i], want);
			close_conn();
		}
	}
}

/* The same step by step: the worked table, one data frag at a time. */
static void table(void **state)
{
	static const struct {
		enum mptcp_variant v;
		u32 after[4][3]; /* lengths of A, B, C behind data frag 1, 2, its rest, 3 or 4 */
	} want[] = {
		{ MPTCP_BEFORE, { { 32728 }, { 32728, 32728 }, { 32728, 32728, 32728 } } },
		{ MPTCP_MERGED,
		  { { 32728 }, { 65160, 296 }, { 65160, 33024 }, { 65160, 65160, 592 } } },
	};

	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(want); w++) {
		open_default(want[w].v);
		msk.size_goal = 65160;
		msk.push_per_write = false;
		sk.snd_wnd = 0;
		for (int i = 0; i < 4; i++) {
			struct sk_buff *skb = sk.sk_write_queue.next;

			assert_int_equal(write_stream(DFRAG_BYTES), DFRAG_BYTES);
			assert_int_equal(push(), DFRAG_BYTES);
			check();
			skb = sk.sk_write_queue.next;
			for (int j = 0; j < 3 && want[w].after[i][j]; j++, skb = skb->next) {
				assert_false(skb_queue_is_end(&sk.sk_write_queue, skb));
				assert_int_equal(skb->len, want[w].after[i][j]);
				assert_int_equal(mptcp_get_ext(skb)->data_len, skb->len);
			}
		}
		close_conn();
	}
}

/* A goal that shrinks below the tail: no room, and never 4 billion bytes of it. */
static void goal_shrinks(void **state)
{
	static const struct {
		u32 goal, room;
	} cases[] = { { 27007, 0 }, { 27480, 0 }, { 27481, 1 } };

	(void)state;
	for_each_variant (v) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			u32 room = mptcp_skb_room(v, cases[i].goal, 27480);
			struct sk_buff *tail;

			if (v == MPTCP_POSTED && !i)
				assert_int_equal(room, 4294966823u); /* as it was written */
			else
				assert_int_equal(room, cases[i].room);

			open_default(v);
			sk.snd_wnd = 0;
			assert_int_equal(write_stream(27480), 27480);
			tail = skb_peek_tail(&sk.sk_write_queue);
			assert_int_equal(tail->len, 27480);
			msk.size_goal = cases[i].goal;
			assert_int_equal(write_stream(1000), 1000);
			check();
			/*
			 * What wrapped is cut to the peer's window, so that the sum with the
			 * tail's length does not wrap back: the tail grows beyond the goal.
			 */
			if (v == MPTCP_POSTED && !i) {
				map_is(tail, IDSN, 1, 28480, false);
				assert_false(TCP_SKB_CB(tail)->eor);
				close_conn();
				continue;
			}
			if (cases[i].room && mptcp_has_size_bias(v))
				map_is(tail, IDSN, 1, 27481, false);
			else
				map_is(tail, IDSN, 1, 27480, false);
			/* It was full when the last bytes came, or another one was begun at once. */
			assert_int_equal(TCP_SKB_CB(tail)->eor,
					 !cases[i].room || mptcp_has_size_bias(v));
			assert_ptr_not_equal(skb_peek_tail(&sk.sk_write_queue), tail);
			assert_non_null(mptcp_get_ext(skb_peek_tail(&sk.sk_write_queue)));
			close_conn();
		}
	}
}

/* A goal beyond 65535: maps end before, but for the posted patch, which cuts their length off. */
static void goal_too_large(void **state)
{
	(void)state;
	for_each_variant (v) {
		struct sk_buff *skb;

		open_default(v);
		msk.size_goal = 80136;
		msk.push_per_write = false;
		sk.snd_wnd = 0;
		assert_int_equal(write_stream(80136), 80136);
		assert_int_equal(push(), 80136);
		skb = skb_peek(&sk.sk_write_queue);
		if (v == MPTCP_POSTED) {
			assert_int_equal(skb->len, 80136);
			assert_int_equal(mptcp_get_ext(skb)->data_len, 14600);
		} else {
			check();
			assert_true(skb->len <= MPTCP_MAX_MAP);
			if (mptcp_has_size_bias(v))
				assert_int_equal(skb->len, MPTCP_MAX_MAP);
		}
		close_conn();
	}
}

/* Each write ends with PSH; the tail that grows keeps it in its middle, or does not. */
static void pushed(void **state)
{
	(void)state;
	for_each_variant (v) {
		struct sk_buff *tail;

		open_default(v);
		sk.snd_wnd = 0;
		assert_int_equal(write_stream(1000), 1000);
		tail = skb_peek_tail(&sk.sk_write_queue);
		assert_true(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_PSH);
		msk.push_per_write = false;
		write_stream(1000);
		assert_int_equal(push(), 1000);
		assert_int_equal(tail->len, 2000);
		assert_true(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_PSH); /* the new end */
		/* A part that ends elsewhere: fill it up, so that the push comes to another one. */
		write_stream(70000);
		push();
		assert_int_equal(!!(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_PSH),
				 !mptcp_clears_psh(v));
		close_conn();
	}
}

/* What waits for a completion is sent by it. */
static void autocork(void **state)
{
	(void)state;
	for_each_variant (v) {
		open_default(v);
		sk.autocork = true;
		assert_int_equal(write_stream(5000), 5000);
		assert_int_equal(tx_ring_count(&ring), 1); /* nothing is out: it goes */
		assert_int_equal(write_stream(1000), 1000);
		assert_int_equal(write_stream(1000), 1000);
		assert_int_equal(tx_ring_count(&ring), 1);
		assert_int_equal(skb_peek_tail(&sk.sk_write_queue)->len, 2000);
		assert_int_equal(sk.sk_write_queue.qlen, 1);
		arrive_all();
		assert_int_equal(tx_ring_count(&ring), 1);
		arrive_all();
		acked();
		assert_int_equal(msk.snd_una, msk.write_seq);
		check();
		close_conn();
	}
}

/* The peer's window ends within a write, then opens; closed for long, it is probed. */
static void windows(void **state)
{
	(void)state;
	for_each_variant (v) {
		open_default(v);
		msk.wnd_end = IDSN + 1500;
		assert_int_equal(write_stream(4000), 4000);
		assert_int_equal(msk.snd_nxt, IDSN + 1500);
		assert_int_equal(push(), 0); /* something is under way: no probe */
		assert_int_equal(tx_ring_count(&ring), 1);
		arrive_all();
		acked();
		assert_int_equal(push(), 0);
		assert_int_equal(tx_ring_count(&ring), 1);
		map_is(skb_peek_tail(&sk.tcp_rtx_queue), IDSN + 1499, 1501, 1, true);
		check();
		arrive_all();
		acked();
		assert_int_equal(mptcp_peer_data_ack(&peer), IDSN + 1500);
		msk.wnd_end = IDSN + 4000;
		assert_int_equal(push(), 2500);
		map_is(skb_peek_tail(&sk.tcp_rtx_queue), IDSN + 1500, 1502, 2500, false);
		arrive_all();
		acked();
		assert_int_equal(msk.snd_una, IDSN + 4000);
		assert_int_equal(msk.wmem_queued, 0);
		check();
		close_conn();
	}
}

/* The stream's end, with the last payload and without: one number, told once. */
static void data_fin(void **state)
{
	(void)state;
	for_each_variant (v) {
		struct mptcp_ext map = { .use_map = 1, .data_len = 79, .subflow_seq = 5 };
		struct sk_buff *skb;

		/* With payload that waits: its map is one longer. */
		open_default(v);
		sk.snd_wnd = 0;
		assert_int_equal(write_stream(1000), 1000);
		assert_int_equal(mptcp_send_fin(era, v, &msk), 0);
		assert_int_equal(mptcp_send_fin(era, v, &msk), -EPIPE);
		assert_int_equal(write_stream(1), -EPIPE);
		assert_int_equal(sk.sk_write_queue.qlen, 1);
		skb = skb_peek(&sk.sk_write_queue);
		map = *mptcp_get_ext(skb);
		mptcp_write_data_fin(&sk, skb, &map);
		assert_int_equal(map.data_len, 1001);
		assert_true(map.data_fin);
		sk.snd_wnd = 1 << 20;
		assert_int_equal(tcp_write_xmit(era, mptcp_tcp(v), &sk), 1);
		arrive_all();
		acked();
		assert_true(peer.fin && peer.data_fin);
		assert_int_equal(peer.data_fin_seq, IDSN + 1000);
		assert_int_equal(msk.snd_una, IDSN + 1001);
		assert_int_equal(sk.snd_una, 1002);
		check();
		close_conn();

		/* Without: a map of its own, of length 1 and subflow sequence 0. */
		open_default(v);
		assert_int_equal(write_stream(1000), 1000);
		arrive_all();
		acked();
		assert_int_equal(mptcp_send_fin(era, v, &msk), 0);
		skb = skb_peek(&sk.tcp_rtx_queue);
		assert_int_equal(skb->len, 0);
		map = (struct mptcp_ext){ .use_map = 1, .data_len = 79, .subflow_seq = 5 };
		mptcp_write_data_fin(&sk, skb, &map);
		assert_int_equal(map.data_len, 1);
		assert_int_equal(map.subflow_seq, 0);
		assert_int_equal(map.data_seq, IDSN + 1000);
		arrive_all();
		acked();
		assert_int_equal(peer.data_fin_seq, IDSN + 1000);
		assert_int_equal(msk.snd_una, IDSN + 1001);
		close_conn();

		open_default(v);
		msk.push_per_write = false;
		write_stream(10);
		assert_int_equal(mptcp_send_fin(era, v, &msk), -EAGAIN);
		close_conn();
	}
}

/* A probe for the path's MTU takes no bytes of two maps. */
static void mtu_probe(void **state)
{
	struct sk_buff *a, *b;
	struct mptcp_ext *map;

	(void)state;
	open_default(MPTCP_MERGED);
	sk.snd_wnd = 0;
	assert_int_equal(write_stream(1000), 1000);
	TCP_SKB_CB(skb_peek_tail(&sk.sk_write_queue))->eor = 1;
	assert_int_equal(write_stream(1000), 1000);
	a = nth(&sk.sk_write_queue, 0);
	b = nth(&sk.sk_write_queue, 1);
	TCP_SKB_CB(a)->eor = 0;
	map = mptcp_get_ext(b);
	map_is(a, IDSN, 1, 1000, false);
	map_is(b, IDSN + 1000, 1001, 1000, false);
	assert_true(tcp_can_coalesce_send_queue_head(&sk, 1000));
	assert_false(tcp_can_coalesce_send_queue_head(&sk, 1500));
	map->data_seq += 4000;
	assert_false(tcp_can_coalesce_send_queue_head(&sk, 1500));
	*map = *mptcp_get_ext(a);
	assert_true(tcp_can_coalesce_send_queue_head(&sk, 1500));
	assert_true(tcp_can_coalesce_send_queue_head(&sk, 2000));
	assert_false(tcp_can_coalesce_send_queue_head(&sk, 2001));
	TCP_SKB_CB(a)->eor = 1;
	assert_false(tcp_can_coalesce_send_queue_head(&sk, 1500));
	TCP_SKB_CB(a)->eor = 0;
	skb_shinfo(b)->flags |= SKBFL_PURE_ZEROCOPY;
	assert_false(tcp_can_coalesce_send_queue_head(&sk, 1500));
	skb_shinfo(b)->flags &= ~SKBFL_PURE_ZEROCOPY;
	skb_ext_reset(b); /* the first one's map covers what has none */
	assert_true(tcp_can_coalesce_send_queue_head(&sk, 1500));
	skb_ext_reset(a);
	assert_true(tcp_can_coalesce_send_queue_head(&sk, 1500));
	close_conn();
}

/* Sequence numbers of stream and subflow run over their ends. */
static void wraps(void **state)
{
	(void)state;
	for_each_variant (v) {
		open_conn(ERA_6_12, v, -5000u, -70000ull, 1500);
		msk.rel_write_seq = sk.write_seq - sk.mptcp.isn;
		for (int i = 0; i < 20; i++) {
			assert_int_equal(write_stream(9000), 9000);
			check();
			arrive_all();
			acked();
			check();
		}
		assert_true(msk.write_seq < 1 << 20 && sk.write_seq < 1 << 20);
		assert_int_equal(msk.snd_una, msk.write_seq);
		close_conn();

		/* What maps call the subflow's bytes runs over, too: 4 GB into it. */
		open_conn(ERA_6_12, v, 0, IDSN, 1500);
		sk.mptcp.isn = peer.isn = 20000;
		msk.rel_write_seq = sk.write_seq - sk.mptcp.isn;
		assert_true(msk.rel_write_seq > -20001u);
		for (int i = 0; i < 20; i++) {
			assert_int_equal(write_stream(9000), 9000);
			arrive_all();
			acked();
			check();
		}
		assert_int_equal(msk.snd_una, msk.write_seq);
		close_conn();
	}
}

/*
 * Every third packet is lost; SACKs, partial ACKs and retransmissions bring every byte over, and
 * each lies where its map says.
 */
static void losses(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct rng r = { 7 };
			u32 written = 0;

			if (!claims_right(v))
				continue;
			open_conn(e, v, 0, IDSN, 1500);
			sk.snd_wnd = 300000;
			while (msk.snd_una != msk.write_seq || written < 3000000) {
				struct sk_buff *skb;

				if (written < 3000000)
					written += max(write_stream(1 + rng_below(&r, 40000)), 0);
				push();
				tcp_write_xmit(e, mptcp_tcp(v), &sk);
				while (tx_ring_count(&ring))
					arrive(!rng_below(&r, 3));
				tcp_tsq_handler(e, mptcp_tcp(v), &sk);
				acked();
				if (peer.subflow.nr) {
					u32 start = peer.subflow.range[0].start;

					tcp_sack(e, mptcp_tcp(v), &sk, start,
						 peer.subflow.range[0].end);
				}
				check();
				skb = skb_peek(&sk.tcp_rtx_queue);
				if (skb)
					tcp_retransmit_skb(e, mptcp_tcp(v), &sk, skb,
							   1 + rng_below(&r, 45));
				check();
			}
			assert_int_equal(peer.data.next, msk.write_seq);
			assert_int_equal(msk.wmem_queued, 0);
			close_conn();
		}
	}
}

#ifdef SKB_TRACED
static int fail_in;

static bool fail_nth(enum skb_site site)
{
	(void)site;
	return --fail_in == 0;
}

/* Each allocation of a write fails in turn: what was written arrives, and nothing is left. */
static void no_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			int failures = 0;

			for (int k = 1;; k++) {
				bool failed;

				open_conn(e, v, 0, IDSN, 1500);
				fail_in = k;
				model_fail = fail_nth;
				write_stream(70000);
				failed = fail_in <= 0;
				model_fail = NULL;
				check();
				push();
				check();
				assert_int_equal(msk.snd_nxt, msk.write_seq);
				tcp_write_xmit(e, mptcp_tcp(v), &sk);
				arrive_all();
				acked();
				assert_int_equal(msk.snd_una, msk.write_seq);
				assert_int_equal(msk.wmem_queued, 0);
				close_conn();
				if (!failed)
					break;
				failures++;
			}
			assert_true(failures > 6);
		}
	}
}

/* What a write costs: one get for the data frag and one for each frag of an sk_buff. */
static void counts(void **state)
{
	(void)state;
	open_default(MPTCP_MERGED);
	write_stream(100);
	sk.snd_wnd = 0;
	counts_start();
	write_stream(1000);
	assert_int_equal(counted.event[SKB_EV_PAGE_GET], 2);
	assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 3); /* map, pair, head */
	assert_int_equal(counted.rmw[SKB_C_EXT], 0);
	assert_int_equal(counted.written[SKB_C_PAYLOAD], 1000);
	counts_start();
	write_stream(1000); /* the tail grows by a frag, since a data frag lies between */
	assert_int_equal(counted.event[SKB_EV_PAGE_GET], 2);
	assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 1); /* a map for the next one */
	close_conn();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),	  cmocka_unit_test(data_frags),
		cmocka_unit_test(data_acks),	  cmocka_unit_test(fills),
		cmocka_unit_test(table),	  cmocka_unit_test(goal_shrinks),
		cmocka_unit_test(goal_too_large), cmocka_unit_test(pushed),
		cmocka_unit_test(autocork),	  cmocka_unit_test(windows),
		cmocka_unit_test(data_fin),	  cmocka_unit_test(mtu_probe),
		cmocka_unit_test(wraps),	  cmocka_unit_test(losses),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),	  cmocka_unit_test(counts),
#endif
	};

	return cmocka_run_group_tests(tests, mptcp_start, NULL);
}
