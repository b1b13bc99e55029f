/* SPDX-License-Identifier: MIT */
#include "skb/era.h"

#include <string.h>

static const char *const names[SKB_ERA_NR] = { "3.4", "6.1", "6.12" };

const char *skb_era_name(enum skb_era era)
{
	return names[era];
}

int skb_era_parse(const char *text)
{
	for (int i = 0; i < SKB_ERA_NR; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}
