/* SPDX-License-Identifier: MIT */
/*
 * skb_try_coalesce() and kfree_skb_partial(): the golden trace T7, every way to refuse, whose
 * references move. Each runs in every era.
 */
#include "skb/page_frag.h"
#include "tests/skb/skb_test.h"

/* N frags of SIZE bytes that do not continue each other. */
static void frags(struct sk_buff *skb, struct page *page, unsigned int n, u32 size)
{
	for (unsigned int i = 0; i < n; i++)
		frag(skb, page, i * (size + 1), size);
}

/* An sk_buff around LINEAR bytes behind 64 of headroom, in a block that NC owns, too. */
static struct sk_buff *built(enum skb_era era, struct page_frag_cache *nc, u32 linear)
{
	struct sk_buff *skb = build_skb(era, page_frag_alloc_align(nc, 2048, 64), 2048);

	assert_non_null(skb);
	skb_reserve(skb, 64);
	fill_linear(skb, linear);
	return skb;
}

/* What must be as before when nothing was merged. */
struct before {
	unsigned int len, truesize, nr_frags, tail;
	u8 flags;
};

static struct before of(const struct sk_buff *skb)
{
	return (struct before){ skb->len, skb->truesize, skb_shinfo(skb)->nr_frags, skb->tail,
				skb_shinfo(skb)->flags };
}

static void same(struct before a, struct before b)
{
	assert_int_equal(a.len, b.len);
	assert_int_equal(a.truesize, b.truesize);
	assert_int_equal(a.nr_frags, b.nr_frags);
	assert_int_equal(a.tail, b.tail);
	assert_int_equal(a.flags, b.flags);
}

static void refuses(enum skb_era era, struct sk_buff *to, struct sk_buff *from)
{
	struct before t = of(to), f = of(from);
	bool stolen = true;
	int delta = 7;

	assert_false(skb_try_coalesce(era, to, from, &stolen, &delta));
	assert_false(stolen);
	assert_int_equal(delta, 0);
	same(of(to), t);
	same(of(from), f);
	good(to);
	good(from);
}

/* Merges, and all that FROM held is behind what TO held. STOLEN as given; returns the delta. */
static int merges(enum skb_era era, struct sk_buff *to, struct sk_buff *from, bool want_stolen)
{
	static u8 before[65536], after[65536];
	unsigned int truesize = to->truesize, len = to->len + from->len;
	bool stolen = !want_stolen;
	int delta = -1;

	assert_true(len <= sizeof(before));
	skb_copy_bits(to, 0, before, to->len);
	skb_copy_bits(from, 0, before + to->len, from->len);
	assert_true(skb_try_coalesce(era, to, from, &stolen, &delta));
	assert_int_equal(stolen, want_stolen);
	assert_int_equal(to->len, len);
	assert_int_equal(to->truesize, truesize + delta);
	kfree_skb_partial(era, from, stolen);
	good(to);
	skb_copy_bits(to, 0, after, len);
	assert_memory_equal(before, after, len);
	return delta;
}

/*
 * T7: frags move into an sk_buff with 10, as many as there is room for (7 of 17): no RMW, and what
 * is charged is all but head and shell. One more is refused.
 */
