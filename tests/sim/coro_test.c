/* SPDX-License-Identifier: MIT */
/* Coroutines: order, what a switch preserves, many and deep ones, the guard page, misuse. */
#include "sim/coro.h"
#include "tests/skb/mem_test.h"
#include "tests/support/model.h"

#include <string.h>

static char trail[4096];
static size_t trail_len;

static void leave_mark(char c)
{
	assert_true(trail_len < sizeof(trail) - 1);
	trail[trail_len++] = c;
	trail[trail_len] = '\0';
}

static void three_times(void *arg)
{
	const char *name = arg;

	for (int i = 0; i < 3; i++) {
		leave_mark(*name);
		if (i < 2)
			coro_yield();
	}
}

static void in_turn(void **state)
{
	struct coro *c[2] = { coro_new(three_times, "a", 0), coro_new(three_times, "b", 0) };

	(void)state;
	trail_len = 0;
	assert_null(coro_self());
	assert_int_equal(coro_run(c, 2, NULL, NULL), 6);
	assert_string_equal(trail, "ababab");
	assert_null(coro_self());
	coro_free(c[0]);
	coro_free(c[1]);
}

static unsigned int highest(void *ctx, u64 ready)
{
	(void)ctx;
	return 63 - __builtin_clzll(ready);
}

static void picked(void **state)
{
	struct coro *c[3] = { coro_new(three_times, "a", 0), coro_new(three_times, "b", 0),
			      coro_new(three_times, "c", 0) };

	(void)state;
	trail_len = 0;
	assert_int_equal(coro_run(c, 3, highest, NULL), 9);
	assert_string_equal(trail, "cccbbbaaa");
	for (int i = 0; i < 3; i++)
		coro_free(c[i]);
}

/* Many live values across switches: some lie in registers that a call preserves, some not. */
struct sums {
	u64 seed;
	double real;
	u64 whole;
};

static void mix(void *arg)
{
	struct sums *s = arg;
	u64 a = s->seed, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13;
	double x = (double)a, y = x * 2, z = x * 3;

	for (int i = 0; i < 1000; i++) {
		a += b, b ^= c, c += d, d ^= e, e += f, f ^= a;
		x += y / 3, y = z - x / 7, z += 1;
		if (s->whole)
			coro_yield();
	}
	s->whole = a ^ b ^ c ^ d ^ e ^ f;
	s->real = x + y + z;
}

static void registers(void **state)
{
	struct sums together[CORO_MAX], alone;
	struct coro *c[CORO_MAX];

	(void)state;
	for (unsigned int i = 0; i < CORO_MAX; i++) {
		together[i] = (struct sums){ i + 1, 0, 1 };
		c[i] = coro_new(mix, &together[i], 64 * 1024);
		assert_non_null(c[i]);
	}
	assert_int_equal(coro_run(c, CORO_MAX, NULL, NULL), CORO_MAX * 1001);
	for (unsigned int i = 0; i < CORO_MAX; i++) {
		alone = (struct sums){ i + 1, 0, 0 };
		mix(&alone);
		assert_int_equal(together[i].whole, alone.whole);
		assert_true(memcmp(&together[i].real, &alone.real, sizeof(double)) == 0);
		coro_free(c[i]);
	}
}

/* The stack is as aligned as the ABI wants it: an aligned object on it is where it should be. */
static void aligned(void *arg)
{
	struct {
		char bytes[16];
	} __attribute__((aligned(16))) object;
	void *volatile where = &object;

	*(uintptr_t *)arg = (uintptr_t)where % 16 + 1;
	__asm__ volatile("" : : "r"(&object) : "memory");
}

static void alignment(void **state)
{
	uintptr_t rest = 0;
	struct coro *c = coro_new(aligned, &rest, 0);

	(void)state;
	coro_resume(c);
	assert_int_equal(rest, 1);
	assert_true(coro_done(c));
	coro_free(c);
}

static void inner(void *arg)
{
	leave_mark('i');
	coro_yield();
	leave_mark('j');
	assert_ptr_equal(coro_self(), *(struct coro **)arg);
}

static void outer(void *arg)
{
	struct coro *c;

	(void)arg;
	c = coro_new(inner, &c, 0);
	leave_mark('o');
	coro_resume(c);
	leave_mark('p');
	coro_yield();
	coro_resume(c);
	leave_mark('q');
	coro_free(c);
}

/* A coroutine may resume another one. */
static void nested(void **state)
{
	struct coro *c = coro_new(outer, NULL, 0);

	(void)state;
	trail_len = 0;
	coro_resume(c);
	leave_mark('-');
	coro_resume(c);
	assert_string_equal(trail, "oip-jq");
	assert_true(coro_done(c));
	coro_free(c);
}

/* One that waits, or has not begun, can be dropped; and its stack's place be used again. */
static void dropped(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct coro *waits = coro_new(three_times, "x", 0);
		struct coro *fresh = coro_new(three_times, "y", 0);

		trail_len = 0;
		coro_resume(waits);
		coro_free(waits);
		coro_free(fresh);
	}
	coro_free(NULL);
}

static u64 __attribute__((noinline)) sink(volatile char *bytes, u64 depth);

static u64 __attribute__((noinline)) dig(u64 depth)
{
	volatile char bytes[1024];

	bytes[0] = (char)depth;
	return sink(bytes, depth) + (u64)bytes[0];
}

static u64 __attribute__((noinline)) sink(volatile char *bytes, u64 depth)
{
	bytes[512] = 1;
	return depth ? dig(depth - 1) + 1 : 0;
}

static void dig_deep(void *arg)
{
	*(u64 *)arg = dig(*(u64 *)arg);
}

/* Below a stack lies something that stops it. */
static void overflow(void **state)
{
	u64 depth = 1u << 20, shallow = 20;
	struct coro *c = coro_new(dig_deep, &shallow, 64 * 1024);
	int status;
	pid_t pid;

	(void)state;
	coro_resume(c);
	assert_true(coro_done(c));
	coro_free(c);

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(0);
		coro_resume(coro_new(dig_deep, &depth, 64 * 1024));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* A sanitizer reports it and exits by itself. */
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0);
}

static void yield_outside(void)
{
	coro_yield();
}

static void resume_ended(void)
{
	struct coro *c = coro_new(three_times, "z", 0);

	trail_len = 0;
	for (int i = 0; i < 4; i++)
		coro_resume(c);
}

static void misuse(void **state)
{
	(void)state;
	assert_true(is_bug(yield_outside));
	assert_true(is_bug(resume_ended));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),   cmocka_unit_test(picked), cmocka_unit_test(registers),
		cmocka_unit_test(alignment), cmocka_unit_test(nested), cmocka_unit_test(dropped),
		cmocka_unit_test(overflow),  cmocka_unit_test(misuse),
	};

	printf("switched by %s\n", coro_switch_name());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
