/* SPDX-License-Identifier: MIT */
/*
 * rawfile.c -- see rawfile.h.
 */
#include <config.h>

#include "base/rawfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/annot.h"
#include "base/sys.h"

int
xac_rawfile_open(struct xac_rawfile *f, int dirfd, const char *name)
{
    struct stat st;
    int rc;

    xac_assert(strlen(name) < sizeof f->name);
    f->dirfd = dirfd;
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->fd = xac_open_read_uncached(dirfd, name, &f->direct);
    if (f->fd < 0)
        return errno;
    if (xac_sys.fstat(f->fd, &st) != 0) {
        rc = errno;
        xac_rawfile_close(f);
        return rc;
    }
    f->size = (uint64_t)st.st_size;
    return 0;
}

/* reopen_cached -- the device wants another alignment than ours: give up O_DIRECT. */
static int
reopen_cached(struct xac_rawfile *f)
{
    int fd = xac_sys.openat(f->dirfd, f->name, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    (void)xac_sys.close(f->fd);
    f->fd = fd;
    f->direct = false;
    return 0;
}

int
xac_rawfile_read(struct xac_rawfile *f, void *buf, size_t n, uint64_t offset,
                 size_t *gotp)
{
    uint8_t *to = (uint8_t *)buf;
    size_t got = 0;

    xac_assert(f->fd >= 0);
    xac_assert(((uintptr_t)buf | n | offset) % XAC_RAWFILE_ALIGN == 0);
    while (got < n) {
        ssize_t r = xac_sys.pread(f->fd, to + got, n - got, (off_t)(offset + got));

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno == EINVAL && f->direct) {
            int rc = reopen_cached(f);

            if (rc != 0)
                return rc;
            continue;
        }
        if (r < 0)
            return errno;
        got += (size_t)r;
        /* A direct read that ends off the grid has met the end of the file; going on
           from there would be a misaligned read. */
        if (r == 0 || (f->direct && got % XAC_RAWFILE_ALIGN != 0))
            break;
    }
    memset(to + got, 0, n - got);
    *gotp = got;
    return 0;
}

void
xac_rawfile_close(struct xac_rawfile *f)
{
    if (f->fd >= 0)
        (void)xac_sys.close(f->fd);
    f->fd = -1;
}

void *
xac_rawfile_buffer(size_t n)
{
    void *p = NULL;

    return posix_memalign(&p, XAC_RAWFILE_ALIGN, n) == 0 ? p : NULL;
}
