/* SPDX-License-Identifier: MIT */
/*
 * view_unit.c -- accesses in units of many pages, for transactions that touch more
 * scattered pages than the kernel has mappings for (Thesis app. A.1, point 4): see
 * XAC_ISLANDS_MAX in view.h.
 */
#include <config.h>

#include <errno.h>

#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/team.h"
#include "view/view.h"

/* The first unit is 16 pages; each further step makes it 8 times larger. */
#define UNIT_FIRST_SHIFT 4
#define UNIT_STEP        3

/* A unit of a view: pages [first, end). */
struct unit {
    struct xac_view *v;
    uint64_t first, end;
};

XAC_SIGSAFE static struct unit
unit_of(const struct xac_ctx *ctx, struct xac_view *v, uint64_t page_no)
{
    struct unit u = {.v = v, .first = page_no >> ctx->unit_shift << ctx->unit_shift};

    xac_assert(page_no < v->area.n_pages);
    u.end = u.first + (UINT64_C(1) << ctx->unit_shift);
    if (u.end > v->area.n_pages)
        u.end = v->area.n_pages;
    xac_assert(u.first <= page_no);
    xac_assert(page_no < u.end);
    return u;
}

/* has_dirty -- is a page of the unit written already, perhaps through an alias? */
XAC_SIGSAFE static bool
has_dirty(const struct unit *u)
{
    xac_assert(u->first < u->end);
    for (uint64_t p = u->first; p < u->end; p++) {
        if (u->v->pages.at[p].state == XAC_PAGE_DIRTY
            || (u->v->aliases != NULL && xac_alias_is_dirty(u->v, p)))
            return true;
    }
    return false;
}

/*
 * is_given -- does every page of the unit have the access that is wanted?
 */
XAC_SIGSAFE static bool
is_given(const struct unit *u, bool is_write)
{
    xac_assert(u->end <= u->v->area.n_pages);
    for (uint64_t p = u->first; p < u->end; p++) {
        const struct xac_view_page *vp = &u->v->pages.at[p];

        if (vp->state != XAC_PAGE_DIRTY && (is_write || !xac_view_is_readable(u->v, vp)))
            return false;
        if (is_write && xac_view_is_closed(u->v, p))
            return false;
    }
    return true;
}

/* load_all -- step 5 for every page of a unit, which is writable. */
XAC_SIGSAFE static int
load_all(struct xac_env *env, struct xac_ctx *ctx, const struct unit *u, bool is_write)
{
    struct xac_file *file = xac_file_at(env, u->v->file);
    uint64_t parent = xac_view_parent(env, ctx);
    int rc = 0;

    xac_assert(u->end <= u->v->area.n_pages);
    for (uint64_t p = u->first; p < u->end && rc == 0; p++) {
        const struct xac_view_page *vp = &u->v->pages.at[p];
        struct xac_page *page =
            xac_ptab_page(&env->shm, &file->root, u->v->file, u->v->area.first + p);
        bool is_writable = !xac_team_is_on(ctx);

        if (u->v->aliases != NULL && xac_alias_is_needed(u->v, p, is_write))
            rc = xac_alias_write(u->v, p, page, parent);
        else if (vp->state != XAC_PAGE_DIRTY && !xac_view_is_readable(u->v, vp))
            rc = xac_view_load(env, u->v, p, page, parent, &is_writable);
        if (rc == 0 && is_writable)
            xac_view_note(u->v, p, is_write);
        if (rc == 0 && is_write && ctx->save_epoch != 0)
            xac_view_first_store(u->v, p);
    }
    return rc;
}

/*
 * give_whole -- the same, and the access, beside threads that may touch the pages at any moment: first the
 * contents, then the access to all, then that they have it.
 */
XAC_SIGSAFE static int
give_whole(struct xac_env *env, struct xac_ctx *ctx, const struct unit *u, bool is_write)
{
    int rc = load_all(env, ctx, u, is_write);

    xac_assert(xac_team_is_on(ctx));
    xac_view_reach(u->v, u->first, u->end);
    if (rc == 0)
        rc = u->v->area.ops->protect(&u->v->area, u->first, u->end - u->first,
                                     is_write ? XAC_PROT_WRITE : XAC_PROT_READ);
    for (uint64_t p = u->first; p < u->end && rc == 0; p++)
        xac_view_note(u->v, p, is_write);
    ctx->n_islands++;
    return rc;
}

