/* SPDX-License-Identifier: MIT */
/*
 * The `defer` experiment: one TCP stream from a NIC's ring to a reader, on two CPUs or one.
 *
 *   key        values
 *   era        6.1 6.12
 *   variant    inline sk_llist cpu_list node_llist    where the reader lets go (tcp/tcp_defer.h)
 *   shape      header     45 segments of 1448 bytes in frags: 17 + 17 + 11, three heads
 *              head_frag  the same in heads that are pages: 18 + 18 + 9
 *              mtu4096    15 segments of 4096 bytes, each a page: one sk_buff
 *              big        BIG TCP, gro_max_size 185000: 127 segments of 1448 bytes
 *   rate       0 to 1000  Gbit/s of the link; 0: whatever the receiver takes
 *   payload    llc        a ring of 1024 frames: the pages come back while a last cache holds them
 *              dram       a ring of 32768: 128 MB pass before a page comes back
 *   pages      plain      the page allocator's
 *              pool       a page_pool's: sk_buffs bring them back (skb/page_pool.h)
 *   load       0 to 1000  packets of other flows, in percent of the stream's own
 *   mode       stream     the window is open as far as the reader has read
 *              rpc        the next packet is sent when the last one was read
 *   read_size  bytes that one tcp_recvmsg() asks for
 *   window     KB that the sender may have ahead of the reader
 *   cpus       two        a softirq and a reader
 *              one        both on one CPU, in turn
 *   reader     steady     reads what is there
 *              stops      waits until the window is shut, then reads all of it
 *              sleeps     sleeps where steady spins, until the softirq wakes it: judged by the
 *                         CPU time of both, the softirq's polling included (with rate:0 there is none)
 *
 * One operation is PACKETS packets, read. The softirq's role is all of it: pages from the ring, 45
 * sk_buffs a packet, headers copied or a head built around the page, GRO, the socket found under
 * RCU, tcp_v4_rcv(), the ring filled up again. The reader's is tcp_recvmsg() into one buffer. The
 * stream has no end: what the softirq is ahead when the reader has its packets waits for the next
 * operation, so that the pipeline is as full at the end as it was at the start. Other
 * flows' packets are the same work up to the lookup, which finds no socket: they are freed by the
 * softirq, and their time is booked apart. A case is judged by the wall time of the whole run.
 *
 * Arrivals: the sender may begin a packet when the window has room for it, and the link takes its
 * wire time (38 bytes of Ethernet and 52 of headers around each segment). The delay of the way is 0.
 * Nobody writes the payload (a NIC's DMA would).
 *
 * What is fake: roles spin where the kernel's would sleep or be interrupted; the time is booked as
 * waiting. An interrupt, a wake-up and a system call cost nothing, for all variants alike. ACKs cost
 * their preparation, not their way down. See docs/defer.md.
 */
#include "benches/bench_tcp.h"
#include "benches/bench_tcp_probe.h"
#include "benches/harness/bench.h"
#include "benches/harness/clock.h"

#include "skb/page_alloc.h"
#include "skb/page_pool.h"
#include "skb/skb_defer.h"
#include "skb/skb_napi.h"
#include "tcp/rx_ring.h"
#include "tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS	    64 /* one operation: one packet would be too short to judge a pipeline by */
#define RCVBUF	    (256 << 20) /* never full: the window below is what limits */
#define WIRE_EXTRA  (38 + 52) /* preamble, Ethernet, FCS, gap; IP and TCP */
#define RING_LLC    RX_RING_MIN
#define RING_DRAM   32768
#define AHEAD	    64 /* packets whose arrival is worked out in advance, at most */
#define CHECK_TURNS 12

enum shape { SHAPE_HEADER, SHAPE_HEAD_FRAG, SHAPE_MTU4096, SHAPE_BIG, SHAPE_NR };
enum { CPUS_TWO, CPUS_ONE };
enum { PAGES_PLAIN, PAGES_POOL };
enum { READER_STEADY, READER_STOPS, READER_SLEEPS };
enum { MODE_STREAM, MODE_RPC };

static const char *const era_words[] = { "6.1", "6.12", NULL };
static const char *const variant_words[] = { "inline", "sk_llist", "cpu_list", "node_llist", NULL };
static const char *const shape_words[] = { "header", "head_frag", "mtu4096", "big", NULL };
static const char *const payload_words[] = { "llc", "dram", NULL };
static const char *const pages_words[] = { "plain", "pool", NULL };
static const char *const mode_words[] = { "stream", "rpc", NULL };
static const char *const cpus_words[] = { "two", "one", NULL };
static const char *const reader_words[] = { "steady", "stops", "sleeps", NULL };

