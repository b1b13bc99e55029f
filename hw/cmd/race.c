/* SPDX-License-Identifier: MIT */
#include "hw/cmd/cmd.h"
#include "hw/cmd/device.h"
#include "hw/cmd/stop.h"
#include "hw/ixgbe/ixgbe.h"
#include "hw/race.h"
#include "hw/race_port.h"
#include "skb/page_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGES	       (16u << 10) /* 64 MB in pages of 4 KB */
#define MAX_CELLS      256
#define REPLAYS	       41 /* of each list, the two variants in turn */
#define US	       SIM_PS_PER_US
#define TEXT_BYTES     700
#define SLOT_BYTES     160
#define BAR	       30 /* of the highest bar */
#define CONTROL_RTT_US 10 /* of the controls: any ACK that could race would */
#define PORT_RTT_MS    100 /* of a port's last control: no completion takes so long */
#define PORT_CONTROLS  8 /* sk_buffs of a port's controls */
#define HALT_MS	       5000

static const char usage[] =
	"usage: skbench hw race [OPTION...]\n\n"
	"Sends TSO packets that tcp/ has built through the ixgbe driver, with real clones in the\n"
	"ring, takes a peer's ACKs, and counts which of them find the clone alive: before the "
	"device\n"
	"has reported the packet (R1), or between that and the reclaim (R2). Then it times what "
	"the\n"
	"calls of each trim variant cost: a quick look; skbench run measures it.\n\n"
	"  --device model     the model of an 82599, in virtual time (default); model:X540, X550, "
	"X552,\n"
	"                     X553, or of a PCI device ID\n"
	"  --device BDF       a port that is bound to vfio-pci (skbench hw bind), in real time\n"
	"  --device vfio-user:PATH\n"
	"                     one that another process serves (skbench hw serve)\n"
	"  --vfio HOW         group, cdev or noiommu; without it cdev if there is one, else group\n"
	"  --peer loopback    on a port: its MAC sends everything back, and ACKs are made of that "
	"as\n"
	"                     it comes in (default on a port)\n"
	"  --peer DEVICE      the port at the other end of the wire, by BDF or vfio-user:PATH; we\n"
	"                     answer on it\n"
	"  --peer external    somebody else acknowledges: skbench hw respond on another machine, "
	"or\n"
	"                     skbench hw serve --partner ack\n"
	"  --peer-mac MAC     of that one (02:00:00:00:00:02)\n"
	"  --marker           on a port: behind each packet a frame that the device stamps, which "
	"tells\n"
	"                     when the packet had left the wire\n"
	"  --point NAME       on the model:       the slot: patch gen1x4 gen2x4 gen2x8 fifo_full "
	"25g 40g 100g 200g "
	"400g;\n"
	"                     without it patch, gen1x4, gen2x8 and fifo_full, and the controls\n"
	"  --rtt US           departure of a segment to the processing of its ACK (default 50); on "
	"a\n"
	"                     port: what the peer waits after a segment's arrival\n"
	"  --jitter US        a packet's segments come later by 0 to this (0)\n"
	"  --ack POLICY       every, delayed, stretch, last: when the peer acknowledges (every)\n"
	"  --k N              segments to an ACK (2)\n"
	"  --bytes N          payload of an sk_buff, up to 262143 (65160)\n"
	"  --skbs N           how many are sent (32)\n"
	"  --inflight N       of them at a time (1)\n"
	"  --reclaim US       completion seen to clone freed (0)\n"
	"  --mode MODE        poll: looks at once; irq: a vector each for ACKs and completions;\n"
	"                     irq-shared: one vector (poll)\n"
	"  --itr US           interrupt moderation (0)\n"
	"  --wthresh N        descriptors to a write-back (0: each packet's at once)\n"
	"  --threshold KB     how full fetching may make the transmit buffer (TXPBTHRESH)\n"
	"  --pcie MBPS        on the model: raw rate of the slot, instead of the point's\n"
	"  --era ERA          3.4, 6.1, 6.12 (6.12)\n"
	"  --seed N           of the model's delays and of the jitter (1)\n"
	"  --sweep KEY=A:B:S  one run for each value of one of the numbers above\n"
	"  --json FILE        one JSON object into FILE (- for standard output)\n"
	"  --pcap FILE        on the model: all frames as pcapng; one point, no sweep\n\n"
	"On a port the sender, who also takes ACKs, the completions and a peer of ours are threads "
	"on\n"
	"CPUs of their own; SIGINT ends the run, stops the device and shows what there is so "
	"far.\n\n"
	"Unverified: only hardware can settle these, and none was at hand.\n"
	"  - that DD comes when the fetch ends, about 20 us for 64 KB in a Gen2 x8 slot\n"
	"  - what a TXPBTHRESH below one frame does, and that a small one keeps the buffer "
	"shallow\n"
	"  - the reset values of DTXTCPFLGL and DTXTCPFLGH (the driver writes both)\n"
	"  - that head write-back needs 16 bytes of alignment\n"
	"  - how many buffers a TSO header may lie in on an 82599 (4 is the X550's limit)\n"
	"  - that the loopback of the MAC runs at line rate\n"
	"  - everything on a card: VFIO was driven with cards of QEMU's, the driver with the model "
	"only\n"
	"  - where in a frame the clock stamps it, and its rates other than an 82599's at 10 "
	"Gbit/s\n"
	"  - X540 and X550 on a card; X552 and X553, whose PHYs firmware sets up, beyond their "
	"start on\n"
	"    the model\n"
	"  - the character device with iommufd, and noiommu: tests answer their calls\n"
	"Exit status: 0; 2 usage; 3 a control raced; 4 not possible here; 5 a run failed.\n";

