/* SPDX-License-Identifier: MIT */
/*
 * The driver on the model: bring-up over many seeds, timing of one TSO, completions of each kind,
 * several queues, loopback, interrupts, statistics, hangs, and what is refused.
 */
#include "tests/hw/null_device.h"
#include "tests/hw/rig.h"

#define US SIM_PS_PER_US

/* All delays that the model draws, and power-on data: nothing is done wrong, whatever they are. */
static void bring_up(void **state)
{
	(void)state;
	for (u64 seed = 0; seed < 40; seed++) {
		struct rig *r = rig_new();
		char err[300] = "";

		r->mp.seed = seed;
		r->mp.aw39 = seed & 1;
		rig_open(r);
		if (ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)))
			fail_msg("%s", err);
		assert_int_equal(r->ix.mac[5], 0x4d);
		assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
		/* Again, over what is still running. */
		ixgbe_stop(&r->ix);
		assert_int_equal(ixgbe_start(&r->ix, r->dev, &r->cfg, err, sizeof(err)), 0);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

/* 64 KB at 10 Gbit/s: 45 frames of 1538 bytes with all that is around them. */
static void wire_time(void **state)
{
	struct rig *r = rig_new();
	u64 begin, segment = nic_time_ps(1538, 10000), first, last;

	(void)state;
	rig_open(r);
	begin = nicdev_now_ps(r->dev);
	assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_run_us(r, 200);
	assert_int_equal(r->nr_frames, 45);
	first = r->frame[0].f.depart_ps;
	last = r->frame[44].f.depart_ps;
	assert_int_equal(last - first + segment, 55368 * SIM_PS_PER_NS); /* 55.37 us */
	assert_int_equal(last - first, 54137600); /* 54.14 us */
	assert_true(first > begin + US);
	for (u32 i = 1; i < 45; i++)
		assert_int_equal(r->frame[i].f.depart_ps - r->frame[i - 1].f.depart_ps, segment);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* The timing of sim/nic.h to the picosecond, and with it the windows that were computed for it. */
static void windows(void **state)
{
	static const struct {
		const char *preset;
		u32 threshold_kb;
		int window_us; /* DD - departure of segment 2 */
	} rows[] = {
		{ "patch", 150, 110 }, { "gen1x4", 150, 71 },	  { "gen2x4", 150, 35 },
		{ "gen2x8", 150, 16 }, { "fifo_full", 146, -67 }, { "gen2x8", 20, 38 },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *r = rig_new();
		struct nic_params p = *nic_preset(rows[i].preset);
		struct model_times t;
		struct nic_lone lone;
		char err[200];
		u64 begin;

		r->mp.timing = &p;
		r->cfg = ixgbe_default_config;
		r->cfg.txpbthresh_kb = rows[i].threshold_kb;
		rig_open(r);
		begin = nicdev_now_ps(r->dev);
		assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
		rig_run_us(r, 500);
		p.fifo_threshold_bytes = rows[i].threshold_kb * 1024;
		assert_int_equal(nic_lone(&p, 65160, 1448, 10, 2, &lone, err, sizeof(err)), 0);
		model_tx_times(r->m, 0, &t);
		assert_int_equal(t.dd_ps - begin, lone.dd_ps);
		assert_int_equal(t.fetched_ps - begin, lone.fetched_ps);
		assert_int_equal(r->frame[0].f.depart_ps - begin, lone.first_ps);
		assert_int_equal(r->frame[1].f.depart_ps - begin, lone.kth_ps);
		assert_int_equal(r->frame[44].f.depart_ps - begin, lone.last_ps);
		assert_in_range(lone.window_ps + 1000 * US, (1000 + rows[i].window_us - 1) * US,
				(1000 + rows[i].window_us + 1) * US);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

/* Each way to report: every packet is told once and in order, also where WTHRESH leaves a rest. */
static void completions(void **state)
{
	static const struct {
		u32 wthresh, itr_us;
		bool head_wb, irq;
	} rows[] = {
		{ 0, 0, false, false }, { 0, 0, true, false },	{ 4, 10, false, true },
		{ 8, 50, false, true }, { 0, 50, false, true },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *r = rig_new();
		u32 posted = 0, done = 0;

		r->mp.seed = i;
		r->cfg = ixgbe_default_config;
		r->cfg.tx_ring = 64;
		r->cfg.wthresh = rows[i].wthresh;
		r->cfg.head_wb = rows[i].head_wb;
		r->cfg.irq = rows[i].irq;
		r->cfg.itr_us = rows[i].itr_us;
		r->cfg.max_desc_bytes = 4096;
		rig_open(r);
		while (done < 300) {
			struct rig_shape s = rig_64k;

			s.payload = 1 + posted * 97 % 20000;
			while (posted < 300 && !rig_post(r, 0, &s, 0, 20000)) {
				posted++;
				s.payload = 1 + posted * 97 % 20000;
			}
			ixgbe_tx_kick(&r->ix.txq[0]);
			assert_true(ixgbe_tx_pending(&r->ix.txq[0]) == posted - done);
			if (!nicdev_relax(r->dev, nicdev_now_ps(r->dev) + 1000 * US))
				fail_msg("row %u: %u of %u done, all is quiet", i, done, posted);
			done += ixgbe_tx_clean(&r->ix.txq[0], 64);
			rig_forget(r);
		}
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

/* A lone packet below WTHRESH: its DD comes with the moderation's end, later by that much. */
static void wthresh_rest(void **state)
{
	struct rig *r = rig_new();
	struct rig_shape s = rig_64k;
	struct model_times t;

	(void)state;
	s.payload = 1448;
	r->cfg = ixgbe_default_config;
	r->cfg.wthresh = 8;
	r->cfg.irq = true;
	r->cfg.itr_us = 50;
	rig_open(r);
	assert_int_equal(rig_post(r, 0, &s, 0, 1448), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	model_tx_times(r->m, 0, &t);
	assert_int_equal(t.dd_ps - t.fetched_ps, 50 * US + 300 * SIM_PS_PER_NS);
	rig_no_violation(r);
	rig_close(r);

	/* Without a timer it never comes: found out in bounded time, with the reason. */
	memset(r, 0, sizeof(*r));
	r->cfg = ixgbe_default_config;
	r->cfg.wthresh = 8;
	r->cfg.hang_ms = 20;
	rig_open(r);
	assert_int_equal(rig_post(r, 0, &s, 0, 1448), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	for (u32 ms = 0; ms < 20; ms++) {
		char text[512] = "";

		assert_false(ixgbe_tx_hung(&r->ix.txq[0], text, sizeof(text)));
		rig_run_us(r, 1000);
		assert_int_equal(ixgbe_tx_clean(&r->ix.txq[0], 64), 0);
	}
	{
		char text[512] = "";

		assert_true(ixgbe_tx_hung(&r->ix.txq[0], text, sizeof(text)));
		assert_non_null(strstr(text, "TDH 3 TDT 3"));
		assert_non_null(strstr(text, "WTHRESH 8, pending 1"));
		assert_non_null(strstr(text, "DMAR"));
	}
	rig_close(r);
	free(r);
}

/* Four queues: each its own ring; segments of equal packets alternate. */
static void queues(void **state)
{
	struct rig *r = rig_new();
	u32 next[4] = { 0 };

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.nr_txq = 4;
	r->cfg.nr_rxq = 1;
	rig_open(r);
	assert_int_equal(rig_post(r, 3, &rig_64k, 0, 65160), 0);
	ixgbe_tx_kick(&r->ix.txq[3]);
	rig_complete(r, 3, 1, 10);
	for (u32 q = 0; q < 3; q++)
		assert_int_equal(r->ix.txq[q].next_to_use, 0);
	rig_run_us(r, 100);
	rig_forget(r);
	for (u32 q = 0; q < 4; q++) {
		assert_int_equal(rig_post(r, q, &rig_64k, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[q]);
	}
	for (u32 q = 0; q < 4; q++)
		rig_complete(r, q, 1, 10);
	rig_run_us(r, 300);
	assert_int_equal(r->nr_frames, 4 * 45);
	for (u32 i = 0; i < r->nr_frames; i++) {
		const struct model_frame *f = &r->frame[i].f;

		assert_int_equal(f->segment, next[f->queue]++);
		assert_true(i % 4 == 3 || i > 170 || f->queue != r->frame[i + 1].f.queue);
	}
	ixgbe_update_stats(&r->ix);
	assert_int_equal(r->ix.stats.tx_packets, 5 * 45);
	assert_int_equal(r->ix.stats.tx_bytes, 5 * 45 * 1518);
	assert_int_equal(r->ix.stats.tx_dma_packets, 5);
	assert_int_equal(r->ix.stats.txq_packets[3], 90);
	assert_int_equal(r->ix.stats.pause_received, 0);
	ixgbe_update_stats(&r->ix); /* reading cleared them */
	assert_int_equal(r->ix.stats.tx_packets, 5 * 45);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* The other way round: one transmit queue, and no second one is touched. */
static void more_receive_queues(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.nr_rxq = 4;
	rig_open(r);
	for (u32 q = 0; q < 6; q++) {
		u32 tx = nicdev_read32(r->dev, IXGBE_TXDCTL(q)) & IXGBE_TXDCTL_ENABLE;
		u32 rx = nicdev_read32(r->dev, IXGBE_RXDCTL(q)) & IXGBE_RXDCTL_ENABLE;

		assert_int_equal(!!tx, q == 0);
		assert_int_equal(!!rx, q < 4);
		assert_int_equal(!!nicdev_read32(r->dev, IXGBE_TDLEN(q)), q == 0);
	}
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/*
 * Packets of 33 pieces, most of 4 bytes, round a ring many times: RS on each one's last descriptor,
 * so never further apart than the chip keeps descriptors.
 */
static void many_pieces(void **state)
{
	struct rig *r = rig_new();
	struct ixgbe_buf buf[33];
	const struct ixgbe_tx_packet pkt = { .buf = buf, .nr_bufs = ARRAY_SIZE(buf) };
	struct ixgbe_txq *q;
	u32 sent = 0, done = 0, distance = 0;

	(void)state;
	rig_open(r);
	q = &r->ix.txq[0];
	for (u32 i = 0; i < 4096; i++)
		r->arena.base[i] = i * 31 >> 3;
	for (u32 i = 0; i < ARRAY_SIZE(buf); i++)
		buf[i] = (struct ixgbe_buf){ r->arena.iova + (i ? 100 + i * 64 : 0), i ? 4 : 64 };
	while (sent < 100) {
		u32 first = q->next_to_use;

		if (ixgbe_tx_post(q, &pkt, NULL, 0)) {
			done += ixgbe_tx_clean(q, 64);
			nicdev_relax(r->dev, nicdev_now_ps(r->dev) + SIM_PS_PER_US);
			continue;
		}
		for (; first != q->next_to_use; first = (first + 1) % q->nr) {
			distance++;
			if (q->desc[first].lo & IXGBE_TXD_RS) {
				assert_true(q->desc[first].lo & IXGBE_TXD_EOP);
				assert_in_range(distance, 1, IXGBE_TX_DESC_CACHE);
				distance = 0;
			}
		}
		assert_int_equal(distance, 0);
		ixgbe_tx_kick(q);
		sent++;
	}
	rig_complete(r, 0, 100 - done, 10);
	rig_run_us(r, 100);
	assert_int_equal(r->nr_frames, 100);
	for (u32 i = 0; i < 100; i++) {
		assert_int_equal(r->frame[i].f.len, 64 + 32 * 4);
		assert_memory_equal(r->frame[i].data, r->arena.base, 64);
		for (u32 b = 1; b < ARRAY_SIZE(buf); b++)
			assert_memory_equal(r->frame[i].data + 60 + b * 4,
					    r->arena.base + 100 + b * 64, 4);
	}
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* 3000 bytes over IPv6 and IPv4 at an MSS of 1400: each segment's own length. */
static void segment_lengths(void **state)
{
	static const u32 payload[] = { 1400, 1400, 200 };
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	for (u32 six = 0; six < 2; six++) {
		struct rig_shape s = rig_64k;

		s.ipv6 = six;
		s.payload = 3000;
		s.mss = 1400;
		assert_int_equal(rig_post(r, 0, &s, 0, 3000), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
	}
	rig_run_us(r, 100);
	assert_int_equal(r->nr_frames, 6);
	for (u32 i = 0; i < 6; i++) {
		const u8 *ip = r->frame[i].data + 14;
		u32 l4 = 32 + payload[i % 3];

		if (i < 3)
			assert_int_equal(ip[2] << 8 | ip[3], 20 + l4);
		else
			assert_int_equal(ip[4] << 8 | ip[5], l4);
		assert_int_equal(r->frame[i].f.len, 14 + (i < 3 ? 20 : 40) + l4);
	}
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

struct received {
	u32 nr;
	u64 bytes;
	u32 next_seq;
};

static void take_frame(void *ctx, const u8 *data, u32 len)
{
	struct received *rx = ctx;
	u32 seq = (u32)data[38] << 24 | data[39] << 16 | data[40] << 8 | data[41];

	assert_int_equal(seq, rx->next_seq);
	rx->next_seq += len - 66;
	rx->bytes += len;
	rx->nr++;
}

/* In the MAC: what is sent comes back, in order, at line rate; by interrupts this time. */
static void loopback(void **state)
{
	struct rig *r = rig_new();
	struct received rx = { .next_seq = 1 };
	struct rig_shape s = rig_64k;
	char err[300];
	u32 irqs = 0;

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.loopback = true;
	r->cfg.promiscuous = true;
	r->cfg.rx_ring = 64;
	r->cfg.irq = true;
	r->cfg.itr_us = 20;
	rig_open(r);
	assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), 0);
	for (u32 i = 0; i < 8; i++, s.seq += 65160) {
		assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
	}
	while (nicdev_relax(r->dev, nicdev_now_ps(r->dev) + 1000 * US)) {
		ixgbe_tx_clean(&r->ix.txq[0], 64);
		if (!nicdev_irq_pending(r->dev, ixgbe_rx_vector(&r->ix, 0)))
			continue;
		irqs++;
		ixgbe_rx_poll(&r->ix.rxq[0], 64, take_frame, &rx);
		ixgbe_irq_rearm(&r->ix, ixgbe_rx_vector(&r->ix, 0));
	}
	assert_int_equal(rx.nr, 8 * 45);
	assert_int_equal(rx.next_seq, 1 + 8 * 65160);
	/* 443 us of frames, an interrupt each 20 us. */
	assert_in_range(irqs, 15, 24);
	assert_int_equal(r->nr_frames, 0);
	ixgbe_update_stats(&r->ix);
	assert_int_equal(r->ix.stats.rx_packets, 8 * 45);
	assert_int_equal(r->ix.stats.rx_missed, 0);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

static void count_frame(void *ctx, const u8 *data, u32 len)
{
	(void)data;
	*(u32 *)ctx += len;
}

/* A frame larger than a buffer, one for nobody, and more than there are buffers. */
static void receive_limits(void **state)
{
	struct rig *r = rig_new();
	u8 frame[1514] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	u32 bytes = 0;

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.rx_ring = 64;
	r->cfg.rx_buffer = 1024;
	rig_open(r);
	assert_int_equal(model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, 1514), 0);
	assert_int_equal(model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, 100), 0);
	rig_run_us(r, 10);
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 64, count_frame, &bytes), 3);
	assert_int_equal(bytes, 100);
	assert_int_equal(r->ix.rxq[0].errors, 1);

	frame[0] = 2; /* somebody else's */
	assert_int_equal(model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, 100), 0);
	rig_run_us(r, 10);
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 64, count_frame, &bytes), 0);

	memcpy(frame, r->ix.mac, 6);
	for (u32 i = 0; i < 80; i++)
		assert_int_equal(model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, 60), 0);
	rig_run_us(r, 10);
	bytes = 0;
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 100, count_frame, &bytes), 63);
	assert_int_equal(bytes, 63 * 60);
	ixgbe_update_stats(&r->ix);
	assert_int_equal(r->ix.stats.rx_missed, 17);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* Bits that never come, a port without a module, a device that goes away: told, in bounded time. */
static void gives_up(void **state)
{
	static const struct {
		struct model_params mp;
		int ret;
		const char *says;
	} rows[] = {
		{ { .no_auto_rd = true }, -ETIMEDOUT, "AUTO_RD" },
		{ { .no_dmaidone = true }, -ETIMEDOUT, "DMAIDONE" },
		{ { .no_reset = true }, -ETIMEDOUT, "CTRL.RST" },
		{ { .no_enable = true }, -ETIMEDOUT, "TXDCTL.ENABLE" },
		{ { .device = 0x57ae }, -ENODEV, "8086:57ae" },
	};
	struct rig *r = rig_new();
	char err[300] = "";

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		r->mp = rows[i].mp;
		rig_power_on(r);
		assert_int_equal(
			ixgbe_start(&r->ix, r->dev, &ixgbe_default_config, err, sizeof(err)),
			rows[i].ret);
		if (!strstr(err, rows[i].says))
			fail_msg("'%s' does not say '%s'", err, rows[i].says);
		assert_true(nicdev_now_ps(r->dev) < 3000 * SIM_PS_PER_MS);
		rig_close(r);
		memset(r, 0, sizeof(*r));
	}
	r->mp.no_link = true;
	rig_open(r);
	assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), -ETIMEDOUT);
	assert_non_null(strstr(err, "no module"));
	rig_no_violation(r);
	model_surprise_removal(r->m);
	assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), -ENODEV);
	{
		u64 begin = nicdev_now_ps(r->dev);

		ixgbe_stop(&r->ix);
		assert_true(nicdev_now_ps(r->dev) - begin < 1000 * SIM_PS_PER_MS);
		assert_int_equal(ixgbe_start(&r->ix, r->dev, &r->cfg, err, sizeof(err)), -ENODEV);
		assert_non_null(strstr(err, "gone"));
	}
	rig_close(r);
	free(r);
}

