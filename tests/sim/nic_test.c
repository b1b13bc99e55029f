/* SPDX-License-Identifier: MIT */
/*
 * The NIC's timing against numbers worked out apart, and its properties: what a full buffer, a
 * small threshold and moderation do.
 */
#include "sim/nic.h"
#include "tests/support/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MSS 1448
#define TSO 65160

static double us(u64 ps)
{
	return (double)ps / 1e6;
}

static struct nic_lone lone(const struct nic_params *p, u32 bytes, u32 k)
{
	struct nic_lone out;
	char err[200] = "";

	if (nic_lone(p, bytes, MSS, 18, k, &out, err, sizeof(err)))
		fail_msg("%s", err);
	return out;
}

static void near(double is, double should, double within, const char *what)
{
	if (fabs(is - should) > within)
		fail_msg("%s: %.3f us, not %.3f within %.3f", what, is, should, within);
}

/* Wire time of a whole packet, us: 45 segments of 1538 bytes and so on. */
static void wire_time(void **state)
{
	static const struct {
		u32 mbps, bytes;
		double us;
	} rows[] = {
		{ 1000, 16384, 139.7 },	  { 1000, TSO, 553.7 },	    { 10000, 16384, 13.97 },
		{ 10000, TSO, 55.37 },	  { 25000, TSO, 22.15 },    { 40000, TSO, 13.84 },
		{ 100000, TSO, 5.54 },	  { 200000, TSO, 2.77 },    { 400000, TSO, 1.38 },
		{ 100000, 185000, 15.7 }, { 100000, 524280, 44.6 },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct nic_params p = *nic_preset("gen2x8");
		u64 ps = 0;

		p.wire_mbps = rows[i].mbps;
		for (u32 at = 0; at < rows[i].bytes; at += MSS)
			ps += nic_wire_ps(&p, min((u32)MSS, rows[i].bytes - at));
		near(us(ps), rows[i].us, rows[i].us * 0.005, "wire time");
	}
	assert_int_equal(nic_wire_ps(nic_preset("gen2x8"), MSS), 1230400);
	assert_int_equal(nic_wire_ps(nic_preset("gen2x8"), 0), 72000); /* 90 bytes */
}

/*
 * The windows that the experiment is about. The rows where the buffer is full come from a model
 * that stepped through waits by 50 ns.
 */
static void windows(void **state)
{
	static const struct {
		const char *point;
		u32 wire_mbps, threshold; /* 0: the point's */
		double second, last, dd, window, within;
	} rows[] = {
		{ "gen2x8", 0, 0, 3.9, 56.8, 20.2, 16.3, 0.06 },
		{ "gen2x4", 0, 0, 4.3, 57.2, 39.1, 34.8, 0.06 },
		{ "gen1x4", 0, 0, 5.6, 77.9, 77.0, 71.4, 0.06 },
		{ "patch", 0, 0, 7.4, 118.7, 117.7, 110.3, 0.06 },
		{ "gen2x8", 0, 20000, 3.9, 56.8, 41.5, 37.6, 0.06 },
		{ "fifo_full", 0, 0, 120.9, 173.8, 53.7, -67.2, 0.12 },
		{ "gen2x8", 1000, 0, 26.0, 555.1, 20.2, -5.8, 0.06 },
		{ "gen2x8", 1000, 20000, 26.0, 555.1, 395.9, 369.8, 0.11 },
		{ "fifo_full", 1000, 0, 1208.6, 1737.7, 529.8, -678.8, 0.11 },
		{ "25g", 0, 0, 1.89, 23.05, 5.91, 4.01, 0.006 },
		{ "40g", 0, 0, 1.63, 14.86, 10.71, 9.08, 0.006 },
		{ "100g", 0, 0, 1.15, 6.44, 5.91, 4.75, 0.006 },
		{ "200g", 0, 0, 0.98, 3.62, 3.50, 2.53, 0.006 },
		{ "400g", 0, 0, 0.89, 2.21, 2.30, 1.41, 0.006 },
		{ "big_tcp_100g_185k", 0, 0, 1.15, 16.63, 14.75, 13.59, 0.011 },
		{ "big_tcp_100g", 0, 0, 1.15, 45.46, 39.77, 38.62, 0.011 },
		{ "big_tcp_200g", 0, 0, 0.98, 23.13, 20.44, 19.46, 0.011 },
		{ "big_tcp_400g", 0, 0, 0.89, 11.97, 10.77, 9.88, 0.011 },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct nic_params p = *nic_preset(rows[i].point);
		struct nic_lone l;

		if (rows[i].wire_mbps)
			p.wire_mbps = rows[i].wire_mbps;
		if (rows[i].threshold)
			p.fifo_threshold_bytes = rows[i].threshold;
		l = lone(&p, p.gso_bytes, 2);
		near(us(l.kth_ps), rows[i].second, rows[i].within, rows[i].point);
		near(us(l.last_ps), rows[i].last, rows[i].within, rows[i].point);
		near(us(l.dd_ps), rows[i].dd, rows[i].within, rows[i].point);
		near((double)l.window_ps / 1e6, rows[i].window, rows[i].within, rows[i].point);
	}
}

