/* SPDX-License-Identifier: MIT */
/*
 * tcp_sendmsg(): user data into the write queue; tcp_build_frag(): pages of somebody else's;
 * tcp_send_fin(): its end.
 *
 * Kernel: tcp_sendmsg_locked() and tcp_stream_alloc_skb() in net/ipv4/tcp.c, 3.4 and 6.12. With a
 * page frag of order 3 65160 bytes lie in 2 or 3 frags, with order 0 (all there was before 3.7) in
 * 16 or 17. A GSO head of 3.4 has room for 1408 bytes of payload behind its headroom and takes the
 * first bytes, 2048 bytes of memory in all; later eras keep payload out of heads.
 *
 * A user's own pages (MSG_ZEROCOPY) are locked already and not charged again, as long as nothing
 * else is in the sk_buff (5.16 and later). The first copied byte makes the difference: then all that
 * truesize says beyond shell and head is charged, which is whole pages, and not the bytes that lie in
 * them, since as much is uncharged in the end.
 *
 * Left out: waiting for memory, splice, urgent data, autotuning of the send buffer, memory pressure,
 * the limit on a user's locked pages.
 */
#include "tcp/tcp.h"

#include <errno.h>
#include <string.h>

/* Linear room that era 3.4 asks for with an sk_buff that may be cut in segments. */
#define SELECT_SIZE_3_4 (2048 - MAX_TCP_HEADER - (unsigned int)SKB_SHINFO_SIZE)

static __always_inline struct sk_buff *tcp_stream_alloc_skb(struct sock *sk, const enum skb_era era)
{
	unsigned int linear = era < ERA_6_1 ? SELECT_SIZE_3_4 : 0;
	struct sk_buff *skb = alloc_skb_fclone(era, linear + MAX_TCP_HEADER, sk->node);

	if (unlikely(!skb))
		return NULL;
	sk_wmem_schedule(era, sk, skb->truesize);
	skb_reserve(skb, MAX_TCP_HEADER);
	skb->headers.ip_summed = CHECKSUM_PARTIAL;
	skb_anchor_init(era, skb);
	return skb;
}

static __always_inline void tcp_skb_entail(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

	tcb->seq = tcb->end_seq = sk->write_seq;
	tcb->tcp_flags = TCPHDR_ACK;
	__skb_header_release(skb);
	__skb_queue_tail(&sk->sk_write_queue, skb);
	sk_wmem_queued_add(sk, skb->truesize);
	sk_mem_charge(sk, skb->truesize);
}

/* An sk_buff that got no byte leaves the queue as if it had not been. */
static __always_inline void tcp_remove_empty_skb(struct sock *sk, const enum skb_era era)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (skb && !skb->len) {
		__skb_unlink(skb, &sk->sk_write_queue);
		tcp_wmem_free_skb(era, sk, skb);
	}
}

/* SKB, in which all is a user's pages, is about to get other bytes. */
static __always_inline void tcp_downgrade_zcopy_pure(struct sock *sk, struct sk_buff *skb,
						     const enum skb_era era)
{
	u32 extra = skb->truesize - SKB_TRUESIZE(skb_end_offset(skb));

	sk_wmem_schedule(era, sk, extra);
	sk_mem_charge(sk, extra);
	shinfo_write(skb, flags, (u8)(skb_shinfo(skb)->flags & ~SKBFL_PURE_ZEROCOPY));
}

/*
 * Bytes of FROM, from AT on, as they lie in UARG's pages. Returns how many; 0: SKB has no slot left,
 * or is another ubuf_info's. The kernel makes sure of the bytes and charges the pages, which may be
 * more; here the charge is always covered.
 */
static __always_inline u32 tcp_append_zerocopy(struct sock *sk, struct sk_buff *skb,
					       const struct skb_user_pages *from, u32 at, u32 len,
					       struct ubuf_info *uarg, const enum skb_era era)
{
	u32 copy, truesize;

	if (skb_zcopy(skb) && skb_zcopy(skb) != uarg)
		return 0;
	if (!skb->len)
		shinfo_write(skb, flags, (u8)(skb_shinfo(skb)->flags | SKBFL_PURE_ZEROCOPY));
	copy = skb_zerocopy_from_user(skb, from, at, len, &truesize);
	if (!copy)
		return 0;
	sk_wmem_queued_add(sk, truesize);
	if (!skb_zcopy_pure(skb)) {
		sk_wmem_schedule(era, sk, truesize);
		sk_mem_charge(sk, truesize);
	}
	skb_zcopy_set(skb, uarg);
	return copy;
}

