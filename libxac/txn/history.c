/* SPDX-License-Identifier: MIT */
/*
 * history.c -- see history.h.
 */
#include <config.h>

#include "txn/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/version.h"
#include "txn/ctree.h"

#define NS_PER_S UINT64_C(1000000000)

/* Of the value of XAC_OPT_HISTORY, and of a state: what it counts, and how many. */
#define UNIT_SHIFT 62
#define VALUE_MASK ((UINT64_C(1) << UNIT_SHIFT) - 1)

enum {
    SECONDS = 0,
    COMMITS = 1,
    BYTES = 2
};

/* window -- of the option, on its scale. */
static uint64_t
window(uint64_t option)
{
    uint64_t n = option & VALUE_MASK;

    xac_assert(option != 0);
    if (option >> UNIT_SHIFT != SECONDS)
        return n;
    return n < VALUE_MASK / NS_PER_S ? n * NS_PER_S : VALUE_MASK;
}

/* place -- of this moment, on the scale of the option. */
static uint64_t
place(const struct xac_env *env, uint64_t option, uint64_t commit)
{
    const struct xac_chain *c = &env->ctl->chain;

    switch (option >> UNIT_SHIFT) {
    case SECONDS:
        return xac_clock_coarse_ns();
    case COMMITS:
        return commit;
    default:
        xac_assert(option >> UNIT_SHIFT >= BYTES);
        return atomic_load_explicit(&c->made, memory_order_relaxed) * env->page_size;
    }
}

/* newest_before -- the newest moment that lies a window back; NULL: none does. */
XAC_REQUIRES(gc)
static const struct xac_moment *
newest_before(const struct xac_chain *c, uint64_t at, uint64_t length)
{
    xac_assert(xac_lock_is_mine(&c->gc));
    for (uint64_t i = 0; i < XAC_MOMENTS && i < c->n_moments; i++) {
        const struct xac_moment *m = &c->moment[(c->n_moments - 1 - i) % XAC_MOMENTS];

        if (m->at <= at && at - m->at >= length)
            return m;
    }
    return NULL;
}

void
xac_history_advance(struct xac_env *env)
{
    struct xac_chain *c = &env->ctl->chain;
    uint64_t option = atomic_load_explicit(&env->ctl->history, memory_order_relaxed);
    const struct xac_moment *m;
    uint64_t commit, at, length;

    xac_assert(xac_lock_is_mine(&c->gc));
    if (option == 0)
        return;
    commit = xac_chain_commit(env);
    at = place(env, option, commit);
    length = window(option);
    m = &c->moment[(c->n_moments - 1) % XAC_MOMENTS];
    if (c->n_moments == 0 || at - m->at > length / (XAC_MOMENTS / 2)) {
        /* The number last: should we die before, the moment is noted once more. */
        c->moment[c->n_moments % XAC_MOMENTS] =
            (struct xac_moment){.number = commit,
                                .at = at,
                                .time_ns = xac_clock_read(CLOCK_REALTIME)};
        xac_kill_point("history moment");
        c->n_moments++;
    }
    m = newest_before(c, at, length);
    if (m == NULL || m->number <= atomic_load_explicit(&c->past, memory_order_relaxed))
        return;
    xac_assert(m->number <= commit); /* (1) */
    /* Relaxed: the fence of the gc comes behind it, see (2). */
    atomic_store_explicit(&c->past, m->number, memory_order_relaxed);
    atomic_store_explicit(&c->past_ns, m->time_ns, memory_order_relaxed);
    xac_kill_point("history past");
}

void
xac_history_end(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->chain.gc));
    atomic_store_explicit(&env->ctl->history, 0, memory_order_relaxed);
}

/* ---- A query of the past ------------------------------------------------------------------ */

