/* SPDX-License-Identifier: MIT */
/*
 * The register file: reset values, bits that clear themselves or come late, side effects.
 *
 * Registers without an entry here are memory. Section numbers: 82599 datasheet.
 */
#include "hw/model_82599/internal.h"

#include <string.h>

#define RESET_PS      SIM_PS_PER_MS /* 4.2.1.6.1: no access for 1 ms */
#define MAX_ARD_PS    (20 * SIM_PS_PER_MS)
#define MAX_DMAI_PS   (5 * SIM_PS_PER_MS)
#define MAX_LINK_PS   (1500 * SIM_PS_PER_MS)
#define MAX_ENABLE_PS (2 * SIM_PS_PER_MS)
#define ALL_ONES      0xffffffffu
#define DCA_RX_RESET  0xb200u /* bits 9, 12, 13, 15 */
#define DCA_TX_RESET  0x2a00u /* bits 9, 11, 13 */
#define NR_TABLES     7
#define EEPROM_SIZE   7 /* 8192 words */
#define TICK_PS	      6400 /* of the clock, at 10 Gbit/s */
#define TICK_X550_PS  12500 /* at any rate */
#define NS_PER_S      1000000000ull

/* Tables that hold what they happen to hold until software writes them (4.6.7, 8.2.3). */
static const struct {
	u32 first, nr;
	u32 mask; /* what must be 0 before frames arrive */
} tables[NR_TABLES] = {
	{ IXGBE_MTA(0), 128, ~0u },
	{ IXGBE_VFTA(0), 128, ~0u },
	{ IXGBE_PFUTA(0), 128, ~0u },
	{ IXGBE_PFVLVF(0), 64, ~0u },
	{ IXGBE_PFVLVFB(0), 128, ~0u },
	{ IXGBE_MPSAR(1), 255, ~0u },
	{ IXGBE_FTQF(0), 128, IXGBE_FTQF_ENABLE },
};

static u64 late(struct model_82599 *m, u64 most_ps)
{
	return m->vt.now_ps + model_random(m) % most_ps;
}

static void set_clock(struct model_82599 *m, u64 value);

void model_reset(struct model_82599 *m, bool power_on)
{
	u32 *reg = m->reg;

	m->epoch++;
	tx_reset(m);
	rx_reset(m);
	m->fetching = false;
	m->kick_ps = ~0ull;
	for (u32 i = 0; i < NICDEV_MAX_IRQS; i++)
		m->vec[i] = (struct vector){ ~0ull, false };

	if (power_on)
		for (u32 t = 0; t < NR_TABLES; t++)
			for (u32 i = 0; i < tables[t].nr; i++)
				reg[tables[t].first / 4 + i] =
					(u32)model_random(m) | tables[t].mask;
	for (u32 i = 0; i < IXGBE_REG_BYTES / 4; i++) {
		bool kept = false;

		for (u32 t = 0; t < NR_TABLES; t++)
			kept |= i - tables[t].first / 4 < tables[t].nr;
		if (!kept)
			reg[i] = 0;
	}
	reg[IXGBE_HLREG0 / 4] = IXGBE_HLREG0_RESET;
	if (m->mac == MODEL_82599)
		reg[IXGBE_AUTOC / 4] = IXGBE_AUTOC_LMS_10G_SFI; /* from the EEPROM */
	reg[IXGBE_TXPBSIZE(0) / 4] = 160 << 10;
	reg[IXGBE_TXPBTHRESH(0) / 4] = 0x96;
	reg[IXGBE_RXPBSIZE(0) / 4] = (m->mac == MODEL_82599 ? 512 : 384) << IXGBE_RXPBSIZE_SHIFT;
	reg[IXGBE_DTXMXSZRQ / 4] = IXGBE_DTXMXSZRQ_RESET;
	reg[IXGBE_DTXTCPFLGL / 4] = 0x0f760ff6;
	reg[IXGBE_DTXTCPFLGH / 4] = 0x0f7f;
	reg[(m->mac == MODEL_X553 ? IXGBE_FWSM_X553 : IXGBE_FWSM) / 4] = IXGBE_FWSM_FW_VALID;
	reg[IXGBE_STATUS / 4] = m->p.port << IXGBE_STATUS_LAN_ID_SHIFT;
	/* 00:1b:21:99:3c:4d of the "EEPROM"; the card's other port has the next one. */
	reg[IXGBE_RAL(0) / 4] = 0x99211b00;
	reg[IXGBE_RAH(0) / 4] = IXGBE_RAH_AV | (0x4d3c + (m->p.port << 8));
	for (u32 q = 0; q < IXGBE_NR_QUEUES; q++) {
		reg[IXGBE_DCA_RXCTRL(q) / 4] = DCA_RX_RESET;
		reg[IXGBE_DCA_TXCTRL(q) / 4] = DCA_TX_RESET;
		reg[IXGBE_SRRCTL(q) / 4] = 2;
	}
	m->reset_until_ps = m->vt.now_ps + RESET_PS;
	m->ard_ps = m->p.no_auto_rd ? ~0ull : late(m, MAX_ARD_PS);
	m->dmaidone_ps = m->p.no_dmaidone ? ~0ull : late(m, MAX_DMAI_PS);
	m->link_ps = m->p.no_link ? ~0ull : late(m, MAX_LINK_PS);
	m->link_up = !m->p.no_link;
	m->link_lost = true; /* until LINKS is read for the first time */
	m->link_told = false;
	m->ard_seen = m->dmaidone_seen = m->tcpflg_seen = m->secrx_seen = false;
	m->nic.p.fifo_threshold_bytes = min(0x96u * 1024, m->nic.p.fifo_bytes);
	m->nic.fifo_head = m->nic.fifo_tail; /* what was in it is lost */
	m->nic.fifo_level = 0;
	m->nic.fetch_free_ps = m->nic.wire_free_ps = m->nic.backlog_end_ps = m->vt.now_ps;
	model_shared_reset(m, power_on);
	module_reset(m);
	set_clock(m, 0);
}

