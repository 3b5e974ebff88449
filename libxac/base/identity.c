/* SPDX-License-Identifier: MIT */
/*
 * identity.c -- see identity.h.
 */
#include <config.h>

#include "base/identity.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/sys.h"

XAC_SIGSAFE static int
identity_get(int dirfd, const char *path, int flags, struct xac_identity *out)
{
    struct statx st;

    *out = (struct xac_identity){.inode = 0};
    if (xac_sys.statx(dirfd, path, flags, STATX_INO | STATX_BTIME, &st) != 0)
        return errno;
    *out = (struct xac_identity){
        .device = makedev(st.stx_dev_major, st.stx_dev_minor),
        .inode = st.stx_ino,
    };
    if ((st.stx_mask & STATX_BTIME) != 0)
        out->birth_ns =
            (uint64_t)st.stx_btime.tv_sec * UINT64_C(1000000000) + st.stx_btime.tv_nsec;
    return 0;
}

XAC_SIGSAFE int
xac_identity_of(int fd, struct xac_identity *out)
{
    return identity_get(fd, "", AT_EMPTY_PATH, out);
}

int
xac_identity_at(int dirfd, const char *path, struct xac_identity *out)
{
    return identity_get(dirfd, path, AT_SYMLINK_NOFOLLOW, out);
}

bool
xac_identity_is_same(const struct xac_identity *a, const struct xac_identity *b)
{
    return a->inode == b->inode
           && (a->birth_ns == 0 || b->birth_ns == 0 || a->birth_ns == b->birth_ns);
}

int
xac_identity_check(int dirfd, const char *path, const struct xac_identity *who)
{
    struct xac_identity is;
    int rc = xac_identity_at(dirfd, path, &is);

    xac_assert(path[0] != '\0');
    if (rc == 0 && (is.device != who->device || !xac_identity_is_same(&is, who)))
        rc = ESTALE;
    return rc;
}
