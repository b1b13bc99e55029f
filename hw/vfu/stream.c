/* SPDX-License-Identifier: MIT */
#include "hw/vfu/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))];
};

void vfu_stream_init(struct vfu_stream *s, int fd)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
}

int vfu_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void close_all(const int *fds, u32 *nr_fds)
{
	while (*nr_fds)
		close(fds[--*nr_fds]);
}

/* The descriptors of one recvmsg(); those for which there is no room are closed. */
static void take_fds(struct msghdr *m, int *fds, u32 *nr_fds)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		u32 n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (u32 i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*nr_fds < VFU_MAX_FDS)
				fds[(*nr_fds)++] = fd;
			else
				close(fd);
		}
	}
}

/* LEN bytes. 1; 0 at the end of the stream; a negative errno. */
static int read_all(struct vfu_stream *s, u8 *to, size_t len, int *fds, u32 *nr_fds)
{
	while (len) {
		union control control;
		struct iovec iov = { to, len };
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? 0 : -errno;
		take_fds(&m, fds, nr_fds);
		if (!n)
			return 0;
		to += n;
		len -= n;
	}
	return 1;
}

int vfu_stream_read(struct vfu_stream *s, void *msg, size_t room, int *fds, u32 *nr_fds)
{
	struct vfu_header h;
	int ret;

	*nr_fds = 0;
	ret = read_all(s, msg, sizeof(h), fds, nr_fds);
	if (ret > 0) {
		memcpy(&h, msg, sizeof(h));
		if (h.bytes < sizeof(h) || h.bytes > room) {
			snprintf(s->why, sizeof(s->why),
				 "a message says that it has %u bytes: %zu to %zu are possible",
				 h.bytes, sizeof(h), room);
			ret = -EPROTO;
		} else {
			ret = read_all(s, (u8 *)msg + sizeof(h), h.bytes - sizeof(h), fds, nr_fds);
		}
	}
	if (ret <= 0)
		close_all(fds, nr_fds);
	return ret > 0 ? (int)h.bytes : ret;
}

int vfu_stream_write(int fd, const void *msg, size_t len, const int *fds, u32 nr_fds)
{
	union control control = { 0 };

	for (size_t at = 0; at < len;) {
		struct iovec iov = { (u8 *)msg + at, len - at };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		if (!at && nr_fds) { /* once, with the first byte */
			m.msg_control = &control;
			m.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
			control.header.cmsg_level = SOL_SOCKET;
			control.header.cmsg_type = SCM_RIGHTS;
			control.header.cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
			memcpy(CMSG_DATA(&control.header), fds, nr_fds * sizeof(int));
		}
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += max(n, (ssize_t)0);
	}
	return 0;
}
