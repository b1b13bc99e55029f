/* SPDX-License-Identifier: MIT */
/*
 * A page_pool between threads: its owner hands out pages that others put, some of them a second time
 * held, and every page is counted once in the end. ThreadSanitizer sees the bytes of a page, too.
 */
#include "skb/page_pool.h"
#include "skb/skbuff.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <pthread.h>

#define PUTTERS 2
#define ROUNDS	100000

struct putter {
	pthread_t thread;
	unsigned int slot;
	struct page_pool *pool;
	struct test_ring in; /* pages from the owner */
	u64 seed;
};

static void put_one(struct putter *p, struct page *page, u64 *rng)
{
	u64 *words = page_address(page);

	if (words[0] != (u64)(uintptr_t)page)
		skb_bug(__FILE__, __LINE__, "a page does not hold what its owner wrote");
	switch (test_rand(rng) % 8) {
	case 0: /* kept by somebody of no pool: it leaves */
		get_page(page);
		page_pool_put_page(p->pool, page, false);
		put_page(page);
		break;
	case 1: /* two users of the pool's kind */
		page_pool_ref_page(page);
		page_pool_put_page(p->pool, page, false);
		napi_pp_put_page(ERA_6_12, page);
		break;
	default:
		napi_pp_put_page(test_rand(rng) % 2 ? ERA_6_1 : ERA_6_12, page);
	}
}

static void *putter_main(void *arg)
{
	struct putter *p = arg;
	u64 rng = p->seed;

	if (skb_cpu_attach(p->slot, 0))
		skb_bug(__FILE__, __LINE__, "no CPU slot");
	for (int i = 0; i < ROUNDS;) {
		struct page *page = test_ring_get(&p->in);

		if (page) {
			put_one(p, page, &rng);
			i++;
		} else {
			sched_yield();
		}
	}
	drain_local_pages();
	skb_cpu_detach();
	return NULL;
}

static void run(unsigned int slots)
{
	struct page_pool_params params = { .pool_size = slots, .nid = NUMA_NO_NODE };
	static struct putter putter[PUTTERS];
	struct page_pool_recycle_stats s;
	struct page_pool *pool;
	u64 seed = test_seed();
	int sent[PUTTERS] = { 0 };

	assert_int_equal(page_pool_create(&params, &pool), 0);
	page_pool_poll_begin(pool);
	memset(putter, 0, sizeof(putter));
	for (int i = 0; i < PUTTERS; i++) {
		putter[i].slot = i + 1;
		putter[i].pool = pool;
		putter[i].seed = seed + i;
		assert_int_equal(pthread_create(&putter[i].thread, NULL, putter_main, &putter[i]),
				 0);
	}
	while (sent[0] + sent[1] < PUTTERS * ROUNDS) {
		int to = test_rand(&seed) % PUTTERS;
		struct page *page = page_pool_alloc_pages(pool);
		u64 *words;

		assert_non_null(page);
		words = page_address(page);
		words[0] = (u64)(uintptr_t)page;
		if (sent[to] < ROUNDS && test_rand(&seed) % 4 &&
		    test_ring_put(&putter[to].in, page))
			sent[to]++;
		else
			page_pool_put_page(pool, page, true);
		if (test_rand(&seed) % 64 == 0)
			sched_yield();
	}
	for (int i = 0; i < PUTTERS; i++)
		pthread_join(putter[i].thread, NULL);

	/* Every page is in the cache, in the ring, or out of the pool. */
	s = page_pool_recycled(pool);
	assert_true(s.released_refcnt > 0 && s.ring > 0 && s.cached > 0);
	assert_int_equal(s.ring + s.ring_full + s.released_refcnt, PUTTERS * ROUNDS);
	if (slots < 16)
		assert_true(s.ring_full > 0);
	assert_int_equal((u64)pool->pages_state_release_cnt.counter,
			 s.ring_full + s.released_refcnt + pool->alloc_stats.waive);
	assert_int_equal(page_pool_destroy(pool), 0);
	assert_int_equal(model_pages_in_use(), 0);
}

static void large_ring(void **state)
{
	(void)state;
	run(1024);
}

/* Full as often as not. */
static void small_ring(void **state)
{
	(void)state;
	run(4);
}

static int start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 8192);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_ring),
		cmocka_unit_test(small_ring),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
