/* SPDX-License-Identifier: MIT */
/*
 * optimistic.c -- see optimistic.h.
 */
#include <config.h>

#include "txn/optimistic.h"

#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/policy.h"

/* Rounds of waiting between two looks at whether the holder of the token is alive. */
#define ROUNDS_BEFORE_CHECK 8
#define ROUND_NS            50000

/* validate -- see policy.h. */
static bool
validate(const struct xac_env *env, const struct xac_txn *txn, uint64_t *pagep)
{
    uint64_t parent = atomic_load_explicit(&txn->parent, memory_order_relaxed);
    struct xac_set_walk walk = xac_set_walk(txn);
    const struct xac_entry *e;

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

/* ---- The token ---------------------------------------------------------------------- */

/* token_is_open -- may this slot publish now?  see policy.h. */
static bool
token_is_open(const struct xac_env *env, uint64_t slot)
{
    /* Acquire: pairs with the release in xac_token_give. */
    uint64_t holder = atomic_load_explicit(&env->ctl->token, memory_order_acquire);

    return holder == 0 || holder == slot + 1;
}

const struct xac_policy xac_policy_optimistic = {
    .name = "optimistic",
    .is_optimistic = true,
    .validate = validate,
    .may_publish = token_is_open,
};

/* clear_if_lapsed -- take the token from a holder that is dead or stopped. */
static void
clear_if_lapsed(struct xac_env *env, uint64_t holder)
{
    uint64_t word =
        atomic_load_explicit(&xac_txn_at(env, holder - 1)->word, memory_order_relaxed);

    xac_assert(holder != 0);
    xac_assert(holder
               <= atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    if (xac_txn_state(word) == XAC_TXN_FREE
        || xac_registry_state(env, xac_txn_participant(word)) != XAC_PROCESS_RUNNING)
        /* Release: pairs with the acquire in xac_token_take. */
        (void)atomic_compare_exchange_strong_explicit(&env->ctl->token, &holder, 0,
                                                      memory_order_acq_rel,
                                                      memory_order_relaxed);
}

/* wait_a_while -- the n-th round of waiting for a holder. */
static void
wait_a_while(struct xac_env *env, unsigned n)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    if (n % ROUNDS_BEFORE_CHECK == 0) {
        uint64_t holder = atomic_load_explicit(&env->ctl->token, memory_order_relaxed);

        if (holder != 0)
            clear_if_lapsed(env, holder);
    }
    xac_sleep_ns(ROUND_NS);
}

void
xac_token_wait(struct xac_env *env, uint64_t slot)
{
    for (unsigned n = 1; !token_is_open(env, slot) && xac_wait_slice(1) != 0; n++)
        wait_a_while(env, n);
}

void
xac_token_take(struct xac_env *env, struct xac_ctx *ctx)
{
    sigset_t signals;
    uint64_t none = 0;

    xac_assert(!ctx->has_token);
    /* Acquire: pairs with the release in xac_token_give. */
    for (unsigned n = 1;
         !atomic_compare_exchange_strong_explicit(&env->ctl->token, &none, ctx->slot + 1,
                                                  memory_order_acq_rel,
                                                  memory_order_relaxed);
         n++) {
        wait_a_while(env, n);
        none = 0;
    }
    ctx->has_token = true;
    xac_signals_block(&signals);
    xac_chain_lock(env);
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    xac_assert(ctx->has_token);
}

void
xac_token_give(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t mine = ctx->slot + 1;

    if (!ctx->has_token)
        return;
    ctx->has_token = false;
    /* If it has lapsed, it may be another's by now.
       Release: pairs with the acquire in xac_token_take. */
    (void)atomic_compare_exchange_strong_explicit(&env->ctl->token, &mine, 0,
                                                  memory_order_release,
                                                  memory_order_relaxed);
    xac_assert(!ctx->has_token);
}
