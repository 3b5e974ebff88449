/* SPDX-License-Identifier: MIT */
/*
 * api_map.c -- entry points for mappings, and for views of threads: see api.h.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "api/api_left.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file_fds.h"
#include "checkpoint/file_name.h"
#include "checkpoint/forget.h"
#include "env/reader.h"
#include "shared/group.h"
#include "view/view.h"

#define PAGES_MAX (XAC_PAGE_NO_MAX + 1)

/* check_range -- can a view show that part of a file? */
static int
check_range(const struct xac_env *env, const char *what, uint64_t offset, size_t length)
{
    if (length == 0 || length % env->page_size != 0)
        return xac_err(EINVAL, "%s: length %zu is not a positive multiple of %zu", what,
                       length, env->page_size);
    if (offset % env->page_size != 0)
        return xac_err(EINVAL, "%s: offset %llu is not a multiple of %zu", what,
                       (unsigned long long)offset, env->page_size);
    if (offset > INT64_MAX || length > INT64_MAX - offset
        || (offset + length) / env->page_size > PAGES_MAX)
        return xac_err(EFBIG, "%s: %zu bytes from %llu", what, length,
                       (unsigned long long)offset);
    return xac_env_poisoned((struct xac_env *)(uintptr_t)env);
}

/* map -- xMmap and xMmapAt with error codes. */
static int
map(struct xac_env *env, const char *what, const char *name,
    const struct xac_view_wish *wish, struct xac_view **viewp)
{
    struct xac_ctx *ctx;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "%s: no file name", what);
    if ((wish->flags & ~XAC_SAME_ADDRESS) != 0)
        return xac_err(EINVAL, "%s: unknown flags %#x", what, (unsigned)wish->flags);
    rc = xac_api_start_process(env, what, &ctx);
    if (rc != 0)
        return rc;
    rc = xac_env_mend(ctx->env);
    if (rc == 0)
        rc = check_range(ctx->env, what, wish->offset, wish->length);
    if (rc == 0)
        rc = xac_view_in_place_leave(ctx->env, ctx);
    if (rc == 0)
        rc = xac_view_open(ctx->env, name, wish, viewp);
    if (rc == 0) {
        rc = xac_view_add(ctx, *viewp);
        if (rc != 0)
            xac_view_close(ctx->env, *viewp);
    }
    xac_api_done(ctx);
    return rc;
}

/* address -- what the calls for mappings return. */
static void *
address(int rc, const struct xac_view *v)
{
    if (rc == 0)
        return v->area.base;
    errno = xac_api_errno(rc);
    return MAP_FAILED;
}

void *
xac_mmap_in(struct xac_env *env, const char *name, size_t length)
{
    const struct xac_view_wish wish = {.length = length};
    struct xac_view *v = NULL;
    int rc = map(env, "xMmap", name, &wish, &v);

    return address(rc, v);
}

void *
xac_mmap_at_in(struct xac_env *env, const char *name, uint64_t offset, size_t length,
               int flags)
{
    const struct xac_view_wish wish = {.offset = offset,
                                       .length = length,
                                       .flags = flags};
    struct xac_view *v = NULL;
    int rc = map(env, "xMmapAt", name, &wish, &v);

    return address(rc, v);
}

/* start_at -- for calls about the mapping that starts at an address. */
static int
start_at(struct xac_env *env, const char *what, const void *base, struct xac_ctx **ctxp,
         struct xac_view **viewp)
{
    int rc = xac_api_start_process(env, what, ctxp);

    if (rc != 0)
        return rc;
    *viewp = xac_view_at(*ctxp, base);
    if (*viewp != NULL && (*viewp)->area.base == base)
        return 0;
    xac_api_done(*ctxp);
    return xac_err(XAC_ENOTMAPPED, "%s: no segment starts at %p", what, base);
}

void *
xac_mremap_in(struct xac_env *env, void *base, size_t length, int flags)
{
    struct xac_ctx *ctx;
    struct xac_view *v = NULL;
    int rc = start_at(env, "xMremap", base, &ctx, &v);

    if (rc != 0)
        return address(rc, v);
    if ((flags & ~XAC_MAY_MOVE) != 0)
        rc = xac_err(EINVAL, "xMremap: unknown flags %#x", (unsigned)flags);
    else
        rc = xac_env_mend(ctx->env);
    if (rc == 0)
        rc = check_range(ctx->env, "xMremap", v->area.first * v->area.page_size, length);
    if (rc == 0)
        rc = xac_view_in_place_leave(ctx->env, ctx);
    if (rc == 0 && length != v->area.length) {
        xac_thread_drop(ctx->env, v);
        rc = xac_view_resize(v, length, flags);
    }
    xac_api_done(ctx);
    return address(rc, v);
}

/* unmap -- take a mapping away; fate: see view.h. */
static int
unmap(const char *what, const char *fate, struct xac_ctx *ctx, struct xac_view *v)
{
    int rc = xac_file_is_moved(ctx->env, v) ? xac_checkpoint_run(ctx->env, false) : 0;

    if (rc == 0)
        rc = xac_view_in_place_leave(ctx->env, ctx);
    if (rc != 0)
        return rc;
    xac_thread_drop(ctx->env, v);
    if (!xac_view_remove(ctx, v))
        return xac_err(EBUSY, "%s: threads have views of %s", what, v->name);
    v->fate = fate;
    xac_view_close(ctx->env, v);
    return 0;
}

