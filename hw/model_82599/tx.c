/* SPDX-License-Identifier: MIT */
/*
 * The transmit side: doorbells, packets out of descriptors, fetch, wire, write-back.
 *
 * A doorbell takes a copy of the descriptors and of what their buffers hold, to tell later what was
 * changed too soon; what is sent is read from memory segment by segment, as the chip does.
 *
 *   wb ... (fetched, not reported) ... (parsed, not fetched) ... tail ... (free) ... wb
 */
#include "hw/model_82599/internal.h"
#include "hw/pcapng.h"

#include <stdlib.h>
#include <string.h>

static void kick(struct model_82599 *m);

static u32 ring_next(const struct tx_queue *q, u32 i)
{
	return i + 1 == q->nr ? 0 : i + 1;
}

static u32 ring_distance(const struct tx_queue *q, u32 from, u32 to)
{
	return to >= from ? to - from : to + q->nr - from;
}

static u32 wthresh(struct model_82599 *m, u32 queue)
{
	return *model_reg(m, IXGBE_TXDCTL(queue)) >> 16 & 0x7f;
}

static struct tx_packet *packet_at(struct tx_queue *q, u32 i)
{
	return &q->packet[i % q->nr];
}

/*
 * --- queues
 * ----------------------------------------------------------------------------------------------
 */

static void queue_free(struct tx_queue *q)
{
	for (u32 i = q->pkt_head; i != q->pkt_tail; i++)
		free(packet_at(q, i)->snapshot);
	free(q->packet);
	free(q->shadow);
	q->packet = NULL;
	q->shadow = NULL;
	q->pkt_head = q->pkt_fetch = q->pkt_tail = 0;
}

void tx_reset(struct model_82599 *m)
{
	for (u32 i = 0; i < IXGBE_NR_QUEUES; i++) {
		queue_free(&m->txq[i]);
		memset(&m->txq[i], 0, sizeof(m->txq[i]));
	}
}

bool tx_idle(const struct model_82599 *m)
{
	return !m->fetching;
}

bool tx_uses(const struct model_82599 *m, u64 iova, u64 len)
{
	for (u32 i = 0; i < IXGBE_NR_QUEUES; i++) {
		const struct tx_queue *q = &m->txq[i];

		if (!q->enabled)
			continue;
		if (q->base < iova + len && iova < q->base + 16ull * q->nr)
			return true;
		for (u32 d = q->wb; d != q->tail; d = ring_next(q, d)) {
			const struct ixgbe_desc *desc = &q->shadow[d];

			if ((desc->lo & IXGBE_TXD_DTYP_MASK) == IXGBE_TXD_DTYP_DATA &&
			    desc->addr < iova + len &&
			    iova < desc->addr + IXGBE_TXD_DTALEN(desc->lo))
				return true;
		}
	}
	return false;
}

static void check_thresholds(struct model_82599 *m, u32 queue)
{
	u32 txdctl = *model_reg(m, IXGBE_TXDCTL(queue)), wbal = *model_reg(m, IXGBE_TDWBAL(queue));
	u32 p = txdctl & 0x7f, h = txdctl >> 8 & 0x7f, w = wthresh(m, queue);

	if (p + w > IXGBE_TX_DESC_CACHE)
		model_violate(m, V_PTHRESH, "queue %u: PTHRESH %u, WTHRESH %u", queue, p, w);
	if (p && !h)
		model_violate(m, V_HTHRESH, "queue %u: PTHRESH %u", queue, p);
	if (!(wbal & IXGBE_TDWBAL_HEAD_WB_ENABLE))
		return;
	if (w)
		model_violate(m, V_HEAD_WB_WTHRESH, "queue %u: WTHRESH %u", queue, w);
	if (wbal & 0xe)
		model_violate(m, V_HEAD_WB_ALIGN, "queue %u: TDWBAL 0x%08x", queue, wbal);
}