struct cell {
	const char *point;
	u64 value; /* of the swept key */
	struct nic_params nic;
	struct race_params p;
	struct race_result res[TCP_TRIM_NR];
	double ns[TCP_TRIM_NR];
};

struct control {
	const char *name;
	struct race_params p;
	u32 races, partial_acks;
};

struct options {
	struct device_choice device;
	struct race_params p;
	const char *point, *json, *pcap, *sweep;
	u64 pcie_mbps;
	char sweep_key[24];
	u64 from, to, step;
	const char *peer, *peer_mac;
	bool on_port;
	struct race_port port;
	const char *pcie; /* a sentence about the slot; "" */
};

/*
 * --- arguments
 * ----------------------------------------------------------------------------------------------
 */

struct number {
	const char *name;
	u64 lo, hi;
};

static const struct number numbers[] = {
	{ "rtt", 1, 1000000 },
	{ "jitter", 0, 1000 },
	{ "k", 1, 1000 },
	{ "bytes", 1, 262143 },
	{ "skbs", 1, RACE_MAX_SKBS },
	{ "inflight", 1, RACE_MAX_INFLIGHT },
	{ "reclaim", 0, 100000 },
	{ "itr", 0, 1022 },
	{ "wthresh", 0, 8 },
	{ "threshold", 2, 160 },
	{ "pcie", 100, 1000000 },
	{ "seed", 0, ~0ull },
};

static void set_number(struct options *o, const char *name, u64 v)
{
	struct race_params *p = &o->p;

	if (!strcmp(name, "rtt"))
		p->rtt_ps = v * US;
	else if (!strcmp(name, "jitter"))
		p->jitter_ps = v * US;
	else if (!strcmp(name, "k"))
		p->k = v;
	else if (!strcmp(name, "bytes"))
		p->skb_bytes = v;
	else if (!strcmp(name, "skbs"))
		p->nr_skbs = v;
	else if (!strcmp(name, "inflight"))
		p->inflight = v;
	else if (!strcmp(name, "reclaim"))
		p->reclaim_ps = v * US;
	else if (!strcmp(name, "itr"))
		p->itr_us = v;
	else if (!strcmp(name, "wthresh"))
		p->wthresh = v;
	else if (!strcmp(name, "threshold"))
		p->threshold_kb = v;
	else if (!strcmp(name, "pcie"))
		o->pcie_mbps = v;
	else
		p->seed = v;
}

static const struct number *find_number(const char *name, size_t len)
{
	for (u32 i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strlen(numbers[i].name) == len && !strncmp(numbers[i].name, name, len))
			return &numbers[i];
	return NULL;
}

