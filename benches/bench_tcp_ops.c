/* SPDX-License-Identifier: MIT */
/*
 * TCP's transmit side, operation by operation.
 *
 *   operation                 keys                  steps, the one that matters in capitals
 *   tcp/tcp_sendmsg           era order from        SENDMSG free
 *   tcp/tcp_sendmsg_zerocopy  era order             SENDMSG free
 *   tcp/tso_fragment          era order segs        build FRAGMENT free
 *   tcp/tcp_fragment          era order segs clone  build transmit FRAGMENT completion full_ack
 *   tcp/tcp_trim_head         era order segs clone  build transmit TRIM completion full_ack
 *   tcp/tcp_shift_skb_data    era order clone       build transmit sack SHIFT completion full_ack
 *   tcp/tcp_collapse_retrans  era bytes join        build completion COLLAPSE full_ack
 *
 *   key     values
 *   era     3.4 6.1 6.12
 *   order   0 3               page frags: 65160 bytes (45 segments of 1448) lie in 16, or in 2;
 *                             zerocopy: the user's pages, one by one or in blocks of 8
 *   from    cache memory      the user's bytes: the same 65160 each time, or the next of 128 MB
 *   segs    1 to 44           segments in front of the cut, or trimmed
 *   clone   alive gone        gone: the completion comes before the step, the head is private
 *   bytes   1 to 1448         of each small record
 *   join    1 to 16           records that join the first
 *
 * None of these can work on what another left behind: the sk_buff must be made anew, so that the
 * time of an operation holds all its steps. Ledger and instruction counts tell the steps apart, and
 * it is those that say what a cut or a shift costs; the difference of the times of two cases
 * (clone:alive and clone:gone) holds what differs in all steps.
 *
 * What the kernel does: tcp_sendmsg_locked(), with MSG_ZEROCOPY, too (whose pages the kernel also
 * has to find and to pin, and whose user is told by a message: left out); tso_fragment() from tcp_write_xmit() at the window's
 * edge; tcp_fragment() for a SACK or a retransmission; tcp_trim_head() from tcp_tso_acked();
 * tcp_shift_skb_data() from tcp_sacktag_walk(); tcp_retrans_try_collapse() from
 * tcp_retransmit_skb(). What is fake here: payload is in place but for tcp_sendmsg, whose pages are
 * warm; the retransmit queue holds up to three sk_buffs (small records: join + 1), where the
 * kernel's tree may hold hundreds; the step is called by itself (a trim takes its segments out of
 * the counts as an ACK would). A shift joins two sk_buffs behind a small first one, which the peer
 * misses: of 65160 bytes each with order 3, of 20 segments each with order 0, since 17 frags hold
 * no more. Trimming is eager; what lazy trimming saves is tcp/trim.
 */
#include "benches/bench_tcp_ops.h"
#include "benches/harness/bench.h"

#include "skb/skb_check.h"
#include "tcp/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MSS	 TCP_MSS_ETHERNET
#define BYTES	 (45 * MSS)
#define TRIM	 TRIM_EAGER
#define FAR_USER ((size_t)128 << 20)

#define USER_PAGES ((BYTES + PAGE_SIZE - 1) / PAGE_SIZE)

static const char *const era_words[] = { "3.4", "6.1", "6.12", NULL };
static const char *const order_words[] = { "0", "3", NULL };
static const char *const from_words[] = { "cache", "memory", NULL };
static const char *const clone_words[] = { "alive", "gone", NULL };

struct ops_ctx {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	enum skb_era era;
	u32 len; /* bytes of the cut, the trim, one of the shifted, one small record */
	u32 segs;
	u32 join;

	/* tcp_sendmsg: what is copied next, from where to where it starts again */
	const char *user, *user_at;
	size_t user_bytes;

	/* tcp_sendmsg_zerocopy: the user's pages, and who is told; the case's references */
	struct page *user_page[USER_PAGES];
	struct ubuf_info_msgzc uarg;

	/* what the check looks for: after the step CHECKED the queues hold QLEN sk_buffs */
	const char *checked;
	u32 qlen;
	void (*one)(void *ctx);
	int (*steps)(struct ops_ctx *c, char *err, size_t errlen);
};

/*
 * --- steps
 * -----------------------------------------------------------------------------------------------
 */

