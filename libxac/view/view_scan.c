/* SPDX-License-Identifier: MIT */
/*
 * view_scan.c -- see view_scan.h.
 */
#include <config.h>

#include "view/view_scan.h"

#include <errno.h>

#include "base/sys.h"
#include "shared/env_state.h"
#include "txn/team.h"
#include "view/view.h"

/* What is saved and spent, ns, as in doc/performance.md ("Without traps"); only their ratios
   matter: a trapped store more than one that is found; a transaction, and each page that is
   there, scanned twice; going to the other way, and each page that is there.  Holes of a
   terabyte take 1.5 ms to walk over. */
#define TRAP_NS        2000
#define SCANS_NS       2000
#define SCANS_PAGE_NS  4
#define CHANGE_NS      20000
#define CHANGE_PAGE_NS 150
#define HOLES_PER_NS   90

/* Begins after a savepoint at which a view is not scanned: going to the other way for a savepoint costs as
   much as going back. */
#define UNSCANNED 1024

/* may_be -- invariant (1). */
static bool
may_be(const struct xac_view *v)
{
    return v->staying.is_alone && v->area.ops->fills != NULL && !v->staying.is_unscannable
           && v->aliases == NULL && v->ctx->outofcore == NULL && v->area.twin == NULL
           && v->env->options.announces == 0 && xac_engine_scanning() != XAC_SCAN_NEVER;
}

/* give_up -- invariant (3); ret 0 or errno. */
static int
give_up(struct xac_view *v)
{
    xac_assert(!v->staying.is_unscannable);
    v->staying.is_unscannable = true;
    return xac_view_leave_alone(v);
}

/* change -- to the other way; ret 0 or errno. */
static int
change(struct xac_view *v, bool is_scanned)
{
    int rc = xac_warm_cool(v);

    xac_assert(v->area.ops->fills != NULL);
    v->staying.account = 0;
    if (rc != 0 || v->area.ops->fills->scan_set(&v->area, is_scanned) == 0)
        return rc;
    rc = give_up(v);
    return rc == 0 ? xac_engine_moved(&v->area) : rc;
}

int
xac_scan_pause(struct xac_view *v)
{
    int rc;

    xac_assert(v->area.is_scanned);
    v->staying.account = 0;
    v->staying.n_unscanned = UNSCANNED;
    rc = v->area.ops->fills->scan_set(&v->area, false);
    if (rc == 0)
        return 0;
    v->ctx->is_unrecorded = true; /* nobody knows any more which pages it has touched */
    (void)give_up(v);
    /* If that fails, so does every access.  Beside other threads the table of areas does not change: one that
       is in the handler waits for the lock of the team. */
    (void)(xac_team_is_on(v->ctx) ? v->area.ops->rejoin(&v->area)
                                  : xac_engine_moved(&v->area));
    return rc;
}

int
xac_scan_pause_beside(struct xac_view *v)
{
    int rc;

    xac_assert(xac_team_is_on(v->ctx));
    if (xac_sys.mprotect(v->area.base, v->area.length, PROT_NONE) != 0)
        return errno;
    rc = xac_scan_gather(v);
    if (rc == 0)
        rc = xac_scan_pause(v);
    if (xac_sys.mprotect(v->area.base, v->area.length, PROT_READ | PROT_WRITE) != 0
        && rc == 0)
        rc = errno;
    return rc;
}

/* walk -- the pages that have been stored to since the last scan; ret 0, what visit said, or
   errno. */
static int
walk(struct xac_view *v, int (*visit)(struct xac_view *v, uint64_t page_no))
{
    struct xac_page_range range[XAC_BATCH_MAX];
    uint64_t from = 0;
    size_t n = 0;
    int rc = 0;

    while (from < v->area.n_pages && rc == 0) {
        uint64_t was = from;

        rc = v->area.ops->fills->scan(&v->area, &from, range, XAC_BATCH_MAX, &n);
        xac_require(rc != 0 || from > was);
        for (size_t i = 0; i < n && rc == 0; i++)
            for (uint64_t p = 0; p < range[i].n && rc == 0; p++)
                rc = visit(v, range[i].first + p);
    }
    return rc;
}

static int
check_outside(struct xac_view *v, uint64_t page_no)
{
    return xac_warm_check(v, page_no, false);
}

/* check_in_query -- pages that the transaction around it has written may change. */
static int
check_in_query(struct xac_view *v, uint64_t page_no)
{
    return v->pages.at[page_no].state == XAC_PAGE_READABLE
               ? xac_warm_check(v, page_no, true)
               : 0;
}

static int
gather_page(struct xac_view *v, uint64_t page_no)
{
    struct xac_view_page *p = &v->pages.at[page_no];

    if (p->state != XAC_PAGE_READABLE)
        return 0;
    if (xac_view_register(v->env, v->ctx, v, page_no, true) == NULL)
        return xac_view_unregistered(v->ctx);
    p->copy = XAC_COPY_UNKNOWN;
    p->state = XAC_PAGE_DIRTY;
    v->staying.n_stores++;
    return 0;
}

/* wanted -- shall it be scanned from now on? */
static bool
wanted(const struct xac_view *v)
{
    int64_t cost = CHANGE_NS + (int64_t)v->pages.n_copies * CHANGE_PAGE_NS
                   + (int64_t)(v->area.n_pages / HOLES_PER_NS);

    if (!may_be(v))
        return false;
    if (xac_engine_scanning() == XAC_SCAN_ALWAYS)
        return true;
    return v->area.is_scanned != (v->staying.account > cost);
}

int
xac_scan_begin(struct xac_view *v)
{
    if (v->area.is_scanned && walk(v, check_outside) != 0)
        return give_up(v);
    if (v->staying.n_unscanned > 0 && xac_engine_scanning() == XAC_SCAN_IF_CHEAPER) {
        v->staying.n_unscanned--;
        v->staying.account = 0;
        return 0;
    }
    return wanted(v) == v->area.is_scanned ? 0 : change(v, !v->area.is_scanned);
}

int
xac_scan_gather(struct xac_view *v)
{
    int rc = walk(v, gather_page);

    v->staying.is_unscannable = rc != 0 && v->ctx->lacking != XAC_LACKS_REGION;
    return rc;
}

void
xac_scan_end_query(struct xac_ctx *ctx)
{
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        int rc = v->area.is_scanned ? walk(v, check_in_query) : 0;

        if (rc == 0)
            continue;
        v->staying.is_unscannable = true;
        ctx->error = rc;
    }
}

void
xac_scan_account(struct xac_view *v)
{
    /* Some would be warm. */
    int64_t n = (int64_t)v->staying.n_stores - (v->area.is_scanned ? XAC_WARM_MAX : 0);
    int64_t saved = (n < 0 ? 0 : n) * TRAP_NS - SCANS_NS
                    - (int64_t)v->pages.n_copies * SCANS_PAGE_NS
                    - (int64_t)(v->area.n_pages / HOLES_PER_NS);

    v->staying.n_stores = 0;
    v->staying.account += v->area.is_scanned ? -saved : saved;
    if (v->staying.account < 0)
        v->staying.account = 0;
}

int
xac_scan_stop(struct xac_view *v)
{
    v->staying.account = 0;
    if (v->area.ops->fills->scan_set(&v->area, false) == 0)
        return 0;
    return xac_engine_moved(&v->area);
}
