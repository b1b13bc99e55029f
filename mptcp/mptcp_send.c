/* SPDX-License-Identifier: MIT */
/*
 * mptcp_sendmsg(), mptcp_push_pending(), mptcp_send_fin(): see mptcp.h for what differs.
 *
 * Kernel: net/mptcp/protocol.c, 5.11.
 */
#include "mptcp/mptcp.h"

#include <errno.h>
#include <string.h>

#define DFRAG_ALIGN 8

/*
 * --- data frags
 * ---------------------------------------------------------------------------------
 */

static __always_inline bool dfrag_is_end(const struct mptcp_sock *msk,
					 const struct mptcp_data_frag *dfrag)
{
	return dfrag == (const struct mptcp_data_frag *)&msk->rtx_queue;
}

static __always_inline void dfrag_queue(struct mptcp_sock *msk, struct mptcp_data_frag *dfrag)
{
	dfrag->next = (struct mptcp_data_frag *)&msk->rtx_queue;
	dfrag->prev = msk->rtx_queue.prev;
	dfrag->prev->next = dfrag;
	msk->rtx_queue.prev = dfrag;
}

/* The last data frag, while some wait: what was handed down altogether is not added to. */
static __always_inline struct mptcp_data_frag *mptcp_pending_tail(const struct mptcp_sock *msk)
{
	return msk->first_pending ? msk->rtx_queue.prev : NULL;
}

/* True if the free part of the page goes on where DFRAG, the end of the stream, ends. */
static __always_inline bool mptcp_frag_can_collapse_to(const struct mptcp_sock *msk,
						       const struct mptcp_data_frag *dfrag)
{
	const struct page_frag *pfrag = &msk->pfrag;

	return dfrag && pfrag->page == dfrag->page && pfrag->size > pfrag->offset &&
	       pfrag->offset == (u32)dfrag->offset + dfrag->data_len &&
	       dfrag->data_seq + dfrag->data_len == msk->write_seq;
}

/* A data frag without bytes at the free part of the page; not queued yet. NULL: no memory. */
static __always_inline struct mptcp_data_frag *mptcp_carve_data_frag(struct mptcp_sock *msk)
{
	struct page_frag *pfrag = &msk->pfrag;
	struct mptcp_data_frag *dfrag;
	u32 at;

	/* Room for the frag and some bytes, wherever alignment puts it. */
	if (unlikely(!skb_page_frag_refill(32 + DFRAG_ALIGN + sizeof(*dfrag), pfrag,
					   SKB_FRAG_PAGE_ORDER, msk->ssk->node)))
		return NULL;
	at = ALIGN(pfrag->offset, DFRAG_ALIGN);
	dfrag = (struct mptcp_data_frag *)((char *)page_address(pfrag->page) + at);
	dfrag->data_len = 0;
	dfrag->data_seq = msk->write_seq;
	dfrag->overhead = at - pfrag->offset + sizeof(*dfrag);
	dfrag->offset = at + sizeof(*dfrag);
	dfrag->already_sent = 0;
	dfrag->page = pfrag->page;
	return dfrag;
}

static __always_inline void mptcp_free_dfrag(struct mptcp_data_frag *dfrag)
{
	dfrag->prev->next = dfrag->next;
	dfrag->next->prev = dfrag->prev;
	put_page(dfrag->page); /* the frag lies in it: last */
}

int mptcp_data_acked(struct mptcp_sock *msk, u64 data_ack)
{
	u64 acked = data_ack - msk->snd_una;
	struct mptcp_data_frag *dfrag;

	if ((s64)acked < 0)
		return 0;
	if (acked > msk->snd_nxt - msk->snd_una)
		return -EINVAL;
	msk->snd_una = data_ack;
	while (dfrag = msk->rtx_queue.next, !dfrag_is_end(msk, dfrag)) {
		u64 d = data_ack - dfrag->data_seq;

		if ((s64)d <= 0)
			break;
		if (d < dfrag->data_len) {
			dfrag->data_seq += d;
			dfrag->offset += d;
			dfrag->data_len -= d;
			dfrag->already_sent -= d;
			msk->wmem_queued -= d;
			break;
		}
		BUG_ON(dfrag == msk->first_pending);
		msk->wmem_queued -= dfrag->data_len + dfrag->overhead;
		mptcp_free_dfrag(dfrag);
	}
	return acked;
}

/*
 * --- handing down
 * -------------------------------------------------------------------------------
 */

/* How many of AVAIL bytes from DATA_SEQ the peer's window takes. */
static __always_inline u32 mptcp_check_allowed_size(const struct mptcp_sock *msk, u64 data_seq,
						    u32 avail)
{
	s64 left = (s64)(msk->wnd_end - data_seq);

	return left <= 0 ? 0 : min((u64)left, (u64)avail);
}

