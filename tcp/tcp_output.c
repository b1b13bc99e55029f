/* SPDX-License-Identifier: MIT */
/*
 * Sending: tcp_transmit_skb(), tcp_write_xmit(), tcp_retransmit_skb(), and tcp_wfree().
 *
 * Kernel: net/ipv4/tcp_output.c, 3.4 and 6.12. What goes below TCP is a clone; the original stays
 * in the retransmit queue with nohdr set, so that the clone may write its headers into the shared
 * headroom. The congestion window limits what is sent the first time; who sends again (the kernel's
 * tcp_xmit_retransmit_queue()) is above, and so is who sets the window. Left out: Nagle, pacing, TSO
 * deferral and sizing by rate, the routing cache; the TSQ tasklet (its work is tcp_tsq_handler(), for
 * the lock holder to call).
 */
#include "tcp/mptcp_options.h"
#include "tcp/tcp.h"
#include "tcp/tcp_mtu_probe.h"

#include <errno.h>
#include <string.h>

/* What lies on the wire in front of the payload: Ethernet, IPv4, TCP with timestamps. */
struct tcp_wire_header {
	u8 eth[14];
	u8 ip[20];
	u16 source, dest;
	u32 seq, ack_seq;
	u16 flags; /* data offset and flags */
	u16 window, check, urg;
	u8 options[12];
} __attribute__((packed));

_Static_assert(sizeof(struct tcp_wire_header) == 66, "14 + 20 + 32 bytes");

#define TCP_CSUM_OFFSET \
	(offsetof(struct tcp_wire_header, check) - offsetof(struct tcp_wire_header, source))

/*
 * --- below TCP: the completion's half
 * ----------------------------------------------------------------------
 */

/*
 * The destructor of a clone, on the completing CPU. 6.x leaves 1 of the charge until it has looked
 * whether the socket waits for room, so that the socket cannot go away meanwhile: two RMW, where
 * 3.4 had one.
 */
static void sock_wfree(struct sk_buff *skb)
{
	BUG_ON(refcount_sub_and_test(skb->truesize, &skb->sk->sk_wmem_alloc, SKB_C_WMEM));
}

static void tcp_wfree(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	unsigned long flags;

	BUG_ON(refcount_sub_and_test(skb->truesize - 1, &sk->sk_wmem_alloc, SKB_C_WMEM));
	flags = skb_load(&sk->sk_tsq_flags, SKB_C_WMEM);
	while (flags & TSQF_THROTTLED && !(flags & TSQF_QUEUED)) {
		unsigned long want = (flags & ~TSQF_THROTTLED) | TSQF_QUEUED;
		unsigned long found = cmpxchg(&sk->sk_tsq_flags, flags, want, SKB_C_WMEM);

		if (found == flags)
			return; /* tcp_tsq_handler() drops the 1 that is left */
		flags = found;
	}
	BUG_ON(refcount_dec_and_test(&sk->sk_wmem_alloc, SKB_C_WMEM));
}

/*
 * --- transmit
 * ----------------------------------------------------------------------------------------------
 */

/* OPTIONS: bytes that lie behind the header already. */
static __always_inline void tcp_build_header(struct sk_buff *clone, const struct tcp_skb_cb *tcb,
					     u16 flags, u32 options)
{
	struct tcp_wire_header *h = skb_push(clone, sizeof(*h));

	memset(h, 0, offsetof(struct tcp_wire_header, source));
	h->source = __builtin_bswap16(5001);
	h->dest = __builtin_bswap16(5001);
	h->seq = __builtin_bswap32(tcb->seq);
	h->ack_seq = __builtin_bswap32(1);
	h->flags = __builtin_bswap16((8 + options / 4) << 12 | (flags & 0xff));
	h->window = __builtin_bswap16(512);
	h->check = h->urg = 0;
	memset(h->options, 1, sizeof(h->options));

	/* The NIC sums from TCP's header on: where from is a field of 16 bits. */
	clone->headers.transport_header =
		skb_headroom(clone) + offsetof(struct tcp_wire_header, source);
	clone->headers.csum = clone->headers.transport_header | TCP_CSUM_OFFSET << 16;
}

/* PACKET, a clone or a copy of SKB, goes below TCP. 0 or NET_XMIT_DROP, and it is gone. */
static __always_inline int tcp_xmit_packet(struct sock *sk, struct sk_buff *skb,
					   struct sk_buff *packet, const enum skb_era era)
{
	int pcount = tcp_skb_pcount(era, skb);
	u16 flags = TCP_SKB_CB(skb)->tcp_flags;
	u32 options = 0;

