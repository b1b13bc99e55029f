/* SPDX-License-Identifier: MIT */
/*
 * The four ways to let go of what was read: which sk_buff is freed when, by whom, and that none
 * outlives its socket.
 */
#include "tests/tcp/tcp_rx_test.h"

#define RCVBUF	(4 << 20)
#define LEN	(2 * MSS)
#define SK_LIST TCP_DEFER_SK_LLIST
#define SPIN	SOCK_WAIT_SPIN

static u8 got[1 << 16];
static struct sk_buff *packet[8];

/* N packets that do not coalesce, each holding three pages; PACKET names them. */
static void deliver_n(enum skb_era era, enum tcp_defer d, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		packet[i] = make_packet(
			era,
			&(struct packet){ .seq = sk.rcv_nxt, .len = LEN, .shape = SHAPE_LIST });
		assert_int_equal(tcp_v4_rcv(era, d, net, packet[i]), 0);
	}
	assert_int_equal(sk.sk_receive_queue.qlen, n);
}

static int on_list(void)
{
	int n = 0;

	for (const struct llist_node *node = sk.defer_list.first; node; node = node->next)
		n++;
	return n;
}

static void eat_first(enum skb_era era, enum tcp_defer d)
{
	struct sk_buff *skb = skb_peek(&sk.sk_receive_queue);

	sk.copied_seq = TCP_SKB_CB(skb)->end_seq;
	tcp_eat_recv_skb(era, d, &sk, skb);
	check();
}

/*
 * --- the rule of 5.17
 * --------------------------------------------------------------------------------------
 */

/* T11: queue depth after the unlink, and what the list holds. */
static void depth_decides(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		size_t pages;

		open_rx(era, SPIN, RCVBUF);
		deliver_n(era, SK_LIST, 1);
		pages = model_pages_in_use();
		eat_first(era, SK_LIST); /* depth 0, empty list: at once */
		assert_int_equal(on_list(), 0);
		assert_int_equal(model_pages_in_use(), pages - 4);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_LAST), 1);

		deliver_n(era, SK_LIST, 3);
		pages = model_pages_in_use();
		eat_first(era, SK_LIST); /* depth 2 */
		assert_int_equal(on_list(), 1);
		eat_first(era, SK_LIST); /* depth 1 */
		assert_int_equal(on_list(), 2);
		eat_first(era, SK_LIST); /* depth 0, but the list holds something */
		assert_int_equal(on_list(), 3);
		assert_int_equal(model_pages_in_use(), pages);
		assert_int_equal(stats(TCP_MIB_DEFERRED), 3);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_LAST), 1);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 0);
		/* The charge is gone, the memory is not. */
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		assert_in_range(sk.sk_forward_alloc, 0, PAGE_SIZE - 1);

		/* A burst that begins with a list: one is freed only when it is flushed. */
		assert_int_equal(sk_defer_free_flush(era, &sk), 3);
		assert_int_equal(sk_defer_free_flush(era, &sk), 0);
		assert_int_equal(model_pages_in_use(), pages - 12);
		deliver_n(era, SK_LIST, 1);
		eat_first(era, SK_LIST);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_LAST), 2);
		close_rx(era, SK_LIST);
	}
}

/* A deferred sk_buff knows no socket any more: it may be freed when that is gone. */
static void deferred_knows_no_socket(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SPIN, RCVBUF);
	deliver_n(ERA_6_12, SK_LIST, 2);
	eat_first(ERA_6_12, SK_LIST);
	assert_null(packet[0]->sk);
	assert_null(packet[0]->destructor);
	assert_int_equal(sk_defer_free_flush(ERA_6_12, &sk), 1);
	eat_first(ERA_6_12, SK_LIST);
	close_rx(ERA_6_12, SK_LIST);
}

/* One that others hold has no charge of the socket's: not deferred by the patch either. */
static void not_charged_not_deferred(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SPIN, RCVBUF);
	deliver_n(ERA_6_12, SK_LIST, 2);
	sock_rfree(packet[0]);
	packet[0]->destructor = NULL;
	packet[0]->sk = NULL;
	eat_first(ERA_6_12, SK_LIST);
	assert_int_equal(on_list(), 0);
	assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 1);
	eat_first(ERA_6_12, SK_LIST);
	close_rx(ERA_6_12, SK_LIST);
}

/*
 * --- flush points (a27)
 * --------------------------------------------------------------------------------------
 */

/* Three of four packets are deferred, nothing is flushed yet. */
static size_t three_deferred(enum skb_era era)
{
	size_t pages;

	deliver_n(era, SK_LIST, 4);
	pages = model_pages_in_use();
	for (int i = 0; i < 3; i++)
		eat_first(era, SK_LIST);
	assert_int_equal(on_list(), 3);
	assert_int_equal(model_pages_in_use(), pages);
	return pages;
}

