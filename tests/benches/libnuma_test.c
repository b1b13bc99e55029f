/* SPDX-License-Identifier: MIT */
/*
 * What we read of this machine's nodes, and what we asked the kernel to do with memory, told again by libnuma: code that is
 * not ours. The programs themselves do without it: it starts with malloc() and a walk through /sys in every process that
 * is timed.
 */
#include "benches/harness/nodes.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define BYTES ((size_t)64 * 4096)

static void it_sees_the_same_machine(void **state)
{
	struct bitmask *mems = numa_get_mems_allowed();
	static struct bench_topology t;

	(void)state;
	bench_topology_read("", &t);
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++) {
		u64 bit = 1ULL << node;
		bool online = numa_bitmask_isbitset(numa_nodes_ptr, node);

		assert_int_equal(!!(t.online & t.memory & bit),
				 online && numa_node_size64((int)node, NULL) > 0);
		assert_int_equal(!!(t.online & t.memory & t.allowed & bit),
				 online && numa_bitmask_isbitset(mems, node));
		for (unsigned int other = 0; online && other < BENCH_MAX_NODES; other++)
			if (numa_bitmask_isbitset(numa_nodes_ptr, other))
				assert_int_equal(t.distance[node][other],
						 numa_distance((int)node, (int)other));
	}
	for (int cpu = 0; cpu < numa_num_configured_cpus(); cpu++)
		if (numa_bitmask_isbitset(numa_all_cpus_ptr, (unsigned int)cpu))
			assert_int_equal(bench_node_of_cpu(&t, (unsigned int)cpu),
					 numa_node_of_cpu(cpu));
	numa_free_nodemask(mems);
}

/* The policy of bound memory, and where its pages are, as the kernel answers libnuma's own calls. */
static void it_sees_memory_where_we_bound_it(u64 nodemask, int mode_expected)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bitmask *mask = numa_allocate_nodemask();
	struct node_mem_count count = { .untouched = 0 };
	void *pages[BYTES / 4096];
	int mode = -1, status[BYTES / 4096];
	long on[BENCH_MAX_NODES] = { 0 };

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(node_mem_bind(p, BYTES, nodemask, 2), 0);
	memset(p, 1, BYTES);
	assert_int_equal(get_mempolicy(&mode, mask->maskp, mask->size + 1, p, MPOL_F_ADDR), 0);
	assert_int_equal(mode, mode_expected);
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++)
		assert_int_equal(numa_bitmask_isbitset(mask, node), nodemask >> node & 1);
	for (size_t i = 0; i < BYTES / 4096; i++)
		pages[i] = p + i * 4096;
	assert_int_equal(numa_move_pages(0, BYTES / 4096, pages, NULL, status, 0), 0);
	for (size_t i = 0; i < BYTES / 4096; i++) {
		assert_in_range(status[i], 0, BENCH_MAX_NODES - 1);
		on[status[i]]++;
		assert_int_equal(node_mem_node(pages[i]), status[i]);
	}
	assert_int_equal(node_mem_count(p, BYTES, &count), 0);
	assert_int_equal(count.untouched, 0);
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++) {
		assert_int_equal(count.on[node], on[node]);
		if (on[node])
			assert_true(nodemask >> node & 1);
	}
	/* Interleaving is by turns: no node has more than its share. */
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++)
		if (nodemask >> node & 1)
			assert_in_range(on[node],
					BYTES / 4096 / (size_t)__builtin_popcountll(nodemask),
					BYTES / 4096 / (size_t)__builtin_popcountll(nodemask) + 1);
	numa_free_nodemask(mask);
	munmap(p, BYTES);
}

static void it_sees_memory_on_each_node(void **state)
{
	static struct bench_topology t;
	u64 usable;

	(void)state;
	bench_topology_read("", &t);
	usable = t.online & t.memory & t.allowed;
	for (u64 left = usable; left; left &= left - 1)
		it_sees_memory_where_we_bound_it(left & -left, MPOL_BIND);
	if (usable & (usable - 1))
		it_sees_memory_where_we_bound_it(usable, MPOL_INTERLEAVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sees_the_same_machine),
		cmocka_unit_test(it_sees_memory_on_each_node),
	};

	if (numa_available() < 0) {
		printf("libnuma says that this kernel, or a sandbox, has no NUMA calls: skipped\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
