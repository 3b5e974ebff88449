/* SPDX-License-Identifier: MIT */
/*
 * view_end.c -- what pages show after a transaction: see view.h.
 *
 * A system call costs about a microsecond, a page that the kernel comes to on its way about a
 * tenth of that if it is there.  So what lies closely enough together is taken back, or
 * protected again, by one call over all that lies between; that is harmless where those
 * pages have no access anyway, or have the access that is being given.
 */
#include <config.h>

#include <errno.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shared/env_state.h"
#include "store/outofcore.h"
#include "txn/saved.h"
#include "view/view.h"
#include "view/view_scan.h"

/* Pages that the kernel walks over in the time of: protecting one range by a call of its own;
   dropping one range among others of a call (doc/performance.md). */
#define WALK_PER_PROTECT 6
#define WALK_PER_DROP    4

/* Calls saved that are worth the traps of the warm pages. */
#define RUNS_FOR_WARM (8 * XAC_WARM_MAX)

/* is_keeping -- do the pages of the query that ends stay? */
static bool
is_keeping(const struct xac_view *v)
{
    xac_assert(v->area.ops != NULL);
    return v->ctx->keeps && v->area.ops->fills != NULL && !xac_area_shares(&v->area);
}

/* ---- Alone: written pages stay, protected or not ------------------------------------- */

static void
span_add(struct xac_span *s, uint64_t page_no)
{
    if (s->n_runs == 0)
        *s = (struct xac_span){.low = page_no, .high = page_no, .next = UINT64_MAX};
    s->n_runs += page_no != s->next;
    s->next = page_no + 1;
    s->low = page_no < s->low ? page_no : s->low;
    s->high = page_no >= s->high ? page_no + 1 : s->high;
    xac_assert(s->low < s->high);
    xac_assert(s->n_runs > 0);
}

/* stay_written -- a dirty page now holds its newest version, and stays. */
static int
stay_written(struct xac_view *v, uint64_t page_no)
{
    struct xac_view_page *p = &v->pages.at[page_no];

    xac_assert(v->staying.is_alone);
    xac_assert(page_no < v->area.n_pages);
    if (xac_env_checking(v->env) == XAC_CHECKING_TRUSTED && v->area.ops->fills != NULL
        && v->ctx->outofcore == NULL) {
        p->state = XAC_PAGE_LOOSE;
        return 0;
    }
    if (v->area.is_scanned) { /* protected already */
        p->state = XAC_PAGE_READABLE;
        return 0;
    }
    /* Behind a savepoint it may be protected. */
    if (v->env->options.announces == 0 && v->ctx->save_epoch == 0
        && xac_warm_wanted(v, page_no)) {
        p->state = XAC_PAGE_WARM;
        return 0;
    }
    p->state = xac_view_is_open(v) ? XAC_PAGE_ABSENT : XAC_PAGE_READABLE;
    if (v->area.ops->fills != NULL) {
        span_add(&v->staying.written, page_no);
        return 0;
    }
    return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_READ) == 0
               ? 0
               : xac_view_hide(v, page_no);
}

/* protect_range -- nothing in it can be written without a trap.  Dropping it needs no
   descriptor, should the program have closed ours. */
static int
protect_range(struct xac_view *v, uint64_t first, uint64_t n)
{
    xac_assert(n > 0);
    xac_assert(first + n <= v->area.n_pages);
    if (v->area.ops->protect(&v->area, first, n, XAC_PROT_READ) == 0)
        return 0;
    for (uint64_t p = first; p < first + n; p++) {
        if (v->pages.at[p].state != XAC_PAGE_ABSENT)
            xac_view_lose(v, &v->pages.at[p]);
    }
    return v->area.ops->discard(&v->area, first, n);
}

/* protect_runs -- the written pages, neighbours by one call. */
static int
protect_runs(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v)
{
    struct xac_page_range run = {.first = 0, .n = 0};
    int rc = 0;

    for (uint64_t i = 0; i < ctx->n_entries && rc == 0; i++) {
        uint64_t id = xac_entry_page_id(env, xac_set_entry(ctx, i));
        uint64_t page_no = xac_page_no(id) - v->area.first;

        if (!xac_view_shows(v, id) || v->pages.at[page_no].state != XAC_PAGE_READABLE)
            continue;
        if (run.n > 0 && page_no == run.first + run.n) {
            run.n++;
            continue;
        }
        if (run.n > 0)
            rc = protect_range(v, run.first, run.n);
        run = (struct xac_page_range){.first = page_no, .n = 1};
    }
    return rc == 0 && run.n > 0 ? protect_range(v, run.first, run.n) : rc;
}

