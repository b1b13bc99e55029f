/* SPDX-License-Identifier: MIT */
/* Reset, initialisation, link, statistics, stop: the order of datasheet 4.6.3, step by step. */
#include "hw/ixgbe/shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS		  1000 /* us */
#define RING_ALIGN	  128
#define DTXTCPFLG_FIRST	  0xff6u /* no FIN, no PSH */
#define DTXTCPFLG_MIDDLE  0xf76u /* nor CWR */
#define DTXTCPFLG_LAST	  0xf7fu
#define MIN_RING	  64
#define PAUSE_TIME	  0xffff
#define MAX_FRAME	  15872
#define FCS_BYTES	  4
#define FILL_INVALID_BYTE 0xff /* what a descriptor that is fetched too soon points to faults */

const struct ixgbe_config ixgbe_default_config = {
	.nr_txq = 1,
	.nr_rxq = 1,
	.tx_ring = 512,
	.rx_ring = 512,
	.pthresh = 32,
	.hthresh = 1,
	.rx_buffer = 2048,
	.max_frame = 1518,
	.max_desc_bytes = 8192,
	.hang_ms = 2000,
};

struct step {
	char *err;
	size_t errlen;
};

static u32 rd(struct ixgbe *ix, u32 reg)
{
	return nicdev_read32(ix->dev, reg);
}

static void wr(struct ixgbe *ix, u32 reg, u32 value)
{
	nicdev_write32(ix->dev, reg, value);
}

static void set_bits(struct ixgbe *ix, u32 reg, u32 clear, u32 set)
{
	wr(ix, reg, (rd(ix, reg) & ~clear) | set);
}

/* Waits for a bit; says in a sentence what did not come. */
static int wait_bit(struct ixgbe *ix, u32 reg, u32 mask, u32 value, u32 step_us, u32 timeout_us,
		    const char *what, const struct step *s)
{
	int ret = nicdev_poll(ix->dev, reg, mask, value, step_us, timeout_us);

	if (ret == -ENODEV)
		snprintf(s->err, s->errlen,
			 "%s: STATUS reads 0xffffffff: the device is gone, in D3, or its memory "
			 "decoding is off; reset it or bind it again",
			 ix->dev->name);
	else if (ret)
		snprintf(s->err, s->errlen,
			 "%s: %s not within %u ms (register 0x%05x reads 0x%08x)", ix->dev->name,
			 what, timeout_us / MS, reg, rd(ix, reg));
	return ret;
}

/*
 * --- configuration
 * ----------------------------------------------------------------------------------------------
 */

static const char *config_fault(const struct ixgbe_config *c)
{
	if (!c->nr_txq || c->nr_txq > IXGBE_MAX_QUEUES || !c->nr_rxq ||
	    c->nr_rxq > IXGBE_MAX_QUEUES)
		return "1 to 16 queues of each direction";
	if (c->irq && !c->one_vector && c->nr_txq + c->nr_rxq > 16)
		return "16 vectors at most: fewer queues, or one_vector";
	if (c->tx_ring < MIN_RING || c->tx_ring > IXGBE_MAX_RING || c->tx_ring % 8 ||
	    c->rx_ring < MIN_RING || c->rx_ring > IXGBE_MAX_RING || c->rx_ring % 8)
		return "rings have 64 to 8192 descriptors, a multiple of 8";
	if (c->pthresh + c->wthresh > IXGBE_TX_DESC_CACHE)
		return "PTHRESH and WTHRESH are 40 at most together";
	if (c->pthresh && !c->hthresh)
		return "PTHRESH needs an HTHRESH of at least 1";
	if (c->head_wb && c->wthresh)
		return "head write-back needs WTHRESH 0";
	if (c->itr_us > IXGBE_EITR_MAX_US)
		return "interrupt moderation of 1022 us at most";
	if (c->rx_buffer < 1024 || c->rx_buffer > 16384 || c->rx_buffer % 1024)
		return "receive buffers of 1024 to 16384 bytes, a multiple of 1024";
	if (c->max_frame < 1518 || c->max_frame > MAX_FRAME)
		return "frames of 1518 to 15872 bytes";
	if (!c->max_desc_bytes || c->max_desc_bytes > IXGBE_MAX_DTALEN)
		return "transmit buffers of 1 to 15872 bytes";
	if (c->txpbthresh_kb > 160 || (c->txpbthresh_kb && c->txpbthresh_kb * 1024 < c->max_frame))
		return "TXPBTHRESH of 160 KB at most, and of a frame at least";
	return NULL;
}

