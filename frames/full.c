/* SPDX-License-Identifier: MIT */
/*
 * full.c -- what a search does after a round that found every frame fixed: it yields, then sleeps,
 * and gives up when that has lasted.
 *
 * On a busy machine the threads that have fixed the pages may be off their processors for longer
 * than any number of yields takes, so the clock decides.
 */
#include <config.h>

#include "frames/pool.h"

#include <sched.h>

#include "base/clock.h"
#include "base/sys.h"

#define ROUNDS_AWAKE  16                /* each with a yield; then it sleeps ... */
#define SLEEP_FIRST   UINT64_C(50000)   /* nanoseconds, twice as long each time, ... */
#define SLEEP_LONGEST UINT64_C(5000000) /* but at most so long */

/* is_fixed_here -- the user has noted it, and not before this note. */
XAC_SIGSAFE static bool
is_fixed_here(const struct xac_frames_user *user, uint32_t note, frame_ref ref)
{
    if (ref == 0 || (ref & POOL_NOTE_OPEN) != 0)
        return false;
    for (uint32_t i = 0; i < note; i++)
        if (atomic_load_explicit(&user->notes[i], memory_order_relaxed) == ref)
            return false;
    return true;
}

/* is_own_doing -- the user itself has every frame of the part fixed: waiting would not help. */
XAC_SIGSAFE static bool
is_own_doing(const struct xac_frames_user *user, uint32_t part)
{
    struct xac_frames *pool = user->pool;
    uint32_t n_part = part_first(pool, part + 1) - part_first(pool, part), n = 0;

    xac_assert(part < pool->region->config.parts);
    if (pool->pins_max < n_part)
        return false;
    for (uint32_t i = 0; i < pool->pins_max; i++) {
        frame_ref ref = atomic_load_explicit(&user->notes[i], memory_order_relaxed);

        if (is_fixed_here(user, i, ref)
            && part_of(pool, atomic_load_explicit(&pool_frame(pool, ref)->page_id,
                                                  memory_order_relaxed))
                   == part)
            n++;
    }
    xac_assert(n <= n_part);
    return n == n_part;
}

/* pause_for -- the n-th one without an end in sight. */
XAC_SIGSAFE static void
pause_for(uint32_t n)
{
    xac_assert(n > 0);
    if (n <= ROUNDS_AWAKE) {
        (void)sched_yield();
        return;
    }
    n -= ROUNDS_AWAKE + 1;
    xac_sleep_ns(n < 8 && SLEEP_FIRST << n < SLEEP_LONGEST ? SLEEP_FIRST << n
                                                           : SLEEP_LONGEST);
}

XAC_SIGSAFE bool
xac_frames_full(struct xac_frames_user *user, uint32_t part, struct pool_full *full,
                bool is_unwritable)
{
    const struct xac_frames_config *c = &user->pool->region->config;
    const struct pool_owner *owner = user->pool->owner;

    pool_count(user, POOL_FULL_YIELDS, 1);
    full->n++;
    if (full->n == 1 && is_own_doing(user, part))
        return false;
    if (c->full_tries != 0) {
        if (full->n >= c->full_tries)
            return false;
    } else if (full->n == 1) {
        full->since = xac_clock_ns();
    } else if (full->n > ROUNDS_AWAKE
               && (is_unwritable
                   || xac_clock_ns() - full->since >= c->full_ms * UINT64_C(1000000))) {
        return false;
    }
    if (owner == NULL || !owner->no_victim(owner->arg, user))
        pause_for(c->full_tries != 0 ? 1 : full->n);
    return true;
}
