/* SPDX-License-Identifier: MIT */
/*
 * A device in another process, through the vfio-user protocol: a backend of the device seam.
 *
 * Memory that is mapped for the device becomes a file of its own at the same addresses, which the
 * other process maps as well: whoever else uses it meanwhile would miss what it stores during the
 * call. Register writes are posted, as on PCIe; reads and everything else wait for the answer. If
 * the other process goes, registers read as ones, as those of a device that was pulled out.
 *
 * Registers may be used by any thread at a time; the rest belongs to one.
 */
#ifndef HW_VFU_CLIENT_H
#define HW_VFU_CLIENT_H

#include "hw/nicdev.h"

/*
 * Connects to the server at PATH, resets its device and switches its memory decoding on. 0 with the
 * device in *OUT, which nicdev_close() frees; a negative errno with a sentence in ERR.
 */
int vfu_open(const char *path, struct nicdev **out, char *err, size_t errlen);

/* True if DEV is such a device and its server is gone. */
bool vfu_lost(const struct nicdev *dev);

#endif
