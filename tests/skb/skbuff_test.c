/* SPDX-License-Identifier: MIT */
/*
 * sk_buffs one by one: geometry, the lives T1 to T3, T5 and T6 with every count, what a failed
 * allocation leaves, and the ways in which others' implementations went wrong. Each runs in every
 * era.
 */
#include "skb/page_frag.h"
#include "skb/skb_check.h"
#include "skb/skb_head.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define for_each_era(era) for (enum skb_era era = ERA_3_4; era < SKB_ERA_NR; era++)

static void good(const struct sk_buff *skb)
{
	char err[200] = "";

	if (skb_check(skb, err, sizeof(err)))
		fail_msg("%s", err);
}

static int dataref(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->dataref.counter;
}

/* A transmit sk_buff as TCP makes it: 320 bytes of headroom, N full page frags, header released. */
static struct sk_buff *tx_skb(enum skb_era era, int n, struct page **pages)
{
	struct sk_buff *skb = alloc_skb_fclone(era, MAX_TCP_HEADER, NUMA_NO_NODE);

	assert_non_null(skb);
	skb_reserve(skb, MAX_TCP_HEADER);
	for (int i = 0; i < n; i++) {
		pages[i] = alloc_pages(0);
		assert_non_null(pages[i]);
		memset(page_address(pages[i]), 'a' + i, PAGE_SIZE);
		skb_add_rx_frag(skb, i, pages[i], 0, PAGE_SIZE, PAGE_SIZE);
	}
	__skb_header_release(skb);
	good(skb);
	return skb;
}

static void sizes(void **state)
{
	struct sk_buff *skb;

	(void)state;
#if MAX_SKB_FRAGS == 17 && !defined(SKB_FRAG_PAD)
	/* end offset and truesize of an empty TCP transmit head, 3.4 with its 1408 linear bytes. */
	static const struct {
		unsigned int want, end, truesize;
	} tx[SKB_ERA_NR] = { { 1728, 1728, 2304 }, { 320, 704, 1280 }, { 320, 384, 960 } };

	for_each_era (era) {
		skb = alloc_skb_fclone(era, tx[era].want, NUMA_NO_NODE);
		assert_int_equal(skb_end_offset(skb), tx[era].end);
		assert_int_equal(skb->truesize, tx[era].truesize);
		assert_int_equal(skb_shinfo(skb)->nr_frags, 0);
		assert_int_equal(dataref(skb), 1);
		kfree_skb(era, skb);
	}
#endif
	for_each_era (era) {
		for (unsigned int size = 0; size < 20000; size += 97) {
			skb = alloc_skb(era, size, NUMA_NO_NODE);
			assert_non_null(skb);
			good(skb);
			assert_true(skb_tailroom(skb) >= size);
			assert_int_equal(skb->truesize, SKB_TRUESIZE(skb_end_offset(skb)));
			assert_int_equal((uintptr_t)skb_shinfo(skb) % 64, 0);
			memset(skb_put(skb, size), 7, size);
			good(skb);
			kfree_skb(era, skb);
		}
		/* No bucket is that large. */
		assert_null(alloc_skb(era, OBJ_MAX_SIZE, NUMA_NO_NODE));
	}
	assert_int_equal(model_pages_in_use(), 0);
}

/* T1: alloc, header release, frags, clone, free of the clone, free of the original. */
static void plain_life(void **state)
{
	struct page *p[16];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 16, p), *c;

		assert_int_equal(dataref(skb), 0x10001);
		assert_int_equal(skb_fclones(skb)->fclone_ref.refs.counter, 1);
		assert_false(skb_cloned(skb));
#ifdef SKB_TRACED
		counts_start();
#endif
		c = skb_clone(era, skb);
		assert_ptr_equal(c, &skb_fclones(skb)->skb2);
		assert_int_equal(dataref(skb), 0x10002);
		assert_int_equal(skb_fclones(skb)->fclone_ref.refs.counter, 2);
		assert_true(skb_cloned(skb) && skb->nohdr && !c->nohdr);
		assert_false(skb_header_cloned(c)); /* it may write its headers */
		assert_int_equal(c->hdr_len, MAX_TCP_HEADER);
		assert_int_equal(page_count(p[0]), 1); /* once a shared info, not once a shell */
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), era == ERA_3_4 ? 2 : 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 0);
		counts_start();
