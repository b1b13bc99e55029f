/* SPDX-License-Identifier: MIT */
/*
 * Probing the path's MTU: now and then a packet that is larger than the MSS, of bytes that wait.
 *
 * Kernel: tcp_mtu_probe() in net/ipv4/tcp_output.c, tcp_mtup_probe_success() and
 * tcp_mtup_probe_failed() in net/ipv4/tcp_input.c. Who finds that a probe was lost is above (the
 * kernel: a first duplicate ACK or a timeout), and calls tcp_mtup_probe_failed(). All functions are
 * for the holder of the socket lock.
 */
#ifndef TCP_TCP_MTU_PROBE_H
#define TCP_TCP_MTU_PROBE_H

#include "tcp/tcp.h"

#define TCP_PROBE_THRESHOLD \
	8 /* bytes: an interval below is not searched (6.x; tcp_probe_threshold) */
#define TCP_PROBE_REORDERING 3 /* segments behind a probe, so that its loss is seen */
#define TCP_PROBE_MIN_CWND   11

static __always_inline u32 tcp_mtu_to_mss(const struct sock *sk, u32 mtu)
{
	return mtu - sk->mtup.header_len;
}

static __always_inline u32 tcp_mss_to_mtu(const struct sock *sk, u32 mss)
{
	return mss + sk->mtup.header_len;
}

/*
 * From now on SK looks for the largest MTU between LOW, which gets through and gives the MSS, and
 * HIGH, in bytes; HEADER_LEN of each packet are headers of IP and TCP with all options. 0, or -EINVAL
 * if LOW leaves no payload or lies above HIGH, and nothing has changed. The caller of an MPTCP
 * connection works out its size goal anew (mptcp_sync_mss()), also behind an ACK that ends a probe.
 */
int tcp_mtup_init(struct sock *sk, u32 header_len, u32 low, u32 high);

TCP_DECLARE(int, tcp_mtu_probe, struct sock *sk);

/*
 * Sends a probe if it is time for one: none is on its way, at least 11 segments may be, nothing is
 * SACKed or lost, the interval is not narrow yet, and the write queue and the peer's window have the
 * probe's bytes and four segments more. 1: sent, the congestion window is a segment smaller; 0: all
 * has to wait until window and congestion window take it; -1: none now, send as usual. Also -1
 * without memory, or if the bytes may not be in one sk_buff (tcp_can_coalesce_send_queue_head(): no
 * two maps of MPTCP); then nothing has changed. If only the sending fails the probe is the head of
 * the write queue, and goes in segments.
 */
static __always_inline int tcp_mtu_probe(const enum skb_era era, const enum tcp_trim trim,
					 struct sock *sk)
{
	return TCP_CALL(era, trim, tcp_mtu_probe, sk);
}

/* What tcp_ack() calls when the probe arrived: its size is the MTU now, as many bytes may be out. */
void tcp_mtup_probe_success(struct sock *sk);

/* The probe was lost: packets as large do not get through. Nothing if none is on its way. */
void tcp_mtup_probe_failed(struct sock *sk);

#endif
