/* SPDX-License-Identifier: MIT */
/*
 * policy_youngest.c -- youngest-wins (Thesis 3.3): on a conflict the younger transaction
 * survives.  Nobody waits for a process that has stopped; long transactions may starve
 * among short ones.
 */
#include <config.h>

#include "txn/policy.h"

XAC_SIGSAFE static enum xac_verdict
decide(const struct xac_txn *self, const struct xac_txn *other)
{
    uint64_t mine = atomic_load_explicit(&self->age, memory_order_relaxed);
    uint64_t theirs = atomic_load_explicit(&other->age, memory_order_relaxed);

    return mine > theirs ? XAC_FAIL_OTHER : XAC_FAIL_SELF;
}

const struct xac_policy xac_policy_youngest_wins = {
    .name = "youngest-wins",
    .decide = decide,
};
