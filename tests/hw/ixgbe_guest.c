/* SPDX-License-Identifier: MIT */
/*
 * The guest of ixgbe_guest.py: Linux's own ixgbe on two ports of the model with a cable between
 * them, one in this network namespace (a), one in another process's (b). Whatever goes from one to
 * the other goes over the cable.
 *
 * Its environment, which is the kernel's command line: bytes=N of each stream over IPv4 (a quarter
 * over IPv6).
 */
#include "tests/hw/guest.h"
#include "tests/hw/sha256.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define OTHER_BDF    "0000:00:06.0"
#define PORT	     5001
#define LINK_MS	     15000
#define ANSWER_MS    5000
#define STREAM_MS    240000
#define PINGS	     3
#define RING	     512 /* descriptors, the driver's default */
#define ICMP_REQUEST 8
#define ICMP6_ECHO   128
#define BUFFER	     65536

enum side { A, B };

static const char *const address4[] = { "10.0.0.1", "10.0.0.2" };
static const char *const address6[] = { "fd00::1", "fd00::2" };
static const char *const mac[] = { "00:1b:21:99:3c:4d", "00:1b:21:99:3c:4e" };

/* What one side is told to do; the answer is an outcome. */
struct order {
	enum { UP, PING, DATAGRAM_OUT, DATAGRAM_IN, LISTEN, STREAM_OUT, STREAM_IN, COUNTERS } what;
	bool ipv6;
	u64 bytes;
};

struct outcome {
	char wrong[200]; /* "": nothing */
	char sha[65];
	u64 bytes, retransmitted, segments;
	u32 ms;
	u64 sent[2], received[2]; /* as the driver counts, as the chip does */
};

static char ifname[2][IFNAMSIZ];
static int listener = -1; /* of the side that takes a stream */

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 3))) static bool wrong(struct outcome *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->wrong, sizeof(o->wrong), fmt, ap);
	va_end(ap);
	return false;
}

static bool read_line(const char *path, char *line, size_t len)
{
	FILE *f = fopen(path, "r");
	bool good = f && fgets(line, len, f);

	if (f)
		fclose(f);
	if (good)
		line[strcspn(line, "\n")] = 0;
	return good;
}

/*
 * --- the interface
 * ----------------------------------------------------------------------------------------------
 */

/* An ioctl of the interface of SIDE with DATA in the request. */
static int interface_ioctl(enum side side, u32 request, struct ifreq *r)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	memcpy(r->ifr_name, ifname[side], IFNAMSIZ);
	ret = ioctl(s, request, r) ? -errno : 0;
	close(s);
	return ret;
}

static int ethtool(enum side side, void *data)
{
	struct ifreq r = { .ifr_data = data };

	return interface_ioctl(side, SIOCETHTOOL, &r);
}

static int set_up(enum side side, bool up)
{
	struct ifreq r = { 0 };
	int ret = interface_ioctl(side, SIOCGIFFLAGS, &r);

	r.ifr_flags = up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP;
	return ret ? ret : interface_ioctl(side, SIOCSIFFLAGS, &r);
}

static bool await_carrier(enum side side, struct outcome *o)
{
	u64 end = now_ms() + LINK_MS;
	struct ifreq r = { 0 };

	while (!interface_ioctl(side, SIOCGIFFLAGS, &r) && !(r.ifr_flags & IFF_RUNNING)) {
		if (now_ms() > end)
			return wrong(o, "%s has no carrier after %u ms", ifname[side], LINK_MS);
		usleep(20000);
	}
	return true;
}