/* A link that went up or down since this was looked at last: EICR.LSC (8.2.3.5.1). */
static void tell_link(struct model_82599 *m)
{
	bool up = m->link_up && m->vt.now_ps >= m->link_ps;

	if (up == m->link_told)
		return;
	m->link_told = up;
	model_irq_other(m, IXGBE_EICR_LSC);
}

static void link_comes(void *ctx, u32 arg)
{
	if (!event_void(ctx, arg))
		tell_link(ctx);
}

/* Somebody waits for LSC: the moment when the link comes up is an event from now on. */
static void await_link(struct model_82599 *m)
{
	tell_link(m);
	if (m->link_up && m->link_ps != ~0ull && m->link_ps > m->vt.now_ps)
		vtime_post(&m->vt, m->link_ps, EV_STATE, link_comes, m, event_arg(m, 0));
}

void model_set_link(struct model_82599 *m, bool up)
{
	m->link_up = up;
	if (up)
		m->link_ps = min(m->link_ps, m->vt.now_ps);
	else
		m->link_lost = true;
	tell_link(m);
}

/* The block of a per-queue register, N in *QUEUE; 0: none. Offsets within it in *AT. */
static bool rx_block(u32 reg, u32 *queue, u32 *at)
{
	if (reg - 0x01000 < 64 * 0x40)
		*queue = (reg - 0x01000) / 0x40;
	else if (reg - 0x0d000 < 64 * 0x40)
		*queue = 64 + (reg - 0x0d000) / 0x40;
	else
		return false;
	*at = reg & 0x3f;
	return *at < 0x30;
}

static bool tx_block(u32 reg, u32 *queue, u32 *at)
{
	if (reg - 0x06000 >= 128 * 0x40)
		return false;
	*queue = (reg - 0x06000) / 0x40;
	*at = reg & 0x3f;
	return true;
}

/*
 * --- reading
 * ----------------------------------------------------------------------------------------------
 */

static bool read_clears(u32 reg)
{
	return (reg >= 0x04000 && reg < 0x04100) || reg == IXGBE_TXDGPC ||
	       (reg >= 0x03f60 && reg < 0x03fc0) || (reg >= 0x041a0 && reg < 0x041b0) ||
	       reg == IXGBE_RXDGPC || /* and by queue: QPRC, QBRC, QPRDC */
	       (reg >= IXGBE_RXQ(0) && reg < IXGBE_RXQ(32) && (reg & 0x3f) >= 0x30) ||
	       (reg >= IXGBE_QPTC(0) && reg < IXGBE_QPTC(16));
}

