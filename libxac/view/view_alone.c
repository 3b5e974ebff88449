/* SPDX-License-Identifier: MIT */
/*
 * view_alone.c -- pages that stay: while the process is alone, and what makes them absent again.
 * See view.h.
 */
#include <config.h>

#include <errno.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "view/view.h"
#include "view/view_scan.h"

/* Versions that a view that begins to be alone hides one by one; more, and it waits. */
#define ALONE_HIDDEN_MAX 8192

/* Pages that the hand passes in one step. */
#define EVICT_STEP 1024

/* Commits between two attempts to be alone. */
#define ALONE_RETRY 1024

int
xac_view_forget(struct xac_view *v, enum xac_protection prot)
{
    int rc = xac_view_in_place_vacate(v);

    xac_assert(v->area.n_pages > 0);
    if (rc == 0)
        rc = v->area.ops->discard(&v->area, 0, v->area.n_pages);
    if (rc == 0
        && xac_sys.madvise(v->pages.at, v->area.n_pages * sizeof v->pages.at[0],
                           MADV_DONTNEED)
               != 0)
        rc = errno;
    v->pages.n_copies = 0;
    v->staying.n_warm = 0;
    v->staying.is_kept = false;
    xac_assert(v->staying.n_warm == 0);
    xac_assert(!v->staying.is_kept);
    if (rc == 0 && v->area.ops->maps != NULL)
        rc = v->area.ops->protect(&v->area, 0, v->area.n_pages, prot);
    v->pages.is_lost |= rc != 0; /* the next begin maps it anew: see xac_view_renew */
    return rc;
}

int
xac_view_hide(struct xac_view *v, uint64_t page_no)
{
    xac_assert(v->staying.is_alone);
    xac_assert(page_no < v->area.n_pages);
    xac_warm_forget(v, page_no);
    xac_view_lose(v, &v->pages.at[page_no]);
    return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_NONE);
}

/* hide_versions -- hide every page that has a version in the store. */
static int
hide_versions(struct xac_env *env, struct xac_view *v)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_relaxed);
    int rc = 0;

    xac_assert(v->staying.is_alone);
    for (uint64_t f = 1; f <= n && rc == 0; f++) {
        const struct xac_vslot *vslot = xac_vslot_at(env, f);
        const struct xac_page *page;
        uint64_t id;

        if (xac_vslot_state(atomic_load_explicit(&vslot->word, memory_order_relaxed))
            != XAC_VSLOT_VERSION)
            continue;
        page = (const struct xac_page *)xac_shm_at(
            &env->shm, atomic_load_explicit(&vslot->page, memory_order_relaxed));
        id = atomic_load_explicit(&page->id, memory_order_relaxed);
        if (xac_view_shows(v, id))
            rc = xac_view_hide(v, xac_page_no(id) - v->area.first);
    }
    return rc;
}

int
xac_view_enter_alone(struct xac_env *env, struct xac_view *v, uint64_t epoch)
{
    uint64_t used = atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
    uint64_t commit = xac_chain_commit(env);
    int rc;

    xac_assert(epoch != 0);
    xac_assert(!v->staying.is_alone);
    v->staying.epoch = epoch;
    v->staying.shown = atomic_load_explicit(&v->ctx->txn->parent, memory_order_relaxed);
    if (xac_area_shares(&v->area)) /* invariant (5): nothing stays */
        return 0;
    if (v->area.ops->fills != NULL) {
        /* All is absent, and stays from now on as it is touched. */
        v->staying.is_alone = true;
        return 0;
    }
    if (commit < v->staying.retry || used > ALONE_HIDDEN_MAX) {
        if (commit >= v->staying.retry)
            v->staying.retry = commit + ALONE_RETRY;
        return 0;
    }
    v->staying.is_alone = true;
    rc = xac_view_forget(v, XAC_PROT_READ);
    if (rc == 0)
        rc = hide_versions(env, v);
    v->staying.is_alone = rc == 0;
    return rc == 0 ? 0 : xac_view_forget(v, XAC_PROT_NONE);
}

