/* SPDX-License-Identifier: MIT */
/*
 * env_frozen.c -- see env_frozen.h.
 */
#include <config.h>

#include "env/env_frozen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "env/control.h"
#include "env/env_enter.h"
#include "env/peek.h"
#include "log/backup_note.h"
#include "log/group_note.h"
#include "log/master.h"
#include "recovery/recover.h"
#include "shared/region.h"
#include "shared/registry.h"
#include "store/frozen.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "view/address.h"

/* Copies that are begun before giving up; and readings of the log for files that it names. */
#define TRIES_MAX    8
#define READINGS_MAX 8

/* ---- What can be frozen --------------------------------------------------------------- */

/* is_deserted -- is it known that nobody is attached? */
static bool
is_deserted(const struct xac_env *env)
{
    int fd = xac_sys.openat(env->dirfd, XAC_LOCK_NAME, O_RDONLY | O_CLOEXEC, 0);
    int rc = xac_region_attached(env->dirfd, env->dir, fd);

    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc == 0;
}

/* has_log -- do those who may be attached log what they commit? */
static bool
has_log(const struct xac_env *env, const struct xac_master_slot *master)
{
    bool is_logged = (master->flags & XAC_MASTER_LOGGED) != 0;
    struct xac_env other;
    int rc;

    if (is_deserted(env))
        return true;
    rc = xac_peek_open(env->dirfd, env->dir, &other);
    if (rc != 0)
        return is_logged; /* the region cannot be seen */
    is_logged = xac_env_is_durable(&other);
    xac_peek_close(&other);
    return is_logged;
}

/* ---- The copies ----------------------------------------------------------------------- */

/* take -- for xac_address_each: a file that has been mapped in this run or before. */
static int
take(void *arg, const char *path)
{
    struct xac_frozen *f = (struct xac_frozen *)arg;
    struct xac_frozen_file *file;
    int rc = xac_frozen_take(f, path, &file);

    /* It is the original's, who may be writing it: the copy's log does not make it whole. */
    if (rc == 0 && f->is_copy && path[0] == '/')
        file->error = XAC_ECOPY;
    return rc;
}

/* take_all -- the files that are known before the log is read; in a backup none is where it
   was. */
static int
take_all(struct xac_env *env, struct xac_frozen *f)
{
    struct xac_backup_note note;
    struct xac_frozen_file *file;
    int rc = xac_backup_note_read(env->dirfd, &note);

    if (rc == ENOENT)
        rc = xac_address_each(env, take, f);
    else
        for (size_t i = 0; rc == 0 && i < note.n_files; i++)
            rc = xac_frozen_take(f, note.file[i].copy, &file);
    xac_backup_note_free(&note);
    return rc;
}

/* redo -- the log onto the copies, of files that only the log names, too. */
static int
redo(struct xac_env *env, struct xac_frozen *f)
{
    struct xac_recover_options options = {.frozen = f,
                                          .log_dir = env->options.log_dir,
                                          .progress = env->options.progress,
                                          .progress_arg = env->options.progress_arg};
    struct xac_recover_report report;
    int rc = EAGAIN;

    for (int i = 0; rc == EAGAIN && i < READINGS_MAX; i++) {
        f->has_grown = false;
        rc = xac_recover_dir(env->dirfd, &options, &report, NULL);
    }
    f->end_lsn = report.end_lsn;
    return rc;
}

/*
 * is_overtaken -- has the log been taken away while it was read?  Then whatever was found
 * means nothing.
 */
static bool
is_overtaken(const struct xac_env *env, const struct xac_frozen *f, int rc)
{
    struct xac_master_slot now;

    if (xac_master_read(env->dirfd, &now) != 0)
        return false;
    if (rc != 0)
        return now.sequence != f->master.sequence;
    return now.generation != f->master.generation || f->end_lsn < now.redo_lsn;
}

