/* SPDX-License-Identifier: MIT */
/*
 * Memory that one CPU allocates and another frees, and the locks that lie behind it.
 *
 *   operation               keys                  one operation is
 *   contend/alloc_pages     order burst threads   burst alloc_pages(), then burst put_page(), on each CPU
 *   contend/pages_handed    order threads         a block allocated on one CPU and freed on another; THREADS couples
 *   contend/obj_handed      size threads alloc    an object of size bytes, the same way
 *   contend/page_pool_ring  era threads           a page of a pool to each of THREADS CPUs, which put it into the ring
 *
 * Kernel: mm/page_alloc.c, mm/slub.c, net/core/page_pool.c, 6.12. With a burst beyond what a CPU's lists hold
 * (PCP_HIGH pages), or with blocks that always go to another CPU, each list is refilled and drained through the zone and
 * its lock. What an object allocator pays for a remote free is its own: slub a compare-and-exchange on the object's slab,
 * jemalloc a trip through its caches and its arena's bins, glibc a lock of its arena. What is fake here: nothing is
 * written but a word of each object, as its first user would; a couple hands on at most 128 at once.
 */
#include "benches/bench_contend.h"

#include "skb/page_pool.h"

#define MAX_CPUS  BENCH_MAX_ROLES
#define MAX_BURST 1024

/* --- alloc_pages */

struct burst_ctx {
	unsigned int order, nr, threads;
	struct bench_quota quota;
	struct page *page[MAX_CPUS][MAX_BURST] ____cacheline_aligned;
};

static __always_inline void burst_alloc(const struct burst_ctx *c, struct page **page)
{
	for (unsigned int i = 0; i < c->nr; i++) {
		page[i] = alloc_pages(c->order);
		BUG_ON(!page[i]);
	}
}

static __always_inline void burst_free(const struct burst_ctx *c, struct page **page)
{
	for (unsigned int i = 0; i < c->nr; i++)
		put_page(page[i]);
}

static void span_burst(void *arg, u64 n)
{
	struct burst_ctx *c = arg;
	struct page **page = c->page[smp_processor_id()];
	struct bench_share share = quota_begin(&c->quota, n, c->threads);

	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			burst_alloc(c, page);
			burst_free(c, page);
		}
}

static void phase_burst_alloc(void *arg)
{
	struct burst_ctx *c = arg;

	burst_alloc(c, c->page[0]);
}

static void phase_burst_free(void *arg)
{
	struct burst_ctx *c = arg;

	burst_free(c, c->page[0]);
}

static void one_burst(void *arg)
{
	bench_phase("alloc", phase_burst_alloc, arg);
	bench_phase("free", phase_burst_free, arg);
}

/* No block twice: each is marked while all are out. */
static int check_burst(void *arg, char *err, size_t errlen)
{
	struct burst_ctx *c = arg;
	int ret = 0;

	phase_burst_alloc(c);
	for (unsigned int i = 0; i < c->nr; i++)
		*(u32 *)page_address(c->page[0][i]) = i;
	for (unsigned int i = 0; i < c->nr; i++)
		if (*(u32 *)page_address(c->page[0][i]) != i ||
		    compound_order(c->page[0][i]) != c->order) {
			snprintf(err, errlen, "block %u was handed out twice, or has another order",
				 i);
			ret = -1;
		}
	phase_burst_free(c);
	return ret;
}

static int prepare_burst(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	struct burst_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->order = (unsigned int)bench_arg(args, "order");
	c->nr = (unsigned int)bench_arg(args, "burst");
	c->threads = (unsigned int)bench_arg(args, "threads");
	*out = (struct bench_case){
		.ctx = c,
		.least_n = 8,
		.ops = c->threads,
		.check = check_burst,
		.ledger = one_burst,
		.teardown = free,
	};
	contend_roles(out, 0, c->threads, "cpu", span_burst);
	return 0;
}

/* What all CPUs have out, and what their lists keep from each other. */
static size_t pages_of_burst(const struct bench_args *args)
{
	size_t threads = (size_t)bench_arg(args, "threads");

	return threads *
	       (2 * ((size_t)bench_arg(args, "burst") << bench_arg(args, "order")) + PCP_HIGH);
}

/* --- blocks and objects from one CPU to another */

struct handed_ctx {
	unsigned int threads, order;
	size_t size;
	void *between; /* two phases */
	struct bench_quota quota;
	struct {
		struct hand hand;
		unsigned int
			node; /* of the CPU that allocates; its span notes it before it hands anything on */
		u32 made; /* objects so far: each bears its number */
		u32 seen ____cacheline_aligned;
	} couple[MAX_CPUS / 2];
};

static void span_page_alloc(void *arg, u64 n)
{
	struct handed_ctx *c = arg;
	struct hand *hand = &c->couple[smp_processor_id()].hand;
	struct bench_share share = quota_begin(&c->quota, n, c->threads);

	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			struct page *page = alloc_pages(c->order);

			BUG_ON(!page);
			hand_give(hand, page);
		}
	hand_finish(hand);
}

