/* SPDX-License-Identifier: MIT */
#include "benches/harness/control.h"
#include "benches/harness/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 10000

/* Never waits for the other end, which the profiler opened before it started this program; later reads do wait. */
static int open_end(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		fcntl(fd, F_SETFL, flags);
	return fd;
}

static enum bench_status no_end(const struct control *c, const char *path)
{
	return bench_fail(BENCH_IMPOSSIBLE, c->name, "--skb_control: %s: %s", path,
			  errno == ENXIO ? "no profiler reads it" : strerror(errno));
}

enum bench_status control_open(struct control *c, const char *paths, const char *name)
{
	const char *comma = strchr(paths, ',');
	char ctl[PATH_MAX];

	*c = (struct control){ .ctl = -1, .ack = -1, .name = name };
	if (!comma || comma == paths || !comma[1] || comma - paths >= (long)sizeof(ctl))
		return bench_fail(BENCH_USAGE, name,
				  "--skb_control needs the names of two FIFOs, CTL,ACK");
	memcpy(ctl, paths, (size_t)(comma - paths));
	ctl[comma - paths] = '\0';
	c->ctl = open_end(ctl, O_WRONLY);
	if (c->ctl < 0)
		return no_end(c, ctl);
	c->ack = open_end(comma + 1, O_RDONLY);
	if (c->ack < 0) {
		enum bench_status status = no_end(c, comma + 1);

		control_close(c);
		return status;
	}
	/* A profiler that has gone is an error of write(), not the end of this program. */
	signal(SIGPIPE, SIG_IGN);
	return BENCH_OK;
}

static enum bench_status gone(const struct control *c, const char *word)
{
	return bench_fail(BENCH_FAILED, c->name, "the profiler has gone and does not %s any more",
			  word);
}

/* Reads up to the end of the line. perf ends its answer with a NUL behind it, which then comes before the next one. */
static enum bench_status await_ack(const struct control *c, const char *word)
{
	char line[16], *at = line;
	struct pollfd p = { .fd = c->ack, .events = POLLIN };

	while (at < line + sizeof(line)) {
		ssize_t got;
		int ready = poll(&p, 1, ANSWER_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return bench_fail(BENCH_FAILED, c->name,
					  "the profiler did not answer '%s' within %d s", word,
					  ANSWER_MS / 1000);
		got = read(c->ack, at, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return gone(c, word);
		if (*at == '\n')
			break;
		at += *at != '\0';
	}
	if (at - line != 3 || memcmp(line, "ack", 3))
		return bench_fail(BENCH_FAILED, c->name, "the profiler answered '%s' with '%.*s'",
				  word, (int)(at - line), line);
	return BENCH_OK;
}

static enum bench_status say(struct control *c, const char *word)
{
	u64 start = bench_wall_ns();
	char line[16];
	int len = snprintf(line, sizeof(line), "%s\n", word);
	enum bench_status status;

	if (write(c->ctl, line, (size_t)len) != len)
		return gone(c, word);
	status = await_ack(c, word);
	c->ns += bench_wall_ns() - start;
	return status;
}

enum bench_status control_enable(struct control *c)
{
	return say(c, "enable");
}

enum bench_status control_disable(struct control *c)
{
	c->pairs++;
	return say(c, "disable");
}

void control_close(struct control *c)
{
	if (c->ctl >= 0)
		close(c->ctl);
	if (c->ack >= 0)
		close(c->ack);
	c->ctl = c->ack = -1;
}
