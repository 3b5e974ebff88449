/* SPDX-License-Identifier: MIT */
/*
 * times.h -- how long something took, as a histogram in shared memory.
 *
 * WHAT      Bucket i counts what took less than 2^i microseconds, and not less than bucket i - 1 says;
 *           the last one counts all that took longer.
 * NOT HERE  Deciding what is measured: txn.c measures commits, log.c syncs.
 * THREADS   One thread at a time adds to a histogram: the owner of the slot, or the holder of the lock.
 *           Anybody may read; the numbers of one moment need not agree with each other.
 */
#ifndef XAC_TIMES_H
#define XAC_TIMES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/annot.h"

#define XAC_TIMES_BUCKETS 24 /* the last but one ends at 4.2 s */

struct xac_times {
    xac_shared _Atomic uint64_t sum_ns;
    xac_shared _Atomic uint64_t n[XAC_TIMES_BUCKETS];
};

/* xac_times_bucket -- of a time. */
static inline unsigned
xac_times_bucket(uint64_t ns)
{
    uint64_t us = ns / 1000;
    unsigned i = us == 0 ? 0 : 64u - (unsigned)__builtin_clzll(us);

    return i < XAC_TIMES_BUCKETS ? i : XAC_TIMES_BUCKETS - 1;
}

/* xac_times_add -- one more. */
static inline void
xac_times_add(struct xac_times *t, uint64_t ns)
{
    _Atomic uint64_t *n = &t->n[xac_times_bucket(ns)];

    /* Relaxed: nobody else stores them. */
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&t->sum_ns,
                          atomic_load_explicit(&t->sum_ns, memory_order_relaxed) + ns,
                          memory_order_relaxed);
}

#endif /* XAC_TIMES_H */
