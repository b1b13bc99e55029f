/* SPDX-License-Identifier: MIT */
#include "skb/compiler.h"

#include <stdio.h>
#include <stdlib.h>

void skb_bug(const char *file, int line, const char *what)
{
	fprintf(stderr, "skbench: BUG at %s:%d: %s\n", file, line, what);
	abort();
}
