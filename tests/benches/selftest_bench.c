/* SPDX-License-Identifier: MIT */
/*
 * Operations that show what the harness does, good and bad: a test-only bench program. Nothing here is a measurement.
 *
 *   self/inc      roles that increment one shared word
 *   self/empty    a loop with nothing in it: what a span costs by itself
 *   self/count    tells on stderr how many spans and operations it was asked for
 *   self/wait     two roles that pass a turn to each other and book their waiting
 *   self/apart    roles that do not run together: one sleeps, or one is done at once
 *   self/fail     fails its check before or after the timing
 *   self/refuse   cannot be prepared
 *   self/crash    ends the program in its span
 *   self/hang     never ends its span
 *   self/events   a known number of each thing that the ledger counts
 *   self/page     takes and frees a page and an object of the model
 *   self/falsely  two roles that write words of their own in one cache line
 *   self/setup    much work and many page faults before and after the timing, little in it
 */
#include "benches/harness/bench.h"

#include "skb/obj.h"
#include "skb/page_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const char *const no_yes[] = { "no", "yes", NULL };

struct self {
	atomic_t shared ____cacheline_aligned;
	atomic_t turn ____cacheline_aligned; /* number of turns taken, role 0's are the even ones */
	u64 spans, ops;
	long arg;
	bool fails_after;
	atomic_t by_class[SKB_C_NR] ____cacheline_aligned;
	u64 flags[8]; /* a shared info, as far as stores to it go */
	spinlock_t lock;
	char from[256], to[256];
};

static struct self *new_self(void)
{
	struct self *s = aligned_alloc(SMP_CACHE_BYTES, ALIGN(sizeof(*s), (size_t)SMP_CACHE_BYTES));

	if (s)
		memset(s, 0, sizeof(*s));
	return s;
}

static int no_memory(char *err, size_t errlen)
{
	snprintf(err, errlen, "no memory for the context");
	return -ENOMEM;
}

static int always_right(void *ctx, char *err, size_t errlen)
{
	(void)ctx, (void)err, (void)errlen;
	return 0;
}

/* Makes OUT a case of NR roles, each with SPAN. */
static int make(struct bench_case *out, unsigned int nr, void (*span)(void *ctx, u64 n), char *err,
		size_t errlen)
{
	static const char *const names[BENCH_MAX_ROLES] = {
		"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"
	};

	out->ctx = new_self();
	if (!out->ctx)
		return no_memory(err, errlen);
	out->nr_roles = nr;
	for (unsigned int r = 0; r < nr; r++)
		out->role[r] = (struct bench_role){ names[r], span };
	out->check = always_right;
	out->teardown = free;
	return 0;
}

/* self/inc */

static void span_inc(void *ctx, u64 n)
{
	struct self *s = ctx;

	while (n--)
		atomic_inc(&s->shared, SKB_C_OTHER);
}

static int check_inc(void *ctx, char *err, size_t errlen)
{
	struct self *fresh = new_self();
	int got;

	(void)ctx;
	if (!fresh)
		return no_memory(err, errlen);
	span_inc(fresh, 1000);
	got = atomic_read(&fresh->shared, SKB_C_OTHER);
	free(fresh);
	snprintf(err, errlen, "1000 increments made %d", got);
	return got == 1000 ? 0 : -1;
}

static int prepare_inc(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	out->bytes_per_op = 4;
	if (make(out, (unsigned int)bench_arg(args, "threads"), span_inc, err, errlen))
		return -ENOMEM;
	out->check = check_inc;
	return 0;
}

static const struct bench_key inc_keys[] = {
	{ .name = "threads", .lo = 1, .hi = 8, .def = "1", .grid = "1,2", .help = "threads" },
	{ .name = NULL },
};

static const struct bench_op inc = {
	.name = "self/inc",
	.summary = "increments of one shared word",
	.keys = inc_keys,
	.prepare = prepare_inc,
};

/* self/empty */

