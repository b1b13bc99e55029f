/* SPDX-License-Identifier: MIT */
#include "skb/skb_defer.h"
#include "skb/skb_napi.h"
#include "skb/skb_zcopy.h"

#include <string.h>

struct softnet_data softnet_data[SKB_NR_CPUS];
unsigned int sysctl_skb_defer_max = SKB_DEFER_MAX_DEFAULT;
u64 cpu_online_mask = ~(u64)0;

/* Freed by whoever called: up to 6.1 without the CPU's cache of shells. */
static __always_inline void free_now(struct sk_buff *skb, const enum skb_era era)
{
	if (era >= ERA_6_12)
		kfree_skb_napi_cache(era, skb);
	else
		__kfree_skb(era, skb);
}

/* True if SKB, made by CPU, must be freed here. */
static __always_inline bool stays_here(const struct sk_buff *skb, unsigned int cpu)
{
	return cpu == smp_processor_id() || !cpu_online(cpu) || skb_zcopy(skb);
}

/* Of several that find the count at the middle, one sends the IPI. */
static __always_inline void kick_defer_list_purge(struct softnet_data *sd)
{
	/* Full barrier: what was added is seen by whoever sees the kick. Pairs with
	 * softnet_kicked(). */
	(void)cmpxchg(&sd->defer_ipi_scheduled, 0, 1, SKB_C_OTHER);
}

/* --- a list a CPU, under a lock
 * --------------------------------------------------------------------------------- */

static __always_inline bool cpu_list_add(struct softnet_data *sd, struct sk_buff *skb)
{
	unsigned int max = READ_ONCE(sysctl_skb_defer_max);
	bool kick;

	if (skb_load(&sd->defer_count, SKB_C_OTHER) >= (int)max)
		return false;
	spin_lock(&sd->defer_lock, SKB_C_LOCK);
	/* The middle, so that the target is woken before the list is full. */
	kick = sd->defer_count == (int)(max >> 1);
	/* Those who look without the lock may see either value. */
	skb_store(&sd->defer_count, sd->defer_count + 1, SKB_C_OTHER);
	skb->next = sd->defer_list;
	skb_store(&sd->defer_list, skb, SKB_C_OTHER);
	spin_unlock(&sd->defer_lock, SKB_C_LOCK);
	if (unlikely(kick))
		kick_defer_list_purge(sd);
	return true;
}

static __always_inline unsigned int cpu_list_flush(struct softnet_data *sd, const enum skb_era era)
{
	struct sk_buff *skb, *next;
	unsigned int nr = 0;

	if (!skb_load(&sd->defer_list, SKB_C_OTHER))
		return 0;
	spin_lock(&sd->defer_lock, SKB_C_LOCK);
	skb = sd->defer_list;
	skb_store(&sd->defer_list, NULL, SKB_C_OTHER);
	skb_store(&sd->defer_count, 0, SKB_C_OTHER);
	spin_unlock(&sd->defer_lock, SKB_C_LOCK);
	for (; skb; skb = next, nr++) {
		next = skb->next;
		napi_consume_skb(era, skb, 1);
	}
	return nr;
}

/* --- a lock-free list for each CPU and node
 * --------------------------------------------------------------------- */

static __always_inline bool node_llist_add(struct softnet_data *sd, struct sk_buff *skb)
{
	struct skb_defer_node *sdn = &sd->defer_nodes[numa_node_id()];
	long max = READ_ONCE(sysctl_skb_defer_max);
	long count = atomic_long_add_return(1, &sdn->defer_count, SKB_C_LLIST);

	/* What was counted and not added stays counted: the next flush sets that right. */
	if (count >= max)
		return false;
	llist_add(&skb->ll_node, &sdn->defer_list);
	if (unlikely(count - 1 == max >> 1))
		kick_defer_list_purge(sd);
	return true;
}

static __always_inline unsigned int node_llist_flush(struct softnet_data *sd,
						     const enum skb_era era)
{
	unsigned int nr = 0;

	for (unsigned int node = 0; node < obj_nr_nodes(); node++) {
		struct skb_defer_node *sdn = &sd->defer_nodes[node];
		struct llist_node *n, *next;

		if (llist_empty(&sdn->defer_list))
			continue;
		/*
		 * First the count, then the list: an add in between is counted and maybe taken, so
		 * that the list never holds more than were counted. The other way round every add
		 * in between would be forgotten and the list grow beyond the maximum.
		 */
		atomic_long_set(&sdn->defer_count, 0, SKB_C_LLIST);
		for (n = llist_del_all(&sdn->defer_list); n; n = next, nr++) {
			next = n->next;
			napi_consume_skb(era, container_of(n, struct sk_buff, ll_node), 1);
		}
	}
	return nr;
}

/* --- both
 * ------------------------------------------------------------------------------------------------ */

static __always_inline bool do_attempt(struct sk_buff *skb, const enum skb_era era,
				       const enum skb_defer how)
{
	unsigned int cpu = skb->headers.alloc_cpu;

#ifdef SKB_TRACED
	BUG_ON(skb->_skb_refdst || skb->destructor || skb->_nfct);
#endif
	if (!stays_here(skb, cpu) &&
	    (how == SKB_DEFER_CPU_LIST ? cpu_list_add(&softnet_data[cpu], skb)
				       : node_llist_add(&softnet_data[cpu], skb)))
		return true;
	free_now(skb, era);
	return false;
}

static __always_inline unsigned int do_flush(struct softnet_data *sd, const enum skb_era era,
					     const enum skb_defer how)
{
	return how == SKB_DEFER_CPU_LIST ? cpu_list_flush(sd, era) : node_llist_flush(sd, era);
}

#define INSTANTIATE_HOW(suffix, era, how)                                   \
	bool skb_attempt_defer_free_##suffix(struct sk_buff *skb)           \
	{                                                                   \
		return do_attempt(skb, era, how);                           \
	}                                                                   \
	unsigned int skb_defer_free_flush_##suffix(struct softnet_data *sd) \
	{                                                                   \
		return do_flush(sd, era, how);                              \
	}
#define INSTANTIATE(suffix, era)                                    \
	INSTANTIATE_HOW(suffix##_cpu_list, era, SKB_DEFER_CPU_LIST) \
	INSTANTIATE_HOW(suffix##_node_llist, era, SKB_DEFER_NODE_LLIST)
SKB_FOR_EACH_ERA(INSTANTIATE)

void softnet_init(void)
{
	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++)
		BUG_ON(softnet_deferred(cpu));
	memset(softnet_data, 0, sizeof(softnet_data));
	sysctl_skb_defer_max = SKB_DEFER_MAX_DEFAULT;
	cpu_online_mask = ~(u64)0;
}

unsigned int softnet_deferred(unsigned int cpu)
{
	struct softnet_data *sd = &softnet_data[cpu];
	unsigned int nr = 0;

	for (struct sk_buff *skb = sd->defer_list; skb; skb = skb->next)
		nr++;
	for (unsigned int node = 0; node < SKB_NR_NODES; node++)
		for (struct llist_node *n = sd->defer_nodes[node].defer_list.first; n; n = n->next)
			nr++;
	return nr;
}
