/* SPDX-License-Identifier: MIT */
/*
 * policy_optimistic.c -- the optimistic policy (Thesis 3.3, end): no checks while a transaction
 * runs; it reads the snapshot of its begin and is validated at its end.
 *
 * INVARIANT A transaction that publishes as number n has a parent p such that no commit
 *           in (p, n) wrote a page of its set.
 *
 * THE TURN  A transaction that has lost LOST_MAX races in a row takes the turn (turn.h) before it
 *           begins.  Then it acquires the publish lock once: all that had found the turn free
 *           before have published by then, and all that look later wait for the turn
 *           themselves.  So nobody publishes until it ends, and it cannot lose.
 *
 *           A stopped holder does not notice that it has lost the turn.  At its end it is validated
 *           like all others, waits if another one has the turn, and if it loses the race, takes
 *           the turn again for the next attempt.  Validation never relies on the turn, so a turn
 *           that is taken away costs at most one attempt.  So the number of retries for
 *           conflicts is at most LOST_MAX, and one more for each time that the process was
 *           stopped while it had the turn.
 */
#include <config.h>

#include "base/lock.h"
#include "shared/env_state.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/policy.h"
#include "txn/turn.h"

/* Races in a row that a transaction may lose before it takes the turn. */
#define LOST_MAX 4

/* begin -- see policy.h. */
static int
begin(struct xac_env *env, struct xac_ctx *ctx)
{
    sigset_t signals;
    int rc;

    xac_assert(xac_lock_none_held());
    if (ctx->n_lost < LOST_MAX)
        return 0;
    rc = xac_turn_take(env, ctx);
    if (rc != 0)
        return rc;
    xac_signals_block(&signals);
    xac_chain_lock(env);
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    return 0;
}

/* may_publish -- see policy.h. */
static bool
may_publish(const struct xac_env *env, uint64_t slot)
{
    xac_assert(xac_lock_is_mine(&env->ctl->chain.publish));
    return xac_turn_is_free(env) || xac_turn_is_mine(env, slot);
}

/* validate -- see policy.h. */
static bool
validate(const struct xac_env *env, uint64_t slot, uint64_t *pagep)
{
    const struct xac_txn *txn = xac_txn_at(env, slot);
    uint64_t parent = atomic_load_explicit(&txn->parent, memory_order_relaxed);
    struct xac_set_walk walk = xac_set_walk(txn);
    const struct xac_entry *e;

    xac_assert(parent <= xac_chain_commit(env));
    while ((e = xac_set_next(env, &walk)) != NULL) {
        uint64_t newest;

        /* A page whose newest version has gone to its file is older than any parent. */
        (void)xac_version_find(env, xac_entry_page(env, e), UINT64_MAX, &newest);
        if (newest > parent) {
            *pagep = xac_entry_page_id(env, e);
            return false;
        }
    }
    return true;
}

const struct xac_policy xac_policy_optimistic = {
    .name = "optimistic",
    .decides_at_end = true,
    .lost = XAC_CONFLICT_VALIDATION,
    .begin = begin,
    .may_publish = may_publish,
    .validate = validate,
};