/* give -- steps 1 to 5 for a whole unit, with one protection for all its pages. */
XAC_SIGSAFE static int
give(struct xac_env *env, struct xac_ctx *ctx, const struct unit *u, bool is_write)
{
    int rc;

    xac_assert(u->first < u->end);
    xac_assert(u->v->area.ops->maps != NULL);
    is_write = is_write || has_dirty(u);
    if (is_given(u, is_write))
        return 0;
    for (uint64_t p = u->first; p < u->end; p++) {
        if (xac_view_register(env, ctx, u->v, p, is_write) == NULL)
            return xac_view_unregistered(ctx);
    }
    rc = ctx->save_epoch != 0 ? xac_view_keep_closed(u->v, u->first, u->end) : 0;
    if (rc == 0 && xac_team_is_on(ctx))
        return give_whole(env, ctx, u, is_write);
    /* Writable first: versions are copied in, and neighbouring mappings merge. */
    if (rc == 0)
        rc = u->v->area.ops->protect(&u->v->area, u->first, u->end - u->first,
                                     XAC_PROT_WRITE);
    xac_view_reach(u->v, u->first, u->end); /* even if we fail below */
    if (rc == 0)
        rc = load_all(env, ctx, u, is_write);
    if (rc == 0 && !is_write)
        rc = u->v->area.ops->protect(&u->v->area, u->first, u->end - u->first,
                                     XAC_PROT_READ);
    ctx->n_islands++;
    return rc;
}

XAC_SIGSAFE int
xac_unit_give(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
              uint64_t first, uint64_t end, bool is_write)
{
    struct unit u = {.v = v, .first = first, .end = end};

    xac_assert(first < end);
    xac_assert(end <= v->area.n_pages);
    return give(env, ctx, &u, is_write);
}

/* is_touched -- has the page access in this view?  Its aliases may have, and it not. */
XAC_SIGSAFE static bool
is_touched(const struct xac_view *v, uint64_t page_no)
{
    uint32_t state = v->pages.at[page_no].state;

    return v->aliases == NULL || state == XAC_PAGE_READABLE || state == XAC_PAGE_DIRTY;
}

/* grow_units -- larger units; what has been touched becomes whole units. */
XAC_SIGSAFE static int
grow_units(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t n = ctx->n_entries; /* those added below lie in units that are done */
    int rc = 0;

    ctx->unit_shift =
        ctx->unit_shift == 0 ? UNIT_FIRST_SHIFT : ctx->unit_shift + UNIT_STEP;
    ctx->n_islands = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        uint64_t id = xac_entry_page_id(env, xac_set_entry(ctx, i));
        struct xac_view *v = NULL;

        while (rc == 0 && (v = xac_view_next(ctx, v, id)) != NULL) {
            struct unit u = unit_of(ctx, v, xac_page_no(id) - v->area.first);

            if (is_touched(v, xac_page_no(id) - v->area.first))
                rc = give(env, ctx, &u, false);
        }
    }
    xac_assert(ctx->unit_shift > 0);
    return rc;
}

XAC_SIGSAFE int
xac_unit_access(struct xac_env *env, struct xac_ctx *ctx, struct xac_view *v,
                uint64_t page_no, bool is_write)
{
    struct unit u;
    int rc = 0;

    xac_assert(page_no < v->area.n_pages);
    xac_assert(v->area.ops->maps != NULL);
    for (;;) {
        bool may_grow = (UINT64_C(1) << ctx->unit_shift) < v->area.n_pages;

        if (rc == 0 && (ctx->n_islands < ctx->islands_max || !may_grow)) {
            u = unit_of(ctx, v, page_no);
            rc = give(env, ctx, &u, is_write);
            if (rc == 0)
                return 0;
        }
        /* Out of mappings all the same: larger units need fewer. */
        if (rc != 0 && (rc != ENOMEM || !may_grow))
            return rc;
        rc = grow_units(env, ctx);
    }
}
