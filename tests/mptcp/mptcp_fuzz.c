/* SPDX-License-Identifier: MIT */
/*
 * Random programs of writes, pushes, cuts, trims, SACK shifts, losses, retransmissions and probes for
 * a larger MTU, with windows and size goals that move and allocations that fail; after each step every map is looked
 * at. A variant that claims to be right must never
 *
 *   bare       leave bytes without a map
 *   short      leave bytes that their map does not cover
 *   cut off    the same since the map's 16 bits do not say all of them
 *   grown      add bytes to an sk_buff that is larger than the size goal
 *   wrong      put bytes under the number of others
 *   overlap    let two different maps cover one byte
 *   in flight  change the map of a clone that is below TCP, but for its frozen bit
 *   peer       send what the peer finds wrong
 *
 * The posted patch and its split alone do: the test demands that the faults that are known of them
 * are found. Whatever happened, in the end every byte arrives once under its number, and nothing is
 * left in memory.
 *
 * SKB_SEED replays a run, SKB_OPS sets the number of steps that each variant gets.
 */
#include "tcp/tcp_mtu_probe.h"
#include "tests/mptcp/mptcp_harness.h"

#define STEPS_A_CONNECTION 1500

enum fault { BARE, SHORT, CUT_OFF, GROWN, WRONG, OVERLAP, IN_FLIGHT, PEER, FAULT_NR };

static const char *const fault_names[] = { "bare",  "short",   "cut off",   "grown",
					   "wrong", "overlap", "in flight", "peer" };

static struct rng rng;
static u64 step_nr;
static const char *step_name;
static u64 found[MPTCP_VARIANT_NR][FAULT_NR];
static u64 drained[MPTCP_VARIANT_NR], stepped[MPTCP_VARIANT_NR];
static bool broken; /* the connection of a variant that may be wrong is */
static struct mptcp_ext at_send[RING]; /* maps of what is in the ring */
static u32 known_tail; /* of the ring, to where at_send[] is filled */

static void fault(enum fault what, const char *text)
{
	if (claims_right(variant))
		fail_msg("%s, %s, step %llu (%s): %s: %s", skb_era_name(era),
			 mptcp_variant_name(variant), (unsigned long long)step_nr, step_name,
			 fault_names[what], text);
	found[variant][what]++;
	broken = true;
}

/*
 * --- looking
 * ------------------------------------------------------------------------------------
 */

static void note_sent(void)
{
	for (; known_tail != ring.tail; known_tail++) {
		const struct mptcp_ext *map = mptcp_get_ext(ring.slot[known_tail & ring.mask]);

		at_send[known_tail & ring.mask] = map ? *map : (struct mptcp_ext){ 0 };
	}
}

static bool same_but_frozen(const struct mptcp_ext *a, const struct mptcp_ext *b)
{
	struct mptcp_ext x = *a, y = *b;

	x.frozen = y.frozen = 0;
	return !memcmp(&x, &y, sizeof(x));
}

/* True if some sk_buff holds more than a map can say. */
static bool any_beyond_16_bits(void)
{
	const struct sk_buff_head *queues[] = { &sk.tcp_rtx_queue, &sk.sk_write_queue };

	for (size_t q = 0; q < ARRAY_SIZE(queues); q++)
		for (struct sk_buff *skb = queues[q]->next; !skb_queue_is_end(queues[q], skb);
		     skb = skb->next)
			if (skb->len > MPTCP_MAX_MAP)
				return true;
	return false;
}

static void look(void)
{
	char err[200] = "";

	note_sent();
	for (u32 i = ring.head; i != ring.tail && !broken; i++) {
		const struct mptcp_ext *map = mptcp_get_ext(ring.slot[i & ring.mask]);

		if (map && !same_but_frozen(map, &at_send[i & ring.mask]))
			fault(IN_FLIGHT, "the map of a clone has changed");
	}
	if (broken || !mptcp_check(era, variant, &msk, pattern, err, sizeof(err)))
		return;
	if (strstr(err, "without a map"))
		fault(BARE, err);
	else if (strstr(err, "overlaps"))
		fault(OVERLAP, err);
	else if (strstr(err, "the map is of"))
		fault(any_beyond_16_bits() ? CUT_OFF : SHORT, err);
	else if (strstr(err, "is not that of data sequence"))
		fault(WRONG, err);
	else
		fail_msg("%s, %s, step %llu (%s): %s", skb_era_name(era),
			 mptcp_variant_name(variant), (unsigned long long)step_nr, step_name, err);
}

