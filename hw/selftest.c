/* SPDX-License-Identifier: MIT */
#include "hw/selftest.h"
#include "hw/flow.h"
#include "hw/ixgbe/ixgbe.h"
#include "hw/model_82599/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MSS	      1448
#define TSO_BYTES     (45 * MSS)
#define PAYLOAD_BYTES (1u << 20)
#define PERIOD	      4093
#define WINDOW	      (4 * TSO_BYTES) /* in the loop at a time: the receive ring holds it */
#define LINK_MS	      9000
#define LIMIT_PS      (2000 * SIM_PS_PER_MS)
#define BUDGET	      64

struct selftest {
	struct nicdev *dev; /* the caller's; NULL: a model for each check */
	u16 device; /* of the model */
	u64 seed;
	FILE *pcapng;
	bool high_iova; /* addresses need all of their 64 bits */
	struct selftest_row *row;

	struct model_82599 *m;
	struct nicdev *now; /* that is used */
	struct ixgbe *ix;
	struct nicdev_arena arena;
	struct flow flow;
	u32 sent, received, frames; /* bytes of payload in sequence, frames */
	bool failed;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct selftest *t, const char *fmt, ...)
{
	va_list ap;

	if (t->failed)
		return false;
	t->failed = true;
	va_start(ap, fmt);
	vsnprintf(t->row->text, sizeof(t->row->text), fmt, ap);
	va_end(ap);
	return false;
}

/* The stream's bytes: the same again after PERIOD, so that every packet finds its own in memory. */
static u8 stream_byte(u32 seq)
{
	return (seq % PERIOD * 2654435761u) >> 24;
}

/*
 * --- a device for one check
 * ----------------------------------------------------------------------------------------------
 */

static bool open_device(struct selftest *t)
{
	struct model_params mp = {
		.device = t->device, .seed = t->seed, .high_iova = t->high_iova, .pcapng = t->pcapng
	};
	char err[300];

	t->now = t->dev;
	if (!t->dev) {
		if (model_open(&mp, &t->m, err, sizeof(err)))
			return fail(t, "%s", err);
		t->now = model_nicdev(t->m);
	}
	if (nicdev_arena_init(&t->arena, t->now, PAYLOAD_BYTES, err, sizeof(err)))
		return fail(t, "%s", err);
	for (u32 i = 0; i < PAYLOAD_BYTES; i++)
		t->arena.base[i] = stream_byte(i);
	return true;
}

static bool start(struct selftest *t, const struct ixgbe_config *cfg)
{
	char err[400];

	if (ixgbe_start(t->ix, t->now, cfg, err, sizeof(err)) ||
	    ixgbe_wait_link(t->ix, LINK_MS, err, sizeof(err)))
		return fail(t, "%s", err);
	flow_init(&t->flow, t->ix->mac, t->ix->mac);
	t->sent = t->received = t->frames = 0;
	return true;
}

static void close_device(struct selftest *t)
{
	if (t->ix->started)
		ixgbe_stop(t->ix);
	nicdev_arena_exit(&t->arena);
	if (t->m) {
		if (model_nr_violations(t->m)) {
			/* What the device says comes before what followed from it. */
			t->failed = false;
			fail(t, "violation %s", model_first_violation(t->m));
		}
		nicdev_close(t->now);
		t->m = NULL;
	}
}

static struct ixgbe_config config(void)
{
	struct ixgbe_config cfg = ixgbe_default_config;

	cfg.loopback = true;
	cfg.promiscuous = true;
	return cfg;
}

/*
 * --- packets round the loop
 * ----------------------------------------------------------------------------------------------
 */

/* One packet of BYTES that follow what was sent; MSS 0: one frame. In buffers of EACH bytes. */
static int send(struct selftest *t, u32 queue, u32 bytes, u32 mss, u32 each)
{
	struct ixgbe_txq *q = &t->ix->txq[queue];
	struct ixgbe_buf buf[IXGBE_TX_DESC_CACHE];
	struct ixgbe_tx_packet pkt = { .buf = buf,
				       .maclen = FLOW_MAC_BYTES,
				       .iplen = FLOW_IP_BYTES,
				       .l4len = FLOW_TCP_BYTES,
				       .mss = mss,
				       .ipv4 = true,
				       .csum = true };
	char err[200];
	u8 *header = ixgbe_tx_header(q, &buf[0].iova);
	u32 at = t->sent % PERIOD, n = 1;
	int ret;

	buf[0].len = FLOW_HEADER_BYTES;
	flow_tcp_header(&t->flow, header, t->sent, 1, FLOW_ACK | FLOW_PSH);
	flow_finish(&t->flow, header, bytes, mss);
	for (u32 done = 0; done < bytes; done += each)
		buf[n++] = (struct ixgbe_buf){ t->arena.iova + at + done, min(each, bytes - done) };
	pkt.nr_bufs = n;
	ret = ixgbe_tx_post(q, &pkt, err, sizeof(err));
	if (!ret)
		t->sent += bytes;
	else if (ret != -ENOSPC)
		fail(t, "a packet of %u bytes: %s", bytes, err);
	return ret;
}

