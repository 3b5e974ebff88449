/* SPDX-License-Identifier: MIT */
/*
 * log_state.c -- see log_state.h.
 */
#include <config.h>

#include "log/log_state.h"

#include <errno.h>

#include "base/sys.h"

/* No segment has this LSN: nothing has failed. */
#define NEVER_FAILED UINT64_MAX

int
xac_log_mend(struct xac_log *log)
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
    return xac_handle_is_ours(fd, &log->dir) ? fd : xac_log_mend(log);
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
