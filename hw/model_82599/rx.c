/* SPDX-License-Identifier: MIT */
/* The receive side: frames into posted buffers, descriptors written back, what RXEN relies on. */
#include "hw/model_82599/internal.h"
#include "hw/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_RAL 16

static u32 ring_next(const struct rx_queue *q, u32 i)
{
	return i + 1 == q->nr ? 0 : i + 1;
}

static u32 buffer_bytes(const struct model_82599 *m, u32 queue)
{
	return (m->reg[IXGBE_SRRCTL(queue) / 4] & IXGBE_SRRCTL_BSIZEPKT) * 1024;
}

static void buffer_drain(struct model_82599 *m);
static void buffer_free(struct model_82599 *m);

void rx_reset(struct model_82599 *m)
{
	buffer_free(m);
	memset(m->rxq, 0, sizeof(m->rxq));
}

/* Posted buffers are looked up in the ring, as the chip reads them when it needs them. */
bool rx_uses(const struct model_82599 *m, u64 iova, u64 len)
{
	for (u32 i = 0; i < IXGBE_NR_QUEUES; i++) {
		const struct rx_queue *q = &m->rxq[i];

		if (!q->enabled)
			continue;
		if (q->base < iova + len && iova < q->base + 16ull * q->nr)
			return true;
		for (u32 d = q->head; d != q->tail; d = ring_next(q, d)) {
			struct ixgbe_desc desc;

			if (model_peek(m, q->base + 16ull * d, &desc, sizeof(desc)) &&
			    desc.addr < iova + len && iova < desc.addr + buffer_bytes(m, i))
				return true;
		}
	}
	return false;
}

void rx_enable(struct model_82599 *m, u32 queue, bool on)
{
	struct rx_queue *q = &m->rxq[queue];
	u32 bytes = *model_reg(m, IXGBE_RDLEN(queue)), srrctl = *model_reg(m, IXGBE_SRRCTL(queue));
	u32 size = srrctl & IXGBE_SRRCTL_BSIZEPKT;

	if (q->enabled == on)
		return;
	if (!on) {
		memset(q, 0, sizeof(*q));
		buffer_drain(m);
		return;
	}
	if (!m->ard_seen || !m->dmaidone_seen)
		model_violate(m, V_EEPROM_WAIT, "receive queue %u", queue);
	if (!bytes || bytes & 127 || bytes > 16 * IXGBE_MAX_RING) {
		model_violate(m, V_RING_LEN, "receive queue %u, %u bytes", queue, bytes);
		return;
	}
	if (!size || size > 16)
		model_violate(m, V_SRRCTL_SIZE, "queue %u, SRRCTL 0x%08x", queue, srrctl);
	if ((srrctl & IXGBE_SRRCTL_DESCTYPE_MASK) != IXGBE_SRRCTL_ADV_ONEBUF)
		model_violate(m, V_SRRCTL_TYPE, "queue %u, SRRCTL 0x%08x", queue, srrctl);
	if (*model_reg(m, IXGBE_DCA_RXCTRL(queue)) & IXGBE_DCA_RXCTRL_RESERVED)
		model_violate(m, V_DCA_RXCTRL, "queue %u", queue);
	q->nr = bytes / 16;
	q->base = (u64)*model_reg(m, IXGBE_RDBAH(queue)) << 32 | *model_reg(m, IXGBE_RDBAL(queue));
	q->head %= q->nr;
	q->tail = q->head;
	q->enabled = !m->p.no_enable;
	q->enable_ps = m->vt.now_ps + model_random(m) % (2 * SIM_PS_PER_MS);
}

static void drain_later(void *ctx, u32 arg)
{
	if (!event_void(ctx, arg))
		buffer_drain(ctx);
}

void rx_doorbell(struct model_82599 *m, u32 queue, u32 tail)
{
	struct rx_queue *q = &m->rxq[queue];

	if (!q->enabled || !q->enabled_seen) {
		if (tail)
			model_violate(m, V_TAIL_DISABLED, "receive queue %u, tail %u", queue, tail);
		if (!q->enabled)
			return;
	}
	if (tail >= q->nr) {
		model_violate(m, V_TAIL_RANGE, "receive queue %u, tail %u of %u", queue, tail,
			      q->nr);
		return;
	}
	for (u32 i = q->tail; i != tail; i = ring_next(q, i)) {
		struct ixgbe_desc d;

		if (!model_dma_read(m, q->base + 16ull * i, &d, sizeof(d))) {
			q->stopped = true;
			return;
		}
		if (d.lo & IXGBE_RXD_STAT_DD)
			model_violate(m, V_RX_REARM, "queue %u, descriptor %u", queue, i);
	}
	q->tail = tail;
	if (m->rxpb)
		vtime_post(&m->vt, m->vt.now_ps + m->p.rx_dma_ps, EV_RECEIVE, drain_later, m,
			   event_arg(m, queue));
}

