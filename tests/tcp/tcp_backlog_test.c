/* SPDX-License-Identifier: MIT */
/* The socket lock and the backlog on one CPU: limits, coalescing, the hand-over, the lock's calls. */
#include "tests/tcp/tcp_rx_test.h"

#define RCVBUF (1 << 20)

static u8 got[1 << 20];

static u32 backlog_count(void)
{
	u32 n = 0;

	for (const struct sk_buff *skb = sk.sk_backlog.head; skb; skb = skb->next)
		n++;
	return n;
}

static void read_all(enum skb_era era, enum tcp_defer d, u32 from, u32 len)
{
	assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, sizeof(got), MSG_DONTWAIT),
			 len);
	check_stream(got, from, len);
}

/*
 * --- T13
 * --------------------------------------------------------------------------------------
 */

static int rcv_calls;
static u32 late_seq; /* what comes in while the owner works off the backlog; 0: nothing */
static enum skb_era late_era;
static int len_seen[8];

/* The socket's own function, and what a softirq does meanwhile. */
static int watched_rcv(struct sock *s, struct sk_buff *skb)
{
	assert_ptr_equal(s, &sk);
	assert_true(sock_owned_by_user(s));
	assert_int_equal(s->sk_lock.slock.locked, 0);
	assert_null(skb->next);
	len_seen[rcv_calls++] = s->sk_backlog.len;
	if (late_seq) {
		deliver_packet(
			late_era, TCP_DEFER_INLINE,
			&(struct packet){ .seq = late_seq, .len = MSS, .shape = SHAPE_PAGES });
		late_seq = 0;
	}
	return tcp_v4_do_rcv(late_era, s, skb);
}

static void t13(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		int x_truesize, delta, z_truesize, w_truesize;
		struct sk_buff *x, *y, *z;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		sk.sk_backlog_rcv = watched_rcv;
		late_era = era;
		rcv_calls = 0;
		lock_sock(SOCK_WAIT_SPIN, &sk);

		x = make_packet(era,
				&(struct packet){ .seq = 1, .len = MSS, .shape = SHAPE_PAGES });
		x_truesize = (int)x->truesize;
		tcp_v4_rcv(era, TCP_DEFER_INLINE, net, x);
		assert_int_equal(sk.sk_backlog.len, x_truesize);
		assert_int_equal(backlog_count(), 1);

		y = make_packet(
			era, &(struct packet){ .seq = 1 + MSS, .len = MSS, .shape = SHAPE_PAGES });
		delta = (int)(y->truesize - SKB_TRUESIZE(skb_end_offset(y)));
		tcp_v4_rcv(era, TCP_DEFER_INLINE, net, y);
		assert_int_equal(backlog_count(), 1);
		assert_int_equal(sk.sk_backlog.len, x_truesize + delta);
		assert_int_equal(x->truesize, x_truesize + delta);
		assert_int_equal(x->len, TCP_WIRE_TCP_BYTES + 2 * MSS);
		assert_int_equal(skb_shinfo(x)->gso_segs, 2);
		assert_int_equal(skb_shinfo(x)->gso_size, MSS);
		assert_int_equal(stats(TCP_MIB_BACKLOGCOALESCE), 1);

		/* Z does not continue them. */
		z = make_packet(
			era,
			&(struct packet){ .seq = 1 + 3 * MSS, .len = MSS, .shape = SHAPE_PAGES });
		z_truesize = (int)z->truesize;
		tcp_v4_rcv(era, TCP_DEFER_INLINE, net, z);
		assert_int_equal(backlog_count(), 2);
		assert_int_equal(sk.sk_backlog.len, x_truesize + delta + z_truesize);
		check();
		assert_int_equal(sk.rcv_nxt, 1); /* nothing of it is processed */
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);

		/* W comes in meanwhile: the same loop takes it, and len is 0 only at the end. */
		late_seq = 1 + 2 * MSS;
		w_truesize = (int)x_truesize;
		release_sock(&sk);
		assert_int_equal(rcv_calls, 3);
		assert_int_equal(len_seen[0], x_truesize + delta + z_truesize);
		assert_int_equal(len_seen[1], x_truesize + delta + z_truesize + w_truesize);
		assert_int_equal(len_seen[2], x_truesize + delta + z_truesize + w_truesize);
		assert_int_equal(sk.sk_backlog.len, 0);
		assert_null(sk.sk_backlog.head);
		assert_null(sk.sk_backlog.tail);
		assert_int_equal(sk.sk_lock.owned, 0);
		/* In the order of arrival: Z came before W and was out of sequence. */
		assert_int_equal(sk.rcv_nxt, 1 + 3 * MSS);
		assert_int_equal(stats(TCP_MIB_OFODROP), 1);
		read_all(era, TCP_DEFER_INLINE, 1, 3 * MSS);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/* V comes when len says full, though the list is empty: the owner is still at work. */
