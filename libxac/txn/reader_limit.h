/* SPDX-License-Identifier: MIT */
/*
 * reader_limit.h -- XAC_OPT_READER_LIMIT: a query that holds back too many versions is cut off.
 *
 * WHAT      gc counts what the oldest query holds back, and changes its slot from QUERY to CUT.
 *           From then on its state is not kept: versions that only it read are freed, and a
 *           checkpoint may write beyond it.
 * NOT HERE  What the query's loads see then (view.h), and what it is told (txn.h).
 * LOCK      gc.  The owner of the slot takes no lock.
 *
 * INVARIANTS
 *   (1) Only a query whose owner has set may_cut is cut off, behind its begin: a checkpoint's query,
 *       and a begin that is under way, never are.
 *   (2) The exchange to CUT comes before anything is freed that only this query needs.  So what the
 *       owner has copied is right if its word is still QUERY when it looks behind the copy
 *       (xac_txn_is_cut).
 *   (3) A query is cut off only if all that cannot be cut off, transactions, snapshots and the history, see
 *       newer states: otherwise nothing would be gained.
 *   (4) A snapshot that is taken of a query's state is right if the query's word is still QUERY when
 *       its owner looks behind the snapshot's (snapshots.c).
 */
#ifndef XAC_READER_LIMIT_H
#define XAC_READER_LIMIT_H

#include <stdbool.h>

#include "shared/env_state.h"

/* xac_reader_limit_look -- before gc asks what is needed; gc held.  ret true: queries were cut off. */
bool xac_reader_limit_look(struct xac_env *env) XAC_REQUIRES(gc);

/* xac_txn_is_cut -- has the query in a slot of one's own been cut off?  What it has loaded and copied
   before is right if not. */
XAC_SIGSAFE static inline bool
xac_txn_is_cut(const struct xac_txn *txn)
{
    /* Pairs with the exchange in cut: if anything that we have read was freed by it, we see CUT. */
    atomic_thread_fence(memory_order_acquire);
    return xac_txn_state(atomic_load_explicit(&txn->word, memory_order_relaxed))
           == XAC_TXN_CUT;
}

#endif /* XAC_READER_LIMIT_H */
