/* SPDX-License-Identifier: MIT */
/*
 * xac_team.h -- several threads work on one transaction.
 *
 * WHAT      A transaction belongs to the thread that has begun it, its owner.  Other threads may help: what they
 *           load from the segments and store there counts for the owner's transaction, and commits or is rolled
 *           back with it.  The owner asks for the number of its transaction and hands it to the threads;
 *           each of them joins it, works, and leaves it:
 *
 *               xbegin();                        in each helper:
 *               xTeam(&txn);                         xJoin(txn);
 *               ... start helpers, hand over txn     ... load and store
 *               ... load and store                   xLeave();
 *               ... wait until all have left
 *               xend();
 *
 *           With XAC_OPT_TEAM every thread of the process may help without a call.
 * THREADS   Any.  Races between the threads are the program's, as with plain memory: it orders
 *           the begin before the accesses of the helpers, and these before the end.
 * RULES     (1) A helper may load and store, and announce accesses: setPageAccess(), setRangeAccess(), xac_touch.h.
 *               All else in the transaction is the owner's: xend(), xAbort(), xMalloc(), nested
 *               transactions and the like return XAC_ENOTXN in a helper, or EBUSY.
 *           (2) A thread that has joined begins no transaction and no query in the environment: XAC_EINTXN.
 *           (3) A thread that ends leaves what it has joined.
 *           (4) If the owner's transaction is rolled back while threads have joined it (its thread ends, or
 *               xTransact() is left), they are let down: what they touch stops the program.
 *           (5) A child of fork() is in no team.
 *           (6) While savepoints are taken and rolled back to, helpers may work; where stores have to be
 *               announced, they must have left (xSavepoint()).
 */
#ifndef XAC_TEAM_H
#define XAC_TEAM_H

#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xac_env;

/*
 * Get the number of the open transaction or query, for threads that are to help it.  Only its owner can.
 *
 * out  txn  not 0; the same at each call in the transaction, and no other transaction of the
 *           process ever has it.
 * ret  0; XAC_ENOINIT; XAC_ENOTXN: the thread has none open; EINVAL: NULL; XAC_EFORKED; ENOTSUP:
 *      a segment is watched by mprotect(2) (XAC_ENGINE_PORTABLE), and /proc/self/mem cannot be opened.
 */
XAC_API int xac_team(uint64_t *txn);
XAC_API int xac_team_in(struct xac_env *env, uint64_t *txn);

/*
 * Help a transaction or query of another thread, until xLeave().  A thread may help one in each environment,
 * and several of threads with views of their own (xView()): of such a thread it uses the views.
 * Until all have left, xend() and xendQuery() of the owner return EBUSY, and the transaction stays
 * open.  It may have failed already; then it goes on with what it sees, as its owner does.
 *
 * in   txn  as the owner got it from xTeam(), in this process.
 * ret  0; XAC_ENOINIT; XAC_ENOTXN: no open transaction has the number; XAC_EINTXN: the thread owns
 *      it, or has joined it already, or has a transaction of its own open in that environment; ENOMEM.
 */
XAC_API int xac_join(uint64_t txn);

/*
 * Help no more: leave the transaction that the thread has joined last.
 *
 * ret  0; XAC_ENOINIT; XAC_ENOTXN: the thread has joined none, or the transaction has been rolled back
 *      meanwhile, or this is a child of fork().
 */
XAC_API int xac_leave(void);

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xTeam(uint64_t *txn);
XAC_API int xJoin(uint64_t txn);
XAC_API int xLeave(void);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_TEAM_H */
