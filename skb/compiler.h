/* SPDX-License-Identifier: MIT */
/* The kernel's compiler vocabulary, as far as it is used here. */
#ifndef SKB_COMPILER_H
#define SKB_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define SMP_CACHE_BYTES	      64
#define ____cacheline_aligned __attribute__((aligned(SMP_CACHE_BYTES)))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a)			(sizeof(a) / sizeof((a)[0]))
#define ALIGN(x, a)			(((x) + (a)-1) & ~((__typeof__(x))(a)-1))
#define DIV_ROUND_UP(n, d)		(((n) + (d)-1) / (d))
#define min(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a < _b ? _a : _b;      \
	})
#define max(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a > _b ? _a : _b;      \
	})

/*
 * The kernel's BUG(): a broken precondition ends the program with its place and reason. It is part
 * of the operations as the kernel has it, in every build.
 */
__attribute__((noreturn, cold)) void skb_bug(const char *file, int line, const char *what);
#define BUG_ON(cond)                                        \
	do {                                                \
		if (unlikely(cond))                         \
			skb_bug(__FILE__, __LINE__, #cond); \
	} while (0)

#endif
