/* SPDX-License-Identifier: MIT */
/*
 * A virtual CPU: a coroutine that holds a CPU slot of the model (skb/cpu.h) while it runs.
 *
 * All virtual CPUs of a simulation run on one thread, one at a time, so that what one does between
 * two waits is indivisible.
 */
#ifndef SIM_VCPU_H
#define SIM_VCPU_H

#include "skb/compiler.h"

struct coro;

struct vcpu {
	struct coro *coro;
	unsigned int slot, node;
	bool started, stopping;
	void (*body)(struct vcpu *v, void *ctx);
	void *ctx;
};

/*
 * Makes V the CPU SLOT of NODE, which no other CPU is; BODY(V, CTX) begins at the first
 * vcpu_run(). 0; -ENOMEM; what skb_cpu_attach() returns. The calling thread is a CPU and stays it.
 */
int vcpu_start(struct vcpu *v, unsigned int slot, unsigned int node,
	       void (*body)(struct vcpu *v, void *ctx), void *ctx);

/* Lets V run until it waits or ends; the calling thread then is the CPU again that it was. */
void vcpu_run(struct vcpu *v);

/* For V's body: waits for the next vcpu_run(). False if it is to return. */
bool vcpu_wait(struct vcpu *v);

/*
 * Lets BODY return, which it must when vcpu_wait() says so, and frees V's stack. Nothing if V is
 * all zeros.
 */
void vcpu_stop(struct vcpu *v);

#endif
