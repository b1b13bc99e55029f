/* SPDX-License-Identifier: MIT */
/*
 * TCP's receive side: from a packet that a softirq delivers to the bytes that a reader takes.
 *
 * Kernel: net/ipv4/tcp_ipv4.c, tcp_input.c and tcp.c, 6.1 and 6.12. Most functions take constants:
 * the era, how consumed sk_buffs are let go of (tcp_defer.h), and how a reader waits (sock_lock.h);
 * a call is then a direct call of one function (tcp_recvmsg_spin_6_12_sk_llist(), ...).
 *
 *                       who          socket lock              may run beside, on the same socket
 *   tcp_v4_rcv()        softirq      takes and drops slock    all
 *   tcp_recvmsg()       reader       owns the socket inside   tcp_v4_rcv() and other readers
 *   tcp_splice_read(),  reader       the same                 the same
 *   tcp_zerocopy_receive()
 *   tcp_inq()           anyone       none: a hint             all
 *   tcp_disconnect()    its owner    is held                  tcp_v4_rcv()
 *   tcp_rx_destroy()    its owner    nobody is left           nothing
 *   the rest            the holder of the socket lock
 *
 *   sk_buffs: what comes in belongs to the receive side, in each outcome. In the receive queue it
 * is charged to the socket: truesize in sk_rmem_alloc, and out of sk_forward_alloc, until it is
 * consumed.
 *
 * Left out: out-of-order queue (what is not the next in sequence is dropped and counted), urgent
 * data, autotuning of the receive buffer (rcv_ssthresh is at its limit), delayed-ACK timer and quick
 * ACK mode, timestamps' checks, checksums in software, the sk_buff of an ACK and its way down: what
 * the peer would learn from it is in sk->ack_out. All of it is the same in all variants of `defer`.
 */
#ifndef TCP_TCP_RX_H
#define TCP_TCP_RX_H

#include "tcp/inet_hashtables.h"
#include "tcp/sock_lock.h"
#include "tcp/tcp_backlog.h"
#include "tcp/tcp_cb.h"
#include "tcp/tcp_defer.h"
#include "tcp/tcp_wire.h"

#include <sys/socket.h> /* MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_DONTWAIT */

#define TCP_DEFAULT_RCVBUF (6 << 20) /* what tcp_rmem allows at most */

/* icsk_ack.pending */
#define ICSK_ACK_SCHED 1 /* one is due */
#define ICSK_ACK_NOW   2 /* and not to wait */

/*
 * SK, which tcp_sock_init() has made, receives from here on: empty queues, receive buffer RCVBUF
 * bytes of truesize, a first window of half of it; WAIT tells what sk_data_ready() does for a reader
 * that waits. Not hashed yet. BUG for era 3.4. NET outlives SK.
 */
void tcp_rx_init(enum skb_era era, enum sock_wait wait, struct sock *sk, struct net *net,
		 int rcvbuf);

/* True while nothing came behind SEEN and the connection stands. On any CPU, without a lock. */
static __always_inline bool sk_nothing_new(const struct sock *sk, u32 seen)
{
	return skb_load(&sk->rcv_nxt, SKB_C_OTHER) == seen &&
	       skb_load(&sk->skc_state, SKB_C_OTHER) == TCP_ESTABLISHED;
}

/* Sleeps while that is so. The caller does not own the socket. */
void __sk_sleep_for_data(struct sock *sk, u32 seen);

/*
 * --- delivery (tcp_ipv4.c)
 * --------------------------------------------------------------------------------------
 */

TCP_RX_DECLARE(int, tcp_v4_rcv, struct net *net, struct sk_buff *skb);

