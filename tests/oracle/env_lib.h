/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the interpreter runs on, ours: the library, in the era that oracle_host was started with.
 */
#ifndef TESTS_ORACLE_ENV_LIB_H
#define TESTS_ORACLE_ENV_LIB_H

#include "skb/page_frag.h"
#include "skb/skb_check.h"
#include "skb/skb_ext.h"
#include "tcp/tcp.h"

#include <stdio.h>
#include <string.h>

/* Operations that the library does not have, as O_BIT(name) | ...: no program may use them. */
#define O_BIT(op)    (1ull << O_##op)
#define ORACLE_LACKS 0ull

extern enum skb_era o_era;
extern struct sock *o_sk;

#define o_alloc(size)		 alloc_skb(o_era, size, NUMA_NO_NODE)
#define o_alloc_fclone(size)	 alloc_skb_fclone(o_era, size, NUMA_NO_NODE)
#define o_build_skb(data, bytes) build_skb(o_era, data, bytes)
#define o_clone(skb)		 skb_clone(o_era, skb)
#define o_copy(skb)		 skb_copy(o_era, skb)
#define o_pskb_copy(skb)	 pskb_copy(o_era, skb)
#define o_expand(skb, nh, nt)	 pskb_expand_head(o_era, skb, nh, nt)
#define o_unclone(skb)		 skb_unclone(o_era, skb)
#define o_unclone_kt(skb)	 skb_unclone_keeptruesize(o_era, skb)
#define o_header_unclone(skb)	 skb_header_unclone(o_era, skb)
#define o_trim(skb, len)	 pskb_trim(o_era, skb, len)
#define o_pull_tail(skb, n)	 (__pskb_pull_tail(o_era, skb, n) != NULL)
#define o_condense(skb)		 skb_condense(o_era, skb)
#define o_morph(dst, src)	 skb_morph(o_era, dst, src)
#define o_share_check(skb)	 skb_share_check(o_era, skb)
#define o_unshare(skb)		 skb_unshare(o_era, skb)
#define o_split(skb, skb1, len)	 skb_split(skb, skb1, len)
#define o_shift(tgt, skb, n)	 skb_shift(o_era, tgt, skb, n)
#define o_free(skb)		 kfree_skb(o_era, skb)

static inline bool o_coalesce(struct sk_buff *to, struct sk_buff *from, int *delta)
{
	bool stolen;

	if (!skb_try_coalesce(o_era, to, from, &stolen, delta))
		return false;
	kfree_skb_partial(o_era, from, stolen);
	return true;
}

#define o_alloc_pages(order)	  alloc_pages(order)
#define o_frag_refill(n, pfrag)	  skb_page_frag_refill(n, pfrag, SKB_FRAG_PAGE_ORDER, NUMA_NO_NODE)
#define o_frag_alloc(cache, n)	  page_frag_alloc_align(cache, n, 1)
#define o_frag_cache_page(cache)  ((cache)->va ? virt_to_page((cache)->va) : NULL)
#define o_frag_cache_drain(cache) page_frag_cache_drain(cache)
#define o_frag_page(frag)	  ((frag)->page)
#define o_frag_offset(frag)	  ((frag)->offset)
#define o_frag_bytes(frag)	  skb_frag_address(frag)
#define skb_frag_size(frag)	  ((frag)->len)

#define o_users(skb)		  ((skb)->users.refs.counter)
#define o_dataref(skb)		  (skb_shinfo(skb)->dataref.counter)
#define o_set_shared(skb)	  (skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG)
#define o_shared(skb)		  (!!(skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG))
#define o_ext_refs(skb)		  ((skb)->extensions->refcnt.refs.counter)
#define o_h(skb)		  (&(skb)->headers)
#define o_csum_start(skb)	  ((skb)->headers.csum & 0xffff)
#define o_set_csum_start(skb, at) ((skb)->headers.csum = (at))

static inline int o_fclone_ref(const struct sk_buff *skb)
{
	return skb->fclone == SKB_FCLONE_UNAVAILABLE ? 0
						     : skb_fclones(skb)->fclone_ref.refs.counter;
}

#define o_wmem_queued()	  (o_sk->sk_wmem_queued)
#define o_forward_alloc() (o_sk->sk_forward_alloc)

static inline void o_sock_reset(void)
{
	o_sk->sk_wmem_queued = 1 << 20;
	o_sk->sk_forward_alloc = 0;
	o_sk->snd_nxt = 0;
}

#define o_tcp_is_paged() (o_era >= ERA_6_12)

#define o_small_head_end() (o_era >= ERA_6_12 ? ORACLE_SMALL_HEAD_END : 0)

#define o_pcount(skb) tcp_skb_pcount(o_era, skb)
#define o_mss(skb)    tcp_skb_mss(o_era, skb)
static inline void o_set_segs(struct sk_buff *skb, unsigned int segs, unsigned int mss)
{
	TCP_SKB_CB(skb)->tcp_gso_segs = segs;
	TCP_SKB_CB(skb)->tcp_gso_size = mss;
}

#define o_tcp_trim_head(sk, skb, len) tcp_trim_head(o_era, TRIM_EAGER, sk, skb, len)

/* The second half in *BUFF; both are in no queue afterwards. */
static inline int o_fragment(struct sk_buff *skb, u32 len, unsigned int mss, struct sk_buff **buff)
{
	struct sk_buff_head *q = &o_sk->sk_write_queue;
	int err;

	__skb_queue_tail(q, skb);
	err = tcp_fragment(o_era, TRIM_EAGER, o_sk, q, skb, len, mss);
	__skb_unlink(skb, q);
	*buff = skb_peek(q);
	if (*buff) {
		__skb_unlink(*buff, q);
		skb_anchor_cleanup(o_era, *buff);
	}
	return err;
}

#endif
