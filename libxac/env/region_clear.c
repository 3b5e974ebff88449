/* SPDX-License-Identifier: MIT */
/*
 * region_clear.c -- see region_clear.h.
 */
#include <config.h>

#include "env/region_clear.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/sys.h"
#include "log/recover_scan.h"
#include "shared/region.h"
#include "store/outofcore.h"
#include "store/version.h"

void
xac_region_remove(int dirfd, const char *path)
{
    if (!xac_region_is_path(path))
        return;
    xac_buffers_remove(dirfd, path);
    xac_buffers_remove_second(dirfd, path);
    xac_outofcore_remove(dirfd, path);
    (void)xac_sys.unlinkat(dirfd, path, 0);
}

/* clear_orphan -- for xac_region_scan and xac_scan_names: a region of the directory with the
   descriptor *arg, or a copy of one that lies in it. */
static int
clear_orphan(void *arg, const char *path)
{
    const int *dirfd = (const int *)arg;
    struct xac_region_info info;

    if (!xac_region_is_path(path) || xac_region_look(*dirfd, path, &info) != 0)
        return 0;
    if (info.use == XAC_REGION_UNUSED
        && (xac_region_is_home(&info, *dirfd)
            || (path[0] != '/' && info.kind != XAC_REGION_OTHER)))
        xac_region_remove(*dirfd, path);
    xac_region_info_fini(&info);
    return 0;
}

/* clear_named -- the region that the lock file names, and the part of it that lies in the
   directory, which is ours even if the rest is gone, or another environment's. */
static void
clear_named(int dirfd, const char *path)
{
    struct xac_region_info info;

    if (!xac_region_is_path(path) || xac_region_look(dirfd, path, &info) != 0)
        return;
    if (xac_region_is_home(&info, dirfd))
        xac_region_remove(dirfd, path);
    else if (info.kind == XAC_REGION_NONE || info.kind == XAC_REGION_OURS)
        xac_buffers_remove_second(dirfd, path);
    xac_region_info_fini(&info);
}

void
xac_region_clear(int dirfd, int lockfd)
{
    char *named = xac_region_path(lockfd);

    if (named != NULL)
        clear_named(dirfd, named);
    (void)xac_region_scan(xac_region_shm_dir(), clear_orphan, &dirfd);
    (void)xac_scan_names(dirfd, XAC_REGION_PREFIX, clear_orphan, &dirfd);
    free(named);
}
