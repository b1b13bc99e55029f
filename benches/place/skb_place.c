/* SPDX-License-Identifier: MIT */
/*
 * Which CPUs the roles of a case run on, by a policy, from the machine's topology as hwloc tells it.
 *
 *   policy      the roles are
 *   same-core   all on one CPU: one hardware thread, which they cannot share but by turns
 *   smt         hardware threads of one core
 *   same-llc    on different cores below one last-level cache
 *   cross-llc   each below a last-level cache of its own, of as few nodes as possible
 *   cross-node  each on a node of its own that has memory
 *
 * Prints one JSON object: the CPUs in the order of the roles (of same-core the one CPU), and the node that is local to each. What the machine cannot
 * do is refused in one line with status 4, wrong usage with 2. Only CPUs that this process may use are taken. Finding out
 * costs some 5 ms, which is why the driver asks once and hands a list to the programs that are timed.
 *
 * HWLOC_SYNTHETIC, hwloc's own variable, replaces the machine by a described one: how this is tested.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROLES  64
#define IMPOSSIBLE 4
#define USAGE	   2

enum policy { SAME_CORE, SMT, SAME_LLC, CROSS_LLC, CROSS_NODE, NR_POLICIES };

static const char *const policy_words[] = { "same-core", "smt", "same-llc", "cross-llc",
					    "cross-node" };

struct place {
	hwloc_topology_t topology;
	hwloc_const_bitmap_t allowed;
	enum policy policy;
	unsigned int roles, nr;
	hwloc_obj_t pu[MAX_ROLES]; /* the first NR are chosen */
};

static int refuse(const struct place *p, const char *needs, unsigned int has)
{
	fprintf(stderr, "skb_place: %s: %u roles need %s, and there %s %u\n",
		policy_words[p->policy], p->roles, needs, has == 1 ? "is" : "are", has);
	return IMPOSSIBLE;
}

static bool is_allowed(const struct place *p, hwloc_obj_t pu)
{
	return hwloc_bitmap_isset(p->allowed, pu->os_index);
}

/*
 * The object of TYPE inside SET that follows PREV (NULL: the first), found from the hardware threads: where one of a core's
 * is offline, hwloc has cores and caches at several depths, and does not go through such a type by itself.
 */
static hwloc_obj_t next_in(const struct place *p, hwloc_const_cpuset_t set, hwloc_obj_type_t type,
			   hwloc_obj_t prev)
{
	bool behind = !prev;

	for (hwloc_obj_t pu = NULL;
	     (pu = hwloc_get_next_obj_inside_cpuset_by_type(p->topology, set, HWLOC_OBJ_PU, pu));) {
		hwloc_obj_t at = hwloc_get_ancestor_obj_by_type(p->topology, type, pu);

		if (at && at == prev)
			behind = true;
		else if (at && behind && hwloc_bitmap_isincluded(at->cpuset, set))
			return at;
	}
	return NULL;
}

static hwloc_const_cpuset_t machine(const struct place *p)
{
	return hwloc_topology_get_topology_cpuset(p->topology);
}

/* The allowed hardware threads of CORE; at most ROOM into PU. */
static unsigned int threads_of(const struct place *p, hwloc_obj_t core, hwloc_obj_t *pu,
			       unsigned int room)
{
	unsigned int nr = 0;

	for (hwloc_obj_t at = NULL; nr < room;) {
		at = hwloc_get_next_obj_inside_cpuset_by_type(p->topology, core->cpuset,
							      HWLOC_OBJ_PU, at);
		if (!at)
			break;
		if (is_allowed(p, at))
			pu[nr++] = at;
	}
	return nr;
}

/* One allowed hardware thread of each core inside SET. */
static unsigned int cores_in(const struct place *p, hwloc_const_cpuset_t set, hwloc_obj_t *pu,
			     unsigned int room)
{
	unsigned int nr = 0;

	for (hwloc_obj_t core = NULL; nr < room && (core = next_in(p, set, HWLOC_OBJ_CORE, core));)
		nr += threads_of(p, core, pu + nr, 1);
	return nr;
}

