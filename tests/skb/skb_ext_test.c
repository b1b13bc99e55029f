/* SPDX-License-Identifier: MIT */
/*
 * Extensions: sharing, copy on write, what a failed allocation leaves, counts, and that an object
 * has as many references as sk_buffs point to it, over random programs.
 */
#include "skb/mptcp_ext.h"
#include "tests/skb/skb_test.h"

#include <pthread.h>

static int refs(const struct skb_ext *ext)
{
	return ext->refcnt.refs.counter;
}

static struct sk_buff *fresh(enum skb_era era)
{
	struct sk_buff *skb = alloc_skb_fclone(era, MAX_TCP_HEADER, NUMA_NO_NODE);

	assert_non_null(skb);
	return skb;
}

/* An MPTCP map that says WHAT in every field. */
static struct mptcp_ext *add_map(struct sk_buff *skb, u8 what)
{
	struct mptcp_ext *map = skb_ext_add(skb, SKB_EXT_MPTCP);

	assert_non_null(map);
	memset(map, 0, sizeof(*map));
	map->data_seq = what;
	map->data_len = what;
	return map;
}

static void layout(void **state)
{
	struct mptcp_ext map = { .frozen = 1 };

	(void)state;
	assert_int_equal(SKB_EXT_HEADER_CHUNKS, 1);
	assert_int_equal(skb_ext_type_len[SKB_EXT_BRIDGE_NF], 4);
	assert_int_equal(skb_ext_type_len[SKB_EXT_SEC_PATH], 11);
	assert_int_equal(skb_ext_type_len[SKB_EXT_MPTCP], 4);
	assert_int_equal(map.flags, MPTCP_EXT_FROZEN);
}

/* Golden trace T12. */
static void golden(void **state)
{
	(void)state;
	for_each_era (era) {
		struct sk_buff *a = fresh(era), *b, *c = fresh(era);
		struct skb_ext *e1, *e2;

		add_map(a, 1);
		e1 = a->extensions;
		assert_int_equal(refs(e1), 1);
		assert_int_equal(a->headers.slow_gro, 1);
		b = skb_clone(era, a);
		assert_ptr_equal(b->extensions, e1);
		assert_int_equal(refs(e1), 2);

		add_map(a, 2);
		e2 = a->extensions;
		assert_ptr_not_equal(e2, e1);
		assert_int_equal(refs(e1), 1);
		assert_int_equal(refs(e2), 1);
		assert_int_equal(((struct mptcp_ext *)skb_ext_find(b, SKB_EXT_MPTCP))->data_seq, 1);
		assert_ptr_equal(b->extensions, e1);

		mptcp_skb_ext_copy(c, a);
		assert_ptr_equal(c->extensions, e2);
		assert_int_equal(refs(e2), 2);
		assert_true(mptcp_get_ext(a)->frozen);
		assert_false(mptcp_get_ext(b)->frozen);
		good(a);
		good(b);
		good(c);

		kfree_skb(era, a);
		assert_int_equal(refs(e2), 1);
		assert_int_equal(mptcp_get_ext(c)->data_seq, 2);
		kfree_skb(era, c);
		kfree_skb(era, b);
	}
}

