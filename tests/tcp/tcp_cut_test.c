/* SPDX-License-Identifier: MIT */
/*
 * Cuts at the window's edge, cuts that are refused, joins when small sk_buffs are sent again,
 * copies for a headroom that is too long, and what is sent while it is still below TCP.
 */
#include "tests/tcp/tcp_test.h"

static struct sk_buff *nth_sent(int n)
{
	return ring.slot[(ring.head + n) & ring.mask];
}

static struct sk_buff *queue_one(enum skb_era era)
{
	assert_int_equal(tcp_sendmsg(era, &sk, data, BYTES), BYTES);
	tcp_set_skb_tso_segs(era, TRIM_EAGER, skb_peek(&sk.sk_write_queue), MSS);
	return skb_peek(&sk.sk_write_queue);
}

/*
 * --- tso_fragment()
 * ----------------------------------------------------------------------------------------
 */

static void never_sent(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			struct sk_buff *skb, *rest;
			unsigned int truesize, empty;
			int queued;

			open_sock(0);
			skb = queue_one(era);
			TCP_SKB_CB(skb)->eor = 1;
			TCP_SKB_CB(skb)->tcp_flags |= TCPHDR_PSH;
			truesize = skb->truesize;
			queued = sk.sk_wmem_queued;
			assert_int_equal(tso_fragment(era, trim, &sk, skb, BYTES + 1, MSS),
					 -EINVAL);
			assert_int_equal(tso_fragment(era, trim, &sk, skb, 20 * MSS, MSS), 0);
			rest = skb->next;
			assert_int_equal(sk.sk_write_queue.qlen, 2);
			assert_int_equal(skb->len, 20 * MSS);
			assert_int_equal(rest->len, 25 * MSS);
			empty = SKB_TRUESIZE(skb_end_offset(rest));
			assert_int_equal(skb->truesize + rest->truesize, truesize + empty);
			assert_int_equal(sk.sk_wmem_queued, queued + empty);
			assert_int_equal(tcp_skb_pcount(era, skb), 20);
			assert_int_equal(tcp_skb_pcount(era, rest), 25);
			assert_int_equal(TCP_SKB_CB(skb)->eor, 0);
			assert_int_equal(TCP_SKB_CB(rest)->eor, 1);
			assert_int_equal(TCP_SKB_CB(skb)->tcp_flags, TCPHDR_ACK);
			assert_int_equal(TCP_SKB_CB(rest)->tcp_flags, TCPHDR_ACK | TCPHDR_PSH);
			assert_int_equal(rest->nohdr, 1);
			assert_int_equal(sk.packets_out, 0);
			check(era, trim);
			check_bytes(skb);
			check_bytes(rest);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 2);
			assert_int_equal(sk.packets_out, 45);
			check(era, trim);
			close_sock(era);
		}
}

static void cut_linear_6_12(void)
{
	open_sock(0);
	tcp_sendmsg(ERA_3_4, &sk, data, BYTES);
	tso_fragment(ERA_6_12, TRIM_EAGER, &sk, skb_peek(&sk.sk_write_queue), MSS, MSS);
}

/* 3.4 and 6.1 leave linear bytes to tcp_fragment(); 6.12 knows none. */
static void linear(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_3_4; era < ERA_6_12; era++) {
		struct sk_buff *skb;
		u32 headlen;

		open_sock(0);
		tcp_sendmsg(ERA_3_4, &sk, data, BYTES);
		skb = skb_peek(&sk.sk_write_queue);
		headlen = skb_headlen(skb);
		assert_true(headlen > 500);
		assert_int_equal(tso_fragment(era, TRIM_EAGER, &sk, skb, 500, 500), 0);
		assert_int_equal(skb_headlen(skb), 500);
		assert_false(skb_is_nonlinear(skb));
		assert_int_equal(skb_headlen(skb->next), headlen - 500);
		check_bytes(skb);
		check_bytes(skb->next);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
	assert_true(is_bug(cut_linear_6_12));
}

