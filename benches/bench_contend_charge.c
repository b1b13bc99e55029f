/* SPDX-License-Identifier: MIT */
/*
 * Charge counters that all CPUs share, with a stock of pages on each.
 *
 *   operation        keys                          one operation is
 *   contend/charge   layout batch levels threads   256 pages charged one by one, then uncharged one by one, on each CPU
 *
 *   layout  packed    the usage beside its limits on one line, as in Linux 5.9 to 6.0
 *           separate  the usage on a line of its own, as since 6.1
 *   batch   pages that a CPU takes when its stock is empty and may keep: 32 up to 6.0, 64 since
 *   levels  counters from the group that is charged to the root, each charged
 *
 * Kernel: try_charge_memcg(), refill_stock() in mm/memcontrol.c, mm/page_counter.c. A charge from stock touches nothing
 * that is shared. Otherwise each level's usage is added to, then compared with the limit, looked at for protection and for
 * the watermark: where they share its line, another CPU's add between two of them fetches the line away. What is fake
 * here: all CPUs charge one group, nothing reaches a limit, there is no reclaim; sockets' own counters are in tcp/.
 */
#include "benches/bench_contend.h"

#define MAX_CPUS   BENCH_MAX_ROLES
#define MAX_LEVELS 4
#define MAX_BATCH  1024
#define BURST	   256
#define LIMIT	   (1L << 40)

static const char *const layout_words[] = { "packed", "separate", NULL };

/* In the order of 5.9's fields. */
struct counter_packed {
	atomic_long_t usage;
	long min, low, high, max;
	long emin;
	atomic_long_t min_usage, children_min_usage;
	long elow; /* the second line */
	atomic_long_t low_usage, children_low_usage;
	long watermark, failcnt;
	struct counter_packed *parent;
} ____cacheline_aligned;

/* In the order of 6.1's. */
struct counter_separate {
	atomic_long_t usage;
	long emin ____cacheline_aligned; /* the second line */
	atomic_long_t min_usage, children_min_usage;
	long elow;
	atomic_long_t low_usage, children_low_usage;
	long watermark, failcnt;
	long min ____cacheline_aligned; /* the third: only ever read */
	long low, high, max;
	struct counter_separate *parent;
} ____cacheline_aligned;

_Static_assert(offsetof(struct counter_packed, max) < SMP_CACHE_BYTES,
	       "usage and limits on one line");
_Static_assert(offsetof(struct counter_separate, emin) == SMP_CACHE_BYTES, "the usage alone");

struct charge_ctx {
	struct counter_packed packed[MAX_LEVELS];
	struct counter_separate separate[MAX_LEVELS];
	unsigned int levels, threads;
	long batch;
	struct bench_quota quota;
	struct {
		long nr; /* pages that this CPU was charged for and does not use */
	} ____cacheline_aligned stock[MAX_CPUS];
};

