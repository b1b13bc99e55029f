/* SPDX-License-Identifier: MIT */
#include "hw/pcapng.h"

#include <string.h>

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BYTE_ORDER_MARK 0x1a2b3c4du
#define LINK_ETHERNET	1u
#define OPT_END		0
#define OPT_COMMENT	1
#define OPT_IF_NAME	2
#define OPT_IF_TSRESOL	9
#define OPT_PKT_FLAGS	2
#define MAX_COMMENT	1000u

static void put16(FILE *f, u32 v)
{
	const u8 b[2] = { v, v >> 8 };

	fwrite(b, 1, sizeof(b), f);
}

static void put32(FILE *f, u32 v)
{
	put16(f, v);
	put16(f, v >> 16);
}

/* Bytes with padding to a multiple of 4. */
static void put_bytes(FILE *f, const void *p, u32 len)
{
	static const u8 zero[4];

	fwrite(p, 1, len, f);
	fwrite(zero, 1, -len & 3, f);
}

static void put_option(FILE *f, u32 code, const void *p, u32 len)
{
	put16(f, code);
	put16(f, len);
	put_bytes(f, p, len);
}

static u32 option_bytes(u32 len)
{
	return 4 + ALIGN(len, 4u);
}

void pcapng_begin(FILE *f, const char *name)
{
	const u8 nanoseconds = 9;
	u32 len = strlen(name);
	u32 total = 20 + option_bytes(len) + option_bytes(1) + 4;

	put32(f, BLOCK_SECTION);
	put32(f, 28);
	put32(f, BYTE_ORDER_MARK);
	put16(f, 1);
	put16(f, 0);
	put32(f, ~0u); /* length of the section: not told */
	put32(f, ~0u);
	put32(f, 28);

	put32(f, BLOCK_INTERFACE);
	put32(f, total);
	put16(f, LINK_ETHERNET);
	put16(f, 0);
	put32(f, 0); /* no limit to a frame's length */
	put_option(f, OPT_IF_NAME, name, len);
	put_option(f, OPT_IF_TSRESOL, &nanoseconds, 1);
	put32(f, OPT_END);
	put32(f, total);
}

void pcapng_frame(FILE *f, u64 time_ns, bool outbound, const void *data, u32 len,
		  const char *comment)
{
	const u8 flags[4] = { outbound ? 2 : 1 };
	u32 note = comment ? min((u32)strlen(comment), MAX_COMMENT) : 0;
	u32 total = 32 + ALIGN(len, 4u) + option_bytes(4) + (note ? option_bytes(note) : 0) + 4;

	put32(f, BLOCK_PACKET);
	put32(f, total);
	put32(f, 0); /* interface */
	put32(f, time_ns >> 32);
	put32(f, time_ns);
	put32(f, len);
	put32(f, len);
	put_bytes(f, data, len);
	put_option(f, OPT_PKT_FLAGS, flags, sizeof(flags));
	if (note)
		put_option(f, OPT_COMMENT, comment, note);
	put32(f, OPT_END);
	put32(f, total);
}
