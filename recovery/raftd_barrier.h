/* SPDX-License-Identifier: MIT */
/*
 * raftd_barrier.h -- barriers: what has been committed before is known to all that is behind them.
 *
 * WHAT      Asks libraft for a barrier, and has an item put when it is committed.  One that this node needs to lead, and libraft
 *           refuses, is asked for again.
 * NOT HERE  What an item means (raftd_hand.h, raftd_reads.h).  Whether the disk has room (raftd_disk.h).
 * OWNER     struct raftd_barriers belongs to the caller.
 * THREADS   the loop's.
 *
 * INVARIANTS
 *   (1) As long as a node leads, a barrier that it needs to do so is under way or due.  libraft refuses one while too few disks have
 *       room (RAFT_NOSPACE): a node that gave up would lead for ever, and nobody could write.  It says so once.
 */
#ifndef XAC_RAFTD_BARRIER_H
#define XAC_RAFTD_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>
#include <uv.h>

#include "raftd_queue.h"

/* One that libraft has refused is due again. */
#define RAFTD_BARRIER_AGAIN_MS 100

struct raftd_disk;
struct raftd_raft;

struct raftd_barriers {
    struct raftd_raft *r;
    struct raft *raft;
    const uv_loop_t *loop;
    struct raftd_disk *disk;
    /* Does this node lead in a term?  And: put an item. */
    bool (*leads)(const struct raftd_raft *r, uint64_t term);
    void (*put)(struct raftd_raft *r, enum raftd_item_kind what, uint64_t term);
    uint64_t due_term, due_ms; /* one is due in that term; 0: none                    */
    bool has_said; /* why none is committed                                            */
};

/* raftd_barrier_start -- if this node still leads in the term.  in  what  RAFTD_ITEM_BARRIER or RAFTD_ITEM_READ, see
   raftd_raft_barrier(). */
void raftd_barrier_start(struct raftd_barriers *b, enum raftd_item_kind what,
                         uint64_t term);

/* raftd_barrier_look -- once in each turn of the loop. */
void raftd_barrier_look(struct raftd_barriers *b);

#endif /* XAC_RAFTD_BARRIER_H */