/*
 * --- steps
 * --------------------------------------------------------------------------------------
 */

static void one_arrives(bool lost)
{
	struct sk_buff *packet = ring.slot[ring.head & ring.mask];

	if (!lost && mptcp_peer_rcv_check(&peer, packet) == -EPROTO)
		fault(PEER, peer.err);
	tx_ring_complete(era, &ring, 1);
}

static struct sk_buff *any(struct sk_buff_head *q)
{
	return q->qlen ? nth(q, rng_below(&rng, q->qlen)) : NULL;
}

static void step_write(void)
{
	msk.push_per_write = rng_below(&rng, 2);
	write_stream(1 + rng_below(&rng, rng_below(&rng, 4) ? 3000 : 40000));
}

static void step_push(void)
{
	push();
}

static void step_xmit(void)
{
	tcp_write_xmit(era, mptcp_tcp(variant), &sk);
}

static void step_window(void)
{
	static const u32 windows[] = { 0, 1420, 5000, 30000, 100000, 1 << 20 };

	sk.snd_wnd = windows[rng_below(&rng, ARRAY_SIZE(windows))];
}

static void step_cwnd(void)
{
	static const u32 windows[] = { 1, 5, 20, 100, TCP_INFINITE_CWND, TCP_INFINITE_CWND };

	sk.snd_cwnd = windows[rng_below(&rng, ARRAY_SIZE(windows))];
}

/* Probes are wanted from now on, or not; the headers are as long as those of the first MSS. */
static void step_probe(void)
{
	u32 low = tcp_mss_to_mtu(&sk, sk.mss_cache);

	if (sk.mtup.probe_size || !rng_below(&rng, 3))
		sk.mtup.enabled = false;
	else
		tcp_mtup_init(&sk, sk.mtup.header_len, low, low + rng_below(&rng, 20000));
	tcp_write_xmit(era, mptcp_tcp(variant), &sk);
}

static void step_probe_lost(void)
{
	tcp_mtup_probe_failed(&sk);
}

static void step_data_window(void)
{
	msk.wnd_end = msk.snd_nxt + rng_below(&rng, rng_below(&rng, 2) ? 3000 : 200000);
}

static void step_goal(void)
{
	static const u32 goals[] = { 1420, 7100, 27007, 27480, 63900, 65455, 65535, 80136 };

	msk.size_goal = goals[rng_below(&rng, ARRAY_SIZE(goals))];
}

static void step_arrive(void)
{
	if (tx_ring_count(&ring))
		one_arrives(!rng_below(&rng, 4));
	tcp_tsq_handler(era, mptcp_tcp(variant), &sk);
}

/* Anything up to what the peer has: ACKs come late, and trim in the middle. */
static void step_ack(void)
{
	u32 left = mptcp_peer_ack(&peer) - sk.snd_una;

	if ((s32)left > 0)
		tcp_ack(era, mptcp_tcp(variant), &sk, sk.snd_una + 1 + rng_below(&rng, left));
}

static void step_data_ack(void)
{
	u64 left = mptcp_peer_data_ack(&peer) - msk.snd_una;

	if ((s64)left > 0)
		mptcp_data_acked(&msk, msk.snd_una + 1 + rng_below(&rng, left));
}

static void step_sack(void)
{
	if (peer.subflow.nr) {
		u32 i = rng_below(&rng, peer.subflow.nr);

		tcp_sack(era, mptcp_tcp(variant), &sk, peer.subflow.range[i].start,
			 peer.subflow.range[i].end);
	}
}