static const struct {
	enum rx_driver driver;
	u16 segs, mss;
	unsigned int gro_max_size;
} shapes[SHAPE_NR] = {
	{ RX_HEADER, 45, 1448, GRO_LEGACY_MAX_SIZE },
	{ RX_HEAD_FRAG, 45, 1448, GRO_LEGACY_MAX_SIZE },
	{ RX_HEADER_SPLIT, 15, 4096, GRO_LEGACY_MAX_SIZE },
	{ RX_HEADER, 127, 1448, 185000 },
};

/* A role's time in the spans that had their CPU, in ticks. */
struct role_sum {
	u64 packets, wall, waited;
};

struct defer_ctx {
	struct net net;
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring tx;
	struct rx_napi napi;
	struct page_pool *pool; /* NULL: plain pages */
	struct rx_flow flow, other;
	unsigned int segs, load;
	u32 bytes; /* of payload in a packet */
	u32 window; /* bytes */
	u64 wire; /* ticks that a packet takes on the link */
	enum skb_era era;
	enum tcp_defer defer;
	bool stops, sleeps;
	struct rx_poll_fn {
		void (*poll)(struct rx_napi *n, struct rx_flow *f, unsigned int segs, bool push);
		int (*recv)(struct sock *sk, void *to, size_t len, int flags);
	} fn;

	/* the softirq's */
	struct {
		u64 arrival[AHEAD]; /* ticks, of the packets that were sent and not taken */
		u64 link_free;
		u64 stopped; /* when the last operation ended */
		u64 started, ran; /* when this one began; ticks of all operations */
		u32 sent_seq; /* behind the last of them */
		u32 taken, sent; /* packets */
		unsigned int credit; /* of other flows, in percent of a packet */
		u64 packets; /* of all spans */
		u64 others, nr_others;
		struct role_sum sum;
	} s ____cacheline_aligned;

	/* the reader's */
	struct {
		char *to;
		size_t read_size;
		struct role_sum sum;
	} r ____cacheline_aligned;

	u32 over
		____cacheline_aligned; /* the reader has read its packets; the softirq takes it back */
	struct counted {
		u64 mib[TCP_MIB_NR], flushed;
		struct zone_stats zone;
	} before ____cacheline_aligned; /* what the check counted: no part of the report */
	unsigned int zone_nid; /* whose pages the ring has */
};

/* --- the sender and its link
 * -------------------------------------------------------------------------------- */

/* What the window has let the sender send by now. */
static __always_inline void send_more(struct defer_ctx *c, u64 now)
{
	u32 read = skb_load(&c->sk.copied_seq, SKB_C_OTHER);

	while (c->s.sent - c->s.taken < AHEAD && c->s.sent_seq + c->bytes - read <= c->window) {
		u64 begin = max(c->s.link_free, now);

		c->s.link_free = begin + c->wire;
		c->s.arrival[c->s.sent++ % AHEAD] = c->s.link_free;
		c->s.sent_seq += c->bytes;
	}
}

/* True if the next packet lies in the ring. */
static __always_inline bool arrived(struct defer_ctx *c)
{
	u64 now = bench_ticks();

	send_more(c, now);
	return c->s.sent != c->s.taken && (long)(now - c->s.arrival[c->s.taken % AHEAD]) >= 0;
}

/* Between operations the link stands still: what is on its way would arrive for nothing. */
static void link_stop(struct defer_ctx *c)
{
	c->s.stopped = bench_ticks();
	c->s.ran += c->s.stopped - c->s.started;
}

static void link_go_on(struct defer_ctx *c)
{
	u64 pause;

	c->s.started = bench_ticks();
	pause = c->s.started - c->s.stopped;
	for (u32 i = c->s.taken; i != c->s.sent; i++)
		c->s.arrival[i % AHEAD] += pause;
	c->s.link_free += pause;
}

/* --- roles
 * ------------------------------------------------------------------------------------------------ */

struct span_clock {
	u64 start, waited, slept, cpu_ns;
};

static __always_inline void span_begin(struct span_clock *k)
{
	k->cpu_ns = bench_cpu_ns();
	k->waited = bench_waited;
	k->slept = sock_waited;
	k->start = bench_ticks();
}

