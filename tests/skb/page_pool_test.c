/* SPDX-License-Identifier: MIT */
/*
 * page_pool: the golden trace T10, every way in and out with its counter, fragments, failures, and
 * what sk_buffs do with a pool's pages. Two threads at once: page_pool_threads_test.c.
 */
#include "skb/page_pool.h"
#include "tests/skb/skb_test.h"

/* The eras that know page pools. */
#define for_each_pool_era(era) for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)

static struct page_pool *pool_of(unsigned int order, unsigned int slots)
{
	struct page_pool_params p = { .order = order, .pool_size = slots, .nid = NUMA_NO_NODE };
	struct page_pool *pool = NULL;

	assert_int_equal(page_pool_create(&p, &pool), 0);
	page_pool_poll_begin(pool);
	return pool;
}

static void pool_ends(struct page_pool *pool)
{
	assert_int_equal(page_pool_destroy(pool), 0);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Drops a pool reference as a CPU does that does not poll. */
static void put_elsewhere(struct page_pool *pool, struct page *page)
{
	unsigned int owner = pool->list_owner;

	page_pool_poll_end(pool);
	page_pool_put_page(pool, page, false);
	pool->list_owner = owner;
}

/* N RMW since the last call, locks included; true in the plain build. */
static bool cost(u64 n)
{
#ifdef SKB_TRACED
	u64 all = 0;

	for (int i = 0; i < SKB_C_NR; i++)
		all += counted.rmw[i];
	counts_start();
	if (all != n)
		print_error("%lu RMW, not %lu\n", (unsigned long)all, (unsigned long)n);
	return all == n;
#else
	(void)n;
	return true;
#endif
}

static void free_now(void)
{
#ifdef SKB_TRACED
	counts_start();
#endif
}

/* Pages in the ring; slots that were taken are cleared later. */
static int ring_of(const struct page_pool *pool)
{
	const struct ptr_ring *r = &pool->ring;
	int n = (r->producer - r->consumer_head + r->size) % r->size;

	return n || __ptr_ring_empty(r) ? n : r->size;
}

/* At rest in the pool: both counts are 1. */
static void rests(const struct page *page)
{
	assert_true(is_pp_page(page));
	assert_int_equal(page_count(page), 1);
	assert_int_equal(page->pp_ref_count.counter, 1);
}

static void golden(void **state)
{
	struct page_pool *pool = pool_of(0, 0);
	struct page *page[PP_ALLOC_CACHE_SIZE + 1], *held, *first;
	int n = 0;

	(void)state;
	/* Empty: 64 at once, one of them returned. */
	first = page[n++] = page_pool_alloc_pages(pool);
	assert_non_null(first);
	assert_int_equal(pool->alloc.count, 63);
	assert_int_equal(page_pool_inflight(pool), 64);
	rests(first);
	/* 63 more from the cache. */
	free_now();
	while (n < 64)
		page[n++] = page_pool_alloc_pages(pool);
	assert_true(cost(0));
	assert_int_equal(pool->alloc.count, 0);
	assert_int_equal(pool->alloc_stats.slow, 1);
	assert_int_equal(pool->alloc_stats.fast, 63);
	/* One put while polling: the cache, no RMW. */
	page_pool_put_page(pool, page[--n], false);
	assert_true(cost(0));
	assert_int_equal(pool->alloc.count, 1);
	assert_ptr_equal(pool->alloc.cache[0], page[n]);
	/* One put on another CPU: the ring, one lock. */
	put_elsewhere(pool, page[--n]);
	assert_true(cost(1));
	assert_int_equal(pool->alloc.count, 1);
	assert_int_equal(ring_of(pool), 1);
	rests(page[n]);
	/* From the cache, then by a refill of one from the ring. */
	assert_ptr_equal(page_pool_alloc_pages(pool), page[n + 1]);
	assert_int_equal(pool->alloc_stats.fast, 64);
	assert_ptr_equal(page_pool_alloc_pages(pool), page[n]);
	assert_true(cost(0));
	assert_int_equal(pool->alloc_stats.refill, 1);
	assert_int_equal(pool->alloc_stats.slow, 1);
	n += 2;
	/* Somebody else holds it: it leaves the pool, and the last holder frees it. */
	held = page[--n];
	get_page(held);
	free_now();
	page_pool_put_page(pool, held, true);
	assert_true(cost(2));
	assert_int_equal(page_pool_recycled(pool).released_refcnt, 1);
	assert_false(is_pp_page(held));
	assert_int_equal(page_count(held), 1);
	assert_int_equal(page_pool_inflight(pool), 63);
	put_page(held);
	/* 129 puts in a row: 128 into the cache, 1 into the ring. */
	while (n < PP_ALLOC_CACHE_SIZE + 1)
		page[n++] = page_pool_alloc_pages(pool);
	while (pool->alloc.count)
		put_elsewhere(pool, page_pool_alloc_pages(pool));
	assert_int_equal(ring_of(pool), 62);
	while (n)
		page_pool_put_page(pool, page[--n], true);
	assert_int_equal(pool->alloc.count, PP_ALLOC_CACHE_SIZE);
	assert_int_equal(ring_of(pool), 63);
	assert_int_equal(page_pool_recycled(pool).cache_full, 1);
	assert_int_equal(page_pool_recycled(pool).cached, 1 + PP_ALLOC_CACHE_SIZE);
	assert_int_equal(page_pool_recycled(pool).ring, 1 + 62 + 1);
	pool_ends(pool);
}

/* A refill stops at 64; the ring keeps the rest, in its order, and 64 come from the front. */
static void refill_by_64(void **state)
{
	struct page_pool *pool = pool_of(0, 256);
	struct page *page[128];

	(void)state;
	for (int i = 0; i < 128; i++)
		page[i] = page_pool_alloc_pages(pool);
	for (int i = 0; i < 128; i++)
		put_elsewhere(pool, page[i]);
	assert_int_equal(ring_of(pool), 128);
	assert_ptr_equal(page_pool_alloc_pages(pool), page[63]);
	assert_int_equal(pool->alloc.count, 63);
	assert_int_equal(ring_of(pool), 64);
	for (int i = 62; i >= 0; i--)
		assert_ptr_equal(page_pool_alloc_pages(pool), page[i]);
	assert_ptr_equal(page_pool_alloc_pages(pool), page[127]);
	assert_int_equal(pool->alloc_stats.refill, 2);
	assert_int_equal(pool->alloc_stats.slow, 2);
	assert_int_equal(pool->alloc_stats.empty, 2);
	for (int i = 0; i < 64; i++)
		page_pool_put_page(pool, page[i], true);
	page_pool_put_page(pool, page[127], true);
	pool_ends(pool);
}

/* All 64 pages of a fresh pool, so that its cache is empty. */
static void take_all(struct page_pool *pool, struct page **page)
{
	for (int i = 0; i < PP_ALLOC_CACHE_REFILL; i++)
		page[i] = page_pool_alloc_pages(pool);
	assert_int_equal(pool->alloc.count, 0);
}

static void put_all(struct page_pool *pool, struct page **page, int from)
{
	for (int i = from; i < PP_ALLOC_CACHE_REFILL; i++)
		page_pool_put_page(pool, page[i], true);
}

/* Pages of another node: one is let go of at each refill, and what came before it is used. */
static void waives_one_at_a_time(void **state)
{
	struct page_pool *pool = pool_of(0, 16);
	struct page *page[PP_ALLOC_CACHE_REFILL];

	(void)state;
	take_all(pool, page);
	for (int i = 0; i < 6; i++)
		put_elsewhere(pool, page[i]);
	/* All are of a wrong node, and the page allocator has none of the right one. */
	pool->p.nid = 1;
	assert_null(page_pool_alloc_pages(pool));
	assert_int_equal(ring_of(pool), 5);
	assert_null(page_pool_alloc_pages(pool));
	assert_int_equal(ring_of(pool), 4);
	assert_int_equal(pool->alloc_stats.waive, 2);
	assert_int_equal(pool->alloc_stats.refill, 0);
	assert_int_equal(page_pool_inflight(pool), 62);
	/* Two of the right node, a wrong one, and one that stays in the ring. */
	pool->p.nid = 0;
	get_page(page[4]);
	page[4]->flags |= 1UL << PG_NODE_SHIFT;
	assert_ptr_equal(page_pool_alloc_pages(pool), page[3]);
	page[4]->flags &= ~(1UL << PG_NODE_SHIFT);
	put_page(page[4]);
	assert_int_equal(pool->alloc.count, 1);
	assert_int_equal(ring_of(pool), 1);
	assert_int_equal(pool->alloc_stats.waive, 3);
	assert_int_equal(pool->alloc_stats.refill, 1);
	assert_int_equal(page_pool_inflight(pool), 61);
	page_pool_put_page(pool, page[3], true);
	put_all(pool, page, 6);
	pool_ends(pool);
}

/*
 * No slot: the third of two leaves the pool. The ring's lock, the counter, the pool's own reference,
 * and the page allocator's lock.
 */
static void ring_full(void **state)
{
	struct page_pool *pool = pool_of(0, 2);
	struct page *page[PP_ALLOC_CACHE_REFILL];

	(void)state;
	take_all(pool, page);
	put_elsewhere(pool, page[0]);
	put_elsewhere(pool, page[1]);
	free_now();
	put_elsewhere(pool, page[2]);
	assert_true(cost(4));
	assert_int_equal(page_pool_recycled(pool).ring, 2);
	assert_int_equal(page_pool_recycled(pool).ring_full, 1);
	assert_int_equal(page_pool_inflight(pool), 63);
	assert_int_equal(model_pages_in_use(), 63);
	put_all(pool, page, 3);
	pool_ends(pool);
}

/* One CPU polls; a put is direct there, unless the caller polls no more. */
static void whose_cache(void **state)
{
	struct page_pool *pool = pool_of(0, 0);
	struct page *page[PP_ALLOC_CACHE_REFILL];

	(void)state;
	take_all(pool, page);
	assert_true(page_pool_napi_local(pool));
	page_pool_put_page(pool, page[0], false);
	assert_int_equal(pool->alloc.count, 1);
	/* The same CPU between two polls, as a reader that runs there. */
	page_pool_poll_end(pool);
	assert_false(page_pool_napi_local(pool));
	page_pool_put_page(pool, page[1], false);
	assert_int_equal(ring_of(pool), 1);
	/* It knows better. */
	page_pool_put_page(pool, page[2], true);
	assert_int_equal(pool->alloc.count, 2);
	/* Another CPU polls. */
	pool->list_owner = 1;
	page_pool_put_page(pool, page[3], false);
	assert_int_equal(ring_of(pool), 2);
	page_pool_poll_begin(pool);
	put_all(pool, page, 4);
	pool_ends(pool);
}

/* A block at a time, and a pool reference on it through any of its pages. */
static void high_order(void **state)
{
	struct page_pool *pool = pool_of(2, 0);
	struct page *a, *b;

	(void)state;
	a = page_pool_alloc_pages(pool);
	b = page_pool_alloc_pages(pool);
	assert_int_equal(pool->alloc_stats.slow_high_order, 2);
	assert_int_equal(pool->alloc_stats.slow, 0);
	assert_int_equal(page_pool_inflight(pool), 2);
	assert_int_equal(model_pages_in_use(), 8);
	page_pool_put_page(pool, a, true);
	assert_true(napi_pp_put_page(ERA_6_12, b + 3));
	assert_int_equal(pool->alloc.count, 2);
	pool_ends(pool);
}

/* pp_ref_count of a page that is being cut up: what is not handed out, and what is out. */
static void frag_counts(const struct page_pool *pool, const struct page *page, long out)
{
	assert_ptr_equal(pool->frag_page, page);
	assert_true(page->pp_ref_count.counter == PP_BIAS_MAX - pool->frag_users + out);
	assert_int_equal(page_count(page), 1);
}

/* Four of 1024 bytes, from the front; the fifth needs another page. */
static void fragments(void **state)
{
	struct page_pool *pool = pool_of(0, 0);
	unsigned int off;
	struct page *page, *next;

	(void)state;
	free_now();
	page = page_pool_alloc_frag(pool, &off, 1024);
	assert_int_equal(off, 0);
	assert_int_equal(pool->frag_users, 1);
	frag_counts(pool, page, 1);
	free_now();
	for (unsigned int i = 1; i < 4; i++) {
		assert_ptr_equal(page_pool_alloc_frag(pool, &off, 1024), page);
		assert_int_equal(off, 1024 * i);
		frag_counts(pool, page, i + 1);
	}
	assert_true(cost(0));
	/* One comes back: one RMW, and the page stays. */
	page_pool_put_page(pool, page, true);
	assert_true(cost(1));
	frag_counts(pool, page, 3);
	/* Another page: one RMW on the one that is left, which its three users have now. */
	next = page_pool_alloc_frag(pool, &off, 1024);
	assert_true(cost(1));
	assert_ptr_not_equal(next, page);
	assert_int_equal(off, 0);
	assert_int_equal(page->pp_ref_count.counter, 3);
	assert_int_equal(pool->alloc.count, 62);
	page_pool_put_page(pool, page, true);
	put_elsewhere(pool, page);
	assert_true(cost(2));
	assert_int_equal(pool->alloc.count, 62);
	/* The last: no RMW, and into the cache with both counts at rest. */
	page_pool_put_page(pool, page, true);
	assert_true(cost(0));
	assert_int_equal(pool->alloc.count, 63);
	rests(page);
	/* The pool lets go of its page with the pool; a fragment that is out keeps it in flight. */
	page_pool_put_page(pool, next, true);
	assert_ptr_equal(page_pool_alloc_frag(pool, &off, 3072), next);
	assert_int_equal(off, 1024);
	assert_int_equal(page_pool_destroy(pool), 1);
	assert_int_equal(next->pp_ref_count.counter, 1);
	page_pool_put_page(pool, next, false);
	pool_ends(pool);
}

/* All fragments are back when the block is full: it is cut anew, and not by way of the cache. */
static void fragments_in_place(void **state)
{
	struct page_pool *pool = pool_of(1, 0);
	unsigned int off;
	struct page *page, *other;

	(void)state;
	page = page_pool_alloc_frag(pool, &off, 4096);
	assert_ptr_equal(page_pool_alloc_frag(pool, &off, 4096), page);
	assert_int_equal(off, 4096);
	page_pool_put_page(pool, page, true);
	page_pool_put_page(pool, page, true);
	free_now();
	/* Its count says so by itself: no RMW. */
	assert_ptr_equal(page_pool_alloc_frag(pool, &off, 8192), page);
	assert_true(cost(0));
	assert_int_equal(off, 0);
	frag_counts(pool, page, 1);
	assert_int_equal(pool->alloc_stats.slow_high_order, 1);
	/* The same, but somebody else holds it: out of the pool. */
	page_pool_put_page(pool, page, true);
	get_page(page);
	other = page_pool_alloc_frag(pool, &off, 100);
	assert_ptr_not_equal(other, page);
	assert_false(is_pp_page(page));
	assert_int_equal(page_count(page), 1);
	assert_int_equal(page_pool_inflight(pool), 1);
	put_page(page);
	page_pool_put_page(pool, other, true);
	pool_ends(pool);
}

/* Two kinds of users of one page: it goes back with the last of the pool's, if no other is left. */
static void two_kinds_of_references(void **state)
{
	struct page_pool *pool = pool_of(0, 0);
	struct page *page[PP_ALLOC_CACHE_REFILL];

	(void)state;
	take_all(pool, page);
	page_pool_ref_page(page[0]);
	assert_int_equal(page[0]->pp_ref_count.counter, 2);
	free_now();
	page_pool_put_page(pool, page[0], true);
	assert_true(cost(1));
	assert_int_equal(pool->alloc.count, 0);
	page_pool_put_page(pool, page[0], true);
	assert_int_equal(pool->alloc.count, 1);
	rests(page[0]);
	/* One that is not the pool's, and is gone before. */
	get_page(page[1]);
	page_pool_ref_page(page[1]);
	page_pool_put_page(pool, page[1], true);
	put_page(page[1]);
	page_pool_put_page(pool, page[1], true);
	assert_int_equal(pool->alloc.count, 2);
	put_all(pool, page, 2);
	pool_ends(pool);
}

/* What is out when the pool is to end comes back into the ring, and goes with the next try. */
static void ends_when_all_are_back(void **state)
{
	struct page_pool *pool = pool_of(0, 0);
	struct page *a = page_pool_alloc_pages(pool), *b = page_pool_alloc_pages(pool);

	(void)state;
	put_elsewhere(pool, page_pool_alloc_pages(pool));
	assert_int_equal(page_pool_destroy(pool), 2);
	assert_int_equal(model_pages_in_use(), 2);
	page_pool_put_page(pool, a, false); /* the owner owns it no more */
	assert_int_equal(pool->alloc.count, 0);
	assert_int_equal(ring_of(pool), 1);
	assert_int_equal(page_pool_destroy(pool), 1);
	page_pool_put_page(pool, b, false);
	pool_ends(pool);
}

static void limits(void **state)
{
	struct page_pool_params p = { .order = PCP_MAX_ORDER + 1 };
	struct page_pool *pool = NULL;

	(void)state;
	assert_int_equal(page_pool_create(&p, &pool), -EINVAL);
	p.order = 0;
	p.pool_size = PP_RING_MAX + 1;
	assert_int_equal(page_pool_create(&p, &pool), -E2BIG);
	assert_null(pool);
	p.pool_size = PP_RING_MAX;
	assert_int_equal(page_pool_create(&p, &pool), 0);
	assert_int_equal(pool->ring.size, PP_RING_MAX);
	assert_int_equal(page_pool_destroy(pool), 0);
	p.pool_size = 0;
	assert_int_equal(page_pool_create(&p, &pool), 0);
	assert_int_equal(pool->ring.size, PP_RING_DEFAULT);
	pool_ends(pool);
}

static void too_large_a_fragment(void)
{
	struct page_pool *pool = pool_of(0, 0);
	unsigned int off;

	page_pool_alloc_frag(pool, &off, PAGE_SIZE + 1);
}

static void preconditions(void **state)
{
	(void)state;
	assert_true(is_bug(too_large_a_fragment));
}

/* --- the ring */

/* In their order, however the indices wrap; full and empty as the slots say. */
static void ring_in_order(void **state)
{
	static const int sizes[] = { 1, 2, 3, 31, 32, 33, 100 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
		uintptr_t in = 1, out = 1;
		struct rng rng = { .state = sizes[k] };
		struct ptr_ring r;

		assert_int_equal(ptr_ring_init(&r, sizes[k]), 0);
		for (int i = 0; i < 5000; i++) {
			bool full = (int)(in - out) == sizes[k];

			assert_int_equal(__ptr_ring_empty(&r), in == out);
			if (rng_below(&rng, 2)) {
				bool fits = ptr_ring_produce(&r, (void *)in);

				/* Taken slots are cleared a batch at a time: full a little sooner. */
				assert_false(full && fits);
				if (!fits)
					assert_true((int)(in - out) > sizes[k] - r.batch);
				in += fits;
			} else {
				void *p = rng_below(&rng, 2) ? __ptr_ring_consume(&r)
							     : ptr_ring_consume(&r);

				assert_ptr_equal(p, in == out ? NULL : (void *)out);
				out += p != NULL;
			}
		}
		ptr_ring_cleanup(&r);
	}
}

/* --- sk_buffs with a pool's pages */

/* An sk_buff that recycles, with N pages of POOL as frags of 1000 bytes. */
static struct sk_buff *recycling(enum skb_era era, struct page_pool *pool, int n)
{
	struct sk_buff *skb = empty(era);

	skb_mark_for_recycle(skb);
	for (int i = 0; i < n; i++)
		skb_add_rx_frag(skb, i, page_pool_alloc_pages(pool), 0, 1000, 4096);
	return skb;
}

static struct page *frag_page(const struct sk_buff *skb, int i)
{
	return skb_shinfo(skb)->frags[i].page;
}

/* 6.1: into the ring, wherever it is freed. Later: where the pool is polled, into the cache. */
static void freed_sk_buffs(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (int polled = 0; polled < 2; polled++) {
			struct page_pool *pool = pool_of(0, 0);
			struct sk_buff *skb = recycling(era, pool, 3);
			bool cached = polled && era >= ERA_6_12;

			if (!polled)
				page_pool_poll_end(pool);
			free_now();
			kfree_skb(era, skb);
			assert_true(cost(cached ? 0 : 3));
			assert_int_equal(pool->alloc.count, cached ? 64 : 61);
			assert_int_equal(ring_of(pool), cached ? 0 : 3);
			pool_ends(pool);
		}
	}
}

