/* SPDX-License-Identifier: MIT */
/*
 * SACKs: what is cut, tagged, counted and shifted, in every era and both ways to trim; the limits
 * of a shift; allocations that fail; and lazy trimming, whose notes a shift must not lose.
 */
#include "tests/tcp/tcp_test.h"

#define BLOCK	   32768 /* a page frag of order 3: what fills it ends where the next begins */
#define BLOCK_SEGS 23

static struct sk_buff *nth(int n)
{
	struct sk_buff *skb = oldest();

	while (n--)
		skb = skb->next;
	return skb;
}

static int sack(enum skb_era era, enum tcp_trim trim, u32 from, u32 to)
{
	int newly = tcp_sack(era, trim, &sk, 1 + from, 1 + to);
	u32 i;

	check(era, trim);
	for (i = 0; i < sk.tcp_rtx_queue.qlen; i++)
		check_bytes(nth(i));
	return newly;
}

/* Sends N records of one block each. They could be joined: no record's end is kept. */
static void send_blocks(enum skb_era era, enum tcp_trim trim, int n)
{
	open_sock(SKB_FRAG_PAGE_ORDER);
	while (n--)
		send_record(era, trim, BLOCK);
	check(era, trim);
}

static void whole(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			open_sock(0);
			for (int i = 0; i < 3; i++)
				send_one(era, trim);
			assert_int_equal(sack(era, trim, BYTES, 2 * BYTES), 45);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
			assert_int_equal(TCP_SKB_CB(nth(0))->sacked, 0);
			assert_int_equal(TCP_SKB_CB(nth(1))->sacked, TCPCB_SACKED_ACKED);
			assert_int_equal(TCP_SKB_CB(nth(2))->sacked, 0);
			assert_int_equal(sk.sacked_out, 45);
			assert_int_equal(sk.packets_out, 135);
			assert_int_equal(sk.delivered, 45);
			/* Again: nothing is new. */
			assert_int_equal(sack(era, trim, BYTES, 2 * BYTES), 0);
			assert_int_equal(sk.sacked_out, 45);
			/* The ACK of it is no second delivery. */
			assert_int_equal(tcp_ack(era, trim, &sk, 1 + 2 * BYTES), 90);
			assert_int_equal(sk.sacked_out, 0);
			assert_int_equal(sk.delivered, 90);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 45);
			assert_int_equal(sk.delivered, 135);
			close_sock(era);
		}
}

static void refused(void **state)
{
	static const struct {
		u32 start, end;
	} t[] = {
		{ 1 + MSS, 1 + 2 * MSS }, /* starts at snd_una */
		{ 1, 1 + 2 * MSS }, /* before it */
		{ 1 + 3 * MSS, 1 + 3 * MSS }, /* empty */
		{ 1 + 4 * MSS, 1 + 3 * MSS }, /* backwards */
		{ 1 + 3 * MSS, 1 + BYTES + 1 }, /* never sent */
		{ 1 + BYTES, 1 + BYTES + 1 },
	};

	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			struct sk_buff before;

			open_sock(0);
			send_one(era, trim);
			complete_all(era);
			tcp_ack(era, trim, &sk, 1 + MSS);
			before = *oldest();
			for (size_t i = 0; i < ARRAY_SIZE(t); i++)
				assert_int_equal(tcp_sack(era, trim, &sk, t[i].start, t[i].end),
						 -EINVAL);
			assert_memory_equal(&before, oldest(), sizeof(before));
			assert_int_equal(sk.sacked_out, 0);
			close_sock(era);
		}
}

