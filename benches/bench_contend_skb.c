/* SPDX-License-Identifier: MIT */
/*
 * What two owners of one head or one pair share, between CPUs.
 *
 *   operation           keys               one operation is
 *   contend/skb_clone   era of threads     skb_clone() and kfree_skb() of the clone, on each CPU; the sk_buffs that are
 *                                          cloned share one head ("shared") or have their own ("own")
 *   contend/unclone     era frags threads  a clone to each of THREADS completers, then skb_unclone_keeptruesize()
 *                                          (3.4: skb_unclone()) while they free theirs on other CPUs
 *   contend/shinfo      layout threads     one CPU reads frag 0, as a driver that maps it; THREADS others add a share
 *                                          to dataref and drop it
 *   contend/fclone      era of threads     an sk_buff and its clone made by one CPU, which frees the first, while
 *                                          another frees the clone; THREADS such couples
 *   contend/skb_ext     of threads         a share of extensions taken and dropped, on each CPU
 *
 *   layout  kernel  struct skb_shared_info: dataref at 32, frag 0 at 48, on one line
 *           apart   the frags on a line of their own: what false sharing takes from contend/shinfo is the difference
 *   of      fclone  (contend/fclone) a pair, whose halves share their fourth line and fclone_ref
 *           shells  two shells of their own: the same work without a shared line but for dataref, and an allocation more
 *
 * Kernel: net/core/skbuff.c. unclone is the trim race by itself: whether an expansion finds the clone alive is up to the
 * CPUs, and `race_share` in the report tells in how many operations it did (tcp/trim/complete:other is the whole of it).
 * What is fake here: there is no NIC; a completer frees as fast as it can; pages are held by the case, so that no put is
 * the last; a reader of frag 0 does nothing else, and
 * reads as long as the others change dataref: what a read takes is `read_ns` in the report, the case's time is theirs.
 */
#include "benches/bench_contend.h"

#include "skb/skb_check.h"
#include "skb/skb_ext.h"

#define MAX_CPUS BENCH_MAX_ROLES
#define HEAD	 MAX_TCP_HEADER /* bytes of headroom, and no tailroom */
#define READS	 16 /* of frag 0 between two looks whether the others are done */

static const char *const shared_words[] = { "shared", "own", NULL };
static const char *const layout_words[] = { "kernel", "apart", NULL };
static const char *const pair_words[] = { "fclone", "shells", NULL };

static struct sk_buff *new_skb(enum skb_era era, bool fclone)
{
	struct sk_buff *skb = fclone ? alloc_skb_fclone(era, HEAD, NUMA_NO_NODE)
				     : alloc_skb(era, HEAD, NUMA_NO_NODE);

	if (skb)
		skb_reserve(skb, HEAD);
	return skb;
}

static int out_of_memory(char *err, size_t errlen)
{
	snprintf(err, errlen, "no memory for the case's sk_buffs and pages: more --skb_pages");
	return -ENOMEM;
}

/* --- skb_clone */

struct clone_ctx {
	struct sk_buff *skb[MAX_CPUS];
	struct sk_buff *clone; /* between two phases */
	enum skb_era era;
	unsigned int threads;
	bool shared;
	struct bench_quota quota;
};

#define CLONE_SPAN(suffix, era)                                                   \
	static void span_clone_##suffix(void *arg, u64 n)                         \
	{                                                                         \
		struct clone_ctx *c = arg;                                        \
		struct sk_buff *skb = c->skb[smp_processor_id()];                 \
		struct bench_share share = quota_begin(&c->quota, n, c->threads); \
                                                                                  \
		while ((n = quota_take(&c->quota, &share)))                       \
			while (n--)                                               \
				kfree_skb(era, skb_clone(era, skb));              \
	}
SKB_FOR_EACH_ERA(CLONE_SPAN)

static void phase_clone(void *arg)
{
	struct clone_ctx *c = arg;

	c->clone = skb_clone(c->era, c->skb[0]);
	BUG_ON(!c->clone);
}

static void phase_free_clone(void *arg)
{
	struct clone_ctx *c = arg;

	kfree_skb(c->era, c->clone);
	c->clone = NULL;
}

static void one_clone(void *arg)
{
	bench_phase("clone", phase_clone, arg);
	bench_phase("free_clone", phase_free_clone, arg);
}

