/* SPDX-License-Identifier: MIT */
#include "hw/vfu/server.h"

#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BAR0_BYTES    0x80000 /* registers, and behind them the flash */
#define REG_BYTES     0x20000
#define MSIX_BYTES    0x4000
#define CONFIG_BYTES  4096
#define NR_REGIONS    9
#define NR_IRQS	      5
#define MSIX_VECTORS  64
#define CAP_PM	      0x40
#define CAP_MSIX      0x70
#define CAP_PCIE      0xa0
#define CFG_STATUS    0x06
#define CFG_CLASS     0x08
#define CFG_BAR(n)    (0x10 + 4 * (n))
#define CFG_SUBSYSTEM 0x2c
#define CFG_CAPS      0x34
#define ALL_ONES      0xffffffffu
#define WAIT_NS	      (100 * 1000000ull) /* the longest sleep, so that *stop is seen */

static void put16(u8 *p, u32 v)
{
	p[0] = v;
	p[1] = v >> 8;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v);
	put16(p + 2, v >> 16);
}

__attribute__((format(printf, 2, 3))) static int broken(struct vfu_server *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

/* As an X520's: power management, 64 MSI-X vectors in BAR 4, PCIe. */
static void make_config(struct vfu_server *s)
{
	u8 *c = s->config;

	memset(c, 0, sizeof(s->config));
	put16(c + PCI_CFG_VENDOR, s->dev->vendor);
	put16(c + PCI_CFG_DEVICE, s->dev->device);
	put16(c + CFG_STATUS, 0x10); /* capabilities */
	put32(c + CFG_CLASS, 0x02000001); /* Ethernet, revision 1 */
	c[CFG_BAR(0)] = c[CFG_BAR(4)] = 0x4; /* memory, 64 bits */
	put32(c + CFG_SUBSYSTEM, 0x00038086);
	c[CFG_CAPS] = CAP_PM;
	put32(c + CAP_PM, 0x00030001 | CAP_MSIX << 8);
	put32(c + CAP_MSIX, (MSIX_VECTORS - 1) << 16 | CAP_PCIE << 8 | 0x11);
	put32(c + CAP_MSIX + 4, 4); /* the table, in BAR 4 */
	put32(c + CAP_MSIX + 8, 0x2000 | 4); /* pending bits, the same */
	put32(c + CAP_PCIE, 0x00020010); /* an endpoint */
	put32(c + CAP_PCIE + 12, 0x00000082); /* Gen2 x8: what it can, and what it is */
	put16(c + CAP_PCIE + 18, 0x0082);
}

void vfu_server_init(struct vfu_server *s, struct model_82599 *m)
{
	memset(s, 0, sizeof(*s));
	s->m = m;
	s->dev = model_nicdev(m);
	make_config(s);
}

bool vfu_server_active(const struct vfu_server *s)
{
	u16 command = nicdev_config_read16(s->dev, PCI_CFG_COMMAND);

	return command != 0xffff && command & PCI_COMMAND_MASTER; /* ones: it is gone */
}

/*
 * --- memory
 * ----------------------------------------------------------------------------------------------
 */

static void drop_map(struct vfu_server *s, u32 i)
{
	struct vfu_server_map *map = &s->map[i];

	if (map->at) {
		s->dev->ops->dma_unmap(s->dev, map->iova, map->len);
		munmap(map->at, map->len);
	}
	*map = s->map[--s->nr_maps];
}

static void drop_irqs(struct vfu_server *s)
{
	for (u32 i = 0; i < s->dev->nr_irqs; i++) {
		if (s->dev->irq_fd[i] >= 0)
			close(s->dev->irq_fd[i]);
		s->dev->irq_fd[i] = -1;
	}
	s->dev->nr_irqs = 0;
}

void vfu_server_disconnect(struct vfu_server *s)
{
	nicdev_reset(s->dev); /* before its memory goes */
	while (s->nr_maps)
		drop_map(s, s->nr_maps - 1);
	drop_irqs(s);
	s->spoken = false;
	make_config(s);
}

static int dma_map(struct vfu_server *s, const struct vfu_dma_map *req, const int *fds, u32 nr_fds)
{
	const u32 perm = (req->flags & VFU_DMA_MAP_READ ? NICDEV_DMA_READ : 0) |
			 (req->flags & VFU_DMA_MAP_WRITE ? NICDEV_DMA_WRITE : 0);
	const int prot = PROT_READ | (perm & NICDEV_DMA_WRITE ? PROT_WRITE : 0);
	struct stat st;
	void *at = NULL;
	int ret;

	if (req->flags & ~(VFU_DMA_MAP_READ | VFU_DMA_MAP_WRITE) || nr_fds > 1 || !req->size ||
	    (req->address | req->size | req->offset) & 4095 ||
	    req->address + req->size - 1 < req->address || req->offset + req->size < req->offset)
		return -EINVAL;
	for (u32 i = 0; i < s->nr_maps; i++)
		if (req->address < s->map[i].iova + s->map[i].len &&
		    s->map[i].iova < req->address + req->size)
			return -EEXIST;
	if (s->nr_maps == VFU_MAX_MAPS)
		return -ENOSPC;
	if (nr_fds) {
		/* Beyond its end a mapping would be a SIGBUS of ours. */
		if (fstat(fds[0], &st))
			return -errno;
		if (st.st_size < 0 || (u64)st.st_size < req->offset + req->size)
			return -EINVAL;
		at = mmap(NULL, req->size, prot, MAP_SHARED, fds[0], req->offset);
		if (at == MAP_FAILED)
			return -errno;
		ret = s->dev->ops->dma_map(s->dev, req->address, at, req->size, perm);
		if (ret) {
			munmap(at, req->size);
			return ret;
		}
	}
	s->map[s->nr_maps++] = (struct vfu_server_map){ req->address, req->size, at };
	return 0;
}

static int dma_unmap(struct vfu_server *s, const struct vfu_dma_unmap *req)
{
	if (req->flags == VFU_DMA_UNMAP_ALL && !req->address && !req->size) {
		while (s->nr_maps)
			drop_map(s, s->nr_maps - 1);
		return 0;
	}
	if (req->flags)
		return -EINVAL;
	for (u32 i = 0; i < s->nr_maps; i++)
		if (s->map[i].iova == req->address && s->map[i].len == req->size) {
			drop_map(s, i);
			return 0;
		}
	return -ENOENT;
}

/*
 * --- interrupts
 * ----------------------------------------------------------------------------------------------
 */

static int set_irqs(struct vfu_server *s, const struct vfu_irq_set *req, const int *fds, u32 nr_fds)
{
	const u32 type = req->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;

	if (req->index >= NR_IRQS || req->start > MSIX_VECTORS ||
	    req->count > MSIX_VECTORS - req->start)
		return -EINVAL;
	if (req->index != VFIO_PCI_MSIX_IRQ_INDEX)
		return req->count ? -EINVAL : 0;
	if ((req->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -EOPNOTSUPP;
	if (!req->count && type == VFIO_IRQ_SET_DATA_NONE) {
		drop_irqs(s);
		return 0;
	}
	if (type != VFIO_IRQ_SET_DATA_EVENTFD || (nr_fds && nr_fds != req->count))
		return -EINVAL;
	for (u32 i = 0; i < req->count; i++) {
		u32 v = req->start + i;

		if (s->dev->irq_fd[v] >= 0)
			close(s->dev->irq_fd[v]);
		s->dev->irq_fd[v] = -1;
		if (!nr_fds)
			continue;
		s->dev->irq_fd[v] = vfu_dup(fds[i]);
		if (s->dev->irq_fd[v] < 0)
			return -errno;
		s->dev->nr_irqs = max(s->dev->nr_irqs, v + 1);
	}
	return 0;
}

/*
 * --- registers and configuration space
 * ----------------------------------------------------------------------------------------------
 */

static u64 region_bytes(u32 region)
{
	switch (region) {
	case VFIO_PCI_BAR0_REGION_INDEX:
		return BAR0_BYTES;
	case VFIO_PCI_BAR4_REGION_INDEX:
		return MSIX_BYTES;
	case VFIO_PCI_CONFIG_REGION_INDEX:
		return CONFIG_BYTES;
	default:
		return 0;
	}
}

static void read_bar0(struct vfu_server *s, u32 at, u32 count, u8 *to)
{
	/* Behind the registers lies the flash, which is empty. */
	if (at >= REG_BYTES) {
		memset(to, 0xff, count);
	} else if ((at | count) & 3) {
		s->dev->ops->read32(s->dev, at | 1); /* a violation, and ones */
		memset(to, 0xff, count);
	} else {
		for (u32 i = 0; i < count; i += 4)
			put32(to + i, s->dev->ops->read32(s->dev, at + i));
	}
}

static void write_bar0(struct vfu_server *s, u32 at, u32 count, const u8 *from)
{
	if (at >= REG_BYTES)
		return;
	if ((at | count) & 3) {
		s->dev->ops->write32(s->dev, at | 1, 0);
		return;
	}
	for (u32 i = 0; i < count; i += 4) {
		u32 value;

		memcpy(&value, from + i, sizeof(value));
		s->dev->ops->write32(s->dev, at + i, value);
	}
}

static void read_config(struct vfu_server *s, u32 at, u32 count, u8 *to)
{
	memset(to, 0, count);
	put16(s->config + PCI_CFG_COMMAND, nicdev_config_read16(s->dev, PCI_CFG_COMMAND));
	if (at < VFU_CFG_BYTES)
		memcpy(to, s->config + at, min(count, VFU_CFG_BYTES - at));
}

/* What software may write: the command, the base addresses, the interrupt line, MSI-X's control. */
static u32 config_mask(u32 at)
{
	if (at >= CFG_BAR(0) && at < CFG_BAR(6))
		return at == CFG_BAR(0) || at == CFG_BAR(4) ? 0 : 0xff;
	if (at == PCI_CFG_COMMAND)
		return 0x47;
	if (at == PCI_CFG_COMMAND + 1)
		return 0x05;
	if (at == CAP_MSIX + 3)
		return 0xc0;
	return at == 0x3c ? 0xff : 0;
}

static void write_config(struct vfu_server *s, u32 at, u32 count, const u8 *from)
{
	u32 command = nicdev_config_read16(s->dev, PCI_CFG_COMMAND);

	put16(s->config + PCI_CFG_COMMAND, command);
	for (u32 i = 0; i < count && at + i < VFU_CFG_BYTES; i++) {
		u32 mask = config_mask(at + i);

		s->config[at + i] = (s->config[at + i] & ~mask) | (from[i] & mask);
	}
	command = s->config[PCI_CFG_COMMAND] | s->config[PCI_CFG_COMMAND + 1] << 8;
	nicdev_config_write16(s->dev, PCI_CFG_COMMAND, command);
}

static int region_access(struct vfu_server *s, const struct vfu_region_access *req, u8 *data,
			 bool write)
{
	u64 bytes = region_bytes(req->region);

	if (req->count > VFU_MAX_DATA || req->offset > bytes || req->count > bytes - req->offset)
		return -EINVAL;
	switch (req->region) {
	case VFIO_PCI_BAR0_REGION_INDEX:
		if (write)
			write_bar0(s, req->offset, req->count, data);
		else
			read_bar0(s, req->offset, req->count, data);
		break;
	case VFIO_PCI_CONFIG_REGION_INDEX:
		if (write)
			write_config(s, req->offset, req->count, data);
		else
			read_config(s, req->offset, req->count, data);
		break;
	default: /* the MSI-X table, which the client keeps itself */
		if (!write)
			memset(data, 0, req->count);
		break;
	}
	return 0;
}

/*
 * --- messages
 * ----------------------------------------------------------------------------------------------
 */

/* A body's fixed part at BODY, whose LEN bytes must hold it. */
#define BODY(type, body, len) ((len) >= sizeof(type) ? (const type *)(body) : NULL)

static int say_version(struct vfu_server *s, const u8 *body, u32 len, u8 *out)
{
	static const char json[] = "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":"
				   "4096,\"max_dma_maps\":64}}";
	const struct vfu_version *req = BODY(struct vfu_version, body, len);

	if (!req)
		return broken(s, "a version message of %u bytes", len);
	if (len > sizeof(*req) && body[len - 1])
		return broken(s, "the version's JSON does not end in 0");
	if (req->major != VFU_MAJOR)
		return broken(s, "the client speaks version %u.%u of the protocol, not %u",
			      req->major, req->minor, VFU_MAJOR);
	s->spoken = true;
	*(struct vfu_version *)out =
		(struct vfu_version){ VFU_MAJOR, min(req->minor, (u16)VFU_MINOR) };
	memcpy(out + sizeof(*req), json, sizeof(json));
	return sizeof(*req) + sizeof(json);
}

static int region_info(const struct vfu_region_info *req, u8 *out)
{
	struct vfu_region_info info = *req;

	if (req->index >= NR_REGIONS)
		return -EINVAL;
	info.argsz = sizeof(info);
	info.size = region_bytes(req->index);
	info.flags = info.size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
	info.cap_offset = 0;
	info.offset = 0;
	memcpy(out, &info, sizeof(info));
	return sizeof(info);
}

static int irq_info(const struct vfu_irq_info *req, u8 *out)
{
	struct vfu_irq_info info = { sizeof(info), 0, req->index, 0 };

	if (req->index >= NR_IRQS)
		return -EINVAL;
	if (req->index == VFIO_PCI_MSIX_IRQ_INDEX) {
		info.flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
		info.count = MSIX_VECTORS;
	}
	memcpy(out, &info, sizeof(info));
	return sizeof(info);
}

/* Bytes of the answer's body at OUT; a negative errno, which is the answer, -EPROTO ends it all. */
static int answer(struct vfu_server *s, const struct vfu_header *h, const u8 *body, u32 len,
		  const int *fds, u32 nr_fds, u8 *out)
{
	const struct vfu_device_info info = { sizeof(info),
					      VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI,
					      NR_REGIONS, NR_IRQS };
	const struct vfu_region_access *access;
	const struct vfu_region_info *region;
	const struct vfu_dma_unmap *unmap;
	const struct vfu_irq_info *irq;
	const struct vfu_irq_set *set;
	const struct vfu_dma_map *map;
	int ret;

	if (h->command == VFU_VERSION)
		return s->spoken ? -EINVAL : say_version(s, body, len, out);
	if (!s->spoken)
		return broken(s, "command %u before the version", h->command);
	switch (h->command) {
	case VFU_DMA_MAP:
		map = BODY(struct vfu_dma_map, body, len);
		return map ? dma_map(s, map, fds, nr_fds) : -EINVAL;
	case VFU_DMA_UNMAP:
		unmap = BODY(struct vfu_dma_unmap, body, len);
		ret = unmap ? dma_unmap(s, unmap) : -EINVAL;
		if (ret)
			return ret;
		memcpy(out, unmap, sizeof(*unmap));
		return sizeof(*unmap);
	case VFU_GET_INFO:
		memcpy(out, &info, sizeof(info));
		return len < sizeof(info.argsz) ? -EINVAL : (int)sizeof(info);
	case VFU_GET_REGION_INFO:
		region = BODY(struct vfu_region_info, body, len);
		return region ? region_info(region, out) : -EINVAL;
	case VFU_GET_IRQ_INFO:
		irq = BODY(struct vfu_irq_info, body, len);
		return irq ? irq_info(irq, out) : -EINVAL;
	case VFU_SET_IRQS:
		set = BODY(struct vfu_irq_set, body, len);
		return set ? set_irqs(s, set, fds, nr_fds) : -EINVAL;
	case VFU_REGION_READ:
	case VFU_REGION_WRITE:
		access = BODY(struct vfu_region_access, body, len);
		if (!access ||
		    (h->command == VFU_REGION_WRITE && access->count > len - sizeof(*access)))
			return -EINVAL;
		memcpy(out, access, sizeof(*access));
		if (h->command == VFU_REGION_WRITE) {
			ret = region_access(s, access, (u8 *)body + sizeof(*access), true);
			return ret ? ret : (int)sizeof(*access);
		}
		ret = region_access(s, access, out + sizeof(*access), false);
		return ret ? ret : (int)(sizeof(*access) + access->count);
	case VFU_RESET:
		return nicdev_reset(s->dev);
	default:
		return -EOPNOTSUPP;
	}
}

int vfu_server_message(struct vfu_server *s, const void *msg, size_t len, const int *fds,
		       u32 nr_fds, void *reply)
{
	struct vfu_header h = { 0 }, *r = reply;
	int ret;

	s->messages++;
	if (len >= sizeof(h))
		memcpy(&h, msg, sizeof(h));
	if (len < sizeof(h) || h.bytes != len || len > sizeof(h) + VFU_MAX_BODY)
		ret = broken(s, "a message of %zu bytes that says it has %u", len, h.bytes);
	else if (h.flags & VFU_TYPE_MASK)
		ret = broken(s, "a message that is no command (flags 0x%x)", h.flags);
	else
		ret = answer(s, &h, (const u8 *)msg + sizeof(h), len - sizeof(h), fds, nr_fds,
			     (u8 *)reply + sizeof(h));
	for (u32 i = 0; i < nr_fds; i++)
		close(fds[i]);
	if (ret == -EPROTO)
		return ret;
	if (h.flags & VFU_NO_REPLY)
		return 0;
	*r = (struct vfu_header){ h.id, h.command, sizeof(h) + max(ret, 0),
				  VFU_TYPE_REPLY | (ret < 0 ? VFU_ERROR : 0), ret < 0 ? -ret : 0 };
	return r->bytes;
}

/*
 * --- the socket
 * ----------------------------------------------------------------------------------------------
 */

int vfu_listen(const char *path, char *err, size_t errlen)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) >= sizeof(a.sun_path)) {
		snprintf(err, errlen, "%s: a socket's path has %zu bytes at most", path,
			 sizeof(a.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1))
		return fd;
	ret = -errno;
	snprintf(err, errlen, "%s: %s%s", path, strerror(-ret),
		 ret == -EADDRINUSE ? ": is it served already? else remove it" : "");
	if (fd >= 0)
		close(fd);
	return ret;
}

static u64 real_ps(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec) * 1000u;
}

