/* SPDX-License-Identifier: MIT */
#include "mem_test.h"

#include <errno.h>
#include <pthread.h>

#include <sys/mman.h>

#include "skb/node_mem.h"
#include "skb/obj.h"
#include "skb/page_alloc.h"

#define PAGES	   8192UL
#define MAX_BLOCKS (PAGES >> (NR_PAGE_ORDERS - 1))

static struct zone_stats stats(void)
{
	struct zone_stats s;

	zone_stats(0, &s);
	return s;
}

static int setup(void **state)
{
	(void)state;
	return page_alloc_init(1, PAGES) || skb_cpu_attach(0, 0);
}

static int teardown(void **state)
{
	(void)state;
	skb_cpu_detach();
	page_alloc_exit();
	return 0;
}

/* Every page free, merged to the largest blocks, as page_alloc_init() left it. CPU 0's and 1's lists are drained. */
static void assert_initial_state(void)
{
	for (unsigned int cpu = 0; cpu < 2; cpu++) {
		assert_int_equal(skb_cpu_attach(cpu, 0), 0);
		drain_local_pages();
	}
	assert_int_equal(skb_cpu_attach(0, 0), 0);
	for (unsigned int order = 0; order < NR_PAGE_ORDERS - 1; order++)
		assert_int_equal(zone_nr_free_blocks(0, order), 0);
	assert_int_equal(zone_nr_free_blocks(0, NR_PAGE_ORDERS - 1), MAX_BLOCKS);
	assert_int_equal(stats().nr_free, PAGES);
	assert_int_equal(stats().nr_pcp, 0);
	assert_int_equal(stats().pgalloc, stats().pgfree);
}

static void test_init_refuses(void **state)
{
	char path[64];
	unsigned int nodes = 0;

	(void)state;
	assert_int_equal(page_alloc_init(0, PAGES), -EINVAL);
	assert_int_equal(page_alloc_init(SKB_NR_NODES + 1, PAGES), -EINVAL);
	assert_int_equal(page_alloc_init(1, 0), -EINVAL);
	assert_int_equal(page_alloc_init(1, 1000), -EINVAL);
	assert_int_equal(page_alloc_init(1, SIZE_MAX & ~1023UL), -EINVAL);
	do
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", ++nodes);
	while (!access(path, F_OK));
	if (nodes < SKB_NR_NODES)
		assert_int_equal(page_alloc_init(nodes + 1, 1024), -ENODEV);
	assert_null(mem_map);
	assert_string_equal(page_alloc_backing(), "none");

	assert_int_equal(page_alloc_init(1, 1024), 0);
	assert_int_equal(page_alloc_init(1, 1024), -EBUSY);
	assert_int_equal(stats().nr_pages, 1024);
	page_alloc_exit();
	assert_null(mem_map);
}

/* Bytes of this process that lie in transparent huge pages. */
static size_t process_thp_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	size_t kb = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %zu kB", &kb) == 1)
			break;
	fclose(f);
	return kb << 10;
}

/* What page_alloc_backing() says is what the whole process gained by the zones. */
static void test_backing(void **state)
{
	size_t before = process_thp_bytes(), gained;
	const char *backing;

	(void)state;
	/* A zone whose struct pages are too few for a huge page of their own. */
	assert_int_equal(page_alloc_init(1, PAGES), 0);
	gained = process_thp_bytes() - before;
	backing = page_alloc_backing();
	if (!strcmp(backing, "thp"))
		assert_int_equal(gained, PAGES * PAGE_SIZE);
	else if (!strcmp(backing, "mixed"))
		assert_true(gained > 0 && gained < PAGES * PAGE_SIZE);
	else
		assert_int_equal(gained, 0);
	page_alloc_exit();
}