/* Bytes of a paged copy are charged as they come. */
static __always_inline void tcp_skb_append(struct sock *sk, struct sk_buff *skb, u32 copy,
					   const enum skb_era era)
{
	sk->write_seq += copy;
	TCP_SKB_CB(skb)->end_seq += copy;
	tcp_skb_pcount_clear(era, skb);
}

/* Era 3.4: bytes into the head, which was charged when it was made. Returns how many. */
static __always_inline u32 tcp_copy_linear(struct sk_buff *skb, const char *from, u32 len)
{
	u32 room = skb_tailroom(skb), copy = min(len, room);
	void *to;

	if (!copy || shinfo_read(skb, nr_frags))
		return 0;
	to = skb_put(skb, copy);
	if (from)
		skb_memcpy(to, from, copy, SKB_C_PAYLOAD);
	return copy;
}

/*
 * Bytes into the page frag. Returns how many; 0: SKB has no slot left, or no page was to be had
 * (*NOMEM).
 */
static __always_inline u32 tcp_copy_paged(struct sock *sk, struct sk_buff *skb, const char *from,
					  u32 len, bool *nomem, const enum skb_era era)
{
	struct page_frag *pfrag = &sk->sk_frag;
	unsigned int i = shinfo_read(skb, nr_frags);
	bool merge;
	u32 copy;

	if (unlikely(!skb_page_frag_refill(32, pfrag, sk->frag_order, sk->node))) {
		*nomem = true;
		return 0;
	}
	merge = skb_can_coalesce(skb, i, pfrag->page, pfrag->offset);
	if (!merge && i >= sk->max_skb_frags)
		return 0;
	copy = min(len, pfrag->size - pfrag->offset);
	if (era >= ERA_6_1 && unlikely(skb_zcopy_pure(skb)))
		tcp_downgrade_zcopy_pure(sk, skb, era);
	sk_wmem_schedule(era, sk, copy);
	if (from)
		skb_memcpy((char *)page_address(pfrag->page) + pfrag->offset, from, copy,
			   SKB_C_PAYLOAD);
	skb->len += copy;
	skb->data_len += copy;
	skb->truesize += copy;
	sk_wmem_queued_add(sk, copy);
	sk_mem_charge(sk, copy);
	if (merge) {
		skb_shinfo(skb)->frags[i - 1].len += copy;
	} else {
		skb_fill_page_desc(skb, i, pfrag->page, pfrag->offset, copy);
		page_ref_inc(pfrag->page);
	}
	pfrag->offset += copy;
	return copy;
}

static __always_inline int do_tcp_sendmsg(struct sock *sk, const char *from, u32 len,
					  const bool in_place, const struct skb_user_pages *user,
					  struct ubuf_info *uarg, const enum skb_era era)
{
	u32 goal = tcp_size_goal(sk), copied = 0;
	struct sk_buff *skb;
	bool nomem = false, fresh = false;

	if (unlikely(sk->sk_shutdown & SEND_SHUTDOWN))
		return -EPIPE;
	while (copied < len && !nomem) {
		u32 copy = 0, want;

		skb = skb_peek_tail(&sk->sk_write_queue);
		if (!skb || fresh || skb->len >= goal || TCP_SKB_CB(skb)->eor) {
			if (!sk_stream_memory_free(sk))
				break;
			skb = tcp_stream_alloc_skb(sk, era);
			if (unlikely(!skb))
				break;
			tcp_skb_entail(sk, skb);
			fresh = false;
		}
		want = min(goal - skb->len, len - copied);
		if (user)
			copy = tcp_append_zerocopy(sk, skb, user, copied, want, uarg, era);
		else if (era < ERA_6_1)
			copy = tcp_copy_linear(skb, in_place ? NULL : from + copied, want);
		if (!copy && !user)
			copy = tcp_copy_paged(sk, skb, in_place ? NULL : from + copied, want,
					      &nomem, era);
		if (copy) {
			tcp_skb_append(sk, skb, copy, era);
		} else if (!nomem) {
			/* All slots in use, or somebody else's pages: the next bytes start a new one. */
			tcp_mark_push(skb);
			fresh = true;
		}
		copied += copy;
	}
	tcp_remove_empty_skb(sk, era);
	return copied || !len ? (int)copied : -EAGAIN;
}

