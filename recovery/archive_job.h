/* SPDX-License-Identifier: MIT */
/*
 * archive_job.h -- an archiver at work, for the files archive_*.c.
 *
 * OWNER     archive_run() (archive_ship.h).
 *
 * INVARIANTS
 *   (1) The stage's file "segment" has the blocks [seg.start, seg.end) of one generation; those below
 *       seg.put have been put.
 *   (2) Objects from a->n_named on have been put, and no manifest names them.
 */
#ifndef XAC_ARCHIVE_JOB_H
#define XAC_ARCHIVE_JOB_H

#include "archive_manifest.h"
#include "archive_place.h"
#include "archive_report.h"
#include "archive_store.h"
#include "log/slots.h"
#include "progress.h"
#include "ship/source.h"

/* Blocks of the log in the stage. */
struct archive_segment {
    int fd; /* of "segment"; -1: there are none                                        */
    struct xac_lineage_line line; /* of their generation                               */
    uint64_t segment_bytes;
    uint64_t start, put, end;
    unsigned n_parts; /* put                                                          */
    uint32_t previous_generation; /* the log goes on from there; 0: it does not       */
    uint64_t previous_end;
    uint64_t time_ns, put_time_ns; /* of the last commit of all, of those from `put` on */
};

struct archive_job {
    const struct archive_options *opt;
    struct archive_report *rep;
    struct archive_store store;
    struct archive_place place;
    struct archive a;
    uint64_t newest; /* number that was tried last for a manifest                     */
    char slot[XAC_SLOT_NAME_BYTES];
    bool has_source;
    struct xac_source source;
    struct archive_segment seg;
    bool is_anew;      /* the next block does not go on with what is archived           */
    bool wants_full;   /* the next manifest names all                                   */
    bool wants_backup; /* log is missing behind the last one                           */
    uint64_t shipped_ns;   /* when the last manifest was put, on the steady clock       */
    uint64_t since_backup; /* bytes of log in the archive behind the last backup      */
    struct archive_sum noted[2]; /* of xac.addresses and xac.history, as archived     */
    struct progress shown;
};

/* archive_ship_all -- put blocks that have not been put, notes that have changed, and name them. */
int archive_ship_all(struct archive_job *j);

/* archive_take -- a block that has been read, with its data file; ret 0 or an error. */
int archive_take(struct archive_job *j, const struct xac_followed *f);

/* archive_segment_drop -- forget the blocks that have not been put. */
void archive_segment_drop(struct archive_job *j);

/* archive_is_stopped -- by a signal. */
bool archive_is_stopped(const struct archive_job *j);

/*
 * archive_put -- a synced file of the stage becomes an object, under the name or one like it.
 *
 * in   o     all but the sum; its name is what the object is to be called
 * ret  0, and it is in j->a, not named yet; errors of archive_store_put().
 */
int archive_put(struct archive_job *j, const char *from, const struct archive_object *o);

/* archive_object_name -- "KIND.IDENTITY.BRANCH.REST". */
void archive_object_name(const struct archive_job *j, char name[ARCHIVE_NAME_MAX],
                         const char *kind, const char *rest);

/* archive_stage_file -- an empty file of the stage; ret 0 or errno with words. */
int archive_stage_file(struct archive_job *j, const char *name, int *fdp);

/* archive_name_all -- put a manifest that names what has been put; then the slot moves.  ret 0 or an error. */
int archive_name_all(struct archive_job *j);

/* archive_backup_is_due -- is it time for one? */
bool archive_backup_is_due(const struct archive_job *j);

/* archive_backup -- make one in the stage, put its files, and name them; older ones that are not to be kept, and
   log below the oldest, are not named any more.  ret 0 or an error. */
int archive_backup(struct archive_job *j);

#endif /* XAC_ARCHIVE_JOB_H */
