/* SPDX-License-Identifier: MIT */
/*
 * Registers, bits and descriptors of the 82599 family, by the names that datasheet and kernel give
 * them. Section numbers are those of the 82599 datasheet (8.2.3: registers, 7.1: receive, 7.2:
 * transmit).
 *
 * Each is 32 bits wide at an offset of BAR 0; only the first 128 KB there are registers.
 */
#ifndef HW_IXGBE_REGS_H
#define HW_IXGBE_REGS_H

#include "skb/compiler.h"

#define IXGBE_REG_BYTES 0x20000
#define IXGBE_NR_QUEUES 128

/* --- general (8.2.3.1), EEPROM (8.2.3.2), semaphores (8.2.3.4) */
#define IXGBE_CTRL		    0x00000
#define IXGBE_CTRL_GIO_DIS	    (1u << 2)
#define IXGBE_CTRL_LNK_RST	    (1u << 3)
#define IXGBE_CTRL_RST		    (1u << 26)
#define IXGBE_STATUS		    0x00008
#define IXGBE_STATUS_LAN_ID_SHIFT   2 /* the port of a card with several */
#define IXGBE_STATUS_LAN_ID(v)	    ((v) >> IXGBE_STATUS_LAN_ID_SHIFT & 3)
#define IXGBE_STATUS_GIO	    (1u << 19) /* requests may be outstanding */
#define IXGBE_CTRL_EXT		    0x00018
#define IXGBE_CTRL_EXT_NS_DIS	    (1u << 16)
#define IXGBE_CTRL_EXT_DRV_LOAD	    (1u << 28)
#define IXGBE_ESDP		    0x00020
#define IXGBE_ESDP_SDP2		    (1u << 2) /* a module is in the cage */
#define IXGBE_I2CCTL		    0x00028
#define IXGBE_I2CCTL_CLK_IN	    (1u << 0)
#define IXGBE_I2CCTL_CLK_OUT	    (1u << 1)
#define IXGBE_I2CCTL_DATA_IN	    (1u << 2)
#define IXGBE_I2CCTL_DATA_OUT	    (1u << 3)
#define IXGBE_FRTIMER		    0x00048
#define IXGBE_EEC		    0x10010
#define IXGBE_EEC_PRES		    (1u << 8)
#define IXGBE_EEC_ARD		    (1u << 9) /* its contents were read */
#define IXGBE_EEC_SIZE(n)	    ((n) << 11) /* 64 << n words */
#define IXGBE_EEC_X553		    0x15ff8
#define IXGBE_EERD		    0x10014
#define IXGBE_EERD_START	    (1u << 0)
#define IXGBE_EERD_DONE		    (1u << 1)
#define IXGBE_EERD_ADDR_SHIFT	    2
#define IXGBE_EERD_ADDR(v)	    ((v) >> 2 & 0x3fff)
#define IXGBE_EERD_DATA_SHIFT	    16
#define IXGBE_EEPROM_CAPS	    0x2c /* the word that tells what a board has */
#define IXGBE_EEPROM_CAPS_NO_CAGE   (1u << 7) /* SDP2 does not tell of a module */
#define IXGBE_FWSM_X553		    0x15f74
#define IXGBE_SWSM		    0x10140
#define IXGBE_SWSM_SMBI		    (1u << 0)
#define IXGBE_SWSM_SWESMBI	    (1u << 1)
#define IXGBE_FWSM		    0x10148
#define IXGBE_FWSM_FW_VALID	    (1u << 15) /* there is firmware, and it runs */
#define IXGBE_FWSM_EXT_ERR	    (0x3fu << 19)
#define IXGBE_SWSM_X553		    0x15f70
#define IXGBE_GSSR		    0x10160 /* SW_FW_SYNC */
#define IXGBE_GSSR_X553		    0x15f78
#define IXGBE_GSSR_EEP_SM	    (1u << 0)
#define IXGBE_GSSR_PHY0_SM	    (1u << 1)
#define IXGBE_GSSR_PHY1_SM	    (1u << 2)
#define IXGBE_GSSR_MAC_CSR_SM	    (1u << 3)
#define IXGBE_GSSR_FLASH_SM	    (1u << 4)
#define IXGBE_GSSR_SW		    0x1fu
#define IXGBE_GSSR_FW_SHIFT	    5 /* firmware's bit of each lies this far above */
#define IXGBE_GSSR_REGSMP	    (1u << 31) /* the register's own, on X540 and later */
#define IXGBE_GCR_EXT		    0x11050
#define IXGBE_GCR_EXT_BUFFERS_CLEAR (1u << 30)

