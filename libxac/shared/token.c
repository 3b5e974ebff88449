/* SPDX-License-Identifier: MIT */
/*
 * token.c -- see token.h.
 */
#include <config.h>

#include "shared/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/annot.h"
#include "base/err.h"
#include "shared/group.h"

/* ---- Which generation it is ----------------------------------------------------------- */

/* What a region says of its generation, at one moment. */
struct present {
    uint64_t number, start, branch;
};

/* read_present -- after the position (2). */
static struct present
read_present(const struct xac_env *env)
{
    const struct xac_generations *g = &env->ctl->generations;
    struct present p;
    uint64_t n;

    do {
        const struct xac_generation *at;

        /* Acquire: pairs with the release in xac_token_turn. */
        n = atomic_load_explicit(&g->n, memory_order_acquire);
        xac_assert(n > 0);
        at = &g->of[n % 2];
        p.number = atomic_load_explicit(&at->number, memory_order_relaxed);
        p.start = atomic_load_explicit(&at->start, memory_order_relaxed);
        p.branch = atomic_load_explicit(&at->branch, memory_order_relaxed);
        /* Pairs with the fence in xac_token_turn: if the element has been changed, so has `n`. */
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load_explicit(&g->n, memory_order_relaxed) != n);
    return p;
}

/* branch_of -- the part of a branch that tokens have. */
static uint64_t
branch_of(const struct xac_lineage_line *line)
{
    uint64_t word;

    xac_assert(line->generation != 0);
    memcpy(&word, line->branch, sizeof word);
    return word;
}

void
xac_token_turn(struct xac_env *env, const struct xac_lineage_line *line)
{
    struct xac_generations *g = &env->ctl->generations;
    /* Relaxed: only this thread stores it, or a replayer before that is dead. */
    uint64_t n = atomic_load_explicit(&g->n, memory_order_relaxed);
    struct xac_generation *at = &g->of[(n + 1) % 2];

    if (n > 0
        && atomic_load_explicit(&g->of[n % 2].number, memory_order_relaxed)
               == line->generation)
        return;
    /* Pairs with the fence in read_present: `n` has changed before the element of the one before last does. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&at->number, line->generation, memory_order_relaxed);
    atomic_store_explicit(&at->start, line->start_lsn, memory_order_relaxed);
    atomic_store_explicit(&at->branch, branch_of(line), memory_order_relaxed);
    xac_kill_point("token turn");
    /* Release: pairs with the acquire in read_present. */
    atomic_store_explicit(&g->n, n + 1, memory_order_release);
    xac_assert(read_present(env).number == line->generation);
}

/* position -- up to where the region has what is asked for. */
static uint64_t
position(const struct xac_env *env, enum xac_token_ask ask)
{
    xac_assert(xac_env_is_durable(env));
    if (xac_env_is_standby(
            env)) /* acquire: pairs with the release in xac_replayer_passed */
        return atomic_load_explicit(&env->ctl->standby.applied, memory_order_acquire);
    if (ask == XAC_TOKEN_STAYS)
        return xac_group_bound(env);
    /* Acquire: pairs with the release in xac_log_append. */
    return atomic_load_explicit(&env->ctl->log.tail, memory_order_acquire);
}

/* ---- Tokens --------------------------------------------------------------------------- */

int
xac_token_check(const struct xac_env *env, const char *what)
{
    xac_assert(what[0] != '\0');
    if (env->reader == XAC_READER_FROZEN)
        return xac_err(ENOTSUP,
                       "%s: %s was opened by XAC_READONLY while it could not be joined: "
                       "queries see the state of that moment",
                       what, env->dir);
    if (!xac_env_is_durable(env))
        return xac_err(ENOTSUP, "%s: %s is not durable: it has no log", what, env->dir);
    return 0;
}

void
xac_token_of(const struct xac_env *env, uint64_t lsn, struct xac_token *out)
{
    struct present p = read_present(env);
    uint64_t first =
        env->ctl->log.start_lsn; /* what was there when the region was made */

    first = first > p.start ? first : p.start; /* a standby may have gone on since */
    *out = (struct xac_token){.generation = p.number,
                              .lsn = lsn > first ? lsn : first,
                              .branch = p.branch};
    xac_assert(out->generation != 0);
    xac_assert(out->lsn != 0);
}

