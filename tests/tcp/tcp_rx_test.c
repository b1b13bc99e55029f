/* SPDX-License-Identifier: MIT */
/* The receive side on one CPU: segments, charges, readers, windows, the end of a connection. */
#include "tests/tcp/tcp_rx_test.h"

#define RCVBUF (4 << 20)

static u8 got[1 << 20];

static int read_some(enum skb_era era, enum tcp_defer d, u32 len, int flags)
{
	int n;

	memset(got, 0xee, len);
	n = tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, len, flags | MSG_DONTWAIT);
	check();
	return n;
}

static int queued(void)
{
	return (int)sk.sk_receive_queue.qlen;
}

/*
 * --- lookup
 * --------------------------------------------------------------------------------------
 */

static void lookup_finds_the_tuple(void **state)
{
	struct inet_tuple other[4] = { tuple, tuple, tuple, tuple };
	struct sock second;

	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	other[0].saddr++;
	other[1].daddr++;
	other[2].sport++;
	other[3].dport++;
	assert_ptr_equal(__inet_lookup_established(net, &tuple), &sk);
	assert_int_equal(refcount_read(&sk.sk_refcnt, SKB_C_SK_REFCNT), 2);
	assert_false(sock_unused(&sk));
	sock_put(&sk);
	assert_true(sock_unused(&sk));
	for (int i = 0; i < 4; i++)
		assert_null(__inet_lookup_established(net, &other[i]));

	memset(&second, 0, sizeof(second));
	second.sk_net = net;
	assert_int_equal(inet_hash(net, &second, &tuple), -EEXIST);
	inet_unhash(&second);
	assert_int_equal(inet_hash(net, &second, &other[2]), 0);
	refcount_set(&second.sk_refcnt, 1, SKB_C_SK_REFCNT);
	assert_ptr_equal(__inet_lookup_established(net, &other[2]), &second);
	assert_ptr_equal(__inet_lookup_established(net, &tuple), &sk);
	sock_put(&sk);
	sock_put(&second);
	inet_unhash(&second);
	inet_unhash(&second);
	assert_null(__inet_lookup_established(net, &other[2]));
	inet_rcu_synchronize();

	inet_unhash(&sk);
	assert_int_equal(tcp_v4_rcv(ERA_6_12, TCP_DEFER_INLINE, net,
				    make_packet(ERA_6_12, &(struct packet){ .seq = 1, .len = 10 })),
			 -ENOENT);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

static void header_cut_short(void **state)
{
	struct sk_buff *skb;

	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	skb = make_packet(ERA_6_12, &(struct packet){ .seq = 1, .len = 0 });
	pskb_trim(ERA_6_12, skb, 31);
	assert_int_equal(tcp_v4_rcv(ERA_6_12, TCP_DEFER_INLINE, net, skb), -EINVAL);
	skb = make_packet(ERA_6_12, &(struct packet){ .seq = 1, .len = 0 });
	tcp_hdr(skb)->doff_res = 4 << 4;
	assert_int_equal(tcp_v4_rcv(ERA_6_12, TCP_DEFER_INLINE, net, skb), -EINVAL);
	skb = make_packet(ERA_6_12, &(struct packet){ .seq = 1, .len = 0 });
	pskb_trim(ERA_6_12, skb, 19);
	assert_int_equal(tcp_v4_rcv(ERA_6_12, TCP_DEFER_INLINE, net, skb), -EINVAL);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

/*
 * --- reading
 * --------------------------------------------------------------------------------------
 */

static void bytes_in_order(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d) for (enum shape shape = 0; shape < SHAPE_NR; shape++)
	{
		u32 seq = 1, len = shape == SHAPE_LINEAR ? 900 : 5 * MSS + 17;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		for (int i = 0; i < 5; i++, seq += len) {
			deliver_packet(era, d,
				       &(struct packet){ .seq = seq, .len = len, .shape = shape });
			check();
		}
		assert_int_equal(tcp_inq(&sk), 5 * len);
		/* Across sk_buffs, frags and list members, in odd steps. */
		for (u32 at = 1; at < seq;) {
			u32 want = min(seq - at, 1 + at * 7 % 3001);

			assert_int_equal(read_some(era, d, want, 0), want);
			check_stream(got, at, want);
			at += want;
			assert_int_equal(sk.copied_seq, at);
		}
		assert_int_equal(read_some(era, d, 1, 0), -EAGAIN);
		assert_int_equal(sk.bytes_received, 5 * len);
		close_rx(era, d);
	}
}

static void peek_leaves_trunc_drops(void **state)
{
	const enum skb_era era = ERA_6_12;

	(void)state;
	for_each_defer(d)
	{
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		deliver_packet(era, d,
			       &(struct packet){ .seq = 1, .len = 3 * MSS, .shape = SHAPE_LIST });
		deliver_packet(
			era, d,
			&(struct packet){ .seq = 1 + 3 * MSS, .len = 100, .shape = SHAPE_LIST });
		assert_int_equal(read_some(era, d, 3 * MSS + 50, MSG_PEEK), 3 * MSS + 50);
		check_stream(got, 1, 3 * MSS + 50);
		assert_int_equal(sk.copied_seq, 1);
		assert_int_equal(queued(), 2);
		assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, NULL, 10,
					     MSG_TRUNC | MSG_DONTWAIT),
				 10);
		assert_int_equal(read_some(era, d, 20, MSG_PEEK), 20);
		check_stream(got, 11, 20);
		assert_int_equal(read_some(era, d, 1 << 16, 0), 3 * MSS + 90);
		check_stream(got, 11, 3 * MSS + 90);
		assert_int_equal(read_some(era, d, 0, 0), 0);
		close_rx(era, d);
	}
}

