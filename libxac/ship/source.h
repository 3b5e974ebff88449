/* SPDX-License-Identifier: MIT */
/*
 * source.h -- an environment as the source of a log that others follow.
 *
 * WHAT      Hands out the log block by block, across generations, as far as it is durable, and waits
 *           for more.  While somebody is attached the control region says how far that is; it is
 *           mapped read-only, but for the pages in which followers announce themselves.  While nobody
 *           is, the log is synced with the gate held, and read to its end.
 * NOT HERE  Reading a generation (follow.h); making slots (checkpoint/hold.h).
 * OWNER     struct xac_source belongs to the caller, who is no participant by it.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) What is handed out is durable, in a group on a majority: it lies below the region's xac_group_bound(), or has been synced while
 *       nobody was attached, or belongs to a generation that a recovery has ended, which syncs first.  One who goes ahead gets
 *       what is written, though it is not synced here, and no majority has it.
 *   (2) `limit` only grows within a generation.
 *   (3) The slot is moved to marks only, and only to those at or below what the follower has kept.
 *   (4) A generation is left only for one that begins where a recovery that found this end begins it.
 */
#ifndef XAC_SOURCE_H
#define XAC_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/follow.h"
#include "log/lineage.h"
#include "log/log_state.h"
#include "log/slots.h"
#include "shared/env_state.h"

/* Marks (slots.h) that are remembered; with more under way the slot moves a little later. */
#define XAC_SOURCE_MARKS 64

struct xac_source {
    char *dir;
    int dirfd, logfd;
    int notify; /* inotify of the directory, for the time when nobody is attached; -1  */
    struct xac_master_slot master; /* as read last                                    */
    struct xac_follow follow;
    uint64_t
        limit; /* of the cursor's generation; XAC_FOLLOW_SEALED: it is over, and its end is
                       not known                                                       */

    bool
        is_over; /* the cursor's generation is: a newer one has begun                    */
    struct xac_lineage_line
        next;        /* then, the one behind it; generation 0: not known     */
    bool is_ahead;   /* the limit is what is written (1)                               */
    bool is_at_rest; /* nobody is attached, and the limit is the end of the generation */
    bool is_live; /* somebody is attached to `env`, or was when we looked last         */
    struct xac_env env;
    struct xac_log_followers *followers; /* of that region, writable                  */
    void *pages;                         /* they lie in                               */
    size_t pages_bytes;

    /* The slot that the follower has, if it has one. */
    char slot_name[XAC_SLOT_NAME_BYTES]; /* "" none                                   */
    struct xac_log_slot *slot;           /* in the region, while there is one          */
    uint64_t slot_word;                  /* of it, as known last                      */
    uint64_t mark[XAC_SOURCE_MARKS]; /* handed out, and not known to be kept; ascend */
    size_t n_marks;
    uint64_t kept; /* the last mark that the follower has kept; 0 none                */
};

/* xac_source_open -- of the environment in a directory; ret 0; XAC_ENOTENV and others of
   xac_master_read() and xac_logdir_open(); errno.  Close it in any case. */
int xac_source_open(struct xac_source *s, const char *dir);
void xac_source_close(struct xac_source *s);

/* xac_source_go_ahead -- hand out what is written (1): only to the daemon of a group's leader, who brings it to a majority, and
   keeps it until it is durable here.  Before xac_source_seek(). */
void xac_source_go_ahead(struct xac_source *s);

/*
 * xac_source_seek -- go to a block, or to the end of the log; once.
 *
 * in   generation, lsn      of the cursor
 * in   segment_bytes        of that generation; 0: it is the one of the master record
 * ret  0; EINVAL: the log has no such place yet; ENOTSUP: the environment is not durable now; as
 *      xac_peek_open(), but for ENOENT; errno.
 */
int xac_source_seek(struct xac_source *s, uint32_t generation, uint64_t lsn,
                    uint64_t segment_bytes);

/*
 * xac_source_line -- the line of a generation, from xac.history.
 *
 * out  line  generation 0: there is none.  Generation 1 has none; nothing else is like it, so it gets one
 *            with a branch of zeros
 * ret  0 or as xac_lineage_read().
 */
int xac_source_line(const struct xac_source *s, uint32_t generation,
                    struct xac_lineage_line *line);

/* xac_source_next -- the next block; out->blk NULL: there is none yet.  ret as xac_follow_next() and
   xac_source_seek(); XAC_ECUTOFF also if the log does not go on behind the cursor's generation. */
int xac_source_next(struct xac_source *s, struct xac_followed *out);

/*
 * xac_source_hold -- use a slot, before xac_source_seek(): what it holds back stays, unless it is lost.
 *
 * out  lsnp  its position
 * ret  0; XAC_ECUTOFF: there is no such slot, or it is lost; others as xac_source_seek().
 */
int xac_source_hold(struct xac_source *s, const char *name, uint64_t *lsnp);

/* xac_source_keep -- the follower has kept, on disk, all that was handed out before lsn: the slot
   need not hold it back.  While nobody is attached the slot moves later. */
void xac_source_keep(struct xac_source *s, uint64_t lsn);

/* xac_source_wait -- sleep until xac_source_next() may find more, or for a time; it may return
   earlier.  Without a time, look at once whether there is more. */
void xac_source_wait(struct xac_source *s, unsigned timeout_ms);

#endif /* XAC_SOURCE_H */
