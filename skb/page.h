/* SPDX-License-Identifier: MIT */
/*
 * struct page and its reference count.
 *
 * Kernel: include/linux/mm_types.h, page_ref.h and mm.h, 6.12. A block of 2^k pages that is allocated compound has one
 * head and 2^k - 1 tails; only the head's count lives, and a pointer to a tail is mapped to the head first (one more
 * dependent load, no RMW).
 *
 *               get_page  put_page  page_ref_add
 * get_page          -         -          -         -: safe on any CPUs at once, as long as each caller of get_page
 * put_page          -         -          -            and page_ref_add already owns a reference
 * page_ref_add      -         -          -
 */
#ifndef SKB_PAGE_H
#define SKB_PAGE_H

#include "skb/atomic.h"

#ifndef SKB_PAGE_SHIFT
#define SKB_PAGE_SHIFT 12
#endif
#define PAGE_SHIFT SKB_PAGE_SHIFT
#define PAGE_SIZE  (1UL << PAGE_SHIFT)

/* One cache line, as the kernel's; the offsets are 6.18's. */
struct page {
	unsigned long flags; /* PG_* and the node in the top byte */
	union {
		struct { /* in the buddy allocator or on a CPU's list */
			struct page *lru_next;
			struct page *lru_prev;
			unsigned long private; /* the block's order */
		};
		struct { /* owned by a page_pool */
			unsigned long pp_magic;
			void *pp;
			unsigned long pp_pad;
			unsigned long dma_addr;
			atomic_long_t pp_ref_count;
		};
		struct {
			unsigned long compound_head; /* of a tail: the head, plus 1 */
			unsigned long compound_order; /* of a head's first tail */
		};
	};
	atomic_t _mapcount; /* -1: not mapped */
	atomic_t _refcount;
	unsigned long memcg_data;
} ____cacheline_aligned;

_Static_assert(sizeof(struct page) == 64, "struct page is one cache line");
_Static_assert(offsetof(struct page, compound_head) == 8, "compound_head at 8");
_Static_assert(offsetof(struct page, pp_ref_count) == 40, "pp_ref_count at 40");
_Static_assert(offsetof(struct page, _refcount) == 52, "_refcount at 52");

#define PG_head		       (1UL << 0)
#define PG_buddy	       (1UL << 1) /* free, in the buddy allocator */
#define PG_pcp		       (1UL << 2) /* free, on a CPU's list */
#define PG_FLAGS_CHECK_AT_FREE (PG_buddy | PG_pcp)
#define PG_NODE_SHIFT	       56

static __always_inline unsigned int page_to_nid(const struct page *page)
{
	return page->flags >> PG_NODE_SHIFT;
}

static __always_inline struct page *compound_head(const struct page *page)
{
	unsigned long head = skb_load(&page->compound_head, SKB_C_PAGE);

	return head & 1 ? (struct page *)(head - 1) : (struct page *)page;
}

static __always_inline unsigned int compound_order(const struct page *head)
{
	return head->flags & PG_head ? head[1].compound_order : 0;
}

static __always_inline int page_count(const struct page *page)
{
	return atomic_read(&compound_head(page)->_refcount, SKB_C_PAGE);
}

/* Only for the sole owner of the block. */
static __always_inline void set_page_count(struct page *head, int n)
{
	atomic_set(&head->_refcount, n, SKB_C_PAGE);
}

/* N references more on HEAD, in one RMW; the caller owns one and knows that it has the head. */
static __always_inline void page_ref_add(struct page *head, int n)
{
	skb_event(SKB_EV_PAGE_GET, head, n);
	atomic_add(n, &head->_refcount, SKB_C_PAGE);
}

static __always_inline void page_ref_inc(struct page *head)
{
	skb_event(SKB_EV_PAGE_GET, head, 1);
	atomic_inc(&head->_refcount, SKB_C_PAGE);
}

/* N references less on HEAD; true if they were the last, and then the caller owns the block. */
static __always_inline bool page_ref_sub_and_test(struct page *head, int n)
{
	skb_event(SKB_EV_PAGE_PUT, head, n);
	return atomic_sub_and_test(n, &head->_refcount, SKB_C_PAGE);
}

/* One reference more on PAGE's block; PAGE may be a tail; the caller owns a reference. */
static __always_inline void get_page(struct page *page)
{
	page_ref_inc(compound_head(page));
}

/* Frees a block whose last reference is gone. page_alloc.c. */
void __put_page(struct page *head);

/* Drops one reference on PAGE's block; the last one gives it back to the page allocator on this CPU. */
static __always_inline void put_page(struct page *page)
{
	struct page *head = compound_head(page);

	if (page_ref_sub_and_test(head, 1))
		__put_page(head);
}

#endif
