// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The socket of a program in a kernel: a real one, whose peer does not exist.
 *
 * It is connected over loopback as a restored one is (TCP_REPAIR): no segment goes out for that. A
 * netfilter hook takes each packet that it sends out of the stack, right below TCP, and keeps it: the
 * clone lives until the program says that it is done with. An ACK is a segment made here and given to
 * TCP's receive function.
 *
 * So that a program's result depends on the program alone: the congestion control is one that does
 * nothing, the window is open for what the program sends and shut while an ACK is looked at, RACK,
 * tail loss probes and autocorking are off, and the timer has two minutes.
 */
#include "env_kernel.h"
#include "prog.h"
#include "sock.h"

#include <linux/bvec.h>
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <linux/uio.h>
#include <net/inet_connection_sock.h>
#include <net/net_namespace.h>

#define PORT	  9
#define MSS	  1448
#define WSCALE	  14
#define WINDOW	  0x7fff /* << WSCALE: 512 MB */
#define ALL_CWND  (1u << 20)
#define NO_SAMPLE (120 * HZ)

int (*o_tcp_v4_rcv)(struct sk_buff *skb);
void (*o_tcp_push_pending_frames)(struct sock *sk, unsigned int cur_mss, int nonagle);
void (*o_tcp_mark_skb_lost)(struct sock *sk, struct sk_buff *skb);
int (*o_tcp_retransmit_skb)(struct sock *sk, struct sk_buff *skb, int segs);
unsigned int (*o_tcp_sync_mss)(struct sock *sk, u32 pmtu);

static struct {
	struct socket *sock;
	struct sock *sk;
	struct sk_buff *packet[ORACLE_RING]; /* oldest first */
	unsigned int below;
	unsigned int delivered; /* when it was connected */
	struct {
		struct ubuf_info ubuf;
		unsigned int told;
	} uarg[ORACLE_UARGS];
} the;

/*
 * --- below TCP
 * ------------------------------------------------------------------------------------------
 */

static unsigned int keep(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (!the.sk || state->sk != the.sk)
		return NF_ACCEPT;
	skb_dst_drop(skb); /* it is held only while the stack looks at the packet */
	if (!skb->data_len || the.below == ORACLE_RING)
		kfree_skb(skb); /* an answer of TCP's own; or no room, which is a loss */
	else
		the.packet[the.below++] = skb;
	return NF_STOLEN;
}

static const struct nf_hook_ops hook = {
	.hook = keep,
	.pf = NFPROTO_IPV4,
	.hooknum = NF_INET_LOCAL_OUT,
	.priority = NF_IP_PRI_FIRST,
};

/*
 * --- congestion control: none
 * ---------------------------------------------------------------------------
 */

static u32 ca_value(struct sock *sk)
{
	return ALL_CWND;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void ca_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void ca_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
}

static struct tcp_congestion_ops no_control = {
	.name = "skb_oracle",
	.owner = THIS_MODULE,
	.flags = TCP_CONG_NON_RESTRICTED,
	.ssthresh = ca_value,
	.undo_cwnd = ca_value,
	.cong_control = ca_control,
};

/* May the socket send? An ACK must not make it, a program's operation must. */
static void window(bool open)
{
	tcp_sk(the.sk)->snd_cwnd = open ? ALL_CWND : 0;
	WRITE_ONCE(the.sk->sk_pacing_rate, ~0UL);
}

/*
 * What is lost, and when it is sent again, is for the program to say: an ACK finds a socket that has
 * begun no recovery and has nothing to take back.
 */
static void no_recovery(void)
{
	struct tcp_sock *tp = tcp_sk(the.sk);

	tp->undo_marker = 0;
	tp->high_seq = tp->snd_nxt;
	inet_csk(the.sk)->icsk_ca_state =
		tcp_left_out(tp) || tp->retrans_out ? TCP_CA_Disorder : TCP_CA_Open;
}

/*
 * --- the connection
 * ------------------------------------------------------------------------------------
 */

static bool prepared;

