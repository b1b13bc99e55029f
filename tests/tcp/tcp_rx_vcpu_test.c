/* SPDX-License-Identifier: MIT */
/*
 * The socket lock, the backlog's hand-over and the flush of the deferred list on virtual CPUs:
 * every access to what they share is a point where another CPU may go on.
 *
 *   systematic   every schedule with at most two switches that nobody asked for
 *   seeded       random schedules; a failure prints its seed, SKB_SEED replays it
 *
 * A CPU that spins (the same loads over and over) lets another one run. What is checked after each
 * schedule: every byte was read once and in order, accounts are at zero, each deferred sk_buff was
 * freed exactly once, no page is left.
 */
#include "tests/tcp/tcp_rx_test.h"

#include "sim/coro.h"
#include "sim/vcpu.h"

#define RCVBUF	   (4 << 20)
#define NR_CPUS	   3
#define MAX_READ   8192
#define MAX_STEPS  200000 /* of one schedule: more is a livelock */
#define NR_PACKETS 4

/*
 * --- the scheduler
 * --------------------------------------------------------------------------------------
 */

static struct vcpu cpu[NR_CPUS];
static unsigned int nr_cpus, running;
static u32 step; /* accesses so far */
static u32 switch_at[2]; /* systematic: the accesses in front of which it switches */
static struct rng *rng; /* seeded: NULL if systematic */
static u32 switch_one_in;

static const volatile void *last_load[2];
static unsigned int same_loads;

static bool done(unsigned int c)
{
	return coro_done(cpu[c].coro);
}

static unsigned int other_cpu(unsigned int from)
{
	unsigned int c = from;

	if (rng) {
		for (int tries = 0; tries < 16; tries++) {
			c = rng_below(rng, nr_cpus);
			if (c != from && !done(c))
				return c;
		}
		c = from;
	}
	do
		c = (c + 1) % nr_cpus;
	while (c != from && done(c));
	return c;
}

/* The same one or two words are read again and again, and nothing is written. */
static bool spins(enum skb_access kind, const volatile void *addr)
{
	if (kind != SKB_LOAD) {
		same_loads = 0;
		return false;
	}
	if (addr == last_load[0] || addr == last_load[1])
		same_loads++;
	else
		same_loads = 0;
	last_load[1] = last_load[0];
	last_load[0] = addr;
	return same_loads > 6;
}

static bool switches(void)
{
	if (rng)
		return !rng_below(rng, switch_one_in);
	return step == switch_at[0] || step == switch_at[1];
}

static void on_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
		      size_t bytes)
{
	bool spinning;

	(void)bytes;
	if (!coro_self())
		return;
	if (cls != SKB_C_LOCK && cls != SKB_C_OTHER && cls != SKB_C_LLIST && cls != SKB_C_RMEM &&
	    cls != SKB_C_SK_REFCNT)
		return;
	spinning = spins(kind, addr);
	step++;
	if (step > MAX_STEPS)
		fail_msg("no end after %u accesses", step);
	if (!spinning && !switches())
		return;
	same_loads = 0;
	running = other_cpu(running);
	vcpu_wait(&cpu[smp_processor_id()]);
}

static void no_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)ev, (void)addr, (void)n;
}

static bool no_fail(enum skb_site site)
{
	(void)site;
	return false;
}

static const struct skb_trace_sink scheduler = { on_access, no_event, no_fail };

/* Runs BODY[0..N) on CPUs 0 to N - 1, CPU 0 first, until all have ended. */
static void run_cpus(void (*const *body)(struct vcpu *v, void *ctx), unsigned int n)
{
	const struct skb_trace_sink *was = skb_trace_sink;

	nr_cpus = n;
	step = running = 0;
	same_loads = 0;
	for (unsigned int c = 0; c < n; c++)
		assert_int_equal(vcpu_start(&cpu[c], c, 0, body[c], NULL), 0);
	skb_trace_sink = &scheduler;
	for (;;) {
		unsigned int c = running;

		if (done(c)) {
			running = other_cpu(c);
			if (done(running))
				break;
			continue;
		}
		vcpu_run(&cpu[c]);
	}
	skb_trace_sink = was;
	for (unsigned int c = 0; c < n; c++)
		vcpu_stop(&cpu[c]);
}

