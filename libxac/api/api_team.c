/* SPDX-License-Identifier: MIT */
/*
 * api_team.c -- entry points for threads that help another's transaction: see team.h.
 *
 * A thread finds the context of a transaction by its number, under xac_api_lock and env->threads: so
 * neither the environment nor the context goes away meanwhile.  Once it has the lock of the team, the
 * transaction does not end before it gives that back.
 */
#include <config.h>

#include <errno.h>

#include <xac.h>
#include <xac_env.h>
#include <xac_team.h>

#include "api/api.h"
#include "api/api_left.h"
#include "base/sys.h"
#include "fault/fault_engine.h"
#include "txn/team.h"
#include "view/view.h"

/* ---- Finding a transaction ----------------------------------------------------------------- */

/* next -- the context behind ctx in its environment, the process's first; env->threads held. */
static struct xac_ctx *
next(struct xac_env *env, const struct xac_ctx *ctx)
{
    return ctx == NULL ? &env->ctx : ctx == &env->ctx ? env->others : ctx->next;
}

/* lock_team -- of the transaction with that id, with signals blocked; NULL: it is over. */
static struct xac_ctx *
lock_team(uint64_t id, sigset_t *signals)
{
    struct xac_ctx *found = NULL;
    sigset_t inner;

    xac_assert(id != 0);
    xac_signals_block(signals);
    xac_api_lock();
    for (struct xac_env *env = xac_api_all; env != NULL && found == NULL;
         env = env->next) {
        xac_threads_lock(env, &inner);
        for (struct xac_ctx *c = next(env, NULL); c != NULL && found == NULL;
             c = next(env, c))
            found = xac_team_lock_if(c, id) ? c : NULL;
        xac_threads_unlock(env, &inner);
    }
    xac_api_unlock();
    if (found == NULL)
        xac_signals_restore(signals);
    return found;
}

static void
unlock_team(struct xac_ctx *ctx, const sigset_t *signals)
{
    xac_team_leave(ctx, XAC_TEAM_IN);
    xac_signals_restore(signals);
}

/* work_on -- a context of an environment whose transaction the calling thread helps, and that has a view
   of the address; its team is locked.  NULL: none.  Signals are blocked. */
static struct xac_ctx *
work_on(struct xac_env *env, const void *addr)
{
    struct xac_ctx *found = NULL;
    sigset_t inner;

    xac_assert(xac_signals_are_blocked());
    xac_threads_lock(env, &inner);
    for (struct xac_ctx *c = next(env, NULL); c != NULL && found == NULL;
         c = next(env, c)) {
        enum xac_team_part part = xac_team_enter(c);

        if (part == XAC_TEAM_IN && xac_view_at(c, addr) != NULL)
            found = c;
        else if (part == XAC_TEAM_IN)
            xac_team_leave(c, part);
    }
    xac_threads_unlock(env, &inner);
    return found;
}

bool
xac_api_team_hint(struct xac_env *env, const void *addr, size_t length, bool is_write,
                  int *rcp)
{
    struct xac_ctx *ctx;
    sigset_t signals;

    if (env->options.team == 0 && xac_team_mine() == NULL)
        return false;
    xac_signals_block(&signals);
    ctx = work_on(env, addr);
    if (ctx != NULL) {
        *rcp = xac_api_hint_locked(ctx, addr, length, is_write);
        xac_team_leave(ctx, XAC_TEAM_IN);
    }
    xac_signals_restore(&signals);
    return ctx != NULL;
}

struct xac_view *
xac_api_team_view(const void *addr, sigset_t *signals)
{
    struct xac_ctx *ctx = NULL;

    if (xac_team_mine() == NULL)
        return NULL;
    xac_signals_block(signals);
    xac_api_lock();
    for (struct xac_env *env = xac_api_all; env != NULL && ctx == NULL; env = env->next)
        ctx = work_on(env, addr);
    xac_api_unlock();
    if (ctx == NULL)
        xac_signals_restore(signals);
    return ctx != NULL ? xac_view_at(ctx, addr) : NULL;
}

void
xac_api_team_done(struct xac_view *v, const sigset_t *signals)
{
    unlock_team(v->ctx, signals);
}

/* gap_in -- bytes from an address to the next view of a context. */
static size_t
gap_in(const struct xac_ctx *ctx, const uint8_t *at)
{
    size_t least = SIZE_MAX;

    for (const struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        if (v->area.base > at && (size_t)(v->area.base - at) < least)
            least = (size_t)(v->area.base - at);
    }
    return least;
}

size_t
xac_api_team_gap(const uint8_t *addr)
{
    size_t least = SIZE_MAX;

    for (const struct xac_joined *j = xac_team_mine(); j != NULL; j = j->next) {
        sigset_t signals;
        struct xac_ctx *ctx = lock_team(j->id, &signals);
        size_t n;

        if (ctx == NULL)
            continue;
        n = gap_in(ctx, addr);
        unlock_team(ctx, &signals);
        least = n < least ? n : least;
    }
    return least;
}