#endif
		kfree_skb(era, c);
		assert_int_equal(dataref(skb), 0x10001);
		assert_true(skb->cloned);
		assert_false(skb_cloned(skb)); /* cloned is set, and nobody shares */
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 2);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 0);
		counts_start();
#endif
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
#ifdef SKB_TRACED
		/* 16 puts; dataref up to 6.1; fclone_ref in 3.4 */
		assert_int_equal(counts_rmw(), 16 + (era <= ERA_6_1) + (era == ERA_3_4));
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 2);
#endif
	}
}

/* T2: a second clone while the companion lives gets a shell of its own. */
static void two_clones(void **state)
{
	struct page *p[2];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 2, p), *c1, *c2;

#ifdef SKB_TRACED
		counts_start();
#endif
		c1 = skb_clone(era, skb);
		c2 = skb_clone(era, skb);
		assert_int_equal(c2->fclone, SKB_FCLONE_UNAVAILABLE);
		assert_int_equal(dataref(skb), 0x10003);
		kfree_skb(era, c1);
		assert_int_equal(dataref(skb), 0x10002);
		assert_int_equal(skb_fclones(skb)->fclone_ref.refs.counter, 1);
		kfree_skb(era, c2);
		assert_int_equal(dataref(skb), 0x10001);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
#ifdef SKB_TRACED
		if (era == ERA_6_12)
			assert_int_equal(counts_rmw(), 7);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 3);
#endif
	}
}

/* T3: the original goes first; the pair's memory and the pages stay until the companion goes. */
static void original_first(void **state)
{
	struct page *p[16];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 16, p), *c = skb_clone(era, skb);

#ifdef SKB_TRACED
		counts_start();
#endif
		kfree_skb(era, skb);
		assert_int_equal(dataref(c), 1);
		assert_int_equal(page_count(p[15]), 1);
		good(c);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 2);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 0);
		counts_start();
#endif
		kfree_skb(era, c);
		assert_int_equal(model_pages_in_use(), 0);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 16 + (era <= ERA_6_1) + 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 2);
#endif
	}
}

/* A clone of the companion gets a shell: only the first of a pair has a companion to give. */
static void clone_of_clone(void **state)
{
	struct page *p[1];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 1, p), *c = skb_clone(era, skb);
		struct sk_buff *cc = skb_clone(era, c);

		assert_int_equal(cc->fclone, SKB_FCLONE_UNAVAILABLE);
		kfree_skb(era, skb);
		kfree_skb(era, c);
		good(cc);
		kfree_skb(era, cc);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

static void expand_cloned(void **state)
{
	struct page *p[16];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 16, p), *c = skb_clone(era, skb);
		unsigned char *old = skb->head;
		unsigned int truesize = skb->truesize;

#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
		assert_ptr_not_equal(skb->head, old);
		assert_ptr_equal(c->head, old);
		assert_int_equal(dataref(skb), 1);
		assert_int_equal(dataref(c), 1);
		assert_true(!skb->nohdr && !skb->cloned && !skb->hdr_len);
		assert_int_equal(skb->truesize, truesize);
		assert_int_equal(page_count(p[0]), 2);
		good(skb);
		good(c);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 17);
		assert_int_equal(counted.event[SKB_EV_PAGE_GET], 16);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 0);
		assert_int_equal(counted.written[SKB_C_HEAD], 320 + 48 + 16 * sizeof(skb_frag_t));
		counts_start();
#endif
		kfree_skb(era, c);
		assert_int_equal(page_count(p[0]), 1);
#ifdef SKB_TRACED
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 16);
		assert_int_equal(counted.event[SKB_EV_OBJ_FREE], 1); /* the head that both had */
#endif
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

static void expand_private(void **state)
{
	struct page *p[2];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 2, p);
		unsigned char *old = skb->head;
		unsigned int end = skb_end_offset(skb), truesize = skb->truesize;

		memset(skb->head, 3, MAX_TCP_HEADER);
#ifdef SKB_TRACED
		counts_start();