/*
 * --- what the CPUs do
 * --------------------------------------------------------------------------------------
 */

static enum skb_era era;
static enum tcp_defer defer;
static struct sk_buff *to_deliver[NR_PACKETS];
static u32 total; /* bytes that readers take together */
static u32 taken;
static u8 buffer[NR_CPUS][MAX_READ];
static unsigned int inside; /* readers that own the socket */
static unsigned int delivered_while_owned;

static void softirq(struct vcpu *v, void *ctx)
{
	(void)v, (void)ctx;
	for (int i = 0; i < NR_PACKETS; i++)
		assert_int_equal(tcp_v4_rcv(era, defer, net, to_deliver[i]), 0);
}

/* For each packet that brings bytes: a softirq must not find an owner, a reader must be it. */
static void watch_ready(struct sock *s)
{
	bool in_softirq = cpu[smp_processor_id()].body == softirq;

	if (in_softirq && (s->sk_lock.owned || !s->sk_lock.slock.locked))
		fail_msg("a softirq processes a packet: owned %d, slock %d", s->sk_lock.owned,
			 s->sk_lock.slock.locked);
	if (!in_softirq && !s->sk_lock.owned)
		fail_msg("a reader processes a packet of a socket that nobody owns");
	delivered_while_owned += !in_softirq;
}

/* A second one, which only ever brings what is known: its flushes meet the first one's. */
static struct sk_buff *old_packet[2];

static void old_softirq(struct vcpu *v, void *ctx)
{
	(void)v, (void)ctx;
	for (int i = 0; i < 2; i++)
		assert_int_equal(tcp_v4_rcv(era, defer, net, old_packet[i]), 0);
}

static void reader(struct vcpu *v, void *ctx)
{
	u8 *p = buffer[v->slot];
	u32 at = 1;

	(void)ctx;
	while (at < 1 + total) {
		u32 want = min(total + 1 - at, 1900u);
		int n = tcp_recvmsg(era, defer, SOCK_WAIT_SPIN, &sk, p, want, 0);

		assert_in_range(n, 1, want);
		check_stream(p, at, (u32)n);
		at += (u32)n;
	}
	taken += total;
}

/* Takes the lock in both ways; nobody else may own the socket meanwhile. */
static void locker(struct vcpu *v, void *ctx)
{
	(void)v, (void)ctx;
	for (int i = 0; i < 3; i++) {
		bool slow = false;

		if (i == 1)
			slow = lock_sock_fast(SOCK_WAIT_SPIN, &sk);
		else
			lock_sock(SOCK_WAIT_SPIN, &sk);
		assert_int_equal(inside++, 0);
		READ_ONCE(sk.rcv_nxt); /* somebody else may go on here */
		READ_ONCE(sk.copied_seq);
		assert_int_equal(--inside, 0);
		if (i == 1)
			unlock_sock_fast(&sk, slow);
		else
			release_sock(&sk);
	}
}

/* Packets of the softirq's CPU: two that join, one that does not, one more. */
static void make_packets(void)
{
	static const struct {
		u32 len;
		enum shape shape;
	} p[NR_PACKETS] = { { 900, SHAPE_PAGES },
			    { 700, SHAPE_PAGES },
			    { MSS + 100, SHAPE_LIST },
			    { MSS + 200, SHAPE_LIST } };

	assert_int_equal(skb_cpu_attach(1, 0), 0);
	total = 0;
	for (int i = 0; i < NR_PACKETS; i++) {
		to_deliver[i] = make_packet(
			era,
			&(struct packet){ .seq = 1 + total, .len = p[i].len, .shape = p[i].shape });
		total += p[i].len;
	}
	for (int i = 0; i < 2; i++)
		old_packet[i] = make_packet(era, &(struct packet){ .seq = 1 });
	assert_int_equal(skb_cpu_attach(0, 0), 0);
}

static void drop_old_packets(void)
{
	for (int i = 0; i < 2; i++)
		kfree_skb(era, old_packet[i]);
}

