/* SPDX-License-Identifier: MIT */
/*
 * optimistic.h -- the optimistic policy (Thesis 3.3, end): no checks while a transaction
 * runs; it reads the snapshot of its begin and is validated at its end.
 *
 * WHAT      Validation (policy.h), and the token: a transaction that has lost several races in a
 *           row takes the token before it begins.  Until it ends, no other transaction
 *           publishes, so it cannot lose.
 *
 * INVARIANT A transaction that publishes as number n has a parent p such that no commit
 *           in (p, n) wrote a page of its set.
 *
 * THE TOKEN A word of the control region: slot + 1 of its holder, 0 if free.  After a transaction
 *           has taken it, it acquires the publish lock once: all that had looked at the word
 *           before have published then, and all that look later wait.
 *
 *           The token lapses when the holder's process is dead or stopped: a transaction that
 *           waits for it checks that about every millisecond, and takes it away.  A stopped
 *           holder does not notice.  At its end it is validated like all others, waits if
 *           another one has the token, and if it loses, takes the token again for the next
 *           attempt.  Validation never relies on the token, so a token that lapses costs at
 *           most one attempt.
 *
 *           So the number of retries for conflicts is at most LOST_BEFORE_TOKEN (txn_begin.c), and
 *           one more for each time that the process was stopped while it had the token.  A
 *           holder that runs slowly keeps it: with a bound in time a long transaction would
 *           lose its bound on retries.
 */
#ifndef XAC_OPTIMISTIC_H
#define XAC_OPTIMISTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "txn/slot.h"

struct xac_env;

/* xac_token_wait -- wait until the slot may publish; takes the token from a holder that is gone. */
void xac_token_wait(struct xac_env *env, uint64_t slot);

/* xac_token_take -- call it before begin; waits.  xac_token_give -- call it at the end. */
void xac_token_take(struct xac_env *env, struct xac_ctx *ctx);
void xac_token_give(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_OPTIMISTIC_H */
