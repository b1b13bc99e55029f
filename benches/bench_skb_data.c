/* SPDX-License-Identifier: MIT */
/*
 * Operations that move bytes and frags between sk_buffs, or out of them.
 *
 *   operation             keys              one operation is
 *   skb/skb_copy          era frags list    skb_copy(), kfree_skb() of the copy
 *   skb/pskb_trim         era frags drop    pskb_trim() by drop frags and the whole list; what it
 *                         cloned list       dropped is put back
 *   skb/__pskb_pull_tail  era frags delta   delta bytes made linear, and back
 *                         cloned
 *   skb/skb_condense      era frags         frags of 16 bytes made linear, and back
 *   skb/skb_split         era cut frags     skb_split(), and the halves joined by hand
 *   skb/skb_shift         era how frags     skb_shift() into a second sk_buff, and back by hand
 *                         cloned
 *   skb/skb_copy_ubufs    era frags         skb_zcopy_set(), frags of 4096 bytes copied, and back
 *   skb/skb_share_check   era users         [skb_get()] skb_share_check(), kfree_skb() of the clone
 *   skb/skb_unshare       era frags         skb_clone(), skb_unshare() of it, kfree_skb() of that
 *   skb/skb_morph         era               a shell lets go of a clone and becomes one again
 *
 * The kernel does each of these in net/core/skbuff.c, era by era; skb_condense() since 4.10,
 * zerocopy since 4.14. What is fake here: to be repeated, an operation is undone, by hand and as
 * cheaply as can be ("restore" in the ledger), within the time that is measured; one thread, warm
 * lines; the sk_buff has a socket in name only, so that a trim does not condense it; nobody reads
 * the payload but where it is copied. cut is where a split goes through: between two frags, inside
 * one, or inside the linear part. how is what a shift meets: "whole" moves all frags as they are,
 * "merge" too, but the first one continues the target's last, "part" moves half a frag, "grow"
 * half a frag that continues the target's last.
 */
#include "benches/bench_skb.h"

#include <errno.h>

#define BY_CLONED(name)                                       \
	{                                                     \
		BY_ERA(name##_private), BY_ERA(name##_cloned) \
	}

/* Whose socket: only ever compared with NULL. */
static char nobody;

static __always_inline void own(struct sk_buff *skb)
{
	skb->sk = (struct sock *)&nobody;
}

static void phase_clone(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = skb_clone(c->era, c->skb);
	BUG_ON(!c->other);
}

static void phase_free(void *arg)
{
	struct skb_ctx *c = arg;

	kfree_skb(c->era, c->other);
	c->other = NULL;
}

/* --- skb_copy */

#define COPY_SPAN(suffix, era_)                                  \
	static void span_copy_##suffix(void *arg, u64 n)         \
	{                                                        \
		struct skb_ctx *c = arg;                         \
                                                                 \
		while (n--)                                      \
			kfree_skb(era_, skb_copy(era_, c->skb)); \
	}
SKB_FOR_EACH_ERA(COPY_SPAN)

static void phase_copy(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = skb_copy(c->era, c->skb);
	BUG_ON(!c->other || c->other->data_len || c->other->len != c->skb->len);
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
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, true, false);
	for (unsigned int i = 0; i < c->frags; i++)
		memset(page_address(c->page[i]), (int)i, PAGE_SIZE);
	return skb_case_made(out, c, spans[c->era], one_copy);
}

/* --- pskb_trim: c->size is the length that stays, in whole frags */

static __always_inline void trim_restore(struct skb_ctx *c)
{
	struct sk_buff *skb = c->skb;

	for (unsigned int i = skb_shinfo(skb)->nr_frags; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_add_rx_frag(skb, i, c->page[i], 0, PAGE_SIZE, 0);
	}
	if (c->list)
		skb_case_list(c, skb, c->list);
	skb->truesize = c->truesize;
}

