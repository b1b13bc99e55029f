/* SPDX-License-Identifier: MIT */
/*
 * Deferred freeing by CPU: what is accepted, refused and kicked in both generations, who is never
 * deferred, and every order of an add and a flush. CPU 0 makes the sk_buffs, others let go of them.
 */
#include "skb/skb_defer.h"
#include "skb/skb_napi.h"
#include "tests/skb/skb_test.h"

#include <pthread.h>
#include <sched.h>

#ifdef SKB_TRACED
#include "sim/coro.h"
#endif

#define for_each_how(how) for (enum skb_defer how = 0; how < SKB_DEFER_NR; how++)
#define NR		  80

static struct page *page; /* one reference for each sk_buff that lives, and one of the test's */

/* An sk_buff as a NIC's softirq on the calling CPU makes it. */
static struct sk_buff *received(enum skb_era era)
{
	struct sk_buff *skb = napi_alloc_skb(era, 128);

	assert_non_null(skb);
	frag(skb, page, 0, 100);
	return skb;
}

static void on_cpu(unsigned int cpu)
{
	assert_int_equal(skb_cpu_attach(cpu, 0), 0);
}

static int alive(void)
{
	return page_count(page) - 1;
}

static int begin(void **state)
{
	(void)state;
	on_cpu(0);
	softnet_init();
	page = block(0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned int cpu = 0; cpu < 4; cpu++) {
		on_cpu(cpu);
		assert_int_equal(softnet_deferred(cpu), 0);
		napi_cache_drain();
	}
	on_cpu(0);
	assert_int_equal(page_count(page), 1);
	put_page(page);
	assert_int_equal(model_pages_in_use(), 0);
	return 0;
}

/* N sk_buffs made by CPU 0 and let go of by CPU 1: how many waited, and at which the kick came. */
static int defer_many(enum skb_era era, enum skb_defer how, int n, int *kick)
{
	struct sk_buff *skb[NR];
	int accepted = 0;

	on_cpu(0);
	for (int i = 0; i < n; i++)
		skb[i] = received(era);
	on_cpu(1);
	*kick = 0;
	for (int i = 0; i < n; i++) {
		accepted += skb_attempt_defer_free(era, how, skb[i]);
		if (!*kick && softnet_kicked(&softnet_data[0]))
			*kick = i + 1;
	}
	on_cpu(0);
	return accepted;
}

/* The idle target: 8 fit under the lock, 7 in the lock-free list; the fifth kicks; the rest is
 * freed by CPU 1. */
static void fills_up(void **state)
{
	(void)state;
	for_each_era (era) {
		for_each_how(how)
		{
			int most = how == SKB_DEFER_CPU_LIST ? 8 : 7, kick;

			sysctl_skb_defer_max = 8;
			assert_int_equal(defer_many(era, how, 12, &kick), most);
			assert_int_equal(kick, 5);
			assert_int_equal(alive(), most);
			assert_int_equal(softnet_deferred(0), most);
			if (how == SKB_DEFER_CPU_LIST)
				assert_int_equal(softnet_data[0].defer_count, 8);
			else
				assert_int_equal(softnet_data[0].defer_nodes[0].defer_count.counter,
						 12);
			/* Nobody polls: what is full stays full, and no second kick is sent. */
			assert_int_equal(defer_many(era, how, 3, &kick), 0);
			softnet_ack_kick(this_softnet());
			assert_int_equal(skb_defer_free_flush(era, how, this_softnet()), most);
			assert_int_equal(softnet_data[0].defer_count, 0);
			assert_int_equal(softnet_data[0].defer_nodes[0].defer_count.counter, 0);
			assert_int_equal(alive(), 0);
			assert_int_equal(skb_defer_free_flush(era, how, this_softnet()), 0);
		}
	}
}

/* One kick for each time that the target polls, by number max / 2 + 1. */
static void one_kick_an_epoch(void **state)
{
	(void)state;
	for_each_how(how)
	{
		for (int max = 2; max <= 64; max++) {
			sysctl_skb_defer_max = max;
			for (int round = 0; round < 2; round++) {
				int kick, want = max / 2 + 1;

				if (how == SKB_DEFER_NODE_LLIST && want > max - 1)
					want = 0; /* refused before it would */
				defer_many(ERA_6_12, how, 70, &kick);
				assert_int_equal(kick, want);
				softnet_ack_kick(this_softnet());
				assert_false(softnet_kicked(this_softnet()));
				skb_defer_free_flush(ERA_6_12, how, this_softnet());
			}
		}
	}
}

