/* SPDX-License-Identifier: MIT */
/*
 * view.c -- what pages of a view show: see view.h.  Opening and closing views is in
 * view_open.c, what happens after a transaction in view_end.c.
 */
#include <config.h>

#include "view/view.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/alone.h"
#include "view/view_scan.h"

/* Versions that a view that begins to be alone hides one by one; more, and it waits. */
#define ALONE_HIDDEN_MAX 8192

/* Pages that the hand passes in one step. */
#define EVICT_STEP 1024

/* Commits that a view with kept pages looks at; more, and it begins anew. */
#define ADVANCE_MAX 256

/* Commits between two attempts to be alone. */
#define ALONE_RETRY 1024

XAC_SIGSAFE struct xac_view *
xac_view_at(const struct xac_ctx *ctx, const void *addr)
{
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        if ((const uint8_t *)addr >= v->area.base
            && (const uint8_t *)addr < v->area.base + v->area.length)
            return v;
    }
    return NULL;
}

XAC_SIGSAFE struct xac_view *
xac_view_next(const struct xac_ctx *ctx, const struct xac_view *v, uint64_t page_id)
{
    struct xac_view *next = v == NULL ? ctx->views : v->next;

    while (next != NULL && !xac_view_shows(next, page_id))
        next = next->next;
    return next;
}

/* ---- One page ---------------------------------------------------------------------- */

/* version_bytes -- of a version slot; NULL with errno. */
XAC_SIGSAFE static const uint8_t *
version_bytes(const struct xac_view *v, uint64_t vslot)
{
    const uint8_t *bytes = xac_version_bytes(v->env, vslot);

    if (xac_unlikely(bytes == NULL))
        v->ctx->lacking = XAC_LACKS_VERSION;
    return bytes;
}

XAC_SIGSAFE int
xac_view_load(struct xac_env *env, struct xac_view *v, uint64_t page_no,
              const struct xac_page *page, uint64_t parent, bool *is_writablep)
{
    struct xac_view_page *p = &v->page[page_no];
    uint64_t commit = 0;
    uint64_t vslot = page != NULL ? xac_version_find(env, page, parent, &commit) : 0;
    const uint8_t *bytes;
    int rc = 0;

    xac_assert(commit <= parent); /* invariant (1) of the consistency tree */
    if (vslot == 0) {
        if (p->copy != XAC_COPY_NONE)
            rc = v->area.ops->discard(&v->area, page_no, 1);
        p->copy = XAC_COPY_NONE;
        return rc;
    }
    if (p->copy == XAC_COPY_OF(commit))
        return 0;
    bytes = version_bytes(v, vslot);
    if (bytes == NULL)
        return errno;
    if (!*is_writablep)
        rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE);
    if (rc != 0)
        return rc;
    *is_writablep = true;
    v->n_copies += p->copy == XAC_COPY_NONE;
    p->copy = XAC_COPY_UNKNOWN;
    memcpy(xac_area_at(&v->area, page_no), bytes, v->area.page_size);
    p->copy = XAC_COPY_OF(commit);
    return 0;
}

/* What blank pages hold.  Never stored to: the kernel has one page of zeros behind all of it. */
static uint8_t blank[XAC_BLANK_BYTES];

XAC_SIGSAFE const uint8_t *
xac_view_file_run(const struct xac_view *v, uint64_t first, uint64_t *n)
{
    uint64_t from = xac_file_blank_from(xac_file_at(v->env, v->file));
    uint64_t most = sizeof blank / v->area.page_size;

    if (v->area.first + first >= from) {
        *n = *n < most ? *n : most;
        return blank;
    }
    most = from - (v->area.first + first);
    *n = *n < most ? *n : most;
    return v->file_bytes + first * v->area.page_size;
}

/* is_file -- are these bytes of that page those of the file, not a version? */
XAC_SIGSAFE static bool
is_file(const struct xac_view *v, uint64_t page_no, const uint8_t *bytes)
{
    return bytes == blank || bytes == v->file_bytes + page_no * v->area.page_size;
}

