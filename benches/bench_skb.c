/* SPDX-License-Identifier: MIT */
/*
 * sk_buff memory, operation by operation.
 *
 *   operation                     keys             one operation is
 *   skb/alloc_skb                 era size         alloc_skb(), kfree_skb()
 *   skb/alloc_skb_fclone          era frags        alloc_skb_fclone(320), frags, kfree_skb()
 *   skb/build_skb                 era              2048 bytes of a page_frag_cache, build_skb(),
 *                                                  kfree_skb()
 *   skb/skb_clone                 era of           skb_clone(), kfree_skb() of the clone
 *   skb/pskb_expand_head          era frags        [skb_clone()] pskb_expand_head(0, 0)
 *                                 cloned head      [kfree_skb() of the clone]
 *                                 list uarg
 *   skb/skb_unclone               the same         the same with skb_unclone()
 *   skb/skb_unclone_keeptruesize  the same         the same with skb_unclone_keeptruesize()
 *   skb/pskb_copy                 era frags list   pskb_copy(), kfree_skb() of the copy
 *                                 uarg
 *   skb/skb_frag_ref              page             skb_frag_ref(), skb_frag_unref(), never the last
 *
 * What moves bytes and frags is in bench_skb_data.c, merging in bench_skb_coalesce.c, extensions in
 * bench_skb_ext.c, pages in bench_skb_page.c and bench_skb_pool.c, lock-free lists in
 * bench_skb_list.c.
 *
 * The kernel does each of these in net/core/skbuff.c. What is fake here: one sk_buff in one thread,
 * its lines warm; pages hold no payload that anybody reads; frags are one page each, of which the
 * case holds a reference, so that no put is the last one unless the operation makes the page;
 * members of a frag_list have no frags of their own. The ledger and the instruction counts tell the
 * parts of an operation apart, time tells the whole.
 */
#include "benches/bench_skb.h"

#include <errno.h>
#include <stdio.h>

const char *const skb_era_words[] = { "3.4", "6.1", "6.12", NULL };
static const char *const of_words[] = { "fclone", "shell", NULL };
static const char *const page_words[] = { "order0", "head", "tail", NULL };

void skb_case_fill(struct skb_ctx *c, struct sk_buff *skb, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		page_ref_inc(c->page[i]);
		skb_add_rx_frag(skb, i, c->page[i], 0, PAGE_SIZE, PAGE_SIZE);
	}
}

void skb_case_list(struct skb_ctx *c, struct sk_buff *skb, unsigned int l)
{
	while (l--) {
		struct sk_buff *m = alloc_skb(c->era, SKB_MEMBER_BYTES, NUMA_NO_NODE);

		BUG_ON(!m);
		memset(skb_put(m, SKB_MEMBER_BYTES), 0, SKB_MEMBER_BYTES);
		m->next = skb_shinfo(skb)->frag_list;
		skb_shinfo(skb)->frag_list = m;
		skb->len += SKB_MEMBER_BYTES;
		skb->data_len += SKB_MEMBER_BYTES;
		skb->truesize += m->truesize;
	}
}

void skb_case_destroy(void *arg)
{
	struct skb_ctx *c = arg;

	if (c->skb)
		kfree_skb(c->era, c->skb);
	if (c->second)
		kfree_skb(c->era, c->second);
	for (unsigned int i = 0; i < ARRAY_SIZE(c->page); i++)
		if (c->page[i])
			put_page(c->page[i]);
	page_frag_cache_drain(&c->frag);
	free(c);
}

struct skb_ctx *skb_case_create(const struct bench_args *args, unsigned int pages, char *err,
				size_t errlen)
{
	struct skb_ctx *c = calloc(1, sizeof(*c));

	if (!c)
		goto nomem;
	c->era = bench_arg(args, "era");
	c->frags = pages;
	for (unsigned int i = 0; i < pages; i++) {
		c->page[i] = alloc_pages(0);
		if (!c->page[i])
			goto nomem;
	}
	return c;
nomem:
	if (c)
		skb_case_destroy(c);
	snprintf(err, errlen, "no memory for the case: ask for fewer frags or more --skb_pages");
	return NULL;
}

