/* SPDX-License-Identifier: MIT */
#include "mem_test.h"

#include "skb/obj.h"
#include "skb/page_frag.h"

#define PAGES 1024UL
#define BIAS  32769

static struct page *held[PAGES + 1];

static int setup(void **state)
{
	(void)state;
	return page_alloc_init(1, PAGES) || skb_cpu_attach(0, 0);
}

static int teardown(void **state)
{
	struct zone_stats s;

	(void)state;
	zone_stats(0, &s);
	/* Every test gives back all that it took. */
	if (s.pgalloc != s.pgfree)
		return -1;
	skb_cpu_detach();
	page_alloc_exit();
	return 0;
}

static u64 pages_allocated(void)
{
	struct zone_stats s;

	zone_stats(0, &s);
	return s.pgalloc;
}

/* Leaves FREE single pages, no two of them neighbours. */
static void fragment(size_t free)
{
	size_t n = 0;

	while ((held[n] = alloc_pages(0)))
		n++;
	assert_int_equal(n, PAGES);
	for (size_t i = 0; i < PAGES && free; i++)
		if ((held[i] - mem_map) % 16 == 0) {
			put_page(held[i]);
			held[i] = NULL;
			free--;
		}
}

static void defragment(void)
{
	for (size_t i = 0; i < PAGES; i++)
		if (held[i])
			put_page(held[i]);
}

/* A 32 KB block cut into 2 KB fragments. */
static void test_cache_block(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page *first, *second;
	char *frag[16], *p;

	(void)state;
	for (int i = 0; i < 16; i++) {
		frag[i] = page_frag_alloc_align(&nc, 2048, 1);
		assert_non_null(frag[i]);
		assert_int_equal(nc.pagecnt_bias, BIAS - 1 - i);
		assert_int_equal(page_count(virt_to_page(frag[i])), BIAS);
		assert_ptr_equal(frag[i], (char *)nc.va + 32768 - 2048 * (i + 1));
	}
	first = virt_to_head_page(frag[0]);
	assert_int_equal(compound_order(first), 3);
	assert_int_equal(nc.pagecnt_bias, 32753);
	assert_int_equal(nc.offset, 0);
	assert_int_equal(pages_allocated(), 8);

	/* All are out: the block is left to them. */
	p = page_frag_alloc_align(&nc, 2048, 1);
	second = virt_to_head_page(p);
	assert_ptr_not_equal(second, first);
	assert_int_equal(page_count(first), 16);
	assert_int_equal(page_count(second), BIAS);
	assert_int_equal(pages_allocated(), 16);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(page_count(first), 16 - i);
		page_frag_free(frag[i]);
	}
	assert_int_equal(first->flags & PG_pcp, PG_pcp);

	page_frag_free(p);
	assert_int_equal(page_count(second), BIAS - 1);
	page_frag_cache_drain(&nc);
	assert_null(nc.va);
	assert_int_equal(second->flags & PG_pcp, PG_pcp);
	page_frag_cache_drain(&nc);
}

/* All came back before the block was used up: it is used again where it stands. */
static void test_cache_reuse(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page *block = NULL;
	char *p;

	(void)state;
	for (int i = 0; i < 16; i++) {
		p = page_frag_alloc_align(&nc, 2048, 1);
		block = virt_to_head_page(p);
		page_frag_free(p);
	}
	assert_int_equal(page_count(block), 32753);
	p = page_frag_alloc_align(&nc, 2048, 1);
	assert_ptr_equal(virt_to_head_page(p), block);
	assert_ptr_equal(p, (char *)nc.va + 32768 - 2048);
	assert_int_equal(page_count(block), BIAS);
	assert_int_equal(nc.pagecnt_bias, BIAS - 1);
	assert_int_equal(pages_allocated(), 8);
	page_frag_free(p);
	page_frag_cache_drain(&nc);
}

/* All but one came back: a new block, and the last fragment frees the old one. */
static void test_cache_last_fragment(void **state)
{
	struct page_frag_cache nc = { 0 };
	char *frag[16], *p;
	struct page *block;

	(void)state;
	for (int i = 0; i < 16; i++)
		frag[i] = page_frag_alloc_align(&nc, 2048, 1);
	block = virt_to_head_page(frag[0]);
	for (int i = 0; i < 15; i++)
		page_frag_free(frag[i]);
	p = page_frag_alloc_align(&nc, 2048, 1);
	assert_ptr_not_equal(virt_to_head_page(p), block);
	assert_int_equal(page_count(block), 1);
	assert_int_equal(block->flags & PG_head, PG_head);
	page_frag_free(frag[15]);
	assert_int_equal(block->flags & PG_head, 0);
	page_frag_free(p);
	page_frag_cache_drain(&nc);
}

