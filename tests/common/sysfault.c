/* SPDX-License-Identifier: MIT */
/*
 * sysfault.c -- see sysfault.h.
 */
#include <config.h>

#include "sysfault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"

static struct {
    enum sysfault_what what;
    unsigned kinds;
    uint64_t n;
    int error;
    _Atomic uint64_t count;
    const char *hit;
} plan;

static struct xac_sys real;

/* fails -- count a call; true if it has to fail, errno is set then. */
static bool
fails(unsigned kind, const char *name)
{
    uint64_t n;

    if ((plan.kinds & kind) == 0)
        return false;
    n = atomic_fetch_add_explicit(&plan.count, 1, memory_order_relaxed) + 1;
    if (plan.what == SYSFAULT_COUNT || plan.what == SYSFAULT_SHORT || n < plan.n
        || (n > plan.n && plan.what != SYSFAULT_FAIL_ALL))
        return false;
    if (plan.what == SYSFAULT_DIE)
        (void)kill(getpid(), SIGKILL);
    if (plan.hit == NULL)
        plan.hit = name;
    errno = plan.error;
    return true;
}

static int
fault_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return fails(SYSFAULT_FILES | SYSFAULT_OPEN, "openat")
               ? -1
               : real.openat(dirfd, path, flags, mode);
}

static int
fault_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    return fails(SYSFAULT_FILES | SYSFAULT_OPEN, "openat2")
               ? -1
               : real.openat2(dirfd, path, flags, mode, resolve);
}

static int
fault_dup_above(int fd, int least)
{
    return fails(SYSFAULT_FILES | SYSFAULT_OPEN, "dup_above") ? -1
                                                              : real.dup_above(fd, least);
}

static int
fault_close(int fd)
{
    bool is_bad = fails(SYSFAULT_CLOSE, "close");
    int error = errno;
    int rc = real.close(fd);

    if (is_bad)
        errno = error;
    return is_bad ? -1 : rc;
}

static ssize_t
fault_read(int fd, void *buf, size_t n)
{
    return fails(SYSFAULT_FILES | SYSFAULT_DATA, "read") ? -1 : real.read(fd, buf, n);
}

static ssize_t
fault_write(int fd, const void *buf, size_t n)
{
    return fails(SYSFAULT_FILES | SYSFAULT_DATA, "write") ? -1 : real.write(fd, buf, n);
}

static ssize_t
fault_pread(int fd, void *buf, size_t n, off_t offset)
{
    return fails(SYSFAULT_FILES | SYSFAULT_DATA, "pread")
               ? -1
               : real.pread(fd, buf, n, offset);
}

static ssize_t
fault_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    uint64_t next = atomic_load_explicit(&plan.count, memory_order_relaxed) + 1;

    if (plan.what == SYSFAULT_DIE && (plan.kinds & SYSFAULT_FILES) != 0 && next == plan.n)
        (void)real.pwrite(fd, buf, n / 2, offset);
    if (fails(SYSFAULT_FILES | SYSFAULT_DATA, "pwrite"))
        return -1;
    if (plan.what == SYSFAULT_SHORT && next >= plan.n && n > 1)
        n = 1 + next % (n - 1);
    return real.pwrite(fd, buf, n, offset);
}

static int
fault_fdatasync(int fd)
{
    return fails(SYSFAULT_FILES | SYSFAULT_SYNCS, "fdatasync") ? -1 : real.fdatasync(fd);
}

static int
fault_fsync(int fd)
{
    return fails(SYSFAULT_FILES | SYSFAULT_SYNCS, "fsync") ? -1 : real.fsync(fd);
}

static int
fault_fadvise(int fd, off_t offset, off_t n, int advice)
{
    return fails(SYSFAULT_FILES, "fadvise") ? -1 : real.fadvise(fd, offset, n, advice);
}

