/* SPDX-License-Identifier: MIT */
/*
 * Heads: where the linear bytes and the shared info of an sk_buff come from, and which size they
 * get.
 *
 * Kernel: kmalloc_reserve() and skb_kfree_head() in net/core/skbuff.c. Up to 6.2 every head is a
 * kmalloc object; 6.3 added a slab for the size that TCP asks for. The kernel finds a head's slab
 * through its page; the model keeps size and node in the sk_buff (headers.head_size,
 * headers.head_nid), for which no operation has to guess.
 */
#ifndef SKB_SKB_HEAD_H
#define SKB_SKB_HEAD_H

#include "skb/page_alloc.h"
#include "skb/page_frag.h"
#include "skb/skb_ext.h"
#include "skb/skb_zcopy.h"

#include <string.h>

static __always_inline unsigned int skb_node(int node)
{
	return node == NUMA_NO_NODE ? numa_node_id() : (unsigned int)node;
}

/* The size of the object that holds a head of SIZE linear bytes; 0 if there is none so large. */
static __always_inline size_t skb_head_object_size(unsigned int size, const enum skb_era era)
{
	size_t want = SKB_HEAD_ALIGN(size);

	if (era >= ERA_6_12 && want <= SKB_SMALL_HEAD_SIZE)
		return SKB_SMALL_HEAD_SIZE;
	return kmalloc_size_roundup(want);
}

/* A head for *SIZE linear bytes on NID; *SIZE becomes what it holds, *OBJECT the bytes to give
 * back. NULL: none. */
static __always_inline unsigned char *kmalloc_reserve(unsigned int *size, u32 *object,
						      unsigned int nid, const enum skb_era era)
{
	size_t bytes = skb_head_object_size(*size, era);
	unsigned char *data;

	if (unlikely(!bytes) || skb_fail(SKB_SITE_HEAD))
		return NULL;
	data = obj_alloc(bytes, nid);
	if (unlikely(!data))
		return NULL;
	*object = bytes;
	*size = SKB_WITH_OVERHEAD(bytes);
	return data;
}

/* What a new head of SIZE bytes at DATA and a new shell look like; bytes before tail are cleared,
 * those behind are always assigned. */
static __always_inline void skb_init(struct sk_buff *skb, unsigned char *data, unsigned int size)
{
	struct skb_shared_info *shinfo;

	memset(skb, 0, offsetof(struct sk_buff, tail));
	skb->truesize = SKB_TRUESIZE(size);
	refcount_set(&skb->users, 1, SKB_C_USERS);
	skb->head = data;
	skb->data = data;
	skb->tail = 0;
	skb->end = size;
	skb->extensions = NULL;
	skb->headers.mac_header = (u16)~0U;
	skb->headers.transport_header = (u16)~0U;
	skb->headers.alloc_cpu = smp_processor_id();

	shinfo = skb_shinfo(skb);
	memset(shinfo, 0, offsetof(struct skb_shared_info, dataref));
	shinfo->destructor_arg = NULL;
	atomic_set(&shinfo->dataref, 1, SKB_C_DATAREF);
}

static __always_inline void skb_free_head(struct sk_buff *skb, const enum skb_era era)
{
	if (!skb->head_frag)
		obj_free(skb->head, skb->headers.head_size, skb->headers.head_nid);
	else if (era < ERA_6_1 || !skb->pp_recycle ||
		 !napi_pp_put_page(era, virt_to_page(skb->head)))
		page_frag_free(skb->head);
}

static __always_inline void skb_set_end_offset(struct sk_buff *skb, unsigned int offset)
{
	skb->end = offset;
}

/* Bytes of a shared info that are in use: what an expansion copies. */
static __always_inline size_t skb_shinfo_used(const struct sk_buff *skb)
{
	return offsetof(struct skb_shared_info, frags) +
	       shinfo_read(skb, nr_frags) * sizeof(skb_frag_t);
}