/* Seconds and ns, from the X550 on. */
static u64 clock_x550(const struct model_82599 *m)
{
	u64 ns = m->clock_base + (m->vt.now_ps - m->clock_ps) / TICK_X550_PS * TICK_X550_PS / 1000;

	return ns / NS_PER_S << 32 | ns % NS_PER_S;
}

u64 model_clock(struct model_82599 *m)
{
	u32 timinca = *model_reg(m, IXGBE_TIMINCA);
	u32 period = timinca >> 24;
	u64 ticks = (m->vt.now_ps - m->clock_ps) / TICK_PS;

	if (m->mac >= MODEL_X550)
		return clock_x550(m);
	if (m->mac == MODEL_X540)
		return m->clock_base + ticks * timinca;
	return period ? m->clock_base + ticks / period * (timinca & 0xffffff) : m->clock_base;
}

/* The clock goes on from VALUE. */
static void set_clock(struct model_82599 *m, u64 value)
{
	m->clock_base = m->mac >= MODEL_X550 ? (value >> 32) * NS_PER_S + (u32)value : value;
	m->clock_ps = m->vt.now_ps;
}

static u32 read_links(struct model_82599 *m)
{
	bool up = m->link_up && m->vt.now_ps >= m->link_ps;
	bool lost = m->link_lost;

	m->link_lost = false;
	if (model_phy_asleep(m) && !(*model_reg(m, IXGBE_MACC) & IXGBE_MACC_FLU))
		up = false;
	if (!up || lost)
		return 0;
	return IXGBE_LINKS_UP | 3u << IXGBE_LINKS_SPEED_SHIFT;
}

/* Where a register lies that has a second place for its first 16 queues (8.2.3.8.7, 8.2.3.11.1). */
static u32 without_alias(u32 reg)
{
	if (reg - IXGBE_SRRCTL_ALIAS(0) < 16 * 4)
		return IXGBE_SRRCTL((reg - IXGBE_SRRCTL_ALIAS(0)) / 4);
	if (reg - IXGBE_DCA_RXCTRL_ALIAS(0) < 16 * 4)
		return IXGBE_DCA_RXCTRL((reg - IXGBE_DCA_RXCTRL_ALIAS(0)) / 4);
	return reg;
}

/* The causes that stand. With OCD a read leaves those of the queues (8.2.3.5.18). */
static u32 read_eicr(struct model_82599 *m)
{
	u32 value;

	tell_link(m);
	value = *model_reg(m, IXGBE_EICR);
	*model_reg(m, IXGBE_EICR) &=
		*model_reg(m, IXGBE_GPIE) & IXGBE_GPIE_OCD ? ~IXGBE_EICR_OCD : 0;
	return value;
}

