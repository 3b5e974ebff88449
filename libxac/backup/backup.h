/* SPDX-License-Identifier: MIT */
/*
 * backup.h -- a consistent copy of an environment while others keep committing; or an increment,
 * which has what has changed since another backup.
 *
 * WHAT      Copies the files first, page by page, as they are at that moment, and then the
 *           log from the last checkpoint on up to a position behind everything that the
 *           copies can hold.  Each page that a checkpoint has written or half written
 *           meanwhile has a full image in that log, so recovering the copy makes it right.
 *           An increment has the pages in which such a copy differs from the base's, and the
 *           same log.
 * NOT HERE  Recovering (recover.h); the notes about the contents (backup_note.h, manifest.h);
 *           making a copy of a base and increments (restore.h).
 * LOCK      None while copying.  The participant's log_pin keeps the log from being
 *           archived or reused; checkpoints go on.
 *
 * INVARIANTS
 *   (1) The master record is written last, under its name, in an increment the manifest: an
 *       unfinished backup is no environment, and no backup.
 *   (2) Everything that had been acknowledged when the backup began is in it.
 *   (3) What is restored from a base and its increments has, page by page, the bytes that a full
 *       backup would have copied instead of the last increment; but pages of which the log
 *       has a full image may be older.
 */
#ifndef XAC_BACKUP_H
#define XAC_BACKUP_H

#include "backup/backup_report.h"

struct xac_env;

/*
 * xac_backup_run -- see xac_backup() and xac_backup_since() in xac.h.
 *
 * in   base      directory of a backup; NULL: a full backup is to be made
 * in   progress  may be NULL
 * out  report    may be NULL
 */
int xac_backup_run(struct xac_env *env, const char *dir, const char *base,
                   const struct xac_backup_progress *progress,
                   struct xac_backup_report *report);

#endif /* XAC_BACKUP_H */
