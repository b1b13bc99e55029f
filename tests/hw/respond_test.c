/* SPDX-License-Identifier: MIT */
/*
 * The race's peer on another machine: which ACK each segment gets, byte by byte; what is nobody's
 * business; and the same through real packet sockets on a veth pair, where this machine lets us make
 * one.
 */
#include "hw/respond.h"
#include "sim/nic.h"
#include "tests/support/model.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MSS	 1448
#define FRAME	 (FLOW_HEADER_BYTES + MSS)
#define US	 SIM_PS_PER_US
#define WAIT_MS	 20000 /* until a reply counts as missing */
#define SEGMENTS 45 /* of a TSO packet of 64 KB */

static const u8 port_mac[6] = { 0x00, 0x1b, 0x21, 0x99, 0x3c, 0x4d };
static const u8 peer_mac[6] = { 0x02, 0, 0, 0, 0, 0x02 };

/* An ACK of the bench's connection as it has to stand on the wire; sums by hand, below. */
static const u8 ack_bytes[FLOW_HEADER_BYTES] = {
	0x00, 0x1b, 0x21, 0x99, 0x3c, 0x4d, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08,
	0x00, /* MACs */
	0x45, 0x00, 0x00, 0x34, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0x26, 0xc2, /* IPv4, 52 bytes */
	10,   0,    0,	  2,	10,   0,    0,	  1, /* addresses */
	0x13, 0x89, 0x13, 0x89, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, /* ports, seq, ack */
	0x80, 0x10, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, /* 32 bytes, ACK, window 512, sum, urgent */
	1,    1,    1,	  1,	1,    1,    1,	  1,	1,    1,    1,	  1, /* no-operations */
};

/*
 * TCP's sum with ACK 0: pseudo header 0a00 + 0002 + 0a00 + 0001 + 0006 + 0020 = 1429, then 1389 + 1389
 * + 0001 + 8010 + 0200 + 6 x 0101 = af29, in all c352.
 */
#define SUM_WITHOUT_ACK 0xc352u

static void expect_ack(const u8 *got, u32 len, u32 ack)
{
	u32 sum = SUM_WITHOUT_ACK + (ack >> 16) + (ack & 0xffff);
	u8 want[FLOW_HEADER_BYTES];

	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	memcpy(want, ack_bytes, sizeof(want));
	for (u32 i = 0; i < 4; i++)
		want[42 + i] = ack >> (24 - 8 * i);
	want[50] = sum >> 8;
	want[51] = sum;
	assert_int_equal(len, FLOW_HEADER_BYTES);
	assert_memory_equal(got, want, FLOW_HEADER_BYTES);
}

static struct flow bench_flow(void)
{
	struct flow f;

	flow_init(&f, port_mac, peer_mac);
	return f;
}

/* Segment N of a packet that begins at sequence number SEQ, the last one with PSH. */
static u32 segment(u8 *frame, u32 seq, u32 n, u32 of)
{
	const struct flow f = bench_flow();

	for (u32 i = 0; i < MSS; i++)
		frame[FLOW_HEADER_BYTES + i] = (u8)(i * 7 + n);
	return flow_data_frame(&f, frame, seq + n * MSS, 1, FLOW_ACK | (n == of - 1 ? FLOW_PSH : 0),
			       MSS);
}

struct rig {
	struct respond r;
	u8 frame[FRAME], ack[FLOW_HEADER_BYTES];
	u64 now_ps;
};

static u32 give(struct rig *g, u32 seq, u32 n, u32 of)
{
	u32 len = segment(g->frame, seq, n, of);

	memset(g->ack, 0xee, sizeof(g->ack));
	return respond_frame(&g->r, g->now_ps += US, g->frame, len, g->ack);
}

/* ACK every K, and at a PSH. */
static void every(void **state)
{
	static const u32 begin[] = { 1, 0xffffff00u }; /* and around the end of the numbers */

	(void)state;
	for (u32 k = 1; k <= 4; k++)
		for (u32 b = 0; b < ARRAY_SIZE(begin); b++) {
			struct rig g = { .now_ps = 0 };

			respond_init(&g.r, PEER_EVERY, k);
			for (u32 n = 0; n < SEGMENTS; n++) {
				u32 len = give(&g, begin[b], n, SEGMENTS);

				if ((n + 1) % k && n != SEGMENTS - 1)
					assert_int_equal(len, 0);
				else
					expect_ack(g.ack, len, begin[b] + (n + 1) * MSS);
			}
			assert_int_equal(g.r.segments, SEGMENTS);
			assert_int_equal(g.r.acks, DIV_ROUND_UP(SEGMENTS, k));
			assert_int_equal(g.r.faults, 0);
			assert_int_equal(g.r.connections, 1);
		}
}

