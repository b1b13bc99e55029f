/* SPDX-License-Identifier: MIT */
/*
 * MPTCP's sender over one subflow: data in page frags, mapped into TCP's sk_buffs.
 *
 * Kernel: net/mptcp/protocol.c as it was when "mptcp: let MPTCP create max size skbs" was merged
 * (5.11); the era says what happens below. A write is copied once, into a page, behind the
 * mptcp_data_frag that describes it and stays until the peer acknowledges the data (DATA_ACK).
 * Handing it to the subflow copies nothing: sk_buffs get page references, and each sk_buff a map
 * (skb/mptcp_ext.h) that says which bytes of the stream it carries.
 *
 * What the patch was about: an sk_buff that waits in the subflow's queue with L bytes has room for
 * G - L more, if G is the size goal. That was handed down as a goal, from which L was subtracted
 * once more; and a new sk_buff got no more than G - L. With 32728 bytes in a data frag and a G of
 * 65160 the outcome was sk_buffs of half the size.
 *
 *   variant       goal handed down   PSH of a tail that grows   a cut of an sk_buff
 *   before        G - L              stays                      both halves share the map, frozen
 *   size_bias     G                  stays                      the same
 *   psh           G - L              goes                       the same
 *   split         G - L              stays                      mptcp_skb_split(), as posted
 *   posted        G                  goes                       mptcp_skb_split(); the test for room
 *                                                               wraps if G shrinks below L, a map of
 *                                                               more than 16 bits is cut off
 *   merged        G                  goes                       both halves share the map, frozen
 *   split_fixed   G                  goes                       mptcp_skb_split_fixed()
 *
 * The kernel's test for room wrapped before the patch, too, and until 2021 (CVE-2021-47370); here
 * only `posted` has it, since its expression stands in the patch.
 *
 * All functions are for the holder of both sockets' locks. Transmit completions run on any CPU at
 * the same time and touch what tcp.h says. Left out: more than one subflow and the choice among
 * them, MPTCP-level retransmission, checksums, fallback to TCP, waiting for memory.
 */
#ifndef MPTCP_MPTCP_H
#define MPTCP_MPTCP_H

#include "tcp/mptcp_options.h"
#include "tcp/tcp.h"

enum mptcp_variant {
	MPTCP_BEFORE,
	MPTCP_SIZE_BIAS,
	MPTCP_PSH,
	MPTCP_SPLIT,
	MPTCP_POSTED,
	MPTCP_MERGED,
	MPTCP_SPLIT_FIXED,
	MPTCP_VARIANT_NR
};

/* "before", "size_bias", ... */
const char *mptcp_variant_name(enum mptcp_variant v);

static __always_inline bool mptcp_has_size_bias(const enum mptcp_variant v)
{
	return v == MPTCP_SIZE_BIAS || v >= MPTCP_POSTED;
}

static __always_inline bool mptcp_clears_psh(const enum mptcp_variant v)
{
	return v == MPTCP_PSH || v >= MPTCP_POSTED;
}

/* Which of TCP's functions the variant runs on. */
static __always_inline enum tcp_trim mptcp_tcp(const enum mptcp_variant v)
{
	return v == MPTCP_SPLIT || v == MPTCP_POSTED ? TRIM_EAGER_SPLIT_POSTED
	       : v == MPTCP_SPLIT_FIXED		     ? TRIM_EAGER_SPLIT_FIXED
						     : TRIM_EAGER;
}

/* Lies in the page that it describes, in front of its bytes. */
struct mptcp_data_frag {
	struct mptcp_data_frag *next, *prev; /* of mptcp_sock::rtx_queue */
	u64 data_seq; /* of the first byte that is not acknowledged */
	u16 data_len; /* bytes from there */
	u16 offset; /* where they lie in the page */
	u16 overhead; /* bytes of the page that the frag costs beside them */
	u16 already_sent; /* of data_len, handed to the subflow */
	struct page *page; /* one reference */
};

_Static_assert(sizeof(struct mptcp_data_frag) == 40, "40 bytes in 6.1");

struct mptcp_sock {
	struct sock *ssk; /* the subflow */
	u64 write_seq; /* of the next byte that is written */
	u64 snd_nxt; /* of the next that goes to the subflow */
	u64 snd_una; /* of the first that the peer has not acknowledged */
	u64 wnd_end; /* the peer takes what lies before */
	u32 rel_write_seq; /* what the subflow's next byte is called in maps */
	u32 size_goal; /* bytes that one sk_buff of the subflow should have */
	struct {
		struct mptcp_data_frag *next, *prev;
	} rtx_queue; /* data frags not acknowledged yet, oldest first */
	struct mptcp_data_frag *first_pending; /* the oldest with bytes to hand down, or NULL */
	struct skb_ext *cached_ext; /* for the next sk_buff that needs a map, or NULL */
	struct page_frag pfrag;
	int wmem_queued; /* bytes of pages that data frags take up */
	int sndbuf;
	bool push_per_write; /* mptcp_sendmsg() hands down at once; else mptcp_push_pending() does */
	bool closed; /* DATA_FIN has its number */
};

