/* SPDX-License-Identifier: MIT */
#include "tcp/tcp_defer.h"

const char *tcp_defer_name(enum tcp_defer defer)
{
	static const char *const name[TCP_DEFER_NR] = { "inline", "sk_llist", "cpu_list",
							"node_llist" };

	return name[defer];
}
