/* SPDX-License-Identifier: MIT */
/*
 * The device seam: what a NIC driver needs of its device, whatever the device is.
 *
 *   registers    32 bits, at offsets of BAR 0
 *   memory       mapped for the device at IOVAs that come from the ranges which the IOMMU reports
 *   interrupts   one eventfd for each vector
 *   reset, clock, configuration space
 *
 * Behind it: VFIO (hw/vfio/) or the model of an 82599 (hw/model_82599/). The driver does not know
 * which. The clock is the device's: on the model it is virtual, and waiting is what makes it run.
 *
 * A device belongs to one thread, apart from registers of VFIO devices: on those every CPU may
 * write the tail of a queue that is its own.
 */
#ifndef HW_NICDEV_H
#define HW_NICDEV_H

#include "skb/compiler.h"

#define NICDEV_MAX_RANGES 16
#define NICDEV_MAX_MAPS	  64
#define NICDEV_MAX_IRQS	  64

#define NICDEV_DMA_READ	 1u /* the device may read */
#define NICDEV_DMA_WRITE 2u /* the device may write */

/* Configuration space, as far as it is used. */
#define PCI_CFG_VENDOR	   0x00
#define PCI_CFG_DEVICE	   0x02
#define PCI_CFG_COMMAND	   0x04
#define PCI_COMMAND_MEM	   0x2
#define PCI_COMMAND_MASTER 0x4

struct nicdev;

/* The slow path: each is called with arguments that nicdev.c has checked. */
struct nicdev_ops {
	const char *name;
	u32 (*read32)(struct nicdev *dev, u32 reg);
	void (*write32)(struct nicdev *dev, u32 reg, u32 value);
	int (*dma_map)(struct nicdev *dev, u64 iova, void *vaddr, size_t len, u32 perm);
	int (*dma_unmap)(struct nicdev *dev, u64 iova, size_t len);
	/* Without an IOMMU: where memory lies is where the device sees it. NULL: there is one. */
	int (*dma_physical)(struct nicdev *dev, void *vaddr, size_t len, u64 *iova);
	int (*irq_enable)(struct nicdev *dev, u32 nr); /* fills irq_fd[0] to irq_fd[nr - 1] */
	int (*reset)(struct nicdev *dev);
	u16 (*config_read16)(struct nicdev *dev, u32 offset);
	int (*config_write16)(struct nicdev *dev, u32 offset, u16 value);
	u64 (*now_ps)(struct nicdev *dev);
	bool (*relax)(struct nicdev *dev, u64 until_ps);
	void (*close)(struct nicdev *dev);
};

struct nicdev_range {
	u64 first, last;
};

struct nicdev_map {
	u64 iova;
	char *vaddr;
	size_t len;
	u32 perm;
};

struct nicdev {
	const struct nicdev_ops *ops;
	volatile u8 *bar0; /* NULL: registers go through ops */
	char name[32];
	u16 vendor, device;
	u32 page_bytes; /* the least that can be mapped */
	struct nicdev_range range[NICDEV_MAX_RANGES]; /* usable IOVAs, ascending */
	u32 nr_ranges;
	struct nicdev_map map[NICDEV_MAX_MAPS]; /* by IOVA, ascending */
	u32 nr_maps;
	int irq_fd[NICDEV_MAX_IRQS]; /* -1: none */
	u32 nr_irqs;
	char why[240]; /* a backend's own sentence about the mapping that it refused; "" */
};

/* DEV with the operations OPS and no mapping; for backends. */
void nicdev_init(struct nicdev *dev, const struct nicdev_ops *ops, const char *name);

/* Unmaps what is mapped, stops the interrupts and frees the backend. NULL: nothing. */
void nicdev_close(struct nicdev *dev);

/*
 * --- registers
 * ----------------------------------------------------------------------------------------------
 */

static __always_inline u32 nicdev_read32(struct nicdev *dev, u32 reg)
{
	if (dev->bar0)
		return *(volatile u32 *)(dev->bar0 + reg);
	return dev->ops->read32(dev, reg);
}

/* Posted. What the device is to see in memory is ordered before it by the caller: dma_wmb(). */
static __always_inline void nicdev_write32(struct nicdev *dev, u32 reg, u32 value)
{
	if (dev->bar0)
		*(volatile u32 *)(dev->bar0 + reg) = value;
	else
		dev->ops->write32(dev, reg, value);
}

/*
 * Stores to memory before the doorbell that announces them. (Loads of what the device writes are
 * acquires.) x86 keeps the order by itself: only the compiler has to.
 */
