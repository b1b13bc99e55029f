/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the interpreter runs on, the real one: a kernel's sk_buffs.
 *
 * Functions that the kernel does not export are found by name (oracle_mod.c).
 */
#ifndef TESTS_ORACLE_ENV_KERNEL_H
#define TESTS_ORACLE_ENV_KERNEL_H

#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <linux/version.h>
#include <net/sock.h>
#include <net/tcp.h>

#define ORACLE_LACKS 0ull

#if !IS_ENABLED(CONFIG_BRIDGE_NETFILTER) || !IS_ENABLED(CONFIG_MPTCP)
#error "a kernel with CONFIG_BRIDGE_NETFILTER and CONFIG_MPTCP is needed: Debian's have both"
#endif

/* Not exported: filled in when the module is loaded. */
extern int (*o_skb_shift)(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen);
extern int (*o_tcp_trim_head)(struct sock *sk, struct sk_buff *skb, u32 len);
extern int (*o_tcp_fragment)(struct sock *sk, enum tcp_queue queue, struct sk_buff *skb, u32 len,
			     unsigned int mss, gfp_t gfp);
extern int (*o_skb_unclone_keeptruesize)(struct sk_buff *skb, gfp_t gfp); /* of a cloned one */
extern void (*o_skb_condense)(struct sk_buff *skb);
extern int (*o_tcp_v4_rcv)(struct sk_buff *skb);
extern void (*o_tcp_push_pending_frames)(struct sock *sk, unsigned int cur_mss, int nonagle);
extern void (*o_tcp_mark_skb_lost)(struct sock *sk, struct sk_buff *skb);
extern int (*o_tcp_retransmit_skb)(struct sock *sk, struct sk_buff *skb, int segs);
extern unsigned int (*o_tcp_sync_mss)(struct sock *sk, u32 pmtu);
extern struct sock *o_sk;
extern int o_queued; /* bytes in o_sk's queue that nobody was charged for */
extern struct net *o_net; /* where programs' sockets live: of the process that loaded the module */

/* Takes back what sockets of programs have changed in o_net. */
void oracle_sock_end(void);

#define o_alloc(size)		 alloc_skb(size, GFP_KERNEL)
#define o_alloc_fclone(size)	 alloc_skb_fclone(size, GFP_KERNEL)
#define o_build_skb(data, bytes) build_skb(data, bytes)
#define o_clone(skb)		 skb_clone(skb, GFP_KERNEL)
#define o_copy(skb)		 skb_copy(skb, GFP_KERNEL)
#define o_pskb_copy(skb)	 pskb_copy(skb, GFP_KERNEL)
#define o_expand(skb, nh, nt)	 pskb_expand_head(skb, nh, nt, GFP_KERNEL)
#define o_unclone(skb)		 skb_unclone(skb, GFP_KERNEL)
#define o_unclone_kt(skb)	 (skb_cloned(skb) ? o_skb_unclone_keeptruesize(skb, GFP_KERNEL) : 0)
#define o_header_unclone(skb)	 skb_header_unclone(skb, GFP_KERNEL)
#define o_trim(skb, len)	 pskb_trim(skb, len)
#define o_pull_tail(skb, n)	 (__pskb_pull_tail(skb, n) != NULL)
#define o_condense(skb)		 o_skb_condense(skb)
#define o_morph(dst, src)	 skb_morph(dst, src)
#define o_share_check(skb)	 skb_share_check(skb, GFP_KERNEL)
#define o_unshare(skb)		 skb_unshare(skb, GFP_KERNEL)
#define o_split(skb, skb1, len)	 skb_split(skb, skb1, len)
#define o_shift(tgt, skb, n)	 o_skb_shift(tgt, skb, n)
#define o_free(skb)		 kfree_skb(skb)

static inline bool o_coalesce(struct sk_buff *to, struct sk_buff *from, int *delta)
{
	bool stolen;

	if (!skb_try_coalesce(to, from, &stolen, delta))
		return false;
	kfree_skb_partial(from, stolen);
	return true;
}

static inline struct page *o_alloc_pages(unsigned int order)
{
	return alloc_pages(GFP_KERNEL | (order ? __GFP_COMP : 0), order);
}

