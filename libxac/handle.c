/* SPDX-License-Identifier: MIT */
/*
 * handle.c -- see handle.h.
 */
#include <config.h>

#include "handle.h"

#include <errno.h>
#include <sys/resource.h>

#include "sys.h"

/* Programs that use select(2), or close a hundred descriptors, rarely come so far. */
#define LEAST_MAX 512

/* least -- the number from which on descriptors are kept. */
XAC_SIGSAFE static int
least(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > LEAST_MAX)
        return LEAST_MAX;
    return (int)(limit.rlim_cur / 2);
}

XAC_SIGSAFE int
xac_handle_keep(int fd, struct xac_handle *out)
{
    struct stat st;
    int high;

    if (fd < 0)
        return -1;
    if (xac_sys.fstat(fd, &st) != 0) {
        int rc = errno;

        (void)xac_sys.close(fd);
        errno = rc;
        return -1;
    }
    *out = (struct xac_handle){.device = st.st_dev, .inode = st.st_ino};
    high = xac_sys.dup_above(fd, least());
    if (high < 0)
        return fd; /* no number is left there */
    (void)xac_sys.close(fd);
    return high;
}

XAC_SIGSAFE bool
xac_handle_is_ours(int fd, const struct xac_handle *h)
{
    struct stat st;

    if (fd < 0)
        return false;
    if (xac_sys.fstat(fd, &st) != 0)
        return errno != EBADF; /* it is open; its file system cannot say more */
    return st.st_dev == h->device && st.st_ino == h->inode;
}

XAC_SIGSAFE void
xac_handle_close(int fd, const struct xac_handle *h)
{
    if (xac_handle_is_ours(fd, h))
        (void)xac_sys.close(fd);
}

XAC_SIGSAFE int
xac_handle_again(int fd, const struct xac_handle *h, int dirfd, const char *path,
                 int flags)
{
    struct xac_handle found;

    if (xac_handle_is_ours(fd, h))
        return fd;
    fd = xac_handle_keep(xac_sys.openat(dirfd, path, flags | O_CLOEXEC, 0), &found);
    if (fd < 0 || (found.device == h->device && found.inode == h->inode))
        return fd;
    xac_handle_close(fd, &found);
    errno = ESTALE;
    return -1;
}
