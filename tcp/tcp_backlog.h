/* SPDX-License-Identifier: MIT */
/*
 * The backlog: packets that came while a reader owned the socket.
 *
 * Kernel: sk_add_backlog() in include/net/sock.h, tcp_add_backlog() in net/ipv4/tcp_ipv4.c,
 * __sk_flush_backlog() in net/core/sock.c, 6.12 (6.1 has the same rules).
 *
 *   who                               slock          function
 *   a softirq that finds an owner     held           sk_add_backlog(), tcp_add_backlog()
 *   the owner, as it lets go          held           __release_sock() (sock_lock.h)
 *   the owner, on its way             not held       __sk_flush_backlog()
 *
 * A packet in the backlog is charged to nothing yet but counts in sk_backlog.len, which only ever
 * grows until the owner has worked off all of it: at least the sum of truesize that waits. It is
 * processed exactly once, in the order of arrival, by the owner.
 */
#ifndef TCP_TCP_BACKLOG_H
#define TCP_TCP_BACKLOG_H

#include "tcp/inet_hashtables.h"
#include "tcp/sock_lock.h"
#include "tcp/tcp_defer.h"

/*
 * How many bytes of truesize may wait, together with what the receive queue holds: both halves of
 * the sender's window and room for what is small.
 */
static __always_inline u32 tcp_backlog_limit(const struct sock *sk)
{
	u64 limit = ((u64)(u32)sk->sk_rcvbuf << 1) + ((u32)sk->sk_sndbuf >> 1) + 64 * 1024;

	return min(limit, (u64)~0U);
}

/* True if backlog and receive queue together are beyond LIMIT. SKB's own size does not count. */
static __always_inline bool sk_rcvqueues_full(const struct sock *sk, u32 limit)
{
	u32 size = (u32)skb_load(&sk->sk_backlog.len, SKB_C_OTHER) +
		   (u32)atomic_read(&sk->sk_rmem_alloc, SKB_C_RMEM);

	return size > limit;
}

/*
 * Appends SKB, which is then the backlog's. 0; -ENOBUFS if LIMIT was exceeded before SKB; -ENOMEM
 * for one from the emergency reserves: SKB stays the caller's and nothing has changed.
 */
static __always_inline int sk_add_backlog(struct sock *sk, struct sk_buff *skb, u32 limit)
{
	struct sk_buff *tail;

	if (unlikely(sk_rcvqueues_full(sk, limit)))
		return -ENOBUFS;
	if (unlikely(skb->pfmemalloc))
		return -ENOMEM;
	tail = skb_load(&sk->sk_backlog.tail, SKB_C_OTHER);
	skb->next = NULL;
	if (tail)
		tail->next = skb;
	else
		skb_store(&sk->sk_backlog.head, skb, SKB_C_OTHER);
	skb_store(&sk->sk_backlog.tail, skb, SKB_C_OTHER);
	skb_store(&sk->sk_backlog.len,
		  skb_load(&sk->sk_backlog.len, SKB_C_OTHER) + (int)skb->truesize, SKB_C_OTHER);
	return 0;
}

TCP_RX_ERA_DECLARE(bool, tcp_add_backlog, struct sock *sk, struct sk_buff *skb);

/*
 * SKB, data at its TCP header and control block filled, has come for a socket that a reader owns.
 * Condenses it, then makes it part of the backlog's last packet if it continues that one and its
 * header says the same, even beyond the limit (at most MAX_SKB_FRAGS frags bound that); else
 * appends it. False: SKB is the backlog's, slock is still held. True: it does not fit; the drop is
 * counted, SLOCK IS RELEASED, and SKB is the caller's to discard.
 */
static __always_inline bool tcp_add_backlog(const enum skb_era era, struct sock *sk,
					    struct sk_buff *skb)
{
	return TCP_RX_ERA_CALL(era, tcp_add_backlog, sk, skb);
}

/* The owner works off the backlog without giving the socket back. */
void __sk_flush_backlog(struct sock *sk);

/* A hint for the owner: something waits. */
static __always_inline bool sk_backlog_pending(const struct sock *sk)
{
	return skb_load(&sk->sk_backlog.tail, SKB_C_OTHER) != NULL;
}

#endif
