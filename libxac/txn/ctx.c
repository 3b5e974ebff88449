/* SPDX-License-Identifier: MIT */
/*
 * ctx.c -- contexts: see ctx.h.
 */
#include <config.h>

#include "txn/ctx.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "store/outofcore.h"
#include "txn/drop.h"
#include "txn/saved.h"
#include "txn/slot.h"

XAC_TLS struct xac_ctx *xac_ctx_own;
XAC_TLS struct xac_ctx *xac_ctx_opened;

int
xac_ctx_open(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    if (ctx->env != env) /* its thread may be looking, while another one rejoins */
        ctx->env = env;
    ctx->slot = xac_txn_claim(env, env->self);
    if (ctx->slot == UINT64_MAX)
        return xac_err(xac_shm_lacks(&env->shm),
                       "control region %s: no room for a transaction", env->region);
    rc = xac_outofcore_open(env, ctx);
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_FREE);
        return rc;
    }
    ctx->txn = xac_txn_at(env, ctx->slot);
    ctx->txn->is_retry = 0;
    ctx->n_blocks = 0;
    ctx->n_entries = 0;
    xac_assert(ctx->slot
               < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    xac_assert(xac_txn_state(atomic_load_explicit(&ctx->txn->word, memory_order_relaxed))
               == XAC_TXN_IDLE);
    return 0;
}

void
xac_ctx_release(struct xac_env *env, struct xac_ctx *ctx)
{
    if (ctx->txn != NULL)
        xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_FREE);
    ctx->txn = NULL;
    xac_outofcore_close(ctx);
    xac_saved_close(ctx);
    if (ctx->blocks != NULL)
        (void)xac_sys.munmap(ctx->blocks, ctx->blocks_size * sizeof ctx->blocks[0]);
    if (ctx->images != NULL)
        (void)xac_sys.munmap(ctx->images, XAC_IMAGES * ctx->env->page_size);
    ctx->blocks = NULL;
    ctx->images = NULL;
    xac_assert(ctx->depth == 0);
    xac_assert(ctx->txn == NULL);
}

void
xac_ctx_close(struct xac_env *env, struct xac_ctx *ctx)
{
    xac_ctx_release(env, ctx);
    memset(ctx, 0, sizeof *ctx);
    xac_assert(ctx->txn == NULL);
}
