/* SPDX-License-Identifier: MIT */
/*
 * view_begin.c -- what pages show when a transaction begins: see view.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/lines.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "txn/ctree.h"
#include "txn/policy.h"
#include "view/view.h"
#include "view/view_scan.h"

/* Commits that the ring may still tell. */
#define ADVANCE_MAX (XAC_RING_ENTRIES - 1)

/* Pages for which a view may look whether they have been written, for each begin since it did so last:
   it takes as long as showing three pages.  A page that is not there counts a sixteenth. */
#define COMPARED_PER_BEGIN 1024
#define ABSENT_PER_PAGE    16

/* Begins from one look at how many contexts there are to the next, while there are few copies. */
#define LOOK_EVERY 64

/* Pages dropped because others have written them, after which a view gets a twin. */
#define DROPS_FOR_TWIN 16

/* islands_max -- a context's share of the mappings that we allow ourselves. */
static uint64_t
islands_max(const struct xac_env *env)
{
    /* Relaxed: a share that was right a moment ago will do. */
    uint32_t n = atomic_load_explicit(&xac_participant_at(env, env->self)->n_contexts,
                                      memory_order_relaxed);
    uint64_t share = n <= 1 ? XAC_ISLANDS_MAX : XAC_ISLANDS_MAX / n;

    xac_assert(share > 0);
    return share < XAC_ISLANDS_LEAST ? XAC_ISLANDS_LEAST : share;
}

/* copies_most -- pages that a context may keep. */
static uint64_t
copies_most(const struct xac_env *env)
{
    uint64_t contexts = xac_registry_contexts(env);
    uint64_t share = env->memory_bytes / XAC_COPIES_SHARE / (contexts < 2 ? 2 : contexts);

    xac_assert(env->page_shift != 0);
    share >>= env->page_shift;
    return share > XAC_COPIES_LEAST ? share : XAC_COPIES_LEAST;
}

/* bound_copies -- the views of a context have so many private copies: drop some if that is more than it may
   keep.  ret 0 or errno. */
static int
bound_copies(const struct xac_env *env, struct xac_ctx *ctx, uint64_t copies)
{
    if (copies <= ctx->copies_most && ctx->copies_looks-- > 0)
        return 0;
    ctx->copies_looks = LOOK_EVERY;
    ctx->copies_most = copies_most(env);
    xac_assert(ctx->copies_most > 0);
    return copies > ctx->copies_most ? xac_view_evict_all(ctx, copies, ctx->copies_most)
                                     : 0;
}

/* place_of -- where a readable page can be stored to without a trap; NULL: nowhere. */
static uint8_t *
place_of(const struct xac_view *v, uint64_t page_no)
{
    uint32_t state = v->pages.at[page_no].state;

    xac_assert(page_no < v->area.n_pages);
    if (v->ctx->outofcore != NULL)
        return NULL;
    if (v->area.twin != NULL)
        return v->area.twin + page_no * v->area.page_size;
    return state == XAC_PAGE_LOOSE || state == XAC_PAGE_WARM
               ? xac_area_at(&v->area, page_no)
               : NULL;
}

/* is_refreshed -- can a readable page be given its newest version in place?  It has been, but for the
   lines in `same`. */
static bool
is_refreshed(struct xac_view *v, uint64_t page_no, const struct xac_page *page,
             uint64_t parent, uint64_t same)
{
    uint8_t *place = place_of(v, page_no);
    const uint8_t *bytes =
        place != NULL ? xac_view_base_bytes(v, page_no, page, parent) : NULL;

    xac_assert(xac_view_is_readable(v, &v->pages.at[page_no]));
    xac_assert(parent <= xac_chain_commit(v->env));
    if (bytes == NULL)
        return false;
    xac_kill_point("ga page");
    xac_lines_copy(place, bytes, same, v->area.page_size);
    return true;
}

/* wants_twin -- are pages dropped again and again that a twin would keep? */
static bool
wants_twin(const struct xac_view *v)
{
    xac_assert(v->ctx != NULL);
    return v->staying.n_dropped >= DROPS_FOR_TWIN && !v->area.wants_twin
           && v->staying.is_alone && v->area.ops->fills != NULL && v->aliases == NULL
           && v->ctx->outofcore == NULL;
}

