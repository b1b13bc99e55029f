// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * oracle_host ERA: runs buffer programs on the library. Requests come on standard input, answers go
 * to standard output, each with its length (32 bits) in front. At the end of the input no page may be
 * in use any more: status 1 if one is.
 */
#include "env_lib.h"
#include "budget.h"
#include "interp.h"

#include <stdlib.h>

#define TEXT_ROOM (4u << 20)

enum skb_era o_era;
struct sock *o_sk;

static struct {
	struct oracle_request head;
	struct oracle_op ops[ORACLE_MAX_OPS];
} request;

static int refuse(const char *why)
{
	fprintf(stderr, "oracle_host: %s\n", why);
	return 2;
}

static void answer(const char *text, u32 len)
{
	fwrite(&len, sizeof(len), 1, stdout);
	fwrite(text, 1, len, stdout);
	fflush(stdout);
}

/* NR pages allocated on CPU 0 and freed on CPU 1, as the module does it: times the zone's lock is taken. */
static u32 budget_of_pages(char *text, unsigned int nr)
{
	struct page **page = malloc(nr * sizeof(*page));
	struct zone_stats z[3];

	BUG_ON(!page || skb_cpu_attach(1, 0));
	for (int round = 0; round < 5; round++) {
		BUG_ON(skb_cpu_attach(0, 0));
		zone_stats(0, &z[0]);
		for (unsigned int i = 0; i < nr; i++) {
			page[i] = alloc_pages(0);
			BUG_ON(!page[i]);
		}
		zone_stats(0, &z[1]);
		BUG_ON(skb_cpu_attach(1, 0));
		for (unsigned int i = 0; i < nr; i++)
			put_page(page[i]);
		zone_stats(0, &z[2]);
	}
	BUG_ON(skb_cpu_attach(0, 0));
	free(page);
	return snprintf(text, TEXT_ROOM, "pages,%u\nzone_lock_alloc,%llu\nzone_lock_free,%llu\n",
			nr, (unsigned long long)(z[1].zone_locks - z[0].zone_locks),
			(unsigned long long)(z[2].zone_locks - z[1].zone_locks));
}

int main(int argc, char **argv)
{
	static struct proto_memory prot;
	static struct tx_ring ring;
	static struct sock sock;
	char *text = malloc(TEXT_ROOM);
	int era = argc == 2 ? skb_era_parse(argv[1]) : -1;
	struct zone_stats z;
	u32 len;

	if (era < 0)
		return refuse("usage: oracle_host 3.4|6.1|6.12");
	o_era = era;
	if (!text || obj_init("glibc", 1) || page_alloc_init(1, 8192) || skb_cpu_attach(0, 0) ||
	    tx_ring_init(&ring, 16))
		return refuse("no memory for the model");
	tcp_sock_init(&sock, &prot, &ring, SKB_FRAG_PAGE_ORDER);
	o_sk = &sock;
	while (fread(&len, sizeof(len), 1, stdin) == 1) {
		struct oracle_out out = { .text = text, .room = TEXT_ROOM };

		if (len < sizeof(request.head) || len > sizeof(request) ||
		    fread(&request, 1, len, stdin) != len ||
		    len != sizeof(request.head) + request.head.nr_ops * sizeof(request.ops[0]))
			return refuse("a request of the wrong length");
		if (request.head.flags & ORACLE_BUDGET && request.head.nr_ops == 1) {
			answer(text, budget_of_pages(text, request.ops[0].n[2]));
			continue;
		}
		if (!(request.head.flags & ORACLE_DUMP))
			out.text = NULL;
		if (oracle_run(&request.head, &out))
			return refuse("a program with an operation that the library has not");
		if (!out.text)
			out.len = snprintf(text, TEXT_ROOM, "%016llx", out.hash);
		answer(text, out.len);
	}
	free(text);
	tx_ring_exit(&ring);
	zone_stats(0, &z);
	if (z.nr_pages != z.nr_free + z.nr_pcp) {
		fprintf(stderr, "oracle_host: %zu pages were never given back\n",
			z.nr_pages - z.nr_free - z.nr_pcp);
		return 1;
	}
	return 0;
}
