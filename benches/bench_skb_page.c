/* SPDX-License-Identifier: MIT */
/*
 * Pages: references, blocks, and fragments of blocks.
 *
 *   operation                    keys          one operation is, on each CPU
 *   skb/get_page                 pages cpus    get_page(), put_page(), never the last
 *   skb/alloc_pages              order burst   burst alloc_pages(), then burst put_page()
 *   skb/skb_page_frag_refill     order size    room for size bytes, a reference, its put_page()
 *   skb/page_frag_alloc          size          size bytes of a cache, page_frag_free()
 *
 * Kernel: include/linux/mm.h, mm/page_alloc.c, skb_page_frag_refill() in net/core/sock.c,
 * mm/page_frag_cache.c, 6.12. pages tells which reference counts the CPUs work on: "same" one
 * count, "compound" pages of one block, whose head alone counts, "neighbours" two counts in
 * adjacent cache lines, which a prefetcher may fetch together, "private" two counts far apart.
 * With burst beyond what a CPU's lists hold the zone and its lock are reached. What is fake
 * here: fragments come back at once and in order, nobody writes to them; blocks are never short.
 */
#include "benches/bench_skb.h"
#include "benches/harness/quota.h"

#include <errno.h>

#define MAX_CPUS  2
#define MAX_BURST 1024

enum pages { PAGES_SAME, PAGES_COMPOUND, PAGES_NEIGHBOURS, PAGES_PRIVATE };
static const char *const pages_words[] = { "same", "compound", "neighbours", "private", NULL };

struct page_ctx {
	struct page *of[MAX_CPUS]; /* what each CPU works on; may be a tail */
	struct page *held[5]; /* the case's references */
	int expect[MAX_CPUS];
	struct page *burst[MAX_BURST];
	unsigned int nr, order, size;
	struct page_frag pfrag;
	struct page_frag_cache cache;
	struct page *between; /* handed from phase to phase */
	void *data;
	void (*one)(void *ctx);
	struct bench_quota quota;
};

static void page_teardown(void *arg)
{
	struct page_ctx *c = arg;

	for (size_t i = 0; i < ARRAY_SIZE(c->held); i++)
		if (c->held[i])
			put_page(c->held[i]);
	if (c->pfrag.page)
		put_page(c->pfrag.page);
	page_frag_cache_drain(&c->cache);
	free(c);
}

static struct page_ctx *page_create(char *err, size_t errlen)
{
	struct page_ctx *c = aligned_alloc(SMP_CACHE_BYTES, sizeof(*c));

	if (c)
		memset(c, 0, sizeof(*c));
	else
		snprintf(err, errlen, "no memory for the case");
	return c;
}

static int no_pages(struct page_ctx *c, char *err, size_t errlen)
{
	page_teardown(c);
	snprintf(err, errlen, "no pages for the case: ask for more --skb_pages");
	return -ENOMEM;
}

/* --- get_page */

static void span_ref(void *arg, u64 n)
{
	struct page *page = ((struct page_ctx *)arg)->of[0];

	while (n--) {
		get_page(page);
		put_page(page);
	}
}

static void span_ref_shared(void *arg, u64 n)
{
	struct page_ctx *c = arg;
	struct page *page = c->of[smp_processor_id()];
	struct bench_share share = quota_begin(&c->quota, n, MAX_CPUS);

	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			get_page(page);
			put_page(page);
		}
}

static void phase_get(void *arg)
{
	get_page(((struct page_ctx *)arg)->of[0]);
}

static void phase_put(void *arg)
{
	put_page(((struct page_ctx *)arg)->of[0]);
}

static void one_ref(void *arg)
{
	bench_phase("get_page", phase_get, arg);
	bench_phase("put_page", phase_put, arg);
}

static int check_ref(void *arg, char *err, size_t errlen)
{
	struct page_ctx *c = arg;

	one_ref(c);
	for (int i = 0; i < MAX_CPUS; i++)
		if (page_count(c->of[i]) != 1) {
			snprintf(err, errlen, "the page of CPU %d has %d references, not 1", i,
				 page_count(c->of[i]));
			return -1;
		}
	return 0;
}

/*
 * Two pages whose counts lie in adjacent cache lines: pages are taken until two are neighbours,
 * since a block that is split falls apart into them. Those that are none wait in c->burst.
 */
