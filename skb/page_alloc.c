/* SPDX-License-Identifier: MIT */
/*
 * The page allocator. What it models and what it leaves out is told in page_alloc.h.
 *
 * Locks: a CPU's lists (per_cpu_pages) are touched by their CPU alone, under a lock that the kernel takes too, since
 * there another CPU may drain them; the zone lock is taken inside it. Under the zone lock another CPU's page may be
 * looked at as a possible buddy: that is why every store to page->flags and every look at a buddy goes through the seam.
 */
#include "skb/page_alloc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define OS_PAGE_SIZE   4096UL
#define HUGE_SIZE      (2UL << 20)
#define MAX_ORDER_SIZE (1UL << (NR_PAGE_ORDERS - 1)) /* pages */

/* A zone's free pages that ordinary allocations leave alone: a 256th, about what the kernel's min mark is in 1 GB. */
#define WMARK_MIN_SHIFT 8

/* Kept out of line, so that the common path needs no registers for it. */
#define noinline_slow __attribute__((noinline))

/* Blocks by their first page, the most recently freed one first. */
struct page_list {
	struct page *first, *last;
};

/* What one CPU keeps of one node's zone. All zeroes is the empty state. */
struct per_cpu_pages {
	spinlock_t lock;
	int count; /* pages on the lists */
	struct page_list lists[PCP_MAX_ORDER + 1];
	u64 pgalloc, pgfree; /* pages; these five are the CPU's own, outside the lock */
	u64 alloc_hits;
	u64 refills, drains;
} ____cacheline_aligned;

/* Each CPU's part begins on a page of the machine, so that first touch puts it near the CPU. */
struct cpu_pages {
	struct per_cpu_pages node[SKB_NR_NODES];
} __attribute__((aligned(4096)));

struct zone {
	struct page *first;
	size_t nr_pages;
	size_t wmark_min; /* pages */
	/* Read by every allocation, written under the lock. */
	size_t nr_free ____cacheline_aligned; /* pages */
	spinlock_t lock ____cacheline_aligned;
	struct page_list free_area[NR_PAGE_ORDERS];
	u64 nr_locks, nr_splits, nr_merges; /* under the lock */
} ____cacheline_aligned;

struct page *mem_map;
char *page_base;

static struct zone zones[SKB_NR_NODES];
static struct cpu_pages cpu_pages[SKB_NR_CPUS];

static struct {
	unsigned int nodes; /* zones */
	unsigned int pools_at; /* node i's pools have zone i + pools_at; 0: they have zone i */
	size_t bytes; /* of all zones */
	void *pages_reservation, *map_reservation;
	size_t pages_reserved, map_reserved;
	bool hugetlb;
	bool bound;
} mem;

static __always_inline void list_add(struct page_list *list, struct page *page)
{
	page->lru_prev = NULL;
	page->lru_next = list->first;
	if (list->first)
		list->first->lru_prev = page;
	else
		list->last = page;
	list->first = page;
}

static void list_add_tail(struct page_list *list, struct page *page)
{
	page->lru_next = NULL;
	page->lru_prev = list->last;
	if (list->last)
		list->last->lru_next = page;
	else
		list->first = page;
	list->last = page;
}

static __always_inline struct page *list_pop(struct page_list *list)
{
	struct page *page = list->first, *next = page->lru_next;

	list->first = next;
	if (next)
		next->lru_prev = NULL;
	else
		list->last = NULL;
	return page;
}

static void list_del(struct page_list *list, struct page *page)
{
	if (page->lru_prev)
		page->lru_prev->lru_next = page->lru_next;
	else
		list->first = page->lru_next;
	if (page->lru_next)
		page->lru_next->lru_prev = page->lru_prev;
	else
		list->last = page->lru_prev;
}

