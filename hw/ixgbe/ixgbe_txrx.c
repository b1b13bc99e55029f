/* SPDX-License-Identifier: MIT */
/*
 * The rings: descriptors in, completions out (7.2.3, 7.1.6).
 *
 * RS stands on the last descriptor of every packet where WTHRESH is 0, and on none where it is not
 * (7.2.3.5): then the device reports WTHRESH descriptors at a time and the rest when the vector's
 * moderation ends.
 */
#include "hw/ixgbe/ixgbe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PS_PER_MS 1000000000ull
#define PS_PER_US 1000000ull
#define MIN_FRAME 17 /* of what memory holds (7.2.3.2.4) */

static u32 ring_next(u32 nr, u32 i)
{
	return i + 1 == nr ? 0 : i + 1;
}

__attribute__((format(printf, 4, 5))) static int refuse(int ret, char *err, size_t errlen,
							const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err, errlen, fmt, ap);
		va_end(ap);
	}
	return ret;
}

/* What the chip would answer with a hung queue. */
static int check_packet(const struct ixgbe_txq *q, const struct ixgbe_tx_packet *pkt, u32 bytes,
			u32 nr_data, char *err, size_t errlen)
{
	u32 header = pkt->maclen + pkt->iplen + pkt->l4len;
	u32 frame = pkt->mss ? header + min(pkt->mss, bytes - min(bytes, header)) : bytes;
	u32 most = IXGBE_TX_DESC_CACHE - q->ix->cfg.wthresh;

	if (nr_data > most)
		return refuse(-E2BIG, err, errlen,
			      "%u descriptors, the chip keeps %u (40 - WTHRESH %u)", nr_data, most,
			      q->ix->cfg.wthresh);
	if (bytes < MIN_FRAME || frame + 4 > q->ix->cfg.max_frame)
		return refuse(-EINVAL, err, errlen, "frames of %u bytes, 17 to %u go", frame,
			      q->ix->cfg.max_frame - 4);
	if (!pkt->mss)
		return 0;
	if (header >= bytes || header > IXGBE_MAX_TSO_HDR)
		return refuse(-EINVAL, err, errlen, "a header of %u bytes in a packet of %u",
			      header, bytes);
	if (bytes - header > IXGBE_MAX_TSO_BYTES)
		return refuse(-EINVAL, err, errlen,
			      "%u bytes of payload, the chip segments %u at most", bytes - header,
			      IXGBE_MAX_TSO_BYTES);
	return 0;
}

static void put_context(struct ixgbe_desc *d, const struct ixgbe_tx_packet *pkt)
{
	d->addr = pkt->iplen | pkt->maclen << IXGBE_TXC_MACLEN_SHIFT;
	d->lo = IXGBE_TXD_DEXT | IXGBE_TXD_DTYP_CTXT | IXGBE_TXC_TUCMD_L4T_TCP |
		(pkt->ipv4 ? IXGBE_TXC_TUCMD_IPV4 : 0);
	d->hi = pkt->l4len << IXGBE_TXC_L4LEN_SHIFT | pkt->mss << IXGBE_TXC_MSS_SHIFT;
}

/* Dword 3 of the first data descriptor. PAYLEN counts no header under TSO (7.2.3.2.4). */
static u32 olinfo(const struct ixgbe_tx_packet *pkt, u32 bytes)
{
	u32 header = pkt->maclen + pkt->iplen + pkt->l4len;
	u32 hi = (pkt->mss ? bytes - header : bytes) << IXGBE_TXD_PAYLEN_SHIFT;

	if (pkt->mss || pkt->csum)
		hi |= IXGBE_TXD_POPTS_TXSM | (pkt->ipv4 ? IXGBE_TXD_POPTS_IXSM : 0);
	return hi;
}

/* Free descriptors, by what the consumer has given back. */
static u32 look_for_room(struct ixgbe_txq *q)
{
	/* Pairs with the release in ixgbe_tx_clean(): the slots are the producer's again. */
	u32 clean = __atomic_load_n(&q->next_to_clean, __ATOMIC_ACQUIRE);

	if (clean <= q->next_to_use)
		clean += q->nr;
	return q->room = clean - q->next_to_use - 1;
}

/* PKT's buffers from descriptor D of DESC to END on, DD bits clear. Returns the last one. */
static struct ixgbe_desc *put_data(const struct ixgbe_tx_packet *pkt, u32 most, u32 hi,
				   struct ixgbe_desc *d, struct ixgbe_desc *desc,
				   struct ixgbe_desc *end)
{
	const u32 lo = IXGBE_TXD_DEXT | IXGBE_TXD_DTYP_DATA | IXGBE_TXD_IFCS |
		       (pkt->mss ? IXGBE_TXD_TSE : 0);
	const struct ixgbe_buf *buf = pkt->buf, *stop = buf + pkt->nr_bufs;
	struct ixgbe_desc *last = d;

