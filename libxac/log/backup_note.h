/* SPDX-License-Identifier: MIT */
/*
 * backup_note.h -- the file that tells a backup from an environment: which file of the
 * environment is where in it, and from which position of the log on it is complete.
 *
 * WHAT      Reads and writes xac.backup (doc/formats.md).
 * NOT HERE  Making a backup (backup.h), recovering one (recover.h).
 * OWNER     struct xac_backup_note belongs to the caller.
 *
 * INVARIANTS
 *   (1) The mapped files in the directory hold nothing that was committed at or behind
 *       end_lsn.
 *   (2) A directory with this file has not been an environment in use since it was
 *       copied: recovery removes the file when it is done.
 */
#ifndef XAC_BACKUP_NOTE_H
#define XAC_BACKUP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/names.h"

/* A mapped file. */
struct xac_backup_file {
    char *path; /* as the log has it                                                  */
    char *copy; /* relative to the backup's directory                                 */
};

struct xac_backup_note {
    uint64_t end_lsn;
    uint64_t time_ns; /* when that was; nanoseconds since 1970                        */
    struct xac_backup_file *file;
    size_t n_files;
};

/*
 * xac_backup_note_read -- ret 0; ENOENT if the directory is no backup; XAC_EDAMAGED;
 * XAC_EVERSION; errno.  Free it in any case.
 */
int xac_backup_note_read(int dirfd, struct xac_backup_note *note);

/* xac_backup_note_write -- replace it as a whole, synced; ret 0 or errno. */
int xac_backup_note_write(int dirfd, const struct xac_backup_note *note);

/* xac_backup_note_remove -- the directory is an environment now: the note goes, and what a backup
   has for increments (manifest.h); ret 0 or errno. */
int xac_backup_note_remove(int dirfd);

/* xac_backup_note_add -- ret 0; EINVAL if a name contains a newline; ENOMEM. */
int xac_backup_note_add(struct xac_backup_note *note, const char *path, const char *copy);

/* xac_backup_note_find -- where a file is; NULL if the backup does not have it. */
const char *xac_backup_note_find(const struct xac_backup_note *note, const char *path);

/* xac_backup_note_check -- may the log be redone up to there?  A backup is whole only from a
   position on.  ret 0 or EINVAL. */
int xac_backup_note_check(const struct xac_backup_note *note, uint64_t lsn,
                          uint64_t time_ns);

void xac_backup_note_free(struct xac_backup_note *note);

#endif /* XAC_BACKUP_NOTE_H */
