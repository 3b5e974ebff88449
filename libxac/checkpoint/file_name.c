/* SPDX-License-Identifier: MIT */
/*
 * file_name.c -- see file_name.h.
 */
#include <config.h>

#include "checkpoint/file_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/stored.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pagesums.h"
#include "log/claim.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "txn/history.h"
#include "txn/snapshots.h"
#include "view/file_register.h"
#include "view/view.h"

#define TRIES 5u /* while others commit to the file and unmap it, or replace it */

/* Somebody was quicker: try again. */
#define AGAIN EAGAIN

/* A name, and where it is. */
struct place {
    const char *name; /* for messages                                                 */
    char *path;       /* as stored                                                    */
    const char *base; /* its last component                                           */
    int dirfd;        /* its directory                                                */
};

/* One call. */
struct job {
    struct xac_env *env;
    const char *what; /* for messages                                                 */
    struct place from, to;
    bool is_removal;
    int fd; /* the file                                                               */
    struct xac_identity who;
    uint64_t size;
    uint32_t id, id_to; /* the file's, and that of its new name; 0: none              */
};

/* ---- Names ------------------------------------------------------------------------ */

/* check_place -- may the library move what has this name? */
static int
check_place(const struct job *j, const struct place *p)
{
    struct xac_identity dir, log;
    int rc = xac_view_check_path(p->path, p->name);

    xac_assert(p->base != NULL);
    xac_assert(p->dirfd >= 0);
    if (rc == 0 && j->env->logdir != NULL && strncmp(p->base, "xac", 3) == 0
        && xac_identity_of(p->dirfd, &dir) == 0
        && xac_identity_of(j->env->logfd, &log) == 0 && dir.device == log.device
        && xac_identity_is_same(&dir, &log))
        rc = xac_err(EINVAL, "%s: %s lies in the log directory", j->what, p->name);
    return rc;
}

/* find_place -- where a name is; its directory is there. */
static int
find_place(const struct job *j, struct place *p, const char *name)
{
    int rc;

    xac_assert(name[0] != '\0');
    p->name = name;
    p->path = xac_view_stored_path(j->env, name);
    if (p->path == NULL)
        return xac_err(errno, "%s: %s", j->what, name);
    rc = xac_stored_parent(j->env->dirfd, p->path, &p->dirfd, &p->base);
    if (rc == ENOENT)
        return xac_err(rc, "%s: the directory of %s", j->what, name);
    return rc == 0 ? check_place(j, p) : rc;
}

static void
close_place(struct place *p)
{
    if (p->dirfd >= 0)
        (void)xac_sys.close(p->dirfd);
    free(p->path);
    *p = (struct place){.dirfd = -1};
}

/* check_link -- the name of a symbolic link is not that of a file. */
static int
check_link(const struct job *j, const char *name)
{
    struct statx st;

    xac_assert(name[0] != '\0');
    if (xac_sys.statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) != 0)
        return xac_err(errno, "%s: %s", j->what, name);
    if (S_ISREG(st.stx_mode))
        return 0;
    return xac_err(EINVAL, "%s: %s is %s", j->what, name,
                   S_ISLNK(st.stx_mode) ? "a symbolic link: give the name of the file"
                                        : "not a regular file");
}

/* check_target -- a new name, in a directory of the same file system. */
static int
check_target(const struct job *j)
{
    struct xac_identity is, dir_from, dir_to;
    int rc;

    xac_assert(!j->is_removal);
    if (strcmp(j->from.path, j->to.path) == 0)
        return xac_err(EINVAL, "%s: %s and %s are the same name", j->what, j->from.name,
                       j->to.name);
    rc = xac_identity_at(j->to.dirfd, j->to.base, &is);
    if (rc == 0)
        return xac_err(EEXIST, "%s: %s", j->what, j->to.name);
    if (rc == ENOENT)
        rc = xac_identity_of(j->from.dirfd, &dir_from);
    if (rc == 0)
        rc = xac_identity_of(j->to.dirfd, &dir_to);
    if (rc != 0)
        return xac_err(rc, "%s: %s", j->what, j->to.name);
    if (dir_from.device == dir_to.device)
        return 0;
    return xac_err(EXDEV, "%s: %s and %s lie in different file systems", j->what,
                   j->from.name, j->to.name);
}

