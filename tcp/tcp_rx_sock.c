/* SPDX-License-Identifier: MIT */
/* A socket that receives: how it begins, and how its readers are woken. */
#include "skb/futex.h"
#include "tcp/tcp_rx.h"

/*
 * Kernel: sock_def_readable(), net/core/sock.c. The barrier orders rcv_nxt, which the caller has
 * moved, before the look for sleepers; it pairs with the RMW of __sk_sleep_for_data().
 */
static void sock_def_readable(struct sock *sk)
{
	smp_mb();
	if (atomic_read(&sk->sk_wq.sleepers, SKB_C_OTHER)) {
		atomic_inc(&sk->sk_wq.seq, SKB_C_OTHER);
		futex_wake(&sk->sk_wq.seq, INT_MAX);
	}
}

/* A reader that spins looks at rcv_nxt itself. */
static void sock_spin_readable(struct sock *sk)
{
	(void)sk;
}

void __sk_sleep_for_data(struct sock *sk, u32 seen)
{
	u64 since = sock_ticks();

	atomic_add_return(1, &sk->sk_wq.sleepers, SKB_C_OTHER);
	for (;;) {
		unsigned int seq = (unsigned int)atomic_read_acquire(&sk->sk_wq.seq, SKB_C_OTHER);

		if (!sk_nothing_new(sk, seen))
			break;
		futex_wait(&sk->sk_wq.seq, seq);
	}
	atomic_add(-1, &sk->sk_wq.sleepers, SKB_C_OTHER);
	sock_waited += sock_ticks() - since;
}

/* The scale with which WINDOW fits into 16 bits. */
static u8 window_scale(u32 window)
{
	u8 scale = 0;

	while (window >> scale > 0xffff && scale < 14)
		scale++;
	return scale;
}

void tcp_rx_init(enum skb_era era, enum sock_wait wait, struct sock *sk, struct net *net,
		 int rcvbuf)
{
	BUG_ON(era < ERA_6_1); /* 3.4's receive side is left out */
	sk->sk_net = net;
	sk->skc_state = TCP_ESTABLISHED;
	sk->sk_data_ready = wait == SOCK_WAIT_SPIN ? sock_spin_readable : sock_def_readable;
	sk->sk_backlog_rcv = era == ERA_6_1 ? tcp_v4_do_rcv_6_1 : tcp_v4_do_rcv_6_12;
	refcount_set(&sk->sk_refcnt, 1, SKB_C_SK_REFCNT);
	skb_queue_init(&sk->sk_error_queue);
	skb_queue_init(&sk->sk_receive_queue);
	init_llist_head(&sk->defer_list);
	sk->sk_rcvbuf = rcvbuf;
	sk->sk_rcvlowat = 1;
	sk->tcp_header_len = TCP_WIRE_TCP_BYTES;
	sk->rcv_nxt = sk->copied_seq = sk->rcv_wup = 1;
	sk->window_clamp = sk->rcv_ssthresh = (u32)rcvbuf / 2;
	sk->rcv_wscale = window_scale(sk->window_clamp);
	sk->rcv_wnd = sk->window_clamp & ~0U << sk->rcv_wscale;
	sk->icsk_ack.rcv_mss = 536; /* until a segment was seen */
	sk->ack_out.ack_wnd = (u64)sk->rcv_nxt << 32 | sk->rcv_wnd;
}
