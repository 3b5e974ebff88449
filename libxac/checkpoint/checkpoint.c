/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.c -- see checkpoint.h.  A caller of xCheckpoint() does all steps at once; a checkpoint
 * that is due does one at each commit.
 */
#include <config.h>

#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "checkpoint/ckpt_failure.h"
#include "checkpoint/ckpt_steps.h"
#include "shared/registry.h"
#include "txn/ctx.h"
#include "txn/drop.h"
#include "txn/in_place.h"
#include "txn/in_place_settle.h"
#include "txn/reap.h"
#include "txn/slot.h"

/* One step of a checkpoint that is due: pages copied, and version slots looked at. */
#define STEP_SETTLED 64 /* pages of in_place.h, at first                            */
#define STEP_PAGES   16
#define STEP_VSLOTS  2048

/* forget -- the checkpoint that this process had under way. */
static void
forget(struct xac_env *env)
{
    if (env->ckpt != NULL)
        xac_ckpt_free(env->ckpt);
    free(env->ckpt);
    env->ckpt = NULL;
    atomic_store_explicit(&env->has_ckpt, false, memory_order_relaxed);
}

/*
 * abandon -- end the running checkpoint of any process; the lock is held.  The query of a dead
 * process is left to the survivor that reaps it.
 */
static void
abandon(struct xac_env *env)
{
    struct xac_control *ctl = env->ctl;
    uint64_t slot = ctl->ckpt_query - 1;

    xac_assert(xac_lock_is_mine(&ctl->checkpoint));
    if (ctl->ckpt_query != 0) {
        uint64_t word =
            atomic_load_explicit(&xac_txn_at(env, slot)->word, memory_order_relaxed);

        ctl->ckpt_query = 0;
        if (xac_txn_serial(word) == ctl->ckpt_serial
            && xac_txn_state(word) == XAC_TXN_QUERY
            && xac_registry_alive(env, xac_txn_participant(word)))
            xac_txn_drop(env, slot, slot, XAC_TXN_FREE);
    }
    ctl->ckpt_epoch++;
    forget(env);
    xac_assert(ctl->ckpt_query == 0);
    xac_assert(env->ckpt == NULL);
}

/* ckpt_lock -- a dead holder leaves nothing to repair: what it copied was right. */
static void
ckpt_lock(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->checkpoint));
    if (xac_lock_acquire(&env->ctl->checkpoint) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->checkpoint);
}

/* try_lock -- the same, unless somebody else has it. */
static bool
try_lock(struct xac_env *env)
{
    enum xac_lock_result got = xac_lock_try(&env->ctl->checkpoint);

    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->checkpoint);
    xac_assert(got == XAC_LOCK_BUSY || xac_lock_is_mine(&env->ctl->checkpoint));
    return got != XAC_LOCK_BUSY;
}

/* run_held -- all steps; the lock is held, and released. */
static int
run_held(struct xac_env *env, bool is_final, struct xac_ckpt_shipped *shipped)
{
    struct xac_ckpt r = {.env = env,
                         .is_final = is_final,
                         .shipped = shipped,
                         .query = UINT64_MAX};
    int rc;

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    abandon(env);
    rc = xac_in_place_settle(env, xac_ctx_mine(env)->slot, UINT64_MAX);
    if (rc == 0)
        rc = xac_ckpt_begin(&r);
    while (rc == 0 && r.phase != XAC_CKPT_DONE)
        rc = xac_ckpt_step(&r, UINT64_MAX, UINT64_MAX);
    xac_assert(rc != 0 || r.phase == XAC_CKPT_DONE);
    if (rc == 0)
        rc = r.files.error;
    xac_ckpt_note_failure(env, rc);
    xac_ckpt_unpin(&r);
    xac_ckpt_free(&r);
    xac_lock_release(&env->ctl->checkpoint);
    return rc;
}

/* run -- wait for the lock, then all steps. */
static int
run(struct xac_env *env, bool is_final, struct xac_ckpt_shipped *shipped)
{
    sigset_t signals;
    int rc;

    xac_signals_block(&signals);
    xac_reap_dead(env);
    ckpt_lock(env);
    rc = run_held(env, is_final, shipped);
    xac_signals_restore(&signals);
    return rc;
}

int
xac_checkpoint_run(struct xac_env *env, bool is_final)
{
    xac_assert(!xac_env_is_standby(env));
    return run(env, is_final, NULL);
}

