/* SPDX-License-Identifier: MIT */
/*
 * A deferred list with several CPUs that add and one or two that flush.
 *
 *   operation      keys                    one operation is
 *   contend/list   list flushers threads   one add on each of THREADS CPUs, and the taking of what was added by
 *                                          FLUSHERS others
 *
 *   list  llist    the kernel's: a load and a compare-and-exchange, tried again if another CPU came first
 *         lfstack  liburcu's: tries an empty stack first, so at least two on one that is not empty
 *         wfstack  liburcu's: one exchange, never tried again; a walk may have to wait for the link behind it
 *         locked   a spinlock round a list, as deferred freeing had it from 5.19 to 6.17
 *
 * Kernel: include/linux/llist.h, skb_attempt_defer_free(), 6.12. What is fake here: entries are 128 a CPU of the case's
 * own, a cache line each, and nothing is done with them; a flusher looks again at once, where the kernel waits for an
 * interrupt, so that it takes few at a time and meets the producers more often than one would there.
 */
#include "benches/bench_contend.h"

#include "skb/llist_urcu.h"

#define ENTRIES	     128
#define MAX_FLUSHERS 2
#define MAX_THREADS  (BENCH_MAX_ROLES - MAX_FLUSHERS)

enum list { LIST_LLIST, LIST_LFSTACK, LIST_WFSTACK, LIST_LOCKED };
static const char *const list_words[] = { "llist", "lfstack", "wfstack", "locked", NULL };

struct entry {
	union {
		struct llist_node llist; /* and of the locked list */
		struct cds_lfs_node lfs;
		struct cds_wfs_node wfs;
	};
	int out; /* on the list, or being taken */
} ____cacheline_aligned;

struct list_ctx {
	struct llist_head llist ____cacheline_aligned;
	struct __cds_lfs_stack lfs ____cacheline_aligned;
	struct __cds_wfs_stack wfs ____cacheline_aligned;
	struct {
		spinlock_t lock; /* on the line of what it guards, as the kernel's was */
		struct llist_node *first;
	} locked ____cacheline_aligned;
	unsigned int threads, flushers;
	enum list list;
	unsigned int taken_once; /* by the last phase */
	void (*one)(void *ctx);
	struct {
		u64 taken; /* entries, over all spans; others read it when the list is empty */
		u64 goal; /* what all flushers together are to have taken by the end of the span */
	} flusher[MAX_FLUSHERS] ____cacheline_aligned;
	struct {
		unsigned int at ____cacheline_aligned;
		struct entry entry[ENTRIES];
	} producer[MAX_THREADS];
};

static __always_inline void add(struct list_ctx *c, struct entry *e, const enum list list)
{
	switch (list) {
	case LIST_LLIST:
		llist_add(&e->llist, &c->llist);
		break;
	case LIST_LFSTACK:
		cds_lfs_push(&c->lfs, &e->lfs);
		break;
	case LIST_WFSTACK:
		cds_wfs_node_init(&e->wfs);
		cds_wfs_push(&c->wfs, &e->wfs);
		break;
	default:
		spin_lock(&c->locked.lock, SKB_C_LOCK);
		e->llist.next = c->locked.first;
		skb_store(&c->locked.first, &e->llist, SKB_C_LLIST);
		spin_unlock(&c->locked.lock, SKB_C_LOCK);
	}
}

/* The producer may use it again. Pairs with its acquire. */
static __always_inline void let_go(struct entry *e)
{
	smp_store_release(&e->out, 0, SKB_C_OTHER);
}

static __always_inline unsigned int walk(struct llist_node *n)
{
	unsigned int nr = 0;

	for (struct llist_node *next; n; n = next, nr++) {
		next = n->next;
		let_go(container_of(n, struct entry, llist));
	}
	return nr;
}

/* Takes all; how many. */
static __always_inline unsigned int take(struct list_ctx *c, const enum list list)
{
	unsigned int nr = 0;

	if (list == LIST_LLIST)
		return walk(llist_del_all(&c->llist));
	if (list == LIST_LOCKED) {
		struct llist_node *first;

		spin_lock(&c->locked.lock, SKB_C_LOCK);
		first = c->locked.first;
		skb_store(&c->locked.first, NULL, SKB_C_LLIST);
		spin_unlock(&c->locked.lock, SKB_C_LOCK);
		return walk(first);
	}
	if (list == LIST_LFSTACK) {
		struct cds_lfs_head *all = __cds_lfs_pop_all(&c->lfs);

		for (struct cds_lfs_node *n = all ? &all->node : NULL, *next; n; n = next, nr++) {
			next = n->next;
			let_go(container_of(n, struct entry, lfs));
		}
	} else {
		struct cds_wfs_head *all = __cds_wfs_pop_all(&c->wfs);

		for (struct cds_wfs_node *n = all ? cds_wfs_first(all) : NULL, *next; n;
		     n = next, nr++) {
			next = cds_wfs_next_blocking(n);
			let_go(container_of(n, struct entry, wfs));
		}
	}
	return nr;
}

static __always_inline bool is_empty(struct list_ctx *c, const enum list list)
{
	switch (list) {
	case LIST_LLIST:
		return llist_empty(&c->llist);
	case LIST_LFSTACK:
		return cds_lfs_empty(&c->lfs);
	case LIST_WFSTACK:
		return cds_wfs_empty(&c->wfs);
	default:
		return !skb_load(&c->locked.first, SKB_C_LLIST);
	}
}

static u64 taken_by_all(struct list_ctx *c)
{
	u64 sum = 0;

	for (unsigned int f = 0; f < c->flushers; f++)
		sum += smp_load_acquire(&c->flusher[f].taken, SKB_C_OTHER);
	return sum;
}