static int full_rcv(struct sock *s, struct sk_buff *skb)
{
	assert_null(s->sk_backlog.head);
	assert_int_equal(backlog_count(), 0);
	deliver(late_era, TCP_DEFER_INLINE, 1 + MSS, MSS);
	assert_null(s->sk_backlog.head);
	assert_int_equal(stats(TCP_MIB_BACKLOGDROP), 1);
	/* slock was released: it can be taken. */
	bh_lock_sock(s);
	bh_unlock_sock(s);
	return tcp_v4_do_rcv(late_era, s, skb);
}

static void dropped_while_the_list_is_empty(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		u32 limit;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		late_era = era;
		sk.sk_backlog_rcv = full_rcv;
		limit = tcp_backlog_limit(&sk);
		lock_sock(SOCK_WAIT_SPIN, &sk);
		deliver(era, TCP_DEFER_INLINE, 1, MSS);
		sk.sk_backlog.len = (int)limit + 1;
		release_sock(&sk);
		assert_int_equal(sk.sk_backlog.len, 0);
		assert_int_equal(sk.sk_drops.counter, 1);
		assert_int_equal(sk.rcv_nxt, 1 + MSS);
		read_all(era, TCP_DEFER_INLINE, 1, MSS);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/*
 * --- the limit
 * --------------------------------------------------------------------------------------
 */

static void limit_is_the_kernels(void **state)
{
	static const struct {
		int rcvbuf, sndbuf;
		u32 limit;
	} t[] = {
		{ 0, 0, 65536 },
		{ 131072, 16384, 262144 + 8192 + 65536 },
		{ 6291456, 4194304, 12582912 + 2097152 + 65536 },
		{ INT32_MAX, 0, 0xfffffffe }, /* not a sum that wraps: 64 KB more would */
		{ INT32_MAX, INT32_MAX, 0xffffffff },
		{ 1073741824, 2, 2147483648u + 1 + 65536 },
	};
	struct sock s = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		u64 sum = 2 * (u64)t[i].rcvbuf + (u64)t[i].sndbuf / 2 + 65536;

		s.sk_rcvbuf = t[i].rcvbuf;
		s.sk_sndbuf = t[i].sndbuf;
		assert_int_equal(tcp_backlog_limit(&s), min(sum, (u64)0xffffffff));
		if (i != 3)
			assert_int_equal(tcp_backlog_limit(&s), t[i].limit);
	}
}