static void test_cache_alignment(void **state)
{
	struct page_frag_cache nc = { 0 };
	char *a, *b, *c;

	(void)state;
	a = page_frag_alloc_align(&nc, 100, 64);
	b = page_frag_alloc_align(&nc, 1, 1);
	c = page_frag_alloc_align(&nc, 700, 256);
	assert_int_equal((char *)nc.va + 32768 - 128 - a, 0);
	assert_ptr_equal(b, a - 1);
	assert_int_equal((uintptr_t)c % 256, 0);
	assert_true(c + 700 <= b && b - (c + 700) < 256);
	page_frag_free(a);
	page_frag_free(b);
	page_frag_free(c);
	/* The whole block in one. */
	a = page_frag_alloc_align(&nc, 32768, 1);
	assert_ptr_equal(a, nc.va);
	page_frag_free(a);
	/* More than a block: refused, and nothing is lost. */
	assert_null(page_frag_alloc_align(&nc, 32769, 1));
	a = page_frag_alloc_align(&nc, 2048, 1);
	assert_non_null(a);
	page_frag_free(a);
	page_frag_cache_drain(&nc);
}

static void test_cache_fallback(void **state)
{
	struct page_frag_cache nc = { 0 };
	char *a, *b, *c;

	(void)state;
	fragment(1);
	a = page_frag_alloc_align(&nc, 2048, 1);
	assert_non_null(a);
	assert_int_equal(nc.size, PAGE_SIZE);
	assert_int_equal(compound_order(virt_to_page(a)), 0);
	b = page_frag_alloc_align(&nc, 2048, 1);
	assert_ptr_equal(b, a - 2048);
	/* Both out, no page left: NULL, and the cache is empty. */
	assert_null(page_frag_alloc_align(&nc, 2048, 1));
	assert_null(nc.va);
	assert_int_equal(page_count(virt_to_page(a)), 2);
	page_frag_free(a);
	page_frag_free(b);

	/* The page is back. A fragment that is larger than it gets NULL, and the cache keeps it. */
	assert_null(page_frag_alloc_align(&nc, 4097, 1));
	assert_non_null(nc.va);
	c = page_frag_alloc_align(&nc, 4096, 1);
	assert_ptr_equal(c, nc.va);
	page_frag_free(c);
	page_frag_cache_drain(&nc);
	defragment();
}

/* Invariant of a block: its count is the bias and what is out. */
static void test_cache_random(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct {
		char *p;
		unsigned int n;
	} out[300];
	u64 rng = test_seed();
	size_t nr_out = 0;

	(void)state;
	for (int step = 0; step < 50000; step++) {
		u64 r = test_rand(&rng);
		size_t on_block = 0;

		if (nr_out < ARRAY_SIZE(out) && r % 100 < 52) {
			unsigned int align = 1u << (r >> 8) % 8, n = 1 + (r >> 16) % 3000;
			char *p = page_frag_alloc_align(&nc, n, align);

			if (!p)
				continue;
			assert_int_equal((uintptr_t)p % align, 0);
			for (size_t i = 0; i < nr_out; i++)
				assert_true(p + n <= out[i].p || out[i].p + out[i].n <= p);
			out[nr_out].p = p;
			out[nr_out++].n = n;
		} else if (nr_out) {
			size_t i = (r >> 32) % nr_out;

			page_frag_free(out[i].p);
			out[i] = out[--nr_out];
		}
		if (!nc.va)
			continue;
		for (size_t i = 0; i < nr_out; i++)
			on_block += virt_to_head_page(out[i].p) == virt_to_page(nc.va);
		assert_int_equal(page_count(virt_to_page(nc.va)), nc.pagecnt_bias + on_block);
	}
	while (nr_out)
		page_frag_free(out[--nr_out].p);
	page_frag_cache_drain(&nc);
}

