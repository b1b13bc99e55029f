/* SPDX-License-Identifier: MIT */
/*
 * struct sk_buff, struct skb_shared_info and the fclone pair: layout, reference counts, accessors.
 *
 * Kernel: include/linux/skbuff.h. The offsets are 6.18's on x86-64 and hold in every era, so that
 * what an era changes is its rules and not its cache lines. Fields that no modelled operation
 * touches are kept as room.
 *
 * Reference counts, and which CPU may touch what
 *
 *   users       holders of one sk_buff. An operation that replaces the head needs users == 1.
 *   dataref     sk_buffs that share a head and its shared info: low half all of them, high half
 *               those that only look at the payload (nohdr).
 *   fclone_ref  of a pair: 1 while one of the two lives, 2 while both do.
 *   _refcount   of a page: once for each shared info whose frags name it, however many sk_buffs
 *               share that info.
 *   refcnt      of a ubuf_info (skb_zcopy.h): once for each shared info that names it.
 *
 *   An sk_buff has one owner at a time, the only one to call anything here on it. Two owners meet
 * in dataref, fclone_ref and the pages of a shared info, which is why the table below holds:
 *
 *                            skb_clone(o)  pskb_expand_head(o)  kfree_skb(o)  kfree_skb(c)
 *   skb_clone(o)                  X                X                 X             -
 *   pskb_expand_head(o)           X                X                 X             -
 *   kfree_skb(o)                  X                X                 X             -
 *   kfree_skb(c), c a clone of o  -                -                 -             X for one c
 *
 *   X: the owner of o serialises.  -: safe on two CPUs at once; whichever drops the last share of
 * the head puts its pages and frees it.
 */
#ifndef SKB_SKBUFF_H
#define SKB_SKBUFF_H

#include "skb/era.h"
#include "skb/llist.h"
#include "skb/obj.h"
#include "skb/page_pool.h"

#include <errno.h>

#ifndef MAX_SKB_FRAGS
#define MAX_SKB_FRAGS 17
#endif

struct sock;
struct sk_buff;
struct skb_ext;

struct skb_list_node {
	struct skb_list_node *next, *prev;
};

struct sk_buff {
	/* line 0: queueing; seq and end_seq of TCP's control block are in it too */
	union {
		struct {
			struct sk_buff *next;
			struct sk_buff *prev;
			union {
				void *dev;
				unsigned long dev_scratch;
			};
		};
		unsigned long rbnode[3];
		struct skb_list_node list;
		struct llist_node ll_node; /* on a lock-free list: next is it, too */
	};
	struct sock *sk;
	u64 tstamp;
	char cb[48] __attribute__((aligned(8)));

	union {
		struct {
			unsigned long _skb_refdst;
			void (*destructor)(struct sk_buff *skb);
		};
		struct skb_list_node tcp_tsorted_anchor; /* while in a write or rtx queue */
	};
	unsigned long _nfct;
	unsigned int len; /* bytes of payload in all: linear, frags and frag_list */
	unsigned int data_len; /* those not linear */
	u16 mac_len;
	u16 hdr_len; /* writable header of a clone */
	u16 queue_mapping;
	u8 cloned : 1, /* the head may be shared: dataref tells */
		nohdr : 1, /* looks at the payload only */
		fclone : 2, peeked : 1, head_frag : 1, pfmemalloc : 1, pp_recycle : 1;
	u8 active_extensions;

	/* line 2: what a clone takes over in one copy, skb_headers_size bytes from here */
	struct {
		u8 pkt_type;
		u8 ip_summed;
		u8 slow_gro : 1; /* what GRO cannot pass over: extensions */
		u8 pad0[3];
		u16 alloc_cpu; /* the CPU that attached the head */
		u32 csum;
		u32 priority;
		int skb_iif;
		u32 hash;
		/* The model's own: where the head came from, as its allocator must be told. */
		u32 head_size;
		u16 head_nid;
		u16 pad1;
		u32 mark;
		u16 protocol;
		u16 transport_header, network_header, mac_header;
		u32 pad2[3];
	} headers;
	u32 tail; /* offsets from head */
	u32 end;

	/* line 3 */
	unsigned char *head;
	unsigned char *data;
	unsigned int truesize; /* bytes charged for this sk_buff */
	refcount_t users;
	struct skb_ext *extensions;
};

