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

/* xac_txn_begin -- outermost begin.  ret 0 or an error; ETIMEDOUT: it has not had its turn. */
int xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query);

/* xac_txn_begin_at -- the outermost begin of a query at a snapshot.  ret 0 or an error; XAC_ENOSTATE: there
   is no such snapshot. */
int xac_txn_begin_at(struct xac_env *env, struct xac_ctx *ctx, uint64_t at);

/*
 * xac_txn_await_shown -- return when queries that begin now see everything that the log has below an LSN, which the tail
 * has passed (xac_chain_shows); no lock is held.  What a dead process has not finished is finished.
 *
 * in   until_ns  monotonic; it waits at most until then and a millisecond more, and no longer than XAC_OPT_WAIT_MS
 * ret  0; ETIMEDOUT with words: the process that publishes stands still.
 */
int xac_txn_await_shown(struct xac_env *env, uint64_t lsn, uint64_t until_ns);

/*
 * xac_txn_end -- outermost end: commits the transaction, or rolls it back, and finishes it.
 *
 * ret  XAC_COMMITTED, XAC_ABORTED or an error.  The age stays with the slot only after XAC_ABORTED,
 *      so that others wait for no attempt that may never come.
 */
int xac_txn_end(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_seen_lsn -- where the log must be durable for what the open transaction or query has read. */
uint64_t xac_txn_seen_lsn(const struct xac_env *env, const struct xac_ctx *ctx);

/* xac_txn_forgo -- no other attempt follows: nobody waits for it, and it takes no turn. */
void xac_txn_forgo(struct xac_ctx *ctx);

/*
 * xac_txn_foresee -- under a policy that decides at the end: fail the running transaction now if
 * its end would find it invalid.  Under the optimistic one it costs a look at every page of its set.
 *
 * ret  false: it has failed, now or before.
 */
bool xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_cut_error -- XAC_ECUTOFF, in words, for a call of the interface. */
int xac_txn_cut_error(const struct xac_env *env, const char *what);

/* ---- Between txn.c and txn_abort.c ---- */

/* xac_error_explain -- note in words what an access has lacked, for which the transaction will
   abort: the fault handler could not. */
void xac_error_explain(struct xac_ctx *ctx);

/* xac_txn_end_aborted -- the transaction has not committed: roll it back; ret as xac_txn_end(). */
int xac_txn_end_aborted(struct xac_env *env, struct xac_ctx *ctx);

/* xac_txn_finish -- steps i and k, after the outcome is decided: give back views, set and slot. */
void xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed);

/* xac_txn_limit_ms -- how long the begin or end of a transaction may wait from now on, ms: what XAC_OPT_WAIT_MS
   and the time of the transaction allow; 0: there is no limit.  xac_txn_left_ms: where there is such a time. */
uint32_t xac_txn_left_ms(const struct xac_env *env, uint64_t until_ns);
static inline uint32_t
xac_txn_limit_ms(const struct xac_env *env, uint64_t until_ns)
{
    return xac_likely(until_ns == 0) ? env->options.wait_ms
                                     : xac_txn_left_ms(env, until_ns);
}

#endif /* XAC_TXN_H */
