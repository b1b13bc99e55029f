/* SPDX-License-Identifier: MIT */
/*
 * TCP's receive side, operation by operation.
 *
 *   operation             keys                     one operation is
 *   tcp/lock_sock         how with                 one pair of lock and unlock
 *   tcp/backlog           era nr join              NR packets into the backlog of an owned socket, and
 *                                                  its release, which hands them on
 *   tcp/tcp_queue_rcv     era how frags            a segment into the receive queue, charged, and out
 *   tcp/tcp_eat_recv_skb  era variant frags depth  an sk_buff made and queued; EATEN; what was
 *                                                  deferred is freed
 *
 *   key      values
 *   how      sock fast bh       (lock_sock) lock_sock() and release_sock(); lock_sock_fast() of a
 *                               socket that nobody owns; bh_lock_sock()
 *            queue coalesce     (tcp_queue_rcv) appended to the queue, or made part of its last
 *   with     alone softirq      another CPU takes slock all the while, as a softirq does: one operation is
 *                               the reader's alone
 *   era      6.1 6.12
 *   nr       1 to 64            packets in the backlog
 *   join     0 1                each continues the one before and becomes part of the first
 *   frags    1 to 45            pages of an sk_buff: 45 are 64 KB as GRO merges them, 17 in the first
 *                               sk_buff and the rest in its frag_list
 *   variant  inline sk_llist cpu_list node_llist   tcp/tcp_defer.h
 *   depth    0 1                sk_buffs left in the queue: sk_llist frees the last one at once
 *
 * What the kernel does: these are its functions of the same names. What is fake here: payload is not
 * copied; the owner, the softirq and the CPU that gets deferred sk_buffs back are calls of one
 * thread, so that no line moves between CPUs (with:softirq is the exception; the pipeline that has
 * all roles on CPUs of their own is another benchmark); sk_buffs for cpu_list and node_llist are
 * told that they were made on the next CPU. An sk_buff that is eaten must be made anew, and its time
 * holds that: ledger and instruction counts tell the steps apart.
 */
#include "benches/bench_tcp_rx.h"
#include "benches/harness/quota.h"

#include "skb/page_alloc.h"
#include "skb/skb_check.h"
#include "skb/skb_defer.h"
#include "tcp/tcp_rx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NR	  64
#define MAX_FRAGS 45
#define PAYLOAD	  1448 /* of each page */
#define RCVBUF	  (64 << 20)

static const char *const lock_words[] = { "sock", "fast", "bh", NULL };
static const char *const with_words[] = { "alone", "softirq", NULL };
static const char *const era_words[] = { "6.1", "6.12", NULL };
static const char *const queue_words[] = { "queue", "coalesce", NULL };
static const char *const variant_words[] = { "inline", "sk_llist", "cpu_list", "node_llist", NULL };

struct rx_ctx {
	struct sock sk;
	struct net net;
	struct proto_memory prot;
	enum skb_era era;
	enum tcp_defer defer;
	unsigned int nr, frags, depth;
	bool join;
	struct sk_buff *skb[MAX_NR]; /* packets that wait for their turn, and come back */
	unsigned int got; /* how many did */
	struct sk_buff *other; /* stays in the queue: depth 1 */
	int how;
	void (*one)(void *ctx);
	struct bench_quota quota; /* with another CPU */
};

/*
 * --- packets
 * ----------------------------------------------------------------------------------------------
 */

/* FRAGS pages behind a header, 17 to an sk_buff, SEQ noted as if the header had been read. */
static struct sk_buff *make_skb(const enum skb_era era, u32 seq, unsigned int frags, bool header)
{
	struct tcp_segment seg = { .seq = seq, .ack_seq = 1, .flags = TCPHDR_ACK, .window = 512 };
	struct sk_buff *skb = NULL, *to = NULL, **link = NULL;
	unsigned int i;

