/* SPDX-License-Identifier: MIT */
/*
 * A TCP socket: its layout, its queues, and how it accounts for memory.
 *
 * Kernel: include/net/sock.h, include/linux/tcp.h, net/core/sock.c. Who may touch what:
 *
 *   the holder of the socket lock      everything that is not named below (sock_lock.h tells who
 *                                      holds it: a reader, or a softirq that found no reader)
 *   the holder of sk_lock.slock        sk_lock.owned and waiters, the sk_backlog but for rmem_alloc
 *   any CPU                            sk_refcnt, sk_rmem_alloc, defer_list (its llist rules),
 *                                      sk_wmem_alloc and sk_tsq_flags (transmit completions)
 *   any CPU may read                   what a lookup compares, in the first line, until a grace
 *                                      period after the socket left the hash; the tail of the
 *                                      receive queue and of the backlog, as a hint
 *
 *   sk_wmem_queued    sum of truesize in the write and the retransmit queue; as much is charged, but
 *                     for an sk_buff of zerocopy alone what its shell and head cost
 *   sk_forward_alloc  bytes that the protocol granted and nothing uses yet
 *   sk_wmem_alloc     1 + sum of truesize of clones below TCP
 *   sk_rmem_alloc     sum of truesize in the receive queue
 *   sk_backlog.len    at least the sum of truesize in the backlog
 *
 * The protocol's counter is one atomic word up to 5.x; since 6.0 each CPU keeps up to 1 MB of
 * changes to itself.
 */
#ifndef TCP_SOCK_H
#define TCP_SOCK_H

#include "skb/cpu.h"
#include "skb/page_frag.h"
#include "skb/skb_zcopy.h"

#include <urcu/rculfhash.h>

struct net;
struct tx_ring;

struct sk_buff_head {
	struct sk_buff *next, *prev; /* as an sk_buff's first two words */
	u32 qlen;
};

#define SK_MEMORY_PCPU_RESERVE (1 << (20 - PAGE_SHIFT)) /* pages */

/* Memory of all sockets of one protocol. */
struct proto_memory {
	atomic_long_t memory_allocated ____cacheline_aligned; /* pages */
	struct {
		int fw_alloc; /* pages that this CPU has not told yet */
	} ____cacheline_aligned per_cpu[SKB_NR_CPUS];
};

#define TSQF_THROTTLED 1UL /* sends again when a completion makes room */
#define TSQF_QUEUED    2UL

/* Who may change the socket: sock_lock.h. */
typedef struct {
	spinlock_t slock; /* short: a softirq while it delivers, a reader while it takes or gives */
	int owned; /* a reader works on the socket; slock is free meanwhile */
	int waiters; /* readers that sleep until it is not */
	unsigned int wake_seq; /* what they sleep on */
	unsigned long room[2]; /* the kernel's wait queue is that much longer */
} socket_lock_t;

/* What the peer learns from an ACK, in one word, so that it is read whole. */
struct tcp_ack_out {
	u64 ack_wnd; /* high half: the next byte expected; low half: bytes of window behind it */
	u64 nr; /* ACKs sent so far */
};

/*
 * The receive half keeps the kernel's false sharing: which fields lie on a line together are those
 * of Debian's 6.1 (offsets there are given), with the 2021 patch's defer_list behind the backlog.
 * The lock shares its line with the reference count; rmem_alloc, which each charge changes, with
 * the queue and the backlog; the backlog's tail with forward_alloc.
 */
struct sock {
	/* sock_common: what a lookup compares; written while nobody can find the socket */
	u64 skc_addrpair ____cacheline_aligned; /* the peer's address, the own one */
	u32 skc_portpair;
	u8 skc_state; /* TCP_ESTABLISHED, TCP_CLOSE */
	bool sk_hashed; /* its owner's: it is in the table */
	struct net *sk_net;
	struct cds_lfht_node ehash_node;
	void (*sk_data_ready)(struct sock *sk);
	int (*sk_backlog_rcv)(struct sock *sk, struct sk_buff *skb);

	refcount_t sk_refcnt ____cacheline_aligned; /* @128 */
	u32 room_incoming[5];
	socket_lock_t sk_lock; /* @152 */
	atomic_t sk_drops; /* @184 */
	int sk_rcvlowat; /* @188 */

