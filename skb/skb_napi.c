/* SPDX-License-Identifier: MIT */
#include "skb/skb_napi.h"
#include "skb/skb_head.h"

/* A CPU's own: shells that are free, and the block that heads between 1 KB and a page come from. */
struct napi_alloc_cache {
	unsigned int skb_count;
	struct sk_buff *skb_cache[NAPI_SKB_CACHE_SIZE];
	struct page_frag_cache page;
} ____cacheline_aligned;

static struct napi_alloc_cache napi_alloc_cache[SKB_NR_CPUS];

static __always_inline struct napi_alloc_cache *this_cache(void)
{
	return &napi_alloc_cache[smp_processor_id()];
}

/* A shell from the slab, with a note of where it has to go back to. NULL: none. */
static struct sk_buff *shell_from_slab(void)
{
	unsigned int nid = numa_node_id();
	struct sk_buff *skb;

	if (skb_fail(SKB_SITE_SHELL))
		return NULL;
	skb = shell_alloc(sizeof(struct sk_buff_shell), nid);
	if (likely(skb))
		container_of(skb, struct sk_buff_shell, skb)->nid = nid;
	return skb;
}

static __always_inline void shell_to_slab(struct sk_buff *skb)
{
	shell_free(skb, sizeof(struct sk_buff_shell),
		   container_of(skb, struct sk_buff_shell, skb)->nid);
}

static void refill(struct napi_alloc_cache *nc)
{
	struct sk_buff *skb;

	while (nc->skb_count < NAPI_SKB_CACHE_BULK && (skb = shell_from_slab()))
		nc->skb_cache[nc->skb_count++] = skb;
}

static __always_inline struct sk_buff *napi_skb_cache_get(const enum skb_era era)
{
	struct napi_alloc_cache *nc = this_cache();

	if (era < ERA_6_1)
		return shell_from_slab();
	if (unlikely(!nc->skb_count)) {
		refill(nc);
		if (unlikely(!nc->skb_count))
			return NULL;
	}
	return nc->skb_cache[--nc->skb_count];
}

/* The upper half goes back. */
static void half_to_slab(struct napi_alloc_cache *nc)
{
	for (unsigned int i = NAPI_SKB_CACHE_HALF; i < NAPI_SKB_CACHE_SIZE; i++)
		shell_to_slab(nc->skb_cache[i]);
	nc->skb_count = NAPI_SKB_CACHE_HALF;
}

static __always_inline void napi_skb_cache_put(struct sk_buff *skb, const enum skb_era era)
{
	struct napi_alloc_cache *nc = this_cache();

	if (era < ERA_6_1) {
		shell_to_slab(skb);
		return;
	}
	nc->skb_cache[nc->skb_count++] = skb;
	if (unlikely(nc->skb_count == NAPI_SKB_CACHE_SIZE))
		half_to_slab(nc);
}

static __always_inline struct sk_buff *do_napi_build_skb(void *data, unsigned int frag_size,
							 const enum skb_era era)
{
	struct sk_buff *skb;

	BUG_ON(frag_size < SKB_SHINFO_SIZE);
	skb = napi_skb_cache_get(era);
	if (unlikely(!skb))
		return NULL;
	skb_init(skb, data, SKB_WITH_OVERHEAD(frag_size));
	skb->head_frag = 1;
	return skb;
}

/* The head is an object. */
static __always_inline struct sk_buff *alloc_with_object(unsigned int len, const enum skb_era era)
{
	unsigned int nid = numa_node_id();
	struct sk_buff *skb = napi_skb_cache_get(era);
	unsigned char *data;
	u32 object;

	if (unlikely(!skb))
		return NULL;
	data = kmalloc_reserve(&len, &object, nid, era);
	if (unlikely(!data)) {
		napi_skb_cache_put(skb, era);
		return NULL;
	}
	skb_init(skb, data, len);
	skb->headers.head_size = object;
	skb->headers.head_nid = nid;
	return skb;
}

static __always_inline struct sk_buff *alloc_with_frag(unsigned int len, const enum skb_era era)
{
	unsigned int size = SKB_HEAD_ALIGN(len);
	void *data = page_frag_alloc_align(&this_cache()->page, size, SMP_CACHE_BYTES);
	struct sk_buff *skb;

	if (unlikely(!data))
		return NULL;
	skb = do_napi_build_skb(data, size, era);
	if (unlikely(!skb))
		page_frag_free(data);
	return skb;
}

static __always_inline struct sk_buff *do_napi_alloc_skb(unsigned int len, const enum skb_era era)
{
	struct sk_buff *skb;

	len += NET_SKB_PAD;
	/* With many frags the shared info alone is more than 1 KB. */
	if (len + SKB_SHINFO_SIZE <= 1024 || len + SKB_SHINFO_SIZE > PAGE_SIZE)
		skb = alloc_with_object(len, era);
	else
		skb = alloc_with_frag(len, era);
	if (likely(skb))
		skb_reserve(skb, NET_SKB_PAD);
	return skb;
}

static __always_inline void do_kfree_skb_napi_cache(struct sk_buff *skb, const enum skb_era era)
{
	if (unlikely(skb->fclone != SKB_FCLONE_UNAVAILABLE)) {
		__kfree_skb(era, skb);
		return;
	}
	if (skb->destructor)
		skb->destructor(skb);
	skb_release_data(era, skb);
	napi_skb_cache_put(skb, era);
}

#define INSTANTIATE(suffix, era)                                                    \
	struct sk_buff *napi_build_skb_##suffix(void *data, unsigned int frag_size) \
	{                                                                           \
		return do_napi_build_skb(data, frag_size, era);                     \
	}                                                                           \
	struct sk_buff *napi_alloc_skb_##suffix(unsigned int len)                   \
	{                                                                           \
		return do_napi_alloc_skb(len, era);                                 \
	}                                                                           \
	void kfree_skb_napi_cache_##suffix(struct sk_buff *skb)                     \
	{                                                                           \
		do_kfree_skb_napi_cache(skb, era);                                  \
	}                                                                           \
	void napi_consume_skb_##suffix(struct sk_buff *skb, int budget)             \
	{                                                                           \
		if (!skb_unref(skb))                                                \
			return;                                                     \
		if (unlikely(!budget))                                              \
			__kfree_skb(era, skb);                                      \
		else                                                                \
			do_kfree_skb_napi_cache(skb, era);                          \
	}                                                                           \
	void napi_skb_free_stolen_head_##suffix(struct sk_buff *skb)                \
	{                                                                           \
		if (skb->destructor)                                                \
			skb->destructor(skb);                                       \
		napi_skb_cache_put(skb, era);                                       \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)

unsigned int napi_skb_cache_count(void)
{
	return this_cache()->skb_count;
}

void napi_cache_drain(void)
{
	struct napi_alloc_cache *nc = this_cache();

	while (nc->skb_count)
		shell_to_slab(nc->skb_cache[--nc->skb_count]);
	page_frag_cache_drain(&nc->page);
}
