/* SPDX-License-Identifier: MIT */
/*
 * Named timings. Sources:
 *
 *   buffer, threshold   82599 datasheet: TXPBSIZE resets to 160 KB, TXPBTHRESH to 150 KB
 *   PCIe                raw 2 Gbit/s a lane for Gen1 (8b/10b), 4 for Gen2, 7.9 for Gen3 (128b/130b)
 *   start, write-back   1 us and 0.3 us: assumed
 *   patch               4660 Mbit/s was what the author of the 2012 patch got from his x4 slot:
 *                       5.2 Gbit/s before the overhead of TLPs and repeated headers
 *   fifo_full           148 KB of other traffic is 118 us of wire
 *   200g, 400g          Gen4 and Gen5 x16
 *   big_tcp_*           524280 is the kernel's GSO_MAX_SIZE (5.19), 185000 about 128 segments; the
 *                       transmit buffer of such a card is assumed to be 1 MB
 */
#include "sim/nic.h"

#include <string.h>

#define LEGACY_GSO 65160 /* 45 segments of 1448 */

#define COMMON                                                                      \
	.tlp_bytes = 24, .mps_bytes = 256, .header_bytes = 66, .framing_bytes = 24, \
	.min_wire_bytes = 84, .writeback_ps = 300 * SIM_PS_PER_NS
#define IXGBE                                                                             \
	COMMON, .wire_mbps = 10000, .fifo_bytes = 163840, .fifo_threshold_bytes = 150000, \
		.start_ps = SIM_PS_PER_US, .gso_bytes = LEGACY_GSO
/* Faster cards: somewhat shorter latencies. */
#define FAST(wire, pcie, fifo, bytes)                                     \
	COMMON, .wire_mbps = wire, .pcie_mbps = pcie, .fifo_bytes = fifo, \
		.fifo_threshold_bytes = fifo, .start_ps = 800 * SIM_PS_PER_NS, .gso_bytes = bytes

const struct nic_params nic_presets[] = {
	{ .name = "patch", IXGBE, .pcie_mbps = 5200 },
	{ .name = "gen1x4", IXGBE, .pcie_mbps = 8000 },
	{ .name = "gen2x8", IXGBE, .pcie_mbps = 32000 },
	{ .name = "fifo_full", IXGBE, .pcie_mbps = 32000, .backlog_bytes = 148000 },
	{ .name = "gen2x4", IXGBE, .pcie_mbps = 16000 },
	{ .name = "25g", FAST(25000, 126000, 150000, LEGACY_GSO) },
	{ .name = "40g", FAST(40000, 63000, 150000, LEGACY_GSO) },
	{ .name = "100g", FAST(100000, 126000, 150000, LEGACY_GSO) },
	{ .name = "200g", FAST(200000, 252000, 150000, LEGACY_GSO) },
	{ .name = "400g", FAST(400000, 504000, 150000, LEGACY_GSO) },
	{ .name = "big_tcp_100g_185k", FAST(100000, 126000, 1000000, 185000) },
	{ .name = "big_tcp_100g", FAST(100000, 126000, 1000000, 524280) },
	{ .name = "big_tcp_200g", FAST(200000, 252000, 1000000, 524280) },
	{ .name = "big_tcp_400g", FAST(400000, 504000, 1000000, 524280) },
};
const unsigned int nr_nic_presets = ARRAY_SIZE(nic_presets);

const struct nic_params *nic_preset(const char *name)
{
	for (unsigned int i = 0; i < nr_nic_presets; i++)
		if (!strcmp(nic_presets[i].name, name))
			return &nic_presets[i];
	return NULL;
}