void tx_enable(struct model_82599 *m, u32 queue, bool on)
{
	struct tx_queue *q = &m->txq[queue];
	u32 bytes = *model_reg(m, IXGBE_TDLEN(queue));

	if (q->enabled == on)
		return;
	if (!on) {
		queue_free(q);
		memset(q, 0, sizeof(*q)); /* contexts are forgotten, too */
		return;
	}
	if (!(*model_reg(m, IXGBE_DMATXCTL) & IXGBE_DMATXCTL_TE))
		model_violate(m, V_TX_ENABLE_ORDER, "queue %u", queue);
	if (!m->ard_seen || !m->dmaidone_seen)
		model_violate(m, V_EEPROM_WAIT, "transmit queue %u", queue);
	check_thresholds(m, queue);
	if (!bytes || bytes & 127 || bytes > 16 * IXGBE_MAX_RING) {
		model_violate(m, V_RING_LEN, "transmit queue %u, %u bytes", queue, bytes);
		return;
	}
	q->nr = bytes / 16;
	q->base = (u64)*model_reg(m, IXGBE_TDBAH(queue)) << 32 | *model_reg(m, IXGBE_TDBAL(queue));
	q->shadow = calloc(q->nr, sizeof(*q->shadow));
	q->packet = calloc(q->nr, sizeof(*q->packet));
	if (!q->shadow || !q->packet) {
		queue_free(q);
		m->vt.nomem = true;
		return;
	}
	q->wb = q->tail = q->parsed = q->tdh % q->nr;
	q->enabled = !m->p.no_enable;
	q->enable_ps = m->vt.now_ps + model_random(m) % (2 * SIM_PS_PER_MS);
}

/*
 * --- write-back
 * ----------------------------------------------------------------------------------------------
 */

/* The descriptors up to END are reported: their owner may use them again. */
static void report(struct model_82599 *m, u32 queue, u32 end)
{
	struct tx_queue *q = &m->txq[queue];

	while (q->pkt_head != q->pkt_fetch) {
		struct tx_packet *pkt = packet_at(q, q->pkt_head);

		if (ring_distance(q, q->wb, end) <
		    ring_distance(q, q->wb, pkt->first) + pkt->nr_desc)
			break;
		q->times = (struct model_times){ q->times.packets + 1, pkt->doorbell_ps,
						 pkt->fetched_ps, m->vt.now_ps };
		q->wb = (pkt->first + pkt->nr_desc) % q->nr;
		q->pkt_head++;
	}
}

static void desc_write_back(struct model_82599 *m, u32 queue, u32 i)
{
	const struct ixgbe_desc done = { 0, 0, IXGBE_TXD_STA_DD };
	struct tx_queue *q = &m->txq[queue];
	struct ixgbe_desc now;

	if (model_peek(m, q->base + 16ull * i, &now, sizeof(now)) &&
	    memcmp(&now, &q->shadow[i], sizeof(now)))
		model_violate(m, V_DESC_REUSED, "queue %u, descriptor %u", queue, i);
	if (!model_dma_write(m, q->base + 16ull * i, &done, sizeof(done)))
		q->stopped = true;
}

/* What is to be reported, on its way to memory. */
struct write_back {
	struct model_82599 *m;
	u32 arg; /* queue and epoch */
	u32 first, end; /* descriptors that get DD: all of them, or the last */
	bool all, head;
};

static void write_back_lands(void *ctx, u32 unused)
{
	struct write_back w = *(struct write_back *)ctx;
	struct model_82599 *m = w.m;
	u32 queue = w.arg & 0xff;
	struct tx_queue *q = &m->txq[queue];

	(void)unused;
	free(ctx);
	if (event_void(m, w.arg) || !q->enabled)
		return;
	if (w.head) {
		u64 at = (u64)*model_reg(m, IXGBE_TDWBAH(queue)) << 32 |
			 (*model_reg(m, IXGBE_TDWBAL(queue)) & ~0xfu);

		if (!model_dma_write(m, at, &w.end, sizeof(w.end)))
			q->stopped = true;
	} else if (w.all) {
		for (u32 i = w.first; i != w.end; i = ring_next(q, i))
			desc_write_back(m, queue, i);
	} else {
		desc_write_back(m, queue, w.end ? w.end - 1 : q->nr - 1);
	}
	report(m, queue, w.end);
	model_irq_cause(m, 1, queue);
}