/* The mark is of the sk_buff, the signature of the page: without either it is a put. */
static void mark_and_signature(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *skb = recycling(era, pool, 1);
		struct page *own = block(0);

		frag(skb, own, 0, 100);
		kfree_skb(era, skb);
		assert_int_equal(page_count(own), 1);
		put_page(own);
		skb = recycling(era, pool, 1);
		get_page(frag_page(skb, 0)); /* or the page would be lost to the pool */
		own = frag_page(skb, 0);
		skb->pp_recycle = 0;
		kfree_skb(era, skb);
		assert_int_equal(page_count(own), 1);
		page_pool_put_page(pool, own, true);
		pool_ends(pool);
	}
}

/* Clones share the mark and the frags; whoever lets go last gives the pages back, once. */
static void clones(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (int clone_first = 0; clone_first < 2; clone_first++) {
			struct page_pool *pool = pool_of(0, 0);
			struct sk_buff *skb = recycling(era, pool, 2);
			struct sk_buff *clone = skb_clone(era, skb);

			assert_true(clone->pp_recycle);
			kfree_skb(era, clone_first ? clone : skb);
			assert_int_equal(pool->alloc.count + ring_of(pool), 62);
			kfree_skb(era, clone_first ? skb : clone);
			assert_int_equal(pool->alloc.count + ring_of(pool), 64);
			assert_int_equal(page_pool_recycled(pool).released_refcnt, 0);
			pool_ends(pool);
		}
	}
}

