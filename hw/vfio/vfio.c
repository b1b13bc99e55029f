/* SPDX-License-Identifier: MIT */
#include "hw/vfio/vfio.h"
#include "hw/vfio/iommufd.h"
#include "skb/atomic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define INFO_BYTES	4096
#define CONTAINER	"/dev/vfio/vfio"
#define REG_BYTES	0x20000
#define PAGEMAP_PFN	((1ull << 55) - 1)
#define PAGEMAP_PRESENT (1ull << 63)

struct vfio {
	struct nicdev dev;
	struct vfio_sys sys;
	struct sysfs_env env;
	struct sysfs_port port;
	enum vfio_how how;
	int container, group, device; /* -1: not open; container: the iommufd with VFIO_CDEV */
	u32 ioas;
	u64 config_at, mapped;
	void *bar;
	size_t bar_bytes;
	bool can_reset;
	char *err;
	size_t errlen;
};

static struct vfio *to_vfio(struct nicdev *dev)
{
	return container_of(dev, struct vfio, dev);
}

__attribute__((format(printf, 3, 4))) static int refuse(struct vfio *v, int ret, const char *fmt,
							...)
{
	int n = snprintf(v->err, v->errlen, "%s: ", v->port.bdf);
	va_list ap;

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < v->errlen)
		vsnprintf(v->err + n, v->errlen - n, fmt, ap);
	va_end(ap);
	return ret;
}

static int control(struct vfio *v, int fd, unsigned long request, void *arg)
{
	return v->sys.ioctl(v->sys.ctx, fd, request, arg);
}

int vfio_how_parse(const char *text)
{
	static const char *const names[] = { "any", "group", "cdev", "noiommu" };

	for (u32 i = VFIO_GROUP; i < ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i]))
			return i;
	return -EINVAL;
}

/*
 * --- this machine's system calls
 * ----------------------------------------------------------------------------------------------
 */

static int sys_open(void *ctx, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	(void)ctx;
	return fd < 0 ? -errno : fd;
}

static int sys_close(void *ctx, int fd)
{
	(void)ctx;
	return close(fd) ? -errno : 0;
}

static int sys_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
	int ret = ioctl(fd, request, arg);

	(void)ctx;
	return ret < 0 ? -errno : ret;
}

static ssize_t sys_pread(void *ctx, int fd, void *to, size_t len, off_t at)
{
	(void)ctx;
	return pread(fd, to, len, at);
}

static ssize_t sys_pwrite(void *ctx, int fd, const void *from, size_t len, off_t at)
{
	(void)ctx;
	return pwrite(fd, from, len, at);
}

static void *sys_mmap(void *ctx, int fd, size_t len, off_t at)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);

	(void)ctx;
	return p == MAP_FAILED ? NULL : p;
}

static int sys_munmap(void *ctx, void *p, size_t len)
{
	(void)ctx;
	return munmap(p, len);
}

