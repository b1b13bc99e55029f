/* SPDX-License-Identifier: MIT */
/*
 * The `trim` experiment in its link form: whether an ACK finds the clone alive follows from the
 * timing of a NIC, a link and a peer in virtual time (sim/, docs/link.md), not from a parameter.
 *
 *   key        values
 *   form       link
 *   era        3.4 6.1 6.12
 *   variant    eager offset_ack
 *   point      patch gen1x4 gen2x8 fifo_full    the NIC's slot and buffer (sim/nic_presets.c)
 *   rtt        1 to 1000000     us, from a segment's departure to the processing of an ACK for it
 *   ack        every delayed stretch last       what the peer acknowledges (sim/peer.h)
 *   k          1 to 45          segments to an ACK
 *   frags      2 16 17          of 65160 bytes: page frags of order 3; of order 0 from the start of
 *                               a page, or from byte 2048 behind somebody else's bytes
 *   from       none             the bytes that lie in the pages are the payload
 *              cache            copied from one buffer of 64 KB
 *              memory           copied from a set that is walked: twice the last cache, but 64 to
 *                               128 MB
 *   reclaim    0 to 10000       us, from DD visible to the clone freed
 *   jitter     0 to 1000        us at most that a packet's segments come later, drawn for each
 *
 * prepare() runs the simulation once: 32 sk_buffs, one under way at a time (a lone packet on its
 * NIC). Its calls of tcp/ in order are a list, which the timed span walks: tcp_sendmsg() and
 * tcp_write_xmit(), tcp_ack(), tx_ring_complete() with the arguments that they had, and nothing
 * of the simulator. One operation is one sk_buff's part of the list. A sample's value is the
 * whole run, as this is a pipeline: CPU time ("whole": "cpu"), since a preempted batch counts
 * there, too.
 *
 * What is fake: an entry of the list costs an indirect call, the same for both variants.
 * tcp/link_walk walks the same list with calls that do nothing: 33 to 44 ns for the 25 calls of
 * one sk_buff at ack:every/k:2, 1.3 to 1.8 each, of 790 to 1210 in all. All calls run on one
 * CPU, so no line travels between the sender's, the softirq's and the completing CPU. The
 * kernel's softirq entry, header parsing, qdisc and driver are left out.
 *
 * The ledger has one row, "schedule": all 32 sk_buffs, so that the counts are whole numbers.
 */
#include "benches/bench_tcp.h"
#include "benches/harness/bench.h"

#include "sim/link.h"
#include "tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGS  45
#define BYTES (SEGS * TCP_MSS_ETHERNET)
#define SKBS  32

#define MEMORY_SET_MIN (64u << 20)
#define MEMORY_SET_MAX (128u << 20)

static const char *const form_words[] = { "link", NULL };
static const char *const era_words[] = { "3.4", "6.1", "6.12", NULL };
static const char *const variant_words[] = { "eager", "offset_ack", NULL };
static const char *const point_words[] = { "patch", "gen1x4", "gen2x8", "fifo_full", NULL };
static const char *const ack_words[] = { "every", "delayed", "stretch", "last", NULL };
static const char *const frags_words[] = { "2", "16", "17", NULL };
static const char *const from_words[] = { "none", "cache", "memory", NULL };
enum { FROM_NONE, FROM_CACHE, FROM_MEMORY };

static const struct {
	unsigned int nr, order, offset;
} shapes[] = {
	{ 2, SKB_FRAG_PAGE_ORDER, 0 },
	{ 16, 0, 0 },
	{ 17, 0, 2048 },
};

struct link_ctx;

struct replay_op {
	void (*fn)(void *ctx, u32 arg);
	u32 arg;
};

struct link_ctx {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	struct page *neighbour; /* whose bytes lie in front, while an sk_buff lives */
	unsigned int offset; /* where they end */
	const char *from;
	size_t from_bytes, from_at;

	const struct replay_op *op; /* what is timed */
	u32 *end; /* for each sk_buff: operations up to its end */
	u32 nr_ops, skb, at; /* the next sk_buff, the next operation */
	u32 base; /* sequence number of the list's first byte */

	struct replay_op *real; /* the calls of tcp/ */
	struct replay_op *idle; /* as many calls that do nothing; NULL but for the walk */
	struct link_params p;
	struct link_result res;
	unsigned int shape;
	enum tcp_trim trim;
};