/* The case keeps its reference for ever: the last one is never dropped. */
static void never(struct ubuf_info_msgzc *uarg)
{
	(void)uarg;
	skb_bug(__FILE__, __LINE__, "the ubuf_info of a case was let go of");
}

void skb_case_skb(struct skb_ctx *c, const struct bench_args *args, unsigned int head,
		  unsigned int tailroom, bool list, bool uarg)
{
	c->skb = alloc_skb_fclone(c->era, head + tailroom, NUMA_NO_NODE);
	BUG_ON(!c->skb);
	skb_reserve(c->skb, head);
	skb_case_fill(c, c->skb, c->frags);
	if (list) {
		c->list = bench_arg(args, "list");
		skb_case_list(c, c->skb, c->list);
	}
	if (uarg && bench_arg(args, "uarg")) {
		msg_zerocopy_init(&c->uarg, SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN, never);
		skb_zcopy_set(c->skb, &c->uarg.ubuf);
	}
	c->truesize = c->skb->truesize;
}

static int check_skb(const struct skb_ctx *c, const struct sk_buff *skb, char *err, size_t errlen)
{
	int dataref = skb_shinfo(skb)->dataref.counter & SKB_DATAREF_MASK;

	if (skb_check(skb, err, errlen))
		return -1;
	if (dataref != 1) {
		snprintf(err, errlen, "%d sk_buffs share the head afterwards", dataref);
		return -1;
	}
	for (const struct sk_buff *m = skb_shinfo(skb)->frag_list; m; m = m->next)
		if (m->users.refs.counter != 1) {
			snprintf(err, errlen, "a member of the frag_list has %d holders afterwards",
				 m->users.refs.counter);
			return -1;
		}
	if (skb_zcopy(skb) && c->uarg.ubuf.refcnt.refs.counter != 2) {
		snprintf(err, errlen, "the ubuf_info has %d references, not 2",
			 c->uarg.ubuf.refcnt.refs.counter);
		return -1;
	}
	return 0;
}

/* Runs ONE operation by its phases and looks at what is left: sk_buffs and page references. */
static int check_one(void *arg, char *err, size_t errlen)
{
	struct skb_ctx *c = arg;

	c->one(c);
	if (c->other || c->second_clone) {
		snprintf(err, errlen, "an sk_buff is left over");
		return -1;
	}
	if (c->skb && check_skb(c, c->skb, err, errlen))
		return -1;
	if (c->second && check_skb(c, c->second, err, errlen))
		return -1;
	for (unsigned int i = 0; i < c->frags; i++) {
		int want = c->skb ? 2 : 1;

		if (page_count(c->page[i]) != want) {
			snprintf(err, errlen, "the page of frag %u has %d references, not %d", i,
				 page_count(c->page[i]), want);
			return -1;
		}
	}
	return 0;
}

int skb_case_made(struct bench_case *out, struct skb_ctx *c, void (*span)(void *, u64),
		  void (*one)(void *))
{
	c->one = one;
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = 1,
		.role = { { "cpu", span } },
		.check = check_one,
		.ledger = one,
		.teardown = skb_case_destroy,
	};
	return 0;
}

/*
 * --- alloc_skb, alloc_skb_fclone, build_skb
 * ----------------------------------------------------------------
 */

#define ALLOC_SPANS(suffix, era_)                                                                  \
	static void span_alloc_##suffix(void *arg, u64 n)                                          \
	{                                                                                          \
		struct skb_ctx *c = arg;                                                           \
                                                                                                   \
		while (n--)                                                                        \
			kfree_skb(era_, alloc_skb(era_, c->size, NUMA_NO_NODE));                   \
	}                                                                                          \
	static void span_fclone_##suffix(void *arg, u64 n)                                         \
	{                                                                                          \
		struct skb_ctx *c = arg;                                                           \
                                                                                                   \
		while (n--) {                                                                      \
			struct sk_buff *skb =                                                      \
				alloc_skb_fclone(era_, MAX_TCP_HEADER, NUMA_NO_NODE);              \
                                                                                                   \
			BUG_ON(!skb);                                                              \
			skb_case_fill(c, skb, c->frags);                                           \
			kfree_skb(era_, skb);                                                      \
		}                                                                                  \
	}                                                                                          \
	static void span_build_##suffix(void *arg, u64 n)                                          \
	{                                                                                          \
		struct skb_ctx *c = arg;                                                           \
                                                                                                   \
		while (n--)                                                                        \
			kfree_skb(era_, build_skb(era_, page_frag_alloc_align(&c->frag, 2048, 64), \
						  2048));                                          \
	}
