/* SPDX-License-Identifier: MIT */
#include "hw/race_port.h"
#include "hw/race_socket.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINK_MS	     9000
#define BUDGET	     64
#define RX_RING	     4096
#define ACK_RING     4096
#define LOOK_PS	     (50 * SIM_PS_PER_MS) /* between two looks at link and device */
#define MIN_FRAMES   64
#define LOG_CALLS    64 /* of each packet: its ACKs, its sending, its completion */
#define ERR_BYTES    600
#define MAX_CPUS     3
#define MARKER_BYTES 60
#define MARKER_TYPE  0x88f7 /* PTP, which is no connection of anybody */
#define STAMP_PS     (1000 * SIM_PS_PER_MS)
#define PEER_QUEUED  256 /* ACK frames on the second port that are not reported yet */
#define ACK_WIRE_LEN FLOW_HEADER_BYTES

/* An ACK on its way from our own peer. */
struct due_ack {
	u64 at_ps;
	u32 ack;
};

struct timed_op {
	u64 at_ps;
	struct race_op op;
};

struct timed_log {
	struct timed_op *op;
	u32 nr, room;
};

struct port_race {
	const struct race_params *p;
	const struct race_port *port;
	enum tcp_trim trim;
	struct race_result *res;
	char err[ERR_BYTES];
	int ret;

	struct nicdev *dev;
	struct ixgbe ix, peer_ix;
	bool started, peer_started, mapped;
	struct skb_tx tx;
	struct flow flow;
	int cpu[MAX_CPUS];
	u32 nr_cpus;
	struct race_packet *packet; /* the socket's */
	u32 *eop; /* last descriptor of each packet */
	double *wire_us; /* of each packet whose marker was stamped */

	/* The sender's. */
	struct race_socket s ____cacheline_aligned;
	u32 sent, acked;
	u64 progress_ps, looked_ps;
	u32 progress_acked, progress_reclaimed;
	struct timed_log calls;
	bool marked; /* a marker's stamp is to come */
	u64 marked_ns; /* by the device's clock, in front of its doorbell */
	u32 nr_stamps;

	/* The completions'. */
	u32 seen_done ____cacheline_aligned;
	u32 cleaned; /* on the device's ring, markers included */
	u32 due[RACE_MAX_SKBS]; /* packets of each reclaim to come, a ring */
	u64 due_ps[RACE_MAX_SKBS];
	u32 due_head, due_tail;
	struct timed_log completions;
	u32 reclaimed; /* read by the sender */

	/* The peer's. */
	struct peer peer ____cacheline_aligned;
	u64 rng, last_due_ps, peer_now_ps;
	u32 segments, foreign;
	const char *wrong; /* read by the sender */
	u32 wrong_seq;
	u32 ack_tail; /* read by the one that takes them */
	struct due_ack ack[ACK_RING];
	u32 ack_head ____cacheline_aligned; /* the taker's */

	int quit ____cacheline_aligned; /* the threads end */
	int nomem;
};

const char *race_peer_name(enum race_peer peer)
{
	static const char *const names[RACE_PEER_NR] = { "loopback", "port", "external" };

	return names[peer];
}

u32 race_port_cpus(int *cpu, u32 max)
{
	cpu_set_t set;
	u32 n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			if (n < max)
				cpu[n] = i;
			n++;
		}
	return n;
}

__attribute__((format(printf, 3, 4))) static void fail(struct port_race *r, int ret,
						       const char *fmt, ...)
{
	va_list ap;

	if (r->ret)
		return;
	r->ret = ret;
	va_start(ap, fmt);
	vsnprintf(r->err, sizeof(r->err), fmt, ap);
	va_end(ap);
}

static u64 now_ps(struct port_race *r)
{
	return nicdev_now_ps(r->dev);
}

