/* SPDX-License-Identifier: MIT */
#include "benches/harness/nodes.h"
#include "benches/harness/names.h"
#include "benches/harness/sysfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_DIR "/sys/devices/system/node"
#define LIST_MAX 256 /* characters of a list of nodes in a sentence */

const char *const bench_object_words[NR_MEM_KINDS] = {
	[MEM_SHELLS] = "shells", [MEM_HEADS] = "heads",	  [MEM_PAGES] = "pages",
	[MEM_POOL] = "pool",	 [MEM_SOCKET] = "socket",
};

static const char *const where_words[] = {
	[BENCH_LOCAL] = "local", [BENCH_REMOTE] = "remote", [BENCH_INTERLEAVE] = "interleave"
};

static unsigned int lowest(u64 mask)
{
	return (unsigned int)__builtin_ctzll(mask);
}

/* --- the machine */

static void read_node(const char *root, unsigned int node, struct bench_topology *out)
{
	char path[96], text[4096], *at = text, *end;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/cpulist", node);
	if (sysfile_read(root, path, text, sizeof(text)))
		for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (sysfile_lists(text, cpu))
				CPU_SET(cpu, &out->cpus[node]);
	snprintf(path, sizeof(path), NODE_DIR "/node%u/distance", node);
	if (!sysfile_read(root, path, text, sizeof(text)))
		return;
	/* One for each node that is online, in their order. */
	for (u64 left = out->online; left; left &= left - 1) {
		unsigned long distance = strtoul(at, &end, 10);

		if (end == at)
			return;
		out->distance[node][lowest(left)] = (u8)min(distance, 255UL);
		at = end;
	}
}

void bench_topology_read(const char *root, struct bench_topology *out)
{
	char text[8192], *list;

	memset(out, 0, sizeof(*out));
	if (sysfile_read(root, NODE_DIR "/online", text, sizeof(text)))
		out->online = sysfile_bits(text);
	if (!out->online) {
		out->online = out->memory = out->allowed = 1;
		CPU_ZERO(&out->cpus[0]);
		for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, &out->cpus[0]);
		return;
	}
	if (sysfile_read(root, NODE_DIR "/has_memory", text, sizeof(text)))
		out->memory = sysfile_bits(text);
	if (!out->memory)
		out->memory = out->online;
	out->allowed = ~0ULL;
	if (sysfile_read(root, "/proc/self/status", text, sizeof(text)) &&
	    (list = strstr(text, "Mems_allowed_list:")))
		out->allowed = sysfile_bits(list + strcspn(list, "0123456789"));
	for (u64 left = out->online; left; left &= left - 1)
		read_node(root, lowest(left), out);
}

int bench_node_of_cpu(const struct bench_topology *t, unsigned int cpu)
{
	for (u64 left = t->online; left; left &= left - 1)
		if (CPU_ISSET(cpu, &t->cpus[lowest(left)]))
			return (int)lowest(left);
	return -1;
}

enum bench_status bench_node_usable(const struct bench_topology *t, unsigned int node, char *err,
				    size_t errlen)
{
	char list[LIST_MAX];
	u64 bit = 1ULL << node;

	if (t->online & t->memory & t->allowed & bit)
		return BENCH_OK;
	if (!(t->online & bit)) {
		sysfile_list(t->online, list, sizeof(list));
		snprintf(err, errlen, "there is no node %u here, but %s", node, list);
	} else if (!(t->memory & bit)) {
		sysfile_list(t->memory, list, sizeof(list));
		snprintf(err, errlen, "node %u has no memory; %s ha%s", node, list,
			 t->memory & (t->memory - 1) ? "ve" : "s");
	} else {
		sysfile_list(t->allowed & t->memory, list, sizeof(list));
		snprintf(err, errlen,
			 "node %u is not among those whose memory this process may use, %s: see "
			 "cpuset.mems of its cgroup, and numactl --show",
			 node, list);
	}
	return BENCH_IMPOSSIBLE;
}

