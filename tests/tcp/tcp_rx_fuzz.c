/* SPDX-License-Identifier: MIT */
/*
 * Random scripts of packets and readers, each run in all four variants of `defer` (E2): after every
 * step the socket is in the same state whatever becomes of what was read, every byte arrives once
 * and in order, and at the end nothing is left. What differs is only who frees, and when.
 *
 * SKB_SEED replays a run; SKB_OPS says how many steps in all.
 */
#include "tests/tcp/tcp_rx_test.h"

#define STEPS	 300 /* of one script */
#define READ_MAX (1 << 17)
#define SOFTIRQ	 1 /* the CPU that delivers */
#define PIPE_MAX 24

/* What a step leaves behind, where variants must agree. */
struct trace {
	int ret; /* what the reader got */
	u32 rcv_nxt, copied_seq, qlen, backlog_count;
	int rmem, forward_alloc, backlog_len;
	u64 ack_wnd, acks;
	long granted;
	u64 read_hash; /* of all bytes so far */
};

static struct trace want[STEPS];
static u8 got[READ_MAX];
static enum skb_era era;
static enum tcp_defer d;
static u32 next_seq; /* where the peer goes on */
static u32 read_seq; /* and the reader */
static u64 read_hash;
static bool owned;

static void hash_bytes(const u8 *p, u32 len)
{
	check_stream(p, read_seq, len);
	for (u32 i = 0; i < len; i += 97)
		read_hash = (read_hash ^ p[i]) * 0x100000001b3u;
	read_hash = (read_hash ^ len) * 0x100000001b3u;
	read_seq += len;
}

static void be_cpu(unsigned int c)
{
	assert_int_equal(skb_cpu_attach(c, 0), 0);
}

/*
 * --- steps
 * --------------------------------------------------------------------------------------
 */

static u32 some_length(struct rng *r, enum shape shape)
{
	static const u32 usual[] = { 1, 60, 300, MSS, MSS + 1, 3 * MSS, 16 * MSS };
	u32 len = usual[rng_below(r, ARRAY_SIZE(usual))];

	if (shape == SHAPE_LINEAR)
		len = min(len, 1000u);
	if (shape == SHAPE_PAGES)
		len = min(len, (u32)(MAX_SKB_FRAGS * MSS));
	return len;
}

/* The next bytes, or some that were sent before, or some beyond a hole, or none. */
static int step_deliver(struct rng *r)
{
	struct packet p = { .seq = next_seq, .shape = (enum shape)rng_below(r, SHAPE_NR) };
	u32 kind = rng_below(r, 16);

	p.len = some_length(r, p.shape);
	p.tsval = rng_below(r, 8) ? 7 : 8;
	p.tos = !rng_below(r, 16);
	if (!rng_below(r, 8))
		p.flags = TCPHDR_PSH;
	if (kind == 0)
		p.len = 0;
	else if (kind == 1)
		p.seq -= min(next_seq - 1, rng_below(r, 3000));
	else if (kind == 2)
		p.seq += 1 + rng_below(r, 3000);
	be_cpu(SOFTIRQ);
	deliver_packet(era, d, &p);
	be_cpu(0);
	return 0;
}

/* What the peer may assume to have arrived: as far as the socket says, unless it waits. */
static void peer_goes_on(void)
{
	const struct sk_buff *skb = sk.sk_backlog.head;
	u32 at = sk.rcv_nxt;

	for (; skb; skb = skb->next)
		if (!after(TCP_SKB_CB(skb)->seq, at) && after(TCP_SKB_CB(skb)->end_seq, at))
			at = TCP_SKB_CB(skb)->end_seq;
	next_seq = at;
}

