/* SPDX-License-Identifier: MIT */
/*
 * Objects from a model of the kernel's slab allocator.
 *
 * Kernel: mm/slub.c, 6.12. A CPU allocates from its current slab: it pops a list that only it sees, without a LOCK
 * prefix, and pushes there what it frees of that slab. Any other free goes to the slab of the object itself, by one
 * compare-and-exchange on the slab's word, which holds its own free list, the objects in use and "frozen" (some CPU's
 * current slab). When a CPU's list runs dry, it takes the whole list of its slab's word, then a slab of its partial list,
 * then slabs of the node's partial list (a lock), then a new slab. A free that finds a full slab puts it on the freeing
 * CPU's partial list; when that is full, it is moved to the node's; and an empty slab beyond MIN_PARTIAL there is given up.
 *
 * Modelled: those paths and their shared accesses, the free-list links in the middle of the objects, the sizes of the
 * partial lists. Otherwise than there:
 *   - a CPU has a current slab for each node, so that an allocation for another node does not deactivate it
 *   - every slab is 32 KB, from an area of its own rather than the page allocator, whose ledger stays pure
 *   - objects above 8 KB, for which the kernel asks the page allocator, are blocks of slabs on one locked list per node
 *   - every size that is a multiple of 64 has a cache of its own, none is merged with another
 *   - where shells lie on other nodes of the machine than heads, they are as it were of nodes of their own: of node i those
 *     of area i + shells_at
 * Left out: debugging, hardening and random order of free lists, memory cgroups, bulk operations, sheaves (6.18).
 *
 *                 slub_alloc   slub_free
 * slub_alloc          -            -       -: safe on different CPUs at once: the slab's word, the node's locks
 * slub_free           -            -
 */
#include "skb/node_mem.h"
#include "skb/obj.h"
#include "skb/atomic.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_SHIFT	15
#define SLAB_SIZE	(1UL << SLAB_SHIFT)
#define NODE_SLABS	(1UL << 15) /* 1 GB a node */
#define GROW_SLABS	1024 /* made usable at once: 32 MB */
#define MAX_CACHED_SIZE 8192
#define NR_CACHES \
	(MAX_CACHED_SIZE / 64 + 1) /* a cache's index is its object size in units of 64 bytes */
#define NR_LARGE_ORDERS 4 /* blocks of 1 to 8 slabs: up to OBJ_MAX_SIZE */
#define MIN_PARTIAL	5

/* Objects are multiples of 64 bytes, so a place in a slab is told in units of 64. */
#define WORD_HEAD_NONE	 0xffffUL
#define WORD_INUSE_SHIFT 16
#define WORD_FROZEN	 (1UL << 32)

/* As the kernel's, which is a struct page: one cache line. */
struct slab {
	unsigned long
		word; /* free list's head | objects in use | frozen: for any CPU, by cmpxchg */
	struct slab *next; /* of the list that the slab is on, for whoever owns that list */
	struct slab *prev; /* node's partial list only */
	u16 cache; /* index, 0 for a large block; constant while objects are out, like the next */
	u8 node;
	bool on_node_partial; /* under the node's lock */
} ____cacheline_aligned;

/* One CPU's part of a cache, for one node. */
struct kmem_cache_cpu {
	void *freelist;
	struct slab *slab; /* frozen; all that is free in it and not in its word is on freelist */
	struct slab *partial; /* not frozen, on no node's list */
	int nr_partial;
};

struct kmem_cache_node {
	spinlock_t lock;
	unsigned int nr_partial;
	struct slab *partial;
} ____cacheline_aligned;

/* Where slabs come from. */
struct slab_area {
	spinlock_t lock;
	size_t used, usable; /* slabs, from the start of the node's part */
	struct slab *free[NR_LARGE_ORDERS];
} ____cacheline_aligned;

struct cpu_caches {
	struct kmem_cache_cpu c[SKB_NR_NODES][NR_CACHES]; /* by area */
} __attribute__((aligned(4096)));

