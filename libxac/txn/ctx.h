/* SPDX-License-Identifier: MIT */
/*
 * ctx.h -- contexts: what a thread knows of the transactions that it runs (struct xac_ctx,
 * env_state.h).  Most threads share the process's context; a thread with views of its own has its
 * own (thread.h), one for each environment in which it has views.
 */
#ifndef XAC_CTX_H
#define XAC_CTX_H

#include "base/tls.h"
#include "shared/env_state.h"
#include "txn/touched.h"

/* The calling thread's own contexts, one for each environment, linked by next_own; NULL: it has
   none, and shares those of the process. */
extern XAC_TLS struct xac_ctx *xac_ctx_own;

/* Contexts, own or shared, in which the calling thread has a transaction or query open, linked
   by next_open; the latest begin is first. */
extern XAC_TLS struct xac_ctx *xac_ctx_opened;

/* xac_ctx_mine -- the calling thread's context in an environment: its own, or the process's. */
XAC_SIGSAFE static inline struct xac_ctx *
xac_ctx_mine(struct xac_env *env)
{
    for (struct xac_ctx *ctx = xac_ctx_own; xac_unlikely(ctx != NULL);
         ctx = ctx->next_own) {
        if (ctx->env == env && !ctx->is_idle)
            return ctx;
    }
    return &env->ctx;
}

/* xac_ctx_begun, ended -- the outermost transaction or query of a context has begun; is over. */
static inline void
xac_ctx_begun(struct xac_ctx *ctx)
{
    xac_assert(ctx->depth == 1);
    ctx->next_open = xac_ctx_opened;
    xac_ctx_opened = ctx;
    xac_touched_renew(xac_ctx_opened);
}

static inline void
xac_ctx_ended(const struct xac_ctx *ctx)
{
    struct xac_ctx **link = &xac_ctx_opened;

    while (xac_unlikely(*link != ctx)) {
        xac_assert(*link != NULL);
        link = &(*link)->next_open;
    }
    *link = ctx->next_open;
    xac_touched_renew(xac_ctx_opened);
}

/* xac_ctx_open, close -- give a context a slot; take it back.  The views stay. */
int xac_ctx_open(struct xac_env *env, struct xac_ctx *ctx);
void xac_ctx_close(struct xac_env *env, struct xac_ctx *ctx);

/* xac_ctx_release -- as close, by another thread than its own: it stays in that one's list. */
void xac_ctx_release(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_CTX_H */
