/* SPDX-License-Identifier: MIT */
/* What the race on the model and the one on a port share. */
#ifndef HW_RACE_INTERNAL_H
#define HW_RACE_INTERNAL_H

#include "hw/race.h"

enum { OP_SEND, OP_ACK, OP_COMPLETE };
enum { CPU_SENDER, CPU_SOFTIRQ, CPU_COMPLETION };

struct race_packet {
	u64 doorbell_ps, dd_ps, reclaim_ps, ack_ps; /* 0: not yet */
};

/* 0, or -EINVAL with a sentence in ERR. */
int race_check_params(const struct race_params *p, char *err, size_t errlen);

/* Of N times in US, which it sorts. */
struct race_spread race_spread(double *us, u32 n);

/*
 * Spreads and sums of the first N packets into RES; in *RACES how many raced by their times alone. 0
 * or -ENOMEM.
 */
int race_summarise(const struct race_packet *packet, u32 n, struct race_result *res, u32 *races);

#endif