/* "KEY=A:B" or "KEY=A:B:STEP" */
static bool take_sweep(struct options *o, const char *text)
{
	const char *eq = strchr(text, '=');
	const struct number *n = eq ? find_number(text, eq - text) : NULL;
	char word[3][24] = { "", "", "1" };

	if (!n || sscanf(eq + 1, "%23[0-9]:%23[0-9]:%23[0-9]", word[0], word[1], word[2]) < 2 ||
	    !cmd_number(word[0], n->lo, n->hi, &o->from) ||
	    !cmd_number(word[1], o->from, n->hi, &o->to) ||
	    !cmd_number(word[2], 1, ~0ull, &o->step))
		return false;
	o->sweep = text;
	snprintf(o->sweep_key, sizeof(o->sweep_key), "%s", n->name);
	return (o->to - o->from) / o->step < MAX_CELLS;
}

/* "02:00:00:00:00:02", not of a group. */
static bool take_mac(const char *text, u8 mac[6])
{
	unsigned int byte[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3],
		   &byte[4], &byte[5], &end) != 6 ||
	    text[end] || strlen(text) != 17)
		return false;
	for (u32 i = 0; i < 6; i++)
		mac[i] = byte[i];
	return !(mac[0] & 1);
}

static bool take_word(struct options *o, int argc, char **argv, int *i, bool *fault)
{
	const char *v;

	if ((v = cmd_option(argc, argv, i, "--point", fault))) {
		o->point = v;
		*fault |= !nic_preset(v);
	} else if ((v = cmd_option(argc, argv, i, "--peer", fault))) {
		o->peer = v;
	} else if (!strcmp(argv[*i], "--marker")) {
		o->port.marker = true;
	} else if ((v = cmd_option(argc, argv, i, "--peer-mac", fault))) {
		o->peer_mac = v;
		*fault |= !take_mac(v, o->port.peer_mac);
	} else if ((v = cmd_option(argc, argv, i, "--ack", fault))) {
		*fault |= !cmd_policy(v, &o->p.ack);
	} else if ((v = cmd_option(argc, argv, i, "--mode", fault))) {
		for (o->p.mode = 0; o->p.mode < RACE_MODE_NR; o->p.mode++)
			if (!strcmp(v, race_mode_name(o->p.mode)))
				return true;
		*fault = true;
	} else if ((v = cmd_option(argc, argv, i, "--era", fault))) {
		*fault |= skb_era_parse(v) < 0;
		o->p.era = skb_era_parse(v);
	} else if ((v = cmd_option(argc, argv, i, "--sweep", fault))) {
		*fault |= !take_sweep(o, v);
	} else if ((v = cmd_option(argc, argv, i, "--json", fault))) {
		o->json = v;
	} else if ((v = cmd_option(argc, argv, i, "--pcap", fault))) {
		o->pcap = v;
	} else {
		return false;
	}
	return true;
}

static int take_options(struct options *o, int argc, char **argv)
{
	bool fault = false;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool taken;

		taken = device_option(argc, argv, &i, &o->device, &fault) ||
			take_word(o, argc, argv, &i, &fault);
		for (u32 j = 0; !taken && j < ARRAY_SIZE(numbers); j++) {
			char name[32];
			const char *v;
			u64 number;

			snprintf(name, sizeof(name), "--%s", numbers[j].name);
			v = cmd_option(argc, argv, &i, name, &fault);
			if (!v)
				continue;
			taken = true;
			if (cmd_number(v, numbers[j].lo, numbers[j].hi, &number))
				set_number(o, numbers[j].name, number);
			else
				fault = true;
		}
		if (!taken || fault)
			return cmd_error(CMD_USAGE, "race does not take '%s%s%s' (--help)", word,
					 argv[i] == word ? "" : " ",
					 argv[i] == word ? "" : argv[i]);
	}
	o->on_port = !device_is_model(&o->device, &o->p.device, &fault);
	if (fault)
		return cmd_error(CMD_USAGE, "no model of '%s' (--help)", o->device.name);
	if (o->on_port && (o->point || o->pcie_mbps || o->pcap))
		return cmd_error(CMD_USAGE,
				 "--point, --pcie and --pcap are the model's: a port has a slot of "
				 "its own");
	if (!o->on_port && (o->peer || o->peer_mac || o->port.marker))
		return cmd_error(CMD_USAGE,
				 "the model has its own peer, and its own times: no --peer, no "
				 "--marker");
	if (o->on_port && !strcmp(o->sweep_key, "pcie"))
		return cmd_error(CMD_USAGE, "a port's slot cannot be swept");
	if (o->pcap && (!o->point || o->sweep))
		return cmd_error(CMD_USAGE, "--pcap needs one --point and no --sweep");
	return CMD_OK;
}

