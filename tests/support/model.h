/* SPDX-License-Identifier: MIT */
/*
 * What every test of the model needs: memory and a CPU, a seed that replays, and in the traced
 * build a sink that counts, makes allocations fail, and calls a test at every access.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include "skb/page_alloc.h"
#include "skb/skbuff.h"

/* Behind the model's headers: cmocka makes macros of common words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

/* Page memory of PAGES pages on one node, objects from ALLOCATOR, the calling thread as CPU 0. */
static inline void model_start(const char *allocator, size_t pages)
{
	assert_int_equal(obj_init(allocator, 1), 0);
	assert_int_equal(page_alloc_init(1, pages), 0);
	assert_int_equal(skb_cpu_attach(0, 0), 0);
}

/* Pages that somebody still holds; exact when no CPU is in the allocator. */
static inline size_t model_pages_in_use(void)
{
	struct zone_stats z;

	zone_stats(0, &z);
	return z.nr_pages - z.nr_free - z.nr_pcp;
}

/* The allocator to test with: glibc where a sanitizer should see into objects. */
#if defined(__SANITIZE_ADDRESS__)
#define MODEL_ALLOCATOR "glibc"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MODEL_ALLOCATOR "glibc"
#endif
#endif
#ifndef MODEL_ALLOCATOR
#define MODEL_ALLOCATOR "slub"
#endif

/*
 * --- random numbers
 * ---------------------------------------------------------------------------------------
 */

struct rng {
	u64 state;
};

/* splitmix64: any seed will do, and every draw is one multiplication or two. */
static inline u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 to N - 1. */
static inline u32 rng_below(struct rng *r, u32 n)
{
	return rng_next(r) % n;
}

/* The seed: SKB_SEED if set, so that a failure replays, else FALLBACK. Printed either way. */
static inline u64 model_seed(const char *test, u64 fallback)
{
	const char *s = getenv("SKB_SEED");
	u64 seed = s ? strtoull(s, NULL, 0) : fallback;

	printf("%s: seed %#llx (SKB_SEED=%#llx replays it)\n", test, (unsigned long long)seed,
	       (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* How many random operations: SKB_OPS if set, else FALLBACK. */
static inline u64 model_ops(u64 fallback)
{
	const char *s = getenv("SKB_OPS");

	return s ? strtoull(s, NULL, 0) : fallback;
}

/*
 * --- the traced build's sink
 * -------------------------------------------------------------------------------
 */

#ifdef SKB_TRACED
struct counts {
	u64 rmw[SKB_C_NR];
	u64 store[SKB_C_NR];
	u64 written[SKB_C_NR];
	u64 event[SKB_EV_NR];
};

static struct counts counted;
static bool (*model_fail)(enum skb_site site); /* NULL: nothing fails */
static void (*model_access)(void); /* NULL, or called before each access */

static void counts_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
			  size_t bytes)
{
	(void)addr;
	if (kind == SKB_RMW)
		counted.rmw[cls]++;
	else if (kind == SKB_STORE)
		counted.store[cls]++;
	else if (kind == SKB_RANGE_WRITE)
		counted.written[cls] += bytes;
	if (model_access)
		model_access();
}

static void counts_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)addr, (void)n;
	counted.event[ev]++;
}

static bool counts_fail(enum skb_site site)
{
	return model_fail && model_fail(site);
}

static const struct skb_trace_sink counting_sink = { counts_access, counts_event, counts_fail };

static inline void counts_start(void)
{
	counted = (struct counts){ 0 };
	skb_trace_sink = &counting_sink;
}

/* Every RMW but those of socket accounting and locks: what the semantics count. */
static inline u64 counts_rmw(void)
{
	return counted.rmw[SKB_C_PAGE] + counted.rmw[SKB_C_DATAREF] + counted.rmw[SKB_C_FCLONE] +
	       counted.rmw[SKB_C_USERS] + counted.rmw[SKB_C_LLIST] + counted.rmw[SKB_C_SLAB] +
	       counted.rmw[SKB_C_UARG];
}
#endif

#endif
