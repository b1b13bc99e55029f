/* SPDX-License-Identifier: MIT */
/*
 * Zerocopy: one reference on a ubuf_info for each shared info, one notification in the end, frags
 * that are copied where they must not be shared, and managed frags, which hold no references. Each
 * runs in every era that knows it.
 */
#include "tests/skb/skb_test.h"

#define SHARED_OK (SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN)

static int notified;
static bool notified_zerocopy;

static void notify(struct ubuf_info_msgzc *uarg)
{
	notified++;
	notified_zerocopy = uarg->zerocopy;
}

static int refs(const struct ubuf_info_msgzc *uarg)
{
	return uarg->ubuf.refcnt.refs.counter;
}

/* N frags of LEN bytes of PAGE, through UARG, whose sender lets go at once. */
static struct sk_buff *zc_skb(enum skb_era era, struct ubuf_info_msgzc *uarg, u8 flags,
			      struct page *page, int n, u32 len)
{
	struct sk_buff *skb = empty(era);

	notified = 0;
	msg_zerocopy_init(uarg, flags, notify);
	for (int i = 0; i < n; i++)
		frag(skb, page, i * len, len);
	skb_zcopy_set(skb, &uarg->ubuf);
	assert_int_equal(refs(uarg), 2);
	skb_zcopy_set(skb, &uarg->ubuf); /* it has it already */
	net_zcopy_put(&uarg->ubuf);
	assert_int_equal(refs(uarg), 1);
	return skb;
}

