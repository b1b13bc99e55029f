/* SPDX-License-Identifier: MIT */
/*
 * The `mptcp` experiment: a stream of netperf's writes over one subflow of a loopback.
 *
 *   key       values
 *   era       6.1 6.12             the rules below MPTCP; MPTCP itself is 5.11's in both
 *   variant   before               before the patch
 *             size_bias psh split  each part of it alone
 *             posted               the patch, with its split of maps
 *             merged               what became of it: size bias and PSH
 *             split_fixed          merged, and a split of maps that is right
 *   mtu       1500 9000 65536      gives the MSS and from it the size goal: 63900, 62440, 65455
 *   backlog   0 to 255             writes that wait while another one comes; 0: each is sent at once
 *   where     msk subflow          where they wait: in data frags, not handed down; or handed down
 *                                  and pushed, each by itself, to a subflow that may not send
 *
 * One operation: backlog + 1 writes of 16384 bytes, mptcp_push_pending(), tcp_write_xmit(), for each
 * packet its arrival (map, copy to the reader) and completion, the ACK and the DATA_ACK. The report
 * tells what sk_buffs and maps the stream was made of.
 *
 * What the kernel does: all of this in mptcp_sendmsg(), __mptcp_push_pending(), tcp_write_xmit(),
 * mptcp_incoming_options() and mptcp_recvmsg(), on two CPUs. What is fake here: one CPU is sender
 * and receiver in turn, there is no IP, no softirq, no lock and no wakeup between the two, an ACK is
 * a function call, the window is always open at the end of an operation, nothing is cut unless the
 * MTU makes it so; both copies stay in the cache. The claim's figures include all that; what is
 * left is buffers and copies.
 */
#include "benches/harness/bench.h"

#include "mptcp/mptcp.h"
#include "mptcp/mptcp_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE	    16384 /* bytes of a write: netperf's on a loopback */
#define MAX_BACKLOG 255
#define PERIOD	    65521 /* of the text: no power of two, so that no offset hides */
#define RING	    1024
#define OPEN	    (1u << 30)

static const char *const era_words[] = { "6.1", "6.12", NULL };
static const char *const variant_words[] = { "before", "size_bias", "psh",	   "split",
					     "posted", "merged",    "split_fixed", NULL };
static const char *const mtu_words[] = { "1500", "9000", "65536", NULL };
static const char *const where_words[] = { "msk", "subflow", NULL };
static const u32 mtus[] = { 1500, 9000, 65536 };

struct stream_ctx {
	struct sock sk;
	struct mptcp_sock msk;
	struct proto_memory prot;
	struct tx_ring ring;
	struct mptcp_peer peer;
	enum skb_era era;
	enum mptcp_variant variant;
	unsigned int writes;
	bool subflow;
	u32 at; /* the next write's place in the text */
	char text[PERIOD + WRITE];
	char sink[2 * MPTCP_MAX_MAP];
};

static u8 text_at(u64 data_seq)
{
	return data_seq % PERIOD * 2654435761u >> 23;
}

/*
 * --- one operation
 * ------------------------------------------------------------------------------
 */

static __always_inline void stream_write(struct stream_ctx *c, const enum skb_era era,
					 const enum mptcp_variant v)
{
	for (unsigned int i = 0; i < c->writes; i++) {
		BUG_ON(mptcp_sendmsg(era, v, &c->msk, c->text + c->at, WRITE) != WRITE);
		c->at += WRITE;
		if (c->at >= PERIOD)
			c->at -= PERIOD;
	}
}

/* What waits goes out: from the data frags, or from the subflow's queue. */
static __always_inline void stream_send(struct stream_ctx *c, const enum skb_era era,
					const enum mptcp_variant v, const bool subflow)
{
	if (subflow) {
		c->sk.snd_wnd = OPEN;
		tcp_write_xmit(era, mptcp_tcp(v), &c->sk);
		c->sk.snd_wnd = 0;
	} else {
		mptcp_push_pending(era, v, &c->msk);
	}
}