static void flushed(size_t pages_before, u32 pages)
{
	assert_int_equal(on_list(), 0);
	assert_int_equal(model_pages_in_use(), pages_before - pages);
}

static void at_the_end_of_a_read(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		size_t pages;

		open_rx(era, SPIN, RCVBUF);
		pages = three_deferred(era);
		assert_int_equal(tcp_recvmsg(era, SK_LIST, SPIN, &sk, got, 1, MSG_DONTWAIT), 1);
		flushed(pages, 12);
		assert_int_equal(stats(TCP_MIB_FREE_READER), 3);
		assert_int_equal(tcp_recvmsg(era, SK_LIST, SPIN, &sk, got, LEN, MSG_DONTWAIT),
				 LEN - 1);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_LAST), 1);
		close_rx(era, SK_LIST);
	}
}

static void when_a_packet_comes(void **state)
{
	(void)state;
	for_each_rx_era(era) for (int owned = 0; owned < 2; owned++)
	{
		size_t pages;

		open_rx(era, SPIN, RCVBUF);
		pages = three_deferred(era);
		if (owned)
			lock_sock(SPIN, &sk);
		deliver_packet(era, SK_LIST, &(struct packet){ .seq = sk.rcv_nxt });
		if (owned)
			release_sock(&sk);
		flushed(pages, 12);
		assert_int_equal(stats(TCP_MIB_FREE_SOFTIRQ), 3);
		tcp_recvmsg(era, SK_LIST, SPIN, &sk, got, LEN, MSG_DONTWAIT);
		close_rx(era, SK_LIST);
	}
}

/* In the softirq the flush comes before the lock: nobody waits for it (trap 28). */
#ifdef SKB_TRACED
static bool saw_lock, saw_free_first;

static void order_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)n;
	if (ev == SKB_EV_LOCK && addr == &sk.sk_lock.slock)
		saw_lock = true;
	if (ev == SKB_EV_PAGE_FREE && !saw_lock)
		saw_free_first = true;
	if (ev == SKB_EV_PAGE_FREE && saw_lock)
		fail_msg("a page was freed under slock");
}

static void flush_before_the_lock(void **state)
{
	const struct skb_trace_sink order = { counts_access, order_event, counts_fail };
	const struct skb_trace_sink *was = skb_trace_sink;
	struct sk_buff *skb;

	(void)state;
	open_rx(ERA_6_12, SPIN, RCVBUF);
	three_deferred(ERA_6_12);
	skb = make_packet(ERA_6_12, &(struct packet){ .seq = sk.rcv_nxt, .len = 10 });
	saw_lock = saw_free_first = false;
	skb_trace_sink = &order;
	tcp_v4_rcv(ERA_6_12, SK_LIST, net, skb);
	skb_trace_sink = was;
	assert_true(saw_lock);
	assert_true(saw_free_first);
	tcp_recvmsg(ERA_6_12, SK_LIST, SPIN, &sk, got, LEN + 10, MSG_DONTWAIT);
	close_rx(ERA_6_12, SK_LIST);
}
#endif

static void zerocopy_and_splice(void **state)
{
	(void)state;
	for_each_rx_era(era) for (int splice = 0; splice < 2; splice++)
	{
		struct tcp_pipe_buffer pipe[4];
		struct page *page[4];
		unsigned int nr = 1;
		size_t pages;
		u32 hint;

		open_rx(era, SPIN, RCVBUF);
		pages = three_deferred(era);
		if (splice) {
			assert_int_equal(tcp_splice_read(era, SK_LIST, SPIN, &sk, pipe, &nr, 10),
					 10);
			flushed(pages, 12);
			put_page(pipe[0].page);
		} else {
			assert_int_equal(
				tcp_zerocopy_receive(era, SK_LIST, SPIN, &sk, page, 4, &hint), 0);
			assert_int_equal(hint, LEN);
			flushed(pages, 12);
		}
		assert_int_equal(stats(TCP_MIB_FREE_READER), 3);
		tcp_recvmsg(era, SK_LIST, SPIN, &sk, got, LEN, MSG_DONTWAIT);
		close_rx(era, SK_LIST);
	}
}

static void on_disconnect(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		size_t pages;

		open_rx(era, SPIN, RCVBUF);
		pages = three_deferred(era);
		lock_sock(SPIN, &sk);
		tcp_disconnect(era, SK_LIST, &sk);
		release_sock(&sk);
		flushed(pages, 16); /* and the one that was not read */
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_END), 3);
		close_rx(era, SK_LIST);
	}
}