static void step_retransmit(void)
{
	struct sk_buff *skb = any(&sk.tcp_rtx_queue);

	if (skb)
		tcp_retransmit_skb(era, mptcp_tcp(variant), &sk, skb, 1 + rng_below(&rng, 45));
}

static void step_lost(void)
{
	struct sk_buff *skb = any(&sk.tcp_rtx_queue);

	if (skb)
		tcp_mark_skb_lost(era, &sk, skb);
}

static void step_cut_sent(void)
{
	struct sk_buff *skb = any(&sk.tcp_rtx_queue);
	u32 len;

	if (!skb || skb->len < 2)
		return;
	len = 1 + rng_below(&rng, skb->len - 1);
	/* No half of what an ACK left whole, as a single segment, may be acknowledged. */
	if (after(TCP_SKB_CB(skb)->seq + len, sk.snd_una))
		tcp_fragment(era, mptcp_tcp(variant), &sk, &sk.tcp_rtx_queue, skb, len,
			     sk.mss_cache);
}

static void step_cut_unsent(void)
{
	struct sk_buff *skb = any(&sk.sk_write_queue);

	if (skb && skb->len > 1)
		tso_fragment(era, mptcp_tcp(variant), &sk, skb, 1 + rng_below(&rng, skb->len - 1),
			     sk.mss_cache);
}

static const struct {
	const char *name;
	void (*fn)(void);
	unsigned int weight;
} steps[] = {
	{ "write", step_write, 8 },
	{ "push", step_push, 4 },
	{ "xmit", step_xmit, 4 },
	{ "window", step_window, 3 },
	{ "cwnd", step_cwnd, 2 },
	{ "data window", step_data_window, 2 },
	{ "probe", step_probe, 2 },
	{ "probe lost", step_probe_lost, 1 },
	{ "goal", step_goal, 1 },
	{ "arrive", step_arrive, 12 },
	{ "ack", step_ack, 5 },
	{ "data ack", step_data_ack, 5 },
	{ "sack", step_sack, 5 },
	{ "retransmit", step_retransmit, 6 },
	{ "lost", step_lost, 2 },
	{ "cut sent", step_cut_sent, 2 },
	{ "cut unsent", step_cut_unsent, 2 },
};

#ifdef SKB_TRACED
static bool fail_sometimes(enum skb_site site)
{
	(void)site;
	return !rng_below(&rng, 12);
}
#endif

static void one_step(void)
{
	struct sk_buff *tail = skb_peek_tail(&sk.sk_write_queue);
	u32 len = tail ? tail->len : 0, goal = msk.size_goal;
	unsigned int total = 0, at;
	size_t i = 0;

	for (size_t s = 0; s < ARRAY_SIZE(steps); s++)
		total += steps[s].weight;
	for (at = rng_below(&rng, total); at >= steps[i].weight; i++)
		at -= steps[i].weight;
	step_name = steps[i].name;
#ifdef SKB_TRACED
	model_fail = rng_below(&rng, 4) ? NULL : fail_sometimes;
#endif
	steps[i].fn();
#ifdef SKB_TRACED
	model_fail = NULL;
#endif
	/* Writes and pushes free nothing, but for a probe, which may eat the tail. */
	if ((steps[i].fn == step_write || steps[i].fn == step_push) && !sk.mtup.enabled && tail &&
	    len > goal && tail->len > len)
		fault(GROWN, "the tail was larger than the size goal");
	look();
}

/*
 * --- connections
 * --------------------------------------------------------------------------------
 */

static void begin(enum mptcp_variant v)
{
	static const u32 mtus[] = { 1500, 9000, 65536 };
	u32 isn = rng_below(&rng, 2) ? -rng_below(&rng, 100000) : rng_next(&rng);
	u64 idsn = rng_below(&rng, 2) ? -(u64)rng_below(&rng, 100000) : rng_next(&rng);

	open_conn(rng_below(&rng, 2) ? ERA_6_1 : ERA_6_12, v, isn, idsn,
		  mtus[rng_below(&rng, ARRAY_SIZE(mtus))]);
	sk.autocork = rng_below(&rng, 2);
	sk.sk_sndbuf = 300000;
	msk.sndbuf = 400000;
	sk.mtup.header_len = 80;
	known_tail = 0;
	broken = false;
}

