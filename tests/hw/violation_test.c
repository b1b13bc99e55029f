/* SPDX-License-Identifier: MIT */
/*
 * Each wrong use that the model knows of, done on purpose: it is recorded, under its name, and as
 * the first one. And what some of them lead to.
 */
#include "tests/hw/rig.h"

#define LAST(r) (&(r)->ix.txq[0].desc[(r)->ix.txq[0].next_to_use - 1])
#define FREE	5 /* a queue that the driver does not use */

static u32 rd(struct rig *r, u32 reg)
{
	return nicdev_read32(r->dev, reg);
}

static void wr(struct rig *r, u32 reg, u32 value)
{
	nicdev_write32(r->dev, reg, value);
}

static void change(struct rig *r, u32 reg, u32 clear, u32 set)
{
	wr(r, reg, (rd(r, reg) & ~clear) | set);
}

/* The usual TSO in the ring: context, header, eight buffers; not announced. */
static struct ixgbe_desc *queued(struct rig *r)
{
	assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
	return r->ix.txq[0].desc;
}

static void go(struct rig *r)
{
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_run_us(r, 200);
}

static void do_MMIO(struct rig *r)
{
	rd(r, 0x20000);
	rd(r, 0x6);
}

static void do_RESET_ACCESS(struct rig *r)
{
	change(r, IXGBE_CTRL, 0, IXGBE_CTRL_RST);
	rig_run_us(r, 999);
	rd(r, IXGBE_STATUS);
	rig_run_us(r, 2);
}

static void do_EEPROM_WAIT(struct rig *r)
{
	change(r, IXGBE_CTRL, 0, IXGBE_CTRL_RST);
	rig_run_us(r, 1001);
	wr(r, IXGBE_DMATXCTL, IXGBE_DMATXCTL_TE);
	wr(r, IXGBE_TDLEN(FREE), 1024);
	wr(r, IXGBE_TXDCTL(FREE), IXGBE_TXDCTL_ENABLE);
}

static void do_SEMAPHORE(struct rig *r)
{
	wr(r, IXGBE_AUTOC, rd(r, IXGBE_AUTOC) | IXGBE_AUTOC_FLU);
}

/* SWSM's two halves, as an 82599 has them. */
static void take_semaphore(struct rig *r)
{
	rd(r, IXGBE_SWSM);
	wr(r, IXGBE_SWSM, IXGBE_SWSM_SMBI | IXGBE_SWSM_SWESMBI);
}

static void do_SWFW_REGISTER(struct rig *r)
{
	wr(r, IXGBE_SWSM, 0);
	rd(r, IXGBE_SWSM); /* one half only */
	wr(r, IXGBE_GSSR, IXGBE_GSSR_MAC_CSR_SM);
}

/* Firmware has all of it. */
static void do_SWFW_TAKEN(struct rig *r)
{
	take_semaphore(r);
	wr(r, IXGBE_GSSR, rd(r, IXGBE_GSSR) | IXGBE_GSSR_EEP_SM);
}

/* On an X540. */
static void do_SWFW_RESOURCE(struct rig *r)
{
	wr(r, IXGBE_MSCA, IXGBE_MSCA_COMMAND | IXGBE_MSCA_READ);
}

static void do_SWFW_KEPT(struct rig *r)
{
	take_semaphore(r);
	wr(r, IXGBE_GSSR, IXGBE_GSSR_MAC_CSR_SM);
	wr(r, IXGBE_SWSM, 0);
	change(r, IXGBE_CTRL_EXT, IXGBE_CTRL_EXT_DRV_LOAD, 0);
}

/* Opens the receive door once more, as it should be done. */
static void reopen(struct rig *r)
{
	change(r, IXGBE_SECRXCTRL, 0, IXGBE_SECRXCTRL_RX_DIS);
	rd(r, IXGBE_SECRXSTAT);
	change(r, IXGBE_RXCTRL, 0, IXGBE_RXCTRL_RXEN);
	change(r, IXGBE_SECRXCTRL, IXGBE_SECRXCTRL_RX_DIS, 0);
}

static void shut(struct rig *r)
{
	change(r, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN, 0);
}