void rx_check_rxen(struct model_82599 *m)
{
	u32 rdrxctl = *model_reg(m, IXGBE_RDRXCTL), hlreg0 = *model_reg(m, IXGBE_HLREG0);
	u32 pb = *model_reg(m, IXGBE_RXPBSIZE(0)), fcrth = *model_reg(m, IXGBE_FCRTH(0));

	if (!(rdrxctl & IXGBE_RDRXCTL_CRCSTRIP) != !(hlreg0 & IXGBE_HLREG0_RXCRCSTRP))
		model_violate(m, V_CRC_STRIP, "RDRXCTL 0x%08x, HLREG0 0x%08x", rdrxctl, hlreg0);
	if (rdrxctl & IXGBE_RDRXCTL_RSCFRSTSIZE || !(rdrxctl & IXGBE_RDRXCTL_RSCACKC) ||
	    !(rdrxctl & IXGBE_RDRXCTL_FCOE_WRFIX))
		model_violate(m, V_RDRXCTL, "0x%08x", rdrxctl);
	if (!(*model_reg(m, IXGBE_RFCTL) & IXGBE_RFCTL_RSC_DIS))
		model_violate(m, V_RSC, "RFCTL 0x%08x", *model_reg(m, IXGBE_RFCTL));
	if (!m->secrx_seen || !(*model_reg(m, IXGBE_SECRXCTRL) & IXGBE_SECRXCTRL_RX_DIS))
		model_violate(m, V_SECRX, "SECRXCTRL 0x%08x", *model_reg(m, IXGBE_SECRXCTRL));
	if (pb > (m->mac == MODEL_82599 ? 512u : 384u) << IXGBE_RXPBSIZE_SHIFT)
		model_violate(m, V_RXPBSIZE, "RXPBSIZE 0x%08x", pb);
	if ((fcrth & 0x7ffe0) != pb - IXGBE_FCRTH_BELOW)
		model_violate(m, V_FCRTH, "FCRTH 0x%08x, RXPBSIZE 0x%08x", fcrth, pb);
}

/*
 * --- frames
 * ----------------------------------------------------------------------------------------------
 */

struct rx_frame {
	struct model_82599 *m;
	struct rx_frame *next; /* in the receive buffer */
	u32 arg; /* queue and epoch */
	u32 len;
	bool loopback, visible;
	u8 data[];
};

/* The bit of MTA that stands for the multicast address DST is set. */
static bool multicast_wanted(const struct model_82599 *m, const u8 *dst)
{
	static const u8 drop[] = { 4, 3, 2, 0 }; /* of the last 16 bits, by MCSTCTRL.MO */
	u32 control = m->reg[IXGBE_MCSTCTRL / 4];
	u32 bit = (dst[5] << 8 | dst[4]) >> drop[control & IXGBE_MCSTCTRL_MO] & 0xfff;

	return control & IXGBE_MCSTCTRL_MFE && m->reg[IXGBE_MTA(bit / 32) / 4] & 1u << bit % 32;
}

static bool accepted(const struct model_82599 *m, const u8 *dst)
{
	static const u8 broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	u32 fctrl = m->reg[IXGBE_FCTRL / 4];

	if (!memcmp(dst, broadcast, 6))
		return fctrl & IXGBE_FCTRL_BAM;
	if (fctrl & (dst[0] & 1 ? IXGBE_FCTRL_MPE : IXGBE_FCTRL_UPE))
		return true;
	for (u32 i = 0; i < NR_RAL; i++) {
		u32 low = m->reg[IXGBE_RAL(i) / 4], high = m->reg[IXGBE_RAH(i) / 4];
		const u8 own[6] = { low, low >> 8, low >> 16, low >> 24, high, high >> 8 };

		if (high & IXGBE_RAH_AV && !memcmp(dst, own, 6))
			return true;
	}
	return dst[0] & 1 && multicast_wanted(m, dst);
}

/* Descriptors that FR needs of QUEUE, and whether they are there. */
static bool has_room(const struct model_82599 *m, u32 queue, const struct rx_frame *fr)
{
	const struct rx_queue *q = &m->rxq[queue];
	u32 posted = (q->tail + q->nr - q->head) % q->nr;

	return posted >= DIV_ROUND_UP(fr->len, buffer_bytes(m, queue));
}

/* Writes FR into the posted buffers; several if one is too small, EOP in the last. */
static void deliver(struct model_82599 *m, u32 queue, const struct rx_frame *fr)
{
	struct rx_queue *q = &m->rxq[queue];
	u32 size = buffer_bytes(m, queue), at = 0, len = fr->len;
	u8 data[MODEL_MAX_FRAME];

	memcpy(data, fr->data, len);
	if (*model_reg(m, IXGBE_DCA_RXCTRL(queue)) & IXGBE_DCA_RXCTRL_RESERVED)
		data[len - 1] ^= 0xff;
	while (at < len) {
		u32 part = min(len - at, size);
		struct ixgbe_desc d;

		if (!model_dma_read(m, q->base + 16ull * q->head, &d, sizeof(d)) ||
		    !model_dma_write(m, d.addr, data + at, part)) {
			q->stopped = true;
			return;
		}
		at += part;
		d.addr = 0;
		d.lo = IXGBE_RXD_STAT_DD | (at == len ? IXGBE_RXD_STAT_EOP : 0) |
		       (fr->loopback ? IXGBE_RXD_STAT_LB : 0);
		d.hi = part;
		if (!model_dma_write(m, q->base + 16ull * q->head, &d, sizeof(d))) {
			q->stopped = true;
			return;
		}
		q->head = ring_next(q, q->head);
	}
	++*model_reg(m, IXGBE_RXDGPC);
	if (queue < 16)
		++*model_reg(m, IXGBE_QPRC(queue));
	model_irq_cause(m, 0, queue);
}