#define SPANS(name, list)                                                                     \
	static void span_producer_##name(void *arg, u64 n)                                    \
	{                                                                                     \
		struct list_ctx *c = arg;                                                     \
		unsigned int p = smp_processor_id() - c->flushers, at = c->producer[p].at;    \
                                                                                              \
		while (n--) {                                                                 \
			struct entry *e = &c->producer[p].entry[at++ % ENTRIES];              \
                                                                                              \
			bench_wait_until(!smp_load_acquire(&e->out, SKB_C_OTHER));            \
			skb_store(&e->out, 1, SKB_C_OTHER);                                   \
			add(c, e, list);                                                      \
		}                                                                             \
		c->producer[p].at = at;                                                       \
	}                                                                                     \
	/* Every flusher stays until all that was added is taken, by whomever. */             \
	static void span_flusher_##name(void *arg, u64 n)                                     \
	{                                                                                     \
		struct list_ctx *c = arg;                                                     \
		unsigned int f = smp_processor_id();                                          \
		u64 taken = c->flusher[f].taken, goal = c->flusher[f].goal += n * c->threads; \
                                                                                              \
		for (;;) {                                                                    \
			unsigned int nr = is_empty(c, list) ? 0 : take(c, list);              \
                                                                                              \
			taken += nr;                                                          \
			smp_store_release(&c->flusher[f].taken, taken, SKB_C_OTHER);          \
			if (nr)                                                               \
				continue;                                                     \
			if (taken_by_all(c) == goal)                                          \
				break;                                                        \
			bench_wait_until(!is_empty(c, list) || taken_by_all(c) == goal);      \
		}                                                                             \
	}                                                                                     \
	static void phase_add_##name(void *arg)                                               \
	{                                                                                     \
		struct list_ctx *c = arg;                                                     \
                                                                                              \
		add(c, &c->producer[0].entry[0], list);                                       \
	}                                                                                     \
	static void phase_add_more_##name(void *arg)                                          \
	{                                                                                     \
		struct list_ctx *c = arg;                                                     \
                                                                                              \
		add(c, &c->producer[0].entry[1], list);                                       \
	}                                                                                     \
	static void phase_take_##name(void *arg)                                              \
	{                                                                                     \
		struct list_ctx *c = arg;                                                     \
                                                                                              \
		c->taken_once = take(c, list);                                                \
	}                                                                                     \
	static void one_##name(void *arg)                                                     \
	{                                                                                     \
		bench_phase("add_first", phase_add_##name, arg);                              \
		bench_phase("add_more", phase_add_more_##name, arg);                          \
		bench_phase("del_all", phase_take_##name, arg);                               \
	}
SPANS(llist, LIST_LLIST)
SPANS(lfstack, LIST_LFSTACK)
SPANS(wfstack, LIST_WFSTACK)
SPANS(locked, LIST_LOCKED)

/* Nothing lost: what the flushers took together is what the producers added, and every entry is free. */
static int check(void *arg, char *err, size_t errlen)
{
	struct list_ctx *c = arg;

	if (!is_empty(c, c->list) || taken_by_all(c) != c->flusher[0].goal) {
		snprintf(err, errlen, "%llu entries taken of %llu",
			 (unsigned long long)taken_by_all(c),
			 (unsigned long long)c->flusher[0].goal);
		return -1;
	}
	for (unsigned int p = 0; p < c->threads; p++)
		for (unsigned int i = 0; i < ENTRIES; i++)
			if (c->producer[p].entry[i].out) {
				snprintf(err, errlen, "entry %u of producer %u was lost", i, p);
				return -1;
			}
	c->one(c);
	if (c->taken_once != 2 || !is_empty(c, c->list)) {
		snprintf(err, errlen, "2 entries added, %u taken", c->taken_once);
		return -1;
	}
	return 0;
}

static int prepare(const struct bench_args *args, struct bench_case *out, char *err, size_t errlen)
{
	static void (*const producer[])(void *, u64) = { span_producer_llist, span_producer_lfstack,
							 span_producer_wfstack,
							 span_producer_locked };
	static void (*const flusher[])(void *, u64) = { span_flusher_llist, span_flusher_lfstack,
							span_flusher_wfstack, span_flusher_locked };
	static void (*const ones[])(void *) = { one_llist, one_lfstack, one_wfstack, one_locked };
	struct list_ctx *c = contend_zalloc(sizeof(*c), err, errlen);

	if (!c)
		return -ENOMEM;
	init_llist_head(&c->llist);
	__cds_lfs_init(&c->lfs);
	__cds_wfs_init(&c->wfs);
	c->list = (enum list)bench_arg(args, "list");
	c->threads = (unsigned int)bench_arg(args, "threads");
	c->flushers = (unsigned int)bench_arg(args, "flushers");
	c->one = ones[c->list];
	*out = (struct bench_case){
		.ctx = c,
		.ops = c->threads,
		.check = check,
		.ledger = c->one,
		.teardown = free,
	};
	contend_roles(out, 0, c->flushers, "flusher", flusher[c->list]);
	contend_roles(out, c->flushers, c->threads, "producer", producer[c->list]);
	return 0;
}

static const struct bench_key keys[] = {
	{ "list", list_words, 0, 0, "llist", "llist,lfstack,wfstack,locked", "whose list" },
	{ "flushers", NULL, 1, MAX_FLUSHERS, "1", "1,2", "CPUs that take, besides those that add" },
	CONTEND_KEY_THREADS(MAX_THREADS, "1", "1,2", "CPUs that add"),
	{ 0 },
};

static const struct bench_op op = { "contend/list",
				    "several CPUs add to a list, others take all of it", keys,
				    prepare, NULL };

void bench_contend_list(void)
{
	bench_register(&op);
}
