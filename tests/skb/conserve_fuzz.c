/* SPDX-License-Identifier: MIT */
/*
 * Random programs of sk_buff operations, with allocations that fail at random, and after every
 * operation the whole state added up:
 *
 *   R1  a page's count is what its allocator holds + once for every live shared info that names
 *       it + its head_frag heads
 *   R3  dataref's halves are the sk_buffs on a head, and those of them that are nohdr
 *   R4  fclone_ref is the number of the pair's sk_buffs that live
 *   R5  a ubuf_info's refcnt is the number of shared infos that name it, and its user is told
 *       once, after the last
 *   an extension object's refcnt is the number of sk_buffs that point to it, and each of them
 *   finds in it what was last written through it or through the one that it was cloned from
 *   R6  a page_pool's pages are at rest in it with both counts 1, or in use, and then its two kinds
 *       of references are those that name the page; hold minus release is how many there are
 *   users is the holds of the test and of the frag_lists that an sk_buff is in
 *   B   every byte is where a plain copy of it says
 *   objects and pages out are those that can be reached, neither more nor fewer
 *
 * SKB_SEED replays a run, SKB_OPS sets the number of operations.
 */
#include "skb/page_frag.h"
#include "skb/skb_check.h"
#include "skb/skb_ext.h"
#include "skb/skb_zcopy.h"
#include "tests/support/model.h"

#include <string.h>

#define MAX_LIVE   24
#define MAX_BYTES  32768
#define NR_PAGES   4096
#define MAX_SHELLS 256
#define STOCK	   4
#define MAX_UARGS  64

struct live {
	struct sk_buff *skb;
	int holds;
	u32 len;
	u8 *bytes; /* what SKB must hold */
	u32 ext[SKB_EXT_NUM]; /* first word of each extension, 0: it has none */
};

static struct rng rng;
static enum skb_era era;
static u64 op_nr;
static u64 coalesced[3]; /* by copy, by frags, by head and frags */
static const char *op_name;

static struct live live[MAX_LIVE];
static int nr_live;
static struct page *stock[STOCK]; /* blocks that several frags share; the test's reference each */
static struct page_frag pfrag;
static struct page_frag_cache frag_cache;
static struct page_pool *pools[2]; /* of pages, and of larger blocks; 6.1 and later */
/* In use while refcnt is not 0; `found` is what can be reached now. */
static struct zc {
	struct ubuf_info_msgzc ubuf;
	int found;
	bool in_use;
} zc[MAX_UARGS];

