/* SPDX-License-Identifier: MIT */
/*
 * GRO: the shapes that drivers' segments take, the limits, and that nothing is lost or counted
 * twice; and the caches of shells and heads below it.
 */
#include "skb/skb_gro.h"
#include "skb/skb_napi.h"
#include "tests/skb/skb_test.h"

#define HEADERS 52 /* IPv4 and TCP with timestamps, in front of every segment */
#define MSS	1448

static u8 stream; /* the next byte of payload */

static void fill(u8 *to, u32 n)
{
	for (u32 i = 0; i < n; i++)
		to[i] = stream++;
}

enum kind { HEADER_LINEAR, HEADER_SPLIT, HEAD_FRAG, HEAD_OBJECT };

/* One segment of LEN bytes of payload. */
static struct sk_buff *segment(enum skb_era era, enum kind kind, u32 len)
{
	struct page *page = kind == HEAD_OBJECT ? NULL : alloc_pages(0);
	u32 linear = kind == HEADER_SPLIT ? 20 : HEADERS;
	struct sk_buff *skb;
	u8 *p;

	if (kind == HEAD_FRAG) {
		skb = napi_build_skb(era, page_address(page), PAGE_SIZE);
		assert_non_null(skb);
		skb_reserve(skb, NET_SKB_PAD);
		p = skb_put(skb, HEADERS + len);
		memset(p, 0xee, HEADERS);
		fill(p + HEADERS, len);
	} else if (kind == HEAD_OBJECT) {
		skb = napi_alloc_skb(era, HEADERS + len);
		assert_non_null(skb);
		p = skb_put(skb, HEADERS + len);
		memset(p, 0xee, HEADERS);
		fill(p + HEADERS, len);
	} else {
		skb = napi_alloc_skb(era, 128);
		assert_non_null(skb);
		memset(skb_put(skb, linear), 0xee, linear);
		p = page_address(page);
		memset(p, 0xee, HEADERS - linear);
		fill(p + HEADERS - linear, len);
		skb_add_rx_frag(skb, 0, page, 0, HEADERS - linear + len, PAGE_SIZE);
	}
	skb_gro_init(skb, HEADERS);
	good(skb);
	return skb;
}

/* N segments in one sk_buff; fails the test if one does not fit. */
static struct sk_buff *merged(enum skb_era era, enum kind kind, u32 len, int n, unsigned int max)
{
	struct sk_buff *p;

	stream = 0;
	p = segment(era, kind, len);
	while (--n) {
		struct sk_buff *skb = segment(era, kind, len);
		unsigned int truesize = p->truesize, delta = skb->truesize;

		assert_int_equal(skb_gro_receive(p, skb, max), 0);
		if (NAPI_GRO_CB(skb)->free == NAPI_GRO_FREE)
			delta -= SKB_TRUESIZE(skb_end_offset(skb));
		else if (NAPI_GRO_CB(skb)->free == NAPI_GRO_FREE_STOLEN_HEAD)
			delta -= 256;
		assert_int_equal(p->truesize - truesize, delta);
		napi_gro_free(era, skb);
		good(p);
	}
	return p;
}

#if MAX_SKB_FRAGS == 17
/* P holds N segments of LEN bytes behind its headers, in their order. */
static void holds(const struct sk_buff *p, u32 n, u32 len)
{
	static u8 bytes[600000];
	u8 want = 0;

	assert_int_equal(NAPI_GRO_CB(p)->count, n);
	assert_int_equal(p->len, HEADERS + n * len);
	skb_copy_bits(p, HEADERS, bytes, n * len);
	for (u32 i = 0; i < n * len; i++)
		if (bytes[i] != want++)
			fail_msg("byte %u is %u, not %u", i, bytes[i], (u8)(want - 1));
}

/* Frags of P and of each member of its frag_list. */
static void shape(const struct sk_buff *p, int nr, const int *frags)
{
	const struct sk_buff *skb = p;

	for (int i = 0; i < nr; i++) {
		assert_non_null(skb);
		assert_int_equal(skb_shinfo(skb)->nr_frags, frags[i]);
		assert_int_equal(skb->nohdr, i > 0);
		assert_int_equal(dataref(skb), i ? 0x10001 : 1);
		assert_int_equal(skb->cloned, 0);
		skb = i ? skb->next : skb_shinfo(skb)->frag_list;
	}
	assert_null(skb);
}
#endif

