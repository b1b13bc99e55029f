/* SPDX-License-Identifier: MIT */
/*
 * tcp_sack(): what a SACK block does to the retransmit queue.
 *
 * Kernel: tcp_sacktag_walk(), tcp_match_skb_to_sack(), tcp_sacktag_one(), tcp_shift_skb_data() and
 * tcp_shifted_skb() in net/ipv4/tcp_input.c, 6.12; 3.4 works alike, with its counts in the shared
 * info. Segments are the grain: a block that covers an sk_buff in part makes it two, cut where a
 * segment ends, and what follows an sk_buff that is SACKed already moves into it, so that a hole
 * in the middle of 64 KB costs few sk_buffs. Both halves of that are where cloned heads become
 * private besides trimming: a cut unclones one, a shift two.
 *
 * Left out: D-SACKs, reordering and loss detection, hints into the queue, rate samples. The kernel
 * keeps the last blocks, so that it looks at what is new only; here an sk_buff that is SACKed
 * already is passed over, neither cut nor shifted. It finds the first sk_buff in a tree; here the
 * queue is walked.
 */
#include "tcp/tcp.h"

#include <errno.h>

/*
 * --- tags
 * -------------------------------------------------------------------------------------------------
 */

/*
 * Counts what a SACK changes for PCOUNT segments that are tagged SACKED and end at END_SEQ; returns
 * their new tags. *NEWLY: segments that were not SACKed before.
 */
static __always_inline u8 tcp_sacktag_one(struct sock *sk, u8 sacked, u32 end_seq, int pcount,
					  int *newly)
{
	if (!after(end_seq, sk->snd_una) || sacked & TCPCB_SACKED_ACKED)
		return sacked; /* about to leave the queue, or counted before */
	if (sacked & TCPCB_LOST) {
		/*
		 * Sent again and lost no longer: which of the two arrived does not matter. Without
		 * the LOST tag it is believed to be still on its way.
		 */
		if (sacked & TCPCB_SACKED_RETRANS)
			sk->retrans_out -= pcount;
		sacked &= ~(TCPCB_LOST | TCPCB_SACKED_RETRANS);
		sk->lost_out -= pcount;
	}
	sk->sacked_out += pcount;
	sk->delivered += pcount;
	*newly += pcount;
	return sacked | TCPCB_SACKED_ACKED;
}

static __always_inline void do_tcp_mark_skb_lost(struct sock *sk, struct sk_buff *skb,
						 const enum skb_era era)
{
	struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	int pcount = tcp_skb_pcount(era, skb);

	if (tcb->sacked & TCPCB_SACKED_ACKED)
		return;
	if (tcb->sacked & TCPCB_LOST) {
		if (tcb->sacked & TCPCB_SACKED_RETRANS) {
			tcb->sacked &= ~TCPCB_SACKED_RETRANS;
			sk->retrans_out -= pcount;
		}
		return;
	}
	tcb->sacked |= TCPCB_LOST;
	sk->lost_out += pcount;
}

/*
 * Trims what a lazy ACK noted of SKB, which is to be cut or to take part in a shift. 0, or -ENOMEM
 * and nothing has changed.
 */
static __always_inline int tcp_trim_noted(struct sock *sk, struct sk_buff *skb,
					  const enum skb_era era, const enum tcp_trim trim)
{
	if (trim != TRIM_OFFSET_ACK || likely(!TCP_SKB_CB(skb)->offset_ack))
		return 0;
	return tcp_trim_head(era, trim, sk, skb, TCP_SKB_CB(skb)->offset_ack);
}

/*
 * --- cut
 * ------------------------------------------------------------------------------------------------
 */

/*
 * Does the block cover SKB? 1 or 0; if it covers a part, SKB is cut there (rounded so that the tag
 * covers whole segments) and keeps what is in front. Negative: no memory, or less than a segment.
 */
