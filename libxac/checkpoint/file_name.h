/* SPDX-License-Identifier: MIT */
/*
 * file_name.h -- removing and renaming a file that nobody maps.
 *
 * WHAT      Brings the file up to date, logs that it is forgotten, takes the name away, and moves what the
 *           environment keeps of the file: its address, its place in the table of files.
 * NOT HERE  Forgetting a file that stays where it is (forget.h).
 * LOCK      Files, from the moment that nobody maps the file until its name is gone or another one,
 *           also across fsync(2).  So a process that maps it comes before, and the call says EBUSY, or
 *           it finds the state behind it (xac_view_open looks again under the lock).
 *
 * INVARIANTS
 *   (1) The name changes only when XFORGET of the file is durable, in a durable environment.  From then on
 *       recovery writes nothing to it, under no name.  So each state of the name is right after a crash.
 *   (2) The log says before a file is renamed that it will be known by its new name (XFILE).  So who redoes
 *       a backup that was made before knows that what he has is another state of that file.
 *   (3) The line of the new name in xac.addresses is there before the new name is, and that of the old
 *       one goes after it: a file under one of the two names has its address.
 *   (4) No backup is being made: it reads a list of names, then opens them.
 */
#ifndef XAC_FILE_NAME_H
#define XAC_FILE_NAME_H

struct xac_env;

/*
 * xac_file_rename -- rename a file, or remove it.
 *
 * in   to  NULL: remove it
 * ret  0; EBUSY, EINVAL, EXDEV, EEXIST and others as xac_remove() and xac_rename(), with words
 */
int xac_file_rename(struct xac_env *env, const char *from, const char *to);

#endif /* XAC_FILE_NAME_H */
