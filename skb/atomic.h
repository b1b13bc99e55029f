/* SPDX-License-Identifier: MIT */
/*
 * The memory seam: every access to memory that CPUs share goes through here, under the kernel's
 * names. Each operation takes one argument more than the kernel's: the class of object that it
 * touches.
 *
 *   plain   the bare instruction, on liburcu's uatomic; the class vanishes
 *   traced  SKB_TRACED: skb_trace() first, then the same instruction. liburcu's own inline lists are traced too:
 *           their uatomic_cmpxchg() and uatomic_xchg() are the macros redefined at the end
 *   tsan    ThreadSanitizer cannot see inline assembly, and liburcu 0.13 has nothing else on x86: its guards for
 *           assembly and volatile accessors are claimed, so that its generic operations on builtins come in
 *
 * Orderings are the kernel's: inc, add, set and read order nothing; operations that return a value
 * are fully ordered. A read that stands for "last owner" is smp_load_acquire(), never READ_ONCE()
 * and a barrier, since fences are invisible to ThreadSanitizer.
 *
 * _LGPL_SOURCE: liburcu's inline functions are used under the terms that its headers give for that
 * macro.
 */
#ifndef SKB_ATOMIC_H
#define SKB_ATOMIC_H

#if defined(URCU_UATOMIC_H) || defined(_URCU_UATOMIC_H)
#error "skb/atomic.h comes before any urcu header"
#endif
#ifndef _LGPL_SOURCE
#error "build with -D_LGPL_SOURCE: else liburcu's list operations are calls, untraced and invisible to TSan"
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SKB_TSAN 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define SKB_TSAN 1
#endif

#ifdef SKB_TSAN
#ifdef SKB_TRACED
#error "traced and tsan are different presets"
#endif
#define _URCU_SYSTEM_H
#define CMM_LOAD_SHARED(x)  __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define _CMM_LOAD_SHARED(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define CMM_STORE_SHARED(x, v)                                    \
	({                                                        \
		__typeof__(x) _cmm_v = (v);                       \
		__atomic_store_n(&(x), _cmm_v, __ATOMIC_RELAXED); \
		_cmm_v;                                           \
	})
#define _CMM_STORE_SHARED(x, v) CMM_STORE_SHARED(x, v)
#define _URCU_ARCH_UATOMIC_X86_H
#include <urcu/arch.h>
#include <urcu/uatomic/gcc.h>
#endif

#include <urcu/uatomic.h>

#include "skb/compiler.h"
#include "skb/trace.h"

/*
 * A plain object linked with a traced library would count nothing and say nothing: make it a link
 * error.
 */
#ifdef SKB_TRACED
#define SKB_BUILD skb_build_traced
#else
#define SKB_BUILD skb_build_plain
#endif
extern const int SKB_BUILD;
static const int *const skb_build_stamp __attribute__((used)) = &SKB_BUILD;

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long counter;
} atomic_long_t;

typedef struct {
	atomic_t refs;
} refcount_t;

#define ATOMIC_INIT(n) \
	{              \
		n      \
	}
#define REFCOUNT_INIT(n)  \
	{                 \
		{         \
			n \
		}         \
	}

/* Plain accesses to shared fields of word size or less, whole and exactly once. */
#define skb_load(p, cls)                                   \
	({                                                 \
		skb_trace(SKB_LOAD, cls, p, sizeof(*(p))); \
		__atomic_load_n(p, __ATOMIC_RELAXED);      \
	})
#define skb_store(p, v, cls)                                \
	do {                                                \
		skb_trace(SKB_STORE, cls, p, sizeof(*(p))); \
		__atomic_store_n(p, v, __ATOMIC_RELAXED);   \
	} while (0)
#define READ_ONCE(x)	 skb_load(&(x), SKB_C_OTHER)
#define WRITE_ONCE(x, v) skb_store(&(x), v, SKB_C_OTHER)

#define smp_load_acquire(p, cls)                           \
	({                                                 \
		skb_trace(SKB_LOAD, cls, p, sizeof(*(p))); \
		__atomic_load_n(p, __ATOMIC_ACQUIRE);      \
	})
#define smp_store_release(p, v, cls)                        \
	do {                                                \
		skb_trace(SKB_STORE, cls, p, sizeof(*(p))); \
		__atomic_store_n(p, v, __ATOMIC_RELEASE);   \
	} while (0)

/* Not cmm_smp_mb(): liburcu's is mfence, 19 ns where the kernel's locked add takes 2. */
#if defined(__x86_64__) && !defined(SKB_TSAN)
#define smp_mb() __asm__ __volatile__("lock; addl $0,-4(%%rsp)" ::: "memory", "cc")
#else
#define smp_mb() __sync_synchronize()
#endif

/* A copy between buffers is one event at each end, not one per word. Ranges must not overlap. */
#define skb_memcpy(dst, src, n, cls)                       \
	do {                                               \
		void *_dst = (dst);                        \
		const void *_src = (src);                  \
		size_t _n = (n);                           \
		skb_trace(SKB_RANGE_READ, cls, _src, _n);  \
		skb_trace(SKB_RANGE_WRITE, cls, _dst, _n); \
		__builtin_memcpy(_dst, _src, _n);          \
	} while (0)

static __always_inline int atomic_read(const atomic_t *v, enum skb_class cls)
{
	skb_trace(SKB_LOAD, cls, v, sizeof(*v));
	return uatomic_read(&v->counter);
}

static __always_inline int atomic_read_acquire(const atomic_t *v, enum skb_class cls)
{
	return smp_load_acquire(&v->counter, cls);
}