static bool neighbours(struct page_ctx *c)
{
	for (int tries = 0; tries < 1024; tries++) {
		struct page *a = alloc_pages(0), *b = alloc_pages(0);

		if (a && b && (a + 1 == b || b + 1 == a)) {
			c->held[0] = c->of[0] = a;
			c->held[1] = c->of[1] = b;
			return true;
		}
		if (b)
			put_page(b);
		if (!a)
			return false;
		c->burst[c->nr++] = a;
	}
	return false;
}

static int prepare_ref(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	enum pages pages = bench_arg(args, "pages");
	unsigned int cpus = bench_arg(args, "cpus");
	struct page_ctx *c = page_create(err, errlen);
	bool ok;

	if (!c)
		return -ENOMEM;
	switch (pages) {
	case PAGES_SAME:
		c->held[0] = c->of[0] = c->of[1] = alloc_pages(0);
		ok = c->held[0];
		break;
	case PAGES_COMPOUND:
		c->held[0] = alloc_pages(SKB_FRAG_PAGE_ORDER);
		ok = c->held[0];
		c->of[0] = c->held[0] + 1;
		c->of[1] = c->held[0] + 2;
		break;
	case PAGES_NEIGHBOURS:
		ok = neighbours(c);
		while (c->nr)
			put_page(c->burst[--c->nr]);
		break;
	default: /* in two blocks, so at least 8 cache lines apart */
		c->held[0] = c->of[0] = alloc_pages(SKB_FRAG_PAGE_ORDER);
		c->held[1] = c->of[1] = alloc_pages(SKB_FRAG_PAGE_ORDER);
		ok = c->held[0] && c->held[1];
	}
	if (!ok)
		return no_pages(c, err, errlen);
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = cpus,
		.role = { { "cpu0", cpus > 1 ? span_ref_shared : span_ref },
			  { "cpu1", span_ref_shared } },
		.ops = cpus,
		.check = check_ref,
		.ledger = one_ref,
		.teardown = page_teardown,
	};
	return 0;
}

/* --- alloc_pages */

static void span_pages(void *arg, u64 n)
{
	struct page_ctx *c = arg;

	while (n--) {
		for (unsigned int i = 0; i < c->nr; i++)
			c->burst[i] = alloc_pages(c->order);
		for (unsigned int i = 0; i < c->nr; i++)
			put_page(c->burst[i]);
	}
}

static void phase_alloc(void *arg)
{
	struct page_ctx *c = arg;

	for (unsigned int i = 0; i < c->nr; i++) {
		c->burst[i] = alloc_pages(c->order);
		BUG_ON(!c->burst[i]);
	}
}

static void phase_free(void *arg)
{
	struct page_ctx *c = arg;

	for (unsigned int i = 0; i < c->nr; i++)
		put_page(c->burst[i]);
}

static void one_pages(void *arg)
{
	bench_phase("alloc", phase_alloc, arg);
	bench_phase("free", phase_free, arg);
}

/* No page twice: each is marked while all are out. */
static int check_pages(void *arg, char *err, size_t errlen)
{
	struct page_ctx *c = arg;
	int ret = 0;

	phase_alloc(c);
	for (unsigned int i = 0; i < c->nr; i++) {
		if (page_count(c->burst[i]) != 1 || compound_order(c->burst[i]) != c->order) {
			snprintf(err, errlen, "block %u has %d references and order %u", i,
				 page_count(c->burst[i]), compound_order(c->burst[i]));
			ret = -1;
		}
		*(u32 *)page_address(c->burst[i]) = i;
	}
	for (unsigned int i = 0; i < c->nr; i++)
		if (*(u32 *)page_address(c->burst[i]) != i) {
			snprintf(err, errlen, "block %u was handed out twice", i);
			ret = -1;
		}
	phase_free(c);
	return ret;
}

static int prepare_pages(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	struct page_ctx *c = page_create(err, errlen);

	if (!c)
		return -ENOMEM;
	c->order = bench_arg(args, "order");
	c->nr = bench_arg(args, "burst");
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span_pages } },
		.check = check_pages,
		.ledger = one_pages,
		.teardown = page_teardown,
	};
	return 0;
}

static size_t pages_of_burst(const struct bench_args *args)
{
	return 2 * ((size_t)bench_arg(args, "burst") << bench_arg(args, "order"));
}

/* --- skb_page_frag_refill, page_frag_alloc */

static __always_inline void refill(struct page_ctx *c)
{
	BUG_ON(!skb_page_frag_refill(c->size, &c->pfrag, c->order, NUMA_NO_NODE));
	page_ref_inc(c->pfrag.page);
	c->pfrag.offset += c->size;
	c->between = c->pfrag.page;
}