static void write_back(struct model_82599 *m, u32 queue, u32 first, u32 end, bool all, bool head)
{
	struct write_back *w = malloc(sizeof(*w));

	if (!w) {
		m->vt.nomem = true;
		return;
	}
	*w = (struct write_back){ m, event_arg(m, queue), first, end, all, head };
	vtime_post(&m->vt, m->vt.now_ps + m->timing.writeback_ps, EV_WRITE_BACK, write_back_lands,
		   w, 0);
}

/* The first descriptor of those that are fetched and not due for write-back. */
static u32 unwritten_first(const struct tx_queue *q, u32 fetched)
{
	return (fetched + q->nr - q->unwritten) % q->nr;
}

/* Where the next packet to be fetched begins. */
static u32 fetched_end(struct tx_queue *q)
{
	return q->pkt_fetch == q->pkt_tail ? q->parsed : packet_at(q, q->pkt_fetch)->first;
}

void tx_flush(struct model_82599 *m, u32 queue)
{
	struct tx_queue *q = &m->txq[queue];
	u32 end;

	if (!q->enabled || !q->unwritten)
		return;
	end = fetched_end(q);
	write_back(m, queue, unwritten_first(q, end), end, true, false);
	q->unwritten = 0;
}

static void moderation_ends(void *ctx, u32 arg)
{
	if (!event_void(ctx, arg))
		tx_flush(ctx, arg & 0xff);
}

/* All of PKT is in the buffer. */
static void packet_fetched(struct model_82599 *m, u32 queue, struct tx_packet *pkt)
{
	struct tx_queue *q = &m->txq[queue];
	u32 end = (pkt->first + pkt->nr_desc) % q->nr, w = wthresh(m, queue), due;
	int vec = model_vector(m, 1, queue);

	pkt->fetched_ps = m->vt.now_ps;
	free(pkt->snapshot);
	pkt->snapshot = NULL;
	q->pkt_fetch++;
	q->tdh = end;
	++*model_reg(m, IXGBE_TXDGPC);
	if (*model_reg(m, IXGBE_TDWBAL(queue)) & IXGBE_TDWBAL_HEAD_WB_ENABLE) {
		if (pkt->rs)
			write_back(m, queue, 0, end, false, true);
		return;
	}
	if (!w) {
		if (pkt->rs)
			write_back(m, queue, 0, end, false, false);
		return;
	}
	/* 7.2.3.5: WTHRESH descriptors at a time, the rest when the moderation timer ends. */
	q->unwritten += pkt->nr_desc;
	due = q->unwritten - q->unwritten % w;
	if (due) {
		u32 first = unwritten_first(q, end);

		write_back(m, queue, first, (first + due) % q->nr, true, false);
		q->unwritten -= due;
	}
	if (q->unwritten && vec >= 0 && model_itr_ps(m, vec))
		vtime_post(&m->vt, m->vt.now_ps + model_itr_ps(m, vec), EV_MODERATION,
			   moderation_ends, m, event_arg(m, queue));
}

/*
 * --- fetch and wire
 * ----------------------------------------------------------------------------------------------
 */

struct frame {
	struct model_82599 *m;
	u32 arg;
	bool stamp;
	struct model_frame f;
	u8 data[];
};

static void hash_frame(struct model_82599 *m, const struct model_frame *f)
{
	u64 h = m->hash ^ f->depart_ps;

	for (u32 i = 0; i < f->len; i++)
		h = (h ^ f->data[i]) * 0x100000001b3u;
	m->hash = h ^ h >> 29;
}

static void count_frame(struct model_82599 *m, u32 queue, const u8 *data, u32 len)
{
	u64 octets = (u64)*model_reg(m, IXGBE_GOTCH) << 32 | *model_reg(m, IXGBE_GOTCL);

	octets += max(len + 4, 64u);
	*model_reg(m, IXGBE_GOTCL) = octets;
	*model_reg(m, IXGBE_GOTCH) = octets >> 32 & 0xf;
	++*model_reg(m, IXGBE_GPTC);
	++*model_reg(m, IXGBE_TPT);
	if (data[0] & 1)
		++*model_reg(m, data[0] == 0xff ? IXGBE_BPTC : IXGBE_MPTC);
	model_count_size(m, IXGBE_PTC64(0), len);
	if (queue < 16)
		++*model_reg(m, IXGBE_QPTC(queue));
}