/* What is there before the packet is compared, and with "more than": the last one may be large. */
static void compared_before_adding(void **state)
{
	const enum skb_era era = ERA_6_12;
	struct sk_buff *skb[4];
	int each;

	(void)state;
	open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
	for (u32 i = 0; i < 4; i++)
		skb[i] = make_packet(era, &(struct packet){ .seq = i, .len = 0 });
	each = (int)skb[0]->truesize;
	lock_sock(SOCK_WAIT_SPIN, &sk);
	bh_lock_sock(&sk);
	assert_int_equal(sk_add_backlog(&sk, skb[0], 0), 0); /* 0 is not more than 0 */
	assert_int_equal(sk_add_backlog(&sk, skb[1], each - 1), -ENOBUFS);
	assert_int_equal(sk.sk_backlog.len, each);
	assert_int_equal(sk_add_backlog(&sk, skb[1], each), 0);
	/* What the receive queue holds counts, too. */
	sk.sk_rmem_alloc.counter = 100;
	assert_int_equal(sk_add_backlog(&sk, skb[2], 2 * each + 99), -ENOBUFS);
	assert_int_equal(sk_add_backlog(&sk, skb[2], 2 * each + 100), 0);
	sk.sk_rmem_alloc.counter = 0;
	skb[3]->pfmemalloc = 1;
	assert_int_equal(sk_add_backlog(&sk, skb[3], ~0U), -ENOMEM);
	assert_int_equal(sk.sk_backlog.len, 3 * each);
	assert_int_equal(backlog_count(), 3);
	assert_ptr_equal(sk.sk_backlog.head, skb[0]);
	assert_ptr_equal(sk.sk_backlog.tail, skb[2]);
	bh_unlock_sock(&sk);
	kfree_skb(era, skb[3]);
	sk.skc_state = TCP_CLOSE; /* the backlog is dropped */
	release_sock(&sk);
	close_rx(era, TCP_DEFER_INLINE);
}

