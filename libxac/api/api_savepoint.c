/* SPDX-License-Identifier: MIT */
/*
 * api_savepoint.c -- entry points for savepoints: see api.h.
 */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "api/api_savepoint.h"
#include "base/tsan.h"
#include "txn/saved.h"
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

int
xac_api_savepoint(struct xac_env *env, const char *what, uint64_t *markp)
{
    uint64_t mark = atomic_fetch_add_explicit(&last_mark, 1, memory_order_relaxed) + 1;
    struct xac_ctx *ctx;
    int rc = in_update(env, what, &ctx);

    if (rc != 0)
        return rc;
    xac_tsan_enter();
    rc = xac_view_savepoint(ctx, mark);
    xac_tsan_leave();
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
    int rc = find(env, "xRollbackTo", mark, &ctx, &level);

    if (rc != 0)
        return rc;
    xac_tsan_enter();
    rc = xac_view_roll_back(ctx, level);
    xac_tsan_leave();
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
    int rc = find(env, "xRelease", mark, &ctx, &level);

    if (rc == 0)
        xac_saved_merge(ctx->saved, level);
    return rc;
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