/* The map of a new sk_buff that begins with LEN bytes from DATA_SEQ. */
static __always_inline void mptcp_set_map(struct mptcp_sock *msk, struct sk_buff *skb, u64 data_seq,
					  u32 len, bool probe)
{
	struct mptcp_ext *ext = __skb_ext_set(skb, SKB_EXT_MPTCP, msk->cached_ext);

	msk->cached_ext = NULL;
	memset(ext, 0, sizeof(*ext)); /* maps are compared byte by byte */
	ext->data_seq = data_seq;
	ext->subflow_seq = msk->rel_write_seq;
	ext->data_len = len;
	ext->use_map = 1;
	ext->dsn64 = 1;
	ext->frozen = probe;
}

/*
 * Hands down bytes of DFRAG that wait, to one sk_buff. Returns how many; 0: the window is closed
 * (a probe may have gone); negative: no memory, or the subflow's send buffer is full.
 */
static __always_inline int mptcp_sendmsg_frag(struct mptcp_sock *msk, struct mptcp_data_frag *dfrag,
					      const enum skb_era era, const enum mptcp_variant v)
{
	struct sock *ssk = msk->ssk;
	struct sk_buff *tail = skb_peek_tail(&ssk->sk_write_queue), *skb;
	u64 data_seq = dfrag->data_seq + dfrag->already_sent;
	/* Maps have 16 bits; that sizes have more was not thought of when the patch was posted. */
	u32 goal = v == MPTCP_POSTED ? msk->size_goal : min(msk->size_goal, (u32)MPTCP_MAX_MAP);
	u32 avail = goal, bias = 0, size;
	struct mptcp_ext *ext = NULL;
	bool probe = false;

	if (unlikely(!msk->cached_ext)) {
		msk->cached_ext = skb_ext_alloc();
		if (unlikely(!msk->cached_ext))
			return -ENOMEM;
	}
	if (tail) {
		u32 room = mptcp_skb_room(v, goal, tail->len);

		/*
		 * Bytes that are not this map's must not come into this sk_buff: whoever adds them
		 * starts another one.
		 */
		ext = mptcp_get_ext(tail);
		if (room && mptcp_skb_can_collapse_to(data_seq, tail, ext)) {
			avail = room;
			bias = mptcp_has_size_bias(v) ? tail->len : 0;
		} else {
			TCP_SKB_CB(tail)->eor = 1;
		}
	}
	avail = mptcp_check_allowed_size(msk, data_seq, avail);
	if (unlikely(!avail)) {
		if (tail || msk->snd_una != msk->snd_nxt)
			return 0;
		/* Nothing is under way that an answer could come to: one byte that the peer has. */
		probe = true;
		data_seq = msk->snd_una - 1;
		avail = 1;
	}
	size = min(avail, (u32)dfrag->data_len - dfrag->already_sent);
	skb = tcp_build_frag(era, ssk, avail + bias, dfrag->page,
			     dfrag->offset + dfrag->already_sent, &size);
	if (unlikely(!skb))
		return -ENOMEM;
	if (skb == tail) {
		if (mptcp_clears_psh(v))
			TCP_SKB_CB(skb)->tcp_flags &= ~TCPHDR_PSH;
		if (v == MPTCP_POSTED)
			ext->data_len += size;
		else
			BUG_ON(!mptcp_ext_extend(ext, size));
	} else {
		mptcp_set_map(msk, skb, data_seq, size, probe);
	}
	msk->rel_write_seq += size;
	if (unlikely(probe)) {
		tcp_push(era, mptcp_tcp(v), ssk, goal);
		return 0;
	}
	return size;
}

static __always_inline int do_mptcp_push_pending(struct mptcp_sock *msk, const enum skb_era era,
						 const enum mptcp_variant v)
{
	struct mptcp_data_frag *dfrag;
	int sent = 0;

	while ((dfrag = msk->first_pending)) {
		while (dfrag->already_sent < dfrag->data_len) {
			int ret = mptcp_sendmsg_frag(msk, dfrag, era, v);

			if (ret <= 0)
				goto push;
			dfrag->already_sent += ret;
			msk->snd_nxt += ret;
			sent += ret;
		}
		msk->first_pending = dfrag_is_end(msk, dfrag->next) ? NULL : dfrag->next;
	}
push:
	if (sent)
		tcp_push(era, mptcp_tcp(v), msk->ssk, msk->size_goal);
	return sent;
}

/*
 * --- writing
 * ------------------------------------------------------------------------------------
 */

/* Up to LEN bytes of FROM into one data frag. Returns how many; 0: no memory, no room. */
static __always_inline u32 mptcp_write_some(struct mptcp_sock *msk, const char *from, u32 len)
{
	struct mptcp_data_frag *dfrag = mptcp_pending_tail(msk);
	bool collapsed = mptcp_frag_can_collapse_to(msk, dfrag);
	u32 off, charge = 0;

	if (!collapsed) {
		if (msk->wmem_queued >= msk->sndbuf)
			return 0;
		dfrag = mptcp_carve_data_frag(msk);
		if (unlikely(!dfrag))
			return 0;
		charge = dfrag->overhead;
	}
	off = dfrag->offset + dfrag->data_len;
	len = min(len, msk->pfrag.size - off);
	skb_memcpy((char *)page_address(dfrag->page) + off, from, len, SKB_C_PAYLOAD);
	charge += len;
	dfrag->data_len += len;
	msk->pfrag.offset += charge;
	msk->write_seq += len;
	msk->wmem_queued += charge;
	if (!collapsed) {
		get_page(dfrag->page);
		dfrag_queue(msk, dfrag);
		if (!msk->first_pending)
			msk->first_pending = dfrag;
	}
	return len;
}