static bool set_addresses(enum side side, struct outcome *o)
{
	struct {
		struct in6_addr address;
		u32 bits;
		int index;
	} six = { .bits = 64 };
	struct ifreq r = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&r.ifr_addr;
	char path[80];
	int ret, s;

	/* Nobody else is there to have an address already. */
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", ifname[side]);
	ret = write_text(path, "0");
	if (ret)
		return wrong(o, "%s: %s", path, strerror(-ret));
	in->sin_family = AF_INET;
	inet_pton(AF_INET, address4[side], &in->sin_addr);
	ret = interface_ioctl(side, SIOCSIFADDR, &r);
	inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
	if (ret || (ret = interface_ioctl(side, SIOCSIFNETMASK, &r)))
		return wrong(o, "address %s: %s", address4[side], strerror(-ret));
	inet_pton(AF_INET6, address6[side], &six.address);
	six.index = if_nametoindex(ifname[side]);
	s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ret = ioctl(s, SIOCSIFADDR, &six) ? -errno : 0;
	close(s);
	return ret ? wrong(o, "address %s: %s", address6[side], strerror(-ret)) : true;
}

static void do_up(enum side side, struct outcome *o)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	struct ethtool_cmd link = { .cmd = ETHTOOL_GSET };
	int ret = set_up(side, true);

	if (ret) {
		wrong(o, "%s up: %s", ifname[side], strerror(-ret));
		return;
	}
	if (!set_addresses(side, o) || !await_carrier(side, o))
		return;
	ret = ethtool(side, &link);
	if (ret || ethtool_cmd_speed(&link) != 10000) {
		wrong(o, "speed %u %s", ethtool_cmd_speed(&link), ret ? strerror(-ret) : "");
		return;
	}
	ret = ethtool(side, &ring);
	if (ret || ring.rx_pending != RING || ring.tx_pending != RING)
		wrong(o, "rings of %u and %u descriptors %s", ring.rx_pending, ring.tx_pending,
		      ret ? strerror(-ret) : "");
}

/*
 * --- packets
 * ----------------------------------------------------------------------------------------------
 */

static socklen_t address(bool ipv6, enum side side, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ipv6) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(PORT);
		inet_pton(AF_INET6, address6[side], &six->sin6_addr);
		return sizeof(*six);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(PORT);
	inet_pton(AF_INET, address4[side], &in->sin_addr);
	return sizeof(*in);
}