/* The assembly hides where the address comes from: gcc would rather compute it anew for each field. */
static __always_inline struct per_cpu_pages *this_cpu_pages(unsigned int nid)
{
	struct per_cpu_pages *pcp = &cpu_pages[smp_processor_id()].node[nid];

	__asm__("" : "+r"(pcp));
	return pcp;
}

static __always_inline void change_flags(struct page *page, unsigned long clear, unsigned long set)
{
	skb_store(&page->flags, (page->flags & ~clear) | set, SKB_C_PAGE);
}

/*
 * The kernel's check on the way in and out: one branch for everything that a page nobody uses must be. MORE is what
 * else of it must be zero.
 */
static __always_inline void check_page(const struct page *page, unsigned long bad_flags,
				       unsigned long more)
{
	unsigned long bad_page = (page->flags & bad_flags) | page->memcg_data | more |
				 (unsigned int)atomic_read(&page->_refcount, SKB_C_PAGE) |
				 (unsigned int)~page->_mapcount.counter;

	BUG_ON(bad_page);
}

static void zone_lock(struct zone *zone)
{
	spin_lock(&zone->lock, SKB_C_LOCK_ZONE);
	zone->nr_locks++;
}

/* Also the place where the zone's count of free pages is settled, once a trip. */
static void zone_unlock(struct zone *zone, long freed)
{
	if (freed)
		skb_store(&zone->nr_free, zone->nr_free + freed, SKB_C_OTHER);
	spin_unlock(&zone->lock, SKB_C_LOCK_ZONE);
}

static __always_inline void add_to_free_list(struct zone *zone, struct page *page,
					     unsigned int order)
{
	page->private = order;
	change_flags(page, PG_pcp, PG_buddy);
	list_add(&zone->free_area[order], page);
}

/*
 * A block of ORDER out of the buddy allocator, splitting a larger one if need be; NULL if there is none. Its PG_buddy
 * becomes FLAG here, under the lock, since another CPU may look at it as a buddy as soon as the lock is free.
 */
static struct page *__rmqueue(struct zone *zone, unsigned int order, unsigned long flag)
{
	for (unsigned int o = order; o < NR_PAGE_ORDERS; o++) {
		struct page *page = zone->free_area[o].first;

		if (!page)
			continue;
		list_del(&zone->free_area[o], page);
		change_flags(page, PG_buddy, flag);
		while (o > order) {
			o--;
			add_to_free_list(zone, page + (1UL << o), o);
			zone->nr_splits++;
		}
		return page;
	}
	return NULL;
}

static void __free_one_page(struct zone *zone, struct page *page, unsigned int order)
{
	size_t pfn = page - zone->first;

	while (order < NR_PAGE_ORDERS - 1) {
		struct page *buddy = zone->first + (pfn ^ (1UL << order));

		/* PG_buddy is only set and cleared under the zone lock, so that the order may be trusted. */
		if (!(skb_load(&buddy->flags, SKB_C_PAGE) & PG_buddy) || buddy->private != order)
			break;
		list_del(&zone->free_area[order], buddy);
		change_flags(buddy, PG_buddy, 0);
		pfn &= ~(1UL << order);
		order++;
		zone->nr_merges++;
	}
	/* The freed page may have become an inner page of the block. */
	change_flags(page, PG_pcp, 0);
	add_to_free_list(zone, zone->first + pfn, order);
}

/* Moves up to a batch of blocks from the zone to an empty list of this CPU. */
static noinline_slow void rmqueue_bulk(struct zone *zone, struct per_cpu_pages *pcp,
				       unsigned int order)
{
	int blocks = max(PCP_BATCH >> order, 1), n;

	zone_lock(zone);
	for (n = 0; n < blocks; n++) {
		struct page *page = __rmqueue(zone, order, PG_pcp);

		if (!page)
			break;
		list_add_tail(&pcp->lists[order], page);
	}
	zone_unlock(zone, -((long)n << order));
	pcp->count += n << order;
	pcp->refills++;
}

