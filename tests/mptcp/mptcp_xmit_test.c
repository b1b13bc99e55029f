/* SPDX-License-Identifier: MIT */
/*
 * The write path under the sender: what a backlog becomes at each MTU and which part of the patch
 * makes it so, cuts at the congestion window, and probes for a larger MTU among maps.
 */
#include "tcp/tcp_mtu_probe.h"
#include "tests/mptcp/mptcp_harness.h"

#define WRITE	    16384
#define DFRAG_BYTES (32768 - 40) /* one data frag alone in its block */
#define SATURATED   254 /* writes that wait: as many sk_buffs are full as no rounding can hide */

static const u32 mtus[] = { 1500, 9000, 65536 };
static const u32 backlogs[] = { 0, 3, 15, 63, SATURATED };

/* The size goal, worked out anew from what a packet holds and what a TSO packet may hold. */
static u32 goal_of(u32 mtu)
{
	u32 ip = mtu < 65536 ? mtu : 65535;
	u32 mss = ip - 20 - 20 - 12 - 28, segs = (65536 - 1 - 320) / mss;

	return segs ? segs * mss : mss;
}

static u32 write_backlog(u32 backlog, bool subflow)
{
	msk.push_per_write = subflow;
	sk.snd_wnd = subflow ? 0 : 1 << 30;
	for (u32 i = 0; i <= backlog; i++)
		assert_int_equal(write_stream(WRITE), WRITE);
	sk.snd_wnd = 1 << 30;
	if (subflow)
		tcp_write_xmit(era, mptcp_tcp(variant), &sk);
	else
		assert_int_equal(push(), WRITE * (backlog + 1));
	return sk.tcp_rtx_queue.qlen;
}

/*
 * Every sk_buff of a backlog is full once the room is told right, and holds half of it before: the
 * bytes of one data frag. Neither what happens to PSH nor the split of maps changes that.
 */
static void named_backlogs(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
		u32 goal = goal_of(mtus[m]);

		for (size_t b = 0; b < ARRAY_SIZE(backlogs); b++) {
			u32 total = WRITE * (backlogs[b] + 1);
			u32 skbs[2][MPTCP_VARIANT_NR];

			for (int subflow = 0; subflow < 2; subflow++) {
				for_each_variant (v) {
					open_conn(ERA_6_12, v, 0, IDSN, mtus[m]);
					assert_int_equal(msk.size_goal, goal);
					skbs[subflow][v] = write_backlog(backlogs[b], subflow);
					check();
					arrive_all();
					acked();
					assert_int_equal(msk.snd_una, IDSN + total);
					close_conn();
				}
				for_each_variant (v)
					assert_int_equal(skbs[subflow][v],
							 skbs[subflow][mptcp_has_size_bias(v)
									       ? MPTCP_SIZE_BIAS
									       : MPTCP_BEFORE]);
				assert_int_equal(skbs[subflow][MPTCP_MERGED],
						 DIV_ROUND_UP(total, goal));
			}
			assert_int_equal(skbs[0][MPTCP_BEFORE], DIV_ROUND_UP(total, DFRAG_BYTES));
			for (int subflow = 0; subflow < 2 && backlogs[b] == SATURATED; subflow++) {
				double before = (double)total / skbs[subflow][MPTCP_BEFORE] / goal;
				double after = (double)total / skbs[subflow][MPTCP_MERGED] / goal;

				printf("MTU %5u, goal %u, %s: %.2f %% full before, %.2f %% after\n",
				       mtus[m], goal, subflow ? "handed down" : "in data frags  ",
				       before * 100, after * 100);
				assert_true(before > 0.45 && before < 0.55);
				assert_true(after >= 0.99);
			}
		}
	}
}

/*
 * Data that never ends, a congestion window of two sk_buffs and a send buffer of 512 KB: what waits is
 * what the buffer takes beyond the window, and each sk_buff that was filled while others waited is
 * full, or half full.
 */
static void saturated(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			u64 skbs = 0, bytes = 0;
			u32 waited = 0;
			double fill;

			open_conn(e, v, 0, IDSN, 65536);
			sk.snd_cwnd = 2;
			msk.sndbuf = 512 << 10;
			for (int i = 0; i < 400; i++) {
				u32 done = 0;

				while (done < WRITE) {
					int ret = write_stream(WRITE - done);

					if (ret > 0) {
						done += ret;
						continue;
					}
					waited = sk.write_seq - sk.snd_nxt;
					arrive(false);
					acked();
					tcp_write_xmit(e, mptcp_tcp(v), &sk);
					assert_int_equal(sk.packets_out, 2);
				}
				check();
				if (i == 50) {
					skbs = peer.skbs;
					bytes = peer.bytes;
				}
			}
			/* All but what is on its way; data frags cost their heads, too. */
			assert_in_range(waited, (512 << 10) - 3 * 65536, 512 << 10);
			fill = (double)(peer.bytes - bytes) / (peer.skbs - skbs) / msk.size_goal;
			if (mptcp_has_size_bias(v))
				assert_true(fill > 0.999);
			else
				assert_true(fill > 0.49 && fill < 0.51);
			while (msk.snd_una != msk.write_seq) {
				arrive_all();
				acked();
				tcp_write_xmit(e, mptcp_tcp(v), &sk);
			}
			close_conn();
		}
	}
}

