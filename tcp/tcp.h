/* SPDX-License-Identifier: MIT */
/*
 * TCP's transmit side: build, send a clone, take ACKs and SACKs, trim, cut, join, retransmit.
 *
 * Every function takes two constants: the era, and how partial ACKs trim. With both constant a call
 * is a direct call of one function per pair (tcp_ack_6_12_eager, ...).
 *
 * All functions here are for the holder of the socket lock; at the same time any CPU may complete
 * what was transmitted (tx_ring_complete()), which touches sk_wmem_alloc, sk_tsq_flags and the
 * clones only.
 */
#ifndef TCP_TCP_H
#define TCP_TCP_H

#include "skb/mptcp_ext.h"
#include "skb/skb_zcopy.h"
#include "tcp/sock.h"
#include "tcp/tcp_cb.h"
#include "tcp/tx_ring.h"

#define TCP_DECLARE_ERA(ret, name, era, ...)   \
	ret name##_##era##_eager(__VA_ARGS__); \
	ret name##_##era##_offset_ack(__VA_ARGS__)
#define TCP_DECLARE_SPLIT(ret, name, era, ...)        \
	ret name##_##era##_split_posted(__VA_ARGS__); \
	ret name##_##era##_split_fixed(__VA_ARGS__)
#define TCP_DECLARE(ret, name, ...)                     \
	TCP_DECLARE_ERA(ret, name, 3_4, __VA_ARGS__);   \
	TCP_DECLARE_ERA(ret, name, 6_1, __VA_ARGS__);   \
	TCP_DECLARE_ERA(ret, name, 6_12, __VA_ARGS__);  \
	TCP_DECLARE_SPLIT(ret, name, 6_1, __VA_ARGS__); \
	TCP_DECLARE_SPLIT(ret, name, 6_12, __VA_ARGS__)

