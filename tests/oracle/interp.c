// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The interpreter of buffer programs.
 *
 * It calls the API and reads fields, and decides nothing that the two sides could see differently:
 * what an operation may do depends only on state that is compared. Names of pages and heads are the
 * order in which a program got them, never addresses.
 *
 * Every block of pages is held once more by the interpreter until the program ends, so that counts
 * can be read after the last put of an operation, and a block never comes back under a second name.
 */
#include "interp_in.h"

#define OP_NAME(name, form) #name,
#define OP_FORM(name, form) form,
static const char *const op_names[] = { ORACLE_OPS(OP_NAME) };
static const char *const op_forms[] = { ORACLE_OPS(OP_FORM) };

struct block {
	struct page *page; /* the head */
	unsigned int order;
	bool held;
};

static struct {
	struct sk_buff *skb[ORACLE_SKBS];
	int page[ORACLE_PAGES]; /* index into blocks, or -1 */
	struct block blocks[ORACLE_BLOCKS];
	int nr_blocks;
	struct page_frag pfrag;
	struct page_frag_cache cache;
	unsigned int fill; /* what the next written byte looks like */
	long owned; /* bytes charged by own */
	struct oracle_out *out;
	bool skipped;
	int ret;
} run;

/*
 * --- what the state is written with
 * ------------------------------------------------------------------
 */

void out_number(const char *name, int index, long value)
{
	struct oracle_out *o = run.out;
	int n;

	o->hash = (o->hash ^ (unsigned long long)value) * 0x100000001b3ull;
	o->hash ^= o->hash >> 29;
	if (!o->text || o->full)
		return;
	if (index < 0)
		n = snprintf(o->text + o->len, o->room - o->len, " %s=%ld", name, value);
	else
		n = snprintf(o->text + o->len, o->room - o->len, " %s%d=%ld", name, index, value);
	if (n < 0 || (unsigned long)n >= o->room - o->len)
		o->full = true;
	else
		o->len += n;
}

void out_word(const char *word, int index)
{
	struct oracle_out *o = run.out;
	int n;

	if (!o->text || o->full)
		return;
	if (index < 0)
		n = snprintf(o->text + o->len, o->room - o->len, "\n%s", word);
	else
		n = snprintf(o->text + o->len, o->room - o->len, "\n%s%d", word, index);
	if (n < 0 || (unsigned long)n >= o->room - o->len)
		o->full = true;
	else
		o->len += n;
}

/*
 * --- pages
 * -------------------------------------------------------------------------------------------
 */

static void fill_block(struct page *page, unsigned int order, int id)
{
	u64 *at = page_address(page);
	u64 word = (id + 1) * 0x9e3779b97f4a7c15ull;
	unsigned long i;

	for (i = 0; i < (PAGE_SIZE << order) / sizeof(*at); i++)
		at[i] = word += 0x0101010101010107ull * (i | 1);
}

/* PAGE becomes a block of the program, which has room for it; the interpreter owns a reference if
 * HELD. Its index. */
static int add_block(struct page *page, unsigned int order, bool held)
{
	int id = run.nr_blocks;

	run.blocks[id] = (struct block){ page, order, held };
	run.nr_blocks++;
	fill_block(page, order, id);
	return id;
}

static int block_of(const struct page *page)
{
	int i;

	for (i = run.nr_blocks - 1; i >= 0; i--) {
		const struct block *b = &run.blocks[i];

		if (b->page && page >= b->page && page < b->page + (1 << b->order))
			return i;
	}
	return -1;
}

static int block_at(const void *addr)
{
	int i;

	for (i = run.nr_blocks - 1; i >= 0; i--) {
		const struct block *b = &run.blocks[i];
		const char *from = b->page ? page_address(b->page) : NULL;

		if (from && (const char *)addr >= from &&
		    (const char *)addr < from + (PAGE_SIZE << b->order))
			return i;
	}
	return -1;
}

int free_blocks(void)
{
	return ORACLE_BLOCKS - run.nr_blocks;
}

/* Not filled: what lies in it is somebody's payload. */
void note_page(struct page *page)
{
	page = compound_head(page);
	if (block_of(page) >= 0 || !free_blocks())
		return;
	get_page(page);
	run.blocks[run.nr_blocks++] = (struct block){ page, compound_order(page), true };
}