/*
 * The congestion window takes two times 10 of 40 segments. The rest waits with a map that is shared
 * and frozen, so that the next bytes begin another sk_buff; or with one of its own that goes on.
 */
static void cut_at_cwnd(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *rest;

			if (!mptcp_has_size_bias(v))
				continue;
			open_conn(e, v, 0, IDSN, 1500);
			sk.snd_cwnd = 20;
			assert_int_equal(write_stream(40 * 1420), 40 * 1420);
			assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
			assert_int_equal(sk.packets_out, 20);
			assert_int_equal(sk.sk_write_queue.qlen, 1);
			rest = skb_peek(&sk.sk_write_queue);
			assert_int_equal(rest->len, 20 * 1420);
			if (mptcp_tcp(v) == TRIM_EAGER)
				map_is(rest, IDSN, 1, 40 * 1420, true);
			else
				map_is(rest, IDSN + 28400, 28401, 28400, false);
			check();
			assert_int_equal(write_stream(5000), 5000);
			check();
			if (mptcp_tcp(v) == TRIM_EAGER) {
				assert_int_equal(rest->len, 28400);
				assert_int_equal(TCP_SKB_CB(rest)->eor, 1);
				map_is(rest->next, IDSN + 56800, 56801, 5000, false);
			} else {
				assert_int_equal(sk.sk_write_queue.qlen, 1);
				map_is(rest, IDSN + 28400, 28401, 33400, false);
			}
			while (sk.packets_out) {
				arrive_all();
				acked();
				tcp_write_xmit(e, mptcp_tcp(v), &sk);
				check();
			}
			assert_int_equal(msk.snd_una, IDSN + 61800);
			close_conn();
		}
	}
}

/*
 * --- probes
 * -------------------------------------------------------------------------------------
 */

#define HEADER 80 /* IPv4, TCP, timestamps, MPTCP */
#define PROBE  ((9000 + 1500) / 2 - HEADER)

static void open_probing(enum skb_era e, enum mptcp_variant v)
{
	open_conn(e, v, 0, IDSN, 1500);
	assert_int_equal(tcp_mtup_init(&sk, HEADER, 1500, 9000), 0);
	mptcp_sync_mss(&msk);
	assert_int_equal(msk.size_goal, 63900);
	sk.mtup.enabled = false; /* until the queue is as it should be */
	sk.snd_wnd = 0;
}

static int probe(void)
{
	sk.snd_wnd = 1 << 30;
	sk.mtup.enabled = true;
	return tcp_mtu_probe(era, mptcp_tcp(variant), &sk);
}

/* All that was written arrives, whatever is cut on its way. */
static void deliver(void)
{
	tcp_write_xmit(era, mptcp_tcp(variant), &sk);
	check();
	arrive_all();
	acked();
	assert_int_equal(msk.snd_una, msk.write_seq);
	assert_int_equal(peer.data.next, msk.write_seq);
	check();
}

/* A probe out of one map: it and what is left share it, and nothing is added to either. */
static void probe_of_one_map(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *skb, *rest;

			if (!mptcp_has_size_bias(v))
				continue;
			open_probing(e, v);
			assert_int_equal(write_stream(40000), 40000);
			assert_int_equal(sk.sk_write_queue.qlen, 1);
			map_is(skb_peek(&sk.sk_write_queue), IDSN, 1, 40000, false);
			assert_int_equal(probe(), 1);
			check();
			skb = skb_peek(&sk.tcp_rtx_queue);
			rest = skb_peek(&sk.sk_write_queue);
			assert_int_equal(skb->len, PROBE);
			assert_int_equal(rest->len, 40000 - PROBE);
			map_is(skb, IDSN, 1, 40000, true);
			assert_ptr_equal(rest->extensions, skb->extensions);
			assert_int_equal(ext_refs(skb), 3); /* the clone's, too */
			sk.snd_wnd = 0;
			assert_int_equal(write_stream(1000), 1000);
			assert_int_equal(rest->len, 40000 - PROBE);
			map_is(rest->next, IDSN + 40000, 40001, 1000, false);
			sk.snd_wnd = 1 << 30;
			deliver();
			assert_int_equal(sk.mss_cache, PROBE);
			mptcp_sync_mss(&msk);
			assert_int_equal(msk.size_goal, (65215 / PROBE) * PROBE);
			close_conn();
		}
	}
}

