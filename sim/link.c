/* SPDX-License-Identifier: MIT */
#include "sim/link.h"
#include "sim/vcpu.h"
#include "sim/vtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What comes first at one moment. */
enum event_class {
	EV_FETCHED,
	EV_MODERATION,
	EV_DD,
	EV_RECLAIM,
	EV_SEGMENT,
	EV_PEER_TIMER,
	EV_ACK,
	EV_SEND,
};

struct segment {
	u32 end; /* bytes from the schedule's start */
	bool push;
};

struct link {
	const struct link_params *p;
	struct sock *sk;
	const struct link_calls *calls;
	struct link_log *log;
	struct link_result *res;
	char *err;
	size_t errlen;
	int ret;

	struct vtime vt;
	struct nic nic;
	struct peer peer;
	struct link_watch watch;
	struct vcpu sender, softirq, completion;
	u32 ack_arg, complete_arg; /* what the CPU that is woken has to do */

	struct segment *seg; /* all that are sent */
	u64 *depart_ps; /* of one packet */
	u32 nr_seg, room_seg;
	u32 *nr_desc; /* of each packet */
	u32 sent, reported, visible, completed, acked, done; /* sk_buffs, in order */
	u64 ack_ps; /* a peer timer is posted for this moment */
	u64 out_ps, back_ps, ack_wire_ps; /* one way, the other, the ACK on the wire */
	u64 last_out_ps, ack_wire_free_ps;
	u64 rng;
};

__attribute__((format(printf, 3, 4))) static void fail(struct link *l, int ret, const char *fmt,
						       ...)
{
	va_list ap;

	if (l->ret)
		return;
	l->ret = ret;
	va_start(ap, fmt);
	vsnprintf(l->err, l->errlen, fmt, ap);
	va_end(ap);
}

/* splitmix64 */
static u64 jitter_ps(struct link *l)
{
	u64 z = l->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % (l->p->jitter_ps + 1);
}

/*
 * --- calls
 * ----------------------------------------------------------------------------------------------
 */

static void call(struct link *l, enum link_call what, u32 arg)
{
	struct link_log *log = l->log;

	if (!l->calls->fn[what] || l->ret)
		return;
	if (log->nr_ops == log->room) {
		u32 room = log->room ? 2 * log->room : 256;
		struct link_op *op = realloc(log->op, room * sizeof(*op));

		if (!op) {
			fail(l, -ENOMEM, "no memory for %u operations", room);
			return;
		}
		log->op = op;
		log->room = room;
	}
	log->op[log->nr_ops++] = (struct link_op){ what, arg };
	l->calls->fn[what](l->calls->ctx, arg);
}

static void run_sender(void *ctx, u32 arg)
{
	struct link *l = ctx;

	(void)arg;
	vcpu_run(&l->sender);
}

/* Sk_buffs that are both acknowledged and completed make room for the next. */
static void progress(struct link *l)
{
	u32 done = min(l->acked, l->completed);

	if (l->done == done)
		return;
	while (l->done < done) {
		l->done++;
		call(l, LINK_DONE, 1);
		l->log->done[l->log->nr_done++] = l->log->nr_ops;
	}
	if (l->sent < l->p->nr_skbs)
		vtime_post(&l->vt, l->vt.now_ps, EV_SEND, run_sender, l, 0);
}

/*
 * --- the peer
 * ----------------------------------------------------------------------------------------------
 */

static void ack_arrives(void *ctx, u32 arg)
{
	struct link *l = ctx;

	l->ack_arg = arg;
	vcpu_run(&l->softirq);
}

static void peer_acks(struct link *l)
{
	u64 left_ps = max(l->vt.now_ps, l->ack_wire_free_ps) + l->ack_wire_ps;

	l->ack_wire_free_ps = left_ps;
	vtime_post(&l->vt, left_ps + l->back_ps, EV_ACK, ack_arrives, l, l->peer.rcv_nxt);
}

static void peer_timeout(void *ctx, u32 arg)
{
	struct link *l = ctx;

	(void)arg;
	if (peer_timer(&l->peer, l->vt.now_ps))
		peer_acks(l);
}

static void segment_arrives(void *ctx, u32 arg)
{
	struct link *l = ctx;
	u64 deadline;

	if (peer_segment(&l->peer, l->vt.now_ps, l->seg[arg].end, l->seg[arg].push)) {
		peer_acks(l);
		return;
	}
	deadline = l->peer.deadline_ps;
	if (deadline != ~0ull && deadline != l->ack_ps) {
		l->ack_ps = deadline;
		vtime_post(&l->vt, deadline, EV_PEER_TIMER, peer_timeout, l, 0);
	}
}

/*
 * --- the NIC
 * ----------------------------------------------------------------------------------------------
 */