/* Two in one object: where they lie, what a removed one leaves, what a copy takes along. */
static void several(void **state)
{
	struct sk_buff *a = fresh(ERA_6_12), *b;
	struct skb_ext *ext;
	char *path;

	(void)state;
	assert_null(skb_ext_find(a, SKB_EXT_MPTCP));
	add_map(a, 7);
	ext = a->extensions;
	assert_int_equal(ext->offset[SKB_EXT_MPTCP], 1);
	assert_int_equal(ext->chunks, 5);
	path = skb_ext_add(a, SKB_EXT_SEC_PATH);
	memset(path, 0x5a, SKB_EXT_SEC_PATH_SIZE);
	assert_ptr_equal(a->extensions, ext);
	assert_int_equal(ext->offset[SKB_EXT_SEC_PATH], 5);
	assert_int_equal(ext->chunks, 16);
	assert_int_equal(a->active_extensions, 1 << SKB_EXT_MPTCP | 1 << SKB_EXT_SEC_PATH);
	skb_ext_add(a, SKB_EXT_BRIDGE_NF);
	assert_int_equal(ext->chunks, 20);
	good(a);

	/* Removed, it is not found; added again, its old bytes are. */
	skb_ext_del(a, SKB_EXT_SEC_PATH);
	assert_null(skb_ext_find(a, SKB_EXT_SEC_PATH));
	skb_ext_del(a, SKB_EXT_SEC_PATH);
	assert_ptr_equal(skb_ext_add(a, SKB_EXT_SEC_PATH), path);
	assert_int_equal(path[87], 0x5a);
	assert_int_equal(ext->chunks, 20);

	/* A copy on write has all of them, at the same places. */
	b = skb_clone(ERA_6_12, a);
	memset(skb_ext_add(b, SKB_EXT_SEC_PATH), 0xa5, SKB_EXT_SEC_PATH_SIZE);
	assert_int_equal(b->extensions->chunks, 20);
	assert_int_equal(mptcp_get_ext(b)->data_seq, 7);
	assert_int_equal(path[0], 0x5a);
	good(b);

	/* With the last one the object goes. */
	skb_ext_del(b, SKB_EXT_MPTCP);
	skb_ext_del(b, SKB_EXT_SEC_PATH);
	assert_non_null(b->extensions);
	skb_ext_del(b, SKB_EXT_BRIDGE_NF);
	assert_int_equal(b->active_extensions, 0);
	assert_null(b->extensions);
	kfree_skb(ERA_6_12, b);
	kfree_skb(ERA_6_12, a);
}

/* An object made beforehand takes the place of what was there. */
static void set_prepared(void **state)
{
	struct sk_buff *a = fresh(ERA_6_12), *b;
	struct skb_ext *ext = skb_ext_alloc(), *old;

	(void)state;
	assert_non_null(ext);
	assert_int_equal(refs(ext), 1);
	skb_ext_add(a, SKB_EXT_SEC_PATH);
	old = a->extensions;
	b = skb_clone(ERA_6_12, a);
	assert_ptr_equal(__skb_ext_set(a, SKB_EXT_MPTCP, ext), ext->data);
	assert_ptr_equal(a->extensions, ext);
	assert_int_equal(a->active_extensions, 1 << SKB_EXT_MPTCP);
	assert_int_equal(refs(ext), 1);
	assert_int_equal(refs(old), 1);
	skb_ext_reset(a);
	assert_int_equal(a->active_extensions, 0);
	skb_ext_copy(a, b);
	assert_int_equal(refs(old), 2);
	skb_ext_copy(a, b); /* lets go of one, gets one */
	assert_int_equal(refs(old), 2);
	kfree_skb(ERA_6_12, a);
	kfree_skb(ERA_6_12, b);
}