/* Gives at least COUNT pages back to the zone, or all: the oldest first, those of ORDER first. */
static noinline_slow void free_pcppages_bulk(struct zone *zone, struct per_cpu_pages *pcp,
					     int count, unsigned int order)
{
	int freed = 0;

	count = min(count, pcp->count);
	zone_lock(zone);
	for (; freed < count; order = (order + 1) % (PCP_MAX_ORDER + 1)) {
		struct page *page;

		while (freed < count && (page = pcp->lists[order].last)) {
			list_del(&pcp->lists[order], page);
			__free_one_page(zone, page, order);
			freed += 1 << order;
		}
	}
	zone_unlock(zone, freed);
	pcp->count -= freed;
	pcp->drains++;
}

/* Under the lock of PCP. */
static __always_inline struct page *__rmqueue_pcplist(struct zone *zone, struct per_cpu_pages *pcp,
						      unsigned int order)
{
	struct page_list *list = &pcp->lists[order];
	struct page *page = NULL;

	if (likely(list->first))
		pcp->alloc_hits++;
	else
		rmqueue_bulk(zone, pcp, order);
	if (likely(list->first)) {
		page = list_pop(list);
		pcp->count -= 1 << order;
	}
	return page;
}

static __always_inline struct page *rmqueue_pcplist(struct zone *zone, struct per_cpu_pages *pcp,
						    unsigned int order)
{
	struct page *page;

	spin_lock(&pcp->lock, SKB_C_LOCK_PCP);
	page = __rmqueue_pcplist(zone, pcp, order);
	spin_unlock(&pcp->lock, SKB_C_LOCK_PCP);
	return page;
}

static noinline_slow struct page *rmqueue_buddy(struct zone *zone, unsigned int order)
{
	struct page *page;

	zone_lock(zone);
	page = __rmqueue(zone, order, 0);
	zone_unlock(zone, page ? -(1L << order) : 0);
	return page;
}

static __always_inline struct page *rmqueue(struct zone *zone, struct per_cpu_pages *pcp,
					    unsigned int order)
{
	if (likely(order <= PCP_MAX_ORDER))
		return rmqueue_pcplist(zone, pcp, order);
	return rmqueue_buddy(zone, order);
}

static noinline_slow void free_one_page(struct zone *zone, struct page *page, unsigned int order)
{
	zone_lock(zone);
	__free_one_page(zone, page, order);
	zone_unlock(zone, 1L << order);
}

static void drain_pages(struct zone *zone, struct per_cpu_pages *pcp)
{
	spin_lock(&pcp->lock, SKB_C_LOCK_PCP);
	if (pcp->count)
		free_pcppages_bulk(zone, pcp, pcp->count, 0);
	spin_unlock(&pcp->lock, SKB_C_LOCK_PCP);
}

/* The zone is low or has no block of this size. All that is left of reclaim here: this CPU gives back what it keeps. */
static noinline_slow struct page *alloc_pages_slowpath(struct zone *zone, struct per_cpu_pages *pcp,
						       unsigned int order)
{
	drain_pages(zone, pcp);
	return rmqueue(zone, pcp, order);
}

static noinline_slow void prep_compound_page(struct page *head, unsigned int order)
{
	change_flags(head, 0, PG_head);
	for (size_t i = 1; i < 1UL << order; i++) {
		check_page(&head[i], PG_FLAGS_CHECK_AT_FREE | PG_head, 0);
		skb_store(&head[i].compound_head, (unsigned long)head | 1, SKB_C_PAGE);
	}
	head[1].compound_order = order;
}

static noinline_slow void destroy_compound_page(struct page *head, unsigned int order)
{
	for (size_t i = 1; i < 1UL << order; i++) {
		check_page(&head[i], PG_FLAGS_CHECK_AT_FREE | PG_head,
			   head[i].compound_head ^ ((unsigned long)head | 1));
		skb_store(&head[i].compound_head, 0UL, SKB_C_PAGE);
	}
	change_flags(head, PG_head, 0);
}

