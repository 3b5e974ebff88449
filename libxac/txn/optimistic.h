/* SPDX-License-Identifier: MIT */
/*
 * optimistic.h -- the optimistic policy (Thesis 3.3, end): no checks while a transaction
 * runs; it reads the snapshot of its begin and is validated at its end.
 *
 * WHAT      Validation (policy.h), and the token: a transaction that has lost several races in a row
 *           takes the token before it begins; until it ends, nobody else publishes, so it
 *           cannot lose.
 *
 * INVARIANT A transaction that publishes as number n has a parent p such that no commit
 *           in (p, n) wrote a page of its set.
 *
 * THE TURN  A word of the control region: slot + 1 of its holder, 0 if free.  The holder,
 *           having taken it, passes once through the publish lock: who had looked before
 *           has published then, who looks later waits.
 *
 *           It lapses when the holder's process is dead or stopped: whoever waits looks
 *           about every millisecond, and takes it away.  One that was stopped does not notice; it
 *           is validated at its end like everybody, waits then if another has the token,
 *           and if it loses, takes the token again for the next attempt.  Validation never
 *           relies on the token, so a token that lapses costs an attempt at most.
 *
 *           So the number of retries for conflicts is at most LOST_BEFORE_TOKEN (txn.c),
 *           and one more for each time that the process was stopped in its token.  A holder
 *           that runs, however slowly, keeps it: a bound in time would cost a long
 *           transaction its bound on retries.
 */
#ifndef XAC_OPTIMISTIC_H
#define XAC_OPTIMISTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "txn/slot.h"

struct xac_env;

/* xac_token_wait -- until it may; takes the token from a holder that is gone. */
void xac_token_wait(struct xac_env *env, uint64_t slot);

/* xac_token_take -- before begin; waits.  xac_token_give -- at the end. */
void xac_token_take(struct xac_env *env, struct xac_ctx *ctx);
void xac_token_give(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_OPTIMISTIC_H */