#define SKB_ASSERT_OFFSET(field, at) \
	_Static_assert(offsetof(struct sk_buff, field) == (at), #field " is at " #at " in 6.18")
SKB_ASSERT_OFFSET(next, 0);
SKB_ASSERT_OFFSET(prev, 8);
SKB_ASSERT_OFFSET(dev, 16);
SKB_ASSERT_OFFSET(sk, 24);
SKB_ASSERT_OFFSET(tstamp, 32);
SKB_ASSERT_OFFSET(cb, 40);
SKB_ASSERT_OFFSET(_skb_refdst, 88);
SKB_ASSERT_OFFSET(destructor, 96);
SKB_ASSERT_OFFSET(_nfct, 104);
SKB_ASSERT_OFFSET(len, 112);
SKB_ASSERT_OFFSET(data_len, 116);
SKB_ASSERT_OFFSET(mac_len, 120);
SKB_ASSERT_OFFSET(hdr_len, 122);
SKB_ASSERT_OFFSET(queue_mapping, 124);
SKB_ASSERT_OFFSET(active_extensions, 127);
SKB_ASSERT_OFFSET(headers, 128);
SKB_ASSERT_OFFSET(headers.alloc_cpu, 134);
SKB_ASSERT_OFFSET(tail, 184);
SKB_ASSERT_OFFSET(end, 188);
SKB_ASSERT_OFFSET(head, 192);
SKB_ASSERT_OFFSET(data, 200);
SKB_ASSERT_OFFSET(truesize, 208);
SKB_ASSERT_OFFSET(users, 212);
SKB_ASSERT_OFFSET(extensions, 216);
_Static_assert(sizeof(struct sk_buff) == 224, "struct sk_buff is 224 bytes in 6.18");

enum {
	SKB_FCLONE_UNAVAILABLE, /* a shell of its own */
	SKB_FCLONE_ORIG, /* the first of a pair */
	SKB_FCLONE_CLONE, /* the companion */
};

enum { CHECKSUM_NONE, CHECKSUM_UNNECESSARY, CHECKSUM_COMPLETE, CHECKSUM_PARTIAL };

/* What the slabs hold: the model notes the node behind the kernel's bytes, in room that the slab
 * leaves free. */
struct sk_buff_shell {
	struct sk_buff skb;
	u16 nid;
} ____cacheline_aligned;

/* The companion starts on line 3 of the first, as in the kernel: the two share that line. */
struct sk_buff_fclones {
	struct sk_buff skb1;
	struct sk_buff skb2;
	refcount_t fclone_ref;
	u32 pad;
	u16 nid;
} ____cacheline_aligned;

_Static_assert(sizeof(struct sk_buff_shell) == 256, "a shell is a slab object of 256 bytes");
_Static_assert(sizeof(struct sk_buff_fclones) == 512, "a pair is a slab object of 512 bytes");
_Static_assert(offsetof(struct sk_buff_fclones, fclone_ref) == 448, "fclone_ref at 448 in 6.18");

typedef struct skb_frag {
	struct page *page;
	u32 len;
	u32 offset;
#ifdef SKB_FRAG_PAD
	u64 pad; /* to prove that nothing relies on 16 bytes */
#endif
} skb_frag_t;

#define SKB_DATAREF_SHIFT 16
#define SKB_DATAREF_MASK  ((1 << SKB_DATAREF_SHIFT) - 1)

/* skb_shared_info::flags */
#define SKBFL_ZEROCOPY_ENABLE	(1 << 0) /* destructor_arg is a ubuf_info: skb_zcopy.h */
#define SKBFL_SHARED_FRAG	(1 << 1) /* pages may be written by others too */
#define SKBFL_PURE_ZEROCOPY	(1 << 2) /* no byte was copied: pages are not charged */
#define SKBFL_DONT_ORPHAN	(1 << 3) /* a clone may share the user's pages */
#define SKBFL_MANAGED_FRAG_REFS (1 << 4) /* frags hold no references: the ubuf_info's owner does */
#define SKBFL_ZEROCOPY_FRAG	(SKBFL_ZEROCOPY_ENABLE | SKBFL_SHARED_FRAG)
#define SKBFL_ALL_ZEROCOPY \
	(SKBFL_ZEROCOPY_FRAG | SKBFL_PURE_ZEROCOPY | SKBFL_DONT_ORPHAN | SKBFL_MANAGED_FRAG_REFS)

struct skb_shared_info {
	u8 flags;
	u8 meta_len;
	u8 nr_frags;
	u8 tx_flags;
	u16 gso_size;
	u16 gso_segs;
	struct sk_buff *frag_list;
	u64 hwtstamps;
	u32 gso_type;
	u32 tskey;
	atomic_t dataref; /* all before it is zeroed when a head is made */
	u32 xdp_frags_size;
	void *destructor_arg; /* with SKBFL_ZEROCOPY_ENABLE the ubuf_info */
	skb_frag_t frags[MAX_SKB_FRAGS]; /* frag 0 shares dataref's line */
};

_Static_assert(MAX_SKB_FRAGS >= 17 && MAX_SKB_FRAGS <= 45, "the kernel's option allows 17 to 45");
_Static_assert(offsetof(struct skb_shared_info, frag_list) == 8, "frag_list at 8");
_Static_assert(offsetof(struct skb_shared_info, gso_type) == 24, "gso_type at 24");
_Static_assert(offsetof(struct skb_shared_info, dataref) == 32, "dataref at 32");
_Static_assert(offsetof(struct skb_shared_info, destructor_arg) == 40, "destructor_arg at 40");
_Static_assert(offsetof(struct skb_shared_info, frags) == 48, "frags at 48");

#define SKB_DATA_ALIGN(x)    ALIGN((size_t)(x), SMP_CACHE_BYTES)
#define SKB_SHINFO_SIZE	     SKB_DATA_ALIGN(sizeof(struct skb_shared_info))
#define SKB_WITH_OVERHEAD(x) ((x)-SKB_SHINFO_SIZE)
#define SKB_HEAD_ALIGN(x)    (SKB_DATA_ALIGN(x) + SKB_SHINFO_SIZE)
#define SKB_TRUESIZE(x)	     ((x) + SKB_DATA_ALIGN(sizeof(struct sk_buff)) + SKB_SHINFO_SIZE)

#define MAX_HEADER     176 /* what layers below TCP may prepend */
#define MAX_TCP_HEADER 320 /* headroom of a TCP transmit sk_buff */
#define NET_SKB_PAD    64

/* 6.3 and later: heads up to this come from a slab of their own (704 bytes with 17 frags). */
#define SKB_SMALL_HEAD_SIZE \
	SKB_HEAD_ALIGN(max((size_t)MAX_TCP_HEADER, (size_t)MAX_HEADER + 128 + 64))

#ifndef SKB_FRAG_PAD
_Static_assert(MAX_SKB_FRAGS != 17 || sizeof(struct skb_shared_info) == 320,
	       "320 bytes with 17 frags");
#endif

/* --- accessors
 * ------------------------------------------------------------------------------------------- */

static __always_inline unsigned char *skb_end_pointer(const struct sk_buff *skb)
{
	return skb->head + skb->end;
}

static __always_inline unsigned int skb_end_offset(const struct sk_buff *skb)
{
	return skb->end;
}

static __always_inline unsigned char *skb_tail_pointer(const struct sk_buff *skb)
{
	return skb->head + skb->tail;
}

static __always_inline struct skb_shared_info *skb_shinfo(const struct sk_buff *skb)
{
	return (struct skb_shared_info *)skb_end_pointer(skb);
}

static __always_inline unsigned int skb_headlen(const struct sk_buff *skb)
{
	return skb->len - skb->data_len;
}

static __always_inline unsigned int skb_headroom(const struct sk_buff *skb)
{
	return skb->data - skb->head;
}

static __always_inline unsigned int skb_tailroom(const struct sk_buff *skb)
{
	return skb->data_len ? 0 : skb->end - skb->tail;
}

static __always_inline bool skb_is_nonlinear(const struct sk_buff *skb)
{
	return skb->data_len;
}

static __always_inline void skb_reset_tail_pointer(struct sk_buff *skb)
{
	skb->tail = skb->data - skb->head;
}

static __always_inline struct sk_buff_fclones *skb_fclones(const struct sk_buff *skb)
{
	return skb->fclone == SKB_FCLONE_CLONE ? container_of(skb, struct sk_buff_fclones, skb2)
					       : container_of(skb, struct sk_buff_fclones, skb1);
}

/*
 * Accesses to fields of a shared info, which CPUs share while a clone lives: the ledger counts such
 * stores apart. The class is only worked out in the traced build.
 */
#ifdef SKB_TRACED
static __always_inline enum skb_class skb_shinfo_class(const struct sk_buff *skb)
{
	int dataref = __atomic_load_n(&skb_shinfo(skb)->dataref.counter, __ATOMIC_RELAXED);

	/* 0 in the hands of the last owner. */
	return skb->cloned && (dataref & SKB_DATAREF_MASK) > 1 ? SKB_C_SHINFO_SH : SKB_C_SHINFO;
}
#else
#define skb_shinfo_class(skb) SKB_C_SHINFO
#endif
#define shinfo_read(skb, field)	    skb_load(&skb_shinfo(skb)->field, skb_shinfo_class(skb))
#define shinfo_write(skb, field, v) skb_store(&skb_shinfo(skb)->field, v, skb_shinfo_class(skb))

static __always_inline bool skb_has_frag_list(const struct sk_buff *skb)
{
	return shinfo_read(skb, frag_list) != NULL;
}

/* True while another sk_buff shares the head. Reads only; for the owner of SKB. */
static __always_inline bool skb_cloned(const struct sk_buff *skb)
{
	return skb->cloned && (atomic_read_acquire(&skb_shinfo(skb)->dataref, SKB_C_DATAREF) &
			       SKB_DATAREF_MASK) != 1;
}

/* True while another sk_buff shares the header room: a clone of a header-released original does not
 * count it. */
static __always_inline bool skb_header_cloned(const struct sk_buff *skb)
{
	int dataref;

	if (!skb->cloned)
		return false;
	dataref = atomic_read_acquire(&skb_shinfo(skb)->dataref, SKB_C_DATAREF);
	return (dataref & SKB_DATAREF_MASK) - (dataref >> SKB_DATAREF_SHIFT) != 1;
}

/* True if others hold SKB too. */
static __always_inline bool skb_shared(const struct sk_buff *skb)
{
	return refcount_read(&skb->users, SKB_C_USERS) != 1;
}

/* One holder more; the caller is one. */
static __always_inline struct sk_buff *skb_get(struct sk_buff *skb)
{
	refcount_inc(&skb->users, SKB_C_USERS);
	return skb;
}

/* True if the caller was the last holder; reads only in that case. NULL is nobody's. */
static __always_inline bool skb_unref(struct sk_buff *skb)
{
	if (unlikely(!skb))
		return false;
	if (likely(atomic_read_acquire(&skb->users.refs, SKB_C_USERS) == 1))
		return true;
	return refcount_dec_and_test(&skb->users, SKB_C_USERS);
}

/*
 * True while the companion of an fclone original is still below TCP (in a qdisc or a NIC's ring)
 * for socket SK. A driver that orphaned the companion cleared its sk, so that it does not count.
 * The companion's owner writes that field; the answer may be stale by the time it is used.
 */
static __always_inline bool skb_fclone_busy(const struct sock *sk, const struct sk_buff *skb)
{
	const struct sk_buff_fclones *f;

	if (skb->fclone != SKB_FCLONE_ORIG)
		return false;
	f = container_of(skb, struct sk_buff_fclones, skb1);
	return atomic_read_acquire(&f->fclone_ref.refs, SKB_C_FCLONE) > 1 &&
	       skb_load(&f->skb2.sk, SKB_C_SHELL) == sk;
}

/* --- moving the ends of the linear part
 * ----------------------------------------------------------------- */

/* N bytes of headroom on an empty SKB. */
static __always_inline void skb_reserve(struct sk_buff *skb, unsigned int n)
{
	skb->data += n;
	skb->tail += n;
}

/* Ends the program: N bytes do not fit behind the tail of SKB. */
__attribute__((noreturn, cold)) void skb_over_panic(const struct sk_buff *skb, unsigned int n);

/*
 * N bytes more at the tail of a linear SKB; returns where they are. BUG without the room, with the
 * sizes: ask skb_tailroom() before.
 */
static __always_inline void *skb_put(struct sk_buff *skb, unsigned int n)
{
	unsigned char *p = skb_tail_pointer(skb);

	BUG_ON(skb_is_nonlinear(skb));
	if (unlikely(skb->tail + n > skb->end))
		skb_over_panic(skb, n);
	skb->tail += n;
	skb->len += n;
	return p;
}

/* N bytes more in front; BUG without the headroom. */
static __always_inline void *skb_push(struct sk_buff *skb, unsigned int n)
{
	BUG_ON(skb_headroom(skb) < n);
	skb->data -= n;
	skb->len += n;
	return skb->data;
}

/* N bytes less in front; they stay as headroom. BUG if the linear part is shorter. */
static __always_inline void *__skb_pull(struct sk_buff *skb, unsigned int n)
{
	BUG_ON(n > skb_headlen(skb));
	skb->len -= n;
	skb->data += n;
	return skb->data;
}

/* --- frags
 * ------------------------------------------------------------------------------------------------
 */

static __always_inline void __skb_frag_ref(skb_frag_t *frag)
{
	get_page(frag->page);
}

/* RECYCLE: of an sk_buff that gives pages back to their page_pool, if they are of one. */
static __always_inline void __skb_frag_unref(const enum skb_era era, skb_frag_t *frag, bool recycle)
{
	if (era >= ERA_6_1 && recycle && napi_pp_put_page(era, frag->page))
		return;
	put_page(frag->page);
}

/* A reference more on the page of frag I; never one of a page_pool's own kind. */
static __always_inline void skb_frag_ref(struct sk_buff *skb, int i)
{
	__skb_frag_ref(&skb_shinfo(skb)->frags[i]);
}

/* One less; managed frags hold none. */
static __always_inline void skb_frag_unref(const enum skb_era era, struct sk_buff *skb, int i)
{
	if (likely(!(shinfo_read(skb, flags) & SKBFL_MANAGED_FRAG_REFS)))
		__skb_frag_unref(era, &skb_shinfo(skb)->frags[i], skb->pp_recycle);
}

/*
 * The references that SKB's frags and its head's page fragment have on pages of a page_pool are of
 * the pool's kind, and go back there with the last share of the head (page_pool.h; 5.14 and later).
 * For the sole owner, before SKB has frags. What makes a second shared info (pskb_expand_head() of a
 * cloned one, pskb_copy()) takes ordinary references, and that sk_buff does not recycle: while they
 * are there, the page does not return into the pool.
 */
static __always_inline void skb_mark_for_recycle(struct sk_buff *skb)
{
	skb->pp_recycle = 1;
}

/* Where the bytes of a frag lie. */
void *skb_frag_address(const skb_frag_t *frag);

/* Frag I becomes SIZE bytes at OFF of PAGE and the last one; the caller's reference goes with it.
 * Lengths stay. */
static __always_inline void skb_fill_page_desc(struct sk_buff *skb, int i, struct page *page,
					       u32 off, u32 size)
{
	skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

	skb_trace(SKB_RANGE_WRITE, SKB_C_SHINFO, frag, sizeof(*frag));
	frag->page = page;
	frag->offset = off;
	frag->len = size;
	shinfo_write(skb, nr_frags, (u8)(i + 1));
}

/* The same with the lengths: SIZE bytes of payload, TRUESIZE bytes charged. */
static __always_inline void skb_add_rx_frag(struct sk_buff *skb, int i, struct page *page, u32 off,
					    u32 size, u32 truesize)
{
	skb_fill_page_desc(skb, i, page, off, size);
	skb->len += size;
	skb->data_len += size;
	skb->truesize += truesize;
}

/*
 * True if bytes at OFF of PAGE continue the last of I frags, so that it can grow instead of a new
 * one. Never for a user's pages.
 */
static __always_inline bool skb_can_coalesce(struct sk_buff *skb, int i, const struct page *page,
					     u32 off)
{
	const skb_frag_t *frag;

	if (!i || shinfo_read(skb, flags) & SKBFL_ZEROCOPY_ENABLE)
		return false;
	frag = &skb_shinfo(skb)->frags[i - 1];
	return page == frag->page && off == frag->offset + frag->len;
}

/*
 * SKB will only look at its payload from now on, so that a clone may write the headroom. For the
 * sole owner, before any clone.
 */
static __always_inline void __skb_header_release(struct sk_buff *skb)
{
	skb->nohdr = 1;
	atomic_set(&skb_shinfo(skb)->dataref, 1 + (1 << SKB_DATAREF_SHIFT), SKB_C_DATAREF);
}

/* --- making (skb_alloc.c)
 * --------------------------------------------------------------------------------- */

SKB_ERA_DECLARE(struct sk_buff *, __alloc_skb, unsigned int size, bool fclone, int node);
SKB_ERA_DECLARE(struct sk_buff *, build_skb, void *data, unsigned int frag_size);

/*
 * An empty sk_buff with room for SIZE linear bytes, its shell and head on NODE (NUMA_NO_NODE: the
 * calling CPU's). The head is rounded up to its bucket, and end with it. NULL if memory is short;
 * nothing is leaked. Kernel: __alloc_skb(), net/core/skbuff.c.
 */
static __always_inline struct sk_buff *alloc_skb(const enum skb_era era, unsigned int size,
						 int node)
{
	return SKB_ERA_CALL(era, __alloc_skb, size, false, node);
}

/* The same as the first of a pair, whose companion a later skb_clone() takes without an allocation.
 */
static __always_inline struct sk_buff *alloc_skb_fclone(const enum skb_era era, unsigned int size,
							int node)
{
	return SKB_ERA_CALL(era, __alloc_skb, size, true, node);
}

/*
 * An sk_buff around DATA, FRAG_SIZE bytes of a page block of which the caller hands over one
 * reference (FRAG_SIZE includes the shared info and is at least SKB_SHINFO_SIZE). NULL if no shell
 * is to be had: DATA stays the caller's. A head from kmalloc (FRAG_SIZE 0 in the kernel) is left
 * out.
 */
static __always_inline struct sk_buff *build_skb(const enum skb_era era, void *data,
						 unsigned int frag_size)
{
	return SKB_ERA_CALL(era, build_skb, data, frag_size);
}

/* Heads, for the operations that make one: see skb_head.h. */

/* --- clone and copy (skb_clone.c, skb_copy.c)
 * ------------------------------------------------------------- */

SKB_ERA_DECLARE(struct sk_buff *, skb_clone, struct sk_buff *skb);
SKB_ERA_DECLARE(struct sk_buff *, skb_morph, struct sk_buff *dst, struct sk_buff *src);
SKB_ERA_DECLARE(struct sk_buff *, skb_copy, struct sk_buff *skb);
SKB_ERA_DECLARE(struct sk_buff *, __pskb_copy, struct sk_buff *skb, unsigned int headroom);

/*
 * A second sk_buff on the same head and pages: the companion if SKB is the first of a pair and it
 * is free, else a new shell. It has no socket and no destructor. One RMW (dataref); era 3.4 one
 * more on fclone_ref for a companion. Zerocopy frags that must not be shared are copied first
 * (skb_orphan_frags()). NULL if no shell or no page is to be had; SKB is then as before, but its
 * frags may have been copied.
 */
static __always_inline struct sk_buff *skb_clone(const enum skb_era era, struct sk_buff *skb)
{
	return SKB_ERA_CALL(era, skb_clone, skb);
}

/*
 * DST, of which the caller is the only holder, lets go of what it has and becomes a clone of SRC;
 * its shell stays. Returns DST. Cannot fail.
 */
static __always_inline struct sk_buff *skb_morph(const enum skb_era era, struct sk_buff *dst,
						 struct sk_buff *src)
{
	return SKB_ERA_CALL(era, skb_morph, dst, src);
}

/*
 * A copy that shares nothing: headroom and payload in one linear head. No RMW. NULL if memory is
 * short; SKB is as before.
 */
static __always_inline struct sk_buff *skb_copy(const enum skb_era era, struct sk_buff *skb)
{
	return SKB_ERA_CALL(era, skb_copy, skb);
}

/*
 * A copy with a head of its own, of HEADROOM bytes of room in front, and the same pages, one
 * reference more on each; members of a
 * frag_list are held, not copied, and a ubuf_info is held once more. The copy's frags may be
 * written by others if SKB's may. Zerocopy frags that must not be shared are copied first. NULL if
 * memory is short; SKB is as before, but its frags may have been copied.
 */
static __always_inline struct sk_buff *__pskb_copy(const enum skb_era era, struct sk_buff *skb,
						   unsigned int headroom)
{
	return SKB_ERA_CALL(era, __pskb_copy, skb, headroom);
}

/* The same with the headroom that SKB has. */
static __always_inline struct sk_buff *pskb_copy(const enum skb_era era, struct sk_buff *skb)
{
	return __pskb_copy(era, skb, skb_headroom(skb));
}

/* --- letting go (skb_release.c)
 * --------------------------------------------------------------------------- */

SKB_ERA_DECLARE(void, skb_release_data, struct sk_buff *skb);
SKB_ERA_DECLARE(void, __kfree_skb, struct sk_buff *skb);
SKB_ERA_DECLARE(void, kfree_skb, struct sk_buff *skb);
SKB_ERA_DECLARE(void, kfree_skb_list, struct sk_buff *segs);

/*
 * Drops SKB's share of its head; the last share puts the pages, the frag_list and the head. The
 * shell stays, with a head that must not be touched.
 */
static __always_inline void skb_release_data(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, skb_release_data, skb);
}