static int
fault_sync_file_range(int fd, off_t offset, off_t n, unsigned flags)
{
    return fails(SYSFAULT_FILES, "sync_file_range")
               ? -1
               : real.sync_file_range(fd, offset, n, flags);
}

static int
fault_ftruncate(int fd, off_t length)
{
    return fails(SYSFAULT_FILES, "ftruncate") ? -1 : real.ftruncate(fd, length);
}

static int
fault_fallocate(int fd, int mode, off_t offset, off_t length)
{
    return fails(SYSFAULT_GROW | SYSFAULT_DATA, "fallocate")
               ? -1
               : real.fallocate(fd, mode, offset, length);
}

static int
fault_fstat(int fd, struct stat *st)
{
    return fails(SYSFAULT_FILES, "fstat") ? -1 : real.fstat(fd, st);
}

static int
fault_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *out)
{
    return fails(SYSFAULT_FILES, "statx") ? -1
                                          : real.statx(dirfd, path, flags, mask, out);
}

static int
fault_fstatfs(int fd, struct statfs *fs)
{
    return fails(SYSFAULT_FILES, "fstatfs") ? -1 : real.fstatfs(fd, fs);
}

static int
fault_fchmod(int fd, mode_t mode)
{
    return fails(SYSFAULT_FILES, "fchmod") ? -1 : real.fchmod(fd, mode);
}

static int
fault_fchown(int fd, uid_t uid, gid_t gid)
{
    return fails(SYSFAULT_FILES, "fchown") ? -1 : real.fchown(fd, uid, gid);
}

static ssize_t
fault_fgetxattr(int fd, const char *name, void *value, size_t n)
{
    return fails(SYSFAULT_FILES, "fgetxattr") ? -1 : real.fgetxattr(fd, name, value, n);
}

static int
fault_fsetxattr(int fd, const char *name, const void *value, size_t n)
{
    return fails(SYSFAULT_FILES, "fsetxattr") ? -1 : real.fsetxattr(fd, name, value, n);
}

static int
fault_fremovexattr(int fd, const char *name)
{
    return fails(SYSFAULT_FILES, "fremovexattr") ? -1 : real.fremovexattr(fd, name);
}

static int
fault_renameat(int dirfd, const char *from, int dirfd2, const char *to)
{
    return fails(SYSFAULT_FILES, "renameat") ? -1
                                             : real.renameat(dirfd, from, dirfd2, to);
}

static int
fault_rename_new(int dirfd, const char *from, int dirfd2, const char *to)
{
    return fails(SYSFAULT_FILES, "rename_new") ? -1
                                               : real.rename_new(dirfd, from, dirfd2, to);
}

static int
fault_unlinkat(int dirfd, const char *path, int flags)
{
    return fails(SYSFAULT_FILES, "unlinkat") ? -1 : real.unlinkat(dirfd, path, flags);
}

static int
fault_mkdirat(int dirfd, const char *path, mode_t mode)
{
    return fails(SYSFAULT_FILES, "mkdirat") ? -1 : real.mkdirat(dirfd, path, mode);
}

static int
fault_lock(int fd, int cmd, struct flock *lk)
{
    if (lk->l_type != F_UNLCK && fails(SYSFAULT_LOCK, "lock"))
        return -1;
    return real.lock(fd, cmd, lk);
}

static void *
fault_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
    return fails(SYSFAULT_MEMORY, "mmap") ? MAP_FAILED
                                          : real.mmap(addr, n, prot, flags, fd, offset);
}

static int
fault_munmap(void *addr, size_t n)
{
    bool is_bad = fails(SYSFAULT_CLOSE, "munmap");
    int error = errno;
    int rc = real.munmap(addr, n);

    if (is_bad)
        errno = error;
    return is_bad ? -1 : rc;
}

static void *
fault_mremap(void *from, size_t n, int flags, void *to)
{
    return fails(SYSFAULT_MEMORY, "mremap") ? MAP_FAILED
                                            : real.mremap(from, n, flags, to);
}