/*
 * Copies the used part of SKB's shared info to TO, whose dataref is to be set next: the copied one
 * may change under the copy, since the other owner may let go now, and nobody looks at it.
 * ThreadSanitizer is shown the same without it.
 */
static __always_inline void skb_copy_shinfo(void *to, const struct sk_buff *skb)
{
	const struct skb_shared_info *from = skb_shinfo(skb);
	size_t used = skb_shinfo_used(skb);

#ifdef SKB_TSAN
	const size_t at = offsetof(struct skb_shared_info, dataref), behind = at + sizeof(atomic_t);

	memcpy(to, from, at);
	memcpy((char *)to + behind, (const char *)from + behind, used - behind);
#else
	skb_memcpy(to, from, used, SKB_C_HEAD);
#endif
}

/*
 * What a clone or copy takes over beside bytes and lengths: the control block, the device, header
 * offsets, but not where the head of N came from. Class SHELL, not counted as bytes copied.
 */
static __always_inline void __copy_skb_header(struct sk_buff *n, const struct sk_buff *skb)
{
	skb_trace(SKB_RANGE_READ, SKB_C_SHELL, skb, sizeof(*skb));
	skb_trace(SKB_RANGE_WRITE, SKB_C_SHELL, n, sizeof(*n));
	n->tstamp = skb->tstamp;
	n->dev = skb->dev;
	memcpy(n->cb, skb->cb, sizeof(n->cb));
	n->_skb_refdst = skb->_skb_refdst;
	n->_nfct = 0;
	n->queue_mapping = skb->queue_mapping;
	__skb_ext_copy(n, skb);
	memcpy(&n->headers, &skb->headers, sizeof(n->headers));
}

/* The same for a copy, which has a head and a shared info of its own. */
static __always_inline void skb_copy_header(struct sk_buff *n, const struct sk_buff *skb)
{
	const struct skb_shared_info *from = skb_shinfo(skb);
	struct skb_shared_info *to = skb_shinfo(n);
	u32 object = n->headers.head_size;
	u16 nid = n->headers.head_nid;

	__copy_skb_header(n, skb);
	n->headers.head_size = object;
	n->headers.head_nid = nid;
	to->gso_size = from->gso_size;
	to->gso_segs = from->gso_segs;
	to->gso_type = from->gso_type;
}

/* N frag descriptors of FROM, from FIRST on, become TO's from AT on and its last ones. References and
 * lengths are the caller's. */
static __always_inline void skb_copy_descs(struct sk_buff *to, unsigned int at,
					   const struct sk_buff *from, unsigned int first,
					   unsigned int n)
{
	const skb_frag_t *src = &skb_shinfo(from)->frags[first];
	skb_frag_t *dst = &skb_shinfo(to)->frags[at];

	skb_trace(SKB_RANGE_READ, skb_shinfo_class(from), src, n * sizeof(*src));
	skb_trace(SKB_RANGE_WRITE, skb_shinfo_class(to), dst, n * sizeof(*dst));
	memcpy(dst, src, n * sizeof(*src));
	shinfo_write(to, nr_frags, (u8)(at + n));
}

/* What an sk_buff holds beside its data: the socket's charge, extensions. The shell is about to go. */
static __always_inline void skb_release_head_state(struct sk_buff *skb)
{
	if (skb->destructor)
		skb->destructor(skb);
	skb_ext_put(skb);
}

/* A reference more on FRAG's page: a pool's own, if its sk_buff gives pages back (RECYCLE) and this
 * is a pool's. */
static __always_inline void skb_pp_frag_ref(const skb_frag_t *frag, bool recycle)
{
	struct page *head = compound_head(frag->page);

	if (recycle && is_pp_page(head))
		page_pool_ref_page(head);
	else
		page_ref_inc(head);
}

/* Copies LEN bytes from offset OFF of SKB's payload to TO, part of a head. SKB holds that many. */
void __skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 len);

/* One hold more on each member of a frag_list. */
static __always_inline void skb_clone_fraglist(struct sk_buff *list)
{
	for (; list; list = list->next)
		skb_get(list);
}

#endif
