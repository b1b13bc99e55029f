/* SPDX-License-Identifier: MIT */
#include "benches/harness/session.h"
#include "benches/harness/room.h"
#include "benches/harness/sysfile.h"

#include "skb/obj.h"
#include "skb/page_alloc.h"

#include <errno.h>
#include <string.h>

#define CPU_DIR "/sys/devices/system/cpu"

/* Address space that slub's model reserves for each node of the model, and pages beside the zones' that any case has. */
#define SLUB_RESERVED ((u64)1056 << 20)
#define REST_BYTES    ((u64)16 << 20)

static enum bench_status check_cpu(const char *text, unsigned int cpu,
				   const struct bench_cpus *allowed)
{
	char online[4096], present[4096];
	cpu_set_t set; /* not ALLOWED, which are not more than there are roles */

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	if (CPU_ISSET(cpu, &set))
		return BENCH_OK;
	if (sysfile_read("", CPU_DIR "/online", online, sizeof(online)) &&
	    sysfile_read("", CPU_DIR "/present", present, sizeof(present)) &&
	    sysfile_lists(present, cpu) && !sysfile_lists(online, cpu))
		return bench_fail(BENCH_IMPOSSIBLE, NULL,
				  "--skb_cpus=%s: CPU %u is offline: as root, echo 1 > " CPU_DIR
				  "/cpu%u/online",
				  text, cpu, cpu);
	return bench_fail(BENCH_IMPOSSIBLE, NULL,
			  "--skb_cpus=%s: CPU %u is not among the %u that this process may use "
			  "(taskset -p, the cgroup's cpuset)",
			  text, cpu, allowed->nr);
}

static enum bench_status place_cpus(const char *text, struct bench_place *out)
{
	struct bench_cpus allowed;
	enum bench_status status = BENCH_OK;

	if (bench_cpus_allowed(&allowed) || !allowed.nr)
		return bench_fail(BENCH_IMPOSSIBLE, NULL,
				  "the CPUs of this process cannot be read: %s", strerror(errno));
	out->cpus = allowed;
	if (!text)
		return BENCH_OK;
	if (bench_cpus_parse(text, CPU_SETSIZE, false, &out->cpus))
		return bench_fail(BENCH_USAGE, NULL,
				  "--skb_cpus=%s: a list such as 0,2-3, each CPU once, at most %u",
				  text, SKB_NR_CPUS);
	for (unsigned int i = 0; i < out->cpus.nr && !status; i++)
		status = check_cpu(text, out->cpus.cpu[i], &allowed);
	return status;
}

/* The node of the model for NODE of the machine: the one that it has, or a new one; -1 if there are no more. */
static int take_home(struct bench_place *place, unsigned int node)
{
	for (unsigned int i = 0; i < place->mem.nr; i++)
		if (place->home[i] == node)
			return (int)i;
	if (place->mem.nr == SKB_NR_NODES)
		return -1;
	place->home[place->mem.nr] = node;
	return (int)place->mem.nr++;
}

/* The node of each CPU is its role's. */
static void nodes_of_cpus(const struct bench_topology *t, struct bench_place *out)
{
	out->nodes.nr = out->cpus.nr;
	for (unsigned int i = 0; i < out->cpus.nr; i++) {
		int node = bench_node_of_cpu(t, out->cpus.cpu[i]);

		out->nodes.cpu[i] =
			node < 0 ? (unsigned int)__builtin_ctzll(t->online) : (unsigned int)node;
	}
}

/* Each object of each home where it was asked for. */
static enum bench_status place_objects(const char *text, const struct bench_topology *t,
				       struct bench_place *out)
{
	char err[512];

	for (unsigned int k = 0; k < NR_MEM_KINDS; k++)
		for (unsigned int i = 0; i < out->mem.nr; i++)
			if (bench_object_place(t, &out->object[k], out->home[i],
					       &out->mem.nodemask[k][i], err, sizeof(err)))
				return bench_fail(BENCH_IMPOSSIBLE, NULL, "--skb_nodes=%s: %s: %s",
						  text, bench_object_words[k], err);
	return BENCH_OK;
}

static enum bench_status place_nodes(const char *text, struct bench_place *out)
{
	struct bench_topology t;
	char err[512];
	u64 usable;

