/* SPDX-License-Identifier: MIT */
/*
 * stored.c -- see stored.h.
 */
#include <config.h>

#include "base/stored.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

bool
xac_stored_is_inside(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");

        if (n == 0 || (n == 1 && path[0] == '.')
            || (n == 2 && memcmp(path, "..", 2) == 0))
            return false;
        if (path[n] == '\0')
            return true;
        path += n + 1;
    }
}

/* walk -- component by component, for kernels without openat2; `path` is cut up. */
static int
walk(int dirfd, char *path, int flags)
{
    int at = dirfd;

    for (;;) {
        char *slash = strchr(path, '/');
        int next, error;

        if (slash != NULL)
            *slash = '\0';
        next =
            xac_sys.openat(at, path, (slash != NULL ? DIRECTORY : flags) | O_NOFOLLOW, 0);
        error = errno;
        if (at != dirfd)
            (void)xac_sys.close(at);
        errno = error;
        if (next < 0 || slash == NULL)
            return next;
        at = next;
        path = slash + 1;
    }
}

/* open_inside -- descriptor, or -1 with errno. */
static int
open_inside(int dirfd, const char *path, int flags)
{
    int fd =
        xac_sys.openat2(dirfd, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    char *copy;
    int error;

    /* Some filters of system calls say EPERM where the kernel would say ENOSYS. */
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    copy = strdup(path);
    if (copy == NULL)
        return -1;
    fd = walk(dirfd, copy, flags);
    error = errno;
    free(copy);
    errno = error;
    return fd;
}

int
xac_stored_open(int dirfd, const char *path, int flags, int *fdp)
{
    int fd, error;

    if (path[0] == '/') {
        fd = xac_sys.openat(AT_FDCWD, path, flags, 0);
    } else if (xac_stored_is_inside(path)) {
        fd = open_inside(dirfd, path, flags);
    } else {
        return xac_err(XAC_EDAMAGED, "%s: a stored path that leaves its directory", path);
    }
    if (fd >= 0) {
        *fdp = fd;
        return 0;
    }
    error = errno;
    if (error == ENOENT)
        return ENOENT;
    if (path[0] != '/' && (error == ELOOP || error == ENOTDIR))
        return xac_err(XAC_EUNTRUSTED, "%s: leads over a symbolic link or a file", path);
    return xac_err(error, "%s: open", path);
}

int
xac_stored_parent(int dirfd, const char *path, int *fdp, const char **namep)
{
    const char *slash = strrchr(path, '/');
    char *dir;
    int rc;

    if (path[0] != '/' && !xac_stored_is_inside(path))
        return xac_err(XAC_EDAMAGED, "%s: a stored path that leaves its directory", path);
    *namep = slash != NULL ? slash + 1 : path;
    if (slash == NULL) {
        *fdp = xac_sys.openat(dirfd, ".", DIRECTORY, 0);
        return *fdp >= 0 ? 0 : xac_err(errno, "%s: open its directory", path);
    }
    dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (dir == NULL)
        return xac_err(ENOMEM, "%s", path);
    rc = xac_stored_open(dirfd, dir, DIRECTORY, fdp);
    free(dir);
    return rc;
}
