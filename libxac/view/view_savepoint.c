/* SPDX-License-Identifier: MIT */
/*
 * view_savepoint.c -- savepoints, as far as pages of views are concerned: see saved.h and view.h.
 *
 * A page that the transaction has written is dirty, open or closed.  A closed one is protected again, and
 * the trap of the next store opens it.  At a savepoint those are protected that have been opened since the
 * one before, neighbours by one call; so each store that is noticed pays for that once, and a
 * savepoint that follows another one costs nothing for what was written earlier.  The kernel walks over a page
 * in a hundredth of the time that its first store took.
 *
 * If the program has promised to announce all stores, nothing is protected: a closed page does not count as
 * announced.
 *
 * Beside other threads (team.h) all of this is done with the lock of the team.  A page is protected, in all
 * views, from before it is closed until its image has been kept.  So no thread stores to it meanwhile: it traps,
 * and waits for the lock.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "shared/env_state.h"
#include "store/outofcore.h"
#include "txn/ctx.h"
#include "txn/saved.h"
#include "txn/team.h"
#include "view/view.h"
#include "view/view_scan.h"

/* Pages that the kernel walks over in the time of protecting one range by a call of its own. */
#define WALK_PER_PROTECT 16

/* With an engine that maps, when mappings are running out, a page is opened together with those of its
   neighbours in a piece of this size that are closed, too. */
#define OPENED_TOGETHER 512

/* entry_of -- the number of the page's entry + 1, or 0. */
XAC_SIGSAFE static uint32_t
entry_of(const struct xac_view *v, uint64_t page_no)
{
    uint32_t entry = v->pages.at[page_no].entry;

    xac_assert(page_no < v->area.n_pages);
    return entry != 0 || v->aliases == NULL ? entry : xac_alias_entry(v, page_no);
}

/* is_guarded -- are closed pages protected? */
XAC_SIGSAFE static bool
is_guarded(const struct xac_view *v)
{
    return xac_env_checking(v->env) != XAC_CHECKING_TRUSTED;
}

XAC_SIGSAFE bool
xac_view_is_shut(const struct xac_view *v, uint64_t page_no)
{
    uint32_t entry = entry_of(v, page_no);

    xac_assert(v->ctx->save_epoch != 0);
    return entry != 0 && !xac_saved_is_open(v->ctx, entry - 1);
}

XAC_SIGSAFE bool
xac_view_is_guarded(const struct xac_view *v, uint64_t page_no)
{
    return xac_view_is_closed(v, page_no) && is_guarded(v);
}

XAC_SIGSAFE enum xac_protection
xac_view_written_prot(const struct xac_view *v, uint64_t page_no)
{
    xac_assert(page_no < v->area.n_pages);
    return xac_unlikely(v->ctx->save_epoch != 0) && is_guarded(v)
                   && xac_view_is_shut(v, page_no)
               ? XAC_PROT_READ
               : XAC_PROT_WRITE;
}

/* fail -- the transaction cannot go on with its savepoints; ret the error. */
XAC_SIGSAFE static int
fail(struct xac_ctx *ctx, int error, uint64_t page_id)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    xac_assert(error != 0);
    xac_assert(ctx->save_epoch != 0);
    ctx->saved->is_lost = true;
    if (ctx->error == 0) {
        ctx->error = error;
        ctx->error_lacking = XAC_LACKS_SAVED;
        ctx->error_page = page_id;
    }
    (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_RESOURCE, ctx->env->pid, 0);
    return error;
}

/* ---- Stores ---------------------------------------------------------------------------- */

XAC_SIGSAFE void
xac_view_first_store(struct xac_view *v, uint64_t page_no)
{
    uint32_t entry = entry_of(v, page_no);
    /* Of a page that is updated in place no older version need be anywhere. */
    const uint8_t *bytes = v->area.in_place >= 0 ? xac_area_at(&v->area, page_no) : NULL;
    int rc = entry != 0 ? xac_saved_open(v->ctx, entry - 1, bytes) : 0;

    xac_assert(entry != 0 || v->ctx->is_unrecorded);
    if (rc != 0)
        (void)fail(v->ctx, rc, xac_page_id(v->file, v->area.first + page_no));
}

