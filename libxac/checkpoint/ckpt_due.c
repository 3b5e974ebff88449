/* SPDX-License-Identifier: MIT */
/*
 * ckpt_due.c -- see ckpt_due.h.
 */
#include <config.h>

#include "checkpoint/ckpt_due.h"

#include "shared/env_state.h"
#include "store/outofcore.h"

/* In an environment without a bound on memory a checkpoint is due when its versions are as many
   bytes as XAC_OPT_CHECKPOINT_BYTES says, but at least so many: soon enough for memory and for the time
   of recovery, and no sooner, for each page that is changed again after a checkpoint is written again,
   and in a durable environment logged in full.  Where there is no log, only memory asks for one: they
   may be so many times as many, up to this share of the memory that there is. */
#define BYTES_LEAST  (UINT64_C(64) << 20)
#define LOGLESS      4
#define MEMORY_SHARE 16

/* frames_used -- of the version store, and of pages that will need one, about. */
static uint64_t
frames_used(struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->versions.used, memory_order_relaxed)
           + atomic_load_explicit(&env->ctl->in_place_count, memory_order_relaxed);
}

/* With XAC_OPT_READER_LIMIT a checkpoint is due when versions take a quarter of it, because a query that
   holds back half of it is cut off (reader_limit.h): less must be normal.  It is due again when they
   take this part more; and from a half on each is made at once, however much each commit writes. */
#define LIMIT_FIRST   4
#define LIMIT_AGAIN   8
#define LIMIT_PRESSED 2

/* limit_frames -- XAC_OPT_READER_LIMIT in frames; 0: none. */
static uint64_t
limit_frames(const struct xac_env *env)
{
    xac_assert(env->page_shift != 0);
    return atomic_load_explicit(&env->ctl->reader_limit, memory_order_relaxed)
           >> env->page_shift;
}

bool
xac_ckpt_is_pressed(struct xac_env *env)
{
    uint64_t bound = xac_outofcore_versions(env), limit = limit_frames(env);

    return (bound != 0 && frames_used(env) >= bound - bound / 4)
           || (limit != 0 && frames_used(env) >= limit / LIMIT_PRESSED);
}

/* limit_of -- bytes of log after which a checkpoint is due; 0: none ever is. */
static uint64_t
limit_of(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->checkpoint_bytes, memory_order_relaxed);
}

/*
 * log_due -- bytes of log after which a checkpoint is due: less than the limit, so that the log on
 * disk is shorter than the limit and a segment when it ends.
 *
 * Beside what has been logged since the last one began there are a part of the segment in which it
 * began, what is logged until this one ends (xac_ckpt_is_late), and up to one and a half segments
 * that are made ahead.  With fewer than eight segments to the limit it may be a little more.
 */
static uint64_t
log_due(struct xac_env *env)
{
    uint64_t limit = limit_of(env), early = 2 * env->log.sh->segment_bytes;

    xac_assert(early > 0);
    return limit - (early < limit / 4 ? early : limit / 4);
}

/* logged_since -- bytes of log from an LSN on, and of data files since the last one began. */
static uint64_t
logged_since(struct xac_env *env, uint64_t lsn)
{
    uint64_t tail, data, data_begin;

    xac_assert(xac_env_is_durable(env));
    tail = atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed);
    data = atomic_load_explicit(&env->ctl->data_bytes, memory_order_relaxed);
    data_begin = atomic_load_explicit(&env->ctl->data_bytes_begin, memory_order_relaxed);
    /* Read one after the other while they grow: a difference below zero is none. */
    return (tail > lsn ? tail - lsn : 0) + (data > data_begin ? data - data_begin : 0);
}

/* is_log_due -- has enough been logged since the last one began? */
static bool
is_log_due(struct xac_env *env)
{
    return xac_env_is_durable(env)
           && logged_since(env, atomic_load_explicit(&env->ctl->chain.begin_lsn,
                                                     memory_order_relaxed))
                  >= log_due(env);
}

bool
xac_ckpt_is_due(struct xac_env *env)
{
    if (limit_of(env) == 0)
        return false;
    return frames_used(env)
               >= atomic_load_explicit(&env->frames_due, memory_order_relaxed)
           || is_log_due(env);
}

bool
xac_ckpt_is_late(struct xac_env *env, uint64_t begin_lsn, uint64_t done, uint64_t all)
{
    uint64_t allowed;

    if (!xac_env_is_durable(env))
        return false;
    allowed = env->log.sh->segment_bytes / 4;
    return (double)logged_since(env, begin_lsn) * (double)all
           > (double)allowed * (double)done;
}

/* bytes_due -- of versions. */
static uint64_t
bytes_due(const struct xac_env *env)
{
    uint64_t memory = env->memory_bytes / MEMORY_SHARE;
    uint64_t bytes = limit_of(env);

    if (!xac_env_is_durable(env))
        bytes = bytes < memory / LOGLESS ? LOGLESS * bytes : memory;
    return bytes > BYTES_LEAST ? bytes : BYTES_LEAST;
}

/* frames_due -- those in use at which the next one is due that the log does not ask for, after
   one that has left so many. */
static uint64_t
frames_due(struct xac_env *env, uint64_t used)
{
    uint64_t bound = xac_outofcore_versions(env), limit = limit_frames(env);
    uint64_t due = bytes_due(env) / env->page_size + 2 * used, with_limit;

    xac_assert(env->page_size != 0);
    if (bound != 0)
        due = used < bound / 4 ? bound / 2 : used + bound / 4;
    with_limit =
        used < limit / LIMIT_AGAIN ? limit / LIMIT_FIRST : used + limit / LIMIT_AGAIN;
    return limit != 0 && with_limit < due ? with_limit : due;
}

void
xac_ckpt_put_off(struct xac_env *env)
{
    atomic_store_explicit(&env->frames_due, frames_due(env, frames_used(env)),
                          memory_order_relaxed);
    xac_assert(atomic_load_explicit(&env->frames_due, memory_order_relaxed) > 0);
}

void
xac_ckpt_first_due(struct xac_env *env)
{
    atomic_store_explicit(&env->frames_due, frames_due(env, 0), memory_order_relaxed);
    xac_assert(atomic_load_explicit(&env->frames_due, memory_order_relaxed) > 0);
}

bool
xac_ckpt_leave_to_other(struct xac_env *env)
{
    uint64_t epoch = env->ctl->ckpt_epoch;

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    if (env->ctl->ckpt_query == 0 || is_log_due(env) || xac_ckpt_is_pressed(env)
        || env->ckpt_left == epoch)
        return false;
    env->ckpt_left = epoch;
    xac_assert(env->ckpt_left == epoch);
    return true;
}
