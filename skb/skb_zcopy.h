/* SPDX-License-Identifier: MIT */
/*
 * Zerocopy: frags that lie in a user's pages, and the ubuf_info through which the user is told that
 * they are free again.
 *
 * Kernel: struct ubuf_info and skb_zcopy_*() in include/linux/skbuff.h, 6.12. A shared info names
 * at most one ubuf_info and holds one reference on it, however many sk_buffs share that info:
 *
 *   skb_zcopy_set()                         +1
 *   skb_split(), pskb_copy(),
 *   pskb_expand_head() of a cloned one      +1: two shared infos
 *   the last release of the shared info     complete(..., true): -1
 *   skb_copy_ubufs(), all bytes pulled      complete(..., false): -1, the bytes were copied
 *
 *   SKBFL_DONT_ORPHAN        a clone may share the pages; without it they are copied before a clone
 *                            is made. 3.4 does not know it and always copies.
 *   SKBFL_MANAGED_FRAG_REFS  the frags hold no reference on their pages, the ubuf_info's owner does
 *                            until complete(). Whatever makes a second shared info takes the
 *                            references first and clears the flag (skb_zcopy_downgrade_managed()).
 *   SKBFL_PURE_ZEROCOPY      no byte of the sk_buff was copied, so that its owner is charged for
 *                            shell and head only (5.16 and later). A split gives it to both halves;
 *                            the owner who adds a copied byte clears it and charges the pages.
 *
 * Only the owner of an sk_buff calls anything here on it. refcnt may change on any CPU; complete()
 * runs on the CPU that lets go.
 */
#ifndef SKB_SKB_ZCOPY_H
#define SKB_SKB_ZCOPY_H

#include "skb/skbuff.h"

struct ubuf_info {
	/* Drops one reference; SUCCESS: the pages were used as they are. SKB may be NULL. */
	void (*complete)(struct sk_buff *skb, struct ubuf_info *uarg, bool success);
	refcount_t refcnt;
	u8 flags; /* SKBFL_*, which skb_zcopy_set() hands to the shared info */
};

/* The ubuf_info of a send with MSG_ZEROCOPY: told once, when the last reference is gone. */
struct ubuf_info_msgzc {
	struct ubuf_info ubuf;
	bool zerocopy; /* false once some bytes were copied after all */
	/* Runs on the CPU that dropped the last reference, and may free UARG. */
	void (*notify)(struct ubuf_info_msgzc *uarg);
};

/* UARG with one reference, the caller's. FLAGS: SKBFL_ZEROCOPY_FRAG, maybe SKBFL_DONT_ORPHAN. */
void msg_zerocopy_init(struct ubuf_info_msgzc *uarg, u8 flags,
		       void (*notify)(struct ubuf_info_msgzc *uarg));

/* ubuf_info::complete of a ubuf_info_msgzc. One RMW. */
void msg_zerocopy_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success);

/* The ubuf_info of SKB, or NULL. */
static __always_inline struct ubuf_info *skb_zcopy(const struct sk_buff *skb)
{
	return unlikely(shinfo_read(skb, flags) & SKBFL_ZEROCOPY_ENABLE)
		       ? skb_shinfo(skb)->destructor_arg
		       : NULL;
}

static __always_inline bool skb_zcopy_managed(const struct sk_buff *skb)
{
	return shinfo_read(skb, flags) & SKBFL_MANAGED_FRAG_REFS;
}

/* True if no byte of SKB was copied: its pages are nobody's charge. */
static __always_inline bool skb_zcopy_pure(const struct sk_buff *skb)
{
	return shinfo_read(skb, flags) & SKBFL_PURE_ZEROCOPY;
}

/* True if bytes of B may join those of A: both are charged in the same way. */
static __always_inline bool skb_pure_zcopy_same(const struct sk_buff *a, const struct sk_buff *b)
{
	return skb_zcopy_pure(a) == skb_zcopy_pure(b);
}

/* One reference more; the caller owns one. */
static __always_inline void net_zcopy_get(struct ubuf_info *uarg)
{
	refcount_inc(&uarg->refcnt, SKB_C_UARG);
}

/* Drops the caller's reference. */
static __always_inline void net_zcopy_put(struct ubuf_info *uarg)
{
	uarg->complete(NULL, uarg, true);
}

