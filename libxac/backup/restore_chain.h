/* SPDX-License-Identifier: MIT */
/*
 * restore_chain.h -- the backups of a chain, open, and the pages of a file as they were at the last
 * of them.
 *
 * WHAT      Checks that each backup is the increment of the one before; gathers the pages of a file,
 *           each from the last backup that has it, and compares them with the checksums.
 * NOT HERE  Writing (restore.h).
 * OWNER     Structures belong to the caller; one thread.
 *
 * INVARIANTS
 *   (1) Pages are asked for in ascending order: cursors in the runs only advance.
 */
#ifndef XAC_RESTORE_CHAIN_H
#define XAC_RESTORE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backup/pagelist.h"
#include "log/manifest.h"

/* One backup. */
struct xac_link {
    const char *dir;
    int dirfd;
    int pagesfd;   /* its xac.pages                                                    */
    int changedfd; /* its xac.changed, -1: it is full                                 */
    struct xac_manifest m;
};

struct xac_chain {
    struct xac_link *link;
    size_t n;
};

/* What one backup has of the file that is being read. */
struct xac_chain_part {
    const struct xac_manifest_file *f; /* NULL: nothing                                */
    int fd;                            /* its copy in a full backup, else -1          */
    size_t run;                        /* cursor: the run, in the manifest,           */
    uint64_t at; /* and where it begins in xac.changed, in pages                       */
};

/* A file of the last backup, piece by piece. */
struct xac_chain_file {
    const struct xac_chain *chain;
    const struct xac_manifest_file *f; /* in the last backup                          */
    struct xac_chain_part *part;       /* one for each backup                         */
    struct xac_pagelist list;
    struct xac_pagelist known; /* checksums of pages that need not be looked at again;
                                  fd -1: none                                         */
    uint64_t was[XAC_PAGELIST_ENTRIES];   /* of the piece                            */
    uint64_t entry[XAC_PAGELIST_ENTRIES]; /* of the piece; 0: a page of zeros          */
    uint8_t *pages;                       /* and its bytes                            */
    size_t from[XAC_PAGELIST_ENTRIES];    /* the backup that each comes from ...      */
    uint64_t at[XAC_PAGELIST_ENTRIES];    /* ... and its page there                   */
};

/*
 * xac_chain_open -- open and check a chain.
 *
 * in   is_whole  it must begin with a full backup
 * ret  0; EINVAL (no backup named, wrong order), ENOENT (one is missing), XAC_EFOREIGN and those of
 *      xac_manifest_read.  Close it in any case.
 */
int xac_chain_open(struct xac_chain *c, const char *const *dir, size_t n, bool is_whole);
void xac_chain_close(struct xac_chain *c);

/* xac_chain_last -- the manifest of the last backup. */
static inline const struct xac_manifest *
xac_chain_last(const struct xac_chain *c)
{
    return &c->link[c->n - 1].m;
}

/*
 * xac_chain_file_open -- begin with a file of the last backup.
 *
 * ret  0; ENOMEM; XAC_EDAMAGED if a copy is missing or too short.  Close it in any case.
 */
int xac_chain_file_open(struct xac_chain_file *cf, const struct xac_chain *c,
                        const struct xac_manifest_file *f);
void xac_chain_file_close(struct xac_chain_file *cf);

/* xac_chain_file_read -- the n pages from `first` on, a multiple of XAC_PAGELIST_ENTRIES; ret 0 or
   errno.  They have not been compared. */
int xac_chain_file_read(struct xac_chain_file *cf, uint64_t first, size_t n);

/* xac_chain_file_know -- from the first piece on, pages with the same checksum in the backup before
   the last one are right: they have been looked at there. */
void xac_chain_file_know(struct xac_chain_file *cf);

/* xac_chain_file_is_right -- has the i-th page of the piece its checksum? */
bool xac_chain_file_is_right(const struct xac_chain_file *cf, size_t i);

/* xac_chain_file_damage -- it has not: put in words which file of which backup is wrong, and
   where; ret XAC_EDAMAGED. */
int xac_chain_file_damage(const struct xac_chain_file *cf, uint64_t first, size_t i);

/* xac_chain_file_end -- are the checksums themselves right?  After the last piece; ret 0,
   XAC_EDAMAGED. */
int xac_chain_file_end(struct xac_chain_file *cf);

#endif /* XAC_RESTORE_CHAIN_H */
