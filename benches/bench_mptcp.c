/* SPDX-License-Identifier: MIT */
/*
 * The `mptcp` experiment: a stream of netperf's writes over one subflow of a loopback.
 *
 *   operation         keys
 *   mptcp/stream      era variant mtu backlog where   a backlog that is given
 *   mptcp/saturated   era variant mtu cwnd sndbuf     one that follows: writes fill the send buffer
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
 *   cwnd      1 to 65535           segments that may be on their way
 *   sndbuf    64 to 8192           KB that data frags may take up, those on their way included
 *
 * stream: one operation is backlog + 1 writes of 16384 bytes, mptcp_push_pending(), tcp_write_xmit(),
 * for each packet its arrival (map, copy to the reader) and completion, the ACK and the DATA_ACK. The
 * report tells what sk_buffs and maps the stream was made of. Nothing is cut.
 *
 * saturated: one operation is one write of 16384 bytes, pushed at once. While the send buffer is full
 * the writer waits: the oldest packet arrives and completes, its ACK and DATA_ACK come, and
 * tcp_write_xmit() sends what the congestion window has room for by now. Data never ends: nothing is
 * drained, and what waits in the subflow's queue (waiting_bytes, as it was at the end) is what the send
 * buffer takes beyond the window. An sk_buff of which the window takes only a part is cut. skb_bytes
 * are those of the sk_buffs that were sent, cuts included. In the ledger the phase `burst` is 64
 * writes into a drained connection, and what it takes to drain it again.
 *
 * What the kernel does: all of this in mptcp_sendmsg(), __mptcp_push_pending(), tcp_write_xmit(),
 * mptcp_incoming_options() and mptcp_recvmsg(), on two CPUs. What is fake here: one CPU is sender
 * and receiver in turn, there is no IP, no softirq, no lock and no wakeup between the two, an ACK is
 * a function call, the peer's window is open at the end of each operation, the congestion window does
 * not move; both copies stay in the cache. The claim's figures include all that; what is left is
 * buffers and copies.
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

#define BURST 64 /* writes, of the check and the ledger of mptcp/saturated */

struct stream_ctx {
	struct sock sk;
	struct mptcp_sock msk;
	struct proto_memory prot;
	struct tx_ring ring;
	struct mptcp_peer peer;
	enum skb_era era;
	enum mptcp_variant variant;
	unsigned int writes;
	unsigned int slots; /* of the ring */
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

/* All has been acknowledged and nothing is queued or held. */
static int check_drained(struct stream_ctx *c, char *err, size_t errlen)
{
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
	return check_drained(c, err, errlen);
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
 * --- saturated
 * ----------------------------------------------------------------------------------
 */

/* The oldest packet is with its reader: what its ACK lets out goes. */
static __always_inline void one_arrives(struct stream_ctx *c, const enum skb_era era,
					const enum mptcp_variant v, const bool check)
{
	struct tx_ring *ring = &c->ring;
	struct sk_buff *packet = ring->slot[ring->head & ring->mask];

	BUG_ON(!tx_ring_count(ring));
	BUG_ON(check ? mptcp_peer_rcv_check(&c->peer, packet) : mptcp_peer_rcv(&c->peer, packet));
	tx_ring_complete(era, ring, 1);
	stream_ack(c, era, v);
	tcp_write_xmit(era, mptcp_tcp(v), &c->sk);
}

static __always_inline void write_one(struct stream_ctx *c, const enum skb_era era,
				      const enum mptcp_variant v, const bool check)
{
	u32 done = 0;

	while (done < WRITE) {
		int ret = mptcp_sendmsg(era, v, &c->msk, c->text + c->at + done, WRITE - done);

		if (ret > 0)
			done += ret;
		else
			one_arrives(c, era, v, check);
	}
	c->at += WRITE;
	if (c->at >= PERIOD)
		c->at -= PERIOD;
}

#define SATURATED(suffix, era, v)                             \
	static void span_saturated_##suffix(void *arg, u64 n) \
	{                                                     \
		while (n--)                                   \
			write_one(arg, era, v, false);        \
	}
MPTCP_FOR_EACH(SATURATED)

#define SATURATED_ERA(era)                                                            \
	{                                                                             \
		span_saturated_##era##_before, span_saturated_##era##_size_bias,      \
			span_saturated_##era##_psh, span_saturated_##era##_split,     \
			span_saturated_##era##_posted, span_saturated_##era##_merged, \
			span_saturated_##era##_split_fixed,                           \
	}
static void (*const saturated_spans[2][MPTCP_VARIANT_NR])(void *, u64) = { SATURATED_ERA(6_1),
									   SATURATED_ERA(6_12) };

static void drain(struct stream_ctx *c, bool check)
{
	while (tx_ring_count(&c->ring))
		one_arrives(c, c->era, c->variant, check);
}

static void phase_burst(void *arg)
{
	struct stream_ctx *c = arg;

	for (int i = 0; i < BURST; i++)
		write_one(c, c->era, c->variant, false);
	drain(c, false);
}

static void saturated_ledger(void *arg)
{
	drain(arg, false);
	bench_phase("burst", phase_burst, arg);
}

/* A burst, each byte of it looked at; the packets' ACKs drain it. */
static int saturated_check(void *arg, char *err, size_t errlen)
{
	struct stream_ctx *c = arg;

	drain(c, true);
	for (int i = 0; i < BURST; i++) {
		write_one(c, c->era, c->variant, true);
		if (check_now(c, err, errlen))
			return -1;
	}
	drain(c, true);
	return check_now(c, err, errlen) ? -1 : check_drained(c, err, errlen);
}

static void saturated_report(void *arg, struct bench_report *report)
{
	const struct stream_ctx *c = arg;

	stream_report(arg, report);
	bench_report_add(report, "waiting_bytes", c->sk.write_seq - c->sk.snd_nxt);
}

/*
 * --- the cases
 * ----------------------------------------------------------------------------------
 */

static void stream_teardown(void *arg)
{
	struct stream_ctx *c = arg;

	tx_ring_complete(c->era, &c->ring, c->slots);
	mptcp_destroy(c->era, &c->msk);
	tx_ring_exit(&c->ring);
	mem_free(c);
}

/* A connection with a ring of SLOTS, in no case yet. NULL: no memory, said in ERR. */
static struct stream_ctx *open_stream(const struct bench_args *args, unsigned int slots, char *err,
				      size_t errlen)
{
	struct stream_ctx *c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));

