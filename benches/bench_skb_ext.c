/* SPDX-License-Identifier: MIT */
/*
 * Extensions of sk_buffs.
 *
 *   operation         keys      one operation is
 *   skb/skb_ext_add   era how   how:new      skb_ext_add() to an sk_buff without any, skb_ext_reset()
 *                               how:inplace  skb_ext_add() of one that is there and not shared
 *                               how:cow      skb_ext_copy() from a second sk_buff, skb_ext_add(),
 *                                            which copies, skb_ext_reset()
 *   skb/skb_ext_copy  era via   via:copy     skb_ext_copy() from a second sk_buff, skb_ext_reset()
 *                               via:frozen   mptcp_skb_ext_copy(), which freezes the map, and the
 *                                            same
 *                               via:clone    skb_clone(), kfree_skb() of the clone
 *   skb/skb_ext_put   era of    of:last      __skb_ext_set() of a new object, skb_ext_reset()
 *                               of:shared    skb_ext_copy(), skb_ext_reset(); the other one stays
 *
 * The kernel does each of these in net/core/skbuff.c, since 5.0, by one rule for all eras; only the
 * clone around one differs. What is fake here: one thread, warm lines, so that a reference that
 * another CPU would own costs nothing more; the extension is MPTCP's, 4 chunks, alone in its
 * object; a new one is cleared, as every user of skb_ext_add() has to.
 */
#include "benches/bench_skb.h"

#include "skb/mptcp_ext.h"

#include <errno.h>
#include <stdio.h>

static const char *const how_words[] = { "new", "inplace", "cow", NULL };
static const char *const via_words[] = { "copy", "frozen", "clone", NULL };
static const char *const of_words[] = { "last", "shared", NULL };

static __always_inline void add_cleared(struct sk_buff *skb)
{
	struct mptcp_ext *map = skb_ext_add(skb, SKB_EXT_MPTCP);

	BUG_ON(!map);
	memset(map, 0, sizeof(*map));
}

static __always_inline void set_new(struct sk_buff *skb)
{
	struct skb_ext *ext = skb_ext_alloc();

	BUG_ON(!ext);
	memset(__skb_ext_set(skb, SKB_EXT_MPTCP, ext), 0, sizeof(struct mptcp_ext));
}

/*
 * --- parts of an operation, for ledger and instruction counts
 * -----------------------------------------------
 */

static void phase_add(void *arg)
{
	add_cleared(((struct skb_ctx *)arg)->skb);
}

static void phase_set(void *arg)
{
	set_new(((struct skb_ctx *)arg)->skb);
}

static void phase_put(void *arg)
{
	skb_ext_reset(((struct skb_ctx *)arg)->skb);
}

static void phase_copy(void *arg)
{
	struct skb_ctx *c = arg;

	skb_ext_copy(c->skb, c->second);
}

static void phase_copy_frozen(void *arg)
{
	struct skb_ctx *c = arg;

	mptcp_skb_ext_copy(c->skb, c->second);
	BUG_ON(!mptcp_get_ext(c->skb)->frozen);
}

static void phase_clone(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = skb_clone(c->era, c->second);
	BUG_ON(!c->other || c->other->extensions != c->second->extensions);
}

static void phase_free(void *arg)
{
	struct skb_ctx *c = arg;

	kfree_skb(c->era, c->other);
	c->other = NULL;
}

/*
 * --- operations
 * ---------------------------------------------------------------------------------
 */

static void span_add_new(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		add_cleared(c->skb);
		skb_ext_reset(c->skb);
	}
}

static void span_add_inplace(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--)
		add_cleared(c->skb);
}

static void span_add_cow(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		skb_ext_copy(c->skb, c->second);
		add_cleared(c->skb);
		skb_ext_reset(c->skb);
	}
}

static void span_copy(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		skb_ext_copy(c->skb, c->second);
		skb_ext_reset(c->skb);
	}
}

static void span_copy_frozen(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		mptcp_skb_ext_copy(c->skb, c->second);
		skb_ext_reset(c->skb);
	}
}

#define CLONE_SPAN(suffix, era_)                                     \
	static void span_clone_##suffix(void *arg, u64 n)            \
	{                                                            \
		struct skb_ctx *c = arg;                             \
                                                                     \
		while (n--)                                          \
			kfree_skb(era_, skb_clone(era_, c->second)); \
	}
SKB_FOR_EACH_ERA(CLONE_SPAN)

static void span_put_last(void *arg, u64 n)
{
	struct skb_ctx *c = arg;

	while (n--) {
		set_new(c->skb);
		skb_ext_reset(c->skb);
	}
}

