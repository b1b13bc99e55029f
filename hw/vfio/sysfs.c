/* SPDX-License-Identifier: MIT */
#include "hw/vfio/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES   512
#define DEVICES	     "/sys/bus/pci/devices"
#define STATE_DIR    "/run/skbench-hw"
#define MAX_DEPTH    8 /* interfaces on interfaces */
#define BRIDGE_CLASS 0x0604

#define NO_IOMMU                                                                                 \
	"no IOMMU group: switch VT-d or AMD-Vi on in the firmware and boot with intel_iommu=on " \
	"(in QEMU: -device intel-iommu,intremap=on)"

__attribute__((format(printf, 4, 5))) static int refuse(int ret, char *err, size_t errlen,
							const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return ret;
}

__attribute__((format(printf, 3, 4))) static const char *path_of(const struct sysfs_env *env,
								 char *path, const char *fmt, ...)
{
	int n = snprintf(path, PATH_BYTES, "%s", env->root);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, PATH_BYTES - n, fmt, ap);
	va_end(ap);
	return path;
}

static int write_file(void *ctx, const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	(void)ctx;
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

struct sysfs_env sysfs_this_machine(void)
{
	return (struct sysfs_env){ .root = "",
				   .write = write_file,
				   .ssh = getenv("SSH_CONNECTION") };
}

/* The first line of a file, without its end; false if it cannot be read. */
static bool read_line(const char *path, char *text, size_t len)
{
	FILE *f = fopen(path, "re");
	bool read;

	text[0] = 0;
	if (!f)
		return false;
	read = fgets(text, len, f);
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return read;
}

static bool read_number(const char *path, int base, long *out)
{
	char text[32], *end;

	if (!read_line(path, text, sizeof(text)))
		return false;
	*out = strtol(text, &end, base);
	return end != text;
}

/* The last component of where a link leads. */
static bool read_link_name(const char *path, char *name, size_t len)
{
	char to[PATH_BYTES];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	char *slash;

	name[0] = 0;
	if (n < 0)
		return false;
	to[n] = 0;
	slash = strrchr(to, '/');
	snprintf(name, len, "%.63s", slash ? slash + 1 : to);
	return true;
}

/*
 * --- routes
 * ----------------------------------------------------------------------------------------------
 */

/* Marks what IFACE is used for: IPv4 and IPv6 routes. */
static void find_routes(const struct sysfs_env *env, const char *iface, struct sysfs_port *port)
{
	char path[PATH_BYTES], line[256], name[SYSFS_NAME], dest[40], prefix[8];
	FILE *f = fopen(path_of(env, path, "/proc/net/route"), "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %39s", name, dest) != 2 || strcmp(name, iface))
			continue;
		snprintf(port->route, sizeof(port->route), "%s", iface);
		port->default_route |= !strcmp(dest, "00000000");
	}
	if (f)
		fclose(f);
	f = fopen(path_of(env, path, "/proc/net/ipv6_route"), "re");
	while (f && fgets(line, sizeof(line), f)) {
		/* destination, prefix, source, prefix, next hop, metric, references, use, flags, name */
		if (sscanf(line, "%39s %7s %*s %*s %*s %*s %*s %*s %*s %63s", dest, prefix, name) !=
			    3 ||
		    strcmp(name, iface))
			continue;
		port->default_route |= !strcmp(prefix, "00") && strspn(dest, "0") == 32;
	}
	if (f)
		fclose(f);
}

/* The interface and those above it: bonds, bridges, VLANs. */
static void find_uses(const struct sysfs_env *env, const char *iface, struct sysfs_port *port,
		      u32 depth)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	find_routes(env, iface, port);
	dir = opendir(path_of(env, path, "/sys/class/net/%s", iface));
	while (dir && depth < MAX_DEPTH && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "upper_", 6))
			find_uses(env, entry->d_name + 6, port, depth + 1);
	if (dir)
		closedir(dir);
}

static void read_iface(const struct sysfs_env *env, struct sysfs_port *port)
{
	char path[PATH_BYTES], state[16];
	struct dirent *entry;
	DIR *dir = opendir(path_of(env, path, DEVICES "/%s/net", port->bdf));

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(port->iface, sizeof(port->iface), "%.63s", entry->d_name);
		read_line(
			path_of(env, path, DEVICES "/%s/net/%s/operstate", port->bdf, port->iface),
			state, sizeof(state));
		port->up |= !strcmp(state, "up");
		find_uses(env, port->iface, port, 0);
	}
	if (dir)
		closedir(dir);
}

/*
 * --- ports
 * ----------------------------------------------------------------------------------------------
 */