	struct sk_buff_head sk_error_queue ____cacheline_aligned; /* @192, unused */
	struct sk_buff_head sk_receive_queue; /* @216 */
	struct {
		atomic_t rmem_alloc; /* @240 */
		int len;
		struct sk_buff *head;
		struct sk_buff *tail; /* @256: the next line */
	} sk_backlog;
	struct llist_head defer_list; /* sk_llist: consumed, to be freed once the lock is gone */
	int sk_forward_alloc; /* @264, the patch makes it 272 */
	u32 room_reserved[3];
	int sk_rcvbuf; /* @280, the patch makes it 288 */
	struct {
		atomic_t sleepers; /* readers that sleep until data is there */
		atomic_t seq; /* what they sleep on */
	} sk_wq;

	/* tcp_sock: for each segment */
	u32 pred_flags ____cacheline_aligned; /* the header that the fast path expects; 0: none */
	u16 tcp_header_len;
	u32 segs_in, data_segs_in;
	u64 bytes_received;
	u32 rcv_nxt; /* the next byte expected */
	u32 copied_seq; /* the next byte that the reader gets */
	u32 rcv_wup; /* rcv_nxt when the last ACK was sent */
	u32 rcv_wnd; /* the window told with it */

	/* tcp_sock: for ACKs and windows */
	u32 window_clamp ____cacheline_aligned; /* the largest window to tell */
	u32 rcv_ssthresh; /* and the largest at the moment */
	struct {
		u8 pending; /* ICSK_ACK_* */
		u16 rcv_mss; /* what the peer's segments seem to be */
	} icsk_ack;
	u8 rcv_wscale;

	/* what the last ACK told: the peer's CPU reads it */
	struct tcp_ack_out ack_out ____cacheline_aligned;

	/* what completions on other CPUs change */
	refcount_t sk_wmem_alloc ____cacheline_aligned;
	unsigned long sk_tsq_flags;

	/* the lock holder's */
	int sk_wmem_queued ____cacheline_aligned;
	int sk_sndbuf;
	int node; /* where sk_buffs and pages come from; NUMA_NO_NODE: the sender's CPU */
	struct proto_memory *prot;
	struct tx_ring *ring;
	struct sk_buff_head sk_write_queue; /* not sent yet */
	struct sk_buff_head tcp_rtx_queue; /* sent, in sequence order (the kernel's is a tree) */
	struct page_frag sk_frag;
	unsigned int frag_order; /* of the page frag: 0 or SKB_FRAG_PAGE_ORDER */
	unsigned int max_skb_frags;

	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u32 snd_wnd;
	u32 snd_cwnd; /* segments that may be on their way: whoever controls congestion sets it */
	u32 mss_cache;
	u32 gso_max_size;
	u32 packets_out; /* segments sent and not acknowledged */
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 delivered; /* segments acknowledged, by a SACK or an ACK: each once */
	u8 sk_shutdown; /* SEND_SHUTDOWN: a FIN is queued; RCV_SHUTDOWN: one was received */
	bool autocork; /* tcp_push() may wait for a completion */

	/* larger packets are tried (tcp_mtu_probe.h); sizes are MTUs */
	struct {
		bool enabled;
		u32 header_len; /* of each packet, IP's and TCP's with options */
		u32 search_low, search_high; /* what gets through, what may */
		u32 probe_size; /* of the probe on its way, 0: none */
		u32 probe_seq_start, probe_seq_end; /* its bytes */
	} mtup;

	/* a subflow of MPTCP: what its options are made of (mptcp_options.h) */
	struct {
		bool on;
		bool data_fin; /* the stream ends in front of data_fin_seq */
		u32 isn; /* subflow sequence numbers count from here */
		u64 data_ack;
		u64 data_fin_seq;
	} mptcp;
};

#define sk_rmem_alloc sk_backlog.rmem_alloc