static void test_memory(void **state)
{
	static const char *const backings[] = { "hugetlb", "thp", "mixed", "4k" };
	const char *backing = page_alloc_backing();
	bool known = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(backings); i++)
		known |= !strcmp(backing, backings[i]);
	assert_true(known);
	printf("page memory: %s, %s\n", backing, page_alloc_bound() ? "bound" : "not bound");
	for (size_t i = 0; i < PAGES; i += 97) {
		struct page *page = mem_map + i;
		char *addr = page_address(page);

		assert_ptr_equal(addr, page_base + i * PAGE_SIZE);
		assert_ptr_equal(virt_to_page(addr + PAGE_SIZE - 1), page);
		assert_int_equal(page_to_nid(page), 0);
		memset(addr, 0x5a, PAGE_SIZE);
	}
	/* No such zone, and no fallback to one that is there. */
	assert_null(alloc_pages_node(1, 0));
	assert_initial_state();
}

/* One trip to the zone for 63 pages' worth of blocks; then hits until they are used up. */
static void check_batch(unsigned int order, unsigned int blocks)
{
	struct page *page[2 * PCP_BATCH];
	struct zone_stats before = stats(), s;

	for (unsigned int i = 0; i <= blocks; i++) {
		page[i] = alloc_pages(order);
		assert_non_null(page[i]);
		s = stats();
		assert_int_equal(s.zone_locks - before.zone_locks, i < blocks ? 1 : 2);
		assert_int_equal(s.pcp_refills - before.pcp_refills, i < blocks ? 1 : 2);
		assert_int_equal(s.pcp_alloc_hits - before.pcp_alloc_hits,
				 i < blocks ? i : blocks - 1);
		assert_int_equal(s.nr_pcp, (blocks - 1 - i % blocks) << order);
		assert_int_equal(s.nr_free, PAGES - ((i < blocks ? blocks : 2 * blocks) << order));
	}
	for (unsigned int i = 0; i <= blocks; i++)
		put_page(page[i]);
	/* All fits below the high mark: no trip for the frees. */
	assert_int_equal(stats().zone_locks - before.zone_locks, 2);
	assert_initial_state();
}

static void test_refill_batch(void **state)
{
	(void)state;
	check_batch(0, 63);
	check_batch(1, 31);
	check_batch(2, 15);
	check_batch(3, 7);
}

/* A batch is handed out in the order of its addresses; a freed page is the next one given. */
static void test_order_of_reuse(void **state)
{
	struct page *a = alloc_pages(0), *b = alloc_pages(0), *c;

	(void)state;
	assert_ptr_equal(b, a + 1);
	put_page(a);
	put_page(b);
	c = alloc_pages(0);
	assert_ptr_equal(c, b);
	put_page(c);
	assert_initial_state();
}

static void test_drain_at_high(void **state)
{
	static struct page *page[7 * PCP_BATCH];
	struct zone_stats s;

	(void)state;
	for (int i = 0; i < 7 * PCP_BATCH; i++)
		page[i] = alloc_pages(0);
	assert_int_equal(stats().nr_pcp, 0);
	assert_int_equal(stats().zone_locks, 7);
	for (int i = 0; i < PCP_HIGH - 1; i++)
		put_page(page[i]);
	s = stats();
	assert_int_equal(s.nr_pcp, 377);
	assert_int_equal(s.pcp_drains, 0);
	put_page(page[PCP_HIGH - 1]);
	s = stats();
	assert_int_equal(s.nr_pcp, 315);
	assert_int_equal(s.pcp_drains, 1);
	assert_int_equal(s.zone_locks, 8);
	assert_int_equal(s.nr_free, PAGES - 441 + 63);
	/* The oldest were drained, not what is warm. */
	for (int i = 0; i < PCP_BATCH; i++)
		assert_false(page[i]->flags & PG_pcp);
	assert_true(page[PCP_BATCH]->flags & PG_pcp);
	for (int i = PCP_HIGH; i < 7 * PCP_BATCH; i++)
		put_page(page[i]);
	assert_int_equal(stats().pcp_drains, 2);
	assert_initial_state();

	/* 48 blocks of 8 pages are 384: the 48th free reaches the mark, and 8 blocks (64 pages) go. */
	for (int i = 0; i < 49; i++)
		page[i] = alloc_pages(3);
	s = stats();
	for (int i = 0; i < 48; i++)
		put_page(page[i]);
	assert_int_equal(stats().pcp_drains, s.pcp_drains + 1);
	assert_int_equal(stats().nr_pcp, s.nr_pcp + 384 - 64);
	put_page(page[48]);
	assert_initial_state();
}

