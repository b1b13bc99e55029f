/* SPDX-License-Identifier: MIT */
/* The commands of skbench_hw: each takes its own arguments and returns the exit status. */
#ifndef HW_CMD_CMD_H
#define HW_CMD_CMD_H

#include "sim/peer.h"
#include "skb/compiler.h"

#include <stdio.h>

enum { CMD_OK = 0, CMD_USAGE = 2, CMD_CONTROL = 3, CMD_IMPOSSIBLE = 4, CMD_FAILED = 5 };

int cmd_selftest(int argc, char **argv);
int cmd_race(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_bind(int argc, char **argv);
int cmd_unbind(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_respond(int argc, char **argv);

/* "skbench: hw: ..." on standard error. Returns STATUS. */
__attribute__((format(printf, 2, 3))) int cmd_error(int status, const char *fmt, ...);

/*
 * An option's value: "--name value" or "--name=value" at argv[*i], which moves on. NULL if argv[*i]
 * is another option; *FAULT is set for one without a value.
 */
const char *cmd_option(int argc, char **argv, int *i, const char *name, bool *fault);

/* TEXT as a number from LO to HI. False for any other text. */
bool cmd_number(const char *text, u64 lo, u64 hi, u64 *out);

/* TEXT as the name of a policy of ACKs. False for any other text. */
bool cmd_policy(const char *text, enum peer_policy *out);

/* A text inside quotes, as JSON has it. */
void cmd_json_text(FILE *f, const char *text);

/* Opens FILE for --json or --pcap, which must not exist; "-": standard output. NULL: said why. */
FILE *cmd_create(const char *name);

#endif
