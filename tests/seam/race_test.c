/* SPDX-License-Identifier: MIT */
/*
 * What ThreadSanitizer sees through the seam, on two threads: the last put frees (1), an object is
 * handed over through an index (2) and through an exchange (3), a spinlock protects (4), the last
 * owner only reads (5).
 *
 * As it stands: no report. Each PLANT_ breaks one of these and must be reported:
 *   PLANT_PUT    a put that is not atomic
 *   PLANT_READ   a relaxed load where the last owner's acquire belongs
 *   PLANT_INDEX  a plain store where the hand-over's release belongs
 *   PLANT_LOCK   no lock
 */
#include "skb/atomic.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000

struct obj {
	atomic_t users;
	int data[8];
	struct obj *next;
};

static struct obj *shared;
static struct obj *list;
static spinlock_t lock;
static long protected;
static int turn;

static void put(struct obj *o)
{
#ifdef PLANT_PUT
	if (--o->users.counter == 0)
		free(o);
#elif defined(PLANT_READ)
	if (atomic_read(&o->users, SKB_C_USERS) == 1 || atomic_dec_and_test(&o->users, SKB_C_USERS))
		free(o);
#else
	if (atomic_read_acquire(&o->users, SKB_C_USERS) == 1 ||
	    atomic_dec_and_test(&o->users, SKB_C_USERS))
		free(o);
#endif
}

static void add(long n)
{
#ifdef PLANT_LOCK
	(void)lock;
	protected += n;
#else
	spin_lock(&lock, SKB_C_LOCK);
	protected += n;
	spin_unlock(&lock, SKB_C_LOCK);
#endif
}

static void hand_over(int value)
{
#ifdef PLANT_INDEX
	skb_store(&turn, value, SKB_C_RING);
#else
	smp_store_release(&turn, value, SKB_C_RING);
#endif
}

static void wait_for(int value)
{
	while (smp_load_acquire(&turn, SKB_C_RING) < value)
		sched_yield();
}

static void *reader(void *arg)
{
	long *sum = arg;

	for (int r = 0; r < ROUNDS; r++) {
		struct obj *o;

		wait_for(2 * r + 1);
		o = shared;
		for (int i = 0; i < 8; i++)
			*sum += o->data[i];
		put(o);
		for (o = xchg(&list, NULL, SKB_C_LLIST); o;) {
			struct obj *next = o->next;

			*sum += o->data[0];
			free(o);
			o = next;
		}
		add(1);
		smp_store_release(&turn, 2 * r + 2, SKB_C_RING);
	}
	return NULL;
}

int main(void)
{
	pthread_t t;
	long sum = 0, sum_of_mine = 0;

	if (pthread_create(&t, NULL, reader, &sum))
		return 1;
	for (int r = 0; r < ROUNDS; r++) {
		struct obj *o = calloc(1, sizeof(*o)), *p = calloc(1, sizeof(*p));

		o->users.counter = 2;
		o->data[7] = 1;
		p->data[0] = 1;
		p->next = NULL;
		while (cmpxchg(&list, NULL, p, SKB_C_LLIST))
			;
		shared = o;
		hand_over(2 * r + 1);
		sum_of_mine += o->data[7];
		put(o);
		add(1); /* behind put(), whose RMW would order it before the reader's */
		wait_for(2 * r + 2);
	}
	pthread_join(t, NULL);
	printf("sum %ld, protected %ld\n", sum, protected);
	return sum != 2L * ROUNDS || protected != 2L * ROUNDS || sum_of_mine != ROUNDS;
}
