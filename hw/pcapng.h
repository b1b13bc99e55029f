/* SPDX-License-Identifier: MIT */
/*
 * Frames as a pcapng file with times in ns and a comment for each (pcapng draft: section header,
 * interface description, enhanced packet blocks; little endian).
 */
#ifndef HW_PCAPNG_H
#define HW_PCAPNG_H

#include "skb/compiler.h"

#include <stdio.h>

/* Begins the file: one Ethernet interface called NAME. Errors show in ferror(). */
void pcapng_begin(FILE *f, const char *name);

/* A frame of LEN bytes at TIME_NS; OUTBOUND or inbound; COMMENT of at most 1000 bytes, or NULL. */
void pcapng_frame(FILE *f, u64 time_ns, bool outbound, const void *data, u32 len,
		  const char *comment);

#endif
