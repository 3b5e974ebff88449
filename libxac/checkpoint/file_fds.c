/* SPDX-License-Identifier: MIT */
/*
 * file_fds.c -- a process's descriptors of registered files, few at a time: see registry.h.
 */
#include <config.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/file_fds.h"
#include "log/claim.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "view/view.h"

#define FDS_SHARE 16u /* of the descriptors that the process may have */
#define FDS_LEAST 4u

/* fds_max -- how many there may be at a time. */
static uint32_t
fds_max(void)
{
    struct rlimit limit;

    xac_assert(FDS_LEAST <= XAC_FILE_FDS_MAX);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0
        || limit.rlim_cur / FDS_SHARE >= XAC_FILE_FDS_MAX)
        return XAC_FILE_FDS_MAX;
    return limit.rlim_cur / FDS_SHARE > FDS_LEAST ? (uint32_t)limit.rlim_cur / FDS_SHARE
                                                  : FDS_LEAST;
}

/* find -- the slot of a file; NULL: it is not open. */
static struct xac_file_fd *
find(struct xac_file_fds *fds, uint32_t file)
{
    xac_assert(file != 0);
    xac_assert(fds->n <= XAC_FILE_FDS_MAX);
    if (fds->last < fds->n && fds->slot[fds->last].file == file)
        return &fds->slot[fds->last];
    for (uint32_t i = 0; i < fds->n; i++) {
        if (fds->slot[i].file == file) {
            fds->last = i;
            return &fds->slot[i];
        }
    }
    return NULL;
}

/* check -- is the file that has been opened the one that was registered?  ret errno. */
static int
check(const struct xac_env *env, uint32_t file, int fd)
{
    const struct xac_identity *who = &xac_file_at(env, file)->who;
    struct xac_identity is;
    int rc = xac_identity_of(fd, &is);

    xac_assert(fd >= 0);
    if (rc != 0)
        return rc;
    return is.device == who->device && xac_identity_is_same(&is, who) ? 0 : ESTALE;
}

/*
 * from_view -- a descriptor of a file that has lost its name, from a mapping of this process;
 * -1: it has none.
 *
 * Another thread may be unmapping it.  The holder of that lock may be waiting for a checkpoint, so
 * this function does not wait for it.
 */
static int
from_view(struct xac_env *env, uint32_t file)
{
    int fd = -1;

    xac_assert(file != 0);
    if (pthread_mutex_trylock(&env->threads) != 0)
        return -1;
    for (struct xac_view *v = env->ctx.views; v != NULL && fd < 0; v = v->next) {
        if (v->file == file)
            fd = xac_sys.dup_above(xac_view_fd(v), 0);
    }
    (void)pthread_mutex_unlock(&env->threads);
    return fd;
}

bool
xac_file_is_moved(struct xac_env *env, struct xac_view *v)
{
    const struct xac_identity *who = &xac_file_at(env, v->file)->who;
    struct stat mapped;
    struct statx named;

    xac_assert(v->file != 0);
    if (env->frozen != NULL || xac_sys.fstat(xac_view_fd(v), &mapped) != 0
        || mapped.st_nlink == 0)
        return false;
    return xac_sys.statx(xac_env_dirfd(env), xac_file_path(env, v->file), 0, STATX_INO,
                         &named)
               != 0
           || named.stx_ino != who->inode
           || makedev(named.stx_dev_major, named.stx_dev_minor) != who->device;
}

/* open_file -- a descriptor of its own, which holds the file (claim.h); ret -1 with errno. */
static int
open_file(struct xac_env *env, uint32_t file, struct xac_handle *handle)
{
    struct xac_claimant claimant = xac_env_claimant(env);
    /* Relative paths are relative to the environment directory. */
    int fd = xac_sys.openat(xac_env_dirfd(env), xac_file_path(env, file),
                            O_RDWR | O_CLOEXEC | O_NOCTTY, 0);
    int rc = fd < 0 ? errno : check(env, file, fd);

    xac_assert(file != 0);
    if (rc == 0 && xac_claim_hold(fd, &claimant, true, xac_file_path(env, file)) != 0)
        rc = EBUSY;
    if (rc == 0)
        return xac_handle_keep(fd, handle);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    fd = rc == ENOENT || rc == ENOTDIR || rc == ESTALE ? from_view(env, file) : -1;
    errno = rc;
    return xac_handle_keep(fd, handle);
}

/* renew -- the descriptor of a slot, opened again if the program has closed it; -1 with
   errno. */
