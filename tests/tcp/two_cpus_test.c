/* SPDX-License-Identifier: MIT */
/*
 * The trim race on two real CPUs: one sends, takes partial ACKs and retransmits, the other
 * completes at the same time, in every era and both ways to trim. What is left at the end must be
 * nothing. Under ThreadSanitizer this is where the orderings of dataref, fclone_ref, page counts
 * and the ring are looked at.
 */
#include "skb/skb_check.h"
#include "tcp/tcp.h"
#include "tests/support/model.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define LIVES 2000

static struct sock sk;
static struct proto_memory prot;
static struct tx_ring ring;
static enum skb_era era;
static int stop;

static void *completer(void *arg)
{
	struct rng rng = { 7 };

	(void)arg;
	if (skb_cpu_attach(1, 0))
		return (void *)1;
	while (!smp_load_acquire(&stop, SKB_C_OTHER)) {
		tx_ring_complete(era, &ring, 1 + rng_below(&rng, 3));
		for (u32 i = rng_below(&rng, 200); i; i--)
			cpu_relax();
		if (!rng_below(&rng, 16))
			sched_yield();
	}
	tx_ring_complete(era, &ring, ~0U);
	skb_cpu_detach();
	return NULL;
}

static void live(enum tcp_trim trim, struct rng *rng)
{
	u32 acked = 0, len = 45 * TCP_MSS_ETHERNET;

	while (tcp_sendmsg_in_place(era, &sk, len) != (int)len)
		;
	tcp_write_xmit(era, trim, &sk);
	for (u32 n = rng_below(rng, 4); n; n--) {
		acked = min(acked + 1 + rng_below(rng, 15000), len - 1);
		tcp_ack(era, trim, &sk, sk.snd_nxt - len + acked);
		if (!rng_below(rng, 4) && skb_peek(&sk.tcp_rtx_queue))
			tcp_retransmit_skb(era, trim, &sk, skb_peek(&sk.tcp_rtx_queue), 2);
		tcp_tsq_handler(era, trim, &sk);
	}
	tcp_ack(era, trim, &sk, sk.snd_nxt);
}

static void both_cpus(void **state)
{
	struct rng rng = { model_seed("two_cpus", 45) };

	(void)state;
	for (era = ERA_3_4; era < SKB_ERA_NR; era++)
		for (enum tcp_trim trim = TRIM_EAGER; trim < TCP_TRIM_NR; trim++) {
			char err[200] = "";
			pthread_t t;
			void *failed;

			memset(&prot, 0, sizeof(prot));
			stop = 0;
			assert_int_equal(tx_ring_init(&ring, 64), 0);
			tcp_sock_init(&sk, &prot, &ring, trim ? SKB_FRAG_PAGE_ORDER : 0);
			assert_int_equal(pthread_create(&t, NULL, completer, NULL), 0);
			for (int i = 0; i < LIVES; i++) {
				live(trim, &rng);
				if (tcp_check_sock(era, trim, &sk, err, sizeof(err)))
					fail_msg("%s", err);
			}
			smp_store_release(&stop, 1, SKB_C_OTHER);
			pthread_join(t, &failed);
			assert_null(failed);
			tcp_tsq_handler(era, trim, &sk);
			tx_ring_complete(era, &ring, ~0U);
			assert_int_equal(sk.packets_out, 0);
			assert_int_equal(sk.sk_wmem_queued, 0);
			assert_int_equal(refcount_read(&sk.sk_wmem_alloc, SKB_C_WMEM), 1);
			tcp_sock_destroy(era, &sk);
			tx_ring_exit(&ring);
			assert_int_equal(model_pages_in_use(), 0);
			assert_int_equal(proto_memory_bytes(&prot), 0);
		}
}

static int start(void **state)
{
	(void)state;
	model_start(MODEL_ALLOCATOR, 16384);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(both_cpus) };

	return cmocka_run_group_tests(tests, start, NULL);
}
