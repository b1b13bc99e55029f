/* SPDX-License-Identifier: MIT */
/*
 * An 82599 in software, or one of its successors as far as the driver can tell them apart: registers, descriptor rings, segmentation, and the timing of sim/nic.h, in
 * virtual time, behind the device seam.
 *
 * As strict as hardware punishes: what a driver does wrong is recorded as a violation with a name,
 * and has about the consequence that it has there. Memory is reached through mapped IOVAs alone;
 * anything else is a recorded IOMMU fault, and the queue stops. What is random (delays of bits that
 * clear themselves, power-on data) is drawn from a seed: the same seed, the same run.
 *
 *   doorbell -> start -> fetch of one segment after the other, the header again for each, queues
 *   in turn -> transmit buffer -> wire -> partner          (times: sim/nic.h)
 *            \-> last segment fetched -> write-back -> DD, interrupt
 *
 * Left out: DCB, SR-IOV, RSS and filters (all frames go to receive queue 0, or to the one that the
 * caller names), VLANs, FCoE, IPsec, RSC, the checksums of received frames, pause frames, legacy
 * descriptors, the limit on outstanding reads, the time of descriptor fetches, timestamps of
 * received frames. Head write-back may also point into the middle of a
 * packet, which the datasheet allows: it does so now and then.
 *
 * For one thread.
 */
#ifndef HW_MODEL_82599_MODEL_H
#define HW_MODEL_82599_MODEL_H

#include "hw/model_82599/violation.h"
#include "hw/nicdev.h"
#include "sim/nic.h"

#include <stdio.h>

struct model_82599;

/* A frame that has left the wire; without FCS. */
struct model_frame {
	const u8 *data;
	u32 len;
	u32 queue;
	u64 packet; /* number of the packet on its queue */
	u32 segment, nr_segments; /* of the TSO */
	u64 fetched_ps, depart_ps; /* its last byte is in the buffer; its last bit has left */
};

/* Who else has the semaphore of SW_FW_SYNC, or what it guards, when the device is powered on. */
enum model_holder {
	MODEL_NOBODY, /* from X540 on firmware, for up to 30 ms after each reset */
	MODEL_FIRMWARE, /* firmware: EEPROM, PHYs, link registers */
	MODEL_FIRMWARE_REGISTER, /* firmware: the register itself */
	MODEL_DRIVER, /* another port's driver: the same resources */
	MODEL_DRIVER_REGISTER, /* another port's driver: SWSM.SMBI */
};

struct model_params {
	const struct nic_params *timing; /* NULL: "gen2x8". The threshold is TXPBTHRESH's */
	u64 seed;
	/*
	 * PCI device ID; 0: 0x10fb. Those of X540, X550, X552 and X553 make their registers: where
	 * semaphore, EEC and FWSM lie, what firmware has a part in, MDIO and a PHY in low power (X540,
	 * X550), packet buffer, clock. All others make an 82599.
	 */
	u16 device;
	u8 port; /* of its card, 0 or 1: STATUS.LAN_ID, and the last byte of the address */
	enum model_holder holder;
	u64 held_ps; /* until then; ~0: for ever */
	u64 rx_dma_ps; /* end of a received frame to its descriptor visible; 0: 500 ns */
	bool high_iova; /* usable IOVAs begin at 4 GB */
	bool aw39; /* usable IOVAs end at 39 bits, as with older IOMMUs */
	bool firmware_links; /* firmware manages the link: AUTOC needs a semaphore */
	bool no_link; /* no partner, and an empty cage */
	bool empty_cage; /* no module, though LINKS says that the link is up */
	bool no_cage_pin; /* the EEPROM says that SDP2 does not tell of a module */
	bool no_eerd, no_mdio; /* no answer from EEPROM, PHY */
	bool no_dmaidone, no_auto_rd, no_reset, no_enable; /* bits that never come */
	/* Each frame as its last bit leaves; NULL: nobody. May call model_receive(). */
	void (*partner)(void *ctx, const struct model_frame *frame);
	void *ctx;
	FILE *pcapng; /* frames in both directions with comments; NULL: none */
};

/*
 * A powered-on device. 0; -EINVAL for timing that no NIC could have; -ENOMEM; with a sentence in
 * ERR. nicdev_close() frees it.
 */
int model_open(const struct model_params *p, struct model_82599 **out, char *err, size_t errlen);
struct nicdev *model_nicdev(struct model_82599 *m);

/*
 * A frame of LEN bytes, without FCS, whose last bit arrives at AT_PS (not before now), for receive
 * queue QUEUE. -ENOMEM if it is lost for lack of memory; -EINVAL for a frame that no wire carries.
 */
int model_receive(struct model_82599 *m, u64 at_ps, u32 queue, const void *data, u32 len);

/* When something happens next on the device; ~0: nothing will. */
u64 model_next_ps(const struct model_82599 *m);

/* FN(CTX) runs at AT_PS, not before now: a partner's timers. */
void model_call_at(struct model_82599 *m, u64 at_ps, void (*fn)(void *ctx), void *ctx);

/* How often V has happened, and all together. */
u32 model_violations(const struct model_82599 *m, enum model_violation v);
u32 model_nr_violations(const struct model_82599 *m);

/* The first violation with its circumstances; "" if there was none. */
const char *model_first_violation(const struct model_82599 *m);

/* The last IOMMU fault. */
struct model_fault {
	u64 iova;
	u32 len;
	bool write;
};
bool model_last_fault(const struct model_82599 *m, struct model_fault *fault);

/* From now on the device is gone: all reads give ones, writes vanish. */
void model_surprise_removal(struct model_82599 *m);

/* The transmit side stands still, as after a hang: no fetch, no report, until a reset. */
void model_stall(struct model_82599 *m);

/* All memory gets out of its reach, and nobody is told: an IOMMU that somebody has changed. */
void model_lose_memory(struct model_82599 *m);

/* The link comes up or goes down; LINKS remembers a loss until it is read. */
void model_set_link(struct model_82599 *m, bool up);

/*
 * Between two of a packet's segments, before fetching segment SEGMENT of the next packet, FN(CTX)
 * runs once: for tests that scribble and unmap.
 */
void model_at_segment(struct model_82599 *m, u32 segment, void (*fn)(void *ctx), void *ctx);

/* Of the last packet of QUEUE whose completion became visible; what an onlooker measures. */
struct model_times {
	u64 packets; /* that are reported so far */
	u64 doorbell_ps, fetched_ps, dd_ps;
};
void model_tx_times(const struct model_82599 *m, u32 queue, struct model_times *out);

/* A hash of every frame that left with its time: equal runs have equal ones. */
u64 model_trace_hash(const struct model_82599 *m);

#endif
