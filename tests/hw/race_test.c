/* SPDX-License-Identifier: MIT */
/*
 * The race on the model: the same step as the link's simulation (sim/link.h), which shares neither
 * driver nor device with it; controls that cannot race; what moderation and reclaim add.
 */
#include "hw/ixgbe/skb_tx.h"
#include "hw/race.h"
#include "sim/link.h"
#include "tests/hw/rig.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define US   SIM_PS_PER_US
#define SKBS 8

static struct race_params params(const char *point)
{
	struct race_params p = race_defaults;

	p.nic = nic_preset(point);
	p.nr_skbs = SKBS;
	return p;
}

static struct race_result run(const struct race_params *p, enum tcp_trim trim)
{
	struct race_result res;
	char err[700] = "";

	if (race_model(p, trim, NULL, &res, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(res.skbs, p->nr_skbs);
	assert_int_equal(res.races, res.before_dd + res.before_reclaim);
	assert_int_equal(res.segments_on_wire, res.segments);
	assert_int_equal(smp_processor_id(), 0);
	assert_int_equal(model_pages_in_use(), 0);
	return res;
}

/* From all to none where the window ends, for every slot, era and variant. */
static void step(void **state)
{
	static const struct {
		const char *point;
		u32 reclaim_us;
	} rows[] = {
		{ "patch", 0 }, { "gen1x4", 0 }, { "gen2x4", 0 }, { "gen2x8", 0 }, { "gen2x8", 40 }
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct race_params p = params(rows[i].point);

		for (p.era = ERA_3_4; p.era < SKB_ERA_NR; p.era++) {
			enum tcp_trim trim = p.era == ERA_6_1 ? TRIM_OFFSET_ACK : TRIM_EAGER;
			struct race_result res;
			u64 window;

			p.reclaim_ps = rows[i].reclaim_us * US;
			p.rtt_ps = 5 * US;
			res = run(&p, trim);
			assert_int_equal(res.races, SKBS);
			window = (u64)(res.window_us * US) + p.reclaim_ps;
			p.rtt_ps = window - 1000;
			res = run(&p, trim);
			assert_int_equal(res.races, SKBS);
			assert_int_equal(rows[i].reclaim_us ? res.before_reclaim : res.before_dd,
					 SKBS);
			p.rtt_ps = window + 1000;
			assert_int_equal(run(&p, trim).races, 0);
		}
	}
}

struct bed {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	u32 base, bytes;
};

static void bed_send(void *arg, u32 nr)
{
	struct bed *b = arg;

	(void)nr;
	tcp_sendmsg_in_place(ERA_6_12, &b->sk, b->bytes);
	tcp_write_xmit(ERA_6_12, TRIM_EAGER, &b->sk);
}

static void bed_ack(void *arg, u32 acked)
{
	struct bed *b = arg;

	tcp_ack(ERA_6_12, TRIM_EAGER, &b->sk, b->base + acked);
}

static void bed_complete(void *arg, u32 nr)
{
	struct bed *b = arg;

	tx_ring_complete(ERA_6_12, &b->ring, nr);
}

static struct link_result simulate(const struct race_params *rp)
{
	struct link_params p = { .nic = rp->nic,
				 .rtt_ps = rp->rtt_ps,
				 .reclaim_ps = rp->reclaim_ps,
				 .seed = rp->seed,
				 .ack = rp->ack,
				 .k = rp->k,
				 .nr_skbs = rp->nr_skbs,
				 .skb_bytes = rp->skb_bytes,
				 .inflight = rp->inflight,
				 .era = rp->era };
	struct bed *b = aligned_alloc(64, ALIGN(sizeof(*b), 64));
	struct link_calls calls = { { bed_send, bed_ack, bed_complete, NULL }, b };
	struct link_result res;
	struct link_log log;
	char err[300] = "";

	assert_non_null(memset(b, 0, sizeof(*b)));
	assert_int_equal(tx_ring_init(&b->ring, 64), 0);
	tcp_sock_init(&b->sk, &b->prot, &b->ring, SKB_FRAG_PAGE_ORDER);
	b->base = b->sk.snd_una;
	b->bytes = rp->skb_bytes;
	if (link_simulate(&p, &b->sk, &calls, &log, &res, err, sizeof(err)))
		fail_msg("%s", err);
	link_log_exit(&log);
	tcp_sock_destroy(ERA_6_12, &b->sk);
	tx_ring_exit(&b->ring);
	free(b);
	return res;
}

/* One packet at a time and several: races, ACKs and the end, as the simulation has them. */
static void as_simulated(void **state)
{
	static const u32 rtts[] = { 8, 20, 50, 90 };
	static const enum peer_policy policies[] = { PEER_EVERY, PEER_STRETCH, PEER_DELAYED,
						     PEER_LAST };

	(void)state;
	for (u32 i = 0; i < 64; i++) {
		struct race_params p =
			params((const char *[]){ "patch", "gen1x4", "gen2x8", "25g" }[i % 4]);
		struct nic_params nic = *p.nic;
		struct race_result res;
		struct link_result link;

		/* In whole KB, as the register has it. */
		nic.fifo_threshold_bytes = nic.fifo_threshold_bytes / 1024 * 1024;
		p.nic = &nic;
		p.rtt_ps = rtts[i / 4 % 4] * US;
		p.ack = policies[i / 16];
		p.inflight = i % 3 ? 1 : 4;
		p.nr_skbs = 12;
		res = run(&p, TRIM_EAGER);
		link = simulate(&p);
		assert_int_equal(res.races, link.n.races);
		assert_int_equal(res.before_dd, link.races_before_dd);
		assert_int_equal(res.acks, link.n.acks);
		assert_int_equal(res.partial_acks, link.n.partial_acks);
		/* A timer that has nothing left to do still ends the simulation's clock. */
		if (p.ack == PEER_EVERY || p.ack == PEER_LAST)
			assert_int_equal(res.end_ps, link.end_ps);
	}
}

static void controls(void **state)
{
	struct race_params p = params("patch");
	struct race_result res;

	(void)state;
	p.rtt_ps = 2 * US;
	p.ack = PEER_LAST;
	res = run(&p, TRIM_EAGER);
	assert_int_equal(res.races, 0);
	assert_int_equal(res.partial_acks, 0);
	p = params("patch");
	p.rtt_ps = 2 * US;
	p.k = 1;
	p.skb_bytes = TCP_MSS_ETHERNET;
	assert_int_equal(run(&p, TRIM_EAGER).races, 0);
	p = params("patch");
	p.rtt_ps = 200 * US;
	assert_int_equal(run(&p, TRIM_EAGER).races, 0);
}

/* Interrupts: moderation widens the software's window, if ACKs have a vector of their own. */
static void moderation(void **state)
{
	struct race_params p = params("gen2x8");
	struct race_result res;

	(void)state;
	p.rtt_ps = 30 * US;
	assert_int_equal(run(&p, TRIM_EAGER).races, 0);
	p.mode = RACE_IRQ;
	assert_int_equal(run(&p, TRIM_EAGER).races, 0);
	/* The rest of 10 descriptors beyond WTHRESH 8 waits for the timer. */
	p.wthresh = 8;
	p.itr_us = 100;
	res = run(&p, TRIM_EAGER);
	assert_in_range(res.races, SKBS - 1, SKBS);
	p.mode = RACE_IRQ_SHARED;
	res = run(&p, TRIM_EAGER);
	assert_int_equal(res.before_reclaim, 0); /* cleaned first, in the same poll */
}

/* Each partial ACK that finds the clone is an attempt to trim; the log replays without a device. */
static void attempts(void **state)
{
	struct race_params p = params("patch");
	struct race_result res;
	struct race_log log;
	char err[700];

	(void)state;
	p.rtt_ps = 5 * US;
	assert_int_equal(race_model(&p, TRIM_EAGER, &log, &res, err, sizeof(err)), 0);
	assert_int_equal(res.partial_acks, SKBS * 22);
	assert_in_range(res.trims, SKBS * 15, SKBS * 22);
	assert_true(res.dd_after_ack.min_us > 0);
	assert_true(race_replay_ns(&p, TRIM_EAGER, &log) > 0);
	assert_true(race_replay_ns(&p, TRIM_OFFSET_ACK, &log) > 0);
	race_log_exit(&log);
	assert_int_equal(model_pages_in_use(), 0);
}

static void refused(void **state)
{
	struct race_params bad[7];
	struct race_result res;

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = params("patch");
	bad[0].nr_skbs = 0;
	bad[1].inflight = 33;
	bad[2].skb_bytes = 524280;
	bad[3].rtt_ps = 100;
	bad[4].wthresh = 8;
	bad[5].k = 0;
	bad[6].skb_bytes = TCP_MSS_ETHERNET; /* no PSH, and k is 2 */
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		char err[700] = "";

		assert_int_equal(race_model(&bad[i], TRIM_EAGER, NULL, &res, err, sizeof(err)),
				 -EINVAL);
		assert_true(err[0]);
		assert_int_equal(model_pages_in_use(), 0);
	}
}

/* An sk_buff whose lengths disagree is told, and never reaches the ring. */
static void wrong_length(void **state)
{
	static const u8 peer[6] = { 2, 0, 0, 0, 0, 2 };
	struct bed *b = aligned_alloc(64, ALIGN(sizeof(*b), 64));
	struct rig *r = rig_new();
	struct sk_buff *clone;
	char err[200] = "";
	struct flow flow;
	struct skb_tx t;

	(void)state;
	assert_non_null(memset(b, 0, sizeof(*b)));
	rig_open(r);
	assert_int_equal(tx_ring_init(&b->ring, 64), 0);
	tcp_sock_init(&b->sk, &b->prot, &b->ring, SKB_FRAG_PAGE_ORDER);
	flow_init(&flow, r->ix.mac, peer);
	assert_int_equal(skb_tx_init(&t, &r->ix.txq[0], &b->ring, &flow, err, sizeof(err)), 0);
	assert_int_equal(tcp_sendmsg_in_place(ERA_6_12, &b->sk, 7722), 7722);
	tcp_write_xmit(ERA_6_12, TRIM_EAGER, &b->sk);
	clone = b->ring.slot[0];
	clone->len += 378;
	assert_int_equal(skb_tx_push(&t, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "whose length is 8166, with 7788 bytes in it"));
	assert_int_equal(r->ix.txq[0].next_to_use, 0);
	clone->len -= 378;
	assert_int_equal(skb_tx_push(&t, err, sizeof(err)), 1);
	rig_complete(r, 0, 1, 10);
	skb_tx_complete(ERA_6_12, &t, 1);
	rig_run_us(r, 100);
	assert_int_equal(r->nr_frames, 6);
	assert_true(tcp_ack(ERA_6_12, TRIM_EAGER, &b->sk, b->sk.write_seq) >= 0);
	tcp_sock_destroy(ERA_6_12, &b->sk);
	tx_ring_exit(&b->ring);
	rig_no_violation(r);
	ixgbe_stop(&r->ix);
	skb_tx_exit(&t);
	nicdev_arena_exit(&r->arena);
	nicdev_close(r->dev);
	rig_forget(r);
	free(r);
	free(b);
	assert_int_equal(model_pages_in_use(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step),		cmocka_unit_test(as_simulated),
		cmocka_unit_test(controls),	cmocka_unit_test(moderation),
		cmocka_unit_test(attempts),	cmocka_unit_test(refused),
		cmocka_unit_test(wrong_length),
	};

	model_start(MODEL_ALLOCATOR, 8192);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