	for (i = 0; i < frags; i++) {
		struct page *page;

		if (!to || skb_shinfo(to)->nr_frags == MAX_SKB_FRAGS) {
			to = alloc_skb(era, NET_SKB_PAD + TCP_WIRE_BYTES, NUMA_NO_NODE);
			BUG_ON(!to);
			skb_reserve(to, NET_SKB_PAD);
			if (!skb) {
				skb = to;
				link = &skb_shinfo(skb)->frag_list;
				tcp_build_frame(skb_put(skb, TCP_WIRE_BYTES), &seg);
				tcp_pull_to_header(skb);
				if (!header)
					__skb_pull(skb, TCP_WIRE_TCP_BYTES);
			} else {
				to->next = NULL;
				*link = to;
				link = &to->next;
				skb->truesize += to->truesize;
			}
		}
		page = alloc_pages(0);
		BUG_ON(!page);
		skb_fill_page_desc(to, skb_shinfo(to)->nr_frags, page, 0, PAYLOAD);
		to->len += PAYLOAD;
		to->data_len += PAYLOAD;
		to->truesize += PAGE_SIZE;
		if (to != skb) {
			skb->len += PAYLOAD;
			skb->data_len += PAYLOAD;
			skb->truesize += PAGE_SIZE;
		}
	}
	TCP_SKB_CB(skb)->seq = seq;
	TCP_SKB_CB(skb)->end_seq = seq + frags * PAYLOAD;
	TCP_SKB_CB(skb)->ack_seq = 1;
	TCP_SKB_CB(skb)->tcp_flags = TCPHDR_ACK;
	TCP_SKB_CB(skb)->ip_dsfield = 0;
	return skb;
}

/*
 * --- the lock
 * ----------------------------------------------------------------------------------------------
 */

enum { LOCK_SOCK, LOCK_FAST, LOCK_BH };

static __always_inline void take(struct sock *sk, const int how)
{
	if (how == LOCK_SOCK)
		lock_sock(SOCK_WAIT_SPIN, sk);
	else if (how == LOCK_FAST)
		BUG_ON(lock_sock_fast(SOCK_WAIT_SPIN, sk));
	else
		bh_lock_sock(sk);
}

static __always_inline void give(struct sock *sk, const int how)
{
	if (how == LOCK_SOCK)
		release_sock(sk);
	else if (how == LOCK_FAST)
		unlock_sock_fast(sk, false);
	else
		bh_unlock_sock(sk);
}