/* What the chip cannot take never reaches it. */
static void refused(void **state)
{
	struct ixgbe_config bad[] = {
		[0 ... 11] = ixgbe_default_config,
	};
	struct rig *r = rig_new();
	struct rig_shape s = rig_64k;
	char err[300];

	(void)state;
	bad[0].tx_ring = 32;
	bad[1].rx_ring = 8200;
	bad[2].tx_ring = 100;
	bad[3].wthresh = 9;
	bad[4].hthresh = 0;
	bad[5].head_wb = true, bad[5].wthresh = 1;
	bad[6].itr_us = 1023;
	bad[7].rx_buffer = 1500;
	bad[8].max_desc_bytes = 16384;
	bad[9].nr_txq = 0;
	bad[10].txpbthresh_kb = 1;
	bad[11].irq = true, bad[11].nr_txq = 16;
	rig_power_on(r);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		err[0] = 0;
		assert_int_equal(ixgbe_start(&r->ix, r->dev, &bad[i], err, sizeof(err)), -EINVAL);
		assert_true(err[0]);
	}
	nicdev_arena_exit(&r->arena);
	nicdev_close(r->dev);
	memset(r, 0, sizeof(*r));

	rig_open(r);
	assert_int_equal(rig_post(r, 0, &s, 0, 1448), -E2BIG); /* 45 buffers and a header */
	{
		const struct ixgbe_buf none[2] = { { r->arena.iova, 60 }, { r->arena.iova, 0 } };
		const struct ixgbe_tx_packet pkt = { .buf = none, .nr_bufs = 2 };

		assert_int_equal(ixgbe_tx_post(&r->ix.txq[0], &pkt, err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, "buffer 1 of 2"));
	}
	s.payload = 262144;
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), -EINVAL);
	s.payload = 262143;
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
	s.payload = 65160;
	s.mss = 1449;
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), -EINVAL);
	s.mss = 0;
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), -EINVAL);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	/* A full ring says so, and takes it later. */
	s = rig_64k;
	for (u32 i = 0; i < 51; i++) /* 10 descriptors each, of 511 */
		assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), -ENOSPC);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 51, 100);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* Plain frames in batches: round the ring many times, as they are in memory; what is no frame stays. */
