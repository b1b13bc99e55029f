/* SPDX-License-Identifier: MIT */
#include "hw/race.h"
#include "hw/model_82599/model.h"
#include "hw/race_socket.h"
#include "hw/responder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RX_DMA_PS  (500 * SIM_PS_PER_NS)
#define LINK_MS	   9000
#define BUDGET	   64
#define UNIT_BYTES 65160

const struct race_params race_defaults = {
	.rtt_ps = 50 * SIM_PS_PER_US,
	.seed = 1,
	.ack = PEER_EVERY,
	.k = 2,
	.nr_skbs = 32,
	.inflight = 1,
	.skb_bytes = UNIT_BYTES,
	.era = ERA_6_12,
};

const char *race_mode_name(enum race_mode mode)
{
	static const char *const names[RACE_MODE_NR] = { "poll", "irq", "irq-shared" };

	return names[mode];
}

struct race {
	const struct race_params *p;
	enum tcp_trim trim;
	struct race_log *log;
	struct race_result *res;
	char *err;
	size_t errlen;
	int ret;

	struct race_socket s;
	struct model_82599 *m;
	struct nicdev *dev;
	struct ixgbe ix;
	struct skb_tx tx;
	struct responder peer;
	struct flow flow;
	bool started, mapped;

	u32 sent, seen_done, cleaned, reclaimed, acked, finished; /* packets, in order */
	u32 due[RACE_MAX_SKBS]; /* packets of each reclaim to come, a ring */
	u64 due_ps[RACE_MAX_SKBS];
	u32 due_head, due_tail;
};

__attribute__((format(printf, 3, 4))) static void fail(struct race *r, int ret, const char *fmt,
						       ...)
{
	va_list ap;

	if (r->ret)
		return;
	r->ret = ret;
	va_start(ap, fmt);
	vsnprintf(r->err, r->errlen, fmt, ap);
	va_end(ap);
}

static u64 now_ps(struct race *r)
{
	return nicdev_now_ps(r->dev);
}

/* The calls that follow are made by CPU SLOT. */
static void role(struct race *r, unsigned int slot)
{
	if (skb_cpu_attach(slot, 0))
		fail(r, -EINVAL, "no CPU slot %u", slot);
}

static void note(struct race *r, u8 what, u32 arg)
{
	struct race_log *log = r->log;

	if (!log)
		return;
	if (log->nr == log->room) {
		u32 room = log->room ? 2 * log->room : 1024;
		struct race_op *op = realloc(log->op, room * sizeof(*op));

		if (!op) {
			fail(r, -ENOMEM, "no memory for %u calls", room);
			return;
		}
		log->op = op;
		log->room = room;
	}
	log->op[log->nr++] = (struct race_op){ what, arg };
}

/*
 * --- the three CPUs
 * ----------------------------------------------------------------------------------------------
 */

static void send_some(struct race *r)
{
	const struct race_params *p = r->p;

	role(r, CPU_SENDER);
	while (!r->ret && r->sent < p->nr_skbs && r->sent - r->finished < p->inflight) {
		note(r, OP_SEND, 1);
		if (!r->ret)
			r->ret = race_socket_fill(&r->s, p, r->trim, r->err, r->errlen);
		if (!r->ret)
			r->ret = race_socket_push(&r->s, &r->tx, r->err, r->errlen);
		if (!r->ret)
			r->s.packet[r->sent++].doorbell_ps = now_ps(r);
	}
}

static void progress(struct race *r)
{
	r->finished = min(r->acked, r->reclaimed);
}

/* The oldest packets that the device has reported, seen for the first time. */
static void look_for_dd(struct race *r)
{
	u32 done = r->cleaned + ixgbe_tx_peek(&r->ix.txq[0]);

	while (r->seen_done < done)
		r->s.packet[r->seen_done++].dd_ps = now_ps(r);
}

