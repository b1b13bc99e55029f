/* SPDX-License-Identifier: MIT */
/*
 * Deferred freeing by CPU: an sk_buff that is consumed on another CPU than the one that made it
 * goes home to be freed, so that its pages return to the lists they came from.
 *
 * Kernel: skb_attempt_defer_free() and skb_defer_free_flush(), net/core/skbuff.c and dev.c. Two
 * generations, which a constant tells apart:
 *
 *   SKB_DEFER_CPU_LIST     5.19 to 6.17: a list a CPU, under a lock. Accepts while the count, read
 *                          before the lock, is below the maximum; the one that finds max / 2 under
 *                          the lock sends an IPI.
 *   SKB_DEFER_NODE_LLIST   6.18: a lock-free list for each CPU and each node of those who add. The
 *                          count goes up first and stays up if the sk_buff is then refused, until
 *                          the next flush; max - 1 fit.
 *
 *                              attempt(to c)   flush(c)   softnet_ack_kick(c)
 *   skb_attempt_defer_free(c)        -             -               -
 *   skb_defer_free_flush(c)          -             X               X
 *
 *   -: safe on any CPUs at once.  X: for CPU c itself, in its softirq.
 *
 * An sk_buff that is handed in is not the caller's any more, whatever happens to it. Rules of all
 * generations: none with a ubuf_info is deferred (6.19 and later: its user waits for the notice,
 * which an idle CPU would withhold without bound), none whose alloc_cpu is this CPU, no CPU or
 * offline. What may be in it when it waits: no route, no destructor, no conntrack (checked in the
 * traced build, as the kernel's debug builds do).
 *
 * The kernel's IPI raises NET_RX on the target. Here a kick is a word that the target's softirq
 * loop looks at (softnet_kicked()): the cost of the interrupt itself is left out. So are backlog
 * threads, threaded NAPI, and the flush of a CPU that goes offline (since 2026): what it holds
 * stays until it polls again.
 */
#ifndef SKB_SKB_DEFER_H
#define SKB_SKB_DEFER_H

#include "skb/llist.h"
#include "skb/skbuff.h"

enum skb_defer { SKB_DEFER_CPU_LIST, SKB_DEFER_NODE_LLIST, SKB_DEFER_NR };

#define SKB_DEFER_MAX_DEFAULT 64 /* up to 6.18; 6.19: 128 */

struct skb_defer_node {
	struct llist_head defer_list;
	atomic_long_t defer_count;
} ____cacheline_aligned;

/* What other CPUs write of a CPU's softirq state: lines of its own. */
struct softnet_data {
	spinlock_t defer_lock ____cacheline_aligned;
	int defer_count;
	struct sk_buff *defer_list;
	int defer_ipi_scheduled ____cacheline_aligned;
	struct skb_defer_node defer_nodes[SKB_NR_NODES];
};

extern struct softnet_data softnet_data[SKB_NR_CPUS];
extern unsigned int sysctl_skb_defer_max; /* 0: nothing is deferred. Set while no CPU runs. */
extern u64 cpu_online_mask; /* a bit for each CPU; all are online at the start */

_Static_assert(SKB_NR_CPUS == 64, "cpu_online_mask is one word");

/* Whether CPU is one, and online. */
static __always_inline bool cpu_online(unsigned int cpu)
{
	return cpu < SKB_NR_CPUS && skb_load(&cpu_online_mask, SKB_C_OTHER) >> cpu & 1;
}

/* For tests and cases: no CPU is deferring or flushing. */
static __always_inline void set_cpu_online(unsigned int cpu, bool online)
{
	u64 bit = (u64)1 << cpu;

	skb_store(&cpu_online_mask, online ? cpu_online_mask | bit : cpu_online_mask & ~bit,
		  SKB_C_OTHER);
}

/* Declares NAME_6_12_cpu_list and so on. */
#define SKB_DEFER_DECLARE_ERA(ret, name, era, ...) \
	ret name##_##era##_cpu_list(__VA_ARGS__);  \
	ret name##_##era##_node_llist(__VA_ARGS__)
#define SKB_DEFER_DECLARE(ret, name, ...)                   \
	SKB_DEFER_DECLARE_ERA(ret, name, 3_4, __VA_ARGS__); \
	SKB_DEFER_DECLARE_ERA(ret, name, 6_1, __VA_ARGS__); \
	SKB_DEFER_DECLARE_ERA(ret, name, 6_12, __VA_ARGS__)

#define SKB_DEFER_CALL(era, how, name, ...)                                                     \
	((how) == SKB_DEFER_CPU_LIST ? ((era) == ERA_3_4   ? name##_3_4_cpu_list(__VA_ARGS__)   \
					: (era) == ERA_6_1 ? name##_6_1_cpu_list(__VA_ARGS__)   \
							   : name##_6_12_cpu_list(__VA_ARGS__)) \
				     : ((era) == ERA_3_4   ? name##_3_4_node_llist(__VA_ARGS__) \
					: (era) == ERA_6_1 ? name##_6_1_node_llist(__VA_ARGS__) \
							   : name##_6_12_node_llist(__VA_ARGS__)))

SKB_DEFER_DECLARE(bool, skb_attempt_defer_free, struct sk_buff *skb);
SKB_DEFER_DECLARE(unsigned int, skb_defer_free_flush, struct softnet_data *sd);

/*
 * SKB, whose only holder the caller is, is freed by the CPU that made it, or at once if that is not
 * possible (see above). True if it was deferred: the kernel's function returns nothing. cpu_list: 1
 * RMW for the lock; node_llist: 2; a kick is one more. Any CPU.
 */
static __always_inline bool skb_attempt_defer_free(const enum skb_era era, const enum skb_defer how,
						   struct sk_buff *skb)
{
	return SKB_DEFER_CALL(era, how, skb_attempt_defer_free, skb);
}

/*
 * Frees what others have deferred to the calling CPU, whose data SD is, the latest first. Returns
 * how many sk_buffs that was (the kernel's function returns nothing). Nothing there: a look and no
 * RMW.
 */
static __always_inline unsigned int
skb_defer_free_flush(const enum skb_era era, const enum skb_defer how, struct softnet_data *sd)
{
	return SKB_DEFER_CALL(era, how, skb_defer_free_flush, sd);
}

static __always_inline struct softnet_data *this_softnet(void)
{
	return &softnet_data[smp_processor_id()];
}

/* True if somebody asked the calling CPU to run its softirq. */
static __always_inline bool softnet_kicked(struct softnet_data *sd)
{
	return smp_load_acquire(&sd->defer_ipi_scheduled, SKB_C_OTHER);
}

/* The IPI's handler: from here on the next kick is sent. Before the flush. */
static __always_inline void softnet_ack_kick(struct softnet_data *sd)
{
	/* Release: pairs with the kicker's compare-and-exchange. */
	smp_store_release(&sd->defer_ipi_scheduled, 0, SKB_C_OTHER);
}

/* Puts all CPUs' data back to the start. Nothing may be deferred, no CPU may run. */
void softnet_init(void);

/* What waits for CPU, by walking its lists. No CPU may run. */
unsigned int softnet_deferred(unsigned int cpu);

#endif
