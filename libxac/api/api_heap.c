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
#include "txn/ctx.h"
#include "view/view.h"

#define LEAST_ALIGNMENT 16 /* of xMalloc() */

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
        rc = xac_alloc_take(v, size, LEAST_ALIGNMENT, &address);
    return heap_address(rc, address);
}

void *
xac_aligned_alloc_in(struct xac_env *env, void *base, size_t alignment, size_t size)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view(env, "xAlignedAlloc", base, true, &v);

    if (rc == 0
        && (alignment == 0 || (alignment & (alignment - 1)) != 0
            || alignment > v->area.page_size))
        rc = xac_err(EINVAL, "xAlignedAlloc: %zu is no power of two up to %zu", alignment,
                     v->area.page_size);
    if (rc == 0)
        rc = xac_alloc_take(v, size, alignment, &address);
    return heap_address(rc, address);
}

void *
xac_realloc_in(struct xac_env *env, void *base, void *p, size_t size)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view(env, "xRealloc", base, true, &v);

    if (rc == 0 && p == NULL)
        rc = xac_alloc_take(v, size, LEAST_ALIGNMENT, &address);
    else if (rc == 0)
        rc = xac_alloc_resize(v, p, size, &address);
    return heap_address(rc, address);
}

size_t
xac_usable_size_in(struct xac_env *env, void *base, const void *p)
{
    struct xac_view *v;
    size_t size = 0;
    int rc = heap_view(env, "xUsableSize", base, false, &v);

    if (rc == 0 && p != NULL)
        rc = xac_alloc_size(v, p, &size);
    if (rc != 0)
        (void)heap_address(rc, NULL);
    return size;
}

void *
xac_segment_of(const void *address, struct xac_env **envp)
{
    struct xac_view *v = NULL;

    if (xac_unlikely(xac_half_done_any()))
        xac_api_interrupted("xac_segment_of");
    if (xac_ctx_opened == NULL)
        return heap_address(xac_err(XAC_ENOTXN, "xac_segment_of"), NULL);
    for (struct xac_ctx *ctx = xac_ctx_opened; ctx != NULL && v == NULL;
         ctx = ctx->next_open)
        v = xac_view_at(ctx, address);
    if (v == NULL)
        return heap_address(xac_err(XAC_ENOTMAPPED, "xac_segment_of: %p is in no segment",
                                    address),
                            NULL);
    if (envp != NULL)
        *envp = v->env;
    return v->area.base;
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

void *
xac_aligned_alloc(void *base, size_t alignment, size_t size)
{
    return xac_aligned_alloc_in(xac_api_env, base, alignment, size);
}

void *
xac_realloc(void *base, void *p, size_t size)
{
    return xac_realloc_in(xac_api_env, base, p, size);
}

size_t
xac_usable_size(void *base, const void *p)
{
    return xac_usable_size_in(xac_api_env, base, p);
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
void *xAlignedAlloc(void *base, size_t alignment, size_t size)
    XAC_ALIAS_OF(xac_aligned_alloc);
void *xRealloc(void *base, void *p, size_t size) XAC_ALIAS_OF(xac_realloc);
size_t xUsableSize(void *base, const void *p) XAC_ALIAS_OF(xac_usable_size);
int xFree(void *base, void *p) XAC_ALIAS_OF(xac_free);
void *xRoot(void *base) XAC_ALIAS_OF(xac_root);
int xHeapCheck(void *base, struct xac_heap_totals *out, size_t size)
    XAC_ALIAS_OF(xac_heap_check);
