/* SPDX-License-Identifier: MIT */
/*
 * The table of established sockets, and the threads' part in its grace periods.
 *
 * Kernel: net/ipv4/inet_hashtables.c, 6.12. The table does not grow, as the kernel's: EHASH_BUCKETS
 * chains. The hash is a multiplication of our own, the kernel's is jhash.
 *
 * liburcu's functions are not instrumented, so that ThreadSanitizer sees neither that a socket was
 * written before it could be found, nor that a grace period ended after the last look at it: in
 * that preset alone, two words tell it.
 */
#include "tcp/inet_hashtables.h"

#include <string.h>
#include <urcu/urcu-qsbr.h>

#define EHASH_BUCKETS 1024

#ifdef SKB_TSAN
static int tsan_hashed, tsan_quiet;
#define tsan_release(word) ((void)__atomic_fetch_add(word, 1, __ATOMIC_RELEASE))
#define tsan_acquire(word) ((void)__atomic_load_n(word, __ATOMIC_ACQUIRE))
#else
#define tsan_release(word) ((void)0)
#define tsan_acquire(word) ((void)0)
#endif

int net_init(struct net *net)
{
	memset(net, 0, sizeof(*net));
	net->ehash = cds_lfht_new_flavor(EHASH_BUCKETS, EHASH_BUCKETS, EHASH_BUCKETS, 0,
					 &urcu_qsbr_flavor, NULL);
	return net->ehash ? 0 : -ENOMEM;
}

void net_exit(struct net *net)
{
	BUG_ON(cds_lfht_destroy(net->ehash, NULL));
	net->ehash = NULL;
}

u64 net_stats(const struct net *net, enum tcp_mib_item item)
{
	u64 sum = 0;

	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++)
		sum += net->mib[cpu].nr[item];
	return sum;
}

u64 net_most_flushed(const struct net *net)
{
	u64 most = 0;

	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++)
		most = max(most, net->mib[cpu].most_flushed);
	return most;
}

void inet_rcu_attach(void)
{
	urcu_qsbr_register_thread();
}

void inet_rcu_detach(void)
{
	tsan_release(&tsan_quiet);
	urcu_qsbr_unregister_thread();
}

void inet_rcu_quiescent(void)
{
	tsan_release(&tsan_quiet);
	urcu_qsbr_quiescent_state();
}

void inet_rcu_offline(void)
{
	tsan_release(&tsan_quiet);
	urcu_qsbr_thread_offline();
}

void inet_rcu_online(void)
{
	urcu_qsbr_thread_online();
}

void inet_rcu_synchronize(void)
{
	urcu_qsbr_synchronize_rcu();
	tsan_acquire(&tsan_quiet);
}

struct key {
	u64 addrpair;
	u32 portpair;
};

static __always_inline struct key tuple_key(const struct inet_tuple *t)
{
	return (struct key){ (u64)t->daddr << 32 | t->saddr, (u32)t->dport << 16 | t->sport };
}

static __always_inline u32 key_hash(const struct key *k)
{
	u64 h = (k->addrpair ^ (u64)k->portpair << 16) * 0x9e3779b97f4a7c15u;

	return (u32)(h >> 32);
}

static int match(struct cds_lfht_node *node, const void *key)
{
	const struct sock *sk = container_of(node, struct sock, ehash_node);
	const struct key *k = key;

	tsan_acquire(&tsan_hashed);
	return sk->skc_addrpair == k->addrpair && sk->skc_portpair == k->portpair;
}

int inet_hash(struct net *net, struct sock *sk, const struct inet_tuple *tuple)
{
	struct key k = tuple_key(tuple);
	struct cds_lfht_node *node;

	sk->skc_addrpair = k.addrpair;
	sk->skc_portpair = k.portpair;
	cds_lfht_node_init(&sk->ehash_node);
	tsan_release(&tsan_hashed);
	urcu_qsbr_read_lock();
	node = cds_lfht_add_unique(net->ehash, key_hash(&k), match, &k, &sk->ehash_node);
	urcu_qsbr_read_unlock();
	if (node != &sk->ehash_node)
		return -EEXIST;
	sk->sk_hashed = true;
	return 0;
}

void inet_unhash(struct sock *sk)
{
	if (!sk->sk_hashed)
		return;
	sk->sk_hashed = false;
	urcu_qsbr_read_lock();
	BUG_ON(cds_lfht_del(sk->sk_net->ehash, &sk->ehash_node));
	urcu_qsbr_read_unlock();
}

struct sock *__inet_lookup_established(struct net *net, const struct inet_tuple *tuple)
{
	struct key k = tuple_key(tuple);
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	struct sock *sk = NULL;

	urcu_qsbr_read_lock();
	cds_lfht_lookup(net->ehash, key_hash(&k), match, &k, &iter);
	node = cds_lfht_iter_get_node(&iter);
	if (node) {
		/* Its owner keeps a reference until the grace period is over: never from 0. */
		sk = container_of(node, struct sock, ehash_node);
		sock_hold(sk);
	}
	urcu_qsbr_read_unlock();
	return sk;
}