/*
 * --- sizes
 * --------------------------------------------------------------------------------------
 */

#define MPTCP_OPTION_BYTES sizeof(struct mptcp_dss) /* 28; 24 with an acknowledgment of 4 */
#define TCP_IP_BYTES	   40 /* headers of IPv4 and TCP without options */
#define IP_MAX_PACKET	   65535 /* its length has 16 bits, whatever an MTU says */

/*
 * Payload of one segment on a link of MTU bytes, with OPTION bytes of MPTCP in each:
 *
 *   MTU, at most IP_MAX_PACKET, less 40 of headers, less 12 of timestamps, less OPTION
 *
 * With 28: 1420 at 1500, 8920 at 9000, 65455 at 65536. 0 if nothing is left.
 */
u32 mptcp_mss(u32 mtu, u32 option);

/*
 * The size goal that follows: as many whole segments as the largest TSO packet takes (65215 bytes,
 * which MPTCP asks for since a map has 16 bits), at least one. 63900 at MTU 1500, 62440 at 9000,
 * 65455 at 65536: one segment, although it is more. Kernel: tcp_size_goal().
 */
u32 mptcp_size_goal(u32 mtu, u32 option);

/* The same from the MSS. */
static __always_inline u32 mptcp_goal_of_mss(u32 mss)
{
	return max(TCP_GSO_MAX_SIZE / mss * mss, mss);
}

/*
 * --- sending (mptcp_send.c)
 * --------------------------------------------------------------------------------
 */

#define MPTCP_DECLARE_ERA(ret, name, era, ...)     \
	ret name##_##era##_before(__VA_ARGS__);    \
	ret name##_##era##_size_bias(__VA_ARGS__); \
	ret name##_##era##_psh(__VA_ARGS__);       \
	ret name##_##era##_split(__VA_ARGS__);     \
	ret name##_##era##_posted(__VA_ARGS__);    \
	ret name##_##era##_merged(__VA_ARGS__);    \
	ret name##_##era##_split_fixed(__VA_ARGS__)
#define MPTCP_DECLARE(ret, name, ...)                   \
	MPTCP_DECLARE_ERA(ret, name, 6_1, __VA_ARGS__); \
	MPTCP_DECLARE_ERA(ret, name, 6_12, __VA_ARGS__)

