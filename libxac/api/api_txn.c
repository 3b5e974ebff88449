/* SPDX-License-Identifier: MIT */
/*
 * api_txn.c -- entry points for transactions, queries and hints: see api.h.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "api/api_left.h"
#include "api/api_token.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/tls.h"
#include "base/tsan.h"
#include "commit/txn.h"
#include "env/reader.h"
#include "fault/fault_signal.h"
#include "shared/group.h"
#include "txn/ctx.h"
#include "txn/reader_limit.h"
#include "txn/team.h"
#include "view/fault.h"
#include "view/view_scan.h"

/* last_conflict -- why the last transaction of this thread aborted; NULL: no memory. */
static struct xac_conflict *
last_conflict(void)
{
    struct xac_api_ends *ends = xac_api_ends();

    return ends != NULL ? &ends->conflict : NULL;
}

/* begin_outermost -- until_ns: see xac_api_begin.  atp: the state that a query is to see; NULL: the newest. */
static int
begin_outermost(struct xac_env *env, const char *what, bool is_query, uint64_t until_ns,
                const uint64_t *atp)
{
    struct xac_ctx *ctx;
    uint64_t now = xac_clock_coarse_ns();
    bool may_wait = until_ns != 0 || (env != NULL && env->options.wait_ms != 0);
    int rc = xac_unlikely(xac_team_mine() != NULL) ? xac_api_team_check(env, what) : 0;

    if (rc == 0)
        rc = !may_wait ? xac_api_start(env, what, &ctx)
                       : xac_api_start_by(env, what, until_ns, &ctx);
    if (rc != 0)
        return rc;
    ctx->until_ns = until_ns;
    xac_signal_look(ctx, now);
    rc = is_query ? 0 : xac_reader_check_writer(ctx->env, "xbegin");
    if (rc == 0)
        rc = xac_env_poisoned(ctx->env);
    if (rc == 0)
        rc = xac_group_check(ctx->env, what);
    if (rc == 0)
        rc = xac_env_glance(ctx->env, now);
    if (rc == 0)
        rc = atp == NULL ? xac_txn_begin(ctx->env, ctx, is_query)
                         : xac_txn_begin_at(ctx->env, ctx, *atp);
    if (xac_unlikely(may_wait))
        xac_wait_limit(0);
    if (rc != 0) {
        if (!is_query)
            xac_txn_forgo(ctx);
        xac_api_done(ctx);
        return rc;
    }
    ctx->depth = 1;
    ctx->query_depth = is_query;
    xac_ctx_begun(ctx);
    (void)xac_left_prepare(); /* without it nobody notices that the thread ends */
    /* No end takes memory: a signal handler may call exit() in the middle of it. */
    (void)xac_api_ends();
    if (xac_unlikely(ctx->env->options.team != 0))
        (void)xac_team_open(ctx, true);
    xac_tsan_leave();
    return 0;
}

int
xac_api_begin(struct xac_env *env, bool is_query, uint64_t until_ns)
{
    return begin_outermost(env, is_query ? "xbeginQuery" : "xbegin", is_query, until_ns,
                           NULL);
}

/* is_left -- xac_left_look, if there is anything to look at. */
static inline bool
is_left(const struct xac_ctx *ctx, const void *frame)
{
    return ctx->frame != NULL && xac_left_look(ctx->env, frame);
}

/* begin -- xbegin(); frame: that of the entry point that the program has called. */
static inline int
begin(struct xac_env *env, const void *frame, uint64_t until_ns)
{
    int rc = xac_api_opened(env, "xbegin");
    struct xac_ctx *ctx;

    if (rc != 0)
        return rc;
    ctx = xac_ctx_mine(env);
    if (!xac_api_is_mine(ctx) || is_left(ctx, frame))
        return xac_api_begin(env, false, until_ns);
    if (xac_unlikely(ctx->depth == 0)) /* a begin of ours has not returned */
        xac_api_interrupted("xbegin");
    if (ctx->query_depth > 0)
        return xac_err(XAC_EINQUERY, "xbegin");
    ctx->depth++;
    xac_left_nested(ctx);
    return 0;
}

