/* SPDX-License-Identifier: MIT */
/*
 * drop.h -- the end of each transaction: its slot gives back what it has.
 *
 * WHAT      Unlinks the entries of the set, frees version slots and a data file that were not
 *           published, and leaves the slot IDLE or FREE with the next serial.
 * THREADS   The owner of the slot; if it is dead, the reaper under the reap lock.
 */
#ifndef XAC_DROP_H
#define XAC_DROP_H

#include "shared/env_state.h"

/*
 * xac_txn_drop -- take back a slot that is not COMMITTING.
 *
 * in   by  the slot that takes the locks of pages meanwhile, of a process that is alive: the
 *          same one, or the reaper's
 */
void xac_txn_drop(struct xac_env *env, uint64_t slot, uint64_t by,
                  enum xac_txn_state leave_as);

#endif /* XAC_DROP_H */
