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
#include "txn/in_place_settle.h"
#include "txn/saved.h"
#include "txn/team.h"
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
        rc = xac_in_place_admit(env, ctx->slot, true);
        if (rc != 0) {
            env->others = ctx->next;
            xac_ctx_close(env, ctx);
            count_contexts(env, contexts(env));
            xac_alone_offer(env, false);
        }
    }
    xac_gate_leave(env->lockfd);
    return rc;
}

/* unlist -- the process has one context less; env->threads held. */
static void
unlist(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_ctx **link = &env->others;

    while (*link != ctx)
        link = &(*link)->next;
    *link = ctx->next;
}

/* recount -- after that; env->threads held. */
static void
recount(struct xac_env *env)
{
    if (!xac_env_is_forked(env) && xac_env_mend(env) == 0
        && xac_gate_enter(env->lockfd) == 0) {
        count_contexts(env, contexts(env));
        xac_alone_offer(env, false);
        xac_gate_leave(env->lockfd);
    }
}

/* forget_own -- take a context out of the calling thread's list, if it is there. */
static void
forget_own(const struct xac_ctx *ctx)
{
    struct xac_ctx **link = &xac_ctx_own;

    while (*link != NULL && *link != ctx)
        link = &(*link)->next_own;
    if (*link != NULL)
        *link = ctx->next_own;
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
    xac_view_close_all(env, ctx);
    forget_own(ctx);
    unlist(env, ctx);
    xac_ctx_close(env, ctx);
    recount(env);
    free(ctx);
}

