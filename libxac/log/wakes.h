/* SPDX-License-Identifier: MIT */
/*
 * wakes.h -- sleeping until something shared has changed, when wake-ups cost nothing while nobody
 * sleeps.
 *
 * WHAT      A futex word: twice the count of wake-ups, and XAC_WAKE_WANTED.  A thread that is about
 *           to sleep sets the bit.  A thread that has made a change clears it, counts, and wakes
 *           all.
 * NOT HERE  What changes: the log's `durable` for committers (log.h) and for followers (follow.h).
 * THREADS   any thread of any process; the fault handler does not use it.
 *
 * INVARIANT
 *   (1) A thread reads the word, then looks for the change, then sleeps only if the word had the
 *       bit and is still the same.  So a change behind its look ends the sleep.
 *
 * Two at a time may leave an announcement that nobody has made; the next wake-up takes it back.
 */
#ifndef XAC_WAKES_H
#define XAC_WAKES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/futex.h"

/* Somebody sleeps on the word, or may be about to. */
#define XAC_WAKE_WANTED 1u

/* xac_wakes_read -- before all other looks. */
static inline uint32_t
xac_wakes_read(const xac_shared _Atomic uint32_t *word)
{
    /* acquire: pairs with the release in xac_wakes_ring. */
    uint32_t seen = atomic_load_explicit(word, memory_order_acquire);

    /* Pairs with the fence in xac_wakes_fence. */
    atomic_thread_fence(memory_order_seq_cst);
    return seen;
}

/*
 * xac_wakes_is_announced -- will a change behind xac_wakes_read() wake somebody who sleeps on the
 * word?
 *
 * ret  false: it is announced only now, and the caller begins anew with xac_wakes_read().
 */
static inline bool
xac_wakes_is_announced(xac_shared _Atomic uint32_t *word, uint32_t seen)
{
    xac_assert(word != NULL);
    if ((seen & XAC_WAKE_WANTED) != 0)
        return true;
    /* relaxed: the fences order it. */
    (void)atomic_compare_exchange_strong_explicit(word, &seen, seen | XAC_WAKE_WANTED,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed);
    return false;
}

/* xac_wakes_fence -- between a change and xac_wakes_ring(). */
static inline void
xac_wakes_fence(void)
{
    /* Pairs with the fence in xac_wakes_read: either we see the announcement, or the thread that
       relies on it sees our change. */
    atomic_thread_fence(memory_order_seq_cst);
}

/* xac_wakes_ring -- wake all who sleep on the word, if somebody may. */
static inline void
xac_wakes_ring(xac_shared _Atomic uint32_t *word)
{
    if ((atomic_load_explicit(word, memory_order_relaxed) & XAC_WAKE_WANTED) == 0)
        return;
    /* From odd to even.  release: pairs with the acquire in xac_wakes_read. */
    (void)atomic_fetch_add_explicit(word, 1, memory_order_release);
    xac_futex_wake_all(word);
}

#endif /* XAC_WAKES_H */