/* Tags cover whole segments: the first cut rounds up, the second down. */
static void rounded(void **state)
{
	static const struct {
		u32 from, to;
		int newly, skbs, first, second; /* segments of the first and the second sk_buff */
	} t[] = {
		{ 10 * MSS, 20 * MSS, 10, 3, 10, 10 },
		{ 10 * MSS + 100, 20 * MSS + 500, 9, 3, 11, 9 },
		{ 10 * MSS - 100, 20 * MSS - 500, 9, 3, 10, 9 },
		{ 1, 2 * MSS, 1, 3, 1, 1 },
		{ 40 * MSS, BYTES, 5, 2, 40, 5 },
		/* Less than a segment: nothing is tagged, a first cut stays. */
		{ MSS + 1, 2 * MSS + 500, 0, 2, 2, 43 },
		{ 44 * MSS, BYTES - 1, 0, 2, 44, 1 },
		{ 44 * MSS + 1, BYTES, 0, 1, 45, 0 },
	};

	(void)state;
	for_each_era (era)
		for_each_trim(trim) for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		{
			open_sock(0);
			send_one(era, trim);
			assert_int_equal(sack(era, trim, t[i].from, t[i].to), t[i].newly);
			assert_int_equal(sk.tcp_rtx_queue.qlen, t[i].skbs);
			assert_int_equal(tcp_skb_pcount(era, nth(0)), t[i].first);
			if (t[i].second)
				assert_int_equal(tcp_skb_pcount(era, nth(1)), t[i].second);
			assert_int_equal(sk.sacked_out, t[i].newly);
			assert_int_equal(sk.packets_out, 45);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 45);
			close_sock(era);
		}
}

/*
 * --- shift
 * ----------------------------------------------------------------------------------------------
 */

/* A cut and the shift that undoes it (T7): descriptors, references, charges as before. */
static void split_and_shift(void **state)
{
	(void)state;
	need_4k_pages();
#if GOLDEN
	for_each_era (era)
		for_each_trim(trim)
		{
			const skb_frag_t *f;
			struct sk_buff *a;
			struct page *page0, *page1;
			int queued, count0, count1;

			if (era == ERA_3_4)
				continue; /* 1408 bytes of each are linear */
			open_sock(SKB_FRAG_PAGE_ORDER);
			send_record(era, trim, BLOCK);
			a = send_record(era, trim, BYTES);
			complete_all(era);
			f = skb_shinfo(a)->frags;
			page0 = f[0].page;
			page1 = f[1].page;
			queued = sk.sk_wmem_queued;
			count0 = page_count(page0);
			count1 = page_count(page1);
			assert_int_equal(f[0].len, 32768);
			assert_int_equal(f[1].len, 32392);

			assert_int_equal(sack(era, trim, BLOCK, BLOCK + 28960), 20);
			assert_int_equal(skb_shinfo(a)->nr_frags, 1);
			assert_int_equal(f[0].len, 28960);
			f = skb_shinfo(a->next)->frags;
			assert_int_equal(skb_shinfo(a->next)->nr_frags, 2);
			assert_ptr_equal(f[0].page, page0);
			assert_int_equal(f[0].offset, 28960);
			assert_int_equal(f[0].len, 3808);
			assert_ptr_equal(f[1].page, page1);
			assert_int_equal(f[1].offset, 0);
			assert_int_equal(f[1].len, 32392);
			assert_int_equal(page_count(page0), count0 + 1);
			assert_int_equal(page_count(page1), count1);
			assert_int_equal(sk.sk_wmem_queued,
					 queued + SKB_TRUESIZE(skb_end_offset(a->next)));
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(tcp_sack(era, trim, &sk, 1 + BLOCK, 1 + BLOCK + BYTES),
					 25);
#ifdef SKB_TRACED
			{
				struct step got = since();
				struct step want = { .rmw = 1, .puts = 1, .frees = 2 };

				equal(&got, &want);
			}
#endif
			check(era, trim);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
			f = skb_shinfo(a)->frags;
			assert_int_equal(skb_shinfo(a)->nr_frags, 2);
			assert_int_equal(f[0].len, 32768);
			assert_ptr_equal(f[1].page, page1);
			assert_int_equal(f[1].len, 32392);
			assert_int_equal(page_count(page0), count0);
			assert_int_equal(page_count(page1), count1);
			assert_int_equal(sk.sk_wmem_queued, queued);
			assert_int_equal(tcp_skb_pcount(era, a), 45);
			assert_int_equal(tcp_skb_mss(era, a), MSS);
			assert_int_equal(sk.packets_out, BLOCK_SEGS + 45);
			assert_int_equal(sk.sacked_out, 45);
			check_bytes(a);
			close_sock(era);
		}
#endif
}