#ifdef SKB_TRACED
/* A pair and a head; one get if the cut goes through a frag; nothing is unshared. */
static void ledger_never_sent(void **state)
{
	(void)state;
	need_4k_pages();
#if GOLDEN
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct step got, want;
		struct sk_buff *skb;

		open_sock(0);
		skb = queue_one(era);
		counts_start();
		assert_int_equal(tso_fragment(era, TRIM_EAGER, &sk, skb, 20 * MSS, MSS), 0);
		got = since();
		want = (struct step){ .rmw = 1, .gets = 1, .allocs = 2 };
		equal(&got, &want);
		assert_int_equal(tso_fragment(era, TRIM_EAGER, &sk, skb, PAGE_SIZE, MSS), 0);
		got = since();
		want = (struct step){ .allocs = 2 };
		equal(&got, &want);
		close_sock(era);
	}
#endif
}

static void never_sent_without_memory(void **state)
{
	(void)state;
	counts_start();
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim) for (int k = 1; k <= 3; k++)
		{
			struct sk_buff *skb, before;
			int queued, forward;

			open_sock(0);
			skb = queue_one(era);
			before = *skb;
			queued = sk.sk_wmem_queued;
			forward = sk.sk_forward_alloc;
			model_fail = fail_nth;
			fail_in = k; /* the pair, its head; no third */
			assert_int_equal(tso_fragment(era, trim, &sk, skb, 20 * MSS, MSS),
					 k == 3 ? 0 : -ENOMEM);
			model_fail = NULL;
			assert_int_equal(fail_in, k == 3);
			if (k < 3) {
				assert_memory_equal(&before, skb, sizeof(before));
				assert_int_equal(sk.sk_wmem_queued, queued);
				assert_int_equal(sk.sk_forward_alloc, forward);
			}
			check(era, trim);
			close_sock(era);
		}
}

/* Nothing is sent of what would have to be cut. */
static void window_without_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_era (era)
		for_each_trim(trim) for (int k = 1; k <= 2; k++)
		{
			open_sock(0);
			queue_one(era);
			sk.snd_wnd = 10 * MSS;
			model_fail = fail_nth;
			fail_in = k;
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 0);
			model_fail = NULL;
			assert_int_equal(sk.sk_write_queue.qlen, 1);
			check(era, trim);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
			check(era, trim);
			close_sock(era);
		}
}
#endif

/* The window's edge: whole segments go, the rest waits until there is room for one more. */
static void window_edge(void **state)
{
	static const struct {
		u32 window;
		u32 sent; /* bytes */
	} t[] = {
		{ 0, 0 },
		{ MSS - 1, 0 },
		{ MSS, MSS },
		{ 10 * MSS, 10 * MSS },
		{ 10 * MSS + 500, 10 * MSS },
		{ BYTES - 1, BYTES - MSS },
		{ BYTES, BYTES },
		{ BYTES + MSS - 1, BYTES },
		{ BYTES + MSS, BYTES + MSS },
		{ BYTES + 1000, BYTES },
		{ 2 * BYTES, 2 * BYTES },
	};

	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		{
			open_sock(0);
			assert_int_equal(tcp_sendmsg(era, &sk, data, 2 * BYTES), 2 * BYTES);
			sk.snd_wnd = t[i].window;
			assert_int_equal(tcp_write_xmit(era, trim, &sk),
					 DIV_ROUND_UP(t[i].sent, BYTES));
			assert_int_equal(sk.snd_nxt, 1 + t[i].sent);
			assert_int_equal(sk.packets_out, t[i].sent / MSS);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 0);
			check(era, trim);
			/* The window moves on with an ACK. */
			if (t[i].sent && t[i].sent < 2 * BYTES) {
				tcp_ack(era, trim, &sk, sk.snd_nxt);
				assert_true(tcp_write_xmit(era, trim, &sk) > 0);
				check(era, trim);
			}
			sk.snd_wnd = 1U << 30;
			tcp_write_xmit(era, trim, &sk);
			assert_int_equal(sk.snd_nxt, sk.write_seq);
			check(era, trim);
			close_sock(era);
		}
}

/* Less than a segment goes when it is all there is. */
static void window_small(void **state)
{
	(void)state;
	for_each_era (era) {
		open_sock(0);
		tcp_sendmsg(era, &sk, data, 100);
		sk.snd_wnd = 99;
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 0);
		sk.snd_wnd = 100;
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		close_sock(era);
	}
}

