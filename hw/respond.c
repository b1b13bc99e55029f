/* SPDX-License-Identifier: MIT */
#include "hw/respond.h"
#include "sim/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_PS    (1000 * SIM_PS_PER_MS)
#define LOOK_PS	      (100 * SIM_PS_PER_MS) /* between two looks at *stop */
#define FRAME_BYTES   65536 /* of what a mistaken setting may merge into one */
#define LARGEST_FRAME 9018 /* without FCS; what is longer was merged */
#define RECEIVE_BYTES (8 << 20) /* bursts of many packets of 64 KB */
#define BURST	      64 /* frames between two looks at the clock's other uses */

void respond_init(struct respond *r, enum peer_policy policy, u32 k)
{
	memset(r, 0, sizeof(*r));
	r->policy = policy;
	r->k = k;
	peer_init(&r->peer, policy, k, 0);
}

__attribute__((format(printf, 2, 3))) static void complain(struct respond *r, const char *fmt, ...)
{
	va_list ap;

	if (r->faults++)
		return;
	va_start(ap, fmt);
	vsnprintf(r->wrong, sizeof(r->wrong), fmt, ap);
	va_end(ap);
}

static u32 make_ack(struct respond *r, u8 *ack)
{
	const struct flow back = flow_reverse(&r->from);

	r->acks++;
	return flow_ack_frame(&back, ack, 1, r->peer.rcv_nxt);
}

/* Of the bench's connection, whoever sends it: the race's port has a station address of its own. */
static bool is_ours(const u8 *frame, u32 len, struct flow *flow, u32 *seq)
{
	struct flow ours;

	if (!flow_learn(frame, len, flow, seq))
		return false;
	flow_init(&ours, flow->src_mac, flow->dst_mac);
	return flow->saddr == ours.saddr && flow->daddr == ours.daddr &&
	       flow->sport == ours.sport && flow->dport == ours.dport;
}

u32 respond_frame(struct respond *r, u64 now_ps, const u8 *frame, u32 len, u8 *ack)
{
	struct flow_segment s;
	struct flow flow;
	const char *wrong;
	u32 seq;

	if (!is_ours(frame, len, &flow, &seq)) {
		r->foreign++;
		return 0;
	}
	if (len > LARGEST_FRAME) {
		complain(r,
			 "a frame of %u bytes: something merges segments before we see them: "
			 "ethtool -K INTERFACE gro off lro off",
			 len);
		return 0;
	}
	wrong = flow_parse(&flow, frame, len, &s);
	if (!wrong && !s.payload)
		wrong = "no payload";
	if (wrong) {
		complain(r, "segment %llu: %s", (unsigned long long)r->segments, wrong);
		return 0;
	}
	if (!r->begun || s.seq == r->first_seq ||
	    (s.seq != r->peer.rcv_nxt && now_ps - r->seen_ps >= SILENCE_PS)) {
		peer_init(&r->peer, r->policy, r->k, s.seq);
		r->first_seq = s.seq;
		r->begun = true;
		r->connections++;
	}
	r->seen_ps = now_ps;
	if (s.seq != r->peer.rcv_nxt) {
		complain(r, "segment %llu: lost, or out of order (sequence number %u, expected %u)",
			 (unsigned long long)r->segments, s.seq, r->peer.rcv_nxt);
		return 0;
	}
	r->from = flow;
	r->segments++;
	return peer_segment(&r->peer, now_ps, s.seq + s.payload, s.flags & FLOW_PSH)
		       ? make_ack(r, ack)
		       : 0;
}

u32 respond_timer(struct respond *r, u64 now_ps, u8 *ack)
{
	return peer_timer(&r->peer, now_ps) ? make_ack(r, ack) : 0;
}

/*
 * --- the socket
 * ----------------------------------------------------------------------------------------------
 */

/* True if the interface puts segments together; false also where it cannot be asked. */
static bool merges(int fd, struct ifreq *ifr)
{
	struct ethtool_value gro = { .cmd = ETHTOOL_GGRO }, flags = { .cmd = ETHTOOL_GFLAGS };
	bool on;

	ifr->ifr_data = (void *)&gro;
	on = !ioctl(fd, SIOCETHTOOL, ifr) && gro.data;
	ifr->ifr_data = (void *)&flags;
	return on || (!ioctl(fd, SIOCETHTOOL, ifr) && flags.data & ETH_FLAG_LRO);
}

