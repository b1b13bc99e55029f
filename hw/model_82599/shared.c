/* SPDX-License-Identifier: MIT */
/*
 * What drivers share with firmware: the semaphore of SW_FW_SYNC with who else may hold it, and what
 * it guards, which is EEPROM, PHY and, from X540 on, the reset.
 *
 * SW_FW_SYNC belongs to no reset: another port of the card uses it, too.
 */
#include "hw/model_82599/internal.h"

#define MDIO_PS		(30 * SIM_PS_PER_US) /* a frame of 64 bits at 2.4 MHz, rounded up */
#define PHY_ID		0x0154u
#define MAX_FIRMWARE_PS (30 * SIM_PS_PER_MS)

/* The ranges of device IDs; all others count as an 82599's. */
enum model_mac model_mac_of(u16 device)
{
	if (device == 0x1528 || device == 0x1560)
		return MODEL_X540;
	if (device == 0x1563 || device == 0x15d1)
		return MODEL_X550;
	if (device >= 0x15aa && device <= 0x15b0)
		return MODEL_X552;
	if (device >= 0x15c2 && device <= 0x15e5)
		return MODEL_X553;
	return MODEL_82599;
}

static bool own_phy(const struct model_82599 *m)
{
	return m->mac == MODEL_X540 || m->mac == MODEL_X550;
}

static u32 swsm_at(const struct model_82599 *m)
{
	return m->mac == MODEL_X553 ? IXGBE_SWSM_X553 : IXGBE_SWSM;
}

static u32 gssr_at(const struct model_82599 *m)
{
	return m->mac == MODEL_X553 ? IXGBE_GSSR_X553 : IXGBE_GSSR;
}

/*
 * --- who holds it
 * ----------------------------------------------------------------------------------------------
 */

static bool held(const struct model_82599 *m, enum model_holder who)
{
	return m->p.holder == who && m->vt.now_ps < m->p.held_ps && !m->taken_over;
}

/* What firmware has, as software's bits. */
static u32 firmware_has(const struct model_82599 *m)
{
	return held(m, MODEL_FIRMWARE) || m->vt.now_ps < m->firmware_ps ? IXGBE_GSSR_SW : 0;
}

static u32 software_has(const struct model_82599 *m)
{
	return m->software | (held(m, MODEL_DRIVER) ? IXGBE_GSSR_SW : 0);
}

void model_shared_reset(struct model_82599 *m, bool power_on)
{
	if (power_on && own_phy(m)) {
		m->phy_at = model_random(m) % 4;
		m->phy_control = MDIO_VEND1_LOW_POWER;
	}
	/* Firmware sets the PHY up again. */
	if (m->mac != MODEL_82599)
		m->firmware_ps = m->vt.now_ps + model_random(m) % MAX_FIRMWARE_PS;
	m->mdio_ps = 0;
}

bool model_phy_asleep(const struct model_82599 *m)
{
	return own_phy(m) && m->phy_control & MDIO_VEND1_LOW_POWER;
}

/* From X540 on RESOURCES have to be software's when WHAT is done. */
void model_need(struct model_82599 *m, u32 resources, const char *what)
{
	if (m->mac != MODEL_82599 && !(m->software & resources))
		model_violate(m, V_SWFW_RESOURCE, "%s, SW_FW_SYNC 0x%08x", what, m->software);
}

void model_driver_changes(struct model_82599 *m)
{
	if (m->software)
		model_violate(m, V_SWFW_KEPT, "SW_FW_SYNC 0x%08x", m->software);
}

/*
 * --- the registers of the semaphore
 * ----------------------------------------------------------------------------------------------
 */

static u32 read_swsm(struct model_82599 *m)
{
	u32 value = (m->smbi || held(m, MODEL_DRIVER_REGISTER) ? IXGBE_SWSM_SMBI : 0) |
		    (m->swesmbi ? IXGBE_SWSM_SWESMBI : 0);

	if (!held(m, MODEL_DRIVER_REGISTER))
		m->smbi = true; /* reading takes it (8.2.3.4.14) */
	return value;
}

static void write_swsm(struct model_82599 *m, u32 value)
{
	if (!(value & IXGBE_SWSM_SMBI)) {
		m->smbi = false;
		m->taken_over |= held(m, MODEL_DRIVER_REGISTER);
	}
	if (m->mac == MODEL_82599)
		m->swesmbi = value & IXGBE_SWSM_SWESMBI && !held(m, MODEL_FIRMWARE_REGISTER);
}

static u32 read_gssr(struct model_82599 *m)
{
	u32 value = software_has(m) | firmware_has(m) << IXGBE_GSSR_FW_SHIFT;

	if (m->mac == MODEL_82599)
		return value;
	if (m->regsmp || held(m, MODEL_FIRMWARE_REGISTER))
		return value | IXGBE_GSSR_REGSMP;
	m->regsmp = true; /* reading takes it */
	return value;
}