static int quiet(void **state)
{
	(void)state;
	napi_cache_drain();
	assert_int_equal(model_pages_in_use(), 0);
	return 0;
}

#if MAX_SKB_FRAGS == 17
/* What freeing P costs: one put for each page, and nothing else. */
static void let_go(enum skb_era era, struct sk_buff *p, unsigned int pages, unsigned int shells,
		   unsigned int heads)
{
#ifdef SKB_TRACED
	counts_start();
	__kfree_skb(era, p);
	assert_int_equal(counted.event[SKB_EV_PAGE_PUT], pages);
	assert_int_equal(counted.event[SKB_EV_PAGE_FREE], pages);
	assert_int_equal(counted.event[SKB_EV_OBJ_FREE], shells + heads);
	assert_int_equal(counted.rmw[SKB_C_PAGE], pages);
	assert_int_equal(counts_rmw() - counted.rmw[SKB_C_SLAB], pages);
#else
	(void)pages, (void)shells, (void)heads;
	__kfree_skb(era, p);
#endif
}

static void headers_in_linear(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEADER_LINEAR, MSS, 45, GRO_LEGACY_MAX_SIZE), *next;

		shape(p, 3, (const int[]){ 17, 17, 11 });
		holds(p, 45, MSS);
		/* The 46th would reach the limit. */
		next = segment(era, HEADER_LINEAR, MSS);
		assert_int_equal(skb_gro_receive(p, next, GRO_LEGACY_MAX_SIZE), -E2BIG);
		holds(p, 45, MSS);
		kfree_skb(era, next);
		let_go(era, p, 45, 3, 3);
	}
}

static void heads_in_frags(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEAD_FRAG, MSS, 45, GRO_LEGACY_MAX_SIZE);

		shape(p, 3, (const int[]){ 17, 17, 8 });
		assert_true(p->head_frag);
		holds(p, 45, MSS);
		let_go(era, p, 45, 3, 0);
	}
}

/* The headers of a split segment lie partly in its first frag. */
static void headers_split(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEADER_SPLIT, MSS, 40, GRO_LEGACY_MAX_SIZE);

		shape(p, 3, (const int[]){ 17, 17, 6 });
		holds(p, 40, MSS);
		let_go(era, p, 40, 3, 3);
	}
}

/* A head that is an object cannot be a frag: each segment is linked. */
static void heads_are_objects(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEAD_OBJECT, 500, 20, GRO_LEGACY_MAX_SIZE);

		shape(p, 20, (const int[20]){ 0 });
		holds(p, 20, 500);
		let_go(era, p, 0, 20, 20);
	}
}

static void whole_pages(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEADER_LINEAR, 4096, 15, GRO_LEGACY_MAX_SIZE);
		struct sk_buff *next = segment(era, HEADER_LINEAR, 4096);

		shape(p, 1, (const int[]){ 15 });
		assert_int_equal(skb_gro_receive(p, next, GRO_LEGACY_MAX_SIZE), -E2BIG);
		kfree_skb(era, next);
		holds(p, 15, 4096);
		let_go(era, p, 15, 1, 1);
	}
}

/* Another limit is only a longer list: 362 segments are 21 times 17 frags and 5. */
static void big_tcp(void **state)
{
	int frags[22];

	(void)state;
	for (int i = 0; i < 22; i++)
		frags[i] = i < 21 ? 17 : 5;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEADER_LINEAR, MSS, 362, GRO_MAX_SIZE), *next;

		shape(p, 22, frags);
		next = segment(era, HEADER_LINEAR, MSS);
		assert_int_equal(skb_gro_receive(p, next, GRO_MAX_SIZE), -E2BIG);
		kfree_skb(era, next);
		holds(p, 362, MSS);
		let_go(era, p, 362, 22, 22);
	}
}
#endif

