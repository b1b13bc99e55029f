/* SPDX-License-Identifier: MIT */
/*
 * Where objects lie on described machines, and what their memory limits leave: each machine is a directory of the files
 * that the kernel would have.
 */
#include "benches/harness/nodes.h"
#include "benches/harness/room.h"
#include "benches/harness/sysfile.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MB	   (1ULL << 20)
#define NODES	   "/sys/devices/system/node"
#define HUGE_PAGES "/hugepages/hugepages-2048kB"

/* --- machines */

static char root[64];

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/nodes_unit_test.XXXXXX");
	return !mkdtemp(root);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The file PATH of the machine holds TEXT. */
static void put(const char *path, const char *text)
{
	char name[PATH_MAX];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(!mkdir(name, 0755) || errno == EEXIST);
		*at = '/';
	}
	f = fopen(name, "we");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	assert_int_equal(fclose(f), 0);
}

/*
 * 4 nodes of 2 CPUs: 0 and 1 are near each other, 2 is farther from both than 3, which has no memory; from 3 the nearest
 * is 1.
 */
static void four_nodes(const char *mems_allowed)
{
	static const char *const distance[] = { "10 16 32 24", "16 10 32 20", "32 32 10 28",
						"24 20 28 10" };
	static const char *const cpus[] = { "0-1", "2-3", "4-5", "6-7" };
	char path[128], text[64];

	put(NODES "/online", "0-3");
	put(NODES "/has_memory", "0-2");
	for (unsigned int node = 0; node < 4; node++) {
		snprintf(path, sizeof(path), NODES "/node%u/distance", node);
		put(path, distance[node]);
		snprintf(path, sizeof(path), NODES "/node%u/cpulist", node);
		put(path, cpus[node]);
	}
	snprintf(text, sizeof(text), "Name:\tx\nMems_allowed:\t7\nMems_allowed_list:\t%s\nend:\t0",
		 mems_allowed);
	put("/proc/self/status", text);
}

/* The nodes that WHERE means for a CPU of HOME; 0 and the reason in ERR if it is refused. */
static u64 place(const struct bench_topology *t, const char *where, unsigned int home, char *err,
		 size_t errlen)
{
	struct bench_object object[NR_MEM_KINDS];
	char text[32];
	u64 mask = 0;

	snprintf(text, sizeof(text), "heads=%s", where);
	assert_int_equal(bench_objects_parse(text, object), 0);
	return bench_object_place(t, &object[MEM_HEADS], home, &mask, err, errlen) ? 0 : mask;
}

/* --- lists */

static void lists_are_bits(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(sysfile_bits("0-2,5\n"), 0x27);
	assert_int_equal(sysfile_bits(""), 0);
	assert_int_equal(sysfile_bits("\n"), 0);
	assert_int_equal(sysfile_bits("63,64-70"), 1ULL << 63);
	assert_true(sysfile_lists("0-3,1000\n", 1000));
	assert_false(sysfile_lists("0-3,1000\n", 999));
	sysfile_list(0x27, text, sizeof(text));
	assert_string_equal(text, "0-2,5");
	sysfile_list(1ULL << 63 | 1, text, sizeof(text));
	assert_string_equal(text, "0,63");
	sysfile_list(0, text, sizeof(text));
	assert_string_equal(text, "");
	sysfile_list(0x5555555555555555, text, 8); /* too short: cut, no more */
	assert_string_equal(text, "0,2,4,6");
}

static void numbers_stand_behind_their_key(void **state)
{
	u64 n;

	(void)state;
	assert_true(sysfile_number("inactive_file 5\nactive_file 7\n", "active_file ", &n));
	assert_int_equal(n, 7);
	assert_true(sysfile_number("Node 0 MemFree:   12 kB", "MemFree:", &n));
	assert_int_equal(n, 12);
	assert_false(sysfile_number("XMemFree: 12", "MemFree:", &n));
	assert_false(sysfile_number("MemFree: none", "MemFree:", &n));
}

/* --- objects */

