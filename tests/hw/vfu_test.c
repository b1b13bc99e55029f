/* SPDX-License-Identifier: MIT */
/*
 * The vfio-user server on its own: what it answers, and that nothing a client may send does it any
 * harm. What both ends do together is serve_test.py's.
 */
#include "hw/ixgbe_regs.h"
#include "hw/vfu/server.h"
#include "tests/support/model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define STATUS_REG 0x00008
#define RAL0_REG   0x05400
#define MAP_AT	   (16u << 20)
#define MAP_BYTES  (2u << 20)

struct rig {
	struct model_82599 *m;
	struct vfu_server s;
	_Alignas(8) u8 msg[sizeof(struct vfu_header) + VFU_MAX_BODY];
	_Alignas(8) u8 reply[sizeof(struct vfu_header) + VFU_MAX_BODY];
	struct vfu_header answer;
	u16 id;
};

static void open_rig(struct rig *r)
{
	struct model_params mp = { .seed = 1 };
	char err[200];

	memset(r, 0, sizeof(*r));
	assert_int_equal(model_open(&mp, &r->m, err, sizeof(err)), 0);
	vfu_server_init(&r->s, r->m);
}

static void close_rig(struct rig *r)
{
	vfu_server_disconnect(&r->s);
	nicdev_close(r->s.dev);
}

/* The answer's errno, 0 for none; its body is at r->reply behind the header. */
static int say(struct rig *r, u16 command, u32 flags, const void *body, u32 len, const int *fds,
	       u32 nr_fds)
{
	const struct vfu_header h = { ++r->id, command, sizeof(h) + len, flags, 0 };
	int ret;

	memcpy(r->msg, &h, sizeof(h));
	if (len)
		memcpy(r->msg + sizeof(h), body, len);
	ret = vfu_server_message(&r->s, r->msg, h.bytes, fds, nr_fds, r->reply);
	if (ret < 0)
		return ret;
	if (flags & VFU_NO_REPLY) {
		assert_int_equal(ret, 0);
		return 0;
	}
	memcpy(&r->answer, r->reply, sizeof(r->answer));
	assert_int_equal(r->answer.bytes, ret);
	assert_int_equal(r->answer.id, r->id);
	assert_int_equal(r->answer.command, command);
	assert_int_equal(r->answer.flags & VFU_TYPE_MASK, VFU_TYPE_REPLY);
	assert_int_equal(!!(r->answer.flags & VFU_ERROR), !!r->answer.error);
	return r->answer.error;
}

static void say_version(struct rig *r)
{
	const struct vfu_version v = { 0, 1 };
	const struct vfu_version *said = (void *)(r->reply + sizeof(struct vfu_header));

	assert_int_equal(say(r, VFU_VERSION, 0, &v, sizeof(v), NULL, 0), 0);
	assert_int_equal(said->major, 0);
	assert_int_equal(said->minor, 1);
	assert_int_equal(r->reply[r->answer.bytes - 1], 0);
}

static int memory(size_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0 && !ftruncate(fd, bytes));
	return fd;
}

static u32 open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	u32 n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void version(void **state)
{
	struct vfu_version v = { 1, 0 };
	const char json[] = { 0, 0, 1, 0, '{', '}' };
	struct rig r;
	u32 argsz = 16;

	(void)state;
	open_rig(&r);
	assert_int_equal(say(&r, VFU_GET_INFO, 0, &argsz, 4, NULL, 0), -EPROTO);
	assert_non_null(strstr(r.s.why, "before the version"));
	assert_int_equal(say(&r, VFU_VERSION, 0, &v, sizeof(v), NULL, 0), -EPROTO);
	assert_non_null(strstr(r.s.why, "1.0"));
	assert_int_equal(say(&r, VFU_VERSION, 0, json, sizeof(json), NULL, 0), -EPROTO);
	assert_int_equal(say(&r, VFU_VERSION, 0, json, 3, NULL, 0), -EPROTO);
	say_version(&r);
	v.major = 0;
	assert_int_equal(say(&r, VFU_VERSION, 0, &v, sizeof(v), NULL, 0), EINVAL); /* once */
	assert_int_equal(say(&r, VFU_GET_INFO, 0, &argsz, 4, NULL, 0), 0);
	assert_int_equal(say(&r, VFU_GET_INFO, VFU_TYPE_REPLY, &argsz, 4, NULL, 0), -EPROTO);
	assert_int_equal(say(&r, 99, 0, NULL, 0, NULL, 0), EOPNOTSUPP);
	assert_int_equal(say(&r, VFU_DMA_READ, 0, NULL, 0, NULL, 0), EOPNOTSUPP);
	close_rig(&r);
}