#define TRIM_SPANS(suffix, era_)                                            \
	static void span_trim_private_##suffix(void *arg, u64 n)            \
	{                                                                   \
		struct skb_ctx *c = arg;                                    \
                                                                            \
		while (n--) {                                               \
			BUG_ON(pskb_trim(era_, c->skb, c->size));           \
			trim_restore(c);                                    \
		}                                                           \
	}                                                                   \
	static void span_trim_cloned_##suffix(void *arg, u64 n)             \
	{                                                                   \
		struct skb_ctx *c = arg;                                    \
                                                                            \
		while (n--) {                                               \
			struct sk_buff *clone = skb_clone(era_, c->skb);    \
                                                                            \
			BUG_ON(!clone || pskb_trim(era_, c->skb, c->size)); \
			kfree_skb(era_, clone);                             \
			trim_restore(c);                                    \
		}                                                           \
	}
SKB_FOR_EACH_ERA(TRIM_SPANS)

static void phase_trim(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(pskb_trim(c->era, c->skb, c->size) || c->skb->len != c->size);
}

static void phase_trim_restore(void *arg)
{
	trim_restore(arg);
}

static void one_trim(void *arg)
{
	struct skb_ctx *c = arg;

	if (c->cloned)
		bench_phase("clone", phase_clone, c);
	bench_phase("trim", phase_trim, c);
	if (c->cloned)
		bench_phase("free_clone", phase_free, c);
	bench_phase("restore", phase_trim_restore, c);
}

static int prepare_trim(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const spans[2][SKB_ERA_NR])(void *, u64) = BY_CLONED(span_trim);
	unsigned int frags = bench_arg(args, "frags"), drop = bench_arg(args, "drop");
	struct skb_ctx *c;

	if (drop > frags || drop + bench_arg(args, "list") == 0) {
		snprintf(err, errlen,
			 "drop:%u of frags:%u and no list: between 1 and all of them, please", drop,
			 frags);
		return -EINVAL;
	}
	c = skb_case_create(args, frags, err, errlen);
	if (!c)
		return -ENOMEM;
	c->cloned = bench_arg(args, "cloned");
	c->size = (frags - drop) * PAGE_SIZE;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, true, false);
	own(c->skb);
	return skb_case_made(out, c, spans[c->cloned][c->era], one_trim);
}

/* --- __pskb_pull_tail: c->size is delta */

/* The linear bytes are let go of; frags begin where they did. */
static __always_inline void pull_restore(struct skb_ctx *c)
{
	struct sk_buff *skb = c->skb;
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned int gone = c->frags - shinfo->nr_frags;

	for (unsigned int i = 0; i < gone; i++)
		page_ref_inc(c->page[i]);
	if (gone) {
		for (unsigned int i = 0; i < c->frags; i++)
			skb_fill_page_desc(skb, i, c->page[i], 0, PAGE_SIZE);
	} else {
		shinfo->frags[0].offset = 0;
		shinfo->frags[0].len = PAGE_SIZE;
	}
	skb->data_len = skb->len;
	skb_reset_tail_pointer(skb);
	skb->truesize = c->truesize;
}

#define PULL_SPANS(suffix, era_)                                                    \
	static void span_pull_private_##suffix(void *arg, u64 n)                    \
	{                                                                           \
		struct skb_ctx *c = arg;                                            \
                                                                                    \
		while (n--) {                                                       \
			BUG_ON(!__pskb_pull_tail(era_, c->skb, c->size));           \
			pull_restore(c);                                            \
		}                                                                   \
	}                                                                           \
	static void span_pull_cloned_##suffix(void *arg, u64 n)                     \
	{                                                                           \
		struct skb_ctx *c = arg;                                            \
                                                                                    \
		while (n--) {                                                       \
			struct sk_buff *clone = skb_clone(era_, c->skb);            \
                                                                                    \
			BUG_ON(!clone || !__pskb_pull_tail(era_, c->skb, c->size)); \
			kfree_skb(era_, clone);                                     \
			pull_restore(c);                                            \
		}                                                                   \
	}
SKB_FOR_EACH_ERA(PULL_SPANS)

static void phase_pull(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(!__pskb_pull_tail(c->era, c->skb, c->size) || skb_headlen(c->skb) != c->size);
}

static void phase_pull_restore(void *arg)
{
	pull_restore(arg);
}

static void one_pull(void *arg)
{
	struct skb_ctx *c = arg;

	if (c->cloned)
		bench_phase("clone", phase_clone, c);
	bench_phase("pull", phase_pull, c);
	if (c->cloned)
		bench_phase("free_clone", phase_free, c);
	bench_phase("restore", phase_pull_restore, c);
}

