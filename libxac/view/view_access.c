/* SPDX-License-Identifier: MIT */
/*
 * view_access.c -- an access to one page, from the fault on: it is allowed, registered, and the page
 * is shown.  See view.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/probe.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/alone.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/reader_limit.h"
#include "txn/team.h"
#include "view/fault.h"
#include "view/view.h"

/* ---- What a page holds ----------------------------------------------------------------- */

/* What blank pages hold.  Never stored to: the kernel has one page of zeros behind all of it. */
static uint8_t blank[XAC_BLANK_BYTES];

/* version_bytes -- of a version slot; NULL with errno. */
XAC_SIGSAFE static const uint8_t *
version_bytes(const struct xac_view *v, uint64_t vslot)
{
    const uint8_t *bytes = xac_version_bytes(v->env, vslot);

    xac_assert(vslot != 0);
    if (xac_unlikely(bytes == NULL))
        v->ctx->lacking = XAC_LACKS_VERSION;
    return bytes;
}

/* put -- the bytes of a version into a page that has no access, nor gets any. */
XAC_SIGSAFE static int
put(struct xac_view *v, uint64_t page_no, const uint8_t *bytes, uint64_t commit)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    int rc;

    xac_assert(!xac_view_is_readable(v, p));
    xac_view_gain(v, p);
    rc = xac_poke(xac_area_at(&v->area, page_no), bytes, v->area.page_size);
    if (rc == 0 && !v->ctx->is_cut)
        p->copy = XAC_COPY_OF(commit);
    return rc;
}

XAC_SIGSAFE int
xac_view_load(struct xac_env *env, struct xac_view *v, uint64_t page_no,
              const struct xac_page *page, uint64_t parent, bool *is_writablep)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    bool is_cut = v->ctx->is_cut;
    uint64_t commit = 0;
    uint64_t vslot =
        page != NULL && !is_cut ? xac_version_find(env, page, parent, &commit) : 0;
    const uint8_t *bytes;
    int rc = 0;

    xac_assert(commit <= parent); /* invariant (1) of the consistency tree */
    if (vslot == 0 && !is_cut) {
        xac_assert(page_no < v->area.n_pages);
        xac_assert(p->state != XAC_PAGE_DIRTY);
        if (p->copy == XAC_COPY_NONE)
            return 0;
        rc = v->area.ops->discard(&v->area, page_no, 1);
        if (rc == 0) {
            p->copy = XAC_COPY_NONE;
            v->pages.n_copies--;
        }
        return rc;
    }
    if (!is_cut && p->copy == XAC_COPY_OF(commit))
        return 0;
    bytes = is_cut ? blank : version_bytes(v, vslot);
    if (bytes == NULL)
        return errno;
    if (xac_team_is_on(v->ctx)) /* others must not see it while it is half copied */
        return put(v, page_no, bytes, commit);
    if (!*is_writablep)
        rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE);
    if (rc != 0)
        return rc;
    *is_writablep = true;
    xac_view_gain(v, p);
    memcpy(xac_area_at(&v->area, page_no), bytes, v->area.page_size);
    if (!is_cut)
        p->copy = XAC_COPY_OF(commit);
    xac_assert(is_cut || p->copy == XAC_COPY_OF(commit));
    xac_assert(*is_writablep);
    return 0;
}

XAC_SIGSAFE const uint8_t *
xac_view_file_run(const struct xac_view *v, uint64_t first, uint64_t *n)
{
    uint64_t from = xac_file_blank_from(xac_file_at(v->env, v->file));
    uint64_t most = sizeof blank / v->area.page_size;

    xac_assert(*n > 0);
    xac_assert(first < v->area.n_pages);
    if (v->area.first + first >= from) {
        *n = *n < most ? *n : most;
        return blank;
    }
    most = from - (v->area.first + first);
    *n = *n < most ? *n : most;
    xac_assert(*n > 0);
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
    uint64_t commit, vslot;

    xac_assert(page_no < v->area.n_pages);
    if (xac_unlikely(v->ctx->is_cut))
        return blank;
    vslot = page != NULL ? xac_version_find(v->env, page, parent, &commit) : 0;
    if (vslot != 0)
        return version_bytes(v, vslot);
    return v->ctx->outofcore == NULL
               ? file_page(v, page_no)
               : xac_outofcore_page(v->ctx, v->file, v->area.first + page_no,
                                    XAC_PLACE_SHOWN);
}

