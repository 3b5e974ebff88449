/* SPDX-License-Identifier: MIT */
/*
 * view_diff.h -- what differs between two states in the pages of a view.
 *
 * WHAT      Compares the versions of a page that belong to two states.
 * NOT HERE  Holding the states: the caller does (snapshots.h).
 * OWNER     Nobody.  By the thread that has the turn of the view's context, outside of transactions.
 * LOCK      None.
 * HANDLER   Not for the fault handler.
 *
 * INVARIANT
 *   (1) The view's memory is not touched.
 */
#ifndef XAC_VIEW_DIFF_H
#define XAC_VIEW_DIFF_H

#include <stdint.h>

#include <xac.h>

struct xac_view;

typedef int xac_diff_fn(void *arg, const struct xac_change *change);

/* xac_view_diff -- call fn for each range.  ret 0, what fn has returned if that is not 0, or an error with
   words. */
int xac_view_diff(struct xac_view *v, uint64_t from, uint64_t to, xac_diff_fn *fn,
                  void *arg);

#endif /* XAC_VIEW_DIFF_H */