/*
 * --- running
 * ----------------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Both variants' lists in turn, the median of each. */
static void time_calls(struct cell *c, const struct race_log log[TCP_TRIM_NR])
{
	double ns[TCP_TRIM_NR][REPLAYS];

	for (u32 i = 0; i < REPLAYS; i++)
		for (enum tcp_trim t = 0; t < TCP_TRIM_NR; t++)
			ns[t][i] = race_replay_ns(&c->p, t, &log[t]);
	for (enum tcp_trim t = 0; t < TCP_TRIM_NR; t++) {
		qsort(ns[t], REPLAYS, sizeof(ns[t][0]), by_value);
		c->ns[t] = ns[t][REPLAYS / 2];
	}
}

static int run_one(const struct options *o, const struct race_params *p, enum tcp_trim trim,
		   struct race_log *log, struct race_result *res, char *err, size_t errlen)
{
	return o->on_port ? race_port(p, &o->port, trim, log, res, err, errlen)
			  : race_model(p, trim, log, res, err, errlen);
}

static int run_cell(const struct options *o, struct cell *c, char *err, size_t errlen)
{
	struct race_log log[TCP_TRIM_NR] = { 0 };
	int ret = 0;

	c->p.nic = &c->nic;
	for (enum tcp_trim t = 0; !ret && t < TCP_TRIM_NR; t++) {
		if (!stop_wanted)
			ret = run_one(o, &c->p, t, &log[t], &c->res[t], err, errlen);
		c->p.pcapng = NULL; /* the first variant's frames: the other sends the same */
	}
	if (!ret && log[TRIM_EAGER].nr && log[TRIM_OFFSET_ACK].nr)
		time_calls(c, log);
	for (enum tcp_trim t = 0; t < TCP_TRIM_NR; t++)
		race_log_exit(&log[t]);
	return ret;
}

/* What cannot race, in the slot with the longest window. */
static u32 make_controls(const struct options *o, const struct cell *last, struct control out[3])
{
	/* A port tells its window only by what it did. */
	const double dd_us = max(last->res[TRIM_EAGER].dd_after_doorbell.max_us,
				 last->res[TRIM_OFFSET_ACK].dd_after_doorbell.max_us);
	const struct control base = { .p = o->p };
	struct race_params *p;

	for (u32 i = 0; i < 3; i++) {
		out[i] = base;
		out[i].p.nic = nic_preset("patch");
		out[i].p.rtt_ps = CONTROL_RTT_US * US;
		out[i].p.inflight = 1;
		out[i].p.pcapng = NULL;
	}
	out[0].name = "one segment";
	p = &out[0].p;
	p->skb_bytes = TCP_MSS_ETHERNET;
	p->k = 1;
	out[1].name = "ACK of the last only";
	out[1].p.ack = PEER_LAST;
	out[2].name = "RTT above the window";
	p = &out[2].p;
	p->ack = PEER_EVERY;
	/* The window of the whole packet at this slot's rate, and more. */
	p->rtt_ps = 2 * nic_time_ps(p->skb_bytes + 8192ull, p->nic->pcie_mbps) + p->reclaim_ps +
		    (p->itr_us * 2 + 100) * US;
	for (u32 i = 0; o->on_port && i < 3; i++) {
		out[i].p.nr_skbs = min(o->p.nr_skbs, (u32)PORT_CONTROLS);
		if (i == 2)
			out[i].p.rtt_ps = PORT_RTT_MS * SIM_PS_PER_MS + o->p.reclaim_ps +
					  (u64)(4 * dd_us) * US;
	}
	/* Who is at the other end of the wire chooses when to answer. */
	return o->on_port && o->port.peer == RACE_PEER_EXTERNAL ? 0 : 3;
}