static u32 pcie_gen(const char *speed)
{
	double gts = strtod(speed, NULL); /* "5.0 GT/s PCIe" */

	return gts >= 32 ? 5 : gts >= 16 ? 4 : gts >= 8 ? 3 : gts >= 5 ? 2 : gts >= 2.5 ? 1 : 0;
}

u32 sysfs_pcie_mbps(u32 gen, u32 lanes)
{
	static const u32 per_lane[] = { 0, 2000, 4000, 7877, 15754, 31508 };

	return gen < ARRAY_SIZE(per_lane) ? per_lane[gen] * lanes : 0;
}

static void read_pcie(const struct sysfs_env *env, struct sysfs_port *p)
{
	char path[PATH_BYTES], text[32];
	long n;

	if (read_line(path_of(env, path, DEVICES "/%s/current_link_speed", p->bdf), text,
		      sizeof(text)))
		p->pcie_gen = pcie_gen(text);
	if (read_line(path_of(env, path, DEVICES "/%s/max_link_speed", p->bdf), text, sizeof(text)))
		p->pcie_max_gen = pcie_gen(text);
	if (read_number(path_of(env, path, DEVICES "/%s/current_link_width", p->bdf), 10, &n))
		p->pcie_lanes = n;
	if (read_number(path_of(env, path, DEVICES "/%s/max_link_width", p->bdf), 10, &n))
		p->pcie_max_lanes = n;
}

static bool is_bdf(const char *text)
{
	unsigned int domain, bus, slot, function;
	int n = 0;

	return sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &n) == 4 &&
	       n == 12 && !text[n];
}