/* lost -- the error for a state that does not stay. */
static int
lost(const struct xac_env *env, const char *what)
{
    const struct xac_chain *c = &env->ctl->chain;
    uint64_t ns = atomic_load_explicit(&c->past_ns, memory_order_relaxed);
    time_t t = (time_t)(ns / NS_PER_S);
    char when[32];
    struct tm tm;

    xac_assert(what != NULL);
    (void)gmtime_r(&t, &tm);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    return xac_err(XAC_ENOSTATE,
                   "the state %s is not kept any more; the oldest one is that of commit "
                   "%" PRIu64 ", of %s.%06" PRIu64 "Z",
                   what, atomic_load_explicit(&c->past, memory_order_relaxed), when,
                   ns % NS_PER_S / 1000);
}

/* later_than -- the number of a version's commit, if that is later than a time; UINT64_MAX: it is not,
   or the version slot has none. */
static uint64_t
later_than(const struct xac_vslot *f, uint64_t ns)
{
    /* Acquire: pairs with the release that made it a version. */
    uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire);
    uint64_t time_ns = atomic_load_explicit(&f->time_ns, memory_order_relaxed);

    /* Pairs with the fence in link_version: if the time is that of the version slot's next user, its word
       has changed, too. */
    atomic_thread_fence(memory_order_acquire);
    if (xac_vslot_state(word) != XAC_VSLOT_VERSION || time_ns <= ns
        || atomic_load_explicit(&f->word, memory_order_relaxed) != word)
        return UINT64_MAX;
    xac_assert((word & XAC_VSLOT_LOW) != 0);
    return word & XAC_VSLOT_LOW;
}

/*
 * number_at -- the last commit before the first one that is later than a time, as xrecover --until has
 * it.  In a durable environment times are taken before numbers are, so that they may be out of
 * order by a little.
 */
static uint64_t
number_at(const struct xac_env *env, uint64_t ns)
{
    uint64_t past = xac_history_past(env), commit = xac_chain_commit(env), first;
    /* Acquire: pairs with the release of the store's growth. */
    uint64_t n =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire);

    xac_assert(past <= commit); /* (1) */
    first = commit + 1;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t number = later_than(xac_vslot_at(env, i), ns);

        if (number > past && number < first)
            first = number;
    }
    xac_assert(first > past); /* (3) */
    return first - 1;
}

int
xac_history_enter(struct xac_env *env, struct xac_txn *txn, uint64_t state)
{
    bool is_time = xac_state_kind(state) == XAC_STATE_TIME;
    uint64_t number = state & VALUE_MASK;
    char what[64] = "of that time";

    xac_assert(xac_txn_is_live(atomic_load_explicit(&txn->word, memory_order_relaxed)));
    if (!xac_history_is_on(env))
        return xac_err(XAC_ENOSTATE,
                       "states of the past are not kept: XAC_OPT_HISTORY is 0");
    if (!is_time)
        (void)snprintf(what, sizeof what, "of commit %" PRIu64, number);
    if (is_time
        && number < atomic_load_explicit(&env->ctl->chain.past_ns, memory_order_relaxed))
        return lost(env, what);
    if (is_time)
        number = number_at(env, number);
    if (number > xac_chain_commit(env))
        return xac_err(XAC_ENOSTATE,
                       "there is no commit %" PRIu64 " yet; the newest is %" PRIu64,
                       number, xac_chain_commit(env));
    atomic_store_explicit(&txn->begin_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&txn->parent, number, memory_order_relaxed);
    atomic_store_explicit(&txn->next, number, memory_order_relaxed);
    atomic_store_explicit(&txn->start, number, memory_order_relaxed);
    /* Pairs with the fence in xac_gc_bound and xac_gc_needs: see (2). */
    atomic_thread_fence(memory_order_seq_cst);
    if (number < xac_history_past(env))
        return lost(env, what);
    xac_assert(number <= xac_chain_commit(env));
    atomic_store_explicit(&txn->end, xac_chain_lsn(env, number), memory_order_relaxed);
    return 0;
}
