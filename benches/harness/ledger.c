/* SPDX-License-Identifier: MIT */
#include "benches/harness/ledger.h"
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "benches/harness/session.h"

#include <string.h>

#ifdef SKB_TRACED

static struct ledger_row rows[LEDGER_MAX_ROWS];
static unsigned int nr_rows;
static struct ledger_row open_row;
static bool is_open;
static bool frozen; /* the rows stay as they are, whatever a check runs */

static void count(u64 *cell, u64 n)
{
	__atomic_fetch_add(cell, n, __ATOMIC_RELAXED);
}

static void on_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
		      size_t bytes)
{
	(void)addr;
	if (!is_open)
		return;
	if (kind == SKB_RMW)
		count(&open_row.rmw[cls], 1);
	else if (kind == SKB_STORE)
		count(&open_row.store[cls], 1);
	else if (kind == SKB_RANGE_WRITE)
		count(&open_row.written[cls], bytes);
}

static void on_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)addr;
	if (!is_open)
		return;
	count(&open_row.event[ev], 1);
	if (ev == SKB_EV_LOCK && n < SKB_C_NR)
		count(&open_row.lock[n], 1);
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

void ledger_install(void)
{
	skb_trace_sink = &sink;
}

void ledger_clear(void)
{
	BUG_ON(is_open);
	nr_rows = 0;
	frozen = false;
}

void ledger_freeze(void)
{
	frozen = true;
}

unsigned int ledger_rows(const struct ledger_row **out)
{
	*out = rows;
	return nr_rows;
}

void bench_ledger_begin(void)
{
	BUG_ON(is_open);
	memset(&open_row, 0, sizeof(open_row));
	is_open = true;
}

static void add_cells(u64 *to, const u64 *from, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		to[i] += from[i];
}

void bench_ledger_end(const char *phase)
{
	struct ledger_row *row = rows;

	BUG_ON(!is_open);
	is_open = false;
	if (frozen)
		return;
	while (row < rows + nr_rows && strcmp(row->phase, phase))
		row++;
	if (row == rows + nr_rows) {
		BUG_ON(nr_rows == LEDGER_MAX_ROWS || strlen(phase) >= sizeof(row->phase));
		memset(row, 0, sizeof(*row));
		strcpy(row->phase, phase);
		nr_rows++;
	}
	add_cells(row->rmw, open_row.rmw, SKB_C_NR);
	add_cells(row->store, open_row.store, SKB_C_NR);
	add_cells(row->written, open_row.written, SKB_C_NR);
	add_cells(row->event, open_row.event, SKB_EV_NR);
	add_cells(row->lock, open_row.lock, SKB_C_NR);
}

/* The columns of results/ledger. */

/* Without what differs between protocols (wmem, rmem, mem), extensions, locks and rings, which have columns of their own. */
static const enum skb_class summed[] = { SKB_C_PAGE,  SKB_C_DATAREF, SKB_C_FCLONE, SKB_C_USERS,
					 SKB_C_LLIST, SKB_C_SLAB,    SKB_C_UARG };

static const struct {
	const char *column;
	enum skb_class cls;
} by_class[] = {
	{ "rmw_page", SKB_C_PAGE },	{ "rmw_dataref", SKB_C_DATAREF },
	{ "rmw_fclone", SKB_C_FCLONE }, { "rmw_users", SKB_C_USERS },
	{ "rmw_wmem", SKB_C_WMEM },	{ "rmw_ext", SKB_C_EXT },
	{ "rmw_llist", SKB_C_LLIST },	{ "rmw_slab", SKB_C_SLAB },
	{ "rmw_uarg", SKB_C_UARG },	{ "rmw_mem", SKB_C_MEM },
};

/* rmw_wmem is what a socket is charged, whatever the direction: an operation has one. */
static u64 rmw_of(const struct ledger_row *row, enum skb_class cls)
{
	return row->rmw[cls] + (cls == SKB_C_WMEM ? row->rmw[SKB_C_RMEM] : 0);
}

static void print_row(struct json *j, const struct ledger_row *row)
{
	u64 rmw = 0, lock = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(summed); i++)
		rmw += row->rmw[summed[i]];
	for (unsigned int cls = 0; cls < SKB_C_NR; cls++)
		if (cls != SKB_C_LOCK_ZONE && cls != SKB_C_LOCK_PCP)
			lock += row->lock[cls];
	json_open(j, NULL, '{');
	json_str(j, "phase", row->phase);
	json_long(j, "page_get", (long long)row->event[SKB_EV_PAGE_GET]);
	json_long(j, "page_put", (long long)row->event[SKB_EV_PAGE_PUT]);
	json_long(j, "page_alloc", (long long)row->event[SKB_EV_PAGE_ALLOC]);
	json_long(j, "page_free", (long long)row->event[SKB_EV_PAGE_FREE]);
	json_long(j, "rmw", (long long)rmw);
	json_long(j, "obj_alloc", (long long)row->event[SKB_EV_OBJ_ALLOC]);
	json_long(j, "obj_free", (long long)row->event[SKB_EV_OBJ_FREE]);
	json_long(j, "bytes_copied",
		  (long long)(row->written[SKB_C_HEAD] + row->written[SKB_C_PAYLOAD] +
			      row->written[SKB_C_EXT]));
	json_long(j, "lock", (long long)lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(by_class); i++)
		json_long(j, by_class[i].column, (long long)rmw_of(row, by_class[i].cls));
	json_long(j, "lock_zone", (long long)row->lock[SKB_C_LOCK_ZONE]);
	json_long(j, "lock_pcp", (long long)row->lock[SKB_C_LOCK_PCP]);
	json_long(j, "shared_stores", (long long)row->store[SKB_C_SHINFO_SH]);
	json_close(j, '{');
}

/* Each role's part of one operation, one after the other on this thread. */
static void one_turn(const struct bench_case *c)
{
	for (unsigned int r = 0; r < c->nr_roles; r++)
		c->role[r].span(c->ctx, 1);
}

static void warm_up(const struct bench_case *c)
{
	if (c->nr_roles == 1) {
		c->role[0].span(c->ctx, BENCH_WARM_OPS);
		return;
	}
	for (int i = 0; i < BENCH_WARM_OPS; i++) {
		if (c->ledger)
			c->ledger(c->ctx);
		else
			one_turn(c);
	}
}

static void count_once(const struct bench_case *c)
{
	if (c->ledger) {
		c->ledger(c->ctx);
		return;
	}
	bench_ledger_begin();
	one_turn(c);
	bench_ledger_end("op");
}

enum bench_status bench_ledger(const struct bench_options *o)
{
	static struct bench_session s;
	struct json j = { .f = stdout };
	enum bench_status status;

	ledger_install();
	status = bench_session_open(&s, o);
	if (status)
		return status;
	warm_up(&s.c);
	ledger_clear();
	count_once(&s.c);
	ledger_freeze();
	BUG_ON(is_open || !nr_rows);
	status = bench_session_close(&s, BENCH_OK);
	if (status)
		return status;
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-ledger-1");
	json_str(&j, "name", s.name);
	json_long(&j, "warm_ops", BENCH_WARM_OPS);
	json_open(&j, "rows", '[');
	for (unsigned int i = 0; i < nr_rows; i++)
		print_row(&j, &rows[i]);
	json_close(&j, '[');
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}

#else

enum bench_status bench_ledger(const struct bench_options *o)
{
	return bench_fail(BENCH_USAGE, o->name,
			  "this program is timed and counts nothing: use %s_traced", bench_program);
}

#endif
