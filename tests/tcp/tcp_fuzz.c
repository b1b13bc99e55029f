/* SPDX-License-Identifier: MIT */
/*
 * Random scripts of sends, with and without a copy, ACKs, SACKs, windows, losses, completions, cuts and retransmissions, in
 * every era.
 *
 *   pairs     the same script on a socket that trims eagerly and on one that trims lazily, step by
 *             step: the same return values, the same bytes on the wire in the same packets, the
 *             same counters, the same sk_buffs in the queues (E1); half of them (traced) with
 *             pairs and pages that cannot be had, in the same places on both sides
 *   failures  each way to trim alone, with allocations of every kind that fail at random
 *
 * After every step: charges and segments add up (A1, A6), sequence numbers join, and what is sent
 * is what was written. At the end of each script no object, no page and no byte of charge is left.
 * And at the end of all, every kind of join and cut must have happened.
 *
 * SKB_SEED replays a run, SKB_OPS sets the number of steps.
 */
#include "skb/skb_check.h"
#include "tcp/tcp.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define RING	 64
#define STEPS	 200 /* of one script */
#define MAX_SEND 200000
#define MAX_WIRE 70000

struct side {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	enum tcp_trim trim;
	struct ubuf_info_msgzc zc[STEPS]; /* the first nr_zc; a reference on each is the user's */
	int nr_zc, nr_told;
	u32 seen; /* packets on the wire that were looked at */
};

static struct rng rng;
static enum skb_era era;
static struct side side[TCP_TRIM_NR];
static u64 script, step;
static const char *step_name;

/* What the scripts have reached, in each era. */
static struct {
	u64 shifted, collapsed, split, sacked, lost, fins, pure, mixed;
} reached[SKB_ERA_NR];
static char *stream; /* byte i is what sequence number i carries, modulo its size */
#define STREAM (1 << 20)
/* The same bytes in a user's pages, half of them in blocks. Twice, so that no send wraps. */
static size_t users_pages;
static struct page *user_page[2 * STREAM / PAGE_SIZE];