/* The latest comes out first: CPU 0's cache of shells gives them back in the opposite order. */
static void last_in_first_out(void **state)
{
	(void)state;
	for_each_how(how)
	{
		struct sk_buff *skb[8];

		for (int i = 0; i < 8; i++)
			skb[i] = received(ERA_6_12);
		on_cpu(1);
		for (int i = 0; i < 8; i++)
			assert_true(skb_attempt_defer_free(ERA_6_12, how, skb[i]));
		on_cpu(0);
		assert_int_equal(skb_defer_free_flush(ERA_6_12, how, this_softnet()), 8);
		for (int i = 0; i < 8; i++) {
			struct sk_buff *again = napi_alloc_skb(ERA_6_12, 128);

			assert_ptr_equal(again, skb[i]);
			skb[i] = again;
		}
		for (int i = 0; i < 8; i++)
			kfree_skb(ERA_6_12, skb[i]);
	}
}

static void told(struct ubuf_info_msgzc *uarg)
{
	uarg->zerocopy = true;
}

/* Whose sk_buffs are freed at once: each freed when the call returns, and the list empty. */
static void never_deferred(void **state)
{
	(void)state;
	for_each_era (era) {
		for_each_how(how)
		{
			struct ubuf_info_msgzc u;
			struct sk_buff *skb = received(era);

			/* its own CPU */
			assert_false(skb_attempt_defer_free(era, how, skb));
			assert_int_equal(alive(), 0);

			/* its user waits for the notice */
			msg_zerocopy_init(&u, SKBFL_ZEROCOPY_FRAG, told);
			skb = received(era);
			skb_zcopy_set(skb, &u.ubuf);
			net_zcopy_put(&u.ubuf);
			u.zerocopy = false;
			on_cpu(1);
			assert_false(skb_attempt_defer_free(era, how, skb));
			assert_true(u.zerocopy);
			assert_int_equal(alive(), 0);

			/* deferral is switched off */
			on_cpu(0);
			skb = received(era);
			on_cpu(1);
			sysctl_skb_defer_max = 0;
			assert_false(skb_attempt_defer_free(era, how, skb));
			sysctl_skb_defer_max = SKB_DEFER_MAX_DEFAULT;
			assert_int_equal(alive(), 0);
			assert_int_equal(softnet_data[0].defer_count, 0);
			softnet_init(); /* the counter of the lock-free list stays up until then */

			/* made by no CPU of ours */
			on_cpu(0);
			skb = received(era);
			skb->headers.alloc_cpu = SKB_NR_CPUS;
			on_cpu(1);
			assert_false(skb_attempt_defer_free(era, how, skb));
			assert_int_equal(alive(), 0);
			on_cpu(0);
		}
	}
}

/* A CPU that goes away keeps what it has until it polls again; nothing more is sent there. */
static void offline(void **state)
{
	(void)state;
	for_each_how(how)
	{
		struct sk_buff *skb[6];

		on_cpu(3);
		for (int i = 0; i < 6; i++)
			skb[i] = received(ERA_6_12);
		on_cpu(1);
		for (int i = 0; i < 5; i++)
			assert_true(skb_attempt_defer_free(ERA_6_12, how, skb[i]));
		set_cpu_online(3, false);
		assert_false(skb_attempt_defer_free(ERA_6_12, how, skb[5]));
		assert_int_equal(alive(), 5);
		assert_int_equal(softnet_deferred(3), 5);
		set_cpu_online(3, true);
		on_cpu(3);
		assert_int_equal(skb_defer_free_flush(ERA_6_12, how, this_softnet()), 5);
		assert_int_equal(alive(), 0);
		on_cpu(0);
	}
}

/* A clone and a copy go home to the CPU that made the first head, whoever made them. */
static void alloc_cpu_of_clones(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = received(era), *other[3];

		on_cpu(2);
		other[0] = skb_clone(era, skb);
		other[1] = pskb_copy(era, skb);
		other[2] = skb_copy(era, skb);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(other[i]->headers.alloc_cpu, 0);
			assert_true(skb_attempt_defer_free(era, SKB_DEFER_NODE_LLIST, other[i]));
		}
		assert_int_equal(pskb_expand_head(era, skb, 64, 0), 0);
		assert_int_equal(skb->headers.alloc_cpu, 0);
		kfree_skb(era, skb);
		on_cpu(0);
		assert_int_equal(skb_defer_free_flush(era, SKB_DEFER_NODE_LLIST, this_softnet()),
				 3);
		assert_int_equal(alive(), 0);
	}
}