/*
 * SKB, data at its TCP header (tcp_pull_to_header()), has come in: finds its socket, frees what a
 * reader deferred to it (sk_llist, before the lock), takes slock, and processes SKB or puts it into
 * the backlog. SKB's only holder is the caller, until here. In a softirq of a thread that is attached
 * (inet_rcu_attach()). 0; -ENOENT if no socket is there, -EINVAL for a header that is cut short:
 * SKB is dropped. What the socket drops later it counts. RMW beside what the packet costs: 1 slock,
 * 2 sk_refcnt.
 */
static __always_inline int tcp_v4_rcv(const enum skb_era era, const enum tcp_defer defer,
				      struct net *net, struct sk_buff *skb)
{
	return TCP_RX_CALL(era, defer, tcp_v4_rcv, net, skb);
}

/*
 * --- input (tcp_rcv.c): for the holder of the socket lock
 * --------------------------------------------------------------------------------------
 */

TCP_RX_ERA_DECLARE(int, tcp_v4_do_rcv, struct sock *sk, struct sk_buff *skb);
TCP_RX_ERA_DECLARE(int, tcp_queue_rcv, struct sock *sk, struct sk_buff *skb, bool *fragstolen);
TCP_RX_ERA_DECLARE(bool, tcp_try_coalesce, struct sock *sk, struct sk_buff *to,
		   struct sk_buff *from, bool *fragstolen);

/* Processes SKB, header and all; what sk_backlog_rcv() is. Always 0: it is gone. */
static __always_inline int tcp_v4_do_rcv(const enum skb_era era, struct sock *sk,
					 struct sk_buff *skb)
{
	return TCP_RX_ERA_CALL(era, tcp_v4_do_rcv, sk, skb);
}

/*
 * SKB, payload only, is the next in sequence and has been granted memory (tcp_try_rmem_schedule()):
 * joins it to the last of the receive queue or appends it, charges it, moves rcv_nxt. 1 if it was
 * joined: the caller lets go of SKB by kfree_skb_partial(SKB, *FRAGSTOLEN). 0: it is the queue's.
 * One RMW on sk_rmem_alloc in both cases.
 */
static __always_inline int tcp_queue_rcv(const enum skb_era era, struct sock *sk,
					 struct sk_buff *skb, bool *fragstolen)
{
	return TCP_RX_ERA_CALL(era, tcp_queue_rcv, sk, skb, fragstolen);
}

/*
 * FROM becomes part of TO, both SK's, if it continues TO and skb_try_coalesce() can do it; what TO's
 * truesize grew is charged. True: the caller lets go of FROM as above. False: nothing has changed.
 */
static __always_inline bool tcp_try_coalesce(const enum skb_era era, struct sock *sk,
					     struct sk_buff *to, struct sk_buff *from,
					     bool *fragstolen)
{
	return TCP_RX_ERA_CALL(era, tcp_try_coalesce, sk, to, from, fragstolen);
}

/* The destructor of what lies in a receive queue: gives the charge back. Under the socket lock. */
void sock_rfree(struct sk_buff *skb);

/*
 * The queue's SKB is SK's from here on: sk_rmem_alloc += truesize (one RMW), sk_forward_alloc -=
 * truesize, sock_rfree() gives both back. For an SKB without an owner.
 */
static __always_inline void skb_set_owner_r(struct sk_buff *skb, struct sock *sk)
{
	skb->sk = sk;
	skb->destructor = sock_rfree;
	atomic_add((int)skb->truesize, &sk->sk_rmem_alloc, SKB_C_RMEM);
	sk_mem_charge(sk, (int)skb->truesize);
}

/*
 * --- windows and ACKs (tcp_ack_out.c): for the holder of the socket lock
 * --------------------------------------------------------------------------------------
 */

/* Bytes that the peer may still send of the window last told. */
static __always_inline u32 tcp_receive_window(const struct sock *sk)
{
	s32 win = (s32)(sk->rcv_wup + sk->rcv_wnd - sk->rcv_nxt);

	return win > 0 ? (u32)win : 0;
}

/* The window that could be told now, whatever was told before; 0 if there is little room. */
u32 __tcp_select_window(const struct sock *sk);

