// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Instructions that the kernel spends on one operation.
 *
 * The guest's clock advances one nanosecond an instruction (QEMU's -icount shift=0,sleep=off, one
 * CPU), so that two readings of it around an operation count what lies between. Of 251 repetitions
 * the tenth percentile is taken: ticks and refills of slabs and page lists only ever add, and where
 * an operation has two costs, a median would be now the one and now the other. The cost of the clock
 * itself, found the same way, is taken off. rep-prefixed instructions count once an element.
 *
 * The sk_buffs have the shapes of the benchmarks (benches/bench_skb*.c, bench_tcp_ops.c), so that
 * results/kernel/pairs.txt can name the model's case beside each row. Pages are the yardstick's own,
 * held once by it, but for those of tcp: no put is the last one but where the row's name says so.
 */
#include "env_kernel.h"
#include "yardstick.h"

#include <linux/ktime.h>
#include <linux/llist.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/skbuff_ref.h>
#endif
#include <linux/sort.h>

#define ROUNDS	    251
#define MSS	    1448
#define RECORD	    (45 * MSS) /* of tcp: 65160 bytes */
#define BURST	    512
#define LIST	    16
#define HALF	    (PAGE_SIZE / 2)
#define SPLIT_BYTES 128 /* linear ones of an sk_buff that is split */
#define SMALL_FRAG  16 /* bytes of frags that are condensed, and of those that are coalesced */
#define LINEAR	    64 /* bytes of an sk_buff that is coalesced */

static struct {
	u32 took[ROUNDS];
	u32 clock;
	char *text;
	unsigned long len, room;
	struct page *held[MAX_SKB_FRAGS];
	struct page *burst[BURST];
	struct page *order3;
	struct page_frag pfrag;
	struct page_frag_cache cache;
	struct llist_head list;
	struct llist_node node[LIST];
} y;

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, z = *(const u32 *)b;

	return x < z ? -1 : x > z;
}

static u32 tenth_percentile(void)
{
	sort(y.took, ROUNDS, sizeof(y.took[0]), by_size, NULL);
	return y.took[ROUNDS / 10];
}

static void out_cost(const char *operation, int frags, u32 cost)
{
	y.len += scnprintf(y.text + y.len, y.room - y.len, "%s,%d,%d\n", operation, frags,
			   (int)(cost - y.clock));
}

/* The cost of OP; SETUP before and UNDO behind it are not counted. */
#define COST(setup, op, undo)                                    \
	({                                                       \
		int _round;                                      \
                                                                 \
		for (_round = 0; _round < ROUNDS; _round++) {    \
			u64 _from;                               \
                                                                 \
			setup;                                   \
			_from = ktime_get_ns();                  \
			op;                                      \
			y.took[_round] = ktime_get_ns() - _from; \
			undo;                                    \
		}                                                \
		tenth_percentile();                              \
	})
#define ROW(operation, frags, setup, op, undo) out_cost(operation, frags, COST(setup, op, undo))

/*
 * --- shapes
 * -------------------------------------------------------------------------------------------
 */

static void fill(struct sk_buff *skb, int frags)
{
	int i;

	for (i = 0; i < frags; i++) {
		page_ref_inc(y.held[i]);
		skb_add_rx_frag(skb, i, y.held[i], 0, PAGE_SIZE, PAGE_SIZE);
	}
}

/* FRAGS whole pages behind HEADROOM and LINEAR bytes, with TAILROOM. Its socket is one in name only. */
static struct sk_buff *shaped(int frags, unsigned int headroom, unsigned int linear,
			      unsigned int tailroom)
{
	struct sk_buff *skb = alloc_skb_fclone(headroom + linear + tailroom, GFP_KERNEL);

	skb_reserve(skb, headroom);
	skb_put(skb, linear);
	fill(skb, frags);
	skb->sk = o_sk;
	return skb;
}

static struct sk_buff *built(int frags)
{
	return shaped(frags, MAX_TCP_HEADER, 0, 0);
}

