/* SPDX-License-Identifier: MIT */
/*
 * What several CPUs make of the same memory at once.
 *
 *   bench_contend_page.c    references on pages that share a count, a line, or nothing
 *   bench_contend_skb.c     dataref, the shared info, an fclone pair and extensions between CPUs
 *   bench_contend_mem.c     the zone lock, object allocators and page_pool, when one CPU frees what another allocated
 *   bench_contend_list.c    deferred lists with several producers and flushers
 *   bench_contend_sock.c    the socket lock and its backlog
 *   bench_contend_charge.c  charge counters with a batch for each CPU
 *
 * Each case counts its operations exactly in the ledger, where one thread does its share alone: what other CPUs add to
 * that is time, and failed tries of a compare-and-exchange or a lock.
 */
#include "benches/bench_contend.h"

const char *const contend_era_words[] = { "3.4", "6.1", "6.12", NULL };

void *contend_zalloc(size_t bytes, char *err, size_t errlen)
{
	void *p = aligned_alloc(SMP_CACHE_BYTES, ALIGN(bytes, SMP_CACHE_BYTES));

	if (!p)
		snprintf(err, errlen, "no memory for the case");
	else
		memset(p, 0, bytes);
	return p;
}

void contend_roles(struct bench_case *out, unsigned int first, unsigned int nr, const char *name,
		   void (*span)(void *ctx, u64 n))
{
	BUG_ON(first + nr > BENCH_MAX_ROLES);
	for (unsigned int r = first; r < first + nr; r++)
		out->role[r] = (struct bench_role){ name, span };
	out->nr_roles = first + nr;
}

int main(int argc, char **argv)
{
	bench_contend_page();
	bench_contend_skb();
	bench_contend_mem();
	bench_contend_list();
	bench_contend_sock();
	bench_contend_charge();
	return bench_main(argc, argv);
}
