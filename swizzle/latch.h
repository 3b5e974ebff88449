/* SPDX-License-Identifier: MIT */
/*
 * latch.h -- a latch of one word in a frame's descriptor: shared, or exclusive.
 *
 * WHAT      Spins a little, then gives the processor away.  A writer that waits announces itself,
 *           and no further reader comes in before it, except one that must not wait.
 * OWNER     The frame (struct frame_side); it outlives the page in it.
 * ORDER     Parent before child, left leaf before right leaf.  Against that order latches are
 *           only tried.
 */
#ifndef SWIZZLE_LATCH_H
#define SWIZZLE_LATCH_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "annot.h"

#define LATCH_X     (UINT32_C(1) << 31)
#define LATCH_WANT  (UINT32_C(1) << 30) /* somebody waits for X */
#define LATCH_SPINS 64

typedef xac_shared _Atomic uint32_t latch_word;

/* latch_try -- shared unless one of `unless` is set. */
static inline bool
latch_try(latch_word *latch, uint32_t unless)
{
    uint32_t seen = atomic_load_explicit(latch, memory_order_relaxed);

    while ((seen & unless) == 0)
        /* Acquire pairs with latch_drop(): what the writer has left. */
        if (atomic_compare_exchange_weak_explicit(latch, &seen, seen + 1,
                                                  memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* latch_try_s -- goes past writers that wait: for who holds latches that they wait for. */
static inline bool
latch_try_s(latch_word *latch)
{
    return latch_try(latch, LATCH_X);
}

static inline bool
latch_try_x(latch_word *latch)
{
    uint32_t is_free = 0;

    /* Acquire pairs with latch_drop(). */
    return atomic_compare_exchange_strong_explicit(latch, &is_free, LATCH_X,
                                                   memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void
latch_pause(unsigned *spins)
{
    if (++*spins % LATCH_SPINS == 0)
        (void)sched_yield();
}

/* latch_look_x -- take it if nobody has it, else announce it; ret whether taken. */
static inline bool
latch_look_x(latch_word *latch)
{
    uint32_t seen = atomic_load_explicit(latch, memory_order_relaxed);

    if ((seen & ~LATCH_WANT) == 0)
        /* Acquire pairs with latch_drop(). */
        return atomic_compare_exchange_weak_explicit(latch, &seen, LATCH_X,
                                                     memory_order_acquire,
                                                     memory_order_relaxed);
    if ((seen & LATCH_WANT) == 0)
        atomic_fetch_or_explicit(latch, LATCH_WANT, memory_order_relaxed);
    return false;
}

static inline void
latch_take_s(latch_word *latch)
{
    unsigned spins = 0;

    while (!latch_try(latch, LATCH_X | LATCH_WANT))
        latch_pause(&spins);
}

static inline void
latch_take_x(latch_word *latch)
{
    unsigned spins = 0;

    while (!latch_look_x(latch))
        latch_pause(&spins);
}

static inline void
latch_take(latch_word *latch, bool is_exclusive)
{
    if (is_exclusive)
        latch_take_x(latch);
    else
        latch_take_s(latch);
}

/*
 * latch_take_while -- wait only as long as `word` is `value`; ret whether taken.
 *
 * A frame found by reference may have been given to another page since.  To wait for that page's
 * latch would be against the order: its owner may be waiting for the latch that we hold.
 */
static inline bool
latch_take_while(latch_word *latch, bool is_exclusive,
                 const xac_shared _Atomic uint32_t *word, uint32_t value)
{
    unsigned spins = 0;

    while (is_exclusive ? !latch_look_x(latch)
                        : !latch_try(latch, LATCH_X | LATCH_WANT)) {
        if (atomic_load_explicit(word, memory_order_relaxed) != value) {
            /* Nobody may wait any more; others who do announce it again. */
            if (is_exclusive)
                atomic_fetch_and_explicit(latch, ~LATCH_WANT, memory_order_relaxed);
            return false;
        }
        latch_pause(&spins);
    }
    return true;
}

static inline void
latch_drop(latch_word *latch, bool is_exclusive)
{
    /* Release pairs with the acquires above. */
    if (is_exclusive)
        atomic_fetch_and_explicit(latch, ~LATCH_X, memory_order_release);
    else /* pairs with the same */
        atomic_fetch_sub_explicit(latch, 1, memory_order_release);
}

#endif /* SWIZZLE_LATCH_H */