static void span_page_free(void *arg, u64 n)
{
	struct handed_ctx *c = arg;
	struct hand *hand = &c->couple[smp_processor_id() - c->threads].hand;
	void *page;

	(void)n; /* what its partner allocates */
	while ((page = hand_take(hand)) != HAND_END)
		put_page(page);
}

static void phase_page_alloc(void *arg)
{
	struct handed_ctx *c = arg;

	c->between = alloc_pages(c->order);
	BUG_ON(!c->between);
}

static void phase_page_free(void *arg)
{
	put_page(((struct handed_ctx *)arg)->between);
}

static void one_page(void *arg)
{
	bench_phase("alloc", phase_page_alloc, arg);
	bench_phase("free", phase_page_free, arg);
}

static void span_obj_alloc(void *arg, u64 n)
{
	struct handed_ctx *c = arg;
	unsigned int i = smp_processor_id(), node = numa_node_id();
	u32 made = c->couple[i].made;
	struct bench_share share = quota_begin(&c->quota, n, c->threads);

	c->couple[i].node = node;
	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			u32 *obj = obj_alloc(c->size, node);

			BUG_ON(!obj);
			*obj = made++;
			hand_give(&c->couple[i].hand, obj);
		}
	c->couple[i].made = made;
	hand_finish(&c->couple[i].hand);
}

static void span_obj_free(void *arg, u64 n)
{
	struct handed_ctx *c = arg;
	unsigned int i = smp_processor_id() - c->threads;
	u32 seen = c->couple[i].seen, *obj;

	(void)n; /* what its partner allocates */
	while ((obj = hand_take(&c->couple[i].hand)) != HAND_END) {
		/* An object that was handed out twice bears another's number. */
		BUG_ON(*obj != seen++);
		obj_free(obj, c->size, c->couple[i].node);
	}
	c->couple[i].seen = seen;
}

static void phase_obj_alloc(void *arg)
{
	struct handed_ctx *c = arg;

	c->between = obj_alloc(c->size, numa_node_id());
	BUG_ON(!c->between);
}

static void phase_obj_free(void *arg)
{
	struct handed_ctx *c = arg;

	obj_free(c->between, c->size, numa_node_id());
}

static void one_obj(void *arg)
{
	bench_phase("alloc", phase_obj_alloc, arg);
	bench_phase("free", phase_obj_free, arg);
}

static int check_handed(void *arg, char *err, size_t errlen)
{
	struct handed_ctx *c = arg;

	(c->size ? one_obj : one_page)(c);
	for (unsigned int i = 0; i < c->threads; i++) {
		const struct hand *hand = &c->couple[i].hand;

		if (hand->given == hand->taken && c->couple[i].made == c->couple[i].seen)
			continue;
		snprintf(err, errlen, "couple %u: %u handed on, %u freed", i, hand->given,
			 hand->taken);
		return -1;
	}
	return 0;
}

static int prepare_handed(const struct bench_args *args, size_t size, unsigned int order,
			  struct bench_case *out, char *err, size_t errlen)
{
	struct handed_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->size = size;
	c->order = order;
	c->threads = (unsigned int)bench_arg(args, "threads");
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check_handed,
		.ledger = size ? one_obj : one_page,
		.teardown = free,
	};
	contend_roles(out, 0, c->threads, "allocator", size ? span_obj_alloc : span_page_alloc);
	contend_roles(out, c->threads, c->threads, "freer", size ? span_obj_free : span_page_free);
	return 0;
}

static int prepare_pages(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	return prepare_handed(args, 0, (unsigned int)bench_arg(args, "order"), out, err, errlen);
}

static int prepare_objs(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	return prepare_handed(args, kmalloc_size_roundup((size_t)bench_arg(args, "size")), 0, out,
			      err, errlen);
}

static size_t pages_of_handed(const struct bench_args *args)
{
	return (size_t)bench_arg(args, "threads") *
	       (((size_t)HAND_SLOTS << bench_arg(args, "order")) + 2 * PCP_HIGH);
}

/* --- page_pool */

struct ring_ctx {
	struct page_pool *pool;
	struct page *between; /* two phases */
	enum skb_era era;
	unsigned int threads;
	struct hand hand[MAX_CPUS]; /* the owner's to each of the others; the first is not used */
};

static void span_owner(void *arg, u64 n)
{
	struct ring_ctx *c = arg;

	page_pool_poll_begin(c->pool);
	while (n--)
		for (unsigned int i = 1; i <= c->threads; i++) {
			struct page *page = page_pool_alloc_pages(c->pool);

			BUG_ON(!page);
			hand_give(&c->hand[i], page);
		}
	for (unsigned int i = 1; i <= c->threads; i++)
		hand_settle(&c->hand[i]);
	page_pool_poll_end(c->pool);
}

#define PUTTER_SPAN(suffix, era)                                                         \
	static void span_putter_##suffix(void *arg, u64 n)                               \
	{                                                                                \
		struct hand *hand = &((struct ring_ctx *)arg)->hand[smp_processor_id()]; \
                                                                                         \
		while (n--)                                                              \
			BUG_ON(!napi_pp_put_page(era, hand_take(hand)));                 \
	}