/* PAGE is no longer the allocator's: checked, compound if ORDER > 0, one reference. */
static __always_inline void prep_new_page(struct per_cpu_pages *pcp, struct page *page,
					  unsigned int order)
{
	pcp->pgalloc += 1UL << order;
	change_flags(page, PG_pcp, 0);
	check_page(page, PG_buddy | PG_head, 0);
	if (order)
		prep_compound_page(page, order);
	set_page_count(page, 1);
	skb_event(SKB_EV_PAGE_ALLOC, page, order);
}

struct page *alloc_pages_node(int node, unsigned int order)
{
	unsigned int nid = node == NUMA_NO_NODE ? numa_node_id() : (unsigned int)node;
	struct per_cpu_pages *pcp = this_cpu_pages(nid);
	struct zone *zone = &zones[nid];
	struct page *page = NULL;

	if (skb_fail(order ? SKB_SITE_PAGE_HIGH : SKB_SITE_PAGE))
		return NULL;
	if (likely(skb_load(&zone->nr_free, SKB_C_OTHER) >= zone->wmark_min + (1UL << order)))
		page = rmqueue(zone, pcp, order);
	if (unlikely(!page)) {
		page = alloc_pages_slowpath(zone, pcp, order);
		if (!page)
			return NULL;
	}
	prep_new_page(pcp, page, order);
	return page;
}

unsigned int alloc_pages_bulk_node(int node, unsigned int nr, struct page **pages)
{
	unsigned int nid = node == NUMA_NO_NODE ? numa_node_id() : (unsigned int)node, got = 0;
	struct per_cpu_pages *pcp = this_cpu_pages(nid);
	struct zone *zone = &zones[nid];

	if (likely(skb_load(&zone->nr_free, SKB_C_OTHER) >= zone->wmark_min + nr)) {
		spin_lock(&pcp->lock, SKB_C_LOCK_PCP);
		while (got < nr && !skb_fail(SKB_SITE_PAGE)) {
			struct page *page = __rmqueue_pcplist(zone, pcp, 0);

			if (unlikely(!page))
				break;
			prep_new_page(pcp, page, 0);
			pages[got++] = page;
		}
		spin_unlock(&pcp->lock, SKB_C_LOCK_PCP);
	}
	if (unlikely(!got && nr)) {
		pages[0] = alloc_pages_node(node, 0);
		got = pages[0] != NULL;
	}
	return got;
}

void __put_page(struct page *page)
{
	unsigned int order = compound_order(page), nid = page_to_nid(page);
	struct per_cpu_pages *pcp = this_cpu_pages(nid);
	struct zone *zone = &zones[nid];

	check_page(page, PG_FLAGS_CHECK_AT_FREE, page->compound_head & 1);
	if (order)
		destroy_compound_page(page, order);
	skb_event(SKB_EV_PAGE_FREE, page, order);
	pcp->pgfree += 1UL << order;
	if (unlikely(order > PCP_MAX_ORDER)) {
		free_one_page(zone, page, order);
		return;
	}
	spin_lock(&pcp->lock, SKB_C_LOCK_PCP);
	change_flags(page, 0, PG_pcp);
	list_add(&pcp->lists[order], page);
	pcp->count += 1 << order;
	if (unlikely(pcp->count >= PCP_HIGH))
		free_pcppages_bulk(zone, pcp, PCP_DRAIN, order);
	spin_unlock(&pcp->lock, SKB_C_LOCK_PCP);
}

void drain_local_pages(void)
{
	for (unsigned int i = 0; i < mem.nodes; i++)
		drain_pages(&zones[i], &cpu_pages[smp_processor_id()].node[i]);
}