/* file_page -- one of them. */
XAC_SIGSAFE static const uint8_t *
file_page(const struct xac_view *v, uint64_t page_no)
{
    uint64_t one = 1;

    return xac_view_file_run(v, page_no, &one);
}

XAC_SIGSAFE const uint8_t *
xac_view_base_bytes(const struct xac_view *v, uint64_t page_no,
                    const struct xac_page *page, uint64_t parent)
{
    uint64_t commit;
    uint64_t vslot = page != NULL ? xac_version_find(v->env, page, parent, &commit) : 0;

    if (vslot != 0)
        return version_bytes(v, vslot);
    return v->ctx->outofcore == NULL
               ? file_page(v, page_no)
               : xac_outofcore_page(v->ctx, v->file, v->area.first + page_no,
                                    XAC_PLACE_SHOWN);
}

XAC_SIGSAFE void
xac_view_note(struct xac_view *v, uint64_t page_no, bool is_write)
{
    struct xac_view_page *p = &v->page[page_no];

    v->n_touched += p->state == XAC_PAGE_ABSENT;
    if (is_write && p->state != XAC_PAGE_DIRTY) {
        v->n_copies += p->copy == XAC_COPY_NONE;
        p->copy = p->copy == XAC_COPY_NONE ? XAC_COPY_PERHAPS : XAC_COPY_UNKNOWN;
        p->state = XAC_PAGE_DIRTY;
    } else if (p->state != XAC_PAGE_DIRTY) {
        p->state = xac_view_is_open(v) ? XAC_PAGE_ABSENT : XAC_PAGE_READABLE;
    }
    xac_view_reach(v, page_no, page_no + 1);
}