static void objects_are_told_by_name(void **state)
{
	static const char *const wrong[] = {
		"",
		"shells",
		"shells=",
		"shells=near",
		"=local",
		"shells=local,",
		",shells=local",
		"shells=64",
		"shells=-1",
		"shells=01",
		"shell=local",
		"shells=0,shells=0",
		"shells==0",
		"shells=0 ",
		"pages=remote;heads=0",
		"shells=localx",
	};
	struct bench_object object[NR_MEM_KINDS];
	char text[32];

	(void)state;
	assert_int_equal(bench_objects_parse("pages=remote,shells=63,socket=interleave", object),
			 0);
	assert_int_equal(object[MEM_PAGES].where, BENCH_REMOTE);
	assert_int_equal(object[MEM_SHELLS].where, BENCH_ON_NODE);
	assert_int_equal(object[MEM_SHELLS].node, 63);
	assert_int_equal(object[MEM_SOCKET].where, BENCH_INTERLEAVE);
	assert_int_equal(object[MEM_HEADS].where, BENCH_LOCAL);
	assert_int_equal(object[MEM_POOL].where, BENCH_LOCAL);
	bench_object_text(&object[MEM_SHELLS], text, sizeof(text));
	assert_string_equal(text, "63");
	bench_object_text(&object[MEM_PAGES], text, sizeof(text));
	assert_string_equal(text, "remote");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (!bench_objects_parse(wrong[i], object))
			fail_msg("'%s' was taken", wrong[i]);
	assert_true(bench_objects_look_like("shells=0"));
	assert_false(bench_objects_look_like("0,1"));
}

static void four_nodes_with_distances(void **state)
{
	static struct bench_topology t;
	char err[256] = "";

	(void)state;
	four_nodes("0-2");
	bench_topology_read(root, &t);
	assert_int_equal(t.online, 0xf);
	assert_int_equal(t.memory, 0x7);
	assert_int_equal(t.allowed, 0x7);
	for (unsigned int cpu = 0; cpu < 8; cpu++)
		assert_int_equal(bench_node_of_cpu(&t, cpu), cpu / 2);
	assert_int_equal(bench_node_of_cpu(&t, 8), -1);

	assert_int_equal(place(&t, "local", 1, err, sizeof(err)), 1 << 1);
	assert_int_equal(place(&t, "local", 3, err, sizeof(err)),
			 1 << 1); /* the nearest with memory */
	assert_int_equal(place(&t, "remote", 0, err, sizeof(err)), 1 << 2);
	assert_int_equal(place(&t, "remote", 2, err, sizeof(err)), 1 << 0); /* as far as 1 */
	assert_int_equal(place(&t, "remote", 3, err, sizeof(err)), 1 << 2);
	assert_int_equal(place(&t, "interleave", 0, err, sizeof(err)), 0x7);
	assert_int_equal(place(&t, "2", 0, err, sizeof(err)), 1 << 2);
	assert_string_equal(err, "");

	assert_int_equal(place(&t, "3", 0, err, sizeof(err)), 0);
	assert_string_equal(err, "node 3 has no memory; 0-2 have");
	assert_int_equal(place(&t, "7", 0, err, sizeof(err)), 0);
	assert_string_equal(err, "there is no node 7 here, but 0-3");
}

static void a_cpuset_takes_nodes_away(void **state)
{
	static struct bench_topology t;
	char err[256] = "";

	(void)state;
	four_nodes("0-1");
	bench_topology_read(root, &t);
	assert_int_equal(place(&t, "remote", 0, err, sizeof(err)),
			 1 << 1); /* 2 is farther and not ours */
	assert_int_equal(place(&t, "interleave", 0, err, sizeof(err)), 0x3);
	assert_int_equal(place(&t, "2", 0, err, sizeof(err)), 0);
	assert_string_equal(err,
			    "node 2 is not among those whose memory this process may use, 0-1: see "
			    "cpuset.mems of its cgroup, and numactl --show");
	assert_int_equal(place(&t, "local", 2, err, sizeof(err)), 0);
	assert_true(!strncmp(err, "node 2 is not among those", 25));

	four_nodes("1");
	bench_topology_read(root, &t);
	assert_int_equal(place(&t, "interleave", 0, err, sizeof(err)), 0);
	assert_string_equal(
		err,
		"interleave: this process has memory on one node alone, 1: ask for local, or use a "
		"machine with 2 nodes, or a virtual one");
	assert_int_equal(place(&t, "remote", 1, err, sizeof(err)), 0);
	assert_true(!strncmp(err, "remote: this process has memory on one node alone, 1", 52));
	assert_int_equal(place(&t, "remote", 0, err, sizeof(err)), 1 << 1);
}

