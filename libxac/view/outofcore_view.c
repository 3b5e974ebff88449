/* SPDX-License-Identifier: MIT */
/*
 * outofcore_view.c -- how many pages the views of a context show: see outofcore.h.
 *
 * First shown, first dropped.  Which of the shown pages are used is not known without a trap,
 * and a page that is used soon comes back from the pool.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "txn/team.h"
#include "view/view.h"

/* Pages that are dropped together, at most. */
#define DROPPED_MAX 32

/* Pages spilled after which the device begins to write them, so that the page cache does not
   keep what we may not. */
#define UNCACHE_EVERY 256

XAC_SIGSAFE static struct xac_outofcore_shared *
shared_of(const struct xac_view *v)
{
    return &v->env->ctl->outofcore;
}

/* ---- Spilling ------------------------------------------------------------------------------ */

/* open_spill -- the view's temporary file, which has no name; ret 0 or errno. */
XAC_SIGSAFE static int
open_spill(struct xac_view *v)
{
    xac_assert(v->ctx->outofcore != NULL);
    if (v->spill.fd > 0 && xac_handle_is_ours(v->spill.fd, &v->spill.handle))
        return 0;
    if (v->spill.n_pages > 0)
        return EBADF; /* it has no name by which it could be opened again */
    v->spill.fd = xac_handle_keep(xac_sys.openat(xac_env_dirfd(v->env), ".",
                                                 O_TMPFILE | O_RDWR | O_CLOEXEC, 0600),
                                  &v->spill.handle);
    return v->spill.fd > 0 ? 0 : errno;
}

/* home -- the view whose file a page is spilled to: of aliases the first. */
XAC_SIGSAFE static struct xac_view *
home(const struct xac_ctx *ctx, uint64_t id)
{
    return xac_view_next(ctx, NULL, id);
}

/* write_page -- from memory that the kernel may be about to swap; ret 0 or errno. */
XAC_SIGSAFE static int
write_page(struct xac_view *from, uint64_t page_no, int fd, uint64_t offset)
{
    int rc;

    xac_assert(page_no < from->area.n_pages);
    xac_assert(fd > 0);
    do
        rc = xac_write_full(fd, xac_area_at(&from->area, page_no), from->area.page_size,
                            offset);
    while (rc == EFAULT && xac_area_shares(&from->area)
           && xac_alias_is_back(from, page_no));
    return rc;
}

