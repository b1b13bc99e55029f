/* SPDX-License-Identifier: MIT */
/*
 * A driver for the 82599 family in userspace: rings, TSO, completions, and nothing behind their
 * back.
 *
 *                 tx_post, tx_kick   tx_clean   rx_poll   stats, stop
 * tx_post, tx_kick       X              -          -           X      X: the caller serialises, for
 * tx_clean               -              X          -           X      the same queue
 * rx_poll                -              -          X           X      -: may run on two CPUs
 *
 * A completion is what the device has written to memory: the DD bit of a packet's last descriptor,
 * or the head where head write-back is on. It says that the packet was fetched, not that it was
 * sent. Section numbers in the sources are those of the 82599 datasheet.
 */
#ifndef HW_IXGBE_IXGBE_H
#define HW_IXGBE_IXGBE_H

#include "hw/ixgbe_regs.h"
#include "hw/nicdev.h"

#define IXGBE_MAX_QUEUES   16 /* of each direction: what the interrupt causes tell apart */
#define IXGBE_HEADER_BYTES 2048 /* of a packet's header slot */

/* X552 and X553 are X550s inside processors: "EM_x" and "EM_a" in the datasheets' words. */
enum ixgbe_mac { IXGBE_82599, IXGBE_X540, IXGBE_X550, IXGBE_X552, IXGBE_X553 };

struct ixgbe_id {
	u16 device;
	enum ixgbe_mac mac;
	const char *name;
	bool cage; /* of an 82599: for a module, whose presence SDP2 tells */
};

/*
 * The entry of a PCI device of Intel's; NULL for one that this driver does not know. None was tried
 * on a card so far. ixgbe_id_tested() tells which are tested: on the model, that is, with all that
 * the driver does to them. The others, X552 and X553, start there, too, but have PHYs that firmware
 * sets up on commands which neither this driver nor the model knows: they are accepted.
 */
const struct ixgbe_id *ixgbe_find_id(u16 device);
bool ixgbe_id_tested(const struct ixgbe_id *id);
extern const struct ixgbe_id ixgbe_ids[];
extern const u32 nr_ixgbe_ids;

struct ixgbe_config {
	u32 nr_txq, nr_rxq; /* 1 to IXGBE_MAX_QUEUES */
	u32 tx_ring, rx_ring; /* descriptors: 64 to 8192, a multiple of 8 */
	u32 pthresh, hthresh, wthresh; /* of a transmit queue's descriptor cache */
	bool head_wb; /* completions by head write-back, which needs wthresh 0 */
	u32 itr_us; /* interrupt moderation of all vectors, 0 to 1022 */
	bool irq; /* a vector for each queue; false: no interrupts */
	bool one_vector; /* with irq: receive and transmit queue N share vector N */
	u32 txpbthresh_kb; /* how full fetching may make the transmit buffer; 0: as it is, 150 */
	u32 rx_buffer; /* bytes: 1024 to 16384, a multiple of 1024 */
	u32 max_frame; /* bytes with FCS: 1518 to 15872 */
	u32 max_desc_bytes; /* of one transmit buffer, up to IXGBE_MAX_DTALEN */
	bool promiscuous;
	bool loopback; /* in the MAC: what is sent is received, at line rate */
	u32 hang_ms; /* without progress for this long a queue counts as hung */
};

/* What measurements use: one queue of each, P32 H1 W0, RS on each packet, no interrupts. */
extern const struct ixgbe_config ixgbe_default_config;

struct ixgbe_txq {
	struct ixgbe *ix;
	u32 nr, index;
	struct ixgbe_desc *desc;
	u32 *eop; /* a packet's last descriptor, by its first */
	u32 last_lo; /* DCMD bits of a packet's last descriptor */
	u32 frame_most; /* bytes that one descriptor describes, in a frame that may be sent */
	u32 *head_wb; /* the device's; NULL: not used */
	u64 desc_iova;
	char *headers; /* a slot for each descriptor */
	u64 headers_iova;
	u32 next_to_use ____cacheline_aligned; /* the producer's */
	u32 room; /* descriptors that are known to be free */
	u32 tail; /* what the device was told */
	u32 queued; /* packets behind it */
	u64 posted; /* packets in front of it */
	u64 busy_ps; /* when the first packet came onto an empty ring */
	u32 next_to_clean ____cacheline_aligned; /* the consumer's */
	u64 cleaned; /* packets */
	u64 progress_ps;
};

