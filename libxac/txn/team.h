/* SPDX-License-Identifier: MIT */
/*
 * team.h -- the threads that work on one transaction: its owner, and those that help it.
 *
 * WHAT      A transaction belongs to the thread that has begun it.  Its accesses may be made by other
 *           threads, too: by those that have joined it (xJoin), or by all threads of the process
 *           (XAC_OPT_TEAM).  The transaction then has a team: a number, and a lock by which one thread at a
 *           time changes what the context and its views know.
 * NOT HERE  The calls (api_team.c).  The work with the lock held: view_access.c, api_txn.c.
 * OWNER     The context (struct xac_ctx).  The numbers that a thread has joined are its own.
 * LOCK      `lock` of the team.  Before all ranked locks; a thread that waits for it holds none.
 *           Its holder has signals blocked, so that no handler of the program runs in the same
 *           thread meanwhile: it would wait for itself.  The fault handler has them blocked anyway.
 *           The holder may wait for the publish of another transaction (conflict.h), and for nothing else.
 *           While it copies pages, for savepoints, it may trap on one that the kernel has taken away.
 * THREADS   Any.  Functions that are XAC_SIGSAFE: the fault handler, too.
 *
 * INVARIANTS
 *   (1) id is not 0 only between the begin and the end of the transaction.  Only the owner changes it, with
 *       the lock held; so the owner may look at it without.
 *   (2) No two transactions of a process have the same id, ever.
 *   (3) While id is not 0, everything that a trap or a hint may change in the context and in its views is
 *       changed with the lock held.  While it is 0, only the owner changes it, without the lock.
 *   (4) n_joined is the number of threads that have joined, and have neither left nor ended.
 *   (5) While id is not 0, a page gets its contents before it gets access, and loses the access for stores
 *       before its contents are read for the last time: another thread may load from it and
 *       store to it at any moment.
 */
#ifndef XAC_TEAM_INTERNAL_H
#define XAC_TEAM_INTERNAL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"

/* A transaction that a thread has joined; the latest first. */
struct xac_joined {
    struct xac_joined *next;
    uint64_t id;
};

/* What a thread's end, and its calls, must know of it: part XAC_TLS_THREAD (tls.h). */
struct xac_thread_known {
    struct xac_joined *joined;
    bool is_stack_known; /* api_left.c */
    uintptr_t stack_low, stack_high;
};

/* Which part the calling thread has in a context's open transaction. */
enum xac_team_part {
    XAC_TEAM_ALONE, /* it is the owner, and there is no team: nothing is locked           */
    XAC_TEAM_IN, /* it may work on it: the lock is held                                */
    XAC_TEAM_AGAIN, /* it has the lock already: it traps while it copies a page            */
    XAC_TEAM_OUT /* it may not: nothing is locked                                      */
};

/* xac_team_is_owner -- is the calling thread the owner?  Relaxed: that it is us can only have been stored by
   us. */
XAC_SIGSAFE static inline bool
xac_team_is_owner(const struct xac_ctx *ctx)
{
    return pthread_equal(atomic_load_explicit(&ctx->owner, memory_order_relaxed),
                         pthread_self());
}

/* xac_team_enter -- may the calling thread work on a context?  With signals blocked. */
XAC_SIGSAFE enum xac_team_part xac_team_enter_slow(struct xac_ctx *ctx);
XAC_SIGSAFE static inline enum xac_team_part
xac_team_enter(struct xac_ctx *ctx)
{
    /* Relaxed: the owner's own. */
    return xac_likely(atomic_load_explicit(&ctx->team.id, memory_order_relaxed) == 0
                      && xac_team_is_owner(ctx))
               ? XAC_TEAM_ALONE
               : xac_team_enter_slow(ctx);
}

/* xac_team_leave -- give the lock back, if enter has taken it. */
XAC_SIGSAFE void xac_team_leave_slow(struct xac_ctx *ctx);
XAC_SIGSAFE static inline void
xac_team_leave(struct xac_ctx *ctx, enum xac_team_part part)
{
    xac_assert(part != XAC_TEAM_OUT);
    if (xac_unlikely(part == XAC_TEAM_IN))
        xac_team_leave_slow(ctx);
}

/*
 * xac_team_is_spurious -- a page has trapped that has the access: may another thread have given it
 * meanwhile?  If so, the access is repeated.  Lock held.
 */
XAC_SIGSAFE bool xac_team_is_spurious(struct xac_ctx *ctx);

/* xac_team_served -- a trap has given access to a page.  Lock held. */
XAC_SIGSAFE void xac_team_served(struct xac_ctx *ctx);

/* xac_team_is_on -- may other threads touch the pages of a context now?  By a thread of the team.
   Relaxed: see the field. */
XAC_SIGSAFE static inline bool
xac_team_is_on(const struct xac_ctx *ctx)
{
    return xac_unlikely(atomic_load_explicit(&ctx->team.id, memory_order_relaxed) != 0);
}

/* xac_team_lock, unlock -- the owner's own, with signals blocked. */
void xac_team_lock(struct xac_ctx *ctx, sigset_t *signals);
void xac_team_unlock(struct xac_ctx *ctx, const sigset_t *signals);

/* xac_team_call, return -- around what a call of the owner changes: see (3).  ret: is it locked? */
static inline bool
xac_team_call(struct xac_ctx *ctx, sigset_t *signals)
{
    bool is_on = xac_team_is_on(ctx);

    if (is_on)
        xac_team_lock(ctx, signals);
    return is_on;
}
static inline void
xac_team_return(struct xac_ctx *ctx, bool is_locked, const sigset_t *signals)
{
    if (is_locked)
        xac_team_unlock(ctx, signals);
}

/*
 * xac_team_open -- the owner's transaction gets a team, if it has none; ret its id.
 * xac_team_close -- the owner's transaction has none any more; others that are at work are waited for.
 *   ret 0; or the number of threads that have joined and not left, and nothing has changed.  With
 *   is_forced they are let down: what they touch stops the program.
 */
uint64_t xac_team_open(struct xac_ctx *ctx, bool is_all);
unsigned xac_team_close(struct xac_ctx *ctx, bool is_forced);

/* xac_team_lock_if -- take the lock if the team has that id; signals are blocked.  ret false: it has
   another one, and nothing is locked.  xac_team_leave(ctx, XAC_TEAM_IN) gives it back. */
bool xac_team_lock_if(struct xac_ctx *ctx, uint64_t id);

/* xac_team_fork, forked -- nobody is at work while the process forks, but if it does so in a signal handler with
   locks held; in the child no transaction has a team.  The thread that forks has no lock of a team. */
void xac_team_fork(struct xac_ctx *ctx);
void xac_team_fork_done(struct xac_ctx *ctx);
void xac_team_forked(struct xac_ctx *ctx);

/* How many memberships threads of the process have; relaxed: the thread's own are seen. */
extern _Atomic uint32_t xac_team_n_joined;

/* xac_team_mine -- what the calling thread has joined, the latest first; NULL: nothing. */
XAC_SIGSAFE struct xac_joined *xac_team_mine(void);

/* xac_team_has_joined -- has it joined the transaction of a context? */
bool xac_team_has_joined(const struct xac_ctx *ctx);

/* xac_team_note, forget -- that the calling thread has joined one; and has left it, or it is over.
   note: ret 0 or ENOMEM. */
int xac_team_note(uint64_t id);
void xac_team_forget(uint64_t id);

#endif /* XAC_TEAM_INTERNAL_H */