/* What can be asked without any right. */
static int check_interface(int fd, const char *ifname, int *index, char *err, size_t errlen)
{
	struct ifreq ifr = { 0 };

	if (!*ifname || strlen(ifname) >= sizeof(ifr.ifr_name)) {
		snprintf(err, errlen, "%.60s: no such interface (ip link)", ifname);
		return -ENODEV;
	}
	memcpy(ifr.ifr_name, ifname, strlen(ifname));
	if (ioctl(fd, SIOCGIFINDEX, &ifr)) {
		snprintf(err, errlen, "%s: no such interface (ip link)", ifname);
		return -ENODEV;
	}
	*index = ifr.ifr_ifindex;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) || ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		snprintf(err, errlen, "%s: no Ethernet interface", ifname);
		return -EINVAL;
	}
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) || !(ifr.ifr_flags & IFF_UP)) {
		snprintf(err, errlen, "%s is down: ip link set %s up", ifname, ifname);
		return -ENETDOWN;
	}
	if (merges(fd, &ifr)) {
		snprintf(err, errlen,
			 "%s merges segments before they can be seen: ethtool -K %s gro off lro "
			 "off",
			 ifname, ifname);
		return -EBUSY;
	}
	return 0;
}

static int attach(int fd, int index, const char *ifname, char *err, size_t errlen)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETHERTYPE_IP),
					.sll_ifindex = index };
	const struct packet_mreq promiscuous = { .mr_ifindex = index,
						 .mr_type = PACKET_MR_PROMISC };
	const int room = RECEIVE_BYTES;

	/* Beyond the system's limit as root, up to it else; what is lost is told afterwards. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous))) {
		int ret = -errno;

		snprintf(err, errlen, "%s: %s", ifname, strerror(-ret));
		return ret;
	}
	return 0;
}

int respond_open(const char *ifname, char *err, size_t errlen)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), index = 0, ret;

	if (fd < 0) {
		ret = -errno;
		snprintf(err, errlen, "no socket to ask for interfaces: %s", strerror(-ret));
		return ret;
	}
	ret = check_interface(fd, ifname, &index, err, errlen);
	close(fd);
	if (ret)
		return ret;
	/* Of no protocol, so that nothing of another interface comes in before bind(). */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		ret = -errno;
		snprintf(err, errlen, "%s: a packet socket: %s%s", ifname, strerror(-ret),
			 ret == -EPERM ? ": run as root, or with CAP_NET_RAW" : "");
		return ret;
	}
	ret = attach(fd, index, ifname, err, errlen);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static u64 clock_ps(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec) * SIM_PS_PER_NS;
}

static int socket_failed(int ret, const char *what, char *err, size_t errlen)
{
	snprintf(err, errlen, "%s: %s%s", what, strerror(-ret),
		 ret == -ENETDOWN ? ": the interface went down" : "");
	return ret;
}

static int send_ack(int fd, const u8 *ack, u32 len, char *err, size_t errlen)
{
	if (!len || send(fd, ack, len, MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return socket_failed(-errno, "an ACK cannot be sent", err, errlen);
}

/* Frames that are there, BURST at most. */
static int answer_some(struct respond *r, int fd, char *err, size_t errlen)
{
	static u8 frame[FRAME_BYTES];
	u8 ack[FLOW_HEADER_BYTES];

	for (u32 i = 0; i < BURST; i++) {
		ssize_t n = recv(fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_TRUNC);
		int ret;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return socket_failed(-errno, "nothing can be received", err, errlen);
		ret = send_ack(
			fd, ack,
			respond_frame(r, clock_ps(), frame, min((size_t)n, sizeof(frame)), ack),
			err, errlen);
		if (ret)
			return ret;
	}
	return 0;
}

/* Frames that came in and found no room. */
static int tell_lost(int fd, char *err, size_t errlen)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) || !stats.tp_drops)
		return 0; /* a socket of another kind loses nothing */
	snprintf(err, errlen,
		 "%u frames found no room in the socket: sysctl net.core.rmem_max=%u, or run as "
		 "root",
		 stats.tp_drops, RECEIVE_BYTES);
	return -ENOBUFS;
}

int respond_run(struct respond *r, int fd, const volatile int *stop, u64 seconds, char *err,
		size_t errlen)
{
	const u64 end = seconds ? clock_ps() + seconds * 1000 * SIM_PS_PER_MS : ~0ull;
	int ret = 0;

	while (!ret && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		u64 now = clock_ps(), until = min(r->peer.deadline_ps, end);
		struct timespec wait;
		u8 ack[FLOW_HEADER_BYTES];

		if (now >= end)
			break;
		until = until > now ? min(until - now, (u64)LOOK_PS) : 0;
		wait = (struct timespec){ .tv_nsec = (long)(until / SIM_PS_PER_NS) };
		if (ppoll(&p, 1, &wait, NULL) < 0 && errno != EINTR)
			return socket_failed(-errno, "waiting for frames", err, errlen);
		ret = answer_some(r, fd, err, errlen);
		if (!ret)
			ret = send_ack(fd, ack, respond_timer(r, clock_ps(), ack), err, errlen);
	}
	return ret ? ret : tell_lost(fd, err, errlen);
}
