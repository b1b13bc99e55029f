/* SPDX-License-Identifier: MIT */
/*
 * Events that the kernel names itself come from linux/perf_event.h. Those of one vendor carry their codes here:
 *
 *   Intel   MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM (XSNP_FWD from Ice Lake on), MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM and
 *           REMOTE_DRAM: event lists of Skylake-X to Sapphire Rapids, and the MEM_LOAD_UOPS_ names of Haswell-X and
 *           Broadwell-X, whose masks differ
 *   AMD     LsDmndFillsFromSys (PMC 0x43), Processor Programming References of families 17h, 19h and 1Ah
 */
#include "prof/events.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE(level, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##level | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define SW(what)    PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##what
#define HW(what)    PERF_TYPE_HARDWARE, PERF_COUNT_HW_##what
#define HWC(...)    PERF_TYPE_HW_CACHE, CACHE(__VA_ARGS__)
#define VENDOR	    PERF_TYPE_MAX, 0 /* found by CPU, below */
#define OF_THE_PMU  (PERF_TYPE_MAX + 1), 0 /* described by the kernel in sysfs */
#define NEAREST_MAX 3

const char prof_default_list[] =
	"task-clock,context-switches,cpu-migrations,page-faults,"
	"cycles,instructions,branches,branch-misses,"
	"L1-dcache-loads,L1-dcache-load-misses,"
	"LLC-loads,LLC-load-misses,"
	"dTLB-loads,dTLB-load-misses,"
	"hitm,remote-hitm,remote-loads,remote-cache-fills,other-ccx-fills,"
	"slots,topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound";

static const struct known {
	const char *name;
	enum prof_group group;
	u32 type;
	u64 config;
	const char *meaning;
} known[] = {
	{ "task-clock", PROF_SOFTWARE, SW(TASK_CLOCK), "ns on a CPU" },
	{ "cpu-clock", PROF_SOFTWARE, SW(CPU_CLOCK), "ns on a CPU, by the CPU's clock" },
	{ "context-switches", PROF_SOFTWARE, SW(CONTEXT_SWITCHES),
	  "times that the thread lost its CPU" },
	{ "cpu-migrations", PROF_SOFTWARE, SW(CPU_MIGRATIONS), "moves to another CPU" },
	{ "page-faults", PROF_SOFTWARE, SW(PAGE_FAULTS), "page faults" },
	{ "minor-faults", PROF_SOFTWARE, SW(PAGE_FAULTS_MIN), "page faults without I/O" },
	{ "major-faults", PROF_SOFTWARE, SW(PAGE_FAULTS_MAJ), "page faults with I/O" },
	{ "cycles", PROF_CORE, HW(CPU_CYCLES), "cycles of the CPU" },
	{ "instructions", PROF_CORE, HW(INSTRUCTIONS), "instructions retired" },
	{ "branches", PROF_CORE, HW(BRANCH_INSTRUCTIONS), "branches retired" },
	{ "branch-misses", PROF_CORE, HW(BRANCH_MISSES), "branches predicted wrongly" },
	{ "cache-references", PROF_LLC, HW(CACHE_REFERENCES), "accesses to the last level cache" },
	{ "cache-misses", PROF_LLC, HW(CACHE_MISSES), "misses of the last level cache" },
	{ "L1-dcache-loads", PROF_L1, HWC(L1D, READ, ACCESS), "loads" },
	{ "L1-dcache-load-misses", PROF_L1, HWC(L1D, READ, MISS), "loads that missed L1" },
	{ "LLC-loads", PROF_LLC, HWC(LL, READ, ACCESS), "loads that reached the last level" },
	{ "LLC-load-misses", PROF_LLC, HWC(LL, READ, MISS), "loads that missed the last level" },
	{ "dTLB-loads", PROF_TLB, HWC(DTLB, READ, ACCESS), "loads that asked the data TLB" },
	{ "dTLB-load-misses", PROF_TLB, HWC(DTLB, READ, MISS), "loads that missed the data TLB" },
	{ "node-loads", PROF_COHERENCE, HWC(NODE, READ, ACCESS), "loads from memory" },
	{ "node-load-misses", PROF_COHERENCE, HWC(NODE, READ, MISS),
	  "loads from another node's memory" },
	{ "hitm", PROF_COHERENCE, VENDOR, "loads served by a line modified in another core" },
	{ "remote-hitm", PROF_COHERENCE, VENDOR,
	  "loads served by a line modified on another node" },
	{ "remote-loads", PROF_COHERENCE, VENDOR, "loads from another node's memory" },
	{ "remote-cache-fills", PROF_COHERENCE, VENDOR, "lines that came from a remote cache" },
	{ "other-ccx-fills", PROF_COHERENCE, VENDOR,
	  "lines that came from another core complex of this node" },
	{ "slots", PROF_TOPDOWN, OF_THE_PMU, "pipeline slots" },
	{ "topdown-retiring", PROF_TOPDOWN, OF_THE_PMU, "slots that did work" },
	{ "topdown-bad-spec", PROF_TOPDOWN, OF_THE_PMU, "slots lost to wrong predictions" },
	{ "topdown-fe-bound", PROF_TOPDOWN, OF_THE_PMU, "slots that waited for instructions" },
	{ "topdown-be-bound", PROF_TOPDOWN, OF_THE_PMU, "slots that waited for data or units" },
};

