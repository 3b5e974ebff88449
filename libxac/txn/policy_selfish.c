/* SPDX-License-Identifier: MIT */
/*
 * policy_selfish.c -- selfish (Thesis 3.3): the transaction that discovers a conflict wins.  Obstruction
 * free: a transaction succeeds if all others stop; two that meet again and again may
 * abort each other for ever without back-off.
 */
#include <config.h>

#include "txn/policy.h"

XAC_SIGSAFE static enum xac_verdict
decide(const struct xac_txn *self, const struct xac_txn *other)
{
    (void)self;
    (void)other;
    return XAC_FAIL_OTHER;
}

const struct xac_policy xac_policy_selfish = {
    .name = "selfish",
    .decide = decide,
};