/* Rings and buffers, from one arena. */
static int make_rings(struct ixgbe *ix, const struct step *s)
{
	const struct ixgbe_config *c = &ix->cfg;
	size_t tx = c->tx_ring * (sizeof(struct ixgbe_desc) + IXGBE_HEADER_BYTES) + 4096;
	size_t rx = c->rx_ring * (sizeof(struct ixgbe_desc) + c->rx_buffer) + 4096;
	int ret = nicdev_arena_init(&ix->arena, ix->dev, c->nr_txq * tx + c->nr_rxq * rx, s->err,
				    s->errlen);

	if (ret)
		return ret;
	for (u32 i = 0; i < c->nr_txq; i++) {
		struct ixgbe_txq *q = &ix->txq[i];
		u64 wb_iova;

		*q = (struct ixgbe_txq){ .ix = ix, .nr = c->tx_ring, .index = i };
		q->desc = nicdev_arena_alloc(&ix->arena, c->tx_ring * sizeof(*q->desc), RING_ALIGN,
					     &q->desc_iova);
		q->headers = nicdev_arena_alloc(&ix->arena, c->tx_ring * IXGBE_HEADER_BYTES, 64,
						&q->headers_iova);
		if (c->head_wb) /* a cache line of its own; 16 bytes are what the chip needs */
			q->head_wb = nicdev_arena_alloc(&ix->arena, 64, 64, &wb_iova);
		q->eop = calloc(c->tx_ring, sizeof(*q->eop));
		BUG_ON(!q->desc || !q->headers || (c->head_wb && !q->head_wb));
		if (!q->eop)
			return -ENOMEM;
		/* RS on every packet, or on none (7.2.3.5). */
		q->last_lo = IXGBE_TXD_EOP | (c->wthresh ? 0 : IXGBE_TXD_RS);
		q->frame_most = min(c->max_desc_bytes, c->max_frame - FCS_BYTES);
		q->room = c->tx_ring - 1;
		memset(q->desc, FILL_INVALID_BYTE, c->tx_ring * sizeof(*q->desc));
	}
	for (u32 i = 0; i < c->nr_rxq; i++) {
		struct ixgbe_rxq *q = &ix->rxq[i];

		*q = (struct ixgbe_rxq){ .ix = ix, .nr = c->rx_ring, .index = i };
		q->desc = nicdev_arena_alloc(&ix->arena, c->rx_ring * sizeof(*q->desc), RING_ALIGN,
					     &q->desc_iova);
		q->buffers = nicdev_arena_alloc(&ix->arena, (size_t)c->rx_ring * c->rx_buffer, 1024,
						&q->buffers_iova);
		BUG_ON(!q->desc || !q->buffers);
		memset(q->desc, FILL_INVALID_BYTE, c->rx_ring * sizeof(*q->desc));
	}
	return 0;
}

static void free_rings(struct ixgbe *ix)
{
	for (u32 i = 0; i < ix->cfg.nr_txq; i++) {
		free(ix->txq[i].eop);
		ix->txq[i].eop = NULL;
	}
	nicdev_arena_exit(&ix->arena);
}

/*
 * --- reset
 * ----------------------------------------------------------------------------------------------
 */

static void mask_interrupts(struct ixgbe *ix)
{
	wr(ix, IXGBE_EIMC, 0xffffffff);
	wr(ix, IXGBE_EIMC_EX(0), 0xffffffff);
	wr(ix, IXGBE_EIMC_EX(1), 0xffffffff);
	rd(ix, IXGBE_EICR);
}

/* What ran before us ends: no new requests, then wait for those that are out (5.2.5.3.2). */
static void quiesce(struct ixgbe *ix)
{
	set_bits(ix, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN, 0);
	for (u32 i = 0; i < IXGBE_NR_QUEUES; i++) {
		if (rd(ix, IXGBE_TXDCTL(i)) & IXGBE_TXDCTL_ENABLE)
			wr(ix, IXGBE_TXDCTL(i), IXGBE_TXDCTL_SWFLSH);
		if (rd(ix, IXGBE_RXDCTL(i)) & IXGBE_RXDCTL_ENABLE)
			set_bits(ix, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE, 0);
	}
	nicdev_delay_us(ix->dev, 2 * MS);
	set_bits(ix, IXGBE_CTRL, 0, IXGBE_CTRL_GIO_DIS);
}

/* True if requests are still out: their answers would meet a device that has been reset. */
static bool master_busy(struct ixgbe *ix)
{
	return nicdev_poll(ix->dev, IXGBE_STATUS, IXGBE_STATUS_GIO, 0, 100, 80 * MS) == -ETIMEDOUT;
}

