/* SPDX-License-Identifier: MIT */
#include "skb/node_mem.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int node_mem_bind(void *p, size_t size, unsigned int node, unsigned int nodes)
{
	unsigned long mask = 1UL << node;

	/* The kernel reads one bit less than it is told. */
	if (!syscall(SYS_mbind, p, size, MPOL_BIND, &mask, 8 * sizeof(mask) + 1, 0))
		return 0;
	if (nodes == 1 && (errno == ENOSYS || errno == EPERM))
		return 1;
	return -ENODEV;
}

void *node_mem_reserve(size_t size, size_t align, void **reservation, size_t *reserved)
{
	size_t all = size + 2 * align;
	void *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	*reservation = p;
	*reserved = all;
	return (void *)ALIGN((uintptr_t)p + 1, align);
}
