/* SPDX-License-Identifier: MIT */
/*
 * thread.c -- see thread.h.
 */
#include <config.h>

#include "env/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/lockfile.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/ctx.h"
#include "txn/alone.h"
#include "txn/turn.h"
#include "view/view.h"

void
xac_threads_lock(struct xac_env *env, sigset_t *signals)
{
    xac_signals_block(signals);
    xac_signals_pin(true);
    (void)pthread_mutex_lock(&env->threads);
}

void
xac_threads_unlock(struct xac_env *env, const sigset_t *signals)
{
    (void)pthread_mutex_unlock(&env->threads);
    xac_signals_pin(false);
    xac_signals_restore(signals);
}

/* ---- The count of contexts -------------------------------------------------------------- */

/* count_contexts -- how many we have now, for alone.h; gate held. */
static void
count_contexts(struct xac_env *env, uint32_t n)
{
    /* Relaxed: read with the gate held. */
    atomic_store_explicit(&xac_participant_at(env, env->self)->n_contexts, n,
                          memory_order_relaxed);
}

static uint32_t
contexts(const struct xac_env *env)
{
    uint32_t n = 1;

    for (const struct xac_ctx *c = env->others; c != NULL; c = c->next)
        n++;
    return n;
}

/* ---- In ----------------------------------------------------------------------------------- */

/* start -- a slot for a new context, announced to a participant that is alone; env->threads held. */
static int
start(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc = xac_env_mend(env);

    if (rc != 0)
        return rc;
    rc = xac_gate_enter(env->lockfd);
    if (rc != 0)
        return xac_err(rc, "gate of %s", env->dir);
    rc = xac_ctx_open(env, ctx);
    if (rc == 0) {
        ctx->next = env->others;
        env->others = ctx;
        count_contexts(env, contexts(env));
        xac_alone_revoke(env);
    }
    xac_gate_leave(env->lockfd);
    return rc;
}

/* end -- give up a context without views; env->threads held. */
static void
end(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_ctx **link = &env->others;

    while (*link != ctx)
        link = &(*link)->next;
    *link = ctx->next;
    xac_ctx_close(env, ctx);
    if (!xac_env_is_forked(env) && xac_env_mend(env) == 0
        && xac_gate_enter(env->lockfd) == 0) {
        count_contexts(env, contexts(env));
        xac_alone_offer(env, false);
        xac_gate_leave(env->lockfd);
    }
    free(ctx);
}

/* own_of -- the thread's own context in an environment; NULL: it has none. */
static struct xac_ctx *
own_of(struct xac_env *env)
{
    struct xac_ctx *ctx = xac_ctx_mine(env);

    return ctx != &env->ctx ? ctx : NULL;
}

/* leave -- give up a context of the thread's own, and its views; env->threads held. */
static void
leave(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_ctx **link = &xac_ctx_own;

    xac_view_close_all(env, ctx);
    while (*link != ctx)
        link = &(*link)->next_own;
    *link = ctx->next_own;
    end(env, ctx);
}

/* abort_open -- the transaction that the thread has left open. */
static void
abort_open(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word;

    if (ctx->depth == 0 || ctx->txn == NULL)
        return;
    word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    if (!ctx->is_query)
        (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_USER, env->pid, 0);
    (void)xac_txn_end(env, ctx);
    ctx->depth = 0;
    xac_ctx_ended(ctx);
}

void
xac_thread_leave(struct xac_env *env)
{
    struct xac_ctx *ctx = own_of(env);
    sigset_t signals;

    if (ctx == NULL)
        return;
    abort_open(env, ctx);
    xac_threads_lock(env, &signals);
    leave(env, ctx);
    xac_threads_unlock(env, &signals);
}

void
xac_thread_ended(void)
{
    struct xac_ctx *ctx;

    while ((ctx = xac_ctx_own) != NULL) {
        for (struct xac_view *v = ctx->views; v != NULL; v = v->next)
            v->fate = "was unmapped when the thread that called xView() ended";
        xac_thread_leave(ctx->env);
    }
}

