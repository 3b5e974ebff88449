/* SPDX-License-Identifier: MIT */
/*
 * identity.h -- the identity of a file, which stays the same when its path changes.
 *
 * WHAT      Device, inode and time of birth.  A file system gives the inode of a removed
 *           file to the next one, often at once; the time of birth tells them apart.
 * NOT HERE  The path of a file, and which environment may use it.
 *
 * INVARIANTS
 *   (1) Two identities name the same file only if xac_identity_is_same() says so; devices
 *       do not count, since a device may have another number after the next boot.
 *   (2) birth_ns is 0 if the file system does not keep it.
 */
#ifndef XAC_IDENTITY_H
#define XAC_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

struct xac_identity {
    uint64_t device;   /* st_dev                                                      */
    uint64_t inode;    /* st_ino                                                      */
    uint64_t birth_ns; /* since 1970; 0 unknown                                       */
};

/* xac_identity_of -- of an open file or directory; ret 0 or errno.  It reads no time except the
   time of birth. */
XAC_SIGSAFE int xac_identity_of(int fd, struct xac_identity *out);

/*
 * xac_identity_at -- of the file with this name; links are not followed.
 *
 * ret  0 or errno.
 */
int xac_identity_at(int dirfd, const char *path, struct xac_identity *out);

/* xac_identity_check -- is it still the file with this name?  ret 0; ESTALE: another one is; errno. */
int xac_identity_check(int dirfd, const char *path, const struct xac_identity *who);

/* xac_identity_is_same -- the same file, as far as the file system can say. */
bool xac_identity_is_same(const struct xac_identity *a, const struct xac_identity *b);

#endif /* XAC_IDENTITY_H */
