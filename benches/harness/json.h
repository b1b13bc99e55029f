/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer: one value after the other, on one line. Numbers do not depend on the locale, and what is not a number
 * is null. KEY is NULL inside an array and at the top.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "skb/compiler.h"

#include <stdio.h>

struct json {
	FILE *f;
	bool more; /* a value stands before, at this level */
};

/* Opens an object ('{') or an array ('['), and closes it with the same letter. */
void json_open(struct json *j, const char *key, char kind);
void json_close(struct json *j, char kind);

/* NULL is written as null. */
void json_str(struct json *j, const char *key, const char *text);
void json_long(struct json *j, const char *key, long long value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* VALUE rounded to DECIMALS (0 to 9) places; null if it is not finite. */
void json_fixed(struct json *j, const char *key, double value, unsigned int decimals);

/*
 * The end of the line, and the end of the output. 0, or -EIO if any of it could not be written: a full disk must not
 * look like a result.
 */
int json_end(struct json *j);

#endif
