/* SPDX-License-Identifier: MIT */
/*
 * The probe: the linker (--wrap) sends these calls here first. What they were for is known by the
 * stamp that an sk_buff gets when it is eaten: others' frees pass through uncounted.
 */
#include "benches/bench_tcp_probe.h"
#include "benches/hist.h"

#include "skb/skb_datagram.h"
#include "tcp/tcp_rx.h"

#include <string.h>

#define CPUS 2

struct sums {
	u64 copy;
	u64 free_locked; /* by whoever held the socket lock */
	u64 free; /* and by others */
	u64 deliver; /* tcp_v4_rcv(), without its waits and without what it freed */
	u64 backlog; /* what the socket's owner hands on of the backlog */
	struct hist hold; /* one read, without its waits and without what it freed afterwards */
	struct hist latency; /* from eaten to freed */
};

/* One CPU's, in ticks. */
static struct probe {
	struct sums now, all; /* of the span that runs, of those that are over */
	u64 packets;
	bool locked;
} ____cacheline_aligned probes[CPUS];

static __always_inline struct probe *this_probe(void)
{
	unsigned int cpu = smp_processor_id();

	BUG_ON(cpu >= CPUS);
	return &probes[cpu];
}

void __real_skb_copy_datagram(const struct sk_buff *skb, u32 off, void *to, u32 len);
void __wrap_skb_copy_datagram(const struct sk_buff *skb, u32 off, void *to, u32 len);
void __wrap_skb_copy_datagram(const struct sk_buff *skb, u32 off, void *to, u32 len)
{
	u64 t = bench_ticks();

	__real_skb_copy_datagram(skb, off, to, len);
	this_probe()->now.copy += bench_ticks() - t;
}

/* --- what is freed
 * --------------------------------------------------------------------------------------- */

static __always_inline void freed(u64 eaten, u64 since)
{
	struct probe *p = this_probe();
	u64 now = bench_ticks();

	*(p->locked ? &p->now.free_locked : &p->now.free) += now - since;
	hist_add(&p->now.latency, now - eaten);
}

#define WRAP_FREE(name)                          \
	void __real_##name(struct sk_buff *skb); \
	void __wrap_##name(struct sk_buff *skb); \
	void __wrap_##name(struct sk_buff *skb)  \
	{                                        \
		u64 eaten = skb->tstamp, t;      \
                                                 \
		if (!eaten) {                    \
			__real_##name(skb);      \
			return;                  \
		}                                \
		t = bench_ticks();               \
		__real_##name(skb);              \
		freed(eaten, t);                 \
	}
WRAP_FREE(__kfree_skb_6_1)
WRAP_FREE(__kfree_skb_6_12)
WRAP_FREE(kfree_skb_napi_cache_6_1)
WRAP_FREE(kfree_skb_napi_cache_6_12)

#define WRAP_CONSUME(name)                                            \
	void __real_##name(struct sk_buff *skb, int budget);          \
	void __wrap_##name(struct sk_buff *skb, int budget);          \
	void __wrap_##name(struct sk_buff *skb, int budget)           \
	{                                                             \
		u64 eaten = skb ? skb->tstamp : 0, t = bench_ticks(); \
                                                                      \
		__real_##name(skb, budget);                           \
		if (eaten)                                            \
			freed(eaten, t);                              \
	}
WRAP_CONSUME(napi_consume_skb_6_1)
WRAP_CONSUME(napi_consume_skb_6_12)

/* --- who holds the lock
 * ---------------------------------------------------------------------------------- */

#define WRAP_FLUSH(name)                                                       \
	unsigned int __real_##name(struct sock *sk);                           \
	unsigned int __wrap_##name(struct sock *sk);                           \
	unsigned int __wrap_##name(struct sock *sk)                            \
	{                                                                      \
		struct probe *p = this_probe();                                \
		unsigned int nr;                                               \
                                                                               \
		/* The softirq, CPU 0, may find it owned: by the other one. */ \
		p->locked = smp_processor_id() && sock_owned_by_user(sk);      \
		nr = __real_##name(sk);                                        \
		p->locked = false;                                             \
		return nr;                                                     \
	}
WRAP_FLUSH(__sk_defer_free_flush_6_1)
WRAP_FLUSH(__sk_defer_free_flush_6_12)

#define WRAP_EAT(name)                                            \
	void __real_##name(struct sock *sk, struct sk_buff *skb); \
	void __wrap_##name(struct sock *sk, struct sk_buff *skb); \
	void __wrap_##name(struct sock *sk, struct sk_buff *skb)  \
	{                                                         \
		struct probe *p = this_probe();                   \
                                                                  \
		skb->tstamp = bench_ticks();                      \
		p->locked = true;                                 \
		__real_##name(sk, skb);                           \
		p->locked = false;                                \
	}
#define WRAP_RECV(name)                                                                     \
	int __real_##name(struct sock *sk, void *to, size_t len, int flags);                \
	int __wrap_##name(struct sock *sk, void *to, size_t len, int flags);                \
	int __wrap_##name(struct sock *sk, void *to, size_t len, int flags)                 \
	{                                                                                   \
		struct probe *p = this_probe();                                             \
		u64 waited = sock_waited, afterwards = p->now.free, t = bench_ticks();      \
		int ret = __real_##name(sk, to, len, flags);                                \
                                                                                            \
		if (ret > 0)                                                                \
			hist_add(&p->now.hold, bench_ticks() - t - (sock_waited - waited) - \
						       (p->now.free - afterwards));         \
		return ret;                                                                 \
	}