/* LAYOUT is a suffix of a type and the name of the array. */
#define COUNTERS(layout)                                                                        \
	static __always_inline void protection_##layout(struct counter_##layout *k)             \
	{                                                                                       \
		if (!k->parent)                                                                 \
			return;                                                                 \
		bench_use(skb_load(&k->min, SKB_C_MEM));                                        \
		bench_use(skb_load(&k->low, SKB_C_MEM));                                        \
	}                                                                                       \
	/* page_counter_try_charge(): the limit is out of reach. */                             \
	static void try_charge_##layout(struct charge_ctx *c, long nr)                          \
	{                                                                                       \
		for (struct counter_##layout *k = &c->layout[0]; k; k = k->parent) {            \
			long usage = atomic_long_add_return(nr, &k->usage, SKB_C_MEM);          \
                                                                                                \
			BUG_ON(usage > skb_load(&k->max, SKB_C_MEM));                           \
			protection_##layout(k);                                                 \
			if (usage > skb_load(&k->watermark, SKB_C_MEM))                         \
				skb_store(&k->watermark, usage, SKB_C_MEM);                     \
		}                                                                               \
	}                                                                                       \
	static void cancel_##layout(struct charge_ctx *c, long nr)                              \
	{                                                                                       \
		for (struct counter_##layout *k = &c->layout[0]; k; k = k->parent) {            \
			BUG_ON(atomic_long_sub_return(nr, &k->usage, SKB_C_MEM) < 0);           \
			protection_##layout(k);                                                 \
		}                                                                               \
	}                                                                                       \
	static __always_inline void charge_one_##layout(struct charge_ctx *c, long *stock)      \
	{                                                                                       \
		if (*stock) {                                                                   \
			--*stock;                                                               \
			return;                                                                 \
		}                                                                               \
		try_charge_##layout(c, c->batch);                                               \
		*stock = c->batch - 1;                                                          \
	}                                                                                       \
	/* refill_stock(): all of it goes back once it is more than a batch. */                 \
	static __always_inline void uncharge_one_##layout(struct charge_ctx *c, long *stock)    \
	{                                                                                       \
		if (++*stock > c->batch) {                                                      \
			cancel_##layout(c, *stock);                                             \
			*stock = 0;                                                             \
		}                                                                               \
	}                                                                                       \
	static __always_inline void charge_burst_##layout(struct charge_ctx *c, long *stock)    \
	{                                                                                       \
		for (unsigned int i = 0; i < BURST; i++)                                        \
			charge_one_##layout(c, stock);                                          \
	}                                                                                       \
	static __always_inline void uncharge_burst_##layout(struct charge_ctx *c, long *stock)  \
	{                                                                                       \
		for (unsigned int i = 0; i < BURST; i++)                                        \
			uncharge_one_##layout(c, stock);                                        \
	}                                                                                       \
	static void span_##layout(void *arg, u64 n)                                             \
	{                                                                                       \
		struct charge_ctx *c = arg;                                                     \
		long *stock = &c->stock[smp_processor_id()].nr;                                 \
		struct bench_share share = quota_begin(&c->quota, n, c->threads);               \
                                                                                                \
		while ((n = quota_take(&c->quota, &share)))                                     \
			while (n--) {                                                           \
				charge_burst_##layout(c, stock);                                \
				uncharge_burst_##layout(c, stock);                              \
			}                                                                       \
	}                                                                                       \
	static void phase_charge_##layout(void *arg)                                            \
	{                                                                                       \
		struct charge_ctx *c = arg;                                                     \
                                                                                                \
		charge_burst_##layout(c, &c->stock[0].nr);                                      \
	}                                                                                       \
	static void phase_uncharge_##layout(void *arg)                                          \
	{                                                                                       \
		struct charge_ctx *c = arg;                                                     \
                                                                                                \
		uncharge_burst_##layout(c, &c->stock[0].nr);                                    \
	}                                                                                       \
	static void one_##layout(void *arg)                                                     \
	{                                                                                       \
		bench_phase("charge", phase_charge_##layout, arg);                              \
		bench_phase("uncharge", phase_uncharge_##layout, arg);                          \
	}                                                                                       \
	/* Everything is uncharged: what the counters still say lies in the CPUs' stocks. */    \
	static int check_##layout(void *arg, char *err, size_t errlen)                          \
	{                                                                                       \
		struct charge_ctx *c = arg;                                                     \
		long stock = 0;                                                                 \
                                                                                                \
		one_##layout(c);                                                                \
		for (unsigned int i = 0; i < c->threads; i++)                                   \
			stock += c->stock[i].nr;                                                \
		for (unsigned int i = 0; i < c->levels; i++) {                                  \
			long usage = atomic_long_read(&c->layout[i].usage, SKB_C_MEM);          \
                                                                                                \
			if (usage == stock && c->layout[i].watermark >= stock)                  \
				continue;                                                       \
			snprintf(err, errlen, "level %u counts %ld pages, %ld are in stock", i, \
				 usage, stock);                                                 \
			return -1;                                                              \
		}                                                                               \
		return 0;                                                                       \
	}                                                                                       \
	static void init_##layout(struct charge_ctx *c)                                         \
	{                                                                                       \
		for (unsigned int i = 0; i < c->levels; i++) {                                  \
			c->layout[i].max = c->layout[i].high = LIMIT;                           \
			c->layout[i].parent = i + 1 < c->levels ? &c->layout[i + 1] : NULL;     \
		}                                                                               \
	}
COUNTERS(packed)
COUNTERS(separate)

static int prepare(const struct bench_args *args, struct bench_case *out, char *err, size_t errlen)
{
	bool separate = bench_arg(args, "layout");
	struct charge_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->levels = (unsigned int)bench_arg(args, "levels");
	c->threads = (unsigned int)bench_arg(args, "threads");
	c->batch = bench_arg(args, "batch");
	init_packed(c);
	init_separate(c);
	*out = (struct bench_case){
		.ctx = c,
		.least_n = 8,
		.ops = c->threads,
		.check = separate ? check_separate : check_packed,
		.ledger = separate ? one_separate : one_packed,
		.teardown = free,
	};
	contend_roles(out, 0, c->threads, "cpu", separate ? span_separate : span_packed);
	return 0;
}

static const struct bench_key keys[] = {
	{ "layout", layout_words, 0, 0, "separate", "packed,separate",
	  "whether usage and limits share a line" },
	{ "batch", NULL, 1, MAX_BATCH, "64", "1,32,64,128", "pages of a CPU's stock" },
	{ "levels", NULL, 1, MAX_LEVELS, "2", "2", "counters that each charge walks" },
	CONTEND_KEY_THREADS(MAX_CPUS, "2", "1,2", "CPUs that charge"),
	{ 0 },
};

static const struct bench_op op = { "contend/charge", "pages charged to one group by several CPUs",
				    keys, prepare, NULL };

void bench_contend_charge(void)
{
	bench_register(&op);
}