/*
 * A private head for one of two: its references are ordinary ones and it gives nothing back any
 * more; nor does the other one, but what it lets go of last.
 */
static void expanded_clones(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (int clone_first = 0; clone_first < 2; clone_first++) {
			struct page_pool *pool = pool_of(0, 0);
			struct sk_buff *skb = recycling(era, pool, 2);
			struct sk_buff *clone = skb_clone(era, skb);

			assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
			assert_false(skb->pp_recycle);
			assert_true(clone->pp_recycle);
			assert_int_equal(page_count(frag_page(skb, 0)), 2);
			assert_int_equal(frag_page(skb, 0)->pp_ref_count.counter, 1);
			if (clone_first) {
				kfree_skb(era, clone);
				assert_int_equal(page_pool_recycled(pool).released_refcnt, 2);
				assert_int_equal(page_pool_inflight(pool), 62);
				kfree_skb(era, skb);
			} else {
				kfree_skb(era, skb);
				kfree_skb(era, clone);
				assert_int_equal(page_pool_recycled(pool).released_refcnt, 0);
				assert_int_equal(page_pool_inflight(pool), 64);
			}
			pool_ends(pool);
		}
	}
}

/* Nobody else: the references move with the descriptors, and so does the mark. */
static void expanded_alone(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *skb = recycling(era, pool, 2);

		assert_int_equal(pskb_expand_head(era, skb, 0, 500), 0);
		assert_true(skb->pp_recycle);
		kfree_skb(era, skb);
		assert_int_equal(page_pool_inflight(pool), 64);
		assert_int_equal(pool->alloc.count + ring_of(pool), 64);
		pool_ends(pool);
	}
}