__attribute__((format(printf, 1, 2), noreturn)) static void broken(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "era %s, operation %llu (%s): ", skb_era_name(era),
		(unsigned long long)op_nr, op_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/*
 * --- adding it all up
 * ---------------------------------------------------------------------------------------
 */

static struct {
	const struct sk_buff *shell[MAX_SHELLS];
	int holds[MAX_SHELLS];
	int nr;
	const unsigned char *head[MAX_SHELLS];
	int shares[MAX_SHELLS], nohdr[MAX_SHELLS];
	int nr_heads;
	const struct skb_ext *ext[MAX_SHELLS];
	int ext_shares[MAX_SHELLS];
	int nr_exts;
	int refs[NR_PAGES];
	struct page *page[NR_PAGES];
	int nr_pages;
	size_t objects;
} sum;

static void sum_page(struct page *page, int n)
{
	struct page *head = compound_head(page);
	int *refs = &sum.refs[head - mem_map];

	if (!*refs)
		sum.page[sum.nr_pages++] = head;
	*refs += n;
}

static void sum_shell(const struct sk_buff *skb, int holds);

static void sum_uarg(const struct ubuf_info *uarg)
{
	struct zc *z = container_of(uarg, struct zc, ubuf.ubuf);

	if (z < zc || z >= zc + MAX_UARGS || !z->in_use)
		broken("a shared info names a ubuf_info that is over");
	z->found++;
}

static void check_uargs(void)
{
	for (struct zc *z = zc; z < zc + MAX_UARGS; z++)
		if (z->in_use && z->ubuf.ubuf.refcnt.refs.counter != z->found)
			broken("a ubuf_info has %d references, %d shared infos name it",
			       z->ubuf.ubuf.refcnt.refs.counter, z->found);
}

static void zc_notify(struct ubuf_info_msgzc *uarg)
{
	struct zc *z = container_of(uarg, struct zc, ubuf);

	if (!z->in_use)
		broken("a user was told twice");
	z->in_use = false;
}

static void sum_head(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	int h = 0;

	while (h < sum.nr_heads && sum.head[h] != skb->head)
		h++;
	if (h == sum.nr_heads) {
		sum.nr_heads++;
		sum.head[h] = skb->head;
		sum.shares[h] = sum.nohdr[h] = 0;
		/* Managed frags hold no reference. */
		for (int i = 0; i < shinfo->nr_frags; i++)
			if (!skb_zcopy_managed(skb))
				sum_page(shinfo->frags[i].page, 1);
		if (skb_zcopy(skb))
			sum_uarg(skb_zcopy(skb));
		if (skb->head_frag)
			sum_page(virt_to_page(skb->head), 1);
		else
			sum.objects++;
		for (const struct sk_buff *s = shinfo->frag_list; s; s = s->next)
			sum_shell(s, 1);
	}
	sum.shares[h]++;
	sum.nohdr[h] += skb->nohdr;
}

static void sum_ext(const struct sk_buff *skb)
{
	int e = 0;

	if (!skb->active_extensions)
		return;
	while (e < sum.nr_exts && sum.ext[e] != skb->extensions)
		e++;
	if (e == sum.nr_exts) {
		sum.nr_exts++;
		sum.ext[e] = skb->extensions;
		sum.ext_shares[e] = 0;
		sum.objects++;
	}
	sum.ext_shares[e]++;
}

static void check_exts(void)
{
	for (int e = 0; e < sum.nr_exts; e++)
		if (sum.ext[e]->refcnt.refs.counter != sum.ext_shares[e])
			broken("extensions have %d references, %d sk_buffs point to them",
			       sum.ext[e]->refcnt.refs.counter, sum.ext_shares[e]);
}

/* One sk_buff, with HOLDS holders more. */
static void sum_shell(const struct sk_buff *skb, int holds)
{
	for (int i = 0; i < sum.nr; i++)
		if (sum.shell[i] == skb) {
			sum.holds[i] += holds;
			return;
		}
	if (sum.nr == MAX_SHELLS)
		broken("more than %d sk_buffs", MAX_SHELLS);
	sum.shell[sum.nr] = skb;
	sum.holds[sum.nr++] = holds;
	sum_ext(skb);
	sum_head(skb);
}

static void check_shells(void)
{
	char err[200];

	for (int i = 0; i < sum.nr; i++) {
		const struct sk_buff *skb = sum.shell[i];
		int pair = 0;

		if (skb_check(skb, err, sizeof(err)))
			broken("%s", err);
		if (skb->users.refs.counter != sum.holds[i])
			broken("users is %d, %d hold it", skb->users.refs.counter, sum.holds[i]);
		if (skb->fclone == SKB_FCLONE_UNAVAILABLE) {
			sum.objects++;
			continue;
		}
		for (int k = 0; k < sum.nr; k++)
			if (sum.shell[k]->fclone != SKB_FCLONE_UNAVAILABLE &&
			    skb_fclones(sum.shell[k]) == skb_fclones(skb)) {
				pair++;
				if (k < i)
					pair += 100; /* the other one was here before */
			}
		if (pair % 100 != skb_fclones(skb)->fclone_ref.refs.counter)
			broken("fclone_ref is %d, %d of the pair live",
			       skb_fclones(skb)->fclone_ref.refs.counter, pair % 100);
		sum.objects += pair < 100;
	}
}

static void check_heads(void)
{
	for (int h = 0; h < sum.nr_heads; h++)
		for (int i = 0; i < sum.nr; i++) {
			const struct sk_buff *skb = sum.shell[i];
			int want = sum.shares[h] + (sum.nohdr[h] << SKB_DATAREF_SHIFT);

			if (skb->head != sum.head[h])
				continue;
			if (skb_shinfo(skb)->dataref.counter != want)
				broken("dataref is %#x, should be %#x",
				       skb_shinfo(skb)->dataref.counter, want);
			break;
		}
}

/* What rests in a pool; its pages. */
static size_t check_at_rest(const struct page *page, const struct page_pool *pool)
{
	if (!is_pp_page(page) || page->pp != pool || page_count(page) != 1 ||
	    page->pp_ref_count.counter != 1)
		broken("page %td at rest has %d references, %ld of its pool's", page - mem_map,
		       page_count(page), page->pp_ref_count.counter);
	if (sum.refs[page - mem_map])
		broken("page %td is at rest and in use", page - mem_map);
	return 1UL << compound_order(page);
}

/* The blocks of POOL at rest, and how many they are in *NR. */
static size_t check_pool(const struct page_pool *pool, int *nr)
{
	const struct ptr_ring *r = &pool->ring;
	int in_ring = (r->producer - r->consumer_head + r->size) % r->size;
	size_t pages = 0;

	if (!in_ring && !__ptr_ring_empty(r))
		in_ring = r->size;
	for (unsigned int i = 0; i < pool->alloc.count; i++)
		pages += check_at_rest(pool->alloc.cache[i], pool);
	for (int i = 0; i < in_ring; i++)
		pages += check_at_rest(r->queue[(r->consumer_head + i) % r->size], pool);
	*nr = (int)pool->alloc.count + in_ring;
	return pages;
}

/* References on HEAD, of both kinds, that are somebody's and not its pool's own. */
static long page_refs(const struct page *head, int in_use[2])
{
	const struct page_pool *pool;

	if (!is_pp_page(head))
		return page_count(head);
	pool = head->pp;
	in_use[pool == pools[1]]++;
	if (head == pool->frag_page)
		return page_count(head) - 1 + head->pp_ref_count.counter -
		       (PP_BIAS_MAX - pool->frag_users);
	return page_count(head) - 1 + head->pp_ref_count.counter;
}

static void check_pages(void)
{
	int in_use[2] = { 0 };
	size_t pages = 0;

	for (int i = 0; i < sum.nr_pages; i++) {
		struct page *head = sum.page[i];
		int *refs = &sum.refs[head - mem_map];

		if (page_refs(head, in_use) != *refs)
			broken("page %td has %ld references, %d can be reached", head - mem_map,
			       page_refs(head, in_use), *refs);
		pages += 1UL << compound_order(head);
		*refs = 0;
	}
	for (int i = 0; i < 2; i++) {
		int at_rest, in_hand = 0;

		if (!pools[i])
			continue;
		pages += check_pool(pools[i], &at_rest);
		/* The block that is being cut up, where nobody has a part of it. */
		if (pools[i]->frag_page &&
		    pools[i]->frag_page->pp_ref_count.counter ==
			    PP_BIAS_MAX - pools[i]->frag_users &&
		    page_count(pools[i]->frag_page) == 1) {
			in_hand = 1;
			pages += 1UL << compound_order(pools[i]->frag_page);
		}
		if (page_pool_inflight(pools[i]) != at_rest + in_use[i] + in_hand)
			broken("a pool has %d pages in flight, %d at rest, %d in use",
			       page_pool_inflight(pools[i]), at_rest, in_use[i] + in_hand);
	}
	if (pages != model_pages_in_use())
		broken("%zu pages are out, %zu can be reached", model_pages_in_use(), pages);
}

static void check_bytes(const struct live *l)
{
	static u8 now[MAX_BYTES];

	if (l->skb->len != l->len)
		broken("len is %u, should be %u", l->skb->len, l->len);
	skb_copy_bits(l->skb, 0, now, l->len);
	for (u32 i = 0; i < l->len; i++)
		if (now[i] != l->bytes[i])
			broken("byte %u of %u is %#x, should be %#x", i, l->len, now[i],
			       l->bytes[i]);
}

static void check_ext(const struct live *l)
{
	for (int id = 0; id < SKB_EXT_NUM; id++) {
		const u32 *p = skb_ext_find(l->skb, id);

		if ((p ? *p : 0) != l->ext[id])
			broken("extension %d holds %#x, should hold %#x", id, p ? *p : 0,
			       l->ext[id]);
	}
}

static void check_all(bool all_bytes)
{
	sum.nr = sum.nr_heads = sum.nr_exts = sum.nr_pages = 0;
	sum.objects = 0;
	for (int i = 0; i < MAX_UARGS; i++)
		zc[i].found = 0;
	for (int i = 0; i < STOCK; i++)
		sum_page(stock[i], 1);
	if (pfrag.page)
		sum_page(pfrag.page, 1);
	if (frag_cache.va)
		sum_page(virt_to_page(frag_cache.va), frag_cache.pagecnt_bias);
	for (int i = 0; i < nr_live; i++)
		sum_shell(live[i].skb, live[i].holds);
	check_shells();
	check_heads();
	check_pages();
	check_exts();
	check_uargs();
#ifdef SKB_TRACED
	if (counted.event[SKB_EV_OBJ_ALLOC] - counted.event[SKB_EV_OBJ_FREE] != sum.objects)
		broken("%llu objects are out, %zu can be reached",
		       (unsigned long long)(counted.event[SKB_EV_OBJ_ALLOC] -
					    counted.event[SKB_EV_OBJ_FREE]),
		       sum.objects);
#endif
	for (int i = 0; i < nr_live; i++) {
		check_ext(&live[i]);
		if (all_bytes || rng_below(&rng, 8) == 0)
			check_bytes(&live[i]);
	}
}

/*
 * --- operations
 * ---------------------------------------------------------------------------------------------
 */

static struct live *pick(void)
{
	return nr_live ? &live[rng_below(&rng, nr_live)] : NULL;
}

static bool room(void)
{
	return nr_live < MAX_LIVE;
}

/* Takes SKB over, holding the bytes of LIKE (NULL: none). */
static struct live *add(struct sk_buff *skb, const struct live *like)
{
	struct live *l = &live[nr_live++];

	l->skb = skb;
	l->holds = 1;
	l->len = like ? like->len : 0;
	memset(l->ext, 0, sizeof(l->ext));
	if (like) {
		memcpy(l->bytes, like->bytes, like->len);
		memcpy(l->ext, like->ext, sizeof(l->ext));
	}
	return l;
}

static void forget(struct live *l)
{
	u8 *bytes = l->bytes;

	*l = live[--nr_live];
	live[nr_live].bytes = bytes;
}

/* Nobody but L holds it or shares its head: what an operation that changes bytes needs. */
static bool sole(const struct live *l)
{
	return l->holds == 1 && !skb_cloned(l->skb);
}

static void op_alloc(void)
{
	u32 size = rng_below(&rng, 3) ? rng_below(&rng, 400) : rng_below(&rng, 9000);
	struct sk_buff *skb;

	if (!room())
		return;
	skb = rng_below(&rng, 2) ? alloc_skb_fclone(era, size, NUMA_NO_NODE)
				 : alloc_skb(era, size, NUMA_NO_NODE);
	if (!skb)
		return;
	skb_reserve(skb, rng_below(&rng, size + 1));
	add(skb, NULL);
}

/* A head in a fragment of a pool's block, which gives whole cache lines only, as drivers ask for. */
static void build_in_pool(struct page_pool *pool, u32 size)
{
	unsigned int off;
	struct page *page = page_pool_alloc_frag(pool, &off, size);
	struct sk_buff *skb;

	if (!page)
		return;
	skb = build_skb(era, (char *)page_address(page) + off, size);
	if (!skb) {
		page_pool_put_page(pool, page, rng_below(&rng, 2)); /* still ours */
		return;
	}
	skb_mark_for_recycle(skb);
	add(skb, NULL);
}

/* The pools are polled, or not: what comes back goes to the cache or the ring. */
static void op_poll(void)
{
	for (int i = 0; i < 2 && pools[i]; i++)
		if (rng_below(&rng, 2))
			page_pool_poll_begin(pools[i]);
		else
			page_pool_poll_end(pools[i]);
}

static void op_build(void)
{
	u32 size = SKB_SHINFO_SIZE + 64 * (1 + rng_below(&rng, 20));
	struct sk_buff *skb;
	void *data;

	if (!room())
		return;
	if (pools[0] && rng_below(&rng, 3) == 0) {
		build_in_pool(pools[rng_below(&rng, 2)], size);
		return;
	}
	data = page_frag_alloc_align(&frag_cache, size, 64);
	if (!data)
		return;
	skb = build_skb(era, data, size);
	if (!skb) {
		page_frag_free(data); /* still ours */
		return;
	}
	add(skb, NULL);
}

static void op_put(void)
{
	struct live *l = pick();
	u32 n;
	u8 *p;

	if (!l || !sole(l) || !skb_tailroom(l->skb))
		return;
	n = 1 + rng_below(&rng, min(skb_tailroom(l->skb), 600u));
	if (l->len + n > MAX_BYTES)
		return;
	p = skb_put(l->skb, n);
	for (u32 i = 0; i < n; i++)
		l->bytes[l->len + i] = p[i] = rng_next(&rng);
	l->len += n;
}

static void op_pull(void)
{
	struct live *l = pick();
	u32 n;

	if (!l || l->holds != 1 || !skb_headlen(l->skb))
		return;
	n = rng_below(&rng, skb_headlen(l->skb) + 1);
	__skb_pull(l->skb, n);
	l->len -= n;
	memmove(l->bytes, l->bytes + n, l->len);
}

static void op_frag(void)
{
	struct live *l = pick();
	u32 off = rng_below(&rng, 2000), n = 1 + rng_below(&rng, 1500);
	struct page *page;
	bool may_recycle;
	u8 *p;

	if (!l || !sole(l) || l->len + n > MAX_BYTES || skb_shinfo(l->skb)->frag_list ||
	    skb_zcopy(l->skb) || /* the user's pages only */
	    skb_shinfo(l->skb)->nr_frags == MAX_SKB_FRAGS)
		return;
	/* One with frags may hold a pool's pages as anybody does: it is not to be marked any more. */
	may_recycle = pools[0] && (l->skb->pp_recycle || !skb_shinfo(l->skb)->nr_frags);
	switch (rng_below(&rng, may_recycle ? 4 : 3)) {
	case 3: /* of a pool, all of a block or a part */
		page = rng_below(&rng, 2) ? page_pool_alloc_pages(pools[rng_below(&rng, 2)])
					  : page_pool_alloc_frag(pools[0], &off, (n + 63) & ~63u);
		if (!page)
			return;
		skb_mark_for_recycle(l->skb);
		p = (u8 *)page_address(page) + off;
		for (u32 i = 0; i < n; i++)
			p[i] = rng_next(&rng);
		break;
	case 0: /* a page of its own */
		page = alloc_pages(0);
		if (!page)
			return;
		p = (u8 *)page_address(page) + off;
		for (u32 i = 0; i < n; i++)
			p[i] = rng_next(&rng);
		break;
	case 1: /* of a block that others use, maybe through a tail page */
		page = stock[rng_below(&rng, STOCK)];
		page += rng_below(&rng, 1 << compound_order(page));
		get_page(page);
		p = (u8 *)page_address(page) + off;
		break;
	default:
		if (!skb_page_frag_refill(n, &pfrag, rng_below(&rng, 2) ? SKB_FRAG_PAGE_ORDER : 0,
					  NUMA_NO_NODE))
			return;
		page = pfrag.page;
		off = pfrag.offset;
		page_ref_inc(page);
		pfrag.offset += n;
		p = (u8 *)page_address(page) + off;
		for (u32 i = 0; i < n; i++)
			p[i] = rng_next(&rng);
	}
	memcpy(l->bytes + l->len, p, n);
	l->len += n;
	skb_add_rx_frag(l->skb, skb_shinfo(l->skb)->nr_frags, page, off, n, n);
}

static void op_header_release(void)
{
	struct live *l = pick();

	if (l && sole(l) && !l->skb->cloned && !l->skb->nohdr)
		__skb_header_release(l->skb);
}

static void op_clone(void)
{
	struct live *l = pick();
	struct sk_buff *n;

	if (!l || !room())
		return;
	n = skb_clone(era, l->skb);
	if (n)
		add(n, l);
}

static void op_copy(void)
{
	struct live *l = pick();
	struct sk_buff *n;

	if (!l || !room())
		return;
	n = pskb_copy(era, l->skb);
	if (n)
		add(n, l);
}

static void op_expand(void)
{
	struct live *l = pick();
	int nhead = rng_below(&rng, 2) ? 0 : rng_below(&rng, 500);
	int ntail = rng_below(&rng, 2) ? 0 : rng_below(&rng, 2000);
	unsigned int headroom;

	if (!l || l->holds != 1)
		return;
	headroom = skb_headroom(l->skb);
	if (pskb_expand_head(era, l->skb, nhead, ntail))
		return;
	if (skb_headroom(l->skb) != headroom + nhead)
		broken("headroom %u, should be %u", skb_headroom(l->skb), headroom + nhead);
	if (l->skb->cloned || l->skb->nohdr)
		broken("not private after an expansion");
}

static void op_unclone(void)
{
	struct live *l = pick();
	unsigned int truesize, end;

	if (!l || l->holds != 1)
		return;
	truesize = l->skb->truesize;
	end = skb_end_offset(l->skb);
	if (rng_below(&rng, 2)) {
		if (!skb_unclone(era, l->skb) && skb_cloned(l->skb))
			broken("still shared");
		return;
	}
	if (!skb_unclone_keeptruesize(era, l->skb) && skb_cloned(l->skb))
		broken("still shared");
	if (l->skb->truesize != truesize || skb_end_offset(l->skb) != end)
		broken("truesize %u, end %u, were %u and %u", l->skb->truesize,
		       skb_end_offset(l->skb), truesize, end);
}

static void op_split(void)
{
	struct live *l = pick(), *m;
	struct sk_buff *rest;
	u32 cut;

	if (!l || !room() || l->holds != 1 || skb_shinfo(l->skb)->frag_list ||
	    skb_unclone(era, l->skb))
		return;
	rest = alloc_skb(era, skb_headlen(l->skb), NUMA_NO_NODE);
	if (!rest)
		return;
	cut = rng_below(&rng, l->len + 1);
	rest->pp_recycle = l->skb->pp_recycle;
	skb_split(l->skb, rest, cut);
	m = add(rest, NULL);
	m->len = l->len - cut;
	memcpy(m->bytes, l->bytes + cut, m->len);
	l->len = cut;
}

/* The first bytes of one, all in frags, to the end of another. */
static void op_shift(void)
{
	struct live *to = pick(), *from = pick();
	unsigned int sum_len, sum_truesize;
	int n;

	if (!to || to == from || to->holds != 1 || from->holds != 1 ||
	    skb_shinfo(to->skb)->frag_list || skb_shinfo(from->skb)->frag_list ||
	    to->skb->pp_recycle != from->skb->pp_recycle)
		return;
	n = rng_below(&rng, from->len + 1);
	if (to->len + n > MAX_BYTES)
		return;
	/* Of one page, and next to each other, as often as not. */
	sum_len = to->len + from->len;
	sum_truesize = to->skb->truesize + from->skb->truesize;
	if (era < ERA_6_1 && (skb_cloned(to->skb) || skb_cloned(from->skb)))
		sum_truesize = 0; /* 3.4 unclones to whatever the bucket holds */
	/* The eras' own takes a reference of the wrong kind on a pool's page. */
	n = to->skb->pp_recycle ? skb_shift_mirrored(to->skb, from->skb, n)
				: skb_shift(era, to->skb, from->skb, n);
	memcpy(to->bytes + to->len, from->bytes, n);
	to->len += n;
	from->len -= n;
	memmove(from->bytes, from->bytes + n, from->len);
	if (to->skb->len + from->skb->len != sum_len ||
	    (sum_truesize && to->skb->truesize + from->skb->truesize != sum_truesize))
		broken("a shift changed the sum of lengths or truesizes");
}

/* All of one to the end of another, if they let it. */
static void op_coalesce(void)
{
	struct live *to = pick(), *from = pick();
	unsigned int truesize;
	bool stolen;
	int delta;

	if (!to || to == from || to->holds != 1 || from->holds != 1 ||
	    to->len + from->len > MAX_BYTES)
		return;
	truesize = to->skb->truesize;
	if (!skb_try_coalesce(era, to->skb, from->skb, &stolen, &delta)) {
		if (to->skb->truesize != truesize)
			broken("truesize changed, and nothing was merged");
		return;
	}
	if (to->skb->truesize != truesize + delta)
		broken("truesize grew by %u, not by %d", to->skb->truesize - truesize, delta);
	kfree_skb_partial(era, from->skb, stolen);
	memcpy(to->bytes + to->len, from->bytes, from->len);
	to->len += from->len;
	coalesced[stolen ? 2 : to->skb->truesize != truesize]++;
	forget(from);
}

static void op_trim(void)
{
	struct live *l = pick();
	u32 len;

	if (!l || l->holds != 1)
		return;
	len = rng_below(&rng, 4) ? rng_below(&rng, l->len + 1) : l->len + rng_below(&rng, 3);
	if (!pskb_trim(era, l->skb, len))
		l->len = min(l->len, len);
}

static void op_pull_tail(void)
{
	struct live *l = pick();
	u32 delta;

	if (!l || l->holds != 1 || !l->skb->data_len)
		return;
	if (rng_below(&rng, 4) == 0) {
		if (!skb_linearize(era, l->skb) && l->skb->data_len)
			broken("%u bytes are not linear", l->skb->data_len);
		return;
	}
	delta = 1 + rng_below(&rng, l->skb->data_len);
	if (rng_below(&rng, 2)) {
		__pskb_pull_tail(era, l->skb, delta);
	} else if (pskb_pull(era, l->skb, min(delta, 500u))) {
		l->len -= min(delta, 500u);
		memmove(l->bytes, l->bytes + min(delta, 500u), l->len);
	}
}

static void op_condense(void)
{
	struct live *l = pick();

	if (l && l->holds == 1)
		skb_condense(era, l->skb);
}

static void op_full_copy(void)
{
	struct live *l = pick();
	struct sk_buff *n;

	if (!l || !room())
		return;
	n = skb_copy(era, l->skb);
	if (n)
		add(n, l);
}

/* L's sk_buff is N from now on, or nothing is left of it. */
static void replace(struct live *l, struct sk_buff *n)
{
	if (l->holds > 1) {
		l->holds--;
		if (n)
			add(n, l);
	} else if (n) {
		l->skb = n;
	} else {
		forget(l);
	}
}

static void op_own(void)
{
	struct live *l = pick();
	struct sk_buff *n;

	if (!l || (l->holds > 1 && !room()))
		return;
	if (rng_below(&rng, 2)) {
		n = skb_share_check(era, l->skb);
		if (n && n->users.refs.counter != 1)
			broken("shared after a share check");
	} else if (skb_cloned(l->skb)) {
		n = skb_unshare(era, l->skb);
		if (n && skb_cloned(n))
			broken("shared after an unshare");
	} else {
		return;
	}
	if (n != l->skb)
		replace(l, n);
}

static void op_morph(void)
{
	struct live *dst = pick(), *src = pick();

	if (!dst || dst == src || dst->holds != 1 ||
	    skb_orphan_frags(era, src->skb)) /* as skb_clone() would */
		return;
	skb_morph(era, dst->skb, src->skb);
	dst->len = src->len;
	memcpy(dst->bytes, src->bytes, src->len);
	memcpy(dst->ext, src->ext, sizeof(dst->ext));
}

/* Writes an extension, which the sk_buffs that share it must not see, or takes one away. */
static void op_ext(void)
{
	enum skb_ext_id id = rng_below(&rng, SKB_EXT_NUM);
	struct live *l = pick();
	u32 *p;

	if (!l)
		return;
	if (rng_below(&rng, 3) == 0) {
		skb_ext_del(l->skb, id);
		l->ext[id] = 0;
		return;
	}
	p = skb_ext_add(l->skb, id);
	if (p)
		*p = l->ext[id] = 1 + rng_below(&rng, 1 << 30);
}

/* A user's pages: the stock's, whose references are the test's; some managed. */
static void op_zcopy(void)
{
	struct live *l = pick();
	struct zc *z = &zc[rng_below(&rng, MAX_UARGS)];
	bool share = rng_below(&rng, 2);

	if (!l || !sole(l) || z->in_use || skb_zcopy(l->skb))
		return;
	if (rng_below(&rng, 4) == 0 && era >= ERA_6_1 && !skb_shinfo(l->skb)->nr_frags &&
	    !skb_shinfo(l->skb)->frag_list && l->len + 600 < MAX_BYTES) {
		z->in_use = true;
		msg_zerocopy_init(&z->ubuf, SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN, zc_notify);
		skb_zcopy_set(l->skb, &z->ubuf.ubuf);
		skb_shinfo(l->skb)->flags |= SKBFL_MANAGED_FRAG_REFS;
		for (int i = 0; i < 3; i++) {
			skb_add_rx_frag(l->skb, i, stock[i], 100 * i, 200, 200);
			memcpy(l->bytes + l->len, (char *)page_address(stock[i]) + 100 * i, 200);
			l->len += 200;
		}
	} else {
		z->in_use = true;
		msg_zerocopy_init(&z->ubuf,
				  share ? SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN
					: SKBFL_ZEROCOPY_FRAG,
				  zc_notify);
		skb_zcopy_set(l->skb, &z->ubuf.ubuf);
	}
	net_zcopy_put(&z->ubuf.ubuf); /* the sender's */
}

static void op_copy_ubufs(void)
{
	struct live *l = pick();

	if (!l || l->holds != 1 || !skb_zcopy(l->skb))
		return;
	if (!skb_copy_ubufs(era, l->skb) && skb_zcopy(l->skb))
		broken("a ubuf_info is left after its pages were copied");
}

/* One to three others become members of a frag_list. */
static void op_frag_list(void)
{
	struct live *l = pick();
	struct sk_buff *parent, **tail;

	if (!l || !sole(l) || skb_shinfo(l->skb)->frag_list)
		return;
	parent = l->skb;
	tail = &skb_shinfo(parent)->frag_list;
	for (int want = 1 + rng_below(&rng, 3), tries = 0; want && tries < 8; tries++) {
		struct live *m = pick(), *p;

		for (p = live; p->skb != parent; p++)
			;
		if (m == p || m->holds != 1 || skb_shinfo(m->skb)->frag_list ||
		    p->len + m->len > MAX_BYTES)
			continue;
		memcpy(p->bytes + p->len, m->bytes, m->len);
		p->len += m->len;
		parent->len += m->len;
		parent->data_len += m->len;
		parent->truesize += m->skb->truesize;
		m->skb->next = NULL;
		*tail = m->skb;
		tail = &m->skb->next;
		forget(m);
		want--;
	}
}

static void op_get(void)
{
	struct live *l = pick();

	if (l && l->holds < 3) {
		skb_get(l->skb);
		l->holds++;
	}
}

static void op_free(void)
{
	struct live *l = pick();

	if (!l)
		return;
	kfree_skb(era, l->skb);
	if (--l->holds == 0)
		forget(l);
}

static const struct {
	const char *name;
	void (*fn)(void);
	int weight;
} ops[] = {
	{ "alloc", op_alloc, 10 },
	{ "build", op_build, 4 },
	{ "put", op_put, 10 },
	{ "pull", op_pull, 4 },
	{ "frag", op_frag, 24 },
	{ "header_release", op_header_release, 4 },
	{ "clone", op_clone, 12 },
	{ "copy", op_copy, 5 },
	{ "expand", op_expand, 10 },
	{ "unclone", op_unclone, 8 },
	{ "split", op_split, 5 },
	{ "frag_list", op_frag_list, 3 },
	{ "get", op_get, 3 },
	{ "free", op_free, 26 },
	{ "shift", op_shift, 8 },
	{ "coalesce", op_coalesce, 8 },
	{ "poll", op_poll, 3 },
	{ "trim", op_trim, 5 },
	{ "pull_tail", op_pull_tail, 5 },
	{ "condense", op_condense, 3 },
	{ "full_copy", op_full_copy, 2 },
	{ "own", op_own, 5 },
	{ "morph", op_morph, 3 },
	{ "zcopy", op_zcopy, 5 },
	{ "copy_ubufs", op_copy_ubufs, 2 },
	{ "ext", op_ext, 5 },
};

static void one_op(void)
{
	int total = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		total += ops[i].weight;
	at = rng_below(&rng, total);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		at -= ops[i].weight;
		if (at < 0) {
			op_name = ops[i].name;
			ops[i].fn();
			return;
		}
	}
}