/* Beyond the limit a packet may still join the last, as long as that one has room. */
static void coalesces_beyond_the_limit(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		u32 seq = 1;
		int before;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		lock_sock(SOCK_WAIT_SPIN, &sk);
		deliver(era, TCP_DEFER_INLINE, seq, MSS);
		seq += MSS;
		sk.sk_backlog.len += (int)tcp_backlog_limit(&sk);
		for (int i = 1; i < MAX_SKB_FRAGS; i++, seq += MSS) {
			before = sk.sk_backlog.len;
			deliver(era, TCP_DEFER_INLINE, seq, MSS);
			assert_int_equal(sk.sk_backlog.len, before + (int)PAGE_SIZE);
			check();
		}
		assert_int_equal(stats(TCP_MIB_BACKLOGCOALESCE), MAX_SKB_FRAGS - 1);
		assert_int_equal(stats(TCP_MIB_BACKLOGDROP), 0);
		before = sk.sk_backlog.len;
		deliver(era, TCP_DEFER_INLINE, seq, MSS); /* no frag is left */
		assert_int_equal(stats(TCP_MIB_BACKLOGDROP), 1);
		assert_int_equal(sk.sk_drops.counter, 1);
		assert_int_equal(sk.sk_backlog.len, before);
		assert_int_equal(backlog_count(), 1);
		assert_int_equal(sk.sk_lock.slock.locked, 0);
		release_sock(&sk);
		assert_int_equal(sk.sk_backlog.len, 0);
		read_all(era, TCP_DEFER_INLINE, 1, MAX_SKB_FRAGS * MSS);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/*
 * --- which headers join. All packets are too long to be condensed: a short one lies in a head that
 * cannot be stolen.
 * --------------------------------------------------------------------------------------
 */

static void headers_that_do_not_join(void **state)
{
	static const struct packet first = {
		.seq = 1, .len = 300, .shape = SHAPE_PAGES, .tsval = 7
	};
	static const struct packet second[] = {
		{ .seq = 302, .len = 300, .tsval = 7 }, /* a hole */
		{ .seq = 300, .len = 300, .tsval = 7 }, /* a byte twice */
		{ .seq = 301, .len = 300, .tsval = 8 }, /* another timestamp */
		{ .seq = 301, .len = 300, .tsval = 7, .tos = 1 },
		{ .seq = 301, .len = 300, .tsval = 7, .flags = TCPHDR_SYN },
		{ .seq = 301, .len = 300, .tsval = 7, .flags = TCPHDR_RST },
		{ .seq = 301, .len = 300, .tsval = 7, .flags = TCPHDR_URG },
		{ .seq = 301, .len = 300, .tsval = 7, .flags = TCPHDR_ECE },
		{ .seq = 301, .len = 300, .tsval = 7, .flags = TCPHDR_CWR },
		{ .seq = 301, .len = 300, .tsval = 7, .no_ack = true },
		{ .seq = 301, .len = 2 * MSS, .tsval = 7, .shape = SHAPE_LIST },
	};

	(void)state;
	for_each_rx_era(era) for (size_t i = 0; i < ARRAY_SIZE(second); i++)
	{
		struct packet p = second[i];

		if (!p.shape)
			p.shape = SHAPE_PAGES;
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		lock_sock(SOCK_WAIT_SPIN, &sk);
		deliver_packet(era, TCP_DEFER_INLINE, &first);
		deliver_packet(era, TCP_DEFER_INLINE, &p);
		if (backlog_count() != 2)
			fail_msg("packet %zu joined", i);
		/* What was tried left no trace. */
		assert_int_equal(sk.sk_backlog.tail->len, TCP_WIRE_TCP_BYTES + p.len);
		assert_ptr_equal(sk.sk_backlog.tail->data, tcp_hdr(sk.sk_backlog.tail));
		assert_int_equal(stats(TCP_MIB_BACKLOGCOALESCE), 0);
		check();
		release_sock(&sk);
		tcp_recvmsg(era, TCP_DEFER_INLINE, SOCK_WAIT_SPIN, &sk, got, sizeof(got),
			    MSG_DONTWAIT);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/* Another header length does not join either: its options would be lost. */
static void header_lengths_differ(void **state)
{
	struct sk_buff *skb;

	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	lock_sock(SOCK_WAIT_SPIN, &sk);
	deliver(ERA_6_12, TCP_DEFER_INLINE, 1, 300);
	skb = make_packet(ERA_6_12,
			  &(struct packet){ .seq = 301, .len = 12, .shape = SHAPE_LINEAR });
	tcp_hdr(skb)->doff_res = 5 << 4; /* the timestamps are payload now */
	tcp_v4_rcv(ERA_6_12, TCP_DEFER_INLINE, net, skb);
	assert_int_equal(backlog_count(), 2);
	release_sock(&sk);
	assert_int_equal(sk.rcv_nxt, 301 + 24);
	tcp_recvmsg(ERA_6_12, TCP_DEFER_INLINE, SOCK_WAIT_SPIN, &sk, got, 1000, MSG_DONTWAIT);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

static u16 window_of(const struct sk_buff *skb)
{
	return __builtin_bswap16(tcp_hdr(skb)->window);
}

/* The last header counts, but an older ACK brings no window. */
static void joined_header(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		const struct sk_buff *tail;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		sk.snd_nxt = 100;
		lock_sock(SOCK_WAIT_SPIN, &sk);
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 1,
						 .len = 300,
						 .ack_seq = 50,
						 .window = 300,
						 .shape = SHAPE_PAGES });
		tail = sk.sk_backlog.tail;
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 301,
						 .len = 350,
						 .ack_seq = 60,
						 .window = 400,
						 .shape = SHAPE_PAGES,
						 .flags = TCPHDR_PSH });
		assert_int_equal(TCP_SKB_CB(tail)->ack_seq, 60);
		assert_int_equal(window_of(tail), 400);
		assert_true(tcp_hdr(tail)->flags & TCPHDR_PSH);
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 651,
						 .len = 600,
						 .ack_seq = 55,
						 .window = 500,
						 .shape = SHAPE_PAGES });
		assert_int_equal(TCP_SKB_CB(tail)->ack_seq, 60);
		assert_int_equal(window_of(tail), 400);
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 1251,
						 .len = 310,
						 .ack_seq = 60,
						 .window = 600,
						 .shape = SHAPE_PAGES,
						 .flags = TCPHDR_FIN });
		assert_int_equal(window_of(tail), 600);
		assert_int_equal(backlog_count(), 1);
		assert_true(tcp_hdr(tail)->flags & TCPHDR_FIN);
		assert_true(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_FIN);
		assert_int_equal(TCP_SKB_CB(tail)->end_seq, 1562);
		/* The largest of the sizes, the sum of the counts. */
		assert_int_equal(skb_shinfo(tail)->gso_size, 600);
		assert_int_equal(skb_shinfo(tail)->gso_segs, 4);
		check();
		sk.snd_nxt = 1;
		TCP_SKB_CB(tail)->ack_seq = 1;
		release_sock(&sk);
		assert_int_equal(sk.rcv_nxt, 1562);
		assert_true(sk.sk_shutdown & RCV_SHUTDOWN);
		read_all(era, TCP_DEFER_INLINE, 1, 1560);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