static void do_TABLES(struct rig *r)
{
	shut(r);
	wr(r, IXGBE_PFVLVFB(127), 1);
	reopen(r);
}

static void do_PBA(struct rig *r)
{
	wr(r, IXGBE_GPIE, IXGBE_GPIE_MSIX_MODE);
	wr(r, IXGBE_EIMS, 1);
}

static void do_RING_ALIGN(struct rig *r)
{
	wr(r, IXGBE_TDBAL(FREE), 0x1040);
}

static void do_RING_LEN(struct rig *r)
{
	wr(r, IXGBE_RDLEN(FREE), 100);
}

static void do_RING_WRITE_ENABLED(struct rig *r)
{
	wr(r, IXGBE_TDH(0), 0);
}

static void do_TAIL_RANGE(struct rig *r)
{
	wr(r, IXGBE_TDT(0), 512);
}

static void do_TAIL_DISABLED(struct rig *r)
{
	wr(r, IXGBE_TDT(FREE), 1);
}

static void do_TAIL_MID_PACKET(struct rig *r)
{
	queued(r);
	wr(r, IXGBE_TDT(0), 3);
}

static void do_TAIL_CONTEXT(struct rig *r)
{
	queued(r);
	wr(r, IXGBE_TDT(0), 1);
}

static void do_RING_OVERRUN(struct rig *r)
{
	for (u32 i = 0; i < 51; i++)
		queued(r);
	ixgbe_tx_kick(&r->ix.txq[0]);
	wr(r, IXGBE_TDT(0), 5);
}

static void do_DESC_REUSED(struct rig *r)
{
	struct ixgbe_desc *d = queued(r);

	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_run_us(r, 1);
	d[9].addr = 0;
	rig_run_us(r, 100);
}

static void enable_free(struct rig *r, u32 txdctl)
{
	wr(r, IXGBE_TDLEN(FREE), 1024);
	wr(r, IXGBE_TXDCTL(FREE), txdctl | IXGBE_TXDCTL_ENABLE);
}

static void do_TX_ENABLE_ORDER(struct rig *r)
{
	wr(r, IXGBE_DMATXCTL, 0);
	enable_free(r, 0);
}

static void arb_write(struct rig *r, u32 reg, u32 value)
{
	change(r, IXGBE_RTTDCS, 0, IXGBE_RTTDCS_ARBDIS);
	wr(r, reg, value);
	change(r, IXGBE_RTTDCS, IXGBE_RTTDCS_ARBDIS, 0);
}

static void do_DTXMXSZRQ(struct rig *r)
{
	arb_write(r, IXGBE_DTXMXSZRQ, IXGBE_DTXMXSZRQ_RESET);
	queued(r);
	go(r);
}

static void do_ARBDIS_LEFT(struct rig *r)
{
	change(r, IXGBE_RTTDCS, 0, IXGBE_RTTDCS_ARBDIS);
	queued(r);
	go(r);
}

static void do_ARB_CHANGE(struct rig *r)
{
	wr(r, IXGBE_MTQC, 0);
}

static void do_TXPBTHRESH(struct rig *r)
{
	arb_write(r, IXGBE_TXPBTHRESH(0), 1);
	queued(r);
	go(r);
}

static void do_PTHRESH(struct rig *r)
{
	enable_free(r,
		    IXGBE_TXDCTL_PTHRESH(36) | IXGBE_TXDCTL_HTHRESH(8) | IXGBE_TXDCTL_WTHRESH(8));
}

static void do_HTHRESH(struct rig *r)
{
	enable_free(r, IXGBE_TXDCTL_PTHRESH(32));
}

static void do_DCA_TXCTRL(struct rig *r)
{
	change(r, IXGBE_DCA_TXCTRL(0), 0, IXGBE_DCA_TXCTRL_DESC_WRO_EN);
	queued(r);
	go(r);
}

