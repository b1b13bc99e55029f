/* SPDX-License-Identifier: MIT */
/*
 * A socket on a link: the race share as a function of the RTT, what each part of the timing does to
 * it, replay, several packets under way, and what is refused.
 */
#include "sim/link.h"
#include "tests/support/model.h"

#include <errno.h>
#include <string.h>

#define MSS	TCP_MSS_ETHERNET
#define BYTES	(45 * MSS)
#define US	SIM_PS_PER_US
#define NR_SKBS 8

#define for_each_era(era) for (enum skb_era era = ERA_3_4; era < SKB_ERA_NR; era++)

struct bed {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	enum skb_era era;
	enum tcp_trim trim;
	u32 bytes, base;
	u32 done;
};

static void bed_send(void *arg, u32 nr)
{
	struct bed *b = arg;

	(void)nr;
	assert_int_equal(tcp_sendmsg_in_place(b->era, &b->sk, b->bytes), b->bytes);
	tcp_write_xmit(b->era, b->trim, &b->sk);
}

static void bed_ack(void *arg, u32 acked)
{
	struct bed *b = arg;
	char err[200] = "";

	assert_true(tcp_ack(b->era, b->trim, &b->sk, b->base + acked) > 0);
	if (tcp_check_sock(b->era, b->trim, &b->sk, err, sizeof(err)))
		fail_msg("%s", err);
}

static void bed_complete(void *arg, u32 nr)
{
	struct bed *b = arg;

	assert_int_equal(tx_ring_complete(b->era, &b->ring, nr), nr);
}

static void bed_done(void *arg, u32 nr)
{
	struct bed *b = arg;

	b->done += nr;
}

static const struct link_params lone = {
	.ack = PEER_EVERY,
	.k = 2,
	.nr_skbs = NR_SKBS,
	.skb_bytes = BYTES,
	.inflight = 1,
	.seed = 1,
};

static void open_bed(struct bed *b, const struct link_params *p, enum tcp_trim trim)
{
	memset(b, 0, sizeof(*b));
	b->era = p->era;
	b->trim = trim;
	b->bytes = p->skb_bytes;
	assert_int_equal(tx_ring_init(&b->ring, 64), 0);
	tcp_sock_init(&b->sk, &b->prot, &b->ring, SKB_FRAG_PAGE_ORDER);
	b->sk.gso_max_size = max(p->skb_bytes, (u32)TCP_GSO_MAX_SIZE);
	b->base = b->sk.snd_una;
}

static void close_bed(struct bed *b)
{
	assert_int_equal(b->sk.packets_out, 0);
	assert_int_equal(b->sk.sk_wmem_queued, 0);
	assert_int_equal(refcount_read(&b->sk.sk_wmem_alloc, SKB_C_WMEM), 1);
	tcp_sock_destroy(b->era, &b->sk);
	tx_ring_exit(&b->ring);
	assert_int_equal(proto_memory_bytes(&b->prot), 0);
	assert_int_equal(model_pages_in_use(), 0);
}

static const struct link_calls *calls_of(struct bed *b)
{
	static struct link_calls calls = { { bed_send, bed_ack, bed_complete, bed_done }, NULL };

	calls.ctx = b;
	return &calls;
}

/* Runs P; *LOG may be NULL. */
static struct link_result run(const struct link_params *p, enum tcp_trim trim, struct link_log *log)
{
	struct link_log own;
	struct link_result res;
	struct bed b;
	char err[300] = "";