/* One stamp at a time: the next has to wait until it is read (7.9.3). */
static void stamp(struct model_82599 *m)
{
	u64 now = model_clock(m);

	if ((*model_reg(m, IXGBE_TSYNCTXCTL) & (IXGBE_TSYNCTXCTL_EN | IXGBE_TSYNCTXCTL_VALID)) !=
	    IXGBE_TSYNCTXCTL_EN)
		return;
	*model_reg(m, IXGBE_TXSTMPL) = now;
	*model_reg(m, IXGBE_TXSTMPH) = now >> 32;
	*model_reg(m, IXGBE_TSYNCTXCTL) |= IXGBE_TSYNCTXCTL_VALID;
}

static void frame_departs(void *ctx, u32 unused)
{
	struct frame *fr = ctx;
	struct model_82599 *m = fr->m;
	char note[160];

	(void)unused;
	if (!event_void(m, fr->arg)) {
		count_frame(m, fr->f.queue, fr->f.data, fr->f.len);
		if (fr->stamp)
			stamp(m);
		hash_frame(m, &fr->f);
		if (m->p.pcapng) {
			snprintf(note, sizeof(note),
				 "queue %u packet %llu segment %u of %u, fetched %.3f us, left "
				 "%.3f us",
				 fr->f.queue, (unsigned long long)fr->f.packet, fr->f.segment + 1,
				 fr->f.nr_segments, (double)fr->f.fetched_ps / SIM_PS_PER_US,
				 (double)fr->f.depart_ps / SIM_PS_PER_US);
			pcapng_frame(m->p.pcapng, fr->f.depart_ps / SIM_PS_PER_NS, true, fr->f.data,
				     fr->f.len, note);
		}
		if (m->lpbk)
			model_receive(m, m->vt.now_ps, 0, fr->f.data, fr->f.len);
		else if (m->p.partner && m->link_up)
			m->p.partner(m->p.ctx, &fr->f);
	}
	free(fr);
}

/* LEN bytes of PKT from byte AT on, as memory holds them now. */
static bool read_packet(struct model_82599 *m, struct tx_queue *q, const struct tx_packet *pkt,
			u32 at, u8 *to, u32 len, bool peek)
{
	u32 i = pkt->data;

	for (u32 n = 0; n < pkt->nr_data && len; n++, i = ring_next(q, i)) {
		u32 size = IXGBE_TXD_DTALEN(q->shadow[i].lo), part;

		if (at >= size) {
			at -= size;
			continue;
		}
		part = min(size - at, len);
		if (!(peek ? model_peek(m, q->shadow[i].addr + at, to, part)
			   : model_dma_read(m, q->shadow[i].addr + at, to, part)))
			return false;
		to += part;
		len -= part;
		at = 0;
	}
	return !len;
}

static u32 segment_payload(const struct tx_packet *pkt)
{
	return pkt->tse ? min(pkt->ctx.mss, pkt->payload - pkt->segment * pkt->ctx.mss)
			: pkt->payload;
}

/* Reads the next segment of PKT into a frame. NULL: a fault, or no memory. */
static struct frame *make_frame(struct model_82599 *m, u32 queue, struct tx_packet *pkt,
				u64 depart_ps)
{
	struct tx_queue *q = &m->txq[queue];
	u32 payload = segment_payload(pkt), at = pkt->header + pkt->segment * pkt->ctx.mss;
	u32 len = pkt->header + payload;
	struct frame *fr = malloc(sizeof(*fr) + max(len, 60u));

	if (!fr) {
		m->vt.nomem = true;
		return NULL;
	}
	if (!pkt->tse)
		at = 0;
	if (!read_packet(m, q, pkt, 0, fr->data, pkt->header, false) ||
	    !read_packet(m, q, pkt, at, fr->data + pkt->header, payload, false)) {
		free(fr);
		return NULL;
	}
	if (pkt->snapshot && (memcmp(fr->data, pkt->snapshot, pkt->header) ||
			      memcmp(fr->data + pkt->header, pkt->snapshot + at, payload)))
		model_violate(m, V_BUFFER_CHANGED, "queue %u, packet %llu, segment %u", queue,
			      (unsigned long long)pkt->number, pkt->segment);
	offload_segment(m, pkt, fr->data, len);
	if (len < 60 && *model_reg(m, IXGBE_HLREG0) & IXGBE_HLREG0_TXPADEN) {
		memset(fr->data + len, 0, 60 - len);
		len = 60;
	}
	fr->m = m;
	fr->arg = event_arg(m, queue);
	fr->stamp = pkt->stamp && pkt->segment + 1 == pkt->nr_segments;
	fr->f = (struct model_frame){ fr->data,	    len,	  queue,
				      pkt->number,  pkt->segment, pkt->nr_segments,
				      m->vt.now_ps, depart_ps };
	return fr;
}