static __always_inline void atomic_set(atomic_t *v, int i, enum skb_class cls)
{
	skb_trace(SKB_STORE, cls, v, sizeof(*v));
	uatomic_set(&v->counter, i);
}

static __always_inline void atomic_inc(atomic_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	uatomic_inc(&v->counter);
}

static __always_inline void atomic_add(int i, atomic_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	uatomic_add(&v->counter, i);
}

static __always_inline int atomic_add_return(int i, atomic_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	return uatomic_add_return(&v->counter, i);
}

static __always_inline int atomic_sub_return(int i, atomic_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	return uatomic_sub_return(&v->counter, i);
}

static __always_inline bool atomic_sub_and_test(int i, atomic_t *v, enum skb_class cls)
{
	return atomic_sub_return(i, v, cls) == 0;
}

static __always_inline bool atomic_dec_and_test(atomic_t *v, enum skb_class cls)
{
	return atomic_sub_return(1, v, cls) == 0;
}

static __always_inline void atomic_long_add(long i, atomic_long_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	uatomic_add(&v->counter, i);
}

static __always_inline long atomic_long_add_return(long i, atomic_long_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	return uatomic_add_return(&v->counter, i);
}

static __always_inline void atomic_long_set(atomic_long_t *v, long i, enum skb_class cls)
{
	skb_trace(SKB_STORE, cls, v, sizeof(*v));
	uatomic_set(&v->counter, i);
}

static __always_inline long atomic_long_read(const atomic_long_t *v, enum skb_class cls)
{
	skb_trace(SKB_LOAD, cls, v, sizeof(*v));
	return uatomic_read(&v->counter);
}

static __always_inline long atomic_long_read_acquire(const atomic_long_t *v, enum skb_class cls)
{
	return smp_load_acquire(&v->counter, cls);
}

static __always_inline long atomic_long_sub_return(long i, atomic_long_t *v, enum skb_class cls)
{
	skb_trace(SKB_RMW, cls, v, sizeof(*v));
	return uatomic_sub_return(&v->counter, i);
}

static __always_inline int refcount_read(const refcount_t *r, enum skb_class cls)
{
	return atomic_read(&r->refs, cls);
}

static __always_inline void refcount_set(refcount_t *r, int n, enum skb_class cls)
{
	atomic_set(&r->refs, n, cls);
}

static __always_inline void refcount_inc(refcount_t *r, enum skb_class cls)
{
	atomic_inc(&r->refs, cls);
}

static __always_inline void refcount_add(int i, refcount_t *r, enum skb_class cls)
{
	atomic_add(i, &r->refs, cls);
}

static __always_inline bool refcount_sub_and_test(int i, refcount_t *r, enum skb_class cls)
{
	return atomic_sub_and_test(i, &r->refs, cls);
}

static __always_inline bool refcount_dec_and_test(refcount_t *r, enum skb_class cls)
{
	return atomic_dec_and_test(&r->refs, cls);
}

/* Both return the value found; the exchange took place if that equals OLD. */
#define cmpxchg(p, old, new, cls)                         \
	({                                                \
		skb_trace(SKB_RMW, cls, p, sizeof(*(p))); \
		skb_raw_cmpxchg(p, old, new);             \
	})
#define xchg(p, v, cls)                                   \
	({                                                \
		skb_trace(SKB_RMW, cls, p, sizeof(*(p))); \
		skb_raw_xchg(p, v);                       \
	})
#if defined(SKB_TRACED) && !defined(__x86_64__)
/* liburcu's own are macros of the names that are redefined below. */
#define skb_raw_cmpxchg(p, old, new) __sync_val_compare_and_swap(p, old, new)
#define skb_raw_xchg(p, v)	     __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#elif defined(SKB_TRACED)
#define skb_raw_cmpxchg(p, old, new) _uatomic_cmpxchg(p, old, new)
#define skb_raw_xchg(p, v)	     _uatomic_xchg(p, v)
#else
#define skb_raw_cmpxchg(p, old, new) uatomic_cmpxchg(p, old, new)
#define skb_raw_xchg(p, v)	     uatomic_xchg(p, v)
#endif

/* What a spinning CPU executes between two looks. */
#define cpu_relax() caa_cpu_relax()

/*
 * A spinlock: one RMW to take it when free, a store-release to let go. The waiter looks before it
 * tries again, so that the line stays shared until it is worth taking. Fair enough for the few CPUs
 * that meet on one lock here; the kernel's queued lock orders its waiters, this one does not.
 */
typedef struct {
	int locked;
} spinlock_t;

static __always_inline void spin_lock(spinlock_t *l, enum skb_class cls)
{
	skb_event(SKB_EV_LOCK, l, cls);
	while (unlikely(xchg(&l->locked, 1, cls)))
		while (skb_load(&l->locked, cls))
			cpu_relax();
	/* x86's xchg and the generic uatomic_xchg() are full barriers: pairs with spin_unlock(). */
}

static __always_inline void spin_unlock(spinlock_t *l, enum skb_class cls)
{
	smp_store_release(&l->locked, 0, cls);
}

#ifdef SKB_TRACED
/* liburcu's inline lists expand these names where they stand: report, then do. */
static __always_inline void skb_trace_urcu(const volatile void *p, size_t n)
{
	skb_trace(SKB_RMW, SKB_C_LLIST, p, n);
}
#undef uatomic_cmpxchg
#define uatomic_cmpxchg(addr, old, new) \
	(skb_trace_urcu(addr, sizeof(*(addr))), skb_raw_cmpxchg(addr, old, new))
#undef uatomic_xchg
#define uatomic_xchg(addr, v) (skb_trace_urcu(addr, sizeof(*(addr))), skb_raw_xchg(addr, v))
#endif

#endif