	open_bed(&b, p, trim);
	if (link_simulate(p, &b.sk, calls_of(&b), log ? log : &own, &res, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(b.done, p->nr_skbs);
	assert_int_equal(res.n.skbs, p->nr_skbs);
	assert_int_equal(res.n.payload_bytes, (u64)p->nr_skbs * p->skb_bytes);
	assert_int_equal(res.n.races, res.races_before_dd + res.races_before_reclaim);
	assert_int_equal(smp_processor_id(), 0);
	close_bed(&b);
	if (!log)
		link_log_exit(&own);
	return res;
}

static s64 window_ps(const struct nic_params *nic, u32 k)
{
	struct nic_lone l;
	char err[200];

	assert_int_equal(nic_lone(nic, BYTES, MSS, 1, k, &l, err, sizeof(err)), 0);
	return l.window_ps;
}

/* From 1 to 0 in one step, which lies where the window and the reclaim delay end. */
static void step(void **state)
{
	static const struct {
		const char *point;
		u32 reclaim_us, k;
	} rows[] = {
		{ "patch", 0, 2 },	{ "gen1x4", 0, 2 },  { "gen2x8", 0, 2 },
		{ "gen2x8", 30, 2 },	{ "gen1x4", 7, 10 }, { "gen2x4", 0, 1 },
		{ "fifo_full", 80, 2 },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct link_params p = lone;
		s64 end;

		p.nic = nic_preset(rows[i].point);
		p.reclaim_ps = rows[i].reclaim_us * US;
		p.k = rows[i].k;
		p.era = i % SKB_ERA_NR;
		end = window_ps(p.nic, p.k) + (s64)p.reclaim_ps;
		assert_true(end > 0);
		for (p.rtt_ps = US; (s64)p.rtt_ps < end + 20 * (s64)US; p.rtt_ps += US) {
			struct link_result res = run(&p, i % TCP_TRIM_NR, NULL);
			u32 expected = (s64)p.rtt_ps < end ? NR_SKBS : 0;

			if (res.n.races != expected)
				fail_msg("%s, RTT %llu us: %u races, not %u; the window ends at "
					 "%lld ps",
					 rows[i].point, (unsigned long long)(p.rtt_ps / US),
					 res.n.races, expected, (long long)end);
			/* Before DD in the NIC's window, then only before reclaim. */
			assert_int_equal(res.races_before_dd,
					 (s64)p.rtt_ps < window_ps(p.nic, p.k) ? NR_SKBS : 0);
		}
	}
}

/* The named points at the patch's RTT, and nothing that era or variant could change. */
static void named_points(void **state)
{
	static const struct {
		const char *point;
		u32 races;
	} rows[] = {
		{ "patch", NR_SKBS }, { "gen1x4", NR_SKBS }, { "gen2x8", 0 }, { "fifo_full", 0 }
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 end_ps = 0;

		for_each_era (era) {
			for (enum tcp_trim trim = TRIM_EAGER; trim < TCP_TRIM_NR; trim++) {
				struct link_params p = lone;
				struct link_result res;

				p.nic = nic_preset(rows[i].point);
				p.rtt_ps = 50 * US;
				p.era = era;
				res = run(&p, trim, NULL);
				assert_int_equal(res.n.races, rows[i].races);
				assert_int_equal(res.n.acks, NR_SKBS * 23);
				assert_int_equal(res.n.partial_acks, NR_SKBS * 22);
				assert_true(!end_ps || end_ps == res.end_ps);
				end_ps = res.end_ps;
			}
		}
	}
}

/* The controls of the experiment: what can never race. */
static void controls(void **state)
{
	struct link_params p = lone;
	struct link_result res;

	(void)state;
	p.nic = nic_preset("patch");
	p.rtt_ps = US;
	p.ack = PEER_LAST;
	res = run(&p, TRIM_EAGER, NULL);
	assert_int_equal(res.n.races, 0);
	assert_int_equal(res.n.acks, NR_SKBS);
	assert_int_equal(res.n.partial_acks, 0);

	p.ack = PEER_EVERY;
	p.k = 1;
	p.skb_bytes = MSS;
	res = run(&p, TRIM_EAGER, NULL);
	assert_int_equal(res.n.segs, NR_SKBS);
	assert_int_equal(res.n.races, 0);

	p.skb_bytes = BYTES;
	p.nic = nic_preset("fifo_full");
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 0);
}

/* Other peers: the window is that of the first segment they acknowledge. */
static void peers(void **state)
{
	struct link_params p = lone;
	struct link_result res;

	(void)state;
	p.nic = nic_preset("gen1x4");
	p.rtt_ps = 50 * US;
	p.ack = PEER_DELAYED;
	res = run(&p, TRIM_OFFSET_ACK, NULL);
	assert_int_equal(res.n.races, NR_SKBS);
	assert_int_equal(res.n.acks, NR_SKBS * 23);
	assert_true(res.end_ps > NR_SKBS * 40 * SIM_PS_PER_MS); /* the odd segment waits */

	p.ack = PEER_STRETCH;
	p.k = 8;
	assert_int_equal(run(&p, TRIM_OFFSET_ACK, NULL).n.races, NR_SKBS);
	p.k = 17; /* 20 us end the batch before it is full */
	res = run(&p, TRIM_OFFSET_ACK, NULL);
	assert_int_equal(res.n.races, window_ps(p.nic, 13) > (s64)p.rtt_ps ? NR_SKBS : 0);
	assert_true(res.n.acks > NR_SKBS * 3);
}

/* WTHRESH leaves the descriptors to the interrupt moderation: R1 grows by that much. */
static void moderation(void **state)
{
	struct nic_params nic = *nic_preset("gen2x8");
	struct link_params p = lone;

	(void)state;
	p.nic = &nic;
	p.rtt_ps = 50 * US;
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 0);
	nic.wthresh = 8; /* a packet has 2 + 2 descriptors here */
	nic.itr_ps = 40 * US;
	/* One packet at a time: its 4 descriptors wait for the moderation. */
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, NR_SKBS);
	nic.itr_ps = 30 * US;
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 0);
}

