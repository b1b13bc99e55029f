// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A veth pair for the guest: veth0 here with 10.9.0.1, veth1 with 10.9.0.2 in a network namespace of
 * its own, which a child process keeps. With both ends in one namespace packets would take the
 * loopback instead.
 */
#define _GNU_SOURCE
#include "oracle_veth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
	struct nlmsghdr head;
	struct ifinfomsg info;
	char attributes[256];
};

static struct rtattr *append(struct message *m, int type, const void *data, unsigned short len)
{
	struct rtattr *attr = (struct rtattr *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(len);
	if (data)
		memcpy(RTA_DATA(attr), data, len);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + RTA_ALIGN(attr->rta_len);
	return attr;
}

/* What was appended behind ATTR is part of it. */
static void nest_end(struct message *m, struct rtattr *attr)
{
	attr->rta_len = (char *)m + m->head.nlmsg_len - (char *)attr;
}

/* 0, or -1 with errno. */
static int create_pair(int pid)
{
	struct message m = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(m.info)),
				       .nlmsg_type = RTM_NEWLINK,
				       .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL |
						      NLM_F_ACK } };
	struct ifinfomsg peer = { 0 };
	struct rtattr *link, *data, *other;
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char room[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	append(&m, IFLA_IFNAME, "veth0", 6);
	link = append(&m, IFLA_LINKINFO, NULL, 0);
	append(&m, IFLA_INFO_KIND, "veth", 5);
	data = append(&m, IFLA_INFO_DATA, NULL, 0);
	other = append(&m, VETH_INFO_PEER, &peer, sizeof(peer));
	append(&m, IFLA_IFNAME, "veth1", 6);
	append(&m, IFLA_NET_NS_PID, &pid, sizeof(pid));
	nest_end(&m, other);
	nest_end(&m, data);
	nest_end(&m, link);
	if (fd < 0 || send(fd, &m, m.head.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)NLMSG_LENGTH(sizeof(answer.err)))
		return -1;
	close(fd);
	errno = -answer.err.error;
	return answer.err.error ? -1 : 0;
}

static int configure(const char *name, const char *address)
{
	struct ifreq request = { 0 };
	struct sockaddr_in *addr = (struct sockaddr_in *)&request.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err;

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = inet_addr(address);
	err = ioctl(fd, SIOCSIFADDR, &request);
	addr->sin_addr.s_addr = inet_addr("255.255.255.0");
	if (!err)
		err = ioctl(fd, SIOCSIFNETMASK, &request);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (!err)
		err = ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
	return err;
}

/* The child: a namespace, its half of the pair when that is there. Reports to UP, waits for GO. */
static void keep_namespace(int up, int go)
{
	char byte = 1;

	if (unshare(CLONE_NEWNET))
		byte = 0;
	if (write(up, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(1);
	byte = !configure("veth1", "10.9.0.2");
	if (write(up, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int oracle_veth_up(void)
{
	static bool is_up;
	int up[2], go[2], pid;
	char byte = 0;

	if (is_up)
		return 0;
	if (pipe(up) || pipe(go))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid)
		keep_namespace(up[1], go[0]);
	errno = EIO;
	if (read(up[0], &byte, 1) != 1 || !byte || create_pair(pid) ||
	    configure("veth0", "10.9.0.1") || write(go[1], &byte, 1) != 1 ||
	    read(up[0], &byte, 1) != 1 || !byte)
		return -1;
	is_up = true;
	return 0;
}
