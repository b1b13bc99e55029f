/* SPDX-License-Identifier: MIT */
#include "mem_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "skb/obj.h"
#include "skb/skje.h"

static const char *const names[] = { "jemalloc", "glibc", "slub" };
static const size_t buckets[] = { 64,	128,  192,   256,   512,   1024,   2048,
				  4096, 8192, 16384, 32768, 65536, 131072, 262144 };

/* Nodes of this machine that the model can use. */
static unsigned int machine_nodes(void)
{
	char path[64];
	unsigned int n = 0;

	do
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", ++n);
	while (!access(path, F_OK) && n < SKB_NR_NODES);
	return n;
}

static unsigned int nodes_for(const char *name)
{
	return strcmp(name, "glibc") ? machine_nodes() : 1;
}

static void use(const char *name)
{
	assert_int_equal(obj_init(name, nodes_for(name)), 0);
	assert_string_equal(obj_allocator->name, name);
	assert_int_equal(skb_cpu_attach(0, 0), 0);
}

static void test_kmalloc_size_roundup(void **state)
{
	size_t b = 0;

	(void)state;
	assert_int_equal(kmalloc_size_roundup(0), 0);
	for (size_t size = 1; size <= OBJ_MAX_SIZE; size++) {
		if (size > buckets[b])
			b++;
		assert_int_equal(kmalloc_size_roundup(size), buckets[b]);
	}
	assert_int_equal(b, ARRAY_SIZE(buckets) - 1);
	assert_int_equal(kmalloc_size_roundup(OBJ_MAX_SIZE + 1), 0);
	assert_int_equal(kmalloc_size_roundup(SIZE_MAX), 0);
}

static void test_init_refuses(void **state)
{
	unsigned int nodes = machine_nodes();
	void *p;

	(void)state;
	use("slub");
	assert_int_equal(obj_init("slab", 1), -ENOENT);
	assert_int_equal(obj_init("jemalloc", 0), -EINVAL);
	assert_int_equal(obj_init("jemalloc", SKB_NR_NODES + 1), -EINVAL);
	assert_int_equal(obj_init("glibc", 2), -ENOTSUP);
	if (nodes < SKB_NR_NODES)
		assert_int_equal(obj_init("jemalloc", nodes + 1), -ENODEV);
	/* What was chosen before is still there. */
	assert_string_equal(obj_allocator->name, "slub");
	p = obj_alloc(64, 0);
	assert_non_null(p);
	obj_free(p, 64, 0);
	if (nodes < SKB_NR_NODES)
		assert_int_equal(obj_init("slub", nodes + 1), -ENODEV);
}

static void test_attach(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		void *p, *q;

		use(names[i]);
		assert_int_equal(obj_nr_nodes(), nodes_for(names[i]));
		p = obj_alloc(512, 0);
		/* The same slot again: its caches are as they were. (AddressSanitizer keeps what glibc frees.) */
		assert_int_equal(skb_cpu_attach(0, 0), 0);
		obj_free(p, 512, 0);
		assert_int_equal(skb_cpu_attach(0, 0), 0);
		q = obj_alloc(512, 0);
		if (strcmp(names[i], "glibc"))
			assert_ptr_equal(q, p);
		obj_free(q, 512, 0);

		assert_int_equal(skb_cpu_attach(SKB_NR_CPUS - 1, 0), 0);
		assert_int_equal(smp_processor_id(), SKB_NR_CPUS - 1);
		assert_int_equal(skb_cpu_attach(SKB_NR_CPUS, 0), -EINVAL);
		assert_int_equal(smp_processor_id(), SKB_NO_CPU);
		assert_int_equal(skb_cpu_attach(0, obj_nr_nodes()), -EINVAL);
		assert_int_equal(skb_cpu_attach(0, obj_nr_nodes() - 1), 0);
		assert_int_equal(numa_node_id(), obj_nr_nodes() - 1);
		skb_cpu_detach();
		assert_int_equal(smp_processor_id(), SKB_NO_CPU);
	}
}