static void span_empty(void *ctx, u64 n)
{
	(void)ctx;
	while (n--)
		bench_clobber();
}

static int prepare_empty(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	(void)args;
	return make(out, 1, span_empty, err, errlen);
}

static const struct bench_op empty = {
	.name = "self/empty",
	.summary = "a loop with nothing in it",
	.prepare = prepare_empty,
};

/* self/count */

static void span_count(void *ctx, u64 n)
{
	struct self *s = ctx;

	s->spans++;
	s->ops += n;
}

/* The second span, so that each role keeps its count for itself. */
static void span_count_other(void *ctx, u64 n)
{
	(void)ctx, (void)n;
}

static void teardown_count(void *ctx)
{
	struct self *s = ctx;

	fprintf(stderr, "spans=%llu ops=%llu\n", (unsigned long long)s->spans,
		(unsigned long long)s->ops);
	free(s);
}

static int prepare_count(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	if (make(out, (unsigned int)bench_arg(args, "roles"), span_count, err, errlen))
		return -ENOMEM;
	out->role[1].span = span_count_other;
	out->teardown = teardown_count;
	return 0;
}

static const struct bench_key count_keys[] = {
	{ .name = "roles", .lo = 1, .hi = 2, .def = "1", .grid = "1", .help = "roles" },
	{ .name = NULL },
};

static const struct bench_op count = {
	.name = "self/count",
	.summary = "counts its operations",
	.keys = count_keys,
	.prepare = prepare_count,
};

/* self/wait */

static void take_turns(struct self *s, u64 n, int mine)
{
	/* Turns go on over batches: each role does n a batch. */
	while (n--) {
		bench_wait_until((atomic_read_acquire(&s->turn, SKB_C_RING) & 1) == mine);
		atomic_add_return(1, &s->turn, SKB_C_RING);
	}
}

static void span_even(void *ctx, u64 n)
{
	take_turns(ctx, n, 0);
}

static void span_odd(void *ctx, u64 n)
{
	take_turns(ctx, n, 1);
}

static void ledger_wait(void *ctx)
{
	bench_ledger_begin();
	span_even(ctx, 1);
	bench_ledger_end("even");
	bench_ledger_begin();
	span_odd(ctx, 1);
	bench_ledger_end("odd");
}

static int prepare_wait(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	(void)args;
	if (make(out, 2, span_even, err, errlen))
		return -ENOMEM;
	out->role[1].span = span_odd;
	out->ledger = ledger_wait;
	return 0;
}

static const struct bench_op wait_op = {
	.name = "self/wait",
	.summary = "two roles that wait for each other",
	.prepare = prepare_wait,
};

/* self/apart */

static void span_sleep(void *ctx, u64 n)
{
	struct timespec t = { .tv_nsec = 1000000 };

	(void)ctx, (void)n;
	nanosleep(&t, NULL);
}

static void span_spin(void *ctx, u64 n)
{
	u64 start = bench_ticks();
	double ticks = 200000 / bench_tick_ns();

	(void)ctx, (void)n;
	while ((double)(bench_ticks() - start) < ticks)
		cpu_relax();
}

static void span_nothing(void *ctx, u64 n)
{
	(void)ctx, (void)n;
}

static const char *const apart_words[] = { "sleep", "early", NULL };
static const struct bench_key apart_keys[] = {
	{ .name = "how",
	  .words = apart_words,
	  .def = "sleep",
	  .grid = "sleep,early",
	  .help = "what the second role does" },
	{ .name = NULL },
};

static int prepare_apart(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	bool early = bench_arg(args, "how");

	if (make(out, early ? 2 : 1, early ? span_spin : span_sleep, err, errlen))
		return -ENOMEM;
	if (early)
		out->role[1].span = span_nothing;
	return 0;
}

static const struct bench_op apart = {
	.name = "self/apart",
	.summary = "roles that cannot be shown to run together",
	.keys = apart_keys,
	.prepare = prepare_apart,
};

/* self/fail */