/*
 * --- telling
 * ----------------------------------------------------------------------------------------------
 */

static void print_cell(FILE *f, const struct cell *c, const char *sweep_key)
{
	const struct race_result *r = &c->res[TRIM_EAGER];
	char at[40];

	if (*sweep_key)
		snprintf(at, sizeof(at), "%s %llu", sweep_key, (unsigned long long)c->value);
	else
		snprintf(at, sizeof(at), "%s", c->point);
	if (!r->skbs) {
		fprintf(f, "%-13s stopped before a packet had finished\n", at);
		return;
	}
	fprintf(f, "%-13s ", at);
	if (r->window_us) /* NOLINT: 0 is what nobody has computed */
		fprintf(f, "%6.1f", r->window_us);
	else
		fprintf(f, "%6s", "-");
	fprintf(f, " %5.0f %5.0f %5.0f %6.1f %7.1f %7.1f", 100.0 * r->races / r->skbs,
		100.0 * r->before_dd / r->skbs, 100.0 * r->before_reclaim / r->skbs,
		(double)r->trims / r->skbs, r->dd_after_doorbell.p50_us,
		r->ack_after_doorbell.p50_us);
	if (c->ns[TRIM_EAGER] > 0)
		fprintf(f, " %7.0f %10.0f\n", c->ns[TRIM_EAGER], c->ns[TRIM_OFFSET_ACK]);
	else
		fprintf(f, " %7s %10s\n", "-", "-");
}

static void print_spread(FILE *f, const char *what, const struct race_spread *s)
{
	fprintf(f, "  %-34s %9.2f %9.2f %9.2f %9.2f\n", what, s->min_us, s->p50_us, s->p99_us,
		s->max_us);
}

/* Bars of ACK against DD: to the right of 0 the ACK came first. */
static void print_histogram(FILE *f, const struct race_histogram *h)
{
	u32 most = 0;

	for (u32 i = 0; i < RACE_BINS; i++)
		most = max(most, h->count[i]);
	if (!most)
		return;
	fputs("\n  DD after that ACK, us (above 0: the ACK was first)   packets\n", f);
	for (u32 i = 0; i < RACE_BINS && (!i || h->step_us > 0); i++) {
		fprintf(f, "  %9.2f to %9.2f %8u%s", h->first_us + i * h->step_us,
			h->first_us + (i + 1) * h->step_us, h->count[i], h->count[i] ? " " : "");
		for (u32 bar = 0; bar < DIV_ROUND_UP(h->count[i] * BAR, most); bar++)
			fputc('#', f);
		fputc('\n', f);
	}
}

static void print_port(FILE *f, const struct options *o)
{
	int cpu[3] = { 0 };
	u32 n = race_port_cpus(cpu, 3);

	fprintf(f, "skbench hw race: %s, real time   era %s, peer %s\n", o->device.name,
		skb_era_name(o->p.era),
		o->port.peer == RACE_PEER_PORT ? o->peer : race_peer_name(o->port.peer));
	if (*o->pcie)
		fprintf(f, "%s\n", o->pcie);
	fprintf(f, "CPUs: %d sends and takes ACKs, %d completes", cpu[0],
		o->p.mode == RACE_IRQ_SHARED ? cpu[0] : cpu[1]);
	if (o->port.peer != RACE_PEER_EXTERNAL)
		fprintf(f, ", %d is the peer%s", cpu[2 % min(n, 3u)],
			n < 3 ? " (shares it: a third CPU would make it answer evenly)" : "");
	fputc('\n', f);
}