/* Frees SKB, of which the caller is the last holder: destructor, data, shell. */
static __always_inline void __kfree_skb(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, __kfree_skb, skb);
}

/* Drops one hold on SKB and frees it with the last. NULL: nothing happens. */
static __always_inline void kfree_skb(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, kfree_skb, skb);
}

/* The same for packets that were delivered: the kernel only tells drops from consumption in its
 * tracing. */
static __always_inline void consume_skb(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, kfree_skb, skb);
}

/* Drops one hold on every member of a list linked by next. */
static __always_inline void kfree_skb_list(const enum skb_era era, struct sk_buff *segs)
{
	SKB_ERA_CALL(era, kfree_skb_list, segs);
}

SKB_ERA_DECLARE(void, kfree_skb_partial, struct sk_buff *skb, bool head_stolen);

/*
 * Frees SKB, of which the caller is the last holder, after skb_try_coalesce() took what it holds:
 * all of it, or with HEAD_STOLEN destructor and shell alone.
 */
static __always_inline void kfree_skb_partial(const enum skb_era era, struct sk_buff *skb,
					      bool head_stolen)
{
	SKB_ERA_CALL(era, kfree_skb_partial, skb, head_stolen);
}

/* --- a head of one's own (skb_expand.c)
 * ------------------------------------------------------------------- */