#define LOCK_SPANS(name, how)                                            \
	static void span_lock_##name(void *arg, u64 n)                   \
	{                                                                \
		struct rx_ctx *c = arg;                                  \
		u64 before = sock_waited;                                \
                                                                         \
		while (n--) {                                            \
			take(&c->sk, how);                               \
			give(&c->sk, how);                               \
		}                                                        \
		bench_waited += sock_waited - before;                    \
	}                                                                \
	static void span_reader_##name(void *arg, u64 n)                 \
	{                                                                \
		struct rx_ctx *c = arg;                                  \
		struct bench_share share = quota_begin(&c->quota, n, 1); \
		u64 before = sock_waited;                                \
                                                                         \
		while ((n = quota_take(&c->quota, &share)))              \
			while (n--) {                                    \
				take(&c->sk, how);                       \
				give(&c->sk, how);                       \
			}                                                \
		bench_waited += sock_waited - before;                    \
	}                                                                \
	static void phase_take_##name(void *arg)                         \
	{                                                                \
		take(&((struct rx_ctx *)arg)->sk, how);                  \
	}                                                                \
	static void phase_give_##name(void *arg)                         \
	{                                                                \
		give(&((struct rx_ctx *)arg)->sk, how);                  \
	}                                                                \
	static void one_lock_##name(void *arg)                           \
	{                                                                \
		bench_phase("lock", phase_take_##name, arg);             \
		bench_phase("unlock", phase_give_##name, arg);           \
	}
LOCK_SPANS(sock, LOCK_SOCK)
LOCK_SPANS(fast, LOCK_FAST)
LOCK_SPANS(bh, LOCK_BH)

/* Takes and drops slock for as long as the reader is at it. */
static void span_softirq(void *arg, u64 n)
{
	struct rx_ctx *c = arg;
	struct bench_share share = quota_begin(&c->quota, n, 1);
	u64 before = sock_waited;

	do {
		bh_lock_sock(&c->sk);
		bh_unlock_sock(&c->sk);
	} while (!quota_over(&c->quota, &share));
	bench_waited += sock_waited - before;
}

static int check_lock(void *arg, char *err, size_t errlen)
{
	static const struct {
		int locked, owned;
	} held[] = { { 0, 1 }, { 1, 0 }, { 1, 0 } };
	struct rx_ctx *c = arg;
	const socket_lock_t *l = &c->sk.sk_lock;
	int locked, owned;

	take(&c->sk, c->how);
	locked = l->slock.locked;
	owned = l->owned;
	give(&c->sk, c->how);
	if (locked == held[c->how].locked && owned == held[c->how].owned && !l->slock.locked &&
	    !l->owned)
		return 0;
	snprintf(err, errlen, "locked: slock %d, owned %d; unlocked: %d, %d", locked, owned,
		 l->slock.locked, l->owned);
	return -1;
}

/*
 * --- the backlog
 * ----------------------------------------------------------------------------------------------
 */

static struct rx_ctx *rcv_ctx(struct sock *sk)
{
	return container_of(sk, struct rx_ctx, sk);
}

/* What the owner hands on comes back for the next round. */
static int keep_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct rx_ctx *c = rcv_ctx(sk);

	c->skb[c->got++] = skb;
	return 0;
}

#define FREE_RCV(suffix, era)                                              \
	static int free_rcv_##suffix(struct sock *sk, struct sk_buff *skb) \
	{                                                                  \
		rcv_ctx(sk)->got++;                                        \
		kfree_skb(era, skb);                                       \
		return 0;                                                  \
	}
TCP_RX_FOR_EACH_ERA(FREE_RCV)

static __always_inline void do_own(struct rx_ctx *c)
{
	c->got = 0;
	lock_sock(SOCK_WAIT_SPIN, &c->sk);
}

static __always_inline void do_make_nr(struct rx_ctx *c, const enum skb_era era)
{
	for (unsigned int i = 0; i < c->nr; i++)
		c->skb[i] = make_skb(era, 1 + i * PAYLOAD, 1, true);
}

/* As a softirq that finds the socket owned, from packet I on. */
static __always_inline void do_add(struct rx_ctx *c, unsigned int i, unsigned int end,
				   const enum skb_era era)
{
	for (; i < end; i++) {
		bh_lock_sock(&c->sk);
		BUG_ON(tcp_add_backlog(era, &c->sk, c->skb[i]));
		bh_unlock_sock(&c->sk);
	}
}

/* With JOIN a packet is used up; without, those of the last round go round again. */
#define BACKLOG_SPANS(suffix, era)                                                              \
	static void span_backlog_##suffix(void *arg, u64 n)                                     \
	{                                                                                       \
		struct rx_ctx *c = arg;                                                         \
                                                                                                \
		while (n--) {                                                                   \
			do_own(c);                                                              \
			do_add(c, 0, c->nr, era);                                               \
			release_sock(&c->sk);                                                   \
		}                                                                               \
	}                                                                                       \
	static void span_backlog_join_##suffix(void *arg, u64 n)                                \
	{                                                                                       \
		struct rx_ctx *c = arg;                                                         \
                                                                                                \
		while (n--) {                                                                   \
			do_make_nr(c, era);                                                     \
			do_own(c);                                                              \
			do_add(c, 0, c->nr, era);                                               \
			release_sock(&c->sk);                                                   \
		}                                                                               \
	}                                                                                       \
	static void phase_make_nr_##suffix(void *arg)                                           \
	{                                                                                       \
		do_make_nr(arg, era);                                                           \
	}                                                                                       \
	static void phase_add_first_##suffix(void *arg)                                         \
	{                                                                                       \
		do_add(arg, 0, 1, era);                                                         \
	}                                                                                       \
	static void phase_add_more_##suffix(void *arg)                                          \
	{                                                                                       \
		do_add(arg, 1, ((struct rx_ctx *)arg)->nr, era);                                \
	}                                                                                       \
	static void one_backlog_##suffix(void *arg)                                             \
	{                                                                                       \
		struct rx_ctx *c = arg;                                                         \
                                                                                                \
		if (c->join)                                                                    \
			bench_phase("make", phase_make_nr_##suffix, c);                         \
		do_own(c);                                                                      \
		bench_phase("add_first", phase_add_first_##suffix, c);                          \
		if (c->nr > 1)                                                                  \
			bench_phase(c->join ? "join" : "add_more", phase_add_more_##suffix, c); \
		bench_phase("release", phase_release, c);                                       \
	}

static void phase_release(void *arg)
{
	release_sock(&((struct rx_ctx *)arg)->sk);
}
TCP_RX_FOR_EACH_ERA(BACKLOG_SPANS)

static int check_backlog(void *arg, char *err, size_t errlen)
{
	struct rx_ctx *c = arg;
	unsigned int want = c->join ? DIV_ROUND_UP(c->nr, MAX_SKB_FRAGS) : c->nr;

	c->one(c);
	if (c->got != want || c->sk.sk_backlog.len || c->sk.sk_backlog.head) {
		snprintf(err, errlen,
			 "%u packets came out of the backlog, not %u; its length is %d", c->got,
			 want, c->sk.sk_backlog.len);
		return -1;
	}
	if (c->join)
		return 0;
	for (unsigned int i = 0; i < c->nr; i++)
		if (TCP_SKB_CB(c->skb[i])->seq != 1 + i) {
			snprintf(err, errlen, "packet %u came as number %u",
				 TCP_SKB_CB(c->skb[i])->seq - 1, i);
			return -1;
		}
	return 0;
}

/*
 * --- the receive queue
 * ----------------------------------------------------------------------------------------------
 */

/* Appended, and taken out again uncharged: the same sk_buff each time. */
static __always_inline void do_queue(struct rx_ctx *c, const enum skb_era era)
{
	bool fragstolen;

	sk_rmem_schedule(era, &c->sk, (int)c->skb[0]->truesize);
	BUG_ON(tcp_queue_rcv(era, &c->sk, c->skb[0], &fragstolen));
}

static __always_inline void do_unqueue(struct rx_ctx *c)
{
	struct sk_buff *skb = c->skb[0];

	__skb_unlink(skb, &c->sk.sk_receive_queue);
	sock_rfree(skb);
	skb->destructor = NULL;
	skb->sk = NULL;
	c->sk.rcv_nxt = TCP_SKB_CB(skb)->seq;
}

/* One page in the queue, and an sk_buff that continues it. */
static __always_inline void do_make_two(struct rx_ctx *c, const enum skb_era era)
{
	bool fragstolen;

	c->sk.rcv_nxt = 1;
	c->skb[0] = make_skb(era, 1, 1, false);
	sk_rmem_schedule(era, &c->sk, (int)c->skb[0]->truesize);
	BUG_ON(tcp_queue_rcv(era, &c->sk, c->skb[0], &fragstolen));
	c->skb[1] = make_skb(era, 1 + PAYLOAD, c->frags, false);
	sk_rmem_schedule(era, &c->sk, (int)c->skb[1]->truesize);
}

static __always_inline void do_coalesce(struct rx_ctx *c, const enum skb_era era)
{
	bool fragstolen;

	BUG_ON(!tcp_queue_rcv(era, &c->sk, c->skb[1], &fragstolen));
	kfree_skb_partial(era, c->skb[1], fragstolen);
}

static __always_inline void do_drop(struct rx_ctx *c, const enum skb_era era)
{
	__skb_unlink(c->skb[0], &c->sk.sk_receive_queue);
	__kfree_skb(era, c->skb[0]);
}

#define QUEUE_SPANS(suffix, era)                                       \
	static void span_queue_##suffix(void *arg, u64 n)              \
	{                                                              \
		while (n--) {                                          \
			do_queue(arg, era);                            \
			do_unqueue(arg);                               \
		}                                                      \
	}                                                              \
	static void span_coalesce_##suffix(void *arg, u64 n)           \
	{                                                              \
		while (n--) {                                          \
			do_make_two(arg, era);                         \
			do_coalesce(arg, era);                         \
			do_drop(arg, era);                             \
		}                                                      \
	}                                                              \
	static void phase_queue_##suffix(void *arg)                    \
	{                                                              \
		do_queue(arg, era);                                    \
	}                                                              \
	static void phase_make_two_##suffix(void *arg)                 \
	{                                                              \
		do_make_two(arg, era);                                 \
	}                                                              \
	static void phase_coalesce_##suffix(void *arg)                 \
	{                                                              \
		do_coalesce(arg, era);                                 \
	}                                                              \
	static void phase_drop_##suffix(void *arg)                     \
	{                                                              \
		do_drop(arg, era);                                     \
	}                                                              \
	static void one_queue_##suffix(void *arg)                      \
	{                                                              \
		bench_phase("queue", phase_queue_##suffix, arg);       \
		bench_phase("unqueue", phase_unqueue, arg);            \
	}                                                              \
	static void one_coalesce_##suffix(void *arg)                   \
	{                                                              \
		bench_phase("make", phase_make_two_##suffix, arg);     \
		bench_phase("coalesce", phase_coalesce_##suffix, arg); \
		bench_phase("free", phase_drop_##suffix, arg);         \
	}

static void phase_unqueue(void *arg)
{
	do_unqueue(arg);
}
TCP_RX_FOR_EACH_ERA(QUEUE_SPANS)

static int check_queue(void *arg, char *err, size_t errlen)
{
	struct rx_ctx *c = arg;
	u32 want = c->how ? PAYLOAD * (1 + c->frags) : PAYLOAD * c->frags;
	u32 len, qlen;

	c->sk.copied_seq = 1;
	if (c->how) {
		do_make_two(c, c->era);
		do_coalesce(c, c->era);
	} else {
		do_queue(c, c->era);
	}
	len = c->skb[0]->len;
	qlen = c->sk.sk_receive_queue.qlen;
	if (tcp_rx_check(&c->sk, err, errlen))
		return -1;
	if (c->how)
		do_drop(c, c->era);
	else
		do_unqueue(c);
	c->sk.rcv_nxt = 1;
	if (tcp_rx_check_quiet(&c->sk, err, errlen))
		return -1;
	if (len != want || qlen != 1) {
		snprintf(err, errlen, "%u bytes in %u sk_buffs are queued, not %u in one", len,
			 qlen, want);
		return -1;
	}
	return 0;
}

/*
 * --- eating
 * ----------------------------------------------------------------------------------------------
 */

static __always_inline void do_make(struct rx_ctx *c, const enum skb_era era)
{
	c->skb[0] = make_skb(era, 1, c->frags, false);
}

/* In front of what stays, as if made on the next CPU. */
static __always_inline void do_enqueue(struct rx_ctx *c, const enum skb_era era)
{
	struct sk_buff_head *q = &c->sk.sk_receive_queue;

	c->skb[0]->headers.alloc_cpu = (u16)(smp_processor_id() + 1);
	sk_rmem_schedule(era, &c->sk, (int)c->skb[0]->truesize);
	__skb_queue_after(q, (struct sk_buff *)q, c->skb[0]);
	skb_set_owner_r(c->skb[0], &c->sk);
}

static __always_inline void do_flush(struct rx_ctx *c, const enum skb_era era,
				     const enum tcp_defer defer)
{
	struct softnet_data *home = &softnet_data[smp_processor_id() + 1];

	if (defer == TCP_DEFER_SK_LLIST)
		sk_defer_free_flush(era, &c->sk);
	else if (defer == TCP_DEFER_CPU_LIST)
		skb_defer_free_flush(era, SKB_DEFER_CPU_LIST, home);
	else if (defer == TCP_DEFER_NODE_LLIST)
		skb_defer_free_flush(era, SKB_DEFER_NODE_LLIST, home);
}

#define EAT_SPANS(suffix, era, defer)                                    \
	static void span_eat_##suffix(void *arg, u64 n)                  \
	{                                                                \
		struct rx_ctx *c = arg;                                  \
                                                                         \
		while (n--) {                                            \
			do_make(c, era);                                 \
			do_enqueue(c, era);                              \
			tcp_eat_recv_skb(era, defer, &c->sk, c->skb[0]); \
			do_flush(c, era, defer);                         \
		}                                                        \
	}                                                                \
	static void phase_make_##suffix(void *arg)                       \
	{                                                                \
		do_make(arg, era);                                       \
	}                                                                \
	static void phase_enqueue_##suffix(void *arg)                    \
	{                                                                \
		do_enqueue(arg, era);                                    \
	}                                                                \
	static void phase_eat_##suffix(void *arg)                        \
	{                                                                \
		struct rx_ctx *c = arg;                                  \
                                                                         \
		tcp_eat_recv_skb(era, defer, &c->sk, c->skb[0]);         \
	}                                                                \
	static void phase_flush_##suffix(void *arg)                      \
	{                                                                \
		do_flush(arg, era, defer);                               \
	}                                                                \
	static void one_eat_##suffix(void *arg)                          \
	{                                                                \
		bench_phase("make", phase_make_##suffix, arg);           \
		bench_phase("enqueue", phase_enqueue_##suffix, arg);     \
		bench_phase("eat", phase_eat_##suffix, arg);             \
		bench_phase("flush", phase_flush_##suffix, arg);         \
	}
TCP_RX_FOR_EACH(EAT_SPANS)

static u64 mib(const struct rx_ctx *c, enum tcp_mib_item item)
{
	return net_stats(&c->net, item);
}

/* One is eaten: deferred or not as the variant says, and gone after the flush. */
static int check_eat(void *arg, char *err, size_t errlen)
{
	struct rx_ctx *c = arg;
	u64 deferred = mib(c, TCP_MIB_DEFERRED), freed;
	bool want = c->defer != TCP_DEFER_INLINE && !(c->defer == TCP_DEFER_SK_LLIST && !c->depth);
	int rmem = atomic_read(&c->sk.sk_rmem_alloc, SKB_C_RMEM);

	freed = mib(c, TCP_MIB_FREE_LOCKED_LAST) + mib(c, TCP_MIB_FREE_LOCKED_OTHER);
	c->one(c);
	deferred = mib(c, TCP_MIB_DEFERRED) - deferred;
	freed = mib(c, TCP_MIB_FREE_LOCKED_LAST) + mib(c, TCP_MIB_FREE_LOCKED_OTHER) - freed;
	if (deferred != want || freed != !want || !llist_empty(&c->sk.defer_list) ||
	    softnet_deferred(smp_processor_id() + 1) || c->sk.sk_receive_queue.qlen != c->depth ||
	    atomic_read(&c->sk.sk_rmem_alloc, SKB_C_RMEM) != rmem) {
		snprintf(
			err, errlen,
			"deferred %llu (should be %d), freed at once %llu; then queued %u, charged "
			"%d (before: %d)",
			(unsigned long long)deferred, want, (unsigned long long)freed,
			c->sk.sk_receive_queue.qlen, atomic_read(&c->sk.sk_rmem_alloc, SKB_C_RMEM),
			rmem);
		return -1;
	}
	return 0;
}

/*
 * --- cases
 * ----------------------------------------------------------------------------------------------
 */

static void teardown(void *arg)
{
	struct rx_ctx *c = arg;

	for (unsigned int i = 0; i < c->nr && !c->join; i++)
		kfree_skb(c->era, c->skb[i]);
	c->sk.skc_state = TCP_CLOSE;
	tcp_rx_destroy(c->era, &c->sk);
	tcp_sock_destroy(c->era, &c->sk);
	mem_free(c);
}

static struct rx_ctx *new_ctx(enum skb_era era, char *err, size_t errlen)
{
	struct rx_ctx *c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));

	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return NULL;
	}
	c->era = era;
	tcp_sock_init(&c->sk, &c->prot, NULL, 0);
	tcp_rx_init(era, SOCK_WAIT_SPIN, &c->sk, &c->net, RCVBUF);
	return c;
}

static void fill_case(struct bench_case *out, struct rx_ctx *c, void (*span)(void *, u64),
		      int (*check)(void *, char *, size_t))
{
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span } },
		.check = check,
		.ledger = c->one,
		.teardown = teardown,
	};
}

static enum skb_era arg_era(const struct bench_args *args)
{
	return ERA_6_1 + (enum skb_era)bench_arg(args, "era");
}

static int prepare_lock(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const span[])(void *, u64) = { span_lock_sock, span_lock_fast, span_lock_bh };
	static void (*const reader[])(void *, u64) = { span_reader_sock, span_reader_fast,
						       span_reader_bh };
	static void (*const one[])(void *) = { one_lock_sock, one_lock_fast, one_lock_bh };
	struct rx_ctx *c = new_ctx(ERA_6_12, err, errlen);

	if (!c)
		return -ENOMEM;
	c->how = (int)bench_arg(args, "how");
	c->one = one[c->how];
	fill_case(out, c, span[c->how], check_lock);
	if (bench_arg(args, "with")) {
		out->nr_roles = 2;
		out->role[0] = (struct bench_role){ "reader", reader[c->how] };
		out->role[1] = (struct bench_role){ "softirq", span_softirq };
	}
	return 0;
}

static int prepare_backlog(const struct bench_args *args, struct bench_case *out, char *err,
			   size_t errlen)
{
	static void (*const span[2][2])(void *, u64) = {
		{ span_backlog_6_1, span_backlog_join_6_1 },
		{ span_backlog_6_12, span_backlog_join_6_12 },
	};
	enum skb_era era = arg_era(args);
	struct rx_ctx *c = new_ctx(era, err, errlen);

	if (!c)
		return -ENOMEM;
	c->nr = (unsigned int)bench_arg(args, "nr");
	c->join = bench_arg(args, "join");
	c->one = era == ERA_6_1 ? one_backlog_6_1 : one_backlog_6_12;
	if (c->join) {
		c->sk.sk_backlog_rcv = era == ERA_6_1 ? free_rcv_6_1 : free_rcv_6_12;
	} else {
		c->sk.sk_backlog_rcv = keep_rcv;
		for (unsigned int i = 0; i < c->nr; i++) {
			c->skb[i] = make_skb(era, 1 + i, 1, true);
			TCP_SKB_CB(c->skb[i])->end_seq = 0; /* what follows does not continue it */
		}
	}
	fill_case(out, c, span[era == ERA_6_12][c->join], check_backlog);
	return 0;
}

static int prepare_queue(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const span[2][2])(void *, u64) = {
		{ span_queue_6_1, span_coalesce_6_1 },
		{ span_queue_6_12, span_coalesce_6_12 },
	};
	static void (*const one[2][2])(void *) = {
		{ one_queue_6_1, one_coalesce_6_1 },
		{ one_queue_6_12, one_coalesce_6_12 },
	};
	enum skb_era era = arg_era(args);
	long how = bench_arg(args, "how"), frags = bench_arg(args, "frags");
	struct rx_ctx *c;

	if (how && frags >= MAX_SKB_FRAGS) {
		snprintf(err, errlen,
			 "%ld frags do not fit behind the one that is queued: coalesce takes at "
			 "most %d",
			 frags, MAX_SKB_FRAGS - 1);
		return -EINVAL;
	}
	c = new_ctx(era, err, errlen);
	if (!c)
		return -ENOMEM;
	c->how = (int)how;
	c->frags = (unsigned int)frags;
	c->one = one[era == ERA_6_12][how];
	if (!how) {
		c->nr = 1;
		c->skb[0] = make_skb(era, 1, c->frags, false);
	}
	fill_case(out, c, span[era == ERA_6_12][how], check_queue);
	return 0;
}

#define EAT_ROW(kind, era)                                                               \
	{                                                                                \
		kind##_##era##_inline, kind##_##era##_sk_llist, kind##_##era##_cpu_list, \
			kind##_##era##_node_llist                                        \
	}

static int prepare_eat(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	static void (*const span[2][TCP_DEFER_NR])(void *, u64) = { EAT_ROW(span_eat, 6_1),
								    EAT_ROW(span_eat, 6_12) };
	static void (*const one[2][TCP_DEFER_NR])(void *) = { EAT_ROW(one_eat, 6_1),
							      EAT_ROW(one_eat, 6_12) };
	enum skb_era era = arg_era(args);
	struct rx_ctx *c = new_ctx(era, err, errlen);

	if (!c)
		return -ENOMEM;
	c->defer = (enum tcp_defer)bench_arg(args, "variant");
	c->frags = (unsigned int)bench_arg(args, "frags");
	c->depth = (unsigned int)bench_arg(args, "depth");
	c->one = one[era == ERA_6_12][c->defer];
	if (c->depth) {
		c->other = make_skb(era, 1000000, 1, false);
		sk_rmem_schedule(era, &c->sk, (int)c->other->truesize);
		__skb_queue_tail(&c->sk.sk_receive_queue, c->other);
		skb_set_owner_r(c->other, &c->sk);
	}
	fill_case(out, c, span[era == ERA_6_12][c->defer], check_eat);
	out->bytes_per_op = (u64)c->frags * PAYLOAD;
	return 0;
}

#define KEY_ERA                                                                               \
	{                                                                                     \
		"era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold" \
	}
static const struct bench_key lock_keys[] = {
	{ "how", lock_words, 0, 0, "sock", "sock,fast,bh", "which pair of lock and unlock" },
	{ "with", with_words, 0, 0, "alone", "alone,softirq", "who takes slock meanwhile" },
	{ 0 },
};
static const struct bench_key backlog_keys[] = {
	KEY_ERA,
	{ "nr", NULL, 1, MAX_NR, "1", "1,16", "packets before the socket is released" },
	{ "join", NULL, 0, 1, "0", "0,1", "each becomes part of the one before" },
	{ 0 },
};
static const struct bench_key queue_keys[] = {
	KEY_ERA,
	{ "how", queue_words, 0, 0, "queue", "queue,coalesce", "what becomes of the segment" },
	{ "frags", NULL, 1, MAX_FRAGS, "1", "1,15", "its pages" },
	{ 0 },
};
static const struct bench_key eat_keys[] = {
	KEY_ERA,
	{ "variant", variant_words, 0, 0, "inline", "inline,sk_llist,cpu_list,node_llist",
	  "how it is let go of" },
	{ "frags", NULL, 1, MAX_FRAGS, "45", "15,45", "its pages" },
	{ "depth", NULL, 0, 1, "1", "0,1", "sk_buffs left in the queue" },
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "tcp/lock_sock", "a pair of lock and unlock of a socket", lock_keys, prepare_lock, NULL },
	{ "tcp/backlog", "packets into the backlog and out", backlog_keys, prepare_backlog, NULL },
	{ "tcp/tcp_queue_rcv", "a segment into the receive queue", queue_keys, prepare_queue,
	  NULL },
	{ "tcp/tcp_eat_recv_skb", "an sk_buff that was read is let go of", eat_keys, prepare_eat,
	  NULL },
};

void bench_tcp_rx_register(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