static int prepare_pull(const struct bench_args *args, struct bench_case *out, char *err,
			size_t errlen)
{
	static void (*const spans[2][SKB_ERA_NR])(void *, u64) = BY_CLONED(span_pull);
	unsigned int frags = bench_arg(args, "frags"), delta = bench_arg(args, "delta");
	struct skb_ctx *c;

	if (delta > frags * PAGE_SIZE) {
		snprintf(err, errlen, "delta:%u is more than the %lu bytes of frags:%u", delta,
			 frags * PAGE_SIZE, frags);
		return -EINVAL;
	}
	c = skb_case_create(args, frags, err, errlen);
	if (!c)
		return -ENOMEM;
	c->cloned = bench_arg(args, "cloned");
	c->size = delta;
	skb_case_skb(c, args, MAX_TCP_HEADER, delta, false, false);
	own(c->skb);
	return skb_case_made(out, c, spans[c->cloned][c->era], one_pull);
}

/* --- skb_condense: frags of CONDENSE_BYTES */

#define CONDENSE_BYTES 16

static __always_inline void condense_restore(struct skb_ctx *c)
{
	struct sk_buff *skb = c->skb;

	for (unsigned int i = 0; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_fill_page_desc(skb, i, c->page[i], 0, CONDENSE_BYTES);
	}
	skb->len = skb->data_len = c->frags * CONDENSE_BYTES;
	skb_reset_tail_pointer(skb);
	skb->truesize = c->truesize;
}

#define CONDENSE_SPAN(suffix, era_)                          \
	static void span_condense_##suffix(void *arg, u64 n) \
	{                                                    \
		struct skb_ctx *c = arg;                     \
                                                             \
		while (n--) {                                \
			skb_condense(era_, c->skb);          \
			condense_restore(c);                 \
		}                                            \
	}
CONDENSE_SPAN(6_1, ERA_6_1)
CONDENSE_SPAN(6_12, ERA_6_12)

static void phase_condense(void *arg)
{
	struct skb_ctx *c = arg;

	skb_condense(c->era, c->skb);
	BUG_ON(c->skb->data_len || c->skb->truesize != SKB_TRUESIZE(skb_end_offset(c->skb)));
}

static void phase_condense_restore(void *arg)
{
	condense_restore(arg);
}

static void one_condense(void *arg)
{
	bench_phase("condense", phase_condense, arg);
	bench_phase("restore", phase_condense_restore, arg);
}

static int prepare_condense(const struct bench_args *args, struct bench_case *out, char *err,
			    size_t errlen)
{
	static void (*const spans[])(void *, u64) = { NULL, span_condense_6_1, span_condense_6_12 };
	struct skb_ctx *c;

	if (bench_arg(args, "era") == ERA_3_4) {
		snprintf(err, errlen, "3.4 has no skb_condense(): ask for era:6.1 or era:6.12");
		return -EINVAL;
	}
	c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);
	if (!c)
		return -ENOMEM;
	skb_case_skb(c, args, 0, c->frags * CONDENSE_BYTES, false, false);
	for (unsigned int i = 0; i < c->frags; i++)
		put_page(c->page[i]);
	condense_restore(c);
	return skb_case_made(out, c, spans[c->era], one_condense);
}

/* --- skb_split: c->size is the cut */

#define SPLIT_LINEAR 128
enum cut { CUT_BETWEEN, CUT_FRAG, CUT_LINEAR };
static const char *const cut_words[] = { "between", "frag", "linear", NULL };

static __always_inline void split_restore(struct skb_ctx *c, const enum cut cut)
{
	struct sk_buff *skb = c->skb, *rest = c->second;

	for (unsigned int i = 0; i < c->frags; i++)
		skb_fill_page_desc(skb, i, c->page[i], 0, PAGE_SIZE);
	if (cut == CUT_FRAG)
		put_page(c->page[c->frags / 2]);
	skb->len += rest->len;
	skb->data_len = c->frags * PAGE_SIZE;
	if (cut == CUT_LINEAR)
		skb->tail += SPLIT_LINEAR / 2;
	skb_shinfo(rest)->nr_frags = 0;
	rest->len = rest->data_len = 0;
	skb_reset_tail_pointer(rest);
}