/* 4.2.1.6.1: the transmit path is emptied by hand, and the reset comes twice. */
static void flush_transmit_path(struct ixgbe *ix)
{
	u32 hlreg0 = rd(ix, IXGBE_HLREG0);

	wr(ix, IXGBE_HLREG0, hlreg0 | IXGBE_HLREG0_LPBK);
	set_bits(ix, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN, 0);
	nicdev_delay_us(ix->dev, 3 * MS);
	set_bits(ix, IXGBE_GCR_EXT, 0, IXGBE_GCR_EXT_BUFFERS_CLEAR);
	nicdev_delay_us(ix->dev, 20);
	set_bits(ix, IXGBE_GCR_EXT, IXGBE_GCR_EXT_BUFFERS_CLEAR, 0);
	wr(ix, IXGBE_HLREG0, hlreg0);
}

static int reset_once(struct ixgbe *ix, const struct step *s)
{
	set_bits(ix, IXGBE_CTRL, 0, IXGBE_CTRL_RST);
	/* Pushes the posted write in front of it, and is no access to a register. */
	nicdev_config_read16(ix->dev, PCI_CFG_COMMAND);
	nicdev_delay_us(ix->dev, MS + 1); /* no access before (4.2.1.6.1) */
	return wait_bit(ix, IXGBE_CTRL, IXGBE_CTRL_RST, 0, 10, 10 * MS, "CTRL.RST did not clear",
			s);
}

/*
 * From X540 on the reset goes to the PHY, too, at which firmware may be at work: it is taken first
 * (their datasheets, 4.2; Linux 6.12, ixgbe_reset_hw_X540()).
 */
static int reset_with_phy(struct ixgbe *ix, bool twice, const struct step *s)
{
	const bool shared = ix->id->mac != IXGBE_82599;
	const u32 phy = ixgbe_shared_phy(ix);
	int ret = shared ? ixgbe_shared_acquire(ix, phy, s->err, s->errlen) : 0, end;
	char at_end[300];

	if (ret)
		return ret;
	ret = reset_once(ix, s);
	if (!ret && twice)
		ret = reset_once(ix, s);
	if (!shared)
		return ret;
	end = ixgbe_shared_release(ix, phy, at_end, sizeof(at_end));
	if (!ret && end)
		snprintf(s->err, s->errlen, "%s", at_end);
	return ret ? ret : end;
}

static int reset(struct ixgbe *ix, const struct step *s)
{
	bool twice;
	int ret;

	/* 4.6.3, 1: interrupts off. */
	mask_interrupts(ix);
	/* 4.6.3, 2: global reset, after what is under way has ended (5.2.5.3.2). */
	quiesce(ix);
	twice = master_busy(ix);
	if (twice)
		flush_transmit_path(ix);
	ret = reset_with_phy(ix, twice, s);
	if (ret)
		return ret;
	/* 10 ms for the 82599; X540 and X550 take 100 ms (their datasheets, 4.2). */
	nicdev_delay_us(ix->dev, (ix->id->mac == IXGBE_82599 ? 10 : 100) * MS);
	/* 4.6.3, 3: interrupts off again, as the reset has set them. */
	mask_interrupts(ix);
	return 0;
}

/* 4.6.3, 4 and 6: EEPROM read, DMA ready. */
static int wait_ready(struct ixgbe *ix, const struct step *s)
{
	const u32 eec = ix->id->mac == IXGBE_X553 ? IXGBE_EEC_X553 : IXGBE_EEC;
	const u32 fwsm = ix->id->mac == IXGBE_X553 ? IXGBE_FWSM_X553 : IXGBE_FWSM;
	int ret = wait_bit(ix, eec, IXGBE_EEC_ARD, IXGBE_EEC_ARD, MS, 1000 * MS,
			   "EEC.AUTO_RD did not come: the EEPROM is not read", s);

	if (ret)
		return ret;
	/* AUTO_RD comes without an EEPROM, too (8.2.3.2.1). */
	if (!(rd(ix, eec) & IXGBE_EEC_PRES)) {
		snprintf(s->err, s->errlen, "%s: EEC.EE_PRES is 0: no valid EEPROM", ix->dev->name);
		return -ENODEV;
	}
	if (rd(ix, fwsm) & IXGBE_FWSM_EXT_ERR) {
		snprintf(s->err, s->errlen, "%s: firmware reports an error (FWSM 0x%08x)",
			 ix->dev->name, rd(ix, fwsm));
		return -EIO;
	}
	return wait_bit(ix, IXGBE_RDRXCTL, IXGBE_RDRXCTL_DMAIDONE, IXGBE_RDRXCTL_DMAIDONE, MS,
			1000 * MS, "RDRXCTL.DMAIDONE did not come: DMA is not ready", s);
}

