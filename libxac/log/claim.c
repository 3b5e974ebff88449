/* SPDX-License-Identifier: MIT */
/*
 * claim.c -- see claim.h.
 */
#include <config.h>

#include "log/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "log/logdir.h"
#include "log/master.h"
#include "log/recover_scan.h"

/* Bytes that stand for environments, so many for each; no file is that long. */
#define HOLD_FIRST (INT64_C(1) << 62)
#define HOLD_EACH  (INT64_C(1) << 29)
#define HOLD_END   (HOLD_FIRST + (INT64_C(1) << 61))
#define HOLD_TRIES 8

#define MARK_NAME "user.xac.claim"
#define MARK_MAX  (PATH_MAX + 128)

/* What a mark says. */
struct mark {
    struct xac_identity dir; /* of the environment ...                                */
    struct xac_identity file;
    char path[PATH_MAX]; /* ... and where it is                                       */
};

/* ---- The hold ------------------------------------------------------------------------- */

/* first_of -- the bytes of an environment begin there. */
XAC_SIGSAFE static off_t
first_of(const struct xac_identity *dir)
{
    xac_assert(dir->inode != 0);
    return HOLD_FIRST + (off_t)(uint32_t)xac_xxh64(dir, sizeof *dir) * HOLD_EACH;
}

/* is_held -- does another description hold a byte of [start, end)?  Locks for reading do
   not count: a user that may only read the file must not keep others from using it. */
XAC_SIGSAFE static bool
is_held(int fd, off_t start, off_t end)
{
    struct flock lk = {.l_type = F_RDLCK,
                       .l_whence = SEEK_SET,
                       .l_start = start,
                       .l_len = end - start};

    xac_assert(fd >= 0);
    xac_assert(start <= end);
    if (start == end)
        return false;
    while (xac_sys.lock(fd, F_OFD_GETLK, &lk) != 0) {
        if (errno != EINTR)
            return false;
    }
    return lk.l_type != F_UNLCK && lk.l_start >= HOLD_FIRST;
}

/* take_byte -- any of them; ret 0, EAGAIN if another description has it, errno. */
XAC_SIGSAFE static int
take_byte(int fd, off_t first)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    uint32_t r;

    xac_assert(fd >= 0);
    xac_assert(first >= HOLD_FIRST);
    if (getentropy(&r, sizeof r) != 0)
        return errno;
    lk.l_start = first + r % HOLD_EACH;
    xac_assert(lk.l_start < HOLD_END);
    while (xac_sys.lock(fd, F_OFD_SETLK, &lk) != 0) {
        if (errno != EINTR)
            return errno == EACCES ? EAGAIN : errno;
    }
    return 0;
}

/* take_some -- ret 0, also if it cannot be had for reasons that are not ours; errno. */
XAC_SIGSAFE static int
take_some(int fd, off_t first)
{
    int rc = EAGAIN;

    xac_assert(fd >= 0);
    for (int i = 0; i < HOLD_TRIES && rc == EAGAIN; i++)
        rc = take_byte(fd, first);
    /* Locked as a whole by another program; a file system without locks. */
    return rc == EAGAIN || rc == ENOLCK || rc == EINVAL || rc == EOPNOTSUPP
                   || rc == ENOSYS
               ? 0
               : rc;
}

/* ---- The mark ------------------------------------------------------------------------- */

