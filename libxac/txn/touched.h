/* SPDX-License-Identifier: MIT */
/*
 * touched.h -- the table of what a thread's transactions have announced by xac_touch.h.
 *
 * WHAT      Gives each thread its table when a transaction begins, and makes it void at each begin and
 *           end.  Only a process that has called xac_touch_load() or xac_touch_store() gets tables:
 *           the first transaction that does so has none.  A thread that has joined a transaction (team.h)
 *           announces like its owner.
 * NOT HERE  Announcing (api_touch.c).  The layout and its invariants (xac_touch.h).
 * OWNER     The thread.  It is freed when the thread ends.
 * THREADS   Any, each for itself.  Not the fault handler.
 */
#ifndef XAC_TOUCHED_H
#define XAC_TOUCHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <xac_touch.h>

#include "base/annot.h"
#include "txn/team.h"

struct xac_ctx;

/* Some thread announces accesses.  Relaxed: nothing is published with it. */
extern _Atomic bool xac_touched_is_used;

/* Of a thread that has no table: nothing is noted in it, ever. */
extern struct xac_touched xac_touched_none;

/* xac_touched_renew_table -- as below, in a process that uses tables. */
void xac_touched_renew_table(const struct xac_ctx *opened);

/* xac_touched_renew -- the list of the thread's open transactions has changed: xac_ctx_opened; or the
   list of those that it has joined. */
static inline void
xac_touched_renew(const struct xac_ctx *opened)
{
    if (atomic_load_explicit(&xac_touched_is_used, memory_order_relaxed)) {
        xac_touched_renew_table(opened);
        return;
    }
    xac_assert(xac_touched_now == NULL || xac_touched_now == &xac_touched_none);
    /* Relaxed: that the thread itself has joined one is seen. */
    xac_touched_now =
        opened != NULL
                || (atomic_load_explicit(&xac_team_n_joined, memory_order_relaxed) != 0
                    && xac_team_mine() != NULL)
            ? &xac_touched_none
            : NULL;
}

/* xac_touched_ended -- the thread ends, and has no transaction open. */
void xac_touched_ended(void);

/* xac_touched_note -- what lies from addr on, at least one byte, needs no announcement any more. */
void xac_touched_note(const void *addr, size_t length, bool is_write);

#endif /* XAC_TOUCHED_H */
