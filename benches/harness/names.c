/* SPDX-License-Identifier: MIT */
#include "benches/harness/names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const bench_alloc_words[] = { "slub", "jemalloc", "glibc", NULL };
static const struct bench_key alloc_key = {
	.name = "alloc",
	.words = bench_alloc_words,
	.def = BENCH_DEFAULT_ALLOC,
	.grid = BENCH_DEFAULT_ALLOC,
	.help = "allocator of sk_buffs, heads and extensions",
};

__attribute__((format(printf, 3, 4))) static int bad(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int bench_parse_long(const char *text, size_t len, long *out)
{
	char buf[24], again[24], *end;

	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(i == 0 && len > 1 && text[i] == '-'))
			return -EINVAL;
	if (!len)
		return -EINVAL;
	if (len >= sizeof(buf))
		return -ERANGE;
	memcpy(buf, text, len);
	buf[len] = '\0';
	errno = 0;
	*out = strtol(buf, &end, 10);
	if (errno == ERANGE)
		return -ERANGE;
	/* One spelling a value: no leading zeros, no -0. */
	snprintf(again, sizeof(again), "%ld", *out);
	return *end || strcmp(again, buf) ? -EINVAL : 0;
}

static void list_words(const char *const *words, char *buf, size_t len)
{
	size_t used = 0;

	for (unsigned int i = 0; words[i] && used < len; i++)
		used += snprintf(buf + used, len - used, "%s%s",
				 !i		? ""
				 : words[i + 1] ? ", "
						: " or ",
				 words[i]);
}

/* The words of KEY; if it tells the forms of an operation apart, those of all forms. */
static void list_key_words(const struct bench_key *key, char *buf, size_t len)
{
	const char *words[BENCH_MAX_OPS], *name = NULL;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < bench_nr_ops() && !name; i++)
		if (bench_op_at(i)->keys == key)
			name = bench_op_at(i)->name;
	for (unsigned int i = 0; name && i < bench_nr_ops(); i++)
		if (!strcmp(bench_op_at(i)->name, name))
			for (unsigned int w = 0;
			     bench_op_at(i)->keys->words[w] && nr < ARRAY_SIZE(words) - 1; w++)
				words[nr++] = bench_op_at(i)->keys->words[w];
	words[nr] = NULL;
	list_words(name ? words : key->words, buf, len);
}

static int parse_value(const struct bench_key *key, const char *text, size_t len, long *out,
		       char *err, size_t errlen)
{
	char words[256] = "";
	int ret;

	if (key->words) {
		for (long i = 0; key->words[i]; i++) {
			if (strlen(key->words[i]) == len && !memcmp(key->words[i], text, len)) {
				*out = i;
				return 0;
			}
		}
		list_key_words(key, words, sizeof(words));
		return bad(err, errlen, "%s is '%.*s': it must be %s (%s)", key->name, (int)len,
			   text, words, key->help);
	}
	ret = bench_parse_long(text, len, out);
	if (ret == -EINVAL)
		return bad(err, errlen, "%s is '%.*s': it must be an integer from %ld to %ld (%s)",
			   key->name, (int)len, text, key->lo, key->hi, key->help);
	if (ret == -ERANGE || *out < key->lo || *out > key->hi)
		return bad(err, errlen, "%s is %.*s: out of range, it must be %ld to %ld (%s)",
			   key->name, (int)len, text, key->lo, key->hi, key->help);
	return 0;
}

/* A value that stands in an operation's table, not in a name: a wrong one is a bug. */
static long table_value(const struct bench_key *key, const char *text, size_t len)
{
	char err[256];
	long v;

	if (parse_value(key, text, len, &v, err, sizeof(err)))
		skb_bug(__FILE__, __LINE__, err);
	return v;
}

bool bench_grid_value(const struct bench_key *key, unsigned int i, long *out)
{
	const char *s = key->grid;

	while (i--) {
		s = strchr(s, ',');
		if (!s)
			return false;
		s++;
	}
	if (!*s)
		return false;
	*out = table_value(key, s, strcspn(s, ","));
	return true;
}

void bench_args_default(const struct bench_op *op, struct bench_args *out)
{
	memset(out, 0, sizeof(*out));
	out->op = op;
	for (const struct bench_key *key = op->keys; key && key->name; key++)
		out->key[out->nr++] = key;
	if (!out->nr || strcmp(out->key[out->nr - 1]->name, alloc_key.name))
		out->key[out->nr++] = &alloc_key;
	for (unsigned int i = 0; i < out->nr; i++)
		out->value[i] =
			table_value(out->key[i], out->key[i]->def, strlen(out->key[i]->def));
}

static int key_index(const struct bench_args *args, const char *name, size_t len)
{
	for (unsigned int i = 0; i < args->nr; i++)
		if (strlen(args->key[i]->name) == len && !memcmp(args->key[i]->name, name, len))
			return (int)i;
	return -1;
}