/* 6.x: with twice the send buffer and more in the queues, only the ends may still be cut. */
static void too_much_queued(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			struct sk_buff_head *q = &sk.tcp_rtx_queue;
			struct sk_buff *skb;
			int edge;

			open_sock(SKB_FRAG_PAGE_ORDER);
			for (int i = 0; i < 6; i++)
				send_one(era, trim);
			complete_all(era);
			edge = (sk.sk_wmem_queued >> 1) - 2 * (int)SKB_TRUESIZE(65536);
			assert_true(edge > 0);
			skb = q->next->next;

			sk.sk_sndbuf = edge - 1;
			assert_int_equal(tcp_fragment(era, trim, &sk, q, skb, MSS, MSS),
					 era == ERA_3_4 ? 0 : -ENOMEM);
			check(era, trim);
			sk.sk_sndbuf = 1;
			assert_int_equal(tcp_fragment(era, trim, &sk, q, oldest(), MSS, MSS), 0);
			assert_int_equal(
				tcp_fragment(era, trim, &sk, q, skb_peek_tail(q), MSS, MSS), 0);
			sk.sk_sndbuf = (sk.sk_wmem_queued >> 1) - 2 * (int)SKB_TRUESIZE(65536);
			skb = q->next->next->next;
			assert_int_equal(tcp_fragment(era, trim, &sk, q, skb, MSS, MSS), 0);
			check(era, trim);
			/* What was not sent yet may be cut. */
			sk.sk_sndbuf = 1 << 30;
			queue_one(era);
			queue_one(era);
			queue_one(era);
			sk.sk_sndbuf = 1;
			assert_int_equal(tcp_fragment(era, trim, &sk, &sk.sk_write_queue,
						      sk.sk_write_queue.next->next, MSS, MSS),
					 0);
			check(era, trim);
			close_sock(era);
		}
}

/*
 * --- collapse
 * -------------------------------------------------------------------------------------------
 */

/* N records of LEN bytes, sent and completed. */
static void send_small(enum skb_era era, enum tcp_trim trim, int n, u32 len)
{
	open_sock(SKB_FRAG_PAGE_ORDER);
	while (n--)
		send_record(era, trim, len);
	complete_all(era);
	check(era, trim);
}

static int again(enum skb_era era, enum tcp_trim trim)
{
	int err = tcp_retransmit_skb(era, trim, &sk, oldest(), 1);

	check(era, trim);
	return err;
}

static void collapse(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			int queued;
			u32 n;
			struct sk_buff *skb;

			send_small(era, trim, 10, 200);
			queued = sk.sk_wmem_queued;
			if (era == ERA_3_4)
				sk.sk_sndbuf = 1 << 20;
			skb = oldest();
			/* 7 fit into a segment of 1448; 3.4's head holds 1408 (fewer with more frags). */
			n = era == ERA_3_4 ? 1 + skb_tailroom(skb) / 200 : MSS / 200;
			if (GOLDEN)
				assert_int_equal(n, 7);
			assert_int_equal(again(era, trim), 0);
			assert_ptr_equal(oldest(), skb);
			assert_int_equal(skb->len, n * 200);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 11 - n);
			assert_int_equal(sk.packets_out, 11 - n);
			assert_int_equal(sk.retrans_out, 1);
			assert_int_equal(tcp_skb_pcount(era, skb), 1);
			assert_int_equal(last_sent()->len - 66, n * 200);
			assert_int_equal(wire_seq(last_sent()), 1);
			check_bytes(skb);
			if (era == ERA_3_4) {
				assert_int_equal(skb_shinfo(skb)->nr_frags, 0);
				assert_int_equal(skb->truesize, SKB_TRUESIZE(skb_end_offset(skb)));
			} else {
				assert_int_equal(skb_shinfo(skb)->nr_frags, 1);
				assert_int_equal(skb->truesize,
						 SKB_TRUESIZE(skb_end_offset(skb)) + n * 200);
			}
			assert_int_equal(queued - sk.sk_wmem_queued,
					 (n - 1) * SKB_TRUESIZE(skb_end_offset(skb)));
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 11 - n);
			assert_int_equal(sk.retrans_out, 0);
			close_sock(era);
		}
}

