/* SPDX-License-Identifier: MIT */
/*
 * policy_serial.c -- one writer at a time: a transaction takes the turn (turn.h) before it begins and
 * keeps it until it is published, not until it is durable.
 *
 * INVARIANTS
 *   (1) A transaction that publishes as number n has a parent p such that no commit in (p, n) wrote
 *       a page: it has the turn when it publishes, so it has had it since before p was read
 *       (turn.h, invariant 3), and nobody publishes without.
 *   (2) So it matters to nobody what a transaction has read; loads are not recorded and need not
 *       be noticed (view.h).
 *   (3) A transaction never loses a race.  It loses the turn, and then fails at its end, if its
 *       process was stopped meanwhile.
 */
#include <config.h>

#include "shared/env_state.h"
#include "txn/ctree.h"
#include "txn/policy.h"
#include "txn/turn.h"

/* is_newest -- invariant (1): only numbers of unlinks come after the parent.  For debug builds. */
__attribute__((unused)) static bool
is_newest(const struct xac_env *env, uint64_t parent)
{
    uint64_t commit = xac_chain_commit(env);
    struct xac_wrote wrote = {.n_pages = 0};

    xac_assert(parent <= commit);
    for (uint64_t n = parent + 1; n <= commit && wrote.n_pages == 0; n++) {
        if (!xac_chain_wrote(env, n, &wrote) && commit - n < XAC_RING_ENTRIES / 2)
            return false;
    }
    return wrote.n_pages == 0;
}

/* validate -- see policy.h. */
static bool
validate(const struct xac_env *env, uint64_t slot, uint64_t *pagep)
{
    (void)pagep;
    xac_assert(env->policy == &xac_policy_serial);
    if (!xac_turn_is_mine(env, slot))
        return false;
    /* Without publish we may be stopped in here, and lose the turn; it is lost before another one
       publishes. */
    xac_assert_slow(is_newest(env, atomic_load_explicit(&xac_txn_at(env, slot)->parent,
                                                        memory_order_relaxed))
                    || !xac_turn_is_mine(env, slot));
    return true;
}

const struct xac_policy xac_policy_serial = {
    .name = "serial",
    .decides_at_end = true,
    .is_serial = true,
    .lost = XAC_CONFLICT_REVOKED,
    .begin = xac_turn_take,
    .validate = validate,
};
