/* SPDX-License-Identifier: MIT */
/*
 * Segments: from the header to the receive queue.
 *
 * Kernel: tcp_rcv_established(), tcp_data_queue(), tcp_queue_rcv(), tcp_try_coalesce() in
 * net/ipv4/tcp_input.c, 6.1 and 6.12. The eras differ in one rule of this file: 6.1 always grants
 * memory to the first sk_buff of an empty queue, 6.12 asks first and then grants it all the same,
 * having told the reader.
 */
#include "tcp/tcp.h"
#include "tcp/tcp_rx.h"

/* Reserved bits of the header's length and PSH do not count. */
#define TCP_HP_BITS (~(0x0fu << 24 | TCPHDR_PSH << 16))

void sock_rfree(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	atomic_add(-(int)skb->truesize, &sk->sk_rmem_alloc, SKB_C_RMEM);
	sk_mem_uncharge(ERA_6_12, sk, (int)skb->truesize); /* since 6.0 whole pages go back */
}

/*
 * --- the receive queue
 * --------------------------------------------------------------------------------------
 */

static __always_inline bool do_try_coalesce(struct sock *sk, struct sk_buff *to,
					    struct sk_buff *from, bool *fragstolen,
					    const enum skb_era era)
{
	int delta;

	*fragstolen = false;
	if (TCP_SKB_CB(from)->seq != TCP_SKB_CB(to)->end_seq)
		return false;
	if (!skb_try_coalesce(era, to, from, fragstolen, &delta))
		return false;
	atomic_add(delta, &sk->sk_rmem_alloc, SKB_C_RMEM);
	sk_mem_charge(sk, delta);
	net_inc_stats(sk->sk_net, TCP_MIB_RCVCOALESCE);
	TCP_SKB_CB(to)->end_seq = TCP_SKB_CB(from)->end_seq;
	TCP_SKB_CB(to)->ack_seq = TCP_SKB_CB(from)->ack_seq;
	TCP_SKB_CB(to)->tcp_flags |= TCP_SKB_CB(from)->tcp_flags;
	return true;
}

static __always_inline void tcp_rcv_nxt_update(struct sock *sk, u32 seq)
{
	sk->bytes_received += seq - sk->rcv_nxt;
	/* A reader that spins for data looks at it. */
	skb_store(&sk->rcv_nxt, seq, SKB_C_OTHER);
}

static __always_inline int do_queue_rcv(struct sock *sk, struct sk_buff *skb, bool *fragstolen,
					const enum skb_era era)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	u32 end_seq = TCP_SKB_CB(skb)->end_seq;
	int eaten = tail && do_try_coalesce(sk, tail, skb, fragstolen, era);

	if (!eaten) {
		__skb_queue_tail(&sk->sk_receive_queue, skb);
		skb_set_owner_r(skb, sk);
	}
	tcp_rcv_nxt_update(sk, end_seq);
	return eaten;
}

/* Grants memory for SIZE bytes. False: the receive buffer is full. */
static __always_inline bool tcp_try_rmem_schedule(struct sock *sk, u32 size, const enum skb_era era)
{
	if (unlikely(atomic_read(&sk->sk_rmem_alloc, SKB_C_RMEM) > sk->sk_rcvbuf))
		return false; /* the kernel would collapse what is queued first */
	sk_rmem_schedule(era, sk, (int)size);
	return true;
}

/*
 * --- after the data
 * --------------------------------------------------------------------------------------
 */

static __always_inline void tcp_event_data_recv(struct sock *sk, const struct sk_buff *skb)
{
	u32 len = shinfo_read(skb, gso_size) ?: skb->len;

	sk->icsk_ack.pending |= ICSK_ACK_SCHED;
	if (len >= sk->icsk_ack.rcv_mss)
		sk->icsk_ack.rcv_mss = (u16)min(len, 0xffffu);
}