static __always_inline void do_sendmsg(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(tcp_sendmsg(era, &c->sk, c->user_at, BYTES) != BYTES);
	c->user_at += BYTES;
	if (c->user_at + BYTES > c->user + c->user_bytes)
		c->user_at = c->user;
}

static __always_inline void do_zerocopy(struct ops_ctx *c, const enum skb_era era)
{
	struct skb_user_pages from = { c->user_page, 0 };

	BUG_ON(tcp_sendmsg_zerocopy(era, &c->sk, &from, BYTES, &c->uarg.ubuf) != BYTES);
}

static __always_inline void do_build(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(tcp_sendmsg_in_place(era, &c->sk, BYTES) != BYTES);
}

static __always_inline void do_transmit(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(!tcp_write_xmit(era, TRIM, &c->sk));
}

static __always_inline void do_completion(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(!tx_ring_complete(era, &c->ring, 64));
}

static __always_inline void do_full_ack(struct ops_ctx *c, const enum skb_era era)
{
	tcp_ack(era, TRIM, &c->sk, c->sk.snd_nxt);
}

/* What was not sent leaves as a closed socket's does. */
static __always_inline void do_free(struct ops_ctx *c, const enum skb_era era)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&c->sk.sk_write_queue))) {
		__skb_unlink(skb, &c->sk.sk_write_queue);
		tcp_wmem_free_skb(era, &c->sk, skb);
	}
	c->sk.snd_nxt = c->sk.snd_una = c->sk.write_seq;
}

static __always_inline void do_tso_cut(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(tso_fragment(era, TRIM, &c->sk, skb_peek(&c->sk.sk_write_queue), c->len, MSS));
}

static __always_inline void do_cut(struct ops_ctx *c, const enum skb_era era)
{
	struct sk_buff_head *queue = &c->sk.tcp_rtx_queue;

	BUG_ON(tcp_fragment(era, TRIM, &c->sk, queue, skb_peek(queue), c->len, MSS));
}

static __always_inline void do_trim(struct ops_ctx *c, const enum skb_era era)
{
	struct sk_buff *skb = skb_peek(&c->sk.tcp_rtx_queue);

	BUG_ON(tcp_trim_head(era, TRIM, &c->sk, skb, c->len));
	tcp_adjust_pcount(&c->sk, skb, c->segs);
	c->sk.snd_una += c->len;
}

/* A segment that the peer misses, and two sk_buffs behind it. */
static __always_inline void do_build_three(struct ops_ctx *c, const enum skb_era era)
{
	BUG_ON(tcp_sendmsg_in_place(era, &c->sk, MSS) != MSS);
	TCP_SKB_CB(skb_peek(&c->sk.sk_write_queue))->eor = 1;
	BUG_ON(tcp_sendmsg_in_place(era, &c->sk, 2 * c->len) != (int)(2 * c->len));
}

static __always_inline void do_sack(struct ops_ctx *c, const enum skb_era era)
{
	u32 from = c->sk.snd_una + MSS;

	BUG_ON(tcp_sack(era, TRIM, &c->sk, from, from + c->len) != (int)c->segs);
}

static __always_inline void do_shift(struct ops_ctx *c, const enum skb_era era)
{
	u32 from = c->sk.snd_una + MSS + c->len;

	BUG_ON(tcp_sack(era, TRIM, &c->sk, from, from + c->len) != (int)c->segs);
}

/* Small records, each sent before the next is written. */
static __always_inline void do_build_small(struct ops_ctx *c, const enum skb_era era)
{
	for (u32 i = 0; i <= c->join; i++) {
		BUG_ON(tcp_sendmsg_in_place(era, &c->sk, c->len) != (int)c->len);
		BUG_ON(tcp_write_xmit(era, TRIM, &c->sk) != 1);
	}
}

static __always_inline void do_collapse(struct ops_ctx *c, const enum skb_era era)
{
	struct sk_buff *first = skb_peek(&c->sk.tcp_rtx_queue);

	BUG_ON(tcp_retrans_try_collapse(era, &c->sk, first, MSS) != (int)c->join);
}

/*
 * --- operations: the order of steps, for the span, the phases and the check
 * ---------------------------------
 */

/* STEP(function, name of the phase) */
#define STEPS_sendmsg(STEP)      \
	STEP(sendmsg, "sendmsg") \
	STEP(free, "free")
