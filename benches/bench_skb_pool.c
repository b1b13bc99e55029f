/* SPDX-License-Identifier: MIT */
/*
 * page_pool: a receive queue's pages, out and back.
 *
 *   operation                 keys              one operation is
 *   skb/page_pool_alloc       from              64 pages of a pool, and back where they came from
 *   skb/page_pool_put         by                64 pages (65 for ring_full), put as by says
 *   skb/page_pool_alloc_frag  size              all fragments of a page, and their puts
 *   skb/page_pool_two_cpus    era               a page allocated on the pool's CPU, put on another
 *   skb/kfree_skb_recycle     era frags polled  an sk_buff with pages of a pool made and freed
 *
 * Kernel: net/core/page_pool.c, 6.12. from is where the pages are: the owner's "cache"; the "ring",
 * a refill of 64; the page allocator, 64 at once ("pages") or a block of 8 pages at a time
 * ("blocks", 16 of them). by is how they come back: by the "owner", who polls the queue; by an
 * "other" CPU, into the ring; into a ring of one slot ("ring_full": one fits, 64 are let go of);
 * while somebody else holds them ("held"), so that they leave the pool. polled is whether the pool's
 * CPU polls while it frees; if not, or in 6.1, pages come back by the ring. What is fake here: but
 * for two_cpus all is done by one thread, warm, where "other" is the same CPU between two polls;
 * nothing is received into the pages; no DMA mapping.
 */
#include "benches/bench_skb.h"

#include <errno.h>

#define BURST	  64
#define MAX_PAGES (BURST + 1)
#define BLOCKS	  16
#define HAND	  128 /* pages on their way from one CPU to the other */

enum from { FROM_CACHE, FROM_RING, FROM_PAGES, FROM_BLOCKS };
static const char *const from_words[] = { "cache", "ring", "pages", "blocks", NULL };
enum by { BY_OWNER, BY_OTHER, BY_RING_FULL, BY_HELD };
static const char *const by_words[] = { "owner", "other", "ring_full", "held", NULL };

struct pool_ctx {
	struct page_pool *pool;
	struct page *page[MAX_PAGES];
	struct sk_buff *skb; /* between two phases */
	enum skb_era era;
	unsigned int nr; /* pages, fragments or frags of an operation */
	unsigned int size;
	void (*one)(void *ctx);
	struct page *hand[HAND] ____cacheline_aligned;
	unsigned int given ____cacheline_aligned;
	unsigned int taken ____cacheline_aligned;
};

static void pool_teardown(void *arg)
{
	struct pool_ctx *c = arg;

	if (c->pool)
		BUG_ON(page_pool_destroy(c->pool));
	free(c);
}

static struct pool_ctx *pool_case(unsigned int order, unsigned int slots, char *err, size_t errlen)
{
	struct page_pool_params p = { .order = order, .pool_size = slots, .nid = NUMA_NO_NODE };
	struct pool_ctx *c = aligned_alloc(SMP_CACHE_BYTES, ALIGN(sizeof(*c), SMP_CACHE_BYTES));

	if (c)
		memset(c, 0, sizeof(*c));
	if (!c || page_pool_create(&p, &c->pool)) {
		free(c);
		snprintf(err, errlen, "no memory for the case");
		return NULL;
	}
	page_pool_poll_begin(c->pool);
	return c;
}

static int check_pool(void *arg, char *err, size_t errlen)
{
	struct pool_ctx *c = arg;
	s32 before, after;

	c->one(c);
	before = page_pool_inflight(c->pool);
	c->one(c);
	after = page_pool_inflight(c->pool);
	if (c->skb || before != after) {
		snprintf(err, errlen, "%d pages in flight after one operation, %d after the next",
			 before, after);
		return -1;
	}
	return 0;
}

static int pool_made(struct bench_case *out, struct pool_ctx *c, void (*span)(void *, u64),
		     void (*one)(void *))
{
	c->one = one;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span } },
		.check = check_pool,
		.ledger = one,
		.teardown = pool_teardown,
	};
	return 0;
}

/* --- whole pages */

static __always_inline void alloc_all(struct pool_ctx *c)
{
	for (unsigned int i = 0; i < c->nr; i++) {
		c->page[i] = page_pool_alloc_pages(c->pool);
		BUG_ON(!c->page[i]);
	}
}

static __always_inline void hold_all(struct pool_ctx *c)
{
	for (unsigned int i = 0; i < c->nr; i++)
		get_page(c->page[i]);
}

static __always_inline void put_all(struct pool_ctx *c, const bool direct)
{
	for (unsigned int i = 0; i < c->nr; i++)
		page_pool_put_page(c->pool, c->page[i], direct);
}

static __always_inline void drop_all(struct pool_ctx *c)
{
	for (unsigned int i = 0; i < c->nr; i++)
		put_page(c->page[i]);
}

static void span_direct(void *arg, u64 n)
{
	while (n--) {
		alloc_all(arg);
		put_all(arg, true);
	}
}