/* A pair's halves wait like others and go to the slab, not to the cache of single shells. */
static void fclone(void **state)
{
	(void)state;
	for_each_era (era) {
		for_each_how(how)
		{
			struct sk_buff *skb = empty(era), *clone;
			unsigned int cached = napi_skb_cache_count();

			frag(skb, page, 0, 10);
			clone = skb_clone(era, skb);
			on_cpu(1);
			assert_true(skb_attempt_defer_free(era, how, clone));
			assert_true(skb_attempt_defer_free(era, how, skb));
			on_cpu(0);
			assert_int_equal(skb_defer_free_flush(era, how, this_softnet()), 2);
			assert_int_equal(napi_skb_cache_count(), cached);
			assert_int_equal(alive(), 0);
		}
	}
}

#ifdef SKB_TRACED
/* Under the lock one RMW and one lock; the lock-free list two; an empty flush only looks. */
static void costs(void **state)
{
	struct sk_buff *skb[2];

	(void)state;
	for_each_how(how)
	{
		skb[0] = received(ERA_6_12);
		skb[1] = received(ERA_6_12);
		on_cpu(1);
		for (int i = 0; i < 2; i++) {
			counts_start();
			assert_true(skb_attempt_defer_free(ERA_6_12, how, skb[i]));
			assert_int_equal(counted.rmw[SKB_C_LLIST], 2 * (int)how);
			assert_int_equal(counted.rmw[SKB_C_LOCK], how == SKB_DEFER_CPU_LIST);
			assert_int_equal(counts_rmw(), 2 * (int)how);
		}
		on_cpu(0);
		counts_start();
		assert_int_equal(skb_defer_free_flush(ERA_6_12, how, this_softnet()), 2);
		assert_int_equal(counted.rmw[SKB_C_LLIST], (int)how);
		assert_int_equal(counted.rmw[SKB_C_LOCK], how == SKB_DEFER_CPU_LIST);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 2);
		counts_start();
		assert_int_equal(skb_defer_free_flush(ERA_6_12, how, this_softnet()), 0);
		for (int c = 0; c < SKB_C_NR; c++)
			assert_int_equal(counted.rmw[c], 0);
	}
}

/*
 * --- every order
 * ---------------------------------------------------------------------------------------------
 *
 * CPUs as coroutines that may be switched at every access to shared memory.
 */

#define VCPUS 3

struct vcpu_plan {
	unsigned int cpu; /* 0: the target; else one that lets go of sk_buffs */
	enum skb_defer how;
	struct sk_buff *skb[4];
	int nr, accepted, flushes;
};

static struct coro *coro[VCPUS];
static struct vcpu_plan plan[VCPUS];
static bool switching;

static void yield_at_access(void)
{
	if (switching && coro_self()) {
		unsigned int cpu = smp_processor_id();

		coro_yield();
		BUG_ON(skb_cpu_attach(cpu, 0));
	}
}

static void vcpu_body(void *arg)
{
	struct vcpu_plan *p = arg;

	BUG_ON(skb_cpu_attach(p->cpu, 0));
	if (p->cpu) {
		for (int i = 0; i < p->nr; i++)
			p->accepted += skb_attempt_defer_free(ERA_6_12, p->how, p->skb[i]);
	} else {
		while (p->flushes--) {
			if (softnet_kicked(this_softnet()))
				softnet_ack_kick(this_softnet());
			skb_defer_free_flush(ERA_6_12, p->how, this_softnet());
		}
	}
}

/* CPU 0 flushes FLUSHES times while two others let go of PER sk_buffs each, in the order that PICK
 * makes. */
