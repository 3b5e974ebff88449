/* SPDX-License-Identifier: MIT */
/*
 * txn.c -- begin, end, abort: see txn.h.  Committing is in txn_commit.c.
 */
#include <config.h>

#include "commit/txn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "shared/env_state.h"
#include "txn/reap.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "txn/optimistic.h"
#include "txn/policy.h"
#include "txn/alone.h"
#include "view/fault.h"
#include "view/view.h"

/* Races in a row that an optimistic transaction may lose before it takes the token. */
#define LOST_BEFORE_TOKEN 4

int
xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t serial;
    int rc;

    xac_assert(ctx->n_entries == 0);
    if (env->policy->is_optimistic && !is_query && ctx->n_lost >= LOST_BEFORE_TOKEN)
        xac_token_take(env, ctx);
    if (!is_query && txn->is_retry)
        xac_conflict_wait(env, ctx);
    ctx->is_query = is_query;
    ctx->error = 0;
    ctx->error_page = 0;
    ctx->error_lacking = XAC_LACKS_MEMORY;
    ctx->lacking = XAC_LACKS_MEMORY;
    ctx->conflict.found_by_us = 0;
    ctx->n_blocks = 0;
    if (!is_query && !txn->is_retry)
        atomic_store_explicit(&txn->age,
                              atomic_fetch_add_explicit(&env->ctl->chain.next_age, 1,
                                                        memory_order_relaxed),
                              memory_order_relaxed);
    atomic_store_explicit(&txn->why, 0, memory_order_relaxed);
    ctx->alone_epoch =
        atomic_load_explicit(&env->options.stay_mapped, memory_order_relaxed) != 0
            ? xac_alone_epoch(env)
            : 0;
    atomic_store_explicit(&txn->reads_unknown, ctx->alone_epoch != 0 && !is_query,
                          memory_order_relaxed);
    serial = xac_txn_serial(atomic_load_explicit(&txn->word, memory_order_relaxed));
    /* Release: pairs with the acquire of who scans the slots. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(serial, env->self,
                                       is_query ? XAC_TXN_QUERY : XAC_TXN_PENDING),
                          memory_order_release);
    xac_kill_point("begin");
    xac_chain_enter(env, txn);
    /* The fence in xac_chain_enter lies between storing reads_unknown and looking
       again; it pairs with the one in xac_alone_revoke. */
    if (ctx->alone_epoch != 0 && xac_alone_epoch(env) != ctx->alone_epoch) {
        ctx->alone_epoch = 0;
        atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    }
    rc = xac_view_begin_all(env, ctx);
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE);
        xac_token_give(env, ctx);
    }
    return rc;
}

void
xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    xac_view_end_all(env, ctx, is_committed);
    xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE);
    ctx->n_entries = 0;
    xac_token_give(env, ctx);
    if (ctx->saw_dead && !xac_wait_is_over()) {
        ctx->saw_dead = false;
        xac_reap_dead(env);
    }
}

void
xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    uint64_t page = 0;

    if (env->policy->is_optimistic && !ctx->is_query
        && !env->policy->validate(env, ctx->txn, &page))
        (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_VALIDATION, 0, page);
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
    if (c->kind == XAC_CONFLICT_NONE) /* taken back while COMMITTING, see alone.h */
        c->kind = XAC_CONFLICT_REVOKED;
    if (page != 0 && c->kind != XAC_CONFLICT_USER && c->kind != XAC_CONFLICT_REVOKED)
        xac_view_describe(ctx, page, c);
}

/* count_abort -- one of the three counters. */
static void
count_abort(struct xac_counters *n, int kind)
{
    if (kind == XAC_CONFLICT_USER)
        xac_count_own(&n->aborts_user, 1);
    else if (kind == XAC_CONFLICT_RESOURCE || kind == XAC_CONFLICT_REVOKED)
        xac_count_own(&n->aborts_other, 1);
    else
        xac_count_own(&n->aborts_conflict, 1);
}

/*
 * end_query -- a query has nothing to publish, but what it read must be durable.  Signals are
 * blocked only if a lock may have to be taken: to wait for that, or to clean up.
 */