/* What ends a collapse at the third of five. */
static void collapse_ends(void **state)
{
	enum { EOR, SACKED, CLONED, SEGMENTS, WINDOW, SPACE, REASONS };

	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (int why = 0; why < REASONS; why++)
		{
			struct sk_buff *third;

			open_sock(SKB_FRAG_PAGE_ORDER);
			for (int i = 0; i < 5; i++) {
				if (i == 2 && why == SEGMENTS)
					send_record(era, trim, 2 * MSS);
				else
					send_record(era, trim, i == 2 && why == SPACE ? 1049 : 200);
			}
			third = oldest()->next->next;
			tx_ring_complete(era, &ring, why == CLONED ? 2 : 64);
			if (why == EOR)
				TCP_SKB_CB(third->prev)->eor = 1;
			if (why == SACKED)
				assert_int_equal(tcp_sack(era, trim, &sk, 401, 601), 1);
			if (why == WINDOW)
				sk.snd_wnd = 599;
			assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 1);
			check(era, trim);
			assert_int_equal(oldest()->len, 400);
			assert_ptr_equal(oldest()->next, third);
			assert_int_equal(TCP_SKB_CB(oldest())->eor, why == EOR);
			assert_int_equal(sk.packets_out, why == SEGMENTS ? 5 : 4);
			check_bytes(oldest());
			assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 0);
			close_sock(era);
		}
}

/* One that is cloned, SACKED, of more segments or the last of a record takes nothing in. */
static void collapse_not(void **state)
{
	(void)state;
	for_each_era (era) {
		open_sock(SKB_FRAG_PAGE_ORDER);
		send_record(era, TRIM_EAGER, 200);
		send_record(era, TRIM_EAGER, 200);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 0);
		complete_all(era);
		TCP_SKB_CB(oldest())->eor = 1;
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 0);
		TCP_SKB_CB(oldest())->eor = 0;
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), 399), 0);
		TCP_SKB_CB(oldest())->sacked = TCPCB_SACKED_ACKED;
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 0);
		TCP_SKB_CB(oldest())->sacked = 0;
		tcp_skb_pcount_add(era, oldest(), 1);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 0);
		tcp_skb_pcount_add(era, oldest(), -1);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), 400), 1);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
}

/* Tags of what joined leave the counts, its flags and its FIN stay. */
static void collapse_tags(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			struct sk_buff *skb;

			send_small(era, trim, 3, 200);
			assert_int_equal(tcp_send_fin(era, &sk), 0);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
			complete_all(era);
			skb = oldest();
			tcp_mark_skb_lost(era, &sk, skb);
			tcp_mark_skb_lost(era, &sk, skb->next);
			TCP_SKB_CB(skb->next)->sacked |= TCPCB_RETRANS;
			sk.retrans_out++;
			check(era, trim);
			assert_int_equal(tcp_retrans_try_collapse(era, &sk, skb, MSS), 3);
			check(era, trim);
			assert_int_equal(sk.packets_out, 1);
			assert_int_equal(sk.lost_out, 1);
			assert_int_equal(sk.retrans_out, 0);
			assert_int_equal(TCP_SKB_CB(skb)->sacked, TCPCB_LOST | TCPCB_EVER_RETRANS);
			assert_true(TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN);
			assert_int_equal(TCP_SKB_CB(skb)->end_seq, sk.snd_nxt);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 1);
			check(era, trim);
			close_sock(era);
		}
}

/* 3.4 looks only at sk_buffs without frags, even if nothing but a FIN would have to move. */
static void collapse_paged(void **state)
{
	(void)state;
	for_each_era (era) {
		send_small(era, TRIM_EAGER, 1, MSS);
		assert_true(skb_is_nonlinear(oldest()));
		assert_int_equal(tcp_send_fin(era, &sk), 0);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		complete_all(era);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), era != ERA_3_4);
		check(era, TRIM_EAGER);
		close_sock(era);
	}
}

/* 17 frags are all there is: what does not continue the last one finds no slot. */
static void collapse_slots(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		open_sock(SKB_FRAG_PAGE_ORDER);
		for (int i = 0; i < MAX_SKB_FRAGS + 3; i++) {
			send_record(era, TRIM_EAGER, 10);
			sk.sk_frag.offset++;
		}
		complete_all(era);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS),
				 MAX_SKB_FRAGS - 1);
		check(era, TRIM_EAGER);
		assert_int_equal(skb_shinfo(oldest())->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(sk.tcp_rtx_queue.qlen, 4);
		check_bytes(oldest());
		close_sock(era);
	}
}

