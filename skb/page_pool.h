/* SPDX-License-Identifier: MIT */
/*
 * page_pool: the pages of one receive queue, which come back to it from wherever they are let go of.
 *
 * Kernel: net/core/page_pool.c, 6.12. A pool has an owner, the CPU that polls its queue, and only
 * while it polls (page_pool_poll_begin() to page_pool_poll_end(): the kernel's napi->list_owner).
 * The owner allocates from a cache that nobody else touches; what others let go of comes through a
 * ring (ptr_ring.h).
 *
 *                          alloc  poll_begin, _end  put by the owner  put by others  ref  destroy
 *   alloc, alloc_frag        X           X                 X                -         -      X
 *   poll_begin, poll_end     X           X                 X                -         -      X
 *   put by the owner         X           X                 X                -         -      X
 *   put by others            -           -                 -                -         -      -
 *   page_pool_ref_page       -           -                 -                -         -      -
 *   page_pool_destroy        X           X                 X                -         -      X
 *
 *   X: the caller serialises.  -: safe on two CPUs at once.  "By the owner" is a put on the CPU that
 * polls now, direct or not: it may reach the cache. Each put and page_pool_ref_page() is by somebody
 * who owns a reference to the pool's page.
 *
 * A page of a pool carries two counts. pp_ref_count is of those who know that it is a pool's and
 * will put it there; _refcount of everybody else, and of the pool itself: 1. It goes back into the
 * pool with the last of the first kind, if then nobody of the second kind is left; else it is out of
 * the pool for ever, and the last of them frees it. At rest, in the cache or the ring, both are 1.
 *
 *   alloc   from the cache        no RMW                       stats.fast
 *           ring to cache         no RMW; up to 64 pages       stats.refill. One page of another
 *                                                              node at most is let go of: stats.waive
 *           page allocator        64 pages under one lock      stats.slow (slow_high_order: one block)
 *   put     not the last one      1 RMW on pp_ref_count
 *           by the owner          no RMW, into the cache       stats.cached; cache_full: as by others
 *           by others             1 RMW, the ring's lock       stats.ring
 *           the ring is full      that, and 2 RMW              stats.ring_full: out of the pool
 *           _refcount is not 1    2 RMW                        stats.released_refcnt: out of the pool
 *
 * The 2 RMW are the count of pages that left the pool, and the reference that the pool had. RMW on
 * either count of the pool are of class SKB_C_PAGE.
 *
 * Eras: the rules are 6.12's. In 6.1 a pool without fragments does not look at pp_ref_count, which
 * is 1 then; and an sk_buff's release never reaches the cache (napi_pp_put_page()). 3.4 has none.
 * Left out: DMA mapping and syncing, pages of emergency reserves, XDP, memory providers, limits on
 * what is in flight.
 */
#ifndef SKB_PAGE_POOL_H
#define SKB_PAGE_POOL_H

#include "skb/era.h"
#include "skb/page_alloc.h"
#include "skb/ptr_ring.h"

#define PP_ALLOC_CACHE_SIZE   128
#define PP_ALLOC_CACHE_REFILL 64
#define PP_RING_DEFAULT	      1024
#define PP_RING_MAX	      16384

/* In page->pp_magic, where the page allocator keeps pointers; the two low bits are others' business. */
#define PP_SIGNATURE (0xdead000000000000UL + 0x40)

/* What a page that is cut into fragments starts with; each fragment that is out is one of them. */
#define PP_BIAS_MAX (__LONG_MAX__ >> 1)

struct page_pool_params {
	unsigned int order; /* 2^order pages a block */
	unsigned int pool_size; /* slots of the ring; 0: PP_RING_DEFAULT */
	int nid; /* whose pages; NUMA_NO_NODE: the node of the CPU that allocates, or, where pools have nodes of their
		  * own (skb/node_mem.h), that of the CPU that creates the pool */
};

/* The owner's. */
struct page_pool_alloc_stats {
	u64 fast, slow, slow_high_order, empty, refill, waive;
};

/* Each CPU's. */
struct page_pool_recycle_stats {
	u64 cached, cache_full, ring, ring_full, released_refcnt;
} ____cacheline_aligned;

struct page_pool {
	/* Read by all, written by poll_begin and poll_end. */
	struct page_pool_params p;
	unsigned int list_owner; /* the CPU that polls now, or SKB_NO_CPU */