/* --- link (8.2.3.22) */
#define IXGBE_HLREG0		  0x04240
#define IXGBE_HLREG0_TXCRCEN	  (1u << 0)
#define IXGBE_HLREG0_RXCRCSTRP	  (1u << 1)
#define IXGBE_HLREG0_JUMBOEN	  (1u << 2)
#define IXGBE_HLREG0_TXPADEN	  (1u << 10)
#define IXGBE_HLREG0_LPBK	  (1u << 15)
#define IXGBE_HLREG0_RESET	  0x0801040bu
#define IXGBE_MSCA		  0x0425c /* MDIO, clause 45 */
#define IXGBE_MSCA_DEVICE_SHIFT	  16
#define IXGBE_MSCA_PHY_SHIFT	  21
#define IXGBE_MSCA_ADDRESS	  (0u << 26)
#define IXGBE_MSCA_WRITE	  (1u << 26)
#define IXGBE_MSCA_READ		  (3u << 26)
#define IXGBE_MSCA_OP		  (3u << 26)
#define IXGBE_MSCA_COMMAND	  (1u << 30) /* clears itself when done */
#define IXGBE_MSRWD		  0x04260
#define IXGBE_MSRWD_READ_SHIFT	  16
#define IXGBE_MAXFRS		  0x04268
#define IXGBE_MFLCN		  0x04294
#define IXGBE_MFLCN_RPFCE	  (1u << 2)
#define IXGBE_MFLCN_RFCE	  (1u << 3)
#define IXGBE_AUTOC		  0x042a0
#define IXGBE_AUTOC_FLU		  (1u << 0)
#define IXGBE_AUTOC_AN_RESTART	  (1u << 12)
#define IXGBE_AUTOC_LMS_SHIFT	  13
#define IXGBE_AUTOC_LMS_MASK	  (7u << IXGBE_AUTOC_LMS_SHIFT)
#define IXGBE_AUTOC_LMS_10G_SFI	  (3u << IXGBE_AUTOC_LMS_SHIFT)
#define IXGBE_AUTOC_LMS_10G_NO_AN (1u << IXGBE_AUTOC_LMS_SHIFT)
#define IXGBE_LINKS		  0x042a4
#define IXGBE_LINKS_UP		  (1u << 30)
#define IXGBE_LINKS_SPEED_SHIFT	  28
#define IXGBE_ANLP1		  0x042b0
#define IXGBE_ANLP1_AN_STATE	  (0xfu << 16)
#define IXGBE_MACC		  0x04330
#define IXGBE_MACC_FLU		  (1u << 0)