static __always_inline int tcp_match_skb_to_sack(struct sock *sk, struct sk_buff *skb, u32 start,
						 u32 end, const enum skb_era era,
						 const enum tcp_trim trim)
{
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	bool in_front = !after(start, tcb->seq); /* the block covers the first byte */
	u32 len, mss;
	int err;

	if (in_front && !before(end, tcb->end_seq))
		return 1;
	if (tcp_skb_pcount(era, skb) <= 1)
		return 0;
	mss = tcp_skb_mss(era, skb);
	if (in_front) {
		len = end - tcb->seq;
		if (len < mss)
			return -EINVAL;
		len -= len % mss;
	} else {
		len = DIV_ROUND_UP(start - tcb->seq, mss) * mss;
		if (len >= skb->len)
			return 0;
	}
	err = tcp_fragment(era, trim, sk, &sk->tcp_rtx_queue, skb, len, mss);
	return err ? err : in_front;
}

/*
 * --- shift
 * ----------------------------------------------------------------------------------------------
 */

/* All bytes of SKB lie in frags, and there are some. */
static __always_inline bool skb_can_shift(const struct sk_buff *skb)
{
	return !skb_headlen(skb) && skb_is_nonlinear(skb);
}

static __always_inline bool tcp_is_plain_sacked(const struct sk_buff *skb)
{
	return (TCP_SKB_CB(skb)->sacked & TCPCB_TAGBITS) == TCPCB_SACKED_ACKED;
}

/*
 * The first LEN bytes of SKB, PCOUNT segments of MSS, were shifted into PREV: sequence numbers and
 * counts follow. True if SKB is empty now; then it is gone.
 */
static __always_inline bool tcp_shifted_skb(struct sock *sk, struct sk_buff *prev,
					    struct sk_buff *skb, int pcount, u32 len, u32 mss,
					    int *newly, const enum skb_era era)
{
	struct tcp_skb_cb *a = TCP_SKB_CB(prev), *b = TCP_SKB_CB(skb);

	tcp_sacktag_one(sk, b->sacked, b->seq + len, pcount, newly);
	a->end_seq += len;
	b->seq += len;

	BUG_ON(tcp_skb_pcount(era, skb) < pcount);
	tcp_skb_pcount_add(era, prev, pcount);
	tcp_skb_pcount_add(era, skb, -pcount);
	if (!tcp_skb_mss(era, prev))
		tcp_skb_mss_set(era, prev, mss);
	if (tcp_skb_pcount(era, skb) <= 1)
		tcp_skb_mss_set(era, skb, 0);
	a->sacked |= b->sacked & TCPCB_EVER_RETRANS;

	if (skb->len) {
		BUG_ON(!tcp_skb_pcount(era, skb));
		return false;
	}
	a->tcp_flags |= b->tcp_flags;
	a->eor = b->eor;
	if (b->tcp_flags & TCPHDR_FIN)
		a->end_seq++;
	__skb_unlink(skb, &sk->tcp_rtx_queue);
	tcp_wmem_free_skb(era, sk, skb);
	return true;
}

/* All of SKB, which is SACKed or becomes so, into PREV. False, and nothing has changed. */
static __always_inline bool tcp_shift_whole(struct sock *sk, struct sk_buff *prev,
					    struct sk_buff *skb, u32 mss, int *newly,
					    const enum skb_era era)
{
	int pcount = tcp_skb_pcount(era, skb);
	u32 len = skb->len;

	if (mss != tcp_skb_seglen(era, prev) || mss != tcp_skb_seglen(era, skb) ||
	    !tcp_skb_shift(era, prev, skb, pcount, len))
		return false;
	tcp_shifted_skb(sk, prev, skb, pcount, len, mss, newly, era);
	return true;
}

/*
 * Shifts what the block covers of SKB into the sk_buff in front of it, if that is SACKed. Returns
 * the latter if something was shifted (SKB may be gone); SKB if the block does not cover a segment
 * of it, so that nothing is to be done; NULL if it is to be tagged where it is.
 */