/* What is there beyond the low-water mark is not waited for, what is missing is. */
static void how_much_is_enough(void **state)
{
	const enum skb_era era = ERA_6_12;
	const enum tcp_defer d = TCP_DEFER_SK_LLIST;

	(void)state;
	open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
	deliver(era, d, 1, 100);
	assert_int_equal(read_some(era, d, 1000, MSG_WAITALL),
			 100); /* may not wait: what there is */
	sk.sk_rcvlowat = 50;
	deliver(era, d, 101, 60);
	/* A call that may wait returns by itself: the mark is reached. */
	assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, 1000, 0), 60);
	deliver(era, d, 161, 10);
	/* Less is asked for than the mark. */
	assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, 10, 0), 10);
	close_rx(era, d);
}

static void fin_ends_the_stream(void **state)
{
	(void)state;
	for_each_rx_era(era)
		for_each_defer(d) for (int with_bytes = 0; with_bytes < 2; with_bytes++)
	{
		u32 n = with_bytes ? 200 : 0;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		deliver(era, d, 1, 300);
		deliver_packet(
			era, d,
			&(struct packet){
				.seq = 301, .len = n, .shape = SHAPE_PAGES, .flags = TCPHDR_FIN });
		check();
		assert_int_equal(sk.rcv_nxt, 302 + n);
		assert_true(sk.sk_shutdown & RCV_SHUTDOWN);
		assert_int_equal(read_some(era, d, 1000, MSG_PEEK), 300 + n);
		/* A call that may wait does not: nothing more will come. */
		assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, 5000, MSG_WAITALL),
				 300 + n);
		check_stream(got, 1, 300 + n);
		assert_int_equal(read_some(era, d, 10, 0), 0);
		assert_int_equal(queued(), 0);
		assert_int_equal(sk.copied_seq, sk.rcv_nxt);
		close_rx(era, d);
	}
}

/*
 * --- charges
 * --------------------------------------------------------------------------------------
 */

static void charged_until_consumed(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		struct sk_buff *skb;
		int truesize;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		skb = make_packet(
			era, &(struct packet){ .seq = 1, .len = 10 * MSS, .shape = SHAPE_LIST });
		truesize = (int)skb->truesize;
		assert_int_equal(tcp_v4_rcv(era, d, net, skb), 0);
		assert_ptr_equal(skb->sk, &sk);
		assert_ptr_equal(skb->destructor, sock_rfree);
		assert_int_equal(sk.sk_rmem_alloc.counter, truesize);
		assert_int_equal(proto_memory_bytes(&prot) - sk.sk_forward_alloc, truesize);
		/* Not before all of it is read. */
		assert_int_equal(read_some(era, d, 10 * MSS - 1, 0), 10 * MSS - 1);
		assert_int_equal(sk.sk_rmem_alloc.counter, truesize);
		assert_int_equal(read_some(era, d, 1, 0), 1);
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		assert_int_equal(proto_memory_bytes(&prot), sk.sk_forward_alloc);
		assert_in_range(sk.sk_forward_alloc, 0, PAGE_SIZE - 1);
		close_rx(era, d);
	}
}

