/* SPDX-License-Identifier: MIT */
/*
 * A model with the driver on it, TSO packets with their headers, and what came out of the wire.
 */
#ifndef TESTS_HW_RIG_H
#define TESTS_HW_RIG_H

#include "hw/ixgbe/ixgbe.h"
#include "hw/model_82599/model.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define RIG_MAX_FRAMES 4400

struct rig_frame {
	struct model_frame f;
	u8 *data;
};

struct rig {
	struct model_params mp;
	struct ixgbe_config cfg;
	struct model_82599 *m;
	struct nicdev *dev;
	struct ixgbe ix;
	struct nicdev_arena arena; /* payload */
	struct rig_frame frame[RIG_MAX_FRAMES];
	u32 nr_frames;
};

/* Zeroed; free() it. */
static inline struct rig *rig_new(void)
{
	struct rig *r = aligned_alloc(64, ALIGN(sizeof(*r), 64));

	assert_non_null(r);
	return memset(r, 0, sizeof(*r));
}

static inline void rig_partner(void *ctx, const struct model_frame *f)
{
	struct rig *r = ctx;
	struct rig_frame *rf = &r->frame[r->nr_frames++];

	assert_true(r->nr_frames <= RIG_MAX_FRAMES);
	rf->f = *f;
	rf->data = malloc(f->len);
	memcpy(rf->data, f->data, f->len);
}

static inline void rig_forget(struct rig *r)
{
	while (r->nr_frames)
		free(r->frame[--r->nr_frames].data);
}

