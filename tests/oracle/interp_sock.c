// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The interpreter's operations on a socket: send, push, complete, ACK, SACK, lost, retransmit.
 *
 * The socket is made by the first of them. What its queues hold is looked up by number, so that an
 * operation means something in every state; pages that TCP took for itself get their names when
 * they are seen first, in the order of the queues.
 */
#include "interp_in.h"
#include "sock.h"

#define BLOCKS_OF_SEND	4 /* of 32 KB that one send may need, the one in use included */
#define MAX_QUEUED	400000 /* bytes: states stay short */
#define MAX_QUEUED_SKBS 48
#define MSS		1448

static bool is_open; /* the program has used the socket */
static bool zerocopied; /* and sent a user's pages as they are */

/*
 * --- the state
 * ----------------------------------------------------------------------------------------
 */

static void out_queued(const struct sk_buff *skb)
{
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

	out_skb(skb, 0);
	out_number("tags", -1, tcb->sacked);
	out_number("flags", -1, tcb->tcp_flags);
	out_number("eor", -1, tcb->eor);
	out_number("uarg", -1, oracle_sock_uarg_of(skb));
	out_number("pure", -1, skb_zcopy_pure(skb));
}

/* Of a packet only what does not depend on the headers that the two sides put in front. */
static void out_packet(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);

	out_number("data_len", -1, skb->data_len);
	out_number("truesize", -1, skb->truesize);
	out_number("end", -1, skb->end);
	out_number("users", -1, o_users(skb));
	out_number("dataref", -1, o_dataref(skb) & SKB_DATAREF_MASK);
	out_number("cloned", -1, skb->cloned);
	out_number("nohdr", -1, skb->nohdr);
	out_number("fclone", -1, skb->fclone);
	out_number("frags", -1, shinfo->nr_frags);
	out_number("gso_segs", -1, shinfo->gso_segs);
	out_number("gso_size", -1, shinfo->gso_size);
}

static void note_pages(void)
{
	struct oracle_sock_state state;
	struct sk_buff *skb;
	int queue, i;

	for (queue = ORACLE_RTX; queue <= ORACLE_WRITE; queue++)
		for (skb = oracle_sock_first(queue); skb; skb = oracle_sock_next(queue, skb))
			for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
				note_page(o_frag_page(&skb_shinfo(skb)->frags[i]));
	oracle_sock_state(&state);
	if (state.frag)
		note_page(state.frag);
}

void out_sock(void)
{
	struct oracle_sock_state state;
	struct sk_buff *skb;
	unsigned int i, told;

	if (!is_open)
		return;
	for (skb = oracle_sock_first(ORACLE_RTX), i = 0; skb;
	     skb = oracle_sock_next(ORACLE_RTX, skb), i++) {
		out_word("sent", i);
		out_queued(skb);
	}
	for (skb = oracle_sock_first(ORACLE_WRITE), i = 0; skb;
	     skb = oracle_sock_next(ORACLE_WRITE, skb), i++) {
		out_word("waits", i);
		out_queued(skb);
	}
	for (i = 0; i < oracle_sock_below(); i++) {
		out_word("packet", i);
		out_packet(oracle_sock_packet(i));
	}
	oracle_sock_state(&state);
	out_word("tcp", -1);
	out_number("wmem_queued", -1, state.wmem_queued);
	/* A user's pages beside copied bytes: the kernel makes sure of the bytes and charges pages. */
	out_number("forward_alloc", -1,
		   zerocopied ? state.forward_alloc & (int)(PAGE_SIZE - 1) : state.forward_alloc);
	out_number("wmem_alloc", -1, state.wmem_alloc);
	out_number("snd_una", -1, state.snd_una);
	out_number("snd_nxt", -1, state.snd_nxt);
	out_number("write_seq", -1, state.write_seq);
	out_number("packets_out", -1, state.packets_out);
	out_number("retrans_out", -1, state.retrans_out);
	out_number("sacked_out", -1, state.sacked_out);
	out_number("lost_out", -1, state.lost_out);
	out_number("delivered", -1, state.delivered);
	out_number("frag_offset", -1, state.frag ? state.frag_offset : 0);
	for (i = 0; i < ORACLE_UARGS; i++) {
		out_number("uarg", i, oracle_sock_uarg(i, &told));
		out_number("told", i, told);
	}
}