static void clean_tx(struct race *r)
{
	u32 n = ixgbe_tx_clean(&r->ix.txq[0], BUDGET);

	if (!n)
		return;
	r->cleaned += n;
	r->due_ps[r->due_tail % RACE_MAX_SKBS] = now_ps(r) + r->p->reclaim_ps;
	r->due[r->due_tail++ % RACE_MAX_SKBS] = n;
}

static void reclaim_due(struct race *r)
{
	while (r->due_head != r->due_tail && r->due_ps[r->due_head % RACE_MAX_SKBS] <= now_ps(r)) {
		u32 n = r->due[r->due_head++ % RACE_MAX_SKBS];

		role(r, CPU_COMPLETION);
		note(r, OP_COMPLETE, n);
		skb_tx_complete(r->p->era, &r->tx, n);
		while (n--)
			r->s.packet[r->reclaimed++].reclaim_ps = now_ps(r);
		progress(r);
	}
}

static void take_ack(void *ctx, const u8 *data, u32 len)
{
	const struct race_params *p = ((struct race *)ctx)->p;
	struct race *r = ctx;
	const struct flow back = flow_reverse(&r->flow);
	struct flow_segment s;
	const char *wrong = flow_parse(&back, data, len, &s);
	u32 acked, which;

	if (wrong) {
		fail(r, -EIO, "a frame that is no ACK came in: %s", wrong);
		return;
	}
	acked = s.ack - r->s.base;
	which = acked / p->skb_bytes;
	role(r, CPU_SOFTIRQ);
	if (acked % p->skb_bytes && which < r->sent) {
		struct race_packet *pkt = &r->s.packet[which];

		if (!pkt->ack_ps)
			pkt->ack_ps = now_ps(r);
		r->res->trims += !pkt->reclaim_ps;
	}
	if (link_watch_ack(&r->s.watch, p->era, &r->s.sk, s.ack)) {
		if (which < r->seen_done)
			r->res->before_reclaim++;
		else
			r->res->before_dd++;
	}
	note(r, OP_ACK, acked);
	if (tcp_ack(p->era, r->trim, &r->s.sk, s.ack) < 0)
		fail(r, -EIO, "an ACK of %u bytes, beyond what was sent", acked);
	r->acked = acked / p->skb_bytes;
	progress(r);
}

static void process_acks(struct race *r)
{
	ixgbe_rx_poll(&r->ix.rxq[0], BUDGET, take_ack, r);
}

/* What software does when it looks; which is at once, or when a vector says so. */
static void look(struct race *r)
{
	u32 rx = ixgbe_rx_vector(&r->ix, 0), tx = ixgbe_tx_vector(&r->ix, 0);

	look_for_dd(r);
	switch (r->p->mode) {
	case RACE_POLL:
		clean_tx(r);
		reclaim_due(r);
		process_acks(r);
		break;
	case RACE_IRQ:
		if (nicdev_irq_pending(r->dev, tx)) {
			clean_tx(r);
			ixgbe_irq_rearm(&r->ix, tx);
		}
		reclaim_due(r);
		if (nicdev_irq_pending(r->dev, rx)) {
			process_acks(r);
			ixgbe_irq_rearm(&r->ix, rx);
		}
		break;
	default:
		if (nicdev_irq_pending(r->dev, rx)) {
			clean_tx(r);
			reclaim_due(r);
			process_acks(r);
			ixgbe_irq_rearm(&r->ix, rx);
		}
		reclaim_due(r);
		break;
	}
}

