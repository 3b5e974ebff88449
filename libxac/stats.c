/* SPDX-License-Identifier: MIT */
/*
 * stats.c -- see stats.h.
 */
#include <config.h>

#include "stats.h"

#include "env.h"
#include "fault.h"

static uint64_t
get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* add_log -- the log's share of xStats(). */
static void
add_log(const struct xac_env *env, struct xac_stats *out)
{
    const struct xac_log_shared *log = &env->ctl->log;

    if (!xac_env_is_durable(env))
        return;
    out->log_tail = get(&log->tail);
    out->log_durable = get(&log->durable);
    out->log_bytes = out->log_tail - log->start_lsn;
    out->log_writes = get(&log->n_writes);
    out->log_syncs = get(&log->n_syncs);
}

/* add_oldest -- who holds versions back. */
static void
add_oldest(const struct xac_env *env, struct xac_stats *out)
{
    struct xac_oldest oldest;

    xac_collapse_oldest(env, &oldest);
    out->oldest_pid = oldest.pid;
    out->oldest_commit = oldest.parent;
    out->oldest_behind = oldest.behind;
    out->oldest_age_ns = oldest.age_ns;
    out->versions_held = oldest.n_held;
    out->versions_oldest = oldest.n_held_own;
}

/* count_queries -- of all slots. */
static uint64_t
count_queries(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t sum = 0;

    for (uint64_t slot = 0; slot < n; slot++)
        sum += get(&xac_txn_at(env, slot)->n_queries);
    return sum;
}

/* add_engine -- this process's. */
static void
add_engine(struct xac_stats *out)
{
    int why;

    out->engine = (uint64_t)xac_engine_kind(&why);
    out->engine_error = (uint64_t)why;
}

void
xac_stats_read(const struct xac_env *env, struct xac_stats *out)
{
    const struct xac_counters *n = &env->ctl->counters;

    *out = (struct xac_stats){
        .commits = get(&n->commits),
        .commits_read_only = get(&n->commits_read_only),
        .queries = count_queries(env),
        .aborts_conflict = get(&n->aborts_conflict),
        .aborts_user = get(&n->aborts_user),
        .aborts_other = get(&n->aborts_other),
        .traps_read = get(&n->traps_read),
        .traps_write = get(&n->traps_write),
        .hints = get(&n->hints),
        .pages_written = get(&n->pages_written),
        .checkpoints = get(&n->checkpoints),
        .pages_checkpointed = get(&n->pages_checkpointed),
        .dead_cleaned = get(&n->dead_cleaned),
        .versions_live = get(&env->ctl->versions.used),
        .frames = get(&env->ctl->versions.frames.count),
        .participants = xac_registry_attached(env),
        .commit_number = xac_chain_commit(env),
    };
    add_log(env, out);
    add_oldest(env, out);
    add_engine(out);
}
