/* SPDX-License-Identifier: MIT */
/*
 * txn.h -- the life cycle of a transaction.
 *
 * WHAT      The story of one transaction: begin, end, abort, commit.
 * NOT HERE  The slot that it runs in, and its set (slot.h).  Conflicts between slots
 *           (conflict.h), the commit chain (ctree.h), what the pages of a view show (view.h).
 */
#ifndef XAC_TXN_H
#define XAC_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include <xac.h>

#include "txn/slot.h"

/* xac_txn_begin -- outermost begin.  ret 0 or an error. */
int xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query);

/*
 * xac_txn_end -- outermost end: commits the transaction, or rolls it back, and finishes it.
 *
 * ret  XAC_COMMITTED, XAC_ABORTED or an error.  The age and the token stay with the slot only
 *      after XAC_ABORTED, so that others wait for no attempt that may never come.
 */
int xac_txn_end(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_forgo -- no other attempt follows: nobody waits for it, and it takes no turn. */
void xac_txn_forgo(struct xac_ctx *ctx);

/*
 * xac_error_explain -- note in words what an access has lacked, for which the transaction will
 * abort: the fault handler could not (txn_error.c).
 *
 * xac_error_verdict -- the transaction has been rolled back for ctx->error.  If a checkpoint may
 * make room, and has not been tried for the attempt before this one, it is tried now.
 *
 * in   words  that were noted for the error, kept from what happened since
 * ret  XAC_ABORTED if another attempt may succeed; else ctx->error, words noted
 */
void xac_error_explain(struct xac_ctx *ctx);
int xac_error_verdict(struct xac_env *env, struct xac_ctx *ctx, const char *words);

/*
 * xac_txn_foresee -- in an optimistic environment: fail the running transaction now if
 * its end would find it invalid.  Costs a look at every page of its set.
 */
void xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_TXN_H */
