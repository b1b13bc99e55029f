/* SPDX-License-Identifier: MIT */
/*
 * What the tests of sk_buffs share: shapes of sk_buffs, their bytes, and allocations that fail in
 * turn.
 */
#ifndef TESTS_SKB_SKB_TEST_H
#define TESTS_SKB_SKB_TEST_H

#include "skb/skb_check.h"
#include "skb/skb_head.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <string.h>

#define for_each_era(era) for (enum skb_era era = ERA_3_4; era < SKB_ERA_NR; era++)

static inline void good(const struct sk_buff *skb)
{
	char err[200] = "";

	if (skb_check(skb, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline int dataref(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->dataref.counter;
}

/* The first of a pair, as TCP makes it, without bytes. */
static inline struct sk_buff *empty(enum skb_era era)
{
	struct sk_buff *skb = alloc_skb_fclone(era, MAX_TCP_HEADER, NUMA_NO_NODE);

	assert_non_null(skb);
	skb_reserve(skb, MAX_TCP_HEADER);
	return skb;
}

/* LEN bytes at OFF of PAGE as the next frag; the reference is taken here. */
static inline void frag(struct sk_buff *skb, struct page *page, u32 off, u32 len)
{
	get_page(page);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, off, len, len);
}

static inline void is_frag(const struct sk_buff *skb, int i, const struct page *page, u32 off,
			   u32 len)
{
	const skb_frag_t *f = &skb_shinfo(skb)->frags[i];

	assert_true(i < skb_shinfo(skb)->nr_frags);
	assert_ptr_equal(f->page, page);
	assert_int_equal(f->offset, off);
	assert_int_equal(f->len, len);
}

/* A block whose bytes tell where they are. */
static inline struct page *block(unsigned int order)
{
	struct page *page = alloc_pages(order);
	u8 *p;

	assert_non_null(page);
	p = page_address(page);
	for (u32 i = 0; i < PAGE_SIZE << order; i++)
		p[i] = i * 7 + i / 256;
	return page;
}

/* N linear bytes more. */
static inline void fill_linear(struct sk_buff *skb, u32 n)
{
	u8 *p = skb_put(skb, n);

	for (u32 i = 0; i < n; i++)
		p[i] = 0x80 + i;
}

/* MEMBER becomes the last of SKB's frag_list, charged to SKB. */
static inline void list_add_tail(struct sk_buff *skb, struct sk_buff *member)
{
	struct sk_buff **p = &skb_shinfo(skb)->frag_list;

	while (*p)
		p = &(*p)->next;
	*p = member;
	member->next = NULL;
	skb->len += member->len;
	skb->data_len += member->len;
	skb->truesize += member->truesize;
}

#define SHAPE_LIST   1 /* two members of a frag_list */
#define SHAPE_CLONED 2 /* a clone shares the head */
#define SHAPE_HELD   4 /* others hold the first member of the list */
#define SHAPE_NR     8

/* 100 linear bytes, frags of 300, 200 and 50 bytes, members of 40 + 60 and 30 + 70 bytes. */
struct shape {
	enum skb_era era;
	unsigned int kind;
	struct sk_buff *skb, *clone, *held;
	struct page *page;
	u32 len;
	u8 bytes[1024]; /* what SKB holds, and what its clone must hold for ever */
};

static inline void shape_make(struct shape *s, enum skb_era era, unsigned int kind)
{
	*s = (struct shape){ .era = era, .kind = kind, .page = block(0) };
	s->skb = alloc_skb_fclone(era, 64 + 100, NUMA_NO_NODE);
	assert_non_null(s->skb);
	skb_reserve(s->skb, 64);
	fill_linear(s->skb, 100);
	frag(s->skb, s->page, 0, 300);
	frag(s->skb, s->page, 1000, 200);
	frag(s->skb, s->page, 2000, 50);
	if (kind & SHAPE_LIST) {
		for (int i = 0; i < 2; i++) {
			struct sk_buff *m = alloc_skb(era, 64, NUMA_NO_NODE);

			assert_non_null(m);
			fill_linear(m, i ? 30 : 40);
			frag(m, s->page, 2500 + 100 * i, i ? 70 : 60);
			list_add_tail(s->skb, m);
			if (!i && kind & SHAPE_HELD)
				s->held = skb_get(m);
		}
	}
	if (kind & SHAPE_CLONED) {
		s->clone = skb_clone(era, s->skb);
		assert_non_null(s->clone);
	}
	s->len = s->skb->len;
	assert_true(s->len <= sizeof(s->bytes));
	skb_copy_bits(s->skb, 0, s->bytes, s->len);
	good(s->skb);
}

/* SKB holds LEN bytes, those from offset OFF of what it held first; the clone still holds all. */
static inline void shape_holds(const struct shape *s, u32 off, u32 len)
{
	u8 now[sizeof(s->bytes)];

	good(s->skb);
	assert_int_equal(s->skb->len, len);
	skb_copy_bits(s->skb, 0, now, len);
	assert_memory_equal(now, s->bytes + off, len);
	if (s->clone) {
		good(s->clone);
		assert_int_equal(s->clone->len, s->len);
		skb_copy_bits(s->clone, 0, now, s->len);
		assert_memory_equal(now, s->bytes, s->len);
	}
	if (s->held) {
		good(s->held);
		assert_int_equal(s->held->len, 100);
		skb_copy_bits(s->held, 0, now, 100);
		assert_memory_equal(now, s->bytes + s->len - 200, 100);
	}
}

/* Everything goes, in either order, and nothing is left. */
static inline void shape_free(struct shape *s, bool clone_first)
{
	if (s->clone && clone_first)
		kfree_skb(s->era, s->clone);
	kfree_skb(s->era, s->skb);
	if (s->clone && !clone_first)
		kfree_skb(s->era, s->clone);
	if (s->held)
		kfree_skb(s->era, s->held);
	assert_int_equal(page_count(s->page), 1);
	put_page(s->page);
	assert_int_equal(model_pages_in_use(), 0);
}

#ifdef SKB_TRACED
static int fail_in; /* the allocation that fails, counted from 1 */

static inline bool fail_nth(enum skb_site site)
{
	(void)site;
	return --fail_in == 0;
}

static inline u64 objects_out(void)
{
	return counted.event[SKB_EV_OBJ_ALLOC] - counted.event[SKB_EV_OBJ_FREE];
}
#endif

static inline int skb_test_start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 4096);
	return 0;
}

#endif
