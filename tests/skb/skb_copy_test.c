/* SPDX-License-Identifier: MIT */
/*
 * Full and private copies, sk_buffs of one's own (share check, unshare), morphing, and where heads
 * go back to. Each runs in every era.
 */
#include "tests/skb/skb_test.h"

/* Every shape, copied in full: linear, nothing shared, headroom and header offsets as they were. */
static void full_copy(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			struct sk_buff *n;
			u8 now[1024];

			shape_make(&s, era, kind);
			memset(s.skb->head, 5, 64);
			s.skb->headers.network_header = 33;
			skb_shinfo(s.skb)->flags |= SKBFL_SHARED_FRAG;
			skb_shinfo(s.skb)->gso_size = 99;
#ifdef SKB_TRACED
			counts_start();
#endif
			n = skb_copy(era, s.skb);
#ifdef SKB_TRACED
			assert_int_equal(counts_rmw(), 0);
			assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 2);
			assert_int_equal(counted.written[SKB_C_HEAD], 64 + s.len);
#endif
			assert_int_equal(n->len, s.len);
			assert_int_equal(n->data_len, 0);
			assert_int_equal(skb_headroom(n), 64);
			assert_int_equal(n->head[63], 5);
			assert_int_equal(n->headers.network_header, 33);
			assert_int_equal(skb_shinfo(n)->gso_size, 99);
			/* No frag moved: nobody else writes these bytes. */
			assert_int_equal(skb_shinfo(n)->nr_frags, 0);
			assert_int_equal(skb_shinfo(n)->flags, 0);
			assert_int_equal(n->truesize, SKB_TRUESIZE(skb_end_offset(n)));
			assert_int_equal(dataref(n), 1);
			good(n);
			skb_copy_bits(n, 0, now, n->len);
			assert_memory_equal(now, s.bytes, s.len);
			kfree_skb(era, n);
			shape_holds(&s, 0, s.len);
			shape_free(&s, kind & 1);
		}
	}
}

/* Every shape, with a private head: a get for each frag, a hold for each member, the flag. */
static void private_copy(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			struct sk_buff *n, *m;
			int refs, holds = 0;
			u8 now[1024];

			shape_make(&s, era, kind);
			skb_shinfo(s.skb)->flags |= SKBFL_SHARED_FRAG;
			m = skb_shinfo(s.skb)->frag_list;
			if (m)
				holds = m->users.refs.counter;
			refs = page_count(s.page);
#ifdef SKB_TRACED
			counts_start();
#endif
			n = pskb_copy(era, s.skb);
#ifdef SKB_TRACED
			assert_int_equal(counts_rmw(), 3 + (kind & SHAPE_LIST ? 2 : 0));
			assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 2);
			assert_int_equal(counted.written[SKB_C_HEAD], 100);
#endif
			assert_int_equal(page_count(s.page), refs + 3);
			if (m) {
				assert_ptr_equal(skb_shinfo(n)->frag_list, m);
				assert_int_equal(m->users.refs.counter, holds + 1);
				assert_int_equal(m->next->users.refs.counter, 2);
			}
			assert_true(skb_shinfo(n)->flags & SKBFL_SHARED_FRAG);
			assert_int_equal(n->truesize,
					 SKB_TRUESIZE(skb_end_offset(n)) + n->data_len);
			good(n);
			skb_copy_bits(n, 0, now, n->len);
			assert_memory_equal(now, s.bytes, s.len);
			if (kind & SHAPE_CLONED) {
				kfree_skb(era, n);
				shape_holds(&s, 0, s.len);
			} else {
				/* Cut while the copy holds the members: the copy sees nothing. */
				assert_int_equal(pskb_trim(era, s.skb, s.len - 110 + 10), 0);
				good(n);
				skb_copy_bits(n, 0, now, n->len);
				assert_memory_equal(now, s.bytes, s.len);
				kfree_skb(era, n);
				shape_holds(&s, 0, s.len - 100);
			}
			shape_free(&s, kind & 1);
		}
	}
}