#define STEPS_zerocopy(STEP)      \
	STEP(zerocopy, "sendmsg") \
	STEP(free, "free")
#define STEPS_tso(STEP)           \
	STEP(build, "build")      \
	STEP(tso_cut, "fragment") \
	STEP(free, "free")
#define STEPS_cut_alive(STEP)          \
	STEP(build, "build")           \
	STEP(transmit, "transmit")     \
	STEP(cut, "fragment")          \
	STEP(completion, "completion") \
	STEP(full_ack, "full_ack")
#define STEPS_cut_gone(STEP)           \
	STEP(build, "build")           \
	STEP(transmit, "transmit")     \
	STEP(completion, "completion") \
	STEP(cut, "fragment")          \
	STEP(full_ack, "full_ack")
#define STEPS_trim_alive(STEP)         \
	STEP(build, "build")           \
	STEP(transmit, "transmit")     \
	STEP(trim, "trim")             \
	STEP(completion, "completion") \
	STEP(full_ack, "full_ack")
#define STEPS_trim_gone(STEP)          \
	STEP(build, "build")           \
	STEP(transmit, "transmit")     \
	STEP(completion, "completion") \
	STEP(trim, "trim")             \
	STEP(full_ack, "full_ack")
#define STEPS_shift_alive(STEP)        \
	STEP(build_three, "build")     \
	STEP(transmit, "transmit")     \
	STEP(sack, "sack")             \
	STEP(shift, "shift")           \
	STEP(completion, "completion") \
	STEP(full_ack, "full_ack")
#define STEPS_shift_gone(STEP)         \
	STEP(build_three, "build")     \
	STEP(transmit, "transmit")     \
	STEP(completion, "completion") \
	STEP(sack, "sack")             \
	STEP(shift, "shift")           \
	STEP(full_ack, "full_ack")
#define STEPS_collapse(STEP)           \
	STEP(build_small, "build")     \
	STEP(completion, "completion") \
	STEP(collapse, "collapse")     \
	STEP(full_ack, "full_ack")

#define PHASE(step)                         \
	static void phase_##step(void *arg) \
	{                                   \
		struct ops_ctx *c = arg;    \
                                            \
		do_##step(c, c->era);       \
	}
PHASE(sendmsg)
PHASE(zerocopy)
PHASE(build)
PHASE(build_three)
PHASE(build_small)
PHASE(transmit)
PHASE(completion)
PHASE(full_ack)
PHASE(free)
PHASE(tso_cut)
PHASE(cut)
PHASE(trim)
PHASE(sack)
PHASE(shift)
PHASE(collapse)

static int check_step(struct ops_ctx *c, const char *step, char *err, size_t errlen)
{
	u32 qlen = c->sk.tcp_rtx_queue.qlen + c->sk.sk_write_queue.qlen;

	if (tcp_check_sock(c->era, TRIM, &c->sk, err, errlen))
		return -1;
	if (strcmp(step, c->checked) || qlen == c->qlen)
		return 0;
	snprintf(err, errlen, "after %s the queues hold %u sk_buffs, not %u", step, qlen, c->qlen);
	return -1;
}

#define SPAN_STEP(step, name)  do_##step(c, era);
#define PHASE_STEP(step, name) bench_phase(name, phase_##step, c);
#define CHECK_STEP(step, name)                \
	do_##step(c, c->era);                 \
	if (check_step(c, name, err, errlen)) \
		return -1;

#define SPAN(op, suffix, era_)                             \
	static void span_##op##_##suffix(void *arg, u64 n) \
	{                                                  \
		const enum skb_era era = era_;             \
		struct ops_ctx *c = arg;                   \
                                                           \
		while (n--) {                              \
			STEPS_##op(SPAN_STEP)              \
		}                                          \
	}
#define OPERATION(op)                                                      \
	SPAN(op, 3_4, ERA_3_4)                                             \
	SPAN(op, 6_1, ERA_6_1)                                             \
	SPAN(op, 6_12, ERA_6_12)                                           \
	static void one_##op(void *arg)                                    \
	{                                                                  \
		struct ops_ctx *c = arg;                                   \
                                                                           \
		STEPS_##op(PHASE_STEP)                                     \
	}                                                                  \
	static int steps_##op(struct ops_ctx *c, char *err, size_t errlen) \
	{                                                                  \
		STEPS_##op(CHECK_STEP) return 0;                           \
	}
