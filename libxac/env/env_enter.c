/* SPDX-License-Identifier: MIT */
/*
 * env_enter.c -- making and joining a control region: see env_enter.h.
 *
 * Attaching, detaching and recovery hold the gate.  If another participant's byte is held,
 * the control region named in the lock file is joined; if none is, whatever region is
 * left over is deleted, the log is recovered, and a new region is made, complete before
 * its name is written.
 */
#include <config.h>

#include "env/env_enter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/filesystem.h"
#include "base/lockfile.h"
#include "base/newfile.h"
#include "base/populate.h"
#include "base/sys.h"
#include "checkpoint/ckpt_due.h"
#include "checkpoint/file_fds.h"
#include "env/control.h"
#include "env/env_logdir.h"
#include "env/reader.h"
#include "env/region_clear.h"
#include "env/thread.h"
#include "fault/fault_engine.h"
#include "log/group_note.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "recovery/recover.h"
#include "recovery/standby.h"
#include "shared/control_check.h"
#include "shared/group.h"
#include "shared/region.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/alone.h"
#include "txn/in_place_settle.h"
#include "txn/ctx.h"
#include "txn/policy.h"
#include "txn/reap.h"

int
xac_env_poisoned(struct xac_env *env)
{
    /* Acquire: pairs with the release of the poisoning. */
    int error = atomic_load_explicit(&env->ctl->log.poisoned, memory_order_acquire);

    if (error == 0)
        return 0;
    return xac_err(XAC_EPOISONED, "%s (first failure: %s)", env->dir, strerror(error));
}

/* Of a new region, beyond what it holds: for a transaction of 2,000 pages, should memory fill up. */
#define ROOM_BYTES ((size_t)1 << 20)

/* ---- Making a region ------------------------------------------------------------------ */

/* log_announce -- from now on a missing log is damage, not a fresh start. */
static int
log_announce(struct xac_env *env, const struct xac_master_slot *master)
{
    struct xac_master_slot m = *master;
    bool is_lost; /* nobody has attached yet whom it would concern */

    if ((m.flags & XAC_MASTER_LOGGED) != 0)
        return 0;
    m.flags |= XAC_MASTER_LOGGED;
    return xac_master_write(env->dirfd, &m, &is_lost);
}

/* region_keep -- the region has been mapped. */
static void
region_keep(struct xac_env *env)
{
    env->shm.path = env->region;
    env->shm.dirfd = env->dirfd;
    env->ctl = (struct xac_control *)(void *)env->shm.base;
}

/* region_unmap -- let go of the region and of what lies in it and beside it. */
static void
region_unmap(struct xac_env *env)
{
    if (env->log.sh != NULL)
        xac_log_detach(&env->log);
    memset(&env->log, 0, sizeof env->log);
    if (env->ctl != NULL)
        xac_outofcore_detach(env);
    xac_buffers_detach(env);
    xac_file_fds_close(env);
    xac_shm_detach(&env->shm);
    env->ctl = NULL;
    free(env->region);
    env->region = NULL;
}

/* region_file -- a new file for the region, env->region, mapped. */
static int
region_file(struct xac_env *env)
{
    struct xac_owner owner;
    int fd = -1;
    int rc = xac_owner_get_shared(env->dirfd, &owner);

    if (rc == 0)
        rc = xac_newfile_make(env->dirfd, env->region, &owner, &fd);
    if (rc == 0 && (fd = xac_handle_keep(fd, &env->shm.handle)) < 0)
        rc = errno;
    if (rc == 0)
        rc = xac_gate_enter(fd); /* for those who look for what is left behind */
    if (rc == 0)
        rc = xac_shm_create(&env->shm, fd, sizeof(struct xac_control),
                            XAC_SHM_RESERVE_MAX);
    if (rc == 0) {
        region_keep(env);
        return 0;
    }
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return xac_err(rc, "%s: control region %s%s", env->dir, env->region,
                   rc == ENOMEM ? ": " XAC_SHM_ADDRESSES : "");
}

/*
 * region_make -- a new region, whole but without a name in the lock file.
 *
 * in   shm_dir  where; NULL: in the environment's directory, and `why` not elsewhere
 * ret  0 or an error, and nothing is left.
 */