/* An ACK at once for more than a segment, if the reader keeps up or the window has moved. */
static __always_inline void tcp_ack_snd_check(struct sock *sk)
{
	if (!(sk->icsk_ack.pending & ICSK_ACK_SCHED))
		return;
	if (sk->icsk_ack.pending & ICSK_ACK_NOW ||
	    (sk->rcv_nxt - sk->rcv_wup > sk->icsk_ack.rcv_mss &&
	     (sk->rcv_nxt - sk->copied_seq < (u32)sk->sk_rcvlowat ||
	      __tcp_select_window(sk) >= sk->rcv_wnd)))
		tcp_send_ack(sk);
}

static __always_inline void tcp_data_ready(struct sock *sk)
{
	if (sk->rcv_nxt - sk->copied_seq >= (u32)sk->sk_rcvlowat ||
	    tcp_receive_window(sk) <= sk->icsk_ack.rcv_mss)
		sk->sk_data_ready(sk);
}

static void tcp_fin(struct sock *sk)
{
	sk->icsk_ack.pending |= ICSK_ACK_SCHED;
	sk->sk_shutdown |= RCV_SHUTDOWN;
	sk->sk_data_ready(sk);
}

/* From here on the fast path expects a header like that of FLAGS, unless the buffer is full. */
static __always_inline void tcp_fast_path_check(struct sock *sk, u32 flags)
{
	sk->pred_flags = 0;
	if (sk->rcv_wnd && atomic_read(&sk->sk_rmem_alloc, SKB_C_RMEM) < sk->sk_rcvbuf)
		sk->pred_flags = flags & TCP_HP_BITS & ~((u32)TCPHDR_FIN << 16);
}

/*
 * --- segments
 * --------------------------------------------------------------------------------------
 */

/* SKB is dropped, and counted as ITEM; the peer hears at once what is expected. */
static __always_inline void tcp_drop_and_ack(struct sock *sk, struct sk_buff *skb,
					     enum tcp_mib_item item, const enum skb_era era)
{
	net_inc_stats(sk->sk_net, item);
	sk->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
	kfree_skb(era, skb);
}

/* Memory for SKB as the era grants it. False: SKB was dropped. */
static __always_inline bool tcp_grant(struct sock *sk, struct sk_buff *skb, const enum skb_era era)
{
	bool empty = !skb_peek(&sk->sk_receive_queue);

	if (era < ERA_6_12 && empty) {
		sk_rmem_schedule(era, sk, (int)skb->truesize);
		return true;
	}
	if (likely(tcp_try_rmem_schedule(sk, skb->truesize, era)))
		return true;
	if (era >= ERA_6_12) {
		sk->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
		sk->sk_data_ready(sk);
		if (empty || !skb->len) {
			sk_rmem_schedule(era, sk, (int)skb->truesize);
			return true;
		}
	}
	net_inc_stats(sk->sk_net, TCP_MIB_RCVQDROP);
	kfree_skb(era, skb);
	return false;
}

/* SKB without its header: into the queue, or dropped. FLAGS is its header's word. */
static __always_inline void tcp_data_queue(struct sock *sk, struct sk_buff *skb, u32 flags,
					   const enum skb_era era)
{
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	bool fin = tcb->tcp_flags & TCPHDR_FIN, fragstolen;
	int eaten;

	if (tcb->seq == tcb->end_seq) {
		kfree_skb(era, skb);
		return;
	}
	if (unlikely(!after(tcb->end_seq, sk->rcv_nxt))) {
		/* Sent again: the peer missed an ACK. */
		sk->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
		kfree_skb(era, skb);
		return;
	}
	if (unlikely(!before(tcb->seq, sk->rcv_nxt + tcp_receive_window(sk)))) {
		tcp_drop_and_ack(sk, skb, TCP_MIB_ZEROWINDOWDROP, era);
		return;
	}
	if (unlikely(after(tcb->seq, sk->rcv_nxt))) {
		tcp_drop_and_ack(sk, skb, TCP_MIB_OFODROP, era);
		return;
	}
	if (!tcp_grant(sk, skb, era))
		return;
	if (likely(skb->len))
		tcp_event_data_recv(sk, skb);
	eaten = do_queue_rcv(sk, skb, &fragstolen, era);
	if (unlikely(fin))
		tcp_fin(sk);
	tcp_fast_path_check(sk, flags);
	if (eaten)
		kfree_skb_partial(era, skb, fragstolen);
	tcp_data_ready(sk);
}

