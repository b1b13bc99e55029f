/* SPDX-License-Identifier: MIT */
/*
 * The `trim` experiment in its forced form: the life of one 64 KB sk_buff of which parts are
 * acknowledged while its clone is below TCP.
 *
 *   key        values
 *   form       forced           who completes first is given, not derived from a link
 *   era        3.4 6.1 6.12
 *   variant    eager            tcp_trim_head() on a partial ACK, as every kernel
 *              offset_ack       the patch of 2012: note how far the ACK reached
 *   frags      2 3 16 17        of 65160 bytes (45 segments of 1448): page frags of order 3 from the start of a block or
 *                               from its middle, of order 0 from the start of a page or from byte 2048
 *   partial    0 to 44          ACKs before the last
 *   step       1 to 44          segments that each of them covers
 *   clone      alive gone       at the first ACK
 *   complete   same other       the CPU that completes: the sender's, or one of its own (16 sockets, so that the two
 *                               overlap; needs two CPUs)
 *
 * One operation: tcp_sendmsg() of 65160 bytes, tcp_write_xmit(), the partial ACKs, the completion,
 * the last ACK (clone gone: the completion stands before the partial ACKs).
 *
 * What the kernel does: all of this in tcp_ack(), tcp_clean_rtx_queue(), tcp_tso_acked() and a
 * driver's clean_tx_irq(). What is fake here: the payload is not copied from user memory (it lies
 * in the pages), there is no IP, qdisc or NIC between TCP and the ring, an ACK is a function call.
 * Frags that start inside a block share it with somebody else's bytes, as the end of the sk_buff
 * before would: one get and one put a life that both variants pay.
 */
#include "benches/bench_tcp.h"
#include "benches/bench_tcp_ops.h"
#include "benches/bench_tcp_rx.h"
#include "benches/harness/bench.h"

#include "skb/skb_check.h"
#include "tcp/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	(45 * TCP_MSS_ETHERNET)
#define WINDOW	8 /* sk_buffs that go to the completing CPU at a time */
#define SOCKETS (2 * WINDOW)

static const char *const form_words[] = { "forced", NULL };
static const char *const era_words[] = { "3.4", "6.1", "6.12", NULL };
static const char *const variant_words[] = { "eager", "offset_ack", NULL };
static const char *const frags_words[] = { "2", "3", "16", "17", NULL };
static const char *const clone_words[] = { "alive", "gone", NULL };
static const char *const complete_words[] = { "same", "other", NULL };

static const struct {
	unsigned int nr, order, offset;
} frag_shape[] = {
	{ 2, SKB_FRAG_PAGE_ORDER, 0 },
	{ 3, SKB_FRAG_PAGE_ORDER, 16384 },
	{ 16, 0, 0 },
	{ 17, 0, 2048 },
};

struct trim_ctx {
	struct sock sk[SOCKETS];
	struct page *neighbour[SOCKETS]; /* whose bytes lie in front, while a life lasts */
	struct proto_memory prot;
	struct tx_ring ring;
	unsigned int partial, step, shape;
	enum skb_era era;
	enum tcp_trim trim;
	bool gone, other;

	/* between the two CPUs, each counter on a line of its own */
	u32 allowed ____cacheline_aligned; /* the sender's: packets that may complete */
	u32 done ____cacheline_aligned; /* the completing CPU's */
};

/*
 * --- one life
 * ----------------------------------------------------------------------------------------------
 */

/* Makes the page frag start behind somebody else's bytes; returns the reference that these hold. */
static __always_inline struct page *take_neighbour(struct sock *sk, unsigned int offset)
{
	struct page_frag *pfrag = &sk->sk_frag;

	BUG_ON(!skb_page_frag_refill(32, pfrag, sk->frag_order, sk->node));
	page_ref_inc(pfrag->page);
	pfrag->offset = offset;
	return pfrag->page;
}

static __always_inline void life_build(struct trim_ctx *c, int s, const enum skb_era era,
				       const bool carve)
{
	if (carve)
		c->neighbour[s] = take_neighbour(&c->sk[s], frag_shape[c->shape].offset);
	BUG_ON(tcp_sendmsg_in_place(era, &c->sk[s], BYTES) != BYTES);
}

static __always_inline void life_partial(struct trim_ctx *c, int s, const enum skb_era era,
					 const enum tcp_trim trim)
{
	struct sock *sk = &c->sk[s];
	u32 step = c->step * TCP_MSS_ETHERNET, ack = sk->snd_una;

	for (unsigned int i = 0; i < c->partial; i++)
		tcp_ack(era, trim, sk, ack += step);
}

