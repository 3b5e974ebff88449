/* SPDX-License-Identifier: MIT */
/*
 * api_heap.c -- entry points of the allocator: see api.h.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "base/sized.h"
#include "heap/alloc.h"
#include "view/view.h"

/* heap_view -- the view of a segment by its start, for a caller inside a transaction. */
static int
heap_view(struct xac_env *env, const char *what, const void *base, bool is_change,
          struct xac_view **viewp)
{
    struct xac_ctx *ctx;
    int rc = xac_api_in_txn(env, what, &ctx);

    if (rc != 0)
        return rc;
    if (is_change && ctx->query_depth > 0)
        return xac_err(XAC_EINQUERY, "%s", what);
    *viewp = xac_view_at(ctx, base);
    if (*viewp == NULL || (*viewp)->area.base != base)
        return xac_err(XAC_ENOTMAPPED, "%s: no segment starts at %p", what, base);
    return 0;
}

/* heap_address -- what xMalloc and xRoot return. */
static void *
heap_address(int rc, void *address)
{
    if (rc == 0)
        return address;
    if (rc == XAC_ENOTXN || rc == XAC_EINQUERY || rc == XAC_EFORKED)
        errno = EPERM;
    else
        errno = xac_api_errno(rc);
    return NULL;
}

void *
xac_malloc_in(struct xac_env *env, void *base, size_t size)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view(env, "xMalloc", base, true, &v);

    if (rc == 0)
        rc = xac_alloc_take(v, size, &address);
    return heap_address(rc, address);
}

int
xac_free_in(struct xac_env *env, void *base, void *p)
{
    struct xac_view *v;
    int rc = heap_view(env, "xFree", base, true, &v);

    return rc != 0 || p == NULL ? rc : xac_alloc_give(v, p);
}

void *
xac_root_in(struct xac_env *env, void *base)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view(env, "xRoot", base, false, &v);

    if (rc == 0)
        rc = xac_alloc_root(v, &address);
    return heap_address(rc, address);
}

int
xac_heap_check_in(struct xac_env *env, void *base, struct xac_heap_totals *out,
                  size_t size)
{
    struct xac_view *v;
    struct xac_heap_totals all;
    int rc = heap_view(env, "xHeapCheck", base, false, &v);

    static_assert(XAC_SIZED_IS_DENSE(struct xac_heap_totals, largest_free),
                  "name the last field");
    if (rc == 0 && out != NULL)
        rc = xac_api_check_sized("xHeapCheck", out, size, sizeof out->bytes);
    if (rc == 0)
        rc = xac_alloc_check(v, &all);
    if (rc == 0 && out != NULL)
        xac_sized_fill(out, size, &all, sizeof all);
    return rc;
}

/* ---- On the default environment ----------------------------------------------------------- */

void *
xac_malloc(void *base, size_t size)
{
    return xac_malloc_in(xac_api_env, base, size);
}

int
xac_free(void *base, void *p)
{
    return xac_free_in(xac_api_env, base, p);
}

void *
xac_root(void *base)
{
    return xac_root_in(xac_api_env, base);
}

int
xac_heap_check(void *base, struct xac_heap_totals *out, size_t size)
{
    return xac_heap_check_in(xac_api_env, base, out, size);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

void *xMalloc(void *base, size_t size) XAC_ALIAS_OF(xac_malloc);
int xFree(void *base, void *p) XAC_ALIAS_OF(xac_free);
void *xRoot(void *base) XAC_ALIAS_OF(xac_root);
int xHeapCheck(void *base, struct xac_heap_totals *out, size_t size)
    XAC_ALIAS_OF(xac_heap_check);
