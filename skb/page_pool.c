/* SPDX-License-Identifier: MIT */
#include "skb/page_pool.h"

#include <errno.h>

/* --- pages in and out of a pool */

static void page_pool_set_pp_info(struct page_pool *pool, struct page *page)
{
	page->pp = pool;
	skb_store(&page->pp_magic, PP_SIGNATURE, SKB_C_PAGE);
	atomic_long_set(&page->pp_ref_count, 1, SKB_C_PAGE);
	pool->pages_state_hold_cnt++;
}

/* PAGE leaves the pool for ever; others may hold it. */
static void page_pool_return_page(struct page_pool *pool, struct page *page)
{
	skb_store(&page->pp_magic, 0UL, SKB_C_PAGE);
	page->pp = NULL;
	atomic_inc(&pool->pages_state_release_cnt, SKB_C_PAGE);
	put_page(page);
}

/* True if nobody but the pool holds PAGE. Acquire: what others did with it is over. */
static __always_inline bool page_pool_alone(const struct page *page)
{
	return atomic_read_acquire(&page->_refcount, SKB_C_PAGE) == 1;
}

/* Drops NR pool references; true if they were the last. The count is 1 then, as at rest. */
static __always_inline bool page_pool_unref_page(struct page *page, long nr)
{
	/* Acquire: whoever dropped the others has used the page. Pairs with the sub_return. */
	if (atomic_long_read_acquire(&page->pp_ref_count, SKB_C_PAGE) == nr) {
		if (nr != 1)
			atomic_long_set(&page->pp_ref_count, 1, SKB_C_PAGE);
		return true;
	}
	if (atomic_long_sub_return(nr, &page->pp_ref_count, SKB_C_PAGE))
		return false;
	atomic_long_set(&page->pp_ref_count, 1, SKB_C_PAGE);
	return true;
}

/* --- allocating */

/* The last page of the cache after a refill from the ring; NULL if nothing came of it. */
static struct page *page_pool_refill_alloc_cache(struct page_pool *pool)
{
	unsigned int nid = pool->p.nid == NUMA_NO_NODE ? numa_node_id() : (unsigned int)pool->p.nid;

	if (__ptr_ring_empty(&pool->ring)) {
		pool->alloc_stats.empty++;
		return NULL;
	}
	do {
		struct page *page = __ptr_ring_consume(&pool->ring);

		if (!page)
			break;
		if (unlikely(page_to_nid(page) != nid)) {
			/* One is enough a time: the rest may be of the right node again. */
			page_pool_return_page(pool, page);
			pool->alloc_stats.waive++;
			break;
		}
		pool->alloc.cache[pool->alloc.count++] = page;
	} while (pool->alloc.count < PP_ALLOC_CACHE_REFILL);

	if (!pool->alloc.count)
		return NULL;
	pool->alloc_stats.refill++;
	return pool->alloc.cache[--pool->alloc.count];
}

static struct page *page_pool_alloc_pages_slow(struct page_pool *pool)
{
	unsigned int nr;

	if (pool->p.order) {
		struct page *page = alloc_pages_node(pool->p.nid, pool->p.order);

		if (unlikely(!page))
			return NULL;
		pool->alloc_stats.slow_high_order++;
		page_pool_set_pp_info(pool, page);
		return page;
	}
	nr = alloc_pages_bulk_node(pool->p.nid, PP_ALLOC_CACHE_REFILL, pool->alloc.cache);
	if (unlikely(!nr))
		return NULL;
	for (unsigned int i = 0; i < nr; i++)
		page_pool_set_pp_info(pool, pool->alloc.cache[i]);
	pool->alloc_stats.slow++;
	pool->alloc.count = nr - 1;
	return pool->alloc.cache[nr - 1];
}

static __always_inline struct page *page_pool_get_cached(struct page_pool *pool)
{
	if (likely(pool->alloc.count)) {
		pool->alloc_stats.fast++;
		return pool->alloc.cache[--pool->alloc.count];
	}
	return page_pool_refill_alloc_cache(pool);
}

struct page *page_pool_alloc_pages(struct page_pool *pool)
{
	struct page *page = page_pool_get_cached(pool);

	return likely(page) ? page : page_pool_alloc_pages_slow(pool);
}

/* --- fragments */

/* The block that fragments were cut from, if it may be cut anew; else its users have it. */
static struct page *page_pool_drain_frag(struct page_pool *pool, struct page *page)
{
	if (likely(!page_pool_unref_page(page, PP_BIAS_MAX - pool->frag_users)))
		return NULL;
	if (page_pool_alone(page))
		return page;
	page_pool_return_page(pool, page);
	return NULL;
}

struct page *page_pool_alloc_frag(struct page_pool *pool, unsigned int *offset, unsigned int size)
{
	unsigned int block = PAGE_SIZE << pool->p.order;
	struct page *page = pool->frag_page;

