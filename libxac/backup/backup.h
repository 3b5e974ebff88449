/* SPDX-License-Identifier: MIT */
/*
 * backup.h -- a consistent copy of an environment while others keep committing.
 *
 * WHAT      Copies the files first, page by page, as they are at that moment, and then the
 *           log from the last checkpoint on up to a position behind everything that the
 *           copies can hold.  Each page that a checkpoint has written or half written
 *           meanwhile has a full image in that log, so recovering the copy makes it right.
 * NOT HERE  Recovering (recover.h); the note about the contents (backup_note.h).
 * LOCK      None while copying.  The participant's log_pin keeps the log from being
 *           archived or reused; checkpoints go on.
 *
 * INVARIANTS
 *   (1) The master record is written last, under its name: an unfinished backup is no
 *       environment.
 *   (2) Everything that had been acknowledged when the backup began is in it.
 */
#ifndef XAC_BACKUP_H
#define XAC_BACKUP_H

#include <stdint.h>

struct xac_env;

/* The result of a backup. */
struct xac_backup_report {
    uint64_t files;      /* mapped files copied                                       */
    uint64_t file_bytes; /* bytes of them that were copied, without holes             */
    uint64_t log_bytes;  /* of the log, data files of large transactions included     */
    uint64_t redo_lsn;   /* where its recovery begins                                 */
    uint64_t end_lsn;    /* and ends                                                  */
    uint64_t time_ns;    /* of that, nanoseconds since 1970                           */
};

/* Called from time to time with the bytes copied and about how many there are to copy. */
struct xac_backup_progress {
    void (*fn)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

/*
 * xac_backup_run -- see xac_backup() in xac.h.
 *
 * in   progress  may be NULL
 * out  report    may be NULL
 */
int xac_backup_run(struct xac_env *env, const char *dir,
                   const struct xac_backup_progress *progress,
                   struct xac_backup_report *report);

#endif /* XAC_BACKUP_H */