static void span_refill(void *arg, u64 n)
{
	struct page_ctx *c = arg;

	/* One behind: the block is never the allocator's alone, so it is used up to its end. */
	while (n--) {
		struct page *last = c->between;

		refill(c);
		put_page(last);
	}
}

static void phase_refill(void *arg)
{
	struct page_ctx *c = arg;

	c->data = c->between;
	refill(c);
}

static void phase_refill_put(void *arg)
{
	put_page(((struct page_ctx *)arg)->data);
}

static void one_refill(void *arg)
{
	bench_phase("refill", phase_refill, arg);
	bench_phase("put_page", phase_refill_put, arg);
}

static int check_refill(void *arg, char *err, size_t errlen)
{
	struct page_ctx *c = arg;

	one_refill(c);
	if (page_count(c->pfrag.page) != 2 || c->pfrag.offset > c->pfrag.size) {
		snprintf(err, errlen, "the block has %d references, not 2, and %u of %u bytes out",
			 page_count(c->pfrag.page), c->pfrag.offset, c->pfrag.size);
		return -1;
	}
	return 0;
}

static void refill_teardown(void *arg)
{
	struct page_ctx *c = arg;

	put_page(c->between);
	page_teardown(c);
}

static int prepare_refill(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	struct page_ctx *c = page_create(err, errlen);

	if (!c)
		return -ENOMEM;
	c->order = bench_arg(args, "order");
	c->size = bench_arg(args, "size");
	refill(c);
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span_refill } },
		.check = check_refill,
		.ledger = one_refill,
		.teardown = refill_teardown,
	};
	return 0;
}

static void span_frag(void *arg, u64 n)
{
	struct page_ctx *c = arg;

	while (n--)
		page_frag_free(page_frag_alloc_align(&c->cache, c->size, 64));
}

static void phase_frag_alloc(void *arg)
{
	struct page_ctx *c = arg;

	c->data = page_frag_alloc_align(&c->cache, c->size, 64);
	BUG_ON(!c->data);
}

static void phase_frag_free(void *arg)
{
	page_frag_free(((struct page_ctx *)arg)->data);
}

static void one_frag(void *arg)
{
	bench_phase("alloc", phase_frag_alloc, arg);
	bench_phase("free", phase_frag_free, arg);
}

static int check_frag(void *arg, char *err, size_t errlen)
{
	struct page_ctx *c = arg;
	struct page *page;

	one_frag(c);
	page = virt_to_head_page(c->cache.va);
	if (page_count(page) != (int)c->cache.pagecnt_bias) {
		snprintf(err, errlen, "the block has %d references, the cache's bias is %u",
			 page_count(page), c->cache.pagecnt_bias);
		return -1;
	}
	return 0;
}

static int prepare_frag(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	struct page_ctx *c = page_create(err, errlen);

	if (!c)
		return -ENOMEM;
	c->size = bench_arg(args, "size");
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span_frag } },
		.check = check_frag,
		.ledger = one_frag,
		.teardown = page_teardown,
	};
	return 0;
}

static const struct bench_key ref_keys[] = {
	{ "pages", pages_words, 0, 0, "same", "same,compound,neighbours,private",
	  "which counts the CPUs work on" },
	{ "cpus", NULL, 1, MAX_CPUS, "1", "1,2", "CPUs at it" },
	{ 0 },
};
static const struct bench_key pages_keys[] = {
	{ "order", NULL, 0, 3, "0", "0,3", "2^order pages a block" },
	{ "burst", NULL, 1, MAX_BURST, "1", "1,512", "blocks out at once" },
	{ 0 },
};
static const struct bench_key refill_keys[] = {
	{ "order", NULL, 0, 3, "3", "0,3", "2^order pages a block" },
	{ "size", NULL, 1, 4096, "1448", "1448", "bytes of a fragment" },
	{ 0 },
};
static const struct bench_key frag_keys[] = {
	{ "size", NULL, 1, 4096, "2048", "256,2048", "bytes of a fragment" },
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "skb/get_page", "take and drop references on pages", ref_keys, prepare_ref, NULL },
	{ "skb/alloc_pages", "take and give back blocks of pages", pages_keys, prepare_pages,
	  pages_of_burst },
	{ "skb/skb_page_frag_refill", "a transmit fragment and its put", refill_keys,
	  prepare_refill, NULL },
	{ "skb/page_frag_alloc", "a receive fragment and its free", frag_keys, prepare_frag, NULL },
};

void bench_skb_page(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