#ifdef SKB_TRACED
/* 3.4 copies, 6.x moves descriptors that merge; nothing is allocated, so that nothing can fail. */
static void collapse_ledger(void **state)
{
	(void)state;
	counts_start();
	for_each_era (era) {
		struct step got, want;

		send_small(era, TRIM_EAGER, 4, 200);
		model_fail = fail_nth;
		fail_in = 1;
		counts_start();
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, oldest(), MSS), 3);
		got = since();
		model_fail = NULL;
		assert_int_equal(fail_in, 1);
		want = era == ERA_3_4 ? (struct step){ .rmw = 6, .frees = 6, .bytes = 600 }
				      : (struct step){ .rmw = era == ERA_6_1 ? 6 : 3,
						       .puts = 3,
						       .frees = 6 };
		equal(&got, &want);
		close_sock(era);
	}
}
#endif

/*
 * --- what is sent again
 * ------------------------------------------------------------------------------------
 */

/* Headroom at which a 16-bit csum_start ends: a copy with the usual one goes. */
static void long_headroom(void **state)
{
	static const unsigned int headroom[] = { 65534, 65535, 65536 };

	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (size_t i = 0; i < ARRAY_SIZE(headroom); i++)
		{
			bool copied = headroom[i] >= 0xFFFF;
			struct sk_buff *skb, *sent;
			unsigned int truesize;
			char *back = malloc(MSS);
			u32 at;

			open_sock(SKB_FRAG_PAGE_ORDER);
			skb = send_record(era, trim, MSS);
			complete_all(era);
			truesize = skb->truesize;
			assert_int_equal(
				pskb_expand_head(era, skb, headroom[i] - skb_headroom(skb), 0), 0);
			truesize = skb->truesize - truesize;
			sk_wmem_schedule(era, &sk, truesize);
			sk_wmem_queued_add(&sk, truesize);
			sk_mem_charge(&sk, truesize);
			assert_int_equal(skb_headroom(skb), headroom[i]);
			if (era == ERA_3_4)
				sk.sk_wmem_queued += BYTES; /* its own limit is not the matter */
#ifdef SKB_TRACED
			if (copied) {
				for (int k = 1; k <= 2; k++) {
					counts_start();
					model_fail = fail_nth;
					fail_in = k;
					assert_int_equal(tcp_retransmit_skb(era, trim, &sk, skb, 1),
							 -ENOBUFS);
					model_fail = NULL;
					assert_int_equal(sk.retrans_out, 0);
					assert_int_equal(tx_ring_count(&ring), 0);
				}
			}
#endif
			assert_int_equal(tcp_retransmit_skb(era, trim, &sk, skb, 1), 0);
			if (era == ERA_3_4)
				sk.sk_wmem_queued -= BYTES;
			check(era, trim);
			sent = last_sent();
			at = (copied ? MAX_TCP_HEADER : headroom[i]) - 66 + 34;
			assert_int_equal(sent->head == skb->head, !copied);
			assert_int_equal(sent->headers.csum & 0xffff, at);
			assert_int_equal(sent->headers.csum >> 16, 16);
			assert_int_equal(sent->headers.transport_header, at);
			assert_int_equal(sent->len, 66 + MSS);
			assert_int_equal(wire_seq(sent), 1);
			skb_copy_bits(sent, 66, back, MSS);
			assert_memory_equal(back, data, MSS);
			assert_int_equal(skb_headroom(skb), headroom[i]);
			assert_int_equal(skb_cloned(skb), !copied);
			assert_true(TCP_SKB_CB(skb)->sacked & TCPCB_EVER_RETRANS);
			assert_int_equal(sk.retrans_out, 1);
			free(back);
			close_sock(era);
		}
}