#ifdef SKB_TRACED
static struct rng fail_rng;
static u64 failed[SKB_SITE_NR];

/*
 * One allocation in 16 fails, from numbers of its own, so that the program is the same with and
 * without.
 */
static bool fail_some(enum skb_site site)
{
	if (rng_below(&fail_rng, 16))
		return false;
	failed[site]++;
	return true;
}
#endif

static void drain(void)
{
	while (nr_live) {
		struct live *l = &live[nr_live - 1];

		while (l->holds--)
			kfree_skb(era, l->skb);
		forget(l);
	}
	if (pfrag.page)
		put_page(pfrag.page);
	pfrag.page = NULL;
	for (int i = 0; i < 2 && pools[i]; i++) {
		if (page_pool_destroy(pools[i]))
			broken("pages of a pool never came back");
		pools[i] = NULL;
	}
	page_frag_cache_drain(&frag_cache);
	memset(&frag_cache, 0, sizeof(frag_cache));
}

int main(void)
{
	u64 ops_per_era = model_ops(1000000) / SKB_ERA_NR;

	rng.state = model_seed("conserve_fuzz", 20120401);
	model_start(MODEL_ALLOCATOR, NR_PAGES);
	for (int i = 0; i < MAX_LIVE; i++)
		live[i].bytes = malloc(MAX_BYTES);
	for (int i = 0; i < STOCK; i++) {
		stock[i] = alloc_pages(i % 2 ? SKB_FRAG_PAGE_ORDER : 0);
		memset(page_address(stock[i]), 'A' + i, PAGE_SIZE << compound_order(stock[i]));
	}
#ifdef SKB_TRACED
	fail_rng.state = ~rng.state;
	counts_start();
	model_fail = fail_some;
#endif
	for (era = ERA_3_4; era < SKB_ERA_NR; era++) {
		for (unsigned int i = 0; era >= ERA_6_1 && i < 2; i++) {
			struct page_pool_params p = { .order = i, .pool_size = 64 };

			if (page_pool_create(&p, &pools[i]))
				broken("no pool");
			page_pool_poll_begin(pools[i]);
		}
		for (op_nr = 0; op_nr < ops_per_era; op_nr++) {
			one_op();
			check_all(op_nr % 64 == 0);
		}
		op_name = "drain";
		drain();
		check_all(true);
		for (int i = 0; i < MAX_UARGS; i++)
			if (zc[i].in_use)
				broken("the user of a ubuf_info was never told");
	}
	for (int i = 0; i < STOCK; i++)
		put_page(stock[i]);
	if (model_pages_in_use())
		broken("%zu pages are lost", model_pages_in_use());
	for (int i = 0; i < MAX_LIVE; i++)
		free(live[i].bytes);
	for (int i = 0; i < 3; i++)
		if (!coalesced[i] && ops_per_era > 10000)
			broken("no sk_buffs were ever merged in way %d", i);
#ifdef SKB_TRACED
	for (int i = 0; i < SKB_SITE_NR; i++)
		if (!failed[i] && ops_per_era > 10000)
			broken("no allocation of kind %d ever failed", i);
	printf("failures injected: shell %llu, fclone %llu, head %llu, extensions %llu, page %llu, "
	       "block %llu\n",
	       (unsigned long long)failed[SKB_SITE_SHELL],
	       (unsigned long long)failed[SKB_SITE_FCLONE],
	       (unsigned long long)failed[SKB_SITE_HEAD], (unsigned long long)failed[SKB_SITE_EXT],
	       (unsigned long long)failed[SKB_SITE_PAGE],
	       (unsigned long long)failed[SKB_SITE_PAGE_HIGH]);
#endif
	printf("%llu operations in each of %d eras: everything adds up\n",
	       (unsigned long long)ops_per_era, SKB_ERA_NR);
	return 0;
}