/*
 * --- the calls
 * ----------------------------------------------------------------------------------------------
 */

/* Makes the page frag start behind somebody else's bytes, who hold a reference. */
static __always_inline void take_neighbour(struct link_ctx *c)
{
	struct page_frag *pfrag = &c->sk.sk_frag;

	BUG_ON(!skb_page_frag_refill(32, pfrag, c->sk.frag_order, c->sk.node));
	page_ref_inc(pfrag->page);
	pfrag->offset = c->offset;
	c->neighbour = pfrag->page;
}

static void put_neighbour(void *arg, u32 nr)
{
	struct link_ctx *c = arg;

	(void)nr;
	put_page(c->neighbour);
}

static __always_inline void send_one(struct link_ctx *c, const enum skb_era era,
				     const enum tcp_trim trim, const bool copy, const bool carve)
{
	if (carve)
		take_neighbour(c);
	if (copy) {
		BUG_ON(tcp_sendmsg(era, &c->sk, c->from + c->from_at, BYTES) != BYTES);
		c->from_at += BYTES;
		if (c->from_at == c->from_bytes)
			c->from_at = 0;
	} else {
		BUG_ON(tcp_sendmsg_in_place(era, &c->sk, BYTES) != BYTES);
	}
	tcp_write_xmit(era, trim, &c->sk);
}

#define SEND(suffix, era, trim, how, copy, carve)          \
	static void send_##suffix##_##how(void *c, u32 nr) \
	{                                                  \
		(void)nr;                                  \
		send_one(c, era, trim, copy, carve);       \
	}
#define CALLS(suffix, era, trim)                             \
	SEND(suffix, era, trim, in_place, false, false)      \
	SEND(suffix, era, trim, in_place_carve, false, true) \
	SEND(suffix, era, trim, copy, true, false)           \
	SEND(suffix, era, trim, copy_carve, true, true)      \
	static void ack_##suffix(void *arg, u32 acked)       \
	{                                                    \
		struct link_ctx *c = arg;                    \
                                                             \
		tcp_ack(era, trim, &c->sk, c->base + acked); \
	}
TCP_FOR_EACH(CALLS)

#define COMPLETE(suffix, era)                            \
	static void complete_##suffix(void *arg, u32 nr) \
	{                                                \
		struct link_ctx *c = arg;                \
                                                         \
		tx_ring_complete(era, &c->ring, nr);     \
	}
SKB_FOR_EACH_ERA(COMPLETE)

static void do_nothing(void *ctx, u32 arg)
{
	(void)ctx, (void)arg;
	bench_clobber();
}

struct call_set {
	void (*send[2][2])(void *, u32); /* [copy][carve] */
	void (*ack)(void *, u32);
};