/* open_file -- the file itself; no other environment has it. */
static int
open_file(struct job *j)
{
    struct xac_claimant claimant = xac_env_claimant(j->env);
    struct stat st;
    int rc;

    xac_assert(j->fd < 0);
    j->fd = xac_sys.openat(j->from.dirfd, j->from.base,
                           O_RDWR | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
    if (j->fd < 0)
        return xac_err(errno, "%s: %s", j->what, j->from.name);
    rc = xac_identity_of(j->fd, &j->who);
    if (rc == 0 && xac_sys.fstat(j->fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        return xac_err(rc, "%s: %s", j->what, j->from.name);
    j->size = (uint64_t)st.st_size;
    return xac_claim_take(j->fd, &claimant, j->from.name);
}

/* ---- Under the lock of the files -------------------------------------------------- */

/* check_still -- has the file that is open still its name?  ret 0; AGAIN; ENOENT; errno. */
static int
check_still(const struct job *j)
{
    int rc = xac_identity_check(j->from.dirfd, j->from.base, &j->who);

    xac_assert(xac_lock_is_mine(&j->env->ctl->files_lock));
    if (rc == ESTALE)
        return AGAIN;
    return rc == 0 ? 0 : xac_err(rc, "%s: %s", j->what, j->from.name);
}

/* check_free -- a known file: nobody maps it, and there is no state of it but that in the file.  ret 0; EBUSY;
   AGAIN: a checkpoint may help. */
static int
check_free(const struct job *j, uint32_t id, const char *name, bool is_last)
{
    const struct xac_env *env = j->env;
    uint32_t pid = id != 0 ? xac_registry_holder(env, id) : 0;

    if (pid != 0)
        return xac_err(EBUSY, "%s: %s is mapped by process %u%s", j->what, name,
                       (unsigned)pid, pid == env->pid ? ", this one" : "");
    if (id == 0 || xac_ptab_is_clear(&env->shm, &xac_file_at(env, id)->root))
        return 0;
    if (!is_last)
        return AGAIN;
    if (xac_history_is_on(env))
        return xac_err(EBUSY, "%s: XAC_OPT_HISTORY keeps older states of %s", j->what,
                       name);
    return xac_err(EBUSY, "%s: older states of %s stay for %s", j->what, name,
                   xac_snapshots_any(env) ? "a snapshot that is held"
                                          : "a query or transaction that is running");
}

/* find_ids -- what is known of both names, and that all of it is free. */
static int
find_ids(struct job *j, bool is_last)
{
    struct xac_env *env = j->env;
    uint32_t pid = xac_registry_backs_up(env);
    int rc = check_still(j);

    xac_assert(xac_lock_is_mine(&env->ctl->files_lock));
    if (rc == 0 && pid != 0)
        rc = xac_err(EBUSY, "%s: %s: process %u is making a backup", j->what,
                     j->from.name, (unsigned)pid);
    if (rc == 0)
        rc = xac_registry_find(env, j->from.path, &j->who, &j->id);
    if (rc == 0)
        rc = check_free(j, j->id, j->from.name, is_last);
    j->id_to = j->is_removal ? 0 : xac_registry_named(env, j->to.path);
    if (j->id_to == j->id) /* the user has moved it already, and back */
        j->id_to = 0;
    return rc == 0 ? check_free(j, j->id_to, j->to.name, is_last) : rc;
}

/* keep_address -- the file will be where it was, under its new name, too: (3). */
static int
keep_address(const struct job *j)
{
    struct xac_env *env = j->env;
    struct xac_address_list *list = &env->addresses;
    const struct xac_address_line *from, *to;
    uint64_t address;
    int rc = xac_address_list_read(list, env->dirfd);

    xac_assert(!j->is_removal);
    if (rc != 0)
        return rc;
    from = xac_address_list_find(list, j->from.path);
    to = xac_address_list_find(list, j->to.path);
    if (from == NULL) /* it has never been mapped */
        return to != NULL ? xac_address_list_remove(list, env->dirfd, j->to.path,
                                                    xac_env_is_durable(env))
                          : 0;
    address = from->address;
    if (to == NULL || to->address != address)
        return xac_address_list_add(list, env->dirfd, j->to.path, address,
                                    xac_env_is_durable(env));
    return xac_env_is_durable(env) ? xac_address_list_sync(list, env->dirfd, to) : 0;
}

/* drop_address -- a name that has no file any more; a line that stays does no harm. */
static void
drop_address(const struct job *j, const struct place *p)
{
    struct xac_env *env = j->env;

    xac_assert(p->path != NULL);
    if (xac_address_list_read(&env->addresses, env->dirfd) == 0)
        (void)xac_address_list_remove(&env->addresses, env->dirfd, p->path,
                                      xac_env_is_durable(env));
}

/*
 * forget -- log that the file is forgotten, and what it will be called; durable: (1), (2).
 *
 * A file that is not known is registered first: a backup may have it, and a recovery of the backup has to
 * know which file is meant.
 * out  newp  entry of the new name
 */
static int
forget(struct job *j, uint32_t *newp)
{
    struct xac_env *env = j->env;
    uint32_t named;
    int rc = 0;

    xac_assert(j->id == 0 || j->id != j->id_to);
    if (j->id == 0 && xac_env_is_durable(env))
        rc = xac_registry_add(env, j->from.path, &j->who, j->size, j->size, &j->id);
    if (rc == 0 && j->id != 0)
        rc = xac_registry_forget(env, j->id);
    named =
        xac_registry_named(env, j->from.path); /* of a file that is not there any more */
    if (rc == 0 && named != 0)
        rc = xac_registry_forget(env, named);
    if (rc == 0 && j->id_to != 0)
        rc = xac_registry_forget(env, j->id_to);
    if (rc == 0 && !j->is_removal)
        rc = xac_registry_announce(env, j->to.path, &j->who, j->size, newp);
    if (rc == 0 && xac_env_is_durable(env))
        rc = xac_group_sync(env);
    return rc;
}

/* change_name -- the step itself; ret 0 or an error, and nothing has happened. */
static int
change_name(const struct job *j)
{
    int rc = j->is_removal ? xac_sys.unlinkat(j->from.dirfd, j->from.base, 0)
                           : xac_sys.rename_new(j->from.dirfd, j->from.base, j->to.dirfd,
                                                j->to.base);

    xac_assert(xac_lock_is_mine(&j->env->ctl->files_lock));
    if (rc == 0)
        return 0;
    rc = errno;
    if (!j->is_removal && (rc == EINVAL || rc == ENOSYS))
        return xac_err(EOPNOTSUPP,
                       "%s: %s to %s: this file system cannot rename a file without"
                       " perhaps replacing another one",
                       j->what, j->from.name, j->to.name);
    return j->is_removal ? xac_err(rc, "%s: %s", j->what, j->from.name)
                         : xac_err(rc, "%s: %s to %s", j->what, j->from.name, j->to.name);
}

/* sync_names -- the new name first: the old one must not go alone. */
static int
sync_names(const struct job *j)
{
    int rc = j->is_removal ? 0 : xac_sync_dir(j->to.dirfd);

    xac_assert(xac_env_is_durable(j->env));
    if (rc == 0)
        rc = xac_sync_dir(j->from.dirfd);
    if (rc == 0)
        return 0;
    return xac_err(rc, "%s: %s is %s, but its directory could not be synced", j->what,
                   j->from.name, j->is_removal ? "removed" : "renamed");
}

/* drop_sums -- the checksums of its pages name its path; without them nothing is known. */
static void
drop_sums(const struct job *j)
{
    char name[32];

    xac_assert(j->who.inode != 0);
    xac_pagesums_name(name, j->who.inode);
    (void)xac_sys.unlinkat(j->env->dirfd, name, 0);
}

/* change -- files lock held, all is free. */
static int
change(struct job *j)
{
    uint32_t new_id = 0;
    int rc = j->is_removal ? 0 : keep_address(j);

    xac_assert(xac_lock_is_mine(&j->env->ctl->files_lock));
    if (rc == 0)
        rc = forget(j, &new_id);
    xac_kill_point("name logged");
    if (rc == 0)
        rc = change_name(j);
    if (rc != 0) {
        if (!j->is_removal)
            drop_address(j, &j->to);
        return rc;
    }
    xac_kill_point("name changed");
    if (new_id != 0)
        xac_registry_settle(j->env, new_id);
    if (xac_env_is_durable(j->env))
        rc = sync_names(j);
    xac_kill_point("name synced");
    drop_sums(j);
    drop_address(j, &j->from);
    xac_kill_point("name done");
    return rc;
}

/* ---- The whole -------------------------------------------------------------------- */

/* attempt -- ret 0; AGAIN; an error. */
static int
attempt(struct job *j, const char *from, const char *to, bool is_last)
{
    struct xac_env *env = j->env;
    int rc = check_link(j, from);

    if (rc == 0)
        rc = find_place(j, &j->from, from);
    if (rc == 0 && to != NULL)
        rc = find_place(j, &j->to, to);
    if (rc == 0 && to != NULL)
        rc = check_target(j);
    if (rc == 0)
        rc = open_file(j);
    if (rc != 0)
        return rc == AGAIN ? EBUSY : rc;
    xac_registry_enter(env);
    rc = find_ids(j, false); /* or else nothing need be written */
    xac_registry_exit(env);
    if (rc == 0 || rc == AGAIN)
        rc = xac_checkpoint_run(env, false);
    if (rc != 0)
        return rc;
    xac_registry_enter(env);
    rc = find_ids(j, is_last);
    if (rc == 0)
        rc = change(j);
    xac_registry_exit(env);
    return rc;
}

int
xac_file_rename(struct xac_env *env, const char *from, const char *to)
{
    int rc = AGAIN;

    xac_assert(!xac_lock_is_mine(&env->ctl->checkpoint));
    for (unsigned i = 1; rc == AGAIN && i <= TRIES; i++) {
        struct job j = {.env = env,
                        .what = to == NULL ? "xRemove" : "xRename",
                        .from = {.dirfd = -1},
                        .to = {.dirfd = -1},
                        .is_removal = to == NULL,
                        .fd = -1};

        rc = attempt(&j, from, to, i == TRIES);
        if (j.fd >= 0)
            (void)xac_sys.close(j.fd);
        close_place(&j.from);
        close_place(&j.to);
    }
    return rc == AGAIN ? xac_err(EBUSY, "%s is replaced again and again", from) : rc;
}