/* The limit is not to be reached, and counts P's headers. */
static void limit(void **state)
{
	(void)state;
	for_each_era (era) {
		for (int over = -1; over <= 1; over++) {
			struct sk_buff *p, *skb;

			stream = 0;
			p = segment(era, HEADER_LINEAR, 1000);
			skb = segment(era, HEADER_LINEAR, 1000);
			assert_int_equal(skb_gro_receive(p, skb, HEADERS + 2000 + over),
					 over == 1 ? 0 : -E2BIG);
			if (over == 1)
				napi_gro_free(era, skb);
			else
				kfree_skb(era, skb);
			assert_int_equal(p->len, HEADERS + (over == 1 ? 2000 : 1000));
			kfree_skb(era, p);
		}
	}
}

/* Pages of a pool and others do not meet in one sk_buff. */
static void pool_and_not(void **state)
{
	struct sk_buff *p = segment(ERA_6_12, HEADER_LINEAR, 100);
	struct sk_buff *skb = segment(ERA_6_12, HEADER_LINEAR, 100);

	(void)state;
	p->pp_recycle = 1;
	assert_int_equal(skb_gro_receive(p, skb, GRO_LEGACY_MAX_SIZE), -ETOOMANYREFS);
	assert_true(p->len == HEADERS + 100 && skb->len == HEADERS + 100);
	p->pp_recycle = 0;
	kfree_skb(ERA_6_12, p);
	kfree_skb(ERA_6_12, skb);
}

/* Any kinds in any order: the bytes in theirs, all pages back. */
static void any_mix(void **state)
{
	struct rng rng = { model_seed("skb_gro", 17) };

	(void)state;
	for_each_era (era) {
		for (int round = 0; round < 200; round++) {
			static u8 bytes[65536];
			struct sk_buff *p;
			u32 len = 1 + rng_below(&rng, MSS), total = len;
			u8 want = 0;

			stream = 0;
			p = segment(era, rng_below(&rng, 4), len);
			for (;;) {
				struct sk_buff *skb;

				len = 1 + rng_below(&rng, MSS);
				skb = segment(era, rng_below(&rng, 4), len);
				if (skb_gro_receive(p, skb, GRO_LEGACY_MAX_SIZE)) {
					kfree_skb(era, skb);
					break;
				}
				napi_gro_free(era, skb);
				total += len;
				good(p);
			}
			assert_int_equal(p->len, HEADERS + total);
			skb_copy_bits(p, HEADERS, bytes, total);
			for (u32 i = 0; i < total; i++)
				assert_int_equal(bytes[i], want++);
			kfree_skb(era, p);
			assert_int_equal(model_pages_in_use() == 0 ||
						 model_pages_in_use() <= 1u << SKB_FRAG_PAGE_ORDER,
					 true);
		}
	}
}

/* If the packet was cloned on its way up (a tap), the first free drops a share, the second frees. */
static void cloned_on_its_way(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *p = merged(era, HEADER_LINEAR, MSS, 45, GRO_LEGACY_MAX_SIZE);
		struct sk_buff *tap = skb_clone(era, p);
		size_t pages = model_pages_in_use();

#ifdef SKB_TRACED
		counts_start();
#endif
		__kfree_skb(era, tap);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw() - counted.rmw[SKB_C_SLAB], 1);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 0);
		counts_start();
#endif
		assert_int_equal(model_pages_in_use(), pages);
		__kfree_skb(era, p);
#ifdef SKB_TRACED
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 45);
#endif
	}
}

/* --- the caches below
 * ------------------------------------------------------------------------------------------- */

/* 16 shells come at once; 64 that come back leave 32, and 3.4 has no cache at all. */
static void cache_of_shells(void **state)
{
	struct sk_buff *skb[NAPI_SKB_CACHE_SIZE];

	(void)state;
	for_each_era (era) {
		napi_cache_drain();
		skb[0] = napi_alloc_skb(era, 128);
		assert_int_equal(napi_skb_cache_count(),
				 era == ERA_3_4 ? 0 : NAPI_SKB_CACHE_BULK - 1);
		for (int i = 1; i < NAPI_SKB_CACHE_SIZE; i++)
			skb[i] = napi_alloc_skb(era, 128);
		assert_int_equal(napi_skb_cache_count(), 0);
		for (int i = 0; i < NAPI_SKB_CACHE_SIZE - 1; i++)
			napi_consume_skb(era, skb[i], 64);
		assert_int_equal(napi_skb_cache_count(),
				 era == ERA_3_4 ? 0 : NAPI_SKB_CACHE_SIZE - 1);
		napi_consume_skb(era, skb[NAPI_SKB_CACHE_SIZE - 1], 64);
		assert_int_equal(napi_skb_cache_count(), era == ERA_3_4 ? 0 : NAPI_SKB_CACHE_HALF);
	}
}

