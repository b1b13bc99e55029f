/* SPDX-License-Identifier: MIT */
/*
 * The page allocator: one zone a memory node, a buddy allocator in it, lists of free blocks for each CPU in front.
 *
 * Kernel: mm/page_alloc.c, 6.12: rmqueue_pcplist(), rmqueue_bulk(), free_unref_page(), free_pcppages_bulk(),
 * __free_one_page(). The blocks that CPUs keep are of orders 0 to PCP_MAX_ORDER; a CPU's list is refilled by a batch of
 * PCP_BATCH pages under the zone lock and drained by PCP_DRAIN pages when it holds PCP_HIGH. Every page is checked on
 * its way in and out (count, mapcount, flags), as the kernel does, and the counters that the kernel keeps are kept.
 * Left out: migrate types, watermark boosting, reclaim, cpusets, memory cgroups, init_on_alloc.
 *
 *                alloc_pages   __put_page
 * alloc_pages         -            -         -: safe on different CPUs at once (the zone lock, and each CPU's own list)
 * __put_page          -            -
 */
#ifndef SKB_PAGE_ALLOC_H
#define SKB_PAGE_ALLOC_H

#include "skb/cpu.h"
#include "skb/page.h"

#define NR_PAGE_ORDERS 11 /* orders 0 to 10 */
#define PCP_MAX_ORDER  3
#define PCP_BATCH      63
#define PCP_HIGH       378
#define PCP_DRAIN      63

#define NUMA_NO_NODE (-1)

extern struct page *mem_map; /* one struct page for each page of all nodes */
extern char *page_base; /* and the bytes, in the same order */

static __always_inline void *page_address(const struct page *page)
{
	return page_base + ((size_t)(page - mem_map) << PAGE_SHIFT);
}

static __always_inline struct page *virt_to_page(const void *addr)
{
	return mem_map + ((size_t)((const char *)addr - page_base) >> PAGE_SHIFT);
}

static __always_inline struct page *virt_to_head_page(const void *addr)
{
	return compound_head(virt_to_page(addr));
}

/*
 * Creates the zones: PAGES pages on each of NODES nodes (PAGES a multiple of 2^(NR_PAGE_ORDERS - 1)), each bound to its
 * node, on huge pages where the machine gives them, touched before return. 0; -EINVAL for sizes out of range; -ENOMEM;
 * -ENODEV if a node does not exist here. On error nothing is left behind. To be called once, before any CPU attaches.
 */
int page_alloc_init(unsigned int nodes, size_t pages);

/* Gives all memory back. No page may be in use. For tests. */
void page_alloc_exit(void);

/*
 * A block of 2^ORDER pages with one reference, compound if ORDER > 0, from NODE (NUMA_NO_NODE: the calling CPU's own).
 * NULL if the zone has none left. Runs on an attached CPU. No fallback to another node: placement is explicit.
 */
struct page *alloc_pages_node(int node, unsigned int order);

static __always_inline struct page *alloc_pages(unsigned int order)
{
	return alloc_pages_node(NUMA_NO_NODE, order);
}

/* The counters of one node, summed over CPUs: exact when no CPU is in the allocator. */
struct zone_stats {
	u64 pgalloc, pgfree; /* pages */
	u64 pcp_alloc_hits; /* blocks served from a CPU's own list */
	u64 pcp_refills, pcp_drains; /* trips to the zone for a batch */
	u64 zone_locks; /* times the zone lock was taken */
	u64 splits, merges; /* of buddy blocks */
	size_t nr_free; /* pages in the buddy allocator */
	size_t nr_pcp; /* pages on CPUs' lists */
	size_t nr_pages; /* of the zone */
};
void zone_stats(unsigned int node, struct zone_stats *out);

/* Returns the calling CPU's lists to the zones. */
void drain_local_pages(void);

/* What the machine gave for the page memory: "hugetlb", "thp" or "4k"; and true if each zone is bound to its node. */
const char *page_alloc_backing(void);
bool page_alloc_bound(void);

#endif
