/* SPDX-License-Identifier: MIT */
#include "skb/obj.h"

#include <errno.h>
#include <string.h>

static const struct obj_allocator *const allocators[] = { &obj_jemalloc, &obj_glibc, &obj_slub };
static unsigned int nr_nodes = 1;

const struct obj_allocator *obj_allocator = &obj_glibc;

int obj_init(const char *name, unsigned int nodes)
{
	bool apart;

	if (!nodes || nodes > SKB_NR_NODES)
		return -EINVAL;
	apart = mem_apart(MEM_SHELLS, MEM_HEADS, nodes);
	for (size_t i = 0; i < ARRAY_SIZE(allocators); i++) {
		int err;

		if (strcmp(allocators[i]->name, name))
			continue;
		if (apart && !allocators[i]->apart)
			return -ENOTSUP;
		if (apart && 2 * nodes > SKB_NR_NODES)
			return -E2BIG;
		err = allocators[i]->init(nodes);
		if (err)
			return err;
		obj_allocator = apart ? allocators[i]->apart : allocators[i];
		nr_nodes = nodes;
		return 0;
	}
	return -ENOENT;
}

unsigned int obj_nr_nodes(void)
{
	return nr_nodes;
}

size_t kmalloc_size_roundup(size_t size)
{
	if (!size || size > OBJ_MAX_SIZE)
		return 0;
	if (size <= 64)
		return 64;
	if (size > 128 && size <= 192)
		return 192;
	return 1UL << (64 - __builtin_clzl(size - 1));
}