SKB_FOR_EACH_ERA(ALLOC_SPANS)

static void phase_alloc(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = alloc_skb(c->era, c->size, NUMA_NO_NODE);
	BUG_ON(!c->other);
}

static void phase_alloc_fclone(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = alloc_skb_fclone(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	BUG_ON(!c->other);
	skb_case_fill(c, c->other, c->frags);
}

static void phase_build(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = build_skb(c->era, page_frag_alloc_align(&c->frag, 2048, 64), 2048);
	BUG_ON(!c->other);
}

static void phase_free(void *arg)
{
	struct skb_ctx *c = arg;

	kfree_skb(c->era, c->other);
	c->other = NULL;
}

static void one_alloc(void *arg)
{
	bench_phase("alloc", phase_alloc, arg);
	bench_phase("free", phase_free, arg);
}

static void one_alloc_fclone(void *arg)
{
	bench_phase("alloc", phase_alloc_fclone, arg);
	bench_phase("free", phase_free, arg);
}

static void one_build(void *arg)
{
	bench_phase("build", phase_build, arg);
	bench_phase("free", phase_free, arg);
}

static int prepare_alloc(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_alloc);
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	c->size = bench_arg(args, "size");
	return skb_case_made(out, c, spans[c->era], one_alloc);
}

static int prepare_alloc_fclone(const struct bench_args *args, struct bench_case *out, char *err,
				size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_fclone);
	struct skb_ctx *c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);

	return c ? skb_case_made(out, c, spans[c->era], one_alloc_fclone) : -ENOMEM;
}

static int prepare_build(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_build);
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);

	return c ? skb_case_made(out, c, spans[c->era], one_build) : -ENOMEM;
}

/*
 * --- skb_clone
 * ---------------------------------------------------------------------------------------------
 */

#define CLONE_SPANS(suffix, era_)                                 \
	static void span_clone_##suffix(void *arg, u64 n)         \
	{                                                         \
		struct skb_ctx *c = arg;                          \
                                                                  \
		while (n--)                                       \
			kfree_skb(era_, skb_clone(era_, c->skb)); \
	}
SKB_FOR_EACH_ERA(CLONE_SPANS)

static void phase_clone(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = skb_clone(c->era, c->skb);
	BUG_ON(!c->other);
}

static void one_clone(void *arg)
{
	bench_phase("clone", phase_clone, arg);
	bench_phase("free_clone", phase_free, arg);
}

static int prepare_clone(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_clone);
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	c->skb = bench_arg(args, "of") == 0 ? alloc_skb_fclone(c->era, MAX_TCP_HEADER, NUMA_NO_NODE)
					    : alloc_skb(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	BUG_ON(!c->skb);
	return skb_case_made(out, c, spans[c->era], one_clone);
}

/*
 * --- pskb_expand_head, skb_unclone, skb_unclone_keeptruesize
 * -----------------------------------------------
 */

#define expand_0_0(era, skb) pskb_expand_head(era, skb, 0, 0)

#define UNSHARE_SPANS(fn, suffix, era_)                                  \
	static void span_##fn##_cloned_##suffix(void *arg, u64 n)        \
	{                                                                \
		struct skb_ctx *c = arg;                                 \
                                                                         \
		while (n--) {                                            \
			struct sk_buff *clone = skb_clone(era_, c->skb); \
                                                                         \
			BUG_ON(!clone || fn(era_, c->skb));              \
			kfree_skb(era_, clone);                          \
		}                                                        \
	}                                                                \
	static void span_##fn##_private_##suffix(void *arg, u64 n)       \
	{                                                                \
		struct skb_ctx *c = arg;                                 \
                                                                         \
		while (n--)                                              \
			BUG_ON(fn(era_, c->skb));                        \
	}
