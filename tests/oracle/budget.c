// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * What the kernel's own paths do: TCP over loopback and veth, and pages between two CPUs, counted by kprobes.
 *
 * Writer and reader are two sockets of this module, used in turn by one thread: a write (or as many
 * as the socket takes), then reads until nothing is left. Loopback's receive softirq runs within the write, acknowledgements within
 * both. A probe costs instructions, so that calls are counted and the clock is read in separate runs.
 */
#include "env_kernel.h"
#include "budget.h"
#include "prog.h"

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/in.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#define WARM_UP	    64 /* writes before anything is counted */
#define MAX_WRITE   65536
#define STALLED_MS  2000
#define PORT	    5001
#define VETH_READER 0x0a090002 /* 10.9.0.2 */

enum {
	P_SKB_ALLOC,
	P_SKB_CLONE,
	P_SKB_FREE,
	P_HEAD_FREE,
	P_HEAD_FREE_AWAY,
	P_PAGE_GET_EXPAND,
	P_PAGE_PUT,
	P_PAGE_PUT_AWAY,
	P_HEAD_FREE_READ,
	P_PAGE_PUT_READ,
	P_PAGE_ALLOC,
	P_PAGE_ALLOC_ORDER3,
	P_EXPAND,
	P_TRIM_HEAD,
	P_TRIM_HEAD_ALIVE,
	P_FRAGMENT,
	P_SEND_SKB,
	P_SEND_BYTES,
	P_SEND_FRAGS,
	P_SEND_ACK,
	P_ACK,
	P_COALESCE,
	P_DEFER,
	P_ZONE_LOCK,
	P_NR
};
static const char *const counted[P_NR] = {
	[P_SKB_ALLOC] = "skb_alloc",
	[P_SKB_CLONE] = "skb_clone",
	[P_SKB_FREE] = "skb_free",
	[P_HEAD_FREE] = "head_free",
	[P_HEAD_FREE_AWAY] = "head_free_away",
	[P_PAGE_GET_EXPAND] = "page_get_expand",
	[P_PAGE_PUT] = "page_put",
	[P_PAGE_PUT_AWAY] = "page_put_away",
	[P_HEAD_FREE_READ] = "head_free_read",
	[P_PAGE_PUT_READ] = "page_put_read",
	[P_PAGE_ALLOC] = "page_alloc",
	[P_PAGE_ALLOC_ORDER3] = "page_alloc_order3",
	[P_EXPAND] = "pskb_expand_head",
	[P_TRIM_HEAD] = "tcp_trim_head",
	[P_TRIM_HEAD_ALIVE] = "tcp_trim_head_alive",
	[P_FRAGMENT] = "tcp_fragment",
	[P_SEND_SKB] = "send_skb",
	[P_SEND_BYTES] = "send_bytes",
	[P_SEND_FRAGS] = "send_frags",
	[P_SEND_ACK] = "send_ack",
	[P_ACK] = "tcp_ack",
	[P_COALESCE] = "skb_try_coalesce",
	[P_DEFER] = "skb_attempt_defer_free",
	[P_ZONE_LOCK] = "zone_lock",
};

static atomic64_t count[P_NR];
static bool reading; /* the reader is within its call */

static void add(int what, long n)
{
	atomic64_add(n, &count[what]);
}

/*
 * --- probes: what a call's arguments tell
 * -------------------------------------------------------------
 */

static struct sk_buff *first(struct pt_regs *regs)
{
	return (void *)regs_get_kernel_argument(regs, 0);
}

static struct sk_buff *second(struct pt_regs *regs)
{
	return (void *)regs_get_kernel_argument(regs, 1);
}

#define PROBE(name) static int on_##name(struct kprobe *p, struct pt_regs *regs)

PROBE(alloc)
{
	add(P_SKB_ALLOC, 1);
	return 0;
}

PROBE(clone)
{
	add(P_SKB_CLONE, 1);
	return 0;
}

PROBE(free)
{
	add(P_SKB_FREE, 1);
	return 0;
}

/* skb_release_data(): the last share of a head puts its pages. */
PROBE(release)
{
	struct sk_buff *skb = first(regs);
	int share = skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1;

	if (skb->cloned && atomic_read(&skb_shinfo(skb)->dataref) != share)
		return 0;
	add(P_HEAD_FREE, 1);
	add(P_PAGE_PUT, skb_shinfo(skb)->nr_frags);
	if (skb->alloc_cpu != raw_smp_processor_id()) {
		add(P_HEAD_FREE_AWAY, 1);
		add(P_PAGE_PUT_AWAY, skb_shinfo(skb)->nr_frags);
	}
	if (reading && !in_serving_softirq()) {
		add(P_HEAD_FREE_READ, 1);
		add(P_PAGE_PUT_READ, skb_shinfo(skb)->nr_frags);
	}
	return 0;
}