/* Some segments of the next one: contiguous costs nothing, else one get. */
static void partial_shift(void **state)
{
	(void)state;
	need_4k_pages();
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			struct sk_buff *a, *b;

			send_blocks(era, trim, 2);
			b = send_record(era, trim, BYTES);
			a = nth(1);
			complete_all(era);
			assert_int_equal(sack(era, trim, BLOCK, 2 * BLOCK), BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(
				tcp_sack(era, trim, &sk, 1 + 2 * BLOCK, 1 + 2 * BLOCK + MSS), 1);
#ifdef SKB_TRACED
			{
				struct step got = since(), want = { .rmw = 1, .gets = 1 };

				equal(&got, &want);
			}
#endif
			check(era, trim);
			assert_int_equal(a->len, BLOCK + MSS);
			assert_int_equal(tcp_skb_pcount(era, a), BLOCK_SEGS + 1);
			assert_int_equal(TCP_SKB_CB(a)->end_seq, 1 + 2 * BLOCK + MSS);
			assert_int_equal(TCP_SKB_CB(b)->seq, 1 + 2 * BLOCK + MSS);
			assert_int_equal(tcp_skb_pcount(era, b), 44);
			assert_int_equal(skb_shinfo(b)->frags[0].offset, MSS);
#ifdef SKB_TRACED
			counts_start();
#endif
			/* Two segments and a bit: the bit stays. */
			assert_int_equal(tcp_sack(era, trim, &sk, 1 + 2 * BLOCK,
						  1 + 2 * BLOCK + 3 * MSS + 7),
					 2);
#ifdef SKB_TRACED
			{
				struct step got = since(), want = { 0 };

				equal(&got, &want);
			}
#endif
			check(era, trim);
			assert_int_equal(a->len, BLOCK + 3 * MSS);
			assert_int_equal(skb_shinfo(a)->nr_frags, 2);
			assert_int_equal(skb_shinfo(b)->frags[0].offset, 3 * MSS);
			assert_int_equal(sk.sacked_out, BLOCK_SEGS + 3);
			check_bytes(a);
			check_bytes(b);
			close_sock(era);
		}
}

/* A hole between two that are SACKed is filled: three become one. */
static void hole(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			send_blocks(era, trim, 4);
			assert_int_equal(sack(era, trim, BLOCK, 2 * BLOCK), BLOCK_SEGS);
			assert_int_equal(sack(era, trim, 3 * BLOCK, 4 * BLOCK), BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 4);
			assert_int_equal(sack(era, trim, 2 * BLOCK, 3 * BLOCK), BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
			assert_int_equal(nth(1)->len, 3 * BLOCK);
			assert_int_equal(tcp_skb_pcount(era, nth(1)), 3 * BLOCK_SEGS);
			assert_int_equal(sk.sacked_out, 3 * BLOCK_SEGS);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 4 * BLOCK_SEGS);
			close_sock(era);
		}
}

/* The end of a record is not shifted over, and moves with the last of its bytes. */
static void record_ends(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			send_blocks(era, trim, 4);
			TCP_SKB_CB(nth(2))->eor = 1;
			assert_int_equal(sack(era, trim, BLOCK, 4 * BLOCK), 3 * BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
			assert_int_equal(nth(1)->len, 2 * BLOCK);
			assert_int_equal(TCP_SKB_CB(nth(1))->eor, 1);
			assert_int_equal(TCP_SKB_CB(nth(2))->sacked, TCPCB_SACKED_ACKED);
			close_sock(era);
		}
}

/* Segments of another size do not join; small ones do, and then there is a size. */
static void segment_sizes(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			open_sock(SKB_FRAG_PAGE_ORDER);
			send_record(era, trim, 50);
			send_record(era, trim, 100);
			send_record(era, trim, 100);
			send_record(era, trim, 200);
			assert_int_equal(sack(era, trim, 50, 450), 3);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
			assert_int_equal(nth(1)->len, 200);
			assert_int_equal(tcp_skb_pcount(era, nth(1)), 2);
			assert_int_equal(tcp_skb_mss(era, nth(1)), 100);
			assert_int_equal(tcp_skb_mss(era, nth(2)), 0);
			assert_int_equal(sk.packets_out, 4);
			assert_int_equal(sk.sacked_out, 3);
			close_sock(era);
		}
}