static __always_inline void life_end(struct trim_ctx *c, int s, const enum skb_era era,
				     const enum tcp_trim trim, const bool carve)
{
	tcp_ack(era, trim, &c->sk[s], c->sk[s].snd_nxt);
	if (carve)
		put_page(c->neighbour[s]);
}

static __always_inline void life(struct trim_ctx *c, const enum skb_era era,
				 const enum tcp_trim trim, const bool gone, const bool carve)
{
	life_build(c, 0, era, carve);
	tcp_write_xmit(era, trim, &c->sk[0]);
	if (gone)
		tx_ring_complete(era, &c->ring, 1);
	life_partial(c, 0, era, trim);
	if (!gone)
		tx_ring_complete(era, &c->ring, 1);
	life_end(c, 0, era, trim, carve);
}

/*
 * --- two CPUs
 * ----------------------------------------------------------------------------------------------
 */

/*
 * Windows of WINDOW sockets: while the other CPU completes one, this one fills the next; then the
 * last ACKs of the first.
 */
static __always_inline void sender(struct trim_ctx *c, u64 n, const enum skb_era era,
				   const enum tcp_trim trim, const bool gone, const bool carve)
{
	u32 base = c->allowed, filled = 0, ended = 0;

	while (ended < n) {
		u32 goal = min(n, (u64)filled + WINDOW);
		u32 end = filled; /* what the other CPU was given before this round */

		for (; filled < goal; filled++) {
			int s = (base + filled) % SOCKETS;

			life_build(c, s, era, carve);
			tcp_write_xmit(era, trim, &c->sk[s]);
			if (!gone)
				life_partial(c, s, era, trim);
		}
		smp_store_release(&c->allowed, base + filled,
				  SKB_C_OTHER); /* pairs with completer() */
		bench_wait_until((s32)(smp_load_acquire(&c->done, SKB_C_OTHER) - (base + end)) >=
				 0);
		for (; ended < end; ended++) {
			int s = (base + ended) % SOCKETS;

			if (gone)
				life_partial(c, s, era, trim);
			life_end(c, s, era, trim, carve);
		}
		if (filled == n && end < n) {
			bench_wait_until(smp_load_acquire(&c->done, SKB_C_OTHER) == base + (u32)n);
			for (; ended < n; ended++) {
				int s = (base + ended) % SOCKETS;

				if (gone)
					life_partial(c, s, era, trim);
				life_end(c, s, era, trim, carve);
			}
		}
	}
}

static __always_inline void completer(struct trim_ctx *c, u64 n, const enum skb_era era)
{
	u32 done = c->done, goal = done + (u32)n;

	while (done != goal) {
		u32 allowed;

		bench_wait_until(smp_load_acquire(&c->allowed, SKB_C_OTHER) != done);
		allowed = smp_load_acquire(&c->allowed, SKB_C_OTHER);
		done += tx_ring_complete(era, &c->ring, allowed - done);
		smp_store_release(&c->done, done, SKB_C_OTHER); /* pairs with sender() */
	}
}

/*
 * --- spans: one function for each set of constants
 * ---------------------------------------------------------
 */

#define SPANS(suffix, era, trim, how, gone, carve)               \
	static void span_same_##suffix##_##how(void *arg, u64 n) \
	{                                                        \
		while (n--)                                      \
			life(arg, era, trim, gone, carve);       \
	}                                                        \
	static void span_send_##suffix##_##how(void *arg, u64 n) \
	{                                                        \
		sender(arg, n, era, trim, gone, carve);          \
	}
#define SPANS_HOW(suffix, era, trim)                       \
	SPANS(suffix, era, trim, alive, false, false)      \
	SPANS(suffix, era, trim, alive_carve, false, true) \
	SPANS(suffix, era, trim, gone, true, false)        \
	SPANS(suffix, era, trim, gone_carve, true, true)
TCP_FOR_EACH(SPANS_HOW)

#define COMPLETER(suffix, era)                               \
	static void span_complete_##suffix(void *arg, u64 n) \
	{                                                    \
		completer(arg, n, era);                      \
	}
SKB_FOR_EACH_ERA(COMPLETER)

struct span_pair {
	void (*same)(void *, u64);
	void (*send)(void *, u64);
};