/*
 * Several packets under way: where PCIe is the bottleneck nothing changes; where the wire is, they
 * fill the transmit buffer themselves, and the race ends (what a saturated queue does).
 */
static void saturated(void **state)
{
	struct link_params p = lone;
	struct link_result res;

	(void)state;
	p.nr_skbs = 64;
	p.rtt_ps = 5 * US;
	p.inflight = 1;
	p.nic = nic_preset("gen2x8");
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 64);
	p.inflight = 8;
	res = run(&p, TRIM_EAGER, NULL);
	assert_true(res.n.races < 8);
	/* The wire is busy from the first byte on: 55.37 us each. */
	assert_true(res.end_ps < 64 * 554 * US / 10 + 10 * US);

	p.nic = nic_preset("patch");
	p.rtt_ps = 50 * US;
	res = run(&p, TRIM_EAGER, NULL);
	assert_int_equal(res.n.races, 64);
	/* The 4660 Mbit/s of the patch's author, within what the model rounds. */
	assert_in_range(64ull * BYTES * 8 * 1000000 / res.end_ps, 4400, 4700);
}

/* BIG TCP at 100 Gbit/s: an RTT of 30 us races again, which 64 KB does not. */
static void big_tcp(void **state)
{
	struct link_params p = lone;

	(void)state;
	p.era = ERA_6_12;
	p.rtt_ps = 30 * US;
	p.nic = nic_preset("100g");
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 0);
	p.nic = nic_preset("big_tcp_100g");
	p.skb_bytes = 362 * MSS; /* whole segments */
	p.nr_skbs = 4;
	assert_int_equal(run(&p, TRIM_EAGER, NULL).n.races, 4);
}

/* The same parameters give the same list; another seed of the jitter gives another. */
static void deterministic(void **state)
{
	struct link_params p = lone;
	struct link_log a, b;
	struct link_result ra, rb;

	(void)state;
	p.nic = nic_preset("gen1x4");
	p.rtt_ps = 65 * US;
	p.jitter_ps = 10 * US;
	p.nr_skbs = 64;
	p.inflight = 3;
	ra = run(&p, TRIM_EAGER, &a);
	rb = run(&p, TRIM_EAGER, &b);
	assert_int_equal(a.nr_ops, b.nr_ops);
	assert_memory_equal(a.op, b.op, a.nr_ops * sizeof(*a.op));
	assert_int_equal(ra.end_ps, rb.end_ps);
	assert_int_equal(ra.n.wire_hash, rb.n.wire_hash);
	/* Near the end of the window jitter decides: some race, some do not. */
	assert_in_range(ra.n.races, 1, 63);
	link_log_exit(&b);
	p.seed = 2;
	rb = run(&p, TRIM_EAGER, &b);
	assert_int_not_equal(ra.end_ps, rb.end_ps);
	link_log_exit(&a);
	link_log_exit(&b);
}

