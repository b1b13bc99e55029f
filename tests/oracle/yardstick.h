/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef TESTS_ORACLE_YARDSTICK_H
#define TESTS_ORACLE_YARDSTICK_H

/*
 * What operations cost in this kernel, as lines `operation,frags,number` in TEXT of ROOM bytes, of
 * which it returns how many it used. The numbers are nanoseconds of the guest's clock: under QEMU's
 * -icount shift=0 instructions, otherwise nothing.
 */
unsigned long oracle_yardstick(char *text, unsigned long room);

#endif