static struct cpu_caches cpu_caches[SKB_NR_CPUS];
static bool cpu_used[SKB_NR_CPUS];
static struct kmem_cache_node cache_nodes[SKB_NR_NODES][NR_CACHES];
static struct slab_area areas[SKB_NR_NODES];
static u16 objects_per_slab[NR_CACHES];
static u8 cpu_partial_slabs[NR_CACHES];

static struct slab *slabs; /* one for each SLAB_SIZE of slab_base, as mem_map is for pages */
static char *slab_base;
static void *slabs_reservation, *base_reservation;
static size_t slabs_reserved, base_reserved;
static unsigned int shells_at; /* 0: shells lie with the heads */

static __always_inline char *slab_address(const struct slab *slab)
{
	return slab_base + ((size_t)(slab - slabs) << SLAB_SHIFT);
}

static __always_inline struct slab *virt_to_slab(const void *obj)
{
	return &slabs[(size_t)((const char *)obj - slab_base) >> SLAB_SHIFT];
}

/* The link lies in the middle of the object, away from what overruns its neighbours. */
static __always_inline void **freepointer(void *obj, unsigned int cache)
{
	return (void **)((char *)obj + 32 * cache);
}

static __always_inline unsigned long word_inuse(unsigned long word)
{
	return word >> WORD_INUSE_SHIFT & 0xffff;
}

static __always_inline void *word_head(const struct slab *slab, unsigned long word)
{
	unsigned long unit = word & 0xffff;

	return unit == WORD_HEAD_NONE ? NULL : slab_address(slab) + 64 * unit;
}

static __always_inline unsigned long make_word(const void *head, unsigned long inuse,
					       unsigned long frozen)
{
	unsigned long unit = head ? ((uintptr_t)head & (SLAB_SIZE - 1)) / 64 : WORD_HEAD_NONE;

	return unit | inuse << WORD_INUSE_SHIFT | frozen;
}

/* SIZE as the exponent of the slabs that a large block takes. */
static unsigned int large_order(size_t size)
{
	return size <= SLAB_SIZE ? 0 : 64 - SLAB_SHIFT - __builtin_clzl(size - 1);
}

/* A block of 2^ORDER slabs; NULL when the node's area is used up. */
static struct slab *area_alloc(unsigned int node, unsigned int order)
{
	struct slab_area *area = &areas[node];
	size_t first = node * NODE_SLABS, need = 1UL << order;
	struct slab *slab;

	spin_lock(&area->lock, SKB_C_LOCK);
	slab = area->free[order];
	if (slab) {
		area->free[order] = slab->next;
	} else if (area->used + need <= NODE_SLABS) {
		if (area->used + need > area->usable &&
		    !mprotect(slab_base + ((first + area->usable) << SLAB_SHIFT),
			      GROW_SLABS << SLAB_SHIFT, PROT_READ | PROT_WRITE))
			area->usable += GROW_SLABS;
		if (area->used + need <= area->usable) {
			slab = &slabs[first + area->used];
			area->used += need;
			slab->node = node;
		}
	}
	spin_unlock(&area->lock, SKB_C_LOCK);
	return slab;
}

static void area_free(struct slab *slab, unsigned int order)
{
	struct slab_area *area = &areas[slab->node];

	spin_lock(&area->lock, SKB_C_LOCK);
	slab->next = area->free[order];
	area->free[order] = slab;
	spin_unlock(&area->lock, SKB_C_LOCK);
}

static void add_partial(struct kmem_cache_node *n, struct slab *slab)
{
	slab->prev = NULL;
	slab->next = n->partial;
	if (n->partial)
		n->partial->prev = slab;
	n->partial = slab;
	skb_store(&n->nr_partial, n->nr_partial + 1, SKB_C_SLAB);
	slab->on_node_partial = true;
}

static void remove_partial(struct kmem_cache_node *n, struct slab *slab)
{
	if (slab->prev)
		slab->prev->next = slab->next;
	else
		n->partial = slab->next;
	if (slab->next)
		slab->next->prev = slab->prev;
	skb_store(&n->nr_partial, n->nr_partial - 1, SKB_C_SLAB);
	slab->on_node_partial = false;
}