struct page *block_pages(int id, unsigned long *bytes)
{
	*bytes = PAGE_SIZE << run.blocks[id].order;
	return run.blocks[id].page;
}

unsigned int next_fill(void)
{
	return run.fill += 61;
}

/*
 * What a call of a fragment allocator did to its block: BEFORE is the one it had, with OTHERS that
 * use it too, NOW the one it has. A block that it left lives on while others use it, and is held
 * here from now on; without others it is gone.
 */
static void after_refill(struct page *before, int others, struct page *now)
{
	if (now == before)
		return;
	if (before) {
		struct block *b = &run.blocks[block_of(before)];

		if (others > 0)
			get_page(before);
		else
			b->page = NULL;
		b->held = others > 0;
	}
	if (now)
		add_block(now, compound_order(now), false);
}

static bool pfrag_refill(unsigned int n)
{
	struct page *before = run.pfrag.page;
	int others = before ? page_count(before) - 1 : 0;
	bool got;

	if (run.nr_blocks == ORACLE_BLOCKS)
		return false;
	got = o_frag_refill(n, &run.pfrag);
	after_refill(before, others, run.pfrag.page);
	return got;
}

static void *cache_alloc(unsigned int n)
{
	struct page *before = o_frag_cache_page(&run.cache);
	int others = before ? page_count(before) - (int)run.cache.pagecnt_bias : 0;
	void *data;

	if (run.nr_blocks == ORACLE_BLOCKS)
		return NULL;
	data = o_frag_alloc(&run.cache, n);
	after_refill(before, others, o_frag_cache_page(&run.cache));
	return data;
}

/*
 * --- the state
 * ----------------------------------------------------------------------------------------
 */

#define HASHED_END 512

/* Eight at a time: in an emulated guest this is where most of the time goes. */
static u64 hash_bytes(u64 h, const u8 *at, unsigned int n)
{
	u64 word;

	for (; n >= sizeof(word); at += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	for (; n; n--)
		h = h * 31 + *at++;
	return h;
}

/* Of a frag longer than a page the two ends: what is wrong with one is its place or its size. */
static u64 hash_frag(u64 h, const u8 *at, unsigned int n)
{
	if (n <= PAGE_SIZE)
		return hash_bytes(h, at, n);
	h = hash_bytes(h, at, HASHED_END);
	return hash_bytes(h, at + n - HASHED_END, HASHED_END);
}

static u64 hash_skb(const struct sk_buff *skb, u64 h)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	const struct sk_buff *member;
	int i;

	h = hash_bytes(h, skb->data, skb_headlen(skb));
	for (i = 0; i < shinfo->nr_frags; i++)
		h = hash_frag(h, o_frag_bytes(&shinfo->frags[i]), skb_frag_size(&shinfo->frags[i]));
	for (member = shinfo->frag_list; member; member = member->next)
		h = hash_skb(member, h);
	return h;
}

/* The first register whose sk_buff has the same head, so that sharing shows. */
static int head_of(const struct sk_buff *skb)
{
	int i;

	for (i = 0; i < ORACLE_SKBS; i++)
		if (run.skb[i] && run.skb[i]->head == skb->head)
			return i;
	return -1;
}

/* What every extension of a program has; bridge's and MPTCP's have no holds on anything. */
#define EXT_BYTES 32

static enum skb_ext_id ext_id(unsigned int n)
{
	return n & 1 ? SKB_EXT_MPTCP : SKB_EXT_BRIDGE_NF;
}

/* Which extensions SKB has, who has the same object, and what is in it. */
static void out_ext(const struct sk_buff *skb)
{
	unsigned int n, i;

	for (n = 0; n < 2; n++) {
		const u8 *bytes = skb_ext_find(skb, ext_id(n));

		out_number("ext", n,
			   bytes ? (long)(hash_bytes(1, bytes, EXT_BYTES) & 0x7fffffff) : -1);
	}
	if (!skb->active_extensions)
		return;
	out_number("ext_refs", -1, o_ext_refs(skb));
	for (i = 0; i < ORACLE_SKBS; i++)
		if (run.skb[i] && run.skb[i]->active_extensions &&
		    run.skb[i]->extensions == skb->extensions)
			break;
	out_number("ext_of", -1, i);
}

