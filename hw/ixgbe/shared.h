/* SPDX-License-Identifier: MIT */
/*
 * What the driver shares with firmware and with the driver of the card's other port: EEPROM, PHYs,
 * some link registers. Each is used between taking and releasing its bit in SW_FW_SYNC.
 *
 * For the thread that starts and stops the device.
 */
#ifndef HW_IXGBE_SHARED_H
#define HW_IXGBE_SHARED_H

#include "hw/ixgbe/ixgbe.h"

/*
 * Takes RESOURCES, software's bits of SW_FW_SYNC (IXGBE_GSSR_*_SM), in the order of datasheet 10.5.4:
 * SWSM.SMBI against other drivers, SWESMBI (X540 and later: REGSMP) against
 * firmware, then the bits themselves. What another driver has left taken for longer than a second is
 * taken over, as the datasheet says. Firmware's is not, though it says so, too: what firmware is
 * about to do to the PHY would go into the measurement. 0; -EBUSY if firmware lets go of nothing,
 * -ENODEV if the device is gone, each with a sentence in ERR and nothing taken.
 */
int ixgbe_shared_acquire(struct ixgbe *ix, u32 resources, char *err, size_t errlen);

/*
 * Gives them back. -EBUSY if firmware holds the register itself: they stay taken, and ERR says so;
 * -ENODEV as above.
 */
int ixgbe_shared_release(struct ixgbe *ix, u32 resources, char *err, size_t errlen);

/* The PHY of this port of the card. */
u32 ixgbe_shared_phy(struct ixgbe *ix);

/*
 * Word WORD of the EEPROM, by EERD (8.2.3.2.2), in *VALUE. 82599 only: later ones have their flash
 * behind firmware. 0; -EIO if it does not answer, or what taking EEP_SM returns, with a sentence in
 * ERR.
 */
int ixgbe_read_eeprom(struct ixgbe *ix, u32 word, u16 *value, char *err, size_t errlen);

/*
 * Wakes the PHY of a 10GBASE-T port from low power, in which another driver may have left it: without
 * that no link ever comes. X540 and X550, whose PHY is their own; nothing for others, and nothing if
 * none answers. 0; -EIO if MDIO does not answer, or what taking the PHY returns, with a sentence in
 * ERR.
 */
int ixgbe_wake_phy(struct ixgbe *ix, char *err, size_t errlen);

#endif
