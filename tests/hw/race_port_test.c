/* SPDX-License-Identifier: MIT */
/*
 * The race on a port, in real time: a model that a thread of this process serves by vfio-user, 100
 * times slower than a card, so that a busy machine keeps up. Counts that do not depend on time, every
 * peer, each way to end early, what is refused; that the device is stopped afterwards and the memory
 * back. No time is judged, but by the device's own clock.
 */
#include "hw/race_port.h"
#include "hw/ixgbe/ixgbe.h"
#include "hw/race_internal.h"
#include "hw/responder.h"
#include "hw/vfu/client.h"
#include "hw/vfu/server.h"
#include "tests/support/model.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define US	   SIM_PS_PER_US
#define SLOW	   100
#define SKBS	   4
#define SEGMENTS   45
#define ACKS	   23 /* of a packet: every second segment, and the last */
#define HALT_MS	   20000
#define SHORT_HALT 400
#define RX_DMA_PS  (500 * SIM_PS_PER_NS)
#define FAULT_AT   100 /* frames: in the third packet */
#define ERR_BYTES  700

static const u8 peer_mac[6] = { 2, 0, 0, 0, 0, 2 };

static volatile int stop, no_stop;

/* --- a port, and who is at the other end of its wire */

struct bench;

enum other_end {
	NOBODY,
	ACKS_ALL, /* a responder on the model */
	CABLE, /* the bench's second port */
	ACKS_TOO_MUCH, /* of bytes that were never sent */
	ACKS_WRONG, /* with a checksum that is none */
};

enum fault { FAULT_NONE, FAULT_LINK, FAULT_GONE, FAULT_STALL, FAULT_SIGNAL };

struct port {
	struct bench *b;
	struct model_82599 *m;
	struct vfu_server s;
	struct nicdev *dev;
	struct responder peer;
	struct flow flow;
	char path[64], err[200];
	bool begun;
	u32 frames;
};

struct bench {
	struct port port[VFU_MAX_PORTS];
	u32 nr;
	struct nic_params timing;
	enum other_end end;
	enum fault fault;
	pthread_t server, tester;
	char directory[32];
};

static void count_frame(struct port *p)
{
	if (++p->frames != FAULT_AT)
		return;
	switch (p->b->fault) {
	case FAULT_LINK:
		model_set_link(p->m, false);
		break;
	case FAULT_GONE:
		model_surprise_removal(p->m);
		break;
	case FAULT_STALL:
		model_stall(p->m);
		break;
	case FAULT_SIGNAL:
		pthread_kill(p->b->tester, SIGUSR1);
		break;
	default:
		break;
	}
}

static void acknowledge(struct port *p, u32 ack, bool wrong)
{
	const struct flow back = flow_reverse(&p->flow);
	u8 frame[FLOW_HEADER_BYTES];
	u32 len = flow_ack_frame(&back, frame, 1, ack);

	frame[FLOW_MAC_BYTES + FLOW_IP_BYTES + 17] ^= wrong;
	if (model_receive(p->m, nicdev_now_ps(model_nicdev(p->m)), 0, frame, len))
		snprintf(p->err, sizeof(p->err), "no memory for an ACK");
}

static void frame_left(void *ctx, const struct model_frame *f)
{
	static const struct responder_params rp = {
		.rtt_ps = 100 * US, .seed = 1, .policy = PEER_EVERY, .k = 2
	};
	struct port *p = ctx;
	struct bench *b = p->b;
	u32 seq;

	count_frame(p);
	if (b->end == CABLE) {
		struct model_82599 *to = b->port[p == &b->port[0]].m;

		if (model_receive(to, nicdev_now_ps(model_nicdev(to)), 0, f->data, f->len))
			snprintf(p->err, sizeof(p->err), "no memory on the cable");
		return;
	}
	if (!p->begun && !flow_learn(f->data, f->len, &p->flow, &seq))
		return;
	if (!p->begun && b->end == ACKS_ALL &&
	    responder_init(&p->peer, p->m, &rp, &p->flow, seq, &b->timing, RX_DMA_PS, p->err,
			   sizeof(p->err)))
		return;
	p->begun = true;
	if (b->end == ACKS_ALL)
		responder_partner(&p->peer, f);
	else
		acknowledge(p, seq + 262144, b->end == ACKS_WRONG);
}