/* Codes of a vendor's event on CPUs of FAMILY (0: any of the models listed before) and MODELS (none: all). */
static const struct vendor_event {
	const char *name, *vendor;
	unsigned int family;
	unsigned int models[8];
	u64 config; /* umask << 8 | event */
} vendor_events[] = {
	/* Skylake-X and Cascade Lake, Ice Lake-X and -D, Sapphire Rapids, Emerald Rapids */
	{ "hitm", "GenuineIntel", 6, { 0x55, 0x6a, 0x6c, 0x8f, 0xcf }, 0x04d2 },
	{ "remote-hitm", "GenuineIntel", 6, { 0x55, 0x6a, 0x6c, 0x8f, 0xcf }, 0x04d3 },
	{ "remote-loads", "GenuineIntel", 6, { 0x55, 0x6a, 0x6c, 0x8f, 0xcf }, 0x02d3 },
	/* Haswell-X, Broadwell-X */
	{ "hitm", "GenuineIntel", 6, { 0x3f, 0x4f }, 0x04d2 },
	{ "remote-hitm", "GenuineIntel", 6, { 0x3f, 0x4f }, 0x10d3 },
	{ "remote-loads", "GenuineIntel", 6, { 0x3f, 0x4f }, 0x04d3 },
	/* Zen 2 (models from 0x30 on are checked below), Zen 3 and 4, Zen 5 */
	{ "remote-loads", "AuthenticAMD", 0x17, { 0 }, 0x4043 },
	{ "remote-cache-fills", "AuthenticAMD", 0x17, { 0 }, 0x1043 },
	{ "remote-loads", "AuthenticAMD", 0x19, { 0 }, 0x4043 },
	{ "remote-cache-fills", "AuthenticAMD", 0x19, { 0 }, 0x1043 },
	{ "other-ccx-fills", "AuthenticAMD", 0x19, { 0 }, 0x0443 },
	{ "remote-loads", "AuthenticAMD", 0x1a, { 0 }, 0x4043 },
	{ "remote-cache-fills", "AuthenticAMD", 0x1a, { 0 }, 0x1043 },
	{ "other-ccx-fills", "AuthenticAMD", 0x1a, { 0 }, 0x0443 },
};

#define ZEN2_FIRST_MODEL 0x30

static bool fits(const struct vendor_event *v, const struct prof_machine *m)
{
	if (strcmp(v->vendor, m->vendor) || v->family != m->family)
		return false;
	if (m->family == 0x17 && m->model < ZEN2_FIRST_MODEL)
		return false;
	if (!v->models[0])
		return true;
	for (unsigned int i = 0; i < ARRAY_SIZE(v->models) && v->models[i]; i++)
		if (v->models[i] == m->model)
			return true;
	return false;
}

static void refuse(struct prof_event *e, const char *why)
{
	snprintf(e->refused, sizeof(e->refused), "%s", why);
}

static void add_counter(struct prof_event *e, u32 type, u64 config, const char *pmu)
{
	e->counter[e->nr_counters++] =
		(struct prof_counter){ .type = type, .config = config, .pmu = pmu };
}