static void frames(void **state)
{
	struct rig *r = rig_new();
	struct ixgbe_buf buf[48];
	struct ixgbe_txq *q;
	u32 sent = 0;

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.tx_ring = 64;
	rig_open(r);
	q = &r->ix.txq[0];
	for (u32 i = 0; i < 4096; i++)
		r->arena.base[i] = (i * 2654435761u) >> 24;
	for (u32 round = 0; round < 40; round++) {
		u32 n = 1 + round * 7 % ARRAY_SIZE(buf);

		for (u32 i = 0; i < n; i++)
			buf[i] = (struct ixgbe_buf){ r->arena.iova + round * 31 + i,
						     60 + (round * 131 + i * 17) % 1455 };
		assert_int_equal(ixgbe_tx_post_frames(q, buf, n), n);
		ixgbe_tx_kick(q);
		rig_complete(r, 0, n, 10);
		rig_run_us(r, 100);
		assert_int_equal(r->nr_frames, sent + n);
		for (u32 i = 0; i < n; i++, sent++) {
			assert_int_equal(r->frame[sent].f.len, buf[i].len);
			assert_memory_equal(r->frame[sent].data, r->arena.base + round * 31 + i,
					    buf[i].len);
		}
	}
	/* A full ring takes what it has room for, a frame that is none ends the batch. */
	for (u32 i = 0; i < ARRAY_SIZE(buf); i++)
		buf[i] = (struct ixgbe_buf){ r->arena.iova, 1514 };
	assert_int_equal(ixgbe_tx_post_frames(q, buf, 48), 48);
	assert_int_equal(ixgbe_tx_post_frames(q, buf, 48), 15);
	assert_int_equal(ixgbe_tx_post_frames(q, buf, 1), 0);
	ixgbe_tx_kick(q);
	rig_complete(r, 0, 63, 10);
	buf[3].len = 1515;
	buf[5].len = 16;
	assert_int_equal(ixgbe_tx_post_frames(q, buf, 9), 3);
	assert_int_equal(ixgbe_tx_post_frames(q, buf + 5, 9), 0);
	ixgbe_tx_kick(q);
	rig_complete(r, 0, 3, 10);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* A burst of a TSO, a plain packet and a TSO: no field of one shows in another. */
static void plain_between(void **state)
{
	struct rig *r = rig_new();
	struct rig_shape s = rig_64k, plain = rig_64k;
	struct ixgbe_desc alone[2], burst[2];
	struct ixgbe_txq *q;

	(void)state;
	plain.payload = 1000;
	plain.mss = 0;
	rig_open(r);
	q = &r->ix.txq[0];
	assert_int_equal(rig_post(r, 0, &plain, 0, 1000), 0);
	memcpy(alone, &q->desc[0], sizeof(alone));
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
	assert_int_equal(rig_post(r, 0, &plain, 0, 1000), 0);
	memcpy(burst, &q->desc[q->next_to_use - 3], sizeof(burst));
	assert_int_equal(rig_post(r, 0, &s, 0, 65160), 0);
	assert_memory_equal(&alone[0], &burst[0], sizeof(alone[0])); /* the context */
	assert_int_equal(alone[1].lo, burst[1].lo);
	assert_int_equal(alone[1].hi, burst[1].hi);
	ixgbe_tx_kick(q);
	rig_complete(r, 0, 4, 10);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* The same seed gives the same run, to the last frame and picosecond. */
static void deterministic(void **state)
{
	u64 hash[3];

	(void)state;
	for (u32 i = 0; i < 3; i++) {
		struct rig *r = rig_new();

		r->mp.seed = i / 2;
		rig_open(r);
		assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
		rig_run_us(r, 100);
		hash[i] = model_trace_hash(r->m);
		rig_close(r);
		free(r);
	}
	assert_true(hash[0] == hash[1]);
	assert_true(hash[0] != hash[2]);
}

/* The clock runs at its rate on each MAC that it was written for; a stamp waits until it is read. */
static void clock_and_stamps(void **state)
{
	struct rig *r = rig_new();
	struct rig_shape s = rig_64k;
	u8 frame[60] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xf7 };
	struct ixgbe_buf buf;
	struct ixgbe_txq *q;
	char err[200];
	u64 ns, first, depart_ns, start_ps;

	(void)state;
	rig_open(r);
	assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), 0);
	assert_int_equal(ixgbe_clock_start(&r->ix, err, sizeof(err)), 0);
	first = ixgbe_clock_ns(&r->ix);
	start_ps = nicdev_now_ps(r->dev);
	rig_run_us(r, 1000);
	/* A tick of 6.4 ns, and 2^-21 ns cut off each. */
	assert_in_range(ixgbe_clock_ns(&r->ix) - first, 999990, 1000000);
	assert_false(ixgbe_tx_stamp(&r->ix, &ns));

	q = &r->ix.txq[0];
	memcpy(r->arena.base, frame, sizeof(frame));
	buf = (struct ixgbe_buf){ r->arena.iova, sizeof(frame) };
	for (u32 round = 0; round < 2; round++) {
		u32 before = r->nr_frames;

		assert_int_equal(rig_post(r, 0, &s, 4096, 65160), 0);
		assert_int_equal(ixgbe_tx_post_marker(q, &buf), 0);
		assert_int_equal(ixgbe_tx_post_marker(q, &buf), 0); /* not stamped */
		ixgbe_tx_kick(q);
		rig_complete(r, 0, 3, 10);
		rig_run_us(r, 100);
		assert_int_equal(r->nr_frames, before + 47);
		depart_ns = (r->frame[before + 45].f.depart_ps - start_ps) / 1000 + first;
		assert_true(ixgbe_tx_stamp(&r->ix, &ns));
		assert_in_range(ns, depart_ns - 20, depart_ns + 20);
		assert_false(ixgbe_tx_stamp(&r->ix, &ns));
		assert_memory_equal(r->frame[before + 45].data, frame, sizeof(frame));
	}
	buf.len = 1515;
	assert_int_equal(ixgbe_tx_post_marker(q, &buf), -EINVAL);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/*
 * The table: no device twice, and each starts on the model as itself, gets its link and sends. Tested
 * are those whose PHY the model has as well.
 */
