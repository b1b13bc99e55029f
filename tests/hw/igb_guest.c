/* SPDX-License-Identifier: MIT */
/*
 * The only program of a guest that has an IOMMU and QEMU's 82576 ("igb"): sends the packets of
 * same_packets.h as descriptors of our driver's. The 82576 has its registers elsewhere, but the
 * advanced descriptors, RS and DD of the 82599. tests/hw/igb.py boots it.
 */
#include "hw/vfio/vfio.h"
#include "guest.h"
#include "same_packets.h"

#include <errno.h>
#include <stdlib.h>

/* Registers of the 82576 (its datasheet, 8.12). */
#define IGB_CTRL	  0x00000
#define IGB_CTRL_SLU	  (1u << 6)
#define IGB_TCTL	  0x00400
#define IGB_TCTL_EN_PSP	  (1u << 1 | 1u << 3)
#define IGB_TDBAL	  0x0e000
#define IGB_TDBAH	  0x0e004
#define IGB_TDLEN	  0x0e008
#define IGB_TDH		  0x0e010
#define IGB_TDT		  0x0e018
#define IGB_TXDCTL	  0x0e028
#define IGB_TXDCTL_ENABLE (1u << 25)
#define RING		  512

static struct ixgbe ix;

static bool send_all(struct nicdev *dev)
{
	struct ixgbe_txq *q = &ix.txq[0];
	struct nicdev_arena a;
	char err[400] = "";
	u64 payload_iova;
	u8 *payload;

	/* In huge pages: QEMU drops buffers that are not in one piece of the guest's memory. */
	if (!check(!nicdev_arena_init(&a, dev, 4 << 20, err, sizeof(err)), "map", "%s", err) ||
	    !check(a.huge, "huge pages", "none free"))
		return false;
	ix.dev = dev;
	ix.cfg = ixgbe_default_config;
	*q = (struct ixgbe_txq){ .ix = &ix,
				 .nr = RING,
				 .eop = calloc(RING, sizeof(u32)),
				 .last_lo = IXGBE_TXD_EOP | IXGBE_TXD_RS,
				 .room = RING - 1 };
	q->desc = nicdev_arena_alloc(&a, RING * sizeof(*q->desc), 128, &q->desc_iova);
	q->headers = nicdev_arena_alloc(&a, RING * IXGBE_HEADER_BYTES, 64, &q->headers_iova);
	payload = nicdev_arena_alloc(&a, SAME_BYTES, 4096, &payload_iova);
	same_fill(payload);
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	nicdev_write32(dev, IGB_CTRL, nicdev_read32(dev, IGB_CTRL) | IGB_CTRL_SLU);
	nicdev_write32(dev, IGB_TDBAL, q->desc_iova);
	nicdev_write32(dev, IGB_TDBAH, q->desc_iova >> 32);
	nicdev_write32(dev, IGB_TDLEN, RING * sizeof(*q->desc));
	nicdev_write32(dev, IGB_TDH, 0);
	nicdev_write32(dev, IGB_TDT, 0);
	nicdev_write32(dev, IGB_TXDCTL, IGB_TXDCTL_ENABLE);
	nicdev_write32(dev, IGB_TCTL, IGB_TCTL_EN_PSP);
	for (u32 i = 0; i < SAME_PACKETS; i++) {
		u32 ms = 0;

		if (!check(!same_post(q, i, payload_iova, err, sizeof(err)), "post", "%s", err))
			return false;
		/* What ixgbe_tx_kick() does, but for where the tail is. */
		q->tail = q->next_to_use;
		q->posted += q->queued;
		q->queued = 0;
		dma_wmb();
		nicdev_write32(dev, IGB_TDT, q->tail);
		for (; ms < 2000 && !ixgbe_tx_clean(q, 1); ms++)
			nicdev_delay_us(dev, 1000);
		if (ms == 2000)
			return check(false, "DD", "packet %u: TDH %u TDT %u", i,
				     nicdev_read32(dev, IGB_TDH), q->tail);
	}
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) & ~PCI_COMMAND_MASTER);
	nicdev_arena_exit(&a);
	return check(true, "sent", " ");
}

void guest_test(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	struct nicdev *dev;
	char err[700] = "";

	if (!guest_bind(bdf))
		return;
	if (!check(!vfio_open(&vfio_this_machine, &env, bdf, VFIO_ANY, false, &dev, err,
			      sizeof(err)),
		   "open", "%s", err))
		return;
	check(dev->vendor == 0x8086 && dev->device == 0x10c9, "identity", "%04x:%04x", dev->vendor,
	      dev->device);
	send_all(dev);
	nicdev_close(dev);
}