static int check_fail(void *ctx, char *err, size_t errlen)
{
	struct self *s = ctx;

	snprintf(err, errlen, "a \"wrong\" sum of 41 instead of 42");
	return s->fails_after && !s->spans ? 0 : -1;
}

static const char *const fail_words[] = { "before", "after", NULL };
static const struct bench_key fail_keys[] = {
	{ .name = "when",
	  .words = fail_words,
	  .def = "before",
	  .grid = "before,after",
	  .help = "which check" },
	{ .name = NULL },
};

static int prepare_fail(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	if (make(out, 1, span_count, err, errlen))
		return -ENOMEM;
	((struct self *)out->ctx)->fails_after = bench_arg(args, "when");
	out->check = check_fail;
	return 0;
}

static const struct bench_op fail = {
	.name = "self/fail",
	.summary = "fails its check",
	.keys = fail_keys,
	.prepare = prepare_fail,
};

/* self/refuse */

static const char *const refuse_words[] = { "together", "machine", "memory", "other", NULL };
static const struct bench_key refuse_keys[] = {
	{ .name = "why",
	  .words = refuse_words,
	  .def = "together",
	  .grid = "together,machine,memory",
	  .help = "the reason" },
	{ .name = NULL },
};

static int prepare_refuse(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	static const int errnos[] = { -EINVAL, -EOPNOTSUPP, -ENOMEM, -EIO };
	long why = bench_arg(args, "why");

	(void)out;
	snprintf(err, errlen, "refused by %s", refuse_words[why]);
	return errnos[why];
}

static const struct bench_op refuse = {
	.name = "self/refuse",
	.summary = "cannot be prepared",
	.keys = refuse_keys,
	.prepare = prepare_refuse,
};

/* self/crash and self/hang */

static void span_crash(void *ctx, u64 n)
{
	(void)ctx;
	if (n)
		abort();
}

static int prepare_crash(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	(void)args;
	return make(out, 1, span_crash, err, errlen);
}

static const struct bench_op crash = {
	.name = "self/crash",
	.summary = "aborts in its span",
	.prepare = prepare_crash,
};

static void span_hang(void *ctx, u64 n)
{
	struct self *s = ctx;
	struct timespec t = { .tv_nsec = 1000000 };

	(void)n;
	while (!atomic_read(&s->turn, SKB_C_OTHER))
		nanosleep(&t, NULL);
}

static int prepare_hang(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	(void)args;
	return make(out, 1, span_hang, err, errlen);
}

static const struct bench_op hang = {
	.name = "self/hang",
	.summary = "never ends its span",
	.prepare = prepare_hang,
};

/* self/events: how often each of them happens in one operation. */

static const unsigned int rmw_times[SKB_C_NR] = {
	[SKB_C_OTHER] = 13, [SKB_C_PAGE] = 1, [SKB_C_DATAREF] = 2, [SKB_C_FCLONE] = 3,
	[SKB_C_USERS] = 4,  [SKB_C_WMEM] = 5, [SKB_C_EXT] = 6,	   [SKB_C_LLIST] = 7,
	[SKB_C_SLAB] = 8,   [SKB_C_UARG] = 9, [SKB_C_MEM] = 10,	   [SKB_C_RING] = 11,
	[SKB_C_LOCK] = 12,
};

static void all_rmws(struct self *s)
{
	for (unsigned int cls = 0; cls < SKB_C_NR; cls++)
		for (unsigned int i = 0; i < rmw_times[cls]; i++)
			atomic_inc(&s->by_class[cls], (enum skb_class)cls);
}

static void all_events(const struct self *s)
{
	(void)s; /* the plain build reports nothing */
	for (int i = 0; i < 3; i++)
		skb_event(SKB_EV_PAGE_GET, s, 16);
	for (int i = 0; i < 4; i++)
		skb_event(SKB_EV_PAGE_PUT, s, 16);
	for (int i = 0; i < 5; i++)
		skb_event(SKB_EV_PAGE_ALLOC, s, 3);
	for (int i = 0; i < 6; i++)
		skb_event(SKB_EV_PAGE_FREE, s, 3);
	for (int i = 0; i < 7; i++)
		skb_event(SKB_EV_OBJ_ALLOC, s, 256);
	for (int i = 0; i < 8; i++)
		skb_event(SKB_EV_OBJ_FREE, s, 256);
}

