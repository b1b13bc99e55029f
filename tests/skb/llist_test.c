/* SPDX-License-Identifier: MIT */
/*
 * The model's llist beside liburcu's lfstack and wfstack: the same answers, with the opposite
 * polarity in liburcu; the RMW of each; nothing lost and nothing twice between two CPUs.
 */
#include "skb/llist.h"
#include "skb/llist_urcu.h"
#include "tests/support/model.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

struct item {
	union {
		struct llist_node llist;
		struct cds_lfs_node lfs;
		struct cds_wfs_node wfs;
	};
	int producer, nr;
};

static struct llist_head llist;
static struct __cds_lfs_stack lfs;
static struct __cds_wfs_stack wfs;

/* Both: true if the list was empty, as llist_add() has it. */
static bool add_llist(struct item *i)
{
	return llist_add(&i->llist, &llist);
}

static bool add_lfs(struct item *i)
{
	cds_lfs_node_init(&i->lfs);
	return !cds_lfs_push(&lfs, &i->lfs);
}

static bool add_wfs(struct item *i)
{
	cds_wfs_node_init(&i->wfs);
	return !cds_wfs_push(&wfs, &i->wfs);
}

/* Everything that is there, to FN in the order in which it comes; how many. */
static int take_llist(void (*fn)(struct item *))
{
	struct llist_node *n = llist_del_all(&llist), *next;
	int nr = 0;

	for (; n; n = next, nr++) {
		next = n->next; /* FN may let go of it */
		fn(container_of(n, struct item, llist));
	}
	return nr;
}

static int take_lfs(void (*fn)(struct item *))
{
	struct cds_lfs_head *all = __cds_lfs_pop_all(&lfs);
	struct cds_lfs_node *n, *next;
	int nr = 0;

	for (n = all ? &all->node : NULL; n; n = next, nr++) {
		next = n->next;
		fn(container_of(n, struct item, lfs));
	}
	return nr;
}

static int take_wfs(void (*fn)(struct item *))
{
	struct cds_wfs_head *all = __cds_wfs_pop_all(&wfs);
	struct cds_wfs_node *n, *next;
	int nr = 0;

	/* Ends at CDS_WFS_END, not at NULL; may wait for a push to link its node. */
	for (n = all ? cds_wfs_first(all) : NULL; n; n = next, nr++) {
		next = cds_wfs_next_blocking(n);
		fn(container_of(n, struct item, wfs));
	}
	return nr;
}

static bool empty_llist(void)
{
	return llist_empty(&llist);
}

static bool empty_lfs(void)
{
	return cds_lfs_empty(&lfs);
}

static bool empty_wfs(void)
{
	return cds_wfs_empty(&wfs);
}

static const struct kind {
	const char *name;
	bool (*add)(struct item *i);
	int (*take)(void (*fn)(struct item *i));
	bool (*is_empty)(void);
	int rmw_empty, rmw_more; /* of an add */
} kinds[] = {
	{ "llist", add_llist, take_llist, empty_llist, 1, 1 },
	/* It tries its luck with an empty stack first. */
	{ "lfstack", add_lfs, take_lfs, empty_lfs, 1, 2 },
	{ "wfstack", add_wfs, take_wfs, empty_wfs, 1, 1 },
};

static int init(void **state)
{
	(void)state;
	init_llist_head(&llist);
	__cds_lfs_init(&lfs);
	__cds_wfs_init(&wfs);
	return 0;
}

static struct item *seen[16];
static int nr_seen;

static void note(struct item *i)
{
	seen[nr_seen++] = i;
}

static void one_thread(void **state)
{
	struct item item[4];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		const struct kind *kind = &kinds[k];

		for (int round = 0; round < 3; round++) {
			assert_true(kind->is_empty());
			assert_int_equal(kind->take(note), 0);
			for (int i = 0; i < 4; i++) {
				assert_int_equal(kind->add(&item[i]), i == 0);
				assert_false(kind->is_empty());
			}
			nr_seen = 0;
			assert_int_equal(kind->take(note), 4);
			for (int i = 0; i < 4; i++)
				assert_ptr_equal(seen[i], &item[3 - i]); /* the last one first */
		}
	}
}