const uint8_t *
xac_view_file_bytes(const struct xac_ctx *ctx, uint64_t page_id, int place)
{
    const struct xac_view *v = xac_view_next(ctx, NULL, page_id);

    xac_assert(v != NULL);
    xac_assert(place < XAC_PLACES);
    if (ctx->outofcore != NULL)
        return xac_outofcore_page(v->ctx, v->file, xac_page_no(page_id), place);
    return file_page(v, xac_page_no(page_id) - v->area.first);
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

XAC_SIGSAFE const uint8_t *
xac_view_working_copy(const struct xac_ctx *ctx, uint64_t page_id)
{
    struct xac_view *v = xac_view_written(ctx, page_id);
    uint64_t page_no;

    xac_assert(v != NULL);
    page_no = xac_page_no(page_id) - v->area.first;
    return v->pages.at[page_no].state == XAC_PAGE_SPILLED
               ? xac_outofcore_spilled(v, page_no)
               : xac_area_at(&v->area, page_no);
}

/* ---- Showing a page ------------------------------------------------------------------- */

XAC_SIGSAFE void
xac_view_note(struct xac_view *v, uint64_t page_no, bool is_write)
{
    struct xac_view_page *p = &v->pages.at[page_no];

    xac_assert(page_no < v->area.n_pages);
    v->pages.n_touched += p->state == XAC_PAGE_ABSENT;
    if (is_write && p->state != XAC_PAGE_DIRTY) {
        v->pages.n_copies += p->copy == XAC_COPY_NONE;
        p->copy = p->copy == XAC_COPY_NONE ? XAC_COPY_PERHAPS : XAC_COPY_UNKNOWN;
        p->state = XAC_PAGE_DIRTY;
    } else if (p->state != XAC_PAGE_DIRTY) {
        p->state = xac_view_is_open(v) ? XAC_PAGE_ABSENT : XAC_PAGE_READABLE;
    }
    xac_view_reach(v, page_no, page_no + 1);
    xac_assert(!is_write || p->state == XAC_PAGE_DIRTY);
}

/*
 * keep_image -- of a readable page that is about to be stored to, if the commit has to compare all of
 * it.  It does without if there is no room, and if the page may have been stored to already.
 * If a signal handler makes the page writable meanwhile, the image is not used: it may have some of the
 * handler's stores.
 */
XAC_SIGSAFE static void
keep_image(const struct xac_view *v, uint64_t page_no)
{
    struct xac_ctx *ctx = v->ctx;
    size_t size = v->area.page_size;
    unsigned i;

    xac_assert(xac_view_is_readable(v, &v->pages.at[page_no]));
    if (!xac_alone_tells_lines(v->env) || ctx->n_images == XAC_IMAGES
        || v->area.is_scanned)
        return;
    if (xac_unlikely(ctx->images == NULL)) {
        void *at = xac_sys.mmap(NULL, XAC_IMAGES * size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED)
            return;
        ctx->images = (uint8_t *)at;
    }
    i = ctx->n_images++;
    ctx->image_id[i] = 0;
    memcpy(ctx->images + i * size, xac_area_at(&v->area, page_no), size);
    if (!xac_view_is_writable(&v->pages.at[page_no]))
        ctx->image_id[i] = xac_page_id(v->file, v->area.first + page_no);
}

const uint8_t *
xac_view_image(const struct xac_ctx *ctx, uint64_t page_id)
{
    xac_assert(ctx->n_images <= XAC_IMAGES);
    for (unsigned i = 0; i < ctx->n_images; i++) {
        if (ctx->image_id[i] == page_id)
            return ctx->images + i * ctx->env->page_size;
    }
    return NULL;
}

/* fill -- step 5 where the engine fills pages: a page without access. */
XAC_SIGSAFE static int
fill(struct xac_view *v, uint64_t page_no, const struct xac_page *page, uint64_t parent,
     bool is_write)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    const uint8_t *bytes = xac_view_base_bytes(v, page_no, page, parent);
    int rc;

    xac_assert(p->state == XAC_PAGE_ABSENT || p->state == XAC_PAGE_HIDDEN);
    if (bytes == NULL)
        return errno;
    if (is_file(v, page_no, bytes)) {
        if (page_no == v->pages.ahead_next
            && xac_ahead_fill(v, page_no, parent, is_write))
            return 0;
        v->pages.ahead_next = page_no + 1;
        v->pages.ahead_n = 1;
    }
    rc = v->area.ops->fills->fill(&v->area, page_no, 1, bytes,
                                  is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
    if (rc != 0)
        return rc;
    xac_view_gain(v, p);
    return 0;
}

/* show_filled -- where the engine fills pages. */
XAC_SIGSAFE static int
show_filled(struct xac_view *v, uint64_t page_no, const struct xac_page *page,
            uint64_t parent, bool is_write)
{
    const struct xac_view_page *p = &v->pages.at[page_no];
    bool is_new = !xac_view_is_readable(v, p);
    int rc = 0;

    if (xac_unlikely(p->state == XAC_PAGE_SPILLED))
        return xac_outofcore_back(v, page_no);
    if (is_new)
        rc = fill(v, page_no, page, parent, is_write);
    else if (is_write && !xac_view_is_writable(p))
        keep_image(v, page_no);
    if (!is_new && is_write && p->state != XAC_PAGE_LOOSE)
        rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE);
    if (rc != 0)
        return rc;
    xac_view_note(v, page_no, is_write);
    return is_new && v->ctx->outofcore != NULL ? xac_outofcore_shown(v, page_no) : 0;
}