/* The same with pages that nobody else holds. */
static struct sk_buff *built_of_new_pages(int frags)
{
	struct sk_buff *skb = built(0);
	int i;

	for (i = 0; i < frags; i++)
		skb_add_rx_frag(skb, i, alloc_page(GFP_KERNEL), 0, PAGE_SIZE, PAGE_SIZE);
	return skb;
}

/* What tcp_sendmsg() makes of 65160 bytes: 16 pages, or 2 blocks of 8, that nobody else holds. */
static struct sk_buff *record(int frags)
{
	int i, left = RECORD, order = frags == 2 ? 3 : 0, size = PAGE_SIZE << order;
	struct sk_buff *skb = built(0);

	for (i = 0; i < frags; i++, left -= size) {
		struct page *page = alloc_pages(GFP_KERNEL | (order ? __GFP_COMP : 0), order);

		skb_add_rx_frag(skb, i, page, 0, min(left, size), min(left, size));
	}
	skb->sk = NULL;
	skb->ip_summed = CHECKSUM_PARTIAL;
	TCP_SKB_CB(skb)->seq = 1;
	TCP_SKB_CB(skb)->end_seq = 1 + RECORD;
	tcp_skb_pcount_set(skb, 45);
	TCP_SKB_CB(skb)->tcp_gso_size = MSS;
	return skb;
}

static struct sk_buff *clone_of(struct sk_buff *skb, bool wanted)
{
	return wanted ? skb_clone(skb, GFP_ATOMIC) : NULL;
}

/*
 * --- pages
 * --------------------------------------------------------------------------------------------
 */

static void alloc_burst(void)
{
	int i;

	for (i = 0; i < BURST; i++)
		y.burst[i] = alloc_page(GFP_ATOMIC);
}

static void free_burst(void)
{
	int i;

	for (i = 0; i < BURST; i++)
		put_page(y.burst[i]);
}

static void pages(void)
{
	const gfp_t compound = GFP_ATOMIC | __GFP_COMP;
	struct page *page = y.held[0], *q;

	ROW("get_page", 0, , get_page(page), put_page(page));
	ROW("put_page", 0, get_page(page), put_page(page), );
	ROW("alloc_page", 0, , q = alloc_page(GFP_ATOMIC), put_page(q));
	ROW("put_page_last", 0, q = alloc_page(GFP_ATOMIC), put_page(q), );
	ROW("alloc_pages_order3", 0, , q = alloc_pages(compound, 3), put_page(q));
	ROW("put_page_last_order3", 0, q = alloc_pages(compound, 3), put_page(q), );
	ROW("alloc_page_512", 0, , alloc_burst(), free_burst());
	ROW("put_page_last_512", 0, alloc_burst(), free_burst(), );
}

/* References on a page of its own, on the first and on another page of a block. */
static void frag_refs(void)
{
	static const char *const ref[] = { "skb_frag_ref_order0", "skb_frag_ref_head",
					   "skb_frag_ref_tail" };
	static const char *const unref[] = { "skb_frag_unref_order0", "skb_frag_unref_head",
					     "skb_frag_unref_tail" };
	struct page *of[] = { y.held[0], y.order3, y.order3 + 3 };
	struct sk_buff *skb;
	int i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		skb = built(0);
		get_page(of[i]);
		skb_add_rx_frag(skb, 0, of[i], 0, PAGE_SIZE, PAGE_SIZE);
		ROW(ref[i], 0, , skb_frag_ref(skb, 0), skb_frag_unref(skb, 0));
		ROW(unref[i], 0, skb_frag_ref(skb, 0), skb_frag_unref(skb, 0), );
		kfree_skb(skb);
	}
}