static void check_end(void)
{
	char err[200];

	if (tcp_rx_check_quiet(&sk, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(sk.rcv_nxt, 1 + total);
	assert_int_equal(taken, total);
	assert_true(sock_unused(&sk));
	if (defer == TCP_DEFER_SK_LLIST)
		assert_int_equal(stats(TCP_MIB_DEFERRED), stats(TCP_MIB_FREE_READER) +
								  stats(TCP_MIB_FREE_SOFTIRQ) +
								  stats(TCP_MIB_FREE_LOCKED_FLUSH));
	assert_int_equal(stats(TCP_MIB_BACKLOGDROP), 0);
	close_rx(era, defer);
}

/*
 * --- scenarios
 * --------------------------------------------------------------------------------------
 */

struct scenario {
	void (*body[NR_CPUS])(struct vcpu *v, void *ctx);
	unsigned int nr;
};

static const struct scenario read_and_deliver = { { reader, softirq }, 2 };
static const struct scenario deliver_first = { { locker, softirq, reader }, 3 };
static const struct scenario two_softirqs = { { reader, softirq, old_softirq }, 3 };

static u64 in_backlog, switched_owner;

static void run(const struct scenario *s)
{
	open_rx(era, SOCK_WAIT_SPIN, RCVBUF);
	sk.sk_data_ready = watch_ready;
	make_packets();
	if (s->body[2] != old_softirq)
		drop_old_packets();
	taken = inside = delivered_while_owned = 0;
	run_cpus(s->body, s->nr);
	in_backlog += stats(TCP_MIB_BACKLOGADD);
	switched_owner += delivered_while_owned;
	check_end();
}

/* How many accesses a schedule without a switch takes. */
static u32 length(const struct scenario *s)
{
	switch_at[0] = switch_at[1] = ~0U;
	run(s);
	return step;
}

static void all_schedules(const struct scenario *s, u32 stride)
{
	u32 n, schedules = 0;

	rng = NULL;
	n = length(s);
	assert_true(n > 50);
	for (u32 i = 1; i <= n; i++)
		/* The first of the strides differs, so that all pairs of some distance are met. */
		for (u32 k = i + 1 + i % stride; k <= n + stride; k += stride) {
			switch_at[0] = i;
			switch_at[1] = k;
			run(s);
			schedules++;
		}
	print_message("%u schedules of %u accesses\n", schedules, n);
}

static void systematic(const struct scenario *s, u32 stride)
{
	in_backlog = switched_owner = 0;
	for (era = ERA_6_1; era < SKB_ERA_NR; era++)
		for (defer = TCP_DEFER_INLINE; defer < TCP_DEFER_NR; defer++)
			all_schedules(s, era == ERA_6_12 ? stride : 9 * stride);
	/* What these schedules are for did happen. */
	assert_true(in_backlog > 0);
	assert_true(switched_owner > 0);
}

static void reader_and_softirq(void **state)
{
	(void)state;
	systematic(&read_and_deliver, 1);
}

static void locker_softirq_reader(void **state)
{
	(void)state;
	systematic(&deliver_first, 2);
}

static void reader_and_two_softirqs(void **state)
{
	(void)state;
	systematic(&two_softirqs, 2);
}

static void random_schedules(void **state)
{
	static const struct scenario *const all[] = { &read_and_deliver, &deliver_first,
						      &two_softirqs };
	u64 seed = model_seed("tcp_rx_vcpu", 0x5eed), n = model_ops(20000);

	(void)state;
	for (u64 i = 0; i < n; i++) {
		struct rng r = { seed + i };

		rng = &r;
		era = ERA_6_1 + (enum skb_era)rng_below(&r, 2);
		defer = (enum tcp_defer)rng_below(&r, TCP_DEFER_NR);
		switch_one_in = 1 + rng_below(&r, 40);
		run(all[rng_below(&r, ARRAY_SIZE(all))]);
	}
	rng = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_and_softirq),
		cmocka_unit_test(locker_softirq_reader),
		cmocka_unit_test(reader_and_two_softirqs),
		cmocka_unit_test(random_schedules),
	};

	return cmocka_run_group_tests(tests, rx_start, rx_stop);
}
