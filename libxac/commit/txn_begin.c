/* SPDX-License-Identifier: MIT */
/*
 * txn_begin.c -- the begin of a transaction: see txn.h.
 */
#include <config.h>

#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/probe.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "txn/alone.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/ctx.h"
#include "txn/drop.h"
#include "txn/policy.h"
#include "txn/snapshots.h"
#include "txn/turn.h"
#include "view/view.h"

/* So long a thread waits for its turn if the one that has it may be waiting for this thread (is_awaited), and
   the program has set no limit.  Turns last for milliseconds as a rule. */
#define PATIENCE_MS 3000

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

/* is_parents -- has a transaction the turn in which this process was forked? */
static bool
is_parents(const struct xac_env *env)
{
    xac_assert(!xac_env_is_forked(env));
    return env->parents_turn != 0 && xac_turn_is(env, env->parents_turn);
}

/* is_awaited -- may the one that has the turn be waiting for this thread?  It may if it has forked this process,
   or if this thread has the turn of another environment. */
static bool
is_awaited(const struct xac_env *env)
{
    for (const struct xac_ctx *c = xac_ctx_opened; c != NULL; c = c->next_open) {
        xac_assert(c->env != env);
        if (!c->is_query && xac_turn_is_mine(c->env, c->slot))
            return true;
    }
    return is_parents(env);
}

uint32_t
xac_txn_left_ms(const struct xac_env *env, uint64_t until_ns)
{
    uint32_t most = env->options.wait_ms;
    uint64_t now = xac_clock_ns(), left;

    xac_assert(until_ns != 0);
    left = until_ns > now ? (until_ns - now) / 1000000 + 1 : 1;
    xac_assert(left > 0);
    left = left < UINT32_MAX ? left : UINT32_MAX;
    return most != 0 && most < left ? most : (uint32_t)left;
}

/* wait_turn -- what the policy waits for before a transaction; ret 0, or ETIMEDOUT or EDEADLK with
   words. */
static int
wait_turn(struct xac_env *env, struct xac_ctx *ctx)
{
    uint32_t limit_ms = xac_wait_limit_ms(), ms; /* some of it may be over already */
    int rc;

    xac_assert(xac_lock_none_held());
    if (env->policy->begin == NULL)
        return 0;
    do { /* twice at most: a turn of the parent that is over does not come back */
        ms = limit_ms != 0 ? limit_ms : is_awaited(env) ? PATIENCE_MS : 0;
        if (limit_ms == 0)
            xac_wait_limit(ms);
        rc = env->policy->begin(env, ctx);
        if (limit_ms == 0)
            xac_wait_limit(0);
    } while (rc == ETIMEDOUT && limit_ms == 0 && !is_awaited(env));
    xac_assert(rc == 0 || rc == ETIMEDOUT);
    if (rc == ETIMEDOUT && limit_ms == 0)
        return xac_err(
            EDEADLK,
            "xbegin: waited for the turn for %u ms; the one that has it may be "
            "waiting for this %s",
            ms,
            is_parents(env)
                ? "process, which it has forked inside of its transaction; let it end that "
                  "transaction before it waits for this process"
                : "thread, which is in a transaction of another environment; end or abort "
                  "that one, then try again; begin in the same order everywhere");
    return rc == 0 ? 0
                   : xac_err(rc,
                             "xbegin: waited for the turn for %u ms; xstat tells which "
                             "process has it",
                             ms);
}

/*
 * enter -- give the transaction its parent: the newest state, or that of a snapshot.  EAGAIN: somebody has
 * come meanwhile.
 *
 * In a query at a snapshot the views know nothing of the pages that they show while alone: those are
 * of a newer state.
 */
static int
enter(struct xac_env *env, struct xac_ctx *ctx, const uint64_t *atp)
{
    struct xac_txn *txn = ctx->txn;

    if (atp != NULL) {
        xac_assert(ctx->alone_epoch == 0);
        return xac_snapshots_enter(env, txn, *atp);
    }
    xac_chain_enter(env, txn);
    /* The fence in xac_chain_enter lies between storing reads_unknown and looking
       again; it pairs with the one in xac_alone_revoke. */
    if (ctx->alone_epoch != 0 && unrecorded_epoch(env) != ctx->alone_epoch) {
        ctx->alone_epoch = 0;
        atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    }
    /* Else somebody has come since, and may not have seen this transaction. */
    return xac_unlikely(ctx->is_in_place && xac_alone_epoch(env) != ctx->in_place_epoch)
               ? EAGAIN
               : 0;
}