#if defined(__x86_64__)
#define dma_wmb() __asm__ volatile("" ::: "memory")
#elif defined(__aarch64__)
#define dma_wmb() __asm__ volatile("dmb oshst" ::: "memory")
#else
#define dma_wmb() __sync_synchronize()
#endif

static __always_inline u16 nicdev_config_read16(struct nicdev *dev, u32 offset)
{
	return dev->ops->config_read16(dev, offset);
}

/* 0, or a negative errno if configuration space cannot be written. */
static __always_inline int nicdev_config_write16(struct nicdev *dev, u32 offset, u16 value)
{
	return dev->ops->config_write16(dev, offset, value);
}

/*
 * --- time
 * ----------------------------------------------------------------------------------------------
 */

static __always_inline u64 nicdev_now_ps(struct nicdev *dev)
{
	return dev->ops->now_ps(dev);
}

/* now_ps() of a device in real time: CLOCK_MONOTONIC. DEV is not looked at. */
u64 nicdev_monotonic_ps(struct nicdev *dev);

/*
 * Lets time pass, up to UNTIL_PS at most: the model runs its next event, hardware runs anyway. What
 * a loop calls that polls memory. False if the device will do nothing until then.
 */
static __always_inline bool nicdev_relax(struct nicdev *dev, u64 until_ps)
{
	return dev->ops->relax(dev, until_ps);
}

/* Waits US microseconds of the device's clock. */
void nicdev_delay_us(struct nicdev *dev, u32 us);

/*
 * Waits until the bits MASK of REG read as VALUE, looking every STEP_US, for TIMEOUT_US. 0;
 * -ETIMEDOUT; -ENODEV if the device is gone (all bits of STATUS read as one).
 */
int nicdev_poll(struct nicdev *dev, u32 reg, u32 mask, u32 value, u32 step_us, u32 timeout_us);

/* True if the device answers no more: surprise removal, D3, memory decoding off. */
bool nicdev_gone(struct nicdev *dev);

/*
 * --- memory
 * ----------------------------------------------------------------------------------------------
 */

/*
 * Maps LEN bytes at VADDR (both multiples of page_bytes) for the device and gives the IOVA in
 * *IOVA: the lowest that is free in the reported ranges, from 16 MB on, aligned to 2 MB if LEN is
 * that much. 0; -EINVAL for unaligned memory; -ENOSPC without such a place, or with
 * NICDEV_MAX_MAPS mappings; what the backend says (-ENOMEM: the limit on locked memory); each with
 * a sentence in ERR.
 */
int nicdev_dma_map(struct nicdev *dev, void *vaddr, size_t len, u32 perm, u64 *iova, char *err,
		   size_t errlen);

/* The mapping that begins at IOVA. 0 or -ENOENT. The device does not use it any more. */
int nicdev_dma_unmap(struct nicdev *dev, u64 iova);

/* Where the device sees the LEN bytes at P; 0 if they are not all in one mapping. */
u64 nicdev_iova(const struct nicdev *dev, const void *p, size_t len);

/* An arena of memory that is mapped for the device in one piece, for rings and buffers. */
struct nicdev_arena {
	struct nicdev *dev;
	char *base;
	size_t bytes, used;
	u64 iova;
	bool huge;
};

/*
 * BYTES of zeroed memory, rounded up to 2 MB, from huge pages if the machine has some free, mapped
 * for reading and writing. 0, -ENOMEM, or what nicdev_dma_map() returns, with a sentence in ERR.
 */
int nicdev_arena_init(struct nicdev_arena *a, struct nicdev *dev, size_t bytes, char *err,
		      size_t errlen);

/* Unmaps and frees it. The device does not use it any more. */
void nicdev_arena_exit(struct nicdev_arena *a);

/* LEN bytes aligned to ALIGN (a power of two); where the device sees them in *IOVA. NULL if full. */
void *nicdev_arena_alloc(struct nicdev_arena *a, size_t len, size_t align, u64 *iova);

/*
 * --- interrupts and reset
 * ----------------------------------------------------------------------------------------------
 */

/*
 * NR vectors, each with an eventfd in irq_fd[]. Once, for all that will be used. 0; -EINVAL for more
 * than the device has; -EOPNOTSUPP if it has none that can be used.
 */
int nicdev_irq_enable(struct nicdev *dev, u32 nr);

/* True if vector VEC has fired since the last call. Does not wait. */
bool nicdev_irq_pending(struct nicdev *dev, u32 vec);

/* Function-level reset. 0; -EOPNOTSUPP if the device has none. */
int nicdev_reset(struct nicdev *dev);

#endif
