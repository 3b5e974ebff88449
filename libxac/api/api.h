/* SPDX-License-Identifier: MIT */
/*
 * api.h -- what the entry points share: the process's environments, and the turns of threads.
 *
 * WHAT      The public functions are in api_open.c (opening, closing), api_options.c, api_map.c
 *           (mappings, views), api_txn.c (transactions, hints), api_heap.c (allocator),
 *           api_backup.c and api.c (log, statistics): arguments, nesting, turns; no algorithms.
 *           A function xac_f_in() has the environment as its first argument; xac_f() is the same
 *           on the default environment, and xF() is another name of that.
 * THREADS   A context runs one transaction at a time.  Threads without views of their
 *           own (thread.h) share the process's context: the thread that takes the turn keeps it from
 *           begin to end, and the others get EBUSY.
 */
#ifndef XAC_API_H
#define XAC_API_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/annot.h"
#include "base/lock.h"
#include "base/err.h"
#include "base/tsan.h"
#include "env/env.h"
#include "env/thread.h"
#include "txn/ctx.h"

/* Each function exists as xac_name and, as an alias, under its Thesis name. */
#define XAC_ALIAS_OF(name) __attribute__((alias(#name)))

/* The default environment, which xInit() opens; NULL if it is not open. */
extern struct xac_env *xac_api_env;

/* All environments that the process has open, the default one too, linked by `next`;
   xac_api_lock. */
extern struct xac_env *xac_api_all;

/* xac_api_lock, unlock -- one thread at a time opens, closes and forks; it may lock again. */
void xac_api_lock(void);
void xac_api_unlock(void);

/* xac_api_interrupted -- stop the program: the call comes in the middle of an xbegin() or xend() of its
   thread, from a signal handler or after one has left it. */
_Noreturn void xac_api_interrupted(const char *what);

/* xac_api_is_within -- is a call of the library, such as xbegin() or xend(), under way in this thread?
   Then a signal handler interrupts it, or has left it; xac_api_lock. */
bool xac_api_is_within(void);

/* xac_api_opened -- 0, or XAC_ENOINIT if env is NULL.  xac_api_any_opened: if all are. */
static inline int
xac_api_opened(const struct xac_env *env, const char *what)
{
    if (xac_unlikely(xac_half_done_any()))
        xac_api_interrupted(what);
    return env == NULL ? xac_err(XAC_ENOINIT, "%s", what) : 0;
}
int xac_api_any_opened(const char *what);

/*
 * xac_api_start -- for calls outside transactions: the caller's context, its turn taken,
 * joined after a fork.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN if the caller has a transaction open; EBUSY if another
 *      thread has one in the same context; what joining may return.
 */
int xac_api_start(struct xac_env *env, const char *what, struct xac_ctx **ctxp);

/* xac_api_take_process -- take the turn of the process's context; nothing is joined. */
int xac_api_take_process(struct xac_env *env, const char *what, struct xac_ctx **ctxp);

/* xac_api_start_process -- the same with the process's context, also for a thread that has one. */
int xac_api_start_process(struct xac_env *env, const char *what, struct xac_ctx **ctxp);

/*
 * xac_api_start_by -- the same for a begin, which waits for the turn of another thread of the process: as long
 * as XAC_OPT_WAIT_MS allows, and not longer than until a time.  This wait counts for the
 * limit of the thread (lock.h), which stays set behind it if there is one.
 *
 * in   until_ns  monotonic; 0: the option alone
 */
int xac_api_start_by(struct xac_env *env, const char *what, uint64_t until_ns,
                     struct xac_ctx **ctxp);

/* xac_api_wake -- wake a thread that waits in it. */
void xac_api_wake(struct xac_ctx *ctx);

/* xac_api_done -- give the turn back. */
static inline void
xac_api_done(struct xac_ctx *ctx)
{
    xac_tsan_release();
    xac_tsan_leave();
    /* Release: pairs with the acquire in take_turn. */
    atomic_store_explicit(&ctx->owner, 0, memory_order_release);
    /* Relaxed: one that has begun to wait just now looks again soon. */
    if (xac_unlikely(atomic_load_explicit(&ctx->n_waiting, memory_order_relaxed) != 0))
        xac_api_wake(ctx);
}

