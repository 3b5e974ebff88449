/* SPDX-License-Identifier: MIT */
/*
 * txn_abort.c -- a transaction that does not commit: it is rolled back, and the caller is told
 * why.  If the transaction lacked something, a checkpoint may make room for the next attempt.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "checkpoint/checkpoint.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "txn/conflict.h"
#include "txn/slot.h"
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

/*
 * verdict -- the transaction has been rolled back for ctx->error.  If a checkpoint may make room,
 * and has not been tried for the attempt before this one, it is tried now.
 *
 * in   words  that were noted for the error, kept from what happened since
 * ret  XAC_ABORTED if another attempt may succeed; else ctx->error, words noted
 */
static int
verdict(struct xac_env *env, struct xac_ctx *ctx, const char *words)
{
    xac_assert(ctx->error != 0);
    if (may_cure(env, ctx) && cure(env, ctx))
        return XAC_ABORTED;
    return xac_err_whole(ctx->error, "%s; rolled back (environment %s%s%s)", words,
                         env->dir, env->logdir != NULL ? ", log in " : "",
                         env->logdir != NULL ? env->logdir : "");
}

/* note_conflict -- translate the slot's reasons for xConflict(). */
static void
note_conflict(struct xac_ctx *ctx)
{
    struct xac_conflict *c = &ctx->conflict;
    uint64_t why = atomic_load_explicit(&ctx->txn->why, memory_order_relaxed);
    uint64_t page = atomic_load_explicit(&ctx->txn->why_page, memory_order_relaxed);
    int found_by_us = c->found_by_us;

    memset(c, 0, sizeof *c);
    c->found_by_us = found_by_us;
    if (ctx->error != 0) {
        c->kind = XAC_CONFLICT_RESOURCE;
        c->error = ctx->error;
        return;
    }
    c->kind = (int)(why >> 32 & 0xff);
    c->other_pid = (int)(why & 0xffffffff);
    if (c->kind == XAC_CONFLICT_RESOURCE) /* it lacked the leader's office: group.h */
        c->error = XAC_ENOTLEADER;
    if (c->kind == XAC_CONFLICT_NONE) /* taken back while COMMITTING, see alone.h */
        c->kind = XAC_CONFLICT_REVOKED;
    if (page != 0 && c->kind != XAC_CONFLICT_USER && c->kind != XAC_CONFLICT_REVOKED)
        xac_view_describe(ctx, page, c);
    xac_assert(c->kind != XAC_CONFLICT_NONE);
}

/* note_failure -- for xParticipants(). */
static void
note_failure(const struct xac_ctx *ctx)
{
    const struct xac_conflict *c = &ctx->conflict;

    xac_assert(c->kind != XAC_CONFLICT_NONE);
    atomic_store_explicit(&ctx->txn->last_why,
                          (uint64_t)c->kind << 32 | (uint32_t)c->other_pid,
                          memory_order_relaxed);
    atomic_store_explicit(&ctx->txn->last_failed_ns, xac_clock_coarse_ns(),
                          memory_order_relaxed);
}

/* count_abort -- one of the three counters. */
static void
count_abort(struct xac_counters *n, int kind)
{
    xac_assert(kind != XAC_CONFLICT_NONE);
    if (kind == XAC_CONFLICT_USER)
        xac_count_own(&n->aborts_user, 1);
    else if (kind == XAC_CONFLICT_RESOURCE || kind == XAC_CONFLICT_REVOKED)
        xac_count_own(&n->aborts_other, 1);
    else
        xac_count_own(&n->aborts_conflict, 1);
}

int
xac_txn_end_aborted(struct xac_env *env, struct xac_ctx *ctx)
{
    char words[XAC_ERR_BYTES];
    int rc;

    xac_assert(!ctx->is_query);
    if (ctx->error != 0)
        (void)snprintf(words, sizeof words, "%s", xac_err_text());
    note_conflict(ctx);
    note_failure(ctx);
    count_abort(&ctx->txn->counters, ctx->conflict.kind);
    xac_txn_finish(env, ctx, false);
    rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = ctx->error != 0 ? verdict(env, ctx, words) : XAC_ABORTED;
    /* Who gives up by himself has not lost, and need not grow older. */
    if (rc != XAC_ABORTED || ctx->conflict.kind == XAC_CONFLICT_USER) {
        xac_txn_forgo(ctx);
        return rc;
    }
    ctx->txn->is_retry = 1;
    ctx->n_lost++;
    xac_assert(ctx->n_lost > 0);
    return rc;
}
