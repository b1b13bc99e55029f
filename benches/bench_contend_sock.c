/* SPDX-License-Identifier: MIT */
/*
 * The socket lock between a reader and softirqs on other CPUs, and the backlog that comes of it.
 *
 *   operation           keys               one operation is
 *   contend/lock_sock   era copy threads   a packet from each of THREADS softirqs, by delivery or by the backlog, while
 *                                          a reader takes and gives the socket back, over and over
 *
 *   copy  bytes that the reader copies while it owns the socket
 *
 * Kernel: lock_sock(), release_sock(), bh_lock_sock() in net/core/sock.c, tcp_add_backlog(), 6.12. A softirq that finds
 * the socket owned leaves its packet in the backlog, and the reader works that off before it lets go; the report tells
 * which share went that way, and how often the reader had the socket for each packet. What is fake here: a delivered
 * packet only comes back to its softirq, which has 64 of them, each of one page, none continuing another; the reader
 * copies the same bytes again and does not wait for data; several softirqs for one socket are what several queues of a
 * NIC make of it without flow steering. Time spent waiting for slock is booked as waiting.
 */
#include "benches/bench_contend.h"

#include "skb/skb_check.h"
#include "tcp/tcp_rx.h"

#define PACKETS	    64
#define PAYLOAD	    1448
#define RCVBUF	    (64 << 20)
#define MAX_THREADS (BENCH_MAX_ROLES - 1)
#define MAX_COPY    65536
#define TELL	    16 /* packets between two looks that the reader gets at a softirq's count */

static const char *const rx_era_words[] = { "6.1", "6.12", NULL };

struct packet {
	struct sk_buff *skb;
	int out; /* on its way */
};

struct softirq {
	u64 handled
		____cacheline_aligned; /* packets delivered or dropped, as far as told; the reader looks */
	u64 delivered ____cacheline_aligned, dropped, at;
	struct packet packet[PACKETS];
};

struct sock_ctx {
	struct sock sk;
	struct net net;
	struct proto_memory prot;
	enum skb_era era;
	unsigned int threads, copy;
	char *from, *to; /* the reader's copy */
	struct packet one_packet; /* of the phases */
	u64 backlogged ____cacheline_aligned; /* packets that the reader worked off */
	u64 goal, pairs; /* the reader's, over all spans */
	struct softirq softirq[MAX_THREADS];
};

/* Packets know where they are from by what the stack leaves alone. */
static struct packet *packet_of(struct sk_buff *skb)
{
	return (struct packet *)skb->dev;
}

/* Pairs with the softirq's acquire. */
static __always_inline void come_back(struct packet *p)
{
	smp_store_release(&p->out, 0, SKB_C_OTHER);
}

static int backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	container_of(sk, struct sock_ctx, sk)->backlogged++;
	come_back(packet_of(skb));
	return 0;
}

static struct sk_buff *new_packet(enum skb_era era, struct packet *p)
{
	struct tcp_segment seg = { .seq = 1, .ack_seq = 1, .flags = TCPHDR_ACK, .window = 512 };
	struct sk_buff *skb = alloc_skb(era, NET_SKB_PAD + TCP_WIRE_BYTES, NUMA_NO_NODE);
	struct page *page = alloc_pages(0);

	if (!skb || !page) {
		if (skb)
			kfree_skb(era, skb);
		if (page)
			put_page(page);
		return NULL;
	}
	skb_reserve(skb, NET_SKB_PAD);
	tcp_build_frame(skb_put(skb, TCP_WIRE_BYTES), &seg);
	tcp_pull_to_header(skb);
	skb_add_rx_frag(skb, 0, page, 0, PAYLOAD, PAGE_SIZE);
	TCP_SKB_CB(skb)->seq = 1;
	TCP_SKB_CB(skb)->end_seq = 0; /* what follows does not continue it */
	TCP_SKB_CB(skb)->ack_seq = 1;
	TCP_SKB_CB(skb)->tcp_flags = TCPHDR_ACK;
	TCP_SKB_CB(skb)->ip_dsfield = 0;
	skb->dev = p;
	return skb;
}

enum fate { DELIVERED, BACKLOGGED, DROPPED };