PROBE(pages)
{
	unsigned int order = regs_get_kernel_argument(regs, 1);

	add(order == 3 ? P_PAGE_ALLOC_ORDER3 : P_PAGE_ALLOC, 1);
	return 0;
}

PROBE(expand)
{
	struct sk_buff *skb = first(regs);

	add(P_EXPAND, 1);
	if (skb_cloned(skb))
		add(P_PAGE_GET_EXPAND, skb_shinfo(skb)->nr_frags);
	return 0;
}

PROBE(trim_head)
{
	add(P_TRIM_HEAD, 1);
	add(P_TRIM_HEAD_ALIVE, skb_cloned(second(regs)));
	return 0;
}

PROBE(fragment)
{
	add(P_FRAGMENT, 1);
	return 0;
}

PROBE(transmit)
{
	struct sk_buff *skb = second(regs);

	if (!skb->len) {
		add(P_SEND_ACK, 1);
		return 0;
	}
	add(P_SEND_SKB, 1);
	add(P_SEND_BYTES, skb->len);
	add(P_SEND_FRAGS, skb_shinfo(skb)->nr_frags);
	return 0;
}

PROBE(ack)
{
	add(P_ACK, 1);
	return 0;
}

PROBE(coalesce)
{
	add(P_COALESCE, 1);
	return 0;
}

PROBE(defer)
{
	add(P_DEFER, 1);
	return 0;
}

static spinlock_t *zone_lock; /* of the pages' zone */

PROBE(lock)
{
	if ((void *)first(regs) == zone_lock)
		add(P_ZONE_LOCK, 1);
	return 0;
}

#define AT(symbol, handler)                                        \
	{                                                          \
		.symbol_name = symbol, .pre_handler = on_##handler \
	}
static struct kprobe probes[] = {
	AT("__alloc_skb", alloc),
	AT("skb_clone", clone),
	AT("kfree_skbmem", free),
	AT("skb_release_data", release),
	AT("pskb_expand_head", expand),
	AT("tcp_trim_head", trim_head),
	AT("tcp_fragment", fragment),
	AT("__tcp_transmit_skb", transmit),
	AT("tcp_ack", ack),
	AT("skb_try_coalesce", coalesce),
	AT("skb_attempt_defer_free", defer),
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	AT("__alloc_pages_noprof", pages),
#else
	AT("__alloc_pages", pages),
#endif
};
static struct kprobe lock_probes[] = { AT("_raw_spin_lock", lock),
				       AT("_raw_spin_lock_irqsave", lock) };

static void probes_off(struct kprobe *probe, int nr)
{
	while (nr--)
		unregister_kprobe(&probe[nr]);
}

/* Zeroes the counts, then has NR calls counted. The one that cannot be probed goes to *MISSING. */
static int probes_on(struct kprobe *probe, int nr, const char **missing)
{
	int i, err;

	for (i = 0; i < P_NR; i++)
		atomic64_set(&count[i], 0);
	for (i = 0; i < nr; i++) {
		probe[i].addr = NULL; /* left over from the last time */
		probe[i].flags = 0;
		*missing = probe[i].symbol_name;
		err = register_kprobe(&probe[i]);
		if (err) {
			probes_off(probe, i);
			return err;
		}
	}
	return 0;
}

/*
 * --- the answer
 * ---------------------------------------------------------------------------------------
 */

struct answer {
	char *text;
	unsigned long len, room;
};

static void say(struct answer *a, const char *what, long long number)
{
	a->len += scnprintf(a->text + a->len, a->room - a->len, "%s,%lld\n", what, number);
}

static void fail(struct answer *a, const char *what, long err)
{
	a->len = scnprintf(a->text, a->room, "error,%s: %ld\n", what, err);
}

static void say_counts(struct answer *a)
{
	int i;

	for (i = 0; i < P_NR; i++)
		say(a, counted[i], atomic64_read(&count[i]));
}

/*
 * --- pages from CPU 0 to CPU 1
 * ------------------------------------------------------------------------
 */

struct pages {
	struct page **page;
	long nr;
};

static long pages_get(void *arg)
{
	struct pages *p = arg;
	long i;

	for (i = 0; i < p->nr; i++)
		p->page[i] = alloc_page(GFP_KERNEL);
	return 0;
}

static long pages_put(void *arg)
{
	struct pages *p = arg;
	long i;

	for (i = 0; i < p->nr; i++)
		put_page(p->page[i]);
	return 0;
}

