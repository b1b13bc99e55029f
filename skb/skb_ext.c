/* SPDX-License-Identifier: MIT */
/*
 * Extensions of sk_buffs: making, adding, copying on write, letting go.
 *
 * Kernel: skb_ext_add(), skb_ext_maybe_cow(), __skb_ext_put() and their kin in net/core/skbuff.c,
 * 6.12.
 */
#include "skb/skb_ext.h"

#include <string.h>

const u8 skb_ext_type_len[SKB_EXT_NUM] = {
	[SKB_EXT_BRIDGE_NF] = SKB_EXT_CHUNKS(SKB_EXT_BRIDGE_NF_SIZE),
	[SKB_EXT_SEC_PATH] = SKB_EXT_CHUNKS(SKB_EXT_SEC_PATH_SIZE),
	[SKB_EXT_MPTCP] = SKB_EXT_CHUNKS(SKB_EXT_MPTCP_SIZE),
};

struct skb_ext *skb_ext_alloc(void)
{
	unsigned int nid = numa_node_id();
	struct skb_ext_obj *obj;

	if (skb_fail(SKB_SITE_EXT))
		return NULL;
	obj = shell_alloc(sizeof(*obj), nid);
	if (unlikely(!obj))
		return NULL;
	obj->nid = nid;
	memset(obj->ext.offset, 0, sizeof(obj->ext.offset));
	obj->ext.chunks = SKB_EXT_HEADER_CHUNKS;
	refcount_set(&obj->ext.refcnt, 1, SKB_C_EXT);
	return &obj->ext;
}

void __skb_ext_put(struct skb_ext *ext)
{
	struct skb_ext_obj *obj = container_of(ext, struct skb_ext_obj, ext);

	/* Acquire: whoever dropped the other references has used it. Pairs with dec_and_test. */
	if (atomic_read_acquire(&ext->refcnt.refs, SKB_C_EXT) != 1 &&
	    !refcount_dec_and_test(&ext->refcnt, SKB_C_EXT))
		return;
	shell_free(obj, sizeof(*obj), obj->nid);
}

/* OLD itself if the caller's reference is the only one, else a copy for it. NULL: OLD is kept. */
static struct skb_ext *skb_ext_maybe_cow(struct skb_ext *old)
{
	const size_t header = offsetof(struct skb_ext, data);
	struct skb_ext *new;

	/* Acquire: what the others wrote into it before they let go is to be found there. */
	if (atomic_read_acquire(&old->refcnt.refs, SKB_C_EXT) == 1)
		return old;
	new = skb_ext_alloc();
	if (unlikely(!new))
		return NULL;
	/* The header but its refcnt, which others change meanwhile; counted as the whole chunk. */
	skb_trace(SKB_RANGE_READ, SKB_C_EXT, old, old->chunks * SKB_EXT_ALIGN);
	skb_trace(SKB_RANGE_WRITE, SKB_C_EXT, new, old->chunks * SKB_EXT_ALIGN);
	memcpy(new->offset, old->offset, sizeof(old->offset));
	new->chunks = old->chunks;
	memcpy(new->data, old->data, old->chunks * SKB_EXT_ALIGN - header);
	__skb_ext_put(old);
	return new;
}

static void *skb_ext_activate(struct sk_buff *skb, struct skb_ext *ext, enum skb_ext_id id)
{
	if (!__skb_ext_exist(ext, id)) {
		ext->offset[id] = ext->chunks;
		ext->chunks += skb_ext_type_len[id];
	}
	skb->headers.slow_gro = 1; /* GRO has to look for it */
	skb->extensions = ext;
	skb->active_extensions |= 1u << id;
	return skb_ext_get_ptr(ext, id);
}

void *skb_ext_add(struct sk_buff *skb, enum skb_ext_id id)
{
	struct skb_ext *ext =
		skb->active_extensions ? skb_ext_maybe_cow(skb->extensions) : skb_ext_alloc();

	return likely(ext) ? skb_ext_activate(skb, ext, id) : NULL;
}

void *__skb_ext_set(struct sk_buff *skb, enum skb_ext_id id, struct skb_ext *ext)
{
	skb_ext_reset(skb);
	return skb_ext_activate(skb, ext, id);
}

void __skb_ext_del(struct sk_buff *skb, enum skb_ext_id id)
{
	skb->active_extensions &= ~(1u << id);
	if (!skb->active_extensions) {
		__skb_ext_put(skb->extensions);
		skb->extensions = NULL;
	}
}