static void identification(void **state)
{
	/* Virtual functions, the E610, an 82598, an 82576. */
	static const u16 not_ours[] = { 0x10ed, 0x1515, 0x1565, 0x15a8, 0x15c5, 0x57ae, 0x57af,
					0x57b0, 0x57b1, 0x57b2, 0x10c7, 0x10c9, 0,	0xffff };

	(void)state;
	for (u32 i = 0; i < nr_ixgbe_ids; i++) {
		struct rig *r = rig_new();
		char err[300] = "";

		for (u32 j = 0; j < i; j++)
			assert_int_not_equal(ixgbe_ids[i].device, ixgbe_ids[j].device);
		assert_ptr_equal(ixgbe_find_id(ixgbe_ids[i].device), &ixgbe_ids[i]);
		r->mp.device = ixgbe_ids[i].device;
		r->mp.seed = i;
		rig_open(r);
		assert_ptr_equal(r->ix.id, &ixgbe_ids[i]);
		if (ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)))
			fail_msg("%s: %s", ixgbe_ids[i].name, err);
		assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
		rig_no_violation(r);
		rig_close(r);
		free(r);
		assert_int_equal(ixgbe_id_tested(&ixgbe_ids[i]), ixgbe_ids[i].mac <= IXGBE_X550);
	}
	for (enum ixgbe_mac mac = IXGBE_82599; mac <= IXGBE_X553; mac++) {
		static const u32 expected[] = { 16, 2, 2, 6, 11 };
		static const u32 cages[] = { 7, 0, 0, 0, 0 };
		u32 n = 0, with_cage = 0;

		for (u32 i = 0; i < nr_ixgbe_ids; i++) {
			n += ixgbe_ids[i].mac == mac;
			with_cage += ixgbe_ids[i].mac == mac && ixgbe_ids[i].cage;
		}
		assert_int_equal(n, expected[mac]);
		assert_int_equal(with_cage, cages[mac]);
	}
	for (u32 i = 0; i < ARRAY_SIZE(not_ours); i++)
		assert_null(ixgbe_find_id(not_ours[i]));
}

