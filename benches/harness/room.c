/* SPDX-License-Identifier: MIT */
#include "benches/harness/room.h"
#include "benches/harness/sysfile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MB(bytes)    ((unsigned long long)(((bytes) + (1 << 20) - 1) >> 20)) /* of a need or a limit */
#define MB_OF(bytes) ((unsigned long long)((bytes) >> 20)) /* of what is left */
#define HUGE_BYTES   (2ULL << 20)
#define HUGE_DIR     "hugepages/hugepages-2048kB"
#define NODE_DIR     "/sys/devices/system/node"
#define TEXT_MAX     8192

/* The cgroup file systems that Linux has: their mount points, names, and what "no limit" reads as. */
struct cgroup_kind {
	const char *mount;
	const char *line; /* what is before the path in /proc/self/cgroup */
	const char *limit, *usage;
	const char *file_keys[2]; /* page cache in memory.stat */
};

static const struct cgroup_kind cgroup_kinds[] = {
	{ "/sys/fs/cgroup",
	  "0::",
	  "memory.max",
	  "memory.current",
	  { "inactive_file ", "active_file " } },
	{ "/sys/fs/cgroup/memory",
	  ":memory:",
	  "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  { "total_inactive_file ", "total_active_file " } },
};

void bench_need_add(u64 *to, u64 nodemask, u64 bytes)
{
	unsigned int nr = (unsigned int)__builtin_popcountll(nodemask);

	for (u64 left = nodemask; left; left &= left - 1)
		to[__builtin_ctzll(left)] += DIV_ROUND_UP(bytes, nr);
}

static enum bench_status fits_address_space(const char *root, const struct bench_need *need,
					    char *err, size_t errlen)
{
	char text[TEXT_MAX];
	struct rlimit limit;
	u64 used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    !sysfile_read(root, "/proc/self/statm", text, sizeof(text)))
		return BENCH_OK;
	used = strtoull(text, NULL, 10) * (u64)sysconf(_SC_PAGESIZE);
	if (need->address_space + used <= limit.rlim_cur)
		return BENCH_OK;
	snprintf(err, errlen,
		 "needs %llu MB of address space, and a limit of %llu MB (RLIMIT_AS) leaves %llu: "
		 "ulimit -v unlimited",
		 MB(need->address_space), MB(limit.rlim_cur),
		 MB_OF(limit.rlim_cur - min(limit.rlim_cur, used)));
	return BENCH_IMPOSSIBLE;
}

static u64 sum(const u64 *by_node)
{
	u64 all = 0;

	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++)
		all += by_node[node];
	return all;
}

/* What the limit of one cgroup, DIR, leaves; false: it has none. */
static bool cgroup_leaves(const char *root, const struct cgroup_kind *kind, const char *dir,
			  u64 *limit, u64 *leaves)
{
	char path[PATH_MAX], text[TEXT_MAX];
	u64 usage = 0, file, reclaimable = 0;

	snprintf(path, sizeof(path), "%s%s/%s", kind->mount, dir, kind->limit);
	if (!sysfile_read(root, path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return false;
	*limit = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "%s%s/%s", kind->mount, dir, kind->usage);
	if (sysfile_read(root, path, text, sizeof(text)))
		usage = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "%s%s/memory.stat", kind->mount, dir);
	if (sysfile_read(root, path, text, sizeof(text)))
		for (unsigned int i = 0; i < ARRAY_SIZE(kind->file_keys); i++)
			if (sysfile_number(text, kind->file_keys[i], &file))
				reclaimable += file;
	usage -= min(usage, reclaimable);
	*leaves = *limit - min(*limit, usage);
	return true;
}

/* The process's cgroup of KIND and all above it: a limit anywhere holds. */
static enum bench_status fits_cgroups(const char *root, const struct cgroup_kind *kind, u64 bytes,
				      char *err, size_t errlen)
{
	char text[TEXT_MAX], dir[PATH_MAX / 2], *at, *slash;
	u64 limit, leaves;

	if (!sysfile_read(root, "/proc/self/cgroup", text, sizeof(text)) ||
	    !(at = strstr(text, kind->line)))
		return BENCH_OK;
	at += strlen(kind->line);
	at[strcspn(at, "\n")] = '\0';
	snprintf(dir, sizeof(dir), "%s", strcmp(at, "/") ? at : "");
	for (;;) {
		if (cgroup_leaves(root, kind, dir, &limit, &leaves) && bytes > leaves) {
			snprintf(err, errlen,
				 "needs %llu MB, and the limit of its cgroup, %llu MB, leaves "
				 "%llu: raise %s%s/%s, or take fewer pages (--skb_pages)",
				 MB(bytes), MB(limit), MB_OF(leaves), kind->mount, dir,
				 kind->limit);
			return BENCH_IMPOSSIBLE;
		}
		slash = strrchr(dir, '/');
		if (!slash)
			return BENCH_OK;
		*slash = '\0';
	}
}

