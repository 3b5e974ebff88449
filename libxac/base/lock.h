/* SPDX-License-Identifier: MIT */
/*
 * lock.h -- ranked, robust mutexes in shared memory.
 *
 * LOCK ORDER.  A thread may acquire a lock only if its rank is greater than the rank
 * of every lock it already holds.  Debug builds check this on each acquire.
 *   allowed    reap, then checkpoint, then gc, then publish
 *   forbidden  publish, then flush: a sync under publish would stop all commits
 *
 * DEATH OF A HOLDER.  The next thread that acquires the lock gets XAC_LOCK_OWNER_DIED, repairs
 * the data that the lock protects, and calls xac_lock_repaired().  If it dies too, the next
 * thread does the same.
 *
 * SIGNALS   Blocked by the caller (xac_signals_block) around any section that holds one, but for
 *           the two cases below.
 *           The holder may be stopped.  So a thread that waits for a lock, and holds none, lets
 *           pending signals through 20 times a second.  A handler finds nothing half done at
 *           this place, and may leave it by longjmp.  A thread that already holds a lock waits
 *           with signals blocked: for checkpoint with reap, for gc with checkpoint, for
 *           publish with gc, until the holder of the other lock releases it.
 * NOT BLOCKED  The end of a transaction that is not durable, in a process that is alone in its
 *           environment, or under the serial policy: two system calls would cost as much as the rest.
 *           Alone, nobody waits for a handler.  Under the serial policy everybody that changes
 *           something waits for a handler as it is, while it runs in the middle of a transaction: that
 *           has the turn.  The section is marked in a word of the thread instead (xac_half_done).  A handler
 *           of the program may run anywhere in it, also while a lock is held:
 *             it returns             nothing has happened
 *             it ends the process    the same as SIGKILL: the next participant repairs
 *             it calls fork()        the child can call exec() and _exit().  It cannot go on with
 *                                    the parent's commit: the control region has become
 *                                    inaccessible in it
 *             it calls the library, or touches a page that faults, or leaves by longjmp() and the
 *             thread calls the library later, or it ends the thread
 *                                    the word is still set; the program is stopped, and says why
 *           Under the other policies, if other participants are attached, signals are blocked: a
 *           handler may take long, and they would wait for it.  One that attaches during the section
 *           waits as for a thread that is stopped.
 * WAITING   Publish is held for less than a microsecond at a time.  So a thread that finds it held
 *           looks again for a moment before it sleeps.
 * LIMIT     The begin and the end of a transaction may limit how long it waits in sum (xac_wait_limit), from its
 *           first wait on.  After that time xac_lock_acquire_limited() gives up; waits for other
 *           things use xac_wait_slice().  Other threads are not affected.
 * HANDLER   The fault handler takes none of these locks.
 */
#ifndef XAC_LOCK_H
#define XAC_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/tls.h"

enum xac_lock_rank {
    XAC_RANK_REAP = 10,       /* finishing what the dead have begun                   */
    XAC_RANK_CHECKPOINT = 20, /* one checkpoint at a time                             */
    XAC_RANK_FILES = 22,      /* the table of mapped files                            */
    XAC_RANK_FLUSH = 25,      /* writing and syncing the log                          */
    XAC_RANK_PREPARE = 27,    /* making log segments ahead                            */
    XAC_RANK_GC = 30,         /* the bound, taking versions out of lists              */
    XAC_RANK_GROW = 35,       /* adding frames to the version store                   */
    XAC_RANK_PUBLISH = 40     /* the commit chain: number, log tail, list heads       */
};

enum xac_lock_result {
    XAC_LOCK_OK = 0,
    XAC_LOCK_OWNER_DIED = 1, /* held now; repair first                               */
    XAC_LOCK_BUSY = 2,       /* not held (trylock only)                              */
    XAC_LOCK_TIMED_OUT = 3   /* not held (acquire_limited only)                      */
};

struct xac_lock {
    pthread_mutex_t mutex; /* process-shared, robust */
    int rank;              /* fixed at init          */
    /* Which acquisition it is; stored by the holder, relaxed. */
    xac_shared _Atomic uint32_t n_taken;
    /* For xstat: the acquisition that threads are waiting for, and since when.  The waiting
       threads store it, the number last (release); it is read number first (acquire). */
    xac_shared _Atomic uint32_t late;
    xac_shared _Atomic uint64_t
        late_ns; /* monotonic                                    */
};

/* The holder of a lock as other processes see it, and the number of the acquisition. */
struct xac_holder {
    uint32_t tid; /* of the thread, in its own PID namespace; 0: the lock is free       */
    uint32_t n_taken;
    uint64_t
        held_ns; /* at least so long, as a waiting thread has noted; 0: none has      */
};

/* The state of a thread that waits for a lock; {0} at first. */
struct xac_watch {
    uint32_t n_taken;
    uint64_t since_ns;
};

