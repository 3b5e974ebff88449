/* SPDX-License-Identifier: MIT */
/*
 * reader.c -- see reader.h.
 */
#include <config.h>

#include "env/reader.h"

#include <errno.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "env/env.h"
#include "env/env_frozen.h"
#include "shared/region.h"
#include "shared/registry.h"

int
xac_reader_check_access(const struct xac_env *env)
{
    const int mode = W_OK | X_OK;

    if (env->reader == XAC_READER_NONE
        || (faccessat(env->dirfd, ".", mode, AT_EACCESS) == 0
            && faccessat(env->logfd, ".", mode, AT_EACCESS) == 0))
        return 0;
    return xac_err(errno, "%s", env->dir);
}

/* is_out_of_reach -- an error of a reader that cannot take part. */
static bool
is_out_of_reach(int rc)
{
    return rc == ENOENT || rc == EACCES || rc == EPERM || rc == EROFS
           || rc == XAC_ENOTSHARED || rc == XAC_ENAMESPACE || rc == XAC_ELOCKLOST;
}

/* is_attached -- does anybody take part?  A hint; nothing is made, and nobody waits for. */
static int
is_attached(const struct xac_env *env)
{
    int fd = xac_sys.openat(env->dirfd, XAC_LOCK_NAME, O_RDWR | O_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return xac_err(errno, "%s/%s", env->dir, XAC_LOCK_NAME);
    rc = xac_region_attached(env->dirfd, env->dir, fd);
    (void)xac_sys.close(fd);
    return rc == 0 ? xac_err(ENOENT, "nobody is attached to %s", env->dir) : rc;
}

/* enter_live -- a reader takes part, if somebody is attached and it may. */
static int
enter_live(struct xac_env *env)
{
    int rc = is_attached(env);

    if (rc != XAC_ELIVE)
        return rc;
    env->reader = XAC_READER_LIVE;
    return xac_env_enter(env);
}

int
xac_reader_open(struct xac_env *env, const char *path)
{
    int rc = xac_env_open_dir(env, path);

    if (rc != 0)
        return rc == ENOENT ? xac_err(XAC_ENOTENV, "%s: no such directory", path) : rc;
    rc = enter_live(env);
    if (!is_out_of_reach(rc))
        return rc;
    env->reader = XAC_READER_FROZEN;
    rc = xac_env_freeze(env);
    if (rc == 0)
        rc = xac_env_frozen_enter(env);
    if (rc != 0)
        xac_env_unmap(env);
    return rc;
}

int
xac_reader_check_writer(const struct xac_env *env, const char *what)
{
    return env->reader == XAC_READER_NONE ? 0 : xac_err(XAC_EREADONLY, "%s", what);
}

int
xac_reader_settle(struct xac_env *env, bool last)
{
    bool is_reader = env->reader != XAC_READER_NONE;
    bool is_due = is_reader ? last && !xac_env_is_durable(env)
                            : last || xac_registry_writers(env) <= 1;

    if (env->reader == XAC_READER_FROZEN)
        return 0;
    if (is_due)
        return xac_checkpoint_run(env, last);
    if (xac_env_is_durable(env) && (last || env->options.sync_delay_ms != 0))
        return xac_log_sync(&env->log);
    return 0;
}