static void delayed(void **state)
{
	struct rig g = { .now_ps = 0 };

	(void)state;
	respond_init(&g.r, PEER_DELAYED, 2);
	assert_int_equal(give(&g, 1, 0, 3), 0);
	expect_ack(g.ack, give(&g, 1, 1, 3), 1 + 2 * MSS);
	assert_int_equal(give(&g, 1, 2, 3), 0); /* a PSH makes none */
	assert_int_equal(g.r.peer.deadline_ps, g.now_ps + 40 * SIM_PS_PER_MS);
	assert_int_equal(respond_timer(&g.r, g.r.peer.deadline_ps - 1, g.ack), 0);
	expect_ack(g.ack, respond_timer(&g.r, g.r.peer.deadline_ps, g.ack), 1 + 3 * MSS);
	assert_int_equal(g.r.peer.deadline_ps, ~0ull);
	assert_int_equal(respond_timer(&g.r, g.now_ps + 1000 * SIM_PS_PER_MS, g.ack), 0);
}

static void stretch_and_last(void **state)
{
	struct rig g = { .now_ps = 0 };

	(void)state;
	respond_init(&g.r, PEER_STRETCH, 8);
	for (u32 n = 0; n < 8; n++) {
		u32 len = give(&g, 1, n, 20);

		if (n < 7)
			assert_int_equal(len, 0);
		else
			expect_ack(g.ack, len, 1 + 8 * MSS);
	}
	assert_int_equal(give(&g, 1, 8, 20), 0); /* a batch ends 20 us after it began */
	expect_ack(g.ack, respond_timer(&g.r, g.now_ps + 20 * US, g.ack), 1 + 9 * MSS);

	respond_init(&g.r, PEER_LAST, 2);
	for (u32 n = 0; n < 5; n++) {
		u32 len = give(&g, 1, n, 5);

		if (n < 4)
			assert_int_equal(len, 0);
		else
			expect_ack(g.ack, len, 1 + 5 * MSS);
	}
}

/* Others' frames get no answer and count as such; spoilt ones of ours are faults. */
static void not_ours(void **state)
{
	static u8 merged[20000];
	struct rig g = { .now_ps = 0 };
	struct flow f = bench_flow();
	u32 len;

	(void)state;
	respond_init(&g.r, PEER_EVERY, 1);
	for (u32 i = 0; i < 5; i++) {
		struct flow other = f;
		u32 *const word[] = { &other.saddr, &other.daddr };

		if (i < 2)
			*word[i] ^= 0x100;
		other.sport += i == 2;
		other.dport += i == 3;
		len = flow_data_frame(&other, g.frame, 1, 1, FLOW_ACK, MSS);
		if (i == 4)
			g.frame[12] = 0x86; /* no IPv4 */
		assert_int_equal(respond_frame(&g.r, 0, g.frame, len, g.ack), 0);
	}
	for (len = 0; len < FLOW_HEADER_BYTES; len++)
		assert_int_equal(respond_frame(&g.r, 0, g.frame, len, g.ack), 0);
	assert_int_equal(g.r.foreign, 5 + FLOW_HEADER_BYTES);
	assert_int_equal(g.r.faults, 0);
	assert_false(g.r.begun);

	len = segment(g.frame, 1, 0, 9);
	g.frame[FLOW_HEADER_BYTES + 3] ^= 1;
	assert_int_equal(respond_frame(&g.r, 0, g.frame, len, g.ack), 0);
	assert_string_equal(g.r.wrong, "segment 0: TCP checksum");
	assert_int_equal(respond_frame(&g.r, 0, g.frame, len - 1, g.ack), 0); /* cut */
	assert_int_equal(g.r.faults, 2);
	assert_string_equal(g.r.wrong, "segment 0: TCP checksum"); /* the first one stays */

	respond_init(&g.r, PEER_EVERY, 1);
	len = flow_data_frame(&f, merged, 1, 1, FLOW_ACK, 12 * MSS);
	assert_int_equal(respond_frame(&g.r, 0, merged, len, g.ack), 0);
	assert_non_null(strstr(g.r.wrong, "ethtool -K"));

	respond_init(&g.r, PEER_EVERY, 1);
	len = flow_ack_frame(&f, g.frame, 1, 1);
	assert_int_equal(respond_frame(&g.r, 0, g.frame, len, g.ack), 0);
	assert_string_equal(g.r.wrong, "segment 0: no payload");
}