static int read_mac(struct ixgbe *ix, const struct step *s)
{
	u32 low = rd(ix, IXGBE_RAL(0)), high = rd(ix, IXGBE_RAH(0));
	u8 or = 0;

	for (u32 i = 0; i < 6; i++)
		or |= ix->mac[i] = i < 4 ? low >> 8 * i : high >> 8 * (i - 4);
	if (! or || ix->mac[0] & 1) {
		snprintf(s->err, s->errlen, "%s: the EEPROM gives no station address (%08x %08x)",
			 ix->dev->name, low, high);
		return -ENODEV;
	}
	return 0;
}

/*
 * --- initialisation
 * ----------------------------------------------------------------------------------------------
 */

static u32 rx_packet_buffer_kb(const struct ixgbe *ix)
{
	return ix->id->mac == IXGBE_82599 ? 512 : 384;
}

/* 3.7.7.3: no flow control, which would stretch wire times; the watermark has to stand anyway. */
static void init_flow_control(struct ixgbe *ix)
{
	for (u32 i = 0; i < 4; i++)
		wr(ix, IXGBE_FCTTV(i), 0);
	for (u32 i = 0; i < 8; i++) {
		wr(ix, IXGBE_FCRTL(i), 0);
		wr(ix, IXGBE_FCRTH(i), 0);
	}
	wr(ix, IXGBE_FCRTH(0), rx_packet_buffer_kb(ix) * 1024 - IXGBE_FCRTH_BELOW);
	wr(ix, IXGBE_FCRTV, 0);
	set_bits(ix, IXGBE_FCCFG, IXGBE_FCCFG_TFCE, 0);
	set_bits(ix, IXGBE_MFLCN, IXGBE_MFLCN_RFCE | IXGBE_MFLCN_RPFCE, 0);
}

static void zero(struct ixgbe *ix, u32 first, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		wr(ix, first + 4 * i, 0);
}

/* 4.6.7: tables that hold anything after power-on. */
static void init_filters(struct ixgbe *ix)
{
	u32 fctrl = IXGBE_FCTRL_BAM;

	zero(ix, IXGBE_MTA(0), 128);
	zero(ix, IXGBE_VFTA(0), 128);
	zero(ix, IXGBE_PFUTA(0), 128);
	zero(ix, IXGBE_PFVLVF(0), 64);
	zero(ix, IXGBE_PFVLVFB(0), 128);
	zero(ix, IXGBE_MPSAR(0), 256);
	wr(ix, IXGBE_MPSAR(0), 1); /* the station address belongs to pool 0 */
	zero(ix, IXGBE_FTQF(0), 128);
	if (ix->cfg.promiscuous)
		fctrl |= IXGBE_FCTRL_UPE | IXGBE_FCTRL_MPE;
	if (ix->cfg.loopback)
		fctrl |= IXGBE_FCTRL_SBP | IXGBE_FCTRL_MPE;
	wr(ix, IXGBE_FCTRL, fctrl);
}

static void init_rx_queue(struct ixgbe *ix, struct ixgbe_rxq *q)
{
	u32 n = q->index;

	wr(ix, IXGBE_RDBAL(n), q->desc_iova);
	wr(ix, IXGBE_RDBAH(n), q->desc_iova >> 32);
	wr(ix, IXGBE_RDLEN(n), q->nr * sizeof(*q->desc));
	wr(ix, IXGBE_RDH(n), 0);
	wr(ix, IXGBE_RDT(n), 0);
	wr(ix, IXGBE_SRRCTL(n),
	   ix->cfg.rx_buffer / 1024 | IXGBE_SRRCTL_ADV_ONEBUF | IXGBE_SRRCTL_DROP_EN);
	/* Bit 12 resets to 1 and must be 0 (4.6.7); no relaxed order of data and headers. */
	set_bits(ix, IXGBE_DCA_RXCTRL(n),
		 IXGBE_DCA_RXCTRL_RESERVED | IXGBE_DCA_RXCTRL_DATA_WRO_EN |
			 IXGBE_DCA_RXCTRL_HEAD_WRO_EN,
		 0);
}

