/* SPDX-License-Identifier: MIT */
/*
 * archive_restore.h -- an environment from an archive, as it was at a moment (doc/archive.md).
 *
 * WHAT      Chooses the backup and the log behind it; brings them into a directory; recovers.
 * NOT HERE  Reading manifests (archive_manifest.h), redoing (recover.h).
 * OWNER     Structures belong to the caller.
 * LOCK      The gate of the directory, from before there is a master record until all is done.
 *
 * INVARIANTS
 *   (1) An object is used only if length, XXH3 and SHA-256 are those of the manifest.
 *   (2) Until all is done the directory has XAC_UNFINISHED_NAME, with our text, and nobody can open it.
 *   (3) Only what lies in a directory with that mark is removed; it is made when the directory is empty.
 */
#ifndef XAC_ARCHIVE_RESTORE_H
#define XAC_ARCHIVE_RESTORE_H

#include "archive_manifest.h"
#include "archive_store.h"
#include "recovery/recover_report.h"

/* A moment; all 0: the end. */
struct archive_moment {
    uint64_t lsn;
    uint64_t time_ns;
};

/* What leads to a moment. */
struct archive_plan {
    const struct archive_object *backup;
    bool *is_used; /* for each object of the archive; owned                           */
    bool is_cut;   /* the archive has more log, but what comes next is missing        */
    uint32_t generation;
    uint64_t end_lsn; /* where the log that is used ends                              */
    uint64_t time_ns; /* of the last commit in it, or of the backup                   */
    uint64_t bytes;   /* of all objects used                                          */
};

/*
 * archive_plan_make -- choose.
 *
 * ret  0; ENOENT: there is no backup yet; ERANGE: no backup is so old, or log before the moment is missing; words.
 *      Free it in any case.
 */
int archive_plan_make(struct archive_plan *p, const struct archive *a, const char *src,
                      const struct archive_moment *until);
/* archive_plan_from -- a backup and all log that leads on from it; likewise. */
int archive_plan_from(struct archive_plan *p, const struct archive *a,
                      const struct archive_object *backup);

void archive_plan_free(struct archive_plan *p);

struct archive_restore_options {
    const char *dir;
    struct archive_moment until;
    /* Called from time to time with the bytes brought and their total; may be NULL. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
};

/*
 * archive_restore -- make the environment; what an attempt has left there that was killed is removed.
 *
 * ret  0; EEXIST: the directory is not empty; XAC_EDAMAGED: an object is missing or wrong, words name it; those of
 *      archive_store_get() and xac_recover_dir(); errno.
 */
int archive_restore(struct archive_store *s, const struct archive *a,
                    const struct archive_plan *p,
                    const struct archive_restore_options *options,
                    struct xac_recover_report *report);

#endif /* XAC_ARCHIVE_RESTORE_H */