	BUG_ON(!size || size > block);
	if (page && pool->frag_offset + size > block) {
		page = page_pool_drain_frag(pool, page);
		if (page)
			pool->alloc_stats.fast++;
		pool->frag_page = NULL;
	} else if (page) {
		*offset = pool->frag_offset;
		pool->frag_offset += size;
		pool->frag_users++;
		pool->alloc_stats.fast++;
		return page;
	}
	if (!page)
		page = page_pool_alloc_pages(pool);
	if (unlikely(!page))
		return NULL;
	/* Nobody else has it. */
	atomic_long_set(&page->pp_ref_count, PP_BIAS_MAX, SKB_C_PAGE);
	pool->frag_page = page;
	pool->frag_users = 1;
	pool->frag_offset = size;
	*offset = 0;
	return page;
}

/* --- putting */

static __always_inline struct page_pool_recycle_stats *this_cpu_stats(struct page_pool *pool)
{
	return &pool->recycle_stats[smp_processor_id()];
}

static __always_inline bool page_pool_recycle_in_cache(struct page_pool *pool, struct page *page)
{
	if (unlikely(pool->alloc.count == PP_ALLOC_CACHE_SIZE)) {
		this_cpu_stats(pool)->cache_full++;
		return false;
	}
	pool->alloc.cache[pool->alloc.count++] = page;
	this_cpu_stats(pool)->cached++;
	return true;
}

/* The last pool reference on PAGE is gone. LOCAL: the cache is the caller's. */
static __always_inline void page_pool_put_last(struct page_pool *pool, struct page *page,
					       bool local)
{
	if (unlikely(!page_pool_alone(page))) {
		this_cpu_stats(pool)->released_refcnt++;
		page_pool_return_page(pool, page);
		return;
	}
	if (local && page_pool_recycle_in_cache(pool, page))
		return;
	if (likely(ptr_ring_produce(&pool->ring, page))) {
		this_cpu_stats(pool)->ring++;
		return;
	}
	this_cpu_stats(pool)->ring_full++;
	page_pool_return_page(pool, page);
}

void page_pool_put_page(struct page_pool *pool, struct page *page, bool allow_direct)
{
	if (page_pool_unref_page(page, 1))
		page_pool_put_last(pool, page, allow_direct || page_pool_napi_local(pool));
}

static __always_inline bool do_napi_pp_put_page(struct page *page, const enum skb_era era)
{
	struct page *head = compound_head(page);
	struct page_pool *pool;

	if (unlikely(!is_pp_page(head)))
		return false;
	pool = head->pp;
	if (page_pool_unref_page(head, 1))
		page_pool_put_last(pool, head, era >= ERA_6_12 && page_pool_napi_local(pool));
	return true;
}

bool napi_pp_put_page_6_1(struct page *page)
{
	return do_napi_pp_put_page(page, ERA_6_1);
}

bool napi_pp_put_page_6_12(struct page *page)
{
	return do_napi_pp_put_page(page, ERA_6_12);
}

/* --- a pool's life */

int page_pool_create(const struct page_pool_params *params, struct page_pool **pool)
{
	unsigned int size = params->pool_size ? params->pool_size : PP_RING_DEFAULT;
	unsigned int node =
		params->nid == NUMA_NO_NODE ? numa_node_id() : (unsigned int)params->nid;
	struct page_pool *new;
	void **queue;

	if (params->order > PCP_MAX_ORDER)
		return -EINVAL;
	if (size > PP_RING_MAX)
		return -E2BIG;
	new = mem_zalloc(MEM_POOL, node, sizeof(*new));
	queue = mem_zalloc(MEM_POOL, node, size * sizeof(void *));
	if (!new || !queue) {
		mem_free(queue);
		mem_free(new);
		return -ENOMEM;
	}
	ptr_ring_init_at(&new->ring, queue, (int)size);
	new->p = *params;
	new->p.nid = page_alloc_pool_nid(params->nid);
	new->list_owner = SKB_NO_CPU;
	*pool = new;
	return 0;
}

s32 page_pool_inflight(const struct page_pool *pool)
{
	u32 held = pool->pages_state_hold_cnt;

	return (s32)(held - (u32)atomic_read(&pool->pages_state_release_cnt, SKB_C_PAGE));
}

struct page_pool_recycle_stats page_pool_recycled(const struct page_pool *pool)
{
	struct page_pool_recycle_stats sum = { 0 };

	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++) {
		const struct page_pool_recycle_stats *s = &pool->recycle_stats[cpu];

		sum.cached += s->cached;
		sum.cache_full += s->cache_full;
		sum.ring += s->ring;
		sum.ring_full += s->ring_full;
		sum.released_refcnt += s->released_refcnt;
	}
	return sum;
}

s32 page_pool_destroy(struct page_pool *pool)
{
	struct page *page = pool->frag_page;
	s32 inflight;

	page_pool_poll_end(pool);
	pool->frag_page = NULL;
	if (page && page_pool_unref_page(page, PP_BIAS_MAX - pool->frag_users))
		page_pool_return_page(pool, page);
	while (pool->alloc.count)
		page_pool_return_page(pool, pool->alloc.cache[--pool->alloc.count]);
	while ((page = ptr_ring_consume(&pool->ring)))
		page_pool_return_page(pool, page);

	inflight = page_pool_inflight(pool);
	BUG_ON(inflight < 0);
	if (!inflight) {
		mem_free(pool->ring.queue);
		mem_free(pool);
	}
	return inflight;
}