/* 4.6.7, receive. */
static void init_rx(struct ixgbe *ix)
{
	set_bits(ix, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN, 0);
	wr(ix, IXGBE_RXPBSIZE(0), rx_packet_buffer_kb(ix) << IXGBE_RXPBSIZE_SHIFT);
	zero(ix, IXGBE_RXPBSIZE(1), 7);
	/* Both strip the CRC, or none: here both. */
	set_bits(ix, IXGBE_HLREG0, 0, IXGBE_HLREG0_RXCRCSTRP);
	set_bits(ix, IXGBE_RDRXCTL, IXGBE_RDRXCTL_RSCFRSTSIZE,
		 IXGBE_RDRXCTL_CRCSTRIP | IXGBE_RDRXCTL_RSCACKC | IXGBE_RDRXCTL_FCOE_WRFIX);
	set_bits(ix, IXGBE_RFCTL, 0,
		 IXGBE_RFCTL_RSC_DIS); /* RSC would merge what is to be counted */
	wr(ix, IXGBE_RXCSUM, IXGBE_RXCSUM_IPPCSE);
	wr(ix, IXGBE_MRQC, 0);
	if (ix->cfg.max_frame > 1518) {
		set_bits(ix, IXGBE_HLREG0, 0, IXGBE_HLREG0_JUMBOEN);
		set_bits(ix, IXGBE_MAXFRS, 0xffff0000u, ix->cfg.max_frame << 16);
	}
	for (u32 i = 0; i < ix->cfg.nr_rxq; i++)
		init_rx_queue(ix, &ix->rxq[i]);
}

static void init_tx_queue(struct ixgbe *ix, struct ixgbe_txq *q)
{
	u64 wb = q->head_wb ? nicdev_iova(ix->dev, q->head_wb, sizeof(*q->head_wb)) : 0;
	u32 n = q->index;

	wr(ix, IXGBE_RTTDQSEL, n); /* no rate limit */
	wr(ix, IXGBE_RTTDT1C, 0);
	wr(ix, IXGBE_RTTBCNRC, 0);
	wr(ix, IXGBE_TDBAL(n), q->desc_iova);
	wr(ix, IXGBE_TDBAH(n), q->desc_iova >> 32);
	wr(ix, IXGBE_TDLEN(n), q->nr * sizeof(*q->desc));
	wr(ix, IXGBE_TDH(n), 0);
	wr(ix, IXGBE_TDT(n), 0);
	wr(ix, IXGBE_TXDCTL(n),
	   IXGBE_TXDCTL_PTHRESH(ix->cfg.pthresh) | IXGBE_TXDCTL_HTHRESH(ix->cfg.hthresh) |
		   IXGBE_TXDCTL_WTHRESH(ix->cfg.wthresh));
	wr(ix, IXGBE_TDWBAH(n), wb >> 32);
	wr(ix, IXGBE_TDWBAL(n), q->head_wb ? (u32)wb | IXGBE_TDWBAL_HEAD_WB_ENABLE : 0);
	/* Write-backs in order, or a DD could be seen before an older one (7.2.3.5). */
	set_bits(ix, IXGBE_DCA_TXCTRL(n), IXGBE_DCA_TXCTRL_DESC_WRO_EN, 0);
}

/* 4.6.8, transmit. */
static void init_tx(struct ixgbe *ix)
{
	set_bits(ix, IXGBE_HLREG0, 0, IXGBE_HLREG0_TXCRCEN | IXGBE_HLREG0_TXPADEN);
	/* Written, so that nothing depends on what the EEPROM says (8.2.3.9.3, 8.2.3.9.4). */
	wr(ix, IXGBE_DTXTCPFLGL, DTXTCPFLG_FIRST | DTXTCPFLG_MIDDLE << 16);
	wr(ix, IXGBE_DTXTCPFLGH, DTXTCPFLG_LAST);
	set_bits(ix, IXGBE_RTTDCS, 0, IXGBE_RTTDCS_ARBDIS);
	wr(ix, IXGBE_DTXMXSZRQ, IXGBE_DTXMXSZRQ_MAX);
	wr(ix, IXGBE_TXPBSIZE(0), 160 << 10);
	zero(ix, IXGBE_TXPBSIZE(1), 7);
	if (ix->cfg.txpbthresh_kb)
		wr(ix, IXGBE_TXPBTHRESH(0), ix->cfg.txpbthresh_kb);
	wr(ix, IXGBE_MTQC, 0);
	set_bits(ix, IXGBE_RTTDCS, IXGBE_RTTDCS_ARBDIS, 0);
	for (u32 i = 0; i < ix->cfg.nr_txq; i++)
		init_tx_queue(ix, &ix->txq[i]);
}

