/* SPDX-License-Identifier: MIT */
/*
 * raftd_members.h -- nodes that come and go: Raft's configuration.
 *
 * WHAT      Adds a node, removes one, and makes one that has caught up a voter, on the node that leads.  Keeps the group's list
 *           of members as Raft's configuration has it, on all nodes.
 * NOT HERE  The list itself (raftd_group.h).  Whom the command comes from (raftd_socket.h).
 * OWNER     struct raftd_members belongs to the caller, and stays until Raft has ended.
 * THREADS   that of the loop.
 *
 * INVARIANTS
 *   (1) One change at a time: libraft takes the next one when a majority has the one before.
 *   (2) A number is used once: a NODE entry with it is committed before the node is added (raftd_entry.h).  A node that has lost
 *       its disk has forgotten its vote, so it comes back under another number.
 *   (3) A new node counts for majorities when it has caught up, not before.
 *   (4) The node that leads is not removed: it must cease to lead first.
 */
#ifndef XAC_RAFTD_MEMBERS_H
#define XAC_RAFTD_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#include "raftd_group.h"

struct raftd_change;

struct raftd_members {
    struct raft *raft;
    struct raftd_group *group;
    raft_index seen;  /* of the configuration that the list was made of                 */
    bool was_member;  /* this node was in one                                           */
    bool is_removed;  /* and is not any more                                            */
    bool is_changing; /* (1)                                                            */
    bool
        has_changed; /* the list, since the caller has cleared this                     */
    struct raft_change promotion;
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

/*
 * raftd_members_command -- "add NODE ADDRESS" or "remove NODE".
 *
 * in   last_node  the highest number that a NODE entry has had
 */
void raftd_members_command(struct raftd_members *m, const char *line, uint64_t last_node,
                           raftd_change_done *done, void *arg);

#endif /* XAC_RAFTD_MEMBERS_H */