/*
 * SKB's frags lie in UARG's pages: one reference more on it. Nothing if SKB has a ubuf_info. BUG if
 * SKB is cloned and UARG's pages must not be shared.
 */
static __always_inline void skb_zcopy_set(struct sk_buff *skb, struct ubuf_info *uarg)
{
	if (skb_zcopy(skb))
		return;
	BUG_ON(skb_cloned(skb) && !(uarg->flags & SKBFL_DONT_ORPHAN));
	net_zcopy_get(uarg);
	skb_shinfo(skb)->destructor_arg = uarg;
	shinfo_write(skb, flags, (u8)(skb_shinfo(skb)->flags | uarg->flags));
}

/* SKB has no ubuf_info any more, and nothing of what comes with it. */
static __always_inline void skb_zcopy_clear(struct sk_buff *skb, bool success)
{
	struct ubuf_info *uarg = skb_zcopy(skb);

	if (uarg) {
		uarg->complete(skb, uarg, success);
		shinfo_write(skb, flags, (u8)(skb_shinfo(skb)->flags & ~SKBFL_ALL_ZEROCOPY));
	}
}

/* Managed frags get references of their own: one RMW each. */
static __always_inline void skb_zcopy_downgrade_managed(struct sk_buff *skb)
{
	if (likely(!skb_zcopy_managed(skb)))
		return;
	shinfo_write(skb, flags, (u8)(skb_shinfo(skb)->flags & ~SKBFL_MANAGED_FRAG_REFS));
	for (int i = 0; i < shinfo_read(skb, nr_frags); i++)
		skb_frag_ref(skb, i);
}

/* N, which got frags of SKB, holds SKB's ubuf_info, too. BUG if it has another one. */
static __always_inline void skb_zerocopy_clone(struct sk_buff *n, struct sk_buff *skb)
{
	struct ubuf_info *uarg = skb_zcopy(skb);

	if (uarg) {
		BUG_ON(skb_zcopy(n) && skb_zcopy(n) != uarg);
		skb_zcopy_set(n, uarg);
	}
}

/* A user's buffer: byte k lies at (offset + k) % PAGE_SIZE of page[(offset + k) / PAGE_SIZE]. */
struct skb_user_pages {
	struct page *const *page;
	u32 offset;
};

/*
 * Appends up to LEN bytes of FROM, from its byte AT on, to SKB: a frag a page with a reference on
 * it, or fewer where pages continue each other in one block. Returns how many; fewer than LEN if
 * SKB has no slot left. *TRUESIZE: by how much truesize grew, whole pages. Nobody is charged, and
 * SKB has no ubuf_info yet. Kernel: __zerocopy_sg_from_iter(), net/core/datagram.c, 6.12.
 */
u32 skb_zerocopy_from_user(struct sk_buff *skb, const struct skb_user_pages *from, u32 at, u32 len,
			   u32 *truesize);

SKB_ERA_DECLARE(int, skb_copy_ubufs, struct sk_buff *skb);

/*
 * SKB's frags move to pages of its own, as few as hold them (blocks of the least order for which
 * MAX_SKB_FRAGS suffice), and its ubuf_info is told that they were copied. The head becomes private
 * first. 0; -EINVAL for a shared SKB; -ENOMEM: bytes and frags are as before, the head may be
 * private. The frags' number and pages are others afterwards: read them anew. 3.4 in the kernel
 * makes one page for each frag; that is left out.
 */
static __always_inline int skb_copy_ubufs(const enum skb_era era, struct sk_buff *skb)
{
	return SKB_ERA_CALL(era, skb_copy_ubufs, skb);
}

/* The same if SKB has user pages that a second owner must not see. 0 or as skb_copy_ubufs(). */
static __always_inline int skb_orphan_frags(const enum skb_era era, struct sk_buff *skb)
{
	if (likely(!skb_zcopy(skb)))
		return 0;
	if (era >= ERA_6_1 && shinfo_read(skb, flags) & SKBFL_DONT_ORPHAN)
		return 0;
	return skb_copy_ubufs(era, skb);
}

/* The same for a packet that goes back up, where its reader may keep it as long as it likes. */
static __always_inline int skb_orphan_frags_rx(const enum skb_era era, struct sk_buff *skb)
{
	return likely(!skb_zcopy(skb)) ? 0 : skb_copy_ubufs(era, skb);
}

#endif
