/* SPDX-License-Identifier: MIT */
#include "sim/coro.h"
#include "sim/coro_switch.h"

#include <string.h>

#if defined(__x86_64__)

/* System V ABI: rbx, rbp, r12 to r15 are the callee's to keep. */
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".type skb_coro_switch, @function\n"
	".globl skb_coro_switch\n"
	"skb_coro_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size skb_coro_switch, . - skb_coro_switch\n"
	".popsection\n");

enum { SAVED_WORDS = 6, ENTRY_WORD = 6, FRAME_WORDS = 8 };

#elif defined(__aarch64__)

/* AAPCS64: x19 to x28, the frame pointer, the link register and d8 to d15. */
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".type skb_coro_switch, %function\n"
	".globl skb_coro_switch\n"
	"skb_coro_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size skb_coro_switch, . - skb_coro_switch\n"
	".popsection\n");

enum { SAVED_WORDS = 20, ENTRY_WORD = 11, FRAME_WORDS = 20 };

#endif

#ifndef CORO_UCONTEXT

void skb_coro_switch(void **save_sp, void *load_sp);

const char *coro_switch_name(void)
{
#ifdef __x86_64__
	return "x86-64";
#else
	return "aarch64";
#endif
}

void coro_point_init(struct coro_point *p, void *stack, size_t bytes, void (*entry)(void))
{
	/*
	 * As if ENTRY had switched away before its first instruction. On x86-64 a return address
	 * of 0 lies above it, so that the stack is as aligned as after a call.
	 */
	u64 *top = (u64 *)(((uintptr_t)stack + bytes) & ~(uintptr_t)15);
	u64 *frame = top - FRAME_WORDS;

	_Static_assert(ENTRY_WORD < FRAME_WORDS && SAVED_WORDS <= FRAME_WORDS, "fits");
	memset(frame, 0, FRAME_WORDS * sizeof(*frame));
	frame[ENTRY_WORD] = (u64)(uintptr_t)entry;
	p->sp = frame;
}

void coro_point_switch(struct coro_point *from, struct coro_point *to)
{
	skb_coro_switch(&from->sp, to->sp);
}

#else

const char *coro_switch_name(void)
{
	return "ucontext";
}

void coro_point_init(struct coro_point *p, void *stack, size_t bytes, void (*entry)(void))
{
	BUG_ON(getcontext(&p->uc));
	p->uc.uc_stack.ss_sp = stack;
	p->uc.uc_stack.ss_size = bytes;
	p->uc.uc_link = NULL;
	makecontext(&p->uc, entry, 0);
}

void coro_point_switch(struct coro_point *from, struct coro_point *to)
{
	BUG_ON(swapcontext(&from->uc, &to->uc));
}

#endif
