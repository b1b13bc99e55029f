/* SPDX-License-Identifier: MIT */
#include "skb/node_mem.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OS_PAGE	  4096
#define QUERY_MAX 512 /* pages asked for at once */

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

/* Where the NR pages at P, OS_PAGE bytes each, lie, into STATUS: 0 or a negative errno. */
static int query(const char *p, unsigned long nr, int *status)
{
	const void *pages[QUERY_MAX];

	for (unsigned long i = 0; i < nr; i++)
		pages[i] = p + i * OS_PAGE;
	/* Without nodes to move to, move_pages(2) only tells. */
	return syscall(SYS_move_pages, 0, nr, pages, NULL, status, 0) ? -errno : 0;
}

int node_mem_node(const void *p)
{
	int status,
		err = query((const char *)((uintptr_t)p & ~(uintptr_t)(OS_PAGE - 1)), 1, &status);

	return err ? err : status;
}

long node_mem_misplaced(const void *p, size_t size, unsigned int node)
{
	size_t nr = size / OS_PAGE;
	long misplaced = 0;

	for (size_t done = 0, some; done < nr; done += some) {
		int status[QUERY_MAX], err;

		some = min(nr - done, (size_t)QUERY_MAX);
		err = query((const char *)p + done * OS_PAGE, some, status);
		if (err)
			return err;
		for (size_t i = 0; i < some; i++) {
			if (status[i] < 0)
				return status[i];
			misplaced += (unsigned int)status[i] != node;
		}
	}
	return misplaced;
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
