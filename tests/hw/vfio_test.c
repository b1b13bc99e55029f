/* SPDX-License-Identifier: MIT */
/*
 * VFIO without a kernel that has it: a tree of sysfs and a kernel of the test's own, which answers
 * as real ones were seen to. Each way to fail, and the sentence that it gives; binding and its exact
 * undoing; opening by group and by character device down to a register.
 */
#include "hw/vfio/iommufd.h"
#include "hw/vfio/vfio.h"
#include "tests/support/model.h"

#include <errno.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORT0	  "0000:03:00.0"
#define PORT1	  "0000:03:00.1"
#define BRIDGE	  "0000:02:00.0"
#define DEVICES	  "/sys/bus/pci/devices"
#define BAR_BYTES 0x80000
#define FD(n)	  (1000 + (n))

enum { FD_CONTAINER = FD(0), FD_GROUP, FD_DEVICE, FD_IOMMU, FD_LAST };

/* --- the tree */

struct tree {
	char root[64];
	struct sysfs_env env;
	bool probe_fails, write_denied;
	u32 writes;
};

static void put(struct tree *t, const char *path, const char *text)
{
	char full[600];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", t->root, path);
	for (char *p = full + strlen(t->root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0755);
		*p = '/';
	}
	if (!text)
		return;
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_dir(struct tree *t, const char *path)
{
	char full[600];

	snprintf(full, sizeof(full), "%s/", path);
	put(t, full, NULL);
}

static void put_link(struct tree *t, const char *path, const char *to)
{
	char full[600];

	put(t, path, NULL);
	snprintf(full, sizeof(full), "%s%s", t->root, path);
	unlink(full);
	assert_int_equal(symlink(to, full), 0);
}

static void cut(struct tree *t, const char *path)
{
	char full[600];

	snprintf(full, sizeof(full), "%s%s", t->root, path);
	unlink(full);
}

static const char *get(struct tree *t, const char *path, char *text, size_t len)
{
	char full[600];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", t->root, path);
	f = fopen(full, "r");
	text[0] = 0;
	if (f) {
		if (!fgets(text, len, f))
			text[0] = 0;
		fclose(f);
	}
	return text;
}

static void set_driver(struct tree *t, const char *bdf, const char *driver)
{
	char path[300], to[300];

	snprintf(path, sizeof(path), DEVICES "/%s/driver", bdf);
	snprintf(to, sizeof(to), "../../drivers/%s", driver);
	if (driver[0])
		put_link(t, path, to);
	else
		cut(t, path);
}

/* What the kernel does when these are written. */
static int kernel_write(void *ctx, const char *path, const char *text)
{
	struct tree *t = ctx;
	const char *at = path + strlen(t->root);
	char bdf[16] = "", override[64], name[300];

	t->writes++;
	if (t->write_denied)
		return -EACCES;
	assert_memory_equal(path, t->root, strlen(t->root));
	if (!strcmp(at, "/sys/bus/pci/drivers_probe")) {
		snprintf(name, sizeof(name), DEVICES "/%s/driver_override", text);
		get(t, name, override, sizeof(override));
		override[strcspn(override, "\n")] = 0;
		if (!strcmp(override, "vfio-pci")) {
			if (!t->probe_fails)
				set_driver(t, text, "vfio-pci");
		} else {
			set_driver(t, text, "ixgbe");
		}
		return 0; /* also when the probe failed */
	}
	assert_int_equal(sscanf(at, DEVICES "/%12[0-9a-f:.]", bdf), 1);
	if (strstr(at, "/driver/unbind")) {
		assert_string_equal(text, bdf);
		set_driver(t, bdf, "");
		return 0;
	}
	assert_non_null(strstr(at, "/driver_override"));
	put(t, at, text);
	return 0;
}

static void add_port(struct tree *t, const char *bdf, const char *device, const char *driver,
		     const char *iface)
{
	char path[300], to[300];

	snprintf(path, sizeof(path), DEVICES "/%s/vendor", bdf);
	put(t, path, "0x8086\n");
	snprintf(path, sizeof(path), DEVICES "/%s/device", bdf);
	put(t, path, device);
	snprintf(path, sizeof(path), DEVICES "/%s/class", bdf);
	put(t, path, "0x020000\n");
	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", bdf);
	put(t, path, "(null)\n");
	snprintf(path, sizeof(path), DEVICES "/%s/current_link_speed", bdf);
	put(t, path, "2.5 GT/s PCIe\n");
	snprintf(path, sizeof(path), DEVICES "/%s/current_link_width", bdf);
	put(t, path, "4\n");
	set_driver(t, bdf, driver);
	snprintf(path, sizeof(path), DEVICES "/%s/iommu_group", bdf);
	put_link(t, path, "../../../../kernel/iommu_groups/0");
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/0/devices/%s", bdf);
	snprintf(to, sizeof(to), "../../../../bus/pci/devices/%s", bdf);
	put_link(t, path, to);
	snprintf(path, sizeof(path), DEVICES "/%s/net/%s/operstate", bdf, iface);
	put(t, path, "up\n");
	snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", iface);
	put(t, path, "up\n");
}

/* Two ports and a bridge in group 0; the first on ixgbe, nothing routed over either. */
static void grow(struct tree *t)
{
	memset(t, 0, sizeof(*t));
	strcpy(t->root, "/tmp/skbench-vfio-XXXXXX");
	assert_non_null(mkdtemp(t->root));
	t->env = (struct sysfs_env){ .root = t->root, .write = kernel_write, .ctx = t };
	put_dir(t, "/sys/bus/pci/drivers/vfio-pci");
	put_dir(t, "/sys/bus/pci/drivers/ixgbe");
	put_dir(t, "/run");
	put(t, "/proc/net/route", "Iface\tDestination\tGateway\nlan0\t00000000\t0100000A\n");
	put(t, "/proc/net/ipv6_route", "");
	add_port(t, PORT0, "0x10fb\n", "ixgbe", "eth0");
	add_port(t, PORT1, "0x10fb\n", "vfio-pci", "eth1");
	put(t, DEVICES "/" BRIDGE "/vendor", "0x8086\n");
	put(t, DEVICES "/" BRIDGE "/class", "0x060400\n");
	put(t, DEVICES "/" BRIDGE "/device", "0x1234\n");
	set_driver(t, BRIDGE, "shpchp");
	put_link(t, "/sys/kernel/iommu_groups/0/devices/" BRIDGE,
		 "../../../../bus/pci/devices/" BRIDGE);
}

static void fell(struct tree *t)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", t->root);
	assert_int_equal(system(command), 0);
}