static void by_frags(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = empty(era), *from = empty(era);
		unsigned int bare = from->truesize, refs;

		frags(to, p, 10, 100);
		frags(from, p, MAX_SKB_FRAGS - 9, 100);
		refuses(era, to, from);
		kfree_skb(era, from);

		from = empty(era);
		frags(from, p, MAX_SKB_FRAGS - 10, 100);
		refs = page_count(p);
		assert_int_equal(from->truesize, SKB_TRUESIZE(skb_end_offset(from)) + from->len);
		assert_int_equal(bare, SKB_TRUESIZE(skb_end_offset(from)));
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(merges(era, to, from, false), 100 * (MAX_SKB_FRAGS - 10));
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(),
				 counted.rmw[SKB_C_FCLONE]); /* 3.4's free of a pair */
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 0);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 2);
#endif
		assert_int_equal(skb_shinfo(to)->nr_frags, MAX_SKB_FRAGS);
		is_frag(to, 9, p, 9 * 101, 100);
		is_frag(to, 10, p, 0, 100);
		assert_int_equal(page_count(p), refs);
		kfree_skb(era, to);
		assert_int_equal(page_count(p), 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/*
 * T7: a head that is a page fragment becomes a frag, for which there must be room, too (10 + 6 + 1
 * of 17); 10 + 7 + 1 is refused.
 */
static void by_head(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page *p = block(0), *head;

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = empty(era), *from = built(era, &nc, 700);
		unsigned int truesize, from_at;
		int refs;

		frags(to, p, 10, 100);
		frags(from, p, MAX_SKB_FRAGS - 10, 100);
		refuses(era, to, from);
		kfree_skb(era, from);

		from = built(era, &nc, 700);
		head = virt_to_head_page(from->head);
		from_at = from->data - (unsigned char *)page_address(head);
		frags(from, p, MAX_SKB_FRAGS - 11, 100);
		truesize = from->truesize;
		refs = page_count(head);
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(merges(era, to, from, true), truesize - 256);
#ifdef SKB_TRACED
		/* The shell alone is freed. */
		assert_int_equal(counts_rmw(), 0);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 1);
#endif
		assert_int_equal(page_count(head), refs);
		assert_int_equal(skb_shinfo(to)->nr_frags, MAX_SKB_FRAGS);
		is_frag(to, 10, head, from_at, 700);
		is_frag(to, 11, p, 0, 100);
		/* The head's reference goes with the frag. */
		kfree_skb(era, to);
		assert_int_equal(page_count(head), refs - 1);
		assert_int_equal(page_count(p), 1);
		page_frag_cache_drain(&nc);
		assert_int_equal(model_pages_in_use(), 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* A head alone, whose block nobody else holds any more: it lives as long as the frag. */
static void the_head_outlives_its_cache(void **state)
{
	(void)state;
	for_each_era (era) {
		struct page_frag_cache nc = { 0 };
		struct sk_buff *to = empty(era), *from = built(era, &nc, 1000);
		struct page *head = virt_to_head_page(from->head);

		skb_reserve(to, skb_tailroom(to)); /* no room to copy to */
		page_frag_cache_drain(&nc);
		assert_int_equal(page_count(head), 1);
		merges(era, to, from, true);
		assert_int_equal(page_count(head), 1);
		kfree_skb(era, to);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/* Bytes that fit behind the tail are copied, whatever they lie in: FROM is as it was. */
static void by_copy(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = alloc_skb(era, 500, NUMA_NO_NODE), *from, *m;
		unsigned int room;

		/* Nothing at all. */
		assert_int_equal(merges(era, to, empty(era), false), 0);
		fill_linear(to, 100);
		room = skb_tailroom(to);

		/* Linear bytes, a frag, a member of a frag_list, and the room to the last byte. */
		from = alloc_skb(era, 64, NUMA_NO_NODE);
		m = alloc_skb(era, 700, NUMA_NO_NODE);
		fill_linear(from, 20);
		frag(from, p, 200, 50);
		fill_linear(m, room - 70);
		list_add_tail(from, m);
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(merges(era, to, from, false), 0);
#ifdef SKB_TRACED
		assert_int_equal(counted.rmw[SKB_C_PAGE], 1); /* the put with FROM */
#endif
		assert_int_equal(skb_tailroom(to), 0);
		assert_int_equal(to->data_len, 0);
		assert_int_equal(page_count(p), 1);

		/* A byte more than there is room: a head that cannot be stolen. */
		from = alloc_skb(era, 64, NUMA_NO_NODE);
		fill_linear(from, 1);
		refuses(era, to, from);
		kfree_skb(era, from);
		kfree_skb(era, to);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* FROM is cloned: the clone keeps its references, TO gets its own. Freed in either order. */
static void from_a_clone(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int clone_first = 0; clone_first < 2; clone_first++) {
			struct sk_buff *to = empty(era), *from = empty(era), *clone;
			static u8 bytes[500];

			frags(to, p, 2, 100);
			frags(from, p, 5, 100);
			clone = skb_clone(era, from);
			skb_copy_bits(clone, 0, bytes, 500);
			assert_int_equal(page_count(p), 8);
#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(merges(era, to, from, false), 500);
#ifdef SKB_TRACED
			assert_int_equal(counted.event[SKB_EV_PAGE_GET], 5);
			assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 0);
#endif
			assert_int_equal(page_count(p), 13);
			assert_int_equal(skb_shinfo(clone)->nr_frags, 5);
			if (clone_first) {
				kfree_skb(era, clone);
				assert_int_equal(page_count(p), 8);
				kfree_skb(era, to);
			} else {
				u8 now[500];

				kfree_skb(era, to);
				assert_int_equal(page_count(p), 6);
				good(clone);
				skb_copy_bits(clone, 0, now, 500);
				assert_memory_equal(now, bytes, 500);
				kfree_skb(era, clone);
			}
			assert_int_equal(page_count(p), 1);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* One that was cloned and is not any more gives its references away as any other. */
static void from_a_former_clone(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = empty(era), *from = empty(era);

		frags(from, p, 5, 100);
		kfree_skb(era, skb_clone(era, from));
		assert_true(from->cloned);
		merges(era, to, from, false);
		assert_int_equal(page_count(p), 6);
		kfree_skb(era, to);
		assert_int_equal(page_count(p), 1);
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

static void ignore_notify(struct ubuf_info_msgzc *uarg)
{
	(void)uarg;
}

enum why { TO_CLONED, TO_RECYCLES, FROM_RECYCLES, TO_LIST, FROM_LIST, TO_UARG, FROM_UARG, NR_WHY };

/* Each reason alone; without it the same two merge. */
static void refused(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (enum why why = 0; why <= NR_WHY; why++) {
			struct sk_buff *to = empty(era), *from = empty(era), *m = empty(era);
			struct sk_buff *clone = NULL;
			struct ubuf_info_msgzc u;

			msg_zerocopy_init(&u, SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN,
					  ignore_notify);
			frag(to, p, 0, 1000);
			frag(from, p, 2000, 1000);
			frag(m, p, 3000, 100);
			if (why == TO_CLONED)
				clone = skb_clone(era, to);
			if (why == TO_LIST || why == FROM_LIST)
				list_add_tail(why == TO_LIST ? to : from, skb_get(m));
			if (why == TO_UARG || why == FROM_UARG)
				skb_zcopy_set(why == TO_UARG ? to : from, &u.ubuf);
			to->pp_recycle = why == TO_RECYCLES;
			from->pp_recycle = why == FROM_RECYCLES;
			if (why < NR_WHY)
				refuses(era, to, from);
			to->pp_recycle = from->pp_recycle = 0;
			if (why < NR_WHY)
				kfree_skb(era, from);
			else
				merges(era, to, from, false);
			kfree_skb(era, to);
			kfree_skb(era, clone);
			kfree_skb(era, m);
			assert_int_equal(u.ubuf.refcnt.refs.counter, 1);
			assert_int_equal(page_count(p), 1);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* Linear bytes whose head must stay: from kmalloc, or a page fragment that a clone looks at. */
static void head_is_locked(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = empty(era), *from = alloc_skb(era, 64, NUMA_NO_NODE), *clone;

		frag(to, p, 0, 100);
		fill_linear(from, 10);
		refuses(era, to, from);
		kfree_skb(era, from);

		from = built(era, &nc, 10);
		clone = skb_clone(era, from);
		refuses(era, to, from);
		/* The clone is gone, and with it the reason. */
		kfree_skb(era, clone);
		merges(era, to, from, true);
		kfree_skb(era, to);
	}
	page_frag_cache_drain(&nc);
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

/* TO's pages may be written by others if FROM's may and came along; copied bytes are TO's own. */
static void shared_frag_flag(void **state)
{
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		for (int kind = 0; kind < 8; kind++) {
			bool copied = kind & 1, from_has = kind & 2, to_has = kind & 4;
			struct sk_buff *to =
				copied ? alloc_skb(era, 300, NUMA_NO_NODE) : empty(era);
			struct sk_buff *from = empty(era);

			if (!copied)
				frag(to, p, 0, 100);
			frag(from, p, 200, 100);
			skb_shinfo(to)->flags |= to_has ? SKBFL_SHARED_FRAG : 0;
			skb_shinfo(from)->flags |= from_has ? SKBFL_SHARED_FRAG : 0;
			merges(era, to, from, false);
			assert_int_equal(!!(skb_shinfo(to)->flags & SKBFL_SHARED_FRAG),
					 to_has || (from_has && !copied));
			kfree_skb(era, to);
		}
	}
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}

static int destroyed;

static void destructor(struct sk_buff *skb)
{
	destroyed += skb->truesize;
}

/* A destructor runs once, with a head that is stolen and with one that is not. */
static void partial_frees_tell_the_owner(void **state)
{
	(void)state;
	for_each_era (era) {
		for (int stolen = 0; stolen < 2; stolen++) {
			struct page_frag_cache nc = { 0 };
			struct sk_buff *skb = built(era, &nc, 10);
			void *head = skb->head;
			int truesize = skb->truesize;

			destroyed = 0;
			skb->destructor = destructor;
			kfree_skb_partial(era, skb, stolen);
			assert_int_equal(destroyed, truesize);
			page_frag_cache_drain(&nc);
			assert_int_equal(model_pages_in_use(),
					 stolen ? 1 << PAGE_FRAG_CACHE_MAX_ORDER : 0);
			if (stolen)
				page_frag_free(head);
		}
	}
	assert_int_equal(model_pages_in_use(), 0);
}

#ifdef SKB_TRACED
static bool fail_always(enum skb_site site)
{
	(void)site;
	return true;
}

/* No memory to be had is no reason: nothing is allocated. */
static void needs_no_memory(void **state)
{
	struct page_frag_cache nc = { 0 };
	struct page *p = block(0);

	(void)state;
	for_each_era (era) {
		struct sk_buff *to = empty(era), *from = empty(era), *head = built(era, &nc, 99);

		frag(to, p, 0, 100);
		frag(from, p, 200, 100);
		model_fail = fail_always;
		merges(era, to, from, false);
		merges(era, to, head, true);
		model_fail = NULL;
		kfree_skb(era, to);
	}
	page_frag_cache_drain(&nc);
	put_page(p);
	assert_int_equal(model_pages_in_use(), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_frags),
		cmocka_unit_test(by_head),
		cmocka_unit_test(the_head_outlives_its_cache),
		cmocka_unit_test(by_copy),
		cmocka_unit_test(from_a_clone),
		cmocka_unit_test(from_a_former_clone),
		cmocka_unit_test(refused),
		cmocka_unit_test(head_is_locked),
		cmocka_unit_test(shared_frag_flag),
		cmocka_unit_test(partial_frees_tell_the_owner),
#ifdef SKB_TRACED
		cmocka_unit_test(needs_no_memory),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
