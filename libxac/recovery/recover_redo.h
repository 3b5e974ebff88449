/* SPDX-License-Identifier: MIT */
/*
 * recover_redo.h -- redoing XDATA and XCOPY records onto the mapped files.
 *
 * WHAT      Knows the files, decides which records are needed, applies them in log order
 *           through a bounded set of pages.
 * NOT HERE  Reading the log (recover_scan), the order of the steps (recover).
 * LOCK      The caller holds the gate.
 *
 * INVARIANTS
 *   (1) A page in the set was redone from a full image in this pass, or has been redone
 *       from one and written in this run.
 *   (2) xac_redo_check and xac_redo_apply, given the same records in the same order after
 *       a xac_redo_restart each, decide alike.
 *   (3) While `keeping`, the pages in memory are all that the checked records make; no
 *       second pass is needed to write them.
 *   (4) Memory: the set of pages, a bit for each page of the files that are redone.  It
 *       does not grow with the log.
 *   (5) The files are in the order of their ids; each id is there once.
 *   (6) n_open_fds is the number of files with a descriptor.
 *   (7) A file of a backup stays where the backup has it, whatever the log calls it later: what
 *       has the same identity has the same place.  It is redone up to where the log forgets it, and goes
 *       on from there if it is mapped again.  Nothing of what was committed is left out.
 *   (8) If the log calls it by another name in the end, the backup is not redone to there.
 *   (9) If another file has its name in the end, of which the backup has nothing, that one is redone in its
 *       place, from zeros, and only if the user says so.
 */
#ifndef XAC_RECOVER_REDO_H
#define XAC_RECOVER_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "checkpoint/pagesums.h"
#include "log/backup_note.h"
#include "log/claim.h"
#include "log/log_format.h"
#include "log/manifest.h"
#include "recovery/recover_pages.h"
#include "recovery/replayer.h"
#include "store/frozen.h"

/*
 * Pages held in memory while redoing, unless told otherwise: about as many as a running
 * environment holds in its version store between two checkpoints.
 */
#define XAC_REDO_BYTES_DEFAULT (UINT64_C(128) << 20)

/* A file named by the log. */
struct xac_redo_file {
    uint32_t id;
    bool needed;       /* there is something to redo in it                              */
    bool is_missing;   /* and it is to be created                                       */
    bool is_other;     /* not the file that was mapped, and that is accepted            */
    bool is_moved;     /* of a backup: whatever is at its path is the file              */
    bool is_anew;      /* of a backup: what is at its path is another one: (9)          */
    bool is_made;      /* created or extended in this run                               */
    bool is_source;    /* pages of other files are copied from it                       */
    bool is_gone;      /* the log says that nobody wants it                             */
    bool is_forgotten; /* so nothing is written to it: what it had is redone beside the
                          directory, for others may copy from it                     */
    int fd;            /* -1 if not open                                                */
    uint32_t local;    /* which file of the region it is, beside readers; 0: not told   */
    uint64_t lsn;      /* of the block that path and inode come from                    */
    uint64_t since;    /* of the first one that names this file                         */
    uint64_t length;   /* bytes that the file must have, by the log                     */
    uint64_t reach;    /* end of the last page to be redone, bytes                      */
    struct xac_identity who; /* when it was mapped                                    */
    char *path;     /* owned; in a backup: where that has it                           */
    char *renamed;  /* the name by the log, if that is another one: (8); owned         */
    uint64_t *seen; /* a bit for each page redone from a full image in this pass      */
    uint64_t seen_words;
};

struct xac_redo {
    int dirfd;
    const struct xac_backup_note *backup; /* where the files are, if it is a backup   */
    const struct xac_manifest *manifest;  /* what they are; NULL: not known           */
    uint64_t backup_lsn; /* they have nothing of what the log has from there on       */
    struct xac_claimant claimant; /* the environment                                  */
    bool is_copy;       /* of an environment, by other means than xBackup()           */
    bool takes_outside; /* and files that do not lie in it belong to it               */
    struct xac_frozen *frozen; /* copies that are written instead; NULL: the files    */
    uint32_t page_size;
    uint64_t changes; /* counts changes in what files there are and which are needed  */

    struct xac_redo_file *file; /* by id                                              */
    size_t n_files, files_size;
    size_t n_open_fds;
    size_t fds_max;
    size_t fd_hand; /* where the next one to be closed is looked for                  */

    bool keeping; /* invariant 3                                                      */
    struct xac_redo_pages pages;
    const struct xac_pagesums_store
        *sums_store;          /* NULL: checksums of pages are left alone */
    struct xac_pagesums sums; /* of pages that are being written         */

    struct xac_replayer *replayer; /* has the pages; NULL: the set above has them      */

    uint8_t *gather;  /* pages that are neighbours in their file, to be written        */
    uint8_t *scratch; /* two pages: to try records on, and the source of a copy       */
};

/* xac_redo_is_wanted -- is there something to redo in the file itself? */
static inline bool
xac_redo_is_wanted(const struct xac_redo_file *f)
{
    return (f->needed || f->is_anew) && !f->is_forgotten;
}

/* What is to be done with a record. */
enum xac_redo_verdict {
    XAC_REDO_APPLY = 0,
    XAC_REDO_NO_FULL = 1,  /* must be a full image and is none; or copies from such   */
    XAC_REDO_NO_FILE = 2,  /* of a file that the log does not name                    */
    XAC_REDO_MALFORMED = 3 /* ranges leave the page or the record                     */
};

