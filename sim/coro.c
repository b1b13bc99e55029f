/* SPDX-License-Identifier: MIT */
#include "sim/coro.h"
#include "sim/coro_switch.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define CORO_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define CORO_TSAN
#endif

#ifdef CORO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CORO_TSAN
#include <sanitizer/tsan_interface.h>
#endif

struct coro {
	struct coro_point here; /* where it goes on */
	struct coro_point caller; /* where whoever resumed it goes on */
	struct coro *caller_coro;
	void (*fn)(void *arg);
	void *arg;
	char *map; /* the guard page, then the stack */
	size_t map_bytes, guard_bytes;
	bool running, done;
#ifdef CORO_ASAN
	void *fake_here, *fake_caller;
	const void *caller_stack;
	size_t caller_bytes;
#endif
#ifdef CORO_TSAN
	void *fiber, *caller_fiber;
#endif
};

static __thread struct coro *self;

/* Into C; back when it yields or ends. */
static void enter(struct coro *c)
{
#ifdef CORO_ASAN
	__sanitizer_start_switch_fiber(&c->fake_caller, c->map + c->guard_bytes,
				       c->map_bytes - c->guard_bytes);
#endif
#ifdef CORO_TSAN
	c->caller_fiber = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(c->fiber, 0);
#endif
	coro_point_switch(&c->caller, &c->here);
#ifdef CORO_ASAN
	__sanitizer_finish_switch_fiber(c->fake_caller, NULL, NULL);
#endif
}

/* Out of C, for good if it is DONE. */
static void leave(struct coro *c)
{
#ifdef CORO_ASAN
	__sanitizer_start_switch_fiber(c->done ? NULL : &c->fake_here, c->caller_stack,
				       c->caller_bytes);
#endif
#ifdef CORO_TSAN
	__tsan_switch_to_fiber(c->caller_fiber, 0);
#endif
	coro_point_switch(&c->here, &c->caller);
#ifdef CORO_ASAN
	__sanitizer_finish_switch_fiber(c->fake_here, &c->caller_stack, &c->caller_bytes);
#endif
}

static void coro_main(void)
{
	struct coro *c = self;

#ifdef CORO_ASAN
	__sanitizer_finish_switch_fiber(NULL, &c->caller_stack, &c->caller_bytes);
#endif
	c->fn(c->arg);
	c->done = true;
	leave(c);
	skb_bug(__FILE__, __LINE__, "a coroutine was resumed after its end");
}

struct coro *coro_new(void (*fn)(void *arg), void *arg, size_t stack_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct coro *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fn = fn;
	c->arg = arg;
	c->guard_bytes = page;
	c->map_bytes = page + ALIGN(stack_bytes ? stack_bytes : (size_t)CORO_STACK_BYTES, page);
	c->map = mmap(NULL, c->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (c->map == MAP_FAILED || mprotect(c->map, page, PROT_NONE)) {
		if (c->map != MAP_FAILED)
			munmap(c->map, c->map_bytes);
		free(c);
		return NULL;
	}
#ifdef CORO_TSAN
	c->fiber = __tsan_create_fiber(0);
#endif
	coro_point_init(&c->here, c->map + page, c->map_bytes - page, coro_main);
	return c;
}

void coro_resume(struct coro *c)
{
	BUG_ON(c->done || c->running);
	c->running = true;
	c->caller_coro = self;
	self = c;
	enter(c);
	self = c->caller_coro;
	c->running = false;
}

void coro_yield(void)
{
	BUG_ON(!self);
	leave(self);
}

struct coro *coro_self(void)
{
	return self;
}

bool coro_done(const struct coro *c)
{
	return c->done;
}

void coro_free(struct coro *c)
{
	if (!c)
		return;
	BUG_ON(c->running);
#ifdef CORO_TSAN
	__tsan_destroy_fiber(c->fiber);
#endif
#ifdef CORO_ASAN
	/* The next mapping here must not inherit what lies poisoned. */
	__asan_unpoison_memory_region(c->map, c->map_bytes);
#endif
	munmap(c->map, c->map_bytes);
	free(c);
}

static unsigned int next_ready(u64 ready, unsigned int after)
{
	u64 above = after >= CORO_MAX - 1 ? 0 : ready & (~0ull << (after + 1));

	return __builtin_ctzll(above ? above : ready);
}

u64 coro_run(struct coro *const *c, unsigned int nr, unsigned int (*pick)(void *ctx, u64 ready),
	     void *ctx)
{
	unsigned int next = CORO_MAX - 1;
	u64 ready = 0, resumes = 0;

	BUG_ON(nr > CORO_MAX);
	for (unsigned int i = 0; i < nr; i++)
		if (!coro_done(c[i]))
			ready |= 1ull << i;
	while (ready) {
		next = pick ? pick(ctx, ready) : next_ready(ready, next);
		BUG_ON(next >= nr || !(ready >> next & 1));
		coro_resume(c[next]);
		resumes++;
		if (coro_done(c[next]))
			ready &= ~(1ull << next);
	}
	return resumes;
}