/* True if some cache of TYPE serves more than one core. */
static bool serves_several(const struct place *p, hwloc_obj_type_t type)
{
	for (hwloc_obj_t at = NULL; (at = next_in(p, machine(p), type, at));) {
		hwloc_obj_t first = next_in(p, at->cpuset, HWLOC_OBJ_CORE, NULL);

		if (first && next_in(p, at->cpuset, HWLOC_OBJ_CORE, first))
			return true;
	}
	return false;
}

/*
 * The type of the last-level cache: the third level and beyond; the second where cores share it, since a hypervisor that
 * shows nothing behind a private one does not tell.
 */
static hwloc_obj_type_t llc_type(const struct place *p)
{
	static const hwloc_obj_type_t from_far[] = { HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE,
						     HWLOC_OBJ_L3CACHE };

	for (unsigned int i = 0; i < sizeof(from_far) / sizeof(from_far[0]); i++)
		if (next_in(p, machine(p), from_far[i], NULL))
			return from_far[i];
	return serves_several(p, HWLOC_OBJ_L2CACHE) ? HWLOC_OBJ_L2CACHE : HWLOC_OBJ_TYPE_MAX;
}

static int no_cache(const struct place *p)
{
	fprintf(stderr,
		"skb_place: %s: the machine tells of no cache that cores share: name the CPUs with "
		"--cpus\n",
		policy_words[p->policy]);
	return IMPOSSIBLE;
}

/* However many roles there are: whether they can run by turns is the case's business. */
static int place_same_core(struct place *p)
{
	p->nr = cores_in(p, machine(p), p->pu, 1);
	return p->nr ? 0 : refuse(p, "an allowed core", 0);
}

static int place_smt(struct place *p)
{
	unsigned int most = 0;

	for (hwloc_obj_t core = NULL; (core = next_in(p, machine(p), HWLOC_OBJ_CORE, core));) {
		p->nr = threads_of(p, core, p->pu, p->roles);
		if (p->nr == p->roles)
			return 0;
		most = p->nr > most ? p->nr : most;
	}
	return refuse(p, "as many allowed hardware threads of one core", most);
}

static int place_same_llc(struct place *p)
{
	hwloc_obj_type_t type = llc_type(p);
	unsigned int most = 0;

	if (type == HWLOC_OBJ_TYPE_MAX)
		return no_cache(p);
	for (hwloc_obj_t llc = NULL; (llc = next_in(p, machine(p), type, llc));) {
		p->nr = cores_in(p, llc->cpuset, p->pu, p->roles);
		if (p->nr == p->roles)
			return 0;
		most = p->nr > most ? p->nr : most;
	}
	return refuse(p, "as many allowed cores below one last-level cache", most);
}

/* One hardware thread below each cache of TYPE inside SET. */
static unsigned int caches_in(const struct place *p, hwloc_obj_type_t type,
			      hwloc_const_cpuset_t set, hwloc_obj_t *pu, unsigned int room)
{
	unsigned int nr = 0;

	for (hwloc_obj_t llc = NULL; nr < room && (llc = next_in(p, set, type, llc));)
		nr += cores_in(p, llc->cpuset, pu + nr, 1);
	return nr;
}

static int place_cross_llc(struct place *p)
{
	hwloc_obj_type_t type = llc_type(p);

	if (type == HWLOC_OBJ_TYPE_MAX)
		return no_cache(p);
	/* Within one node if any has as many, so that memory is as near for each. */
	for (hwloc_obj_t node = NULL;
	     (node = hwloc_get_next_obj_by_type(p->topology, HWLOC_OBJ_NUMANODE, node));) {
		p->nr = caches_in(p, type, node->cpuset, p->pu, p->roles);
		if (p->nr == p->roles)
			return 0;
	}
	p->nr = caches_in(p, type, machine(p), p->pu, p->roles);
	return p->nr == p->roles ? 0
				 : refuse(p, "as many last-level caches with allowed cores", p->nr);
}

/*
 * True if NODE is PU's own. The kernel is asked, since hwloc also counts to a PU a node without CPUs that it is the nearest to.
 */
static bool is_home(const struct place *p, hwloc_obj_t pu, hwloc_obj_t node)
{
	char path[96];

	if (hwloc_bitmap_weight(pu->nodeset) == 1 || !hwloc_topology_is_thissystem(p->topology))
		return hwloc_bitmap_isset(pu->nodeset, node->os_index);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%u", pu->os_index,
		 node->os_index);
	return !access(path, F_OK);
}

