/* SPDX-License-Identifier: MIT */
/*
 * Lock-free lists that any CPU adds to and one empties.
 *
 *   operation            keys      one operation is
 *   skb/llist_add        list nr   nr adds, then all are taken and walked, on one CPU
 *   skb/llist_add_take   list      one add on a CPU, and its taking on another
 *
 * Kernel: include/linux/llist.h, 6.12, for list:llist; list:lfstack and list:wfstack are liburcu's,
 * which the kernel does not have: the first tries an empty stack before it looks, the second
 * exchanges and links afterwards, so that its walk may have to wait. What is fake here: entries are
 * 128 of the case's own, a cache line each, and nothing is done with them; the taker spins instead
 * of waiting for an interrupt.
 */
#include "benches/bench_skb.h"

#include "skb/llist_urcu.h"

#include <errno.h>

#define ENTRIES 128

enum list { LIST_LLIST, LIST_LFSTACK, LIST_WFSTACK };
static const char *const list_words[] = { "llist", "lfstack", "wfstack", NULL };

struct entry {
	union {
		struct llist_node llist;
		struct cds_lfs_node lfs;
		struct cds_wfs_node wfs;
	};
	int out; /* on the list, or being taken */
} ____cacheline_aligned;

struct list_ctx {
	struct llist_head llist ____cacheline_aligned;
	struct __cds_lfs_stack lfs ____cacheline_aligned;
	struct __cds_wfs_stack wfs ____cacheline_aligned;
	struct entry entry[ENTRIES];
	unsigned int nr, at;
	unsigned int taken;
	enum list list;
	void (*one)(void *ctx);
};

/* True if the list was empty, whatever the polarity of the list. */
static __always_inline bool add(struct list_ctx *c, struct entry *e, const enum list list)
{
	switch (list) {
	case LIST_LLIST:
		return llist_add(&e->llist, &c->llist);
	case LIST_LFSTACK:
		return !cds_lfs_push(&c->lfs, &e->lfs);
	default:
		cds_wfs_node_init(&e->wfs);
		return !cds_wfs_push(&c->wfs, &e->wfs);
	}
}