static int step_read(struct rng *r)
{
	static const int flags[] = { 0, 0, 0, MSG_PEEK, MSG_TRUNC, MSG_WAITALL };
	int f = flags[rng_below(r, ARRAY_SIZE(flags))], n;
	u32 len = 1 + rng_below(r, rng_below(r, 2) ? 2000 : READ_MAX);

	if (owned)
		return 0;
	n = tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, len, f | MSG_DONTWAIT);
	if (n <= 0)
		return n;
	assert_in_range(n, 1, len);
	if (f & MSG_PEEK)
		check_stream(got, read_seq, (u32)n);
	else if (f & MSG_TRUNC)
		read_seq += (u32)n;
	else
		hash_bytes(got, (u32)n);
	return n;
}

static int step_splice(struct rng *r)
{
	struct tcp_pipe_buffer pipe[PIPE_MAX];
	unsigned int nr = 1 + rng_below(r, PIPE_MAX);
	u32 len = 1 + rng_below(r, 40000);
	int n;

	if (owned)
		return 0;
	n = tcp_splice_read(era, d, SOCK_WAIT_SPIN, &sk, pipe, &nr, len);
	for (unsigned int i = 0; i < nr; i++) {
		hash_bytes((u8 *)page_address(pipe[i].page) + pipe[i].offset, pipe[i].len);
		put_page(pipe[i].page);
	}
	return n;
}

static int step_zerocopy(struct rng *r)
{
	struct page *page[PIPE_MAX];
	u32 hint;
	int n;

	(void)r;
	if (owned)
		return 0;
	n = tcp_zerocopy_receive(era, d, SOCK_WAIT_SPIN, &sk, page, PIPE_MAX, &hint);
	for (int i = 0; i < n; i++) {
		hash_bytes(page_address(page[i]), PAGE_SIZE);
		put_page(page[i]);
	}
	return n + (int)hint;
}

/* A packet of whole pages, which can be mapped. */
static int step_deliver_pages(struct rng *r)
{
	u32 pages = 1 + rng_below(r, 8);
	struct sk_buff *skb;

	be_cpu(SOFTIRQ);
	skb = make_packet(era, &(struct packet){ .seq = next_seq });
	add_pages(skb, next_seq, pages * (u32)PAGE_SIZE, (u32)PAGE_SIZE);
	assert_int_equal(tcp_v4_rcv(era, d, net, skb), 0);
	be_cpu(0);
	return 0;
}

static int step_own(struct rng *r)
{
	(void)r;
	if (owned)
		release_sock(&sk);
	else
		lock_sock(SOCK_WAIT_SPIN, &sk);
	owned = !owned;
	return owned;
}

static int step_flush_backlog(struct rng *r)
{
	(void)r;
	if (owned)
		__sk_flush_backlog(&sk);
	return 0;
}

static int step_lowat(struct rng *r)
{
	if (!owned)
		sk.sk_rcvlowat = 1 + (int)rng_below(r, 5000);
	return 0;
}

/* The receive buffer shrinks or grows, so that some packets do not fit. */
static int step_rcvbuf(struct rng *r)
{
	sk.sk_rcvbuf = 1 << (13 + rng_below(r, 10));
	return 0;
}

/* Their own CPU frees what was sent home; no step of the script sees it. */
static int step_softirq(struct rng *r)
{
	(void)r;
	flush_all_cpus(era, d);
	return 0;
}

static int (*const steps[])(struct rng *r) = {
	step_deliver,	    step_deliver, step_deliver, step_deliver,	    step_deliver,
	step_deliver_pages, step_read,	  step_read,	step_read,	    step_splice,
	step_zerocopy,	    step_own,	  step_own,	step_flush_backlog, step_lowat,
	step_rcvbuf,	    step_softirq,
};

/*
 * --- scripts
 * --------------------------------------------------------------------------------------
 */

static struct trace look(int ret)
{
	struct trace t = {
		.ret = ret,
		.rcv_nxt = sk.rcv_nxt,
		.copied_seq = sk.copied_seq,
		.qlen = sk.sk_receive_queue.qlen,
		.rmem = sk.sk_rmem_alloc.counter,
		.forward_alloc = sk.sk_forward_alloc,
		.backlog_len = sk.sk_backlog.len,
		.ack_wnd = sk.ack_out.ack_wnd,
		.acks = sk.ack_out.nr,
		.granted = proto_memory_bytes(&prot),
		.read_hash = read_hash,
	};

