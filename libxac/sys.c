/* SPDX-License-Identifier: MIT */
/*
 * sys.c -- see sys.h; the only file that makes these system calls.
 */
#include <config.h>

#include "sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int
sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return openat(dirfd, path, flags, mode);
}

static int
sys_fstat(int fd, struct stat *st)
{
    return fstat(fd, st);
}

static int
sys_lock(int fd, int cmd, struct flock *lk)
{
    return fcntl(fd, cmd, lk);
}

struct xac_sys xac_sys = {
    .openat = sys_openat,
    .close = close,
    .pread = pread,
    .pwrite = pwrite,
    .fdatasync = fdatasync,
    .fsync = fsync,
    .sync_file_range = sync_file_range,
    .ftruncate = ftruncate,
    .fallocate = fallocate,
    .fstat = sys_fstat,
    .renameat = renameat,
    .unlinkat = unlinkat,
    .mkdir = mkdir,
    .memfd_create = memfd_create,
    .lock = sys_lock,
    .mmap = mmap,
    .munmap = munmap,
    .mprotect = mprotect,
    .madvise = madvise,
};

XAC_SIGSAFE int
xac_read_full(int fd, void *buf, size_t n, uint64_t offset, size_t *gotp)
{
    size_t got = 0;
    char *to = (char *)buf;

    xac_assert(gotp != NULL);
    while (got < n) {
        ssize_t r = xac_sys.pread(fd, to + got, n - got, (off_t)(offset + got));

        if (r < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (r == 0)
            break;
        got += (size_t)r;
    }
    memset(to + got, 0, n - got);
    *gotp = got;
    return 0;
}

int
xac_write_full(int fd, const void *buf, size_t n, uint64_t offset)
{
    const char *from = (const char *)buf;

    while (n > 0) {
        ssize_t w = xac_sys.pwrite(fd, from, n, (off_t)offset);

        if (w < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (w == 0)
            return EIO;
        from += w;
        n -= (size_t)w;
        offset += (uint64_t)w;
    }
    return 0;
}

int
xac_sync_dir(int dirfd)
{
    return xac_sys.fsync(dirfd) == 0 ? 0 : errno;
}

int
xac_open_read_uncached(int dirfd, const char *path, bool *directp)
{
    int fd = xac_sys.openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_DIRECT, 0);

    xac_assert(directp != NULL);
    *directp = fd >= 0;
    if (fd < 0 && errno == EINVAL)
        fd = xac_sys.openat(dirfd, path, O_RDONLY | O_CLOEXEC, 0);
    return fd;
}