struct ixgbe_rxq {
	struct ixgbe *ix;
	u32 nr, index;
	struct ixgbe_desc *desc;
	u64 desc_iova;
	char *buffers;
	u64 buffers_iova;
	u32 next_to_clean, tail;
	bool in_chain; /* the frame before goes on */
	u64 errors; /* frames that the device marked bad, or that took more than one buffer */
};

/* Since the start; what hardware clears when read. */
struct ixgbe_stats {
	u64 tx_packets, tx_bytes, rx_packets, rx_bytes; /* on the wire, FCS included */
	u64 rx_missed; /* for want of room in the receive buffer, or of descriptors */
	u64 pause_received; /* must be 0, or wire times mean nothing */
	u64 tx_dma_packets; /* fetched TSOs and frames */
	u64 txq_packets[IXGBE_MAX_QUEUES], rxq_packets[IXGBE_MAX_QUEUES];
};

struct ixgbe {
	struct nicdev *dev;
	const struct ixgbe_id *id;
	struct ixgbe_config cfg;
	struct nicdev_arena arena;
	struct ixgbe_txq txq[IXGBE_MAX_QUEUES];
	struct ixgbe_rxq rxq[IXGBE_MAX_QUEUES];
	struct ixgbe_stats stats;
	u8 mac[6];
	u32 clock_shift; /* of the device's clock to ns; 0: seconds and ns */
	bool cage_pin; /* ESDP.SDP2 tells whether a module is in the cage */
	bool started;
};

/*
 * Resets DEV, whatever ran on it, and starts it with CFG; without waiting for the link. DEV stays
 * the caller's. 0; -EINVAL for a configuration that the chip does not take; -ENODEV for a device
 * that is none of the table's, or gone; -ETIMEDOUT for a bit that does not come; -EBUSY if firmware
 * does not let go of PHY, EEPROM or AUTOC within seconds; -EIO if EEPROM or MDIO do not answer;
 * -ENOMEM; each with a sentence in ERR and the device stopped.
 */
int ixgbe_start(struct ixgbe *ix, struct nicdev *dev, const struct ixgbe_config *cfg, char *err,
		size_t errlen);

/*
 * Stops queues and DMA, and frees the rings; packets that the device has not reported are not sent
 * or not known to be. Bounded in time, also if the device is gone. Once for each ixgbe_start().
 */
void ixgbe_stop(struct ixgbe *ix);

/* Waits for the link, TIMEOUT_MS at most. 0; -ETIMEDOUT with what is missing in ERR. */
int ixgbe_wait_link(struct ixgbe *ix, u32 timeout_ms, char *err, size_t errlen);

/* LINKS says so, and there is a module in the cage, if this board tells. */
bool ixgbe_link_up(struct ixgbe *ix);

/* Adds the device's counters to ix->stats. */
void ixgbe_update_stats(struct ixgbe *ix);

/*
 * --- the device's clock
 * ----------------------------------------------------------------------------------------------
 */

/*
 * Starts the clock at 0 and lets it stamp marker frames. It counts by the link's rate, which is
 * known: call it with the link up. 0, or -EIO with a sentence in ERR if the clock does not run.
 */
int ixgbe_clock_start(struct ixgbe *ix, char *err, size_t errlen);

/* What it says, in ns since the start; it wraps after minutes. */
u64 ixgbe_clock_ns(struct ixgbe *ix);

/*
 * True if a marker has left since the last call, and when in *NS, by the device's clock. Until it is
 * asked for, no other marker is stamped.
 */
bool ixgbe_tx_stamp(struct ixgbe *ix, u64 *ns);

/*
 * --- transmit
 * ----------------------------------------------------------------------------------------------
 */

