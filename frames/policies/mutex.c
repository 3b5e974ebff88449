/* SPDX-License-Identifier: MIT */
/*
 * mutex.c -- the lock of a part: waiters sleep, or spin with exponential back-off.
 *
 * The word is 0, or the owner's number + 1, with WAITED_FOR if a thread may be asleep.  A thread
 * that was asleep takes it with that bit, since there may be more of them.
 */
#include <config.h>

#include "frames/policies/locked.h"

#include "base/clock.h"
#include "base/futex.h"

#define SPIN_MAX     1024 /* pauses between two looks at a spin lock, at most */
#define SLEEP_MAX_MS 1000 /* then a sleeper looks again */
#define WAITED_FOR   (UINT32_C(1) << 31)

static xac_shared _Atomic uint32_t *
word_of(const struct xac_frames *pool, uint32_t part)
{
    xac_assert_slow(part < pool->region->config.parts);
    return &pool->locked->parts[part].lock;
}

/* take -- from free to `mine`. */
static bool
take(xac_shared _Atomic uint32_t *word, uint32_t mine)
{
    uint32_t is_free = 0;

    xac_assert(mine != 0);
    /* Acquire pairs with xac_frames_unlock(). */
    return atomic_load_explicit(word, memory_order_relaxed) == 0
           && atomic_compare_exchange_strong_explicit(word, &is_free, mine,
                                                      memory_order_acquire,
                                                      memory_order_relaxed);
}

bool
xac_frames_trylock(struct xac_frames_user *user, uint32_t part)
{
    xac_assert(xac_frames_lock_owner(user->pool, part) != user->number);
    return take(word_of(user->pool, part), user->number + 1);
}

/* spin -- test and test-and-set. */
static void
spin(xac_shared _Atomic uint32_t *word, uint32_t mine)
{
    xac_assert(mine != 0);
    xac_assert((mine & WAITED_FOR) == 0);
    for (unsigned pauses = 1; !take(word, mine);
         pauses = pauses < SPIN_MAX ? 2 * pauses : SPIN_MAX)
        for (unsigned i = 0; i < pauses; i++)
            atomic_signal_fence(
                memory_order_seq_cst); /* pairs with nothing: time passes */
}

static void
wait_asleep(struct xac_frames_user *user, xac_shared _Atomic uint32_t *word,
            uint32_t mine)
{
    uint32_t seen;

    xac_assert(mine != 0);
    xac_assert((mine & WAITED_FOR) == 0);
    while (!take(word, mine | WAITED_FOR)) {
        seen = atomic_load_explicit(word, memory_order_relaxed);
        if (seen == 0
            || ((seen & WAITED_FOR) == 0
                && !atomic_compare_exchange_strong_explicit(word, &seen,
                                                            seen | WAITED_FOR,
                                                            memory_order_relaxed,
                                                            memory_order_relaxed)))
            continue;
        pool_count(user, POOL_LOCK_SLEEPS, 1);
        xac_futex_wait(word, seen | WAITED_FOR, SLEEP_MAX_MS);
    }
}

void
xac_frames_lock(struct xac_frames_user *user, uint32_t part)
{
    xac_shared _Atomic uint32_t *word = word_of(user->pool, part);

    xac_assert(xac_frames_lock_owner(user->pool, part) != user->number);
    pool_count(user, POOL_LOCKS, 1);
    if (!take(word, user->number + 1)) {
        uint64_t since = xac_clock_ns();

        pool_count(user, POOL_LOCK_WAITS, 1);
        if (user->pool->region->config.lock == XAC_FRAMES_SPIN)
            spin(word, user->number + 1);
        else
            wait_asleep(user, word, user->number + 1);
        pool_count(user, POOL_LOCK_WAIT_NS, xac_clock_ns() - since);
    }
    pool_probe(user->pool, XAC_FRAMES_AT_LOCKED);
    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
}

void
xac_frames_unlock(struct xac_frames *pool, uint32_t part)
{
    xac_shared _Atomic uint32_t *word = word_of(pool, part);

    xac_assert(xac_frames_lock_owner(pool, part) != UINT32_MAX);
    /* Release pairs with take(). */
    if ((atomic_exchange_explicit(word, 0, memory_order_release) & WAITED_FOR) != 0)
        xac_futex_wake_one(word);
}

uint32_t
xac_frames_lock_owner(const struct xac_frames *pool, uint32_t part)
{
    /* Acquire pairs with take() of the user that died with it. */
    uint32_t word = atomic_load_explicit(word_of(pool, part), memory_order_acquire);

    return (word & ~WAITED_FOR) - 1;
}
