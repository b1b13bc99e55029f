/* SPDX-License-Identifier: MIT */
/* The parts of the harness that need no clock: the rule that keeps a batch, quantiles, numbers, names, CPU lists. */
#include "benches/harness/cpus.h"
#include "benches/harness/json.h"
#include "benches/harness/names.h"
#include "benches/harness/stats.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool kept2(u64 start, u64 stop, u64 cpu, u64 start2, u64 stop2, u64 cpu2)
{
	const struct role_time t[2] = {
		{ .start_ns = start, .stop_ns = stop, .cpu_ns = cpu },
		{ .start_ns = start2, .stop_ns = stop2, .cpu_ns = cpu2 },
	};

	return batch_counts(t, 2, false);
}

static void sleepers_must_overlap(void **state)
{
	const struct role_time t[2] = { { .stop_ns = 1000, .cpu_ns = 10 },
					{ .start_ns = 500, .stop_ns = 1000, .cpu_ns = 500 } };

	(void)state;
	assert_true(batch_counts(&t[1], 1, true));
	assert_false(batch_counts(t, 2, true));
}

static void one_role_needs_its_cpu(void **state)
{
	struct role_time t = { .start_ns = 1000000, .stop_ns = 1200000, .cpu_ns = 194000 };

	(void)state;
	assert_true(batch_counts(&t, 1, false));
	t.cpu_ns = 193999; /* below 97 % */
	assert_false(batch_counts(&t, 1, false));
	t.cpu_ns = 0;
	assert_false(batch_counts(&t, 1, false));
	assert_true(batch_counts(&t, 1, true)); /* it slept all the time */
	t.cpu_ns = 200600; /* the clock's own cost */
	assert_true(batch_counts(&t, 1, false));
}

static void two_roles_must_overlap(void **state)
{
	(void)state;
	assert_true(kept2(0, 1000, 1000, 0, 1000, 1000));
	assert_true(kept2(0, 1000, 1000, 100, 1000, 900)); /* 900 of 1000 */
	assert_false(kept2(0, 1000, 1000, 101, 1000, 899)); /* the second starts late */
	assert_false(kept2(0, 1000, 1000, 0, 899, 899)); /* or stops early */
	assert_false(kept2(0, 1000, 1000, 60, 1060, 1000)); /* or both: 940 of 1060 */
	assert_false(kept2(0, 1000, 1000, 1000, 2000, 1000)); /* turns */
	assert_false(kept2(0, 1000, 1000, 5000, 6000, 1000)); /* far apart */
	assert_false(kept2(0, 1000, 1000, 0, 1000, 500)); /* the second lost its CPU */
	assert_false(kept2(0, 1000, 500, 0, 1000, 1000));
}

static void wall_goes_round_the_slowest(void **state)
{
	const struct role_time t[3] = {
		{ .start_ns = 50, .stop_ns = 900 },
		{ .start_ns = 40, .stop_ns = 700 },
		{ .start_ns = 60, .stop_ns = 950 },
	};

	(void)state;
	assert_int_equal(batch_wall_ns(t, 1), 850);
	assert_int_equal(batch_wall_ns(t, 3), 910);
}

static void quantiles_are_linear(void **state)
{
	double v[] = { 40, 10, 20, 30, 50 };

	(void)state;
	sort_values(v, 5);
	assert_true(quantile(v, 5, 0) == 10);
	assert_true(quantile(v, 5, .5) == 30);
	assert_true(quantile(v, 5, 1) == 50);
	assert_true(fabs(quantile(v, 5, .33) - 23.2) < 1e-9);
	assert_true(fabs(quantile(v, 5, .9) - 46) < 1e-9);
	assert_true(quantile(v, 1, .33) == 10);
}

static char *number(double value, unsigned int decimals)
{
	static char *text;
	size_t len;
	struct json j = { 0 };

	free(text);
	j.f = open_memstream(&text, &len);
	json_fixed(&j, NULL, value, decimals);
	fclose(j.f);
	return text;
}

static void numbers(void)
{
	assert_string_equal(number(0, 4), "0.0000");
	assert_string_equal(number(12.34566, 4), "12.3457");
	assert_string_equal(number(0.00004, 4), "0.0000");
	assert_string_equal(number(-1.5, 1), "-1.5");
	assert_string_equal(number(0.999999, 3), "1.000");
	assert_string_equal(number(7.4, 0), "7");
	assert_string_equal(number(1e17, 4), "100000000000000000");
	assert_string_equal(number(NAN, 4), "null");
	assert_string_equal(number(INFINITY, 4), "null");
	assert_string_equal(number(-INFINITY, 4), "null");
}

