/* SPDX-License-Identifier: MIT */
/*
 * conflict.h -- who reads and writes which page now, and what happens when two
 * transactions want the same page (eager policies; Thesis 3.3).
 *
 * WHAT      A page's access word holds a lock and the head of the list of set entries
 *           that read or write the page.  Entering looks at all others, lets the policy
 *           decide, and links the entry.
 * NOT HERE  The set itself (txn.h).
 * THREADS   any, in the fault handler too.  The page lock is a word: whoever finds its
 *           owner dead takes it over; the list is whole at every instant, because linking
 *           an entry and leaving the lock are one store, and unlinking is one store.
 *
 * INVARIANT (the consistency tree's third: what is pending could commit as it stands)
 *   Among the entries linked to a page whose transactions are PENDING or COMMITTING,
 *   there is either one writer alone, or readers only.
 */
#ifndef XAC_CONFLICT_H
#define XAC_CONFLICT_H

#include <stdbool.h>
#include <stdint.h>

#include "annot.h"
#include "policy.h"
#include "txn.h"

/*
 * xac_conflict_enter -- register an access of the running transaction.
 *
 * in   entry  of the running transaction; linked here if it was not
 * in   mode   XAC_SET_READ or XAC_SET_READ | XAC_SET_WRITE: what is wanted
 * ret  true if the page is ours; false if the running transaction has failed.
 */
XAC_SIGSAFE bool xac_conflict_enter(struct xac_env *env, struct xac_ctx *ctx,
                                    struct xac_entry *entry, uint32_t mode);

/* xac_conflict_leave -- unlink a linked entry: one's own, or a dead transaction's. */
void xac_conflict_leave(struct xac_env *env, struct xac_entry *entry);

#endif /* XAC_CONFLICT_H */