/* The driver's rings after a reset by hand that leaves the flag masks as they come. */
static void do_TCPFLG(struct rig *r)
{
	struct ixgbe_txq *q = &r->ix.txq[0];

	change(r, IXGBE_CTRL, 0, IXGBE_CTRL_RST);
	rig_run_us(r, 30000);
	rd(r, IXGBE_EEC);
	rd(r, IXGBE_RDRXCTL);
	arb_write(r, IXGBE_DTXMXSZRQ, IXGBE_DTXMXSZRQ_MAX);
	wr(r, IXGBE_TDBAL(0), q->desc_iova);
	wr(r, IXGBE_TDBAH(0), q->desc_iova >> 32);
	wr(r, IXGBE_TDLEN(0), q->nr * 16);
	change(r, IXGBE_DCA_TXCTRL(0), IXGBE_DCA_TXCTRL_DESC_WRO_EN, 0);
	wr(r, IXGBE_DMATXCTL, IXGBE_DMATXCTL_TE);
	wr(r, IXGBE_TXDCTL(0), IXGBE_TXDCTL_ENABLE);
	rig_run_us(r, 3000);
	rd(r, IXGBE_TXDCTL(0));
	queued(r);
	go(r);
}

static void do_HEAD_WB_WTHRESH(struct rig *r)
{
	wr(r, IXGBE_TDWBAL(FREE), 0x1000 | IXGBE_TDWBAL_HEAD_WB_ENABLE);
	enable_free(r, IXGBE_TXDCTL_WTHRESH(1));
}

static void do_HEAD_WB_ALIGN(struct rig *r)
{
	wr(r, IXGBE_TDWBAL(FREE), 0x1008 | IXGBE_TDWBAL_HEAD_WB_ENABLE);
	enable_free(r, 0);
}

static void do_DESC_FORMAT(struct rig *r)
{
	queued(r)[2].lo &= ~IXGBE_TXD_DEXT;
	go(r);
}

static void do_DESC_RESERVED(struct rig *r)
{
	queued(r)[1].lo |= 1u << 26;
	go(r);
}

static void do_DTALEN(struct rig *r)
{
	queued(r)[2].lo += IXGBE_MAX_DTALEN + 1 - 8192;
	go(r);
}

static void do_DESC_COUNT(struct rig *r)
{
	struct ixgbe_desc *d = queued(r);

	d[1].hi = (d[1].hi & 0x3fff) | 4000 << IXGBE_TXD_PAYLEN_SHIFT;
	for (u32 i = 2; i < 42; i++) {
		d[i] = d[2];
		d[i].lo = (d[2].lo & ~0xffffu) | 100;
	}
	d[41].lo |= IXGBE_TXD_EOP | IXGBE_TXD_RS;
	wr(r, IXGBE_TDT(0), 42);
}

static void do_IFCS(struct rig *r)
{
	queued(r)[1].lo &= ~IXGBE_TXD_IFCS;
	go(r);
}

static void do_RS_NO_EOP(struct rig *r)
{
	queued(r)[2].lo |= IXGBE_TXD_RS;
	go(r);
}

static void do_RS_MISSING(struct rig *r)
{
	queued(r);
	LAST(r)->lo &= ~IXGBE_TXD_RS;
	go(r);
}

static void do_RS_WTHRESH(struct rig *r)
{
	queued(r);
	LAST(r)->lo |= IXGBE_TXD_RS;
	go(r);
}

static void do_CTX_IDX(struct rig *r)
{
	queued(r)[0].hi |= 2u << IXGBE_TXD_IDX_SHIFT;
	go(r);
}

static void do_CTX_MISSING(struct rig *r)
{
	queued(r)[1].hi |= 1u << IXGBE_TXD_IDX_SHIFT;
	go(r);
}

static void do_PAYLEN(struct rig *r)
{
	queued(r)[1].hi += 66u << IXGBE_TXD_PAYLEN_SHIFT; /* with the header */
	go(r);
}

static void do_FRAME_LEN(struct rig *r)
{
	queued(r)[0].hi += 1u << IXGBE_TXC_MSS_SHIFT;
	go(r);
}

static void do_MSS(struct rig *r)
{
	queued(r)[0].hi &= 0xffff;
	go(r);
}