/* fill -- step 5 where the engine fills pages: a page without access. */
XAC_SIGSAFE static int
fill(struct xac_view *v, uint64_t page_no, const struct xac_page *page, uint64_t parent,
     bool is_write)
{
    struct xac_view_page *p = &v->page[page_no];
    const uint8_t *bytes = xac_view_base_bytes(v, page_no, page, parent);
    int rc;

    if (bytes == NULL)
        return errno;
    if (is_file(v, page_no, bytes)) {
        if (xac_ahead_fill(v, page_no, parent, is_write))
            return 0;
        if (v->area.ops->splits)
            bytes = NULL;
    }
    rc = v->area.ops->fill(&v->area, page_no, 1, bytes,
                           is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
    if (rc != 0)
        return rc;
    v->n_copies += p->copy == XAC_COPY_NONE;
    p->copy = XAC_COPY_UNKNOWN;
    return 0;
}

XAC_SIGSAFE int
xac_view_show(struct xac_env *env, struct xac_view *v, uint64_t page_no,
              const struct xac_page *page, uint64_t parent, bool is_write)
{
    bool was_readable = xac_view_is_readable(v, &v->page[page_no]);
    bool is_new = !was_readable && v->ctx->outofcore != NULL;
    bool is_writable = v->page[page_no].state == XAC_PAGE_LOOSE;
    int rc = 0;

    if (xac_unlikely(xac_area_shares(&v->area)))
        return xac_alias_show(v, page_no, page, parent, is_write);
    if (xac_unlikely(v->page[page_no].state == XAC_PAGE_SPILLED))
        return xac_outofcore_back(v, page_no);
    if (xac_unlikely(v->aliases != NULL) && xac_alias_is_needed(v, page_no, is_write))
        return xac_alias_write(v, page_no, page, parent);
    if (!was_readable && v->area.ops->fill != NULL) {
        rc = fill(v, page_no, page, parent, is_write);
        is_writable = was_readable = true;
    } else if (!was_readable) {
        rc = xac_view_load(env, v, page_no, page, parent, &is_writable);
    }
    if (rc == 0 && (is_write ? !is_writable : !was_readable))
        rc = v->area.ops->protect(&v->area, page_no, 1,
                                  is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
    if (rc == 0)
        xac_view_note(v, page_no, is_write);
    return rc == 0 && is_new ? xac_outofcore_shown(v, page_no) : rc;
}

/* entry_for -- the page's entry in the set, made if missing; NULL: no room. */
XAC_SIGSAFE static struct xac_entry *
entry_for(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v, uint64_t page_no,
          struct xac_page *page, uint32_t mode)
{
    struct xac_view_page *p = &v->page[page_no];
    struct xac_entry *e;
    uint64_t index;

    if (p->entry == 0 && v->aliases != NULL)
        p->entry = xac_alias_entry(v, page_no);
    if (p->entry != 0)
        return xac_set_entry(ctx, p->entry - 1);
    e = xac_set_add(env, ctx, page, mode, &index);
    if (e != NULL)
        p->entry = (uint32_t)index + 1;
    return e;
}

XAC_SIGSAFE struct xac_page *
xac_view_register(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
                  uint64_t page_no, bool is_write)
{
    struct xac_file *file = xac_file_at(env, v->file);
    struct xac_page *page =
        xac_ptab_page(&env->shm, &file->root, v->file, v->area.first + page_no);
    uint32_t mode = is_write ? XAC_SET_READ | XAC_SET_WRITE : XAC_SET_READ;
    struct xac_entry *e;

    if (page == NULL || (!is_write && v->is_alone))
        return page;
    e = entry_for(env, ctx, v, page_no, page, mode);
    if (e == NULL)
        return NULL;
    if (ctx->is_query || v->is_alone || env->policy->is_optimistic
        || !xac_conflict_enter(env, ctx, e, mode))
        /* The entry only remembers that the page was touched, if not through this view
           then through an alias. */
        atomic_fetch_or_explicit(&e->mode, mode, memory_order_relaxed);
    return page;
}

XAC_SIGSAFE uint64_t
xac_view_parent(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t commit = xac_chain_commit(env);
    uint64_t word;

    if (!ctx->is_query && !env->policy->is_optimistic) {
        /* Said before it is known whether we may: who finds us FAILED keeps what both
           parent and next show (gc.c).  Release: pairs with the acquire there, who
           sees a next sees the parent before it.  The fence pairs with the one there:
           either we see that we have failed, or next is seen. */
        atomic_store_explicit(&txn->next, commit, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
    }
    /* Acquire: pairs with the exchange in xac_txn_fail.  After C: who failed us did so
       before publishing, so if we saw the new C, we see that we have failed. */
    word = atomic_load_explicit(&txn->word, memory_order_acquire);

    if (xac_txn_state(word) == XAC_TXN_PENDING && !env->policy->is_optimistic)
        atomic_store_explicit(&txn->parent, commit, memory_order_relaxed);
    return atomic_load_explicit(&txn->parent, memory_order_relaxed);
}

XAC_SIGSAFE int
xac_view_unregistered(struct xac_ctx *ctx)
{
    ctx->lacking = XAC_LACKS_REGION;
    return xac_shm_lacks(&ctx->env->shm);
}

/* access_page -- register and show one page; ret 0 or errno. */
XAC_SIGSAFE static int
access_page(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
            uint64_t page_no, bool is_write)
{
    struct xac_page *page = xac_view_register(env, ctx, v, page_no, is_write);
    int rc;

    if (page == NULL)
        return xac_view_unregistered(ctx);
    rc = xac_view_show(env, v, page_no, page, xac_view_parent(env, ctx), is_write);
    if (xac_likely(rc != ENOMEM) || !v->area.ops->splits)
        return rc;
    ctx->n_islands = ctx->islands_max; /* the mappings are used up already */
    return xac_unit_access(env, ctx, v, page_no, is_write);
}

/*
 * look_only -- the access cannot be recorded.  The transaction fails, so its parent stays,
 * and with it what the page shows: no version beyond it can reach the file.
 */
XAC_SIGSAFE static int
look_only(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v, uint64_t page_no,
          bool is_write, int error)
{
    struct xac_file *file = xac_file_at(env, v->file);
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    if (!ctx->is_query && !ctx->is_unrecorded) {
        ctx->error = error;
        ctx->error_lacking = ctx->lacking;
        ctx->error_page = xac_page_id(v->file, v->area.first + page_no);
        (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_RESOURCE, env->pid, 0);
    }
    ctx->is_unrecorded = true;
    ctx->lacking = XAC_LACKS_MEMORY; /* unless somebody says otherwise */
    return xac_view_show(env, v, page_no,
                         xac_ptab_find(&env->shm, &file->root, v->area.first + page_no),
                         atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed),
                         is_write);
}

XAC_SIGSAFE int
xac_view_access(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
                uint64_t page_no, bool is_write)
{
    int rc;

    if (xac_unlikely(ctx->is_unrecorded))
        return look_only(env, ctx, v, page_no, is_write, 0);
    if (v->area.ops->splits
        && xac_unlikely(ctx->unit_shift > 0 || ++ctx->n_islands > ctx->islands_max))
        rc = xac_unit_access(env, ctx, v, page_no, is_write);
    else
        rc = access_page(env, ctx, v, page_no, is_write);
    return xac_likely(rc == 0) ? 0 : look_only(env, ctx, v, page_no, is_write, rc);
}

/* ---- Being alone ------------------------------------------------------------------- */

int
xac_view_forget(struct xac_view *v, enum xac_protection prot)
{
    int rc = v->area.ops->discard(&v->area, 0, v->area.n_pages);

    if (rc == 0
        && xac_sys.madvise(v->page, v->area.n_pages * sizeof v->page[0], MADV_DONTNEED)
               != 0)
        rc = errno;
    v->n_copies = 0;
    v->n_warm = 0;
    v->is_kept = false;
    return rc == 0 && v->area.ops->splits
               ? v->area.ops->protect(&v->area, 0, v->area.n_pages, prot)
               : rc;
}

void
xac_view_lose(struct xac_view *v, struct xac_view_page *p)
{
    p->state = xac_view_is_open(v) ? XAC_PAGE_HIDDEN : XAC_PAGE_ABSENT;
    if (v->area.ops->splits || p->copy == XAC_COPY_NONE)
        return;
    p->copy = XAC_COPY_NONE;
    v->n_copies--;
}

int
xac_view_hide(struct xac_view *v, uint64_t page_no)
{
    xac_warm_forget(v, page_no);
    xac_view_lose(v, &v->page[page_no]);
    return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_NONE);
}

/* hide_versions -- hide every page that has a version in the store. */
static int
hide_versions(struct xac_env *env, struct xac_view *v)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_relaxed);
    int rc = 0;

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