static u32 sum16(const u8 *p, u32 len)
{
	u32 sum = 0;

	for (u32 i = 0; i < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static bool readable(int fd, u32 ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

/* Echo requests of several sizes to the other side; each must come back. */
static void do_ping(enum side side, bool ipv6, struct outcome *o)
{
	int s = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC,
		       ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	static const u32 sizes[PINGS] = { 8, 64, 1400 };
	struct sockaddr_storage to;
	socklen_t len = address(ipv6, !side, &to);

	if (ipv6)
		((struct sockaddr_in6 *)&to)->sin6_port = 0;
	for (u32 i = 0; i < PINGS && !o->wrong[0]; i++) {
		u8 ask[1400] = { ipv6 ? ICMP6_ECHO : ICMP_REQUEST, 0, 0, 0, 0x12, 0x34, 0, i };
		u64 end = now_ms() + ANSWER_MS;
		bool answered = false;

		for (u32 n = 8; n < sizes[i]; n++)
			ask[n] = n * 13;
		if (!ipv6) {
			u32 sum = sum16(ask, sizes[i]);

			ask[2] = sum >> 8;
			ask[3] = sum;
		}
		if (sendto(s, ask, sizes[i], 0, (struct sockaddr *)&to, len) != sizes[i]) {
			wrong(o, "ping: %s", strerror(errno));
			break;
		}
		while (!answered && now_ms() < end && readable(s, end - now_ms())) {
			u8 got[1500];
			ssize_t n = recv(s, got, sizeof(got), 0);
			const u8 *icmp = got + (ipv6 ? 0 : 20);

			n -= ipv6 ? 0 : 20;
			answered = n == (ssize_t)sizes[i] &&
				   icmp[0] == (ipv6 ? ICMP6_ECHO + 1 : 0) &&
				   !memcmp(icmp + 4, ask + 4, sizes[i] - 4);
		}
		if (!answered)
			wrong(o, "no answer to an echo request of %u bytes", sizes[i]);
	}
	close(s);
}

/* A datagram: its checksum is the chip's, too. */
static void do_datagram(enum side side, bool ipv6, bool out, struct outcome *o)
{
	int s = out ? socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : listener;
	struct sockaddr_storage to;
	socklen_t len = address(ipv6, !side, &to);
	u8 data[1000], got[1001];

	for (u32 i = 0; i < sizeof(data); i++)
		data[i] = i * 31;
	if (out) {
		if (sendto(s, data, sizeof(data), 0, (struct sockaddr *)&to, len) != sizeof(data))
			wrong(o, "datagram: %s", strerror(errno));
	} else if (!readable(s, ANSWER_MS)) {
		wrong(o, "no datagram");
	} else if (recv(s, got, sizeof(got), 0) != sizeof(data) ||
		   memcmp(got, data, sizeof(data))) {
		wrong(o, "another datagram");
	}
	close(s);
}

/* A socket that takes a stream (BYTES) or a datagram (0). */
static void do_listen(enum side side, bool ipv6, u64 bytes, struct outcome *o)
{
	struct sockaddr_storage at;
	socklen_t len = address(ipv6, side, &at);
	int one = 1;

	listener = socket(ipv6 ? AF_INET6 : AF_INET,
			  (bytes ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, len) || (bytes && listen(listener, 1)))
		wrong(o, "listen: %s", strerror(errno));
}

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static bool send_all_of(int s, const u8 *data, size_t len)
{
	while (len) {
		ssize_t n = send(s, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static void do_stream_out(enum side side, bool ipv6, u64 bytes, struct outcome *o)
{
	int s = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	u64 random = 0x9e3779b97f4a7c15u + side + 2 * ipv6, begin = now_ms();
	struct sockaddr_storage to;
	socklen_t len = address(ipv6, !side, &to);
	struct tcp_info info = { 0 };
	static u64 data[BUFFER / 8];
	struct sha256 sha;
	u8 end;

	sha256_init(&sha);
	if (connect(s, (struct sockaddr *)&to, len)) {
		wrong(o, "connect: %s", strerror(errno));
		close(s);
		return;
	}
	while (o->bytes < bytes) {
		size_t part = min((u64)BUFFER, bytes - o->bytes);

		for (u32 i = 0; i < BUFFER / 8; i++)
			data[i] = next_random(&random);
		sha256_add(&sha, data, part);
		if (!send_all_of(s, (u8 *)data, part)) {
			wrong(o, "send after %llu bytes: %s", (unsigned long long)o->bytes,
			      strerror(errno));
			break;
		}
		o->bytes += part;
	}
	shutdown(s, SHUT_WR);
	/* The other side closes when it has all: what was sent is acknowledged then. */
	if (!readable(s, STREAM_MS) || recv(s, &end, 1, 0))
		wrong(o, "the other side does not close");
	o->ms = now_ms() - begin;
	len = sizeof(info);
	getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &len);
	o->retransmitted = info.tcpi_total_retrans;
	o->segments = info.tcpi_segs_out;
	sha256_end(&sha, o->sha);
	close(s);
}

static void do_stream_in(struct outcome *o)
{
	static u8 data[BUFFER];
	struct sha256 sha;
	ssize_t n = -1;
	int s;

	sha256_init(&sha);
	s = readable(listener, ANSWER_MS) ? accept(listener, NULL, NULL) : -1;
	close(listener);
	if (s < 0) {
		wrong(o, "nobody connects");
		return;
	}
	while (readable(s, STREAM_MS) && (n = recv(s, data, sizeof(data), 0)) > 0) {
		sha256_add(&sha, data, n);
		o->bytes += n;
	}
	if (n)
		wrong(o, "the stream ends after %llu bytes: %s", (unsigned long long)o->bytes,
		      n < 0 ? strerror(errno) : "nothing more comes");
	sha256_end(&sha, o->sha);
	close(s);
}

/* What the driver counted, and what the chip did: the counters of ethtool -S. */
static void do_counters(enum side side, struct outcome *o)
{
	static const char *const names[] = { "tx_packets", "tx_pkts_nic", "rx_packets",
					     "rx_pkts_nic" };
	u64 *const to[] = { &o->sent[0], &o->sent[1], &o->received[0], &o->received[1] };
	struct {
		struct ethtool_sset_info head;
		u32 count;
	} sset = { .head = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_STATS } };
	struct ethtool_gstrings *strings;
	struct ethtool_stats *stats;
	u32 found = 0;

	if (ethtool(side, &sset) || !sset.count) {
		wrong(o, "no statistics: %s", strerror(errno));
		return;
	}
	strings = calloc(1, sizeof(*strings) + sset.count * ETH_GSTRING_LEN);
	stats = calloc(1, sizeof(*stats) + sset.count * sizeof(u64));
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_STATS;
	strings->len = sset.count;
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = sset.count;
	/* A frame may be on its way: the chip has counted it, and the driver has not yet. */
	for (u32 i = 0; i < 20; i++) {
		if (ethtool(side, strings) || ethtool(side, stats)) {
			wrong(o, "statistics: %s", strerror(errno));
			break;
		}
		found = 0;
		for (u32 n = 0; n < sset.count; n++)
			for (u32 k = 0; k < ARRAY_SIZE(names); k++)
				if (!strcmp((char *)strings->data + n * ETH_GSTRING_LEN,
					    names[k])) {
					*to[k] = stats->data[n];
					found++;
				}
		if (o->sent[0] == o->sent[1] && o->received[0] == o->received[1])
			break;
		usleep(100000);
	}
	if (found != ARRAY_SIZE(names))
		wrong(o, "%u of %zu statistics", found, ARRAY_SIZE(names));
	else if (o->sent[0] != o->sent[1] || o->received[0] != o->received[1])
		wrong(o, "sent %llu, the chip %llu; received %llu, the chip %llu",
		      (unsigned long long)o->sent[0], (unsigned long long)o->sent[1],
		      (unsigned long long)o->received[0], (unsigned long long)o->received[1]);
	free(strings);
	free(stats);
}

static struct outcome carry_out(enum side side, const struct order *order)
{
	struct outcome o = { 0 };

	switch (order->what) {
	case UP:
		do_up(side, &o);
		break;
	case PING:
		do_ping(side, order->ipv6, &o);
		break;
	case DATAGRAM_OUT:
	case DATAGRAM_IN:
		do_datagram(side, order->ipv6, order->what == DATAGRAM_OUT, &o);
		break;
	case LISTEN:
		do_listen(side, order->ipv6, order->bytes, &o);
		break;
	case STREAM_OUT:
		do_stream_out(side, order->ipv6, order->bytes, &o);
		break;
	case STREAM_IN:
		do_stream_in(&o);
		break;
	case COUNTERS:
		do_counters(side, &o);
		break;
	}
	return o;
}

/*
 * --- the other namespace
 * ----------------------------------------------------------------------------------------------
 */

static int other = -1; /* orders to side B, and its outcomes */

static void be_other(int fd)
{
	struct order order;

	if (unshare(CLONE_NEWNET) || write(fd, "u", 1) != 1)
		_exit(1);
	while (read(fd, &order, sizeof(order)) == sizeof(order)) {
		struct outcome o = carry_out(B, &order);

		if (write(fd, &o, sizeof(o)) != sizeof(o))
			break;
	}
	_exit(0);
}

/* The interface of B into the namespace of process PID. */
static int move_interface(pid_t pid)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		struct rtattr attr;
		u32 pid;
	} req = { .head = { .nlmsg_len = sizeof(req),
			    .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		  .info = { .ifi_index = if_nametoindex(ifname[B]) },
		  .attr = { RTA_LENGTH(sizeof(u32)), IFLA_NET_NS_PID },
		  .pid = pid };
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer = { 0 };
	int ret = 0;

	if (send(s, &req, sizeof(req), 0) != sizeof(req) || recv(s, &answer, sizeof(answer), 0) < 0)
		ret = -errno;
	close(s);
	return ret ? ret : answer.error.error;
}

static pid_t start_other(void)
{
	int pair[2], ret;
	pid_t pid;
	char up;

	if (!check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "pair", "%s", strerror(errno)))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		be_other(pair[1]);
	}
	close(pair[1]);
	other = pair[0];
	if (!check(pid > 0 && read(other, &up, 1) == 1, "namespace", "%s", strerror(errno)))
		return -1;
	ret = move_interface(pid);
	return check(!ret, "moved", "%s", strerror(-ret)) ? pid : -1;
}

static struct outcome ask_other(void)
{
	struct outcome o = { 0 };

	if (read(other, &o, sizeof(o)) != sizeof(o))
		wrong(&o, "the other side is gone");
	return o;
}

static void tell_other(const struct order *order)
{
	if (write(other, order, sizeof(*order)) != sizeof(*order))
		printf("note: the other side is gone\n");
}

/* ORDER to SIDE, and its outcome, which is checked under NAME. */
static struct outcome ordered(enum side side, struct order order, const char *name)
{
	struct outcome o;
	char full[80];

	if (side == B) {
		tell_other(&order);
		o = ask_other();
	} else {
		o = carry_out(A, &order);
	}
	snprintf(full, sizeof(full), "%s_%s%s", name, side == A ? "a" : "b",
		 order.ipv6 ? "_ipv6" : "");
	check(!o.wrong[0], full, "%s", o.wrong);
	return o;
}

/*
 * --- the test
 * ----------------------------------------------------------------------------------------------
 */

static bool probed(const char *bdf, enum side side)
{
	char path[120], target[200], line[80] = "";
	struct dirent *e;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", bdf);
	n = readlink(path, target, sizeof(target) - 1);
	target[max(n, (ssize_t)0)] = 0;
	if (!check(n > 6 && !strcmp(target + n - 6, "/ixgbe"), "probe", "%s: driver '%s'", bdf,
		   target))
		return false;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/net", bdf);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			snprintf(ifname[side], IFNAMSIZ, "%.15s", e->d_name);
	if (d)
		closedir(d);
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", ifname[side]);
	return check(ifname[side][0] && read_line(path, line, sizeof(line)) &&
			     !strcmp(line, mac[side]),
		     "mac", "%s: '%s'", ifname[side], line);
}

static void datagram(enum side from, bool ipv6)
{
	ordered(!from, (struct order){ LISTEN, ipv6, 0 }, "bind");
	ordered(from, (struct order){ DATAGRAM_OUT, ipv6, 0 }, "datagram_from");
	ordered(!from, (struct order){ DATAGRAM_IN, ipv6, 0 }, "datagram_to");
}

/* BYTES from one side to the other, both at work at the same time. */
static void stream(enum side from, bool ipv6, u64 bytes)
{
	const struct order in = { STREAM_IN, ipv6, bytes }, out = { STREAM_OUT, ipv6, bytes };
	struct outcome mine, its;

	ordered(!from, (struct order){ LISTEN, ipv6, bytes }, "listen");
	tell_other(from == A ? &in : &out);
	mine = carry_out(A, from == A ? &out : &in);
	its = ask_other();
	check(!mine.wrong[0], "stream_a", "%s", mine.wrong);
	check(!its.wrong[0], "stream_b", "%s", its.wrong);
	check(mine.bytes == bytes && its.bytes == bytes && !strcmp(mine.sha, its.sha), "same",
	      "%llu bytes of %s, %llu of %s", (unsigned long long)mine.bytes, mine.sha,
	      (unsigned long long)its.bytes, its.sha);
	if (from == B)
		mine = its;
	printf("stream %s IPv%u bytes %llu ms %u segments %llu retransmitted %llu sha256 %s\n",
	       from == A ? "a-b" : "b-a", ipv6 ? 6 : 4, (unsigned long long)mine.bytes, mine.ms,
	       (unsigned long long)mine.segments, (unsigned long long)mine.retransmitted, mine.sha);
}

/* How often the vector NAME has interrupted, by /proc/interrupts; the lines of MSI-X alone. */
static u64 interrupts(const char *name)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[300];
	u64 count = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *word = strrchr(line, ' '), *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = 0;
		if (word && colon && strstr(line, "MSI") && !strcmp(word + 1, name))
			count += strtoull(colon + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return count;
}

static void check_interrupts(void)
{
	for (enum side s = A; s <= B; s++) {
		char name[40];

		snprintf(name, sizeof(name), "%s-TxRx-0", ifname[s]);
		check(interrupts(name) > 0, "interrupts", "none of %s", name);
		printf("note: %llu interrupts of %s, %llu of its other causes\n",
		       (unsigned long long)interrupts(name), name,
		       (unsigned long long)interrupts(ifname[s]));
	}
}

/* The kernel's own words: those of the driver, and nothing that it should not say. */
static void check_log(void)
{
	static const char *const bad[] = { "BUG:", "WARNING:",	"Oops",		 "Call Trace",
					   "Hang", "timed out", "Reset adapter", "failed" };
	static char text[1 << 18];
	int n = klogctl(3, text, sizeof(text) - 1);
	char said[200] = "";

	text[max(n, 0)] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strstr(line, "ixgbe") && !strstr(line, "NETDEV") && !strstr(line, "BUG:"))
			continue;
		printf("kernel %s\n", line);
		for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
			if (strstr(line, bad[i]))
				snprintf(said, sizeof(said), "%s", line);
	}
	check(!said[0], "log", "%s", said);
}

