/* SPDX-License-Identifier: MIT */
/*
 * A CPU of the model: a thread that has taken a CPU slot.
 *
 * Everything "per CPU" is an array indexed by the slot, owned by the thread that holds it; roles that share a CPU are
 * calls within that thread. Slots outlive threads, so that a new thread on the same slot finds its caches warm.
 *
 *                     skb_cpu_attach(s)   skb_cpu_detach()
 * skb_cpu_attach(s)          X                  X            X: for the same slot, the caller serialises
 */
#ifndef SKB_CPU_H
#define SKB_CPU_H

#include "skb/compiler.h"

#define SKB_NR_CPUS  64
#define SKB_NR_NODES 8
#define SKB_NO_CPU \
	(~0U) /* skb_this_cpu of a thread that is no CPU: it faults in whatever is "per CPU" */

extern __thread unsigned int skb_this_cpu; /* the slot of the calling thread */
extern __thread unsigned int skb_this_node; /* and the memory node that is local to it */

static __always_inline unsigned int smp_processor_id(void)
{
	return skb_this_cpu;
}

static __always_inline unsigned int numa_node_id(void)
{
	return skb_this_node;
}

/*
 * Makes the calling thread CPU SLOT, local to node NODE, and lets the object allocator set up its caches for it. May be
 * called again, for the same slot or another one. 0; -EINVAL for a slot beyond SKB_NR_CPUS or a node beyond those that
 * obj_init() was told of (one before that call); or the allocator's error. On an error the thread is no CPU.
 */
int skb_cpu_attach(unsigned int slot, unsigned int node);

/* Gives the slot back; its caches stay for the next thread that takes it. */
void skb_cpu_detach(void);

#endif
