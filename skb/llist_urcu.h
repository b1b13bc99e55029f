/* SPDX-License-Identifier: MIT */
/*
 * liburcu's stacks, which do llist's job otherwise, to be measured beside it (skb/llist.h); not
 * part of any operation of the model.
 *
 *   lfstack  cds_lfs_push() tries an empty stack before it looks: one RMW then, at least two on any
 *            other. Ends at NULL.
 *   wfstack  cds_wfs_push() is one exchange and never tries again, but links its node afterwards:
 *            a walk may have to wait for that. Nodes need cds_wfs_node_init(); ends at
 *            CDS_WFS_END, which is not NULL.
 *
 * Both push functions return false (0) if the stack WAS empty, where llist_add() returns true.
 * __cds_lfs_pop_all() and __cds_wfs_pop_all() are one exchange and need no lock beside pushes.
 */
#ifndef SKB_LLIST_URCU_H
#define SKB_LLIST_URCU_H

#include "skb/atomic.h"

/* Both take the address of the first member of NULL or CDS_WFS_END, which sanitizers mind. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("null", "alignment"))), apply_to = function)
#endif
#include <urcu/lfstack.h>
#include <urcu/wfstack.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