#define PAIR(suffix, how)                                              \
	{                                                              \
		span_same_##suffix##_##how, span_send_##suffix##_##how \
	}
#define PAIRS(suffix)                                                     \
	{                                                                 \
		{ PAIR(suffix, alive), PAIR(suffix, alive_carve) },       \
			{ PAIR(suffix, gone), PAIR(suffix, gone_carve) }, \
	}
/* [era][variant][clone gone][carve] */
static const struct span_pair spans[SKB_ERA_NR][TCP_TRIM_NR][2][2] = {
	{ PAIRS(3_4_eager), PAIRS(3_4_offset_ack) },
	{ PAIRS(6_1_eager), PAIRS(6_1_offset_ack) },
	{ PAIRS(6_12_eager), PAIRS(6_12_offset_ack) },
};

static void (*const completers[SKB_ERA_NR])(void *, u64) = {
	span_complete_3_4,
	span_complete_6_1,
	span_complete_6_12,
};

/*
 * --- phases: the same life in parts, for ledger and instruction counts
 * --------------------------------------
 */

static bool carved(const struct trim_ctx *c)
{
	return frag_shape[c->shape].offset;
}

static void phase_build(void *arg)
{
	struct trim_ctx *c = arg;

	life_build(c, 0, c->era, carved(c));
}

static void phase_transmit(void *arg)
{
	struct trim_ctx *c = arg;

	BUG_ON(tcp_write_xmit(c->era, c->trim, &c->sk[0]) != 1);
}

static void phase_partial_ack(void *arg)
{
	struct trim_ctx *c = arg;

	life_partial(c, 0, c->era, c->trim);
}

static void phase_completion(void *arg)
{
	struct trim_ctx *c = arg;

	BUG_ON(tx_ring_complete(c->era, &c->ring, 1) != 1);
}

static void phase_full_ack(void *arg)
{
	struct trim_ctx *c = arg;

	tcp_ack(c->era, c->trim, &c->sk[0], c->sk[0].snd_nxt);
}

static void phase_life(void *arg)
{
	struct trim_ctx *c = arg;

	phase_transmit(c);
	if (c->gone)
		phase_completion(c);
	phase_partial_ack(c);
	if (!c->gone)
		phase_completion(c);
	phase_full_ack(c);
}

static void after_life(struct trim_ctx *c)
{
	if (carved(c))
		put_page(c->neighbour[0]);
}

/*
 * The completion as the case has it: on this CPU, or as CPU 1, whose frees of these objects are
 * remote.
 */
static void run_completion(struct trim_ctx *c)
{
	unsigned int cpu = smp_processor_id(), node = numa_node_id();

	if (c->other)
		BUG_ON(skb_cpu_attach(cpu + 1, node));
	bench_phase("completion", phase_completion, c);
	if (c->other)
		BUG_ON(skb_cpu_attach(cpu, node));
}

static void trim_ledger(void *arg)
{
	struct trim_ctx *c = arg;

	bench_phase("build", phase_build, c);
	bench_phase("transmit", phase_transmit, c);
	if (c->gone)
		run_completion(c);
	bench_phase("partial_ack", phase_partial_ack, c);
	if (!c->gone)
		run_completion(c);
	bench_phase("full_ack", phase_full_ack, c);
	after_life(c);
	if (c->other)
		return; /* one function cannot be two CPUs: the parts tell it */
	phase_build(c);
	bench_phase("life", phase_life, c);
	after_life(c);
}

/*
 * --- check
 * -------------------------------------------------------------------------------------------------
 */

static int check_sent(struct trim_ctx *c, char *err, size_t errlen)
{
	struct sk_buff *skb = skb_peek(&c->sk[0].tcp_rtx_queue);

	if (!skb || skb->len != BYTES || skb_shinfo(skb)->nr_frags != frag_shape[c->shape].nr) {
		snprintf(err, errlen, "sent %u bytes in %u frags, not %u in %u", skb ? skb->len : 0,
			 skb ? skb_shinfo(skb)->nr_frags : 0, BYTES, frag_shape[c->shape].nr);
		return -1;
	}
	return tcp_check_sock(c->era, c->trim, &c->sk[0], err, errlen);
}