struct fetch {
	struct model_82599 *m;
	u32 arg;
	u64 depart_ps;
};

static void segment_fetched(void *ctx, u32 unused)
{
	struct fetch f = *(struct fetch *)ctx;
	struct model_82599 *m = f.m;
	u32 queue = f.arg & 0xff;
	struct tx_queue *q = &m->txq[queue];
	struct tx_packet *pkt;
	struct frame *fr;

	(void)unused;
	free(ctx);
	if (event_void(m, f.arg))
		return;
	m->fetching = false;
	if (q->enabled && q->pkt_fetch != q->pkt_tail) {
		pkt = packet_at(q, q->pkt_fetch);
		fr = make_frame(m, queue, pkt, f.depart_ps);
		if (!fr) {
			q->stopped = true;
		} else {
			vtime_post(&m->vt, max(f.depart_ps, m->vt.now_ps), EV_WIRE, frame_departs,
				   fr, 0);
			if (++pkt->segment == pkt->nr_segments)
				packet_fetched(m, queue, pkt);
			else if (pkt->segment == pkt->nr_segments / 2 && pkt->nr_data > 2 &&
				 *model_reg(m, IXGBE_TDWBAL(queue)) & IXGBE_TDWBAL_HEAD_WB_ENABLE &&
				 model_random(m) % 2)
				write_back(m, queue, 0, (pkt->data + 1) % q->nr, false, true);
		}
	}
	kick(m);
}

static void fetch_segment(struct model_82599 *m, u32 queue)
{
	struct tx_packet *pkt = packet_at(&m->txq[queue], m->txq[queue].pkt_fetch);
	struct fetch *f = malloc(sizeof(*f));
	u32 payload = segment_payload(pkt);
	u64 done_ps;

	if (!f) {
		m->vt.nomem = true;
		return;
	}
	if (pkt->header + payload > m->nic.p.fifo_threshold_bytes) {
		model_violate(m, V_TXPBTHRESH, "queue %u: frame of %u bytes", queue,
			      pkt->header + payload);
		m->txq[queue].stopped = true;
		free(f);
		return;
	}
	if (m->at_fn && pkt->segment == m->at_segment) {
		void (*fn)(void *ctx) = m->at_fn;

		m->at_fn = NULL;
		fn(m->at_ctx);
	}
	m->fetching = true;
	m->last_queue = queue;
	*f = (struct fetch){ m, event_arg(m, queue), 0 };
	done_ps = nic_fetch(&m->nic, m->vt.now_ps, pkt->header, payload, &f->depart_ps);
	vtime_post(&m->vt, done_ps, EV_FETCH, segment_fetched, f, 0);
}

static void kick_later(void *ctx, u32 arg)
{
	struct model_82599 *m = ctx;

	if (event_void(m, arg))
		return;
	m->kick_ps = ~0ull;
	kick(m);
}

/* An idle fetch engine takes a segment of the next queue in turn that has one. */
static void kick(struct model_82599 *m)
{
	u64 soonest = ~0ull;

	if (m->fetching)
		return;
	for (u32 i = 1; i <= IXGBE_NR_QUEUES; i++) {
		u32 queue = (m->last_queue + i) % IXGBE_NR_QUEUES;
		struct tx_queue *q = &m->txq[queue];
		u64 ready;

		if (!q->enabled || q->stopped || q->pkt_fetch == q->pkt_tail)
			continue;
		ready = packet_at(q, q->pkt_fetch)->ready_ps;
		if (ready <= m->vt.now_ps) {
			fetch_segment(m, queue);
			if (m->fetching)
				return;
			continue;
		}
		soonest = min(soonest, ready);
	}
	if (soonest < m->kick_ps) {
		m->kick_ps = soonest;
		vtime_post(&m->vt, soonest, EV_FETCH, kick_later, m, event_arg(m, 0));
	}
}

