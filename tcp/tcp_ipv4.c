/* SPDX-License-Identifier: MIT */
/*
 * From the network to the socket: tcp_v4_rcv().
 *
 * Kernel: tcp_v4_rcv(), net/ipv4/tcp_ipv4.c, 6.1 and 6.12; the flush of the socket's list in front
 * of the lock is 5.17's. Left out: listeners, requests and TIME-WAIT, early demux, policies and
 * filters, checksums.
 */
#include "skb/skb_zcopy.h"
#include "tcp/tcp_rx.h"

/* What the header says, in the control block; *IPH's stays as it is. */
static __always_inline void tcp_v4_fill_cb(struct sk_buff *skb, const struct iphdr *iph,
					   const struct tcphdr *th)
{
	struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

	tcb->seq = __builtin_bswap32(th->seq);
	tcb->end_seq = tcb->seq + !!(th->flags & TCPHDR_SYN) + !!(th->flags & TCPHDR_FIN) +
		       skb->len - __tcp_hdrlen(th);
	tcb->ack_seq = __builtin_bswap32(th->ack_seq);
	tcb->tcp_flags = th->flags;
	tcb->ip_dsfield = iph->tos;
	tcb->sacked = 0;
	tcb->has_rxtstamp = 0;
}

/* True if SKB begins with a whole TCP header, which is linear now. */
static __always_inline bool tcp_header_ok(struct sk_buff *skb, const enum skb_era era)
{
	u32 hdrlen;

	if (unlikely(!pskb_may_pull(era, skb, sizeof(struct tcphdr))))
		return false;
	hdrlen = __tcp_hdrlen((const struct tcphdr *)skb->data);
	return likely(hdrlen >= sizeof(struct tcphdr)) && likely(pskb_may_pull(era, skb, hdrlen));
}

static __always_inline int do_v4_rcv(struct net *net, struct sk_buff *skb, const enum skb_era era,
				     const enum tcp_defer defer)
{
	const struct tcphdr *th;
	const struct iphdr *iph;
	struct sock *sk;
	unsigned int freed;

	/* A reader may keep the pages as long as it likes: a sender's must not be among them. */
	if (unlikely(skb_orphan_frags_rx(era, skb)) || unlikely(!tcp_header_ok(skb, era))) {
		kfree_skb(era, skb);
		return -EINVAL;
	}
	th = (const struct tcphdr *)skb->data;
	iph = ip_hdr(skb);
	sk = __inet_lookup_established(net, &(struct inet_tuple){ .saddr = iph->saddr,
								  .daddr = iph->daddr,
								  .sport = th->source,
								  .dport = th->dest });
	if (unlikely(!sk)) {
		kfree_skb(era, skb);
		return -ENOENT;
	}
	tcp_v4_fill_cb(skb, iph, th);
	skb->dev = NULL;

	if (defer == TCP_DEFER_SK_LLIST) {
		freed = sk_defer_free_flush(era, sk);
		if (freed)
			net_flushed(net, TCP_MIB_FREE_SOFTIRQ, freed);
	}
	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk)) {
		tcp_v4_do_rcv(era, sk, skb);
	} else if (tcp_add_backlog(era, sk, skb)) {
		atomic_inc(&sk->sk_drops, SKB_C_OTHER); /* slock is released */
		kfree_skb(era, skb);
		goto put;
	}
	bh_unlock_sock(sk);
put:
	sock_put(sk);
	return 0;
}

#define INSTANTIATE(suffix, era, defer)                               \
	int tcp_v4_rcv_##suffix(struct net *net, struct sk_buff *skb) \
	{                                                             \
		return do_v4_rcv(net, skb, era, defer);               \
	}
TCP_RX_FOR_EACH(INSTANTIATE)
