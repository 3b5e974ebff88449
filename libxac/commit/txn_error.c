/* SPDX-License-Identifier: MIT */
/*
 * txn_error.c -- a transaction that cannot commit for want of something: what the library does
 * about it, and what it says.
 */
#include <config.h>

#include <errno.h>

#include <xac.h>

#include "base/err.h"
#include "checkpoint/checkpoint.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "view/fault.h"
#include "view/view.h"

/* Failures in a row after which room is made; the next one is told. */
#define CURES_MAX 1

/* explain_region -- the control region, or memory beside it, had no room for an access. */
static void
explain_region(const struct xac_ctx *ctx)
{
    const struct xac_env *env = ctx->env;
    uint64_t wanted = atomic_load_explicit(&env->shm.wanted, memory_order_relaxed);

    if (wanted == 0)
        (void)xac_err(ctx->error, "no memory to record an access");
    else
        (void)xac_err(ctx->error, "control region %s: no room for %llu bytes more",
                      env->region, (unsigned long long)wanted);
}

void
xac_error_explain(struct xac_ctx *ctx)
{
    struct xac_conflict where = {.file = ""};

    xac_assert(ctx->error != 0);
    if (ctx->error_lacking == XAC_LACKS_REGION) {
        explain_region(ctx);
    } else if (ctx->error_page == 0) {
        (void)xac_err(ctx->error, "looking for the pages that were stored to");
    } else {
        ctx->lacking = ctx->error_lacking;
        xac_view_describe(ctx, ctx->error_page, &where);
        (void)xac_err(ctx->error, "%s at offset %llu: %s", where.file,
                      (unsigned long long)where.file_offset, xac_fault_lacks(ctx));
    }
}

/* may_cure -- is it room that is lacking, of a kind that a checkpoint makes, and may we make one?
   What an access lacks, room in the control region above all, it does not make. */
static bool
may_cure(const struct xac_env *env, const struct xac_ctx *ctx)
{
    bool is_room = ctx->error == ENOSPC || ctx->error == EDQUOT || ctx->error == ENOMEM;

    return is_room && ctx->n_cured < CURES_MAX && ctx->error_page == 0
           && ctx->error_lacking != XAC_LACKS_REGION
           /* 0: the user wants no checkpoint but his own. */
           && atomic_load_explicit(&env->ctl->checkpoint_bytes, memory_order_relaxed)
                  != 0;
}

/* cure -- a checkpoint lets versions go, and log to be written over; somebody else's will do. */
static bool
cure(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    xac_assert(ctx->n_cured < CURES_MAX);
    ctx->n_cured++;
    rc = xac_checkpoint_try(env);
    return rc == 0 || rc == EBUSY;
}

int
xac_error_verdict(struct xac_env *env, struct xac_ctx *ctx, const char *words)
{
    xac_assert(ctx->error != 0);
    if (may_cure(env, ctx) && cure(env, ctx))
        return XAC_ABORTED;
    return xac_err_whole(ctx->error, "%s; rolled back (environment %s%s%s)", words,
                         env->dir, env->logdir != NULL ? ", log in " : "",
                         env->logdir != NULL ? env->logdir : "");
}