/* Bytes that may be had on NODE without the kernel killing for them; false: it does not tell. */
static bool node_leaves(const char *root, unsigned int node, u64 *out)
{
	static const char *const keys[] = { "MemFree:", "Active(file):", "Inactive(file):" };
	char path[96], text[TEXT_MAX];
	u64 kb, all = 0;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/meminfo", node);
	if (!sysfile_read(root, path, text, sizeof(text))) {
		if (node || !sysfile_read(root, "/proc/meminfo", text, sizeof(text)) ||
		    !sysfile_number(text, "MemAvailable:", &kb))
			return false;
		*out = kb << 10;
		return true;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!sysfile_number(text, keys[i], &kb))
			return false;
		all += kb << 10;
	}
	*out = all;
	return true;
}

/* Where NODE's free huge pages are told, without the file's name. */
static void huge_dir(const char *root, unsigned int node, char *out, size_t len)
{
	char text[64], path[128];

	snprintf(out, len, NODE_DIR "/node%u/" HUGE_DIR, node);
	snprintf(path, sizeof(path), "%s/free_hugepages", out);
	if (!node && !sysfile_read(root, path, text, sizeof(text)))
		snprintf(out, len, "/sys/kernel/mm/" HUGE_DIR);
}

static u64 number_in(const char *root, const char *dir, const char *name)
{
	char path[160], text[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return sysfile_read(root, path, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

/* BENCH_OK if the free huge pages hold all page memory. */
static enum bench_status fits_huge(const char *root, const struct bench_need *need, char *err,
				   size_t errlen)
{
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++) {
		u64 pages = DIV_ROUND_UP(need->zones[node], HUGE_BYTES), free;
		char dir[96];

		if (!pages)
			continue;
		huge_dir(root, node, dir, sizeof(dir));
		free = number_in(root, dir, "free_hugepages");
		if (pages <= free)
			continue;
		snprintf(
			err, errlen,
			"needs %llu free huge pages of 2 MB on node %u and has %llu: as root, echo "
			"%llu > %s/nr_hugepages, or leave --skb_huge",
			(unsigned long long)pages, node, (unsigned long long)free,
			(unsigned long long)(number_in(root, dir, "nr_hugepages") + pages - free),
			dir);
		return BENCH_IMPOSSIBLE;
	}
	return BENCH_OK;
}

static enum bench_status fits_nodes(const char *root, const struct bench_need *need, bool huge,
				    char *err, size_t errlen)
{
	for (unsigned int node = 0; node < BENCH_MAX_NODES; node++) {
		u64 bytes = need->rest[node] + (huge ? 0 : need->zones[node]), leaves;

		if (!bytes || !node_leaves(root, node, &leaves) || bytes <= leaves)
			continue;
		snprintf(err, errlen,
			 "needs %llu MB on node %u, and %llu MB are free there: end what holds the "
			 "memory, or take fewer pages (--skb_pages)",
			 MB(bytes), node, MB_OF(leaves));
		return BENCH_IMPOSSIBLE;
	}
	return BENCH_OK;
}

enum bench_status bench_room(const char *root, const struct bench_need *need, char *err,
			     size_t errlen)
{
	enum bench_status status = fits_address_space(root, need, err, errlen);
	char why[512];
	bool huge;
	u64 bytes;

	if (status)
		return status;
	huge = !fits_huge(root, need, why, sizeof(why));
	if (need->hugetlb && !huge) {
		snprintf(err, errlen, "%s", why);
		return BENCH_IMPOSSIBLE;
	}
	bytes = sum(need->rest) + (huge ? 0 : sum(need->zones));
	for (unsigned int i = 0; i < ARRAY_SIZE(cgroup_kinds) && !status; i++)
		status = fits_cgroups(root, &cgroup_kinds[i], bytes, err, errlen);
	return status ? status : fits_nodes(root, need, huge, err, errlen);
}
