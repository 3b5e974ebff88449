/* SPDX-License-Identifier: MIT */
/*
 * view_alias.c -- pages of a file that several views of one context show: see view.h,
 * invariant (4).
 *
 * A page that is only read may be readable in each of them, as if they had nothing to do
 * with each other.  A page that is stored to cannot be a private copy of one view, nor
 * could it wander from one to the other: an instruction that loads through one view and
 * stores through another needs both at once.  So it is memory that they share, a page of
 * a memfd, from the first store to the end of the transaction.
 *
 * With XAC_OPT_FRAMES no view may show the page cache, so aliases lie over the memfd with all
 * their pages, watched by the engine.  A page has memory there while one of them shows it, and
 * counts once (outofcore_view.c); each of them traps by itself, and is given access to that
 * memory, or fills it.  Nothing stays from one transaction to the next (view.h, invariant 5).
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "store/outofcore.h"
#include "txn/team.h"
#include "view/view.h"

/* The memory of so many shared pages is kept for the next transaction. */
#define KEPT_MAX 64

/* Shared pages from which on all are taken back at once, instead of one by one. */
#define SINGLY_MAX 1024

/* What all views of a file with aliases in one context have in common. */
struct xac_aliases {
    struct xac_handle handle; /* of fd                                                */
    int fd;           /* memfd; page n of the file at the same place                    */
    unsigned n_views; /* that point here                                                */
    uint64_t n_pages; /* size of the memfd                                              */
    uint64_t n_used;  /* mappings of its pages made in this transaction                 */
    uint64_t n_kept;  /* pages of it that may have memory                               */
};

XAC_SIGSAFE static uint64_t
id_of(const struct xac_view *v, uint64_t page_no)
{
    xac_assert(page_no < v->area.n_pages);
    return xac_page_id(v->file, v->area.first + page_no);
}

/* other -- the first view behind `after` (NULL: of all) but v that shows v's page. */
XAC_SIGSAFE static struct xac_view *
other(const struct xac_view *v, const struct xac_view *after, uint64_t id)
{
    struct xac_view *next = xac_view_next(v->ctx, after, id);

    return next == v ? xac_view_next(v->ctx, next, id) : next;
}

/* ---- Who is whose alias ----------------------------------------------------------------- */

static bool
have_common_pages(const struct xac_view *a, const struct xac_view *b)
{
    return a != b && a->file == b->file && a->area.first < b->area.first + b->area.n_pages
           && b->area.first < a->area.first + a->area.n_pages;
}

static bool
has_alias(const struct xac_view *v)
{
    const struct xac_view *w = v->ctx->views;

    while (w != NULL && !have_common_pages(v, w))
        w = w->next;
    return w != NULL;
}

/* make_memory -- the memfd, as long as the file; ret 0 or an error. */
static int
make_memory(struct xac_aliases *t, const struct xac_view *v)
{
    uint64_t end = v->area.first + v->area.n_pages;

    xac_assert(t != NULL);
    if (t->fd < 0)
        t->fd =
            xac_handle_keep(xac_sys.memfd_create("xac-aliases", MFD_CLOEXEC), &t->handle);
    if (!xac_handle_is_ours(t->fd, &t->handle))
        return xac_err(errno, "memory for overlapping mappings of %s", v->name);
    if (end < t->n_pages)
        end = t->n_pages;
    if (xac_sys.ftruncate(t->fd, (off_t)(end * v->area.page_size)) != 0)
        return xac_err(errno, "memory for overlapping mappings of %s", v->name);
    t->n_pages = end;
    xac_assert(t->fd >= 0);
    xac_assert(t->n_pages >= v->area.first + v->area.n_pages);
    return 0;
}

/*
 * fall_back -- pages that are memory of their own cannot be shared, and those of aliases are
 * mapped one by one anyway.  In a bound they are memory, but not the memory that the others show.
 */
static int
fall_back(struct xac_view *v)
{
    int rc = 0;

    if (v->area.is_memory_only)
        return v->staying.is_alone || v->staying.is_kept ? xac_view_leave_alone(v) : 0;
    if (v->area.ops->fills != NULL && v->staying.is_alone)
        rc = xac_view_leave_alone(v);
    return rc == 0 && v->area.ops->fills != NULL ? xac_engine_fall_back(&v->area) : rc;
}