static void unbind(const char *bdf)
{
	int ret = write_text("/sys/bus/pci/drivers/ixgbe/unbind", bdf);
	char path[120], target[200];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", bdf);
	check(!ret && readlink(path, target, sizeof(target)) < 0, "unbind", "%s: %s", bdf,
	      strerror(-ret));
}

/* Down and up again: the driver resets the device in between. */
static void again(void)
{
	int ret = set_up(A, false);

	check(!ret, "down", "%s", strerror(-ret));
	ordered(A, (struct order){ UP, false, 0 }, "again");
	ordered(A, (struct order){ PING, false, 0 }, "ping_again");
}

void guest_test(const char *bdf)
{
	const char *text = getenv("bytes");
	u64 bytes = text ? strtoull(text, NULL, 10) : 1 << 20;
	pid_t pid;

	if (!probed(bdf, A) || !probed(OTHER_BDF, B)) {
		check_log();
		return;
	}
	pid = start_other();
	if (pid < 0)
		return;
	ordered(A, (struct order){ UP, false, 0 }, "up");
	ordered(B, (struct order){ UP, false, 0 }, "up");
	for (u32 six = 0; six < 2; six++) {
		ordered(A, (struct order){ PING, six, 0 }, "ping");
		ordered(B, (struct order){ PING, six, 0 }, "ping");
		datagram(A, six);
		datagram(B, six);
	}
	check_interrupts();
	for (u32 six = 0; six < 2 && !failed; six++) {
		stream(A, six, six ? bytes / 4 : bytes);
		stream(B, six, six ? bytes / 4 : bytes);
	}
	check_interrupts();
	ordered(A, (struct order){ COUNTERS, false, 0 }, "counters");
	ordered(B, (struct order){ COUNTERS, false, 0 }, "counters");
	again();
	unbind(bdf);
	unbind(OTHER_BDF);
	close(other);
	waitpid(pid, NULL, 0);
	check_log();
}
