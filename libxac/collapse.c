/* SPDX-License-Identifier: MIT */
/*
 * collapse.c -- garbage collection of versions (Thesis 3.3, "collapse"): see ctree.h.
 *
 * Nobody live looks below the bound, so of each page's versions at or below it the newest
 * is enough.  Which pages have more than one is told by the ring of recent commits; when
 * that does not reach back far enough, by a sweep over all frames.
 */
#include <config.h>

#include "clean.h"
#include "ctree.h"
#include "env.h"

/* Commits that may pile up before somebody collapses. */
#define COLLAPSE_EVERY 8

/* Collapses without progress after which the dead are looked for. */
#define STUCK_COLLAPSES 4096

static struct xac_chain *
chain_of(const struct xac_env *env)
{
    return &env->ctl->chain;
}

/* floor_of -- smallest parent and start of all live slots; C if there are none. */
static uint64_t
floor_of(const struct xac_env *env, uint64_t commit, uint64_t *startp)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t floor = commit;

    *startp = commit;
    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_txn *t = xac_txn_at(env, slot);
        /* Acquire: pairs with the release in xac_txn_begin. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);
        uint64_t parent, start;

        if (!xac_txn_is_live(word))
            continue;
        parent = atomic_load_explicit(&t->parent, memory_order_relaxed);
        start = atomic_load_explicit(&t->start, memory_order_relaxed);
        floor = parent < floor ? parent : floor;
        *startp = start < *startp ? start : *startp;
    }
    return floor;
}

uint64_t
xac_collapse_bound(struct xac_env *env, uint64_t *startp)
{
    struct xac_chain *c = chain_of(env);
    uint64_t commit = xac_chain_commit(env);
    uint64_t start1, start2;
    uint64_t first = floor_of(env, commit, &start1);
    uint64_t second;

    /* The mark only grows: a lower one stored over a higher one would let a begin pass
       that another collapser has overlooked. */
    if (atomic_load_explicit(&c->mark, memory_order_relaxed) < first)
        atomic_store_explicit(&c->mark, first, memory_order_relaxed);
    xac_kill_point("collapse mark");
    /* Pairs with the fence in xac_chain_enter. */
    atomic_thread_fence(memory_order_seq_cst);
    second = floor_of(env, commit, &start2);
    if (startp != NULL)
        *startp = start1 < start2 ? start1 : start2;
    return first < second ? first : second;
}

void
xac_collapse_settle(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    uint64_t start;
    uint64_t bound;

    if (atomic_load_explicit(&env->ctl->versions.limbo, memory_order_relaxed) == 0)
        return;
    bound = xac_collapse_bound(env, &start);
    if (start <= c->settled)
        return;
    c->settled = start;
    xac_version_sweep(env, bound, start);
    c->collapsed = bound > c->collapsed ? bound : c->collapsed;
}

void
xac_collapse_lock(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);

    if (xac_lock_acquire(&c->collapse) == XAC_LOCK_OK)
        return;
    /* The dead holder may have cut a list and not freed what it cut. */
    xac_version_sweep(env, xac_collapse_bound(env, NULL), c->settled);
    xac_lock_repaired(&c->collapse);
}

void
xac_collapse_unlock(struct xac_env *env)
{
    xac_lock_release(&chain_of(env)->collapse);
}

/* cut_commit -- the pages of one commit; false if the ring does not tell them. */
static bool
cut_commit(struct xac_env *env, uint64_t number, uint64_t bound)
{
    struct xac_ring_entry *r = &chain_of(env)->ring[number % XAC_RING_ENTRIES];
    uint64_t pages[XAC_RING_PAGES];
    uint32_t n;

    /* Acquire: pairs with the release in ring_end. */
    if (atomic_load_explicit(&r->number, memory_order_acquire) != number)
        return false;
    n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);
    if (r->is_move)
        return true;
    if (n == XAC_RING_ALL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        pages[i] = atomic_load_explicit(&r->page[i], memory_order_relaxed);
    /* Pairs with the fence in ring_begin. */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&r->number, memory_order_relaxed) != number)
        return false;
    for (uint32_t i = 0; i < n; i++)
        xac_version_cut(env, (struct xac_page *)xac_shm_at(&env->shm, pages[i]), bound);
    return true;
}

/* collapse_held -- one collapse; the lock is held. */
static void
collapse_held(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    uint64_t bound = xac_collapse_bound(env, NULL);
    bool is_told = true;

    xac_assert(bound <= xac_chain_commit(env));
    for (uint64_t n = c->collapsed + 1; n <= bound && is_told; n++)
        is_told = cut_commit(env, n, bound);
    if (!is_told)
        xac_version_sweep(env, bound, c->settled);
    xac_kill_point("collapse");
    if (bound > c->collapsed)
        c->collapsed = bound;
    xac_collapse_settle(env);
}

void
xac_collapse(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    uint64_t commit = xac_chain_commit(env);
    uint64_t behind;
    enum xac_lock_result r;

    if (commit % COLLAPSE_EVERY != 0)
        return;
    r = xac_lock_try(&c->collapse);
    if (r == XAC_LOCK_BUSY)
        return;
    if (r == XAC_LOCK_OWNER_DIED) {
        xac_version_sweep(env, xac_collapse_bound(env, NULL), c->settled);
        xac_lock_repaired(&c->collapse);
    }
    collapse_held(env);
    behind = commit > c->collapsed ? commit - c->collapsed : 0;
    xac_collapse_unlock(env);
    /* A dead transaction holds the floor until somebody notices. */
    if (behind >= STUCK_COLLAPSES && commit % STUCK_COLLAPSES < COLLAPSE_EVERY)
        xac_clean_dead(env);
}