static void write_gssr(struct model_82599 *m, u32 value)
{
	/* Who has waited in vain for another driver may go on (10.5.4). */
	const bool smbi = m->smbi || held(m, MODEL_DRIVER_REGISTER);
	const bool mine = smbi && (m->mac == MODEL_82599 ? m->swesmbi : m->regsmp);
	const u32 software = value & IXGBE_GSSR_SW;

	if (!mine) {
		model_violate(m, V_SWFW_REGISTER, "SW_FW_SYNC 0x%08x", value);
		return;
	}
	if (software & ~software_has(m) & firmware_has(m))
		model_violate(m, V_SWFW_TAKEN, "SW_FW_SYNC 0x%08x", value);
	/* While another driver has all, all bits are what was read; fewer take them from it. */
	if (!held(m, MODEL_DRIVER) || software != IXGBE_GSSR_SW) {
		m->taken_over |= held(m, MODEL_DRIVER);
		m->software = software;
	}
	if (!(value & IXGBE_GSSR_REGSMP))
		m->regsmp = false;
}

/*
 * --- what it guards
 * ----------------------------------------------------------------------------------------------
 */

static void write_eerd(struct model_82599 *m, u32 value)
{
	if (!(value & IXGBE_EERD_START))
		return;
	model_need(m, IXGBE_GSSR_EEP_SM, "EERD");
	*model_reg(m, IXGBE_EERD) =
		(value & ~IXGBE_EERD_START & 0xffff) | (m->p.no_eerd ? 0 : IXGBE_EERD_DONE) |
		(u32)eeprom_word(m, IXGBE_EERD_ADDR(value)) << IXGBE_EERD_DATA_SHIFT;
}

/* Registers of the PHY. */
static u32 phy_read(const struct model_82599 *m, u32 mmd, u32 reg)
{
	if (mmd == MDIO_MMD_PMAPMD && reg == MDIO_DEVID1)
		return PHY_ID;
	if (mmd == MDIO_MMD_VEND1 && reg == MDIO_VEND1_CONTROL)
		return m->phy_control;
	return 0;
}

static void phy_write(struct model_82599 *m, u32 mmd, u32 reg, u32 value)
{
	if (mmd != MDIO_MMD_VEND1 || reg != MDIO_VEND1_CONTROL)
		return;
	if (m->phy_control & ~value & MDIO_VEND1_LOW_POWER && m->link_ps != ~0ull)
		m->link_ps = max(m->link_ps, m->vt.now_ps + MAX_FIRMWARE_PS);
	m->phy_control = value;
}

static void write_msca(struct model_82599 *m, u32 value)
{
	const u32 mmd = value >> IXGBE_MSCA_DEVICE_SHIFT & 31,
		  at = value >> IXGBE_MSCA_PHY_SHIFT & 31;
	u32 *msrwd = model_reg(m, IXGBE_MSRWD);

	*model_reg(m, IXGBE_MSCA) = value;
	if (!(value & IXGBE_MSCA_COMMAND))
		return;
	model_need(m, IXGBE_GSSR_PHY0_SM, "MSCA");
	m->mdio_ps = m->p.no_mdio ? ~0ull : m->vt.now_ps + MDIO_PS;
	if ((value & IXGBE_MSCA_OP) == IXGBE_MSCA_ADDRESS)
		m->mdio_reg = value & 0xffff;
	else if (!own_phy(m) || at != m->phy_at) /* nobody pulls the line down */
		*msrwd |= 0xffffu << IXGBE_MSRWD_READ_SHIFT;
	else if ((value & IXGBE_MSCA_OP) == IXGBE_MSCA_WRITE)
		phy_write(m, mmd, m->mdio_reg, *msrwd & 0xffff);
	else
		*msrwd = (*msrwd & 0xffff) | phy_read(m, mmd, m->mdio_reg)
						     << IXGBE_MSRWD_READ_SHIFT;
}

bool model_shared_read(struct model_82599 *m, u32 reg, u32 *value)
{
	if (reg == swsm_at(m))
		*value = read_swsm(m);
	else if (reg == gssr_at(m))
		*value = read_gssr(m);
	else if (reg == IXGBE_MSCA)
		*value = *model_reg(m, reg) &
			 (m->vt.now_ps < m->mdio_ps ? ~0u : ~IXGBE_MSCA_COMMAND);
	else
		return false;
	return true;
}

bool model_shared_write(struct model_82599 *m, u32 reg, u32 value)
{
	if (reg == swsm_at(m))
		write_swsm(m, value);
	else if (reg == gssr_at(m))
		write_gssr(m, value);
	else if (reg == IXGBE_EERD)
		write_eerd(m, value);
	else if (reg == IXGBE_MSCA)
		write_msca(m, value);
	else
		return false;
	return true;
}