/* ---- Joining and leaving ------------------------------------------------------------------- */

int
xac_api_team_check(struct xac_env *env, const char *what)
{
    bool has = false;
    sigset_t signals;

    xac_threads_lock(env, &signals);
    for (struct xac_ctx *c = next(env, NULL); c != NULL; c = next(env, c))
        has = has || xac_team_has_joined(c);
    xac_threads_unlock(env, &signals);
    return has ? xac_err(XAC_EINTXN,
                         "%s: the thread has joined a transaction, and has not left it: "
                         "xLeave()",
                         what)
               : 0;
}

/* has_open -- has the calling thread a transaction or query of its own open there? */
static bool
has_open(const struct xac_env *env)
{
    const struct xac_ctx *ctx = xac_ctx_opened;

    while (ctx != NULL && ctx->env != env)
        ctx = ctx->next_open;
    return ctx != NULL;
}

/* can_be_helped -- can each page be shown whole, so that no other thread sees it half written? */
static int
can_be_helped(const struct xac_ctx *ctx)
{
    int rc = 0;

    for (const struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = v->area.ops->maps != NULL ? xac_poke_works() : 0;
    return rc == 0
               ? 0
               : xac_err(ENOTSUP, "xTeam: the engine sigsegv needs /proc/self/mem: %s",
                         xac_strerror(rc));
}

int
xac_team_in(struct xac_env *env, uint64_t *txn)
{
    struct xac_ctx *ctx;
    int rc = xac_api_in_txn(env, "xTeam", &ctx);

    if (rc != 0)
        return rc;
    if (txn == NULL)
        return xac_err(EINVAL, "xTeam: NULL");
    rc = can_be_helped(ctx);
    if (rc == 0)
        *txn = xac_team_open(ctx, false);
    return rc;
}

/* join -- the transaction has the number, and its team is locked: one more.  ret 0 or an error. */
static int
join(struct xac_ctx *ctx, uint64_t txn)
{
    if (has_open(ctx->env))
        return xac_err(XAC_EINTXN,
                       "xJoin: the thread has a transaction of its own open in the "
                       "environment");
    if (xac_team_note(txn) != 0)
        return xac_err(ENOMEM, "xJoin");
    ctx->team.n_joined++;
    return 0;
}

int
xac_join(uint64_t txn)
{
    int rc = xac_api_any_opened("xJoin");
    struct xac_ctx *ctx;
    sigset_t signals;

    if (rc != 0)
        return rc;
    for (const struct xac_joined *j = xac_team_mine(); j != NULL; j = j->next) {
        if (j->id == txn)
            return xac_err(XAC_EINTXN, "xJoin: the thread has joined it already");
    }
    if (!xac_left_prepare())
        return xac_err(ENOMEM, "xJoin");
    ctx = txn != 0 ? lock_team(txn, &signals) : NULL;
    if (ctx == NULL)
        return xac_err(
            XAC_ENOTXN,
            "xJoin: no transaction that is open in this process has the number "
            "%llu",
            (unsigned long long)txn);
    rc = join(ctx, txn);
    unlock_team(ctx, &signals);
    if (rc == 0)
        xac_touched_renew(xac_ctx_opened);
    return rc;
}

/* leave -- what the thread has joined last; ret false: that has ended meanwhile. */
static bool
leave(uint64_t id)
{
    sigset_t signals;
    struct xac_ctx *ctx = lock_team(id, &signals);

    if (ctx != NULL) {
        xac_assert(ctx->team.n_joined > 0);
        ctx->team.n_joined--;
        unlock_team(ctx, &signals);
    }
    xac_team_forget(id);
    xac_touched_renew(xac_ctx_opened);
    return ctx != NULL;
}

int
xac_leave(void)
{
    const struct xac_joined *j = xac_team_mine();
    int rc = xac_api_any_opened("xLeave");

    if (rc != 0 && j == NULL)
        return rc;
    if (j == NULL)
        return xac_err(XAC_ENOTXN, "xLeave: the thread has joined no transaction");
    return leave(j->id) ? 0
                        : xac_err(XAC_ENOTXN, "xLeave: the transaction has been rolled "
                                              "back meanwhile, or is another process's");
}

void
xac_api_team_ended(void)
{
    const struct xac_joined *j;

    while ((j = xac_team_mine()) != NULL)
        (void)leave(j->id);
}

/* ---- On the default environment, and Thesis names ------------------------------------------- */

int
xac_team(uint64_t *txn)
{
    return xac_team_in(xac_api_env, txn);
}

int xTeam(uint64_t *txn) XAC_ALIAS_OF(xac_team);
int xJoin(uint64_t txn) XAC_ALIAS_OF(xac_join);
int xLeave(void) XAC_ALIAS_OF(xac_leave);
