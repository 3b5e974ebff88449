/* SPDX-License-Identifier: MIT */
/*
 * view_in_place.c -- updates the pages of views in place: see in_place.h.
 *
 * The memory of such a view is a part of the in-place file.  It is given to views that qualify some
 * begins after the participant has become alone, and taken from them at the first begin at which it
 * is not alone any more; before anything else that takes pages from a view, versions are made of
 * those that are in the list.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/alone.h"
#include "txn/in_place.h"
#include "txn/in_place_settle.h"
#include "txn/slot.h"
#include "txn/snapshots.h"
#include "view/view.h"

/* Begins from one look at the views to the next. */
#define LOOK_EVERY 64

/* Bytes of the file system that the in-place file lies in that are left to others ... */
#define ROOM_LEAST ((uint64_t)64 << 20)

/* ... and how often it is looked at, for a look is a system call: by the coarse clock, a tick or three. */
#define ROOM_NS UINT64_C(10000000)

/* may_update -- may the transactions of a context update in place? */
static bool
may_update(const struct xac_env *env, const struct xac_ctx *ctx)
{
    return xac_in_place_may(env) && xac_env_checking(env) == XAC_CHECKING_TRUSTED
           && ctx->outofcore == NULL && env->reader == XAC_READER_NONE
           && !xac_outofcore_is_on(env);
}

/* is_fit -- may a view's pages be updated in place? */
static bool
is_fit(const struct xac_view *v)
{
    return v->area.ops->fills != NULL && v->aliases == NULL && v->n_clones == 0
           && !v->area.is_scanned && v->area.memory < 0 && !v->pages.is_lost;
}

/* has_room -- is the file system that the in-place file lies in not short of room, or was it not a moment
   ago? */
static bool
has_room(const struct xac_env *env, struct xac_ctx *ctx)
{
    struct statfs fs;
    bool has;

    if (ctx->looked_ns < ctx->in_place_room_ns)
        return true;
    /* A tmpfs that was mounted without a size has no blocks to count. */
    has = xac_sys.fstatfs(env->buffers.fd[0], &fs) != 0 || fs.f_blocks == 0
          || (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= ROOM_LEAST;
    ctx->in_place_room_ns = has ? ctx->looked_ns + ROOM_NS : 0;
    return has;
}

/* move_in -- a view gets a part of the in-place file as its memory; ret 0 or errno. */
static int
move_in(struct xac_ctx *ctx, struct xac_view *v)
{
    struct xac_env *env = ctx->env;
    uint64_t place = ctx->in_place_pages;
    int fd = xac_buffers_in_place_grow(env, place + v->area.n_pages), rc;

    xac_assert(v->area.in_place < 0);
    if (fd < 0)
        return errno;
    rc = xac_view_leave_alone(v);
    if (rc != 0)
        return rc;
    ctx->in_place_pages = place + v->area.n_pages;
    v->area.in_place = fd;
    v->area.wants_twin = false; /* it was there to be refreshed */
    v->area.place = place;
    rc = xac_engine_moved(&v->area);
    if (rc != 0 || v->area.ops->fills == NULL) {
        v->area.in_place = -1;
        return rc != 0 ? rc : ENOTSUP;
    }
    return 0;
}

/* move_out -- a view gets memory of its own; no page of it is in the list.  ret 0 or errno. */
static int
move_out(struct xac_view *v)
{
    int rc = xac_view_leave_alone(v);

    xac_assert(v->area.in_place >= 0);
    v->area.in_place = -1;
    return rc != 0 ? rc : xac_engine_moved(&v->area);
}

int
xac_view_in_place_leave(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    xac_assert(ctx->depth == 0);
    if (!ctx->is_in_place)
        return 0;
    rc = xac_in_place_settle(env, ctx->slot, UINT64_MAX);
    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next) {
        if (v->area.in_place < 0)
            continue;
        rc = move_out(v);
        v->pages.is_lost |= rc != 0;
        rc = rc == 0 ? 0 : xac_err(rc, "taking back the pages of %s", v->name);
    }
    if (rc != 0)
        return rc;
    xac_assert(!xac_in_place_has_pages(env));
    ctx->is_in_place = false;
    ctx->in_place_looks = LOOK_EVERY;
    atomic_store_explicit(&env->ctl->in_place_slot, 0, memory_order_relaxed);
    xac_buffers_in_place_drop(env);
    return 0;
}

void
xac_view_in_place_forked(struct xac_env *env)
{
    for (struct xac_view *v = env->ctx.views; v != NULL; v = v->next)
        v->area.in_place = -1;
    env->ctx.is_in_place = false;
    env->ctx.in_place_looks = LOOK_EVERY;
    xac_buffers_in_place_forked(env);
}

/* enter -- views that qualify are updated in place from now on, in this epoch; if there are none, or if that
   fails, all is as before. */