/* What a softirq does with a packet for this socket. */
static __always_inline enum fate deliver(struct sock_ctx *c, struct packet *p,
					 const enum skb_era era)
{
	struct sock *sk = &c->sk;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		if (tcp_add_backlog(era, sk, p->skb)) { /* slock is free */
			come_back(p);
			return DROPPED;
		}
		bh_unlock_sock(sk);
		return BACKLOGGED;
	}
	come_back(p);
	bh_unlock_sock(sk);
	return DELIVERED;
}

static __always_inline void copy_some(struct sock_ctx *c)
{
	if (c->copy)
		skb_memcpy(c->to, c->from, c->copy, SKB_C_PAYLOAD);
}

#define SOFTIRQ_SPAN(suffix, era)                                                         \
	static void span_softirq_##suffix(void *arg, u64 n)                               \
	{                                                                                 \
		struct sock_ctx *c = arg;                                                 \
		struct softirq *s = &c->softirq[smp_processor_id() - 1];                  \
		u64 before = sock_waited;                                                 \
                                                                                          \
		while (n--) {                                                             \
			struct packet *p = &s->packet[s->at++ % PACKETS];                 \
			enum fate fate;                                                   \
                                                                                          \
			bench_wait_until(!smp_load_acquire(&p->out, SKB_C_OTHER));        \
			skb_store(&p->out, 1, SKB_C_OTHER);                               \
			fate = deliver(c, p, era);                                        \
			s->delivered += fate == DELIVERED;                                \
			s->dropped += fate == DROPPED;                                    \
			if (!(n % TELL))                                                  \
				smp_store_release(&s->handled, s->delivered + s->dropped, \
						  SKB_C_OTHER);                           \
		}                                                                         \
		bench_waited += sock_waited - before;                                     \
	}
TCP_RX_FOR_EACH_ERA(SOFTIRQ_SPAN)

static bool all_came(struct sock_ctx *c)
{
	u64 sum = c->backlogged;

	for (unsigned int i = 0; i < c->threads; i++)
		sum += smp_load_acquire(&c->softirq[i].handled, SKB_C_OTHER);
	return sum == c->goal;
}

static void span_reader(void *arg, u64 n)
{
	struct sock_ctx *c = arg;
	u64 before = sock_waited;

	c->goal += n * c->threads;
	do {
		lock_sock(SOCK_WAIT_SPIN, &c->sk);
		copy_some(c);
		release_sock(&c->sk);
		c->pairs++;
	} while (!all_came(c));
	bench_waited += sock_waited - before;
}

static void phase_lock(void *arg)
{
	lock_sock(SOCK_WAIT_SPIN, &((struct sock_ctx *)arg)->sk);
}

static void phase_copy(void *arg)
{
	copy_some(arg);
}

static void phase_deliver(void *arg)
{
	struct sock_ctx *c = arg;

	c->one_packet.out = 1;
	deliver(c, &c->one_packet, c->era);
}

static void phase_release(void *arg)
{
	release_sock(&((struct sock_ctx *)arg)->sk);
}

static void one(void *arg)
{
	struct sock_ctx *c = arg;
	u64 before = c->backlogged;

	bench_phase("lock", phase_lock, c);
	bench_phase("copy", phase_copy, c);
	bench_phase("backlog", phase_deliver, c);
	bench_phase("release", phase_release, c);
	BUG_ON(c->backlogged != before + 1);
	c->backlogged = before; /* the spans' packets alone */
	bench_phase("deliver", phase_deliver, c);
}

/* No packet lost and none twice: each softirq has all of its own, and the counts add up. */
static int check(void *arg, char *err, size_t errlen)
{
	struct sock_ctx *c = arg;
	u64 came = c->backlogged;

	one(c);
	for (unsigned int i = 0; i < c->threads; i++) {
		const struct softirq *s = &c->softirq[i];

		came += s->delivered + s->dropped;
		for (unsigned int k = 0; k < PACKETS; k++)
			if (s->packet[k].out || skb_check(s->packet[k].skb, err, errlen)) {
				if (s->packet[k].out)
					snprintf(err, errlen, "packet %u of softirq %u is lost", k,
						 i);
				return -1;
			}
	}
	if (came == c->goal && !c->one_packet.out && !c->sk.sk_lock.owned &&
	    !c->sk.sk_lock.slock.locked && !c->sk.sk_backlog.head && !c->sk.sk_backlog.len)
		return 0;
	snprintf(err, errlen, "%llu packets came of %llu; owned %d, locked %d, backlog %d",
		 (unsigned long long)came, (unsigned long long)c->goal, c->sk.sk_lock.owned,
		 c->sk.sk_lock.slock.locked, c->sk.sk_backlog.len);
	return -1;
}

