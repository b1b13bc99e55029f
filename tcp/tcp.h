/* SPDX-License-Identifier: MIT */
/*
 * TCP's transmit side: build, send a clone, take ACKs, trim, retransmit.
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

#include "tcp/sock.h"
#include "tcp/tcp_cb.h"
#include "tcp/tx_ring.h"

#define TCP_DECLARE_ERA(ret, name, era, ...)   \
	ret name##_##era##_eager(__VA_ARGS__); \
	ret name##_##era##_offset_ack(__VA_ARGS__)
#define TCP_DECLARE(ret, name, ...)                   \
	TCP_DECLARE_ERA(ret, name, 3_4, __VA_ARGS__); \
	TCP_DECLARE_ERA(ret, name, 6_1, __VA_ARGS__); \
	TCP_DECLARE_ERA(ret, name, 6_12, __VA_ARGS__)

#define TCP_CALL(era, trim, name, ...)                                                   \
	((trim) == TRIM_EAGER ? ((era) == ERA_3_4   ? name##_3_4_eager(__VA_ARGS__)      \
				 : (era) == ERA_6_1 ? name##_6_1_eager(__VA_ARGS__)      \
						    : name##_6_12_eager(__VA_ARGS__))    \
			      : ((era) == ERA_3_4   ? name##_3_4_offset_ack(__VA_ARGS__) \
				 : (era) == ERA_6_1 ? name##_6_1_offset_ack(__VA_ARGS__) \
						    : name##_6_12_offset_ack(__VA_ARGS__)))

/* Expands M(suffix, era, trim) for each pair. */
#define TCP_FOR_EACH(M)                             \
	M(3_4_eager, ERA_3_4, TRIM_EAGER)           \
	M(3_4_offset_ack, ERA_3_4, TRIM_OFFSET_ACK) \
	M(6_1_eager, ERA_6_1, TRIM_EAGER)           \
	M(6_1_offset_ack, ERA_6_1, TRIM_OFFSET_ACK) \
	M(6_12_eager, ERA_6_12, TRIM_EAGER)         \
	M(6_12_offset_ack, ERA_6_12, TRIM_OFFSET_ACK)

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
 * is short; -EAGAIN if none could be.
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

/*
 * --- sending (tcp_output.c)
 * --------------------------------------------------------------------------------
 */

TCP_DECLARE(int, tcp_transmit_skb, struct sock *sk, struct sk_buff *skb);
TCP_DECLARE(int, tcp_write_xmit, struct sock *sk);
TCP_DECLARE(int, tcp_fragment, struct sock *sk, struct sk_buff_head *queue, struct sk_buff *skb,
	    u32 len, unsigned int mss);
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
 * Sends what the write queue holds, as far as the peer's window goes, and moves it to the
 * retransmit queue. Returns the number of sk_buffs sent. (An sk_buff that fits only in part waits
 * for more window.)
 */
static __always_inline int tcp_write_xmit(const enum skb_era era, const enum tcp_trim trim,
					  struct sock *sk)
{
	return TCP_CALL(era, trim, tcp_write_xmit, sk);
}

/*
 * Cuts SKB, which is in QUEUE, after LEN bytes; the rest follows it in a new sk_buff, both counted
 * in segments of MSS. 0; -EINVAL if LEN is not within SKB; -ENOMEM: queue, sequence numbers and
 * counters are as before (the head may have become private).
 */
static __always_inline int tcp_fragment(const enum skb_era era, const enum tcp_trim trim,
					struct sock *sk, struct sk_buff_head *queue,
					struct sk_buff *skb, u32 len, unsigned int mss)
{
	return TCP_CALL(era, trim, tcp_fragment, sk, queue, skb, len, mss);
}

/*
 * Sends SKB of the retransmit queue again, at most SEGS segments of it (era 3.4: one), without what
 * is acknowledged. 0; -EBUSY (6.x) if its clone is still below TCP; -EAGAIN if the window or (3.4)
 * what is below TCP forbids it; -ENOMEM, -ENOBUFS; -EINVAL if all of SKB is acknowledged.
 */
static __always_inline int tcp_retransmit_skb(const enum skb_era era, const enum tcp_trim trim,
					      struct sock *sk, struct sk_buff *skb, int segs)
{
	return TCP_CALL(era, trim, tcp_retransmit_skb, sk, skb, segs);
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
 * --- properties (tcp_check.c)
 * ------------------------------------------------------------------------------
 */

/*
 * Checks what must hold between any two calls: geometry of every queued sk_buff, sequence numbers
 * that join, charges that add up (A1), segments that add up (A6). 0, or -1 with a sentence in ERR.
 */
int tcp_check_sock(const enum skb_era era, const enum tcp_trim trim, const struct sock *sk,
		   char *err, size_t errlen);

const char *tcp_trim_name(enum tcp_trim trim);

#endif
