/* SPDX-License-Identifier: MIT */
/*
 * The page allocator: one zone a memory node, a buddy allocator in it, lists of free blocks for each CPU in front.
 *
 * Kernel: mm/page_alloc.c, 6.12: rmqueue_pcplist(), rmqueue_bulk(), free_unref_page(), free_pcppages_bulk(),
 * __free_one_page(). The blocks that CPUs keep are of orders 0 to PCP_MAX_ORDER; a CPU's list is refilled by a batch of
 * PCP_BATCH pages under the zone lock and drained by PCP_DRAIN pages when it holds PCP_HIGH. Every page is checked on
 * its way in and out (count, mapcount, flags), as the kernel does, and the counters that the kernel keeps are kept.
 * Left out: migrate types, watermarks other than the lowest, reclaim beyond the calling CPU's own lists, tuning of batch
 * and high, cpusets, memory cgroups, init_on_alloc, interrupts.
 *
 *                alloc_pages   __put_page   zone_stats
 * alloc_pages         -            -            X       -: safe on different CPUs at once (the zone lock, and each CPU's
 * __put_page          -            -            X          own lists)
 * zone_stats          X            X            -       X: the caller serialises
 */
#ifndef SKB_PAGE_ALLOC_H
#define SKB_PAGE_ALLOC_H

#include "skb/cpu.h"
#include "skb/node_mem.h"
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
 * Creates the zones: PAGES pages on each of NODES nodes (PAGES a multiple of 2^(NR_PAGE_ORDERS - 1)), each bound to where
 * MEM_PAGES of its node lies (skb/node_mem.h), on huge pages where the machine gives them or where mem_hugetlb() demands
 * it, touched before return. Where pools lie elsewhere, as many zones more for them: page_alloc_pool_nid(). 0; -EINVAL for
 * sizes out of range; -E2BIG for more than SKB_NR_NODES zones; -ENOMEM; -ENODEV if a node does not exist here; -EBUSY if
 * the zones exist. On error nothing is left behind (but with -EBUSY the zones stay). To be called while no CPU is in the
 * allocator. A machine that binds no memory is good for one node: page_alloc_bound() tells.
 */
int page_alloc_init(unsigned int nodes, size_t pages);

/*
 * Whose pages a page_pool takes that is created for NID (NUMA_NO_NODE: the node of the CPU that allocates): NID, or where
 * pools lie elsewhere than other pages, a node beyond those of page_alloc_init(): NID's, or the calling CPU's.
 */
int page_alloc_pool_nid(int nid);

/* Gives all memory back, and zeroes the counters. No page may be in use, no CPU in the allocator. */
void page_alloc_exit(void);

/*
 * A block of 2^ORDER pages (ORDER below NR_PAGE_ORDERS) with one reference, compound if ORDER > 0, from NODE
 * (NUMA_NO_NODE: the calling CPU's own). NULL if neither the zone nor the calling CPU's lists hold such a block, also
 * when other CPUs' lists do, or if the node has no zone. Runs on an attached CPU. No fallback to another node: placement
 * is explicit.
 */
struct page *alloc_pages_node(int node, unsigned int order);

static __always_inline struct page *alloc_pages(unsigned int order)
{
	return alloc_pages_node(NUMA_NO_NODE, order);
}

/*
 * Up to NR pages of order 0, with one reference each, into PAGES; how many. The CPU's lists are
 * locked once for all of them. Fewer than NR if memory is short, and then at least one if there is
 * any. NODE and the rest as for alloc_pages_node(). Kernel: alloc_pages_bulk_array_node(), 6.12.
 */
unsigned int alloc_pages_bulk_node(int node, unsigned int nr, struct page **pages);

/* The counters of one node since page_alloc_init(), summed over CPUs. No CPU may be in the allocator. */
struct zone_stats {
	u64 pgalloc, pgfree; /* pages */
	u64 pcp_alloc_hits; /* blocks served from a CPU's own list */
	u64 pcp_refills, pcp_drains; /* trips between a CPU's lists and the zone */
	u64 zone_locks; /* times the zone lock was taken */
	u64 splits, merges; /* of buddy blocks */
	size_t nr_free; /* pages in the buddy allocator */
	size_t nr_pcp; /* pages on CPUs' lists */
	size_t nr_pages; /* of the zone */
};
void zone_stats(unsigned int node, struct zone_stats *out);

/* The free blocks of exactly ORDER in NODE's buddy allocator, by walking the list. No CPU may be in the allocator. */
size_t zone_nr_free_blocks(unsigned int node, unsigned int order);

/* Returns the calling CPU's lists to the zones. */
void drain_local_pages(void);

/*
 * What the page memory lies on at this moment: "hugetlb", "thp" (all of it), "mixed" (part of it in transparent huge
 * pages), "4k", "unknown" (the kernel does not tell), "none" before page_alloc_init(). Reads /proc: not for timed code.
 */
const char *page_alloc_backing(void);

/*
 * After the fact: how many of the 4 KB of NODE's pages, and of their struct pages, lie on another node of the machine; 0:
 * all are where they were asked for. A negative errno: this kernel does not tell. Some ms: not for timed code.
 */
long page_alloc_misplaced(unsigned int node);

/* Calls FN with NODE's pages, and with their struct pages. */
void page_alloc_walk(unsigned int node, mem_range_fn fn, void *ctx);

/* True if each zone is bound to its node. */
bool page_alloc_bound(void);

#endif