/* The next frame of the stream. */
static void take_frame(void *ctx, const u8 *data, u32 len)
{
	struct selftest *t = ctx;
	struct flow_segment s;
	const char *wrong = flow_parse(&t->flow, data, len, &s);

	if (!wrong && s.seq != t->received)
		wrong = "out of order";
	for (u32 i = 0; !wrong && i < s.payload; i++)
		if (data[s.payload_at + i] != stream_byte(s.seq + i))
			wrong = "payload";
	if (wrong) {
		fail(t, "frame %u of %u bytes: %s", t->frames, len, wrong);
		return;
	}
	t->received += s.payload;
	t->frames++;
}

static void look(struct selftest *t, u32 *done)
{
	const struct ixgbe_config *c = &t->ix->cfg;

	for (u32 q = 0; q < c->nr_txq; q++)
		*done += ixgbe_tx_clean(&t->ix->txq[q], BUDGET);
	for (u32 q = 0; q < c->nr_rxq; q++)
		ixgbe_rx_poll(&t->ix->rxq[q], BUDGET, take_frame, t);
	if (c->irq)
		for (u32 v = 0; v < t->now->nr_irqs; v++)
			if (nicdev_irq_pending(t->now, v))
				ixgbe_irq_rearm(t->ix, v);
}

/* Lets the device run until POSTED packets are done and all that was sent is back. */
static bool drain(struct selftest *t, u32 posted, u32 *done)
{
	u64 end = nicdev_now_ps(t->now) + LIMIT_PS;
	char text[512] = "";

	while (!t->failed && (*done < posted || t->received != t->sent)) {
		nicdev_relax(t->now, end);
		look(t, done);
		if (nicdev_now_ps(t->now) < end || (*done >= posted && t->received == t->sent))
			continue;
		t->ix->cfg.hang_ms = 0;
		if (!ixgbe_tx_hung(&t->ix->txq[0], text, sizeof(text)))
			text[0] = 0;
		return fail(t, "%u of %u packets completed, %u of %u bytes back. %s", *done, posted,
			    t->received, t->sent, text);
	}
	return !t->failed;
}

/*
 * --- checks
 * ----------------------------------------------------------------------------------------------
 */

static void check_restart(struct selftest *t)
{
	const struct ixgbe_config cfg = config();
	u32 done = 0;

	for (u32 i = 0; i < 3; i++) {
		if (!start(t, &cfg) || send(t, 0, TSO_BYTES, MSS, 8192))
			return;
		ixgbe_tx_kick(&t->ix->txq[0]);
		if (i == 2 && !drain(t, 1, &done))
			return;
		ixgbe_stop(t->ix); /* twice with a packet under way */
	}
	snprintf(t->row->text, sizeof(t->row->text), "started three times, twice over traffic");
}

static void check_tso(struct selftest *t)
{
	const struct ixgbe_config cfg = config();
	u32 done = 0;

	if (!start(t, &cfg) || send(t, 0, TSO_BYTES, MSS, 8192))
		return;
	ixgbe_tx_kick(&t->ix->txq[0]);
	if (!drain(t, 1, &done))
		return;
	if (t->frames != 45) {
		fail(t, "%u frames of a TSO of 45", t->frames);
		return;
	}
	snprintf(t->row->text, sizeof(t->row->text),
		 "65160 bytes came back as 45 frames, every sum right");
}

