/* SPDX-License-Identifier: MIT */
#include "skb/atomic.h"

const int SKB_BUILD = 1;

#ifdef SKB_TRACED
static void ignore_access(enum skb_access kind, enum skb_class cls, const volatile void *addr,
			  size_t bytes)
{
	(void)kind, (void)cls, (void)addr, (void)bytes;
}

static void ignore_event(enum skb_event ev, const void *addr, size_t n)
{
	(void)ev, (void)addr, (void)n;
}

static bool never_fail(enum skb_site site)
{
	(void)site;
	return false;
}

static const struct skb_trace_sink ignore = {
	.access = ignore_access,
	.event = ignore_event,
	.fail = never_fail,
};

const struct skb_trace_sink *skb_trace_sink = &ignore;
#endif