static int
region_make(struct xac_env *env, const struct xac_master_slot *master,
            const char *shm_dir, int why)
{
    int rc;

    env->region = xac_region_path_new(shm_dir);
    if (env->region == NULL)
        return xac_err(errno, "naming the control region");
    rc = region_file(env);
    if (rc == 0)
        rc = xac_control_init(env, master);
    if (rc == 0) {
        env->ctl->shm_error = why;
        rc = xac_buffers_create(env, env->region);
    }
    if (rc == 0)
        rc = xac_outofcore_create(env, env->region);
    if (rc != 0) {
        xac_region_remove(env->dirfd, env->region);
        region_unmap(env);
    }
    return rc;
}

/*
 * region_create -- a new region; gate held, nobody attached.
 *
 * In memory; for whatever reason it cannot be made there, in the environment's directory.
 */
static int
region_create(struct xac_env *env, const struct xac_master_slot *master)
{
    const char *shm_dir = xac_region_shm_dir();
    int why = xac_region_room(shm_dir, env->dirfd);
    int rc;

    if (why == 0)
        why = region_make(env, master, shm_dir, 0);
    rc = why != 0 ? region_make(env, master, NULL, why) : 0;
    if (rc != 0)
        return rc;
    xac_err_clear(); /* what failed has another way */
    if (xac_env_is_durable(env))
        rc = xac_control_init_log(env, master);
    if (rc == 0 && xac_env_is_durable(env) && !xac_env_is_standby(env))
        rc = log_announce(env, master);
    if (rc == 0) {
        xac_shm_keep_room(&env->shm, ROOM_BYTES);
        rc = xac_region_path_write(env->lockfd, env->region);
    }
    if (rc != 0)
        xac_region_remove(env->dirfd, env->region);
    return rc;
}

/* ---- Joining a region ------------------------------------------------------------------ */

int
xac_env_check_build(const struct xac_env *env)
{
    const struct xac_control *ctl = env->ctl;

    if (ctl->magic == XAC_CONTROL_MAGIC && ctl->version == XAC_CONTROL_VERSION
        && ctl->bytes == sizeof *ctl)
        return 0;
    return xac_err(XAC_EVERSION, "control region %s", env->region);
}

int
xac_env_check_region(const struct xac_env *env)
{
    struct stat st;
    int rc = XAC_EDAMAGED;

    for (int i = 0; i < XAC_CONTROL_TRIES && rc == XAC_EDAMAGED; i++) {
        if (xac_sys.fstat(env->shm.fd, &st) != 0)
            return xac_err(errno, "control region %s", env->region);
        rc = xac_control_validate(env->shm.base, (uint64_t)st.st_size, env->region);
    }
    if (rc == 0)
        xac_err_clear();
    return rc;
}

/* standby_check -- a standby is received into by one process, and everybody else only reads. */
static int
standby_check(struct xac_env *env)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    if (env->options.standbyp == NULL && env->options.leads == NULL) {
        if (xac_env_is_standby(env))
            env->reader = XAC_READER_LIVE;
        return 0;
    }
    if (!xac_env_is_standby(env) || env->options.leads != NULL)
        return xac_err(XAC_ELIVE, "%s: processes use it", env->dir);
    env->self = XAC_NOBODY; /* not one of them yet, who would count as alive */
    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        if (atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED
            && p->is_reader == 0 && xac_registry_alive(env, i))
            return xac_err(XAC_ELIVE, "%s: another process receives into it, %lu",
                           env->dir, (unsigned long)p->pid);
    }
    return 0;
}

