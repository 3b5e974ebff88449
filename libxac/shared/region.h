/* SPDX-License-Identifier: MIT */
/*
 * region.h -- the control region as a file: its name, whose it is, and what is left of it.
 *
 * WHAT      A region's file and those beside it (version.h, outofcore.h) are opened, removed
 *           and listed here only after it is known whose they are: a name in xac.lock may be
 *           that of another environment, of which the directory is a copy.
 * NOT HERE  What is in a region (layout.h); making one (env_enter.h).
 * LOCK      The gate, where it says so.
 *
 * INVARIANTS
 *   (1) A region belongs to the directory whose identity is in its head.  Nobody else removes
 *       it, but on a user's demand.
 *   (2) Who makes a region holds byte 0 of its file, and each participant the byte of its
 *       entry, as in xac.lock; a mapping keeps them even if all descriptors are closed.  So a
 *       region of which no byte is held for writing is mapped by nobody.  Only such a one is
 *       removed, and the one of an environment in which nobody takes part (it may still be
 *       mapped by children of the dead, who have not come yet).
 *   (3) What is attached is a regular file with one name, of root, of this user, of the
 *       directory's owner, or of one of those who may write the directory.
 *   (4) A region's path is absolute; or it is a bare name, and the file lies in the
 *       environment's directory, which may be renamed or mounted at another place.
 */
#ifndef XAC_REGION_H
#define XAC_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/annot.h"
#include "base/identity.h"

struct xac_env;

/* xac_region_shm_dir -- where regions are made, unless this fails for whatever reason. */
const char *xac_region_shm_dir(void);

/*
 * xac_region_room -- is there enough room there for a region that grows?
 *
 * A region that has been made cannot move.  Where there is little room for it, the environment's
 * directory is the better place, if it has more.
 * in   shm_dir  the directory for shared memory;  dirfd  of the environment
 * ret  0; errno: why the region should not be made in shm_dir.
 */
int xac_region_room(const char *shm_dir, int dirfd);

/* xac_region_path -- path of the control region, the first line of the lock file; to be
   freed; NULL with errno, ENOENT if there is none. */
char *xac_region_path(int lockfd);

/* xac_region_path_write -- name a region that is complete; gate held; ret 0 or errno. */
int xac_region_path_write(int lockfd, const char *path);

/* xac_region_path_new -- a fresh path in shm_dir; NULL: in the environment's directory.  To be
   freed; NULL with errno. */
char *xac_region_path_new(const char *shm_dir);

/* xac_region_is_path -- has it the form of a region's path? */
bool xac_region_is_path(const char *path);

/*
 * xac_region_trust -- may this open file be attached (invariant 3)?
 *
 * ret  0; XAC_EUNTRUSTED, or errno; without words.
 */
XAC_SIGSAFE int xac_region_trust(int dirfd, int fd);

/*
 * xac_region_open -- open a file that all participants write, which is there, or has been
 * removed since and is found in a participant (lost.h).
 *
 * in   dirfd  of the environment; a relative path is relative to it
 * ret  0; XAC_EUNTRUSTED, a symbolic link included; errno; without words.
 */
XAC_SIGSAFE int xac_region_open(int dirfd, const char *path, int *fdp);

/* What a user can do about a file of shared memory that is out of reach, for error messages. */
#define XAC_REGION_GONE                                                               \
 " is out of reach: it was removed (systemd-logind does that when the user logs out," \
 " unless RemoveIPC=no) and no process that has it open may be looked at, or the"     \
 " participants have another /dev/shm"

enum xac_region_kind {
    XAC_REGION_NONE,       /* no such file                                            */
    XAC_REGION_INCOMPLETE, /* no head: its maker is at work, or has died              */
    XAC_REGION_OTHER,      /* of another version, or of another build                 */
    XAC_REGION_OURS        /* of this version: what follows is known                  */
};

enum xac_region_use {
    XAC_REGION_UNUSED,
    XAC_REGION_USED,   /* somebody holds a byte                                       */
    XAC_REGION_UNKNOWN /* of a version whose participants may hold none               */
};

struct xac_region_info {
    enum xac_region_kind kind;
    enum xac_region_use use;
    uint32_t version;         /* 0 if there is no head                                */
    struct xac_identity home; /* of the environment's directory                       */
    char *dir;                /* its path when the region was made; owned; NULL       */
    uint64_t bytes;           /* of memory, with the files beside it                  */
    uid_t uid;
    uint64_t age_s; /* since it has been written to by a system call                  */
};

/*
 * xac_region_look -- whose is a region, and is it in use?
 *
 * in   dirfd  of the environment, for a bare name
 * out  info  to be given to xac_region_info_fini()
 * ret  0; errno values.
 */
int xac_region_look(int dirfd, const char *path, struct xac_region_info *info);
void xac_region_info_fini(struct xac_region_info *info);

/*
 * xac_region_attached -- as xac_attached() (lockfile.h); also finds those whose program has
 * closed all descriptors, as far as /proc may be looked at.
 *
 * ret  as xac_attached()
 */
int xac_region_attached(int dirfd, const char *dir, int lockfd);

/*
 * xac_region_scan -- call fn with the path of each region in a directory.
 *
 * ret  0, what fn returned if that was not 0, or errno.
 */
int xac_region_scan(const char *dir, int (*fn)(void *arg, const char *path), void *arg);

/* xac_region_is_home -- is a region of this directory, as far as one can tell? */
bool xac_region_is_home(const struct xac_region_info *info, int dirfd);

#endif /* XAC_REGION_H */