/* Once in the life of the module: 0, or an error, and nothing is changed. */
static int prepare(void)
{
	struct net_device *lo = o_net->loopback_dev;
	int err;

	rtnl_lock();
	err = dev_change_flags(lo, lo->flags | IFF_UP, NULL);
	rtnl_unlock();
	if (!err)
		err = nf_register_net_hook(o_net, &hook);
	if (err)
		return err;
	err = tcp_register_congestion_control(&no_control);
	if (err) {
		nf_unregister_net_hook(o_net, &hook);
		return err;
	}
	o_net->ipv4.sysctl_tcp_timestamps = 0;
	o_net->ipv4.sysctl_tcp_recovery = 0;
	o_net->ipv4.sysctl_tcp_early_retrans = 0;
	o_net->ipv4.sysctl_tcp_autocorking = 0;
	o_net->ipv4.sysctl_tcp_limit_output_bytes = INT_MAX;
	return 0;
}

void oracle_sock_end(void)
{
	if (!prepared)
		return;
	nf_unregister_net_hook(o_net, &hook);
	tcp_unregister_congestion_control(&no_control);
	prepared = false;
}

static void before_connect(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->repair = 1;
	tp->write_seq = 1;
	tp->rcv_nxt = 1;
	tp->nonagle = TCP_NAGLE_OFF;
	sk->sk_sndbuf = 16 << 20;
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK;
	sk->sk_use_task_frag = false;
}

static void after_connect(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->rx_opt.mss_clamp = MSS;
	tp->rx_opt.wscale_ok = 1;
	tp->rx_opt.snd_wscale = WSCALE;
	tp->rx_opt.sack_ok = TCP_SACK_SEEN;
	tp->snd_wnd = tp->max_window = WINDOW << WSCALE;
	tp->reordering = 1 << 20; /* SACKs are no sign of loss */
	inet_csk(sk)->icsk_rto_min = NO_SAMPLE;
	inet_csk(sk)->icsk_rto = NO_SAMPLE;
	o_tcp_sync_mss(sk, inet_csk(sk)->icsk_pmtu_cookie);
	tp->repair = 0;
	the.delivered = tp->delivered;
}

static int connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char name[] = "skb_oracle";
	struct sock *sk;
	int err = sock_create_kern(o_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &the.sock);

	if (err)
		return err;
	sk = the.sock->sk;
	err = the.sock->ops->setsockopt(the.sock, SOL_TCP, TCP_CONGESTION, KERNEL_SOCKPTR(name),
					sizeof(name) - 1);
	if (err)
		return err;
	lock_sock(sk);
	before_connect(sk);
	release_sock(sk);
	err = kernel_connect(the.sock, (struct sockaddr *)&to, sizeof(to), 0);
	if (err)
		return err;
	lock_sock(sk);
	after_connect(sk);
	release_sock(sk);
	return sk->sk_state == TCP_ESTABLISHED && tcp_sk(sk)->mss_cache == MSS ? 0 : -EPROTO;
}

static void uarg_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	int i;

	for (i = 0; i < ORACLE_UARGS; i++)
		if (uarg == &the.uarg[i].ubuf)
			the.uarg[i].told += success ? 1 : 1000;
	WARN_ON(refcount_dec_and_test(&uarg->refcnt));
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static const struct ubuf_info_ops uarg_ops = { .complete = uarg_complete };
#endif

bool oracle_sock_open(void)
{
	int i, err = 0;

	memset(&the, 0, sizeof(the));
	if (!prepared)
		err = prepare();
	if (!err) {
		prepared = true;
		err = connect();
	}
	if (err) {
		pr_err("oracle guest: no socket for programs: %d\n", err);
		return false;
	}
	the.sk = the.sock->sk;
	for (i = 0; i < ORACLE_UARGS; i++) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
		the.uarg[i].ubuf.ops = &uarg_ops;
#else
		the.uarg[i].ubuf.callback = uarg_complete;
#endif
		the.uarg[i].ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
		refcount_set(&the.uarg[i].ubuf.refcnt, 1);
	}
	return true;
}

void oracle_sock_close(void)
{
	if (!the.sk)
		return;
	oracle_sock_complete(the.below);
	tcp_sk(the.sk)->repair = 1; /* nobody is told */
	the.sk = NULL;
	sock_release(the.sock);
}

