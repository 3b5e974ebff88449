/* SPDX-License-Identifier: MIT */
/*
 * hold.c -- see hold.h.
 */
#include <config.h>

#include "checkpoint/hold.h"

#include <errno.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "log/master.h"
#include "log/slots.h"
#include "shared/env_state.h"

/* Of the file system of the log, unless XAC_OPT_LOG_KEEP_BYTES says otherwise. */
#define PART_OF_DISK 8

/* lock -- a dead holder leaves nothing to repair: the slots are as the region has them. */
static void
lock(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&env->ctl->checkpoint));
    if (xac_lock_acquire(&env->ctl->checkpoint) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->checkpoint);
}

/* check_durable -- only a log can be held back. */
static int
check_durable(const struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    if (xac_env_is_durable(env))
        return 0;
    return xac_err(ENOTSUP, "%s is not durable: it has no log to follow", env->dir);
}

/* make -- lock held. */
static int
make(struct xac_env *env, const char *name, uint64_t *lsnp)
{
    struct xac_log_followers *f = &env->ctl->log.followers;
    struct xac_master_slot master;
    int rc = xac_master_read(env->dirfd, &master);

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    if (rc == 0)
        rc = xac_slots_add(f, name, master.redo_lsn); /* (2) */
    if (rc != 0)
        return rc;
    rc = xac_slots_write(env->dirfd, f); /* (1) */
    if (rc == 0)
        *lsnp = master.redo_lsn;
    else
        (void)xac_slots_remove(f, name);
    return rc;
}

int
xac_hold_make(struct xac_env *env, const char *name, uint64_t *lsnp)
{
    sigset_t signals;
    int rc = check_durable(env);

    xac_assert(lsnp != NULL);
    if (rc == 0 && !xac_slot_name_ok(name))
        rc = xac_err(EINVAL, "slot \"%s\": a name has 1 to %d letters, digits, and . _ -",
                     name, XAC_SLOT_NAME_BYTES - 1);
    if (rc != 0)
        return rc;
    xac_signals_block(&signals);
    lock(env);
    rc = make(env, name, lsnp);
    xac_lock_release(&env->ctl->checkpoint);
    xac_signals_restore(&signals);
    return rc;
}

int
xac_hold_drop(struct xac_env *env, const char *name)
{
    struct xac_log_followers *f = &env->ctl->log.followers;
    sigset_t signals;
    int rc = check_durable(env);

    if (rc == 0 && !xac_slot_name_ok(name))
        rc = xac_err(ENOENT, "slot \"%s\"", name);
    if (rc != 0)
        return rc;
    xac_signals_block(&signals);
    lock(env);
    rc = xac_slots_remove(f, name);
    if (rc == 0)
        rc = xac_slots_write(env->dirfd, f);
    xac_lock_release(&env->ctl->checkpoint);
    xac_signals_restore(&signals);
    xac_assert(!xac_lock_is_mine(&env->ctl->checkpoint));
    return rc;
}

uint64_t
xac_hold_most(const struct xac_env *env)
{
    uint64_t most = atomic_load_explicit(&env->ctl->log_keep_bytes, memory_order_relaxed);
    struct statfs fs;

    xac_assert(env->logfd >= 0);
    if (most != 0)
        return most;
    if (xac_sys.fstatfs(env->logfd, &fs) != 0)
        return UINT64_MAX;
    return (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize / PART_OF_DISK;
}

void
xac_hold_checkpoint(struct xac_env *env)
{
    struct xac_log_followers *f = &env->ctl->log.followers;
    uint64_t durable, most;

    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    if (!xac_slots_has_any(f))
        return;
    /* relaxed: an older one loses fewer. */
    durable = atomic_load_explicit(&env->log.sh->durable, memory_order_relaxed);
    most = xac_hold_most(env);
    if (durable > most && xac_slots_lose(f, durable - most) > 0)
        xac_log_wake_followers(&env->ctl->log);
    /* Pairs with the exchange in xac_slot_move: a follower that comes later finds it lost (3). */
    atomic_thread_fence(memory_order_seq_cst);
    if (xac_slots_write(env->dirfd, f) != 0)
        xac_err_clear(); /* tried again by the next one */
}
