/* SPDX-License-Identifier: MIT */
/*
 * raftd_decide.h -- nodes that come and go: what the node that leads decides.
 *
 * WHAT      Decides, on the node that leads, whether a node is added or removed, and whether another one leads.  Makes a node that
 *           has caught up a voter.
 * NOT HERE  How it is done (raftd_change.h, raftd_handover.h).  Whom a command comes from (raftd_socket.h, raftd_command.h).
 * OWNER     As of struct raftd_members.
 * THREADS   that of the loop.
 *
 * INVARIANTS
 *   (1) One change at a time: libraft takes the next one when a majority has the one before.
 *   (2) A number is used once: a NODE entry with it is committed before the node is added (raftd_entry.h), and before a node of
 *       the beginning is removed.  A node that has lost its disk has forgotten its vote, so it comes back under another number.
 *   (3) A new node counts for majorities when it has caught up, not before.
 *   (4) A node is said to be none of the group only by a node that leads, when the newest configuration there is committed, and only
 *       if its number has been used: so it has been removed, or has never been one, and will not be one again.
 */
#ifndef XAC_RAFTD_DECIDE_H
#define XAC_RAFTD_DECIDE_H

#include <stdint.h>

#include "raftd_members.h"

/* raftd_decide_promote -- if this node leads: what is due for new nodes (3). */
void raftd_decide_promote(struct raftd_members *m);

/* raftd_decide_question -- if this node leads.  in  last_node  the highest number that a NODE entry has had */
void raftd_decide_question(struct raftd_members *m, const struct raftd_question *q,
                           uint64_t last_node, raftd_decided *done, void *arg);

/* raftd_decide_command -- "add NODE ADDRESS".  in  last_node  likewise */
void raftd_decide_command(struct raftd_members *m, const char *line, uint64_t last_node,
                          raftd_change_done *done, void *arg);

#endif /* XAC_RAFTD_DECIDE_H */