/*
 * xac_redo_init -- nothing is known.
 *
 * in   bytes_max  of pages held in memory, 0 for the default
 * ret  0 or ENOMEM; free it in any case.
 */
int xac_redo_init(struct xac_redo *r, int dirfd, uint32_t page_size, uint64_t bytes_max);
void xac_redo_free(struct xac_redo *r);

/*
 * xac_redo_restart -- a new pass begins: no page has been seen, no file is needed.
 *
 * in   keep  hold what is checked in memory, as far as it goes
 */
void xac_redo_restart(struct xac_redo *r, bool keep);

/* xac_redo_note_file -- remember the XFILE of a block; ret 0; XAC_EDAMAGED; ENOMEM. */
int xac_redo_note_file(struct xac_redo *r, uint64_t lsn, const struct xac_xfile *rec);

/* xac_redo_forget -- its file is neither asked for nor made nor written; but for (7). */
void xac_redo_forget(struct xac_redo *r, uint64_t lsn, const struct xac_xforget *rec);

/*
 * xac_redo_check -- decide about a record and note what its redo will need.
 *
 * ret  0 or ENOMEM.
 */
int xac_redo_check(struct xac_redo *r, const struct xac_xdata *rec,
                   enum xac_redo_verdict *verdictp);

/*
 * xac_redo_check_files -- verify that the needed files are those the log speaks of.
 *
 * In a copy, files that lie in it have been copied with it, so they are others; what lies
 * elsewhere may belong to the original.
 * ret  0; XAC_EREPLACED (missing or another one, unless accept_replaced); EINVAL: (8);
 *      XAC_ECOPY;
 *      XAC_EINUSE (claim.h); errno.
 */
int xac_redo_check_files(struct xac_redo *r, bool accept_replaced, bool writable);

/* xac_redo_is_kept -- all that has been checked is in memory: finish may follow at once. */
bool xac_redo_is_kept(const struct xac_redo *r);

/* xac_redo_prepare -- create and extend needed files, and sync that; ret 0 or errno. */
int xac_redo_prepare(struct xac_redo *r);

/* xac_redo_apply -- redo a record; ret 0 or errno. */
int xac_redo_apply(struct xac_redo *r, const struct xac_xdata *rec);

/* xac_redo_finish -- write all pages held, sync all needed files; ret 0 or errno. */
int xac_redo_finish(struct xac_redo *r);

/* xac_redo_file_is -- which file that id is now; for struct xac_pagesums_store; arg is the
   struct xac_redo. */
int xac_redo_file_is(void *arg, uint32_t file, struct xac_pagesums_file *out);

/* xac_redo_is_redone -- does this pass redo the page?  arg is the struct xac_redo. */
bool xac_redo_is_redone(void *arg, uint64_t inode, uint64_t page);

/* xac_redo_files_needed -- number of files with something to redo. */
uint64_t xac_redo_files_needed(const struct xac_redo *r);

/* xac_redo_files_each -- call fn for each of them, with the number of its pages that are redone;
   after xac_redo_check_files. */
void xac_redo_files_each(const struct xac_redo *r,
                         void (*fn)(void *arg, const char *path, uint64_t pages,
                                    bool is_made),
                         void *arg);

/* xac_redo_check_copies -- xac_redo_check_files for copies, where it concerns who maps the file.
   ret 0, or EAGAIN if some copies are younger than the log that has been read. */
int xac_redo_check_copies(struct xac_redo *r);

/* xac_redo_open_copy -- open what is written instead of a file: its copy, or for one that the
   environment has forgotten a file without a name.  ret 0 or an error. */
int xac_redo_open_copy(const struct xac_redo *r, struct xac_redo_file *f);

/* ---- Between recover_redo.c and redo_files.c, which has the files and their descriptors. */

/* xac_redo_file_find -- the file with that id, NULL if the log has not named it. */
struct xac_redo_file *xac_redo_file_find(const struct xac_redo *r, uint32_t id);

/* xac_redo_file_open -- see to it that it has a descriptor; ret 0 or errno (words noted, except for
   ENOENT).  Another file, synced, may be closed for it. */
int xac_redo_file_open(struct xac_redo *r, struct xac_redo_file *f, int flags);

/* xac_redo_file_close -- close its descriptor, if it has one. */
void xac_redo_file_close(struct xac_redo *r, struct xac_redo_file *f);

/* ---- Between redo_files.c and redo_backup.c, for a backup. */

/* xac_redo_place -- find the place of a file whose identity and position are known, and what that means
   for those that had the place before.  in  name  by the log; ret 0 or ENOMEM. */
int xac_redo_place(struct xac_redo *r, struct xac_redo_file *f, const char *name);

/* xac_redo_forget_in_backup -- the log forgets the file there: (7). */
void xac_redo_forget_in_backup(struct xac_redo *r, struct xac_redo_file *f, uint64_t lsn);

/* xac_redo_check_backup -- ret 0; EINVAL by (8); XAC_EREPLACED by (9). */
int xac_redo_check_backup(const struct xac_redo *r, bool accept_replaced);

/* xac_redo_fds_max -- descriptors that may be open at a time. */
size_t xac_redo_fds_max(void);

#endif /* XAC_RECOVER_REDO_H */
