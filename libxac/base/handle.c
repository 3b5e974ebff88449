/* SPDX-License-Identifier: MIT */
/*
 * handle.c -- see handle.h.
 */
#include <config.h>

#include "base/handle.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/identity.h"
#include "base/sys.h"

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

/* which -- the file of a descriptor; ret 0 or errno.  Its times are not asked for: where a
   file's times have been read, the next write must change them, and the sync behind it has
   more to do.  By that alone a durable commit took half as long again. */
XAC_SIGSAFE static int
which(int fd, struct xac_handle *out)
{
    struct xac_identity is;
    int rc = xac_identity_of(fd, &is);

    *out = (struct xac_handle){.device = is.device, .inode = is.inode};
    return rc;
}

XAC_SIGSAFE int
xac_handle_keep(int fd, struct xac_handle *out)
{
    int high, rc;

    if (fd < 0)
        return -1;
    rc = which(fd, out);
    if (rc != 0) {
        (void)xac_sys.close(fd);
        errno = rc;
        return -1;
    }
    high = xac_sys.dup_above(fd, least());
    if (high < 0)
        return fd; /* no number is left there */
    (void)xac_sys.close(fd);
    return high;
}

XAC_SIGSAFE bool
xac_handle_is_ours(int fd, const struct xac_handle *h)
{
    struct xac_handle is;
    int rc;

    if (fd < 0)
        return false;
    rc = which(fd, &is);
    if (rc != 0)
        return rc != EBADF; /* it is open; its file system cannot say more */
    return is.device == h->device && is.inode == h->inode;
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
