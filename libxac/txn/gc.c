/* SPDX-License-Identifier: MIT */
/*
 * gc.c -- garbage collection of versions ("collapse" in Thesis 3.3): see ctree.h.
 *
 * Nobody live looks below the bound, so of each page's versions at or below it the newest
 * is enough.  Which pages have more than one is told by the ring of recent commits; when
 * that does not reach back far enough, by a sweep over all version slots.
 *
 * A sweep goes by parts, one in each run.  What bounds a run: of what recent commits have replaced it
 * frees XAC_GC_WORK versions at most, and leaves the rest to a sweep; of a sweep it looks at and frees
 * XAC_GC_WORK version slots at most, and SWEEP_PACE more for each version slot that the store has grown
 * by since the last run, or in SWEEP_COMMITS of the commits since.  So a sweep is over before the store
 * has grown by half, and a run costs no more than the commits that made it necessary.  A sweep
 * begins only when something can be freed: beside a stopped transaction or a long query nothing is
 * looked at.
 */
#include <config.h>

#include <string.h>

#include "base/clock.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/history.h"
#include "txn/policy.h"
#include "txn/reader_limit.h"

/* Versions that queries have held back, at the least, before a sweep looks for them. */
#define HELD_WORTH 64

/* Version slots of a sweep that one run looks at or frees beside XAC_GC_WORK: see above. */
#define SWEEP_PACE    4u
#define SWEEP_COMMITS 64u

/* Runs of gc without progress after which the dead are looked for. */
#define STUCK_RUNS 4096

/* No transaction's parent. */
#define NO_PARENT UINT64_MAX

static struct xac_chain *
chain_of(const struct xac_env *env)
{
    return &env->ctl->chain;
}

/*
 * floor_of -- smallest parent and start of all live slots, less those with parent `but`; C if
 * there are none.
 */
static uint64_t
floor_of(const struct xac_env *env, uint64_t commit, uint64_t but, uint64_t *startp)
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
        if (parent == but)
            continue;
        start = atomic_load_explicit(&t->start, memory_order_relaxed);
        floor = parent < floor ? parent : floor;
        *startp = start < *startp ? start : *startp;
    }
    xac_assert(floor <= commit);
    return floor;
}

uint64_t
xac_gc_bound(struct xac_env *env, uint64_t *startp)
{
    struct xac_chain *c = chain_of(env);
    uint64_t commit = xac_chain_commit(env);
    uint64_t start1, start2;
    uint64_t first, second, past;

    xac_assert(xac_lock_is_mine(&c->gc));
    xac_history_advance(env);
    past = xac_history_past(env);
    first = floor_of(env, commit, NO_PARENT, &start1);
    first = first < past ? first : past;
    /* The mark only grows: a lower one stored over a higher one would let a begin pass
       that another gc run has overlooked. */
    if (atomic_load_explicit(&c->mark, memory_order_relaxed) < first)
        atomic_store_explicit(&c->mark, first, memory_order_relaxed);
    xac_kill_point("gc mark");
    /* Pairs with the fence in xac_chain_enter. */
    atomic_thread_fence(memory_order_seq_cst);
    second = floor_of(env, commit, NO_PARENT, &start2);
    if (startp != NULL)
        *startp = start1 < start2 ? start1 : start2;
    return first < second ? first : second;
}

/* needs_add -- a query below upper; one too many counts as a transaction. */
static void
needs_add(struct xac_needs *needs, uint64_t point)
{
    uint32_t i = 0;

    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
    while (i < needs->n_points && needs->point[i] > point)
        i++;
    if (i < needs->n_points && needs->point[i] == point)
        return;
    if (needs->n_points == XAC_NEEDS_POINTS) {
        needs->upper = point < needs->upper ? point : needs->upper;
        return;
    }
    for (uint32_t k = needs->n_points++; k > i; k--)
        needs->point[k] = needs->point[k - 1];
    needs->point[i] = point;
    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
}

