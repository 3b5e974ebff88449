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

int
xac_view_evict(struct xac_view *v)
{
    int rc = xac_warm_cool(v);

    xac_assert(v->pages.n_copies > 0);
    if (rc == 0)
        rc = xac_view_in_place_vacate(v);
    for (uint64_t step = 0;
         v->pages.n_copies > v->staying.most && step <= v->area.n_pages && rc == 0;
         step += EVICT_STEP) {
        uint64_t from = v->staying.hand < v->area.n_pages ? v->staying.hand : 0;
        uint64_t end =
            v->area.n_pages - from < EVICT_STEP ? v->area.n_pages : from + EVICT_STEP;
        uint64_t had = v->pages.n_copies;

        for (uint64_t p = from; p < end; p++)
            xac_view_lose(v, &v->pages.at[p]);
        if (v->pages.n_copies < had)
            rc = v->area.ops->discard(&v->area, from, end - from);
        v->staying.hand = end;
    }
    return rc;
}
