/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef TESTS_ORACLE_BUDGET_H
#define TESTS_ORACLE_BUDGET_H

struct oracle_op;

/*
 * What the kernel's own TCP does for so and so many bytes over loopback or veth (OP's numbers: a bit mask
 * of BUDGET_*, bytes of a write, writes), or for pages from one CPU to another (BUDGET_PAGES; the
 * number of pages). Lines `what,number` in TEXT of ROOM bytes, of which it returns how many it used;
 * one line `error,...` if something fails. Process context.
 */
unsigned long oracle_budget(const struct oracle_op *op, char *text, unsigned long room);

#define BUDGET_PAGES   1 /* allocated on CPU 0, freed on CPU 1 */
#define BUDGET_PROBES  2 /* count calls; without: read the clock around the system's calls */
#define BUDGET_MTU     4 /* of loopback: 1500 in place of 65536 */
#define BUDGET_NO_TSO  8 /* packets are cut before the device */
#define BUDGET_MPTCP   16
#define BUDGET_APART   32 /* the reader on CPU 1 */
#define BUDGET_DEFER   64 /* net.core.skb_defer_max is 64, not 0 */
#define BUDGET_BACKLOG 128 /* as many writes as the socket takes, then reads */
#define BUDGET_VETH    256 /* between two namespaces (oracle_veth.c) in place of loopback */
#define BUDGET_GRO     512 /* the receiving end of veth merges packets */

#endif
