/* SPDX-License-Identifier: MIT */
/*
 * skb_shift(): the golden trace T7, its being the inverse of skb_split(), every way to refuse, and
 * what a refusal leaves. Each runs in every era.
 */
#include "tests/skb/skb_test.h"

/* T7: [32768, 32392] cut at 28960 and joined again: one get and one put, all counters as before. */
static void split_and_shift_back(void **state)
{
	struct page *p0 = block(SKB_FRAG_PAGE_ORDER), *p1 = block(SKB_FRAG_PAGE_ORDER);
	static u8 before[2 * 32768], after[2 * 32768];

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = empty(era), *b = empty(era);
		unsigned int truesize, truesize_b = b->truesize;

		frag(a, p0, 0, 32768);
		frag(a, p1, 0, 32392);
		skb_copy_bits(a, 0, before, a->len);
		truesize = a->truesize;

		skb_split(a, b, 28960);
		assert_int_equal(page_count(p0), 3);
		is_frag(a, 0, p0, 0, 28960);
		is_frag(b, 0, p0, 28960, 3808);
		is_frag(b, 1, p1, 0, 32392);
		a->truesize -= b->len; /* truesize is the caller's */
		b->truesize += b->len;
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(skb_shift(era, a, b, b->len), 36200);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 1);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 0);
#endif
		is_frag(a, 0, p0, 0, 32768);
		is_frag(a, 1, p1, 0, 32392);
		assert_int_equal(skb_shinfo(a)->nr_frags, 2);
		assert_int_equal(a->truesize, truesize);
		assert_int_equal(b->truesize, truesize_b);
		assert_int_equal(b->len, 0);
		assert_int_equal(skb_shinfo(b)->nr_frags, 0);
		assert_int_equal(page_count(p0), 2);
		assert_int_equal(page_count(p1), 2);
		good(a);
		good(b);
		skb_copy_bits(a, 0, after, a->len);
		assert_memory_equal(before, after, a->len);
		kfree_skb(era, a);
		kfree_skb(era, b);
	}
	put_page(p0);
	put_page(p1);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Any cut and any shift back of any part of the rest: the bytes in their order, the sums equal. */
static void any_split_any_shift(void **state)
{
	struct page *p[4];
	static u8 before[4 * 2048], after[4 * 2048];

	(void)state;
	for (int i = 0; i < 4; i++)
		p[i] = block(0);
	for (u32 cut = 0; cut <= 4 * 2048; cut += 256) {
		for (u32 n = 0; n <= 4 * 2048 - cut; n += 256) {
			struct sk_buff *a = empty(ERA_6_12), *b = empty(ERA_6_12);
			unsigned int truesize, refs = 0;

			/* 0 and 1 continue each other, 2 and 3 do not. */
			frag(a, p[0], 0, 2048);
			frag(a, p[0], 2048, 2048);
			frag(a, p[2], 0, 2048);
			frag(a, p[3], 1024, 2048);
			skb_copy_bits(a, 0, before, a->len);
			skb_split(a, b, cut);
			a->truesize -= b->len;
			b->truesize += b->len;
			truesize = a->truesize + b->truesize;
			assert_int_equal(skb_shift(ERA_6_12, a, b, n), n);
			good(a);
			good(b);
			assert_int_equal(a->len, cut + n);
			assert_int_equal(a->truesize + b->truesize, truesize);
			skb_copy_bits(a, 0, after, a->len);
			skb_copy_bits(b, 0, after + a->len, b->len);
			assert_memory_equal(before, after, sizeof(before));
			for (int i = 0; i < 4; i++)
				refs += page_count(p[i]) - 1;
			assert_int_equal(refs, skb_shinfo(a)->nr_frags + skb_shinfo(b)->nr_frags);
			kfree_skb(ERA_6_12, a);
			kfree_skb(ERA_6_12, b);
		}
	}
	for (int i = 0; i < 4; i++)
		put_page(p[i]);
	assert_int_equal(model_pages_in_use(), 0);
}