	packet->dev = NULL;
	if (pcount > 1)
		flags |= TCPHDR_PSH; /* so that the peer's GRO hands it up */
	if (unlikely(sk->mptcp.on))
		options = mptcp_write_options(sk, packet);
	tcp_build_header(packet, TCP_SKB_CB(skb), flags, options);

	skb_store(&packet->sk, sk, SKB_C_SHELL);
	packet->destructor = era >= ERA_6_1 ? tcp_wfree : sock_wfree;
	refcount_add(packet->truesize, &sk->sk_wmem_alloc, SKB_C_WMEM);
	if (era >= ERA_6_1) {
		/* Into the shared info, which the original has too by now. */
		shinfo_write(packet, gso_segs, (u16)pcount);
		shinfo_write(packet, gso_size, (u16)tcp_skb_mss(era, skb));
		shinfo_write(packet, gso_type, SKB_GSO_TCPV4);
	}
	memset(packet->cb, 0, sizeof(packet->cb)); /* IP's now */

	if (unlikely(!tx_ring_xmit(sk->ring, packet))) {
		kfree_skb(era, packet);
		return NET_XMIT_DROP;
	}
	return 0;
}

/*
 * The anchor overlays route and destructor, which a clone takes over: the two stand between taking
 * and giving back of what is there.
 */
static __always_inline struct skb_list_node tcp_skb_tsorted_save(struct sk_buff *skb,
								 const enum skb_era era)
{
	struct skb_list_node anchor = skb->tcp_tsorted_anchor;

	if (skb_anchored(era)) {
		skb->_skb_refdst = 0;
		skb->destructor = NULL;
	}
	return anchor;
}

static __always_inline void
tcp_skb_tsorted_restore(struct sk_buff *skb, struct skb_list_node anchor, const enum skb_era era)
{
	if (skb_anchored(era))
		skb->tcp_tsorted_anchor = anchor;
}

static __always_inline int do_tcp_transmit_skb(struct sock *sk, struct sk_buff *skb,
					       const enum skb_era era, const enum tcp_trim trim)
{
	struct skb_list_node anchor;
	struct sk_buff *clone;

	/*
	 * The clone's control block belongs to IP from here: what offset_ack lies in must not be in
	 * use.
	 */
	BUG_ON(trim == TRIM_OFFSET_ACK && TCP_SKB_CB(skb)->offset_ack);

	anchor = tcp_skb_tsorted_save(skb, era);
	clone = unlikely(skb_cloned(skb)) ? pskb_copy(era, skb) : skb_clone(era, skb);
	tcp_skb_tsorted_restore(skb, anchor, era);
	if (unlikely(!clone))
		return -ENOBUFS;
	return tcp_xmit_packet(sk, skb, clone, era);
}

/* Asks the next completion to say that it made room. */
static __always_inline void tcp_tsq_throttle(struct sock *sk)
{
	unsigned long flags = skb_load(&sk->sk_tsq_flags, SKB_C_WMEM);

	while (!(flags & TSQF_THROTTLED)) {
		unsigned long found =
			cmpxchg(&sk->sk_tsq_flags, flags, flags | TSQF_THROTTLED, SKB_C_WMEM);

		if (found == flags)
			break;
		flags = found;
	}
}

/* True if the peer's window takes SKB, or the first segment of it. */
static __always_inline bool tcp_snd_wnd_test(const struct sock *sk, const struct sk_buff *skb,
					     u32 mss)
{
	u32 end_seq = TCP_SKB_CB(skb)->end_seq;

	if (skb->len > mss)
		end_seq = TCP_SKB_CB(skb)->seq + mss;
	return !after(end_seq, sk->snd_una + sk->snd_wnd);
}

/*
 * How many segments the congestion window takes of SKB, the next one; 0: it waits. Since 3.18 at
 * most half of the window goes at once, so that two packets are on their way; a FIN in a segment of
 * its own never waited until 6.10. Kernel: tcp_cwnd_test().
 */
static __always_inline u32 tcp_cwnd_test(const struct sock *sk, const struct sk_buff *skb,
					 const enum skb_era era)
{
	u32 in_flight = tcp_packets_in_flight(sk), cwnd = sk->snd_cwnd;

	if (era < ERA_6_12 && unlikely(TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN) &&
	    tcp_skb_pcount(era, skb) == 1)
		return 1;
	if (in_flight >= cwnd)
		return 0;
	return era < ERA_6_1 ? cwnd - in_flight : min(max(cwnd >> 1, 1U), cwnd - in_flight);
}

/*
 * How many bytes of SKB, which has several segments, to send: all of it, or the whole segments that
 * the peer's window takes, and QUOTA at most.
 */