/* Small packets join the last of the queue: charged by what it grew, until 17 frags are full. */
static void queue_coalesces(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		struct sk_buff *first;
		u32 seq = 1;
		int before_last;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		for (int i = 0; i < MAX_SKB_FRAGS; i++, seq += MSS) {
			deliver(era, d, seq, MSS);
			check();
			assert_int_equal(queued(), 1);
		}
		first = skb_peek(&sk.sk_receive_queue);
		assert_int_equal(first->len, MAX_SKB_FRAGS * MSS);
		assert_int_equal(skb_shinfo(first)->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(stats(TCP_MIB_RCVCOALESCE), MAX_SKB_FRAGS - 1);
		assert_int_equal(sk.sk_rmem_alloc.counter, first->truesize);
		before_last = sk.sk_rmem_alloc.counter;
		deliver(era, d, seq, MSS);
		assert_int_equal(queued(), 2);
		assert_int_equal(sk.sk_rmem_alloc.counter - before_last,
				 skb_peek_tail(&sk.sk_receive_queue)->truesize);
		check();
		assert_int_equal(read_some(era, d, 1 << 17, 0), (MAX_SKB_FRAGS + 1) * MSS);
		check_stream(got, 1, (MAX_SKB_FRAGS + 1) * MSS);
		close_rx(era, d);
	}
}

static void no_coalescing_across_a_list(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	deliver_packet(ERA_6_12, TCP_DEFER_INLINE,
		       &(struct packet){ .seq = 1, .len = 2 * MSS, .shape = SHAPE_LIST });
	deliver(ERA_6_12, TCP_DEFER_INLINE, 1 + 2 * MSS, 10);
	assert_int_equal(queued(), 2);
	assert_int_equal(read_some(ERA_6_12, TCP_DEFER_INLINE, 1 << 16, 0), 2 * MSS + 10);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

/* Beyond the receive buffer packets are dropped, but for the first of an empty queue. */
static void receive_buffer_is_full(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		const enum tcp_defer d = TCP_DEFER_INLINE;
		u32 len = 2 * MSS, seq = 1;
		int truesize;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		sk.sk_rcvbuf = 1;
		deliver_packet(era, d,
			       &(struct packet){ .seq = seq, .len = len, .shape = SHAPE_LIST });
		seq += len;
		assert_int_equal(queued(), 1);
		truesize = sk.sk_rmem_alloc.counter;
		sk.sk_rcvbuf = truesize; /* not more than that: one more is taken */
		deliver_packet(era, d,
			       &(struct packet){ .seq = seq, .len = len, .shape = SHAPE_LIST });
		seq += len;
		assert_int_equal(queued(), 2);
		deliver_packet(era, d,
			       &(struct packet){ .seq = seq, .len = len, .shape = SHAPE_LIST });
		assert_int_equal(queued(), 2);
		assert_int_equal(stats(TCP_MIB_RCVQDROP), 1);
		assert_int_equal(sk.rcv_nxt, seq);
		check();
		assert_int_equal(read_some(era, d, 1 << 16, 0), 2 * len);
		close_rx(era, d);
	}
}

/*
 * --- sequence numbers
 * --------------------------------------------------------------------------------------
 */

