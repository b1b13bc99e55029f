/* SPDX-License-Identifier: MIT */
/*
 * The devices of the family; which have a cage is what Linux 6.12 says, ixgbe_get_media_type_82599().
 * Virtual functions are left out, and the E610, whose firmware interface is another one.
 */
#include "hw/ixgbe/ixgbe.h"

const struct ixgbe_id ixgbe_ids[] = {
	{ 0x10fb, IXGBE_82599, "82599 SFP+ (X520)", true },
	{ 0x10f7, IXGBE_82599, "82599 KX4", false },
	{ 0x1514, IXGBE_82599, "82599 KX4 mezzanine", false },
	{ 0x1517, IXGBE_82599, "82599 KR", false },
	{ 0x10f8, IXGBE_82599, "82599 combined backplane", false },
	{ 0x10f9, IXGBE_82599, "82599 CX4", false },
	{ 0x10fc, IXGBE_82599, "82599 XAUI", false },
	{ 0x151c, IXGBE_82599, "82599 T3", false },
	{ 0x1507, IXGBE_82599, "82599 SFP+ EM", true },
	{ 0x1529, IXGBE_82599, "82599 SFP+ FCoE", true },
	{ 0x152a, IXGBE_82599, "82599 backplane FCoE", false },
	{ 0x154d, IXGBE_82599, "82599 SFP+ SF2", true },
	{ 0x154a, IXGBE_82599, "82599 SFP+ quad port", true },
	{ 0x1558, IXGBE_82599, "82599 QSFP+", true },
	{ 0x1557, IXGBE_82599, "82599EN SFP+", true },
	{ 0x154f, IXGBE_82599, "82599 LS", false },
	{ 0x1528, IXGBE_X540, "X540-T", false },
	{ 0x1560, IXGBE_X540, "X540-T1", false },
	{ 0x1563, IXGBE_X550, "X550-T", false },
	{ 0x15d1, IXGBE_X550, "X550-T1", false },
	{ 0x15aa, IXGBE_X552, "X552 KX4", false },
	{ 0x15ab, IXGBE_X552, "X552 KR", false },
	{ 0x15ac, IXGBE_X552, "X552 SFP+", false },
	{ 0x15ad, IXGBE_X552, "X552 10GBASE-T", false },
	{ 0x15ae, IXGBE_X552, "X552 1000BASE-T", false },
	{ 0x15b0, IXGBE_X552, "X552 XFI", false },
	{ 0x15c2, IXGBE_X553, "X553 KR", false },
	{ 0x15c3, IXGBE_X553, "X553 KR, long reach", false },
	{ 0x15c4, IXGBE_X553, "X553 SFP+ on the backplane", false },
	{ 0x15c6, IXGBE_X553, "X553 SGMII", false },
	{ 0x15c7, IXGBE_X553, "X553 SGMII, long reach", false },
	{ 0x15c8, IXGBE_X553, "X553 10GBASE-T", false },
	{ 0x15ca, IXGBE_X553, "X553 QSFP+", false },
	{ 0x15cc, IXGBE_X553, "X553 QSFP+ on the backplane", false },
	{ 0x15ce, IXGBE_X553, "X553 SFP+", false },
	{ 0x15e4, IXGBE_X553, "X553 1000BASE-T", false },
	{ 0x15e5, IXGBE_X553, "X553 1000BASE-T, long reach", false },
};
const u32 nr_ixgbe_ids = ARRAY_SIZE(ixgbe_ids);

const struct ixgbe_id *ixgbe_find_id(u16 device)
{
	for (u32 i = 0; i < nr_ixgbe_ids; i++)
		if (ixgbe_ids[i].device == device)
			return &ixgbe_ids[i];
	return NULL;
}

bool ixgbe_id_tested(const struct ixgbe_id *id)
{
	return id->mac <= IXGBE_X550;
}