#define CALL_SET(suffix)                                                        \
	{                                                                       \
		{ { send_##suffix##_in_place, send_##suffix##_in_place_carve }, \
		  { send_##suffix##_copy, send_##suffix##_copy_carve } },       \
			ack_##suffix                                            \
	}
static const struct call_set call_sets[SKB_ERA_NR][TCP_TRIM_NR] = {
	{ CALL_SET(3_4_eager), CALL_SET(3_4_offset_ack) },
	{ CALL_SET(6_1_eager), CALL_SET(6_1_offset_ack) },
	{ CALL_SET(6_12_eager), CALL_SET(6_12_offset_ack) },
};
static void (*const completes[SKB_ERA_NR])(void *, u32) = {
	complete_3_4,
	complete_6_1,
	complete_6_12,
};

/*
 * --- the walk
 * ----------------------------------------------------------------------------------------------
 */

static void rewind_list(struct link_ctx *c)
{
	c->skb = c->at = 0;
	c->base = c->sk.snd_una;
}

/* N sk_buffs from where the list stands; each leaves nothing under way. */
static void walk(struct link_ctx *c, const struct replay_op *list, u64 n)
{
	while (n) {
		u32 take = min(n, (u64)(SKBS - c->skb)), end = c->end[c->skb + take - 1];

		for (const struct replay_op *op = list + c->at; op < list + end; op++)
			op->fn(c, op->arg);
		c->at = end;
		c->skb += take;
		n -= take;
		if (c->skb == SKBS)
			rewind_list(c);
	}
}

static void span_walk(void *arg, u64 n)
{
	struct link_ctx *c = arg;

	walk(c, c->op, n);
}

/* The rest of what the span has begun. */
static void walk_to_end(struct link_ctx *c)
{
	if (c->skb)
		walk(c, c->op, SKBS - c->skb);
}

static void phase_schedule(void *arg)
{
	struct link_ctx *c = arg;

	walk(c, c->real, SKBS);
}

static void link_ledger(void *arg)
{
	struct link_ctx *c = arg;

	walk_to_end(c);
	bench_phase("schedule", phase_schedule, c);
}

/*
 * --- check: the list does what the simulation did
 * ----------------------------------------------------------------------------------------------
 */

static int check_counts(const struct link_counts *is, const struct link_counts *was, char *err,
			size_t errlen)
{
	if (is->skbs == was->skbs && is->segs == was->segs && is->acks == was->acks &&
	    is->partial_acks == was->partial_acks && is->races == was->races &&
	    is->payload_bytes == was->payload_bytes && is->wire_bytes == was->wire_bytes &&
	    is->wire_hash == was->wire_hash)
		return 0;
	snprintf(err, errlen,
		 "replayed %u sk_buffs, %u ACKs (%u partial), %u races, %llu bytes of wire, hash "
		 "%016llx; simulated %u, %u (%u), %u, %llu, %016llx",
		 is->skbs, is->acks, is->partial_acks, is->races,
		 (unsigned long long)is->wire_bytes, (unsigned long long)is->wire_hash, was->skbs,
		 was->acks, was->partial_acks, was->races, (unsigned long long)was->wire_bytes,
		 (unsigned long long)was->wire_hash);
	return -1;
}

static int check_frags(struct link_ctx *c, char *err, size_t errlen)
{
	struct sk_buff *skb = skb_peek_tail(&c->sk.tcp_rtx_queue);

	if (skb && skb_shinfo(skb)->nr_frags == shapes[c->shape].nr)
		return 0;
	snprintf(err, errlen, "sent %u frags, not %u", skb ? skb_shinfo(skb)->nr_frags : 0,
		 shapes[c->shape].nr);
	return -1;
}

static int check_idle(struct link_ctx *c, long granted, char *err, size_t errlen)
{
	const struct sock *sk = &c->sk;

	if (tcp_check_sock(c->p.era, c->trim, sk, err, errlen))
		return -1;
	if (!sk->packets_out && !sk->sk_wmem_queued && !tx_ring_count(&c->ring) &&
	    refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) == 1 &&
	    page_count(sk->sk_frag.page) == 1 &&
	    proto_memory_bytes(&c->prot) - sk->sk_forward_alloc == granted)
		return 0;
	snprintf(err, errlen,
		 "after the list: %u segments out, %d bytes queued, %u packets in the ring, "
		 "sk_wmem_alloc %d, page frag with %d references, %ld bytes granted, not %ld",
		 sk->packets_out, sk->sk_wmem_queued, tx_ring_count(&c->ring),
		 refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM), page_count(sk->sk_frag.page),
		 proto_memory_bytes(&c->prot) - sk->sk_forward_alloc, granted);
	return -1;
}

static int link_check(void *arg, char *err, size_t errlen)
{
	struct link_ctx *c = arg;
	long granted = proto_memory_bytes(&c->prot) - c->sk.sk_forward_alloc;
	const struct call_set *set = &call_sets[c->p.era][c->trim];
	struct link_packet pkt;
	struct link_watch w;
	u32 delivered;

	walk_to_end(c);
	if (check_idle(c, granted, err, errlen))
		return -1;
	delivered = c->sk.delivered;
	link_watch_init(&w, &c->sk);
	for (u32 i = 0; i < c->nr_ops; i++) {
		const struct replay_op *op = &c->real[i];

		if (op->fn == set->ack)
			link_watch_ack(&w, c->p.era, &c->sk, c->base + op->arg);
		op->fn(c, op->arg);
		while (link_watch_sent(&w, &c->sk, &pkt))
			if (check_frags(c, err, errlen))
				return -1;
		if (tcp_check_sock(c->p.era, c->trim, &c->sk, err, errlen))
			return -1;
	}
	rewind_list(c);
	if (c->sk.delivered - delivered != SKBS * SEGS) {
		snprintf(err, errlen, "%u segments acknowledged, not %u",
			 c->sk.delivered - delivered, SKBS * SEGS);
		return -1;
	}
	if (check_counts(&w.n, &c->res.n, err, errlen))
		return -1;
	return check_idle(c, granted, err, errlen);
}

static void link_report(void *arg, struct bench_report *r)
{
	const struct link_ctx *c = arg;
	const struct link_result *res = &c->res;
	struct nic_lone lone;
	char err[200];

	BUG_ON(nic_lone(c->p.nic, BYTES, TCP_MSS_ETHERNET, 1, c->p.k, &lone, err, sizeof(err)));
	bench_report_add(r, "race_share", (double)res->n.races / res->n.skbs);
	bench_report_add(r, "races_before_dd", res->races_before_dd);
	bench_report_add(r, "races_before_reclaim", res->races_before_reclaim);
	bench_report_add(r, "skbs", res->n.skbs);
	bench_report_add(r, "segments", res->n.segs);
	bench_report_add(r, "acks", res->n.acks);
	bench_report_add(r, "partial_acks", res->n.partial_acks);
	bench_report_add(r, "calls", c->nr_ops);
	bench_report_add(r, "wire_bytes", (double)res->n.wire_bytes);
	bench_report_add(r, "window_us", (double)lone.window_ps / 1e6);
	bench_report_add(r, "virtual_us", (double)res->end_ps / 1e6);
}

/*
 * --- the case
 * ----------------------------------------------------------------------------------------------
 */

static void link_teardown(void *arg)
{
	struct link_ctx *c = arg;

	walk_to_end(c);
	tcp_sock_destroy(c->p.era, &c->sk);
	tx_ring_exit(&c->ring);
	if (c->from)
		munmap((void *)c->from, c->from_bytes);
	free(c->real);
	free(c->idle);
	free(c->end);
	mem_free(c);
}

/*
 * Twice the last cache, but no less than 64 MB, and no more than 128: a virtual machine is told of
 * all of its host's cache and has a part. (64 MB and 1 GB cost the same where 532 MB were told.)
 */
static size_t memory_set(void)
{
	size_t cache = (size_t)max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L);

	return min(max(2 * cache, (size_t)MEMORY_SET_MIN), (size_t)MEMORY_SET_MAX);
}