static void out_of_sequence(void **state)
{
	const enum skb_era era = ERA_6_12;
	const enum tcp_defer d = TCP_DEFER_SK_LLIST;
	u64 acks;

	(void)state;
	open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
	deliver(era, d, 1, 1000);
	acks = sk.ack_out.nr;
	deliver(era, d, 1, 1000); /* old: dropped, an ACK at once */
	assert_int_equal(sk.ack_out.nr, acks + 1);
	deliver(era, d, 1500, 100); /* a hole */
	assert_int_equal(sk.ack_out.nr, acks + 2);
	assert_int_equal(stats(TCP_MIB_OFODROP), 1);
	assert_int_equal(sk.rcv_nxt, 1001);
	deliver(era, d, sk.rcv_nxt + tcp_receive_window(&sk), 100);
	deliver(era, d, sk.rcv_nxt + tcp_receive_window(&sk) + 1, 100);
	assert_int_equal(stats(TCP_MIB_ZEROWINDOWDROP), 2);
	deliver(era, d, 501, 1000); /* half of it is new */
	assert_int_equal(sk.rcv_nxt, 1501);
	assert_int_equal(queued(), 2);
	assert_int_equal(sk.bytes_received, 1500);
	check();
	deliver_packet(era, d,
		       &(struct packet){
			       .seq = 1501, .len = 10, .shape = SHAPE_PAGES, .flags = TCPHDR_RST });
	deliver_packet(
		era, d,
		&(struct packet){ .seq = 1501, .len = 10, .shape = SHAPE_PAGES, .no_ack = true });
	deliver_packet(era, d,
		       &(struct packet){ .seq = 1501,
					 .len = 10,
					 .shape = SHAPE_PAGES,
					 .ack_seq = 2 }); /* beyond what was sent */
	assert_int_equal(sk.rcv_nxt, 1501);
	assert_int_equal(read_some(era, d, 5000, 0), 1500);
	check_stream(got, 1, 1500);
	close_rx(era, d);
}

/* The sequence numbers wrap in the middle of an sk_buff. */
static void wraps(void **state)
{
	(void)state;
	for_each_defer(d)
	{
		u32 seq = 0u - 700;

		open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
		sk.rcv_nxt = sk.copied_seq = sk.rcv_wup = seq;
		for (int i = 0; i < 4; i++)
			deliver_packet(ERA_6_12, d,
				       &(struct packet){ .seq = seq + (u32)i * 500,
							 .len = 500,
							 .shape = SHAPE_LIST });
		check();
		assert_int_equal(read_some(ERA_6_12, d, 5000, 0), 2000);
		check_stream(got, seq, 2000);
		close_rx(ERA_6_12, d);
	}
}

/* The fast path takes what the slow one would have taken, if memory is granted already. */
static void fast_path(void **state)
{
	const enum tcp_defer d = TCP_DEFER_INLINE;

	(void)state;
	for_each_rx_era(era)
	{
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		deliver(era, d, 1, 100);
		assert_int_equal(stats(TCP_MIB_HPHITS), 0);
		sk_rmem_schedule(era, &sk, 1 << 20);
		deliver(era, d, 101, 100);
		assert_int_equal(stats(TCP_MIB_HPHITS), 1);
		/* PSH does not matter, another window does. */
		deliver_packet(era, d,
			       &(struct packet){ .seq = 201,
						 .len = 100,
						 .shape = SHAPE_PAGES,
						 .flags = TCPHDR_PSH });
		assert_int_equal(stats(TCP_MIB_HPHITS), 2);
		deliver_packet(
			era, d,
			&(struct packet){
				.seq = 301, .len = 100, .shape = SHAPE_PAGES, .window = 600 });
		assert_int_equal(stats(TCP_MIB_HPHITS), 2);
		deliver_packet(
			era, d,
			&(struct packet){
				.seq = 401, .len = 100, .shape = SHAPE_PAGES, .window = 600 });
		assert_int_equal(stats(TCP_MIB_HPHITS), 3);
		check();
		assert_int_equal(read_some(era, d, 5000, 0), 500);
		check_stream(got, 1, 500);
		close_rx(era, d);
	}
}

/* A segment that acknowledges what the socket sent frees that, with or without bytes of its own. */
static void acknowledges(void **state)
{
	static const u8 data[3000];

	(void)state;
	for_each_rx_era(era)
	{
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		assert_int_equal(tcp_sendmsg(era, &sk, data, 3000), 3000);
		assert_true(tcp_write_xmit(era, TRIM_EAGER, &sk) > 0);
		tx_ring_complete(era, &ring, 64);
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 1, .len = 0, .ack_seq = 1449 });
		assert_int_equal(sk.snd_una, 1449);
		deliver_packet(era, TCP_DEFER_INLINE,
			       &(struct packet){
				       .seq = 1, .len = 9, .ack_seq = 3001, .shape = SHAPE_PAGES });
		assert_int_equal(sk.snd_una, 3001);
		assert_int_equal(sk.packets_out, 0);
		assert_int_equal(read_some(era, TCP_DEFER_INLINE, 10, 0), 9);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/* A packet of whole pages, with FIRST bytes in front that are none. */