/* is_written_shut -- has a page been written, here or in an alias, and is it closed? */
XAC_SIGSAFE static bool
is_written_shut(const struct xac_view *v, uint64_t page_no)
{
    xac_assert(page_no < v->area.n_pages);
    return (xac_view_is_written(&v->pages.at[page_no])
            || (v->aliases != NULL && xac_alias_is_dirty(v, page_no)))
           && xac_view_is_shut(v, page_no);
}

/* keep -- such a page is about to be stored to: have it open.  In this view the caller gives the access. */
XAC_SIGSAFE static int
keep(struct xac_view *v, uint64_t page_no)
{
    struct xac_ctx *ctx = v->ctx;
    uint64_t id = xac_page_id(v->file, v->area.first + page_no);
    const uint8_t *bytes = xac_view_working_copy(ctx, id);
    int rc;

    xac_assert(entry_of(v, page_no) != 0);
    if (bytes == NULL)
        return errno;
    rc = xac_saved_open(ctx, entry_of(v, page_no) - 1, bytes);
    if (rc != 0)
        (void)fail(ctx, rc, id);
    rc = 0;
    for (struct xac_view *w = xac_view_next(ctx, NULL, id);
         v->aliases != NULL && is_guarded(v) && w != NULL && rc == 0;
         w = xac_view_next(ctx, w, id)) {
        if (w != v && xac_view_page(w, id)->state == XAC_PAGE_DIRTY)
            rc = w->area.ops->protect(&w->area, xac_page_no(id) - w->area.first, 1,
                                      XAC_PROT_WRITE);
    }
    return rc;
}

XAC_SIGSAFE int
xac_view_keep_closed(struct xac_view *v, uint64_t first, uint64_t end)
{
    int rc = 0;

    xac_assert(first < end);
    xac_assert(end <= v->area.n_pages);
    for (uint64_t p = first; p < end && rc == 0; p++)
        rc = is_written_shut(v, p) ? keep(v, p) : 0;
    return rc;
}

XAC_SIGSAFE int
xac_view_open_again(struct xac_view *v, uint64_t first, uint64_t end)
{
    int rc = xac_view_keep_closed(v, first, end);

    xac_assert(v->ctx->save_epoch != 0);
    if (rc != 0 || !is_guarded(v))
        return rc;
    return v->area.ops->protect(&v->area, first, end - first, XAC_PROT_WRITE);
}

XAC_SIGSAFE int
xac_view_store_again(struct xac_view *v, uint64_t page_no)
{
    uint64_t first = page_no, end = page_no + 1, low, high;

    xac_assert(xac_view_is_closed(v, page_no));
    if (v->area.ops->maps == NULL || v->aliases != NULL
        || ++v->ctx->n_islands <= v->ctx->islands_max)
        return xac_view_open_again(v, first, end);
    low = page_no / OPENED_TOGETHER * OPENED_TOGETHER;
    high =
        low + OPENED_TOGETHER < v->area.n_pages ? low + OPENED_TOGETHER : v->area.n_pages;
    while (first > low && xac_view_is_closed(v, first - 1))
        first--;
    while (end < high && xac_view_is_closed(v, end))
        end++;
    xac_assert(first <= page_no && page_no < end);
    return xac_view_open_again(v, first, end);
}

XAC_SIGSAFE int
xac_view_before_show(struct xac_view *v, uint64_t page_no, bool is_write, bool *is_donep)
{
    *is_donep = false;
    xac_assert(v->ctx->save_epoch != 0);
    if (!is_write || !is_written_shut(v, page_no))
        return 0;
    if (v->pages.at[page_no].state != XAC_PAGE_DIRTY)
        return keep(v, page_no);
    *is_donep = true;
    return xac_view_store_again(v, page_no);
}