static void budget_of_pages(struct answer *a, long nr)
{
	struct pages p = { .page = vmalloc(array_size(nr, sizeof(struct page *))), .nr = nr };
	const char *missing;
	long locks;
	int round, err;

	if (!p.page)
		return fail(a, "no memory for pages", -ENOMEM);
	if (num_online_cpus() < 2) {
		vfree(p.page);
		return fail(a, "pages between two CPUs need two", -ENODEV);
	}
	/* Four rounds bring the lists where they stay. */
	for (round = 0; round < 4; round++) {
		work_on_cpu(0, pages_get, &p);
		work_on_cpu(1, pages_put, &p);
	}
	zone_lock = &page_zone(p.page[0])->lock;
	err = probes_on(lock_probes, ARRAY_SIZE(lock_probes), &missing);
	if (err) {
		vfree(p.page);
		return fail(a, missing, err);
	}
	work_on_cpu(0, pages_get, &p);
	locks = atomic64_read(&count[P_ZONE_LOCK]);
	work_on_cpu(1, pages_put, &p);
	say(a, "pages", nr);
	say(a, "zone_lock_alloc", locks);
	say(a, "zone_lock_free", atomic64_read(&count[P_ZONE_LOCK]) - locks);
	probes_off(lock_probes, ARRAY_SIZE(lock_probes));
	vfree(p.page);
}

/*
 * --- TCP over loopback
 * --------------------------------------------------------------------------------
 */

struct run {
	struct socket *listener, *writer, *reader;
	char *from, *to;
	long size; /* of a write */
	bool backlog; /* as many writes as the socket takes, then reads */
	int reader_cpu;
	long long sent, received, send_ns, receive_ns;
};

static void want(struct net_device *dev, netdev_features_t features, bool on)
{
	if (on)
		dev->wanted_features |= features;
	else
		dev->wanted_features &= ~features;
}

static int device_up(struct net_device *dev, unsigned int mtu, unsigned int how)
{
	int err;

	if (!dev)
		return -ENODEV;
	rtnl_lock();
	err = dev_change_flags(dev, dev->flags | IFF_UP, NULL);
	if (!err)
		err = dev_set_mtu(dev, mtu);
	want(dev, NETIF_F_ALL_TSO, !(how & BUDGET_NO_TSO));
	if (how & BUDGET_VETH)
		want(dev, NETIF_F_GRO, how & BUDGET_GRO);
	netdev_update_features(dev);
	rtnl_unlock();
	return err;
}

/* The namespace that the other end of veth is in; NULL: there is none. */
static struct net *other_net(void)
{
	struct net *net, *found = NULL;

	rcu_read_lock();
	for_each_net_rcu(net) if (net != &init_net) found = net;
	rcu_read_unlock();
	return found; /* a process keeps it as long as the guest runs */
}

static int device_of(struct net *net, const char *name, unsigned int mtu, unsigned int how)
{
	struct net_device *dev = dev_get_by_name(net, name);
	int err = device_up(dev, mtu, how);

	if (dev)
		dev_put(dev);
	return err;
}

/* The way between writer and reader as HOW says; *READER: the reader's namespace. */
static int way_up(unsigned int how, struct net **reader)
{
	unsigned int mtu = how & BUDGET_MTU ? 1500 : 65535;
	int err;

	*reader = &init_net;
	if (!(how & BUDGET_VETH))
		return device_up(init_net.loopback_dev, how & BUDGET_MTU ? 1500 : 65536, how);
	*reader = other_net();
	if (!*reader)
		return -ENODEV;
	err = device_of(&init_net, "veth0", mtu, how);
	return err ? err : device_of(*reader, "veth1", mtu, how);
}

static int set_defer_max(const char *text)
{
	struct file *file = filp_open("/proc/sys/net/core/skb_defer_max", O_WRONLY, 0);
	loff_t at = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, text, strlen(text), &at);
	filp_close(file, NULL);
	return n < 0 ? n : 0;
}

static void disconnect(struct run *r)
{
	if (r->reader)
		sock_release(r->reader);
	if (r->writer)
		sock_release(r->writer);
	if (r->listener)
		sock_release(r->listener);
}

static int connect_pair(struct run *r, int protocol, struct net *reader)
{
	static unsigned short port = PORT;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port++),
				  .sin_addr.s_addr = htonl(reader == &init_net ? INADDR_LOOPBACK
									       : VETH_READER) };
	struct sockaddr *addr = (struct sockaddr *)&at;
	int err;

	err = sock_create_kern(reader, AF_INET, SOCK_STREAM, protocol, &r->listener);
	if (!err)
		err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, protocol, &r->writer);
	if (!err)
		err = kernel_bind(r->listener, addr, sizeof(at));
	if (!err)
		err = kernel_listen(r->listener, 1);
	if (!err)
		err = kernel_connect(r->writer, addr, sizeof(at), 0);
	if (!err)
		err = kernel_accept(r->listener, &r->reader, 0);
	return err;
}