#define SPLIT_SPAN(name, cut)                                  \
	static void span_split_##name(void *arg, u64 n)        \
	{                                                      \
		struct skb_ctx *c = arg;                       \
                                                               \
		while (n--) {                                  \
			skb_split(c->skb, c->second, c->size); \
			split_restore(c, cut);                 \
		}                                              \
	}                                                      \
	static void restore_split_##name(void *arg)            \
	{                                                      \
		split_restore(arg, cut);                       \
	}
SPLIT_SPAN(between, CUT_BETWEEN)
SPLIT_SPAN(frag, CUT_FRAG)
SPLIT_SPAN(linear, CUT_LINEAR)

static void phase_split(void *arg)
{
	struct skb_ctx *c = arg;
	u32 len = c->skb->len;

	skb_split(c->skb, c->second, c->size);
	BUG_ON(c->skb->len != c->size || c->skb->len + c->second->len != len);
}

#define ONE_SPLIT(name)                                            \
	static void one_split_##name(void *arg)                    \
	{                                                          \
		bench_phase("split", phase_split, arg);            \
		bench_phase("restore", restore_split_##name, arg); \
	}
ONE_SPLIT(between)
ONE_SPLIT(frag)
ONE_SPLIT(linear)

static int prepare_split(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = { span_split_between, span_split_frag,
						      span_split_linear };
	static void (*const ones[])(void *) = { one_split_between, one_split_frag,
						one_split_linear };
	enum cut cut = bench_arg(args, "cut");
	struct skb_ctx *c;

	if (cut != CUT_LINEAR && bench_arg(args, "frags") == 0) {
		snprintf(err, errlen, "cut:%s needs a frag: ask for more or for cut:linear",
			 cut_words[cut]);
		return -EINVAL;
	}
	c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);
	if (!c)
		return -ENOMEM;
	c->skb = alloc_skb_fclone(c->era, MAX_TCP_HEADER + SPLIT_LINEAR, NUMA_NO_NODE);
	c->second = alloc_skb_fclone(c->era, MAX_TCP_HEADER + SPLIT_LINEAR, NUMA_NO_NODE);
	BUG_ON(!c->skb || !c->second);
	skb_reserve(c->skb, MAX_TCP_HEADER);
	skb_reserve(c->second, MAX_TCP_HEADER);
	memset(skb_put(c->skb, SPLIT_LINEAR), 0, SPLIT_LINEAR);
	skb_case_fill(c, c->skb, c->frags);
	c->size = cut == CUT_LINEAR ? SPLIT_LINEAR / 2
				    : SPLIT_LINEAR + c->frags / 2 * PAGE_SIZE +
					      (cut == CUT_FRAG ? PAGE_SIZE / 2 : 0);
	return skb_case_made(out, c, spans[cut], ones[cut]);
}

/* --- skb_shift: from c->skb to c->second, which for merge and grow holds half a page already */

enum how { HOW_WHOLE, HOW_MERGE, HOW_PART, HOW_GROW, HOW_NR };
static const char *const how_words[] = { "whole", "merge", "part", "grow", NULL };

#define HALF (PAGE_SIZE / 2)

static __always_inline bool how_adjacent(const enum how how)
{
	return how == HOW_MERGE || how == HOW_GROW;
}

static __always_inline u32 how_offset(const enum how how)
{
	return how_adjacent(how) ? HALF : 0;
}

static __always_inline u32 how_bytes(const struct skb_ctx *c, const enum how how)
{
	return how == HOW_PART || how == HOW_GROW ? HALF / 2
						  : c->frags * PAGE_SIZE - how_offset(how);
}

/* Both as they were made, with the references that the shift took or dropped. */
static __always_inline void shift_restore(struct skb_ctx *c, const enum how how)
{
	struct sk_buff *skb = c->skb, *tgt = c->second;

	if (how == HOW_MERGE)
		page_ref_inc(c->page[0]);
	if (how == HOW_PART)
		put_page(c->page[0]);
	skb_fill_page_desc(skb, 0, c->page[0], how_offset(how), PAGE_SIZE - how_offset(how));
	for (unsigned int i = 1; i < c->frags; i++)
		skb_fill_page_desc(skb, i, c->page[i], 0, PAGE_SIZE);
	skb->len = skb->data_len = c->frags * PAGE_SIZE - how_offset(how);
	if (how_adjacent(how))
		skb_fill_page_desc(tgt, 0, c->page[0], 0, HALF);
	else
		skb_shinfo(tgt)->nr_frags = 0;
	tgt->len = tgt->data_len = how_offset(how);
	skb->truesize = tgt->truesize = c->truesize;
}

