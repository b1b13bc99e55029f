/* SPDX-License-Identifier: MIT */
/*
 * What the traced build reports about memory that CPUs share.
 *
 * A program sets one sink before any of its CPUs runs; the plain build holds no trace of any of
 * this: skb_trace(), skb_event() and skb_fail() vanish there.
 *
 *   access   called BEFORE each access, so that a sink may switch virtual CPUs at that point
 *   event    called at the moment that something countable happens: a reference taken, a block freed
 *   fail     called where an allocation may fail; true makes it fail
 */
#ifndef SKB_TRACE_H
#define SKB_TRACE_H

#include <stdbool.h>
#include <stddef.h>

enum skb_access {
	SKB_LOAD,
	SKB_STORE,
	SKB_RMW, /* an atomic read-modify-write: a LOCK-prefixed instruction on x86 */
	SKB_RANGE_READ, /* a copy's source: one event, not one per word */
	SKB_RANGE_WRITE, /* a copy's destination */
};

/* Which object an access belongs to: the columns of the op ledger. */
enum skb_class {
	SKB_C_OTHER,
	SKB_C_PAGE, /* struct page, its reference count above all */
	SKB_C_DATAREF, /* skb_shared_info::dataref */
	SKB_C_SHINFO, /* the rest of skb_shared_info, seen by one sk_buff only */
	SKB_C_SHINFO_SH, /* the same while a live clone shares it */
	SKB_C_FCLONE, /* sk_buff_fclones::fclone_ref */
	SKB_C_USERS, /* sk_buff::users */
	SKB_C_WMEM, /* sock::sk_wmem_alloc */
	SKB_C_RMEM, /* sock::sk_rmem_alloc */
	SKB_C_SK_REFCNT, /* sock::sk_refcnt */
	SKB_C_MEM, /* the protocol's memory counter */
	SKB_C_EXT, /* skb_ext::refcnt */
	SKB_C_UARG, /* ubuf_info::refcnt */
	SKB_C_LLIST, /* lock-free lists */
	SKB_C_SLAB, /* the slub model's slab words */
	SKB_C_RING, /* ring indices between two CPUs */
	SKB_C_LOCK, /* locks other than the next two */
	SKB_C_LOCK_ZONE, /* the page allocator's zone lock */
	SKB_C_LOCK_PCP, /* the lock of a CPU's page lists */
	SKB_C_HEAD, /* bytes of an sk_buff's head */
	SKB_C_SHELL, /* struct sk_buff itself */
	SKB_C_PAYLOAD, /* bytes of payload pages */
	SKB_C_NR
};

enum skb_event {
	SKB_EV_PAGE_GET, /* n references taken in one RMW */
	SKB_EV_PAGE_PUT, /* n references dropped in one RMW */
	SKB_EV_PAGE_ALLOC, /* a block of 2^n pages taken from the page allocator */
	SKB_EV_PAGE_FREE, /* a block of 2^n pages given back to it */
	SKB_EV_OBJ_ALLOC, /* an object of n bytes */
	SKB_EV_OBJ_FREE,
	SKB_EV_LOCK, /* a lock taken; n is its enum skb_class */
	SKB_EV_NR
};

/* Where an allocation may fail. */
enum skb_site {
	SKB_SITE_SHELL, /* a single sk_buff */
	SKB_SITE_FCLONE, /* an fclone pair */
	SKB_SITE_HEAD, /* a head of any size */
	SKB_SITE_EXT, /* an object of extensions */
	SKB_SITE_PAGE, /* an order-0 page */
	SKB_SITE_PAGE_HIGH, /* a block of order 1 and above */
	SKB_SITE_NR
};

struct skb_trace_sink {
	void (*access)(enum skb_access kind, enum skb_class cls, const volatile void *addr,
		       size_t bytes);
	void (*event)(enum skb_event ev, const void *addr, size_t n);
	bool (*fail)(enum skb_site site);
};

#ifdef SKB_TRACED
extern const struct skb_trace_sink *skb_trace_sink; /* never NULL: starts as one that ignores all */
#define skb_trace(kind, cls, addr, bytes) skb_trace_sink->access(kind, cls, addr, bytes)
#define skb_event(ev, addr, n)		  skb_trace_sink->event(ev, addr, n)
#define skb_fail(site)			  skb_trace_sink->fail(site)
#else
#define skb_trace(kind, cls, addr, bytes) ((void)(cls))
#define skb_event(ev, addr, n)		  ((void)0)
#define skb_fail(site)			  false
#endif

#endif