/* Runs S's device up to PRESENT. How long it has nothing to do from then on, in ns. */
static u64 catch_up(struct vfu_server *s, u64 present)
{
	u64 now, next;

	/* Up to there and no further: a device that cannot keep up still hears its client. */
	while (nicdev_relax(s->dev, present + s->offset_ps))
		;
	now = real_ps() + s->offset_ps;
	next = model_next_ps(s->m);
	if (next == ~0ull)
		return WAIT_NS;
	return next > now ? min((next - now) / 1000, (u64)WAIT_NS) : 0;
}

/* The connection is over, for the reason RET. */
static void hang_up(struct vfu_server *s, int ret)
{
	s->ret = ret;
	s->was_active = vfu_server_active(s);
	s->over = true;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void take_client(struct vfu_server *s)
{
	const struct timeval patience = { .tv_sec = 2 };

	s->fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	if (s->fd < 0) {
		snprintf(s->why, sizeof(s->why), "accept: %s", strerror(errno));
		hang_up(s, -errno);
		return;
	}
	setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	vfu_stream_init(&s->in, s->fd);
}

/* One message of the client's, and its answer. */
static void hear_client(struct vfu_server *s)
{
	_Alignas(8) u8 msg[sizeof(struct vfu_header) + VFU_MAX_BODY], reply[sizeof(msg)];
	int fds[VFU_MAX_FDS], ret;
	u32 nr_fds = 0;

	ret = vfu_stream_read(&s->in, msg, sizeof(msg), fds, &nr_fds);
	if (ret == -EAGAIN)
		ret = broken(s, "a message that does not come to its end");
	else if (ret == -EPROTO)
		broken(s, "%s", s->in.why);
	if (ret > 0) {
		catch_up(s, real_ps());
		ret = vfu_server_message(s, msg, ret, fds, nr_fds, reply);
		if (ret > 0 && vfu_stream_write(s->fd, reply, ret, NULL, 0))
			hang_up(s, 0);
		if (ret >= 0)
			return;
	}
	hang_up(s, ret); /* 0: the client has closed */
}

int vfu_serve(struct vfu_server *const *server, u32 n, const volatile int *stop)
{
	struct pollfd p[VFU_MAX_PORTS];

	for (u32 i = 0; i < n; i++) {
		server[i]->fd = -1;
		server[i]->over = false;
		server[i]->why[0] = 0;
		/* The device's clock goes on from where it stands. */
		server[i]->offset_ps = nicdev_now_ps(server[i]->dev) - real_ps();
	}
	for (;;) {
		u64 ns = WAIT_NS, present = real_ps();
		struct timespec wait = { 0 };
		u32 over = 0;

		/* What leaves one port may make another one's next event. */
		for (u32 i = 0; i < n; i++)
			catch_up(server[i], present);
		for (u32 i = 0; i < n; i++) {
			struct vfu_server *s = server[i];

			ns = min(ns, catch_up(s, present));
			over += s->over;
			p[i] = (struct pollfd){ s->over	     ? -1
						: s->fd >= 0 ? s->fd
							     : s->listener,
						POLLIN, 0 };
		}
		if (over == n)
			return 0;
		if (*stop) {
			for (u32 i = 0; i < n; i++)
				if (!server[i]->over)
					hang_up(server[i], -EINTR);
			return -EINTR;
		}
		wait.tv_nsec = ns;
		if (ppoll(p, n, &wait, NULL) <= 0)
			continue;
		for (u32 i = 0; i < n; i++)
			if (p[i].revents && server[i]->fd >= 0)
				hear_client(server[i]);
			else if (p[i].revents)
				take_client(server[i]);
	}
}
