/* SPDX-License-Identifier: MIT */
/*
 * stored.h -- paths that were read from a file: from the log, a note, the list of
 * addresses.
 *
 * WHAT      A stored path is absolute, or relative to the directory that it was stored for.
 *           A relative path never leads out of this directory, even if a stranger has written
 *           the file.  Paths are stored as realpath(3) returns them.
 * NOT HERE  Which absolute paths are right: the identity of the file tells that.
 * THREADS   Any; text is noted (err).
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

/* xac_stored_is_inside -- is it a relative path that stays in its directory? */
bool xac_stored_is_inside(const char *path);

/*
 * xac_stored_open -- open a file or directory by a stored path; does not make one.
 *
 * in   flags  of open(2), close-on-exec or not
 * ret  0; XAC_EDAMAGED, XAC_EUNTRUSTED; ENOENT without words; other errno values.
 */
int xac_stored_open(int dirfd, const char *path, int flags, int *fdp);

/*
 * xac_stored_parent -- open the directory that the last component of a stored path lies in, to
 * make or remove the file, or to sync its name.
 *
 * out  namep  last component, a part of `path`
 * ret  as xac_stored_open.
 */
int xac_stored_parent(int dirfd, const char *path, int *fdp, const char **namep);

#endif /* XAC_STORED_H */
