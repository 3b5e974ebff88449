/* SPDX-License-Identifier: MIT */
/*
 * optimistic.h -- the optimistic policy (Thesis 3.3, end): no checks while a transaction
 * runs; it reads the snapshot of its begin and is validated at its end.
 *
 * WHAT      Validation, and the turn: a transaction that has lost several races in a row
 *           takes the turn before it begins; until it ends, nobody else publishes, so it
 *           cannot lose.
 *
 * INVARIANT A transaction that publishes as number n has a parent p such that no commit
 *           in (p, n) wrote a page of its set.
 *
 * THE TURN  A word of the control region: the slot word of its holder, 0 if free.  Whoever
 *           finds a holder that is dead or has gone on takes it away.  The holder, having
 *           taken it, passes once through the publish lock: who had looked before has
 *           published then, who looks later waits.
 */
#ifndef XAC_OPTIMISTIC_H
#define XAC_OPTIMISTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "annot.h"
#include "txn.h"

struct xac_env;

/*
 * xac_optimistic_validate -- has no commit after the parent written a page of the set?
 *
 * Meaningful for good only with the publish lock held; without it, a quick no.
 * in   slot   of a transaction whose set lies in the region
 * out  pagep  id of the first page that was written, if not
 */
bool xac_optimistic_validate(const struct xac_env *env, const struct xac_txn *txn,
                             uint64_t *pagep);

/* xac_turn_is_open -- may this slot publish now?  Publish lock held. */
bool xac_turn_is_open(const struct xac_env *env, uint64_t slot);

/* xac_turn_wait -- until it may; takes the turn from a holder that is gone. */
void xac_turn_wait(struct xac_env *env, uint64_t slot);

/* xac_turn_take -- before begin; waits.  xac_turn_give -- at the end. */
void xac_turn_take(struct xac_env *env, struct xac_ctx *ctx);
void xac_turn_give(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_OPTIMISTIC_H */