static void span_not_direct(void *arg, u64 n)
{
	while (n--) {
		alloc_all(arg);
		put_all(arg, false);
	}
}

static void span_held(void *arg, u64 n)
{
	while (n--) {
		alloc_all(arg);
		hold_all(arg);
		put_all(arg, true);
		drop_all(arg);
	}
}

static void phase_alloc(void *arg)
{
	alloc_all(arg);
}

static void phase_hold(void *arg)
{
	hold_all(arg);
}

static void phase_put_direct(void *arg)
{
	put_all(arg, true);
}

static void phase_put(void *arg)
{
	put_all(arg, false);
}

static void phase_drop(void *arg)
{
	drop_all(arg);
}

static void one_direct(void *arg)
{
	bench_phase("alloc", phase_alloc, arg);
	bench_phase("put", phase_put_direct, arg);
}

static void one_not_direct(void *arg)
{
	bench_phase("alloc", phase_alloc, arg);
	bench_phase("put", phase_put, arg);
}

static void one_held(void *arg)
{
	bench_phase("alloc", phase_alloc, arg);
	bench_phase("hold", phase_hold, arg);
	bench_phase("put", phase_put_direct, arg);
	bench_phase("drop", phase_drop, arg);
}

static int prepare_alloc(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	enum from from = bench_arg(args, "from");
	struct pool_ctx *c = pool_case(from == FROM_BLOCKS ? 3 : 0, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	c->nr = from == FROM_BLOCKS ? BLOCKS : BURST;
	if (from == FROM_CACHE)
		return pool_made(out, c, span_direct, one_direct);
	if (from != FROM_RING)
		return pool_made(out, c, span_held, one_held);
	page_pool_poll_end(c->pool);
	return pool_made(out, c, span_not_direct, one_not_direct);
}

static int prepare_put(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	enum by by = bench_arg(args, "by");
	struct pool_ctx *c = pool_case(0, by == BY_RING_FULL, err, errlen);

	if (!c)
		return -ENOMEM;
	c->nr = by == BY_RING_FULL ? BURST + 1 : BURST;
	if (by == BY_HELD)
		return pool_made(out, c, span_held, one_held);
	if (by == BY_OWNER)
		return pool_made(out, c, span_not_direct, one_not_direct);
	page_pool_poll_end(c->pool);
	return pool_made(out, c, span_not_direct, one_not_direct);
}

/* --- fragments */

static __always_inline void alloc_frags(struct pool_ctx *c)
{
	unsigned int off;

	for (unsigned int i = 0; i < c->nr; i++) {
		c->page[i] = page_pool_alloc_frag(c->pool, &off, c->size);
		BUG_ON(!c->page[i]);
	}
}

static void span_frags(void *arg, u64 n)
{
	while (n--) {
		alloc_frags(arg);
		put_all(arg, false);
	}
}

static void phase_alloc_frags(void *arg)
{
	alloc_frags(arg);
}

static void one_frags(void *arg)
{
	bench_phase("alloc", phase_alloc_frags, arg);
	bench_phase("put", phase_put, arg);
}

static int prepare_frags(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	struct pool_ctx *c = pool_case(0, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	c->size = bench_arg(args, "size");
	c->nr = PAGE_SIZE / c->size;
	if (c->nr > MAX_PAGES) {
		pool_teardown(c);
		snprintf(err, errlen, "a page has more than %d fragments of size:%ld", MAX_PAGES,
			 bench_arg(args, "size"));
		return -EINVAL;
	}
	return pool_made(out, c, span_frags, one_frags);
}

/* --- two CPUs */

static void span_owner(void *arg, u64 n)
{
	struct pool_ctx *c = arg;

	page_pool_poll_begin(c->pool);
	while (n--) {
		struct page **slot = &c->hand[c->given++ % HAND];
		struct page *page = page_pool_alloc_pages(c->pool);

		BUG_ON(!page);
		bench_wait_until(!skb_load(slot, SKB_C_RING));
		smp_store_release(slot, page, SKB_C_RING);
	}
}

static __always_inline struct page *taken(struct pool_ctx *c)
{
	struct page **slot = &c->hand[c->taken++ % HAND], *page;

	bench_wait_until(skb_load(slot, SKB_C_RING));
	page = smp_load_acquire(slot, SKB_C_RING);
	smp_store_release(slot, NULL, SKB_C_RING);
	return page;
}

#define PUTTER_SPAN(suffix, era_)                                    \
	static void span_putter_##suffix(void *arg, u64 n)           \
	{                                                            \
		while (n--)                                          \
			BUG_ON(!napi_pp_put_page(era_, taken(arg))); \
	}
PUTTER_SPAN(6_1, ERA_6_1)
PUTTER_SPAN(6_12, ERA_6_12)

static void phase_alloc_one(void *arg)
{
	struct pool_ctx *c = arg;

	c->page[0] = page_pool_alloc_pages(c->pool);
	BUG_ON(!c->page[0]);
}

static void phase_put_one(void *arg)
{
	struct pool_ctx *c = arg;

	BUG_ON(!napi_pp_put_page(c->era, c->page[0]));
}

static void one_of_two(void *arg)
{
	struct pool_ctx *c = arg;

	page_pool_poll_end(c->pool);
	bench_phase("alloc", phase_alloc_one, arg);
	bench_phase("put", phase_put_one, arg);
}

/* Eras with pools; the state of any other is refused. */
static int check_era(const struct bench_args *args, char *err, size_t errlen)
{
	if (bench_arg(args, "era") != ERA_3_4)
		return 0;
	snprintf(err, errlen, "3.4 has no page_pool: ask for era:6.1 or era:6.12");
	return -EINVAL;
}

static int prepare_two(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	static void (*const putter[])(void *, u64) = { NULL, span_putter_6_1, span_putter_6_12 };
	struct pool_ctx *c;

	if (check_era(args, err, errlen))
		return -EINVAL;
	c = pool_case(0, 0, err, errlen);
	if (!c)
		return -ENOMEM;
	c->era = bench_arg(args, "era");
	pool_made(out, c, span_owner, one_of_two);
	out->nr_roles = 2;
	out->role[0].name = "owner";
	out->role[1] = (struct bench_role){ "putter", putter[c->era] };
	return 0;
}

/* --- sk_buffs */

static __always_inline struct sk_buff *make_skb(struct pool_ctx *c, const enum skb_era era)
{
	struct sk_buff *skb = alloc_skb(era, 0, NUMA_NO_NODE);

	BUG_ON(!skb);
	skb_mark_for_recycle(skb);
	for (unsigned int i = 0; i < c->nr; i++) {
		struct page *page = page_pool_alloc_pages(c->pool);

		BUG_ON(!page);
		skb_add_rx_frag(skb, (int)i, page, 0, PAGE_SIZE, PAGE_SIZE);
	}
	return skb;
}

#define RECYCLE_SPAN(suffix, era_)                            \
	static void span_recycle_##suffix(void *arg, u64 n)   \
	{                                                     \
		while (n--)                                   \
			kfree_skb(era_, make_skb(arg, era_)); \
	}
RECYCLE_SPAN(6_1, ERA_6_1)
RECYCLE_SPAN(6_12, ERA_6_12)

static void phase_make(void *arg)
{
	struct pool_ctx *c = arg;

	c->skb = make_skb(c, c->era);
}

static void phase_free(void *arg)
{
	struct pool_ctx *c = arg;

	kfree_skb(c->era, c->skb);
	c->skb = NULL;
}

static void one_recycle(void *arg)
{
	bench_phase("make", phase_make, arg);
	bench_phase("free", phase_free, arg);
}

static int prepare_recycle(const struct bench_args *args, struct bench_case *out, char *err,
			   size_t errlen)
{
	static void (*const spans[])(void *, u64) = { NULL, span_recycle_6_1, span_recycle_6_12 };
	struct pool_ctx *c;

	if (check_era(args, err, errlen))
		return -EINVAL;
	c = pool_case(0, 0, err, errlen);
	if (!c)
		return -ENOMEM;
	c->era = bench_arg(args, "era");
	c->nr = bench_arg(args, "frags");
	if (!bench_arg(args, "polled"))
		page_pool_poll_end(c->pool);
	return pool_made(out, c, spans[c->era], one_recycle);
}

static const struct bench_key alloc_keys[] = {
	{ "from", from_words, 0, 0, "cache", "cache,ring,pages,blocks", "where the pages are" },
	{ 0 },
};
static const struct bench_key put_keys[] = {
	{ "by", by_words, 0, 0, "owner", "owner,other,ring_full,held", "how they come back" },
	{ 0 },
};
static const struct bench_key frag_keys[] = {
	{ "size", NULL, 64, 4096, "2048", "1024,2048", "bytes of a fragment" },
	{ 0 },
};
static const struct bench_key two_keys[] = { KEY_ERA("6.12"), { 0 } };
static const struct bench_key recycle_keys[] = {
	KEY_ERA("6.12"),
	KEY_FRAGS("1", "1,16"),
	{ "polled", NULL, 0, 1, "1", "0,1", "1: freed where and while the pool is polled" },
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "skb/page_pool_alloc", "take pages from a pool", alloc_keys, prepare_alloc, NULL },
	{ "skb/page_pool_put", "give pages back to their pool", put_keys, prepare_put, NULL },
	{ "skb/page_pool_alloc_frag", "fragments of a pool's page, and back", frag_keys,
	  prepare_frags, NULL },
	{ "skb/page_pool_two_cpus", "a pool's page to another CPU and back by the ring", two_keys,
	  prepare_two, NULL },
	{ "skb/kfree_skb_recycle", "an sk_buff whose pages go back to their pool", recycle_keys,
	  prepare_recycle, NULL },
};

void bench_skb_pool(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