/* Copies with the same pages hold them as anybody does. */
static void copies(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *skb = recycling(era, pool, 2), *copy = pskb_copy(era, skb);

		assert_false(copy->pp_recycle);
		assert_int_equal(page_count(frag_page(skb, 1)), 2);
		kfree_skb(era, copy);
		copy = skb_copy(era, skb);
		kfree_skb(era, copy);
		kfree_skb(era, skb);
		assert_int_equal(page_pool_inflight(pool), 64);
		assert_int_equal(pool->alloc.count + ring_of(pool), 64);
		pool_ends(pool);
	}
}

/* A head in a pool's page goes where the frags go; its page may be a tail. */
static void heads(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (unsigned int order = 0; order < 2; order++) {
			struct page_pool *pool = pool_of(order, 0);
			struct page *page = page_pool_alloc_pages(pool);
			char *at = (char *)page_address(page) + (PAGE_SIZE << order) - 2048;
			struct sk_buff *skb = build_skb(era, at, 2048);
			unsigned int inflight = page_pool_inflight(pool);

			skb_mark_for_recycle(skb);
			kfree_skb(era, skb_clone(era, skb));
			kfree_skb(era, skb);
			assert_int_equal(pool->alloc.count + ring_of(pool), inflight);
			rests(page);
			pool_ends(pool);
		}
	}
}