static struct sock *victim;

static void destroy(void)
{
	inet_unhash(victim);
	tcp_rx_destroy(ERA_6_12, victim);
}

static void destroy_finds_them(void **state)
{
	(void)state;
	open_rx(ERA_6_12, SPIN, RCVBUF);
	three_deferred(ERA_6_12);
	victim = &sk;
	assert_true(is_bug(destroy));
	assert_int_equal(sk_defer_free_flush(ERA_6_12, &sk), 3);
	assert_false(is_bug(destroy));
	close_rx(ERA_6_12, SK_LIST);
}

/*
 * Before the reader waits. Nobody else runs here, so that the packet it waits for comes out of the
 * backlog: a softirq delivered it while the reader copied.
 */
static int deliver_later(struct sock *s, struct sk_buff *skb)
{
	assert_int_equal(on_list(), 0);
	/* The fourth was deferred by then, too. */
	assert_int_equal(stats(TCP_MIB_FREE_LOCKED_FLUSH), 4);
	assert_int_equal(net_most_flushed(net), 4);
	return tcp_v4_do_rcv(ERA_6_12, s, skb);
}

static void before_waiting(void **state)
{
	struct sk_buff *skb;

	(void)state;
	open_rx(ERA_6_12, SPIN, RCVBUF);
	three_deferred(ERA_6_12);
	sk.sk_backlog_rcv = deliver_later;
	skb = make_packet(ERA_6_12,
			  &(struct packet){ .seq = sk.rcv_nxt, .len = 10, .shape = SHAPE_PAGES });
	TCP_SKB_CB(skb)->seq = sk.rcv_nxt;
	TCP_SKB_CB(skb)->end_seq = sk.rcv_nxt + 10;
	TCP_SKB_CB(skb)->ack_seq = 1;
	TCP_SKB_CB(skb)->tcp_flags = TCPHDR_ACK;
	assert_int_equal(sk_add_backlog(&sk, skb, ~0U), 0);
	/* All but the last byte is wanted, and 10 more: the reader waits, and flushes before. */
	sk.copied_seq++;
	assert_int_equal(tcp_recvmsg(ERA_6_12, SK_LIST, SPIN, &sk, got, LEN + 9, MSG_WAITALL),
			 LEN + 9);
	assert_int_equal(stats(TCP_MIB_FREE_LOCKED_FLUSH), 4);
	close_rx(ERA_6_12, SK_LIST);
}

/*
 * --- those that go home
 * --------------------------------------------------------------------------------------
 */

static enum skb_defer how(enum tcp_defer d)
{
	return d == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST : SKB_DEFER_NODE_LLIST;
}

static void go_home(void **state)
{
	(void)state;
	for_each_rx_era(era) for (enum tcp_defer d = TCP_DEFER_CPU_LIST; d < TCP_DEFER_NR; d++)
	{
		size_t pages;

		open_rx(era, SPIN, RCVBUF);
		assert_int_equal(skb_cpu_attach(1, 0), 0); /* the softirq's CPU */
		deliver_n(era, d, 3);
		pages = model_pages_in_use();
		assert_int_equal(skb_cpu_attach(0, 0), 0); /* the reader's */
		assert_int_equal(tcp_recvmsg(era, d, SPIN, &sk, got, 3 * LEN, MSG_DONTWAIT),
				 3 * LEN);
		/* The single one, too, that sk_llist would have freed. */
		assert_int_equal(stats(TCP_MIB_DEFERRED), 3);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 0);
		assert_int_equal(sk.sk_rmem_alloc.counter, 0);
		assert_int_equal(model_pages_in_use(), pages);
		assert_int_equal(softnet_deferred(1), 3);
		/* The socket may go before they do. */
		inet_unhash(&sk);
		inet_rcu_synchronize();
		tcp_rx_destroy(era, &sk);
		memset(&sk, 0xee, offsetof(struct sock, sk_wmem_alloc));
		assert_int_equal(skb_cpu_attach(1, 0), 0);
		assert_int_equal(skb_defer_free_flush(era, how(d), this_softnet()), 3);
		assert_int_equal(model_pages_in_use(), pages - 12);
		assert_int_equal(model_pages_in_use(), 0);
		assert_int_equal(skb_cpu_attach(0, 0), 0);
		tx_ring_exit(&ring);
	}
}