/*
 * needs_failed -- a failed eager transaction goes on with its parent, which is either the one
 * that it has, or the one that it was about to take (xac_view_parent).
 */
static void
needs_failed(const struct xac_txn *t, struct xac_needs *needs)
{
    /* The fence pairs with the one in xac_view_parent.  Acquire: with the release there. */
    atomic_thread_fence(memory_order_seq_cst);
    needs_add(needs, atomic_load_explicit(&t->next, memory_order_acquire));
    needs_add(needs, atomic_load_explicit(&t->parent, memory_order_relaxed));
}

/* needs_look -- one pass over the slots, less those with parent `but`. */
static void
needs_look(const struct xac_env *env, struct xac_needs *needs, uint64_t but)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_txn *t = xac_txn_at(env, slot);
        /* Acquire: pairs with the release in xac_txn_begin. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);
        uint64_t parent = atomic_load_explicit(&t->parent, memory_order_relaxed);

        if (!xac_txn_is_live(word) || parent == but)
            continue;
        if (xac_txn_state(word) == XAC_TXN_QUERY
            || xac_txn_state(word) == XAC_TXN_SNAPSHOT || env->policy->decides_at_end)
            needs_add(needs, parent);
        else if (xac_txn_state(word) == XAC_TXN_FAILED)
            needs_failed(t, needs);
        else if (parent < needs->upper)
            needs->upper = parent;
    }
}

void
xac_gc_needs(struct xac_env *env, struct xac_needs *out)
{
    struct xac_chain *c = chain_of(env);

    xac_assert(xac_lock_is_mine(&c->gc));
    xac_history_advance(env);
    out->upper = xac_chain_commit(env);
    if (xac_history_past(env) < out->upper)
        out->upper = xac_history_past(env);
    out->n_points = 0;
    needs_look(env, out, NO_PARENT);
    /* As in xac_gc_bound; a beginner with a parent below the mark, which the
       second look does not see, takes another one. */
    if (atomic_load_explicit(&c->mark, memory_order_relaxed) < out->upper)
        atomic_store_explicit(&c->mark, out->upper, memory_order_relaxed);
    xac_kill_point("gc mark");
    /* Pairs with the fence in xac_chain_enter. */
    atomic_thread_fence(memory_order_seq_cst);
    needs_look(env, out, NO_PARENT);
    xac_assert(out->upper <= xac_chain_commit(env));
    xac_assert(atomic_load_explicit(&c->mark, memory_order_relaxed)
               <= xac_chain_commit(env));
}

/* ---- Who holds it back ------------------------------------------------------------- */

/* find_oldest -- who reads the oldest state; false if nobody reads. */
static bool
find_oldest(const struct xac_env *env, struct xac_oldest *out)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t now = xac_clock_coarse_ns();
    bool is_found = false;

    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_txn *t = xac_txn_at(env, slot);
        /* Acquire: pairs with the release in xac_txn_begin. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);
        uint64_t parent = atomic_load_explicit(&t->parent, memory_order_relaxed);
        uint64_t begin = atomic_load_explicit(&t->begin_ns, memory_order_relaxed);
        uint64_t age = begin < now ? now - begin : 0;

        if (!xac_txn_is_live(word) || (is_found && parent > out->parent)
            || (is_found && parent == out->parent && age <= out->age_ns))
            continue;
        is_found = true;
        out->parent = parent;
        out->age_ns = age;
        out->pid = xac_txn_is_nobodys(word)
                       ? 0
                       : xac_participant_at(env, xac_txn_participant(word))->pid;
    }
    return is_found;
}

/* count_held -- versions kept for all who read, less those with parent `but`. */
static uint64_t
count_held(const struct xac_env *env, uint64_t commit, uint64_t but)
{
    struct xac_needs needs = {.upper = commit};
    uint64_t start;

    needs_look(env, &needs, but);
    (void)floor_of(env, commit, but, &start);
    return xac_version_count_held(env, commit, &needs, start);
}