XAC_SIGSAFE int
xac_view_after_show(struct xac_view *v, uint64_t page_no, bool is_write)
{
    xac_assert(v->ctx->save_epoch != 0);
    if (is_write)
        xac_view_first_store(v, page_no); /* nothing, if it is open */
    else if (xac_view_is_guarded(v, page_no))
        return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_READ);
    return 0;
}

/* ---- Closing --------------------------------------------------------------------------- */

/* dirty_at -- of the i-th page that may be open: its number in the view; UINT64_MAX if it is not dirty there. */
static uint64_t
dirty_at(const struct xac_view *v, uint64_t i)
{
    const struct xac_ctx *ctx = v->ctx;
    uint64_t index = ctx->save_epoch == 0 ? i : xac_saved_opened(ctx->saved, i);
    uint64_t id = xac_entry_page_id(ctx->env, xac_set_entry(ctx, index));

    xac_assert(index < ctx->n_entries);
    return xac_view_shows(v, id) && xac_view_page(v, id)->state == XAC_PAGE_DIRTY
               ? xac_page_no(id) - v->area.first
               : UINT64_MAX;
}

/* protect_runs -- the dirty ones of the n pages that may be open, neighbours by one call. */
static int
protect_runs(struct xac_view *v, uint64_t n)
{
    uint64_t first = 0, end = 0;
    int rc = 0;

    for (uint64_t i = 0; i < n && rc == 0; i++) {
        uint64_t page_no = dirty_at(v, i);

        if (page_no == UINT64_MAX)
            continue;
        if (page_no == end && end > first) {
            end++;
            continue;
        }
        if (end > first)
            rc = v->area.ops->protect(&v->area, first, end - first, XAC_PROT_READ);
        first = page_no;
        end = page_no + 1;
    }
    xac_assert(end <= v->area.n_pages);
    return rc == 0 && end > first
               ? v->area.ops->protect(&v->area, first, end - first, XAC_PROT_READ)
               : rc;
}

/*
 * close_view -- protect a view's pages that may be open; ret 0 or errno.
 *
 * Where pages are memory of the view's own, that is one call over all between the first and the last of them,
 * unless they lie far apart: what lies between is protected, or not there, or to be closed as well.
 */
static int
close_view(struct xac_view *v)
{
    const struct xac_ctx *ctx = v->ctx;
    bool is_first = ctx->save_epoch == 0;
    uint64_t n = is_first ? ctx->n_entries : ctx->saved->n_opened;
    uint64_t low = UINT64_MAX, high = 0;

    if (!is_guarded(v) || n == 0)
        return 0;
    if (v->area.ops->fills == NULL || xac_area_is_shared(&v->area))
        return protect_runs(v, n);
    if (is_first) {
        low = v->pages.low;
        high = v->pages.high;
    }
    for (uint64_t i = 0; !is_first && i < n; i++) {
        uint64_t page_no = dirty_at(v, i);

        if (page_no == UINT64_MAX)
            continue;
        low = page_no < low ? page_no : low;
        high = page_no >= high ? page_no + 1 : high;
    }
    if (low >= high)
        return 0;
    xac_assert(high <= v->area.n_pages);
    return (high - low) / WALK_PER_PROTECT <= n
               ? v->area.ops->protect(&v->area, low, high - low, XAC_PROT_READ)
               : protect_runs(v, n);
}

/* close_all -- no page is open from now on; ret 0 or errno, and then some are not protected. */
static int
close_all(struct xac_ctx *ctx)
{
    int rc = 0;

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = close_view(v);
    xac_saved_next_epoch(ctx);
    xac_touched_renew(xac_ctx_opened); /* what has been announced is to be so again */
    xac_assert(ctx->save_epoch != 0);
    return rc;
}

/* ---- Savepoints -------------------------------------------------------------------------- */

