/* SPDX-License-Identifier: MIT */
/*
 * The only program of a guest of QEMU's: proves hw/vfio on a real kernel. tests/hw/vfio_guest.py boots
 * it, with a word on the kernel's command line:
 *
 *   case=iommu     an IOMMU; an 82574 ("e1000e") that no driver has, an 82540 ("e1000") with its
 *                  driver, and two more of them in one IOMMU group, behind a PCI bridge
 *   case=noremap   an IOMMU without interrupt remapping
 *   case=none      no IOMMU
 *
 * With the 82574 down to DMA and an interrupt, by the group, by the character device where the kernel
 * has it, without an IOMMU where it may be; with the others what goes wrong, and what is said of it.
 *
 * Says "ok NAME" or "FAILED NAME: why" for each check on the console, and "end N failed".
 */
#include "hw/vfio/vfio.h"
#include "guest.h"

#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define OWNED	  "0000:00:06.0" /* with its driver */
#define SHARED	  "0000:01:01.0" /* in one group with the next */
#define OTHER	  "0000:01:02.0"
#define USER	  1000
#define TEXT	  700
#define KLOG_READ 3
#define KLOG_SIZE (256 << 10)
#define UNMAPPED  0x40000000u /* an IOVA at which nothing is mapped */

/* Registers of the 82574 (its datasheet, 10.1). */
#define E1000_CTRL   0x00000
#define E1000_STATUS 0x00008
#define E1000_ICS    0x000c8
#define E1000_IMS    0x000d0
#define E1000_IMC    0x000d8
#define E1000_IVAR   0x000e4
#define E1000_TCTL   0x00400
#define E1000_TDBAL  0x03800
#define E1000_TDBAH  0x03804
#define E1000_TDLEN  0x03808
#define E1000_TDH    0x03810
#define E1000_TDT    0x03818
#define ICS_OTHER    (1u << 24)
#define THROTTLE_US  200000 /* 128 us as QEMU has it, on a host that is late */

static void test_dma(struct nicdev *dev)
{
	struct nicdev_arena a;
	char err[400] = "";
	u64 ring_iova, frame_iova;
	volatile u64 *ring;
	u8 *frame;

	if (!check(!nicdev_arena_init(&a, dev, 4096, err, sizeof(err)), "map", "%s", err))
		return;
	if (!dev->ops->dma_physical)
		check(a.iova == 16 << 20, "iova", "0x%llx", (unsigned long long)a.iova);
	ring = nicdev_arena_alloc(&a, 128, 128, &ring_iova);
	frame = nicdev_arena_alloc(&a, 2048, 64, &frame_iova);
	memset(frame, 0xff, 64);
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	nicdev_write32(dev, E1000_CTRL, nicdev_read32(dev, E1000_CTRL) | 1u << 6); /* link up */
	nicdev_write32(dev, E1000_TDBAL, ring_iova);
	nicdev_write32(dev, E1000_TDBAH, ring_iova >> 32);
	nicdev_write32(dev, E1000_TDLEN, 128);
	nicdev_write32(dev, E1000_TDH, 0);
	nicdev_write32(dev, E1000_TDT, 0);
	nicdev_write32(dev, E1000_TCTL, 1u << 1 | 1u << 3);
	/* A legacy descriptor: 64 bytes, EOP, IFCS, RS. Its DD bit is a write of the device's. */
	ring[0] = frame_iova;
	ring[1] = 64 | 0x0bull << 24;
	dma_wmb();
	nicdev_write32(dev, E1000_TDT, 1);
	for (u32 ms = 0; ms < 2000 && !(ring[1] >> 32 & 1); ms++)
		nicdev_delay_us(dev, 1000);
	check(ring[1] >> 32 & 1, "DMA both ways", "TDH %u, descriptor %016llx",
	      nicdev_read32(dev, E1000_TDH), (unsigned long long)ring[1]);

	/* No DMA any more before its memory goes. */
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) & ~PCI_COMMAND_MASTER);
	nicdev_arena_exit(&a);
	check(!dev->nr_maps, "unmap", "%u mappings", dev->nr_maps);
}

