/* SPDX-License-Identifier: MIT */
/*
 * Each kind of memory where it was asked for. On a machine of one node "node 0" and "nodes 0 and 1, interleaved" are two
 * places that the kernel takes and puts onto one node: that they are kept apart is tested so on any machine.
 */
#include "skb/obj.h"
#include "skb/page_pool.h"
#include "skb/skbuff.h"
#include "tests/skb/mem_test.h"

#include <errno.h>
#include <sys/mman.h>

#define PAGES  1024
#define NODE_0 1ULL
#define BOTH   3ULL

/* Places of one node of the model: KIND lies on BOTH, all else on node 0. */
static struct mem_places places_with(enum mem_kind kind)
{
	struct mem_places places = { .nr = 1, .by_kind = true };

	for (unsigned int k = 0; k < NR_MEM_KINDS; k++)
		places.nodemask[k][0] = k == kind ? BOTH : NODE_0;
	return places;
}

static bool this_kernel_binds(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool binds;

	assert_ptr_not_equal(p, MAP_FAILED);
	binds = !node_mem_bind(p, 4096, BOTH, 2);
	munmap(p, 4096);
	if (!binds)
		print_message("this kernel, or an emulator, binds no memory: skipped\n");
	return binds;
}

struct holds {
	const char *p;
	bool found;
	size_t bytes;
	struct node_mem_count count;
	int err;
};

static void see(void *ctx, const void *p, size_t size)
{
	struct holds *h = ctx;

	h->found |= h->p >= (const char *)p && h->p < (const char *)p + size;
	h->bytes += size;
	if (!h->err)
		h->err = node_mem_count(p, size, &h->count);
}

static bool holds(enum mem_kind kind, const void *p)
{
	struct holds h = { .p = p };

	obj_allocator->walk(kind, 0, see, &h);
	assert_int_equal(h.err, 0);
	assert_true(h.bytes > 0);
	return h.found;
}

static void shells_apart(const char *name)
{
	struct mem_places places = places_with(MEM_SHELLS);
	void *shell[40], *head[40];

	mem_places_set(&places);
	assert_int_equal(obj_init(name, 1), 0);
	assert_string_equal(obj_allocator->name, name);
	assert_int_equal(skb_cpu_attach(0, 0), 0);
	/* Of one size, so that nothing but the call tells them apart. */
	for (unsigned int i = 0; i < ARRAY_SIZE(shell); i++) {
		shell[i] = shell_alloc(512, 0);
		head[i] = obj_alloc(512, 0);
		assert_non_null(shell[i]);
		assert_non_null(head[i]);
		memset(shell[i], 1, 512);
		memset(head[i], 2, 512);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(shell); i++) {
		assert_true(holds(MEM_SHELLS, shell[i]));
		assert_false(holds(MEM_HEADS, shell[i]));
		assert_true(holds(MEM_HEADS, head[i]));
		assert_false(holds(MEM_SHELLS, head[i]));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(shell); i++) {
		shell_free(shell[i], 512, 0);
		obj_free(head[i], 512, 0);
	}
	/* The last one that was freed comes back first, each of its own kind. */
	shell[0] = shell_alloc(512, 0);
	assert_true(holds(MEM_SHELLS, shell[0]));
	shell_free(shell[0], 512, 0);
}

static void test_shells_of_slub(void **state)
{
	(void)state;
	if (this_kernel_binds())
		shells_apart("slub");
	else
		skip();
}

/* Its arenas stay where they are for the life of the process: the last test of it. */
static void test_shells_of_jemalloc(void **state)
{
	(void)state;
	if (!this_kernel_binds())
		skip();
	shells_apart("jemalloc");
	mem_places_set(NULL);
	/* Heads are on node 0 alone by default, as they are now, but node 1 is where shells are. */
	assert_int_equal(obj_init("jemalloc", 1), 0);
	assert_int_equal(obj_init("jemalloc", 2), -EBUSY);
	assert_int_equal(obj_init("slub", 1), 0);
}

/* Whole sk_buffs of each sort: the shell in one place, the head in the other. */
static void test_sk_buffs(void **state)
{
	struct mem_places places = places_with(MEM_HEADS);

	(void)state;
	if (!this_kernel_binds())
		skip();
	mem_places_set(&places);
	assert_int_equal(obj_init("slub", 1), 0);
	assert_int_equal(page_alloc_init(1, PAGES), 0);
	assert_int_equal(skb_cpu_attach(0, 0), 0);
	for (enum skb_era era = 0; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb = alloc_skb(era, 100, NUMA_NO_NODE), *clone, *pair;

		pair = alloc_skb_fclone(era, MAX_TCP_HEADER, NUMA_NO_NODE);
		assert_non_null(skb);
		assert_non_null(pair);
		clone = skb_clone(era, skb);
		assert_non_null(clone);
		assert_true(holds(MEM_SHELLS, skb) && holds(MEM_SHELLS, clone) &&
			    holds(MEM_SHELLS, pair));
		assert_true(holds(MEM_HEADS, skb->head) && holds(MEM_HEADS, pair->head));
		assert_false(holds(MEM_HEADS, skb) || holds(MEM_SHELLS, skb->head));
		assert_int_equal(pskb_expand_head(era, pair, 64, 64), 0);
		assert_true(holds(MEM_HEADS, pair->head));
		kfree_skb(era, clone);
		kfree_skb(era, skb);
		kfree_skb(era, pair);
	}
	page_alloc_exit();
}

