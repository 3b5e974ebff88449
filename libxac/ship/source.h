/* SPDX-License-Identifier: MIT */
/*
 * source.h -- an environment as the source of a log that others follow.
 *
 * WHAT      Hands out the log block by block, across generations, as far as it is durable, and waits
 *           for more.  While somebody is attached the control region says how far that is; it is
 *           mapped read-only, but for the pages in which followers announce themselves.  While nobody
 *           is, the log is synced with the gate held, and read to its end.
 * NOT HERE  Reading a generation (follow.h).
 * OWNER     struct xac_source belongs to the caller, who is no participant by it.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) What is handed out is durable: it lies below the region's `durable`, or has been synced while
 *       nobody was attached, or belongs to a generation that a recovery has ended, which syncs first.
 *   (2) `limit` only grows within a generation.
 *   (3) A generation is left only for one that begins where a recovery that found this end begins it.
 */
#ifndef XAC_SOURCE_H
#define XAC_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/follow.h"
#include "log/log_state.h"
#include "shared/env_state.h"

struct xac_source {
    char *dir;
    int dirfd, logfd;
    int notify; /* inotify of the directory, for the time when nobody is attached; -1  */
    struct xac_master_slot master; /* as read last                                    */
    struct xac_follow follow;
    uint64_t limit; /* of the cursor's generation; XAC_FOLLOW_SEALED: it is over       */

    bool is_at_rest; /* nobody is attached, and the limit is the end of the generation */
    bool is_live; /* somebody is attached to `env`, or was when we looked last         */
    struct xac_env env;
    struct xac_log_followers *followers; /* of that region, writable                  */
    void *pages;                         /* they lie in                               */
    size_t pages_bytes;
};

/* xac_source_open -- of the environment in a directory; ret 0; XAC_ENOTENV and others of
   xac_master_read() and xac_logdir_open(); errno.  Close it in any case. */
int xac_source_open(struct xac_source *s, const char *dir);
void xac_source_close(struct xac_source *s);

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

/* xac_source_next -- the next block; out->blk NULL: there is none yet.  ret as xac_follow_next() and
   xac_source_seek(); XAC_ECUTOFF also if the log does not go on behind the cursor's generation. */
int xac_source_next(struct xac_source *s, struct xac_followed *out);

/* xac_source_wait -- sleep until xac_source_next() may find more, or for a time; it may return
   earlier.  Without a time, look at once whether there is more. */
void xac_source_wait(struct xac_source *s, unsigned timeout_ms);

#endif /* XAC_SOURCE_H */