/* Frags that are cut off or pulled go back at once. */
static void trimmed_and_pulled(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *skb = recycling(era, pool, 4);

		assert_int_equal(pskb_trim(era, skb, 2500), 0);
		assert_int_equal(pool->alloc.count + ring_of(pool), 61);
		assert_non_null(__pskb_pull_tail(era, skb, 1200));
		assert_int_equal(pool->alloc.count + ring_of(pool), 62);
		kfree_skb(era, skb);
		assert_int_equal(pool->alloc.count + ring_of(pool), 64);
		assert_int_equal(page_pool_recycled(pool).released_refcnt, 0);
		pool_ends(pool);
	}
}

/* A cut frag is in both halves, and comes back when both are done with it. */
static void split(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (int first = 0; first < 2; first++) {
			struct page_pool *pool = pool_of(0, 0);
			struct sk_buff *a = recycling(era, pool, 3), *b = recycling(era, pool, 0);
			struct page *cut = frag_page(a, 1);

			skb_split(a, b, 1500);
			assert_int_equal(page_count(cut), 1);
			assert_int_equal(cut->pp_ref_count.counter, 2);
			kfree_skb(era, first ? a : b);
			assert_int_equal(cut->pp_ref_count.counter, 1);
			assert_int_equal(pool->alloc.count + ring_of(pool), 62);
			kfree_skb(era, first ? b : a);
			assert_int_equal(pool->alloc.count + ring_of(pool), 64);
			pool_ends(pool);
		}
	}
}