/* What is copied from: whole sk_buffs, each page touched. */
static int make_source(struct link_ctx *c, unsigned int from)
{
	size_t least = BYTES;
	char *map;

	if (from == FROM_NONE)
		return 0;
	if (from == FROM_MEMORY)
		least = memory_set();
	c->from_bytes = DIV_ROUND_UP(least, (size_t)BYTES) * BYTES;
	map = mmap(NULL, c->from_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	/* Huge pages, if there are any: touched sooner, and a TLB miss is not the question. */
	madvise(map, c->from_bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < c->from_bytes; at += PAGE_SIZE)
		map[at] = 1;
	c->from = map;
	return 0;
}

/* The list from the simulation's LOG: each call as the function that makes it. */
static int make_list(struct link_ctx *c, const struct link_log *log, const struct link_calls *calls,
		     bool idle)
{
	c->nr_ops = log->nr_ops;
	c->real = calloc(log->nr_ops, sizeof(*c->real));
	c->end = calloc(SKBS, sizeof(*c->end));
	if (idle)
		c->idle = calloc(log->nr_ops, sizeof(*c->idle));
	if (!c->real || !c->end || (idle && !c->idle))
		return -ENOMEM;
	BUG_ON(log->nr_done != SKBS || log->done[SKBS - 1] != log->nr_ops);
	for (u32 i = 0; i < log->nr_ops; i++) {
		c->real[i] = (struct replay_op){ calls->fn[log->op[i].call], log->op[i].arg };
		if (idle)
			c->idle[i] = (struct replay_op){ do_nothing, log->op[i].arg };
	}
	memcpy(c->end, log->done, SKBS * sizeof(*c->end));
	c->op = idle ? c->idle : c->real;
	return 0;
}

static int simulate(struct link_ctx *c, unsigned int from, bool idle, char *err, size_t errlen)
{
	const struct call_set *set = &call_sets[c->p.era][c->trim];
	bool carve = shapes[c->shape].offset;
	struct link_calls calls = {
		.fn = {
			[LINK_SEND] = set->send[from != FROM_NONE][carve],
			[LINK_ACK] = set->ack,
			[LINK_COMPLETE] = completes[c->p.era],
			[LINK_DONE] = carve ? put_neighbour : NULL,
		},
		.ctx = c,
	};
	struct link_log log;
	int ret;

	rewind_list(c);
	ret = link_simulate(&c->p, &c->sk, &calls, &log, &c->res, err, errlen);
	if (ret)
		return ret;
	ret = make_list(c, &log, &calls, idle);
	if (ret)
		snprintf(err, errlen, "no memory for a list of %u calls", log.nr_ops);
	link_log_exit(&log);
	rewind_list(c);
	return ret;
}

static int prepare(const struct bench_args *args, struct bench_case *out, bool idle, char *err,
		   size_t errlen)
{
	struct link_ctx *c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));
	int ret;

	if (!c) {
		snprintf(err, errlen, "no memory for a socket");
		return -ENOMEM;
	}
	c->trim = bench_arg(args, "variant");
	c->shape = bench_arg(args, "frags");
	c->offset = shapes[c->shape].offset;
	c->p = (struct link_params){
		.nic = nic_preset(point_words[bench_arg(args, "point")]),
		.rtt_ps = (u64)bench_arg(args, "rtt") * SIM_PS_PER_US,
		.reclaim_ps = (u64)bench_arg(args, "reclaim") * SIM_PS_PER_US,
		.jitter_ps = (u64)bench_arg(args, "jitter") * SIM_PS_PER_US,
		.seed = 1,
		.ack = bench_arg(args, "ack"),
		.k = bench_arg(args, "k"),
		.nr_skbs = SKBS,
		.skb_bytes = BYTES,
		.inflight = 1,
		.era = bench_arg(args, "era"),
	};
	if (tx_ring_init(&c->ring, 64)) {
		snprintf(err, errlen, "no memory for the ring");
		mem_free(c);
		return -ENOMEM;
	}
	tcp_sock_init(&c->sk, &c->prot, &c->ring, shapes[c->shape].order);
	ret = make_source(c, bench_arg(args, "from"));
	if (ret)
		snprintf(err, errlen, "no memory for %zu bytes to copy from", c->from_bytes);
	else
		ret = simulate(c, bench_arg(args, "from"), idle, err, errlen);
	if (ret) {
		link_teardown(c);
		return ret;
	}
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span_walk } },
		.bytes_per_op = BYTES,
		.pipeline = true,
		.check = link_check,
		.ledger = idle ? NULL : link_ledger,
		.report = link_report,
		.teardown = link_teardown,
	};
	return 0;
}

