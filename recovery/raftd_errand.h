/* SPDX-License-Identifier: MIT */
/*
 * raftd_errand.h -- questions that only the node that leads can answer: remove a node, let another one lead, is a node one of the
 * group still?
 *
 * WHAT      Asks them, of this node or of another one, and answers those of other nodes.  Asks, while no node that leads is heard
 *           of, whether this node has been removed: the others do not tell one that has been away.
 * NOT HERE  Commands of users (raftd_command.h).  Decisions (raftd_decide.h).  Frames and lines (raftd_ask.h,
 *           raftd_net.h).
 * OWNER     struct raftd_errands belongs to the caller, and stays until raftd_net_stop() has returned.
 * LOCK      its mutex, for moments.
 * THREADS   raftd_errand_ask() and _serve(): those of the net; the others: that of the loop.
 *
 * INVARIANTS
 *   (1) Raft is looked at in the loop only.  Threads hand it calls, and wait.
 *   (2) Nothing in the loop waits.
 *   (3) A question is given on once at most: two nodes that each take the other one for the leader do not ask for ever.
 *   (4) A node that Raft has made a voter may be elected before the first copy of the environment has come.  It lets another one
 *       lead: a copy comes from a node that leads.
 */
#ifndef XAC_RAFTD_ERRAND_H
#define XAC_RAFTD_ERRAND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "raftd_ask.h"
#include "raftd_calls.h"
#include "raftd_members.h"

struct raftd_net;
struct raftd_status;

struct raftd_errands {
    struct raftd_net *net;
    struct raftd_group *group;
    struct raftd_status *status;
    struct raftd_members *members; /* the loop's                                       */
    struct raftd_calls calls;      /* which the loop runs                              */
    uint64_t alone_ns; /* no node has led since then; 0: one leads                     */
    bool is_asking;    /* a thread asks whether this node has been removed             */
    bool is_closing;   /* no command is taken any more                                 */

    pthread_mutex_t lock; /* of the following                                          */
    pthread_cond_t changed;
    bool is_over; /* the loop decides nothing any more                                 */
};

/* raftd_errands_init -- with a handle of the loop, which raftd_errands_end() closes; then fini, behind raftd_net_stop(). */
void raftd_errands_init(struct raftd_errands *e, uv_loop_t *loop, struct raftd_net *net,
                        struct raftd_group *group, struct raftd_status *status,
                        struct raftd_members *members);
void raftd_errands_end(struct raftd_errands *e);
void raftd_errands_fini(struct raftd_errands *e);

/*
 * raftd_errand_ask -- the node that leads.
 *
 * in   leader  which one that is, perhaps this one; 0: none is known
 * out  value   see raftd_decided
 * ret  enum raftd_ask_status
 */
uint32_t raftd_errand_ask(struct raftd_errands *e, uint32_t leader,
                          const struct raftd_question *q, uint64_t until_ns,
                          uint64_t *value);

/* raftd_errand_look -- does a node lead that can (4)?  If none has for a while, ask whether this one has been removed: then
   members->is_removed. */
void raftd_errand_look(struct raftd_errands *e);

/*
 * raftd_errand_serve -- a question of another node.
 *
 * out  value  1 or 0
 * ret  enum raftd_ask_status
 */
uint32_t raftd_errand_serve(struct raftd_errands *e, uint32_t from,
                            const struct xac_raftd_ask *ask, uint64_t until_ns,
                            uint64_t *value);

#endif /* XAC_RAFTD_ERRAND_H */