/* control_check -- is the region of our build, and of this environment? */
static int
control_check(struct xac_env *env, const struct xac_master_slot *master)
{
    const struct xac_control *ctl = env->ctl;
    struct xac_identity home;
    int rc = xac_env_check_build(env);

    if (rc != 0)
        return rc;
    rc = xac_env_check_region(env);
    if (rc == 0)
        rc = standby_check(env);
    if (rc == 0)
        rc = xac_identity_of(env->dirfd, &home);
    if (rc != 0)
        return rc;
    if (memcmp(ctl->identity, master->identity, sizeof ctl->identity) != 0
        || !xac_identity_is_same(&ctl->home, &home))
        return xac_err(XAC_EFOREIGN, "control region %s", env->region);
    if (ctl->page_size != env->page_size)
        return xac_err(XAC_EPAGESIZE, "control region %s", env->region);
    if (ctl->flags != (uint32_t)env->flags && env->reader == XAC_READER_NONE)
        return xac_err(XAC_EMODE, "%s", env->dir);
    rc = xac_registry_check(env);
    if (rc == 0 && !env->options.is_daemon)
        rc = xac_group_check(env, "xInit");
    if (rc != 0)
        return rc;
    return xac_env_poisoned(env);
}

/* region_attach -- map the region that the live participants use; gate held. */
static int
region_attach(struct xac_env *env, const struct xac_master_slot *master)
{
    struct stat st;
    int rc, fd;

    env->region = xac_region_path(env->lockfd);
    if (env->region == NULL && errno != ENOENT)
        return xac_err(errno, "%s/%s", env->dir, XAC_LOCK_NAME);
    if (env->region == NULL || !xac_region_is_path(env->region))
        return xac_err(XAC_ENOTSHARED, "%s", env->dir);
    rc = xac_region_open(env->dirfd, env->region, &fd);
    if (rc == 0 && (fd = xac_handle_keep(fd, &env->shm.handle)) < 0)
        rc = errno;
    if (rc != 0)
        return rc == ENOENT ? xac_err(XAC_ENOTSHARED, "%s" XAC_REGION_GONE, env->region)
                            : xac_err(rc, "control region %s", env->region);
    if (xac_sys.fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof(struct xac_control)) {
        (void)xac_sys.close(fd);
        return xac_err(XAC_EVERSION, "control region %s", env->region);
    }
    rc = xac_shm_attach(&env->shm, fd, XAC_SHM_RESERVE_MAX);
    if (rc != 0) {
        (void)xac_sys.close(fd);
        return xac_err(rc, "control region %s%s", env->region,
                       rc == ENOMEM ? ": " XAC_SHM_ADDRESSES : "");
    }
    region_keep(env);
    rc = control_check(env, master);
    if (rc == 0)
        env->flags = (int)env->ctl->flags; /* a reader's are what it finds */
    if (rc == 0 && xac_shm_fit(&env->shm) != 0)
        rc = xac_err(ENOMEM, "control region %s has %llu bytes: " XAC_SHM_ADDRESSES,
                     env->region, (unsigned long long)xac_shm_size(&env->shm));
    if (rc == 0)
        rc = xac_buffers_attach(env, env->region);
    if (rc == 0)
        rc = xac_outofcore_attach(env, env->region);
    if (rc == 0 && xac_env_is_durable(env))
        rc = xac_log_attach(&env->log, &env->ctl->log,
                            (uint8_t *)xac_shm_at(&env->shm, env->ctl->log_ring),
                            env->logfd);
    return rc;
}

/* ---- In and out ------------------------------------------------------------------------ */

/*
 * sync_parent -- make the directory's own name durable.
 *
 * Whether we have made the directory or somebody who died right after.  A parent that we
 * may not read was not made to hold a directory of ours, so that one has been there before.
 */
static int
sync_parent(const struct xac_env *env)
{
    int rc = xac_sync_parent(AT_FDCWD, env->dir);

    if (rc == EACCES)
        return 0;
    return rc == 0 ? 0 : xac_err(rc, "syncing the directory of %s", env->dir);
}

/* master_get -- the environment's master record, made if there is none. */
static int
master_get(struct xac_env *env, struct xac_master_slot *master)
{
    int rc = xac_master_read(env->dirfd, master);

    if (rc != ENOENT)
        return rc;
    rc = xac_master_missing(env->dirfd, true);
    if (rc != 0)
        return rc;
    xac_err_clear();       /* no failure: the environment is new */
    rc = sync_parent(env); /* later users may want their commits durable */
    return rc != 0 ? rc
                   : xac_master_create(env->dirfd, (uint32_t)env->page_size,
                                       env->options.segment_bytes, master);
}