static u64 sys_memlock(void *ctx)
{
	struct rlimit limit;

	(void)ctx;
	/* Root has CAP_IPC_LOCK, for which there is no limit. */
	if (!geteuid() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return ~0ull;
	return limit.rlim_cur;
}

const struct vfio_sys vfio_this_machine = { .open = sys_open,
					    .close = sys_close,
					    .ioctl = sys_ioctl,
					    .pread = sys_pread,
					    .pwrite = sys_pwrite,
					    .mmap = sys_mmap,
					    .munmap = sys_munmap,
					    .memlock = sys_memlock };

/*
 * --- opening by the group
 * ----------------------------------------------------------------------------------------------
 */

static int group_open_failed(struct vfio *v, const char *path, int ret)
{
	int pid;

	switch (ret) {
	case -ENOENT:
		return refuse(v, ret, "%s is not there: bind it with skbench hw bind %s", path,
			      v->port.bdf);
	case -EBUSY:
		pid = sysfs_group_user(&v->env, v->port.group);
		if (pid)
			return refuse(v, ret, "%s is in use by another process, %d", path, pid);
		return refuse(v, ret, "%s is in use by another process", path);
	case -EACCES:
	case -EPERM:
		return refuse(v, ret,
			      "%s is not yours: chown $USER %s as root, or a udev rule for "
			      "SUBSYSTEM==\"vfio\"",
			      path, path);
	default:
		return refuse(v, ret, "%s: %s", path, strerror(-ret));
	}
}

static int open_container(struct vfio *v)
{
	int fd = v->sys.open(v->sys.ctx, CONTAINER);

	if (fd == -ENOENT)
		return refuse(v, fd,
			      CONTAINER
			      " is not there: modprobe vfio-pci; in a container of your own "
			      "pass it in; a kernel without VFIO leaves --device model");
	if (fd < 0)
		return refuse(v, fd, CONTAINER ": %s", strerror(-fd));
	v->container = fd;
	if (control(v, fd, VFIO_GET_API_VERSION, NULL) != VFIO_API_VERSION)
		return refuse(v, -EPROTO, "VFIO of another version than %d", VFIO_API_VERSION);
	return 0;
}

static int not_viable(struct vfio *v)
{
	char text[300];

	if (!sysfs_blockers(&v->env, v->port.group, text, sizeof(text)))
		snprintf(text, sizeof(text), "nothing found in /sys/kernel/iommu_groups/%d/devices",
			 v->port.group);
	return refuse(v, -EPERM, "IOMMU group %d is not viable, others of it are in use: %s",
		      v->port.group, text);
}

static int set_iommu(struct vfio *v)
{
	unsigned long type = v->how == VFIO_NOIOMMU ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1v2_IOMMU;
	int ret = control(v, v->container, VFIO_SET_IOMMU, (void *)type);

	if (ret == -EPERM && v->how != VFIO_NOIOMMU)
		return refuse(v, ret,
			      "interrupt remapping is off: turn it on (QEMU: intremap=on, "
			      "kernel-irqchip=split), or on a machine that you trust modprobe "
			      "vfio_iommu_type1 allow_unsafe_interrupts=1");
	if (ret)
		return refuse(v, ret, "the IOMMU of type %lu: %s", type, strerror(-ret));
	return 0;
}

/* The ranges of IOVAs that the IOMMU takes, from a capability of its information. */
static void read_ranges(struct vfio *v)
{
	_Alignas(8) char info[INFO_BYTES] = { 0 };
	struct vfio_iommu_type1_info *i = (void *)info;

	i->argsz = sizeof(info);
	if (control(v, v->container, VFIO_IOMMU_GET_INFO, i) || !(i->flags & VFIO_IOMMU_INFO_CAPS))
		return;
	for (u32 at = i->cap_offset;
	     at && at < sizeof(info) - sizeof(struct vfio_info_cap_header);) {
		struct vfio_iommu_type1_info_cap_iova_range *cap = (void *)(info + at);

		if (cap->header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE)
			for (u32 n = 0; n < cap->nr_iovas && v->dev.nr_ranges < NICDEV_MAX_RANGES;
			     n++)
				v->dev.range[v->dev.nr_ranges++] =
					(struct nicdev_range){ cap->iova_ranges[n].start,
							       cap->iova_ranges[n].end };
		at = cap->header.next;
	}
}

static int open_by_group(struct vfio *v)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char path[64];
	int ret = open_container(v);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/dev/vfio/%s%d", v->how == VFIO_NOIOMMU ? "noiommu-" : "",
		 v->port.group);
	ret = v->sys.open(v->sys.ctx, path);
	if (ret < 0)
		return group_open_failed(v, path, ret);
	v->group = ret;
	ret = control(v, v->group, VFIO_GROUP_GET_STATUS, &status);
	if (ret)
		return refuse(v, ret, "status of the group: %s", strerror(-ret));
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return not_viable(v);
	ret = control(v, v->group, VFIO_GROUP_SET_CONTAINER, &v->container);
	if (ret)
		return refuse(v, ret, "the group's container: %s", strerror(-ret));
	ret = set_iommu(v);
	if (ret)
		return ret;
	if (v->how != VFIO_NOIOMMU)
		read_ranges(v);
	ret = control(v, v->group, VFIO_GROUP_GET_DEVICE_FD, v->port.bdf);
	if (ret == -ENODEV)
		return refuse(v, ret, "is not in group %d any more (skbench hw list)",
			      v->port.group);
	if (ret < 0)
		return refuse(v, ret, "opening the device: %s", strerror(-ret));
	v->device = ret;
	return 0;
}