/* join -- let a view use what its aliases have in common, made if it is the first. */
static int
join(struct xac_view *v)
{
    const struct xac_view *w = v->ctx->views;
    int rc = fall_back(v);

    xac_assert(v->aliases == NULL);
    if (rc != 0)
        return xac_err(rc, "mapping %s a second time, overlapping", v->name);
    while (w != NULL && (w->file != v->file || w->aliases == NULL))
        w = w->next;
    if (w != NULL) {
        v->aliases = w->aliases;
    } else {
        v->aliases = (struct xac_aliases *)calloc(1, sizeof *v->aliases);
        if (v->aliases == NULL)
            return xac_err(ENOMEM, "%s", v->name);
        v->aliases->fd = -1;
    }
    v->aliases->n_views++;
    xac_assert(v->aliases->n_views > 0);
    return 0;
}

/* share -- let a view that shows nothing be the aliases' memory; ret 0, or an error and it has
   memory of its own as before. */
static int
share(struct xac_view *v)
{
    int rc;

    xac_assert(v->aliases != NULL);
    xac_assert(v->aliases->fd >= 0);
    v->area.memory = v->aliases->fd;
    rc = v->area.ops->moved(&v->area);
    if (rc == 0)
        return 0;
    v->area.memory = -1;
    (void)v->area.ops->moved(&v->area); /* if that fails, so does every access */
    return xac_err(rc, "XAC_OPT_FRAMES: mapping %s a second time, overlapping", v->name);
}

int
xac_aliases_meet(struct xac_ctx *ctx)
{
    int rc = 0;

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        bool has = has_alias(v);

        if (v->aliases == NULL && has)
            rc = join(v);
        if (rc == 0 && v->aliases != NULL
            && (v->aliases->fd < 0
                || v->area.first + v->area.n_pages > v->aliases->n_pages))
            rc = make_memory(v->aliases, v);
        if (rc == 0 && has && !xac_area_shares(&v->area) && v->area.is_memory_only)
            rc = share(v);
    }
    return rc;
}

void
xac_aliases_leave(struct xac_view *v)
{
    struct xac_aliases *t = v->aliases;

    xac_assert(t == NULL || t->n_views > 0);
    v->aliases = NULL;
    v->area.memory = -1;
    if (t == NULL || --t->n_views > 0)
        return;
    xac_handle_close(t->fd, &t->handle);
    free(t);
}

/* ---- One page -------------------------------------------------------------------------- */

XAC_SIGSAFE uint32_t
xac_alias_entry(const struct xac_view *v, uint64_t page_no)
{
    uint64_t id = id_of(v, page_no);
    const struct xac_view *w = other(v, NULL, id);

    xac_assert(v->aliases != NULL);
    while (w != NULL && xac_view_page(w, id)->entry == 0)
        w = other(v, w, id);
    return w != NULL ? xac_view_page(w, id)->entry : 0;
}

XAC_SIGSAFE bool
xac_alias_is_dirty(const struct xac_view *v, uint64_t page_no)
{
    uint64_t id = id_of(v, page_no);
    const struct xac_view *w = other(v, NULL, id);

    xac_assert(page_no < v->area.n_pages);
    if (xac_view_is_written(&v->pages.at[page_no]))
        return false;
    while (w != NULL && !xac_view_is_written(xac_view_page(w, id)))
        w = other(v, w, id);
    return w != NULL;
}

XAC_SIGSAFE bool
xac_alias_is_needed(const struct xac_view *v, uint64_t page_no, bool is_write)
{
    xac_assert(page_no < v->area.n_pages);
    if (v->pages.at[page_no].state == XAC_PAGE_DIRTY)
        return false;
    return is_write ? other(v, NULL, id_of(v, page_no)) != NULL
                    : xac_alias_is_dirty(v, page_no);
}

/* hide_in -- a page that is about to become dirty elsewhere must trap in this view. */
XAC_SIGSAFE static int
hide_in(struct xac_view *w, struct xac_view_page *p)
{
    int rc;

    xac_assert(p->state != XAC_PAGE_DIRTY);
    xac_assert(p >= w->pages.at && p < w->pages.at + w->area.n_pages);
    if (!xac_view_is_readable(w, p))
        return 0;
    rc = w->area.ops->protect(&w->area, (uint64_t)(p - w->pages.at), 1, XAC_PROT_NONE);
    if (rc == 0)
        p->state = w->staying.is_alone ? XAC_PAGE_HIDDEN : XAC_PAGE_ABSENT;
    return rc;
}

