/* SPDX-License-Identifier: MIT */
/*
 * Virtual time: a clock in ps that jumps from event to event.
 *
 * Events at one time run by class, lowest first, then in the order in which they were posted: the
 * same program runs the same way every time. For one thread.
 */
#ifndef SIM_VTIME_H
#define SIM_VTIME_H

#include "skb/compiler.h"

struct vtime_event {
	u64 at_ps;
	u64 seq;
	u32 cls;
	u32 arg;
	void (*fn)(void *ctx, u32 arg);
	void *ctx;
};

struct vtime {
	u64 now_ps;
	u64 seq; /* events posted so far */
	struct vtime_event *heap; /* the next one first */
	u32 nr, room;
	bool nomem;
};

/* A clock at 0 with nothing to come. */
void vtime_init(struct vtime *vt);
void vtime_exit(struct vtime *vt);

/*
 * FN(CTX, ARG) at AT_PS, which is not before now. If there is no memory, the event is lost and
 * vtime_run() says so.
 */
void vtime_post(struct vtime *vt, u64 at_ps, u32 cls, void (*fn)(void *ctx, u32 arg), void *ctx,
		u32 arg);

/*
 * Runs the next event, with the clock set to its time. False if there is none.
 */
bool vtime_step(struct vtime *vt);

/* Runs events until none is left. 0, or -ENOMEM if one was lost (it stops there). */
int vtime_run(struct vtime *vt);

#endif
