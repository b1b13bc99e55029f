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
	u32 segs, retrans;
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
		if (tcb->end_seq != tcb->seq + skb->len)
			return bad(err, errlen, "seq %u + len %u is not end_seq %u", tcb->seq,
				   skb->len, tcb->end_seq);
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
			sum->segs += tcp_skb_pcount(era, skb);
			if (tcb->sacked & TCPCB_SACKED_RETRANS)
				sum->retrans += tcp_skb_pcount(era, skb);
		}
		n++;
	}
	if (n != q->qlen)
		return bad(err, errlen, "%u sk_buffs in a queue of %u", n, q->qlen);
	return 0;
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
	if (sum.segs != sk->packets_out)
		return bad(err, errlen, "%u segments in the queue, packets_out is %u", sum.segs,
			   sk->packets_out);
	if (sum.retrans != sk->retrans_out)
		return bad(err, errlen, "%u segments retransmitted, retrans_out is %u", sum.retrans,
			   sk->retrans_out);
	if (sk->sk_forward_alloc < 0)
		return bad(err, errlen, "sk_forward_alloc is %d", sk->sk_forward_alloc);
	return 0;
}
