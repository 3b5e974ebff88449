/* SPDX-License-Identifier: MIT */
/*
 * recover_redo.h -- redoing XDATA records onto the mapped files.
 *
 * WHAT      Knows the files, decides which records are needed, applies them in log order
 *           through a bounded set of pages.
 * NOT HERE  Reading the log (recover_scan), the order of the steps (recover).
 * LOCK      The caller holds the gate.
 *
 * INVARIANTS
 *   (1) A page in the set that was not redone from a full image in this run has been
 *       redone from one and written in this run.
 *   (2) xac_redo_check and xac_redo_apply, given the same records in the same order after
 *       a xac_redo_restart each, decide alike.
 */
#ifndef XAC_RECOVER_REDO_H
#define XAC_RECOVER_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log_format.h"

/* Pages held in memory while redoing: at most this many, and at most so many bytes. */
#define XAC_REDO_PAGES_MAX 4096u
#define XAC_REDO_BYTES_MAX (UINT64_C(16) << 20)

/* A file named by the log. */
struct xac_redo_file {
    uint32_t id;
    bool needed;     /* there is something to redo in it                              */
    bool is_missing; /* and it is to be created                                       */
    bool is_other;   /* not the file that was mapped, and that is accepted            */
    bool is_made;    /* created or extended in this run                               */
    int fd;          /* -1 if not open                                                */
    uint64_t lsn;    /* of the block that path, device and inode come from            */
    uint64_t length; /* bytes that the file must have, by the log                     */
    uint64_t reach;  /* end of the last page to be redone, bytes                      */
    uint64_t device;
    uint64_t inode;
    char *path; /* owned                                                              */
};

/* What is known of a page. */
struct xac_redo_page {
    uint64_t page;
    uint64_t full_lsn; /* of an open page: records from here on count                 */
    uint32_t file;
    bool used;
    bool is_open;
    bool seen; /* redone from a full image in this pass                               */
};

/* A page in memory. */
struct xac_redo_frame {
    uint64_t page;
    uint32_t file;
    uint32_t no; /* of its bytes in frame_bytes                                       */
};

struct xac_redo {
    int dirfd;
    uint32_t page_size;
    uint64_t begin_lsn; /* of the last complete checkpoint, 0 if none                 */
    bool open_known;    /* its open pages have been noted                             */

    struct xac_redo_file *file; /* by id                                              */
    size_t n_files;
    size_t n_open_fds;

    struct xac_redo_page *page; /* hash table, a power of two                         */
    size_t page_slots;
    size_t n_pages;

    uint32_t frames_max;
    uint32_t n_frames;
    struct xac_redo_frame *frame; /* frames_max                                       */
    uint32_t *frame_slot;         /* hash table of frame number + 1, 0 is free        */
    uint32_t frame_slots;         /* a power of two                                   */
    uint8_t *frame_bytes;         /* frames_max pages                                 */
};

/* What is to be done with a record. */
enum xac_redo_verdict {
    XAC_REDO_APPLY = 0,
    XAC_REDO_SKIP = 1,     /* its file has it                                         */
    XAC_REDO_NO_FULL = 2,  /* must be a full image and is none                        */
    XAC_REDO_NO_FILE = 3,  /* of a file that the log does not name                    */
    XAC_REDO_MALFORMED = 4 /* ranges leave the page or the record                     */
};

int xac_redo_init(struct xac_redo *r, int dirfd, uint32_t page_size);
void xac_redo_free(struct xac_redo *r);

/* xac_redo_restart -- a new pass begins: no page has been seen, no file is needed. */
void xac_redo_restart(struct xac_redo *r);

/* xac_redo_note_file -- remember the XFILE of a block; ret 0; XAC_EDAMAGED; ENOMEM. */
int xac_redo_note_file(struct xac_redo *r, uint64_t lsn, const struct xac_xfile *rec);

/* xac_redo_note_open -- remember an open page; ret 0 or ENOMEM. */
int xac_redo_note_open(struct xac_redo *r, const struct xac_open_page *open);

/*
 * xac_redo_check -- decide about a record and note what its redo will need.
 *
 * in   lsn  of the block that holds or names the record
 * ret  0 or ENOMEM.
 */
int xac_redo_check(struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec,
                   enum xac_redo_verdict *verdictp);

/*
 * xac_redo_check_files -- verify that the needed files are those the log speaks of.
 *
 * ret  0; XAC_EREPLACED (missing or another one, unless accept_replaced); errno.
 */
int xac_redo_check_files(struct xac_redo *r, bool accept_replaced, bool writable);

/* xac_redo_prepare -- create and extend needed files, and sync that; ret 0 or errno. */
int xac_redo_prepare(struct xac_redo *r);

/* xac_redo_apply -- redo a record, if it is needed; ret 0 or errno. */
int xac_redo_apply(struct xac_redo *r, uint64_t lsn, const struct xac_xdata *rec);

/* xac_redo_finish -- write all pages held, sync all needed files; ret 0 or errno. */
int xac_redo_finish(struct xac_redo *r);

/* xac_redo_files_needed -- number of files with something to redo. */
uint64_t xac_redo_files_needed(const struct xac_redo *r);

#endif /* XAC_RECOVER_REDO_H */