int
xac_api_begin_by(struct xac_env *env, uint64_t until_ns)
{
    return begin(env, __builtin_frame_address(0), until_ns);
}

/* begin_within -- a query inside a transaction: no page may be written unnoticed. */
static int
begin_within(struct xac_ctx *ctx)
{
    int rc = xac_view_gather(ctx->env, ctx);

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = v->staying.n_warm > 0 ? xac_warm_cool(v) : 0;
    return rc == 0 ? 0 : xac_err(rc, "xbeginQuery");
}

/* begin_query -- xbeginQuery(); frame: as above. */
static inline int
begin_query(struct xac_env *env, const void *frame)
{
    int rc = xac_api_opened(env, "xbeginQuery");
    struct xac_ctx *ctx;
    sigset_t signals;
    bool is_team;

    if (rc != 0)
        return rc;
    ctx = xac_ctx_mine(env);
    if (!xac_api_is_mine(ctx) || is_left(ctx, frame))
        return xac_api_begin(env, true, 0);
    if (xac_unlikely(ctx->depth == 0))
        xac_api_interrupted("xbeginQuery");
    is_team = xac_team_call(ctx, &signals);
    if (ctx->query_depth == 0)
        rc = begin_within(ctx);
    if (rc == 0) {
        ctx->depth++;
        ctx->query_depth++;
        xac_left_nested(ctx);
    }
    xac_team_return(ctx, is_team, &signals);
    return rc;
}

/* must_be_outermost -- of a query that cannot be a part of another one; frame: as above. */
static int
must_be_outermost(struct xac_env *env, const char *what, const void *frame)
{
    int rc = xac_api_opened(env, what);
    const struct xac_ctx *ctx;

    if (rc != 0)
        return rc;
    ctx = xac_ctx_mine(env);
    if (!xac_api_is_mine(ctx) || is_left(ctx, frame))
        return 0;
    if (xac_unlikely(ctx->depth == 0))
        xac_api_interrupted(what);
    return xac_err(XAC_EINTXN, "%s: a transaction or query is open", what);
}

/* begin_query_at -- xbeginQueryAt(); frame: as above. */
static inline int
begin_query_at(struct xac_env *env, uint64_t state, const void *frame)
{
    int rc = must_be_outermost(env, "xbeginQueryAt", frame);

    return rc == 0 ? begin_outermost(env, "xbeginQueryAt", true, 0, &state) : rc;
}

/* begin_query_after -- xbeginQueryAfter(); frame: as above. */
static inline int
begin_query_after(struct xac_env *env, const struct xac_token *token, uint32_t wait_ms,
                  const void *frame)
{
    int rc = must_be_outermost(env, "xbeginQueryAfter", frame);

    if (rc == 0)
        rc = xac_api_await_token(env, "xbeginQueryAfter", token, XAC_TOKEN_SEEN, wait_ms);
    return rc == 0 ? begin_outermost(env, "xbeginQueryAfter", true, 0, NULL) : rc;
}

/* begin_query_latest -- xbeginQueryLatest(); frame: as above. */
static inline int
begin_query_latest(struct xac_env *env, uint32_t wait_ms, const void *frame)
{
    int rc = must_be_outermost(env, "xbeginQueryLatest", frame);

    if (rc == 0)
        rc = xac_api_await_latest(env, wait_ms);
    return rc == 0 ? begin_outermost(env, "xbeginQueryLatest", true, 0, NULL) : rc;
}