/* One reference a shared info, whoever shares it; the user is told once, after the last. */
static void one_a_shared_info(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	struct ubuf_info_msgzc u;

	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb = zc_skb(era, &u, SHARED_OK, p, 3, 1000), *c, *n, *rest;

		c = skb_clone(era, skb);
		assert_int_equal(refs(&u), 1);
		assert_int_equal(skb_shinfo(c)->nr_frags, 3);
		is_frag(c, 0, p, 0, 1000); /* not copied */
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
#ifdef SKB_TRACED
		assert_int_equal(counted.rmw[SKB_C_UARG], 1);
		assert_int_equal(counts_rmw(), 3 + 1 + 1);
#endif
		assert_int_equal(refs(&u), 2);
		n = pskb_copy(era, c);
		assert_ptr_equal(skb_zcopy(n), &u.ubuf);
		assert_int_equal(refs(&u), 3);
		rest = empty(era);
		skb_split(skb, rest, 1500);
		assert_ptr_equal(skb_zcopy(rest), &u.ubuf);
		assert_int_equal(refs(&u), 4);
		assert_int_equal(page_count(p), 1 + 3 + 3 + 4);
		assert_int_equal(pskb_expand_head(era, rest, 0, 0), 0); /* private: carried over */
		assert_int_equal(refs(&u), 4);
		kfree_skb(era, c);
		assert_int_equal(refs(&u), 3);
		kfree_skb(era, skb);
		kfree_skb(era, n);
		assert_int_equal(notified, 0);
		kfree_skb(era, rest);
		assert_int_equal(notified, 1);
		assert_true(notified_zerocopy);
		assert_int_equal(page_count(p), 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Pages that must not be shared are copied before a clone or copy is made; 3.4 always does. */
static void orphaned_for_a_clone(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	struct ubuf_info_msgzc u;
	static u8 before[5000], after[5000];

	(void)state;
	for_each_era (era) {
		for (int flags = 0; flags < 2; flags++) {
			for (int how = 0; how < 3; how++) {
				struct sk_buff *skb, *n;
				bool copied = !flags || era < ERA_6_1 || how == 2;

				skb = zc_skb(era, &u, flags ? SHARED_OK : SKBFL_ZEROCOPY_FRAG, p, 5,
					     1000);
				skb_copy_bits(skb, 0, before, 5000);
				n = NULL;
				if (how == 0)
					n = skb_clone(era, skb);
				else if (how == 1)
					n = pskb_copy(era, skb);
				else
					assert_int_equal(skb_orphan_frags_rx(era, skb), 0);
				good(skb);
				if (copied) {
					assert_int_equal(notified, 1);
					assert_false(notified_zerocopy);
					assert_null(skb_zcopy(skb));
					assert_false(skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG);
					assert_int_equal(skb_shinfo(skb)->nr_frags, 2);
					assert_int_equal(page_count(p), 1);
				} else {
					assert_int_equal(notified, 0);
					assert_int_equal(skb_shinfo(skb)->nr_frags, 5);
				}
				skb_copy_bits(skb, 0, after, 5000);
				assert_memory_equal(before, after, 5000);
				if (n) {
					good(n);
					skb_copy_bits(n, 0, after, 5000);
					assert_memory_equal(before, after, 5000);
					kfree_skb(era, n);
				}
				kfree_skb(era, skb);
				assert_int_equal(notified, 1);
				assert_int_equal(page_count(p), 1);
			}
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/*
 * All frags of 100 bytes become one, and whoever comes next reads the new number (CVE-2023-53354):
 * cut at 500, joined again.
 */
static void counts_are_read_anew(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	struct ubuf_info_msgzc u;
	static u8 before[100 * MAX_SKB_FRAGS], after[100 * MAX_SKB_FRAGS];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb, *c, *rest = empty(era);
		int blocks = DIV_ROUND_UP(sizeof(before), PAGE_SIZE);
		u32 left;

		skb = zc_skb(era, &u, SKBFL_ZEROCOPY_FRAG, p, MAX_SKB_FRAGS, 100);
		skb_copy_bits(skb, 0, before, sizeof(before));
		c = skb_clone(era, skb);
		assert_int_equal(skb_shinfo(skb)->nr_frags, blocks);
		kfree_skb(era, c);
		skb_split(skb, rest, 500);
		assert_int_equal(skb_shinfo(skb)->nr_frags, 1);
		assert_int_equal(skb_shinfo(rest)->nr_frags, blocks);
		good(skb);
		good(rest);
		skb_copy_bits(skb, 0, after, 500);
		skb_copy_bits(rest, 0, after + 500, rest->len);
		assert_memory_equal(before, after, sizeof(before));
		left = rest->len;
		assert_int_equal(skb_shift(era, skb, rest, left), left);
		assert_int_equal(skb_shinfo(skb)->nr_frags, blocks);
		good(skb);
		kfree_skb(era, skb);
		kfree_skb(era, rest);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* More bytes than MAX_SKB_FRAGS pages hold: larger blocks, never more frags. */
static void copies_fit(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER + 3);
	struct ubuf_info_msgzc u;
	u32 size = PAGE_SIZE << SKB_FRAG_PAGE_ORDER;

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = zc_skb(era, &u, SKBFL_ZEROCOPY_FRAG, p, 7, size);
		u8 *before = malloc(skb->len), *after = malloc(skb->len);

		skb_copy_bits(skb, 0, before, skb->len);
		assert_int_equal(skb_copy_ubufs(era, skb), 0);
		good(skb);
		assert_int_equal(skb_shinfo(skb)->nr_frags,
				 DIV_ROUND_UP(7u * 8, MAX_SKB_FRAGS < 28 ? 4 : 2));
		skb_copy_bits(skb, 0, after, skb->len);
		assert_memory_equal(before, after, skb->len);
		free(before);
		free(after);
		assert_int_equal(skb_copy_ubufs(era, skb_get(skb)), -EINVAL); /* shared */
		kfree_skb(era, skb);
		kfree_skb(era, skb);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* All bytes copied into the head: the user's pages are not needed any more, and he is told. */
static void pulled(void **state)
{
	struct page *p = block(0);
	struct ubuf_info_msgzc u;

	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb = zc_skb(era, &u, SHARED_OK, p, 2, 100);

		assert_non_null(__pskb_pull_tail(era, skb, 150));
		assert_int_equal(notified, 0);
		assert_int_equal(skb_linearize(era, skb), 0);
		assert_int_equal(notified, 1);
		assert_false(notified_zerocopy);
		assert_null(skb_zcopy(skb));
		assert_int_equal(page_count(p), 1);
		kfree_skb(era, skb);
		assert_int_equal(notified, 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Three frags of pages whose only references are their owner's. */
static struct sk_buff *managed(enum skb_era era, struct ubuf_info_msgzc *u, struct page **p)
{
	struct sk_buff *skb = empty(era);

	notified = 0;
	msg_zerocopy_init(u, SHARED_OK, notify);
	skb_zcopy_set(skb, &u->ubuf);
	skb_shinfo(skb)->flags |= SKBFL_MANAGED_FRAG_REFS;
	for (int i = 0; i < 3; i++)
		skb_add_rx_frag(skb, i, p[i], 0, 1000, 1000);
	return skb;
}

static void are_refs(struct page **p, int r0, int r1, int r2)
{
	assert_int_equal(page_count(p[0]), r0);
	assert_int_equal(page_count(p[1]), r1);
	assert_int_equal(page_count(p[2]), r2);
}

/* Whatever shares frags takes references first; whatever lets go puts only those. */
static void managed_frags(void **state)
{
	struct page *p[3] = { block(0), block(0), block(0) };
	struct ubuf_info_msgzc u;

	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb = managed(era, &u, p), *rest, *c;

		/* Nothing but a life: not one reference. */
		assert_int_equal(pskb_trim(era, skb, 1500), 0);
		are_refs(p, 1, 1, 1);
		kfree_skb(era, skb);
		are_refs(p, 1, 1, 1);
		assert_int_equal(refs(&u), 1);

		/* Cut in the middle of frag 1: one each, and one more there. */
		skb = managed(era, &u, p);
		rest = empty(era);
		skb_split(skb, rest, 1500);
		are_refs(p, 2, 3, 2);
		assert_false(skb_zcopy_managed(skb) || skb_zcopy_managed(rest));
		kfree_skb(era, rest);
		are_refs(p, 2, 2, 1);
		kfree_skb(era, skb);
		are_refs(p, 1, 1, 1);

		/* A clone takes none; the expansion takes those of both owners. */
		skb = managed(era, &u, p);
		c = skb_clone(era, skb);
		are_refs(p, 1, 1, 1);
		assert_true(skb_zcopy_managed(c));
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
		are_refs(p, 3, 3, 3);
		assert_false(skb_zcopy_managed(c));
		kfree_skb(era, c);
		are_refs(p, 2, 2, 2);
		kfree_skb(era, skb);
		are_refs(p, 1, 1, 1);

		/* A private copy holds what it names; the original still does not. */
		skb = managed(era, &u, p);
		c = pskb_copy(era, skb);
		are_refs(p, 2, 2, 2);
		assert_true(skb_zcopy_managed(skb) && !skb_zcopy_managed(c));
		kfree_skb(era, skb);
		are_refs(p, 2, 2, 2);
		kfree_skb(era, c);
		are_refs(p, 1, 1, 1);

		/* Copied: no put of what was never got. */
		skb = managed(era, &u, p);
		assert_int_equal(skb_copy_ubufs(era, skb), 0);
		are_refs(p, 1, 1, 1);
		kfree_skb(era, skb);
		are_refs(p, 1, 1, 1);
		assert_int_equal(refs(&u), 1);
	}
	for (int i = 0; i < 3; i++)
		put_page(p[i]);
	assert_int_equal(model_pages_in_use(), 0);
}

static void attach_to_cloned(void)
{
	static struct ubuf_info_msgzc u;
	struct sk_buff *skb = empty(ERA_6_12);

	skb_clone(ERA_6_12, skb);
	msg_zerocopy_init(&u, SKBFL_ZEROCOPY_FRAG, notify);
	skb_zcopy_set(skb, &u.ubuf);
}

static void split_into_another(void)
{
	static struct ubuf_info_msgzc u, v;
	struct page *p = alloc_pages(0);
	struct sk_buff *skb = zc_skb(ERA_6_12, &u, SHARED_OK, p, 1, 100);

	skb_split(skb, zc_skb(ERA_6_12, &v, SHARED_OK, p, 0, 0), 50);
}

/* Bytes added behind a user's are not the user's: never in the same frag. */
static void no_coalescing(void **state)
{
	struct page *p = block(0);
	struct ubuf_info_msgzc u;
	struct sk_buff *skb = zc_skb(ERA_6_12, &u, SHARED_OK, p, 1, 100);

	(void)state;
	assert_false(skb_can_coalesce(skb, 1, p, 100));
	kfree_skb(ERA_6_12, skb);
	skb = empty(ERA_6_12);
	frag(skb, p, 0, 100);
	assert_true(skb_can_coalesce(skb, 1, p, 100));
	kfree_skb(ERA_6_12, skb);
	put_page(p);
	assert_true(is_bug(attach_to_cloned));
	assert_true(is_bug(split_into_another));
}

#ifdef SKB_TRACED
/* No head for managed frags: they have got their references all the same. */
static void managed_without_memory(void **state)
{
	struct page *p[3] = { block(0), block(0), block(0) };
	struct ubuf_info_msgzc u;

	(void)state;
	for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++) {
		struct sk_buff *skb = managed(era, &u, p);

		counts_start();
		fail_in = 1;
		model_fail = fail_nth;
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), -ENOMEM);
		model_fail = NULL;
		assert_int_equal(counts_rmw(), 3);
		assert_false(skb_zcopy_managed(skb));
		are_refs(p, 2, 2, 2);
		good(skb);
		kfree_skb(era, skb);
		are_refs(p, 1, 1, 1);
		assert_int_equal(refs(&u), 1);
	}
	for (int i = 0; i < 3; i++)
		put_page(p[i]);
	assert_int_equal(model_pages_in_use(), 0);
}

/* The first or the second page is not to be had: all as before, nobody told, no page kept. */
static void copies_without_memory(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	struct ubuf_info_msgzc u;

	(void)state;
	counts_start();
	for_each_era (era) {
		for (int k = 1; k <= 2; k++) {
			struct sk_buff *skb = zc_skb(era, &u, SKBFL_ZEROCOPY_FRAG, p, 5, 1000);
			size_t pages = model_pages_in_use();

			fail_in = k;
			model_fail = fail_nth;
			assert_int_equal(skb_copy_ubufs(era, skb), -ENOMEM);
			model_fail = NULL;
			assert_int_equal(model_pages_in_use(), pages);
			assert_int_equal(notified, 0);
			assert_int_equal(skb_shinfo(skb)->nr_frags, 5);
			is_frag(skb, 4, p, 4000, 1000);
			assert_int_equal(page_count(p), 6);
			good(skb);
			kfree_skb(era, skb);
			assert_int_equal(notified, 1);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* What copying costs: a put for each frag, an RMW for the ubuf_info, the bytes and the pages. */
static void costs(void **state)
{
	struct page *p = block(SKB_FRAG_PAGE_ORDER);
	struct ubuf_info_msgzc u;

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = zc_skb(era, &u, SKBFL_ZEROCOPY_FRAG, p, 5, 1000);

		counts_start();
		assert_int_equal(skb_copy_ubufs(era, skb), 0);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 5);
		assert_int_equal(counted.event[SKB_EV_PAGE_ALLOC], 2);
		assert_int_equal(counted.rmw[SKB_C_UARG], 1);
		assert_int_equal(counted.written[SKB_C_PAYLOAD], 5000);
		kfree_skb(era, skb);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_a_shared_info),
		cmocka_unit_test(orphaned_for_a_clone),
		cmocka_unit_test(counts_are_read_anew),
		cmocka_unit_test(copies_fit),
		cmocka_unit_test(pulled),
		cmocka_unit_test(managed_frags),
		cmocka_unit_test(no_coalescing),
#ifdef SKB_TRACED
		cmocka_unit_test(managed_without_memory),
		cmocka_unit_test(copies_without_memory),
		cmocka_unit_test(costs),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