static void test_compound(void **state)
{
	(void)state;
	for (unsigned int order = 0; order < NR_PAGE_ORDERS; order++) {
		size_t n = 1UL << order;
		struct zone_stats before = stats();
		struct page *head = alloc_pages(order);

		assert_non_null(head);
		assert_int_equal((head - mem_map) % n, 0);
		assert_int_equal(compound_order(head), order);
		assert_int_equal(!!(head->flags & PG_head), order > 0);
		assert_int_equal(head->flags & PG_FLAGS_CHECK_AT_FREE, 0);
		assert_int_equal(page_count(head), 1);
		for (size_t i = 0; i < n; i++) {
			assert_ptr_equal(compound_head(head + i), head);
			assert_ptr_equal(virt_to_head_page((char *)page_address(head + i) + 5),
					 head);
			if (i)
				assert_int_equal(atomic_read(&head[i]._refcount, SKB_C_PAGE), 0);
		}
		get_page(head + n - 1);
		assert_int_equal(page_count(head), 2);
		put_page(head + n / 2);
		assert_int_equal(page_count(head + n - 1), 1);
		put_page(head + n - 1);
		for (size_t i = 0; i < n; i++)
			assert_ptr_equal(compound_head(head + i), head + i);
		assert_int_equal(head->flags & PG_head, 0);
		/* Above what CPUs keep, each way is one trip. */
		if (order > PCP_MAX_ORDER)
			assert_int_equal(stats().zone_locks - before.zone_locks, 2);
		assert_int_equal(stats().pgalloc - before.pgalloc, n);
		assert_int_equal(stats().pgfree - before.pgfree, n);
	}
	assert_initial_state();
}

static void test_random_alloc_free(void **state)
{
	static struct page *live[PAGES];
	static u8 owned[PAGES];
	size_t nr_live = 0, in_use = 0;
	u64 rng = test_seed();
	unsigned int cpu = 0, failed = 0;

	(void)state;
	for (int step = 0; step < 60000; step++) {
		/* Fill for a while, then empty for a while, so that the zone runs out at times. */
		bool fill = (step / 3000) % 2 == 0;
		u64 r = test_rand(&rng);

		if (r % 64 == 0) {
			cpu ^= 1;
			assert_int_equal(skb_cpu_attach(cpu, 0), 0);
		}
		if (r >> 8 & 3 ? fill : !fill) {
			unsigned int order = r >> 16 & 31;
			struct page *page;

			order = order < 16 ? 0 : order < 30 ? order & 3 : 4 + (r >> 24) % 7;
			page = alloc_pages(order);
			if (!page) {
				failed++;
				continue;
			}
			for (size_t i = 0; i < 1UL << order; i++) {
				assert_false(owned[page - mem_map + i]);
				owned[page - mem_map + i] = 1;
			}
			in_use += 1UL << order;
			live[nr_live++] = page;
		} else if (nr_live) {
			size_t i = (r >> 32) % nr_live;
			struct page *page = live[i];
			size_t n = 1UL << compound_order(page);

			memset(&owned[page - mem_map], 0, n);
			in_use -= n;
			live[i] = live[--nr_live];
			put_page(page + (r >> 16) % n);
		}
		if (step % 64 == 0) {
			struct zone_stats s = stats();
			size_t blocks = 0;

			assert_int_equal(s.nr_free + s.nr_pcp + in_use, s.nr_pages);
			assert_int_equal(s.pgalloc - s.pgfree, in_use);
			for (unsigned int o = 0; o < NR_PAGE_ORDERS; o++)
				blocks += zone_nr_free_blocks(0, o) << o;
			assert_int_equal(blocks, s.nr_free);
		}
	}
	assert_true(failed > 0);
	assert_true(stats().splits > 0);
	while (nr_live)
		put_page(live[--nr_live]);
	assert_initial_state();
	assert_int_equal(stats().splits, stats().merges);
}

