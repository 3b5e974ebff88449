/* SPDX-License-Identifier: MIT */
/*
 * raftd_queue.h -- what Raft has decided, on its way to the thread that does it to the environment.
 *
 * WHAT      A queue of items, in the order in which Raft's thread puts them.  It keeps Raft's thread from waiting for disks
 *           and for queries: libraft has one thread, which must answer in time or lose its role.
 * NOT HERE  What an item means (raftd_hand.h).
 * OWNER     struct raftd_queue belongs to the caller.
 * LOCK      its own mutex, for moments.
 * THREADS   one puts, one takes.
 *
 * INVARIANTS
 *   (1) Entries that wait are a part of Raft's log: it is not shortened before they have been taken.  So what bounds that
 *       (raftd_gather.h) bounds the queue.
 *   (2) Of items of kind BEHIND, which Raft's thread puts every 2 s, one waits at the most.
 */
#ifndef XAC_RAFTD_QUEUE_H
#define XAC_RAFTD_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_entry.h"

enum raftd_item_kind {
    RAFTD_ITEM_ENTRY,   /* Raft has committed an entry                                */
    RAFTD_ITEM_BARRIER, /* we lead in `term`, and all that was before is in the queue  */
    RAFTD_ITEM_READ, /* likewise, for those who ask what is newest; term 0: not committed */
    RAFTD_ITEM_LEADER,   /* another one leads, or nobody                               */
    RAFTD_ITEM_BROKEN,   /* an entry of ours could not be proposed in `term`            */
    RAFTD_ITEM_SNAPSHOT, /* Raft begins behind a snapshot                             */
    RAFTD_ITEM_BEHIND, /* Raft would begin there, and the log here does not reach so far */
    RAFTD_ITEM_MEMBERS, /* the nodes of the group are others                          */
    RAFTD_ITEM_REMOVED, /* this node has been removed from the group                  */
    RAFTD_ITEM_STOP
};

struct raftd_item {
    struct raftd_item *next;
    enum raftd_item_kind kind;
    uint64_t term;
    uint32_t leader;                /* node; 0 nobody                                  */
    struct raftd_accepted snapshot; /* what it says                                    */
    struct raftd_entry at; /* ENTRY: what is in the bytes, when they have been read     */
    size_t n;
    _Alignas(8) uint8_t bytes[]; /* ENTRY                                            */
};

struct raftd_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct raftd_item *first, **last;
    bool has_behind; /* one waits (2)                                                  */
};

void raftd_queue_init(struct raftd_queue *q);
void raftd_queue_fini(struct raftd_queue *q);

/* raftd_queue_put -- a copy of an item, with n bytes; or nothing (2); ret 0 or ENOMEM. */
int raftd_queue_put(struct raftd_queue *q, const struct raftd_item *item,
                    const void *bytes, size_t n);

/* raftd_queue_take -- the first item, which is the caller's to free(); NULL: none has come for so long. */
struct raftd_item *raftd_queue_take(struct raftd_queue *q, unsigned timeout_ms);

#endif /* XAC_RAFTD_QUEUE_H */