static void test_irq(struct nicdev *dev)
{
	int ret = nicdev_irq_enable(dev, 5);

	if (!check(!ret, "vectors", "%s", strerror(-ret)))
		return;
	/* A message of an interrupt is a write of the device's, too. */
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	check(!nicdev_irq_pending(dev, 4), "quiet", "an interrupt before there is a cause");
	nicdev_write32(dev, E1000_IVAR, 0x8u << 16 | 4u << 16); /* other causes: vector 4 */
	nicdev_write32(dev, E1000_IMS, ICS_OTHER);
	nicdev_write32(dev, E1000_ICS, ICS_OTHER);
	for (u32 ms = 0; ms < 2000; ms++) {
		if (nicdev_irq_pending(dev, 4)) {
			check(true, "interrupt", " ");
			/*
			 * QEMU's moderation timer of the vector, which cannot be switched off,
			 * aborts QEMU if MSI-X is off when it ends: e1000e_core.c, "assertion
			 * msix_enabled() failed".
			 */
			nicdev_write32(dev, E1000_IMC, ~0u);
			nicdev_delay_us(dev, THROTTLE_US);
			return;
		}
		nicdev_delay_us(dev, 1000);
	}
	check(false, "interrupt", "none on vector 4 within 2 s");
}

/* --- who opens what */

static int open_as(const char *bdf, enum vfio_how how, struct nicdev **dev, char *err)
{
	const struct sysfs_env env = sysfs_this_machine();

	*dev = NULL;
	err[0] = 0;
	return vfio_open(&vfio_this_machine, &env, bdf, how, true, dev, err, TEXT);
}

/* Opening BDF fails with RET, and what it says holds SAYS and ALSO. */
static void refused(const char *name, const char *bdf, enum vfio_how how, int ret, const char *says,
		    const char *also)
{
	struct nicdev *dev;
	char err[TEXT];
	int got = open_as(bdf, how, &dev, err);

	check(got == ret && !dev && strstr(err, says) && strstr(err, also), name, "%d, '%s'", got,
	      err);
	if (dev)
		nicdev_close(dev);
}

/* Opens BDF with FN's checks on it. */
static void opened(const char *name, const char *bdf, enum vfio_how how,
		   void (*fn)(struct nicdev *dev))
{
	struct nicdev *dev;
	char err[TEXT];

	if (!check(!open_as(bdf, how, &dev, err), name, "%s", err))
		return;
	if (fn)
		fn(dev);
	nicdev_close(dev);
}

/* FN(ARG) in a process of its own, as user UID, with at most LOCKED bytes of locked memory. */
static void in_child(u32 uid, rlim_t locked, void (*fn)(const char *arg), const char *arg)
{
	const struct rlimit limit = { locked, locked };
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		failed += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		return;
	}
	failed = 0;
	check(!setrlimit(RLIMIT_MEMLOCK, &limit) && !setgid(uid) && !setuid(uid), "a user", "%s",
	      strerror(errno));
	fn(arg);
	fflush(stdout);
	_exit(failed);
}

static void attr(const char *bdf, const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bdf, name);
	write_text(path, text);
}

/* Takes BDF from its driver, if it has one, and gives it to vfio-pci: what hw bind does, by hand. */
static void give_to_vfio(const char *bdf)
{
	attr(bdf, "driver_override", "vfio-pci");
	attr(bdf, "driver/unbind", bdf);
	write_text("/sys/bus/pci/drivers_probe", bdf);
}

static struct sysfs_port port_of(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	struct sysfs_port port;
	char err[TEXT];

	memset(&port, 0, sizeof(port));
	if (sysfs_read_port(&env, bdf, &port, err, sizeof(err)))
		printf("note: %s\n", err);
	return port;
}

static bool kernel_said(const char *first, const char *second)
{
	static char text[KLOG_SIZE];
	int n = klogctl(KLOG_READ, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, first) && strstr(line, second))
			return true;
	return false;
}

/* --- that it works */

