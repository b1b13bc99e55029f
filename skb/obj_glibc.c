/* SPDX-License-Identifier: MIT */
/*
 * Objects from glibc's malloc, without placement: what AddressSanitizer and valgrind can see into.
 *
 * malloc() aligns to 16 and aligned_alloc() goes round its thread cache, so objects are aligned by hand: 64 bytes more
 * are asked for, and the word before the object keeps what malloc() returned. The cache is the thread's, not the CPU
 * slot's.
 */
#include "skb/obj.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

/*
 * What malloc() has got from the kernel it keeps, for the whole process: else freeing a megabyte gives it back, and the
 * next allocations are timed with a page fault each. No failure is possible with these values.
 */
static int glibc_init(unsigned int nodes)
{
	if (nodes > 1 || mem_by_kind())
		return -ENOTSUP;
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_THRESHOLD, 16 << 20);
	return 0;
}

static int glibc_cpu_attach(unsigned int slot)
{
	(void)slot;
	return 0;
}

static void *glibc_alloc(size_t size, unsigned int node)
{
	char *raw = malloc(size + SMP_CACHE_BYTES);
	void **obj;

	(void)node;
	if (unlikely(!raw))
		return NULL;
	/* At least 16 bytes lie below the object, since RAW is a multiple of 16. */
	obj = (void **)(((uintptr_t)raw + SMP_CACHE_BYTES) & ~(uintptr_t)(SMP_CACHE_BYTES - 1));
	obj[-1] = raw;
	return obj;
}

static void glibc_free(void *obj, size_t size, unsigned int node)
{
	(void)size, (void)node;
	free(((void **)obj)[-1]);
}

const struct obj_allocator obj_glibc = {
	.name = "glibc",
	.init = glibc_init,
	.cpu_attach = glibc_cpu_attach,
	.alloc = glibc_alloc,
	.free = glibc_free,
	.shell_alloc = glibc_alloc,
	.shell_free = glibc_free,
};
