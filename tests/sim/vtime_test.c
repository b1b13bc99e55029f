/* SPDX-License-Identifier: MIT */
/* Virtual time: order, ties, events that post events. */
#include "sim/vtime.h"
#include "tests/support/model.h"

#include <string.h>

#define EVENTS 2000

static struct vtime vt;
static struct {
	u64 at;
	u32 cls, nr;
} posted[EVENTS], ran[EVENTS];
static u32 nr_ran;

static void note(void *ctx, u32 arg)
{
	(void)ctx;
	assert_int_equal(vt.now_ps, posted[arg].at);
	memcpy(&ran[nr_ran++], &posted[arg], sizeof(ran[0]));
}

/* Few times and classes, so that there are many ties. */
static void order(void **state)
{
	struct rng rng = { model_seed("vtime", 7) };

	(void)state;
	vtime_init(&vt);
	nr_ran = 0;
	for (u32 i = 0; i < EVENTS; i++) {
		posted[i].at = rng_below(&rng, 50);
		posted[i].cls = rng_below(&rng, 3);
		posted[i].nr = i;
		vtime_post(&vt, posted[i].at, posted[i].cls, note, NULL, i);
	}
	assert_int_equal(vtime_run(&vt), 0);
	assert_int_equal(nr_ran, EVENTS);
	for (u32 i = 1; i < EVENTS; i++) {
		assert_true(ran[i - 1].at <= ran[i].at);
		if (ran[i - 1].at != ran[i].at)
			continue;
		assert_true(ran[i - 1].cls <= ran[i].cls);
		if (ran[i - 1].cls == ran[i].cls)
			assert_true(ran[i - 1].nr < ran[i].nr);
	}
	vtime_exit(&vt);
}

static void again(void *ctx, u32 arg)
{
	nr_ran++;
	if (arg)
		vtime_post(&vt, vt.now_ps + (arg & 1) * 10, 0, again, ctx, arg - 1);
}

/* An event may post one for this moment, which runs in it. */
static void chain(void **state)
{
	(void)state;
	vtime_init(&vt);
	nr_ran = 0;
	assert_false(vtime_step(&vt));
	vtime_post(&vt, 5, 0, again, NULL, 100);
	assert_int_equal(vtime_run(&vt), 0);
	assert_int_equal(nr_ran, 101);
	assert_int_equal(vt.now_ps, 5 + 50 * 10);
	vtime_exit(&vt);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order), cmocka_unit_test(chain) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