static int
end_query(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t lsn =
        xac_chain_lsn(env, atomic_load_explicit(&txn->parent, memory_order_relaxed));
    bool must_block =
        ctx->saw_dead
        || (xac_env_is_durable(env)
            /* Relaxed: looked at again by who waits. */
            && (env->options.sync_delay_ms != 0
                || atomic_load_explicit(&env->log.sh->durable, memory_order_relaxed)
                       < lsn));
    sigset_t signals;
    int rc;

    if (must_block)
        xac_signals_block(&signals);
    xac_txn_finish(env, ctx, true);
    xac_count_own(&txn->counters.queries, 1);
    xac_wait_limit(env->options.wait_ms);
    rc = xac_commit_await(env, lsn);
    xac_wait_limit(0);
    if (must_block)
        xac_signals_restore(&signals);
    return rc;
}

void
xac_txn_forgo(struct xac_ctx *ctx)
{
    ctx->txn->is_retry = 0;
    ctx->n_lost = 0;
    ctx->n_cured = 0;
    /* Relaxed: a hint for xac_conflict_wait. */
    atomic_store_explicit(&ctx->txn->age, XAC_AGE_OVER, memory_order_relaxed);
}

/*
 * may_lock -- may the end of a transaction take a lock, so that signals must be blocked?  Not if
 * it has nothing in its set, which is so when it has only read while alone (alone.h).
 */
static bool
may_lock(const struct xac_env *env, const struct xac_ctx *ctx)
{
    return ctx->n_entries > 0 || ctx->has_token || ctx->saw_dead
           || xac_env_is_durable(env);
}

/* end_aborted -- the transaction has not committed: roll it back; ret as xac_txn_end. */
static int
end_aborted(struct xac_env *env, struct xac_ctx *ctx)
{
    char words[XAC_ERR_BYTES];
    int rc;

    if (ctx->error != 0)
        (void)snprintf(words, sizeof words, "%s", xac_err_text());
    note_conflict(ctx);
    count_abort(&ctx->txn->counters, ctx->conflict.kind);
    xac_txn_finish(env, ctx, false);
    rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = ctx->error != 0 ? xac_error_verdict(env, ctx, words) : XAC_ABORTED;
    /* Who gives up by himself has not lost, and need not grow older. */
    if (rc != XAC_ABORTED || ctx->conflict.kind == XAC_CONFLICT_USER) {
        xac_txn_forgo(ctx);
        return rc;
    }
    ctx->txn->is_retry = 1;
    ctx->n_lost++;
    return rc;
}

/* gather -- the last entries of the set; why it must abort, in words. */
static void
gather(struct xac_env *env, struct xac_ctx *ctx)
{
    if (ctx->error == 0) {
        ctx->error = xac_warm_gather(env, ctx);
        ctx->error_lacking = ctx->lacking;
    }
    if (ctx->error != 0)
        xac_error_explain(ctx);
}

/*
 * may_step -- may a transaction do a step of a checkpoint at its end?  With a limit only if it has
 * just had the lock to publish, for the step takes it without: nobody is stopped with it.
 */
static bool
may_step(const struct xac_ctx *ctx, uint64_t commits)
{
    return !xac_wait_is_over()
           && atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed)
                  != commits;
}

int
xac_txn_end(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t commits =
        atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed);
    uint32_t wait_ms = env->options.wait_ms;
    bool is_blocked;
    sigset_t signals;
    int rc;

    if (ctx->is_query)
        return end_query(env, ctx);
    gather(env, ctx);
    is_blocked = may_lock(env, ctx);
    if (is_blocked)
        xac_signals_block(&signals);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(wait_ms);
    rc = xac_commit(env, ctx);
    if (rc == XAC_ABORTED) {
        rc = end_aborted(env, ctx);
    } else {
        memset(&ctx->conflict, 0, sizeof ctx->conflict);
        xac_txn_forgo(ctx);
    }
    if (is_blocked) {
        /* Who has not written leaves it to who has.  Not after an error: its words are to
           stay. */
        if ((rc == XAC_COMMITTED || rc == XAC_ABORTED)
            && (wait_ms == 0 || may_step(ctx, commits)))
            xac_checkpoint_if_due(env);
        xac_signals_restore(&signals);
    }
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(0);
    return rc;
}
