/* SPDX-License-Identifier: MIT */
/*
 * References on pages, taken and dropped by several CPUs at once.
 *
 *   operation          keys            one operation is
 *   contend/get_page   pages threads   get_page() and put_page(), never the last, on each CPU
 *
 *   pages  same        all on one page: one count
 *          compound    each on a page of its own of one block, whose head alone counts: one count, too, and a
 *                      dependent load before it
 *          neighbours  each on a page of its own whose struct page is next to another CPU's: no count in common and no
 *                      line, but lines that a prefetcher may fetch in pairs
 *          private     each on a page of its own, blocks apart: nothing in common
 *
 * Kernel: include/linux/mm.h, 6.12. neighbours against private is the false sharing that a struct page of one cache line
 * leaves; same against private is the price of the count. What is fake here: nobody touches the pages' bytes, and a
 * CPU does nothing between two references, so that the line is asked for all the time.
 */
#include "benches/bench_contend.h"

#define MAX_CPUS BENCH_MAX_ROLES
#define TRIED	 2048 /* pages among which neighbours are looked for */
#define BLOCK	 PCP_MAX_ORDER /* of a compound block */

enum pages { PAGES_SAME, PAGES_COMPOUND, PAGES_NEIGHBOURS, PAGES_PRIVATE };
static const char *const pages_words[] = { "same", "compound", "neighbours", "private", NULL };

struct page_ctx {
	struct page *of[MAX_CPUS]; /* what each CPU works on; may be a tail */
	struct page *held[MAX_CPUS]; /* the case's references */
	unsigned int threads;
	struct bench_quota quota;
};

static void teardown(void *arg)
{
	struct page_ctx *c = arg;

	for (unsigned int i = 0; i < MAX_CPUS; i++)
		if (c->held[i])
			put_page(c->held[i]);
	free(c);
}

static void span(void *arg, u64 n)
{
	struct page_ctx *c = arg;
	struct page *page = c->of[smp_processor_id()];
	struct bench_share share = quota_begin(&c->quota, n, c->threads);

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

static void one(void *arg)
{
	bench_phase("get_page", phase_get, arg);
	bench_phase("put_page", phase_put, arg);
}

/* No reference too many and none too few, however many CPUs took them. */
static int check(void *arg, char *err, size_t errlen)
{
	struct page_ctx *c = arg;

	one(c);
	for (unsigned int i = 0; i < c->threads; i++)
		if (page_count(c->of[i]) != 1) {
			snprintf(err, errlen, "the page of CPU %u has %d references, not 1", i,
				 page_count(c->of[i]));
			return -1;
		}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct page *x = *(struct page *const *)a, *y = *(struct page *const *)b;

	return (x > y) - (x < y);
}

/* Pages whose counts lie in adjacent lines, one for each CPU: a block that is split falls apart into such. */
static bool neighbours(struct page_ctx *c)
{
	struct page **all = calloc(TRIED, sizeof(*all));
	unsigned int nr = 0, run = 1, end = 0;

	while (all && nr < TRIED && (all[nr] = alloc_pages(0)))
		nr++;
	if (nr) {
		qsort(all, nr, sizeof(*all), by_address);
		for (end = 1; end < nr && run < c->threads; end++)
			run = all[end] == all[end - 1] + 1 ? run + 1 : 1;
	}
	if (nr && run == c->threads)
		for (unsigned int i = 0; i < run; i++) {
			c->held[i] = c->of[i] = all[end - run + i];
			all[end - run + i] = NULL;
		}
	for (unsigned int i = 0; i < nr; i++)
		if (all[i])
			put_page(all[i]);
	free(all);
	return c->of[0];
}

static bool take_pages(struct page_ctx *c, enum pages pages)
{
	switch (pages) {
	case PAGES_SAME:
		c->held[0] = alloc_pages(0);
		for (unsigned int i = 0; i < c->threads; i++)
			c->of[i] = c->held[0];
		return c->held[0];
	case PAGES_COMPOUND:
		c->held[0] = alloc_pages(BLOCK);
		if (!c->held[0])
			return false;
		/* Tails alone, so that each CPU does the same; beyond those that the block has they share one. */
		for (unsigned int i = 0; i < c->threads; i++)
			c->of[i] = c->held[0] + 1 + i % ((1u << BLOCK) - 1);
		return true;
	case PAGES_NEIGHBOURS:
		return neighbours(c);
	default: /* in blocks of their own, so at least 8 cache lines apart */
		for (unsigned int i = 0; i < c->threads; i++) {
			c->held[i] = c->of[i] = alloc_pages(BLOCK);
			if (!c->held[i])
				return false;
		}
		return true;
	}
}

static int prepare(const struct bench_args *args, struct bench_case *out, char *err, size_t errlen)
{
	struct page_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->threads = (unsigned int)bench_arg(args, "threads");
	if (!take_pages(c, (enum pages)bench_arg(args, "pages"))) {
		teardown(c);
		snprintf(err, errlen, "no such pages for the case: ask for more --skb_pages");
		return -ENOMEM;
	}
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check,
		.ledger = one,
		.teardown = teardown,
	};
	contend_roles(out, 0, c->threads, "cpu", span);
	return 0;
}

static const struct bench_key keys[] = {
	{ "pages", pages_words, 0, 0, "same", "same,compound,neighbours,private",
	  "which counts the CPUs work on" },
	CONTEND_KEY_THREADS(BENCH_MAX_ROLES, "2", "1,2", "CPUs at it"),
	{ 0 },
};

static const struct bench_op op = { "contend/get_page",
				    "references on pages by several CPUs at once", keys, prepare,
				    NULL };

void bench_contend_page(void)
{
	bench_register(&op);
}