OPERATION(sendmsg)
OPERATION(zerocopy)
OPERATION(tso)
OPERATION(cut_alive)
OPERATION(cut_gone)
OPERATION(trim_alive)
OPERATION(trim_gone)
OPERATION(shift_alive)
OPERATION(shift_gone)
OPERATION(collapse)

struct operation {
	void (*span[SKB_ERA_NR])(void *, u64);
	void (*one)(void *);
	int (*steps)(struct ops_ctx *, char *, size_t);
};

#define MADE(op)                                                                             \
	{                                                                                    \
		{ span_##op##_3_4, span_##op##_6_1, span_##op##_6_12 }, one_##op, steps_##op \
	}
static const struct operation op_sendmsg = MADE(sendmsg), op_zerocopy = MADE(zerocopy),
			      op_tso = MADE(tso), op_collapse = MADE(collapse);
/* [clone gone] */
static const struct operation op_cut[] = { MADE(cut_alive), MADE(cut_gone) };
static const struct operation op_trim[] = { MADE(trim_alive), MADE(trim_gone) };
static const struct operation op_shift[] = { MADE(shift_alive), MADE(shift_gone) };

/*
 * --- the case
 * ----------------------------------------------------------------------------------------------
 */

/* What was sent of a tcp_sendmsg() is what the user had. */
static int check_payload(struct ops_ctx *c, char *err, size_t errlen)
{
	const char *user = c->user_at;
	char *back = malloc(BYTES);
	int ret = 0;

	if (!back) {
		snprintf(err, errlen, "no memory to look at the payload");
		return -1;
	}
	do_sendmsg(c, c->era);
	skb_copy_bits(skb_peek(&c->sk.sk_write_queue), 0, back, BYTES);
	if (memcmp(back, user, BYTES)) {
		snprintf(err, errlen, "the sk_buff does not hold what was written");
		ret = -1;
	}
	do_free(c, c->era);
	free(back);
	return ret;
}

/* One operation, looked at after each step; at its end nothing is left of it. */
static int ops_check(void *arg, char *err, size_t errlen)
{
	struct ops_ctx *c = arg;
	struct sock *sk = &c->sk;
	int refs;

	if (c->steps(c, err, errlen) || (c->user && check_payload(c, err, errlen)))
		return -1;
	/* Small records of era 3.4 lie in heads and need no page. */
	refs = sk->sk_frag.page ? page_count(sk->sk_frag.page) : 1;
	if (!sk->packets_out && !sk->sacked_out && !sk->sk_wmem_queued &&
	    refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) == 1 && refs == 1)
		return 0;
	snprintf(err, errlen,
		 "after an operation: %u segments out, %u SACKed, %d bytes queued, sk_wmem_alloc "
		 "%d, page frag with %d references",
		 sk->packets_out, sk->sacked_out, sk->sk_wmem_queued,
		 refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM), refs);
	return -1;
}

static void ops_ledger(void *arg)
{
	struct ops_ctx *c = arg;

	c->one(c);
}

static void ops_teardown(void *arg)
{
	struct ops_ctx *c = arg;

	tcp_sock_destroy(c->era, &c->sk);
	tx_ring_exit(&c->ring);
	for (unsigned int i = 0; i < USER_PAGES; i++)
		/* A block's pages are let go of with its head. */
		if (c->user_page[i] && compound_head(c->user_page[i]) == c->user_page[i])
			put_page(c->user_page[i]);
	free((void *)c->user);
	mem_free(c);
}

/*
 * A case of OP, whose step CHECKED leaves QLEN sk_buffs; its arguments are then the caller's to
 * set. NULL, and a sentence in ERR.
 */
static struct ops_ctx *ops_case(const struct bench_args *args, bool order_3,
				const struct operation *op, const char *checked, u32 qlen,
				struct bench_case *out, char *err, size_t errlen)
{
	struct ops_ctx *c = mem_zalloc(MEM_SOCKET, numa_node_id(), sizeof(*c));

