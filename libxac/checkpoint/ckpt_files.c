/* SPDX-License-Identifier: MIT */
/*
 * ckpt_files.c -- see ckpt_files.h.
 */
#include <config.h>

#include "checkpoint/ckpt_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "view/file_register.h"

int
xac_ckpt_files_init(struct xac_ckpt_files *f, struct xac_env *env)
{
    xac_assert(f->fate == NULL);
    /* With the lock: a file that was logged before the checkpoint began, and does not count yet, would
       be named nowhere. */
    xac_registry_enter(env);
    f->n =
        (uint32_t)atomic_load_explicit(&env->ctl->files.count, memory_order_relaxed) + 1;
    xac_registry_exit(env);
    f->fate = (uint8_t *)calloc(f->n, sizeof f->fate[0]);
    return f->fate != NULL ? 0 : xac_err(ENOMEM, "checkpoint");
}

void
xac_ckpt_files_free(struct xac_ckpt_files *f)
{
    free(f->fate);
    free(f->named);
    free(f->left);
    *f = (struct xac_ckpt_files){.n = 0};
    xac_assert(f->fate == NULL);
}

/* ---- Lost files ----------------------------------------------------------------------- */

/*
 * is_device_there -- is the file system of a file still where its name says?
 *
 * Its directory, or what is left of the way to it, must lie on the device that the file was
 * on: or else it is not mounted, and the file has not been removed.
 */
static bool
is_device_there(const struct xac_env *env, uint32_t file)
{
    char *path = strdup(xac_file_path(env, file));
    uint64_t device = xac_file_at(env, file)->who.device;
    bool is_there = false, goes_on = path != NULL;

    xac_assert(file != 0);
    while (goes_on) {
        char *slash = strrchr(path, '/');
        const char *dir = path;
        struct statx st;

        if (slash == NULL)
            dir = ".";
        else if (slash == path)
            dir = "/";
        else
            *slash = '\0';
        goes_on = false;
        if (xac_sys.statx(env->dirfd, dir, 0, STATX_TYPE, &st) == 0)
            is_there = makedev(st.stx_dev_major, st.stx_dev_minor) == device;
        else
            goes_on = (errno == ENOENT || errno == ENOTDIR) && dir == path;
    }
    free(path);
    return is_there;
}

/* try_forget -- forget a file that its user has removed, or replaced; *donep false: it is
   none.  ret 0 or an error of the log. */
static int
try_forget(struct xac_env *env, uint32_t file, bool *donep)
{
    const struct xac_file *f = xac_file_at(env, file);
    uint32_t state;
    int rc = 0;

    xac_assert(file != 0);
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    *donep = false;
    if (!is_device_there(env, file))
        return 0;
    xac_registry_enter(env);
    state = atomic_load_explicit(&f->state, memory_order_relaxed);
    if (state == XAC_FILE_KNOWN && !xac_registry_is_held(env, file))
        rc = xac_registry_forget(env, file);
    *donep = atomic_load_explicit(&f->state, memory_order_relaxed) == XAC_FILE_GONE;
    xac_registry_exit(env);
    return rc;
}

int
xac_ckpt_files_lose(struct xac_ckpt_files *f, struct xac_env *env, uint32_t file,
                    int error)
{
    bool is_gone = false;
    int rc = 0;

    xac_assert(file != 0);
    xac_assert(file < f->n);
    xac_assert(error != 0);
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        return xac_err(error, "checkpoint: file %s", xac_file_path(env, file));
    if (xac_env_poisoned(env) != 0)
        return XAC_EPOISONED;
    if (error == ENOENT || error == ENOTDIR || error == ESTALE)
        rc = try_forget(env, file, &is_gone);
    if (rc != 0)
        return rc;
    f->fate[file] |= is_gone ? XAC_CKPT_GONE : XAC_CKPT_SKIPPED;
    if (is_gone)
        return 0;
    f->error = error == ESTALE ? XAC_EREPLACED : error;
    (void)xac_err(f->error, "checkpoint: file %s", xac_file_path(env, file));
    /* Before `ckpt_bound` moves: both are of the holder of the lock. */
    xac_file_at(env, file)->is_behind = 1;
    xac_assert(f->error != 0);
    return 0;
}

void
xac_ckpt_files_synced(struct xac_ckpt_files *f, struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(f->fate != NULL);
    for (uint32_t id = 1; id < f->n; id++) {
        if ((f->fate[id] & XAC_CKPT_SKIPPED) == 0)
            xac_file_at(env, id)->is_behind = 0;
    }
}

/* ---- Files that nobody maps ----------------------------------------------------------- */

static void
mark(void *arg, uint32_t file)
{
    struct xac_ckpt_files *f = (struct xac_ckpt_files *)arg;

    xac_assert(file != 0);
    xac_assert(f->named != NULL);
    if (file < f->n)
        f->named[file] = 1;
}

/* may_leave -- need the END not name a file that nobody maps? */
static bool
may_leave(const struct xac_env *env, const struct xac_ckpt_files *f, uint32_t id,
          uint64_t redo_lsn)
{
    xac_assert(id < f->n);
    return (f->fate[id] & XAC_CKPT_SKIPPED) == 0 && xac_file_at(env, id)->is_behind == 0
           && (!xac_env_is_durable(env) || xac_file_at(env, id)->idle_lsn <= redo_lsn);
}

int
xac_ckpt_files_choose(struct xac_ckpt_files *f, struct xac_env *env, uint64_t redo_lsn)
{
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(f->named == NULL);
    f->named = (uint32_t *)calloc(f->n, sizeof f->named[0]);
    f->left = (uint32_t *)calloc(f->n, sizeof f->left[0]);
    if (f->named == NULL || f->left == NULL)
        return xac_err(ENOMEM, "checkpoint");
    xac_registry_enter(env);
    xac_registry_each_held(env, mark, f); /* `named` by id first, then the list of ids */
    for (uint32_t id = 1; id < f->n; id++) {
        struct xac_file *file = xac_file_at(env, id);
        uint32_t state = atomic_load_explicit(&file->state, memory_order_relaxed);
        bool is_held = f->named[id] != 0;

        if (state != XAC_FILE_KNOWN && state != XAC_FILE_GONE)
            continue;
        if (is_held || !may_leave(env, f, id, redo_lsn)) {
            xac_assert(f->n_named < id);
            f->named[f->n_named++] = id; /* not behind `id`: those are still marks */
        } else {
            file->is_unnamed = 1;
            f->left[f->n_left++] = id;
        }
    }
    xac_registry_exit(env);
    xac_assert(f->n_named + f->n_left < f->n);
    return 0;
}

void
xac_ckpt_files_leave(struct xac_ckpt_files *f, struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(f->n_left < f->n || f->n == 0);
    if (f->n_left == 0)
        return;
    memset(f->fate, 0, f->n);
    xac_registry_enter(env);
    memset(f->named, 0, f->n * sizeof f->named[0]);
    xac_registry_each_held(env, mark, f);
    for (size_t i = 0; i < f->n_left; i++) {
        uint32_t id = f->left[i];
        const struct xac_file *file = xac_file_at(env, id);

        xac_assert(id != 0 && id < f->n);
        if (f->named[id] == 0 && file->is_unnamed != 0
            && xac_ptab_is_clear(&env->shm, &file->root))
            xac_registry_leave_file(env, id);
    }
    xac_registry_exit(env);
}