static void fragments(void)
{
	void *data;

	ROW("skb_page_frag_refill", 0, , skb_page_frag_refill(MSS, &y.pfrag, GFP_ATOMIC);
	    get_page(y.pfrag.page); y.pfrag.offset += MSS, put_page(y.pfrag.page));
	ROW("page_frag_alloc_256", 0, , data = page_frag_alloc(&y.cache, 256, GFP_ATOMIC),
	    page_frag_free(data));
	ROW("page_frag_alloc_2048", 0, , data = page_frag_alloc(&y.cache, 2048, GFP_ATOMIC),
	    page_frag_free(data));
	ROW("page_frag_free_2048", 0, data = page_frag_alloc(&y.cache, 2048, GFP_ATOMIC),
	    page_frag_free(data), );
}

static void add_all(int from, int to)
{
	int i;

	for (i = from; i < to; i++)
		llist_add(&y.node[i], &y.list);
}

static void take_all(void)
{
	struct llist_node *n = llist_del_all(&y.list), *next;

	for (; n; n = next) {
		next = n->next;
		smp_store_release(&n->next, NULL);
	}
}

static void lists(void)
{
	ROW("llist_add_first", 0, , add_all(0, 1), take_all());
	ROW("llist_add_15_more", 0, add_all(0, 1), add_all(1, LIST), take_all());
	ROW("llist_del_all_16", 0, add_all(0, LIST), take_all(), );
}

/*
 * --- sk_buffs: making, cloning, copying
 * ---------------------------------------------------------------
 */

static struct sk_buff *of_a_fragment(void)
{
	return build_skb(page_frag_alloc(&y.cache, 2048, GFP_ATOMIC), 2048);
}

static void making(int n)
{
	struct sk_buff *skb;

	ROW("alloc_skb_fclone", n, , skb = alloc_skb_fclone(MAX_TCP_HEADER, GFP_ATOMIC);
	    fill(skb, n), kfree_skb(skb));
	ROW("free_fclone", n, skb = built(n), kfree_skb(skb), );
	ROW("free_fclone_last_pages", n, skb = built_of_new_pages(n), kfree_skb(skb), );
	if (n)
		return;
	ROW("alloc_skb_320", 0, , skb = alloc_skb(MAX_TCP_HEADER, GFP_ATOMIC), kfree_skb(skb));
	ROW("alloc_skb_2048", 0, , skb = alloc_skb(2048, GFP_ATOMIC), kfree_skb(skb));
	ROW("free_skb_320", 0, skb = alloc_skb(MAX_TCP_HEADER, GFP_ATOMIC), kfree_skb(skb), );
	ROW("free_skb_2048", 0, skb = alloc_skb(2048, GFP_ATOMIC), kfree_skb(skb), );
	ROW("build_skb", 0, , skb = of_a_fragment(), kfree_skb(skb));
	ROW("free_built_skb", 0, skb = of_a_fragment(), kfree_skb(skb), );
}

static void cloning(void)
{
	struct sk_buff *skb = built(0), *shell = alloc_skb(MAX_TCP_HEADER, GFP_ATOMIC), *c;

	ROW("skb_clone_companion", 0, , c = skb_clone(skb, GFP_ATOMIC), kfree_skb(c));
	ROW("free_companion", 0, c = skb_clone(skb, GFP_ATOMIC), kfree_skb(c), );
	ROW("skb_clone_shell", 0, , c = skb_clone(shell, GFP_ATOMIC), kfree_skb(c));
	ROW("free_shell", 0, c = skb_clone(shell, GFP_ATOMIC), kfree_skb(c), );
	ROW("skb_share_check_alone", 0, , c = skb_share_check(shell, GFP_ATOMIC), );
	kfree_skb(skb);
	skb = alloc_skb_fclone(MAX_TCP_HEADER, GFP_ATOMIC);
	ROW("skb_share_check_held", 0, skb_get(skb), c = skb_share_check(skb, GFP_ATOMIC),
	    kfree_skb(c));
	c = skb_clone(shell, GFP_ATOMIC);
	ROW("skb_morph", 0, , skb_morph(c, shell), );
	kfree_skb(c);
	kfree_skb(shell);
	kfree_skb(skb);
}

