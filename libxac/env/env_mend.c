/* SPDX-License-Identifier: MIT */
/*
 * env_mend.c -- descriptors that the program has closed are opened again: see env_state.h.
 *
 * A process that has lost the descriptor of the lock file has lost its byte there.  A newcomer may
 * have found nobody attached since, have recovered, and have made a region of its own: so the
 * byte is taken again with the gate held, and only if the lock file still names the region of
 * this process and the entry there is still its own.
 */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/lost.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/region.h"
#include "shared/registry.h"
#include "view/view.h"

/* How long the gate is waited for, and between two looks. */
#define GATE_LOOKS   1000
#define GATE_LOOK_NS 1000000

/* How often xac_env_glance looks. */
#define GLANCE_NS UINT64_C(20000000)

XAC_SIGSAFE int
xac_env_dirfd(struct xac_env *env)
{
    int fd = xac_handle_again(env->dirfd, &env->dir_handle, AT_FDCWD, env->dir,
                              O_RDONLY | O_DIRECTORY);

    if (fd >= 0 && fd != env->dirfd) /* other threads read it */
        env->dirfd = fd;
    return fd;
}

/* log_dir -- the same for the directory of the log. */
static int
log_dir(struct xac_env *env)
{
    const char *path = env->logdir != NULL ? env->logdir : env->dir;
    int fd = xac_handle_again(env->logfd, &env->log_handle, AT_FDCWD, path,
                              O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return xac_err(XAC_EDESCRIPTOR, "log directory %s: %s", path, strerror(errno));
    env->logfd = fd;
    return 0;
}

/* enter_gate -- with patience that ends: signals may be blocked; ret 0 or errno. */
static int
enter_gate(int fd)
{
    int rc = xac_gate_try(fd);

    for (int i = 0; i < GATE_LOOKS && rc == EAGAIN; i++) {
        xac_sleep_ns(GATE_LOOK_NS);
        rc = xac_gate_try(fd);
    }
    return rc;
}

/* is_still_here -- does the lock file name our region, in which we still take part? */
static bool
is_still_here(const struct xac_env *env, int lockfd)
{
    const struct xac_participant *p = xac_participant_at(env, env->self);
    char *named = xac_region_path(lockfd);
    /* Relaxed: changed with the gate held. */
    bool is_here =
        named != NULL && strcmp(named, env->region) == 0 && p->pid == env->pid
        && atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED;

    free(named);
    return is_here;
}

/* take_others -- the same byte of the files beside the lock file (lockfile.h). */
static int
take_others(struct xac_env *env)
{
    int rc = 0;
    int fd = xac_lost_again(env->shm.fd, &env->shm.handle, env->dirfd, env->region);

    if (fd < 0)
        return errno;
    env->shm.fd = fd;
    env->shm.dirfd = env->dirfd;
    rc = xac_alive_take(fd, env->self);
    if ((rc != 0 && rc != EAGAIN) || env->masterfd < 0)
        return rc == EAGAIN ? 0 : rc;
    fd = xac_handle_again(env->masterfd, &env->master_handle, env->dirfd, XAC_MASTER_NAME,
                          O_RDWR);
    if (fd < 0)
        return errno;
    env->masterfd = fd;
    rc = xac_alive_take(fd, env->self);
    return rc == EAGAIN ? 0 : rc;
}

/* lock_file -- open it again, and take our byte. */
static int
lock_file(struct xac_env *env)
{
    int fd = xac_handle_again(-1, &env->lock_handle, env->dirfd, XAC_LOCK_NAME, O_RDWR);
    int rc;

    if (fd < 0)
        return errno;
    rc = enter_gate(fd);
    if (rc == 0) {
        rc = xac_alive_take(fd, env->self);
        if (rc == 0 && !is_still_here(env, fd))
            rc = XAC_ENOTSHARED;
        xac_gate_leave(fd);
    }
    if (rc == 0)
        env->lockfd = fd;
    else
        xac_handle_close(fd, &env->lock_handle); /* the locks go with it */
    return rc;
}

/*
 * hold_files -- open the files that are mapped, so that no other environment gets them
 * (claim.h).  If somebody is mapping or unmapping now, each is opened when it is needed.
 */
static void
hold_files(struct xac_env *env)
{
    if (pthread_mutex_trylock(&env->threads) != 0)
        return;
    for (struct xac_view *v = env->ctx.views; v != NULL; v = v->next)
        (void)xac_view_fd(v);
    (void)pthread_mutex_unlock(&env->threads);
}

/* has_master -- is xac.master still the file that it was?  If not, somebody has put back the
   directory's files, or has removed them: others may have recovered since. */
static bool
has_master(const struct xac_env *env)
{
    struct xac_identity is;
    int rc;

    if (env->masterfd < 0)
        return true;
    rc = xac_identity_at(env->dirfd, XAC_MASTER_NAME, &is);
    if (rc != 0)
        return rc != ENOENT;
    return is.device == env->master_handle.device && is.inode == env->master_handle.inode;
}

/* is_whole -- has nothing been lost? */
static bool
is_whole(const struct xac_env *env)
{
    if (env->frozen != NULL) /* takes part in nothing */
        return true;
    return xac_handle_is_ours(env->lockfd, &env->lock_handle)
           && xac_handle_is_ours(env->shm.fd, &env->shm.handle)
           && (env->masterfd < 0
               || xac_handle_is_ours(env->masterfd, &env->master_handle))
           && xac_handle_is_ours(env->dirfd, &env->dir_handle)
           && xac_handle_is_ours(env->logfd, &env->log_handle) && has_master(env);
}

/* mend -- with env->mending held. */
static int
mend(struct xac_env *env)
{
    int rc;

    if (is_whole(env))
        return 0;
    if (xac_env_dirfd(env) < 0)
        return xac_err(XAC_EDESCRIPTOR, "%s: %s", env->dir, strerror(errno));
    if (!has_master(env))
        return xac_err(
            XAC_ELOCKLOST,
            "%s/%s has been removed or replaced; this process takes no part any"
            " more",
            env->dir, XAC_MASTER_NAME);
    rc = log_dir(env);
    if (rc != 0)
        return rc;
    if (!xac_handle_is_ours(env->lockfd, &env->lock_handle))
        rc = lock_file(env);
    if (rc == 0)
        rc = take_others(env);
    if (rc == 0)
        hold_files(env);
    return rc == 0 ? 0
                   : xac_err(XAC_EDESCRIPTOR,
                             "%s: this process does not take part any more: %s", env->dir,
                             xac_strerror(rc));
}

int
xac_env_mend(struct xac_env *env)
{
    int rc;

    if (is_whole(env))
        return 0;
    /* A spin lock, for locks of any rank may be held; acquire: pairs with the release. */
    while (atomic_flag_test_and_set_explicit(&env->mending, memory_order_acquire))
        (void)sched_yield();
    rc = mend(env);
    atomic_flag_clear_explicit(&env->mending, memory_order_release); /* as above */
    return rc;
}

int
xac_env_mend_log(void *arg)
{
    struct xac_env *env = (struct xac_env *)arg;

    if (xac_env_mend(env) == 0)
        return env->logfd;
    errno = EBADF;
    return -1;
}

int
xac_env_glance(struct xac_env *env, uint64_t now)
{
    int rc;

    /* Relaxed, all: how often is all that it is about. */
    if (xac_likely(now < atomic_load_explicit(&env->glance_ns, memory_order_relaxed)))
        return 0;
    rc = xac_env_mend(env);
    if (rc == 0)
        atomic_store_explicit(&env->glance_ns, now + GLANCE_NS, memory_order_relaxed);
    return rc;
}
