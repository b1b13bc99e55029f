/* SPDX-License-Identifier: MIT */
/*
 * What skb/llist.h promises beside other CPUs: producers that add all the time, two flushers that take.
 *
 * Usage: llist_stress_test [ADDS]: adds of all producers together, 10 million if not given. Each promise of the header's
 * table is checked on each entry; entries are used again at once, so that an entry that is on two lists, or is touched
 * after its add, is found. Under the thread sanitizer the plain fields of an entry prove that its owner changes hands.
 */
#include "skb/llist.h"
#include "tests/support/model.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PRODUCERS 4
#define FLUSHERS  2
#define POOL	  256 /* entries of a producer */
#define LOST_S \
	60 /* an entry that is out for so long is lost: a take lets go of its entries at once */
#define MAGIC 0x9e3779b97f4a7c15u

struct entry {
	struct llist_node node;
	int out; /* through the seam: on the list, or being taken */
	unsigned int producer; /* plain, as are the next two: whose entry it is owns them */
	u64 seq; /* counts a producer's adds from 1 */
	u64 word; /* told by seq: written before the add */
} ____cacheline_aligned;

struct producer {
	unsigned int id;
	u64 adds; /* to do */
	u64 firsts; /* times that llist_add() said that the list was empty */
	struct entry pool[POOL];
} ____cacheline_aligned;

struct seen {
	u64 last[PRODUCERS]; /* highest number that an earlier take of this flusher held */
	u64 nr[PRODUCERS], sum[PRODUCERS];
	u64 takes; /* that were not empty */
	u64 twice, disorder, stale; /* broken promises */
} ____cacheline_aligned;

static struct llist_head head;
static struct producer producers[PRODUCERS];
static struct seen flushers[FLUSHERS];
static atomic_t working; /* producers that are not done */
static atomic_t lost; /* somebody's entry did not come back */
static u64 total_adds = 10000000;

/* Spins first: who yields meets nobody on the list. */
static void wait_a_little(unsigned int *tries)
{
	if (++*tries % 256)
		cpu_relax();
	else
		sched_yield();
}

/* Waits until E is free again; false if it never is, since some CPU lost it. */
static bool wait_for(struct entry *e)
{
	time_t since = 0;

	for (unsigned int tries = 0; smp_load_acquire(&e->out, SKB_C_OTHER);) {
		struct timespec now;

		wait_a_little(&tries);
		if (tries % 4096)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (!since)
			since = now.tv_sec;
		if (atomic_read(&lost, SKB_C_OTHER) || now.tv_sec - since > LOST_S)
			return false;
	}
	return true;
}

static void *produce(void *arg)
{
	struct producer *p = arg;

	for (u64 seq = 1; seq <= p->adds; seq++) {
		struct entry *e = &p->pool[seq % POOL];

		if (!wait_for(e)) {
			atomic_set(&lost, 1, SKB_C_OTHER);
			break;
		}
		skb_store(&e->out, 1, SKB_C_OTHER);
		e->producer = p->id;
		e->seq = seq;
		e->word = seq * MAGIC;
		p->firsts += llist_add(&e->node, &head);
	}
	atomic_dec_and_test(&working, SKB_C_OTHER);
	return NULL;
}

/* One take, looked through; its entries go back to their producers. How many there were. */
static u64 look_through(struct seen *s, struct llist_node *n)
{
	u64 first[PRODUCERS] = { 0 }, before[PRODUCERS], nr = 0;

	for (unsigned int p = 0; p < PRODUCERS; p++)
		before[p] = ~0ull;
	for (struct llist_node *next; n; n = next, nr++) {
		struct entry *e = container_of(n, struct entry, node);
		unsigned int p = e->producer;

		next = n->next;
		if (nr >= PRODUCERS * POOL) { /* more than there are: a circle */
			s->twice++;
			atomic_set(&lost, 1, SKB_C_OTHER);
			break;
		}
		s->twice += !skb_load(&e->out, SKB_C_OTHER);
		s->stale += e->word != e->seq * MAGIC;
		/* The last one first, and nothing older than what this flusher has had. */
		s->disorder += e->seq >= before[p] || e->seq <= s->last[p];
		before[p] = e->seq;
		first[p] = max(first[p], e->seq);
		s->nr[p]++;
		s->sum[p] += e->seq;
		smp_store_release(&e->out, 0, SKB_C_OTHER);
	}
	for (unsigned int p = 0; p < PRODUCERS; p++)
		s->last[p] = max(s->last[p], first[p]);
	s->takes += nr > 0;
	return nr;
}

