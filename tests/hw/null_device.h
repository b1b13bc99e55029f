/* SPDX-License-Identifier: MIT */
/*
 * A device that does nothing, to count what the driver takes: its bits are as the driver waits for
 * them, its doorbell is a store into memory, and what it completes the caller says.
 */
#ifndef TESTS_HW_NULL_DEVICE_H
#define TESTS_HW_NULL_DEVICE_H

#include "hw/ixgbe/ixgbe.h"

#include <stdlib.h>

struct null_device {
	struct nicdev dev;
	u64 now_ps;
	u32 reg[IXGBE_REG_BYTES / 4];
};

static inline struct null_device *to_null(struct nicdev *dev)
{
	return container_of(dev, struct null_device, dev);
}

static inline u32 null_read32(struct nicdev *dev, u32 reg)
{
	u32 value = to_null(dev)->reg[reg / 4];

	switch (reg) {
	case IXGBE_CTRL:
		return value & ~IXGBE_CTRL_RST;
	case IXGBE_EEC:
		return IXGBE_EEC_PRES | IXGBE_EEC_ARD;
	case IXGBE_RDRXCTL:
		return value | IXGBE_RDRXCTL_DMAIDONE;
	case IXGBE_SECRXSTAT:
		return IXGBE_SECRXSTAT_RDY;
	case IXGBE_EERD:
		return value | IXGBE_EERD_DONE;
	case IXGBE_MSCA:
		return value & ~IXGBE_MSCA_COMMAND;
	case IXGBE_RAL(0):
		return 2; /* 02:00:00:00:00:00 */
	default:
		return value;
	}
}

static inline void null_write32(struct nicdev *dev, u32 reg, u32 value)
{
	to_null(dev)->reg[reg / 4] = value;
}

static inline int null_map(struct nicdev *dev, u64 iova, void *vaddr, size_t len, u32 perm)
{
	(void)dev, (void)iova, (void)vaddr, (void)len, (void)perm;
	return 0;
}

static inline int null_unmap(struct nicdev *dev, u64 iova, size_t len)
{
	(void)dev, (void)iova, (void)len;
	return 0;
}

static inline u16 null_config_read16(struct nicdev *dev, u32 offset)
{
	(void)dev, (void)offset;
	return 0;
}

static inline int null_config_write16(struct nicdev *dev, u32 offset, u16 value)
{
	(void)dev, (void)offset, (void)value;
	return 0;
}

static inline u64 null_now_ps(struct nicdev *dev)
{
	return to_null(dev)->now_ps;
}

static inline bool null_relax(struct nicdev *dev, u64 until_ps)
{
	to_null(dev)->now_ps = until_ps;
	return false;
}

static inline void null_close(struct nicdev *dev)
{
	free(to_null(dev));
}

/* Aborts without memory. nicdev_close() frees it. */
static inline struct nicdev *null_device_open(void)
{
	static const struct nicdev_ops ops = { .name = "null",
					       .read32 = null_read32,
					       .write32 = null_write32,
					       .dma_map = null_map,
					       .dma_unmap = null_unmap,
					       .config_read16 = null_config_read16,
					       .config_write16 = null_config_write16,
					       .now_ps = null_now_ps,
					       .relax = null_relax,
					       .close = null_close };
	struct null_device *n = calloc(1, sizeof(*n));

	BUG_ON(!n);
	nicdev_init(&n->dev, &ops, "null");
	n->dev.vendor = 0x8086;
	n->dev.device = 0x10fb;
	n->dev.range[0] = (struct nicdev_range){ 0, ~0ull >> 16 };
	n->dev.nr_ranges = 1;
	return &n->dev;
}

/* From now on registers are memory, as those of a mapped BAR are; before nicdev_close(), NULL. */
static inline void null_device_mapped(struct nicdev *dev, bool on)
{
	dev->bar0 = on ? (volatile u8 *)to_null(dev)->reg : NULL;
}

#endif
