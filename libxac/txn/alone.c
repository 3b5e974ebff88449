/* SPDX-License-Identifier: MIT */
/*
 * alone.c -- see alone.h.
 */
#include <config.h>

#include "txn/alone.h"

#include "shared/registry.h"
#include "txn/ctree.h"
#include "txn/slot.h"

/* The word: epoch above, participant + 1 below, 0 if nobody is alone. */
/* set_alone -- somebody, or nobody (0), is alone; gate held. */
static void
set_alone(struct xac_env *env, uint64_t who)
{
    uint64_t old = atomic_load_explicit(&env->ctl->alone, memory_order_relaxed);

    xac_assert(who <= XAC_ALONE_MASK);
    /* Relaxed: see xac_alone_epoch. */
    atomic_store_explicit(&env->ctl->alone,
                          ((old >> XAC_ALONE_BITS) + 1) << XAC_ALONE_BITS | who,
                          memory_order_relaxed);
}

/* revoke_slot -- one transaction that may have read anything. */
static void
revoke_slot(struct xac_env *env, uint64_t slot)
{
    struct xac_txn *t = xac_txn_at(env, slot);
    /* Acquire: pairs with the release in xac_txn_begin; reads_unknown is there. */
    uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);

    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    if (!xac_txn_is_live(word)
        || atomic_load_explicit(&t->reads_unknown, memory_order_relaxed) == 0)
        return;
    if (xac_txn_fail(t, word, XAC_CONFLICT_REVOKED, env->pid, 0))
        return;
    /* COMMITTING: published if that can be done at once, else taken back; it is alive, so
       what it owns is not ours to rebuild. */
    xac_chain_populate(env);
    if (xac_chain_publish(env, slot, xac_txn_serial(word)) != XAC_PUBLISH_DONE)
        (void)xac_chain_take_back(env, slot, xac_txn_serial(word));
}

void
xac_alone_revoke(struct xac_env *env)
{
    uint64_t n;

    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    set_alone(env, 0);
    /* Pairs with the fence in xac_chain_enter; see alone.h. */
    atomic_thread_fence(memory_order_seq_cst);
    n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire); /* pairs with
                                                                   xac_txn_claim */
    for (uint64_t slot = 0; slot < n; slot++)
        revoke_slot(env, slot);
}

void
xac_alone_offer(struct xac_env *env, bool we_leave)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint32_t found = 0, who = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        if (atomic_load_explicit(&p->state, memory_order_relaxed) != XAC_PART_ATTACHED
            || (we_leave && i == env->self))
            continue;
        found += atomic_load_explicit(&p->n_contexts, memory_order_relaxed);
        who = i;
    }
    if (found == 1)
        set_alone(env, who + 1);
}