/* abort_open -- the transaction that the thread has left open. */
static void
abort_open(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word;

    if (ctx->depth == 0 || ctx->txn == NULL)
        return;
    if (xac_team_is_on(ctx))
        (void)xac_team_close(ctx, true);
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

/* idle_ended -- the thread of an idle context ends. */
static void
idle_ended(struct xac_ctx *ctx)
{
    struct xac_env *env = ctx->env;
    sigset_t signals;

    xac_assert(ctx->is_translated);
    /* Relaxed: xac_api_lock. */
    if (atomic_load_explicit(&ctx->is_gone, memory_order_relaxed)) {
        forget_own(ctx);
        free(ctx);
        return;
    }
    xac_threads_lock(env, &signals);
    leave(env, ctx);
    xac_threads_unlock(env, &signals);
}

void
xac_thread_ended(void)
{
    struct xac_ctx *ctx;

    while ((ctx = xac_ctx_own) != NULL) {
        if (ctx->is_idle) {
            idle_ended(ctx);
            continue;
        }
        for (struct xac_view *v = ctx->views; v != NULL; v = v->next)
            v->fate = "was unmapped when the thread that called xView() ended";
        xac_thread_leave(ctx->env);
    }
}

/* context_new -- one more for the calling thread; env->threads held. */
static int
context_new(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    struct xac_ctx *ctx = (struct xac_ctx *)calloc(1, sizeof *ctx);
    int rc;

    if (ctx == NULL)
        return xac_err(ENOMEM, "%s", what);
    rc = start(env, ctx);
    if (rc != 0) {
        free(ctx);
        return rc;
    }
    ctx->next_own = xac_ctx_own;
    xac_ctx_own = ctx;
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
    ctx = own_of(env);
    rc = ctx != NULL ? 0 : context_new(env, "xView", &ctx);
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

/* ---- Translated transactions ----------------------------------------------------------- */

/* idle_of -- the thread's context for them, NULL: it has none; what is left of one whose environment has
   been closed is freed. */
static struct xac_ctx *
idle_of(const struct xac_env *env)
{
    struct xac_ctx *ctx = xac_ctx_own, *next;

    for (; ctx != NULL; ctx = next) {
        next = ctx->next_own;
        if (!ctx->is_translated)
            continue;
        /* Acquire: pairs with the release in xac_thread_dismiss. */
        if (atomic_load_explicit(&ctx->is_gone, memory_order_acquire)) {
            forget_own(ctx);
            free(ctx);
        } else if (ctx->env == env) {
            return ctx;
        }
    }
    return NULL;
}

/* has_view -- of what the process has mapped there? */
static bool
has_view(const struct xac_ctx *ctx, const struct xac_view *origin)
{
    const struct xac_view *v = ctx->views;

    while (v != NULL && v->origin != origin)
        v = v->next;
    return v != NULL;
}

/* complete -- a view of each segment; env->threads held. */
static int
complete(struct xac_env *env, struct xac_ctx *ctx)
{
    /* Relaxed: under env->threads. */
    uint64_t mappings = atomic_load_explicit(&env->mappings, memory_order_relaxed);
    struct xac_view *any;
    int rc = 0;

    for (struct xac_view *v = env->ctx.views; v != NULL && rc == 0; v = v->next) {
        if (v->is_leaving)
            rc = xac_err(EBUSY, "another thread unmaps or resizes %s", v->name);
        else if (!has_view(ctx, v))
            rc = xac_view_clone(ctx, v, &any);
    }
    if (rc == 0)
        ctx->mappings = mappings;
    return rc;
}

int
xac_thread_translate(struct xac_env *env, struct xac_ctx **ctxp)
{
    struct xac_ctx *ctx = idle_of(env);
    sigset_t signals;
    int rc = 0;

    xac_assert(ctx == NULL || ctx->is_idle);
    /* Relaxed: a change that is not seen is one that comes later. */
    if (ctx == NULL
        || ctx->mappings != atomic_load_explicit(&env->mappings, memory_order_relaxed)) {
        xac_threads_lock(env, &signals);
        if (ctx == NULL) {
            rc = context_new(env, "xac_begin_translated", &ctx);
            if (rc == 0) {
                ctx->is_translated = true;
                ctx->is_idle = true;
            }
        }
        if (rc == 0)
            rc = complete(env, ctx);
        xac_threads_unlock(env, &signals);
    }
    if (rc != 0)
        return rc;
    ctx->is_idle = false;
    *ctxp = ctx;
    return 0;
}

void
xac_thread_set_idle(struct xac_ctx *ctx)
{
    xac_assert(ctx->is_translated);
    xac_assert(ctx->depth == 0);
    ctx->is_idle = true;
}

/* take -- keep the thread of a context out; ret false: it has a transaction open. */
static bool
take(struct xac_ctx *ctx)
{
    pthread_t none = 0;

    /* Acquire: pairs with the release when its thread gave the turn back. */
    return atomic_compare_exchange_strong_explicit(&ctx->owner, &none, pthread_self(),
                                                   memory_order_acquire,
                                                   memory_order_relaxed);
}

static void
give(struct xac_ctx *ctx)
{
    /* Release: pairs with the acquire when its thread begins. */
    atomic_store_explicit(&ctx->owner, 0, memory_order_release);
}

/* drop_view -- the context's view of what the process has mapped there; env->threads held. */
static void
drop_view(struct xac_env *env, struct xac_ctx *ctx, const struct xac_view *origin)
{
    struct xac_view **link = &ctx->views, *v;

    while (*link != NULL && (*link)->origin != origin)
        link = &(*link)->next;
    v = *link;
    if (v == NULL)
        return;
    *link = v->next;
    xac_view_close(env, v);
}

void
xac_thread_drop(struct xac_env *env, struct xac_view *origin)
{
    sigset_t signals;

    xac_threads_lock(env, &signals);
    origin->is_leaving = true;
    /* Relaxed: as in xac_thread_translate. */
    atomic_fetch_add_explicit(&env->mappings, 1, memory_order_relaxed);
    for (struct xac_ctx *ctx = env->others; ctx != NULL; ctx = ctx->next) {
        if (ctx->is_translated && take(ctx)) {
            drop_view(env, ctx, origin);
            give(ctx);
        }
    }
    xac_threads_unlock(env, &signals);
}

void
xac_thread_dismiss(struct xac_env *env)
{
    struct xac_ctx *ctx, *next;
    bool is_any = false;
    sigset_t signals;

    xac_threads_lock(env, &signals);
    for (ctx = env->others; ctx != NULL; ctx = next) {
        next = ctx->next;
        if (!ctx->is_translated || !take(ctx))
            continue;
        xac_view_close_all(env, ctx);
        unlist(env, ctx);
        xac_ctx_release(env, ctx);
        is_any = true;
        /* Release: pairs with the acquire in idle_of. */
        atomic_store_explicit(&ctx->is_gone, true, memory_order_release);
    }
    if (is_any)
        recount(env);
    xac_threads_unlock(env, &signals);
}

/* ---- fork ------------------------------------------------------------------------------ */

void
xac_thread_fork(struct xac_env *env)
{
    xac_team_fork(&env->ctx);
    for (struct xac_ctx *c = env->others; c != NULL; c = c->next)
        xac_team_fork(c);
}

void
xac_thread_fork_done(struct xac_env *env)
{
    xac_team_fork_done(&env->ctx);
    for (struct xac_ctx *c = env->others; c != NULL; c = c->next)
        xac_team_fork_done(c);
}

/* forget -- the context's transaction stays with the parent. */
static void
forget(struct xac_ctx *ctx)
{
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next)
        xac_view_forked(v);
    xac_saved_forked(ctx);
    ctx->orphan_depth += ctx->depth;
    ctx->depth = 0;
    ctx->query_depth = 0;
    ctx->frame = NULL;
    ctx->txn = NULL;
    ctx->n_entries = 0;
    ctx->saw_dead = false;
    ctx->alive_until = 0;
    xac_team_forked(ctx);
    atomic_store_explicit(&ctx->n_waiting, 0, memory_order_relaxed);
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
        forget_own(ctx); /* if it is idle */
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