static void print_table(FILE *f, const struct options *o, const struct cell *cells, u32 n,
			const struct control *controls, u32 nr_controls)
{
	const struct cell *last;

	if (o->on_port)
		print_port(f, o);
	else
		fprintf(f, "skbench hw race: model of %s, virtual time   era %s, seed %llu\n",
			o->p.device ? ixgbe_find_id(o->p.device)->name : "an 82599",
			skb_era_name(o->p.era), (unsigned long long)o->p.seed);
	fprintf(f, "RTT %.0f us, ACK %s, k %u, %u sk_buffs of %u bytes, %u in flight, %s\n",
		(double)o->p.rtt_ps / US, peer_policy_name(o->p.ack), o->p.k, o->p.nr_skbs,
		o->p.skb_bytes, o->p.inflight, race_mode_name(o->p.mode));
	if (*o->sweep_key)
		fprintf(f, "but --sweep %s\n", o->sweep);
	fputc('\n', f);
	fprintf(f, "%-13s %6s %5s %5s %5s %6s %7s %7s %18s\n", *o->sweep_key ? "sweep" : "point",
		"window", "races", "R1", "R2", "trims", "DD", "ACK", "ns/64KB");
	fprintf(f, "%-13s %6s %5s %5s %5s %6s %7s %7s %7s %10s\n", "", "us", "%", "%", "%", "/skb",
		"us", "us", "eager", "offset_ack");
	for (u32 i = 0; i < n; i++)
		print_cell(f, &cells[i], o->sweep_key);
	if (n == 1) {
		const struct race_result *r = &cells[0].res[TRIM_EAGER];

		fprintf(f, "\n  %-34s %9s %9s %9s %9s\n", "us", "least", "median", "99 %", "most");
		print_spread(f, "DD after the doorbell", &r->dd_after_doorbell);
		print_spread(f, "first partial ACK after it", &r->ack_after_doorbell);
		print_spread(f, "DD after that ACK (> 0: R1)", &r->dd_after_ack);
		print_spread(f, "reclaim after DD", &r->reclaim_after_dd);
		if (r->wire_after_doorbell.max_us > 0)
			print_spread(f, "last bit sent after the doorbell",
				     &r->wire_after_doorbell);
		print_histogram(f, &r->dd_after_ack_bins);
	}
	for (u32 i = 0; i < nr_controls; i++)
		fprintf(f, "%scontrol: %-22s %u races (must be 0)\n", i ? "" : "\n",
			controls[i].name, controls[i].races);
	if (o->on_port && o->port.peer == RACE_PEER_EXTERNAL)
		fputs("\nno controls: the peer answers as it likes\n", f);
	last = &cells[n - 1];
	if (last->res[TRIM_EAGER].skbs < last->p.nr_skbs)
		fprintf(f, "\nENDED EARLY: the last row has %u of %u packets.\n",
			last->res[TRIM_EAGER].skbs, last->p.nr_skbs);
	fputs("\nwindow: a lone packet's, DD - departure of segment k. trims: partial ACKs that\n"
	      "found the clone. ns/64KB: a quick look at the calls of tcp/ alone, median of\n"
	      "41 rounds; skbench run measures them.\n",
	      f);
}

static void json_spread(FILE *f, const char *name, const struct race_spread *s)
{
	fprintf(f, ", \"%s\": {\"min\": %.6f, \"p50\": %.6f, \"p99\": %.6f, \"max\": %.6f}", name,
		s->min_us, s->p50_us, s->p99_us, s->max_us);
}

static void json_cell(FILE *f, const struct cell *c, const char *sweep_key)
{
	fprintf(f, "{\"point\": \"%s\"", c->point);
	if (*sweep_key)
		fprintf(f, ", \"%s\": %llu", sweep_key, (unsigned long long)c->value);
	fputs(", \"variants\": [", f);
	for (enum tcp_trim t = 0; t < TCP_TRIM_NR; t++) {
		const struct race_result *r = &c->res[t];

		fprintf(f,
			"%s{\"variant\": \"%s\", \"skbs\": %u, \"segments\": %u, \"acks\": %u, "
			"\"partial_acks\": %u, \"races\": %u, \"races_before_dd\": %u, "
			"\"races_before_reclaim\": %u, \"trims\": %u, \"window_us\": %.6f, "
			"\"virtual_us\": %.6f, \"ns_per_64kb_quick_look\": %.1f",
			t ? ", " : "", tcp_trim_name(t), r->skbs, r->segments, r->acks,
			r->partial_acks, r->races, r->before_dd, r->before_reclaim, r->trims,
			r->window_us, (double)r->end_ps / US, c->ns[t]);
		json_spread(f, "dd_after_doorbell_us", &r->dd_after_doorbell);
		json_spread(f, "ack_after_doorbell_us", &r->ack_after_doorbell);
		json_spread(f, "dd_after_ack_us", &r->dd_after_ack);
		fprintf(f,
			", \"dd_after_ack_histogram\": {\"first_us\": %.6f, \"step_us\": %.6f, "
			"\"count\": [",
			r->dd_after_ack_bins.first_us, r->dd_after_ack_bins.step_us);
		for (u32 i = 0; i < RACE_BINS; i++)
			fprintf(f, "%s%u", i ? ", " : "", r->dd_after_ack_bins.count[i]);
		fputs("]}", f);
		json_spread(f, "reclaim_after_dd_us", &r->reclaim_after_dd);
		if (r->wire_after_doorbell.max_us > 0)
			json_spread(f, "sent_after_doorbell_us", &r->wire_after_doorbell);
		fputc('}', f);
	}
	fputs("]}", f);
}