static int place_cross_node(struct place *p)
{
	/* A node without CPUs has none inside its set. */
	for (hwloc_obj_t node = NULL;
	     p->nr < p->roles &&
	     (node = hwloc_get_next_obj_by_type(p->topology, HWLOC_OBJ_NUMANODE, node));)
		if (node->attr->numanode.local_memory &&
		    cores_in(p, node->cpuset, p->pu + p->nr, 1) && is_home(p, p->pu[p->nr], node))
			p->nr++;
	return p->nr == p->roles ? 0
				 : refuse(p, "as many nodes with memory and allowed cores", p->nr);
}

/* The number of the node that is local to PU. */
static unsigned int node_of(const struct place *p, hwloc_obj_t pu)
{
	for (hwloc_obj_t node = NULL;
	     (node = hwloc_get_next_obj_by_type(p->topology, HWLOC_OBJ_NUMANODE, node));)
		if (is_home(p, pu, node))
			return node->os_index;
	return 0;
}

static void print_list(const struct place *p, const char *key, bool nodes)
{
	printf("\"%s\": [", key);
	for (unsigned int i = 0; i < p->nr; i++)
		printf("%s%u", i ? ", " : "", nodes ? node_of(p, p->pu[i]) : p->pu[i]->os_index);
	printf("]");
}

/* CPUs that this process may use; of a described machine, all of them. */
static hwloc_bitmap_t allowed_cpus(hwloc_topology_t topology)
{
	hwloc_bitmap_t set = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));

	if (set && hwloc_topology_is_thissystem(topology)) {
		hwloc_bitmap_t mine = hwloc_bitmap_alloc();

		if (mine && !hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS))
			hwloc_bitmap_and(set, set, mine);
		hwloc_bitmap_free(mine);
	}
	return set;
}

static int usage(const char *arg, const char *why)
{
	fprintf(stderr, "skb_place: %s: %s\n", arg, why);
	return USAGE;
}

static int parse(struct place *p, int argc, char **argv)
{
	bool given = false;

	p->roles = 2;
	for (int i = 1; i < argc; i++) {
		char *end;

		if (!strncmp(argv[i], "--policy=", 9)) {
			unsigned int k = 0;

			while (k < NR_POLICIES && strcmp(argv[i] + 9, policy_words[k]))
				k++;
			if (k == NR_POLICIES)
				return usage(argv[i], "same-core, smt, same-llc, cross-llc or "
						      "cross-node is wanted");
			p->policy = (enum policy)k;
			given = true;
		} else if (!strncmp(argv[i], "--roles=", 8)) {
			unsigned long n = strtoul(argv[i] + 8, &end, 10);

			if (argv[i][8] < '0' || argv[i][8] > '9' || *end || !n || n > MAX_ROLES)
				return usage(argv[i], "1 to 64 roles");
			p->roles = (unsigned int)n;
		} else {
			return usage(argv[i],
				     "no such flag: --policy=WORD and --roles=N are there");
		}
	}
	return given ? 0 : usage("--policy", "is missing");
}

int main(int argc, char **argv)
{
	static int (*const place[])(struct place * p) = { place_same_core, place_smt,
							  place_same_llc, place_cross_llc,
							  place_cross_node };
	struct place p = { .nr = 0 };
	int status = parse(&p, argc, argv);

	if (status)
		return status;
	if (hwloc_topology_init(&p.topology) || hwloc_topology_load(p.topology)) {
		fprintf(stderr, "skb_place: the machine's topology cannot be read: %s\n",
			strerror(errno));
		return IMPOSSIBLE;
	}
	hwloc_bitmap_t allowed = allowed_cpus(p.topology);

	p.allowed = allowed;
	status = allowed ? place[p.policy](&p) : IMPOSSIBLE;
	if (!status) {
		printf("{\"schema\": \"skbench-place-1\", \"policy\": \"%s\", ",
		       policy_words[p.policy]);
		print_list(&p, "cpus", false);
		printf(", ");
		print_list(&p, "nodes", true);
		printf("}\n");
	}
	hwloc_bitmap_free(allowed);
	hwloc_topology_destroy(p.topology);
	if (!status && (fflush(stdout) || ferror(stdout)))
		return usage("standard output", strerror(errno));
	return status;
}
