/* SPDX-License-Identifier: MIT */
/*
 * newfile.h -- every file that the library makes: whose it is, and who may open it.
 *
 * WHAT      Files of an environment are made here and nowhere else, with owner, group and
 *           mode of struct xac_owner.  Those of an environment are the ones of its master
 *           record, which got them from the directory or from XAC_OPT_MODE.  The umask does
 *           not matter.
 * NOT HERE  Data files that a user maps: they are his, and his umask applies, see
 *           xac_newfile_widen.  Opening by a name that was read from a file (within).
 * THREADS   Any.  Functions that are XAC_SIGSAFE note no words.
 *
 * INVARIANTS
 *   (1) A directory's owner may read and write the files made for it; its group and
 *       all others may if they may read, write and search the directory, and not at all if
 *       they may not, or if the directory is sticky: there they cannot replace a file.
 *   (2) A new file is open to its maker only until it has its group: it is never
 *       open to more than it will be.  If the group cannot be given to it, the group that it
 *       has gets no more than all others have.
 *   (3) Nothing that somebody has put in the place of a new file is opened, followed or
 *       emptied: a name is unlinked, and the file made under it is new.
 *   (4) What has the final name of a replaced file is the old file or the new one as a whole,
 *       also after a power cut if it is synced.
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
    const char *made; /* the name until then; what has it is removed                  */
    const char *name;
    const struct xac_owner *owner; /* NULL: as xac_owner_get says                     */
    bool is_synced; /* before it gets the name, and the directory afterwards          */
};

/*
 * xac_owner_get -- of what is made in a directory of an environment: as its master record,
 * in a directory of the log as the mark; if there is neither, as the directory says.
 *
 * ret  0 or errno.
 */
XAC_SIGSAFE int xac_owner_get(int dirfd, struct xac_owner *out);

/* xac_owner_of_dir -- what invariant (1) says of a directory; ret 0 or errno. */
XAC_SIGSAFE int xac_owner_of_dir(int dirfd, struct xac_owner *out);

/* xac_owner_of_file -- of a copy of an open file; ret 0 or errno. */
int xac_owner_of_file(int fd, struct xac_owner *out);

/*
 * xac_owner_get_shared -- of what all participants write, the control region and the like:
 * the same without those who may not write.
 */
XAC_SIGSAFE int xac_owner_get_shared(int dirfd, struct xac_owner *out);

/* xac_owner_mode_ok -- may a user ask for such a mode?  0600 and more, no execution; who may
   write may read. */
bool xac_owner_mode_ok(uint64_t mode);

/*
 * xac_owner_set_mode -- the mode of what will be made in a directory that belongs to an
 * environment.
 *
 * ret  0; ENOENT if it has no file that would keep it; EPERM if that is another user's; other
 *      errno values.
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
 * xac_newfile_remake -- the same, after what has that name has been unlinked.
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
 * xac_newfile_widen -- let those who take part in an environment open a file that was made
 * for its user, with his umask; the group becomes the environment's.
 *
 * ret  0 or errno.
 */
int xac_newfile_widen(int fd, const struct xac_owner *o);

/*
 * xac_newfile_replace -- a file with these bytes, in place of what has its name.
 *
 * out  fdp  it, for reading and writing; NULL: not wanted
 * ret  0 or errno; unlike what follows it, the last sync may have failed with the name given.
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