	for (; buf != stop; buf++) {
		u64 iova = buf->iova;
		u32 left = buf->len;

		for (; unlikely(left > most); left -= most, iova += most) {
			*d = (struct ixgbe_desc){ iova, lo | most, hi };
			hi = 0; /* what the first says holds for all */
			d = d + 1 == end ? desc : d + 1;
		}
		*d = (struct ixgbe_desc){ iova, lo | left, hi };
		hi = 0;
		last = d;
		d = d + 1 == end ? desc : d + 1;
	}
	return last;
}

int ixgbe_tx_post(struct ixgbe_txq *q, const struct ixgbe_tx_packet *pkt, char *err, size_t errlen)
{
	const u32 most = q->ix->cfg.max_desc_bytes;
	u32 first = q->next_to_use, i = first, eop, nr_data = pkt->nr_bufs, bytes = 0, needed;
	int ret;

	for (u32 b = 0; b < pkt->nr_bufs; b++) {
		bytes += pkt->buf[b].len;
		if (likely(pkt->buf[b].len - 1 < most))
			continue;
		if (!pkt->buf[b].len) /* its descriptor would never be reported (7.2.3.2.4) */
			return refuse(-EINVAL, err, errlen, "buffer %u of %u has no bytes", b,
				      pkt->nr_bufs);
		nr_data += (pkt->buf[b].len - 1) / most;
	}
	ret = check_packet(q, pkt, bytes, nr_data, err, errlen);
	if (ret)
		return ret;
	needed = nr_data + (pkt->mss || pkt->csum);
	if (unlikely(q->room < needed) && look_for_room(q) < needed)
		return refuse(-ENOSPC, err, errlen, "%u descriptors free, %u needed", q->room,
			      needed);

	if (pkt->mss || pkt->csum) {
		put_context(&q->desc[i], pkt);
		i = ring_next(q->nr, i);
	}
	eop = put_data(pkt, most, olinfo(pkt, bytes), &q->desc[i], q->desc, q->desc + q->nr) -
	      q->desc;
	q->desc[eop].lo |= q->last_lo;
	q->eop[first] = eop;
	q->next_to_use = ring_next(q->nr, eop);
	q->room -= needed;
	q->queued++;
	return 0;
}

/* Frames onto the descriptors from I to END, which is not behind the ring's. Where it ended. */
static size_t put_frames(struct ixgbe_txq *q, size_t i, size_t end, const struct ixgbe_buf *buf)
{
	const u32 lo = IXGBE_TXD_DEXT | IXGBE_TXD_DTYP_DATA | IXGBE_TXD_IFCS | q->last_lo;
	const u32 most = q->frame_most - MIN_FRAME;
	struct ixgbe_desc *d = &q->desc[i];
	u32 *eop = q->eop;

	for (; i < end && likely(buf->len - MIN_FRAME <= most); i++, d++, buf++) {
		*d = (struct ixgbe_desc){ buf->iova, lo | buf->len,
					  buf->len << IXGBE_TXD_PAYLEN_SHIFT };
		eop[i] = i;
	}
	return i;
}

u32 ixgbe_tx_post_frames(struct ixgbe_txq *q, const struct ixgbe_buf *buf, u32 n)
{
	u32 first = q->next_to_use, end, at, done;

	if (unlikely(q->room < n))
		n = min(n, look_for_room(q));
	end = min(first + n, q->nr);
	at = put_frames(q, first, end, buf);
	done = at - first;
	if (unlikely(at == q->nr)) { /* the rest from the ring's begin on */
		at = put_frames(q, 0, n - done, buf + done);
		done += at;
	}
	q->next_to_use = at;
	q->room -= done;
	q->queued += done;
	return done;
}

int ixgbe_tx_post_marker(struct ixgbe_txq *q, const struct ixgbe_buf *buf)
{
	u32 at = q->next_to_use;

	if (buf->len - MIN_FRAME > q->frame_most - MIN_FRAME)
		return -EINVAL;
	if (!ixgbe_tx_post_frames(q, buf, 1))
		return -ENOSPC;
	q->desc[at].lo |= IXGBE_TXD_MAC_1588;
	return 0;
}

void ixgbe_tx_kick(struct ixgbe_txq *q)
{
	if (!q->queued)
		return;
	/* From then on the watchdog counts, unless the consumer makes progress. */
	if (__atomic_load_n(&q->next_to_clean, __ATOMIC_RELAXED) == q->tail)
		__atomic_store_n(&q->busy_ps, nicdev_now_ps(q->ix->dev), __ATOMIC_RELAXED);
	q->tail = q->next_to_use;
	/* The consumer learns of them before the device can complete them. */
	__atomic_store_n(&q->posted, q->posted + q->queued, __ATOMIC_RELEASE);
	q->queued = 0;
	dma_wmb();
	nicdev_write32(q->ix->dev, IXGBE_TDT(q->index), q->tail);
}

void *ixgbe_tx_header(struct ixgbe_txq *q, u64 *iova)
{
	size_t at = (size_t)q->next_to_use * IXGBE_HEADER_BYTES;

	*iova = q->headers_iova + at;
	return q->headers + at;
}

