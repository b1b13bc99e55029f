/* SPDX-License-Identifier: MIT */
#include "benches/harness/session.h"

#include "skb/obj.h"
#include "skb/page_alloc.h"

#include <errno.h>
#include <string.h>

enum bench_status bench_place_init(const struct bench_options *o, struct bench_place *out)
{
	struct bench_cpus allowed;

	memset(out, 0, sizeof(*out));
	out->oversubscribe = o->oversubscribe;
	if (bench_cpus_allowed(&allowed) || !allowed.nr)
		return bench_fail(BENCH_IMPOSSIBLE, NULL,
				  "the CPUs of this process cannot be read: %s", strerror(errno));
	out->cpus = allowed;
	if (o->cpus && bench_cpus_parse(o->cpus, CPU_SETSIZE, false, &out->cpus))
		return bench_fail(BENCH_USAGE, NULL,
				  "--skb_cpus=%s: a list such as 0,2-3, each CPU once, at most %u",
				  o->cpus, SKB_NR_CPUS);
	for (unsigned int i = 0; i < out->cpus.nr; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		sched_getaffinity(0, sizeof(set), &set);
		if (!CPU_ISSET(out->cpus.cpu[i], &set))
			return bench_fail(BENCH_IMPOSSIBLE, NULL,
					  "--skb_cpus=%s: CPU %u is not among the %u that this "
					  "process may use (taskset -p, the cgroup's cpuset)",
					  o->cpus, out->cpus.cpu[i], allowed.nr);
	}
	out->nodes = (struct bench_cpus){ .nr = 1 };
	if (o->nodes && bench_cpus_parse(o->nodes, SKB_NR_NODES, true, &out->nodes))
		return bench_fail(BENCH_USAGE, NULL,
				  "--skb_nodes=%s: a list of nodes from 0 to %u, one for each role",
				  o->nodes, SKB_NR_NODES - 1);
	return BENCH_OK;
}

unsigned int bench_place_cpu(const struct bench_place *place, unsigned int role)
{
	return place->cpus.cpu[role % place->cpus.nr];
}

unsigned int bench_place_node(const struct bench_place *place, unsigned int role)
{
	return place->nodes.cpu[place->nodes.nr == 1 ? 0 : role];
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
	if (place->nodes.nr > 1 && nr_roles > place->nodes.nr) {
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

enum bench_status bench_memory_init(const char *name, const char *alloc,
				    const struct bench_place *place, size_t pages)
{
	unsigned int nodes = 0;
	int ret;

	for (unsigned int i = 0; i < place->nodes.nr; i++)
		nodes = max(nodes, place->nodes.cpu[i] + 1);
	ret = obj_init(alloc, nodes);
	if (ret == -ENOENT)
		return bench_fail(BENCH_USAGE, name, "no allocator '%s' in this build", alloc);
	if (ret == -EINVAL)
		return bench_fail(BENCH_IMPOSSIBLE, name,
				  "allocator %s refuses its settings: is MALLOC_CONF set?", alloc);
	if (ret)
		return bench_fail(BENCH_IMPOSSIBLE, name, "allocator %s on %u node%s: %s", alloc,
				  nodes, nodes > 1 ? "s" : "", strerror(-ret));
	ret = page_alloc_init(nodes, pages);
	if (ret)
		return bench_fail(ret == -EINVAL ? BENCH_USAGE : BENCH_IMPOSSIBLE, name,
				  "%zu pages on each of %u node%s: %s (--skb_pages, --skb_nodes)",
				  pages, nodes, nodes > 1 ? "s" : "", strerror(-ret));
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
	ret = skb_cpu_attach(role, bench_place_node(place, role));
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
