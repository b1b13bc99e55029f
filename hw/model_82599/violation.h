/* SPDX-License-Identifier: MIT */
/*
 * Wrong uses of an 82599 that the model records. Hardware punishes each in its own way, often long
 * after: a hung queue, a corrupt packet, memory of somebody else overwritten.
 */
#ifndef HW_MODEL_82599_VIOLATION_H
#define HW_MODEL_82599_VIOLATION_H

#include "skb/compiler.h"

/* X(NAME, sentence); what the driver did. */
#define MODEL_VIOLATIONS(X)                                                                       \
	/* registers */                                                                           \
	X(MMIO, "access that is no aligned 32-bit register of the first 128 KB")                  \
	X(RESET_ACCESS, "register access within 1 ms of CTRL.RST")                                \
	X(EEPROM_WAIT, "a queue enabled before EEC.AUTO_RD and RDRXCTL.DMAIDONE read as done")    \
	X(SEMAPHORE, "AUTOC written without the MAC_CSR semaphore while firmware manages links")  \
	X(SWFW_REGISTER, "SW_FW_SYNC written without SWSM.SMBI and SWESMBI (X540 on: REGSMP)")    \
	X(SWFW_TAKEN, "a resource of SW_FW_SYNC taken that firmware has")                         \
	X(SWFW_RESOURCE, "CTRL.RST, EERD or MSCA of an X540 or later without its resource")       \
	X(SWFW_KEPT, "a resource of SW_FW_SYNC kept when CTRL_EXT.DRV_LOAD changes")              \
	X(TABLES, "RXEN set while MTA, VFTA, PFUTA, PFVLVF(B), MPSAR or FTQF hold power-on data") \
	X(PBA, "an interrupt unmasked in MSI-X mode without GPIE.PBA_SUPPORT")                    \
	/* rings */                                                                               \
	X(RING_ALIGN, "ring base not aligned to 128 bytes")                                       \
	X(RING_LEN, "ring length 0, no multiple of 128, or above 128 KB")                         \
	X(RING_WRITE_ENABLED, "ring base, length, head or thresholds written while enabled")      \
	X(TAIL_RANGE, "tail beyond the end of the ring")                                          \
	X(TAIL_DISABLED, "tail moved before ENABLE read as 1")                                    \
	X(TAIL_MID_PACKET, "tail in the middle of a packet")                                      \
	X(TAIL_CONTEXT, "tail behind a context descriptor")                                       \
	X(RING_OVERRUN, "tail moved onto descriptors that are not written back")                  \
	X(DESC_REUSED, "a descriptor changed between doorbell and write-back")                    \
	/* transmit set-up */                                                                     \
	X(TX_ENABLE_ORDER, "TXDCTL.ENABLE set while DMATXCTL.TE is 0")                            \
	X(DTXMXSZRQ, "packets sent with DTXMXSZRQ as it comes out of reset (4 KB outstanding)")   \
	X(ARBDIS_LEFT, "packets sent with RTTDCS.ARBDIS set")                                     \
	X(ARB_CHANGE, "DTXMXSZRQ, TXPBSIZE, TXPBTHRESH or MTQC written without RTTDCS.ARBDIS")    \
	X(TXPBTHRESH, "TXPBTHRESH below one frame")                                               \
	X(PTHRESH, "PTHRESH + WTHRESH above the 40 descriptors of the chip")                      \
	X(HTHRESH, "HTHRESH 0 with PTHRESH not 0")                                                \
	X(DCA_TXCTRL, "packets sent with DCA_TXCTRL bit 11 set: write-backs may be reordered")    \
	X(TCPFLG, "TSO sent before DTXTCPFLGL and DTXTCPFLGH were written")                       \
	X(HEAD_WB_WTHRESH, "head write-back with WTHRESH above 0")                                \
	X(HEAD_WB_ALIGN, "head write-back address not aligned to 16 bytes")                       \
	/* transmit descriptors */                                                                \
	X(DESC_FORMAT, "DEXT 0, or DTYP neither data nor context")                                \
	X(DESC_RESERVED, "reserved bits of a descriptor set")                                     \
	X(DTALEN, "DTALEN 0 or above 15.5 KB")                                                    \
	X(DESC_COUNT, "more than 40 - WTHRESH descriptors in a packet")                           \
	X(IFCS, "IFCS 0 with TSE or checksum offload")                                            \
	X(RS_NO_EOP, "RS without EOP")                                                            \
	X(RS_MISSING, "WTHRESH 0 and no RS on the last descriptor of a packet")                   \
	X(RS_WTHRESH, "RS with WTHRESH above 0")                                                  \
	X(CTX_IDX, "IDX above 1")                                                                 \
	X(CTX_MISSING, "offload without a context since the queue was enabled")                   \
	/* offload */                                                                             \
	X(PAYLEN, "PAYLEN is not what the buffers hold (TSO: without the header)")                \
	X(FRAME_LEN, "frame below 17 bytes, or MSS and header above the largest frame")           \
	X(MSS, "MSS 0")                                                                           \
	X(HDR_LEN, "TSO header above 240 bytes or in more than 4 buffers")                        \
	X(HDR_MISMATCH, "MACLEN, IPLEN, L4LEN or TUCMD disagree with the frame")                  \
	X(POPTS, "TSE without TXSM, or IXSM not as the IP version asks")                          \
	X(IP_CSUM, "IPv4 header checksum of the prototype not 0")                                 \
	X(TCP_SEED, "TCP checksum of the prototype is not the pseudo header's sum")               \
	X(HLREG0, "offload with HLREG0.TXCRCEN or TXPADEN off")                                   \
	X(BUFFER_CHANGED, "header or payload changed between doorbell and fetch")                 \
	/* receive */                                                                             \
	X(SRRCTL_SIZE, "SRRCTL.BSIZEPACKET 0 or above 16 KB")                                     \
	X(SRRCTL_TYPE, "SRRCTL.DESCTYPE is not the advanced one-buffer format")                   \
	X(DCA_RXCTRL, "RXDCTL.ENABLE with DCA_RXCTRL bit 12 set: payload gets corrupted")         \
	X(RX_REARM, "receive descriptor posted with its DD bit set")                              \
	X(CRC_STRIP, "HLREG0.RXCRCSTRP and RDRXCTL.CRCSTRIP differ at RXEN")                      \
	X(RDRXCTL, "RXEN with RSCFRSTSIZE not 0, or RSCACKC or FCOE_WRFIX 0")                     \
	X(RSC, "RXEN with RFCTL.RSC_DIS 0")                                                       \
	X(SECRX, "RXEN set without SECRXCTRL.RX_DIS and SECRXSTAT.RDY")                           \
	X(FCTRL, "FCTRL written while RXEN is set")                                               \
	X(RXPBSIZE, "RXEN with RXPBSIZE[0] above what the chip has: 512 KB, X540 on 384 KB")      \
	X(FCRTH, "RXEN with FCRTH[0] not 0x6000 below RXPBSIZE[0]")                               \
	/* memory */                                                                              \
	X(IOMMU_FAULT, "DMA to an IOVA that is not mapped, or not for that direction")            \
	X(BUS_MASTER, "DMA while bus mastering is off in configuration space")                    \
	X(GIO_DIS, "DMA while CTRL.GIO_DIS is set")                                               \
	X(UNMAP_ACTIVE, "memory unmapped while an enabled ring or a posted buffer uses it")

enum model_violation {
#define X(name, text) V_##name,
	MODEL_VIOLATIONS(X)
#undef X
		V_NR
};

const char *model_violation_name(enum model_violation v);
const char *model_violation_text(enum model_violation v);

#endif