/* 4.6.8.1: the DMA first, then the queues. */
static int enable_tx(struct ixgbe *ix, const struct step *s)
{
	set_bits(ix, IXGBE_DMATXCTL, 0, IXGBE_DMATXCTL_TE);
	for (u32 i = 0; i < ix->cfg.nr_txq; i++) {
		int ret;

		set_bits(ix, IXGBE_TXDCTL(i), 0, IXGBE_TXDCTL_ENABLE);
		ret = wait_bit(ix, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, IXGBE_TXDCTL_ENABLE, MS,
			       10 * MS, "TXDCTL.ENABLE did not come", s);
		if (ret)
			return ret;
		ix->txq[i].progress_ps = nicdev_now_ps(ix->dev);
	}
	return 0;
}

/* 4.6.7.1: each queue, its descriptors, and then the door. */
static int enable_rx(struct ixgbe *ix, const struct step *s)
{
	int ret;

	for (u32 i = 0; i < ix->cfg.nr_rxq; i++) {
		struct ixgbe_rxq *q = &ix->rxq[i];

		set_bits(ix, IXGBE_RXDCTL(i), 0, IXGBE_RXDCTL_ENABLE);
		ret = wait_bit(ix, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE, IXGBE_RXDCTL_ENABLE, MS,
			       10 * MS, "RXDCTL.ENABLE did not come", s);
		if (ret)
			return ret;
		for (u32 d = 0; d < q->nr; d++)
			q->desc[d] =
				(struct ixgbe_desc){ q->buffers_iova + (u64)d * ix->cfg.rx_buffer,
						     0, 0 };
		dma_wmb();
		q->tail = q->nr - 1;
		wr(ix, IXGBE_RDT(i), q->tail);
	}
	/* Frames that arrive while RXEN is written may hang the receive DMA: stop them at the door. */
	set_bits(ix, IXGBE_SECRXCTRL, 0, IXGBE_SECRXCTRL_RX_DIS);
	ret = wait_bit(ix, IXGBE_SECRXSTAT, IXGBE_SECRXSTAT_RDY, IXGBE_SECRXSTAT_RDY, 10, 4 * MS,
		       "SECRXSTAT.SECRX_RDY did not come", s);
	if (ret)
		return ret;
	set_bits(ix, IXGBE_RXCTRL, 0, IXGBE_RXCTRL_RXEN);
	set_bits(ix, IXGBE_SECRXCTRL, IXGBE_SECRXCTRL_RX_DIS, 0);
	set_bits(ix, IXGBE_CTRL_EXT, 0, IXGBE_CTRL_EXT_NS_DIS); /* 4.6.7, at the end */
	return 0;
}

/*
 * 3.14: what is sent comes back at line rate, from the MAC. AUTOC is firmware's as well, where it
 * manages the link (LESM): it is taken first.
 */
static int init_loopback(struct ixgbe *ix, const struct step *s)
{
	int ret;

	set_bits(ix, IXGBE_HLREG0, 0, IXGBE_HLREG0_LPBK);
	if (ix->id->mac == IXGBE_82599) {
		ret = ixgbe_shared_acquire(ix, IXGBE_GSSR_MAC_CSR_SM, s->err, s->errlen);
		if (ret)
			return ret;
		set_bits(ix, IXGBE_AUTOC, 0, IXGBE_AUTOC_FLU);
		ret = ixgbe_shared_release(ix, IXGBE_GSSR_MAC_CSR_SM, s->err, s->errlen);
		if (ret)
			return ret;
	} else {
		set_bits(ix, IXGBE_MACC, 0, IXGBE_MACC_FLU);
	}
	nicdev_delay_us(ix->dev, 50 * MS);
	return 0;
}

/*
 * With an SFP+ cage ESDP.SDP2 tells whether a module is in it, unless the EEPROM says that the board
 * does not wire it so. An empty cage picks up its neighbour's signal, and LINKS takes that for a link
 * (8.2.3.1.4; Linux 6.12, ixgbe_check_mac_link_generic()). In the loopback no module is needed.
 */
static int init_cage(struct ixgbe *ix, const struct step *s)
{
	u16 caps;
	int ret;

	ix->cage_pin = false;
	if (!ix->id->cage || ix->cfg.loopback)
		return 0;
	ret = ixgbe_read_eeprom(ix, IXGBE_EEPROM_CAPS, &caps, s->err, s->errlen);
	ix->cage_pin = !ret && !(caps & IXGBE_EEPROM_CAPS_NO_CAGE);
	return ret;
}

/*
 * --- interrupts
 * ----------------------------------------------------------------------------------------------
 */

u32 ixgbe_rx_vector(const struct ixgbe *ix, u32 queue)
{
	(void)ix;
	return queue;
}