static void one_add_new(void *arg)
{
	bench_phase("add", phase_add, arg);
	bench_phase("put", phase_put, arg);
}

static void one_add_inplace(void *arg)
{
	bench_phase("add", phase_add, arg);
}

static void one_add_cow(void *arg)
{
	bench_phase("copy", phase_copy, arg);
	bench_phase("add", phase_add, arg);
	bench_phase("put", phase_put, arg);
}

static void one_copy(void *arg)
{
	bench_phase("copy", phase_copy, arg);
	bench_phase("put", phase_put, arg);
}

static void one_copy_frozen(void *arg)
{
	bench_phase("copy", phase_copy_frozen, arg);
	bench_phase("put", phase_put, arg);
}

static void one_clone(void *arg)
{
	bench_phase("clone", phase_clone, arg);
	bench_phase("free_clone", phase_free, arg);
}

static void one_put_last(void *arg)
{
	bench_phase("set", phase_set, arg);
	bench_phase("put", phase_put, arg);
}

/*
 * --- cases
 * --------------------------------------------------------------------------------------
 */

/* The second sk_buff, whose extension is shared, has it alone again; the first what it had. */
static int check_alone(void *arg, char *err, size_t errlen)
{
	struct skb_ctx *c = arg;
	u8 had = c->skb->active_extensions;

	c->one(c);
	if (c->other || c->skb->active_extensions != had) {
		snprintf(err, errlen, "an sk_buff or an extension is left over");
		return -1;
	}
	if (!mptcp_get_ext(c->second) || c->second->extensions->refcnt.refs.counter != 1) {
		snprintf(err, errlen, "the shared extension has %d references afterwards, not 1",
			 c->second->extensions->refcnt.refs.counter);
		return -1;
	}
	if (skb_shinfo(c->second)->dataref.counter != 1) {
		snprintf(err, errlen, "dataref is %#x afterwards",
			 skb_shinfo(c->second)->dataref.counter);
		return -1;
	}
	return skb_check(c->skb, err, errlen) || skb_check(c->second, err, errlen) ? -1 : 0;
}

/* The state of a case: an sk_buff without extensions, and a second one with a map. */
static int ext_case(const struct bench_args *args, struct bench_case *out, bool inplace,
		    void (*span)(void *, u64), void (*one)(void *), char *err, size_t errlen)
{
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	c->skb = alloc_skb_fclone(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	c->second = alloc_skb_fclone(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	BUG_ON(!c->skb || !c->second);
	add_cleared(c->second);
	if (inplace)
		add_cleared(c->skb);
	skb_case_made(out, c, span, one);
	out->check = check_alone;
	return 0;
}

static int prepare_add(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	static void (*const spans[])(void *, u64) = { span_add_new, span_add_inplace,
						      span_add_cow };
	static void (*const ones[])(void *) = { one_add_new, one_add_inplace, one_add_cow };
	long how = bench_arg(args, "how");

	return ext_case(args, out, how == 1, spans[how], ones[how], err, errlen);
}

static int prepare_copy(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const clones[])(void *, u64) = BY_ERA(span_clone);
	static void (*const ones[])(void *) = { one_copy, one_copy_frozen, one_clone };
	void (*const spans[])(void *, u64) = { span_copy, span_copy_frozen,
					       clones[bench_arg(args, "era")] };
	long via = bench_arg(args, "via");

	return ext_case(args, out, false, spans[via], ones[via], err, errlen);
}

static int prepare_put(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen)
{
	bool shared = bench_arg(args, "of");

	return ext_case(args, out, false, shared ? span_copy : span_put_last,
			shared ? one_copy : one_put_last, err, errlen);
}

static const struct bench_key add_keys[] = {
	KEY_ERA("6.12"),
	{ "how", how_words, 0, 0, "new", "new,inplace,cow", "what is there before" },
	{ 0 },
};
static const struct bench_key copy_keys[] = {
	KEY_ERA("6.12"),
	{ "via", via_words, 0, 0, "copy", "copy,frozen,clone", "how it comes to be shared" },
	{ 0 },
};
static const struct bench_key put_keys[] = {
	KEY_ERA("6.12"),
	{ "of", of_words, 0, 0, "last", "last,shared", "whose reference goes" },
	{ 0 },
};

static const struct bench_op ops[] = {
	{ "skb/skb_ext_add", "an extension for writing", add_keys, prepare_add, NULL },
	{ "skb/skb_ext_copy", "share an extension and let go", copy_keys, prepare_copy, NULL },
	{ "skb/skb_ext_put", "let go of an extension", put_keys, prepare_put, NULL },
};

void bench_skb_ext(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
