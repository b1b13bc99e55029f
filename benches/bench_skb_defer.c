/* SPDX-License-Identifier: MIT */
/*
 * Deferred freeing by CPU, by itself.
 *
 *   operation                   keys               one operation is
 *   skb/skb_attempt_defer_free  era list nr frags  NR sk_buffs made, deferred to another CPU, and
 *                                                  freed from its list, all by this thread
 *   skb/skb_defer_two           era list frags     one made by a CPU, let go of by another, freed at
 *                                                  home
 *   skb/skb_defer_free_flush    era list           a look at lists that are empty
 *
 * Kernel: skb_attempt_defer_free() and skb_defer_free_flush(), 5.19 for list:cpu_list and 6.18 for
 * list:node_llist. What is fake here: an sk_buff has no payload that anybody reads, and the case
 * holds a reference on each page, so that no put is the last; where one thread does it all, the
 * sk_buffs say that CPU 1 made them and CPU 1's list is flushed by it: no line travels. Nobody waits
 * for an IPI: the flush comes when it comes.
 */
#include "benches/bench_skb.h"

#include "skb/skb_defer.h"
#include "skb/skb_napi.h"

#include <errno.h>

#define SLOTS 64 /* between the two CPUs */
#define MOST  63 /* deferred at once: below both maxima */
#define HOME  1 /* whose they say to be, where one thread does it all */

static const char *const list_words[] = { "cpu_list", "node_llist", NULL };

struct defer_case {
	struct sk_buff *skb[MOST];
	struct page *page[MAX_SKB_FRAGS];
	enum skb_era era;
	enum skb_defer how;
	unsigned int nr, frags;
	unsigned int flushed;

	struct sk_buff *slot[SLOTS] ____cacheline_aligned;
	u32 tail ____cacheline_aligned; /* the maker's */
	u32 head ____cacheline_aligned; /* the other's */
};

static __always_inline struct sk_buff *make_one(struct defer_case *c, const enum skb_era era)
{
	struct sk_buff *skb = napi_alloc_skb(era, 128);

	BUG_ON(!skb);
	for (unsigned int i = 0; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_add_rx_frag(skb, i, c->page[i], 0, PAGE_SIZE, PAGE_SIZE);
	}
	return skb;
}

static __always_inline void make_all(struct defer_case *c, const enum skb_era era)
{
	for (unsigned int i = 0; i < c->nr; i++) {
		c->skb[i] = make_one(c, era);
		c->skb[i]->headers.alloc_cpu = HOME;
	}
}

static __always_inline void defer_all(struct defer_case *c, const enum skb_era era,
				      const enum skb_defer how)
{
	for (unsigned int i = 0; i < c->nr; i++)
		BUG_ON(!skb_attempt_defer_free(era, how, c->skb[i]));
}

#define SPANS(suffix, era, how)                                                                   \
	static void span_alone_##suffix(void *arg, u64 n)                                         \
	{                                                                                         \
		struct defer_case *c = arg;                                                       \
                                                                                                  \
		while (n--) {                                                                     \
			make_all(c, era);                                                         \
			defer_all(c, era, how);                                                   \
			c->flushed = skb_defer_free_flush(era, how, &softnet_data[HOME]);         \
		}                                                                                 \
	}                                                                                         \
	static void span_flush_##suffix(void *arg, u64 n)                                         \
	{                                                                                         \
		struct defer_case *c = arg;                                                       \
                                                                                                  \
		while (n--)                                                                       \
			c->flushed = skb_defer_free_flush(era, how, &softnet_data[HOME]);         \
	}                                                                                         \
	static void span_maker_##suffix(void *arg, u64 n)                                         \
	{                                                                                         \
		struct defer_case *c = arg;                                                       \
		u32 tail = c->tail;                                                               \
                                                                                                  \
		while (n--) {                                                                     \
			bench_wait_until(tail - smp_load_acquire(&c->head, SKB_C_OTHER) < SLOTS); \
			c->slot[tail % SLOTS] = make_one(c, era);                                 \
			smp_store_release(&c->tail, ++tail, SKB_C_OTHER);                         \
			skb_defer_free_flush(era, how, this_softnet());                           \
		}                                                                                 \
	}                                                                                         \
	static void span_other_##suffix(void *arg, u64 n)                                         \
	{                                                                                         \
		struct defer_case *c = arg;                                                       \
		u32 head = c->head;                                                               \
                                                                                                  \
		while (n--) {                                                                     \
			bench_wait_until(smp_load_acquire(&c->tail, SKB_C_OTHER) != head);        \
			skb_attempt_defer_free(era, how, c->slot[head % SLOTS]);                  \
			smp_store_release(&c->head, ++head, SKB_C_OTHER);                         \
		}                                                                                 \
	}                                                                                         \
	static void make_##suffix(void *arg)                                                      \
	{                                                                                         \
		make_all(arg, era);                                                               \
	}                                                                                         \
	static void defer_##suffix(void *arg)                                                     \
	{                                                                                         \
		defer_all(arg, era, how);                                                         \
	}                                                                                         \
	static void flush_##suffix(void *arg)                                                     \
	{                                                                                         \
		struct defer_case *c = arg;                                                       \
                                                                                                  \
		c->flushed = skb_defer_free_flush(era, how, &softnet_data[HOME]);                 \
	}

