/* SPDX-License-Identifier: MIT */
/*
 * view.c -- which view shows a page, and in which state: see view.h.
 */
#include <config.h>

#include "view/view.h"

#include <errno.h>
#include <string.h>

#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"

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

XAC_SIGSAFE bool
xac_view_is_shown(const struct xac_ctx *ctx, uint64_t page_id)
{
    const struct xac_view *v = xac_view_next(ctx, NULL, page_id);

    while (v != NULL && xac_view_page(v, page_id)->state != XAC_PAGE_READABLE
           && xac_view_page(v, page_id)->state != XAC_PAGE_DIRTY)
        v = xac_view_next(ctx, v, page_id);
    return v != NULL;
}

bool
xac_view_is_untouched(const struct xac_ctx *ctx, uint64_t page_id)
{
    const struct xac_view *v = xac_view_written(ctx, page_id);
    uint64_t page_no = xac_page_no(page_id) - v->area.first;

    xac_assert(v != NULL);
    xac_assert(page_no < v->area.n_pages);
    return v->pages.at[page_no].copy == XAC_COPY_PERHAPS
           && !v->area.ops->maps->is_private(&v->area, page_no);
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
    xac_assert(out->file[sizeof out->file - 1] == '\0');
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
    v->hold = 0; /* it is the parent's, too */
}