SKB_ERA_DECLARE(int, pskb_expand_head, struct sk_buff *skb, int nhead, int ntail);
SKB_ERA_DECLARE(int, skb_unclone_keeptruesize, struct sk_buff *skb);

/*
 * Gives SKB a private head with NHEAD bytes more in front and NTAIL more behind; the pages stay
 * shared. 0, or -ENOMEM and SKB is as before, but that managed frags now hold their references. BUG
 * for a shared SKB or a negative NHEAD.
 */
static __always_inline int pskb_expand_head(const enum skb_era era, struct sk_buff *skb, int nhead,
					    int ntail)
{
	return SKB_ERA_CALL(era, pskb_expand_head, skb, nhead, ntail);
}

/* The head becomes private if it is shared. 0 or -ENOMEM as pskb_expand_head(). */
static __always_inline int skb_unclone(const enum skb_era era, struct sk_buff *skb)
{
	return skb_cloned(skb) ? pskb_expand_head(era, skb, 0, 0) : 0;
}

/* The same if others may look at the headers, too; 4.x and later. 0 or -ENOMEM. */
static __always_inline int skb_header_unclone(const enum skb_era era, struct sk_buff *skb)
{
	return skb_header_cloned(skb) ? pskb_expand_head(era, skb, 0, 0) : 0;
}