static void note(struct port_race *r, struct timed_log *log, u8 what, u32 arg, u64 at_ps)
{
	if (log->nr == log->room) {
		__atomic_store_n(&r->nomem, 1, __ATOMIC_RELAXED);
		return;
	}
	log->op[log->nr++] = (struct timed_op){ at_ps, { what, arg } };
}

static void pin(const struct port_race *r, u32 which)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(r->cpu[which % r->nr_cpus], &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* a CPU that we may use */
}

/*
 * --- completions
 * ----------------------------------------------------------------------------------------------
 */

static void reclaim_due(struct port_race *r)
{
	while (r->due_head != r->due_tail) {
		u32 n = r->due[r->due_head % RACE_MAX_SKBS];
		u64 at = now_ps(r);

		if (r->due_ps[r->due_head % RACE_MAX_SKBS] > at)
			return;
		r->due_head++;
		note(r, &r->completions, OP_COMPLETE, n, at);
		skb_tx_complete(r->p->era, &r->tx, n);
		at = now_ps(r);
		for (u32 i = 0; i < n; i++)
			__atomic_store_n(&r->packet[r->reclaimed + i].reclaim_ps, at,
					 __ATOMIC_RELAXED);
		__atomic_store_n(&r->reclaimed, r->reclaimed + n, __ATOMIC_RELEASE);
	}
}

/* Of N packets on the device's ring: behind each clone there may be a marker. */
static u32 clones(const struct port_race *r, u32 n)
{
	return r->port->marker ? (n + 1) / 2 : n;
}

/* The first DONE clones have their DD by now. */
static void note_done(struct port_race *r, u32 done)
{
	while (r->seen_done < done)
		r->packet[r->seen_done++].dd_ps = now_ps(r);
}

/* Everything that is to be done about completions now; FIRED: a vector has said so, or we poll. */
static void complete_some(struct port_race *r, bool fired)
{
	struct ixgbe_txq *q = &r->ix.txq[0];
	u32 before = clones(r, r->cleaned), n;

	note_done(r, clones(r, r->cleaned + ixgbe_tx_peek(q)));
	if (fired) {
		r->cleaned += ixgbe_tx_clean(q, BUDGET);
		note_done(r, clones(r, r->cleaned)); /* what was done between the two looks */
	}
	n = clones(r, r->cleaned) - before;
	if (n) {
		r->due_ps[r->due_tail % RACE_MAX_SKBS] = now_ps(r) + r->p->reclaim_ps;
		r->due[r->due_tail++ % RACE_MAX_SKBS] = n;
	}
	reclaim_due(r);
}

static bool quits(const struct port_race *r)
{
	return __atomic_load_n(&r->quit, __ATOMIC_RELAXED);
}

static void *completion_cpu(void *arg)
{
	struct port_race *r = arg;
	const u32 vector = ixgbe_tx_vector(&r->ix, 0);

	pin(r, 1);
	BUG_ON(skb_cpu_attach(CPU_COMPLETION, 0));
	while (!quits(r)) {
		bool fired = r->p->mode == RACE_POLL || nicdev_irq_pending(r->dev, vector);

		complete_some(r, fired);
		if (fired && r->p->mode != RACE_POLL)
			ixgbe_irq_rearm(&r->ix, vector);
		nicdev_relax(r->dev, ~0ull);
	}
	skb_cpu_detach();
	return NULL;
}

/*
 * --- a peer of ours
 * ----------------------------------------------------------------------------------------------
 */

static void peer_answers(struct port_race *r)
{
	const struct race_params *p = r->p;
	u64 z = r->rng += 0x9e3779b97f4a7c15u, at;
	u32 tail = r->ack_tail;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u; /* splitmix64 */
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	at = r->peer_now_ps + p->rtt_ps + (z ^ (z >> 31)) % (p->jitter_ps + 1);
	r->last_due_ps = at = max(at, r->last_due_ps);
	if (tail - __atomic_load_n(&r->ack_head, __ATOMIC_ACQUIRE) == ACK_RING) {
		__atomic_store_n(&r->wrong, "too many ACKs on their way", __ATOMIC_RELEASE);
		return;
	}
	r->ack[tail % ACK_RING] = (struct due_ack){ at, r->peer.rcv_nxt };
	__atomic_store_n(&r->ack_tail, tail + 1, __ATOMIC_RELEASE);
}

