/* SPDX-License-Identifier: MIT */
/* The model as a device: opening, the IOMMU, the clock, interrupts, violations. */
#include "hw/model_82599/internal.h"
#include "hw/pcapng.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEFAULT_RX_DMA_PS (500 * SIM_PS_PER_NS)

const char *model_violation_name(enum model_violation v)
{
	static const char *const names[V_NR] = {
#define X(name, text) #name,
		MODEL_VIOLATIONS(X)
#undef X
	};

	return names[v];
}

const char *model_violation_text(enum model_violation v)
{
	static const char *const texts[V_NR] = {
#define X(name, text) text,
		MODEL_VIOLATIONS(X)
#undef X
	};

	return texts[v];
}

void model_violate(struct model_82599 *m, enum model_violation v, const char *fmt, ...)
{
	va_list ap;
	int n;

	m->count[v]++;
	if (m->nr_violations++)
		return;
	n = snprintf(m->first, sizeof(m->first), "%s at %.3f us: %s; ", model_violation_name(v),
		     (double)m->vt.now_ps / SIM_PS_PER_US, model_violation_text(v));
	va_start(ap, fmt);
	if (n > 0 && (size_t)n < sizeof(m->first))
		vsnprintf(m->first + n, sizeof(m->first) - n, fmt, ap);
	va_end(ap);
}

u32 model_violations(const struct model_82599 *m, enum model_violation v)
{
	return m->count[v];
}

u32 model_nr_violations(const struct model_82599 *m)
{
	return m->nr_violations;
}

const char *model_first_violation(const struct model_82599 *m)
{
	return m->first;
}

bool model_last_fault(const struct model_82599 *m, struct model_fault *fault)
{
	*fault = m->fault;
	return m->faulted;
}

