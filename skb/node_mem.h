/* SPDX-License-Identifier: MIT */
/*
 * Memory that lies on chosen nodes of the machine: what the page allocator, the object allocators, pools and sockets
 * build on.
 *
 * The model's nodes (numa_node_id(), zones) are numbered from 0 and are not the machine's. Where each kind of memory of
 * each of them lies on the machine is set here once, before anything is allocated, so that no operation asks for it.
 * Until it is set, node N of the model is node N of the machine, for all kinds.
 *
 * All functions but node_mem_*() are for the thread that sets a program up; these are any thread's.
 */
#ifndef SKB_NODE_MEM_H
#define SKB_NODE_MEM_H

#include "skb/cpu.h"

/* What may have nodes of its own. */
enum mem_kind {
	MEM_SHELLS, /* sk_buffs, fclone pairs, extensions: what the kernel has kmem_caches for */
	MEM_HEADS, /* heads from kmalloc and its slab for small ones */
	MEM_PAGES, /* pages and their struct pages; heads that are fragments of pages, too */
	MEM_POOL, /* a page_pool, its ring and its pages */
	MEM_SOCKET, /* a socket and the state around it */
	NR_MEM_KINDS
};

/* The machine's nodes as bits; of several the kernel interleaves pages. */
struct mem_places {
	unsigned int nr; /* nodes of the model: 1 to SKB_NR_NODES */
	u64 nodemask[NR_MEM_KINDS][SKB_NR_NODES]; /* none of the first NR empty */
	bool by_kind; /* pools and sockets lie there, too; else malloc() has them */
	bool hugetlb; /* pages come from free huge pages, or page_alloc_init() fails */
};

/*
 * From now on memory lies as in PLACES, which is copied; NULL: as at the start. To be called before obj_init() and
 * page_alloc_init(), while nothing of any kind is allocated.
 */
void mem_places_set(const struct mem_places *places);

/* Where KIND of NODE lies. */
u64 mem_nodemask(enum mem_kind kind, unsigned int node);

/* True if A and B of one of the first NODES nodes lie apart. */
bool mem_apart(enum mem_kind a, enum mem_kind b, unsigned int nodes);

bool mem_by_kind(void);
bool mem_hugetlb(void);

/*
 * SIZE zeroed bytes, from the start of a cache line, for mem_free(): of KIND and NODE where places are told by kind, from
 * malloc() otherwise. NULL: no memory, or it cannot be bound.
 */
void *mem_zalloc(enum mem_kind kind, unsigned int node, size_t size);

/* P is from mem_zalloc(), or NULL. */
void mem_free(void *p);

typedef void (*mem_range_fn)(void *ctx, const void *p, size_t size);

/* Calls FN with each stretch that mem_zalloc() has out, bound, for KIND and NODE. */
void mem_walk(enum mem_kind kind, unsigned int node, mem_range_fn fn, void *ctx);

/*
 * Binds the SIZE bytes at P (both multiples of 4096, mapped, not yet touched) to the nodes in NODEMASK, interleaved if
 * these are several, of a program that uses NODES. 0: they are bound. 1: this kernel binds nothing (no NUMA support, or
 * a sandbox that forbids mbind), which is no harm where NODES is 1 and node 0 is asked for. -ENODEV: the machine has no
 * such node with memory that this process may use, or nothing can be bound.
 */
int node_mem_bind(void *p, size_t size, u64 nodemask, unsigned int nodes);

/*
 * The node that the byte at P lies on, as the kernel tells it. -ENOENT: nobody has touched its page
 * yet; another negative errno: this kernel does not tell. A system call.
 */
int node_mem_node(const void *p);

/* Pages of 4096 bytes, as bytes are bound, by the node that they lie on; zeroed before the first count. */
struct node_mem_count {
	long on[64];
	long untouched;
};

/* Adds the SIZE bytes at P to COUNT. 0, or a negative errno: this kernel does not tell. A system call for each 512. */
int node_mem_count(const void *p, size_t size, struct node_mem_count *count);

/*
 * How many of the pages (of 4096 bytes) in the SIZE bytes at P, all touched, lie on a node that is not in NODEMASK. A
 * negative errno: this kernel does not tell, or one was not touched (-ENOENT). A system call for each 512.
 */
long node_mem_misplaced(const void *p, size_t size, u64 nodemask);

/*
 * Reserves SIZE bytes of address space, aligned to ALIGN (a power of two, at least 4096), with
 * inaccessible memory on both sides so that no other mapping grows into them. The bytes become
 * usable by mprotect() or a fixed mmap(). NULL when there is no room. *RESERVATION and *RESERVED
 * are what munmap() must get.
 */
void *node_mem_reserve(size_t size, size_t align, void **reservation, size_t *reserved);

#endif