static __always_inline int do_mptcp_sendmsg(struct mptcp_sock *msk, const char *from, u32 len,
					    const enum skb_era era, const enum mptcp_variant v)
{
	u32 copied = 0, n;

	if (unlikely(msk->closed))
		return -EPIPE;
	while (copied < len && (n = mptcp_write_some(msk, from + copied, len - copied)))
		copied += n;
	if (msk->push_per_write)
		MPTCP_CALL(era, v, mptcp_push_pending, msk);
	return copied || !len ? (int)copied : -EAGAIN;
}

static __always_inline int do_mptcp_send_fin(struct mptcp_sock *msk, const enum skb_era era,
					     const enum mptcp_variant v)
{
	struct sock *ssk = msk->ssk;
	int err;

	if (msk->closed)
		return -EPIPE;
	if (msk->first_pending)
		return -EAGAIN;
	err = tcp_send_fin(era, ssk);
	if (err)
		return err;
	ssk->mptcp.data_fin = true;
	ssk->mptcp.data_fin_seq = msk->write_seq;
	msk->write_seq++;
	msk->snd_nxt++;
	msk->closed = true;
	tcp_push(era, mptcp_tcp(v), ssk, msk->size_goal);
	return 0;
}

#define INSTANTIATE(suffix, era, v)                                                   \
	int mptcp_sendmsg_##suffix(struct mptcp_sock *msk, const void *from, u32 len) \
	{                                                                             \
		return do_mptcp_sendmsg(msk, from, len, era, v);                      \
	}                                                                             \
	int mptcp_push_pending_##suffix(struct mptcp_sock *msk)                       \
	{                                                                             \
		return do_mptcp_push_pending(msk, era, v);                            \
	}                                                                             \
	int mptcp_send_fin_##suffix(struct mptcp_sock *msk)                           \
	{                                                                             \
		return do_mptcp_send_fin(msk, era, v);                                \
	}
MPTCP_FOR_EACH(INSTANTIATE)

/*
 * --- a connection
 * -------------------------------------------------------------------------------
 */

u32 mptcp_mss(u32 mtu, u32 option)
{
	u32 packet = min(mtu, (u32)IP_MAX_PACKET), headers = TCP_IP_BYTES + 12 + option;

	return packet > headers ? packet - headers : 0;
}

u32 mptcp_size_goal(u32 mtu, u32 option)
{
	u32 mss = mptcp_mss(mtu, option);

	return mss ? mptcp_goal_of_mss(mss) : 0;
}

int mptcp_init(struct mptcp_sock *msk, struct sock *ssk, u64 idsn, u32 mtu)
{
	u32 mss = mptcp_mss(mtu, MPTCP_OPTION_BYTES);

	if (!mss)
		return -EINVAL;
	memset(msk, 0, sizeof(*msk));
	msk->ssk = ssk;
	msk->write_seq = msk->snd_nxt = msk->snd_una = idsn;
	msk->wnd_end = idsn + (1ull << 30);
	msk->rtx_queue.next = msk->rtx_queue.prev = (struct mptcp_data_frag *)&msk->rtx_queue;
	msk->size_goal = mptcp_size_goal(mtu, MPTCP_OPTION_BYTES);
	msk->sndbuf = 16 << 20;
	msk->push_per_write = true;
	msk->rel_write_seq = 1;
	ssk->mss_cache = mss;
	ssk->mptcp.on = true;
	ssk->mptcp.isn = ssk->write_seq - 1;
	ssk->mptcp.data_ack = 1;
	return 0;
}

void mptcp_destroy(const enum skb_era era, struct mptcp_sock *msk)
{
	struct mptcp_data_frag *dfrag;

	tcp_sock_destroy(era, msk->ssk);
	while (dfrag = msk->rtx_queue.next, !dfrag_is_end(msk, dfrag)) {
		msk->wmem_queued -= dfrag->data_len + dfrag->overhead;
		mptcp_free_dfrag(dfrag);
	}
	BUG_ON(msk->wmem_queued);
	msk->first_pending = NULL;
	if (msk->cached_ext)
		__skb_ext_put(msk->cached_ext);
	msk->cached_ext = NULL;
	if (msk->pfrag.page)
		put_page(msk->pfrag.page);
	msk->pfrag.page = NULL;
}

const char *mptcp_variant_name(enum mptcp_variant v)
{
	static const char *const names[] = {
		"before", "size_bias", "psh", "split", "posted", "merged", "split_fixed",
	};

	return names[v];
}