/* begin_once -- ret as xac_txn_begin(); EAGAIN: somebody has come meanwhile.  atp: the state that a query is
   to see; NULL: the newest. */
static int
begin_once(struct xac_env *env, struct xac_ctx *ctx, bool is_query, const uint64_t *atp)
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
    if (rc == 0 && (ctx->is_in_place || xac_env_checking(env) == XAC_CHECKING_TRUSTED))
        rc = xac_view_in_place_begin(env, ctx);
    if (rc != 0) {
        xac_turn_pass(env, ctx->slot);
        return rc;
    }
    ctx->is_query = is_query;
    ctx->is_at = atp != NULL;
    ctx->error = 0;
    ctx->error_page = 0;
    ctx->error_lacking = XAC_LACKS_MEMORY;
    ctx->lacking = XAC_LACKS_MEMORY;
    ctx->conflict.found_by_us = 0;
    ctx->n_blocks = 0;
    ctx->n_images = 0;
    if (!is_query && !txn->is_retry)
        atomic_store_explicit(&txn->age,
                              atomic_fetch_add_explicit(&env->ctl->chain.next_age, 1,
                                                        memory_order_relaxed),
                              memory_order_relaxed);
    atomic_store_explicit(&txn->why, 0, memory_order_relaxed);
    ctx->alone_epoch = atp == NULL ? unrecorded_epoch(env) : 0;
    atomic_store_explicit(&txn->reads_unknown,
                          ctx->alone_epoch != 0 && !is_query
                              && (!env->policy->is_serial || ctx->is_in_place),
                          memory_order_relaxed);
    serial = xac_txn_serial(atomic_load_explicit(&txn->word, memory_order_relaxed));
    /* Release: pairs with the acquire of a scan of the slots. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(serial, env->self,
                                       is_query ? XAC_TXN_QUERY : XAC_TXN_PENDING),
                          memory_order_release);
    xac_kill_point("begin");
    rc = enter(env, ctx, atp);
    if (rc == 0)
        rc = xac_view_begin_all(env, ctx);
    xac_debug(xac_txn_assert(ctx));
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE);
        xac_turn_pass(env, ctx->slot);
    } else {
        XAC_PROBE2(begin, ctx->slot, is_query);
    }
    return rc;
}

/* begin -- ret as xac_txn_begin(). */
static int
begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query, const uint64_t *atp)
{
    int rc;

    xac_assert(is_query || atp == NULL);
    xac_assert(atomic_load_explicit(&ctx->txn->may_cut, memory_order_relaxed) == 0);
    atomic_store_explicit(&ctx->txn->tid, xac_tls_tid(), memory_order_relaxed);
    ctx->is_cut = false;
    do
        rc = begin_once(env, ctx, is_query, atp);
    while (rc == EAGAIN);
    if (rc == 0
        && is_query) /* release: pairs with the acquire in cut; what stays is right */
        atomic_store_explicit(&ctx->txn->may_cut, 1, memory_order_release);
    return rc;
}

int
xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query)
{
    return begin(env, ctx, is_query, NULL);
}

int
xac_txn_begin_at(struct xac_env *env, struct xac_ctx *ctx, uint64_t at)
{
    return begin(env, ctx, true, &at);
}

int
xac_txn_await_shown(struct xac_env *env, uint64_t lsn, uint64_t until_ns)
{
    sigset_t signals;
    int rc = ETIMEDOUT;

    xac_assert(xac_lock_none_held());
    xac_assert(xac_env_is_durable(env));
    if (xac_likely(xac_chain_shows(env, lsn)))
        return 0;
    xac_signals_block(&signals);
    xac_wait_limit(xac_txn_left_ms(env, until_ns));
    if (xac_chain_lock_limited(env) == 0) { /* nobody is between log and versions */
        xac_chain_unlock(env);
        rc = 0;
    }
    xac_wait_limit(0);
    xac_signals_restore(&signals);
    return rc == 0
               ? 0
               : xac_err(rc,
                         "%s: the log has LSN %llu, but the process that publishes it "
                         "stands still: queries do not see it yet",
                         env->dir, (unsigned long long)lsn);
}
