/* SPDX-License-Identifier: MIT */
/*
 * view_begin.c -- what pages show when a transaction begins: see view.h.
 */
#include <config.h>

#include "base/err.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "txn/ctree.h"
#include "view/view.h"
#include "view/view_scan.h"

/* Commits that a view with kept pages looks at; more, and it begins anew. */
#define ADVANCE_MAX 256

/* islands_max -- a context's share of the mappings that we allow ourselves. */
static uint64_t
islands_max(const struct xac_env *env)
{
    /* Relaxed: a share that was right a moment ago will do. */
    uint32_t n = atomic_load_explicit(&xac_participant_at(env, env->self)->n_contexts,
                                      memory_order_relaxed);
    uint64_t share = XAC_ISLANDS_MAX / (n == 0 ? 1 : n);

    xac_assert(share > 0);
    return share < XAC_ISLANDS_LEAST ? XAC_ISLANDS_LEAST : share;
}

/* drop -- a kept page that has been written since. */
static int
drop(struct xac_env *env, struct xac_view *v, uint64_t page)
{
    const struct xac_page *written = (const struct xac_page *)xac_shm_at(&env->shm, page);
    uint64_t id = atomic_load_explicit(&written->id, memory_order_relaxed);
    uint64_t page_no = xac_page_no(id) - v->area.first;

    xac_assert(v->staying.is_kept);
    xac_assert(page != 0);
    if (!xac_view_shows(v, id) || v->pages.at[page_no].state != XAC_PAGE_READABLE)
        return 0;
    xac_view_lose(v, &v->pages.at[page_no]);
    return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_NONE);
}

/* advance -- let the kept pages show what a query is to see; its parent is not lower. */
static int
advance(struct xac_env *env, struct xac_view *v, uint64_t parent)
{
    uint64_t pages[XAC_RING_PAGES];
    uint32_t n_pages;
    int rc = 0;

    xac_assert(v->staying.shown <= parent);
    xac_assert(v->staying.is_kept);
    xac_assert(v->area.ops->fills != NULL);
    if (parent - v->staying.shown > ADVANCE_MAX)
        return xac_view_forget(v, XAC_PROT_NONE);
    for (uint64_t n = v->staying.shown + 1; n <= parent && rc == 0; n++) {
        if (!xac_chain_wrote(env, n, pages, &n_pages))
            return xac_view_forget(v, XAC_PROT_NONE);
        for (uint32_t i = 0; i < n_pages && rc == 0; i++)
            rc = drop(env, v, pages[i]);
    }
    v->staying.shown = parent;
    return rc == 0 && v->pages.n_copies > XAC_STAY_MAX ? xac_view_evict(v) : rc;
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
    if (v->staying.is_kept && ctx->keeps)
        return advance(env, v,
                       atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed));
    rc = v->staying.is_kept ? xac_view_forget(v, XAC_PROT_NONE) : 0;
    if (!v->staying.is_alone)
        return rc == 0 && ctx->alone_epoch != 0
                   ? xac_view_enter_alone(env, v, ctx->alone_epoch)
                   : rc;
    rc = v->staying.n_warm > 0 ? xac_warm_begin(v, ctx->is_query) : 0;
    if (rc == 0)
        rc = xac_scan_begin(v);
    if (rc != 0)
        return rc;
    if (v->area.ops->fills != NULL)
        return v->pages.n_copies > XAC_STAY_MAX ? xac_view_evict(v) : 0;
    if (v->pages.n_copies > XAC_COPIES_MAX
        && atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed) == 0)
        return xac_view_forget(v, XAC_PROT_READ);
    return 0;
}

int
xac_view_begin_all(struct xac_env *env, struct xac_ctx *ctx)
{
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
    }
    xac_assert(ctx->islands_max > 0);
    return rc;
}