void zone_stats(unsigned int node, struct zone_stats *out)
{
	const struct zone *zone = &zones[node];

	*out = (struct zone_stats){
		.zone_locks = zone->nr_locks,
		.splits = zone->nr_splits,
		.merges = zone->nr_merges,
		.nr_free = zone->nr_free,
		.nr_pages = zone->nr_pages,
	};
	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++) {
		const struct per_cpu_pages *pcp = &cpu_pages[cpu].node[node];

		out->pgalloc += pcp->pgalloc;
		out->pgfree += pcp->pgfree;
		out->pcp_alloc_hits += pcp->alloc_hits;
		out->pcp_refills += pcp->refills;
		out->pcp_drains += pcp->drains;
		out->nr_pcp += pcp->count;
	}
}

size_t zone_nr_free_blocks(unsigned int node, unsigned int order)
{
	size_t n = 0;

	for (const struct page *p = zones[node].free_area[order].first; p; p = p->lru_next)
		n++;
	return n;
}

/* Where a zone lies: behind those of the nodes themselves are those of their pools. */
static u64 zone_nodemask(unsigned int i)
{
	if (mem.pools_at && i >= mem.pools_at)
		return mem_nodemask(MEM_POOL, i - mem.pools_at);
	return mem_nodemask(MEM_PAGES, i);
}

