/* SPDX-License-Identifier: MIT */
/*
 * log_keep.c -- see log_keep.h.
 */
#include <config.h>

#include "log/log_keep.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"

#define NEW_NAME XAC_LOG_KEPT "-new"

static const char text[] =
    "Log that libxac does not need any more is kept, for xArchive() and xarchive(1).\n"
    "It is used again once this file is removed.\n";

bool
xac_log_is_kept(int dirfd)
{
    struct statx st;

    xac_assert(dirfd >= 0);
    return xac_sys.statx(dirfd, XAC_LOG_KEPT, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0
           || errno != ENOENT;
}

int
xac_log_keep(int dirfd, bool is_kept, bool *changedp)
{
    struct xac_newfile f = {.dirfd = dirfd,
                            .made = NEW_NAME,
                            .name = XAC_LOG_KEPT,
                            .is_synced = true};
    bool is_changed = xac_log_is_kept(dirfd) != is_kept;
    int rc = 0;

    xac_assert(dirfd >= 0);
    if (is_changed && is_kept)
        rc = xac_newfile_replace(&f, text, strlen(text), NULL);
    else if (is_changed && xac_sys.unlinkat(dirfd, XAC_LOG_KEPT, 0) != 0
             && errno != ENOENT)
        rc = errno;
    /* Somebody else makes it, too, and one has taken the other's. */
    if ((rc == ENOENT || rc == EEXIST) && xac_log_is_kept(dirfd))
        rc = 0;
    /* The process that made it may have died before its name was durable. */
    if (rc == 0 && (is_kept || is_changed))
        rc = xac_sync_dir(dirfd);
    if (rc != 0)
        return xac_err(rc, "%s: %s", XAC_LOG_KEPT, is_kept ? "make" : "remove");
    if (changedp != NULL)
        *changedp = is_changed;
    return 0;
}
