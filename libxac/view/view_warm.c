/* SPDX-License-Identifier: MIT */
/*
 * view_warm.c -- pages that a participant which is alone writes again and again.
 *
 * A trap costs as much as comparing a page a dozen times.  So a page that has been written by
 * two of the last commits stays writable, and whether a transaction has stored to it is found
 * by comparing it with its version: at the end of each transaction, and at the begin
 * of each, for a store in between is a mistake of the program and must not be committed.
 * They are few, so that the comparisons cost less than a trap; and only pages that are memory
 * (fault_engine.h, `fills`) and known to one view.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/team.h"
#include "view/fault.h"
#include "view/view.h"

/*
 * shown -- the page as the transaction sees it without its own stores; NULL with errno.  Not
 * the newest version: a newcomer may be committing, and the transaction has failed then.
 */
static const uint8_t *
shown(const struct xac_view *v, uint64_t page_no)
{
    struct xac_file *file = xac_file_at(v->env, v->file);
    uint64_t parent =
        atomic_load_explicit(&v->ctx->txn->parent, memory_order_relaxed); /* our own */

    xac_assert(page_no < v->area.n_pages);
    return xac_view_base_bytes(v, page_no,
                               xac_ptab_find(&v->env->shm, &file->root,
                                             v->area.first + page_no),
                               parent);
}

int
xac_warm_check(const struct xac_view *v, uint64_t page_no, bool in_query)
{
    const uint8_t *was = shown(v, page_no);

    xac_assert(page_no < v->area.n_pages);
    if (was == NULL)
        return errno;
    if (memcmp(xac_area_at(&v->area, page_no), was, v->area.page_size) != 0)
        xac_fault_stray(v, page_no, was, in_query);
    return 0;
}

/* is_changed -- has a warm page been stored to?  ret 0 or errno. */
static int
is_changed(const struct xac_view *v, uint64_t page_no, bool *isp)
{
    const uint8_t *was = shown(v, page_no);

    xac_assert(page_no < v->area.n_pages);
    if (was == NULL)
        return errno;
    *isp = memcmp(xac_area_at(&v->area, page_no), was, v->area.page_size) != 0;
    return 0;
}

/* remove_at -- one page is not warm any more; its state and access are the caller's. */
static void
remove_at(struct xac_view *v, uint32_t i)
{
    xac_assert(i < v->staying.n_warm);
    v->staying.n_warm--;
    v->staying.warm[i] = v->staying.warm[v->staying.n_warm];
    v->staying.idle[i] = v->staying.idle[v->staying.n_warm];
}

/* cool -- a warm page that has not been stored to is only readable.  If that fails, it stays warm: were it taken
   for readable, nobody would notice the next store to it. */
static int
cool(struct xac_view *v, uint32_t i)
{
    uint64_t page_no = v->staying.warm[i];
    int rc;

    xac_assert(i < v->staying.n_warm);
    xac_assert(v->area.ops->fills != NULL);
    rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_READ);
    if (rc != 0)
        return rc;
    remove_at(v, i);
    v->pages.at[page_no].state = XAC_PAGE_READABLE;
    return 0;
}

/* check -- at the begin: nobody has stored to a warm page since the last end. */
static int
check(struct xac_view *v)
{
    int rc = 0;

    xac_assert(v->staying.n_warm <= XAC_WARM_MAX);
    for (uint32_t i = 0; i < v->staying.n_warm && rc == 0; i++)
        rc = xac_warm_check(v, v->staying.warm[i], false);
    return rc;
}

int
xac_warm_gather(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v)
{
    bool is = false;
    int rc = 0;

    xac_assert(v->staying.n_warm <= XAC_WARM_MAX);
    for (uint32_t i = 0; i < v->staying.n_warm && rc == 0; i++) {
        uint64_t page_no = v->staying.warm[i];

        if (v->pages.at[page_no].state == XAC_PAGE_DIRTY)
            continue;
        v->staying.idle[i]++;
        rc = is_changed(v, page_no, &is);
        /* Beside other threads it may be stored to right after the look. */
        if (rc != 0 || !(is || xac_team_is_on(ctx)))
            continue;
        if (xac_view_register(env, ctx, v, page_no, true) == NULL)
            return xac_view_unregistered(ctx);
        v->staying.idle[i] = 0;
        v->pages.at[page_no].state = XAC_PAGE_DIRTY;
    }
    return rc;
}

int
xac_warm_begin(struct xac_view *v, bool is_query)
{
    int rc = check(v);

    xac_assert(v->staying.is_alone);
    return rc == 0 && is_query ? xac_warm_cool(v) : rc;
}

int
xac_warm_cool(struct xac_view *v)
{
    int rc = 0;

    while (v->staying.n_warm > 0 && rc == 0) {
        uint32_t last = v->staying.n_warm - 1;

        if (v->pages.at[v->staying.warm[last]].state == XAC_PAGE_DIRTY)
            remove_at(v, last);
        else
            rc = cool(v, last);
    }
    xac_assert(rc != 0 || v->staying.n_warm == 0);
    return rc;
}

void
xac_warm_forget(struct xac_view *v, uint64_t page_no)
{
    for (uint32_t i = 0; i < v->staying.n_warm; i++) {
        if (v->staying.warm[i] == page_no) {
            remove_at(v, i);
            return;
        }
    }
}

void
xac_warm_forget_range(struct xac_view *v, uint64_t first, uint64_t end)
{
    xac_assert(first < end);
    for (uint32_t i = v->staying.n_warm; i-- > 0;) {
        if (v->staying.warm[i] < first || v->staying.warm[i] >= end)
            continue;
        v->pages.at[v->staying.warm[i]].state = XAC_PAGE_READABLE;
        remove_at(v, i);
    }
}

bool
xac_warm_wanted(struct xac_view *v, uint64_t page_no)
{
    bool is_again = false;

    xac_assert(page_no < v->area.n_pages);
    for (uint32_t i = 0; i < v->staying.n_warm; i++) {
        if (v->staying.warm[i] == page_no)
            return true;
    }
    if (v->area.ops->maps != NULL)
        return false;
    for (uint32_t i = 0; i < XAC_RECENT_MAX; i++)
        is_again = is_again || v->staying.recent[i] == page_no + 1;
    v->staying.recent[v->staying.next_recent++ % XAC_RECENT_MAX] = page_no + 1;
    if (!is_again || v->staying.n_warm == XAC_WARM_MAX)
        return false;
    v->staying.idle[v->staying.n_warm] = 0;
    v->staying.warm[v->staying.n_warm++] = page_no;
    xac_assert(v->staying.n_warm <= XAC_WARM_MAX);
    return true;
}

int
xac_warm_end(struct xac_view *v, bool is_committed)
{
    bool is = false;
    int rc = 0;

    xac_assert(v->staying.n_warm <= XAC_WARM_MAX);
    for (uint32_t i = v->staying.n_warm; i-- > 0 && rc == 0;) {
        uint64_t page_no = v->staying.warm[i];

        if (is_committed && v->staying.idle[i] <= XAC_WARM_FOR)
            continue;
        if (!is_committed)
            rc = is_changed(v, page_no, &is);
        if (rc == 0 && is) {
            rc = xac_view_hide(v, page_no);
        } else if (rc == 0) {
            rc = cool(v, i);
        }
        is = false;
    }
    return rc;
}