/*
 * A page moves in part to an empty sk_buff, then the rest, which continues it. As 6.1 and 6.12 do
 * it: a get that is not the pool's and a put that is, so that the page leaves the pool; nothing is
 * lost. Mirrored: the pool's reference both times, and the page comes back.
 */
static void shifted(void **state)
{
	(void)state;
	for (int mirrored = 0; mirrored < 2; mirrored++) {
		for_each_pool_era (era) {
			struct page_pool *pool = pool_of(0, 0);
			struct sk_buff *a = recycling(era, pool, 0), *b = recycling(era, pool, 0);
			struct page *page = page_pool_alloc_pages(pool);
			int (*part)(struct sk_buff *, struct sk_buff *, int) =
				mirrored	 ? skb_shift_mirrored
				: era == ERA_6_1 ? skb_shift_6_1
						 : skb_shift_6_12;

			skb_add_rx_frag(b, 0, page, 0, 4096, 4096);
			assert_int_equal(part(a, b, 1000), 1000);
			assert_int_equal(page->pp_ref_count.counter, mirrored ? 2 : 1);
			assert_int_equal(page_count(page), mirrored ? 1 : 2);
			is_frag(a, 0, page, 0, 1000);
			is_frag(b, 0, page, 1000, 3096);
			assert_int_equal(part(a, b, 3096), 3096);
			is_frag(a, 0, page, 0, 4096);
			assert_int_equal(page_count(page), 1);
			assert_int_equal(is_pp_page(page), mirrored);
			if (mirrored)
				assert_int_equal(page->pp_ref_count.counter, 1);
			assert_int_equal(page_pool_inflight(pool), 63 + mirrored);
			kfree_skb(era, a);
			kfree_skb(era, b);
			assert_int_equal(pool->alloc.count + ring_of(pool), 63 + mirrored);
			pool_ends(pool);
		}
	}
}

