/* SPDX-License-Identifier: MIT */
/*
 * lockfile.c -- see lockfile.h.
 */
#include <config.h>

#include "base/lockfile.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/identity.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"

#define GATE_BYTE   0
#define FIRST_ALIVE 1

/* Rounds of opening a file that others remove or give its mode at the same time; of looking at
   locks of a process that is being ended. */
#define OPEN_TRIES   100
#define ENDING_TRIES 200
#define ENDING_NS    UINT64_C(10000000)
#define MODE_TRIES   10
#define MODE_NS      UINT64_C(1000000)

/* lock_range -- n bytes from start, n = 0: all behind it.  F_OFD commands want
   l_pid to be 0. */
static int
lock_range(int fd, int cmd, short type, off_t start, off_t n)
{
    struct flock lk = {.l_type = type,
                       .l_whence = SEEK_SET,
                       .l_start = start,
                       .l_len = n};

    while (xac_sys.lock(fd, cmd, &lk) != 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* is_held -- true if another description holds a byte of the range for writing.  If the kernel
   cannot say, it is: nobody may be taken for dead by mistake. */
XAC_SIGSAFE static bool
is_held(int fd, off_t start, off_t n)
{
    struct flock lk = {.l_type = F_RDLCK, /* only a lock for writing is in its way */
                       .l_whence = SEEK_SET,
                       .l_start = start,
                       .l_len = n};

    while (xac_sys.lock(fd, F_OFD_GETLK, &lk) != 0) {
        if (errno != EINTR)
            return true;
    }
    return lk.l_type != F_UNLCK;
}

/* ---- The file -------------------------------------------------------------------------- */

/* narrow -- users that may only read can open an older lock file; its owner ends that. */
static int
narrow(int fd, const struct xac_owner *owner)
{
    struct stat st;

    if (xac_sys.fstat(fd, &st) != 0)
        return errno;
    if ((st.st_mode & 0777 & ~owner->mode) != 0)
        (void)xac_sys.fchmod(fd, st.st_mode & owner->mode);
    return 0;
}

int
xac_lockfile_open(int dirfd)
{
    struct xac_owner owner;
    int fd = -1;
    int rc = xac_owner_get_shared(dirfd, &owner);

    if (rc == 0)
        rc = xac_newfile_open(dirfd, XAC_LOCK_NAME, &owner, &fd);
    /* Who makes it may not have given it its mode yet. */
    for (int i = 0; i < MODE_TRIES && rc == EACCES; i++) {
        xac_sleep_ns(MODE_NS);
        rc = xac_newfile_open(dirfd, XAC_LOCK_NAME, &owner, &fd);
    }
    if (rc == 0)
        rc = narrow(fd, &owner);
    if (rc == 0)
        return fd;
    if (fd >= 0)
        (void)xac_sys.close(fd);
    errno = rc;
    return -1;
}

/* has_name -- is this open file the one with the name xac.lock?  ret 0 or errno. */
static int
has_name(int dirfd, int fd, bool *hasp)
{
    struct xac_identity here, named;
    int rc = xac_identity_of(fd, &here);

    if (rc == 0)
        rc = xac_identity_at(dirfd, XAC_LOCK_NAME, &named);
    *hasp = rc == 0 && xac_identity_is_same(&here, &named);
    return rc == ENOENT ? 0 : rc;
}

/* ---- The gate -------------------------------------------------------------------------- */

int
xac_gate_enter(int fd)
{
    return lock_range(fd, F_OFD_SETLKW, F_WRLCK, GATE_BYTE, 1);
}

int
xac_gate_try(int fd)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_WRLCK, GATE_BYTE, 1);

    return rc == EACCES ? EAGAIN : rc;
}

/* If it fails, the program has closed the descriptor, and the lock has gone with it. */
void
xac_gate_leave(int fd)
{
    (void)lock_range(fd, F_OFD_SETLK, F_UNLCK, GATE_BYTE, 1);
}

int
xac_gate_open(int dirfd, const char *dir, int *fdp)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        bool is_named;
        int fd = xac_lockfile_open(dirfd);
        int rc;

        if (fd < 0)
            return xac_err(
                errno, "%s/%s%s", dir, XAC_LOCK_NAME,
                errno == EACCES
                    ? " (to take part one must be allowed to write the directory)"
                    : "");
        rc = xac_gate_enter(fd);
        if (rc == 0)
            rc = has_name(dirfd, fd, &is_named);
        if (rc == 0 && is_named) {
            *fdp = fd;
            return 0;
        }
        (void)xac_sys.close(fd);
        if (rc != 0)
            return xac_err(rc, "gate of %s", dir);
    }
    return xac_err(XAC_ELOCKLOST, "%s/%s is removed again and again", dir, XAC_LOCK_NAME);
}

int
xac_attached(int dirfd, const char *dir, int lockfd)
{
    bool is_held = true;
    int fd;

    if (lockfd >= 0 && xac_alive_any(lockfd))
        return XAC_ELIVE;
    fd = xac_sys.openat(dirfd, XAC_MASTER_NAME, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : xac_err(errno, "%s/%s", dir, XAC_MASTER_NAME);
    /* Of a process that is being ended the kernel closes one file after the other. */
    for (int i = 0; i < ENDING_TRIES && is_held; i++) {
        if (i > 0)
            xac_sleep_ns(ENDING_NS);
        is_held = xac_alive_any(fd);
        if (lockfd < 0)
            break;
    }
    (void)xac_sys.close(fd);
    if (!is_held)
        return 0;
    return lockfd < 0 ? XAC_ELIVE
                      : xac_err(XAC_ELOCKLOST,
                                "%s/%s is not the file that the attached processes have"
                                " locked; end them (nothing is lost), then try again",
                                dir, XAC_LOCK_NAME);
}

/* ---- Who is alive ---------------------------------------------------------------------- */

int
xac_alive_take(int fd, uint32_t index)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_WRLCK, FIRST_ALIVE + (off_t)index, 1);

    return rc == EACCES ? EAGAIN : rc;
}

/* If it fails: as above. */
void
xac_alive_drop(int fd, uint32_t index)
{
    (void)lock_range(fd, F_OFD_SETLK, F_UNLCK, FIRST_ALIVE + (off_t)index, 1);
}

XAC_SIGSAFE bool
xac_alive_test(int fd, uint32_t index)
{
    return is_held(fd, FIRST_ALIVE + (off_t)index, 1);
}

bool
xac_alive_any(int fd)
{
    return is_held(fd, FIRST_ALIVE, 0);
}

bool
xac_lockfile_is_held(int fd)
{
    return is_held(fd, GATE_BYTE, 0);
}
