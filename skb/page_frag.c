/* SPDX-License-Identifier: MIT */
#include "skb/page_frag.h"

/* References that a page_frag_cache takes at once, beside the one that came with the block. */
#define BIAS_MAX PAGE_FRAG_CACHE_MAX_SIZE

bool skb_page_frag_refill(unsigned int sz, struct page_frag *pfrag, unsigned int order, int node)
{
	struct page *page = pfrag->page;

	if (page) {
		/* The last owner but us has put its reference: what it read from the block must be over. */
		if (atomic_read_acquire(&page->_refcount, SKB_C_PAGE) == 1) {
			pfrag->offset = 0;
			return true;
		}
		if (pfrag->offset + sz <= pfrag->size)
			return true;
		put_page(page);
	}

	pfrag->offset = 0;
	page = NULL;
	if (order)
		page = alloc_pages_node(node, order);
	if (unlikely(!page)) {
		order = 0;
		page = alloc_pages_node(node, 0);
	}
	pfrag->page = page;
	pfrag->size = page ? PAGE_SIZE << order : 0;
	return page;
}

/* An empty cache gets a block and its references; NULL if no block is to be had. */
static struct page *page_frag_cache_refill(struct page_frag_cache *nc)
{
	unsigned int order = PAGE_FRAG_CACHE_MAX_ORDER;
	struct page *page = alloc_pages(order);

	if (unlikely(!page && order)) {
		order = 0;
		page = alloc_pages(0);
	}
	if (unlikely(!page)) {
		nc->va = NULL;
		return NULL;
	}
	nc->va = page_address(page);
	nc->size = PAGE_SIZE << order;
	nc->offset = nc->size;
	/* Added, not set: somebody may look the block up by its address and hold a passing reference. */
	page_ref_add(page, BIAS_MAX);
	nc->pagecnt_bias = BIAS_MAX + 1;
	return page;
}

void *page_frag_alloc_align(struct page_frag_cache *nc, unsigned int fragsz, unsigned int align_sz)
{
	struct page *page;

	if (unlikely(!nc->va) && !page_frag_cache_refill(nc))
		return NULL;
	if (unlikely(fragsz > nc->offset)) {
		page = virt_to_page(nc->va);
		if (!page_ref_sub_and_test(page, nc->pagecnt_bias)) {
			/* The fragments that are out free the block. */
			if (!page_frag_cache_refill(nc))
				return NULL;
		} else {
			/* All of them have come back: the block is ours, to be used again in place. */
			set_page_count(page, BIAS_MAX + 1);
			nc->pagecnt_bias = BIAS_MAX + 1;
			nc->offset = nc->size;
		}
		if (unlikely(fragsz > nc->offset))
			return NULL;
	}
	nc->pagecnt_bias--;
	nc->offset = (nc->offset - fragsz) & ~(align_sz - 1);
	return (char *)nc->va + nc->offset;
}

void page_frag_free(void *addr)
{
	put_page(virt_to_page(addr));
}

void page_frag_cache_drain(struct page_frag_cache *nc)
{
	struct page *page;

	if (!nc->va)
		return;
	page = virt_to_page(nc->va);
	if (page_ref_sub_and_test(page, nc->pagecnt_bias))
		__put_page(page);
	nc->va = NULL;
}