u32 model_read32(struct nicdev *dev, u32 reg)
{
	struct model_82599 *m = to_model(dev);
	u32 value, q, at;

	if (m->gone)
		return ALL_ONES;
	if (reg & 3 || reg >= IXGBE_REG_BYTES) {
		model_violate(m, V_MMIO, "read of 0x%x", reg);
		return ALL_ONES;
	}
	if (m->vt.now_ps < m->reset_until_ps) {
		model_violate(m, V_RESET_ACCESS, "read of 0x%05x", reg);
		return (u32)model_random(m) & ~1u;
	}
	if (model_shared_read(m, reg, &value))
		return value;
	reg = without_alias(reg);
	value = *model_reg(m, reg);
	if (reg == (m->mac == MODEL_X553 ? IXGBE_EEC_X553 : IXGBE_EEC)) {
		value |= IXGBE_EEC_PRES | IXGBE_EEC_SIZE(EEPROM_SIZE);
		if (m->vt.now_ps >= m->ard_ps) {
			m->ard_seen = true;
			value |= IXGBE_EEC_ARD;
		}
		return value;
	}
	switch (reg) {
	case IXGBE_CTRL:
		return m->p.no_reset && m->epoch > 1 ? value | IXGBE_CTRL_RST : value;
	case IXGBE_STATUS:
		/* Master requests end with the last fetch. */
		if (*model_reg(m, IXGBE_CTRL) & IXGBE_CTRL_GIO_DIS && tx_idle(m))
			return value;
		return value | IXGBE_STATUS_GIO;
	case IXGBE_RDRXCTL:
		if (m->vt.now_ps >= m->dmaidone_ps) {
			m->dmaidone_seen = true;
			value |= IXGBE_RDRXCTL_DMAIDONE;
		}
		return value;
	case IXGBE_ESDP:
		return m->p.no_link || m->p.empty_cage || m->mac != MODEL_82599
			       ? value
			       : value | IXGBE_ESDP_SDP2;
	case IXGBE_I2CCTL:
		return module_read(m);
	case IXGBE_LINKS:
		return read_links(m);
	case IXGBE_ANLP1: /* the state that the pipeline reset waits for */
		return value | (*model_reg(m, IXGBE_AUTOC) & IXGBE_AUTOC_AN_RESTART ? 1u << 16 : 0);
	case IXGBE_FRTIMER:
		return m->vt.now_ps / SIM_PS_PER_US;
	case IXGBE_SECRXSTAT:
		if (*model_reg(m, IXGBE_SECRXCTRL) & IXGBE_SECRXCTRL_RX_DIS) {
			m->secrx_seen = true;
			return IXGBE_SECRXSTAT_RDY;
		}
		return 0;
	case IXGBE_SYSTIML:
		*model_reg(m, IXGBE_SYSTIMH) = model_clock(m) >> 32;
		return model_clock(m);
	case IXGBE_TXSTMPH: /* a read frees the stamp */
		*model_reg(m, IXGBE_TSYNCTXCTL) &= ~IXGBE_TSYNCTXCTL_VALID;
		return value;
	case IXGBE_EICR:
		return read_eicr(m);
	case IXGBE_EICS: /* EICR's causes, and they stay: what Linux reads, for an erratum of EICR */
		tell_link(m);
		return *model_reg(m, IXGBE_EICR);
	case IXGBE_EIMS_EX(0):
		return *model_reg(m, IXGBE_EIMS) & IXGBE_EICR_QUEUES;
	default:
		break;
	}
	if (tx_block(reg, &q, &at)) {
		struct tx_queue *txq = &m->txq[q];

		if (at == 0x10)
			return txq->tdh;
		if (at == 0x28) {
			bool on = txq->enabled && m->vt.now_ps >= txq->enable_ps;

			txq->enabled_seen |= on;
			return (value & ~IXGBE_TXDCTL_ENABLE) | (on ? IXGBE_TXDCTL_ENABLE : 0);
		}
	} else if (rx_block(reg, &q, &at)) {
		struct rx_queue *rxq = &m->rxq[q];

		if (at == 0x10)
			return rxq->head;
		if (at == 0x28) {
			bool on = rxq->enabled && m->vt.now_ps >= rxq->enable_ps;

			rxq->enabled_seen |= on;
			return (value & ~IXGBE_RXDCTL_ENABLE) | (on ? IXGBE_RXDCTL_ENABLE : 0);
		}
	} else if (read_clears(reg)) {
		*model_reg(m, reg) = 0;
	}
	return value;
}

/*
 * --- writing
 * ----------------------------------------------------------------------------------------------
 */

/* Ring registers: offsets 0x00 base, 0x04, 0x08 length, 0x10 head. True: not to be stored. */
static bool ring_write(struct model_82599 *m, const char *ring, u32 q, bool enabled, u32 at,
		       u32 *value)
{
	if (at != 0x00 && at != 0x04 && at != 0x08 && at != 0x10)
		return false;
	if (enabled) {
		model_violate(m, V_RING_WRITE_ENABLED, "%s queue %u, register +0x%02x", ring, q,
			      at);
		return true;
	}
	if (at == 0x00 && *value & 127) {
		model_violate(m, V_RING_ALIGN, "%s queue %u, 0x%08x", ring, q, *value);
		*value &= ~127u; /* the low bits read as 0 */
	}
	if (at == 0x08 && (*value & 127 || *value > 16 * IXGBE_MAX_RING))
		model_violate(m, V_RING_LEN, "%s queue %u, %u bytes", ring, q, *value);
	return false;
}