static void *serve(void *arg)
{
	struct bench *b = arg;
	struct vfu_server *const server[] = { &b->port[0].s, &b->port[1].s };

	vfu_serve(server, b->nr, &no_stop);
	for (u32 i = 0; i < b->nr; i++)
		vfu_server_disconnect(server[i]);
	return NULL;
}

static struct bench *bench_open(enum other_end end, enum fault fault)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->nr = end == CABLE ? 2 : 1;
	b->end = end;
	b->fault = fault;
	b->tester = pthread_self();
	b->timing = *nic_preset("gen2x8");
	b->timing.wire_mbps /= SLOW;
	b->timing.pcie_mbps /= SLOW;
	strcpy(b->directory, "/tmp/skbench-port-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	for (u32 i = 0; i < b->nr; i++) {
		struct port *p = &b->port[i];
		struct model_params mp = { .timing = &b->timing,
					   .seed = i,
					   .rx_dma_ps = RX_DMA_PS,
					   .partner = end == NOBODY ? NULL : frame_left,
					   .ctx = p };

		p->b = b;
		assert_int_equal(model_open(&mp, &p->m, p->err, sizeof(p->err)), 0);
		vfu_server_init(&p->s, p->m);
		snprintf(p->path, sizeof(p->path), "%s/nic%u", b->directory, i);
		p->s.listener = vfu_listen(p->path, p->err, sizeof(p->err));
		if (p->s.listener < 0)
			fail_msg("%s", p->err);
	}
	assert_int_equal(pthread_create(&b->server, NULL, serve, b), 0);
	for (u32 i = 0; i < b->nr; i++)
		if (vfu_open(b->port[i].path, &b->port[i].dev, b->port[i].err,
			     sizeof(b->port[i].err)))
			fail_msg("%s", b->port[i].err);
	return b;
}

/* The device is stopped, did nothing wrong, and the memory is back; unless it is GONE. */
static void bench_close(struct bench *b, bool gone)
{
	for (u32 i = 0; i < b->nr; i++) {
		u16 command = nicdev_config_read16(b->port[i].dev, PCI_CFG_COMMAND);

		if (gone && !i)
			assert_true(nicdev_gone(b->port[i].dev));
		else
			assert_int_equal(command & PCI_COMMAND_MASTER, 0);
	}
	for (u32 i = 0; i < b->nr; i++)
		nicdev_close(b->port[i].dev);
	assert_int_equal(pthread_join(b->server, NULL), 0);
	for (u32 i = 0; i < b->nr; i++) {
		struct port *p = &b->port[i];

		assert_int_equal(p->s.ret, 0);
		if (!gone)
			assert_false(p->s.was_active);
		if (model_nr_violations(p->m))
			fail_msg("%s", model_first_violation(p->m));
		assert_string_equal(p->err, "");
		assert_string_equal(p->peer.wrong, "");
		close(p->s.listener);
		unlink(p->path);
		nicdev_close(model_nicdev(p->m));
		responder_exit(&p->peer);
	}
	assert_int_equal(rmdir(b->directory), 0);
	free(b);
	assert_int_equal(model_pages_in_use(), 0);
	assert_int_equal(smp_processor_id(), 0);
}

static struct race_params params(void)
{
	struct race_params p = race_defaults;

	p.nr_skbs = SKBS;
	return p;
}

static struct race_port port_of(const struct bench *b, enum race_peer peer)
{
	struct race_port port = {
		.dev = b->port[0].dev, .peer = peer, .halt_ms = HALT_MS, .stop = &stop
	};

