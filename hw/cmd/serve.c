/* SPDX-License-Identifier: MIT */
/* serve: the model for another process. */
#include "hw/cmd/cmd.h"
#include "hw/cmd/stop.h"
#include "hw/responder.h"
#include "hw/vfu/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RX_DMA_PS (500 * SIM_PS_PER_NS)
#define MOST_SLOW 100000

static const char usage[] =
	"usage: skbench hw serve --socket PATH [OPTION...]\n\n"
	"The model of an 82599 for one other process, by the vfio-user protocol on a unix socket:\n"
	"for `skbench hw selftest|race --device vfio-user:PATH`, or for a virtual machine whose\n"
	"monitor knows vfio-user. Its clock is the machine's. Ends when the client goes, and "
	"tells\n"
	"what the client did wrong.\n\n"
	"  --socket PATH      where to listen; must not exist, is removed at the end\n"
	"  --point NAME       the slot, as for race (gen2x8)\n"
	"  --slow N           PCIe and wire N times slower, so that a busy machine keeps up (1)\n"
	"  --partner WHO      at the other end of the wire: none, or ack, which acknowledges "
	"(none)\n"
	"  --rtt US, --ack POLICY, --k N\n"
	"                     of that partner, as for race (50, every, 2)\n"
	"  --seed N           of the model's delays (1)\n"
	"  --pcap FILE        the frames as pcapng\n"
	"Exit status: 0 if the client stopped its device and did nothing wrong; 2 usage; 4 not\n"
	"possible here; 5 the client went away with the device running, broke the protocol, or "
	"did\n"
	"what an 82599 would punish.\n";

struct options {
	const char *socket, *point, *pcap;
	u64 slow, rtt_us, k, seed;
	bool acks;
	enum peer_policy policy;
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

static u32 get32(const u8 *p)
{
	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void begin(struct partner *p, const struct model_frame *f)
{
	const u8 *ip = f->data + FLOW_MAC_BYTES, *tcp = ip + FLOW_IP_BYTES;
	struct flow flow;

	if (f->len < FLOW_HEADER_BYTES || f->data[12] != 8 || f->data[13] || ip[0] != 0x45 ||
	    ip[9] != 6)
		return; /* no connection of ours */
	memcpy(flow.dst_mac, f->data, 6);
	memcpy(flow.src_mac, f->data + 6, 6);
	flow.saddr = get32(ip + 12);
	flow.daddr = get32(ip + 16);
	flow.sport = get32(tcp) >> 16;
	flow.dport = get32(tcp) & 0xffff;
	p->begun = !responder_init(&p->peer, p->m, &p->p, &flow, get32(tcp + 4), p->timing,
				   RX_DMA_PS, p->err, sizeof(p->err));
}

static void partner_frame(void *ctx, const struct model_frame *f)
{
	struct partner *p = ctx;

	if (!p->begun)
		begin(p, f);
	if (p->begun)
		responder_partner(&p->peer, f);
}

static bool take(struct options *o, int argc, char **argv, int *i, bool *fault)
{
	const char *v;

	if ((v = cmd_option(argc, argv, i, "--socket", fault))) {
		o->socket = v;
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
	} else if ((v = cmd_option(argc, argv, i, "--seed", fault))) {
		*fault |= !cmd_number(v, 0, ~0ull, &o->seed);
	} else if ((v = cmd_option(argc, argv, i, "--pcap", fault))) {
		o->pcap = v;
	} else if ((v = cmd_option(argc, argv, i, "--ack", fault))) {
		for (o->policy = 0; o->policy < PEER_POLICY_NR; o->policy++)
			if (!strcmp(v, peer_policy_name(o->policy)))
				return true;
		*fault = true;
	} else {
		return false;
	}
	return true;
}

static int tell(const struct vfu_server *s, const struct partner *p, int ret, bool active)
{
	int status = CMD_OK;

	printf("%llu messages, %u segments acknowledged by %u ACKs, %u violations\n",
	       (unsigned long long)s->messages, p->peer.segments, p->peer.acks,
	       model_nr_violations(s->m));
	if (ret && ret != -EINTR)
		status = cmd_error(CMD_FAILED, "serve: %s", s->why[0] ? s->why : strerror(-ret));
	else if (ret == -EINTR)
		status = cmd_error(CMD_OK, "serve: stopped by a signal");
	else if (active)
		status = cmd_error(CMD_FAILED,
				   "serve: the client went away with the device running; it is "
				   "reset, and the client's memory given back");
	if (p->err[0])
		status = cmd_error(CMD_FAILED, "serve: the partner: %s", p->err);
	if (p->peer.wrong[0])
		status = cmd_error(CMD_FAILED, "serve: on the wire: %s", p->peer.wrong);
	if (model_nr_violations(s->m))
		status = cmd_error(CMD_FAILED, "serve: violation %s", model_first_violation(s->m));
	return status;
}

static int serve(const struct options *o, FILE *pcap)
{
	struct nic_params timing = *nic_preset(o->point);
	struct partner partner = { .timing = &timing,
				   .p = { .rtt_ps = o->rtt_us * SIM_PS_PER_US,
					  .seed = o->seed,
					  .policy = o->policy,
					  .k = o->k,
					  .again = true } };
	struct model_params mp = { .timing = &timing,
				   .seed = o->seed,
				   .rx_dma_ps = RX_DMA_PS,
				   .partner = o->acks ? partner_frame : NULL,
				   .ctx = &partner,
				   .pcapng = pcap };
	struct vfu_server s;
	char err[300] = "";
	int listener, ret;
	bool active;

	timing.wire_mbps /= o->slow;
	timing.pcie_mbps /= o->slow;
	if (!timing.wire_mbps || !timing.pcie_mbps)
		return cmd_error(CMD_USAGE, "serve: --slow %llu leaves no rate at %s",
				 (unsigned long long)o->slow, o->point);
	if (model_open(&mp, &partner.m, err, sizeof(err)))
		return cmd_error(CMD_IMPOSSIBLE, "%s", err);
	listener = vfu_listen(o->socket, err, sizeof(err));
	if (listener < 0) {
		nicdev_close(model_nicdev(partner.m));
		return cmd_error(CMD_IMPOSSIBLE, "serve: %s", err);
	}
	stop_on_signals();
	printf("serving %s\n", o->socket);
	fflush(stdout);
	vfu_server_init(&s, partner.m);
	ret = vfu_serve(&s, listener, &stop_wanted);
	active = vfu_server_active(&s);
	ret = tell(&s, &partner, ret, active);
	vfu_server_disconnect(&s);
	close(listener);
	unlink(o->socket);
	nicdev_close(model_nicdev(partner.m));
	responder_exit(&partner.peer);
	return ret;
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
	if (o.pcap && !(pcap = cmd_create(o.pcap)))
		return CMD_USAGE;
	status = serve(&o, pcap);
	if (pcap)
		fclose(pcap);
	return status;
}
