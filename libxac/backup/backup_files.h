/* SPDX-License-Identifier: MIT */
/*
 * backup_files.h -- copying mapped files, or what of them has changed.
 *
 * WHAT      Decides for each file how its changed pages are found, reads them, stores them and
 *           their checksums.
 * NOT HERE  The log, and the order of the steps (backup.h).
 * LOCK      Takes the files lock for a moment, and holds none while it reads or writes.
 *
 * INVARIANTS
 *   (1) A page that is not read is one that the base has with the same bytes, but for changes of
 *       which the log that is copied has a full image.
 *   (2) The log is asked only for a file that somebody has mapped without a break since the
 *       base, in the same life of the control region.
 */
#ifndef XAC_BACKUP_FILES_H
#define XAC_BACKUP_FILES_H

#include <stdint.h>

struct xac_backup_job;

/*
 * xac_backup_mapped -- copy a mapped file, or what of it has changed, unless that has been done.
 *
 * in   path         as the log has it
 * in   id           in the log, 0: nobody is known to map it
 * ret  0 or an error with words.
 */
int xac_backup_mapped(struct xac_backup_job *job, const char *path, uint32_t id);

#endif /* XAC_BACKUP_FILES_H */