/*
 * --- opening by the character device
 * ----------------------------------------------------------------------------------------------
 */

/* The name below /dev/vfio/devices; false if this kernel has none. */
static bool cdev_name(const struct vfio *v, char *name, size_t len)
{
	char path[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/vfio-dev", v->env.root,
		 v->port.bdf);
	dir = opendir(path);
	name[0] = 0;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(name, len, "%.60s", entry->d_name);
	if (dir)
		closedir(dir);
	return name[0];
}

static int open_by_cdev(struct vfio *v)
{
	struct hw_vfio_bind_iommufd bind = { .argsz = sizeof(bind) };
	struct hw_iommu_ioas_alloc ioas = { .size = sizeof(ioas) };
	struct hw_vfio_attach_iommufd_pt attach = { .argsz = sizeof(attach) };
	struct hw_iommu_iova_range range[NICDEV_MAX_RANGES];
	struct hw_iommu_ioas_iova_ranges ranges = { .size = sizeof(ranges),
						    .num_iovas = NICDEV_MAX_RANGES,
						    .allowed_iovas = (uintptr_t)range };
	char name[64], path[128], text[300];
	int ret;

	if (!cdev_name(v, name, sizeof(name)))
		return refuse(
			v, -ENOENT,
			"this kernel gives no character device for it (CONFIG_VFIO_DEVICE_CDEV): "
			"--vfio group");
	ret = v->sys.open(v->sys.ctx, "/dev/iommu");
	if (ret < 0)
		return refuse(v, ret, "/dev/iommu: %s (CONFIG_IOMMUFD; or --vfio group)",
			      strerror(-ret));
	v->container = ret;
	snprintf(path, sizeof(path), "/dev/vfio/devices/%s", name);
	ret = v->sys.open(v->sys.ctx, path);
	if (ret < 0)
		return group_open_failed(v, path, ret);
	v->device = ret;
	bind.iommufd = v->container;
	ret = control(v, v->device, HW_VFIO_DEVICE_BIND_IOMMUFD, &bind);
	if (ret && sysfs_blockers(&v->env, v->port.group, text, sizeof(text)))
		return refuse(v, ret, "IOMMU group %d is not viable, others of it are in use: %s",
			      v->port.group, text);
	if (ret)
		return refuse(v, ret, "iommufd does not take it: %s%s", strerror(-ret),
			      ret == -EPERM ? " (interrupt remapping may be off)" : "");
	ret = control(v, v->container, HW_IOMMU_IOAS_ALLOC, &ioas);
	if (ret)
		return refuse(v, ret, "an address space of its own: %s", strerror(-ret));
	attach.pt_id = ranges.ioas_id = v->ioas = ioas.out_ioas_id;
	ret = control(v, v->device, HW_VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach);
	if (!ret)
		ret = control(v, v->container, HW_IOMMU_IOAS_IOVA_RANGES, &ranges);
	if (ret)
		return refuse(v, ret, "its address space: %s", strerror(-ret));
	for (u32 i = 0; i < ranges.num_iovas; i++)
		v->dev.range[v->dev.nr_ranges++] =
			(struct nicdev_range){ range[i].start, range[i].last };
	return 0;
}

/*
 * --- operations
 * ----------------------------------------------------------------------------------------------
 */

static u32 op_read32(struct nicdev *dev, u32 reg)
{
	return *(volatile u32 *)(dev->bar0 + reg);
}

static void op_write32(struct nicdev *dev, u32 reg, u32 value)
{
	*(volatile u32 *)(dev->bar0 + reg) = value;
}

