/* SPDX-License-Identifier: MIT */
/*
 * latch.h -- a latch of one word in a frame's descriptor: shared, exclusive, or only looked at.
 *
 * WHAT      Spins a little, then gives the processor away.  A writer that waits announces itself,
 *           and no further reader comes in before it, except one that must not wait.  The upper
 *           half counts the writers that have finished: if a thread sees the same number before
 *           and after it reads the page, and no writer in between, it has read the page as one of
 *           them left it, without a store (V. Leis et al., "The ART of Practical Synchronization",
 *           DaMoN 2016).
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

#include "base/annot.h"

#define LATCH_VERSION (UINT64_C(1) << 32) /* one writer more has gone */
#define LATCH_X       (UINT64_C(1) << 31)
#define LATCH_WANT    (UINT64_C(1) << 30) /* somebody waits for X */
#define LATCH_SPINS   64

typedef xac_shared _Atomic uint64_t latch_word;

/* The thread sanitizer knows no fences; it does not see the reads that these are for either. */
#ifdef __SANITIZE_THREAD__
# define latch_fence(order) ((void)0)
#else
# define latch_fence(order) \
  atomic_thread_fence(order) /* each use says what it pairs with */
#endif

/* latch_try -- shared unless one of `unless` is set. */
static inline bool
latch_try(latch_word *latch, uint64_t unless)
{
    uint64_t seen = atomic_load_explicit(latch, memory_order_relaxed);

    while ((seen & unless) == 0)
        /* Acquire pairs with latch_drop(): what the writer has left; and with the release here of
           a thread that has it S too, and had brought the page in before. */
        if (atomic_compare_exchange_weak_explicit(latch, &seen, seen + 1,
                                                  memory_order_acq_rel,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* latch_try_s -- goes past writers that wait: for threads that hold latches that these wait for. */
static inline bool
latch_try_s(latch_word *latch)
{
    return latch_try(latch, LATCH_X);
}

static inline bool
latch_try_x(latch_word *latch)
{
    uint64_t seen = atomic_load_explicit(latch, memory_order_relaxed);

    while ((uint32_t)seen == 0)
        /* Acquire pairs with latch_drop(). */
        if (atomic_compare_exchange_weak_explicit(latch, &seen, seen | LATCH_X,
                                                  memory_order_acquire,
                                                  memory_order_relaxed)) {
            latch_fence(memory_order_release); /* pairs with latch_is_still() */
            return true;
        }
    return false;
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
    uint64_t seen = atomic_load_explicit(latch, memory_order_relaxed);

    if (((uint32_t)seen & ~LATCH_WANT) == 0) {
        /* Acquire pairs with latch_drop(). */
        if (!atomic_compare_exchange_weak_explicit(latch, &seen,
                                                   (seen & ~LATCH_WANT) | LATCH_X,
                                                   memory_order_acquire,
                                                   memory_order_relaxed))
            return false;
        latch_fence(memory_order_release); /* pairs with latch_is_still() */
        return true;
    }
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
 * latch_watch -- a word of a page that is not latched here, so that a writer may be at it with
 * plain stores.  Acquire pairs with the release of the thread that has stored it as a word.
 */
XAC_RACY static inline uint32_t
latch_watch(const xac_shared _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire); /* pairs as said above */
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
        if (latch_watch(word) != value) {
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
        atomic_fetch_add_explicit(latch, LATCH_VERSION - LATCH_X, memory_order_release);
    else /* pairs with the same */
        atomic_fetch_sub_explicit(latch, 1, memory_order_release);
}

/* latch_undo_x -- the opposite of taking it X, if nothing was changed. */
static inline void
latch_undo_x(latch_word *latch)
{
    /* Release pairs with the acquires above. */
    atomic_fetch_and_explicit(latch, ~LATCH_X, memory_order_release);
}

/* latch_is_free -- nobody has it, or waits for it. */
static inline bool
latch_is_free(const latch_word *latch)
{
    return (uint32_t)atomic_load_explicit(latch, memory_order_relaxed) == 0;
}

/* latch_look -- out *versionp for latch_is_still(); false: a writer is at it. */
static inline bool
latch_look(const latch_word *latch, uint32_t *versionp)
{
    /* Acquire pairs with latch_drop(): what the last writer has left. */
    uint64_t seen = atomic_load_explicit(latch, memory_order_acquire);

    *versionp = (uint32_t)(seen >> 32);
    return (seen & LATCH_X) == 0;
}

/* latch_is_still -- no writer has come since latch_look(): what was read meanwhile counts. */
static inline bool
latch_is_still(const latch_word *latch, uint32_t version)
{
    uint64_t seen;

    /* Acquire pairs with the fence of a thread that takes it X: a reader of its stores sees X. */
    latch_fence(memory_order_acquire);
    seen = atomic_load_explicit(latch, memory_order_relaxed);
    return (uint32_t)(seen >> 32) == version && (seen & LATCH_X) == 0;
}

#endif /* SWIZZLE_LATCH_H */