static void race(enum skb_defer how, int per, int flushes,
		 unsigned int (*pick)(void *ctx, u64 ready), void *ctx)
{
	int made = 0, most = how == SKB_DEFER_CPU_LIST ? 0 : -1;

	most += (int)sysctl_skb_defer_max;
	for (unsigned int v = 0; v < VCPUS; v++) {
		plan[v] = (struct vcpu_plan){ .cpu = v, .how = how, .nr = per, .flushes = flushes };
		for (int i = 0; v && i < per; i++, made++)
			plan[v].skb[i] = received(ERA_6_12);
		coro[v] = coro_new(vcpu_body, &plan[v], 0);
		assert_non_null(coro[v]);
	}
	assert_int_equal(alive(), made);
	counts_start();
	model_access = yield_at_access;
	switching = true;
	coro_run(coro, VCPUS, pick, ctx);
	switching = false;
	model_access = NULL;
	for (unsigned int v = 0; v < VCPUS; v++)
		coro_free(coro[v]);
	on_cpu(0);
	/* What was not taken waits; nothing is lost, nothing is there twice. */
	assert_int_equal(alive(), softnet_deferred(0));
	if (!flushes)
		assert_true((int)softnet_deferred(0) <= max(most, 0) + (how == SKB_DEFER_CPU_LIST));
	skb_defer_free_flush(ERA_6_12, how, this_softnet());
	assert_int_equal(alive(), 0);
	assert_int_equal(softnet_deferred(0), 0);
	softnet_ack_kick(this_softnet());
}

struct schedule {
	u64 choice; /* bits: at each step, whether to leave the running CPU, two bits each */
	int at;
};

/* The first 12 steps by the bits of the schedule, then in turn. */
static unsigned int pick_listed(void *ctx, u64 ready)
{
	struct schedule *s = ctx;
	unsigned int v = s->at < 12 ? s->choice >> (2 * s->at) & 3 : (unsigned int)s->at % VCPUS;

	s->at++;
	while (!(ready >> (v % VCPUS) & 1))
		v++;
	return v % VCPUS;
}

static void every_short_order(void **state)
{
	(void)state;
	for_each_how(how)
	{
		for (unsigned int max = 1; max <= 3; max++) {
			for (u64 choice = 0; choice < 1u << 24; choice += 12301) {
				struct schedule s = { choice, 0 };

				sysctl_skb_defer_max = max;
				race(how, 1, 1, pick_listed, &s);
				softnet_init();
			}
		}
	}
}

static unsigned int pick_random(void *ctx, u64 ready)
{
	unsigned int v;

	do {
		v = rng_below(ctx, VCPUS);
	} while (!(ready >> v & 1));
	return v;
}

static void random_orders(void **state)
{
	struct rng rng = { model_seed("skb_defer", 8) };

	(void)state;
	for_each_how(how)
	{
		for (int i = 0; i < 1200; i++) {
			sysctl_skb_defer_max = 1 + rng_below(&rng, 8);
			race(how, 1 + rng_below(&rng, 4), rng_below(&rng, 4), pick_random, &rng);
			softnet_init();
		}
	}
}

/* Those who let go never wait for the target, which is not scheduled at all (no lock to hold). */
static unsigned int pick_producers(void *ctx, u64 ready)
{
	(void)ctx;
	return ready & 2 ? 1 : ready & 4 ? 2 : 0;
}

static void producers_never_wait(void **state)
{
	(void)state;
	sysctl_skb_defer_max = 4;
	race(SKB_DEFER_NODE_LLIST, 4, 1, pick_producers, NULL);
}

/*
 * The target stores 0, somebody counts and adds, the target takes that one: one is counted and none
 * is there. With a maximum of 2 every later one is refused, and a flush skips an empty list: the
 * list is closed for good. With 3 one place is left, and the next flush sets the count right.
 */
static int at_store;
static bool stop_in_flush(enum skb_access kind, enum skb_class cls, const volatile void *addr)
{
	return kind == SKB_RMW && cls == SKB_C_LLIST &&
	       addr == &softnet_data[0].defer_nodes[0].defer_list.first;
}

static void access_in_flush(enum skb_access kind, enum skb_class cls, const volatile void *addr,
			    size_t bytes)
{
	(void)bytes;
	if (at_store && !smp_processor_id() && stop_in_flush(kind, cls, addr)) {
		at_store = 0;
		on_cpu(1);
		assert_true(skb_attempt_defer_free(ERA_6_12, SKB_DEFER_NODE_LLIST, plan[0].skb[0]));
		on_cpu(0);
	}
}

static const struct skb_trace_sink flush_sink = { access_in_flush, counts_event, counts_fail };