/* PACKETS of them are done: counts for the report if nobody took the CPU away meanwhile. What a role that
   SLEEPS did not use of its CPU it waited. */
static __always_inline void span_end(const struct span_clock *k, struct role_sum *sum, u64 packets,
				     bool sleeps)
{
	u64 wall = bench_ticks() - k->start, cpu;
	bool alone;

	bench_waited += sock_waited - k->slept;
	cpu = (u64)((double)(bench_cpu_ns() - k->cpu_ns) / bench_tick_ns());
	alone = sleeps || (double)cpu >= .97 * (double)wall;
	if (bench_probe_span)
		bench_probe_span(alone ? packets : 0);
	if (!alone)
		return;
	sum->packets += packets;
	sum->wall += wall;
	sum->waited += sleeps ? wall - min(wall, cpu) : bench_waited - k->waited;
}

static __always_inline void softirq_others(struct defer_ctx *c)
{
	u64 t;

	c->s.credit += c->load;
	if (c->s.credit < 100)
		return;
	t = bench_ticks();
	for (; c->s.credit >= 100; c->s.credit -= 100, c->s.nr_others++)
		c->fn.poll(&c->napi, &c->other, c->segs, true);
	c->s.others += bench_ticks() - t;
}

/* The ring's pages are of a pool: from here to the end what this CPU frees is its owner's. */
static __always_inline void softirq_packet(struct defer_ctx *c, const bool pool)
{
	if (pool)
		page_pool_poll_begin(c->pool);
	c->fn.poll(&c->napi, &c->flow, c->segs, true);
	c->s.taken++;
	if (unlikely(c->load))
		softirq_others(c);
	if (pool)
		page_pool_poll_end(c->pool);
}

/* Until the reader has its packets: a softirq that stopped at a number would end a window before a slow reader. */
static __always_inline void do_softirq(struct defer_ctx *c, const bool pool)
{
	struct span_clock k;
	u64 packets = 0;

	inet_rcu_attach();
	link_go_on(c);
	span_begin(&k);
	for (;; packets++) {
		bench_wait_until(skb_load(&c->over, SKB_C_OTHER) || arrived(c));
		if (smp_load_acquire(&c->over, SKB_C_OTHER))
			break;
		softirq_packet(c, pool);
	}
	if (packets)
		span_end(&k, &c->s.sum, packets, false);
	link_stop(c);
	inet_rcu_detach();
	skb_store(&c->over, 0, SKB_C_OTHER);
	c->s.packets += packets;
}

static void span_softirq(void *arg, u64 n)
{
	(void)n;
	do_softirq(arg, false);
}

static void span_softirq_pool(void *arg, u64 n)
{
	(void)n;
	do_softirq(arg, true);
}

/* One read of at most LEFT bytes; what it took. */
static __always_inline u32 reader_recv(struct defer_ctx *c, u64 left, int flags)
{
	int got = c->fn.recv(&c->sk, c->r.to, min(left, (u64)c->r.read_size), flags);

	return got > 0 ? (u32)got : 0;
}

static void span_reader(void *arg, u64 n)
{
	struct defer_ctx *c = arg;
	u64 left = n * PACKETS * c->bytes;
	struct span_clock k;

	span_begin(&k);
	while (left) {
		u64 turn = left;

		/* All of it, whole packets: in the midst of one the window might never shut. */
		if (unlikely(c->stops)) {
			turn = min(left, (u64)(c->window / c->bytes * c->bytes));
			bench_wait_until(tcp_inq(&c->sk) >= turn);
		}
		left -= turn;
		while (turn)
			turn -= reader_recv(c, turn, 0);
	}
	span_end(&k, &c->r.sum, n * PACKETS, c->sleeps);
	smp_store_release(&c->over, 1, SKB_C_OTHER);
}

/* Both on one CPU: the softirq takes what has come, at most a budget; then the reader reads it. */
static __always_inline void do_both(struct defer_ctx *c, u64 n, const bool pool)
{
	u64 packets = n * PACKETS, left = packets * c->bytes, taken = 0;
	struct span_clock k;

	inet_rcu_attach();
	link_go_on(c);
	span_begin(&k);
	while (left) {
		if (taken < packets)
			bench_wait_until(arrived(c));
		for (int budget = 4; budget && taken < packets && arrived(c); budget--, taken++)
			softirq_packet(c, pool);
		for (u32 got = 1; left && got; left -= got)
			got = reader_recv(c, left, MSG_DONTWAIT);
	}
	span_end(&k, &c->s.sum, packets, false);
	link_stop(c);
	inet_rcu_detach();
	c->s.packets += packets;
}

