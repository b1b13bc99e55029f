/* SPDX-License-Identifier: MIT */
/*
 * Extensions: what a few protocols hang on an sk_buff, in one object that clones share.
 *
 * Kernel: struct skb_ext in include/linux/skbuff.h and net/core/skbuff.c, 6.1 and 6.12; sizes and
 * order are those of a 6.1 with bridge netfilter, IPsec and MPTCP. All objects are of one size,
 * whatever is in them. The first 8 bytes are a header; lengths and offsets count chunks of 8 bytes.
 * Extensions exist since 5.0. Before, up to two pointers were tested where now one byte is, so that
 * the hooks stand in every era.
 *
 *   active_extensions  of an sk_buff: bit ID is set while it has extension ID; 0: `extensions` is
 *                      not to be looked at
 *   refcnt             of an object: once for each sk_buff with a bit set that points to it, and
 *                      once for whoever holds one that skb_ext_alloc() made
 *   offset[ID]         0: nothing of ID was ever added. It stays when one of several is removed, so
 *                      that adding ID again finds the old bytes
 *
 * An sk_buff has one owner; two owners meet in refcnt, and in the bytes: skb_ext_find() hands out
 * memory that others may be reading. Whoever writes gets it from skb_ext_add(), which copies first
 * what is shared.
 *
 *                          skb_ext_add(o)  skb_ext_copy(d, o)  skb_ext_put(o)  skb_ext_put(c)
 *   skb_ext_add(o)               X                 X                  X              -
 *   skb_ext_copy(d, o)           X                 X                  X              -
 *   skb_ext_put(o)               X                 X                  X              -
 *   skb_ext_put(c), c shares     -                 -                  -        X for one c
 *
 *   X: the owner of o serialises.  -: safe on two CPUs at once; the last one frees the object.
 */
#ifndef SKB_SKB_EXT_H
#define SKB_SKB_EXT_H

#include "skb/atomic.h"
#include "skb/skbuff.h"

enum skb_ext_id { SKB_EXT_BRIDGE_NF, SKB_EXT_SEC_PATH, SKB_EXT_MPTCP, SKB_EXT_NUM };

#define SKB_EXT_ALIGN 8 /* bytes of a chunk */

#define SKB_EXT_BRIDGE_NF_SIZE 32
#define SKB_EXT_SEC_PATH_SIZE  88
#define SKB_EXT_MPTCP_SIZE     32
#define SKB_EXT_DATA_SIZE      (SKB_EXT_BRIDGE_NF_SIZE + SKB_EXT_SEC_PATH_SIZE + SKB_EXT_MPTCP_SIZE)

struct skb_ext {
	refcount_t refcnt;
	u8 offset[SKB_EXT_NUM]; /* in chunks from the start of the object */
	u8 chunks; /* in use, the header's one included */
	char data[SKB_EXT_DATA_SIZE] __attribute__((aligned(SKB_EXT_ALIGN)));
};

/* What the slab holds: the model notes the node in room that the slab leaves free. */
struct skb_ext_obj {
	struct skb_ext ext;
	u16 nid;
} ____cacheline_aligned;

#define SKB_EXT_CHUNKS(bytes) ((bytes) / SKB_EXT_ALIGN)
#define SKB_EXT_HEADER_CHUNKS SKB_EXT_CHUNKS(offsetof(struct skb_ext, data))

_Static_assert(offsetof(struct skb_ext, data) == 8, "the header is one chunk with three ids");
_Static_assert(SKB_EXT_CHUNKS(sizeof(struct skb_ext)) <= 255, "offsets have 8 bits");
_Static_assert(sizeof(struct skb_ext_obj) == 192, "160 bytes, in whole cache lines");

/* How many chunks extension ID takes. */
extern const u8 skb_ext_type_len[SKB_EXT_NUM];

static __always_inline bool __skb_ext_exist(const struct skb_ext *ext, enum skb_ext_id id)
{
	return ext->offset[id];
}

static __always_inline void *skb_ext_get_ptr(struct skb_ext *ext, enum skb_ext_id id)
{
	return (char *)ext + ext->offset[id] * SKB_EXT_ALIGN;
}

static __always_inline bool skb_ext_exist(const struct sk_buff *skb, enum skb_ext_id id)
{
	return skb->active_extensions & 1u << id;
}

/*
 * Extension ID of SKB, or NULL. Others may share the memory: see skb_ext_add() before writing.
 * Never fails, no RMW.
 */
static __always_inline void *skb_ext_find(const struct sk_buff *skb, enum skb_ext_id id)
{
	return skb_ext_exist(skb, id) ? skb_ext_get_ptr(skb->extensions, id) : NULL;
}

/*
 * An object with one reference, the caller's, and nothing in it. NULL: no memory.
 * Kernel: __skb_ext_alloc().
 */
struct skb_ext *skb_ext_alloc(void);

/*
 * Extension ID of SKB for writing: its bytes, which nobody else sees. One that was not there is
 * added, and its bytes are whatever the memory held: clear them. A shared object is copied first,
 * 8 bytes for each chunk in use, and the share of the old one dropped (1 RMW). NULL if memory is
 * short: SKB is as before. Left out: the holds of a copied sec_path on its transformations.
 */
void *skb_ext_add(struct sk_buff *skb, enum skb_ext_id id);

/*
 * SKB lets go of what it has and gets EXT, whose reference goes with it, with ID as all that is in
 * it. EXT is new from skb_ext_alloc(). Returns ID's bytes, not cleared. Cannot fail.
 */
void *__skb_ext_set(struct sk_buff *skb, enum skb_ext_id id, struct skb_ext *ext);

/* SKB has no extension ID any more, which it had; without any it lets go of the object. */
void __skb_ext_del(struct sk_buff *skb, enum skb_ext_id id);

/* Drops one reference on EXT and frees it with the last; reading 1 is enough for that. */
void __skb_ext_put(struct skb_ext *ext);

static __always_inline void skb_ext_del(struct sk_buff *skb, enum skb_ext_id id)
{
	if (skb_ext_exist(skb, id))
		__skb_ext_del(skb, id);
}

/* SKB, which is about to go, lets go of its object. */
static __always_inline void skb_ext_put(struct sk_buff *skb)
{
	if (unlikely(skb->active_extensions))
		__skb_ext_put(skb->extensions);
}

/* SKB has no extensions any more. */
static __always_inline void skb_ext_reset(struct sk_buff *skb)
{
	if (unlikely(skb->active_extensions)) {
		__skb_ext_put(skb->extensions);
		skb->active_extensions = 0;
	}
}

/* DST, which has none, shares those of SRC. 1 RMW if there are any. */
static __always_inline void __skb_ext_copy(struct sk_buff *dst, const struct sk_buff *src)
{
	dst->active_extensions = src->active_extensions;
	if (unlikely(src->active_extensions)) {
		refcount_inc(&src->extensions->refcnt, SKB_C_EXT);
		dst->extensions = src->extensions;
	}
}

/* The same for a DST that may have some, which it lets go of first. */
static __always_inline void skb_ext_copy(struct sk_buff *dst, const struct sk_buff *src)
{
	skb_ext_put(dst);
	__skb_ext_copy(dst, src);
}

#endif
