/* SPDX-License-Identifier: MIT */
/*
 * restore.h -- a full backup and its increments, made into one backup again, and verified.
 *
 * WHAT      Reads a chain of backups; checks that each is the increment of the one before; makes a
 *           directory as a full backup instead of the last one would be (backup.h, invariant 3);
 *           or reads everything and compares it with the checksums.
 * NOT HERE  Recovering what has been restored (recover.h).
 * LOCK      None: nobody writes to backups.
 *
 * INVARIANTS
 *   (1) A page is written only if it has the checksum that the last backup of the chain has for
 *       it.
 *   (2) The master record is written last: until then the directory is no environment and no
 *       backup.  Nothing that is there is overwritten.
 *   (3) The result is a full backup with the id of the last one: increments of that one are
 *       increments of it.
 */
#ifndef XAC_RESTORE_H
#define XAC_RESTORE_H

#include <stddef.h>
#include <stdint.h>

#include "backup/backup_report.h"

struct xac_restore_report {
    uint64_t files;      /* mapped files                                              */
    uint64_t file_bytes; /* of pages written, or verified                             */
    uint64_t log_bytes;  /* of the log, data files included                           */
    uint64_t damages;    /* found by xac_restore_verify                               */
    uint64_t end_lsn;    /* the moment of the last backup                             */
    uint64_t time_ns;
};

/*
 * xac_restore_run -- restore a chain to a directory, which is made or empty.
 *
 * in   chain     directories: a full backup, then increments in order
 * in   progress  may be NULL
 * ret  0; EEXIST (not empty); EINVAL (wrong order); ENOENT (a backup of the chain is missing);
 *      XAC_EFOREIGN; XAC_ENOTENV (no backup); XAC_EDAMAGED, with file and offset; errno.  Text is
 *      noted.  A directory that was not finished is marked so.
 */
int xac_restore_run(const char *const *chain, size_t n, const char *dir,
                    const struct xac_backup_progress *progress,
                    struct xac_restore_report *report);

/* Called for each damage with words. */
typedef void (*xac_restore_fn)(void *arg, const char *what);

/*
 * xac_restore_verify -- read all pages of all backups of a chain, and their logs.
 *
 * ret  0; XAC_EDAMAGED if some are damaged: `fn` has been told of each; others as above.
 */
int xac_restore_verify(const char *const *chain, size_t n, xac_restore_fn fn, void *arg,
                       const struct xac_backup_progress *progress,
                       struct xac_restore_report *report);

#endif /* XAC_RESTORE_H */