/* enter_alone -- make the whole view readable, if few versions stand against it. */
static int
enter_alone(struct xac_env *env, struct xac_view *v, uint64_t epoch)
{
    uint64_t used = atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
    uint64_t commit = xac_chain_commit(env);
    int rc;

    v->alone_epoch = epoch;
    if (xac_area_shares(&v->area)) /* invariant (5): nothing stays */
        return 0;
    if (!v->area.ops
             ->splits) { /* all is absent, and stays from now on as it is touched */
        v->is_alone = true;
        return 0;
    }
    if (commit < v->alone_retry || used > ALONE_HIDDEN_MAX) {
        if (commit >= v->alone_retry)
            v->alone_retry = commit + ALONE_RETRY;
        return 0;
    }
    v->is_alone = true;
    rc = xac_view_forget(v, XAC_PROT_READ);
    if (rc == 0)
        rc = hide_versions(env, v);
    v->is_alone = rc == 0;
    return rc == 0 ? 0 : xac_view_forget(v, XAC_PROT_NONE);
}

int
xac_view_leave_alone(struct xac_view *v)
{
    int rc;

    v->is_alone = false;
    v->alone_retry = 0;
    rc = xac_view_forget(v, XAC_PROT_NONE);
    return rc == 0 && v->area.is_scanned ? xac_scan_stop(v) : rc;
}

/*
 * evict -- drop an eighth of the pages that stay, those the hand comes to first.  Which of
 * them are used is not known without a trap, so that they are as good as any others.
 */
