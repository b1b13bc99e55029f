/* SPDX-License-Identifier: MIT */
/*
 * The vfio-user protocol, version 0.1, as far as it is used: messages on a stream socket, each a
 * header and a body, file descriptors beside them. Numbers and layouts are those of its
 * specification; bodies of the device's commands are those of linux/vfio.h. Little endian.
 */
#ifndef HW_VFU_PROTO_H
#define HW_VFU_PROTO_H

#include "skb/compiler.h"

#define VFU_MAJOR 0
#define VFU_MINOR 1

#define VFU_MAX_DATA 4096 /* bytes of one region access */
#define VFU_MAX_BODY (VFU_MAX_DATA + 64)
#define VFU_MAX_FDS  64 /* beside one message */

enum vfu_command {
	VFU_VERSION = 1,
	VFU_DMA_MAP = 2,
	VFU_DMA_UNMAP = 3,
	VFU_GET_INFO = 4,
	VFU_GET_REGION_INFO = 5,
	VFU_GET_REGION_IO_FDS = 6,
	VFU_GET_IRQ_INFO = 7,
	VFU_SET_IRQS = 8,
	VFU_REGION_READ = 9,
	VFU_REGION_WRITE = 10,
	VFU_DMA_READ = 11, /* from the device to the one that has the memory */
	VFU_DMA_WRITE = 12,
	VFU_RESET = 13,
};

#define VFU_TYPE_MASK  0xfu
#define VFU_TYPE_REPLY 1u
#define VFU_NO_REPLY   (1u << 4)
#define VFU_ERROR      (1u << 5)

struct vfu_header {
	u16 id, command;
	u32 bytes; /* with the header */
	u32 flags;
	u32 error; /* an errno, with VFU_ERROR */
};

struct vfu_version {
	u16 major, minor;
	/* and JSON that ends in 0 */
};

struct vfu_dma_map {
	u32 argsz, flags;
	u64 offset, address, size;
};

#define VFU_DMA_MAP_READ  1u /* by the device */
#define VFU_DMA_MAP_WRITE 2u

struct vfu_dma_unmap {
	u32 argsz, flags;
	u64 address, size;
};

#define VFU_DMA_UNMAP_ALL 2u

struct vfu_device_info {
	u32 argsz, flags, nr_regions, nr_irqs;
};

struct vfu_region_info {
	u32 argsz, flags, index, cap_offset;
	u64 size, offset;
};

struct vfu_irq_info {
	u32 argsz, flags, index, count;
};

struct vfu_irq_set {
	u32 argsz, flags, index, start, count;
};

struct vfu_region_access {
	u64 offset;
	u32 region, count;
};

#endif
