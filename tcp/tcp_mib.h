/* SPDX-License-Identifier: MIT */
/*
 * Counters of the receive side: one plain increment on a line of the calling CPU, as the kernel's
 * LINUX_MIB_* are.
 *
 * The first block has the kernel's counters of the same name; the second is the model's own and
 * answers what the `defer` experiment asks: who frees, where, and what the backlog had to take.
 */
#ifndef TCP_TCP_MIB_H
#define TCP_TCP_MIB_H

#include "skb/cpu.h"

enum tcp_mib_item {
	TCP_MIB_HPHITS, /* data segments that took the fast path */
	TCP_MIB_RCVCOALESCE, /* sk_buffs that became part of the one before in the receive queue */
	TCP_MIB_RCVQDROP, /* dropped: the receive buffer is full */
	TCP_MIB_ZEROWINDOWDROP, /* dropped: beyond the window */
	TCP_MIB_OFODROP, /* dropped: not the next in sequence (the kernel would keep them) */
	TCP_MIB_BACKLOGCOALESCE, /* sk_buffs that became part of the backlog's last */
	TCP_MIB_BACKLOGDROP, /* dropped: the backlog is full */
	TCP_MIB_ACKS, /* ACKs sent */

	TCP_MIB_BACKLOGADD, /* sk_buffs appended to a backlog */
	TCP_MIB_BACKLOGBYTES, /* their truesize */
	/* what became of the sk_buffs that readers consumed: each counts once */
	TCP_MIB_DEFERRED, /* deferred: sk_llist, cpu_list, node_llist */
	TCP_MIB_FREE_LOCKED_LAST, /* freed under the lock: sk_llist, the last one of a queue */
	TCP_MIB_FREE_LOCKED_OTHER, /* freed under the lock: every other */
	/* when those of the socket's list (sk_llist) were freed: each counts once, too */
	TCP_MIB_FREE_LOCKED_FLUSH, /* under the lock, before the reader waits */
	TCP_MIB_FREE_LOCKED_END, /* under the lock, at the end of the connection */
	TCP_MIB_FREE_SOFTIRQ, /* by a softirq before it takes the lock */
	TCP_MIB_FREE_READER, /* by a reader after it gave the lock back */
	TCP_MIB_NR
};

struct tcp_mib {
	u64 nr[TCP_MIB_NR];
	u64 most_flushed; /* sk_buffs of a socket's list that were freed at once: as long as it ever was */
} ____cacheline_aligned;

#endif