static void print_json(FILE *f, const struct options *o, const struct cell *cells, u32 n,
		       const struct control *controls, u32 nr_controls)
{
	fprintf(f, "{\"command\": \"hw race\", \"device\": ");
	cmd_json_text(f, o->device.name);
	if (o->on_port) {
		fprintf(f, ", \"peer\": ");
		cmd_json_text(f, o->port.peer == RACE_PEER_PORT ? o->peer
								: race_peer_name(o->port.peer));
		fprintf(f, ", \"stopped\": %s", stop_wanted ? "true" : "false");
	}
	fprintf(f,
		", \"era\": \"%s\", \"seed\": "
		"%llu, "
		"\"rtt_us\": %.3f, \"ack\": \"%s\", \"k\": %u, \"skb_bytes\": %u, \"inflight\": "
		"%u, "
		"\"mode\": \"%s\", \"cells\": [",
		skb_era_name(o->p.era), (unsigned long long)o->p.seed, (double)o->p.rtt_ps / US,
		peer_policy_name(o->p.ack), o->p.k, o->p.skb_bytes, o->p.inflight,
		race_mode_name(o->p.mode));
	for (u32 i = 0; i < n; i++) {
		if (i)
			fputs(", ", f);
		json_cell(f, &cells[i], o->sweep_key);
	}
	fputs("], \"controls\": [", f);
	for (u32 i = 0; i < nr_controls; i++)
		fprintf(f, "%s{\"name\": \"%s\", \"races\": %u}", i ? ", " : "", controls[i].name,
			controls[i].races);
	fputs("]}\n", f);
}

/*
 * --- the command
 * ----------------------------------------------------------------------------------------------
 */

/* One cell for each point, or for each value of the swept key. */
static u32 make_cells(struct options *o, struct cell *cells, FILE *pcap)
{
	static const char *const points[] = { "patch", "gen1x4", "gen2x8", "fifo_full" };
	u32 n = 0;

	o->p.pcapng = pcap;
	if (o->on_port && !o->sweep)
		cells[n++] = (struct cell){ .point = "port", .p = o->p };
	else if (!o->point && !o->sweep)
		for (; n < ARRAY_SIZE(points); n++)
			cells[n] = (struct cell){ .point = points[n], .p = o->p };
	else if (!o->sweep)
		cells[n++] = (struct cell){ .point = o->point, .p = o->p };
	else
		for (u64 v = o->from; v <= o->to; v += o->step) {
			struct options swept = *o;

			set_number(&swept, o->sweep_key, v);
			cells[n] = (struct cell){ .point = o->point ? o->point : "patch",
						  .value = v,
						  .p = swept.p };
			if (o->on_port)
				cells[n].point = "port";
			else
				cells[n].nic = *nic_preset(cells[n].point);
			if (swept.pcie_mbps)
				cells[n].nic.pcie_mbps = swept.pcie_mbps;
			n++;
		}
	for (u32 i = 0; !o->sweep && !o->on_port && i < n; i++) {
		cells[i].nic = *nic_preset(cells[i].point);
		if (o->pcie_mbps)
			cells[i].nic.pcie_mbps = o->pcie_mbps;
	}
	return n;
}