/* Many packets of many sizes through small rings; how they complete is CFG's. */
static void stream(struct selftest *t, const struct ixgbe_config *cfg)
{
	u32 posted = 0, done = 0;
	struct ixgbe_txq *q;

	if (!start(t, cfg))
		return;
	q = &t->ix->txq[0];
	while (posted < 600 && !t->failed) {
		u32 bytes = 1 + posted * 7919 % (posted % 3 ? 20000 : 1448);
		u32 mss = posted % 3 ? 536 + posted % 900 : 0;
		u64 give_up = nicdev_now_ps(t->now) + LIMIT_PS;

		while (t->sent + bytes - t->received > WINDOW ||
		       send(t, 0, bytes, mss, 1000 + posted % 3000)) {
			if (t->failed || nicdev_now_ps(t->now) >= give_up) {
				fail(t, "the ring stays full at packet %u, %u done", posted, done);
				return;
			}
			ixgbe_tx_kick(q);
			nicdev_relax(t->now, give_up);
			look(t, &done);
		}
		posted++;
		if (posted % 5 == 0)
			ixgbe_tx_kick(q);
	}
	ixgbe_tx_kick(q);
	if (!drain(t, posted, &done))
		return;
	ixgbe_update_stats(t->ix);
	if (t->ix->stats.tx_packets != t->frames || t->ix->stats.rx_packets != t->frames ||
	    t->ix->stats.tx_dma_packets != posted || t->ix->stats.rx_missed ||
	    t->ix->stats.pause_received) {
		fail(t,
		     "statistics: %llu sent, %llu received, %llu fetched, %llu missed, %llu "
		     "pause frames; %u frames of %u packets went",
		     (unsigned long long)t->ix->stats.tx_packets,
		     (unsigned long long)t->ix->stats.rx_packets,
		     (unsigned long long)t->ix->stats.tx_dma_packets,
		     (unsigned long long)t->ix->stats.rx_missed,
		     (unsigned long long)t->ix->stats.pause_received, t->frames, posted);
		return;
	}
	snprintf(t->row->text, sizeof(t->row->text), "%u packets, %u frames, statistics agree",
		 posted, t->frames);
}

static struct ixgbe_config small_rings(void)
{
	struct ixgbe_config cfg = config();

	cfg.tx_ring = 64;
	cfg.rx_ring = 512;
	return cfg;
}

static void check_rs(struct selftest *t)
{
	const struct ixgbe_config cfg = small_rings();

	stream(t, &cfg);
}

static void check_head_wb(struct selftest *t)
{
	struct ixgbe_config cfg = small_rings();

	cfg.head_wb = true;
	stream(t, &cfg);
}

static void check_wthresh(struct selftest *t)
{
	struct ixgbe_config cfg = small_rings();

	cfg.wthresh = 8;
	cfg.irq = true;
	cfg.itr_us = 20;
	stream(t, &cfg);
}

static void check_queues(struct selftest *t)
{
	struct ixgbe_config cfg = config();
	u32 done = 0;

	cfg.nr_txq = 4;
	if (!start(t, &cfg))
		return;
	for (u32 q = 0; q < 4; q++) {
		if (send(t, q, TSO_BYTES, MSS, 8192))
			return;
		ixgbe_tx_kick(&t->ix->txq[q]);
		if (!drain(t, q + 1, &done))
			return;
	}
	ixgbe_update_stats(t->ix);
	for (u32 q = 0; q < 4; q++)
		if (t->ix->stats.txq_packets[q] != 45) {
			fail(t, "queue %u sent %llu frames, not 45", q,
			     (unsigned long long)t->ix->stats.txq_packets[q]);
			return;
		}
	snprintf(t->row->text, sizeof(t->row->text), "each of 4 queues sent its own 45 frames");
}

/* A marker behind a TSO packet: when the last of it had left the wire, by the device's own clock. */
static void check_marker(struct selftest *t)
{
	const struct ixgbe_config cfg = config();
	const double wire_us = (double)nic_time_ps(45 * 1538, 10000) / SIM_PS_PER_US;
	struct ixgbe_buf buf;
	struct ixgbe_txq *q;
	u64 before, stamp, end;
	char err[300];
	u32 done = 0;
	u8 *frame;

	if (!start(t, &cfg))
		return;
	if (ixgbe_clock_start(t->ix, err, sizeof(err))) {
		fail(t, "%s", err);
		return;
	}
	q = &t->ix->txq[0];
	if (send(t, 0, TSO_BYTES, MSS, 8192))
		return;
	frame = ixgbe_tx_header(q, &buf.iova);
	buf.len = flow_ack_frame(&t->flow, frame, t->sent, 1);
	if (ixgbe_tx_post_marker(q, &buf)) {
		fail(t, "the ring does not take a marker");
		return;
	}
	before = ixgbe_clock_ns(t->ix);
	ixgbe_tx_kick(q);
	end = nicdev_now_ps(t->now) + LIMIT_PS;
	while (!ixgbe_tx_stamp(t->ix, &stamp)) {
		if (nicdev_now_ps(t->now) >= end) {
			fail(t, "no stamp of the marker");
			return;
		}
		nicdev_delay_us(t->now, 10);
	}
	if (!drain(t, 2, &done))
		return;
	if (stamp <= before || (double)(stamp - before) / 1000 < wire_us ||
	    stamp > ixgbe_clock_ns(t->ix)) {
		fail(t, "stamped at %llu ns, the doorbell was at %llu: 64 KB take %.2f us",
		     (unsigned long long)stamp, (unsigned long long)before, wire_us);
		return;
	}
	if (ixgbe_tx_stamp(t->ix, &stamp)) {
		fail(t, "a second stamp of one marker");
		return;
	}
	snprintf(t->row->text, sizeof(t->row->text),
		 "64 KB and a marker had left %.2f us after the doorbell, by its clock",
		 (double)(stamp - before) / 1000);
}

