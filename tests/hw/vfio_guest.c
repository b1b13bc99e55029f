/* SPDX-License-Identifier: MIT */
/*
 * The only program of a guest that has an IOMMU and a network card of QEMU's (82574, "e1000e"):
 * proves hw/vfio on a real kernel, down to DMA and an interrupt. tests/hw/vfio_guest.py boots it.
 *
 * Says "ok NAME" or "FAILED NAME: why" for each check on the console, and "end N failed".
 */
#include "hw/vfio/vfio.h"
#include "guest.h"

#include <errno.h>

/* Registers of the 82574 (its datasheet, 10.1). */
#define E1000_CTRL   0x00000
#define E1000_STATUS 0x00008
#define E1000_ICS    0x000c8
#define E1000_IMS    0x000d0
#define E1000_IMC    0x000d8
#define E1000_IVAR   0x000e4
#define E1000_TCTL   0x00400
#define E1000_TDBAL  0x03800
#define E1000_TDBAH  0x03804
#define E1000_TDLEN  0x03808
#define E1000_TDH    0x03810
#define E1000_TDT    0x03818
#define ICS_OTHER    (1u << 24)
#define THROTTLE_US  200000 /* 128 us as QEMU has it, on a host that is late */

static void test_dma(struct nicdev *dev)
{
	struct nicdev_arena a;
	char err[400] = "";
	u64 ring_iova, frame_iova;
	volatile u64 *ring;
	u8 *frame;

	if (!check(!nicdev_arena_init(&a, dev, 4096, err, sizeof(err)), "map", "%s", err))
		return;
	check(a.iova == 16 << 20, "iova", "0x%llx", (unsigned long long)a.iova);
	ring = nicdev_arena_alloc(&a, 128, 128, &ring_iova);
	frame = nicdev_arena_alloc(&a, 2048, 64, &frame_iova);
	memset(frame, 0xff, 64);
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	nicdev_write32(dev, E1000_CTRL, nicdev_read32(dev, E1000_CTRL) | 1u << 6); /* link up */
	nicdev_write32(dev, E1000_TDBAL, ring_iova);
	nicdev_write32(dev, E1000_TDBAH, ring_iova >> 32);
	nicdev_write32(dev, E1000_TDLEN, 128);
	nicdev_write32(dev, E1000_TDH, 0);
	nicdev_write32(dev, E1000_TDT, 0);
	nicdev_write32(dev, E1000_TCTL, 1u << 1 | 1u << 3);
	/* A legacy descriptor: 64 bytes, EOP, IFCS, RS. Its DD bit is a write of the device's. */
	ring[0] = frame_iova;
	ring[1] = 64 | 0x0bull << 24;
	dma_wmb();
	nicdev_write32(dev, E1000_TDT, 1);
	for (u32 ms = 0; ms < 2000 && !(ring[1] >> 32 & 1); ms++)
		nicdev_delay_us(dev, 1000);
	check(ring[1] >> 32 & 1, "DMA both ways", "TDH %u, descriptor %016llx",
	      nicdev_read32(dev, E1000_TDH), (unsigned long long)ring[1]);

	/* No DMA any more before its memory goes. */
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) & ~PCI_COMMAND_MASTER);
	nicdev_arena_exit(&a);
	check(!dev->nr_maps, "unmap", "%u mappings", dev->nr_maps);
}

static void test_irq(struct nicdev *dev)
{
	int ret = nicdev_irq_enable(dev, 5);

	if (!check(!ret, "vectors", "%s", strerror(-ret)))
		return;
	/* A message of an interrupt is a write of the device's, too. */
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	check(!nicdev_irq_pending(dev, 4), "quiet", "an interrupt before there is a cause");
	nicdev_write32(dev, E1000_IVAR, 0x8u << 16 | 4u << 16); /* other causes: vector 4 */
	nicdev_write32(dev, E1000_IMS, ICS_OTHER);
	nicdev_write32(dev, E1000_ICS, ICS_OTHER);
	for (u32 ms = 0; ms < 2000; ms++) {
		if (nicdev_irq_pending(dev, 4)) {
			check(true, "interrupt", " ");
			/*
			 * QEMU's moderation timer of the vector, which cannot be switched off,
			 * aborts QEMU if MSI-X is off when it ends: e1000e_core.c, "assertion
			 * msix_enabled() failed".
			 */
			nicdev_write32(dev, E1000_IMC, ~0u);
			nicdev_delay_us(dev, THROTTLE_US);
			return;
		}
		nicdev_delay_us(dev, 1000);
	}
	check(false, "interrupt", "none on vector 4 within 2 s");
}

void guest_test(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	struct sysfs_port port;
	struct nicdev *dev, *second;
	char path[160], err[700] = "";
	u32 last = 0;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", bdf);
	check(!write_text(path, "vfio-pci"), "override", "%s", strerror(errno));
	check(vfio_open(&vfio_this_machine, &env, bdf, VFIO_ANY, false, &dev, err, sizeof(err)) ==
		      -EBUSY,
	      "refused before it is bound", "%s", err);
	check(!write_text("/sys/bus/pci/drivers_probe", bdf), "probe", "%s", strerror(errno));
	check(!sysfs_read_port(&env, bdf, &port, err, sizeof(err)) &&
		      !strcmp(port.driver, "vfio-pci") && port.group >= 0,
	      "bound", "driver '%s', group %d", port.driver, port.group);
	check(vfio_open(&vfio_this_machine, &env, bdf, VFIO_CDEV, false, &dev, err, sizeof(err)) <
			      0 &&
		      strstr(err, "--vfio group"),
	      "no character device here", "%s", err);
	if (!check(!vfio_open(&vfio_this_machine, &env, bdf, VFIO_ANY, false, &dev, err,
			      sizeof(err)),
		   "open", "%s", err))
		return;
	check(dev->vendor == 0x8086 && dev->device == 0x10d3, "identity", "%04x:%04x", dev->vendor,
	      dev->device);
	check(!nicdev_gone(dev), "STATUS", "0x%08x", nicdev_read32(dev, E1000_STATUS));
	for (u32 i = 0; i < dev->nr_ranges; i++)
		printf("note: IOVAs %llx to %llx\n", (unsigned long long)dev->range[i].first,
		       (unsigned long long)dev->range[i].last);
	/* The window of the interrupt messages is no usable IOVA. */
	for (u32 i = 0; i < dev->nr_ranges; i++)
		last |= dev->range[i].first <= 0xfee00000 && dev->range[i].last >= 0xfee00000;
	check(dev->nr_ranges && !last, "ranges", "%u of them", dev->nr_ranges);
	check(vfio_open(&vfio_this_machine, &env, bdf, VFIO_GROUP, false, &second, err,
			sizeof(err)) == -EBUSY &&
		      strstr(err, "another process"),
	      "busy", "%s", err);
	check(nicdev_reset(dev) == 0, "reset", "it is told to have one");
	test_dma(dev);
	test_irq(dev);
	nicdev_close(dev);
	for (u32 i = 0; i < 5; i++) {
		if (vfio_open(&vfio_this_machine, &env, bdf, VFIO_ANY, false, &dev, err,
			      sizeof(err))) {
			check(false, "open again", "%s", err);
			return;
		}
		nicdev_close(dev);
	}
	check(true, "open again", " ");
}
