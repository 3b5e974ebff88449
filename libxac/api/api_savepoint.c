/* SPDX-License-Identifier: MIT */
/*
 * api_savepoint.c -- entry points for savepoints: see api.h.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "api/api_savepoint.h"
#include "base/tsan.h"
#include "txn/saved.h"
#include "txn/team.h"
#include "view/view.h"

/* The mark of the latest savepoint of the process: so none is taken for one of another transaction.  Relaxed:
   only its value counts. */
static _Atomic uint64_t last_mark;

/* in_update -- the caller's context, if it is inside a transaction, and not in a query. */
static int
in_update(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_in_txn(env, what, ctxp);

    if (rc == 0 && (*ctxp)->query_depth > 0)
        return xac_err(XAC_EINQUERY, "%s", what);
    return rc;
}

/*
 * enter -- beside other threads, with the lock of the team: pages are closed.  That is not possible if stores have to
 * be announced, and threads have joined: only they themselves forget what they have announced.
 *
 * ret  0, and leave() gives the lock back; or EBUSY.
 */
static int
enter(struct xac_ctx *ctx, const char *what, bool *is_teamp, sigset_t *signals)
{
    bool is_busy;

    *is_teamp = xac_team_call(ctx, signals);
    is_busy = ctx->team.n_joined > 0
              && (ctx->env->options.announces != 0
                  || xac_env_checking(ctx->env) == XAC_CHECKING_TRUSTED);
    if (xac_likely(!is_busy)) {
        xac_tsan_enter();
        return 0;
    }
    xac_team_return(ctx, *is_teamp, signals);
    return xac_err(EBUSY,
                   "%s: threads have joined the transaction, and stores are announced: "
                   "let them xLeave() first",
                   what);
}

static void
leave(struct xac_ctx *ctx, bool is_team, const sigset_t *signals)
{
    xac_tsan_leave();
    xac_team_return(ctx, is_team, signals);
}

int
xac_api_savepoint(struct xac_env *env, const char *what, uint64_t *markp)
{
    uint64_t mark = atomic_fetch_add_explicit(&last_mark, 1, memory_order_relaxed) + 1;
    struct xac_ctx *ctx;
    sigset_t signals;
    bool is_team;
    int rc = in_update(env, what, &ctx);

    if (rc == 0)
        rc = enter(ctx, what, &is_team, &signals);
    if (rc != 0)
        return rc;
    rc = xac_view_savepoint(ctx, mark);
    leave(ctx, is_team, &signals);
    if (rc != 0)
        return xac_err(rc, "%s: keeping the transaction as it is", what);
    *markp = mark;
    return 0;
}

/* find -- the context and the level of a mark. */
static int
find(struct xac_env *env, const char *what, uint64_t mark, struct xac_ctx **ctxp,
     uint64_t *levelp)
{
    int rc = in_update(env, what, ctxp);

    if (rc != 0)
        return rc;
    *levelp = (*ctxp)->saved != NULL ? xac_saved_find((*ctxp)->saved, mark) : UINT64_MAX;
    return *levelp != UINT64_MAX
               ? 0
               : xac_err(EINVAL,
                         "%s: the transaction has no savepoint %llu, or has released it",
                         what, (unsigned long long)mark);
}

int
xac_rollback_to_in(struct xac_env *env, uint64_t mark)
{
    struct xac_ctx *ctx;
    uint64_t level, word;
    sigset_t signals;
    bool is_team;
    int rc = find(env, "xRollbackTo", mark, &ctx, &level);

    if (rc == 0)
        rc = enter(ctx, "xRollbackTo", &is_team, &signals);
    if (rc != 0)
        return rc;
    rc = xac_view_roll_back(ctx, level);
    leave(ctx, is_team, &signals);
    if (rc != 0)
        return xac_err(rc, "xRollbackTo: restoring pages");
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    word = atomic_load_explicit(&ctx->txn->word, memory_order_acquire);
    return xac_txn_state(word) == XAC_TXN_FAILED ? XAC_FAILED : 0;
}

int
xac_release_in(struct xac_env *env, uint64_t mark)
{
    struct xac_ctx *ctx;
    uint64_t level;
    sigset_t signals;
    bool is_team;
    int rc = find(env, "xRelease", mark, &ctx, &level);

    if (rc != 0)
        return rc;
    is_team = xac_team_call(ctx, &signals);
    xac_saved_merge(ctx->saved, level);
    xac_team_return(ctx, is_team, &signals);
    return 0;
}

uint64_t
xac_savepoint_in(struct xac_env *env)
{
    uint64_t mark = 0;
    int rc = xac_api_savepoint(env, "xSavepoint", &mark);

    if (rc == XAC_ENOTXN || rc == XAC_EINQUERY || rc == XAC_EFORKED)
        errno = EPERM;
    else if (rc != 0)
        errno = xac_api_errno(rc);
    return mark;
}

/* ---- On the default environment ----------------------------------------------------------- */

uint64_t
xac_savepoint(void)
{
    return xac_savepoint_in(xac_api_env);
}

int
xac_rollback_to(uint64_t mark)
{
    return xac_rollback_to_in(xac_api_env, mark);
}

int
xac_release(uint64_t mark)
{
    return xac_release_in(xac_api_env, mark);
}

uint64_t xSavepoint(void) XAC_ALIAS_OF(xac_savepoint);
int xRollbackTo(uint64_t mark) XAC_ALIAS_OF(xac_rollback_to);
int xRelease(uint64_t mark) XAC_ALIAS_OF(xac_release);