/* trap_stores -- from here on no store goes unnoticed: nothing is warm, or scanned.  ret 0 or errno. */
static int
trap_stores(struct xac_ctx *ctx)
{
    int rc = 0;

    xac_assert(ctx->save_epoch == 0);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        if (v->area.is_scanned && xac_team_is_on(ctx))
            rc = xac_scan_pause_beside(v);
    }
    if (rc == 0)
        rc = xac_view_gather(ctx->env, ctx);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        for (uint32_t i = 0; i < v->staying.n_warm; i++)
            xac_view_reach(v, v->staying.warm[i], v->staying.warm[i] + 1);
        rc = xac_warm_cool(v);
        if (rc == 0 && v->area.is_scanned)
            rc = xac_scan_pause(v);
    }
    return rc;
}

/* lost -- why there can be no savepoint, and no roll-back to one; 0. */
static int
lost(const struct xac_ctx *ctx)
{
    xac_assert(!ctx->is_query);
    if (!ctx->is_unrecorded && (ctx->save_epoch == 0 || !ctx->saved->is_lost))
        return 0;
    return ctx->error != 0 ? ctx->error : ENOMEM;
}

int
xac_view_savepoint(struct xac_ctx *ctx, uint64_t mark)
{
    int rc = lost(ctx);

    if (rc == 0 && ctx->save_epoch == 0)
        rc = xac_saved_start(ctx);
    if (rc == 0)
        rc = xac_saved_reserve(ctx->saved);
    if (rc != 0)
        return rc;
    if (ctx->save_epoch == 0 && (rc = trap_stores(ctx)) != 0)
        xac_saved_next_epoch(ctx);
    else
        rc = close_all(ctx);
    if (rc != 0)
        return fail(ctx, rc, 0);
    xac_saved_push(ctx->saved, mark);
    xac_assert(ctx->saved->n_opened == 0);
    return 0;
}

/* restore -- the page of an image is as it was; ret 0 or errno. */
static int
restore(struct xac_ctx *ctx, const struct xac_saved_image *image)
{
    struct xac_env *env = ctx->env;
    const struct xac_entry *e = xac_set_entry(ctx, image->entry);
    const struct xac_page *page = xac_entry_page(env, e);
    uint64_t id = xac_entry_page_id(env, e);
    uint64_t parent = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    struct xac_view *v = xac_view_written(ctx, id);
    uint64_t page_no = xac_page_no(id) - v->area.first;
    const uint8_t *bytes = image->place != 0
                               ? xac_saved_bytes(ctx->saved, image)
                               : xac_view_base_bytes(v, page_no, page, parent);
    int rc = 0;

    if (bytes == NULL)
        return errno;
    if (v->pages.at[page_no].state == XAC_PAGE_SPILLED)
        return xac_outofcore_spill_again(v, page_no, bytes);
    xac_assert(v->pages.at[page_no].state == XAC_PAGE_DIRTY);
    if (xac_view_is_guarded(v, page_no))
        rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE);
    if (rc == 0)
        rc = xac_saved_open_again(ctx, image->entry);
    if (rc == 0)
        memcpy(xac_area_at(&v->area, page_no), bytes, v->area.page_size);
    return rc;
}

int
xac_view_roll_back(struct xac_ctx *ctx, uint64_t level)
{
    struct xac_saved *s = ctx->saved;
    int rc = lost(ctx);

    xac_assert(level < s->n_levels);
    if (rc != 0)
        return rc;
    for (uint64_t i = s->n_images;
         i-- > xac_saved_level_at(s, level)->first && rc == 0;) {
        if (xac_saved_is_oldest(s, level, i))
            rc = restore(ctx, xac_saved_image_at(s, i));
    }
    if (rc == 0) {
        xac_saved_drop(s, level);
        rc = close_all(ctx);
    }
    return rc == 0 ? 0 : fail(ctx, rc, 0);
}
