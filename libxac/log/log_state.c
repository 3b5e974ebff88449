/* SPDX-License-Identifier: MIT */
/*
 * log_state.c -- see log_state.h.
 */
#include <config.h>

#include "log/log_state.h"

#include <errno.h>

#include "base/sys.h"
#include "log/log_name.h"

/* No segment has this LSN: nothing has failed. */
#define NEVER_FAILED UINT64_MAX

/* mend -- a descriptor has been lost; ret as struct xac_log's mend. */
static int
mend(struct xac_log *log)
{
    int fd = -1;

    xac_assert(log->sh != NULL);
    errno = EBADF;
    if (log->mend != NULL)
        fd = log->mend(log->mend_arg);
    if (fd >= 0)
        atomic_store_explicit(&log->dirfd, fd, memory_order_relaxed);
    return fd;
}

int
xac_log_dir(struct xac_log *log)
{
    int fd = atomic_load_explicit(&log->dirfd, memory_order_relaxed);

    xac_assert(log->sh != NULL);
    return xac_handle_is_ours(fd, &log->dir) ? fd : mend(log);
}

int
xac_log_segment_fd(struct xac_log *log, uint64_t number)
{
    int i = (int)(number % 2);
    struct xac_handle *seg = &log->seg[i];
    bool is_same = log->seg_no[i] == number && seg->inode != 0;
    int old = log->seg_fd[i], dirfd;
    char name[XAC_LOG_NAME_MAX];

    xac_assert(number != 0);
    if (is_same && xac_handle_is_ours(old, seg))
        return old;
    xac_handle_close(old, seg);
    log->seg_fd[i] = -1;
    log->started = 0;
    dirfd = is_same ? mend(log) : xac_log_dir(log);
    if (dirfd < 0)
        return -1;
    xac_log_segment_name(name, number);
    if (is_same) {
        log->seg_fd[i] = xac_handle_again(-1, seg, dirfd, name, O_WRONLY | O_NOFOLLOW);
        return log->seg_fd[i];
    }
    log->seg_no[i] = number;
    *seg = (struct xac_handle){.inode = 0};
    log->seg_fd[i] =
        xac_handle_keep(xac_sys.openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0),
                        seg);
    xac_assert(log->seg_no[i] == number);
    return log->seg_fd[i];
}

void
xac_log_fds_reserve(struct xac_log *log)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: which segment is a guess. */
    uint64_t lsn = atomic_load_explicit(&sh->durable, memory_order_relaxed);
    uint64_t number = xac_log_segment_of(lsn, sh->segment_bytes);
    int i = (int)((number + 1) % 2);

    xac_assert(sh->segment_bytes != 0);
    (void)xac_log_segment_fd(log, number);
    log->seg_no[i] = 0;
    log->seg_fd[i] =
        xac_handle_keep(xac_sys.openat(xac_log_dir(log), ".",
                                       O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0),
                        &log->seg[i]);
}

int
xac_log_state_init(struct xac_log *log, struct xac_log_shared *sh, uint8_t *ring,
                   int dirfd)
{
    struct stat st;

    xac_assert(sh != NULL);
    xac_assert(ring != NULL);
    xac_assert(dirfd >= 0);
    *log = (struct xac_log){.sh = sh, .ring = ring, .seg_fd = {-1, -1}};
    atomic_init(&log->dirfd, dirfd);
    atomic_init(&log->ahead_failed, NEVER_FAILED);
    if (xac_sys.fstat(dirfd, &st) != 0)
        return errno;
    log->dir = (struct xac_handle){.device = st.st_dev, .inode = st.st_ino};
    return 0;
}

void
xac_log_detach(struct xac_log *log)
{
    for (int i = 0; i < 2; i++) {
        xac_handle_close(log->seg_fd[i], &log->seg[i]);
        log->seg_fd[i] = -1;
    }
    xac_assert(log->seg_fd[0] == -1);
    xac_assert(log->seg_fd[1] == -1);
}
