/* SPDX-License-Identifier: MIT */
/*
 * sys.c -- see sys.h; the only file that makes these system calls.
 */
#include <config.h>

#include "base/sys.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

/*
 * None of these is a cancellation point: a thread that is cancelled goes on until it is out
 * of the library, with its locks given back.
 */

/* hold_off -- no cancellation for a moment; ret for let_go. */
XAC_SIGSAFE static int
hold_off(void)
{
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

XAC_SIGSAFE static void
let_go(int state)
{
    (void)pthread_setcancelstate(state, NULL);
}

static int
sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    int state = hold_off();
    int rc = openat(dirfd, path, flags, mode);

    let_go(state);
    return rc;
}

static int
sys_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags,
                           .mode = (flags & O_CREAT) != 0 ? mode & 07777 : 0,
                           .resolve = resolve};

    return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

static int
sys_dup_above(int fd, int least)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, least);
}

static int
sys_close(int fd)
{
    int state = hold_off();
    int rc = close(fd);

    let_go(state);
    return rc;
}

static ssize_t
sys_read(int fd, void *buf, size_t n)
{
    int state = hold_off();
    ssize_t rc = read(fd, buf, n);

    let_go(state);
    return rc;
}

static ssize_t
sys_write(int fd, const void *buf, size_t n)
{
    int state = hold_off();
    ssize_t rc = write(fd, buf, n);

    let_go(state);
    return rc;
}

static ssize_t
sys_pread(int fd, void *buf, size_t n, off_t offset)
{
    int state = hold_off();
    ssize_t rc = pread(fd, buf, n, offset);

    let_go(state);
    return rc;
}

/*
 * A write or growth beyond the process's limit fails with EFBIG, and sends SIGXFSZ, which must not end
 * the process.  The signal waits until end_growth takes it: callers have blocked the signals, and for
 * those that have not, it alone is blocked.
 */
struct growth {
    int cancel;
    bool is_blocked; /* by us; mask is to be restored */
    sigset_t only, mask;
};

XAC_SIGSAFE static void
begin_growth(struct growth *g)
{
    g->cancel = hold_off();
    (void)sigemptyset(&g->only);
    (void)sigaddset(&g->only, SIGXFSZ);
    g->is_blocked =
        !xac_signals_are_blocked() && pthread_sigmask(SIG_BLOCK, &g->only, &g->mask) == 0;
}

XAC_SIGSAFE static void
end_growth(const struct growth *g, bool has_failed)
{
    static const struct timespec now = {.tv_sec = 0};
    int error = errno;

    if (has_failed && error == EFBIG)
        (void)sigtimedwait(&g->only, NULL, &now);
    if (g->is_blocked)
        (void)pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
    let_go(g->cancel);
    errno = error;
}

static ssize_t
sys_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    struct growth g;
    ssize_t rc;

    begin_growth(&g);
    rc = pwrite(fd, buf, n, offset);
    end_growth(&g, rc < 0);
    return rc;
}

static int
sys_fdatasync(int fd)
{
    int state = hold_off();
    int rc = fdatasync(fd);

    let_go(state);
    return rc;
}

static int
sys_fsync(int fd)
{
    int state = hold_off();
    int rc = fsync(fd);

    let_go(state);
    return rc;
}

static int
sys_sync_file_range(int fd, off_t offset, off_t n, unsigned flags)
{
    int state = hold_off();
    int rc = sync_file_range(fd, offset, n, flags);

    let_go(state);
    return rc;
}

static int
sys_fadvise(int fd, off_t offset, off_t n, int advice)
{
    int rc = posix_fadvise(fd, offset, n, advice);

    errno = rc;
    return rc == 0 ? 0 : -1;
}

static int
sys_fallocate(int fd, int mode, off_t offset, off_t length)
{
    struct growth g;
    int rc;

    begin_growth(&g);
    rc = fallocate(fd, mode, offset, length);
    end_growth(&g, rc < 0);
    return rc;
}

static int
sys_ftruncate(int fd, off_t length)
{
    struct growth g;
    int rc;

    begin_growth(&g);
    rc = ftruncate(fd, length);
    end_growth(&g, rc < 0);
    return rc;
}

#ifdef HAVE_STATX
# define sys_statx statx
#else
static int
sys_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *out)
{
    return (int)syscall(SYS_statx, dirfd, path, flags, mask, out);
}
#endif

static int
sys_fstat(int fd, struct stat *st)
{
    return fstat(fd, st);
}

static int
sys_fsetxattr(int fd, const char *name, const void *value, size_t n)
{
    return fsetxattr(fd, name, value, n, 0);
}

static int
sys_lock(int fd, int cmd, struct flock *lk)
{
    int state = hold_off();
    int rc = fcntl(fd, cmd, lk);

    let_go(state);
    return rc;
}

static void *
sys_mremap(void *from, size_t n, int flags, void *to)
{
    return mremap(from, n, n, flags, to);
}

/* Calls that the C library has no function for. */

