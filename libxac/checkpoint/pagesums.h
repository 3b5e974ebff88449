/* SPDX-License-Identifier: MIT */
/*
 * pagesums.h -- checksums of the pages that have been written to the mapped files, kept
 * beside the log to find damage of the medium (XAC_OPT_PAGE_CHECKSUMS).
 *
 * WHAT      Collects the checksums of pages while they are written; stores them, a file for
 *           each mapped file (pagesums_format.h).
 * NOT HERE  Comparing files with them (pagesums_check.h).
 * OWNER     struct xac_pagesums belongs to the caller; one thread.
 * LOCK      Files are written by the holder of the checkpoint lock, or with the gate held.
 *
 * INVARIANTS
 *   (1) If recovery, starting from the master record on disk, would not write a page, then the
 *       entry of the page on disk is right, or not valid, or missing.  A process that writes pages
 *       stores and syncs their entries before the master record moves; until then recovery would
 *       write these same pages, and their entries are not used.
 *   (2) A process that writes pages of a file and keeps no checksums first removes the file of
 *       checksums (xac_pagesums_drop).
 *   (3) A header is on disk as a whole before the file has its name.
 */
#ifndef XAC_PAGESUMS_H
#define XAC_PAGESUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "checkpoint/pagesums_format.h"

struct xac_env;

/* A page written, in file `file` by the caller's counting. */
struct xac_pagesums_note {
    uint64_t page;
    uint64_t checksum;
    uint32_t file;
};

/* Pages written; starts as zeros. */
struct xac_pagesums {
    struct xac_pagesums_note *note;
    size_t n, size;
};

/* xac_pagesums_add -- note a page that is written; ret 0 or ENOMEM (text noted). */
int xac_pagesums_add(struct xac_pagesums *s, uint32_t file, uint64_t page,
                     const void *bytes, size_t page_size);

/* xac_pagesums_free -- free the notes. */
void xac_pagesums_free(struct xac_pagesums *s);

/* Which mapped file it is. */
struct xac_pagesums_file {
    struct xac_identity who;
    const char *path; /* as the log has it; the callee's                              */
};

/* The place for checksums, and their properties. */
struct xac_pagesums_store {
    int dirfd;               /* of the environment; not owned                         */
    const uint8_t *identity; /* 16 bytes of the master record; not owned              */
    uint32_t page_size;
    uint64_t lsn; /* of the entries                                                   */
    bool make;    /* also make missing ones; else only existing ones are kept right     */
    /* Fill in the file of that number; ret 0 or an error with text. */
    int (*file)(void *arg, uint32_t file, struct xac_pagesums_file *out);
    void *arg;
};

/*
 * xac_pagesums_put -- store and sync all notes, and clear them.
 *
 * ret  0; or errno (text noted), and then the master record must not move.
 */
int xac_pagesums_put(struct xac_pagesums *s, const struct xac_pagesums_store *where);

/*
 * xac_pagesums_drop -- remove the checksums of that file, synced.
 *
 * in/out  is_syncedp  false at first.  true: the caller has synced the directory, and no other
 *                     process has removed a file of checksums since.  So if the file is missing,
 *                     its removal is durable, and no sync is needed
 * ret     0 or errno.
 */
int xac_pagesums_drop(int dirfd, uint64_t inode, bool *is_syncedp);

/* xac_pagesums_drop_all -- remove all checksums, synced; ret 0 or errno. */
int xac_pagesums_drop_all(int dirfd);

/* xac_pagesums_checkpoint -- xac_pagesums_put of the pages that a checkpoint has copied,
   by file id; lsn is its begin's. */
int xac_pagesums_checkpoint(struct xac_env *env, struct xac_pagesums *s, uint64_t lsn);

/* ---- For pagesums_check.c ---- */

void xac_pagesums_name(char name[32], uint64_t inode);

/* xac_pagesums_head_valid -- is the header valid, and of this environment? */
bool xac_pagesums_head_valid(const struct xac_pagesums_head *h, const uint8_t *identity,
                             uint32_t page_size);

/* xac_pagesums_who -- the mapped file that a header is about. */
struct xac_identity xac_pagesums_who(const struct xac_pagesums_head *h);

/* xac_pagesum_check -- the right value of `check` of the entry. */
uint64_t xac_pagesum_check(const struct xac_pagesum *e);

#endif /* XAC_PAGESUMS_H */
