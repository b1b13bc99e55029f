/* SPDX-License-Identifier: MIT */
#include "benches/harness/json.h"

#include <errno.h>
#include <math.h>

static void put_text(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void put_key(struct json *j, const char *key)
{
	if (j->more)
		fputs(", ", j->f);
	j->more = true;
	if (key) {
		put_text(j->f, key);
		fputs(": ", j->f);
	}
}

void json_open(struct json *j, const char *key, char kind)
{
	put_key(j, key);
	fputc(kind, j->f);
	j->more = false;
}

void json_close(struct json *j, char kind)
{
	fputc(kind == '{' ? '}' : ']', j->f);
	j->more = true;
}

void json_null(struct json *j, const char *key)
{
	put_key(j, key);
	fputs("null", j->f);
}

void json_str(struct json *j, const char *key, const char *text)
{
	if (!text) {
		json_null(j, key);
		return;
	}
	put_key(j, key);
	put_text(j->f, text);
}

void json_long(struct json *j, const char *key, long long value)
{
	put_key(j, key);
	fprintf(j->f, "%lld", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	put_key(j, key);
	fputs(value ? "true" : "false", j->f);
}

void json_fixed(struct json *j, const char *key, double value, unsigned int decimals)
{
	double scaled, unit = 1;
	unsigned long long all;

	for (unsigned int i = 0; i < decimals; i++)
		unit *= 10;
	scaled = fabs(value) * unit;
	if (!isfinite(scaled)) {
		json_null(j, key);
		return;
	}
	put_key(j, key);
	if (value < 0)
		fputc('-', j->f);
	/* From 2^53 on a double has no fraction, and %.0f prints no decimal point. */
	if (scaled >= 9007199254740992.0) {
		fprintf(j->f, "%.0f", fabs(value));
		return;
	}
	all = (unsigned long long)(scaled + 0.5);
	fprintf(j->f, "%llu", all / (unsigned long long)unit);
	if (decimals)
		fprintf(j->f, ".%0*llu", (int)decimals, all % (unsigned long long)unit);
}

int json_end(struct json *j)
{
	fputc('\n', j->f);
	return fflush(j->f) || ferror(j->f) ? -EIO : 0;
}