/* Starts as R->mp has it; what came of it, and how long it took. */
static int start_timed(struct rig *r, u32 *ms, char *err, size_t errlen)
{
	u64 begin;
	int ret;

	rig_power_on(r);
	if (!r->cfg.nr_txq)
		r->cfg = ixgbe_default_config;
	begin = nicdev_now_ps(r->dev);
	ret = ixgbe_start(&r->ix, r->dev, &r->cfg, err, errlen);
	*ms = (nicdev_now_ps(r->dev) - begin) / SIM_PS_PER_MS;
	if (ret)
		assert_int_equal(nicdev_config_read16(r->dev, PCI_CFG_COMMAND) & PCI_COMMAND_MASTER,
				 0);
	return ret;
}

/*
 * EEPROM, PHY and AUTOC while firmware or another driver has them, or the semaphore's register: who
 * lets go is waited for, a driver that does not is taken over from after a second, firmware that does
 * not is told, in bounded time; a port that needs none of them starts all the same.
 */
static void shared_with_firmware(void **state)
{
	static const struct {
		u16 device;
		const char *has; /* what the start takes first; NULL: nothing */
	} ports[] = {
		{ 0x10fb, "the EEPROM" },	 { 0x10f7, NULL },
		{ 0x1528, "the PHY of port 0" }, { 0x1563, "the PHY of port 0" },
		{ 0x15ac, "the PHY of port 0" }, { 0x15ce, "the PHY of port 0" },
	};
	static const struct {
		enum model_holder holder;
		u32 held_ms; /* ~0: for ever */
		u32 least_ms, most_ms; /* of the start */
		const char *says; /* NULL: it starts */
	} rows[] = {
		{ MODEL_NOBODY, 0, 0, 1500, NULL },
		{ MODEL_FIRMWARE, 400, 400, 2000, NULL },
		{ MODEL_FIRMWARE, ~0u, 1000, 3500, "firmware keeps the" },
		{ MODEL_FIRMWARE_REGISTER, 2500, 2500, 4500, NULL },
		{ MODEL_FIRMWARE_REGISTER, ~0u, 3000, 4500,
		  "firmware keeps the semaphore for 3 s" },
		{ MODEL_DRIVER, 400, 400, 2000, NULL },
		{ MODEL_DRIVER, ~0u, 1000, 3000, NULL },
		{ MODEL_DRIVER_REGISTER, 400, 400, 2000, NULL },
		{ MODEL_DRIVER_REGISTER, ~0u, 3000, 4500, NULL },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(ports) * ARRAY_SIZE(rows); i++) {
		const u32 port = i / ARRAY_SIZE(rows), row = i % ARRAY_SIZE(rows);
		const char *says = ports[port].has ? rows[row].says : NULL;
		struct rig *r = rig_new();
		char err[300] = "";
		u32 ms;
		int ret;

		r->mp.seed = i;
		r->mp.device = ports[port].device;
		r->mp.holder = rows[row].holder;
		r->mp.held_ps =
			rows[row].held_ms == ~0u ? ~0ull : rows[row].held_ms * SIM_PS_PER_MS;
		ret = start_timed(r, &ms, err, sizeof(err));
		if (ret != (says ? -EBUSY : 0))
			fail_msg("port %u, row %u: %d %s", port, row, ret, err);
		if (says && (!strstr(err, says) ||
			     (rows[row].holder == MODEL_FIRMWARE && !strstr(err, ports[port].has))))
			fail_msg("port %u, row %u: '%s'", port, row, err);
		if (ports[port].has)
			assert_in_range(ms, rows[row].least_ms, rows[row].most_ms);
		rig_no_violation(r);
		if (!ret)
			assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), 0);
		rig_close(r);
		free(r);
	}
}