#define UNSHARE_ALL(suffix, era_)                \
	UNSHARE_SPANS(expand_0_0, suffix, era_)  \
	UNSHARE_SPANS(skb_unclone, suffix, era_) \
	UNSHARE_SPANS(skb_unclone_keeptruesize, suffix, era_)
SKB_FOR_EACH_ERA(UNSHARE_ALL)

static void phase_expand(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(pskb_expand_head(c->era, c->skb, 0, 0));
}

static void phase_unclone(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(skb_unclone(c->era, c->skb));
}

static void phase_keeptruesize(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(skb_unclone_keeptruesize(c->era, c->skb));
}

static void one_unshare(struct skb_ctx *c, const char *name, void (*phase)(void *))
{
	if (c->cloned)
		bench_phase("clone", phase_clone, c);
	bench_phase(name, phase, c);
	if (c->cloned)
		bench_phase("free_clone", phase_free, c);
}

static void one_expand(void *arg)
{
	one_unshare(arg, "expand", phase_expand);
}

static void one_unclone(void *arg)
{
	one_unshare(arg, "unclone", phase_unclone);
}

static void one_keeptruesize(void *arg)
{
	one_unshare(arg, "unclone", phase_keeptruesize);
}

/* What 3.4 has no rule for; the state is gone then. */
static int refuse_uarg(struct skb_ctx *c, const struct bench_args *args, char *err, size_t errlen)
{
	if (!bench_arg(args, "uarg") || c->era >= ERA_6_1)
		return 0;
	skb_case_destroy(c);
	snprintf(err, errlen,
		 "3.4 copies zerocopy frags when a clone is made: ask for uarg:0 or a later era");
	return -EINVAL;
}

static int prepare_unshare(const struct bench_args *args, struct bench_case *out,
			   void (*const spans[2][SKB_ERA_NR])(void *, u64), void (*one)(void *),
			   char *err, size_t errlen)
{
	struct skb_ctx *c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);

	if (!c)
		return -ENOMEM;
	if (refuse_uarg(c, args, err, errlen))
		return -EINVAL;
	c->cloned = bench_arg(args, "cloned");
	skb_case_skb(c, args, bench_arg(args, "head"), 0, true, true);
	return skb_case_made(out, c, spans[c->cloned][c->era], one);
}

#define PREPARE_UNSHARE(name, fn, one)                                                   \
	static int prepare_##name(const struct bench_args *args, struct bench_case *out, \
				  char *err, size_t errlen)                              \
	{                                                                                \
		static void (*const spans[2][SKB_ERA_NR])(void *, u64) = {               \
			BY_ERA(span_##fn##_private),                                     \
			BY_ERA(span_##fn##_cloned),                                      \
		};                                                                       \
                                                                                         \
		return prepare_unshare(args, out, spans, one, err, errlen);              \
	}
PREPARE_UNSHARE(expand, expand_0_0, one_expand)
PREPARE_UNSHARE(unclone, skb_unclone, one_unclone)
PREPARE_UNSHARE(keeptruesize, skb_unclone_keeptruesize, one_keeptruesize)

/*
 * --- pskb_copy
 * ---------------------------------------------------------------------------------------------
 */

#define COPY_SPANS(suffix, era_)                                  \
	static void span_copy_##suffix(void *arg, u64 n)          \
	{                                                         \
		struct skb_ctx *c = arg;                          \
                                                                  \
		while (n--)                                       \
			kfree_skb(era_, pskb_copy(era_, c->skb)); \
	}
SKB_FOR_EACH_ERA(COPY_SPANS)

static void phase_copy(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = pskb_copy(c->era, c->skb);
	BUG_ON(!c->other);
}

static void one_copy(void *arg)
{
	bench_phase("copy", phase_copy, arg);
	bench_phase("free_copy", phase_free, arg);
}

static int prepare_copy(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_copy);
	struct skb_ctx *c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);

	if (!c)
		return -ENOMEM;
	if (refuse_uarg(c, args, err, errlen))
		return -EINVAL;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, true, true);
	return skb_case_made(out, c, spans[c->era], one_copy);
}

