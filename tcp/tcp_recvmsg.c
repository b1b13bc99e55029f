/* SPDX-License-Identifier: MIT */
/*
 * Readers: tcp_recvmsg(), and the two that do not copy.
 *
 * Kernel: tcp_recvmsg_locked(), tcp_read_sock(), tcp_splice_read(), tcp_zerocopy_receive() in
 * net/ipv4/tcp.c, sk_wait_data() in net/core/sock.c, 6.1 and 6.12. Where the list of sk_llist is
 * flushed is 5.17's, with what it missed at first (splice) added. A user's memory is always there,
 * so that nothing says -EFAULT.
 */
#include "skb/page_alloc.h"
#include "skb/skb_datagram.h"
#include "tcp/tcp_rx.h"

#include <string.h>

/*
 * --- waiting for data (tcp_rx_sock.c does the sleeping)
 * --------------------------------------------------------------------------------------
 */

/* The reader gives the socket back until rcv_nxt has moved. A FIN moves it, too. */
static __always_inline void sk_wait_data(struct sock *sk, const enum sock_wait wait)
{
	u32 seen = sk->rcv_nxt;

	release_sock(sk); /* which may have worked off a backlog */
	if (wait == SOCK_WAIT_SPIN) {
		if (sk_nothing_new(sk, seen)) {
			u64 since = sock_ticks();

			while (sk_nothing_new(sk, seen))
				cpu_relax();
			sock_waited += sock_ticks() - since;
		}
	} else {
		__sk_sleep_for_data(sk, seen);
	}
	lock_sock(wait, sk);
}

/* The flush of a reader that has given the socket back. */
static __always_inline void reader_flush(struct sock *sk, const enum skb_era era,
					 const enum tcp_defer defer)
{
	if (defer == TCP_DEFER_SK_LLIST) {
		unsigned int freed = sk_defer_free_flush(era, sk);

		if (freed)
			net_flushed(sk->sk_net, TCP_MIB_FREE_READER, freed);
	}
}

/*
 * --- with a copy
 * --------------------------------------------------------------------------------------
 */

/*
 * The first sk_buff of the queue with bytes at SEQ, or whose FIN is there; *OFFSET is where in it.
 * NULL: nothing. What lies before SEQ stays, since it may only have been peeked at.
 */
static __always_inline struct sk_buff *find_at(const struct sock *sk, u32 seq, u32 *offset)
{
	const struct sk_buff_head *q = &sk->sk_receive_queue;
	struct sk_buff *skb;

	for (skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next) {
		*offset = seq - TCP_SKB_CB(skb)->seq;
		if (*offset < skb->len)
			return skb;
		if (*offset == skb->len && TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN)
			return skb;
	}
	return NULL;
}

static __always_inline int recvmsg_locked(struct sock *sk, void *to, size_t len, int flags,
					  const enum skb_era era, const enum tcp_defer defer,
					  const enum sock_wait wait)
{
	u32 peek_seq = sk->copied_seq, *seq = flags & MSG_PEEK ? &peek_seq : &sk->copied_seq;
	int copied = 0, target;
	u32 offset, used;
	struct sk_buff *skb;

	target = (int)(flags & MSG_WAITALL ? len : min((size_t)sk->sk_rcvlowat, len));
	while (len) {
		skb = find_at(sk, *seq, &offset);
		if (!skb) {
			if (copied >= target && !sk_backlog_pending(sk))
				break;
			if (sk->sk_shutdown & RCV_SHUTDOWN)
				break;
			if (copied >= target) {
				__sk_flush_backlog(sk);
			} else if (flags & MSG_DONTWAIT) {
				copied = copied ? copied : -EAGAIN;
				break;
			} else {
				tcp_cleanup_rbuf(sk, copied);
				if (defer == TCP_DEFER_SK_LLIST)
					net_flushed(sk->sk_net, TCP_MIB_FREE_LOCKED_FLUSH,
						    sk_defer_free_flush(era, sk));
				sk_wait_data(sk, wait);
			}
			continue;
		}
		used = min(skb->len - offset, (u32)min(len, (size_t)INT32_MAX));
		if (used && !(flags & MSG_TRUNC)) {
			skb_copy_datagram(skb, offset, to, used);
			to = (u8 *)to + used;
		}
		skb_store(seq, *seq + used, SKB_C_OTHER);
		copied += (int)used;
		len -= used;
		if (offset + used < skb->len)
			continue;
		if (unlikely(TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN)) {
			skb_store(seq, *seq + 1, SKB_C_OTHER);
			if (!(flags & MSG_PEEK))
				tcp_eat_recv_skb(era, defer, sk, skb);
			break;
		}
		if (!(flags & MSG_PEEK))
			tcp_eat_recv_skb(era, defer, sk, skb);
	}
	tcp_cleanup_rbuf(sk, copied);
	return copied;
}

