/* SPDX-License-Identifier: MIT */
/*
 * Making sk_buffs: __alloc_skb() and build_skb().
 *
 * Kernel: net/core/skbuff.c. The same with a CPU's cache of shells: skb_napi.c. Left out: emergency
 * reserves (pfmemalloc).
 */
#include "skb/skb_head.h"

#include <stdio.h>

static __always_inline struct sk_buff *do_alloc_skb(unsigned int size, bool fclone, int node,
						    const enum skb_era era)
{
	unsigned int nid = skb_node(node);
	size_t shell_size = fclone ? sizeof(struct sk_buff_fclones) : sizeof(struct sk_buff_shell);
	struct sk_buff *skb;
	unsigned char *data;
	u32 object;

	if (skb_fail(fclone ? SKB_SITE_FCLONE : SKB_SITE_SHELL))
		return NULL;
	skb = shell_alloc(shell_size, nid);
	if (unlikely(!skb))
		return NULL;
	data = kmalloc_reserve(&size, &object, nid, era);
	if (unlikely(!data)) {
		shell_free(skb, shell_size, nid);
		return NULL;
	}
	skb_init(skb, data, size);
	skb->headers.head_size = object;
	skb->headers.head_nid = nid;
	if (fclone) {
		struct sk_buff_fclones *f = container_of(skb, struct sk_buff_fclones, skb1);

		skb->fclone = SKB_FCLONE_ORIG;
		f->nid = nid;
		refcount_set(&f->fclone_ref, 1, SKB_C_FCLONE);
	} else {
		container_of(skb, struct sk_buff_shell, skb)->nid = nid;
	}
	return skb;
}

static __always_inline struct sk_buff *do_build_skb(void *data, unsigned int frag_size)
{
	unsigned int nid = numa_node_id();
	struct sk_buff *skb;

	BUG_ON(frag_size < SKB_SHINFO_SIZE);
	if (skb_fail(SKB_SITE_SHELL))
		return NULL;
	skb = shell_alloc(sizeof(struct sk_buff_shell), nid);
	if (unlikely(!skb))
		return NULL;
	container_of(skb, struct sk_buff_shell, skb)->nid = nid;
	skb_init(skb, data, SKB_WITH_OVERHEAD(frag_size));
	skb->head_frag = 1;
	return skb;
}

#define INSTANTIATE(suffix, era)                                                       \
	struct sk_buff *__alloc_skb_##suffix(unsigned int size, bool fclone, int node) \
	{                                                                              \
		return do_alloc_skb(size, fclone, node, era);                          \
	}                                                                              \
	struct sk_buff *build_skb_##suffix(void *data, unsigned int frag_size)         \
	{                                                                              \
		return do_build_skb(data, frag_size);                                  \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)

void *skb_frag_address(const skb_frag_t *frag)
{
	return (char *)page_address(frag->page) + frag->offset;
}

void skb_over_panic(const struct sk_buff *skb, unsigned int n)
{
	char what[120];

	snprintf(what, sizeof(what), "skb_put() of %u bytes at %u: need %u, have %u", n, skb->tail,
		 skb->tail + n, skb->end);
	skb_bug(__FILE__, __LINE__, what);
}
