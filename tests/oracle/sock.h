/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One connected socket of TCP whose peer is the program: what the interpreter needs of it, once over
 * the library (sock_lib.c) and once in a kernel (sock_kernel.c).
 *
 * Sequence numbers start at 1, the MSS is 1448 without options, the peer's window and the congestion
 * window never end. What TCP sends does not arrive anywhere: the packets lie below it, oldest first,
 * until the program says that they are gone. Nothing happens by time.
 */
#ifndef TESTS_ORACLE_SOCK_H
#define TESTS_ORACLE_SOCK_H

struct page;
struct sk_buff;

enum oracle_queue { ORACLE_RTX, ORACLE_WRITE };

#define ORACLE_SACKS 4 /* blocks that the options have room for */

struct oracle_block {
	unsigned int from, to;
};

struct oracle_sock_state {
	int wmem_queued, forward_alloc, wmem_alloc;
	unsigned int snd_una, snd_nxt, write_seq;
	unsigned int packets_out, retrans_out, sacked_out, lost_out;
	unsigned int delivered; /* since the start */
	struct page *frag; /* of the page fragment, or NULL */
	unsigned int frag_offset;
};

/* Connects the socket, which is not there yet. False if that cannot be. */
bool oracle_sock_open(void);

/* Frees the packets below it, what it holds, and the socket. Nothing if there is none. */
void oracle_sock_close(void);

void oracle_sock_state(struct oracle_sock_state *state);

/* The first sk_buff of a queue, the one behind SKB in it; NULL: none. */
struct sk_buff *oracle_sock_first(enum oracle_queue queue);
struct sk_buff *oracle_sock_next(enum oracle_queue queue, struct sk_buff *skb);

/* Packets below TCP, and one of them. */
unsigned int oracle_sock_below(void);
const struct sk_buff *oracle_sock_packet(unsigned int nr);

/* sendmsg() of LEN bytes: how many were taken, or an error below 0. FLAGS: ORACLE_MORE, ORACLE_EOR. */
int oracle_sock_send(const void *bytes, unsigned int len, unsigned int flags);

/* The same without a copy, from OFFSET of a block of pages that starts with PAGE; UARG is whose bytes they are. */
int oracle_sock_zerocopy(struct page *page, unsigned int offset, unsigned int len,
			 unsigned int uarg, unsigned int flags);

/* References on a user's buffer; one of them is the program's. TOLD: how often one was given back. */
int oracle_sock_uarg(unsigned int uarg, unsigned int *told);

/* The number of the ubuf_info that SKB holds, or -1. */
int oracle_sock_uarg_of(const struct sk_buff *skb);

/* Sends what waits; only whole segments if WHOLE. */
void oracle_sock_push(bool whole);

/* The NR oldest packets below TCP are done with. */
void oracle_sock_complete(unsigned int nr);

/* An ACK arrives. */
void oracle_sock_ack(unsigned int ack);

/*
 * One of what was acknowledged before, with NR blocks (1 to ORACLE_SACKS). The first one has
 * something new, and all others are SACKed already.
 */
void oracle_sock_sack(const struct oracle_block *blocks, unsigned int nr);

void oracle_sock_lost(struct sk_buff *skb);

/* tcp_retransmit_skb() while the peer's window is WINDOW bytes, unless that is 0: 0 or an error below 0. */
int oracle_sock_retransmit(struct sk_buff *skb, unsigned int segs, unsigned int window);

#endif