/* On the CPU that made it, it is freed at once: under the lock. */
static void at_home_already(void **state)
{
	(void)state;
	for_each_rx_era(era) for (enum tcp_defer d = TCP_DEFER_CPU_LIST; d < TCP_DEFER_NR; d++)
	{
		open_rx(era, SPIN, RCVBUF);
		deliver_n(era, d, 3);
		tcp_recvmsg(era, d, SPIN, &sk, got, 3 * LEN, MSG_DONTWAIT);
		assert_int_equal(stats(TCP_MIB_DEFERRED), 0);
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 3);
		assert_int_equal(model_pages_in_use(), 0);
		close_rx(era, d);
	}
}

static void inline_frees_at_once(void **state)
{
	(void)state;
	for_each_rx_era(era)
	{
		open_rx(era, SPIN, RCVBUF);
		assert_int_equal(skb_cpu_attach(1, 0), 0);
		deliver_n(era, TCP_DEFER_INLINE, 3);
		assert_int_equal(skb_cpu_attach(0, 0), 0);
		for (int i = 0; i < 3; i++) {
			size_t pages = model_pages_in_use();

			eat_first(era, TCP_DEFER_INLINE);
			assert_int_equal(model_pages_in_use(), pages - 4);
		}
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 3);
		close_rx(era, TCP_DEFER_INLINE);
	}
}

/*
 * --- zerocopy (a30)
 * --------------------------------------------------------------------------------------
 */

static int told;

static void on_notify(struct ubuf_info_msgzc *uarg)
{
	(void)uarg;
	told++;
}

/* SKB's frags are a user's, who is told when they are free. */
static void make_zerocopy(struct sk_buff *skb, struct ubuf_info_msgzc *uarg)
{
	msg_zerocopy_init(uarg, SKBFL_ZEROCOPY_FRAG, on_notify);
	skb_zcopy_set(skb, &uarg->ubuf);
	net_zcopy_put(&uarg->ubuf); /* the sk_buff's alone now */
}

/*
 * What a softirq delivers is copied first, so that the sender is told while the packet is
 * delivered, whenever it is read.
 */
static void delivery_copies(void **state)
{
	(void)state;
	for_each_rx_era(era) for_each_defer(d)
	{
		struct ubuf_info_msgzc uarg;
		struct sk_buff *skb;

		open_rx(era, SPIN, RCVBUF);
		skb = make_packet(era,
				  &(struct packet){ .seq = 1, .len = LEN, .shape = SHAPE_PAGES });
		make_zerocopy(skb, &uarg);
		told = 0;
		assert_int_equal(tcp_v4_rcv(era, d, net, skb), 0);
		assert_int_equal(told, 1);
		check();
		assert_int_equal(tcp_recvmsg(era, d, SPIN, &sk, got, LEN, MSG_DONTWAIT), LEN);
		check_stream(got, 1, LEN);
		close_rx(era, d);
	}
}

/* And if one came into the queue all the same, it would not wait on another CPU's list. */
static void never_deferred(void **state)
{
	(void)state;
	for_each_rx_era(era) for (enum tcp_defer d = TCP_DEFER_CPU_LIST; d < TCP_DEFER_NR;
				  d++) for (int zerocopy = 0; zerocopy < 2; zerocopy++)
	{
		struct ubuf_info_msgzc uarg;

		open_rx(era, SPIN, RCVBUF);
		assert_int_equal(skb_cpu_attach(1, 0), 0);
		deliver_packet(era, d,
			       &(struct packet){ .seq = 1, .len = LEN, .shape = SHAPE_PAGES });
		told = 0;
		if (zerocopy)
			make_zerocopy(skb_peek(&sk.sk_receive_queue), &uarg);
		assert_int_equal(skb_cpu_attach(0, 0), 0);
		assert_int_equal(tcp_recvmsg(era, d, SPIN, &sk, got, LEN, MSG_DONTWAIT), LEN);
		assert_int_equal(told, zerocopy);
		assert_int_equal(stats(TCP_MIB_DEFERRED), !zerocopy);
		assert_int_equal(softnet_deferred(1), !zerocopy);
		close_rx(era, d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_decides),
		cmocka_unit_test(deferred_knows_no_socket),
		cmocka_unit_test(not_charged_not_deferred),
		cmocka_unit_test(at_the_end_of_a_read),
		cmocka_unit_test(when_a_packet_comes),
#ifdef SKB_TRACED
		cmocka_unit_test(flush_before_the_lock),
#endif
		cmocka_unit_test(zerocopy_and_splice),
		cmocka_unit_test(on_disconnect),
		cmocka_unit_test(destroy_finds_them),
		cmocka_unit_test(before_waiting),
		cmocka_unit_test(go_home),
		cmocka_unit_test(at_home_already),
		cmocka_unit_test(inline_frees_at_once),
		cmocka_unit_test(delivery_copies),
		cmocka_unit_test(never_deferred),
	};

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