int
xac_checkpoint_redone(struct xac_env *env, struct xac_ckpt_shipped *shipped)
{
    xac_assert(xac_env_is_standby(env));
    xac_assert(shipped->redo_lsn <= shipped->begin_lsn);
    return run(env, false, shipped);
}

int
xac_checkpoint_try(struct xac_env *env)
{
    sigset_t signals;
    int rc = EBUSY;

    xac_signals_block(&signals);
    xac_reap_dead(env);
    if (try_lock(env))
        rc = run_held(env, false, NULL);
    xac_signals_restore(&signals);
    return rc;
}

/* is_late -- is too much logged while this one goes by steps?  At its END log is released; from then on
   the next one may wait for it. */
static bool
is_late(const struct xac_ckpt *r)
{
    return r->phase < XAC_CKPT_UNLINK
               ? xac_ckpt_is_late(r->env, r->begin_lsn, r->next_vslot, r->n_vslots + 1)
               : xac_ckpt_is_due(r->env);
}

/* settle_some -- pages of in_place.h, more each time: each commit may put as many back.  ret true: there
   are none. */
static bool
settle_some(struct xac_env *env)
{
    int rc = 0;

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    if (xac_in_place_has_pages(env)) {
        env->ckpt_settled = env->ckpt_settled == 0 ? STEP_SETTLED : 2 * env->ckpt_settled;
        rc = xac_in_place_settle(env, xac_ctx_mine(env)->slot, env->ckpt_settled);
    }
    if (rc != 0)
        xac_ckpt_put_off(env);
    if (rc == 0 && xac_in_place_has_pages(env))
        return false;
    env->ckpt_settled = 0;
    return rc == 0;
}

/* step_held -- a step of our checkpoint, or the first of a new one; a failure ends it. */
static void
step_held(struct xac_env *env)
{
    struct xac_ckpt *r = env->ckpt;
    int rc;

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(r == NULL || r->env == env);
    if (r != NULL && r->epoch != env->ctl->ckpt_epoch) {
        forget(env); /* another one has begun since */
        return;
    }
    if (r == NULL && !settle_some(env))
        return;
    if (r != NULL) {
        rc = xac_ckpt_step(r, STEP_PAGES, STEP_VSLOTS);
    } else if (xac_ckpt_leave_to_other(env)) {
        xac_ckpt_put_off(env);
        return;
    } else {
        abandon(env);
        r = (struct xac_ckpt *)malloc(sizeof *r);
        if (r == NULL)
            return;
        *r = (struct xac_ckpt){.env = env, .query = UINT64_MAX};
        env->ckpt = r;
        atomic_store_explicit(&env->has_ckpt, true, memory_order_relaxed);
        rc = xac_ckpt_begin(r);
        xac_ckpt_put_off(env);
    }
    /* At once, for others that are short of room would begin anew, and the log grows. */
    while (rc == 0 && r->phase != XAC_CKPT_DONE
           && (xac_ckpt_is_pressed(env) || is_late(r)))
        rc = xac_ckpt_step(r, STEP_PAGES, STEP_VSLOTS);
    xac_assert(env->ckpt == r);
    if (rc != 0 || r->phase == XAC_CKPT_DONE) {
        rc = rc != 0 ? rc : r->files.error;
        xac_ckpt_note_failure(env, rc);
        xac_ckpt_complain(env, rc);
        xac_ckpt_unpin(r);
        forget(env);
        xac_ckpt_put_off(env);
    }
}

void
xac_checkpoint_step(struct xac_env *env)
{
    sigset_t signals;

    xac_signals_block(&signals);
    if (try_lock(env)) {
        step_held(env);
        xac_lock_release(&env->ctl->checkpoint);
    }
    xac_signals_restore(&signals);
}

void
xac_checkpoint_leave(struct xac_env *env)
{
    if (!atomic_load_explicit(&env->has_ckpt, memory_order_relaxed))
        return;
    ckpt_lock(env);
    if (env->ckpt != NULL && env->ckpt->epoch == env->ctl->ckpt_epoch)
        abandon(env);
    forget(env);
    xac_assert(env->ckpt == NULL);
    xac_lock_release(&env->ctl->checkpoint);
}

void
xac_checkpoint_forked(struct xac_env *env)
{
    forget(env);
}