/* COUNT objects of SIZE at once: aligned, apart, all bytes their own. */
static void check_size(size_t size, unsigned int node, size_t count)
{
	unsigned char **p = malloc(count * sizeof(*p));

	assert_non_null(p);
	for (size_t i = 0; i < count; i++) {
		p[i] = obj_alloc(size, node);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % SMP_CACHE_BYTES, 0);
		memset(p[i], (int)i, size);
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < size; k += k + 64 < size ? 61 : 1)
			assert_int_equal(p[i][k], (unsigned char)i);
		obj_free(p[i], size, node);
	}
	free(p);
}

static void test_sizes(void **state)
{
	static const size_t others[] = { 1,   65,  96,	129, 160,  193,	 224,	232,
					 320, 704, 640, 960, 1152, 8193, 20000, OBJ_MAX_SIZE - 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		use(names[i]);
		for (unsigned int node = 0; node < obj_nr_nodes(); node++) {
			for (size_t k = 0; k < ARRAY_SIZE(buckets); k++)
				check_size(buckets[k], node, buckets[k] > 8192 ? 5 : 200);
			for (size_t k = 0; k < ARRAY_SIZE(others); k++)
				check_size(others[k], node, others[k] > 8192 ? 5 : 200);
		}
	}
}

/* Node that the byte at P lies on, or -1 where the kernel does not tell. */
static int node_of(void *p)
{
	int node = -1;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0UL, p, 3UL /* MPOL_F_NODE | MPOL_F_ADDR */))
		return -1;
	return node;
}

static void test_placement(void **state)
{
	bool told = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], "glibc"))
			continue;
		use(names[i]);
		for (unsigned int node = 0; node < obj_nr_nodes(); node++)
			for (size_t k = 0; k < ARRAY_SIZE(buckets); k++) {
				char *p = obj_alloc(buckets[k], node);
				int where;

				*p = 1;
				where = node_of(p);
				if (where >= 0)
					assert_int_equal(where, node);
				told |= where >= 0;
				obj_free(p, buckets[k], node);
				/* Freed, it comes back for its own node only. */
				if (obj_nr_nodes() > 1) {
					unsigned int other = !node;
					char *q = obj_alloc(buckets[k], other);

					assert_ptr_not_equal(q, p);
					*q = 1;
					assert_int_equal(node_of(q), other);
					obj_free(q, buckets[k], other);
				}
			}
	}
	if (!told)
		skip();
}

/* Three CPUs take and free objects of each other, of a few sizes; each object bears its own mark. */
static void test_random(void **state)
{
	static const u16 sizes[] = { 64, 256, 512, 704, 1024, 4096, 8192, 32768 };
	static struct {
		unsigned char *p;
		size_t size;
		unsigned char mark;
	} live[4000];

	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(names); a++) {
		u64 rng = test_seed();
		size_t n = 0;

		use(names[a]);
		for (int step = 0; step < 200000; step++) {
			u64 r = test_rand(&rng);
			bool fill = (step / 10000) % 2 == 0;

			if (r % 16 == 0)
				assert_int_equal(skb_cpu_attach(r / 16 % 3, 0), 0);
			if (n < ARRAY_SIZE(live) && (r >> 16 & 3 ? fill : !fill)) {
				size_t size = sizes[(r >> 24) % ARRAY_SIZE(sizes)];

				live[n].p = obj_alloc(size, 0);
				assert_non_null(live[n].p);
				live[n].size = size;
				live[n].mark = r >> 40;
				/* The ends and the middle, where an allocator may keep a link. */
				live[n].p[0] = live[n].p[size / 2] = live[n].p[size - 1] = r >> 40;
				n++;
			} else if (n) {
				size_t i = (r >> 32) % n;

				assert_int_equal(live[i].p[0], live[i].mark);
				assert_int_equal(live[i].p[live[i].size / 2], live[i].mark);
				assert_int_equal(live[i].p[live[i].size - 1], live[i].mark);
				obj_free(live[i].p, live[i].size, 0);
				live[i] = live[--n];
			}
		}
		while (n--)
			obj_free(live[n].p, live[n].size, 0);
		assert_int_equal(skb_cpu_attach(0, 0), 0);
	}
}

