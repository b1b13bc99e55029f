/* SPDX-License-Identifier: MIT */
/*
 * The receive side on real threads: a peer and its softirq, a second softirq that brings what is
 * known already, a reader, and one that takes the socket lock for short work. Sockets come and go
 * meanwhile: the reader closes each after a while and frees its memory.
 *
 * The reader sees every byte once and in order, and at the end of each socket nothing is left of
 * it. Under ThreadSanitizer this is where the orderings of the lock, the backlog, the deferred
 * lists, the lookup and the grace periods are looked at.
 *
 * SKB_SECONDS says how long all of it takes together (a nightly run sets more); 60 under
 * ThreadSanitizer, else 12.
 */
#include "tests/tcp/tcp_rx_test.h"

#include <pthread.h>
#include <sched.h>

#ifdef SKB_TSAN
#define SECONDS 60
#else
#define SECONDS 12
#endif

#define READER	 0 /* CPUs */
#define SOFTIRQ	 1
#define OTHER_BH 2
#define LOCKER	 3
#define RCVBUF	 (1 << 19)

static enum skb_era era;
static enum tcp_defer d;
static enum sock_wait wait_kind;
static int stop; /* by the reader: the others leave */
static u64 bytes_read, sockets;

static bool stopped(void)
{
	return smp_load_acquire(&stop, SKB_C_OTHER);
}

/* What a softirq's loop does beside packets: frees what was sent home, reports to RCU. */
static void poll_end(void)
{
	if (d == TCP_DEFER_CPU_LIST || d == TCP_DEFER_NODE_LLIST)
		skb_defer_free_flush(
			era, d == TCP_DEFER_CPU_LIST ? SKB_DEFER_CPU_LIST : SKB_DEFER_NODE_LLIST,
			this_softnet());
	inet_rcu_quiescent();
}

static bool enter_cpu(unsigned int cpu)
{
	if (skb_cpu_attach(cpu, 0))
		return false;
	inet_rcu_attach();
	return true;
}

static void leave_cpu(void)
{
	poll_end();
	inet_rcu_detach();
	skb_cpu_detach();
}

/* What the peer knows from the last ACK. False: there is no connection. */
static bool peer_looks(u32 *ack, u32 *wnd)
{
	struct sock *s = __inet_lookup_established(net, &tuple);

	if (!s)
		return false;
	tcp_read_ack(s, ack, wnd);
	sock_put(s);
	return true;
}

/*
 * The peer, and the softirq of its packets: sends what the window allows, and all behind an ACK
 * again if that has not moved for a while (something was dropped).
 */
static void *softirq(void *arg)
{
	struct rng r = { (u64)(uintptr_t)arg };
	u32 seq = 1, ack, wnd, last_ack = 0;
	int patience = 0;

	if (!enter_cpu(SOFTIRQ))
		return (void *)1;
	for (; !stopped(); poll_end()) {
		struct packet p = { .shape = (enum shape)rng_below(&r, SHAPE_NR) };

		if (!peer_looks(&ack, &wnd)) {
			sched_yield();
			continue;
		}
		if (before(ack, last_ack))
			seq = ack; /* another socket */
		if (before(seq, ack) || (ack == last_ack && ++patience > 200)) {
			seq = ack;
			patience = 0;
		}
		if (ack != last_ack)
			patience = 0;
		last_ack = ack;
		p.len = p.shape == SHAPE_LINEAR ? 1 + rng_below(&r, 900)
						: 1 + rng_below(&r, 12 * MSS);
		if (!before(seq + p.len, ack + wnd)) {
			sched_yield();
			continue;
		}
		p.seq = seq;
		if (!rng_below(&r, 64)) /* and sometimes a hole */
			p.seq += 10;
		seq += p.len;
		tcp_v4_rcv(era, d, net, make_packet(era, &p));
	}
	leave_cpu();
	return NULL;
}

/* Old segments: each is dropped, but not before its softirq has flushed and taken the lock. */
static void *other_softirq(void *arg)
{
	struct rng r = { (u64)(uintptr_t)arg };

	if (!enter_cpu(OTHER_BH))
		return (void *)1;
	for (; !stopped(); poll_end()) {
		tcp_v4_rcv(era, d, net, make_packet(era, &(struct packet){ .seq = 1 }));
		for (u32 i = rng_below(&r, 300); i; i--)
			cpu_relax();
		if (!rng_below(&r, 4))
			sched_yield();
	}
	leave_cpu();
	return NULL;
}

/* Under the lock everything adds up, whoever else is at it. */
static void *locker(void *arg)
{
	struct rng r = { (u64)(uintptr_t)arg };
	char err[200];

	if (!enter_cpu(LOCKER))
		return (void *)1;
	for (; !stopped(); poll_end()) {
		struct sock *s = __inet_lookup_established(net, &tuple);
		bool slow;

		if (s) {
			slow = lock_sock_fast(wait_kind, s);
			/* The backlog is slock's, which the slow way has not. */
			if (!slow && tcp_rx_check(s, err, sizeof(err))) {
				fprintf(stderr, "%s\n", err);
				abort();
			}
			unlock_sock_fast(s, slow);
			if (!rng_below(&r, 8)) {
				lock_sock(wait_kind, s);
				sched_yield();
				release_sock(s);
			}
			sock_put(s);
		}
		for (u32 i = rng_below(&r, 2000); i; i--)
			cpu_relax();
		sched_yield();
	}
	leave_cpu();
	return NULL;
}

