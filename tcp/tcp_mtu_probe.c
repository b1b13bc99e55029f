/* SPDX-License-Identifier: MIT */
/*
 * tcp_mtu_probe(): see tcp_mtu_probe.h.
 *
 *                 3.4                  6.1                      6.12
 *   size          twice the MSS        the middle of what is    the same
 *                                      still possible
 *   its bytes     are copied into a head that has room          stay where they are: references
 *                                                               on their pages (since 6.5)
 *
 * What is eaten whole is freed; of the last one the head is trimmed, which has no clone yet, and its
 * charge stays: what the probe is charged for comes on top until both are acknowledged.
 *
 * MPTCP: the probe shares the map of its first bytes, frozen, whatever the variant (the patch of 2020
 * kept this copy): no byte is added to a map that two sk_buffs share.
 *
 * Left out: a search that begins anew after ten minutes, the sysctls, timestamps that applications
 * asked for. A user's own pages (MSG_ZEROCOPY) take no part in a probe of references, which would not
 * hold their ubuf_info.
 */
#include "tcp/tcp_mtu_probe.h"

#include "skb/skb_head.h"

#include <errno.h>

int tcp_mtup_init(struct sock *sk, u32 header_len, u32 low, u32 high)
{
	if (low <= header_len || low > high)
		return -EINVAL;
	sk->mtup.enabled = true;
	sk->mtup.header_len = header_len;
	sk->mtup.search_low = low;
	sk->mtup.search_high = high;
	sk->mtup.probe_size = 0;
	sk->mss_cache = tcp_mtu_to_mss(sk, low);
	return 0;
}

void tcp_mtup_probe_success(struct sock *sk)
{
	u32 mtu = sk->mtup.probe_size;

	/* The congestion window is in segments: fewer, of the larger size. */
	sk->snd_cwnd = max(1u, (u32)((u64)sk->snd_cwnd * tcp_mss_to_mtu(sk, sk->mss_cache) / mtu));
	sk->mtup.search_low = mtu;
	sk->mtup.probe_size = 0;
	sk->mss_cache = tcp_mtu_to_mss(sk, mtu);
}

void tcp_mtup_probe_failed(struct sock *sk)
{
	if (!sk->mtup.probe_size)
		return;
	sk->mtup.search_high = sk->mtup.probe_size - 1;
	sk->mtup.probe_size = 0;
}

/* Payload of the next probe; 0: what could be found is not worth one. */
static __always_inline u32 tcp_probe_len(const struct sock *sk, const enum skb_era era)
{
	u32 low = sk->mtup.search_low, high = sk->mtup.search_high, len;

	if (era >= ERA_6_1 && high - low < TCP_PROBE_THRESHOLD)
		return 0;
	len = era < ERA_6_1 ? 2 * sk->mss_cache : tcp_mtu_to_mss(sk, (high + low) / 2);
	return len > tcp_mtu_to_mss(sk, high) ? 0 : len;
}

/* True if the first LEN bytes of the write queue lie in frags that only the sk_buffs themselves hold. */
static __always_inline bool tcp_head_is_referable(const struct sock *sk, u32 len)
{
	const struct sk_buff *skb = skb_peek(&sk->sk_write_queue);

	while (true) {
		if (skb_headlen(skb) || skb_zcopy(skb))
			return false;
		if (skb->len >= len)
			return true;
		len -= skb->len;
		skb = skb->next;
	}
}

/*
 * The first LEN bytes of the write queue become frags of TO, which is empty. Pieces that lie one
 * behind the other are one frag. False: too many, and TO is as before.
 */
static __always_inline bool tcp_clone_payload(struct sock *sk, struct sk_buff *to, u32 len)
{
	const struct sk_buff *skb = skb_peek(&sk->sk_write_queue);
	unsigned int n = 0;
	u32 left = len;

	for (; left; skb = skb->next) {
		for (int i = 0; i < shinfo_read(skb, nr_frags) && left; i++) {
			const skb_frag_t *from = &skb_shinfo(skb)->frags[i];
			skb_frag_t *last = n ? &skb_shinfo(to)->frags[n - 1] : NULL;
			u32 take = min(left, from->len);

			left -= take;
			if (last && last->page == from->page &&
			    last->offset + last->len == from->offset) {
				last->len += take;
				continue;
			}
			if (n == min(sk->max_skb_frags, (unsigned int)MAX_SKB_FRAGS)) {
				shinfo_write(to, nr_frags, 0);
				return false;
			}
			skb_fill_page_desc(to, n++, from->page, from->offset, take);
		}
	}
	for (unsigned int i = 0; i < n; i++)
		skb_frag_ref(to, i);
	to->len += len;
	to->data_len += len;
	to->truesize += len;
	return true;
}

/* The first LEN bytes of the write queue, copied into the head of TO. */
static __always_inline void tcp_copy_payload(struct sock *sk, struct sk_buff *to, u32 len)
{
	const struct sk_buff *skb = skb_peek(&sk->sk_write_queue);

	for (; len; skb = skb->next) {
		u32 copy = min(len, skb->len);

		__skb_copy_bits(skb, 0, skb_put(to, copy), copy);
		len -= copy;
	}
}

