/* SPDX-License-Identifier: MIT */
/* The switch itself: stacks and registers, nothing of what a coroutine is. For coro.c. */
#ifndef SIM_CORO_SWITCH_H
#define SIM_CORO_SWITCH_H

#include "skb/compiler.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define CORO_UCONTEXT
#endif

/* Where a flow of control goes on: its stack pointer, the registers lying there. */
struct coro_point {
#ifdef CORO_UCONTEXT
	ucontext_t uc;
#else
	void *sp;
#endif
};

/* Makes P the start of ENTRY on the stack of BYTES at STACK; ENTRY never returns. */
void coro_point_init(struct coro_point *p, void *stack, size_t bytes, void (*entry)(void));

/* Goes on at TO; the present point is kept in FROM, and this returns when somebody goes there. */
void coro_point_switch(struct coro_point *from, struct coro_point *to);

#endif
