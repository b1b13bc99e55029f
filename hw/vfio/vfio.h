/* SPDX-License-Identifier: MIT */
/*
 * A PCI device through VFIO: by its group (every kernel), by its character device and iommufd (6.6
 * and later, if built in), or without an IOMMU (only if told to).
 *
 * The system calls go through a table, so that the tests can answer as a kernel does.
 */
#ifndef HW_VFIO_VFIO_H
#define HW_VFIO_VFIO_H

#include "hw/nicdev.h"
#include "hw/vfio/sysfs.h"

#include <sys/types.h>

struct vfio_sys {
	int (*open)(void *ctx, const char *path); /* for reading and writing; a negative errno */
	int (*close)(void *ctx, int fd);
	int (*ioctl)(void *ctx, int fd, unsigned long request, void *arg); /* a negative errno */
	ssize_t (*pread)(void *ctx, int fd, void *to, size_t len, off_t at);
	ssize_t (*pwrite)(void *ctx, int fd, const void *from, size_t len, off_t at);
	void *(*mmap)(void *ctx, int fd, size_t len, off_t at); /* NULL: not possible */
	int (*munmap)(void *ctx, void *p, size_t len);
	u64 (*memlock)(void *ctx); /* bytes that may be locked; ~0: no limit */
	void *ctx;
};

extern const struct vfio_sys vfio_this_machine;

enum vfio_how { VFIO_ANY, VFIO_GROUP, VFIO_CDEV, VFIO_NOIOMMU };

/* "group", "cdev", "noiommu"; -EINVAL for any other text. */
int vfio_how_parse(const char *text);

/*
 * Opens the port at BDF, which is bound to vfio-pci, resets it and maps its registers. VFIO_ANY
 * takes the character device if there is one, else the group; never noiommu, which also needs
 * UNSAFE. 0 with the device in *OUT, which nicdev_close() frees; a negative errno with a sentence in
 * ERR that names what to do, and nothing left open.
 */
int vfio_open(const struct vfio_sys *sys, const struct sysfs_env *env, const char *bdf,
	      enum vfio_how how, bool unsafe, struct nicdev **out, char *err, size_t errlen);

#endif
