/* SPDX-License-Identifier: MIT */
/*
 * peek.c -- see peek.h.
 */
#include <config.h>

#include "env/peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "base/lost.h"
#include "base/sys.h"
#include "env/env_enter.h"
#include "shared/region.h"
#include "txn/policy.h"

/* Somebody is attached, and the region is not there: the last participant may have left between these two looks.  So
   often we look again, and wait so long before. */
#define LOOKS_MAX 10
#define LOOK_NS   UINT64_C(10000000)

/* Address space for the region, which grows while we look; half of it, and so on, where
   there is a limit. */
#define RESERVE_MAX ((size_t)64 << 30)

/* map_region -- the whole of it, read-only, with room to grow. */
static int
map_region(struct xac_env *env, int fd)
{
    size_t reserve = RESERVE_MAX;
    struct stat st;
    void *p;

    if (xac_sys.fstat(fd, &st) != 0)
        return xac_err(errno, "control region %s", env->region);
    if ((size_t)st.st_size < sizeof(struct xac_control))
        return xac_err(XAC_EVERSION, "control region %s", env->region);
    p = xac_shm_map(fd, PROT_READ, &reserve, (size_t)st.st_size);
    if (p == MAP_FAILED)
        return xac_err(errno, "control region %s", env->region);
    env->shm.base = (uint8_t *)p;
    env->shm.reserve = reserve;
    env->shm.fd = fd;
    env->shm.handle = (struct xac_handle){.device = st.st_dev, .inode = st.st_ino};
    env->ctl = (struct xac_control *)p;
    return 0;
}

/* open_region -- the lock file is open and somebody is attached. */
static int
open_region(struct xac_env *env)
{
    int rc, fd;

    env->region = xac_region_path(env->lockfd);
    if (env->region == NULL && errno != ENOENT)
        return xac_err(errno, "%s", XAC_LOCK_NAME);
    if (env->region == NULL)
        return xac_err(XAC_ENOTSHARED, "%s names no control region", XAC_LOCK_NAME);
    fd = xac_sys.openat(env->dirfd, env->region, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        fd = xac_lost_open(env->region, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? xac_err(XAC_ENOTSHARED, "%s" XAC_REGION_GONE, env->region)
                   : xac_err(errno, "control region %s", env->region);
    rc = map_region(env, fd);
    if (rc != 0) {
        (void)xac_sys.close(fd);
        return rc;
    }
    rc = xac_env_check_build(env);
    if (rc == 0)
        rc = xac_env_check_region(env);
    env->flags = (int)env->ctl->flags;
    env->page_size = env->ctl->page_size;
    env->policy = xac_policy_of(env->ctl->policy);
    return rc;
}

/* look -- once; XAC_ENOTSHARED: somebody is attached, but the region is not there. */
static int
look(int dirfd, const char *dir, struct xac_env *env)
{
    int error, rc;

    *env = (struct xac_env){.dirfd = dirfd, .self = UINT32_MAX};
    env->lockfd =
        xac_handle_keep(xac_sys.openat(dirfd, XAC_LOCK_NAME, O_RDONLY | O_CLOEXEC, 0),
                        &env->lock_handle);
    error = env->lockfd < 0 ? errno : 0;
    rc = xac_region_attached(dirfd, dir, env->lockfd);
    if (rc == 0)
        rc = ENOENT;
    else if (rc == XAC_ELIVE && error == EACCES)
        rc =
            xac_err(EACCES,
                    "%s/%s (to look at a running environment one must be allowed to write"
                    " its directory)",
                    dir, XAC_LOCK_NAME);
    else if (rc == XAC_ELIVE && error != 0)
        rc = xac_err(error, "%s/%s", dir, XAC_LOCK_NAME);
    else if (rc == XAC_ELIVE)
        rc = open_region(env);
    if (rc != 0)
        xac_peek_close(env);
    return rc;
}

int
xac_peek_open(int dirfd, const char *dir, struct xac_env *env)
{
    int rc = look(dirfd, dir, env);

    for (int i = 1; rc == XAC_ENOTSHARED && i < LOOKS_MAX; i++) {
        xac_err_clear();
        xac_sleep_ns(LOOK_NS);
        rc = look(dirfd, dir, env);
    }
    return rc;
}

void
xac_peek_close(struct xac_env *env)
{
    xac_shm_detach(&env->shm);
    if (env->lockfd >= 0)
        (void)xac_sys.close(env->lockfd);
    free(env->region);
    *env = (struct xac_env){.dirfd = -1, .lockfd = -1};
}

bool
xac_peek_is_over(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->closed, memory_order_relaxed) != 0
           || !xac_alive_any(env->lockfd);
}
