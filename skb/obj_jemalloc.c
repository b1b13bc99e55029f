/* SPDX-License-Identifier: MIT */
/*
 * Objects from a private copy of jemalloc: an arena for each node, whose memory is bound to the node by the arena's
 * extent hooks, and a thread cache for each CPU slot and node.
 *
 * The caches are explicit ones and belong to the slot, not to the thread, so that they stay warm across threads. There
 * is one per node because a cache hit does not look at the arena that is asked for: an object goes back to the cache of
 * its home node, and so can only come out again for that node.
 *
 * Arenas, caches and what they hold stay for the life of the process.
 */
#include "skb/atomic.h"
#include "skb/node_mem.h"
#include "skb/obj.h"
#include "skb/skje.h"

#include <errno.h>
#include <sys/mman.h>

/*
 * No decay: it follows wall time and would purge at different operations in different runs (instruction counts then
 * differ by 0.3 %). One automatic arena, since all that is measured lies in ours.
 */
const char *skje_malloc_conf =
	"dirty_decay_ms:-1,muzzy_decay_ms:-1,background_thread:false,narenas:1,thp:default";

#ifdef SKB_TSAN
/*
 * jemalloc takes all its mutexes before a fork, more than ThreadSanitizer's detector of lock cycles can hold: it would
 * end the program. Races are looked for as ever, and the seam's spinlocks are none of the detector's business.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}
#endif

struct node_arena {
	extent_hooks_t hooks; /* first: jemalloc hands back this pointer */
	unsigned int index; /* in arenas[] */
	int flags; /* MALLOCX_ARENA(), 0 before it exists */
};

#define MAPPINGS_MAX 1024 /* they grow one by one: gigabytes */

/* Where an arena lies, apart from what an allocation looks at. */
struct arena_place {
	u64 nodemask; /* of the machine's nodes */
	/* What the hooks mapped: all of it, if that many. One thread at a time grows an arena (jemalloc's own lock). */
	atomic_t nr_mappings;
	struct mapping {
		void *p;
		size_t size;
	} mapping[MAPPINGS_MAX];
};

/* Flags of mallocx(): what a CPU passes with every call, 0 before its first attach. */
struct cpu_tcaches {
	int flags[SKB_NR_NODES];
} ____cacheline_aligned;

static struct node_arena arenas[SKB_NR_NODES];
static struct arena_place arena_places[SKB_NR_NODES];
static struct cpu_tcaches tcaches[SKB_NR_CPUS];
static unsigned int nr_nodes; /* arenas */
static unsigned int
	shells_at; /* node i's shells are of arena i + shells_at; 0: they lie with the heads */

static void *map_on_node(extent_hooks_t *hooks, void *want, size_t size, size_t align, bool *zero,
			 bool *commit, unsigned int arena)
{
	struct arena_place *a = &arena_places[((const struct node_arena *)hooks)->index];
	uintptr_t p, q;
	int nr;

	(void)arena;
	if (want)
		return NULL;
	p = (uintptr_t)mmap(NULL, size + align, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == (uintptr_t)MAP_FAILED)
		return NULL;
	q = ALIGN(p, align);
	if (q > p)
		munmap((void *)p, q - p);
	munmap((void *)(q + size), p + align - q);
	if (node_mem_bind((void *)q, size, a->nodemask, nr_nodes) < 0) {
		munmap((void *)q, size);
		return NULL;
	}
	nr = atomic_read(&a->nr_mappings, SKB_C_OTHER);
	if (nr < MAPPINGS_MAX) {
		a->mapping[nr] = (struct mapping){ (void *)q, size };
		atomic_set(&a->nr_mappings, nr + 1, SKB_C_OTHER);
	}
	*zero = *commit = true;
	return (void *)q;
}

/* Nothing is ever unmapped, split or merged across mappings: "true" is "no" to jemalloc. */
static bool keep(extent_hooks_t *hooks, void *addr, size_t size, bool committed, unsigned int arena)
{
	(void)hooks, (void)addr, (void)size, (void)committed, (void)arena;
	return true;
}

/* An extent may be cut anywhere, and put together again: neighbours of one arena lie on one node. */
static bool may_split(extent_hooks_t *hooks, void *addr, size_t size, size_t size_a, size_t size_b,
		      bool committed, unsigned int arena)
{
	(void)hooks, (void)addr, (void)size, (void)size_a, (void)size_b;
	(void)committed, (void)arena;
	return false;
}