#define o_frag_refill(n, pfrag)	 skb_page_frag_refill(n, pfrag, GFP_KERNEL)
#define o_frag_alloc(cache, n)	 page_frag_alloc(cache, n, GFP_KERNEL)
#define o_frag_cache_page(cache) ((cache)->va ? virt_to_page((cache)->va) : NULL)
#define o_frag_cache_drain(cache)                                               \
	do {                                                                    \
		if ((cache)->va)                                                \
			__page_frag_cache_drain(virt_to_head_page((cache)->va), \
						(cache)->pagecnt_bias);         \
		(cache)->va = NULL;                                             \
	} while (0)
#define o_frag_page(frag)   skb_frag_page(frag)
#define o_frag_offset(frag) skb_frag_off(frag)
#define o_frag_bytes(frag)  skb_frag_address(frag)

#define o_users(skb)	  ((int)refcount_read(&(skb)->users))
#define o_ext_refs(skb)	  ((int)refcount_read(&(skb)->extensions->refcnt))
#define o_dataref(skb)	  atomic_read(&skb_shinfo(skb)->dataref)
#define o_set_shared(skb) (skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG)
#define o_shared(skb)	  (!!(skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG))
#define o_h(skb)	  (skb)
#define o_csum_start(skb) ((skb)->csum_start)
#define o_set_csum_start(skb, at)         \
	do {                              \
		(skb)->csum_start = (at); \
		(skb)->csum_offset = 0;   \
	} while (0)

static inline int o_fclone_ref(const struct sk_buff *skb)
{
	const struct sk_buff_fclones *f;

	if (skb->fclone == SKB_FCLONE_ORIG)
		f = container_of(skb, struct sk_buff_fclones, skb1);
	else if (skb->fclone == SKB_FCLONE_CLONE)
		f = container_of(skb, struct sk_buff_fclones, skb2);
	else
		return 0;
	return refcount_read(&f->fclone_ref);
}

#define o_wmem_queued()	  READ_ONCE(o_sk->sk_wmem_queued)
#define o_forward_alloc() READ_ONCE(o_sk->sk_forward_alloc)

/*
 * The socket has QUEUED bytes in its queue and none ahead. What tcp_fragment() charged to it, or
 * tcp_trim_head() gave back, is in TCP's count of pages, which others share: it is taken out of
 * there, or after some ten thousand programs TCP would be short of memory.
 */
static inline void o_sock_settle(int queued)
{
	int held = o_sk->sk_forward_alloc + o_sk->sk_wmem_queued - o_queued;

	atomic_long_sub(held / (int)PAGE_SIZE, o_sk->sk_prot->memory_allocated);
	o_queued = queued;
	WRITE_ONCE(o_sk->sk_wmem_queued, queued);
	WRITE_ONCE(o_sk->sk_forward_alloc, 0);
}

static inline void o_sock_reset(void)
{
	o_sock_settle(1 << 20);
	o_sk->sk_sndbuf = 16 << 20;
	tcp_sk(o_sk)->snd_nxt = 0; /* nothing was sent: no counters to adjust */
}

/* TCP puts nothing into the linear part any more. */
#define o_tcp_is_paged() (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

/* The end of heads from the slab of small ones; 0 before there was one. */
#define o_small_head_end() \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0) ? ORACLE_SMALL_HEAD_END : 0)

#define o_pcount(skb) tcp_skb_pcount(skb)
#define o_mss(skb)    tcp_skb_mss(skb)
static inline void o_set_segs(struct sk_buff *skb, unsigned int segs, unsigned int mss)
{
	tcp_skb_pcount_set(skb, segs);
	TCP_SKB_CB(skb)->tcp_gso_size = mss;
}

/* The second half in *BUFF; both are in no queue afterwards. */
static inline int o_fragment(struct sk_buff *skb, u32 len, unsigned int mss, struct sk_buff **buff)
{
	struct sk_buff_head *q = &o_sk->sk_write_queue;
	int err;

	__skb_queue_tail(q, skb);
	err = o_tcp_fragment(o_sk, TCP_FRAG_IN_WRITE_QUEUE, skb, len, mss, GFP_KERNEL);
	__skb_unlink(skb, q);
	*buff = skb_peek(q);
	if (*buff) {
		__skb_unlink(*buff, q);
		tcp_skb_tsorted_anchor_cleanup(*buff);
	}
	return err;
}

#endif
