/* SPDX-License-Identifier: MIT */
/*
 * The kernel's small text files, read without malloc(), whose state a case that is timed later would see.
 *
 * ROOT is "" but for tests, which describe a machine in a directory. Any thread.
 */
#ifndef BENCH_SYSFILE_H
#define BENCH_SYSFILE_H

#include "skb/compiler.h"

/* ROOT/PATH into BUF, at most LEN - 1 bytes of it and a NUL. True if it could be read. */
bool sysfile_read(const char *root, const char *path, char *buf, size_t len);

/* The number behind the first KEY of TEXT that begins a word; false if there is none. */
bool sysfile_number(const char *text, const char *key, u64 *out);

/* The numbers below 64 of a list as in 0-2,5, as bits. */
u64 sysfile_bits(const char *text);

/* True if NUMBER is in such a list. */
bool sysfile_lists(const char *text, unsigned int number);

/* The bits of MASK as such a list. */
void sysfile_list(u64 mask, char *out, size_t len);

#endif