void
xac_gc_oldest(const struct xac_env *env, struct xac_oldest *out)
{
    uint64_t commit = xac_chain_commit(env);
    uint64_t n_others;

    memset(out, 0, sizeof *out);
    if (!find_oldest(env, out) || out->parent >= commit)
        return;
    out->behind = commit - out->parent;
    out->n_held = count_held(env, commit, NO_PARENT);
    n_others = count_held(env, commit, out->parent);
    out->n_held_own = out->n_held > n_others ? out->n_held - n_others : 0;
}

static uint64_t
versions_used(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
}

/* want_sweep -- all version slots are to be looked at, after the sweep under way if there is one. */
XAC_REQUIRES(gc)
static void
want_sweep(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);

    xac_assert(xac_lock_is_mine(&c->gc));
    if (c->sweep_next != 0) {
        c->sweep_again = 1;
        return;
    }
    c->sweep_next = 1;
    c->sweep_settled = c->settled;
    c->sweep_used = versions_used(env);
    c->sweep_commit = xac_chain_commit(env);
    c->held = 0;
}

/* part_of_sweep -- what a run may do for a sweep. */
XAC_REQUIRES(gc)
static uint64_t
part_of_sweep(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    uint64_t used = versions_used(env), commit = xac_chain_commit(env);
    uint64_t grown = used > c->sweep_used ? used - c->sweep_used : 0;
    uint64_t n = commit - c->sweep_commit;

    xac_assert(commit >= c->sweep_commit);
    c->sweep_used = used;
    c->sweep_commit = commit;
    return XAC_GC_WORK
           + SWEEP_PACE * (n > SWEEP_COMMITS ? grown / n * SWEEP_COMMITS : grown);
}

/* sweep -- some of the sweep that is wanted, by what must be kept now. */
XAC_REQUIRES(gc)
static void
sweep(struct xac_env *env, uint64_t work)
{
    struct xac_chain *c = chain_of(env);
    struct xac_needs needs;

    xac_assert(c->sweep_next > 0);
    xac_gc_needs(env, &needs);
    c->sweep_next = xac_version_sweep_some(env, &needs, c->settled, c->sweep_next, work);
    /* Acquire: pairs with the release of the store's growth. */
    if (c->sweep_next
        <= atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire))
        return;
    c->sweep_next = 0;
    c->swept = c->sweep_settled;
    if (c->sweep_again != 0)
        want_sweep(env);
    c->sweep_again = 0;
}

bool
xac_gc_settle(struct xac_env *env, bool is_whole, uint64_t *goalp)
{
    struct xac_chain *c = chain_of(env);
    _Atomic uint64_t *limbop = &env->ctl->versions.limbo;
    uint64_t start;

    xac_assert(xac_lock_is_mine(&c->gc));
    xac_assert(c->settled <= xac_chain_commit(env));
    if (atomic_load_explicit(limbop, memory_order_relaxed) != 0) {
        (void)xac_gc_bound(env, &start);
        if (start > c->settled) {
            c->settled = start;
            want_sweep(env);
        }
    }
    if (*goalp == 0)
        *goalp = c->settled;
    if (c->sweep_next != 0)
        sweep(env, is_whole ? UINT64_MAX : part_of_sweep(env));
    if (c->sweep_next != 0 && is_whole) /* one was under way */
        sweep(env, UINT64_MAX);
    return c->swept >= *goalp || atomic_load_explicit(limbop, memory_order_relaxed) == 0;
}

/* repair -- the lock is held: a dead holder may have cut a list and not freed what it cut. */
XAC_REQUIRES(gc)
static void
repair(struct xac_env *env)
{
    struct xac_needs needs;

    xac_assert(xac_lock_is_mine(&chain_of(env)->gc));
    xac_gc_needs(env, &needs);
    xac_version_sweep_for(env, &needs, chain_of(env)->settled);
    chain_of(env)->held = 0;
    xac_lock_repaired(&chain_of(env)->gc);
}

