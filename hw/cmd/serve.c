/* SPDX-License-Identifier: MIT */
/* serve: the model for another process. */
#include "hw/cmd/cmd.h"
#include "hw/cmd/stop.h"
#include "hw/ixgbe/ixgbe.h"
#include "hw/responder.h"
#include "hw/vfu/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RX_DMA_PS (500 * SIM_PS_PER_NS)
#define MOST_SLOW 100000
#define CABLE_PS  (10 * SIM_PS_PER_NS) /* two metres */

static const char usage[] =
	"usage: skbench hw serve --socket PATH [OPTION...]\n\n"
	"The model of an 82599 for another process, by the vfio-user protocol on a unix socket:\n"
	"for `skbench hw selftest|race --device vfio-user:PATH`, or for a virtual machine whose\n"
	"monitor knows vfio-user. Its clock is the machine's. Ends when the client goes, and "
	"tells\n"
	"what the client did wrong.\n\n"
	"  --socket PATH      where to listen; must not exist, is removed at the end\n"
	"  --wire PATH        a second port there, at the other end of a cable\n"
	"  --point NAME       the slot, as for race (gen2x8)\n"
	"  --slow N           PCIe and wire N times slower, so that a busy machine keeps up (1)\n"
	"  --partner WHO      at the other end of the wire: none, or ack, which acknowledges "
	"(none)\n"
	"  --rtt US, --ack POLICY, --k N\n"
	"                     of that partner, as for race (50, every, 2)\n"
	"  --fault WHAT=N     when the N-th frame leaves, to try a driver: link (it goes down), "
	"gone\n"
	"                     (registers read as ones), stall (nothing is sent any more), or "
	"iommu\n"
	"                     (memory is out of reach); with a partner or --wire\n"
	"  --id DEVICE        PCI device ID, as hw/ixgbe/id.c has them (0x10fb); 0x10f7 has no "
	"module\n"
	"                     to ask for\n"
	"  --seed N           of the model's delays (1)\n"
	"  --pcap FILE        the frames as pcapng\n"
	"Exit status: 0 if the client stopped its device and did nothing wrong; 2 usage; 4 not\n"
	"possible here; 5 the client went away with the device running, broke the protocol, or "
	"did\n"
	"what an 82599 would punish.\n";

enum fault { FAULT_NONE, FAULT_LINK, FAULT_GONE, FAULT_STALL, FAULT_IOMMU };

struct options {
	const char *socket, *wire, *point, *pcap;
	u64 slow, rtt_us, k, seed, id;
	bool acks;
	enum peer_policy policy;
	enum fault fault;
	u64 fault_at;
};

/* The other end of the wire: learns the connection from its first frame. */
struct partner {
	struct model_82599 *m;
	struct responder_params p;
	const struct nic_params *timing;
	struct responder peer;
	bool begun;
	char err[200];
};

/* The other end of a cable between two of our ports. */
struct cable {
	struct model_82599 *to;
	u64 lost;
};

struct port {
	const char *path;
	struct model_82599 *m;
	struct vfu_server s;
	struct partner partner;
	struct cable cable;
	enum fault fault;
	u64 fault_at, frames;
};

/* A frame leaves: the one at which something is to happen? */
static void count_frame(struct port *port)
{
	if (++port->frames != port->fault_at)
		return;
	if (port->fault == FAULT_LINK)
		model_set_link(port->m, false);
	else if (port->fault == FAULT_GONE)
		model_surprise_removal(port->m);
	else if (port->fault == FAULT_STALL)
		model_stall(port->m);
	else if (port->fault == FAULT_IOMMU)
		model_lose_memory(port->m);
}

static void begin(struct partner *p, const struct model_frame *f)
{
	struct flow flow;
	u32 seq;

	if (!flow_learn(f->data, f->len, &flow, &seq))
		return; /* no connection of ours */
	p->begun = !responder_init(&p->peer, p->m, &p->p, &flow, seq, p->timing, RX_DMA_PS, p->err,
				   sizeof(p->err));
}

static void partner_frame(void *ctx, const struct model_frame *f)
{
	struct port *port = ctx;
	struct partner *p = &port->partner;

	count_frame(port);

	if (f->data[12] != 8 || f->data[13])
		return; /* no IPv4: a marker */
	if (!p->begun)
		begin(p, f);
	if (p->begun)
		responder_partner(&p->peer, f);
}

