/* SPDX-License-Identifier: MIT */
/*
 * skb_clone(): a second sk_buff on the same head.
 *
 * Kernel: net/core/skbuff.c, skb_clone() and __skb_clone(). The free companion of a pair costs no
 * allocation. Since its owner is the only one that can start a clone while fclone_ref is 1, later
 * kernels store 2 there; 3.4 increments. (3.4 finds the companion free by its fclone field, later
 * kernels by fclone_ref: the answer is the same.) Left out: references on a route (dst) and on
 * conntrack.
 */
#include "skb/skb_head.h"

static __always_inline struct sk_buff *__skb_clone(struct sk_buff *n, struct sk_buff *skb)
{
	n->next = n->prev = NULL;
	__copy_skb_header(n, skb);
	skb_store(&n->sk, NULL, SKB_C_SHELL); /* skb_fclone_busy() looks from the original's CPU */
	n->len = skb->len;
	n->data_len = skb->data_len;
	n->mac_len = skb->mac_len;
	n->hdr_len = skb->nohdr ? skb_headroom(skb) : skb->hdr_len;
	n->cloned = 1;
	n->nohdr = 0;
	n->peeked = 0;
	n->pfmemalloc = skb->pfmemalloc;
	n->pp_recycle = skb->pp_recycle;
	n->destructor = NULL;
	n->tail = skb->tail;
	n->end = skb->end;
	n->head = skb->head;
	n->head_frag = skb->head_frag;
	n->data = skb->data;
	n->truesize = skb->truesize;
	refcount_set(&n->users, 1, SKB_C_USERS);

	atomic_inc(&skb_shinfo(skb)->dataref, SKB_C_DATAREF);
	skb->cloned = 1;
	return n;
}

static __always_inline struct sk_buff *do_skb_clone(struct sk_buff *skb, const enum skb_era era)
{
	struct sk_buff_fclones *f = container_of(skb, struct sk_buff_fclones, skb1);
	struct sk_buff *n;

	if (skb_orphan_frags(era, skb))
		return NULL;
	/* Acquire: the companion's last owner has written to it. Pairs with its dec_and_test. */
	if (skb->fclone == SKB_FCLONE_ORIG &&
	    atomic_read_acquire(&f->fclone_ref.refs, SKB_C_FCLONE) == 1) {
		n = &f->skb2;
		if (era >= ERA_6_1)
			refcount_set(&f->fclone_ref, 2, SKB_C_FCLONE);
		else
			refcount_inc(&f->fclone_ref, SKB_C_FCLONE);
		n->fclone = SKB_FCLONE_CLONE;
	} else {
		unsigned int nid = numa_node_id();

		if (skb_fail(SKB_SITE_SHELL))
			return NULL;
		n = shell_alloc(sizeof(struct sk_buff_shell), nid);
		if (unlikely(!n))
			return NULL;
		container_of(n, struct sk_buff_shell, skb)->nid = nid;
		n->fclone = SKB_FCLONE_UNAVAILABLE;
	}
	return __skb_clone(n, skb);
}

static __always_inline struct sk_buff *do_skb_morph(struct sk_buff *dst, struct sk_buff *src,
						    const enum skb_era era)
{
	BUG_ON(skb_shared(dst));
	skb_release_head_state(dst);
	skb_release_data(era, dst);
	return __skb_clone(dst, src);
}

#define INSTANTIATE(suffix, era)                                                     \
	struct sk_buff *skb_clone_##suffix(struct sk_buff *skb)                      \
	{                                                                            \
		return do_skb_clone(skb, era);                                       \
	}                                                                            \
	struct sk_buff *skb_morph_##suffix(struct sk_buff *dst, struct sk_buff *src) \
	{                                                                            \
		return do_skb_morph(dst, src, era);                                  \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)