#define SHIFT_SPANS(how_name, how, suffix, era_)                                             \
	static void span_shift_##how_name##_private_##suffix(void *arg, u64 n)               \
	{                                                                                    \
		struct skb_ctx *c = arg;                                                     \
                                                                                             \
		while (n--) {                                                                \
			BUG_ON(!skb_shift(era_, c->second, c->skb, (int)how_bytes(c, how))); \
			shift_restore(c, how);                                               \
		}                                                                            \
	}                                                                                    \
	static void span_shift_##how_name##_cloned_##suffix(void *arg, u64 n)                \
	{                                                                                    \
		struct skb_ctx *c = arg;                                                     \
                                                                                             \
		while (n--) {                                                                \
			struct sk_buff *a = skb_clone(era_, c->skb);                         \
			struct sk_buff *b = skb_clone(era_, c->second);                      \
                                                                                             \
			BUG_ON(!a || !b);                                                    \
			BUG_ON(!skb_shift(era_, c->second, c->skb, (int)how_bytes(c, how))); \
			kfree_skb(era_, a);                                                  \
			kfree_skb(era_, b);                                                  \
			shift_restore(c, how);                                               \
		}                                                                            \
	}
#define SHIFT_ALL(suffix, era_)                     \
	SHIFT_SPANS(whole, HOW_WHOLE, suffix, era_) \
	SHIFT_SPANS(merge, HOW_MERGE, suffix, era_) \
	SHIFT_SPANS(part, HOW_PART, suffix, era_)   \
	SHIFT_SPANS(grow, HOW_GROW, suffix, era_)
SKB_FOR_EACH_ERA(SHIFT_ALL)

static void phase_clone_both(void *arg)
{
	struct skb_ctx *c = arg;

	phase_clone(arg);
	c->second_clone = skb_clone(c->era, c->second);
	BUG_ON(!c->second_clone);
}

static void phase_free_both(void *arg)
{
	struct skb_ctx *c = arg;

	phase_free(arg);
	kfree_skb(c->era, c->second_clone);
	c->second_clone = NULL;
}

#define SHIFT_ONE(name, how)                                                  \
	static void phase_shift_##name(void *arg)                             \
	{                                                                     \
		struct skb_ctx *c = arg;                                      \
		int bytes = (int)how_bytes(c, how);                           \
                                                                              \
		BUG_ON(skb_shift(c->era, c->second, c->skb, bytes) != bytes); \
		BUG_ON(c->second->len != how_offset(how) + (u32)bytes);       \
	}                                                                     \
	static void restore_shift_##name(void *arg)                           \
	{                                                                     \
		shift_restore(arg, how);                                      \
	}                                                                     \
	static void one_shift_##name(void *arg)                               \
	{                                                                     \
		struct skb_ctx *c = arg;                                      \
                                                                              \
		if (c->cloned)                                                \
			bench_phase("clone", phase_clone_both, c);            \
		bench_phase("shift", phase_shift_##name, c);                  \
		if (c->cloned)                                                \
			bench_phase("free_clone", phase_free_both, c);        \
		bench_phase("restore", restore_shift_##name, c);              \
	}
SHIFT_ONE(whole, HOW_WHOLE)
SHIFT_ONE(merge, HOW_MERGE)
SHIFT_ONE(part, HOW_PART)
SHIFT_ONE(grow, HOW_GROW)

static int check_shift(void *arg, char *err, size_t errlen);

static int prepare_shift(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[HOW_NR][2][SKB_ERA_NR])(void *, u64) = {
		BY_CLONED(span_shift_whole),
		BY_CLONED(span_shift_merge),
		BY_CLONED(span_shift_part),
		BY_CLONED(span_shift_grow),
	};
	static void (*const ones[HOW_NR])(void *) = { one_shift_whole, one_shift_merge,
						      one_shift_part, one_shift_grow };
	enum how how = bench_arg(args, "how");
	struct skb_ctx *c;

	if (bench_arg(args, "frags") == 0) {
		snprintf(err, errlen, "frags:0: a shift needs a frag to move");
		return -EINVAL;
	}
	c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);
	if (!c)
		return -ENOMEM;
	c->cloned = bench_arg(args, "cloned");
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, false, false);
	c->second = alloc_skb_fclone(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	BUG_ON(!c->second);
	skb_reserve(c->second, MAX_TCP_HEADER);
	own(c->skb);
	own(c->second);
	if (how_adjacent(how))
		page_ref_inc(c->page[0]);
	/* What a restore expects to find. */
	if (how == HOW_MERGE)
		put_page(c->page[0]);
	if (how == HOW_PART)
		page_ref_inc(c->page[0]);
	switch (how) {
	case HOW_WHOLE:
		shift_restore(c, HOW_WHOLE);
		break;
	case HOW_MERGE:
		shift_restore(c, HOW_MERGE);
		break;
	case HOW_PART:
		shift_restore(c, HOW_PART);
		break;
	default:
		shift_restore(c, HOW_GROW);
	}
	skb_case_made(out, c, spans[how][c->cloned][c->era], ones[how]);
	out->check = check_shift;
	c->size = how_adjacent(how);
	return 0;
}

