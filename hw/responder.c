/* SPDX-License-Identifier: MIT */
#include "hw/responder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACK_FRAME_BYTES FLOW_HEADER_BYTES

static u64 now_ps(const struct responder *r)
{
	return nicdev_now_ps(model_nicdev(r->m));
}

int responder_init(struct responder *r, struct model_82599 *m, const struct responder_params *p,
		   const struct flow *flow, u32 seq, const struct nic_params *timing, u64 rx_dma_ps,
		   char *err, size_t errlen)
{
	u64 fixed;

	memset(r, 0, sizeof(*r));
	r->m = m;
	r->p = *p;
	r->from = *flow;
	r->rng = p->seed;
	r->timer_ps = ~0ull;
	r->ack_wire_ps =
		nic_time_ps(max(ACK_FRAME_BYTES + timing->framing_bytes, timing->min_wire_bytes),
			    timing->wire_mbps);
	fixed = r->ack_wire_ps + rx_dma_ps;
	if (p->rtt_ps < fixed) {
		snprintf(err, errlen,
			 "an RTT of %llu ns does not hold an ACK's wire and DMA time, %llu ns",
			 (unsigned long long)(p->rtt_ps / SIM_PS_PER_NS),
			 (unsigned long long)(fixed / SIM_PS_PER_NS));
		return -EINVAL;
	}
	r->out_ps = (p->rtt_ps - fixed) / 2;
	r->back_ps = p->rtt_ps - fixed - r->out_ps;
	r->way = calloc(RESPONDER_WINDOW, sizeof(*r->way));
	if (!r->way) {
		snprintf(err, errlen, "no memory for %u segments on their way", RESPONDER_WINDOW);
		return -ENOMEM;
	}
	r->first_seq = seq;
	peer_init(&r->peer, p->policy, p->k, seq);
	return 0;
}

void responder_exit(struct responder *r)
{
	free(r->way);
	r->way = NULL;
}

/* splitmix64 */
static u64 jitter_ps(struct responder *r)
{
	u64 z = r->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % (r->p.jitter_ps + 1);
}

static void complain(struct responder *r, const char *what, const struct flow_segment *s)
{
	if (!r->wrong[0])
		snprintf(r->wrong, sizeof(r->wrong),
			 "segment %u: %s (sequence number %u, %u bytes, expected %u)", r->segments,
			 what, s->seq, s->payload, r->peer.rcv_nxt);
}

static void send_ack(struct responder *r)
{
	const struct flow back = flow_reverse(&r->from);
	u8 frame[ACK_FRAME_BYTES];
	u32 len = flow_ack_frame(&back, frame, 1, r->peer.rcv_nxt);

	r->ack_free_ps = max(now_ps(r), r->ack_free_ps) + r->ack_wire_ps;
	r->acks++;
	if (model_receive(r->m, r->ack_free_ps + r->back_ps, r->p.queue, frame, len))
		complain(r, "its ACK is lost for lack of memory", &(struct flow_segment){ 0 });
}

static void timer(void *ctx)
{
	struct responder *r = ctx;

	if (peer_timer(&r->peer, now_ps(r)))
		send_ack(r);
}

static void arrives(void *ctx)
{
	struct responder *r = ctx;
	const struct flow_segment s = r->way[r->head++ % RESPONDER_WINDOW];

	if (r->p.again && s.seq == r->first_seq)
		peer_init(&r->peer, r->p.policy, r->p.k, s.seq);
	if (s.seq != r->peer.rcv_nxt || !s.payload) {
		complain(r, "out of order", &s);
		return;
	}
	r->segments++;
	if (peer_segment(&r->peer, now_ps(r), s.seq + s.payload, s.flags & FLOW_PSH)) {
		send_ack(r);
		return;
	}
	if (r->peer.deadline_ps != ~0ull && r->peer.deadline_ps != r->timer_ps) {
		r->timer_ps = r->peer.deadline_ps;
		model_call_at(r->m, r->timer_ps, timer, r);
	}
}

void responder_partner(void *ctx, const struct model_frame *frame)
{
	struct responder *r = ctx;
	struct flow_segment s = { 0 };
	const char *wrong = flow_parse(&r->from, frame->data, frame->len, &s);

	if (wrong || r->tail - r->head == RESPONDER_WINDOW) {
		complain(r, wrong ? wrong : "too many on their way", &s);
		return;
	}
	r->way[r->tail++ % RESPONDER_WINDOW] = s;
	r->last_in_ps = max(now_ps(r) + r->out_ps + jitter_ps(r), r->last_in_ps);
	model_call_at(r->m, r->last_in_ps, arrives, r);
}