/*
 * refresh -- a page that stays, and has been written since: it shows its newest version, or nothing,
 * when the batch has been flushed.
 *
 * in   same  lines that one of the commits since has left as they were.  All that changed are copied
 *            when this has been called for each of these commits.
 * ret  0 or errno.
 */
static int
refresh(struct xac_view *v, const struct xac_page *page, uint64_t parent, uint64_t same,
        struct xac_page_batch *batch)
{
    uint64_t id = atomic_load_explicit(&page->id, memory_order_relaxed);
    uint64_t page_no = xac_page_no(id) - v->area.first;

    xac_assert(v->staying.is_kept || v->staying.is_alone);
    /* Relaxed: only we put pages into that list.  The view has their newest contents. */
    if (atomic_load_explicit(&page->in_place, memory_order_relaxed) != 0)
        return 0;
    if (!xac_view_shows(v, id) || !xac_view_is_readable(v, &v->pages.at[page_no])
        || is_refreshed(v, page_no, page, parent, same))
        return 0;
    if (v->area.ops->maps != NULL)
        return xac_view_hide(v, page_no);
    xac_assert(batch->n == 0 || batch->area == &v->area);
    v->staying.n_dropped++;
    xac_warm_forget(v, page_no);
    xac_view_lose(v, &v->pages.at[page_no]);
    return xac_batch_add(batch, &v->area, page_no);
}

/* follow_ring -- the pages that the commits after `shown` have written; ret 0; ENODATA: the commits
   are too many, or the ring does not tell them; errno. */
static int
follow_ring(struct xac_env *env, struct xac_view *v, uint64_t parent,
            struct xac_page_batch *batch)
{
    struct xac_wrote wrote;
    int rc = 0;

    xac_assert(v->staying.shown <= parent);
    xac_assert(parent <= xac_chain_commit(env));
    if (parent - v->staying.shown > ADVANCE_MAX)
        return ENODATA;
    for (uint64_t n = v->staying.shown + 1; n <= parent && rc == 0; n++) {
        if (!xac_chain_wrote(env, n, &wrote))
            return ENODATA;
        for (uint32_t i = 0; i < wrote.n_pages && rc == 0; i++)
            rc = refresh(v, (const struct xac_page *)xac_shm_at(&env->shm, wrote.page[i]),
                         parent, xac_wrote_same(&wrote, i), batch);
    }
    return rc;
}

/* may_compare -- is looking at all pages cheaper than dropping them?  It is if that is done
   seldom, or they are few. */
static bool
may_compare(struct xac_view *v)
{
    uint64_t n = v->pages.n_copies + v->area.n_pages / ABSENT_PER_PAGE;

    xac_assert(v->pages.n_copies <= v->area.n_pages);
    if (v->area.ops->fills == NULL || n / COMPARED_PER_BEGIN >= v->staying.n_begun)
        return false;
    v->staying.n_begun = 0;
    return true;
}

/* compare_all -- the pages that commits after `shown` have written, without the ring; ret 0 or
   errno. */
static int
compare_all(struct xac_env *env, struct xac_view *v, uint64_t parent,
            struct xac_page_batch *batch)
{
    struct xac_file *file = xac_file_at(env, v->file);
    int rc = 0;

    xac_assert(v->area.ops->fills != NULL);
    xac_assert(v->staying.shown < parent);
    for (uint64_t p = 0; p < v->area.n_pages && rc == 0; p++) {
        const struct xac_page *page;

        if (v->pages.at[p].state == XAC_PAGE_ABSENT)
            continue;
        page = xac_ptab_find(&env->shm, &file->root, v->area.first + p);
        if (page != NULL
            /* Relaxed: behind the acquire of C, which the parent was. */
            && atomic_load_explicit(&page->written, memory_order_relaxed)
                   > v->staying.shown)
            rc = refresh(v, page, parent, 0, batch);
    }
    return rc;
}

/* advance_to -- the pages that the commits after `shown` have written; ret 0; ENODATA: it is better
   to drop all; errno. */
