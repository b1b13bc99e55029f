/* SPDX-License-Identifier: MIT */
/*
 * Sockets by address: how a softirq finds the one that a packet is for.
 *
 * Kernel: inet_ehash_nolisten(), __inet_lookup_established(), inet_unhash() in
 * net/ipv4/inet_hashtables.c, 6.12. The table is liburcu's lock-free hash (cds_lfht) under RCU of
 * the QSBR kind: there a reader pays nothing at the start and the end of a lookup, as in a kernel
 * that is not preempted, and says from time to time that it holds nothing, as the kernel's CPUs do
 * when they switch tasks. The other kinds would add a store and a barrier to each packet.
 *
 *                        inet_hash  inet_unhash  inet_lookup  inet_rcu_synchronize
 *   inet_hash                -          -            -                -
 *   inet_unhash              -          X            -                -
 *   inet_lookup              -          -            -                -
 *
 *   -: safe on any CPUs at once.  X: for one socket, the caller serialises.
 *
 * Every thread that calls anything here registers once (inet_rcu_attach()), and while it is
 * attached must either call inet_rcu_quiescent() often (once a round of a softirq's loop), or be
 * offline (inet_rcu_offline()) while it sleeps: a grace period waits for each of them.
 *
 * A socket's memory is its owner's, who
 *   1. takes it out (inet_unhash());
 *   2. waits for a grace period (inet_rcu_synchronize()): nobody compares its addresses any more;
 *   3. waits until sk_refcnt is 1 again: nobody who found it works on it;
 *   4. destroys and frees it.
 * The kernel reuses sockets without step 2 (SLAB_TYPESAFE_BY_RCU) and looks twice instead.
 */
#ifndef TCP_INET_HASHTABLES_H
#define TCP_INET_HASHTABLES_H

#include "tcp/sock.h"
#include "tcp/tcp_mib.h"

/* What the sockets of one network namespace share. */
struct net {
	struct cds_lfht *ehash;
	struct tcp_mib mib[SKB_NR_CPUS];
};

/* One connection as the receiver sees it, in network byte order. */
struct inet_tuple {
	u32 saddr, daddr; /* the peer's address and the own one: of a packet that comes in */
	u16 sport, dport;
};

/* An empty namespace. 0 or -ENOMEM. The caller owns NET and aligns it to cache lines. */
int net_init(struct net *net);

/* Its table's memory. No socket is in it any more; the calling thread is attached. */
void net_exit(struct net *net);

/* One more of ITEM on the calling CPU, or N. */
static __always_inline void net_add_stats(struct net *net, enum tcp_mib_item item, u64 n)
{
	net->mib[smp_processor_id()].nr[item] += n;
}

static __always_inline void net_inc_stats(struct net *net, enum tcp_mib_item item)
{
	net_add_stats(net, item, 1);
}

/* A flush has freed N sk_buffs of a socket's list; ITEM says where. */
static __always_inline void net_flushed(struct net *net, enum tcp_mib_item item, u64 n)
{
	struct tcp_mib *mib = &net->mib[smp_processor_id()];

	mib->nr[item] += n;
	mib->most_flushed = max(mib->most_flushed, n);
}

/* The sum over all CPUs, or the most of any flush; exact while none runs. */
u64 net_stats(const struct net *net, enum tcp_mib_item item);
u64 net_most_flushed(const struct net *net);

/*
 * --- RCU: a thread's part
 * --------------------------------------------------------------------------------------
 */

/* The calling thread takes part in grace periods from here on. Once per thread. */
void inet_rcu_attach(void);

/* And no longer. Before the thread ends. */
void inet_rcu_detach(void);

/* The calling thread holds no socket that it found without a reference. */
void inet_rcu_quiescent(void);

/* The same until inet_rcu_online(): grace periods do not wait for a thread that sleeps. */
void inet_rcu_offline(void);
void inet_rcu_online(void);

/* Waits until every attached thread has been quiescent once. The caller holds no slock. */
void inet_rcu_synchronize(void);

/*
 * --- the table
 * --------------------------------------------------------------------------------------
 */

/*
 * SK, which is initialised, can be found as TUPLE in NET from here on. 0; -EEXIST if another socket
 * is there under the same tuple, and SK is as before.
 */
int inet_hash(struct net *net, struct sock *sk, const struct inet_tuple *tuple);

/* SK cannot be found any more, but may be in use by whoever found it. Nothing if it is not hashed. */
void inet_unhash(struct sock *sk);

/*
 * The established socket of TUPLE with one reference more, which the caller drops by sock_put();
 * NULL: none. One RMW.
 */
struct sock *__inet_lookup_established(struct net *net, const struct inet_tuple *tuple);

/* Drops a reference on SK. The last one is its owner's, who knows from sk_refcnt that it is alone. */
static __always_inline void sock_put(struct sock *sk)
{
	BUG_ON(refcount_dec_and_test(&sk->sk_refcnt, SKB_C_SK_REFCNT));
}

static __always_inline void sock_hold(struct sock *sk)
{
	refcount_inc(&sk->sk_refcnt, SKB_C_SK_REFCNT);
}

/* True if nobody but its owner uses SK. Acquire: what the others did to it is done. */
static __always_inline bool sock_unused(const struct sock *sk)
{
	return atomic_read_acquire(&sk->sk_refcnt.refs, SKB_C_SK_REFCNT) == 1;
}

#endif