	bench_topology_read("", &t);
	usable = t.online & t.memory & t.allowed;
	/* Where nothing is asked for all lies on one node: 0, or the first that this process may use. */
	out->nodes = (struct bench_cpus){
		.nr = 1, .cpu = { usable ? (unsigned int)__builtin_ctzll(usable) : 0 }
	};
	if (text && bench_objects_look_like(text)) {
		if (bench_objects_parse(text, out->object))
			return bench_fail(
				BENCH_USAGE, NULL,
				"--skb_nodes=%s: OBJECT=WHERE[,...] is wanted: shells, heads, "
				"pages, pool or socket, each once, on local, remote, interleave "
				"or a node from 0 to %u",
				text, BENCH_MAX_NODES - 1);
		out->by_object = out->mem.by_kind = true;
		nodes_of_cpus(&t, out);
	} else if (text && bench_cpus_parse(text, BENCH_MAX_NODES, true, &out->nodes)) {
		return bench_fail(
			BENCH_USAGE, NULL,
			"--skb_nodes=%s: a list of nodes from 0 to %u, one for each role, or "
			"OBJECT=WHERE[,...]",
			text, BENCH_MAX_NODES - 1);
	}
	for (unsigned int i = 0; i < out->nodes.nr; i++) {
		if (take_home(out, out->nodes.cpu[i]) < 0)
			return bench_fail(
				BENCH_IMPOSSIBLE, NULL,
				"the roles' CPUs or nodes are of more than the %u nodes that one "
				"process tells apart: name fewer (--skb_cpus, --skb_nodes)",
				SKB_NR_NODES);
		if (text && !out->by_object &&
		    bench_node_usable(&t, out->nodes.cpu[i], err, sizeof(err)))
			return bench_fail(BENCH_IMPOSSIBLE, NULL, "--skb_nodes=%s: %s", text, err);
	}
	if (out->by_object)
		return place_objects(text, &t, out);
	for (unsigned int k = 0; k < NR_MEM_KINDS; k++)
		for (unsigned int i = 0; i < out->mem.nr; i++)
			out->mem.nodemask[k][i] = 1ULL << out->home[i];
	return BENCH_OK;
}

enum bench_status bench_place_init(const struct bench_options *o, struct bench_place *out)
{
	enum bench_status status;

	memset(out, 0, sizeof(*out));
	out->oversubscribe = o->oversubscribe;
	out->mem.hugetlb = o->huge;
	status = place_cpus(o->cpus, out);
	return status ? status : place_nodes(o->nodes, out);
}

unsigned int bench_place_cpu(const struct bench_place *place, unsigned int role)
{
	return place->cpus.cpu[role % place->cpus.nr];
}

unsigned int bench_place_node(const struct bench_place *place, unsigned int role)
{
	return place->nodes.cpu[role % place->nodes.nr];
}

unsigned int bench_place_home(const struct bench_place *place, unsigned int role)
{
	unsigned int node = bench_place_node(place, role), i = 0;

	while (place->home[i] != node)
		i++;
	return i;
}

enum bench_status bench_place_fits(const struct bench_place *place, unsigned int nr_roles,
				   char *err, size_t errlen)
{
	if (nr_roles > place->cpus.nr && !place->oversubscribe) {
		snprintf(err, errlen,
			 "needs %u CPUs and has %u: give more with --skb_cpus, or let roles share "
			 "one with --skb_oversubscribe",
			 nr_roles, place->cpus.nr);
		return BENCH_IMPOSSIBLE;
	}
	if (!place->by_object && place->nodes.nr > 1 && nr_roles > place->nodes.nr) {
		snprintf(err, errlen, "has %u roles, and --skb_nodes names %u nodes", nr_roles,
			 place->nodes.nr);
		return BENCH_USAGE;
	}
	return BENCH_OK;
}

size_t bench_args_pages(const struct bench_args *args)
{
	size_t pages = args->op->pages ? args->op->pages(args) : 0;

	return max(ALIGN(pages, (size_t)1024), (size_t)BENCH_DEFAULT_PAGES);
}

/* Homes, once more where KIND and OF lie apart. */
static unsigned int nr_apart(const struct bench_place *place, enum mem_kind kind, enum mem_kind of)
{
	return mem_apart(kind, of, place->mem.nr) ? 2 * place->mem.nr : place->mem.nr;
}

enum bench_status bench_memory_room(const char *name, const char *alloc,
				    const struct bench_place *place, size_t pages)
{
	const struct mem_places *mem = &place->mem;
	struct bench_need need = { .hugetlb = mem->hugetlb };
	u64 bytes = (u64)pages << PAGE_SHIFT, map = (u64)pages * sizeof(struct page);
	char err[512];

	mem_places_set(mem);
	if (max(nr_apart(place, MEM_SHELLS, MEM_HEADS), nr_apart(place, MEM_POOL, MEM_PAGES)) >
	    SKB_NR_NODES)
		return bench_fail(
			BENCH_IMPOSSIBLE, name,
			"shells apart from heads, or a pool apart from pages, for roles on at "
			"most %u nodes, and these are on %u: name fewer CPUs with --skb_cpus",
			SKB_NR_NODES / 2, mem->nr);
	need.address_space = nr_apart(place, MEM_POOL, MEM_PAGES) * (bytes + map) + REST_BYTES;
	if (!strcmp(alloc, "slub"))
		need.address_space += nr_apart(place, MEM_SHELLS, MEM_HEADS) * SLUB_RESERVED;
	for (unsigned int i = 0; i < mem->nr; i++) {
		bench_need_add(need.zones, mem->nodemask[MEM_PAGES][i], bytes);
		bench_need_add(need.rest, mem->nodemask[MEM_PAGES][i], map);
		bench_need_add(need.rest, mem->nodemask[MEM_HEADS][i], REST_BYTES);
		if (mem_apart(MEM_POOL, MEM_PAGES, mem->nr)) {
			bench_need_add(need.zones, mem->nodemask[MEM_POOL][i], bytes);
			bench_need_add(need.rest, mem->nodemask[MEM_POOL][i], map);
		}
	}
	return bench_room("", &need, err, sizeof(err))
		       ? bench_fail(BENCH_IMPOSSIBLE, name, "%s", err)
		       : BENCH_OK;
}