static struct sysfs_port port_of(struct tree *t, const char *bdf)
{
	struct sysfs_port p;
	char err[300];

	assert_int_equal(sysfs_read_port(&t->env, bdf, &p, err, sizeof(err)), 0);
	return p;
}

#define assert_says(err, text)                                         \
	do {                                                           \
		if (!strstr(err, text))                                \
			fail_msg("'%s' does not say '%s'", err, text); \
	} while (0)

/* --- ports */

static void list(void **state)
{
	struct sysfs_port ports[4];
	struct tree t;

	(void)state;
	grow(&t);
	assert_int_equal(sysfs_list(&t.env, ports, 4), 2); /* not the bridge */
	assert_string_equal(ports[0].bdf, PORT0);
	assert_string_equal(ports[0].driver, "ixgbe");
	assert_int_equal(ports[0].group, 0); /* a group like any other */
	assert_string_equal(ports[0].iface, "eth0");
	assert_true(ports[0].up);
	assert_false(ports[0].default_route);
	assert_int_equal(ports[0].node, -1);
	assert_int_equal(sysfs_pcie_mbps(ports[0].pcie_gen, ports[0].pcie_lanes), 8000);
	assert_int_equal(sysfs_pcie_mbps(2, 8), 32000);
	assert_int_equal(sysfs_pcie_mbps(0, 8), 0);
	fell(&t);
}

