/* SPDX-License-Identifier: MIT */
/*
 * raftd_members.h -- nodes that come and go: Raft's configuration.
 *
 * WHAT      Adds a node, removes one, makes one that has caught up a voter, and lets another one lead, on the node that leads.  Keeps
 *           the group's list of members as Raft's configuration has it, on all nodes.
 * NOT HERE  The list itself (raftd_group.h).  Whom the command comes from (raftd_socket.h, raftd_errand.h).
 * OWNER     struct raftd_members belongs to the caller, and stays until Raft has ended.
 * THREADS   that of the loop.
 *
 * INVARIANTS
 *   (1) One change at a time: libraft takes the next one when a majority has the one before.
 *   (2) A number is used once: a NODE entry with it is committed before the node is added (raftd_entry.h), and before a node of
 *       the beginning is removed.  A node that has lost its disk has forgotten its vote, so it comes back under another number.
 *   (3) A new node counts for majorities when it has caught up, not before.
 *   (4) The node that leads is not removed: it lets another one lead first.
 *   (5) A node is said to be none of the group only by a node that leads, when the newest configuration there is committed, and only
 *       if its number has been used: so it has been removed, or has never been one, and will not be one again.
 *   (6) The node that is to lead is told so when it has said that it has all entries on disk, and nothing is proposed from the moment
 *       it is chosen on.  libraft tells it once, as soon as all have been sent, and a node that has one of them not yet on disk
 *       takes no notice.
 *   (7) A node is removed only when a majority of the others that count has an entry that was made for that, so runs: else nothing
 *       could be committed any more.
 */
#ifndef XAC_RAFTD_MEMBERS_H
#define XAC_RAFTD_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#include "raftd_group.h"
#include "raftd_net_format.h"

struct raftd_change;

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
    raft_index index; /* of the barrier                                              */
    uint32_t heir; /* which is to lead (6); 0: it is not chosen yet                   */
    uint64_t until_ns; /* for other nodes to answer; 0: none is waited for            */
};

struct raftd_members {
    struct raft *raft;
    struct raftd_group *group;
    raft_index seen;  /* of the configuration that the list was made of                 */
    bool was_member;  /* this node was in one                                           */
    bool is_removed;  /* and is not any more (5)                                        */
    bool is_changing; /* (1)                                                            */
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

/* raftd_members_promote -- if this node leads: what is due for new nodes (3). */
void raftd_members_promote(struct raftd_members *m);

/* raftd_members_await -- go on with what waits for answers of other nodes. */
void raftd_members_await(struct raftd_members *m);

/* raftd_members_is_leaving -- this node leads, and lets another one lead: nothing is to be proposed (6). */
bool raftd_members_is_leaving(const struct raftd_members *m);

/* raftd_members_heir -- the node that is to lead when this one lets go: a voter that has most of the log; 0: there is no other. */
uint32_t raftd_members_heir(const struct raftd_members *m);

/* raftd_members_give_way -- if this node leads, and can do nothing: let another one lead. */
void raftd_members_give_way(struct raftd_members *m);

/* raftd_members_decide -- if this node leads.  in  last_node  the highest number that a NODE entry has had */
void raftd_members_decide(struct raftd_members *m, const struct raftd_question *q,
                          uint64_t last_node, raftd_decided *done, void *arg);

/* raftd_members_command -- "add NODE ADDRESS".  in  last_node  likewise */
void raftd_members_command(struct raftd_members *m, const char *line, uint64_t last_node,
                           raftd_change_done *done, void *arg);

#endif /* XAC_RAFTD_MEMBERS_H */
