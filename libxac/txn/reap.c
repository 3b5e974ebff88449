/* SPDX-License-Identifier: MIT */
/*
 * reap.c -- see reap.h.
 */
#include <config.h>

#include "txn/reap.h"

#include "base/lock.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/commit_block.h"
#include "txn/ctree.h"
#include "txn/ctx.h"
#include "txn/drop.h"
#include "txn/in_place.h"
#include "txn/policy.h"
#include "txn/snapshots.h"

/* Participants that xac_reap_some() looks at. */
#define CLEAN_SOME 64

void
xac_reap_finish(struct xac_env *env, uint64_t slot, uint64_t serial)
{
    struct xac_txn *txn = xac_txn_at(env, slot);

    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    xac_chain_populate(env);
    for (;;) {
        enum xac_publish_result r = xac_chain_publish(env, slot, serial);

        if (r == XAC_PUBLISH_DONE || r == XAC_PUBLISH_GONE || r == XAC_PUBLISH_TIMEOUT)
            return;
        if (r == XAC_PUBLISH_REBUILD) {
            if (xac_commit_block_rebuild(env, slot) != 0)
                return;
            continue;
        }
        if (xac_commit_block_make_room(env, txn) != 0)
            return; /* stays COMMITTING; the next one who meets it tries again */
    }
}

/* reap_slot -- finish or take back one transaction of a dead participant. */
static void
reap_slot(struct xac_env *env, uint64_t slot)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    /* Acquire: pairs with the exchanges on the word. */
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_acquire);
    struct xac_set_walk walk;
    struct xac_entry *e;

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    if (xac_txn_state(word) == XAC_TXN_COMMITTING) {
        xac_reap_finish(env, slot, xac_txn_serial(word));
        /* Acquire: pairs with the exchanges on the word. */
        word = atomic_load_explicit(&txn->word, memory_order_acquire);
        if (xac_txn_state(word) == XAC_TXN_COMMITTING)
            return;
    }
    xac_kill_point("reap finished");
    for (walk = xac_set_walk(txn); (e = xac_set_next(env, &walk)) != NULL;)
        xac_in_place_lose(env, e);
    xac_version_release(env, slot); /* version slots taken but not yet in an entry, too */
    for (walk = xac_set_walk(txn); (e = xac_set_next(env, &walk)) != NULL;)
        e->vslot = e->image = 0; /* freed just now, or published */
    txn->is_retry = 0;
    xac_kill_point("reap slot");
    xac_txn_drop(env, slot, xac_ctx_mine(env)->slot, XAC_TXN_FREE);
    xac_kill_point("reap dropped");
}

/* reap_participant -- all slots of a dead participant, then its entry. */
static void
reap_participant(struct xac_env *env, uint32_t index)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    bool is_clean = true;

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    xac_assert(index != env->self);
    /* What it was publishing names a slot, perhaps one that is PUBLISHED already: that is
       finished before anybody can use the slot again. */
    if (xac_chain_lock_limited(env) != 0)
        return;
    xac_chain_unlock(env);
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *txn = xac_txn_at(env, slot);
        uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);

        if (xac_txn_state(word) == XAC_TXN_FREE || xac_txn_participant(word) != index)
            continue;
        reap_slot(env, slot);
        word = atomic_load_explicit(&txn->word, memory_order_relaxed);
        is_clean = is_clean && xac_txn_state(word) == XAC_TXN_FREE;
    }
    if (!is_clean)
        return;
    xac_outofcore_reap(env, index);
    xac_registry_drop_all(env, index);
    xac_assert(xac_participant_at(env, index)->holds == 0);
    xac_count(&env->ctl->counters.dead_cleaned, 1);
    /* Release: pairs with the acquire in xac_registry_alive. */
    atomic_store_explicit(&xac_participant_at(env, index)->state, XAC_PART_FREE,
                          memory_order_release);
}

/* Commits behind which a stopped transaction may stay before it is failed. */
#define STOPPED_BEHIND 4096

/*
 * release_floor -- fail a pending transaction that keeps everything since its parent; once
 * it has failed, only what it can see is kept (xac_gc_needs).
 */
static void
release_floor(struct xac_env *env, struct xac_txn *txn, uint64_t word)
{
    uint64_t parent = atomic_load_explicit(&txn->parent, memory_order_relaxed);

    xac_assert(xac_txn_state(word) == XAC_TXN_PENDING);
    if (!env->policy->decides_at_end && parent + STOPPED_BEHIND < xac_chain_commit(env))
        (void)xac_txn_fail(txn, word, XAC_CONFLICT_REVOKED, env->pid, 0);
}

/* settle_commit -- of a process that is stopped: published at once, or taken back. */
static void
settle_commit(struct xac_env *env, uint64_t slot, uint64_t serial)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    xac_chain_populate(env);
    if (xac_chain_publish(env, slot, serial) != XAC_PUBLISH_DONE)
        (void)xac_chain_take_back(env, slot, serial);
}

/*
 * help_stopped -- settle the commits of a stopped participant, so that nobody waits for
 * them, and have it hold back no versions without end.  It may go on at any instant, so only
 * what the publish lock guards, or an exchange, is touched.
 */
static void
help_stopped(struct xac_env *env, uint32_t index)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *txn = xac_txn_at(env, slot);
        /* Acquire: pairs with the exchange to COMMITTING. */
        uint64_t word = atomic_load_explicit(&txn->word, memory_order_acquire);

        if (xac_txn_participant(word) != index)
            continue;
        if (xac_txn_state(word) == XAC_TXN_PENDING)
            release_floor(env, txn, word);
        else if (xac_txn_state(word) == XAC_TXN_COMMITTING)
            settle_commit(env, slot, xac_txn_serial(word));
    }
}

/* look_at -- clean up after a participant that is dead, help one that is stopped. */
static void
look_at(struct xac_env *env, uint32_t index)
{
    enum xac_process_state state;

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    if (atomic_load_explicit(&xac_participant_at(env, index)->state, memory_order_relaxed)
        != XAC_PART_ATTACHED)
        return;
    state = xac_registry_state(env, index);
    if (state == XAC_PROCESS_DEAD)
        reap_participant(env, index);
    else if (state == XAC_PROCESS_STOPPED)
        help_stopped(env, index);
}

/* reap_lock -- false if the thread's limit is over (lock.h). */
XAC_TRY_ACQUIRE(true, reap)
XAC_UNGUARDED static bool
reap_lock(struct xac_env *env)
{
    enum xac_lock_result got = xac_lock_acquire_limited(&env->ctl->reap);

    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->reap); /* every step can be repeated */
    return got != XAC_LOCK_TIMED_OUT;
}

XAC_RELEASE(reap)
XAC_UNGUARDED static void
reap_unlock(struct xac_env *env)
{
    xac_lock_release(&env->ctl->reap);
}

/* look_on -- at the next participants in turn, at most `most`. */
static void
look_on(struct xac_env *env, uint64_t most)
{
    uint64_t count =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint64_t n = most < count ? most : count;

    if (!reap_lock(env))
        return;
    for (uint64_t k = 0; k < n; k++)
        look_at(env, (uint32_t)((env->ctl->reap_next + k) % count));
    xac_snapshots_expire(env);
    if (n < count)
        env->ctl->reap_next = (uint32_t)((env->ctl->reap_next + n) % count);
    xac_assert(env->ctl->reap_next < count || count == 0);
    reap_unlock(env);
}

void
xac_reap_dead(struct xac_env *env)
{
    look_on(env, UINT64_MAX);
}

void
xac_reap_some(struct xac_env *env)
{
    look_on(env, CLEAN_SOME);
}
