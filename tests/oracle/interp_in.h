/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the parts of the interpreter share: interp.c, interp_sock.c. */
#ifndef TESTS_ORACLE_INTERP_IN_H
#define TESTS_ORACLE_INTERP_IN_H

#ifdef __KERNEL__
#include "env_kernel.h"
#else
#include "env_lib.h"
#endif
#include "interp.h"

#define OP_ENUM(name, form) O_##name,
enum { ORACLE_OPS(OP_ENUM) O_NR };

/* NAME=VALUE into the state, with a number behind NAME unless INDEX is negative. */
void out_number(const char *name, int index, long value);
/* A line of its own, in words only. */
void out_word(const char *word, int index);
/* All that is compared of SKB. */
void out_skb(const struct sk_buff *skb, int depth);

/* N, or what it is modulo LIMIT + 1. */
unsigned int wrap(unsigned int n, unsigned int limit);
/* A position in SKB: a number, or a boundary and a little more or less. */
unsigned int position(const struct sk_buff *skb, unsigned int n);

/* Blocks of pages that the program can still get. */
int free_blocks(void);
/* The block that PAGE lies in becomes the program's, if it is not yet. */
void note_page(struct page *page);
/* The first page of block ID, which it holds; its bytes. */
struct page *block_pages(int id, unsigned long *bytes);

/* Numbers that no two writes share, and that go on from program to program's end. */
unsigned int next_fill(void);

/*
 * --- interp_sock.c
 * ------------------------------------------------------------------------------------------
 */

/* Runs OP, one of sock_*, whose page register holds BLOCK. False if the state forbids it, and nothing was done. *RET: its result. */
bool sock_execute(const struct oracle_op *op, int block, int *ret);

/* The socket's state, if the program has one. */
void out_sock(void);

/* Nothing is left of the socket. */
void sock_finish(void);

#endif
