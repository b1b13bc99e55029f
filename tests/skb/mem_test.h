/* SPDX-License-Identifier: MIT */
/* What the tests of pages and objects share. */
#ifndef TESTS_SKB_MEM_TEST_H
#define TESTS_SKB_MEM_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "skb/atomic.h"

/* xorshift64: the state is never 0. */
static inline u64 test_rand(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* SKB_SEED replays a run; the seed of each run is printed. */
static inline u64 test_seed(void)
{
	const char *env = getenv("SKB_SEED");
	u64 seed = env ? strtoull(env, NULL, 0) : (u64)time(NULL) * 2654435761u ^ (u64)getpid();

	printf("SKB_SEED=%#lx\n", seed);
	return seed ? seed : 1;
}

/* True if FN ends the process by skb_bug(); what was said is in the SIZE bytes of TEXT. */
static inline bool is_bug_saying(void (*fn)(void), char *text, size_t size)
{
	int fd[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* cmocka turns SIGABRT into a failed test: not here. */
		signal(SIGABRT, SIG_DFL);
		dup2(fd[1], 2);
		fn();
		_exit(0);
	}
	close(fd[1]);
	n = read(fd[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return n > 0 && strstr(text, "BUG at") && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static inline bool is_bug(void (*fn)(void))
{
	char text[256];

	return is_bug_saying(fn, text, sizeof(text));
}

/* Pointers from one thread to another. */
#define TEST_RING_SIZE 512
struct test_ring {
	void *slot[TEST_RING_SIZE];
	unsigned long head ____cacheline_aligned; /* written by the producer */
	unsigned long tail ____cacheline_aligned; /* written by the consumer */
};

static inline bool test_ring_put(struct test_ring *r, void *p)
{
	if (r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == TEST_RING_SIZE)
		return false;
	r->slot[r->head % TEST_RING_SIZE] = p;
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
	return true;
}

static inline void *test_ring_get(struct test_ring *r)
{
	void *p;

	if (r->tail == __atomic_load_n(&r->head, __ATOMIC_ACQUIRE))
		return NULL;
	p = r->slot[r->tail % TEST_RING_SIZE];
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
	return p;
}

#ifdef SKB_TRACED
/* Counts what the calling thread does; makes allocations at the sites of fail_mask fail. */
struct test_counts {
	unsigned long rmw[SKB_C_NR];
	unsigned long event[SKB_EV_NR];
	unsigned long event_n[SKB_EV_NR]; /* sum of the events' n */
};
static __thread struct test_counts test_counts;
static unsigned int test_fail_mask;

static void test_count_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
			      size_t bytes)
{
	(void)addr, (void)bytes;
	if (kind == SKB_RMW)
		test_counts.rmw[cls]++;
}

static void test_count_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)addr;
	test_counts.event[ev]++;
	test_counts.event_n[ev] += n;
}

static bool test_fail(enum skb_site site)
{
	return test_fail_mask >> site & 1;
}

static const struct skb_trace_sink test_sink = {
	.access = test_count_access,
	.event = test_count_event,
	.fail = test_fail,
};

static inline unsigned long test_rmw_total(void)
{
	unsigned long n = 0;

	for (int i = 0; i < SKB_C_NR; i++)
		n += test_counts.rmw[i];
	return n;
}

static inline void test_counts_reset(void)
{
	memset(&test_counts, 0, sizeof(test_counts));
}
#endif

#endif