static void reclaim(void *ctx, u32 nr)
{
	struct link *l = ctx;

	l->complete_arg = nr;
	vcpu_run(&l->completion);
}

static void dd_visible(void *ctx, u32 nr)
{
	struct link *l = ctx;

	l->visible += nr;
	vtime_post(&l->vt, l->vt.now_ps + l->p->reclaim_ps, EV_RECLAIM, reclaim, l, nr);
}

static void write_back(struct link *l, u32 nr)
{
	if (!nr)
		return;
	l->reported += nr;
	vtime_post(&l->vt, l->vt.now_ps + l->nic.p.writeback_ps, EV_DD, dd_visible, l, nr);
}

static void moderation_ends(void *ctx, u32 packet)
{
	struct link *l = ctx;

	if (l->reported <= packet)
		write_back(l, nic_flush(&l->nic));
}

static void fetched(void *ctx, u32 packet)
{
	struct link *l = ctx;

	write_back(l, nic_fetched(&l->nic, l->nr_desc[packet]));
	if (l->reported <= packet)
		vtime_post(&l->vt, l->vt.now_ps + l->nic.p.itr_ps, EV_MODERATION, moderation_ends,
			   l, packet);
}

static void doorbell(struct link *l, const struct link_packet *pkt)
{
	u64 fetched_ps, out_ps = l->out_ps + jitter_ps(l);

	if (pkt->bytes != l->p->skb_bytes || l->sent == l->p->nr_skbs ||
	    l->nr_seg + pkt->segs > l->room_seg) {
		fail(l, -EIO, "packet %u has %u bytes in %u segments, not %u bytes", l->sent,
		     pkt->bytes, pkt->segs, l->p->skb_bytes);
		return;
	}
	l->nr_desc[l->sent] = pkt->nr_desc;
	fetched_ps = nic_xmit(&l->nic, l->vt.now_ps, pkt->bytes, pkt->mss, l->depart_ps);
	vtime_post(&l->vt, fetched_ps, EV_FETCHED, fetched, l, l->sent++);
	for (u32 i = 0; i < pkt->segs; i++) {
		bool last = i == pkt->segs - 1;
		u32 end = pkt->seq + (last ? pkt->bytes : (i + 1) * pkt->mss);

		l->seg[l->nr_seg] = (struct segment){ end, last };
		l->last_out_ps = max(l->depart_ps[i] + out_ps, l->last_out_ps);
		vtime_post(&l->vt, l->last_out_ps, EV_SEGMENT, segment_arrives, l, l->nr_seg++);
	}
}

/*
 * --- the CPUs
 * ----------------------------------------------------------------------------------------------
 */

static void sender_body(struct vcpu *v, void *ctx)
{
	struct link *l = ctx;
	struct link_packet pkt;

	do {
		while (!l->ret && l->sent < l->p->nr_skbs && l->sent - l->done < l->p->inflight) {
			u32 before = l->sent;

			call(l, LINK_SEND, 1);
			while (link_watch_sent(&l->watch, l->sk, &pkt))
				doorbell(l, &pkt);
			if (l->sent != before + 1)
				fail(l, -EIO, "a send put %u packets into the ring, not 1",
				     l->sent - before);
		}
	} while (vcpu_wait(v));
}

static void softirq_body(struct vcpu *v, void *ctx)
{
	struct link *l = ctx;

	do {
		u32 ack = l->ack_arg;

		if (link_watch_ack(&l->watch, l->p->era, l->sk, l->watch.base + ack)) {
			if (l->visible > ack / l->p->skb_bytes)
				l->res->races_before_reclaim++;
			else
				l->res->races_before_dd++;
		}
		call(l, LINK_ACK, ack);
		if (l->sk->snd_una != l->watch.base + ack)
			fail(l, -EIO, "after an ACK of %u bytes %u are acknowledged", ack,
			     l->sk->snd_una - l->watch.base);
		l->acked = ack / l->p->skb_bytes;
		progress(l);
	} while (vcpu_wait(v));
}

static void completion_body(struct vcpu *v, void *ctx)
{
	struct link *l = ctx;

	do {
		u32 nr = l->complete_arg, before = tx_ring_count(l->sk->ring);

		call(l, LINK_COMPLETE, nr);
		if (tx_ring_count(l->sk->ring) != before - nr)
			fail(l, -EIO, "%u packets were to complete and %u did", nr,
			     before - tx_ring_count(l->sk->ring));
		l->completed += nr;
		progress(l);
	} while (vcpu_wait(v));
}

/*
 * --- a run
 * ----------------------------------------------------------------------------------------------
 */