static int check_shift(void *arg, char *err, size_t errlen)
{
	struct skb_ctx *c = arg;
	int ret;

	/* The target's own frag is one reference more than the common check knows. */
	c->one(c);
	if (page_count(c->page[0]) != 2 + (int)c->size) {
		snprintf(err, errlen, "the page of frag 0 has %d references, not %u",
			 page_count(c->page[0]), 2 + c->size);
		return -1;
	}
	for (unsigned int i = 1; i < c->frags; i++) {
		if (page_count(c->page[i]) != 2) {
			snprintf(err, errlen, "the page of frag %u has %d references, not 2", i,
				 page_count(c->page[i]));
			return -1;
		}
	}
	ret = skb_check(c->skb, err, errlen);
	return ret ? ret : skb_check(c->second, err, errlen);
}

/* --- skb_copy_ubufs: the user's pages are the case's */

static __always_inline void ubufs_restore(struct skb_ctx *c)
{
	struct sk_buff *skb = c->skb;

	for (int i = 0; i < skb_shinfo(skb)->nr_frags; i++)
		put_page(skb_shinfo(skb)->frags[i].page);
	for (unsigned int i = 0; i < c->frags; i++) {
		page_ref_inc(c->page[i]);
		skb_fill_page_desc(skb, i, c->page[i], 0, PAGE_SIZE);
	}
}

#define UBUFS_SPAN(suffix, era_)                              \
	static void span_ubufs_##suffix(void *arg, u64 n)     \
	{                                                     \
		struct skb_ctx *c = arg;                      \
                                                              \
		while (n--) {                                 \
			skb_zcopy_set(c->skb, &c->uarg.ubuf); \
			BUG_ON(skb_copy_ubufs(era_, c->skb)); \
			ubufs_restore(c);                     \
		}                                             \
	}
SKB_FOR_EACH_ERA(UBUFS_SPAN)

static void phase_zcopy_set(void *arg)
{
	struct skb_ctx *c = arg;

	skb_zcopy_set(c->skb, &c->uarg.ubuf);
}

static void phase_ubufs(void *arg)
{
	struct skb_ctx *c = arg;

	BUG_ON(skb_copy_ubufs(c->era, c->skb) || skb_zcopy(c->skb) ||
	       c->uarg.ubuf.refcnt.refs.counter != 1);
}

static void phase_ubufs_restore(void *arg)
{
	ubufs_restore(arg);
}

static void one_ubufs(void *arg)
{
	bench_phase("set", phase_zcopy_set, arg);
	bench_phase("copy_ubufs", phase_ubufs, arg);
	bench_phase("restore", phase_ubufs_restore, arg);
}

