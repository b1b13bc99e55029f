/* SPDX-License-Identifier: MIT */
/* Memory that lies on one node of the machine: what the page allocator and the object allocators
 * build on. */
#ifndef SKB_NODE_MEM_H
#define SKB_NODE_MEM_H

#include "skb/compiler.h"

/*
 * Binds the SIZE bytes at P (both multiples of 4096, mapped, not yet touched) to node NODE of a
 * program that uses NODES. 0: they are bound. 1: this kernel binds nothing (no NUMA support, or a
 * sandbox that forbids mbind), which is no harm where NODES is 1. -ENODEV: the machine has no such
 * node with memory that this process may use, or NODES is more than 1 and nothing can be bound. Any
 * thread.
 */
int node_mem_bind(void *p, size_t size, unsigned int node, unsigned int nodes);

/*
 * The node that the byte at P lies on, as the kernel tells it. -ENOENT: nobody has touched its page
 * yet; another negative errno: this kernel does not tell. Any thread; a system call.
 */
int node_mem_node(const void *p);

/*
 * How many of the pages (of 4096 bytes, as bytes are bound) in the SIZE bytes at P, all touched, lie on another node than
 * NODE. A negative errno: this kernel does not tell, or one was not touched. Any thread; a system call for each 512.
 */
long node_mem_misplaced(const void *p, size_t size, unsigned int node);

/*
 * Reserves SIZE bytes of address space, aligned to ALIGN (a power of two, at least 4096), with
 * inaccessible memory on both sides so that no other mapping grows into them. The bytes become
 * usable by mprotect() or a fixed mmap(). NULL when there is no room. *RESERVATION and *RESERVED
 * are what munmap() must get.
 */
void *node_mem_reserve(size_t size, size_t align, void **reservation, size_t *reserved);

#endif
