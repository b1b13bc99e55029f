/* SPDX-License-Identifier: MIT */
/*
 * The race on a port: a card through VFIO, or a model in another process. As hw/race.h says, but in
 * real time, and the CPUs are CPUs:
 *
 *   sender and ACKs     posts packets, takes ACKs, trims; rings the doorbell
 *   completions         looks for DD, cleans the ring, frees clones
 *   peer                with a peer of ours: receives segments, answers
 *
 * each a pinned thread. With RACE_IRQ_SHARED the first does the second's work, before its own.
 */
#ifndef HW_RACE_PORT_H
#define HW_RACE_PORT_H

#include "hw/nicdev.h"
#include "hw/race.h"

enum race_peer {
	RACE_PEER_LOOPBACK, /* the MAC sends back what it sends; ACKs are made of that */
	RACE_PEER_PORT, /* a second port, with our driver and responder on it */
	RACE_PEER_EXTERNAL, /* who is at the other end of the wire acknowledges by itself */
	RACE_PEER_NR
};

struct race_port {
	struct nicdev *dev, *peer_dev; /* the second one for RACE_PEER_PORT, else NULL */
	enum race_peer peer;
	u8 peer_mac[6]; /* of RACE_PEER_EXTERNAL */
	bool marker; /* behind each packet a frame that the device stamps; one in flight */
	u32 halt_ms; /* without any progress for so long the run has failed */
	const volatile int *stop; /* set from outside: end now, with what there is */
};

/*
 * Runs P on PORT, whose devices stay the caller's and are stopped afterwards, bus mastering off,
 * however it ends. p->nic is not looked at; p->rtt_ps is what a peer of ours waits after a segment
 * has arrived. To be called as race_model(). 0; also after *stop, with res->stopped; -EINVAL for
 * parameters that make no sense together; -ENODEV, -ETIMEDOUT for a device that is gone, a link that
 * is down; -EIO for a halt, a lost or wrong segment, pause frames; -ENOMEM; each with a sentence in
 * ERR, and what had finished by then in RES.
 */
int race_port(const struct race_params *p, const struct race_port *port, enum tcp_trim trim,
	      struct race_log *log, struct race_result *res, char *err, size_t errlen);

/* How many CPUs this process may use, the first MAX of them in CPU. */
u32 race_port_cpus(int *cpu, u32 max);

const char *race_peer_name(enum race_peer peer);

#endif
