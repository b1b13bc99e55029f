/* SPDX-License-Identifier: MIT */
#include "hw/ixgbe/shared.h"

#include <errno.h>
#include <stdio.h>

#define MS	       1000 /* us */
#define POLL_US	       50
#define SMBI_MS	       3010 /* 10.5.4: 10 ms, and what the other driver may wait for firmware */
#define FIRMWARE_MS    3000
#define RESOURCE_MS    1000
#define RETRY_MS       10
#define EERD_US	       100000
#define MDIO_POLL_US   10
#define MDIO_US	       1000 /* ten times what a cycle takes */
#define MDIO_ADDRESSES 32
#define NO_PHY	       0xffffu

static const char *const resource_names[] = { "the EEPROM", "the PHY of port 0",
					      "the PHY of port 1", "the link registers",
					      "the flash" };

static u32 rd(struct ixgbe *ix, u32 reg)
{
	return nicdev_read32(ix->dev, reg);
}

static void wr(struct ixgbe *ix, u32 reg, u32 value)
{
	nicdev_write32(ix->dev, reg, value);
}

static u32 swsm(const struct ixgbe *ix)
{
	return ix->id->mac == IXGBE_X553 ? IXGBE_SWSM_X553 : IXGBE_SWSM;
}

static u32 gssr(const struct ixgbe *ix)
{
	return ix->id->mac == IXGBE_X553 ? IXGBE_GSSR_X553 : IXGBE_GSSR;
}

static const char *first_name(u32 resources)
{
	return resource_names[min((u32)__builtin_ctz(resources),
				  (u32)ARRAY_SIZE(resource_names) - 1)];
}

/*
 * --- the register
 * ----------------------------------------------------------------------------------------------
 */

static void release_register(struct ixgbe *ix)
{
	if (ix->id->mac != IXGBE_82599)
		wr(ix, gssr(ix), rd(ix, gssr(ix)) & ~IXGBE_GSSR_REGSMP);
	wr(ix, swsm(ix), rd(ix, swsm(ix)) & ~(IXGBE_SWSM_SWESMBI | IXGBE_SWSM_SMBI));
}

/* True if firmware lets software have SW_FW_SYNC now; what was read of it in *SEEN. */
static bool try_firmware(struct ixgbe *ix, u32 *seen)
{
	if (ix->id->mac != IXGBE_82599) { /* reading sets the bit: who reads it as 0 has it */
		*seen = rd(ix, gssr(ix));
		return !(*seen & IXGBE_GSSR_REGSMP);
	}
	wr(ix, swsm(ix), rd(ix, swsm(ix)) | IXGBE_SWSM_SWESMBI);
	*seen = rd(ix, swsm(ix));
	return *seen & IXGBE_SWSM_SWESMBI;
}

/* SW_FW_SYNC may be changed afterwards. *STALE: somebody had not given SMBI back. */
static int take_register(struct ixgbe *ix, bool *stale, char *err, size_t errlen)
{
	u32 us = 0, seen;

	/* Reading sets the bit: who reads it as 0 has it (8.2.3.4.14). */
	while (rd(ix, swsm(ix)) & IXGBE_SWSM_SMBI) {
		if (nicdev_gone(ix->dev))
			goto gone;
		if (us >= SMBI_MS * MS) { /* the other driver is not there any more */
			*stale = true;
			break;
		}
		nicdev_delay_us(ix->dev, POLL_US);
		us += POLL_US;
	}
	for (us = 0; !try_firmware(ix, &seen); us += POLL_US) {
		if (nicdev_gone(ix->dev))
			goto gone;
		if (us >= FIRMWARE_MS * MS) {
			snprintf(err, errlen,
				 "%s: firmware keeps the semaphore for %u s (%s 0x%08x): it hangs, "
				 "or writes its flash; wait, or switch the machine's power off and "
				 "on",
				 ix->dev->name, FIRMWARE_MS / 1000,
				 ix->id->mac == IXGBE_82599 ? "SWSM" : "SW_FW_SYNC", seen);
			wr(ix, swsm(ix), rd(ix, swsm(ix)) & ~IXGBE_SWSM_SMBI);
			return -EBUSY;
		}
		nicdev_delay_us(ix->dev, POLL_US);
	}
	return 0;

gone:
	snprintf(err, errlen, "%s: the device is gone", ix->dev->name);
	return -ENODEV;
}

/*
 * --- resources
 * ----------------------------------------------------------------------------------------------
 */

u32 ixgbe_shared_phy(struct ixgbe *ix)
{
	return IXGBE_STATUS_LAN_ID(rd(ix, IXGBE_STATUS)) ? IXGBE_GSSR_PHY1_SM : IXGBE_GSSR_PHY0_SM;
}

int ixgbe_shared_acquire(struct ixgbe *ix, u32 resources, char *err, size_t errlen)
{
	const u32 firmware = resources << IXGBE_GSSR_FW_SHIFT;

	for (u32 ms = 0;; ms += RETRY_MS) {
		bool stale = false;
		int ret = take_register(ix, &stale, err, errlen);
		u32 sync;

		if (ret)
			return ret;
		sync = rd(ix, gssr(ix));
		/* Bits of a driver that is not there any more: of all that it had. */
		if (sync & IXGBE_GSSR_SW && (stale || ms >= RESOURCE_MS)) {
			sync &= ~IXGBE_GSSR_SW;
			wr(ix, gssr(ix), sync);
		}
		if (!(sync & (resources | firmware))) {
			wr(ix, gssr(ix), sync | resources);
			release_register(ix);
			return 0;
		}
		release_register(ix);
		if (ms >= RESOURCE_MS) {
			snprintf(err, errlen,
				 "%s: firmware keeps %s for %u s (SW_FW_SYNC 0x%08x): it hangs, or "
				 "is at work on it; wait, or switch the machine's power off and on",
				 ix->dev->name,
				 first_name((sync & firmware) >> IXGBE_GSSR_FW_SHIFT),
				 RESOURCE_MS / 1000, sync);
			return -EBUSY;
		}
		nicdev_delay_us(ix->dev, RETRY_MS * MS);
	}
}