void out_skb(const struct sk_buff *skb, int depth)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	const struct sk_buff *member;
	int i, dataref = o_dataref(skb);

	out_number("len", -1, skb->len);
	out_number("data_len", -1, skb->data_len);
	out_number("truesize", -1, skb->truesize);
	out_number("headroom", -1, skb_headroom(skb));
	out_number("tail", -1, skb->tail);
	out_number("end", -1, skb->end);
	out_number("users", -1, o_users(skb));
	out_number("dataref", -1, dataref & SKB_DATAREF_MASK);
	out_number("payload_only", -1, dataref >> SKB_DATAREF_SHIFT);
	out_number("cloned", -1, skb->cloned);
	out_number("nohdr", -1, skb->nohdr);
	out_number("hdr_len", -1, skb->hdr_len);
	out_number("fclone", -1, skb->fclone);
	out_number("fclone_ref", -1, o_fclone_ref(skb));
	out_number("head_frag", -1, skb->head_frag);
	out_number("head_of", -1, head_of(skb));
	out_number("head_page", -1, skb->head_frag ? block_at(skb->head) : -1);
	out_number("transport", -1, o_h(skb)->transport_header);
	out_number("network", -1, o_h(skb)->network_header);
	out_number("mac", -1, o_h(skb)->mac_header);
	out_number("ip_summed", -1, o_h(skb)->ip_summed);
	out_number("csum_start", -1, o_csum_start(skb));
	out_number("owned", -1, skb->sk != NULL);
	out_number("seq", -1, TCP_SKB_CB(skb)->seq);
	out_number("end_seq", -1, TCP_SKB_CB(skb)->end_seq);
	out_number("pcount", -1, o_pcount(skb));
	out_number("mss", -1, o_mss(skb));
	out_number("shared_frag", -1, o_shared(skb));
	out_ext(skb);
	out_number("gso_size", -1, shinfo->gso_size);
	out_number("gso_segs", -1, shinfo->gso_segs);
	out_number("bytes", -1, hash_skb(skb, 1) & 0x7fffffff);
	out_number("frags", -1, shinfo->nr_frags);
	for (i = 0; i < shinfo->nr_frags; i++) {
		const skb_frag_t *frag = &shinfo->frags[i];
		int id = block_of(o_frag_page(frag));

		out_number("page", i, id);
		out_number("tail", i, id < 0 ? -1 : o_frag_page(frag) - run.blocks[id].page);
		out_number("offset", i, o_frag_offset(frag));
		out_number("size", i, skb_frag_size(frag));
	}
	for (member = shinfo->frag_list; member && depth < 3; member = member->next) {
		out_word("   member", -1);
		out_skb(member, depth + 1);
	}
}

static void out_state(void)
{
	int i, j;

	out_number("skipped", -1, run.skipped);
	out_number("ret", -1, run.ret);
	for (i = 0; i < ORACLE_SKBS; i++) {
		if (!run.skb[i])
			continue;
		out_word("s", i);
		for (j = 0; run.skb[j] != run.skb[i]; j++)
			;
		out_number("same_as", -1, j);
		if (j == i)
			out_skb(run.skb[i], 0);
	}
	out_word("pages", -1);
	for (i = 0; i < run.nr_blocks; i++) {
		const struct block *b = &run.blocks[i];
		int count = b->page ? page_count(b->page) : 0;

		if (b->page && b->page == o_frag_cache_page(&run.cache))
			count -= run.cache.pagecnt_bias;
		out_number("count", i, count);
	}
	out_word("sock", -1);
	out_number("pfrag_offset", -1, run.pfrag.page ? run.pfrag.offset : 0);
	out_number("cache_offset", -1, run.cache.va ? run.cache.offset : 0);
	out_number("owned", -1, run.owned);
	out_number("wmem_queued", -1, o_wmem_queued());
	out_number("forward_alloc", -1, o_forward_alloc());
	out_sock();
}

/*
 * --- operands
 * -----------------------------------------------------------------------------------------
 */

unsigned int wrap(unsigned int n, unsigned int limit)
{
	return n <= limit ? n : n % (limit + 1);
}

/* A position in SKB: a number, or a boundary and a little more or less. */
unsigned int position(const struct sk_buff *skb, unsigned int n)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned int i, at = skb_headlen(skb);
	int delta = (int)(n & 0xff) - 128;

	if (!(n & ORACLE_BOUNDARY))
		return wrap(n, skb->len);
	n = (n & ~ORACLE_BOUNDARY) >> 8;
	n %= shinfo->nr_frags + 1;
	for (i = 0; i < n; i++)
		at += skb_frag_size(&shinfo->frags[i]);
	if ((int)at + delta < 0)
		return 0;
	return wrap(at + delta, skb->len);
}

