/* SPDX-License-Identifier: MIT */
#include "sim/watch.h"
#include "skb/skb_check.h"

#include <string.h>

#define TCP_SEQ_OFFSET (14 + 20 + 4) /* of the sequence number in the frame */

void link_watch_init(struct link_watch *w, const struct sock *sk)
{
	BUG_ON(sk->snd_una != sk->write_seq);
	memset(w, 0, sizeof(*w));
	w->base = w->partial_end = sk->snd_una;
	w->ring_seen = sk->ring->tail;
}

static void hash_word(u64 *hash, u32 word)
{
	*hash = (*hash ^ word) * 0x9e3779b97f4a7c15u;
	*hash ^= *hash >> 29;
}

bool link_watch_sent(struct link_watch *w, const struct sock *sk, struct link_packet *out)
{
	const struct sk_buff *clone;
	u32 seq;

	if (w->ring_seen == sk->ring->tail)
		return false;
	clone = sk->ring->slot[w->ring_seen++ & sk->ring->mask];
	skb_copy_bits(clone, TCP_SEQ_OFFSET, &seq, sizeof(seq));
	out->seq = __builtin_bswap32(seq) - w->base;
	out->bytes = clone->len - WATCH_HEADER_BYTES;
	out->segs = shinfo_read(clone, gso_segs);
	out->mss = out->segs > 1 ? shinfo_read(clone, gso_size) : out->bytes;
	out->nr_desc = 2 + shinfo_read(clone, nr_frags);

	w->n.skbs++;
	w->n.segs += out->segs;
	w->n.payload_bytes += out->bytes;
	w->n.wire_bytes += out->bytes + out->segs * WATCH_FRAME_BYTES;
	hash_word(&w->n.wire_hash, out->seq);
	hash_word(&w->n.wire_hash, out->bytes);
	hash_word(&w->n.wire_hash, out->segs);
	return true;
}

bool link_watch_ack(struct link_watch *w, const enum skb_era era, const struct sock *sk, u32 ack)
{
	const struct sk_buff_head *q = &sk->tcp_rtx_queue;
	bool first;

	w->n.acks++;
	for (const struct sk_buff *skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next) {
		const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

		if (!after(tcb->end_seq, ack))
			continue;
		if (!after(ack, tcb->seq) || tcp_skb_pcount(era, skb) == 1)
			return false;
		w->n.partial_acks++;
		first = w->partial_end != tcb->end_seq;
		w->partial_end = tcb->end_seq;
		if (!first || !skb_cloned(skb))
			return false;
		w->n.races++;
		return true;
	}
	return false;
}