/* The list, replayed on one CPU, sees what the simulation saw. */
static void replay(void **state)
{
	struct link_params p = lone;
	struct link_packet pkt;
	struct link_result res;
	struct link_watch w;
	struct link_log log;
	struct bed b;

	(void)state;
	p.nic = nic_preset("gen1x4");
	p.rtt_ps = 70 * US;
	p.jitter_ps = 5 * US;
	p.nr_skbs = 48;
	p.inflight = 4;
	for (enum tcp_trim trim = TRIM_EAGER; trim < TCP_TRIM_NR; trim++) {
		res = run(&p, trim, &log);
		assert_in_range(res.n.races, 1, 47);
		open_bed(&b, &p, trim);
		link_watch_init(&w, &b.sk);
		for (u32 i = 0; i < log.nr_ops; i++) {
			if (log.op[i].call == LINK_ACK)
				link_watch_ack(&w, p.era, &b.sk, b.base + log.op[i].arg);
			calls_of(&b)->fn[log.op[i].call](&b, log.op[i].arg);
			while (link_watch_sent(&w, &b.sk, &pkt))
				assert_int_equal(pkt.bytes, BYTES);
		}
		close_bed(&b);
		assert_int_equal(w.n.races, res.n.races);
		assert_int_equal(w.n.acks, res.n.acks);
		assert_int_equal(w.n.partial_acks, res.n.partial_acks);
		assert_int_equal(w.n.wire_bytes, res.n.wire_bytes);
		assert_int_equal(w.n.wire_hash, res.n.wire_hash);
		assert_int_equal(log.nr_done, p.nr_skbs);
		link_log_exit(&log);
	}
}

static void send_half(void *arg, u32 nr)
{
	struct bed *b = arg;

	(void)nr;
	assert_int_equal(tcp_sendmsg_in_place(b->era, &b->sk, b->bytes / 2), b->bytes / 2);
	tcp_write_xmit(b->era, b->trim, &b->sk);
}

static void do_not(void *arg, u32 nr)
{
	(void)arg, (void)nr;
}

/* Errors are told, and the socket is as the calls have left it. */
static void refused(void **state)
{
	static const struct {
		struct link_calls calls;
		u64 rtt_ps;
		u32 k, nr_skbs, inflight;
		int ret;
		const char *says;
	} rows[] = {
		{ { { bed_send, bed_ack, bed_complete, NULL }, NULL },
		  10000,
		  2,
		  8,
		  1,
		  -EINVAL,
		  "RTT" },
		{ { { bed_send, bed_ack, bed_complete, NULL }, NULL },
		  US,
		  0,
		  8,
		  1,
		  -EINVAL,
		  "ACK" },
		{ { { bed_send, bed_ack, bed_complete, NULL }, NULL },
		  US,
		  2,
		  0,
		  1,
		  -EINVAL,
		  "1 to" },
		{ { { bed_send, bed_ack, bed_complete, NULL }, NULL },
		  US,
		  2,
		  8,
		  65,
		  -EINVAL,
		  "65" },
		{ { { send_half, bed_ack, bed_complete, NULL }, NULL },
		  US,
		  2,
		  8,
		  1,
		  -EIO,
		  "bytes" },
		{ { { do_not, bed_ack, bed_complete, NULL }, NULL },
		  US,
		  2,
		  8,
		  1,
		  -EIO,
		  "0 packets" },
		{ { { bed_send, do_not, bed_complete, NULL }, NULL }, US, 2, 8, 1, -EIO, "ACK" },
		{ { { bed_send, bed_ack, do_not, NULL }, NULL }, US, 2, 8, 1, -EIO, "complete" },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct link_params p = lone;
		struct link_calls calls = rows[i].calls;
		struct link_result res;
		struct link_log log;
		struct bed b;
		char err[300] = "";

		p.nic = nic_preset("gen2x8");
		p.rtt_ps = rows[i].rtt_ps;
		p.k = rows[i].k;
		p.nr_skbs = rows[i].nr_skbs;
		p.inflight = rows[i].inflight;
		open_bed(&b, &p, TRIM_EAGER);
		calls.ctx = &b;
		assert_int_equal(link_simulate(&p, &b.sk, &calls, &log, &res, err, sizeof(err)),
				 rows[i].ret);
		if (!strstr(err, rows[i].says))
			fail_msg("row %u says '%s', not '%s'", i, err, rows[i].says);
		assert_null(log.op);
		assert_int_equal(smp_processor_id(), 0);
		tx_ring_complete(b.era, &b.ring, 64);
		tcp_ack(b.era, b.trim, &b.sk, b.sk.snd_nxt);
		close_bed(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step),	      cmocka_unit_test(named_points),
		cmocka_unit_test(controls),   cmocka_unit_test(peers),
		cmocka_unit_test(moderation), cmocka_unit_test(saturated),
		cmocka_unit_test(big_tcp),    cmocka_unit_test(deterministic),
		cmocka_unit_test(replay),     cmocka_unit_test(refused),
	};

	model_start(MODEL_ALLOCATOR, 8192);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