/* How far into the ring the device has reported, for head write-back. */
static bool head_covers(const struct ixgbe_txq *q, u32 head, u32 first, u32 eop)
{
	u32 done = (head + q->nr - first) % q->nr;

	/* It may point into the middle of a packet, which is not done then (7.2.3.5.2). */
	return done > (eop + q->nr - first) % q->nr;
}

/* How many of the oldest packets are done, MOST at most; where the next begins in *NEXT. */
static u32 count_head(const struct ixgbe_txq *q, u32 most, u32 *next)
{
	u32 head = __atomic_load_n(q->head_wb, __ATOMIC_ACQUIRE), first = q->next_to_clean, n = 0;

	while (n < most && head_covers(q, head, first, q->eop[first])) {
		first = ring_next(q->nr, q->eop[first]);
		n++;
	}
	*next = first;
	return n;
}

static u32 count_done(const struct ixgbe_txq *q, u32 budget, u32 *next)
{
	const u32 most = min((u64)budget, ixgbe_tx_pending(q)), *eop = q->eop;
	const u32 *status = &q->desc->hi; /* one in four words is one */
	size_t first = q->next_to_clean, nr = q->nr;
	u32 n = 0;

	if (q->head_wb)
		return count_head(q, most, next);
	for (; n < most; n++) {
		size_t last = eop[first];

		if (!(__atomic_load_n(&status[4 * last], __ATOMIC_ACQUIRE) & IXGBE_TXD_STA_DD))
			break;
		first = last + 1 == nr ? 0 : last + 1;
	}
	*next = first;
	return n;
}

u32 ixgbe_tx_clean(struct ixgbe_txq *q, u32 budget)
{
	u32 next, n = count_done(q, budget, &next);

	if (n) {
		q->cleaned += n;
		q->progress_ps = nicdev_now_ps(q->ix->dev);
		__atomic_store_n(&q->next_to_clean, next, __ATOMIC_RELEASE);
	}
	return n;
}

u32 ixgbe_tx_peek(const struct ixgbe_txq *q)
{
	u32 next;

	return count_done(q, 64, &next);
}

bool ixgbe_tx_hung(struct ixgbe_txq *q, char *text, size_t len)
{
	struct nicdev *dev = q->ix->dev;
	u64 now = nicdev_now_ps(dev), since;

	if (!ixgbe_tx_pending(q))
		return false;
	since = max(q->progress_ps, __atomic_load_n(&q->busy_ps, __ATOMIC_RELAXED));
	if (now - since < q->ix->cfg.hang_ms * PS_PER_MS)
		return false;
	if (nicdev_gone(dev)) {
		snprintf(text, len, "%s: transmit queue %u hangs: the device is gone", dev->name,
			 q->index);
		return true;
	}
	snprintf(text, len,
		 "%s: transmit queue %u hangs: TDH %u TDT %u next_to_use %u next_to_clean %u, DD "
		 "not "
		 "set: WTHRESH %u, pending %llu, no progress for %llu us, link %s; ring at IOVA "
		 "0x%llx to 0x%llx: look for DMAR or AMD-Vi faults there in dmesg",
		 dev->name, q->index, nicdev_read32(dev, IXGBE_TDH(q->index)),
		 nicdev_read32(dev, IXGBE_TDT(q->index)), q->next_to_use, q->next_to_clean,
		 q->ix->cfg.wthresh, (unsigned long long)ixgbe_tx_pending(q),
		 (unsigned long long)((now - since) / PS_PER_US),
		 ixgbe_link_up(q->ix) ? "up" : "down", (unsigned long long)q->desc_iova,
		 (unsigned long long)(q->desc_iova + q->nr * sizeof(*q->desc) - 1));
	return true;
}

/*
 * --- receive
 * ----------------------------------------------------------------------------------------------
 */

u32 ixgbe_rx_poll(struct ixgbe_rxq *q, u32 budget, void (*fn)(void *ctx, const u8 *data, u32 len),
		  void *ctx)
{
	const u32 size = q->ix->cfg.rx_buffer;
	u32 n = 0;

	while (n < budget) {
		u32 i = q->next_to_clean;
		struct ixgbe_desc *d = &q->desc[i];
		u32 status = __atomic_load_n(&d->lo, __ATOMIC_ACQUIRE);
		const u8 *data = (const u8 *)q->buffers + (size_t)i * size;

		if (!(status & IXGBE_RXD_STAT_DD))
			break;
		if (!(status & IXGBE_RXD_STAT_EOP))
			q->in_chain = true; /* larger than a buffer: not what is asked for here */
		else if (q->in_chain || status & IXGBE_RXD_ERR_MASK)
			q->in_chain = false, q->errors++;
		else
			fn(ctx, data, IXGBE_RXD_LEN(d->hi));
		/* The whole descriptor, or its DD bit stays (7.1.6.1). */
		*d = (struct ixgbe_desc){ q->buffers_iova + (u64)i * size, 0, 0 };
		q->tail = i;
		q->next_to_clean = ring_next(q->nr, i);
		n++;
	}
	if (n) {
		dma_wmb();
		nicdev_write32(q->ix->dev, IXGBE_RDT(q->index), q->tail);
	}
	return n;
}