static int op_dma_map(struct nicdev *dev, u64 iova, void *vaddr, size_t len, u32 perm)
{
	struct vfio *v = to_vfio(dev);
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = (perm & NICDEV_DMA_READ ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (perm & NICDEV_DMA_WRITE ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)vaddr,
		.iova = iova,
		.size = len
	};
	struct hw_iommu_ioas_map ioas = {
		.size = sizeof(ioas),
		.flags = HW_IOMMU_IOAS_MAP_FIXED_IOVA |
			 (perm & NICDEV_DMA_READ ? HW_IOMMU_IOAS_MAP_READABLE : 0) |
			 (perm & NICDEV_DMA_WRITE ? HW_IOMMU_IOAS_MAP_WRITEABLE : 0),
		.ioas_id = v->ioas,
		.user_va = (uintptr_t)vaddr,
		.length = len,
		.iova = iova
	};

	u64 limit = v->sys.memlock(v->sys.ctx);
	int ret;

	if (v->how == VFIO_NOIOMMU)
		return 0;
	if (v->mapped + len > limit) {
		snprintf(dev->why, sizeof(dev->why),
			 "%llu bytes have to be locked, the limit is %llu: ulimit -l unlimited, or "
			 "memlock in limits.conf, LimitMEMLOCK= in a systemd unit",
			 (unsigned long long)(v->mapped + len), (unsigned long long)limit);
		return -ENOMEM;
	}
	ret = v->how == VFIO_CDEV ? control(v, v->container, HW_IOMMU_IOAS_MAP, &ioas)
				  : control(v, v->container, VFIO_IOMMU_MAP_DMA, &map);
	if (ret == -ENOMEM)
		snprintf(dev->why, sizeof(dev->why),
			 "the kernel has no memory for it, or what was locked by others of this "
			 "process or user counts, too: ulimit -l unlimited");
	if (ret == -ENOSPC)
		snprintf(dev->why, sizeof(dev->why),
			 "more mappings than vfio_iommu_type1's dma_entry_limit: use huge pages");
	if (!ret)
		v->mapped += len;
	return ret;
}

static int op_dma_unmap(struct nicdev *dev, u64 iova, size_t len)
{
	struct vfio *v = to_vfio(dev);
	struct vfio_iommu_type1_dma_unmap unmap = { .argsz = sizeof(unmap),
						    .iova = iova,
						    .size = len };
	struct hw_iommu_ioas_unmap ioas = {
		.size = sizeof(ioas), .ioas_id = v->ioas, .iova = iova, .length = len
	};

	if (v->how == VFIO_NOIOMMU)
		return 0;
	v->mapped -= len;
	return v->how == VFIO_CDEV ? control(v, v->container, HW_IOMMU_IOAS_UNMAP, &ioas)
				   : control(v, v->container, VFIO_IOMMU_UNMAP_DMA, &unmap);
}

/* Where LEN bytes lie in memory, if they do so in one piece. */
static int op_dma_physical(struct nicdev *dev, void *vaddr, size_t len, u64 *iova)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	u64 first = 0;

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < len; at += dev->page_bytes) {
		u64 entry, page;
		off_t slot = ((uintptr_t)vaddr + at) / dev->page_bytes * sizeof(entry);

		if (pread(fd, &entry, sizeof(entry), slot) != sizeof(entry) ||
		    !(entry & PAGEMAP_PRESENT) || !(entry & PAGEMAP_PFN)) {
			close(fd);
			return -EPERM; /* the number of the page is root's to know */
		}
		page = (entry & PAGEMAP_PFN) * dev->page_bytes;
		if (!at)
			first = page;
		if (page != first + at) {
			close(fd);
			return -EXDEV;
		}
	}
	close(fd);
	*iova = first;
	return 0;
}

static int set_irqs(struct vfio *v, const int *fds, u32 nr)
{
	_Alignas(8) char bytes[sizeof(struct vfio_irq_set) + NICDEV_MAX_IRQS * sizeof(int)] = { 0 };
	struct vfio_irq_set *set = (void *)bytes;

	set->argsz = sizeof(*set) + nr * sizeof(int);
	set->flags = VFIO_IRQ_SET_ACTION_TRIGGER |
		     (nr ? VFIO_IRQ_SET_DATA_EVENTFD : VFIO_IRQ_SET_DATA_NONE);
	set->index = VFIO_PCI_MSIX_IRQ_INDEX;
	set->count = nr;
	if (nr)
		memcpy(set->data, fds, nr * sizeof(int));
	return control(v, v->device, VFIO_DEVICE_SET_IRQS, set);
}