static void run(struct race *r)
{
	u64 limit = now_ps(r) + (u64)r->p->nr_skbs * 1000 * SIM_PS_PER_MS;

	send_some(r);
	while (!r->ret && r->finished < r->p->nr_skbs) {
		u64 until =
			r->due_head != r->due_tail ? r->due_ps[r->due_head % RACE_MAX_SKBS] : limit;
		char text[512];

		if (!nicdev_relax(r->dev, until) && now_ps(r) >= limit) {
			if (!ixgbe_tx_hung(&r->ix.txq[0], text, sizeof(text)))
				text[0] = 0;
			fail(r, -EIO, "came to a halt: %u of %u acknowledged, %u reclaimed. %s",
			     r->acked, r->p->nr_skbs, r->reclaimed, text);
			return;
		}
		look(r);
		if (r->sent - r->finished < r->p->inflight)
			send_some(r);
		if (model_nr_violations(r->m))
			fail(r, -EIO, "violation: %s", model_first_violation(r->m));
		if (r->peer.wrong[0])
			fail(r, -EIO, "on the wire: %s", r->peer.wrong);
	}
}

/*
 * --- results
 * ----------------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct race_spread race_spread(double *us, u32 n)
{
	if (!n)
		return (struct race_spread){ 0 };
	qsort(us, n, sizeof(*us), by_value);
	return (struct race_spread){ us[0], us[n / 2], us[(u64)n * 99 / 100], us[n - 1] };
}

static double us_between(u64 from, u64 to)
{
	return ((double)to - (double)from) / SIM_PS_PER_US;
}

/* Of N times in US, in ascending order. */
static struct race_histogram bins(const double *us, u32 n)
{
	struct race_histogram h = { 0 };

	if (!n)
		return h;
	h.first_us = us[0];
	h.step_us = (us[n - 1] - us[0]) / RACE_BINS;
	for (u32 i = 0; i < n; i++) {
		double at = h.step_us > 0 ? (us[i] - us[0]) / h.step_us : 0;

		h.count[min((u32)at, RACE_BINS - 1u)]++;
	}
	return h;
}

int race_summarise(const struct race_packet *packet, u32 n, struct race_result *res, u32 *races)
{
	double *us = calloc(max(n, 1u), sizeof(*us));
	u32 acked = 0;

	*races = 0;
	if (!us)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		us[i] = us_between(packet[i].doorbell_ps, packet[i].dd_ps);
	res->dd_after_doorbell = race_spread(us, n);
	for (u32 i = 0; i < n; i++)
		us[i] = us_between(packet[i].dd_ps, packet[i].reclaim_ps);
	res->reclaim_after_dd = race_spread(us, n);
	for (u32 i = 0; i < n; i++)
		if (packet[i].ack_ps)
			us[acked++] = us_between(packet[i].doorbell_ps, packet[i].ack_ps);
	res->ack_after_doorbell = race_spread(us, acked);
	acked = 0;
	for (u32 i = 0; i < n; i++)
		if (packet[i].ack_ps) {
			us[acked++] = us_between(packet[i].ack_ps, packet[i].dd_ps);
			*races += packet[i].ack_ps < packet[i].reclaim_ps;
		}
	res->dd_after_ack = race_spread(us, acked);
	res->dd_after_ack_bins = bins(us, acked);
	res->races = res->before_dd + res->before_reclaim;
	res->skbs = n;
	free(us);
	return 0;
}

static void summarise(struct race *r)
{
	struct race_result *res = r->res;
	u32 by_times;

	if (race_summarise(r->s.packet, r->p->nr_skbs, res, &by_times)) {
		fail(r, -ENOMEM, "no memory for %u times", r->p->nr_skbs);
		return;
	}
	/* The same, from the sk_buffs and from the times; at one moment the reclaim comes first. */
	if (res->races != by_times)
		fail(r, -EIO, "%u sk_buffs were cloned at their first partial ACK, by times %u",
		     res->races, by_times);
	res->segments = r->s.watch.n.segs;
	res->acks = r->s.watch.n.acks;
	res->partial_acks = r->s.watch.n.partial_acks;
	res->segments_on_wire = r->peer.segments;
}

/*
 * --- set-up
 * ----------------------------------------------------------------------------------------------
 */