u32 ixgbe_tx_vector(const struct ixgbe *ix, u32 queue)
{
	return ix->cfg.one_vector ? queue : ix->cfg.nr_rxq + queue;
}

void ixgbe_irq_rearm(struct ixgbe *ix, u32 vec)
{
	wr(ix, IXGBE_EIMS, 1u << vec);
}

static void set_ivar(struct ixgbe *ix, u32 tx, u32 queue, u32 vec)
{
	u32 shift = 16 * (queue & 1) + 8 * tx;

	set_bits(ix, IXGBE_IVAR(queue / 2), 0xffu << shift, (vec | IXGBE_IVAR_VALID) << shift);
}

/* 7.3.1, 4.6.6: with PBA support, without which clearing by itself may lock up. */
static int init_irq(struct ixgbe *ix, const struct step *s)
{
	const struct ixgbe_config *c = &ix->cfg;
	u32 nr = c->one_vector ? max(c->nr_rxq, c->nr_txq) : c->nr_rxq + c->nr_txq, bits;
	int ret = ix->dev->nr_irqs ? 0 : nicdev_irq_enable(ix->dev, nr);

	if (ret || ix->dev->nr_irqs < nr) {
		snprintf(s->err, s->errlen, "%s: no %u interrupt vectors (%s)", ix->dev->name, nr,
			 ret ? strerror(-ret) : "fewer were set up before");
		return ret ? ret : -EINVAL;
	}
	bits = (1u << nr) - 1;
	wr(ix, IXGBE_GPIE, IXGBE_GPIE_MSIX_MODE | IXGBE_GPIE_PBA_SUPPORT | IXGBE_GPIE_EIAME);
	for (u32 i = 0; i < c->nr_rxq; i++)
		set_ivar(ix, 0, i, ixgbe_rx_vector(ix, i));
	for (u32 i = 0; i < c->nr_txq; i++)
		set_ivar(ix, 1, i, ixgbe_tx_vector(ix, i));
	wr(ix, IXGBE_EIAC, bits);
	wr(ix, IXGBE_EIAM, bits);
	for (u32 v = 0; v < nr; v++)
		wr(ix, IXGBE_EITR(v), (c->itr_us * 4 & 0xff8) | IXGBE_EITR_CNT_WDIS);
	wr(ix, IXGBE_EIMS, bits);
	return 0;
}

/*
 * --- start and stop
 * ----------------------------------------------------------------------------------------------
 */

static int bring_up(struct ixgbe *ix, const struct step *s)
{
	int ret = nicdev_config_write16(ix->dev, PCI_CFG_COMMAND,
					nicdev_config_read16(ix->dev, PCI_CFG_COMMAND) |
						PCI_COMMAND_MEM | PCI_COMMAND_MASTER);

	if (ret) {
		snprintf(s->err, s->errlen,
			 "%s: bus mastering cannot be switched on (%s): nothing would be received",
			 ix->dev->name, strerror(-ret));
		return ret;
	}
	ret = reset(ix, s);
	if (!ret)
		ret = wait_ready(ix, s);
	if (!ret)
		ret = read_mac(ix, s);
	if (!ret)
		ret = init_cage(ix, s);
	if (!ret)
		ret = ixgbe_wake_phy(ix, s->err, s->errlen);
	if (!ret)
		ret = make_rings(ix, s);
	if (ret)
		return ret;
	init_flow_control(ix);
	init_filters(ix);
	ixgbe_update_stats(ix); /* 4.6.5: reading clears them */
	memset(&ix->stats, 0, sizeof(ix->stats));
	init_rx(ix);
	init_tx(ix);
	if (ix->cfg.loopback)
		ret = init_loopback(ix, s);
	if (!ret)
		ret = enable_tx(ix, s);
	if (!ret)
		ret = enable_rx(ix, s);
	if (ret)
		return ret;
	set_bits(ix, IXGBE_CTRL_EXT, 0, IXGBE_CTRL_EXT_DRV_LOAD); /* firmware: a driver is here */
	return ix->cfg.irq ? init_irq(ix, s) : 0;
}

int ixgbe_start(struct ixgbe *ix, struct nicdev *dev, const struct ixgbe_config *cfg, char *err,
		size_t errlen)
{
	const struct step s = { err, errlen };
	const char *fault = config_fault(cfg);
	int ret;

	memset(ix, 0, sizeof(*ix));
	ix->dev = dev;
	ix->cfg = *cfg;
	ix->id = dev->vendor == 0x8086 ? ixgbe_find_id(dev->device) : NULL;
	if (fault) {
		snprintf(err, errlen, "%s: %s", dev->name, fault);
		return -EINVAL;
	}
	if (!ix->id) {
		snprintf(err, errlen, "%s: %04x:%04x is no 82599, X540, X550, X552 or X553",
			 dev->name, dev->vendor, dev->device);
		return -ENODEV;
	}
	ix->started = true;
	ret = bring_up(ix, &s);
	if (ret)
		ixgbe_stop(ix);
	return ret;
}