int sysfs_read_port(const struct sysfs_env *env, const char *bdf, struct sysfs_port *port,
		    char *err, size_t errlen)
{
	char path[PATH_BYTES], name[SYSFS_NAME];
	struct stat st;
	long n;

	memset(port, 0, sizeof(*port));
	port->group = port->node = -1;
	if (!is_bdf(bdf))
		return refuse(-EINVAL, err, errlen,
			      "'%s' is no PCI address: it reads like 0000:03:00.1", bdf);
	snprintf(port->bdf, sizeof(port->bdf), "%s", bdf);
	if (stat(path_of(env, path, DEVICES "/%s", bdf), &st))
		return refuse(-ENODEV, err, errlen,
			      "%s: no such PCI device (skbench hw list shows what there is)", bdf);
	if (read_number(path_of(env, path, DEVICES "/%s/vendor", bdf), 16, &n))
		port->vendor = n;
	if (read_number(path_of(env, path, DEVICES "/%s/device", bdf), 16, &n))
		port->device = n;
	port->id = port->vendor == 0x8086 ? ixgbe_find_id(port->device) : NULL;
	read_link_name(path_of(env, path, DEVICES "/%s/driver", bdf), port->driver,
		       sizeof(port->driver));
	if (read_link_name(path_of(env, path, DEVICES "/%s/iommu_group", bdf), name,
			   sizeof(name))) {
		char group_name[SYSFS_NAME];

		port->group = atoi(name);
		port->noiommu =
			read_line(path_of(env, path, "/sys/kernel/iommu_groups/%s/name", name),
				  group_name, sizeof(group_name)) &&
			!strcmp(group_name, "vfio-noiommu");
	}
	if (read_number(path_of(env, path, DEVICES "/%s/numa_node", bdf), 10, &n))
		port->node = n;
	if (read_number(path_of(env, path, DEVICES "/%s/sriov_numvfs", bdf), 10, &n))
		port->vfs = n;
	read_iface(env, port);
	read_pcie(env, port);
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

u32 sysfs_list(const struct sysfs_env *env, struct sysfs_port *ports, u32 max)
{
	char path[PATH_BYTES], err[200];
	struct dirent **names;
	struct sysfs_port port;
	u32 found = 0;
	int n = scandir(path_of(env, path, DEVICES), &names, NULL, by_name);

	for (int i = 0; i < n; i++) {
		if (!sysfs_read_port(env, names[i]->d_name, &port, err, sizeof(err)) && port.id) {
			if (found < max)
				ports[found] = port;
			found++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return found;
}

u32 sysfs_blockers(const struct sysfs_env *env, int group, char *text, size_t len)
{
	char path[PATH_BYTES], err[200];
	struct dirent **names;
	struct sysfs_port port;
	size_t at = 0;
	u32 found = 0;
	long cls;
	int n = scandir(path_of(env, path, "/sys/kernel/iommu_groups/%d/devices", group), &names,
			NULL, by_name);

	text[0] = 0;
	for (int i = 0; i < n; i++) {
		const char *bdf = names[i]->d_name;

		if (is_bdf(bdf) && !sysfs_read_port(env, bdf, &port, err, sizeof(err)) &&
		    port.driver[0] && strcmp(port.driver, "vfio-pci") &&
		    strcmp(port.driver, "pci-stub") && strcmp(port.driver, "pcieport") &&
		    !(read_number(path_of(env, path, DEVICES "/%s/class", bdf), 16, &cls) &&
		      cls >> 8 == BRIDGE_CLASS)) {
			int wrote = snprintf(text + at, len - at,
					     "%s%s is with %s (echo %s > " DEVICES
					     "/%s/driver/unbind%s)",
					     found ? "; " : "", bdf, port.driver, bdf, bdf,
					     port.id ? ", or skbench hw bind" : "");

			if (wrote > 0 && (size_t)wrote < len - at)
				at += wrote;
			found++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return found;
}

int sysfs_group_user(const struct sysfs_env *env, int group)
{
	char path[PATH_BYTES], want[SYSFS_NAME], to[PATH_BYTES];
	DIR *proc = opendir(path_of(env, path, "/proc"));
	struct dirent *process, *file;
	int pid = 0;

	snprintf(want, sizeof(want), "/dev/vfio/%d", group);
	while (proc && !pid && (process = readdir(proc))) {
		DIR *fds;

		if (process->d_name[0] < '1' || process->d_name[0] > '9')
			continue;
		fds = opendir(path_of(env, path, "/proc/%s/fd", process->d_name));
		while (fds && !pid && (file = readdir(fds))) {
			ssize_t n = readlinkat(dirfd(fds), file->d_name, to, sizeof(to) - 1);

			to[max(n, (ssize_t)0)] = 0;
			if (!strcmp(to, want))
				pid = atoi(process->d_name);
		}
		if (fds)
			closedir(fds);
	}
	if (proc)
		closedir(proc);
	return pid;
}

/*
 * --- binding
 * ----------------------------------------------------------------------------------------------
 */

/* What forbids to take PORT from its driver. */
static int may_take(const struct sysfs_env *env, const struct sysfs_port *p, bool force, char *err,
		    size_t errlen)
{
	if (!p->id)
		return refuse(-ENODEV, err, errlen, "%s is %04x:%04x, no 82599, X540 or X550",
			      p->bdf, p->vendor, p->device);
	if (p->default_route)
		return refuse(
			-EBUSY, err, errlen,
			"%s (%s) carries the default route: never taken, move the route first",
			p->bdf, p->route[0] ? p->route : p->iface);
	if (p->route[0] && env->ssh)
		return refuse(
			-EBUSY, err, errlen,
			"%s (%s) has routes, and this session came over the network: not taken; "
			"run it from the console",
			p->bdf, p->route);
	if (p->route[0] && !force)
		return refuse(-EBUSY, err, errlen,
			      "%s (%s) has routes: ip link set %s down first, or --force", p->bdf,
			      p->route, p->iface);
	if (p->vfs)
		return refuse(-EBUSY, err, errlen,
			      "%s has %u virtual functions: echo 0 > " DEVICES "/%s/sriov_numvfs",
			      p->bdf, p->vfs, p->bdf);
	if (p->group < 0)
		return refuse(-ENODEV, err, errlen, "%s: " NO_IOMMU, p->bdf);
	return 0;
}

static int write_attr(const struct sysfs_env *env, const char *bdf, const char *attr,
		      const char *text)
{
	char path[PATH_BYTES];

	return env->write(env->ctx, path_of(env, path, DEVICES "/%s/%s", bdf, attr), text);
}

static int probe(const struct sysfs_env *env, const char *bdf)
{
	char path[PATH_BYTES];

	return env->write(env->ctx, path_of(env, path, "/sys/bus/pci/drivers_probe"), bdf);
}

static const char *state_path(const struct sysfs_env *env, const char *bdf, char *path)
{
	return path_of(env, path, STATE_DIR "/%s", bdf);
}

/* Notes the driver and the override, one a line. An older note of the same port stays: it is the
 * first state. */
static int save_state(const struct sysfs_env *env, const struct sysfs_port *p, const char *override)
{
	char path[PATH_BYTES];
	FILE *f;

	if (mkdir(path_of(env, path, STATE_DIR), 0755) && errno != EEXIST)
		return -errno;
	f = fopen(state_path(env, p->bdf, path), "wxe");
	if (!f)
		return errno == EEXIST ? 0 : -errno;
	fprintf(f, "%s\n%s\n", p->driver, override);
	return fclose(f) ? -errno : 0;
}

/* "(null)" is how the kernel shows that there is none. */
static void read_override(const struct sysfs_env *env, const char *bdf, char *text, size_t len)
{
	char path[PATH_BYTES];

	read_line(path_of(env, path, DEVICES "/%s/driver_override", bdf), text, len);
	if (!strcmp(text, "(null)"))
		text[0] = 0;
}

/* DRIVER ("": none) and OVERRIDE as they were. 0 if the port ends up there. */
static int give_back(const struct sysfs_env *env, const char *bdf, const char *driver,
		     const char *override)
{
	char text[SYSFS_NAME + 2], err[200];
	struct sysfs_port now;

	snprintf(text, sizeof(text), "%s\n", override);
	write_attr(env, bdf, "driver_override", text);
	if (sysfs_read_port(env, bdf, &now, err, sizeof(err)))
		return -ENODEV;
	if (now.driver[0] && strcmp(now.driver, driver))
		write_attr(env, bdf, "driver/unbind", bdf);
	if (driver[0] && strcmp(now.driver, driver))
		probe(env, bdf);
	if (sysfs_read_port(env, bdf, &now, err, sizeof(err)))
		return -ENODEV;
	return strcmp(now.driver, driver) ? -EIO : 0;
}

int sysfs_bind(const struct sysfs_env *env, const char *bdf, bool force, char *err, size_t errlen)
{
	char path[PATH_BYTES], override[SYSFS_NAME];
	struct sysfs_port p, now;
	struct stat st;
	int ret = sysfs_read_port(env, bdf, &p, err, errlen);

	if (ret)
		return ret;
	if (!strcmp(p.driver, "vfio-pci"))
		return 0;
	ret = may_take(env, &p, force, err, errlen);
	if (ret)
		return ret;
	if (stat(path_of(env, path, "/sys/bus/pci/drivers/vfio-pci"), &st))
		return refuse(-ENOENT, err, errlen,
			      "there is no driver vfio-pci: modprobe vfio-pci (a kernel without it "
			      "cannot do this: use --device model)");
	read_override(env, bdf, override, sizeof(override));
	ret = save_state(env, &p, override);
	if (ret == -EACCES || ret == -EPERM)
		return refuse(ret, err, errlen, "%s: binding takes root: sudo skbench hw bind %s",
			      bdf, bdf);
	if (ret)
		return refuse(ret, err, errlen, "%s: the present state cannot be noted in %s%s: %s",
			      bdf, env->root, STATE_DIR, strerror(-ret));
	/* Without the override a probe may leave the device with no driver, silently. */
	ret = write_attr(env, bdf, "driver_override", "vfio-pci");
	if (!ret && p.driver[0])
		ret = write_attr(env, bdf, "driver/unbind", bdf);
	if (!ret)
		ret = probe(env, bdf);
	/* A probe that fails succeeds as a write: only the link tells. */
	if (!ret && !sysfs_read_port(env, bdf, &now, err, errlen) &&
	    !strcmp(now.driver, "vfio-pci"))
		return 0;
	unlink(state_path(env, bdf, path));
	if (give_back(env, bdf, p.driver, override))
		return refuse(-EIO, err, errlen,
			      "%s: vfio-pci did not take it, and %s not back: look at dmesg, then "
			      "echo %s > /sys/bus/pci/drivers_probe",
			      bdf, p.driver, bdf);
	if (ret == -EACCES || ret == -EPERM)
		return refuse(ret, err, errlen, "%s: binding takes root: sudo skbench hw bind %s",
			      bdf, bdf);
	return refuse(
		ret ? ret : -EINVAL, err, errlen,
		"%s: vfio-pci did not take it (dmesg tells why: 'probe failed with error -22' "
		"is a missing IOMMU); it is with %s again",
		bdf, p.driver[0] ? p.driver : "no driver");
}

int sysfs_unbind(const struct sysfs_env *env, const char *bdf, char *err, size_t errlen)
{
	char path[PATH_BYTES], driver[SYSFS_NAME] = "", override[SYSFS_NAME] = "";
	struct sysfs_port p;
	int ret = sysfs_read_port(env, bdf, &p, err, errlen);
	FILE *f;

	if (ret)
		return ret;
	f = fopen(state_path(env, bdf, path), "re");
	if (!f)
		return refuse(
			-ENOENT, err, errlen,
			"%s: no note of what it was before (it is with %s, and skbench hw bind "
			"did not do that)",
			bdf, p.driver[0] ? p.driver : "no driver");
	if (fgets(driver, sizeof(driver), f))
		driver[strcspn(driver, "\n")] = 0;
	if (fgets(override, sizeof(override), f))
		override[strcspn(override, "\n")] = 0;
	fclose(f);
	ret = give_back(env, bdf, driver, override);
	if (ret)
		return refuse(ret, err, errlen,
			      "%s did not go back to %s: as root, echo %s > "
			      "/sys/bus/pci/drivers_probe, and look at dmesg",
			      bdf, driver[0] ? driver : "no driver", bdf);
	unlink(state_path(env, bdf, path));
	return 0;
}