static int run_all(struct options *o, FILE *json, FILE *pcap)
{
	static struct cell cells[MAX_CELLS];
	struct control controls[3];
	u32 n = make_cells(o, cells, pcap), nr_controls = 0, ran = 0;
	char err[TEXT_BYTES] = "";
	int status = CMD_OK;

	for (; ran < n && !stop_wanted && !status; ran++) {
		int ret = run_cell(o, &cells[ran], err, sizeof(err));

		if (ret) /* what ran before it is still told */
			status = cmd_error(ret == -EINVAL ? CMD_USAGE : CMD_FAILED,
					   "race at %s: %s", cells[ran].point, err);
	}
	if (status && !o->on_port)
		return status;
	/* The run that failed on a port counts as far as it came. */
	n = ran - (status && !cells[ran - 1].res[TRIM_EAGER].skbs);
	if (!n)
		return status ? status : cmd_error(CMD_FAILED, "stopped by a signal");
	if (!status && !o->point && !o->sweep)
		nr_controls = make_controls(o, &cells[n - 1], controls);
	for (u32 i = 0; i < nr_controls; i++) {
		struct race_result res;

		if (stop_wanted) {
			nr_controls = i;
			break;
		}
		if (run_one(o, &controls[i].p, TRIM_EAGER, NULL, &res, err, sizeof(err)))
			status = cmd_error(CMD_FAILED, "control '%s': %s", controls[i].name, err);
		if (stop_wanted || status == CMD_FAILED) {
			nr_controls = i;
			break;
		}
		controls[i].races = res.races;
		if (res.races)
			status = CMD_CONTROL;
	}
	if (json != stdout)
		print_table(stdout, o, cells, n, controls, nr_controls);
	if (json)
		print_json(json, o, cells, n, controls, nr_controls);
	if (stop_wanted)
		return cmd_error(CMD_FAILED, "stopped by a signal");
	return status;
}

/* Opens what --device and --peer name. An exit status, and why. */
static int open_port(struct options *o)
{
	static char pcie[SLOT_BYTES];
	struct device_choice peer = o->device;
	bool fault = false;
	u16 id;

	if (!o->peer || !strcmp(o->peer, "loopback")) {
		o->port.peer = RACE_PEER_LOOPBACK;
	} else if (!strcmp(o->peer, "external")) {
		o->port.peer = RACE_PEER_EXTERNAL;
	} else {
		o->port.peer = RACE_PEER_PORT;
		peer.name = o->peer;
		if (device_is_model(&peer, &id, &fault) || !strcmp(o->peer, o->device.name))
			return cmd_error(CMD_USAGE,
					 "--peer takes loopback, external, or another port than "
					 "--device");
	}
	if (o->peer_mac && o->port.peer != RACE_PEER_EXTERNAL)
		return cmd_error(CMD_USAGE, "--peer-mac goes with --peer external");
	if (device_open(&o->device, &o->port.dev))
		return CMD_IMPOSSIBLE;
	if (o->port.peer == RACE_PEER_PORT && device_open(&peer, &o->port.peer_dev))
		return CMD_IMPOSSIBLE;
	device_slot(o->device.name, pcie, sizeof(pcie));
	o->pcie = pcie;
	stop_on_signals();
	return CMD_OK;
}

int cmd_race(int argc, char **argv)
{
	struct options o = { .device = { .name = "model" },
			     .p = race_defaults,
			     .pcie = "",
			     .port = { .halt_ms = HALT_MS,
				       .stop = &stop_wanted,
				       .peer_mac = { 2, 0, 0, 0, 0, 2 } } };
	FILE *json = NULL, *pcap = NULL;
	int status;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return CMD_OK;
		}
	status = take_options(&o, argc, argv);
	if (status)
		return status;
	if ((o.json && !(json = cmd_create(o.json))) || (o.pcap && !(pcap = cmd_create(o.pcap))))
		return CMD_USAGE;
	if (obj_init("slub", 1) || page_alloc_init(1, PAGES) || skb_cpu_attach(0, 0))
		return cmd_error(CMD_IMPOSSIBLE, "no memory for %u pages", PAGES);
	status = o.on_port ? open_port(&o) : CMD_OK;
	if (!status)
		status = run_all(&o, json, pcap);
	nicdev_close(o.port.dev);
	nicdev_close(o.port.peer_dev);
	if (json && json != stdout)
		fclose(json);
	if (pcap)
		fclose(pcap);
	return status;
}
