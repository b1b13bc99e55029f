/* SPDX-License-Identifier: MIT */
/* The receive side: frames into posted buffers, descriptors written back, what RXEN relies on. */
#include "hw/model_82599/internal.h"
#include "hw/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static u32 ring_next(const struct rx_queue *q, u32 i)
{
	return i + 1 == q->nr ? 0 : i + 1;
}

static u32 buffer_bytes(const struct model_82599 *m, u32 queue)
{
	return (m->reg[IXGBE_SRRCTL(queue) / 4] & IXGBE_SRRCTL_BSIZEPKT) * 1024;
}

void rx_reset(struct model_82599 *m)
{
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
	u32 arg;
	u32 len;
	bool loopback, visible;
	u8 data[];
};

static bool accepted(const struct model_82599 *m, const u8 *dst)
{
	static const u8 broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	u32 fctrl = m->reg[IXGBE_FCTRL / 4], low = m->reg[IXGBE_RAL(0) / 4];
	u32 high = m->reg[IXGBE_RAH(0) / 4];
	const u8 own[6] = { low, low >> 8, low >> 16, low >> 24, high, high >> 8 };

	if (!memcmp(dst, broadcast, 6))
		return fctrl & IXGBE_FCTRL_BAM;
	if (dst[0] & 1)
		return fctrl & IXGBE_FCTRL_MPE;
	return fctrl & IXGBE_FCTRL_UPE || (high & IXGBE_RAH_AV && !memcmp(dst, own, 6));
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

		if (!size || q->stopped || q->head == q->tail) {
			++*model_reg(m, IXGBE_MPC(0));
			return;
		}
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
	if (queue < 16)
		++*model_reg(m, IXGBE_QPRC(queue));
	model_irq_cause(m, 0, queue);
}

static void count_frame(struct model_82599 *m, u32 len)
{
	u64 octets = (u64)*model_reg(m, IXGBE_GORCH) << 32 | *model_reg(m, IXGBE_GORCL);

	octets += len + 4;
	*model_reg(m, IXGBE_GORCL) = octets;
	*model_reg(m, IXGBE_GORCH) = octets >> 32 & 0xf;
	++*model_reg(m, IXGBE_GPRC);
	++*model_reg(m, IXGBE_TPR);
}

/* Twice: when its last bit is there, and when its descriptor is in memory. */
static void frame_step(void *ctx, u32 unused)
{
	struct rx_frame *fr = ctx;
	struct model_82599 *m = fr->m;
	u32 queue = fr->arg & 0xff;

	(void)unused;
	if (event_void(m, fr->arg) || m->gone) {
		free(fr);
		return;
	}
	if (!fr->visible) {
		fr->visible = true;
		if (m->p.pcapng)
			pcapng_frame(m->p.pcapng, m->vt.now_ps / SIM_PS_PER_NS, false, fr->data,
				     fr->len, fr->loopback ? "loopback" : NULL);
		if (!(*model_reg(m, IXGBE_RXCTRL) & IXGBE_RXCTRL_RXEN) || !accepted(m, fr->data)) {
			free(fr);
			return;
		}
		count_frame(m, fr->len);
		vtime_post(&m->vt, m->vt.now_ps + m->p.rx_dma_ps, EV_RECEIVE, frame_step, fr, 0);
		return;
	}
	if (m->rxq[queue].enabled)
		deliver(m, queue, fr);
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