static __always_inline u32 tcp_mss_split_point(const struct sock *sk, const struct sk_buff *skb,
					       u32 mss, u32 quota)
{
	u32 window = sk->snd_una + sk->snd_wnd - TCP_SKB_CB(skb)->seq;
	u32 most = mss * min(quota, (u32)TCP_MAX_SEGS), needed = min(skb->len, window);

	if (most <= needed)
		return most;
	return needed == skb->len ? needed : needed - needed % mss;
}

static __always_inline int do_tcp_write_xmit(struct sock *sk, const enum skb_era era,
					     const enum tcp_trim trim)
{
	u32 mss = sk->mss_cache;
	struct sk_buff *skb;
	int sent = 0;

	if (unlikely(sk->mtup.enabled)) {
		int probed = tcp_mtu_probe(era, trim, sk);

		if (!probed)
			return 0;
		sent = probed > 0;
	}
	while ((skb = skb_peek(&sk->sk_write_queue))) {
		u32 limit = mss, quota;

		if (!tcp_skb_pcount(era, skb) ||
		    (tcp_skb_pcount(era, skb) > 1 && tcp_skb_mss(era, skb) != (int)mss))
			tcp_set_skb_tso_segs(era, trim, skb, mss);
		quota = tcp_cwnd_test(sk, skb, era);
		if (!quota || !tcp_snd_wnd_test(sk, skb, mss))
			break;
		if (tcp_skb_pcount(era, skb) > 1)
			limit = tcp_mss_split_point(sk, skb, mss, quota);
		if (unlikely(skb->len > limit) && tso_fragment(era, trim, sk, skb, limit, mss))
			break;
		if (tcp_transmit_skb(era, trim, sk, skb) < 0)
			break;
		tcp_event_new_data_sent(sk, skb, era);
		sent++;
	}
	return sent;
}

/* True if SKB, the last one, may wait for what is below TCP; the completion was asked to say. */
static __always_inline bool tcp_autocorked(struct sock *sk, const struct sk_buff *skb,
					   u32 size_goal)
{
	if (!sk->autocork || skb->len >= size_goal || !skb_peek(&sk->tcp_rtx_queue) ||
	    refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) <= (int)skb->truesize)
		return false;
	tcp_tsq_throttle(sk);
	/* The exchange ordered this second look after the bit: a completion in between saw it. */
	return refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) > (int)skb->truesize;
}

static __always_inline int do_tcp_push(struct sock *sk, u32 size_goal, const enum skb_era era,
				       const enum tcp_trim trim)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (!skb)
		return 0;
	tcp_mark_push(skb);
	if (tcp_autocorked(sk, skb, size_goal))
		return 0;
	return tcp_write_xmit(era, trim, sk);
}

static __always_inline void do_tcp_tsq_handler(struct sock *sk, const enum skb_era era,
					       const enum tcp_trim trim)
{
	if (!(smp_load_acquire(&sk->sk_tsq_flags, SKB_C_WMEM) & TSQF_QUEUED))
		return;
	skb_store(&sk->sk_tsq_flags, 0UL,
		  SKB_C_WMEM); /* nobody else changes it while QUEUED is set */
	tcp_write_xmit(era, trim, sk);
	BUG_ON(refcount_dec_and_test(&sk->sk_wmem_alloc, SKB_C_WMEM));
}

/*
 * --- retransmit
 * --------------------------------------------------------------------------------------------
 */

/*
 * True (6.x) if the clone of SKB is still below TCP; then the completion is asked to say when it is
 * not.
 */
static __always_inline bool skb_still_in_host_queue(struct sock *sk, const struct sk_buff *skb)
{
	if (likely(!skb_fclone_busy(sk, skb)))
		return false;
	tcp_tsq_throttle(sk);
	/* The exchange ordered this second look after the bit: a completion in between saw it. */
	return skb_fclone_busy(sk, skb);
}

/* May SKB be sent again now? */
static __always_inline int tcp_may_retransmit(struct sock *sk, const struct sk_buff *skb,
					      const enum skb_era era)
{
	if (era >= ERA_6_1)
		return skb_still_in_host_queue(sk, skb) ? -EBUSY : 0;
	/* 3.4 only looks how much is below TCP in all. */
	if (refcount_read(&sk->sk_wmem_alloc, SKB_C_WMEM) >
	    min(sk->sk_wmem_queued + (sk->sk_wmem_queued >> 2), sk->sk_sndbuf))
		return -EAGAIN;
	return 0;
}

/*
 * How many bytes of SKB go out, MSS-sized pieces in the peer's window; negative: none. *SPACE is
 * what one segment may hold there.
 */
