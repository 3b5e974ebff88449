/* SPDX-License-Identifier: MIT */
/*
 * raftd_handover.h -- this node leads, and lets another one lead; or looks whether a node can be spared before it is removed.
 *
 * WHAT      Waits until the others are so far, with a bound, and tells the one who has asked, once.
 * NOT HERE  Whether it is to be done (raftd_decide.h).  The removal itself (raftd_change.h).
 * OWNER     struct raftd_handover is a part of struct raftd_members: one at a time.
 * THREADS   that of the loop.
 *
 * INVARIANTS
 *   (1) The node that leads is not removed: it lets another one lead first.
 *   (2) The node that is to lead is told so when it has said that it has all entries on disk, and nothing is proposed from the moment
 *       it is chosen on.  libraft tells it once, as soon as all have been sent, and a node that has one of them not yet on disk
 *       takes no notice.
 *   (3) A node is removed only when a majority of the others that count has an entry that was made for that, so runs: else nothing
 *       could be committed any more.
 */
#ifndef XAC_RAFTD_HANDOVER_H
#define XAC_RAFTD_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "raftd_members.h"

/*
 * raftd_handover_start -- if none is under way; else it is NOT_NOW.
 *
 * in   node  that is to lead; 0: the best one
 * in   what  done, arg; and remove with last_node.  When this node itself is to be removed, the question is asked again, of the
 *            node that leads then
 */
void raftd_handover_start(struct raftd_members *m, uint32_t node,
                          const struct raftd_handover *what);

/* raftd_handover_await -- go on with what waits for answers of other nodes. */
void raftd_handover_await(struct raftd_members *m);

/* raftd_handover_is_leaving -- this node leads, and lets another one lead: nothing is to be proposed (2). */
bool raftd_handover_is_leaving(const struct raftd_members *m);

/* raftd_handover_heir -- the node that is to lead when this one lets go: a voter that has most of the log; 0: there is no other. */
uint32_t raftd_handover_heir(const struct raftd_members *m);

/* raftd_handover_give_way -- if this node leads, and can do nothing: let another one lead. */
void raftd_handover_give_way(struct raftd_members *m);

#endif /* XAC_RAFTD_HANDOVER_H */