static void span_both(void *arg, u64 n)
{
	do_both(arg, n, false);
}

static void span_both_pool(void *arg, u64 n)
{
	do_both(arg, n, true);
}

/* [era is 6.12][variant] */
#define FN(suffix)                                          \
	{                                                   \
		rx_poll_##suffix, tcp_recvmsg_spin_##suffix \
	}
static const struct rx_poll_fn fns[2][TCP_DEFER_NR] = {
	{ FN(6_1_inline), FN(6_1_sk_llist), FN(6_1_cpu_list), FN(6_1_node_llist) },
	{ FN(6_12_inline), FN(6_12_sk_llist), FN(6_12_cpu_list), FN(6_12_node_llist) },
};
#define SLEEP(suffix) tcp_recvmsg_sleep_##suffix
static int (*const sleep_fns[2][TCP_DEFER_NR])(struct sock *sk, void *to, size_t len, int flags) = {
	{ SLEEP(6_1_inline), SLEEP(6_1_sk_llist), SLEEP(6_1_cpu_list), SLEEP(6_1_node_llist) },
	{ SLEEP(6_12_inline), SLEEP(6_12_sk_llist), SLEEP(6_12_cpu_list), SLEEP(6_12_node_llist) },
};

/* --- check: every byte once and in its order, and nothing is left
 * ------------------------------------------------ */

/* Another CPU's part, by this thread. */
static void as_cpu(unsigned int cpu)
{
	BUG_ON(skb_cpu_attach(cpu, numa_node_id()));
}

static u8 byte_at(u32 seq)
{
	return (u8)(seq * 31 + (seq >> 8) * 7 + (seq >> 16));
}

/* What a NIC would do: the payload of the next packet into its pages. */
static void dma(struct defer_ctx *c)
{
	unsigned int at = rx_payload_offset(c->napi.driver);
	u32 seq = c->flow.seq;

	for (unsigned int i = 0; i < c->segs; i++) {
		u8 *to = (u8 *)page_address(rx_ring_page(&c->napi, i)) + at;

		for (u32 b = 0; b < c->flow.mss; b++)
			to[b] = byte_at(seq++);
	}
}

static u64 stat(const struct defer_ctx *c, enum tcp_mib_item item)
{
	return net_stats(&c->net, item);
}

static void count_from_here(struct defer_ctx *c)
{
	for (unsigned int i = 0; i < TCP_MIB_NR; i++)
		c->before.mib[i] = stat(c, i);
	c->before.flushed = c->napi.flushed;
	zone_stats(c->zone_nid, &c->before.zone);
}

static u64 counted(const struct defer_ctx *c, enum tcp_mib_item item)
{
	return stat(c, item) - c->before.mib[item];
}

/* What was deferred is freed, by the CPU that made it. */
static void flush_all(struct defer_ctx *c)
{
	sk_defer_free_flush(c->era, &c->sk);
	if (c->defer == TCP_DEFER_CPU_LIST || c->defer == TCP_DEFER_NODE_LLIST)
		skb_defer_free_flush(c->era,
				     c->defer == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST
								    : SKB_DEFER_NODE_LLIST,
				     this_softnet());
}

/* Pages that somebody holds; of a pool's, which keeps its own, destroying it tells. */
static size_t pages_out(const struct defer_ctx *c)
{
	struct zone_stats z;

	zone_stats(c->zone_nid, &z);
	return z.nr_pages - z.nr_free - z.nr_pcp -
	       (c->pool ? (size_t)page_pool_inflight(c->pool) : 0);
}

/* Reads what the softirq was ahead of the reader. */
static void drain(struct defer_ctx *c, bool two)
{
	unsigned int cpu = smp_processor_id();

	if (two)
		as_cpu(cpu + 1);
	for (u32 left = tcp_inq(&c->sk); left;)
		left -= reader_recv(c, left, MSG_DONTWAIT);
	as_cpu(cpu);
}

static int check_bytes(struct defer_ctx *c, u32 seq, u32 len, char *err, size_t errlen)
{
	for (u32 i = 0; i < len; i++) {
		u8 is = ((u8 *)c->r.to)[i];

		if (is == byte_at(seq + i))
			continue;
		snprintf(err, errlen, "byte %u of the stream is %#x, not %#x", seq + i, is,
			 byte_at(seq + i));
		return -1;
	}
	return 0;
}

