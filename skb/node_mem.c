/* SPDX-License-Identifier: MIT */
#include "skb/node_mem.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OS_PAGE	   4096
#define QUERY_MAX  512 /* pages asked for at once */
#define RANGES_MAX 64 /* pools and sockets of one process */

#define NODE_N(kind) [kind] = { 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7 }
_Static_assert(SKB_NR_NODES == 8, "NODE_N has a bit for each");

#define INITIAL                                                                         \
	{                                                                               \
		.nr = SKB_NR_NODES,                                                     \
		.nodemask = { NODE_N(MEM_SHELLS), NODE_N(MEM_HEADS), NODE_N(MEM_PAGES), \
			      NODE_N(MEM_POOL), NODE_N(MEM_SOCKET) },                   \
	}

static struct mem_places now = INITIAL;

/* What mem_zalloc() has mapped. */
static struct mem_range {
	void *p; /* NULL: this entry is free */
	size_t size;
	enum mem_kind kind;
	unsigned int node;
} ranges[RANGES_MAX];

void mem_places_set(const struct mem_places *places)
{
	now = places ? *places : (struct mem_places)INITIAL;
}

u64 mem_nodemask(enum mem_kind kind, unsigned int node)
{
	return now.nodemask[kind][node];
}

bool mem_apart(enum mem_kind a, enum mem_kind b, unsigned int nodes)
{
	return memcmp(now.nodemask[a], now.nodemask[b], nodes * sizeof(now.nodemask[a][0]));
}

bool mem_by_kind(void)
{
	return now.by_kind;
}

bool mem_hugetlb(void)
{
	return now.hugetlb;
}

static struct mem_range *range_of(const void *p)
{
	for (unsigned int i = 0; i < RANGES_MAX; i++)
		if (ranges[i].p == p)
			return &ranges[i];
	return NULL;
}

static void *map_bound(size_t size, u64 nodemask)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (node_mem_bind(p, size, nodemask, now.nr) < 0) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

void *mem_zalloc(enum mem_kind kind, unsigned int node, size_t size)
{
	struct mem_range *range = range_of(NULL);
	void *p;

	if (!now.by_kind) {
		size = ALIGN(size, (size_t)SMP_CACHE_BYTES);
		p = aligned_alloc(SMP_CACHE_BYTES, size);
		return p ? memset(p, 0, size) : NULL;
	}
	size = ALIGN(size, (size_t)OS_PAGE);
	p = range ? map_bound(size, mem_nodemask(kind, node)) : NULL;
	if (!p)
		return NULL;
	*range = (struct mem_range){ p, size, kind, node };
	return memset(p, 0, size); /* so that all of it lies somewhere */
}

void mem_free(void *p)
{
	struct mem_range *range = p ? range_of(p) : NULL;

	if (!range) {
		free(p);
		return;
	}
	munmap(p, range->size);
	range->p = NULL;
}

void mem_walk(enum mem_kind kind, unsigned int node, mem_range_fn fn, void *ctx)
{
	for (unsigned int i = 0; i < RANGES_MAX; i++)
		if (ranges[i].p && ranges[i].kind == kind && ranges[i].node == node)
			fn(ctx, ranges[i].p, ranges[i].size);
}

int node_mem_bind(void *p, size_t size, u64 nodemask, unsigned int nodes)
{
	int mode = nodemask & (nodemask - 1) ? MPOL_INTERLEAVE : MPOL_BIND;

	/* The kernel reads one bit less than it is told. */
	if (!syscall(SYS_mbind, p, size, mode, &nodemask, 8 * sizeof(nodemask) + 1, 0))
		return 0;
	if (nodes == 1 && nodemask == 1 && (errno == ENOSYS || errno == EPERM))
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

int node_mem_count(const void *p, size_t size, struct node_mem_count *count)
{
	size_t nr = size / OS_PAGE;

	for (size_t done = 0, some; done < nr; done += some) {
		int status[QUERY_MAX], err;

		some = min(nr - done, (size_t)QUERY_MAX);
		err = query((const char *)p + done * OS_PAGE, some, status);
		if (err)
			return err;
		for (size_t i = 0; i < some; i++) {
			/* Nobody wrote there: no page at all, or the one page of zeroes that is everybody's. */
			if (status[i] == -ENOENT || status[i] == -EFAULT)
				count->untouched++;
			else if (status[i] < 0 || status[i] >= (int)ARRAY_SIZE(count->on))
				return status[i] < 0 ? status[i] : -ERANGE;
			else
				count->on[status[i]]++;
		}
	}
	return 0;
}

long node_mem_misplaced(const void *p, size_t size, u64 nodemask)
{
	struct node_mem_count count = { .untouched = 0 };
	int err = node_mem_count(p, size, &count);
	long misplaced = 0;

	if (err || count.untouched)
		return err ? err : -ENOENT;
	for (unsigned int node = 0; node < ARRAY_SIZE(count.on); node++)
		misplaced += nodemask >> node & 1 ? 0 : count.on[node];
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
