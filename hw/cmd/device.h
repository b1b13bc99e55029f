/* SPDX-License-Identifier: MIT */
/* --device and --vfio, as selftest and race take them. */
#ifndef HW_CMD_DEVICE_H
#define HW_CMD_DEVICE_H

#include "hw/nicdev.h"

struct device_choice {
	const char *name; /* "model", "model:WHAT", a PCI address, or "vfio-user:PATH" */
	const char *vfio; /* group, cdev, noiommu; NULL: what there is */
	bool unsafe_noiommu; /* --enable-unsafe-noiommu was given */
};

/* True if argv[*i] is one of them; *FAULT for a value that is none. */
bool device_option(int argc, char **argv, int *i, struct device_choice *c, bool *fault);

/*
 * True if C is a model; the PCI device ID that it is to have in *ID: the first of a controller's in
 * the table for its name, an ID for itself. *FAULT for a WHAT that is neither.
 */
bool device_is_model(const struct device_choice *c, u16 *id, bool *fault);

/*
 * Opens what was chosen; NULL in *DEV for the model. 0, or a negative errno, and standard error has
 * the reason.
 */
int device_open(const struct device_choice *c, struct nicdev **dev);

/* A sentence about the slot that port NAME is in, and whether it carries 10 Gbit/s; "" for others. */
void device_slot(const char *name, char *text, size_t len);

#endif
