/* SPDX-License-Identifier: MIT */
/*
 * pskb_trim(), __pskb_pull_tail(), skb_linearize(), skb_condense() at every length, on every shape:
 * with and without a frag_list, a clone, and others that hold a member of the list. Counts, and
 * every allocation failing in turn. Each runs in every era.
 */
#include "tests/skb/skb_test.h"

/* Every length of every shape: the first bytes stay, clone and holders see nothing of it. */
static void trim_everywhere(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			for (u32 len = 0; len <= 850; len += len % 50 ? 1 : 49) {
				shape_make(&s, era, kind);
				assert_int_equal(pskb_trim(era, s.skb, len), 0);
				shape_holds(&s, 0, min(len, s.len));
				shape_free(&s, len & 2);
			}
		}
	}
}

/* Every number of bytes made linear, one call or two: the payload stays the same bytes. */
static void pull_tail_everywhere(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			for (u32 delta = 1; delta <= (kind & SHAPE_LIST ? 750u : 550u);
			     delta += 7) {
				shape_make(&s, era, kind);
				assert_non_null(__pskb_pull_tail(era, s.skb, delta));
				assert_int_equal(skb_headlen(s.skb), 100 + delta);
				shape_holds(&s, 0, s.len);
				assert_int_equal(skb_linearize(era, s.skb), 0);
				assert_int_equal(s.skb->data_len, 0);
				assert_int_equal(skb_shinfo(s.skb)->nr_frags, 0);
				assert_null(skb_shinfo(s.skb)->frag_list);
				shape_holds(&s, 0, s.len);
				shape_free(&s, delta & 1);
			}
		}
	}
}

static void pull_everywhere(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			for (u32 n = 0; n <= 851; n += 23) {
				bool fits;

				shape_make(&s, era, kind);
				fits = n <= s.len;
				assert_int_equal(pskb_may_pull(era, s.skb, n), fits);
				shape_holds(&s, 0, s.len);
				assert_int_equal(pskb_pull(era, s.skb, n) != NULL, fits);
				shape_holds(&s, fits ? n : 0, fits ? s.len - n : s.len);
				shape_free(&s, n & 1);
			}
		}
	}
}

/* The bytes are linear if they fit, and truesize is the head's; else all is as before. */
static void condense(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int cloned = 0; cloned < 2; cloned++) {
			for (int extra = -1; extra < 2; extra++) {
				struct sk_buff *skb = alloc_skb(era, 512, NUMA_NO_NODE), *c = NULL;
				u32 n = skb_tailroom(skb) - 10 + extra;
				bool does = era >= ERA_6_1 && !cloned && extra <= 0;
				unsigned int truesize;

				fill_linear(skb, 10);
				frag(skb, p, 0, 100);
				frag(skb, p, 200, n - 100);
				truesize = skb->truesize;
				if (cloned)
					c = skb_clone(era, skb);
				skb_condense(era, skb);
				good(skb);
				assert_int_equal(skb->data_len, does ? 0 : n);
				assert_int_equal(skb->truesize,
						 does ? SKB_TRUESIZE(skb_end_offset(skb))
						      : truesize);
				assert_int_equal(page_count(p), does ? 1 : 3);
				kfree_skb(era, c);
				kfree_skb(era, skb);
			}
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Linear bytes: only the end moves, even if a clone shares them. */
static void trim_linear(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = alloc_skb(era, 100, NUMA_NO_NODE), *c;
		unsigned char *head = skb->head;

		fill_linear(skb, 100);
		c = skb_clone(era, skb);
		assert_int_equal(pskb_trim(era, skb, 200), 0);
		assert_int_equal(skb->len, 100);
		assert_int_equal(pskb_trim(era, skb, 40), 0);
		assert_int_equal(skb->len, 40);
		assert_ptr_equal(skb->head, head);
		assert_int_equal(c->len, 100);
		good(skb);
		kfree_skb(era, skb);
		kfree_skb(era, c);
	}
}

