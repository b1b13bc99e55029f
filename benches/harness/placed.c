/* SPDX-License-Identifier: MIT */
#include "benches/harness/placed.h"

#include "skb/obj.h"
#include "skb/page_alloc.h"
#include "skb/skbuff.h"

#include <errno.h>

/* --- looking */

/* The node of a new object of SIZE bytes of NODE. */
static int obj_on(enum mem_kind kind, size_t size, unsigned int node)
{
	bool shell = kind == MEM_SHELLS;
	char *obj = shell ? shell_alloc(size, node) : obj_alloc(size, node);
	int on;

	if (!obj)
		return -ENOMEM;
	*(volatile char *)obj = 0;
	on = node_mem_node(obj);
	if (shell)
		shell_free(obj, size, node);
	else
		obj_free(obj, size, node);
	return on;
}

static void count_range(void *ctx, const void *p, size_t size)
{
	struct bench_placed_object *o = ctx;

	if (!o->err)
		o->err = node_mem_count(p, size, &o->count);
}

static void count_object(enum mem_kind kind, unsigned int home, struct bench_placed_object *out)
{
	int pool = page_alloc_pool_nid((int)home);

	switch (kind) {
	case MEM_SHELLS:
	case MEM_HEADS:
		if (obj_allocator->walk)
			obj_allocator->walk(kind, home, count_range, out);
		else
			out->err = -ENOTSUP;
		break;
	case MEM_PAGES:
		page_alloc_walk(home, count_range, out);
		break;
	case MEM_POOL:
		page_alloc_walk((unsigned int)pool, count_range, out);
		mem_walk(kind, home, count_range, out);
		break;
	default:
		mem_walk(kind, home, count_range, out);
	}
}

static bool is_known(const struct bench_placed *placed, unsigned int home)
{
	for (unsigned int i = 0; i < placed->nr; i++)
		if (placed->of[i].home == home)
			return true;
	return false;
}

void bench_placed_look(const struct bench_session *s, struct bench_placed *out)
{
	out->nr = 0;
	for (unsigned int r = 0; r < s->c.nr_roles; r++) {
		unsigned int home = bench_place_home(&s->place, r);
		struct bench_placed_home *h = &out->of[out->nr];

		if (is_known(out, home))
			continue;
		*h = (struct bench_placed_home){
			.home = home,
			.pages_elsewhere = page_alloc_misplaced(home),
			.shell_on = obj_on(MEM_SHELLS, sizeof(struct sk_buff_shell), home),
			.head_on = obj_on(MEM_HEADS, SKB_SMALL_HEAD_SIZE, home),
		};
		for (unsigned int k = 0; s->place.by_object && k < NR_MEM_KINDS; k++)
			count_object((enum mem_kind)k, home, &h->object[k]);
		out->nr++;
	}
}

/* --- telling */

static void print_told(struct json *j, const char *key, long value)
{
	if (value < 0)
		json_null(j, key);
	else
		json_long(j, key, value);
}

void bench_asked_print(struct json *j, const struct bench_place *place, enum mem_kind object,
		       unsigned int home)
{
	u64 mask = place->mem.nodemask[object][home];
	char asked[32];

	bench_object_text(&place->object[object], asked, sizeof(asked));
	json_str(j, "asked", asked);
	if (!(mask & (mask - 1))) {
		json_long(j, "node", __builtin_ctzll(mask));
		return;
	}
	json_open(j, "node", '[');
	for (; mask; mask &= mask - 1)
		json_long(j, NULL, __builtin_ctzll(mask));
	json_close(j, '[');
}

static void print_object(struct json *j, const struct bench_placed_object *o, u64 nodemask)
{
	long pages = 0, elsewhere = 0;

	for (unsigned int node = 0; node < ARRAY_SIZE(o->count.on); node++) {
		pages += o->count.on[node];
		elsewhere += nodemask >> node & 1 ? 0 : o->count.on[node];
	}
	print_told(j, "pages", o->err ? o->err : pages);
	print_told(j, "elsewhere", o->err ? o->err : elsewhere);
	if (o->err) {
		json_null(j, "on");
		return;
	}
	json_open(j, "on", '{');
	for (unsigned int node = 0; node < ARRAY_SIZE(o->count.on); node++) {
		char key[16];

		snprintf(key, sizeof(key), "%u", node);
		if (o->count.on[node])
			json_long(j, key, o->count.on[node]);
	}
	json_close(j, '{');
}

static void print_objects(struct json *j, const struct bench_place *place,
			  const struct bench_placed_home *h)
{
	json_open(j, "objects", '{');
	for (unsigned int k = 0; k < NR_MEM_KINDS; k++) {
		json_open(j, bench_object_words[k], '{');
		bench_asked_print(j, place, (enum mem_kind)k, h->home);
		print_object(j, &h->object[k], place->mem.nodemask[k][h->home]);
		json_close(j, '{');
	}
	json_close(j, '{');
}

void bench_placed_print(struct json *j, const struct bench_session *s,
			const struct bench_placed *placed)
{
	json_open(j, "placed", '[');
	for (unsigned int i = 0; i < placed->nr; i++) {
		const struct bench_placed_home *h = &placed->of[i];

		json_open(j, NULL, '{');
		json_long(j, "node", s->place.home[h->home]);
		print_told(j, "pages_elsewhere", h->pages_elsewhere);
		print_told(j, "shell_on", h->shell_on);
		print_told(j, "head_on", h->head_on);
		if (s->place.by_object)
			print_objects(j, &s->place, h);
		json_close(j, '{');
	}
	json_close(j, '[');
}
