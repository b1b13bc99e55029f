/* SPDX-License-Identifier: MIT */
/*
 * The socket lock: a spinlock that softirqs take, and an ownership that readers take.
 *
 * Kernel: lock_sock_nested(), release_sock(), lock_sock_fast(), bh_lock_sock() in
 * include/net/sock.h and net/core/sock.c, 6.12. A reader takes slock only to note that it owns the
 * socket, works without it, and takes it again to give the socket back. A softirq holds slock while
 * it delivers; if it finds the socket owned it puts its packet into the backlog, which the owner
 * works off before it lets go. Whoever holds slock of a socket that nobody owns, and whoever owns
 * it, is called the holder of the socket lock.
 *
 *                    lock_sock  release_sock  lock_sock_fast  unlock_sock_fast  bh_lock_sock
 *   who              reader     the owner     reader          after the fast    softirq
 *   RMW              1          1             1               0 or 1            1
 *   slock after      free       free          held or free    free              held
 *   owned after      yes        no            no or yes       no                as before
 *   may wait for     both       slock         both            slock             slock
 *
 * All of them are safe on any CPUs at once, for a socket that the caller holds a reference on or
 * found under RCU. The order of slock's takers is whoever comes first; the kernel's queued lock is
 * fair, which two CPUs do not notice.
 *
 * Waiting for slock spins, as in the kernel. Waiting for the owner is the caller's choice, a
 * constant: SOCK_WAIT_SLEEP as the kernel does it, SOCK_WAIT_SPIN for timed cases, whose roles have
 * CPUs of their own. What a thread spends in either is added to its sock_waited; the uncontended
 * path neither reads a clock nor tests for it.
 *
 * Left out: release_cb (the model's timers and TSQ never find the socket owned), lockdep, "BH off":
 * a CPU's softirq is a call of its own thread and comes between no two of its instructions.
 */
#ifndef TCP_SOCK_LOCK_H
#define TCP_SOCK_LOCK_H

#include "tcp/sock.h"

#include <time.h>

/* How a reader waits: for the owner of a socket, and for data. */
enum sock_wait { SOCK_WAIT_SPIN, SOCK_WAIT_SLEEP, SOCK_WAIT_NR };

/*
 * Ticks that the calling thread has waited for sockets, spinning or asleep: for slock, for an owner,
 * for data. Only ever grows. A benchmark books what a span added to it as waiting. The ticks are
 * those of sock_ticks().
 */
extern __thread u64 sock_waited;

/* The cheapest clock there is; its unit is the machine's, and the same as the benchmarks'. */
static __always_inline u64 sock_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
#endif
}

/* sock_lock.c: the parts that wait, and what is done for those who do. */
void __sk_slock_wait(struct sock *sk);
void __lock_sock_spin(struct sock *sk);
void __lock_sock_sleep(struct sock *sk);
void __sock_wake_owner(struct sock *sk);

/*
 * Works off the backlog: takes all of it, drops slock, gives each packet in the order of its
 * arrival to sk_backlog_rcv(), takes slock again, until nothing has come meanwhile. Then, once,
 * sk_backlog.len becomes 0: until then what was worked off counts against the limit, so that a
 * flood cannot keep the owner here for ever. For the owner, with slock held. Kernel:
 * __release_sock(), net/core/sock.c; it yields every 16 packets, which a CPU of the model does not.
 */
void __release_sock(struct sock *sk);

/* Takes slock, whoever owns the socket. */
static __always_inline void sk_slock(struct sock *sk)
{
	skb_event(SKB_EV_LOCK, &sk->sk_lock.slock, SKB_C_LOCK);
	if (unlikely(xchg(&sk->sk_lock.slock.locked, 1, SKB_C_LOCK)))
		__sk_slock_wait(sk);
}

static __always_inline void sk_sunlock(struct sock *sk)
{
	spin_unlock(&sk->sk_lock.slock, SKB_C_LOCK);
}

/* True while a reader owns the socket. For the holder of slock, and for that reader. */
static __always_inline bool sock_owned_by_user(const struct sock *sk)
{
	return skb_load(&sk->sk_lock.owned, SKB_C_LOCK);
}

/* For a softirq: what it may do then depends on sock_owned_by_user(). */
static __always_inline void bh_lock_sock(struct sock *sk)
{
	sk_slock(sk);
}

static __always_inline void bh_unlock_sock(struct sock *sk)
{
	sk_sunlock(sk);
}

/* Drops slock until nobody owns the socket; slock is held before and after. */
static __always_inline void __lock_sock(const enum sock_wait wait, struct sock *sk)
{
	if (wait == SOCK_WAIT_SPIN)
		__lock_sock_spin(sk);
	else
		__lock_sock_sleep(sk);
}

/* The caller owns the socket when this returns. Not for one that owns it already: it would wait for
 * itself. */
static __always_inline void lock_sock(const enum sock_wait wait, struct sock *sk)
{
	sk_slock(sk);
	if (unlikely(sock_owned_by_user(sk)))
		__lock_sock(wait, sk);
	skb_store(&sk->sk_lock.owned, 1, SKB_C_LOCK);
	sk_sunlock(sk);
}

/*
 * The owner works off the backlog and gives the socket back; one of those who sleep for it is
 * woken.
 */
static __always_inline void release_sock(struct sock *sk)
{
	sk_slock(sk);
	if (skb_load(&sk->sk_backlog.tail, SKB_C_OTHER))
		__release_sock(sk);
	skb_store(&sk->sk_lock.owned, 0, SKB_C_LOCK);
	if (unlikely(skb_load(&sk->sk_lock.waiters, SKB_C_LOCK)))
		__sock_wake_owner(sk);
	sk_sunlock(sk);
}

/*
 * For short work that does not wait: takes slock and keeps it if nobody owns the socket, so that
 * one RMW does. Returns what unlock_sock_fast() must be told: true if the socket had to be owned
 * after all.
 */
static __always_inline bool lock_sock_fast(const enum sock_wait wait, struct sock *sk)
{
	sk_slock(sk);
	if (likely(!sock_owned_by_user(sk)))
		return false;
	__lock_sock(wait, sk);
	skb_store(&sk->sk_lock.owned, 1, SKB_C_LOCK);
	sk_sunlock(sk);
	return true;
}

static __always_inline void unlock_sock_fast(struct sock *sk, bool slow)
{
	if (slow)
		release_sock(sk);
	else
		sk_sunlock(sk);
}

#endif
