/* SPDX-License-Identifier: MIT */
/*
 * Cutting an sk_buff of a queue in two: tcp_fragment(), and tso_fragment() for what was never sent.
 *
 * Kernel: net/ipv4/tcp_output.c, 3.4, 6.1 and 6.12. The rest gets a pair and a head of its own and
 * is charged for them; the charge of the bytes is divided, none is lost or made (A3). What differs:
 *
 *                   tcp_fragment                          tso_fragment
 *   a live clone    the head becomes private first        there is none
 *   tags, counts    both halves keep the tags; a cut      none yet
 *                   off the MSS makes a segment more
 *   too much queued refused in the middle of the          never
 *                   retransmit queue (since 2019; 6.x)
 *
 * MPTCP's map is shared by both halves and frozen, or split: skb/mptcp_split.h. Left out: the
 * socket's allocation flags, timestamps that applications asked for.
 */
#include "skb/mptcp_split.h"
#include "tcp/tcp.h"

#include <errno.h>

/* 6.x: what the send buffer may be overrun by, before cuts have to stop. */
#define TCP_FRAGMENT_SLACK (2 * SKB_TRUESIZE(GSO_LEGACY_MAX))

/* An empty sk_buff with room for LINEAR bytes, charged to SK, to follow SKB. NULL: no memory. */
static __always_inline struct sk_buff *tcp_fragment_alloc(struct sock *sk, u32 linear,
							  const enum skb_era era)
{
	struct sk_buff *buff = alloc_skb_fclone(era, linear + MAX_TCP_HEADER, sk->node);

	if (unlikely(!buff))
		return NULL;
	skb_reserve(buff, MAX_TCP_HEADER);
	buff->headers.ip_summed =
		CHECKSUM_PARTIAL; /* whatever it was: the bytes are summed on sending */
	skb_anchor_init(era, buff);

	sk_wmem_schedule(era, sk, buff->truesize); /* forced: a cut must not fail for the budget */
	sk_wmem_queued_add(sk, buff->truesize);
	sk_mem_charge(sk, buff->truesize);
	return buff;
}

/* BUFF takes what comes after LEN bytes of SKB: bytes, charge, sequence numbers, flags. */
static __always_inline void tcp_fragment_divide(struct sk_buff *skb, struct sk_buff *buff, u32 len,
						u32 linear, const enum tcp_trim trim)
{
	struct tcp_skb_cb *a = TCP_SKB_CB(skb), *b = TCP_SKB_CB(buff);
	u32 nlen = skb->len - len - linear;

	buff->truesize += nlen;
	skb->truesize -= nlen;

	b->seq = a->seq + len;
	b->end_seq = a->end_seq;
	a->end_seq = b->seq;
	b->tcp_flags = a->tcp_flags;
	a->tcp_flags &= ~(TCPHDR_FIN | TCPHDR_PSH);
	b->sacked = a->sacked;
	b->eor = a->eor;
	a->eor = 0;
	b->tx = a->tx;

	if (trim == TRIM_OFFSET_ACK) {
		/* Each half keeps what was noted of its own bytes. */
		u32 noted = a->offset_ack;

		a->offset_ack = min(noted, len);
		b->offset_ack = noted - a->offset_ack;
	}

	skb_split(skb, buff, len);
	buff->tstamp = skb->tstamp;
	if (trim == TRIM_EAGER_SPLIT_POSTED)
		mptcp_skb_split(skb, buff);
}

/*
 * BUFF, empty, gets its map before anything is divided. 0; or BUFF is gone, and SKB is as before:
 * -ENOMEM, -EINVAL for a map that does not cover what is to be cut.
 */
static __always_inline int tcp_fragment_map(struct sock *sk, struct sk_buff *skb,
					    struct sk_buff *buff, u32 len, const enum skb_era era,
					    const enum tcp_trim trim)
{
	int err = 0;

	if (era < ERA_6_1 || trim == TRIM_EAGER_SPLIT_POSTED)
		return 0;
	if (trim == TRIM_EAGER_SPLIT_FIXED)
		err = mptcp_skb_split_fixed(skb, buff, TCP_SKB_CB(skb)->seq + len - sk->mptcp.isn,
					    skb->len - len);
	else
		mptcp_skb_ext_copy(buff, skb);
	if (unlikely(err))
		tcp_wmem_free_skb(era, sk, buff);
	return err;
}