/* load -- where the engine maps the file: have the private page hold the page's version, if it
   has one, and give it the access. */
XAC_SIGSAFE static int
load(struct xac_env *env, struct xac_view *v, uint64_t page_no,
     const struct xac_page *page, uint64_t parent, bool is_write)
{
    bool is_writable = false;
    int rc = xac_view_load(env, v, page_no, page, parent, &is_writable);

    if (rc != 0 || (is_write && is_writable))
        return rc;
    return v->area.ops->protect(&v->area, page_no, 1,
                                is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
}

/* map -- the same, where each page is mapped by itself. */
XAC_SIGSAFE static int
map(struct xac_view *v, uint64_t page_no, const struct xac_page *page, uint64_t parent,
    bool is_write)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    const uint8_t *bytes = xac_view_base_bytes(v, page_no, page, parent);
    int rc;

    if (bytes == NULL)
        return errno;
    rc = v->area.ops->maps->show(&v->area, page_no,
                                 is_file(v, page_no, bytes) && !v->ctx->is_cut ? NULL
                                                                               : bytes,
                                 is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
    if (rc != 0)
        return rc;
    xac_view_gain(v, p);
    return 0;
}

/* show_mapped -- where the engine maps the file. */
XAC_SIGSAFE static int
show_mapped(struct xac_env *env, struct xac_view *v, uint64_t page_no,
            const struct xac_page *page, uint64_t parent, bool is_write)
{
    int rc = 0;

    if (!xac_view_is_readable(v, &v->pages.at[page_no]))
        rc = v->area.ops->maps->show != NULL
                 ? map(v, page_no, page, parent, is_write)
                 : load(env, v, page_no, page, parent, is_write);
    else if (is_write)
        rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE);
    if (rc == 0)
        xac_view_note(v, page_no, is_write);
    return rc;
}

