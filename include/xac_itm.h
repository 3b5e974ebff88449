/* SPDX-License-Identifier: MIT */
/*
 * xac_itm.h -- libxac: the transactions of the language, gcc -fgnu-tm.
 *
 *     #include <xac_itm.h>
 *
 *     __transaction_atomic { account[0] -= 10; account[1] += 10; }
 *
 * Compile and link with pkg-config --cflags --libs libxac-itm.  If account lies in a segment of the
 * environment of xInit(), the block is a transaction of libxac: serializable, across processes, and
 * durable if the environment is.  A block that only loads is a query.  It is run again
 * until it commits: local variables and all other memory are as before then.
 *
 * RULES
 *   (1) The threads of a process share its mappings: ordinary pointers are valid in all of them.  They
 *       run one language transaction at a time, or side by side: see xac_itm_side_by_side().
 *   (2) Inside of xbegin() and xend() a block is a part of that transaction, and runs once.
 *   (3) xMalloc(), xFree() and xRoot() may be called inside.  xFree() frees at the end of the
 *       transaction, and returns 0.
 *   (4) A transaction that has become irrevocable (__transaction_relaxed that calls a function
 *       without a transactional version) cannot be run again.  If it cannot commit, the program is
 *       stopped.  That happens under XAC_POLICY_SERIAL, the default, only if there is no room, or if
 *       the process has been stopped in its turn.
 *   (5) If there is no environment, transactions work on ordinary memory only.
 * doc/language-transactions.md says more.
 */
#ifndef XAC_ITM_H
#define XAC_ITM_H

#include "xac.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What blocks call instead of the functions of both names.  Each is declared once: gcc forgets an
   earlier declaration. */
#ifdef XAC_NO_SHORT_NAMES
# define XAC_ITM_FOR(name, short_name) \
  __attribute__((transaction_pure, transaction_wrap(name)))
#else
# define XAC_ITM_FOR(name, short_name) \
  __attribute__((transaction_pure, transaction_wrap(name), transaction_wrap(short_name)))
#endif
void *xac_itm_malloc(void *base, size_t size) XAC_ITM_FOR(xac_malloc, xMalloc);
int xac_itm_free(void *base, void *p) XAC_ITM_FOR(xac_free, xFree);
void *xac_itm_root(void *base) XAC_ITM_FOR(xac_root, xRoot);

/*
 * Choose what happens when a transaction meets an error that another attempt does not cure:
 * no room, for example.  Unless the program has chosen, it is stopped with words.
 *
 * in   fn  called with the code, by the thread of the transaction, outside of it: ENOSPC and
 *          what else xbegin() and xend() return.  When it returns after XAC_ENOTDURABLE,
 *          XAC_EUNCERTAIN or XAC_EPOISONED, the program goes on: the transaction has
 *          taken effect, or nobody knows (see xend).  After other codes the transaction has been rolled
 *          back and is run again.  NULL: stop the program.
 */
void xac_itm_on_failure(void (*fn)(int code));

/*
 * Choose that blocks of several threads run side by side, each as a transaction of its own, from the
 * process's first block on.  Pointers stay the same.  In exchange functions that are
 * declared transaction_pure must not touch segments, and libxac's functions other than those above
 * must not be given addresses of segments in a block: its bytes lie elsewhere meanwhile.
 *
 * ret  0; EBUSY: the process has run a block already.
 */
int xac_itm_side_by_side(void);

#ifdef __cplusplus
}
#endif

#endif /* XAC_ITM_H */