	/* The owner's, as are the next two groups. */
	struct page *frag_page ____cacheline_aligned; /* that fragments are cut from */
	unsigned int frag_offset; /* bytes of it that are out */
	long frag_users;
	u32 pages_state_hold_cnt; /* pages that ever came into the pool, modulo 2^32 */
	struct page_pool_alloc_stats alloc_stats;

	struct {
		u32 count;
		struct page *cache[PP_ALLOC_CACHE_SIZE];
	} alloc ____cacheline_aligned;

	struct ptr_ring ring;

	atomic_t pages_state_release_cnt ____cacheline_aligned; /* pages that left it */

	struct page_pool_recycle_stats recycle_stats[SKB_NR_CPUS];
};

/*
 * A pool without pages and without an owner in *POOL, which lies where MEM_POOL of its node is to lie. 0; -EINVAL for an order beyond PCP_MAX_ORDER;
 * -E2BIG for a ring beyond PP_RING_MAX slots; -ENOMEM. On an error *POOL stays.
 */
int page_pool_create(const struct page_pool_params *params, struct page_pool **pool);

/*
 * No owner any more; all that rests in the pool goes to the page allocator. Returns how many pages
 * are still in flight: 0, and POOL is gone; else it stays for them to come back to, and the caller,
 * as the kernel's delayed work does, tries again later. On an attached CPU.
 */
s32 page_pool_destroy(struct page_pool *pool);

/* Pages that came into the pool and did not leave it, wherever they are. Exact at rest. Any CPU. */
s32 page_pool_inflight(const struct page_pool *pool);

/* The recycling of all CPUs summed up. Exact at rest. */
struct page_pool_recycle_stats page_pool_recycled(const struct page_pool *pool);

/* The calling CPU polls the queue from now on: it owns the pool. */
static __always_inline void page_pool_poll_begin(struct page_pool *pool)
{
	skb_store(&pool->list_owner, smp_processor_id(), SKB_C_OTHER);
}

static __always_inline void page_pool_poll_end(struct page_pool *pool)
{
	skb_store(&pool->list_owner, SKB_NO_CPU, SKB_C_OTHER);
}

/* True on the CPU that polls the pool's queue now. Only that CPU can have stored its own number. */
static __always_inline bool page_pool_napi_local(const struct page_pool *pool)
{
	return skb_load(&pool->list_owner, SKB_C_OTHER) == smp_processor_id();
}

/*
 * A block of the pool with its one pool reference, which goes back by page_pool_put_page() or with
 * an sk_buff that recycles (skb_mark_for_recycle()). NULL if the page allocator has none. Of a bulk
 * that the page allocator gives in part, the rest is kept in the cache. For the owner.
 */
struct page *page_pool_alloc_pages(struct page_pool *pool);

/*
 * SIZE bytes (at most the block's) at *OFFSET of the block that is returned, one pool reference with
 * them. NULL as above. Fragments are cut from the front; a block without room is left to its users,
 * or is used again at once if there are none. One RMW a block, when it is left. For the owner.
 */
struct page *page_pool_alloc_frag(struct page_pool *pool, unsigned int *offset, unsigned int size);

/*
 * Drops one pool reference on PAGE, the head of a block of POOL. ALLOW_DIRECT: the caller is the
 * owner and knows it; otherwise the pool looks whether it is. Any CPU.
 */
void page_pool_put_page(struct page_pool *pool, struct page *page, bool allow_direct);

/* One pool reference more on PAGE, the head of a block of a pool; the caller has one. One RMW. */
static __always_inline void page_pool_ref_page(struct page *page)
{
	atomic_long_add(1, &page->pp_ref_count, SKB_C_PAGE);
}

/* True if HEAD, the head of a block, belongs to a pool. For who owns a reference on it. */
static __always_inline bool is_pp_page(const struct page *head)
{
	return (skb_load(&head->pp_magic, SKB_C_PAGE) & ~3UL) == PP_SIGNATURE;
}

bool napi_pp_put_page_6_1(struct page *page);
bool napi_pp_put_page_6_12(struct page *page);

/*
 * Drops one pool reference on PAGE's block, a tail or not, if it belongs to a pool; false and
 * nothing happens otherwise. What an sk_buff that recycles does with each of its pages. 6.1: into
 * the ring on any CPU; later into the owner's cache, too. Any CPU.
 */
static __always_inline bool napi_pp_put_page(const enum skb_era era, struct page *page)
{
	return era >= ERA_6_12 ? napi_pp_put_page_6_12(page) : napi_pp_put_page_6_1(page);
}

#endif