static const char *no_pmu(const struct prof_machine *m)
{
	if (m->hypervisor)
		return "not on this machine: its hypervisor passes no PMU on; use bare metal, or "
		       "have the hypervisor give this guest a virtual PMU";
	return "not on this machine: the kernel knows no PMU of this CPU";
}

/* A vendor's code, on the CPU's only PMU. */
static void resolve_vendor(const struct prof_machine *m, struct prof_event *e)
{
	char why[PROF_REASON_MAX];

	for (unsigned int i = 0; i < ARRAY_SIZE(vendor_events); i++) {
		const struct vendor_event *v = &vendor_events[i];

		if (strcmp(v->name, e->name) || !fits(v, m))
			continue;
		if (!m->nr_cpu_pmus)
			refuse(e, no_pmu(m));
		else
			add_counter(e, m->cpu_pmu[0].type, v->config, m->cpu_pmu[0].name);
		return;
	}
	snprintf(why, sizeof(why),
		 "not on this machine: no event code for it is known for this CPU (%s family %u "
		 "model %u)",
		 *m->vendor ? m->vendor : "vendor unknown", m->family, m->model);
	refuse(e, why);
}

static void resolve_sysfs(const struct prof_machine *m, struct prof_event *e)
{
	for (unsigned int i = 0; i < m->nr_cpu_pmus; i++) {
		struct perf_event_attr attr = { .size = sizeof(attr) };

		if (prof_pmu_event(m, m->cpu_pmu[i].name, e->name, &attr, &e->scale))
			continue;
		add_counter(e, attr.type, attr.config, m->cpu_pmu[i].name);
	}
	if (!m->nr_cpu_pmus)
		refuse(e, no_pmu(m));
	else if (!e->nr_counters)
		refuse(e, "not on this machine: this CPU's PMU has no such event");
}

/* On a hybrid CPU the kernel opens a generic event on one kind of core only: ask each by its type. */
static void resolve_generic(const struct prof_machine *m, struct prof_event *e, u32 type,
			    u64 config)
{
	if (type == PERF_TYPE_SOFTWARE || !prof_hybrid(m)) {
		add_counter(e, type, config, "");
		return;
	}
	for (unsigned int i = 0; i < m->nr_cpu_pmus; i++)
		add_counter(e, type, config | (u64)m->cpu_pmu[i].type << PERF_PMU_TYPE_SHIFT,
			    m->cpu_pmu[i].name);
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[128];
	size_t n = strlen(b);

	if (n >= ARRAY_SIZE(row))
		return ~0u;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; *a; a++, i++) {
		unsigned int corner = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned int change = corner + (tolower(*a) != tolower(b[j - 1]));

			corner = row[j];
			row[j] = min(change, min(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

static void refuse_unknown(struct prof_event *e)
{
	bool shown[ARRAY_SIZE(known)] = { false };
	char why[PROF_REASON_MAX];
	int at = snprintf(why, sizeof(why), "no such event; the nearest names are");

	for (unsigned int n = 0; n < NEAREST_MAX; n++) {
		unsigned int best = 0, least = ~0u;

		for (unsigned int i = 0; i < ARRAY_SIZE(known); i++) {
			unsigned int d = distance(e->name, known[i].name);

			if (!shown[i] && d < least) {
				least = d;
				best = i;
			}
		}
		shown[best] = true;
		at += snprintf(why + at, sizeof(why) - (size_t)at, "%s %s", n ? "," : "",
			       known[best].name);
	}
	refuse(e, why);
}

static void resolve_name(const struct prof_machine *m, struct prof_event *e)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcasecmp(known[i].name, e->name))
			continue;
		snprintf(e->name, sizeof(e->name), "%s", known[i].name);
		e->meaning = known[i].meaning;
		e->group = known[i].group;
		if (known[i].type == PERF_TYPE_MAX)
			resolve_vendor(m, e);
		else if (known[i].type > PERF_TYPE_MAX)
			resolve_sysfs(m, e);
		else
			resolve_generic(m, e, known[i].type, known[i].config);
		return;
	}
	refuse_unknown(e);
}

