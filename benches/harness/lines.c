/* SPDX-License-Identifier: MIT */
/*
 * Which cache lines the roles of a case share: every traced access of some operations, on the roles' real threads, by
 * line, field and role.
 *
 * What is not there: fields that only one sk_buff's owner sees are not traced, and addresses are those of this run.
 * Lines with the same fields, writers and readers are one kind; how often they are written is exact, which CPU had a
 * line when is not known.
 */
#include "benches/harness/crew.h"
#include "benches/harness/json.h"
#include "benches/harness/ledger.h"
#include "benches/harness/modes.h"

#include <stdlib.h>
#include <string.h>

#ifdef SKB_TRACED

#define LINE_OPS   200
#define LINE_SLOTS (1u << 16)
#define LINE_CELLS 16
#define CELL_BYTES 4
#define KINDS_TOLD 40

/* Four bytes of a line; masks have a bit for each role. No padding: lines are compared byte by byte. */
struct cell {
	u64 readers, writers;
	u32 cls;
	u32 at; /* byte of the line that was accessed first */
};

_Static_assert(BENCH_MAX_ROLES <= 64, "a mask has a bit for each role");

struct line {
	uintptr_t number; /* address over the line's size; 0: free */
	u64 writes;
	struct cell cell[LINE_CELLS];
};

static struct line *table;
static unsigned int nr_lines;
static u64 dropped; /* accesses to lines that found no room */
static bool counting;
static bool
	taken; /* the table's lock: spun on, since a sink may not go through the seam that it watches */
static const struct crew *ours; /* the harness's own words are none of the case's */

static const char *const class_names[SKB_C_NR] = {
	[SKB_C_OTHER] = "other",
	[SKB_C_PAGE] = "page",
	[SKB_C_DATAREF] = "dataref",
	[SKB_C_SHINFO] = "shinfo",
	[SKB_C_SHINFO_SH] = "shinfo",
	[SKB_C_FCLONE] = "fclone_ref",
	[SKB_C_USERS] = "users",
	[SKB_C_WMEM] = "sk_wmem_alloc",
	[SKB_C_MEM] = "memory_allocated",
	[SKB_C_EXT] = "skb_ext",
	[SKB_C_UARG] = "ubuf_info",
	[SKB_C_LLIST] = "llist",
	[SKB_C_SLAB] = "slab",
	[SKB_C_RING] = "ring",
	[SKB_C_LOCK] = "lock",
	[SKB_C_LOCK_ZONE] = "zone lock",
	[SKB_C_LOCK_PCP] = "page list lock",
	[SKB_C_HEAD] = "head",
	[SKB_C_SHELL] = "sk_buff",
	[SKB_C_PAYLOAD] = "payload",
};

static const char *class_name(unsigned int cls)
{
	return cls < SKB_C_NR && class_names[cls] ? class_names[cls] : "other";
}

static struct line *line_at(uintptr_t number)
{
	size_t slot = (number * 0x9e3779b97f4a7c15u) >> 48;

	while (table[slot].number && table[slot].number != number)
		slot = (slot + 1) % LINE_SLOTS;
	if (!table[slot].number) {
		/* A quarter stays free, so that a search ends soon. */
		if (nr_lines >= LINE_SLOTS / 4 * 3) {
			dropped++;
			return NULL;
		}
		nr_lines++;
		table[slot].number = number;
	}
	return &table[slot];
}

/* Bytes FIRST to LAST of one line. */
static void note_line(struct line *l, unsigned int first, unsigned int last, enum skb_class cls,
		      unsigned int role, bool write)
{
	l->writes += write;
	for (unsigned int c = first / CELL_BYTES; c <= last / CELL_BYTES; c++) {
		struct cell *cell = &l->cell[c];

		if (!cell->readers && !cell->writers)
			cell->at = max(first, c * CELL_BYTES);
		if ((!cell->readers && !cell->writers) || (write && !cell->writers))
			cell->cls = cls;
		if (write)
			cell->writers |= 1ull << role;
		else
			cell->readers |= 1ull << role;
	}
}

static void on_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
		      size_t bytes)
{
	uintptr_t at = (uintptr_t)addr, end = at + bytes;
	unsigned int role = smp_processor_id();

	if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE) || role >= BENCH_MAX_ROLES || !bytes ||
	    (at >= (uintptr_t)ours && at < (uintptr_t)(ours + 1)))
		return;
	while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE))
		cpu_relax();
	for (uintptr_t n = at / SMP_CACHE_BYTES; n <= (end - 1) / SMP_CACHE_BYTES; n++) {
		uintptr_t from = max(at, n * SMP_CACHE_BYTES);
		uintptr_t to = min(end, (n + 1) * SMP_CACHE_BYTES) - 1;
		struct line *l = line_at(n);
		bool reads = kind == SKB_LOAD || kind == SKB_RANGE_READ;

		if (!l)
			continue;
		note_line(l, from % SMP_CACHE_BYTES, to % SMP_CACHE_BYTES, cls, role, !reads);
	}
	__atomic_clear(&taken, __ATOMIC_RELEASE);
}

static void on_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)ev, (void)addr, (void)n;
}

static bool never_fail(enum skb_site site)
{
	(void)site;
	return false;
}

static const struct skb_trace_sink sink = {
	.access = on_access,
	.event = on_event,
	.fail = never_fail,
};

/* --- kinds of lines ------------------------------------------------------------------------------------------ */

struct kind {
	struct line like;
	u64 lines, writes;
};

static u64 writers_of(const struct line *l)
{
	u64 mask = 0;

	for (unsigned int c = 0; c < LINE_CELLS; c++)
		mask |= l->cell[c].writers;
	return mask;
}

