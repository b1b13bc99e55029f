/* SPDX-License-Identifier: MIT */
/*
 * A receive ring and the softirq behind it: from pages that a NIC has filled to tcp_v4_rcv().
 *
 * Kernel: a driver's clean_rx_irq() (mlx5, ixgbe, bnxt are the three shapes below), napi_poll(),
 * dev_gro_receive(), inet_gro_receive(), tcp_gro_receive(), ip_rcv(). Pages are posted to the NIC
 * and come back in their order: a page lies as many frames deep in the ring as the ring is long
 * between its allocation and its delivery, which is what makes an allocator's hot lists cold.
 *
 *   driver            head                              payload
 *   RX_HEADER         an object, the headers copied     the page's bytes behind them
 *   RX_HEADER_SPLIT   an object, the headers copied     a page from its first byte: the NIC has put
 *                     from a buffer of the ring         the headers elsewhere
 *   RX_HEAD_FRAG      the page itself (build_skb())     in the head
 *
 *   A ring is its softirq's alone. rx_poll() delivers to sockets: what tcp_v4_rcv() says of who may
 * run beside holds for it.
 *
 * What is fake: nobody writes a payload, it is what lies in the page (a NIC's DMA would have put it
 * there). Headers lie in every page and buffer before the first frame comes (rx_ring_prime()); only
 * the sequence number and the flags are stored for each frame, by the softirq, on a line that it
 * reads anyway. No interrupts, no descriptors, no IOMMU, no checksums; of GRO's buckets each holds
 * one sk_buff.
 */
#ifndef TCP_RX_RING_H
#define TCP_RX_RING_H

#include "skb/page_alloc.h"
#include "skb/skb_gro.h"
#include "tcp/tcp_rx.h"

#define RX_RING_MIN  1024 /* frames: less would bring a page back while it is warm */
#define RX_HDR_BYTES 128 /* of a split header's buffer */
#define RX_HASH	     8 /* buckets of GRO */

enum rx_driver { RX_HEADER, RX_HEADER_SPLIT, RX_HEAD_FRAG, RX_DRIVER_NR };

/* Where pages come from; NULL functions of a ring's are never called. */
struct rx_pages {
	struct page *(*get)(void *ctx);
	void (*put)(void *ctx, struct page *page); /* one that was not delivered */
	void *ctx;
	bool recycle; /* a page_pool's: sk_buffs bring them back */
};

struct rx_ring {
	struct page **page; /* posted, from `next` on */
	u8 (*header)[RX_HDR_BYTES]; /* RX_HEADER_SPLIT */
	u32 mask;
	u32 next; /* the frame that comes next */
	u32 posted; /* behind the last page that is there */
	struct rx_pages from;
};

/* One stream of segments as it comes in. */
struct rx_flow {
	struct inet_tuple tuple;
	u32 seq; /* of the next segment */
	u16 mss;
};

struct rx_napi {
	struct rx_ring ring;
	struct sk_buff *(*build)(struct rx_napi *n, const struct rx_flow *f, u8 flags);
	struct sk_buff *held[RX_HASH]; /* GRO */
	unsigned int gro_max_size;
	struct net *net;
	enum rx_driver driver;
	/* What the softirq did, its own to read. */
	u64 segs, packets; /* taken from the ring; handed to tcp_v4_rcv() */
	u64 refused; /* of those, no socket was there */
	u64 flushed, most_flushed; /* sk_buffs freed for others: in all, and at once */
};

/*
 * N with SIZE (a power of two, at least RX_RING_MIN) pages of FROM (NULL: the page allocator)
 * posted, DRIVER's shape and GRO up to GRO_MAX_SIZE bytes. 0; -EINVAL; -ENOMEM, nothing is left
 * behind. On an attached CPU, whose pages they are.
 */
int rx_napi_init(enum skb_era era, struct rx_napi *n, struct net *net, enum rx_driver driver,
		 u32 size, const struct rx_pages *from, unsigned int gro_max_size);

/* Takes the pages back; what GRO holds is freed. */
void rx_napi_exit(enum skb_era era, struct rx_napi *n);

/*
 * Writes FLOW's headers into every free page of node NID (NUMA_NO_NODE: the calling CPU's), where a
 * frame of DRIVER's has them. Takes the whole zone for a moment: for the start. What a page_pool
 * holds by then is not free: this comes before such a ring is filled.
 */
void rx_pages_prime(enum rx_driver driver, const struct rx_flow *flow, int nid);

/*
 * The same, and every page and buffer of N, so that a frame of any page is one of FLOW's. A frame of
 * another flow has its ports rewritten as it comes.
 */
void rx_ring_prime(struct rx_napi *n, const struct rx_flow *flow);

/* Bytes from the start of a page to its frame's payload. */
unsigned int rx_payload_offset(enum rx_driver driver);

/* The page of the frame that comes AHEAD frames after the next one: where a NIC would write. */
struct page *rx_ring_page(const struct rx_napi *n, u32 ahead);

TCP_RX_DECLARE(void, rx_poll, struct rx_napi *n, struct rx_flow *flow, unsigned int segs,
	       bool push);

/*
 * One round of the softirq: SEGS segments of FLOW come out of the ring, are merged, and delivered
 * when they are complete (the last one of PUSH ends the packet, as a sender's PSH does); then what
 * the CPU lists hold for this CPU is freed (net_rx_action()), the ring is filled up, and RCU is told.
 * BUG if the ring runs dry or memory is short: the caller sees to both.
 */
static __always_inline void rx_poll(const enum skb_era era, const enum tcp_defer defer,
				    struct rx_napi *n, struct rx_flow *flow, unsigned int segs,
				    bool push)
{
	TCP_RX_CALL(era, defer, rx_poll, n, flow, segs, push);
}

#endif
