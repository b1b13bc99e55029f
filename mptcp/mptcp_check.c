/* SPDX-License-Identifier: MIT */
#include "mptcp/mptcp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int bad(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -1;
}

/* A window probe: one byte that the peer has, which is another one than its number says. */
static bool is_probe(const struct mptcp_sock *msk, const struct mptcp_ext *map)
{
	return map->frozen && map->data_len == 1 && (s64)(map->data_seq - msk->snd_una) < 0;
}

/* The bytes at both ends and in the middle of piece NR, LEN bytes at P, are those of the stream. */
static int check_piece(const u8 *p, u32 len, int nr, u64 data_seq, u8 (*pattern)(u64 data_seq),
		       char *err, size_t errlen)
{
	const u32 at[] = { 0, len / 2, len - 1 };

	for (size_t j = 0; len && j < ARRAY_SIZE(at); j++)
		if (p[at[j]] != pattern(data_seq + at[j]))
			return bad(err, errlen,
				   "byte %u of frag %d is not that of data sequence %#llx", at[j],
				   nr, (unsigned long long)(data_seq + at[j]));
	return 0;
}

/* The head, which only an MTU probe has bytes in, and each frag. */
static int check_bytes(const struct sk_buff *skb, u64 data_seq, u8 (*pattern)(u64 data_seq),
		       char *err, size_t errlen)
{
	if (check_piece(skb->data, skb_headlen(skb), -1, data_seq, pattern, err, errlen))
		return -1;
	data_seq += skb_headlen(skb);
	for (int i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *f = &skb_shinfo(skb)->frags[i];

		if (check_piece(skb_frag_address(f), f->len, i, data_seq, pattern, err, errlen))
			return -1;
		data_seq += f->len;
	}
	return 0;
}

/* SKB has a map that covers it and says what its bytes are. */
static int check_skb(const struct mptcp_sock *msk, const struct sk_buff *skb,
		     const struct mptcp_ext *before, u8 (*pattern)(u64 data_seq), char *err,
		     size_t errlen)
{
	const struct mptcp_ext *map = mptcp_get_ext(skb);
	u32 ssn = TCP_SKB_CB(skb)->seq - msk->ssk->mptcp.isn, off;

	if (!map)
		return bad(err, errlen, "%u bytes from %u of the subflow without a map", skb->len,
			   ssn);
	off = ssn - map->subflow_seq;
	if ((u64)off + skb->len > map->data_len)
		return bad(err, errlen, "%u bytes from %u of the subflow, the map is of %u from %u",
			   skb->len, ssn, map->data_len, map->subflow_seq);
	if (map->pad[0] || map->pad[5] || map->csum)
		return bad(err, errlen, "a map with bytes set that nobody sets");
	/* Two maps are the same one, or one ends before the other begins. */
	if (before && memcmp(before, map, sizeof(*map)) &&
	    (s32)(map->subflow_seq - (before->subflow_seq + before->data_len)) < 0)
		return bad(err, errlen, "a map from %u of the subflow overlaps one of %u from %u",
			   map->subflow_seq, before->data_len, before->subflow_seq);
	if (is_probe(msk, map))
		return 0;
	return check_bytes(skb, map->data_seq + off, pattern, err, errlen);
}

static int check_dfrags(const struct mptcp_sock *msk, char *err, size_t errlen)
{
	const struct mptcp_data_frag *end = (const struct mptcp_data_frag *)&msk->rtx_queue, *df;
	u64 next = msk->snd_una, write_end = msk->write_seq - msk->closed;
	bool pending = false;
	long charged = 0;

	for (df = msk->rtx_queue.next; df != end; df = df->next) {
		if (df->data_seq != next)
			return bad(err, errlen, "a data frag at %#llx, not at %#llx",
				   (unsigned long long)df->data_seq, (unsigned long long)next);
		if (df->already_sent > df->data_len)
			return bad(err, errlen, "%u of %u bytes of a data frag are sent",
				   df->already_sent, df->data_len);
		if (df->offset + df->data_len > PAGE_SIZE << SKB_FRAG_PAGE_ORDER)
			return bad(err, errlen, "a data frag ends at %u of its page",
				   df->offset + df->data_len);
		pending |= df == msk->first_pending;
		if (!pending && df->already_sent != df->data_len)
			return bad(err, errlen, "a data frag before the pending one waits");
		next += df->data_len;
		charged += df->data_len + df->overhead;
	}
	/* A DATA_FIN that is acknowledged lies behind the last data. */
	if (msk->rtx_queue.next != end && next != write_end)
		return bad(err, errlen, "the data frags end at %#llx, the stream at %#llx",
			   (unsigned long long)next, (unsigned long long)write_end);
	if (pending != !!msk->first_pending)
		return bad(err, errlen, "the pending data frag is not queued");
	if (charged != msk->wmem_queued)
		return bad(err, errlen, "data frags take %ld bytes, wmem_queued is %d", charged,
			   msk->wmem_queued);
	return 0;
}

int mptcp_check(const enum skb_era era, const enum mptcp_variant v, const struct mptcp_sock *msk,
		u8 (*pattern)(u64 data_seq), char *err, size_t errlen)
{
	const struct sk_buff_head *queues[] = { &msk->ssk->tcp_rtx_queue,
						&msk->ssk->sk_write_queue };
	const struct mptcp_ext *before = NULL;

	if (tcp_check_sock(era, mptcp_tcp(v), msk->ssk, err, errlen))
		return -1;
	for (size_t q = 0; q < ARRAY_SIZE(queues); q++) {
		const struct sk_buff *skb;

		for (skb = queues[q]->next; !skb_queue_is_end(queues[q], skb); skb = skb->next) {
			if (!skb->len)
				continue;
			if (check_skb(msk, skb, before, pattern, err, errlen))
				return -1;
			before = mptcp_get_ext(skb);
		}
	}
	return check_dfrags(msk, err, errlen);
}
