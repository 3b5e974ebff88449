/* SPDX-License-Identifier: MIT */
/*
 * conflict.h -- which transactions read and write which page now, and what happens when two
 * of them want the same page (eager policies; Thesis 3.3).
 *
 * WHAT      A page's access word holds a lock and the head of the list of set entries
 *           that read or write the page.  Entering looks at all others, lets the policy
 *           decide, and links the entry.
 * NOT HERE  The set itself (slot.h).
 * THREADS   any, in the fault handler too.  The page lock is a word.  A process that finds its
 *           owner dead takes it over.  The list is complete at every instant, because linking
 *           an entry and releasing the lock are one store, and unlinking is one store.
 *
 * STOPPED PROCESSES LOSE.  Under every policy a PENDING transaction wins only while its process
 * runs.  If the process is dead or stopped (SIGSTOP, a debugger), a transaction that wants its
 * page fails it; it learns that when it goes on, and retries with its age.  A newcomer that
 * meets a COMMITTING transaction waits for it while its process runs, at most 200 ms.
 * Otherwise the newcomer fails, and at its own end has the other one published, or taken back
 * (reap.h).  So each stop of a process costs its transaction at most one attempt, and one
 * attempt of each transaction that meets it.  (For stopped holders of locks see
 * libxac/README.md, "When a holder is stopped".)
 *
 * INVARIANTS
 *   (1) (the third one of the consistency tree: all pending transactions could commit)
 *       Among the entries that are linked to a page and belong to PENDING or COMMITTING
 *       transactions, there is either one writer alone, or readers only.
 *   (2) Under oldest-wins a transaction loses only to an older one that runs and is not
 *       over, or to a commit if its process does not run or has taken 200 ms.  The loser's
 *       next attempt begins when the older one is over (committed, given up, stopped or dead;
 *       retries of the older one are waited for), or after 10 ms for the first lost race,
 *       twice as long for each further one, at most 1.28 s.  No older transactions come
 *       after a transaction has its age.  So it is retried at most
 *
 *           older + waits that ended by the clock + stops and deaths met
 *
 *       times for conflicts, where `older` counts the transactions that were older at its
 *       first begin: fewer than there are slots.  tests/stress/check_retries.c checks this.
 *
 * The wait is that of wait-die (Rosenkrantz, Stearns, Lewis 1978), but the loser restarts only
 * after the winner is over.  It cannot deadlock by itself, because a waiting transaction has
 * no page and waits for older ones only.  The limit of time is for programs in which the
 * older transaction waits for something that the loser has to do outside.
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
 * in   mode   the access that is wanted: XAC_SET_READ or XAC_SET_READ | XAC_SET_WRITE
 * ret  true if the access is granted; false if the running transaction has failed.
 */
XAC_SIGSAFE bool xac_conflict_enter(struct xac_env *env, struct xac_ctx *ctx,
                                    struct xac_entry *entry, uint32_t mode);

/*
 * xac_conflict_wait -- before a retry begins, wait as invariant (2) says.  Under other policies,
 * and if the last attempt has not lost to an older one, it returns at once.
 */
void xac_conflict_wait(struct xac_env *env, struct xac_ctx *ctx);

/*
 * xac_conflict_leave -- unlink a linked entry: one's own, or a dead transaction's.
 * xac_conflict_unlink: the part of it that needs the page's lock.
 *
 * in   by  the slot in whose name the page is locked: the caller's
 */
void xac_conflict_unlink(struct xac_env *env, uint64_t by, struct xac_entry *entry);
static inline void
xac_conflict_leave(struct xac_env *env, uint64_t by, struct xac_entry *entry)
{
    /* The word of a page that is not locked, and to which only this entry is linked.  Entries are
       linked at the head, so nothing comes behind the last one. */
    uint64_t alone = xac_shm_offset(&env->shm, entry) / 64;

    xac_assert(alone != 0);
    xac_kill_point("page leaving");
    /* Release: pairs with the acquire in page_lock.  Acquire: pairs with the release in
       page_unlock; others have looked at the entry before it is used again. */
    if (atomic_load_explicit(&entry->next, memory_order_relaxed) != 0
        || !atomic_compare_exchange_strong_explicit(&xac_entry_page(env, entry)->access,
                                                    &alone, 0, memory_order_acq_rel,
                                                    memory_order_relaxed))
        xac_conflict_unlink(env, by, entry);
    xac_kill_point("page left");
    atomic_store_explicit(&entry->mode,
                          atomic_load_explicit(&entry->mode, memory_order_relaxed)
                              & ~(uint32_t)XAC_SET_LINKED,
                          memory_order_relaxed);
    xac_assert((atomic_load_explicit(&entry->mode, memory_order_relaxed) & XAC_SET_LINKED)
               == 0);
}

#endif /* XAC_CONFLICT_H */