/* lost -- the log that there is never has it. */
static int
lost(const struct xac_env *env, const struct xac_token *t, uint64_t end)
{
    xac_assert(t->generation != 0);
    xac_assert(end == 0 || t->lsn > end);
    if (end == 0)
        return xac_err(XAC_ELOST,
                       "%s: its log has another generation %" PRIu64
                       ": the two have parted",
                       env->dir, t->generation);
    return xac_err(XAC_ELOST,
                   "%s: generation %" PRIu64 " of its log has ended at LSN %" PRIu64
                   ", before LSN %" PRIu64,
                   env->dir, t->generation, end, t->lsn);
}

/* is_other_branch -- are two branches known, and different? */
static bool
is_other_branch(uint64_t a, uint64_t b)
{
    return a != 0 && b != 0 && a != b;
}

/* judge -- by the lines of the generations that there have been, a token of an earlier generation. */
static int
judge(const struct xac_env *env, const struct xac_lineage *l, const struct xac_token *t)
{
    const struct xac_lineage_line *own = NULL, *next = NULL;

    xac_assert(l->n <= XAC_LINEAGE_LINES);
    if (t->generation <= UINT32_MAX) {
        own = xac_lineage_of(l, (uint32_t)t->generation);
        next = xac_lineage_behind(l, (uint32_t)t->generation);
    }
    if (own != NULL && is_other_branch(branch_of(own), t->branch))
        return lost(env, t, 0);
    if (next == NULL)
        return xac_err(XAC_ENOSTATE,
                       "%s: " XAC_LINEAGE_NAME " does not say where generation %" PRIu64
                       " of the log has ended",
                       env->dir, t->generation);
    return t->lsn > next->end_lsn ? lost(env, t, next->end_lsn) : 0; /* (3) */
}

/* look_back -- a token of a generation before this one. */
static int
look_back(struct xac_env *env, const struct xac_token *t, uint64_t present)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    int dirfd = xac_env_dirfd(env);
    int rc;

    xac_assert(t->generation < present);
    if (l == NULL)
        return xac_err(ENOMEM, "%s", XAC_LINEAGE_NAME);
    rc = dirfd < 0 ? xac_err(errno, "%s", env->dir)
                   : xac_lineage_read(dirfd, (uint32_t)present, l);
    if (rc == 0)
        rc = judge(env, l, t);
    free(l);
    return rc;
}

int
xac_token_look(struct xac_env *env, const struct xac_token *token, enum xac_token_ask ask)
{
    uint64_t at = position(env, ask); /* first (2) */
    struct present p = read_present(env);

    xac_assert(p.number != 0);
    xac_assert(p.start != 0);
    if (token->generation == 0)
        return 0;
    if (token->generation < p.number)
        return look_back(env, token, p.number);
    if (token->generation > p.number)
        return EAGAIN;
    if (is_other_branch(p.branch, token->branch))
        return lost(env, token, 0);
    return at >= token->lsn ? 0 : EAGAIN;
}

/* too_late -- how far the log here is, and what was wanted. */
static int
too_late(const struct xac_env *env, const struct xac_token *t, enum xac_token_ask ask,
         uint32_t wait_ms)
{
    uint64_t at = position(env, ask);
    struct present p = read_present(env);

    xac_assert(p.number != 0);
    return xac_err(ETIMEDOUT,
                   "%s: waited %" PRIu32 " ms for LSN %" PRIu64 " of generation %" PRIu64
                   "; it has the log up to LSN %" PRIu64 ", generation %" PRIu64,
                   env->dir, wait_ms, t->lsn, t->generation, at, p.number);
}

int
xac_token_await(struct xac_env *env, const struct xac_token *token,
                enum xac_token_ask ask, uint32_t wait_ms)
{
    struct xac_group_patience patience = xac_group_patience(wait_ms);
    int rc;

    xac_assert(xac_lock_none_held());
    do {
        uint32_t seen = xac_group_listen(env);
        /* Before the look, so that what was there by then is found (group.h, 2). */
        bool is_deposed = xac_group_is_deposed(env);

        rc = xac_token_look(env, token, ask);
        if (rc == EAGAIN && is_deposed)
            return xac_group_refuse(env, "waiting for a token");
        if (rc != EAGAIN)
            return rc;
        rc = xac_group_sleep(env, seen, &patience);
    } while (rc == 0);
    return too_late(env, token, ask, wait_ms);
}
