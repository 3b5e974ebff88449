/* SPDX-License-Identifier: MIT */
/*
 * policy_self.c -- self-abort (Thesis 3.3): the transaction that discovers a conflict fails.  The
 * transaction that came first to a page keeps it.
 */
#include <config.h>

#include "txn/policy.h"

XAC_SIGSAFE static enum xac_verdict
decide(const struct xac_txn *self, const struct xac_txn *other)
{
    (void)self;
    (void)other;
    return XAC_FAIL_SELF;
}

const struct xac_policy xac_policy_self_abort = {
    .name = "self-abort",
    .decide = decide,
};