static int check_clone(void *arg, char *err, size_t errlen)
{
	struct clone_ctx *c = arg;
	int want = c->shared ? (int)c->threads : 1;

	one_clone(c);
	for (unsigned int i = 0; i < c->threads; i++) {
		int dataref = atomic_read(&skb_shinfo(c->skb[i])->dataref, SKB_C_DATAREF);

		if (skb_check(c->skb[i], err, errlen))
			return -1;
		if (dataref != want) {
			snprintf(err, errlen, "%d sk_buffs share the head of CPU %u's, not %d",
				 dataref, i, want);
			return -1;
		}
	}
	return 0;
}

static void teardown_clone(void *arg)
{
	struct clone_ctx *c = arg;

	for (unsigned int i = 0; i < c->threads; i++)
		if (c->skb[i])
			kfree_skb(c->era, c->skb[i]);
	free(c);
}

static int prepare_clone(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const span[])(void *, u64) = { span_clone_3_4, span_clone_6_1,
						     span_clone_6_12 };
	struct clone_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->era = (enum skb_era)bench_arg(args, "era");
	c->shared = !bench_arg(args, "of");
	c->threads = (unsigned int)bench_arg(args, "threads");
	for (unsigned int i = 0; i < c->threads; i++) {
		c->skb[i] = i && c->shared ? skb_clone(c->era, c->skb[0]) : new_skb(c->era, false);
		if (!c->skb[i]) {
			teardown_clone(c);
			return out_of_memory(err, errlen);
		}
	}
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check_clone,
		.ledger = one_clone,
		.teardown = teardown_clone,
	};
	contend_roles(out, 0, c->threads, "cpu", span[c->era]);
	return 0;
}

/* --- unclone */

struct race_ctx {
	struct sk_buff *skb; /* the owner's */
	struct sk_buff *clone; /* between two phases */
	struct page *page[MAX_SKB_FRAGS]; /* the case's references */
	enum skb_era era;
	unsigned int frags, threads;
	u64 ops, expanded; /* the owner's, over all spans */
	struct hand hand[MAX_CPUS]; /* the owner's to each completer; the first is not used */
};

static __always_inline void unclone(const enum skb_era era, struct sk_buff *skb)
{
	BUG_ON(era < ERA_6_1 ? skb_unclone(era, skb) : skb_unclone_keeptruesize(era, skb));
}

#define RACE_SPANS(suffix, era)                                                          \
	static void span_owner_##suffix(void *arg, u64 n)                                \
	{                                                                                \
		struct race_ctx *c = arg;                                                \
		struct sk_buff *skb = c->skb;                                            \
                                                                                         \
		c->ops += n;                                                             \
		while (n--) {                                                            \
			const unsigned char *head = skb->head;                           \
                                                                                         \
			for (unsigned int i = 1; i <= c->threads; i++) {                 \
				struct sk_buff *clone = skb_clone(era, skb);             \
                                                                                         \
				BUG_ON(!clone);                                          \
				hand_give(&c->hand[i], clone);                           \
			}                                                                \
			unclone(era, skb);                                               \
			c->expanded += skb->head != head;                                \
		}                                                                        \
		for (unsigned int i = 1; i <= c->threads; i++)                           \
			hand_settle(&c->hand[i]);                                        \
	}                                                                                \
	static void span_completer_##suffix(void *arg, u64 n)                            \
	{                                                                                \
		struct hand *hand = &((struct race_ctx *)arg)->hand[smp_processor_id()]; \
                                                                                         \
		while (n--)                                                              \
			kfree_skb(era, hand_take(hand));                                 \
	}
SKB_FOR_EACH_ERA(RACE_SPANS)

static void phase_race_clone(void *arg)
{
	struct race_ctx *c = arg;

	c->clone = skb_clone(c->era, c->skb);
	BUG_ON(!c->clone);
}

static void phase_unclone(void *arg)
{
	struct race_ctx *c = arg;

	unclone(c->era, c->skb);
}

static void phase_complete(void *arg)
{
	struct race_ctx *c = arg;

	kfree_skb(c->era, c->clone);
	c->clone = NULL;
}

static void one_race(void *arg)
{
	bench_phase("clone", phase_race_clone, arg);
	bench_phase("unclone", phase_unclone, arg);
	bench_phase("free_clone", phase_complete, arg);
}