/*
 * --- operations
 * ---------------------------------------------------------------------------------------
 */

/* What a user writes: bytes of a long pattern, from another place each time. */
static const char *payload(void)
{
	static unsigned char bytes[ORACLE_MAX_SEND + 4096];
	unsigned int i;

	if (!bytes[1])
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = i * 167 + (i >> 8) * 89 + 1;
	return (const char *)bytes + next_fill() % 4096;
}

static unsigned int queued(unsigned int *skbs)
{
	struct oracle_sock_state state;
	struct sk_buff *skb;
	int queue;

	*skbs = 0;
	for (queue = ORACLE_RTX; queue <= ORACLE_WRITE; queue++)
		for (skb = oracle_sock_first(queue); skb; skb = oracle_sock_next(queue, skb))
			++*skbs;
	oracle_sock_state(&state);
	return state.write_seq - state.snd_una;
}

static bool may_send(void)
{
	unsigned int skbs;

	return free_blocks() >= BLOCKS_OF_SEND && queued(&skbs) < MAX_QUEUED &&
	       skbs < MAX_QUEUED_SKBS;
}

static bool do_send(const struct oracle_op *op, int *ret)
{
	unsigned int len = wrap(op->n[0] - 1, ORACLE_MAX_SEND - 1) + 1;

	if (!may_send())
		return false;
	*ret = oracle_sock_send(payload(), len, wrap(op->n[1], ORACLE_MORE | ORACLE_EOR));
	return true;
}

static bool do_zerocopy(const struct oracle_op *op, int block, int *ret)
{
	unsigned int how = wrap(op->n[2], ORACLE_UARGS * 4 - 1);
	unsigned long bytes;
	struct page *page = block_pages(block, &bytes);
	unsigned int offset = wrap(op->n[0], bytes - 1);
	unsigned int len = wrap(op->n[1] - 1, bytes - offset - 1) + 1;

	if (!may_send())
		return false;
	zerocopied = true;
	*ret = oracle_sock_zerocopy(page, offset, len, how % ORACLE_UARGS, how / ORACLE_UARGS);
	return true;
}

/* The NRth of the retransmit queue; NULL if that is empty. */
static struct sk_buff *sent(unsigned int nr)
{
	struct sk_buff *skb;
	unsigned int count = 0;

	for (skb = oracle_sock_first(ORACLE_RTX); skb; skb = oracle_sock_next(ORACLE_RTX, skb))
		count++;
	if (!count)
		return NULL;
	skb = oracle_sock_first(ORACLE_RTX);
	for (nr %= count; nr; nr--)
		skb = oracle_sock_next(ORACLE_RTX, skb);
	return skb;
}

/* Only what is new: an ACK that says nothing counts as a sign of loss, which is not the model's. */
static bool do_ack(struct sk_buff *skb, unsigned int n)
{
	struct oracle_sock_state state;
	unsigned int ack = TCP_SKB_CB(skb)->seq + position(skb, n);

	oracle_sock_state(&state);
	if ((int)(ack - state.snd_una) <= 0)
		return false;
	oracle_sock_ack(ack);
	return true;
}

/*
 * What the peer has beyond the ACK, in order, when FROM to TO comes to it: as blocks, since a
 * receiver joins what touches. How many there are, ORACLE_SACKS + 1 for too many; *FRESH: the one
 * that FROM to TO is in.
 */