/* protect_written -- while alone: the pages that stay_written has put into the span. */
static int
protect_written(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v)
{
    const struct xac_span *s = &v->staying.written;
    uint64_t n = s->high - s->low;
    int rc;

    if (s->n_runs == 0)
        return 0;
    /* Warm pages in between lose their access, too, which costs a trap each. */
    if (n > s->n_runs * WALK_PER_PROTECT
        || (v->staying.n_warm > 0 && s->n_runs < RUNS_FOR_WARM && n > 1)) {
        rc = protect_runs(env, ctx, v);
    } else {
        xac_warm_forget_range(v, s->low, s->high);
        rc = protect_range(v, s->low, n);
    }
    v->staying.written.n_runs = 0;
    return rc;
}

/* ---- One page ---------------------------------------------------------------------------- */

/* end_page -- one page of the set: what does the view know of it from now on? */
static int
end_page(struct xac_view *v, uint64_t page_no, const struct xac_entry *e,
         bool is_committed)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    bool was_dirty = p->state == XAC_PAGE_DIRTY;
    /* Compared at the commit; in units not all pages are. */
    bool is_newest = is_committed && (e->vslot != 0 || v->area.ops->fills != NULL);

    xac_assert(page_no < v->area.n_pages);
    p->entry = 0;
    if (p->state == XAC_PAGE_SPILLED) { /* not shown, and not wanted any more */
        p->state = XAC_PAGE_ABSENT;
        return 0;
    }
    if (was_dirty && p->copy == XAC_COPY_SHARED)
        return xac_alias_end(v, page_no);
    if (!v->staying.is_alone && is_keeping(v))
        return 0;
    if (!v->staying.is_alone) {
        xac_view_lose(v, p); /* protected again with all others */
        if (was_dirty && is_committed && e->vslot != 0 && v->area.ops->maps != NULL)
            p->copy = XAC_COPY_OF(v->ctx->txn->number);
        return 0;
    }
    if (!was_dirty)
        return 0;
    if (!is_newest && (e->image == 0 || !xac_view_in_place_restore(v, page_no, e)))
        return xac_view_hide(v, page_no);
    if (e->vslot != 0)
        p->copy = XAC_COPY_OF(v->ctx->txn->number);
    return stay_written(v, page_no);
}

/* ---- Beside others: nothing stays ---------------------------------------------------- */

/* are_dropped -- are the pages that were touched memory, to be absent now? */
static bool
are_dropped(const struct xac_view *v)
{
    xac_assert(v->ctx != NULL);
    return v->area.ops->fills != NULL && !v->staying.is_alone && !is_keeping(v);
}

/* is_dense -- are they dropped by one call over all between the first page and the last, which
   is cheaper than one over the pages themselves?  Of aliases each has its own. */
static bool
is_dense(const struct xac_view *v)
{
    return are_dropped(v) && v->pages.low < v->pages.high
           && (xac_area_shares(&v->area)
               || v->pages.high - v->pages.low <= v->pages.n_touched * WALK_PER_DROP);
}

/* goes_alone -- is each dropped by itself? */
static bool
goes_alone(const struct xac_view *v)
{
    return are_dropped(v) && !xac_area_shares(&v->area) && !is_dense(v);
}

/* take_back -- everything the transaction touched in a view is absent again. */
static int
take_back(struct xac_view *v)
{
    xac_assert(v->pages.low >= v->pages.high || v->pages.high <= v->area.n_pages);
    if (is_dense(v))
        return v->area.ops->discard(&v->area, v->pages.low, v->pages.high - v->pages.low);
    if (v->staying.is_alone || v->pages.low >= v->pages.high
        || v->area.ops->fills != NULL)
        return 0;
    return v->area.ops->protect(&v->area, v->pages.low, v->pages.high - v->pages.low,
                                XAC_PROT_NONE);
}

/*
 * end_here -- end_page, of a view that stays only as long as that takes few mappings.
 *
 * A view written in few large pieces would take more mappings, page by page, than the program
 * can do without, or than there are; then the view is left as beside others, by one call.
 * in, out  np  pages taken back one by one
 */
static int
end_here(struct xac_view *v, uint64_t page_no, const struct xac_entry *e,
         bool is_committed, uint64_t *np)
{
    bool is_one = v->staying.is_alone && v->area.ops->maps != NULL && v->aliases == NULL;
    int rc = 0;

    xac_assert(page_no < v->area.n_pages);
    if (is_one && v->pages.at[page_no].state == XAC_PAGE_DIRTY
        && ++*np > v->ctx->islands_max)
        rc = xac_view_leave_alone(v);
    if (rc == 0)
        rc = end_page(v, page_no, e, is_committed);
    return rc != 0 && is_one && v->staying.is_alone ? xac_view_leave_alone(v) : rc;
}

