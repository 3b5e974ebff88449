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
 * xac_txn_end -- outermost end.
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

/* xac_txn_finish -- after the outcome is decided: views, set and slot are free again. */
void xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed);

/*
 * xac_commit -- commit the running transaction, whose set is complete, and finish it
 * (txn_commit.c).
 *
 * ret  XAC_COMMITTED; XAC_ABORTED (not finished yet); XAC_EPOISONED (finished).
 */
int xac_commit(struct xac_env *env, struct xac_ctx *ctx);

/* xac_commit_await -- until the log is durable up to lsn, or as long as
   XAC_OPT_SYNC_DELAY_MS and XAC_OPT_WAIT_MS ask for; ret 0, XAC_EPOISONED, XAC_ENOTDURABLE or
   XAC_EUNCERTAIN. */
int xac_commit_await(struct xac_env *env, uint64_t lsn);

#endif /* XAC_TXN_H */
