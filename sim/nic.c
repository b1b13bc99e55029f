/* SPDX-License-Identifier: MIT */
#include "sim/nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

u64 nic_time_ps(u64 bytes, u32 rate_mbps)
{
	/* 1 Mbit/s is one bit in 10^6 ps. */
	return (bytes * 8 * 1000000 + rate_mbps / 2) / rate_mbps;
}

static u64 frame_wire_ps(const struct nic_params *p, u32 frame)
{
	return nic_time_ps(max(frame + p->framing_bytes, p->min_wire_bytes), p->wire_mbps);
}

u64 nic_wire_ps(const struct nic_params *p, u32 payload)
{
	return frame_wire_ps(p, payload + p->header_bytes);
}

static u64 fetch_ps(const struct nic_params *p, u32 header, u32 payload)
{
	u32 tlps = DIV_ROUND_UP(payload, p->mps_bytes) + 1; /* one for the header */

	return nic_time_ps(payload + header + p->tlp_bytes * tlps, p->pcie_mbps);
}

static int refuse(char *err, size_t errlen, const struct nic_params *p, const char *why)
{
	snprintf(err, errlen, "NIC timing '%s': %s", p->name ? p->name : "(no name)", why);
	return -EINVAL;
}

int nic_init(struct nic *nic, const struct nic_params *p, char *err, size_t errlen)
{
	u32 slots = 1;

	if (!p->wire_mbps || !p->pcie_mbps || !p->mps_bytes || !p->header_bytes)
		return refuse(err, errlen, p, "rates, mps_bytes and header_bytes are at least 1");
	if (p->fifo_threshold_bytes > p->fifo_bytes)
		return refuse(err, errlen, p, "the threshold is above the size of the buffer");
	if (p->fifo_threshold_bytes <= p->header_bytes)
		return refuse(err, errlen, p, "no frame fits below the threshold");
	if (p->wthresh && !p->itr_ps)
		return refuse(err, errlen, p, "wthresh needs itr_ps, or its rest is never told");
	memset(nic, 0, sizeof(*nic));
	/* A segment has a byte of payload at least. */
	while (slots <= p->fifo_threshold_bytes / (p->header_bytes + 1))
		slots *= 2;
	nic->fifo = calloc(slots, sizeof(*nic->fifo));
	if (!nic->fifo) {
		snprintf(err, errlen, "no memory for a transmit buffer of %u frames", slots);
		return -ENOMEM;
	}
	nic->fifo_mask = slots - 1;
	nic->p = *p;
	return 0;
}

void nic_exit(struct nic *nic)
{
	free(nic->fifo);
	nic->fifo = NULL;
}

static void fifo_drain(struct nic *nic, u64 now_ps)
{
	while (nic->fifo_head != nic->fifo_tail) {
		struct nic_segment *s = &nic->fifo[nic->fifo_head & nic->fifo_mask];

		if (s->depart_ps > now_ps)
			break;
		nic->fifo_level -= s->bytes;
		nic->fifo_head++;
	}
}

/* The first moment from T_PS on at which BYTES more stay below the threshold. */
static u64 fifo_wait(struct nic *nic, u64 t_ps, u32 bytes)
{
	for (;;) {
		bool own;
		u64 next;

		fifo_drain(nic, t_ps);
		own = nic->fifo_head != nic->fifo_tail;
		next = own ? nic->fifo[nic->fifo_head & nic->fifo_mask].depart_ps : ~0ull;
		if (nic->fifo_level + bytes <= nic->p.fifo_threshold_bytes) {
			u32 room = nic->p.fifo_threshold_bytes - nic->fifo_level - bytes;
			u64 covers_ps = nic_time_ps(room, nic->p.wire_mbps);

			/* Others' traffic leaves bit by bit. */
			if (t_ps + covers_ps >= nic->backlog_end_ps)
				return t_ps;
			next = min(next, nic->backlog_end_ps - covers_ps);
		}
		BUG_ON(next == ~0ull);
		t_ps = next;
	}
}

static void fifo_put(struct nic *nic, u64 depart_ps, u32 bytes)
{
	BUG_ON(nic->fifo_tail - nic->fifo_head > nic->fifo_mask);
	nic->fifo[nic->fifo_tail++ & nic->fifo_mask] = (struct nic_segment){ depart_ps, bytes };
	nic->fifo_level += bytes;
}