/* An sk_buff of the first LEN bytes of the write queue, in no queue and not charged. NULL: none. */
static __always_inline struct sk_buff *tcp_probe_alloc(struct sock *sk, u32 len,
						       const enum skb_era era)
{
	bool refer = era >= ERA_6_12;
	struct sk_buff *skb;

	if (refer && !tcp_head_is_referable(sk, len))
		return NULL;
	skb = alloc_skb_fclone(era, (refer ? 0 : len) + MAX_TCP_HEADER, sk->node);
	if (unlikely(!skb))
		return NULL;
	skb_reserve(skb, MAX_TCP_HEADER);
	skb->headers.ip_summed = CHECKSUM_PARTIAL;
	if (!refer) {
		tcp_copy_payload(sk, skb, len);
	} else if (!tcp_clone_payload(sk, skb, len)) {
		kfree_skb(era, skb);
		return NULL;
	}
	skb_anchor_init(era, skb);
	__skb_header_release(skb);
	return skb;
}

/* PROBE, which stands before them, has the first LEN bytes: they leave the write queue behind it. */
static __always_inline void tcp_probe_eat(struct sock *sk, struct sk_buff *probe, u32 len,
					  const enum skb_era era, const enum tcp_trim trim)
{
	struct tcp_skb_cb *to = TCP_SKB_CB(probe);

	while (len) {
		struct sk_buff *skb = probe->next;
		struct tcp_skb_cb *from = TCP_SKB_CB(skb);
		u32 eat = min(len, skb->len);

		len -= eat;
		if (eat == skb->len) {
			to->tcp_flags |= from->tcp_flags;
			to->eor = from->eor;
			__skb_unlink(skb, &sk->sk_write_queue);
			tcp_wmem_free_skb(era, sk, skb);
			continue;
		}
		to->tcp_flags |= from->tcp_flags & ~(TCPHDR_FIN | TCPHDR_PSH);
		__pskb_trim_head(skb, eat);
		from->seq += eat;
		tcp_set_skb_tso_segs(era, trim, skb, sk->mss_cache);
	}
}

static __always_inline int tcp_probe_send(struct sock *sk, u32 len, const enum skb_era era,
					  const enum tcp_trim trim)
{
	struct sk_buff *head = skb_peek(&sk->sk_write_queue), *probe;
	struct tcp_skb_cb *tcb;

	probe = tcp_probe_alloc(sk, len, era);
	if (!probe)
		return -1;
	sk_wmem_schedule(era, sk, probe->truesize);
	sk_wmem_queued_add(sk, probe->truesize);
	sk_mem_charge(sk, probe->truesize);

	tcb = TCP_SKB_CB(probe);
	tcb->seq = TCP_SKB_CB(head)->seq;
	tcb->end_seq = tcb->seq + len;
	tcb->tcp_flags = TCPHDR_ACK;
	if (era >= ERA_6_1)
		mptcp_skb_ext_copy(probe, head);
	__skb_queue_after(&sk->sk_write_queue, (struct sk_buff *)&sk->sk_write_queue, probe);
	tcp_probe_eat(sk, probe, len, era, trim);
	tcp_set_skb_tso_segs(era, trim, probe, len);

	if (tcp_transmit_skb(era, trim, sk, probe) < 0)
		return -1;
	tcp_event_new_data_sent(sk, probe, era);
	sk->snd_cwnd--; /* it is as two packets to the path */
	sk->mtup.probe_size = tcp_mss_to_mtu(sk, len);
	sk->mtup.probe_seq_start = tcb->seq;
	sk->mtup.probe_seq_end = tcb->end_seq;
	return 1;
}

static __always_inline int do_tcp_mtu_probe(struct sock *sk, const enum skb_era era,
					    const enum tcp_trim trim)
{
	u32 in_flight = tcp_packets_in_flight(sk), len, needed;

	if (sk->mtup.probe_size || sk->snd_cwnd < TCP_PROBE_MIN_CWND || sk->sacked_out ||
	    sk->lost_out || sk->retrans_out)
		return -1;
	len = tcp_probe_len(sk, era);
	needed = len + (TCP_PROBE_REORDERING + 1) * sk->mss_cache;
	if (!len || sk->write_seq - sk->snd_nxt < needed || sk->snd_wnd < needed)
		return -1;
	if (after(sk->snd_nxt + needed, sk->snd_una + sk->snd_wnd))
		return 0;
	if (in_flight + 2 > sk->snd_cwnd)
		return in_flight ? 0 : -1;
	if (!tcp_can_coalesce_send_queue_head(sk, len))
		return -1;
	return tcp_probe_send(sk, len, era, trim);
}

#define INSTANTIATE(suffix, era, trim)                  \
	int tcp_mtu_probe_##suffix(struct sock *sk)     \
	{                                               \
		return do_tcp_mtu_probe(sk, era, trim); \
	}
TCP_FOR_EACH_SPLIT(INSTANTIATE)