static struct sk_buff *page_packet(enum skb_era era, u32 seq, u32 first, u32 pages)
{
	struct sk_buff *skb = make_packet(
		era, &(struct packet){ .seq = seq, .shape = SHAPE_PAGES, .len = first });

	add_pages(skb, seq + first, pages * (u32)PAGE_SIZE, (u32)PAGE_SIZE);
	return skb;
}

/*
 * --- windows
 * --------------------------------------------------------------------------------------
 */

static void window_follows_the_reader(void **state)
{
	const enum skb_era era = ERA_6_12;
	const enum tcp_defer d = TCP_DEFER_INLINE;
	u32 ack, wnd, first, seq = 1, edge;

	(void)state;
	open_rx(era, SOCK_WAIT_SPIN, 1 << 20);
	tcp_read_ack(&sk, &ack, &first);
	assert_int_equal(ack, 1);
	assert_int_equal(first, (1 << 19) & ~0U << sk.rcv_wscale);
	edge = ack + first;
	/* Nobody reads: the peer fills the window, whose right edge never moves back. */
	for (;;) {
		u32 room;

		tcp_read_ack(&sk, &ack, &wnd);
		assert_false(before(ack + wnd, edge));
		edge = ack + wnd;
		room = edge - seq;
		if (room < 10 * PAGE_SIZE)
			break;
		assert_int_equal(tcp_v4_rcv(era, d, net, page_packet(era, seq, 0, 10)), 0);
		seq += 10 * PAGE_SIZE;
		check();
	}
	assert_int_equal(stats(TCP_MIB_RCVQDROP) + stats(TCP_MIB_ZEROWINDOWDROP), 0);
	/* Once the window can double, a read tells it, and only then. */
	while (sk.copied_seq != seq) {
		u64 acks = sk.ack_out.nr;
		u32 left = tcp_receive_window(&sk);

		assert_true(read_some(era, d, 4000, 0) > 0);
		tcp_read_ack(&sk, &ack, &wnd);
		assert_false(before(ack + wnd, edge));
		edge = ack + wnd;
		if (sk.ack_out.nr != acks && sk.rcv_wup == seq && left)
			assert_true(wnd >= 2 * left);
	}
	tcp_read_ack(&sk, &ack, &wnd);
	assert_int_equal(ack, seq);
	assert_true(wnd >= first / 2);
	close_rx(era, d);
}

static void window_selected(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, 1 << 20);
	sk.icsk_ack.rcv_mss = MSS;
	assert_int_equal(sk.rcv_wscale, 4); /* 512 KB in 16 bits */
	assert_int_equal(__tcp_select_window(&sk), 1 << 19);
	sk.sk_rmem_alloc.counter = 1 << 19;
	assert_int_equal(__tcp_select_window(&sk), 1 << 18);
	sk.sk_backlog.len = 1 << 18; /* what waits counts, too */
	assert_int_equal(__tcp_select_window(&sk), 1 << 17);
	/* Less than a sixteenth, or than a segment, is none. */
	sk.sk_backlog.len = 0;
	sk.sk_rmem_alloc.counter = (1 << 20) - (1 << 16);
	assert_int_equal(__tcp_select_window(&sk), 1 << 15);
	sk.sk_rmem_alloc.counter += 32;
	assert_int_equal(__tcp_select_window(&sk), 0);
	sk.sk_rmem_alloc.counter = 2 << 20;
	assert_int_equal(__tcp_select_window(&sk), 0);
	sk.sk_rmem_alloc.counter = 0;
	/* Without a scale: whole segments. */
	sk.rcv_wscale = 0;
	sk.window_clamp = sk.rcv_ssthresh = 65535;
	sk.rcv_wnd = 0;
	assert_int_equal(__tcp_select_window(&sk), 65535 / MSS * MSS);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

/*
 * --- readers that do not copy
 * --------------------------------------------------------------------------------------
 */