#define MPTCP_CALL_ERA(v, name, era, ...)                                 \
	((v) == MPTCP_BEFORE	  ? name##_##era##_before(__VA_ARGS__)    \
	 : (v) == MPTCP_SIZE_BIAS ? name##_##era##_size_bias(__VA_ARGS__) \
	 : (v) == MPTCP_PSH	  ? name##_##era##_psh(__VA_ARGS__)       \
	 : (v) == MPTCP_SPLIT	  ? name##_##era##_split(__VA_ARGS__)     \
	 : (v) == MPTCP_POSTED	  ? name##_##era##_posted(__VA_ARGS__)    \
	 : (v) == MPTCP_MERGED	  ? name##_##era##_merged(__VA_ARGS__)    \
				  : name##_##era##_split_fixed(__VA_ARGS__))
#define MPTCP_CALL(era, v, name, ...)                                 \
	((era) == ERA_6_1 ? MPTCP_CALL_ERA(v, name, 6_1, __VA_ARGS__) \
			  : MPTCP_CALL_ERA(v, name, 6_12, __VA_ARGS__))

/* Expands M(suffix, era, variant) for each pair; there is no MPTCP in 3.4. */
#define MPTCP_FOR_EACH_VARIANT(M, era, era_)      \
	M(era##_before, era_, MPTCP_BEFORE)       \
	M(era##_size_bias, era_, MPTCP_SIZE_BIAS) \
	M(era##_psh, era_, MPTCP_PSH)             \
	M(era##_split, era_, MPTCP_SPLIT)         \
	M(era##_posted, era_, MPTCP_POSTED)       \
	M(era##_merged, era_, MPTCP_MERGED)       \
	M(era##_split_fixed, era_, MPTCP_SPLIT_FIXED)
#define MPTCP_FOR_EACH(M)                       \
	MPTCP_FOR_EACH_VARIANT(M, 6_1, ERA_6_1) \
	MPTCP_FOR_EACH_VARIANT(M, 6_12, ERA_6_12)

/*
 * MSK over the subflow SSK, a socket that has sent nothing and is MSK's until mptcp_destroy(): the
 * stream begins at data sequence IDSN, on a link of MTU bytes. Hands down at each write, does not
 * autocork. 0, or -EINVAL for an MTU that leaves no payload.
 */
int mptcp_init(struct mptcp_sock *msk, struct sock *ssk, u64 idsn, u32 mtu);

/*
 * The subflow's MSS has changed, since probes are on or found a larger MTU (tcp/tcp_mtu_probe.h): so
 * does the size goal. The kernel works it out for each sk_buff.
 */
static __always_inline void mptcp_sync_mss(struct mptcp_sock *msk)
{
	msk->size_goal = mptcp_goal_of_mss(msk->ssk->mss_cache);
}

/* Frees every data frag and what the subflow has queued. */
void mptcp_destroy(const enum skb_era era, struct mptcp_sock *msk);

MPTCP_DECLARE(int, mptcp_sendmsg, struct mptcp_sock *msk, const void *from, u32 len);
MPTCP_DECLARE(int, mptcp_push_pending, struct mptcp_sock *msk);
MPTCP_DECLARE(int, mptcp_send_fin, struct mptcp_sock *msk);

/*
 * Writes LEN bytes of FROM: into the room behind the last data frag if that waits and ends where
 * the page's free part begins, else into new ones. With push_per_write they are handed down at
 * once. Returns the bytes written, fewer than LEN if the send buffer is full or memory is short;
 * -EAGAIN if none were; -EPIPE behind mptcp_send_fin(). Kernel: mptcp_sendmsg().
 */
static __always_inline int mptcp_sendmsg(const enum skb_era era, const enum mptcp_variant v,
					 struct mptcp_sock *msk, const void *from, u32 len)
{
	return MPTCP_CALL(era, v, mptcp_sendmsg, msk, from, len);
}

/*
 * Hands down what waits, as far as the peer's window and the subflow's send buffer go, and ends
 * with tcp_push(). If the window is closed and all is acknowledged, one byte before it goes as a
 * probe, in an sk_buff of its own. Returns the bytes handed down. Kernel: __mptcp_push_pending(),
 * mptcp_sendmsg_frag().
 */
static __always_inline int mptcp_push_pending(const enum skb_era era, const enum mptcp_variant v,
					      struct mptcp_sock *msk)
{
	return MPTCP_CALL(era, v, mptcp_push_pending, msk);
}

/*
 * Ends the stream, of which nothing waits any more: DATA_FIN takes one number and goes with the
 * last sk_buff that is still to be sent, or with an empty one, as the subflow's FIN does. 0;
 * -EAGAIN while data waits; -ENOMEM; -EPIPE if it was ended before. Kernel: mptcp_shutdown(), which
 * ends the subflow later.
 */
static __always_inline int mptcp_send_fin(const enum skb_era era, const enum mptcp_variant v,
					  struct mptcp_sock *msk)
{
	return MPTCP_CALL(era, v, mptcp_send_fin, msk);
}

/*
 * The peer has all data before DATA_ACK: lets go of the data frags that lie there, and of the bytes
 * of one that does in part. Returns the bytes newly acknowledged; -EINVAL for more than was handed
 * down. Kernel: __mptcp_clean_una().
 */
int mptcp_data_acked(struct mptcp_sock *msk, u64 data_ack);

/*
 * --- rules, for tests, too
 * ---------------------------------------------------------------------------------
 */

/*
 * Room for more bytes in a tail of LEN bytes under GOAL; 0: none. `posted` subtracts without
 * asking whether the goal has shrunk.
 */
static __always_inline u32 mptcp_skb_room(const enum mptcp_variant v, u32 goal, u32 len)
{
	if (v == MPTCP_POSTED)
		return goal - len;
	return goal > len ? goal - len : 0;
}

/* True if data from WRITE_SEQ may be added to SKB, whose map is EXT: it goes on there. */
static __always_inline bool mptcp_skb_can_collapse_to(u64 write_seq, const struct sk_buff *skb,
						      const struct mptcp_ext *ext)
{
	return tcp_skb_can_collapse_to(skb) && ext && ext->data_seq + ext->data_len == write_seq &&
	       !ext->frozen;
}

/*
 * N bytes more for the map of the sk_buff that holds them; false, and it is as before, if 16 bits
 * cannot say it.
 */
static __always_inline bool mptcp_ext_extend(struct mptcp_ext *ext, u32 n)
{
	if (unlikely(ext->data_len + n > MPTCP_MAX_MAP))
		return false;
	ext->data_len += n;
	return true;
}

/*
 * --- properties (mptcp_check.c)
 * ------------------------------------------------------------------------------
 */

/*
 * Checks what must hold between two calls: the subflow (tcp_check_sock()); data frags that join,
 * their bytes within their pages, their charge; every sk_buff with payload has a map that covers
 * all of its bytes, these are the bytes of the stream that the map says (some of each frag are
 * looked up in PATTERN, which gives the byte of a data sequence number), and maps overlap only if
 * they are the same. 0, or -1 with a sentence in ERR.
 */
int mptcp_check(const enum skb_era era, const enum mptcp_variant v, const struct mptcp_sock *msk,
		u8 (*pattern)(u64 data_seq), char *err, size_t errlen);

#endif