/* A full buffer of 20 KB still leaves a window: the row that has a backlog of its own. */
static void small_buffer_full(void **state)
{
	struct nic_params p = *nic_preset("gen2x8");
	struct nic_lone l;

	(void)state;
	p.fifo_threshold_bytes = 20000;
	p.backlog_bytes = 18000;
	l = lone(&p, TSO, 2);
	near(us(l.kth_ps), 16.9, 0.06, "second");
	near(us(l.dd_ps), 54.5, 0.06, "DD");
	near((double)l.window_ps / 1e6, 37.7, 0.11, "window");
}

static void presets(void **state)
{
	(void)state;
	assert_null(nic_preset("nothing"));
	for (unsigned int i = 0; i < nr_nic_presets; i++)
		assert_ptr_equal(nic_preset(nic_presets[i].name), &nic_presets[i]);
}

/* What more lanes, a smaller buffer and more segments in an ACK do to the window. */
static void directions(void **state)
{
	struct nic_params p = *nic_preset("gen1x4");
	s64 before = INT64_MAX;

	(void)state;
	for (p.pcie_mbps = 4000; p.pcie_mbps <= 64000; p.pcie_mbps *= 2) {
		s64 window = lone(&p, TSO, 2).window_ps;

		assert_true(window < before);
		before = window;
	}
	p = *nic_preset("gen2x8");
	for (p.fifo_threshold_bytes = 80000; p.fifo_threshold_bytes >= 5000;
	     p.fifo_threshold_bytes /= 2) {
		s64 window = lone(&p, TSO, 2).window_ps;

		assert_true(window >= before);
		before = window;
	}
	p = *nic_preset("gen2x8");
	assert_int_equal(lone(&p, TSO, 3).window_ps,
			 lone(&p, TSO, 2).window_ps - (s64)nic_wire_ps(&p, MSS));
}

/* Packets one after the other: fetches do not overlap, the wire is never given twice. */
static void stream(void **state)
{
	struct nic_params p = *nic_preset("gen2x8");
	u64 depart[45], wire_free = 0, fetched_before = 0;
	struct nic nic;
	char err[200];

	(void)state;
	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), 0);
	for (unsigned int packet = 0; packet < 64; packet++) {
		u64 fetched = nic_xmit(&nic, 0, TSO, MSS, depart);
		u64 level = 0;

		for (unsigned int i = 0; i < 45; i++) {
			assert_true(depart[i] >= wire_free + nic_wire_ps(&p, MSS));
			wire_free = depart[i];
			if (depart[i] > fetched)
				level += MSS + p.header_bytes;
		}
		assert_true(fetched > fetched_before);
		assert_true(nic.fifo_level <= p.fifo_threshold_bytes);
		assert_true(level <= p.fifo_threshold_bytes);
		fetched_before = fetched;
	}
	/* The wire was busy all the time, and fetching is held to its pace. */
	assert_int_equal(wire_free - depart[0], 44 * nic_wire_ps(&p, MSS));
	assert_true(wire_free - fetched_before > 100 * SIM_PS_PER_US);
	nic_exit(&nic);
}

static void moderation(void **state)
{
	struct nic_params p = *nic_preset("gen2x8");
	struct nic_lone l;
	struct nic nic;
	char err[200];

	(void)state;
	assert_int_equal(lone(&p, TSO, 2).dd_ps - lone(&p, TSO, 2).fetched_ps, p.writeback_ps);
	p.wthresh = 8;
	p.itr_ps = 50 * SIM_PS_PER_US;
	l = lone(&p, TSO, 2); /* 18 descriptors: two are left over */
	assert_int_equal(l.dd_ps - l.fetched_ps, p.writeback_ps + p.itr_ps);

	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), 0);
	assert_int_equal(nic_fetched(&nic, 18), 0); /* 16 of 18 */
	assert_int_equal(nic_fetched(&nic, 6), 2); /* 24 of 24 */
	assert_int_equal(nic_fetched(&nic, 18), 0); /* 40 of 42 */
	assert_int_equal(nic_fetched(&nic, 18), 1); /* 56 of 60: the one before is whole */
	assert_int_equal(nic_flush(&nic), 1);
	assert_int_equal(nic_flush(&nic), 0);
	/* A flush begins a new count. */
	assert_int_equal(nic_fetched(&nic, 8), 1);
	nic_exit(&nic);
}

static void refused(void **state)
{
	struct nic_params p = *nic_preset("gen2x8");
	struct nic_lone out;
	struct nic nic;
	char err[200] = "";

	(void)state;
	p.pcie_mbps = 0;
	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "gen2x8"));
	p = *nic_preset("gen2x8");
	p.fifo_threshold_bytes = p.fifo_bytes + 1;
	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), -EINVAL);
	p = *nic_preset("gen2x8");
	p.fifo_threshold_bytes = p.header_bytes;
	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), -EINVAL);
	p = *nic_preset("gen2x8");
	p.wthresh = 8;
	assert_int_equal(nic_init(&nic, &p, err, sizeof(err)), -EINVAL);
	p = *nic_preset("gen2x8");
	assert_int_equal(nic_lone(&p, TSO, MSS, 18, 46, &out, err, sizeof(err)), -EINVAL);
	assert_int_equal(nic_lone(&p, TSO, MSS, 18, 0, &out, err, sizeof(err)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_time),	     cmocka_unit_test(windows),
		cmocka_unit_test(small_buffer_full), cmocka_unit_test(presets),
		cmocka_unit_test(directions),	     cmocka_unit_test(stream),
		cmocka_unit_test(moderation),	     cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