static void splice_takes_references(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		struct tcp_pipe_buffer pipe[16];
		unsigned int nr = ARRAY_SIZE(pipe);
		u32 at = 1;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		assert_int_equal(tcp_splice_read(era, d, SOCK_WAIT_SPIN, &sk, pipe, &nr, 10),
				 -EAGAIN);
		assert_int_equal(nr, 0);
		deliver_packet(era, d,
			       &(struct packet){ .seq = 1, .len = 3 * MSS, .shape = SHAPE_LIST });
		deliver_packet(
			era, d,
			&(struct packet){ .seq = 1 + 3 * MSS, .len = 100, .shape = SHAPE_LINEAR });
		deliver_packet(era, d,
			       &(struct packet){ .seq = 101 + 3 * MSS,
						 .len = 50,
						 .flags = TCPHDR_FIN,
						 .shape = SHAPE_LINEAR });
		check();
		while (at != 151 + 3 * MSS) {
			int n;

			nr = 3;
			n = tcp_splice_read(era, d, SOCK_WAIT_SPIN, &sk, pipe, &nr, 2000);
			check();
			assert_in_range(n, 1, 2000);
			assert_in_range(nr, 1, 3);
			for (unsigned int i = 0; i < nr; i++) {
				check_stream((u8 *)page_address(pipe[i].page) + pipe[i].offset, at,
					     pipe[i].len);
				at += pipe[i].len;
				n -= (int)pipe[i].len;
				put_page(pipe[i].page);
			}
			assert_int_equal(n, 0);
		}
		nr = 3;
		assert_int_equal(tcp_splice_read(era, d, SOCK_WAIT_SPIN, &sk, pipe, &nr, 9), 0);
		assert_int_equal(sk.copied_seq, sk.rcv_nxt);
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		close_rx(era, d);
	}
}

static void zerocopy_maps_whole_pages(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		struct page *page[8];
		u32 seq = 1, hint;
		int n;

		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		assert_int_equal(tcp_zerocopy_receive(era, d, SOCK_WAIT_SPIN, &sk, page, 8, &hint),
				 0);
		assert_int_equal(hint, 0);
		assert_int_equal(tcp_v4_rcv(era, d, net, page_packet(era, 1, 0, 3)), 0);
		seq += 3 * PAGE_SIZE;
		assert_int_equal(tcp_v4_rcv(era, d, net, page_packet(era, seq, 100, 2)), 0);
		check();
		/* Two at a time, then what is left before the 100 bytes. */
		n = tcp_zerocopy_receive(era, d, SOCK_WAIT_SPIN, &sk, page, 2, &hint);
		assert_int_equal(n, 2);
		assert_int_equal(hint, 0);
		n += tcp_zerocopy_receive(era, d, SOCK_WAIT_SPIN, &sk, page + 2, 6, &hint);
		assert_int_equal(n, 3);
		assert_int_equal(hint, 100);
		check();
		for (int i = 0; i < 3; i++) {
			check_stream(page_address(page[i]), 1 + (u32)i * PAGE_SIZE, PAGE_SIZE);
			put_page(page[i]);
		}
		assert_int_equal(read_some(era, d, 100, 0), 100);
		check_stream(got, seq, 100);
		n = tcp_zerocopy_receive(era, d, SOCK_WAIT_SPIN, &sk, page, 8, &hint);
		assert_int_equal(n, 2);
		assert_int_equal(hint, 0);
		for (int i = 0; i < 2; i++)
			put_page(page[i]);
		assert_int_equal(sk.copied_seq, sk.rcv_nxt);
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		close_rx(era, d);
	}
}

/*
 * --- the end
 * --------------------------------------------------------------------------------------
 */

static void disconnect_frees_what_is_queued(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
		for (u32 i = 0; i < 4; i++)
			deliver_packet(era, d,
				       &(struct packet){ .seq = 1 + i * MSS,
							 .len = MSS,
							 .shape = SHAPE_LIST });
		lock_sock(SOCK_WAIT_SPIN, &sk);
		/* Comes too late: the backlog is dropped when the socket is given back. */
		deliver(era, d, 1 + 4 * MSS, MSS);
		tcp_disconnect(era, d, &sk);
		release_sock(&sk);
		check();
		assert_int_equal(queued(), 0);
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		assert_int_equal(tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, 10, 0), 0);
		assert_int_equal(
			tcp_v4_rcv(era, d, net, make_packet(era, &(struct packet){ .seq = 1 })),
			-ENOENT);
		close_rx(era, d);
	}
}