static void report(void *arg, struct bench_report *report)
{
	struct sock_ctx *c = arg;
	double goal = c->goal ? (double)c->goal : 1, dropped = 0;

	for (unsigned int i = 0; i < c->threads; i++)
		dropped += (double)c->softirq[i].dropped;
	bench_report_add(report, "backlog_share", (double)c->backlogged / goal);
	bench_report_add(report, "drop_share", dropped / goal);
	bench_report_add(report, "locks_per_packet", (double)c->pairs / goal);
}

static void teardown(void *arg)
{
	struct sock_ctx *c = arg;

	for (unsigned int i = 0; i < c->threads; i++)
		for (unsigned int k = 0; k < PACKETS; k++)
			if (c->softirq[i].packet[k].skb)
				kfree_skb(c->era, c->softirq[i].packet[k].skb);
	if (c->one_packet.skb)
		kfree_skb(c->era, c->one_packet.skb);
	c->sk.skc_state = TCP_CLOSE;
	tcp_rx_destroy(c->era, &c->sk);
	tcp_sock_destroy(c->era, &c->sk);
	free(c->from);
	free(c->to);
	mem_free(c);
}

static bool make_packets(struct sock_ctx *c)
{
	for (unsigned int i = 0; i < c->threads; i++)
		for (unsigned int k = 0; k < PACKETS; k++) {
			struct packet *p = &c->softirq[i].packet[k];

			p->skb = new_packet(c->era, p);
			if (!p->skb)
				return false;
		}
	c->one_packet.skb = new_packet(c->era, &c->one_packet);
	return c->one_packet.skb;
}

static int prepare(const struct bench_args *args, struct bench_case *out, char *err, size_t errlen)
{
	static void (*const softirq[])(void *, u64) = { span_softirq_6_1, span_softirq_6_12 };
	long era = bench_arg(args, "era");
	struct sock_ctx *c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));

	if (!c) {
		snprintf(err, errlen, "no memory for the socket");
		return -ENOMEM;
	}
	c->era = era ? ERA_6_12 : ERA_6_1;
	c->threads = (unsigned int)bench_arg(args, "threads");
	c->copy = (unsigned int)bench_arg(args, "copy");
	tcp_sock_init(&c->sk, &c->prot, NULL, 0);
	tcp_rx_init(c->era, SOCK_WAIT_SPIN, &c->sk, &c->net, RCVBUF);
	c->sk.sk_backlog_rcv = backlog_rcv;
	c->from = contend_zalloc(MAX_COPY, err, errlen);
	c->to = contend_zalloc(MAX_COPY, err, errlen);
	if (!c->from || !c->to || !make_packets(c)) {
		teardown(c);
		snprintf(err, errlen, "no memory for the case: more --skb_pages");
		return -ENOMEM;
	}
	*out = (struct bench_case){
		.ctx = c,
		.role = { { "reader", span_reader } },
		.ops = c->threads,
		.check = check,
		.ledger = one,
		.report = report,
		.teardown = teardown,
	};
	contend_roles(out, 1, c->threads, "softirq", softirq[era]);
	return 0;
}

static const struct bench_key keys[] = {
	{ "era", rx_era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold" },
	{ "copy", NULL, 0, MAX_COPY, "1448", "0,1448,16384",
	  "bytes that the reader copies as owner" },
	CONTEND_KEY_THREADS(MAX_THREADS, "1", "1,2", "softirqs, besides the reader"),
	{ 0 },
};

static const struct bench_op op = { "contend/lock_sock", "a socket between a reader and softirqs",
				    keys, prepare, NULL };

void bench_contend_sock(void)
{
	bench_register(&op);
}