/* mark_read -- false if the file has none that counts. */
static bool
mark_read(int fd, struct mark *m)
{
    char text[MARK_MAX + 1];
    ssize_t n = xac_sys.fgetxattr(fd, MARK_NAME, text, MARK_MAX);
    struct xac_identity file;
    int at = 0;

    xac_assert(fd >= 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (sscanf(text, "1 %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %n",
               &m->dir.device, &m->dir.inode, &m->dir.birth_ns, &m->file.inode,
               &m->file.birth_ns, &at)
            != 5
        || at == 0 || text[at] != '/' || strlen(text + at) >= sizeof m->path)
        return false;
    (void)snprintf(m->path, sizeof m->path, "%s", text + at);
    return xac_identity_of(fd, &file) == 0 && xac_identity_is_same(&file, &m->file);
}

/* is_ours -- the device of a directory may have another number by now. */
static bool
is_ours(const struct mark *m, const struct xac_claimant *who)
{
    return xac_identity_is_same(&m->dir, &who->dir);
}

/* mark_write -- with the path of our directory; one that is there already is left alone. */
static void
mark_write(int fd, const struct xac_claimant *who, const char *path)
{
    char text[MARK_MAX];
    struct xac_identity file;
    struct mark m;
    int n;

    xac_assert(path[0] == '/');
    if (xac_identity_of(fd, &file) != 0)
        return;
    if (mark_read(fd, &m) && is_ours(&m, who) && strcmp(m.path, path) == 0)
        return;
    n = snprintf(text, sizeof text,
                 "1 %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s",
                 who->dir.device, who->dir.inode, who->dir.birth_ns, file.inode,
                 file.birth_ns, path);
    if (n > 0 && (size_t)n < sizeof text)
        (void)xac_sys.fsetxattr(fd, MARK_NAME, text, (size_t)n);
}

void
xac_claim_mark(int fd, const struct xac_claimant *who)
{
    char link[40];
    char *path;

    xac_assert(fd >= 0);
    xac_assert(who->dirfd >= 0);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", who->dirfd);
    path = realpath(link, NULL); /* as it is called now */
    if (path != NULL)
        mark_write(fd, who, path);
    free(path);
}

void
xac_claim_drop(int fd, const struct xac_claimant *who)
{
    struct mark m;

    xac_assert(fd >= 0);
    if (mark_read(fd, &m) && is_ours(&m, who))
        (void)xac_sys.fremovexattr(fd, MARK_NAME);
}

/* ---- The environment that a mark names ------------------------------------------------ */

enum claimer {
    GONE,
    SETTLED, /* nobody is attached, and there is nothing to redo                      */
    IN_USE,
    UNSETTLED /* it would be recovered, or nobody can say                              */
};

/* has_later_blocks -- is there a block behind what the master record knows of? */
static bool
has_later_blocks(int dirfd, const struct xac_master_slot *master)
{
    struct xac_scan scan = {.file = XAC_RAWFILE_CLOSED};
    const struct xac_block *blk = NULL;
    struct xac_place place;
    char *path = NULL;
    int logfd = -1;
    int rc = xac_logdir_open(dirfd, NULL, master->identity, &logfd, &path);

    xac_assert((master->flags & XAC_MASTER_LOGGED) != 0);
    if (rc == 0) {
        rc = xac_scan_open(&scan, logfd, master);
        if (rc == 0)
            rc = xac_scan_block(&scan, master->end_lsn_after, &blk, &place);
        xac_scan_close(&scan);
    }
    if (logfd >= 0)
        (void)xac_sys.close(logfd);
    free(path);
    return rc != 0 || blk != NULL;
}

/* is_live -- is anybody attached to the environment? */
static bool
is_live(int dirfd, const char *path)
{
    int fd = xac_sys.openat(dirfd, XAC_LOCK_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    int rc = fd >= 0 || errno == ENOENT ? 0 : errno;

    xac_assert(dirfd >= 0);
    if (rc == 0)
        rc = xac_attached(dirfd, path, fd);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc != 0;
}

/* look_in -- at an open directory. */
static enum claimer
look_in(int dirfd, const struct mark *m)
{
    struct xac_master_slot master;
    struct xac_identity dir;
    int rc = xac_identity_of(dirfd, &dir);

    xac_assert(dirfd >= 0);
    if (rc == 0 && !xac_identity_is_same(&dir, &m->dir))
        return GONE;
    if (rc == 0)
        rc = xac_master_read(dirfd, &master);
    if (rc == ENOENT)
        return GONE;
    if (is_live(dirfd, m->path))
        return IN_USE;
    if (rc != 0 || (master.flags & XAC_MASTER_CLEAN) == 0)
        return UNSETTLED;
    if ((master.flags & XAC_MASTER_LOGGED) == 0)
        return SETTLED;
    return has_later_blocks(dirfd, &master) ? UNSETTLED : SETTLED;
}

/* claimer_of -- how is the environment that the mark names? */
static enum claimer
claimer_of(const struct mark *m)
{
    int fd = xac_sys.openat(AT_FDCWD, m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    enum claimer is;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? GONE : UNSETTLED;
    is = look_in(fd, m);
    (void)xac_sys.close(fd);
    xac_err_clear(); /* no failure of ours */
    return is;
}

/* ---- The whole ------------------------------------------------------------------------ */

/* hold -- ret 0; XAC_EINUSE without words; errno. */
XAC_SIGSAFE static int
hold(int fd, const struct xac_claimant *who, bool takes)
{
    off_t own = first_of(&who->dir);
    int rc = takes ? take_some(fd, own) : 0;

    xac_assert(who->dir.inode != 0);
    if (rc != 0)
        return rc;
    return is_held(fd, HOLD_FIRST, own) || is_held(fd, own + HOLD_EACH, HOLD_END)
               ? XAC_EINUSE
               : 0;
}

XAC_SIGSAFE int
xac_claim_hold_again(int fd, const struct xac_claimant *who)
{
    int rc = hold(fd, who, true);

    xac_assert(fd >= 0);
    return rc == XAC_EINUSE ? EBUSY : rc;
}

int
xac_claim_hold(int fd, const struct xac_claimant *who, bool takes, const char *name)
{
    int rc = hold(fd, who, takes);
    struct mark m;

    xac_assert(fd >= 0);
    if (rc == 0)
        return 0;
    if (rc != XAC_EINUSE)
        return xac_err(rc, "%s: lock", name);
    if (mark_read(fd, &m) && !is_ours(&m, who))
        return xac_err(XAC_EINUSE, "%s: in use by the environment %s", name, m.path);
    return xac_err(XAC_EINUSE, "%s: in use by another environment", name);
}

int
xac_claim_take(int fd, const struct xac_claimant *who, const char *name)
{
    enum claimer is = GONE;
    struct mark m;
    int rc = xac_claim_hold(fd, who, true, name);

    xac_assert(name != NULL);
    if (rc != 0)
        return rc;
    if (mark_read(fd, &m) && !is_ours(&m, who))
        is = claimer_of(&m);
    if (is == IN_USE)
        return xac_err(XAC_EINUSE,
                       "%s: the environment %s, which is in use, has mapped it", name,
                       m.path);
    if (is == UNSETTLED)
        return xac_err(
            XAC_EINUSE,
            "%s: the environment %s has mapped it and was not shut down; recover"
            " it first, or remove it",
            name, m.path);
    xac_claim_mark(fd, who);
    return 0;
}

int
xac_claim_check(int fd, const struct xac_claimant *who, bool may_take, const char *name)
{
    struct mark m;

    xac_assert(fd >= 0);
    if (!mark_read(fd, &m) || is_ours(&m, who))
        return 0;
    if (claimer_of(&m) != GONE)
        return xac_err(XAC_EINUSE,
                       "%s: the environment %s has mapped it since; redoing older changes"
                       " would undo its own",
                       name, m.path);
    if (may_take)
        return 0;
    return xac_err(XAC_EINUSE,
                   "%s: the environment %s, which is gone, has mapped it since; redoing"
                   " older changes would undo its own (xrecover --accept-replaced)",
                   name, m.path);
}