/* attempt -- copies of one moment, if *overtakenp remains false. */
static int
attempt(struct xac_env *env, struct xac_frozen *f, bool *overtakenp)
{
    struct xac_master_slot master;
    struct xac_identity dir;
    int rc = xac_master_read(env->dirfd, &master);

    if (rc == 0 && (rc = xac_identity_of(env->dirfd, &dir)) != 0)
        return xac_err(rc, "%s", env->dir);
    if (rc != 0)
        return rc == ENOENT ? xac_master_missing(env->dirfd, false) : rc;
    rc = xac_frozen_init(f, env->dirfd, &master);
    if (rc == 0 && !has_log(env, &master))
        rc = xac_err(ENOTSUP,
                     "%s is in use and not durable: without a log there is no state to"
                     " look at but that of its participants, who are out of reach",
                     env->dir);
    if (rc != 0)
        return rc;
    f->is_copy = xac_master_is_copied(&master, &dir);
    rc = take_all(env, f);
    if (rc == 0)
        rc = redo(env, f);
    *overtakenp = rc == EAGAIN || is_overtaken(env, f, rc);
    if (rc == 0 && f->has_base && !is_deserted(env))
        rc = xac_err(ENOTSUP,
                     "%s is in use and logs no full images (XAC_OPT_FULL_IMAGES), which"
                     " would mend pages that are written while they are copied",
                     env->dir);
    return rc;
}

int
xac_env_freeze(struct xac_env *env)
{
    struct xac_frozen *f = (struct xac_frozen *)calloc(1, sizeof *f);
    bool is_lost = true;
    int rc = 0;

    if (f == NULL)
        return xac_err(ENOMEM, "%s", env->dir);
    rc = xac_group_note_refuse_tail(env->dirfd);
    if (rc != 0) {
        free(f);
        return rc;
    }
    for (int i = 0; is_lost && i < TRIES_MAX; i++) {
        xac_frozen_free(f);
        is_lost = false;
        rc = attempt(env, f, &is_lost);
    }
    if (is_lost)
        rc = xac_err(EAGAIN,
                     "%s: log that was needed has gone %d times while files were copied",
                     env->dir, TRIES_MAX);
    if (rc == 0) {
        env->frozen = f;
        return 0;
    }
    xac_frozen_free(f);
    free(f);
    return rc;
}

/* ---- The region ----------------------------------------------------------------------- */

/* region_make -- a control region, and what belongs to it, in memory without a name. */
static int
region_make(struct xac_env *env)
{
    int fd = xac_handle_keep(xac_sys.memfd_create("xac-frozen", MFD_CLOEXEC),
                             &env->shm.handle);
    int rc = fd < 0 ? errno
                    : xac_shm_create(&env->shm, fd, sizeof(struct xac_control),
                                     XAC_SHM_RESERVE_MAX);

    if (rc != 0) {
        if (fd >= 0)
            (void)xac_sys.close(fd);
        return xac_err(rc, "control region in memory%s",
                       rc == ENOMEM ? ": " XAC_SHM_ADDRESSES : "");
    }
    env->ctl = (struct xac_control *)(void *)env->shm.base;
    rc = xac_control_init(env, &env->frozen->master);
    if (rc == 0)
        rc = xac_buffers_create(env, env->region);
    return rc == 0 ? xac_outofcore_create(env, env->region) : rc;
}

int
xac_env_frozen_enter(struct xac_env *env)
{
    int rc = 0;

    env->flags = XAC_NONDURABLE;
    env->options.frames = 0;
    env->region = strdup("a frozen state");
    xac_registry_identify(env);
    if (env->lockfd < 0)
        env->lockfd = xac_handle_keep(xac_sys.memfd_create("xac.lock", MFD_CLOEXEC),
                                      &env->lock_handle);
    if (env->region == NULL || env->lockfd < 0)
        rc = xac_err(ENOMEM, "%s", env->dir);
    if (rc == 0)
        rc = region_make(env);
    return rc == 0 ? xac_env_become(env) : rc;
}