struct ixgbe_buf {
	u64 iova;
	u32 len;
};

struct ixgbe_tx_packet {
	const struct ixgbe_buf *buf;
	u32 nr_bufs;
	u32 maclen, iplen, l4len; /* of the header, which the first buffers hold */
	u32 mss; /* payload of a segment; 0: no segmentation */
	bool ipv4;
	bool csum; /* sum IPv4's header and TCP; always with an MSS */
};

/*
 * Queues PKT: descriptors, no doorbell. 0; -ENOSPC if the ring has no room for it now; -EINVAL for
 * a packet that the chip must not be given, -E2BIG for one that takes more descriptors than it
 * keeps, each with a sentence in ERR, if that is not NULL. Its memory belongs to the device until
 * the completion: the header is read again for each segment.
 */
int ixgbe_tx_post(struct ixgbe_txq *q, const struct ixgbe_tx_packet *pkt, char *err, size_t errlen);

/*
 * Queues up to N frames as they are, each in one of BUF's buffers, no doorbell. How many: fewer if
 * the ring has no room for more now, or at one of a size that the chip must not be given, which
 * ixgbe_tx_post() tells about.
 */
u32 ixgbe_tx_post_frames(struct ixgbe_txq *q, const struct ixgbe_buf *buf, u32 n);

/*
 * Queues a frame as it is that the device is to stamp: behind a TSO packet on the same queue it
 * tells when that has left the wire, which DD does not. 0; -ENOSPC; -EINVAL for a size that is none.
 */
int ixgbe_tx_post_marker(struct ixgbe_txq *q, const struct ixgbe_buf *buf);

/* Tells the device of all that is queued. */
void ixgbe_tx_kick(struct ixgbe_txq *q);

/* IXGBE_HEADER_BYTES of memory for the header of the packet that is posted next. */
void *ixgbe_tx_header(struct ixgbe_txq *q, u64 *iova);

/* How many of the oldest packets, BUDGET at most, are completed since the last call. */
u32 ixgbe_tx_clean(struct ixgbe_txq *q, u32 budget);

/*
 * The last descriptor of the packet that was posted last, and whether the device has reported the
 * one that ends at EOP, by its descriptor: not with head write-back. For the producer, until it has
 * posted onto that descriptor again.
 */
static __always_inline u32 ixgbe_tx_last(const struct ixgbe_txq *q)
{
	return (q->next_to_use ? q->next_to_use : q->nr) - 1;
}

static __always_inline bool ixgbe_tx_reported(const struct ixgbe_txq *q, u32 eop)
{
	return __atomic_load_n(&q->desc[eop].hi, __ATOMIC_ACQUIRE) & IXGBE_TXD_STA_DD;
}

/* How many the next call would find, 64 at most; for the consumer. */
u32 ixgbe_tx_peek(const struct ixgbe_txq *q);

/* Packets that are posted and not completed; exact for the consumer. */
static __always_inline u64 ixgbe_tx_pending(const struct ixgbe_txq *q)
{
	return __atomic_load_n(&q->posted, __ATOMIC_ACQUIRE) - q->cleaned;
}

/* True if packets wait and none was completed for cfg.hang_ms; what is known about it in TEXT. */
bool ixgbe_tx_hung(struct ixgbe_txq *q, char *text, size_t len);

/*
 * --- receive and interrupts
 * ----------------------------------------------------------------------------------------------
 */

/* Calls FN(CTX) for each frame that is there, BUDGET at most, and gives the buffers back. */
u32 ixgbe_rx_poll(struct ixgbe_rxq *q, u32 budget, void (*fn)(void *ctx, const u8 *data, u32 len),
		  void *ctx);

/* The vector of a queue. */
u32 ixgbe_tx_vector(const struct ixgbe *ix, u32 queue);
u32 ixgbe_rx_vector(const struct ixgbe *ix, u32 queue);

/* Lets vector VEC fire again, after its queues were cleaned. */
void ixgbe_irq_rearm(struct ixgbe *ix, u32 vec);

#endif