/* The room in front is what was asked for, less or more than there was; the bytes are the same. */
static void copy_with_headroom(void **state)
{
	static const unsigned int rooms[] = { 0, 64, MAX_TCP_HEADER };
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
			struct sk_buff *n;
			u8 now[1024];

			shape_make(&s, era, SHAPE_LIST);
			n = __pskb_copy(era, s.skb, rooms[i]);
			assert_int_equal(skb_headroom(n), rooms[i]);
			assert_int_equal(skb_headlen(n), 100);
			assert_int_equal(skb_headroom(s.skb), 64);
			good(n);
			skb_copy_bits(n, 0, now, n->len);
			assert_memory_equal(now, s.bytes, s.len);
			kfree_skb(era, n);
			shape_free(&s, false);
		}
	}
}

/*
 * An sk_buff that others hold, too: a copy that is the caller's alone, and one hold fewer on the
 * old one. One that nobody else holds is returned as it is.
 */
static void share_check(void **state)
{
	(void)state;
	for_each_era (era) {
		for (int users = 1; users <= 3; users++) {
			struct sk_buff *skb = alloc_skb(era, 512, NUMA_NO_NODE), *n;

			skb_reserve(skb, 64);
			fill_linear(skb, 50);
			for (int i = 1; i < users; i++)
				skb_get(skb);
			n = skb_share_check(era, skb);
			assert_int_equal(n->users.refs.counter, 1);
			if (users == 1) {
				assert_ptr_equal(n, skb);
				assert_false(skb_cloned(n));
				kfree_skb(era, n);
				continue;
			}
			assert_ptr_not_equal(n, skb);
			assert_ptr_equal(n->head, skb->head);
			assert_int_equal(skb->users.refs.counter, users - 1);
			/* And now a head of its own may be made, with 256 bytes in front. */
			assert_int_equal(pskb_expand_head(era, n, 256 - 64, 0), 0);
			assert_int_equal(skb_headroom(n), 256);
			good(n);
			good(skb);
			kfree_skb(era, n);
			for (int i = 1; i < users; i++)
				kfree_skb(era, skb);
		}
	}
}

static void unshare(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		for (unsigned int kind = 0; kind < SHAPE_NR; kind++) {
			struct sk_buff *old;

			shape_make(&s, era, kind);
			old = s.skb;
			s.skb = skb_unshare(era, s.skb);
			assert_int_equal(s.skb != old, !!(kind & SHAPE_CLONED));
			assert_false(skb_cloned(s.skb));
			if (s.clone)
				assert_false(skb_cloned(s.clone));
			shape_holds(&s, 0, s.len);
			shape_free(&s, kind & 1);
		}
	}
}

static int destroyed;

static void count_destructor(struct sk_buff *skb)
{
	(void)skb;
	destroyed++;
}

/* A shell lets go of what it had and becomes a clone; the pair that it is half of stays one. */
static void morph(void **state)
{
	struct shape s;

	(void)state;
	for_each_era (era) {
		struct page *p = block(0);
		struct sk_buff *dst = empty(era);

		shape_make(&s, era, SHAPE_LIST);
		frag(dst, p, 0, 100);
		dst->destructor = count_destructor;
		destroyed = 0;
		assert_ptr_equal(skb_morph(era, dst, s.skb), dst);
		assert_int_equal(destroyed, 1);
		assert_null(dst->destructor);
		assert_int_equal(page_count(p), 1);
		put_page(p);
		assert_int_equal(dst->fclone, SKB_FCLONE_ORIG);
		assert_int_equal(dataref(s.skb), 2);
		s.clone = dst;
		shape_holds(&s, 0, s.len);
		shape_free(&s, true);
	}
	assert_int_equal(model_pages_in_use(), 0);
}