/* A gap is a fault; the first segment begins anew, and so does any other after a second. */
static void gaps_and_beginnings(void **state)
{
	struct rig g = { .now_ps = 0 };

	(void)state;
	respond_init(&g.r, PEER_EVERY, 1);
	expect_ack(g.ack, give(&g, 1, 0, 9), 1 + MSS);
	assert_int_equal(give(&g, 1, 2, 9), 0);
	assert_int_equal(g.r.faults, 1);
	assert_non_null(strstr(g.r.wrong, "(sequence number 2897, expected 1449)"));
	expect_ack(g.ack, give(&g, 1, 1, 9), 1 + 2 * MSS);
	expect_ack(g.ack, give(&g, 1, 0, 9), 1 + MSS);
	assert_int_equal(g.r.connections, 2);
	g.now_ps += 999 * SIM_PS_PER_MS;
	assert_int_equal(give(&g, 1, 5, 9), 0);
	assert_int_equal(g.r.faults, 2);
	g.now_ps += 1000 * SIM_PS_PER_MS;
	expect_ack(g.ack, give(&g, 1, 5, 9), 1 + 6 * MSS);
	assert_int_equal(g.r.connections, 3);
	assert_int_equal(g.r.faults, 2);
}

/*
 * --- through sockets
 * ----------------------------------------------------------------------------------------------
 */

struct run {
	struct respond r;
	int fd, ret;
	volatile int stop;
	u64 seconds;
	char err[300];
};

static void *run_thread(void *arg)
{
	struct run *run = arg;

	run->ret =
		respond_run(&run->r, run->fd, &run->stop, run->seconds, run->err, sizeof(run->err));
	return NULL;
}

/* The next frame on FD that IPv4 or a seam carries; its length, 0 if none comes. */
static u32 receive(int fd, u8 *frame, u32 room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, WAIT_MS) != 1)
		return 0;
	n = recv(fd, frame, room, 0);
	return n < 0 ? 0 : n;
}

/* A packet's segments in, its ACKs out; a seam may hold ten frames only. */
static void exchange(int fd, u32 seq, u32 k)
{
	struct rig g = { .now_ps = 0 };

	for (u32 n = 0; n < SEGMENTS; n++) {
		u32 len = segment(g.frame, seq, n, SEGMENTS);

		assert_int_equal(send(fd, g.frame, len, 0), len);
		if ((n + 1) % k == 0 || n == SEGMENTS - 1)
			expect_ack(g.ack, receive(fd, g.ack, sizeof(g.ack)), seq + (n + 1) * MSS);
	}
}

static void over_a_seam(void **state)
{
	struct run run = { .seconds = 0 };
	pthread_t thread;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), 0);
	respond_init(&run.r, PEER_EVERY, 2);
	run.fd = fd[1];
	assert_int_equal(pthread_create(&thread, NULL, run_thread, &run), 0);
	for (u32 skb = 0; skb < 3; skb++)
		exchange(fd[0], 1 + skb * SEGMENTS * MSS, 2);
	__atomic_store_n(&run.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(run.ret, 0);
	assert_int_equal(run.r.acks, 3 * 23);
	assert_int_equal(run.r.faults, 0);

	/* The delayed ACK comes by itself, and the end by the clock. */
	__atomic_store_n(&run.stop, 0, __ATOMIC_RELAXED);
	run.seconds = 1;
	respond_init(&run.r, PEER_DELAYED, 2);
	assert_int_equal(pthread_create(&thread, NULL, run_thread, &run), 0);
	{
		struct rig g = { .now_ps = 0 };
		u32 len = segment(g.frame, 1, 0, 9);

		assert_int_equal(send(fd[0], g.frame, len, 0), len);
		expect_ack(g.ack, receive(fd[0], g.ack, sizeof(g.ack)), 1 + MSS);
	}
	pthread_join(thread, NULL);
	assert_int_equal(run.ret, 0);

	/* Nobody at the other end takes the ACK. */
	close(fd[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), 0);
	close(run.fd);
	run.fd = fd[1];
	respond_init(&run.r, PEER_EVERY, 1);
	{
		struct rig g = { .now_ps = 0 };
		u32 len = segment(g.frame, 1, 0, 9);

		assert_int_equal(send(fd[0], g.frame, len, 0), len);
	}
	close(fd[0]);
	run.seconds = 60;
	run_thread(&run);
	assert_true(run.ret < 0);
	assert_non_null(strstr(run.err, "an ACK cannot be sent"));
	close(fd[1]);
}