static void batch_and_reverse(void **state)
{
	struct llist_node n[5];

	(void)state;
	assert_null(llist_reverse_order(NULL));
	assert_true(llist_add(&n[0], &llist));
	n[3].next = &n[2];
	n[2].next = &n[1];
	assert_false(llist_add_batch(&n[3], &n[1], &llist));
	assert_false(llist_add(&n[4], &llist));
	struct llist_node *all = llist_del_all(&llist);

	assert_ptr_equal(all, &n[4]);
	assert_null(llist_del_all(&llist));
	all = llist_reverse_order(all);
	for (int i = 0; i < 5; i++, all = all->next)
		assert_ptr_equal(all, &n[i]);
	assert_null(all);
	/* A batch into an empty list says so. */
	n[1].next = &n[0];
	assert_true(llist_add_batch(&n[1], &n[0], &llist));
	assert_ptr_equal(llist_del_all(&llist), &n[1]);
}

/* An sk_buff on such a list is on no other: the node is its next. */
static void node_of_an_sk_buff(void **state)
{
	struct sk_buff a, b;

	(void)state;
	llist_add(&a.ll_node, &llist);
	llist_add(&b.ll_node, &llist);
	assert_ptr_equal(container_of(llist_del_all(&llist), struct sk_buff, ll_node), &b);
	assert_ptr_equal(b.next, &a);
	assert_null(a.next);
}

#ifdef SKB_TRACED
static void rmw(void **state)
{
	struct item item[3];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (int i = 0; i < 3; i++) {
			counts_start();
			kinds[k].add(&item[i]);
			assert_int_equal(counted.rmw[SKB_C_LLIST],
					 i ? kinds[k].rmw_more : kinds[k].rmw_empty);
			assert_int_equal(counts_rmw(), counted.rmw[SKB_C_LLIST]);
		}
		counts_start();
		nr_seen = 0;
		assert_int_equal(kinds[k].take(note), 3);
		assert_int_equal(counts_rmw(), 1);
		counts_start();
		kinds[k].is_empty();
		assert_int_equal(counts_rmw(), 0);
	}
}

/* Another CPU adds at each moment of an add: both are on the list, after one try more. */
static struct llist_node late;
static int late_at;

static void add_late(void)
{
	if (late_at-- == 0) {
		late.next = llist.first;
		llist.first = &late;
	}
}

static void one_in_between(void **state)
{
	struct llist_node first, n;

	(void)state;
	/* Before the load, the link, and the exchange: the load of the last two is stale. */
	for (int at = 0; at < 3; at++) {
		init_llist_head(&llist);
		llist_add(&first, &llist);
		counts_start();
		late_at = at;
		model_access = add_late;
		assert_false(llist_add(&n, &llist));
		model_access = NULL;
		assert_int_equal(counts_rmw(), at == 0 ? 1 : 2);
		assert_ptr_equal(llist.first, &n);
		assert_ptr_equal(n.next, &late);
		assert_ptr_equal(late.next, &first);
	}
}
#endif

#define EACH 20000

static struct item items[2][EACH];
static const struct kind *used;
static int last_nr[2], taken;

static void *produce(void *arg)
{
	struct item *mine = arg;

	for (int i = 0; i < EACH; i++) {
		used->add(&mine[i]);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static int got[2];
static bool twice, disorder;

/* Taken at once come in falling numbers of each producer, and none twice. */
static void check_item(struct item *i)
{
	if (i->nr >= last_nr[i->producer])
		disorder = true;
	last_nr[i->producer] = i->nr;
	if (i->nr < 0)
		twice = true;
	got[i->producer]++;
	i->nr = -1;
	taken++;
}

/* Two producers, one taker: each item once, and each producer's in order within a take. */
static void two_producers(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		pthread_t t[2];

		used = &kinds[k];
		taken = got[0] = got[1] = 0;
		twice = disorder = false;
		for (int p = 0; p < 2; p++)
			for (int i = 0; i < EACH; i++)
				items[p][i] = (struct item){ .producer = p, .nr = i };
		for (int p = 0; p < 2; p++)
			assert_int_equal(pthread_create(&t[p], NULL, produce, items[p]), 0);
		while (taken < 2 * EACH) {
			last_nr[0] = last_nr[1] = EACH;
			if (!used->take(check_item))
				sched_yield();
		}
		for (int p = 0; p < 2; p++)
			pthread_join(t[p], NULL);
		assert_int_equal(used->take(check_item), 0);
		assert_int_equal(got[0], EACH);
		assert_int_equal(got[1], EACH);
		assert_false(twice);
		assert_false(disorder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_thread, init),
		cmocka_unit_test_setup(batch_and_reverse, init),
		cmocka_unit_test_setup(node_of_an_sk_buff, init),
#ifdef SKB_TRACED
		cmocka_unit_test_setup(rmw, init),
		cmocka_unit_test_setup(one_in_between, init),
#endif
		cmocka_unit_test_setup(two_producers, init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