static void destroy_with_deferred(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_12, 64, NUMA_NO_NODE);

	inet_unhash(&sk);
	llist_add(&skb->ll_node, &sk.defer_list);
	tcp_rx_destroy(ERA_6_12, &sk);
}

static void destroy_in_use(void)
{
	inet_unhash(&sk);
	sock_hold(&sk);
	tcp_rx_destroy(ERA_6_12, &sk);
}

static void destroy_hashed(void)
{
	tcp_rx_destroy(ERA_6_12, &sk);
}

static void init_3_4(void)
{
	tcp_rx_init(ERA_3_4, SOCK_WAIT_SPIN, &sk, net, RCVBUF);
}

static void destroy_checks(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	assert_true(is_bug(destroy_with_deferred));
	assert_true(is_bug(destroy_in_use));
	assert_true(is_bug(destroy_hashed));
	assert_true(is_bug(init_3_4));
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

/* What the check is for: each kind of damage is told. */
static void check_finds(void **state)
{
	char err[200];
	struct sk_buff *skb;

	(void)state;
	open_rx(ERA_6_12, SOCK_WAIT_SPIN, RCVBUF);
	for (u32 i = 0; i < 3; i++)
		deliver_packet(ERA_6_12, TCP_DEFER_INLINE,
			       &(struct packet){ .seq = 1 + i * 2 * MSS,
						 .len = 2 * MSS,
						 .shape = SHAPE_LIST });
	skb = skb_peek_tail(&sk.sk_receive_queue);
	check();
	assert_int_equal(tcp_rx_check_quiet(&sk, err, sizeof(err)), -1);
#define DAMAGE(field, wrong)                                               \
	do {                                                               \
		__typeof__(field) right = (field);                         \
		(field) = (wrong);                                         \
		assert_int_equal(tcp_rx_check(&sk, err, sizeof(err)), -1); \
		(field) = right;                                           \
		check();                                                   \
	} while (0)
	DAMAGE(sk.sk_rmem_alloc.counter, sk.sk_rmem_alloc.counter - 1);
	DAMAGE(sk.rcv_nxt, sk.rcv_nxt + 1);
	DAMAGE(sk.sk_receive_queue.qlen, 2);
	DAMAGE(TCP_SKB_CB(skb)->seq, TCP_SKB_CB(skb)->seq + 1);
	DAMAGE(skb->destructor, NULL);
	DAMAGE(skb->sk, NULL);
	DAMAGE(skb->truesize, skb->truesize + 1);
	DAMAGE(skb->len, skb->len + 1);
	DAMAGE(skb->prev, NULL);
	DAMAGE(sk.sk_forward_alloc, -1);
	DAMAGE(sk.copied_seq, 1 + 2 * MSS);
	DAMAGE(sk.rcv_wup, sk.rcv_nxt + 1);
	DAMAGE(sk.sk_backlog.tail, skb);
	assert_int_equal(read_some(ERA_6_12, TCP_DEFER_INLINE, 1 << 16, 0), 6 * MSS);
	assert_int_equal(tcp_rx_check_quiet(&sk, err, sizeof(err)), 0);
	close_rx(ERA_6_12, TCP_DEFER_INLINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookup_finds_the_tuple),
		cmocka_unit_test(header_cut_short),
		cmocka_unit_test(bytes_in_order),
		cmocka_unit_test(peek_leaves_trunc_drops),
		cmocka_unit_test(how_much_is_enough),
		cmocka_unit_test(fin_ends_the_stream),
		cmocka_unit_test(charged_until_consumed),
		cmocka_unit_test(queue_coalesces),
		cmocka_unit_test(no_coalescing_across_a_list),
		cmocka_unit_test(receive_buffer_is_full),
		cmocka_unit_test(out_of_sequence),
		cmocka_unit_test(wraps),
		cmocka_unit_test(fast_path),
		cmocka_unit_test(acknowledges),
		cmocka_unit_test(window_follows_the_reader),
		cmocka_unit_test(window_selected),
		cmocka_unit_test(splice_takes_references),
		cmocka_unit_test(zerocopy_maps_whole_pages),
		cmocka_unit_test(disconnect_frees_what_is_queued),
		cmocka_unit_test(destroy_checks),
		cmocka_unit_test(check_finds),
	};

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