static __always_inline void stream_arrive(struct stream_ctx *c, const enum skb_era era)
{
	struct tx_ring *ring = &c->ring;

	while (tx_ring_count(ring)) {
		BUG_ON(mptcp_peer_rcv(&c->peer, ring->slot[ring->head & ring->mask]));
		tx_ring_complete(era, ring, 1);
	}
}

static __always_inline void stream_ack(struct stream_ctx *c, const enum skb_era era,
				       const enum mptcp_variant v)
{
	tcp_ack(era, mptcp_tcp(v), &c->sk, mptcp_peer_ack(&c->peer));
	mptcp_data_acked(&c->msk, mptcp_peer_data_ack(&c->peer));
	c->msk.wnd_end = c->msk.snd_una + OPEN;
}

static __always_inline void stream(struct stream_ctx *c, u64 n, const enum skb_era era,
				   const enum mptcp_variant v, const bool subflow)
{
	while (n--) {
		stream_write(c, era, v);
		stream_send(c, era, v, subflow);
		stream_arrive(c, era);
		stream_ack(c, era, v);
	}
}

#define SPANS(suffix, era, v)                               \
	static void span_msk_##suffix(void *arg, u64 n)     \
	{                                                   \
		stream(arg, n, era, v, false);              \
	}                                                   \
	static void span_subflow_##suffix(void *arg, u64 n) \
	{                                                   \
		stream(arg, n, era, v, true);               \
	}
MPTCP_FOR_EACH(SPANS)

#define PAIR(suffix)                                     \
	{                                                \
		span_msk_##suffix, span_subflow_##suffix \
	}
