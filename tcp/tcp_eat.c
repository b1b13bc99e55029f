/* SPDX-License-Identifier: MIT */
/*
 * Letting go of what was read: tcp_eat_recv_skb() in its four variants, and the flush of the
 * socket's own list.
 *
 * Kernel: tcp_eat_recv_skb() and __sk_defer_free_flush(), net/ipv4/tcp.c, as of 5.16 (inline), 5.17
 * (sk_llist), 5.19 and 6.18 (the two that go home, whose lists are skb/skb_defer.h). The charge is
 * given back here, under the lock, in all of them: what frees the sk_buff later may not touch the
 * socket. Left out: dropping the route and the security path first, which the model's sk_buffs have
 * not.
 */
#include "skb/skb_defer.h"
#include "tcp/tcp_rx.h"

static __always_inline unsigned int do_defer_free_flush(struct sock *sk, const enum skb_era era)
{
	struct llist_node *node = llist_del_all(&sk->defer_list);
	unsigned int nr = 0;

	while (node) {
		struct sk_buff *skb = container_of(node, struct sk_buff, ll_node);

		/* Before the entry is gone; its first word is the list's link and its next. */
		node = node->next;
		__builtin_prefetch(node);
		skb->next = NULL;
		__kfree_skb(era, skb);
		nr++;
	}
	return nr;
}

static __always_inline void do_eat(struct sock *sk, struct sk_buff *skb, const enum skb_era era,
				   const enum tcp_defer defer)
{
	enum tcp_mib_item freed = TCP_MIB_FREE_LOCKED_OTHER;

	__skb_unlink(skb, &sk->sk_receive_queue);
	if (likely(skb->destructor == sock_rfree)) {
		sock_rfree(skb);
		skb->destructor = NULL;
		skb->sk = NULL;
		if (defer == TCP_DEFER_SK_LLIST) {
			if (skb_peek(&sk->sk_receive_queue) || !llist_empty(&sk->defer_list)) {
				net_inc_stats(sk->sk_net, TCP_MIB_DEFERRED);
				llist_add(&skb->ll_node, &sk->defer_list);
				return;
			}
			freed = TCP_MIB_FREE_LOCKED_LAST;
		}
	}
	if (defer == TCP_DEFER_CPU_LIST || defer == TCP_DEFER_NODE_LLIST) {
		const enum skb_defer how =
			defer == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST : SKB_DEFER_NODE_LLIST;

		net_inc_stats(sk->sk_net,
			      skb_attempt_defer_free(era, how, skb) ? TCP_MIB_DEFERRED : freed);
		return;
	}
	net_inc_stats(sk->sk_net, freed);
	__kfree_skb(era, skb);
}

/*
 * --- the end of a connection
 * --------------------------------------------------------------------------------------
 */

/* Frees what was received and not read. Not by the reader's path: this is not what is measured. */
static void purge(struct sock *sk, const enum skb_era era)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&sk->sk_receive_queue))) {
		__skb_unlink(skb, &sk->sk_receive_queue);
		__kfree_skb(era, skb);
	}
	skb_store(&sk->copied_seq, sk->rcv_nxt, SKB_C_OTHER);
}

static __always_inline void do_disconnect(struct sock *sk, const enum skb_era era,
					  const enum tcp_defer defer)
{
	inet_unhash(sk);
	skb_store(&sk->skc_state, TCP_CLOSE, SKB_C_OTHER); /* a reader that waits looks at it */
	sk->sk_shutdown |= RCV_SHUTDOWN;
	sk->icsk_ack.pending = 0;
	sk->pred_flags = 0;
	purge(sk, era);
	if (defer == TCP_DEFER_SK_LLIST)
		net_flushed(sk->sk_net, TCP_MIB_FREE_LOCKED_END, sk_defer_free_flush(era, sk));
	sk->sk_data_ready(sk);
}

static __always_inline void do_rx_destroy(struct sock *sk, const enum skb_era era)
{
	BUG_ON(sk->sk_hashed || !sock_unused(sk) || sock_owned_by_user(sk));
	/* Whoever reads flushes behind itself, and whoever lets go of a socket works off its
	 * backlog. */
	BUG_ON(!llist_empty(&sk->defer_list));
	BUG_ON(sk->sk_backlog.head || sk->sk_backlog.len);
	sk->skc_state = TCP_CLOSE;
	purge(sk, era);
	BUG_ON(atomic_read(&sk->sk_rmem_alloc, SKB_C_RMEM));
}

#define INSTANTIATE_ERA(suffix, era)                                 \
	unsigned int __sk_defer_free_flush_##suffix(struct sock *sk) \
	{                                                            \
		return do_defer_free_flush(sk, era);                 \
	}                                                            \
	void tcp_rx_destroy_##suffix(struct sock *sk)                \
	{                                                            \
		do_rx_destroy(sk, era);                              \
	}
TCP_RX_FOR_EACH_ERA(INSTANTIATE_ERA)

#define INSTANTIATE(suffix, era, defer)                                      \
	void tcp_eat_recv_skb_##suffix(struct sock *sk, struct sk_buff *skb) \
	{                                                                    \
		do_eat(sk, skb, era, defer);                                 \
	}                                                                    \
	void tcp_disconnect_##suffix(struct sock *sk)                        \
	{                                                                    \
		do_disconnect(sk, era, defer);                               \
	}
TCP_RX_FOR_EACH(INSTANTIATE)
