/* SPDX-License-Identifier: MIT */
/*
 * sys.h -- the system calls, which tests can replace.
 *
 * WHAT      Every system call of the library that touches files or mappings goes
 *           through the table xac_sys, so that tests can make the n-th call fail or
 *           simulate a disk.  Errors are errno, as in libc.  None is a cancellation
 *           point: a cancelled thread leaves the library before it ends.
 * THREADS   the table is changed by tests only, before threads start.
 */
#ifndef XAC_SYS_H
#define XAC_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef HAVE_STATX /* older versions of musl: the kernel's structure */
# include <linux/stat.h>
#endif

#include "base/annot.h"

struct xac_sys {
    int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
    /* openat2(2): resolve is RESOLVE_...; ENOSYS before Linux 5.6. */
    int (*openat2)(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve);
    int (*dup_above)(int fd, int least); /* close-on-exec, at or above `least`         */
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *buf, size_t n); /* of pipes, like write              */
    ssize_t (*write)(int fd, const void *buf, size_t n);
    ssize_t (*pread)(int fd, void *buf, size_t n, off_t offset);
    ssize_t (*pwrite)(int fd, const void *buf, size_t n, off_t offset);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*sync_file_range)(int fd, off_t offset, off_t n, unsigned flags);
    int (*ftruncate)(int fd, off_t length);
    int (*fadvise)(int fd, off_t offset, off_t n, int advice);
    int (*fallocate)(int fd, int mode, off_t offset, off_t length);
    int (*fstat)(int fd, struct stat *st);
    int (*statx)(int dirfd, const char *path, int flags, unsigned mask,
                 struct statx *out);
    int (*fstatfs)(int fd, struct statfs *fs);
    int (*fchmod)(int fd, mode_t mode);
    int (*fchown)(int fd, uid_t uid, gid_t gid);
    ssize_t (*fgetxattr)(int fd, const char *name, void *value, size_t n);
    int (*fsetxattr)(int fd, const char *name, const void *value, size_t n);
    int (*fremovexattr)(int fd, const char *name);
    int (*renameat)(int dirfd, const char *from, int dirfd2, const char *to);
    /* renameat2(2): RENAME_NOREPLACE. */
    int (*rename_new)(int dirfd, const char *from, int dirfd2, const char *to);
    int (*unlinkat)(int dirfd, const char *path, int flags);
    int (*mkdirat)(int dirfd, const char *path, mode_t mode);
    ssize_t (*readlinkat)(int dirfd, const char *path, char *text, size_t n);
    ssize_t (*getdents)(int fd, void *buf, size_t n); /* struct dirent64, many          */
    int (*memfd_create)(const char *name, unsigned flags);
    int (*lock)(int fd, int cmd, struct flock *lk); /* fcntl F_OFD_... */
    void *(*mmap)(void *addr, size_t n, int prot, int flags, int fd, off_t offset);
    int (*munmap)(void *addr, size_t n);
    void *(*mremap)(void *from, size_t n, int flags, void *to);
    int (*mprotect)(void *addr, size_t n, int prot);
    int (*madvise)(void *addr, size_t n, int advice);
    ssize_t (*process_madvise)(int pidfd, const struct iovec *at, size_t n, int advice);
    int (*userfaultfd)(int flags);
    int (*ioctl)(int fd, unsigned long request, void *arg); /* userfaultfd, pagemap */
    int (*io_uring_setup)(unsigned n, void *params); /* struct io_uring_params *        */
    int (*io_uring_register)(int fd, unsigned what, const void *arg, unsigned n);
};

extern struct xac_sys xac_sys;

/*
 * xac_read_full -- pread until n bytes or the end of the file.
 *
 * out  gotp  bytes read; the rest of buf is zeroed
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_read_full(int fd, void *buf, size_t n, uint64_t offset, size_t *gotp);

/*
 * xac_write_full -- pwrite all n bytes.
 * xac_write_part -- the same; out *donep: bytes written, n if it succeeds.
 *
 * ret  0 or errno; a write that makes no progress is EIO.
 */
XAC_SIGSAFE int xac_write_full(int fd, const void *buf, size_t n, uint64_t offset);
XAC_SIGSAFE int xac_write_part(int fd, const void *buf, size_t n, uint64_t offset,
                               size_t *donep);

/*
 * xac_poke -- store n bytes in memory of this process, whatever protection it has: in a private mapping of
 * a file that the program must not see half written.  By /proc/self/mem, which is opened for each
 * call, so that no descriptor can be lost.
 * xac_poke_works -- could that be opened?  ret 0 or errno.
 *
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_poke(void *to, const void *bytes, size_t n);
int xac_poke_works(void);

/* xac_close_fd -- what may be open: -1 is not. */
void xac_close_fd(int *fdp);

/* xac_allocate -- fallocate n bytes, again when a signal comes: memory is given in pieces, with a look for
   signals.  ret 0 or errno. */
int xac_allocate(int fd, uint64_t offset, uint64_t n);

/* xac_sleep_ns -- sleep for ns, or until a signal comes; no cancellation point. */
void xac_sleep_ns(uint64_t ns);

/* xac_sync_dir -- fsync the directory; ret 0 or errno. */
int xac_sync_dir(int dirfd);

/* xac_sync_parent -- fsync the directory that a path, relative to dirfd, ends in; ret 0 or
   errno. */
int xac_sync_parent(int dirfd, const char *path);

/*
 * xac_open_read_uncached -- open for reading past the page cache.
 *
 * Tries O_DIRECT; where the file system has none, an ordinary descriptor.
 *
 * out  directp  true if reads must be aligned (4096 bytes) in buffer, size and offset
 * ret  descriptor, or -1 with errno.
 */
int xac_open_read_uncached(int dirfd, const char *path, bool *directp);

#endif /* XAC_SYS_H */