static void bind_and_back(void **state)
{
	static const char *const overrides[] = { "(null)\n", "ixgbe\n" };
	char err[700] = "", text[64];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(overrides); i++) {
		struct tree t;

		grow(&t);
		put(&t, DEVICES "/" PORT0 "/driver_override", overrides[i]);
		if (sysfs_bind(&t.env, PORT0, false, err, sizeof(err)))
			fail_msg("%s", err);
		assert_string_equal(port_of(&t, PORT0).driver, "vfio-pci");
		/* Once more does nothing, and does not forget what was before. */
		t.writes = 0;
		assert_int_equal(sysfs_bind(&t.env, PORT0, false, err, sizeof(err)), 0);
		assert_int_equal(t.writes, 0);
		if (sysfs_unbind(&t.env, PORT0, err, sizeof(err)))
			fail_msg("%s", err);
		assert_string_equal(port_of(&t, PORT0).driver, "ixgbe");
		assert_string_equal(
			get(&t, DEVICES "/" PORT0 "/driver_override", text, sizeof(text)),
			i ? "ixgbe\n" : "\n");
		/* There is nothing to undo any more, nor for a port that somebody else bound. */
		assert_int_equal(sysfs_unbind(&t.env, PORT0, err, sizeof(err)), -ENOENT);
		assert_int_equal(sysfs_unbind(&t.env, PORT1, err, sizeof(err)), -ENOENT);
		assert_says(err, "no note");
		/* The other port was not touched. */
		assert_string_equal(port_of(&t, PORT1).driver, "vfio-pci");
		fell(&t);
	}
}

/* What is never taken, what only with --force; nothing is written in any of these cases. */
static void bind_refused(void **state)
{
	char err[700] = "";
	struct tree t;

	(void)state;
	grow(&t);
	put(&t, "/proc/net/route", "Iface\tDestination\neth0\t00000000\n");
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -EBUSY);
	assert_says(err, "default route");
	/* Over a VLAN on a bond on it. */
	put(&t, "/proc/net/route", "Iface\tDestination\nbond0.7\t00000000\n");
	put_link(&t, "/sys/class/net/eth0/upper_bond0", "../bond0");
	put_link(&t, "/sys/class/net/bond0/upper_bond0.7", "../bond0.7");
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -EBUSY);
	assert_says(err, "default route");
	cut(&t, "/sys/class/net/eth0/upper_bond0");
	/* By IPv6. */
	put(&t, "/proc/net/ipv6_route",
	    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	    "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n");
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -EBUSY);
	assert_says(err, "default route");
	put(&t, "/proc/net/ipv6_route", "");
	/* Another route. */
	put(&t, "/proc/net/route", "Iface\tDestination\neth0\t0000000A\n");
	assert_int_equal(sysfs_bind(&t.env, PORT0, false, err, sizeof(err)), -EBUSY);
	assert_says(err, "--force");
	t.env.ssh = true;
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -EBUSY);
	assert_says(err, "network");
	t.env.ssh = false;
	/* Virtual functions, no IOMMU, no driver, other devices, no device. */
	put(&t, DEVICES "/" PORT0 "/sriov_numvfs", "2\n");
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -EBUSY);
	assert_says(err, "sriov_numvfs");
	cut(&t, DEVICES "/" PORT0 "/sriov_numvfs");
	cut(&t, DEVICES "/" PORT0 "/iommu_group");
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -ENODEV);
	assert_says(err, "intel_iommu=on");
	put_link(&t, DEVICES "/" PORT0 "/iommu_group", "../../../../kernel/iommu_groups/0");
	assert_int_equal(sysfs_bind(&t.env, BRIDGE, true, err, sizeof(err)), -ENODEV);
	assert_says(err, "8086:1234");
	assert_int_equal(sysfs_bind(&t.env, "0000:09:00.0", true, err, sizeof(err)), -ENODEV);
	assert_int_equal(sysfs_bind(&t.env, "03:00.0", true, err, sizeof(err)), -EINVAL);
	assert_int_equal(sysfs_bind(&t.env, "../../03:00.0", true, err, sizeof(err)), -EINVAL);
	{
		char dir[128];

		snprintf(dir, sizeof(dir), "%s/sys/bus/pci/drivers/vfio-pci", t.root);
		assert_int_equal(rmdir(dir), 0);
	}
	assert_int_equal(sysfs_bind(&t.env, PORT0, true, err, sizeof(err)), -ENOENT);
	assert_says(err, "modprobe vfio-pci");
	assert_int_equal(t.writes, 0);
	assert_string_equal(port_of(&t, PORT0).driver, "ixgbe");
	fell(&t);
}

