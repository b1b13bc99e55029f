/* SPDX-License-Identifier: MIT */
#include "skb/skb_check.h"
#include "tcp/tcp_rx.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static int bad(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -1;
}

/* Every sk_buff of the receive queue; *TRUESIZE becomes the sum of theirs. */
static int check_queue(const struct sock *sk, long *truesize, char *err, size_t errlen)
{
	const struct sk_buff_head *q = &sk->sk_receive_queue;
	const struct sk_buff *prev = (const struct sk_buff *)q;
	u32 n = 0, at = sk->copied_seq;

	*truesize = 0;
	for (const struct sk_buff *skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next, n++) {
		const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);
		bool fin = tcb->tcp_flags & TCPHDR_FIN;

		if (skb_check(skb, err, errlen))
			return -1;
		if (skb->prev != prev)
			return bad(err, errlen, "sk_buff %u is not linked both ways", n);
		if (tcb->end_seq != tcb->seq + skb->len + fin)
			return bad(err, errlen, "seq %u + len %u%s is not end_seq %u", tcb->seq,
				   skb->len, fin ? " + FIN" : "", tcb->end_seq);
		/* What was received twice may overlap, what was peeked at may lie before. */
		if (after(tcb->seq, at))
			return bad(err, errlen,
				   "sk_buff %u starts at %u: bytes from %u are missing", n,
				   tcb->seq, at);
		if (!after(tcb->end_seq, at))
			return bad(err, errlen, "sk_buff %u ends at %u, all before %u is read", n,
				   tcb->end_seq, at);
		if (skb->sk != sk || skb->destructor != sock_rfree)
			return bad(err, errlen, "sk_buff %u is not charged to the socket", n);
		if (skb->truesize < skb->len)
			return bad(err, errlen, "truesize %u is less than len %u", skb->truesize,
				   skb->len);
		prev = skb;
		at = tcb->end_seq;
		*truesize += skb->truesize;
	}
	if (n != q->qlen || q->prev != prev)
		return bad(err, errlen, "%u sk_buffs in a receive queue of %u", n, q->qlen);
	if (at != sk->rcv_nxt)
		return bad(err, errlen, "the receive queue ends at %u, rcv_nxt is %u", at,
			   sk->rcv_nxt);
	return 0;
}

static int check_backlog(const struct sock *sk, char *err, size_t errlen)
{
	const struct sk_buff *skb = sk->sk_backlog.head, *last = NULL;
	long truesize = 0;

	for (; skb; skb = skb->next) {
		if (skb_check(skb, err, errlen))
			return -1;
		if (skb->sk || skb->destructor)
			return bad(err, errlen, "an sk_buff of the backlog has an owner");
		truesize += skb->truesize;
		last = skb;
	}
	if (last != sk->sk_backlog.tail)
		return bad(err, errlen, "the backlog's tail is not its last sk_buff");
	if (truesize > sk->sk_backlog.len)
		return bad(err, errlen, "truesize in the backlog is %ld, its length says %d",
			   truesize, sk->sk_backlog.len);
	return 0;
}

int tcp_rx_check(const struct sock *sk, char *err, size_t errlen)
{
	int charged = sk->sk_rmem_alloc.counter;
	long truesize;

	if (check_queue(sk, &truesize, err, errlen) || check_backlog(sk, err, errlen))
		return -1;
	if (truesize != charged)
		return bad(err, errlen, "truesize in the receive queue is %ld, sk_rmem_alloc %d",
			   truesize, charged);
	if (sk->sk_forward_alloc < 0)
		return bad(err, errlen, "sk_forward_alloc is %d", sk->sk_forward_alloc);
	if (after(sk->rcv_wup, sk->rcv_nxt))
		return bad(err, errlen, "acknowledged up to %u, rcv_nxt is %u", sk->rcv_wup,
			   sk->rcv_nxt);
	return 0;
}

int tcp_rx_check_quiet(const struct sock *sk, char *err, size_t errlen)
{
	if (tcp_rx_check(sk, err, errlen))
		return -1;
	if (sk->sk_lock.slock.locked || sk->sk_lock.owned || sk->sk_lock.waiters)
		return bad(err, errlen, "slock %d, owned %d, %d waiters: somebody is in it",
			   sk->sk_lock.slock.locked, sk->sk_lock.owned, sk->sk_lock.waiters);
	if (sk->sk_receive_queue.qlen || sk->copied_seq != sk->rcv_nxt)
		return bad(err, errlen, "%u sk_buffs, %u bytes are not read",
			   sk->sk_receive_queue.qlen, sk->rcv_nxt - sk->copied_seq);
	if (sk->sk_backlog.head || sk->sk_backlog.len)
		return bad(err, errlen, "the backlog's length is %d", sk->sk_backlog.len);
	if (!llist_empty(&sk->defer_list))
		return bad(err, errlen, "sk_buffs are deferred and not freed");
	if (sk->sk_forward_alloc >= (int)PAGE_SIZE)
		return bad(err, errlen, "sk_forward_alloc is %d, more than a page",
			   sk->sk_forward_alloc);
	return 0;
}