/* status -- of the running transaction. */
static int
status(struct xac_ctx *ctx)
{
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_acquire);
    sigset_t signals;
    bool is_team = xac_team_call(ctx, &signals);
    int error = ctx->error;

    xac_team_return(ctx, is_team, &signals);
    return xac_txn_state(word) == XAC_TXN_FAILED || error != 0 ? XAC_FAILED : XAC_PENDING;
}

/* end_outermost -- the transaction or query is over. */
static int
end_outermost(struct xac_ctx *ctx)
{
    struct xac_conflict *last = last_conflict();
    int rc;

    xac_tsan_enter();
    if (xac_unlikely(xac_team_is_on(ctx)))
        (void)xac_team_close(ctx, true);
    ctx->frame = NULL;
    ctx->is_ending = true;
    /* Pairs with signal handlers, which may fork or call exit(). */
    atomic_signal_fence(memory_order_seq_cst);
    if (ctx->txn == NULL) { /* this is a child that a handler has made just before */
        ctx->is_ending = false;
        ctx->orphan_depth--;
        xac_tsan_leave();
        return xac_err(XAC_EFORKED, "xend");
    }
    rc = xac_txn_end(ctx->env, ctx);
    /* The child of a handler that has come after the last touch of shared memory. */
    if (xac_unlikely(xac_half_done.is_inherited))
        xac_api_interrupted("xend");
    /* Without a kind there is nothing in it. */
    if (!ctx->is_query && last != NULL
        && (ctx->conflict.kind != XAC_CONFLICT_NONE || last->kind != XAC_CONFLICT_NONE))
        *last = ctx->conflict;
    if (ctx->ended_lsn != XAC_ENDED_NOTHING && xac_env_is_durable(ctx->env))
        xac_api_ended(ctx);
    ctx->depth = 0;
    ctx->query_depth = 0;
    xac_ctx_ended(ctx);
    /* Pairs with signal handlers, as above. */
    atomic_signal_fence(memory_order_seq_cst);
    ctx->is_ending = false;
    if (xac_unlikely(ctx->is_translated))
        xac_thread_set_idle(ctx);
    xac_api_done(ctx);
    return rc;
}

void
xac_api_roll_back(struct xac_ctx *ctx, int depth)
{
    sigset_t signals;
    bool is_team;

    if (!ctx->is_query) {
        /* Relaxed: the owner's own. */
        uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

        is_team = xac_team_call(ctx, &signals);
        if (ctx->query_depth > 0)
            xac_scan_end_query(ctx);
        ctx->query_depth = 0;
        xac_team_return(ctx, is_team, &signals);
        (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_USER, ctx->env->pid, 0);
    }
    ctx->depth = depth;
    if (depth == 0)
        (void)end_outermost(ctx);
}

/* end_team -- threads that have joined must have left before the end; ret 0 or EBUSY. */
static int
end_team(struct xac_ctx *ctx, const char *what)
{
    unsigned n = xac_team_close(ctx, false);

    return n == 0 ? 0
                  : xac_err(EBUSY,
                            "%s: %u %s joined the transaction and not left it: xLeave()",
                            what, n, n == 1 ? "thread has" : "threads have");
}

/* end_orphan -- an end for a transaction that stayed in the parent process. */
static int
end_orphan(struct xac_ctx *ctx, int rc)
{
    if (rc != XAC_EFORKED)
        return rc;
    ctx->orphan_depth--;
    if (ctx->is_translated && ctx->orphan_depth == 0)
        xac_thread_set_idle(ctx);
    return rc;
}

/* end -- xend(); frame: as above. */
static inline int
end(struct xac_env *env, const void *frame)
{
    struct xac_ctx *ctx = NULL;
    int rc = xac_api_in_txn(env, "xend", &ctx);

    if (rc != 0)
        return end_orphan(ctx, rc);
    if (is_left(ctx, frame))
        return xac_err(XAC_ENOTXN, "xend");
    if (ctx->query_depth > 0)
        return xac_err(XAC_EINQUERY,
                       "xend: the innermost is a query, end it by xendQuery");
    if (ctx->depth <= 1) { /* 0: see there */
        if (xac_unlikely(xac_team_is_on(ctx)))
            rc = end_team(ctx, "xend");
        return rc == 0 ? end_outermost(ctx) : rc;
    }
    ctx->depth--;
    return status(ctx);
}