static int prepare_ubufs(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_ubufs);
	struct skb_ctx *c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);

	if (!c)
		return -ENOMEM;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, false, false);
	msg_zerocopy_init(&c->uarg, SKBFL_ZEROCOPY_FRAG, NULL);
	for (unsigned int i = 0; i < c->frags; i++)
		memset(page_address(c->page[i]), (int)i, PAGE_SIZE);
	return skb_case_made(out, c, spans[c->era], one_ubufs);
}

/* --- skb_share_check, skb_unshare, skb_morph */

#define OWN_SPANS(suffix, era_)                                                      \
	static void span_share_alone_##suffix(void *arg, u64 n)                      \
	{                                                                            \
		struct skb_ctx *c = arg;                                             \
                                                                                     \
		while (n--)                                                          \
			c->skb = skb_share_check(era_, c->skb);                      \
	}                                                                            \
	static void span_share_held_##suffix(void *arg, u64 n)                       \
	{                                                                            \
		struct skb_ctx *c = arg;                                             \
                                                                                     \
		while (n--)                                                          \
			kfree_skb(era_, skb_share_check(era_, skb_get(c->skb)));     \
	}                                                                            \
	static void span_unshare_##suffix(void *arg, u64 n)                          \
	{                                                                            \
		struct skb_ctx *c = arg;                                             \
                                                                                     \
		while (n--)                                                          \
			kfree_skb(era_, skb_unshare(era_, skb_clone(era_, c->skb))); \
	}                                                                            \
	static void span_morph_##suffix(void *arg, u64 n)                            \
	{                                                                            \
		struct skb_ctx *c = arg;                                             \
                                                                                     \
		while (n--)                                                          \
			skb_morph(era_, c->second, c->skb);                          \
	}
SKB_FOR_EACH_ERA(OWN_SPANS)

static void phase_get(void *arg)
{
	skb_get(((struct skb_ctx *)arg)->skb);
}

static void phase_share_check(void *arg)
{
	struct skb_ctx *c = arg;
	struct sk_buff *n = skb_share_check(c->era, c->skb);

	BUG_ON(!n);
	if (n != c->skb)
		c->other = n;
}

static void one_share_alone(void *arg)
{
	bench_phase("share_check", phase_share_check, arg);
}

static void one_share_held(void *arg)
{
	bench_phase("get", phase_get, arg);
	bench_phase("share_check", phase_share_check, arg);
	bench_phase("free_clone", phase_free, arg);
}

static int prepare_share_check(const struct bench_args *args, struct bench_case *out, char *err,
			       size_t errlen)
{
	static void (*const spans[2][SKB_ERA_NR])(void *, u64) = { BY_ERA(span_share_alone),
								   BY_ERA(span_share_held) };
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);
	bool held = bench_arg(args, "users") == 2;

	if (!c)
		return -ENOMEM;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, false, false);
	return skb_case_made(out, c, spans[held][c->era], held ? one_share_held : one_share_alone);
}

static void phase_unshare(void *arg)
{
	struct skb_ctx *c = arg;

	c->other = skb_unshare(c->era, c->other);
	BUG_ON(!c->other || c->other->data_len);
}

static void one_unshare(void *arg)
{
	bench_phase("clone", phase_clone, arg);
	bench_phase("unshare", phase_unshare, arg);
	bench_phase("free_copy", phase_free, arg);
}

static int prepare_unshare(const struct bench_args *args, struct bench_case *out, char *err,
			   size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_unshare);
	struct skb_ctx *c = skb_case_create(args, bench_arg(args, "frags"), err, errlen);

	if (!c)
		return -ENOMEM;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, false, false);
	for (unsigned int i = 0; i < c->frags; i++)
		memset(page_address(c->page[i]), (int)i, PAGE_SIZE);
	return skb_case_made(out, c, spans[c->era], one_unshare);
}

static void phase_morph(void *arg)
{
	struct skb_ctx *c = arg;

	skb_morph(c->era, c->second, c->skb);
}

static void one_morph(void *arg)
{
	bench_phase("morph", phase_morph, arg);
}

static int check_morph(void *arg, char *err, size_t errlen)
{
	struct skb_ctx *c = arg;

	c->one(c);
	if (c->second->head != c->skb->head || skb_shinfo(c->skb)->dataref.counter != 2) {
		snprintf(err, errlen, "not a clone, or dataref is %#x and not 2",
			 skb_shinfo(c->skb)->dataref.counter);
		return -1;
	}
	return skb_check(c->second, err, errlen);
}