/* In the loopback AUTOC is written, which firmware may have: 82599 only, later ones have none. */
static void loopback_with_firmware(void **state)
{
	static const u16 devices[] = { 0x10fb, 0x10f7, 0x1528 };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(devices) * 2; i++) {
		const bool hangs = i % 2, late = devices[i / 2] == 0x1528;
		struct rig *r = rig_new();
		char err[300] = "";
		u32 ms;

		r->mp.device = devices[i / 2];
		r->mp.firmware_links = true;
		r->mp.holder = MODEL_FIRMWARE;
		r->mp.held_ps = hangs ? ~0ull : 700 * SIM_PS_PER_MS;
		r->cfg = ixgbe_default_config;
		r->cfg.loopback = true;
		assert_int_equal(start_timed(r, &ms, err, sizeof(err)), hangs ? -EBUSY : 0);
		if (hangs)
			assert_non_null(strstr(err, late ? "the PHY of" : "the link registers"));
		else
			assert_true(ms >= 700);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

/* EEPROM and MDIO that do not answer are told, where they are asked. */
static void no_answer(void **state)
{
	static const u16 devices[] = { 0x10fb, 0x10f7, 0x1528, 0x1563, 0x15ac, 0x15ce };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(devices) * 2; i++) {
		const u32 n = i / 2;
		const bool eerd = i % 2, asked = eerd ? n == 0 : n == 2 || n == 3;
		struct rig *r = rig_new();
		char err[300] = "";
		u32 ms;

		r->mp.device = devices[n];
		r->mp.no_eerd = eerd;
		r->mp.no_mdio = !eerd;
		assert_int_equal(start_timed(r, &ms, err, sizeof(err)), asked ? -EIO : 0);
		if (asked)
			assert_non_null(strstr(err, eerd ? "word 0x2c" : "MDIO does not answer"));
		assert_true(ms < 2000);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

/* A 10GBASE-T PHY comes in low power, as the kernel's driver leaves it: no link before, one after. */
static void sleeping_phy(void **state)
{
	static const u16 devices[] = { 0x1528, 0x1560, 0x1563, 0x15d1 };

	(void)state;
	for (u32 i = 0; i < 4 * ARRAY_SIZE(devices); i++) {
		struct rig *r = rig_new();
		char err[300] = "";
		u32 ms;

		r->mp.device = devices[i % ARRAY_SIZE(devices)];
		r->mp.seed = i; /* the PHY's address, too */
		rig_power_on(r);
		rig_run_us(r, 5000000);
		nicdev_read32(r->dev, IXGBE_LINKS);
		assert_int_equal(nicdev_read32(r->dev, IXGBE_LINKS) & IXGBE_LINKS_UP, 0);
		assert_int_equal(
			ixgbe_start(&r->ix, r->dev, &ixgbe_default_config, err, sizeof(err)), 0);
		if (ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)))
			fail_msg("%s", err);
		rig_no_violation(r);
		rig_close(r);
		memset(r, 0, sizeof(*r));
		/* In the loopback the MAC needs none. */
		r->mp.device = devices[i % ARRAY_SIZE(devices)];
		r->mp.no_link = true;
		r->cfg = ixgbe_default_config;
		r->cfg.loopback = true;
		assert_int_equal(start_timed(r, &ms, err, sizeof(err)), 0);
		assert_int_equal(ixgbe_wait_link(&r->ix, 100, err, sizeof(err)), 0);
		rig_close(r);
		free(r);
	}
}

