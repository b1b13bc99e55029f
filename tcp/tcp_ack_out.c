/* SPDX-License-Identifier: MIT */
/*
 * What the peer is told: windows and ACKs.
 *
 * Kernel: __tcp_select_window(), tcp_select_window(), tcp_send_ack() in net/ipv4/tcp_output.c,
 * __tcp_cleanup_rbuf() in net/ipv4/tcp.c, 6.1. Half of the receive buffer's truesize is taken for
 * payload, as with tcp_adv_win_scale 1, and as 6.12 begins before it has measured.
 */
#include "tcp/tcp_rx.h"

static s32 tcp_win_from_space(s32 space)
{
	return space / 2;
}

/* Payload that the receive buffer still has room for. */
static s32 tcp_space(const struct sock *sk)
{
	return tcp_win_from_space(sk->sk_rcvbuf - skb_load(&sk->sk_backlog.len, SKB_C_OTHER) -
				  atomic_read(&sk->sk_rmem_alloc, SKB_C_RMEM));
}

static s32 round_to_scale(const struct sock *sk, s32 window)
{
	return window & -(1 << sk->rcv_wscale);
}

u32 __tcp_select_window(const struct sock *sk)
{
	s32 mss = sk->icsk_ack.rcv_mss;
	s32 free_space = tcp_space(sk);
	s32 full_space = min((s32)sk->window_clamp, tcp_win_from_space(sk->sk_rcvbuf));
	s32 window;

	mss = min(mss, full_space);
	if (mss <= 0)
		return 0;
	if (free_space < full_space / 2) {
		free_space = round_to_scale(sk, free_space);
		if (free_space < full_space / 16 || free_space < mss)
			return 0;
	}
	free_space = min(free_space, (s32)sk->rcv_ssthresh);
	if (sk->rcv_wscale)
		return (u32)round_to_scale(sk, free_space + (1 << sk->rcv_wscale) - 1);
	/* Without a scale whole segments are told, and the window only moves by such. */
	window = (s32)sk->rcv_wnd;
	if (window <= free_space - mss || window > free_space)
		window = free_space - free_space % mss;
	else if (mss == full_space && free_space > window + full_space / 2)
		window = free_space;
	return (u32)window;
}

void tcp_send_ack(struct sock *sk)
{
	u32 now = tcp_receive_window(sk), window = __tcp_select_window(sk);

	/* What was told once is not taken back. */
	if (window < now)
		window = (u32)round_to_scale(sk, (s32)now + (1 << sk->rcv_wscale) - 1);
	sk->rcv_wnd = window;
	sk->rcv_wup = sk->rcv_nxt;
	sk->icsk_ack.pending = 0;
	sk->ack_out.nr++;
	net_inc_stats(sk->sk_net, TCP_MIB_ACKS);
	/* Pairs with tcp_read_ack(). */
	smp_store_release(&sk->ack_out.ack_wnd, (u64)sk->rcv_nxt << 32 | window, SKB_C_OTHER);
}

bool tcp_cleanup_rbuf(struct sock *sk, int copied)
{
	bool time_to_ack = false;

	if (sk->icsk_ack.pending & ICSK_ACK_SCHED)
		time_to_ack = sk->rcv_nxt - sk->rcv_wup > sk->icsk_ack.rcv_mss;
	if (copied > 0 && !time_to_ack && !(sk->sk_shutdown & RCV_SHUTDOWN)) {
		u32 now = tcp_receive_window(sk);

		if (2 * now <= sk->window_clamp) {
			u32 window = __tcp_select_window(sk);

			time_to_ack = window && window >= 2 * now;
		}
	}
	if (time_to_ack)
		tcp_send_ack(sk);
	return time_to_ack;
}