	if (peer == RACE_PEER_PORT)
		port.peer_dev = b->port[1].dev;
	memcpy(port.peer_mac, peer_mac, sizeof(peer_mac));
	return port;
}

/* What a whole run counts, whoever answers every second segment and whenever. */
static void check_counts(const struct race_result *res, const struct race_log *log)
{
	u32 calls[3] = { 0 }, completed = 0, acked = 0;

	assert_int_equal(res->skbs, SKBS);
	assert_int_equal(res->segments, SKBS * SEGMENTS);
	assert_int_equal(res->acks, SKBS * ACKS);
	assert_int_equal(res->partial_acks, SKBS * (ACKS - 1));
	assert_int_equal(res->races, res->before_dd + res->before_reclaim);
	assert_in_range(res->races, 0, SKBS);
	assert_in_range(res->trims, res->races, SKBS * (ACKS - 1));
	assert_false(res->stopped);
	assert_true(res->end_ps > 0);
	assert_true(res->dd_after_doorbell.min_us > 0);
	assert_true(res->ack_after_doorbell.min_us > 0);
	assert_true(res->reclaim_after_dd.min_us >= 0);
	/* Both threads' calls, in one list: all that was sent is acknowledged and completed once. */
	for (u32 i = 0; i < log->nr; i++) {
		const struct race_op *op = &log->op[i];

		assert_in_range(op->what, OP_SEND, OP_COMPLETE);
		calls[op->what]++;
		if (op->what == OP_COMPLETE)
			completed += op->arg;
		if (op->what == OP_ACK) {
			assert_true(op->arg > acked);
			acked = op->arg;
			assert_true(acked <= calls[OP_SEND] * race_defaults.skb_bytes);
		}
		assert_true(completed <= calls[OP_SEND]);
	}
	assert_int_equal(calls[OP_SEND], SKBS);
	assert_int_equal(calls[OP_ACK], SKBS * ACKS);
	assert_int_equal(completed, SKBS);
	assert_int_equal(acked, SKBS * race_defaults.skb_bytes);
}

static void replay(const struct race_params *p, struct race_log *log)
{
	assert_true(race_replay_ns(p, TRIM_EAGER, log) > 0);
	assert_true(race_replay_ns(p, TRIM_OFFSET_ACK, log) > 0);
	race_log_exit(log);
}

/* --- runs to the end */

/* The MAC sends it all back: each mode, several in flight, eras and variants. */
static void loopback(void **state)
{
	static const struct {
		enum race_mode mode;
		u32 inflight, itr_us, wthresh;
		enum skb_era era;
		enum tcp_trim trim;
	} rows[] = {
		{ RACE_POLL, 1, 0, 0, ERA_6_12, TRIM_EAGER },
		{ RACE_POLL, 4, 0, 0, ERA_3_4, TRIM_OFFSET_ACK },
		{ RACE_IRQ, 2, 20, 8, ERA_6_1, TRIM_EAGER },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench *b = bench_open(NOBODY, FAULT_NONE);
		const struct race_port port = port_of(b, RACE_PEER_LOOPBACK);
		struct race_params p = params();
		struct race_result res;
		struct race_log log;
		char err[ERR_BYTES] = "";

		p.mode = rows[i].mode;
		p.inflight = rows[i].inflight;
		p.itr_us = rows[i].itr_us;
		p.wthresh = rows[i].wthresh;
		p.era = rows[i].era;
		p.rtt_ps = 100 * US;
		if (race_port(&p, &port, rows[i].trim, &log, &res, err, sizeof(err)))
			fail_msg("row %u: %s", i, err);
		check_counts(&res, &log);
		assert_int_equal(res.segments_on_wire, SKBS * SEGMENTS);
		assert_int_equal(res.foreign_frames, 0);
		assert_true(res.wire_after_doorbell.max_us <= 0); /* no marker */
		replay(&p, &log);
		bench_close(b, false);
	}
}

