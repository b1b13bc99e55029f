/* SPDX-License-Identifier: MIT */
/*
 * The EEPROM: empty but for what a driver needs to know of modules and firmware, and its checksum
 * (6.4.6.1).
 *
 *   0x0f   where the firmware's words lie; the fifth says where its patch's are, whose eighth is the
 *          version: with a module, Linux takes one below 6 for that of a card before production
 *   0x2b   where the list of modules lies: its length, then pairs of a module's kind and where
 *          the words begin that bring up the PHY for it
 *   0x2c   what the board can do
 *   0x3f   with which words 0 to 0x3f sum up to 0xbaba
 */
#include "hw/model_82599/internal.h"

#define EMPTY	    0xffffu
#define SUM	    0xbabau
#define SUM_AT	    0x3fu
#define FIRMWARE_AT 0x0fu
#define MODULES_AT  0x2bu
#define LIST	    0x40u
#define SEQUENCE    0x50u
#define FIRMWARE    0x60u
#define PATCH	    0x70u
#define VERSION	    6
#define DA_CU_0	    3 /* a passive copper cable, at port 0 or 1 */
#define DA_CU_1	    4

static u16 stored(const struct model_82599 *m, u32 w)
{
	static const u16 list[] = { 4, DA_CU_0, SEQUENCE, DA_CU_1, SEQUENCE, EMPTY };
	static const u16 sequence[] = { 1, 0x0001, EMPTY }; /* length, words for CORECTL */

	if (w == IXGBE_EEPROM_CAPS)
		return m->p.no_cage_pin ? IXGBE_EEPROM_CAPS_NO_CAGE : 0;
	if (w == FIRMWARE_AT)
		return FIRMWARE;
	if (w == FIRMWARE + 4)
		return PATCH;
	if (w == PATCH + 7)
		return VERSION;
	if (w == MODULES_AT)
		return LIST;
	if (w - LIST < ARRAY_SIZE(list))
		return list[w - LIST];
	if (w - SEQUENCE < ARRAY_SIZE(sequence))
		return sequence[w - SEQUENCE];
	return EMPTY;
}

u16 eeprom_word(const struct model_82599 *m, u32 w)
{
	u32 sum = SUM;

	if (w != SUM_AT)
		return stored(m, w);
	for (u32 i = 0; i < SUM_AT; i++)
		sum -= stored(m, i);
	return sum;
}