static void write_bytes(u8 *at, unsigned int n)
{
	while (n--)
		*at++ = run.fill++ * 167 >> 3;
}

/* Headroom and tailroom hold what somebody left there: make it the same on both sides. */
static void write_room(struct sk_buff *skb)
{
	write_bytes(skb->head, skb->data - skb->head);
}

static bool alone(const struct sk_buff *skb)
{
	return !skb_shared(skb);
}

/* Nobody else looks at the shared info. */
static bool private(const struct sk_buff *skb)
{
	return alone(skb) && (o_dataref(skb) & SKB_DATAREF_MASK) == 1;
}

/*
 * A head that is to become private and keep its end, and is smaller than a small one: the kernel
 * warns that this cannot be, since no owner of such heads asks for it.
 */
static bool ends_oddly(const struct sk_buff *skb)
{
	return skb_cloned(skb) && skb_end_offset(skb) < o_small_head_end();
}

static bool has_list(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->frag_list;
}

static void destructor(struct sk_buff *skb)
{
	run.owned -= skb->truesize;
}

/*
 * --- operations
 * ---------------------------------------------------------------------------------------
 *
 * Each returns false if the state forbids it, and has then done nothing.
 */

static bool make(struct sk_buff **d, struct sk_buff *skb)
{
	if (!skb) {
		run.ret = -1;
		return true;
	}
	write_room(skb);
	*d = skb;
	return true;
}

static bool do_build(struct sk_buff **d, unsigned int n)
{
	unsigned int bytes =
		SKB_DATA_ALIGN(wrap(n, 8192) + 1) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	void *data = cache_alloc(bytes);

	return data && make(d, o_build_skb(data, bytes));
}

static bool do_reserve(struct sk_buff *s, unsigned int n)
{
	if (s->len || s->data_len || !private(s))
		return false;
	n = wrap(n, skb_tailroom(s));
	write_bytes(skb_tail_pointer(s), n);
	skb_reserve(s, n);
	return true;
}

static bool do_put(struct sk_buff *s, unsigned int n)
{
	if (skb_is_nonlinear(s) || !alone(s))
		return false;
	n = wrap(n, skb_tailroom(s));
	write_bytes(skb_put(s, n), n);
	return true;
}

static bool do_push(struct sk_buff *s, unsigned int n, unsigned int write)
{
	if (!alone(s))
		return false;
	n = wrap(n, skb_headroom(s));
	skb_push(s, n);
	if (write)
		write_bytes(s->data, n);
	return true;
}

static bool do_page(int *p, unsigned int order)
{
	struct page *page;

	order = wrap(order, ORACLE_MAX_ORDER);
	if (run.nr_blocks == ORACLE_BLOCKS)
		return false;
	page = o_alloc_pages(order);
	if (!page)
		return false;
	*p = add_block(page, order, true);
	return true;
}

static bool may_grow(const struct sk_buff *s)
{
	return private(s) && !has_list(s) && s->len < ORACLE_MAX_LEN - 4096;
}

static bool do_frag(struct sk_buff *s, int p, unsigned int tail, unsigned int offset,
		    unsigned int size)
{
	int nr = skb_shinfo(s)->nr_frags;
	struct page *page;

	if (!may_grow(s) || nr == MAX_SKB_FRAGS)
		return false;
	page = run.blocks[p].page + wrap(tail, (1 << run.blocks[p].order) - 1);
	offset = wrap(offset, PAGE_SIZE - 1);
	size = wrap(size - 1, PAGE_SIZE - 1 - offset) + 1;
	get_page(page);
	skb_add_rx_frag(s, nr, page, offset, size, size);
	return true;
}