static void do_HDR_LEN(struct rig *r)
{
	struct ixgbe_tx_packet pkt = { 0 };
	struct ixgbe_buf buf[6];
	u64 iova;
	u8 *h = ixgbe_tx_header(&r->ix.txq[0], &iova);

	rig_header(h, &rig_64k, &pkt);
	for (u32 i = 0; i < 5; i++)
		buf[i] = (struct ixgbe_buf){ iova + 14 * i, i < 4 ? 14 : 10 };
	buf[5] = (struct ixgbe_buf){ r->arena.iova, 65160 };
	pkt.buf = buf;
	pkt.nr_bufs = 6;
	assert_int_equal(ixgbe_tx_post(&r->ix.txq[0], &pkt, NULL, 0), 0);
	go(r);
}

static void do_HDR_MISMATCH(struct rig *r)
{
	queued(r)[0].addr += (4u << IXGBE_TXC_MACLEN_SHIFT) - 4;
	go(r);
}

static void do_POPTS(struct rig *r)
{
	queued(r)[1].hi &= ~IXGBE_TXD_POPTS_TXSM;
	go(r);
}

static void do_IP_CSUM(struct rig *r)
{
	queued(r);
	r->ix.txq[0].headers[14 + 10] = 1;
	go(r);
}

static void do_TCP_SEED(struct rig *r)
{
	queued(r);
	r->ix.txq[0].headers[14 + 20 + 17] ^= 1;
	go(r);
}

static void do_HLREG0(struct rig *r)
{
	change(r, IXGBE_HLREG0, IXGBE_HLREG0_TXPADEN, 0);
	queued(r);
	go(r);
}

static void scribble_header(void *arg)
{
	struct rig *r = arg;

	r->ix.txq[0].headers[14 + 20 + 3] ^= 0xff; /* destination port */
}

static void do_BUFFER_CHANGED(struct rig *r)
{
	queued(r);
	model_at_segment(r->m, 20, scribble_header, r);
	go(r);
}

static void enable_free_rx(struct rig *r, u32 srrctl, u32 dca)
{
	wr(r, IXGBE_RDLEN(FREE), 1024);
	wr(r, IXGBE_SRRCTL(FREE), srrctl);
	wr(r, IXGBE_DCA_RXCTRL(FREE), dca);
	wr(r, IXGBE_RXDCTL(FREE), IXGBE_RXDCTL_ENABLE);
}

static void do_SRRCTL_SIZE(struct rig *r)
{
	enable_free_rx(r, IXGBE_SRRCTL_ADV_ONEBUF, 0);
}

static void do_SRRCTL_TYPE(struct rig *r)
{
	enable_free_rx(r, 2, 0);
}

static void do_DCA_RXCTRL(struct rig *r)
{
	enable_free_rx(r, 2 | IXGBE_SRRCTL_ADV_ONEBUF, IXGBE_DCA_RXCTRL_RESERVED);
}

static void do_RX_REARM(struct rig *r)
{
	r->ix.rxq[0].desc[511].lo = IXGBE_RXD_STAT_DD;
	wr(r, IXGBE_RDT(0), 0);
}

static void do_CRC_STRIP(struct rig *r)
{
	shut(r);
	change(r, IXGBE_HLREG0, IXGBE_HLREG0_RXCRCSTRP, 0);
	reopen(r);
}

static void do_RDRXCTL(struct rig *r)
{
	shut(r);
	change(r, IXGBE_RDRXCTL, IXGBE_RDRXCTL_RSCACKC, 0);
	reopen(r);
}

static void do_RSC(struct rig *r)
{
	shut(r);
	change(r, IXGBE_RFCTL, IXGBE_RFCTL_RSC_DIS, 0);
	reopen(r);
}

static void do_SECRX(struct rig *r)
{
	shut(r);
	change(r, IXGBE_RXCTRL, 0, IXGBE_RXCTRL_RXEN);
}

static void do_FCTRL(struct rig *r)
{
	wr(r, IXGBE_FCTRL, IXGBE_FCTRL_BAM);
}

static void do_RXPBSIZE(struct rig *r)
{
	shut(r);
	wr(r, IXGBE_RXPBSIZE(0), 513 << IXGBE_RXPBSIZE_SHIFT);
	reopen(r);
}