static __always_inline int tcp_retransmit_len(const struct sock *sk, const struct sk_buff *skb,
					      int segs, int *space)
{
	u32 seq = TCP_SKB_CB(skb)->seq, mss = sk->mss_cache, len = mss * segs;
	s32 avail = (s32)(sk->snd_una + sk->snd_wnd - seq);

	if (avail <= 0) {
		if (seq != sk->snd_una)
			return -EAGAIN;
		avail = mss;
	}
	*space = min((u32)avail, mss);
	if ((u32)avail < len)
		len = (u32)avail > mss ? avail - avail % mss : (u32)avail;
	return len;
}

/*
 * Trimming and joining move data on in its head; TCP's header would start where 16 bits cannot say
 * it. A private copy with the usual headroom goes instead. The kernel has this since 3.9; here it
 * holds in every era.
 */
static __always_inline int tcp_transmit_copy(struct sock *sk, struct sk_buff *skb,
					     const enum skb_era era)
{
	struct skb_list_node anchor = tcp_skb_tsorted_save(skb, era);
	struct sk_buff *copy = __pskb_copy(era, skb, MAX_TCP_HEADER);

	tcp_skb_tsorted_restore(skb, anchor, era);
	if (unlikely(!copy))
		return -ENOBUFS;
	return tcp_xmit_packet(sk, skb, copy, era);
}

static __always_inline int do_tcp_retransmit_skb(struct sock *sk, struct sk_buff *skb, int segs,
						 const enum skb_era era, const enum tcp_trim trim)
{
	struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
	int err, len, space;

	err = tcp_may_retransmit(sk, skb, era);
	if (err)
		return err;
	if (before(tcb->seq, sk->snd_una)) {
		int old = tcp_skb_pcount(era, skb);

		/* Lazily acknowledged bytes leave here at the latest. */
		if (!before(sk->snd_una, tcb->end_seq))
			return -EINVAL;
		if (tcp_trim_head(era, trim, sk, skb, sk->snd_una - tcb->seq))
			return -ENOMEM;
		/*
		 * None, unless an ACK found no memory to trim: its segments leave the counts now.
		 */
		tcp_adjust_pcount(sk, skb, old - tcp_skb_pcount(era, skb));
	}
	len = tcp_retransmit_len(sk, skb, era < ERA_6_1 ? 1 : segs, &space);
	if (len < 0)
		return len;
	if (skb->len > (u32)len) {
		if (tcp_fragment(era, trim, sk, &sk->tcp_rtx_queue, skb, len, sk->mss_cache))
			return -ENOMEM;
	} else {
		int old = tcp_skb_pcount(era, skb);

		if (era >= ERA_6_1 && skb_unclone_keeptruesize(era, skb))
			return -ENOMEM;
		tcp_set_skb_tso_segs(era, trim, skb, sk->mss_cache);
		tcp_adjust_pcount(sk, skb, old - tcp_skb_pcount(era, skb));
		if (skb->len < (u32)space)
			tcp_retrans_try_collapse(era, sk, skb, space);
	}
	err = unlikely(skb_headroom(skb) >= 0xFFFF) ? tcp_transmit_copy(sk, skb, era)
						    : tcp_transmit_skb(era, trim, sk, skb);
	tcb->sacked |= TCPCB_EVER_RETRANS;
	if (err < 0)
		return err;
	if (!(tcb->sacked & TCPCB_SACKED_RETRANS)) {
		tcb->sacked |= era < ERA_6_1 ? TCPCB_SACKED_RETRANS
					     : TCPCB_SACKED_RETRANS | TCPCB_REPAIRED;
		sk->retrans_out += tcp_skb_pcount(era, skb);
	}
	return 0;
}

#define INSTANTIATE(suffix, era, trim)                                                  \
	int tcp_transmit_skb_##suffix(struct sock *sk, struct sk_buff *skb)             \
	{                                                                               \
		return do_tcp_transmit_skb(sk, skb, era, trim);                         \
	}                                                                               \
	int tcp_write_xmit_##suffix(struct sock *sk)                                    \
	{                                                                               \
		return do_tcp_write_xmit(sk, era, trim);                                \
	}                                                                               \
	int tcp_push_##suffix(struct sock *sk, u32 size_goal)                           \
	{                                                                               \
		return do_tcp_push(sk, size_goal, era, trim);                           \
	}                                                                               \
	void tcp_tsq_handler_##suffix(struct sock *sk)                                  \
	{                                                                               \
		do_tcp_tsq_handler(sk, era, trim);                                      \
	}                                                                               \
	int tcp_retransmit_skb_##suffix(struct sock *sk, struct sk_buff *skb, int segs) \
	{                                                                               \
		return do_tcp_retransmit_skb(sk, skb, segs, era, trim);                 \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)