/* A probe that fails says nothing; the port is with its driver again, and no note stays. */
static void bind_fails(void **state)
{
	char err[700] = "", text[64];
	struct tree t;

	(void)state;
	grow(&t);
	t.probe_fails = true;
	assert_int_equal(sysfs_bind(&t.env, PORT0, false, err, sizeof(err)), -EINVAL);
	assert_says(err, "did not take it");
	assert_string_equal(port_of(&t, PORT0).driver, "ixgbe");
	assert_string_equal(get(&t, DEVICES "/" PORT0 "/driver_override", text, sizeof(text)),
			    "\n");
	assert_int_equal(sysfs_unbind(&t.env, PORT0, err, sizeof(err)), -ENOENT);
	t.probe_fails = false;
	t.write_denied = true;
	assert_int_equal(sysfs_bind(&t.env, PORT0, false, err, sizeof(err)), -EACCES);
	assert_says(err, "sudo");
	assert_string_equal(port_of(&t, PORT0).driver, "ixgbe");
	fell(&t);
}

/* --- a kernel for VFIO */

struct fake {
	struct tree t;
	int fail_container, fail_group, fail_cdev, fail_iommu_dev; /* errno of the open */
	bool not_viable, interrupt_remapping_off, gone, no_bar, device_elsewhere;
	bool no_msix;
	int fail_map, fail_bind;
	u64 memlock;
	u8 *bar;
	u16 command;
	bool container_set, iommu_set, bound, attached;
	u32 open_fds, maps, iommu_type, resets, nr_irqs;
	u64 last_iova;
};

static int fake_open(void *ctx, const char *path)
{
	struct fake *f = ctx;
	int fd = -ENOENT, fault = 0;

	if (!strcmp(path, "/dev/vfio/vfio"))
		fd = FD_CONTAINER, fault = f->fail_container;
	else if (!strcmp(path, "/dev/vfio/0") || !strcmp(path, "/dev/vfio/noiommu-0"))
		fd = FD_GROUP, fault = f->fail_group;
	else if (!strcmp(path, "/dev/iommu"))
		fd = FD_IOMMU, fault = f->fail_iommu_dev;
	else if (!strcmp(path, "/dev/vfio/devices/vfio7"))
		fd = FD_DEVICE, fault = f->fail_cdev;
	else
		fail_msg("opens %s", path);
	if (fault)
		return fault;
	f->open_fds++;
	return fd;
}

static int fake_close(void *ctx, int fd)
{
	struct fake *f = ctx;

	assert_in_range(fd, FD_CONTAINER, FD_LAST);
	f->open_fds--;
	return 0;
}

static int iommu_info(struct vfio_iommu_type1_info *info)
{
	struct vfio_iommu_type1_info_cap_iova_range *cap = (void *)((char *)info + sizeof(*info));

	info->flags = VFIO_IOMMU_INFO_CAPS;
	info->cap_offset = sizeof(*info);
	cap->header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
	cap->nr_iovas = 2;
	cap->iova_ranges[0].start = 0;
	cap->iova_ranges[0].end = 0xfedfffff;
	cap->iova_ranges[1].start = 0xfef00000;
	cap->iova_ranges[1].end = 0x7fffffffff;
	return 0;
}

static int container_ioctl(struct fake *f, unsigned long request, void *arg)
{
	switch (request) {
	case VFIO_GET_API_VERSION:
		return VFIO_API_VERSION;
	case VFIO_SET_IOMMU:
		f->iommu_type = (uintptr_t)arg;
		if (f->interrupt_remapping_off)
			return -EPERM;
		f->iommu_set = true;
		return 0;
	case VFIO_IOMMU_GET_INFO:
		return f->iommu_set ? iommu_info(arg) : -EINVAL;
	case VFIO_IOMMU_MAP_DMA:
		if (f->fail_map)
			return f->fail_map;
		f->maps++;
		f->last_iova = ((struct vfio_iommu_type1_dma_map *)arg)->iova;
		return f->iommu_set ? 0 : -EINVAL;
	case VFIO_IOMMU_UNMAP_DMA:
		f->maps--;
		return 0;
	default:
		fail_msg("container: request 0x%lx", request);
		return -ENOTTY;
	}
}

static int group_ioctl(struct fake *f, unsigned long request, void *arg)
{
	switch (request) {
	case VFIO_GROUP_GET_STATUS:
		((struct vfio_group_status *)arg)->flags =
			f->not_viable ? 0 : VFIO_GROUP_FLAGS_VIABLE;
		return 0;
	case VFIO_GROUP_SET_CONTAINER:
		assert_int_equal(*(int *)arg, FD_CONTAINER);
		f->container_set = true;
		return 0;
	case VFIO_GROUP_GET_DEVICE_FD:
		assert_true(f->container_set && f->iommu_set); /* or the kernel says EINVAL */
		assert_string_equal(arg, PORT1);
		if (f->device_elsewhere)
			return -ENODEV;
		f->open_fds++;
		return FD_DEVICE;
	default:
		fail_msg("group: request 0x%lx", request);
		return -ENOTTY;
	}
}