	if (!c) {
		snprintf(err, errlen, "no memory for %zu bytes of a socket", sizeof(*c));
		return NULL;
	}
	c->era = bench_arg(args, "era");
	if (tx_ring_init(&c->ring, 64)) {
		snprintf(err, errlen, "no memory for the ring");
		mem_free(c);
		return NULL;
	}
	tcp_sock_init(&c->sk, &c->prot, &c->ring, order_3 ? SKB_FRAG_PAGE_ORDER : 0);
	c->checked = checked;
	c->qlen = qlen;
	c->one = op->one;
	c->steps = op->steps;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", op->span[c->era] } },
		.bytes_per_op = BYTES,
		.check = ops_check,
		.ledger = ops_ledger,
		.teardown = ops_teardown,
	};
	return c;
}

static bool has_order_3(const struct bench_args *args)
{
	return bench_arg(args, "order") == 1;
}

static int prepare_sendmsg(const struct bench_args *args, struct bench_case *out, char *err,
			   size_t errlen)
{
	struct ops_ctx *c =
		ops_case(args, has_order_3(args), &op_sendmsg, "sendmsg", 1, out, err, errlen);
	size_t bytes = bench_arg(args, "from") ? FAR_USER : ALIGN((size_t)BYTES, PAGE_SIZE);
	char *user;

	if (!c)
		return -ENOMEM;
	user = aligned_alloc(PAGE_SIZE, bytes);
	if (!user) {
		ops_teardown(c);
		snprintf(err, errlen, "no memory for %zu MB of user data", bytes >> 20);
		return -ENOMEM;
	}
	/* Pages of their own, not the one page of zeros. */
	for (size_t i = 0; i < bytes; i++)
		user[i] = i * 2654435761u >> 24;
	c->user = c->user_at = user;
	c->user_bytes = bytes;
	return 0;
}

static void never(struct ubuf_info_msgzc *uarg)
{
	(void)uarg;
	skb_bug(__FILE__, __LINE__, "the ubuf_info of a case was let go of");
}

static int prepare_zerocopy(const struct bench_args *args, struct bench_case *out, char *err,
			    size_t errlen)
{
	unsigned int order = has_order_3(args) ? SKB_FRAG_PAGE_ORDER : 0;
	struct ops_ctx *c;

	if (bench_arg(args, "era") == ERA_3_4) {
		snprintf(err, errlen, "3.4 has no MSG_ZEROCOPY: ask for era:6.1 or era:6.12");
		return -EINVAL;
	}
	c = ops_case(args, false, &op_zerocopy, "sendmsg", 1, out, err, errlen);
	if (!c)
		return -ENOMEM;
	for (unsigned int i = 0; i < USER_PAGES; i++) {
		c->user_page[i] = i % (1U << order) ? c->user_page[i - 1] + 1 : alloc_pages(order);
		if (!c->user_page[i]) {
			ops_teardown(c);
			snprintf(err, errlen, "no memory for the user's pages: more --skb_pages");
			return -ENOMEM;
		}
	}
	msg_zerocopy_init(&c->uarg, SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN, never);
	return 0;
}

static int prepare_segs(const struct bench_args *args, const struct operation *op,
			const char *checked, u32 qlen, struct bench_case *out, char *err,
			size_t errlen)
{
	struct ops_ctx *c = ops_case(args, has_order_3(args), op, checked, qlen, out, err, errlen);

	if (!c)
		return -ENOMEM;
	c->segs = bench_arg(args, "segs");
	c->len = c->segs * MSS;
	return 0;
}

static int prepare_tso(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	return prepare_segs(args, &op_tso, "fragment", 2, out, err, errlen);
}

static int prepare_cut(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	return prepare_segs(args, &op_cut[bench_arg(args, "clone")], "fragment", 2, out, err,
			    errlen);
}

static int prepare_trim(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	return prepare_segs(args, &op_trim[bench_arg(args, "clone")], "trim", 1, out, err, errlen);
}

static int prepare_shift(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	const struct operation *op = &op_shift[bench_arg(args, "clone")];
	struct ops_ctx *c;

	if (bench_arg(args, "era") == ERA_3_4) {
		snprintf(err, errlen,
			 "3.4 keeps the first bytes of an sk_buff in its head, which cannot be "
			 "shifted: ask for era:6.1 or era:6.12");
		return -EINVAL;
	}
	c = ops_case(args, has_order_3(args), op, "shift", 2, out, err, errlen);
	if (!c)
		return -ENOMEM;
	c->segs = has_order_3(args) ? 45 : 20;
	c->len = c->segs * MSS;
	c->sk.gso_max_size = c->len;
	out->bytes_per_op = c->len;
	return 0;
}