static int
evict(struct xac_view *v)
{
    uint64_t goal = v->n_copies - v->n_copies / 8;
    int rc = xac_warm_cool(v);

    for (uint64_t step = 0; v->n_copies > goal && step <= v->area.n_pages && rc == 0;
         step += EVICT_STEP) {
        uint64_t from = v->hand < v->area.n_pages ? v->hand : 0;
        uint64_t end =
            v->area.n_pages - from < EVICT_STEP ? v->area.n_pages : from + EVICT_STEP;
        uint64_t had = v->n_copies;

        for (uint64_t p = from; p < end; p++)
            xac_view_lose(v, &v->page[p]);
        if (v->n_copies < had)
            rc = v->area.ops->discard(&v->area, from, end - from);
        v->hand = end;
    }
    return rc;
}

/* ---- Before and after a transaction ------------------------------------------------ */

/* islands_max -- a context's share of the mappings that we allow ourselves. */
static uint64_t
islands_max(const struct xac_env *env)
{
    /* Relaxed: a share that was right a moment ago will do. */
    uint32_t n = atomic_load_explicit(&xac_participant_at(env, env->self)->n_contexts,
                                      memory_order_relaxed);
    uint64_t share = XAC_ISLANDS_MAX / (n == 0 ? 1 : n);

    return share < XAC_ISLANDS_LEAST ? XAC_ISLANDS_LEAST : share;
}

/* drop -- a kept page that has been written since. */
static int
drop(struct xac_env *env, struct xac_view *v, uint64_t page)
{
    const struct xac_page *written = (const struct xac_page *)xac_shm_at(&env->shm, page);
    uint64_t id = atomic_load_explicit(&written->id, memory_order_relaxed);
    uint64_t page_no = xac_page_no(id) - v->area.first;

    if (!xac_view_shows(v, id) || v->page[page_no].state != XAC_PAGE_READABLE)
        return 0;
    xac_view_lose(v, &v->page[page_no]);
    return v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_NONE);
}

/* advance -- let the kept pages show what a query is to see, whose parent is not lower. */
static int
advance(struct xac_env *env, struct xac_view *v, uint64_t parent)
{
    uint64_t pages[XAC_RING_PAGES];
    uint32_t n_pages;
    int rc = 0;

    xac_assert(v->shown <= parent);
    if (parent - v->shown > ADVANCE_MAX)
        return xac_view_forget(v, XAC_PROT_NONE);
    for (uint64_t n = v->shown + 1; n <= parent && rc == 0; n++) {
        if (!xac_chain_wrote(env, n, pages, &n_pages))
            return xac_view_forget(v, XAC_PROT_NONE);
        for (uint32_t i = 0; i < n_pages && rc == 0; i++)
            rc = drop(env, v, pages[i]);
    }
    v->shown = parent;
    return rc == 0 && v->n_copies > XAC_STAY_MAX ? evict(v) : rc;
}

/* begin_view -- what a view keeps from one transaction to the next. */
static int
begin_view(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v)
{
    int rc;

    if (xac_unlikely(v->is_lost) && (rc = xac_view_renew(v)) != 0)
        return xac_err(rc, "taking back the pages of %s", v->name);
    if (v->is_alone && v->alone_epoch != ctx->alone_epoch)
        return xac_view_leave_alone(v); /* another participant has come */
    if (v->is_kept && ctx->keeps)
        return advance(env, v,
                       atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed));
    rc = v->is_kept ? xac_view_forget(v, XAC_PROT_NONE) : 0;
    if (!v->is_alone)
        return rc == 0 && ctx->alone_epoch != 0 ? enter_alone(env, v, ctx->alone_epoch)
                                                : rc;
    rc = v->n_warm > 0 ? xac_warm_begin(v, ctx->is_query) : 0;
    if (rc == 0)
        rc = xac_scan_begin(v);
    if (rc != 0)
        return rc;
    if (!v->area.ops->splits)
        return v->n_copies > XAC_STAY_MAX ? evict(v) : 0;
    if (v->n_copies > XAC_COPIES_MAX
        && atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed) == 0)
        return xac_view_forget(v, XAC_PROT_READ);
    return 0;
}

