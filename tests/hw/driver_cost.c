/* SPDX-License-Identifier: MIT */
/*
 * driver_cost plain|tso PACKETS: posts and reclaims PACKETS packets on a device that does nothing, in
 * batches of 32, inside hw_counted_span() for callgrind. driver_cost_test.py runs it.
 *
 * plain: a frame of 1514 bytes in one buffer. tso: 65160 bytes, a header and 17 buffers of 4 KB
 * at most: a context and 18 data descriptors. Making the frames and their buffers is not counted, and
 * neither is the device, which here is a loop that sets DD.
 */
#include "null_device.h"

#include <stdio.h>
#include <string.h>

#define BATCH	     32
#define TSO_BYTES    65160
#define PAGE	     4096
#define FIRST_BYTES  1000
#define RING	     1024 /* of 19 descriptors each, a batch fits */
#define TSO_BUFS     17
#define HEADER_BYTES 66
#define FRAME_BYTES  1514

struct work {
	struct ixgbe_txq *q;
	const struct ixgbe_buf *frame; /* BATCH of each of them */
	const struct ixgbe_tx_packet *pkt;
	u32 done;
};

/* What callgrind counts. A symbol of its own, which no call site takes in. */
__attribute__((noinline)) void hw_counted_span(void (*span)(struct work *w), struct work *w);

void hw_counted_span(void (*span)(struct work *w), struct work *w)
{
	span(w);
	__asm__ volatile("" ::: "memory"); /* no jump out of the counted function */
}

static void post_frames(struct work *w)
{
	if (ixgbe_tx_post_frames(w->q, w->frame, BATCH) == BATCH)
		ixgbe_tx_kick(w->q);
}

static void post_packets(struct work *w)
{
	for (u32 i = 0; i < BATCH; i++)
		if (ixgbe_tx_post(w->q, &w->pkt[i], NULL, 0))
			return;
	ixgbe_tx_kick(w->q);
}

static void reclaim_batch(struct work *w)
{
	w->done = ixgbe_tx_clean(w->q, BATCH);
}

/* The device: each packet's last descriptor reads as done. */
static void complete(struct ixgbe_txq *q)
{
	for (u32 first = q->next_to_clean; first != q->tail;) {
		u32 eop = q->eop[first];

		q->desc[eop].hi |= IXGBE_TXD_STA_DD;
		first = eop + 1 == q->nr ? 0 : eop + 1;
	}
}

int main(int argc, char **argv)
{
	struct ixgbe *ix = aligned_alloc(64, ALIGN(sizeof(*ix), 64));
	struct ixgbe_config cfg = ixgbe_default_config;
	struct ixgbe_buf frame[BATCH], buf[1 + TSO_BUFS];
	struct ixgbe_tx_packet pkt[BATCH];
	struct nicdev *dev = null_device_open();
	struct work w = { .frame = frame, .pkt = pkt };
	bool tso = argc == 3 && !strcmp(argv[1], "tso");
	u32 packets = argc == 3 ? (u32)atoi(argv[2]) : 0, nr = 1, left;
	char err[300];

	if (!packets || packets % BATCH || (!tso && strcmp(argv[1], "plain"))) {
		fprintf(stderr, "usage: driver_cost plain|tso PACKETS, a multiple of %u\n", BATCH);
		return 2;
	}
	cfg.tx_ring = RING;
	BUG_ON(!ix);
	if (ixgbe_start(ix, dev, &cfg, err, sizeof(err))) {
		fprintf(stderr, "driver_cost: %s\n", err);
		return 1;
	}
	w.q = &ix->txq[0];
	buf[0] = (struct ixgbe_buf){ 1 << 30, HEADER_BYTES };
	/* A stream that begins within a page, as TCP's does. */
	for (left = TSO_BYTES; left; left -= buf[nr++].len)
		buf[nr] = (struct ixgbe_buf){ (1 << 30) + nr * PAGE,
					      nr == 1 ? FIRST_BYTES : min(left, (u32)PAGE) };
	for (u32 i = 0; i < BATCH; i++) {
		frame[i] = (struct ixgbe_buf){ (1 << 30) + i * PAGE, FRAME_BYTES };
		pkt[i] = (struct ixgbe_tx_packet){ .buf = buf,
						   .nr_bufs = nr,
						   .maclen = 14,
						   .iplen = 20,
						   .l4len = 32,
						   .mss = 1448,
						   .ipv4 = true,
						   .csum = true };
	}
	null_device_mapped(dev, true);
	for (u32 done = 0; done < packets; done += w.done) {
		hw_counted_span(tso ? post_packets : post_frames, &w);
		complete(w.q);
		hw_counted_span(reclaim_batch, &w);
		if (w.done != BATCH) {
			fprintf(stderr, "driver_cost: %u of %u packets came back\n", w.done, BATCH);
			return 1;
		}
	}
	printf("%u data descriptors, a batch of %u\n", tso ? nr : 1, BATCH);
	null_device_mapped(dev, false);
	ixgbe_stop(ix);
	nicdev_close(dev);
	free(ix);
	return 0;
}