/* The device alone. Fields of r->mp and r->cfg that the caller has set stay. */
static inline void rig_power_on(struct rig *r)
{
	char err[300] = "";

	r->mp.partner = rig_partner;
	r->mp.ctx = r;
	if (model_open(&r->mp, &r->m, err, sizeof(err)))
		fail_msg("%s", err);
	r->dev = model_nicdev(r->m);
	if (nicdev_arena_init(&r->arena, r->dev, 2 << 20, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline void rig_open(struct rig *r)
{
	char err[300] = "";

	rig_power_on(r);
	if (!r->cfg.nr_txq)
		r->cfg = ixgbe_default_config;
	if (ixgbe_start(&r->ix, r->dev, &r->cfg, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline void rig_no_violation(struct rig *r)
{
	if (model_nr_violations(r->m))
		fail_msg("%s", model_first_violation(r->m));
}

static inline void rig_close(struct rig *r)
{
	ixgbe_stop(&r->ix);
	nicdev_arena_exit(&r->arena);
	nicdev_close(r->dev);
	rig_forget(r);
}

static inline void rig_run_us(struct rig *r, u32 us)
{
	nicdev_delay_us(r->dev, us);
}

/*
 * --- packets
 * ----------------------------------------------------------------------------------------------
 */

static inline void rig_put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline u32 rig_sum(const u8 *p, u32 len)
{
	u32 sum = 0;

	for (u32 i = 0; i < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	return sum;
}

struct rig_shape {
	bool ipv6;
	u32 ip_options; /* bytes: IPv4 options, or IPv6 destination options; a multiple of 8 */
	u32 tcp_options; /* bytes, a multiple of 4 */
	u32 payload, mss; /* mss 0: one frame, checksums only */
	u32 seq;
	u16 id, flags;
};

/*
 * A packet's header at H as software leaves it for the chip. Returns its length; lengths of its
 * parts go into PKT.
 */
static inline u32 rig_header(u8 *h, const struct rig_shape *s, struct ixgbe_tx_packet *pkt)
{
	static const u8 mac[12] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
	u32 iplen = (s->ipv6 ? 40 : 20) + s->ip_options, l4len = 20 + s->tcp_options;
	u8 *ip = h + 14, *tcp = ip + iplen;
	u32 sum;

	memset(h, 0, 14 + iplen + l4len);
	memcpy(h, mac, 12);
	rig_put16(h + 12, s->ipv6 ? 0x86dd : 0x0800);
	if (s->ipv6) {
		ip[0] = 0x60;
		ip[6] = s->ip_options ? 60 : 6;
		ip[7] = 64;
		for (u32 i = 0; i < 32; i++)
			ip[8 + i] = 0x20 + i;
		if (s->ip_options) {
			ip[40] = 6;
			ip[41] = s->ip_options / 8 - 1;
			ip[42] = 1; /* PadN */
			ip[43] = s->ip_options - 4;
		}
		sum = rig_sum(ip + 8, 32);
	} else {
		ip[0] = 0x40 | iplen / 4;
		rig_put16(ip + 4, s->id);
		ip[6] = 0x40;
		ip[8] = 64;
		ip[9] = 6;
		for (u32 i = 0; i < 8; i++)
			ip[12 + i] = 10 + i;
		memset(ip + 20, 1, s->ip_options);
		sum = rig_sum(ip + 12, 8);
		if (!s->mss)
			rig_put16(ip + 2, iplen + l4len + s->payload);
	}
	if (s->ipv6 && !s->mss)
		rig_put16(ip + 4, s->ip_options + l4len + s->payload);
	rig_put16(tcp, 40000);
	rig_put16(tcp + 2, 5001);
	rig_put16(tcp + 4, s->seq >> 16);
	rig_put16(tcp + 6, s->seq);
	tcp[11] = 1;
	rig_put16(tcp + 12, (l4len / 4) << 12 | s->flags);
	rig_put16(tcp + 14, 512);
	memset(tcp + 20, 1, s->tcp_options);
	/* The pseudo header's sum: with TSO the chip adds the length. */
	sum += 6 + (s->mss ? 0 : l4len + s->payload);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	rig_put16(tcp + 16, sum);
	pkt->maclen = 14;
	pkt->iplen = iplen;
	pkt->l4len = l4len;
	pkt->mss = s->mss;
	pkt->ipv4 = !s->ipv6;
	pkt->csum = true;
	return 14 + iplen + l4len;
}

/* Posts one packet of shape S on queue Q, its payload at AT of the arena in buffers of EACH bytes. */
static inline int rig_post(struct rig *r, u32 queue, const struct rig_shape *s, u32 at, u32 each)
{
	struct ixgbe_txq *q = &r->ix.txq[queue];
	struct ixgbe_tx_packet pkt = { 0 };
	struct ixgbe_buf buf[64];
	u64 iova;
	u8 *h = ixgbe_tx_header(q, &iova);
	u32 nr = 1;

	buf[0] = (struct ixgbe_buf){ iova, rig_header(h, s, &pkt) };
	for (u32 done = 0; done < s->payload && nr < ARRAY_SIZE(buf); done += each)
		buf[nr++] = (struct ixgbe_buf){ r->arena.iova + at + done,
						min(each, s->payload - done) };
	pkt.buf = buf;
	pkt.nr_bufs = nr;
	return ixgbe_tx_post(q, &pkt, NULL, 0);
}

/* Lets time pass until N packets of QUEUE are completed; fails after LIMIT_MS. */
static inline void rig_complete(struct rig *r, u32 queue, u32 n, u32 limit_ms)
{
	u64 end = nicdev_now_ps(r->dev) + limit_ms * SIM_PS_PER_MS;
	char text[512] = "";

	while (n) {
		n -= ixgbe_tx_clean(&r->ix.txq[queue], n);
		if (n && nicdev_now_ps(r->dev) >= end) {
			ixgbe_tx_hung(&r->ix.txq[queue], text, sizeof(text));
			fail_msg("%u packets left. %s %s", n, text, model_first_violation(r->m));
		}
		if (n)
			nicdev_relax(r->dev, end);
	}
}

static const struct rig_shape rig_64k = {
	.tcp_options = 12, .payload = 65160, .mss = 1448, .seq = 1, .id = 7, .flags = 0x18
};

#endif