static __always_inline struct sk_buff *tcp_shift_skb_data(struct sock *sk, struct sk_buff *skb,
							  u32 start, u32 end, int *newly,
							  const enum skb_era era,
							  const enum tcp_trim trim)
{
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	struct sk_buff *prev = skb->prev, *next;
	u32 len, mss;
	int pcount;

	/* Sent again and not lost: the tag stays, so that this one is never plainly SACKed. */
	if ((tcb->sacked & (TCPCB_LOST | TCPCB_SACKED_RETRANS)) == TCPCB_SACKED_RETRANS)
		return NULL;
	if (!skb_can_shift(skb) || !after(tcb->end_seq, sk->snd_una))
		return NULL;
	if (skb_queue_is_end(&sk->tcp_rtx_queue, prev) || !tcp_is_plain_sacked(prev) ||
	    !tcp_skb_can_collapse(prev, skb))
		return NULL;
	if (tcp_trim_noted(sk, prev, era, trim))
		return NULL;

	if (!after(start, tcb->seq) && !before(end, tcb->end_seq)) {
		mss = tcp_skb_seglen(era, skb);
		if (!tcp_shift_whole(sk, prev, skb, mss, newly, era))
			return NULL;
		/* A hole is filled: what follows may be SACKed already. */
		next = prev->next;
		if (!skb_queue_is_end(&sk->tcp_rtx_queue, next) && skb_can_shift(next) &&
		    tcp_is_plain_sacked(next) && tcp_skb_can_collapse(prev, next))
			tcp_shift_whole(sk, prev, next, mss, newly, era);
		return prev;
	}

	if (tcp_skb_pcount(era, skb) <= 1)
		return skb;
	if (after(start, tcb->seq))
		return NULL;
	mss = tcp_skb_mss(era, skb);
	if (mss != tcp_skb_seglen(era, prev))
		return NULL;
	len = end - tcb->seq;
	if (len < mss)
		return skb;
	pcount = len / mss;
	len = pcount * mss;
	/* All bytes, but not the FIN behind them: a cut parts the two, a shift would tag both. */
	if (len == skb->len)
		return NULL;
	if (!after(tcb->seq + len, sk->snd_una) || !tcp_skb_shift(era, prev, skb, pcount, len))
		return NULL;
	tcp_shifted_skb(sk, prev, skb, pcount, len, mss, newly, era);
	return prev;
}

/*
 * --- walk
 * -----------------------------------------------------------------------------------------------
 */

static __always_inline int do_tcp_sack(struct sock *sk, u32 start, u32 end, const enum skb_era era,
				       const enum tcp_trim trim)
{
	struct sk_buff_head *queue = &sk->tcp_rtx_queue;
	struct sk_buff *skb;
	int newly = 0;

	if (!before(start, end) || !after(start, sk->snd_una) || after(end, sk->snd_nxt))
		return -EINVAL;

	for (skb = queue->next; !skb_queue_is_end(queue, skb); skb = skb->next) {
		struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
		struct sk_buff *at;
		int in_sack;

		if (!before(tcb->seq, end))
			break;
		if (!after(tcb->end_seq, start) || tcb->sacked & TCPCB_SACKED_ACKED)
			continue;
		if (tcp_trim_noted(sk, skb, era, trim))
			break;
		at = tcp_shift_skb_data(sk, skb, start, end, &newly, era, trim);
		if (at) {
			skb = at;
			continue;
		}
		in_sack = tcp_match_skb_to_sack(sk, skb, start, end, era, trim);
		if (unlikely(in_sack < 0))
			break;
		if (in_sack)
			tcb->sacked = tcp_sacktag_one(sk, tcb->sacked, tcb->end_seq,
						      tcp_skb_pcount(era, skb), &newly);
	}
	return newly;
}

#define INSTANTIATE(suffix, era, trim)                             \
	int tcp_sack_##suffix(struct sock *sk, u32 start, u32 end) \
	{                                                          \
		return do_tcp_sack(sk, start, end, era, trim);     \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)

#define INSTANTIATE_ERA(suffix, era)                                          \
	void tcp_mark_skb_lost_##suffix(struct sock *sk, struct sk_buff *skb) \
	{                                                                     \
		do_tcp_mark_skb_lost(sk, skb, era);                           \
	}
SKB_FOR_EACH_ERA(INSTANTIATE_ERA)
