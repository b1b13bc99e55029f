/* SPDX-License-Identifier: MIT */
#include "sim/vtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void vtime_init(struct vtime *vt)
{
	memset(vt, 0, sizeof(*vt));
}

void vtime_exit(struct vtime *vt)
{
	free(vt->heap);
	vt->heap = NULL;
	vt->nr = vt->room = 0;
}

static bool sooner(const struct vtime_event *a, const struct vtime_event *b)
{
	if (a->at_ps != b->at_ps)
		return a->at_ps < b->at_ps;
	if (a->cls != b->cls)
		return a->cls < b->cls;
	return a->seq < b->seq;
}

void vtime_post(struct vtime *vt, u64 at_ps, u32 cls, void (*fn)(void *ctx, u32 arg), void *ctx,
		u32 arg)
{
	struct vtime_event ev = { at_ps, vt->seq++, cls, arg, fn, ctx };
	u32 i;

	BUG_ON(at_ps < vt->now_ps);
	if (vt->nr == vt->room) {
		u32 room = vt->room ? 2 * vt->room : 256;
		struct vtime_event *heap = realloc(vt->heap, room * sizeof(*heap));

		if (!heap) {
			vt->nomem = true;
			return;
		}
		vt->heap = heap;
		vt->room = room;
	}
	for (i = vt->nr++; i && sooner(&ev, &vt->heap[(i - 1) / 2]); i = (i - 1) / 2)
		vt->heap[i] = vt->heap[(i - 1) / 2];
	vt->heap[i] = ev;
}

static struct vtime_event take_first(struct vtime *vt)
{
	struct vtime_event first = vt->heap[0], last = vt->heap[--vt->nr];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < vt->nr) {
		if (child + 1 < vt->nr && sooner(&vt->heap[child + 1], &vt->heap[child]))
			child++;
		if (sooner(&last, &vt->heap[child]))
			break;
		vt->heap[i] = vt->heap[child];
		i = child;
	}
	vt->heap[i] = last;
	return first;
}

bool vtime_step(struct vtime *vt)
{
	struct vtime_event ev;

	if (!vt->nr)
		return false;
	ev = take_first(vt);
	vt->now_ps = ev.at_ps;
	ev.fn(ev.ctx, ev.arg);
	return true;
}

int vtime_run(struct vtime *vt)
{
	while (!vt->nomem && vtime_step(vt))
		;
	return vt->nomem ? -ENOMEM : 0;
}