static void
enter(struct xac_env *env, struct xac_ctx *ctx, uint64_t epoch)
{
    bool is_any = false;

    xac_assert(epoch != 0);
    for (const struct xac_view *v = ctx->views; v != NULL; v = v->next)
        is_any |= v->area.in_place < 0 && is_fit(v);
    if (!is_any || !has_room(env, ctx))
        return;
    if (!ctx->is_in_place && xac_buffers_in_place_make(env) != 0)
        return;
    if (!ctx->is_in_place)
        ctx->in_place_pages = 0;
    ctx->in_place_epoch = epoch;
    ctx->is_in_place = true;
    /* Relaxed: a newcomer looks when it has failed our transaction, or has seen that we have none. */
    atomic_store_explicit(&env->ctl->in_place_slot, ctx->slot + 1, memory_order_relaxed);
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        if (v->area.in_place < 0 && is_fit(v) && move_in(ctx, v) != 0)
            v->pages.is_lost = true; /* the begin maps it anew */
    }
}

/* is_held -- does somebody hold a state, which updates in place would change?  While we are alone only this
   context takes snapshots, so that a look at the number of them will do.  Pages that were in place when
   it took one get versions at its next begin; nobody else can look at that state before (invariant (4)). */
static bool
is_held(const struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t next = atomic_load_explicit(&env->ctl->next_snapshot, memory_order_relaxed);

    if (next == ctx->in_place_unheld)
        return false;
    if (xac_snapshots_any(env))
        return true;
    ctx->in_place_unheld = next;
    return false;
}

int
xac_view_in_place_begin(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t epoch = xac_alone_epoch(env);
    bool may = epoch != 0 && may_update(env, ctx);

    /* With pages in the list nobody else has committed: in_place.h, invariant (4). */
    if (ctx->is_in_place && may && epoch != ctx->in_place_epoch
        && xac_in_place_has_pages(env))
        ctx->in_place_epoch = epoch;
    if (ctx->is_in_place && (!may || epoch != ctx->in_place_epoch || is_held(env, ctx)))
        return xac_view_in_place_leave(env, ctx);
    if (xac_unlikely(ctx->error != 0)) { /* of the last one: room may have been lacking */
        ctx->in_place_looks = 0;
        ctx->in_place_room_ns = 0;
    }
    if (!may || ctx->in_place_looks-- > 0)
        return 0;
    ctx->in_place_looks = LOOK_EVERY;
    ctx->in_place_unheld = ctx->is_in_place ? ctx->in_place_unheld : 0;
    if (is_held(env, ctx))
        return 0;
    if (ctx->is_in_place && !has_room(env, ctx))
        return xac_view_in_place_leave(env, ctx);
    enter(env, ctx, epoch);
    return 0;
}

/* refuse -- a page cannot be given for stores, so the transaction fails; ret the error. */
static int
refuse(struct xac_ctx *ctx, const struct xac_view *v, uint64_t page_no, int error)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    xac_assert(error != 0);
    if (ctx->error == 0) {
        ctx->error = error;
        ctx->error_lacking = ctx->lacking;
        ctx->error_page = xac_page_id(v->file, v->area.first + page_no);
    }
    (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_RESOURCE, ctx->env->pid, 0);
    return error;
}

int
xac_view_in_place_store(struct xac_ctx *ctx, struct xac_view *v, uint64_t page_no)
{
    struct xac_file *file = xac_file_at(ctx->env, v->file);
    const struct xac_page *page =
        xac_ptab_find(&ctx->env->shm, &file->root, v->area.first + page_no);
    struct xac_entry *e;
    int rc;

    xac_assert(v->area.in_place >= 0);
    xac_assert(page_no < v->area.n_pages);
    xac_assert(ctx->is_in_place);
    /* Relaxed: only we put pages into the list. */
    if (page == NULL || atomic_load_explicit(&page->in_place, memory_order_relaxed) == 0)
        return 0;
    if (xac_view_register(ctx->env, ctx, v, page_no, true) == NULL)
        return refuse(ctx, v, page_no, xac_view_unregistered(ctx));
    e = xac_set_entry(ctx, v->pages.at[page_no].entry - 1);
    if (e->image != 0)
        return 0;
    rc = xac_in_place_keep(ctx->env, ctx, e, xac_area_at(&v->area, page_no));
    return rc == 0 ? 0 : refuse(ctx, v, page_no, rc);
}

uint64_t
xac_view_in_place(const struct xac_ctx *ctx, const struct xac_entry *e)
{
    uint64_t id = xac_entry_page_id(ctx->env, e);
    const struct xac_view *v = xac_view_next(ctx, NULL, id);

    xac_assert(v != NULL);
    xac_assert(xac_page_no(id) >= v->area.first);
    return v->area.in_place < 0 ? 0 : 1 + v->area.place + xac_page_no(id) - v->area.first;
}

bool
xac_view_in_place_restore(struct xac_view *v, uint64_t page_no, const struct xac_entry *e)
{
    const uint8_t *bytes = e->image != 0 ? xac_version_bytes(v->env, e->image) : NULL;

    xac_assert(page_no < v->area.n_pages);
    if (bytes == NULL)
        return false;
    xac_assert(v->area.in_place >= 0);
    memcpy(xac_area_at(&v->area, page_no), bytes, v->area.page_size);
    return true;
}

int
xac_view_in_place_vacate(struct xac_view *v)
{
    return v->area.in_place < 0 || !xac_in_place_has_pages(v->env)
               ? 0
               : xac_in_place_settle(v->env, v->ctx->slot, UINT64_MAX);
}