static bool do_page_frag(struct sk_buff *s, unsigned int n)
{
	struct skb_shared_info *shinfo = skb_shinfo(s);
	int nr = shinfo->nr_frags;

	n = wrap(n - 1, 4095) + 1;
	if (!may_grow(s) || !pfrag_refill(n))
		return false;
	if (skb_can_coalesce(s, nr, run.pfrag.page, run.pfrag.offset)) {
#ifdef __KERNEL__
		skb_frag_size_add(&shinfo->frags[nr - 1], n);
#else
		shinfo->frags[nr - 1].len += n;
#endif
	} else if (nr < MAX_SKB_FRAGS) {
		get_page(run.pfrag.page);
		skb_fill_page_desc(s, nr, run.pfrag.page, run.pfrag.offset, n);
	} else {
		return false;
	}
	s->len += n;
	s->data_len += n;
	s->truesize += n;
	run.pfrag.offset += n;
	return true;
}

static bool do_expand(struct sk_buff *s, unsigned int nhead, unsigned int ntail)
{
	if (!alone(s))
		return false;
	nhead = wrap(nhead, 4096);
	run.ret = o_expand(s, nhead, wrap(ntail, 4096));
	if (!run.ret)
		write_bytes(s->head, nhead);
	return true;
}

static bool do_split(struct sk_buff **d, struct sk_buff *s, unsigned int n)
{
	unsigned int at = position(s, n);

	if (!alone(s) || has_list(s) || (skb_is_nonlinear(s) && !private(s)))
		return false;
	if (!make(d, o_alloc(at < skb_headlen(s) ? skb_headlen(s) - at : 0)) || !*d)
		return false;
	o_split(s, *d, at);
	return true;
}

static bool do_shift(struct sk_buff *s, struct sk_buff *t, unsigned int n)
{
	unsigned int at = position(t, n);

	if (s == t || !alone(s) || !alone(t) || has_list(s) || has_list(t) || !at ||
	    ends_oddly(s) || ends_oddly(t) || s->len + at > ORACLE_MAX_LEN)
		return false;
	run.ret = o_shift(s, t, at);
	return true;
}

/* Charged for less than it holds, as a split leaves it to its caller: the kernel warns of that. */
static bool undercharged(const struct sk_buff *s)
{
	unsigned int bare = skb_headlen(s) ? SKB_DATA_ALIGN(sizeof(struct sk_buff))
					   : SKB_TRUESIZE(skb_end_offset(s));

	/* Signed: shifts may have taken more off truesize than it held. */
	return (int)(s->truesize - bare) < (int)s->len;
}

/* A head that may be stolen, in one of a pair: its shell would be freed as a single one. */
static bool stealable_pair(const struct sk_buff *s)
{
	return s->head_frag && s->fclone != SKB_FCLONE_UNAVAILABLE;
}

static bool do_coalesce(struct sk_buff *s, struct sk_buff **t)
{
	int delta = 0;

	if (s == *t || !alone(s) || !alone(*t) || s->sk || (*t)->sk || undercharged(*t) ||
	    stealable_pair(*t) || s->len + (*t)->len > ORACLE_MAX_LEN)
		return false;
	if (o_coalesce(s, *t, &delta)) {
		*t = NULL;
		run.ret = delta;
	} else {
		run.ret = -1;
	}
	return true;
}

static bool do_frag_list(struct sk_buff *s, struct sk_buff **t)
{
	struct sk_buff **end = &skb_shinfo(s)->frag_list;

	if (s == *t || !private(s) || !alone(*t) || has_list(*t) || (*t)->next || !(*t)->len ||
	    s->len + (*t)->len > ORACLE_MAX_LEN)
		return false;
	for (; *end; end = &(*end)->next)
		if (!alone(*end)) /* somebody else's list goes on here, too */
			return false;
	*end = *t;
	s->len += (*t)->len;
	s->data_len += (*t)->len;
	s->truesize += (*t)->truesize;
	*t = NULL;
	return true;
}

static bool do_headers(struct sk_buff *s)
{
	unsigned int at = skb_headroom(s);

	o_h(s)->transport_header = at;
	o_h(s)->network_header = at;
	o_h(s)->mac_header = at;
	o_h(s)->ip_summed = CHECKSUM_PARTIAL;
	o_set_csum_start(s, at);
	return true;
}

static bool do_tcp_segs(struct sk_buff *s, unsigned int mss)
{
	mss = wrap(mss - 1, 8191) + 1;
	if (!alone(s))
		return false;
	o_h(s)->ip_summed = CHECKSUM_PARTIAL;
	TCP_SKB_CB(s)->seq = 1000;
	TCP_SKB_CB(s)->end_seq = 1000 + s->len;
	if (s->len > mss)
		o_set_segs(s, (s->len + mss - 1) / mss, mss);
	else
		o_set_segs(s, 1, 0);
	return true;
}