static void check_params(struct link *l)
{
	const struct link_params *p = l->p;

	if (!p->nr_skbs || p->nr_skbs > LINK_MAX_SKBS || !p->inflight ||
	    p->inflight > LINK_MAX_INFLIGHT || p->inflight > l->sk->ring->mask + 1)
		fail(l, -EINVAL,
		     "%u sk_buffs, %u in flight: 1 to %u, 1 to %u and to the size of the ring",
		     p->nr_skbs, p->inflight, LINK_MAX_SKBS, LINK_MAX_INFLIGHT);
	else if (!p->skb_bytes || !p->k || (u64)p->skb_bytes * p->nr_skbs > 1u << 30)
		fail(l, -EINVAL,
		     "sk_buffs of %u bytes, ACKs of %u segments: both at least 1, %u MB in all",
		     p->skb_bytes, p->k, 1024);
	else if (p->rtt_ps / 2 < l->ack_wire_ps)
		fail(l, -EINVAL,
		     "an RTT of %llu ns does not hold an ACK, which takes %llu ns of wire",
		     (unsigned long long)(p->rtt_ps / SIM_PS_PER_NS),
		     (unsigned long long)(l->ack_wire_ps / SIM_PS_PER_NS));
	else if (l->sk->snd_una != l->sk->write_seq || tx_ring_count(l->sk->ring))
		fail(l, -EINVAL, "the socket has data under way");
}

static void open_link(struct link *l)
{
	const struct link_params *p = l->p;
	unsigned int cpu = smp_processor_id(), node = numa_node_id();
	u32 segs = DIV_ROUND_UP(p->skb_bytes, l->sk->mss_cache);
	int ret;

	l->room_seg = segs * p->nr_skbs;
	l->seg = calloc(l->room_seg, sizeof(*l->seg));
	l->depart_ps = calloc(segs, sizeof(*l->depart_ps));
	l->nr_desc = calloc(p->nr_skbs, sizeof(*l->nr_desc));
	l->log->done = calloc(p->nr_skbs, sizeof(*l->log->done));
	if (!l->seg || !l->depart_ps || !l->nr_desc || !l->log->done) {
		fail(l, -ENOMEM, "no memory for %u segments", l->room_seg);
		return;
	}
	l->rng = p->seed;
	l->ack_ps = ~0ull;
	l->out_ps = p->rtt_ps / 2;
	l->back_ps = p->rtt_ps - l->out_ps - l->ack_wire_ps;
	peer_init(&l->peer, p->ack, p->k, 0);
	link_watch_init(&l->watch, l->sk);
	ret = vcpu_start(&l->sender, cpu, node, sender_body, l);
	if (!ret)
		ret = vcpu_start(&l->softirq, cpu + 1, node, softirq_body, l);
	if (!ret)
		ret = vcpu_start(&l->completion, cpu + 2, node, completion_body, l);
	if (ret)
		fail(l, ret, "no virtual CPUs in the slots %u to %u: %s", cpu, cpu + 2,
		     strerror(-ret));
}

static void run_link(struct link *l)
{
	vtime_post(&l->vt, 0, EV_SEND, run_sender, l, 0);
	while (!l->ret && !l->vt.nomem && vtime_step(&l->vt))
		;
	if (l->vt.nomem)
		fail(l, -ENOMEM, "no memory for events");
	if (l->done != l->p->nr_skbs)
		fail(l, -EIO, "came to a halt: %u of %u sk_buffs acknowledged, %u completed",
		     l->acked, l->p->nr_skbs, l->completed);
	l->res->n = l->watch.n;
	l->res->end_ps = l->vt.now_ps;
}

static void close_link(struct link *l)
{
	vcpu_stop(&l->sender);
	vcpu_stop(&l->softirq);
	vcpu_stop(&l->completion);
	free(l->seg);
	free(l->depart_ps);
	free(l->nr_desc);
	vtime_exit(&l->vt);
	nic_exit(&l->nic);
}

int link_simulate(const struct link_params *p, struct sock *sk, const struct link_calls *calls,
		  struct link_log *log, struct link_result *res, char *err, size_t errlen)
{
	struct link *l = calloc(1, sizeof(*l));
	int ret;

	memset(log, 0, sizeof(*log));
	memset(res, 0, sizeof(*res));
	if (!l) {
		snprintf(err, errlen, "no memory for a link");
		return -ENOMEM;
	}
	l->p = p;
	l->sk = sk;
	l->calls = calls;
	l->log = log;
	l->res = res;
	l->err = err;
	l->errlen = errlen;
	vtime_init(&l->vt);
	l->ret = nic_init(&l->nic, p->nic, err, errlen);
	if (!l->ret) {
		l->ack_wire_ps = nic_wire_ps(p->nic, 0);
		check_params(l);
	}
	if (!l->ret)
		open_link(l);
	if (!l->ret)
		run_link(l);
	close_link(l);
	ret = l->ret;
	free(l);
	if (ret)
		link_log_exit(log);
	return ret;
}

void link_log_exit(struct link_log *log)
{
	free(log->op);
	free(log->done);
	memset(log, 0, sizeof(*log));
}