/* All vectors in one call: older kernels cannot add any later. */
static int op_irq_enable(struct nicdev *dev, u32 nr)
{
	struct vfio *v = to_vfio(dev);
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	int ret = control(v, v->device, VFIO_DEVICE_GET_IRQ_INFO, &info);

	if (ret || !(info.flags & VFIO_IRQ_INFO_EVENTFD))
		return -EOPNOTSUPP;
	if (info.count < nr)
		return -EINVAL;
	for (u32 i = 0; i < nr && !ret; i++) {
		dev->irq_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		ret = dev->irq_fd[i] < 0 ? -errno : 0;
	}
	if (!ret)
		ret = set_irqs(v, dev->irq_fd, nr);
	for (u32 i = 0; i < nr && ret; i++) {
		if (dev->irq_fd[i] >= 0)
			close(dev->irq_fd[i]);
		dev->irq_fd[i] = -1;
	}
	return ret;
}

static int op_reset(struct nicdev *dev)
{
	struct vfio *v = to_vfio(dev);

	return v->can_reset ? control(v, v->device, VFIO_DEVICE_RESET, NULL) : -EOPNOTSUPP;
}

static u16 op_config_read16(struct nicdev *dev, u32 offset)
{
	struct vfio *v = to_vfio(dev);
	u16 value = 0xffff;

	if (v->sys.pread(v->sys.ctx, v->device, &value, sizeof(value), v->config_at + offset) !=
	    sizeof(value))
		return 0xffff;
	return value;
}

static int op_config_write16(struct nicdev *dev, u32 offset, u16 value)
{
	struct vfio *v = to_vfio(dev);

	return v->sys.pwrite(v->sys.ctx, v->device, &value, sizeof(value), v->config_at + offset) ==
			       sizeof(value)
		       ? 0
		       : -EIO;
}

static bool op_relax(struct nicdev *dev, u64 until_ps)
{
	(void)dev, (void)until_ps;
	cpu_relax();
	return true;
}

/* Everything that is open, in the order in which it may go: DMA ends with the device. */
static void op_close(struct nicdev *dev)
{
	struct vfio *v = to_vfio(dev);

	if (v->dev.nr_irqs)
		set_irqs(v, NULL, 0);
	if (v->bar)
		v->sys.munmap(v->sys.ctx, v->bar, v->bar_bytes);
	if (v->device >= 0)
		v->sys.close(v->sys.ctx, v->device);
	if (v->group >= 0)
		v->sys.close(v->sys.ctx, v->group);
	if (v->container >= 0)
		v->sys.close(v->sys.ctx, v->container);
	free(v);
}

#define OPS                                                                                \
	.name = "vfio", .read32 = op_read32, .write32 = op_write32, .dma_map = op_dma_map, \
	.dma_unmap = op_dma_unmap, .irq_enable = op_irq_enable, .reset = op_reset,         \
	.config_read16 = op_config_read16, .config_write16 = op_config_write16,            \
	.now_ps = nicdev_monotonic_ps, .relax = op_relax, .close = op_close
static const struct nicdev_ops vfio_ops = { OPS };
static const struct nicdev_ops noiommu_ops = { OPS, .dma_physical = op_dma_physical };

/*
 * --- opening
 * ----------------------------------------------------------------------------------------------
 */