static void write_tx(struct model_82599 *m, u32 q, u32 at, u32 value)
{
	struct tx_queue *txq = &m->txq[q];
	u32 *reg = model_reg(m, IXGBE_TXQ(q) + at);

	if (ring_write(m, "transmit", q, txq->enabled, at, &value))
		return;
	switch (at) {
	case 0x10:
		txq->tdh = value;
		break;
	case 0x18:
		*reg = value;
		tx_doorbell(m, q, value);
		return;
	case 0x28:
		if (txq->enabled && (*reg ^ value) & 0x7f7f7f && value & IXGBE_TXDCTL_ENABLE)
			model_violate(m, V_RING_WRITE_ENABLED, "transmit queue %u, thresholds", q);
		*reg = value & ~IXGBE_TXDCTL_SWFLSH;
		if (value & IXGBE_TXDCTL_SWFLSH)
			tx_flush(m, q);
		tx_enable(m, q, value & IXGBE_TXDCTL_ENABLE);
		return;
	default:
		break;
	}
	*reg = value;
}

static void write_rx(struct model_82599 *m, u32 q, u32 at, u32 value)
{
	struct rx_queue *rxq = &m->rxq[q];
	u32 *reg = model_reg(m, IXGBE_RXQ(q) + at);

	if (ring_write(m, "receive", q, rxq->enabled, at, &value))
		return;
	*reg = value;
	if (at == 0x10)
		rxq->head = value;
	else if (at == 0x18)
		rx_doorbell(m, q, value);
	else if (at == 0x28)
		rx_enable(m, q, value & IXGBE_RXDCTL_ENABLE);
}

static bool tables_dirty(struct model_82599 *m, u32 *where)
{
	for (u32 t = 0; t < NR_TABLES; t++)
		for (u32 i = 0; i < tables[t].nr; i++)
			if (m->reg[tables[t].first / 4 + i] & tables[t].mask) {
				*where = tables[t].first + 4 * i;
				return true;
			}
	return false;
}

static void write_rxctrl(struct model_82599 *m, u32 value)
{
	u32 where;

	if (value & IXGBE_RXCTRL_RXEN && !(*model_reg(m, IXGBE_RXCTRL) & IXGBE_RXCTRL_RXEN)) {
		if (tables_dirty(m, &where))
			model_violate(m, V_TABLES, "register 0x%05x", where);
		rx_check_rxen(m);
	}
	*model_reg(m, IXGBE_RXCTRL) = value;
}

static void arb_write(struct model_82599 *m, u32 reg, u32 value)
{
	if (!(*model_reg(m, IXGBE_RTTDCS) & IXGBE_RTTDCS_ARBDIS))
		model_violate(m, V_ARB_CHANGE, "register 0x%05x", reg);
	*model_reg(m, reg) = value;
	if (reg == IXGBE_TXPBTHRESH(0))
		m->nic.p.fifo_threshold_bytes = min((value & 0x3ff) * 1024, m->nic.p.fifo_bytes);
}

static void force_link(struct model_82599 *m)
{
	m->link_up = true;
	m->link_ps = min(m->link_ps, m->vt.now_ps + 10 * SIM_PS_PER_MS);
	if (*model_reg(m, IXGBE_EIMS) & IXGBE_EICR_LSC)
		await_link(m);
}

