/* SPDX-License-Identifier: MIT */
/*
 * lock.h -- ranked, robust mutexes in shared memory.
 *
 * LOCK ORDER.  A thread may acquire a lock only if its rank is greater than the rank
 * of every lock it already holds.  Debug builds check this on each acquire.
 *   allowed    clean, then checkpoint, then collapse, then publish
 *   forbidden  publish, then flush: a sync under publish would stop all commits
 *
 * DEATH OF A HOLDER.  The next acquirer is told (XAC_LOCK_OWNER_DIED), repairs what the
 * lock protects and calls xac_lock_repaired(); a repairer that dies is followed by the
 * next one, who is told again.
 *
 * SIGNALS   Blocked by the caller (xac_signals_block) around any section that holds one.
 *           A thread that waits for one, and holds none, lets the signals through that came
 *           meanwhile, 20 times a second: the holder may be stopped.  A handler finds nothing
 *           half done there, and may not come back (longjmp).  Who holds one already waits
 *           with signals blocked: for checkpoint below clean, collapse below checkpoint, publish
 *           below collapse, as long as the holder of the other one takes.
 * WAITING   Publish is held for less than a microsecond at a time, so whoever finds it held looks
 *           again for a moment before he sleeps.
 * HANDLER   The fault handler takes none of these locks.
 */
#ifndef XAC_LOCK_H
#define XAC_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "annot.h"

enum xac_lock_rank {
    XAC_RANK_CLEAN = 10,      /* cleaning up after the dead                           */
    XAC_RANK_CHECKPOINT = 20, /* one checkpoint at a time                             */
    XAC_RANK_FILES = 22,      /* the table of mapped files                            */
    XAC_RANK_FLUSH = 25,      /* writing and syncing the log                          */
    XAC_RANK_PREPARE = 27,    /* making log segments ahead                            */
    XAC_RANK_COLLAPSE = 30,   /* the bound, taking versions out of lists              */
    XAC_RANK_GROW = 35,       /* adding frames to the version store                   */
    XAC_RANK_PUBLISH = 40     /* the commit chain: number, log tail, list heads       */
};

enum xac_lock_result {
    XAC_LOCK_OK = 0,
    XAC_LOCK_OWNER_DIED = 1, /* held now; repair first                               */
    XAC_LOCK_BUSY = 2        /* not held (trylock only)                              */
};

struct xac_lock {
    pthread_mutex_t mutex; /* process-shared, robust */
    int rank;              /* fixed at init          */
};

/* xac_lock_init -- make a lock in shared memory; ret 0 or errno. */
int xac_lock_init(struct xac_lock *lk, enum xac_lock_rank rank);

/* xac_lock_acquire -- wait for the lock; ret XAC_LOCK_OK or XAC_LOCK_OWNER_DIED. */
enum xac_lock_result xac_lock_acquire(struct xac_lock *lk);

/* xac_lock_try -- the same without waiting; may return XAC_LOCK_BUSY. */
enum xac_lock_result xac_lock_try(struct xac_lock *lk);

/* xac_lock_repaired -- what the dead holder left has been repaired. */
void xac_lock_repaired(struct xac_lock *lk);

void xac_lock_release(struct xac_lock *lk);

/* xac_lock_none_held -- true if this thread holds no ranked lock (debug aid). */
bool xac_lock_none_held(void);

/* xac_lock_forget -- in a forked child: this thread holds nothing. */
void xac_lock_forget(void);

/*
 * xac_signals_block / restore -- all signals but the synchronous ones.
 * xac_signals_glance -- inside such a section, before it has changed anything and while no
 * ranked lock is held: let the signals through that are pending.  Not in a section within
 * another one, and not while pinned.
 * xac_signals_pin -- a mutex of the process is held, which a handler that forks would wait for.
 */
void xac_signals_block(sigset_t *old);
void xac_signals_restore(const sigset_t *old);
void xac_signals_glance(void);
void xac_signals_pin(bool is_pinned);

#endif /* XAC_LOCK_H */
