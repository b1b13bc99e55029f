// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The socket of a program over the library: what lies below TCP is in a ring of its own. */
#include "env_lib.h"
#include "prog.h"
#include "sock.h"

#include <errno.h>

#define SENT_MAX (1u << 30) /* the peer's window */

static struct {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	bool open;
	struct {
		struct ubuf_info ubuf; /* first: its address is the whole's */
		unsigned int told;
	} uarg[ORACLE_UARGS];
} the;

static void uarg_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	(void)skb;
	for (int i = 0; i < ORACLE_UARGS; i++)
		if (uarg == &the.uarg[i].ubuf)
			the.uarg[i].told += success ? 1 : 1000;
	BUG_ON(refcount_dec_and_test(&uarg->refcnt, SKB_C_UARG));
}

bool oracle_sock_open(void)
{
	memset(&the, 0, sizeof(the));
	if (tx_ring_init(&the.ring, ORACLE_RING))
		return false;
	tcp_sock_init(&the.sk, &the.prot, &the.ring, SKB_FRAG_PAGE_ORDER);
	for (int i = 0; i < ORACLE_UARGS; i++) {
		the.uarg[i].ubuf.complete = uarg_complete;
		the.uarg[i].ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
		refcount_set(&the.uarg[i].ubuf.refcnt, 1, SKB_C_UARG);
	}
	the.open = true;
	return true;
}

void oracle_sock_close(void)
{
	if (!the.open)
		return;
	the.open = false;
	tx_ring_complete(o_era, &the.ring, ORACLE_RING);
	tcp_sock_destroy(o_era, &the.sk);
	tx_ring_exit(&the.ring);
}

void oracle_sock_state(struct oracle_sock_state *state)
{
	const struct sock *sk = &the.sk;

	*state = (struct oracle_sock_state){
		.wmem_queued = sk->sk_wmem_queued,
		.forward_alloc = sk->sk_forward_alloc,
		.wmem_alloc = sk->sk_wmem_alloc.refs.counter,
		.snd_una = sk->snd_una,
		.snd_nxt = sk->snd_nxt,
		.write_seq = sk->write_seq,
		.packets_out = sk->packets_out,
		.retrans_out = sk->retrans_out,
		.sacked_out = sk->sacked_out,
		.lost_out = sk->lost_out,
		.delivered = sk->delivered,
		.frag = sk->sk_frag.page,
		.frag_offset = sk->sk_frag.offset,
	};
}

static struct sk_buff_head *queue_of(enum oracle_queue queue)
{
	return queue == ORACLE_RTX ? &the.sk.tcp_rtx_queue : &the.sk.sk_write_queue;
}

struct sk_buff *oracle_sock_first(enum oracle_queue queue)
{
	return skb_peek(queue_of(queue));
}

struct sk_buff *oracle_sock_next(enum oracle_queue queue, struct sk_buff *skb)
{
	return skb_queue_is_end(queue_of(queue), skb->next) ? NULL : skb->next;
}

unsigned int oracle_sock_below(void)
{
	return tx_ring_count(&the.ring);
}

const struct sk_buff *oracle_sock_packet(unsigned int nr)
{
	return the.ring.slot[(the.ring.head + nr) & the.ring.mask];
}

/*
 * The model knows neither Nagle's rule nor MSG_MORE. What they keep back is the last sk_buff's bytes
 * behind its last whole segment: a window that ends there does the same.
 */
void oracle_sock_push(bool whole)
{
	const struct sk_buff *tail = skb_peek_tail(&the.sk.sk_write_queue);

	if (whole && tail)
		the.sk.snd_wnd = the.sk.write_seq - tail->len % the.sk.mss_cache - the.sk.snd_una;
	tcp_write_xmit(o_era, TRIM_EAGER, &the.sk);
	the.sk.snd_wnd = SENT_MAX;
}

static int sent(int copied, unsigned int flags)
{
	struct sk_buff *tail = skb_peek_tail(&the.sk.sk_write_queue);

	if (copied <= 0)
		return copied;
	if (flags & ORACLE_EOR)
		TCP_SKB_CB(tail)->eor = 1;
	if (!(flags & ORACLE_MORE))
		tcp_mark_push(tail);
	oracle_sock_push(flags & ORACLE_MORE);
	return copied;
}

int oracle_sock_send(const void *bytes, unsigned int len, unsigned int flags)
{
	return sent(tcp_sendmsg(o_era, &the.sk, bytes, len), flags);
}

int oracle_sock_zerocopy(struct page *page, unsigned int offset, unsigned int len,
			 unsigned int uarg, unsigned int flags)
{
	struct page *pages[1 << ORACLE_MAX_ORDER];
	struct skb_user_pages from = { .page = pages, .offset = offset };
	struct ubuf_info *ubuf = &the.uarg[uarg].ubuf;

	int copied;

	for (unsigned int i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = page + i;
	/* 6.1's call holds the buffer itself until it returns; later ones leave that to the caller. */
	if (o_era < ERA_6_12)
		net_zcopy_get(ubuf);
	copied = sent(tcp_sendmsg_zerocopy(o_era, &the.sk, &from, len, ubuf), flags);
	if (o_era < ERA_6_12)
		net_zcopy_put(ubuf);
	return copied;
}

int oracle_sock_uarg(unsigned int uarg, unsigned int *told)
{
	*told = the.uarg[uarg].told;
	return the.uarg[uarg].ubuf.refcnt.refs.counter;
}

int oracle_sock_uarg_of(const struct sk_buff *skb)
{
	for (int i = 0; i < ORACLE_UARGS; i++)
		if (skb_zcopy(skb) == &the.uarg[i].ubuf)
			return i;
	return -1;
}

void oracle_sock_complete(unsigned int nr)
{
	tx_ring_complete(o_era, &the.ring, nr);
}

/* The kernel looks whether the first of what waits may go, and counts its segments for that. */
static void look_at_head(void)
{
	struct sk_buff *head = skb_peek(&the.sk.sk_write_queue);

	if (head && !tcp_skb_pcount(o_era, head))
		tcp_set_skb_tso_segs(o_era, TRIM_EAGER, head, the.sk.mss_cache);
}

void oracle_sock_ack(unsigned int ack)
{
	tcp_ack(o_era, TRIM_EAGER, &the.sk, ack);
	look_at_head();
}

void oracle_sock_sack(const struct oracle_block *blocks, unsigned int nr)
{
	(void)nr;
	tcp_sack(o_era, TRIM_EAGER, &the.sk, blocks[0].from, blocks[0].to);
	look_at_head();
}

void oracle_sock_lost(struct sk_buff *skb)
{
	tcp_mark_skb_lost(o_era, &the.sk, skb);
}

int oracle_sock_retransmit(struct sk_buff *skb, unsigned int segs, unsigned int window)
{
	int err;

	if (window)
		the.sk.snd_wnd = window;
	err = tcp_retransmit_skb(o_era, TRIM_EAGER, &the.sk, skb, segs);
	the.sk.snd_wnd = SENT_MAX;
	the.sk.sk_tsq_flags = 0; /* nobody waits for a completion */
	return err > 0 ? 0 : err;
}