/* What makes a second sk_buff shares the object; a private head changes nothing about it. */
static void followed(void **state)
{
	struct page_frag_cache cache = { 0 };

	(void)state;
	for_each_era (era) {
		struct sk_buff *a = fresh(era), *n[4];
		struct skb_ext *ext;

		skb_reserve(a, 64);
		fill_linear(a, 100);
		add_map(a, 3);
		ext = a->extensions;
		n[0] = skb_clone(era, a); /* the companion */
		n[1] = skb_clone(era, a); /* a shell */
		n[2] = skb_copy(era, a);
		n[3] = pskb_copy(era, a);
		for (int i = 0; i < 4; i++) {
			assert_ptr_equal(n[i]->extensions, ext);
			assert_int_equal(n[i]->active_extensions, a->active_extensions);
			good(n[i]);
		}
		assert_int_equal(refs(ext), 5);
		assert_int_equal(pskb_expand_head(era, a, 0, 64), 0);
		assert_int_equal(skb_unclone_keeptruesize(era, n[0]), 0);
		assert_ptr_equal(a->extensions, ext);
		assert_int_equal(refs(ext), 5);
		skb_morph(era, n[1], n[2]);
		assert_int_equal(refs(ext), 5);
		skb_ext_del(n[2], SKB_EXT_MPTCP);
		assert_int_equal(refs(ext), 4);
		skb_morph(era, n[1], n[2]); /* a clone of one without: lets go */
		assert_int_equal(n[1]->active_extensions, 0);
		assert_int_equal(refs(ext), 3);
		assert_int_equal(pskb_expand_head(era, a, 0, 0), 0); /* the head is a's alone */
		for (int i = 0; i < 4; i++)
			kfree_skb(era, n[i]);
		assert_int_equal(refs(ext), 1);
		n[0] = build_skb(era, page_frag_alloc_align(&cache, 2048, 64), 2048);
		assert_non_null(n[0]);
		skb_ext_copy(n[0], a);
		page_frag_free(n[0]->head); /* as if the reference were somebody else's now */
		kfree_skb_partial(era, n[0], true);
		assert_int_equal(refs(ext), 1);
		kfree_skb(era, a);
	}
	page_frag_cache_drain(&cache);
}

/* The rules of joining: "to has, from lacks" is the only difference that is allowed. */
static void matches(void **state)
{
	struct sk_buff *a = fresh(ERA_6_12), *b = fresh(ERA_6_12);
	struct skb_ext *ext;

	(void)state;
	assert_true(mptcp_skb_can_collapse(a, b));
	add_map(a, 1);
	assert_true(mptcp_skb_can_collapse(a, b));
	assert_false(mptcp_skb_can_collapse(b, a));
	add_map(b, 1);
	assert_true(mptcp_skb_can_collapse(a, b));
	for (size_t i = 0; i < sizeof(struct mptcp_ext); i++) {
		u8 *byte = (u8 *)mptcp_get_ext(b) + i;

		*byte ^= 0x80;
		assert_false(mptcp_skb_can_collapse(a, b));
		*byte ^= 0x80;
	}
	ext = b->extensions;
	skb_ext_reset(a);
	mptcp_skb_ext_move(a, b);
	assert_ptr_equal(a->extensions, ext);
	assert_int_equal(refs(ext), 1);
	assert_int_equal(b->active_extensions, 0);
	mptcp_skb_ext_move(a, b); /* nothing to move */
	mptcp_skb_ext_copy(a, b); /* nothing to share */
	assert_int_equal(refs(ext), 1);
	kfree_skb(ERA_6_12, a);
	kfree_skb(ERA_6_12, b);
}

#ifdef SKB_TRACED
static void is_counted(unsigned int rmw, unsigned int allocs, unsigned int frees, u64 bytes)
{
	assert_int_equal(counted.rmw[SKB_C_EXT], rmw);
	assert_int_equal(counts_rmw(), 0);
	assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], allocs);
	assert_int_equal(counted.event[SKB_EV_OBJ_FREE], frees);
	assert_int_equal(counted.written[SKB_C_EXT], bytes);
	counts_start();
}

static void counts(void **state)
{
	struct sk_buff *a = fresh(ERA_6_12), *b = fresh(ERA_6_12);

	(void)state;
	counts_start();
	skb_ext_put(a);
	mptcp_skb_ext_copy(b, a);
	is_counted(0, 0, 0, 0);
	add_map(a, 1);
	is_counted(0, 1, 0, 0);
	add_map(a, 2);
	is_counted(0, 0, 0, 0);
	skb_ext_copy(b, a);
	is_counted(1, 0, 0, 0);
	add_map(a, 3); /* a copy: the header and the map; a reference of the old one goes */
	is_counted(1, 1, 0, 8 * (1 + 4));
	skb_ext_reset(b);
	is_counted(0, 0, 1, 0);
	mptcp_skb_ext_copy(b, a);
	is_counted(1, 0, 0, 0);
	skb_ext_put(b);
	b->active_extensions = 0;
	is_counted(1, 0, 0, 0);
	mptcp_skb_ext_move(b, a);
	is_counted(0, 0, 0, 0);
	kfree_skb(ERA_6_12, a);
	kfree_skb(ERA_6_12, b);
}