/* "WHAT=N" */
static bool take_fault(struct options *o, const char *text)
{
	static const char *const names[] = { "", "link", "gone", "stall", "iommu" };
	const char *eq = strchr(text, '=');

	for (u32 i = 1; eq && i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == (size_t)(eq - text) &&
		    !strncmp(names[i], text, eq - text)) {
			o->fault = i;
			return cmd_number(eq + 1, 1, ~0ull, &o->fault_at);
		}
	return false;
}

static bool take(struct options *o, int argc, char **argv, int *i, bool *fault)
{
	const char *v;

	if ((v = cmd_option(argc, argv, i, "--socket", fault))) {
		o->socket = v;
	} else if ((v = cmd_option(argc, argv, i, "--wire", fault))) {
		o->wire = v;
	} else if ((v = cmd_option(argc, argv, i, "--point", fault))) {
		o->point = v;
		*fault |= !nic_preset(v);
	} else if ((v = cmd_option(argc, argv, i, "--slow", fault))) {
		*fault |= !cmd_number(v, 1, MOST_SLOW, &o->slow);
	} else if ((v = cmd_option(argc, argv, i, "--partner", fault))) {
		o->acks = !strcmp(v, "ack");
		*fault |= !o->acks && strcmp(v, "none");
	} else if ((v = cmd_option(argc, argv, i, "--rtt", fault))) {
		*fault |= !cmd_number(v, 1, 10000000, &o->rtt_us);
	} else if ((v = cmd_option(argc, argv, i, "--k", fault))) {
		*fault |= !cmd_number(v, 1, 1000, &o->k);
	} else if ((v = cmd_option(argc, argv, i, "--id", fault))) {
		*fault |= !cmd_number(v, 1, 0xffff, &o->id) || !ixgbe_find_id(o->id);
	} else if ((v = cmd_option(argc, argv, i, "--seed", fault))) {
		*fault |= !cmd_number(v, 0, ~0ull, &o->seed);
	} else if ((v = cmd_option(argc, argv, i, "--fault", fault))) {
		*fault |= !take_fault(o, v);
	} else if ((v = cmd_option(argc, argv, i, "--pcap", fault))) {
		o->pcap = v;
	} else if ((v = cmd_option(argc, argv, i, "--ack", fault))) {
		*fault |= !cmd_policy(v, &o->policy);
	} else {
		return false;
	}
	return true;
}

static void cable_frame(void *ctx, const struct model_frame *f)
{
	struct port *port = ctx;
	struct cable *c = &port->cable;

	count_frame(port);

	/* The ports' clocks are the machine's, each at its own last event. */
	if (model_receive(c->to, nicdev_now_ps(model_nicdev(c->to)) + CABLE_PS, 0, f->data, f->len))
		c->lost++;
}

static int tell(const struct port *port)
{
	const struct vfu_server *s = &port->s;
	const struct partner *p = &port->partner;
	int status = CMD_OK;

	printf("%s: %llu messages, %u segments acknowledged by %u ACKs, %u violations\n",
	       port->path, (unsigned long long)s->messages, p->peer.segments, p->peer.acks,
	       model_nr_violations(s->m));
	for (enum model_violation v = 0; v < V_NR; v++)
		if (model_violations(s->m, v))
			printf("    %s, %u times: %s\n", model_violation_name(v),
			       model_violations(s->m, v), model_violation_text(v));
	if (s->ret && s->ret != -EINTR)
		status = cmd_error(CMD_FAILED, "serve: %s", s->why[0] ? s->why : strerror(-s->ret));
	else if (s->ret == -EINTR)
		status = cmd_error(CMD_OK, "serve: stopped by a signal");
	else if (s->was_active)
		status = cmd_error(CMD_FAILED,
				   "serve: the client went away with the device running; it is "
				   "reset, and the client's memory given back");
	if (p->err[0])
		status = cmd_error(CMD_FAILED, "serve: the partner: %s", p->err);
	if (p->peer.wrong[0])
		status = cmd_error(CMD_FAILED, "serve: on the wire: %s", p->peer.wrong);
	if (port->cable.lost)
		status = cmd_error(CMD_FAILED,
				   "serve: %llu frames lost on the cable for lack of memory",
				   (unsigned long long)port->cable.lost);
	if (model_nr_violations(s->m))
		status = cmd_error(CMD_FAILED, "serve: violation %s", model_first_violation(s->m));
	return status;
}

