/* SPDX-License-Identifier: MIT */
/*
 * api_map.c -- entry points for mappings, and for views of threads: see api.h.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>

#include <xac.h>

#include "api.h"
#include "view.h"

/* map -- xMmap with error codes. */
static int
map(const char *name, size_t length, struct xac_view **viewp)
{
    struct xac_env *env;
    struct xac_ctx *ctx;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xMmap: no file name");
    rc = xac_api_start_process("xMmap", &ctx);
    if (rc != 0)
        return rc;
    env = ctx->env;
    if (length == 0 || length % env->page_size != 0)
        rc = xac_err(EINVAL, "xMmap: length %zu is not a positive multiple of %zu",
                     length, env->page_size);
    else
        rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = xac_view_open(env, name, length, viewp);
    if (rc == 0)
        xac_view_add(ctx, *viewp);
    xac_api_done(ctx);
    return rc;
}

void *
xac_mmap(const char *name, size_t length)
{
    struct xac_view *v = NULL;
    int rc = map(name, length, &v);

    if (rc != 0) {
        errno = xac_api_errno(rc);
        return MAP_FAILED;
    }
    return v->base;
}

int
xac_munmap(const char *name)
{
    struct xac_ctx *ctx;
    struct xac_view *v;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xMunmap: no file name");
    rc = xac_api_start_process("xMunmap", &ctx);
    if (rc != 0)
        return rc;
    v = xac_view_named(ctx->env, name);
    if (v == NULL)
        rc = xac_err(XAC_ENOTMAPPED, "%s", name);
    else if (!xac_view_remove(ctx, v))
        rc = xac_err(EBUSY, "xMunmap: threads have views of %s", name);
    else
        xac_view_close(ctx->env, v);
    xac_api_done(ctx);
    return rc;
}

/* ---- Views of threads ----------------------------------------------------------------- */

/*
 * own_call -- for calls about the caller's own views: not inside a transaction; joined
 * after a fork.  Needs no turn: other threads may have transactions in the process's
 * context.
 */
static int
own_call(const char *what)
{
    struct xac_ctx *ctx;
    int rc = xac_api_opened(what);

    if (rc == 0 && xac_api_is_mine(xac_ctx_mine(xac_api_env)))
        rc = xac_err(XAC_EINTXN, "%s", what);
    if (rc == 0 && xac_api_env->is_forked) {
        rc = xac_api_start_process(what, &ctx);
        if (rc == 0)
            xac_api_done(ctx);
    }
    return rc;
}

void *
xac_view(void *base)
{
    struct xac_view *v = NULL;
    int rc = own_call("xView");

    if (rc == 0)
        rc = xac_env_poisoned(xac_api_env);
    if (rc == 0)
        rc = xac_thread_view(xac_api_env, base, &v);
    if (rc != 0) {
        errno = xac_api_errno(rc);
        return MAP_FAILED;
    }
    return v->base;
}

int
xac_unview(void *view)
{
    int rc = own_call("xUnview");

    return rc != 0 ? rc : xac_thread_unview(xac_api_env, view);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

void *xMmap(const char *name, size_t length) XAC_ALIAS_OF(xac_mmap);
int xMunmap(const char *name) XAC_ALIAS_OF(xac_munmap);
void *xView(void *base) XAC_ALIAS_OF(xac_view);
int xUnview(void *view) XAC_ALIAS_OF(xac_unview);