/* Something that TCP may have in its queues. */
static bool of_tcp(const struct sk_buff *s)
{
	return alone(s) && !s->sk && !has_list(s) && o_pcount(s) && !ends_oddly(s) &&
	       !(o_tcp_is_paged() && skb_headlen(s)) && o_h(s)->ip_summed == CHECKSUM_PARTIAL;
}

static bool do_tcp_trim(struct sk_buff *s, unsigned int n)
{
	unsigned int at = position(s, n);

	if (!of_tcp(s) || !at || at >= s->len)
		return false;
	run.ret = o_tcp_trim_head(o_sk, s, at);
	return true;
}

static bool do_tcp_fragment(struct sk_buff **d, struct sk_buff *s, unsigned int n, unsigned int mss)
{
	unsigned int at = position(s, n);

	if (!of_tcp(s) || s->next || !at || at >= s->len)
		return false;
	run.ret = o_fragment(s, at, wrap(mss - 1, 8191) + 1, d);
	if (*d)
		write_room(*d);
	return true;
}

static bool do_own(struct sk_buff *s)
{
	if (s->sk || !alone(s))
		return false;
	s->sk = o_sk;
	s->destructor = destructor;
	run.owned += s->truesize;
	return true;
}

/* BYTES, all of an extension or nothing, become BYTE. */
static bool fill_ext(void *bytes, unsigned int byte)
{
	run.ret = bytes != NULL;
	if (bytes)
		memset(bytes, byte & 0xff, EXT_BYTES);
	return true;
}

static bool do_free(struct sk_buff **s)
{
	struct sk_buff *skb = *s;

	*s = NULL;
	o_free(skb);
	return true;
}

static bool do_unshare(struct sk_buff **s)
{
	struct sk_buff *before = *s;

	*s = o_unshare(before);
	if (*s && *s != before)
		write_bytes(skb_tail_pointer(*s), skb_tailroom(*s));
	return true;
}

/* A truesize that a destructor will give back must not change under it. */
static bool unowned(const struct sk_buff *s)
{
	return !s->sk;
}

static bool execute(const struct oracle_op *op)
{
	struct sk_buff **d = &run.skb[op->d], **s = &run.skb[op->s], **t = &run.skb[op->t];
	const unsigned int *n = op->n;

	switch (op->op) {
	case O_alloc:
		return make(d, o_alloc(wrap(n[0], 16384)));
	case O_alloc_fclone:
		return make(d, o_alloc_fclone(wrap(n[0], 16384)));
	case O_build_skb:
		return do_build(d, n[0]);
	case O_reserve:
		return do_reserve(*s, n[0]);
	case O_put:
		return do_put(*s, n[0]);
	case O_push:
		return do_push(*s, n[0], n[1]);
	case O_pull:
		if (!alone(*s))
			return false;
		__skb_pull(*s, wrap(n[0], skb_headlen(*s)));
		return true;
	case O_page:
		return do_page(&run.page[op->t], n[0]);
	case O_frag:
		return unowned(*s) && do_frag(*s, run.page[op->t], n[0], n[1], n[2]);
	case O_page_frag:
		return unowned(*s) && do_page_frag(*s, n[0]);
	case O_clone:
		return make(d, o_clone(*s));
	case O_copy:
		return make(d, o_copy(*s));
	case O_pskb_copy:
		return make(d, o_pskb_copy(*s));
	case O_expand:
		return do_expand(*s, n[0], n[1]);
	case O_unclone:
		if (!alone(*s))
			return false;
		run.ret = o_unclone(*s);
		return true;
	case O_unclone_keeptruesize:
		if (!alone(*s) || ends_oddly(*s))
			return false;
		run.ret = o_unclone_kt(*s);
		return true;
	case O_trim:
		if (!alone(*s))
			return false;
		run.ret = o_trim(*s, position(*s, n[0]));
		return true;
	case O_pull_tail:
		if (!alone(*s))
			return false;
		run.ret = o_pull_tail(*s, wrap(n[0], (*s)->data_len));
		return true;
	case O_split:
		return unowned(*s) && do_split(d, *s, n[0]);
	case O_shift:
		return unowned(*s) && unowned(*t) && do_shift(*s, *t, n[0]);
	case O_coalesce:
		return do_coalesce(*s, t);
	case O_header_release:
		if (!private(*s) || (*s)->nohdr)
			return false;
		__skb_header_release(*s);
		return true;
	case O_header_unclone:
		if (!alone(*s))
			return false;
		run.ret = o_header_unclone(*s);
		return true;
	case O_condense:
		if (!alone(*s) || !unowned(*s))
			return false;
		o_condense(*s);
		return true;
	case O_morph:
		if (*s == *t || !alone(*s))
			return false;
		o_morph(*s, *t);
		return true;
	case O_share_check:
		*s = o_share_check(*s);
		return true;
	case O_unshare:
		return do_unshare(s);
	case O_get:
		*d = skb_get(*s);
		return true;
	case O_free:
		return do_free(s);
	case O_own:
		return do_own(*s);
	case O_frag_list:
		return unowned(*s) && do_frag_list(*s, t);
	case O_shared_frag:
		if (!private(*s))
			return false;
		o_set_shared(*s);
		return true;
	case O_headers:
		return do_headers(*s);
	case O_tcp_segs:
		return do_tcp_segs(*s, n[0]);
	case O_tcp_trim_head:
		return do_tcp_trim(*s, n[0]);
	case O_tcp_fragment:
		return do_tcp_fragment(d, *s, n[0], n[1]);
	case O_ext_add:
		return fill_ext(skb_ext_add(*s, ext_id(n[0])), n[1]);
	case O_ext_write:
		return fill_ext(skb_ext_find(*s, ext_id(n[0])), n[1]);
	case O_ext_del:
		skb_ext_del(*s, ext_id(n[0]));
		return true;
	case O_ext_copy:
		if (*s == *t)
			return false;
		skb_ext_copy(*s, *t);
		return true;
	case O_sock_send:
	case O_sock_zerocopy:
	case O_sock_push:
	case O_sock_complete:
	case O_sock_ack:
	case O_sock_sack:
	case O_sock_lost:
	case O_sock_retransmit:
		return sock_execute(op, run.page[op->t], &run.ret);
	}
	return false;
}

