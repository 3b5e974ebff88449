/* SPDX-License-Identifier: MIT */
/*
 * newfile.h -- every file that the library makes: its owner, group and mode.
 *
 * WHAT      Files of an environment are made here and nowhere else, with owner, group and
 *           mode of struct xac_owner.  These are the ones of the master record, which got
 *           them from the directory or from XAC_OPT_MODE.  The umask has no effect.
 * NOT HERE  Data files that a user maps: they belong to the user, and the umask applies, see
 *           xac_newfile_widen.  Opening a file by a name that was read from a file (stored.h).
 * THREADS   Any.  Functions that are XAC_SIGSAFE note no text.
 *
 * INVARIANTS
 *   (1) The owner of a directory may read and write the files made for it.  The group and all
 *       others may do so if they may read, write and search the directory, and it is not sticky
 *       (in a sticky directory they cannot replace a file); otherwise they may do nothing.
 *   (2) Until a new file has its group, only its maker may open it: never more users may open
 *       it than in the end.  If it cannot get the group, its group may do no more than all
 *       others.
 *   (3) If another user has put something in the place of a new file, it is not opened, followed
 *       or emptied: the name is unlinked, and the file made under it is new.
 *   (4) The final name of a replaced file always belongs to the old file or to the new one, and
 *       each is complete; also after a power cut if the file is synced.
 */
#ifndef XAC_NEWFILE_H
#define XAC_NEWFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/annot.h"

struct xac_owner {
    uid_t uid;
    gid_t gid;
    mode_t mode; /* reading and writing only: 0600 to 0666                            */
};

/* A file that is made under one name and gets another when it is complete. */
struct xac_newfile {
    int dirfd;
    const char *made; /* the name until then; a file of this name is removed          */
    const char *name;
    const struct xac_owner *owner; /* NULL: as xac_owner_get says                     */
    bool is_synced; /* before it gets the name, and the directory afterwards          */
};

/*
 * xac_owner_get -- of files in a directory of an environment: those of its master record, in a
 * directory of the log those of the mark; without either, those that the directory asks for.
 *
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_owner_get(int dirfd, struct xac_owner *out);

/* xac_owner_of_dir -- those that invariant (1) gives for a directory; ret 0 or errno. */
XAC_SIGSAFE int xac_owner_of_dir(int dirfd, struct xac_owner *out);

/* xac_owner_of_file -- of a copy of an open file; ret 0 or errno. */
int xac_owner_of_file(int fd, struct xac_owner *out);

/*
 * xac_owner_get_shared -- of files that all participants write, like the control region: the same,
 * without users that may only read.
 */
XAC_SIGSAFE int xac_owner_get_shared(int dirfd, struct xac_owner *out);

/* xac_owner_mode_ok -- may a user ask for such a mode?  0600 and more, no execution; no right to
   write without the right to read. */
bool xac_owner_mode_ok(uint64_t mode);

/*
 * xac_owner_set_mode -- set the mode of files that will be made in the directory of an environment.
 *
 * ret  0; ENOENT if the directory has no file that keeps the mode; EPERM if this file belongs to
 *      another user; other errno values.
 */
int xac_owner_set_mode(int dirfd, mode_t mode);

/*
 * xac_newfile_make -- make a file, open for reading and writing.
 *
 * ret  0; EEXIST if there is one; other errno values, and nothing is left.
 */
XAC_SIGSAFE int xac_newfile_make(int dirfd, const char *path, const struct xac_owner *o,
                                 int *fdp);

/*
 * xac_newfile_remake -- the same, after a file of that name has been unlinked.
 *
 * ret  as xac_newfile_make.
 */
int xac_newfile_remake(int dirfd, const char *path, const struct xac_owner *o, int *fdp);

/*
 * xac_newfile_open -- open a file for reading and writing; make it if there is none.
 *
 * ret  0; ELOOP if it is a symbolic link; EINVAL if it is no regular file; other errno
 *      values.
 */
XAC_SIGSAFE int xac_newfile_open(int dirfd, const char *path, const struct xac_owner *o,
                                 int *fdp);

/*
 * xac_newfile_widen -- let the participants of an environment open a file that was made for a
 * user, with the user's umask; its group becomes the environment's.
 *
 * ret  0 or errno.
 */
int xac_newfile_widen(int fd, const struct xac_owner *o);

/*
 * xac_newfile_replace -- make a file with these bytes, in place of the file of this name.
 *
 * out  fdp  the file, for reading and writing; NULL: not wanted
 * ret  0 or errno.  If only the last sync has failed, the file already has the name.
 */
int xac_newfile_replace(const struct xac_newfile *f, const void *bytes, size_t n,
                        int *fdp);

/*
 * xac_newdir_make -- make a directory with owner, group and mode of another one.
 *
 * ret  0; EEXIST if there is something; other errno values, and nothing is left.
 */
int xac_newdir_make(int dirfd, const char *path, int like);

#endif /* XAC_NEWFILE_H */