/* Some are so small that their backlog overflows, and the peer must send again. */
static struct sock *open_one(struct rng *r)
{
	struct sock *s = aligned_alloc(SMP_CACHE_BYTES, sizeof(*s));

	assert_non_null(s);
	tcp_sock_init(s, &prot, &ring, 0);
	tcp_rx_init(era, wait_kind, s, net, rng_below(r, 2) ? RCVBUF : RCVBUF / 8);
	s->sk_sndbuf = 0;
	assert_int_equal(inet_hash(net, s, &tuple), 0);
	return s;
}

static void close_one(struct sock *s)
{
	char err[200];

	if (tcp_rx_check(s, err, sizeof(err)))
		fail_msg("%s", err);
	tcp_rx_destroy(era, s);
	tcp_sock_destroy(era, s);
	memset(s, 0xee, sizeof(*s));
	free(s);
}

/* Nobody finds the socket any more, and whoever had found it is done. */
static void unreachable(struct sock *s)
{
	inet_unhash(s);
	inet_rcu_synchronize();
	while (!sock_unused(s))
		sched_yield();
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Until GOAL, or the time END: the rest is closed unread. */
static void read_one(struct rng *r, u32 goal, double end)
{
	static u8 got[1 << 16];
	struct sock *s = open_one(r);
	u32 at = 1;

	while (at < goal && now() < end) {
		u32 len = 1 + rng_below(r, sizeof(got));
		int n;

		/* It waits for somebody who may wait for a grace period. */
		inet_rcu_offline();
		n = tcp_recvmsg(era, d, wait_kind, s, got, len, rng_below(r, 4) ? 0 : MSG_WAITALL);
		inet_rcu_online();
		assert_in_range(n, 1, len);
		check_stream(got, at, (u32)n);
		at += (u32)n;
	}
	if (rng_below(r, 2)) {
		lock_sock(wait_kind, s);
		tcp_disconnect(era, d, s);
		release_sock(s);
	}
	unreachable(s);
	close_one(s);
	bytes_read += at - 1;
	sockets++;
}

static void run(struct rng *r, double seconds)
{
	void *(*const body[])(void *) = { softirq, other_softirq, locker };
	pthread_t thread[ARRAY_SIZE(body)];
	double end = now() + seconds;

	stop = 0;
	bytes_read = sockets = 0;
	memset(&prot, 0, sizeof(prot));
	memset(net->mib, 0, sizeof(net->mib));
	assert_int_equal(tx_ring_init(&ring, 64), 0);
	for (size_t i = 0; i < ARRAY_SIZE(body); i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, body[i], (void *)(uintptr_t)rng_next(r)),
			0);
	do
		read_one(r, 1 + rng_below(r, 1 << 20), end);
	while (now() < end);
	smp_store_release(&stop, 1, SKB_C_OTHER);
	inet_rcu_offline();
	for (size_t i = 0; i < ARRAY_SIZE(body); i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	inet_rcu_online();
	flush_all_cpus(era, d);
	tx_ring_exit(&ring);
	if (d == TCP_DEFER_SK_LLIST)
		assert_int_equal(stats(TCP_MIB_DEFERRED), stats(TCP_MIB_FREE_READER) +
								  stats(TCP_MIB_FREE_SOFTIRQ) +
								  stats(TCP_MIB_FREE_LOCKED_FLUSH) +
								  stats(TCP_MIB_FREE_LOCKED_END));
	assert_int_equal(model_pages_in_use(), 0);
	assert_int_equal(proto_memory_bytes(&prot), 0);
	print_message("%s %-10s %s: %llu sockets, %llu KB, backlog %llu (+%llu joined, %llu "
		      "dropped), deferred %llu\n",
		      skb_era_name(era), tcp_defer_name(d), wait_kind ? "sleep" : "spin ",
		      (unsigned long long)sockets, (unsigned long long)bytes_read >> 10,
		      (unsigned long long)stats(TCP_MIB_BACKLOGADD),
		      (unsigned long long)stats(TCP_MIB_BACKLOGCOALESCE),
		      (unsigned long long)stats(TCP_MIB_BACKLOGDROP),
		      (unsigned long long)stats(TCP_MIB_DEFERRED));
}

static void all_variants(void **state)
{
	struct rng r = { model_seed("tcp_rx_stress", 17) };
	const char *s = getenv("SKB_SECONDS");
	double each = (s ? strtod(s, NULL) : SECONDS) / (2 * TCP_DEFER_NR * SOCK_WAIT_NR);

	(void)state;
	for (era = ERA_6_1; era < SKB_ERA_NR; era++)
		for (d = TCP_DEFER_INLINE; d < TCP_DEFER_NR; d++)
			for (wait_kind = SOCK_WAIT_SPIN; wait_kind < SOCK_WAIT_NR; wait_kind++)
				run(&r, each);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_variants) };

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
