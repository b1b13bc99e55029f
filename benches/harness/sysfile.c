/* SPDX-License-Identifier: MIT */
#include "benches/harness/sysfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sysfile_read(const char *root, const char *path, char *buf, size_t len)
{
	char name[PATH_MAX];
	size_t done = 0;
	ssize_t got = -1;
	int fd;

	if (snprintf(name, sizeof(name), "%s%s", root, path) >= (int)sizeof(name))
		return false;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (done < len - 1 && (got = read(fd, buf + done, len - 1 - done)) > 0)
		done += (size_t)got;
	close(fd);
	buf[done] = '\0';
	return got >= 0 || done;
}

bool sysfile_number(const char *text, const char *key, u64 *out)
{
	for (const char *at = text; (at = strstr(at, key)); at++) {
		char *end;

		if (at > text && at[-1] != '\n' && at[-1] != ' ')
			continue;
		*out = strtoull(at + strlen(key), &end, 10);
		return end > at + strlen(key);
	}
	return false;
}

/* The next part of a list at *TEXT, from *LO to *HI; false at its end, or at what is none. */
static bool next_part(const char **text, unsigned long *lo, unsigned long *hi)
{
	char *end;

	*lo = *hi = strtoul(*text, &end, 10);
	if (end == *text)
		return false;
	if (*end == '-')
		*hi = strtoul(end + 1, &end, 10);
	*text = *end == ',' ? end + 1 : end;
	return true;
}

u64 sysfile_bits(const char *text)
{
	unsigned long lo, hi;
	u64 bits = 0;

	while (next_part(&text, &lo, &hi))
		for (; lo <= hi && lo < 64; lo++)
			bits |= 1ULL << lo;
	return bits;
}

bool sysfile_lists(const char *text, unsigned int number)
{
	unsigned long lo, hi;

	while (next_part(&text, &lo, &hi))
		if (number >= lo && number <= hi)
			return true;
	return false;
}

void sysfile_list(u64 mask, char *out, size_t len)
{
	size_t at = 0;

	out[0] = '\0';
	for (unsigned int lo = 0, hi; lo < 64 && at < len; lo = hi + 1) {
		hi = lo;
		if (!(mask >> lo & 1))
			continue;
		while (hi < 63 && mask >> (hi + 1) & 1)
			hi++;
		at += (size_t)snprintf(out + at, len - at, hi > lo ? "%s%u-%u" : "%s%u",
				       at ? "," : "", lo, hi);
	}
}