static void lock_times(struct self *s, enum skb_class cls, int times)
{
	while (times--) {
		spin_lock(&s->lock, cls);
		spin_unlock(&s->lock, cls);
	}
}

static void all_copies_and_stores(struct self *s)
{
	skb_memcpy(s->to, s->from, 100, SKB_C_HEAD);
	skb_memcpy(s->to, s->from, 30, SKB_C_PAYLOAD);
	skb_memcpy(s->to, s->from, 7, SKB_C_SHELL);
	for (int i = 0; i < 5; i++)
		skb_store(&s->flags[i], (u64)i, SKB_C_SHINFO_SH);
	skb_store(&s->flags[5], (u64)1, SKB_C_SHINFO);
}

static void span_events(void *ctx, u64 n)
{
	struct self *s = ctx;

	while (n--) {
		all_rmws(s);
		all_events(s);
		lock_times(s, SKB_C_LOCK, 2);
		lock_times(s, SKB_C_LOCK_ZONE, 3);
		lock_times(s, SKB_C_LOCK_PCP, 4);
		all_copies_and_stores(s);
	}
}

static void phase_atomics(void *ctx)
{
	all_rmws(ctx);
}

static void ledger_events(void *ctx)
{
	struct self *s = ctx;

	bench_phase("atomics", phase_atomics, s);
	all_rmws(s); /* outside: not counted */
	bench_ledger_begin();
	all_copies_and_stores(s);
	bench_ledger_end("copies");
	bench_ledger_begin();
	all_rmws(s);
	bench_ledger_end("atomics");
}

/* A check may go through the phases as well: what it does is not counted. */
static int check_events(void *ctx, char *err, size_t errlen)
{
	(void)err, (void)errlen;
	ledger_events(ctx);
	return 0;
}

static int prepare_events(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	if (make(out, 1, span_events, err, errlen))
		return -ENOMEM;
	if (bench_arg(args, "phases")) {
		out->ledger = ledger_events;
		out->check = check_events;
	}
	return 0;
}

static const struct bench_key events_keys[] = {
	{ .name = "phases",
	  .words = no_yes,
	  .def = "no",
	  .grid = "no,yes",
	  .help = "rows of its own" },
	{ .name = NULL },
};

static const struct bench_op events = {
	.name = "self/events",
	.summary = "a known number of everything that the ledger counts",
	.keys = events_keys,
	.prepare = prepare_events,
};

/* self/page */

static void span_page(void *ctx, u64 n)
{
	(void)ctx;
	while (n--) {
		struct page *page = alloc_pages(0);
		void *obj = obj_alloc(256, numa_node_id());

		BUG_ON(!page || !obj);
		put_page(page);
		obj_free(obj, 256, numa_node_id());
	}
}

static int prepare_page(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	return make(out, (unsigned int)bench_arg(args, "threads"), span_page, err, errlen);
}

static size_t pages_page(const struct bench_args *args)
{
	return (size_t)bench_arg(args, "pages");
}

static const struct bench_key page_keys[] = {
	{ .name = "threads", .lo = 1, .hi = 8, .def = "1", .grid = "1", .help = "threads" },
	{ .name = "pages",
	  .lo = 0,
	  .hi = 1L << 40,
	  .def = "0",
	  .grid = "0",
	  .help = "pages of the zone" },
	{ .name = NULL },
};

static const struct bench_op page = {
	.name = "self/page",
	.summary = "one page and one object, taken and freed",
	.keys = page_keys,
	.prepare = prepare_page,
	.pages = pages_page,
};

/* self/falsely: by_class is one line, of which each role has a word; a third word is only read. */

