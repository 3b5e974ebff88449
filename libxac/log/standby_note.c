/* SPDX-License-Identifier: MIT */
/*
 * standby_note.c -- see standby_note.h.
 */
#include <config.h>

#include "log/standby_note.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"

static const char text[] =
    "xac-follow 1\n"
    "This is a standby of another environment.  xship receive takes log into it; xship\n"
    "promote makes it an environment of its own.\n";

int
xac_standby_note_write(int dirfd)
{
    struct xac_newfile file = {.dirfd = dirfd,
                               .made = XAC_FOLLOW_NAME "-new",
                               .name = XAC_FOLLOW_NAME,
                               .is_synced = true};
    int rc;

    xac_assert(dirfd >= 0);
    if (faccessat(dirfd, XAC_FOLLOW_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    rc = xac_newfile_replace(&file, text, sizeof text - 1, NULL);
    return rc == 0 ? 0 : xac_err(rc, "%s: write", XAC_FOLLOW_NAME);
}

int
xac_standby_note_remove(int dirfd)
{
    int rc;

    xac_assert(dirfd >= 0);
    /* The mark speaks of an earlier generation now. */
    if (xac_sys.unlinkat(dirfd, XAC_RECEIVED_NAME, 0) != 0 && errno != ENOENT)
        return xac_err(errno, "%s: remove", XAC_RECEIVED_NAME);
    rc = xac_sys.unlinkat(dirfd, XAC_FOLLOW_NAME, 0) == 0 ? 0 : errno;
    if (rc == ENOENT)
        return 0;
    if (rc == 0)
        rc = xac_sync_dir(dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s: remove", XAC_FOLLOW_NAME);
}

int
xac_standby_note_refuse(int dirfd)
{
    xac_assert(dirfd >= 0);
    if (faccessat(dirfd, XAC_FOLLOW_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return xac_err(
            XAC_ENOTLEADER,
            "%s: a standby of another environment, into which nobody receives "
            "now; start xship receive, or make it an environment of its own by "
            "xship promote",
            XAC_FOLLOW_NAME);
    return errno == ENOENT ? 0 : xac_err(errno, "%s", XAC_FOLLOW_NAME);
}
