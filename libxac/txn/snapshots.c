/* SPDX-License-Identifier: MIT */
/*
 * snapshots.c -- see snapshots.h.
 */
#include <config.h>

#include "txn/snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "shared/registry.h"
#include "txn/ctree.h"
#include "txn/history.h"
#include "txn/slot.h"

XAC_ACQUIRE(reap)
XAC_UNGUARDED static void
lock(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->reap));
    if (xac_lock_acquire(&env->ctl->reap) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->reap); /* every step can be repeated */
}

XAC_RELEASE(reap)
XAC_UNGUARDED static void
unlock(struct xac_env *env)
{
    xac_lock_release(&env->ctl->reap);
}

/* word_of -- acquire: pairs with the release in hold(); what the snapshot is, is there. */
static uint64_t
word_of(const struct xac_txn *t)
{
    return atomic_load_explicit(&t->word, memory_order_acquire);
}

/* is_over -- has it a time to live, and is that over? */
static bool
is_over(const struct xac_txn *t)
{
    uint64_t expires = atomic_load_explicit(&t->expires_ns, memory_order_relaxed);

    return expires != 0 && xac_clock_coarse_ns() >= expires;
}

/* set_name -- the caller has checked its length. */
static void
set_name(struct xac_txn *t, const char *name)
{
    char bytes[XAC_SNAPSHOT_NAME_BYTES] = {0};

    xac_assert(strlen(name) < sizeof bytes);
    memcpy(bytes, name, strlen(name));
    for (unsigned i = 0; i < XAC_SNAPSHOT_NAME_WORDS; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * (size_t)i, sizeof word);
        atomic_store_explicit(&t->name[i], word, memory_order_relaxed);
    }
}

/* find -- the slot of a snapshot that has not expired, and its word; NULL: there is none. */
static struct xac_txn *
find(const struct xac_env *env, uint64_t id, uint64_t *wordp)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    xac_assert(wordp != NULL);
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *t = xac_txn_at(env, slot);

        *wordp = word_of(t);
        if (xac_txn_state(*wordp) == XAC_TXN_SNAPSHOT
            && atomic_load_explicit(&t->snapshot, memory_order_relaxed) == id)
            return is_over(t) ? NULL : t;
    }
    return NULL;
}

/* none -- the error for an id that leads nowhere. */
static int
none(uint64_t id)
{
    return xac_err(XAC_ENOSTATE,
                   "snapshot %" PRIu64
                   " was released, has expired, was held by a process "
                   "that is gone, or never was",
                   id);
}

/* ---- Taking one -------------------------------------------------------------------------- */