static void *flush(void *arg)
{
	unsigned int tries = 0;

	for (;;) {
		/* Before the take: what is added afterwards is somebody's who is still working. */
		bool last = !atomic_read_acquire(&working, SKB_C_OTHER);

		if (look_through(arg, llist_del_all(&head)))
			continue;
		if (last)
			return NULL;
		wait_a_little(&tries);
	}
}

static void start_anew(u64 adds)
{
	memset(producers, 0, sizeof(producers));
	memset(flushers, 0, sizeof(flushers));
	init_llist_head(&head);
	atomic_set(&working, PRODUCERS, SKB_C_OTHER);
	for (unsigned int p = 0; p < PRODUCERS; p++) {
		producers[p].id = p;
		producers[p].adds = adds / PRODUCERS;
	}
}

static void nothing_lost(void **state)
{
	pthread_t thread[PRODUCERS + FLUSHERS];
	u64 firsts = 0, takes = 0;

	(void)state;
	start_anew(total_adds);
	for (unsigned int f = 0; f < FLUSHERS; f++)
		assert_int_equal(pthread_create(&thread[PRODUCERS + f], NULL, flush, &flushers[f]),
				 0);
	for (unsigned int p = 0; p < PRODUCERS; p++)
		assert_int_equal(pthread_create(&thread[p], NULL, produce, &producers[p]), 0);
	for (unsigned int i = 0; i < PRODUCERS + FLUSHERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_read(&lost, SKB_C_OTHER), 0);
	assert_true(llist_empty(&head));
	for (unsigned int p = 0; p < PRODUCERS; p++) {
		u64 adds = producers[p].adds, nr = 0, sum = 0;

		for (unsigned int f = 0; f < FLUSHERS; f++) {
			nr += flushers[f].nr[p];
			sum += flushers[f].sum[p];
		}
		assert_int_equal(nr, adds);
		assert_true(sum == adds * (adds + 1) / 2);
		firsts += producers[p].firsts;
	}
	for (unsigned int f = 0; f < FLUSHERS; f++) {
		assert_int_equal(flushers[f].twice, 0);
		assert_int_equal(flushers[f].disorder, 0);
		assert_int_equal(flushers[f].stale, 0);
		takes += flushers[f].takes;
	}
	/* Each take that found something was preceded by exactly one add that found nothing. */
	assert_int_equal(firsts, takes);
	print_message("%llu adds in %llu takes\n", (unsigned long long)total_adds,
		      (unsigned long long)takes);
}

/* What the looking finds: a broken promise of each kind, made by hand. */
static struct entry *hand_made(unsigned int i, u64 seq)
{
	struct entry *e = &producers[0].pool[i];

	*e = (struct entry){ .out = 1, .seq = seq, .word = seq * MAGIC };
	return e;
}

static u64 look_at(struct seen *s, struct entry *first, struct entry *second)
{
	first->node.next = second ? &second->node : NULL;
	if (second)
		second->node.next = NULL;
	return look_through(s, &first->node);
}

static void looking_sees(void **state)
{
	struct seen *s = &flushers[0];

	(void)state;
	start_anew(0);
	assert_int_equal(look_at(s, hand_made(0, 2), hand_made(1, 1)), 2);
	assert_int_equal(s->twice + s->disorder + s->stale, 0);
	assert_int_equal(s->takes, 1);
	/* Older than what was taken before; then two of one take in the order of their adds. */
	look_at(s, hand_made(0, 2), NULL);
	assert_int_equal(s->disorder, 1);
	look_at(s, hand_made(0, 3), hand_made(1, 4));
	assert_int_equal(s->disorder, 2);
	assert_int_equal(s->twice + s->stale, 0);
	struct entry *e = hand_made(0, 5);

	e->out = 0;
	look_at(s, e, NULL);
	assert_int_equal(s->twice, 1);
	e = hand_made(0, 6);
	e->word = 0;
	look_at(s, e, NULL);
	assert_int_equal(s->stale, 1);
	assert_int_equal(look_through(s, NULL), 0);
	assert_int_equal(s->takes, 5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looking_sees),
		cmocka_unit_test(nothing_lost),
	};
	char *end = NULL;

	if (argc > 1)
		total_adds = strtoull(argv[1], &end, 10);
	if (argc > 2 || (end && (*end || !*argv[1])) || total_adds < PRODUCERS ||
	    total_adds > 100000000000ull) {
		fprintf(stderr, "llist_stress_test: %s: the number of adds is wanted, 4 to 10^11\n",
			argc > 1 ? argv[1] : "");
		return 2;
	}
	/* An emulated CPU takes 50 times as long. */
	if (getenv("SKB_EMULATED") && argc < 2)
		total_adds /= 50;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
