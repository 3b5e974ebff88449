/* SPDX-License-Identifier: MIT */
/*
 * txn_begin.c -- the begin of a transaction: see txn.h.
 */
#include <config.h>

#include "base/err.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "txn/alone.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "txn/policy.h"
#include "txn/turn.h"
#include "view/view.h"

/* unrecorded_epoch -- nonzero if loads need not be recorded: the epoch while the process is alone,
   and always the same number under the serial policy. */
static uint64_t
unrecorded_epoch(const struct xac_env *env)
{
    xac_assert(env->policy != NULL);
    if (xac_env_checking(env) == XAC_CHECKING_STRICT)
        return 0;
    return env->policy->is_serial ? 1 : xac_alone_epoch(env);
}

/* wait_turn -- what the policy waits for before a transaction; ret 0, or ETIMEDOUT with words. */
static int
wait_turn(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    xac_assert(xac_lock_none_held());
    if (env->policy->begin == NULL)
        return 0;
    xac_wait_limit(env->options.wait_ms);
    rc = env->policy->begin(env, ctx);
    xac_wait_limit(0);
    return rc == 0 ? 0
                   : xac_err(rc,
                             "xbegin: waited for the turn for %u ms; xstat tells which "
                             "process has it",
                             env->options.wait_ms);
}

int
xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t serial;
    int rc;

    xac_assert(ctx->n_entries == 0);
    xac_assert(xac_txn_state(atomic_load_explicit(&txn->word, memory_order_relaxed))
               == XAC_TXN_IDLE);
    xac_assert(txn->n_written == 0);
    if (!is_query && txn->is_retry)
        xac_conflict_wait(env, ctx);
    rc = is_query ? 0 : wait_turn(env, ctx);
    if (rc != 0)
        return rc;
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
    ctx->alone_epoch = unrecorded_epoch(env);
    atomic_store_explicit(&txn->reads_unknown,
                          ctx->alone_epoch != 0 && !is_query && !env->policy->is_serial,
                          memory_order_relaxed);
    serial = xac_txn_serial(atomic_load_explicit(&txn->word, memory_order_relaxed));
    /* Release: pairs with the acquire of a scan of the slots. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(serial, env->self,
                                       is_query ? XAC_TXN_QUERY : XAC_TXN_PENDING),
                          memory_order_release);
    xac_kill_point("begin");
    xac_chain_enter(env, txn);
    /* The fence in xac_chain_enter lies between storing reads_unknown and looking
       again; it pairs with the one in xac_alone_revoke. */
    if (ctx->alone_epoch != 0 && unrecorded_epoch(env) != ctx->alone_epoch) {
        ctx->alone_epoch = 0;
        atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    }
    rc = xac_view_begin_all(env, ctx);
    xac_debug(xac_txn_assert(ctx));
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE);
        xac_turn_pass(env, ctx->slot);
    }
    return rc;
}

void
xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    uint64_t page = 0;

    xac_assert(ctx->depth > 0);
    if (!ctx->is_query && env->policy->validate != NULL
        && !env->policy->validate(env, ctx->slot, &page))
        (void)xac_txn_fail(ctx->txn, word, env->policy->lost, 0, page);
}