static void test_refill(void **state)
{
	struct page_frag pfrag = { 0 };
	struct page *page;

	(void)state;
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, NUMA_NO_NODE));
	page = pfrag.page;
	assert_int_equal(compound_order(page), 3);
	assert_int_equal(pfrag.size, 32768);
	assert_int_equal(pfrag.offset, 0);
	assert_int_equal(page_count(page), 1);

	/* Nobody else holds it: from the start again, whatever was handed out. */
	pfrag.offset = 32768;
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, NUMA_NO_NODE));
	assert_ptr_equal(pfrag.page, page);
	assert_int_equal(pfrag.offset, 0);

	/* Somebody holds it and there is room, to the last byte: it goes on where it was. */
	get_page(page);
	pfrag.offset = 32768 - 32;
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, NUMA_NO_NODE));
	assert_ptr_equal(pfrag.page, page);
	assert_int_equal(pfrag.offset, 32768 - 32);
	assert_int_equal(page_count(page), 2);

	/* No room: put, and a new one. */
	assert_true(skb_page_frag_refill(33, &pfrag, SKB_FRAG_PAGE_ORDER, NUMA_NO_NODE));
	assert_ptr_not_equal(pfrag.page, page);
	assert_int_equal(pfrag.offset, 0);
	assert_int_equal(page_count(page), 1);
	assert_int_equal(pages_allocated(), 16);
	put_page(page);

	/* High orders switched off. */
	put_page(pfrag.page);
	pfrag.page = NULL;
	assert_true(skb_page_frag_refill(32, &pfrag, 0, NUMA_NO_NODE));
	assert_int_equal(pfrag.size, PAGE_SIZE);
	assert_int_equal(compound_order(pfrag.page), 0);
	put_page(pfrag.page);
}

static void test_refill_fallback(void **state)
{
	struct page_frag pfrag = { 0 };
	struct page *page;

	(void)state;
	fragment(1);
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	assert_int_equal(pfrag.size, PAGE_SIZE);
	assert_int_equal(compound_order(pfrag.page), 0);

	/* Nothing left: the reference is dropped all the same. */
	page = pfrag.page;
	get_page(page);
	pfrag.offset = PAGE_SIZE;
	assert_false(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	assert_null(pfrag.page);
	assert_int_equal(page_count(page), 1);
	put_page(page);
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	put_page(pfrag.page);
	defragment();
}

#ifdef SKB_TRACED
static void test_ledger(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page_frag pfrag = { 0 };
	char *frag[17];

	(void)state;
	skb_trace_sink = &test_sink;
	test_counts_reset();
	for (int i = 0; i < 16; i++)
		frag[i] = page_frag_alloc_align(&nc, 2048, 1);
	assert_int_equal(test_counts.rmw[SKB_C_PAGE], 1);
	frag[16] = page_frag_alloc_align(&nc, 2048, 1);
	assert_int_equal(test_counts.rmw[SKB_C_PAGE], 3);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_ALLOC], 2);
	for (int i = 0; i < 16; i++)
		page_frag_free(frag[i]);
	assert_int_equal(test_counts.rmw[SKB_C_PAGE], 3 + 16);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_FREE], 1);
	page_frag_free(frag[16]);
	page_frag_cache_drain(&nc);

	/* In place: nothing but a look at the count. */
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	pfrag.offset = 32768;
	test_counts_reset();
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	assert_int_equal(test_rmw_total(), 0);
	put_page(pfrag.page);

	/* Injected failures: order 0 when the high order fails; nothing when both do. */
	pfrag.page = NULL;
	test_fail_mask = 1u << SKB_SITE_PAGE_HIGH;
	assert_true(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	assert_int_equal(pfrag.size, PAGE_SIZE);
	put_page(pfrag.page);
	pfrag.page = NULL;
	test_fail_mask |= 1u << SKB_SITE_PAGE;
	assert_false(skb_page_frag_refill(32, &pfrag, SKB_FRAG_PAGE_ORDER, 0));
	assert_null(pfrag.page);
	assert_null(page_frag_alloc_align(&nc, 64, 1));
	test_fail_mask = 0;
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cache_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_last_fragment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_alignment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_fallback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refill_fallback, setup, teardown),
#ifdef SKB_TRACED
		cmocka_unit_test_setup_teardown(test_ledger, setup, teardown),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
