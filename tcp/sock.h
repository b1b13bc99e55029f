/* SPDX-License-Identifier: MIT */
/*
 * The transmit half of a TCP socket, and how it accounts for memory.
 *
 * Kernel: include/net/sock.h, include/linux/tcp.h, net/core/sock.c. All of it belongs to the holder
 * of the socket lock, except sk_wmem_alloc and sk_tsq_flags, which transmit completions change from
 * any CPU.
 *
 *   sk_wmem_queued    sum of truesize in the write and the retransmit queue
 *   sk_forward_alloc  bytes that the protocol granted and nothing uses yet
 *   sk_wmem_alloc     1 + sum of truesize of clones below TCP
 *
 * The protocol's counter is one atomic word up to 5.x; since 6.0 each CPU keeps up to 1 MB of
 * changes to itself.
 */
#ifndef TCP_SOCK_H
#define TCP_SOCK_H

#include "skb/cpu.h"
#include "skb/page_frag.h"
#include "skb/skbuff.h"

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

struct sock {
	/* what completions on other CPUs change */
	refcount_t sk_wmem_alloc ____cacheline_aligned;
	unsigned long sk_tsq_flags;

	/* the lock holder's */
	int sk_wmem_queued ____cacheline_aligned;
	int sk_forward_alloc;
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
	u32 mss_cache;
	u32 gso_max_size;
	u32 packets_out; /* segments sent and not acknowledged */
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 delivered; /* segments acknowledged, by a SACK or an ACK: each once */
	u8 sk_shutdown; /* SEND_SHUTDOWN: a FIN is queued */
};

#define TCP_MSS_ETHERNET 1448
#define GSO_LEGACY_MAX	 65536
#define TCP_GSO_MAX_SIZE (GSO_LEGACY_MAX - 1 - MAX_TCP_HEADER)
#define TCP_MIN_GSO_SIZE 8 /* the smallest payload of a segment that a peer may ask for */
#define TCP_MAX_SEGS	 65535 /* of one sk_buff: the count has 16 bits */
#define SEND_SHUTDOWN	 2

/*
 * A connected socket at sequence number 1 that sends into RING: MSS 1448, no window limit, send
 * buffer 16 MB, page frags of FRAG_ORDER. The caller owns SK, PROT and RING, which outlive it.
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
	skb_anchor_cleanup(era, skb);
	sk_wmem_queued_add(sk, -(int)skb->truesize);
	sk_mem_uncharge(era, sk, skb->truesize);
	__kfree_skb(era, skb);
}

#endif