/* --- interrupts (8.2.3.5) */
#define IXGBE_EICR	       0x00800
#define IXGBE_EICS	       0x00808
#define IXGBE_EIAC	       0x00810
#define IXGBE_EITR(v)	       ((v) < 24 ? 0x00820 + 4 * (v) : 0x12300 + 4 * ((v)-24))
#define IXGBE_EITR_CNT_WDIS    (1u << 31)
#define IXGBE_EITR_MAX_US      1022
#define IXGBE_EIMS	       0x00880
#define IXGBE_EIMC	       0x00888
#define IXGBE_EIAM	       0x00890
#define IXGBE_GPIE	       0x00898
#define IXGBE_GPIE_MSIX_MODE   (1u << 4)
#define IXGBE_GPIE_OCD	       (1u << 5) /* a read of EICR clears bits 29:16 alone */
#define IXGBE_GPIE_EIAME       (1u << 30)
#define IXGBE_GPIE_PBA_SUPPORT (1u << 31)
#define IXGBE_IVAR(n)	       (0x00900 + 4 * (n))
#define IXGBE_IVAR_VALID       0x80u
#define IXGBE_IVAR_MISC	       0x00a00 /* 15:8 the vector of the causes that no queue has */
#define IXGBE_EICS_EX(i)       (0x00a90 + 4 * (i))
#define IXGBE_EIMS_EX(i)       (0x00aa0 + 4 * (i))
#define IXGBE_EIMC_EX(i)       (0x00ab0 + 4 * (i))
#define IXGBE_EIAM_EX(i)       (0x00ad0 + 4 * (i))
#define IXGBE_EICR_QUEUES      0x0000ffffu
#define IXGBE_EICR_OTHERS      0x7fff0000u
#define IXGBE_EICR_OCD	       0x3fff0000u
#define IXGBE_EICR_LSC	       (1u << 20)

/* --- registers of a 10GBASE-T PHY (IEEE 802.3, clause 45; the X540's and X550's own) */
#define MDIO_MMD_PMAPMD	     1
#define MDIO_MMD_VEND1	     30
#define MDIO_DEVID1	     2
#define MDIO_VEND1_CONTROL   0
#define MDIO_VEND1_LOW_POWER (1u << 11)