/* NR packets come, then all of them are read, by another CPU if the case has two. */
static int check_turn(struct defer_ctx *c, unsigned int nr, bool two, char *err, size_t errlen)
{
	unsigned int cpu = smp_processor_id();
	u64 left = (u64)nr * c->bytes;

	for (unsigned int i = 0; i < nr; i++) {
		dma(c);
		softirq_packet(c, c->pool);
	}
	if (tcp_rx_check(&c->sk, err, errlen))
		return -1;
	if (two)
		as_cpu(cpu + 1);
	while (left) {
		u32 seq = c->sk.copied_seq, got = reader_recv(c, left, MSG_DONTWAIT);

		if (!got) {
			snprintf(err, errlen, "%llu bytes of %u packets never came",
				 (unsigned long long)left, nr);
			break;
		}
		if (check_bytes(c, seq, got, err, errlen))
			break;
		left -= got;
	}
	as_cpu(cpu);
	return left ? -1 : tcp_rx_check(&c->sk, err, errlen);
}

static int defer_check(void *arg, bool two, char *err, size_t errlen)
{
	struct defer_ctx *c = arg;
	u32 sent_seq = c->s.sent_seq;
	u64 other, last;
	size_t pages;
	int ret = 0;

	inet_rcu_attach();
	drain(c, two);
	/* What the span's sender had sent ahead is sent by hand here. */
	c->s.sent = c->s.taken;
	c->s.sent_seq = c->flow.seq;
	flush_all(c);
	pages = pages_out(c);
	other = stat(c, TCP_MIB_FREE_LOCKED_OTHER);
	last = stat(c, TCP_MIB_FREE_LOCKED_LAST);
	for (unsigned int t = 0; t < CHECK_TURNS && !ret; t++)
		ret = check_turn(c, 1 + t % 4, two, err, errlen);
	c->s.sent = c->s.taken;
	c->s.sent_seq = c->flow.seq;
	flush_all(c);
	inet_rcu_detach();
	if (ret || tcp_rx_check_quiet(&c->sk, err, errlen))
		return -1;
	other = stat(c, TCP_MIB_FREE_LOCKED_OTHER) - other;
	last = stat(c, TCP_MIB_FREE_LOCKED_LAST) - last;
	if (c->defer == TCP_DEFER_SK_LLIST && (other || !last)) {
		snprintf(err, errlen,
			 "%llu sk_buffs freed under the lock that were not the last, %llu that "
			 "were",
			 (unsigned long long)other, (unsigned long long)last);
		return -1;
	}
	if (pages_out(c) != pages || c->napi.refused != c->s.nr_others) {
		snprintf(err, errlen,
			 "%zu pages held, not %zu; %llu packets without a socket, not %llu "
			 "(sent up to %u)",
			 pages_out(c), pages, (unsigned long long)c->napi.refused,
			 (unsigned long long)c->s.nr_others, sent_seq);
		return -1;
	}
	count_from_here(c);
	return 0;
}

static int check_two(void *arg, char *err, size_t errlen)
{
	return defer_check(arg, true, err, errlen);
}

static int check_one(void *arg, char *err, size_t errlen)
{
	return defer_check(arg, false, err, errlen);
}

/* --- ledger: one packet with another behind it, step by step
 * ---------------------------------------------------- */

static void phase_deliver(void *arg)
{
	struct defer_ctx *c = arg;

	softirq_packet(c, c->pool);
}

static void phase_eat(void *arg)
{
	struct defer_ctx *c = arg;
	struct sk_buff *skb = skb_peek(&c->sk.sk_receive_queue);

	skb_store(&c->sk.copied_seq, TCP_SKB_CB(skb)->end_seq, SKB_C_OTHER);
	tcp_eat_recv_skb(c->era, c->defer, &c->sk, skb);
}

static void phase_free(void *arg)
{
	struct defer_ctx *c = arg;

	if (c->pool)
		page_pool_poll_begin(c->pool);
	flush_all(c);
	if (c->pool)
		page_pool_poll_end(c->pool);
}

static void phase_read(void *arg)
{
	struct defer_ctx *c = arg;

	BUG_ON(c->fn.recv(&c->sk, c->r.to, c->bytes, MSG_DONTWAIT) != (int)c->bytes);
}