/*
 * --- state
 * ---------------------------------------------------------------------------------------------
 */

void oracle_sock_state(struct oracle_sock_state *state)
{
	const struct tcp_sock *tp = tcp_sk(the.sk);

	*state = (struct oracle_sock_state){
		.wmem_queued = the.sk->sk_wmem_queued,
		.forward_alloc = the.sk->sk_forward_alloc,
		.wmem_alloc = refcount_read(&the.sk->sk_wmem_alloc),
		.snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt,
		.write_seq = tp->write_seq,
		.packets_out = tp->packets_out,
		.retrans_out = tp->retrans_out,
		.sacked_out = tp->sacked_out,
		.lost_out = tp->lost_out,
		.delivered = tp->delivered - the.delivered,
		.frag = the.sk->sk_frag.page,
		.frag_offset = the.sk->sk_frag.offset,
	};
}

struct sk_buff *oracle_sock_first(enum oracle_queue queue)
{
	return queue == ORACLE_RTX ? tcp_rtx_queue_head(the.sk) : tcp_send_head(the.sk);
}

struct sk_buff *oracle_sock_next(enum oracle_queue queue, struct sk_buff *skb)
{
	if (queue == ORACLE_RTX)
		return skb_rb_next(skb);
	return skb_queue_is_last(&the.sk->sk_write_queue, skb) ? NULL : skb->next;
}

unsigned int oracle_sock_below(void)
{
	return the.below;
}

const struct sk_buff *oracle_sock_packet(unsigned int nr)
{
	return the.packet[nr];
}

int oracle_sock_uarg(unsigned int uarg, unsigned int *told)
{
	*told = the.uarg[uarg].told;
	return refcount_read(&the.uarg[uarg].ubuf.refcnt);
}

int oracle_sock_uarg_of(const struct sk_buff *skb)
{
	int i;

	for (i = 0; i < ORACLE_UARGS; i++)
		if (skb_zcopy((struct sk_buff *)skb) == &the.uarg[i].ubuf)
			return i;
	return -1;
}

/*
 * --- operations
 * ---------------------------------------------------------------------------------------
 */

static int msg_flags(unsigned int flags)
{
	return MSG_DONTWAIT | MSG_NOSIGNAL | (flags & ORACLE_MORE ? MSG_MORE : 0) |
	       (flags & ORACLE_EOR ? MSG_EOR : 0);
}

int oracle_sock_send(const void *bytes, unsigned int len, unsigned int flags)
{
	struct msghdr msg = { .msg_flags = msg_flags(flags) };
	struct kvec vec = { .iov_base = (void *)bytes, .iov_len = len };

	window(true);
	return kernel_sendmsg(the.sock, &msg, &vec, 1, len);
}

int oracle_sock_zerocopy(struct page *page, unsigned int offset, unsigned int len,
			 unsigned int uarg, unsigned int flags)
{
	struct msghdr msg = { .msg_flags = msg_flags(flags) | MSG_ZEROCOPY,
			      .msg_ubuf = &the.uarg[uarg].ubuf };
	struct bio_vec vec = { .bv_page = page, .bv_offset = offset, .bv_len = len };

	window(true);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, len);
#else
	iov_iter_bvec(&msg.msg_iter, WRITE, &vec, 1, len);
#endif
	return sock_sendmsg(the.sock, &msg);
}

void oracle_sock_push(bool whole)
{
	lock_sock(the.sk);
	window(true);
	if (tcp_send_head(the.sk))
		o_tcp_push_pending_frames(the.sk, tcp_sk(the.sk)->mss_cache,
					  whole ? TCP_NAGLE_CORK : TCP_NAGLE_OFF);
	release_sock(the.sk);
}

void oracle_sock_complete(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		consume_skb(the.packet[i]);
	the.below -= nr;
	memmove(the.packet, the.packet + nr, the.below * sizeof(the.packet[0]));
}

