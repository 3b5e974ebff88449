/* SPDX-License-Identifier: MIT */
/*
 * manifest.h -- what a backup consists of: its place in a chain of increments, its files, and of
 * an increment the pages that have changed (manifest_format.h).
 *
 * WHAT      Reads, checks and writes xac.manifest; opens the directory of a backup and says
 *           whether it is one.
 * NOT HERE  The checksums of pages (pagelist.h), copying (backup.h), restoring (restore.h).
 * OWNER     struct xac_manifest belongs to the caller; starts as zeros.
 *
 * INVARIANTS
 *   (1) xac.manifest gets its name last in an increment, and before xac.master in a full backup:
 *       what was not finished is neither.  Until then the directory has XAC_UNFINISHED_NAME.
 *   (2) Runs of a file ascend and do not overlap; all lie in the file.
 *   (3) An increment has no xac.master and no xac.backup: it is never taken for an environment.
 */
#ifndef XAC_MANIFEST_H
#define XAC_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "base/names.h"
#include "base/newfile.h"
#include "log/manifest_format.h"

/* A mapped file. */
struct xac_manifest_file {
    char *path; /* as the log has it; owned                                           */
    char *copy; /* relative to the backup, or to what is restored; owned              */
    uint64_t length;
    uint64_t list_block; /* where its part of xac.pages begins, in blocks             */
    uint64_t list_check;
    size_t first_run, n_runs;
    uint64_t first_page; /* of its runs, in xac.changed                               */
    struct xac_identity who;
    struct xac_owner owner;
    uint64_t held_lsn;
    uint32_t id; /* in the log, 0: nobody mapped it                                   */
    bool is_missing;
};

struct xac_manifest {
    struct xac_manifest_head head;
    struct xac_master_slot master;
    struct xac_manifest_file *file;
    size_t n_files, files_size;
    struct xac_manifest_run *run;
    size_t n_runs, runs_size;
};

/* xac_manifest_is_full -- is it a full backup, and no increment? */
static inline bool
xac_manifest_is_full(const struct xac_manifest *m)
{
    return m->head.link == 0;
}

/* xac_manifest_pages -- pages of a file. */
static inline uint64_t
xac_manifest_pages(const struct xac_manifest *m, const struct xac_manifest_file *f)
{
    return f->length / m->head.page_size + (f->length % m->head.page_size != 0);
}

/* xac_manifest_blocks -- blocks of the file's part of xac.pages. */
uint64_t xac_manifest_blocks(const struct xac_manifest *m,
                             const struct xac_manifest_file *f);

/* xac_manifest_add -- a file behind all others, without pages; NULL if out of memory (noted).
   The next call may move it. */
struct xac_manifest_file *xac_manifest_add(struct xac_manifest *m, const char *path,
                                           const char *copy);

/* xac_manifest_add_page -- a page of the last file has changed; they come in ascending order.
   ret 0 or ENOMEM. */
int xac_manifest_add_page(struct xac_manifest *m, uint64_t page);

/* xac_manifest_find -- the file with that path in the log; NULL: it has none. */
const struct xac_manifest_file *xac_manifest_find(const struct xac_manifest *m,
                                                  const char *path);

/* xac_manifest_write -- with its final name, synced; ret 0 or errno. */
int xac_manifest_write(struct xac_manifest *m, int dirfd, const struct xac_owner *owner);

/*
 * xac_manifest_read -- of the backup in a directory.
 *
 * in   dir  its path, for words
 * ret  0; XAC_ENOTENV: it holds no backup, or an unfinished one, or one that has become an
 *      environment; XAC_EDAMAGED, XAC_EVERSION; errno.  Free it in any case.
 */
int xac_manifest_read(struct xac_manifest *m, int dirfd, const char *dir);

/* xac_manifest_load -- likewise, also of a backup that is being rolled forward; ENOENT without words:
   there is none. */
int xac_manifest_load(struct xac_manifest *m, int dirfd, const char *dir);

void xac_manifest_free(struct xac_manifest *m);

/* xac_manifest_begin -- mark the directory as unfinished; xac_manifest_unmark -- take the mark
   away, before the last file gets its name.  ret 0 or errno. */
int xac_manifest_begin(int dirfd, const struct xac_owner *owner);
int xac_manifest_unmark(int dirfd);

#endif /* XAC_MANIFEST_H */