/* A private head makes one of two forget its pool: then nothing moves, and nothing is lost. */
static void shifted_clones(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *a = recycling(era, pool, 1), *b = recycling(era, pool, 2), *clone;

		clone = skb_clone(era, a);
		assert_int_equal(skb_shift(era, a, b, 1000), 0);
		assert_int_equal(a->len, 1000);
		assert_int_equal(b->len, 2000);
		good(a);
		good(b);
		kfree_skb(era, b);
		kfree_skb(era, a);
		kfree_skb(era, clone);
		assert_int_equal(page_pool_inflight(pool), 64);
		pool_ends(pool);
	}
}

static void mixed_shift(void)
{
	struct page_pool *pool = pool_of(0, 0);

	skb_shift(ERA_6_12, empty(ERA_6_12), recycling(ERA_6_12, pool, 1), 1000);
}

static void mixed_split(void)
{
	struct page_pool *pool = pool_of(0, 0);

	skb_split(recycling(ERA_6_12, pool, 1), empty(ERA_6_12), 500);
}

static void never_mixed(void **state)
{
	(void)state;
	assert_true(is_bug(mixed_shift));
	assert_true(is_bug(mixed_split));
}

static bool coalesce(enum skb_era era, struct sk_buff *to, struct sk_buff *from)
{
	bool stolen, merged;
	int delta;

	merged = skb_try_coalesce(era, to, from, &stolen, &delta);
	if (merged)
		kfree_skb_partial(era, from, stolen);
	else
		kfree_skb(era, from);
	return merged;
}

/* Merged frags and heads come back from where they are now. */
static void coalesced(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		struct page_pool *pool = pool_of(0, 0);
		struct sk_buff *to = recycling(era, pool, 1), *from;

		assert_true(coalesce(era, to, recycling(era, pool, 3)));
		from = build_skb(era, page_address(page_pool_alloc_pages(pool)), 4096);
		skb_mark_for_recycle(from);
		fill_linear(from, 100);
		assert_true(coalesce(era, to, from));
		assert_int_equal(skb_shinfo(to)->nr_frags, 5);
		kfree_skb(era, to);
		assert_int_equal(pool->alloc.count + ring_of(pool), 64);
		pool_ends(pool);
	}
}

/*
 * A thousand packets of 256 bytes, each cloned by somebody who looks on: 6.1 merges none of them,
 * 6.12 all that there are frags for; every page comes back either way, whoever lets go last.
 */
