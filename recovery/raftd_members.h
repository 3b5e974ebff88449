/* SPDX-License-Identifier: MIT */
/*
 * raftd_members.h -- the members of a group as Raft's configuration has them, and what is under way that changes them.
 *
 * WHAT      Keeps the group's list of members as Raft's configuration has it, on all nodes.
 * NOT HERE  The list itself (raftd_group.h).  Decisions (raftd_decide.h), and how they are carried out (raftd_change.h,
 *           raftd_handover.h).
 * OWNER     struct raftd_members belongs to the caller, and stays until Raft has ended.
 * THREADS   that of the loop.
 */
#ifndef XAC_RAFTD_MEMBERS_H
#define XAC_RAFTD_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#include "raftd_group.h"
#include "raftd_net_format.h"

/* What only the node that leads can answer. */
struct raftd_question {
    enum raftd_ask_kind kind; /* MEMBER, REMOVE, TRANSFER                              */
    uint32_t from;            /* the node that asks; 0: a user of this one             */
    uint32_t node;            /* of which it asks                                      */
};

/* Told once.  in  status  enum raftd_ask_status; value  of MEMBER: is it one?  of TRANSFER: the term that this node has led in, 0
   if the node led already */
typedef void raftd_decided(void *arg, uint32_t status, uint64_t value);

/* This node lets another one lead, or removes one. */
struct raftd_handover {
    struct raft_barrier barrier;
    struct raft_transfer req;
    raftd_decided *done; /* NULL: none is under way                                   */
    void *arg;
    uint32_t remove;    /* the node to be removed, this one, too; 0: none              */
    uint64_t last_node; /* the highest number that a NODE entry has had                */
    raft_term term; /* that this node leads in when it begins                          */
    raft_index index;  /* of the barrier                                              */
    uint32_t heir;     /* which is to lead; 0: it is not chosen yet                   */
    uint64_t until_ns; /* for other nodes to answer; 0: none is waited for            */
};

struct raftd_members {
    struct raft *raft;
    struct raftd_group *group;
    raft_index seen; /* of the configuration that the list was made of                 */
    bool was_member; /* this node was in one                                           */
    bool is_removed; /* and is not any more                                        */
    bool
        is_changing; /* decide (1)                                                         */
    bool
        has_changed; /* the list, since the caller has cleared this                     */
    struct raft_change promotion;
    struct raftd_handover handover;
};

/* Told once: rc 0 and the text of the group, or an error and words. */
typedef void raftd_change_done(void *arg, int rc, const char *text);

void raftd_members_init(struct raftd_members *m, struct raft *raft,
                        struct raftd_group *group);

/* raftd_members_look -- has Raft's configuration changed?  Then the group's list has, and m->has_changed says so. */
void raftd_members_look(struct raftd_members *m);

/* raftd_members_trail -- so many entries stay behind a snapshot: what the slowest node needs, within bounds. */
unsigned raftd_members_trail(const struct raftd_members *m, unsigned least,
                             unsigned most);

#endif /* XAC_RAFTD_MEMBERS_H */