int
xac_view_leave_alone(struct xac_view *v)
{
    int rc;

    v->staying.is_alone = false;
    v->staying.retry = 0;
    v->staying.n_stores = 0;
    rc = xac_view_forget(v, XAC_PROT_NONE);
    xac_assert(!v->staying.is_alone);
    if (rc == 0 && v->area.is_scanned)
        rc = xac_scan_stop(v);
    v->pages.is_lost |= rc != 0;
    return rc;
}

/* ---- How many may stay ---------------------------------------------------------------- */

/* is_needed -- must the view have a copy of the page, as the page is readable, and is not in its file? */
static bool
is_needed(const struct xac_view *v, uint64_t page_no)
{
    const struct xac_page *page;

    xac_assert(page_no < v->area.n_pages);
    if (!xac_view_is_open(v) || v->pages.at[page_no].state == XAC_PAGE_HIDDEN)
        return false;
    page = xac_ptab_find(&v->env->shm, &xac_file_at(v->env, v->file)->root,
                         v->area.first + page_no);
    /* Acquire: pairs with the release that unlinks the last version, which is in the file. */
    return page != NULL && atomic_load_explicit(&page->head, memory_order_acquire) != 0;
}

/* drop_some -- copies of pages in [from, end) that are not needed.  ret 0 or errno. */
static int
drop_some(struct xac_view *v, uint64_t from, uint64_t end)
{
    uint64_t first = end, last = end; /* of those that one call drops */
    int rc = 0;

    xac_assert(end <= v->area.n_pages);
    for (uint64_t p = from; p < end && rc == 0; p++) {
        struct xac_view_page *page = &v->pages.at[p];

        if (page->copy == XAC_COPY_NONE)
            continue;
        if (!is_needed(v, p)) {
            if (v->area.ops->fills != NULL)
                page->state = XAC_PAGE_ABSENT;
            page->copy = XAC_COPY_NONE;
            v->pages.n_copies--;
            first = first < end ? first : p;
            last = p;
        } else if (first < end) {
            rc = v->area.ops->discard(&v->area, first, last - first + 1);
            first = end;
        }
    }
    return rc == 0 && first < end
               ? v->area.ops->discard(&v->area, first, last - first + 1)
               : rc;
}

/* evict -- drop copies of a view until no more are left than `most`.  ret 0 or errno. */
static int
evict(struct xac_view *v, uint64_t most)
{
    bool was_alone = v->staying.is_alone;
    int rc = xac_warm_cool(v);

    xac_assert(v->pages.n_copies > most);
    if (rc == 0)
        rc = xac_view_in_place_vacate(v);
    for (uint64_t step = 0;
         v->pages.n_copies > most && step <= v->area.n_pages && rc == 0;
         step += EVICT_STEP) {
        uint64_t from = v->staying.hand < v->area.n_pages ? v->staying.hand : 0;
        uint64_t end =
            v->area.n_pages - from < EVICT_STEP ? v->area.n_pages : from + EVICT_STEP;

        rc = drop_some(v, from, end);
        v->staying.hand = end;
    }
    if (rc != 0 || v->pages.n_copies <= most)
        return rc;
    rc = xac_view_leave_alone(v);
    return rc == 0 && was_alone ? xac_view_enter_alone(v->env, v, v->staying.epoch) : rc;
}

int
xac_view_evict_all(struct xac_ctx *ctx, uint64_t copies, uint64_t most)
{
    int rc = 0;

    xac_assert(copies > most);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        uint64_t n = v->pages.n_copies;
        uint64_t part = (uint64_t)((double)(copies - most) * (double)n / (double)copies);

        if (part == 0)
            continue;
        rc = evict(v, n - part);
        v->pages.is_lost |= rc != 0; /* the next begin maps it anew */
    }
    return rc;
}