static bool shared(const struct line *l)
{
	return l->number && __builtin_popcountll(writers_of(l)) > 1;
}

/* Some field is written by one role and touched by another: the line would move even if it held nothing else. */
static bool truly_shared(const struct line *l)
{
	for (unsigned int c = 0; c < LINE_CELLS; c++)
		if (l->cell[c].writers &&
		    __builtin_popcountll(l->cell[c].writers | l->cell[c].readers) > 1)
			return true;
	return false;
}

/* Equal lines are neighbours in this order. */
static int by_kind(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return memcmp(x->cell, y->cell, sizeof(x->cell));
}

static int by_writes(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return (x->writes < y->writes) - (x->writes > y->writes);
}

/* Moves the shared lines to the front of the table and returns how many there are. */
static unsigned int keep_shared(void)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < LINE_SLOTS; i++)
		if (shared(&table[i]))
			table[nr++] = table[i];
	return nr;
}

/* The kinds of the shared lines, those written most first. NULL: no memory. */
static struct kind *kinds_of(unsigned int *nr_kinds)
{
	unsigned int nr = keep_shared();
	struct kind *kinds = calloc(nr + 1, sizeof(*kinds));

	*nr_kinds = 0;
	if (!kinds)
		return NULL;
	qsort(table, nr, sizeof(*table), by_kind);
	for (unsigned int i = 0; i < nr; i++) {
		if (!i || by_kind(&table[i - 1], &table[i]))
			kinds[(*nr_kinds)++].like = table[i];
		kinds[*nr_kinds - 1].lines++;
		kinds[*nr_kinds - 1].writes += table[i].writes;
	}
	qsort(kinds, *nr_kinds, sizeof(*kinds), by_writes);
	return kinds;
}

/* --- printing ------------------------------------------------------------------------------------------------ */

static void print_roles(struct json *j, const char *key, const struct bench_case *c, u64 mask)
{
	json_open(j, key, '[');
	for (unsigned int r = 0; r < c->nr_roles; r++)
		if (mask & 1ull << r)
			json_str(j, NULL, c->role[r].name);
	json_close(j, '[');
}

static bool same_field(const struct cell *a, const struct cell *b)
{
	return !strcmp(class_name(a->cls), class_name(b->cls)) && a->readers == b->readers &&
	       a->writers == b->writers;
}

static void print_kind(struct json *j, const struct bench_case *c, const struct kind *k)
{
	const struct cell *last = NULL;

	json_open(j, NULL, '{');
	json_str(j, "sharing", truly_shared(&k->like) ? "same field" : "false sharing");
	json_long(j, "lines", (long long)k->lines);
	json_long(j, "writes", (long long)k->writes);
	json_open(j, "fields", '[');
	for (unsigned int i = 0; i < LINE_CELLS; i++) {
		const struct cell *cell = &k->like.cell[i];

		if (!cell->readers && !cell->writers) {
			last = NULL;
			continue;
		}
		if (last && same_field(last, cell))
			continue;
		last = cell;
		json_open(j, NULL, '{');
		json_long(j, "offset", cell->at);
		json_str(j, "class", class_name(cell->cls));
		print_roles(j, "writers", c, cell->writers);
		print_roles(j, "readers", c, cell->readers);
		json_close(j, '{');
	}
	json_close(j, '[');
	json_close(j, '{');
}

static enum bench_status print_lines(const struct bench_session *s)
{
	unsigned int nr = 0;
	struct kind *kinds = kinds_of(&nr);
	struct json j = { .f = stdout };

	if (!kinds)
		return bench_fail(BENCH_IMPOSSIBLE, s->name, "no memory for the lines");
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-lines-1");
	json_str(&j, "name", s->name);
	json_long(&j, "operations", LINE_OPS);
	json_long(&j, "line_bytes", SMP_CACHE_BYTES);
	json_long(&j, "kinds", nr);
	json_long(&j, "dropped", (long long)dropped);
	json_open(&j, "lines", '[');
	for (unsigned int i = 0; i < min(nr, (unsigned int)KINDS_TOLD); i++)
		print_kind(&j, &s->c, &kinds[i]);
	json_close(&j, '[');
	json_close(&j, '{');
	free(kinds);
	return bench_printed(&j, BENCH_OK);
}

enum bench_status bench_lines(const struct bench_options *given)
{
	static struct bench_session s;
	static struct crew crew;
	struct role_time t[BENCH_MAX_ROLES];
	struct bench_options o = *given;
	enum bench_status status;

	table = calloc(LINE_SLOTS, sizeof(*table));
	if (!table)
		return bench_fail(BENCH_IMPOSSIBLE, o.name, "no memory for the lines");
	ours = &crew;
	skb_trace_sink = &sink;
	o.oversubscribe = true; /* nothing is timed */
	status = bench_session_open(&s, &o);
	if (status)
		return status;
	status = crew_start(&crew, &s);
	if (!status) {
		crew_batch(&crew, BENCH_WARM_OPS, t);
		__atomic_store_n(&counting, true, __ATOMIC_RELEASE);
		crew_batch(&crew, LINE_OPS, t);
		__atomic_store_n(&counting, false, __ATOMIC_RELEASE);
		crew_stop(&crew);
	}
	status = bench_session_close(&s, status);
	if (!status)
		status = print_lines(&s);
	free(table);
	return status;
}

#else

enum bench_status bench_lines(const struct bench_options *o)
{
	return bench_fail(BENCH_USAGE, o->name,
			  "this program is timed and counts nothing: use %s_traced", bench_program);
}

#endif