/* GRO is on by default on some kernels. False where nobody knows the request: an emulator of user space. */
static bool set_gro(const char *ifname, bool on)
{
	struct ethtool_value gro = { .cmd = ETHTOOL_SGRO, .data = on };
	struct ifreq ifr = { .ifr_data = (void *)&gro };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (ioctl(fd, SIOCETHTOOL, &ifr)) {
		close(fd);
		return false;
	}
	close(fd);
	return true;
}

static int sender_socket(const char *ifname)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETHERTYPE_IP),
				  .sll_ifindex = (int)if_nametoindex(ifname) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* In a network of its own: two ends of a cable, the peer on one of them. */
static void on_a_cable(void **state)
{
	struct run run = { .seconds = 0 };
	char err[300] = "";
	pthread_t thread;
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_message("skipped: no network namespace for this process (%s)\n",
			      strerror(errno));
		skip();
	}
	if (system("ip link add name near type veth peer name far 2>/dev/null")) {
		print_message("skipped: no veth pair here (modprobe veth, and iproute2)\n");
		skip();
	}
	assert_int_equal(respond_open("near", err, sizeof(err)), -ENETDOWN);
	assert_string_equal(err, "near is down: ip link set near up");
	assert_int_equal(system("ip link set near up && ip link set far up"), 0);
	if (!set_gro("near", true)) {
		print_message("skipped: GRO cannot be set here (%s)\n", strerror(errno));
		skip();
	}
	assert_int_equal(respond_open("near", err, sizeof(err)), -EBUSY);
	assert_non_null(strstr(err, "ethtool -K near gro off lro off"));
	assert_true(set_gro("near", false) && set_gro("far", false));
	assert_int_equal(respond_open("nowhere", err, sizeof(err)), -ENODEV);
	assert_int_equal(respond_open("", err, sizeof(err)), -ENODEV);
	assert_int_equal(respond_open("longerthananyname", err, sizeof(err)), -ENODEV);
	assert_int_equal(respond_open("lo", err, sizeof(err)), -EINVAL);

	fd = sender_socket("far");
	run.fd = respond_open("near", err, sizeof(err));
	if (run.fd < 0)
		fail_msg("%s", err);
	respond_init(&run.r, PEER_EVERY, 2);
	assert_int_equal(pthread_create(&thread, NULL, run_thread, &run), 0);
	for (u32 race = 0; race < 2; race++)
		for (u32 skb = 0; skb < 20; skb++)
			exchange(fd, 1 + skb * SEGMENTS * MSS, 2);
	__atomic_store_n(&run.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(run.ret, 0);
	assert_int_equal(run.r.segments, 2 * 20 * SEGMENTS);
	assert_int_equal(run.r.acks, 2 * 20 * 23);
	assert_int_equal(run.r.connections, 2);
	assert_int_equal(run.r.faults, 0);

	/* The interface goes away under it. */
	__atomic_store_n(&run.stop, 0, __ATOMIC_RELAXED);
	run.seconds = 60;
	assert_int_equal(pthread_create(&thread, NULL, run_thread, &run), 0);
	assert_int_equal(system("ip link set near down"), 0);
	pthread_join(thread, NULL);
	assert_int_equal(run.ret, -ENETDOWN);
	assert_non_null(strstr(run.err, "the interface went down"));
	close(run.fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every),
		cmocka_unit_test(delayed),
		cmocka_unit_test(stretch_and_last),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(gaps_and_beginnings),
		cmocka_unit_test(over_a_seam),
		cmocka_unit_test(on_a_cable), /* the last one: in another network from then on */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