static bool fail_ext(enum skb_site site)
{
	return site == SKB_SITE_EXT;
}

/* Without memory nothing is lost, and nothing is shared less. */
static void no_memory(void **state)
{
	struct sk_buff *a = fresh(ERA_6_12), *b;
	struct sk_buff before;
	struct skb_ext *ext;

	(void)state;
	model_fail = fail_ext;
	before = *a;
	assert_null(skb_ext_add(a, SKB_EXT_MPTCP));
	assert_memory_equal(a, &before, sizeof(before));
	assert_null(skb_ext_alloc());
	model_fail = NULL;

	add_map(a, 9);
	ext = a->extensions;
	b = skb_clone(ERA_6_12, a);
	before = *a;
	model_fail = fail_ext;
	assert_null(skb_ext_add(a, SKB_EXT_MPTCP));
	assert_null(skb_ext_add(a, SKB_EXT_SEC_PATH));
	assert_memory_equal(a, &before, sizeof(before));
	assert_int_equal(refs(ext), 2);
	assert_int_equal(ext->chunks, 5);
	skb_ext_put(b);
	b->active_extensions = 0;
	assert_non_null(skb_ext_add(a, SKB_EXT_SEC_PATH)); /* alone: in place, no memory needed */
	model_fail = NULL;
	kfree_skb(ERA_6_12, b);
	kfree_skb(ERA_6_12, a);
}
#endif

/*
 * --- random programs
 * -------------------------------------------------------------------------------
 */

#define NR_LIVE 12

static struct one {
	struct sk_buff *skb;
	u8 value[SKB_EXT_NUM]; /* what each byte of an extension holds; checked if it is there */
} live[NR_LIVE];

/* Every object has the references that point to it, every extension the bytes that it was given. */
static void add_up(u64 op)
{
	for (int i = 0; i < NR_LIVE; i++) {
		struct sk_buff *skb = live[i].skb;
		int sharers = 0;

		if (!skb || !skb->active_extensions)
			continue;
		good(skb);
		for (int j = 0; j < NR_LIVE; j++)
			sharers += live[j].skb && live[j].skb->active_extensions &&
				   live[j].skb->extensions == skb->extensions;
		if (sharers != refs(skb->extensions))
			fail_msg("operation %llu: %d sk_buffs share an object with %d references",
				 (unsigned long long)op, sharers, refs(skb->extensions));
		for (int id = 0; id < SKB_EXT_NUM; id++) {
			const u8 *bytes = skb_ext_find(skb, id);

			for (int b = 0; bytes && b < skb_ext_type_len[id] * SKB_EXT_ALIGN; b++)
				if (bytes[b] != live[i].value[id])
					fail_msg("operation %llu: byte %d of extension %d is %#x",
						 (unsigned long long)op, b, id, bytes[b]);
		}
	}
}

#ifdef SKB_TRACED
static struct rng fail_rng;

static bool fail_sometimes(enum skb_site site)
{
	(void)site;
	return !rng_below(&fail_rng, 8);
}
#endif

