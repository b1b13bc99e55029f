/* SPDX-License-Identifier: MIT */
#include "skb/skb_check.h"

#include "skb/page_alloc.h"
#include "skb/skb_ext.h"

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

static int check_linear(const struct sk_buff *skb, char *err, size_t errlen)
{
	unsigned int data = skb->data - skb->head;

	if (data > skb->tail || skb->tail > skb->end)
		return bad(err, errlen, "data %u, tail %u, end %u: not in order", data, skb->tail,
			   skb->end);
	if (skb->end % SMP_CACHE_BYTES)
		return bad(err, errlen, "end %u is not a multiple of %d", skb->end,
			   SMP_CACHE_BYTES);
	if (skb->data_len > skb->len)
		return bad(err, errlen, "data_len %u is more than len %u", skb->data_len, skb->len);
	if (skb_headlen(skb) != skb->tail - data)
		return bad(err, errlen, "len %u - data_len %u is not tail %u - data %u", skb->len,
			   skb->data_len, skb->tail, data);
	return 0;
}

static int check_frags(const struct sk_buff *skb, size_t *paged, char *err, size_t errlen)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);

	if (shinfo->nr_frags > MAX_SKB_FRAGS)
		return bad(err, errlen, "%u frags of %d", shinfo->nr_frags, MAX_SKB_FRAGS);
	for (int i = 0; i < shinfo->nr_frags; i++) {
		const skb_frag_t *f = &shinfo->frags[i];
		const struct page *head = compound_head(f->page);
		size_t at = (size_t)(f->page - head) * PAGE_SIZE + f->offset;

		if (!f->len)
			return bad(err, errlen, "frag %d is empty", i);
		if (at + f->len > PAGE_SIZE << compound_order(head))
			return bad(err, errlen, "frag %d ends at byte %zu of a block of %lu", i,
				   at + f->len, PAGE_SIZE << compound_order(head));
		if (page_count(f->page) < 1)
			return bad(err, errlen, "frag %d lies in a page with %d references", i,
				   page_count(f->page));
		*paged += f->len;
	}
	return 0;
}

static int check_refs(const struct sk_buff *skb, char *err, size_t errlen)
{
	int dataref = skb_shinfo(skb)->dataref.counter;
	int all = dataref & SKB_DATAREF_MASK, nohdr = dataref >> SKB_DATAREF_SHIFT;

	if (skb->users.refs.counter < 1)
		return bad(err, errlen, "users is %d", skb->users.refs.counter);
	if (all < 1 || nohdr > all || nohdr < (int)skb->nohdr)
		return bad(err, errlen, "dataref is %#x with nohdr %u", dataref, skb->nohdr);
	if (!skb->cloned && all != 1)
		return bad(err, errlen, "not cloned, and dataref is %#x", dataref);
	return 0;
}

static int check_ext(const struct sk_buff *skb, char *err, size_t errlen)
{
	const struct skb_ext *ext = skb->extensions;

	if (!skb->active_extensions)
		return 0;
	if (skb->active_extensions >> SKB_EXT_NUM)
		return bad(err, errlen, "active_extensions is %#x", skb->active_extensions);
	if (ext->refcnt.refs.counter < 1)
		return bad(err, errlen, "extensions with %d references", ext->refcnt.refs.counter);
	for (int id = 0; id < SKB_EXT_NUM; id++) {
		if (!skb_ext_exist(skb, id))
			continue;
		if (ext->offset[id] < SKB_EXT_HEADER_CHUNKS ||
		    ext->offset[id] + skb_ext_type_len[id] > ext->chunks)
			return bad(err, errlen, "extension %d at chunk %u of %u", id,
				   ext->offset[id], ext->chunks);
	}
	return 0;
}

int skb_check(const struct sk_buff *skb, char *err, size_t errlen)
{
	size_t paged = 0;

	if (check_linear(skb, err, errlen) || check_frags(skb, &paged, err, errlen) ||
	    check_refs(skb, err, errlen) || check_ext(skb, err, errlen))
		return -1;
	for (const struct sk_buff *s = skb_shinfo(skb)->frag_list; s; s = s->next) {
		if (skb_check(s, err, errlen))
			return -1;
		paged += s->len;
	}
	if (paged != skb->data_len)
		return bad(err, errlen, "data_len %u, but frags and frag_list hold %zu bytes",
			   skb->data_len, paged);
	return 0;
}

void skb_for_each_piece(const struct sk_buff *skb,
			void (*fn)(void *arg, const void *bytes, size_t len), void *arg)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);

	if (skb_headlen(skb))
		fn(arg, skb->data, skb_headlen(skb));
	for (int i = 0; i < shinfo->nr_frags; i++)
		fn(arg, skb_frag_address(&shinfo->frags[i]), shinfo->frags[i].len);
	for (const struct sk_buff *s = shinfo->frag_list; s; s = s->next)
		skb_for_each_piece(s, fn, arg);
}

struct cut {
	u32 skip, left;
	char *to;
};

static void copy_piece(void *arg, const void *bytes, size_t len)
{
	struct cut *c = arg;
	size_t skip = min((size_t)c->skip, len), n = min((size_t)c->left, len - skip);

	memcpy(c->to, (const char *)bytes + skip, n);
	c->skip -= skip;
	c->left -= n;
	c->to += n;
}

void skb_copy_bits(const struct sk_buff *skb, u32 off, void *to, u32 len)
{
	struct cut c = { .skip = off, .left = len, .to = to };

	BUG_ON((u64)off + len > skb->len);
	skb_for_each_piece(skb, copy_piece, &c);
}