static bool write_general(struct model_82599 *m, u32 reg, u32 value)
{
	u32 *r = model_reg(m, reg);

	switch (reg) {
	case IXGBE_CTRL:
		if (value & IXGBE_CTRL_RST)
			model_need(m, IXGBE_GSSR_PHY0_SM, "CTRL.RST");
		*r = value & ~(IXGBE_CTRL_RST | IXGBE_CTRL_LNK_RST);
		if (value & (IXGBE_CTRL_RST | IXGBE_CTRL_LNK_RST))
			model_reset(m, false);
		return true;
	case IXGBE_STATUS:
	case IXGBE_LINKS:
	case IXGBE_FRTIMER:
		return true; /* read-only */
	case IXGBE_CTRL_EXT:
		if ((value ^ *r) & IXGBE_CTRL_EXT_DRV_LOAD)
			model_driver_changes(m);
		*r = value;
		return true;
	case IXGBE_I2CCTL:
		module_write(m, value);
		return true;
	case IXGBE_AUTOC:
		if (m->mac != MODEL_82599)
			return true; /* there is none */
		if (m->p.firmware_links && !(m->software & IXGBE_GSSR_MAC_CSR_SM))
			model_violate(m, V_SEMAPHORE, "AUTOC 0x%08x", value);
		*r = value;
		if (value & IXGBE_AUTOC_FLU)
			force_link(m);
		return true;
	case IXGBE_MACC:
		*r = value;
		if (m->mac != MODEL_82599 && value & IXGBE_MACC_FLU)
			force_link(m);
		return true;
	case IXGBE_HLREG0:
		*r = value;
		m->lpbk = value & IXGBE_HLREG0_LPBK;
		return true;
	case IXGBE_FCTRL:
		if (*model_reg(m, IXGBE_RXCTRL) & IXGBE_RXCTRL_RXEN)
			model_violate(m, V_FCTRL, "FCTRL 0x%x", value);
		*r = value;
		return true;
	case IXGBE_RXCTRL:
		write_rxctrl(m, value);
		return true;
	case IXGBE_DTXMXSZRQ:
	case IXGBE_TXPBSIZE(0):
	case IXGBE_TXPBTHRESH(0):
	case IXGBE_MTQC:
		arb_write(m, reg, value);
		return true;
	case IXGBE_TIMINCA:
		set_clock(m, model_clock(m));
		*r = value;
		return true;
	case IXGBE_SYSTIML:
		set_clock(m, (model_clock(m) >> 32 << 32) | value);
		return true;
	case IXGBE_SYSTIMH:
		set_clock(m, (u64)value << 32 | (u32)model_clock(m));
		return true;
	case IXGBE_TSYNCTXCTL:
		*r = (*r & IXGBE_TSYNCTXCTL_VALID) | (value & IXGBE_TSYNCTXCTL_EN);
		return true;
	case IXGBE_DTXTCPFLGL:
	case IXGBE_DTXTCPFLGH:
		m->tcpflg_seen = true;
		*r = value;
		return true;
	default:
		return false;
	}
}

static bool write_irq(struct model_82599 *m, u32 reg, u32 value)
{
	/* The first of the wide registers is the vectors of the narrow one (8.2.3.5.6). */
	if (reg == IXGBE_EIMS_EX(0) || reg == IXGBE_EIMC_EX(0) || reg == IXGBE_EICS_EX(0)) {
		value &= IXGBE_EICR_QUEUES;
		reg = reg == IXGBE_EIMS_EX(0)	? IXGBE_EIMS
		      : reg == IXGBE_EIMC_EX(0) ? IXGBE_EIMC
						: IXGBE_EICS;
	}
	switch (reg) {
	case IXGBE_EICR: /* write 1 to clear */
		*model_reg(m, reg) &= ~value;
		return true;
	case IXGBE_EICS:
		*model_reg(m, IXGBE_EICR) |= value;
		model_irq_unmasked(m, value & *model_reg(m, IXGBE_EIMS));
		return true;
	case IXGBE_EIMS:
		if (value & ~*model_reg(m, reg) & IXGBE_EICR_LSC)
			await_link(m);
		*model_reg(m, reg) |= value;
		model_irq_unmasked(m, value);
		return true;
	case IXGBE_EIAM_EX(0):
		*model_reg(m, IXGBE_EIAM) = (*model_reg(m, IXGBE_EIAM) & ~IXGBE_EICR_QUEUES) |
					    (value & IXGBE_EICR_QUEUES);
		return true;
	case IXGBE_EIMC:
		*model_reg(m, IXGBE_EIMS) &= ~value;
		return true;
	default:
		return false;
	}
}

void model_write32(struct nicdev *dev, u32 reg, u32 value)
{
	struct model_82599 *m = to_model(dev);
	u32 q, at;

	if (m->gone)
		return;
	if (reg & 3 || reg >= IXGBE_REG_BYTES) {
		model_violate(m, V_MMIO, "write to 0x%x", reg);
		return;
	}
	if (m->vt.now_ps < m->reset_until_ps) {
		model_violate(m, V_RESET_ACCESS, "write to 0x%05x", reg);
		return;
	}
	if (model_shared_write(m, reg, value))
		return;
	reg = without_alias(reg);
	if (write_general(m, reg, value) || write_irq(m, reg, value))
		return;
	if (tx_block(reg, &q, &at))
		write_tx(m, q, at, value);
	else if (rx_block(reg, &q, &at))
		write_rx(m, q, at, value);
	else
		*model_reg(m, reg) = value;
}