static void copying(int n)
{
	struct sk_buff *skb = built(n), *c;

	ROW("pskb_copy", n, , c = pskb_copy(skb, GFP_ATOMIC), kfree_skb(c));
	ROW("free_pskb_copy", n, c = pskb_copy(skb, GFP_ATOMIC), kfree_skb(c), );
	ROW("skb_copy", n, , c = skb_copy(skb, GFP_ATOMIC), kfree_skb(c));
	if (n < MAX_SKB_FRAGS - 1)
		ROW("skb_unshare", n, c = skb_clone(skb, GFP_ATOMIC),
		    c = skb_unshare(c, GFP_ATOMIC), kfree_skb(c));
	kfree_skb(skb);
}

/*
 * --- a head of one's own
 * ------------------------------------------------------------------------------
 */

static void expanding(int n, bool cloned)
{
	static const char *const name[][2] = {
		{ "pskb_expand_head", "pskb_expand_head_cloned" },
		{ "skb_unclone", "skb_unclone_cloned" },
		{ "skb_unclone_keeptruesize", "skb_unclone_keeptruesize_cloned" },
	};
	struct sk_buff *skb, *c;

	ROW(name[0][cloned], n, skb = built(n);
	    c = clone_of(skb, cloned), pskb_expand_head(skb, 0, 0, GFP_ATOMIC), kfree_skb(c);
	    kfree_skb(skb));
	ROW(name[1][cloned], n, skb = built(n);
	    c = clone_of(skb, cloned), skb_unclone(skb, GFP_ATOMIC), kfree_skb(c); kfree_skb(skb));
	ROW(name[2][cloned], n, skb = built(n);
	    c = clone_of(skb, cloned), o_unclone_kt(skb), kfree_skb(c); kfree_skb(skb));
}

static void pulling(unsigned int delta, bool cloned)
{
	struct sk_buff *skb, *c;
	char name[40];

	snprintf(name, sizeof(name), "__pskb_pull_tail_%u%s", delta, cloned ? "_cloned" : "");
	ROW(name, 2, skb = shaped(2, MAX_TCP_HEADER, 0, delta);
	    c = clone_of(skb, cloned), __pskb_pull_tail(skb, delta), kfree_skb(c); kfree_skb(skb));
}

static void condensing(int n)
{
	struct sk_buff *skb;
	int i;

	ROW("skb_condense", n, skb = shaped(n, 0, 0, n * SMALL_FRAG);
	    for (i = 0; i < n; i++) skb_frag_size_set(&skb_shinfo(skb)->frags[i], SMALL_FRAG);
	    skb->len = skb->data_len = n * SMALL_FRAG;
	    skb->sk = NULL, o_skb_condense(skb), kfree_skb(skb));
}

/*
 * --- cutting and joining
 * ------------------------------------------------------------------------------
 */

static void trimming(int drop, bool cloned)
{
	const int n = 16;
	struct sk_buff *skb, *c;
	char name[40];

	snprintf(name, sizeof(name), "pskb_trim_%d%s", drop, cloned ? "_cloned" : "");
	ROW(name, n, skb = built(n);
	    c = clone_of(skb, cloned), pskb_trim(skb, (n - drop) * PAGE_SIZE), kfree_skb(c);
	    kfree_skb(skb));
}

static void splitting(int n)
{
	const unsigned int between = SPLIT_BYTES + n / 2 * PAGE_SIZE;
	struct sk_buff *skb, *rest;

#define SPLIT(name, at)                                                                 \
	ROW(name, n, skb = shaped(n, MAX_TCP_HEADER, SPLIT_BYTES, 0);                   \
	    rest = shaped(0, MAX_TCP_HEADER, 0, SPLIT_BYTES), skb_split(skb, rest, at), \
	    kfree_skb(rest);                                                            \
	    kfree_skb(skb))
	SPLIT("skb_split_between", between);
	SPLIT("skb_split_frag", between + HALF);
	SPLIT("skb_split_linear", SPLIT_BYTES / 2);
#undef SPLIT
}