static int prepare_collapse(const struct bench_args *args, struct bench_case *out, char *err,
			    size_t errlen)
{
	long bytes = bench_arg(args, "bytes"), join = bench_arg(args, "join"), most = MSS;
	struct ops_ctx *c;

	if (bench_arg(args, "era") == ERA_3_4)
		most = 2048 - MAX_TCP_HEADER - (long)SKB_SHINFO_SIZE; /* its head's room */
	if ((join + 1) * bytes > most) {
		snprintf(err, errlen,
			 "%ld records of %ld bytes do not fit into one packet of %ld: fewer or "
			 "smaller ones do",
			 join + 1, bytes, most);
		return -EINVAL;
	}
	c = ops_case(args, true, &op_collapse, "collapse", 1, out, err, errlen);
	if (!c)
		return -ENOMEM;
	c->len = bytes;
	c->join = join;
	out->bytes_per_op = (join + 1) * bytes;
	return 0;
}

#define KEY_ERA(grid_)                                                                       \
	{                                                                                    \
		"era", era_words, 0, 0, "6.12", grid_, "the kernel version whose rules hold" \
	}
#define KEY_ORDER                                                               \
	{                                                                       \
		"order", order_words, 0, 0, "0", "0,3", "of the page fragments" \
	}
#define KEY_SEGS(help_)                                \
	{                                              \
		"segs", NULL, 1, 44, "20", "20", help_ \
	}
#define KEY_CLONE                                                                \
	{                                                                        \
		"clone", clone_words, 0, 0, "alive", "alive,gone", "at the step" \
	}

static const struct bench_key sendmsg_keys[] = {
	KEY_ERA("6.12"),
	KEY_ORDER,
	{ "from", from_words, 0, 0, "cache", "cache,memory", "where the user's bytes lie" },
	{ 0 },
};
static const struct bench_key zerocopy_keys[] = { KEY_ERA("6.12"), KEY_ORDER, { 0 } };
static const struct bench_key tso_keys[] = {
	KEY_ERA("6.12"),
	KEY_ORDER,
	KEY_SEGS("segments in front of the cut"),
	{ 0 },
};
static const struct bench_key cut_keys[] = {
	KEY_ERA("6.12"), KEY_ORDER, KEY_SEGS("segments in front of the cut"), KEY_CLONE, { 0 },
};
static const struct bench_key trim_keys[] = {
	KEY_ERA("6.12"), KEY_ORDER, KEY_SEGS("segments trimmed"), KEY_CLONE, { 0 },
};
static const struct bench_key shift_keys[] = { KEY_ERA("6.12"), KEY_ORDER, KEY_CLONE, { 0 } };
static const struct bench_key collapse_keys[] = {
	KEY_ERA("3.4,6.12"),
	{ "bytes", NULL, 1, MSS, "200", "200", "bytes of each record" },
	{ "join", NULL, 1, 16, "3", "1,3,6", "records that join the first" },
	{ 0 },
};

#define OP(name_, summary_, keys_, prepare_)                                           \
	{                                                                              \
		.name = name_, .summary = summary_, .keys = keys_, .prepare = prepare_ \
	}
static const struct bench_op ops[] = {
	OP("tcp/tcp_sendmsg", "64 KB of user data into the write queue", sendmsg_keys,
	   prepare_sendmsg),
	OP("tcp/tcp_sendmsg_zerocopy", "64 KB of a user's pages into the write queue",
	   zerocopy_keys, prepare_zerocopy),
	OP("tcp/tso_fragment", "a cut of what was never sent", tso_keys, prepare_tso),
	OP("tcp/tcp_fragment", "a cut of what was sent", cut_keys, prepare_cut),
	OP("tcp/tcp_trim_head", "bytes off the front of what was sent", trim_keys, prepare_trim),
	OP("tcp/tcp_shift_skb_data", "a SACKed sk_buff into the one before it", shift_keys,
	   prepare_shift),
	OP("tcp/tcp_collapse_retrans", "small sk_buffs joined to be sent again", collapse_keys,
	   prepare_collapse),
};

void bench_tcp_ops_register(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