XAC_SIGSAFE int
xac_alias_write(struct xac_view *v, uint64_t page_no, const struct xac_page *page,
                uint64_t parent)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    uint64_t id = id_of(v, page_no);
    uint8_t *at = xac_area_at(&v->area, page_no);
    const uint8_t *bytes = NULL;
    bool is_dirty = xac_alias_is_dirty(v, page_no);
    int rc = 0, prot = PROT_READ | PROT_WRITE;

    xac_assert(v->aliases != NULL);
    xac_assert(p->state != XAC_PAGE_DIRTY);
    if (!is_dirty) {
        bytes = xac_view_base_bytes(v, page_no, page, parent);
        if (bytes == NULL)
            return errno;
        for (struct xac_view *w = other(v, NULL, id); w != NULL && rc == 0;
             w = other(v, w, id))
            rc = hide_in(w, xac_view_page(w, id));
        if (rc != 0)
            return rc;
    }
    if (!xac_handle_is_ours(v->aliases->fd, &v->aliases->handle))
        return EBADF;
    if (bytes != NULL
        && xac_team_is_on(v->ctx)) { /* others see it as soon as it is mapped */
        rc = xac_write_full(v->aliases->fd, bytes, v->area.page_size,
                            (v->area.first + page_no) * v->area.page_size);
        if (rc != 0)
            return rc;
        bytes = NULL;
    }
    /* One that is written in an alias already is closed only if it is shown for a load. */
    if (is_dirty && xac_view_written_prot(v, page_no) == XAC_PROT_READ)
        prot = PROT_READ;
    if (xac_sys.mmap(at, v->area.page_size, prot, MAP_SHARED | MAP_FIXED, v->aliases->fd,
                     (off_t)((v->area.first + page_no) * v->area.page_size))
        == MAP_FAILED)
        return errno;
    if (bytes != NULL)
        memcpy(at, bytes, v->area.page_size);
    v->aliases->n_used++;
    if (p->copy != XAC_COPY_NONE && v->pages.n_copies > 0)
        v->pages.n_copies--;
    p->copy = XAC_COPY_SHARED;
    p->state = XAC_PAGE_DIRTY;
    xac_view_note(v, page_no, true);
    xac_assert(p->copy == XAC_COPY_SHARED);
    xac_assert(p->state == XAC_PAGE_DIRTY);
    return 0;
}

/* ---- One page of memory that is shared in any case ----------------------------------------- */

/* missing_bytes -- of a page that nobody shows: what was stored and spilled, or what it was
   before. */
XAC_SIGSAFE static const uint8_t *
missing_bytes(struct xac_view *v, uint64_t page_no, const struct xac_page *page,
              uint64_t parent)
{
    uint64_t id = id_of(v, page_no);
    const struct xac_view *w = xac_view_written(v->ctx, id);

    xac_assert(xac_area_shares(&v->area));
    return xac_view_page(w, id)->state == XAC_PAGE_SPILLED
               ? xac_outofcore_spilled(v, page_no)
               : xac_view_base_bytes(v, page_no, page, parent);
}

XAC_SIGSAFE int
xac_alias_show(struct xac_view *v, uint64_t page_no, const struct xac_page *page,
               uint64_t parent, bool is_write)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    bool is_there = xac_view_is_shown(v->ctx, id_of(v, page_no));
    bool is_dirty = is_write || xac_view_is_written(p); /* from now on */
    const uint8_t *bytes = NULL;
    int rc = 0;

    xac_assert(xac_area_shares(&v->area));
    xac_assert(page_no < v->area.n_pages);
    if (xac_view_is_readable(v, p)) {
        rc = is_write ? v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_WRITE) : 0;
    } else if (p->state != XAC_PAGE_DIRTY) {
        if (!is_there) {
            bytes = missing_bytes(v, page_no, page, parent);
            if (bytes == NULL)
                return errno;
        }
        rc = v->area.ops->fills->fill(&v->area, page_no, 1, bytes,
                                      is_write   ? XAC_PROT_WRITE
                                      : is_dirty ? xac_view_written_prot(v, page_no)
                                                 : XAC_PROT_READ);
    }
    if (rc != 0)
        return rc;
    xac_view_gain(v, p);
    xac_view_note(v, page_no, is_dirty);
    return is_there ? 0 : xac_outofcore_shown(v, page_no);
}