static void segments_are_capped(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	lock_sock(SOCK_WAIT_SPIN, &sk);
	deliver(ERA_6_12, TCP_DEFER_INLINE, 1, 300);
	skb_shinfo(sk.sk_backlog.tail)->gso_segs = 65535;
	skb_shinfo(sk.sk_backlog.tail)->gso_size = 8;
	deliver(ERA_6_12, TCP_DEFER_INLINE, 301, 300);
	assert_int_equal(backlog_count(), 1);
	assert_int_equal(skb_shinfo(sk.sk_backlog.tail)->gso_segs, 65535);
	assert_int_equal(skb_shinfo(sk.sk_backlog.tail)->gso_size, 300);
	release_sock(&sk);
	read_all(ERA_6_12, TCP_DEFER_INLINE, 1, 600);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

/* Bytes that fit behind the header go there, so that little truesize waits. */
static void condensed(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		struct sk_buff *skb = make_packet(
			era, &(struct packet){ .seq = 1, .len = 10, .shape = SHAPE_PAGES });
		u32 room = skb_end_offset(skb);

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		lock_sock(SOCK_WAIT_SPIN, &sk);
		tcp_v4_rcv(era, TCP_DEFER_INLINE, net, skb);
		assert_int_equal(skb_shinfo(skb)->nr_frags, 0);
		assert_int_equal(sk.sk_backlog.len, SKB_TRUESIZE(room));
		release_sock(&sk);
		read_all(era, TCP_DEFER_INLINE, 1, 10);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/*
 * --- the reader's side
 * --------------------------------------------------------------------------------------
 */

static void flushed_on_the_way(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		lock_sock(SOCK_WAIT_SPIN, &sk);
		assert_false(sk_backlog_pending(&sk));
		deliver(era, TCP_DEFER_INLINE, 1, MSS);
		assert_true(sk_backlog_pending(&sk));
		assert_int_equal(tcp_inq(&sk), 0);
		__sk_flush_backlog(&sk);
		assert_true(sock_owned_by_user(&sk));
		assert_int_equal(sk.sk_lock.slock.locked, 0);
		assert_int_equal(sk.sk_backlog.len, 0);
		assert_int_equal(tcp_inq(&sk), MSS);
		release_sock(&sk);
		read_all(era, TCP_DEFER_INLINE, 1, MSS);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

static void lock_states(void **state)
{
	bool slow;

	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	lock_sock(SOCK_WAIT_SPIN, &sk);
	assert_true(sock_owned_by_user(&sk));
	assert_int_equal(sk.sk_lock.slock.locked, 0);
	bh_lock_sock(&sk);
	assert_int_equal(sk.sk_lock.slock.locked, 1);
	assert_true(sock_owned_by_user(&sk));
	bh_unlock_sock(&sk);
	release_sock(&sk);
	assert_false(sock_owned_by_user(&sk));

	slow = lock_sock_fast(SOCK_WAIT_SPIN, &sk);
	assert_false(slow);
	assert_int_equal(sk.sk_lock.slock.locked, 1);
	assert_false(sock_owned_by_user(&sk));
	unlock_sock_fast(&sk, slow);
	assert_int_equal(sk.sk_lock.slock.locked, 0);
	lock_sock(SOCK_WAIT_SLEEP, &sk);
	release_sock(&sk);
	assert_int_equal(sk.sk_lock.waiters, 0);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13),
		cmocka_unit_test(dropped_while_the_list_is_empty),
		cmocka_unit_test(limit_is_the_kernels),
		cmocka_unit_test(compared_before_adding),
		cmocka_unit_test(coalesces_beyond_the_limit),
		cmocka_unit_test(headers_that_do_not_join),
		cmocka_unit_test(header_lengths_differ),
		cmocka_unit_test(joined_header),
		cmocka_unit_test(segments_are_capped),
		cmocka_unit_test(condensed),
		cmocka_unit_test(flushed_on_the_way),
		cmocka_unit_test(lock_states),
	};

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