/* --- receive (8.2.3.8, 8.2.3.7) */
#define IXGBE_RXQ(n)		     ((n) < 64 ? 0x01000 + 0x40 * (n) : 0x0d000 + 0x40 * ((n)-64))
#define IXGBE_RDBAL(n)		     (IXGBE_RXQ(n) + 0x00)
#define IXGBE_RDBAH(n)		     (IXGBE_RXQ(n) + 0x04)
#define IXGBE_RDLEN(n)		     (IXGBE_RXQ(n) + 0x08)
#define IXGBE_DCA_RXCTRL(n)	     (IXGBE_RXQ(n) + 0x0c)
#define IXGBE_DCA_RXCTRL_ALIAS(n)    (0x02200 + 4 * (n)) /* the same register; n below 16 */
#define IXGBE_DCA_RXCTRL_RESERVED    (1u << 12) /* resets to 1, to be cleared (4.6.7) */
#define IXGBE_DCA_RXCTRL_DATA_WRO_EN (1u << 13)
#define IXGBE_DCA_RXCTRL_HEAD_WRO_EN (1u << 15)
#define IXGBE_RDH(n)		     (IXGBE_RXQ(n) + 0x10)
#define IXGBE_SRRCTL(n)		     (IXGBE_RXQ(n) + 0x14)
#define IXGBE_SRRCTL_ALIAS(n)	     (0x02100 + 4 * (n)) /* the same register; n below 16 */
#define IXGBE_SRRCTL_BSIZEPKT	     0x1fu /* KB */
#define IXGBE_SRRCTL_DESCTYPE_SHIFT  25
#define IXGBE_SRRCTL_DESCTYPE_MASK   (7u << IXGBE_SRRCTL_DESCTYPE_SHIFT)
#define IXGBE_SRRCTL_ADV_ONEBUF	     (1u << IXGBE_SRRCTL_DESCTYPE_SHIFT)
#define IXGBE_SRRCTL_DROP_EN	     (1u << 28)
#define IXGBE_RDT(n)		     (IXGBE_RXQ(n) + 0x18)
#define IXGBE_RXDCTL(n)		     (IXGBE_RXQ(n) + 0x28)
#define IXGBE_RXDCTL_ENABLE	     (1u << 25)
#define IXGBE_RSCCTL(n)		     (IXGBE_RXQ(n) + 0x2c)
#define IXGBE_RDRXCTL		     0x02f00
#define IXGBE_RDRXCTL_CRCSTRIP	     (1u << 1)
#define IXGBE_RDRXCTL_DMAIDONE	     (1u << 3)
#define IXGBE_RDRXCTL_RSCFRSTSIZE    (0x1fu << 17)
#define IXGBE_RDRXCTL_RSCACKC	     (1u << 25)
#define IXGBE_RDRXCTL_FCOE_WRFIX     (1u << 26)
#define IXGBE_RXCTRL		     0x03000
#define IXGBE_RXCTRL_RXEN	     (1u << 0)
#define IXGBE_RXPBSIZE(i)	     (0x03c00 + 4 * (i))
#define IXGBE_RXPBSIZE_SHIFT	     10 /* KB */
#define IXGBE_RXCSUM		     0x05000
#define IXGBE_RXCSUM_IPPCSE	     (1u << 12)
#define IXGBE_RXCSUM_PCSD	     (1u << 13)
#define IXGBE_RFCTL		     0x05008
#define IXGBE_RFCTL_RSC_DIS	     (1u << 5)
#define IXGBE_FCTRL		     0x05080
#define IXGBE_FCTRL_SBP		     (1u << 1)
#define IXGBE_FCTRL_MPE		     (1u << 8)
#define IXGBE_FCTRL_UPE		     (1u << 9)
#define IXGBE_FCTRL_BAM		     (1u << 10)
#define IXGBE_MCSTCTRL		     0x05090
#define IXGBE_MCSTCTRL_MO	     3u /* which 12 bits of an address choose a bit of MTA */
#define IXGBE_MCSTCTRL_MFE	     (1u << 2)
#define IXGBE_MTA(i)		     (0x05200 + 4 * (i)) /* 128 */
#define IXGBE_RAL(i)		     (0x05400 + 8 * (i)) /* 16 */
#define IXGBE_RAH(i)		     (0x05404 + 8 * (i))
#define IXGBE_RAH_AV		     (1u << 31)
#define IXGBE_SECRXCTRL		     0x08d00
#define IXGBE_SECRXCTRL_RX_DIS	     (1u << 1)
#define IXGBE_SECRXSTAT		     0x08d04
#define IXGBE_SECRXSTAT_RDY	     (1u << 0)
#define IXGBE_VFTA(i)		     (0x0a000 + 4 * (i)) /* 128 */
#define IXGBE_MPSAR(i)		     (0x0a600 + 4 * (i)) /* 256 */
#define IXGBE_FTQF(i)		     (0x0e600 + 4 * (i)) /* 128 */
#define IXGBE_FTQF_ENABLE	     (1u << 31)
#define IXGBE_MRQC		     0x0ec80
#define IXGBE_PFVLVF(i)		     (0x0f100 + 4 * (i)) /* 64 */
#define IXGBE_PFVLVFB(i)	     (0x0f200 + 4 * (i)) /* 128 */
#define IXGBE_PFUTA(i)		     (0x0f400 + 4 * (i)) /* 128 */

/* --- flow control (8.2.3.3) */
#define IXGBE_FCTTV(i)	 (0x03200 + 4 * (i))
#define IXGBE_FCRTL(i)	 (0x03220 + 4 * (i))
#define IXGBE_FCRTH(i)	 (0x03260 + 4 * (i))
#define IXGBE_FCRTV	 0x032a0
#define IXGBE_FCCFG	 0x03d00
#define IXGBE_FCCFG_TFCE (3u << 3)

