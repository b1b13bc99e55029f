/* SPDX-License-Identifier: MIT */
/*
 * The variants of the `defer` experiment: where a reader lets go of an sk_buff that it has consumed.
 *
 *   inline       at once, while it owns the socket                                         up to 5.16
 *   sk_llist     on the socket's lock-free list, freed when the lock is gone               5.17
 *   cpu_list     sent home to the CPU that made it, on that CPU's list under a lock        5.19
 *   node_llist   the same on a lock-free list for each node                                6.18
 *
 * In all of them the charge is given back under the lock, at the same moment; only the release of
 * the memory moves. sk_llist is the patch of 2021 and its rule: the sk_buff is put on the list if
 * more are queued behind it or the list holds something already, so that the last one of a burst,
 * and with it every one of a request-response load, is freed at once.
 *
 *   the list of sk_llist is emptied      by                      holding the lock
 *   before a packet is delivered         tcp_v4_rcv()            no
 *   before a reader waits for data       sk_wait_data()          yes
 *   after a read                         tcp_recvmsg() and the   no
 *                                        other readers
 *   on tcp_disconnect()                                          yes
 *   when the socket is destroyed         tcp_rx_destroy()        nobody else is left
 *
 * Whoever takes the list gets all of it, and frees each of it once.
 */
#ifndef TCP_TCP_DEFER_H
#define TCP_TCP_DEFER_H

#include "skb/era.h"

enum tcp_defer {
	TCP_DEFER_INLINE,
	TCP_DEFER_SK_LLIST,
	TCP_DEFER_CPU_LIST,
	TCP_DEFER_NODE_LLIST,
	TCP_DEFER_NR
};

/*
 * The receive side has the rules of 6.1 and of 6.12, which here differ in what the sk_buff's own
 * operations do. Era 3.4, whose receive path had a prequeue and no coalescing, is left out:
 * tcp_rx_init() refuses it.
 */
#define TCP_RX_ERA_DECLARE(ret, name, ...) \
	ret name##_6_1(__VA_ARGS__);       \
	ret name##_6_12(__VA_ARGS__)
#define TCP_RX_ERA_CALL(era, name, ...) \
	((era) == ERA_6_1 ? name##_6_1(__VA_ARGS__) : name##_6_12(__VA_ARGS__))

/* Expands M(suffix, era) for each era of the receive side. */
#define TCP_RX_FOR_EACH_ERA(M) M(6_1, ERA_6_1) M(6_12, ERA_6_12)

#define TCP_RX_DECLARE_ERA(ret, name, era, ...)   \
	ret name##_##era##_inline(__VA_ARGS__);   \
	ret name##_##era##_sk_llist(__VA_ARGS__); \
	ret name##_##era##_cpu_list(__VA_ARGS__); \
	ret name##_##era##_node_llist(__VA_ARGS__)
#define TCP_RX_DECLARE(ret, name, ...)                   \
	TCP_RX_DECLARE_ERA(ret, name, 6_1, __VA_ARGS__); \
	TCP_RX_DECLARE_ERA(ret, name, 6_12, __VA_ARGS__)

#define TCP_RX_CALL_ERA(defer, name, era, ...)                                  \
	((defer) == TCP_DEFER_INLINE	 ? name##_##era##_inline(__VA_ARGS__)   \
	 : (defer) == TCP_DEFER_SK_LLIST ? name##_##era##_sk_llist(__VA_ARGS__) \
	 : (defer) == TCP_DEFER_CPU_LIST ? name##_##era##_cpu_list(__VA_ARGS__) \
					 : name##_##era##_node_llist(__VA_ARGS__))
#define TCP_RX_CALL(era, defer, name, ...)                                 \
	((era) == ERA_6_1 ? TCP_RX_CALL_ERA(defer, name, 6_1, __VA_ARGS__) \
			  : TCP_RX_CALL_ERA(defer, name, 6_12, __VA_ARGS__))

/* Expands M(suffix, era, defer) for each pair. */
#define TCP_RX_FOR_EACH(M)                               \
	M(6_1_inline, ERA_6_1, TCP_DEFER_INLINE)         \
	M(6_1_sk_llist, ERA_6_1, TCP_DEFER_SK_LLIST)     \
	M(6_1_cpu_list, ERA_6_1, TCP_DEFER_CPU_LIST)     \
	M(6_1_node_llist, ERA_6_1, TCP_DEFER_NODE_LLIST) \
	M(6_12_inline, ERA_6_12, TCP_DEFER_INLINE)       \
	M(6_12_sk_llist, ERA_6_12, TCP_DEFER_SK_LLIST)   \
	M(6_12_cpu_list, ERA_6_12, TCP_DEFER_CPU_LIST)   \
	M(6_12_node_llist, ERA_6_12, TCP_DEFER_NODE_LLIST)

/* "inline", "sk_llist", "cpu_list", "node_llist". */
const char *tcp_defer_name(enum tcp_defer defer);

#endif