/* NULL is nobody's; without a budget, or in others' hands, it is consume_skb(); a pair's half is. */
static void consume(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *skb;
		unsigned int cached;

		napi_consume_skb(era, NULL, 0);
		napi_consume_skb(era, NULL, 64);
		skb = napi_alloc_skb(era, 128);
		cached = napi_skb_cache_count();
		skb_get(skb);
		napi_consume_skb(era, skb, 64);
		assert_int_equal(napi_skb_cache_count(), cached);
		napi_consume_skb(era, skb, 0);
		assert_int_equal(napi_skb_cache_count(), cached);
		napi_consume_skb(era, empty(era), 64);
		assert_int_equal(napi_skb_cache_count(), cached);
	}
}

/* Up to 1 KB an object, to a page a fragment, an object beyond; the headroom is in front. */
static void heads_by_size(void **state)
{
	static const struct {
		unsigned int len;
		bool frag;
	} rows[] = { { 1, false },
		     { 128, false },
		     { 1024 - SKB_SHINFO_SIZE - NET_SKB_PAD, false },
		     { 1024 - SKB_SHINFO_SIZE - NET_SKB_PAD + 1, true },
		     { PAGE_SIZE - SKB_SHINFO_SIZE - NET_SKB_PAD, true },
		     { PAGE_SIZE - SKB_SHINFO_SIZE - NET_SKB_PAD + 1, false } };

	(void)state;
	for_each_era (era) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct sk_buff *skb = napi_alloc_skb(era, rows[i].len);

			assert_int_equal(skb->head_frag, rows[i].frag);
			assert_int_equal(skb_headroom(skb), NET_SKB_PAD);
			assert_true(skb_tailroom(skb) >= rows[i].len);
			fill_linear(skb, rows[i].len);
			good(skb);
			kfree_skb(era, skb);
		}
	}
}

#ifdef SKB_TRACED
/* Without a shell or a head: NULL, and what was to become a head stays the caller's. */
static void no_memory(void **state)
{
	(void)state;
	for_each_era (era) {
		struct page *page = alloc_pages(0);

		for (unsigned int len = 128; len <= 2048; len += 1920) {
			napi_cache_drain();
			counts_start();
			model_fail = fail_nth;
			for (int k = 1;; k++) {
				struct sk_buff *skb;

				fail_in = k;
				skb = napi_alloc_skb(era, len);
				if (fail_in > 0) {
					kfree_skb(era, skb);
					break; /* nothing failed any more */
				}
				if (skb)
					kfree_skb(era, skb); /* a shorter refill, a smaller block */
				napi_cache_drain();
				assert_int_equal(objects_out(), 0);
			}
			model_fail = NULL;
		}
		fail_in = 1;
		model_fail = fail_nth;
		napi_cache_drain();
		assert_null(napi_build_skb(era, page_address(page), PAGE_SIZE));
		model_fail = NULL;
		assert_int_equal(page_count(page), 1);
		put_page(page);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if MAX_SKB_FRAGS == 17
		cmocka_unit_test_teardown(headers_in_linear, quiet),
		cmocka_unit_test_teardown(heads_in_frags, quiet),
		cmocka_unit_test_teardown(headers_split, quiet),
		cmocka_unit_test_teardown(heads_are_objects, quiet),
		cmocka_unit_test_teardown(whole_pages, quiet),
		cmocka_unit_test_teardown(big_tcp, quiet),
#endif
		cmocka_unit_test_teardown(limit, quiet),
		cmocka_unit_test_teardown(pool_and_not, quiet),
		cmocka_unit_test_teardown(any_mix, quiet),
		cmocka_unit_test_teardown(cloned_on_its_way, quiet),
		cmocka_unit_test_teardown(cache_of_shells, quiet),
		cmocka_unit_test_teardown(consume, quiet),
		cmocka_unit_test_teardown(heads_by_size, quiet),
#ifdef SKB_TRACED
		cmocka_unit_test_teardown(no_memory, quiet),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