/* check_cut -- XAC_ECUTOFF if the transaction is a query that has been cut off, else 0. */
static int
check_cut(const struct xac_ctx *ctx, const char *what)
{
    return ctx->is_query && xac_unlikely(xac_txn_is_cut(ctx->txn))
               ? xac_txn_cut_error(ctx->env, what)
               : 0;
}

/* end_query -- xendQuery(). */
static inline int
end_query(struct xac_env *env)
{
    struct xac_ctx *ctx = NULL;
    int rc = xac_api_in_txn(env, "xendQuery", &ctx);
    sigset_t signals;
    bool is_team;

    if (rc != 0)
        return end_orphan(ctx, rc);
    if (ctx->query_depth == 0)
        return xac_err(XAC_ENOTXN, "xendQuery: the innermost is no query");
    if (ctx->depth == 1) {
        if (xac_unlikely(xac_team_is_on(ctx)))
            rc = end_team(ctx, "xendQuery");
        return rc == 0 ? end_outermost(ctx) : rc;
    }
    is_team = xac_team_call(ctx, &signals);
    ctx->depth--;
    ctx->query_depth--;
    if (ctx->query_depth == 0)
        xac_scan_end_query(ctx);
    xac_team_return(ctx, is_team, &signals);
    return check_cut(ctx, "xendQuery");
}

int
xac_validate_in(struct xac_env *env)
{
    struct xac_ctx *ctx;
    int rc = xac_api_in_txn(env, "xValidate", &ctx);

    sigset_t signals;
    bool is_team;

    if (rc != 0)
        return rc;
    rc = check_cut(ctx, "xValidate");
    if (rc != 0)
        return rc;
    is_team = xac_team_call(ctx, &signals);
    (void)xac_txn_foresee(ctx->env, ctx);
    xac_team_return(ctx, is_team, &signals);
    return status(ctx);
}

int
xac_abort_in(struct xac_env *env)
{
    uint64_t word;
    struct xac_ctx *ctx;
    int rc = xac_api_in_txn(env, "xAbort", &ctx);

    if (rc != 0)
        return rc;
    if (ctx->query_depth > 0)
        return xac_err(XAC_EINQUERY, "xAbort");
    word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_USER, ctx->env->pid, 0);
    return 0;
}

/* has_access -- need a page not be announced? */
static bool
has_access(const struct xac_view *v, uint64_t page_no, bool is_write)
{
    const struct xac_view_page *p = &v->pages.at[page_no];

    if (is_write && xac_view_is_closed(v, page_no))
        return false;
    return xac_view_is_writable(p) || (!is_write && xac_view_is_readable(v, p));
}

/* find_range -- the context's view that a range of at least one byte lies in. */
static int
find_range(const struct xac_ctx *ctx, const void *addr, size_t length,
           struct xac_view **viewp)
{
    struct xac_view *v = xac_view_at(ctx, addr);

    if (v == NULL)
        return xac_err(XAC_ENOTMAPPED, "setPageAccess: address %p", addr);
    if (length == 0
        || length > (size_t)(v->area.base + v->area.length - (const uint8_t *)addr))
        return xac_err(EINVAL, "setRangeAccess: %zu bytes at %p", length, addr);
    *viewp = v;
    return 0;
}

