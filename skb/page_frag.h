/* SPDX-License-Identifier: MIT */
/*
 * Fragments of pages: the transmit side's page_frag, and the receive side's page_frag_cache with its bias.
 *
 * Kernel: skb_page_frag_refill() in net/core/sock.c and mm/page_frag_cache.c, 6.12 (fragments are carved downward from
 * the end of the block, as up to 6.12).
 *
 * A page_frag and a page_frag_cache belong to one CPU at a time; no two functions below may run on one at once.
 */
#ifndef SKB_PAGE_FRAG_H
#define SKB_PAGE_FRAG_H

#include "skb/page_alloc.h"

/* get_order(32768): 3 with 4 KB pages. */
#define SKB_FRAG_PAGE_ORDER (PAGE_SHIFT < 15 ? 15 - PAGE_SHIFT : 0)

/* Holds exactly one reference on PAGE, or NULL. */
struct page_frag {
	struct page *page;
	u32 offset; /* bytes already handed out */
	u32 size; /* bytes of the block */
};

/*
 * Makes room for SZ bytes (at most PAGE_SIZE) at pfrag->offset. A page that only PFRAG holds is used again from its
 * start; one without room is put; then a block of ORDER is tried, and an order-0 page if that fails. ORDER is
 * SKB_FRAG_PAGE_ORDER, or 0 where high-order allocations are switched off (or did not exist: up to 3.6). NODE as for
 * alloc_pages_node(). False if no page is to be had: then pfrag->page is NULL and its former reference is dropped.
 */
bool skb_page_frag_refill(unsigned int sz, struct page_frag *pfrag, unsigned int order, int node);

#define PAGE_FRAG_CACHE_MAX_SIZE  (PAGE_SHIFT < 15 ? 32768 : 1 << PAGE_SHIFT)
#define PAGE_FRAG_CACHE_MAX_ORDER SKB_FRAG_PAGE_ORDER

/* All zeroes is the empty state. */
struct page_frag_cache {
	void *va; /* of the block, or NULL */
#if PAGE_SHIFT < 15
	u16 offset; /* bytes still to be handed out lie below */
	u16 size;
#else
	u32 offset;
	u32 size;
#endif
	u32 pagecnt_bias; /* references that are NC's own */
};

/*
 * FRAGSZ bytes (at least 1) aligned to ALIGN_SZ (a power of two, at most PAGE_SIZE) from NC, one reference of its block
 * with them. NULL when no block is to be had (NC is empty then) or FRAGSZ is larger than the block (an order-0 one if
 * memory was short; NC keeps it). One RMW a block and one when it is used up, none a fragment. While NC holds a block:
 * page_count == pagecnt_bias + fragments out.
 */
void *page_frag_alloc_align(struct page_frag_cache *nc, unsigned int fragsz, unsigned int align_sz);

/* Drops the reference that came with ADDR; the last one frees the block. Any CPU. */
void page_frag_free(void *addr);

/* Drops NC's own references; fragments out stay valid. */
void page_frag_cache_drain(struct page_frag_cache *nc);

#endif