static void what_it_is(void **state)
{
	static const u64 bytes[9] = { [0] = 0x80000, [4] = 0x4000, [7] = 4096 };
	const u8 *body;
	struct rig r;

	(void)state;
	open_rig(&r);
	body = r.reply + sizeof(struct vfu_header);
	say_version(&r);
	for (u32 i = 0; i < 10; i++) {
		const struct vfu_region_info ask = { .argsz = sizeof(ask), .index = i };
		const struct vfu_region_info *is = (const void *)body;

		assert_int_equal(say(&r, VFU_GET_REGION_INFO, 0, &ask, sizeof(ask), NULL, 0),
				 i < 9 ? 0 : EINVAL);
		if (i < 9)
			assert_int_equal(is->size, bytes[i]);
	}
	for (u32 i = 0; i < 6; i++) {
		const struct vfu_irq_info ask = { .argsz = sizeof(ask), .index = i };
		const struct vfu_irq_info *is = (const void *)body;

		assert_int_equal(say(&r, VFU_GET_IRQ_INFO, 0, &ask, sizeof(ask), NULL, 0),
				 i < 5 ? 0 : EINVAL);
		if (i < 5)
			assert_int_equal(is->count, i == VFIO_PCI_MSIX_IRQ_INDEX ? 64 : 0);
	}
	assert_int_equal(say(&r, VFU_GET_REGION_INFO, 0, body, 31, NULL, 0), EINVAL);
	close_rig(&r);
}

static u32 read_region(struct rig *r, u32 region, u64 at, u32 count, int error)
{
	const struct vfu_region_access req = { at, region, count };
	u32 value = 0;

	assert_int_equal(say(r, VFU_REGION_READ, 0, &req, sizeof(req), NULL, 0), error);
	if (error)
		return 0;
	assert_int_equal(r->answer.bytes, sizeof(struct vfu_header) + sizeof(req) + count);
	memcpy(&value, r->reply + sizeof(struct vfu_header) + sizeof(req), min(count, 4u));
	return value;
}

static void write_region(struct rig *r, u32 region, u64 at, u32 count, u32 value, int error)
{
	struct {
		struct vfu_region_access req;
		u32 value;
	} w = { { at, region, count }, value };

	assert_int_equal(say(r, VFU_REGION_WRITE, 0, &w, sizeof(w.req) + min(count, 4u), NULL, 0),
			 error);
}

static void regions(void **state)
{
	struct rig r;
	u32 sum = 0;

	(void)state;
	open_rig(&r);
	say_version(&r);
	assert_int_equal(read_region(&r, 7, 0, 4, 0), 0x10fb8086);
	assert_int_equal(read_region(&r, 7, 0x34, 1, 0), 0x40);
	assert_int_equal(read_region(&r, 7, 0x0a, 2, 0), 0x0200);
	assert_int_equal(read_region(&r, 7, 0x400, 4, 0), 0);
	assert_int_equal(read_region(&r, 0, RAL0_REG, 4, 0), 0x99211b00);
	assert_int_equal(read_region(&r, 0, 0x20000, 4, 0), 0xffffffff); /* flash */
	/* The EEPROM's words up to 0x3f sum up to what its checksum makes of them. */
	for (u32 w = 0; w < 0x40; w++) {
		write_region(&r, 0, IXGBE_EERD, 4, w << 2 | IXGBE_EERD_START, 0);
		assert_true(read_region(&r, 0, IXGBE_EERD, 4, 0) & IXGBE_EERD_DONE);
		sum += read_region(&r, 0, IXGBE_EERD, 4, 0) >> IXGBE_EERD_DATA_SHIFT;
	}
	assert_int_equal(sum & 0xffff, 0xbaba);
	assert_int_equal(model_nr_violations(r.m), 0);
	read_region(&r, 0, RAL0_REG, 2, 0);
	assert_int_equal(model_violations(r.m, V_MMIO), 1);
	write_region(&r, 0, RAL0_REG + 2, 4, 0, 0);
	assert_int_equal(model_violations(r.m, V_MMIO), 2);
	/* Bus mastering is the driver's to switch; identity is not. */
	assert_false(vfu_server_active(&r.s));
	write_region(&r, 7, 4, 2, 6, 0);
	assert_true(vfu_server_active(&r.s));
	assert_int_equal(read_region(&r, 7, 4, 2, 0), 6);
	write_region(&r, 7, 0, 4, 0, 0);
	assert_int_equal(read_region(&r, 7, 0, 4, 0), 0x10fb8086);
	assert_int_equal(say(&r, VFU_RESET, 0, NULL, 0, NULL, 0), 0);
	assert_false(vfu_server_active(&r.s));
	/* Ends, and what is beyond them. */
	read_region(&r, 7, 4092, 4, 0);
	read_region(&r, 7, 4093, 4, EINVAL);
	read_region(&r, 0, ~0ull, 4, EINVAL);
	read_region(&r, 0, 0x80000 - 4, 4, 0);
	read_region(&r, 2, 0, 4, EINVAL);
	read_region(&r, 9, 0, 4, EINVAL);
	read_region(&r, 0, 0, VFU_MAX_DATA + 4, EINVAL);
	read_region(&r, 0, 0, 0, 0);
	write_region(&r, 0, STATUS_REG, 64, 0, EINVAL); /* more than came */
	close_rig(&r);
}