static bool may_merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b, size_t size_b,
		      bool committed, unsigned int arena)
{
	(void)hooks, (void)a, (void)size_a, (void)b, (void)size_b, (void)committed, (void)arena;
	return false;
}

static int create_arena(unsigned int i, u64 nodemask)
{
	struct node_arena *a = &arenas[i];
	extent_hooks_t *hooks = &a->hooks;
	unsigned int index;
	size_t len = sizeof(index);

	arena_places[i].nodemask = nodemask;
	a->index = i;
	a->hooks = (extent_hooks_t){
		.alloc = map_on_node,
		.dalloc = keep,
		.split = may_split,
		.merge = may_merge,
	};
	/* The arena takes its own first memory through the hooks: a node that does not exist fails here. */
	if (skje_mallctl("arenas.create", &index, &len, &hooks, sizeof(hooks)))
		return -ENODEV;
	a->flags = MALLOCX_ARENA(index);
	return 0;
}

/* An arena stays where it is: one that exists is as good as a new one only if it lies there. */
static int need_arena(unsigned int i, u64 nodemask)
{
	if (!arenas[i].flags)
		return create_arena(i, nodemask);
	return arena_places[i].nodemask == nodemask ? 0 : -EBUSY;
}

static int jemalloc_init(unsigned int nodes)
{
	bool apart = mem_apart(MEM_SHELLS, MEM_HEADS, nodes);
	unsigned int before = nr_nodes;

	nr_nodes = apart ? 2 * nodes : nodes;
	for (unsigned int i = 0; i < nr_nodes; i++) {
		int err =
			need_arena(i, mem_nodemask(i < nodes ? MEM_HEADS : MEM_SHELLS, i % nodes));

		if (err) {
			nr_nodes = before;
			return err;
		}
	}
	shells_at = nr_nodes - nodes;
	return 0;
}

static int jemalloc_cpu_attach(unsigned int slot)
{
	struct cpu_tcaches *t = &tcaches[slot];

	for (unsigned int i = 0; i < nr_nodes; i++) {
		unsigned int index;
		size_t len = sizeof(index);

		if (t->flags[i])
			continue;
		if (skje_mallctl("tcache.create", &index, &len, NULL, 0))
			return -ENOMEM;
		t->flags[i] = MALLOCX_TCACHE(index);
	}
	return 0;
}

/* Every size class that a multiple of 64 lands in is a multiple of 64 itself, and so its objects are aligned to 64. */
static void *jemalloc_alloc(size_t size, unsigned int node)
{
	return skje_mallocx(ALIGN(size, SMP_CACHE_BYTES),
			    arenas[node].flags | tcaches[smp_processor_id()].flags[node]);
}

static void jemalloc_free(void *obj, size_t size, unsigned int node)
{
	skje_sdallocx(obj, ALIGN(size, SMP_CACHE_BYTES), tcaches[smp_processor_id()].flags[node]);
}

static void *jemalloc_shell_alloc(size_t size, unsigned int node)
{
	return jemalloc_alloc(size, node + shells_at);
}

static void jemalloc_shell_free(void *obj, size_t size, unsigned int node)
{
	jemalloc_free(obj, size, node + shells_at);
}

static void jemalloc_walk(enum mem_kind kind, unsigned int node, mem_range_fn fn, void *ctx)
{
	const struct arena_place *a = &arena_places[kind == MEM_SHELLS ? node + shells_at : node];
	int nr = atomic_read(&a->nr_mappings, SKB_C_OTHER);

	for (int i = 0; i < nr; i++)
		fn(ctx, a->mapping[i].p, a->mapping[i].size);
}

static const struct obj_allocator jemalloc_apart = {
	.name = "jemalloc",
	.init = jemalloc_init,
	.cpu_attach = jemalloc_cpu_attach,
	.alloc = jemalloc_alloc,
	.free = jemalloc_free,
	.shell_alloc = jemalloc_shell_alloc,
	.shell_free = jemalloc_shell_free,
	.walk = jemalloc_walk,
};

const struct obj_allocator obj_jemalloc = {
	.name = "jemalloc",
	.init = jemalloc_init,
	.cpu_attach = jemalloc_cpu_attach,
	.alloc = jemalloc_alloc,
	.free = jemalloc_free,
	.shell_alloc = jemalloc_alloc,
	.shell_free = jemalloc_free,
	.walk = jemalloc_walk,
	.apart = &jemalloc_apart,
};