/* splitmix64 */
u64 model_random(struct model_82599 *m)
{
	u64 z = m->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/*
 * --- the IOMMU
 * ----------------------------------------------------------------------------------------------
 */

static const struct nicdev_map *iommu_find(const struct model_82599 *m, u64 iova, u32 perm)
{
	for (u32 i = 0; i < m->nr_maps; i++) {
		const struct nicdev_map *map = &m->map[i];

		if (iova - map->iova < map->len)
			return map->perm & perm ? map : NULL;
	}
	return NULL;
}

/*
 * The device writes LEN bytes. Descriptors go by words of 8, the last one last, as their readers
 * rely on: the process that reads may be another one.
 */
static void store(char *to, const u8 *from, u32 len)
{
	if (len > 16 || len % 8 || (uintptr_t)to % 8) {
		memcpy(to, from, len);
		return;
	}
	for (u32 at = 0; at < len; at += 8) {
		u64 word;

		memcpy(&word, from + at, sizeof(word));
		__atomic_store_n((u64 *)(to + at), word, __ATOMIC_RELEASE);
	}
}

/* Copies between the device and memory; LEN may go over several mappings. */
static bool iommu_copy(const struct model_82599 *m, u64 iova, u8 *device, u32 len, u32 perm)
{
	while (len) {
		const struct nicdev_map *map = iommu_find(m, iova, perm);
		u32 part;

		if (!map)
			return false;
		part = min((u64)len, map->iova + map->len - iova);
		if (perm == NICDEV_DMA_READ)
			memcpy(device, map->vaddr + (iova - map->iova), part);
		else
			store(map->vaddr + (iova - map->iova), device, part);
		iova += part;
		device += part;
		len -= part;
	}
	return true;
}

static bool dma(struct model_82599 *m, u64 iova, u8 *device, u32 len, u32 perm)
{
	const bool write = perm == NICDEV_DMA_WRITE;

	if (!(m->command & PCI_COMMAND_MASTER)) {
		model_violate(m, V_BUS_MASTER, "IOVA 0x%llx", (unsigned long long)iova);
		return false;
	}
	if (*model_reg(m, IXGBE_CTRL) & IXGBE_CTRL_GIO_DIS) {
		model_violate(m, V_GIO_DIS, "IOVA 0x%llx", (unsigned long long)iova);
		return false;
	}
	if (iommu_copy(m, iova, device, len, perm))
		return true;
	m->fault = (struct model_fault){ iova, len, write };
	m->faulted = true;
	model_violate(m, V_IOMMU_FAULT, "%s of %u bytes at IOVA 0x%llx", write ? "write" : "read",
		      len, (unsigned long long)iova);
	return false;
}

bool model_dma_read(struct model_82599 *m, u64 iova, void *to, u32 len)
{
	return dma(m, iova, to, len, NICDEV_DMA_READ);
}

bool model_dma_write(struct model_82599 *m, u64 iova, const void *from, u32 len)
{
	return dma(m, iova, (u8 *)from, len, NICDEV_DMA_WRITE);
}

bool model_peek(const struct model_82599 *m, u64 iova, void *to, u32 len)
{
	return iommu_copy(m, iova, to, len, NICDEV_DMA_READ);
}

static int op_dma_map(struct nicdev *dev, u64 iova, void *vaddr, size_t len, u32 perm)
{
	struct model_82599 *m = to_model(dev);

	if (m->nr_maps == MODEL_MAX_MAPS)
		return -ENOSPC;
	m->map[m->nr_maps++] = (struct nicdev_map){ iova, vaddr, len, perm };
	return 0;
}

static int op_dma_unmap(struct nicdev *dev, u64 iova, size_t len)
{
	struct model_82599 *m = to_model(dev);

	if (!m->gone && (tx_uses(m, iova, len) || rx_uses(m, iova, len)))
		model_violate(m, V_UNMAP_ACTIVE, "IOVA 0x%llx, %zu bytes", (unsigned long long)iova,
			      len);
	for (u32 i = 0; i < m->nr_maps; i++)
		if (m->map[i].iova == iova) {
			m->map[i] = m->map[--m->nr_maps];
			return 0;
		}
	return -ENOENT;
}

/*
 * --- interrupts
 * ----------------------------------------------------------------------------------------------
 */

int model_vector(struct model_82599 *m, u32 tx, u32 nr)
{
	u32 entry = *model_reg(m, IXGBE_IVAR(nr / 2)) >> (16 * (nr & 1) + 8 * tx) & 0xff;

	return entry & IXGBE_IVAR_VALID ? (int)(entry & 0x3f) : -1;
}

u64 model_itr_ps(struct model_82599 *m, int vec)
{
	/* Bits 11:3 count units of 2 us (8.2.3.5.12). */
	return (*model_reg(m, IXGBE_EITR(vec)) >> 3 & 0x1ff) * 2 * SIM_PS_PER_US;
}

/* The vector of the causes that no queue has, such as a change of the link; -1: none. */
static int other_vector(struct model_82599 *m)
{
	u32 entry = *model_reg(m, IXGBE_IVAR_MISC) >> 8 & 0xff;

	return entry & IXGBE_IVAR_VALID ? (int)(entry & 0x3f) : -1;
}

/* The bits of EICR that vector V stands for. */
static u32 vector_causes(struct model_82599 *m, u32 v)
{
	return (v < 16 ? 1u << v : 0) | (other_vector(m) == (int)v ? IXGBE_EICR_OTHERS : 0);
}

static void irq_fires(void *ctx, u32 arg)
{
	struct model_82599 *m = ctx;
	u32 v = arg & 0xff, causes = vector_causes(m, v);
	u64 one = 1;

	if (event_void(m, arg))
		return;
	m->vec[v].posted = false;
	causes &= *model_reg(m, IXGBE_EICR) & *model_reg(m, IXGBE_EIMS);
	if (!causes)
		return;
	m->vec[v].last_ps = m->vt.now_ps;
	*model_reg(m, IXGBE_EICR) &= ~(*model_reg(m, IXGBE_EIAC) & causes);
	if (*model_reg(m, IXGBE_GPIE) & IXGBE_GPIE_EIAME)
		*model_reg(m, IXGBE_EIMS) &= ~(*model_reg(m, IXGBE_EIAM) & causes);
	if (v < m->dev.nr_irqs && m->dev.irq_fd[v] >= 0 &&
	    write(m->dev.irq_fd[v], &one, sizeof(one)) != sizeof(one))
		m->vt.nomem = true; /* the counter cannot be full */
}

static void irq_post(struct model_82599 *m, u32 v)
{
	u64 at = m->vt.now_ps;

	if (m->vec[v].posted)
		return;
	m->vec[v].posted = true;
	if (m->vec[v].last_ps != ~0ull)
		at = max(at, m->vec[v].last_ps + model_itr_ps(m, v));
	vtime_post(&m->vt, at, EV_IRQ, irq_fires, m, event_arg(m, v));
}

void model_irq_cause(struct model_82599 *m, u32 tx, u32 nr)
{
	int v = model_vector(m, tx, nr);

	if (v < 0 || v > 15)
		return;
	*model_reg(m, IXGBE_EICR) |= 1u << v;
	if (*model_reg(m, IXGBE_EIMS) & 1u << v)
		irq_post(m, v);
}

void model_irq_other(struct model_82599 *m, u32 cause)
{
	int v = other_vector(m);

	*model_reg(m, IXGBE_EICR) |= cause;
	if (v >= 0 && *model_reg(m, IXGBE_EIMS) & cause)
		irq_post(m, v);
}

void model_irq_unmasked(struct model_82599 *m, u32 bits)
{
	int other = other_vector(m);

	if (bits && *model_reg(m, IXGBE_GPIE) & IXGBE_GPIE_MSIX_MODE &&
	    !(*model_reg(m, IXGBE_GPIE) & IXGBE_GPIE_PBA_SUPPORT))
		model_violate(m, V_PBA, "EIMS 0x%x", bits);
	bits &= *model_reg(m, IXGBE_EICR);
	if (bits & IXGBE_EICR_OTHERS && other >= 0)
		irq_post(m, other);
	bits &= IXGBE_EICR_QUEUES;
	for (u32 v = 0; bits; v++, bits >>= 1)
		if (bits & 1)
			irq_post(m, v);
}

static int op_irq_enable(struct nicdev *dev, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		dev->irq_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (dev->irq_fd[i] < 0) {
			int ret = -errno;

			while (i--) {
				close(dev->irq_fd[i]);
				dev->irq_fd[i] = -1;
			}
			return ret;
		}
	}
	return 0;
}