enum bench_status bench_memory_init(const char *name, const char *alloc,
				    const struct bench_place *place, size_t pages)
{
	enum bench_status status = bench_memory_room(name, alloc, place, pages);
	unsigned int nodes = place->mem.nr;
	int ret;

	if (status)
		return status;
	ret = obj_init(alloc, nodes);
	if (ret == -ENOENT)
		return bench_fail(BENCH_USAGE, name, "no allocator '%s' in this build", alloc);
	if (ret == -EINVAL)
		return bench_fail(BENCH_IMPOSSIBLE, name,
				  "allocator %s refuses its settings: is MALLOC_CONF set?", alloc);
	if (ret == -ENOTSUP)
		return bench_fail(BENCH_IMPOSSIBLE, name,
				  "allocator %s places nothing on nodes: ask for alloc:slub or "
				  "alloc:jemalloc",
				  alloc);
	if (ret)
		return bench_fail(BENCH_IMPOSSIBLE, name, "allocator %s on %u node%s: %s", alloc,
				  nodes, nodes > 1 ? "s" : "", strerror(-ret));
	ret = page_alloc_init(nodes, pages);
	if (ret)
		return bench_fail(ret == -EINVAL ? BENCH_USAGE : BENCH_IMPOSSIBLE, name,
				  "%zu pages on each of %u node%s%s: %s (--skb_pages, --skb_nodes)",
				  pages, nodes, nodes > 1 ? "s" : "",
				  place->mem.hugetlb ? ", in huge pages" : "", strerror(-ret));
	return BENCH_OK;
}

enum bench_status bench_role_enter(const struct bench_place *place, unsigned int role, char *err,
				   size_t errlen)
{
	unsigned int cpu = bench_place_cpu(place, role);
	int ret = bench_cpu_pin(cpu);

	if (ret) {
		snprintf(err, errlen, "role %u cannot be pinned to CPU %u: %s", role, cpu,
			 strerror(-ret));
		return BENCH_IMPOSSIBLE;
	}
	ret = skb_cpu_attach(role, bench_place_home(place, role));
	if (ret) {
		snprintf(err, errlen, "role %u cannot become a CPU of the model: %s", role,
			 strerror(-ret));
		return BENCH_IMPOSSIBLE;
	}
	return BENCH_OK;
}

enum bench_status bench_case_prepare(const struct bench_args *args, struct bench_case *out,
				     char *err, size_t errlen)
{
	int ret;

	memset(out, 0, sizeof(*out));
	snprintf(err, errlen, "(no reason given)");
	ret = args->op->prepare(args, out, err, errlen);
	switch (ret) {
	case 0:
		break;
	case -EINVAL:
		return BENCH_USAGE;
	case -EOPNOTSUPP:
	case -ENOMEM:
		return BENCH_IMPOSSIBLE;
	default:
		return BENCH_FAILED;
	}
	BUG_ON(!out->nr_roles || out->nr_roles > BENCH_MAX_ROLES || !out->check || !out->teardown);
	for (unsigned int r = 0; r < out->nr_roles; r++)
		BUG_ON(!out->role[r].name || !out->role[r].span);
	return BENCH_OK;
}

enum bench_status bench_session_open(struct bench_session *s, const struct bench_options *o)
{
	enum bench_status status;
	char err[512];

	memset(s, 0, sizeof(*s));
	if (bench_args_parse(o->name, &s->args, err, sizeof(err)))
		return bench_fail(BENCH_USAGE, o->name, "%s", err);
	bench_args_name(&s->args, s->name, sizeof(s->name));
	status = bench_place_init(o, &s->place);
	if (status)
		return status;
	status = bench_memory_init(s->name, bench_args_alloc(&s->args), &s->place,
				   o->pages ? o->pages : bench_args_pages(&s->args));
	if (status)
		return status;
	status = bench_role_enter(&s->place, 0, err, sizeof(err));
	if (!status)
		status = bench_case_prepare(&s->args, &s->c, err, sizeof(err));
	if (status)
		return bench_fail(status, s->name, "%s", err);
	s->shared = s->c.nr_roles > s->place.cpus.nr;
	snprintf(err, sizeof(err), "(no reason given)");
	if (s->c.check(s->c.ctx, err, sizeof(err))) {
		bench_fail(BENCH_FAILED, s->name, "fails its check beforehand: %s", err);
		s->c.teardown(s->c.ctx);
		return BENCH_FAILED;
	}
	return BENCH_OK;
}

enum bench_status bench_session_close(struct bench_session *s, enum bench_status so_far)
{
	enum bench_status status = so_far;
	char err[512] = "(no reason given)";

	if (!status && s->c.check(s->c.ctx, err, sizeof(err)))
		status = bench_fail(BENCH_FAILED, s->name, "fails its check afterwards: %s", err);
	s->c.teardown(s->c.ctx);
	skb_cpu_detach();
	return status;
}