/* An empty cage picks up its neighbour: LINKS says up. Down, if the board tells; else as LINKS says. */
static void empty_cage(void **state)
{
	static const struct {
		u16 device;
		bool no_pin, loopback, up;
	} rows[] = {
		{ 0x10fb, false, false, false }, { 0x1558, false, false, false },
		{ 0x10fb, true, false, true },	 { 0x10fb, false, true, true },
		{ 0x10f7, false, false, true },	 { 0x151c, false, false, true },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *r = rig_new();
		char err[300] = "";

		r->mp.device = rows[i].device;
		r->mp.empty_cage = true;
		r->mp.no_cage_pin = rows[i].no_pin;
		r->cfg = ixgbe_default_config;
		r->cfg.loopback = rows[i].loopback;
		rig_open(r);
		assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)),
				 rows[i].up ? 0 : -ETIMEDOUT);
		assert_int_equal(ixgbe_link_up(&r->ix), rows[i].up);
		assert_true(nicdev_read32(r->dev, IXGBE_LINKS) & IXGBE_LINKS_UP);
		assert_int_equal(strstr(err, "no module in the cage") != NULL, !rows[i].up);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

static u32 esdp_reads, eeprom_caps;

static u32 read_pins(struct nicdev *dev, u32 reg)
{
	esdp_reads += reg == IXGBE_ESDP;
	if (reg == IXGBE_EERD)
		return eeprom_caps << IXGBE_EERD_DATA_SHIFT | IXGBE_EERD_DONE;
	return null_read32(dev, reg == IXGBE_EEC_X553 ? IXGBE_EEC : reg);
}