/* An earlier clone still lives (T6): a private copy, whose completion frees all that it took. */
static void sent_while_in_flight(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (unsigned int order = 0; order <= 3; order += 3)
		{
			struct sk_buff *skb, *copy;
			int dataref;

			open_sock(order);
			skb = send_one(era, trim);
			dataref = skb_shinfo(skb)->dataref.counter;
			assert_int_equal(dataref, 0x10002);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(tcp_transmit_skb(era, trim, &sk, skb), 0);
#ifdef SKB_TRACED
			{
				u64 n = skb_shinfo(skb)->nr_frags;
				struct step got = since();
				struct step want = {
					.rmw = n, .gets = n, .allocs = 2, .bytes = skb_headlen(skb)
				};

				got.shared_stores = 0;
				equal(&got, &want);
			}
#endif
			copy = nth_sent(1);
			assert_int_equal(skb_shinfo(copy)->dataref.counter, 1);
			assert_int_equal(skb_shinfo(skb)->dataref.counter, dataref);
			assert_ptr_not_equal(copy->head, skb->head);
			/* The clone first, then the copy: nothing is left of it. */
			assert_int_equal(tx_ring_complete(era, &ring, 1), 1);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(tx_ring_complete(era, &ring, 1), 1);
#ifdef SKB_TRACED
			{
				u64 n = skb_shinfo(skb)->nr_frags;
				struct step got = since();
				struct step want = { .rmw = n, .puts = n, .frees = 2 };

				equal(&got, &want);
			}
#endif
			assert_int_equal(skb_shinfo(skb)->dataref.counter, 0x10001);
			check(era, trim);
			close_sock(era);
		}
}

/*
 * --- what cannot be cut
 * ------------------------------------------------------------------------------------
 */

/* As GRO would have it: one frag of 378 bytes, 7344 bytes in a frag_list, all of it counted. */
static struct sk_buff *with_frag_list(bool lost)
{
	struct sk_buff *skb = alloc_skb_fclone(ERA_6_12, MAX_TCP_HEADER, NUMA_NO_NODE);
	struct sk_buff *member = alloc_skb(ERA_6_12, 0, NUMA_NO_NODE);

	skb_reserve(skb, MAX_TCP_HEADER);
	skb_add_rx_frag(skb, 0, alloc_pages(0), 0, 378, 378);
	skb_add_rx_frag(member, 0, alloc_pages(1), 0, 7344, 7344);
	if (!lost)
		skb_shinfo(skb)->frag_list = member;
	else
		kfree_skb(ERA_6_12, member);
	skb->len += 7344;
	skb->data_len += 7344;
	skb->truesize += 7344;
	TCP_SKB_CB(skb)->seq = 1;
	TCP_SKB_CB(skb)->end_seq = 1 + 7722;
	tcp_set_skb_tso_segs(ERA_6_12, TRIM_EAGER, skb, MSS);
	open_sock(0);
	__skb_queue_tail(&sk.tcp_rtx_queue, skb);
	sk_wmem_schedule(ERA_6_12, &sk, skb->truesize);
	sk_wmem_queued_add(&sk, skb->truesize);
	sk_mem_charge(&sk, skb->truesize);
	sk.write_seq = sk.snd_nxt = 1 + 7722;
	sk.packets_out = 6;
	return skb;
}

static void cut_list(void)
{
	tcp_fragment(ERA_6_12, TRIM_EAGER, &sk, &sk.tcp_rtx_queue, with_frag_list(false), 4000,
		     MSS);
}

static void trim_list(void)
{
	tcp_trim_head(ERA_6_12, TRIM_EAGER, &sk, with_frag_list(false), 4000);
}

static void shift_list(void)
{
	struct sk_buff *skb = with_frag_list(false);

	tcp_skb_shift(ERA_6_12, skb, skb, 1, 100);
}

static void frag_list(void **state)
{
	char err[200];

	(void)state;
	assert_true(is_bug(cut_list));
	assert_true(is_bug(trim_list));
	assert_true(is_bug(shift_list));

	with_frag_list(false);
	assert_int_equal(tcp_check_sock(ERA_6_12, TRIM_EAGER, &sk, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "frag_list"));
	assert_non_null(strstr(err, "7722"));
	close_sock(ERA_6_12);

	/* Bytes that are counted and nowhere: all numbers are told. */
	with_frag_list(true);
	assert_int_equal(tcp_check_sock(ERA_6_12, TRIM_EAGER, &sk, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "7722"));
	assert_non_null(strstr(err, "378"));
	close_sock(ERA_6_12);
}