/* own_context -- the calling thread's, made if there is none; env->threads held. */
static int
own_context(struct xac_env *env, struct xac_ctx **ctxp)
{
    struct xac_ctx *ctx = own_of(env);
    int rc;

    if (ctx == NULL) {
        ctx = (struct xac_ctx *)calloc(1, sizeof *ctx);
        if (ctx == NULL)
            return xac_err(ENOMEM, "xView");
        rc = start(env, ctx);
        if (rc != 0) {
            free(ctx);
            return rc;
        }
        ctx->next_own = xac_ctx_own;
        xac_ctx_own = ctx;
    }
    *ctxp = ctx;
    return 0;
}

int
xac_thread_view(struct xac_env *env, const void *base, struct xac_view **viewp)
{
    struct xac_view *origin, *v = NULL;
    struct xac_ctx *ctx = NULL;
    sigset_t signals;
    int rc;

    xac_threads_lock(env, &signals);
    origin = xac_view_at(&env->ctx, base);
    if (origin == NULL || origin->area.base != base) {
        rc = xac_err(XAC_ENOTMAPPED, "xView: no segment starts at %p", base);
        goto out;
    }
    rc = own_context(env, &ctx);
    if (rc != 0)
        goto out;
    for (v = ctx->views; v != NULL && v->origin != origin; v = v->next)
        ;
    if (v == NULL)
        rc = xac_view_clone(ctx, origin, &v);
    if (rc != 0 && ctx->views == NULL)
        leave(env, ctx);
out:
    xac_threads_unlock(env, &signals);
    if (rc == 0)
        *viewp = v;
    return rc;
}

int
xac_thread_unview(struct xac_env *env, const void *base)
{
    struct xac_view **link, *v = NULL;
    struct xac_ctx *ctx = own_of(env);
    sigset_t signals;

    if (ctx == NULL)
        return xac_err(XAC_ENOTMAPPED, "xUnview: this thread has no view of its own");
    xac_threads_lock(env, &signals);
    for (link = &ctx->views; *link != NULL && (*link)->area.base != base;
         link = &(*link)->next)
        ;
    v = *link;
    if (v != NULL) {
        *link = v->next;
        v->fate = "was unmapped by xUnview()";
        xac_view_close(env, v);
        if (ctx->views == NULL)
            leave(env, ctx);
    }
    xac_threads_unlock(env, &signals);
    return v != NULL ? 0 : xac_err(XAC_ENOTMAPPED, "xUnview: no view starts at %p", base);
}

unsigned
xac_thread_others(struct xac_env *env)
{
    sigset_t signals;
    unsigned n;

    xac_threads_lock(env, &signals);
    n = contexts(env) - 1 - (own_of(env) != NULL);
    xac_threads_unlock(env, &signals);
    return n;
}

/* ---- fork ------------------------------------------------------------------------------ */

/* forget -- the context's transaction stays with the parent. */
static void
forget(struct xac_ctx *ctx)
{
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next)
        xac_view_forked(v);
    ctx->orphan_depth += ctx->depth;
    ctx->depth = 0;
    ctx->query_depth = 0;
    ctx->frame = NULL;
    ctx->txn = NULL;
    ctx->n_entries = 0;
    ctx->saw_dead = false;
    ctx->alive_until = 0;
}

void
xac_thread_forget(struct xac_env *env)
{
    forget(&env->ctx);
    for (struct xac_ctx *c = env->others; c != NULL; c = c->next)
        forget(c);
}

/* note_turn -- which turn we must not wait for, as the parent may wait for us: see txn_begin.c. */
static void
note_turn(struct xac_env *env)
{
    const struct xac_ctx *ctx = xac_ctx_mine(env);

    if (ctx->depth > 0 && !ctx->is_query && ctx->txn != NULL)
        env->parents_turn = xac_turn_word(env, ctx->slot);
}

void
xac_thread_forked(struct xac_env *env)
{
    struct xac_ctx **link = &env->others, *own = own_of(env);

    note_turn(env);
    xac_thread_forget(env);
    while (*link != NULL) {
        struct xac_ctx *ctx = *link;

        if (ctx == own) {
            link = &ctx->next;
            continue;
        }
        *link = ctx->next;
        xac_view_close_all(env, ctx);
        xac_ctx_close(env, ctx);
        free(ctx);
    }
}

int
xac_thread_rejoin(struct xac_env *env)
{
    int rc = 0;

    for (struct xac_ctx *c = env->others; c != NULL && rc == 0; c = c->next)
        rc = xac_ctx_open(env, c);
    count_contexts(env, contexts(env));
    return rc;
}