/* mode_wish -- XAC_OPT_MODE, for what is made in a directory of the environment. */
static int
mode_wish(const struct xac_env *env, int dirfd)
{
    int rc = 0;

    if (env->options.mode != 0)
        rc = xac_owner_set_mode(dirfd, env->options.mode);
    return rc == 0 ? 0 : xac_err(rc, "%s: XAC_OPT_MODE %#o", env->dir, env->options.mode);
}

/* keep_wish -- XAC_OPT_LOG_RECYCLE, if somebody has set it; the log directory is open. */
static int
keep_wish(const struct xac_env *env)
{
    if (env->options.log_recycle == XAC_RECYCLE_UNSAID || env->reader != XAC_READER_NONE)
        return 0;
    return xac_log_keep(env->logfd, env->options.log_recycle == 0, NULL);
}

/* recover -- the log is redone; a standby's goes on where it is. */
static int
recover(struct xac_env *env, const struct xac_recover_options *options,
        struct xac_master_slot *master)
{
    struct xac_standby_place at;
    int rc;

    if (env->options.standbyp == NULL)
        return xac_recover_dir(env->dirfd, options, NULL, master);
    rc = xac_standby_start(env->dirfd, env->dir, env->options.standbyp);
    if (rc != 0)
        return rc;
    rc = xac_master_read(env->dirfd, master);
    xac_standby_where(*env->options.standbyp, &at);
    xac_assert(rc != 0 || at.durable >= master->redo_lsn);
    return rc;
}

/* group_check -- of a member's directory only its daemon makes an environment: the leader's, or a standby's. */
static int
group_check(const struct xac_env *env)
{
    if (env->options.standbyp != NULL || env->options.leads != NULL)
        return 0;
    return xac_group_note_refuse(env->dirfd);
}

/* make -- nobody is attached: clear away, recover, make a region. */
static int
make(struct xac_env *env, const struct xac_master_slot *found)
{
    const struct xac_lineage_line *leads = env->options.leads;
    struct xac_recover_options options = {.new_segment_bytes =
                                              leads == NULL ? env->options.segment_bytes
                                                            : 0,
                                          .promotes = leads != NULL,
                                          .begins = leads,
                                          .log_dir = env->options.log_dir,
                                          .progress = env->options.progress,
                                          .progress_arg = env->options.progress_arg};
    struct xac_master_slot master;
    int rc;

    xac_region_clear(env->dirfd, env->lockfd);
    rc = group_check(env);
    if (rc == 0)
        rc = mode_wish(env, env->dirfd);
    if (rc == 0)
        rc = xac_env_logdir_settle(env, found);
    if (rc == 0)
        rc = recover(env, &options, &master);
    if (rc == 0)
        rc = xac_env_logdir_open(env, &master);
    if (rc == 0)
        rc = mode_wish(env, env->logfd);
    if (rc == 0)
        rc = keep_wish(env);
    return rc == 0 ? region_create(env, &master) : rc;
}

void
xac_env_set_limits(struct xac_env *env)
{
    uint64_t frames;
    int rc = 0;

    if (xac_registry_limits(env, &frames))
        rc = xac_version_limit(env, frames);
    xac_require(rc == 0);
}

int
xac_env_become(struct xac_env *env)
{
    sigset_t signals;
    int rc = xac_registry_join(env, xac_buffers_reach(env)), why;

    if (rc != 0)
        return xac_err(rc, "joining %s", env->dir);
    /* After a fork; if this is the first environment, the engine is chosen later. */
    atomic_store_explicit(&xac_participant_at(env, env->self)->engine,
                          (uint32_t)xac_engine_kind(&why), memory_order_relaxed);
    env->policy = xac_policy_of(env->ctl->policy); /* what we clean up follows it */
    rc = xac_outofcore_join(env);
    if (rc == 0)
        rc = xac_ctx_open(env, &env->ctx);
    if (rc == 0)
        rc = xac_thread_rejoin(env);
    if (rc != 0) {
        xac_registry_leave(env);
        return rc;
    }
    xac_signals_block(&signals);
    /* Before the slots of the dead are cleaned: what a dead one has left is settled with them. */
    rc = xac_in_place_admit(env, env->ctx.slot, false);
    if (rc != 0) {
        xac_alone_offer(env, true);
        xac_signals_restore(&signals);
        xac_ctx_close(env, &env->ctx);
        xac_registry_leave(env);
        return rc;
    }
    xac_reap_some(env);
    xac_env_set_limits(env);
    xac_alone_revoke(env);
    xac_alone_offer(env, false);
    xac_signals_restore(&signals);
    xac_ckpt_first_due(env);
    return 0;
}