	for (const struct sk_buff *skb = sk.sk_backlog.head; skb; skb = skb->next)
		t.backlog_count++;
	return t;
}

static void compare(const struct trace *a, const struct trace *b, int step)
{
#define SAME(field)                                                                                \
	if (a->field != b->field)                                                                  \
	fail_msg("step %d: " #field " is %lld inline and %lld with %s", step, (long long)a->field, \
		 (long long)b->field, tcp_defer_name(d))
	SAME(ret);
	SAME(rcv_nxt);
	SAME(copied_seq);
	SAME(qlen);
	SAME(backlog_count);
	SAME(rmem);
	SAME(forward_alloc);
	SAME(backlog_len);
	SAME(ack_wnd);
	SAME(acks);
	SAME(granted);
	SAME(read_hash);
#undef SAME
}

/* Reads to the end and closes; every sk_buff that was consumed is accounted for. */
static void finish(void)
{
	char err[200];
	int n;

	if (owned)
		release_sock(&sk);
	owned = false;
	sk.sk_rcvbuf = 8 << 20;
	while ((n = tcp_recvmsg(era, d, SOCK_WAIT_SPIN, &sk, got, READ_MAX, MSG_DONTWAIT)) > 0)
		hash_bytes(got, (u32)n);
	assert_int_equal(n, -EAGAIN);
	if (tcp_rx_check_quiet(&sk, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(sk.rcv_nxt, read_seq);
	if (d == TCP_DEFER_SK_LLIST)
		assert_int_equal(stats(TCP_MIB_DEFERRED), stats(TCP_MIB_FREE_READER) +
								  stats(TCP_MIB_FREE_SOFTIRQ) +
								  stats(TCP_MIB_FREE_LOCKED_FLUSH) +
								  stats(TCP_MIB_FREE_LOCKED_END));
	if (d == TCP_DEFER_SK_LLIST)
		assert_int_equal(stats(TCP_MIB_FREE_LOCKED_OTHER), 0);
	close_rx(era, d);
}

static void script(u64 seed)
{
	struct rng r = { seed };
	char err[200];

	next_seq = read_seq = 1;
	read_hash = 0;
	owned = false;
	open_rx(era, SOCK_WAIT_SPIN, 1 << 20);
	for (int i = 0; i < STEPS; i++) {
		struct trace t = look(steps[rng_below(&r, ARRAY_SIZE(steps))](&r));

		peer_goes_on();
		if (tcp_rx_check(&sk, err, sizeof(err)))
			fail_msg("step %d, %s: %s", i, tcp_defer_name(d), err);
		assert_int_equal(sk.copied_seq, read_seq);
		if (d == TCP_DEFER_INLINE)
			want[i] = t;
		else
			compare(&want[i], &t, i);
	}
	finish();
}

static void same_state_in_all_variants(void **state)
{
	u64 seed = model_seed("tcp_rx_fuzz", 0x2021), n = model_ops(300000) / STEPS / TCP_DEFER_NR;
	u64 deferred[TCP_DEFER_NR] = { 0 };

	(void)state;
	for (u64 i = 0; i < max(n, (u64)1); i++) {
		struct rng r = { seed + i };
		u64 s = rng_next(&r);

		era = ERA_6_1 + (enum skb_era)(i & 1);
		for (d = TCP_DEFER_INLINE; d < TCP_DEFER_NR; d++) {
			script(s);
			deferred[d] += stats(TCP_MIB_DEFERRED);
		}
	}
	/* The variants did what they are for. */
	assert_int_equal(deferred[TCP_DEFER_INLINE], 0);
	for (d = TCP_DEFER_SK_LLIST; d < TCP_DEFER_NR; d++)
		assert_true(deferred[d] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_state_in_all_variants) };

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