int ixgbe_shared_release(struct ixgbe *ix, u32 resources, char *err, size_t errlen)
{
	bool stale = false;
	int ret = take_register(ix, &stale, err, errlen);

	if (ret)
		return ret;
	wr(ix, gssr(ix), rd(ix, gssr(ix)) & ~resources);
	release_register(ix);
	return 0;
}

/*
 * --- EEPROM
 * ----------------------------------------------------------------------------------------------
 */

int ixgbe_read_eeprom(struct ixgbe *ix, u32 word, u16 *value, char *err, size_t errlen)
{
	int ret = ixgbe_shared_acquire(ix, IXGBE_GSSR_EEP_SM, err, errlen), end;
	char at_end[300];

	if (ret)
		return ret;
	wr(ix, IXGBE_EERD, word << IXGBE_EERD_ADDR_SHIFT | IXGBE_EERD_START);
	ret = nicdev_poll(ix->dev, IXGBE_EERD, IXGBE_EERD_DONE, IXGBE_EERD_DONE, 5, EERD_US);
	*value = rd(ix, IXGBE_EERD) >> IXGBE_EERD_DATA_SHIFT;
	if (ret) {
		snprintf(err, errlen, "%s: the EEPROM does not give word 0x%02x within %u ms",
			 ix->dev->name, word, EERD_US / MS);
		ret = ret == -ENODEV ? ret : -EIO;
	}
	end = ixgbe_shared_release(ix, IXGBE_GSSR_EEP_SM, at_end, sizeof(at_end));
	if (!ret && end)
		snprintf(err, errlen, "%s", at_end);
	return ret ? ret : end;
}

/*
 * --- the PHY
 * ----------------------------------------------------------------------------------------------
 */

/* One cycle of MDIO. False if it does not end. */
static bool mdio_cycle(struct ixgbe *ix, u32 command)
{
	wr(ix, IXGBE_MSCA, command | IXGBE_MSCA_COMMAND);
	return !nicdev_poll(ix->dev, IXGBE_MSCA, IXGBE_MSCA_COMMAND, 0, MDIO_POLL_US, MDIO_US);
}

/* Register REG of device MMD in the PHY at address AT; *VALUE goes out or comes in. */
static bool mdio(struct ixgbe *ix, u32 op, u32 at, u32 mmd, u32 reg, u32 *value)
{
	const u32 where = mmd << IXGBE_MSCA_DEVICE_SHIFT | at << IXGBE_MSCA_PHY_SHIFT;

	if (op == IXGBE_MSCA_WRITE)
		wr(ix, IXGBE_MSRWD, *value);
	if (!mdio_cycle(ix, where | reg | IXGBE_MSCA_ADDRESS) || !mdio_cycle(ix, where | op))
		return false;
	if (op == IXGBE_MSCA_READ)
		*value = rd(ix, IXGBE_MSRWD) >> IXGBE_MSRWD_READ_SHIFT;
	return true;
}

/* The address of the first PHY that answers in *AT, MDIO_ADDRESSES if none does. */
static bool find_phy(struct ixgbe *ix, u32 *at)
{
	u32 id;

	for (*at = 0; *at < MDIO_ADDRESSES; (*at)++) {
		if (!mdio(ix, IXGBE_MSCA_READ, *at, MDIO_MMD_PMAPMD, MDIO_DEVID1, &id))
			return false;
		if (id && id != NO_PHY)
			break;
	}
	return true;
}

static bool wake(struct ixgbe *ix)
{
	u32 at, control;

	if (!find_phy(ix, &at))
		return false;
	if (at == MDIO_ADDRESSES)
		return true;
	if (!mdio(ix, IXGBE_MSCA_READ, at, MDIO_MMD_VEND1, MDIO_VEND1_CONTROL, &control))
		return false;
	if (!(control & MDIO_VEND1_LOW_POWER))
		return true;
	control &= ~MDIO_VEND1_LOW_POWER;
	return mdio(ix, IXGBE_MSCA_WRITE, at, MDIO_MMD_VEND1, MDIO_VEND1_CONTROL, &control);
}

int ixgbe_wake_phy(struct ixgbe *ix, char *err, size_t errlen)
{
	const u32 phy = ixgbe_shared_phy(ix);
	char at_end[300];
	int ret, end;

	if (ix->id->mac != IXGBE_X540 && ix->id->mac != IXGBE_X550)
		return 0;
	ret = ixgbe_shared_acquire(ix, phy, err, errlen);
	if (ret)
		return ret;
	if (!wake(ix)) {
		snprintf(err, errlen, "%s: MDIO does not answer (MSCA 0x%08x)", ix->dev->name,
			 rd(ix, IXGBE_MSCA));
		ret = -EIO;
	}
	end = ixgbe_shared_release(ix, phy, at_end, sizeof(at_end));
	if (!ret && end)
		snprintf(err, errlen, "%s", at_end);
	return ret ? ret : end;
}
