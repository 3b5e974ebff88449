/* SPDX-License-Identifier: MIT */
/*
 * lockfile.c -- see lockfile.h.
 */
#include <config.h>

#include "lockfile.h"

#include <errno.h>
#include <unistd.h>

#include "log_format.h"
#include "sys.h"

#define GATE_BYTE   0
#define FIRST_ALIVE 1

/* lock_range -- n bytes from start, n = 0 for all that follow.  F_OFD commands want
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

/* is_held -- true if another description holds a byte of the range.  If the kernel cannot
   say, it is: nobody may be taken for dead by mistake. */
XAC_SIGSAFE static bool
is_held(int fd, off_t start, off_t n)
{
    struct flock lk = {.l_type = F_WRLCK,
                       .l_whence = SEEK_SET,
                       .l_start = start,
                       .l_len = n};

    while (xac_sys.lock(fd, F_OFD_GETLK, &lk) != 0) {
        if (errno != EINTR)
            return true;
    }
    return lk.l_type != F_UNLCK;
}

int
xac_lockfile_open(int dirfd)
{
    return xac_sys.openat(dirfd, XAC_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

int
xac_gate_enter(int fd)
{
    return lock_range(fd, F_OFD_SETLKW, F_WRLCK, GATE_BYTE, 1);
}

void
xac_gate_leave(int fd)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_UNLCK, GATE_BYTE, 1);

    xac_assert(rc == 0);
}

int
xac_alive_take(int fd, uint32_t index)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_WRLCK, FIRST_ALIVE + (off_t)index, 1);

    return rc == EACCES ? EAGAIN : rc;
}

void
xac_alive_drop(int fd, uint32_t index)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_UNLCK, FIRST_ALIVE + (off_t)index, 1);

    xac_assert(rc == 0);
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