/* Moves a whole list of a CPU's partial slabs to the node, and gives up the empty ones beyond MIN_PARTIAL. */
static void put_partials(struct kmem_cache_node *n, struct slab *list)
{
	struct slab *empty = NULL, *slab;

	spin_lock(&n->lock, SKB_C_LOCK);
	while ((slab = list)) {
		list = slab->next;
		/* Acquire: pairs with the cmpxchg of the frees; the slab may be used for something else now. */
		if (!word_inuse(smp_load_acquire(&slab->word, SKB_C_SLAB)) &&
		    n->nr_partial >= MIN_PARTIAL) {
			slab->next = empty;
			empty = slab;
		} else {
			add_partial(n, slab);
		}
	}
	spin_unlock(&n->lock, SKB_C_LOCK);
	while ((slab = empty)) {
		empty = slab->next;
		area_free(slab, 0);
	}
}

/* Puts SLAB on the calling CPU's partial list; if that is full, and the caller wants it, its slabs go to the node. */
static void put_cpu_partial(struct kmem_cache_cpu *c, struct slab *slab, bool drain)
{
	struct slab *full = NULL;

	if (drain && c->nr_partial >= cpu_partial_slabs[slab->cache]) {
		full = c->partial;
		c->partial = NULL;
		c->nr_partial = 0;
	}
	slab->next = c->partial;
	c->partial = slab;
	c->nr_partial++;
	if (full)
		put_partials(&cache_nodes[slab->node][slab->cache], full);
}

/*
 * Takes the whole free list of a slab's word. The slab is frozen afterwards, if there was anything to take; a full one
 * is let go, and whoever frees to it first will own it.
 */
static void *take_freelist(struct slab *slab)
{
	unsigned long all = objects_per_slab[slab->cache], old, new;
	void *head;

	do {
		old = skb_load(&slab->word, SKB_C_SLAB);
		head = word_head(slab, old);
		new = make_word(NULL, all, head ? WORD_FROZEN : 0);
	} while (cmpxchg(&slab->word, old, new, SKB_C_SLAB) != old);
	return head;
}

/* A slab of the node's partial list for CPU C, and more of them for its partial list while the lock is held. */
static struct slab *get_partial_node(struct kmem_cache_node *n, struct kmem_cache_cpu *c,
				     unsigned int cache)
{
	struct slab *slab;

	/* A look without the lock: a wrong answer costs one new slab, or one trip. */
	if (!skb_load(&n->nr_partial, SKB_C_SLAB))
		return NULL;
	spin_lock(&n->lock, SKB_C_LOCK);
	slab = n->partial;
	if (slab) {
		remove_partial(n, slab);
		while (n->partial && c->nr_partial <= cpu_partial_slabs[cache] / 2) {
			struct slab *more = n->partial;

			remove_partial(n, more);
			put_cpu_partial(c, more, false);
		}
	}
	spin_unlock(&n->lock, SKB_C_LOCK);
	return slab;
}

/* A new slab for C: every link is written, so every object's middle line is touched. */
static void *new_slab(struct kmem_cache_cpu *c, unsigned int cache, unsigned int node)
{
	unsigned int n = objects_per_slab[cache];
	struct slab *slab = area_alloc(node, 0);
	char *obj;

	if (!slab)
		return NULL;
	slab->cache = cache;
	slab->on_node_partial = false;
	skb_store(&slab->word, make_word(NULL, n, WORD_FROZEN), SKB_C_SLAB);
	c->slab = slab;
	obj = slab_address(slab);
	while (--n) {
		skb_store(freepointer(obj, cache), obj + 64 * cache, SKB_C_SLAB);
		obj += 64 * cache;
	}
	skb_store(freepointer(obj, cache), NULL, SKB_C_SLAB);
	return slab_address(slab);
}