/* Two pages to be shifted into an empty sk_buff, or one that holds the half page before them. */
static void shift_pair(struct sk_buff **skb, struct sk_buff **to, bool adjacent)
{
	*skb = built(2);
	*to = built(0);
	if (!adjacent)
		return;
	skb_frag_off_set(&skb_shinfo(*skb)->frags[0], HALF);
	skb_frag_size_set(&skb_shinfo(*skb)->frags[0], HALF);
	(*skb)->len -= HALF;
	(*skb)->data_len -= HALF;
	page_ref_inc(y.held[0]);
	skb_add_rx_frag(*to, 0, y.held[0], 0, HALF, PAGE_SIZE);
}

static void shifting(const char *how, bool adjacent, bool whole, bool cloned)
{
	struct sk_buff *skb, *to, *a, *b;
	char name[40];

	snprintf(name, sizeof(name), "skb_shift_%s%s", how, cloned ? "_cloned" : "");
	ROW(name, 2, shift_pair(&skb, &to, adjacent); a = clone_of(skb, cloned);
	    b = clone_of(to, cloned), o_skb_shift(to, skb, whole ? skb->len : HALF / 2),
	    kfree_skb(a);
	    kfree_skb(b); kfree_skb(skb); kfree_skb(to));
}

enum coalesced { OF_LINEAR, OF_FRAGS, OF_HEAD_FRAG };

static struct sk_buff *to_coalesce(enum coalesced of, int n)
{
	unsigned int size = of == OF_LINEAR ? SMALL_FRAG : PAGE_SIZE;
	struct sk_buff *skb;
	int i;

	if (of == OF_HEAD_FRAG)
		skb_put(skb = of_a_fragment(), 512);
	else
		skb = alloc_skb(of == OF_LINEAR ? LINEAR : 0, GFP_ATOMIC);
	if (of == OF_LINEAR)
		skb_put(skb, LINEAR);
	for (i = 0; i < n; i++) {
		page_ref_inc(y.held[i]);
		skb_add_rx_frag(skb, i, y.held[i], 0, size, size);
	}
	return skb;
}

static struct sk_buff *coalesce_target(enum coalesced of)
{
	struct sk_buff *to = alloc_skb(LINEAR + SMALL_FRAG * MAX_SKB_FRAGS, GFP_ATOMIC);

	if (of != OF_LINEAR)
		skb_reserve(to, skb_tailroom(to));
	return to;
}

static void coalescing(const char *how, enum coalesced of, int n, bool cloned)
{
	struct sk_buff *skb, *to, *c;
	char name[40];
	bool stolen;
	int delta;

	snprintf(name, sizeof(name), "skb_try_coalesce_%s%s", how, cloned ? "_cloned" : "");
	ROW(name, n, to = coalesce_target(of); skb = to_coalesce(of, n);
	    c = clone_of(skb, cloned), skb_try_coalesce(to, skb, &stolen, &delta),
	    kfree_skb_partial(skb, stolen);
	    kfree_skb(c); kfree_skb(to));
	snprintf(name, sizeof(name), "kfree_skb_partial_%s%s", how, cloned ? "_cloned" : "");
	ROW(name, n, to = coalesce_target(of); skb = to_coalesce(of, n); c = clone_of(skb, cloned);
	    skb_try_coalesce(to, skb, &stolen, &delta), kfree_skb_partial(skb, stolen),
	    kfree_skb(c);
	    kfree_skb(to));
}

/*
 * --- zerocopy
 * -----------------------------------------------------------------------------------------
 */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void copied(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	refcount_dec(&uarg->refcnt);
}

static const struct ubuf_info_ops ubuf_ops = { .complete = copied };
static struct ubuf_info uarg = { .ops = &ubuf_ops, .flags = SKBFL_ZEROCOPY_FRAG };
#else
static void copied(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	refcount_dec(&uarg->refcnt);
}

