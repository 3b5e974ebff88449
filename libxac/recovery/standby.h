/* SPDX-License-Identifier: MIT */
/*
 * standby.h -- a copy of an environment that follows it: takes its log, keeps it, and redoes it.
 *
 * WHAT      A standby is a backup (backup_note.h) to which log is appended.  Blocks are checked,
 *           appended, synced, and then redone, one transaction after the other, by the redo of a recovery
 *           that does not end.  Where the source has completed a checkpoint, the files are synced, and
 *           the standby's master record moves: it is where its next recovery begins.
 *           Beside readers, redo publishes (replayer.h), and readers hold pages back from their files.
 * NOT HERE  Where the blocks come from (ship/receive).  Appending them (replica.h).  Recovering a standby that
 *           is to be an environment of its own: that is any recovery, as of a backup.
 * OWNER     struct xac_standby belongs to the caller.
 * LOCK      The gate of the directory while it is opened.  From then on this process is the only participant
 *           that is no reader; without a region the gate, all the time.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) At each moment, also after a crash, a recovery of the directory gives a state that the source has
 *       had: redo up to the end of some block, at or behind all that has been acknowledged.
 *   (2) The files hold nothing from behind `end_lsn` of xac.backup, and that is not behind what is
 *       durable of the log.
 *   (3) The redo position moves to marks of the source only (slots.h): from there on the first record
 *       of each page is a full image, or a difference to the file.
 *   (4) The generation is that of the log's end: the master record names it before a block of it is
 *       written.  A recovery never finds two generations.
 *   (5) The redo position is not behind what a page needs that readers keep out of its file.  It stands with
 *       the end of the checkpoint of the source that names it: that one lists the files which log from there on
 *       speaks of.
 *   (6) A generation ends here when no reader keeps a page out of its file.
 *
 * After an error the standby must be closed.
 */
#ifndef XAC_STANDBY_H
#define XAC_STANDBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/block.h"
#include "log/lineage.h"

struct xac_env;
struct xac_standby;

/* Where a standby is. */
struct xac_standby_place {
    struct xac_lineage_line line; /* of its generation; branch zeros: not known       */
    uint8_t identity[16];
    uint32_t page_size;
    uint64_t durable; /* the log is on disk up to here                                */
    uint64_t applied; /* and redone                                                   */
    uint64_t redo_lsn;
    uint64_t transactions; /* taken since it was opened                                */
};

/*
 * xac_standby_lock -- the gate of a directory in which nobody takes part: nobody else receives into it, or
 * opens it, until the lock file is closed.  If the gate is held it is waited for, 2 s at the most.
 *
 * out  lockfdp  the caller's, also after an error; -1 if it could not be opened
 * ret  0; XAC_ELIVE: others use it; errno; words noted.
 */
int xac_standby_lock(int dirfd, const char *dir, int *lockfdp);

/*
 * xac_standby_start -- go on with the standby in a directory: what its log has is redone, in its files.  Nobody takes
 * part in it, and the caller holds its gate.
 *
 * in   dirfd  of the directory; stays the caller's
 * in   dir    its path
 * ret  0; EINVAL: it has become an environment of its own; XAC_ENOTENV: it is not whole (rewind_note.h); as
 *      xac_recover_dir(); words noted.
 */
int xac_standby_start(int dirfd, const char *dir, struct xac_standby **sp);

/* xac_standby_start_rewound -- with one that is not whole: the log that it lacks is to be taken, until it has all from
   before the end that xac.backup says. */
int xac_standby_start_rewound(int dirfd, const char *dir, struct xac_standby **sp);

/* xac_standby_admit -- there is a region now, of which this process is the replayer: from here on it redoes
   beside readers.  ret 0 or ENOMEM. */
int xac_standby_admit(struct xac_standby *s, struct xac_env *env);

/*
 * xac_standby_join -- go on where the replayer before has died, or has left readers alone: what they have not
 * seen is redone.
 *
 * in   env  it is its new replayer
 * ret  0; XAC_ELIVE: readers must leave first; as xac_standby_start().
 */
int xac_standby_join(struct xac_env *env, struct xac_standby **sp);

void xac_standby_close(struct xac_standby *s);

void xac_standby_where(const struct xac_standby *s, struct xac_standby_place *out);

/*
 * xac_standby_files -- those of which the log speaks, from the last checkpoint of this generation on.
 *
 * in   fn  is told its path, as the standby has it, and whether the log has forgotten it; not 0: no more
 * ret  0 or what fn has returned.
 */
int xac_standby_files(const struct xac_standby *s,
                      int (*fn)(void *arg, const char *path, bool is_gone), void *arg);

/* xac_standby_file_changes -- counts changes in which these are; a generation begins anew. */
uint64_t xac_standby_file_changes(const struct xac_standby *s);

/* xac_standby_data -- a piece of the data file that the next block names; see xac_replica_data(). */
int xac_standby_data(struct xac_standby *s, uint64_t serial, uint64_t offset,
                     const void *bytes, size_t n);

/*
 * xac_standby_take -- the next block.  It is not durable yet.
 *
 * in   blk  8-aligned, of `n` bytes; nothing about it has been checked
 * ret  0; XAC_EDAMAGED: it does not belong there, or its contents cannot be; XAC_EREPLACED, EINVAL: the
 *      log goes on with files that this copy cannot get from the log (recover_redo.h, (8) and (9));
 *      errno.
 */
int xac_standby_take(struct xac_standby *s, const struct xac_block *blk, size_t n);

/* xac_standby_sync -- all blocks taken are durable when this returns 0; or errno. */
int xac_standby_sync(struct xac_standby *s);

/* xac_standby_mark -- and known to be, after a power cut, too: damage to it will be named (received.h).  Once in a while,
   for it is another sync.  ret 0 or errno. */
int xac_standby_mark(struct xac_standby *s);

/* xac_standby_apply -- redo what is durable; move the redo position if the source has completed a
   checkpoint.  ret 0 or an error as xac_recover_dir(). */
int xac_standby_apply(struct xac_standby *s);

/* xac_standby_is_full -- so much waits to be applied that it is time for it. */
bool xac_standby_is_full(const struct xac_standby *s);

/*
 * xac_standby_turn -- the source goes on with another generation.
 *
 * in   line      of it; branch zeros: xac.history of the source does not have it
 * ret  0; EAGAIN: queries that began before hold pages back (6): try again later; XAC_EFOREIGN: it begins before the end of the log that is here; as xac_standby_apply().
 */
int xac_standby_turn(struct xac_standby *s, const struct xac_lineage_line *line);

/* xac_standby_rest -- before a stop: everything is redone and in the files.  ret 0 or as
   xac_standby_apply(). */
int xac_standby_rest(struct xac_standby *s);

#endif /* XAC_STANDBY_H */
