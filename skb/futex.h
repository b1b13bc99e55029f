/* SPDX-License-Identifier: MIT */
/* Sleeping on a word of memory, within one process. */
#ifndef SKB_FUTEX_H
#define SKB_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleeps if WORD still holds SEEN, until it is woken; may also return without a reason. */
static inline void futex_wait(const void *word, unsigned int seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

/* Wakes NR of those who sleep on WORD, INT_MAX: all. */
static inline void futex_wake(const void *word, int nr)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr, NULL, NULL, 0);
}

#endif