static __always_inline bool tcp_fragment_refused(const struct sock *sk,
						 const struct sk_buff_head *queue,
						 const struct sk_buff *skb, const enum skb_era era)
{
	if (era < ERA_6_1)
		return false;
	return unlikely((sk->sk_wmem_queued >> 1) > sk->sk_sndbuf + (int)TCP_FRAGMENT_SLACK) &&
	       queue == &sk->tcp_rtx_queue && skb != skb_peek(queue) && skb != skb_peek_tail(queue);
}

static __always_inline int do_tcp_fragment(struct sock *sk, struct sk_buff_head *queue,
					   struct sk_buff *skb, u32 len, unsigned int mss,
					   const enum skb_era era, const enum tcp_trim trim)
{
	u32 linear = skb_headlen(skb) > len ? skb_headlen(skb) - len : 0;
	int old = tcp_skb_pcount(era, skb), err;
	struct sk_buff *buff;

	if (len > skb->len)
		return -EINVAL;
	BUG_ON(shinfo_read(skb, frag_list) != NULL);
	if (tcp_fragment_refused(sk, queue, skb, era))
		return -ENOMEM;

	err = era < ERA_6_1 ? (skb_is_nonlinear(skb) ? skb_unclone(era, skb) : 0)
			    : skb_unclone_keeptruesize(era, skb);
	if (unlikely(err))
		return -ENOMEM;
	buff = tcp_fragment_alloc(sk, linear, era);
	if (unlikely(!buff))
		return -ENOMEM;
	err = tcp_fragment_map(sk, skb, buff, len, era, trim);
	if (unlikely(err))
		return err;
	tcp_fragment_divide(skb, buff, len, linear, trim);

	tcp_set_skb_tso_segs(era, trim, skb, mss);
	tcp_set_skb_tso_segs(era, trim, buff, mss);
	if (!tcp_skb_unacked(trim, skb))
		tcp_skb_pcount_clear(era, skb); /* all of it was counted when it was acknowledged */
	if (!before(sk->snd_nxt, TCP_SKB_CB(buff)->end_seq))
		tcp_adjust_pcount(sk, skb,
				  old - tcp_skb_pcount(era, skb) - tcp_skb_pcount(era, buff));
	__skb_header_release(buff);
	__skb_queue_after(queue, skb, buff);
	return 0;
}

static __always_inline int do_tso_fragment(struct sock *sk, struct sk_buff *skb, u32 len,
					   unsigned int mss, const enum skb_era era,
					   const enum tcp_trim trim)
{
	struct sk_buff *buff;
	int err;

	if (len > skb->len)
		return -EINVAL;
	if (skb_headlen(skb)) {
		BUG_ON(era >= ERA_6_12);
		return tcp_fragment(era, trim, sk, &sk->sk_write_queue, skb, len, mss);
	}
	buff = tcp_fragment_alloc(sk, 0, era);
	if (unlikely(!buff))
		return -ENOMEM;
	err = tcp_fragment_map(sk, skb, buff, len, era, trim);
	if (unlikely(err))
		return err;
	tcp_fragment_divide(skb, buff, len, 0, trim);
	tcp_set_skb_tso_segs(era, trim, skb, mss);
	tcp_set_skb_tso_segs(era, trim, buff, mss);
	__skb_header_release(buff);
	__skb_queue_after(&sk->sk_write_queue, skb, buff);
	return 0;
}

#define INSTANTIATE(suffix, era, trim)                                                             \
	int tcp_fragment_##suffix(struct sock *sk, struct sk_buff_head *queue,                     \
				  struct sk_buff *skb, u32 len, unsigned int mss)                  \
	{                                                                                          \
		return do_tcp_fragment(sk, queue, skb, len, mss, era, trim);                       \
	}                                                                                          \
	int tso_fragment_##suffix(struct sock *sk, struct sk_buff *skb, u32 len, unsigned int mss) \
	{                                                                                          \
		return do_tso_fragment(sk, skb, len, mss, era, trim);                              \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)
