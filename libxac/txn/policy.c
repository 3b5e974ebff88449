/* SPDX-License-Identifier: MIT */
/*
 * policy.c -- the list of policies: see policy.h.
 */
#include <config.h>

#include "txn/policy.h"

const struct xac_policy *
xac_policy_of(uint32_t kind)
{
    switch (kind) {
    case XAC_POLICY_OLDEST_WINS:
        return &xac_policy_oldest_wins;
    case XAC_POLICY_SELF_ABORT:
        return &xac_policy_self_abort;
    case XAC_POLICY_SELFISH:
        return &xac_policy_selfish;
    case XAC_POLICY_YOUNGEST_WINS:
        return &xac_policy_youngest_wins;
    case XAC_POLICY_OPTIMISTIC:
        return &xac_policy_optimistic;
    case XAC_POLICY_SERIAL:
        return &xac_policy_serial;
    default:
        return NULL;
    }
}