static int iommufd_ioctl(struct fake *f, unsigned long request, void *arg)
{
	struct hw_iommu_ioas_iova_ranges *r = arg;
	struct hw_iommu_ioas_map *m = arg;

	switch (request) {
	case HW_IOMMU_IOAS_ALLOC:
		((struct hw_iommu_ioas_alloc *)arg)->out_ioas_id = 42;
		return 0;
	case HW_IOMMU_IOAS_IOVA_RANGES:
		assert_int_equal(r->ioas_id, 42);
		r->num_iovas = 1;
		((struct hw_iommu_iova_range *)(uintptr_t)r->allowed_iovas)[0] =
			(struct hw_iommu_iova_range){ 0x100000000, 0x7fffffffff };
		return 0;
	case HW_IOMMU_IOAS_MAP:
		assert_int_equal(m->ioas_id, 42);
		assert_int_equal(m->flags, 7);
		f->maps++;
		f->last_iova = m->iova;
		return 0;
	case HW_IOMMU_IOAS_UNMAP:
		f->maps--;
		return 0;
	default:
		fail_msg("iommufd: request 0x%lx", request);
		return -ENOTTY;
	}
}

static int region_info(struct fake *f, struct vfio_region_info *r)
{
	if (r->index == VFIO_PCI_CONFIG_REGION_INDEX) {
		r->size = 4096;
		r->offset = 0x70000000;
	} else {
		r->size = f->no_bar ? 0 : BAR_BYTES;
		r->flags = 7;
	}
	return 0;
}

static int device_ioctl(struct fake *f, unsigned long request, void *arg)
{
	struct vfio_irq_set *set = arg;

	switch (request) {
	case HW_VFIO_DEVICE_BIND_IOMMUFD:
		assert_int_equal(((struct hw_vfio_bind_iommufd *)arg)->iommufd, FD_IOMMU);
		f->bound = !f->fail_bind;
		return f->fail_bind;
	case HW_VFIO_DEVICE_ATTACH_IOMMUFD_PT:
		assert_true(f->bound);
		assert_int_equal(((struct hw_vfio_attach_iommufd_pt *)arg)->pt_id, 42);
		f->attached = true;
		return 0;
	case VFIO_DEVICE_GET_INFO:
		((struct vfio_device_info *)arg)->flags = VFIO_DEVICE_FLAGS_RESET;
		return 0;
	case VFIO_DEVICE_GET_REGION_INFO:
		return region_info(f, arg);
	case VFIO_DEVICE_RESET:
		f->resets++;
		return 0;
	case VFIO_DEVICE_GET_IRQ_INFO:
		((struct vfio_irq_info *)arg)->count = 64;
		((struct vfio_irq_info *)arg)->flags = f->no_msix ? 0 : VFIO_IRQ_INFO_EVENTFD;
		return 0;
	case VFIO_DEVICE_SET_IRQS:
		assert_int_equal(set->index, VFIO_PCI_MSIX_IRQ_INDEX);
		for (u32 i = 0; i < set->count; i++) /* each one set: no stray descriptor */
			assert_true(((int *)set->data)[i] >= 0);
		f->nr_irqs = set->count;
		return 0;
	default:
		fail_msg("device: request 0x%lx", request);
		return -ENOTTY;
	}
}

static int fake_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
	switch (fd) {
	case FD_CONTAINER:
		return container_ioctl(ctx, request, arg);
	case FD_GROUP:
		return group_ioctl(ctx, request, arg);
	case FD_IOMMU:
		return iommufd_ioctl(ctx, request, arg);
	default:
		return device_ioctl(ctx, request, arg);
	}
}

static ssize_t fake_pread(void *ctx, int fd, void *to, size_t len, off_t at)
{
	struct fake *f = ctx;

	(void)fd;
	assert_int_equal(at, 0x70000000 + PCI_CFG_COMMAND);
	memcpy(to, &f->command, len);
	return len;
}