int
xac_view_begin_all(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc = 0;

    ctx->unit_shift = 0;
    ctx->n_islands = 0;
    ctx->islands_max = islands_max(env);
    ctx->is_unrecorded = false;
    if (ctx->outofcore != NULL)
        xac_outofcore_begin(ctx);
    ctx->keeps = ctx->is_query && ctx->alone_epoch == 0
                 && atomic_load_explicit(&env->options.stay_mapped, memory_order_relaxed);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        v->low = UINT64_MAX;
        v->high = 0;
        v->n_touched = 0;
        xac_assert(!xac_area_shares(&v->area) || v->n_copies == 0); /* invariant (5) */
        rc = begin_view(env, ctx, v);
    }
    return rc;
}

XAC_SIGSAFE bool
xac_view_is_shown(const struct xac_ctx *ctx, uint64_t page_id)
{
    const struct xac_view *v = xac_view_next(ctx, NULL, page_id);

    while (v != NULL && xac_view_page(v, page_id)->state != XAC_PAGE_READABLE
           && xac_view_page(v, page_id)->state != XAC_PAGE_DIRTY)
        v = xac_view_next(ctx, v, page_id);
    return v != NULL;
}

XAC_SIGSAFE struct xac_view *
xac_view_written(const struct xac_ctx *ctx, uint64_t page_id)
{
    struct xac_view *found = xac_view_next(ctx, NULL, page_id);

    for (struct xac_view *v = found; v != NULL && v->aliases != NULL;
         v = xac_view_next(ctx, v, page_id)) {
        uint32_t state = xac_view_page(v, page_id)->state;

        if (state == XAC_PAGE_DIRTY)
            return v;
        if (state == XAC_PAGE_SPILLED)
            found = v;
    }
    return found;
}

bool
xac_view_is_untouched(const struct xac_ctx *ctx, uint64_t page_id)
{
    const struct xac_view *v = xac_view_written(ctx, page_id);
    uint64_t page_no = xac_page_no(page_id) - v->area.first;

    return v->page[page_no].copy == XAC_COPY_PERHAPS
           && !v->area.ops->is_private(&v->area, page_no);
}

const uint8_t *
xac_view_working_copy(const struct xac_ctx *ctx, uint64_t page_id)
{
    struct xac_view *v = xac_view_written(ctx, page_id);
    uint64_t page_no;

    xac_assert(v != NULL);
    page_no = xac_page_no(page_id) - v->area.first;
    return v->page[page_no].state == XAC_PAGE_SPILLED ? xac_outofcore_spilled(v, page_no)
                                                      : xac_area_at(&v->area, page_no);
}

const uint8_t *
xac_view_file_bytes(const struct xac_ctx *ctx, uint64_t page_id, int place)
{
    const struct xac_view *v = xac_view_next(ctx, NULL, page_id);

    xac_assert(v != NULL);
    if (ctx->outofcore != NULL)
        return xac_outofcore_page(v->ctx, v->file, xac_page_no(page_id), place);
    return file_page(v, xac_page_no(page_id) - v->area.first);
}

void
xac_view_describe(const struct xac_ctx *ctx, uint64_t page_id, struct xac_conflict *out)
{
    const struct xac_file *f = xac_file_at(ctx->env, xac_page_file(page_id));
    const struct xac_view *v = xac_view_next(ctx, NULL, page_id);
    const char *path = (const char *)xac_shm_at(&ctx->env->shm, f->path);
    size_t n = f->path_len;

    if (n >= sizeof out->file)
        path += n - (sizeof out->file - 1);
    (void)memcpy(out->file, path, strlen(path) + 1);
    out->file_offset = xac_page_no(page_id) << ctx->env->page_shift;
    if (v != NULL)
        out->address =
            v->area.base + (xac_page_no(page_id) - v->area.first) * v->area.page_size;
}

void
xac_view_forked(struct xac_view *v)
{
    /* First of all: pages of the parent's transaction must not be seen. */
    v->area.ops->abandon(&v->area);
    if (v->aliases != NULL)
        xac_aliases_forked(v);
    (void)xac_view_leave_alone(v);
    xac_outofcore_drop_file(v);
    if (v->origin == NULL) /* of the parent */
        xac_handle_close(v->area.pagemap, &v->area.pagemap_handle);
    v->area.pagemap = -1;
}