static void test_slub_exhaustion(void **state)
{
	static void *p[8192];
	size_t n = 0;

	(void)state;
	use("slub");
	while (n < ARRAY_SIZE(p) && (p[n] = obj_alloc(OBJ_MAX_SIZE, 0)))
		n++;
	assert_int_equal(n, 4096); /* 1 GB */
	assert_null(obj_alloc(512, 0));
	obj_free(p[--n], OBJ_MAX_SIZE, 0);
	p[n] = obj_alloc(OBJ_MAX_SIZE, 0);
	assert_non_null(p[n++]);
	while (n)
		obj_free(p[--n], OBJ_MAX_SIZE, 0);
	/* A new start. */
	use("slub");
	check_size(512, 0, 1000);
}

static void *victim;

static void free_wrong_size(void)
{
	obj_free(victim, 512, 0);
}

static void free_wrong_node(void)
{
	obj_free(victim, 256, 1);
}

static void free_right(void)
{
	obj_free(victim, 256, 0);
}

static void test_slub_bugs(void **state)
{
	(void)state;
	use("slub");
	victim = obj_alloc(256, 0);
	assert_true(is_bug(free_wrong_size));
	assert_true(is_bug(free_wrong_node));
	assert_false(is_bug(free_right));
	obj_free(victim, 256, 0);
}

/* Nothing from outside may configure the private copy: run again with variables that would. */
static int check_conf(void)
{
	ssize_t decay = 0;
	unsigned int narenas = 0;
	const char *junk = NULL;
	size_t len = sizeof(decay);

	if (skje_mallctl("opt.dirty_decay_ms", &decay, &len, NULL, 0))
		return 10;
	len = sizeof(narenas);
	if (skje_mallctl("opt.narenas", &narenas, &len, NULL, 0))
		return 11;
	len = sizeof(junk);
	if (skje_mallctl("opt.junk", &junk, &len, NULL, 0))
		return 12;
	return decay != -1 ? 13 : narenas != 1 ? 14 : strcmp(junk, "false") ? 15 : 0;
}

static void test_malloc_conf_is_ignored(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(check_conf(), 0);
	if (getenv("SKB_EMULATED")) {
		print_message("an emulator runs this: it cannot execute itself again\n");
		skip();
	}
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setenv("MALLOC_CONF", "dirty_decay_ms:0,narenas:3,junk:true", 1);
		execl("/proc/self/exe", "obj_test", "check-conf", NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct test_ring rings[2];

struct crosser {
	unsigned int slot;
	u64 rng;
	size_t sent, got, wrong;
};

#define CROSSED 30000UL

struct parcel {
	u32 size;
	u32 mark;
};

/* Allocates, writes, hands over; frees what the other CPU handed over. */
static void *cross(void *arg)
{
	static const u16 sizes[] = { 256, 512, 704, 1024, 4096 };
	struct crosser *c = arg;
	struct test_ring *out = &rings[c->slot], *in = &rings[!c->slot];
	struct parcel *mine = NULL;

	if (skb_cpu_attach(c->slot, 0))
		return NULL;
	while (c->sent < CROSSED || c->got < CROSSED) {
		struct parcel *theirs = test_ring_get(in);

		if (theirs) {
			u32 *last = (u32 *)((char *)theirs + theirs->size) - 1;

			c->wrong += *last != theirs->mark;
			*last = 0;
			obj_free(theirs, theirs->size, 0);
			c->got++;
		}
		if (!mine && c->sent < CROSSED) {
			u64 r = test_rand(&c->rng);
			u32 size = sizes[r % ARRAY_SIZE(sizes)];

			mine = obj_alloc(size, 0);
			if (mine) {
				mine->size = size;
				mine->mark = r >> 32;
				((u32 *)((char *)mine + size))[-1] = r >> 32;
			}
		}
		if (mine && test_ring_put(out, mine)) {
			mine = NULL;
			c->sent++;
		} else {
			cpu_relax();
		}
	}
	return NULL;
}

static void test_alloc_here_free_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		u64 seed = test_seed();
		struct crosser c[2] = { { .slot = 0, .rng = seed },
					{ .slot = 1, .rng = ~seed | 1 } };
		pthread_t thread;

		use(names[i]);
		memset(rings, 0, sizeof(rings));
		assert_int_equal(pthread_create(&thread, NULL, cross, &c[1]), 0);
		cross(&c[0]);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(c[0].got + c[1].got, 2 * CROSSED);
		assert_int_equal(c[0].wrong + c[1].wrong, 0);
	}
}

