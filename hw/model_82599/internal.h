/* SPDX-License-Identifier: MIT */
/* What the files of the model share. */
#ifndef HW_MODEL_82599_INTERNAL_H
#define HW_MODEL_82599_INTERNAL_H

#include "hw/ixgbe_regs.h"
#include "hw/model_82599/model.h"
#include "sim/vtime.h"

/* What comes first at one moment: the order of sim/link.c, completions before frames. */
enum model_event { EV_FETCH, EV_MODERATION, EV_WRITE_BACK, EV_IRQ, EV_WIRE, EV_RECEIVE, EV_STATE };

enum model_mac { MODEL_82599, MODEL_X540, MODEL_X550, MODEL_X552, MODEL_X553 };

#define MODEL_MAX_MAPS	64
#define MODEL_MAX_FRAME 16384
#define MODEL_NR_CTX	2

/* A context descriptor as it is kept on the chip (7.2.3.2.3). */
struct tx_context {
	bool valid;
	bool ipv4, tcp, udp;
	u32 maclen, iplen, l4len, mss;
};

struct tx_packet {
	u32 first; /* its first descriptor, contexts in front included */
	u32 data; /* its first data descriptor */
	u32 nr_desc, nr_data;
	u64 number;
	bool tse, ixsm, txsm, rs, stamp;
	struct tx_context ctx;
	u32 header; /* bytes that are read again for each segment; 0 without TSE */
	u32 bytes; /* in all buffers */
	u32 payload; /* bytes - header */
	u32 nr_segments, segment; /* the next one */
	u64 doorbell_ps, ready_ps, fetched_ps;
	u8 *snapshot; /* what the buffers held at the doorbell */
};

struct tx_queue {
	bool enabled, enabled_seen, stopped;
	u64 enable_ps; /* ENABLE reads as 1 from then on */
	u64 base;
	u32 nr; /* descriptors */
	u32 tail, parsed; /* posted; made into packets */
	u32 wb; /* the next to be written back */
	u32 tdh;
	struct ixgbe_desc *shadow; /* as they were at the doorbell */
	struct tx_context ctx[MODEL_NR_CTX];
	struct tx_packet *packet; /* a ring of nr */
	u32 pkt_head, pkt_fetch, pkt_tail; /* unreported; being fetched; parsed */
	u64 nr_packets; /* parsed so far */
	u32 unwritten; /* descriptors fetched, not due for write-back */
	struct model_times times;
};

struct rx_queue {
	bool enabled, enabled_seen;
	u64 enable_ps;
	u64 base;
	u32 nr, head, tail;
	bool stopped;
};

/* The module's end of the I2C lines. */
struct sfp {
	bool pulls; /* the data line down */
	bool more; /* the last byte was acknowledged */
	u8 state, next, bits, shift, offset;
};

struct rx_frame;

struct vector {
	u64 last_ps; /* of the last interrupt */
	bool posted; /* one is on its way */
};

struct model_82599 {
	struct nicdev dev;
	struct model_params p;
	enum model_mac mac;
	struct nic_params timing;
	struct vtime vt;
	struct nic nic;
	bool nic_ready;
	u64 rng;
	u32 epoch; /* resets so far: events of an earlier one are void */

	u32 reg[IXGBE_REG_BYTES / 4];
	u16 command;
	u64 reset_until_ps, ard_ps, dmaidone_ps;
	bool ard_seen, dmaidone_seen, tcpflg_seen, secrx_seen, gone, lpbk, closing;
	bool link_up, link_lost; /* lost since LINKS was read */
	u64 link_ps;
	struct sfp sfp;
	bool link_told; /* EICR.LSC stands for its being up */

	/* SW_FW_SYNC and what it guards; no reset changes them. */
	u32 software; /* bits that software has */
	bool smbi, swesmbi, regsmp; /* software's */
	bool taken_over; /* what another driver had */
	u64 firmware_ps; /* firmware has all until then */
	u64 mdio_ps; /* MSCA's command ends then */
	u32 mdio_reg, phy_at, phy_control;

	struct nicdev_map map[MODEL_MAX_MAPS]; /* the IOMMU */
	u32 nr_maps;
	struct model_fault fault;
	bool faulted;

	struct tx_queue txq[IXGBE_NR_QUEUES];
	struct rx_queue rxq[IXGBE_NR_QUEUES];
	struct rx_frame *rxpb, *rxpb_last; /* the receive buffer: what waits for descriptors */
	u32 rxpb_bytes; /* with what is on its way to there */
	bool fetching;
	u64 kick_ps; /* an idle engine looks again then; ~0: not */
	u32 last_queue; /* the last one that was served */
	u32 dirty; /* transmit queues whose tail moved since they were parsed */