struct part {
	struct run *run;
	long left, did;
};

static long send_part(void *arg)
{
	struct part *part = arg;
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	struct kvec vec = { .iov_base = part->run->from, .iov_len = part->left };
	u64 from = ktime_get_ns();

	part->did = kernel_sendmsg(part->run->writer, &msg, &vec, 1, part->left);
	part->run->send_ns += ktime_get_ns() - from;
	return 0;
}

static long receive_part(void *arg)
{
	struct part *part = arg;
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	struct kvec vec = { .iov_base = part->run->to, .iov_len = MAX_WRITE };
	u64 from = ktime_get_ns();

	reading = true;
	part->did = kernel_recvmsg(part->run->reader, &msg, &vec, 1, MAX_WRITE, MSG_DONTWAIT);
	reading = false;
	part->run->receive_ns += ktime_get_ns() - from;
	return 0;
}

/* WRITES writes, all of them read; 0, or an error if nothing moves any more. */
static int move(struct run *r, long writes)
{
	long long end = r->sent + writes * r->size;
	struct part part = { .run = r };
	int idle = 0;

	while (r->received < end) {
		long long before = r->sent + r->received;

		while (r->sent < end) {
			part.left = min_t(long long, end - r->sent, r->size);
			work_on_cpu(0, send_part, &part);
			if (part.did > 0)
				r->sent += part.did;
			if (!r->backlog || part.did <= 0)
				break;
		}
		do {
			work_on_cpu(r->reader_cpu, receive_part, &part);
			if (part.did > 0)
				r->received += part.did;
		} while (part.did > 0);
		if (r->sent + r->received != before) {
			idle = 0;
			continue;
		}
		if (idle++ > STALLED_MS)
			return part.did ? part.did : -ETIMEDOUT;
		msleep(1); /* an acknowledgement that waits */
	}
	return 0;
}

static void measure(struct answer *a, struct run *r, long writes, bool counting)
{
	const char *missing = "the bytes do not arrive";
	long long begin;
	int err = move(r, WARM_UP);

	if (!err && counting)
		err = probes_on(probes, ARRAY_SIZE(probes), &missing);
	if (err)
		return fail(a, missing, err);
	begin = r->sent;
	r->send_ns = r->receive_ns = 0;
	err = move(r, writes);
	if (counting)
		probes_off(probes, ARRAY_SIZE(probes));
	if (err)
		return fail(a, "the bytes do not arrive", err);
	say(a, "bytes", r->sent - begin);
	if (counting)
		return say_counts(a);
	say(a, "send_ns", r->send_ns);
	say(a, "receive_ns", r->receive_ns);
}

static void budget_of_tcp(struct answer *a, unsigned int how, long size, long writes)
{
	struct run r = { .size = clamp(size, 1L, (long)MAX_WRITE),
			 .backlog = how & BUDGET_BACKLOG,
			 .reader_cpu = how & BUDGET_APART ? 1 : 0 };
	struct net *reader;
	int err;

	r.from = vzalloc(MAX_WRITE);
	r.to = vzalloc(MAX_WRITE);
	if (!r.from || !r.to) {
		fail(a, "no memory for the user's bytes", -ENOMEM);
		goto out;
	}
	if (r.reader_cpu >= num_online_cpus()) {
		fail(a, "a reader of its own CPU needs two", -ENODEV);
		goto out;
	}
	err = set_defer_max(how & BUDGET_DEFER ? "64" : "0");
	if (err) {
		fail(a, "net.core.skb_defer_max cannot be set", err);
		goto out;
	}
	err = way_up(how, &reader);
	if (err) {
		fail(a, "the devices cannot be set up", err);
		goto out;
	}
	err = connect_pair(&r, how & BUDGET_MPTCP ? IPPROTO_MPTCP : IPPROTO_TCP, reader);
	if (err)
		fail(a, "no connection", err);
	else
		measure(a, &r, writes, how & BUDGET_PROBES);
	disconnect(&r);
out:
	vfree(r.from);
	vfree(r.to);
}

unsigned long oracle_budget(const struct oracle_op *op, char *text, unsigned long room)
{
	struct answer a = { .text = text, .room = room };

	if (op->n[0] & BUDGET_PAGES)
		budget_of_pages(&a, op->n[2]);
	else
		budget_of_tcp(&a, op->n[0], op->n[1], op->n[2]);
	return a.len;
}