/* Maps and touches one zone's bytes. HUGETLB may fail where it is first touched: that must not be a signal. */
static int map_zone(unsigned int node, bool hugetlb)
{
	size_t bytes = mem.bytes / mem.nodes;
	char *p = page_base + node * bytes;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (hugetlb ? MAP_HUGETLB : 0);
	int err;

	if (mmap(p, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
		return -ENOMEM;
	err = node_mem_bind(p, bytes, zone_nodemask(node), mem.nodes);
	if (err < 0)
		return err;
	if (err)
		mem.bound = false;
	if (hugetlb)
		return madvise(p, bytes, MADV_POPULATE_WRITE) ? -ENOMEM : 0;
	madvise(p, bytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < bytes; i += OS_PAGE_SIZE)
		((volatile char *)p)[i] = 0;
	return 0;
}

static int map_zones(bool hugetlb)
{
	mem.bound = true;
	mem.hugetlb = hugetlb;
	for (unsigned int i = 0; i < mem.nodes; i++) {
		int err = map_zone(i, hugetlb);

		if (err)
			return err;
	}
	return 0;
}

static int init_zone(unsigned int node, size_t pages)
{
	struct zone *zone = &zones[node];
	int err;

	*zone = (struct zone){
		.first = mem_map + node * pages,
		.nr_pages = pages,
		.wmark_min = pages >> WMARK_MIN_SHIFT,
		.nr_free = pages,
	};
	err = node_mem_bind(zone->first, pages * sizeof(struct page), zone_nodemask(node),
			    mem.nodes);
	if (err < 0)
		return err;
	for (size_t i = 0; i < pages; i++) {
		zone->first[i].flags = (unsigned long)node << PG_NODE_SHIFT;
		zone->first[i]._mapcount.counter = -1;
	}
	for (size_t i = 0; i < pages; i += MAX_ORDER_SIZE) {
		struct page *page = &zone->first[i];

		page->private = NR_PAGE_ORDERS - 1;
		page->flags |= PG_buddy;
		list_add_tail(&zone->free_area[NR_PAGE_ORDERS - 1], page);
	}
	return 0;
}

int page_alloc_init(unsigned int homes, size_t pages)
{
	unsigned int nodes = homes;
	size_t map_bytes;
	int err = -ENOMEM;

	if (mem.nodes)
		return -EBUSY;
	if (!homes || homes > SKB_NR_NODES || !pages || pages % MAX_ORDER_SIZE ||
	    pages > (SIZE_MAX >> (PAGE_SHIFT + 8)) / (2 * homes))
		return -EINVAL;
	if (mem_apart(MEM_POOL, MEM_PAGES, homes)) {
		if (2 * homes > SKB_NR_NODES)
			return -E2BIG;
		mem.pools_at = homes;
		nodes = 2 * homes;
	}
	mem.nodes = nodes;
	mem.bytes = (nodes * pages) << PAGE_SHIFT;
	map_bytes = nodes * pages * sizeof(struct page);
	page_base = node_mem_reserve(mem.bytes, MAX_ORDER_SIZE << PAGE_SHIFT,
				     &mem.pages_reservation, &mem.pages_reserved);
	mem_map = node_mem_reserve(map_bytes, HUGE_SIZE, &mem.map_reservation, &mem.map_reserved);
	if (!page_base || !mem_map || mprotect(mem_map, map_bytes, PROT_READ | PROT_WRITE))
		goto fail;
	madvise(mem_map, map_bytes,
		MADV_HUGEPAGE); /* as the kernel's; small zones have no use for it */
	err = map_zones(true);
	if (err && !mem_hugetlb())
		err = map_zones(false);
	for (unsigned int i = 0; !err && i < nodes; i++)
		err = init_zone(i, pages);
	if (!err)
		return 0;
fail:
	page_alloc_exit();
	return err;
}

void page_alloc_exit(void)
{
	if (mem.pages_reservation)
		munmap(mem.pages_reservation, mem.pages_reserved);
	if (mem.map_reservation)
		munmap(mem.map_reservation, mem.map_reserved);
	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++)
		for (unsigned int i = 0; i < mem.nodes; i++) {
			struct per_cpu_pages *pcp = &cpu_pages[cpu].node[i];

			/* Only what was used: a CPU's part is to be written by that CPU first. */
			if (pcp->pgalloc | pcp->pgfree | pcp->refills)
				memset(pcp, 0, sizeof(*pcp));
		}
	memset(zones, 0, sizeof(zones));
	memset(&mem, 0, sizeof(mem));
	mem_map = NULL;
	page_base = NULL;
}

/* Bytes of the page memory that lie in transparent huge pages; -1 if the kernel does not tell. */
static long thp_bytes(void)
{
	uintptr_t base = (uintptr_t)page_base, vma = 0, from, to;
	FILE *f = fopen("/proc/self/smaps", "re");
	long kb, sum = 0;
	char line[512];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			vma = from;
		else if (vma >= base && vma < base + mem.bytes &&
			 sscanf(line, "AnonHugePages: %ld kB", &kb) == 1)
			sum += kb << 10;
	fclose(f);
	return sum;
}

const char *page_alloc_backing(void)
{
	long thp;

	if (!mem.nodes)
		return "none";
	if (mem.hugetlb)
		return "hugetlb";
	thp = thp_bytes();
	if (thp < 0)
		return "unknown";
	return (size_t)thp == mem.bytes ? "thp" : thp ? "mixed" : "4k";
}

long page_alloc_misplaced(unsigned int node)
{
	const struct zone *zone = &zones[node];
	long pages, map;

	pages = node_mem_misplaced(page_address(zone->first), zone->nr_pages << PAGE_SHIFT,
				   zone_nodemask(node));
	if (pages < 0)
		return pages;
	map = node_mem_misplaced(zone->first, zone->nr_pages * sizeof(struct page),
				 zone_nodemask(node));
	return map < 0 ? map : pages + map;
}

void page_alloc_walk(unsigned int node, mem_range_fn fn, void *ctx)
{
	const struct zone *zone = &zones[node];

	fn(ctx, page_address(zone->first), zone->nr_pages << PAGE_SHIFT);
	fn(ctx, zone->first, zone->nr_pages * sizeof(struct page));
}

int page_alloc_pool_nid(int nid)
{
	if (!mem.pools_at)
		return nid;
	return (int)mem.pools_at + (nid == NUMA_NO_NODE ? (int)numa_node_id() : nid);
}

bool page_alloc_bound(void)
{
	return mem.bound;
}
