/* SPDX-License-Identifier: MIT */
/*
 * Joining small sk_buffs when the first of them is sent again: tcp_retrans_try_collapse().
 *
 * Kernel: net/ipv4/tcp_output.c, 3.4, 6.1 and 6.12. One packet instead of several; what it costs is
 * the move of the bytes, and what is freed is a pair and a head for each that joined. How the bytes
 * move is the era's:
 *
 *   3.4     copied into the tailroom of the first; one with frags takes no part
 *   6.1     the same where both are linear, else skb_shift()
 *   6.12    skb_shift(): nothing is linear any more
 *
 * Left out: the sysctl that turns it off, hints into the queue, timestamps.
 */
#include "tcp/tcp.h"

#include <string.h>

/* May SKB be joined with what stands beside it? */
static __always_inline bool tcp_can_collapse(const struct sk_buff *skb, const enum skb_era era)
{
	if (tcp_skb_pcount(era, skb) != 1)
		return false;
	if (era < ERA_6_1 && shinfo_read(skb, nr_frags))
		return false;
	if (skb_cloned(skb))
		return false; /* below TCP somebody still reads what is there */
	return !(TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED);
}

/* Moves all bytes of NEXT to the end of SKB. False, and no byte has moved. */
static __always_inline bool tcp_collapse_bytes(struct sk_buff *skb, struct sk_buff *next,
					       const enum skb_era era)
{
	u32 len = next->len;

	if (!len)
		return true;
	if (era < ERA_6_12 && !skb_is_nonlinear(next) && len <= skb_tailroom(skb)) {
		skb_memcpy(skb_put(skb, len), next->data, len, SKB_C_PAYLOAD);
		return true;
	}
	return era >= ERA_6_1 && tcp_skb_shift(era, skb, next, 1, len);
}

static __always_inline bool tcp_collapse_retrans(struct sock *sk, struct sk_buff *skb,
						 struct sk_buff *next, const enum skb_era era)
{
	struct tcp_skb_cb *a = TCP_SKB_CB(skb), *b = TCP_SKB_CB(next);

	if (!tcp_collapse_bytes(skb, next, era))
		return false;
	a->end_seq = b->end_seq;
	a->tcp_flags |= b->tcp_flags;
	a->sacked |= b->sacked & TCPCB_EVER_RETRANS;
	a->eor = b->eor;

	/* Its segment is in no count any more; the first stays the single segment that it was. */
	tcp_adjust_pcount(sk, next, 1);
	__skb_unlink(next, &sk->tcp_rtx_queue);
	tcp_wmem_free_skb(era, sk, next);
	return true;
}

static __always_inline int do_tcp_retrans_try_collapse(struct sock *sk, struct sk_buff *to,
						       int space, const enum skb_era era)
{
	struct sk_buff_head *queue = &sk->tcp_rtx_queue;
	u32 wnd_end = sk->snd_una + sk->snd_wnd;
	struct sk_buff *skb;
	int joined = 0;

	if (!tcp_can_collapse(to, era))
		return 0;
	space -= to->len;
	while (skb = to->next, !skb_queue_is_end(queue, skb)) {
		if (!tcp_can_collapse(skb, era) || !tcp_skb_can_collapse(to, skb))
			break;
		space -= skb->len;
		if (space < 0 || after(TCP_SKB_CB(skb)->end_seq, wnd_end))
			break;
		if (era < ERA_6_1 && skb->len > skb_tailroom(to))
			break;
		if (!tcp_collapse_retrans(sk, to, skb, era))
			break;
		joined++;
	}
	return joined;
}

bool tcp_can_coalesce_send_queue_head(const struct sock *sk, u32 len)
{
	const struct sk_buff_head *queue = &sk->sk_write_queue;
	const struct sk_buff *skb = skb_peek(queue), *next;

	while (skb && skb->len < len) {
		len -= skb->len;
		next = skb->next;
		if (skb_queue_is_end(queue, next) || !tcp_skb_can_collapse(skb, next))
			return false;
		skb = next;
	}
	return skb;
}

#define INSTANTIATE(suffix, era)                                                              \
	int tcp_retrans_try_collapse_##suffix(struct sock *sk, struct sk_buff *to, int space) \
	{                                                                                     \
		return do_tcp_retrans_try_collapse(sk, to, space, era);                       \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