/* On the model alone: what the clock says. */

struct wire {
	u32 frames;
	u64 first_ps, last_ps;
};

static void note_time(void *ctx, const struct model_frame *f)
{
	struct wire *w = ctx;

	if (!w->frames++)
		w->first_ps = f->depart_ps;
	w->last_ps = f->depart_ps;
}

static void check_wire_time(struct selftest *t)
{
	struct wire w = { 0 };
	struct model_params mp = {
		.device = t->device, .seed = t->seed, .partner = note_time, .ctx = &w
	};
	const u64 segment_ps = nic_time_ps(1538, 10000);
	char err[300];

	nicdev_arena_exit(&t->arena);
	nicdev_close(t->now);
	t->m = NULL;
	if (model_open(&mp, &t->m, err, sizeof(err))) {
		fail(t, "%s", err);
		return;
	}
	t->now = model_nicdev(t->m);
	if (nicdev_arena_init(&t->arena, t->now, PAYLOAD_BYTES, err, sizeof(err))) {
		fail(t, "%s", err);
		return;
	}
	if (!start(t, &ixgbe_default_config) || send(t, 0, TSO_BYTES, MSS, 8192))
		return;
	ixgbe_tx_kick(&t->ix->txq[0]);
	nicdev_delay_us(t->now, 200);
	if (ixgbe_tx_clean(&t->ix->txq[0], 1) != 1 || w.frames != 45 ||
	    w.last_ps - w.first_ps != 44 * segment_ps) {
		fail(t, "%u frames in %llu ps", w.frames,
		     (unsigned long long)(w.last_ps - w.first_ps));
		return;
	}
	snprintf(t->row->text, sizeof(t->row->text),
		 "64 KB leave in %.2f us, last minus first segment %.2f us",
		 (double)(w.last_ps - w.first_ps + segment_ps) / SIM_PS_PER_US,
		 (double)(w.last_ps - w.first_ps) / SIM_PS_PER_US);
}

static const struct {
	const char *name;
	void (*check)(struct selftest *t);
	bool model_only;
} checks[] = {
	{ "tso", check_tso, false },
	{ "restart", check_restart, false },
	{ "report_status", check_rs, false },
	{ "head_write_back", check_head_wb, false },
	{ "write_back_threshold", check_wthresh, false },
	{ "queues", check_queues, false },
	{ "marker", check_marker, false },
	{ "wire_time", check_wire_time, true },
};

u32 selftest_run(struct nicdev *dev, u16 device, u64 seed, FILE *pcapng,
		 struct selftest_row rows[SELFTEST_MAX_ROWS])
{
	struct ixgbe *ix = aligned_alloc(64, ALIGN(sizeof(*ix), 64));
	u32 n = 0;

	_Static_assert(ARRAY_SIZE(checks) <= SELFTEST_MAX_ROWS, "room for each check");
	BUG_ON(!ix);
	for (u32 i = 0; i < ARRAY_SIZE(checks); i++) {
		struct selftest t = { .dev = dev,
				      .device = device,
				      .seed = seed,
				      .pcapng = i ? NULL : pcapng,
				      .high_iova = i % 2,
				      .row = &rows[n],
				      .ix = ix };

		if (dev && checks[i].model_only)
			continue;
		memset(ix, 0, sizeof(*ix));
		rows[n] = (struct selftest_row){ .name = checks[i].name };
		if (open_device(&t))
			checks[i].check(&t);
		close_device(&t);
		if (dev && nicdev_gone(dev)) {
			t.failed = false; /* whatever followed from it */
			fail(&t, "the device is gone: all registers read as ones");
			rows[n++].passed = false;
			break;
		}
		rows[n++].passed = !t.failed;
	}
	free(ix);
	return n;
}