/* What the kernel refuses: none of it comes from nicdev_dma_map(). */
static void wrong_mappings(struct nicdev *dev)
{
	const u32 both = NICDEV_DMA_READ | NICDEV_DMA_WRITE;
	struct nicdev_arena a;
	char err[TEXT];

	if (!check(!nicdev_arena_init(&a, dev, 4096, err, sizeof(err)), "map again", "%s", err))
		return;
	check(dev->ops->dma_map(dev, 0xfee00000, a.base, 4096, both) == -EINVAL,
	      "the window of the interrupt messages is no IOVA", " ");
	check(dev->ops->dma_map(dev, a.iova, a.base, 4096, both) == -EEXIST, "no IOVA twice", " ");
	check(dev->ops->dma_map(dev, 0x50000001, a.base, 4096, both) == -EINVAL, "whole pages",
	      " ");
	nicdev_arena_exit(&a);
}

/* A ring at an address that is not mapped: the process lives on, the kernel tells of a fault. */
static void fault(struct nicdev *dev)
{
	bool told = false;

	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MASTER);
	nicdev_write32(dev, E1000_CTRL, nicdev_read32(dev, E1000_CTRL) | 1u << 6);
	nicdev_write32(dev, E1000_TDBAL, UNMAPPED);
	nicdev_write32(dev, E1000_TDBAH, 0);
	nicdev_write32(dev, E1000_TDLEN, 128);
	nicdev_write32(dev, E1000_TDH, 0);
	nicdev_write32(dev, E1000_TDT, 0);
	nicdev_write32(dev, E1000_TCTL, 1u << 1 | 1u << 3);
	nicdev_write32(dev, E1000_TDT, 1);
	for (u32 ms = 0; ms < 2000 && !told; ms += 20) {
		nicdev_delay_us(dev, 20000);
		told = kernel_said("DMAR", "fault");
	}
	/* AMD's IOMMU, as QEMU has it, tells nothing. */
	if (access("/sys/class/iommu/dmar0", F_OK))
		printf("note: a fault of this IOMMU is %s\n", told ? "told" : "not told");
	else
		check(told, "the kernel tells of a fault", "nothing of DMAR in its log");
	check(!nicdev_gone(dev), "the device lives on", " ");
	nicdev_config_write16(dev, PCI_CFG_COMMAND,
			      nicdev_config_read16(dev, PCI_CFG_COMMAND) & ~PCI_COMMAND_MASTER);
}

static void hold_open(const char *path)
{
	int fd = open(path, O_RDWR);

	if (fd < 0)
		_exit(1);
	pause();
	_exit(0);
}

static void test_way(const char *bdf, enum vfio_how how)
{
	struct nicdev *dev;
	char err[TEXT];
	u32 msi = 0;

	printf("note: %s\n", how == VFIO_CDEV	 ? "by the character device"
			     : how == VFIO_GROUP ? "by the group"
						 : "without an IOMMU");
	if (!check(!open_as(bdf, how, &dev, err), "open", "%s", err))
		return;
	check(dev->vendor == 0x8086 && dev->device == 0x10d3, "identity", "%04x:%04x", dev->vendor,
	      dev->device);
	check(!nicdev_gone(dev), "STATUS", "0x%08x", nicdev_read32(dev, E1000_STATUS));
	for (u32 i = 0; i < dev->nr_ranges; i++) {
		printf("note: IOVAs %llx to %llx\n", (unsigned long long)dev->range[i].first,
		       (unsigned long long)dev->range[i].last);
		/* The window of the interrupt messages is no usable IOVA. */
		msi |= dev->range[i].first <= 0xfee00000 && dev->range[i].last >= 0xfee00000;
	}
	if (how != VFIO_NOIOMMU) {
		check(dev->nr_ranges && !msi, "ranges", "%u of them", dev->nr_ranges);
		refused("busy by the group", bdf, VFIO_GROUP, -EBUSY, "another process", "");
	}
	check(nicdev_reset(dev) == 0, "reset", "it is told to have one");
	test_dma(dev);
	if (how != VFIO_NOIOMMU)
		wrong_mappings(dev);
	test_irq(dev);
	nicdev_close(dev);
	for (u32 i = 0; i < 5; i++) {
		if (open_as(bdf, how, &dev, err)) {
			check(false, "open again", "%s", err);
			return;
		}
		nicdev_close(dev);
	}
	check(true, "open again", " ");
}

/* --- that it does not work, and what is said */

