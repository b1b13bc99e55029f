/* SPDX-License-Identifier: MIT */
#include "skb/skb_check.h"
#include "tcp/tcp.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static int bad(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -1;
}

struct sums {
	long truesize;
	u32 segs, retrans, sacked, lost; /* segments: all, and those with each tag */
	u32 seq; /* where the next sk_buff must start */
	bool started;
};

static int check_queue(const enum skb_era era, const enum tcp_trim trim,
		       const struct sk_buff_head *q, bool sent, struct sums *sum, char *err,
		       size_t errlen)
{
	u32 n = 0;

	for (const struct sk_buff *skb = q->next; !skb_queue_is_end(q, skb); skb = skb->next) {
		const struct tcp_skb_cb *tcb = TCP_SKB_CB(skb);

		if (skb_check(skb, err, errlen))
			return -1;
		if (sum->started && tcb->seq != sum->seq)
			return bad(err, errlen,
				   "an sk_buff starts at %u, the one before ends at %u", tcb->seq,
				   sum->seq);
		if (skb_shinfo(skb)->frag_list)
			return bad(
				err, errlen,
				"an sk_buff of %u bytes, %u of them not linear, has a frag_list: "
				"it cannot be cut, trimmed or shifted",
				skb->len, skb->data_len);
		if (tcb->end_seq != tcb->seq + skb->len + !!(tcb->tcp_flags & TCPHDR_FIN))
			return bad(err, errlen, "seq %u + len %u%s is not end_seq %u", tcb->seq,
				   skb->len, tcb->tcp_flags & TCPHDR_FIN ? " + FIN" : "",
				   tcb->end_seq);
		if (trim == TRIM_OFFSET_ACK && tcb->offset_ack > skb->len)
			return bad(err, errlen, "offset_ack %u is more than len %u",
				   tcb->offset_ack, skb->len);
		if (skb->truesize < skb->len)
			return bad(err, errlen, "truesize %u is less than len %u", skb->truesize,
				   skb->len);
		sum->started = true;
		sum->seq = tcb->end_seq;
		sum->truesize += skb->truesize;
		if (sent) {
			u32 segs = tcp_skb_pcount(era, skb);

			if ((segs > 1) != !!tcp_skb_mss(era, skb))
				return bad(err, errlen, "%u segments of %d bytes", segs,
					   tcp_skb_mss(era, skb));
			sum->segs += segs;
			sum->retrans += tcb->sacked & TCPCB_SACKED_RETRANS ? segs : 0;
			sum->sacked += tcb->sacked & TCPCB_SACKED_ACKED ? segs : 0;
			sum->lost += tcb->sacked & TCPCB_LOST ? segs : 0;
			if (tcb->sacked & TCPCB_SACKED_ACKED && tcb->sacked & TCPCB_LOST)
				return bad(err, errlen, "SACKed and lost: tags %#x", tcb->sacked);
		} else if (tcb->sacked) {
			return bad(err, errlen, "never sent, and tags %#x", tcb->sacked);
		}
		n++;
	}
	if (n != q->qlen)
		return bad(err, errlen, "%u sk_buffs in a queue of %u", n, q->qlen);
	return 0;
}

static int check_count(const char *what, u32 sum, const char *name, u32 count, char *err,
		       size_t errlen)
{
	if (sum == count)
		return 0;
	return bad(err, errlen, "%u segments %s, %s is %u", sum, what, name, count);
}

int tcp_check_sock(const enum skb_era era, const enum tcp_trim trim, const struct sock *sk,
		   char *err, size_t errlen)
{
	const struct sk_buff *first = skb_peek(&sk->tcp_rtx_queue);
	struct sums sum = { 0 };

	if (first && !(after(TCP_SKB_CB(first)->end_seq, sk->snd_una)))
		return bad(err, errlen, "the oldest sk_buff ends at %u, snd_una is %u",
			   TCP_SKB_CB(first)->end_seq, sk->snd_una);
	if (check_queue(era, trim, &sk->tcp_rtx_queue, true, &sum, err, errlen))
		return -1;
	if (sum.started && sum.seq != sk->snd_nxt)
		return bad(err, errlen, "sent up to %u, snd_nxt is %u", sum.seq, sk->snd_nxt);
	if (check_queue(era, trim, &sk->sk_write_queue, false, &sum, err, errlen))
		return -1;
	if (sum.started && sum.seq != sk->write_seq)
		return bad(err, errlen, "queued up to %u, write_seq is %u", sum.seq, sk->write_seq);
	if (sum.truesize != sk->sk_wmem_queued)
		return bad(err, errlen, "truesize in the queues is %ld, sk_wmem_queued %d",
			   sum.truesize, sk->sk_wmem_queued);
	if (check_count("in the queue", sum.segs, "packets_out", sk->packets_out, err, errlen) ||
	    check_count("sent again", sum.retrans, "retrans_out", sk->retrans_out, err, errlen) ||
	    check_count("SACKed", sum.sacked, "sacked_out", sk->sacked_out, err, errlen) ||
	    check_count("lost", sum.lost, "lost_out", sk->lost_out, err, errlen))
		return -1;
	if (sk->sk_forward_alloc < 0)
		return bad(err, errlen, "sk_forward_alloc is %d", sk->sk_forward_alloc);
	return 0;
}
