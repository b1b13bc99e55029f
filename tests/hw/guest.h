/* SPDX-License-Identifier: MIT */
/* The only program of a guest: what it says, its modules, and its end. For one source file. */
#ifndef TESTS_HW_GUEST_H
#define TESTS_HW_GUEST_H

#include "hw/vfio/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the guest is for: BDF is the network card. */
void guest_test(const char *bdf);

static u32 failed;

/* What libskb would give to these few sources. */
const int skb_build_plain = 1;

__attribute__((format(printf, 3, 4))) static bool check(bool good, const char *name,
							const char *fmt, ...)
{
	va_list ap;

	printf("%s %s", good ? "ok" : "FAILED", name);
	if (!good) {
		printf(": ");
		va_start(ap, fmt);
		vprintf(fmt, ap);
		va_end(ap);
		failed++;
	}
	printf("\n");
	return good;
}

static void load_modules(void)
{
	FILE *list = fopen("/modules", "r");
	char path[128];

	while (list && fgets(path, sizeof(path), list)) {
		int fd;

		path[strcspn(path, "\n")] = 0;
		fd = open(path, O_RDONLY);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			printf("note: %s: %s\n", path, strerror(errno));
		close(fd);
	}
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Gives BDF to vfio-pci. */
static inline bool guest_bind(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	struct sysfs_port port;
	char path[160], err[300] = "";

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", bdf);
	return check(!write_text(path, "vfio-pci"), "override", "%s", strerror(errno)) &&
	       check(!write_text("/sys/bus/pci/drivers_probe", bdf), "probe", "%s",
		     strerror(errno)) &&
	       check(!sysfs_read_port(&env, bdf, &port, err, sizeof(err)) &&
			     !strcmp(port.driver, "vfio-pci"),
		     "bound", "driver '%s' %s", port.driver, err);
}

int main(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	load_modules();
	guest_test("0000:00:05.0");
	printf("end %u failed\n", failed);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}

#endif
