// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Instructions that the kernel spends on one operation.
 *
 * The guest's clock advances one nanosecond an instruction (QEMU's -icount shift=0,sleep=off, one
 * CPU), so that two readings of it around an operation count what lies between. Of 2000 repetitions
 * the median is taken, which leaves ticks and refills of slabs and page lists out; the cost of the
 * clock itself, found the same way, is taken off. rep-prefixed instructions count once an element.
 */
#include "env_kernel.h"
#include "yardstick.h"

#include <linux/ktime.h>
#include <linux/sort.h>

#define ROUNDS 1001

static u32 took[ROUNDS];
static char *out_text;
static unsigned long out_len, out_room;

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static u32 median(void)
{
	sort(took, ROUNDS, sizeof(took[0]), by_size, NULL);
	return took[ROUNDS / 2];
}

/* The median time of OP; SETUP before and UNDO behind it are not counted. */
#define COST(setup, op, undo)                                  \
	({                                                     \
		int _round;                                    \
                                                               \
		for (_round = 0; _round < ROUNDS; _round++) {  \
			u64 _from;                             \
                                                               \
			setup;                                 \
			_from = ktime_get_ns();                \
			op;                                    \
			took[_round] = ktime_get_ns() - _from; \
			undo;                                  \
		}                                              \
		median();                                      \
	})

static void out_cost(const char *operation, int frags, u32 cost, u32 clock)
{
	out_len += scnprintf(out_text + out_len, out_room - out_len, "%s,%d,%d\n", operation, frags,
			     (int)(cost - clock));
}

/* A transmit sk_buff: FRAGS pages of 4096 bytes behind an empty linear part, segments of 1448. */
static struct sk_buff *built(int frags, bool fclone)
{
	struct sk_buff *skb = fclone ? alloc_skb_fclone(MAX_TCP_HEADER, GFP_KERNEL)
				     : alloc_skb(MAX_TCP_HEADER, GFP_KERNEL);
	int i;

	skb_reserve(skb, MAX_TCP_HEADER);
	for (i = 0; i < frags; i++)
		skb_add_rx_frag(skb, i, alloc_page(GFP_KERNEL), 0, PAGE_SIZE, PAGE_SIZE);
	TCP_SKB_CB(skb)->seq = 1;
	TCP_SKB_CB(skb)->end_seq = 1 + skb->len;
	tcp_skb_pcount_set(skb, DIV_ROUND_UP(skb->len, 1448));
	TCP_SKB_CB(skb)->tcp_gso_size = 1448;
	return skb;
}

static void per_page(u32 clock)
{
	struct page *page = alloc_page(GFP_KERNEL), *q;

	out_cost("get_page", 0, COST(, get_page(page), put_page(page)), clock);
	out_cost("put_page", 0, COST(get_page(page), put_page(page), ), clock);
	out_cost("alloc_page", 0, COST(, q = alloc_page(GFP_ATOMIC), put_page(q)), clock);
	out_cost("put_page_last", 0, COST(q = alloc_page(GFP_ATOMIC), put_page(q), ), clock);
	put_page(page);
}

static void making(int n, u32 clock)
{
	struct sk_buff *skb = built(n, true), *c, *d;

	out_cost("alloc_skb", n, COST(, d = alloc_skb(MAX_TCP_HEADER, GFP_ATOMIC), __kfree_skb(d)),
		 clock);
	out_cost("alloc_skb_fclone", n,
		 COST(, d = alloc_skb_fclone(MAX_TCP_HEADER, GFP_ATOMIC), __kfree_skb(d)), clock);
	out_cost("skb_clone_companion", n, COST(, c = skb_clone(skb, GFP_ATOMIC), __kfree_skb(c)),
		 clock);
	out_cost("free_companion", n, COST(c = skb_clone(skb, GFP_ATOMIC), __kfree_skb(c), ),
		 clock);
	c = skb_clone(skb, GFP_ATOMIC);
	out_cost("skb_clone_shell", n, COST(, d = skb_clone(skb, GFP_ATOMIC), __kfree_skb(d)),
		 clock);
	__kfree_skb(c);
	out_cost("free_fclone_original", n, COST(d = built(n, true), __kfree_skb(d), ), clock);
	out_cost("pskb_copy", n, COST(, d = pskb_copy(skb, GFP_ATOMIC), __kfree_skb(d)), clock);
	out_cost("skb_copy", n, COST(, d = skb_copy(skb, GFP_ATOMIC), __kfree_skb(d)), clock);
	__kfree_skb(skb);
}

static void expanding(int n, u32 clock)
{
	struct sk_buff *skb, *c;

	out_cost("pskb_expand_head", n,
		 COST(skb = built(n, true), pskb_expand_head(skb, 0, 0, GFP_ATOMIC),
		      __kfree_skb(skb)),
		 clock);
	out_cost("pskb_expand_head_cloned", n,
		 COST(skb = built(n, true); c = skb_clone(skb, GFP_ATOMIC),
					    pskb_expand_head(skb, 0, 0, GFP_ATOMIC), __kfree_skb(c);
		      __kfree_skb(skb)),
		 clock);
	out_cost("skb_unclone_keeptruesize_cloned", n,
		 COST(skb = built(n, true);
		      c = skb_clone(skb, GFP_ATOMIC), o_unclone_kt(skb), __kfree_skb(c);
		      __kfree_skb(skb)),
		 clock);
}

static void cutting(int n, u32 clock)
{
	struct sk_buff *skb, *c;

	if (!n)
		return;
	out_cost("tcp_trim_head", n,
		 COST(skb = built(n, true), o_tcp_trim_head(o_sk, skb, 1448), __kfree_skb(skb)),
		 clock);
	out_cost("tcp_trim_head_cloned", n,
		 COST(skb = built(n, true); c = skb_clone(skb, GFP_ATOMIC),
					    o_tcp_trim_head(o_sk, skb, 1448), __kfree_skb(c);
		      __kfree_skb(skb)),
		 clock);
	out_cost("skb_split_half", n,
		 COST(skb = built(n, true);
		      c = alloc_skb(0, GFP_ATOMIC), skb_split(skb, c, skb->len / 2), __kfree_skb(c);
		      __kfree_skb(skb)),
		 clock);
	out_cost("skb_shift_all", n,
		 COST(skb = built(n, true);
		      c = built(0, true), o_skb_shift(c, skb, skb->len), __kfree_skb(c);
		      __kfree_skb(skb)),
		 clock);
	out_cost("pskb_trim_half", n,
		 COST(skb = built(n, true), pskb_trim(skb, skb->len / 2), __kfree_skb(skb)), clock);
	out_cost("__pskb_pull_tail_128", n,
		 COST(skb = built(n, true), __pskb_pull_tail(skb, 128), __kfree_skb(skb)), clock);
}

unsigned long oracle_yardstick(char *text, unsigned long room)
{
	static const int frags[] = { 0, 1, 2, 16, 17 };
	u32 clock;
	int i;

	out_text = text;
	out_room = room;
	out_len = 0;
	o_sock_reset();
	clock = COST(, , );
	out_cost("clock", 0, 2 * clock, clock);
	per_page(clock);
	for (i = 0; i < ARRAY_SIZE(frags); i++) {
		making(frags[i], clock);
		expanding(frags[i], clock);
		cutting(frags[i], clock);
	}
	return out_len;
}