#define TCP_CALL_ERA(era, trim, name, ...)                   \
	((era) == ERA_3_4   ? name##_3_4_##trim(__VA_ARGS__) \
	 : (era) == ERA_6_1 ? name##_6_1_##trim(__VA_ARGS__) \
			    : name##_6_12_##trim(__VA_ARGS__))
#define TCP_CALL_SPLIT(era, split, name, ...) \
	((era) == ERA_6_1 ? name##_6_1_##split(__VA_ARGS__) : name##_6_12_##split(__VA_ARGS__))
#define TCP_CALL(era, trim, name, ...)                                                  \
	((trim) == TRIM_EAGER	     ? TCP_CALL_ERA(era, eager, name, __VA_ARGS__)      \
	 : (trim) == TRIM_OFFSET_ACK ? TCP_CALL_ERA(era, offset_ack, name, __VA_ARGS__) \
	 : (trim) == TRIM_EAGER_SPLIT_POSTED                                            \
		 ? TCP_CALL_SPLIT(era, split_posted, name, __VA_ARGS__)                 \
		 : TCP_CALL_SPLIT(era, split_fixed, name, __VA_ARGS__))

/* Expands M(suffix, era, trim) for each pair of era and way to trim. */
#define TCP_FOR_EACH(M)                             \
	M(3_4_eager, ERA_3_4, TRIM_EAGER)           \
	M(3_4_offset_ack, ERA_3_4, TRIM_OFFSET_ACK) \
	M(6_1_eager, ERA_6_1, TRIM_EAGER)           \
	M(6_1_offset_ack, ERA_6_1, TRIM_OFFSET_ACK) \
	M(6_12_eager, ERA_6_12, TRIM_EAGER)         \
	M(6_12_offset_ack, ERA_6_12, TRIM_OFFSET_ACK)
/* For those that TCP_FOR_EACH() has, and for each way to split MPTCP's map. */
#define TCP_FOR_EACH_SPLIT(M)                                   \
	TCP_FOR_EACH(M)                                         \
	M(6_1_split_posted, ERA_6_1, TRIM_EAGER_SPLIT_POSTED)   \
	M(6_1_split_fixed, ERA_6_1, TRIM_EAGER_SPLIT_FIXED)     \
	M(6_12_split_posted, ERA_6_12, TRIM_EAGER_SPLIT_POSTED) \
	M(6_12_split_fixed, ERA_6_12, TRIM_EAGER_SPLIT_FIXED)

/*
 * --- building (tcp_sendmsg.c)
 * ------------------------------------------------------------------------------
 */

SKB_ERA_DECLARE(int, tcp_sendmsg, struct sock *sk, const void *from, u32 len);
SKB_ERA_DECLARE(int, tcp_sendmsg_in_place, struct sock *sk, u32 len);

/* The largest multiple of the MSS that one sk_buff takes, at least one: 65160 bytes at MSS 1448. */
static __always_inline u32 tcp_size_goal(const struct sock *sk)
{
	u32 segs = sk->gso_max_size / sk->mss_cache;

	return segs > 1 ? segs * sk->mss_cache : sk->mss_cache;
}

/*
 * Queues LEN bytes of FROM for sending: fills the last sk_buff of the write queue up to the size
 * goal, then new ones. Era 3.4 puts the first bytes of each into its head, later eras all into page
 * frags. Returns the bytes queued, which are fewer than LEN when the send buffer is full or memory
 * is short; -EAGAIN if none could be; -EPIPE behind a FIN.
 */
static __always_inline int tcp_sendmsg(const enum skb_era era, struct sock *sk, const void *from,
				       u32 len)
{
	return SKB_ERA_CALL(era, tcp_sendmsg, sk, from, len);
}

/* The same without the copy: the bytes that lie in the pages and heads are the payload. */
static __always_inline int tcp_sendmsg_in_place(const enum skb_era era, struct sock *sk, u32 len)
{
	return SKB_ERA_CALL(era, tcp_sendmsg_in_place, sk, len);
}

SKB_ERA_DECLARE(struct sk_buff *, tcp_build_frag, struct sock *sk, u32 size_goal, struct page *page,
		u32 offset, u32 *size);

/*
 * Queues bytes that lie in a page already: at most *SIZE from OFFSET of PAGE go to the last sk_buff
 * of the write queue, as many as it has room for below SIZE_GOAL; to a new one if it has none, has
 * no slot left or ends a record. *SIZE becomes how many. Returns the sk_buff that has them, with
 * one reference more on PAGE unless its last frag grew. NULL if the send buffer is full or memory
 * is short: no byte was queued. Kernel: tcp_build_frag(), net/ipv4/tcp.c, 5.11; later kernels have
 * the same in mptcp_sendmsg_frag().
 */
static __always_inline struct sk_buff *tcp_build_frag(const enum skb_era era, struct sock *sk,
						      u32 size_goal, struct page *page, u32 offset,
						      u32 *size)
{
	return SKB_ERA_CALL(era, tcp_build_frag, sk, size_goal, page, offset, size);
}

/* What SKB ends with is to be handed up at once. */
static __always_inline void tcp_mark_push(struct sk_buff *skb)
{
	TCP_SKB_CB(skb)->tcp_flags |= TCPHDR_PSH;
}

int tcp_sendmsg_zerocopy_6_1(struct sock *sk, const struct skb_user_pages *from, u32 len,
			     struct ubuf_info *uarg);
int tcp_sendmsg_zerocopy_6_12(struct sock *sk, const struct skb_user_pages *from, u32 len,
			      struct ubuf_info *uarg);

/*
 * The same without a copy: the frags lie in the user's pages, which UARG stands for (MSG_ZEROCOPY).
 * Each sk_buff that got bytes holds UARG, so that its user is told when the last of them is gone;
 * the caller has a reference and keeps it. An sk_buff holds one ubuf_info: bytes of another one
 * start a new sk_buff. One that holds nothing else is charged for shell and head alone until
 * tcp_sendmsg() adds to it. Returns as tcp_sendmsg() does; -EOPNOTSUPP in era 3.4, which has none.
 * Kernel: tcp_sendmsg_locked() and skb_zerocopy_iter_stream(), 6.1 and 6.12.
 */
static __always_inline int tcp_sendmsg_zerocopy(const enum skb_era era, struct sock *sk,
						const struct skb_user_pages *from, u32 len,
						struct ubuf_info *uarg)
{
	return era == ERA_3_4	? -EOPNOTSUPP
	       : era == ERA_6_1 ? tcp_sendmsg_zerocopy_6_1(sk, from, len, uarg)
				: tcp_sendmsg_zerocopy_6_12(sk, from, len, uarg);
}

SKB_ERA_DECLARE(int, tcp_send_fin, struct sock *sk);

/*
 * Ends the stream: the last sk_buff of the write queue takes the FIN, an empty one if there is
 * none. Nothing can be queued behind it (tcp_sendmsg() says -EPIPE). 0; -ENOMEM and nothing has
 * changed; -EPIPE if it was ended before. Kernel: tcp_send_fin(), net/ipv4/tcp_output.c.
 */
static __always_inline int tcp_send_fin(const enum skb_era era, struct sock *sk)
{
	return SKB_ERA_CALL(era, tcp_send_fin, sk);
}

/*
 * --- sending (tcp_output.c)
 * --------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_transmit_skb, struct sock *sk, struct sk_buff *skb);
TCP_DECLARE(int, tcp_write_xmit, struct sock *sk);
TCP_DECLARE(int, tcp_retransmit_skb, struct sock *sk, struct sk_buff *skb, int segs);

/*
 * Sends a clone of SKB into the socket's ring; a private copy (pskb_copy) if an earlier clone still
 * shares the head. 0; NET_XMIT_DROP if the ring was full and the clone was dropped, which TCP takes
 * for a loss on the way; -ENOBUFS if no clone was to be had, and nothing has changed.
 */
static __always_inline int tcp_transmit_skb(const enum skb_era era, const enum tcp_trim trim,
					    struct sock *sk, struct sk_buff *skb)
{
	return TCP_CALL(era, trim, tcp_transmit_skb, sk, skb);
}
#define NET_XMIT_DROP 1

/*
 * SKB, the head of the write queue, was sent: from now on it waits for its ACK, in the retransmit
 * queue. Kernel: tcp_event_new_data_sent(), net/ipv4/tcp_output.c.
 */
static __always_inline void tcp_event_new_data_sent(struct sock *sk, struct sk_buff *skb,
						    const enum skb_era era)
{
	sk->snd_nxt = TCP_SKB_CB(skb)->end_seq;
	__skb_unlink(skb, &sk->sk_write_queue);
	__skb_queue_tail(&sk->tcp_rtx_queue, skb);
	sk->packets_out += tcp_skb_pcount(era, skb);
}

/*
 * Segments on their way to the peer, as far as is known: those sent, less those that it told of or
 * that are taken for lost, and those sent again. Kernel: include/net/tcp.h.
 */
static __always_inline u32 tcp_packets_in_flight(const struct sock *sk)
{
	return sk->packets_out - (sk->sacked_out + sk->lost_out) + sk->retrans_out;
}

/*
 * Sends what the write queue holds, as far as the peer's window and the congestion window go, and
 * moves it to the retransmit queue. An sk_buff of which they have room for at least one segment, but
 * not for all, is cut behind the last segment that fits, and the rest waits; without memory for the
 * cut all of it waits. Where larger packets are tried (tcp_mtu_probe.h), a probe goes first, or all
 * waits for it. Returns the number of sk_buffs sent.
 */
static __always_inline int tcp_write_xmit(const enum skb_era era, const enum tcp_trim trim,
					  struct sock *sk)
{
	return TCP_CALL(era, trim, tcp_write_xmit, sk);
}

/*
 * Sends SKB of the retransmit queue again, at most SEGS segments of it (era 3.4: one), without what
 * is acknowledged; if less than a segment is left of it, small ones behind it join it first
 * (tcp_retrans_try_collapse()). A head whose headroom is beyond what csum_start can say stays
 * behind, and a copy with the usual headroom goes. 0; -EBUSY (6.x) if its clone is still below TCP;
 * -EAGAIN if the window or (3.4) what is below TCP forbids it; -ENOMEM, -ENOBUFS; -EINVAL if all of
 * SKB is acknowledged.
 */
static __always_inline int tcp_retransmit_skb(const enum skb_era era, const enum tcp_trim trim,
					      struct sock *sk, struct sk_buff *skb, int segs)
{
	return TCP_CALL(era, trim, tcp_retransmit_skb, sk, skb, segs);
}

TCP_DECLARE(int, tcp_push, struct sock *sk, u32 size_goal);

/*
 * The end of a write: marks the last sk_buff of the write queue and sends what the window takes.
 * With sk->autocork one below SIZE_GOAL waits while another is below TCP, and the completion says
 * when it may go (tcp_tsq_handler()). Returns the number of sk_buffs sent. Kernel: tcp_push(),
 * net/ipv4/tcp.c; Nagle's rule is left out.
 */
static __always_inline int tcp_push(const enum skb_era era, const enum tcp_trim trim,
				    struct sock *sk, u32 size_goal)
{
	return TCP_CALL(era, trim, tcp_push, sk, size_goal);
}

TCP_DECLARE(void, tcp_tsq_handler, struct sock *sk);

/*
 * What a completion asked for when the socket waited for it (a retransmission that got -EBUSY):
 * sends what the write queue holds and drops the completion's hold on the socket. Nothing if no
 * completion asked.
 */
static __always_inline void tcp_tsq_handler(const enum skb_era era, const enum tcp_trim trim,
					    struct sock *sk)
{
	TCP_CALL(era, trim, tcp_tsq_handler, sk);
}

/*
 * --- cutting (tcp_fragment.c)
 * ------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_fragment, struct sock *sk, struct sk_buff_head *queue, struct sk_buff *skb,
	    u32 len, unsigned int mss);
TCP_DECLARE(int, tso_fragment, struct sock *sk, struct sk_buff *skb, u32 len, unsigned int mss);

/*
 * Cuts SKB, which is in QUEUE, after LEN bytes; the rest follows it in a new sk_buff, both counted
 * in segments of MSS. A FIN goes with the rest. 0; -EINVAL if LEN is beyond SKB; -ENOMEM: queue,
 * sequence numbers and counters are as before (the head may have become private). Since 6.1 -ENOMEM
 * is also the answer for one in the middle of a retransmit queue that holds twice what the send
 * buffer allows. BUG for an SKB with a frag_list, which a cut would leave behind. Kernel:
 * tcp_fragment(), net/ipv4/tcp_output.c.
 */
static __always_inline int tcp_fragment(const enum skb_era era, const enum tcp_trim trim,
					struct sock *sk, struct sk_buff_head *queue,
					struct sk_buff *skb, u32 len, unsigned int mss)
{
	return TCP_CALL(era, trim, tcp_fragment, sk, queue, skb, len, mss);
}

/*
 * The same for an SKB of the write queue that was never sent: it has no clone, no tag, and is in no
 * count. Up to 6.1 one with linear bytes is left to tcp_fragment(); later there is none (BUG). 0;
 * -EINVAL if LEN is not within SKB; -ENOMEM and nothing has changed. Kernel: tso_fragment(),
 * net/ipv4/tcp_output.c.
 */
static __always_inline int tso_fragment(const enum skb_era era, const enum tcp_trim trim,
					struct sock *sk, struct sk_buff *skb, u32 len,
					unsigned int mss)
{
	return TCP_CALL(era, trim, tso_fragment, sk, skb, len, mss);
}

/*
 * SKB stands for DECR segments fewer (negative: more) in every count of the retransmit queue that
 * it is in. Kernel: tcp_adjust_pcount(), net/ipv4/tcp_output.c.
 */
static __always_inline void tcp_adjust_pcount(struct sock *sk, const struct sk_buff *skb, int decr)
{
	u8 sacked = TCP_SKB_CB(skb)->sacked;

	sk->packets_out -= decr;
	if (sacked & TCPCB_SACKED_ACKED)
		sk->sacked_out -= decr;
	if (sacked & TCPCB_SACKED_RETRANS)
		sk->retrans_out -= decr;
	if (sacked & TCPCB_LOST)
		sk->lost_out -= decr;
}

/*
 * --- joining (tcp_collapse.c)
 * ------------------------------------------------------------------------------
 */

SKB_ERA_DECLARE(int, tcp_retrans_try_collapse, struct sock *sk, struct sk_buff *to, int space);

/* True if bytes may be added to the end of SKB: no record ends there. */
static __always_inline bool tcp_skb_can_collapse_to(const struct sk_buff *skb)
{
	return !TCP_SKB_CB(skb)->eor;
}

/*
 * True if what FROM holds may follow the bytes of TO in one sk_buff: no record ends there, one map
 * of MPTCP covers both, and pages are charged for both or for neither.
 */
static __always_inline bool tcp_skb_can_collapse(const struct sk_buff *to,
						 const struct sk_buff *from)
{
	return likely(tcp_skb_can_collapse_to(to) && mptcp_skb_can_collapse(to, from) &&
		      skb_pure_zcopy_same(to, from));
}

/*
 * True if the first LEN bytes of the write queue may go as one packet, to probe the path's MTU:
 * every sk_buff of which it takes some may follow the one before. Kernel:
 * tcp_can_coalesce_send_queue_head(), net/ipv4/tcp_output.c, which asked for less until 2022 and
 * then sent probes over two maps.
 */
bool tcp_can_coalesce_send_queue_head(const struct sock *sk, u32 len);

/*
 * skb_shift() of LEN bytes in PCOUNT segments, unless TO would hold 65535 * 8 bytes or more, or
 * more than 65535 segments: with the smallest MSS more would not fit its 16-bit count. Returns LEN,
 * or 0 and no byte has moved. The kernel has the limits since 2019; here they hold in every era.
 */
static __always_inline int tcp_skb_shift(const enum skb_era era, struct sk_buff *to,
					 struct sk_buff *from, int pcount, u32 len)
{
	if (unlikely(to->len + len >= TCP_MAX_SEGS * TCP_MIN_GSO_SIZE))
		return 0;
	if (unlikely(tcp_skb_pcount(era, to) + pcount > TCP_MAX_SEGS))
		return 0;
	return skb_shift(era, to, from, len);
}

/*
 * Joins to TO, which is about to be sent again, the sk_buffs that follow it in the retransmit
 * queue, while all are single segments, not SACKed, without a clone below TCP, and fit into SPACE
 * bytes and the window. Bytes move by skb_shift() (6.12), by a copy into the tailroom of TO (3.4,
 * which looks only at sk_buffs without frags), by the one that can (6.1). Returns how many joined.
 * Without memory fewer join; what did not is as before (its head may have become private). Kernel:
 * tcp_retrans_try_collapse() and tcp_collapse_retrans(), net/ipv4/tcp_output.c.
 */
static __always_inline int tcp_retrans_try_collapse(const enum skb_era era, struct sock *sk,
						    struct sk_buff *to, int space)
{
	return SKB_ERA_CALL(era, tcp_retrans_try_collapse, sk, to, space);
}

/*
 * --- trimming (tcp_trim.c)
 * ---------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_trim_head, struct sock *sk, struct sk_buff *skb, u32 len);

/*
 * Removes the first LEN bytes of SKB, which has more than that, and gives their charge back: LEN
 * bytes under 3.4 and 6.12, those that lay in frags under 6.1. The head becomes private first if a
 * clone shares it. 0, or -ENOMEM and nothing has changed.
 */
static __always_inline int tcp_trim_head(const enum skb_era era, const enum tcp_trim trim,
					 struct sock *sk, struct sk_buff *skb, u32 len)
{
	return TCP_CALL(era, trim, tcp_trim_head, sk, skb, len);
}

/*
 * Puts the frags that LEN bytes from the start cover, after the linear part. Returns the bytes that
 * came out of frags. A linear part longer than LEN is all that is touched.
 */
u32 __pskb_trim_head(struct sk_buff *skb, u32 len);

/*
 * --- ACKs (tcp_input.c)
 * ------------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_ack, struct sock *sk, u32 ack);

/*
 * The peer has everything before ACK. Frees what is acknowledged whole, trims or notes what is in
 * part. Returns the segments that are newly acknowledged; 0 for an old ACK; -EINVAL for one beyond
 * what was sent, and nothing changes.
 */
static __always_inline int tcp_ack(const enum skb_era era, const enum tcp_trim trim,
				   struct sock *sk, u32 ack)
{
	return TCP_CALL(era, trim, tcp_ack, sk, ack);
}

/*
 * --- SACKs (tcp_sack.c)
 * ------------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_sack, struct sock *sk, u32 start, u32 end);
SKB_ERA_DECLARE(void, tcp_mark_skb_lost, struct sock *sk, struct sk_buff *skb);

/*
 * The peer has what lies from START to END, too. Tags it in the retransmit queue: an sk_buff that
 * the block covers in part is cut at a segment's boundary, so that only whole segments (or the rest
 * of an sk_buff) are tagged; what follows an sk_buff that is SACKed already is shifted into it
 * where that can be. Returns the segments that are newly SACKed; -EINVAL for a block that is empty,
 * does not start behind snd_una or ends beyond what was sent, and nothing changes. Where memory is
 * short for a cut the walk ends: what lies before is tagged, and a later SACK goes on.
 *
 * Lazy trimming: an sk_buff with noted bytes is trimmed before it is cut or takes part in a shift,
 * at the price of a private head if its clone lives. Cuts count segments from seq, and after a
 * shift nothing could say where the noted bytes end.
 */
static __always_inline int tcp_sack(const enum skb_era era, const enum tcp_trim trim,
				    struct sock *sk, u32 start, u32 end)
{
	return TCP_CALL(era, trim, tcp_sack, sk, start, end);
}

/*
 * SKB of the retransmit queue is taken for lost; if it was sent again and that was lost too, it is
 * no longer counted as sent again. Nothing for one that is SACKed. Kernel: tcp_mark_skb_lost(),
 * net/ipv4/tcp_input.c.
 */
static __always_inline void tcp_mark_skb_lost(const enum skb_era era, struct sock *sk,
					      struct sk_buff *skb)
{
	SKB_ERA_CALL(era, tcp_mark_skb_lost, sk, skb);
}

/*
 * --- properties (tcp_check.c)
 * ------------------------------------------------------------------------------
 */

/*
 * Checks what must hold between any two calls: geometry of every queued sk_buff, sequence numbers
 * that join, charges that add up (A1), segments that add up (A6), in all and by tag. 0, or -1 with
 * a sentence in ERR.
 */
int tcp_check_sock(const enum skb_era era, const enum tcp_trim trim, const struct sock *sk,
		   char *err, size_t errlen);

const char *tcp_trim_name(enum tcp_trim trim);

#endif
