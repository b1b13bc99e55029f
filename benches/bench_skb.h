/* SPDX-License-Identifier: MIT */
/* What the sk_buff benchmarks share: keys, the state of a case, shapes of sk_buffs, the check. */
#ifndef BENCH_SKB_H
#define BENCH_SKB_H

#include "benches/harness/bench.h"

#include "skb/page_frag.h"
#include "skb/skb_check.h"
#include "skb/skb_zcopy.h"

#include <stdlib.h>
#include <string.h>

extern const char *const skb_era_words[];

#define KEY_ERA(grid_)                                                                           \
	{                                                                                        \
		"era", skb_era_words, 0, 0, "6.12", grid_, "the kernel version whose rules hold" \
	}
#define KEY_FRAGS(def_, grid_)                                                 \
	{                                                                      \
		"frags", NULL, 0, MAX_SKB_FRAGS, def_, grid_, "page fragments" \
	}
#define KEY_CLONED                                                             \
	{                                                                      \
		"cloned", NULL, 0, 1, "1", "0,1", "1: a clone shares the head" \
	}
#define KEY_HEAD                                                                             \
	{                                                                                    \
		"head", NULL, 0, 4096, "320", "320", "bytes from head to tail, all headroom" \
	}
#define KEY_LIST                                                                    \
	{                                                                           \
		"list", NULL, 0, 17, "0", "0", "members of the frag_list, 64 bytes" \
	}
#define KEY_UARG                                                                              \
	{                                                                                     \
		"uarg", NULL, 0, 1, "0", "0", "1: zerocopy frags that a clone may share, too" \
	}

#define SKB_MEMBER_BYTES 64

struct skb_ctx {
	struct sk_buff *skb;
	struct sk_buff *other; /* the clone or copy between two phases */
	struct sk_buff *second; /* the other half of a split or shift */
	struct sk_buff *second_clone;
	struct page *page[MAX_SKB_FRAGS]; /* what the frags lie in; the case's reference */
	struct page_frag_cache frag;
	struct ubuf_info_msgzc uarg; /* the case's reference */
	enum skb_era era;
	unsigned int frags, size, list;
	bool cloned;
	bool stolen; /* the head of `other` */
	u32 truesize; /* of skb in its warm state */
	void (*one)(void *ctx); /* phase by phase, for ledger and check */
};

/* The first N frags of SKB are the whole pages of the case, which holds a reference on each. */
void skb_case_fill(struct skb_ctx *c, struct sk_buff *skb, unsigned int n);

/* L members of SKB_MEMBER_BYTES linear bytes on SKB's frag_list. */
void skb_case_list(struct skb_ctx *c, struct sk_buff *skb, unsigned int l);

/* The state, with PAGES pages; NULL with a sentence in ERR if memory is short. */
struct skb_ctx *skb_case_create(const struct bench_args *args, unsigned int pages, char *err,
				size_t errlen);
void skb_case_destroy(void *ctx);

/* c->skb as keys frags, list, uarg and head (bytes of headroom) have it; the first of a pair. */
void skb_case_skb(struct skb_ctx *c, const struct bench_args *args, unsigned int head,
		  unsigned int tailroom, bool list, bool uarg);

/*
 * A case with one role. Its check runs ONE by its phases and looks at what is left: nothing in
 * `other`, geometry, one share of each head, one reference on each page for the case and one for
 * skb, one hold on each member, one reference on the ubuf_info for the case and one for skb.
 */
int skb_case_made(struct bench_case *out, struct skb_ctx *c, void (*span)(void *, u64),
		  void (*one)(void *));

#define BY_ERA(name)                                \
	{                                           \
		name##_3_4, name##_6_1, name##_6_12 \
	}

/* Each registers the operations of one file. */
void bench_skb_coalesce(void);
void bench_skb_data(void);
void bench_skb_ext(void);
void bench_skb_list(void);
void bench_skb_defer(void);
void bench_skb_page(void);
void bench_skb_pool(void);

#endif