void
xac_env_unmap(struct xac_env *env)
{
    region_unmap(env);
    xac_handle_close(env->logfd, &env->log_handle);
    env->logfd = -1;
    free(env->logdir);
    env->logdir = NULL;
}

/*
 * master_open -- xac.master, for a lock that lasts as long as this participant.
 *
 * A process that may not write it does without, for it is the lock file that counts.
 */
static int
master_open(struct xac_env *env)
{
    env->masterfd = xac_handle_keep(xac_sys.openat(env->dirfd, XAC_MASTER_NAME,
                                                   O_RDWR | O_CLOEXEC, 0),
                                    &env->master_handle);
    if (env->masterfd >= 0 || errno == EACCES || errno == EPERM || errno == EROFS)
        return 0;
    return xac_err(errno, "%s/%s", env->dir, XAC_MASTER_NAME);
}

void
xac_env_leave_gate(struct xac_env *env)
{
    xac_handle_close(env->masterfd, &env->master_handle);
    env->masterfd = -1;
    xac_gate_leave(env->lockfd);
}

/* enter_gated -- join or make. */
static int
enter_gated(struct xac_env *env)
{
    struct xac_master_slot master;
    int rc = env->reader != XAC_READER_NONE ? xac_master_read(env->dirfd, &master)
                                            : master_get(env, &master);

    if (rc == 0)
        rc = master_open(env);
    if (rc == 0)
        rc = xac_region_attached(env->dirfd, env->dir, env->lockfd);
    if (rc == XAC_ELIVE) {
        rc = xac_env_logdir_join(env, &master);
        if (rc == 0)
            rc = xac_reader_check_access(env);
        if (rc == 0)
            rc = region_attach(env, &master);
        if (rc == 0)
            rc = keep_wish(env);
    } else if (rc == 0) {
        rc = env->reader != XAC_READER_NONE
                 ? xac_err(ENOENT, "nobody is attached to %s", env->dir)
                 : make(env, &master);
    }
    if (rc == 0) {
        xac_populate(env->ctl, sizeof *env->ctl); /* ctree.h, invariant 6 */
        rc = xac_env_become(env);
    }
    env->log.mend = xac_env_mend_log;
    env->log.mend_arg = env;
    return rc;
}

int
xac_env_enter(struct xac_env *env)
{
    int rc = xac_gate_open(env->dirfd, env->dir, &env->lockfd);

    if (rc == 0 && (env->lockfd = xac_handle_keep(env->lockfd, &env->lock_handle)) < 0)
        rc = xac_err(errno, "%s/%s", env->dir, XAC_LOCK_NAME);
    if (rc != 0)
        return rc;
    xac_registry_identify(env);
    rc = enter_gated(env);
    if (rc == 0) {
        xac_gate_leave(env->lockfd);
        return 0;
    }
    xac_env_unmap(env);
    xac_env_leave_gate(env);
    xac_handle_close(env->lockfd, &env->lock_handle);
    env->lockfd = -1;
    return rc;
}

int
xac_env_open_dir(struct xac_env *env, const char *path)
{
    int rc;

    env->dirfd = xac_handle_keep(xac_sys.openat(AT_FDCWD, path,
                                                O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0),
                                 &env->dir_handle);
    if (env->dirfd < 0)
        return xac_err(errno, "%s", path);
    rc = xac_filesystem_check(env->dirfd, path);
    if (rc != 0)
        return rc;
    env->dir = realpath(path, NULL);
    if (env->dir == NULL)
        return xac_err(errno, "%s", path);
    rc = xac_identity_of(env->dirfd, &env->dir_is);
    return rc == 0 ? 0 : xac_err(rc, "%s", path);
}