#define SOCK_ON_LINE(field, at)                                                                  \
	_Static_assert(offsetof(struct sock, field) % SMP_CACHE_BYTES == (at) % SMP_CACHE_BYTES, \
		       #field " is at " #at " in 6.1")
#define SOCK_SAME_LINE(a, b)                                               \
	_Static_assert(offsetof(struct sock, a) / SMP_CACHE_BYTES ==       \
			       offsetof(struct sock, b) / SMP_CACHE_BYTES, \
		       #a " and " #b " share a line")
SOCK_ON_LINE(sk_refcnt, 128);
SOCK_ON_LINE(sk_lock, 152);
SOCK_ON_LINE(sk_drops, 184);
SOCK_ON_LINE(sk_receive_queue, 216);
SOCK_ON_LINE(sk_backlog.rmem_alloc, 240);
SOCK_ON_LINE(sk_backlog.tail, 256);
SOCK_ON_LINE(defer_list, 264);
SOCK_ON_LINE(sk_forward_alloc, 272);
SOCK_ON_LINE(sk_rcvbuf, 288);
SOCK_SAME_LINE(sk_refcnt, sk_lock);
SOCK_SAME_LINE(sk_receive_queue, sk_backlog.rmem_alloc);
SOCK_SAME_LINE(sk_backlog.tail, sk_forward_alloc);
SOCK_SAME_LINE(skc_addrpair, sk_backlog_rcv);
SOCK_SAME_LINE(pred_flags, rcv_wnd);

#define TCP_ESTABLISHED 1
#define TCP_CLOSE	7
#define RCV_SHUTDOWN	1

#define TCP_MSS_ETHERNET  1448
#define GSO_LEGACY_MAX	  65536
#define TCP_GSO_MAX_SIZE  (GSO_LEGACY_MAX - 1 - MAX_TCP_HEADER)
#define TCP_MIN_GSO_SIZE  8 /* the smallest payload of a segment that a peer may ask for */
#define TCP_MAX_SEGS	  65535 /* of one sk_buff: the count has 16 bits */
#define SEND_SHUTDOWN	  2
#define TCP_INFINITE_CWND (1U << 30) /* no congestion window */

/*
 * A connected socket at sequence number 1 that sends into RING: MSS 1448, no limit by windows, send
 * buffer 16 MB, page frags of FRAG_ORDER, no probes for a larger MTU. The caller owns SK, PROT and RING, which outlive it.
 * It receives once tcp_rx_init() (tcp_rx.h) has said how.
 */
void tcp_sock_init(struct sock *sk, struct proto_memory *prot, struct tx_ring *ring,
		   unsigned int frag_order);

/*
 * Frees what the queues hold and the page frag, and gives the granted memory back. Clones may still
 * be below TCP: their completions need SK until sk_wmem_alloc is 1.
 */
void tcp_sock_destroy(const enum skb_era era, struct sock *sk);

/* Bytes that the protocol has granted to all of its sockets; exact when no CPU runs. */
long proto_memory_bytes(const struct proto_memory *prot);

/*
 * --- queues
 * -----------------------------------------------------------------------------------------------
 */

static __always_inline void skb_queue_init(struct sk_buff_head *q)
{
	q->next = q->prev = (struct sk_buff *)q;
	q->qlen = 0;
}

static __always_inline bool skb_queue_is_end(const struct sk_buff_head *q,
					     const struct sk_buff *skb)
{
	return skb == (const struct sk_buff *)q;
}

static __always_inline struct sk_buff *skb_peek(const struct sk_buff_head *q)
{
	return q->next == (const struct sk_buff *)q ? NULL : q->next;
}

static __always_inline struct sk_buff *skb_peek_tail(const struct sk_buff_head *q)
{
	return q->prev == (const struct sk_buff *)q ? NULL : q->prev;
}

static __always_inline void __skb_queue_after(struct sk_buff_head *q, struct sk_buff *prev,
					      struct sk_buff *skb)
{
	skb->prev = prev;
	skb->next = prev->next;
	prev->next->prev = skb;
	prev->next = skb;
	q->qlen++;
}

static __always_inline void __skb_queue_tail(struct sk_buff_head *q, struct sk_buff *skb)
{
	__skb_queue_after(q, q->prev, skb);
}

static __always_inline void __skb_unlink(struct sk_buff *skb, struct sk_buff_head *q)
{
	q->qlen--;
	skb->next->prev = skb->prev;
	skb->prev->next = skb->next;
	skb->next = skb->prev = NULL;
}

/*
 * 4.15 and later keep sent sk_buffs in a second list besides the queue; its anchor overlays route
 * and destructor, which an sk_buff in a queue of TCP therefore has not.
 */
static __always_inline bool skb_anchored(const enum skb_era era)
{
	return era >= ERA_6_1;
}

static __always_inline void skb_anchor_init(const enum skb_era era, struct sk_buff *skb)
{
	if (skb_anchored(era))
		skb->tcp_tsorted_anchor.next = skb->tcp_tsorted_anchor.prev =
			&skb->tcp_tsorted_anchor;
}

/* Out of the queue it may have a destructor again; it has none. */
static __always_inline void skb_anchor_cleanup(const enum skb_era era, struct sk_buff *skb)
{
	if (skb_anchored(era))
		skb->destructor = NULL;
}

/*
 * --- memory
 * -----------------------------------------------------------------------------------------------
 */

static __always_inline int sk_mem_pages(int bytes)
{
	return (bytes + (int)PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* PAGES more (or, negative, fewer) for the protocol. */
static __always_inline void sk_memory_allocated_add(const enum skb_era era, struct sock *sk,
						    int pages)
{
	struct proto_memory *prot = sk->prot;
	int *local = &prot->per_cpu[smp_processor_id()].fw_alloc;

	if (era < ERA_6_1) {
		atomic_long_add(pages, &prot->memory_allocated, SKB_C_MEM);
		return;
	}
	*local += pages;
	if (unlikely(*local >= SK_MEMORY_PCPU_RESERVE || *local <= -SK_MEMORY_PCPU_RESERVE)) {
		atomic_long_add(*local, &prot->memory_allocated, SKB_C_MEM);
		*local = 0;
	}
}

/*
 * Makes sure that SIZE bytes can be charged. The model has no protocol limit, so that it never
 * fails.
 */
static __always_inline void sk_wmem_schedule(const enum skb_era era, struct sock *sk, int size)
{
	int short_by = size - sk->sk_forward_alloc;

	if (short_by > 0) {
		int pages = sk_mem_pages(short_by);

		sk->sk_forward_alloc += pages << PAGE_SHIFT;
		sk_memory_allocated_add(era, sk, pages);
	}
}

/* The same for what was received. */
static __always_inline void sk_rmem_schedule(const enum skb_era era, struct sock *sk, int size)
{
	sk_wmem_schedule(era, sk, size);
}

static __always_inline void sk_mem_charge(struct sock *sk, int size)
{
	sk->sk_forward_alloc -= size;
}

/*
 * SIZE bytes are free again. Since 6.0 whole pages go back to the protocol at once; 3.4 keeps them.
 */
static __always_inline void sk_mem_uncharge(const enum skb_era era, struct sock *sk, int size)
{
	sk->sk_forward_alloc += size;
	if (era >= ERA_6_1 && sk->sk_forward_alloc >= (int)PAGE_SIZE) {
		int pages = sk->sk_forward_alloc >> PAGE_SHIFT;

		sk->sk_forward_alloc -= pages << PAGE_SHIFT;
		sk_memory_allocated_add(era, sk, -pages);
	}
}

static __always_inline void sk_wmem_queued_add(struct sock *sk, int size)
{
	sk->sk_wmem_queued += size;
}

/* True while the send buffer has room. */
static __always_inline bool sk_stream_memory_free(const struct sock *sk)
{
	return sk->sk_wmem_queued < sk->sk_sndbuf;
}

/* Frees an sk_buff that has just left one of SK's queues, and its charge. */
static __always_inline void tcp_wmem_free_skb(const enum skb_era era, struct sock *sk,
					      struct sk_buff *skb)
{
	bool pure = era >= ERA_6_1 && skb_zcopy_pure(skb);

	skb_anchor_cleanup(era, skb);
	sk_wmem_queued_add(sk, -(int)skb->truesize);
	sk_mem_uncharge(era, sk, pure ? SKB_TRUESIZE(skb_end_offset(skb)) : skb->truesize);
	__kfree_skb(era, skb);
}

#endif