static struct ubuf_info uarg = { .callback = copied, .flags = SKBFL_ZEROCOPY_FRAG };
#endif

static void zerocopy(int n)
{
	struct sk_buff *skb;

	refcount_set(&uarg.refcnt, 1);
	ROW("skb_zcopy_set", n, skb = built(n), skb_zcopy_set(skb, &uarg, NULL),
	    skb_zcopy_clear(skb, true);
	    kfree_skb(skb));
	ROW("skb_copy_ubufs", n, skb = built(n);
	    skb_zcopy_set(skb, &uarg, NULL), skb_copy_ubufs(skb, GFP_ATOMIC), kfree_skb(skb));
}

/*
 * --- tcp: 20 segments off the front of 65160 bytes
 * ------------------------------------------------------
 */

static void tcp(int n, bool cloned)
{
	struct sk_buff *skb, *c, *buff;
	char name[40];

	snprintf(name, sizeof(name), "tcp_trim_head%s", cloned ? "_cloned" : "");
	ROW(name, n, skb = record(n);
	    c = clone_of(skb, cloned), o_tcp_trim_head(o_sk, skb, 20 * MSS), kfree_skb(c);
	    kfree_skb(skb));
	snprintf(name, sizeof(name), "tcp_fragment%s", cloned ? "_cloned" : "");
	ROW(name, n, skb = record(n); c = clone_of(skb, cloned);
	    __skb_queue_tail(&o_sk->sk_write_queue, skb),
	    o_tcp_fragment(o_sk, TCP_FRAG_IN_WRITE_QUEUE, skb, 20 * MSS, MSS, GFP_ATOMIC),
	    kfree_skb(c);
	    __skb_unlink(skb, &o_sk->sk_write_queue); buff = skb_peek(&o_sk->sk_write_queue);
	    __skb_unlink(buff, &o_sk->sk_write_queue); tcp_skb_tsorted_anchor_cleanup(buff);
	    kfree_skb(buff); kfree_skb(skb));
}

static bool make_pages(void)
{
	int i;

	y.order3 = alloc_pages(GFP_KERNEL | __GFP_COMP, 3);
	for (i = 0; i < MAX_SKB_FRAGS; i++)
		y.held[i] = alloc_page(GFP_KERNEL);
	return y.order3 && y.held[MAX_SKB_FRAGS - 1];
}

unsigned long oracle_yardstick(char *text, unsigned long room)
{
	static const int frags[] = { 0, 1, 2, 16, 17 };
	int i, cloned;

	y.text = text;
	y.room = room;
	y.len = 0;
	if (!y.order3 && !make_pages())
		return scnprintf(text, room, "no memory\n");
	o_sock_reset();
	y.clock = 0;
	y.clock = COST(, , );
	out_cost("clock", 0, 2 * y.clock);
	pages();
	frag_refs();
	fragments();
	lists();
	cloning();
	for (i = 0; i < ARRAY_SIZE(frags); i++) {
		making(frags[i]);
		copying(frags[i]);
	}
	for (cloned = 0; cloned < 2; cloned++) {
		for (i = 0; i < ARRAY_SIZE(frags); i++)
			expanding(frags[i], cloned);
		pulling(64, cloned);
		pulling(256, cloned);
		pulling(4096, cloned);
		trimming(1, cloned);
		trimming(16, cloned);
		shifting("whole", false, true, cloned);
		shifting("merge", true, true, cloned);
		shifting("part", false, false, cloned);
		shifting("grow", true, false, cloned);
		for (i = 1; i < 16; i += 14) {
			coalescing("linear", OF_LINEAR, i, cloned);
			coalescing("frags", OF_FRAGS, i, cloned);
			if (!cloned)
				coalescing("head_frag", OF_HEAD_FRAG, i, cloned);
		}
		tcp(16, cloned);
		tcp(2, cloned);
	}
	condensing(1);
	condensing(4);
	splitting(2);
	splitting(16);
	zerocopy(1);
	zerocopy(16);
	return y.len;
}