/* A segment of the peer's that has no bytes, with NR SACK blocks. */
static struct sk_buff *segment(u32 ack, const struct oracle_block *blocks, unsigned int nr)
{
	unsigned int i, options = nr ? 4 + nr * TCPOLEN_SACK_PERBLOCK : 0;
	unsigned int len = sizeof(struct iphdr) + sizeof(struct tcphdr) + options;
	struct sk_buff *skb = alloc_skb(MAX_HEADER + len, GFP_KERNEL);
	struct tcphdr *th;
	struct iphdr *iph;
	__be32 *option;

	if (!skb)
		return NULL;
	skb_reserve(skb, MAX_HEADER);
	iph = skb_put_zero(skb, len);
	iph->version = 4;
	iph->ihl = 5;
	iph->tot_len = htons(len);
	iph->ttl = 64;
	iph->protocol = IPPROTO_TCP;
	iph->saddr = iph->daddr = htonl(INADDR_LOOPBACK);
	th = (struct tcphdr *)(iph + 1);
	th->source = htons(PORT);
	th->dest = inet_sk(the.sk)->inet_sport;
	th->seq = htonl(tcp_sk(the.sk)->rcv_nxt);
	th->ack_seq = htonl(ack);
	th->doff = (sizeof(*th) + options) / 4;
	th->ack = 1;
	th->window = htons(WINDOW);
	if (options) {
		option = (__be32 *)(th + 1);
		option[0] = htonl(TCPOPT_NOP << 24 | TCPOPT_NOP << 16 | TCPOPT_SACK << 8 |
				  (2 + nr * TCPOLEN_SACK_PERBLOCK));
		for (i = 0; i < nr; i++) {
			option[1 + 2 * i] = htonl(blocks[i].from);
			option[2 + 2 * i] = htonl(blocks[i].to);
		}
	}
	skb->dev = o_net->loopback_dev;
	skb->skb_iif = skb->dev->ifindex;
	skb->protocol = htons(ETH_P_IP);
	skb->pkt_type = PACKET_HOST;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_reset_network_header(skb);
	__skb_pull(skb, sizeof(*iph));
	skb_reset_transport_header(skb);
	/* As early demultiplexing leaves it, with a route over the same device. */
	skb_dst_set(skb, sk_dst_get(the.sk));
	sock_hold(the.sk);
	skb->sk = the.sk;
	skb->destructor = sock_edemux;
	return skb;
}

static void receive(struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(the.sk);

	if (!skb)
		return;
	lock_sock(the.sk);
	window(false);
	tp->snd_wl1 = tp->rcv_nxt - 1; /* one that tells a window is no duplicate */
	release_sock(the.sk);
	local_bh_disable();
	rcu_read_lock();
	o_tcp_v4_rcv(skb);
	rcu_read_unlock();
	/* An ACK right in front of what is SACKed makes TCP wait for 10 ms only. */
	sk_stop_timer(the.sk, &inet_csk(the.sk)->icsk_retransmit_timer);
	local_bh_enable();
	lock_sock(the.sk);
	no_recovery();
	release_sock(the.sk);
}

void oracle_sock_ack(unsigned int ack)
{
	receive(segment(ack, NULL, 0));
}

void oracle_sock_sack(const struct oracle_block *blocks, unsigned int nr)
{
	receive(segment(tcp_sk(the.sk)->snd_una, blocks, nr));
}

void oracle_sock_lost(struct sk_buff *skb)
{
	lock_sock(the.sk);
	o_tcp_mark_skb_lost(the.sk, skb);
	no_recovery();
	release_sock(the.sk);
}

int oracle_sock_retransmit(struct sk_buff *skb, unsigned int segs, unsigned int wnd)
{
	u32 open_wnd = tcp_sk(the.sk)->snd_wnd;
	int err;

	lock_sock(the.sk);
	window(true);
	if (wnd)
		tcp_sk(the.sk)->snd_wnd = wnd;
	err = o_tcp_retransmit_skb(the.sk, skb, segs);
	tcp_sk(the.sk)->snd_wnd = open_wnd;
	clear_bit(TSQ_THROTTLED, &the.sk->sk_tsq_flags); /* nobody waits for a completion */
	no_recovery();
	release_sock(the.sk);
	return err;
}