static void span_falsely(struct self *s, u64 n, enum skb_class mine)
{
	while (n--) {
		atomic_inc(&s->by_class[mine], mine);
		bench_use(atomic_read(&s->by_class[SKB_C_WMEM], SKB_C_WMEM));
	}
}

static void span_falsely_first(void *ctx, u64 n)
{
	span_falsely(ctx, n, SKB_C_DATAREF);
}

static void span_falsely_second(void *ctx, u64 n)
{
	span_falsely(ctx, n, SKB_C_USERS);
}

static int prepare_falsely(const struct bench_args *args, struct bench_case *out, char *err,
			   size_t errlen)
{
	(void)args;
	if (make(out, 2, span_falsely_first, err, errlen))
		return -ENOMEM;
	out->role[1].span = span_falsely_second;
	return 0;
}

static const struct bench_op falsely = {
	.name = "self/falsely",
	.summary = "two roles with words of their own in one line",
	.prepare = prepare_falsely,
};

/* self/setup: what a profile of the timed region must not show. */

#define SETUP_BYTES (16u << 20)

/* A page fault for each page of SETUP_BYTES, then 100 ms of work. */
__attribute__((noinline)) void self_heavy_setup(void);
void self_heavy_setup(void)
{
	volatile char *fresh =
		mmap(NULL, SETUP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 start = bench_ticks();
	double ticks = 100e6 / bench_tick_ns();

	BUG_ON(fresh == MAP_FAILED);
	madvise((void *)fresh, SETUP_BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < SETUP_BYTES; i += 4096)
		fresh[i] = 1;
	munmap((void *)fresh, SETUP_BYTES);
	while ((double)(bench_ticks() - start) < ticks)
		cpu_relax();
}

/* Ten dependent steps an operation, in a function of its own. */
__attribute__((noinline)) u64 self_light_step(u64 v);
u64 self_light_step(u64 v)
{
	for (int i = 0; i < 10; i++) {
		v = v * 6364136223846793005u + 1442695040888963407u;
		bench_use(v);
	}
	return v;
}

static void span_setup(void *ctx, u64 n)
{
	struct self *s = ctx;

	while (n--)
		s->ops = self_light_step(s->ops);
}

static int check_setup(void *ctx, char *err, size_t errlen)
{
	self_heavy_setup();
	return always_right(ctx, err, errlen);
}

static int prepare_setup(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	self_heavy_setup();
	if (make(out, (unsigned int)bench_arg(args, "threads"), span_setup, err, errlen))
		return -ENOMEM;
	out->check = check_setup;
	return 0;
}

static const struct bench_key setup_keys[] = {
	{ .name = "threads", .lo = 1, .hi = 1, .def = "1", .grid = "1", .help = "threads" },
	{ .name = NULL },
};

static const struct bench_op setup = {
	.name = "self/setup",
	.summary = "heavy before and after the timing, light in it",
	.keys = setup_keys,
	.prepare = prepare_setup,
};

/* A program with nothing registered, or with a table that is wrong: what bench_register() catches. */
static const struct bench_key bad_keys[] = {
	{ .name = "size", .lo = 1, .hi = 4, .def = "9", .grid = "1,2", .help = "bytes" },
	{ .name = NULL },
};
static const struct bench_op bad_default = {
	.name = "self/bad",
	.summary = "its default is out of range",
	.keys = bad_keys,
	.prepare = prepare_empty,
};

int main(int argc, char **argv)
{
	static const struct bench_op *const ops[] = { &inc,  &empty,   &count, &wait_op, &apart,
						      &fail, &refuse,  &crash, &hang,	 &events,
						      &page, &falsely, &setup };
	const char *mistake = getenv("SELFTEST_MISTAKE");

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(ops[i]);
	if (mistake && !strcmp(mistake, "default"))
		bench_register(&bad_default);
	if (mistake && !strcmp(mistake, "twice"))
		bench_register(&inc);
	return bench_main(argc, argv);
}