__attribute__((format(printf, 1, 2), noreturn)) static void broken(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "era %s, script %llu, step %llu (%s): ", skb_era_name(era),
		(unsigned long long)script, (unsigned long long)step, step_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void open_side(struct side *s, enum tcp_trim trim, unsigned int order)
{
	memset(s, 0, sizeof(*s));
	s->trim = trim;
	if (tx_ring_init(&s->ring, RING))
		broken("no ring");
	tcp_sock_init(&s->sk, &s->prot, &s->ring, order);
	s->sk.sk_sndbuf = 4 << 20;
}

static void close_side(struct side *s)
{
	tx_ring_complete(era, &s->ring, RING);
	tcp_tsq_handler(era, s->trim, &s->sk);
	tx_ring_complete(era, &s->ring, RING);
	tcp_sock_destroy(era, &s->sk);
	tx_ring_exit(&s->ring);
	if (refcount_read(&s->sk.sk_wmem_alloc, SKB_C_WMEM) != 1)
		broken("sk_wmem_alloc is %d at the end", s->sk.sk_wmem_alloc.refs.counter);
	if (s->nr_told)
		broken("a user was told before he was done");
	for (int i = 0; i < s->nr_zc; i++)
		net_zcopy_put(&s->zc[i].ubuf);
	if (s->nr_told != s->nr_zc)
		broken("%d of %d users were told", s->nr_told, s->nr_zc);
	if (proto_memory_bytes(&s->prot))
		broken("%ld bytes of charge are left", proto_memory_bytes(&s->prot));
}

/* What must be charged for the sk_buffs of Q. */
static long charge_of(const struct sk_buff_head *q)
{
	long sum = 0;

	for (const struct sk_buff *skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next)
		sum += skb_zcopy_pure(skb) ? SKB_TRUESIZE(skb_end_offset(skb)) : skb->truesize;
	return sum;
}

static void check_side(struct side *s)
{
	char err[200];
	long granted = proto_memory_bytes(&s->prot);
	long used = charge_of(&s->sk.sk_write_queue) + charge_of(&s->sk.tcp_rtx_queue);

	if (tcp_check_sock(era, s->trim, &s->sk, err, sizeof(err)))
		broken("%s: %s", tcp_trim_name(s->trim), err);
	if (granted != used + s->sk.sk_forward_alloc)
		broken("%s: %ld bytes granted, %ld used, %d forward", tcp_trim_name(s->trim),
		       granted, used, s->sk.sk_forward_alloc);
}

/*
 * --- the wire
 * -----------------------------------------------------------------------------------------------
 */

struct packet {
	u32 seq, len;
	u16 gso_segs, gso_size;
	char bytes[MAX_WIRE];
};

/* The next packet that S has put into its ring; false if there is none. Checks what it carries. */
static bool next_packet(struct side *s, struct packet *p)
{
	const struct sk_buff *skb;
	char err[200];
	u32 seq;

	if (s->seen == s->ring.tail)
		return false;
	skb = s->ring.slot[s->seen++ & s->ring.mask];
	if (skb_check(skb, err, sizeof(err)))
		broken("a packet: %s", err);
	skb_copy_bits(skb, 38, &seq, sizeof(seq));
	p->seq = __builtin_bswap32(seq);
	p->len = skb->len - 66;
	p->gso_segs = skb_shinfo(skb)->gso_segs;
	p->gso_size = skb_shinfo(skb)->gso_size;
	skb_copy_bits(skb, 66, p->bytes, p->len);
	for (u32 i = 0; i < p->len; i++)
		if (p->bytes[i] != stream[(p->seq + i) % STREAM])
			broken("sequence number %u carries %#x, not %#x", p->seq + i,
			       (u8)p->bytes[i], (u8)stream[(p->seq + i) % STREAM]);
	return true;
}

#ifdef SKB_TRACED
static void check_wire(struct side *s)
{
	static struct packet p;

	while (next_packet(s, &p))
		;
}
#endif

static void compare_wires(struct side *a, struct side *b)
{
	static struct packet p, q;

	for (;;) {
		bool more = next_packet(a, &p);

		if (more != next_packet(b, &q))
			broken("one side sent a packet more");
		if (!more)
			return;
		if (p.seq != q.seq || p.len != q.len || p.gso_segs != q.gso_segs ||
		    p.gso_size != q.gso_size)
			broken("eager sent %u bytes at %u (%u x %u), lazy %u at %u (%u x %u)",
			       p.len, p.seq, p.gso_segs, p.gso_size, q.len, q.seq, q.gso_segs,
			       q.gso_size);
	}
}

static void compare_counters(const struct side *a, const struct side *b)
{
#define SAME(field)                                                                       \
	do {                                                                              \
		if (a->sk.field != b->sk.field)                                           \
			broken(#field " is %u eager, %u lazy", (unsigned int)a->sk.field, \
			       (unsigned int)b->sk.field);                                \
	} while (0)
	SAME(write_seq);
	SAME(snd_nxt);
	SAME(snd_una);
	SAME(packets_out);
	SAME(retrans_out);
	SAME(sacked_out);
	SAME(lost_out);
	SAME(delivered);
	SAME(tcp_rtx_queue.qlen);
	SAME(sk_write_queue.qlen);
#undef SAME
}

/* The queues hold the same, but for bytes that lazy has only noted. */
static void compare_queues(const struct sk_buff_head *p, const struct sk_buff_head *q)
{
	const struct sk_buff *b = q->next;

	for (const struct sk_buff *a = p->next; !skb_queue_is_end(p, a); a = a->next) {
		const struct tcp_skb_cb *ca = TCP_SKB_CB(a), *cb = TCP_SKB_CB(b);
		u32 noted = cb->offset_ack;

		if (ca->seq != cb->seq + noted || ca->end_seq != cb->end_seq ||
		    a->len != b->len - noted)
			broken("eager holds %u to %u, lazy %u to %u without %u", ca->seq,
			       ca->end_seq, cb->seq, cb->end_seq, noted);
		if (tcp_skb_pcount(era, a) != tcp_skb_pcount(era, b) ||
		    tcp_skb_mss(era, a) != tcp_skb_mss(era, b))
			broken("%u to %u: %d x %d eager, %d x %d lazy", ca->seq, ca->end_seq,
			       tcp_skb_pcount(era, a), tcp_skb_mss(era, a), tcp_skb_pcount(era, b),
			       tcp_skb_mss(era, b));
		if (ca->sacked != cb->sacked || ca->tcp_flags != cb->tcp_flags ||
		    ca->eor != cb->eor)
			broken("%u to %u: tags %#x, flags %#x, eor %u eager, %#x, %#x, %u lazy",
			       ca->seq, ca->end_seq, ca->sacked, ca->tcp_flags, ca->eor, cb->sacked,
			       cb->tcp_flags, cb->eor);
		b = b->next;
	}
}

/*
 * --- steps: each takes its choices from PICK, so that two sides can take the same
 * ----------------------------
 */

struct pick {
	u64 a, b;
};

static int do_send(struct side *s, const struct pick *p)
{
	static const u32 most[] = { MAX_SEND, 66000, 66000, 3000, 700, 700 };
	u32 len = 1 + p->b % most[p->a % ARRAY_SIZE(most)], at = s->sk.write_seq;
	static char buf[MAX_SEND + 1];

	const struct sk_buff *tail = skb_peek_tail(&s->sk.sk_write_queue);
	bool pure = tail && skb_zcopy_pure(tail);
	int ret;

	for (u32 i = 0; i < len; i++)
		buf[i] = stream[(at + i) % STREAM];
	ret = tcp_sendmsg(era, &s->sk, buf, len);
	reached[era].mixed += pure && !skb_zcopy_pure(tail);
	return ret;
}

static void told(struct ubuf_info_msgzc *uarg)
{
	for (int i = 0; i < TCP_TRIM_NR; i++)
		if (uarg >= side[i].zc && uarg < side[i].zc + STEPS)
			side[i].nr_told++;
}

/* From the user's pages, for the user before or another one. */
static int do_zerocopy(struct side *s, const struct pick *p)
{
	static const u32 most[] = { MAX_SEND, 66000, 3000, 700 };
	u32 len = 1 + p->b % most[p->a % ARRAY_SIZE(most)];
	struct skb_user_pages from = { user_page, s->sk.write_seq % STREAM };
	int ret;

	if (!s->nr_zc || p->a >> 32 & 1)
		msg_zerocopy_init(&s->zc[s->nr_zc++], SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN,
				  told);
	ret = tcp_sendmsg_zerocopy(era, &s->sk, &from, len, &s->zc[s->nr_zc - 1].ubuf);
	/*
	 * A page frag that only the socket holds begins anew, and eager lets go of its bytes sooner, if
	 * they are in front of a user's: let both sides begin a new one.
	 */
	if (s->sk.sk_frag.page)
		put_page(s->sk.sk_frag.page);
	s->sk.sk_frag.page = NULL;
	reached[era].pure += ret > 0 && skb_zcopy_pure(skb_peek_tail(&s->sk.sk_write_queue));
	return ret;
}

static int do_xmit(struct side *s, const struct pick *p)
{
	u32 before = s->sk.sk_write_queue.qlen;
	int sent = tcp_write_xmit(era, s->trim, &s->sk);

	(void)p;
	reached[era].split += s->sk.sk_write_queue.qlen + sent - before;
	return sent;
}

/* The peer offers less than what is queued, or even than what is out, and more again. */
static int do_window(struct side *s, const struct pick *p)
{
	s->sk.snd_wnd = p->a % 3 ? 1U << 30 : p->b % 200000;
	return 0;
}

/* A record ends with what was written last. */
static int do_eor(struct side *s, const struct pick *p)
{
	struct sk_buff *skb = skb_peek_tail(&s->sk.sk_write_queue);

	(void)p;
	if (skb)
		TCP_SKB_CB(skb)->eor = 1;
	return !!skb;
}

static int do_fin(struct side *s, const struct pick *p)
{
	int err = -EPIPE;

	if (step > STEPS / 2 && p->a % 4 == 0) {
		err = tcp_send_fin(era, &s->sk);
		reached[era].fins += !err;
	}
	return err;
}

/* Mostly inside the oldest sk_buff, where the two ways differ. */
static int do_ack(struct side *s, const struct pick *p)
{
	u32 out = s->sk.snd_nxt - s->sk.snd_una, by;

	switch (p->a % 8) {
	case 0:
		by = out; /* everything */
		break;
	case 1:
		by = p->b % (out + 1);
		break;
	case 2:
		return tcp_ack(era, s->trim, &s->sk, s->sk.snd_una - 1 - p->b % 1000); /* old */
	case 3:
		return tcp_ack(era, s->trim, &s->sk, s->sk.snd_nxt + 1 + p->b % 1000); /* unsent */
	default:
		by = min((u32)(p->b % 30 * TCP_MSS_ETHERNET / 2), out);
	}
	return tcp_ack(era, s->trim, &s->sk, s->sk.snd_una + by);
}

static int do_complete(struct side *s, const struct pick *p)
{
	return tx_ring_complete(era, &s->ring, 1 + p->a % 4);
}

static int do_tsq(struct side *s, const struct pick *p)
{
	(void)p;
	tcp_tsq_handler(era, s->trim, &s->sk);
	return 0;
}

/* The sk_buff of the retransmit queue that holds what comes a given way behind snd_una. */
static struct sk_buff *skb_at(struct side *s, u32 seq)
{
	struct sk_buff_head *q = &s->sk.tcp_rtx_queue;

	for (struct sk_buff *skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next)
		if (before(seq, TCP_SKB_CB(skb)->end_seq))
			return skb;
	return NULL;
}

/* What the peer has is not sent again. */
static int do_retransmit(struct side *s, const struct pick *p)
{
	u32 out = s->sk.snd_nxt - s->sk.snd_una, qlen = s->sk.tcp_rtx_queue.qlen;
	struct sk_buff *skb;
	int err;

	if (!out)
		return 0;
	skb = skb_at(s, s->sk.snd_una + (p->a % 3 ? 0 : p->b % out));
	if (TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED)
		return 0;
	err = tcp_retransmit_skb(era, s->trim, &s->sk, skb, 1 + p->b % 46);
	if (s->sk.tcp_rtx_queue.qlen < qlen)
		reached[era].collapsed += qlen - s->sk.tcp_rtx_queue.qlen;
	return err;
}

static int do_lost(struct side *s, const struct pick *p)
{
	u32 out = s->sk.snd_nxt - s->sk.snd_una, lost = s->sk.lost_out;

	if (!out)
		return 0;
	tcp_mark_skb_lost(era, &s->sk, skb_at(s, s->sk.snd_una + p->a % out));
	reached[era].lost += s->sk.lost_out > lost;
	return 0;
}

/* Where the sk_buff N of the retransmit queue ends; the last one's end from there on. */
static u32 nth_end(const struct side *s, u32 n)
{
	const struct sk_buff_head *q = &s->sk.tcp_rtx_queue;
	const struct sk_buff *skb = q->next;

	while (n-- && !skb_queue_is_end(q, skb->next))
		skb = skb->next;
	return TCP_SKB_CB(skb)->end_seq;
}

/*
 * Blocks of every kind: that begin where an sk_buff does (so that they can be shifted), of whole
 * sk_buffs, of segments, of any bytes, and such as a peer must not send.
 */
static int do_sack(struct side *s, const struct pick *p)
{
	u32 out = s->sk.snd_nxt - s->sk.snd_una, qlen = s->sk.tcp_rtx_queue.qlen, start, end;
	int newly;

	if (!out)
		return 0;
	start = nth_end(s, p->b % qlen);
	switch (p->a % 8) {
	case 0:
		start = s->sk.snd_una + p->b % (out + 1);
		end = start + (p->b >> 32) % 100000;
		break;
	case 1:
	case 2:
		end = nth_end(s, p->b % qlen + 1 + (p->b >> 32) % 3);
		break;
	case 3:
		start += (p->b >> 40) % 9 * TCP_MSS_ETHERNET;
		/* fall through */
	default:
		end = start + (1 + (p->b >> 32) % 46) * TCP_MSS_ETHERNET;
		end += p->a % 8 == 7 ? (p->b >> 48) % TCP_MSS_ETHERNET : 0;
	}
	if (p->a % 64 && after(end, s->sk.snd_nxt))
		end = s->sk.snd_nxt;
	newly = tcp_sack(era, s->trim, &s->sk, start, end);
	if (newly > 0)
		reached[era].sacked += newly;
	if (s->sk.tcp_rtx_queue.qlen < qlen)
		reached[era].shifted += qlen - s->sk.tcp_rtx_queue.qlen;
	return newly;
}

/* Cuts at a sequence number behind snd_una, as every caller in TCP does. */
static int do_fragment(struct side *s, const struct pick *p)
{
	u32 out = s->sk.snd_nxt - s->sk.snd_una, seq;
	struct sk_buff *skb;

	if (out < 2)
		return 0;
	seq = s->sk.snd_una + 1 + p->a % (out - 1);
	skb = skb_at(s, seq);
	if (seq == TCP_SKB_CB(skb)->seq)
		return 0;
	return tcp_fragment(era, s->trim, &s->sk, &s->sk.tcp_rtx_queue, skb,
			    seq - TCP_SKB_CB(skb)->seq, s->sk.mss_cache);
}

static const struct {
	const char *name;
	int (*fn)(struct side *s, const struct pick *p);
	int weight;
} steps[] = {
	{ "send", do_send, 10 },
	{ "zerocopy", do_zerocopy, 6 },
	{ "xmit", do_xmit, 10 },
	{ "ack", do_ack, 24 },
	{ "sack", do_sack, 14 },
	{ "lost", do_lost, 5 },
	{ "window", do_window, 4 },
	{ "eor", do_eor, 2 },
	{ "fin", do_fin, 1 },
	{ "complete", do_complete, 14 },
	{ "retransmit", do_retransmit, 14 },
	{ "fragment", do_fragment, 6 },
	{ "tsq", do_tsq, 3 },
};

static size_t pick_step(void)
{
	int total = 0, at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	at = rng_below(&rng, total);
	for (i = 0; at >= steps[i].weight; i++)
		at -= steps[i].weight;
	return i;
}

/*
 * 3.4 holds a retransmission back by how much is queued and below TCP, and lazy keeps more queued:
 * not a step to compare.
 */
static bool limited_apart(void)
{
	bool limited[TCP_TRIM_NR];

	for (int i = 0; i < TCP_TRIM_NR; i++) {
		const struct sock *sk = &side[i].sk;

		limited[i] = sk->sk_wmem_alloc.refs.counter >
			     min(sk->sk_wmem_queued + (sk->sk_wmem_queued >> 2), sk->sk_sndbuf);
	}
	return era == ERA_3_4 && limited[0] != limited[1];
}

#ifdef SKB_TRACED
static u64 fail_in, failed_in_pairs;

/*
 * Pairs and pages are made at the same places on both sides. Heads are not: eager needs a private
 * one for an ACK.
 */
static bool fail_pair(enum skb_site site)
{
	if (site == SKB_SITE_SHELL || site == SKB_SITE_HEAD || --fail_in)
		return false;
	failed_in_pairs++;
	return true;
}
#endif

static int run_step(struct side *s, size_t i, const struct pick *p, bool fail)
{
	int ret;

#ifdef SKB_TRACED
	fail_in = 1 + (p->a ^ p->b) % 5;
	model_fail = fail ? fail_pair : NULL;
#endif
	(void)fail;
	ret = steps[i].fn(s, p);
#ifdef SKB_TRACED
	model_fail = NULL;
#endif
	return ret;
}

static void run_pair(bool fail)
{
	struct side *a = &side[TRIM_EAGER], *b = &side[TRIM_OFFSET_ACK];
	unsigned int order = rng_below(&rng, 2) ? SKB_FRAG_PAGE_ORDER : 0;

#ifdef SKB_TRACED
	counts_start();
#endif
	open_side(a, TRIM_EAGER, order);
	open_side(b, TRIM_OFFSET_ACK, order);
	for (step = 0; step < STEPS; step++) {
		struct pick p = { rng_next(&rng), rng_next(&rng) };
		size_t i = pick_step();
		int ra, rb;

		step_name = steps[i].name;
		/*
		 * Lazy holds its charge longer: the send buffer must not be what tells them apart.
		 */
		if ((steps[i].fn == do_send || steps[i].fn == do_zerocopy) &&
		    b->sk.sk_wmem_queued > 2 << 20)
			continue;
		if (steps[i].fn == do_retransmit && limited_apart())
			continue;
		ra = run_step(a, i, &p, fail);
		rb = run_step(b, i, &p, fail);
		if (ra != rb)
			broken("eager returned %d, lazy %d", ra, rb);
		check_side(a);
		check_side(b);
		compare_wires(a, b);
		compare_counters(a, b);
		compare_queues(&a->sk.tcp_rtx_queue, &b->sk.tcp_rtx_queue);
		compare_queues(&a->sk.sk_write_queue, &b->sk.sk_write_queue);
	}
	step_name = "the end";
	close_side(a);
	close_side(b);
	if (model_pages_in_use() != users_pages)
		broken("%zu pages are left", model_pages_in_use() - users_pages);
}

#ifdef SKB_TRACED
static struct rng fail_rng;
static u64 failed;

static bool fail_some(enum skb_site site)
{
	(void)site;
	if (rng_below(&fail_rng, 12))
		return false;
	failed++;
	return true;
}

static void run_with_failures(enum tcp_trim trim)
{
	struct side *s = &side[trim];

	open_side(s, trim, rng_below(&rng, 2) ? SKB_FRAG_PAGE_ORDER : 0);
	counts_start();
	model_fail = fail_some;
	for (step = 0; step < STEPS; step++) {
		struct pick p = { rng_next(&rng), rng_next(&rng) };
		size_t i = pick_step();

		step_name = steps[i].name;
		steps[i].fn(s, &p);
		check_side(s);
		check_wire(s);
	}
	step_name = "the end";
	model_fail = NULL;
	close_side(s);
	if (counted.event[SKB_EV_OBJ_ALLOC] != counted.event[SKB_EV_OBJ_FREE])
		broken("%llu objects made, %llu freed",
		       (unsigned long long)counted.event[SKB_EV_OBJ_ALLOC],
		       (unsigned long long)counted.event[SKB_EV_OBJ_FREE]);
	if (model_pages_in_use() != users_pages)
		broken("%zu pages are left", model_pages_in_use() - users_pages);
}
#endif

/* A script that never joins or cuts proves nothing about it. */
static void check_reached(void)
{
	step_name = "what was reached";
	for (era = ERA_3_4; era < SKB_ERA_NR; era++) {
		printf("era %s: %llu segments SACKed, %llu sk_buffs lost; joined by shifting %llu, "
		       "by collapsing %llu; cut for the window %llu; %llu ended; %llu times "
		       "zerocopy alone, %llu times copied bytes behind it\n",
		       skb_era_name(era), (unsigned long long)reached[era].sacked,
		       (unsigned long long)reached[era].lost,
		       (unsigned long long)reached[era].shifted,
		       (unsigned long long)reached[era].collapsed,
		       (unsigned long long)reached[era].split,
		       (unsigned long long)reached[era].fins, (unsigned long long)reached[era].pure,
		       (unsigned long long)reached[era].mixed);
		if (!reached[era].sacked || !reached[era].lost || !reached[era].shifted ||
		    !reached[era].collapsed || !reached[era].split || !reached[era].fins)
			broken("something never happened");
		if (era >= ERA_6_1 && (!reached[era].pure || !reached[era].mixed))
			broken("nothing was sent from the user's pages");
	}
}

static void make_user(void)
{
	const int nr = STREAM / PAGE_SIZE;

	for (int i = 0; i < nr; i++) {
		if (i < nr / 2 || i % 8 == 0)
			user_page[i] = alloc_pages(i < nr / 2 ? 0 : 3);
		else
			user_page[i] = user_page[i - 1] + 1;
		user_page[i + nr] = user_page[i];
		memcpy(page_address(user_page[i]), stream + i * PAGE_SIZE, PAGE_SIZE);
	}
	users_pages = model_pages_in_use();
}

static void check_user(void)
{
	for (int i = 0; i < STREAM / (int)PAGE_SIZE; i++)
		if (page_count(user_page[i]) != 1)
			broken("a user's page has %d references", page_count(user_page[i]));
}

int main(void)
{
	u64 scripts = model_ops(300000) / STEPS / SKB_ERA_NR;

	rng.state = model_seed("tcp_fuzz", 20120402);
	model_start(MODEL_ALLOCATOR, 16384);
	stream = malloc(STREAM);
	for (u32 i = 0; i < STREAM; i++)
		stream[i] = rng_next(&rng);
	make_user();
	for (era = ERA_3_4; era < SKB_ERA_NR; era++)
		for (script = 0; script < scripts; script++)
			run_pair(script % 2);
	printf("%llu scripts of %d steps in each era: eager and lazy end alike\n",
	       (unsigned long long)scripts, STEPS);
	check_user();
	check_reached();
#ifdef SKB_TRACED
	printf("half of them with %llu pairs and pages that could not be had\n",
	       (unsigned long long)failed_in_pairs);
	if (!failed_in_pairs)
		broken("no pair and no page ever failed");
	fail_rng.state = ~rng.state;
	for (era = ERA_3_4; era < SKB_ERA_NR; era++)
		for (script = 0; script < scripts; script++)
			run_with_failures(script % TCP_TRIM_NR);
	if (!failed)
		broken("no allocation ever failed");
	printf("and as many with %llu allocations that failed\n", (unsigned long long)failed);
#endif
	free(stream);
	return 0;
}