/* Takes all; how many. An entry may be used again as soon as `out` says so. */
static __always_inline unsigned int take(struct list_ctx *c, const enum list list)
{
	unsigned int nr = 0;

	if (list == LIST_LLIST) {
		for (struct llist_node *n = llist_del_all(&c->llist), *next; n; n = next, nr++) {
			struct entry *e = container_of(n, struct entry, llist);

			next = n->next;
			smp_store_release(&e->out, 0, SKB_C_OTHER);
		}
	} else if (list == LIST_LFSTACK) {
		struct cds_lfs_head *all = __cds_lfs_pop_all(&c->lfs);

		for (struct cds_lfs_node *n = all ? &all->node : NULL, *next; n; n = next, nr++) {
			struct entry *e = container_of(n, struct entry, lfs);

			next = n->next;
			smp_store_release(&e->out, 0, SKB_C_OTHER);
		}
	} else {
		struct cds_wfs_head *all = __cds_wfs_pop_all(&c->wfs);

		for (struct cds_wfs_node *n = all ? cds_wfs_first(all) : NULL, *next; n;
		     n = next, nr++) {
			struct entry *e = container_of(n, struct entry, wfs);

			next = cds_wfs_next_blocking(n);
			smp_store_release(&e->out, 0, SKB_C_OTHER);
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
	default:
		return cds_wfs_empty(&c->wfs);
	}
}

#define SPANS(name, list)                                                          \
	static void span_alone_##name(void *arg, u64 n)                            \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		while (n--) {                                                      \
			for (unsigned int i = 0; i < c->nr; i++)                   \
				add(c, &c->entry[i], list);                        \
			take(c, list);                                             \
		}                                                                  \
	}                                                                          \
	static void span_adder_##name(void *arg, u64 n)                            \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		while (n--) {                                                      \
			struct entry *e = &c->entry[c->at++ % ENTRIES];            \
                                                                                   \
			bench_wait_until(!smp_load_acquire(&e->out, SKB_C_OTHER)); \
			skb_store(&e->out, 1, SKB_C_OTHER);                        \
			add(c, e, list);                                           \
		}                                                                  \
	}                                                                          \
	static void span_taker_##name(void *arg, u64 n)                            \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		for (u64 done = 0; done < n; done += take(c, list))                \
			bench_wait_until(!is_empty(c, list));                      \
	}                                                                          \
	static void phase_add_first_##name(void *arg)                              \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		BUG_ON(!add(c, &c->entry[0], list));                               \
	}                                                                          \
	static void phase_add_more_##name(void *arg)                               \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		for (unsigned int i = 1; i < c->nr; i++)                           \
			BUG_ON(add(c, &c->entry[i], list));                        \
	}                                                                          \
	static void phase_del_all_##name(void *arg)                                \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		c->taken = take(c, list);                                          \
	}                                                                          \
	static void one_##name(void *arg)                                          \
	{                                                                          \
		struct list_ctx *c = arg;                                          \
                                                                                   \
		bench_phase("add_first", phase_add_first_##name, c);               \
		if (c->nr > 1)                                                     \
			bench_phase("add_more", phase_add_more_##name, c);         \
		bench_phase("del_all", phase_del_all_##name, c);                   \
	}
SPANS(llist, LIST_LLIST)
SPANS(lfstack, LIST_LFSTACK)
SPANS(wfstack, LIST_WFSTACK)

static int check(void *arg, char *err, size_t errlen)
{
	struct list_ctx *c = arg;

	if (!is_empty(c, c->list)) {
		snprintf(err, errlen, "entries are left on the list");
		return -1;
	}
	c->one(c);
	if (c->taken != c->nr) {
		snprintf(err, errlen, "%u entries added, %u taken", c->nr, c->taken);
		return -1;
	}
	return 0;
}

static int prepare(enum list list, unsigned int nr, struct bench_case *out, char *err,
		   size_t errlen)
{
	static void (*const alone[])(void *, u64) = { span_alone_llist, span_alone_lfstack,
						      span_alone_wfstack };
	static void (*const ones[])(void *) = { one_llist, one_lfstack, one_wfstack };
	struct list_ctx *c = aligned_alloc(SMP_CACHE_BYTES, ALIGN(sizeof(*c), SMP_CACHE_BYTES));

	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return -ENOMEM;
	}
	memset(c, 0, sizeof(*c));
	init_llist_head(&c->llist);
	__cds_lfs_init(&c->lfs);
	__cds_wfs_init(&c->wfs);
	c->nr = nr;
	c->list = list;
	c->one = ones[list];
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", alone[list] } },
		.check = check,
		.ledger = c->one,
		.teardown = free,
	};
	return 0;
}

static int prepare_alone(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	return prepare(bench_arg(args, "list"), bench_arg(args, "nr"), out, err, errlen);
}

static int prepare_two(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	static void (*const adder[])(void *, u64) = { span_adder_llist, span_adder_lfstack,
						      span_adder_wfstack };
	static void (*const taker[])(void *, u64) = { span_taker_llist, span_taker_lfstack,
						      span_taker_wfstack };
	enum list list = bench_arg(args, "list");

	if (prepare(list, 1, out, err, errlen))
		return -ENOMEM;
	out->nr_roles = 2;
	out->role[0] = (struct bench_role){ "taker", taker[list] };
	out->role[1] = (struct bench_role){ "adder", adder[list] };
	return 0;
}

#define KEY_WHOSE                                                                        \
	{                                                                                \
		"list", list_words, 0, 0, "llist", "llist,lfstack,wfstack", "whose list" \
	}
static const struct bench_key alone_keys[] = {
	KEY_WHOSE,
	{ "nr", NULL, 1, ENTRIES, "1", "1,16", "adds before all are taken" },
	{ 0 },
};
static const struct bench_key two_keys[] = { KEY_WHOSE, { 0 } };

static const struct bench_op ops[] = {
	{ "skb/llist_add", "add to a lock-free list and take all of it", alone_keys, prepare_alone,
	  NULL },
	{ "skb/llist_add_take", "one CPU adds to a lock-free list, one takes", two_keys,
	  prepare_two, NULL },
};

void bench_skb_list(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
