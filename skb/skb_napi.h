/* SPDX-License-Identifier: MIT */
/*
 * sk_buffs on the receive path: shells from a cache that each CPU keeps, heads from fragments.
 *
 * Kernel: struct napi_alloc_cache, napi_build_skb(), napi_alloc_skb(), napi_consume_skb(),
 * napi_skb_free_stolen_head() in net/core/skbuff.c. A CPU keeps up to NAPI_SKB_CACHE_SIZE shells: a
 * refill takes NAPI_SKB_CACHE_BULK from the slab, and when the cache is full half of it goes back
 * (5.12 and later; era 3.4 goes to the slab each time). The shells rode no particular node: what
 * was freed here is used here.
 *
 *   Everything below works on the calling CPU's cache and is for its softirq alone: two CPUs never
 * meet here.
 *
 * Left out: emergency reserves; the cache of 1 KB heads that 6.1 to 6.13 cut from order-0 pages
 * (page_frag_1k), whose heads would cost one put more each: heads up to 1 KB come from the slab, as
 * before 6.1 and since 6.14.
 */
#ifndef SKB_SKB_NAPI_H
#define SKB_SKB_NAPI_H

#include "skb/skbuff.h"

#define NAPI_SKB_CACHE_SIZE 64
#define NAPI_SKB_CACHE_BULK 16
#define NAPI_SKB_CACHE_HALF (NAPI_SKB_CACHE_SIZE / 2)

SKB_ERA_DECLARE(struct sk_buff *, napi_build_skb, void *data, unsigned int frag_size);
SKB_ERA_DECLARE(struct sk_buff *, napi_alloc_skb, unsigned int len);
SKB_ERA_DECLARE(void, napi_consume_skb, struct sk_buff *skb, int budget);
SKB_ERA_DECLARE(void, kfree_skb_napi_cache, struct sk_buff *skb);
SKB_ERA_DECLARE(void, napi_skb_free_stolen_head, struct sk_buff *skb);

/* build_skb() with a shell from the CPU's cache. NULL: none is to be had, DATA stays the caller's.
 */
static __always_inline struct sk_buff *napi_build_skb(const enum skb_era era, void *data,
						      unsigned int frag_size)
{
	return SKB_ERA_CALL(era, napi_build_skb, data, frag_size);
}

/*
 * An empty sk_buff with room for LEN linear bytes behind NET_SKB_PAD bytes of headroom. Up to 1 KB
 * and beyond a page the head is an object, between the two a fragment of the CPU's page
 * (head_frag). NULL if memory is short; nothing is leaked.
 */
static __always_inline struct sk_buff *napi_alloc_skb(const enum skb_era era, unsigned int len)
{
	return SKB_ERA_CALL(era, napi_alloc_skb, len);
}

/*
 * Drops one hold on SKB in a softirq that has BUDGET packets to go; the last one frees it, and its
 * shell goes into the CPU's cache unless it is half of a pair. BUDGET 0, which is netpoll's, is
 * consume_skb(). NULL: nothing happens.
 */
static __always_inline void napi_consume_skb(const enum skb_era era, struct sk_buff *skb,
					     int budget)
{
	SKB_ERA_CALL(era, napi_consume_skb, skb, budget);
}

/* Frees SKB, of which the caller is the last holder; the shell as napi_consume_skb() does. */
static __always_inline void kfree_skb_napi_cache(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, kfree_skb_napi_cache, skb);
}

/* Frees the shell of SKB, whose head is somebody else's frag now; no page and no head is touched.
 */
static __always_inline void napi_skb_free_stolen_head(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, napi_skb_free_stolen_head, skb);
}

/* Shells in the calling CPU's cache. */
unsigned int napi_skb_cache_count(void);

/* Gives the calling CPU's shells and its page back; what was allocated from them stays valid. */
void napi_cache_drain(void);

#endif
