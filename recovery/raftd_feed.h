/* SPDX-License-Identifier: MIT */
/*
 * raftd_feed.h -- the thread that reads the leader's log as it is written, and proposes it to Raft.
 *
 * WHAT      Puts whole blocks into BATCH entries, data files into DATA before them, and xac.addresses into NOTE when it
 *           has changed.
 * NOT HERE  The log (ship/source.h).  Whether an entry is committed, and counts.
 * OWNER     struct raftd_feed belongs to the caller.
 * LOCK      its mutex: `under_way`.
 * THREADS   one of its own; the caller's starts and stops it.
 *
 * INVARIANTS
 *   (1) Only what is written in the leader's log is proposed, in its order, from the start of the generation on: it is there when
 *       all processes have died.  While a process syncs it here, a majority does (F1).
 *   (2) At most RAFTD_FEED_ENTRIES entries, or RAFTD_FEED_BYTES, are under way.  Meanwhile blocks gather for the next one.
 *   (3) An entry holds one block, or several that have at most RAFTD_FEED_BATCH bytes together.
 *   (4) A file begins when all entries before it are committed.  So each node gets them before it, and can shorten Raft's log
 *       there; in the middle of a file it cannot.
 *   (5) No block is taken while Raft's log here is to be shortened before anything more comes.
 */
#ifndef XAC_RAFTD_FEED_H
#define XAC_RAFTD_FEED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "raftd_entry.h"
#include "raftd_raft.h"
#include "ship/source.h"

#define RAFTD_FEED_ENTRIES 8
#define RAFTD_FEED_BYTES   ((size_t)8 << 20)
#define RAFTD_FEED_BATCH   ((size_t)256 << 10)

struct raftd_feed {
    bool is_running;
    pthread_t thread;
    struct raftd_raft *raft;
    uint64_t term;
    struct raftd_accepted begin; /* the generation that this node has begun            */
    struct xac_source source;
    struct stat addresses; /* as proposed last                                   */
    uint8_t *entry;        /* BATCH that is being filled; NULL none              */
    size_t n;              /* bytes of blocks in it                              */
    uint64_t lsn;          /* of the first one                                   */
    uint64_t next;         /* LSN of the next block                              */
    _Atomic bool is_stopped;

    pthread_mutex_t lock;
    pthread_cond_t fewer;
    size_t n_under_way, bytes_under_way;
};

void raftd_feed_init(struct raftd_feed *f);
void raftd_feed_fini(struct raftd_feed *f);

/* raftd_feed_start -- in  dir  of the environment that leads; begin  what is accepted; term  of Raft.  ret 0; as
   xac_source_open() and xac_source_seek(), words noted. */
int raftd_feed_start(struct raftd_feed *f, const char *dir,
                     const struct raftd_accepted *begin, struct raftd_raft *raft,
                     uint64_t term);

/* raftd_feed_stop -- nothing is proposed any more when this returns; raftd_feed_fini() comes when Raft's thread has ended,
   which tells of the entries that are under way. */
void raftd_feed_stop(struct raftd_feed *f);

#endif /* XAC_RAFTD_FEED_H */
