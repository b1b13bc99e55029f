/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Buffer programs: what the oracle runs on the library and on a real kernel.
 *
 * A program is a list of operations on registers: s0 to s5 hold sk_buffs, p0 to p5 blocks of pages.
 * Besides them it has one connected socket of TCP, whose peer it is itself: sock_ operations.
 * Every list of operations is a program: what a state forbids is skipped, the same way on both
 * sides, and a number beyond its operand's limit wraps around (n modulo limit + 1). So any part of
 * a program is one too, which is what makes shrinking easy.
 *
 * Text form, one operation a line: `name register... number...`; `#` begins a comment. A position
 * in an sk_buff may be written b2-1: the third boundary (the end of the linear part is b0, that of
 * frag k is b(k+1)), one byte before.
 */
#ifndef TESTS_ORACLE_PROG_H
#define TESTS_ORACLE_PROG_H

#define ORACLE_SKBS	      6
#define ORACLE_PAGES	      6
#define ORACLE_BLOCKS	      64 /* of pages, that one program may get */
#define ORACLE_MAX_ORDER      3
#define ORACLE_RING	      16 /* packets that lie below the socket; one more is lost */
#define ORACLE_UARGS	      2 /* users' buffers that are sent without a copy */
#define ORACLE_MAX_SEND	      100000
#define ORACLE_MAX_OPS	      4096
#define ORACLE_MAX_LEN	      65536 /* no operation makes an sk_buff longer */
#define ORACLE_SMALL_HEAD_END 384 /* 6.12, with 17 frags */
#define ORACLE_BOUNDARY	      0x80000000u /* of a position: | boundary << 8 | delta + 128 */

/*
 * X(name, form, number...): the forms name the operands in order. d: an empty sk_buff register that
 * is filled, s: an sk_buff, t: a second one, p: a page register, n: a number, o: a position in s.
 * scripts/skbench_lib/oracleprog.py reads this table; a number of an operation is its line here.
 */
#define ORACLE_OPS(X)                                                                  \
	X(alloc, "dn") /* bytes of room */                                             \
	X(alloc_fclone, "dn")                                                          \
	X(build_skb, "dn") /* around a fragment of a page */                           \
	X(reserve, "sn")                                                               \
	X(put, "sn")                                                                   \
	X(push, "snn") /* bytes, 1: write them */                                      \
	X(pull, "sn")                                                                  \
	X(page, "pn") /* order */                                                      \
	X(frag, "spnnn") /* page within the block, offset, size */                     \
	X(page_frag, "sn") /* as sendmsg does: a new frag or a longer last one */      \
	X(clone, "ds")                                                                 \
	X(copy, "ds")                                                                  \
	X(pskb_copy, "ds")                                                             \
	X(expand, "snn") /* nhead, ntail */                                            \
	X(unclone, "s")                                                                \
	X(unclone_keeptruesize, "s")                                                   \
	X(trim, "so") /* to this length */                                             \
	X(pull_tail, "sn") /* bytes more in the linear part */                         \
	X(split, "dso") /* d gets what lies behind */                                  \
	X(shift, "sto") /* from the front of t to the end of s; the position is t's */ \
	X(coalesce, "st") /* t is merged into s, and gone if it could be */            \
	X(header_release, "s")                                                         \
	X(header_unclone, "s")                                                         \
	X(condense, "s")                                                               \
	X(morph, "st") /* s becomes a clone of t */                                    \
	X(share_check, "s") /* s becomes one that nobody else holds */                 \
	X(unshare, "s") /* s becomes one whose head nobody shares */                   \
	X(get, "ds")                                                                   \
	X(free, "s")                                                                   \
	X(own, "s") /* charged to a socket from now on */                              \
	X(frag_list, "st") /* t becomes a member of s's list */                        \
	X(shared_frag, "s") /* others may write its pages */                           \
	X(headers, "s") /* header offsets and a partial checksum at data */            \
	X(tcp_segs, "sn") /* sequence numbers, segments of n bytes */                  \
	X(tcp_trim_head, "so")                                                         \
	X(tcp_fragment, "dson") /* position, MSS */                                    \
	X(ext_add, "snn") /* bridge's or MPTCP's extension, filled with this byte */   \
	X(ext_write, "snn") /* the same to one that is there, whoever shares it */     \
	X(ext_del, "sn")                                                               \
	X(ext_copy, "st") /* s shares those of t */                                    \
	X(sock_send, "nn") /* bytes; ORACLE_MORE, ORACLE_EOR */                        \
	X(sock_zerocopy, "pnnn") /* offset, bytes, whose + flags * 2 */                \
	X(sock_push, "n") /* what waits; 1: whole segments only */                     \
	X(sock_complete, "n") /* so many packets below TCP are gone, oldest first */   \
	X(sock_ack, "no") /* the peer has all before this position of the nth sent */  \
	X(sock_sack, "non") /* and from this one so many bytes */                      \
	X(sock_lost, "n") /* the nth is taken for lost */                              \
	X(sock_retransmit, "nnn") /* the nth, at most so many segments; the window, 0: open */

#define ORACLE_MORE 1 /* more is to come: only whole segments leave */
#define ORACLE_EOR  2 /* the record ends: nothing joins its last sk_buff */

struct oracle_op {
	unsigned char op, d, s, t;
	unsigned int n[3];
};

/* A request: this, then nr_ops operations. */
struct oracle_request {
	unsigned int flags;
	unsigned int nr_ops;
};

#define ORACLE_DUMP	 1 /* states in words, not only their hash */
#define ORACLE_YARDSTICK 2 /* no program: what operations cost (module only) */
#define ORACLE_HANG	 4 /* no program: the guest falls silent, for the test of that (module only) */
#define ORACLE_PANIC	 8 /* the same: it panics */
#define ORACLE_BUDGET	 16 /* one operation, whose numbers budget.h explains (host: pages only) */

#endif
