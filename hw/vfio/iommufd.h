/* SPDX-License-Identifier: MIT */
/*
 * What is used of iommufd and of VFIO's character device, for systems whose headers are older than
 * the kernel: numbers and layouts of the kernel's user interface, 6.6.
 */
#ifndef HW_VFIO_IOMMUFD_H
#define HW_VFIO_IOMMUFD_H

#include "skb/compiler.h"

#include <sys/ioctl.h>

#define HW_VFIO_DEVICE_BIND_IOMMUFD	 _IO(';', 118)
#define HW_VFIO_DEVICE_ATTACH_IOMMUFD_PT _IO(';', 119)
#define HW_IOMMU_IOAS_ALLOC		 _IO(';', 0x81)
#define HW_IOMMU_IOAS_IOVA_RANGES	 _IO(';', 0x84)
#define HW_IOMMU_IOAS_MAP		 _IO(';', 0x85)
#define HW_IOMMU_IOAS_UNMAP		 _IO(';', 0x86)

#define HW_IOMMU_IOAS_MAP_FIXED_IOVA (1u << 0)
#define HW_IOMMU_IOAS_MAP_WRITEABLE  (1u << 1)
#define HW_IOMMU_IOAS_MAP_READABLE   (1u << 2)

struct hw_vfio_bind_iommufd {
	u32 argsz, flags;
	s32 iommufd;
	u32 out_devid;
};

struct hw_vfio_attach_iommufd_pt {
	u32 argsz, flags, pt_id;
};

struct hw_iommu_ioas_alloc {
	u32 size, flags, out_ioas_id;
};

struct hw_iommu_iova_range {
	u64 start, last;
};

struct hw_iommu_ioas_iova_ranges {
	u32 size, ioas_id, num_iovas, reserved;
	u64 allowed_iovas, out_iova_alignment;
};

struct hw_iommu_ioas_map {
	u32 size, flags, ioas_id, reserved;
	u64 user_va, length, iova;
};

struct hw_iommu_ioas_unmap {
	u32 size, ioas_id;
	u64 iova, length;
};

#endif
