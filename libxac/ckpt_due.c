/* SPDX-License-Identifier: MIT */
/*
 * ckpt_due.c -- see ckpt_due.h.
 */
#include <config.h>

#include "ckpt_due.h"

#include "env.h"

/* In an environment without a bound that is not durable a checkpoint is due when this many
   frames are in use: 64 MiB of 4 KiB pages. */
#define FRAMES_DUE 16384

/* frames_used -- of the version store, about. */
static uint64_t
frames_used(struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed);
}

bool
xac_ckpt_is_pressed(struct xac_env *env)
{
    uint64_t bound = xac_outofcore_versions(env);

    return bound != 0 && frames_used(env) >= bound - bound / 4;
}

bool
xac_ckpt_is_due(struct xac_env *env)
{
    uint64_t limit =
        atomic_load_explicit(&env->ctl->checkpoint_bytes, memory_order_relaxed);
    uint64_t tail, begin_lsn, data, data_begin, used;

    if (limit == 0)
        return false;
    if (!xac_env_is_durable(env) || xac_outofcore_is_on(env)) {
        used = frames_used(env);
        if (used >= atomic_load_explicit(&env->frames_due, memory_order_relaxed))
            return true;
    }
    if (!xac_env_is_durable(env))
        return false;
    tail = atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed);
    begin_lsn = atomic_load_explicit(&env->ctl->chain.begin_lsn, memory_order_relaxed);
    data = atomic_load_explicit(&env->ctl->data_bytes, memory_order_relaxed);
    data_begin = atomic_load_explicit(&env->ctl->data_bytes_begin, memory_order_relaxed);
    /* Read one after the other while they grow: a difference below zero is none. */
    used = data > data_begin ? data - data_begin : 0;
    return used + (tail > begin_lsn ? tail - begin_lsn : 0) >= limit;
}

/* frames_due -- those in use at which the next one is due that the log does not ask for, after
   one that has left so many. */
static uint64_t
frames_due(const struct xac_env *env, uint64_t used)
{
    uint64_t bound = xac_outofcore_versions(env);

    if (bound == 0)
        return FRAMES_DUE + 2 * used;
    return used < bound / 4 ? bound / 2 : used + bound / 4;
}

void
xac_ckpt_put_off(struct xac_env *env)
{
    atomic_store_explicit(&env->frames_due, frames_due(env, frames_used(env)),
                          memory_order_relaxed);
}

void
xac_ckpt_first_due(struct xac_env *env)
{
    atomic_store_explicit(&env->frames_due, frames_due(env, 0), memory_order_relaxed);
}

bool
xac_ckpt_is_others(struct xac_env *env)
{
    if (env->ctl->ckpt_query == 0)
        return false;
    return !xac_env_is_durable(env)
           || (xac_outofcore_is_on(env) && !xac_ckpt_is_pressed(env));
}