/* 3.4 keeps the first bytes of each sk_buff linear, and what is linear cannot be shifted. */
static void linear_stays(void **state)
{
	(void)state;
	for_each_trim(trim)
	{
		open_sock(SKB_FRAG_PAGE_ORDER);
		for (int i = 0; i < 3; i++)
			send_one(ERA_3_4, trim);
		assert_int_equal(sack(ERA_3_4, trim, BYTES, 3 * BYTES), 90);
		assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
		close_sock(ERA_3_4);

		/* Halves of one are paged but for the first. */
		open_sock(SKB_FRAG_PAGE_ORDER);
		send_one(ERA_3_4, trim);
		assert_int_equal(sack(ERA_3_4, trim, 10 * MSS, 20 * MSS), 10);
		assert_int_equal(sack(ERA_3_4, trim, 20 * MSS, 30 * MSS), 10);
		assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
		assert_int_equal(tcp_skb_pcount(ERA_3_4, nth(1)), 20);
		assert_int_equal(skb_shinfo(nth(1))->gso_segs, 20);
		assert_int_equal(skb_shinfo(nth(1))->gso_type, SKB_GSO_TCPV4);
		close_sock(ERA_3_4);
	}
}

/* A FIN takes a sequence number: it is SACKed with the last segment or by itself. */
static void fin(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			u32 end;

			send_blocks(era, trim, 2);
			tcp_sendmsg(era, &sk, data + 2 * BLOCK - BYTES, BLOCK);
			assert_int_equal(tcp_send_fin(era, &sk), 0);
			assert_int_equal(tcp_send_fin(era, &sk), -EPIPE);
			assert_int_equal(tcp_sendmsg(era, &sk, data, 1), -EPIPE);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
			end = sk.snd_nxt;
			assert_int_equal(end, 1 + 3 * BLOCK + 1);
			assert_int_equal(sack(era, trim, BLOCK, 3 * BLOCK + 1), 2 * BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
			assert_int_equal(nth(1)->len, 2 * BLOCK);
			assert_int_equal(TCP_SKB_CB(nth(1))->end_seq, end);
			assert_true(TCP_SKB_CB(nth(1))->tcp_flags & TCPHDR_FIN);
			assert_int_equal(tcp_ack(era, trim, &sk, end), 3 * BLOCK_SEGS);
			check(era, trim);
			close_sock(era);

			/* All bytes but not the FIN: it stays, alone. */
			open_sock(SKB_FRAG_PAGE_ORDER);
			send_record(era, trim, 2 * MSS);
			send_record(era, trim, 4 * MSS);
			tcp_sendmsg(era, &sk, data + 6 * MSS, 4 * MSS);
			tcp_send_fin(era, &sk);
			tcp_write_xmit(era, trim, &sk);
			assert_int_equal(sack(era, trim, 2 * MSS, 10 * MSS), 8);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 4);
			assert_int_equal(TCP_SKB_CB(nth(2))->sacked, TCPCB_SACKED_ACKED);
			assert_false(TCP_SKB_CB(nth(2))->tcp_flags & TCPHDR_FIN);
			assert_int_equal(nth(3)->len, 0);
			assert_int_equal(TCP_SKB_CB(nth(3))->sacked, 0);
			assert_int_equal(sk.packets_out, 11);
			assert_int_equal(sack(era, trim, 10 * MSS, 10 * MSS + 1), 1);
			assert_int_equal(sk.sacked_out, 9);
			close_sock(era);

			/* One without data. */
			open_sock(0);
			assert_int_equal(tcp_send_fin(era, &sk), 0);
			assert_int_equal(tcp_write_xmit(era, trim, &sk), 1);
			assert_int_equal(last_sent()->len, 66);
			assert_int_equal(tcp_ack(era, trim, &sk, 2), 1);
			check(era, trim);
			close_sock(era);
		}
}