/* LEN bytes from OFF of PAGE to the end of SKB, as part of its last frag or as the next one. */
static __always_inline void tcp_append_page(struct sock *sk, struct sk_buff *skb, struct page *page,
					    u32 off, u32 len, bool merge, const enum skb_era era)
{
	unsigned int i = shinfo_read(skb, nr_frags);

	if (era >= ERA_6_1 && unlikely(skb_zcopy_pure(skb)))
		tcp_downgrade_zcopy_pure(sk, skb, era);
	sk_wmem_schedule(era, sk, len);
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	sk_wmem_queued_add(sk, len);
	sk_mem_charge(sk, len);
	if (merge) {
		skb_shinfo(skb)->frags[i - 1].len += len;
	} else {
		get_page(page);
		skb_fill_page_desc(skb, i, page, off, len);
	}
	skb->headers.ip_summed = CHECKSUM_PARTIAL;
	tcp_skb_append(sk, skb, len, era);
}

static __always_inline struct sk_buff *do_tcp_build_frag(struct sock *sk, u32 size_goal,
							 struct page *page, u32 off, u32 *size,
							 const enum skb_era era)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);
	u32 room = skb && skb->len < size_goal ? size_goal - skb->len : 0;
	bool merge = false;

	if (room && tcp_skb_can_collapse_to(skb)) {
		unsigned int i = shinfo_read(skb, nr_frags);

		merge = skb_can_coalesce(skb, i, page, off);
		if (!merge && i >= sk->max_skb_frags) {
			tcp_mark_push(skb);
			room = 0;
		}
	} else {
		room = 0;
	}
	if (!room) {
		if (!sk_stream_memory_free(sk))
			return NULL;
		skb = tcp_stream_alloc_skb(sk, era);
		if (unlikely(!skb))
			return NULL;
		tcp_skb_entail(sk, skb);
		room = size_goal;
	}
	*size = min(*size, room);
	tcp_append_page(sk, skb, page, off, *size, merge, era);
	return skb;
}

static __always_inline int do_tcp_send_fin(struct sock *sk, const enum skb_era era)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (!skb) {
		skb = tcp_stream_alloc_skb(sk, era);
		if (unlikely(!skb))
			return -ENOMEM;
		tcp_skb_entail(sk, skb);
	}
	TCP_SKB_CB(skb)->tcp_flags |= TCPHDR_FIN;
	TCP_SKB_CB(skb)->end_seq++;
	sk->write_seq++;
	sk->sk_shutdown |= SEND_SHUTDOWN;
	return 0;
}

#define INSTANTIATE(suffix, era)                                                                   \
	int tcp_sendmsg_##suffix(struct sock *sk, const void *from, u32 len)                       \
	{                                                                                          \
		return do_tcp_sendmsg(sk, from, len, false, NULL, NULL, era);                      \
	}                                                                                          \
	int tcp_sendmsg_in_place_##suffix(struct sock *sk, u32 len)                                \
	{                                                                                          \
		return do_tcp_sendmsg(sk, NULL, len, true, NULL, NULL, era);                       \
	}                                                                                          \
	struct sk_buff *tcp_build_frag_##suffix(struct sock *sk, u32 size_goal, struct page *page, \
						u32 off, u32 *size)                                \
	{                                                                                          \
		return do_tcp_build_frag(sk, size_goal, page, off, size, era);                     \
	}                                                                                          \
	int tcp_send_fin_##suffix(struct sock *sk)                                                 \
	{                                                                                          \
		return do_tcp_send_fin(sk, era);                                                   \
	}
SKB_FOR_EACH_ERA(INSTANTIATE)

#define INSTANTIATE_ZEROCOPY(suffix, era)                                                     \
	int tcp_sendmsg_zerocopy_##suffix(struct sock *sk, const struct skb_user_pages *from, \
					  u32 len, struct ubuf_info *uarg)                    \
	{                                                                                     \
		return do_tcp_sendmsg(sk, NULL, len, false, from, uarg, era);                 \
	}
INSTANTIATE_ZEROCOPY(6_1, ERA_6_1)
INSTANTIATE_ZEROCOPY(6_12, ERA_6_12)
