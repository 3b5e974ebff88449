/* SPDX-License-Identifier: MIT */
/*
 * stored.h -- paths that were read from a file: from the log, a note, the list of
 * addresses.
 *
 * WHAT      A stored path is absolute, or relative to the directory that it was stored
 *           for.  A relative one never leads out of it, however the file got its contents.
 *           Files have them as realpath(3) made them.
 * NOT HERE  Which absolute paths are right: that is told by what lies there (identity).
 * THREADS   Any; words are noted (err).
 *
 * INVARIANTS
 *   (1) A relative path that is empty, or has a component that is empty, "." or "..", is
 *       refused with XAC_EDAMAGED before anything is opened.
 *   (2) No component of a relative path is followed if it is a symbolic link, nor is the last
 *       one: XAC_EUNTRUSTED.
 */
#ifndef XAC_STORED_H
#define XAC_STORED_H

#include <stdbool.h>

/* xac_stored_is_inside -- a relative path that stays in its directory? */
bool xac_stored_is_inside(const char *path);

/*
 * xac_stored_open -- open a file or directory by a stored path; none is made.
 *
 * in   flags  of open(2), close-on-exec or not
 * ret  0; XAC_EDAMAGED, XAC_EUNTRUSTED; ENOENT without words; other errno values.
 */
int xac_stored_open(int dirfd, const char *path, int flags, int *fdp);

/*
 * xac_stored_parent -- the directory that a stored path ends in: for making the file,
 * removing it, syncing its name.
 *
 * out  namep  last component, a part of `path`
 * ret  as xac_stored_open.
 */
int xac_stored_parent(int dirfd, const char *path, int *fdp, const char **namep);

#endif /* XAC_STORED_H */