#ifdef SKB_TRACED
#define PER_SLAB 128 /* objects of 256 bytes in 32 KB */

static void test_slub_ledger(void **state)
{
	void *p[PER_SLAB + 1];

	(void)state;
	skb_trace_sink = &test_sink;
	use("slub");
	obj_free(obj_alloc(256, 0), 256, 0);

	/* Here and back: nothing shared is touched atomically. */
	test_counts_reset();
	for (int i = 0; i < 1000; i++)
		obj_free(obj_alloc(256, 0), 256, 0);
	assert_int_equal(test_rmw_total(), 0);
	assert_int_equal(test_counts.event[SKB_EV_OBJ_ALLOC], 1000);
	assert_int_equal(test_counts.event_n[SKB_EV_OBJ_FREE], 256000);

	/* Another CPU frees to the slab that is current here: one each. */
	for (int i = 0; i < 10; i++)
		p[i] = obj_alloc(256, 0);
	assert_int_equal(test_rmw_total(), 0);
	assert_int_equal(skb_cpu_attach(1, 0), 0);
	for (int i = 0; i < 10; i++) {
		test_counts_reset();
		obj_free(p[i], 256, 0);
		assert_int_equal(test_counts.rmw[SKB_C_SLAB], 1);
		assert_int_equal(test_rmw_total(), 1);
	}

	/* The owner goes on with its own list; when that is dry, one exchange brings back all ten. */
	assert_int_equal(skb_cpu_attach(0, 0), 0);
	test_counts_reset();
	for (int i = 0; i < PER_SLAB - 10; i++)
		p[i] = obj_alloc(256, 0);
	assert_int_equal(test_rmw_total(), 0);
	p[PER_SLAB - 10] = obj_alloc(256, 0);
	assert_int_equal(test_counts.rmw[SKB_C_SLAB], 1);
	for (int i = PER_SLAB - 9; i < PER_SLAB; i++)
		p[i] = obj_alloc(256, 0);
	assert_int_equal(test_rmw_total(), 1);

	/* The slab is full and is let go (one exchange); a new one comes from the area (its lock). */
	test_counts_reset();
	p[PER_SLAB] = obj_alloc(256, 0);
	assert_int_equal(test_counts.rmw[SKB_C_SLAB], 1);
	assert_int_equal(test_counts.rmw[SKB_C_LOCK], 1);
	assert_int_equal(test_rmw_total(), 2);

	/*
	 * Another CPU's free to a full slab takes it over without a lock; the rest of its objects go the same way, and
	 * the last one asks the node whether the slab lies there: a lock more.
	 */
	assert_int_equal(skb_cpu_attach(1, 0), 0);
	for (int i = 0; i < PER_SLAB; i++) {
		test_counts_reset();
		obj_free(p[i], 256, 0);
		assert_int_equal(test_counts.rmw[SKB_C_SLAB], 1);
		assert_int_equal(test_counts.rmw[SKB_C_LOCK], i == PER_SLAB - 1);
	}
	/* Its next allocation takes the whole slab from its partial list by one exchange. */
	test_counts_reset();
	for (int i = 0; i < PER_SLAB; i++)
		p[i] = obj_alloc(256, 0);
	assert_int_equal(test_rmw_total(), 1);
	for (int i = 0; i <= PER_SLAB; i++)
		obj_free(p[i], 256, 0);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kmalloc_size_roundup),
		cmocka_unit_test(test_init_refuses),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_slub_exhaustion),
		cmocka_unit_test(test_slub_bugs),
		cmocka_unit_test(test_malloc_conf_is_ignored),
		cmocka_unit_test(test_alloc_here_free_there),
#ifdef SKB_TRACED
		cmocka_unit_test(test_slub_ledger),
#endif
	};

	if (argc > 1 && !strcmp(argv[1], "check-conf"))
		return check_conf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
