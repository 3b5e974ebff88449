/* SPDX-License-Identifier: MIT */
/*
 * raftd_install.c -- see raftd_install.h.
 */
#include <config.h>

#include "raftd_install.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "log/claim.h"
#include "log/recover_scan.h"
#include "raftd_group.h"
#include "recovery/standby.h"
#include "ship/ship_copy.h"

/* Directories in each other, as of a copy that is received. */
#define DEPTH_MAX 64

/* A directory whose contents move. */
struct moving {
    int from, to;
    unsigned depth;
    const struct xac_claimant
        *copy; /* the environment that the copy has been           */
};

static int move_all(const struct moving *m);

/* is_there -- in the directory of the member. */
static bool
is_there(int dirfd, const char *name)
{
    xac_assert(dirfd >= 0);
    return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* rename_there -- (2). */
static int
rename_there(int dirfd, const char *from, const char *to)
{
    int rc = xac_sys.renameat(dirfd, from, dirfd, to) == 0 ? 0 : errno;

    if (rc == 0)
        rc = xac_sync_parent(dirfd, to);
    return rc == 0 ? 0 : xac_err(rc, "%s: rename to %s", from, to);
}

/* ---- The old files go --------------------------------------------------------------- */

/* stays -- files of the member, which are not the environment's. */
static bool
stays(const char *name)
{
    return strcmp(name, XAC_GROUP_NAME) == 0 || strcmp(name, XAC_MEMBERS_NAME) == 0
           || strcmp(name, XAC_LOCK_NAME) == 0;
}

/* remove_old -- for xac_scan_names: a file of the library's. */
static int
remove_old(void *arg, const char *name)
{
    int dirfd = *(const int *)arg;
    struct stat st;

    xac_assert(name[0] != '\0');
    if (stays(name) || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0
        || S_ISDIR(st.st_mode))
        return 0;
    return xac_sys.unlinkat(dirfd, name, 0) == 0 || errno == ENOENT
               ? 0
               : xac_err(errno, "%s: remove", name);
}

/* remove_all -- (3). */
static int
remove_all(int dirfd)
{
    int rc =
        xac_sys.unlinkat(dirfd, XAC_MASTER_NAME, 0) == 0 || errno == ENOENT ? 0 : errno;

    if (rc == 0)
        rc = xac_sync_dir(dirfd);
    if (rc != 0)
        return xac_err(rc, "%s: remove", XAC_MASTER_NAME);
    rc = xac_scan_names(dirfd, "xac", remove_old, &dirfd);
    if (rc != 0)
        return rc;
    rc = xac_sync_dir(dirfd);
    return rc == 0 ? 0 : xac_err(rc, "sync");
}

/* ---- The new ones come -------------------------------------------------------------- */

/* open_dir -- a directory in another one; ret a descriptor or -1. */
static int
open_dir(int at, const char *name)
{
    return xac_sys.openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* move_dir -- what lies in it; it stays, empty. */
static int
move_dir(const struct moving *m, const char *name)
{
    struct moving below = {.depth = m->depth + 1, .copy = m->copy};
    int rc = xac_newdir_make(m->to, name, m->to);

    xac_assert(below.depth > 0);
    if (rc != 0 && rc != EEXIST)
        return xac_err(rc, "%s: make", name);
    if (below.depth > DEPTH_MAX)
        return xac_err(ELOOP, "%s", name);
    below.from = open_dir(m->from, name);
    below.to = open_dir(m->to, name);
    rc = below.from < 0 || below.to < 0 ? xac_err(errno, "%s: open", name)
                                        : move_all(&below);
    if (below.from >= 0)
        (void)xac_sys.close(below.from);
    if (below.to >= 0)
        (void)xac_sys.close(below.to);
    return rc;
}

/* disown -- a file that the copy has mapped: it belongs to the member now. */
static void
disown(const struct moving *m, const char *name)
{
    int fd = xac_sys.openat(m->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    xac_assert(m->copy != NULL);
    if (fd < 0)
        return;
    xac_claim_drop(fd, m->copy);
    (void)xac_sys.close(fd);
}

/* move_one -- for xac_scan_names: a file or a directory; the master record comes last (3). */
static int
move_one(void *arg, const char *name)
{
    const struct moving *m = (const struct moving *)arg;
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (m->depth == 0 && (strcmp(name, XAC_MASTER_NAME) == 0 || stays(name)))
        return 0;
    if (fstatat(m->from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s", name);
    if (S_ISDIR(st.st_mode))
        return move_dir(m, name);
    disown(m, name);
    return xac_sys.renameat(m->from, name, m->to, name) == 0
               ? 0
               : xac_err(errno, "%s: move", name);
}

static int
move_all(const struct moving *m)
{
    int rc = xac_scan_names(m->from, "", move_one, (void *)(uintptr_t)m);

    if (rc != 0)
        return rc;
    rc = xac_sync_dir(m->to);
    return rc == 0 ? 0 : xac_err(rc, "sync");
}

/* move_master -- the directory is an environment. */
static int
move_master(const struct moving *m)
{
    int rc = xac_sys.renameat(m->from, XAC_MASTER_NAME, m->to, XAC_MASTER_NAME) == 0
                     || errno == ENOENT
                 ? 0
                 : errno;

    xac_assert(m->depth == 0);
    if (rc == 0)
        rc = xac_sync_dir(m->to);
    return rc == 0 ? 0 : xac_err(rc, "%s: move", XAC_MASTER_NAME);
}

/* ---- All of it ---------------------------------------------------------------------- */

/* go_on -- from where the names say that it is; the gate is held. */
static int
go_on(int dirfd)
{
    struct xac_claimant copy;
    struct moving m = {.to = dirfd, .copy = &copy};
    int rc = 0;

    if (is_there(dirfd, RAFTD_COPIED)) {
        rc = remove_all(dirfd);
        if (rc == 0)
            rc = rename_there(dirfd, RAFTD_COPIED, RAFTD_MOVING);
    }
    if (rc != 0 || !is_there(dirfd, RAFTD_MOVING))
        return rc;
    m.from = open_dir(dirfd, RAFTD_MOVING);
    if (m.from < 0)
        return xac_err(errno, "%s", RAFTD_MOVING);
    copy.dirfd = m.from;
    rc = xac_identity_of(m.from, &copy.dir);
    if (rc == 0)
        rc = move_all(&m);
    if (rc == 0)
        rc = move_master(&m);
    (void)xac_sys.close(m.from);
    return rc == 0 ? xac_copy_remove(dirfd, RAFTD_MOVING) : rc;
}

/* with_gate -- nobody opens the directory meanwhile. */
static int
with_gate(int dirfd, const char *dir)
{
    int lockfd, rc = xac_standby_lock(dirfd, dir, &lockfd);

    if (rc == 0)
        rc = go_on(dirfd);
    if (lockfd >= 0)
        (void)xac_sys.close(lockfd);
    return rc;
}

int
raftd_install(int dirfd, const char *dir)
{
    int rc = rename_there(dirfd, RAFTD_COPY, RAFTD_COPIED);

    return rc == 0 ? with_gate(dirfd, dir) : rc;
}

int
raftd_install_resume(int dirfd, const char *dir)
{
    return is_there(dirfd, RAFTD_COPIED) || is_there(dirfd, RAFTD_MOVING)
               ? with_gate(dirfd, dir)
               : 0;
}