/* Whoever was last, every old head is gone and its references with it. */
static int check_race(void *arg, char *err, size_t errlen)
{
	struct race_ctx *c = arg;

	one_race(c);
	if (skb_check(c->skb, err, errlen))
		return -1;
	if (skb_cloned(c->skb)) {
		snprintf(err, errlen, "the head is still shared");
		return -1;
	}
	for (unsigned int i = 0; i < c->frags; i++)
		if (page_count(c->page[i]) != 2) {
			snprintf(err, errlen, "page %u has %d references, not 2", i,
				 page_count(c->page[i]));
			return -1;
		}
	return 0;
}

static void report_race(void *arg, struct bench_report *report)
{
	struct race_ctx *c = arg;

	bench_report_add(report, "race_share", c->ops ? (double)c->expanded / (double)c->ops : 0);
}

static void teardown_race(void *arg)
{
	struct race_ctx *c = arg;

	if (c->skb)
		kfree_skb(c->era, c->skb);
	for (unsigned int i = 0; i < c->frags; i++)
		if (c->page[i])
			put_page(c->page[i]);
	free(c);
}

static int prepare_race(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const owner[])(void *, u64) = { span_owner_3_4, span_owner_6_1,
						      span_owner_6_12 };
	static void (*const completer[])(void *, u64) = { span_completer_3_4, span_completer_6_1,
							  span_completer_6_12 };
	struct race_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->era = (enum skb_era)bench_arg(args, "era");
	c->frags = (unsigned int)bench_arg(args, "frags");
	c->threads = (unsigned int)bench_arg(args, "threads");
	c->skb = new_skb(c->era, true);
	for (unsigned int i = 0; i < c->frags; i++)
		c->page[i] = alloc_pages(0);
	if (!c->skb || (c->frags && !c->page[c->frags - 1])) {
		teardown_race(c);
		return out_of_memory(err, errlen);
	}
	for (unsigned int i = 0; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_add_rx_frag(c->skb, (int)i, c->page[i], 0, PAGE_SIZE, PAGE_SIZE);
	}
	*out = (struct bench_case){
		.ctx = c,
		.role = { { "owner", owner[c->era] } },
		.ops = 1,
		.least_n = 32,
		.check = check_race,
		.ledger = one_race,
		.report = report_race,
		.teardown = teardown_race,
	};
	contend_roles(out, 1, c->threads, "completer", completer[c->era]);
	return 0;
}

/* --- shinfo */

struct shinfo_ctx {
	struct skb_shared_info shinfo ____cacheline_aligned;
	skb_frag_t apart ____cacheline_aligned;
	struct page *page ____cacheline_aligned;
	const skb_frag_t *frag0; /* the one that is read */
	unsigned int threads;
	u64 ops, reads, ticks; /* the reader's, over all spans */
	struct bench_quota quota;
};

_Static_assert(offsetof(struct skb_shared_info, dataref) / SMP_CACHE_BYTES ==
		       offsetof(struct skb_shared_info, frags) / SMP_CACHE_BYTES,
	       "in the kernel's layout dataref and frag 0 share a line");

static __always_inline void map_frag(const skb_frag_t *frag)
{
	bench_use(skb_load(&frag->page, SKB_C_SHINFO_SH));
	bench_use(skb_load(&frag->offset, SKB_C_SHINFO_SH));
	bench_use(skb_load(&frag->len, SKB_C_SHINFO_SH));
}

/* Reads until the others have done theirs. */
static void span_mapper(void *arg, u64 n)
{
	struct shinfo_ctx *c = arg;
	struct bench_share share = quota_begin(&c->quota, n, c->threads);
	const skb_frag_t *frag = c->frag0;
	u64 since = bench_ticks();

	do {
		for (unsigned int i = 0; i < READS; i++)
			map_frag(frag);
		c->reads += READS;
	} while (!quota_over(&c->quota, &share));
	c->ticks += bench_ticks() - since;
	c->ops += n * c->threads;
}

static void span_sharer(void *arg, u64 n)
{
	struct shinfo_ctx *c = arg;
	struct bench_share share = quota_begin(&c->quota, n, c->threads);
	atomic_t *dataref = &c->shinfo.dataref;

	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			atomic_inc(dataref, SKB_C_DATAREF);
			BUG_ON(!atomic_sub_return(1, dataref, SKB_C_DATAREF));
		}
}

static void phase_map(void *arg)
{
	map_frag(((struct shinfo_ctx *)arg)->frag0);
}

