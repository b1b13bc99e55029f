/* SPDX-License-Identifier: MIT */
/*
 * The driver's own check on a device, with nothing at the other end: every frame comes back through
 * the loopback of the MAC. On the model also times, and that nothing was done wrong.
 */
#ifndef HW_SELFTEST_H
#define HW_SELFTEST_H

#include "hw/nicdev.h"

#include <stdio.h>

#define SELFTEST_TEXT 640

struct selftest_row {
	const char *name;
	bool passed;
	char text[SELFTEST_TEXT]; /* a figure, or why not */
};

#define SELFTEST_MAX_ROWS 16

/*
 * Runs every check on DEV; NULL: on a model of DEVICE (a PCI device ID; 0: an 82599's) with SEED for
 * each. Frames of the first check go to PCAPNG, if that is not NULL (model only). Returns the number
 * of rows in ROWS.
 */
u32 selftest_run(struct nicdev *dev, u16 device, u64 seed, FILE *pcapng,
		 struct selftest_row rows[SELFTEST_MAX_ROWS]);

#endif
