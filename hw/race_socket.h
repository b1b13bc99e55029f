/* SPDX-License-Identifier: MIT */
/*
 * What the race on the model and the one on a port begin with: a socket of tcp/ whose packets go to
 * the driver's ring, and what is noted about each.
 */
#ifndef HW_RACE_SOCKET_H
#define HW_RACE_SOCKET_H

#include "hw/ixgbe/skb_tx.h"
#include "hw/race_internal.h"
#include "sim/watch.h"

struct race_socket {
	struct sock sk;
	struct proto_memory prot;
	struct tx_ring ring;
	struct link_watch watch;
	struct race_packet *packet; /* p->nr_skbs of them */
	u32 base; /* sequence number of the first byte */
	bool made;
};

/*
 * BYTES of zeroed memory for a race, aligned to 64; *RES zeroed, and *LOG, if that is not NULL. NULL
 * without memory, with a sentence in ERR. free() it.
 */
void *race_new(size_t bytes, struct race_log *log, struct race_result *res, char *err,
	       size_t errlen);

/* 0 or -ENOMEM, with a sentence in ERR. In zeroed memory; from the CPU that will send. */
int race_socket_open(struct race_socket *s, const struct race_params *p, char *err, size_t errlen);

/* Frees packets and socket, completing what is in the ring; nothing if it was not opened. */
void race_socket_close(struct race_socket *s, enum skb_era era);

/* The configuration that P asks of the driver; the receive ring is the caller's to choose. */
struct ixgbe_config race_driver_config(const struct race_params *p);

/*
 * One sk_buff of p->skb_bytes, cloned into the ring; no doorbell. 0, or -EIO with a sentence in ERR if
 * the socket does not take it.
 */
int race_socket_fill(struct race_socket *s, const struct race_params *p, enum tcp_trim trim,
		     char *err, size_t errlen);

/* Posts it on T and rings the doorbell. 0; what skb_tx_push() returns; -EIO if it was not one. */
int race_socket_push(struct race_socket *s, struct skb_tx *t, char *err, size_t errlen);

#endif
