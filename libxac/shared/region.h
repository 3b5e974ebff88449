/* SPDX-License-Identifier: MIT */
/*
 * region.h -- the control region as a file: its name, its owner, opening and removing it.
 *
 * WHAT      The file of a region and those beside it (version.h, outofcore.h) are opened,
 *           removed and listed here only after it is known which environment they belong to: if
 *           the directory is a copy, the name in xac.lock is that of the original's region.
 * NOT HERE  The contents of a region (layout.h); making one (env_enter.h).
 * LOCK      The gate, where it says so.
 *
 * INVARIANTS
 *   (1) A region belongs to the directory with the identity that is in its head.  Other
 *       environments do not remove it, except if the user asks for it.
 *   (2) The process that makes a region holds byte 0 of its file, and each participant holds the
 *       byte of its entry, as in xac.lock.  A mapping keeps these locks even if all descriptors
 *       are closed.  So if no byte is locked for writing, no process maps the region.  Only such
 *       a region is removed, and the region of an environment without participants (children of
 *       dead processes, which have not joined, may still map it).
 *   (3) Only a regular file with one name is attached, if its owner is root, this user, the
 *       owner of the directory, or a user that may write the directory.
 *   (4) The path of a region is absolute; or it is a name only, and the file lies in the
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

/* xac_region_shm_dir -- the directory in which regions are made, if that is possible. */
const char *xac_region_shm_dir(void);

/*
 * xac_region_room -- is there enough room there for a region that grows?
 *
 * A region cannot move later.  If there is little room in shm_dir, the environment's directory is
 * the better place, if it has more.
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

/* xac_region_is_path -- does it look like the path of a region? */
bool xac_region_is_path(const char *path);

/*
 * xac_region_trust -- may this open file be attached (invariant 3)?
 *
 * ret  0; XAC_EUNTRUSTED, or errno; without text.
 */
XAC_SIGSAFE int xac_region_trust(int dirfd, int fd);

/*
 * xac_region_open -- open a file that all participants write.  If it has been removed, it is
 * opened through a participant (lost.h).
 *
 * in   dirfd  of the environment; a relative path is relative to it
 * ret  0; XAC_EUNTRUSTED, also for a symbolic link; errno; without text.
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
    XAC_REGION_USED,   /* a process holds a byte                                      */
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
 * xac_region_look -- which environment does a region belong to, and is it in use?
 *
 * in   dirfd  of the environment, for a bare name
 * out  info  to be given to xac_region_info_fini()
 * ret  0; errno values.
 */
int xac_region_look(int dirfd, const char *path, struct xac_region_info *info);
void xac_region_info_fini(struct xac_region_info *info);

/*
 * xac_region_attached -- as xac_attached() (lockfile.h); also finds participants that have closed
 * all descriptors, as far as /proc may be read.
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

/* xac_region_is_home -- does a region belong to this directory, as far as is known? */
bool xac_region_is_home(const struct xac_region_info *info, int dirfd);

#endif /* XAC_REGION_H */