static __always_inline int do_recvmsg(struct sock *sk, void *to, size_t len, int flags,
				      const enum skb_era era, const enum tcp_defer defer,
				      const enum sock_wait wait)
{
	int ret;

	lock_sock(wait, sk);
	ret = recvmsg_locked(sk, to, min(len, (size_t)INT32_MAX), flags, era, defer, wait);
	release_sock(sk);
	reader_flush(sk, era, defer);
	return ret;
}

/*
 * --- without
 * --------------------------------------------------------------------------------------
 */

/* The same as find_at(), but eats what lies before SEQ: it has been read. */
static __always_inline struct sk_buff *tcp_recv_skb(struct sock *sk, u32 seq, u32 *offset,
						    const enum skb_era era,
						    const enum tcp_defer defer)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&sk->sk_receive_queue))) {
		*offset = seq - TCP_SKB_CB(skb)->seq;
		if (*offset < skb->len || TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN)
			return skb;
		tcp_eat_recv_skb(era, defer, sk, skb);
	}
	return NULL;
}

struct pipe {
	struct tcp_pipe_buffer *buffer;
	unsigned int nr, max;
	bool no_memory;
};

static bool pipe_piece(void *arg, const struct skb_piece *piece)
{
	struct pipe *pipe = arg;
	struct tcp_pipe_buffer *b = &pipe->buffer[pipe->nr];

	if (pipe->nr == pipe->max)
		return false;
	b->len = piece->len;
	if (piece->page) {
		b->page = piece->page;
		b->offset = piece->offset;
		get_page(piece->page);
	} else {
		/* A head may go away under the pipe. */
		if (piece->len > PAGE_SIZE || !(b->page = alloc_pages(0))) {
			pipe->no_memory = true;
			return false;
		}
		b->offset = 0;
		skb_memcpy(page_address(b->page), piece->bytes, piece->len, SKB_C_PAYLOAD);
	}
	pipe->nr++;
	return true;
}

/* What a reader without a copy does at its end: SEQ is read. */
static __always_inline void read_up_to(struct sock *sk, u32 seq, int copied, const enum skb_era era,
				       const enum tcp_defer defer)
{
	u32 offset;

	skb_store(&sk->copied_seq, seq, SKB_C_OTHER);
	if (copied > 0) {
		tcp_recv_skb(sk, seq, &offset, era, defer);
		tcp_cleanup_rbuf(sk, copied);
	}
}

static __always_inline int splice_locked(struct sock *sk, struct pipe *pipe, size_t len,
					 const enum skb_era era, const enum tcp_defer defer)
{
	u32 seq = sk->copied_seq, offset, want, used;
	int copied = 0;
	struct sk_buff *skb;

	while (len && (skb = tcp_recv_skb(sk, seq, &offset, era, defer))) {
		want = offset < skb->len ? min(skb->len - offset, (u32)len) : 0;
		used = skb_walk_pieces(skb, offset, want, pipe_piece, pipe);
		seq += used;
		copied += (int)used;
		len -= used;
		if (used < want || offset + used < skb->len)
			break;
		if (TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN) {
			seq++;
			tcp_eat_recv_skb(era, defer, sk, skb);
			break;
		}
	}
	read_up_to(sk, seq, copied, era, defer);
	if (copied || sk->sk_shutdown & RCV_SHUTDOWN)
		return copied;
	return pipe->no_memory ? -ENOMEM : -EAGAIN;
}

