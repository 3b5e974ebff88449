/* SPDX-License-Identifier: MIT */
/*
 * api_left.c -- see api_left.h.
 */
#include <config.h>

#include "api/api_left.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/tls.h"
#include "env/thread.h"
#include "txn/ctx.h"
#include "txn/team.h"
#include "view/view_scan.h"

/* Nesting that is said to look like one without end. */
#define DEPTH_SAID 1000

/* stack_of_thread -- that it was started with; NULL if it cannot be known. */
static const struct xac_thread_known *
stack_of_thread(void)
{
    struct xac_thread_known *s =
        (struct xac_thread_known *)xac_tls_part(XAC_TLS_THREAD, sizeof *s);
    pthread_attr_t attr;
    size_t bytes = 0;
    void *low = NULL;

    if (s == NULL || s->is_stack_known)
        return s;
    s->is_stack_known = true;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return s;
    if (pthread_attr_getstack(&attr, &low, &bytes) == 0) {
        s->stack_low = (uintptr_t)low;
        s->stack_high = s->stack_low + bytes;
    }
    (void)pthread_attr_destroy(&attr);
    return s;
}

static bool
is_on(const struct xac_thread_known *s, const void *frame)
{
    return s != NULL && (uintptr_t)frame >= s->stack_low
           && (uintptr_t)frame < s->stack_high;
}

/* return_word -- the word behind the saved frame pointer: where the function returns to. */
__attribute__((no_sanitize("address", "thread"))) static uintptr_t
return_word(const void *frame)
{
    return ((const volatile uintptr_t *)frame)[1];
}

/* open_here -- the calling thread's context, if it has a transaction; NULL. */
static struct xac_ctx *
open_here(struct xac_env *env)
{
    struct xac_ctx *ctx = env != NULL ? xac_ctx_mine(env) : NULL;

    return ctx != NULL && xac_api_is_mine(ctx) && ctx->depth > 0 ? ctx : NULL;
}

/* ---- xTransact() ------------------------------------------------------------------------ */

int
xac_left_enter(struct xac_env *env, const void *frame)
{
    struct xac_ctx *ctx = open_here(env);

    xac_assert(ctx != NULL);
    if (ctx->frame == NULL && is_on(stack_of_thread(), frame)) {
        ctx->frame = frame;
        ctx->frame_return = return_word(frame);
        ctx->frame_depth = ctx->depth - 1;
    }
    return ctx->depth - 1;
}

/* forget -- the frame, if it is the one of this nesting. */
static void
forget(struct xac_ctx *ctx, int depth)
{
    if (ctx->frame != NULL && ctx->frame_depth == depth)
        ctx->frame = NULL;
}

int
xac_left_return(struct xac_env *env, int depth)
{
    struct xac_ctx *ctx = open_here(env);
    int n_open;

    if (ctx == NULL)
        return 0; /* the end says so */
    forget(ctx, depth);
    n_open = ctx->depth - (depth + 1);
    if (n_open <= 0)
        return 0;
    xac_api_roll_back(ctx, depth);
    return xac_err(XAC_EINTXN,
                   "xTransact: the function has not ended %d of the transactions or "
                   "queries that it began",
                   n_open);
}

/* undo -- take the transaction back to a savepoint, and to its nesting.  false: that does not work. */
static bool
undo(struct xac_ctx *ctx, int depth, uint64_t mark)
{
    sigset_t signals;
    bool is_team = xac_team_call(ctx, &signals);
    int rc;

    if (ctx->query_depth > 0)
        xac_scan_end_query(ctx);
    ctx->query_depth = 0; /* xTransact() begins in no query */
    ctx->depth = depth;
    xac_team_return(ctx, is_team, &signals);
    rc = xac_rollback_to_in(ctx->env, mark);
    return (rc == 0 || rc == XAC_FAILED) && xac_release_in(ctx->env, mark) == 0;
}

void
xac_left_unwind(struct xac_env *env, int depth, uint64_t mark)
{
    struct xac_ctx *ctx = open_here(env);

    if (ctx == NULL) {
        (void)xac_end_in(env); /* of a child process: one less that is owed */
        return;
    }
    forget(ctx, depth);
    if (ctx->depth > depth && (mark == 0 || !undo(ctx, depth, mark)))
        xac_api_roll_back(ctx, depth);
}

