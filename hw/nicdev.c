/* SPDX-License-Identifier: MIT */
#include "hw/nicdev.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IOVA_FIRST (16ull << 20) /* below lies what old devices and firmware use */
#define HUGE_BYTES (2ull << 20)
#define STATUS_REG 0x00008
#define PS_PER_US  1000000ull
#define ALL_ONES   0xffffffffu

void nicdev_init(struct nicdev *dev, const struct nicdev_ops *ops, const char *name)
{
	memset(dev, 0, sizeof(*dev));
	dev->ops = ops;
	dev->page_bytes = 4096;
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	for (u32 i = 0; i < NICDEV_MAX_IRQS; i++)
		dev->irq_fd[i] = -1;
}

void nicdev_close(struct nicdev *dev)
{
	if (!dev)
		return;
	while (dev->nr_maps)
		nicdev_dma_unmap(dev, dev->map[dev->nr_maps - 1].iova);
	for (u32 i = 0; i < dev->nr_irqs; i++)
		if (dev->irq_fd[i] >= 0)
			close(dev->irq_fd[i]);
	dev->ops->close(dev);
}

/*
 * --- time
 * ----------------------------------------------------------------------------------------------
 */

u64 nicdev_monotonic_ps(struct nicdev *dev)
{
	struct timespec t;

	(void)dev;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec) * 1000u;
}

void nicdev_delay_us(struct nicdev *dev, u32 us)
{
	u64 until = nicdev_now_ps(dev) + us * PS_PER_US;

	while (nicdev_now_ps(dev) < until)
		nicdev_relax(dev, until);
}

bool nicdev_gone(struct nicdev *dev)
{
	return nicdev_read32(dev, STATUS_REG) == ALL_ONES;
}

int nicdev_poll(struct nicdev *dev, u32 reg, u32 mask, u32 value, u32 step_us, u32 timeout_us)
{
	for (u32 waited = 0;; waited += step_us) {
		u32 now = nicdev_read32(dev, reg);

		if (now == ALL_ONES && nicdev_gone(dev))
			return -ENODEV;
		if ((now & mask) == value)
			return 0;
		if (waited >= timeout_us)
			return -ETIMEDOUT;
		nicdev_delay_us(dev, step_us);
	}
}

/*
 * --- memory
 * ----------------------------------------------------------------------------------------------
 */

/* The lowest free LEN bytes at or above FROM; ~0: none. */
static u64 iova_find(const struct nicdev *dev, size_t len, u64 align)
{
	for (u32 i = 0; i < dev->nr_ranges; i++) {
		const struct nicdev_range *r = &dev->range[i];
		u64 at = ALIGN(max(r->first, (u64)IOVA_FIRST), align);

		for (u32 j = 0; j < dev->nr_maps; j++) {
			const struct nicdev_map *m = &dev->map[j];

			if (at < m->iova + m->len && m->iova < at + len)
				at = ALIGN(m->iova + m->len, align);
		}
		if (at >= r->first && at <= r->last && len - 1 <= r->last - at)
			return at;
	}
	return ~0ull;
}

static void map_insert(struct nicdev *dev, struct nicdev_map m)
{
	u32 i = dev->nr_maps++;

	for (; i && dev->map[i - 1].iova > m.iova; i--)
		dev->map[i] = dev->map[i - 1];
	dev->map[i] = m;
}