/* A model, the NUMBER-th port of its card, that listens at PORT's path. An exit status. */
static int open_port(struct port *port, u32 number, const struct options *o,
		     const struct nic_params *timing, FILE *pcap)
{
	struct model_params mp = { .timing = timing,
				   .device = o->id,
				   .port = number,
				   .seed = o->seed,
				   .rx_dma_ps = RX_DMA_PS,
				   .pcapng = pcap };
	char err[300] = "";

	if (o->acks) {
		mp.partner = partner_frame;
		mp.ctx = port;
	} else if (o->wire) {
		mp.partner = cable_frame;
		mp.ctx = port;
	}
	if (model_open(&mp, &port->m, err, sizeof(err)))
		return cmd_error(CMD_IMPOSSIBLE, "%s", err);
	port->fault = o->fault;
	port->fault_at = o->fault_at;
	port->partner.m = port->m;
	port->partner.timing = timing;
	port->partner.p = (struct responder_params){ .rtt_ps = o->rtt_us * SIM_PS_PER_US,
						     .seed = o->seed,
						     .policy = o->policy,
						     .k = o->k,
						     .again = true };
	vfu_server_init(&port->s, port->m);
	port->s.listener = vfu_listen(port->path, err, sizeof(err));
	if (port->s.listener >= 0)
		return CMD_OK;
	nicdev_close(model_nicdev(port->m));
	port->m = NULL;
	return cmd_error(CMD_IMPOSSIBLE, "serve: %s", err);
}

static void close_port(struct port *port)
{
	if (!port->m)
		return;
	vfu_server_disconnect(&port->s);
	close(port->s.listener);
	unlink(port->path);
	nicdev_close(model_nicdev(port->m));
	responder_exit(&port->partner.peer);
}

static int serve(const struct options *o, FILE *pcap)
{
	static struct port port[VFU_MAX_PORTS];
	struct vfu_server *const server[] = { &port[0].s, &port[1].s };
	struct nic_params timing = *nic_preset(o->point);
	u32 n = o->wire ? 2 : 1;
	int status = CMD_OK;

	timing.wire_mbps /= o->slow;
	timing.pcie_mbps /= o->slow;
	if (!timing.wire_mbps || !timing.pcie_mbps)
		return cmd_error(CMD_USAGE, "serve: --slow %llu leaves no rate at %s",
				 (unsigned long long)o->slow, o->point);
	port[0].path = o->socket;
	port[1].path = o->wire;
	for (u32 i = 0; i < n && !status; i++)
		status = open_port(&port[i], i, o, &timing, i ? NULL : pcap);
	if (!status) {
		port[0].cable.to = port[1].m;
		port[1].cable.to = port[0].m;
		stop_on_signals();
		for (u32 i = 0; i < n; i++)
			printf("serving %s\n", port[i].path);
		fflush(stdout);
		vfu_serve(server, n, &stop_wanted);
		for (u32 i = 0; i < n; i++)
			status = max(status, tell(&port[i]));
	}
	for (u32 i = 0; i < n; i++)
		close_port(&port[i]);
	return status;
}

int cmd_serve(int argc, char **argv)
{
	struct options o = { .point = "gen2x8", .slow = 1, .rtt_us = 50, .k = 2, .seed = 1 };
	FILE *pcap = NULL;
	int status;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool fault = false;

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			fputs(usage, stdout);
			return CMD_OK;
		}
		if (!take(&o, argc, argv, &i, &fault) || fault)
			return cmd_error(CMD_USAGE, "serve does not take '%s' (--help)", argv[i]);
	}
	if (!o.socket)
		return cmd_error(CMD_USAGE, "serve needs --socket PATH (--help)");
	if (o.fault && !o.acks && !o.wire)
		return cmd_error(CMD_USAGE,
				 "--fault counts frames at a partner or at --wire's end");
	if (o.wire && (o.acks || !strcmp(o.wire, o.socket)))
		return cmd_error(CMD_USAGE, "--wire goes with another path, and without a partner");
	if (o.pcap && !(pcap = cmd_create(o.pcap)))
		return CMD_USAGE;
	status = serve(&o, pcap);
	if (pcap)
		fclose(pcap);
	return status;
}