static void test_exhaustion(void **state)
{
	static struct page *page[PAGES];
	size_t n = 0;

	(void)state;
	while (n < PAGES && (page[n] = alloc_pages(0)))
		n++;
	assert_int_equal(n, PAGES);
	assert_null(alloc_pages(0));
	assert_null(alloc_pages(3));
	assert_null(alloc_pages(10));
	assert_int_equal(stats().nr_free + stats().nr_pcp, 0);

	/* One page comes back, and is found. */
	put_page(page[5000]);
	assert_ptr_equal(alloc_pages(0), page[5000]);
	assert_null(alloc_pages(0));

	/* Eight neighbours come back one by one: they lie on this CPU's list and are merged when a block is wanted. */
	for (size_t i = 0; i < PAGES; i++)
		if ((page[i] - mem_map) / 8 == 77)
			put_page(page[i]);
	page[0] = page[0] - mem_map >= 77 * 8 && page[0] - mem_map < 78 * 8 ? NULL : page[0];
	{
		struct page *block = alloc_pages(3);

		assert_ptr_equal(block, mem_map + 77 * 8);
		put_page(block);
	}
	for (size_t i = 0; i < PAGES; i++)
		if (page[i] && (page[i] - mem_map) / 8 != 77)
			put_page(page[i]);
	assert_initial_state();
}

static struct page *victim;

static void free_twice(void)
{
	__put_page(victim);
}

static void put_below_zero(void)
{
	/* The count is not looked at until the page is handed out again, as in the kernel. */
	put_page(victim);
	alloc_pages(0);
}

static void free_with_references(void)
{
	struct page *page = alloc_pages(0);

	__put_page(page);
}

static void free_mapped(void)
{
	struct page *page = alloc_pages(0);

	page->_mapcount.counter = 0;
	put_page(page);
}

static void free_charged(void)
{
	struct page *page = alloc_pages(0);

	page->memcg_data = 8;
	put_page(page);
}

static void free_tail(void)
{
	struct page *head = alloc_pages(2);

	__put_page(head + 1);
}

static void free_broken_compound(void)
{
	struct page *head = alloc_pages(2);

	head[2].compound_head = 0;
	put_page(head);
}

static void free_correctly(void)
{
	struct page *head = alloc_pages(2);

	put_page(head);
}

static void test_bad_pages(void **state)
{
	(void)state;
	victim = alloc_pages(0);
	put_page(victim);
	assert_false(is_bug(free_correctly));
	assert_true(is_bug(free_twice));
	assert_true(is_bug(put_below_zero));
	assert_true(is_bug(free_with_references));
	assert_true(is_bug(free_mapped));
	assert_true(is_bug(free_charged));
	assert_true(is_bug(free_tail));
	assert_true(is_bug(free_broken_compound));
	assert_initial_state();
}

#define HANDED (PCP_BATCH * 100UL)

static struct test_ring rings[2];

/* Takes what the other CPU gave, until it has got all. */
static void *free_there(void *arg)
{
	struct test_ring *ring = arg;
	size_t n = 0;

	if (skb_cpu_attach(1, 0))
		return (void *)1;
	while (n < HANDED) {
		struct page *page = test_ring_get(ring);

		if (!page) {
			cpu_relax();
			continue;
		}
		put_page(page);
		n++;
	}
	return NULL;
}

/* Freed on another CPU than it was allocated on, a page costs two 63rds of a trip to the zone. */
static void test_alloc_here_free_there(void **state)
{
	size_t drains = (HANDED - PCP_HIGH) / PCP_DRAIN + 1;
	struct zone_stats s;
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, free_there, &rings[0]), 0);
	for (size_t n = 0; n < HANDED; n++) {
		struct page *page = alloc_pages(0);

		assert_non_null(page);
		while (!test_ring_put(&rings[0], page))
			cpu_relax();
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	s = stats();
	assert_int_equal(s.pcp_refills, HANDED / PCP_BATCH);
	assert_int_equal(s.pcp_drains, drains);
	assert_int_equal(s.zone_locks, HANDED / PCP_BATCH + drains);
	assert_int_equal(s.pcp_alloc_hits, HANDED - HANDED / PCP_BATCH);
	assert_int_equal(s.nr_free + s.nr_pcp, PAGES);
	assert_initial_state();
}

