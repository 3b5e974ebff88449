/* SPDX-License-Identifier: MIT */
/*
 * newfile.c -- see newfile.h.
 */
#include <config.h>

#include "base/newfile.h"

#include <errno.h>

#include "base/names.h"
#include "base/sys.h"

#define PRIVATE    0600u
#define READ_WRITE 06u
#define OPEN_TRIES 16 /* somebody may make or remove the file in between */

/* ---- Whose ------------------------------------------------------------------------ */

/* class_bits -- of group (shift 3) or others (shift 0), from a directory's mode. */
XAC_SIGSAFE static mode_t
class_bits(mode_t dir, unsigned shift)
{
    bool is_full = (dir >> shift & 07u) == 07u;

    return is_full && (dir & S_ISVTX) == 0 ? READ_WRITE << shift : 0;
}

XAC_SIGSAFE int
xac_owner_of_dir(int dirfd, struct xac_owner *out)
{
    struct stat st;

    if (xac_sys.fstat(dirfd, &st) != 0)
        return errno;
    *out = (struct xac_owner){
        .uid = st.st_uid,
        .gid = st.st_gid,
        .mode = PRIVATE | class_bits(st.st_mode, 3) | class_bits(st.st_mode, 0),
    };
    return 0;
}

int
xac_owner_of_file(int fd, struct xac_owner *out)
{
    struct stat st;

    if (xac_sys.fstat(fd, &st) != 0)
        return errno;
    *out = (struct xac_owner){.uid = st.st_uid,
                              .gid = st.st_gid,
                              .mode = PRIVATE | (st.st_mode & 0666u)};
    return 0;
}

/* owner_of_name -- of a file; ret 0, ENOENT, other errno values. */
XAC_SIGSAFE static int
owner_of_name(int dirfd, const char *name, struct xac_owner *out)
{
    unsigned want = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID;
    struct statx st;

    if (xac_sys.statx(dirfd, name, AT_SYMLINK_NOFOLLOW, want, &st) != 0)
        return errno;
    if (!S_ISREG(st.stx_mode))
        return EINVAL;
    *out = (struct xac_owner){.uid = st.stx_uid,
                              .gid = st.stx_gid,
                              .mode = PRIVATE | (st.stx_mode & 0666u)};
    return 0;
}

XAC_SIGSAFE int
xac_owner_get(int dirfd, struct xac_owner *out)
{
    int rc = owner_of_name(dirfd, XAC_MASTER_NAME, out);

    if (rc == ENOENT)
        rc = owner_of_name(dirfd, XAC_LOGDIR_MARK, out);
    return rc == ENOENT ? xac_owner_of_dir(dirfd, out) : rc;
}

XAC_SIGSAFE int
xac_owner_get_shared(int dirfd, struct xac_owner *out)
{
    int rc = xac_owner_get(dirfd, out);

    if (rc == 0)
        out->mode &= PRIVATE | (out->mode & 022u) << 1 | (out->mode & 022u);
    return rc;
}

bool
xac_owner_mode_ok(uint64_t mode)
{
    return (mode & ~UINT64_C(0666)) == 0 && (mode & PRIVATE) == PRIVATE
           && (mode & 022u) == (mode >> 1 & mode & 022u);
}

int
xac_owner_set_mode(int dirfd, mode_t mode)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    int fd = xac_sys.openat(dirfd, XAC_MASTER_NAME, flags, 0);
    struct stat st;
    int rc = 0;

    if (fd < 0 && errno == ENOENT)
        fd = xac_sys.openat(dirfd, XAC_LOGDIR_MARK, flags, 0);
    if (fd < 0)
        return errno;
    if (xac_sys.fstat(fd, &st) != 0
        || ((st.st_mode & 0777u) != mode && xac_sys.fchmod(fd, mode) != 0))
        rc = errno;
    (void)xac_sys.close(fd);
    return rc;
}

/* ---- Making ----------------------------------------------------------------------- */

/*
 * give -- group, mode and owner, in this order: invariant (2).
 *
 * Only root gives files to others: what somebody else makes for an environment is his, and
 * the others have it as its group.
 * in   st     of the file
 * in   alone  its mode if it cannot get the group
 */
XAC_SIGSAFE static int
give(int fd, const struct stat *st, const struct xac_owner *o, mode_t alone)
{
    mode_t mode = o->mode;

    if (st->st_gid != o->gid && xac_sys.fchown(fd, (uid_t)-1, o->gid) != 0)
        mode = alone;
    if ((st->st_mode & 07777u) != mode && xac_sys.fchmod(fd, mode) != 0)
        return errno;
    if (st->st_uid != o->uid)
        (void)xac_sys.fchown(fd, o->uid, (gid_t)-1);
    return 0;
}