/*
 * --- descriptors to packets
 * ----------------------------------------------------------------------------------------------
 */

static bool is_context(const struct ixgbe_desc *d)
{
	return (d->lo & IXGBE_TXD_DTYP_MASK) == IXGBE_TXD_DTYP_CTXT;
}

static bool check_format(struct model_82599 *m, u32 queue, u32 i, const struct ixgbe_desc *d)
{
	u32 type = d->lo & IXGBE_TXD_DTYP_MASK;

	if (!(d->lo & IXGBE_TXD_DEXT) ||
	    (type != IXGBE_TXD_DTYP_CTXT && type != IXGBE_TXD_DTYP_DATA)) {
		model_violate(m, V_DESC_FORMAT, "queue %u, descriptor %u: 0x%08x", queue, i, d->lo);
		return false;
	}
	if (type == IXGBE_TXD_DTYP_DATA) {
		if (d->lo & IXGBE_TXD_LO_RESERVED || d->hi & IXGBE_TXD_HI_RESERVED)
			model_violate(m, V_DESC_RESERVED, "queue %u, descriptor %u", queue, i);
		if (!IXGBE_TXD_DTALEN(d->lo) || IXGBE_TXD_DTALEN(d->lo) > IXGBE_MAX_DTALEN)
			model_violate(m, V_DTALEN, "queue %u, descriptor %u: %u bytes", queue, i,
				      IXGBE_TXD_DTALEN(d->lo));
		if (!IXGBE_TXD_DTALEN(d->lo) || IXGBE_TXD_DTALEN(d->lo) > IXGBE_LINUX_DTALEN)
			return false;
		if (d->lo & IXGBE_TXD_RS && !(d->lo & IXGBE_TXD_EOP))
			model_violate(m, V_RS_NO_EOP, "queue %u, descriptor %u", queue, i);
	} else if (d->addr >> 32 || d->lo & 0x1f0fe1ff) {
		model_violate(m, V_DESC_RESERVED, "queue %u, context %u", queue, i);
	}
	return true;
}

static void take_context(struct model_82599 *m, u32 queue, u32 i, const struct ixgbe_desc *d)
{
	u32 idx = d->hi >> IXGBE_TXD_IDX_SHIFT & 7;

	if (idx >= MODEL_NR_CTX) {
		model_violate(m, V_CTX_IDX, "queue %u, context %u: IDX %u", queue, i, idx);
		return;
	}
	m->txq[queue].ctx[idx] = (struct tx_context){
		.valid = true,
		.iplen = d->addr & IXGBE_TXC_IPLEN_MASK,
		.maclen = d->addr >> IXGBE_TXC_MACLEN_SHIFT & 0x7f,
		.ipv4 = d->lo & IXGBE_TXC_TUCMD_IPV4,
		.tcp = (d->lo & IXGBE_TXC_TUCMD_L4T) == IXGBE_TXC_TUCMD_L4T_TCP,
		.udp = (d->lo & IXGBE_TXC_TUCMD_L4T) == IXGBE_TXC_TUCMD_L4T_UDP,
		.l4len = d->hi >> IXGBE_TXC_L4LEN_SHIFT & 0xff,
		.mss = d->hi >> IXGBE_TXC_MSS_SHIFT,
	};
}