static void phase_share(void *arg)
{
	struct shinfo_ctx *c = arg;

	atomic_inc(&c->shinfo.dataref, SKB_C_DATAREF);
	BUG_ON(!atomic_sub_return(1, &c->shinfo.dataref, SKB_C_DATAREF));
}

static void one_shinfo(void *arg)
{
	bench_phase("map", phase_map, arg);
	bench_phase("share", phase_share, arg);
}

static int check_shinfo(void *arg, char *err, size_t errlen)
{
	struct shinfo_ctx *c = arg;
	int dataref;

	one_shinfo(c);
	dataref = atomic_read(&c->shinfo.dataref, SKB_C_DATAREF);
	if (dataref == 1 && c->frag0->page == c->page && c->frag0->len == PAGE_SIZE)
		return 0;
	snprintf(err, errlen, "dataref is %d, not 1, or frag 0 is not what it was", dataref);
	return -1;
}

static void report_shinfo(void *arg, struct bench_report *report)
{
	struct shinfo_ctx *c = arg;
	double reads = (double)max(c->reads, (u64)1), ops = (double)max(c->ops, (u64)1);

	bench_report_add(report, "read_ns", (double)c->ticks * bench_tick_ns() / reads);
	bench_report_add(report, "reads_per_op", (double)c->reads / ops);
}

static void teardown_shinfo(void *arg)
{
	struct shinfo_ctx *c = arg;

	if (c->page)
		put_page(c->page);
	free(c);
}

static int prepare_shinfo(const struct bench_args *args, struct bench_case *out, char *err,
			  size_t errlen)
{
	struct shinfo_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->page = alloc_pages(0);
	if (!c->page) {
		teardown_shinfo(c);
		return out_of_memory(err, errlen);
	}
	c->threads = (unsigned int)bench_arg(args, "threads");
	atomic_set(&c->shinfo.dataref, 1, SKB_C_DATAREF);
	c->shinfo.frags[0].page = c->apart.page = c->page;
	c->shinfo.frags[0].len = c->apart.len = PAGE_SIZE;
	c->frag0 = bench_arg(args, "layout") ? &c->apart : &c->shinfo.frags[0];
	*out = (struct bench_case){
		.ctx = c,
		.role = { { "mapper", span_mapper } },
		.ops = c->threads,
		.check = check_shinfo,
		.ledger = one_shinfo,
		.report = report_shinfo,
		.teardown = teardown_shinfo,
	};
	contend_roles(out, 1, c->threads, "sharer", span_sharer);
	return 0;
}

/* --- fclone */

struct pair_ctx {
	struct sk_buff *skb, *clone; /* between two phases */
	enum skb_era era;
	bool fclone;
	unsigned int threads;
	struct hand hand[MAX_CPUS / 2];
	struct bench_quota quota;
};

/* As the retransmit queue links it. */
static __always_inline void queue(struct sk_buff *skb)
{
	skb->next = skb->prev = skb;
}

#define PAIR_SPANS(suffix, era, first)                                                \
	static void span_sender_##suffix(void *arg, u64 n)                            \
	{                                                                             \
		struct pair_ctx *c = arg;                                             \
		struct hand *hand = &c->hand[smp_processor_id()];                     \
		struct bench_share share = quota_begin(&c->quota, n, c->threads);     \
                                                                                      \
		while ((n = quota_take(&c->quota, &share)))                           \
			while (n--) {                                                 \
				struct sk_buff *skb = first(era, HEAD, NUMA_NO_NODE); \
				struct sk_buff *clone;                                \
                                                                                      \
				BUG_ON(!skb);                                         \
				clone = skb_clone(era, skb);                          \
				BUG_ON(!clone);                                       \
				hand_give(hand, clone);                               \
				queue(skb);                                           \
				kfree_skb(era, skb);                                  \
			}                                                             \
		hand_finish(hand);                                                    \
	}
