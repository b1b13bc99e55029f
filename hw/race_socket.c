/* SPDX-License-Identifier: MIT */
#include "hw/race_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_SLOTS 64
#define TX_RING	   2048 /* RACE_MAX_INFLIGHT packets do not go round it */

void *race_new(size_t bytes, struct race_log *log, struct race_result *res, char *err,
	       size_t errlen)
{
	void *r = aligned_alloc(64, ALIGN(bytes, 64));

	memset(res, 0, sizeof(*res));
	if (log)
		memset(log, 0, sizeof(*log));
	if (!r) {
		snprintf(err, errlen, "no memory for a race");
		return NULL;
	}
	return memset(r, 0, bytes);
}

int race_socket_open(struct race_socket *s, const struct race_params *p, char *err, size_t errlen)
{
	if (tx_ring_init(&s->ring, RING_SLOTS)) {
		snprintf(err, errlen, "no memory for a ring");
		return -ENOMEM;
	}
	s->made = true;
	tcp_sock_init(&s->sk, &s->prot, &s->ring, SKB_FRAG_PAGE_ORDER);
	s->sk.gso_max_size = max(p->skb_bytes, (u32)TCP_GSO_MAX_SIZE);
	s->base = s->sk.snd_una;
	link_watch_init(&s->watch, &s->sk);
	s->packet = calloc(p->nr_skbs, sizeof(*s->packet));
	if (s->packet)
		return 0;
	snprintf(err, errlen, "no memory for %u packets", p->nr_skbs);
	return -ENOMEM;
}

void race_socket_close(struct race_socket *s, enum skb_era era)
{
	free(s->packet);
	s->packet = NULL;
	if (!s->made)
		return;
	tx_ring_complete(era, &s->ring, ~0u);
	tcp_sock_destroy(era, &s->sk);
	tx_ring_exit(&s->ring);
	s->made = false;
}

struct ixgbe_config race_driver_config(const struct race_params *p)
{
	struct ixgbe_config cfg = ixgbe_default_config;

	cfg.tx_ring = TX_RING;
	cfg.wthresh = p->wthresh;
	cfg.itr_us = p->itr_us;
	cfg.irq = p->mode != RACE_POLL;
	cfg.one_vector = p->mode == RACE_IRQ_SHARED;
	cfg.txpbthresh_kb = p->threshold_kb;
	return cfg;
}

int race_socket_fill(struct race_socket *s, const struct race_params *p, enum tcp_trim trim,
		     char *err, size_t errlen)
{
	if (tcp_sendmsg_in_place(p->era, &s->sk, p->skb_bytes) != (int)p->skb_bytes) {
		snprintf(err, errlen, "the send buffer does not take %u bytes", p->skb_bytes);
		return -EIO;
	}
	tcp_write_xmit(p->era, trim, &s->sk);
	return 0;
}

int race_socket_push(struct race_socket *s, struct skb_tx *t, char *err, size_t errlen)
{
	struct link_packet pkt;
	int n = skb_tx_push(t, err, errlen);

	if (n < 0)
		return n;
	while (link_watch_sent(&s->watch, &s->sk, &pkt))
		;
	if (n == 1)
		return 0;
	snprintf(err, errlen, "a send made %d packets, not 1", n);
	return -EIO;
}
