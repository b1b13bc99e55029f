/* SPDX-License-Identifier: MIT */
/* skbench_hw: what `skbench hw` runs. */
#include "hw/cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "selftest", cmd_selftest, "the driver's own check, through the loopback of the MAC" },
	{ "race", cmd_race, "ACKs against transmit completions, for each trim variant" },
	{ "list", cmd_list, "the ports of this machine, and what keeps them from being used" },
	{ "bind", cmd_bind, "give a port to vfio-pci" },
	{ "unbind", cmd_unbind, "give it back to its driver" },
	{ "serve", cmd_serve, "the model for another process, by vfio-user on a socket" },
	{ "respond", cmd_respond, "the race's peer on another machine, on any Ethernet interface" },
};

int cmd_error(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("skbench: hw: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

const char *cmd_option(int argc, char **argv, int *i, const char *name, bool *fault)
{
	const char *word = argv[*i];
	size_t len = strlen(name);

	if (strncmp(word, name, len) || (word[len] && word[len] != '='))
		return NULL;
	if (word[len] == '=')
		return word + len + 1;
	if (*i + 1 < argc)
		return argv[++*i];
	*fault = true;
	return "";
}

bool cmd_number(const char *text, u64 lo, u64 hi, u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *out >= lo && *out <= hi;
}

bool cmd_policy(const char *text, enum peer_policy *out)
{
	for (*out = 0; *out < PEER_POLICY_NR; (*out)++)
		if (!strcmp(text, peer_policy_name(*out)))
			return true;
	return false;
}

void cmd_json_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", *text);
		else
			fputc(*text, f);
	}
	fputc('"', f);
}

FILE *cmd_create(const char *name)
{
	FILE *f;

	if (!strcmp(name, "-"))
		return stdout;
	f = fopen(name, "wx");
	if (!f)
		cmd_error(CMD_USAGE, "%s: %s", name, strerror(errno));
	return f;
}

static int help(FILE *f)
{
	fputs("usage: skbench hw COMMAND [OPTION...]; each takes --help\n\n", f);
	for (u32 i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].help);
	return f == stdout ? CMD_OK : CMD_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return help(stderr);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(stdout);
	for (u32 i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			int status = commands[i].run(argc - 1, argv + 1);

			if (fflush(stdout) || ferror(stdout))
				return cmd_error(CMD_FAILED, "standard output: %s",
						 strerror(errno));
			return status;
		}
	return cmd_error(CMD_USAGE, "'%s' is no command (skbench hw --help)", argv[1]);
}