XAC_SIGSAFE bool
xac_alias_is_back(struct xac_view *v, uint64_t page_no)
{
    bool is_dirty =
        v->pages.at[page_no].state == XAC_PAGE_DIRTY && !xac_view_is_guarded(v, page_no);

    xac_assert(xac_area_shares(&v->area));
    xac_assert(page_no < v->area.n_pages);
    return v->area.ops->fills->fill(&v->area, page_no, 1, NULL,
                                    is_dirty ? XAC_PROT_WRITE : XAC_PROT_READ)
           == 0;
}

int
xac_alias_end(struct xac_view *v, uint64_t page_no)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    int rc = xac_area_map_file(&v->area, page_no, 1);

    xac_assert(page_no < v->area.n_pages);
    xac_assert(p->copy == XAC_COPY_SHARED);
    if (rc == 0) {
        p->copy = XAC_COPY_NONE;
        p->state = v->staying.is_alone ? XAC_PAGE_HIDDEN : XAC_PAGE_ABSENT;
    }
    xac_assert(rc != 0 || p->copy == XAC_COPY_NONE);
    return rc;
}

int
xac_aliases_end_many(struct xac_view *v, bool all)
{
    int rc;

    xac_assert(v->aliases != NULL);
    if (xac_area_shares(&v->area) || (!all && v->aliases->n_used <= SINGLY_MAX))
        return 0;
    rc = xac_area_map_file(&v->area, 0, v->area.n_pages);
    if (rc == 0
        && xac_sys.madvise(v->pages.at, v->area.n_pages * sizeof v->pages.at[0],
                           MADV_DONTNEED)
               != 0)
        rc = errno;
    v->pages.n_copies = 0;
    v->staying.is_alone = false;
    v->staying.retry = 0;
    return rc;
}

void
xac_aliases_free_memory(struct xac_view *v)
{
    struct xac_aliases *t = v->aliases;

    xac_assert(t != NULL);
    t->n_kept += t->n_used;
    t->n_used = 0;
    if (t->n_kept <= KEPT_MAX)
        return;
    /* If it fails, the next one will do it. */
    if (xac_handle_is_ours(t->fd, &t->handle)
        && xac_sys.fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                             (off_t)(t->n_pages * v->area.page_size))
               == 0)
        t->n_kept = 0;
    xac_assert(t->n_used == 0);
}

int
xac_aliases_gather(struct xac_view *v)
{
    const struct xac_ctx *ctx = v->ctx;
    uint64_t parent = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    int rc = 0;

    xac_assert(v->aliases != NULL);
    for (uint64_t i = 0; i < ctx->n_entries && rc == 0; i++) {
        const struct xac_entry *e = xac_set_entry(ctx, i);
        const struct xac_page *page = xac_entry_page(v->env, e);
        uint64_t id = xac_entry_page_id(v->env, e);
        uint64_t page_no = xac_page_no(id) - v->area.first;

        if (!xac_view_shows(v, id) || !xac_alias_is_dirty(v, page_no))
            continue;
        rc = xac_area_shares(&v->area) ? xac_alias_show(v, page_no, page, parent, true)
                                       : xac_alias_write(v, page_no, page, parent);
        if (rc == 0 && xac_view_is_guarded(v, page_no))
            rc = v->area.ops->protect(&v->area, page_no, 1, XAC_PROT_READ);
    }
    return rc;
}

/* ---- fork ------------------------------------------------------------------------------ */

void
xac_aliases_forked(struct xac_view *v)
{
    xac_assert(v->aliases != NULL);
    if (!xac_area_shares(&v->area))
        (void)xac_area_map_file(&v->area, 0, v->area.n_pages);
    v->area.memory = -1;
    xac_handle_close(v->aliases->fd, &v->aliases->handle);
    v->aliases->fd = -1;
    xac_assert(v->aliases->fd == -1);
}