static int map_memory(struct rig *r, u64 iova, u64 bytes, u64 offset, u32 flags, int fd)
{
	const struct vfu_dma_map req = { sizeof(req), flags, offset, iova, bytes };

	return say(r, VFU_DMA_MAP, 0, &req, sizeof(req), &fd, fd >= 0);
}

static int unmap_memory(struct rig *r, u64 iova, u64 bytes, u32 flags)
{
	const struct vfu_dma_unmap req = { sizeof(req), flags, iova, bytes };

	return say(r, VFU_DMA_UNMAP, 0, &req, sizeof(req), NULL, 0);
}

static void maps(void **state)
{
	const u32 both = VFU_DMA_MAP_READ | VFU_DMA_MAP_WRITE;
	const u32 before = open_files();
	struct rig r;

	(void)state;
	open_rig(&r);
	say_version(&r);
	assert_int_equal(map_memory(&r, MAP_AT, MAP_BYTES, 0, both, memory(MAP_BYTES)), 0);
	assert_int_equal(map_memory(&r, MAP_AT + 4096, 4096, 0, both, memory(MAP_BYTES)), EEXIST);
	assert_int_equal(map_memory(&r, 1ull << 40, 4096, 0, both, -1), 0); /* no file */
	assert_int_equal(map_memory(&r, 1ull << 41, 4096, 4096, both, memory(4096)), EINVAL);
	assert_int_equal(map_memory(&r, 1ull << 41, 4095, 0, both, memory(4096)), EINVAL);
	assert_int_equal(map_memory(&r, 1ull << 41, 0, 0, both, memory(4096)), EINVAL);
	assert_int_equal(map_memory(&r, 1ull << 41, 4096, 0, 8, memory(4096)), EINVAL);
	assert_int_equal(map_memory(&r, ~0ull << 12, 8192, 0, both, -1), EINVAL);
	assert_int_equal(map_memory(&r, 1ull << 41, 4096, ~0ull << 12, both, memory(4096)), EINVAL);
	assert_int_equal(unmap_memory(&r, MAP_AT, 4096, 0), ENOENT);
	assert_int_equal(unmap_memory(&r, MAP_AT, MAP_BYTES, 1), EINVAL);
	assert_int_equal(unmap_memory(&r, MAP_AT, MAP_BYTES, 0), 0);
	assert_int_equal(r.s.nr_maps, 1);
	for (u32 i = 1; i < VFU_MAX_MAPS; i++)
		assert_int_equal(map_memory(&r, (u64)i << 32, 4096, 0, both, memory(4096)), 0);
	assert_int_equal(map_memory(&r, 1ull << 50, 4096, 0, both, memory(4096)), ENOSPC);
	assert_int_equal(unmap_memory(&r, 0, 0, VFU_DMA_UNMAP_ALL), 0);
	assert_int_equal(r.s.nr_maps, 0);
	close_rig(&r);
	assert_int_equal(open_files(), before);
}

static int set_irqs(struct rig *r, u32 flags, u32 index, u32 start, u32 count, u32 nr_fds)
{
	const struct vfu_irq_set req = { sizeof(req), flags, index, start, count };
	int fds[8];

	for (u32 i = 0; i < nr_fds; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK);
	return say(r, VFU_SET_IRQS, 0, &req, sizeof(req), fds, nr_fds);
}