static int map_registers(struct vfio *v)
{
	struct vfio_device_info info = { .argsz = sizeof(info) };
	struct vfio_region_info config = { .argsz = sizeof(config),
					   .index = VFIO_PCI_CONFIG_REGION_INDEX };
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	int ret = control(v, v->device, VFIO_DEVICE_GET_INFO, &info);

	if (!ret)
		ret = control(v, v->device, VFIO_DEVICE_GET_REGION_INFO, &config);
	if (!ret)
		ret = control(v, v->device, VFIO_DEVICE_GET_REGION_INFO, &bar);
	if (ret)
		return refuse(v, ret, "its regions: %s", strerror(-ret));
	v->can_reset = info.flags & VFIO_DEVICE_FLAGS_RESET;
	v->config_at = config.offset;
	if (bar.size < REG_BYTES || !(bar.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return refuse(v, -ENODEV, "BAR 0 of %llu bytes is not that of an 82599",
			      (unsigned long long)bar.size);
	if (v->can_reset)
		control(v, v->device, VFIO_DEVICE_RESET, NULL);
	/* Before the first register is read: with memory decoding off all of them read as ones. */
	ret = op_config_write16(&v->dev, PCI_CFG_COMMAND,
				op_config_read16(&v->dev, PCI_CFG_COMMAND) | PCI_COMMAND_MEM);
	if (ret)
		return refuse(v, ret, "its configuration space cannot be written");
	v->bar = v->sys.mmap(v->sys.ctx, v->device, bar.size, bar.offset);
	if (!v->bar)
		return refuse(v, -EIO, "BAR 0 cannot be mapped: %s", strerror(errno));
	v->bar_bytes = bar.size;
	v->dev.bar0 = v->bar;
	if (nicdev_gone(&v->dev))
		return refuse(
			v, -ENODEV,
			"STATUS reads 0xffffffff: the device is in D3 or gone; bind it again");
	return 0;
}

/* What can be said before anything is opened. */
static int check_port(struct vfio *v, bool unsafe)
{
	const struct sysfs_port *p = &v->port;

	if (strcmp(p->driver, "vfio-pci"))
		return refuse(v, -EBUSY, "bound to %s, not to vfio-pci: skbench hw bind %s",
			      p->driver[0] ? p->driver : "no driver", p->bdf);
	if (p->group < 0)
		return refuse(
			v, -ENODEV,
			"no IOMMU group: switch VT-d or AMD-Vi on and boot with intel_iommu=on");
	if ((v->how == VFIO_NOIOMMU || p->noiommu) && !(v->how == VFIO_NOIOMMU && unsafe))
		return refuse(
			v, -EPERM,
			"there is no IOMMU here: the device could write any memory. If that is "
			"all right: --vfio noiommu --enable-unsafe-noiommu, with "
			"vfio.enable_unsafe_noiommu_mode=1 and root");
	if (v->how == VFIO_NOIOMMU && !p->noiommu)
		return refuse(v, -EINVAL, "there is an IOMMU: --vfio group");
	return 0;
}

/* A name below vfio-dev is there since 6.1, the node and iommufd only where they are built in. */
static bool has_cdev(const struct vfio *v)
{
	char name[64], path[256], iommu[256];

	if (!cdev_name(v, name, sizeof(name)))
		return false;
	snprintf(path, sizeof(path), "%s/dev/vfio/devices/%s", v->env.root, name);
	snprintf(iommu, sizeof(iommu), "%s/dev/iommu", v->env.root);
	return !access(path, F_OK) && !access(iommu, F_OK);
}

static int open_device(struct vfio *v)
{
	if (v->how == VFIO_ANY)
		v->how = has_cdev(v) ? VFIO_CDEV : VFIO_GROUP;
	return v->how == VFIO_CDEV ? open_by_cdev(v) : open_by_group(v);
}

int vfio_open(const struct vfio_sys *sys, const struct sysfs_env *env, const char *bdf,
	      enum vfio_how how, bool unsafe, struct nicdev **out, char *err, size_t errlen)
{
	struct vfio *v = calloc(1, sizeof(*v));
	int ret;

	if (!v) {
		snprintf(err, errlen, "%s: no memory", bdf);
		return -ENOMEM;
	}
	nicdev_init(&v->dev, how == VFIO_NOIOMMU ? &noiommu_ops : &vfio_ops, bdf);
	v->sys = *sys;
	v->env = *env;
	v->how = how;
	v->err = err;
	v->errlen = errlen;
	v->container = v->group = v->device = -1;
	ret = sysfs_read_port(env, bdf, &v->port, err, errlen);
	if (!ret)
		ret = check_port(v, unsafe);
	if (!ret)
		ret = open_device(v);
	if (!ret)
		ret = map_registers(v);
	if (ret) {
		nicdev_close(&v->dev);
		return ret;
	}
	v->dev.vendor = v->port.vendor;
	v->dev.device = v->port.device;
	if (!v->dev.nr_ranges && how != VFIO_NOIOMMU) /* a kernel before 5.4 tells none */
		v->dev.range[v->dev.nr_ranges++] = (struct nicdev_range){ 0, 0xfedfffff };
	*out = &v->dev;
	return 0;
}
