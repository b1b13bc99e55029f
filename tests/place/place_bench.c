/* SPDX-License-Identifier: MIT */
/*
 * A bench program of one operation that is no measurement: each role makes one of each object as the stack does, and
 * role 0 tells where they are, for somebody else to ask the kernel about.
 *
 *   place/objects  roles
 *
 * The addresses are one JSON object on a line of stderr, written before the first batch ends. The process is held there by
 * whoever answers --skb_control.
 */
#include "benches/harness/bench.h"

#include "skb/node_mem.h"
#include "skb/page_pool.h"
#include "skb/skbuff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_ROLES 8
#define SMALL	  128 /* bytes: a small head */
#define LARGE	  8000
#define SOCKET	  4096 /* as large as the state around one */

struct objects {
	long tid;
	struct sk_buff *skb, *large, *pair;
	struct page *page, *pooled;
	struct page_pool *pool;
	void *socket;
};

struct place_ctx {
	unsigned int roles;
	bool told;
	atomic_t made;
	struct objects of[MAX_ROLES];
};

/* Memory counts as placed when it is touched. */
static void *touched(void *p)
{
	BUG_ON(!p);
	*(volatile char *)p = *(volatile char *)p;
	return p;
}

static void make(struct objects *o)
{
	struct page_pool_params params = { .pool_size = 64, .nid = NUMA_NO_NODE };

	o->tid = syscall(SYS_gettid);
	o->skb = touched(alloc_skb(ERA_6_12, SMALL, NUMA_NO_NODE));
	o->large = touched(alloc_skb(ERA_6_12, LARGE, NUMA_NO_NODE));
	o->pair = touched(alloc_skb_fclone(ERA_6_12, SMALL, NUMA_NO_NODE));
	touched(o->skb->head);
	touched(o->large->head);
	o->page = touched(alloc_pages(0));
	touched(page_address(o->page));
	BUG_ON(page_pool_create(&params, &o->pool));
	page_pool_poll_begin(o->pool);
	o->pooled = touched(page_pool_alloc_pages(o->pool));
	touched(page_address(o->pooled));
	o->socket = touched(mem_zalloc(MEM_SOCKET, numa_node_id(), SOCKET));
}

static void tell(const struct place_ctx *c)
{
	fprintf(stderr, "{\"roles\": [");
	for (unsigned int r = 0; r < c->roles; r++) {
		const struct objects *o = &c->of[r];
		const struct {
			const char *kind;
			const void *p;
		} all[] = { { "shells", o->skb },
			    { "shells", o->large },
			    { "shells", o->pair },
			    { "heads", o->skb->head },
			    { "heads", o->large->head },
			    { "pages", o->page },
			    { "pages", page_address(o->page) },
			    { "pool", o->pool },
			    { "pool", o->pool->ring.queue },
			    { "pool", o->pooled },
			    { "pool", page_address(o->pooled) },
			    { "socket", o->socket } };

		fprintf(stderr, "%s{\"tid\": %ld, \"objects\": [", r ? ", " : "", o->tid);
		for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
			fprintf(stderr, "%s[\"%s\", %llu]", i ? ", " : "", all[i].kind,
				(unsigned long long)(uintptr_t)all[i].p);
		fprintf(stderr, "]}");
	}
	fprintf(stderr, "]}\n");
}

static void span(void *arg, u64 n)
{
	struct place_ctx *c = arg;
	struct objects *o = &c->of[smp_processor_id()];

	(void)n;
	if (!o->tid) {
		/* One after the other: what lies on nodes of its own is made by one thread at a time. */
		bench_wait_until(atomic_read(&c->made, SKB_C_OTHER) == (int)smp_processor_id());
		make(o);
		atomic_inc(&c->made, SKB_C_OTHER);
	}
	if (smp_processor_id() || c->told)
		return;
	bench_wait_until(atomic_read(&c->made, SKB_C_OTHER) == (int)c->roles);
	tell(c);
	c->told = true;
}

static int check(void *arg, char *err, size_t errlen)
{
	struct place_ctx *c = arg;

	if (!c->told || atomic_read(&c->made, SKB_C_OTHER) == (int)c->roles)
		return 0;
	snprintf(err, errlen, "not every role made its objects");
	return -1;
}

static void teardown(void *arg)
{
	struct place_ctx *c = arg;

	for (unsigned int r = 0; r < c->roles; r++) {
		struct objects *o = &c->of[r];

		if (!o->tid)
			continue;
		kfree_skb(ERA_6_12, o->skb);
		kfree_skb(ERA_6_12, o->large);
		kfree_skb(ERA_6_12, o->pair);
		put_page(o->page);
		page_pool_poll_end(o->pool);
		page_pool_put_page(o->pool, o->pooled, false);
		BUG_ON(page_pool_destroy(o->pool));
		mem_free(o->socket);
	}
	free(c);
}

static int prepare(const struct bench_args *args, struct bench_case *out, char *err, size_t errlen)
{
	struct place_ctx *c = calloc(1, sizeof(*c));

	if (!c) {
		snprintf(err, errlen, "no memory for the case");
		return -ENOMEM;
	}
	c->roles = (unsigned int)bench_arg(args, "roles");
	*out = (struct bench_case){
		.ctx = c,
		.nr_roles = c->roles,
		.check = check,
		.teardown = teardown,
	};
	for (unsigned int r = 0; r < c->roles; r++)
		out->role[r] = (struct bench_role){ "role", span };
	return 0;
}

static const struct bench_key keys[] = {
	{ "roles", NULL, 1, MAX_ROLES, "2", "1,2", "threads" },
	{ 0 },
};

static const struct bench_op op = { "place/objects", "one of each object on each role", keys,
				    prepare, NULL };

int main(int argc, char **argv)
{
	bench_register(&op);
	return bench_main(argc, argv);
}