int race_check_params(const struct race_params *p, char *err, size_t errlen)
{
	if (!p->nr_skbs || p->nr_skbs > RACE_MAX_SKBS || !p->inflight ||
	    p->inflight > RACE_MAX_INFLIGHT)
		snprintf(err, errlen, "%u sk_buffs, %u in flight: 1 to %u, 1 to %u", p->nr_skbs,
			 p->inflight, RACE_MAX_SKBS, RACE_MAX_INFLIGHT);
	else if (!p->k || !p->skb_bytes || (u64)p->skb_bytes * p->nr_skbs > 1u << 30)
		snprintf(err, errlen,
			 "sk_buffs of %u bytes, ACKs of %u segments: at least 1, 1 GB in all",
			 p->skb_bytes, p->k);
	else if (p->skb_bytes > IXGBE_MAX_TSO_BYTES)
		snprintf(err, errlen,
			 "%u bytes of payload: this family segments %u at most (BIG TCP is for "
			 "others)",
			 p->skb_bytes, IXGBE_MAX_TSO_BYTES);
	else if (p->skb_bytes <= TCP_MSS_ETHERNET &&
		 (p->ack == PEER_LAST || (p->ack == PEER_EVERY && p->k > 1)))
		snprintf(err, errlen,
			 "packets of one segment carry no PSH: a peer that waits for %s never "
			 "answers; k 1 or ACK delayed do",
			 p->ack == PEER_LAST ? "one" : "more segments");
	else if (p->mode == RACE_POLL && p->wthresh)
		snprintf(err, errlen,
			 "WTHRESH %u leaves descriptors to the interrupt moderation: use mode irq",
			 p->wthresh);
	else if (p->wthresh && !p->itr_us)
		snprintf(err, errlen,
			 "WTHRESH %u needs interrupt moderation, or its rest is never told",
			 p->wthresh);
	else
		return 0;
	return -EINVAL;
}

static void open_device(struct race *r)
{
	static const u8 peer_mac[6] = { 2, 0, 0, 0, 0, 2 };
	const struct race_params *p = r->p;
	struct model_params mp = { .timing = p->nic,
				   .device = p->device,
				   .seed = p->seed,
				   .rx_dma_ps = RX_DMA_PS,
				   .partner = responder_partner,
				   .ctx = &r->peer,
				   .pcapng = p->pcapng };
	struct responder_params rp = { .rtt_ps = p->rtt_ps,
				       .jitter_ps = p->jitter_ps,
				       .seed = p->seed,
				       .policy = p->ack,
				       .k = p->k };
	struct ixgbe_config cfg = race_driver_config(p);

	cfg.rx_ring = 1024;
	if (!p->threshold_kb)
		cfg.txpbthresh_kb = p->nic->fifo_threshold_bytes / 1024;
	r->ret = model_open(&mp, &r->m, r->err, r->errlen);
	if (r->ret)
		return;
	r->dev = model_nicdev(r->m);
	r->ret = ixgbe_start(&r->ix, r->dev, &cfg, r->err, r->errlen);
	if (r->ret)
		return;
	r->started = true;
	flow_init(&r->flow, r->ix.mac, peer_mac);
	r->ret = responder_init(&r->peer, r->m, &rp, &r->flow, r->s.base, p->nic, RX_DMA_PS, r->err,
				r->errlen);
	if (!r->ret)
		r->ret =
			skb_tx_init(&r->tx, &r->ix.txq[0], &r->s.ring, &r->flow, r->err, r->errlen);
	r->mapped = !r->ret;
	if (!r->ret)
		r->ret = ixgbe_wait_link(&r->ix, LINK_MS, r->err, r->errlen);
}

static void close_race(struct race *r)
{
	if (r->started)
		ixgbe_stop(&r->ix);
	if (r->mapped)
		skb_tx_exit(&r->tx);
	race_socket_close(&r->s, r->p->era);
	if (r->m)
		nicdev_close(r->dev);
	responder_exit(&r->peer);
}

