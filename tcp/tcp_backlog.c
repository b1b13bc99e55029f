/* SPDX-License-Identifier: MIT */
#include "tcp/tcp_backlog.h"

#include "tcp/tcp_cb.h"
#include "tcp/tcp_wire.h"

#include <string.h>

/* True if the header of SKB may stand behind that of TAIL: nothing would be lost. */
static __always_inline bool headers_join(const struct sk_buff *tail, const struct sk_buff *skb,
					 const struct tcphdr *thtail, const struct tcphdr *th)
{
	const struct tcp_skb_cb *a = TCP_SKB_CB(tail), *b = TCP_SKB_CB(skb);

	return a->end_seq == b->seq && a->ip_dsfield == b->ip_dsfield &&
	       !((a->tcp_flags | b->tcp_flags) & (TCPHDR_SYN | TCPHDR_RST | TCPHDR_URG)) &&
	       a->tcp_flags & b->tcp_flags & TCPHDR_ACK &&
	       !((a->tcp_flags ^ b->tcp_flags) & (TCPHDR_ECE | TCPHDR_CWR)) &&
	       __tcp_hdrlen(thtail) == __tcp_hdrlen(th) &&
	       !memcmp(thtail + 1, th + 1, __tcp_hdrlen(th) - sizeof(*th));
}

/* SKB becomes part of TAIL, the backlog's last. False, and nothing has changed. */
static __always_inline bool backlog_coalesce(struct sock *sk, struct sk_buff *tail,
					     struct sk_buff *skb, const enum skb_era era)
{
	struct tcphdr *thtail = (struct tcphdr *)tail->data;
	const struct tcphdr *th = (const struct tcphdr *)skb->data;
	struct tcp_skb_cb *to = TCP_SKB_CB(tail), *from = TCP_SKB_CB(skb);
	u32 hdrlen = __tcp_hdrlen(th), size, segs, tail_size, tail_segs;
	bool fragstolen;
	int delta;

	if (!headers_join(tail, skb, thtail, th))
		return false;
	__skb_pull(skb, hdrlen);
	size = shinfo_read(skb, gso_size) ?: skb->len;
	segs = shinfo_read(skb, gso_segs) ?: 1;
	tail_size = shinfo_read(tail, gso_size) ?: tail->len - hdrlen;
	tail_segs = shinfo_read(tail, gso_segs) ?: 1;
	if (!skb_try_coalesce(era, tail, skb, &fragstolen, &delta)) {
		skb_push(skb, hdrlen);
		return false;
	}
	to->end_seq = from->end_seq;
	if (likely(!before(from->ack_seq, to->ack_seq))) {
		to->ack_seq = from->ack_seq;
		thtail->window = th->window;
	}
	thtail->flags |= th->flags & (TCPHDR_FIN | TCPHDR_PSH);
	to->tcp_flags |= from->tcp_flags;
	shinfo_write(tail, gso_size, (u16)max(size, tail_size));
	shinfo_write(tail, gso_segs, (u16)min(segs + tail_segs, 0xffffu));
	skb_store(&sk->sk_backlog.len, sk->sk_backlog.len + delta, SKB_C_OTHER);
	net_inc_stats(sk->sk_net, TCP_MIB_BACKLOGCOALESCE);
	kfree_skb_partial(era, skb, fragstolen);
	return true;
}

static __always_inline bool do_add_backlog(struct sock *sk, struct sk_buff *skb,
					   const enum skb_era era)
{
	struct sk_buff *tail = skb_load(&sk->sk_backlog.tail, SKB_C_OTHER);
	unsigned int truesize;

	skb_condense(era, skb);
	if (tail && backlog_coalesce(sk, tail, skb, era))
		return false;
	truesize = skb->truesize;
	if (unlikely(sk_add_backlog(sk, skb, tcp_backlog_limit(sk)))) {
		bh_unlock_sock(sk);
		net_inc_stats(sk->sk_net, TCP_MIB_BACKLOGDROP);
		return true;
	}
	net_inc_stats(sk->sk_net, TCP_MIB_BACKLOGADD);
	net_add_stats(sk->sk_net, TCP_MIB_BACKLOGBYTES, truesize);
	return false;
}

void __sk_flush_backlog(struct sock *sk)
{
	sk_slock(sk);
	__release_sock(sk);
	sk_sunlock(sk);
}

#define INSTANTIATE(suffix, era)                                            \
	bool tcp_add_backlog_##suffix(struct sock *sk, struct sk_buff *skb) \
	{                                                                   \
		return do_add_backlog(sk, skb, era);                        \
	}
TCP_RX_FOR_EACH_ERA(INSTANTIATE)