static __attribute__((noinline)) void *slub_alloc_slow(struct kmem_cache_cpu *c, unsigned int cache,
						       unsigned int node)
{
	void *head = NULL;

	if (c->slab) {
		head = take_freelist(c->slab);
		if (!head)
			c->slab = NULL;
	}
	while (!head) {
		struct slab *slab = c->partial;

		if (slab) {
			c->partial = slab->next;
			c->nr_partial--;
		} else {
			slab = get_partial_node(&cache_nodes[node][cache], c, cache);
		}
		if (!slab)
			break;
		c->slab = slab;
		head = take_freelist(slab);
	}
	if (!head)
		head = new_slab(c, cache, node);
	if (head)
		c->freelist = skb_load(freepointer(head, cache), SKB_C_SLAB);
	return head;
}

static __attribute__((noinline)) void slub_free_slow(struct slab *slab, void *obj,
						     struct kmem_cache_cpu *c)
{
	unsigned int cache = slab->cache;
	struct kmem_cache_node *n = NULL;
	unsigned long old, inuse;
	bool on_node_partial = false;
	void *prior;

	do {
		if (n)
			spin_unlock(&n->lock, SKB_C_LOCK);
		n = NULL;
		old = skb_load(&slab->word, SKB_C_SLAB);
		prior = word_head(slab, old);
		inuse = word_inuse(old) - 1;
		BUG_ON(word_inuse(old) == 0);
		skb_store(freepointer(obj, cache), prior, SKB_C_SLAB);
		/* The last object of a slab that may lie on the node's list: that must hold still meanwhile. */
		if (!inuse && prior && !(old & WORD_FROZEN)) {
			n = &cache_nodes[slab->node][cache];
			spin_lock(&n->lock, SKB_C_LOCK);
			on_node_partial = slab->on_node_partial;
		}
		/* Full barrier: pairs with the taker's, so that it sees the link and all that was done to the object. */
	} while (cmpxchg(&slab->word, old, make_word(obj, inuse, old & WORD_FROZEN), SKB_C_SLAB) !=
		 old);

	if (!n) {
		/* A full slab that no CPU has: whoever made it partial, and nobody else, has it now. */
		if (!prior && !(old & WORD_FROZEN))
			put_cpu_partial(c, slab, true);
		return;
	}
	if (on_node_partial && n->nr_partial >= MIN_PARTIAL)
		remove_partial(n, slab);
	else
		on_node_partial = false;
	spin_unlock(&n->lock, SKB_C_LOCK);
	if (on_node_partial)
		area_free(slab, 0);
}

static __attribute__((noinline)) void *large_alloc(size_t size, unsigned int node)
{
	struct slab *slab = area_alloc(node, large_order(size));

	if (!slab)
		return NULL;
	slab->cache = 0;
	return slab_address(slab);
}

/*
 * Not inlined into what keeps shells apart, and so the same code with and without it.
 */
static __attribute__((noinline)) void *slub_alloc(size_t size, unsigned int node)
{
	unsigned int cache = DIV_ROUND_UP(size, 64);
	struct kmem_cache_cpu *c;
	void *obj;

	if (unlikely(size > MAX_CACHED_SIZE))
		return large_alloc(size, node);
	c = &cpu_caches[smp_processor_id()].c[node][cache];
	obj = c->freelist;
	if (unlikely(!obj))
		return slub_alloc_slow(c, cache, node);
	c->freelist = skb_load(freepointer(obj, cache), SKB_C_SLAB);
	return obj;
}

static __attribute__((noinline)) void slub_free(void *obj, size_t size, unsigned int node)
{
	struct slab *slab = virt_to_slab(obj);
	unsigned int cache = DIV_ROUND_UP(size, 64);
	struct kmem_cache_cpu *c;

	BUG_ON(slab->node != node);
	if (unlikely(size > MAX_CACHED_SIZE)) {
		BUG_ON(slab->cache);
		area_free(slab, large_order(size));
		return;
	}
	BUG_ON(slab->cache != cache);
	c = &cpu_caches[smp_processor_id()].c[node][cache];
	if (unlikely(slab != c->slab)) {
		slub_free_slow(slab, obj, c);
		return;
	}
	skb_store(freepointer(obj, cache), c->freelist, SKB_C_SLAB);
	c->freelist = obj;
}