static void as_user(const char *bdf)
{
	refused("not ours", bdf, VFIO_GROUP, -EACCES, "chown $USER /dev/vfio/", "udev");
}

static void bind_as_user(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	char err[TEXT] = "";

	check(sysfs_bind(&env, bdf, false, err, sizeof(err)) == -EACCES &&
		      strstr(err, "binding takes root: sudo skbench hw bind"),
	      "binding is root's", "%s", err);
	check(!strcmp(port_of(bdf).driver, "e1000"), "and changes nothing", "%s",
	      port_of(bdf).driver);
}

static void little_memory(struct nicdev *dev)
{
	struct nicdev_arena a;
	char err[TEXT] = "";

	check(nicdev_arena_init(&a, dev, 4096, err, sizeof(err)) == -ENOMEM &&
		      strstr(err, "2097152 bytes have to be locked, the limit is 65536") &&
		      strstr(err, "ulimit -l"),
	      "little memory to lock", "%s", err);
}

static void locked_elsewhere(struct nicdev *dev)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nicdev_arena a;
	char err[TEXT] = "";

	check(p != MAP_FAILED && !mlock(p, 1 << 20), "lock", "%s", strerror(errno));
	check(nicdev_arena_init(&a, dev, 4096, err, sizeof(err)) == -ENOMEM &&
		      strstr(err, "locked by others") && strstr(err, "ulimit -l"),
	      "memory that others have locked", "%s", err);
}

static void open_little(const char *bdf)
{
	opened("as a user", bdf, VFIO_GROUP, little_memory);
}

static void open_locked(const char *bdf)
{
	opened("as a user, too", bdf, VFIO_GROUP, locked_elsewhere);
}

static void no_entries(struct nicdev *dev)
{
	struct nicdev_arena a;
	char err[TEXT] = "";

	check(nicdev_arena_init(&a, dev, 4096, err, sizeof(err)) == -ENOSPC &&
		      strstr(err, "dma_entry_limit"),
	      "no more mappings", "%s", err);
}

static void test_rights(const char *bdf)
{
	char node[64], away[64], found[40],
		limit[] = "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
	pid_t pid;

	snprintf(node, sizeof(node), "/dev/vfio/%d", port_of(bdf).group);
	snprintf(away, sizeof(away), "/dev/vfio/away");
	in_child(USER, RLIM_INFINITY, as_user, bdf);
	check(!chown(node, USER, USER), "chown", "%s", strerror(errno));
	in_child(USER, 64 << 10, open_little, bdf);
	in_child(USER, (2 << 20) + (512 << 10), open_locked, bdf);
	check(!chown(node, 0, 0), "chown back", "%s", strerror(errno));
	if (!write_text(limit, "0")) {
		opened("few mappings", bdf, VFIO_GROUP, no_entries);
		write_text(limit, "65535");
	}

	/* Somebody else has it. */
	fflush(stdout);
	pid = fork();
	if (!pid)
		hold_open(node);
	for (u32 ms = 0;
	     ms < 2000 && !sysfs_group_user(&(struct sysfs_env){ .root = "" }, port_of(bdf).group);
	     ms += 10)
		usleep(10000);
	snprintf(found, sizeof(found), "in use by another process, %d", pid);
	refused("somebody else has it", bdf, VFIO_GROUP, -EBUSY, found, node);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	check(!rename(node, away), "node away", "%s", strerror(errno));
	refused("no node of the group", bdf, VFIO_GROUP, -ENOENT, node, "skbench hw bind");
	check(!rename(away, node), "node back", "%s", strerror(errno));
	check(!rename("/dev/vfio/vfio", away), "container away", "%s", strerror(errno));
	refused("no VFIO", bdf, VFIO_GROUP, -ENOENT, "modprobe vfio-pci", "--device model");
	check(!rename(away, "/dev/vfio/vfio"), "container back", "%s", strerror(errno));
	refused("no such device", "0000:00:1f.7", VFIO_ANY, -ENODEV, "no such PCI device",
		"hw list");
	refused("no address", "00:05.0", VFIO_ANY, -EINVAL, "no PCI address", "");
	refused("an IOMMU is there", bdf, VFIO_NOIOMMU, -EINVAL, "there is an IOMMU",
		"--vfio group");
}