/* An owned sk_buff keeps its frags and what it was charged; one that nobody owns is condensed. */
static void owned_is_not_condensed(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int owned = 0; owned < 2; owned++) {
			struct sk_buff *skb = alloc_skb(era, 512, NUMA_NO_NODE);
			unsigned int truesize;

			frag(skb, p, 0, 3000);
			if (owned)
				skb->sk = (struct sock *)p; /* only compared with NULL */
			truesize = skb->truesize;
			assert_int_equal(pskb_trim(era, skb, 80), 0);
			if (owned || era < ERA_6_1) {
				assert_int_equal(skb->truesize, truesize);
				assert_int_equal(skb->data_len, 80);
			} else {
				assert_int_equal(skb->truesize, SKB_TRUESIZE(skb_end_offset(skb)));
				assert_int_equal(skb->data_len, 0);
			}
			good(skb);
			skb->sk = NULL;
			kfree_skb(era, skb);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Never a frag beyond the last: all places in use, the cut at the very end (index 16 of 17). */
static void all_frags_in_use(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = empty(era), *b = empty(era), *rest = empty(era);

		for (u32 i = 0; i < MAX_SKB_FRAGS; i++)
			frag(a, p, 20 * i, 10);
		frag(b, p, 1000, 124);
		assert_int_equal(pskb_trim(era, a, a->len), 0);
		skb_split(a, rest, a->len);
		assert_int_equal(skb_shinfo(a)->nr_frags, MAX_SKB_FRAGS);
		is_frag(a, MAX_SKB_FRAGS - 1, p, 20 * (MAX_SKB_FRAGS - 1), 10);
		assert_int_equal(rest->len, 0);
		assert_int_equal(skb_shinfo(rest)->nr_frags, 0);
		/* The five bytes to drop are the next one's first. */
		assert_non_null(__pskb_pull_tail(era, b, 5));
		__skb_pull(b, 5);
		is_frag(b, 0, p, 1005, 119);
		assert_int_equal(page_count(p), 1 + MAX_SKB_FRAGS + 1);
		good(a);
		good(b);
		kfree_skb(era, a);
		kfree_skb(era, b);
		kfree_skb(era, rest);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

static struct sk_buff *two_users(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_12, 512, NUMA_NO_NODE);

	skb_reserve(skb, 64);
	frag(skb, alloc_pages(0), 0, 100);
	return skb_get(skb);
}

static void pull_shared(void)
{
	skb_linearize(ERA_6_12, two_users());
}

static void trim_shared(void)
{
	pskb_trim(ERA_6_12, two_users(), 50);
}

static void trim_shared_three(void)
{
	pskb_trim(ERA_3_4, skb_get(two_users()), 50);
}

static void pull_too_much(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_12, 512, NUMA_NO_NODE);

	frag(skb, alloc_pages(0), 0, 100);
	__pskb_pull_tail(ERA_6_12, skb, 101);
}

static void skb_trim_with_frags(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_12, 512, NUMA_NO_NODE);

	frag(skb, alloc_pages(0), 0, 100);
	skb_trim(skb, 50);
}

static void preconditions(void **state)
{
	(void)state;
	assert_true(is_bug(pull_shared));
	assert_true(is_bug(trim_shared));
	assert_true(is_bug(trim_shared_three));
	assert_true(is_bug(pull_too_much));
	assert_true(is_bug(skb_trim_with_frags));
}

#ifdef SKB_TRACED
/* What each costs: a put for each frag that goes, the bytes moved, an expansion if cloned. */
static void counts(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int cloned = 0; cloned < 2; cloned++) {
			for (int n = 0; n <= 16; n++) {
				struct sk_buff *skb = empty(era), *c = NULL;

				skb->sk = (struct sock *)p; /* not condensed */
				for (int i = 0; i < 16; i++)
					frag(skb, p, 100 * i, 100);
				if (cloned)
					c = skb_clone(era, skb);
				counts_start();
				assert_int_equal(pskb_trim(era, skb, 1600 - 100 * n), 0);
				assert_int_equal(counted.event[SKB_EV_PAGE_PUT], n);
				assert_int_equal(counted.event[SKB_EV_PAGE_GET],
						 n && cloned ? 16 : 0);
				assert_int_equal(counts_rmw(), n + (n && cloned ? 17 : 0));
				kfree_skb(era, c);
				skb->sk = NULL;
				kfree_skb(era, skb);

				skb = alloc_skb(era, 1600, NUMA_NO_NODE);
				for (int i = 0; i < 16; i++)
					frag(skb, p, 100 * i, 100);
				c = cloned ? skb_clone(era, skb) : NULL;
				counts_start();
				if (n)
					assert_non_null(__pskb_pull_tail(era, skb, 100 * n - 1));
				assert_int_equal(counted.event[SKB_EV_PAGE_PUT], n ? n - 1 : 0);
				assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], n && cloned);
				assert_int_equal(counts_rmw(),
						 (n ? n - 1 : 0) + (n && cloned ? 17 : 0));
				assert_int_equal(
					counted.written[SKB_C_HEAD],
					n ? 100 * n - 1 +
							(cloned ? offsetof(struct skb_shared_info,
									   frags) +
									  16 * sizeof(skb_frag_t)
								: 0)
					  : 0);
				kfree_skb(era, c);
				kfree_skb(era, skb);
			}
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trim_everywhere),  cmocka_unit_test(pull_tail_everywhere),
		cmocka_unit_test(pull_everywhere),  cmocka_unit_test(condense),
		cmocka_unit_test(trim_linear),	    cmocka_unit_test(owned_is_not_condensed),
		cmocka_unit_test(all_frags_in_use), cmocka_unit_test(preconditions),
#ifdef SKB_TRACED
		cmocka_unit_test(counts),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