#endif
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
		good(skb);
		assert_int_equal(dataref(skb), 1);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 0);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], era > ERA_3_4);
#endif
		if (era == ERA_3_4)
			assert_ptr_equal(skb->head, old); /* slid in place */
		/* Room in front and behind, and the bytes where they were. */
		assert_int_equal(pskb_expand_head(era, skb, 64, 4096), 0);
		good(skb);
		assert_true(skb_headroom(skb) == MAX_TCP_HEADER + 64);
		assert_true(skb_end_offset(skb) >= end + 64 + 4096);
		assert_int_equal(skb->head[64], 3);
		assert_int_equal(skb->head[64 + MAX_TCP_HEADER - 1], 3);
		if (era == ERA_3_4)
			assert_int_equal(skb->truesize, truesize);
		else
			assert_int_equal(skb->truesize - truesize, skb_end_offset(skb) - end);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/* 3.4 slides only what nobody shares, in a head of its own with the room. */
static void slide_in_place(void **state)
{
	struct sk_buff *skb = alloc_skb(ERA_3_4, 100, NUMA_NO_NODE);
	unsigned char *old = skb->head;

	(void)state;
	memset(skb_put(skb, 50), 9, 50);
	/* An end below what the bucket holds, as a trimmed head has it: 64 bytes to slide in. */
	memmove(skb->head + skb->end - 64, skb_shinfo(skb), sizeof(struct skb_shared_info));
	skb->end -= 64;
	assert_int_equal(pskb_expand_head(ERA_3_4, skb, 30, 0), 0);
	good(skb);
	assert_ptr_equal(skb->head, old);
	assert_int_equal(skb_headroom(skb), 30);
	for (int i = 0; i < 50; i++)
		assert_int_equal(skb->data[i], 9);
	assert_int_equal(pskb_expand_head(ERA_3_4, skb, 0, 8192), 0);
	assert_ptr_not_equal(skb->head, old);
	good(skb);
	kfree_skb(ERA_3_4, skb);
}

/* A clone that was cloned and is alone again: expanded without a get, as nobody else will put. */
static void expand_alone_again(void **state)
{
	struct page *p[4];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 4, p);

		kfree_skb(era, skb_clone(era, skb));
		assert_int_equal(skb->cloned, 1);
		assert_int_equal(skb_unclone(era, skb), 0);
		assert_int_equal(page_count(p[0]), 1);
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
		assert_int_equal(page_count(p[0]), 1);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/*
 * What an expansion does to a frag_list: one hold on each member, given back by whoever goes last.
 */
static void expand_fraglist(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = alloc_skb(era, 256, NUMA_NO_NODE), *c;
		struct sk_buff *a = alloc_skb(era, 64, NUMA_NO_NODE);
		struct sk_buff *b = alloc_skb(era, 64, NUMA_NO_NODE);

		skb_put(a, 10);
		skb_put(b, 20);
		skb_put(skb, 5);
		a->next = b;
		b->next = NULL;
		skb_shinfo(skb)->frag_list = a;
		skb->len += 30;
		skb->data_len += 30;
		good(skb);
		c = skb_clone(era, skb);
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
		assert_int_equal(a->users.refs.counter, 2);
		assert_int_equal(b->users.refs.counter, 2);
		good(skb);
		kfree_skb(era, c);
		assert_int_equal(a->users.refs.counter, 1);
		good(skb);
		kfree_skb(era, skb);
	}
}

/* A larger bucket the second time must not show: neither in truesize nor in the room. */
static void keeptruesize(void **state)
{
	struct page *p[2];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 2, p), *c;
		unsigned int truesize = skb->truesize, end = MAX_TCP_HEADER;

		/* The end as if the bucket had been a smaller one, where there is one. */
		if (end < skb_end_offset(skb)) {
			memmove(skb->head + end, skb_shinfo(skb), sizeof(struct skb_shared_info));
			skb->end = end;
		}
		end = skb_end_offset(skb);
		skb->truesize = truesize -= 7;
		c = skb_clone(era, skb);
		assert_int_equal(skb_unclone_keeptruesize(era, skb), 0);
		good(skb);
		assert_int_equal(skb->truesize, truesize);
		assert_int_equal(skb_end_offset(skb), end);
		assert_int_equal(skb_shinfo(skb)->nr_frags, 2);
		assert_int_equal(dataref(skb), 1);
		kfree_skb(era, c);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/* T6: sent again while in flight. */
