/* SPDX-License-Identifier: MIT */
/*
 * The model of an 82599 for another process: a server of the vfio-user protocol on a unix socket.
 *
 * The client maps its memory by passing file descriptors, reads and writes registers and
 * configuration space by messages, and gets interrupts by eventfds. What it maps without a file is
 * known, and faults when the device reaches for it. The device's clock is the machine's.
 *
 * For one thread.
 */
#ifndef HW_VFU_SERVER_H
#define HW_VFU_SERVER_H

#include "hw/model_82599/model.h"
#include "hw/vfu/proto.h"
#include "hw/vfu/stream.h"

#define VFU_MAX_MAPS   64
#define VFU_MAX_PORTS  2
#define VFU_CFG_BYTES  256
#define VFU_TEXT_BYTES 240

struct vfu_server_map {
	u64 iova, len;
	void *at; /* NULL: no file came with it */
};

struct vfu_server {
	struct model_82599 *m;
	struct nicdev *dev;
	bool spoken; /* the version is agreed upon */
	u8 config[VFU_CFG_BYTES];
	struct vfu_server_map map[VFU_MAX_MAPS];
	u32 nr_maps;
	u64 messages;
	/* While it is served: */
	int listener, fd; /* fd -1: nobody is there */
	struct vfu_stream in;
	u64 offset_ps; /* of the device's clock to the machine's */
	bool over, was_active;
	int ret; /* 0: the client has closed; -EPROTO: s->why; -EINTR; another errno */
	char why[VFU_TEXT_BYTES]; /* the connection cannot go on: this is wrong with it */
};

/* Serves M, which stays the caller's. */
void vfu_server_init(struct vfu_server *s, struct model_82599 *m);

/*
 * The client is gone: the device is reset, its memory given back, its eventfds closed. Another may
 * come.
 */
void vfu_server_disconnect(struct vfu_server *s);

/*
 * One message, of LEN bytes with its header, and the NR_FDS file descriptors that came with it,
 * which are the server's from here on. Its answer in REPLY, of at least VFU_MAX_BODY and a header;
 * how many bytes, 0 for none; -EPROTO if nothing can follow, and s->why tells.
 */
int vfu_server_message(struct vfu_server *s, const void *msg, size_t len, const int *fds,
		       u32 nr_fds, void *reply);

/* True while the driver has not stopped the device: bus mastering is on. */
bool vfu_server_active(const struct vfu_server *s);

/*
 * Takes one client on each listening socket of the N servers and serves them together, the devices'
 * clocks running as the machine's does, until all have gone or *STOP is set by a signal. 0 or
 * -EINTR; how each ended is in its ret, and was_active tells whether its device ran then. None is
 * disconnected yet.
 */
int vfu_serve(struct vfu_server *const *server, u32 n, const volatile int *stop);

/* A listening socket at PATH, which must not exist. A negative errno with a sentence in ERR. */
int vfu_listen(const char *path, char *err, size_t errlen);

#endif