/* show -- the page as it is, or as it was first. */
XAC_SIGSAFE static int
show(struct xac_env *env, struct xac_view *v, uint64_t page_no,
     const struct xac_page *page, uint64_t parent, bool is_write)
{
    xac_assert(page_no < v->area.n_pages);
    xac_assert(xac_lock_none_held());
    if (xac_unlikely(v->aliases != NULL)) {
        if (xac_area_shares(&v->area))
            return xac_alias_show(v, page_no, page, parent, is_write);
        if (xac_alias_is_needed(v, page_no, is_write))
            return xac_alias_write(v, page_no, page, parent);
    }
    return v->area.ops->fills != NULL
               ? show_filled(v, page_no, page, parent, is_write)
               : show_mapped(env, v, page_no, page, parent, is_write);
}

XAC_SIGSAFE int
xac_view_show(struct xac_env *env, struct xac_view *v, uint64_t page_no,
              const struct xac_page *page, uint64_t parent, bool is_write)
{
    bool is_done = false;
    int rc;

    xac_assert(page_no < v->area.n_pages);
    if (xac_likely(v->ctx->save_epoch == 0))
        return show(env, v, page_no, page, parent, is_write);
    rc = xac_view_before_show(v, page_no, is_write, &is_done);
    if (rc != 0 || is_done)
        return rc;
    rc = show(env, v, page_no, page, parent, is_write);
    return rc == 0 ? xac_view_after_show(v, page_no, is_write) : rc;
}

/* ---- Registering and showing it ----------------------------------------------------------- */