int race_model(const struct race_params *p, enum tcp_trim trim, struct race_log *log,
	       struct race_result *res, char *err, size_t errlen)
{
	struct race *r = race_new(sizeof(*r), log, res, err, errlen);
	struct nic_params timing;
	struct nic_lone lone;
	int ret;

	if (!r)
		return -ENOMEM;
	r->p = p;
	r->trim = trim;
	r->log = log;
	r->res = res;
	r->err = err;
	r->errlen = errlen;
	r->ret = race_check_params(p, err, errlen);
	if (!r->ret)
		r->ret = race_socket_open(&r->s, p, err, errlen);
	if (!r->ret)
		open_device(r);
	if (!r->ret) {
		u64 begin = now_ps(r);

		run(r);
		res->end_ps = now_ps(r) - begin;
	}
	if (!r->ret)
		summarise(r);
	role(r, CPU_SENDER);
	close_race(r);
	ret = r->ret;
	free(r);

	timing = *p->nic;
	if (p->threshold_kb)
		timing.fifo_threshold_bytes = p->threshold_kb * 1024;
	if (!ret &&
	    !nic_lone(&timing, p->skb_bytes, TCP_MSS_ETHERNET, 1,
		      min(p->k, DIV_ROUND_UP(p->skb_bytes, TCP_MSS_ETHERNET)), &lone, err, errlen))
		res->window_us = (double)lone.window_ps / SIM_PS_PER_US;
	if (ret && log)
		race_log_exit(log);
	return ret;
}

void race_log_exit(struct race_log *log)
{
	free(log->op);
	memset(log, 0, sizeof(*log));
}

/*
 * --- what the calls cost
 * ----------------------------------------------------------------------------------------------
 */

struct replay {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	u32 base, bytes;
};

#define REPLAY(suffix, era, trim)                                                       \
	static void replay_##suffix(struct replay *r, const struct race_op *op, u32 nr) \
	{                                                                               \
		for (u32 i = 0; i < nr; i++) {                                          \
			if (op[i].what == OP_SEND) {                                    \
				tcp_sendmsg_in_place(era, &r->sk, r->bytes);            \
				tcp_write_xmit(era, trim, &r->sk);                      \
			} else if (op[i].what == OP_ACK) {                              \
				tcp_ack(era, trim, &r->sk, r->base + op[i].arg);        \
			} else {                                                        \
				tx_ring_complete(era, &r->ring, op[i].arg);             \
			}                                                               \
		}                                                                       \
	}
TCP_FOR_EACH(REPLAY)

static void (*const replays[SKB_ERA_NR][TCP_TRIM_NR])(struct replay *, const struct race_op *,
						      u32) = {
	{ replay_3_4_eager, replay_3_4_offset_ack },
	{ replay_6_1_eager, replay_6_1_offset_ack },
	{ replay_6_12_eager, replay_6_12_offset_ack },
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double race_replay_ns(const struct race_params *p, enum tcp_trim trim, const struct race_log *log)
{
	static struct replay r;
	double begin, ns;

	memset(&r, 0, sizeof(r));
	BUG_ON(tx_ring_init(&r.ring, 64));
	tcp_sock_init(&r.sk, &r.prot, &r.ring, SKB_FRAG_PAGE_ORDER);
	r.sk.gso_max_size = max(p->skb_bytes, (u32)TCP_GSO_MAX_SIZE);
	r.base = r.sk.snd_una;
	r.bytes = p->skb_bytes;
	begin = now_ns();
	replays[p->era][trim](&r, log->op, log->nr);
	ns = now_ns() - begin;
	BUG_ON(r.sk.snd_una != r.sk.write_seq || tx_ring_count(&r.ring));
	tcp_sock_destroy(p->era, &r.sk);
	tx_ring_exit(&r.ring);
	return ns * UNIT_BYTES / ((double)p->nr_skbs * p->skb_bytes);
}
