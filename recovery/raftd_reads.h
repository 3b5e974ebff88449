/* SPDX-License-Identifier: MIT */
/*
 * raftd_reads.h -- what is newest in the group: asked for by programs on this node, and by the daemons of others.
 *
 * WHAT      A thread hears programs that want to see all that was acknowledged (shared/group.h, ASKING).  If this node leads, a
 *           barrier of Raft says up to where that is; else the daemon of the node that leads is asked, which has a
 *           barrier made.
 * NOT HERE  Raft (raftd_raft.h).  Connections: a function that asks another node is given (struct raftd_reads_far).
 * OWNER     struct raftd_reads belongs to the caller.
 * LOCK      its mutex, for moments.
 * THREADS   one that hears programs, while an environment is open; one that asks other nodes.  raftd_reads_listen, _deafen and
 *           _barrier_done are the hand's, raftd_reads_position anybody's.
 *
 * INVARIANTS
 *   (1) A round begins behind all questions that it answers: the question is counted, then the round begun.  One is under way
 *       at a time, and a question that comes meanwhile waits for the next one.  So one round answers all that came before it.
 *   (2) A round of Raft is a barrier of a term in which this node leads, and its position is the end of what has been accepted
 *       when the barrier is taken from the queue: every commit that was acknowledged before the round began was accepted before.
 *   (3) Programs on the node that leads are answered by its own barriers only: another node may be ahead of the region.
 *   (4) The environment stays open while a thread hears it.
 */
#ifndef XAC_RAFTD_READS_H
#define XAC_RAFTD_READS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "raftd_raft.h"

struct xac_env;
struct raftd_status;

/* Whom to ask at another node. */
struct raftd_reads_far {
    void *arg; /* NULL: nobody                                                          */
    /* ask -- the daemon of a node, for raftd_reads_position() there; until a time.  ret 0; anything else: it has not said. */
    int (*ask)(void *arg, uint32_t node, uint64_t until_ns, uint64_t *lsnp);
    /* cut -- have it return soon, by another thread; nothing is asked any more. */
    void (*cut)(void *arg);
    /* end -- by the thread that has asked: it asks nothing more. */
    void (*end)(void *arg);
};

/* Questions of one kind. */
struct raftd_round {
    uint64_t
        wanted;     /* the last round that somebody waits for                           */
    uint64_t begun; /* rounds                                                          */
    uint64_t done;  /* of them; one less than begun while one is under way              */
    uint64_t good;  /* the last one that has said something                            */
    uint64_t lsn;   /* that one                                                        */
};

struct raftd_reads {
    struct raftd_raft *raft;
    struct raftd_status *status;
    struct raftd_reads_far far;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct raftd_round own,
        others;   /* barriers here; at the node that leads              */
    bool is_over; /* nobody waits any more                           */

    struct xac_env *env; /* that is heard; NULL: none                                   */
    bool is_deaf;        /* the thread that hears it is to end                         */
    pthread_t ear, mouth;
    bool has_mouth;
};

void raftd_reads_init(struct raftd_reads *r, struct raftd_status *status);
void raftd_reads_fini(struct raftd_reads *r);

/* raftd_reads_start -- before anybody asks; ret 0 or errno with words. */
int raftd_reads_start(struct raftd_reads *r, struct raftd_raft *raft,
                      const struct raftd_reads_far *far);

/* raftd_reads_stop -- all who wait return, and nobody waits any more.  The environment is not heard any more. */
void raftd_reads_stop(struct raftd_reads *r);

/* raftd_reads_listen -- hear programs in an environment, if that is not done yet; ret 0 or errno with words. */
int raftd_reads_listen(struct raftd_reads *r, struct xac_env *env);

/* raftd_reads_deafen -- no longer: it is going to be closed, or programs are to leave. */
void raftd_reads_deafen(struct raftd_reads *r);

/*
 * raftd_reads_position -- where everything stands that was acknowledged before the call.
 *
 * ret  0; EAGAIN: this node does not lead, or leads no more; ETIMEDOUT; ECANCELED: the daemon ends.  Without words.
 */
int raftd_reads_position(struct raftd_reads *r, uint64_t until_ns, uint64_t *lsnp);

/* raftd_reads_barrier_done -- RAFTD_ITEM_READ has come.  in  is_good  the barrier is committed; lsn  the end of what is
   accepted. */
void raftd_reads_barrier_done(struct raftd_reads *r, bool is_good, uint64_t lsn);

#endif /* XAC_RAFTD_READS_H */