static int unknown_key(const struct bench_args *args, const char *text, size_t len, char *err,
		       size_t errlen)
{
	char keys[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < args->nr && used < sizeof(keys); i++)
		used += snprintf(keys + used, sizeof(keys) - used, "%s%s", i ? ", " : "",
				 args->key[i]->name);
	return bad(err, errlen, "no key '%.*s': the keys of %s are %s", (int)len, text,
		   args->op->name, keys);
}

/* The length of the operation's name within NAME: up to the first part that holds a colon. */
static size_t op_length(const char *name)
{
	const char *part = name;

	for (;;) {
		size_t len = strcspn(part, "/");

		if (memchr(part, ':', len))
			return part == name ? 0 : (size_t)(part - name - 1);
		if (!part[len])
			return (size_t)(part - name) + len;
		part += len + 1;
	}
}

/* Whether NAME, the operation's part of LEN left out, gives the first key a word of OP's. */
static bool is_form(const struct bench_op *op, const char *name, size_t len)
{
	const struct bench_key *form = op->keys;
	size_t key = strlen(form->name);

	for (const char *s = name + len; *s; s += strcspn(s, "/")) {
		size_t part = strcspn(++s, "/");

		if (part <= key || memcmp(s, form->name, key) || s[key] != ':')
			continue;
		for (unsigned int i = 0; form->words[i]; i++)
			if (strlen(form->words[i]) == part - key - 1 &&
			    !memcmp(form->words[i], s + key + 1, part - key - 1))
				return true;
	}
	return false;
}

/*
 * The operation that NAME, whose first LEN bytes are an operation's, belongs to: of several forms of one name that
 * whose word is given, else the first registered. NULL: there is none.
 */
static const struct bench_op *find_op(const char *name, size_t len)
{
	const struct bench_op *first = NULL;

	for (unsigned int i = 0; i < bench_nr_ops(); i++) {
		const struct bench_op *op = bench_op_at(i);

		if (strlen(op->name) != len || memcmp(op->name, name, len))
			continue;
		if (!first)
			first = op;
		else if (is_form(op, name, len))
			return op;
	}
	return first;
}

int bench_args_parse(const char *name, struct bench_args *out, char *err, size_t errlen)
{
	size_t len = op_length(name);
	bool given[BENCH_MAX_KEYS] = { false };
	const struct bench_op *op = find_op(name, len);
	const char *s;

	if (!op)
		return bad(err, errlen, "no operation '%.*s': --skb_list tells all of them",
			   (int)len, name);
	bench_args_default(op, out);
	for (s = name + len; *s;) {
		size_t part = strcspn(++s, "/");
		const char *colon = memchr(s, ':', part);
		int k, ret;

		if (!colon)
			return bad(err, errlen, "'%.*s' is not key:value", (int)part, s);
		k = key_index(out, s, (size_t)(colon - s));
		if (k < 0)
			return unknown_key(out, s, (size_t)(colon - s), err, errlen);
		if (given[k])
			return bad(err, errlen, "%s is given twice", out->key[k]->name);
		given[k] = true;
		ret = parse_value(out->key[k], colon + 1, part - (size_t)(colon + 1 - s),
				  &out->value[k], err, errlen);
		if (ret)
			return ret;
		s += part;
	}
	return 0;
}

const char *bench_value_text(const struct bench_key *key, long value, char *buf, size_t len)
{
	if (key->words)
		return key->words[value];
	snprintf(buf, len, "%ld", value);
	return buf;
}

void bench_args_name(const struct bench_args *args, char *buf, size_t len)
{
	size_t used = snprintf(buf, len, "%s", args->op->name);
	char num[24];

	for (unsigned int i = 0; i < args->nr && used < len; i++)
		used += snprintf(buf + used, len - used, "/%s:%s", args->key[i]->name,
				 bench_value_text(args->key[i], args->value[i], num, sizeof(num)));
	BUG_ON(used >= len);
}

const char *bench_args_alloc(const struct bench_args *args)
{
	return bench_alloc_words[args->value[args->nr - 1]];
}

int bench_args_set_alloc(struct bench_args *args, const char *word, char *err, size_t errlen)
{
	return parse_value(&alloc_key, word, strlen(word), &args->value[args->nr - 1], err, errlen);
}

long bench_arg(const struct bench_args *args, const char *key)
{
	int k = key_index(args, key, strlen(key));
	char what[128];

	if (k < 0) {
		snprintf(what, sizeof(what), "bench_arg(\"%s\"): %s has no such key", key,
			 args->op->name);
		skb_bug(__FILE__, __LINE__, what);
	}
	return args->value[k];
}

void bench_grid_first(const struct bench_op *op, struct bench_grid *grid)
{
	bench_args_default(op, &grid->args);
	for (unsigned int i = 0; i < grid->args.nr; i++) {
		grid->at[i] = 0;
		bench_grid_value(grid->args.key[i], 0, &grid->args.value[i]);
	}
}

bool bench_grid_next(struct bench_grid *grid)
{
	for (unsigned int i = grid->args.nr; i--;) {
		if (bench_grid_value(grid->args.key[i], ++grid->at[i], &grid->args.value[i]))
			return true;
		grid->at[i] = 0;
		bench_grid_value(grid->args.key[i], 0, &grid->args.value[i]);
	}
	return false;
}
