/* SPDX-License-Identifier: MIT */
/*
 * rewind_note.h -- the file xac.rewind (rewind_format.h): a directory that is on its way from an environment of its own to
 * a standby, and what is still to be done to it.
 *
 * WHAT      Reads, writes and removes the file; refuses the directory while it is there.
 * NOT HERE  What is to be done, and doing it (ship/rewind.h).
 * OWNER     struct xac_rewind_note belongs to the caller; starts as zeros.
 * LOCK      Writing: the gate of the directory.  Reading: none, for the file is replaced as a whole.
 *
 * INVARIANT
 *   (1) The file is durable before anything else of the directory changes, and goes when the directory is whole.
 *       While it is there, nobody but a rewind uses the directory.
 */
#ifndef XAC_REWIND_NOTE_H
#define XAC_REWIND_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "log/lineage.h"
#include "log/rewind_format.h"

/* A file that is not as the source has it. */
struct xac_rewind_file {
    enum xac_rewind_what what;
    char *path; /* relative to the directory; owned                                   */
    struct xac_rewind_run *run;
    size_t n_runs, runs_size;
};

struct xac_rewind_note {
    uint64_t whole_lsn;           /* 0: files and master record are still to come     */
    uint64_t own_bytes;           /* of a segment of the own log at the fork          */
    struct xac_lineage_line line; /* of the source, behind the fork at line.end_lsn   */
    struct xac_master_slot master;
    struct xac_rewind_file *file;
    size_t n_files, files_size;
};

/* xac_rewind_note_add -- a file behind the others; the path is copied.  ret NULL if out of memory, words noted. */
struct xac_rewind_file *xac_rewind_note_add(struct xac_rewind_note *note,
                                            enum xac_rewind_what what, const char *path);

/* xac_rewind_file_add -- a page of it, behind those before; ret 0 or ENOMEM. */
int xac_rewind_file_add(struct xac_rewind_file *f, uint64_t page);

/* xac_rewind_note_read -- ret 0; ENOENT without words: there is none; XAC_EVERSION; XAC_EDAMAGED; errno.  Free it in any
   case. */
int xac_rewind_note_read(int dirfd, struct xac_rewind_note *note);

/* xac_rewind_note_write -- replace it as a whole, synced; ret 0 or errno, words noted. */
int xac_rewind_note_write(int dirfd, const struct xac_rewind_note *note);

/* xac_rewind_note_remove -- the directory is whole; ret 0, synced, or errno, words noted. */
int xac_rewind_note_remove(int dirfd);

void xac_rewind_note_free(struct xac_rewind_note *note);

/* xac_rewind_note_refuse -- ret 0; XAC_ENOTENV with words that say what to run, if it is there; errno. */
int xac_rewind_note_refuse(int dirfd);

#endif /* XAC_REWIND_NOTE_H */
