/* SPDX-License-Identifier: MIT */
/*
 * A list of TSO packets that goes through two devices: QEMU's 82576, whose descriptors are those of
 * the 82599, and the model. Whoever includes this has a transmit queue of the driver's and an arena.
 */
#ifndef TESTS_HW_SAME_PACKETS_H
#define TESTS_HW_SAME_PACKETS_H

#include "hw/flow.h"
#include "hw/ixgbe/ixgbe.h"

#define SAME_PACKETS 64
#define SAME_BYTES   (128 << 10) /* of payload in memory */

static inline u32 same_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static inline void same_fill(u8 *payload)
{
	u32 state = 82599;

	for (u32 i = 0; i < SAME_BYTES; i++)
		payload[i] = same_random(&state);
}

/*
 * Posts packet I, whose payload is in memory at PAYLOAD (IOVA), and returns what ixgbe_tx_post()
 * does. Its header lies in the queue's slot.
 */
static inline int same_post(struct ixgbe_txq *q, u32 i, u64 iova, char *err, size_t errlen)
{
	static const u8 src[6] = { 2, 0, 0, 0, 0, 1 }, dst[6] = { 2, 0, 0, 0, 0, 2 };
	u32 state = i + 1, mss = 64 + same_random(&state) % 1385;
	/* At most 64 segments, so that a small MSS makes no flood. */
	u32 bytes = 1 + same_random(&state) % min(65160u, mss * 64);
	u32 each = 2048 + same_random(&state) % 6145, at = same_random(&state) % 4096, nr = 1;
	struct ixgbe_buf buf[40];
	struct ixgbe_tx_packet pkt = { .buf = buf,
				       .maclen = FLOW_MAC_BYTES,
				       .iplen = FLOW_IP_BYTES,
				       .l4len = FLOW_TCP_BYTES,
				       .mss = mss,
				       .ipv4 = true,
				       .csum = true };
	struct flow flow;
	u8 *header = ixgbe_tx_header(q, &buf[0].iova);

	flow_init(&flow, src, dst);
	buf[0].len = FLOW_HEADER_BYTES;
	flow_tcp_header(&flow, header, i * 0x08000001u, i, FLOW_ACK | FLOW_PSH);
	flow_finish(&flow, header, bytes, true);
	for (u32 done = 0; done < bytes; done += each)
		buf[nr++] = (struct ixgbe_buf){ iova + at + done, min(each, bytes - done) };
	pkt.nr_bufs = nr;
	return ixgbe_tx_post(q, &pkt, err, errlen);
}

#endif