/* What the first data descriptor of PKT says about it. False: the queue hangs. */
static bool take_first(struct model_82599 *m, u32 queue, struct tx_packet *pkt)
{
	struct tx_queue *q = &m->txq[queue];
	const struct ixgbe_desc *d = &q->shadow[pkt->data];
	u32 idx = d->hi >> IXGBE_TXD_IDX_SHIFT & 7, paylen = d->hi >> IXGBE_TXD_PAYLEN_SHIFT;

	pkt->tse = d->lo & IXGBE_TXD_TSE;
	pkt->ixsm = d->hi & IXGBE_TXD_POPTS_IXSM;
	pkt->txsm = d->hi & IXGBE_TXD_POPTS_TXSM;
	pkt->stamp = d->lo & IXGBE_TXD_MAC_1588;
	pkt->nr_segments = 1;
	pkt->header = 0;
	if (pkt->tse || pkt->ixsm || pkt->txsm) {
		if (!(d->lo & IXGBE_TXD_IFCS))
			model_violate(m, V_IFCS, "queue %u, descriptor %u", queue, pkt->data);
		if (idx >= MODEL_NR_CTX) {
			model_violate(m, V_CTX_IDX, "queue %u, descriptor %u", queue, pkt->data);
			return false;
		}
		if (!q->ctx[idx].valid) {
			model_violate(m, V_CTX_MISSING, "queue %u, descriptor %u, IDX %u", queue,
				      pkt->data, idx);
			return false;
		}
		pkt->ctx = q->ctx[idx];
	}
	if (pkt->tse) {
		pkt->header = pkt->ctx.maclen + pkt->ctx.iplen + pkt->ctx.l4len;
		if (!pkt->ctx.mss) {
			model_violate(m, V_MSS, "queue %u, descriptor %u", queue, pkt->data);
			return false;
		}
	}
	if (paylen + pkt->header != pkt->bytes || !paylen) {
		model_violate(m, V_PAYLEN,
			      "queue %u, descriptor %u: PAYLEN %u, %u bytes in %u buffers", queue,
			      pkt->data, paylen, pkt->bytes, pkt->nr_data);
		return false;
	}
	pkt->payload = paylen;
	if (pkt->tse)
		pkt->nr_segments = DIV_ROUND_UP(paylen, pkt->ctx.mss);
	return true;
}

/* Buffers that hold the header of PKT. */
static u32 header_buffers(const struct tx_queue *q, const struct tx_packet *pkt)
{
	u32 n = 0, at = 0;

	for (u32 i = pkt->data; at < pkt->header && n < pkt->nr_data; n++, i = ring_next(q, i))
		at += IXGBE_TXD_DTALEN(q->shadow[i].lo);
	return n;
}

static bool check_packet(struct model_82599 *m, u32 queue, struct tx_packet *pkt)
{
	struct tx_queue *q = &m->txq[queue];
	u32 w = wthresh(m, queue), hlreg0 = *model_reg(m, IXGBE_HLREG0);
	u32 largest = hlreg0 & IXGBE_HLREG0_JUMBOEN ? *model_reg(m, IXGBE_MAXFRS) >> 16 : 1518;

	if (pkt->nr_data > IXGBE_TX_DESC_CACHE - min(w, IXGBE_TX_DESC_CACHE - 1u)) {
		model_violate(m, V_DESC_COUNT, "queue %u: %u descriptors, WTHRESH %u", queue,
			      pkt->nr_data, w);
		return false;
	}
	if (!take_first(m, queue, pkt))
		return false;
	if (!w && !pkt->rs)
		model_violate(m, V_RS_MISSING, "queue %u, packet %llu", queue,
			      (unsigned long long)pkt->number);
	if (w && pkt->rs)
		model_violate(m, V_RS_WTHRESH, "queue %u, WTHRESH %u", queue, w);
	if ((pkt->tse || pkt->txsm || pkt->ixsm) &&
	    (!(hlreg0 & IXGBE_HLREG0_TXCRCEN) || !(hlreg0 & IXGBE_HLREG0_TXPADEN)))
		model_violate(m, V_HLREG0, "HLREG0 0x%08x", hlreg0);
	if (pkt->tse && !m->tcpflg_seen)
		model_violate(m, V_TCPFLG, "queue %u", queue);
	if (pkt->header > IXGBE_MAX_TSO_HDR || header_buffers(q, pkt) > IXGBE_MAX_HDR_DESC)
		model_violate(m, V_HDR_LEN, "queue %u: %u bytes in %u buffers", queue, pkt->header,
			      header_buffers(q, pkt));
	if (pkt->bytes < 17 || pkt->header + segment_payload(pkt) + 4 > largest) {
		model_violate(m, V_FRAME_LEN, "queue %u: frame of %u bytes, largest %u", queue,
			      pkt->header + segment_payload(pkt), largest);
		return false;
	}
	pkt->snapshot = malloc(pkt->bytes);
	if (!pkt->snapshot) {
		m->vt.nomem = true;
		return false;
	}
	if (!read_packet(m, q, pkt, 0, pkt->snapshot, pkt->bytes, true)) {
		free(pkt->snapshot); /* the fetch will fault */
		pkt->snapshot = NULL;
		return true;
	}
	return offload_check(m, queue, pkt, pkt->snapshot);
}

