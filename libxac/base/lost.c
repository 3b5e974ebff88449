/* SPDX-License-Identifier: MIT */
/*
 * lost.c -- see lost.h.
 *
 * No memory is taken, and little of the stack, for the fault handler may come here.
 */
#include <config.h>

#include "base/lost.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sys.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* What /proc appends to the path of a file that has been removed. */
#define REMOVED " (deleted)"

/* Of a path in /proc only the end is of interest, but it is given from the start. */
#define LINK_MAX 1024

/* A walk through the numbers in a directory of /proc. */
struct numbers {
    int fd;
    ssize_t got, at;
    _Alignas(struct dirent64) char entries[512];
};

/* next_number -- its name; NULL at the end, or if the process is gone. */
XAC_SIGSAFE static const char *
next_number(struct numbers *n)
{
    for (;;) {
        const struct dirent64 *e;

        if (n->at >= n->got) {
            n->got = xac_sys.getdents(n->fd, n->entries, sizeof n->entries);
            n->at = 0;
        }
        if (n->got <= 0)
            return NULL;
        e = (const struct dirent64 *)(const void *)(n->entries + n->at);
        n->at += e->d_reclen;
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            return e->d_name;
    }
}

/* is_it -- does a link in /proc/PID/fd lead to a removed file of this name? */
XAC_SIGSAFE static bool
is_it(int dirfd, const char *number, const char *name)
{
    char text[LINK_MAX];
    ssize_t got = xac_sys.readlinkat(dirfd, number, text, sizeof text);
    size_t n_name = strlen(name), n_end = strlen(REMOVED), n = (size_t)got;

    if (got <= 0 || n == sizeof text || n <= n_name + n_end)
        return false;
    return memcmp(text + n - n_end, REMOVED, n_end) == 0
           && memcmp(text + n - n_end - n_name, name, n_name) == 0
           && text[n - n_end - n_name - 1] == '/';
}

/* open_nameless -- by a link in /proc/PID/fd; -1 if it leads to another file by now. */
XAC_SIGSAFE static int
open_nameless(int dirfd, const char *number, int flags)
{
    int fd = xac_sys.openat(dirfd, number, flags, 0);
    struct stat st;

    if (fd < 0)
        return -1;
    if (xac_sys.fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0)
        return fd;
    (void)xac_sys.close(fd);
    return -1;
}

/* look_in -- at the descriptors of one process; -1: none is it. */
XAC_SIGSAFE static int
look_in(int proc, const char *pid, const char *name, int flags)
{
    struct numbers n = {.fd = -1};
    const char *number;
    int fd = -1;
    int of_pid = xac_sys.openat(proc, pid, DIRECTORY, 0);

    if (of_pid < 0)
        return -1;
    n.fd = xac_sys.openat(of_pid, "fd", DIRECTORY, 0);
    while (fd < 0 && n.fd >= 0 && (number = next_number(&n)) != NULL) {
        if (is_it(n.fd, number, name))
            fd = open_nameless(n.fd, number, flags);
    }
    if (n.fd >= 0)
        (void)xac_sys.close(n.fd);
    (void)xac_sys.close(of_pid);
    return fd;
}

XAC_SIGSAFE int
xac_lost_open(const char *path, int flags)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    struct numbers n = {.fd = xac_sys.openat(AT_FDCWD, "/proc", DIRECTORY, 0)};
    const char *pid;
    int fd = -1;

    while (fd < 0 && n.fd >= 0 && (pid = next_number(&n)) != NULL)
        fd = look_in(n.fd, pid, name, flags & ~O_NOFOLLOW);
    if (n.fd >= 0)
        (void)xac_sys.close(n.fd);
    if (fd < 0)
        errno = ENOENT;
    return fd;
}

XAC_SIGSAFE int
xac_lost_again(int fd, const struct xac_handle *h, int dirfd, const char *path)
{
    struct xac_handle found;

    fd = xac_handle_again(fd, h, dirfd, path, O_RDWR);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    fd = xac_handle_keep(xac_lost_open(path, O_RDWR | O_CLOEXEC), &found);
    if (fd < 0 || (found.device == h->device && found.inode == h->inode))
        return fd;
    xac_handle_close(fd, &found);
    errno = ESTALE;
    return -1;
}