static unsigned int sacked(struct oracle_block *blocks, unsigned int from, unsigned int to,
			   unsigned int *fresh)
{
	struct sk_buff *skb = oracle_sock_first(ORACLE_RTX);
	unsigned int nr = 0;

	for (; skb; skb = oracle_sock_next(ORACLE_RTX, skb)) {
		const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
		unsigned int begin = tcb->seq, end = tcb->end_seq;

		if (!(tcb->sacked & TCPCB_SACKED_ACKED)) {
			begin = max(begin, from);
			end = min(end, to);
			if (begin >= end)
				continue;
		}
		if (nr && blocks[nr - 1].to == begin) {
			blocks[nr - 1].to = end;
		} else if (nr == ORACLE_SACKS) {
			return nr + 1;
		} else {
			blocks[nr++] = (struct oracle_block){ begin, end };
		}
		if (begin <= from && from < end)
			*fresh = nr - 1;
	}
	return nr;
}

/* The end of the segment of a sent sk_buff that holds the byte before SEQ. */
static unsigned int segment_end(unsigned int seq, unsigned int mss)
{
	struct sk_buff *skb = oracle_sock_first(ORACLE_RTX);

	for (; skb; skb = oracle_sock_next(ORACLE_RTX, skb)) {
		const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

		if (seq <= tcb->end_seq)
			return min(tcb->end_seq, tcb->seq + (seq - tcb->seq + mss - 1) / mss * mss);
	}
	return seq;
}

/*
 * A receiver has whole segments, and tells all that it has: what the kernel saw in the ACK before, it
 * does not look at again.
 */
static bool do_sack(struct sk_buff *skb, unsigned int n, unsigned int bytes)
{
	struct oracle_block blocks[ORACLE_SACKS], first;
	struct oracle_sock_state state;
	unsigned int from, to, nr, fresh = 0, at = position(skb, n);

	oracle_sock_state(&state);
	from = TCP_SKB_CB(skb)->seq + min(at, skb->len - 1) / MSS * MSS;
	bytes = wrap(bytes - 1, state.snd_nxt - from - 1) + 1;
	to = segment_end(from + bytes, MSS);
	nr = sacked(blocks, from, to, &fresh);
	if (nr > ORACLE_SACKS || blocks[0].from <= state.snd_una)
		return false;
	first = blocks[fresh];
	blocks[fresh] = blocks[0];
	blocks[0] = first;
	oracle_sock_sack(blocks, nr);
	return true;
}

/* TCP asks neither for what the peer has nor for what is out again already. */
static bool do_retransmit(struct sk_buff *skb, unsigned int segs, unsigned int window, int *ret)
{
	if (TCP_SKB_CB(skb)->sacked & (TCPCB_SACKED_ACKED | TCPCB_SACKED_RETRANS))
		return false;
	*ret = oracle_sock_retransmit(skb, wrap(segs - 1, 63) + 1, wrap(window, MAX_QUEUED));
	return true;
}

static bool execute(const struct oracle_op *op, int block, int *ret)
{
	struct sk_buff *skb;

	switch (op->op) {
	case O_sock_send:
		return do_send(op, ret);
	case O_sock_zerocopy:
		return do_zerocopy(op, block, ret);
	case O_sock_push:
		oracle_sock_push(op->n[0] & 1);
		return true;
	case O_sock_complete:
		if (!oracle_sock_below())
			return false;
		oracle_sock_complete(wrap(op->n[0] - 1, oracle_sock_below() - 1) + 1);
		return true;
	}
	skb = sent(op->n[0]);
	if (!skb)
		return false;
	switch (op->op) {
	case O_sock_ack:
		return do_ack(skb, op->n[1]);
	case O_sock_sack:
		return do_sack(skb, op->n[1], op->n[2]);
	case O_sock_lost:
		oracle_sock_lost(skb);
		return true;
	case O_sock_retransmit:
		return do_retransmit(skb, op->n[1], op->n[2], ret);
	}
	return false;
}

bool sock_execute(const struct oracle_op *op, int block, int *ret)
{
	bool done;

	if (!is_open && !oracle_sock_open()) {
		*ret = -1;
		return true;
	}
	is_open = true;
	done = execute(op, block, ret);
	note_pages();
	return done;
}

void sock_finish(void)
{
	if (is_open)
		oracle_sock_close();
	is_open = zerocopied = false;
}