#define PAIRS(era)                                                                             \
	{                                                                                      \
		PAIR(era##_before), PAIR(era##_size_bias), PAIR(era##_psh), PAIR(era##_split), \
			PAIR(era##_posted), PAIR(era##_merged), PAIR(era##_split_fixed),       \
	}
/* [era][variant][where] */
static void (*const spans[2][MPTCP_VARIANT_NR][2])(void *, u64) = { PAIRS(6_1), PAIRS(6_12) };

/*
 * --- phases, for ledger and instruction counts
 * -----------------------------------------------------
 */

static void phase_write(void *arg)
{
	struct stream_ctx *c = arg;

	stream_write(c, c->era, c->variant);
}

static void phase_send(void *arg)
{
	struct stream_ctx *c = arg;

	stream_send(c, c->era, c->variant, c->subflow);
}

static void phase_arrive(void *arg)
{
	struct stream_ctx *c = arg;

	stream_arrive(c, c->era);
}

static void phase_ack(void *arg)
{
	struct stream_ctx *c = arg;

	stream_ack(c, c->era, c->variant);
}

static void stream_ledger(void *arg)
{
	bench_phase("write", phase_write, arg);
	bench_phase("send", phase_send, arg);
	bench_phase("arrive", phase_arrive, arg);
	bench_phase("ack", phase_ack, arg);
}

/*
 * --- check
 * --------------------------------------------------------------------------------------
 */

static int check_now(struct stream_ctx *c, char *err, size_t errlen)
{
	return mptcp_check(c->era, c->variant, &c->msk, text_at, err, errlen);
}

/* Every byte arrives under its number; afterwards nothing is queued or held. */
static int stream_check(void *arg, char *err, size_t errlen)
{
	struct stream_ctx *c = arg;
	struct tx_ring *ring = &c->ring;

	phase_write(c);
	if (check_now(c, err, errlen))
		return -1;
	phase_send(c);
	if (check_now(c, err, errlen))
		return -1;
	while (tx_ring_count(ring)) {
		if (mptcp_peer_rcv_check(&c->peer, ring->slot[ring->head & ring->mask])) {
			snprintf(err, errlen, "%s", c->peer.err);
			return -1;
		}
		tx_ring_complete(c->era, ring, 1);
	}
	phase_ack(c);
	if (check_now(c, err, errlen))
		return -1;
	if (c->msk.snd_una != c->msk.write_seq || c->msk.wmem_queued || c->sk.sk_wmem_queued ||
	    refcount_read(&c->sk.sk_wmem_alloc, SKB_C_WMEM) != 1) {
		snprintf(err, errlen,
			 "%llu bytes not acknowledged, %d in data frags, %d in the subflow, "
			 "sk_wmem_alloc %d",
			 (unsigned long long)(c->msk.write_seq - c->msk.snd_una),
			 c->msk.wmem_queued, c->sk.sk_wmem_queued,
			 refcount_read(&c->sk.sk_wmem_alloc, SKB_C_WMEM));
		return -1;
	}
	return 0;
}

static void stream_report(void *arg, struct bench_report *report)
{
	const struct stream_ctx *c = arg;
	const struct mptcp_peer *p = &c->peer;
	double mb = p->bytes / 1e6;

	bench_report_add(report, "size_goal", c->msk.size_goal);
	bench_report_add(report, "skb_bytes", (double)p->bytes / p->skbs);
	bench_report_add(report, "goal_fill", (double)p->bytes / p->skbs / c->msk.size_goal);
	bench_report_add(report, "skbs_per_mb", p->skbs / mb);
	bench_report_add(report, "maps_per_mb", p->maps / mb);
	bench_report_add(report, "segs_per_mb", p->segs / mb);
	bench_report_add(report, "map_bytes_per_mb", p->segs * sizeof(struct mptcp_dss) / mb);
}

/*
 * --- the case
 * -----------------------------------------------------------------------------------
 */

static void stream_teardown(void *arg)
{
	struct stream_ctx *c = arg;

	tx_ring_complete(c->era, &c->ring, RING);
	mptcp_destroy(c->era, &c->msk);
	tx_ring_exit(&c->ring);
	free(c);
}

static int stream_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	struct stream_ctx *c =
		aligned_alloc(SMP_CACHE_BYTES, ALIGN(sizeof(*c), (size_t)SMP_CACHE_BYTES));
	long era = bench_arg(args, "era");

	if (!c) {
		snprintf(err, errlen, "no memory for %zu bytes of sockets", sizeof(*c));
		return -ENOMEM;
	}
	memset(c, 0, sizeof(*c));
	c->era = era ? ERA_6_12 : ERA_6_1;
	c->variant = bench_arg(args, "variant");
	c->writes = bench_arg(args, "backlog") + 1;
	c->subflow = bench_arg(args, "where");
	if (tx_ring_init(&c->ring, RING)) {
		snprintf(err, errlen, "no memory for the ring");
		free(c);
		return -ENOMEM;
	}
	for (u32 i = 0; i < sizeof(c->text); i++)
		c->text[i] = text_at(i);
	tcp_sock_init(&c->sk, &c->prot, &c->ring, SKB_FRAG_PAGE_ORDER);
	BUG_ON(mptcp_init(&c->msk, &c->sk, 0, mtus[bench_arg(args, "mtu")]));
	c->msk.push_per_write = c->subflow;
	if (c->subflow)
		c->sk.snd_wnd = 0;
	mptcp_peer_init(&c->peer, 0, 0);
	c->peer.pattern = text_at;
	c->peer.sink = c->sink;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", spans[era][c->variant][c->subflow] } },
		.bytes_per_op = (u64)WRITE * c->writes,
		.pipeline = true,
		.check = stream_check,
		.ledger = stream_ledger,
		.report = stream_report,
		.teardown = stream_teardown,
	};
	return 0;
}

static const struct bench_key stream_keys[] = {
	{ "era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold below" },
	{ "variant", variant_words, 0, 0, "before",
	  "before,size_bias,psh,split,posted,merged,split_fixed", "what of the patch is there" },
	{ "mtu", mtu_words, 0, 0, "65536", "1500,65536", "bytes; gives MSS and size goal" },
	{ "backlog", NULL, 0, MAX_BACKLOG, "15", "0,15",
	  "writes that wait when another one comes" },
	{ "where", where_words, 0, 0, "msk", "msk", "where they wait" },
	{ 0 },
};

static const struct bench_op stream_op = {
	.name = "mptcp/stream",
	.summary = "writes of 16384 bytes over one subflow of a loopback",
	.keys = stream_keys,
	.prepare = stream_prepare,
};

int main(int argc, char **argv)
{
	bench_register(&stream_op);
	return bench_main(argc, argv);
}
