/* SPDX-License-Identifier: MIT */
/*
 * standby_redo.h -- the half of a standby that is behind its log: redo, the files, and where redo may begin.
 *
 * WHAT      The state of a standby, and what standby.c calls when log is durable.
 * NOT HERE  Taking and checking log (standby.c), publishing it (replayer.h).
 * OWNER, LOCK, THREADS, INVARIANTS  see standby.h.
 */
#ifndef XAC_STANDBY_REDO_H
#define XAC_STANDBY_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/block.h"
#include "log/lineage.h"
#include "log/replica.h"
#include "recovery/recover_pass.h"
#include "recovery/replayer.h"

/* Completed checkpoints of the source that are remembered while a reader holds pages back. */
#define POINTS_MAX 64

/* A completed checkpoint of the source: where a recovery of the standby may begin. */
struct point {
    uint64_t redo_lsn, begin_lsn;
    uint64_t lsn, end_lsn; /* of the block of its XCHECKPT_END                        */
};

struct xac_standby {
    int dirfd;
    char *dir;
    struct xac_env *env; /* whose replayer this process is; NULL: there is no region  */
    struct xac_replayer replayer;
    struct xac_recovery r;
    const struct xac_recover_options *options; /* of it                                */
    struct xac_replica log;
    struct xac_lineage_line line; /* of the generation                                */
    uint64_t applied;
    uint64_t prepared; /* r.redo.changes when the files were prepared                   */
    uint8_t *waiting;  /* blocks that have been appended, and not been redone          */
    size_t n_waiting, room;
    uint64_t n_taken; /* transactions                                                 */
    bool note_is_old; /* xac.backup does not have all files                           */
    struct point point[POINTS_MAX]; /* in the order of the log                        */
    size_t n_points;
};

/* xac_standby_redo -- redo a block, which is durable, and move the redo position if the source has completed a
   checkpoint.  ret as xac_standby_apply(). */
int xac_standby_redo(struct xac_standby *s, const struct xac_block *blk);

/* xac_standby_go_on -- redo beside readers what they have not seen of the log that is here. */
int xac_standby_go_on(struct xac_standby *s);

/* xac_standby_write -- the files hold everything that has been redone, synced; beside readers as far as these
   allow it.  xac_standby_note -- xac.backup says that they may (2). */
int xac_standby_write(struct xac_standby *s);
int xac_standby_note(struct xac_standby *s);

/* xac_standby_end_generation -- the files have all of it, and so has the note, with the names of its files.  ret
   EAGAIN by (6). */
int xac_standby_end_generation(struct xac_standby *s);

/* xac_standby_move -- recovery of the standby begins elsewhere from now on. */
int xac_standby_move(struct xac_standby *s, struct xac_master_slot *m);

#endif /* XAC_STANDBY_REDO_H */