/*
 * The softirq is this CPU, the reader another one. Two packets wait: `eat` lets go of the first
 * under the lock, `free` is what is left to free outside of it, `read` takes the second, the last.
 */
static void defer_ledger(void *arg)
{
	struct defer_ctx *c = arg;
	unsigned int cpu = smp_processor_id();

	inet_rcu_attach();
	phase_deliver(c);
	bench_phase("deliver", phase_deliver, c);
	as_cpu(cpu + 1);
	lock_sock(SOCK_WAIT_SPIN, &c->sk);
	bench_phase("eat", phase_eat, c);
	release_sock(&c->sk);
	as_cpu(cpu);
	bench_phase("free", phase_free, c);
	as_cpu(cpu + 1);
	bench_phase("read", phase_read, c);
	as_cpu(cpu);
	flush_all(c);
	c->s.sent = c->s.taken;
	c->s.sent_seq = c->flow.seq;
	inet_rcu_detach();
}

/* --- report
 * ---------------------------------------------------------------------------------------------- */

static void report_sites(const struct defer_ctx *c, struct bench_report *r, double packets)
{
	u64 reader = counted(c, TCP_MIB_FREE_READER), softirq = counted(c, TCP_MIB_FREE_SOFTIRQ);

	/* Of the lists for a CPU the softirq flushes its own. */
	softirq += c->napi.flushed - c->before.flushed;
	bench_report_add(r, "free_locked_last",
			 (double)counted(c, TCP_MIB_FREE_LOCKED_LAST) / packets);
	bench_report_add(r, "free_locked_flush",
			 (double)counted(c, TCP_MIB_FREE_LOCKED_FLUSH) / packets);
	bench_report_add(r, "free_locked_other",
			 (double)counted(c, TCP_MIB_FREE_LOCKED_OTHER) / packets);
	bench_report_add(r, "free_reader", (double)reader / packets);
	bench_report_add(r, "free_softirq", (double)softirq / packets);
}

/* Us that a packet costs a role, without its waits; and the share of its time. */
static void report_role(struct bench_report *r, const char *us_name, const char *util_name,
			const struct role_sum *sum)
{
	double busy = (double)(sum->wall - sum->waited), packets = (double)sum->packets;

	bench_report_add(r, us_name, packets ? busy * bench_tick_ns() / 1000 / packets : 0);
	bench_report_add(r, util_name, sum->wall ? busy / (double)sum->wall : 0);
}

static void defer_report(void *arg, struct bench_report *r)
{
	const struct defer_ctx *c = arg;
	/* Roles begin and end some microseconds apart: the longer one's wall time is the operation's. */
	const struct role_sum *whole =
		c->r.sum.packets && c->r.sum.wall > c->s.sum.wall ? &c->r.sum : &c->s.sum;
	double packets = (double)max(c->s.packets, (u64)1), tick_us = bench_tick_ns() / 1000;
	double us = whole->packets ? (double)whole->wall * tick_us / (double)whole->packets : 0;
	struct zone_stats z;

	zone_stats(c->zone_nid, &z);
	bench_report_add(r, "packets", packets);
	bench_report_add(r, "packets_alone", (double)whole->packets);
	bench_report_add(r, "packet_bytes", c->bytes);
	bench_report_add(r, "packet_pages", c->segs);
	bench_report_add(r, "wire_us", (double)c->wire * tick_us);
	bench_report_add(r, "link_util",
			 c->s.ran ? packets * (double)c->wire / (double)c->s.ran : 0);
	bench_report_add(r, "packet_us", us);
	bench_report_add(r, "gbit", us ? c->bytes * 8 / (us * 1000) : 0);
	report_role(r, "softirq_us", "softirq_util", &c->s.sum);
	report_role(r, "reader_us", "reader_util", &c->r.sum);
	bench_report_add(r, "others_us", (double)c->s.others * tick_us / packets);
	report_sites(c, r, packets);
	bench_report_add(r, "backlog_adds", (double)counted(c, TCP_MIB_BACKLOGADD) / packets);
	bench_report_add(r, "backlog_joins", (double)counted(c, TCP_MIB_BACKLOGCOALESCE) / packets);
	bench_report_add(r, "drops",
			 (double)(counted(c, TCP_MIB_BACKLOGDROP) + counted(c, TCP_MIB_RCVQDROP) +
				  counted(c, TCP_MIB_ZEROWINDOWDROP) +
				  counted(c, TCP_MIB_OFODROP)));
	bench_report_add(r, "zone_trips",
			 (double)(z.zone_locks - c->before.zone.zone_locks) / packets);
	bench_report_add(r, "list_hits",
			 (double)(z.pcp_alloc_hits - c->before.zone.pcp_alloc_hits) / packets);
	bench_report_add(r, "deferred_peak_kb",
			 (double)max(c->napi.most_flushed, net_most_flushed(&c->net)) * c->bytes /
				 1024);
	if (bench_probe_report)
		bench_probe_report(r);
}

