/* SPDX-License-Identifier: MIT */
/*
 * outside.c -- memory outside of segments: the lock that isolates blocks of several threads there.
 *
 * Such memory has no versions, so a block that loads there holds the lock shared, and one that stores holds
 * it alone, until it has ended.  That would not be enough, for a transaction of libxac sees the
 * state of its begin: it could see a segment as it was before another block, and memory outside
 * as it is after that one.  So a block that ends leaves its position, the number of the newest
 * commit then (xac_position), and a block with an older position starts over when it gets the lock.  A block that
 * stores outside must not be older than those that have loaded there either: its place among the commits is that of
 * its segments.
 *
 * A block takes the lock when libxac's transaction is open already, or is a query, which waits for nobody.
 * So a block that has the lock never waits for the turn of the serial policy, and each wait for the lock ends.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <xac_translate.h>

#include "itm.h"

/* Of the word: the number of threads that have it shared, and */
#define ALONE \
 (UINT32_C(1) << 31) /* one has it alone                                     */
#define WANTED \
 (UINT32_C(1) << 30) /* threads wait, or have waited: newcomers do not share */

static _Atomic uint32_t word;

/* Those that wait. */
static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

/* Positions of blocks that have ended, the newest: of those that have stored outside; of all that had
   the lock.  Relaxed: written by threads that have it, and read by those that have it later. */
static _Atomic uint64_t stored_at, seen_at;

/* try_share -- in  is_patient: it has waited already. */
static bool
try_share(bool is_patient)
{
    uint32_t w = atomic_load_explicit(&word, memory_order_relaxed);

    while ((w & ALONE) == 0 && (is_patient || (w & WANTED) == 0)) {
        /* Acquire: pairs with the release in leave. */
        if (atomic_compare_exchange_weak_explicit(&word, &w, w + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* try_alone -- in  n: how many may have it: 1 if the caller has it shared, else 0. */
static bool
try_alone(uint32_t n)
{
    uint32_t w = atomic_load_explicit(&word, memory_order_relaxed);

    while ((w & ~WANTED) == n) {
        /* Acquire: pairs with the release in leave. */
        if (atomic_compare_exchange_weak_explicit(&word, &w, (w & WANTED) | ALONE,
                                                  memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* wait_for -- until it is had. */
static void
wait_for(enum xac_itm_holds how)
{
    (void)pthread_mutex_lock(&waiting);
    for (;;) {
        /* Relaxed: the thread that has the lock looks for the bit when it gives it back. */
        (void)atomic_fetch_or_explicit(&word, WANTED, memory_order_relaxed);
        if (how == XAC_ITM_SHARED ? try_share(true) : try_alone(0))
            break;
        (void)pthread_cond_wait(&released, &waiting);
    }
    (void)pthread_mutex_unlock(&waiting);
}

void
xac_itm_outside_lock(struct xac_itm *t, enum xac_itm_holds how)
{
    xac_itm_assert(t->holds == XAC_ITM_NOTHING);
    if (how == XAC_ITM_NOTHING)
        return;
    if (!(how == XAC_ITM_SHARED ? try_share(false) : try_alone(0)))
        wait_for(how);
    t->holds = how;
}

/* raise -- *at to a position that is not below. */
static void
raise(_Atomic uint64_t *at, uint64_t position)
{
    uint64_t was = atomic_load_explicit(at, memory_order_relaxed);

    while (was < position
           && !atomic_compare_exchange_weak_explicit(at, &was, position,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
        ;
}

void
xac_itm_outside_unlock(struct xac_itm *t, bool is_committed)
{
    const uint32_t mine = t->holds == XAC_ITM_SHARED ? 1 : ALONE;
    uint32_t w;

    if (t->holds == XAC_ITM_NOTHING)
        return;
    if (is_committed && t->has_env && xac_itm_is_side_by_side()) {
        uint64_t position = xac_position();

        if (t->holds == XAC_ITM_EXCLUSIVE)
            raise(&stored_at, position);
        raise(&seen_at, position);
    }
    t->holds = XAC_ITM_NOTHING;
    /* Release: pairs with the acquires above. */
    w = atomic_fetch_sub_explicit(&word, mine, memory_order_release) - mine;
    if (w != WANTED)
        return;
    (void)pthread_mutex_lock(&waiting);
    (void)atomic_fetch_and_explicit(&word, ~WANTED, memory_order_relaxed);
    (void)pthread_cond_broadcast(&released);
    (void)pthread_mutex_unlock(&waiting);
}

/* required -- the position that a holder must have. */
static uint64_t
required(const struct xac_itm *t)
{
    return atomic_load_explicit(t->holds == XAC_ITM_EXCLUSIVE ? &seen_at : &stored_at,
                                memory_order_relaxed);
}

bool
xac_itm_outside_is_stale(const struct xac_itm *t)
{
    return t->has_env && t->holds != XAC_ITM_NOTHING && xac_position() < required(t);
}

void
xac_itm_outside_reset(void)
{
    uint64_t newest = xac_position();

    /* Numbers of commits that there have never been are those of an environment that has been closed. */
    if (atomic_load_explicit(&seen_at, memory_order_relaxed) <= newest)
        return;
    atomic_store_explicit(&stored_at, newest, memory_order_relaxed);
    atomic_store_explicit(&seen_at, newest, memory_order_relaxed);
}

void
xac_itm_outside_take(struct xac_itm *t, enum xac_itm_holds how)
{
    if (t->holds >= how || !t->is_translated)
        return;
    if (t->holds == XAC_ITM_NOTHING) {
        xac_itm_outside_lock(t, how);
    } else if (try_alone(1)) {
        t->holds = how;
    } else { /* two that want this would wait for each other */
        t->wants = how;
        xac_itm_restart(t);
    }
    if (xac_itm_outside_is_stale(t)) {
        t->wants = how > t->wants ? how : t->wants;
        t->n_attempts++;
        xac_itm_restart(t);
    }
}

void
xac_itm_outside_forked(const struct xac_itm *t)
{
    enum xac_itm_holds holds = t != NULL ? t->holds : XAC_ITM_NOTHING;

    (void)pthread_mutex_init(&waiting, NULL);
    (void)pthread_cond_init(&released, NULL);
    atomic_store_explicit(&word,
                          holds == XAC_ITM_EXCLUSIVE ? ALONE : holds == XAC_ITM_SHARED,
                          memory_order_relaxed);
}