/* xac_lock_init -- make a lock in shared memory; ret 0 or errno. */
int xac_lock_init(struct xac_lock *lk, enum xac_lock_rank rank);

/* xac_lock_acquire -- wait for the lock; ret XAC_LOCK_OK or XAC_LOCK_OWNER_DIED. */
enum xac_lock_result xac_lock_acquire(struct xac_lock *lk);

/* xac_lock_acquire_limited -- the same, or XAC_LOCK_TIMED_OUT once the thread's limit is over. */
enum xac_lock_result xac_lock_acquire_limited(struct xac_lock *lk);

/*
 * xac_wait_limit -- set how long this thread may wait in sum from now on; 0: no limit.
 * xac_wait_is_limited -- is there a limit?
 * xac_wait_limit_ms -- which one; 0: none.
 * xac_wait_slice -- how long to sleep next, at most ms; 0: the time is over.  The first call
 * starts the time.
 * xac_wait_is_over -- has a wait been given up since xac_wait_limit()?
 */
void xac_wait_limit(uint32_t ms);
bool xac_wait_is_limited(void);
uint32_t xac_wait_limit_ms(void);
unsigned xac_wait_slice(unsigned ms);
bool xac_wait_is_over(void);

/* xac_lock_try -- the same without waiting; may return XAC_LOCK_BUSY. */
enum xac_lock_result xac_lock_try(struct xac_lock *lk);

/* xac_lock_watch -- call it before sleeping because the lock is held: notes for
   xac_lock_holder() since when. */
void xac_lock_watch(struct xac_lock *lk, struct xac_watch *w);

/* xac_lock_holder -- the holder at this moment; does not touch the lock. */
void xac_lock_holder(const struct xac_lock *lk, struct xac_holder *out);

/* xac_lock_repaired -- say that the data of the dead holder are repaired. */
void xac_lock_repaired(struct xac_lock *lk);

void xac_lock_release(struct xac_lock *lk);

/* The ranks of the locks that this thread holds, a bit for each (lock.c).  A thread holds at most one
   lock of a rank. */
extern XAC_TLS uint64_t xac_lock_held;

/* xac_lock_none_held -- true if this thread holds no ranked lock (debug aid). */
XAC_SIGSAFE static inline bool
xac_lock_none_held(void)
{
    return xac_lock_held == 0;
}

/* xac_lock_is_mine -- true if this thread holds the lock, or another one of its rank; for
   assertions. */
XAC_SIGSAFE static inline bool
xac_lock_is_mine(const struct xac_lock *lk)
{
    return (xac_lock_held >> lk->rank & 1) != 0;
}

/* xac_lock_forget -- in a forked child: this thread holds nothing. */
void xac_lock_forget(void);

/* What this thread has under way with signals let through: only the thread writes it, and its signal
 * handlers, each word for one reason, so that none is lost if a handler comes between any two
 * instructions. */
struct xac_half_done {
    bool is_ours; /* the end of a transaction                                 */
    bool
        is_inherited; /* for ever, in a child that a handler has forked at the begin or end of one */
};
extern XAC_TLS struct xac_half_done xac_half_done;

/* xac_half_done_any -- is a transaction of this thread, or of the parent, at its end? */
XAC_SIGSAFE static inline bool
xac_half_done_any(void)
{
    return xac_half_done.is_ours || xac_half_done.is_inherited;
}

/* What is said of a child that goes on with the xend() of its parent, and finds nothing of it. */
#define XAC_INHERITED_FAULT \
 "a signal handler has forked in xbegin() or xend(), and this is the child"
#define XAC_INHERITED_HINT "the child may only call exec() and _exit() (xac.h, rule 5)"

/* xac_half_done_begin, end -- around a section in which signals are not blocked. */
static inline void
xac_half_done_begin(void)
{
    xac_half_done.is_ours = true;
    /* Pairs with handlers: one that finds something changed finds the word, too. */
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void
xac_half_done_end(void)
{
    /* Pairs with handlers, as above. */
    atomic_signal_fence(memory_order_seq_cst);
    xac_half_done.is_ours = false;
}

/*
 * xac_signals_block / restore -- all signals but the synchronous ones.
 * xac_signals_glance -- inside such a section, before it has changed anything and while no
 * ranked lock is held: let pending signals through.  Does nothing in a section within
 * another one, and while pinned.
 * xac_signals_are_pending -- would it let any through?
 * xac_signals_are_blocked -- is this thread in such a section?
 * xac_signals_pin -- say that a mutex of the process is held, for which a handler that calls
 * fork() would wait.
 */
void xac_signals_block(sigset_t *old);
void xac_signals_restore(const sigset_t *old);
XAC_SIGSAFE bool xac_signals_are_blocked(void);
void xac_signals_glance(void);
bool xac_signals_are_pending(void);
void xac_signals_pin(bool is_pinned);

#endif /* XAC_LOCK_H */