static int
advance_to(struct xac_env *env, struct xac_view *v, uint64_t parent)
{
    struct xac_page_batch batch;
    int rc;

    xac_assert(v->staying.is_kept || v->staying.is_alone);
    batch.n = 0;
    rc = follow_ring(env, v, parent, &batch);
    if (rc == ENODATA && may_compare(v))
        rc = compare_all(env, v, parent, &batch);
    return rc == 0 && batch.n > 0 ? xac_batch_flush(&batch) : rc;
}

/*
 * advance -- let the pages that stay show what a transaction or query is to see; its parent is not
 * lower.  They are kept ones, and under the serial policy those of a view that is as if alone.
 */
static int
advance(struct xac_env *env, struct xac_view *v)
{
    uint64_t parent = atomic_load_explicit(&v->ctx->txn->parent, memory_order_relaxed);
    int rc;

    xac_assert(v->staying.is_kept || v->staying.is_alone);
    v->staying.n_begun++;
    rc = v->staying.shown < parent ? advance_to(env, v, parent) : 0;
    if (rc != 0 || wants_twin(v)) { /* nothing is known of the pages any more */
        bool was_alone = v->staying.is_alone, wants = wants_twin(v);

        rc = xac_view_leave_alone(v);
        if (rc == 0 && wants) {
            v->area.wants_twin = true;
            rc = xac_engine_moved(&v->area);
        }
        if (rc == 0 && was_alone)
            rc = xac_view_enter_alone(env, v, v->ctx->alone_epoch);
        return rc;
    }
    xac_assert(parent <= xac_chain_commit(env));
    v->staying.shown = parent;
    xac_kill_point("ga");
    return 0;
}

/* is_past -- do the pages that are kept show a later state than the one that the query is to see? */
static bool
is_past(const struct xac_view *v)
{
    xac_assert(v->staying.is_kept);
    return v->staying.shown
           > atomic_load_explicit(&v->ctx->txn->parent, memory_order_relaxed);
}

/* begin_view -- what a view keeps from one transaction to the next. */
static int
begin_view(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v)
{
    int rc;

    xac_assert(v->pages.n_touched == 0);
    if (xac_unlikely(v->pages.is_lost) && (rc = xac_view_renew(v)) != 0)
        return xac_err(rc, "taking back the pages of %s", v->name);
    if (v->staying.is_alone && v->staying.epoch != ctx->alone_epoch)
        return xac_view_leave_alone(v); /* another participant has come */
    if (v->staying.is_kept && ctx->keeps && !is_past(v))
        return advance(env, v);
    rc = v->staying.is_kept ? xac_view_forget(v, XAC_PROT_NONE) : 0;
    if (!v->staying.is_alone)
        return rc == 0 && ctx->alone_epoch != 0
                   ? xac_view_enter_alone(env, v, ctx->alone_epoch)
                   : rc;
    if (env->policy->is_serial && ((rc = advance(env, v)) != 0 || !v->staying.is_alone))
        return rc;
    rc = v->staying.n_warm > 0 ? xac_warm_begin(v, ctx->is_query) : 0;
    return rc == 0 ? xac_scan_begin(v) : rc;
}

int
xac_view_begin_all(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t copies = 0;
    int rc = 0;

    xac_assert(ctx->txn != NULL);
    xac_assert(ctx->n_entries == 0);
    xac_debug(xac_view_assert_all(ctx, false));
    ctx->unit_shift = 0;
    ctx->n_islands = 0;
    ctx->islands_max = islands_max(env);
    ctx->is_unrecorded = false;
    if (ctx->outofcore != NULL)
        xac_outofcore_begin(ctx);
    ctx->keeps = ctx->is_query && ctx->alone_epoch == 0
                 && xac_env_checking(env) != XAC_CHECKING_STRICT;
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        v->pages.low = UINT64_MAX;
        v->pages.high = 0;
        v->pages.n_touched = 0;
        xac_assert(!xac_area_shares(&v->area)
                   || v->pages.n_copies == 0); /* invariant (5) */
        rc = begin_view(env, ctx, v);
        v->pages.is_lost |= rc != 0; /* the next begin maps it anew */
        copies += v->pages.n_copies;
    }
    xac_assert(ctx->islands_max > 0);
    return rc == 0 ? bound_copies(env, ctx, copies) : rc;
}