static void irqs(void **state)
{
	const u32 fd = VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_EVENTFD;
	const u32 none = VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_NONE;
	const u32 before = open_files();
	struct rig r;

	(void)state;
	open_rig(&r);
	say_version(&r);
	assert_int_equal(set_irqs(&r, fd, 2, 0, 4, 4), 0);
	assert_int_equal(r.s.dev->nr_irqs, 4);
	assert_int_equal(set_irqs(&r, fd, 2, 2, 2, 2), 0); /* others for two of them */
	assert_int_equal(set_irqs(&r, fd, 2, 1, 1, 0), 0); /* none for one */
	assert_int_equal(r.s.dev->irq_fd[1], -1);
	assert_int_equal(open_files(), before + 3);
	assert_int_equal(set_irqs(&r, fd, 2, 0, 4, 3), EINVAL);
	assert_int_equal(set_irqs(&r, fd, 2, 63, 2, 2), EINVAL);
	assert_int_equal(set_irqs(&r, fd, 2, ~0u, 2, 2), EINVAL);
	assert_int_equal(set_irqs(&r, fd, 9, 0, 1, 1), EINVAL);
	assert_int_equal(set_irqs(&r, fd, 0, 0, 1, 1), EINVAL);
	assert_int_equal(set_irqs(&r, VFIO_IRQ_SET_ACTION_MASK, 2, 0, 1, 0), EOPNOTSUPP);
	assert_int_equal(set_irqs(&r, none, 2, 0, 0, 0), 0);
	assert_int_equal(r.s.dev->nr_irqs, 0);
	assert_int_equal(set_irqs(&r, fd, 2, 0, 8, 8), 0);
	close_rig(&r);
	assert_int_equal(open_files(), before);
}

/* Random messages and good ones with random bytes in them: an answer, a refusal, or the end. */
static void anything(void **state)
{
	const u32 before = open_files();
	u32 ends = 0, refused = 0, done = 0;
	struct rng rng = { model_seed("vfu_test", 1) };
	struct rig r;

	(void)state;
	open_rig(&r);
	say_version(&r);
	for (u32 i = 0; i < 30000; i++) {
		union {
			struct vfu_dma_map map;
			struct vfu_dma_unmap unmap;
			struct vfu_region_access access;
			struct vfu_irq_set irqs;
			u32 word[20];
		} body;
		struct vfu_header h = { i, 2 + rng_next(&rng) % 13, 0, 0, 0 };
		u32 len = rng_next(&rng) % 4 ? 20 + rng_next(&rng) % 29
					     : rng_next(&rng) % sizeof(body);
		u32 nr_fds = rng_next(&rng) % 8 ? 0 : rng_next(&rng) % 3, bytes;
		int fds[2], ret;

		for (u32 w = 0; w < ARRAY_SIZE(body.word); w++)
			body.word[w] =
				rng_next(&rng) % 3 ? rng_next(&rng) % 9 : (u32)rng_next(&rng);
		if (h.command == VFU_DMA_MAP)
			body.map = (struct vfu_dma_map){ 32, rng_next(&rng) % 4, 0,
							 (rng_next(&rng) % 200) << 12,
							 (rng_next(&rng) % 4) << 12 };
		if (h.command == VFU_DMA_UNMAP && rng_next(&rng) % 4)
			body.unmap = (struct vfu_dma_unmap){ 24, 0, (rng_next(&rng) % 200) << 12,
							     (rng_next(&rng) % 4) << 12 };
		if ((h.command == VFU_REGION_READ || h.command == VFU_REGION_WRITE) &&
		    rng_next(&rng) % 8)
			body.access = (struct vfu_region_access){ rng_next(&rng) % 0x20000 & ~3u,
								  rng_next(&rng) % 4 ? 0 : 7, 4 };
		h.flags = rng_next(&rng) % 50 ? 0 : (u32)rng_next(&rng);
		h.bytes = bytes = sizeof(h) + len;
		if (rng_next(&rng) % 200 == 0)
			h.bytes = rng_next(&rng);
		if (rng_next(&rng) % 500 == 0)
			bytes = rng_next(&rng) % sizeof(h);
		for (u32 f = 0; f < nr_fds; f++)
			fds[f] = rng_next(&rng) % 2 ? memory(4096) : eventfd(0, EFD_NONBLOCK);
		memcpy(r.msg, &h, sizeof(h));
		memcpy(r.msg + sizeof(h), &body, min(len, (u32)sizeof(body)));
		ret = vfu_server_message(&r.s, r.msg, bytes, fds, nr_fds, r.reply);
		if (ret == -EPROTO) {
			assert_true(r.s.why[0]);
			vfu_server_disconnect(&r.s);
			say_version(&r);
			ends++;
			continue;
		}
		assert_true(ret == 0 || ret >= (int)sizeof(h));
		assert_true(ret <= (int)sizeof(r.reply));
		if (ret) {
			memcpy(&h, r.reply, sizeof(h));
			assert_int_equal(h.bytes, ret);
			refused += h.error != 0;
			done += h.error == 0;
		}
		/* The device lives meanwhile. */
		nicdev_delay_us(r.s.dev, rng_next(&rng) % 200);
	}
	assert_true(ends > 50 && refused > 1000 && done > 5000);
	close_rig(&r);
	assert_int_equal(open_files(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version), cmocka_unit_test(what_it_is), cmocka_unit_test(regions),
		cmocka_unit_test(maps),	   cmocka_unit_test(irqs),	 cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