static ssize_t fake_pwrite(void *ctx, int fd, const void *from, size_t len, off_t at)
{
	struct fake *f = ctx;

	(void)fd;
	assert_int_equal(at, 0x70000000 + PCI_CFG_COMMAND);
	memcpy(&f->command, from, len);
	return len;
}

static void *fake_mmap(void *ctx, int fd, size_t len, off_t at)
{
	struct fake *f = ctx;

	assert_int_equal(fd, FD_DEVICE);
	assert_int_equal(len, BAR_BYTES);
	assert_int_equal(at, 0);
	assert_true(f->command & PCI_COMMAND_MEM);
	f->bar = calloc(1, len);
	if (f->gone)
		memset(f->bar, 0xff, len);
	return f->bar;
}

static int fake_munmap(void *ctx, void *p, size_t len)
{
	(void)ctx, (void)len;
	free(p);
	return 0;
}

static u64 fake_memlock(void *ctx)
{
	return ((struct fake *)ctx)->memlock;
}

static struct vfio_sys sys_of(struct fake *f)
{
	return (struct vfio_sys){ fake_open, fake_close,  fake_ioctl,	fake_pread, fake_pwrite,
				  fake_mmap, fake_munmap, fake_memlock, f };
}

static int open_port(struct fake *f, const char *bdf, enum vfio_how how, struct nicdev **dev,
		     char *err, size_t errlen)
{
	struct vfio_sys sys = sys_of(f);

	err[0] = 0;
	*dev = NULL;
	return vfio_open(&sys, &f->t.env, bdf, how, false, dev, err, errlen);
}

static void start_fake(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	f->memlock = ~0ull;
	grow(&f->t);
}

/* Registers are plain memory, mappings lie in the reported ranges, closing leaves nothing. */
static void opens(void **state)
{
	static const struct {
		enum vfio_how how;
		u32 cdev; /* 1: the name in sysfs alone, as 6.1 has it; 2: the nodes, too */
		u64 first;
	} rows[] = {
		{ VFIO_ANY, 0, 16 << 20 },     { VFIO_ANY, 1, 16 << 20 },
		{ VFIO_GROUP, 2, 16 << 20 },   { VFIO_ANY, 2, 0x100000000 },
		{ VFIO_CDEV, 2, 0x100000000 },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct nicdev_arena a;
		struct nicdev *dev;
		struct fake f;
		char err[700];
		u64 one = 1;

		start_fake(&f);
		if (rows[i].cdev)
			put_dir(&f.t, DEVICES "/" PORT1 "/vfio-dev/vfio7");
		if (rows[i].cdev == 2) {
			put(&f.t, "/dev/vfio/devices/vfio7", "");
			put(&f.t, "/dev/iommu", "");
		}
		if (open_port(&f, PORT1, rows[i].how, &dev, err, sizeof(err)))
			fail_msg("%s", err);
		assert_int_equal(dev->vendor, 0x8086);
		assert_int_equal(dev->device, 0x10fb);
		assert_int_equal(f.resets, 1);
		assert_non_null(dev->bar0);
		nicdev_write32(dev, 0x6018, 0x12345678);
		assert_int_equal(*(u32 *)(f.bar + 0x6018), 0x12345678);
		*(u32 *)(f.bar + 8) = 0x80000;
		assert_int_equal(nicdev_read32(dev, 8), 0x80000);
		if (nicdev_arena_init(&a, dev, 1, err, sizeof(err)))
			fail_msg("%s", err);
		assert_true(a.iova == rows[i].first);
		assert_true(f.last_iova == rows[i].first);
		assert_int_equal(f.maps, 1);
		assert_true(nicdev_iova(dev, a.base + 100, 10) == a.iova + 100);
		assert_true(nicdev_iova(dev, a.base + a.bytes - 5, 10) == 0);
		assert_int_equal(nicdev_config_write16(dev, PCI_CFG_COMMAND, 6), 0);
		assert_int_equal(nicdev_config_read16(dev, PCI_CFG_COMMAND), 6);
		assert_int_equal(nicdev_irq_enable(dev, 3), 0);
		assert_int_equal(f.nr_irqs, 3);
		assert_int_equal(nicdev_irq_enable(dev, 1), -EINVAL); /* once, for all */
		assert_false(nicdev_irq_pending(dev, 2));
		assert_int_equal(write(dev->irq_fd[2], &one, sizeof(one)), sizeof(one));
		assert_true(nicdev_irq_pending(dev, 2));
		assert_false(nicdev_irq_pending(dev, 2));
		nicdev_arena_exit(&a);
		nicdev_close(dev);
		assert_int_equal(f.maps, 0);
		assert_int_equal(f.open_fds, 0);
		assert_int_equal(f.nr_irqs, 0);
		fell(&f.t);
	}
}