/* The next segment, nothing unusual about it, and memory enough. False: not so. */
static __always_inline bool tcp_rcv_fast(struct sock *sk, struct sk_buff *skb, u32 flags,
					 u32 hdrlen, const enum skb_era era)
{
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	bool fragstolen;
	u32 ack_seq = tcb->ack_seq;
	int eaten;

	if ((flags & TCP_HP_BITS) != sk->pred_flags || tcb->seq != sk->rcv_nxt ||
	    after(ack_seq, sk->snd_nxt) || skb->len <= hdrlen ||
	    (int)skb->truesize > sk->sk_forward_alloc)
		return false;
	net_inc_stats(sk->sk_net, TCP_MIB_HPHITS);
	__skb_pull(skb, hdrlen);
	tcp_event_data_recv(sk, skb);
	eaten = do_queue_rcv(sk, skb, &fragstolen, era);
	if (ack_seq != sk->snd_una)
		tcp_ack(era, TRIM_EAGER, sk, ack_seq);
	tcp_ack_snd_check(sk);
	if (eaten)
		kfree_skb_partial(era, skb, fragstolen);
	tcp_data_ready(sk);
	return true;
}

/* True if any byte of SKB, or its place, lies in the window (RFC 793, page 69). */
static __always_inline bool tcp_sequence(const struct sock *sk, const struct tcp_skb_cb *tcb)
{
	return !before(tcb->end_seq, sk->rcv_wup) &&
	       !after(tcb->seq, sk->rcv_nxt + tcp_receive_window(sk));
}

static __always_inline void tcp_rcv_established(struct sock *sk, struct sk_buff *skb,
						const enum skb_era era)
{
	const struct tcphdr *th = (const struct tcphdr *)skb->data;
	u32 flags = tcp_flag_word(th), hdrlen = __tcp_hdrlen(th);
	const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

	if (tcp_rcv_fast(sk, skb, flags, hdrlen, era))
		return;
	if (unlikely(!tcp_sequence(sk, tcb))) {
		tcp_drop_and_ack(sk, skb, TCP_MIB_ZEROWINDOWDROP, era);
	} else if (unlikely(tcb->tcp_flags & (TCPHDR_SYN | TCPHDR_RST) ||
			    !(tcb->tcp_flags & TCPHDR_ACK) ||
			    (tcb->ack_seq != sk->snd_una &&
			     tcp_ack(era, TRIM_EAGER, sk, tcb->ack_seq) < 0))) {
		kfree_skb(era, skb); /* the model's peer neither opens nor resets */
	} else {
		__skb_pull(skb, hdrlen);
		tcp_data_queue(sk, skb, flags, era);
	}
	tcp_ack_snd_check(sk);
}

static __always_inline int do_v4_do_rcv(struct sock *sk, struct sk_buff *skb,
					const enum skb_era era)
{
	u32 segs = shinfo_read(skb, gso_segs) ?: 1;

	if (unlikely(sk->skc_state != TCP_ESTABLISHED)) {
		kfree_skb(era, skb);
		return 0;
	}
	sk->segs_in += segs;
	tcp_rcv_established(sk, skb, era);
	return 0;
}

#define INSTANTIATE(suffix, era)                                                                  \
	int tcp_v4_do_rcv_##suffix(struct sock *sk, struct sk_buff *skb)                          \
	{                                                                                         \
		return do_v4_do_rcv(sk, skb, era);                                                \
	}                                                                                         \
	int tcp_queue_rcv_##suffix(struct sock *sk, struct sk_buff *skb, bool *fragstolen)        \
	{                                                                                         \
		return do_queue_rcv(sk, skb, fragstolen, era);                                    \
	}                                                                                         \
	bool tcp_try_coalesce_##suffix(struct sock *sk, struct sk_buff *to, struct sk_buff *from, \
				       bool *fragstolen)                                          \
	{                                                                                         \
		return do_try_coalesce(sk, to, from, fragstolen, era);                            \
	}
TCP_RX_FOR_EACH_ERA(INSTANTIATE)