static void copy_of_a_clone(void **state)
{
	struct page *p[16];

	(void)state;
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 16, p), *c = skb_clone(era, skb), *n;

#ifdef SKB_TRACED
		counts_start();
#endif
		n = pskb_copy(era, skb);
		good(n);
		assert_int_equal(dataref(n), 1);
		assert_int_equal(dataref(skb), 0x10002);
		assert_int_equal(page_count(p[3]), 2);
		assert_int_equal(n->truesize, SKB_TRUESIZE(skb_end_offset(n)) + 16 * PAGE_SIZE);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), 16);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 2);
		assert_int_equal(counted.written[SKB_C_HEAD], 0);
#endif
		kfree_skb(era, n);
		kfree_skb(era, c);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

static void build_and_free(void **state)
{
	struct page_frag_cache nc = { 0 };

	(void)state;
	for_each_era (era) {
		for (int i = 0; i < 100; i++) {
			void *data = page_frag_alloc_align(&nc, 2048, 64);
			struct sk_buff *skb = build_skb(era, data, 2048), *c;

			assert_int_equal(skb_end_offset(skb), 2048 - SKB_SHINFO_SIZE);
			assert_true(skb->head_frag);
			good(skb);
			c = skb_clone(era, skb);
			assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
			assert_true(!skb->head_frag && c->head_frag);
			kfree_skb(era, c);
			kfree_skb(era, skb);
		}
	}
	page_frag_cache_drain(&nc);
	assert_int_equal(model_pages_in_use(), 0);
}