/*
 * --- tags
 * -----------------------------------------------------------------------------------------------
 */

static void tags(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			open_sock(SKB_FRAG_PAGE_ORDER);
			for (int i = 0; i < 5; i++)
				send_record(era, trim, 10 * MSS);
			complete_all(era);

			/* Lost; lost, sent again; sent again; lost, sent again, lost again. */
			tcp_mark_skb_lost(era, &sk, nth(1));
			tcp_mark_skb_lost(era, &sk, nth(2));
			tcp_retransmit_skb(era, trim, &sk, nth(2), 10);
			if (era == ERA_3_4) {
				close_sock(era); /* sends a segment at a time: cuts */
				continue;
			}
			tcp_retransmit_skb(era, trim, &sk, nth(3), 10);
			tcp_mark_skb_lost(era, &sk, nth(4));
			tcp_retransmit_skb(era, trim, &sk, nth(4), 10);
			assert_int_equal(sk.retrans_out, 30);
			tcp_mark_skb_lost(era, &sk, nth(4));
			assert_int_equal(sk.lost_out, 30);
			assert_int_equal(sk.retrans_out, 20);
			check(era, trim);
			complete_all(era);

			assert_int_equal(sack(era, trim, 10 * MSS, 50 * MSS), 40);
			assert_int_equal(sk.sacked_out, 40);
			assert_int_equal(sk.lost_out, 0);
			/* The one that was not lost still counts as on its way, and stands alone. */
			assert_int_equal(sk.retrans_out, 10);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 4);
			assert_int_equal(nth(1)->len, 20 * MSS);
			/* A shift passes on only that it was sent again. */
			assert_int_equal(TCP_SKB_CB(nth(1))->sacked,
					 TCPCB_SACKED_ACKED | TCPCB_EVER_RETRANS);
			assert_int_equal(TCP_SKB_CB(nth(2))->sacked,
					 TCPCB_SACKED_ACKED | TCPCB_SACKED_RETRANS |
						 TCPCB_EVER_RETRANS | TCPCB_REPAIRED);
			assert_int_equal(TCP_SKB_CB(nth(3))->sacked,
					 TCPCB_SACKED_ACKED | TCPCB_EVER_RETRANS | TCPCB_REPAIRED);
			/* What is SACKed is not lost. */
			tcp_mark_skb_lost(era, &sk, nth(1));
			assert_int_equal(sk.lost_out, 0);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 50);
			assert_int_equal(sk.retrans_out, 0);
			assert_int_equal(sk.delivered, 50);
			close_sock(era);
		}
}

/*
 * --- the limits of a shift
 * ---------------------------------------------------------------------------------
 */

/* N frags of a block of order 3 each, the last of LAST bytes, PCOUNT segments. */
static struct sk_buff *big_skb(enum skb_era era, int n, u32 last, int pcount)
{
	struct sk_buff *skb = alloc_skb_fclone(era, MAX_TCP_HEADER, NUMA_NO_NODE);

	skb_reserve(skb, MAX_TCP_HEADER);
	for (int i = 0; i < n; i++) {
		u32 len = i == n - 1 ? last : BLOCK;

		skb_add_rx_frag(skb, i, alloc_pages(SKB_FRAG_PAGE_ORDER), 0, len, len);
	}
	tcp_skb_pcount_add(era, skb, pcount);
	return skb;
}