/* 4.6.8.2, 4.6.7.1.2: queues first, then bus mastering; memory goes when no DMA can come. */
void ixgbe_stop(struct ixgbe *ix)
{
	struct nicdev *dev = ix->dev;

	if (!ix->started)
		return;
	ix->started = false;
	if (!nicdev_gone(dev)) {
		mask_interrupts(ix);
		for (u32 i = 0; i < ix->cfg.nr_txq; i++) {
			set_bits(ix, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, 0);
			nicdev_poll(dev, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, 0, 100, 10 * MS);
		}
		for (u32 i = 0; i < ix->cfg.nr_rxq; i++) {
			set_bits(ix, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE, 0);
			nicdev_poll(dev, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE, 0, 100, 10 * MS);
		}
		nicdev_delay_us(dev, 100); /* what is on its way to memory lands */
		set_bits(ix, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN, 0);
		set_bits(ix, IXGBE_CTRL, 0, IXGBE_CTRL_GIO_DIS);
		nicdev_poll(dev, IXGBE_STATUS, IXGBE_STATUS_GIO, 0, 100, 80 * MS);
		set_bits(ix, IXGBE_CTRL_EXT, IXGBE_CTRL_EXT_DRV_LOAD, 0);
	}
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) & ~PCI_COMMAND_MASTER);
	free_rings(ix);
}

/*
 * --- link and statistics
 * ----------------------------------------------------------------------------------------------
 */

/* The cage is known to be empty. */
static bool no_module(struct ixgbe *ix)
{
	return ix->cage_pin && !(rd(ix, IXGBE_ESDP) & IXGBE_ESDP_SDP2);
}

bool ixgbe_link_up(struct ixgbe *ix)
{
	if (no_module(ix))
		return false;
	rd(ix, IXGBE_LINKS); /* the first read tells of a loss in between (8.2.3.22.20) */
	return rd(ix, IXGBE_LINKS) & IXGBE_LINKS_UP;
}

int ixgbe_wait_link(struct ixgbe *ix, u32 timeout_ms, char *err, size_t errlen)
{
	for (u32 ms = 0; ms <= timeout_ms; ms += 10) {
		if (nicdev_gone(ix->dev)) {
			snprintf(err, errlen, "%s: the device is gone", ix->dev->name);
			return -ENODEV;
		}
		if (ixgbe_link_up(ix))
			return 0;
		nicdev_delay_us(ix->dev, 10 * MS);
	}
	snprintf(err, errlen, "%s: no link within %u ms (LINKS 0x%08x): %s", ix->dev->name,
		 timeout_ms, rd(ix, IXGBE_LINKS),
		 no_module(ix) ? "no module in the cage (ESDP.SDP2 is 0)"
			       : "no signal from the other end; is the cable in, and the peer up?");
	return -ETIMEDOUT;
}

static u64 read_pair(struct ixgbe *ix, u32 low, u32 high)
{
	u64 l = rd(ix, low); /* the low half holds the high one (8.2.3.23) */

	return l | (u64)(rd(ix, high) & 0xf) << 32;
}

void ixgbe_update_stats(struct ixgbe *ix)
{
	struct ixgbe_stats *s = &ix->stats;

	if (nicdev_gone(ix->dev))
		return;
	s->tx_packets += rd(ix, IXGBE_GPTC);
	s->tx_bytes += read_pair(ix, IXGBE_GOTCL, IXGBE_GOTCH);
	s->rx_packets += rd(ix, IXGBE_GPRC);
	s->rx_bytes += read_pair(ix, IXGBE_GORCL, IXGBE_GORCH);
	s->pause_received += rd(ix, IXGBE_LXOFFRXCNT);
	s->tx_dma_packets += rd(ix, IXGBE_TXDGPC);
	for (u32 i = 0; i < 8; i++)
		s->rx_missed += rd(ix, IXGBE_MPC(i));
	for (u32 i = 0; i < IXGBE_MAX_QUEUES; i++) {
		s->txq_packets[i] += rd(ix, IXGBE_QPTC(i));
		s->rxq_packets[i] += rd(ix, IXGBE_QPRC(i));
		s->rx_missed += rd(ix, IXGBE_QPRDC(i));
	}
}