static __always_inline int do_splice_read(struct sock *sk, struct tcp_pipe_buffer *buffer,
					  unsigned int *nr, size_t len, const enum skb_era era,
					  const enum tcp_defer defer, const enum sock_wait wait)
{
	struct pipe pipe = { .buffer = buffer, .max = *nr };
	int ret;

	lock_sock(wait, sk);
	ret = splice_locked(sk, &pipe, min(len, (size_t)INT32_MAX), era, defer);
	release_sock(sk);
	reader_flush(sk, era, defer);
	*nr = pipe.nr;
	return ret;
}

struct mapping {
	struct page **pages;
	unsigned int nr, max;
	u32 skip; /* bytes in front of the next page that can be mapped */
};

static bool map_piece(void *arg, const struct skb_piece *piece)
{
	struct mapping *m = arg;

	if (m->nr == m->max)
		return false;
	if (!piece->page || piece->offset || piece->len != PAGE_SIZE) {
		m->skip = piece->len;
		return false;
	}
	get_page(piece->page);
	m->pages[m->nr++] = piece->page;
	return true;
}

/* Bytes up to the first whole page, or to the end. */
static bool skip_piece(void *arg, const struct skb_piece *piece)
{
	struct mapping *m = arg;

	if (piece->page && !piece->offset && piece->len == PAGE_SIZE)
		return false;
	m->skip += piece->len;
	return true;
}

static __always_inline int do_zerocopy_receive(struct sock *sk, struct page **pages,
					       unsigned int nr, u32 *recv_skip_hint,
					       const enum skb_era era, const enum tcp_defer defer,
					       const enum sock_wait wait)
{
	struct mapping m = { .pages = pages, .max = nr };
	struct sk_buff *skb;
	u32 seq, offset, used = 0;

	lock_sock(wait, sk);
	seq = sk->copied_seq;
	while (m.nr < m.max && (skb = tcp_recv_skb(sk, seq, &offset, era, defer)) &&
	       offset < skb->len) {
		u32 left = skb->len - offset;

		used = skb_walk_pieces(skb, offset, left, map_piece, &m);
		seq += used;
		if (m.skip) {
			m.skip = 0;
			skb_walk_pieces(skb, offset + used, left - used, skip_piece, &m);
			break;
		}
	}
	read_up_to(sk, seq, (int)(m.nr * PAGE_SIZE), era, defer);
	release_sock(sk);
	reader_flush(sk, era, defer);
	*recv_skip_hint = m.skip;
	return (int)m.nr;
}

#define INSTANTIATE_WAIT(name, suffix, era, defer, wait)                                     \
	int tcp_recvmsg_##name##_##suffix(struct sock *sk, void *to, size_t len, int flags)  \
	{                                                                                    \
		return do_recvmsg(sk, to, len, flags, era, defer, wait);                     \
	}                                                                                    \
	int tcp_splice_read_##name##_##suffix(struct sock *sk, struct tcp_pipe_buffer *pipe, \
					      unsigned int *nr, size_t len)                  \
	{                                                                                    \
		return do_splice_read(sk, pipe, nr, len, era, defer, wait);                  \
	}                                                                                    \
	int tcp_zerocopy_receive_##name##_##suffix(struct sock *sk, struct page **pages,     \
						   unsigned int nr, u32 *recv_skip_hint)     \
	{                                                                                    \
		return do_zerocopy_receive(sk, pages, nr, recv_skip_hint, era, defer, wait); \
	}
#define INSTANTIATE(suffix, era, defer)                            \
	INSTANTIATE_WAIT(spin, suffix, era, defer, SOCK_WAIT_SPIN) \
	INSTANTIATE_WAIT(sleep, suffix, era, defer, SOCK_WAIT_SLEEP)
TCP_RX_FOR_EACH(INSTANTIATE)
