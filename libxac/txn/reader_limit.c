/* SPDX-License-Identifier: MIT */
/*
 * reader_limit.c -- see reader_limit.h.
 *
 * Nothing is counted while the store is smaller than half of the limit.  When it is not, a count walks over
 * all version slots.  The next one follows when the store has grown by a sixteenth of the limit, or after
 * so many commits that each of them pays for a few hundred version slots.
 */
#include <config.h>

#include "txn/reader_limit.h"

#include "base/err.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/history.h"

/* A query is cut off when it holds back so large a part of the limit: until a checkpoint has copied what
   it held back, others write, too. */
#define PART 2

/* The store grows by so small a part of the limit between two counts, if commits are few. */
#define STEP 16

/* Commits between two counts, at the least, and version slots that each of them pays for. */
#define COMMITS_LEAST    64
#define SLOTS_PER_COMMIT 256

/* oldest -- parent and start of the oldest query that may be cut off; false if there is none, or what it
   holds back is held back for another one, too: (3). */
static bool
oldest(const struct xac_env *env, uint64_t *parentp, uint64_t *startp)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t others = xac_history_past(env), least = UINT64_MAX;

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_txn *t = xac_txn_at(env, slot);
        /* Acquire: pairs with the release in xac_txn_begin. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);
        uint64_t parent = atomic_load_explicit(&t->parent, memory_order_relaxed);

        if (!xac_txn_is_live(word))
            continue;
        if (xac_txn_state(word) != XAC_TXN_QUERY
            /* Relaxed: may change until the exchange, which the serial decides. */
            || atomic_load_explicit(&t->may_cut, memory_order_relaxed) == 0) {
            others = parent < others ? parent : others;
        } else if (parent < least) {
            least = parent;
            *startp = atomic_load_explicit(&t->start, memory_order_relaxed);
        }
    }
    *parentp = least;
    return least < others;
}

/* cut -- all queries with that parent; ret how many. */
static uint64_t
cut(struct xac_env *env, uint64_t parent)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t n_cut = 0;

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    for (uint64_t slot = 0; slot < n; slot++) {
        struct xac_txn *t = xac_txn_at(env, slot);
        /* Acquire: pairs with the release in xac_txn_begin. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);

        if (xac_txn_state(word) != XAC_TXN_QUERY
            || atomic_load_explicit(&t->parent, memory_order_relaxed) != parent
            /* Acquire: pairs with the release in xac_txn_begin; (1). */
            || atomic_load_explicit(&t->may_cut, memory_order_acquire) == 0)
            continue;
        /* Release: pairs with the fence in xac_txn_is_cut; (2). */
        n_cut += atomic_compare_exchange_strong_explicit(
            &t->word, &word,
            xac_txn_word(xac_txn_serial(word), xac_txn_participant(word), XAC_TXN_CUT),
            memory_order_acq_rel, memory_order_relaxed);
        xac_kill_point("cut off");
    }
    return n_cut;
}

/* is_count_due -- is it worth while to count again? */
XAC_REQUIRES(gc)
static bool
is_count_due(struct xac_env *env, uint64_t used, uint64_t most)
{
    struct xac_chain *c = &env->ctl->chain;
    uint64_t commit = xac_chain_commit(env);
    uint64_t wait = used / SLOTS_PER_COMMIT;

    xac_assert(most > 0);
    xac_assert(c->limit_commit <= commit);
    if (used < most / PART)
        return false;
    wait = wait < COMMITS_LEAST ? COMMITS_LEAST : wait;
    if (used < c->limit_used + most / STEP && commit < c->limit_commit + wait)
        return false;
    c->limit_used = used;
    c->limit_commit = commit;
    return true;
}

bool
xac_reader_limit_look(struct xac_env *env)
{
    /* Relaxed: an option, which may change at any time. */
    uint64_t limit = atomic_load_explicit(&env->ctl->reader_limit, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
    uint64_t most = limit >> env->page_shift;
    struct xac_reader_held held = {.n = 0};
    uint64_t n_cut;

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    if (xac_likely(limit == 0) || !is_count_due(env, used, most)
        || !oldest(env, &held.parent, &held.start))
        return false;
    xac_version_count_back(env, xac_chain_commit(env), &held, 1);
    if (held.n < most / PART)
        return false;
    xac_assert(held.parent < xac_chain_commit(env));
    n_cut = cut(env, held.parent);
    xac_count(&env->ctl->counters.queries_cut, n_cut);
    env->ctl->chain.limit_used = env->ctl->chain.limit_commit = 0; /* the next one */
    xac_assert(used > 0);
    return n_cut > 0;
}