PUTTER_SPAN(6_1, ERA_6_1)
PUTTER_SPAN(6_12, ERA_6_12)

static void phase_pool_alloc(void *arg)
{
	struct ring_ctx *c = arg;

	c->between = page_pool_alloc_pages(c->pool);
	BUG_ON(!c->between);
}

static void phase_pool_put(void *arg)
{
	struct ring_ctx *c = arg;

	BUG_ON(!napi_pp_put_page(c->era, c->between));
}

static void one_pool(void *arg)
{
	bench_phase("alloc", phase_pool_alloc, arg);
	bench_phase("put", phase_pool_put, arg);
}

/* Exact at rest: every page that was put came back, whatever the ring had room for. */
static int check_pool(void *arg, char *err, size_t errlen)
{
	struct ring_ctx *c = arg;
	s32 before, after;

	one_pool(c);
	before = page_pool_inflight(c->pool);
	one_pool(c);
	after = page_pool_inflight(c->pool);
	if (before != after) {
		snprintf(err, errlen,
			 "%d pages belong to the pool after one operation, %d after the next",
			 before, after);
		return -1;
	}
	for (unsigned int i = 1; i <= c->threads; i++)
		if (c->hand[i].given != c->hand[i].taken) {
			snprintf(err, errlen, "%u pages handed on, %u put", c->hand[i].given,
				 c->hand[i].taken);
			return -1;
		}
	return 0;
}

static void report_pool(void *arg, struct bench_report *report)
{
	struct ring_ctx *c = arg;
	struct page_pool_recycle_stats s = page_pool_recycled(c->pool);
	double puts = (double)(s.cached + s.ring + s.ring_full + s.released_refcnt);

	bench_report_add(report, "ring_share", puts > 0 ? (double)s.ring / puts : 0);
}

static void teardown_pool(void *arg)
{
	struct ring_ctx *c = arg;

	BUG_ON(page_pool_destroy(c->pool));
	free(c);
}

static int prepare_ring(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const putter[])(void *, u64) = { NULL, span_putter_6_1, span_putter_6_12 };
	/* Room for all that may be on its way. */
	struct page_pool_params p = { .pool_size = 2048, .nid = NUMA_NO_NODE };
	struct ring_ctx *c;

	if (bench_arg(args, "era") == ERA_3_4) {
		snprintf(err, errlen, "3.4 has no page_pool: ask for era:6.1 or era:6.12");
		return -EINVAL;
	}
	c = contend_zalloc(sizeof(*c), err, errlen);
	if (!c)
		return -ENOMEM;
	c->era = (enum skb_era)bench_arg(args, "era");
	c->threads = (unsigned int)bench_arg(args, "threads");
	if (page_pool_create(&p, &c->pool)) {
		free(c);
		snprintf(err, errlen, "no memory for the pool");
		return -ENOMEM;
	}
	*out = (struct bench_case){
		.ctx = c,
		.role = { { "owner", span_owner } },
		.ops = c->threads,
		.check = check_pool,
		.ledger = one_pool,
		.report = report_pool,
		.teardown = teardown_pool,
	};
	contend_roles(out, 1, c->threads, "putter", putter[c->era]);
	return 0;
}

static size_t pages_of_ring(const struct bench_args *args)
{
	return (size_t)bench_arg(args, "threads") * (HAND_SLOTS + PCP_HIGH) + 4096;
}

#define KEY_ORDER                                                                    \
	{                                                                            \
		"order", NULL, 0, PCP_MAX_ORDER, "0", "0,3", "2^order pages a block" \
	}
#define KEY_COUPLES                                   \
	CONTEND_KEY_THREADS(MAX_CPUS / 2, "1", "1,2", \
			    "CPUs that allocate, each with one that frees")

static const struct bench_key burst_keys[] = {
	KEY_ORDER,
	{ "burst", NULL, 1, MAX_BURST, "512", "1,512", "blocks out at once" },
	CONTEND_KEY_THREADS(MAX_CPUS, "2", "1,2", "CPUs at it"),
	{ 0 },
};
static const struct bench_key handed_keys[] = { KEY_ORDER, KEY_COUPLES, { 0 } };
static const struct bench_key obj_keys[] = {
	{ "size", NULL, 1, 8192, "256", "256,704", "bytes: 256 a shell, 704 a small head" },
	KEY_COUPLES,
	BENCH_KEY_EVERY_ALLOC,
	{ 0 },
};
static const struct bench_key ring_keys[] = {
	CONTEND_KEY_ERA,
	CONTEND_KEY_THREADS(MAX_CPUS - 1, "1", "1,2", "CPUs that put, besides the pool's owner"),
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "contend/alloc_pages", "blocks of pages out and back, by several CPUs", burst_keys,
	  prepare_burst, pages_of_burst },
	{ "contend/pages_handed", "pages allocated here and freed there", handed_keys,
	  prepare_pages, pages_of_handed },
	{ "contend/obj_handed", "objects allocated here and freed there", obj_keys, prepare_objs,
	  NULL },
	{ "contend/page_pool_ring", "pages that several CPUs put into a pool's ring", ring_keys,
	  prepare_ring, pages_of_ring },
};

void bench_contend_mem(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
