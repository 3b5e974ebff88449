/* SPDX-License-Identifier: MIT */
/*
 * backup_dir.h -- the directory of a backup, or of one that is restored: made, filled, synced.
 *
 * WHAT      Directories below it, and the names that must be on disk before it counts.
 * NOT HERE  What the files in it hold (backup.h, restore.h).
 * OWNER     Descriptors belong to the caller.
 */
#ifndef XAC_BACKUP_DIR_H
#define XAC_BACKUP_DIR_H

#include "log/backup_note.h"
#include "log/log_format.h"

struct xac_copier;
struct xac_owner;

/* xac_backup_dir_open -- made, or empty; ret 0, EEXIST or errno. */
int xac_backup_dir_open(const char *dir, int *fdp);

/*
 * xac_backup_dir_parents -- make the directories of a relative path; those that are there are fine.
 *
 * in   like  directory whose own directories of these names they resemble, as far as it has them
 */
int xac_backup_dir_parents(int dirfd, const char *dir, int like, const char *path);

/* xac_backup_dir_copy -- a file under the same name, synced; one that is not there is no error.  ret 0 or
   errno. */
int xac_backup_dir_copy(int from, const char *name, int to, const struct xac_owner *owner,
                        struct xac_copier *copier);

/* xac_backup_dir_sync -- the names of all copies, and of the directory itself, unless it lies where
   we may not read: then somebody else has put it there. */
int xac_backup_dir_sync(int dirfd, const char *dir, const struct xac_backup_note *note);

/* xac_backup_dir_master -- the last step: a master record under its name, synced. */
int xac_backup_dir_master(int dirfd, const char *dir, const struct xac_owner *owner,
                          const struct xac_master_slot *slot);

#endif /* XAC_BACKUP_DIR_H */