/* Freed where it was allocated, it costs none. */
static void test_alloc_here_free_here(void **state)
{
	(void)state;
	for (size_t n = 0; n < HANDED; n++)
		put_page(alloc_pages(0));
	assert_int_equal(stats().zone_locks, 1);
	assert_initial_state();
}

struct crosser {
	unsigned int slot;
	u64 rng;
	size_t sent, got;
};

#define CROSSED 20000UL

/* Allocates blocks of all orders, gives each to the other CPU, frees what the other gave. */
static void *cross(void *arg)
{
	struct crosser *c = arg;
	struct test_ring *out = &rings[c->slot], *in = &rings[!c->slot];
	struct page *page = NULL;

	if (skb_cpu_attach(c->slot, 0))
		return NULL;
	while (c->sent < CROSSED || c->got < CROSSED) {
		struct page *theirs = test_ring_get(in);

		if (theirs) {
			*(char *)page_address(theirs) += 1;
			put_page(theirs);
			c->got++;
		}
		if (!page && c->sent < CROSSED) {
			u64 r = test_rand(&c->rng);

			page = alloc_pages(r % 4 ? 0 : r / 4 % 5);
			if (page)
				*(char *)page_address(page) = c->slot;
		}
		if (page && test_ring_put(out, page)) {
			page = NULL;
			c->sent++;
		} else {
			cpu_relax();
		}
	}
	return NULL;
}

static void test_two_cpus_cross(void **state)
{
	u64 seed = test_seed();
	struct crosser c[2] = { { .slot = 0, .rng = seed }, { .slot = 1, .rng = ~seed | 1 } };
	pthread_t thread;

	(void)state;
	memset(rings, 0, sizeof(rings));
	assert_int_equal(pthread_create(&thread, NULL, cross, &c[1]), 0);
	cross(&c[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(c[1].got, CROSSED);
	assert_int_equal(stats().nr_free + stats().nr_pcp, PAGES);
	assert_initial_state();
}

#ifdef SKB_TRACED
static void test_ledger(void **state)
{
	struct page *page, *block;

	(void)state;
	skb_trace_sink = &test_sink;
	put_page(alloc_pages(0));

	/* From the CPU's own list: its lock and nothing else, both ways; the put is the page's own RMW. */
	test_counts_reset();
	page = alloc_pages(0);
	assert_int_equal(test_rmw_total(), 1);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_PCP], 1);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_ALLOC], 1);
	assert_int_equal(test_counts.event_n[SKB_EV_PAGE_ALLOC], 0);
	put_page(page);
	assert_int_equal(test_rmw_total(), 3);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_PCP], 2);
	assert_int_equal(test_counts.rmw[SKB_C_PAGE], 1);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_FREE], 1);
	assert_int_equal(test_counts.event[SKB_EV_LOCK], 2);

	/* With a refill: the zone's lock too. */
	test_counts_reset();
	block = alloc_pages(3);
	assert_int_equal(test_rmw_total(), 2);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_ZONE], 1);
	assert_int_equal(test_counts.event_n[SKB_EV_PAGE_ALLOC], 3);
	put_page(block + 3);
	assert_int_equal(test_counts.event_n[SKB_EV_PAGE_FREE], 3);

	/* Straight to the zone. */
	test_counts_reset();
	put_page(alloc_pages(4));
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_ZONE], 2);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_PCP], 0);

	/* Each site fails alone, and touches nothing. */
	test_counts_reset();
	test_fail_mask = 1u << SKB_SITE_PAGE;
	assert_null(alloc_pages(0));
	assert_int_equal(test_rmw_total(), 0);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_ALLOC], 0);
	put_page(alloc_pages(1));
	test_fail_mask = 1u << SKB_SITE_PAGE_HIGH;
	assert_null(alloc_pages(1));
	put_page(alloc_pages(0));
	test_fail_mask = 0;
	assert_initial_state();
}