/* "PMU/TERMS/", its name as given. */
static void resolve_pmu(const struct prof_machine *m, struct prof_event *e)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	char pmu[96], why[PROF_REASON_MAX], *terms, *end;
	int ret;

	snprintf(pmu, sizeof(pmu), "%s", e->name);
	terms = strchr(pmu, '/');
	*terms++ = '\0';
	end = strchr(terms, '/');
	if (!end || end[1]) {
		refuse(e, "PMU/TERMS/ is needed, with a slash at its end");
		return;
	}
	*end = '\0';
	ret = prof_pmu_event(m, pmu, terms, &attr, &e->scale);
	if (!ret) {
		add_counter(e, attr.type, attr.config, "");
		e->counter[0].config1 = attr.config1;
		e->counter[0].config2 = attr.config2;
		return;
	}
	if (ret == -ENODEV)
		snprintf(why, sizeof(why), "not on this machine: there is no PMU '%.40s'", pmu);
	else if (ret == -ENOENT)
		snprintf(why, sizeof(why), "the PMU %.40s has no event or term '%.60s'", pmu,
			 terms);
	else
		snprintf(why, sizeof(why),
			 "a term of '%.60s' has no number, or one that does not fit", terms);
	refuse(e, why);
}

static void resolve_raw(const struct prof_machine *m, struct prof_event *e)
{
	u64 config = strtoull(e->name + 1, NULL, 16);

	if (!m->nr_cpu_pmus)
		refuse(e, no_pmu(m));
	else
		add_counter(e, m->cpu_pmu[0].type, config, m->cpu_pmu[0].name);
}

static bool is_raw(const char *name)
{
	return name[0] == 'r' && name[1] &&
	       strspn(name + 1, "0123456789abcdefABCDEF") == strlen(name + 1);
}

/* Takes :u or :k, or what follows the last slash, off the end of NAME. */
static bool take_modifier(struct prof_event *e)
{
	size_t len = strlen(e->name);
	char *colon = strrchr(e->name, ':');
	const char *mod;

	if (colon && !strchr(colon, '/'))
		mod = colon + 1;
	else if (strchr(e->name, '/') && len &&
		 (e->name[len - 1] == 'u' || e->name[len - 1] == 'k') && e->name[len - 2] == '/')
		mod = e->name + len - 1;
	else
		return true;
	e->user = !strcmp(mod, "u");
	e->kernel = !strcmp(mod, "k");
	if (e->user || e->kernel)
		e->name[mod - e->name - (mod[-1] == ':')] = '\0';
	return e->user || e->kernel;
}

static void add_event(const struct prof_machine *m, struct prof_list *l, const char *text,
		      size_t len)
{
	struct prof_event *e = &l->event[l->nr];

	*e = (struct prof_event){ .meaning = "", .scale = 1 };
	snprintf(e->name, sizeof(e->name), "%.*s", (int)len, text);
	if (len >= sizeof(e->name))
		refuse(e, "no such event: the name is too long");
	else if (!take_modifier(e))
		refuse(e, "its modifier is neither :u nor :k");
	else if (strchr(e->name, '/'))
		resolve_pmu(m, e);
	else if (is_raw(e->name))
		resolve_raw(m, e);
	else
		resolve_name(m, e);
	for (unsigned int i = 0; i < l->nr; i++) {
		const struct prof_event *o = &l->event[i];

		if (!strcmp(o->name, e->name) && o->user == e->user && o->kernel == e->kernel) {
			snprintf(l->note, sizeof(l->note), "%s is asked for twice and counted once",
				 e->name);
			return;
		}
	}
	l->nr++;
}

int prof_list_parse(const struct prof_machine *m, const char *text, struct prof_list *out)
{
	const char *at = text;

	while (*at) {
		bool inside = false;
		size_t len = 0;

		at += strspn(at, ", \t\n");
		/* A comma between slashes belongs to the event. */
		while (at[len] && (inside || at[len] != ','))
			inside ^= at[len++] == '/';
		while (len && isspace((unsigned char)at[len - 1]))
			len--;
		if (!len)
			break;
		if (out->nr == PROF_MAX_EVENTS)
			return -E2BIG;
		add_event(m, out, at, len);
		at += len;
	}
	return 0;
}

void prof_list_known(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(known); i++)
		printf("%-24s%s\n", known[i].name, known[i].meaning);
	printf("%-24s%s\n", "PMU/TERMS/", "an event of a PMU in /sys/bus/event_source/devices");
	printf("%-24s%s\n", "rCODE", "a code of this CPU, in hexadecimal");
}
