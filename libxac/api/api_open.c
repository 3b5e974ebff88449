/* SPDX-License-Identifier: MIT */
/*
 * api_open.c -- entry points that open, close and recover an environment: see api.h.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "api/api_options.h"
#include "base/filesystem.h"
#include "base/identity.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "base/tsan.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file_fds.h"
#include "env/region_clear.h"
#include "log/master.h"
#include "recovery/recover.h"
#include "shared/region.h"
#include "view/view.h"

/* No version will have more: a larger size is one that nobody has set. */
#define OPTIONS_BYTES_MOST (16 * sizeof(struct xac_options))

/* ---- Opening and closing ------------------------------------------------------------- */

/* check -- the arguments of what opens an environment. */
static int
check(const char *what, const char *path, int flags)
{
    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "%s: no path", what);
    if (strlen(path) >= PATH_MAX) /* there is no room for it in a message */
        return xac_err(ENAMETOOLONG, "%s", what);
    if (flags != XAC_NONDURABLE && flags != XAC_DURABLE && flags != XAC_READONLY)
        return xac_err(EINVAL, "%s: unknown flags %#x", what, (unsigned)flags);
    return 0;
}

/* is_open -- has this process opened the environment in that directory?  xac_api_lock held. */
static bool
is_open(const char *path)
{
    struct xac_identity dir;
    int fd, rc;

    if (xac_api_all == NULL)
        return false;
    fd = xac_sys.openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false; /* it is made, or opening it says why not */
    rc = xac_identity_of(fd, &dir);
    (void)xac_sys.close(fd);
    for (const struct xac_env *env = xac_api_all; rc == 0 && env != NULL;
         env = env->next) {
        if (xac_identity_is_same(&env->dir_is, &dir))
            return true;
    }
    return false;
}

/* open_one -- open an environment and put it into the list; xac_api_lock held. */
static int
open_one(const char *what, const char *path, int flags,
         const struct xac_env_options *options, struct xac_env **envp)
{
    struct xac_env *env;
    int rc;

    if (is_open(path))
        return xac_err(XAC_EALREADY, "%s: %s", what, path);
    rc = xac_env_open(path, flags, options, &env);
    if (rc != 0)
        return rc;
    env->next = xac_api_all;
    xac_api_all = env;
    *envp = env;
    return 0;
}

int
xac_init(const char *path, int flags)
{
    struct xac_env_options options;
    int rc = check("xInit", path, flags);

    if (rc != 0)
        return rc;
    xac_api_lock();
    if (xac_api_env != NULL)
        rc = xac_err(XAC_EALREADY, "xInit");
    if (rc == 0)
        rc = xac_api_options_default(&options);
    if (rc == 0)
        rc = open_one("xInit", path, flags, &options, &xac_api_env);
    xac_api_unlock();
    return rc;
}

struct xac_env *
xac_open(const char *path, const struct xac_options *given)
{
    struct xac_options unset;
    struct xac_env_options options;
    struct xac_env *env = NULL;
    int rc;

    xac_options_init(&unset, sizeof unset);
    if (given == NULL)
        given = &unset;
    rc = xac_api_check_sized("xac_open", given, given->size,
                             offsetof(struct xac_options, value));
    if (rc == 0 && given->size > OPTIONS_BYTES_MOST)
        rc = xac_err(EINVAL, "xac_open: options of %zu bytes", given->size);
    if (rc == 0 && given->reserved != 0)
        rc = xac_err(EINVAL, "xac_open: `reserved` is not 0: see xac_options_init");
    if (rc == 0)
        rc = check("xac_open", path, given->flags);
    if (rc == 0)
        rc = xac_api_options_given(given, &options);
    if (rc == 0) {
        xac_api_lock();
        rc = open_one("xac_open", path, given->flags, &options, &env);
        xac_api_unlock();
    }
    if (rc != 0)
        errno = rc;
    return env;
}