/* 1448 bytes that continue the target's last frag: no RMW. The same ones that do not: one get. */
static void partial(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);

	(void)state;
	for_each_era (era) {
		for (int gap = 0; gap < 2; gap++) {
			struct sk_buff *a = empty(era), *b = empty(era);

			frag(a, p, 0, 1448);
			frag(b, p, 1448 + gap, 8000);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(skb_shift(era, a, b, 1448), 1448);
#ifdef SKB_TRACED
			assert_int_equal(counts_rmw(), gap);
			assert_int_equal(counted.event[SKB_EV_PAGE_GET], gap);
#endif
			is_frag(b, 0, p, 1448 + gap + 1448, 8000 - 1448);
			if (gap)
				is_frag(a, 1, p, 1449, 1448);
			else
				is_frag(a, 0, p, 0, 2896);
			assert_int_equal(page_count(p), 3 + gap);
			good(a);
			good(b);
			kfree_skb(era, a);
			kfree_skb(era, b);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Both cloned: the clones keep heads, bytes and frags; each original pays for a private head. */
static void cloned(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	static u8 before[8192], after[8192];

	(void)state;
	for_each_era (era) {
		for (u32 n = 1000; n <= 4000; n += 3000) {
			struct sk_buff *a = empty(era), *b = empty(era), *ca, *cb;
			unsigned int ta = a->truesize, tb = b->truesize;
			unsigned int ea = skb_end_offset(a), eb = skb_end_offset(b);

			frag(a, p, 0, 4000);
			frag(b, p, 4000, 4000);
			ca = skb_clone(era, a);
			cb = skb_clone(era, b);
			skb_copy_bits(cb, 0, before, 4000);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(skb_shift(era, a, b, n), n);
#ifdef SKB_TRACED
			/* A get and dataref for each, and a put where the first frag went. */
			assert_int_equal(counts_rmw(), 4 + (n == 4000));
			assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 2);
#endif
			assert_false(skb_cloned(a) || skb_cloned(b) || skb_cloned(ca) ||
				     skb_cloned(cb));
			is_frag(ca, 0, p, 0, 4000);
			is_frag(cb, 0, p, 4000, 4000);
			skb_copy_bits(cb, 0, after, 4000);
			assert_memory_equal(before, after, 4000);
			is_frag(a, 0, p, 0, 4000 + n);
			assert_int_equal(a->truesize, ta + 4000 + n);
			assert_int_equal(b->truesize, tb + 4000 - n);
			if (era >= ERA_6_1) {
				assert_int_equal(skb_end_offset(a), ea);
				assert_int_equal(skb_end_offset(b), eb);
			}
			good(a);
			good(b);
			kfree_skb(era, ca);
			kfree_skb(era, cb);
			assert_int_equal(page_count(p), 2 + skb_shinfo(b)->nr_frags);
			kfree_skb(era, a);
			kfree_skb(era, b);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Linear bytes, 0 bytes, and too many frags: 0, and not a byte moves. */
static void refused(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = empty(era), *b = empty(era), *c, *clone;
		int refs;

		for (u32 i = 0; i < MAX_SKB_FRAGS - 1; i++)
			frag(a, p, 2 * i, 1);
		frag(b, p, 200, 10);
		frag(b, p, 220, 10);
		frag(b, p, 240, 10);
		refs = page_count(p);
		assert_int_equal(skb_shift(era, a, b, 0), 0);
		/* All of it does not fit: found out before the clone costs anything. */
		clone = skb_clone(era, b);
		assert_int_equal(skb_shift(era, a, b, 30), 0);
		assert_true(skb_cloned(b));
		kfree_skb(era, clone);
		/* A part that does not fit either: two frags for one place. */
		assert_int_equal(skb_shift(era, a, b, 15), 0);
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS - 1);
		assert_int_equal(skb_shinfo(b)->nr_frags, 3);
		assert_int_equal(b->len, 30);
		is_frag(b, 0, p, 200, 10);
		assert_int_equal(page_count(p), refs);
		good(a);
		good(b);
		/* One that does fit, to the last place (index 16 with 17 frags). */
		assert_int_equal(skb_shift(era, a, b, 7), 7);
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(skb_shift(era, a, b, 4), 0); /* no place left */
		assert_int_equal(b->len, 23);
		good(a);
		good(b);
		c = empty(era);
		skb_put(c, 5);
		frag(c, p, 300, 10);
		assert_int_equal(skb_shift(era, b, c, 5), 0);
		assert_int_equal(c->len, 15);
		kfree_skb(era, a);
		kfree_skb(era, b);
		kfree_skb(era, c);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* No place left, and none needed: all of it continues the last frag. */
static void merges_into_a_full_one(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = empty(era), *b = empty(era);

		for (u32 i = 0; i < MAX_SKB_FRAGS; i++)
			frag(a, p, 2 * i, 1);
		frag(b, p, 2 * MAX_SKB_FRAGS - 1, 10);
		assert_int_equal(skb_shift(era, a, b, 10), 10);
		is_frag(a, MAX_SKB_FRAGS - 1, p, 2 * MAX_SKB_FRAGS - 2, 11);
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS);
		assert_int_equal(skb_shinfo(b)->nr_frags, 0);
		good(a);
		good(b);
		kfree_skb(era, a);
		kfree_skb(era, b);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* A target gets "others may write these pages" with the bytes, and not with none. */
static void shared_frag_flag(void **state)
{
	struct page *p = block(0);
	static const struct {
		int shift;
		bool adjacent, want;
	} rows[] = { { 0, false, false }, { 5, false, true },  { 20, false, true },
		     { 5, true, true },	  { 10, true, true },  { 15, true, true },
		     { 20, true, true },  { 10, false, true }, { 0, true, false } };

	(void)state;
	for_each_era (era) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct sk_buff *a = empty(era), *b = empty(era);

			frag(a, p, 0, 100);
			frag(b, p, rows[i].adjacent ? 100 : 200, 10);
			frag(b, p, 400, 10);
			skb_shinfo(b)->flags |= SKBFL_SHARED_FRAG;
			assert_int_equal(skb_shift(era, a, b, rows[i].shift), rows[i].shift);
			assert_int_equal(!!(skb_shinfo(a)->flags & SKBFL_SHARED_FRAG),
					 rows[i].want);
			/* And a target that has it keeps it. */
			skb_shinfo(b)->flags = 0;
			skb_shinfo(a)->flags |= SKBFL_SHARED_FRAG;
			assert_int_equal(skb_shift(era, a, b, b->len), 20 - rows[i].shift);
			assert_true(skb_shinfo(a)->flags & SKBFL_SHARED_FRAG);
			kfree_skb(era, a);
			kfree_skb(era, b);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/*
 * A part of a frag goes to an empty target, then the rest, which continues it: one get, one put,
 * and as many references as before (commit a580ea994fd3 mends what took one kind and dropped
 * another).
 */
static void part_then_rest(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = empty(era), *b = empty(era);

		frag(b, p, 0, 4096);
		assert_int_equal(skb_shift(era, a, b, 1000), 1000);
		assert_int_equal(page_count(p), 3);
		is_frag(a, 0, p, 0, 1000);
		assert_int_equal(skb_shift(era, a, b, 3096), 3096);
		assert_int_equal(page_count(p), 2);
		is_frag(a, 0, p, 0, 4096);
		assert_int_equal(b->len, 0);
		kfree_skb(era, a);
		kfree_skb(era, b);
		assert_int_equal(page_count(p), 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* A user's pages stay where they are: neither from nor to an sk_buff with a ubuf_info. */
static void ignore_notify(struct ubuf_info_msgzc *uarg)
{
	(void)uarg;
}

static void zerocopy(void **state)
{
	struct ubuf_info_msgzc u;
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int to = 0; to < 2; to++) {
			struct sk_buff *a = empty(era), *b = empty(era);

			msg_zerocopy_init(&u, SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN,
					  ignore_notify);
			frag(a, p, 0, 100);
			frag(b, p, 100, 100);
			skb_zcopy_set(to ? a : b, &u.ubuf);
			assert_int_equal(skb_shift(era, a, b, 50), 0);
			assert_int_equal(skb_shift(era, a, b, 100), 0);
			assert_true(a->len == 100 && b->len == 100);
			assert_int_equal(u.ubuf.refcnt.refs.counter, 2);
			kfree_skb(era, a);
			kfree_skb(era, b);
			assert_int_equal(u.ubuf.refcnt.refs.counter, 1);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

static void with_frag_list(bool in_target)
{
	struct sk_buff *a = empty(ERA_6_12), *b = empty(ERA_6_12), *m = empty(ERA_6_12);
	struct sk_buff *l = in_target ? a : b;

	skb_put(m, 10);
	skb_shinfo(l)->frag_list = m;
	l->len = l->data_len = 10;
	frag(b, alloc_pages(0), 0, 100);
	skb_shift(ERA_6_12, a, b, 50);
}

static void source_with_frag_list(void)
{
	with_frag_list(false);
}

static void target_with_frag_list(void)
{
	with_frag_list(true);
}

static void more_than_there_is(void)
{
	struct sk_buff *b = empty(ERA_6_12);

	frag(b, alloc_pages(0), 0, 100);
	skb_shift(ERA_6_12, empty(ERA_6_12), b, 101);
}

static void preconditions(void **state)
{
	(void)state;
	assert_true(is_bug(source_with_frag_list));
	assert_true(is_bug(target_with_frag_list));
	assert_true(is_bug(more_than_there_is));
}

#ifdef SKB_TRACED
/* No memory for the first or the second private head: 0, lengths and references as before. */
static void no_memory(void **state)
{
	struct page *p = block(0);

	(void)state;
	counts_start();
	for_each_era (era) {
		for (int k = 1; k <= 2; k++) {
			for (int n = 100; n <= 1000; n += 900) {
				struct sk_buff *a = empty(era), *b = empty(era), *ca, *cb;
				unsigned int ta, tb;

				frag(a, p, 0, 1000);
				frag(b, p, 1000, 1000);
				ca = skb_clone(era, a);
				cb = skb_clone(era, b);
				ta = a->truesize;
				tb = b->truesize;
				fail_in = k;
				model_fail = fail_nth;
				assert_int_equal(skb_shift(era, a, b, n), 0);
				model_fail = NULL;
				assert_int_equal(skb_cloned(b), k == 1); /* the source first */
				assert_true(skb_cloned(a));
				is_frag(a, 0, p, 0, 1000);
				is_frag(b, 0, p, 1000, 1000);
				assert_true(a->len == 1000 && b->len == 1000);
				assert_true(a->truesize == ta && b->truesize == tb);
				good(a);
				good(b);
				kfree_skb(era, ca);
				kfree_skb(era, cb);
				assert_int_equal(page_count(p), 3);
				kfree_skb(era, a);
				kfree_skb(era, b);
			}
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
	assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], counted.event[SKB_EV_OBJ_FREE]);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_and_shift_back),
		cmocka_unit_test(any_split_any_shift),
		cmocka_unit_test(partial),
		cmocka_unit_test(cloned),
		cmocka_unit_test(refused),
		cmocka_unit_test(shared_frag_flag),
		cmocka_unit_test(part_then_rest),
		cmocka_unit_test(merges_into_a_full_one),
		cmocka_unit_test(zerocopy),
		cmocka_unit_test(preconditions),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