static void a_kernel_without_nodes(void **state)
{
	static struct bench_topology t;
	char err[256] = "";

	(void)state;
	bench_topology_read(root, &t);
	assert_int_equal(t.online & t.memory & t.allowed, 1);
	assert_int_equal(bench_node_of_cpu(&t, 5), 0);
	assert_int_equal(place(&t, "local", 0, err, sizeof(err)), 1);
	assert_int_equal(place(&t, "remote", 0, err, sizeof(err)), 0);
	assert_true(strstr(err, "one node alone, 0"));
	assert_int_equal(bench_node_usable(&t, 1, err, sizeof(err)), BENCH_IMPOSSIBLE);
	assert_string_equal(err, "there is no node 1 here, but 0");
}

/* --- room */

static struct bench_need need_on(u64 nodemask, u64 zones, u64 rest)
{
	struct bench_need need = { .address_space = zones + rest };

	bench_need_add(need.zones, nodemask, zones);
	bench_need_add(need.rest, nodemask, rest);
	return need;
}

/* NEED is refused, and the reason begins with SAYS; or not refused, and SAYS is NULL. */
static void room(const struct bench_need *need, const char *says)
{
	char err[512] = "(none)";
	enum bench_status status = bench_room(root, need, err, sizeof(err));

	if (!says && status)
		fail_msg("refused: %s", err);
	if (says && (status != BENCH_IMPOSSIBLE || strncmp(err, says, strlen(says))))
		fail_msg("status %d: %s", status, err);
}

static void node_memory(unsigned int node, unsigned long free_mb, unsigned long file_mb)
{
	char path[128], text[512];

	snprintf(path, sizeof(path), NODES "/node%u/meminfo", node);
	snprintf(text, sizeof(text),
		 "Node %u MemTotal:       9999999 kB\nNode %u MemFree:        %lu kB\nNode %u "
		 "Active(anon): 5 kB\n"
		 "Node %u Active(file):   0 kB\nNode %u Inactive(file): %lu kB",
		 node, node, free_mb << 10, node, node, node, file_mb << 10);
	put(path, text);
}

static void a_node_has_room_or_not(void **state)
{
	struct bench_need both = need_on(3, 64 * MB, 0), one = need_on(2, 64 * MB, 10 * MB);

	(void)state;
	room(&both, NULL); /* nothing is told, nothing is refused */
	node_memory(0, 100, 0);
	node_memory(1, 30, 0);
	room(&both, "needs 32 MB on node 1, and 30 MB are free there: ");
	room(&one, "needs 74 MB on node 1, and 30 MB are free there: ");
	node_memory(1, 30, 44); /* what the page cache holds can be had */
	room(&both, NULL);
	room(&one, NULL);
}

static void huge_pages_are_there_or_not(void **state)
{
	struct bench_need need = need_on(2, 64 * MB, MB);

	(void)state;
	need.hugetlb = true;
	node_memory(1, 10, 0);
	put(NODES "/node1" HUGE_PAGES "/free_hugepages", "31");
	put(NODES "/node1" HUGE_PAGES "/nr_hugepages", "40");
	room(&need,
	     "needs 32 free huge pages of 2 MB on node 1 and has 31: as root, echo 41 > " NODES
	     "/node1" HUGE_PAGES "/nr_hugepages");
	put(NODES "/node1" HUGE_PAGES "/free_hugepages", "32");
	room(&need, NULL); /* and they are none of the 10 MB */
	need.hugetlb = false;
	room(&need, NULL);
	put(NODES "/node1" HUGE_PAGES "/free_hugepages", "31");
	room(&need, "needs 65 MB on node 1, and 10 MB are free there");

	/* A kernel without nodes tells of them in one place. */
	need = need_on(1, 64 * MB, MB);
	need.hugetlb = true;
	room(&need, "needs 32 free huge pages of 2 MB on node 0 and has 0: as root, echo 32 > "
		    "/sys/kernel/mm" HUGE_PAGES);
	put("/sys/kernel/mm" HUGE_PAGES "/free_hugepages", "32");
	room(&need, NULL);
}