/* Two in one group: it belongs to us only as a whole. */
static void test_group(void)
{
	check(port_of(SHARED).group >= 0 && port_of(SHARED).group == port_of(OTHER).group,
	      "two in one group", "groups %d and %d", port_of(SHARED).group, port_of(OTHER).group);
	check(!strcmp(port_of(OTHER).driver, "e1000"), "with their driver", "'%s'",
	      port_of(OTHER).driver);
	refused("bound to another driver", SHARED, VFIO_ANY, -EBUSY,
		"bound to e1000, not to vfio-pci", "skbench hw bind " SHARED);
	give_to_vfio(SHARED);
	refused("not viable", SHARED, VFIO_ANY, -EPERM, "is not viable",
		OTHER " is with e1000 (echo " OTHER " > /sys/bus/pci/devices/" OTHER
		      "/driver/unbind");
	attr(OTHER, "driver/unbind", OTHER);
	opened("viable without the other", SHARED, VFIO_ANY, NULL);
}

/* The id of an 82599 in front of the real one: the ports of the family are what hw bind takes. */
static bool disguise(const char *bdf)
{
	FILE *f = fopen("/id", "w");
	char path[200];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", bdf);
	return check(f && fputs("0x10fb\n", f) >= 0 && !fclose(f) &&
			     !mount("/id", path, NULL, MS_BIND, NULL),
		     "disguise", "%s", strerror(errno)) &&
	       check(port_of(bdf).id != NULL, "as an 82599", " ");
}

static int route(int s, int request, u32 address, u32 mask, char *iface)
{
	struct rtentry entry = { .rt_flags = RTF_UP, .rt_dev = iface };

	((struct sockaddr_in *)&entry.rt_dst)->sin_family = AF_INET;
	((struct sockaddr_in *)&entry.rt_dst)->sin_addr.s_addr = htonl(address);
	((struct sockaddr_in *)&entry.rt_genmask)->sin_family = AF_INET;
	((struct sockaddr_in *)&entry.rt_genmask)->sin_addr.s_addr = htonl(mask);
	return ioctl(s, request, &entry);
}

