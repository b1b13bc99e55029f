/* SPDX-License-Identifier: MIT */
/*
 * skb_try_coalesce(): what the receive side does with each packet that continues the one before.
 *
 *   operation             keys             one operation is
 *   skb/skb_try_coalesce  era how frags    an sk_buff made, [skb_clone() of it,]
 *                         cloned           skb_try_coalesce() of it, kfree_skb_partial(),
 *                                          [kfree_skb() of the clone,] the target emptied by hand
 *
 * Kernel: net/core/skbuff.c. how is what the sk_buff holds: "linear" 64 linear bytes and frags of
 * 16, all of which the target has the tailroom for; "frags" pages of 4096 bytes alone; "head_frag"
 * pages behind 512 linear bytes in a page fragment, which is stolen. What is fake here: one thread,
 * warm lines, pages of which the case holds a reference; making the sk_buff and emptying the target
 * ("make" and "restore" in the ledger) lie within the time that is measured. Left out: the hash of
 * flags and options by which GRO and TCP decide that one packet continues another.
 */
#include "benches/bench_skb.h"

#include <errno.h>

enum how { HOW_LINEAR, HOW_FRAGS, HOW_HEAD_FRAG, HOW_NR };
static const char *const how_words[] = { "linear", "frags", "head_frag", NULL };

#define LINEAR_BYTES 64
#define SMALL_FRAG   16
#define HEAD_BYTES   512
#define HEAD_SIZE    2048 /* of the page fragment, shared info included */

/* The sk_buff that is to be merged, into c->other. */
static __always_inline struct sk_buff *make(struct skb_ctx *c, const enum how how,
					    const enum skb_era era)
{
	u32 size = how == HOW_LINEAR ? SMALL_FRAG : PAGE_SIZE;
	struct sk_buff *skb;

	if (how == HOW_HEAD_FRAG)
		skb = build_skb(era, page_frag_alloc_align(&c->frag, HEAD_SIZE, 64), HEAD_SIZE);
	else
		skb = alloc_skb(era, how == HOW_LINEAR ? LINEAR_BYTES : 0, NUMA_NO_NODE);
	BUG_ON(!skb);
	if (how == HOW_HEAD_FRAG)
		skb_put(skb, HEAD_BYTES);
	if (how == HOW_LINEAR)
		skb_put(skb, LINEAR_BYTES);
	for (unsigned int i = 0; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_add_rx_frag(skb, (int)i, c->page[i], 0, size, size);
	}
	return skb;
}

/* The target is empty again, and what it got is let go of. */
static __always_inline void empty_target(struct skb_ctx *c, const enum how how)
{
	struct sk_buff *to = c->second;

	if (how == HOW_LINEAR) {
		skb_trim(to, 0);
		return;
	}
	for (int i = 0; i < skb_shinfo(to)->nr_frags; i++)
		put_page(skb_shinfo(to)->frags[i].page);
	skb_shinfo(to)->nr_frags = 0;
	to->len = to->data_len = 0;
	to->truesize = c->truesize;
}

#define COALESCE_SPANS(how_name, how, suffix, era_)                                        \
	static void span_coalesce_##how_name##_private_##suffix(void *arg, u64 n)          \
	{                                                                                  \
		struct skb_ctx *c = arg;                                                   \
		bool stolen;                                                               \
		int delta;                                                                 \
                                                                                           \
		while (n--) {                                                              \
			struct sk_buff *from = make(c, how, era_);                         \
                                                                                           \
			BUG_ON(!skb_try_coalesce(era_, c->second, from, &stolen, &delta)); \
			kfree_skb_partial(era_, from, stolen);                             \
			empty_target(c, how);                                              \
		}                                                                          \
	}
#define COALESCE_CLONED_SPANS(how_name, how, suffix, era_)                                 \
	static void span_coalesce_##how_name##_cloned_##suffix(void *arg, u64 n)           \
	{                                                                                  \
		struct skb_ctx *c = arg;                                                   \
		bool stolen;                                                               \
		int delta;                                                                 \
                                                                                           \
		while (n--) {                                                              \
			struct sk_buff *from = make(c, how, era_);                         \
			struct sk_buff *clone = skb_clone(era_, from);                     \
                                                                                           \
			BUG_ON(!clone);                                                    \
			BUG_ON(!skb_try_coalesce(era_, c->second, from, &stolen, &delta)); \
			kfree_skb_partial(era_, from, stolen);                             \
			kfree_skb(era_, clone);                                            \
			empty_target(c, how);                                              \
		}                                                                          \
	}
#define COALESCE_ALL(suffix, era_)                              \
	COALESCE_SPANS(linear, HOW_LINEAR, suffix, era_)        \
	COALESCE_SPANS(frags, HOW_FRAGS, suffix, era_)          \
	COALESCE_SPANS(head_frag, HOW_HEAD_FRAG, suffix, era_)  \
	COALESCE_CLONED_SPANS(linear, HOW_LINEAR, suffix, era_) \
	COALESCE_CLONED_SPANS(frags, HOW_FRAGS, suffix, era_)
