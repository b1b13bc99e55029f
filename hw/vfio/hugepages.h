/* SPDX-License-Identifier: MIT */
/* Why rings and buffers do not come to lie in huge pages. */
#ifndef HW_VFIO_HUGEPAGES_H
#define HW_VFIO_HUGEPAGES_H

#include "skb/compiler.h"

#define HUGEPAGES_ARENA (16ull << 20) /* what the race's rings and buffers take, rounded up */

/* What /proc/meminfo below ROOT says of those of the default size; kb 0: the kernel tells of none. */
struct hugepages {
	unsigned long long total, free, reserved, kb;
};
struct hugepages hugepages_read(const char *root);

/*
 * A sentence in TEXT about huge pages below ROOT ("" on a real machine) that do not hold BYTES, and
 * true; false, and nothing to say, if those of the default size do. Others do not matter, nor does a
 * mount: the arena is an anonymous mapping. Mounts that hold files are named, since those keep pages.
 */
bool hugepages_short(const char *root, u64 bytes, char *text, size_t len);

#endif