static void numbers_know_no_locale(void **state)
{
	static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8" };

	(void)state;
	numbers();
	for (size_t i = 0; i < ARRAY_SIZE(commas); i++)
		if (setlocale(LC_ALL, commas[i]))
			numbers();
	setlocale(LC_ALL, "C");
}

static void text_is_escaped(void **state)
{
	struct json j = { 0 };
	char *text;
	size_t len;

	(void)state;
	j.f = open_memstream(&text, &len);
	json_open(&j, NULL, '{');
	json_str(&j, "a", "q\" b\\ n\n");
	json_str(&j, "b", NULL);
	json_open(&j, "c", '[');
	json_bool(&j, NULL, true);
	json_long(&j, NULL, -3);
	json_close(&j, '[');
	json_open(&j, "d", '[');
	json_close(&j, '[');
	json_close(&j, '{');
	assert_int_equal(json_end(&j), 0);
	fclose(j.f);
	assert_string_equal(text,
			    "{\"a\": \"q\\\" b\\\\ n\\u000a\", \"b\": null, \"c\": [true, -3], "
			    "\"d\": []}\n");
	free(text);
}

static void a_full_disk_is_told(void **state)
{
	struct json j = { .f = fopen("/dev/full", "w") };

	(void)state;
	assert_non_null(j.f);
	json_str(&j, NULL, "lost");
	assert_int_equal(json_end(&j), -EIO);
	fclose(j.f);
}

static int parsed(const char *text, long *out)
{
	return bench_parse_long(text, strlen(text), out);
}