static int
fault_memfd_create(const char *name, unsigned flags)
{
    return fails(SYSFAULT_FILES | SYSFAULT_OPEN, "memfd_create")
               ? -1
               : real.memfd_create(name, flags);
}

static int
fault_mprotect(void *addr, size_t n, int prot)
{
    return fails(SYSFAULT_MEMORY, "mprotect") ? -1 : real.mprotect(addr, n, prot);
}

static int
fault_madvise(void *addr, size_t n, int advice)
{
    return fails(SYSFAULT_MEMORY, "madvise") ? -1 : real.madvise(addr, n, advice);
}

static ssize_t
fault_process_madvise(int pidfd, const struct iovec *at, size_t n, int advice)
{
    return fails(SYSFAULT_MEMORY, "process_madvise")
               ? -1
               : real.process_madvise(pidfd, at, n, advice);
}

static int
fault_userfaultfd(int flags)
{
    return fails(SYSFAULT_MEMORY, "userfaultfd") ? -1 : real.userfaultfd(flags);
}

static int
fault_ioctl(int fd, unsigned long request, void *arg)
{
    return fails(SYSFAULT_MEMORY, "ioctl") ? -1 : real.ioctl(fd, request, arg);
}

static int
fault_io_uring_setup(unsigned n, void *params)
{
    return fails(SYSFAULT_MEMORY, "io_uring_setup") ? -1 : real.io_uring_setup(n, params);
}

static int
fault_io_uring_register(int fd, unsigned what, const void *arg, unsigned n)
{
    return fails(SYSFAULT_MEMORY, "io_uring_register")
               ? -1
               : real.io_uring_register(fd, what, arg, n);
}

void
sysfault_arm(enum sysfault_what what, unsigned kinds, uint64_t n, int error)
{
    if (real.openat == NULL)
        real = xac_sys;
    plan.what = what;
    plan.kinds = kinds;
    plan.n = n;
    plan.error = error;
    plan.hit = NULL;
    atomic_store_explicit(&plan.count, 0, memory_order_relaxed);
    xac_sys = (struct xac_sys){
        .openat = fault_openat,
        .openat2 = fault_openat2,
        .dup_above = fault_dup_above,
        .close = fault_close,
        .read = fault_read,
        .write = fault_write,
        .pread = fault_pread,
        .pwrite = fault_pwrite,
        .fdatasync = fault_fdatasync,
        .fsync = fault_fsync,
        .fadvise = fault_fadvise,
        .sync_file_range = fault_sync_file_range,
        .ftruncate = fault_ftruncate,
        .fallocate = fault_fallocate,
        .fstat = fault_fstat,
        .statx = fault_statx,
        .fstatfs = fault_fstatfs,
        .fchmod = fault_fchmod,
        .fchown = fault_fchown,
        .fgetxattr = fault_fgetxattr,
        .fsetxattr = fault_fsetxattr,
        .fremovexattr = fault_fremovexattr,
        .renameat = fault_renameat,
        .rename_new = fault_rename_new,
        .unlinkat = fault_unlinkat,
        .mkdirat = fault_mkdirat,
        .memfd_create = fault_memfd_create,
        .lock = fault_lock,
        .mmap = fault_mmap,
        .munmap = fault_munmap,
        .mremap = fault_mremap,
        .mprotect = fault_mprotect,
        .madvise = fault_madvise,
        .process_madvise = fault_process_madvise,
        .userfaultfd = fault_userfaultfd,
        .ioctl = fault_ioctl,
        .io_uring_setup = fault_io_uring_setup,
        .io_uring_register = fault_io_uring_register,
    };
}

void
sysfault_disarm(void)
{
    if (real.openat != NULL)
        xac_sys = real;
}

uint64_t
sysfault_count(void)
{
    return atomic_load_explicit(&plan.count, memory_order_relaxed);
}

const char *
sysfault_hit(void)
{
    return plan.hit;
}
