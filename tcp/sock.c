/* SPDX-License-Identifier: MIT */
#include "tcp/sock.h"

#include <string.h>

void tcp_sock_init(struct sock *sk, struct proto_memory *prot, struct tx_ring *ring,
		   unsigned int frag_order)
{
	memset(sk, 0, sizeof(*sk));
	refcount_set(&sk->sk_wmem_alloc, 1, SKB_C_WMEM);
	sk->sk_sndbuf = 16 << 20;
	sk->node = NUMA_NO_NODE;
	sk->prot = prot;
	sk->ring = ring;
	skb_queue_init(&sk->sk_write_queue);
	skb_queue_init(&sk->tcp_rtx_queue);
	sk->frag_order = frag_order;
	sk->max_skb_frags = MAX_SKB_FRAGS;
	sk->write_seq = sk->snd_nxt = sk->snd_una = 1;
	sk->snd_wnd = 1U << 30;
	sk->snd_cwnd = TCP_INFINITE_CWND;
	sk->mss_cache = TCP_MSS_ETHERNET;
	sk->gso_max_size = TCP_GSO_MAX_SIZE;
}

static void purge(const enum skb_era era, struct sock *sk, struct sk_buff_head *q)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(q))) {
		__skb_unlink(skb, q);
		tcp_wmem_free_skb(era, sk, skb);
	}
}

void tcp_sock_destroy(const enum skb_era era, struct sock *sk)
{
	purge(era, sk, &sk->sk_write_queue);
	purge(era, sk, &sk->tcp_rtx_queue);
	sk->packets_out = sk->retrans_out = sk->sacked_out = sk->lost_out = 0;
	if (sk->sk_frag.page) {
		put_page(sk->sk_frag.page);
		sk->sk_frag.page = NULL;
	}
	BUG_ON(sk->sk_wmem_queued);
	/* What is left is whole pages: every byte that was charged has come back. */
	BUG_ON(sk->sk_forward_alloc & (int)(PAGE_SIZE - 1));
	sk_memory_allocated_add(era, sk, -(sk->sk_forward_alloc >> PAGE_SHIFT));
	sk->sk_forward_alloc = 0;
}

long proto_memory_bytes(const struct proto_memory *prot)
{
	long pages = atomic_long_read(&prot->memory_allocated, SKB_C_MEM);

	for (unsigned int cpu = 0; cpu < SKB_NR_CPUS; cpu++)
		pages += prot->per_cpu[cpu].fw_alloc;
	return pages << PAGE_SHIFT;
}