int
xac_munmap_in(struct xac_env *env, const char *name)
{
    struct xac_ctx *ctx;
    struct xac_view *v;
    unsigned n;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xMunmap: no file name");
    rc = xac_api_start_process(env, "xMunmap", &ctx);
    if (rc != 0)
        return rc;
    v = xac_view_named(ctx->env, name, &n);
    if (v == NULL)
        rc = xac_err(XAC_ENOTMAPPED, "%s", name);
    else if (n > 1)
        rc = xac_err(XAC_EMAPPED, "xMunmap: there are %u mappings of %s, use xMunmapAt()",
                     n, name);
    else
        rc = unmap("xMunmap", "was unmapped by xMunmap()", ctx, v);
    xac_api_done(ctx);
    return rc;
}

int
xac_munmap_at_in(struct xac_env *env, void *base)
{
    struct xac_ctx *ctx;
    struct xac_view *v;
    int rc = start_at(env, "xMunmapAt", base, &ctx, &v);

    if (rc != 0)
        return rc;
    rc = unmap("xMunmapAt", "was unmapped by xMunmapAt()", ctx, v);
    xac_api_done(ctx);
    return rc;
}

int
xac_forget_in(struct xac_env *env, const char *name)
{
    struct xac_ctx *ctx;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xForget: no file name");
    rc = xac_api_start_process(env, "xForget", &ctx);
    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(ctx->env, "xForget");
    if (rc == 0)
        rc = xac_env_poisoned(ctx->env);
    if (rc == 0)
        rc = xac_forget_file(ctx->env, name);
    xac_api_done(ctx);
    return rc;
}

/* rename_file -- xRename; to NULL: xRemove. */
static int
rename_file(struct xac_env *env, const char *what, const char *from, const char *to)
{
    struct xac_ctx *ctx;
    int rc = xac_api_start_process(env, what, &ctx);

    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(ctx->env, what);
    if (rc == 0 && xac_group_leads(ctx->env))
        rc = xac_err(ENOTSUP, "%s: the other nodes of a group could not follow", what);
    if (rc == 0)
        rc = xac_env_poisoned(ctx->env);
    if (rc == 0)
        rc = xac_env_mend(ctx->env);
    if (rc == 0)
        rc = xac_file_rename(ctx->env, from, to);
    xac_api_done(ctx);
    return rc;
}

int
xac_remove_in(struct xac_env *env, const char *name)
{
    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xRemove: no file name");
    return rename_file(env, "xRemove", name, NULL);
}

int
xac_rename_in(struct xac_env *env, const char *from, const char *to)
{
    if (from == NULL || *from == '\0' || to == NULL || *to == '\0')
        return xac_err(EINVAL, "xRename: no file name");
    return rename_file(env, "xRename", from, to);
}

/* ---- Views of threads ----------------------------------------------------------------- */

void *
xac_view_in(struct xac_env *env, void *base)
{
    struct xac_view *v = NULL;
    int rc = xac_api_start_own(env, "xView");

    if (rc == 0) {
        rc = xac_env_poisoned(env);
        if (rc == 0 && !xac_left_prepare())
            rc = xac_err(ENOMEM, "xView");
        if (rc == 0)
            rc = xac_thread_view(env, base, &v);
        xac_api_done_own();
    }
    return address(rc, v);
}

int
xac_unview_in(struct xac_env *env, void *view)
{
    int rc = xac_api_start_own(env, "xUnview");

    if (rc != 0)
        return rc;
    rc = xac_thread_unview(env, view);
    xac_api_done_own();
    return rc;
}

/* ---- On the default environment ----------------------------------------------------------- */

void *
xac_mmap(const char *name, size_t length)
{
    return xac_mmap_in(xac_api_env, name, length);
}

void *
xac_mmap_at(const char *name, uint64_t offset, size_t length, int flags)
{
    return xac_mmap_at_in(xac_api_env, name, offset, length, flags);
}

void *
xac_mremap(void *base, size_t length, int flags)
{
    return xac_mremap_in(xac_api_env, base, length, flags);
}

int
xac_munmap(const char *name)
{
    return xac_munmap_in(xac_api_env, name);
}

int
xac_munmap_at(void *base)
{
    return xac_munmap_at_in(xac_api_env, base);
}

int
xac_forget(const char *name)
{
    return xac_forget_in(xac_api_env, name);
}

int
xac_remove(const char *name)
{
    return xac_remove_in(xac_api_env, name);
}

int
xac_rename(const char *from, const char *to)
{
    return xac_rename_in(xac_api_env, from, to);
}

void *
xac_view(void *base)
{
    return xac_view_in(xac_api_env, base);
}

int
xac_unview(void *view)
{
    return xac_unview_in(xac_api_env, view);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

void *xMmap(const char *name, size_t length) XAC_ALIAS_OF(xac_mmap);
int xMunmap(const char *name) XAC_ALIAS_OF(xac_munmap);
void *xMmapAt(const char *name, uint64_t offset, size_t length, int flags)
    XAC_ALIAS_OF(xac_mmap_at);
void *xMremap(void *base, size_t length, int flags) XAC_ALIAS_OF(xac_mremap);
int xMunmapAt(void *base) XAC_ALIAS_OF(xac_munmap_at);
int xForget(const char *name) XAC_ALIAS_OF(xac_forget);
int xRemove(const char *name) XAC_ALIAS_OF(xac_remove);
int xRename(const char *from, const char *to) XAC_ALIAS_OF(xac_rename);
void *xView(void *base) XAC_ALIAS_OF(xac_view);
int xUnview(void *view) XAC_ALIAS_OF(xac_unview);