/*
 * A marker behind each packet: by the device's clock the packet takes the wire's time at least. The
 * peer sees the markers, and takes them for nobody's.
 */
static void markers(void **state)
{
	struct bench *b = bench_open(NOBODY, FAULT_NONE);
	struct race_port port = port_of(b, RACE_PEER_LOOPBACK);
	const double wire_us = (double)nic_time_ps(SEGMENTS * 1538, 10000 / SLOW) / US;
	struct race_params p = params();
	struct race_result res;
	struct race_log log;
	char err[ERR_BYTES] = "";

	(void)state;
	port.marker = true;
	if (race_port(&p, &port, TRIM_EAGER, &log, &res, err, sizeof(err)))
		fail_msg("%s", err);
	check_counts(&res, &log);
	assert_true(res.wire_after_doorbell.min_us >= wire_us);
	assert_true(res.wire_after_doorbell.max_us >= res.wire_after_doorbell.min_us);
	assert_in_range(res.foreign_frames, SKBS - 1, SKBS); /* the last may be on its way still */
	race_log_exit(&log);
	bench_close(b, false);
}

/* Somebody else answers: ACKs come in as frames, by polling and by one vector for both rings. */
static void external(void **state)
{
	(void)state;
	for (u32 i = 0; i < 2; i++) {
		struct bench *b = bench_open(ACKS_ALL, FAULT_NONE);
		const struct race_port port = port_of(b, RACE_PEER_EXTERNAL);
		struct race_params p = params();
		struct race_result res;
		struct race_log log;
		char err[ERR_BYTES] = "";

		p.mode = i ? RACE_IRQ_SHARED : RACE_POLL;
		if (race_port(&p, &port, TRIM_EAGER, &log, &res, err, sizeof(err)))
			fail_msg("%s", err);
		check_counts(&res, &log);
		assert_int_equal(res.segments_on_wire, 0); /* who else should have counted them? */
		if (p.mode == RACE_IRQ_SHARED)
			assert_int_equal(res.before_reclaim, 0); /* cleaned first, on one CPU */
		assert_int_equal(b->port[0].peer.segments, SKBS * SEGMENTS);
		replay(&p, &log);
		bench_close(b, false);
	}
}

/* A second port at the other end of a cable, with our driver on it. */
static void second_port(void **state)
{
	struct bench *b = bench_open(CABLE, FAULT_NONE);
	const struct race_port port = port_of(b, RACE_PEER_PORT);
	struct race_params p = params();
	struct race_result res;
	struct race_log log;
	char err[ERR_BYTES] = "";

	(void)state;
	if (race_port(&p, &port, TRIM_OFFSET_ACK, &log, &res, err, sizeof(err)))
		fail_msg("%s", err);
	check_counts(&res, &log);
	assert_int_equal(res.segments_on_wire, SKBS * SEGMENTS);
	assert_int_equal(b->port[1].frames, SKBS * ACKS);
	replay(&p, &log);
	bench_close(b, false);
}

/* --- runs that end early */

static void want_stop(int signal)
{
	(void)signal;
	stop = 1;
}