SKB_FOR_EACH_ERA(COALESCE_ALL)

static void phase_clone(void *arg)
{
	struct skb_ctx *c = arg;

	c->second_clone = skb_clone(c->era, c->other);
	BUG_ON(!c->second_clone);
}

static void phase_coalesce(void *arg)
{
	struct skb_ctx *c = arg;
	u32 len = c->other->len;
	int delta;

	BUG_ON(!skb_try_coalesce(c->era, c->second, c->other, &c->stolen, &delta));
	BUG_ON(c->second->len != len || c->second->truesize != c->truesize + (u32)delta);
}

static void phase_free_partial(void *arg)
{
	struct skb_ctx *c = arg;

	kfree_skb_partial(c->era, c->other, c->stolen);
	c->other = NULL;
}

static void phase_free_clone(void *arg)
{
	struct skb_ctx *c = arg;

	kfree_skb(c->era, c->second_clone);
	c->second_clone = NULL;
}

#define COALESCE_ONE(name, how)                                         \
	static void phase_make_##name(void *arg)                        \
	{                                                               \
		struct skb_ctx *c = arg;                                \
                                                                        \
		c->other = make(c, how, c->era);                        \
	}                                                               \
	static void phase_restore_##name(void *arg)                     \
	{                                                               \
		empty_target(arg, how);                                 \
	}                                                               \
	static void one_coalesce_##name(void *arg)                      \
	{                                                               \
		struct skb_ctx *c = arg;                                \
                                                                        \
		bench_phase("make", phase_make_##name, c);              \
		if (c->cloned)                                          \
			bench_phase("clone", phase_clone, c);           \
		bench_phase("coalesce", phase_coalesce, c);             \
		bench_phase("free_partial", phase_free_partial, c);     \
		if (c->cloned)                                          \
			bench_phase("free_clone", phase_free_clone, c); \
		bench_phase("restore", phase_restore_##name, c);        \
	}
COALESCE_ONE(linear, HOW_LINEAR)
COALESCE_ONE(frags, HOW_FRAGS)
COALESCE_ONE(head_frag, HOW_HEAD_FRAG)

/* A sentence if the values do not go together. */
static const char *impossible(enum how how, unsigned int frags, bool cloned)
{
	if (how == HOW_FRAGS && !frags)
		return "how:frags needs a frag: ask for more";
	if (how == HOW_HEAD_FRAG && cloned)
		return "a head that a clone shares is never stolen: ask for cloned:0";
	if (how == HOW_HEAD_FRAG && frags == MAX_SKB_FRAGS)
		return "no frag is left for the head: ask for one less";
	return NULL;
}

static int prepare_coalesce(const struct bench_args *args, struct bench_case *out, char *err,
			    size_t errlen)
{
	static void (*const spans[HOW_NR][2][SKB_ERA_NR])(void *, u64) = {
		{ BY_ERA(span_coalesce_linear_private), BY_ERA(span_coalesce_linear_cloned) },
		{ BY_ERA(span_coalesce_frags_private), BY_ERA(span_coalesce_frags_cloned) },
		{ BY_ERA(span_coalesce_head_frag_private) },
	};
	static void (*const ones[HOW_NR])(void *) = { one_coalesce_linear, one_coalesce_frags,
						      one_coalesce_head_frag };
	unsigned int frags = bench_arg(args, "frags");
	enum how how = bench_arg(args, "how");
	bool cloned = bench_arg(args, "cloned");
	const char *no = impossible(how, frags, cloned);
	struct skb_ctx *c;

	if (no) {
		snprintf(err, errlen, "%s", no);
		return -EINVAL;
	}
	c = skb_case_create(args, frags, err, errlen);
	if (!c)
		return -ENOMEM;
	c->cloned = cloned;
	c->second = alloc_skb(c->era, LINEAR_BYTES + SMALL_FRAG * MAX_SKB_FRAGS, NUMA_NO_NODE);
	BUG_ON(!c->second);
	if (how != HOW_LINEAR)
		skb_reserve(c->second, skb_tailroom(c->second));
	c->truesize = c->second->truesize;
	return skb_case_made(out, c, spans[how][cloned][c->era], ones[how]);
}

static const struct bench_key coalesce_keys[] = {
	KEY_ERA("6.12"),
	{ "how", how_words, 0, 0, "frags", "linear,frags,head_frag", "what the sk_buff holds" },
	KEY_FRAGS("1", "1,15"),
	{ "cloned", NULL, 0, 1, "0", "0,1", "1: a clone shares the head" },
	{ 0 },
};

static const struct bench_op op = {
	"skb/skb_try_coalesce",
	"merge an sk_buff into the one before",
	coalesce_keys,
	prepare_coalesce,
	NULL,
};

void bench_skb_coalesce(void)
{
	bench_register(&op);
}
