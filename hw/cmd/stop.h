/* SPDX-License-Identifier: MIT */
/* SIGINT and SIGTERM as a wish: what runs ends at its next look, and stops its device. */
#ifndef HW_CMD_STOP_H
#define HW_CMD_STOP_H

/* Set by the first of these signals; a second one ends the process as it would have. */
extern volatile int stop_wanted;

/* From now on they set it. */
void stop_on_signals(void);

#endif
