/* SPDX-License-Identifier: MIT */
/*
 * The socket lock where somebody waits, and the backlog as its owner works it off.
 *
 * Kernel: __lock_sock() and __release_sock(), net/core/sock.c, 6.12. The kernel's readers sleep in
 * an exclusive wait queue; here they sleep on a word that whoever lets go counts up, under slock,
 * so that no wake-up is lost between the look at `owned` and the sleep.
 */
#include "tcp/sock_lock.h"

#include "skb/futex.h"

__thread u64 sock_waited;

void __sk_slock_wait(struct sock *sk)
{
	int *locked = &sk->sk_lock.slock.locked;
	u64 since = sock_ticks();

	do {
		while (skb_load(locked, SKB_C_LOCK))
			cpu_relax();
	} while (xchg(locked, 1, SKB_C_LOCK));
	sock_waited += sock_ticks() - since;
}

/* slock is held by others most of the time that somebody owns the socket only if there is traffic:
 * the owner is looked for without it. */
void __lock_sock_spin(struct sock *sk)
{
	do {
		u64 since;

		sk_sunlock(sk);
		since = sock_ticks();
		while (sock_owned_by_user(sk))
			cpu_relax();
		sock_waited += sock_ticks() - since;
		sk_slock(sk);
	} while (sock_owned_by_user(sk));
}

void __lock_sock_sleep(struct sock *sk)
{
	socket_lock_t *l = &sk->sk_lock;

	skb_store(&l->waiters, l->waiters + 1, SKB_C_LOCK);
	do {
		unsigned int seq = skb_load(&l->wake_seq, SKB_C_LOCK);
		u64 since;

		sk_sunlock(sk);
		since = sock_ticks();
		futex_wait(&l->wake_seq, seq);
		sock_waited += sock_ticks() - since;
		sk_slock(sk);
	} while (sock_owned_by_user(sk));
	skb_store(&l->waiters, l->waiters - 1, SKB_C_LOCK);
}

void __sock_wake_owner(struct sock *sk)
{
	unsigned int *seq = &sk->sk_lock.wake_seq;

	skb_store(seq, *seq + 1, SKB_C_LOCK);
	futex_wake(seq, 1);
}

void __release_sock(struct sock *sk)
{
	struct sk_buff *skb;

	while ((skb = skb_load(&sk->sk_backlog.head, SKB_C_OTHER))) {
		skb_store(&sk->sk_backlog.head, NULL, SKB_C_OTHER);
		skb_store(&sk->sk_backlog.tail, NULL, SKB_C_OTHER);
		sk_sunlock(sk);
		do {
			struct sk_buff *next = skb->next;

			__builtin_prefetch(next);
			skb->next = NULL;
			sk->sk_backlog_rcv(sk, skb);
			skb = next;
		} while (skb);
		sk_slock(sk);
	}
	skb_store(&sk->sk_backlog.len, 0, SKB_C_OTHER);
}
