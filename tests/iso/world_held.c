/* SPDX-License-Identifier: MIT */
/*
 * world_held.c -- see world.h: savepoints, snapshots and queries of the past.
 */
#include <config.h>

#include <string.h>

#include <xac.h>

#include "commit/txn.h"
#include "env/env.h"
#include "sim.h"
#include "txn/history.h"
#include "txn/saved.h"
#include "txn/snapshots.h"
#include "view/view.h"
#include "world.h"
#include "world_state.h"

/* ---- Savepoints ------------------------------------------------------------------------ */

void
world_savepoint(struct world *w, int a, int level)
{
    struct world_member *m = &w->member[a];

    m->mark[level] = ++m->last_mark;
    sim_must(xac_view_savepoint(&m->env->ctx, m->mark[level]) == 0);
}

/* level_of -- what the library has for a mark; UINT64_MAX: it knows none. */
static uint64_t
level_of(const struct world_member *m, int level)
{
    const struct xac_saved *s = m->env->ctx.saved;

    return s == NULL ? UINT64_MAX : xac_saved_find(s, m->mark[level]);
}

bool
world_roll_back(struct world *w, int a, int level)
{
    struct world_member *m = &w->member[a];
    uint64_t found = level_of(m, level);

    if (found == UINT64_MAX)
        return false;
    sim_must(xac_view_roll_back(&m->env->ctx, found) == 0);
    return true;
}

bool
world_release(struct world *w, int a, int level)
{
    struct world_member *m = &w->member[a];
    uint64_t found = level_of(m, level);

    if (found == UINT64_MAX)
        return false;
    xac_saved_merge(m->env->ctx.saved, found);
    return true;
}

void
world_saved_restore(struct world_member *m)
{
    struct xac_saved *s = m->env->ctx.saved;

    xac_saved_end(&m->env->ctx);
    if (s == NULL)
        return;
    /* Epochs count from the start of each run, so that equal runs are equal. */
    if (s->n_pages > 0)
        memset(s->pages.at, 0, s->n_pages * sizeof(struct xac_saved_page));
    s->n_pages = 0;
    s->epoch = 0;
}

uint64_t
world_saved_hash(const struct world_member *m, uint64_t seed)
{
    const struct xac_ctx *ctx = &m->env->ctx;
    struct xac_saved *s = ctx->saved;
    uint64_t h = seed;

    if (ctx->save_epoch == 0)
        return h;
    for (uint64_t i = 0; i < s->n_levels; i++)
        h = h * 31 + xac_saved_level_at(s, i)->first;
    for (uint64_t i = 0; i < s->n_images; i++) {
        const struct xac_saved_image *image = xac_saved_image_at(s, i);

        h = h * 31 + image->entry;
        h = h * 31 + image->older;
        if (image->place != 0)
            h = h * 31 + *(const uint64_t *)(const void *)xac_saved_bytes(s, image);
    }
    for (uint32_t i = 0; i < s->n_pages; i++)
        h = h * 31 + xac_saved_is_open(ctx, i);
    return h * 31 + s->n_levels + 1;
}

/* ---- Snapshots and the past ------------------------------------------------------------ */

void
world_hold(struct world *w, int a, int held)
{
    struct xac_env *env = w->member[a].env;
    bool is_query = world_status(w, a) == MODEL_QUERY;
    uint64_t id;

    sim_must(xac_snapshots_take(env, is_query ? env->ctx.txn : NULL, &id) == 0);
    w->held[held] = id;
}

/* answer -- 0: true; XAC_ENOSTATE: false; nothing else may come. */
static bool
answer(int rc)
{
    sim_must(rc == 0 || rc == XAC_ENOSTATE);
    return rc == 0;
}

bool
world_let_go(struct world *w, int a, int held)
{
    return answer(xac_snapshots_release(w->member[a].env, w->held[held]));
}

bool
world_begin_at(struct world *w, int a, int held)
{
    struct xac_env *env = w->member[a].env;

    return answer(xac_txn_begin_at(env, &env->ctx, w->held[held]));
}

bool
world_begin_past(struct world *w, int a, uint32_t state)
{
    struct xac_env *env = w->member[a].env;
    uint64_t number = w->last_number;

    while (w->state_of[number - w->first_number] != state)
        number--;
    return answer(xac_txn_begin_at(env, &env->ctx, XAC_AT_COMMIT(number)));
}

void
world_keep_history(struct world *w, uint32_t n_numbers)
{
    atomic_store(&w->member[0].env->ctl->history,
                 n_numbers == 0 ? 0 : XAC_HISTORY_COMMITS(n_numbers));
}

void
world_let_all_go(struct world *w, int a)
{
    xac_history_end(w->member[a].env);
    xac_snapshots_leave(w->member[a].env, true);
}