/*
 * The same as skb_unclone(), and truesize and the end of the head stay what they were, so that
 * what a socket was charged still holds (5.16 and later).
 */
static __always_inline int skb_unclone_keeptruesize(const enum skb_era era, struct sk_buff *skb)
{
	return skb_cloned(skb) ? SKB_ERA_CALL(era, skb_unclone_keeptruesize, skb) : 0;
}

/* --- one's own
 * ------------------------------------------------------------------------------ */

/*
 * An sk_buff that the caller alone holds: SKB itself, or else a clone of it, and the caller's hold
 * on SKB is gone. NULL if no shell is to be had: the hold is gone, too.
 */
static __always_inline struct sk_buff *skb_share_check(const enum skb_era era, struct sk_buff *skb)
{
	if (skb_shared(skb)) {
		struct sk_buff *n = skb_clone(era, skb);

		kfree_skb(era, skb);
		return n;
	}
	return skb;
}

/* The same for one whose head nobody shares: SKB itself, or a full copy of it. NULL as above. */
static __always_inline struct sk_buff *skb_unshare(const enum skb_era era, struct sk_buff *skb)
{
	if (skb_cloned(skb)) {
		struct sk_buff *n = skb_copy(era, skb);

		kfree_skb(era, skb);
		return n;
	}
	return skb;
}