static void closed_for_good(void **state)
{
	int kick;

	(void)state;
	for (unsigned int max = 2; max <= 3; max++) {
		bool closed = max == 2;

		softnet_init();
		sysctl_skb_defer_max = max;
		assert_int_equal(defer_many(ERA_6_12, SKB_DEFER_NODE_LLIST, 1, &kick), 1);
		plan[0].skb[0] = received(ERA_6_12);
		at_store = 1;
		skb_trace_sink = &flush_sink;
		assert_int_equal(
			skb_defer_free_flush(ERA_6_12, SKB_DEFER_NODE_LLIST, this_softnet()), 2);
		counts_start();
		assert_int_equal(at_store, 0);
		assert_int_equal(softnet_data[0].defer_nodes[0].defer_count.counter, 1);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(defer_many(ERA_6_12, SKB_DEFER_NODE_LLIST, 1, &kick),
					 !closed);
			assert_int_equal(skb_defer_free_flush(ERA_6_12, SKB_DEFER_NODE_LLIST,
							      this_softnet()),
					 !closed);
		}
		assert_int_equal(alive(), 0);
	}
}
#endif

/* --- CPUs that really run at once
 * ------------------------------------------------------------------------------------ */

#define THREADS 3
#define BATCH	200

static struct {
	struct test_ring ring[THREADS]; /* from the maker to those who let go */
	enum skb_defer how;
	int stop;
} shared;

static void *lets_go(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	struct sk_buff *skb;

	if (skb_cpu_attach(me + 1, 0))
		return (void *)1;
	for (;;) {
		int stop = smp_load_acquire(&shared.stop, SKB_C_OTHER);

		skb = test_ring_get(&shared.ring[me]);
		if (skb)
			skb_attempt_defer_free(ERA_6_12, shared.how, skb);
		else if (stop)
			break;
		else
			sched_yield();
	}
	napi_cache_drain();
	skb_cpu_detach();
	return NULL;
}

static void at_once(void **state)
{
	struct rng rng = { model_seed("skb_defer, threads", 8) };

	(void)state;
	for_each_how(shared_how)
	{
		pthread_t thread[THREADS];

		sysctl_skb_defer_max = 8;
		shared.how = shared_how;
		shared.stop = 0;
		for (uintptr_t t = 0; t < THREADS; t++)
			assert_int_equal(pthread_create(&thread[t], NULL, lets_go, (void *)t), 0);
		for (int i = 0; i < 100 * BATCH; i++) {
			struct sk_buff *skb = received(ERA_6_12);

			while (!test_ring_put(&shared.ring[rng_below(&rng, THREADS)], skb))
				sched_yield();
			if (softnet_kicked(this_softnet())) {
				softnet_ack_kick(this_softnet());
				skb_defer_free_flush(ERA_6_12, shared.how, this_softnet());
			}
			if (!rng_below(&rng, BATCH)) {
				skb_defer_free_flush(ERA_6_12, shared.how, this_softnet());
				sched_yield();
			}
		}
		smp_store_release(&shared.stop, 1, SKB_C_OTHER);
		for (int t = 0; t < THREADS; t++) {
			void *failed;

			pthread_join(thread[t], &failed);
			assert_null(failed);
		}
		assert_true(softnet_deferred(0) <= 8 + THREADS);
		skb_defer_free_flush(ERA_6_12, shared.how, this_softnet());
		assert_int_equal(alive(), 0);
		softnet_ack_kick(this_softnet());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fills_up, begin, end),
		cmocka_unit_test_setup_teardown(one_kick_an_epoch, begin, end),
		cmocka_unit_test_setup_teardown(last_in_first_out, begin, end),
		cmocka_unit_test_setup_teardown(never_deferred, begin, end),
		cmocka_unit_test_setup_teardown(offline, begin, end),
		cmocka_unit_test_setup_teardown(alloc_cpu_of_clones, begin, end),
		cmocka_unit_test_setup_teardown(fclone, begin, end),
#ifdef SKB_TRACED
		cmocka_unit_test_setup_teardown(costs, begin, end),
		cmocka_unit_test_setup_teardown(every_short_order, begin, end),
		cmocka_unit_test_setup_teardown(random_orders, begin, end),
		cmocka_unit_test_setup_teardown(producers_never_wait, begin, end),
		cmocka_unit_test_setup_teardown(closed_for_good, begin, end),
#endif
		cmocka_unit_test_setup_teardown(at_once, begin, end),
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