static int
renew(struct xac_env *env, struct xac_file_fd *slot)
{
    xac_assert(slot->file != 0);
    if (!xac_handle_is_ours(slot->fd, &slot->handle))
        slot->fd = open_file(env, slot->file, &slot->handle);
    return slot->fd;
}

/* close_oldest -- the one that was used least recently; ret 0, or errno of its sync: a write
   error must not get lost with the descriptor. */
static int
close_oldest(struct xac_env *env)
{
    struct xac_file_fds *fds = &env->file_fds;
    struct xac_file_fd *oldest = &fds->slot[0];

    xac_assert(fds->n > 0);
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    for (uint32_t i = 1; i < fds->n; i++) {
        if (fds->slot[i].used < oldest->used)
            oldest = &fds->slot[i];
    }
    if (oldest->is_dirty && xac_env_is_durable(env)) {
        int fd = renew(env, oldest);

        if (fd < 0)
            return xac_err(errno, "syncing %s", xac_file_path(env, oldest->file));
        if (xac_sys.fdatasync(fd) != 0) {
            int rc = errno;

            xac_log_poison(&env->log, rc);
            return xac_err(rc, "syncing %s", xac_file_path(env, oldest->file));
        }
    }
    xac_handle_close(oldest->fd, &oldest->handle);
    *oldest = fds->slot[--fds->n];
    xac_assert(fds->n < XAC_FILE_FDS_MAX);
    return 0;
}

/* open_slot -- a slot for a file that has none; NULL with errno. */
static struct xac_file_fd *
open_slot(struct xac_env *env, uint32_t file)
{
    struct xac_file_fds *fds = &env->file_fds;
    struct xac_file_fd made = {.file = file, .fd = -1};
    uint32_t max = fds_max();
    int rc = 0;

    xac_assert(max > 0 && max <= XAC_FILE_FDS_MAX);
    while (rc == 0 && fds->n >= max)
        rc = close_oldest(env);
    if (rc == 0)
        made.fd = open_file(env, file, &made.handle);
    while (rc == 0 && made.fd < 0 && errno == EMFILE && fds->n > 0) {
        rc = close_oldest(env); /* the program needs many itself */
        if (rc == 0)
            made.fd = open_file(env, file, &made.handle);
    }
    if (rc != 0)
        errno = rc;
    if (made.fd < 0)
        return NULL;
    xac_assert(fds->n < XAC_FILE_FDS_MAX);
    xac_assert(made.fd >= 0);
    fds->last = fds->n;
    fds->slot[fds->n] = made;
    return &fds->slot[fds->n++];
}

int
xac_file_fd(struct xac_env *env, uint32_t file)
{
    struct xac_file_fds *fds = &env->file_fds;
    struct xac_file_fd *slot = find(fds, file);

    xac_assert(file != 0);
    if (slot == NULL)
        slot = open_slot(env, file);
    if (slot == NULL)
        return -1;
    xac_assert(slot->file == file);
    slot->used = ++fds->clock;
    return renew(env, slot);
}

void
xac_file_fd_dirty(struct xac_env *env, uint32_t file)
{
    struct xac_file_fd *slot = find(&env->file_fds, file);

    xac_assert(slot != NULL);
    xac_assert(slot->file == file);
    slot->is_dirty = true;
}

int
xac_file_fds_each(struct xac_env *env,
                  int (*fn)(struct xac_env *env, uint32_t file, int fd))
{
    struct xac_file_fds *fds = &env->file_fds;
    int rc = 0;

    xac_assert(fn != NULL);
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    for (uint32_t i = 0; i < fds->n && rc == 0; i++) {
        struct xac_file_fd *slot = &fds->slot[i];
        int fd = slot->is_dirty ? renew(env, slot) : -1;

        if (fd >= 0)
            rc = fn(env, slot->file, fd);
        else if (slot->is_dirty)
            rc = xac_err(errno, "file %s", xac_file_path(env, slot->file));
    }
    return rc;
}

void
xac_file_fds_synced(struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    for (uint32_t i = 0; i < env->file_fds.n; i++)
        env->file_fds.slot[i].is_dirty = false;
}

void
xac_file_fds_close(struct xac_env *env)
{
    for (uint32_t i = 0; i < env->file_fds.n; i++)
        xac_handle_close(env->file_fds.slot[i].fd, &env->file_fds.slot[i].handle);
    env->file_fds.n = 0;
    xac_assert(env->file_fds.n == 0);
}