static ssize_t
sys_process_madvise(int pidfd, const struct iovec *at, size_t n, int advice)
{
    return syscall(SYS_process_madvise, pidfd, at, n, advice, 0u);
}

static int
sys_rename_new(int dirfd, const char *from, int dirfd2, const char *to)
{
    return (int)syscall(SYS_renameat2, dirfd, from, dirfd2, to, RENAME_NOREPLACE);
}

static ssize_t
sys_getdents(int fd, void *buf, size_t n)
{
    return syscall(SYS_getdents64, fd, buf, n);
}

static int
sys_userfaultfd(int flags)
{
    return (int)syscall(SYS_userfaultfd, flags);
}

static int
sys_ioctl(int fd, unsigned long request, void *arg)
{
#ifdef __GLIBC__
    return ioctl(fd, request, arg);
#else /* musl takes an int, whose bits it gives to the kernel */
    return ioctl(fd, (int)request, arg);
#endif
}

static int
sys_io_uring_setup(unsigned n, void *params)
{
    return (int)syscall(SYS_io_uring_setup, n, params);
}

static int
sys_io_uring_register(int fd, unsigned what, const void *arg, unsigned n)
{
    return (int)syscall(SYS_io_uring_register, fd, what, arg, n);
}

struct xac_sys xac_sys = {
    .openat = sys_openat,
    .openat2 = sys_openat2,
    .dup_above = sys_dup_above,
    .close = sys_close,
    .read = sys_read,
    .write = sys_write,
    .pread = sys_pread,
    .pwrite = sys_pwrite,
    .fdatasync = sys_fdatasync,
    .fsync = sys_fsync,
    .sync_file_range = sys_sync_file_range,
    .ftruncate = sys_ftruncate,
    .fadvise = sys_fadvise,
    .fallocate = sys_fallocate,
    .fstat = sys_fstat,
    .statx = sys_statx,
    .fstatfs = fstatfs,
    .fchmod = fchmod,
    .fchown = fchown,
    .fgetxattr = fgetxattr,
    .fsetxattr = sys_fsetxattr,
    .fremovexattr = fremovexattr,
    .renameat = renameat,
    .rename_new = sys_rename_new,
    .unlinkat = unlinkat,
    .mkdirat = mkdirat,
    .readlinkat = readlinkat,
    .getdents = sys_getdents,
    .memfd_create = memfd_create,
    .lock = sys_lock,
    .mmap = mmap,
    .munmap = munmap,
    .mremap = sys_mremap,
    .mprotect = mprotect,
    .madvise = madvise,
    .process_madvise = sys_process_madvise,
    .userfaultfd = sys_userfaultfd,
    .ioctl = sys_ioctl,
    .io_uring_setup = sys_io_uring_setup,
    .io_uring_register = sys_io_uring_register,
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

XAC_SIGSAFE int
xac_write_part(int fd, const void *buf, size_t n, uint64_t offset, size_t *donep)
{
    const char *from = (const char *)buf;

    *donep = 0;
    while (*donep < n) {
        ssize_t w =
            xac_sys.pwrite(fd, from + *donep, n - *donep, (off_t)(offset + *donep));

        if (w < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (w == 0)
            return EIO;
        *donep += (size_t)w;
    }
    return 0;
}

XAC_SIGSAFE int
xac_write_full(int fd, const void *buf, size_t n, uint64_t offset)
{
    size_t done;

    return xac_write_part(fd, buf, n, offset, &done);
}

/* open_memory -- of this process; -1 with errno. */
XAC_SIGSAFE static int
open_memory(void)
{
    return xac_sys.openat(AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
}

XAC_SIGSAFE int
xac_poke(void *to, const void *bytes, size_t n)
{
    int fd = open_memory(), rc;

    if (fd < 0)
        return errno;
    rc = xac_write_full(fd, bytes, n, (uint64_t)(uintptr_t)to);
    (void)xac_sys.close(fd);
    return rc;
}

int
xac_poke_works(void)
{
    int fd = open_memory();

    if (fd < 0)
        return errno;
    (void)xac_sys.close(fd);
    return 0;
}

void
xac_close_fd(int *fdp)
{
    if (*fdp >= 0)
        (void)xac_sys.close(*fdp);
    *fdp = -1;
}

int
xac_allocate(int fd, uint64_t offset, uint64_t n)
{
    xac_assert(n > 0);
    while (xac_sys.fallocate(fd, 0, (off_t)offset, (off_t)n) != 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

int
xac_sync_dir(int dirfd)
{
    return xac_sys.fsync(dirfd) == 0 ? 0 : errno;
}

int
xac_sync_parent(int dirfd, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int rc, fd;

    if (dir == NULL)
        return ENOMEM;
    fd = xac_sys.openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    rc = fd < 0 ? errno : xac_sync_dir(fd);
    if (fd >= 0)
        (void)xac_sys.close(fd);
    free(dir);
    return rc;
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

void
xac_sleep_ns(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    int state = hold_off();

    (void)nanosleep(&ts, NULL);
    let_go(state);
}