/*
 * --- the rest of the device
 * ----------------------------------------------------------------------------------------------
 */

static u16 op_config_read16(struct nicdev *dev, u32 offset)
{
	struct model_82599 *m = to_model(dev);

	if (m->gone)
		return 0xffff;
	switch (offset) {
	case PCI_CFG_VENDOR:
		return dev->vendor;
	case PCI_CFG_DEVICE:
		return dev->device;
	case PCI_CFG_COMMAND:
		return m->command;
	default:
		return 0;
	}
}

static int op_config_write16(struct nicdev *dev, u32 offset, u16 value)
{
	struct model_82599 *m = to_model(dev);

	if (offset != PCI_CFG_COMMAND)
		return -EOPNOTSUPP;
	m->command = value;
	return 0;
}

static int op_reset(struct nicdev *dev)
{
	struct model_82599 *m = to_model(dev);

	m->command = 0;
	model_reset(m, false);
	m->reset_until_ps = m->vt.now_ps; /* who asks for it has waited */
	return 0;
}

static u64 op_now_ps(struct nicdev *dev)
{
	return to_model(dev)->vt.now_ps;
}

static bool op_relax(struct nicdev *dev, u64 until_ps)
{
	struct vtime *vt = &to_model(dev)->vt;

	if (vt->nr && vt->heap[0].at_ps <= until_ps)
		return vtime_step(vt);
	if (until_ps != ~0ull)
		vt->now_ps = max(vt->now_ps, until_ps);
	return false;
}

static void op_close(struct nicdev *dev)
{
	struct model_82599 *m = to_model(dev);

	m->epoch++; /* events under way only free what they hold */
	m->closing = true;
	while (vtime_step(&m->vt))
		;
	tx_reset(m);
	rx_reset(m);
	if (m->nic_ready)
		nic_exit(&m->nic);
	vtime_exit(&m->vt);
	free(m);
}