static int prepare_morph(const struct bench_args *args, struct bench_case *out, char *err,
			 size_t errlen)
{
	static void (*const spans[])(void *, u64) = BY_ERA(span_morph);
	struct skb_ctx *c = skb_case_create(args, 0, err, errlen);

	if (!c)
		return -ENOMEM;
	skb_case_skb(c, args, MAX_TCP_HEADER, 0, false, false);
	c->second = alloc_skb(c->era, MAX_TCP_HEADER, NUMA_NO_NODE);
	BUG_ON(!c->second);
	skb_case_made(out, c, spans[c->era], one_morph);
	out->check = check_morph;
	return 0;
}

static const struct bench_key copy_keys[] = {
	KEY_ERA("6.12"), KEY_FRAGS("16", "0,2,16"), KEY_LIST, { 0 }
};
static const struct bench_key trim_keys[] = {
	KEY_ERA("6.12"),
	KEY_FRAGS("16", "16"),
	{ "drop", NULL, 0, MAX_SKB_FRAGS, "4", "1,16", "frags that go" },
	KEY_CLONED,
	KEY_LIST,
	{ 0 },
};
static const struct bench_key pull_keys[] = {
	KEY_ERA("6.12"),
	KEY_FRAGS("2", "2"),
	{ "delta", NULL, 1, MAX_SKB_FRAGS * 4096, "256", "64,256,4096", "bytes made linear" },
	KEY_CLONED,
	{ 0 },
};
static const struct bench_key condense_keys[] = { KEY_ERA("6.12"), KEY_FRAGS("1", "1,4"), { 0 } };
static const struct bench_key split_keys[] = {
	/* One rule for all eras. */
	KEY_ERA("6.12"),
	{ "cut", cut_words, 0, 0, "frag", "between,frag,linear", "where the cut goes through" },
	KEY_FRAGS("16", "2,16"),
	{ 0 },
};
static const struct bench_key shift_keys[] = {
	KEY_ERA("6.12"),
	{ "how", how_words, 0, 0, "merge", "whole,merge,part,grow", "what the shift meets" },
	KEY_FRAGS("2", "2"),
	KEY_CLONED,
	{ 0 },
};
static const struct bench_key ubufs_keys[] = { KEY_ERA("6.12"), KEY_FRAGS("16", "1,16"), { 0 } };
static const struct bench_key share_keys[] = {
	KEY_ERA("6.12"),
	{ "users", NULL, 1, 2, "2", "1,2", "holders of the sk_buff before" },
	{ 0 },
};
static const struct bench_key unshare_keys[] = { KEY_ERA("6.12"), KEY_FRAGS("2", "0,2"), { 0 } };
static const struct bench_key morph_keys[] = { KEY_ERA("6.12"), { 0 } };

static const struct bench_op ops[] = {
	{ "skb/skb_copy", "a linear copy of all bytes", copy_keys, prepare_copy, NULL },
	{ "skb/pskb_trim", "cut frags off the tail", trim_keys, prepare_trim, NULL },
	{ "skb/__pskb_pull_tail", "make bytes of frags linear", pull_keys, prepare_pull, NULL },
	{ "skb/skb_condense", "make small frags linear and let their pages go", condense_keys,
	  prepare_condense, NULL },
	{ "skb/skb_split", "cut an sk_buff in two", split_keys, prepare_split, NULL },
	{ "skb/skb_shift", "move leading frags to the sk_buff before", shift_keys, prepare_shift,
	  NULL },
	{ "skb/skb_copy_ubufs", "copy a user's pages after all", ubufs_keys, prepare_ubufs, NULL },
	{ "skb/skb_share_check", "an sk_buff that nobody else holds", share_keys,
	  prepare_share_check, NULL },
	{ "skb/skb_unshare", "an sk_buff whose head nobody shares", unshare_keys, prepare_unshare,
	  NULL },
	{ "skb/skb_morph", "a shell becomes another one's clone", morph_keys, prepare_morph, NULL },
};

void bench_skb_data(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		bench_register(&ops[i]);
}
