/* SPDX-License-Identifier: MIT */
/*
 * Coroutines: several flows of control on one thread, switched where the program says so.
 *
 * What virtual CPUs run on. A switch saves the registers that a call preserves and nothing else:
 * assembly on x86-64 and aarch64 (a few ns), swapcontext() elsewhere (about 260 ns). The address
 * and the thread sanitizer are told of each switch. The modes of the floating-point unit are not
 * switched: nobody here changes them. A stack has a page below it that cannot be touched.
 *
 *                    coro_resume(c)   coro_free(c)
 *   coro_resume(c)         X                X         X: the caller serialises
 *   coro_free(c)           X                X
 *
 * A coroutine may be resumed by different threads in turn, but what it holds of thread-local
 * variables is then its own affair; the model's CPU slot (skb/cpu.h) is one of them (sim/vcpu.h).
 */
#ifndef SIM_CORO_H
#define SIM_CORO_H

#include "skb/compiler.h"

#define CORO_MAX	 64 /* that coro_run() takes */
#define CORO_STACK_BYTES (256 * 1024) /* mapped; what is not touched costs nothing */

struct coro;

/*
 * A coroutine that will run FN(ARG) on a stack of STACK_BYTES (0: CORO_STACK_BYTES). It begins at
 * the first resume. NULL if there is no memory.
 */
struct coro *coro_new(void (*fn)(void *arg), void *arg, size_t stack_bytes);

/*
 * Runs C until it yields or returns. From outside of coroutines or from another one; C has not
 * returned and is not running (BUG).
 */
void coro_resume(struct coro *c);

/* Back to whoever resumed the running coroutine; returns at the next resume. BUG outside of one. */
void coro_yield(void);

/* The running coroutine, NULL outside of them all. */
struct coro *coro_self(void);

/* True once its function has returned. */
bool coro_done(const struct coro *c);

/* Its memory. It is not running; if it has not returned, whatever it still holds is lost. */
void coro_free(struct coro *c);

/*
 * Resumes NR (at most CORO_MAX) coroutines until all have returned. PICK(CTX, READY) names the next
 * one, READY having a bit for each that has not returned; PICK NULL: in turn. Returns the number of
 * resumes. BUG if PICK names one that is not ready.
 */
u64 coro_run(struct coro *const *c, unsigned int nr, unsigned int (*pick)(void *ctx, u64 ready),
	     void *ctx);

/* How coroutines are switched here: "x86-64", "aarch64" or "ucontext". */
const char *coro_switch_name(void);

#endif