/* --- transmit (8.2.3.9, 8.2.3.10) */
#define IXGBE_TXQ(n)		     (0x06000 + 0x40 * (n))
#define IXGBE_TDBAL(n)		     (IXGBE_TXQ(n) + 0x00)
#define IXGBE_TDBAH(n)		     (IXGBE_TXQ(n) + 0x04)
#define IXGBE_TDLEN(n)		     (IXGBE_TXQ(n) + 0x08)
#define IXGBE_DCA_TXCTRL(n)	     (IXGBE_TXQ(n) + 0x0c)
#define IXGBE_DCA_TXCTRL_DESC_WRO_EN (1u << 11) /* resets to 1: write-backs may overtake */
#define IXGBE_TDH(n)		     (IXGBE_TXQ(n) + 0x10)
#define IXGBE_TDT(n)		     (IXGBE_TXQ(n) + 0x18)
#define IXGBE_TXDCTL(n)		     (IXGBE_TXQ(n) + 0x28)
#define IXGBE_TXDCTL_PTHRESH(x)	     ((x)&0x7fu)
#define IXGBE_TXDCTL_HTHRESH(x)	     (((x)&0x7fu) << 8)
#define IXGBE_TXDCTL_WTHRESH(x)	     (((x)&0x7fu) << 16)
#define IXGBE_TXDCTL_ENABLE	     (1u << 25)
#define IXGBE_TXDCTL_SWFLSH	     (1u << 26)
#define IXGBE_TDWBAL(n)		     (IXGBE_TXQ(n) + 0x38)
#define IXGBE_TDWBAL_HEAD_WB_ENABLE  (1u << 0)
#define IXGBE_TDWBAH(n)		     (IXGBE_TXQ(n) + 0x3c)
#define IXGBE_RTTDCS		     0x04900
#define IXGBE_RTTDCS_ARBDIS	     (1u << 6)
#define IXGBE_RTTDQSEL		     0x04904
#define IXGBE_RTTDT1C		     0x04908
#define IXGBE_TXPBTHRESH(i)	     (0x04950 + 4 * (i)) /* KB */
#define IXGBE_RTTBCNRC		     0x04984
#define IXGBE_DMATXCTL		     0x04a80
#define IXGBE_DMATXCTL_TE	     (1u << 0)
#define IXGBE_DMATXCTL_VT	     (0x8100u << 16)
#define IXGBE_DTXTCPFLGL	     0x04a88 /* 11:0 first segment, 27:16 middle ones */
#define IXGBE_DTXTCPFLGH	     0x04a8c /* 11:0 last segment */
#define IXGBE_DTXMXSZRQ		     0x08100 /* 256 bytes */
#define IXGBE_DTXMXSZRQ_RESET	     0x10u
#define IXGBE_DTXMXSZRQ_MAX	     0xfffu
#define IXGBE_MTQC		     0x08120
#define IXGBE_TXPBSIZE(i)	     (0x0cc00 + 4 * (i)) /* KB << 10 */

#define IXGBE_TX_DESC_CACHE 40 /* descriptors on the chip for each queue of an 82599 (7.2.3.3) */
#define IXGBE_MAX_DTALEN    15872 /* 15.5 KB in one buffer (7.2.3.2.4) */
#define IXGBE_LINUX_DTALEN  16384 /* what Linux 6.1's ixgbe posts, and cards send */
#define IXGBE_MAX_TSO_HDR   240 /* (7.2.4.1) */
#define IXGBE_MAX_HDR_DESC  4
#define IXGBE_MAX_TSO_BYTES 0x3ffffu /* 18 bits of PAYLEN */
#define IXGBE_MAX_RING	    8192 /* descriptors: validated to 128 KB (8.2.3.9.7) */
#define IXGBE_FCRTH_BELOW   0x6000u /* what FCRTH[0] stays below RXPBSIZE */

/* --- statistics (8.2.3.23): read to clear */
#define IXGBE_MPC(i)	 (0x03fa0 + 4 * (i))
#define IXGBE_LXOFFRXCNT 0x041a8
#define IXGBE_PRC64(i)	 (0x0405c + 4 * (i)) /* up to 64, 127, 255, 511, 1023 bytes, and above */
#define IXGBE_GPRC	 0x04074
#define IXGBE_BPRC	 0x04078
#define IXGBE_MPRC	 0x0407c
#define IXGBE_GPTC	 0x04080
#define IXGBE_GORCL	 0x04088
#define IXGBE_GORCH	 0x0408c
#define IXGBE_GOTCL	 0x04090
#define IXGBE_GOTCH	 0x04094
#define IXGBE_TPR	 0x040d0
#define IXGBE_TPT	 0x040d4
#define IXGBE_PTC64(i)	 (0x040d8 + 4 * (i))
#define IXGBE_MPTC	 0x040f0
#define IXGBE_BPTC	 0x040f4
#define IXGBE_RXDGPC	 0x02f50
#define IXGBE_TXDGPC	 0x087a0
#define IXGBE_QPRC(i)	 (0x01030 + 0x40 * (i))
#define IXGBE_QPRDC(i)	 (0x01430 + 0x40 * (i)) /* dropped for want of descriptors */
#define IXGBE_QPTC(i)	 (0x08680 + 4 * (i))