/* The registers that OP names are there (d: free). */
static bool operands(const struct oracle_op *op)
{
	const char *form = op_forms[op->op];

	for (; *form; form++) {
		if (*form == 'd' && run.skb[op->d])
			return false;
		if (*form == 's' && !run.skb[op->s])
			return false;
		if (*form == 't' && !run.skb[op->t])
			return false;
		if (*form == 'p' && op->op != O_page && run.page[op->t] < 0)
			return false;
	}
	return true;
}

static bool valid(const struct oracle_op *op)
{
	return op->op < O_NR && !(ORACLE_LACKS >> op->op & 1) && op->d < ORACLE_SKBS &&
	       op->s < ORACLE_SKBS && op->t < ORACLE_SKBS;
}

static void finish(void)
{
	int i;

	for (i = 0; i < ORACLE_SKBS; i++)
		if (run.skb[i])
			do_free(&run.skb[i]);
	sock_finish();
	run.skipped = false;
	run.ret = 0;
	out_word("end", -1);
	out_state();
	o_frag_cache_drain(&run.cache);
	if (run.pfrag.page)
		put_page(run.pfrag.page);
	for (i = 0; i < run.nr_blocks; i++)
		if (run.blocks[i].held)
			put_page(run.blocks[i].page);
}

int oracle_run(const struct oracle_request *req, struct oracle_out *out)
{
	const struct oracle_op *op = (const struct oracle_op *)(req + 1);
	unsigned int i;

	memset(&run, 0, sizeof(run));
	run.out = out;
	for (i = 0; i < ORACLE_PAGES; i++)
		run.page[i] = -1;
	for (i = 0; i < req->nr_ops; i++) {
		if (valid(&op[i]))
			continue;
		if (out->text)
			out->len =
				snprintf(out->text, out->room, "operation %u is unknown here", i);
		return -1;
	}
	o_sock_reset();
	for (i = 0; i < req->nr_ops; i++) {
		run.ret = 0;
		run.skipped = !operands(&op[i]) || !execute(&op[i]);
		out_word("op ", i);
		if (out->text && !out->full && out->room - out->len > 32)
			out->len += snprintf(out->text + out->len, 32, " %s", op_names[op[i].op]);
		out_state();
	}
	finish();
	return 0;
}
