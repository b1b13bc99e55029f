/* SPDX-License-Identifier: MIT */
#include "skb/cpu.h"
#include "skb/obj.h"

#include <errno.h>

__thread unsigned int skb_this_cpu = SKB_NO_CPU;
__thread unsigned int skb_this_node;

int skb_cpu_attach(unsigned int slot, unsigned int node)
{
	int err;

	skb_cpu_detach();
	if (slot >= SKB_NR_CPUS || node >= obj_nr_nodes())
		return -EINVAL;
	err = obj_allocator->cpu_attach(slot);
	if (err)
		return err;
	skb_this_cpu = slot;
	skb_this_node = node;
	return 0;
}

void skb_cpu_detach(void)
{
	skb_this_cpu = SKB_NO_CPU;
	skb_this_node = 0;
}
