/* SPDX-License-Identifier: MIT */
/*
 * raftd_change.h -- a change of Raft's configuration that somebody waits for: a node is added, or removed.
 *
 * WHAT      Has the number of the node committed as used, if it is not yet; then has libraft change its configuration; and tells
 *           the one who waits, once.
 * NOT HERE  Whether there may be a change, and which (raftd_decide.h, raftd_handover.h).
 * OWNER     A change belongs to this module from raftd_change_start() on, until it has told.
 * THREADS   that of the loop.
 */
#ifndef XAC_RAFTD_CHANGE_H
#define XAC_RAFTD_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#include "raftd_members.h"

struct raftd_change {
    struct raft_change req;
    struct raft_apply apply;
    struct raftd_members *m;
    uint32_t node;
    char address[RAFTD_ADDRESS_BYTES];
    raftd_change_done *done; /* of one that is added                                   */
    raftd_decided *decided;  /* of one that is removed; else NULL                      */
    void *arg;
};

/*
 * raftd_change_start -- of a copy of it, behind a NODE entry, if its number has had none.  No other change is under way.
 *
 * in   what       node; address, and done, or decided; arg
 * in   last_node  the highest number that a NODE entry has had
 * ret  0 or ENOMEM: nobody is told.
 */
int raftd_change_start(struct raftd_members *m, const struct raftd_change *what,
                       uint64_t last_node);

/* raftd_change_is_settled -- is no change under way? */
bool raftd_change_is_settled(const struct raftd_members *m);

/* raftd_change_status -- what libraft says; enum raftd_ask_status. */
uint32_t raftd_change_status(int rv);

/* raftd_change_is_refused -- libraft has not taken an entry, and its memory is the caller's still? */
bool raftd_change_is_refused(int rv);

#endif /* XAC_RAFTD_CHANGE_H */