/* save_moved -- write the files that only our mappings lead to; ret 0 or an error. */
static int
save_moved(struct xac_env *env, const struct xac_ctx *ctx)
{
    if (xac_env_is_forked(env)) /* the parent maps them, too */
        return 0;
    for (struct xac_view *v = ctx->views; v != NULL; v = v->next) {
        if (xac_file_is_moved(env, v))
            return xac_checkpoint_run(env, false); /* writes all of them */
    }
    return 0;
}

/* close_one -- leave an environment; we have the turn of its process context, and xac_api_lock. */
static int
close_one(const char *what, struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_env **link = &xac_api_all;
    unsigned others;
    int moved, rc;

    xac_thread_dismiss(env);
    others = xac_thread_others(env);
    if (others > 0) {
        xac_api_done(ctx);
        return xac_err(EBUSY, "%s: %u other thread%s views of its own (xView)", what,
                       others, others == 1 ? " has" : "s have each");
    }
    while (*link != env)
        link = &(*link)->next;
    *link = env->next;
    if (xac_api_env == env)
        xac_api_env = NULL;
    xac_thread_leave(env);
    moved = save_moved(env, ctx);
    if (moved == 0) /* without room for it the final checkpoint fails as well */
        moved = xac_view_in_place_leave(env, ctx);
    xac_view_close_all(env, ctx);
    rc = xac_env_close(env);
    xac_tsan_leave(); /* the turn has gone with the environment */
    return rc != 0 ? rc : moved;
}

/* is_listed -- false for NULL, and for an environment that has been closed; xac_api_lock held. */
static bool
is_listed(const struct xac_env *env)
{
    const struct xac_env *e = xac_api_all;

    while (e != NULL && e != env)
        e = e->next;
    return e != NULL;
}

/* shut_down -- the same; what: the function that the program has called. */
static int
shut_down(const char *what, struct xac_env *env)
{
    struct xac_ctx *ctx;
    int rc;

    xac_api_lock();
    if (is_listed(env)) /* xac_env_close joins after a fork */
        rc = xac_api_take_process(env, what, &ctx);
    else
        rc = xac_err(XAC_ENOINIT, "%s", what);
    if (rc == 0)
        rc = close_one(what, env, ctx);
    xac_api_unlock();
    return rc;
}

int
xac_shutdown(void)
{
    return shut_down("xShutdown", xac_api_env);
}

int
xac_close(struct xac_env *env)
{
    return shut_down("xac_close", env);
}

/* ---- Recovery -------------------------------------------------------------------------------- */

/* recover_in -- recover the environment in an open directory. */
static int
recover_in(int dirfd, const char *path)
{
    struct xac_api_progress progress = xac_api_recovery_progress();
    struct xac_recover_options how = {.log_dir = xac_api_log_directory(),
                                      .progress = progress.fn,
                                      .progress_arg = progress.arg};
    struct xac_master_slot master;
    int lockfd, rc;

    rc = xac_master_read(dirfd, &master);
    if (rc != 0)
        return rc == ENOENT ? xac_master_missing(dirfd, false) : rc;
    rc = xac_gate_open(dirfd, path, &lockfd);
    if (rc != 0)
        return rc;
    rc = xac_region_attached(dirfd, path, lockfd);
    if (rc == XAC_ELIVE)
        rc = xac_err(rc, "%s", path);
    if (rc == 0)
        rc = xac_recover_dir(dirfd, &how, NULL, NULL);
    if (rc == 0)
        xac_region_clear(dirfd, lockfd);
    xac_gate_leave(lockfd);
    (void)xac_sys.close(lockfd);
    return rc;
}

int
xac_recover(const char *path)
{
    int dirfd, rc;

    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "xRecover: no path");
    dirfd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dirfd < 0)
        return xac_err(errno, "%s", path);
    rc = xac_filesystem_check(dirfd, path);
    if (rc == 0)
        rc = recover_in(dirfd, path);
    (void)xac_sys.close(dirfd);
    return rc;
}

/* ---- Thesis names ------------------------------------------------------------------------ */

int xInit(const char *path, int flags) XAC_ALIAS_OF(xac_init);
int xShutdown(void) XAC_ALIAS_OF(xac_shutdown);
int xRecover(const char *path) XAC_ALIAS_OF(xac_recover);