/* The headers are one's own if every other owner looks at the payload only. */
static void header_unclone(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = empty(era), *c, *d;
		unsigned char *head;

		__skb_header_release(skb);
		c = skb_clone(era, skb);
		head = c->head;
		assert_true(skb_cloned(c));
		assert_int_equal(skb_header_unclone(era, c), 0);
		assert_ptr_equal(c->head, head);
		d = skb_clone(era, skb);
		assert_int_equal(skb_header_unclone(era, c), 0);
		assert_ptr_not_equal(c->head, head);
		assert_int_equal(dataref(skb), 0x10002);
		good(c);
		kfree_skb(era, c);
		kfree_skb(era, d);
		kfree_skb(era, skb);
	}
}

/*
 * Where a head came from is written down, not guessed from its size (CVE-2026-31429): one as large
 * as a small head but from kmalloc, one from a page, and one whose end was moved.
 */
static void origin_of_heads(void **state)
{
	(void)state;
	for_each_era (era) {
		struct page_frag_cache nc = { 0 };
		void *data = page_frag_alloc_align(&nc, SKB_SMALL_HEAD_SIZE, 64);
		struct sk_buff *framed = build_skb(era, data, SKB_SMALL_HEAD_SIZE);
		struct sk_buff *small = alloc_skb(era, 0, NUMA_NO_NODE);
		struct sk_buff *large = alloc_skb(era, 4000, NUMA_NO_NODE);

#ifdef SKB_TRACED
		counts_start();
#endif
		assert_true(era < ERA_6_12 || skb_end_offset(framed) == skb_end_offset(small));
		skb_set_end_offset(large, skb_end_offset(small));
		memset(skb_shinfo(large), 0, sizeof(struct skb_shared_info));
		skb_shinfo(large)->dataref.counter = 1;
		assert_int_equal(large->headers.head_size,
				 kmalloc_size_roundup(SKB_HEAD_ALIGN(4000)));
		kfree_skb(era, large);
		kfree_skb(era, small);
		kfree_skb(era, framed);
#ifdef SKB_TRACED
		/* Shells, and the two heads that are objects. */
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 5);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 1);
#endif
		page_frag_cache_drain(&nc);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/* A put that does not fit is refused with the sizes, and the sk_buff is as before. */
static void put_too_much(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_1, 64, NUMA_NO_NODE);

	skb->end = 192;
	skb_put(skb, 130);
	skb_put(skb, 114);
}

static void says_the_sizes(void **state)
{
	char text[256];

	(void)state;
	assert_true(is_bug_saying(put_too_much, text, sizeof(text)));
	assert_non_null(strstr(text, "114 bytes at 130"));
	assert_non_null(strstr(text, "need 244, have 192"));
}

static void morph_shared(void)
{
	skb_morph(ERA_6_12, skb_get(alloc_skb(ERA_6_12, 64, NUMA_NO_NODE)),
		  alloc_skb(ERA_6_12, 64, NUMA_NO_NODE));
}

static void preconditions(void **state)
{
	(void)state;
	assert_true(is_bug(morph_shared));
}

/* The size of a frag is nowhere relied upon; reports say it, since it decides the cache lines. */
static void frag_size(void **state)
{
	(void)state;
	printf("skb_frag_t %zu bytes, frag 1 at %zu, skb_shared_info %zu\n", sizeof(skb_frag_t),
	       offsetof(struct skb_shared_info, frags[1]), sizeof(struct skb_shared_info));
#ifdef SKB_FRAG_PAD
	assert_int_equal(sizeof(skb_frag_t), 24);
#else
	assert_int_equal(sizeof(skb_frag_t), 16);
#endif
	assert_int_equal(offsetof(struct skb_shared_info, frags[1]), 48 + sizeof(skb_frag_t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_copy),
		cmocka_unit_test(private_copy),
		cmocka_unit_test(copy_with_headroom),
		cmocka_unit_test(share_check),
		cmocka_unit_test(unshare),
		cmocka_unit_test(morph),
		cmocka_unit_test(header_unclone),
		cmocka_unit_test(origin_of_heads),
		cmocka_unit_test(says_the_sizes),
		cmocka_unit_test(preconditions),
		cmocka_unit_test(frag_size),
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