/* --- trimming and pulling (skb_trim.c)
 * ------------------------------------------------------------------------------ */

SKB_ERA_DECLARE(int, ___pskb_trim, struct sk_buff *skb, u32 len);
SKB_ERA_DECLARE(void *, __pskb_pull_tail, struct sk_buff *skb, u32 delta);
SKB_ERA_DECLARE(void, skb_condense, struct sk_buff *skb);

/* A linear SKB keeps its first LEN bytes, if it has more. The bytes stay in the head. */
static __always_inline void skb_trim(struct sk_buff *skb, u32 len)
{
	if (skb->len <= len)
		return;
	BUG_ON(skb_is_nonlinear(skb));
	skb->len = len;
	skb->tail = skb->data - skb->head + len;
}

/*
 * SKB keeps its first LEN bytes, if it has more. With frags the head becomes private first; frags
 * and list members behind LEN are let go of, and an SKB without a socket is condensed (4.10 and
 * later). 0; or -ENOMEM: lengths and bytes are as before, the head may be private, and members of a
 * frag_list that others hold may be clones now. BUG for a shared SKB.
 */
static __always_inline int pskb_trim(const enum skb_era era, struct sk_buff *skb, u32 len)
{
	if (skb->len <= len)
		return 0;
	if (skb->data_len)
		return SKB_ERA_CALL(era, ___pskb_trim, skb, len);
	skb_trim(skb, len);
	return 0;
}