/* ---- All of it ----------------------------------------------------------------------- */

/* end_entries -- the pages of the set. */
static int
end_entries(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    struct xac_page_batch batch;
    struct xac_view *v = NULL, *t;
    uint64_t n_pieces = 0;
    int rc = 0;

    batch.n = 0; /* the rest is 1 KiB, which need not be cleared */
    for (uint64_t i = 0; i < ctx->n_entries && rc == 0; i++) {
        const struct xac_entry *e = xac_set_entry(ctx, i);
        uint64_t id = xac_entry_page_id(env, e);

        if (v == NULL || v->aliases != NULL || !xac_view_shows(v, id))
            v = xac_view_next(ctx, NULL, id);
        xac_assert(v != NULL);
        rc = end_here(v, xac_page_no(id) - v->area.first, e, is_committed, &n_pieces);
        if (rc == 0 && goes_alone(v))
            rc = xac_batch_add(&batch, &v->area, xac_page_no(id) - v->area.first);
        for (t = v; t->aliases != NULL && rc == 0;) {
            t = xac_view_next(ctx, t, id);
            if (t == NULL)
                break;
            rc = end_here(t, xac_page_no(id) - t->area.first, e, is_committed, &n_pieces);
        }
    }
    return rc == 0 && batch.n > 0 ? xac_batch_flush(&batch) : rc;
}

/* end_view -- the rest of a view, behind the pages of the set. */
static int
end_view(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v, bool is_committed)
{
    int rc;

    if (is_keeping(v)) {
        v->staying.is_kept = true;
        v->staying.shown = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    } else if (v->staying.is_alone && is_committed && ctx->txn->n_written > 0) {
        v->staying.shown =
            ctx->txn->number; /* nobody else has written since the parent */
    }
    rc = protect_written(env, ctx, v);
    if (rc == 0)
        rc = ctx->is_unrecorded || (v->area.is_scanned && ctx->error != 0)
                 ? xac_view_leave_alone(v)
                 : take_back(v);
    if (rc == 0 && v->staying.n_warm > 0)
        rc = xac_warm_end(v, is_committed);
    if (v->staying.is_alone
        && (v->staying.n_stores > 0 || v->area.is_scanned || v->staying.account > 0))
        xac_scan_account(v);
    if (v->aliases != NULL)
        xac_aliases_free_memory(v);
    return rc;
}

/* end_views -- all views, in as few system calls as it takes; ret 0 or errno of the first call
   that failed. */
static int
end_views(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    int rc = 0;

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = v->aliases != NULL ? xac_aliases_end_many(v, ctx->is_unrecorded) : 0;
    if (rc == 0)
        rc = end_entries(env, ctx, is_committed);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = end_view(env, ctx, v, is_committed);
    return rc;
}

int
xac_view_renew(struct xac_view *v)
{
    struct xac_area *a = &v->area;
    int rc = xac_view_in_place_vacate(v);

    if (rc == 0)
        rc = a->ops->maps != NULL ? xac_area_map_file(a, 0, a->n_pages)
             : xac_area_shares(a) || a->in_place >= 0 ? a->ops->discard(a, 0, a->n_pages)
                                                      : xac_engine_moved(a);

    if (rc == 0
        && xac_sys.madvise(v->pages.at, a->n_pages * sizeof v->pages.at[0], MADV_DONTNEED)
               != 0)
        rc = errno;
    v->pages.is_lost = rc != 0;
    v->staying.is_alone = v->staying.is_kept = false;
    v->staying.retry = 0;
    v->pages.n_copies = v->staying.n_warm = 0;
    v->staying.written.n_runs = 0;
    return rc;
}

void
xac_view_end_all(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    xac_debug(xac_view_assert_all(ctx, true));
    if (ctx->is_query)
        xac_scan_end_query(ctx);
    if (xac_unlikely(end_views(env, ctx, is_committed) != 0)) {
        for (struct xac_view *v = ctx->views; v != NULL; v = v->next)
            (void)xac_view_renew(v); /* if that fails, too, the next begin tries again */
    }
    if (ctx->outofcore != NULL)
        xac_outofcore_end(ctx);
    if (xac_unlikely(ctx->save_epoch != 0))
        xac_saved_end(ctx);
    xac_debug(xac_view_assert_all(ctx, false));
}
