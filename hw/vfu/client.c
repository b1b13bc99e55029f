/* SPDX-License-Identifier: MIT */
#include "hw/vfu/client.h"
#include "hw/vfu/stream.h"

#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ALL_ONES       0xffffffffu
#define REG_BYTES      0x20000
#define ANSWER_SECONDS 10
#define LOOK_EVERY     256 /* calls of relax() to a look at the socket */

struct vfu {
	struct nicdev dev;
	int fd;
	pthread_mutex_t lock; /* one message and its answer at a time */
	u16 id;
	bool lost; /* the server does not answer any more */
	u32 relaxed;
	u32 nr_vectors;
	struct vfu_stream in;
};

static struct vfu *to_vfu(struct nicdev *dev)
{
	return container_of(dev, struct vfu, dev);
}

static bool is_lost(const struct vfu *v)
{
	return __atomic_load_n(&v->lost, __ATOMIC_RELAXED);
}

static int lose(struct vfu *v)
{
	__atomic_store_n(&v->lost, true, __ATOMIC_RELAXED);
	return -ENODEV;
}

/* Waits for the answer to the message that was sent last. Its body's bytes, or a negative errno. */
static int wait_answer(struct vfu *v, u16 command, void *to, size_t room)
{
	_Alignas(8) u8 msg[sizeof(struct vfu_header) + VFU_MAX_BODY];
	struct vfu_header h;
	int fds[VFU_MAX_FDS], n;
	u32 nr_fds;

	n = vfu_stream_read(&v->in, msg, sizeof(msg), fds, &nr_fds);
	if (n <= 0)
		return lose(v);
	while (nr_fds)
		close(fds[--nr_fds]);
	memcpy(&h, msg, sizeof(h));
	if (h.id != v->id || h.command != command || (h.flags & VFU_TYPE_MASK) != VFU_TYPE_REPLY)
		return lose(v); /* what it says cannot be trusted any more */
	if (h.flags & VFU_ERROR)
		return h.error && h.error < 4096 ? -(int)h.error : -EIO;
	n -= sizeof(h);
	if (room)
		memcpy(to, msg + sizeof(h), min((size_t)n, room));
	return n;
}

/* BODY and then DATA, in one message; FD beside it if that is not negative. */
static int call(struct vfu *v, u16 command, const void *body, size_t len, const void *data,
		size_t data_len, int fd, bool answer, void *to, size_t room)
{
	_Alignas(8) u8 msg[sizeof(struct vfu_header) + VFU_MAX_BODY];
	struct vfu_header *h = (void *)msg;
	int ret = -ENODEV;

	pthread_mutex_lock(&v->lock);
	if (!is_lost(v)) {
		*h = (struct vfu_header){ ++v->id, command, sizeof(*h) + len + data_len,
					  answer ? 0 : VFU_NO_REPLY, 0 };
		if (len)
			memcpy(msg + sizeof(*h), body, len);
		if (data_len)
			memcpy(msg + sizeof(*h) + len, data, data_len);
		if (vfu_stream_write(v->fd, msg, h->bytes, &fd, fd >= 0))
			ret = lose(v);
		else
			ret = answer ? wait_answer(v, command, to, room) : 0;
	}
	pthread_mutex_unlock(&v->lock);
	return ret;
}

/* A request whose answer has the same shape. 0 or a negative errno. */
static int ask(struct vfu *v, u16 command, void *body, size_t len)
{
	int ret = call(v, command, body, len, NULL, 0, -1, true, body, len);

	if (ret < 0)
		return ret;
	return (size_t)ret < len ? lose(v) : 0;
}

static int region_read(struct vfu *v, u32 region, u64 at, void *to, u32 count)
{
	const struct vfu_region_access req = { at, region, count };
	u8 answer[sizeof(req) + 8];
	int ret = call(v, VFU_REGION_READ, &req, sizeof(req), NULL, 0, -1, true, answer,
		       sizeof(req) + count);

	if (ret < 0)
		return ret;
	if (ret != (int)(sizeof(req) + count))
		return lose(v);
	memcpy(to, answer + sizeof(req), count);
	return 0;
}

static int region_write(struct vfu *v, u32 region, u64 at, const void *from, u32 count, bool posted)
{
	struct vfu_region_access req = { at, region, count };
	int ret = call(v, VFU_REGION_WRITE, &req, sizeof(req), from, count, -1, !posted, &req,
		       sizeof(req));

	return min(ret, 0);
}

/*
 * --- operations
 * ----------------------------------------------------------------------------------------------
 */

static u32 op_read32(struct nicdev *dev, u32 reg)
{
	u32 value;

	return region_read(to_vfu(dev), VFIO_PCI_BAR0_REGION_INDEX, reg, &value, sizeof(value))
		       ? ALL_ONES
		       : value;
}