	struct vector vec[NICDEV_MAX_IRQS];

	u32 count[V_NR], nr_violations;
	char first[240];
	u64 hash;

	u64 clock_ps, clock_base; /* the clock held clock_base then, at TIMINCA as it stands */

	u32 at_segment;
	void (*at_fn)(void *ctx);
	void *at_ctx;
};

static inline struct model_82599 *to_model(struct nicdev *dev)
{
	return container_of(dev, struct model_82599, dev);
}

static inline u32 *model_reg(struct model_82599 *m, u32 offset)
{
	return &m->reg[offset / 4];
}

/* The event's argument: a queue, of this life of the device. */
static inline u32 event_arg(const struct model_82599 *m, u32 queue)
{
	return m->epoch << 8 | queue;
}

static inline bool event_void(const struct model_82599 *m, u32 arg)
{
	return arg >> 8 != (m->epoch & 0xffffff);
}

/* model.c */
u64 model_random(struct model_82599 *m);
__attribute__((format(printf, 3, 4))) void
model_violate(struct model_82599 *m, enum model_violation v, const char *fmt, ...);
bool model_dma_read(struct model_82599 *m, u64 iova, void *to, u32 len);
bool model_dma_write(struct model_82599 *m, u64 iova, const void *from, u32 len);
/* The same without a word, for what the model looks at and a device would not. */
bool model_peek(const struct model_82599 *m, u64 iova, void *to, u32 len);
void model_reset(struct model_82599 *m, bool power_on);
void model_irq_cause(struct model_82599 *m, u32 ivar_entry, u32 nr);
/* CAUSE, one of EICR's that no queue has: it stands, and interrupts if it is unmasked. */
void model_irq_other(struct model_82599 *m, u32 cause);
void model_irq_unmasked(struct model_82599 *m, u32 bits);
/* Counts a frame of LEN bytes without FCS in the six counters of sizes from FIRST on (8.2.3.23). */
void model_count_size(struct model_82599 *m, u32 first, u32 len);
/* The vector that IVAR gives to queue NR (TX or RX); -1: none. */
int model_vector(struct model_82599 *m, u32 tx, u32 nr);
u64 model_itr_ps(struct model_82599 *m, int vec);

/* regs.c */
/* The device's clock, in its own units. */
u64 model_clock(struct model_82599 *m);
u32 model_read32(struct nicdev *dev, u32 reg);
void model_write32(struct nicdev *dev, u32 reg, u32 value);

/* shared.c */
enum model_mac model_mac_of(u16 device);
void model_shared_reset(struct model_82599 *m, bool power_on);
bool model_shared_read(struct model_82599 *m, u32 reg, u32 *value);
bool model_shared_write(struct model_82599 *m, u32 reg, u32 value);
void model_need(struct model_82599 *m, u32 resources, const char *what);
/* DRV_LOAD changes: a driver has come up, or goes. */
void model_driver_changes(struct model_82599 *m);
bool model_phy_asleep(const struct model_82599 *m);
/* eeprom.c: word W */
u16 eeprom_word(const struct model_82599 *m, u32 w);

/* module.c: what reading and writing I2CCTL does */
void module_reset(struct model_82599 *m);
u32 module_read(struct model_82599 *m);
void module_write(struct model_82599 *m, u32 value);

/* tx.c */
void tx_enable(struct model_82599 *m, u32 queue, bool on);
void tx_doorbell(struct model_82599 *m, u32 queue, u32 tail);
void tx_flush(struct model_82599 *m, u32 queue);
void tx_reset(struct model_82599 *m);
bool tx_uses(const struct model_82599 *m, u64 iova, u64 len);
bool tx_idle(const struct model_82599 *m);

/* offload.c */
/* Checks PKT and its context against the bytes at FRAME; false: the queue hangs. */
bool offload_check(struct model_82599 *m, u32 queue, const struct tx_packet *pkt, const u8 *frame);
/* Makes segment pkt->segment of header and payload in FRAME, LEN bytes in all. */
void offload_segment(const struct model_82599 *m, const struct tx_packet *pkt, u8 *frame, u32 len);

/* rx.c */
void rx_enable(struct model_82599 *m, u32 queue, bool on);
void rx_doorbell(struct model_82599 *m, u32 queue, u32 tail);
void rx_reset(struct model_82599 *m);
bool rx_uses(const struct model_82599 *m, u64 iova, u64 len);
void rx_check_rxen(struct model_82599 *m);

#endif
