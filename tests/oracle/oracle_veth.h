/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef TESTS_ORACLE_ORACLE_VETH_H
#define TESTS_ORACLE_ORACLE_VETH_H

/* Makes the veth pair of oracle_veth.c and gives both ends their addresses, once. 0, or -1 with errno. */
int oracle_veth_up(void);

#endif