/* spill -- a dirty page's working copy goes to the file; it is still shown.  ret 0 or errno. */
XAC_SIGSAFE static int
spill(const struct xac_ctx *ctx, uint64_t id)
{
    struct xac_view *v = home(ctx, id), *from = xac_view_written(ctx, id);
    int rc = open_spill(v);

    xac_assert(xac_view_page(from, id)->state == XAC_PAGE_DIRTY);
    xac_assert(xac_page_no(id) >= v->area.first);
    if (rc == 0)
        rc = write_page(from, xac_page_no(id) - from->area.first, v->spill.fd,
                        (xac_page_no(id) - v->area.first) * v->area.page_size);
    if (rc != 0)
        return rc;
    if (++v->spill.n_pages % UNCACHE_EVERY == 0) {
        (void)xac_sys.sync_file_range(v->spill.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        xac_outofcore_uncache(v->env, v->spill.fd); /* what was written before */
    }
    xac_count(&shared_of(v)->spilled, 1);
    return 0;
}

XAC_SIGSAFE const uint8_t *
xac_outofcore_spilled(struct xac_view *v, uint64_t page_no)
{
    const struct xac_view *h =
        home(v->ctx, xac_page_id(v->file, v->area.first + page_no));
    uint8_t *to = v->ctx->outofcore->places + XAC_PLACE_WORKING * v->area.page_size;
    size_t got = 0;
    int rc = EBADF;

    xac_assert(page_no < v->area.n_pages);
    xac_assert(v->area.first + page_no >= h->area.first);
    if (xac_handle_is_ours(h->spill.fd, &h->spill.handle))
        rc = xac_read_full(h->spill.fd, to, v->area.page_size,
                           (v->area.first + page_no - h->area.first) * v->area.page_size,
                           &got);
    if (rc == 0 && got == v->area.page_size) {
        xac_count(&shared_of(v)->fetched_back, 1);
        return to;
    }
    v->ctx->lacking = XAC_LACKS_SPILLED;
    errno = rc != 0 ? rc : EIO;
    return NULL;
}

int
xac_outofcore_spill_again(const struct xac_view *v, uint64_t page_no,
                          const uint8_t *bytes)
{
    const struct xac_view *h =
        home(v->ctx, xac_page_id(v->file, v->area.first + page_no));
    uint64_t at = v->area.first + page_no - h->area.first;

    xac_assert(v->pages.at[page_no].state == XAC_PAGE_SPILLED);
    xac_assert(bytes != NULL);
    return xac_handle_is_ours(h->spill.fd, &h->spill.handle)
               ? xac_write_full(h->spill.fd, bytes, v->area.page_size,
                                at * v->area.page_size)
               : EBADF;
}

XAC_SIGSAFE int
xac_outofcore_back(struct xac_view *v, uint64_t page_no)
{
    struct xac_view_page *p = &v->pages.at[page_no];
    const uint8_t *bytes = xac_outofcore_spilled(v, page_no);
    int rc = bytes == NULL ? errno
                           : v->area.ops->fills->fill(&v->area, page_no, 1, bytes,
                                                      xac_view_written_prot(v, page_no));

    xac_assert(page_no < v->area.n_pages);
    xac_assert(v->pages.at[page_no].state == XAC_PAGE_SPILLED);
    if (rc != 0)
        return rc;
    p->state = XAC_PAGE_DIRTY;
    p->copy = XAC_COPY_UNKNOWN;
    v->pages.n_copies++;
    return xac_outofcore_shown(v, page_no);
}

void
xac_outofcore_drop_file(struct xac_view *v)
{
    if (v->spill.fd > 0)
        xac_handle_close(v->spill.fd, &v->spill.handle);
    v->spill.fd = 0;
    v->spill.n_pages = 0;
}

/* ---- Dropping --------------------------------------------------------------------------------- */

/* lose -- a view's page has no access any more; what was written is in the file. */
XAC_SIGSAFE static void
lose(struct xac_view *v, struct xac_view_page *p)
{
    p->state = xac_view_is_written(p) ? XAC_PAGE_SPILLED : XAC_PAGE_ABSENT;
    xac_assert(p->copy == XAC_COPY_NONE || v->pages.n_copies > 0);
    if (p->copy != XAC_COPY_NONE)
        v->pages.n_copies--;
    p->copy = XAC_COPY_NONE;
}

/* set_stores -- may a dirty page be stored to, in all views that show it?  ret 0 or errno. */
XAC_SIGSAFE static int
set_stores(const struct xac_ctx *ctx, uint64_t id, bool may)
{
    int rc = 0;

    xac_assert(ctx->outofcore != NULL);
    for (struct xac_view *v = home(ctx, id); v != NULL && rc == 0;
         v = xac_view_next(ctx, v, id)) {
        uint64_t page_no = xac_page_no(id) - v->area.first;

        if (v->pages.at[page_no].state == XAC_PAGE_DIRTY)
            rc = v->area.ops->protect(&v->area, page_no, 1,
                                      may ? xac_view_written_prot(v, page_no)
                                          : XAC_PROT_READ);
    }
    return rc;
}

/*
 * spill_whole -- spill, with all that is stored until the page has no access any more: beside
 * other threads nobody may store to it from before it is read.  ret 0, or errno and it is as before.
 */
XAC_SIGSAFE static int
spill_whole(const struct xac_ctx *ctx, uint64_t id)
{
    bool is_team = xac_team_is_on(ctx);
    int rc = is_team ? set_stores(ctx, id, false) : 0;

    xac_assert(ctx->outofcore != NULL);
    if (rc == 0)
        rc = spill(ctx, id);
    if (rc != 0 && is_team)
        (void)set_stores(ctx, id, true); /* if it fails, too, the next store stops */
    return rc;
}

/*
 * drop -- a page that was shown long ago, in all views that show it.
 *
 * out  staysp  it cannot go now
 * ret  0 or errno
 */
XAC_SIGSAFE static int
drop(struct xac_page_batch *b, struct xac_ctx *ctx, uint64_t id, bool *staysp)
{
    struct xac_view *v = xac_view_written(ctx, id);

    *staysp = v != NULL && xac_view_page(v, id)->state == XAC_PAGE_WARM;
    if (*staysp || !xac_view_is_shown(ctx, id))
        return 0; /* gone since */
    if (xac_view_page(v, id)->state == XAC_PAGE_DIRTY && spill_whole(ctx, id) != 0) {
        *staysp = true; /* no room for it on disk: rather beyond the bound than lost */
        return 0;
    }
    for (v = home(ctx, id); v != NULL; v = xac_view_next(ctx, v, id))
        lose(v, xac_view_page(v, id));
    xac_assert(!xac_view_is_shown(ctx, id));
    v = home(ctx, id);
    xac_count(&shared_of(v)->dropped, 1);
    return xac_batch_add(b, &v->area, xac_page_no(id) - v->area.first);
}

/* push -- at the end of the ring, if it has room. */
XAC_SIGSAFE static void
push(struct xac_outofcore_ctx *o, uint64_t id)
{
    xac_assert(o->end - o->first <= o->size);
    xac_assert((o->size & (o->size - 1)) == 0);
    if (o->end - o->first < o->size)
        o->ring[o->end++ & (o->size - 1)] = id;
}

/* shrink -- drop pages from the front until `goal` are left, or all have been looked at. */
XAC_SIGSAFE static int
shrink(struct xac_ctx *ctx, uint64_t goal)
{
    struct xac_outofcore_ctx *o = ctx->outofcore;
    struct xac_page_batch batch = {.n = 0};
    int rc = 0;

    xac_assert(o->first <= o->end);
    xac_assert(goal <= o->limit);
    for (uint64_t n = o->end - o->first; n > 0 && o->end - o->first > goal && rc == 0;
         n--) {
        uint64_t id = o->ring[o->first++ & (o->size - 1)];
        bool stays = false;

        rc = drop(&batch, ctx, id, &stays);
        if (stays)
            push(o, id);
    }
    return rc == 0 ? xac_batch_flush(&batch) : rc;
}

XAC_SIGSAFE int
xac_outofcore_shown(struct xac_view *v, uint64_t page_no)
{
    struct xac_outofcore_ctx *o = v->ctx->outofcore;
    uint64_t batch = o->limit / 8 < DROPPED_MAX ? o->limit / 8 : DROPPED_MAX;

    xac_assert(page_no < v->area.n_pages);
    xac_assert(v->ctx->outofcore != NULL);
    push(o, xac_page_id(v->file, v->area.first + page_no));
    return o->end - o->first > o->limit ? shrink(v->ctx, o->limit - batch) : 0;
}

void
xac_outofcore_begin(struct xac_ctx *ctx)
{
    struct xac_env *env = ctx->env;
    struct xac_outofcore_ctx *o = ctx->outofcore;
    uint64_t share = env->ctl->outofcore.n_frames / 8 / xac_registry_contexts(env);

    o->limit = share < XAC_OUTOFCORE_SHOWN_LEAST ? XAC_OUTOFCORE_SHOWN_LEAST : share;
    xac_assert(o->limit >= XAC_OUTOFCORE_SHOWN_LEAST);
}

void
xac_outofcore_end(struct xac_ctx *ctx)
{
    struct xac_outofcore_ctx *o = ctx->outofcore;
    bool stays = false;

    for (struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        stays = stays || v->staying.is_alone || v->staying.is_kept;
        /* If its room cannot be given back now, the next one does. */
        if (v->spill.n_pages > 0
            && (!xac_handle_is_ours(v->spill.fd, &v->spill.handle)
                || xac_sys.ftruncate(v->spill.fd, 0) == 0))
            v->spill.n_pages = 0;
    }
    xac_assert(stays || o->first <= o->end);
    if (!stays)
        o->first = o->end = 0;
}