#define PAIR_SPANS_ERA(suffix, era)                                            \
	PAIR_SPANS(fclone_##suffix, era, alloc_skb_fclone)                     \
	PAIR_SPANS(shells_##suffix, era, alloc_skb)                            \
	static void span_freer_##suffix(void *arg, u64 n)                      \
	{                                                                      \
		struct pair_ctx *c = arg;                                      \
		struct hand *hand = &c->hand[smp_processor_id() - c->threads]; \
		void *clone;                                                   \
                                                                               \
		(void)n; /* what its sender sends */                           \
		while ((clone = hand_take(hand)) != HAND_END)                  \
			kfree_skb(era, clone);                                 \
	}
SKB_FOR_EACH_ERA(PAIR_SPANS_ERA)

static void phase_pair_alloc(void *arg)
{
	struct pair_ctx *c = arg;

	c->skb = c->fclone ? alloc_skb_fclone(c->era, HEAD, NUMA_NO_NODE)
			   : alloc_skb(c->era, HEAD, NUMA_NO_NODE);
	BUG_ON(!c->skb);
}

static void phase_pair_clone(void *arg)
{
	struct pair_ctx *c = arg;

	c->clone = skb_clone(c->era, c->skb);
	BUG_ON(!c->clone);
}

static void phase_free_first(void *arg)
{
	struct pair_ctx *c = arg;

	queue(c->skb);
	kfree_skb(c->era, c->skb);
}

static void phase_free_last(void *arg)
{
	struct pair_ctx *c = arg;

	kfree_skb(c->era, c->clone);
	c->skb = c->clone = NULL;
}

static void one_pair(void *arg)
{
	bench_phase("alloc", phase_pair_alloc, arg);
	bench_phase("clone", phase_pair_clone, arg);
	bench_phase("free_first", phase_free_first, arg);
	bench_phase("free_clone", phase_free_last, arg);
}

static int check_pair(void *arg, char *err, size_t errlen)
{
	struct pair_ctx *c = arg;

	phase_pair_alloc(c);
	phase_pair_clone(c);
	if (skb_check(c->skb, err, errlen) || skb_check(c->clone, err, errlen))
		return -1;
	if ((c->clone->fclone == SKB_FCLONE_CLONE) != c->fclone || c->clone->head != c->skb->head) {
		snprintf(err, errlen, "the clone is not what of:%s says", pair_words[!c->fclone]);
		return -1;
	}
	phase_free_first(c);
	phase_free_last(c);
	for (unsigned int i = 0; i < c->threads; i++)
		if (c->hand[i].given != c->hand[i].taken) {
			snprintf(err, errlen, "%u clones handed on, %u freed", c->hand[i].given,
				 c->hand[i].taken);
			return -1;
		}
	return 0;
}

static int prepare_pair(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const sender[2][SKB_ERA_NR])(void *, u64) = {
		{ span_sender_shells_3_4, span_sender_shells_6_1, span_sender_shells_6_12 },
		{ span_sender_fclone_3_4, span_sender_fclone_6_1, span_sender_fclone_6_12 },
	};
	static void (*const freer[])(void *, u64) = { span_freer_3_4, span_freer_6_1,
						      span_freer_6_12 };
	struct pair_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->era = (enum skb_era)bench_arg(args, "era");
	c->fclone = !bench_arg(args, "of");
	c->threads = (unsigned int)bench_arg(args, "threads");
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check_pair,
		.ledger = one_pair,
		.teardown = free,
	};
	contend_roles(out, 0, c->threads, "sender", sender[c->fclone][c->era]);
	contend_roles(out, c->threads, c->threads, "completer", freer[c->era]);
	return 0;
}

/* --- skb_ext */

struct ext_ctx {
	struct sk_buff *src[MAX_CPUS], *dst[MAX_CPUS];
	unsigned int threads;
	bool shared;
	struct bench_quota quota;
};

static void span_ext(void *arg, u64 n)
{
	struct ext_ctx *c = arg;
	struct sk_buff *src = c->src[smp_processor_id()], *dst = c->dst[smp_processor_id()];
	struct bench_share share = quota_begin(&c->quota, n, c->threads);

	while ((n = quota_take(&c->quota, &share)))
		while (n--) {
			__skb_ext_copy(dst, src);
			skb_ext_reset(dst);
		}
}

static void phase_ext_copy(void *arg)
{
	struct ext_ctx *c = arg;

	__skb_ext_copy(c->dst[0], c->src[0]);
}

static void phase_ext_put(void *arg)
{
	skb_ext_reset(((struct ext_ctx *)arg)->dst[0]);
}

static void one_ext(void *arg)
{
	bench_phase("copy", phase_ext_copy, arg);
	bench_phase("put", phase_ext_put, arg);
}