static void check_setup(struct model_82599 *m, u32 queue)
{
	if (*model_reg(m, IXGBE_DTXMXSZRQ) == IXGBE_DTXMXSZRQ_RESET)
		model_violate(m, V_DTXMXSZRQ, "queue %u", queue);
	if (*model_reg(m, IXGBE_RTTDCS) & IXGBE_RTTDCS_ARBDIS)
		model_violate(m, V_ARBDIS_LEFT, "queue %u", queue);
	if (*model_reg(m, IXGBE_DCA_TXCTRL(queue)) & IXGBE_DCA_TXCTRL_DESC_WRO_EN)
		model_violate(m, V_DCA_TXCTRL, "queue %u", queue);
}

/* Makes packets of the descriptors from parsed on; what is no whole packet stays. */
static void parse(struct model_82599 *m, u32 queue)
{
	struct tx_queue *q = &m->txq[queue];
	struct tx_packet pkt = { .first = q->parsed, .data = q->parsed };
	bool in_packet = false;

	for (u32 i = q->parsed; i != q->tail && !q->stopped; i = ring_next(q, i)) {
		const struct ixgbe_desc *d = &q->shadow[i];

		if (!check_format(m, queue, i, d)) {
			q->stopped = true;
			return;
		}
		pkt.nr_desc++;
		if (is_context(d)) {
			take_context(m, queue, i, d);
			continue;
		}
		if (!in_packet)
			pkt.data = i;
		in_packet = true;
		pkt.nr_data++;
		pkt.bytes += IXGBE_TXD_DTALEN(d->lo);
		if (!(d->lo & IXGBE_TXD_EOP))
			continue;
		pkt.rs = d->lo & IXGBE_TXD_RS;
		pkt.number = q->nr_packets++;
		pkt.doorbell_ps = m->vt.now_ps;
		pkt.ready_ps = m->vt.now_ps + m->timing.start_ps;
		if (!check_packet(m, queue, &pkt)) {
			free(pkt.snapshot);
			q->stopped = true;
			return;
		}
		*packet_at(q, q->pkt_tail++) = pkt;
		q->parsed = ring_next(q, i);
		pkt = (struct tx_packet){ .first = q->parsed, .data = q->parsed };
		in_packet = false;
	}
}

void tx_doorbell(struct model_82599 *m, u32 queue, u32 tail)
{
	struct tx_queue *q = &m->txq[queue];
	const struct ixgbe_desc *last;

	if (!q->enabled) {
		if (tail)
			model_violate(m, V_TAIL_DISABLED, "transmit queue %u, tail %u", queue,
				      tail);
		return;
	}
	if (!q->enabled_seen)
		model_violate(m, V_TAIL_DISABLED, "transmit queue %u, tail %u", queue, tail);
	if (tail >= q->nr) {
		model_violate(m, V_TAIL_RANGE, "transmit queue %u, tail %u of %u", queue, tail,
			      q->nr);
		return;
	}
	if (q->stopped || tail == q->tail)
		return;
	check_setup(m, queue);
	if (ring_distance(q, q->wb, q->tail) + ring_distance(q, q->tail, tail) >= q->nr) {
		model_violate(m, V_RING_OVERRUN, "queue %u: tail %u to %u, written back to %u",
			      queue, q->tail, tail, q->wb);
		q->stopped = true;
		return;
	}
	for (u32 i = q->tail; i != tail; i = ring_next(q, i))
		if (!model_dma_read(m, q->base + 16ull * i, &q->shadow[i], sizeof(q->shadow[i]))) {
			q->stopped = true;
			return;
		}
	q->tail = tail;
	last = &q->shadow[tail ? tail - 1 : q->nr - 1];
	if (is_context(last))
		model_violate(m, V_TAIL_CONTEXT, "queue %u, tail %u", queue, tail);
	else if (!(last->lo & IXGBE_TXD_EOP))
		model_violate(m, V_TAIL_MID_PACKET, "queue %u, tail %u", queue, tail);
	nic_post(&m->nic, m->vt.now_ps);
	parse(m, queue);
	kick(m);
}