/* hold -- a slot that was claimed becomes a snapshot: of what a query sees, or of the present. */
static void
hold(struct xac_env *env, struct xac_txn *t, const struct xac_txn *of)
{
    uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

    xac_assert(xac_txn_may_become(xac_txn_state(word), XAC_TXN_SNAPSHOT));
    xac_assert(xac_txn_participant(word) == env->self);
    xac_assert(of == NULL || xac_txn_is_live(word_of(of))
               || xac_txn_state(word_of(of)) == XAC_TXN_CUT);
    if (of != NULL) {
        uint64_t parent = atomic_load_explicit(&of->parent, memory_order_relaxed);

        atomic_store_explicit(&t->parent, parent, memory_order_relaxed);
        atomic_store_explicit(&t->next, parent, memory_order_relaxed);
        atomic_store_explicit(&t->start,
                              atomic_load_explicit(&of->start, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&t->begin_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    }
    /* Release: pairs with the acquire of a scan of the slots.  The query is open until we return, so
       a run of gc that does not see this yet has seen the query. */
    atomic_store_explicit(&t->word,
                          xac_txn_word(xac_txn_serial(word), env->self, XAC_TXN_SNAPSHOT),
                          memory_order_release);
    xac_kill_point("snapshot word");
    if (of == NULL)
        xac_chain_enter(env, t);
    /* Relaxed: before the id of the snapshot, or its name, is known. */
    atomic_store_explicit(&t->end,
                          xac_chain_lsn(env, atomic_load_explicit(&t->parent,
                                                                  memory_order_relaxed)),
                          memory_order_relaxed);
    xac_assert(atomic_load_explicit(&t->start, memory_order_relaxed)
               <= atomic_load_explicit(&t->parent, memory_order_relaxed));
    xac_kill_point("snapshot held");
}

/* is_cut_since -- has the query of which a snapshot was taken been cut off, maybe before the snapshot held its
   state? */
static bool
is_cut_since(const struct xac_txn *of)
{
    /* Pairs with the fence in xac_gc_bound and xac_gc_needs, which lies behind the exchange to CUT: we
       see that, or gc sees the snapshot (reader_limit.h (4)). */
    atomic_thread_fence(memory_order_seq_cst);
    return xac_txn_state(word_of(of)) == XAC_TXN_CUT;
}

int
xac_snapshots_take_at(struct xac_env *env, uint64_t state, uint64_t *idp,
                      uint64_t *commitp)
{
    struct xac_txn *t;
    uint64_t word;
    int rc = xac_snapshots_take(env, NULL, idp);

    if (rc != 0)
        return rc;
    t = find(env, *idp, &word);
    xac_assert(t != NULL); /* nobody else knows the id */
    xac_assert(!xac_txn_is_nobodys(word));
    /* It holds the present state until it holds the other one. */
    rc = xac_snapshots_enter(env, t, state);
    *commitp = atomic_load_explicit(&t->parent, memory_order_relaxed);
    if (rc != 0)
        (void)xac_snapshots_release(env, *idp);
    return rc;
}

int
xac_snapshots_take(struct xac_env *env, const struct xac_txn *of, uint64_t *idp)
{
    uint64_t slot = xac_txn_claim(env, env->self);
    struct xac_txn *t;
    uint64_t id;

    if (slot == UINT64_MAX)
        return xac_err(xac_shm_lacks(&env->shm),
                       "control region %s: no room for a snapshot", env->region);
    xac_kill_point("snapshot slot");
    t = xac_txn_at(env, slot);
    xac_assert(atomic_load_explicit(&t->n_entries, memory_order_relaxed) == 0);
    id = atomic_fetch_add_explicit(&env->ctl->next_snapshot, 1, memory_order_relaxed);
    atomic_store_explicit(&t->snapshot, id, memory_order_relaxed);
    atomic_store_explicit(&t->expires_ns, 0, memory_order_relaxed);
    set_name(t, "");
    hold(env, t, of);
    if (of != NULL && is_cut_since(of)) {
        (void)xac_snapshots_release(env, id);
        return xac_err(XAC_ECUTOFF,
                       "xSnapshot: the state that the query saw is not kept any more");
    }
    xac_assert(atomic_load_explicit(&t->parent, memory_order_relaxed)
               <= xac_chain_commit(env));
    *idp = id;
    return 0;
}

/* ---- Using one --------------------------------------------------------------------------- */

int
xac_snapshots_enter(struct xac_env *env, struct xac_txn *txn, uint64_t id)
{
    uint64_t word, parent;
    const struct xac_txn *t;

    if (xac_state_kind(id) == XAC_STATE_COMMIT || xac_state_kind(id) == XAC_STATE_TIME)
        return xac_history_enter(env, txn, id);
    t = find(env, id, &word);

    xac_assert(xac_txn_is_live(atomic_load_explicit(&txn->word, memory_order_relaxed)));
    if (t == NULL)
        return none(id);
    parent = atomic_load_explicit(&t->parent, memory_order_relaxed);
    xac_kill_point("snapshot seen");
    atomic_store_explicit(&txn->begin_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&txn->parent, parent, memory_order_relaxed);
    atomic_store_explicit(&txn->next, parent, memory_order_relaxed);
    atomic_store_explicit(&txn->start, parent, memory_order_relaxed);
    /* What it holds is durable when the log is, up to here.  Relaxed: of use only if the word is still the same below. */
    atomic_store_explicit(&txn->end, atomic_load_explicit(&t->end, memory_order_relaxed),
                          memory_order_relaxed);
    /* Pairs with the fence in xac_gc_bound and xac_gc_needs: see invariant (2). */
    atomic_thread_fence(memory_order_seq_cst);
    if (word_of(t) != word)
        return none(id);
    xac_assert(parent <= xac_chain_commit(env));
    return 0;
}

bool
xac_snapshots_any(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    for (uint64_t slot = 0; slot < n; slot++) {
        if (xac_txn_state(word_of(xac_txn_at(env, slot))) == XAC_TXN_SNAPSHOT)
            return true;
    }
    return false;
}

/* ---- Naming and releasing ------------------------------------------------------------------ */

/* set_word -- another owner, or FREE; what was stored before belongs to it. */
XAC_REQUIRES(reap)
static void
set_word(struct xac_env *env, struct xac_txn *t, uint64_t word, uint32_t participant,
         enum xac_txn_state state)
{
    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    xac_assert(xac_txn_state(word) == XAC_TXN_SNAPSHOT);
    xac_assert(atomic_load_explicit(&t->word, memory_order_relaxed) == word);
    xac_assert(participant != XAC_NOBODY /* (3) */
               || atomic_load_explicit(&t->expires_ns, memory_order_relaxed) != 0);
    /* Release: pairs with the acquire of a claim or a scan of the slot. */
    atomic_store_explicit(&t->word,
                          xac_txn_word(xac_txn_serial(word) + (state == XAC_TXN_FREE),
                                       participant, state),
                          memory_order_release);
}

int
xac_snapshots_release(struct xac_env *env, uint64_t id)
{
    struct xac_txn *t;
    sigset_t signals;
    uint64_t word;

    xac_signals_block(&signals);
    lock(env);
    t = find(env, id, &word);
    if (t != NULL)
        set_word(env, t, word, xac_txn_participant(word), XAC_TXN_FREE);
    xac_kill_point("snapshot released");
    unlock(env);
    xac_signals_restore(&signals);
    return t != NULL ? 0 : none(id);
}

/* named -- the slot of nobody's snapshot of that name, which has not expired; NULL: none. */
static struct xac_txn *
named(const struct xac_env *env, const char *name)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    char is[XAC_SNAPSHOT_NAME_BYTES];

    xac_assert(*name != '\0');
    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *t = xac_txn_at(env, slot);

        if (!xac_txn_is_nobodys(word_of(t)))
            continue;
        xac_txn_name(t, is);
        if (strcmp(is, name) == 0 && !is_over(t))
            return t;
    }
    return NULL;
}