static void *slub_shell_alloc(size_t size, unsigned int node)
{
	return slub_alloc(size, node + shells_at);
}

static void slub_shell_free(void *obj, size_t size, unsigned int node)
{
	slub_free(obj, size, node + shells_at);
}

static void slub_walk(enum mem_kind kind, unsigned int node, mem_range_fn fn, void *ctx)
{
	unsigned int i = kind == MEM_SHELLS ? node + shells_at : node;

	fn(ctx, slab_base + ((i * NODE_SLABS) << SLAB_SHIFT), areas[i].used << SLAB_SHIFT);
}

static void set_cache_sizes(void)
{
	for (unsigned int i = 1; i < NR_CACHES; i++) {
		unsigned int size = 64 * i;
		/* The kernel's wish, in free objects; half of a partial slab is taken to be free. */
		unsigned int free = size >= 4096 ? 6 : size >= 1024 ? 24 : size >= 256 ? 52 : 120;

		objects_per_slab[i] = SLAB_SIZE / size;
		cpu_partial_slabs[i] = DIV_ROUND_UP(2 * free, objects_per_slab[i]);
	}
}

static void slub_release(void)
{
	if (slabs_reservation)
		munmap(slabs_reservation, slabs_reserved);
	if (base_reservation)
		munmap(base_reservation, base_reserved);
	slabs_reservation = base_reservation = NULL;
	for (unsigned int i = 0; i < SKB_NR_CPUS; i++)
		if (cpu_used[i])
			memset(&cpu_caches[i], 0, sizeof(cpu_caches[i]));
	memset(cpu_used, 0, sizeof(cpu_used));
	memset(cache_nodes, 0, sizeof(cache_nodes));
	memset(areas, 0, sizeof(areas));
}

static int slub_init(unsigned int homes)
{
	unsigned int nodes = mem_apart(MEM_SHELLS, MEM_HEADS, homes) ? 2 * homes : homes;
	size_t node_bytes = NODE_SLABS << SLAB_SHIFT, node_slabs = NODE_SLABS * sizeof(struct slab);
	int err = -ENOMEM;

	slub_release();
	slabs = node_mem_reserve(nodes * node_slabs, 4096, &slabs_reservation, &slabs_reserved);
	slab_base = node_mem_reserve(nodes * node_bytes, GROW_SLABS << SLAB_SHIFT,
				     &base_reservation, &base_reserved);
	if (!slabs || !slab_base || mprotect(slabs, nodes * node_slabs, PROT_READ | PROT_WRITE))
		goto fail;
	shells_at = nodes - homes;
	for (unsigned int i = 0; i < nodes; i++) {
		char *base = slab_base + i * node_bytes;
		u64 mask = mem_nodemask(i < homes ? MEM_HEADS : MEM_SHELLS, i % homes);

		err = node_mem_bind(base, node_bytes, mask, nodes);
		if (err >= 0)
			err = node_mem_bind(slabs + i * NODE_SLABS, node_slabs, mask, nodes);
		if (err < 0)
			goto fail;
		/* The kernel's memory is mapped by huge pages. Where the machine has none this does nothing. */
		madvise(base, node_bytes, MADV_HUGEPAGE);
	}
	set_cache_sizes();
	return 0;
fail:
	slub_release();
	return err;
}

static int slub_cpu_attach(unsigned int slot)
{
	cpu_used[slot] = true;
	return 0;
}

static const struct obj_allocator slub_apart = {
	.name = "slub",
	.init = slub_init,
	.cpu_attach = slub_cpu_attach,
	.alloc = slub_alloc,
	.free = slub_free,
	.shell_alloc = slub_shell_alloc,
	.shell_free = slub_shell_free,
	.walk = slub_walk,
};

const struct obj_allocator obj_slub = {
	.name = "slub",
	.init = slub_init,
	.cpu_attach = slub_cpu_attach,
	.alloc = slub_alloc,
	.free = slub_free,
	.shell_alloc = slub_alloc,
	.shell_free = slub_free,
	.walk = slub_walk,
	.apart = &slub_apart,
};