/*
 * Moves DELTA bytes (at most data_len, else BUG) from frags and frag_list to the tail of the linear
 * part, which is made private and enlarged if need be. Frags without bytes left are let go of.
 * Returns the new tail. NULL if memory is short: the payload is the same bytes, the head may be
 * private. truesize changes only as an expansion changes it. BUG for a shared SKB.
 */
static __always_inline void *__pskb_pull_tail(const enum skb_era era, struct sk_buff *skb,
					      u32 delta)
{
	return SKB_ERA_CALL(era, __pskb_pull_tail, skb, delta);
}

/* True if the first LEN bytes are linear now; false if there are fewer, or memory is short. */
static __always_inline bool pskb_may_pull(const enum skb_era era, struct sk_buff *skb, u32 len)
{
	if (likely(len <= skb_headlen(skb)))
		return true;
	if (unlikely(len > skb->len))
		return false;
	return __pskb_pull_tail(era, skb, len - skb_headlen(skb)) != NULL;
}

/* N bytes less in front, of all kinds; NULL as pskb_may_pull() is false, and then none. */
static __always_inline void *pskb_pull(const enum skb_era era, struct sk_buff *skb, u32 n)
{
	return pskb_may_pull(era, skb, n) ? __skb_pull(skb, n) : NULL;
}

