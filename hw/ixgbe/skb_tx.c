/* SPDX-License-Identifier: MIT */
#include "hw/ixgbe/skb_tx.h"
#include "skb/page_alloc.h"

#include <errno.h>
#include <stdio.h>

int skb_tx_init(struct skb_tx *t, struct ixgbe_txq *q, struct tx_ring *ring,
		const struct flow *flow, char *err, size_t errlen)
{
	size_t pages = 0;

	*t = (struct skb_tx){ .q = q, .ring = ring, .flow = *flow, .seen = ring->tail };
	for (unsigned int node = 0; node < obj_nr_nodes(); node++) {
		struct zone_stats z;

		zone_stats(node, &z);
		pages += z.nr_pages;
	}
	return nicdev_dma_map(q->ix->dev, page_base, pages << PAGE_SHIFT, NICDEV_DMA_READ,
			      &t->pages_iova, err, errlen);
}

void skb_tx_exit(struct skb_tx *t)
{
	nicdev_dma_unmap(t->q->ix->dev, t->pages_iova);
}

static u64 frag_iova(const struct skb_tx *t, const skb_frag_t *frag)
{
	return t->pages_iova + (size_t)((char *)skb_frag_address(frag) - page_base);
}

/* CLONE's linear part, with what TCP leaves empty, as the packet's first buffer. */
static int put_header(struct skb_tx *t, const struct sk_buff *clone, bool tso,
		      struct ixgbe_buf *buf)
{
	u32 linear = skb_headlen(clone);
	u8 *to = ixgbe_tx_header(t->q, &buf->iova);

	if (linear < FLOW_HEADER_BYTES || linear > IXGBE_HEADER_BYTES)
		return -EINVAL;
	skb_memcpy(to, clone->data, linear, SKB_C_HEAD);
	flow_finish(&t->flow, to, clone->len - FLOW_HEADER_BYTES, tso);
	buf->len = linear;
	return 0;
}

static int post(struct skb_tx *t, const struct sk_buff *clone, char *err, size_t errlen)
{
	const u32 nr_frags = shinfo_read(clone, nr_frags), segs = shinfo_read(clone, gso_segs);
	struct ixgbe_buf buf[1 + MAX_SKB_FRAGS];
	u32 bytes = 0;
	struct ixgbe_tx_packet pkt = {
		.buf = buf,
		.nr_bufs = 1 + nr_frags,
		.maclen = FLOW_MAC_BYTES,
		.iplen = FLOW_IP_BYTES,
		.l4len = FLOW_TCP_BYTES,
		.mss = segs > 1 ? shinfo_read(clone, gso_size) : 0,
		.ipv4 = true,
		.csum = true,
	};

	for (u32 i = 0; i < nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(clone)->frags[i];

		buf[1 + i] = (struct ixgbe_buf){ frag_iova(t, frag), frag->len };
		bytes += frag->len;
	}
	/* Lengths that disagree hang a queue. */
	if (bytes != clone->data_len ||
	    clone->data + skb_headlen(clone) != skb_tail_pointer(clone)) {
		snprintf(err, errlen, "an sk_buff whose length is %u, with %u bytes in it",
			 clone->len, (u32)(skb_tail_pointer(clone) - clone->data) + bytes);
		return -EINVAL;
	}
	if (put_header(t, clone, segs > 1, &buf[0])) {
		snprintf(err, errlen, "an sk_buff with %u linear bytes", skb_headlen(clone));
		return -EINVAL;
	}
	return ixgbe_tx_post(t->q, &pkt, err, errlen);
}

int skb_tx_push(struct skb_tx *t, char *err, size_t errlen)
{
	int ret = 0, n = 0;

	while (t->seen != t->ring->tail) {
		ret = post(t, t->ring->slot[t->seen & t->ring->mask], err, errlen);
		if (ret)
			break;
		t->seen++;
		n++;
	}
	ixgbe_tx_kick(t->q);
	return ret && ret != -ENOSPC ? ret : n;
}