static void shift_limits(void **state)
{
	static const struct {
		int frags;
		u32 last;
		int pcount;
		u32 shift;
		int more;
		bool ok;
	} t[] = {
		{ 16, 524279 - 1000 - 15 * BLOCK, 100, 1000, 1, true },
		{ 16, 524280 - 1000 - 15 * BLOCK, 100, 1000, 1, false },
		{ 2, BLOCK, 65534, 1000, 1, true },
		{ 2, BLOCK, 65535, 1000, 1, false },
		{ 2, BLOCK, 65000, 1000, 535, true },
		{ 2, BLOCK, 65000, 1000, 536, false },
		{ 16, BLOCK, 65535, BLOCK, 4096, false }, /* 557056 bytes of 8 a segment */
	};

	(void)state;
	for_each_era (era)
		for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
			struct sk_buff *to = big_skb(era, t[i].frags, t[i].last, t[i].pcount);
			struct sk_buff *from = big_skb(era, 1, BLOCK, t[i].more);
			u32 len = to->len, truesize = to->truesize + from->truesize;

			assert_int_equal(tcp_skb_shift(era, to, from, t[i].more, t[i].shift),
					 t[i].ok ? t[i].shift : 0);
			assert_int_equal(to->len, len + (t[i].ok ? t[i].shift : 0));
			assert_int_equal(from->len, BLOCK - (t[i].ok ? t[i].shift : 0));
			assert_int_equal(to->truesize + from->truesize, truesize);
			kfree_skb(era, to);
			kfree_skb(era, from);
			assert_int_equal(model_pages_in_use(), 0);
		}
}

/* 65535 segments of 8 bytes: the one that would be too many stays where it is. */
static void shift_stops_in_time(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			u32 segs = BLOCK / 8;

			open_sock(SKB_FRAG_PAGE_ORDER);
			sk.mss_cache = 8;
			sk.gso_max_size = BLOCK;
			for (int i = 0; i < 18; i++)
				send_record(era, trim, BLOCK);
			complete_all(era);
			assert_int_equal(sk.packets_out, 18 * segs);
			assert_int_equal(tcp_sack(era, trim, &sk, 1 + BLOCK, 1 + 18 * BLOCK),
					 17 * segs);
			check(era, trim);
			/* 15 fit: 61440 segments. */
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
			assert_int_equal(nth(1)->len, 15 * BLOCK);
			assert_int_equal(tcp_skb_pcount(era, nth(1)), 15 * segs);
			assert_int_equal(tcp_skb_pcount(era, nth(2)), 2 * segs);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 18 * segs);
			close_sock(era);
		}
}

/*
 * --- heads that become private
 * ----------------------------------------------------------------------------------
 */

/*
 * As if a head had less room than its bucket gives: the next one of its size has more. SKB is in
 * the write queue.
 */
static void shrink_end(struct sk_buff *skb)
{
	memmove(skb->head + skb->end - 64, skb_shinfo(skb), sizeof(struct skb_shared_info));
	skb->end -= 64;
	skb->truesize -= 64;
	sk_wmem_queued_add(&sk, -64);
	sk_mem_uncharge(ERA_6_12, &sk, 64);
}

/* Trim, cut and shift while clones live: charge and room stay what they were. */
static void unclone_keeps_truesize(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			unsigned int truesize[3], end;
			struct sk_buff *a, *b;

			open_sock(SKB_FRAG_PAGE_ORDER);
			for (int i = 0; i < 3; i++) {
				tcp_sendmsg(era, &sk, data + i * BLOCK % BYTES, BLOCK);
				shrink_end(skb_peek_tail(&sk.sk_write_queue));
				tcp_write_xmit(era, trim, &sk);
				truesize[i] = nth(i)->truesize;
			}
			end = skb_end_offset(nth(0));
			check(era, trim);

			assert_int_equal(tcp_trim_head(era, trim, &sk, nth(0), MSS), 0);
			assert_int_equal(nth(0)->truesize, truesize[0] - MSS);
			assert_int_equal(skb_end_offset(nth(0)), end);
			tcp_adjust_pcount(&sk, nth(0), 1);
			sk.snd_una += MSS;
			check(era, trim);

			/* The second and the third: cut behind 20 segments, then shifted. */
			a = nth(1);
			assert_int_equal(sack(era, trim, BLOCK, BLOCK + 20 * MSS), 20);
			b = nth(2);
			assert_int_equal(skb_end_offset(a), end);
			assert_int_equal(a->truesize, truesize[1] - (BLOCK - 20 * MSS));
			assert_int_equal(b->truesize,
					 SKB_TRUESIZE(skb_end_offset(b)) + BLOCK - 20 * MSS);
			assert_int_equal(sack(era, trim, BLOCK + 20 * MSS, 3 * BLOCK),
					 2 * BLOCK_SEGS - 20);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
			assert_int_equal(skb_end_offset(a), end);
			assert_int_equal(a->truesize, truesize[1] + BLOCK);
			check(era, trim);
			close_sock(era);
		}
}