/* hint -- xac_api_hint, with the lock of the team, if there is one. */
static int
hint(struct xac_ctx *ctx, struct xac_view *v, uint64_t at, uint64_t end, bool is_write)
{
    uint64_t n_hints = 0;
    int rc = 0;

    if (is_write && ctx->query_depth > 0)
        return xac_err(XAC_EINQUERY, "setPageAccess: READ_WRITE");
    while (at < end && rc == 0) {
        uint64_t n = 0;

        while (at + n < end && !has_access(v, at + n, is_write))
            n++;
        if (n > 0) {
            xac_tsan_enter();
            for (uint64_t p = at;
                 p < at + n && is_write && rc == 0 && v->area.in_place >= 0; p++)
                rc = xac_view_in_place_store(ctx, v, p);
            if (rc == 0)
                rc = xac_view_access_run(ctx->env, ctx, v, at, n, is_write);
            xac_tsan_leave();
        }
        n_hints += n;
        at += n + 1; /* the one behind has access */
    }
    if (rc == 0 && (rc = check_cut(ctx, "setPageAccess")) != 0)
        return rc;
    if (rc != 0)
        return xac_err(rc, "setPageAccess: %s", xac_fault_lacks(ctx));
    if (n_hints > 0)
        xac_count_own(&ctx->txn->counters.hints, n_hints);
    return 0;
}

int
xac_api_hint(struct xac_ctx *ctx, struct xac_view *v, uint64_t at, uint64_t end,
             bool is_write)
{
    sigset_t signals;
    bool is_team = xac_team_call(ctx, &signals);
    int rc = hint(ctx, v, at, end, is_write);

    xac_team_return(ctx, is_team, &signals);
    return rc;
}

int
xac_api_hint_locked(struct xac_ctx *ctx, const void *addr, size_t length, bool is_write)
{
    struct xac_view *v = NULL;
    int rc = find_range(ctx, addr, length, &v);
    size_t at;

    if (rc != 0)
        return rc;
    if (is_write && ctx->is_query)
        return xac_err(XAC_EINQUERY, "setPageAccess: READ_WRITE");
    at = (size_t)((const uint8_t *)addr - v->area.base);
    return hint(ctx, v, at >> ctx->env->page_shift,
                ((at + length - 1) >> ctx->env->page_shift) + 1, is_write);
}

/* announce -- setPageAccess for every page of a range. */
static int
announce(struct xac_env *env, const char *what, void *addr, size_t length, int access)
{
    struct xac_view *v = NULL;
    struct xac_ctx *ctx;
    sigset_t signals;
    size_t at;
    int rc = xac_api_opened(env, what);

    if (rc != 0)
        return rc;
    if (access != XAC_READ && access != XAC_READ_WRITE)
        return xac_err(EINVAL, "%s: unknown access %d", what, access);
    ctx = xac_ctx_mine(env);
    if (!xac_api_is_mine(ctx) || ctx->depth == 0) {
        if (xac_api_team_hint(env, addr, length, access == XAC_READ_WRITE, &rc))
            return rc;
        xac_threads_lock(ctx->env, &signals); /* who has the turn may map and unmap */
        rc = find_range(ctx, addr, length, &v);
        xac_threads_unlock(ctx->env, &signals);
        return rc;
    }
    rc = find_range(ctx, addr, length, &v);
    if (rc != 0)
        return rc;
    at = (size_t)((const uint8_t *)addr - v->area.base);
    return xac_api_hint(ctx, v, at >> ctx->env->page_shift,
                        ((at + length - 1) >> ctx->env->page_shift) + 1,
                        access == XAC_READ_WRITE);
}

int
xac_get_conflict(struct xac_conflict *out, size_t size)
{
    int rc = xac_api_any_opened("xConflict");
    const struct xac_conflict *last = last_conflict();

    static_assert(XAC_SIZED_IS_DENSE(struct xac_conflict, address),
                  "name the last field");
    if (rc == 0)
        rc = xac_api_check_sized("xConflict", out, size, sizeof out->kind);
    if (rc != 0)
        return rc;
    if (last == NULL)
        return xac_err(ENOMEM, "xConflict");
    xac_sized_fill(out, size, last, sizeof *last);
    return 0;
}

