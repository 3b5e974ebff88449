/* SPDX-License-Identifier: MIT */
/*
 * view_assert.c -- whether a view is sound: see the invariants of view.h.
 *
 * Only pages are looked at that the running transaction, or the last one, has touched, and a
 * bounded number of them.  A page of the segment itself is read only while it is readable and no
 * lock is held.
 */
#include <config.h>

#include <string.h>

#include "base/lock.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/ctree.h"
#include "view/view.h"

#define LOOK_AT 64 /* pages that one call looks at, from each end of those touched */

/* copy_assert -- invariant (2): a number is one that has been published. */
static void
copy_assert(const struct xac_view *v, const struct xac_view_page *p, bool is_running)
{
    xac_require(p->copy <= XAC_COPY_OF(xac_chain_commit(v->env)));         /* (2) */
    xac_require(p->copy != XAC_COPY_SHARED || p->state == XAC_PAGE_DIRTY); /* (4) */
    xac_require(p->copy != XAC_COPY_SHARED || is_running);                 /* (1) */
}

/* idle_assert -- invariant (1): a page outside a transaction. */
static void
idle_assert(const struct xac_view *v, const struct xac_view_page *p)
{
    xac_require(!xac_view_is_written(p)); /* (1) */
    xac_require(p->entry == 0);
    if (!v->staying.is_alone && !v->staying.is_kept)
        xac_require(p->state == XAC_PAGE_ABSENT); /* (1) */
    if (xac_area_shares(&v->area))
        xac_require(p->state == XAC_PAGE_ABSENT); /* (5) */
}

/* aliases_assert -- invariant (4): a page that is dirty in a view, in the others. */
static void
aliases_assert(const struct xac_view *v, uint64_t page_no)
{
    uint64_t id = xac_page_id(v->file, v->area.first + page_no);
    const struct xac_view *w = xac_view_next(v->ctx, NULL, id);

    for (; w != NULL; w = xac_view_next(v->ctx, w, id)) {
        const struct xac_view_page *p = xac_view_page(w, id);

        if (w == v || xac_area_shares(&w->area))
            continue;
        xac_require(p->state == XAC_PAGE_DIRTY ? p->copy == XAC_COPY_SHARED
                                               : !xac_view_is_readable(w, p)); /* (4) */
    }
}

/* running_assert -- a page in a transaction. */
static void
running_assert(const struct xac_view *v, const struct xac_view_page *p, uint64_t page_no)
{
    xac_require(p->state <= XAC_PAGE_SPILLED);
    xac_require(p->entry <= v->ctx->n_entries);
    xac_require(p->state != XAC_PAGE_HIDDEN || v->staying.is_alone);
    if (p->state == XAC_PAGE_DIRTY && v->aliases != NULL)
        aliases_assert(v, page_no);
}

/* page_assert -- what is known of one page. */
static void
page_assert(const struct xac_view *v, uint64_t page_no, bool is_running)
{
    const struct xac_view_page *p = &v->pages.at[page_no];

    copy_assert(v, p, is_running);
    if (is_running)
        running_assert(v, p, page_no);
    else
        idle_assert(v, p);
}

/* shown_assert -- invariant (3) of one page; its bytes are looked at. */
static void
shown_assert(const struct xac_view *v, uint64_t page_no)
{
    struct xac_file *file = xac_file_at(v->env, v->file);
    uint64_t parent = atomic_load_explicit(&v->ctx->txn->parent, memory_order_relaxed);
    const uint8_t *bytes = xac_view_base_bytes(v, page_no,
                                               xac_ptab_find(&v->env->shm, &file->root,
                                                             v->area.first + page_no),
                                               parent);

    xac_require(bytes == NULL
                || memcmp(xac_area_at(&v->area, page_no), bytes, v->area.page_size)
                       == 0); /* (3) */
}

/* warm_assert -- invariant (1) of the pages that are warm. */
static void
warm_assert(const struct xac_view *v, bool is_running)
{
    xac_require(v->staying.n_warm <= XAC_WARM_MAX);
    for (uint32_t i = 0; i < v->staying.n_warm; i++) {
        uint32_t state = v->pages.at[v->staying.warm[i]].state;

        xac_require(v->staying.warm[i] < v->area.n_pages);
        xac_require(state == XAC_PAGE_WARM || (is_running && state == XAC_PAGE_DIRTY));
    }
}

/* may_look -- may a page be compared?  Once the transaction is over, others may change what it
   has seen. */
static bool
may_look(const struct xac_view *v, bool is_running)
{
    const struct xac_ctx *ctx = v->ctx;

    return is_running && xac_lock_none_held() && ctx->outofcore == NULL && ctx->error == 0
           && !ctx->is_unrecorded
           && xac_txn_is_live(
               atomic_load_explicit(&ctx->txn->word, memory_order_relaxed));
}

void
xac_view_assert(const struct xac_view *v, bool is_running)
{
    uint64_t end = v->pages.high < v->area.n_pages ? v->pages.high : v->area.n_pages;
    bool compares = may_look(v, is_running);

    if (v->pages.is_lost) /* nobody knows what its pages show */
        return;
    warm_assert(v, is_running);
    if (v->pages.low >= end)
        return;
    for (uint64_t p = v->pages.low; p < end && p - v->pages.low < LOOK_AT; p++)
        page_assert(v, p, is_running);
    for (uint64_t p = end; p > v->pages.low && end - p < LOOK_AT; p--)
        page_assert(v, p - 1, is_running);
    for (uint64_t p = v->pages.low; compares && p < end && p - v->pages.low < LOOK_AT;
         p++) {
        if (v->pages.at[p].state == XAC_PAGE_READABLE) {
            shown_assert(v, p);
            break;
        }
    }
}

void
xac_view_assert_all(const struct xac_ctx *ctx, bool is_running)
{
    for (const struct xac_view *v = ctx->views; v != NULL; v = v->next)
        xac_view_assert(v, is_running);
}