/* entry_for -- the page's entry in the set, made if missing; NULL: no room. */
XAC_SIGSAFE static struct xac_entry *
entry_for(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v, uint64_t page_no,
          struct xac_page *page, uint32_t mode)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    struct xac_entry *e;
    uint64_t index;

    xac_assert(page != NULL);
    if (p->entry == 0 && v->aliases != NULL)
        p->entry = xac_alias_entry(v, page_no);
    if (p->entry != 0)
        return xac_set_entry(ctx, p->entry - 1);
    e = xac_set_add(env, ctx, page, mode, &index);
    if (e != NULL)
        p->entry = (uint32_t)index + 1;
    xac_assert(e == NULL || e->page == xac_shm_offset(&env->shm, page));
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

    xac_assert(page_no < v->area.n_pages);
    xac_assert(v->ctx == ctx);
    if (page == NULL || (!is_write && v->staying.is_alone))
        return page;
    e = entry_for(env, ctx, v, page_no, page, mode);
    if (e == NULL)
        return NULL;
    if (ctx->is_query || v->staying.is_alone || env->policy->decides_at_end
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

    xac_assert(
        ctx->is_query
        || xac_txn_is_live(atomic_load_explicit(&txn->word, memory_order_relaxed)));
    if (!ctx->is_query && !env->policy->decides_at_end) {
        /* Said before it is known whether we may: a process that finds us FAILED keeps what both
           parent and next show (gc.c).  Release: pairs with the acquire there, who
           sees a next sees the parent before it.  The fence pairs with the one there:
           either we see that we have failed, or next is seen. */
        atomic_store_explicit(&txn->next, commit, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
    }
    /* Acquire: pairs with the exchange in xac_txn_fail.  After C: a process that failed
       us did so before it published, so if we saw the new C, we see that we have failed. */
    word = atomic_load_explicit(&txn->word, memory_order_acquire);

    if (xac_txn_state(word) == XAC_TXN_PENDING && !env->policy->decides_at_end)
        atomic_store_explicit(&txn->parent, commit, memory_order_relaxed);
    return atomic_load_explicit(&txn->parent, memory_order_relaxed);
}

XAC_SIGSAFE int
xac_view_unregistered(struct xac_ctx *ctx)
{
    xac_assert(ctx->env != NULL);
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

    xac_assert(v->ctx == ctx);
    if (page == NULL)
        return xac_view_unregistered(ctx);
    rc = xac_view_show(env, v, page_no, page, xac_view_parent(env, ctx), is_write);
    if (xac_likely(rc != ENOMEM) || v->area.ops->fills != NULL)
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

    xac_assert(ctx->is_unrecorded || error != 0);
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

    xac_assert(page_no < v->area.n_pages);
    xac_assert(ctx->txn != NULL);
    if (is_write && xac_view_is_closed(v, page_no))
        return xac_view_store_again(v, page_no);
    if (xac_unlikely(ctx->is_unrecorded))
        return look_only(env, ctx, v, page_no, is_write, 0);
    if (v->area.ops->maps != NULL
        && xac_unlikely(ctx->unit_shift > 0 || ++ctx->n_islands > ctx->islands_max))
        rc = xac_unit_access(env, ctx, v, page_no, is_write);
    else
        rc = access_page(env, ctx, v, page_no, is_write);
    if (xac_unlikely(rc != 0))
        rc = look_only(env, ctx, v, page_no, is_write, rc);
    if (!ctx->is_query)
        (void)xac_txn_is_deposed(env, ctx);
    else if (xac_unlikely(xac_txn_is_cut(ctx->txn)))
        rc = xac_view_cut(ctx);
    return rc;
}

/* ---- A query that has been cut off -------------------------------------------------------- */

/* drop_touched -- of a view: what has been shown lately may be of any state. */
XAC_SIGSAFE static int
drop_touched(struct xac_view *v)
{
    uint64_t end = v->pages.high < v->area.n_pages ? v->pages.high : v->area.n_pages;

    if (v->pages.low >= end)
        return 0;
    for (uint64_t p = v->pages.low; p < end; p++)
        xac_view_lose(v, &v->pages.at[p]);
    v->pages.ahead_next = 0;
    if (v->area.ops->fills != NULL)
        return v->area.ops->discard(&v->area, v->pages.low, end - v->pages.low);
    return v->area.ops->protect(&v->area, v->pages.low, end - v->pages.low,
                                XAC_PROT_NONE);
}

XAC_SIGSAFE int
xac_view_cut(struct xac_ctx *ctx)
{
    int rc = 0;

    xac_assert(ctx->is_query);
    if (ctx->is_cut)
        return 0;
    ctx->is_cut = ctx->is_unrecorded = true;
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = drop_touched(v);
    return rc;
}

/* ---- From a fault ---------------------------------------------------------------------- */

/* has_access -- need the access not trap, as far as the view knows? */
XAC_SIGSAFE static bool
has_access(const struct xac_view *v, uint64_t page_no, bool is_write)
{
    const struct xac_view_page *p = &v->pages.at[page_no];

    xac_assert(page_no < v->area.n_pages);
    return (xac_view_is_writable(p) && !(is_write && xac_view_is_closed(v, page_no)))
           || p->state == XAC_PAGE_LOOSE || (p->state == XAC_PAGE_READABLE && !is_write);
}

/* check -- may the thread touch the page so?  If not, the program stops. */
XAC_SIGSAFE static void
check(const struct xac_view *view, const void *addr, bool is_write,
      enum xac_team_part part)
{
    const struct xac_ctx *ctx = view->ctx;

    xac_assert((const uint8_t *)addr >= view->area.base);
    if (xac_unlikely(xac_half_done_any()))
        xac_fault_stop(view, addr, is_write,
                       "by a signal handler, in the middle of xend()",
                       "a signal handler must not touch a segment (xac.h, rule 5)");
    xac_require(xac_lock_none_held());
    if (part == XAC_TEAM_OUT || (part == XAC_TEAM_ALONE && ctx->depth == 0))
        xac_fault_foreign(view, addr, is_write);
    if (is_write && (ctx->is_query || ctx->query_depth > 0))
        xac_fault_stop(view, addr, is_write, "inside a query",
                       "xbeginQuery() promises not to write; use xbegin()");
}

/* handle -- a fault inside a view; returns if the access can be repeated. */
XAC_SIGSAFE static void
handle(struct xac_view *view, void *addr, bool is_write, enum xac_team_part part)
{
    struct xac_env *env = view->env;
    struct xac_ctx *ctx = view->ctx;
    uint64_t page_no = xac_area_page_no(&view->area, addr);
    const struct xac_view_page *p;
    int rc;

    p = &view->pages.at[page_no];
    /* First of all: the commit reads working copies, with locks held. */
    if (xac_unlikely(xac_area_shares(&view->area)) && part != XAC_TEAM_OUT
        && (p->state == XAC_PAGE_DIRTY || (p->state == XAC_PAGE_READABLE && !is_write))
        && xac_alias_is_back(view, page_no))
        return;
    check(view, addr, is_write, part);
    if (has_access(view, page_no, is_write)) {
        if (part == XAC_TEAM_IN && xac_team_is_spurious(ctx))
            return;
        xac_fault_stop(view, addr, is_write, "faults although access was given",
                       "is the file shorter than its mapping?");
    }
    /* What has been spilled had been announced. */
    if (is_write && env->options.announces != 0
        && xac_env_checking(env) != XAC_CHECKING_TRUSTED && p->state != XAC_PAGE_SPILLED)
        xac_fault_unannounced(view, addr);
    view->staying.n_stores +=
        is_write && view->staying.is_alone && p->state == XAC_PAGE_READABLE;
    xac_count_own(is_write ? &ctx->txn->counters.traps_write
                           : &ctx->txn->counters.traps_read,
                  1);
    XAC_PROBE2(trap, addr, is_write);
    rc = xac_view_access(env, ctx, view, page_no, is_write);
    if (rc != 0)
        xac_fault_unserved(view, addr, is_write, rc);
    if (part == XAC_TEAM_IN)
        xac_team_served(ctx);
}

/* on_fault -- the second fault on a page, which is readable then, is for a store where the
   hardware does not say, or where the first one has been taken for a load. */
XAC_SIGSAFE static void
on_fault(struct xac_area *area, void *addr, enum xac_access access)
{
    struct xac_view *view = xac_view_of(area);
    uint64_t page_no = xac_area_page_no(area, addr);
    const struct xac_view_page *p = &view->pages.at[page_no];

    bool is_second = access == XAC_ACCESS_UNKNOWN
                     || (access == XAC_ACCESS_WRITE && area->ops->maps != NULL
                         && area->ops->maps->reads_first);

    enum xac_team_part part = xac_team_enter(view->ctx);

    /* In a team another thread may have made it readable; in a query nobody stores. */
    if (is_second && part == XAC_TEAM_IN && view->ctx->query_depth > 0)
        handle(view, addr, false, part);
    else
        handle(view, addr,
               is_second
                   ? xac_view_is_readable(view, p) || xac_view_is_closed(view, page_no)
                   : access == XAC_ACCESS_WRITE,
               part);
    xac_team_leave(view->ctx, part);
}

XAC_SIGSAFE static int
fd_of(struct xac_area *area)
{
    return xac_view_fd(xac_view_of(area));
}

XAC_SIGSAFE static bool
is_read_only(struct xac_area *area, uint64_t page_no)
{
    const struct xac_view *v = xac_view_of(area);

    return v->pages.at[page_no].state == XAC_PAGE_READABLE
           || xac_view_is_guarded(v, page_no);
}

const struct xac_area_owner xac_view_owner = {
    .fd = fd_of,
    .is_read_only = is_read_only,
    .fault = on_fault,
    .astray = xac_fault_astray,
};