#ifdef SKB_TRACED
/* A cut of a SACK needs a head, a pair and its head: without any of them nothing is tagged. */
static void cut_without_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_era (era)
		for_each_trim(trim) for (int k = 1; k <= 3; k++)
		{
			open_sock(0);
			send_one(era, trim);
			model_fail = fail_nth;
			fail_in = k;
			assert_int_equal(sack(era, trim, 10 * MSS, 20 * MSS), 0);
			assert_int_equal(fail_in, 0);
			model_fail = NULL;
			assert_int_equal(sk.tcp_rtx_queue.qlen, 1);
			assert_int_equal(oldest()->len, BYTES);
			assert_int_equal(sk.packets_out, 45);
			assert_int_equal(sack(era, trim, 10 * MSS, 20 * MSS), 10);
			close_sock(era);
		}
}

/* A shift between two that have clones needs two heads: without one of them it is a tag. */
static void shift_without_memory(void **state)
{
	(void)state;
	counts_start();
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim) for (int k = 1; k <= 3; k++)
		{
			send_blocks(era, trim, 3);
			assert_int_equal(sack(era, trim, BLOCK, 2 * BLOCK), BLOCK_SEGS);
			model_fail = fail_nth;
			fail_in = k;
			assert_int_equal(sack(era, trim, 2 * BLOCK, 3 * BLOCK), BLOCK_SEGS);
			model_fail = NULL;
			assert_int_equal(fail_in, k == 3 ? 1 : 0);
			assert_int_equal(sk.tcp_rtx_queue.qlen, k == 3 ? 2 : 3);
			assert_int_equal(sk.sacked_out, 2 * BLOCK_SEGS);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), 3 * BLOCK_SEGS);
			check(era, trim);
			close_sock(era);
		}
}

/* The clones of both complete at any moment of a shift. */
static int complete_at;
static enum skb_era complete_era;

static void complete_now(void)
{
	if (complete_at && --complete_at == 0)
		tx_ring_complete(complete_era, &ring, 64);
}

static void completion_during_shift(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			bool raced = true;

			for (int at = 1; raced; at++) {
				send_blocks(era, trim, 3);
				assert_int_equal(sack(era, trim, BLOCK, 2 * BLOCK), BLOCK_SEGS);
				counts_start();
				complete_era = era;
				complete_at = at;
				model_access = complete_now;
				assert_int_equal(
					tcp_sack(era, trim, &sk, 1 + 2 * BLOCK, 1 + 3 * BLOCK),
					BLOCK_SEGS);
				model_access = NULL;
				raced = !complete_at;
				complete_at = 0;
				check(era, trim);
				assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
				check_bytes(nth(1));
				close_sock(era);
			}
		}
}
#endif

/*
 * --- lazy trimming
 * ------------------------------------------------------------------------------------------
 */

/* Part of a SACKed sk_buff is acknowledged, then the next one is to be shifted into it. */
static void note_before_shift(void **state)
{
	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
		for_each_trim(trim)
		{
			u32 una = 1 + BLOCK + 5 * MSS + 100, left = BLOCK - 5 * MSS - 100;
			struct sk_buff *a;
			int segs;

			send_blocks(era, trim, 3);
			complete_all(era);
			a = nth(1);
			assert_int_equal(sack(era, trim, BLOCK, 2 * BLOCK), BLOCK_SEGS);
			assert_int_equal(tcp_ack(era, trim, &sk, una), BLOCK_SEGS + 5);
			assert_ptr_equal(a, oldest());
			if (trim == TRIM_OFFSET_ACK)
				assert_int_equal(TCP_SKB_CB(a)->offset_ack, 5 * MSS + 100);
			segs = DIV_ROUND_UP(left, MSS);
			assert_int_equal(tcp_skb_pcount(era, a), segs);

			assert_int_equal(sack(era, trim, 2 * BLOCK, 3 * BLOCK), BLOCK_SEGS);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 1);
			assert_int_equal(TCP_SKB_CB(a)->seq, una);
			assert_int_equal(TCP_SKB_CB(a)->offset_ack, 0);
			assert_int_equal(a->len, left + BLOCK);
			assert_int_equal(tcp_skb_pcount(era, a), segs + BLOCK_SEGS);
			assert_int_equal(sk.sacked_out, segs + BLOCK_SEGS);
			assert_int_equal(tcp_ack(era, trim, &sk, sk.snd_nxt), segs + BLOCK_SEGS);
			assert_int_equal(sk.packets_out, 0);
			assert_int_equal(sk.delivered, 3 * BLOCK_SEGS);
			close_sock(era);
		}
}

