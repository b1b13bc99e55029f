/* SPDX-License-Identifier: MIT */
/*
 * The ports of this machine by sysfs: what they are, what keeps them from being used, giving one to
 * vfio-pci and back.
 *
 * Every path begins with env->root and every change goes through env->write, so that the tests run
 * on a tree of their own with a kernel of their own. For one thread.
 */
#ifndef HW_VFIO_SYSFS_H
#define HW_VFIO_SYSFS_H

#include "hw/ixgbe/ixgbe.h"

#define SYSFS_NAME	64
#define SYSFS_NEED_MBPS 11000 /* raw, for a port at 10 Gbit/s with headers read again */

struct sysfs_env {
	const char *root; /* "" on a real machine */
	/* Writes TEXT into PATH as the kernel takes it. 0 or a negative errno. */
	int (*write)(void *ctx, const char *path, const char *text);
	void *ctx;
	bool ssh; /* this session comes over the network */
};

/* This machine. */
struct sysfs_env sysfs_this_machine(void);

struct sysfs_port {
	char bdf[16];
	u16 vendor, device;
	const struct ixgbe_id *id; /* NULL: none of ours */
	char driver[SYSFS_NAME]; /* "": none */
	int group; /* IOMMU group, also 0; -1: no IOMMU */
	bool noiommu; /* the group is one of vfio's without an IOMMU */
	int node; /* -1: not told */
	char iface[SYSFS_NAME]; /* "": no network interface */
	bool up;
	char route[SYSFS_NAME]; /* the interface, or one above it, that has routes; "": none */
	bool default_route;
	u32 vfs; /* virtual functions that exist */
	u32 pcie_gen, pcie_lanes, pcie_max_gen, pcie_max_lanes; /* 0: not told */
};

/*
 * The port at PCI address BDF. 0; -EINVAL for a text that is no address; -ENODEV if there is none,
 * with a sentence in ERR.
 */
int sysfs_read_port(const struct sysfs_env *env, const char *bdf, struct sysfs_port *port,
		    char *err, size_t errlen);

/* Up to MAX ports of the family, by address. Returns how many there are. */
u32 sysfs_list(const struct sysfs_env *env, struct sysfs_port *ports, u32 max);

/* Raw rate of a slot in Mbit/s after the line code; 0 if it is not told. */
u32 sysfs_pcie_mbps(u32 gen, u32 lanes);

/*
 * Gives the port at BDF to vfio-pci and notes in /run what it was, for sysfs_unbind(). FORCE: also
 * if its interface has routes; never the one of the default route, or of this ssh session. 0; a
 * negative errno with a sentence in ERR, and the port as it was.
 */
int sysfs_bind(const struct sysfs_env *env, const char *bdf, bool force, char *err, size_t errlen);

/* Undoes it: the override and the driver that there were. 0, or a negative errno with a sentence. */
int sysfs_unbind(const struct sysfs_env *env, const char *bdf, char *err, size_t errlen);

/*
 * Why group GROUP cannot be used: each device in it that a kernel driver holds, and the command
 * that releases it. Bridges do not count. Returns how many there are.
 */
u32 sysfs_blockers(const struct sysfs_env *env, int group, char *text, size_t len);

/* Process that has /dev/vfio/GROUP open; 0: not found. */
int sysfs_group_user(const struct sysfs_env *env, int group);

#endif