/* Each has its errno and its sentence, what had finished is told, and the device is stopped. */
static void ends_early(void **state)
{
	static const struct {
		enum other_end end;
		enum fault fault;
		u32 halt_ms;
		int ret;
		const char *says;
		u32 most; /* sk_buffs that can have finished */
	} rows[] = {
		{ ACKS_ALL, FAULT_LINK, HALT_MS, -ENODEV, "the link was lost in mid-run", 2 },
		{ ACKS_ALL, FAULT_GONE, HALT_MS, -ENODEV, "gone in mid-run", 2 },
		{ ACKS_ALL, FAULT_STALL, SHORT_HALT, -EIO, "transmit queue 0 hangs", 2 },
		{ NOBODY, FAULT_NONE, SHORT_HALT, -EIO, "does the peer answer?", 0 },
		{ ACKS_TOO_MUCH, FAULT_NONE, HALT_MS, -EIO, "an ACK of byte 262144", 0 },
		{ ACKS_WRONG, FAULT_NONE, HALT_MS, -EIO, "an ACK came in with a wrong", 0 },
		{ ACKS_ALL, FAULT_SIGNAL, HALT_MS, 0, "", 2 },
	};
	struct sigaction action = { .sa_handler = want_stop };

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench *b = bench_open(rows[i].end, rows[i].fault);
		struct race_port port = port_of(b, RACE_PEER_EXTERNAL);
		struct race_params p = params();
		struct race_result res;
		struct race_log log;
		char err[ERR_BYTES] = "";
		int ret;

		port.halt_ms = rows[i].halt_ms;
		ret = race_port(&p, &port, TRIM_EAGER, &log, &res, err, sizeof(err));
		if (ret != rows[i].ret || !strstr(err, rows[i].says))
			fail_msg("row %u: %d, not %d; '%s' does not say '%s'", i, ret, rows[i].ret,
				 err, rows[i].says);
		assert_in_range(res.skbs, 0, rows[i].most);
		assert_int_equal(res.stopped, rows[i].fault == FAULT_SIGNAL);
		assert_int_equal(log.nr, 0); /* half a run replays to nothing */
		assert_null(log.op);
		stop = 0;
		bench_close(b, rows[i].fault == FAULT_GONE);
	}
}

/* --- what is refused, before the device is touched */

static void refused(void **state)
{
	static const struct {
		const char *name, *says;
	} rows[] = {
		{ "irq-shared", "needs another peer" },
		{ "marker and more in flight", "one packet in flight" },
		{ "marker and WTHRESH", "WTHRESH 0" },
		{ "port without a port", "do not go together" },
		{ "a port without its peer", "do not go together" },
		{ "no sk_buffs", "1 to" },
		{ "one CPU", "a CPU each" },
	};
	struct bench *b = bench_open(NOBODY, FAULT_NONE);
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = rows[i].name;
		struct race_port port = port_of(b, RACE_PEER_LOOPBACK);
		struct race_params p = params();
		struct race_result res;
		struct race_log log;
		char err[ERR_BYTES] = "";
		int ret;

		if (!strcmp(name, "irq-shared"))
			p.mode = RACE_IRQ_SHARED;
		port.marker = !strncmp(name, "marker", 6);
		if (!strcmp(name, "marker and more in flight"))
			p.inflight = 2;
		if (!strcmp(name, "marker and WTHRESH"))
			p.wthresh = 8, p.itr_us = 10, p.mode = RACE_IRQ;
		if (!strcmp(name, "port without a port"))
			port.peer = RACE_PEER_PORT;
		if (!strcmp(name, "a port without its peer"))
			port.peer_dev = port.dev;
		if (!strcmp(name, "no sk_buffs"))
			p.nr_skbs = 0;
		if (!strcmp(name, "one CPU"))
			assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		ret = race_port(&p, &port, TRIM_EAGER, &log, &res, err, sizeof(err));
		assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
		if (ret != -EINVAL || !strstr(err, rows[i].says))
			fail_msg("%s: %d, '%s' does not say '%s'", name, ret, err, rows[i].says);
		assert_int_equal(res.skbs, 0);
	}
	bench_close(b, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback),   cmocka_unit_test(markers),
		cmocka_unit_test(external),   cmocka_unit_test(second_port),
		cmocka_unit_test(ends_early), cmocka_unit_test(refused),
	};
	int cpu[2];

	if (race_port_cpus(cpu, 2) < 2) {
		printf("one CPU alone: ACKs and completions need one each\n");
		return 0;
	}
	model_start(MODEL_ALLOCATOR, 1024); /* all of it is mapped for the device each time */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
