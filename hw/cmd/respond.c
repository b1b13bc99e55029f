/* SPDX-License-Identifier: MIT */
/* respond: the peer of `race --peer external`, on another machine. */
#include "hw/respond.h"
#include "hw/cmd/cmd.h"
#include "hw/cmd/stop.h"

#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: skbench hw respond --interface IF [OPTION...]\n\n"
	"Acknowledges what `skbench hw race --peer external` sends from the other end of the "
	"wire,\n"
	"on any Ethernet interface that Linux drives. As root, or with CAP_NET_RAW. It answers "
	"the\n"
	"race's connection (10.0.0.1 to 10.0.0.2, ports 5001) and no other; the interface has to "
	"be\n"
	"up and to leave segments as they come (ethtool -K IF gro off lro off), and should have "
	"no\n"
	"address: then the kernel's own TCP does not answer, too.\n\n"
	"  --interface IF     where the race's port is at the other end\n"
	"  --ack POLICY       every, delayed, stretch, last: when to acknowledge (every)\n"
	"  --k N              segments to an ACK (2)\n"
	"  --seconds N        end after that; without it at SIGINT\n"
	"Exit status: 0; 2 usage; 4 not possible here; 5 a segment was lost or wrong, frames were\n"
	"lost, or the interface went away.\n";

struct options {
	const char *interface;
	enum peer_policy policy;
	u64 k, seconds;
};

static bool take(struct options *o, int argc, char **argv, int *i, bool *fault)
{
	const char *v;

	if ((v = cmd_option(argc, argv, i, "--interface", fault))) {
		o->interface = v;
	} else if ((v = cmd_option(argc, argv, i, "--k", fault))) {
		*fault |= !cmd_number(v, 1, 1000, &o->k);
	} else if ((v = cmd_option(argc, argv, i, "--seconds", fault))) {
		*fault |= !cmd_number(v, 1, 1000000, &o->seconds);
	} else if ((v = cmd_option(argc, argv, i, "--ack", fault))) {
		*fault |= !cmd_policy(v, &o->policy);
	} else {
		return false;
	}
	return true;
}

int cmd_respond(int argc, char **argv)
{
	struct options o = { .k = 2 };
	struct respond r;
	char err[300] = "";
	int fd, ret;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool fault = false;

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			fputs(usage, stdout);
			return CMD_OK;
		}
		if (!take(&o, argc, argv, &i, &fault) || fault)
			return cmd_error(CMD_USAGE, "respond does not take '%s%s%s' (--help)", word,
					 argv[i] == word ? "" : " ",
					 argv[i] == word ? "" : argv[i]);
	}
	if (!o.interface)
		return cmd_error(CMD_USAGE, "respond needs --interface IF (--help)");
	stop_on_signals();
	respond_init(&r, o.policy, o.k);
	fd = respond_open(o.interface, err, sizeof(err));
	if (fd < 0)
		return cmd_error(CMD_IMPOSSIBLE, "respond: %s", err);
	printf("answering on %s: ACK %s, k %u\n", o.interface, peer_policy_name(o.policy), r.k);
	fflush(stdout);
	ret = respond_run(&r, fd, &stop_wanted, o.seconds, err, sizeof(err));
	close(fd);
	printf("%llu connections, %llu segments acknowledged by %llu ACKs, %llu other frames\n",
	       (unsigned long long)r.connections, (unsigned long long)r.segments,
	       (unsigned long long)r.acks, (unsigned long long)r.foreign);
	if (r.faults)
		cmd_error(CMD_FAILED, "respond: %s: %llu wrong frames, the first: %s", o.interface,
			  (unsigned long long)r.faults, r.wrong);
	if (ret)
		cmd_error(CMD_FAILED, "respond: %s: %s", o.interface, err);
	return ret || r.faults ? CMD_FAILED : CMD_OK;
}