static int trim_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	return prepare(args, out, false, err, errlen);
}

static int walk_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	return prepare(args, out, true, err, errlen);
}

static const struct bench_key link_keys[] = {
	{ "form", form_words, 0, 0, "link", "link", "who decides when the clone completes" },
	{ "era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold" },
	{ "variant", variant_words, 0, 0, "eager", "eager,offset_ack", "what a partial ACK does" },
	{ "point", point_words, 0, 0, "patch", "patch,gen1x4,gen2x8,fifo_full",
	  "the NIC's slot, and what its buffer holds" },
	{ "rtt", NULL, 1, 1000000, "50", "50", "us from a departure to its ACK processed" },
	{ "ack", ack_words, 0, 0, "every", "every", "what the peer acknowledges" },
	{ "k", NULL, 1, SEGS, "2", "2", "segments to an ACK" },
	{ "frags", frags_words, 0, 0, "16", "2,16", "page fragments of 65160 bytes" },
	{ "from", from_words, 0, 0, "none", "none", "what the payload is copied from" },
	{ "reclaim", NULL, 0, 10000, "0", "0", "us from DD visible to the clone freed" },
	{ "jitter", NULL, 0, 1000, "0", "0",
	  "us at most that a packet's segments come later, drawn for each packet" },
	{ 0 },
};

static const struct bench_op trim_link = {
	.name = "tcp/trim",
	.summary = "64 KB sk_buffs whose ACKs and completions come as a NIC and a link give them",
	.keys = link_keys,
	.prepare = trim_prepare,
};

/* The same keys with one case to list: what the calls would do is nothing to the walk. */
static struct bench_key walk_keys[ARRAY_SIZE(link_keys)];

static const struct bench_op link_walk = {
	.name = "tcp/link_walk",
	.summary = "the walk of that form's list alone: calls that do nothing",
	.keys = walk_keys,
	.prepare = walk_prepare,
};

void bench_tcp_link_register(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(link_keys); i++) {
		walk_keys[i] = link_keys[i];
		walk_keys[i].grid = link_keys[i].def;
	}
	bench_register(&trim_link);
	bench_register(&link_walk);
}