/* One lock of the CPU's lists for all, the zone's for each batch; what cannot be had is left out. */
static void test_bulk(void **state)
{
	struct page *page[PCP_BATCH + 1];

	(void)state;
	skb_trace_sink = &test_sink;
	test_counts_reset();
	assert_int_equal(alloc_pages_bulk_node(NUMA_NO_NODE, PCP_BATCH + 1, page), PCP_BATCH + 1);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_PCP], 1);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK_ZONE], 2);
	assert_int_equal(test_counts.event[SKB_EV_PAGE_ALLOC], PCP_BATCH + 1);
	assert_int_equal(stats().pgalloc, PCP_BATCH + 1);
	assert_int_equal(stats().pcp_alloc_hits, PCP_BATCH - 1);
	for (int i = 0; i <= PCP_BATCH; i++) {
		assert_int_equal(page_count(page[i]), 1);
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(page[i], page[k]);
		put_page(page[i]);
	}
	assert_int_equal(alloc_pages_bulk_node(0, 0, page), 0);
	test_fail_mask = 1u << SKB_SITE_PAGE;
	assert_int_equal(alloc_pages_bulk_node(0, 3, page), 0);
	test_fail_mask = 0;
	assert_initial_state();
}
#endif

/* Short of memory: one at a time, until there is none. */
static void test_bulk_exhaustion(void **state)
{
	static struct page *page[PAGES];
	size_t nr = 0, got;

	(void)state;
	while ((got = alloc_pages_bulk_node(NUMA_NO_NODE, min(64, (int)(PAGES - nr)), &page[nr])))
		nr += got;
	assert_in_range(nr, PAGES - 64, PAGES);
	assert_null(alloc_pages(0));
	while (nr)
		put_page(page[--nr]);
	assert_initial_state();
}

/* What the kernel tells of where memory lies: all of it on one node, none on one that it is not on. */
static void test_where(void **state)
{
	size_t bytes = PAGES << PAGE_SHIFT, os_pages = bytes / 4096;
	void *fresh = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int node = node_mem_node(page_base);

	(void)state;
	assert_ptr_not_equal(fresh, MAP_FAILED);
	if (node < 0) { /* a kernel, or an emulator, that does not tell */
		print_message("where memory lies is not told: %s\n", strerror(-node));
		assert_true(page_alloc_misplaced(0) < 0);
		munmap(fresh, 8192);
		return;
	}
	if (page_alloc_bound())
		assert_int_equal(node, 0);
	assert_int_equal(node_mem_node(page_base + bytes - 1), node);
	assert_int_equal(node_mem_misplaced(page_base, bytes, 1ULL << node), 0);
	assert_int_equal(node_mem_misplaced(page_base, bytes, ~(1ULL << node)), os_pages);
	assert_int_equal(node_mem_misplaced(page_base, 0, 1 << 7), 0);
	assert_int_equal(page_alloc_misplaced(0),
			 node ? os_pages + PAGES * sizeof(struct page) / 4096 : 0);
	assert_int_equal(node_mem_node(fresh), -ENOENT);
	*(volatile char *)fresh = 1;
	assert_true(node_mem_node(fresh) >= 0);
	assert_int_equal(node_mem_misplaced(fresh, 8192, ~0ULL), -ENOENT);
	munmap(fresh, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_refuses),
		cmocka_unit_test(test_backing),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refill_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_of_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain_at_high, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_alloc_free, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exhaustion, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bulk_exhaustion, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alloc_here_free_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alloc_here_free_here, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_cpus_cross, setup, teardown),
		cmocka_unit_test_setup_teardown(test_where, setup, teardown),
#ifdef SKB_TRACED
		cmocka_unit_test_setup_teardown(test_ledger, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bulk, setup, teardown),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
