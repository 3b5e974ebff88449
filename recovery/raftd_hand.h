/* SPDX-License-Identifier: MIT */
/*
 * raftd_hand.h -- the thread that does to the environment what Raft has decided.
 *
 * WHAT      Takes committed entries from a queue, says of each whether it counts, and takes the log of those that do.
 *           When Raft makes this node the leader: has a barrier applied, proposes an OPEN, begins to lead when that has
 *           counted, and feeds Raft with the log.  When it is leader no more: ends that.  When this node is far behind:
 *           fetches what it lacks from the leader.
 * NOT HERE  Raft (raftd_raft.h), the environment (raftd_place.h), reading the log (raftd_feed.h).
 * OWNER     struct raftd_hand belongs to the caller.
 * LOCK      what follows `lock`: this.
 * THREADS   one of its own; what says so may be called by Raft's.
 *
 * INVARIANTS
 *   (1) Entries are judged in the order in which Raft has committed them, each once.
 *   (2) An OPEN of this node is proposed behind a barrier of its term.  So all that was committed before has been judged,
 *       and the log ends at the end of that (N2 to N4 of doc/replication.md).
 *   (3) This node begins to lead only in a generation whose nonce this life of the daemon has drawn, and while Raft says
 *       that it still leads in the term in which it has proposed it.
 *   (4) What a snapshot of Raft says is durable here.
 *   (5) While this node leads, and when it has led and its log has not been cut yet, it keeps what counts and is not durable
 *       here (raftd_kept.h).  When its log has been cut it takes from there what the log lacks.
 *   (6) A node that has been removed leaves nothing that looks alive: that is noted in its directory, and then all programs leave.
 */
#ifndef XAC_RAFTD_HAND_H
#define XAC_RAFTD_HAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "raftd_feed.h"
#include "raftd_fetch.h"
#include "raftd_group.h"
#include "raftd_kept.h"
#include "raftd_place.h"
#include "raftd_queue.h"
#include "raftd_raft.h"
#include "raftd_reads.h"
#include "raftd_send.h"
#include "raftd_status.h"

struct raftd_hand {
    struct raftd_group *group;
    struct raftd_raft *raft;
    struct raftd_status *status;
    struct raftd_send
        *send; /* is told when this node leads; NULL: nobody is            */
    struct raftd_queue queue;
    struct raftd_reads
        reads; /* stopped by the thread before the environment is closed     */
    pthread_t thread;
    bool is_quiet, is_started, is_stopped;
    _Atomic bool is_told; /* to stop                                                  */
    _Atomic bool is_removed; /* because this node has been removed from the group      */

    /* The thread's own. */
    struct raftd_place place;
    struct raftd_feed feed;
    struct raftd_fetch fetch;
    struct raftd_accepted
        target; /* what is being fetched; generation 0: anything        */
    struct raftd_accepted accepted;
    struct raftd_kept kept;               /* (5)                                     */
    bool keeps_item;                      /* the one that is being taken             */
    uint64_t n_taken;                     /* entries                               */
    uint8_t nonce[XAC_RAFTD_NONCE_BYTES]; /* of the OPEN that is under way         */
    uint64_t open_term;                   /* in which; 0: none is                  */
    uint64_t began_ns; /* when Raft said that we lead                                 */
    const struct xac_env
        *told_env;        /* to which it has been told who leads ...            */
    uint32_t told_leader; /* ... which node; 0: nobody                         */

    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_opened; /* or cannot be: open_rc                                            */
    int open_rc;
    char open_words[XAC_ERR_BYTES];
    uint64_t n_done;               /* entries that are durable here, or do not count   */
    uint64_t n_settled;            /* the same, and behind them no file is incomplete  */
    struct raftd_accepted settled; /* then                                            */
    /* Of a leader: the same when its log is durable as far as `due` says; NULL: there is nothing to wait for. */
    const struct raftd_place *awaits;
    uint64_t n_due;
    struct raftd_accepted due;
};

/* raftd_hand_init -- no thread yet; fini in any case, behind raftd_hand_stop(). */
void raftd_hand_init(struct raftd_hand *h, struct raftd_group *group,
                     struct raftd_net *net, int dirfd, const char *dir,
                     struct raftd_status *status);
void raftd_hand_fini(struct raftd_hand *h);

/* raftd_hand_start -- the thread, and the environment; before Raft is started.  in  far  who asks other nodes what is newest.
   ret 0; errno; as raftd_place_open(), words noted. */
int raftd_hand_start(struct raftd_hand *h, struct raftd_raft *raft,
                     const struct raftd_reads_far *far);

/* raftd_hand_user -- for raftd_raft_create(). */
struct raftd_raft_user raftd_hand_user(struct raftd_hand *h);

/* raftd_hand_stop -- the thread ends, and leaves the environment in order. */
void raftd_hand_stop(struct raftd_hand *h);

#endif /* XAC_RAFTD_HAND_H */