XAC_UNGUARDED void
xac_gc_lock(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&chain_of(env)->gc));
    if (xac_lock_acquire(&chain_of(env)->gc) == XAC_LOCK_OWNER_DIED)
        repair(env);
}

/* gc_try -- false if another thread has the lock. */
XAC_TRY_ACQUIRE(true, gc)
XAC_UNGUARDED static bool
gc_try(struct xac_env *env)
{
    enum xac_lock_result got;

    xac_assert(!xac_lock_is_mine(&chain_of(env)->gc));
    got = xac_lock_try(&chain_of(env)->gc);
    if (got == XAC_LOCK_OWNER_DIED)
        repair(env);
    return got != XAC_LOCK_BUSY;
}

XAC_UNGUARDED void
xac_gc_unlock(struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&chain_of(env)->gc));
    xac_lock_release(&chain_of(env)->gc);
}

/* thin_commit -- the pages of one commit; false if the ring does not tell them, or *leftp, which falls,
   is 0: some may be left. */
XAC_REQUIRES(gc)
static bool
thin_commit(struct xac_env *env, uint64_t number, const struct xac_needs *needs,
            uint64_t *leftp)
{
    struct xac_wrote wrote;

    xac_assert(number <= needs->upper);
    if (!xac_chain_wrote(env, number, &wrote))
        return false;
    for (uint32_t i = 0; i < wrote.n_pages; i++)
        chain_of(env)->held +=
            xac_version_thin(env, (struct xac_page *)xac_shm_at(&env->shm, wrote.page[i]),
                             needs, leftp);
    xac_assert(wrote.n_pages <= XAC_RING_PAGES);
    return *leftp > 0;
}

/*
 * is_release_due -- have queries ended that held versions back, enough of them to be worth
 * a sweep?
 */
XAC_REQUIRES(gc)
static bool
is_release_due(struct xac_env *env, const struct xac_needs *needs)
{
    struct xac_chain *c = chain_of(env);
    uint64_t oldest =
        needs->n_points > 0 ? needs->point[needs->n_points - 1] : needs->upper;
    bool has_ended = oldest > c->held_point;

    xac_assert(xac_lock_is_mine(&c->gc));
    c->held_point = oldest;
    return has_ended && c->held > HELD_WORTH + versions_used(env) / 8;
}

/* gc_held -- one run; the lock is held. */
XAC_REQUIRES(gc)
static void
gc_held(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    struct xac_needs needs;
    uint64_t left = XAC_GC_WORK, goal = 0;
    bool is_told = true;

    xac_assert(xac_lock_is_mine(&c->gc));
    if (xac_reader_limit_look(env))
        want_sweep(env);
    xac_gc_needs(env, &needs);
    xac_assert(needs.upper <= xac_chain_commit(env));
    xac_chain_prefetch(env, c->gc_done + 1, needs.upper);
    for (uint64_t n = c->gc_done + 1; n <= needs.upper && is_told; n++)
        is_told = thin_commit(env, n, &needs, &left);
    if (!is_told || is_release_due(env, &needs))
        want_sweep(env);
    xac_kill_point("gc");
    if (needs.upper > c->gc_done)
        c->gc_done = needs.upper;
    (void)xac_gc_settle(env, false, &goal);
    xac_assert(c->gc_done <= xac_chain_commit(env));
    xac_debug(xac_chain_assert(env));
    xac_debug(xac_version_assert(env, c->gc_done));
}

bool
xac_gc(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    uint64_t commit = xac_chain_commit(env);
    uint64_t behind;

    xac_assert(!xac_lock_is_mine(&c->gc));
    if (!gc_try(env))
        return false;
    gc_held(env);
    behind = commit > c->gc_done ? commit - c->gc_done : 0;
    xac_gc_unlock(env);
    /* A dead transaction holds the floor until somebody notices. */
    return behind >= STUCK_RUNS && commit % STUCK_RUNS < XAC_GC_EVERY;
}
