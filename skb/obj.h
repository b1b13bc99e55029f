/* SPDX-License-Identifier: MIT */
/*
 * Object memory: sk_buff shells, fclone pairs, heads and extensions, from one allocator at a time, chosen before the
 * first allocation.
 *
 * Every object is 64-byte aligned and its usable size is exactly the size asked for, which kmalloc_size_roundup()
 * makes a kmalloc bucket, so that the kernel's ksize() arithmetic holds. obj_free() gets back the size and the node
 * that the object was allocated with: origin is recorded by the caller, never guessed.
 *
 *             obj_alloc   obj_free
 * obj_alloc       -           -      on different CPUs: safe at once. One CPU is one thread, so never concurrent there.
 * obj_free        -           -
 *
 *   jemalloc  an arena a node, a cache for each CPU slot and node; memory bound to the node (mbind)
 *   glibc     malloc, no placement: what the sanitizers can see into
 *   slub      a model of the kernel's per-CPU slabs (obj_slub.c), whose remote free pays its compare-and-exchange
 *
 * Shells, fclone pairs and extensions are asked for by shell_alloc(), all else by obj_alloc(): where the two lie on
 * different nodes of the machine (skb/node_mem.h), obj_init() chooses functions that keep them apart.
 *
 * On a machine whose kernel binds no memory, jemalloc and slub run unbound if one node is asked for.
 */
#ifndef SKB_OBJ_H
#define SKB_OBJ_H

#include "skb/cpu.h"
#include "skb/node_mem.h"
#include "skb/trace.h"

struct obj_allocator {
	const char *name;
	/* No CPU runs and no object is alive: NODES memory nodes will be used. 0 or a negative errno. */
	int (*init)(unsigned int nodes);
	/* The calling thread becomes CPU SLOT. Idempotent for a slot. 0 or a negative errno. */
	int (*cpu_attach)(unsigned int slot);
	/* NULL when memory is short; SIZE is at least 1 and at most OBJ_MAX_SIZE. */
	void *(*alloc)(size_t size, unsigned int node);
	void (*free)(void *obj, size_t size, unsigned int node);
	/* The same for shells. */
	void *(*shell_alloc)(size_t size, unsigned int node);
	void (*shell_free)(void *obj, size_t size, unsigned int node);
	/*
	 * Calls FN with each stretch that holds objects of KIND (MEM_SHELLS, MEM_HEADS) and NODE, among others if these
	 * lie with them; parts may be untouched. No CPU runs. NULL: it is not known.
	 */
	void (*walk)(enum mem_kind kind, unsigned int node, mem_range_fn fn, void *ctx);
	/* The one with this name that keeps shells apart; NULL: it cannot. */
	const struct obj_allocator *apart;
};

#define OBJ_MAX_SIZE ((size_t)256 << 10)

extern const struct obj_allocator obj_jemalloc, obj_glibc, obj_slub;
extern const struct obj_allocator
	*obj_allocator; /* the chosen one; never NULL, glibc until chosen */

/*
 * Chooses the allocator by NAME for a process of NODES memory nodes (1 to SKB_NR_NODES). To be called before any
 * skb_cpu_attach(); again only while no object is alive and no other CPU runs, and then every CPU attaches anew.
 * 0; -EINVAL for a number of nodes out of range; -ENOENT for an unknown name; or what the allocator's init said
 * (-ENODEV: a node that the machine does not have; -ENOTSUP: glibc and more than one node, or places told by kind;
 * -EBUSY: jemalloc's memory lies elsewhere by now; -E2BIG: more than SKB_NR_NODES places; -ENOMEM). After an error the
 * allocator is the one before, to be initialised again before use if it has the same name.
 */
int obj_init(const char *name, unsigned int nodes);

/* The nodes that the last successful obj_init() was told of; 1 before. */
unsigned int obj_nr_nodes(void);

static __always_inline void *obj_alloc(size_t size, unsigned int node)
{
	void *p = obj_allocator->alloc(size, node);

	if (likely(p))
		skb_event(SKB_EV_OBJ_ALLOC, p, size);
	return p;
}

static __always_inline void obj_free(void *obj, size_t size, unsigned int node)
{
	skb_event(SKB_EV_OBJ_FREE, obj, size);
	obj_allocator->free(obj, size, node);
}

/* The same for the shell of an sk_buff, a pair of them, or extensions. */
static __always_inline void *shell_alloc(size_t size, unsigned int node)
{
	void *p = obj_allocator->shell_alloc(size, node);

	if (likely(p))
		skb_event(SKB_EV_OBJ_ALLOC, p, size);
	return p;
}

static __always_inline void shell_free(void *obj, size_t size, unsigned int node)
{
	skb_event(SKB_EV_OBJ_FREE, obj, size);
	obj_allocator->shell_free(obj, size, node);
}

/*
 * The bucket that kmalloc would take for SIZE bytes: 64, 128, 192, 256, 512 and on by powers of two to OBJ_MAX_SIZE.
 * The kernel's buckets of 8 to 32 and of 96 bytes are left out, since an object here begins a cache line. 0 if SIZE is 0
 * or beyond OBJ_MAX_SIZE.
 */
size_t kmalloc_size_roundup(size_t size);

#endif