static void random_op(struct rng *r, enum skb_era era)
{
	struct one *a = &live[rng_below(r, NR_LIVE)], *b = &live[rng_below(r, NR_LIVE)];
	enum skb_ext_id id = rng_below(r, SKB_EXT_NUM);
	struct skb_ext *ext;
	u8 *bytes;

	if (!a->skb) {
		a->skb = b->skb && a != b ? skb_clone(era, b->skb)
					  : alloc_skb_fclone(era, 64, NUMA_NO_NODE);
		if (a->skb && b->skb && a != b)
			memcpy(a->value, b->value, sizeof(a->value));
		return;
	}
	switch (rng_below(r, 6)) {
	case 0:
	case 1:
		bytes = skb_ext_add(a->skb, id);
		if (bytes) {
			a->value[id] = rng_next(r);
			memset(bytes, a->value[id], skb_ext_type_len[id] * SKB_EXT_ALIGN);
		}
		break;
	case 2:
		skb_ext_del(a->skb, id);
		break;
	case 3:
		if (b->skb && a != b) {
			skb_ext_copy(a->skb, b->skb);
			memcpy(a->value, b->value, sizeof(a->value));
		}
		break;
	case 4:
		ext = skb_ext_alloc();
		if (ext) {
			a->value[id] = rng_next(r);
			memset(__skb_ext_set(a->skb, id, ext), a->value[id],
			       skb_ext_type_len[id] * SKB_EXT_ALIGN);
		}
		break;
	default:
		kfree_skb(era, a->skb);
		a->skb = NULL;
	}
}

static void random_programs(void **state)
{
	struct rng r = { model_seed("skb_ext", 20201119) };
	u64 ops = model_ops(200000);

	(void)state;
#ifdef SKB_TRACED
	counts_start();
	fail_rng.state = r.state + 1;
	model_fail = fail_sometimes;
#endif
	for_each_era (era) {
		for (u64 op = 0; op < ops / SKB_ERA_NR; op++) {
			random_op(&r, era);
			add_up(op);
		}
		for (int i = 0; i < NR_LIVE; i++) {
			if (live[i].skb)
				kfree_skb(era, live[i].skb);
			live[i].skb = NULL;
		}
	}
#ifdef SKB_TRACED
	model_fail = NULL;
	assert_int_equal(objects_out(), 0);
#endif
}

#ifndef SKB_TRACED /* the counters of the traced build are one thread's */
/*
 * --- two CPUs
 * ----------------------------------------------------------------------------------
 */

static struct test_ring to_other;

#define SHARED_ROUNDS 20000

/* Reads the map of each clone and lets go of it. */
static void *other_cpu(void *arg)
{
	int *wrong = arg;

	BUG_ON(skb_cpu_attach(1, 0));
	for (int i = 0; i < SHARED_ROUNDS; i++) {
		struct sk_buff *clone;

		while (!(clone = test_ring_get(&to_other)))
			cpu_relax();
		*wrong += mptcp_get_ext(clone)->data_seq != (u8)i;
		kfree_skb(ERA_6_12, clone);
	}
	return NULL;
}

/* The owner writes by copy on write while the clone's CPU reads and lets go. */
static void two_cpus(void **state)
{
	pthread_t thread;
	int wrong = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, other_cpu, &wrong), 0);
	for (int i = 0; i < SHARED_ROUNDS; i++) {
		struct sk_buff *a = fresh(ERA_6_12), *clone;

		add_map(a, i);
		clone = skb_clone(ERA_6_12, a);
		while (!test_ring_put(&to_other, clone))
			cpu_relax();
		if (i & 1)
			add_map(a, i + 1);
		kfree_skb(ERA_6_12, a);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wrong, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),	   cmocka_unit_test(golden),
		cmocka_unit_test(several),	   cmocka_unit_test(set_prepared),
		cmocka_unit_test(followed),	   cmocka_unit_test(matches),
#ifdef SKB_TRACED
		cmocka_unit_test(counts),	   cmocka_unit_test(no_memory),
#endif
		cmocka_unit_test(random_programs),
#ifndef SKB_TRACED
		cmocka_unit_test(two_cpus),
#endif
	};

	return cmocka_run_group_tests(tests, skb_test_start, NULL);
}