/* ---- Entry points ------------------------------------------------------------------------- */

int
xac_begin_in(struct xac_env *env)
{
    return begin(env, __builtin_frame_address(0), 0);
}

int
xac_end_in(struct xac_env *env)
{
    return end(env, __builtin_frame_address(0));
}

int
xac_begin_query_in(struct xac_env *env)
{
    return begin_query(env, __builtin_frame_address(0));
}

int
xac_begin_query_at_in(struct xac_env *env, uint64_t state)
{
    return begin_query_at(env, state, __builtin_frame_address(0));
}

int
xac_begin_query_after_in(struct xac_env *env, const struct xac_token *token,
                         uint32_t wait_ms)
{
    return begin_query_after(env, token, wait_ms, __builtin_frame_address(0));
}

int
xac_begin_query_latest_in(struct xac_env *env, uint32_t wait_ms)
{
    return begin_query_latest(env, wait_ms, __builtin_frame_address(0));
}

int
xac_end_query_in(struct xac_env *env)
{
    return end_query(env);
}

int
xac_set_page_access_in(struct xac_env *env, void *addr, int access)
{
    return announce(env, "setPageAccess", addr, 1, access);
}

int
xac_set_range_access_in(struct xac_env *env, void *addr, size_t length, int access)
{
    return announce(env, "setRangeAccess", addr, length, access);
}

/* ---- On the default environment ----------------------------------------------------------- */

int
xac_begin(void)
{
    return begin(xac_api_env, __builtin_frame_address(0), 0);
}

int
xac_end(void)
{
    return end(xac_api_env, __builtin_frame_address(0));
}

int
xac_begin_query(void)
{
    return begin_query(xac_api_env, __builtin_frame_address(0));
}

int
xac_begin_query_at(uint64_t state)
{
    return begin_query_at(xac_api_env, state, __builtin_frame_address(0));
}

int
xac_begin_query_after(const struct xac_token *token, uint32_t wait_ms)
{
    return begin_query_after(xac_api_env, token, wait_ms, __builtin_frame_address(0));
}

int
xac_begin_query_latest(uint32_t wait_ms)
{
    return begin_query_latest(xac_api_env, wait_ms, __builtin_frame_address(0));
}

int
xac_end_query(void)
{
    return end_query(xac_api_env);
}

int
xac_set_page_access(void *addr, int access)
{
    return announce(xac_api_env, "setPageAccess", addr, 1, access);
}

int
xac_set_range_access(void *addr, size_t length, int access)
{
    return announce(xac_api_env, "setRangeAccess", addr, length, access);
}

int
xac_validate(void)
{
    return xac_validate_in(xac_api_env);
}

int
xac_abort(void)
{
    return xac_abort_in(xac_api_env);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

int xbegin(void) XAC_ALIAS_OF(xac_begin);
int xend(void) XAC_ALIAS_OF(xac_end);
int xValidate(void) XAC_ALIAS_OF(xac_validate);
int xbeginQuery(void) XAC_ALIAS_OF(xac_begin_query);
int xbeginQueryAt(uint64_t state) XAC_ALIAS_OF(xac_begin_query_at);
int xbeginQueryAfter(const struct xac_token *token, uint32_t wait_ms)
    XAC_ALIAS_OF(xac_begin_query_after);
int xbeginQueryLatest(uint32_t wait_ms) XAC_ALIAS_OF(xac_begin_query_latest);
int xendQuery(void) XAC_ALIAS_OF(xac_end_query);
int setPageAccess(void *addr, int access) XAC_ALIAS_OF(xac_set_page_access);
int setRangeAccess(void *addr, size_t length, int access)
    XAC_ALIAS_OF(xac_set_range_access);
int xAbort(void) XAC_ALIAS_OF(xac_abort);
int xConflict(struct xac_conflict *out, size_t size) XAC_ALIAS_OF(xac_get_conflict);
