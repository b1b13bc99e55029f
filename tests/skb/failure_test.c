/* SPDX-License-Identifier: MIT */
/*
 * What a failed allocation leaves: every operation, on every shape, in every era, with its first,
 * second, ... allocation failing until one run has none that fails. Afterwards all bytes are where
 * they were, and when everything is freed nothing is left.
 */
#include "tests/skb/skb_test.h"

#define SAME   1 /* not a field, dataref or page reference has changed */
#define LENGTH 2 /* lengths and bytes are as before; heads and members may have become private */

static struct sk_buff *made; /* what an operation made beside the shape */
static struct ubuf_info_msgzc uarg;
static int notified;

static void notify(struct ubuf_info_msgzc *u)
{
	(void)u;
	notified++;
}

static bool made_one(struct sk_buff *n)
{
	made = n;
	return n;
}

static bool op_alloc(struct shape *s)
{
	return made_one(alloc_skb(s->era, 300, NUMA_NO_NODE));
}

static bool op_alloc_fclone(struct shape *s)
{
	return made_one(alloc_skb_fclone(s->era, 300, NUMA_NO_NODE));
}

static bool op_clone(struct shape *s)
{
	return made_one(skb_clone(s->era, s->skb));
}

static bool op_copy(struct shape *s)
{
	return made_one(skb_copy(s->era, s->skb));
}

static bool op_pskb_copy(struct shape *s)
{
	return made_one(pskb_copy(s->era, s->skb));
}

static bool op_expand(struct shape *s)
{
	return !pskb_expand_head(s->era, s->skb, 10, 3000);
}

static bool op_unclone(struct shape *s)
{
	return !skb_unclone(s->era, s->skb);
}

static bool op_keeptruesize(struct shape *s)
{
	return !skb_unclone_keeptruesize(s->era, s->skb);
}

static bool op_header_unclone(struct shape *s)
{
	return !skb_header_unclone(s->era, s->skb);
}

/* Into frag 1, into the first member's frag, and into the second member's linear bytes. */
static bool op_trim_frag(struct shape *s)
{
	return !pskb_trim(s->era, s->skb, 450);
}

static bool op_trim_first(struct shape *s)
{
	return !pskb_trim(s->era, s->skb, 700);
}

static bool op_trim_second(struct shape *s)
{
	return !pskb_trim(s->era, s->skb, 760);
}

static bool op_pull_frags(struct shape *s)
{
	return __pskb_pull_tail(s->era, s->skb, 350);
}

static bool op_pull_first(struct shape *s)
{
	return __pskb_pull_tail(s->era, s->skb, min(s->skb->data_len, 610u));
}

static bool op_pull_second(struct shape *s)
{
	return __pskb_pull_tail(s->era, s->skb, min(s->skb->data_len, 700u));
}

static bool op_linearize(struct shape *s)
{
	return !skb_linearize(s->era, s->skb);
}

/* Both give up the caller's hold when they fail: the shape keeps one more. */
static bool op_share_check(struct shape *s)
{
	return made_one(skb_share_check(s->era, skb_get(s->skb)));
}

static bool op_unshare(struct shape *s)
{
	return made_one(skb_unshare(s->era, skb_get(s->skb)));
}

static bool op_copy_ubufs(struct shape *s)
{
	return !skb_copy_ubufs(s->era, s->skb);
}

static bool op_build(struct shape *s)
{
	void *data = page_address(s->page);

	get_page(s->page);
	made = build_skb(s->era, data, 2048);
	if (!made)
		page_frag_free(data); /* still the caller's */
	return made;
}

static const struct op {
	const char *name;
	bool (*fn)(struct shape *s);
	int leaves;
	bool zerocopy; /* with pages of a user that must not be shared; no clone */
} ops[] = {
	{ "alloc_skb", op_alloc, SAME, false },
	{ "alloc_skb_fclone", op_alloc_fclone, SAME, false },
	{ "build_skb", op_build, SAME, false },
	{ "skb_clone", op_clone, SAME, false },
	{ "skb_copy", op_copy, SAME, false },
	{ "pskb_copy", op_pskb_copy, SAME, false },
	{ "pskb_expand_head", op_expand, SAME, false },
	{ "skb_unclone", op_unclone, SAME, false },
	{ "skb_unclone_keeptruesize", op_keeptruesize, SAME, false },
	{ "skb_header_unclone", op_header_unclone, SAME, false },
	{ "pskb_trim to a frag", op_trim_frag, LENGTH, false },
	{ "pskb_trim to the first member", op_trim_first, LENGTH, false },
	{ "pskb_trim to the second member", op_trim_second, LENGTH, false },
	{ "__pskb_pull_tail of frags", op_pull_frags, LENGTH, false },
	{ "__pskb_pull_tail into the first member", op_pull_first, LENGTH, false },
	{ "__pskb_pull_tail into the second member", op_pull_second, LENGTH, false },
	{ "skb_linearize", op_linearize, LENGTH, false },
	{ "skb_share_check", op_share_check, SAME, false },
	{ "skb_unshare", op_unshare, SAME, false },
	{ "skb_copy_ubufs", op_copy_ubufs, LENGTH, false },
	{ "skb_copy_ubufs of a user's pages", op_copy_ubufs, SAME, true },
	{ "skb_clone of a user's pages", op_clone, LENGTH, true },
	{ "pskb_copy of a user's pages", op_pskb_copy, LENGTH, true },
};

static int failures[ARRAY_SIZE(ops)];

/* One run with allocation K failing; false if there were not so many. */
static bool failed(const struct op *op, enum skb_era era, unsigned int kind, int k)
{
	struct sk_buff before;
	struct shape s;
	int ref, pages, want = notified + op->zerocopy;
	bool done, fails;

	shape_make(&s, era, kind);
	if (op->zerocopy) {
		msg_zerocopy_init(&uarg, SKBFL_ZEROCOPY_FRAG, notify);
		skb_zcopy_set(s.skb, &uarg.ubuf);
		net_zcopy_put(&uarg.ubuf);
	}
	before = *s.skb;
	ref = dataref(s.skb);
	pages = page_count(s.page);
	made = NULL;

	fail_in = k;
	model_fail = fail_nth;
	done = op->fn(&s);
	model_fail = NULL;
	fails = fail_in <= 0;

	if (done == fails)
		fail_msg("%s: %s, and allocation %d %s", op->name, done ? "done" : "not done", k,
			 fails ? "failed" : "did not fail");
	if (fails) {
		failures[op - ops]++;
		shape_holds(&s, 0, s.len);
		assert_int_equal(s.skb->users.refs.counter, 1);
		if (op->leaves == SAME) {
			assert_memory_equal(&before, s.skb, sizeof(before));
			assert_int_equal(dataref(s.skb), ref);
			assert_int_equal(page_count(s.page), pages);
		}
	}
	if (made)
		kfree_skb(era, made);
	shape_free(&s, k & 1);
	assert_int_equal(notified, want); /* once, whatever happened */
	assert_int_equal(objects_out(), 0);
	return fails;
}

static void every_allocation(void **state)
{
	(void)state;
	counts_start();
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		for_each_era (era) {
			for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
				if (ops[i].zerocopy && kind & SHAPE_CLONED)
					continue;
				for (int k = 1; failed(&ops[i], era, kind, k); k++)
					assert_true(k < 20);
			}
		}
	}
	/* Each of them can fail, and did. */
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (!failures[i])
			fail_msg("no allocation of %s ever failed", ops[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation) };

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