static int up(int s, const char *iface, bool on)
{
	struct ifreq r = { .ifr_flags = on ? IFF_UP : 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%.15s", iface);
	return ioctl(s, SIOCSIFFLAGS, &r);
}

/* hw bind and hw unbind: what they refuse, and that the second undoes the first. */
static void test_bind(void)
{
	struct sysfs_env env = sysfs_this_machine();
	struct sysfs_port before = port_of(OWNED), now;
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char err[TEXT] = "";

	mkdir("/run", 0755);
	check(!strcmp(before.driver, "e1000") && before.iface[0], "an interface", "'%s' '%s'",
	      before.driver, before.iface);
	check(sysfs_bind(&env, OWNED, false, err, sizeof(err)) == -ENODEV &&
		      strstr(err, "8086:100e, no 82599"),
	      "of another family", "%s", err);
	if (!disguise(OWNED))
		return;
	in_child(USER, RLIM_INFINITY, bind_as_user, OWNED);
	check(!up(s, before.iface, true) && !route(s, SIOCADDRT, 0, 0, before.iface),
	      "default route", "%s", strerror(errno));
	check(sysfs_bind(&env, OWNED, true, err, sizeof(err)) == -EBUSY &&
		      strstr(err, "carries the default route"),
	      "never the default route", "%s", err);
	check(!route(s, SIOCDELRT, 0, 0, before.iface) &&
		      !route(s, SIOCADDRT, 0x0a000200, 0xffffff00, before.iface),
	      "another route", "%s", strerror(errno));
	check(sysfs_bind(&env, OWNED, false, err, sizeof(err)) == -EBUSY &&
		      strstr(err, "has routes") && strstr(err, "--force"),
	      "other routes only by force", "%s", err);
	env.ssh = true;
	check(sysfs_bind(&env, OWNED, true, err, sizeof(err)) == -EBUSY && strstr(err, "console"),
	      "not under this session", "%s", err);
	env.ssh = false;
	check(!strcmp(port_of(OWNED).driver, "e1000"), "still with its driver", " ");
	check(!sysfs_bind(&env, OWNED, true, err, sizeof(err)), "bind", "%s", err);
	now = port_of(OWNED);
	check(!strcmp(now.driver, "vfio-pci") && !now.iface[0], "with vfio-pci", "'%s' '%s'",
	      now.driver, now.iface);
	opened("open what was bound", OWNED, VFIO_ANY, NULL);
	check(!sysfs_bind(&env, OWNED, false, err, sizeof(err)), "bind what is bound", "%s", err);
	check(!sysfs_unbind(&env, OWNED, err, sizeof(err)), "unbind", "%s", err);
	now = port_of(OWNED);
	check(!strcmp(now.driver, "e1000") && now.iface[0], "as it was", "'%s' '%s'", now.driver,
	      now.iface);
	check(sysfs_unbind(&env, OWNED, err, sizeof(err)) == -ENOENT && strstr(err, "no note"),
	      "unbind once", "%s", err);
	close(s);
}

static void with_iommu(const char *bdf)
{
	const bool cdev = !access("/dev/iommu", F_OK);

	refused("refused before it is bound", bdf, VFIO_ANY, -EBUSY, "bound to no driver",
		"hw bind");
	guest_bind(bdf);
	if (cdev) {
		test_way(bdf, VFIO_CDEV);
	} else {
		refused("no character device here", bdf, VFIO_CDEV, -ENOENT, "/dev/iommu",
			"--vfio group");
	}
	test_way(bdf, VFIO_GROUP);
	opened("for a fault", bdf, VFIO_GROUP, fault);
	test_rights(bdf);
	if (port_of(OWNED).vendor) {
		test_group();
		test_bind();
	}
}

/* Without interrupt remapping a device could send any interrupt: only if somebody says so. */
static void without_remapping(const char *bdf)
{
	guest_bind(bdf);
	refused("no interrupt remapping", bdf, VFIO_ANY, -EPERM, "interrupt remapping is off",
		"allow_unsafe_interrupts=1");
	check(!write_text("/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "1"),
	      "allow", "%s", strerror(errno));
	opened("allowed", bdf, VFIO_ANY, NULL);
}

static void without_iommu(const char *bdf)
{
	const struct sysfs_env env = sysfs_this_machine();
	char err[TEXT] = "";

	if (!write_text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "1")) {
		struct nicdev *dev;

		write_text("/proc/sys/vm/nr_hugepages", "8");
		guest_bind(bdf);
		refused("no IOMMU, unless told so", bdf, VFIO_ANY, -EPERM, "could write any memory",
			"--enable-unsafe-noiommu");
		check(vfio_open(&vfio_this_machine, &env, bdf, VFIO_NOIOMMU, false, &dev, err,
				sizeof(err)) == -EPERM,
		      "told so twice", "%s", err);
		test_way(bdf, VFIO_NOIOMMU);
		return;
	}
	/* The write succeeds, the probe does not: only the driver's link tells. */
	attr(bdf, "driver_override", "vfio-pci");
	check(!write_text("/sys/bus/pci/drivers_probe", bdf), "a probe that fails", "%s",
	      strerror(errno));
	check(kernel_said("vfio-pci", "failed with error -22"), "the kernel tells of it", " ");
	refused("no IOMMU, no driver", bdf, VFIO_ANY, -EBUSY, "bound to no driver", "hw bind");
	attr(bdf, "driver_override", "\n");
	mkdir("/run", 0755);
	if (!disguise(bdf))
		return;
	check(sysfs_bind(&env, bdf, true, err, sizeof(err)) == -ENODEV &&
		      strstr(err, "intel_iommu=on") && strstr(err, "intremap=on"),
	      "no IOMMU", "%s", err);
	check(!port_of(bdf).driver[0] && access("/run/skbench-hw", F_OK), "nothing changed", " ");
}

void guest_test(const char *bdf)
{
	char line[1000] = "";
	FILE *f = fopen("/proc/cmdline", "r");

	if (!f || !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	if (strstr(line, "case=noremap"))
		without_remapping(bdf);
	else if (strstr(line, "case=none"))
		without_iommu(bdf);
	else
		with_iommu(bdf);
}
