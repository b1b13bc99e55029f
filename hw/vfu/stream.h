/* SPDX-License-Identifier: MIT */
/* Whole messages of the vfio-user protocol on a stream socket, with file descriptors beside them. */
#ifndef HW_VFU_STREAM_H
#define HW_VFU_STREAM_H

#include "hw/vfu/proto.h"

struct vfu_stream {
	int fd;
	char why[120]; /* after -EPROTO */
};

void vfu_stream_init(struct vfu_stream *s, int fd);

/*
 * One message into MSG, of ROOM bytes, and its file descriptors (up to VFU_MAX_FDS) into FDS, which
 * are the caller's. Its bytes; 0 at the end of the stream, also inside a message; -EPROTO for a
 * length that no message has, with s->why; or another negative errno. No descriptor is left after
 * anything but a message.
 */
int vfu_stream_read(struct vfu_stream *s, void *msg, size_t room, int *fds, u32 *nr_fds);

/* All of MSG and FDS. 0 or a negative errno; a closed socket is no signal. */
int vfu_stream_write(int fd, const void *msg, size_t len, const int *fds, u32 nr_fds);

/* A copy of FD that no program inherits; -1 and errno. */
int vfu_dup(int fd);

#endif