/* All 17 slots in use, cut at the very end; what is dropped are bytes of the next one. */
static void cut_at_the_last_slot(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *a, *b;
		u32 len;

		open_sock(0);
		for (int i = 0; i < MAX_SKB_FRAGS; i++) {
			tcp_sendmsg(era, &sk, data + 10 * i, 10);
			sk.sk_frag.offset++;
		}
		TCP_SKB_CB(skb_peek_tail(&sk.sk_write_queue))->eor = 1;
		tcp_sendmsg(era, &sk, data + 10 * MAX_SKB_FRAGS, 124);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 2);
		a = oldest();
		b = a->next;
		len = a->len;
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(skb_shinfo(a)->frags[MAX_SKB_FRAGS - 1].len, 10);
		assert_int_equal(tcp_fragment(era, TRIM_EAGER, &sk, &sk.tcp_rtx_queue, a, len, MSS),
				 0);
		assert_int_equal(a->len, len);
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(a->next->len, 0);
		assert_int_equal(skb_shinfo(a->next)->nr_frags, 0);
		check(era, TRIM_EAGER);

		sk.snd_una = 1 + len;
		{
			u32 off = skb_shinfo(b)->frags[0].offset;

			assert_int_equal(tcp_trim_head(era, TRIM_EAGER, &sk, b, 5), 0);
			assert_int_equal(skb_shinfo(b)->frags[0].offset, off + 5);
			assert_int_equal(skb_shinfo(b)->frags[0].len, 119);
		}
		assert_int_equal(a->len, len);
		close_sock(era);
	}
}

/* The front of a queued sk_buff with linear bytes: seq, and what each era gives back. */
static void trim_charges(void **state)
{
	static const struct {
		u32 trim, paged;
	} t[] = { { 40, 0 }, { 100, 0 }, { 4196, 4096 }, { 4206, 4106 } };

	(void)state;
	for_each_era (era)
		for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
			struct sk_buff *skb = alloc_skb_fclone(ERA_6_12, MAX_TCP_HEADER + 100, 0);
			int queued;

			open_sock(0);
			skb_put(skb, 100);
			for (int f = 0; f < 3; f++)
				skb_add_rx_frag(skb, f, alloc_pages(0), 0, 4096, 4096);
			TCP_SKB_CB(skb)->seq = 1;
			TCP_SKB_CB(skb)->end_seq = 1 + skb->len;
			__skb_queue_tail(&sk.tcp_rtx_queue, skb);
			sk_wmem_schedule(era, &sk, skb->truesize);
			sk_wmem_queued_add(&sk, skb->truesize);
			sk_mem_charge(&sk, skb->truesize);
			queued = sk.sk_wmem_queued;
			assert_int_equal(tcp_trim_head(era, TRIM_EAGER, &sk, skb, t[i].trim), 0);
			assert_int_equal(TCP_SKB_CB(skb)->seq, 1 + t[i].trim);
			assert_int_equal(queued - sk.sk_wmem_queued,
					 era == ERA_6_1 ? t[i].paged : t[i].trim);
			assert_int_equal(skb->truesize, sk.sk_wmem_queued);
			close_sock(era);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_sent),
		cmocka_unit_test(linear),
#ifdef SKB_TRACED
		cmocka_unit_test(ledger_never_sent),
		cmocka_unit_test(never_sent_without_memory),
		cmocka_unit_test(window_without_memory),
#endif
		cmocka_unit_test(window_edge),
		cmocka_unit_test(window_small),
		cmocka_unit_test(too_much_queued),
		cmocka_unit_test(collapse),
		cmocka_unit_test(collapse_ends),
		cmocka_unit_test(collapse_not),
		cmocka_unit_test(collapse_tags),
		cmocka_unit_test(collapse_paged),
		cmocka_unit_test(collapse_slots),
#ifdef SKB_TRACED
		cmocka_unit_test(collapse_ledger),
#endif
		cmocka_unit_test(long_headroom),
		cmocka_unit_test(sent_while_in_flight),
		cmocka_unit_test(frag_list),
		cmocka_unit_test(cut_at_the_last_slot),
		cmocka_unit_test(trim_charges),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