int nicdev_dma_map(struct nicdev *dev, void *vaddr, size_t len, u32 perm, u64 *iova, char *err,
		   size_t errlen)
{
	u64 at;
	int ret;

	if (!len || ((uintptr_t)vaddr | len) & (dev->page_bytes - 1)) {
		snprintf(err, errlen, "%s: %zu bytes at %p are not whole pages of %u", dev->name,
			 len, vaddr, dev->page_bytes);
		return -EINVAL;
	}
	if (dev->ops->dma_physical) {
		ret = dev->ops->dma_physical(dev, vaddr, len, &at);
		if (ret) {
			snprintf(err, errlen,
				 "%s: without an IOMMU %zu bytes must lie in one piece: reserve "
				 "huge "
				 "pages of that size (%s)",
				 dev->name, len, strerror(-ret));
			return ret;
		}
	} else {
		at = iova_find(dev, len, len >= HUGE_BYTES ? HUGE_BYTES : dev->page_bytes);
	}
	if (at == ~0ull || dev->nr_maps == NICDEV_MAX_MAPS) {
		snprintf(err, errlen,
			 "%s: no room for %zu bytes in %u usable IOVA ranges, %u mappings",
			 dev->name, len, dev->nr_ranges, dev->nr_maps);
		return -ENOSPC;
	}
	dev->why[0] = 0;
	ret = dev->ops->dma_map(dev, at, vaddr, len, perm);
	if (ret) {
		snprintf(err, errlen, "%s: mapping %zu bytes at IOVA 0x%llx: %s", dev->name, len,
			 (unsigned long long)at, dev->why[0] ? dev->why : strerror(-ret));
		return ret;
	}
	map_insert(dev, (struct nicdev_map){ at, vaddr, len, perm });
	*iova = at;
	return 0;
}

int nicdev_dma_unmap(struct nicdev *dev, u64 iova)
{
	for (u32 i = 0; i < dev->nr_maps; i++) {
		int ret;

		if (dev->map[i].iova != iova)
			continue;
		ret = dev->ops->dma_unmap(dev, iova, dev->map[i].len);
		memmove(&dev->map[i], &dev->map[i + 1], (--dev->nr_maps - i) * sizeof(dev->map[0]));
		return ret;
	}
	return -ENOENT;
}

u64 nicdev_iova(const struct nicdev *dev, const void *p, size_t len)
{
	for (u32 i = 0; i < dev->nr_maps; i++) {
		const struct nicdev_map *m = &dev->map[i];
		size_t at = (uintptr_t)p - (uintptr_t)m->vaddr;

		if (at < m->len && len <= m->len - at)
			return m->iova + at;
	}
	return 0;
}

int nicdev_arena_init(struct nicdev_arena *a, struct nicdev *dev, size_t bytes, char *err,
		      size_t errlen)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	int ret;

	memset(a, 0, sizeof(*a));
	bytes = ALIGN(bytes, (size_t)HUGE_BYTES);
	a->base = mmap(NULL, bytes, prot, flags | MAP_HUGETLB, -1, 0);
	a->huge = a->base != MAP_FAILED;
	if (!a->huge)
		a->base = mmap(NULL, bytes, prot, flags, -1, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		snprintf(err, errlen, "%s: no memory for %zu bytes of rings and buffers", dev->name,
			 bytes);
		return -ENOMEM;
	}
	memset(a->base, 0, bytes); /* before the device may look at it */
	ret = nicdev_dma_map(dev, a->base, bytes, NICDEV_DMA_READ | NICDEV_DMA_WRITE, &a->iova, err,
			     errlen);
	if (ret) {
		munmap(a->base, bytes);
		a->base = NULL;
		return ret;
	}
	a->dev = dev;
	a->bytes = bytes;
	return 0;
}

void nicdev_arena_exit(struct nicdev_arena *a)
{
	if (!a->base)
		return;
	nicdev_dma_unmap(a->dev, a->iova);
	munmap(a->base, a->bytes);
	a->base = NULL;
}

void *nicdev_arena_alloc(struct nicdev_arena *a, size_t len, size_t align, u64 *iova)
{
	size_t at = ALIGN(a->used, align);

	if (at > a->bytes || len > a->bytes - at)
		return NULL;
	a->used = at + len;
	*iova = a->iova + at;
	return a->base + at;
}

/*
 * --- interrupts and reset
 * ----------------------------------------------------------------------------------------------
 */

int nicdev_irq_enable(struct nicdev *dev, u32 nr)
{
	int ret;

	if (!nr || nr > NICDEV_MAX_IRQS || dev->nr_irqs)
		return -EINVAL;
	ret = dev->ops->irq_enable(dev, nr);
	if (!ret)
		dev->nr_irqs = nr;
	return ret;
}

bool nicdev_irq_pending(struct nicdev *dev, u32 vec)
{
	u64 count;

	return vec < dev->nr_irqs &&
	       read(dev->irq_fd[vec], &count, sizeof(count)) == (ssize_t)sizeof(count);
}

int nicdev_reset(struct nicdev *dev)
{
	return dev->ops->reset(dev);
}