/* Each situation gives its own sentence, with what to do; nothing stays open. */
static void situations(void **state)
{
	static const struct {
		const char *name, *says, *also;
		int ret;
	} rows[] = {
		{ "no VFIO", "modprobe vfio-pci", "--device model", -ENOENT },
		{ "no group node", "skbench hw bind", "/dev/vfio/0", -ENOENT },
		{ "busy", "another process", "/dev/vfio/0", -EBUSY },
		{ "busy, found", "another process, 4711", "", -EBUSY },
		{ "not root", "chown", "udev", -EACCES },
		{ "not viable", PORT0 " is with ixgbe", "/driver/unbind", -EPERM },
		{ "no remapping", "interrupt remapping", "allow_unsafe_interrupts", -EPERM },
		{ "elsewhere", "group 0", "", -ENODEV },
		{ "gone", "0xffffffff", "D3", -ENODEV },
		{ "no BAR", "BAR 0", "", -ENODEV },
		{ "other driver", "bound to ixgbe", "skbench hw bind", -EBUSY },
		{ "no IOMMU", "intel_iommu=on", "", -ENODEV },
		{ "noiommu", "--vfio noiommu", "any memory", -EPERM },
		{ "no cdev", "--vfio group", "CONFIG_VFIO_DEVICE_CDEV", -ENOENT },
		{ "no iommufd", "/dev/iommu", "CONFIG_IOMMUFD", -ENOENT },
		{ "cdev not viable", PORT0 " is with ixgbe", "", -EPERM },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = rows[i].name, *bdf = PORT1;
		enum vfio_how how = VFIO_ANY;
		struct nicdev *dev;
		struct fake f;
		char err[700];
		int ret;

		start_fake(&f);
		if (!strcmp(name, "no VFIO"))
			f.fail_container = -ENOENT;
		else if (!strcmp(name, "no group node"))
			f.fail_group = -ENOENT;
		else if (!strncmp(name, "busy", 4))
			f.fail_group = -EBUSY;
		else if (!strcmp(name, "not root"))
			f.fail_group = -EACCES;
		else if (!strcmp(name, "not viable"))
			f.not_viable = true;
		else if (!strcmp(name, "no remapping"))
			f.interrupt_remapping_off = true;
		else if (!strcmp(name, "elsewhere"))
			f.device_elsewhere = true;
		else if (!strcmp(name, "gone"))
			f.gone = true;
		else if (!strcmp(name, "no BAR"))
			f.no_bar = true;
		else if (!strcmp(name, "other driver"))
			bdf = PORT0;
		else if (!strcmp(name, "no IOMMU"))
			cut(&f.t, DEVICES "/" PORT1 "/iommu_group");
		else if (!strcmp(name, "noiommu"))
			put(&f.t, "/sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
		else
			how = VFIO_CDEV;
		if (how == VFIO_CDEV && strcmp(name, "no cdev"))
			put_dir(&f.t, DEVICES "/" PORT1 "/vfio-dev/vfio7");
		if (!strcmp(name, "no iommufd"))
			f.fail_iommu_dev = -ENOENT;
		if (!strcmp(name, "cdev not viable"))
			f.fail_bind = -EPERM;
		if (!strcmp(name, "busy, found"))
			put_link(&f.t, "/proc/4711/fd/9", "/dev/vfio/0");
		ret = open_port(&f, bdf, how, &dev, err, sizeof(err));
		if (ret != rows[i].ret)
			fail_msg("%s: %d, not %d: %s", name, ret, rows[i].ret, err);
		assert_null(dev);
		assert_says(err, rows[i].says);
		assert_says(err, rows[i].also);
		assert_null(strstr(err, BRIDGE " is with")); /* bridges block nothing */
		assert_int_equal(f.open_fds, 0);
		fell(&f.t);
	}
}

/* The limit on locked memory is told before the kernel says ENOMEM; what else that may mean. */
static void locked_memory(void **state)
{
	struct nicdev_arena a;
	struct nicdev *dev;
	struct fake f;
	char err[700];

	(void)state;
	start_fake(&f);
	f.memlock = 3 << 20;
	assert_int_equal(open_port(&f, PORT1, VFIO_ANY, &dev, err, sizeof(err)), 0);
	*(u32 *)(f.bar + 8) = 0;
	assert_int_equal(nicdev_arena_init(&a, dev, 4 << 20, err, sizeof(err)), -ENOMEM);
	assert_says(err, "4194304 bytes have to be locked, the limit is 3145728");
	assert_says(err, "ulimit -l");
	assert_int_equal(f.maps, 0);
	assert_int_equal(nicdev_arena_init(&a, dev, 2 << 20, err, sizeof(err)), 0);
	{
		struct nicdev_arena more;

		assert_int_equal(nicdev_arena_init(&more, dev, 2 << 20, err, sizeof(err)), -ENOMEM);
		assert_says(err, "4194304 bytes"); /* both together */
	}
	f.memlock = ~0ull;
	f.fail_map = -ENOMEM;
	{
		struct nicdev_arena more;

		assert_int_equal(nicdev_arena_init(&more, dev, 2 << 20, err, sizeof(err)), -ENOMEM);
		assert_says(err, "locked by others");
		f.fail_map = -ENOSPC;
		assert_int_equal(nicdev_arena_init(&more, dev, 2 << 20, err, sizeof(err)), -ENOSPC);
		assert_says(err, "dma_entry_limit");
	}
	f.no_msix = true;
	assert_int_equal(nicdev_irq_enable(dev, 1), -EOPNOTSUPP);
	nicdev_arena_exit(&a);
	nicdev_close(dev);
	assert_int_equal(f.open_fds, 0);
	fell(&f.t);
}

/* Without an IOMMU: only when told so twice, nothing is mapped, addresses are the memory's own. */
static void without_iommu(void **state)
{
	struct nicdev_arena a;
	struct vfio_sys sys;
	struct nicdev *dev;
	struct fake f;
	char err[700];

	(void)state;
	start_fake(&f);
	sys = sys_of(&f);
	assert_int_equal(
		vfio_open(&sys, &f.t.env, PORT1, VFIO_NOIOMMU, true, &dev, err, sizeof(err)),
		-EINVAL);
	assert_says(err, "there is an IOMMU");
	put(&f.t, "/sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
	assert_int_equal(
		vfio_open(&sys, &f.t.env, PORT1, VFIO_NOIOMMU, false, &dev, err, sizeof(err)),
		-EPERM);
	assert_int_equal(
		vfio_open(&sys, &f.t.env, PORT1, VFIO_NOIOMMU, true, &dev, err, sizeof(err)), 0);
	assert_int_equal(f.iommu_type, VFIO_NOIOMMU_IOMMU);
	*(u32 *)(f.bar + 8) = 0;
	/* Memory in one piece takes huge pages and root, which this machine may not have. */
	if (nicdev_arena_init(&a, dev, 2 << 20, err, sizeof(err)))
		assert_says(err, "huge pages");
	else
		nicdev_arena_exit(&a);
	assert_int_equal(f.maps, 0);
	nicdev_close(dev);
	assert_int_equal(f.open_fds, 0);
	fell(&f.t);
}

/* A thousand times: no descriptor and no mapping more. */
static void again_and_again(void **state)
{
	struct nicdev *dev;
	struct fake f;
	char err[700];
	int before, after;

	(void)state;
	start_fake(&f);
	before = dup(0);
	for (u32 i = 0; i < 1000; i++) {
		assert_int_equal(open_port(&f, PORT1, VFIO_ANY, &dev, err, sizeof(err)), 0);
		assert_int_equal(nicdev_irq_enable(dev, 4), 0);
		nicdev_close(dev);
		assert_int_equal(f.open_fds, 0);
	}
	close(before);
	after = dup(0);
	assert_int_equal(after, before);
	close(after);
	fell(&f.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list),		 cmocka_unit_test(bind_and_back),
		cmocka_unit_test(bind_refused),	 cmocka_unit_test(bind_fails),
		cmocka_unit_test(opens),	 cmocka_unit_test(situations),
		cmocka_unit_test(locked_memory), cmocka_unit_test(again_and_again),
		cmocka_unit_test(without_iommu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
