/* SPDX-License-Identifier: MIT */
/* What each policy acknowledges of a packet of 45 segments, 1 us apart. */
#include "sim/nic.h"
#include "sim/peer.h"
#include "tests/support/model.h"

#define US SIM_PS_PER_US

static u32 ack_at[64]; /* the segments that made an ACK, from 1 */

/* SEGS segments, PERIOD ps apart, the last with PSH. Returns the ACKs. */
static u32 packet(struct peer *peer, u64 from_ps, u64 period, u32 segs)
{
	u32 acks = 0;

	for (u32 i = 1; i <= segs; i++) {
		u64 now = from_ps + i * period;

		if (peer->deadline_ps <= now && peer_timer(peer, peer->deadline_ps))
			ack_at[acks++] = i - 1;
		if (peer_segment(peer, now, peer->rcv_nxt + 1448, i == segs))
			ack_at[acks++] = i;
	}
	return acks;
}

static void every(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer, PEER_EVERY, 1, 0);
	assert_int_equal(packet(&peer, 0, US, 45), 45);
	peer_init(&peer, PEER_EVERY, 2, 0);
	assert_int_equal(packet(&peer, 0, US, 45), 23);
	assert_int_equal(ack_at[0], 2);
	assert_int_equal(ack_at[21], 44);
	assert_int_equal(ack_at[22], 45); /* PSH */
	assert_int_equal(peer.deadline_ps, ~0ull);
}

static void delayed(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer, PEER_DELAYED, 2, 0xffffff00u); /* wraps */
	assert_int_equal(packet(&peer, 0, US, 45), 22);
	assert_int_equal(peer.pending, 1);
	/* The odd segment waits 40 ms, or for the next. */
	assert_int_equal(peer.deadline_ps, 45 * US + 40 * SIM_PS_PER_MS);
	assert_false(peer_timer(&peer, peer.deadline_ps - 1));
	assert_true(peer_timer(&peer, peer.deadline_ps));
	assert_false(peer_timer(&peer, ~0ull - 1));
	assert_int_equal(packet(&peer, 0, US, 45), 22);
	assert_int_equal(packet(&peer, 50 * US, US, 45), 23);
	assert_int_equal(ack_at[0], 1);
}

static void stretch(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer, PEER_STRETCH, 17, 0);
	assert_int_equal(packet(&peer, 0, US, 45), 3); /* 17, 34, 45 */
	assert_int_equal(ack_at[1], 34);
	/* At 2 us a segment a batch of 17 is flushed before it is full: 20 us after its first. */
	peer_init(&peer, PEER_STRETCH, 17, 0);
	assert_int_equal(packet(&peer, 0, 2 * US, 45), 5);
	assert_int_equal(ack_at[0], 10);
}

static void last(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer, PEER_LAST, 1, 0);
	assert_int_equal(packet(&peer, 0, US, 45), 1);
	assert_int_equal(ack_at[0], 45);
	assert_int_equal(packet(&peer, 0, US, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every),
		cmocka_unit_test(delayed),
		cmocka_unit_test(stretch),
		cmocka_unit_test(last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