/* Two maps are not joined, were their bytes next to each other or not; halves of one are. */
static void probe_of_two_maps(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			bool shared = mptcp_tcp(v) == TRIM_EAGER;
			struct sk_buff *first;

			if (!claims_right(v))
				continue;
			open_probing(e, v);
			assert_int_equal(write_stream(1000), 1000);
			first = skb_peek(&sk.sk_write_queue);
			TCP_SKB_CB(first)->eor = 1;
			assert_int_equal(write_stream(30000), 30000);
			TCP_SKB_CB(first)->eor = 0;
			map_is(first, IDSN, 1, 1000, false);
			assert_int_equal(probe(), -1);
			assert_int_equal(first->len, 1000);
			assert_null(skb_peek(&sk.tcp_rtx_queue));
			check();
			deliver();
			close_conn();

			open_probing(e, v);
			assert_int_equal(write_stream(30000), 30000);
			first = skb_peek(&sk.sk_write_queue);
			assert_int_equal(tso_fragment(e, mptcp_tcp(v), &sk, first, 2 * 1420, 1420),
					 0);
			assert_int_equal(probe(), shared ? 1 : -1);
			if (shared) {
				first = skb_peek(&sk.tcp_rtx_queue);
				assert_int_equal(first->len, PROBE);
				map_is(first, IDSN, 1, 30000, true);
				assert_ptr_equal(skb_peek(&sk.sk_write_queue)->extensions,
						 first->extensions);
			}
			check();
			deliver();
			close_conn();
		}
	}
}

/* A probe that was lost is cut again; the maps of the pieces hold. */
static void probe_lost(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			int rounds = 0;

			if (!claims_right(v))
				continue;
			open_probing(e, v);
			assert_int_equal(write_stream(30000), 30000);
			assert_int_equal(probe(), 1);
			arrive(true);
			sk.mtup.enabled = false;
			tcp_mtup_probe_failed(&sk);
			tcp_write_xmit(e, mptcp_tcp(v), &sk);
			arrive_all();
			while (msk.snd_una != msk.write_seq && rounds++ < 10) {
				assert_int_equal(tcp_retransmit_skb(e, mptcp_tcp(v), &sk,
								    skb_peek(&sk.tcp_rtx_queue), 1),
						 0);
				check();
				arrive_all();
				acked();
				check();
			}
			assert_int_equal(rounds, DIV_ROUND_UP(PROBE, 1420));
			assert_int_equal(sk.mss_cache, 1420);
			close_conn();
		}
	}
}

/*
 * What is left of a probe's source begins behind its map, as after a trim: a cut at 10 segments, digit
 * by digit. The posted split is off by the probe, and changes the map that the probe is sent under.
 */
static void cut_behind_a_probe(void **state)
{
	const u32 all = 63900, rest_len = all - PROBE, at = 14200;

	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *sent, *rest;

			if (!mptcp_has_size_bias(v))
				continue;
			open_probing(e, v);
			assert_int_equal(write_stream(all), all);
			assert_int_equal(probe(), 1);
			sent = skb_peek(&sk.tcp_rtx_queue);
			rest = skb_peek(&sk.sk_write_queue);
			assert_int_equal(rest->len, rest_len);
			map_is(rest, IDSN, 1, all, true);
			assert_int_equal(tso_fragment(e, mptcp_tcp(v), &sk, rest, at, 1420), 0);
			if (mptcp_tcp(v) == TRIM_EAGER_SPLIT_POSTED) {
				map_is(rest, IDSN, 1, PROBE + at, true);
				map_is(rest->next, IDSN + at, 1 + at, rest_len - at, true);
				map_is(sent, IDSN, 1, PROBE + at, true);
				close_conn();
				continue;
			}
			map_is(rest, IDSN, 1, all, true);
			assert_ptr_equal(rest->next->extensions, rest->extensions);
			assert_ptr_equal(sent->extensions, rest->extensions);
			check();
			deliver();
			close_conn();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_backlogs),     cmocka_unit_test(saturated),
		cmocka_unit_test(cut_at_cwnd),	      cmocka_unit_test(probe_of_one_map),
		cmocka_unit_test(probe_of_two_maps),  cmocka_unit_test(probe_lost),
		cmocka_unit_test(cut_behind_a_probe),
	};

	return cmocka_run_group_tests(tests, mptcp_start, NULL);
}