/*
 * Whether the link is up LINKS decides. SDP2 takes part where it is known to tell of a module: on an
 * 82599 with a cage whose EEPROM does not deny it. Boards wire their other pins as they like, and
 * media without a cage these, too: they are not even read.
 */
static void link_and_pins(void **state)
{
	static const u16 devices[] = { 0x10fb, 0x154d, 0x10f7, 0x151c, 0x1528,
				       0x1563, 0x15ac, 0x15ad, 0x15ce, 0x15c8 };
	static const u32 pins[] = { 0, IXGBE_ESDP_SDP2, 1u << 0, 1u << 3, 0xff, 0xffffffff };

	(void)state;
	for (u32 i = 0; i < 2 * ARRAY_SIZE(devices) * ARRAY_SIZE(pins); i++) {
		struct nicdev *dev = null_device_open();
		struct nicdev_ops ops = *dev->ops;
		const u16 device = devices[i / 2 / ARRAY_SIZE(pins)];
		const u32 esdp = pins[i / 2 % ARRAY_SIZE(pins)];
		bool tells, module;
		struct ixgbe ix;
		char err[300] = "";

		ops.read32 = read_pins;
		dev->ops = &ops;
		dev->device = device;
		eeprom_caps = i % 2 ? IXGBE_EEPROM_CAPS_NO_CAGE : 0;
		tells = (device == 0x10fb || device == 0x154d) && !eeprom_caps;
		module = !tells || esdp & IXGBE_ESDP_SDP2;
		assert_int_equal(ixgbe_start(&ix, dev, &ixgbe_default_config, err, sizeof(err)), 0);
		esdp_reads = 0;
		null_write32(dev, IXGBE_ESDP, esdp);
		null_write32(dev, IXGBE_LINKS, IXGBE_LINKS_UP);
		assert_int_equal(ixgbe_link_up(&ix), module);
		assert_int_equal(ixgbe_wait_link(&ix, 100, err, sizeof(err)),
				 module ? 0 : -ETIMEDOUT);
		null_write32(dev, IXGBE_LINKS, 0);
		assert_false(ixgbe_link_up(&ix));
		assert_int_equal(ixgbe_wait_link(&ix, 100, err, sizeof(err)), -ETIMEDOUT);
		assert_int_equal(strstr(err, "no module") != NULL, !module);
		assert_int_equal(esdp_reads != 0, tells);
		ixgbe_stop(&ix);
		nicdev_close(dev);
	}
}

/* The clock of each MAC, which counts in units of its own, against the model's time. */
static void clocks(void **state)
{
	static const u16 devices[] = { 0x10fb, 0x1528, 0x1563, 0x15ac, 0x15ce };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(devices); i++) {
		struct rig *r = rig_new();
		char err[300] = "";
		u64 first;

		r->mp.device = devices[i];
		rig_open(r);
		assert_int_equal(ixgbe_wait_link(&r->ix, 9000, err, sizeof(err)), 0);
		if (ixgbe_clock_start(&r->ix, err, sizeof(err)))
			fail_msg("%s", err);
		first = ixgbe_clock_ns(&r->ix);
		rig_run_us(r, 2500000); /* over two changes of the second */
		assert_in_range(ixgbe_clock_ns(&r->ix) - first, 2499990000, 2500000100);
		rig_no_violation(r);
		rig_close(r);
		free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_and_pins),
		cmocka_unit_test(empty_cage),
		cmocka_unit_test(shared_with_firmware),
		cmocka_unit_test(loopback_with_firmware),
		cmocka_unit_test(no_answer),
		cmocka_unit_test(sleeping_phy),
		cmocka_unit_test(clocks),
		cmocka_unit_test(bring_up),
		cmocka_unit_test(wire_time),
		cmocka_unit_test(windows),
		cmocka_unit_test(completions),
		cmocka_unit_test(wthresh_rest),
		cmocka_unit_test(queues),
		cmocka_unit_test(loopback),
		cmocka_unit_test(receive_limits),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(refused),
		cmocka_unit_test(plain_between),
		cmocka_unit_test(deterministic),
		cmocka_unit_test(identification),
		cmocka_unit_test(frames),
		cmocka_unit_test(clock_and_stamps),
		cmocka_unit_test(more_receive_queues),
		cmocka_unit_test(many_pieces),
		cmocka_unit_test(segment_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
