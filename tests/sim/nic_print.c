/* SPDX-License-Identifier: MIT */
/*
 * Reads the timing of a NIC and a packet from each line of standard input, prints what the model
 * makes of it: seg K out, last out, fetched, DD, window, all in ps. Exit status 2 for a line that
 * it cannot read or that the model refuses.
 *
 * A line: wire_mbps pcie_mbps tlp mps header framing min_wire fifo_threshold backlog start_ps
 * writeback_ps bytes mss k
 */
#include "sim/nic.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
	struct nic_params p = { .name = "stdin" };
	u32 bytes, mss, k;
	struct nic_lone l;
	char err[200] = "";
	int got;

	while ((got = scanf("%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32
			    "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu64 "%" SCNu64 "%" SCNu32
			    "%" SCNu32 "%" SCNu32,
			    &p.wire_mbps, &p.pcie_mbps, &p.tlp_bytes, &p.mps_bytes, &p.header_bytes,
			    &p.framing_bytes, &p.min_wire_bytes, &p.fifo_threshold_bytes,
			    &p.backlog_bytes, &p.start_ps, &p.writeback_ps, &bytes, &mss, &k)) ==
	       14) {
		p.fifo_bytes = p.fifo_threshold_bytes;
		if (nic_lone(&p, bytes, mss, 1, k, &l, err, sizeof(err))) {
			fprintf(stderr, "nic_print: %s\n", err);
			return 2;
		}
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n", l.kth_ps,
		       l.last_ps, l.fetched_ps, l.dd_ps, l.window_ps);
	}
	return got == EOF ? 0 : 2;
}