static const struct nicdev_ops model_ops = {
	.name = "model",
	.read32 = model_read32,
	.write32 = model_write32,
	.dma_map = op_dma_map,
	.dma_unmap = op_dma_unmap,
	.irq_enable = op_irq_enable,
	.reset = op_reset,
	.config_read16 = op_config_read16,
	.config_write16 = op_config_write16,
	.now_ps = op_now_ps,
	.relax = op_relax,
	.close = op_close,
};

int model_open(const struct model_params *p, struct model_82599 **out, char *err, size_t errlen)
{
	struct model_82599 *m = calloc(1, sizeof(*m));
	int ret;

	if (!m) {
		snprintf(err, errlen, "no memory for a model of an 82599");
		return -ENOMEM;
	}
	m->p = *p;
	m->timing = p->timing ? *p->timing : *nic_preset("gen2x8");
	m->timing.header_bytes = 16; /* the least in front of a byte of payload: sizes the buffer */
	ret = nic_init(&m->nic, &m->timing, err, errlen);
	if (ret) {
		free(m);
		return ret;
	}
	m->nic_ready = true;
	if (!m->p.rx_dma_ps)
		m->p.rx_dma_ps = DEFAULT_RX_DMA_PS;
	m->rng = p->seed;
	vtime_init(&m->vt);
	nicdev_init(&m->dev, &model_ops, "model");
	m->dev.vendor = 0x8086;
	m->dev.device = p->device ? p->device : 0x10fb;
	m->mac = model_mac_of(m->dev.device);
	/* What Linux reports on x86: all but the window of the interrupt messages. */
	m->dev.range[0] = (struct nicdev_range){ 0, 0xfedfffff };
	m->dev.range[1] =
		(struct nicdev_range){ 0xfef00000, p->aw39 ? 0x7fffffffffull : 0xffffffffffffull };
	m->dev.nr_ranges = 2;
	if (p->high_iova) {
		m->dev.range[0] = (struct nicdev_range){ 1ull << 32, m->dev.range[1].last };
		m->dev.nr_ranges = 1;
	}
	model_reset(m, true);
	m->reset_until_ps = 0;
	if (m->p.pcapng)
		pcapng_begin(m->p.pcapng, "82599");
	*out = m;
	return 0;
}

struct nicdev *model_nicdev(struct model_82599 *m)
{
	return &m->dev;
}

u64 model_next_ps(const struct model_82599 *m)
{
	return m->vt.nr ? m->vt.heap[0].at_ps : ~0ull;
}

struct call {
	struct model_82599 *m;
	void (*fn)(void *ctx);
	void *ctx;
};

static void run_call(void *ctx, u32 unused)
{
	struct call c = *(struct call *)ctx;

	(void)unused;
	free(ctx);
	if (!c.m->closing)
		c.fn(c.ctx);
}

void model_call_at(struct model_82599 *m, u64 at_ps, void (*fn)(void *ctx), void *ctx)
{
	struct call *c = malloc(sizeof(*c));

	if (!c) {
		m->vt.nomem = true;
		return;
	}
	*c = (struct call){ m, fn, ctx };
	vtime_post(&m->vt, at_ps, EV_STATE, run_call, c, 0);
}

void model_surprise_removal(struct model_82599 *m)
{
	m->gone = true;
}

void model_count_size(struct model_82599 *m, u32 first, u32 len)
{
	static const u32 most[] = { 64, 127, 255, 511, 1023 };
	u32 i = 0;

	while (i < ARRAY_SIZE(most) && len + 4 > most[i])
		i++;
	++*model_reg(m, first + 4 * i);
}

void model_lose_memory(struct model_82599 *m)
{
	m->nr_maps = 0;
}

void model_stall(struct model_82599 *m)
{
	for (u32 i = 0; i < IXGBE_NR_QUEUES; i++)
		m->txq[i].stopped = true;
}

void model_at_segment(struct model_82599 *m, u32 segment, void (*fn)(void *ctx), void *ctx)
{
	m->at_segment = segment;
	m->at_fn = fn;
	m->at_ctx = ctx;
}

void model_tx_times(const struct model_82599 *m, u32 queue, struct model_times *out)
{
	*out = m->txq[queue].times;
}

u64 model_trace_hash(const struct model_82599 *m)
{
	return m->hash;
}