static void do_FCRTH(struct rig *r)
{
	shut(r);
	wr(r, IXGBE_FCRTH(0), 0);
	reopen(r);
}

static void do_IOMMU_FAULT(struct rig *r)
{
	queued(r)[4].addr = 0x1000;
	go(r);
}

static void do_BUS_MASTER(struct rig *r)
{
	queued(r);
	nicdev_config_write16(r->dev, PCI_CFG_COMMAND, PCI_COMMAND_MEM);
	go(r);
}

static void do_GIO_DIS(struct rig *r)
{
	queued(r);
	change(r, IXGBE_CTRL, 0, IXGBE_CTRL_GIO_DIS);
	go(r);
}

static void unmap_payload(void *arg)
{
	struct rig *r = arg;

	nicdev_dma_unmap(r->dev, r->arena.iova);
}

static void do_UNMAP_ACTIVE(struct rig *r)
{
	queued(r);
	ixgbe_tx_kick(&r->ix.txq[0]);
	unmap_payload(r);
}

static const struct {
	enum model_violation v;
	void (*wrong)(struct rig *r);
} cases[] = {
#define X(name, text) { V_##name, do_##name },
	MODEL_VIOLATIONS(X)
#undef X
};

static void each_fires(void **state)
{
	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		enum model_violation v = cases[i].v;
		struct rig *r = rig_new();
		const char *name = model_violation_name(v);

		r->mp.firmware_links = v == V_SEMAPHORE;
		if (v == V_SWFW_RESOURCE)
			r->mp.device = 0x1528;
		if (v == V_SWFW_TAKEN) { /* a port that needs nothing of what firmware has */
			r->mp.device = 0x10f7;
			r->mp.holder = MODEL_FIRMWARE;
			r->mp.held_ps = ~0ull;
		}
		r->cfg = ixgbe_default_config;
		if (v == V_RS_WTHRESH)
			r->cfg.wthresh = 4;
		rig_open(r);
		rig_no_violation(r);
		cases[i].wrong(r);
		if (!model_violations(r->m, v))
			fail_msg("%s was not found; first: %s", name, model_first_violation(r->m));
		if (strncmp(model_first_violation(r->m), name, strlen(name)))
			fail_msg("%s came after: %s", name, model_first_violation(r->m));
		rig_close(r);
		free(r);
	}
}

/* The header is read again for each segment: what is written into it in between shows. */
static void header_again(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	do_BUFFER_CHANGED(r);
	assert_int_equal(r->nr_frames, 45);
	for (u32 i = 0; i < 45; i++)
		assert_int_equal(r->frame[i].data[14 + 20 + 3],
				 i < 20 ? 5001 & 0xff : ~5001 & 0xff);
	assert_int_equal(model_violations(r->m, V_BUFFER_CHANGED), 25);
	rig_close(r);
	free(r);
}

/* A fault stops the queue where it is, and says which address it was; nothing is reported. */
static void fault_stops(void **state)
{
	struct rig *r = rig_new();
	struct model_fault f;
	u64 iova;

	(void)state;
	rig_open(r);
	assert_false(model_last_fault(r->m, &f));
	iova = r->arena.iova;
	queued(r);
	model_at_segment(r->m, 10, unmap_payload, r);
	go(r);
	assert_int_equal(r->nr_frames, 10);
	assert_true(model_last_fault(r->m, &f));
	assert_int_equal(f.iova, iova + 10 * 1448);
	assert_false(f.write);
	assert_int_equal(model_violations(r->m, V_UNMAP_ACTIVE), 1);
	assert_int_equal(ixgbe_tx_clean(&r->ix.txq[0], 1), 0);
	rig_close(r);
	free(r);
}

static void take(void *ctx, const u8 *data, u32 len)
{
	*(u32 *)ctx = data[len - 1];
}

