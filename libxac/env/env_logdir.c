/* SPDX-License-Identifier: MIT */
/*
 * env_logdir.c -- which directory the log of an environment lies in: see env_logdir.h.
 */
#include <config.h>

#include "env/env_logdir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/filesystem.h"
#include "base/sys.h"
#include "log/log_format.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_scan.h"
#include "shared/env_state.h"

/* found_log -- for xac_scan_names. */
static int
found_log(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return 0;
}

/* logdir_wish -- make a directory for the log, if it is asked for and there is no log yet. */
static int
logdir_wish(const struct xac_env *env, const struct xac_master_slot *master)
{
    bool has_log = false;
    int rc;

    if (env->options.log_dir == NULL)
        return 0;
    rc = xac_scan_names(env->dirfd, XAC_LOG_PREFIX, found_log, &has_log);
    if (rc != 0 || has_log)
        return rc;
    return xac_logdir_make(env->dirfd, env->options.log_dir, master->identity);
}

int
xac_env_logdir_settle(const struct xac_env *env, const struct xac_master_slot *master)
{
    char *noted;
    int rc;

    if ((master->flags & XAC_MASTER_LOGGED) != 0)
        return 0;
    rc = xac_logdir_noted(env->dirfd, &noted);
    if (rc != 0)
        return rc;
    if (noted == NULL)
        return logdir_wish(env, master);
    free(noted);
    /* Who wrote the note may have died before its name was durable. */
    rc = xac_sync_dir(env->dirfd);
    return rc == 0 ? 0 : xac_err(rc, "environment directory: sync");
}

int
xac_env_logdir_open(struct xac_env *env, const struct xac_master_slot *master)
{
    int rc =
        xac_logdir_open(env->dirfd, NULL, master->identity, &env->logfd, &env->logdir);

    if (rc != 0)
        return rc;
    env->logfd = xac_handle_keep(env->logfd, &env->log_handle);
    if (env->logfd < 0)
        return xac_err(errno, "log directory");
    return env->logdir != NULL ? xac_filesystem_check(env->logfd, env->logdir) : 0;
}

int
xac_env_logdir_join(struct xac_env *env, const struct xac_master_slot *master)
{
    const char *wanted = env->options.log_dir;
    int rc = xac_env_logdir_open(env, master);
    struct stat is, asked;
    bool is_same = false;
    int fd;

    if (rc != 0 || wanted == NULL)
        return rc;
    fd = xac_sys.openat(AT_FDCWD, wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd >= 0) {
        is_same = xac_sys.fstat(env->logfd, &is) == 0 && xac_sys.fstat(fd, &asked) == 0
                  && is.st_dev == asked.st_dev && is.st_ino == asked.st_ino;
        (void)xac_sys.close(fd);
    }
    if (is_same)
        return 0;
    return xac_err(EBUSY, "log directory %s: others are attached, the log is in %s",
                   wanted, env->logdir != NULL ? env->logdir : env->dir);
}