static int check_ext(void *arg, char *err, size_t errlen)
{
	struct ext_ctx *c = arg;
	int want = c->shared ? (int)c->threads : 1;

	one_ext(c);
	for (unsigned int i = 0; i < c->threads; i++) {
		int refs = refcount_read(&c->src[i]->extensions->refcnt, SKB_C_EXT);

		if (refs != want || !skb_ext_find(c->src[i], SKB_EXT_MPTCP) ||
		    c->dst[i]->active_extensions) {
			snprintf(err, errlen, "CPU %u's extensions have %d shares, not %d", i, refs,
				 want);
			return -1;
		}
	}
	return 0;
}

static void teardown_ext(void *arg)
{
	struct ext_ctx *c = arg;

	for (unsigned int i = 0; i < c->threads; i++) {
		if (c->src[i])
			kfree_skb(ERA_6_12, c->src[i]);
		if (c->dst[i])
			kfree_skb(ERA_6_12, c->dst[i]);
	}
	free(c);
}

static bool make_ext(struct ext_ctx *c, unsigned int i)
{
	c->src[i] = new_skb(ERA_6_12, false);
	c->dst[i] = new_skb(ERA_6_12, false);
	if (!c->src[i] || !c->dst[i])
		return false;
	if (i && c->shared) {
		__skb_ext_copy(c->src[i], c->src[0]);
		return true;
	}
	if (!skb_ext_add(c->src[i], SKB_EXT_MPTCP))
		return false;
	memset(skb_ext_find(c->src[i], SKB_EXT_MPTCP), 0, SKB_EXT_MPTCP_SIZE);
	return true;
}

static int prepare_ext(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	struct ext_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	c->shared = !bench_arg(args, "of");
	c->threads = (unsigned int)bench_arg(args, "threads");
	for (unsigned int i = 0; i < c->threads; i++)
		if (!make_ext(c, i)) {
			teardown_ext(c);
			return out_of_memory(err, errlen);
		}
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check_ext,
		.ledger = one_ext,
		.teardown = teardown_ext,
	};
	contend_roles(out, 0, c->threads, "cpu", span_ext);
	return 0;
}

static const struct bench_key clone_keys[] = {
	CONTEND_KEY_ERA,
	{ "of", shared_words, 0, 0, "shared", "shared,own",
	  "whether the CPUs' sk_buffs share a head" },
	CONTEND_KEY_THREADS(MAX_CPUS, "2", "1,2", "CPUs that clone"),
	{ 0 },
};
static const struct bench_key race_keys[] = {
	CONTEND_KEY_ERA,
	{ "frags", NULL, 0, MAX_SKB_FRAGS, "16", "2,16", "page fragments" },
	CONTEND_KEY_THREADS(MAX_CPUS - 1, "1", "1,2", "CPUs that complete, besides the owner's"),
	{ 0 },
};
static const struct bench_key shinfo_keys[] = {
	{ "layout", layout_words, 0, 0, "kernel", "kernel,apart",
	  "whether frag 0 has dataref's line" },
	CONTEND_KEY_THREADS(MAX_CPUS - 1, "1", "1,2",
			    "CPUs that change dataref, besides the reader's"),
	{ 0 },
};
static const struct bench_key pair_keys[] = {
	CONTEND_KEY_ERA,
	{ "of", pair_words, 0, 0, "fclone", "fclone,shells", "what sk_buff and clone are" },
	CONTEND_KEY_THREADS(MAX_CPUS / 2, "1", "1,2",
			    "CPUs that send, each with one that completes"),
	{ 0 },
};
static const struct bench_key ext_keys[] = {
	{ "of", shared_words, 0, 0, "shared", "shared,own", "whether the CPUs share one object" },
	CONTEND_KEY_THREADS(MAX_CPUS, "2", "1,2", "CPUs at it"),
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "contend/skb_clone", "clones of one head or of several, by several CPUs", clone_keys,
	  prepare_clone, NULL },
	{ "contend/unclone", "an expansion while other CPUs complete the clones", race_keys,
	  prepare_race, NULL },
	{ "contend/shinfo", "frag 0 read while other CPUs change dataref", shinfo_keys,
	  prepare_shinfo, NULL },
	{ "contend/fclone", "an sk_buff freed here and its clone there", pair_keys, prepare_pair,
	  NULL },
	{ "contend/skb_ext", "shares of extensions by several CPUs", ext_keys, prepare_ext, NULL },
};

void bench_contend_skb(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