/* Bit 12 of DCA_RXCTRL left set: payload is corrupt. A wrong sum seed: so is the packet's. */
static void corruption(void **state)
{
	struct rig *r = rig_new();
	u8 frame[100] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	u32 last = 0;

	(void)state;
	frame[99] = 0x5a;
	rig_open(r);
	model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, sizeof(frame));
	rig_run_us(r, 5);
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 1, take, &last), 1);
	assert_int_equal(last, 0x5a);
	change(r, IXGBE_DCA_RXCTRL(0), 0, IXGBE_DCA_RXCTRL_RESERVED);
	model_receive(r->m, nicdev_now_ps(r->dev), 0, frame, sizeof(frame));
	rig_run_us(r, 5);
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 1, take, &last), 1);
	assert_int_equal(last, 0xa5);
	rig_close(r);
	free(r);
}

/* Reads of a device that has gone are all ones, and writes vanish. */
static void removed(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	model_surprise_removal(r->m);
	assert_int_equal(rd(r, IXGBE_STATUS), 0xffffffff);
	assert_true(nicdev_gone(r->dev));
	wr(r, 0x20000, 0);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* From X540 on: each thing that goes over to firmware's side, without its resource and with it. */
static void resources(void **state)
{
	static const u16 devices[] = { 0x1528, 0x1563, 0x15ac, 0x15ce };
	static const struct {
		u32 reg, value, resource;
	} rows[] = {
		{ IXGBE_CTRL, IXGBE_CTRL_RST, IXGBE_GSSR_PHY0_SM },
		{ IXGBE_EERD, IXGBE_EERD_START, IXGBE_GSSR_EEP_SM },
		{ IXGBE_MSCA, IXGBE_MSCA_COMMAND, IXGBE_GSSR_PHY0_SM },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(devices) * ARRAY_SIZE(rows); i++) {
		const u32 row = i % ARRAY_SIZE(rows), device = devices[i / ARRAY_SIZE(rows)];
		const bool moved = device == 0x15ce;
		const u32 swsm = moved ? IXGBE_SWSM_X553 : IXGBE_SWSM;
		const u32 gssr = moved ? IXGBE_GSSR_X553 : IXGBE_GSSR;

		for (u32 with = 0; with < 2; with++) {
			struct rig *r = rig_new();

			r->mp.device = device;
			rig_open(r);
			rig_run_us(r, 100000); /* firmware has come to its end */
			if (with) {
				assert_int_equal(rd(r, swsm) & IXGBE_SWSM_SMBI, 0);
				assert_int_equal(rd(r, gssr), 0);
				assert_true(rd(r, swsm) & IXGBE_SWSM_SMBI);
				assert_true(rd(r, gssr) & IXGBE_GSSR_REGSMP);
				wr(r, gssr, IXGBE_GSSR_REGSMP | rows[row].resource);
				wr(r, gssr, rows[row].resource);
				wr(r, swsm, 0);
			}
			wr(r, rows[row].reg, rows[row].value);
			assert_int_equal(model_violations(r->m, V_SWFW_RESOURCE), !with);
			assert_int_equal(model_nr_violations(r->m), !with);
			rig_run_us(r, 2000);
			rig_close(r);
			free(r);
		}
	}
}

/* The register belongs to one at a time: what others write into it is told, and changes nothing. */
static void one_at_a_time(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	assert_int_equal(rd(r, IXGBE_SWSM), 0); /* given back by the driver; ours now */
	assert_true(rd(r, IXGBE_SWSM) & IXGBE_SWSM_SMBI);
	wr(r, IXGBE_GSSR, IXGBE_GSSR_EEP_SM);
	assert_int_equal(rd(r, IXGBE_GSSR), 0);
	assert_int_equal(model_violations(r->m, V_SWFW_REGISTER), 1);
	take_semaphore(r);
	wr(r, IXGBE_GSSR, IXGBE_GSSR_EEP_SM);
	assert_int_equal(rd(r, IXGBE_GSSR), IXGBE_GSSR_EEP_SM);
	wr(r, IXGBE_SWSM, 0);
	assert_int_equal(model_nr_violations(r->m), 1);
	rig_close(r);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fires),	 cmocka_unit_test(header_again),
		cmocka_unit_test(fault_stops),	 cmocka_unit_test(corruption),
		cmocka_unit_test(removed),	 cmocka_unit_test(resources),
		cmocka_unit_test(one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
