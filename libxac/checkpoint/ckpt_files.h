/* SPDX-License-Identifier: MIT */
/*
 * ckpt_files.h -- the files of a checkpoint: skipped, forgotten, or left.
 *
 * WHAT      A file that cannot be reached is skipped: its pages stay in the version store, and
 *           the log from which they can be redone is kept.  A file that has lost its name, and
 *           that nobody maps, is forgotten.  A file that nobody maps, and that has all its
 *           versions, is left (registry.h).
 * LOCK      checkpoint
 */
#ifndef XAC_CKPT_FILES_H
#define XAC_CKPT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xac_env;

/* The fate of a file in a checkpoint, by id. */
enum {
    XAC_CKPT_TOUCHED = 1, /* written in this run                                       */
    XAC_CKPT_SKIPPED = 2, /* cannot be reached                                         */
    XAC_CKPT_GONE = 4     /* forgotten                                                 */
};

struct xac_ckpt_files {
    uint32_t n; /* ids are below                                                       */
    uint8_t *fate;
    uint32_t *named, *left; /* ids: in the END, and not                                */
    size_t n_named, n_left;
    int error; /* of the last file that was skipped, 0 none                            */
};

/* xac_ckpt_files_init -- all files that are registered now; the begin of the checkpoint is in the log.  ret 0 or
   ENOMEM. */
int xac_ckpt_files_init(struct xac_ckpt_files *f, struct xac_env *env);
void xac_ckpt_files_free(struct xac_ckpt_files *f);

/*
 * xac_ckpt_files_lose -- a file cannot be opened or written, for that errno: it is skipped,
 * or forgotten.
 *
 * ret  0; an error that concerns all files.
 */
int xac_ckpt_files_lose(struct xac_ckpt_files *f, struct xac_env *env, uint32_t file,
                        int error);

/* xac_ckpt_files_synced -- say that all files that were reached have been synced. */
void xac_ckpt_files_synced(struct xac_ckpt_files *f, struct xac_env *env);

/*
 * xac_ckpt_files_choose -- choose the files that the END names.  It does not name files that nobody
 * maps and that no log from the redo position on names.  ret 0 or ENOMEM.
 */
int xac_ckpt_files_choose(struct xac_ckpt_files *f, struct xac_env *env,
                          uint64_t redo_lsn);

/* xac_ckpt_files_leave -- leave the files that were not named, unless they have been mapped again
   meanwhile; their versions have been unlinked. */
void xac_ckpt_files_leave(struct xac_ckpt_files *f, struct xac_env *env);

#endif /* XAC_CKPT_FILES_H */