/* T7: cuts at every place, and what each costs. */
static void split_everywhere(void **state)
{
	struct page *p[3];

	(void)state;
	for (u32 cut = 0; cut <= 3 * PAGE_SIZE; cut += 512) {
		struct sk_buff *a = tx_skb(ERA_6_12, 3, p), *b;
		char before[3 * PAGE_SIZE], after[3 * PAGE_SIZE];
		unsigned int truesize = a->truesize;
		bool through = cut % PAGE_SIZE;

		skb_shinfo(a)->flags |= SKBFL_SHARED_FRAG;
		skb_copy_bits(a, 0, before, sizeof(before));
		b = alloc_skb(ERA_6_12, MAX_TCP_HEADER, NUMA_NO_NODE);
#ifdef SKB_TRACED
		counts_start();
#endif
		skb_split(a, b, cut);
#ifdef SKB_TRACED
		assert_int_equal(counts_rmw(), through);
#endif
		good(a);
		good(b);
		assert_int_equal(a->len, cut);
		assert_int_equal(b->len, sizeof(before) - cut);
		assert_int_equal(skb_shinfo(a)->nr_frags + skb_shinfo(b)->nr_frags, 3 + through);
		assert_int_equal(a->truesize, truesize);
		if (b->len)
			assert_true(skb_shinfo(b)->flags & SKBFL_SHARED_FRAG);
		skb_copy_bits(a, 0, after, a->len);
		skb_copy_bits(b, 0, after + cut, b->len);
		assert_memory_equal(before, after, sizeof(before));
		kfree_skb(ERA_6_12, a);
		kfree_skb(ERA_6_12, b);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

static void split_inside_header(void **state)
{
	struct page *p[2];
	struct sk_buff *a = tx_skb(ERA_3_4, 0, p), *b = alloc_skb(ERA_3_4, 256, NUMA_NO_NODE);

	(void)state;
	for (int i = 0; i < 64; i++)
		*(char *)skb_put(a, 1) = i;
	for (int i = 0; i < 2; i++) {
		p[i] = alloc_pages(0);
		skb_add_rx_frag(a, i, p[i], 0, 4096, 4096);
	}
	skb_split(a, b, 40);
	good(a);
	good(b);
	assert_int_equal(a->len, 40);
	assert_int_equal(skb_shinfo(a)->nr_frags, 0);
	assert_int_equal(skb_headlen(b), 24);
	assert_int_equal(skb_shinfo(b)->nr_frags, 2);
	assert_int_equal(b->data[0], 40);
	kfree_skb(ERA_3_4, a);
	kfree_skb(ERA_3_4, b);
	assert_int_equal(model_pages_in_use(), 0);
}

static void null_is_nobodys(void **state)
{
	(void)state;
	for_each_era (era) {
		kfree_skb(era, NULL);
		consume_skb(era, NULL);
		kfree_skb_list(era, NULL);
	}
}

/*
 * --- broken preconditions end the program, with a sentence
 * -------------------------------------------------
 */

static void expand_shared(void)
{
	pskb_expand_head(ERA_6_12, skb_get(alloc_skb(ERA_6_12, 64, NUMA_NO_NODE)), 0, 256);
}

static void expand_negative(void)
{
	pskb_expand_head(ERA_6_12, alloc_skb(ERA_6_12, 64, NUMA_NO_NODE), -1, 0);
}

/* 130 bytes in, 114 more: 244 where 192 are. */
static void put_too_much(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_1, 64, NUMA_NO_NODE);

	skb->end = 192;
	skb_put(skb, 130);
	skb_put(skb, 114);
}

static void pull_too_much(void)
{
	__skb_pull(alloc_skb(ERA_6_12, 64, NUMA_NO_NODE), 1);
}

static void push_too_much(void)
{
	skb_push(alloc_skb(ERA_6_12, 64, NUMA_NO_NODE), 1);
}

/* A cut that knows nothing of a frag_list must not leave it behind. */
static void split_fraglist(void)
{
	struct sk_buff *skb = alloc_skb(ERA_6_12, 64, NUMA_NO_NODE);
	struct sk_buff *member = alloc_skb(ERA_6_12, 64, NUMA_NO_NODE);

	skb_put(member, 20);
	skb_shinfo(skb)->frag_list = member;
	skb->len = skb->data_len = 20;
	skb_split(skb, alloc_skb(ERA_6_12, 64, NUMA_NO_NODE), 10);
}

static void preconditions(void **state)
{
	(void)state;
	assert_true(is_bug(expand_shared));
	assert_true(is_bug(expand_negative));
	assert_true(is_bug(put_too_much));
	assert_true(is_bug(pull_too_much));
	assert_true(is_bug(push_too_much));
	assert_true(is_bug(split_fraglist));
}

/* The checker finds what does not add up, and says the numbers. */
static void checker(void **state)
{
	struct page *p[1];
	struct sk_buff *skb = tx_skb(ERA_6_12, 1, p);
	char err[200];

	(void)state;
	skb->len = 7722;
	skb->data_len = 7722;
	skb_shinfo(skb)->frags[0].len = 378;
	assert_int_equal(skb_check(skb, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "7722"));
	assert_non_null(strstr(err, "378"));
	skb->len = skb->data_len = skb_shinfo(skb)->frags[0].len = PAGE_SIZE;
	skb_shinfo(skb)->frags[0].offset = 1;
	assert_int_equal(skb_check(skb, err, sizeof(err)), -1);
	skb_shinfo(skb)->frags[0].offset = 0;
	skb_shinfo(skb)->dataref.counter = 0x10002;
	assert_int_equal(skb_check(skb, err, sizeof(err)), -1);
	skb_shinfo(skb)->dataref.counter = 0x10001;
	good(skb);
	kfree_skb(ERA_6_12, skb);
}

#ifdef SKB_TRACED
/*
 * --- allocations that fail
 * ----------------------------------------------------------------------------------
 */

static int fail_in; /* the allocation that fails, counted from 1 */

static bool fail_nth(enum skb_site site)
{
	(void)site;
	return --fail_in == 0;
}

/*
 * Every operation, with each of its allocations failing in turn: NULL or -ENOMEM, and all as
 * before.
 */
static void failures(void **state)
{
	struct page *p[4];

	(void)state;
	counts_start();
	for_each_era (era) {
		struct sk_buff *skb = tx_skb(era, 4, p), *c = skb_clone(era, skb);
		struct sk_buff before = *skb;
		int ref = dataref(skb);
		u64 objects = counted.event[SKB_EV_OBJ_ALLOC] - counted.event[SKB_EV_OBJ_FREE];

		model_fail = fail_nth;
		for (int k = 1; k <= 2; k++) {
			fail_in = k;
			assert_null(alloc_skb(era, 100, NUMA_NO_NODE));
			fail_in = k;
			assert_null(alloc_skb_fclone(era, 100, NUMA_NO_NODE));
			fail_in = k;
			assert_null(pskb_copy(era, skb));
		}
		fail_in = 1;
		assert_null(skb_clone(era, skb)); /* the companion is out: a shell is needed */
		fail_in = 1;
		assert_int_equal(pskb_expand_head(era, skb, 0, 0), -ENOMEM);
		fail_in = 1;
		assert_int_equal(skb_unclone(era, skb), -ENOMEM);
		fail_in = 1;
		assert_int_equal(skb_unclone_keeptruesize(era, skb), -ENOMEM);
		fail_in = 1;
		assert_null(build_skb(era, NULL, 2048)); /* the data stays the caller's */
		model_fail = NULL;
		assert_memory_equal(&before, skb, sizeof(before));
		assert_int_equal(dataref(skb), ref);
		assert_int_equal(page_count(p[0]), 1);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC] - counted.event[SKB_EV_OBJ_FREE],
				 objects);
		kfree_skb(era, c);
		kfree_skb(era, skb);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/*
 * --- the other owner lets go at every moment of an expansion (T5)
 * -------------------------------------------
 */

static struct sk_buff *in_flight;
static enum skb_era in_flight_era;
static int free_at;

static void free_the_clone(void)
{
	if (in_flight && --free_at == 0) {
		struct sk_buff *c = in_flight;

		in_flight = NULL;
		kfree_skb(in_flight_era, c);
	}
}

static void expand_races_with_completion(void **state)
{
	struct page *p[16];

	(void)state;
	for_each_era (era) {
		bool raced = true;
		bool t5 = false;
		u64 dearest = 0;

		for (int at = 1; raced; at++) {
			struct sk_buff *skb = tx_skb(era, 16, p);

			in_flight = skb_clone(era, skb);
			in_flight_era = era;
			free_at = at;
			counts_start();
			model_access = free_the_clone;
			assert_int_equal(pskb_expand_head(era, skb, 0, 0), 0);
			model_access = NULL;
			raced = !in_flight;
			if (in_flight)
				kfree_skb(era, in_flight);
			good(skb);
			for (int i = 0; i < 16; i++)
				assert_int_equal(page_count(p[i]), 1);
			/*
			 * One head more and one less, wherever it was freed (3.4 may keep the one
			 * it has).
			 */
			assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC],
					 counted.event[SKB_EV_OBJ_FREE]);
			dearest = max(dearest, counts_rmw());
			t5 |= counts_rmw() == 34;
			kfree_skb(era, skb);
			assert_int_equal(model_pages_in_use(), 0);
		}
		/*
		 * 2 for the clone's free, 16 gets, 16 puts. The clone may also go between this
		 * CPU's look at dataref and its RMW, which is then one more; earlier eras do not
		 * look.
		 */
		assert_true(t5 || era != ERA_6_12);
		assert_int_equal(dearest, 35);
	}
}
#endif

static int start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 4096);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(plain_life),
		cmocka_unit_test(two_clones),
		cmocka_unit_test(original_first),
		cmocka_unit_test(clone_of_clone),
		cmocka_unit_test(expand_cloned),
		cmocka_unit_test(expand_private),
		cmocka_unit_test(slide_in_place),
		cmocka_unit_test(expand_alone_again),
		cmocka_unit_test(expand_fraglist),
		cmocka_unit_test(keeptruesize),
		cmocka_unit_test(copy_of_a_clone),
		cmocka_unit_test(build_and_free),
		cmocka_unit_test(split_everywhere),
		cmocka_unit_test(split_inside_header),
		cmocka_unit_test(null_is_nobodys),
		cmocka_unit_test(preconditions),
		cmocka_unit_test(checker),
#ifdef SKB_TRACED
		cmocka_unit_test(failures),
		cmocka_unit_test(expand_races_with_completion),
#endif
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