/* No more losses: all that was written arrives. */
static void drain(void)
{
	u64 rounds = 0;

	step_name = "drain";
	sk.snd_wnd = 1 << 30;
	sk.snd_cwnd = TCP_INFINITE_CWND;
	sk.mtup.enabled = false;
	msk.wnd_end = msk.write_seq;
	while (!broken && msk.snd_una != msk.write_seq) {
		struct sk_buff *skb;

		if (rounds++ > 100000)
			fail_msg("%s, %s: %llu bytes never arrive", skb_era_name(era),
				 mptcp_variant_name(variant),
				 (unsigned long long)(msk.write_seq - msk.snd_una));
		push();
		tcp_write_xmit(era, mptcp_tcp(variant), &sk);
		note_sent();
		while (tx_ring_count(&ring) && !broken)
			one_arrives(false);
		if (broken)
			break;
		tcp_tsq_handler(era, mptcp_tcp(variant), &sk);
		acked();
		look();
		skb = skb_peek(&sk.tcp_rtx_queue);
		if (skb)
			tcp_retransmit_skb(era, mptcp_tcp(variant), &sk, skb, 45);
		look();
	}
	if (!broken)
		drained[variant]++;
}

/* Broken connections are short: each variant gets as many steps, in as many connections as it takes. */
static enum mptcp_variant fewest_steps(void)
{
	enum mptcp_variant least = MPTCP_BEFORE;

	for_each_variant (v)
		if (stepped[v] < stepped[least])
			least = v;
	return least;
}

#define STEPS \
	10000 /* of each variant: enough that each fault of the posted patch is met many times */

static void random_programs(void **state)
{
	u64 ops = model_ops(STEPS);

	(void)state;
	rng.state = model_seed("mptcp", 20201210);
#ifdef SKB_TRACED
	counts_start();
#endif
	while (true) {
		enum mptcp_variant v = fewest_steps();

		if (stepped[v] >= ops)
			break;
		begin(v);
		for (int i = 0; i < STEPS_A_CONNECTION && !broken; i++) {
			one_step();
			step_nr++;
			stepped[v]++;
		}
		drain();
		close_conn();
		stepped[v]++; /* also of a connection that was broken by its first step */
	}
}

/* What the posted patch does wrong, and that nothing else does, over all that ran before. */
static void known_faults(void **state)
{
	(void)state;
	for_each_variant (v) {
		printf("%-12s %llu steps, %llu connections drained;", mptcp_variant_name(v),
		       (unsigned long long)stepped[v], (unsigned long long)drained[v]);
		for (int f = 0; f < FAULT_NR; f++)
			printf(" %s %llu", fault_names[f], (unsigned long long)found[v][f]);
		printf("\n");
	}
	for_each_variant (v) {
		if (claims_right(v))
			assert_true(drained[v] > 0);
	}
	if (model_ops(STEPS) < STEPS)
		skip(); /* SKB_OPS asks for so few that they need not be met */
	for (int v = MPTCP_SPLIT; v <= MPTCP_POSTED; v++) {
		/* Written under a clone, without a copy. */
		assert_true(found[v][IN_FLIGHT] > 0);
		/* Begun too early after a trim: as many bytes are missing at the end. */
		assert_true(found[v][SHORT] > 0);
	}
	assert_true(found[MPTCP_POSTED][CUT_OFF] > 0); /* a length of 17 bits */
	assert_true(found[MPTCP_POSTED][GROWN] > 0); /* a room below 0, taken for 4 billion */
#ifdef SKB_TRACED
	assert_true(found[MPTCP_SPLIT][BARE] + found[MPTCP_POSTED][BARE] > 0); /* no memory */
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs),
		cmocka_unit_test(known_faults),
	};

	return cmocka_run_group_tests(tests, mptcp_start, NULL);
}
