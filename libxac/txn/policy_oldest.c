/* SPDX-License-Identifier: MIT */
/*
 * policy_oldest.c -- oldest-wins (Thesis 3.3): on a conflict the older transaction
 * survives.  A retried transaction keeps its age, so it becomes the oldest in time and
 * cannot starve, which the Thesis leaves open; and it is tried again when the one it has
 * lost to is over, so the number of its retries is bounded: conflict.h, invariant (2).
 */
#include <config.h>

#include "txn/policy.h"

XAC_SIGSAFE static enum xac_verdict
decide(const struct xac_txn *self, const struct xac_txn *other)
{
    uint64_t mine = atomic_load_explicit(&self->age, memory_order_relaxed);
    uint64_t theirs = atomic_load_explicit(&other->age, memory_order_relaxed);

    return mine < theirs ? XAC_FAIL_OTHER : XAC_FAIL_SELF;
}

const struct xac_policy xac_policy_oldest_wins = {
    .name = "oldest-wins",
    .loser_waits = true,
    .decide = decide,
};
