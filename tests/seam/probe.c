/* SPDX-License-Identifier: MIT */
/* Inline functions of the model with a symbol each, for those who look at their instructions. */
#include "skb/page.h"
#include "skb/skbuff.h"

void probe_get_page(struct page *page);
void probe_put_page(struct page *page);
void probe_smp_mb(void);
bool probe_skb_cloned(const struct sk_buff *skb);
int probe_cmpxchg(int *p, int old, int new);
int probe_xchg(int *p, int v);

void probe_get_page(struct page *page)
{
	get_page(page);
}

void probe_put_page(struct page *page)
{
	put_page(page);
}

void probe_smp_mb(void)
{
	smp_mb();
}

bool probe_skb_cloned(const struct sk_buff *skb)
{
	return skb_cloned(skb);
}

int probe_cmpxchg(int *p, int old, int new)
{
	return cmpxchg(p, old, new, SKB_C_OTHER);
}

int probe_xchg(int *p, int v)
{
	return xchg(p, v, SKB_C_OTHER);
}