/* --- the case
 * --------------------------------------------------------------------------------------------- */

static void defer_teardown(void *arg)
{
	struct defer_ctx *c = arg;

	inet_rcu_attach();
	flush_all(c);
	if (c->sk.sk_net) {
		inet_unhash(&c->sk);
		inet_rcu_synchronize();
		tcp_rx_destroy(c->era, &c->sk);
		tcp_sock_destroy(c->era, &c->sk);
	}
	rx_napi_exit(c->era, &c->napi);
	/* Everybody has let go of the pool's pages by now. */
	BUG_ON(c->pool && page_pool_destroy(c->pool));
	net_exit(&c->net);
	inet_rcu_detach();
	napi_cache_drain();
	tx_ring_exit(&c->tx);
	free(c->r.to);
	mem_free(c);
}

static u32 ring_size(const struct bench_args *args)
{
	return bench_arg(args, "payload") ? RING_DRAM : RING_LLC;
}

/* The ring, the window, what may be deferred, and what CPUs keep. */
static size_t defer_pages(const struct bench_args *args)
{
	size_t segs = shapes[bench_arg(args, "shape")].segs;
	size_t window = (size_t)bench_arg(args, "window") * 1024 / 1448;

	return ring_size(args) + window + 2 * SKB_DEFER_MAX_DEFAULT * segs + 4096;
}

static struct page *pool_get(void *pool)
{
	return page_pool_alloc_pages(pool);
}

static void pool_put(void *pool, struct page *page)
{
	page_pool_put_page(pool, page, false);
}

/* The ring, filled from a pool as drivers have it: with as many slots as the ring has frames, at most. */
static int make_ring(struct defer_ctx *c, const struct bench_args *args)
{
	enum shape shape = bench_arg(args, "shape");
	const struct page_pool_params params = {
		.pool_size = min(ring_size(args), (u32)PP_RING_MAX),
		.nid = NUMA_NO_NODE,
	};
	struct rx_pages from = { pool_get, pool_put, NULL, true };

	if (bench_arg(args, "pages") == PAGES_POOL) {
		int ret = page_pool_create(&params, &c->pool);

		if (ret)
			return ret;
		from.ctx = c->pool;
		rx_pages_prime(shapes[shape].driver, &c->flow, c->pool->p.nid);
	}
	return rx_napi_init(c->era, &c->napi, &c->net, shapes[shape].driver, ring_size(args),
			    c->pool ? &from : NULL, shapes[shape].gro_max_size);
}

static int make(struct defer_ctx *c, const struct bench_args *args)
{
	enum shape shape = bench_arg(args, "shape");
	size_t room;
	int ret;

	c->flow = (struct rx_flow){
		.tuple = { .saddr = __builtin_bswap32(0x0a000001),
			   .daddr = __builtin_bswap32(0x0a000002),
			   .sport = __builtin_bswap16(40000),
			   .dport = __builtin_bswap16(5201) },
		.seq = 1,
		.mss = shapes[shape].mss,
	};
	c->other = c->flow;
	c->other.tuple.sport = __builtin_bswap16(40001);
	c->s.sent_seq = c->flow.seq;
	ret = net_init(&c->net);
	if (!ret)
		ret = tx_ring_init(&c->tx, 64);
	if (ret)
		return ret;
	tcp_sock_init(&c->sk, &c->prot, &c->tx, 0);
	tcp_rx_init(c->era, c->sleeps ? SOCK_WAIT_SLEEP : SOCK_WAIT_SPIN, &c->sk, &c->net, RCVBUF);
	ret = inet_hash(&c->net, &c->sk, &c->flow.tuple);
	if (!ret)
		ret = make_ring(c, args);
	if (ret)
		return ret;
	rx_ring_prime(&c->napi, &c->flow);
	c->zone_nid = c->pool && c->pool->p.nid != NUMA_NO_NODE ? (unsigned int)c->pool->p.nid
								: numa_node_id();
	/* The ledger reads a packet at once. */
	room = ALIGN(max(c->r.read_size, (size_t)c->bytes), PAGE_SIZE);
	c->r.to = aligned_alloc(PAGE_SIZE, room);
	if (!c->r.to)
		return -ENOMEM;
	memset(c->r.to, 0, room);
	return 0;
}