/* All bytes become linear. 0 or -ENOMEM, as __pskb_pull_tail(). */
static __always_inline int skb_linearize(const enum skb_era era, struct sk_buff *skb)
{
	return !skb_is_nonlinear(skb) || __pskb_pull_tail(era, skb, skb->data_len) ? 0 : -ENOMEM;
}

/*
 * Lets go of all frags if their bytes fit behind the tail and nobody shares the head; then, and for
 * a linear SKB, truesize is what the head alone costs. Otherwise nothing. Cannot fail. Not in 3.4,
 * where it does nothing.
 */
static __always_inline void skb_condense(const enum skb_era era, struct sk_buff *skb)
{
	SKB_ERA_CALL(era, skb_condense, skb);
}

/* --- splitting (skb_split.c)
 * ------------------------------------------------------------------------------ */

/*
 * SKB keeps its first LEN bytes, the empty SKB1 gets the rest. An SKB with frags must not be
 * cloned, none may hold a frag_list (BUG), and SKB1 needs tailroom for linear bytes that move. Both
 * recycle pages, or neither does (BUG).
 * truesize is the caller's to divide. One get if the cut lies inside a frag, one more hold on a
 * ubuf_info, else no RMW at all; managed frags get their references first. SKB1's frags may be
 * written by others if SKB's may. Cannot fail.
 */
void skb_split(struct sk_buff *skb, struct sk_buff *skb1, u32 len);

/* --- shifting (skb_shift.c)
 * ------------------------------------------------------------------------------ */

SKB_ERA_DECLARE(int, skb_shift, struct sk_buff *tgt, struct sk_buff *skb, int shiftlen);

/*
 * Moves the first SHIFTLEN bytes (at most skb->len) of SKB, all of them in frags, to the end of
 * TGT; the lengths and truesize of both follow. A frag that continues TGT's last one grows it.
 * The owner of both calls it; owners of their clones may let go at the same time.
 *
 * Returns SHIFTLEN; or 0 if SKB has linear bytes, either has a ubuf_info, TGT's frags do not
 * suffice, memory for a private head is short, one but not both lost its pool's pages with a private
 * head, or SHIFTLEN is 0: then no byte, length or reference has changed, but either may have got a
 * private head. BUG if either has a frag_list, whose bytes would be left behind, or one recycles
 * pages and the other does not. Kernel: skb_shift(), net/core/skbuff.c.
 */
static __always_inline int skb_shift(const enum skb_era era, struct sk_buff *tgt,
				     struct sk_buff *skb, int shiftlen)
{
	return SKB_ERA_CALL(era, skb_shift, tgt, skb, shiftlen);
}

/* The same as era 6.12's, but that a frag which moves in part is held by a reference of the kind that
 * its release drops: what the file's head tells. */
int skb_shift_mirrored(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen);

/* --- coalescing (skb_coalesce.c)
 * ------------------------------------------------------------------------------ */

SKB_ERA_DECLARE(bool, skb_try_coalesce, struct sk_buff *to, struct sk_buff *from, bool *fragstolen,
		int *delta_truesize);

/*
 * Makes the bytes of FROM the end of TO: copied if TO has the tailroom, else by moving FROM's frags,
 * its head too if that is a page fragment and holds bytes. True: TO's lengths and truesize have
 * grown, *DELTA_TRUESIZE bytes (0 after a copy) are to be charged to TO's owner, and the caller, the
 * only holder of FROM, lets go of it by kfree_skb_partial(FROM, *FRAGSTOLEN) and nothing else. TO's
 * frags may be written by others if FROM's may and came along. One get for each frag of a FROM that
 * is cloned, else no RMW.
 *
 * False, and nothing has changed: TO is cloned; one of the two recycles pages into a page_pool and
 * the other does not; or the bytes do not fit behind TO's tail and either has a frag_list or a
 * ubuf_info, the frags are too many (with linear bytes in FROM one more), or FROM has linear bytes
 * in a head that is shared or no page fragment. Allocates nothing.
 *
 * The owner of both calls it; owners of FROM's clones may let go at the same time. Kernel:
 * skb_try_coalesce(), net/core/skbuff.c.
 */
static __always_inline bool skb_try_coalesce(const enum skb_era era, struct sk_buff *to,
					     struct sk_buff *from, bool *fragstolen,
					     int *delta_truesize)
{
	return SKB_ERA_CALL(era, skb_try_coalesce, to, from, fragstolen, delta_truesize);
}

#endif
