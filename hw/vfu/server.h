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

#define VFU_MAX_MAPS   64
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
 * Takes one client on the listening socket LISTENER and serves it, the device's clock running as
 * the machine's does, until it goes or *STOP is set by a signal. 0; -EPROTO with s->why; -EINTR
 * after *STOP; a negative errno of the sockets with s->why. The client is disconnected.
 */
int vfu_serve(struct vfu_server *s, int listener, const volatile int *stop);

/* A listening socket at PATH, which must not exist. A negative errno with a sentence in ERR. */
int vfu_listen(const char *path, char *err, size_t errlen);

#endif