static int defer_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	enum shape shape = bench_arg(args, "shape");
	u32 bytes = (u32)shapes[shape].segs * shapes[shape].mss;
	long window = bench_arg(args, "window") * 1024, rate = bench_arg(args, "rate");
	struct defer_ctx *c;
	int ret;

	if (window < (long)bytes) {
		snprintf(err, errlen, "a window of %ld KB is less than a packet of %u bytes",
			 window / 1024, bytes);
		return -EINVAL;
	}
	c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));
	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return -ENOMEM;
	}
	softnet_init();
	c->era = bench_arg(args, "era") ? ERA_6_12 : ERA_6_1;
	c->defer = bench_arg(args, "variant");
	c->fn = fns[c->era == ERA_6_12][c->defer];
	c->segs = shapes[shape].segs;
	c->bytes = bytes;
	c->window = bench_arg(args, "mode") == MODE_RPC ? bytes : (u32)window;
	c->load = bench_arg(args, "load");
	c->stops = bench_arg(args, "reader") == READER_STOPS;
	c->sleeps = bench_arg(args, "reader") == READER_SLEEPS;
	if (c->sleeps)
		c->fn.recv = sleep_fns[c->era == ERA_6_12][c->defer];
	c->r.read_size = bench_arg(args, "read_size");
	if (rate)
		c->wire = (u64)((double)(bytes + c->segs * WIRE_EXTRA) * 8 / (double)rate /
				bench_tick_ns());
	ret = make(c, args);
	if (ret) {
		snprintf(err, errlen, "the receiver could not be made: %s", strerror(-ret));
		defer_teardown(c);
		return ret;
	}
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 2,
		.role = { { "softirq", c->pool ? span_softirq_pool : span_softirq },
			  { "reader", span_reader } },
		.bytes_per_op = (u64)PACKETS * bytes,
		.pipeline = true,
		.by_wall = !c->sleeps,
		.sleeps = c->sleeps,
		.check = check_two,
		.ledger = defer_ledger,
		.report = defer_report,
		.teardown = defer_teardown,
	};
	if (bench_arg(args, "cpus") == CPUS_ONE) {
		out->nr_roles = 1;
		out->role[0] = (struct bench_role){ "both", c->pool ? span_both_pool : span_both };
		out->check = check_one;
		out->ledger = NULL; /* the ledger's reader is another CPU */
	}
	return 0;
}

static const struct bench_key defer_keys[] = {
	{ "era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold" },
	{ "variant", variant_words, 0, 0, "inline", "inline,sk_llist,cpu_list,node_llist",
	  "where the reader lets go of an sk_buff" },
	{ "shape", shape_words, 0, 0, "header", "header,mtu4096", "how a packet lies in sk_buffs" },
	{ "rate", NULL, 0, 1000, "100", "100", "Gbit/s of the link; 0: what the receiver takes" },
	{ "payload", payload_words, 0, 0, "llc", "llc",
	  "where the payload lies when it is copied" },
	{ "pages", pages_words, 0, 0, "plain", "plain", "where the ring's pages come from" },
	{ "load", NULL, 0, 1000, "0", "0", "other flows' packets, in percent of the stream's" },
	{ "mode", mode_words, 0, 0, "stream", "stream", "when the next packet is sent" },
	{ "read_size", NULL, 1024, 1 << 22, "131072", "131072", "bytes that a read asks for" },
	{ "window", NULL, 64, 16384, "1024", "1024", "KB that the sender is ahead at most" },
	{ "cpus", cpus_words, 0, 0, "two", "two", "softirq and reader on two CPUs or on one" },
	{ "reader", reader_words, 0, 0, "steady", "steady", "whether it stops between reads" },
	{ 0 },
};

static const struct bench_op defer_op = {
	.name = "tcp/defer",
	.summary = "64 packets of one TCP stream from the ring to the reader's buffer",
	.keys = defer_keys,
	.prepare = defer_prepare,
	.pages = defer_pages,
};

void bench_tcp_defer_register(void)
{
	bench_register(&defer_op);
}
