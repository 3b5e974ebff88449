/* SPDX-License-Identifier: MIT */
/*
 * view_scan.h -- views of a participant that is alone whose stores do not trap, but are found in
 * the page table at the end of the transaction.
 *
 * WHAT      While alone (alone.h) what has been touched stays readable, and nobody is there to
 *           conflict with, so it need not be known before the commit what is written.  In a
 *           view that is *scanned*, the kernel lets stores to readable pages through, and a
 *           scan of the page table finds them: for a store a third of what a trap costs, for
 *           each page that is there, stored to or not, two nanoseconds and twice a transaction.
 *           So it pays for transactions that write many of the pages that are there.  First
 *           accesses to absent pages trap as before.
 * WHEN      The account of a view says what the other way would have saved lately; it changes
 *           sides when that is as much as changing costs, so that it never costs more than twice
 *           what the better way would have.  XAC_ENGINE=scan: always while alone; uffd: never.
 * NOT HERE  System calls (fault_uffd.c); warm pages, of which a scanned view has none.
 * STRAY     A store outside a transaction, or in a query, stops the program at the next
 *           begin, or the end of the query.
 * THREADS   the one that has the context's turn.
 *
 * INVARIANTS
 *   (1) A scanned view is alone, has no aliases, and its stores are not announced
 *       (XAC_OPT_CHECKING).
 *   (2) Of a scanned view, every page is protected that has not been stored to since the last
 *       scan; a dirty page may be protected, too.
 *   (3) If a scan fails, nothing is committed of what it was to find, all pages are dropped,
 *       and the view is not scanned again.
 */
#ifndef XAC_VIEW_SCAN_H
#define XAC_VIEW_SCAN_H

#include "view/view.h"

/* xac_scan_begin -- an outermost transaction or query begins, and nobody has come since the
   last: stop the program if something was stored meanwhile; take the cheaper way from now on.
   ret 0 or errno. */
int xac_scan_begin(struct xac_view *view);

/* xac_scan_gather -- pages of a scanned view that have been stored to are dirty, and in the set.
   ret 0; ENOSPC; errno. */
int xac_scan_gather(struct xac_view *view);

/* xac_scan_pause -- in a transaction, when its stores have been gathered: from here on they trap.  ret 0, or
   errno, and the view has no pages any more. */
int xac_scan_pause(struct xac_view *view);

/* xac_scan_pause_beside -- gather them, and pause, beside threads that may store to the view at any moment
   (team.h): it has no access meanwhile.  ret as above, and of xac_scan_gather. */
int xac_scan_pause_beside(struct xac_view *view);

/* xac_view_gather -- before the commit, or a query inside the transaction: pages that have been
   stored to without a trap, being warm or in a view that is scanned, are dirty, and in the set.
   ret 0 or errno. */
static inline int
xac_view_gather(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc = 0;

    xac_assert(!ctx->is_query);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        if (v->area.is_scanned)
            rc = xac_scan_gather(v);
        else if (v->staying.n_warm > 0)
            rc = xac_warm_gather(env, ctx, v);
    }
    return rc;
}

/* xac_scan_end_query -- stop the program if something was stored in the query that ends.  If
   that cannot be found out, the transaction around it will abort, and all pages are dropped
   at the end. */
void xac_scan_end_query(struct xac_ctx *ctx);

/* xac_scan_account -- a transaction or query has ended. */
void xac_scan_account(struct xac_view *view);

/* xac_scan_stop -- of a view that has no pages; ret 0 or errno. */
int xac_scan_stop(struct xac_view *view);

#endif /* XAC_VIEW_SCAN_H */