static void op_write32(struct nicdev *dev, u32 reg, u32 value)
{
	region_write(to_vfu(dev), VFIO_PCI_BAR0_REGION_INDEX, reg, &value, sizeof(value), true);
}

/* The same bytes at the same place, but as a file. Its descriptor, or a negative errno. */
static int share(char *vaddr, size_t len, u32 page_bytes)
{
	int fd = memfd_create("skbench-dma", MFD_CLOEXEC), ret = 0;
	char *copy = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, len))
		copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (copy == MAP_FAILED) {
		ret = -errno;
		close(fd);
		return ret;
	}
	/* What is all zero stays a hole. */
	for (size_t at = 0; at < len; at += page_bytes)
		if (vaddr[at] || memcmp(vaddr + at, vaddr + at + 1, page_bytes - 1))
			memcpy(copy + at, vaddr + at, page_bytes);
	munmap(copy, len);
	if (mmap(vaddr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int op_dma_map(struct nicdev *dev, u64 iova, void *vaddr, size_t len, u32 perm)
{
	const struct vfu_dma_map req = { .argsz = sizeof(req),
					 .flags = (perm & NICDEV_DMA_READ ? VFU_DMA_MAP_READ : 0) |
						  (perm & NICDEV_DMA_WRITE ? VFU_DMA_MAP_WRITE : 0),
					 .address = iova,
					 .size = len };
	int fd, ret;

	if (is_lost(to_vfu(dev))) {
		snprintf(dev->why, sizeof(dev->why), "the server is gone");
		return -ENODEV;
	}
	fd = share(vaddr, len, dev->page_bytes);
	if (fd < 0) {
		snprintf(dev->why, sizeof(dev->why), "a shared file of %zu bytes: %s", len,
			 strerror(-fd));
		return fd;
	}
	ret = call(to_vfu(dev), VFU_DMA_MAP, &req, sizeof(req), NULL, 0, fd, true, NULL, 0);
	close(fd);
	return min(ret, 0);
}

static int op_dma_unmap(struct nicdev *dev, u64 iova, size_t len)
{
	struct vfu_dma_unmap req = { .argsz = sizeof(req), .address = iova, .size = len };

	return ask(to_vfu(dev), VFU_DMA_UNMAP, &req, sizeof(req));
}

static int op_irq_enable(struct nicdev *dev, u32 nr)
{
	struct vfu *v = to_vfu(dev);
	int ret = 0;

	if (!v->nr_vectors)
		return -EOPNOTSUPP;
	if (nr > v->nr_vectors)
		return -EINVAL;
	for (u32 i = 0; i < nr && !ret; i++) {
		const struct vfu_irq_set req = { .argsz = sizeof(req),
						 .flags = VFIO_IRQ_SET_ACTION_TRIGGER |
							  VFIO_IRQ_SET_DATA_EVENTFD,
						 .index = VFIO_PCI_MSIX_IRQ_INDEX,
						 .start = i,
						 .count = 1 };

		dev->irq_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		ret = dev->irq_fd[i] < 0 ? -errno
					 : call(v, VFU_SET_IRQS, &req, sizeof(req), NULL, 0,
						dev->irq_fd[i], true, NULL, 0);
		ret = min(ret, 0);
	}
	for (u32 i = 0; i < nr && ret; i++) {
		if (dev->irq_fd[i] >= 0)
			close(dev->irq_fd[i]);
		dev->irq_fd[i] = -1;
	}
	return ret;
}

static int op_reset(struct nicdev *dev)
{
	return min(call(to_vfu(dev), VFU_RESET, NULL, 0, NULL, 0, -1, true, NULL, 0), 0);
}

static u16 op_config_read16(struct nicdev *dev, u32 offset)
{
	u16 value;

	return region_read(to_vfu(dev), VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, sizeof(value))
		       ? 0xffff
		       : value;
}

static int op_config_write16(struct nicdev *dev, u32 offset, u16 value)
{
	return region_write(to_vfu(dev), VFIO_PCI_CONFIG_REGION_INDEX, offset, &value,
			    sizeof(value), false);
}

/* The other process needs a CPU, too. A server that is gone is noticed here, where loops wait. */
static bool op_relax(struct nicdev *dev, u64 until_ps)
{
	struct vfu *v = to_vfu(dev);
	struct pollfd p = { .fd = v->fd, .events = POLLRDHUP };

	(void)until_ps;
	if (__atomic_add_fetch(&v->relaxed, 1, __ATOMIC_RELAXED) % LOOK_EVERY == 0 &&
	    poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR))
		lose(v);
	sched_yield();
	return !is_lost(v);
}

static void op_close(struct nicdev *dev)
{
	struct vfu *v = to_vfu(dev);

	close(v->fd);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static const struct nicdev_ops vfu_ops = { .name = "vfio-user",
					   .read32 = op_read32,
					   .write32 = op_write32,
					   .dma_map = op_dma_map,
					   .dma_unmap = op_dma_unmap,
					   .irq_enable = op_irq_enable,
					   .reset = op_reset,
					   .config_read16 = op_config_read16,
					   .config_write16 = op_config_write16,
					   .now_ps = nicdev_monotonic_ps,
					   .relax = op_relax,
					   .close = op_close };

bool vfu_lost(const struct nicdev *dev)
{
	return dev->ops == &vfu_ops && is_lost(container_of(dev, struct vfu, dev));
}

/*
 * --- opening
 * ----------------------------------------------------------------------------------------------
 */

static int connect_to(const char *path)
{
	const struct timeval wait = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int speak(struct vfu *v, char *err, size_t errlen)
{
	static const char json[] = "{\"capabilities\":{\"max_msg_fds\":1,\"max_data_xfer_size\":"
				   "4096}}";
	struct vfu_version version = { VFU_MAJOR, VFU_MINOR };
	int ret = call(v, VFU_VERSION, &version, sizeof(version), json, sizeof(json), -1, true,
		       &version, sizeof(version));

	if (ret >= (int)sizeof(version) && version.major == VFU_MAJOR)
		return 0;
	snprintf(err, errlen, "%s: %s", v->dev.name,
		 is_lost(v) ? "what listens there does not speak vfio-user"
			    : "it speaks another version of vfio-user than 0");
	return -EPROTO;
}

/* What is there, and whether it has what a driver needs. */
static int look_at(struct vfu *v, char *err, size_t errlen)
{
	struct vfu_device_info info = { .argsz = sizeof(info) };
	struct vfu_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfu_irq_info irq = { .argsz = sizeof(irq), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	struct nicdev *dev = &v->dev;

	if (ask(v, VFU_GET_INFO, &info, sizeof(info)) ||
	    ask(v, VFU_GET_REGION_INFO, &bar, sizeof(bar)) || bar.size < REG_BYTES) {
		snprintf(err, errlen, "%s: it has no BAR 0 of 128 KB, as an 82599 has", dev->name);
		return -ENODEV;
	}
	if (!ask(v, VFU_GET_IRQ_INFO, &irq, sizeof(irq)) && irq.flags & VFIO_IRQ_INFO_EVENTFD)
		v->nr_vectors = irq.count;
	if (info.flags & VFIO_DEVICE_FLAGS_RESET)
		op_reset(dev);
	op_config_write16(dev, PCI_CFG_COMMAND,
			  op_config_read16(dev, PCI_CFG_COMMAND) | PCI_COMMAND_MEM);
	dev->vendor = op_config_read16(dev, PCI_CFG_VENDOR);
	dev->device = op_config_read16(dev, PCI_CFG_DEVICE);
	if (!is_lost(v))
		return 0;
	snprintf(err, errlen, "%s: the server went away", dev->name);
	return -ENODEV;
}

int vfu_open(const char *path, struct nicdev **out, char *err, size_t errlen)
{
	struct vfu *v = calloc(1, sizeof(*v));
	const char *base = strrchr(path, '/');
	int ret;

	if (!v) {
		snprintf(err, errlen, "%s: no memory", path);
		return -ENOMEM;
	}
	nicdev_init(&v->dev, &vfu_ops, base ? base + 1 : path);
	pthread_mutex_init(&v->lock, NULL);
	/* The protocol tells no ranges: all but the window of the interrupt messages. */
	v->dev.range[0] = (struct nicdev_range){ 0, 0xfedfffff };
	v->dev.range[1] = (struct nicdev_range){ 0xfef00000, 0xffffffffffffull };
	v->dev.nr_ranges = 2;
	ret = v->fd = connect_to(path);
	if (ret < 0) {
		snprintf(err, errlen, "%s: %s%s", path, strerror(-ret),
			 ret == -ENOENT || ret == -ECONNREFUSED
				 ? ": nobody serves there (skbench hw serve --socket PATH)"
				 : "");
		pthread_mutex_destroy(&v->lock);
		free(v);
		return ret;
	}
	vfu_stream_init(&v->in, v->fd);
	ret = speak(v, err, errlen);
	if (!ret)
		ret = look_at(v, err, errlen);
	if (ret) {
		op_close(&v->dev);
		return ret;
	}
	*out = &v->dev;
	return 0;
}