/*
 * --- skb_frag_ref
 * ------------------------------------------------------------------------------------------
 */

static void span_frag_ref(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		skb_frag_ref(c->skb, 0);
		skb_frag_unref(ERA_6_12, c->skb, 0);
	}
}

static void phase_ref(void *arg)
{
	skb_frag_ref(((struct skb_ctx *)arg)->skb, 0);
}

static void phase_unref(void *arg)
{
	skb_frag_unref(ERA_6_12, ((struct skb_ctx *)arg)->skb, 0);
}

static void one_frag_ref(void *arg)
{
	bench_phase("ref", phase_ref, arg);
	bench_phase("unref", phase_unref, arg);
}

static int prepare_frag_ref(const struct bench_args *args, struct bench_case *out, char *err,
			    size_t errlen)
{
	struct skb_ctx *c = calloc(1, sizeof(*c));
	long page = bench_arg(args, "page");

	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return -ENOMEM;
	}
	c->era = ERA_6_12;
	c->frags = 1;
	c->page[0] = alloc_pages(page ? SKB_FRAG_PAGE_ORDER : 0);
	c->skb = alloc_skb(c->era, 0, NUMA_NO_NODE);
	BUG_ON(!c->page[0] || !c->skb);
	page_ref_inc(c->page[0]);
	skb_add_rx_frag(c->skb, 0, c->page[0] + (page == 2), 0, PAGE_SIZE, PAGE_SIZE);
	return skb_case_made(out, c, span_frag_ref, one_frag_ref);
}

static const struct bench_key alloc_keys[] = {
	KEY_ERA("3.4,6.1,6.12"),
	{ "size", NULL, 0, 65536, "320", "320,2048", "linear bytes" },
	{ 0 },
};
static const struct bench_key frags_keys[] = { KEY_ERA("6.12"), KEY_FRAGS("16", "0,2,16"), { 0 } };
static const struct bench_key copy_keys[] = {
	KEY_ERA("6.12"), KEY_FRAGS("16", "0,2,16"), KEY_LIST, KEY_UARG, { 0 },
};
static const struct bench_key era_keys[] = { KEY_ERA("6.12"), { 0 } };
static const struct bench_key clone_keys[] = {
	KEY_ERA("3.4,6.1,6.12"),
	{ "of", of_words, 0, 0, "fclone", "fclone,shell", "the first of a pair, or a single one" },
	{ 0 },
};
static const struct bench_key unshare_keys[] = {
	KEY_ERA("6.12"), KEY_FRAGS("16", "0,2,16"), KEY_CLONED, KEY_HEAD, KEY_LIST, KEY_UARG, { 0 },
};
static const struct bench_key page_keys[] = {
	{ "page", page_words, 0, 0, "order0", "order0,head,tail", "what the frag lies in" },
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "skb/alloc_skb", "make and free an sk_buff", alloc_keys, prepare_alloc, NULL },
	{ "skb/alloc_skb_fclone", "make and free an fclone pair with frags", frags_keys,
	  prepare_alloc_fclone, NULL },
	{ "skb/build_skb", "build an sk_buff around a page fragment and free it", era_keys,
	  prepare_build, NULL },
	{ "skb/skb_clone", "clone and free the clone", clone_keys, prepare_clone, NULL },
	{ "skb/pskb_expand_head", "get a private head", unshare_keys, prepare_expand, NULL },
	{ "skb/skb_unclone", "get a private head if it is shared", unshare_keys, prepare_unclone,
	  NULL },
	{ "skb/skb_unclone_keeptruesize", "the same, truesize and end kept", unshare_keys,
	  prepare_keeptruesize, NULL },
	{ "skb/pskb_copy", "private head, shared pages, in a new sk_buff", copy_keys, prepare_copy,
	  NULL },
	{ "skb/skb_frag_ref", "take and drop a reference on a frag's page", page_keys,
	  prepare_frag_ref, NULL },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
	bench_skb_data();
	bench_skb_coalesce();
	bench_skb_ext();
	bench_skb_page();
	bench_skb_pool();
	bench_skb_list();
	bench_skb_defer();
	return bench_main(argc, argv);
}