/* One life, looked at after each step; at its end nothing is left of it. */
static int trim_check(void *arg, char *err, size_t errlen)
{
	struct trim_ctx *c = arg;
	struct sock *sk = &c->sk[0];
	long granted = proto_memory_bytes(&c->prot) - sk->sk_forward_alloc;
	u32 acked = sk->delivered;

	phase_build(c);
	phase_transmit(c);
	if (check_sent(c, err, errlen))
		return -1;
	if (c->gone)
		phase_completion(c);
	phase_partial_ack(c);
	if (tcp_check_sock(c->era, c->trim, sk, err, errlen))
		return -1;
	if (!c->gone)
		phase_completion(c);
	phase_full_ack(c);
	after_life(c);
	if (tcp_check_sock(c->era, c->trim, sk, err, errlen))
		return -1;
	if (sk->delivered - acked != 45 || sk->packets_out || sk->sk_wmem_queued ||
	    refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) != 1 ||
	    page_count(sk->sk_frag.page) != 1 ||
	    proto_memory_bytes(&c->prot) - sk->sk_forward_alloc != granted) {
		snprintf(err, errlen,
			 "after a life: %u segments acknowledged, %u out, %d bytes queued, "
			 "sk_wmem_alloc %d, page frag with %d references",
			 sk->delivered - acked, sk->packets_out, sk->sk_wmem_queued,
			 refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM),
			 page_count(sk->sk_frag.page));
		return -1;
	}
	return 0;
}

/*
 * --- the case
 * ----------------------------------------------------------------------------------------------
 */

static void trim_teardown(void *arg)
{
	struct trim_ctx *c = arg;

	for (int i = 0; i < SOCKETS; i++)
		tcp_sock_destroy(c->era, &c->sk[i]);
	tx_ring_exit(&c->ring);
	mem_free(c);
}

static int trim_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	long partial = bench_arg(args, "partial"), step = bench_arg(args, "step");
	const struct span_pair *span;
	struct trim_ctx *c;

	if (partial * step >= BYTES / TCP_MSS_ETHERNET) {
		snprintf(err, errlen,
			 "%ld ACKs of %ld segments reach the end of 45: partial times step is at "
			 "most 44",
			 partial, step);
		return -EINVAL;
	}
	c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));
	if (!c) {
		snprintf(err, errlen, "no memory for %zu bytes of sockets", sizeof(*c));
		return -ENOMEM;
	}
	c->era = bench_arg(args, "era");
	c->trim = bench_arg(args, "variant");
	c->shape = bench_arg(args, "frags");
	c->partial = partial;
	c->step = step;
	c->gone = bench_arg(args, "clone");
	c->other = bench_arg(args, "complete");
	if (tx_ring_init(&c->ring, 64)) {
		snprintf(err, errlen, "no memory for the ring");
		mem_free(c);
		return -ENOMEM;
	}
	for (int i = 0; i < SOCKETS; i++)
		tcp_sock_init(&c->sk[i], &c->prot, &c->ring, frag_shape[c->shape].order);

	span = &spans[c->era][c->trim][c->gone][carved(c)];
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span->same } },
		.bytes_per_op = BYTES,
		.check = trim_check,
		.ledger = trim_ledger,
		.teardown = trim_teardown,
	};
	if (c->other) {
		out->nr_roles = 2;
		out->role[0] = (struct bench_role){ "sender", span->send };
		out->role[1] = (struct bench_role){ "completer", completers[c->era] };
	}
	return 0;
}

static const struct bench_key trim_keys[] = {
	{ "form", form_words, 0, 0, "forced", "forced", "who decides when the clone completes" },
	{ "era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold" },
	{ "variant", variant_words, 0, 0, "eager", "eager,offset_ack", "what a partial ACK does" },
	{ "frags", frags_words, 0, 0, "16", "2,16,17", "page fragments of 65160 bytes" },
	{ "partial", NULL, 0, 44, "1", "1", "ACKs before the last" },
	{ "step", NULL, 1, 44, "1", "1", "segments that each of them covers" },
	{ "clone", clone_words, 0, 0, "alive", "alive,gone", "at the first ACK" },
	{ "complete", complete_words, 0, 0, "same", "same,other", "the CPU that completes" },
	{ 0 },
};

static const struct bench_op trim = {
	.name = "tcp/trim",
	.summary = "the life of one 64 KB sk_buff with partial ACKs",
	.keys = trim_keys,
	.prepare = trim_prepare,
};

int main(int argc, char **argv)
{
	bench_register(&trim);
	bench_tcp_ops_register();
	bench_tcp_rx_register();
	bench_tcp_link_register();
	bench_tcp_defer_register();
	return bench_main(argc, argv);
}