/* without_group -- the mode of what cannot get its group. */
XAC_SIGSAFE static mode_t
without_group(mode_t mode)
{
    return mode & (07707u | (mode & 07u) << 3);
}

/* settle -- give a new file its owner, group and mode. */
XAC_SIGSAFE static int
settle(int fd, const struct xac_owner *o)
{
    struct stat st;

    if (xac_sys.fstat(fd, &st) != 0)
        return errno;
    /* More than was asked for: the file system keeps no modes, the mount says. */
    if ((st.st_mode & 0777u & ~PRIVATE) != 0)
        return 0;
    return give(fd, &st, o, without_group(o->mode));
}

XAC_SIGSAFE int
xac_newfile_make(int dirfd, const char *path, const struct xac_owner *o, int *fdp)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = xac_sys.openat(dirfd, path, flags, PRIVATE);
    int rc;

    if (fd < 0)
        return errno;
    rc = settle(fd, o);
    if (rc != 0) {
        (void)xac_sys.close(fd);
        (void)xac_sys.unlinkat(dirfd, path, 0);
        return rc;
    }
    *fdp = fd;
    return 0;
}

int
xac_newfile_remake(int dirfd, const char *path, const struct xac_owner *o, int *fdp)
{
    if (xac_sys.unlinkat(dirfd, path, 0) != 0 && errno != ENOENT)
        return errno;
    return xac_newfile_make(dirfd, path, o, fdp);
}

XAC_SIGSAFE int
xac_newfile_open(int dirfd, const char *path, const struct xac_owner *o, int *fdp)
{
    int rc = EEXIST;

    for (int i = 0; i < OPEN_TRIES && rc == EEXIST; i++) {
        int fd = xac_sys.openat(dirfd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
        struct stat st;

        if (fd < 0 && errno != ENOENT)
            return errno;
        if (fd < 0) {
            rc = xac_newfile_make(dirfd, path, o, fdp);
            continue;
        }
        rc = xac_sys.fstat(fd, &st) != 0 ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
        if (rc != 0)
            (void)xac_sys.close(fd);
        else
            *fdp = fd;
    }
    return rc;
}

int
xac_newfile_widen(int fd, const struct xac_owner *o)
{
    struct xac_owner wide = *o;
    struct stat st;

    if (xac_sys.fstat(fd, &st) != 0)
        return errno;
    wide.mode |= st.st_mode & 0777u;
    return give(fd, &st, &wide, wide.mode & (0707u | (st.st_mode & 070u)));
}

int
xac_newfile_replace(const struct xac_newfile *f, const void *bytes, size_t n, int *fdp)
{
    struct xac_owner of_dir;
    const struct xac_owner *o = f->owner != NULL ? f->owner : &of_dir;
    int fd = -1;
    int rc = f->owner != NULL ? 0 : xac_owner_get(f->dirfd, &of_dir);

    if (rc == 0)
        rc = xac_newfile_remake(f->dirfd, f->made, o, &fd);
    if (rc != 0)
        return rc;
    rc = xac_write_full(fd, bytes, n, 0);
    if (rc == 0 && f->is_synced && xac_sys.fsync(fd) != 0)
        rc = errno;
    if (fdp == NULL || rc != 0) {
        if (xac_sys.close(fd) != 0 && rc == 0)
            rc = errno;
        fd = -1;
    }
    if (rc == 0 && xac_sys.renameat(f->dirfd, f->made, f->dirfd, f->name) != 0)
        rc = errno;
    if (rc == 0 && f->is_synced)
        rc = xac_sync_dir(f->dirfd);
    if (rc == 0 && fdp != NULL)
        *fdp = fd;
    else if (fd >= 0)
        (void)xac_sys.close(fd);
    return rc;
}

int
xac_newdir_make(int dirfd, const char *path, int like)
{
    struct stat want, st;
    struct xac_owner o;
    int rc, fd;

    if (xac_sys.fstat(like, &want) != 0)
        return errno;
    o = (struct xac_owner){.uid = want.st_uid,
                           .gid = want.st_gid,
                           .mode = want.st_mode & 07777u};
    if (xac_sys.mkdirat(dirfd, path, 0700) != 0)
        return errno;
    fd = xac_sys.openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    rc = fd < 0 || xac_sys.fstat(fd, &st) != 0 ? errno
                                               : give(fd, &st, &o, without_group(o.mode));
    if (fd >= 0)
        (void)xac_sys.close(fd);
    if (rc != 0)
        (void)xac_sys.unlinkat(dirfd, path, AT_REMOVEDIR);
    return rc;
}
