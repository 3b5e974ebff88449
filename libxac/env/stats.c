/* SPDX-License-Identifier: MIT */
/*
 * stats.c -- see stats.h.
 */
#include <config.h>

#include "env/stats.h"

#include "fault/fault_engine.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/frozen.h"
#include "store/outofcore.h"
#include "txn/ctree.h"

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

    if (env->frozen != NULL)
        out->log_tail = out->log_durable = env->frozen->end_lsn;
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

    xac_gc_oldest(env, &oldest);
    out->oldest_pid = oldest.pid;
    out->oldest_commit = oldest.parent;
    out->oldest_behind = oldest.behind;
    out->oldest_age_ns = oldest.age_ns;
    out->versions_held = oldest.n_held;
    out->versions_oldest = oldest.n_held_own;
}

/* add_counters -- of all slots. */
static void
add_counters(const struct xac_env *env, struct xac_stats *out)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_counters *c = &xac_txn_at(env, slot)->counters;

        out->commits += get(&c->commits);
        out->commits_read_only += get(&c->commits_read_only);
        out->queries += get(&c->queries);
        out->aborts_conflict += get(&c->aborts_conflict);
        out->aborts_user += get(&c->aborts_user);
        out->aborts_other += get(&c->aborts_other);
        out->traps_read += get(&c->traps_read);
        out->traps_write += get(&c->traps_write);
        out->hints += get(&c->hints);
        out->pages_written += get(&c->pages_written);
    }
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
    const struct xac_rare_counters *n = &env->ctl->counters;

    *out = (struct xac_stats){
        .checkpoints = get(&n->checkpoints),
        .pages_checkpointed = get(&n->pages_checkpointed),
        .dead_cleaned = get(&n->dead_cleaned),
        .queries_cut = get(&n->queries_cut),
        .checkpoint_failures = get(&n->ckpt_failures),
        .checkpoint_error = atomic_load_explicit(&n->ckpt_error, memory_order_relaxed),
        .checkpoint_error_ns = get(&n->ckpt_error_ns),
        .files = get(&env->ctl->files_known),
        .files_forgotten = get(&env->ctl->files_forgotten),
        .versions_live = get(&env->ctl->versions.used),
        .frames = get(&env->ctl->versions.slots.count),
        .participants = xac_registry_attached(env),
        .commit_number = xac_chain_commit(env),
        .reader = (uint64_t)env->reader,
    };
    add_counters(env, out);
    add_log(env, out);
    add_oldest(env, out);
    add_engine(out);
    xac_outofcore_stats(env, out);
}