/*
 * xac_api_start_own -- for calls about the caller's own views, outside its transactions;
 * joined after a fork.  Needs no turn, for other threads may be inside transactions of the
 * process's context; keeps xShutdown() out by xac_api_lock.
 *
 * ret  0, then done_own is called at the end; XAC_ENOINIT; XAC_EINTXN; what joining may
 *      return.
 */
int xac_api_start_own(struct xac_env *env, const char *what);
void xac_api_done_own(void);

/*
 * xac_api_roll_back -- the caller has a transaction or query: take it back to that nesting; 0
 * ends it.  The rest of it will abort.
 */
void xac_api_roll_back(struct xac_ctx *ctx, int depth);

/* xac_api_begin -- the outermost transaction or query of the calling thread's context; ret as
   xac_begin().  Its begin and its end give up waiting at until_ns, unless that is 0. */
int xac_api_begin(struct xac_env *env, bool is_query, uint64_t until_ns);

/* xac_api_begin_by -- xac_begin_in() with such a time, if it is the outermost. */
int xac_api_begin_by(struct xac_env *env, uint64_t until_ns);

/* xac_api_errno -- what functions that return addresses report for an error of ours. */
int xac_api_errno(int rc);

/*
 * xac_api_check_sized -- 0, or EINVAL: `out` is NULL, or `size` holds not even the first
 * field, which has first_bytes.
 */
int xac_api_check_sized(const char *what, const void *out, size_t size,
                        size_t first_bytes);

/* xac_api_is_mine -- has the calling thread the context's turn? */
XAC_SIGSAFE static inline bool
xac_api_is_mine(const struct xac_ctx *ctx)
{
    /* Relaxed: that it is us can only have been stored by us. */
    return pthread_equal(atomic_load_explicit(&ctx->owner, memory_order_relaxed),
                         pthread_self());
}

/* xac_api_hint -- announce pages [at, end) of a view, inside a transaction.  ret 0; XAC_EINQUERY;
   ENOMEM and other errno values if they cannot be shown. */
int xac_api_hint(struct xac_ctx *ctx, struct xac_view *v, uint64_t at, uint64_t end,
                 bool is_write);

/* xac_api_hint_locked -- the same for a range, by a thread of the team that has its lock (team.h). */
int xac_api_hint_locked(struct xac_ctx *ctx, const void *addr, size_t length,
                        bool is_write);

/* For threads that help another's transaction (api_team.c).
 *
 * xac_api_team_check -- 0; XAC_EINTXN: the thread has joined a transaction of the environment.
 * xac_api_team_hint -- announce a range, if the thread may do so for another thread's transaction; its result
 *   in *rcp.  ret false: it may not.
 * xac_api_team_view -- a view that the address lies in, of a transaction that the thread has joined; its
 *   team is locked, and signals are blocked, until xac_api_team_done.  NULL: none.
 * xac_api_team_gap -- bytes from an address in no such view to the next one; SIZE_MAX: there is none.
 * xac_api_team_ended -- the thread ends: it leaves what it has joined.
 */
int xac_api_team_check(struct xac_env *env, const char *what);
bool xac_api_team_hint(struct xac_env *env, const void *addr, size_t length,
                       bool is_write, int *rcp);
struct xac_view *xac_api_team_view(const void *addr, sigset_t *signals);
void xac_api_team_done(struct xac_view *view, const sigset_t *signals);
size_t xac_api_team_gap(const uint8_t *addr);
void xac_api_team_ended(void);

/* xac_api_in_txn -- the caller's context, if it is inside a transaction or query. */
static inline int
xac_api_in_txn(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(env, what);

    if (rc != 0)
        return rc;
    *ctxp = xac_ctx_mine(env);
    if (xac_api_is_mine(*ctxp) && (*ctxp)->depth > 0)
        return 0;
    if ((*ctxp)->orphan_depth > 0)
        return xac_err(XAC_EFORKED, "%s", what);
    return xac_err(XAC_ENOTXN, "%s", what);
}

#endif /* XAC_API_H */