/* keep -- ret as xac_snapshots_keep. */
XAC_REQUIRES(reap)
static int
keep(struct xac_env *env, uint64_t id, const char *name, uint64_t ns)
{
    const struct xac_txn *other = named(env, name);
    uint64_t word;
    struct xac_txn *t = find(env, id, &word);

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    xac_assert(ns > 0);
    if (t == NULL)
        return none(id);
    if (other != NULL && other != t)
        return xac_err(EEXIST, "xSnapshotKeep: another snapshot has the name %s", name);
    if (other == NULL && xac_txn_is_nobodys(word))
        return xac_err(EEXIST,
                       "xSnapshotKeep: snapshot %" PRIu64 " has another name than %s", id,
                       name);
    if (other == NULL)
        set_name(t, name);
    xac_kill_point("snapshot named");
    atomic_store_explicit(&t->expires_ns, xac_clock_coarse_ns() + ns,
                          memory_order_relaxed);
    set_word(env, t, word, XAC_NOBODY, XAC_TXN_SNAPSHOT);
    xac_kill_point("snapshot kept");
    return 0;
}

int
xac_snapshots_keep(struct xac_env *env, uint64_t id, const char *name, uint64_t ns)
{
    sigset_t signals;
    int rc;

    xac_assert(*name != '\0');
    xac_assert(strlen(name) < XAC_SNAPSHOT_NAME_BYTES);
    xac_signals_block(&signals);
    lock(env);
    rc = keep(env, id, name, ns);
    unlock(env);
    xac_signals_restore(&signals);
    return rc;
}

int
xac_snapshots_find(struct xac_env *env, const char *name, uint64_t *idp)
{
    const struct xac_txn *t;
    uint64_t id = 0;
    sigset_t signals;

    xac_assert(strlen(name) < XAC_SNAPSHOT_NAME_BYTES);
    xac_signals_block(&signals);
    lock(env);
    t = named(env, name);
    if (t != NULL)
        id = atomic_load_explicit(&t->snapshot, memory_order_relaxed);
    unlock(env);
    xac_signals_restore(&signals);
    if (t == NULL)
        return xac_err(XAC_ENOSTATE, "xSnapshotFind: no snapshot has the name %s", name);
    *idp = id;
    return 0;
}

void
xac_snapshots_expire(struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    xac_assert(xac_lock_is_mine(&env->ctl->reap));
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *t = xac_txn_at(env, slot);
        uint64_t word = word_of(t);

        if (xac_txn_is_nobodys(word) && is_over(t))
            set_word(env, t, word, XAC_NOBODY, XAC_TXN_FREE);
    }
}

void
xac_snapshots_leave(struct xac_env *env, bool is_last)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    xac_assert(env->self < XAC_NOBODY);
    lock(env);
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *t = xac_txn_at(env, slot);
        uint64_t word = word_of(t);

        if (xac_txn_state(word) == XAC_TXN_SNAPSHOT
            && (is_last || xac_txn_participant(word) == env->self))
            set_word(env, t, word, xac_txn_participant(word), XAC_TXN_FREE);
    }
    unlock(env);
}
