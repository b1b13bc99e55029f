/* SPDX-License-Identifier: MIT */
/* A program that needs nothing of the library but its kind. */
#include "skb/atomic.h"

int main(void)
{
	return 0;
}