static void test_pools(void **state)
{
	struct mem_places places = places_with(MEM_POOL);
	struct page_pool_params params = { .pool_size = 64, .nid = NUMA_NO_NODE };
	struct holds h = { .p = NULL };
	struct page_pool *pool;
	struct page *page, *own;
	struct zone_stats z;

	(void)state;
	if (!this_kernel_binds())
		skip();
	mem_places_set(&places);
	assert_int_equal(obj_init("slub", 1), 0);
	assert_int_equal(page_alloc_init(1, PAGES), 0);
	assert_int_equal(skb_cpu_attach(0, 0), 0);
	assert_int_equal(page_pool_create(&params, &pool), 0);
	assert_int_equal(pool->p.nid, 1);
	page_pool_poll_begin(pool);
	page = page_pool_alloc_pages(pool);
	own = alloc_pages(0);
	assert_non_null(page);
	assert_non_null(own);
	assert_int_equal(page_to_nid(page), 1);
	assert_int_equal(page_to_nid(own), 0);
	mem_walk(MEM_POOL, 0, see, &h);
	h.p = (const char *)pool;
	mem_walk(MEM_POOL, 0, see, &h);
	assert_true(h.found);
	/* The pool and its ring, twice walked: all touched, all on nodes that were asked for. */
	assert_int_equal(h.count.untouched, 0);
	assert_int_equal(h.count.on[0] + h.count.on[1], h.bytes / 4096);
	assert_int_equal(h.bytes, 2 * (ALIGN(sizeof(*pool), (size_t)4096) + 4096));
	put_page(own);
	/* Used again, pages of its own are kept: none is waived as another node's. */
	page_pool_put_page(pool, page, true);
	page = page_pool_alloc_pages(pool);
	page_pool_poll_end(pool);
	page_pool_put_page(pool, page, false);
	assert_int_equal(pool->alloc_stats.waive, 0);
	assert_int_equal(page_pool_destroy(pool), 0);
	h = (struct holds){ .p = NULL };
	mem_walk(MEM_POOL, 0, see, &h);
	assert_int_equal(h.bytes, 0);
	for (unsigned int node = 0; node < 2; node++) {
		zone_stats(node, &z);
		assert_int_equal(z.nr_pages, PAGES);
		assert_int_equal(z.nr_free + z.nr_pcp, PAGES);
		assert_int_equal(page_alloc_misplaced(node), 0);
	}
	page_alloc_exit();
}

static void test_zalloc(void **state)
{
	struct mem_places places = places_with(MEM_SOCKET);
	struct holds h = { .p = NULL };
	char *p, *q;

	(void)state;
	mem_places_set(NULL);
	p = mem_zalloc(MEM_SOCKET, 0, 100);
	assert_non_null(p);
	assert_int_equal((uintptr_t)p % SMP_CACHE_BYTES, 0);
	mem_walk(MEM_SOCKET, 0, see, &h);
	assert_int_equal(h.bytes, 0);
	mem_free(p);
	mem_free(NULL);
	if (!this_kernel_binds())
		skip();
	mem_places_set(&places);
	p = mem_zalloc(MEM_SOCKET, 0, 5000);
	q = mem_zalloc(MEM_SOCKET, 0, 1);
	assert_non_null(p);
	assert_non_null(q);
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(p[i], 0);
	mem_walk(MEM_SOCKET, 0, see, &h);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.bytes, 3 * 4096);
	assert_int_equal(h.count.on[0] + h.count.on[1], 3);
	mem_free(p);
	mem_free(q);
	h.bytes = 0;
	mem_walk(MEM_SOCKET, 0, see, &h);
	assert_int_equal(h.bytes, 0);
}

static void test_refuses(void **state)
{
	struct mem_places places = places_with(MEM_SHELLS);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	mem_places_set(&places);
	assert_int_equal(obj_init("glibc", 1), -ENOTSUP);
	places = places_with(NR_MEM_KINDS);
	mem_places_set(&places);
	assert_int_equal(obj_init("glibc", 1), -ENOTSUP); /* told by kind, which it cannot do */
	places.by_kind = false;
	mem_places_set(&places);
	assert_int_equal(obj_init("glibc", 1), 0);

	/* As many as there are places in the model, and one more. */
	places = (struct mem_places){ .nr = 5 };
	for (unsigned int i = 0; i < 5; i++) {
		for (unsigned int k = 0; k < NR_MEM_KINDS; k++)
			places.nodemask[k][i] = NODE_0;
		places.nodemask[MEM_POOL][i] = places.nodemask[MEM_SHELLS][i] = BOTH;
	}
	mem_places_set(&places);
	assert_int_equal(obj_init("slub", 5), -E2BIG);
	assert_int_equal(page_alloc_init(5, PAGES), -E2BIG);
	if (!access("/sys/devices/system/node/node0", F_OK) &&
	    access("/sys/devices/system/node/node63", F_OK))
		assert_int_equal(node_mem_bind(p, 4096, 1ULL << 63, 2), -ENODEV);
	munmap(p, 4096);
	mem_places_set(NULL);
}

/* Either there are huge pages and all page memory is in them, or there is none and nothing is left behind. */
static void test_hugetlb(void **state)
{
	struct mem_places places = places_with(NR_MEM_KINDS);
	int err;

	(void)state;
	places.hugetlb = true;
	mem_places_set(&places);
	err = page_alloc_init(1, PAGES);
	if (!err)
		assert_string_equal(page_alloc_backing(), "hugetlb");
	else
		assert_int_equal(err, -ENOMEM);
	page_alloc_exit();
	assert_string_equal(page_alloc_backing(), "none");
	mem_places_set(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zalloc),
		cmocka_unit_test(test_shells_of_slub),
		cmocka_unit_test(test_sk_buffs),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_hugetlb),
		cmocka_unit_test(test_shells_of_jemalloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
