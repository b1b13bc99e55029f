// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The only process of the guest: loads the modules that /modules names, then carries requests from
 * the virtio-serial port "oracle" to /proc/skb_oracle and answers back, until the port closes. An
 * empty request unloads the module, and loads it again.
 */
#include "budget.h"
#include "oracle_veth.h"
#include "prog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT "/dev/vport0p1"

static char buffer[8u << 20];

static void off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

__attribute__((noreturn)) static void fail(const char *what)
{
	printf("oracle guest: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	off();
	__builtin_unreachable();
}

static void load(const char *name)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		fail(name);
	close(fd);
}

static void read_all(int fd, void *to, size_t n)
{
	while (n) {
		ssize_t got = read(fd, to, n);

		if (got < 0)
			fail("the port cannot be read");
		if (!got)
			off();
		to = (char *)to + got;
		n -= got;
	}
}

static void write_all(int fd, const void *from, size_t n)
{
	while (n) {
		ssize_t put = write(fd, from, n);

		if (put <= 0)
			fail("the port cannot be written");
		from = (const char *)from + put;
		n -= put;
	}
}

static int open_port(void)
{
	for (int i = 0; i < 200; i++) {
		int fd = open(PORT, O_RDWR);

		if (fd >= 0)
			return fd;
		usleep(50000);
	}
	fail(PORT);
}

/* A budget over veth: what only a process can do for it. */
static bool needs_veth(const char *request, size_t len)
{
	struct oracle_request head;
	struct oracle_op op;

	if (len != sizeof(head) + sizeof(op))
		return false;
	memcpy(&head, request, sizeof(head));
	memcpy(&op, request + sizeof(head), sizeof(op));
	return head.flags & ORACLE_BUDGET && op.n[0] & BUDGET_VETH;
}

/* What came of unloading the oracle's module, which is the last of /modules, as words. */
static size_t unload(const char *name)
{
	if (syscall(SYS_delete_module, "skb_oracle", 0))
		return snprintf(buffer, sizeof(buffer), "unload: %s", strerror(errno));
	if (!access("/proc/skb_oracle", F_OK))
		return snprintf(buffer, sizeof(buffer), "unload: /proc/skb_oracle is still there");
	load(name);
	return snprintf(buffer, sizeof(buffer), "unloaded");
}

int main(void)
{
	char name[64];
	FILE *list;
	int port, proc;
	uint32_t len;

	mkdir("/proc", 0755);
	mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, "") || mount("dev", "/dev", "devtmpfs", 0, ""))
		fail("mount");
	freopen("/dev/console", "w", stdout);
	list = fopen("/modules", "r");
	if (!list)
		fail("/modules");
	while (fscanf(list, "%63s", name) == 1)
		load(name);
	port = open_port();
	proc = open("/proc/skb_oracle", O_RDWR);
	if (proc < 0)
		fail("/proc/skb_oracle");
	write_all(port, "up\n", 3);
	for (;;) {
		ssize_t got;
		uint32_t n;

		read_all(port, &len, sizeof(len));
		if (len > sizeof(buffer))
			fail("a request that is too long");
		read_all(port, buffer, len);
		if (!len) {
			close(proc);
			n = unload(name);
			proc = open("/proc/skb_oracle", O_RDWR);
			write_all(port, &n, sizeof(n));
			write_all(port, buffer, n);
			continue;
		}
		if (needs_veth(buffer, len) && oracle_veth_up())
			fail("veth");
		if (write(proc, buffer, len) != (ssize_t)len)
			fail("the request was refused");
		got = pread(proc, buffer, sizeof(buffer), 0);
		if (got < 0)
			fail("no answer");
		n = got;
		write_all(port, &n, sizeof(n));
		write_all(port, buffer, n);
	}
}
