/* SPDX-License-Identifier: MIT */
/*
 * api_translate.c -- transactions at translated addresses: see xac_translate.h.
 */
#include <config.h>

#include <errno.h>

#include <xac.h>
#include <xac_translate.h>

#include "api/api.h"
#include "api/api_left.h"
#include "shared/group.h"
#include "txn/ctree.h"
#include "txn/ctx.h"
#include "view/view.h"

/* So many times in a row others may map and unmap while a transaction begins. */
#define BEGINS_MAX 100

/* is_stale -- has the process mapped or unmapped something since the context got its views? */
static bool
is_stale(const struct xac_ctx *ctx)
{
    /* Relaxed: what has been mapped before the caller learnt of it is seen. */
    return ctx->mappings
           != atomic_load_explicit(&ctx->env->mappings, memory_order_relaxed);
}

/* open_translated -- the one that the calling thread has open, or NULL. */
static struct xac_ctx *
open_translated(void)
{
    struct xac_ctx *ctx = xac_ctx_opened;

    while (ctx != NULL && !ctx->is_translated)
        ctx = ctx->next_open;
    return ctx;
}

/* begin_once -- with the views of the moment; EAGAIN: they are not those of now. */
static int
begin_once(struct xac_env *env, bool is_query)
{
    struct xac_ctx *ctx = NULL;
    int rc = xac_thread_translate(env, &ctx);

    if (rc != 0)
        return rc;
    rc = xac_api_begin(env, is_query, 0);
    if (rc != 0) {
        xac_thread_set_idle(ctx);
        return rc;
    }
    if (xac_likely(!is_stale(ctx)))
        return 0;
    xac_api_roll_back(ctx, 0);
    return EAGAIN;
}

int
xac_begin_translated(int is_query)
{
    struct xac_env *env = xac_api_env;
    int rc = xac_api_opened(env, "xac_begin_translated");
    struct xac_ctx *ctx;

    if (rc != 0)
        return rc;
    ctx = xac_ctx_mine(env);
    if (ctx->is_translated && ctx->depth == 0) { /* it has stayed in the parent process */
        xac_thread_set_idle(ctx);
        ctx = &env->ctx;
    }
    if (xac_api_is_mine(ctx) || xac_api_is_mine(&env->ctx))
        return xac_err(XAC_EINTXN, "xac_begin_translated");
    if (ctx != &env->ctx)
        return xac_err(XAC_EMAPPED,
                       "xac_begin_translated: the thread has called xView()");
    if (!xac_left_prepare()) /* its views are to go when it ends */
        return xac_err(ENOMEM, "xac_begin_translated");
    rc = xac_env_rejoin(env);
    if (rc == 0)
        rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = xac_group_check(env, "xac_begin_translated");
    if (rc != 0)
        return rc;
    for (int i = 0; i < BEGINS_MAX; i++) {
        rc = begin_once(env, is_query != 0);
        if (rc != EAGAIN)
            return rc;
    }
    return xac_err(EBUSY, "xac_begin_translated: mappings come and go");
}

int
xac_translate(const void *addr, void **placep)
{
    const struct xac_ctx *ctx = open_translated();

    if (ctx == NULL)
        return XAC_ENOTXN;
    for (const struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        size_t at = (size_t)((uintptr_t)addr - (uintptr_t)v->origin->area.base);

        if (at < v->area.length) {
            *placep = v->area.base + at;
            return 0;
        }
    }
    return is_stale(ctx) ? EAGAIN : XAC_ENOTMAPPED;
}

void *
xac_translate_back(const void *place)
{
    const struct xac_ctx *ctx = open_translated();
    const struct xac_view *v = ctx != NULL ? xac_view_at(ctx, place) : NULL;

    return v == NULL ? NULL
                     : v->origin->area.base + ((const uint8_t *)place - v->area.base);
}

uint64_t
xac_position(void)
{
    struct xac_env *env = xac_api_env;
    const struct xac_ctx *ctx;

    if (env == NULL)
        return 0;
    ctx = xac_ctx_mine(env);
    if (xac_api_is_mine(ctx) && ctx->depth > 0)
        /* Relaxed: ours. */
        return atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    return xac_chain_commit(env);
}