/* is_gone -- the frame of the outermost xTransact(). */
static bool
is_gone(const struct xac_ctx *ctx, const void *caller)
{
    return return_word(ctx->frame) != ctx->frame_return
           || ((uintptr_t)caller >= (uintptr_t)ctx->frame
               && is_on(stack_of_thread(), caller));
}

bool
xac_left_look(struct xac_env *env, const void *frame)
{
    static _Atomic bool has_said;
    struct xac_ctx *ctx = open_here(env);
    Dl_info where = {.dli_fname = NULL};
    uintptr_t from;

    if (ctx == NULL || ctx->frame == NULL || xac_likely(!is_gone(ctx, frame)))
        return false;
    from = ctx->frame_return;
    ctx->frame = NULL;
    xac_api_roll_back(ctx, ctx->frame_depth);
    if (dladdr((void *)from, &where) == 0 || where.dli_fname == NULL)
        where = (Dl_info){.dli_fname = "?"};
    xac_say_once(
        &has_said,
        "xTransact() was left by longjmp() or the like; its transaction has been "
        "rolled back; it was called at %s+%#llx (xac.h, rule 4)",
        where.dli_fname, (unsigned long long)(from - (uintptr_t)where.dli_fbase));
    return ctx->frame_depth == 0;
}

void
xac_left_nested(const struct xac_ctx *ctx)
{
    static _Atomic bool has_said;

    if (xac_unlikely(ctx->depth == DEPTH_SAID))
        xac_say_once(
            &has_said,
            "transactions are nested %d deep, and nothing is committed before the "
            "outermost ends; is an xend() or xendQuery() missing on some path?",
            DEPTH_SAID);
}

/* ---- The ends of threads and processes --------------------------------------------------- */

/* age_s -- of the transaction, seconds. */
static double
age_s(const struct xac_ctx *ctx)
{
    /* Relaxed: ours. */
    uint64_t begin = atomic_load_explicit(&ctx->txn->begin_ns, memory_order_relaxed);

    return (double)(xac_clock_coarse_ns() - begin) / 1e9;
}

/* on_thread_end -- what it has open in contexts of the process, and its own contexts. */
static void
on_thread_end(void)
{
    static _Atomic bool has_said;
    struct xac_ctx *next;

    if (xac_half_done.is_inherited)
        return; /* what it has open is the parent's */
    xac_api_lock();
    if (xac_api_is_within()) /* what it holds, others would wait for */
        xac_api_interrupted("the end of a thread");
    xac_api_unlock();
    for (struct xac_ctx *ctx = xac_ctx_opened; ctx != NULL; ctx = next) {
        next = ctx->next_open;
        if (ctx != &ctx->env->ctx)
            continue;
        if (!ctx->is_query)
            xac_say_once(
                &has_said,
                "a thread has ended inside of a transaction of %s, open for %.2f s; it "
                "has been rolled back",
                ctx->env->dir, age_s(ctx));
        xac_api_roll_back(ctx, 0);
    }
    xac_api_team_ended();
    xac_api_lock(); /* nobody closes an environment meanwhile */
    xac_thread_ended();
    xac_api_unlock();
    xac_touched_ended();
}

bool
xac_left_prepare(void)
{
    if (xac_likely(xac_tls_look(XAC_TLS_THREAD) != NULL))
        return true;
    xac_tls_on_end(on_thread_end);
    return xac_tls_part(XAC_TLS_THREAD, sizeof(struct xac_thread_known)) != NULL;
}

/* on_exit_of_process -- after the program's functions of atexit(3) and its destructors.  What
   another thread has open is not exit()'s: the thread may be about to end it. */
__attribute__((destructor)) static void
on_exit_of_process(void)
{
    static _Atomic bool has_said;
    struct xac_ctx *next;

    for (struct xac_ctx *ctx = xac_ctx_opened; ctx != NULL; ctx = next) {
        next = ctx->next_open;
        if (ctx->is_ending || xac_env_is_forked(ctx->env)
            || ctx->env->pid != (uint32_t)getpid())
            continue;
        if (!ctx->is_query)
            xac_say_once(
                &has_said,
                "exit() was called inside of a transaction of %s, open for %.2f s; it "
                "has been rolled back",
                ctx->env->dir, age_s(ctx));
        xac_api_roll_back(ctx, 0);
    }
}
