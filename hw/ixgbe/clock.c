/* SPDX-License-Identifier: MIT */
/*
 * The clock that stamps frames (7.9). What it counts in differs with the MAC:
 *
 *   82599   64 bits that grow by TIMINCA each tick of 6.4 ns at 10 Gbit/s: 2^-21 ns
 *   X540    the same, with 2^-28 ns; both by the link's rate
 *   X550    seconds in the high half, ns in the low one; at its own rate
 */
#include "hw/ixgbe/ixgbe.h"

#include <errno.h>
#include <stdio.h>

#define NS_PER_S      1000000000ull
#define SPEED_10G     3u
#define SPEED_1G      2u
#define INCREMENT_10G 0x66666666u /* 6.4 ns in 2^-28 ns */
#define INCREMENT_1G  0x40000000u /* 64 ns in 2^-24 ns */
#define SHIFT_10G     28
#define SHIFT_1G      24
#define SHIFT_82599   7 /* less, since 8 bits of TIMINCA are the period there */

struct clock {
	u32 timinca;
	u32 shift; /* to ns; 0: seconds and ns */
};

static struct clock clock_of(struct ixgbe *ix)
{
	u32 speed = nicdev_read32(ix->dev, IXGBE_LINKS) >> IXGBE_LINKS_SPEED_SHIFT & 3;
	struct clock c = { INCREMENT_10G, SHIFT_10G };

	if (ix->id->mac >= IXGBE_X550)
		return (struct clock){ 0, 0 };
	/* In the loopback LINKS may say nothing: the MAC runs at its full rate. */
	if (speed == SPEED_1G)
		c = (struct clock){ INCREMENT_1G, SHIFT_1G };
	if (ix->id->mac == IXGBE_82599) {
		c.timinca = c.timinca >> SHIFT_82599 | IXGBE_TIMINCA_PERIOD;
		c.shift -= SHIFT_82599;
	}
	return c;
}

static u64 to_ns(const struct ixgbe *ix, u32 low, u32 high)
{
	if (!ix->clock_shift)
		return high * NS_PER_S + low;
	return ((u64)high << 32 | low) >> ix->clock_shift;
}

int ixgbe_clock_start(struct ixgbe *ix, char *err, size_t errlen)
{
	const struct clock c = clock_of(ix);
	u64 first;

	nicdev_write32(ix->dev, IXGBE_TSYNCTXCTL, 0);
	ix->clock_shift = c.shift;
	if (c.timinca)
		nicdev_write32(ix->dev, IXGBE_TIMINCA, c.timinca);
	nicdev_write32(ix->dev, IXGBE_SYSTIML, 0);
	nicdev_write32(ix->dev, IXGBE_SYSTIMH, 0);
	nicdev_read32(ix->dev, IXGBE_TXSTMPH); /* a stamp of somebody before us */
	nicdev_write32(ix->dev, IXGBE_TSYNCTXCTL, IXGBE_TSYNCTXCTL_EN);
	first = ixgbe_clock_ns(ix);
	nicdev_delay_us(ix->dev, 10);
	if (ixgbe_clock_ns(ix) != first)
		return 0;
	snprintf(err, errlen, "%s: its clock stands still at %llu ns", ix->dev->name,
		 (unsigned long long)first);
	return -EIO;
}

u64 ixgbe_clock_ns(struct ixgbe *ix)
{
	u32 low = nicdev_read32(ix->dev, IXGBE_SYSTIML); /* holds the other half */

	return to_ns(ix, low, nicdev_read32(ix->dev, IXGBE_SYSTIMH));
}

bool ixgbe_tx_stamp(struct ixgbe *ix, u64 *ns)
{
	u32 low;

	if (!(nicdev_read32(ix->dev, IXGBE_TSYNCTXCTL) & IXGBE_TSYNCTXCTL_VALID))
		return false;
	low = nicdev_read32(ix->dev, IXGBE_TXSTMPL);
	*ns = to_ns(ix, low, nicdev_read32(ix->dev, IXGBE_TXSTMPH));
	return true;
}