/* --- what is asked for */

bool bench_objects_look_like(const char *text)
{
	return strchr(text, '=');
}

static bool is_word(const char *word, const char *text, size_t len)
{
	return strlen(word) == len && !memcmp(word, text, len);
}

static int parse_where(const char *text, size_t len, struct bench_object *out)
{
	long node;

	for (unsigned int w = 0; w < ARRAY_SIZE(where_words); w++)
		if (is_word(where_words[w], text, len)) {
			*out = (struct bench_object){ .where = (enum bench_where)w };
			return 0;
		}
	if (bench_parse_long(text, len, &node) || node < 0 || node >= BENCH_MAX_NODES)
		return -EINVAL;
	*out = (struct bench_object){ BENCH_ON_NODE, (unsigned int)node };
	return 0;
}

int bench_objects_parse(const char *text, struct bench_object *object)
{
	bool given[NR_MEM_KINDS] = { false };

	for (unsigned int k = 0; k < NR_MEM_KINDS; k++)
		object[k] = (struct bench_object){ .where = BENCH_LOCAL };
	for (;;) {
		size_t len = strcspn(text, ","), left = strcspn(text, "=,");
		unsigned int k = 0;

		while (k < NR_MEM_KINDS && !is_word(bench_object_words[k], text, left))
			k++;
		if (k == NR_MEM_KINDS || given[k] || left == len ||
		    parse_where(text + left + 1, len - left - 1, &object[k]))
			return -EINVAL;
		given[k] = true;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

void bench_object_text(const struct bench_object *object, char *out, size_t len)
{
	if (object->where == BENCH_ON_NODE)
		snprintf(out, len, "%u", object->node);
	else
		snprintf(out, len, "%s", where_words[object->where]);
}

/* Of the nodes in MASK the nearest to HOME, or the farthest; the lowest of several. */
static unsigned int by_distance(const struct bench_topology *t, unsigned int home, u64 mask,
				bool farthest)
{
	unsigned int best = lowest(mask);

	for (u64 left = mask; left; left &= left - 1) {
		unsigned int node = lowest(left);
		u8 distance = t->distance[home][node], so_far = t->distance[home][best];

		if (farthest ? distance > so_far : distance < so_far)
			best = node;
	}
	return best;
}

/* The node that is local to HOME: HOME itself, or the nearest one with memory. */
static unsigned int local_node(const struct bench_topology *t, unsigned int home)
{
	return t->memory >> home & 1 ? home : by_distance(t, home, t->memory, false);
}

static enum bench_status one_node_alone(const struct bench_object *object, u64 usable, char *err,
					size_t errlen)
{
	char list[LIST_MAX];

	sysfile_list(usable, list, sizeof(list));
	snprintf(err, errlen,
		 "%s: this process has memory on one node alone, %s: ask for local, or use a "
		 "machine with 2 nodes, or a virtual one",
		 where_words[object->where], list);
	return BENCH_IMPOSSIBLE;
}

enum bench_status bench_object_place(const struct bench_topology *t,
				     const struct bench_object *object, unsigned int home,
				     u64 *nodemask, char *err, size_t errlen)
{
	u64 usable = t->online & t->memory & t->allowed;
	u64 others = usable & ~(1ULL << local_node(t, home));
	unsigned int node;

	switch (object->where) {
	case BENCH_LOCAL:
		node = local_node(t, home);
		break;
	case BENCH_ON_NODE:
		node = object->node;
		break;
	case BENCH_REMOTE:
		if (!others)
			return one_node_alone(object, usable, err, errlen);
		node = by_distance(t, home, others, true);
		break;
	default:
		*nodemask = usable;
		return usable & (usable - 1) ? BENCH_OK
					     : one_node_alone(object, usable, err, errlen);
	}
	*nodemask = 1ULL << node;
	return bench_node_usable(t, node, err, errlen);
}
