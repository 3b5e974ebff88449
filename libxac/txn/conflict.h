/* SPDX-License-Identifier: MIT */
/*
 * conflict.h -- who reads and writes which page now, and what happens when two
 * transactions want the same page (eager policies; Thesis 3.3).
 *
 * WHAT      A page's access word holds a lock and the head of the list of set entries
 *           that read or write the page.  Entering looks at all others, lets the policy
 *           decide, and links the entry.
 * NOT HERE  The set itself (slot.h).
 * THREADS   any, in the fault handler too.  The page lock is a word: whoever finds its
 *           owner dead takes it over; the list is whole at every instant, because linking
 *           an entry and leaving the lock are one store, and unlinking is one store.
 *
 * WHO DOES NOT RUN LOSES.  Whatever the policy says, a PENDING transaction wins only while
 * its process runs: one that is dead or stopped (SIGSTOP, a debugger) is failed by whoever
 * wants its page.  It is not told before it goes on, and retries with its age.  A
 * newcomer that meets a COMMITTING one waits for it while its process runs (200 ms at most),
 * and otherwise fails and has it published, or taken back, at its own end (reap.h).  So each time that
 * a process is stopped costs its transaction one attempt at most, and each one that
 * meets it.  (What is not helped: see libxac/README.md, "When a holder is stopped".)
 *
 * INVARIANTS
 *   (1) (the consistency tree's third: what is pending could commit as it stands)
 *       Among the entries linked to a page whose transactions are PENDING or COMMITTING,
 *       there is either one writer alone, or readers only.
 *   (2) Under oldest-wins a transaction loses only to one that is older, running and not
 *       over, or to a commit whose process does not run or has been waited for for 200 ms.  A loser's next attempt begins
 *       when the older one is over (committed, given up, stopped or dead; its own retries
 *       are waited for) or has been waited for long enough: 10 ms after the first lost
 *       race, twice as long after each further one, at most 1.28 s.  No older ones come
 *       after a transaction has its age.  So it is retried at most
 *
 *           older + waits that ended by the clock + stops and deaths met
 *
 *       times for conflicts, where `older` counts the transactions that were older at its
 *       first begin: fewer than there are slots.  tests/stress/check_retries.c holds
 *       the library to it.
 *
 * The wait is that of wait-die (Rosenkrantz, Stearns, Lewis 1978) with the restart put off
 * until the winner is done.  It cannot deadlock by itself, for who waits has no page and
 * waits for older ones only; the clock is for programs in which the older one waits, inside
 * its transaction, for something that the loser is to do outside.
 */
#ifndef XAC_CONFLICT_H
#define XAC_CONFLICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "txn/policy.h"
#include "txn/slot.h"

/*
 * xac_conflict_enter -- register an access of the running transaction.
 *
 * in   entry  of the running transaction; linked here if it was not
 * in   mode   XAC_SET_READ or XAC_SET_READ | XAC_SET_WRITE: what is wanted
 * ret  true if the page is ours; false if the running transaction has failed.
 */
XAC_SIGSAFE bool xac_conflict_enter(struct xac_env *env, struct xac_ctx *ctx,
                                    struct xac_entry *entry, uint32_t mode);

/*
 * xac_conflict_wait -- before a retry begins: wait as invariant (2) says.  Elsewhere
 * than in oldest-wins, or if the last attempt has not lost to an older one, returns at once.
 */
void xac_conflict_wait(struct xac_env *env, struct xac_ctx *ctx);

/* xac_conflict_leave -- unlink a linked entry: one's own, or a dead transaction's.
   in  by  the slot in whose name the page is locked: the caller's */
void xac_conflict_leave(struct xac_env *env, uint64_t by, struct xac_entry *entry);

#endif /* XAC_CONFLICT_H */