/*
 * The receive buffer gives what it holds to the queues, in order. Without descriptors a frame waits,
 * and all behind it, unless its queue says DROP_EN (8.2.3.8.7).
 */
static void buffer_drain(struct model_82599 *m)
{
	while (m->rxpb) {
		struct rx_frame *fr = m->rxpb;
		u32 queue = fr->arg & 0xff;
		const struct rx_queue *q = &m->rxq[queue];
		bool works = q->enabled && !q->stopped && buffer_bytes(m, queue);

		if (works && has_room(m, queue, fr))
			deliver(m, queue, fr);
		else if (works && !(*model_reg(m, IXGBE_SRRCTL(queue)) & IXGBE_SRRCTL_DROP_EN))
			return;
		else if (queue < 16)
			++*model_reg(m, IXGBE_QPRDC(queue));
		m->rxpb = fr->next;
		m->rxpb_bytes -= fr->len;
		free(fr);
	}
}

static void buffer_free(struct model_82599 *m)
{
	while (m->rxpb) {
		struct rx_frame *fr = m->rxpb;

		m->rxpb = fr->next;
		free(fr);
	}
	m->rxpb_bytes = 0;
}

static void buffer_add(struct model_82599 *m, struct rx_frame *fr)
{
	fr->next = NULL;
	if (m->rxpb)
		m->rxpb_last->next = fr;
	else
		m->rxpb = fr;
	m->rxpb_last = fr;
}

static void count_frame(struct model_82599 *m, const u8 *data, u32 len)
{
	u64 octets = (u64)*model_reg(m, IXGBE_GORCH) << 32 | *model_reg(m, IXGBE_GORCL);

	octets += len + 4;
	*model_reg(m, IXGBE_GORCL) = octets;
	*model_reg(m, IXGBE_GORCH) = octets >> 32 & 0xf;
	++*model_reg(m, IXGBE_GPRC);
	++*model_reg(m, IXGBE_TPR);
	if (data[0] & 1)
		++*model_reg(m, data[0] == 0xff ? IXGBE_BPRC : IXGBE_MPRC);
	model_count_size(m, IXGBE_PRC64(0), len);
}

/* The last bit of FR is there. True: it goes on into the receive buffer. */
static bool frame_arrives(struct model_82599 *m, struct rx_frame *fr)
{
	u32 room = *model_reg(m, IXGBE_RXPBSIZE(0));

	if (m->p.pcapng)
		pcapng_frame(m->p.pcapng, m->vt.now_ps / SIM_PS_PER_NS, false, fr->data, fr->len,
			     fr->loopback ? "loopback" : NULL);
	if (!(*model_reg(m, IXGBE_RXCTRL) & IXGBE_RXCTRL_RXEN) || !accepted(m, fr->data))
		return false;
	count_frame(m, fr->data, fr->len);
	if (m->rxpb_bytes + fr->len > room) {
		++*model_reg(m, IXGBE_MPC(0));
		return false;
	}
	m->rxpb_bytes += fr->len;
	return true;
}

/* Twice: when its last bit is there, and when its descriptor can be in memory. */
static void frame_step(void *ctx, u32 unused)
{
	struct rx_frame *fr = ctx;
	struct model_82599 *m = fr->m;

	(void)unused;
	if (event_void(m, fr->arg) || m->gone) {
		free(fr);
		return;
	}
	if (fr->visible) {
		buffer_add(m, fr);
		buffer_drain(m);
		return;
	}
	fr->visible = true;
	if (frame_arrives(m, fr))
		vtime_post(&m->vt, m->vt.now_ps + m->p.rx_dma_ps, EV_RECEIVE, frame_step, fr, 0);
	else
		free(fr);
}

int model_receive(struct model_82599 *m, u64 at_ps, u32 queue, const void *data, u32 len)
{
	struct rx_frame *fr;
	u32 padded = max(len, 60u);

	if (!len || len > MODEL_MAX_FRAME || queue >= IXGBE_NR_QUEUES || at_ps < m->vt.now_ps)
		return -EINVAL;
	fr = calloc(1, sizeof(*fr) + padded);
	if (!fr)
		return -ENOMEM;
	fr->m = m;
	fr->arg = event_arg(m, queue);
	fr->len = padded;
	fr->loopback = m->lpbk;
	memcpy(fr->data, data, len);
	vtime_post(&m->vt, at_ps, EV_RECEIVE, frame_step, fr, 0);
	return 0;
}