static void taps(void **state)
{
	(void)state;
	for_each_pool_era (era) {
		for (int tap_first = 0; tap_first < 2; tap_first++) {
			struct page_pool *pool = pool_of(0, 4096);
			int merged = 0, packets = 0;

			while (packets < 1000) {
				struct sk_buff *tap[MAX_SKB_FRAGS] = { 0 };
				struct sk_buff *to = empty(era);
				int n = 0;

				skb_mark_for_recycle(to);
				skb_reserve(to, skb_tailroom(to));
				for (; n < MAX_SKB_FRAGS && packets < 1000; n++, packets++) {
					struct sk_buff *skb = recycling(era, pool, 0);
					struct page *page = page_pool_alloc_pages(pool);

					skb_add_rx_frag(skb, 0, page, 64, 256, 4096);
					tap[n] = skb_clone(era, skb);
					merged += coalesce(era, to, skb);
				}
				if (!tap_first)
					kfree_skb(era, to);
				for (int i = 0; i < n; i++)
					kfree_skb(era, tap[i]);
				if (tap_first)
					kfree_skb(era, to);
			}
			assert_int_equal(merged, era >= ERA_6_12 ? 1000 : 0);
			assert_int_equal(page_pool_recycled(pool).released_refcnt, 0);
			assert_int_equal(pool->alloc.count + ring_of(pool),
					 page_pool_inflight(pool));
			pool_ends(pool);
		}
	}
}

#ifdef SKB_TRACED
/* No page to be had: NULL, and the pool as before; some of a bulk: the rest is kept. */
static void no_memory(void **state)
{
	struct page_pool *pool = pool_of(0, 0), *blocks = pool_of(1, 0);
	struct page *page;
	unsigned int off;

	(void)state;
	counts_start();
	for (int k = 1; k <= 2; k++) {
		/* The bulk has none; then the allocation of one page. */
		fail_in = k;
		model_fail = fail_nth;
		page = page_pool_alloc_pages(pool);
		model_fail = NULL;
		assert_non_null(page);
		assert_int_equal(pool->alloc.count, 0);
		assert_int_equal(page_pool_inflight(pool), 1);
		page_pool_put_page(pool, page, true);
		page_pool_destroy(pool);
		pool = pool_of(0, 0);
	}
	fail_in = 11;
	model_fail = fail_nth;
	page = page_pool_alloc_pages(pool);
	assert_int_equal(page_pool_inflight(pool), 10);
	assert_int_equal(pool->alloc.count, 9);
	page_pool_put_page(pool, page, true);
	model_fail = NULL;
	page_pool_destroy(pool);

	fail_in = 1;
	model_fail = fail_nth;
	assert_null(page_pool_alloc_pages(blocks));
	fail_in = 1;
	assert_null(page_pool_alloc_frag(blocks, &off, 100));
	model_fail = NULL;
	assert_null(blocks->frag_page);
	assert_int_equal(page_pool_inflight(blocks), 0);
	pool_ends(blocks);
}

static bool fail_always(enum skb_site site)
{
	(void)site;
	return true;
}

/* A block is full and there is no other: what is out of it is its users'. */
static void no_memory_for_a_fragment(void **state)
{
	struct page_pool *pool = pool_of(3, 0);
	unsigned int off;
	struct page *page = page_pool_alloc_frag(pool, &off, 32768);

	(void)state;
	model_fail = fail_always;
	assert_null(page_pool_alloc_frag(pool, &off, 1));
	assert_null(page_pool_alloc_frag(pool, &off, 1));
	model_fail = NULL;
	assert_null(pool->frag_page);
	assert_int_equal(page->pp_ref_count.counter, 1);
	page_pool_put_page(pool, page, true);
	assert_ptr_equal(page_pool_alloc_frag(pool, &off, 1), page);
	page_pool_put_page(pool, page, true);
	pool_ends(pool);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(refill_by_64),
		cmocka_unit_test(waives_one_at_a_time),
		cmocka_unit_test(ring_full),
		cmocka_unit_test(whose_cache),
		cmocka_unit_test(high_order),
		cmocka_unit_test(fragments),
		cmocka_unit_test(fragments_in_place),
		cmocka_unit_test(two_kinds_of_references),
		cmocka_unit_test(ends_when_all_are_back),
		cmocka_unit_test(limits),
		cmocka_unit_test(preconditions),
		cmocka_unit_test(ring_in_order),
		cmocka_unit_test(freed_sk_buffs),
		cmocka_unit_test(mark_and_signature),
		cmocka_unit_test(clones),
		cmocka_unit_test(expanded_clones),
		cmocka_unit_test(expanded_alone),
		cmocka_unit_test(copies),
		cmocka_unit_test(heads),
		cmocka_unit_test(trimmed_and_pulled),
		cmocka_unit_test(split),
		cmocka_unit_test(shifted),
		cmocka_unit_test(shifted_clones),
		cmocka_unit_test(never_mixed),
		cmocka_unit_test(coalesced),
		cmocka_unit_test(taps),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),
		cmocka_unit_test(no_memory_for_a_fragment),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