void nic_post(struct nic *nic, u64 now_ps)
{
	const struct nic_params *p = &nic->p;

	if (p->backlog_bytes && nic->fetch_free_ps <= now_ps) {
		nic->backlog_end_ps = now_ps + nic_time_ps(p->backlog_bytes, p->wire_mbps);
		nic->wire_free_ps = max(nic->wire_free_ps, nic->backlog_end_ps);
	}
}

u64 nic_fetch(struct nic *nic, u64 from_ps, u32 header, u32 payload, u64 *depart_ps)
{
	const struct nic_params *p = &nic->p;
	u32 frame = header + payload;
	u64 t;

	BUG_ON(frame > p->fifo_threshold_bytes);
	t = fifo_wait(nic, from_ps, frame) + fetch_ps(p, header, payload);
	nic->wire_free_ps = max(nic->wire_free_ps, t) + frame_wire_ps(p, frame);
	*depart_ps = nic->wire_free_ps;
	fifo_put(nic, nic->wire_free_ps, frame);
	return nic->fetch_free_ps = t;
}

u64 nic_xmit(struct nic *nic, u64 now_ps, u32 bytes, u32 mss, u64 *depart_ps)
{
	const struct nic_params *p = &nic->p;
	u64 t = max(now_ps + p->start_ps, nic->fetch_free_ps);

	BUG_ON(!bytes || !mss);
	nic_post(nic, now_ps);
	for (u32 at = 0; at < bytes; at += mss)
		t = nic_fetch(nic, t, p->header_bytes, min(mss, bytes - at), depart_ps++);
	return t;
}

static u32 report_upto(struct nic *nic, u32 desc)
{
	u32 n = 0;

	while (nic->wb_head != nic->wb_tail &&
	       (s32)(desc - nic->last_desc[nic->wb_head % NIC_MAX_PACKETS]) >= 0) {
		nic->wb_head++;
		n++;
	}
	return n;
}

u32 nic_fetched(struct nic *nic, u32 nr_desc)
{
	u32 rest = 0;

	BUG_ON(nic->wb_tail - nic->wb_head == NIC_MAX_PACKETS || !nr_desc);
	nic->desc_fetched += nr_desc;
	nic->last_desc[nic->wb_tail++ % NIC_MAX_PACKETS] = nic->desc_fetched;
	if (nic->p.wthresh)
		rest = (nic->desc_fetched - nic->desc_written) % nic->p.wthresh;
	nic->desc_written = nic->desc_fetched - rest;
	return report_upto(nic, nic->desc_written);
}

u32 nic_flush(struct nic *nic)
{
	nic->desc_written = nic->desc_fetched;
	return report_upto(nic, nic->desc_written);
}

int nic_lone(const struct nic_params *p, u32 bytes, u32 mss, u32 nr_desc, u32 k,
	     struct nic_lone *out, char *err, size_t errlen)
{
	struct nic nic;
	u64 *depart;
	u32 segs;
	int ret;

	if (!bytes || !mss || !nr_desc || !k || k > DIV_ROUND_UP(bytes, mss)) {
		snprintf(err, errlen, "a packet of %u bytes in segments of %u has no segment %u",
			 bytes, mss, k);
		return -EINVAL;
	}
	ret = nic_init(&nic, p, err, errlen);
	if (ret)
		return ret;
	segs = DIV_ROUND_UP(bytes, mss);
	depart = calloc(segs, sizeof(*depart));
	if (!depart) {
		snprintf(err, errlen, "no memory for %u segments", segs);
		nic_exit(&nic);
		return -ENOMEM;
	}
	out->fetched_ps = nic_xmit(&nic, 0, bytes, mss, depart);
	out->dd_ps =
		out->fetched_ps + p->writeback_ps + (nic_fetched(&nic, nr_desc) ? 0 : p->itr_ps);
	out->first_ps = depart[0];
	out->kth_ps = depart[k - 1];
	out->last_ps = depart[segs - 1];
	out->window_ps = (s64)(out->dd_ps - out->kth_ps);
	free(depart);
	nic_exit(&nic);
	return 0;
}