#define SPANS_ERA(suffix, era)                            \
	SPANS(suffix##_cpu_list, era, SKB_DEFER_CPU_LIST) \
	SPANS(suffix##_node_llist, era, SKB_DEFER_NODE_LLIST)
SKB_FOR_EACH_ERA(SPANS_ERA)

struct defer_fns {
	void (*alone)(void *, u64), (*flush)(void *, u64), (*maker)(void *, u64),
		(*other)(void *, u64);
	void (*make_phase)(void *), (*defer_phase)(void *), (*flush_phase)(void *);
};

#define FNS(suffix)                                                                        \
	{                                                                                  \
		span_alone_##suffix, span_flush_##suffix, span_maker_##suffix,             \
			span_other_##suffix, make_##suffix, defer_##suffix, flush_##suffix \
	}
static const struct defer_fns fns[SKB_ERA_NR][SKB_DEFER_NR] = {
	{ FNS(3_4_cpu_list), FNS(3_4_node_llist) },
	{ FNS(6_1_cpu_list), FNS(6_1_node_llist) },
	{ FNS(6_12_cpu_list), FNS(6_12_node_llist) },
};

static void ledger(void *arg)
{
	struct defer_case *c = arg;
	const struct defer_fns *fn = &fns[c->era][c->how];

	if (c->nr) {
		bench_phase("make", fn->make_phase, c);
		bench_phase("defer", fn->defer_phase, c);
	}
	bench_phase("flush", fn->flush_phase, c);
}

/* What was deferred is what is flushed, and no page keeps a reference. */
static int check(void *arg, char *err, size_t errlen)
{
	struct defer_case *c = arg;

	skb_defer_free_flush(c->era, c->how, this_softnet());
	ledger(c);
	if (c->flushed != c->nr || softnet_deferred(HOME) || softnet_deferred(0)) {
		snprintf(err, errlen, "%u sk_buffs deferred, %u freed, %u wait", c->nr, c->flushed,
			 softnet_deferred(HOME) + softnet_deferred(0));
		return -1;
	}
	for (unsigned int i = 0; i < c->frags; i++) {
		if (page_count(c->page[i]) == 1)
			continue;
		snprintf(err, errlen, "page %u has %d references", i, page_count(c->page[i]));
		return -1;
	}
	return 0;
}

static void teardown(void *arg)
{
	struct defer_case *c = arg;

	skb_defer_free_flush(c->era, c->how, this_softnet());
	napi_cache_drain();
	for (unsigned int i = 0; i < c->frags; i++)
		if (c->page[i])
			put_page(c->page[i]);
	free(c);
}

static int prepare(const struct bench_args *args, unsigned int nr, unsigned int frags,
		   struct bench_case *out, char *err, size_t errlen)
{
	struct defer_case *c = aligned_alloc(SMP_CACHE_BYTES, ALIGN(sizeof(*c), SMP_CACHE_BYTES));

	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return -ENOMEM;
	}
	memset(c, 0, sizeof(*c));
	softnet_init();
	c->era = bench_arg(args, "era");
	c->how = bench_arg(args, "list");
	c->nr = nr;
	c->frags = frags;
	for (unsigned int i = 0; i < frags; i++) {
		c->page[i] = alloc_pages(0);
		if (!c->page[i]) {
			snprintf(err, errlen, "no memory for %u pages: more --skb_pages", frags);
			teardown(c);
			return -ENOMEM;
		}
	}
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", fns[c->era][c->how].alone } },
		.check = check,
		.ledger = ledger,
		.teardown = teardown,
	};
	return 0;
}

static int prepare_alone(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	return prepare(args, bench_arg(args, "nr"), bench_arg(args, "frags"), out, err, errlen);
}

static int prepare_flush(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	int ret = prepare(args, 0, 0, out, err, errlen);

	if (!ret)
		out->role[0].span = fns[bench_arg(args, "era")][bench_arg(args, "list")].flush;
	return ret;
}

static int prepare_two(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	const struct defer_fns *fn = &fns[bench_arg(args, "era")][bench_arg(args, "list")];
	int ret = prepare(args, 1, bench_arg(args, "frags"), out, err, errlen);

	if (ret)
		return ret;
	out->nr_roles = 2;
	out->role[0] = (struct bench_role){ "maker", fn->maker };
	out->role[1] = (struct bench_role){ "other", fn->other };
	return 0;
}

#define KEY_DEFER_LIST                                                                            \
	{                                                                                         \
		"list", list_words, 0, 0, "node_llist", "cpu_list,node_llist", "which generation" \
	}
static const struct bench_key alone_keys[] = {
	KEY_ERA("6.12"),
	KEY_DEFER_LIST,
	{ "nr", NULL, 1, MOST, "1", "1,16", "sk_buffs that are deferred before the flush" },
	KEY_FRAGS("17", "0,17"),
	{ 0 },
};
static const struct bench_key two_keys[] = {
	KEY_ERA("6.12"), KEY_DEFER_LIST, KEY_FRAGS("17", "17"), { 0 }
};
static const struct bench_key flush_keys[] = { KEY_ERA("6.12"), KEY_DEFER_LIST, { 0 } };

static const struct bench_op ops[] = {
	{ "skb/skb_attempt_defer_free", "sk_buffs deferred to another CPU's list, and its flush",
	  alone_keys, prepare_alone, NULL },
	{ "skb/skb_defer_two", "an sk_buff made by one CPU, let go of by another, freed at home",
	  two_keys, prepare_two, NULL },
	{ "skb/skb_defer_free_flush", "the flush of empty lists", flush_keys, prepare_flush, NULL },
};

void bench_skb_defer(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