/* --- the clock (7.9, 8.2.3.26) */
#define IXGBE_TSYNCTXCTL       0x08c00
#define IXGBE_TSYNCTXCTL_VALID (1u << 0)
#define IXGBE_TSYNCTXCTL_EN    (1u << 4)
#define IXGBE_TXSTMPL	       0x08c04
#define IXGBE_TXSTMPH	       0x08c08 /* reading it frees the stamp */
#define IXGBE_SYSTIML	       0x08c0c /* reading it holds SYSTIMH */
#define IXGBE_SYSTIMH	       0x08c10
#define IXGBE_TIMINCA	       0x08c14
#define IXGBE_TIMINCA_PERIOD   (1u << 24) /* ticks to an increment; not on X540 and later */

/* --- descriptors: 16 bytes, little endian (7.2.3.2, 7.1.6) */
struct ixgbe_desc {
	u64 addr;
	u32 lo; /* dword 2 */
	u32 hi; /* dword 3 */
};

/* Data descriptor, dword 2. */
#define IXGBE_TXD_DTALEN(lo)  ((lo)&0xffffu)
#define IXGBE_TXD_MAC_1588    (1u << 19)
#define IXGBE_TXD_DTYP_MASK   (0xfu << 20)
#define IXGBE_TXD_DTYP_CTXT   (2u << 20)
#define IXGBE_TXD_DTYP_DATA   (3u << 20)
#define IXGBE_TXD_EOP	      (1u << 24)
#define IXGBE_TXD_IFCS	      (1u << 25)
#define IXGBE_TXD_RS	      (1u << 27)
#define IXGBE_TXD_DEXT	      (1u << 29)
#define IXGBE_TXD_VLE	      (1u << 30)
#define IXGBE_TXD_TSE	      (1u << 31)
#define IXGBE_TXD_LO_RESERVED ((3u << 16) | (1u << 18) | (1u << 26) | (1u << 28))
/* Dword 3. */
#define IXGBE_TXD_STA_DD       1u
#define IXGBE_TXD_IDX_SHIFT    4
#define IXGBE_TXD_CC	       (1u << 7)
#define IXGBE_TXD_POPTS_IXSM   (1u << 8)
#define IXGBE_TXD_POPTS_TXSM   (1u << 9)
#define IXGBE_TXD_PAYLEN_SHIFT 14
#define IXGBE_TXD_HI_RESERVED  ((0xfu << 0) | (0xfu << 10))
/* Context descriptor: addr holds dwords 0 and 1. */
#define IXGBE_TXC_IPLEN_MASK	0x1ffu
#define IXGBE_TXC_MACLEN_SHIFT	9
#define IXGBE_TXC_TUCMD_IPV4	(1u << 10)
#define IXGBE_TXC_TUCMD_L4T	(3u << 11)
#define IXGBE_TXC_TUCMD_L4T_UDP (0u << 11)
#define IXGBE_TXC_TUCMD_L4T_TCP (1u << 11)
#define IXGBE_TXC_L4LEN_SHIFT	8
#define IXGBE_TXC_MSS_SHIFT	16

/* Receive, written back: dword 2 and dword 3. */
#define IXGBE_RXD_STAT_DD  (1u << 0)
#define IXGBE_RXD_STAT_EOP (1u << 1)
#define IXGBE_RXD_STAT_LB  (1u << 18)
#define IXGBE_RXD_ERR_MASK 0xfff00000u
#define IXGBE_RXD_LEN(hi)  ((hi)&0xffffu)

#endif
