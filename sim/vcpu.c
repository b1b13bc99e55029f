/* SPDX-License-Identifier: MIT */
#include "sim/vcpu.h"
#include "sim/coro.h"
#include "skb/cpu.h"

#include <errno.h>
#include <string.h>

static void vcpu_main(void *arg)
{
	struct vcpu *v = arg;

	v->body(v, v->ctx);
}

int vcpu_start(struct vcpu *v, unsigned int slot, unsigned int node,
	       void (*body)(struct vcpu *v, void *ctx), void *ctx)
{
	unsigned int cpu = smp_processor_id(), home = numa_node_id();
	int ret;

	memset(v, 0, sizeof(*v));
	/* What may fail, fails here: vcpu_run() attaches the slot again each time. */
	ret = skb_cpu_attach(slot, node);
	BUG_ON(skb_cpu_attach(cpu, home));
	if (ret)
		return ret;
	v->slot = slot;
	v->node = node;
	v->body = body;
	v->ctx = ctx;
	v->coro = coro_new(vcpu_main, v, 0);
	return v->coro ? 0 : -ENOMEM;
}

void vcpu_run(struct vcpu *v)
{
	unsigned int cpu = smp_processor_id(), home = numa_node_id();

	v->started = true;
	BUG_ON(skb_cpu_attach(v->slot, v->node));
	coro_resume(v->coro);
	BUG_ON(skb_cpu_attach(cpu, home));
}

bool vcpu_wait(struct vcpu *v)
{
	BUG_ON(coro_self() != v->coro);
	coro_yield();
	return !v->stopping;
}

void vcpu_stop(struct vcpu *v)
{
	if (!v->coro)
		return;
	v->stopping = true;
	if (v->started && !coro_done(v->coro))
		vcpu_run(v);
	BUG_ON(v->started && !coro_done(v->coro));
	coro_free(v->coro);
	v->coro = NULL;
}