/* Segments are counted from what is left, so that both ways cut at the same sequence numbers. */
static void note_before_cut(void **state)
{
	(void)state;
	for_each_era (era)
		for_each_trim(trim)
		{
			u32 una = 10 * MSS + 100;

			open_sock(0);
			send_one(era, trim);
			complete_all(era);
			assert_int_equal(tcp_ack(era, trim, &sk, 1 + una), 10);
			assert_int_equal(sack(era, trim, 20 * MSS, 30 * MSS), 9);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 3);
			assert_int_equal(TCP_SKB_CB(nth(0))->seq, 1 + una);
			assert_int_equal(TCP_SKB_CB(nth(1))->seq, 1 + una + 10 * MSS);
			assert_int_equal(nth(1)->len, 9 * MSS);
			assert_int_equal(TCP_SKB_CB(nth(0))->offset_ack, 0);
			close_sock(era);
		}
}

#ifdef SKB_TRACED
/* Without memory to trim it a noted sk_buff is neither cut nor shifted into. */
static void note_without_memory(void **state)
{
	const enum tcp_trim trim = TRIM_OFFSET_ACK;

	(void)state;
	counts_start();
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		open_sock(0);
		send_one(era, trim);
		tcp_ack(era, trim, &sk, 1 + 10 * MSS);
		model_fail = fail_nth;
		fail_in = 1;
		assert_int_equal(sack(era, trim, 20 * MSS, 30 * MSS), 0);
		model_fail = NULL;
		assert_int_equal(TCP_SKB_CB(oldest())->offset_ack, 10 * MSS);
		assert_int_equal(sk.tcp_rtx_queue.qlen, 1);
		assert_int_equal(sack(era, trim, 20 * MSS, 30 * MSS), 10);
		close_sock(era);

		send_blocks(era, trim, 3);
		sack(era, trim, BLOCK, 2 * BLOCK);
		tcp_ack(era, trim, &sk, 1 + BLOCK + 5 * MSS);
		model_fail = fail_nth;
		fail_in = 1;
		assert_int_equal(sack(era, trim, 2 * BLOCK, 3 * BLOCK), BLOCK_SEGS);
		model_fail = NULL;
		assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
		assert_int_equal(TCP_SKB_CB(oldest())->offset_ack, 5 * MSS);
		assert_int_equal(TCP_SKB_CB(nth(1))->sacked, TCPCB_SACKED_ACKED);
		close_sock(era);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(refused),
		cmocka_unit_test(rounded),
		cmocka_unit_test(split_and_shift),
		cmocka_unit_test(partial_shift),
		cmocka_unit_test(hole),
		cmocka_unit_test(record_ends),
		cmocka_unit_test(segment_sizes),
		cmocka_unit_test(linear_stays),
		cmocka_unit_test(fin),
		cmocka_unit_test(tags),
		cmocka_unit_test(shift_limits),
		cmocka_unit_test(shift_stops_in_time),
		cmocka_unit_test(unclone_keeps_truesize),
#ifdef SKB_TRACED
		cmocka_unit_test(cut_without_memory),
		cmocka_unit_test(shift_without_memory),
		cmocka_unit_test(completion_during_shift),
		cmocka_unit_test(note_without_memory),
#endif
		cmocka_unit_test(note_before_shift),
		cmocka_unit_test(note_before_cut),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