/* An ACK goes to the peer: all up to rcv_nxt, and a window that takes back nothing. */
void tcp_send_ack(struct sock *sk);

/*
 * A reader took COPIED bytes: sends an ACK if one is due or the window has at least doubled. True
 * if one went: sk->ack_out tells what the peer may send. Kernel: __tcp_cleanup_rbuf().
 */
bool tcp_cleanup_rbuf(struct sock *sk, int copied);

/* The last ACK as the peer reads it, on any CPU: the next byte expected, and the window behind it. */
static __always_inline void tcp_read_ack(const struct sock *sk, u32 *ack, u32 *wnd)
{
	/* Pairs with tcp_send_ack(). */
	u64 word = smp_load_acquire(&sk->ack_out.ack_wnd, SKB_C_OTHER);

	*ack = (u32)(word >> 32);
	*wnd = (u32)word;
}

/*
 * --- readers (tcp_recvmsg.c, tcp_eat.c)
 * --------------------------------------------------------------------------------------
 */

TCP_RX_DECLARE(void, tcp_eat_recv_skb, struct sock *sk, struct sk_buff *skb);
TCP_RX_DECLARE(void, tcp_disconnect, struct sock *sk);

/* Declares NAME_spin_6_12_sk_llist and so on. */
#define TCP_RX_WAIT_DECLARE(ret, name, ...)            \
	TCP_RX_DECLARE(ret, name##_spin, __VA_ARGS__); \
	TCP_RX_DECLARE(ret, name##_sleep, __VA_ARGS__)
#define TCP_RX_WAIT_CALL(era, defer, wait, name, ...)                                 \
	((wait) == SOCK_WAIT_SPIN ? TCP_RX_CALL(era, defer, name##_spin, __VA_ARGS__) \
				  : TCP_RX_CALL(era, defer, name##_sleep, __VA_ARGS__))

TCP_RX_WAIT_DECLARE(int, tcp_recvmsg, struct sock *sk, void *to, size_t len, int flags);

/*
 * A reader takes up to LEN bytes into TO. MSG_PEEK: they stay in the queue; MSG_TRUNC: they are not
 * copied (TO may be NULL); MSG_WAITALL: all LEN, or what there is at the end of the stream;
 * MSG_DONTWAIT: never waits. Otherwise waits until there are sk_rcvlowat bytes, or LEN if that is
 * less. Returns the bytes taken; 0 at the end of the stream, or for LEN 0; -EAGAIN if it would have
 * to wait and must not.
 */
static __always_inline int tcp_recvmsg(const enum skb_era era, const enum tcp_defer defer,
				       const enum sock_wait wait, struct sock *sk, void *to,
				       size_t len, int flags)
{
	return TCP_RX_WAIT_CALL(era, defer, wait, tcp_recvmsg, sk, to, len, flags);
}

/* A piece of a page that a pipe got: the reference is the caller's. */
struct tcp_pipe_buffer {
	struct page *page;
	u32 offset, len;
};

TCP_RX_WAIT_DECLARE(int, tcp_splice_read, struct sock *sk, struct tcp_pipe_buffer *pipe,
		    unsigned int *nr, size_t len);

/*
 * A reader takes up to LEN bytes without a copy: *NR entries of PIPE at most, one reference on each
 * page; linear bytes are copied into a page of their own. Never waits. Returns the bytes taken, *NR
 * being the entries filled; 0 at the end of the stream; -EAGAIN if nothing is there; -ENOMEM.
 * Kernel: tcp_splice_read(), net/ipv4/tcp.c.
 */
static __always_inline int tcp_splice_read(const enum skb_era era, const enum tcp_defer defer,
					   const enum sock_wait wait, struct sock *sk,
					   struct tcp_pipe_buffer *pipe, unsigned int *nr,
					   size_t len)
{
	return TCP_RX_WAIT_CALL(era, defer, wait, tcp_splice_read, sk, pipe, nr, len);
}

TCP_RX_WAIT_DECLARE(int, tcp_zerocopy_receive, struct sock *sk, struct page **pages,
		    unsigned int nr, u32 *recv_skip_hint);

/*
 * A reader maps up to NR pages that the stream fills completely: one reference on each, the
 * caller's. Returns how many; *RECV_SKIP_HINT tells how many bytes before the next whole page must
 * be read otherwise (0: none, or nothing is there). Never waits. Kernel:
 * tcp_zerocopy_receive(), net/ipv4/tcp.c.
 */
static __always_inline int tcp_zerocopy_receive(const enum skb_era era, const enum tcp_defer defer,
						const enum sock_wait wait, struct sock *sk,
						struct page **pages, unsigned int nr,
						u32 *recv_skip_hint)
{
	return TCP_RX_WAIT_CALL(era, defer, wait, tcp_zerocopy_receive, sk, pages, nr,
				recv_skip_hint);
}

/* Bytes that a reader could take now; a hint unless the caller holds the socket lock. */
static __always_inline u32 tcp_inq(const struct sock *sk)
{
	return skb_load(&sk->rcv_nxt, SKB_C_OTHER) - skb_load(&sk->copied_seq, SKB_C_OTHER);
}

/*
 * SKB of the receive queue is consumed: it leaves the queue, its charge is given back, and its
 * memory is let go of as DEFER says (tcp_defer.h). For the owner of the socket. RMW: 1 for the
 * charge; sk_llist 1 more if it is deferred.
 */
static __always_inline void tcp_eat_recv_skb(const enum skb_era era, const enum tcp_defer defer,
					     struct sock *sk, struct sk_buff *skb)
{
	TCP_RX_CALL(era, defer, tcp_eat_recv_skb, sk, skb);
}

TCP_RX_ERA_DECLARE(unsigned int, __sk_defer_free_flush, struct sock *sk);

/*
 * Frees what readers of SK have deferred, on this CPU; returns how many sk_buffs that was. Nothing
 * there: a look and no RMW. Safe on any CPUs at once.
 */
static __always_inline unsigned int sk_defer_free_flush(const enum skb_era era, struct sock *sk)
{
	if (llist_empty(&sk->defer_list))
		return 0;
	return TCP_RX_ERA_CALL(era, __sk_defer_free_flush, sk);
}

/*
 * The connection is over: what was received and not read is freed, and with sk_llist the list is
 * flushed, too. The caller owns the socket (lock_sock()).
 */
static __always_inline void tcp_disconnect(const enum skb_era era, const enum tcp_defer defer,
					   struct sock *sk)
{
	TCP_RX_CALL(era, defer, tcp_disconnect, sk);
}

TCP_RX_ERA_DECLARE(void, tcp_rx_destroy, struct sock *sk);

/*
 * Nobody can reach SK any more (inet_hashtables.h): frees what its receive queue and backlog hold.
 * BUG if something deferred is left: whoever defers has to flush before it lets go of the socket.
 * tcp_sock_destroy() comes next.
 */
static __always_inline void tcp_rx_destroy(const enum skb_era era, struct sock *sk)
{
	TCP_RX_ERA_CALL(era, tcp_rx_destroy, sk);
}

/*
 * --- properties (tcp_rx_check.c)
 * ------------------------------------------------------------------------------
 */

/*
 * Checks what must hold for the receive half between any two calls, for the holder of the socket
 * lock: geometry of every sk_buff, sequence numbers that join from copied_seq to rcv_nxt, charges
 * that add up (A5), owners and destructors, a backlog of no more truesize than its length says. 0,
 * or -1 with a sentence in ERR.
 */
int tcp_rx_check(const struct sock *sk, char *err, size_t errlen);

/* The same once everything is read and all lists are flushed: nothing is left, nothing charged. */
int tcp_rx_check_quiet(const struct sock *sk, char *err, size_t errlen);

#endif