static void integers_are_strict(void **state)
{
	static const char *const bad[] = { "",	   "-",	  "+1", " 1",  "1 ", "1x",
					   "0x10", "007", "-0", "1.0", "--1" };
	long v;

	(void)state;
	assert_int_equal(parsed("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(parsed("-17", &v), 0);
	assert_int_equal(v, -17);
	assert_int_equal(parsed("9223372036854775807", &v), 0);
	assert_true(v == 9223372036854775807L);
	assert_int_equal(parsed("9223372036854775808", &v), -ERANGE);
	assert_int_equal(parsed("99999999999999999999999999999999", &v), -ERANGE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parsed(bad[i], &v), -EINVAL);
}

static void cpu_lists(void **state)
{
	static const char *const bad[] = { "",	 ",",	  "0,",	 ",0",	"a",	 "3-1", "1-",
					   "-1", "0-1-2", "0 1", "0,0", "1,0-2", "64",	"0-64" };
	struct bench_cpus cpus;

	(void)state;
	assert_int_equal(bench_cpus_parse("3,0-2", 64, false, &cpus), 0);
	assert_int_equal(cpus.nr, 4);
	assert_int_equal(cpus.cpu[0], 3);
	assert_int_equal(cpus.cpu[1], 0);
	assert_int_equal(cpus.cpu[3], 2);
	assert_int_equal(bench_cpus_parse("1,1,0", 8, true, &cpus), 0);
	assert_int_equal(cpus.nr, 3);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(bench_cpus_parse(bad[i], 64, false, &cpus), -EINVAL);
	assert_int_equal(bench_cpus_parse("0-64", 1024, false, &cpus), -EINVAL);
	assert_int_equal(bench_cpus_allowed(&cpus), 0);
	assert_true(cpus.nr >= 1);
}

static int no_prepare(const struct bench_args *args, struct bench_case *out, char *err,
		      size_t errlen)
{
	(void)args, (void)out, (void)err, (void)errlen;
	return -EINVAL;
}

static const char *const colours[] = { "red", "green", "blue", NULL };
static const struct bench_key keys[] = {
	{ .name = "frags", .lo = 1, .hi = 17, .def = "2", .grid = "1,2,17", .help = "fragments" },
	{ .name = "colour",
	  .words = colours,
	  .def = "green",
	  .grid = "red,blue",
	  .help = "the colour" },
	{ .name = NULL },
};
static const struct bench_op op = {
	.name = "unit/paint", .summary = "a table", .keys = keys, .prepare = no_prepare
};
static const struct bench_op deeper = { .name = "unit/paint/twice",
					.summary = "no keys",
					.prepare = no_prepare };

static const char *canonical(const char *name)
{
	static char buf[BENCH_NAME_MAX];
	struct bench_args args;
	char err[512];

	if (bench_args_parse(name, &args, err, sizeof(err)))
		return "refused";
	bench_args_name(&args, buf, sizeof(buf));
	assert_int_equal(bench_args_parse(buf, &args, err, sizeof(err)), 0);
	return buf;
}

/* The default allocator differs by preset: names here give it. */
static void names_become_canonical(void **state)
{
	struct bench_args args;
	char err[512];

	(void)state;
	assert_string_equal(canonical("unit/paint/alloc:glibc"),
			    "unit/paint/frags:2/colour:green/alloc:glibc");
	assert_string_equal(canonical("unit/paint/colour:blue/alloc:slub/frags:17"),
			    "unit/paint/frags:17/colour:blue/alloc:slub");
	assert_string_equal(canonical("unit/paint/twice/alloc:jemalloc"),
			    "unit/paint/twice/alloc:jemalloc");
	assert_int_equal(
		bench_args_parse("unit/paint/colour:blue/frags:3", &args, err, sizeof(err)), 0);
	assert_int_equal(bench_arg(&args, "frags"), 3);
	assert_int_equal(bench_arg(&args, "colour"), 2);
}

static void wrong_names_say_why(void **state)
{
	static const struct {
		const char *name, *says;
	} wrong[] = {
		{ "", "no operation ''" },
		{ "unit", "no operation 'unit'" },
		{ "unit/pain", "no operation 'unit/pain'" },
		{ "unit/paint/", "no operation 'unit/paint/'" },
		{ "frags:1", "no operation ''" },
		{ "unit/paint/frags:1/", "'' is not key:value" },
		{ "unit/paint/frags:1/paint", "'paint' is not key:value" },
		{ "unit/paint/size:1",
		  "no key 'size': the keys of unit/paint are frags, colour, alloc" },
		{ "unit/paint/:1", "no key ''" },
		{ "unit/paint/frags:1/frags:1", "frags is given twice" },
		{ "unit/paint/frags:",
		  "frags is '': it must be an integer from 1 to 17 (fragments)" },
		{ "unit/paint/frags:x", "frags is 'x'" },
		{ "unit/paint/frags:01", "frags is '01'" },
		{ "unit/paint/frags:18",
		  "frags is 18: out of range, it must be 1 to 17 (fragments)" },
		{ "unit/paint/frags:99999999999999999999999", "out of range" },
		{ "unit/paint/frags:-1", "out of range" },
		{ "unit/paint/colour:gray",
		  "colour is 'gray': it must be red, green or blue (the colour)" },
		{ "unit/paint/colour:re", "colour is 're'" },
		{ "unit/paint/colour:Red", "colour is 'Red'" },
		{ "unit/paint/alloc:malloc", "slub, jemalloc or glibc" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct bench_args args;
		char err[512] = "";

		assert_int_equal(bench_args_parse(wrong[i].name, &args, err, sizeof(err)), -EINVAL);
		if (!strstr(err, wrong[i].says))
			fail_msg("%s: says '%s', not '%s'", wrong[i].name, err, wrong[i].says);
	}
}

static void the_grid_is_a_product(void **state)
{
	static const struct {
		long frags, colour;
	} want[] = { { 1, 0 }, { 1, 2 }, { 2, 0 }, { 2, 2 }, { 17, 0 }, { 17, 2 } };
	struct bench_grid grid;
	size_t i = 0;

	(void)state;
	bench_grid_first(&op, &grid);
	do {
		assert_true(i < ARRAY_SIZE(want));
		assert_int_equal(bench_arg(&grid.args, "frags"), want[i].frags);
		assert_int_equal(bench_arg(&grid.args, "colour"), want[i].colour);
		i++;
	} while (bench_grid_next(&grid));
	assert_int_equal(i, ARRAY_SIZE(want));
	bench_grid_first(&deeper, &grid);
	assert_false(bench_grid_next(&grid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_role_needs_its_cpu),
		cmocka_unit_test(two_roles_must_overlap),
		cmocka_unit_test(sleepers_must_overlap),
		cmocka_unit_test(wall_goes_round_the_slowest),
		cmocka_unit_test(quantiles_are_linear),
		cmocka_unit_test(numbers_know_no_locale),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(a_full_disk_is_told),
		cmocka_unit_test(integers_are_strict),
		cmocka_unit_test(cpu_lists),
		cmocka_unit_test(names_become_canonical),
		cmocka_unit_test(wrong_names_say_why),
		cmocka_unit_test(the_grid_is_a_product),
	};

	bench_register(&op);
	bench_register(&deeper);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