#define WRAP_PAIR(suffix, era, defer)       \
	WRAP_EAT(tcp_eat_recv_skb_##suffix) \
	WRAP_RECV(tcp_recvmsg_spin_##suffix)
TCP_RX_FOR_EACH(WRAP_PAIR)

/* --- who receives
 * ------------------------------------------------------------------------------------- */

/* Of other flows' packets, which find no socket, nothing is counted. */
#define WRAP_DELIVER(suffix, era, defer)                                               \
	int __real_tcp_v4_rcv_##suffix(struct net *net, struct sk_buff *skb);          \
	int __wrap_tcp_v4_rcv_##suffix(struct net *net, struct sk_buff *skb);          \
	int __wrap_tcp_v4_rcv_##suffix(struct net *net, struct sk_buff *skb)           \
	{                                                                              \
		struct probe *p = this_probe();                                        \
		u64 waited = sock_waited, before = p->now.free, t = bench_ticks();     \
		int ret = __real_tcp_v4_rcv_##suffix(net, skb);                        \
                                                                                       \
		if (!ret)                                                              \
			p->now.deliver += bench_ticks() - t - (sock_waited - waited) - \
					  (p->now.free - before);                      \
		return ret;                                                            \
	}
TCP_RX_FOR_EACH(WRAP_DELIVER)

/* The softirq, CPU 0, calls it in tcp_v4_rcv(). */
#define WRAP_DO_RCV(suffix, era)                                                 \
	int __real_tcp_v4_do_rcv_##suffix(struct sock *sk, struct sk_buff *skb); \
	int __wrap_tcp_v4_do_rcv_##suffix(struct sock *sk, struct sk_buff *skb); \
	int __wrap_tcp_v4_do_rcv_##suffix(struct sock *sk, struct sk_buff *skb)  \
	{                                                                        \
		struct probe *p = this_probe();                                  \
		u64 t = bench_ticks();                                           \
		int ret = __real_tcp_v4_do_rcv_##suffix(sk, skb);                \
                                                                                 \
		if (smp_processor_id())                                          \
			p->now.backlog += bench_ticks() - t;                     \
		return ret;                                                      \
	}
TCP_RX_FOR_EACH_ERA(WRAP_DO_RCV)

/* --- report
 * ---------------------------------------------------------------------------------------------- */

static void report_hist(struct bench_report *r, const char *const name[3], const struct hist *h)
{
	double us = bench_tick_ns() / 1000;

	bench_report_add(r, name[0], hist_quantile(h, .50) * us);
	bench_report_add(r, name[1], hist_quantile(h, .99) * us);
	bench_report_add(r, name[2], (double)h->max * us);
}

static void hist_join(struct hist *to, const struct hist *from)
{
	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		to->nr[i] += from->nr[i];
	to->max = max(to->max, from->max);
}

static void sums_join(struct sums *to, const struct sums *from)
{
	to->copy += from->copy;
	to->free_locked += from->free_locked;
	to->free += from->free;
	to->deliver += from->deliver;
	to->backlog += from->backlog;
	hist_join(&to->hold, &from->hold);
	hist_join(&to->latency, &from->latency);
}

void bench_probe_span(u64 packets)
{
	struct probe *p = this_probe();

	if (packets)
		sums_join(&p->all, &p->now);
	p->packets += packets;
	memset(&p->now, 0, sizeof(p->now));
}

/* TICKS in the spans of P as a packet's part, in us. */
static double part(const struct probe *p, u64 ticks)
{
	return p->packets ? (double)ticks * bench_tick_ns() / 1000 / (double)p->packets : 0;
}

void bench_probe_report(struct bench_report *r)
{
	static const char *const hold[] = { "hold_p50_us", "hold_p99_us", "hold_max_us" };
	static const char *const latency[] = { "free_p50_us", "free_p99_us", "free_max_us" };
	struct probe *softirq = &probes[0], *reader = &probes[1];

	bench_report_add(r, "copy_us",
			 part(softirq, softirq->all.copy) + part(reader, reader->all.copy));
	bench_report_add(r, "free_locked_us",
			 part(softirq, softirq->all.free_locked) +
				 part(reader, reader->all.free_locked));
	bench_report_add(r, "free_reader_us", part(reader, reader->all.free));
	bench_report_add(r, "free_softirq_us", part(softirq, softirq->all.free));
	bench_report_add(r, "deliver_us", part(softirq, softirq->all.deliver));
	bench_report_add(r, "backlog_us", part(reader, reader->all.backlog));
	hist_join(&softirq->all.hold, &reader->all.hold);
	hist_join(&softirq->all.latency, &reader->all.latency);
	report_hist(r, hold, &softirq->all.hold);
	report_hist(r, latency, &softirq->all.latency);
	memset(probes, 0, sizeof(probes));
}
