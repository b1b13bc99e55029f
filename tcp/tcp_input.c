/* SPDX-License-Identifier: MIT */
/*
 * tcp_ack(): what an ACK does to the retransmit queue.
 *
 * Kernel: tcp_clean_rtx_queue() and tcp_tso_acked() in net/ipv4/tcp_input.c. A partial ACK of an
 * sk_buff of several segments is where the two variants part: eager trims now, offset_ack (the
 * patch of 2012) notes how far the ACK reached and recounts the segments, which allocates nothing,
 * touches no page and cannot fail. Bytes stay charged until the whole is acknowledged; seq may lie
 * before snd_una until then. Left out: RTT and rate samples, timers, congestion
 * control; SACKs are in tcp_sack.c.
 */
#include "tcp/tcp.h"
#include "tcp/tcp_mtu_probe.h"

#include <errno.h>

/*
 * Segments of SKB that the ACK newly covers. 0 also if no memory was to be had: a later ACK tries
 * again.
 */
static __always_inline int tcp_tso_acked(struct sock *sk, struct sk_buff *skb,
					 const enum skb_era era, const enum tcp_trim trim)
{
	int old = tcp_skb_pcount(era, skb);
	u32 acked = sk->snd_una - TCP_SKB_CB(skb)->seq;

	if (trim == TRIM_OFFSET_ACK) {
		TCP_SKB_CB(skb)->offset_ack = acked;
		tcp_set_skb_tso_segs(era, trim, skb, tcp_skb_mss(era, skb));
	} else if (unlikely(tcp_trim_head(era, trim, sk, skb, acked))) {
		return 0;
	}
	return old - tcp_skb_pcount(era, skb);
}

/* SEGS segments of SKB are no longer out, in every count that they were in. */
static __always_inline void tcp_segs_acked(struct sock *sk, const struct sk_buff *skb, int segs)
{
	u8 sacked = TCP_SKB_CB(skb)->sacked;

	if (unlikely(sacked & TCPCB_SACKED_RETRANS))
		sk->retrans_out -= segs;
	if (unlikely(sacked & TCPCB_SACKED_ACKED))
		sk->sacked_out -= segs;
	else
		sk->delivered += segs; /* else it was when the SACK came */
	if (unlikely(sacked & TCPCB_LOST))
		sk->lost_out -= segs;
	sk->packets_out -= segs;
}

static __always_inline int tcp_clean_rtx_queue(struct sock *sk, const enum skb_era era,
					       const enum tcp_trim trim)
{
	struct sk_buff *skb;
	int total = 0;

	while ((skb = skb_peek(&sk->tcp_rtx_queue))) {
		struct tcp_skb_cb *scb = TCP_SKB_CB(skb);
		bool fully_acked = !after(scb->end_seq, sk->snd_una);
		int acked = tcp_skb_pcount(era, skb);

		if (!fully_acked) {
			if (acked == 1 || !after(sk->snd_una, scb->seq))
				break;
			acked = tcp_tso_acked(sk, skb, era, trim);
			if (!acked)
				break;
		}
		tcp_segs_acked(sk, skb, acked);
		total += acked;
		if (!fully_acked)
			break;
		__skb_unlink(skb, &sk->tcp_rtx_queue);
		tcp_wmem_free_skb(era, sk, skb);
	}
	if (unlikely(sk->mtup.probe_size) && !after(sk->mtup.probe_seq_end, sk->snd_una))
		tcp_mtup_probe_success(sk);
	return total;
}

static __always_inline int do_tcp_ack(struct sock *sk, u32 ack, const enum skb_era era,
				      const enum tcp_trim trim)
{
	if (before(ack, sk->snd_una))
		return 0;
	if (after(ack, sk->snd_nxt))
		return -EINVAL;
	sk->snd_una = ack;
	return tcp_clean_rtx_queue(sk, era, trim);
}

#define INSTANTIATE(suffix, era, trim)                 \
	int tcp_ack_##suffix(struct sock *sk, u32 ack) \
	{                                              \
		return do_tcp_ack(sk, ack, era, trim); \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)