static void cgroups_have_limits(void **state)
{
	struct bench_need need = need_on(1, 64 * MB, 0);

	(void)state;
	put("/proc/self/cgroup", "0::/a/b.scope");
	put("/sys/fs/cgroup/a/b.scope/memory.max", "max");
	put("/sys/fs/cgroup/a/b.scope/memory.current", "999999999999");
	room(&need, NULL);
	/* The one above it, which holds 40 MB, of which 8 and 2 are page cache. */
	put("/sys/fs/cgroup/a/memory.max", "104857600");
	put("/sys/fs/cgroup/a/memory.current", "41943040");
	room(&need, "needs 64 MB, and the limit of its cgroup, 100 MB, leaves 60: raise "
		    "/sys/fs/cgroup/a/memory.max");
	put("/sys/fs/cgroup/a/memory.stat",
	    "anon 1\nfile 5\ninactive_file 8388608\nactive_file 2097152\nslab 7");
	room(&need, NULL);
	put("/sys/fs/cgroup/a/b.scope/memory.max", "1048576"); /* less than it has already */
	room(&need, "needs 64 MB, and the limit of its cgroup, 1 MB, leaves 0: ");
	put("/sys/fs/cgroup/a/b.scope/memory.max", "max");

	/* The first version, seen from a container: the path is the host's, the mount is its own. */
	put("/proc/self/cgroup", "12:cpuset:/\n4:memory:/docker/abc\n0::/");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
	room(&need, NULL);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108863");
	room(&need, "needs 64 MB, and the limit of its cgroup, 64 MB, leaves 63: raise "
		    "/sys/fs/cgroup/memory/memory.limit");
}

/* The limit is the process's own; how much it has is the described machine's word. */
static void address_space_has_a_limit(void **state)
{
	struct bench_need need = need_on(1, 64 * MB, 0);
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	put("/proc/self/statm", "1000000000 5 5 5 0 5 0"); /* far beyond any limit */
	room(&need, NULL);
	limit = (struct rlimit){ 1ULL << 46, before.rlim_max };
	/* An emulator of user space keeps it to itself. */
	if (before.rlim_max < limit.rlim_cur || setrlimit(RLIMIT_AS, &limit) ||
	    getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != 1ULL << 46) {
		print_message("the limit of address space cannot be set here\n");
		skip();
	}
	put("/proc/self/statm", "1 1 1 1 0 1 0");
	room(&need, NULL);
	put("/proc/self/statm", "99999999999 5 5 5 0 5 0");
	room(&need, "needs 64 MB of address space, and a limit of 67108864 MB (RLIMIT_AS) leaves "
		    "0: ulimit -v unlimited");
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

static void bytes_are_spread(void **state)
{
	u64 on[BENCH_MAX_NODES] = { 0 };

	(void)state;
	bench_need_add(on, 1ULL << 63 | 1, 100);
	bench_need_add(on, 1, 7);
	assert_int_equal(on[0], 57);
	assert_int_equal(on[63], 50);
	assert_int_equal(on[1], 0);
}

#define described(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_bits),
		cmocka_unit_test(numbers_stand_behind_their_key),
		cmocka_unit_test(objects_are_told_by_name),
		described(four_nodes_with_distances),
		described(a_cpuset_takes_nodes_away),
		described(a_kernel_without_nodes),
		described(a_node_has_room_or_not),
		described(huge_pages_are_there_or_not),
		described(cgroups_have_limits),
		described(address_space_has_a_limit),
		cmocka_unit_test(bytes_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