static void peer_frame(void *ctx, const u8 *data, u32 len)
{
	struct port_race *r = ctx;
	struct flow_segment s;
	const char *wrong = flow_parse(&r->flow, data, len, &s);

	if (wrong == flow_no_tcp || wrong == flow_other) {
		r->foreign++;
		return;
	}
	if (!wrong && s.seq != r->peer.rcv_nxt) {
		r->wrong_seq = s.seq;
		wrong = "a segment is lost, or out of order";
	}
	if (wrong) {
		__atomic_store_n(&r->wrong, wrong, __ATOMIC_RELEASE);
		return;
	}
	r->segments++;
	if (peer_segment(&r->peer, r->peer_now_ps, s.seq + s.payload, s.flags & FLOW_PSH))
		peer_answers(r);
}

/* The next ACK whose time has come; for whoever takes them. */
static bool next_ack(struct port_race *r, u64 now, u32 *ack)
{
	u32 head = r->ack_head;
	const struct due_ack *due = &r->ack[head % ACK_RING];

	if (head == __atomic_load_n(&r->ack_tail, __ATOMIC_ACQUIRE) || due->at_ps > now)
		return false;
	*ack = due->ack;
	__atomic_store_n(&r->ack_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/* As frames of the second port. */
static void send_acks(struct port_race *r)
{
	const struct flow back = flow_reverse(&r->flow);
	struct ixgbe_txq *q = &r->peer_ix.txq[0];
	u32 ack, n = 0;

	while (ixgbe_tx_clean(q, BUDGET))
		;
	while (ixgbe_tx_pending(q) + n < PEER_QUEUED && next_ack(r, r->peer_now_ps, &ack)) {
		struct ixgbe_buf buf;
		u8 *to = ixgbe_tx_header(q, &buf.iova);

		buf.len = flow_ack_frame(&back, to, 1, ack);
		BUG_ON(ixgbe_tx_post_frames(q, &buf, 1) != 1);
		n++;
	}
	ixgbe_tx_kick(q);
}

static void *peer_cpu(void *arg)
{
	struct port_race *r = arg;
	bool port = r->port->peer == RACE_PEER_PORT;
	struct ixgbe_rxq *q = port ? &r->peer_ix.rxq[0] : &r->ix.rxq[0];

	pin(r, 2);
	while (!quits(r)) {
		r->peer_now_ps = now_ps(r);
		ixgbe_rx_poll(q, BUDGET, peer_frame, r);
		if (peer_timer(&r->peer, r->peer_now_ps))
			peer_answers(r);
		if (port)
			send_acks(r);
		nicdev_relax(q->ix->dev, ~0ull);
	}
	return NULL;
}

/*
 * --- the sender
 * ----------------------------------------------------------------------------------------------
 */

static u32 reclaimed(const struct port_race *r)
{
	return __atomic_load_n(&r->reclaimed, __ATOMIC_ACQUIRE);
}

static u32 finished(const struct port_race *r)
{
	return min(r->acked, reclaimed(r));
}

/* Behind the packet that was posted last, of a kind that no peer takes for TCP. */
static void send_marker(struct port_race *r)
{
	struct ixgbe_txq *q = &r->ix.txq[0];
	struct ixgbe_buf buf = { .len = MARKER_BYTES };
	u8 *frame = ixgbe_tx_header(q, &buf.iova);

	memset(frame, 0, MARKER_BYTES);
	memcpy(frame, r->flow.dst_mac, 6);
	memcpy(frame + 6, r->flow.src_mac, 6);
	frame[12] = MARKER_TYPE >> 8;
	frame[13] = MARKER_TYPE & 0xff;
	BUG_ON(ixgbe_tx_post_marker(q, &buf)); /* one packet in flight leaves room */
	ixgbe_tx_kick(q);
	r->marked = true;
}

/* The stamp of the marker that was sent last; all of its packet is acknowledged by now. */
static void take_stamp(struct port_race *r)
{
	u64 end = now_ps(r) + STAMP_PS, ns;

	while (r->marked && now_ps(r) < end)
		if (ixgbe_tx_stamp(&r->ix, &ns)) {
			r->wire_us[r->nr_stamps++] = ((double)ns - (double)r->marked_ns) / 1000;
			r->marked = false;
		}
	if (r->marked)
		fail(r, -EIO, "the marker behind packet %u was not stamped", r->sent - 1);
}

static void send_some(struct port_race *r)
{
	const struct race_params *p = r->p;

	while (!r->ret && r->sent < p->nr_skbs && r->sent - finished(r) < p->inflight) {
		note(r, &r->calls, OP_SEND, 1, now_ps(r));
		r->ret = race_socket_fill(&r->s, p, r->trim, r->err, sizeof(r->err));
		if (r->ret)
			return;
		if (r->port->marker) {
			take_stamp(r);
			r->marked_ns = ixgbe_clock_ns(&r->ix);
		}
		/* In front of the doorbell: who rings it may lose the CPU behind it. */
		r->packet[r->sent].doorbell_ps = now_ps(r);
		r->ret = race_socket_push(&r->s, &r->tx, r->err, sizeof(r->err));
		if (r->ret)
			return;
		r->eop[r->sent++] = ixgbe_tx_last(&r->ix.txq[0]);
		if (r->port->marker)
			send_marker(r);
	}
}

static void take_ack(struct port_race *r, u32 ack)
{
	const struct race_params *p = r->p;
	u32 acked = ack - r->s.base, which = acked / p->skb_bytes;
	u64 at = now_ps(r);

	if (acked > r->sent * p->skb_bytes || acked < r->acked * p->skb_bytes) {
		fail(r, -EIO, "an ACK of byte %u, where %u to %u are in flight", acked,
		     r->acked * p->skb_bytes, r->sent * p->skb_bytes);
		return;
	}
	if (acked % p->skb_bytes) {
		struct race_packet *pkt = &r->packet[which];

		if (!pkt->ack_ps)
			pkt->ack_ps = at;
		r->res->trims += !__atomic_load_n(&pkt->reclaim_ps, __ATOMIC_RELAXED);
	}
	note(r, &r->calls, OP_ACK, acked, at);
	if (link_watch_ack(&r->s.watch, p->era, &r->s.sk, ack)) {
		if (ixgbe_tx_reported(&r->ix.txq[0], r->eop[which]))
			r->res->before_reclaim++;
		else
			r->res->before_dd++;
	}
	if (tcp_ack(p->era, r->trim, &r->s.sk, ack) < 0)
		fail(r, -EIO, "an ACK of %u bytes, beyond what was sent", acked);
	r->acked = which;
}

static void ack_frame(void *ctx, const u8 *data, u32 len)
{
	struct port_race *r = ctx;
	const struct flow back = flow_reverse(&r->flow);
	struct flow_segment s;
	const char *wrong = flow_parse(&back, data, len, &s);

	if (wrong == flow_no_tcp || wrong == flow_other)
		r->res->foreign_frames++; /* a switch's, a neighbour's */
	else if (wrong)
		fail(r, -EIO, "an ACK came in with a wrong %s", wrong);
	else if (!r->ret)
		take_ack(r, s.ack);
}

static void process_acks(struct port_race *r)
{
	u32 ack;

	if (r->port->peer == RACE_PEER_LOOPBACK) {
		while (!r->ret && next_ack(r, now_ps(r), &ack))
			take_ack(r, ack);
		return;
	}
	ixgbe_rx_poll(&r->ix.rxq[0], BUDGET, ack_frame, r);
}

/* What a vector of the receive ring is good for; polling looks always. */
static void look(struct port_race *r)
{
	const u32 vector = ixgbe_rx_vector(&r->ix, 0);
	bool fired = r->p->mode == RACE_POLL || r->port->peer == RACE_PEER_LOOPBACK ||
		     nicdev_irq_pending(r->dev, vector);

	if (r->p->mode == RACE_IRQ_SHARED)
		complete_some(r, fired);
	if (!fired)
		return;
	process_acks(r);
	if (r->p->mode != RACE_POLL && r->port->peer != RACE_PEER_LOOPBACK)
		ixgbe_irq_rearm(&r->ix, vector);
}

/* True if the run may go on. */
static bool healthy(struct port_race *r)
{
	u64 now = now_ps(r);
	const char *wrong;

	if (now - r->looked_ps < LOOK_PS)
		return !r->ret;
	r->looked_ps = now;
	wrong = __atomic_load_n(&r->wrong, __ATOMIC_ACQUIRE);
	if (wrong)
		fail(r, -EIO, "at the peer: %s (segment %u, expected %u)", wrong,
		     r->wrong_seq - r->s.base, r->peer.rcv_nxt - r->s.base);
	else if (nicdev_gone(r->dev))
		fail(r, -ENODEV,
		     "%s: the device is gone in mid-run: all registers read as ones, after %u of "
		     "%u packets",
		     r->dev->name, finished(r), r->p->nr_skbs);
	else if (r->port->peer != RACE_PEER_LOOPBACK && !ixgbe_link_up(&r->ix))
		fail(r, -ENODEV, "%s: the link was lost in mid-run, after %u of %u packets",
		     r->dev->name, finished(r), r->p->nr_skbs);
	if (r->acked != r->progress_acked || reclaimed(r) != r->progress_reclaimed) {
		r->progress_acked = r->acked;
		r->progress_reclaimed = reclaimed(r);
		r->progress_ps = now;
	}
	return !r->ret && now - r->progress_ps < r->port->halt_ms * SIM_PS_PER_MS;
}

static void run(struct port_race *r)
{
	r->progress_ps = r->looked_ps = now_ps(r);
	send_some(r);
	while (!r->ret && finished(r) < r->p->nr_skbs) {
		look(r);
		send_some(r);
		if (*r->port->stop) {
			r->res->stopped = true;
			return;
		}
		if (!healthy(r))
			return;
		nicdev_relax(r->dev, ~0ull);
	}
}

/* After the threads have ended: why nothing moved. */
static void tell_halt(struct port_race *r)
{
	char text[512];

	if (r->ret || r->res->stopped || finished(r) == r->p->nr_skbs)
		return;
	r->ix.cfg.hang_ms = 0;
	if (!ixgbe_tx_hung(&r->ix.txq[0], text, sizeof(text)))
		snprintf(text, sizeof(text), "%s",
			 r->port->peer == RACE_PEER_EXTERNAL
				 ? "the device has sent everything: does the peer answer?"
				 : "the device has sent everything");
	fail(r, -EIO, "no progress for %u ms: %u of %u acknowledged, %u reclaimed. %s",
	     r->port->halt_ms, r->acked, r->p->nr_skbs, reclaimed(r), text);
}

/*
 * --- set-up
 * ----------------------------------------------------------------------------------------------
 */

static void check(struct port_race *r)
{
	const enum race_peer peer = r->port->peer;

	r->ret = race_check_params(r->p, r->err, sizeof(r->err));
	r->nr_cpus = min(race_port_cpus(r->cpu, MAX_CPUS), (u32)MAX_CPUS);
	if (r->nr_cpus < 2)
		fail(r, -EINVAL,
		     "ACKs and completions need a CPU each, and this process may use one only");
	if (peer == RACE_PEER_LOOPBACK && r->p->mode == RACE_IRQ_SHARED)
		fail(r, -EINVAL,
		     "in the loopback ACKs come by no vector: mode irq-shared needs another peer");
	if (r->port->marker && (r->p->inflight > 1 || r->p->wthresh))
		fail(r, -EINVAL, "markers need one packet in flight, and WTHRESH 0");
	if ((peer == RACE_PEER_PORT) != (r->port->peer_dev != NULL))
		fail(r, -EINVAL, "the peer '%s' and a second port do not go together",
		     race_peer_name(peer));
}

static bool make_log(struct timed_log *log, u32 room)
{
	log->room = room;
	log->op = calloc(room, sizeof(*log->op));
	return log->op;
}

static void open_socket(struct port_race *r)
{
	const u32 n = r->p->nr_skbs, segs = DIV_ROUND_UP(r->p->skb_bytes, TCP_MSS_ETHERNET);

	r->ret = race_socket_open(&r->s, r->p, r->err, sizeof(r->err));
	if (r->ret)
		return;
	r->packet = r->s.packet;
	peer_init(&r->peer, r->p->ack, r->p->k, r->s.base);
	r->rng = r->p->seed;
	r->eop = calloc(n, sizeof(*r->eop));
	r->wire_us = calloc(n, sizeof(*r->wire_us));
	/* At most an ACK for each segment, and one of a timer; a send each, a completion each. */
	if (!r->eop || !r->wire_us || !make_log(&r->calls, n * (segs + LOG_CALLS)) ||
	    !make_log(&r->completions, n))
		fail(r, -ENOMEM, "no memory for %u packets", n);
}

static void start_peer(struct port_race *r)
{
	struct ixgbe_config cfg = ixgbe_default_config;

	if (r->port->peer != RACE_PEER_PORT)
		return;
	cfg.tx_ring = 512;
	cfg.rx_ring = RX_RING;
	cfg.promiscuous = true;
	r->ret = ixgbe_start(&r->peer_ix, r->port->peer_dev, &cfg, r->err, sizeof(r->err));
	r->peer_started = !r->ret;
}

static void open_device(struct port_race *r)
{
	struct ixgbe_config cfg = race_driver_config(r->p);
	const u8 *to = r->port->peer_mac;

	cfg.rx_ring = RX_RING;
	cfg.loopback = cfg.promiscuous = r->port->peer == RACE_PEER_LOOPBACK;
	start_peer(r);
	if (r->ret)
		return;
	r->ret = ixgbe_start(&r->ix, r->dev, &cfg, r->err, sizeof(r->err));
	if (r->ret)
		return;
	r->started = true;
	if (r->port->peer == RACE_PEER_LOOPBACK)
		to = r->ix.mac;
	if (r->port->peer == RACE_PEER_PORT)
		to = r->peer_ix.mac;
	flow_init(&r->flow, r->ix.mac, to);
	r->ret = skb_tx_init(&r->tx, &r->ix.txq[0], &r->s.ring, &r->flow, r->err, sizeof(r->err));
	r->mapped = !r->ret;
	if (!r->ret)
		r->ret = ixgbe_wait_link(&r->ix, LINK_MS, r->err, sizeof(r->err));
	if (!r->ret && r->peer_started)
		r->ret = ixgbe_wait_link(&r->peer_ix, LINK_MS, r->err, sizeof(r->err));
	if (!r->ret && r->port->marker)
		r->ret = ixgbe_clock_start(&r->ix, r->err, sizeof(r->err));
}

/* Three threads, or two, until it is over. */
static void run_threads(struct port_race *r)
{
	const bool done = r->p->mode != RACE_IRQ_SHARED, peer = r->port->peer != RACE_PEER_EXTERNAL;
	pthread_t completions, answers;
	bool has_done, has_peer;
	cpu_set_t before;

	has_done = done && !pthread_create(&completions, NULL, completion_cpu, r);
	has_peer = peer && !pthread_create(&answers, NULL, peer_cpu, r);
	if (has_done != done || has_peer != peer)
		fail(r, -ENOMEM, "no thread for the completions or the peer");
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	pin(r, 0);
	if (!r->ret)
		run(r);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	__atomic_store_n(&r->quit, 1, __ATOMIC_RELAXED);
	if (has_done)
		pthread_join(completions, NULL);
	if (has_peer)
		pthread_join(answers, NULL);
	tell_halt(r);
}

/* What the device counted, and the packets that came to their end. */
static void summarise(struct port_race *r)
{
	struct race_result *res = r->res;
	u32 by_times;

	if (race_summarise(r->packet, finished(r), res, &by_times)) {
		fail(r, -ENOMEM, "no memory for the times");
		return;
	}
	take_stamp(r);
	res->wire_after_doorbell = race_spread(r->wire_us, r->nr_stamps);
	res->segments = r->s.watch.n.segs;
	res->acks = r->s.watch.n.acks;
	res->partial_acks = r->s.watch.n.partial_acks;
	res->segments_on_wire = r->segments;
	res->foreign_frames += r->foreign;
	ixgbe_update_stats(&r->ix);
	if (r->ix.stats.pause_received)
		fail(r, -EIO,
		     "%llu pause frames came in: they stretch the wire time and fake the race; "
		     "switch flow control off at the other end",
		     (unsigned long long)r->ix.stats.pause_received);
	if (r->nomem)
		fail(r, -EIO, "more calls than there is room to note");
}

static int by_time(const void *a, const void *b)
{
	const struct timed_op *x = a, *y = b;

	return (x->at_ps > y->at_ps) - (x->at_ps < y->at_ps);
}

/* Both threads' calls in the order in which they began. */
static void merge_logs(struct port_race *r, struct race_log *log)
{
	u32 nr = r->calls.nr + r->completions.nr;
	struct timed_op *all = calloc(max(nr, 1u), sizeof(*all));

	log->op = calloc(max(nr, 1u), sizeof(*log->op));
	if (!all || !log->op) {
		fail(r, -ENOMEM, "no memory for %u calls", nr);
	} else {
		memcpy(all, r->calls.op, r->calls.nr * sizeof(*all));
		memcpy(all + r->calls.nr, r->completions.op, r->completions.nr * sizeof(*all));
		qsort(all, nr, sizeof(*all), by_time);
		for (u32 i = 0; i < nr; i++)
			log->op[i] = all[i].op;
		log->nr = log->room = nr;
	}
	free(all);
}

static void close_race(struct port_race *r)
{
	if (r->started)
		ixgbe_stop(&r->ix);
	if (r->peer_started)
		ixgbe_stop(&r->peer_ix);
	if (r->mapped)
		skb_tx_exit(&r->tx);
	race_socket_close(&r->s, r->p->era);
	free(r->eop);
	free(r->wire_us);
	free(r->calls.op);
	free(r->completions.op);
}

int race_port(const struct race_params *p, const struct race_port *port, enum tcp_trim trim,
	      struct race_log *log, struct race_result *res, char *err, size_t errlen)
{
	struct port_race *r = race_new(sizeof(*r), log, res, err, errlen);
	u64 begin;
	int ret;

	if (!r)
		return -ENOMEM;
	r->p = p;
	r->port = port;
	r->dev = port->dev;
	r->trim = trim;
	r->res = res;
	check(r);
	if (!r->ret)
		open_socket(r);
	if (!r->ret)
		open_device(r);
	if (!r->ret) {
		begin = now_ps(r);
		run_threads(r);
		res->end_ps = now_ps(r) - begin;
		summarise(r);
	}
	if (!r->ret && log && !res->stopped)
		merge_logs(r, log);
	close_race(r);
	ret = r->ret;
	if (ret)
		snprintf(err, errlen, "%s", r->err);
	free(r);
	if (ret && log)
		race_log_exit(log);
	return ret;
}