	if (!c) {
		snprintf(err, errlen, "no memory for %zu bytes of sockets", sizeof(*c));
		return NULL;
	}
	c->era = bench_arg(args, "era") ? ERA_6_12 : ERA_6_1;
	c->variant = bench_arg(args, "variant");
	c->slots = slots;
	if (tx_ring_init(&c->ring, slots)) {
		snprintf(err, errlen, "no memory for the ring");
		mem_free(c);
		return NULL;
	}
	for (u32 i = 0; i < sizeof(c->text); i++)
		c->text[i] = text_at(i);
	tcp_sock_init(&c->sk, &c->prot, &c->ring, SKB_FRAG_PAGE_ORDER);
	BUG_ON(mptcp_init(&c->msk, &c->sk, 0, mtus[bench_arg(args, "mtu")]));
	mptcp_peer_init(&c->peer, 0, 0);
	c->peer.pattern = text_at;
	c->peer.sink = c->sink;
	return c;
}

static int stream_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	struct stream_ctx *c = open_stream(args, RING, err, errlen);

	if (!c)
		return -ENOMEM;
	c->writes = bench_arg(args, "backlog") + 1;
	c->subflow = bench_arg(args, "where");
	c->msk.push_per_write = c->subflow;
	if (c->subflow)
		c->sk.snd_wnd = 0;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", spans[c->era == ERA_6_12][c->variant][c->subflow] } },
		.bytes_per_op = (u64)WRITE * c->writes,
		.pipeline = true,
		.check = stream_check,
		.ledger = stream_ledger,
		.report = stream_report,
		.teardown = stream_teardown,
	};
	return 0;
}

static int saturated_prepare(const struct bench_args *args, struct bench_case *out, char *err,
			     size_t errlen)
{
	u32 cwnd = bench_arg(args, "cwnd"), sndbuf = bench_arg(args, "sndbuf") << 10;
	struct stream_ctx *c;

	/* A full ring would lose packets: room for what the largest buffers hold in small ones. */
	c = open_stream(args, sndbuf <= 512 << 10 ? RING : 32 * RING, err, errlen);
	if (!c)
		return -ENOMEM;
	c->sk.snd_cwnd = cwnd;
	c->msk.sndbuf = sndbuf;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", saturated_spans[c->era == ERA_6_12][c->variant] } },
		.bytes_per_op = WRITE,
		.pipeline = true,
		.check = saturated_check,
		.ledger = saturated_ledger,
		.report = saturated_report,
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

static const struct bench_key saturated_keys[] = {
	{ "era", era_words, 0, 0, "6.12", "6.12", "the kernel version whose rules hold below" },
	{ "variant", variant_words, 0, 0, "before",
	  "before,size_bias,psh,split,posted,merged,split_fixed", "what of the patch is there" },
	{ "mtu", mtu_words, 0, 0, "65536", "65536", "bytes; gives MSS and size goal" },
	{ "cwnd", NULL, 1, 65535, "2", "2", "segments that may be on their way" },
	{ "sndbuf", NULL, 64, 8192, "512", "512", "KB that may be written and not acknowledged" },
	{ 0 },
};

static const struct bench_op saturated_op = {
	.name = "mptcp/saturated",
	.summary = "writes of 16384 bytes as fast as the send buffer takes them",
	.keys = saturated_keys,
	.prepare = saturated_prepare,
};

int main(int argc, char **argv)
{
	bench_register(&stream_op);
	bench_register(&saturated_op);
	return bench_main(argc, argv);
}
